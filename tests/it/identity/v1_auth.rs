//! `/api/v1/auth`: codes by email, sign-in and devices.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{
    Request, Response, Server, Setup, eventually, eventually_some,
    fake_smtp::{FakeSmtpServer, Offer, SmtpFault, Step},
    send_concurrently,
};

const EMAIL: &str = "li.ming@example.com";

fn ask(server: &Server, email: &str) -> Request {
    server.post("/api/v1/auth/send-code").json(&json!({ "email": email }))
}

fn log_in(server: &Server, email: &str, code: &str) -> Request {
    server.post("/api/v1/auth/login").json(&json!({ "email": email, "code": code }))
}

fn wrong(code: &str) -> String {
    let last = code.chars().last().unwrap().to_digit(10).unwrap();
    format!("{}{}", &code[..code.len() - 1], (last + 1) % 10)
}

fn devices(server: &Server, token: &str) -> Vec<Value> {
    let response = server.get("/api/v1/auth/tokens").token(token).send().expect(200).json();
    response["items"].as_array().unwrap().clone()
}

/// Returns the response without its per-request parts.
fn stable_parts(response: &Response) -> (u16, Vec<String>, Value) {
    let mut body = response.json();
    body.as_object_mut().unwrap().remove("requestId");
    let mut headers: Vec<_> = response.headers.keys().map(ToString::to_string).collect();
    headers.sort();
    (response.status, headers, body)
}

#[test]
fn sends_an_eight_digit_code_and_returns_its_terms() {
    let server = Setup::default().start();
    let sent = ask(&server, "  Li.Ming@Example.COM ").send().expect(200).json();
    assert_eq!(sent, json!({ "email": EMAIL, "expiresIn": 600, "resendAfter": 60 }));
    ask(&server, EMAIL).send().expect_problem(429, "too_many_requests");
    let other = ask(&server, "other@example.com").header("accept-language", "en-GB").send().expect(200);
    assert_eq!(other.json()["email"], "other@example.com");
    // The message may be printed after the response.
    eventually("the code is printed", || !server.sent_email_codes("other@example.com").is_empty());
    let lines = server.lines();
    let line = |email: &str| lines.iter().find(|line| line.contains(&format!("Email to {email}"))).unwrap().clone();
    assert!(line(EMAIL).contains("您的登录验证码"), "{lines:#?}");
    assert!(line("other@example.com").contains("Your sign-in code"), "{lines:#?}");
}

#[test]
fn first_sign_in_creates_the_account_and_grants_the_bonus_once() {
    let server = Setup::default().start();
    let first = server.log_in_by_email(EMAIL);
    assert_eq!(first["isNewUser"], true);
    assert_eq!((&first["restored"], &first["pointsRestored"]), (&json!(false), &json!(0)));
    assert_eq!((&first["pointsGranted"], &first["user"]["points"]), (&json!(100), &json!(100)));
    assert_eq!((&first["user"]["email"], &first["user"]["phoneNumber"]), (&json!(EMAIL), &Value::Null));
    let second = server.log_in_by_email(EMAIL);
    assert_eq!((&second["isNewUser"], &second["pointsGranted"]), (&json!(false), &json!(0)));
    assert_eq!(second["user"]["points"], 100);
    assert_eq!(second["user"]["id"], first["user"]["id"]);
    let ledger = server.get("/api/v1/points/ledger").token(second["token"].as_str().unwrap()).send().expect(200).json();
    let kinds: Vec<_> = ledger["items"].as_array().unwrap().iter().map(|entry| entry["kind"].clone()).collect();
    assert_eq!(kinds, ["signup_bonus"]);
}

#[test]
fn concurrent_first_sign_ins_create_one_account_with_one_bonus() {
    let server = Setup::default().start();
    for round in 0..5 {
        let email = format!("round-{round}@example.com");
        let code = server.request_email_code(&email, "sign_in");
        let responses = send_concurrently((0..16).map(|_| log_in(&server, &email, &code)).collect());
        let (done, refused): (Vec<_>, Vec<_>) = responses.into_iter().partition(|response| response.status == 200);
        assert_eq!(done.len(), 1);
        assert_eq!(done[0].json()["pointsGranted"], 100);
        for response in refused {
            response.expect_problem(401, "invalid_code");
        }
    }
    assert_eq!(server.value::<i64>("select count(*) from users"), 5);
    assert_eq!(server.value::<i64>("select count(*) from ledger_entries where kind = 'signup_bonus'"), 5);
    assert_eq!(server.value::<i64>("select sum(balance) from balances where asset = 'point'"), 500);
}

#[test]
fn known_and_unknown_addresses_get_the_same_responses() {
    let server = Setup::default().start();
    server.sign_in_by_email(EMAIL);
    server.edit("delete from code_sends");
    let known = ask(&server, EMAIL).send();
    let unknown = ask(&server, "nobody@example.com").send();
    let mut expected = stable_parts(&known);
    expected.2["email"] = json!("nobody@example.com");
    assert_eq!(stable_parts(&unknown), expected);
    let code = "00000000";
    assert_eq!(
        stable_parts(&log_in(&server, EMAIL, code).send()),
        stable_parts(&log_in(&server, "nobody@example.com", code).send())
    );
}

#[test]
fn rejects_a_code_after_five_attempts_and_for_another_purpose() {
    let server = Setup::default().start();
    let code = server.request_email_code(EMAIL, "sign_in");
    for _ in 0..5 {
        log_in(&server, EMAIL, &wrong(&code)).send().expect_problem(401, "invalid_code");
    }
    log_in(&server, EMAIL, &code).send().expect_problem(401, "invalid_code");
    server.edit("delete from code_sends");
    let code = server.request_email_code(EMAIL, "address");
    log_in(&server, EMAIL, &code).send().expect_problem(401, "invalid_code");
    assert_eq!(server.value::<i64>("select count(*) from users"), 0);
}

#[test]
fn email_codes_expire_after_ten_minutes() {
    let server = Setup::default().start();
    let code = server.request_email_code(EMAIL, "sign_in");
    server.edit("update codes set expires_at = expires_at - 540000");
    let other = server.request_email_code("other@example.com", "sign_in");
    server.edit(
        "update codes set expires_at = expires_at - 600001 where expires_at > (select min(expires_at) from codes)",
    );
    log_in(&server, EMAIL, &code).send().expect(200);
    log_in(&server, "other@example.com", &other).send().expect_problem(401, "invalid_code");
}

#[test]
fn stores_addresses_and_codes_as_hashes_only() {
    let server = Setup::default().start();
    let code = server.request_email_code(EMAIL, "sign_in");
    for bytes in server.data_files() {
        let holds = |text: &str| crate::support::holds(&bytes, text.as_bytes());
        assert!(!holds(&code) && !holds(EMAIL));
    }
}

#[test]
fn reports_bad_input_by_field() {
    let server = Setup::default().start();
    server.post("/api/v1/auth/send-code").json(&json!({})).send().expect_fields(&[("email", "required")]);
    let bad = json!({ "email": "a@b", "purpose": "fun" });
    server
        .post("/api/v1/auth/send-code")
        .json(&bad)
        .send()
        .expect_fields(&[("email", "invalid_format"), ("purpose", "unknown_value")]);
    // Mail servers take the domain for an address, also of the operator's network.
    for email in ["a@1.2.3.4", "a@127.0.0.1", "a@example.123", "a@0x7f.1", "a@[127.0.0.1]", "a@mail.localhost"] {
        let send = server.post("/api/v1/auth/send-code").json(&json!({ "email": email }));
        send.send().expect_fields(&[("email", "invalid_format")]);
    }
    let bad = json!({ "email": "a@example.com, b@example.com", "code": "12a34", "device": "x".repeat(65) });
    server.post("/api/v1/auth/login").json(&bad).send().expect_fields(&[
        ("email", "invalid_format"),
        ("code", "invalid_format"),
        ("device", "too_long"),
    ]);
    server
        .post("/api/v1/auth/login")
        .json(&json!({}))
        .send()
        .expect_fields(&[("email", "required"), ("code", "required")]);
}

#[test]
fn review_accounts_use_their_fixed_code_and_get_no_message() {
    let setup = Setup::default().with("AUTH_REVIEW_ACCOUNTS", "review@example.com=12345678");
    let server = setup.start();
    ask(&server, "review@example.com").send().expect(200);
    log_in(&server, "Review@example.com", "12345678").send().expect(200);
    log_in(&server, "review@example.com", "12345678").send().expect_problem(401, "invalid_code");
    assert!(server.sent_email_codes("review@example.com").is_empty());
}

#[test]
fn refreshes_and_revokes_tokens_like_the_first_generation() {
    let server = Setup::default().start();
    let user = server.sign_in_by_email(EMAIL);
    let refreshed = server.post("/api/v1/auth/refresh").by(&user).send().expect(200).json();
    let token = refreshed["token"].as_str().unwrap();
    let again = server.post("/api/v1/auth/refresh").json(&json!({ "token": user.token })).send().expect(200).json();
    assert_eq!(again["token"], token);
    server.get("/api/v1/account").token(token).send().expect(200);
    // Tokens work in both API versions.
    server.get("/user/profile").token(token).send().expect(200);
    let out = server.post("/api/v1/auth/logout").token(token).send().expect(200).json();
    assert_eq!(out, json!({ "loggedOut": true }));
    server.get("/api/v1/account").token(token).send().expect_problem(401, "unauthenticated");
    server.post("/api/v1/auth/refresh").token(token).send().expect_problem(401, "unauthenticated");
    server.post("/api/v1/auth/logout").token("never was one").send().expect(200);
    server.post("/api/v1/auth/logout").send().expect_fields(&[("token", "required")]);
}

#[test]
fn lists_and_revokes_devices() {
    let server = Setup::default().start();
    let first = server.log_in_by_email(EMAIL)["token"].as_str().unwrap().to_owned();
    let sign_in = |device: Option<&str>, agent: &str| {
        server.edit("delete from code_sends");
        let code = server.request_email_code(EMAIL, "sign_in");
        let body = json!({ "email": EMAIL, "code": code, "device": device });
        let response = server.post("/api/v1/auth/login").header("user-agent", agent).json(&body).send().expect(200);
        response.json()["token"].as_str().unwrap().to_owned()
    };
    let second = sign_in(Some("明的手机"), "Yarrow/2 (iPhone)");
    let third = sign_in(None, "Yarrow/2 (iPhone; iOS 19)");
    let found = devices(&server, &second);
    let labels: Vec<_> = found.iter().map(|device| device["label"].as_str().unwrap()).collect();
    assert_eq!(labels[..2], ["Yarrow, iPhone", "明的手机"]);
    let current: Vec<_> = found.iter().map(|device| device["current"].as_bool().unwrap()).collect();
    assert_eq!(current, [false, true, false]);
    let id = found[0]["id"].as_str().unwrap().to_owned();
    // A refresh changes the token, not the device.
    let refreshed = server.post("/api/v1/auth/refresh").token(&third).send().expect(200).json();
    assert_eq!(devices(&server, &second)[0]["id"], *id);
    let stranger = server.sign_in_by_email("stranger@example.com");
    server.delete(&format!("/api/v1/auth/tokens/{id}")).by(&stranger).send().expect_problem(404, "not_found");
    let gone = server.delete(&format!("/api/v1/auth/tokens/{id}")).token(&second).send().expect(204);
    assert!(gone.bytes.is_empty());
    server.delete(&format!("/api/v1/auth/tokens/{id}")).token(&second).send().expect_problem(404, "not_found");
    server.delete("/api/v1/auth/tokens/xyz").token(&second).send().expect_fields(&[("id", "invalid_format")]);
    for token in [&third, refreshed["token"].as_str().unwrap()] {
        server.get("/api/v1/account").token(token).send().expect_problem(401, "unauthenticated");
    }
    server.get("/api/v1/account").token(&first).send().expect(200);
    assert_eq!(devices(&server, &second).len(), 2);
}

#[test]
fn records_the_last_use_of_a_device_by_the_hour() {
    let server = Setup::default().start();
    let user = server.sign_in_by_email(EMAIL);
    let last_use = || server.value::<i64>("select last_used_at from tokens");
    let at_first = last_use();
    server.edit("update tokens set last_used_at = last_used_at - 3600001");
    server.get("/api/v1/account").by(&user).send().expect(200);
    let noted = eventually_some("the use is recorded", || Some(last_use()).filter(|noted| *noted >= at_first));
    server.get("/api/v1/account").by(&user).send().expect(200);
    server.get("/api/v1/account").by(&user).send().expect(200);
    assert_eq!(last_use(), noted);
    assert!(devices(&server, &user.token)[0]["lastUsedAt"].is_string());
}

// A fake mail server.

fn by_smtp(server: &FakeSmtpServer) -> Setup {
    Setup::default()
        .with("EMAIL_PROVIDER", "smtp")
        .with("EMAIL_HOST", "localhost")
        .with("EMAIL_PORT", server.port())
        .with("EMAIL_CA", &server.certificate)
        .with("EMAIL_FROM", "Yarrow <no-reply@yarrow.example>")
}

#[test]
fn signs_in_with_a_code_sent_by_smtp() {
    let auth = Some(("PLAIN", "yarrow", "open sesame"));
    let mail_server = FakeSmtpServer::offering(Offer { starttls: true, auth, ..Offer::default() });
    let server = by_smtp(&mail_server).with("EMAIL_USERNAME", "yarrow").with("EMAIL_PASSWORD", "open sesame").start();
    ask(&server, EMAIL).header("accept-language", "en").send().expect(200);
    let mails = mail_server.mails();
    assert_eq!((mails.len(), mails[0].to.as_slice()), (1, &[EMAIL.to_owned()][..]));
    let text = mails[0].part("text/plain");
    let code = text.split_whitespace().find(|word| word.len() == 8 && word.bytes().all(|byte| byte.is_ascii_digit()));
    log_in(&server, EMAIL, code.unwrap()).send().expect(200);
    assert!(!server.lines().iter().any(|line| line.contains(EMAIL)), "{:#?}", server.lines());
}

#[test]
fn a_refused_message_leaves_no_code_and_uses_the_limits() {
    for status in [450, 550] {
        let trouble = Some((Step::Recipient, SmtpFault::Refuse(status)));
        let mail_server = FakeSmtpServer::offering(Offer { starttls: true, trouble, ..Offer::default() });
        let server = by_smtp(&mail_server).start();
        assert!([429, 503].contains(&ask(&server, EMAIL).send().status), "{status}");
        let refused = ask(&server, EMAIL).send().expect_problem(429, "too_many_requests");
        assert!(refused.header("retry-after").is_some());
        assert_eq!(mail_server.sessions(), 1, "{status}");
        assert_eq!(server.value::<i64>("select count(*) from codes"), 0, "{status}");
        assert_eq!(server.value::<i64>("select count(*) from code_sends"), 1, "{status}");
    }
}

#[test]
fn a_hostile_mail_server_takes_neither_memory_nor_time() {
    for trouble in [SmtpFault::EndlessLine, SmtpFault::EndlessReply, SmtpFault::Drip] {
        for step in [Step::Greeting, Step::Hello, Step::Recipient] {
            let mail_server = FakeSmtpServer::offering(Offer { trouble: Some((step, trouble)), ..Offer::default() });
            let server =
                by_smtp(&mail_server).with("EMAIL_TLS", "none").with("EMAIL_TIMEOUT", "2 s").in_own_process().start();
            let started_at = Instant::now();
            let taken = server.memory_taken(|server| {
                ask(server, EMAIL).send().expect_problem(503, "provider_unavailable");
            });
            let took = started_at.elapsed();
            println!("{trouble:?} at {step:?}: {} KiB, {took:?}", taken >> 10);
            assert!(taken < 16 << 20, "{trouble:?} at {step:?}: {taken} bytes");
            assert!(took < Duration::from_secs(6), "{trouble:?} at {step:?}: {took:?}");
        }
    }
}

#[test]
fn mail_server_failures_leave_no_code_and_use_no_limit() {
    for (step, trouble) in [(Step::Sender, SmtpFault::Refuse(451)), (Step::Recipient, SmtpFault::HangUp)] {
        let mail_server =
            FakeSmtpServer::offering(Offer { starttls: true, trouble: Some((step, trouble)), ..Offer::default() });
        let server = by_smtp(&mail_server).start();
        for _ in 0..3 {
            ask(&server, EMAIL).send().expect_problem(503, "provider_unavailable");
        }
        assert_eq!(server.value::<i64>("select (select count(*) from codes) + (select count(*) from code_sends)"), 0);
    }
    let lost = Some((Step::Message, SmtpFault::HangUp));
    let mail_server = FakeSmtpServer::offering(Offer { starttls: true, trouble: lost, ..Offer::default() });
    let server = by_smtp(&mail_server).start();
    // The message may have arrived, so the code is valid.
    ask(&server, EMAIL).send().expect_problem(504, "provider_timeout");
    ask(&server, EMAIL).send().expect_problem(429, "too_many_requests");
    assert_eq!(server.value::<i64>("select count(*) from codes"), 1);
}
