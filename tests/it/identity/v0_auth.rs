//! `/auth`: codes, send limits, sign-in and token lifetime.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::support::{
    Caller, Request, Response, Server, Setup, eventually, eventually_some,
    fake_provider::{FakeProvider, Latch, Reply},
    holds, send_concurrently,
};

const PHONE: &str = "13800138000";
const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

fn ask(server: &Server, phone_number: &str) -> Request {
    server.post("/auth/send-code").form(&[("phoneNumber", phone_number)])
}

fn log_in(server: &Server, phone_number: &str, code: &str) -> Request {
    server.post("/auth/login").form(&[("phoneNumber", phone_number), ("code", code)])
}

/// Moves all sends into the past.
fn age_sends(server: &Server, seconds: u64) {
    server.edit(&format!(
        "update code_sends set sent_at = sent_at - {seconds} * 1000; \
         update code_counts set counted_at = counted_at - {seconds} * 1000"
    ));
}

/// Returns a wrong code of the same length.
fn wrong(code: &str) -> String {
    let last = code.chars().last().unwrap().to_digit(10).unwrap();
    format!("{}{}", &code[..code.len() - 1], (last + 1) % 10)
}

fn validate(server: &Server, token: &str) -> Value {
    server.post("/auth/validate-token").form(&[("token", token)]).send().expect(200).json()
}

fn refresh(server: &Server, token: &str) -> Request {
    server.post("/auth/refresh-token").form(&[("token", token)])
}

fn refreshed(server: &Server, token: &str) -> String {
    refresh(server, token).send().expect(200).json()["token"].as_str().unwrap().to_owned()
}

fn log_out(server: &Server, token: &str) -> Response {
    server.post("/auth/logout").form(&[("token", token)]).send().expect(200)
}

#[track_caller]
fn expect_works(server: &Server, token: &str) {
    server.get("/user/profile").token(token).send().expect(200);
}

#[track_caller]
fn expect_dead(server: &Server, token: &str) {
    let response = server.get("/user/profile").token(token).send().expect_problem(401, "unauthenticated");
    assert!(response.header("www-authenticate").unwrap().starts_with("Bearer realm="));
}

/// Panics unless the response is 429 with a `retry-after` of about this many seconds.
#[track_caller]
fn expect_wait(response: Response, seconds: u64) {
    let response = response.expect_problem(429, "too_many_requests");
    let wait: u64 = response.header("retry-after").unwrap().parse().unwrap();
    assert!((seconds.saturating_sub(20)..=seconds).contains(&wait), "{wait} s and not about {seconds} s");
}

/// Returns the response without its per-request parts.
fn stable_parts(response: &Response) -> (u16, Vec<String>, Value) {
    let mut body = response.json();
    if let Some(body) = body.as_object_mut() {
        body.remove("requestId");
    }
    let mut headers: Vec<_> = response.headers.keys().map(ToString::to_string).collect();
    headers.sort();
    (response.status, headers, body)
}

// Requesting codes.

#[test]
fn sends_a_code_and_returns_its_terms() {
    let server = Setup::default().start();
    let sent = ask(&server, "+86 138-0013-8000").send().expect(200).json();
    assert_eq!(sent, json!({ "phoneNumber": PHONE, "expiresIn": 300, "resendAfter": 60 }));
    age_sends(&server, MINUTE);
    let code = server.request_code(PHONE);
    assert!(code.len() == 6 && code.bytes().all(|byte| byte.is_ascii_digit()), "{code}");
}

#[test]
fn stores_codes_as_hashes_only() {
    let server = Setup::default().start();
    let code = server.request_code(PHONE);
    let stored: Vec<u8> = server.value("select code_hmac from codes");
    assert_eq!(stored.len(), 32);
    for bytes in server.data_files() {
        assert!(!holds(&bytes, code.as_bytes()), "the code is in a file");
    }
}

#[test]
fn stores_and_shows_foreign_numbers_with_their_country_code() {
    const ABROAD: &str = "+447400123456";
    let server = Setup::default().with("AUTH_ALLOWED_REGIONS", "CN,GB").start();
    assert_eq!(ask(&server, "0044 7400 123456").send().expect(200).json()["phoneNumber"], ABROAD);
    let sent = eventually_some("the code is printed", || {
        server.lines().into_iter().find_map(|line| Some(line.split_once(&format!("SMS to {ABROAD}: "))?.1.to_owned()))
    });
    let code: String = sent.split("code is ").nth(1).unwrap().chars().take(6).collect();
    let signed_in = log_in(&server, "+44 7400 123 456", &code).send().expect(200).json();
    assert_eq!(signed_in["phoneNumber"], ABROAD);
    let token = signed_in["token"].as_str().unwrap();
    let record = json!({ "phoneNumber": "＋４４7400123456", "localRecordId": "r-1" });
    let saved = server.post("/divination-history/save").token(token).json(&record).send().expect(200).json();
    assert_eq!(saved["phoneNumber"], ABROAD);
    let count = server.get("/divination-history/count/%2B447400123456").token(token).send().expect(200).json();
    assert_eq!(count["count"], 1);
    let balance = server.get("/coin/balance/phone").token(token).query(&[("phoneNumber", ABROAD)]).send();
    assert_eq!(balance.expect(200).json()["phoneNumber"], ABROAD);
    // The same digits in the home region are another number, and other regions are not allowed.
    server
        .get("/divination-history/count/447400123456")
        .token(token)
        .send()
        .expect_fields(&[("phoneNumber", "invalid_format")]);
    ask(&server, PHONE).send().expect(200);
    ask(&server, "+1 202 555 0123").send().expect(422);
    ask(&Setup::default().start(), ABROAD).send().expect(422);
}

#[test]
fn limits_an_address_to_one_code_a_minute() {
    let server = Setup::default().start();
    ask(&server, PHONE).send().expect(200);
    expect_wait(ask(&server, PHONE).send(), MINUTE);
    ask(&server, "13800138001").send().expect(200);
    age_sends(&server, 40);
    expect_wait(ask(&server, PHONE).send(), 20);
    age_sends(&server, 20);
    server.request_code(PHONE);
    server.expect_sent_codes(PHONE, 2);
}

#[test]
fn limits_an_address_to_five_codes_an_hour() {
    let server = Setup::default().start();
    for _ in 0..5 {
        ask(&server, PHONE).send().expect(200);
        age_sends(&server, 5 * MINUTE);
    }
    // The oldest of the five was sent 25 minutes ago.
    expect_wait(ask(&server, PHONE).send(), 35 * MINUTE);
    age_sends(&server, 35 * MINUTE);
    ask(&server, PHONE).send().expect(200);
    expect_wait(ask(&server, PHONE).send(), 5 * MINUTE);
}

#[test]
fn limits_an_address_to_ten_codes_a_day() {
    let server = Setup::default().start();
    for _ in 0..10 {
        ask(&server, PHONE).send().expect(200);
        age_sends(&server, 2 * HOUR);
    }
    expect_wait(ask(&server, PHONE).send(), 4 * HOUR);
    age_sends(&server, 4 * HOUR);
    ask(&server, PHONE).send().expect(200);
}

#[test]
fn all_spellings_of_a_number_share_a_limit() {
    let server = Setup::default().start();
    let code = server.request_code(PHONE);
    for spelling in ["+8613800138000", "0086 138 0013 8000", "１３８００１３８０００", " 138-0013-8000 "] {
        expect_wait(ask(&server, spelling).send(), MINUTE);
    }
    let number = server.post("/auth/send-code").json(&json!({ "phoneNumber": 13_800_138_000_u64 })).send();
    expect_wait(number, MINUTE);
    let signed_in = log_in(&server, "+86 13800138000", &code).send().expect(200).json();
    assert_eq!(signed_in["phoneNumber"], PHONE);
}

#[test]
fn parallel_requests_for_an_address_send_one_code() {
    let server = Setup::default().start();
    let responses = send_concurrently((0..20).map(|_| ask(&server, PHONE)).collect());
    assert_eq!(responses.iter().filter(|response| response.status == 200).count(), 1);
    assert_eq!(responses.iter().filter(|response| response.status == 429).count(), 19);
    server.expect_sent_codes(PHONE, 1);
}

fn from(server: &Server, client: &str, phone_number: &str) -> Response {
    ask(server, phone_number).header("x-forwarded-for", client).send()
}

#[test]
fn limits_clients_an_hour_by_ipv6_network() {
    let defaults = Setup::default().with("AUTH_SENDS_PER_CLIENT_HOUR", 20).with("AUTH_SENDS_PER_CLIENT_DAY", 100);
    let server = defaults.start();
    for number in 0..20 {
        from(&server, &format!("2001:db8:1:2::{number:x}"), &format!("138001380{number:02}")).expect(200);
    }
    expect_wait(from(&server, "2001:db8:1:2:ffff:ffff:ffff:ffff", "13800138090"), HOUR);
    from(&server, "2001:db8:1:3::1", "13800138091").expect(200);
    from(&server, "203.0.113.1", "13800138092").expect(200);
    age_sends(&server, HOUR);
    from(&server, "2001:db8:1:2::1", "13800138093").expect(200);
}

#[test]
fn limits_the_networks_around_a_client() {
    let setup = Setup::default().with("AUTH_SENDS_PER_CLIENT_HOUR", 2).with("AUTH_SENDS_PER_CLIENT_DAY", 3);
    let server = setup.start();
    let mut phones = (0..).map(|number| format!("1380014{number:04}"));
    let mut send = |client: &str| from(&server, client, &phones.next().unwrap()).status;
    // A /24 and a /56 may send four times as much as one client, a /48 eight times.
    for number in 0..8 {
        assert_eq!(send(&format!("203.0.113.{number}")), 200);
        assert_eq!(send(&format!("2001:db8:1:{number:x}::1")), 200);
    }
    assert_eq!(send("203.0.113.200"), 429);
    assert_eq!(send("2001:db8:1:ff::1"), 429);
    assert_eq!(send("203.0.114.1"), 200);
    for number in 0..8 {
        assert_eq!(send(&format!("2001:db8:1:f{number:02x}::1")), 200);
    }
    assert_eq!(send("2001:db8:1:ef00::1"), 429);
    assert_eq!(send("2001:db8:2::1"), 200);
    age_sends(&server, HOUR);
    // The day allows 3 for a client, 12 for a /24.
    for number in 0..4 {
        assert_eq!(send(&format!("203.0.113.{number}")), 200);
    }
    assert_eq!(send("203.0.113.200"), 429);
}

#[test]
fn some_networks_cannot_spend_the_budget_of_the_day() {
    let setup = Setup::default().with("AUTH_SENDS_PER_CLIENT_HOUR", 2).with("AUTH_SENDS_PER_CLIENT_DAY", 3);
    let server = setup.with("AUTH_SENDS_PER_DAY", 40).start();
    let mut phones = (0..).map(|number| format!("1380014{number:04}"));
    let mut send = |client: &str| from(&server, client, &phones.next().unwrap()).status;
    // A quarter of what is left, for each /48 and its /64 networks: 8 of 40, 6 of 32, 5 of 26.
    for (network, allowed) in [(1, 8), (2, 6), (3, 5)] {
        let sent = (0..16).filter(|number| send(&format!("2001:db8:{network}:{number:02x}00::1")) == 200).count();
        assert_eq!(sent, allowed, "2001:db8:{network}::/48");
    }
    // A /24 has no more, and every network has as much as a client in an hour.
    let sent = (0..8).filter(|number| send(&format!("203.0.113.{number}")) == 200).count();
    assert_eq!(sent, 4);
    for network in 0..17 {
        assert_eq!(send(&format!("198.51.{network}.1")), 200, "{network}");
    }
    expect_wait(from(&server, "192.0.2.1", PHONE), DAY);
}

#[test]
fn wrong_codes_from_elsewhere_keep_nobody_out() {
    let server = Setup::default().start();
    let guess = |client: &str, code: &str| log_in(&server, PHONE, code).header("x-forwarded-for", client).send();
    from(&server, "203.0.113.1", PHONE).expect(200);
    let code = server.printed_code(PHONE, 0);
    for client in ["198.51.100.1", "198.51.100.1", "2001:db8::1", "192.0.2.1", "192.0.2.2", "192.0.2.3"] {
        guess(client, &wrong(&code)).expect_problem(401, "invalid_code");
    }
    assert_eq!(server.value::<i64>("select tries_left from codes"), 3);
    // Not even the right one, because they could go on guessing.
    guess("192.0.2.9", &code).expect_problem(401, "invalid_code");
    guess("203.0.113.1", &wrong(&code)).expect_problem(401, "invalid_code");
    guess("203.0.113.77", &code).expect(200);
}

#[test]
fn a_code_works_from_another_network() {
    let server = Setup::default().start();
    from(&server, "203.0.113.1", PHONE).expect(200);
    let code = server.printed_code(PHONE, 0);
    let guess = |code: &str| log_in(&server, PHONE, code).header("x-forwarded-for", "198.51.100.1").send();
    guess(&wrong(&code)).expect_problem(401, "invalid_code");
    guess(&code).expect(200);
}

#[test]
fn limits_the_wrong_codes_of_a_client() {
    let server = Setup::default().with("AUTH_SENDS_PER_CLIENT_HOUR", 1).start();
    let guess = |client: &str, number: u32| {
        log_in(&server, &format!("138001380{number:02}"), "000000").header("x-forwarded-for", client).send()
    };
    for number in 0..5 {
        guess("203.0.113.1", number).expect_problem(401, "invalid_code");
    }
    expect_wait(guess("203.0.113.1", 9), HOUR);
    from(&server, "203.0.113.1", PHONE).expect(200);
    let code = server.printed_code(PHONE, 0);
    let right = |client: &str| log_in(&server, PHONE, &code).header("x-forwarded-for", client).send();
    expect_wait(right("203.0.113.1"), HOUR);
    // Networks around it have four times as much.
    for client in 2..5 {
        for number in 0..5 {
            guess(&format!("203.0.113.{client}"), number).expect_problem(401, "invalid_code");
        }
    }
    expect_wait(guess("203.0.113.200", 9), HOUR);
    guess("203.0.114.1", 9).expect_problem(401, "invalid_code");
    age_sends(&server, HOUR);
    right("203.0.113.1").expect(200);
}

#[test]
fn limits_clients_a_day() {
    let server = Setup::default().with("AUTH_SENDS_PER_CLIENT_DAY", 3).start();
    for number in 0..3 {
        from(&server, "203.0.113.1", &format!("138001380{number:02}")).expect(200);
        age_sends(&server, 2 * HOUR);
    }
    expect_wait(from(&server, "203.0.113.1", "13800138090"), 18 * HOUR);
    from(&server, "203.0.113.2", "13800138091").expect(200);
    // A forwarded header from the client itself is ignored.
    expect_wait(from(&server, "198.51.100.9, 203.0.113.1", "13800138092"), 18 * HOUR);
}

#[test]
fn limits_sends_overall() {
    let server = Setup::default().with("AUTH_SENDS_PER_DAY", 3).start();
    for number in 0..3 {
        from(&server, &format!("203.0.113.{number}"), &format!("138001380{number:02}")).expect(200);
    }
    expect_wait(from(&server, "203.0.113.9", "13800138090"), DAY);
    age_sends(&server, DAY);
    from(&server, "203.0.113.9", "13800138090").expect(200);
}

#[test]
fn limits_survive_a_crash() {
    let server = Setup::default().in_own_process().start();
    ask(&server, PHONE).send().expect(200);
    let server = server.crash_and_restart(Setup::default());
    expect_wait(ask(&server, PHONE).send(), MINUTE);
    assert_eq!(server.sent_codes(PHONE).len(), 0);
}

#[test]
fn known_and_unknown_numbers_get_the_same_response() {
    let server = Setup::default().start();
    let known = server.sign_in(PHONE).phone_number;
    age_sends(&server, HOUR);
    let unknown = "13800138001";
    let blank = |number: &str, response: &Response| {
        let (status, headers, body) = stable_parts(response);
        (status, headers, body.to_string().replace(number, "NUMBER"))
    };
    let sent = [&known, unknown].map(|number| blank(number, &ask(&server, number).send()));
    assert_eq!(sent[0], sent[1]);
    let refused = [&known, unknown].map(|number| blank(number, &ask(&server, number).send()));
    assert_eq!(refused[0], refused[1]);
    let guessed = [&known, unknown].map(|number| blank(number, &log_in(&server, number, "000000").send()));
    assert_eq!(guessed[0], guessed[1]);
}

#[test]
fn rejects_invalid_numbers_without_using_limits() {
    let server = Setup::default().start();
    for (number, code) in [
        ("010-62345678", "not_mobile"),
        ("+1 202 555 0123", "region_not_allowed"),
        ("1380013800", "invalid_format"),
        ("nobody", "invalid_format"),
    ] {
        ask(&server, number).send().expect_fields(&[("phoneNumber", code)]);
    }
    assert_eq!(server.value::<i64>("select count(*) from code_sends"), 0);
}

#[test]
fn restores_leading_zeros_of_numeric_codes() {
    let setup = Setup::default().with("AUTH_REVIEW_ACCOUNTS", "13800138000=002468");
    let server = setup.with("AUTH_RESEND_AFTER", "0 s").start();
    let log_in = |code: Value| {
        server.post("/auth/send-code").form(&[("phoneNumber", "13800138000")]).send().expect(200);
        server.post("/auth/login").json(&json!({ "phoneNumber": "13800138000", "code": code })).send()
    };
    log_in(json!(2468)).expect(200);
    log_in(json!("2468")).expect_problem(401, "invalid_code");
}

fn by_aliyun(provider: &FakeProvider) -> Setup {
    by_aliyun_at(&provider.url())
}

fn by_aliyun_at(endpoint: &str) -> Setup {
    Setup::default()
        .with("SMS_PROVIDER", "aliyun")
        .with("SMS_ENDPOINT", endpoint)
        .with("SMS_ACCESS_KEY_ID", "id")
        .with("SMS_ACCESS_KEY_SECRET", "secret")
        .with("SMS_SIGN_NAME", "Yarrow")
        .with("SMS_TEMPLATE_CODE", "SMS_1")
}

#[test]
fn provider_failures_leave_no_code_and_use_no_limit() {
    // Nothing listens there, so the provider certainly accepted nothing.
    let server = by_aliyun_at(&FakeProvider::unreachable_url()).start();
    let response = ask(&server, PHONE).send().expect_problem(503, "provider_unavailable");
    assert!(response.header("retry-after").is_some());
    assert!(!response.text().contains("127."), "{}", response.text());
    assert_eq!(server.value::<i64>("select count(*) from code_sends"), 0);
    assert_eq!(server.value::<i64>("select count(*) from codes"), 0);
    assert_eq!(server.value::<i64>("select max(total) + max(events) from code_counts"), 0);
}

#[test]
fn a_released_reservation_gives_back_its_place_between_others() {
    let latch = Latch::default();
    let waiting = latch.clone();
    let provider = FakeProvider::with_handler(move |_| {
        waiting.wait();
        Reply::json(r#"{"Code":"isv.AMOUNT_NOT_ENOUGH"}"#)
    });
    let server = by_aliyun(&provider).with("AUTH_SENDS_PER_CLIENT_HOUR", 3).start();
    let by_email = |name: &str| {
        let body = json!({ "email": format!("{name}@example.com"), "purpose": "sign_in" });
        server.post("/api/v1/auth/send-code").json(&body).send()
    };
    by_email("ada").expect(200);
    std::thread::scope(|scope| {
        let failing = scope.spawn(|| ask(&server, PHONE).send());
        eventually("the text message is being sent", || provider.requests().len() == 1);
        by_email("bai").expect(200);
        expect_wait(by_email("chen"), HOUR);
        latch.open();
        failing.join().unwrap().expect_problem(503, "provider_unavailable");
    });
    by_email("chen").expect(200);
    expect_wait(by_email("ding"), HOUR);
}

#[test]
fn a_window_counts_codes_of_a_clock_that_ran_ahead_once_it_is_as_late() {
    let server = Setup::default().with("AUTH_SENDS_PER_CLIENT_HOUR", 3).start();
    let mut phones = (0..).map(|number| format!("1380014{number:04}"));
    let mut send = || ask(&server, &phones.next().unwrap()).send();
    for _ in 0..2 {
        send().expect(200);
    }
    server.edit("update code_counts set counted_at = counted_at + 1800000");
    for _ in 0..3 {
        send().expect(200);
    }
    expect_wait(send(), HOUR);
    age_sends(&server, 40 * MINUTE);
    // Three of 40 minutes ago and two of 10: it opens when the third has left.
    expect_wait(send(), 20 * MINUTE);
    age_sends(&server, 20 * MINUTE);
    send().expect(200);
    expect_wait(send(), 30 * MINUTE);
}

#[test]
fn a_sweep_of_old_counts_changes_no_window() {
    let server = Setup::default().with("AUTH_SENDS_PER_CLIENT_DAY", 3).start();
    for (number, hours) in [(0, 0), (1, 52), (2, 20), (3, 0), (4, 0)] {
        ask(&server, &format!("1380013800{number}")).send().expect(200);
        age_sends(&server, hours * HOUR);
    }
    expect_wait(ask(&server, PHONE).send(), 4 * HOUR);
    let count = || server.value::<i64>("select count(*) from code_counts");
    let before = count();
    server.command(&["cleanup", "expired", "--yes"]).expect(0);
    assert!(count() < before);
    expect_wait(ask(&server, PHONE).send(), 4 * HOUR);
}

#[test]
fn a_refused_message_uses_the_limits() {
    let provider = FakeProvider::with_handler(|_| Reply::json(r#"{"Code":"isv.MOBILE_NUMBER_ILLEGAL"}"#));
    let server = by_aliyun(&provider).start();
    ask(&server, PHONE).send().expect_problem(503, "provider_unavailable");
    for _ in 0..10 {
        ask(&server, PHONE).send().expect_problem(429, "too_many_requests");
    }
    assert_eq!(provider.requests().len(), 1);
    assert_eq!(server.value::<i64>("select count(*) from code_sends"), 1);
    assert_eq!(server.value::<i64>("select count(*) from codes"), 0);
}

// Signing in.

#[test]
fn first_sign_in_creates_an_account_and_later_ones_find_it() {
    let server = Setup::default().start();
    let code = server.request_code(PHONE);
    let first = log_in(&server, PHONE, &code).send().expect(200).json();
    assert_eq!(first["isNewUser"], true);
    assert_eq!(first["phoneNumber"], PHONE);
    assert_eq!(first["token"].as_str().unwrap().len(), 43);
    let members: Vec<_> = first.as_object().unwrap().keys().map(String::as_str).collect();
    let expected = HashSet::from(["userId", "phoneNumber", "token", "expiresAt", "isNewUser"]);
    assert_eq!(HashSet::from_iter(members), expected);

    age_sends(&server, HOUR);
    let code = server.request_code(PHONE);
    let second = log_in(&server, PHONE, &code).send().expect(200).json();
    assert_eq!(second["isNewUser"], false);
    assert_eq!(second["userId"], first["userId"]);
    assert_ne!(second["token"], first["token"]);
    expect_works(&server, first["token"].as_str().unwrap());
    expect_works(&server, second["token"].as_str().unwrap());
}

#[test]
fn stores_tokens_as_hashes_only() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    for bytes in server.data_files() {
        let token = user.token.as_bytes();
        assert!(!holds(&bytes, token), "the token is in a file");
    }
    let lines = server.lines().join("\n");
    assert!(!lines.contains(&user.token));
}

#[test]
fn rejects_all_bad_codes_alike() {
    let server = Setup::default().start();
    let unknown = stable_parts(&log_in(&server, "13800138009", "123456").send().expect_problem(401, "invalid_code"));

    let code = server.request_code(PHONE);
    let wrong_one = stable_parts(&log_in(&server, PHONE, &wrong(&code)).send());
    assert_eq!(wrong_one, unknown);
    let shorter = stable_parts(&log_in(&server, PHONE, &code[..5]).send());
    assert_eq!(shorter, unknown);

    server.edit("update codes set expires_at = expires_at - 300000");
    let expired = stable_parts(&log_in(&server, PHONE, &code).send());
    assert_eq!(expired, unknown);

    age_sends(&server, HOUR);
    let code = server.request_code(PHONE);
    log_in(&server, PHONE, &code).send().expect(200);
    let used = stable_parts(&log_in(&server, PHONE, &code).send());
    assert_eq!(used, unknown);

    age_sends(&server, HOUR);
    let code = server.request_code(PHONE);
    for _ in 0..5 {
        log_in(&server, PHONE, &wrong(&code)).send().expect_problem(401, "invalid_code");
    }
    let dead = stable_parts(&log_in(&server, PHONE, &code).send());
    assert_eq!(dead, unknown);
}

#[test]
fn the_fifth_attempt_still_counts() {
    let server = Setup::default().start();
    let code = server.request_code(PHONE);
    for _ in 0..4 {
        log_in(&server, PHONE, &wrong(&code)).send().expect_problem(401, "invalid_code");
    }
    log_in(&server, PHONE, &code).send().expect(200);
}

#[test]
fn rejects_the_code_of_another_number() {
    let server = Setup::default().start();
    let (code, other) = (server.request_code(PHONE), server.request_code("13800138001"));
    if code != other {
        log_in(&server, PHONE, &other).send().expect_problem(401, "invalid_code");
    }
    log_in(&server, "13800138002", &code).send().expect_problem(401, "invalid_code");
    log_in(&server, PHONE, &code).send().expect(200);
}

#[test]
fn a_new_code_replaces_the_old_one() {
    let server = Setup::default().start();
    let old = server.request_code(PHONE);
    age_sends(&server, MINUTE);
    let new = server.request_code(PHONE);
    if old != new {
        log_in(&server, PHONE, &old).send().expect_problem(401, "invalid_code");
    }
    log_in(&server, PHONE, &new).send().expect(200);
}

#[test]
fn a_hundred_parallel_guesses_get_five_attempts() {
    let server = Setup::default().start();
    let code = server.request_code(PHONE);
    let guesses = (0..99).map(|_| log_in(&server, PHONE, &wrong(&code))).collect();
    for response in send_concurrently(guesses) {
        response.expect_problem(401, "invalid_code");
    }
    assert_eq!(server.value::<i64>("select tries_left from codes"), 0);
    log_in(&server, PHONE, &code).send().expect_problem(401, "invalid_code");
}

#[test]
fn twenty_parallel_correct_codes_issue_one_token() {
    let server = Setup::default().start();
    let code = server.request_code(PHONE);
    let responses = send_concurrently((0..20).map(|_| log_in(&server, PHONE, &code)).collect());
    assert_eq!(responses.iter().filter(|response| response.status == 200).count(), 1);
    assert_eq!(responses.iter().filter(|response| response.status == 401).count(), 19);
    assert_eq!(server.value::<i64>("select count(*) from tokens"), 1);
    assert_eq!(server.value::<i64>("select count(*) from users"), 1);
}

#[test]
fn attempts_survive_a_crash() {
    let server = Setup::default().in_own_process().start();
    let code = server.request_code(PHONE);
    for _ in 0..3 {
        log_in(&server, PHONE, &wrong(&code)).send().expect_problem(401, "invalid_code");
    }
    let server = server.crash_and_restart(Setup::default());
    for _ in 0..2 {
        log_in(&server, PHONE, &wrong(&code)).send().expect_problem(401, "invalid_code");
    }
    log_in(&server, PHONE, &code).send().expect_problem(401, "invalid_code");
}

#[test]
fn codes_survive_a_crash() {
    let server = Setup::default().in_own_process().start();
    let code = server.request_code(PHONE);
    let server = server.crash_and_restart(Setup::default());
    let token = log_in(&server, PHONE, &code).send().expect(200).json()["token"].as_str().unwrap().to_owned();
    let server = server.crash_and_restart(Setup::default());
    expect_works(&server, &token);
}

#[test]
fn accepts_a_code_as_a_json_number() {
    let server = Setup::default().start();
    // A number has no leading zeros, so a code that starts with one cannot be sent as a number.
    let numbers = (0..40).map(|number| format!("138001380{number:02}"));
    let codes = numbers.map(|phone_number| (server.request_code(&phone_number), phone_number));
    let (code, phone_number) = codes.into_iter().find(|(code, _)| !code.starts_with('0')).unwrap();
    let body = json!({ "phoneNumber": phone_number, "code": code.parse::<u32>().unwrap() });
    server.post("/auth/login").json(&body).send().expect(200);
}

// Review accounts.

fn with_review_account() -> Setup {
    Setup::default().with("AUTH_REVIEW_ACCOUNTS", "13800138000=246810")
}

#[test]
fn review_accounts_get_no_message_and_the_usual_limits() {
    let server = with_review_account().start();
    ask(&server, PHONE).send().expect(200);
    expect_wait(ask(&server, PHONE).send(), MINUTE);
    log_in(&server, PHONE, "246810").send().expect(200);
    // Each request allows one sign-in.
    log_in(&server, PHONE, "246810").send().expect_problem(401, "invalid_code");
    age_sends(&server, MINUTE);
    ask(&server, PHONE).send().expect(200);
    log_in(&server, PHONE, "246810").send().expect(200);
    assert_eq!(server.sent_codes(PHONE).len(), 0);
    // Ten requests a day of five attempts each are all that guessing gets.
    for _ in 2..10 {
        age_sends(&server, HOUR);
        ask(&server, PHONE).send().expect(200);
    }
    age_sends(&server, HOUR);
    expect_wait(ask(&server, PHONE).send(), 15 * HOUR - MINUTE);
}

#[test]
fn review_accounts_meet_the_limits_of_clients_and_days() {
    let server = with_review_account().with("AUTH_SENDS_PER_DAY", 1).start();
    ask(&server, "13800138001").send().expect(200);
    expect_wait(ask(&server, PHONE).send(), DAY);
    let server = with_review_account().with("AUTH_SENDS_PER_CLIENT_HOUR", 1).start();
    from(&server, "203.0.113.1", "13800138001").expect(200);
    expect_wait(from(&server, "203.0.113.1", PHONE), HOUR);
    from(&server, "203.0.113.2", PHONE).expect(200);
}

#[test]
fn review_accounts_get_the_usual_response() {
    let server = with_review_account().start();
    let review = stable_parts(&ask(&server, PHONE).send());
    let (status, headers, body) = stable_parts(&ask(&server, "13800138001").send());
    assert_eq!((status, headers), (review.0, review.1));
    assert_eq!(body["expiresIn"], review.2["expiresIn"]);
}

#[test]
fn review_accounts_take_as_long_as_a_slow_provider() {
    let slow = Duration::from_millis(400);
    let accepted = Reply::json(r#"{"Code":"OK","BizId":"1"}"#).after(slow);
    let provider = FakeProvider::with_handler(move |_| accepted.clone());
    let server = by_aliyun(&provider).with("AUTH_REVIEW_ACCOUNTS", "13800138000=246810").start();
    ask(&server, "13800138001").send().expect(200);
    let started_at = Instant::now();
    ask(&server, PHONE).send().expect(200);
    assert!(started_at.elapsed() >= slow, "{:?}", started_at.elapsed());
    assert_eq!(provider.requests().len(), 1);
}

#[test]
fn review_accounts_fail_like_others_while_the_provider_is_down() {
    let accepted = || Reply::json(r#"{"Code":"OK","BizId":"1"}"#);
    let answer = Arc::new(Mutex::new(accepted()));
    let current = Arc::clone(&answer);
    let provider = FakeProvider::with_handler(move |_| current.lock().unwrap().clone());
    let server = by_aliyun(&provider).with("AUTH_REVIEW_ACCOUNTS", "13800138000=246810").start();
    let mut others = (0..).map(|number| format!("139001390{number:02}"));
    // First another number, whose outcome the review account repeats.
    let mut ask_both = |status: u16| {
        age_sends(&server, MINUTE);
        let other = ask(&server, &others.next().unwrap()).send();
        let called = provider.requests().len();
        let (other, review) = (stable_parts(&other), stable_parts(&ask(&server, PHONE).send()));
        assert_eq!((other.0, &other.1, review.0), (status, &review.1, status));
        for member in ["code", "detail", "expiresIn", "resendAfter"] {
            assert_eq!(other.2[member], review.2[member], "{member}");
        }
        assert_eq!(provider.requests().len(), called, "nothing is sent to a review account");
    };
    ask_both(200);
    *answer.lock().unwrap() = Reply::json(r#"{"Code":"isv.AMOUNT_NOT_ENOUGH","RequestId":"R-1"}"#);
    ask_both(503);
    log_in(&server, PHONE, "246810").send().expect_problem(401, "invalid_code");
    *answer.lock().unwrap() = accepted();
    ask_both(200);
    log_in(&server, PHONE, "246810").send().expect(200);
    *answer.lock().unwrap() = Reply::reset();
    ask_both(504);
    // Until the circuit breaker is open, and after it.
    *answer.lock().unwrap() = Reply::json(r#"{"Code":"isv.AMOUNT_NOT_ENOUGH","RequestId":"R-1"}"#);
    for _ in 0..6 {
        ask_both(503);
    }
    let before = provider.requests().len();
    ask_both(503);
    assert_eq!(provider.requests().len(), before, "the breaker is open");
}

#[test]
fn review_accounts_have_five_attempts_and_requests_do_not_reset_them() {
    let server = with_review_account().start();
    log_in(&server, PHONE, "246810").send().expect_problem(401, "invalid_code");
    ask(&server, PHONE).send().expect(200);
    for _ in 0..5 {
        log_in(&server, PHONE, "000000").send().expect_problem(401, "invalid_code");
        server.edit("delete from code_sends");
        ask(&server, PHONE).send().expect(200);
    }
    log_in(&server, PHONE, "246810").send().expect_problem(401, "invalid_code");
    server.edit("update codes set expires_at = expires_at - 300000");
    server.edit("delete from code_sends");
    ask(&server, PHONE).send().expect(200);
    log_in(&server, PHONE, "246810").send().expect(200);
}

// Validating tokens.

#[test]
fn a_valid_token_stays_valid() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let validity = validate(&server, &user.token);
    let expires_at = validity["expiresAt"].clone();
    assert!(expires_at.as_str().unwrap().ends_with('Z'), "{validity}");
    let expected = json!({ "valid": true, "refreshed": false, "token": user.token, "userId": user.user_id,
        "phoneNumber": PHONE, "expiresAt": expires_at });
    assert_eq!(validity, expected);
    assert_eq!(validate(&server, &user.token), expected);
}

#[test]
fn accounts_without_a_number_return_none() {
    let server = Setup::default().start();
    let user = server.sign_in_by_email("li.ming@example.com");
    let validity = validate(&server, &user.token);
    assert_eq!((&validity["valid"], validity.get("phoneNumber")), (&json!(true), Some(&Value::Null)), "{validity}");
}

#[test]
fn accepts_codes_in_any_width_with_separators() {
    let server = Setup::default().start();
    let full_width =
        |code: &str| code.chars().map(|digit| char::from_u32(digit as u32 + 0xfee0).unwrap()).collect::<String>();
    let spellings: [&dyn Fn(&str) -> String; 4] = [
        &full_width,
        &|code| format!(" {} {} ", &code[..3], &code[3..]),
        &|code| format!("{}-{}", &code[..3], &code[3..]),
        &|code| full_width(&format!("{}　{}", &code[..2], &code[2..]).replace('　', "")) + " ",
    ];
    for (number, spell) in spellings.iter().enumerate() {
        let phone = format!("1380013800{number}");
        let code = server.request_code(&phone);
        log_in(&server, &phone, &spell(&code)).send().expect(200);
    }
    for wrong in ["12a456", "-123456", "123456-", "12.456", "一二三四五六", "- -"] {
        log_in(&server, PHONE, wrong).send().expect_fields(&[("code", "invalid_format")]);
    }
    log_in(&server, PHONE, &"1".repeat(17)).send().expect_fields(&[("code", "too_long")]);
}

#[test]
fn invalid_tokens_reveal_nothing() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let expired = server.sign_in("13800138001");
    server.edit(&format!("update tokens set expires_at = 1 where user_id = {}", expired.user_id));
    let signed_out = server.sign_in("13800138002");
    log_out(&server, &signed_out.token);
    for token in ["x", &user.token[1..], &user.token.to_uppercase(), &expired.token, &signed_out.token] {
        assert_eq!(validate(&server, token), json!({ "valid": false }), "{token}");
        refresh(&server, token).send().expect_problem(401, "unauthenticated");
        expect_dead(&server, token);
    }
}

#[test]
fn validation_extends_a_token_near_expiry_in_place() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    server.edit("update tokens set expires_at = unixepoch() * 1000 + 8 * 86400000");
    assert_eq!(validate(&server, &user.token)["refreshed"], false);
    server.edit("update tokens set expires_at = unixepoch() * 1000 + 6 * 86400000");
    let validity = validate(&server, &user.token);
    assert_eq!((&validity["valid"], &validity["refreshed"]), (&json!(true), &json!(true)));
    assert_eq!(validity["token"], user.token);
    let again = validate(&server, &user.token);
    assert_eq!((&again["refreshed"], &again["expiresAt"]), (&json!(false), &validity["expiresAt"]));
    expect_works(&server, &user.token);
    assert_eq!(server.value::<i64>("select count(*) from tokens"), 1);
    let left: i64 = server.value("select (expires_at - unixepoch() * 1000) / 60000 from tokens");
    assert!((30 * 1440 - 1..=30 * 1440).contains(&left), "{left} minutes");
}

#[test]
fn twenty_parallel_validations_near_expiry_keep_the_token() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    server.edit("update tokens set expires_at = unixepoch() * 1000 + 86400000");
    let request = || server.post("/auth/validate-token").token(&user.token);
    let tokens: HashSet<_> = send_concurrently((0..20).map(|_| request()).collect())
        .iter()
        .map(|response| response.json()["token"].to_string())
        .collect();
    assert_eq!(tokens, HashSet::from([json!(user.token).to_string()]));
    assert_eq!(server.value::<i64>("select count(*) from tokens"), 1);
}

#[test]
fn validation_within_the_grace_period_issues_no_token() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let successor = refreshed(&server, &user.token);
    let validity = validate(&server, &user.token);
    assert_eq!(
        (&validity["valid"], &validity["refreshed"], &validity["token"]),
        (&json!(true), &json!(false), &json!(user.token))
    );
    expect_works(&server, &successor);
}

#[test]
fn a_session_ends_after_its_absolute_lifetime() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let days = |column: &str| server.value::<i64>(&format!("select ({column} - signed_in_at) / 86400000 from tokens"));
    assert_eq!((days("expires_at"), days("family_expires_at")), (30, 180));
    server.edit(
        "update tokens set family_expires_at = unixepoch() * 1000 + 86400000, \
         expires_at = unixepoch() * 1000 + 86400000",
    );
    // Nothing extends it.
    assert_eq!(validate(&server, &user.token)["refreshed"], false);
    let successor = refreshed(&server, &user.token);
    let end: i64 =
        server.value("select max(expires_at) - max(family_expires_at) from tokens where replaced_at is null");
    assert_eq!(end, 0);
    server.edit("update tokens set expires_at = 1, family_expires_at = 1");
    expect_dead(&server, &successor);
    refresh(&server, &successor).send().expect_problem(401, "unauthenticated");
}

// Replacing tokens.

#[test]
fn refresh_issues_a_successor_and_keeps_the_old_token_for_a_grace_period() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let response = refresh(&server, &user.token).send().expect(200).json();
    let members: Vec<_> = response.as_object().unwrap().keys().collect();
    assert_eq!(members, ["expiresAt", "token"], "{response}");
    let successor = response["token"].as_str().unwrap();
    assert_ne!(successor, user.token);
    // After a lost response, the client can repeat the request within the grace period.
    assert_eq!(refreshed(&server, &user.token), successor);
    assert_eq!(refreshed(&server, &user.token), successor);
    expect_works(&server, &user.token);
    expect_works(&server, successor);
    assert_eq!(server.value::<i64>("select count(*) from tokens"), 2);
}

#[test]
fn successors_can_be_refreshed() {
    let server = Setup::default().start();
    let mut token = server.sign_in(PHONE).token;
    for _ in 0..5 {
        token = refreshed(&server, &token);
    }
    expect_works(&server, &token);
    assert_eq!(server.value::<i64>("select count(distinct family) from tokens"), 1);
    assert_eq!(server.value::<i64>("select count(*) from tokens where replaced_at is null"), 1);
}

#[test]
fn repeated_refreshes_keep_the_table_small() {
    let server = Setup::default().start();
    let mut token = server.sign_in(PHONE).token;
    for _ in 0..40 {
        token = refreshed(&server, &token);
    }
    assert_eq!(server.value::<i64>("select count(*) from tokens"), 21);
    expect_works(&server, &token);
}

#[test]
fn twenty_parallel_refreshes_issue_one_successor() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let responses = send_concurrently((0..20).map(|_| refresh(&server, &user.token)).collect());
    let tokens: HashSet<_> =
        responses.into_iter().map(|response| response.expect(200).json()["token"].to_string()).collect();
    assert_eq!(tokens.len(), 1);
    assert_eq!(server.value::<i64>("select count(*) from tokens where replaced_at is null"), 1);
}

fn after_grace(server: &Server) {
    server.edit("update tokens set replaced_at = replaced_at - 30001");
}

#[test]
fn reusing_a_replaced_token_after_the_grace_period_revokes_the_device() {
    let server = Setup::default().start();
    let other_device = server.sign_in("13800138001");
    type Location = (&'static str, fn(&Server, &str));
    let locations: [Location; 3] = [
        ("as the Bearer token", |server, token| expect_dead(server, token)),
        ("to be refreshed", |server, token| {
            refresh(server, token).send().expect_problem(401, "unauthenticated");
        }),
        ("to be validated", |server, token| assert_eq!(validate(server, token), json!({ "valid": false }))),
    ];
    for (way, show) in locations {
        let stolen = server.sign_in_again(PHONE).token;
        let successor = refreshed(&server, &stolen);
        after_grace(&server);
        expect_works(&server, &successor);
        show(&server, &stolen);
        let response = server.get("/user/profile").token(&successor).send();
        assert_eq!(response.status, 401, "the successor is valid although its predecessor was reused {way}");
    }
    expect_works(&server, &other_device.token);
}

#[test]
fn a_clock_set_back_does_not_look_like_token_theft() {
    let server = Setup::default().start();
    let replaced = server.sign_in(PHONE).token;
    let successor = refreshed(&server, &replaced);
    server.edit("update tokens set replaced_at = replaced_at + 3600000");
    expect_dead(&server, &replaced);
    refresh(&server, &replaced).send().expect_problem(401, "unauthenticated");
    assert_eq!(validate(&server, &replaced), json!({ "valid": false }));
    expect_works(&server, &successor);
}

#[test]
fn the_grace_period_is_configurable() {
    let server = Setup::default().with("AUTH_TOKEN_GRACE", "0 s").start();
    let user = server.sign_in(PHONE);
    refreshed(&server, &user.token);
    refresh(&server, &user.token).send().expect_problem(401, "unauthenticated");
}

#[test]
fn revoking_one_device_keeps_the_others() {
    let server = Setup::default().start();
    let (one, other) = (server.sign_in(PHONE), server.sign_in_again(PHONE));
    refreshed(&server, &one.token);
    after_grace(&server);
    expect_dead(&server, &one.token);
    expect_works(&server, &other.token);
}

// Signing out.

#[test]
fn sign_out_revokes_all_tokens_of_the_device_at_once() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let successor = refreshed(&server, &user.token);
    assert_eq!(log_out(&server, &successor).json(), json!({ "loggedOut": true }));
    expect_dead(&server, &successor);
    expect_dead(&server, &user.token);
    refresh(&server, &user.token).send().expect_problem(401, "unauthenticated");
}

#[test]
fn sign_out_is_idempotent_and_accepts_unknown_tokens() {
    let server = Setup::default().start();
    let (user, other) = (server.sign_in(PHONE), server.sign_in_again(PHONE));
    for token in [&user.token, &user.token, "unknown"] {
        assert_eq!(log_out(&server, token).json(), json!({ "loggedOut": true }));
    }
    expect_works(&server, &other.token);
}

#[test]
fn sign_out_survives_a_crash() {
    let server = Setup::default().in_own_process().start();
    let user = server.sign_in(PHONE);
    log_out(&server, &user.token);
    let server = server.crash_and_restart(Setup::default());
    expect_dead(&server, &user.token);
}

#[test]
fn the_eleventh_device_signs_out_the_oldest() {
    let server = Setup::default().start();
    let devices: Vec<Caller> = (0..10).map(|_| server.sign_in_again(PHONE)).collect();
    for device in &devices {
        expect_works(&server, &device.token);
    }
    let eleventh = server.sign_in_again(PHONE);
    expect_dead(&server, &devices[0].token);
    for device in devices[1..].iter().chain([&eleventh]) {
        expect_works(&server, &device.token);
    }
}

#[test]
fn sign_in_after_a_clock_change_is_not_the_oldest_device() {
    let server = Setup::default().start();
    let devices: Vec<Caller> = (0..10).map(|_| server.sign_in_again(PHONE)).collect();
    for column in ["created_at", "signed_in_at", "last_used_at", "expires_at", "family_expires_at"] {
        server.edit(&format!("update tokens set {column} = {column} + 86400000"));
    }
    let eleventh = server.sign_in_again(PHONE);
    expect_dead(&server, &devices[0].token);
    for device in devices[1..].iter().chain([&eleventh]) {
        expect_works(&server, &device.token);
    }
}

#[test]
fn replaced_tokens_are_not_listed_as_devices() {
    let server = Setup::default().with("AUTH_TOKENS_PER_USER", 2).start();
    let first = server.sign_in(PHONE);
    let mut token = server.sign_in_again(PHONE).token;
    for _ in 0..5 {
        token = refreshed(&server, &token);
    }
    expect_works(&server, &first.token);
    expect_works(&server, &token);
}

// Token location.

#[test]
fn accepts_a_token_as_parameter_or_bearer() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let path = "/auth/validate-token";
    let requests = [
        server.post(path).by(&user),
        server.post(path).by(&user).query(&[("token", &user.token)]),
        server.post(path).by(&user).query(&[("token", "x")]),
        server.post(path).form(&[("token", &user.token)]),
        server.post(path).form(&[("token", &format!("Bearer {}", user.token))]),
        server.post(path).by(&user).json(&json!({ "token": "undefined" })),
        server.post(path).by(&user).json(&json!({ "token": "null" })),
        server.post(path).by(&user).json(&json!({ "token": " " })),
        server.post(path).json(&json!({ "token": user.token })),
        server.post(path).by(&user).json(&json!({ "token": user.token })),
        server.post(path).header("authorization", &format!("bearer {}", user.token)),
    ];
    for request in requests {
        assert_eq!(request.clone().send().expect(200).json()["valid"], true, "{request:?}");
    }
    for path in ["/api/v1/auth/refresh", "/api/v1/auth/logout"] {
        let in_query = server.post(path).query(&[("token", &user.token)]).send();
        in_query.expect_fields(&[("token", "not_allowed")]);
    }
    expect_works(&server, &user.token);
    // Servers of the first generation read the token in the query string.
    let in_query = |path: &str, token: &str| server.post(path).query(&[("token", token)]).send();
    assert_eq!(in_query(path, &user.token).expect(200).json()["valid"], true);
    let renewed = in_query("/auth/refresh-token", &user.token).expect(200).json();
    let renewed = renewed["token"].as_str().unwrap();
    in_query("/auth/logout", renewed).expect(200);
    expect_dead(&server, renewed);
    for secret in [&user.token[..], renewed] {
        assert!(server.lines().iter().all(|line| !line.contains(secret)) && !server.has_stored(secret));
    }
}

#[test]
fn a_text_that_cannot_be_a_token_is_an_invalid_one() {
    let server = Setup::default().start();
    let post = || server.post("/auth/validate-token");
    let texts = ["null", "undefined", "", " ", "x", "a b", "你好", "{}", "\0", &"x".repeat(3000)];
    let requests = texts.iter().flat_map(|text| {
        let pair = [("token", *text)];
        [post().query(&pair), post().form(&pair), post().json(&json!({ "token": text }))]
    });
    let values = [json!(null), json!(7), json!(true), json!([]), json!({ "a": 1 })];
    let requests = requests.chain(values.iter().map(|value| post().json(&json!({ "token": value }))));
    for request in requests.chain([post().token("null"), post().header("token", "x y")]) {
        assert_eq!(request.clone().send().expect(200).json(), json!({ "valid": false }), "{request:?}");
    }
}

#[test]
fn rejects_two_different_tokens_without_changes() {
    let server = Setup::default().start();
    let (one, other) = (server.sign_in(PHONE), server.sign_in("13800138001"));
    for path in ["/auth/validate-token", "/auth/refresh-token", "/auth/logout"] {
        let request = server.post(path).by(&one).json(&json!({ "token": other.token }));
        request.send().expect_problem(400, "conflicting_parameter");
    }
    for path in ["/auth/validate-token", "/auth/refresh-token", "/auth/logout"] {
        for stale in ["null", &"x".repeat(43), &format!("{}x", one.token)] {
            let third = server.sign_in_again("13800138002");
            server.post(path).token(stale).json(&json!({ "token": third.token })).send().expect(200);
        }
    }
    expect_works(&server, &one.token);
    expect_works(&server, &other.token);
}

#[test]
fn rejects_requests_without_a_token() {
    let server = Setup::default().start();
    for path in ["/auth/validate-token", "/auth/refresh-token", "/auth/logout"] {
        server.post(path).send().expect_fields(&[("token", "required")]);
    }
}
