//! The second factor of administrators, enrolled by commands and asked for at the door.

use std::fmt::Write as _;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::hmac;
use serde_json::json;

use crate::support::{Answer, Ended, Request, Server, Setup, at_once, contents_of};

const PASSWORD: &str = "correct horse battery staple";

/// An authenticator app.
struct Authenticator(Vec<u8>);

impl Authenticator {
    fn of(secret: &str) -> Self {
        let mut bits = String::new();
        for letter in secret.chars() {
            let value = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".find(letter).unwrap();
            write!(bits, "{value:05b}").unwrap();
        }
        let byte = |bits: &[char]| u8::from_str_radix(&bits.iter().collect::<String>(), 2).unwrap();
        Self(bits.chars().collect::<Vec<_>>().chunks_exact(8).map(byte).collect())
    }

    /// The code that is shown so many steps from now.
    fn code(&self, steps: i64) -> String {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        let step = i64::try_from(now).unwrap() / 30 + steps;
        let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &self.0);
        let hash = hmac::sign(&key, &step.to_be_bytes());
        let offset = usize::from(hash.as_ref()[19] & 15);
        let chosen = u32::from_be_bytes(hash.as_ref()[offset..offset + 4].try_into().unwrap()) & 0x7fff_ffff;
        format!("{:06}", chosen % 1_000_000)
    }
}

fn signing_in(server: &Server, totp: Option<&str>) -> Request {
    let mut body = json!({ "name": "root", "password": PASSWORD });
    if let Some(totp) = totp {
        body["totp"] = totp.into();
    }
    server.post("/admin/login").json(&body)
}

fn login(server: &Server, totp: Option<&str>) -> Answer {
    signing_in(server, totp).send()
}

fn confirm(server: &Server, code: &str) -> Ended {
    Ended::run(server.directory(), &["admin", "totp", "confirm", "root"], &format!("{code}\n"))
}

fn forget_attempts(server: &Server) {
    server.edit("delete from admin_attempts");
}

/// A server whose administrator has confirmed a second factor with the code of the step before.
fn enrolled() -> (Server, Authenticator) {
    let server = Setup::default().start();
    server.admin("root", PASSWORD);
    let made = server.command(&["admin", "totp", "enrol", "root"]).expect(0).json();
    let app = Authenticator::of(made["secret"].as_str().unwrap());
    confirm(&server, &app.code(-1)).expect(0);
    (server, app)
}

#[test]
fn a_second_factor_counts_once_it_was_confirmed() {
    let server = Setup::default().start();
    server.admin("root", PASSWORD);
    assert!(server.command(&["admin", "totp", "enrol", "nobody"]).expect(4).complaint().contains("no administrator"));
    confirm(&server, "123456").expect(4);
    let first = server.command(&["admin", "totp", "enrol", "root"]).expect(0).json();
    let made = server.command(&["admin", "totp", "enrol", "root"]).expect(0).json();
    assert_ne!(first["secret"], made["secret"]);
    let uri = format!("otpauth://totp/Yarrow:root?secret={}&issuer=Yarrow", made["secret"].as_str().unwrap());
    assert_eq!(made["uri"], uri);
    // Not yet.
    login(&server, None).expect(200);
    confirm(&server, &Authenticator::of(first["secret"].as_str().unwrap()).code(0)).expect(1);
    confirm(&server, "").expect(1);
    let app = Authenticator::of(made["secret"].as_str().unwrap());
    confirm(&server, &app.code(-1)).expect(0);
    confirm(&server, &app.code(0)).expect(1);
    server.command(&["admin", "totp", "enrol", "root"]).expect(1);
    assert_eq!(server.command(&["admin", "list"]).expect(0).json()[0]["hasSecondFactor"], true);
    login(&server, None).expect_problem(401, "totp_required");
    login(&server, Some(&app.code(0))).expect(200);
    let actions: i64 = server.value("select count(*) from audit where action like 'yarrow admin totp %'");
    assert_eq!(actions, 3);
}

#[test]
fn one_code_is_one_sign_in() {
    let (server, app) = enrolled();
    let code = app.code(0);
    let answers = at_once((0..3).map(|_| signing_in(&server, Some(&code))).collect());
    let statuses: Vec<_> = answers.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    forget_attempts(&server);
    login(&server, Some(&code)).expect_problem(401, "invalid_credentials");
    // Nor does one from before the last that was used.
    login(&server, Some(&app.code(-1))).expect_problem(401, "invalid_credentials");
    login(&server, Some(&app.code(1))).expect(200);
}

#[test]
fn a_code_of_a_clock_that_was_ahead_keeps_nobody_out_and_counts_no_more() {
    let (server, app) = enrolled();
    // One was used when the clock was a day ahead.
    server.edit(
        "insert into admin_used_codes (admin_id, step) select admin_id, unixepoch() / 30 + 2880 from admin_second_factors",
    );
    login(&server, Some(&app.code(0))).expect(200);
    login(&server, Some(&app.code(0))).expect_problem(401, "invalid_credentials");
    forget_attempts(&server);
    // Its time has come.
    server.edit("update admin_used_codes set step = unixepoch() / 30 + 1 where step > unixepoch() / 30 + 1000");
    login(&server, Some(&app.code(1))).expect_problem(401, "invalid_credentials");
}

#[test]
fn wrong_codes_are_failures_and_a_missing_one_is_none() {
    let (server, app) = enrolled();
    for _ in 0..5 {
        login(&server, None).expect_problem(401, "totp_required");
    }
    login(&server, Some("abc")).expect_fields(&[("totp", "invalid_format")]);
    for code in ["000000", &app.code(-9), &app.code(9)] {
        login(&server, Some(code)).expect_problem(401, "invalid_credentials");
    }
    login(&server, Some(&app.code(0))).expect_problem(429, "too_many_requests");
    forget_attempts(&server);
    // The code without the password is worth nothing, and is not told from a wrong password.
    let body = json!({ "name": "root", "password": "wrong password", "totp": app.code(0) });
    server.post("/admin/login").json(&body).send().expect_problem(401, "invalid_credentials");
    login(&server, Some(&app.code(0))).expect(200);
}

#[test]
fn who_has_lost_the_device_gets_back_in_by_the_command_line() {
    let (server, app) = enrolled();
    server.command(&["admin", "totp", "remove", "root"]).expect(2);
    server.command(&["admin", "totp", "remove", "root", "--yes"]).expect(0);
    server.command(&["admin", "totp", "remove", "root", "--yes"]).expect(4);
    login(&server, None).expect(200);
    // What was enrolled before is worth nothing afterwards.
    server.command(&["admin", "totp", "enrol", "root"]).expect(0);
    confirm(&server, &app.code(0)).expect(1);
}

#[test]
fn the_secret_is_not_in_the_database_and_needs_the_server_key() {
    let server = Setup::default().start();
    server.admin("root", PASSWORD);
    let made = server.command(&["admin", "totp", "enrol", "root"]).expect(0).json();
    let app = Authenticator::of(made["secret"].as_str().unwrap());
    confirm(&server, &app.code(-1)).expect(0);
    let directory = server.kill();
    for bytes in contents_of(&directory) {
        for trace in [&app.0[..], made["secret"].as_str().unwrap().as_bytes(), STANDARD.encode(&app.0).as_bytes()] {
            assert!(!bytes.windows(trace.len()).any(|window| window == trace));
        }
    }
    let key = "another key, long enough to be one";
    let other = Setup::default().with("AUTH_SECRET_KEY", key).on(&directory).start();
    login(&other, Some(&app.code(0))).expect_problem(500, "internal");
    other.command(&["admin", "totp", "remove", "root", "--yes"]).expect(0);
    login(&other, None).expect(200);
    std::fs::remove_dir_all(directory).unwrap();
}
