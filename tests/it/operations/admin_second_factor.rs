//! The second factor of administrators: enrolment by command, verification at sign-in.

use std::fmt::Write as _;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::hmac;
use serde_json::json;

use crate::support::{
    CommandOutput, Request, Response, Server, Setup, contents_of, eventually, holds, send_concurrently,
};

const PASSWORD: &str = "correct horse battery staple";

/// An authenticator app. Its clock stands still, so that a test does not depend on the second in which it starts.
struct Authenticator {
    key: Vec<u8>,
    step: i64,
}

impl Authenticator {
    fn of(secret: &str) -> Self {
        let mut bits = String::new();
        for letter in secret.chars() {
            let value = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".find(letter).unwrap();
            write!(bits, "{value:05b}").unwrap();
        }
        let byte = |bits: &[char]| u8::from_str_radix(&bits.iter().collect::<String>(), 2).unwrap();
        let key = bits.chars().collect::<Vec<_>>().chunks_exact(8).map(byte).collect();
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        Self { key, step: i64::try_from(now).unwrap() / 30 }
    }

    /// Returns the code of the time step `steps` from the current one.
    fn code(&self, steps: i64) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &self.key);
        let hash = hmac::sign(&key, &(self.step + steps).to_be_bytes());
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

fn login(server: &Server, totp: Option<&str>) -> Response {
    signing_in(server, totp).send()
}

fn confirm(server: &Server, code: &str) -> CommandOutput {
    CommandOutput::run(server.directory(), &["admin", "totp", "confirm", "root"], &format!("{code}\n"))
}

fn forget_attempts(server: &Server) {
    server.edit("delete from admin_attempts");
}

/// Starts a server whose administrator confirmed a second factor with the previous code.
fn enrolled() -> (Server, Authenticator) {
    let server = Setup::default().start();
    server.admin("root", PASSWORD);
    let created = server.command(&["admin", "totp", "enrol", "root"]).expect(0).json();
    let app = Authenticator::of(created["secret"].as_str().unwrap());
    confirm(&server, &app.code(-1)).expect(0);
    (server, app)
}

#[test]
fn a_second_factor_is_required_once_confirmed() {
    let server = Setup::default().start();
    server.admin("root", PASSWORD);
    assert!(server.command(&["admin", "totp", "enrol", "nobody"]).expect(4).stderr().contains("no administrator"));
    confirm(&server, "123456").expect(4);
    let first = server.command(&["admin", "totp", "enrol", "root"]).expect(0).json();
    let created = server.command(&["admin", "totp", "enrol", "root"]).expect(0).json();
    assert_ne!(first["secret"], created["secret"]);
    let uri = format!("otpauth://totp/Yarrow:root?secret={}&issuer=Yarrow", created["secret"].as_str().unwrap());
    assert_eq!(created["uri"], uri);
    // Not confirmed yet.
    login(&server, None).expect(200);
    confirm(&server, &Authenticator::of(first["secret"].as_str().unwrap()).code(0)).expect(1);
    confirm(&server, "").expect(1);
    let app = Authenticator::of(created["secret"].as_str().unwrap());
    confirm(&server, &app.code(-1)).expect(0);
    confirm(&server, &app.code(0)).expect(1);
    server.command(&["admin", "totp", "enrol", "root"]).expect(1);
    assert_eq!(server.command(&["admin", "list"]).expect(0).json()["items"][0]["hasSecondFactor"], true);
    login(&server, None).expect_problem(401, "totp_required");
    login(&server, Some(&app.code(0))).expect(200);
    let actions: i64 = server.value("select count(*) from audit where action like 'yarrow admin totp %'");
    assert_eq!(actions, 3);
}

#[test]
fn the_code_that_confirms_also_signs_in_and_earlier_sessions_end() {
    let server = Setup::default().start();
    let early = server.admin("root", PASSWORD);
    let created = server.command(&["admin", "totp", "enrol", "root"]).expect(0).json();
    let app = Authenticator::of(created["secret"].as_str().unwrap());
    let works = |token: &str| server.get("/admin/audit").token(token).send().status;
    assert_eq!(works(&early), 200);
    let code = app.code(0);
    confirm(&server, &code).expect(0);
    eventually("the session without a code ends", || works(&early) == 401);
    let session = login(&server, Some(&code)).expect(200).json();
    let refused = login(&server, Some(&code)).expect_problem(401, "invalid_credentials").json();
    assert!(refused["detail"].as_str().unwrap().contains("already used"), "{refused}");
    let token = session["token"].as_str().unwrap();
    assert_eq!(works(token), 200);
    server.command(&["admin", "totp", "remove", "root", "--yes"]).expect(0);
    eventually("the session of the lost device ends", || works(token) == 401);
}

#[test]
fn a_code_is_accepted_once() {
    let (server, app) = enrolled();
    let code = app.code(0);
    let responses = send_concurrently((0..3).map(|_| signing_in(&server, Some(&code))).collect());
    let statuses: Vec<_> = responses.iter().map(|response| response.status).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    forget_attempts(&server);
    login(&server, Some(&code)).expect_problem(401, "invalid_credentials");
    // Codes older than the last used one are rejected too.
    login(&server, Some(&app.code(-1))).expect_problem(401, "invalid_credentials");
    login(&server, Some(&app.code(1))).expect(200);
}

#[test]
fn a_code_used_by_a_fast_clock_locks_nobody_out_and_is_not_reusable() {
    let (server, app) = enrolled();
    // One was used while the clock was a day ahead.
    server.edit(
        "insert into admin_used_codes (admin_id, step) select admin_id, unixepoch() / 30 + 2880 from admin_second_factors",
    );
    login(&server, Some(&app.code(0))).expect(200);
    login(&server, Some(&app.code(0))).expect_problem(401, "invalid_credentials");
    forget_attempts(&server);
    // Its time has come.
    let next = app.step + 1;
    server.edit(&format!("update admin_used_codes set step = {next} where step > {next} + 1000"));
    login(&server, Some(&app.code(1))).expect_problem(401, "invalid_credentials");
}

#[test]
fn wrong_codes_count_as_failures_and_missing_ones_do_not() {
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
    // A code without the password gets the response of a wrong password.
    let body = json!({ "name": "root", "password": "wrong password", "totp": app.code(0) });
    server.post("/admin/login").json(&body).send().expect_problem(401, "invalid_credentials");
    login(&server, Some(&app.code(0))).expect(200);
}

#[test]
fn a_command_resets_a_lost_second_factor() {
    let (server, app) = enrolled();
    server.command(&["admin", "totp", "remove", "root"]).expect(2);
    server.command(&["admin", "totp", "remove", "root", "--yes"]).expect(0);
    server.command(&["admin", "totp", "remove", "root", "--yes"]).expect(4);
    login(&server, None).expect(200);
    // The old enrolment is invalid.
    server.command(&["admin", "totp", "enrol", "root"]).expect(0);
    confirm(&server, &app.code(0)).expect(1);
}

#[test]
fn the_secret_is_encrypted_with_the_server_key() {
    let server = Setup::default().in_own_process().start();
    server.admin("root", PASSWORD);
    let created = server.command(&["admin", "totp", "enrol", "root"]).expect(0).json();
    let app = Authenticator::of(created["secret"].as_str().unwrap());
    confirm(&server, &app.code(-1)).expect(0);
    let directory = server.kill();
    for bytes in contents_of(&directory) {
        for trace in
            [&app.key[..], created["secret"].as_str().unwrap().as_bytes(), STANDARD.encode(&app.key).as_bytes()]
        {
            assert!(!holds(&bytes, trace));
        }
    }
    let key = "another key, long enough to be one";
    let other = Setup::default().with("AUTH_SECRET_KEY", key).on(&directory).in_own_process().start();
    login(&other, Some(&app.code(0))).expect_problem(500, "internal");
    other.command(&["admin", "totp", "remove", "root", "--yes"]).expect(0);
    login(&other, None).expect(200);
    std::fs::remove_dir_all(directory).unwrap();
}
