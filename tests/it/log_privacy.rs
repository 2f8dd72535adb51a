//! Secrets and personal data never leak. Marked values go through every endpoint and are then searched in logs,
//! metrics, problems, the network log and backup names.

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::{
    invalid_input::{Location, locations, texts},
    support::{
        Document, Operation, Parameter, ParameterLocation, Request, Response, Server, Setup, eventually,
        eventually_some,
        fake_provider::{FakeProvider, ReceivedRequest, Reply},
        fake_smtp::{FakeSmtpServer, Offer, SmtpFault, Step},
    },
};

const PHONE: &str = "13912345678";
const EMAIL: &str = "heron.reed@example.com";
const QUESTION: &str = "朱雀何时归巢";
const ANSWER: &str = "玄武藏于深渊";
const BAD_TOKEN: &str = "canaryTokenQ7xW2mLp9RtYvBn4KsJd8HgFzE3cUaX6oI1";
const BAD_KEY: &str = "canaryKeyZ3xW2mLp9RtYvBn4KsJd8HgFzE7cUaX5oI";

struct Fixture {
    server: Server,
    user: crate::support::Caller,
    key: String,
    code: String,
    document: Document,
    metrics: String,
}

impl Fixture {
    fn at(level: &str) -> Self {
        let setup = Setup::default().with("LOG_LEVEL", level).with_metrics();
        let mut server = setup.with("AUTH_SENDS_PER_ADDRESS_HOUR", 100_000).start();
        let metrics = server.metrics();
        let user = server.sign_in(PHONE);
        let code = server.sent_codes(PHONE).pop().unwrap();
        let key = server.api_key("silence");
        let document = Document::of(&server);
        Self { server, user, key, code, document, metrics }
    }

    /// Returns a marked value for this parameter: the user's own if it identifies a user.
    fn marked(&self, parameter: &Parameter) -> Value {
        match parameter.name.as_str() {
            "code" => json!(self.code),
            "email" => json!(EMAIL),
            "token" => json!(BAD_TOKEN),
            "password" | "totp" | "confirm" | "idempotencyKey" => json!(BAD_KEY),
            "aiResult" => json!(ANSWER),
            "messages" => json!([{ "role": "user", "content": QUESTION }]),
            _ if parameter.is_user_id() || parameter.is_phone_number() => parameter.value_of(&self.user),
            _ if parameter.schema["type"] == "string" && parameter.schema.get("enum").is_none() => json!(QUESTION),
            _ => parameter.value_of(&self.user),
        }
    }

    /// Returns a request to the endpoint with marked values in this location.
    fn request(&self, operation: &Operation, way: Location) -> Request {
        let parameters = operation.parameters.iter().filter(|parameter| parameter.location != ParameterLocation::Path);
        let values: Map<_, _> = parameters.map(|parameter| (parameter.name.clone(), self.marked(parameter))).collect();
        let request = self.server.request(&operation.method, &operation.path_of(&self.user));
        let pairs = texts(&values);
        let pairs: Vec<_> = pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        match way {
            Location::Json => request.json(&Value::Object(values)),
            Location::Form => request.form(&pairs),
            Location::Query => request.query(&pairs),
        }
    }

    /// Returns the values to search for.
    fn canaries(&self) -> Vec<String> {
        let fixed = [PHONE, EMAIL, QUESTION, ANSWER, BAD_TOKEN, BAD_KEY].map(ToOwned::to_owned);
        let mut canaries = fixed.to_vec();
        canaries.extend([self.user.token.clone(), self.key.clone(), self.code.clone()]);
        // As in a path or query, and as a log may escape it.
        canaries.push(percent_encoding::utf8_percent_encode(QUESTION, percent_encoding::NON_ALPHANUMERIC).to_string());
        canaries.push(QUESTION.escape_unicode().to_string());
        canaries.push(serde_json::to_string(EMAIL).unwrap().trim_matches('"').replace('@', "%40"));
        canaries
    }

    #[track_caller]
    fn assert_silent(&self, place: &str, text: &str) {
        for canary in self.canaries() {
            // Six digits occur in other numbers, so a code must be a whole word.
            let is_there = if canary == self.code {
                text.split(|character: char| !character.is_ascii_alphanumeric()).any(|word| word == canary)
            } else {
                text.contains(&canary)
            };
            assert!(!is_there, "{canary:?} is in {place}: {text}");
        }
    }

    fn assert_silent_problem(&self, operation: &Operation, response: &Response) {
        if response.status >= 400 {
            self.assert_silent(&format!("a problem of {}", operation.name()), &response.text());
        }
    }
}

fn walk(level: &str) {
    let fixture = Fixture::at(level);
    let (mut calls, server) = (0, &fixture.server);
    for operation in fixture.document.operations.iter().filter(|operation| !operation.ends_session()) {
        for way in locations(operation) {
            let request = fixture.request(operation, way);
            let credential = operation.key.as_deref().unwrap_or(&fixture.user.token);
            for request in [request.clone().token(credential), request.clone(), request.clone().token(BAD_TOKEN)] {
                let response = request.send();
                // Stores that are not configured must send their notifications again.
                let is_unready = response.status == 503 && operation.path.starts_with("/payment/notify/");
                assert!(response.status < 500 || is_unready, "{}: {}", operation.name(), response.text());
                fixture.assert_silent_problem(operation, &response);
                calls += 1;
            }
        }
        if operation.takes_body() {
            let cut_off = format!("{{\"question\":\"{QUESTION}\",\"phoneNumber\":\"{PHONE}\",\"token\":\"{BAD_TOKEN}");
            let response = operation.bare(server, &fixture.user).raw_json(&cut_off).send();
            fixture.assert_silent_problem(operation, &response);
            let bare = format!("\"{QUESTION} {PHONE} {BAD_TOKEN}\"");
            let response = operation.bare(server, &fixture.user).raw_json(&bare).send();
            fixture.assert_silent_problem(operation, &response);
        }
    }
    // With a blocked database, errors are internal, and one request panics.
    let blocker = server.database();
    blocker.execute_batch("begin immediate").unwrap();
    let record = json!({ "localRecordId": "r-1", "question": QUESTION, "aiResult": ANSWER });
    server.post("/divination-history/save").by(&fixture.user).json(&record).send().expect(503);
    blocker.execute_batch("rollback").unwrap();
    server.command(&["backup", "create"]).expect(0);
    for leave in ["/auth/logout", "/api/v1/auth/logout"] {
        server.post(leave).json(&json!({ "token": BAD_TOKEN })).by(&fixture.user).send();
    }
    assert!(calls > 500, "only {calls} calls");
    look_everywhere(&fixture);
}

fn look_everywhere(fixture: &Fixture) {
    let metrics = Request::new("GET", &fixture.metrics).send().expect(200).text();
    fixture.assert_silent("the metrics", &metrics);
    // Only the console driver prints numbers and codes, in place of a provider.
    let is_message = |line: &String| line.contains("SMS to ") || line.contains("Email to ");
    let lines: Vec<_> = fixture.server.lines().into_iter().filter(|line| !is_message(line)).collect();
    assert!(lines.len() > 3);
    for line in &lines {
        fixture.assert_silent("the log", line);
    }
    let database = fixture.server.network_log();
    let columns: String = database
        .query_row("select group_concat(name) from pragma_table_info('access_log')", (), |row| row.get(0))
        .unwrap();
    let texts = format!("select group_concat(concat_ws('|', {columns}), char(10)) from access_log");
    fixture
        .assert_silent("the network log", &database.query_row::<String, _, _>(&texts, [], |row| row.get(0)).unwrap());
    let events = "select group_concat(concat_ws('|', target, message, fields), char(10)) from server_log";
    fixture.assert_silent("the stored log", &database.query_row::<String, _, _>(events, [], |row| row.get(0)).unwrap());
    let backups = std::fs::read_dir(fixture.server.directory().join("backups")).unwrap();
    let names: Vec<_> = backups.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(!names.is_empty());
    fixture.assert_silent("the names of backups", &names.join("\n"));
}

/// Trace includes all other levels.
#[test]
fn nothing_private_is_logged_at_level_trace() {
    walk("trace");
}

#[test]
fn an_unknown_method_is_repeated_nowhere() {
    let setup = Setup::default().with("LOG_LEVEL", "trace").with_metrics();
    let mut server = setup.start();
    let metrics = server.metrics();
    let method = format!("HERON{PHONE}");
    let request = format!("{method} /user/profile HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    let response = server.send_raw(request.as_bytes());
    assert!((400..500).contains(&response.status), "{}", response.text());
    assert!(!response.text().contains(&method), "{}", response.text());
    let logged = "select count(*) > 0 from access_log where method = 'OTHER'";
    eventually("the request is in the network log as one with another method", || server.value(logged));
    let reported = Request::new("GET", &metrics).send().expect(200).text();
    assert!(!reported.contains(&method), "{reported}");
    assert!(server.lines().iter().all(|line| !line.contains(&method)));
}

/// Returns the two-sample Kolmogorov–Smirnov statistic: the largest distance between two distributions.
fn distance(one: &mut [Duration], other: &mut [Duration]) -> f64 {
    one.sort_unstable();
    other.sort_unstable();
    let share = |sorted: &[Duration], at: Duration| {
        f64::from(u32::try_from(sorted.partition_point(|time| *time <= at)).unwrap())
            / f64::from(u32::try_from(sorted.len()).unwrap())
    };
    let points = one.iter().chain(other.iter()).copied().collect::<Vec<_>>();
    points.into_iter().map(|at| (share(one, at) - share(other, at)).abs()).fold(0.0, f64::max)
}

/// Times two kinds of calls in turn and panics if they differ. Noise passes the threshold once in a thousand runs, so
/// three in a row are needed.
fn assert_alike(what: &str, count: u32, mut call: impl FnMut(bool, u32, u32) -> Duration) {
    let mut found = Vec::new();
    for attempt in 0..3 {
        let (mut one, mut other) = (Vec::new(), Vec::new());
        for number in 0..count {
            // The order alternates, because the second of two finds warmer caches.
            let first = number % 2 == 0;
            for is_known in [first, !first] {
                let times = if is_known { &mut one } else { &mut other };
                times.push(call(is_known, attempt, number));
            }
        }
        let distance = distance(&mut one, &mut other);
        // For p = 0.001.
        let critical = 1.95 * (2.0 / f64::from(count)).sqrt();
        let (one, other) = (one[one.len() / 2], other[other.len() / 2]);
        println!("{what}: {one:?} and {other:?} in the middle, {distance:.3} apart of {critical:.3} allowed");
        if distance < critical {
            return;
        }
        found.push((distance, one, other));
    }
    panic!("{what}: known and unknown differ in response time: {found:?}");
}

fn timed(request: Request, status: u16) -> Duration {
    let started_at = Instant::now();
    request.send().expect(status);
    started_at.elapsed()
}

const TIMED: u32 = 120;
/// Enough to detect a difference of a few percent.
const TIMED_LONG: u32 = 1_500;

/// Returns a registered or unregistered number by attempt and turn.
fn number(is_known: bool, attempt: u32, turn: u32) -> String {
    format!("13{}0{attempt}{turn:06}", if is_known { 8 } else { 9 })
}

fn address(is_known: bool, attempt: u32, turn: u32) -> String {
    format!("reed.{attempt}{turn:06}@{}.example.com", if is_known { "known" } else { "never" })
}

/// Starts a server that knows half of the numbers and addresses, without client limits.
fn server_knowing_half(count: u32) -> Server {
    let server = Setup::default().with("AUTH_SENDS_PER_DAY", 10_000_000).start();
    let known = server.database();
    known.execute_batch("begin immediate").unwrap();
    for (attempt, turn) in (0..3).flat_map(|attempt| (0..count).map(move |turn| (attempt, turn))) {
        let insert = "insert into users (phone_number, email, created_at) values (?1, ?2, 1)";
        known.execute(insert, [number(true, attempt, turn), address(true, attempt, turn)]).unwrap();
    }
    known.execute_batch("commit").unwrap();
    server
}

fn compare_numbers(count: u32) {
    let server = server_knowing_half(count);
    let ask = |number: &str| server.post("/auth/send-code").form(&[("phoneNumber", number)]);
    assert_alike("a code to a number", count, |known, attempt, turn| timed(ask(&number(known, attempt, turn)), 200));
    let guess = |number: &str| server.post("/auth/login").form(&[("phoneNumber", number), ("code", "000000")]);
    assert_alike("a guess", count, |known, attempt, turn| timed(guess(&number(known, attempt, turn)), 401));
    assert_alike("a guess at a live code", count, |is_live, attempt, turn| {
        let number = number(true, attempt, turn);
        timed(guess(&if is_live { number } else { number.replacen("138", "137", 1) }), 401)
    });
}

fn compare_addresses(count: u32) {
    let server = server_knowing_half(count);
    let post = |path: &str, body: Value| server.post(path).json(&body);
    assert_alike("a code to an address", count, |known, attempt, turn| {
        let body = json!({ "email": address(known, attempt, turn) });
        timed(post("/api/v1/auth/send-code", body), 200)
    });
    assert_alike("a guess by email", count, |known, attempt, turn| {
        let body = json!({ "email": address(known, attempt, turn), "code": "00000000" });
        timed(post("/api/v1/auth/login", body), 401)
    });
    // Signed-in users can name other users.
    let user = server.sign_in("13700137000");
    assert_alike("another's number", count, |known, attempt, turn| {
        let named = number(known, attempt, turn);
        timed(server.get("/coin/balance/phone").by(&user).query(&[("phoneNumber", &named)]), 403)
    });
    let highest: i64 = server.value("select max(id) from users");
    assert_alike("another's id", count, |known, _, turn| {
        let named = (i64::from(turn) + if known { 1 } else { highest + 1 }).to_string();
        timed(server.get("/coin/balance").by(&user).query(&[("userId", &named)]), 403)
    });
}

#[test]
fn known_and_unknown_numbers_take_the_same_time() {
    compare_numbers(TIMED);
}

#[test]
fn known_and_unknown_email_addresses_take_the_same_time() {
    compare_addresses(TIMED);
}

#[test]
#[ignore = "takes minutes; run with `cargo test --test it -- --ignored long_`"]
fn long_known_and_unknown_take_the_same_time() {
    compare_numbers(TIMED_LONG);
    compare_addresses(TIMED_LONG);
}

#[test]
fn known_and_unknown_administrators_take_the_same_time() {
    let server = Setup::default().with("ADMIN_ATTEMPTS", 1_000_000).start();
    // With a hash as costly as any.
    let create = ["admin", "create", "root", "--password-stdin"];
    crate::support::CommandOutput::run(server.directory(), &create, "a long enough password\n").expect(0);
    // Each takes as long as a password hash, so a few must do.
    assert_alike("an administrator's name", 24, |known, _, turn| {
        let name = if known { "root".to_owned() } else { format!("root{turn}") };
        let guess = json!({ "name": name, "password": "not the right password" });
        timed(server.post("/admin/login").json(&guess), 401)
    });
}

#[test]
fn failing_providers_reveal_no_recipient() {
    // The provider repeats the number and the code in its message.
    let echo = |request: &ReceivedRequest| {
        let words = format!("{:?} {:?}", request.parameter("PhoneNumbers"), request.parameter("TemplateParam"));
        json!({ "Code": "isv.MOBILE_NUMBER_ILLEGAL", "Message": words, "RequestId": "R-1" }).to_string()
    };
    let refusing = FakeProvider::with_handler(move |request| Reply::json(echo(request)));
    let broken = FakeProvider::with_handler(|request| Reply::status(500).body(request.target.clone()));
    for sms in [refusing.url(), broken.url(), FakeProvider::unreachable_url()] {
        for step in [Step::Sender, Step::Recipient, Step::Message] {
            let trouble = Some((step, SmtpFault::Refuse(550)));
            let mail_server = FakeSmtpServer::offering(Offer { trouble, ..Offer::default() });
            let server = Setup::default()
                .with("LOG_LEVEL", "debug")
                .with("SMS_PROVIDER", "aliyun")
                .with("SMS_ENDPOINT", &sms)
                .with("SMS_ACCESS_KEY_ID", "id")
                .with("SMS_ACCESS_KEY_SECRET", BAD_KEY)
                .with("SMS_SIGN_NAME", "名")
                .with("SMS_TEMPLATE_CODE", "SMS_1")
                .with("EMAIL_PROVIDER", "smtp")
                .with("EMAIL_HOST", "localhost")
                .with("EMAIL_PORT", mail_server.port())
                .with("EMAIL_TLS", "none")
                .with("EMAIL_FROM", "no-reply@yarrow.example")
                .start();
            let by_sms = server.post("/auth/send-code").form(&[("phoneNumber", PHONE)]).send();
            let by_mail = server.post("/api/v1/auth/send-code").json(&json!({ "email": EMAIL })).send();
            let log = eventually_some("the log of both failures", || {
                let log = server.lines().join("\n");
                (log.matches("sending a verification code failed").count() == 2).then_some(log)
            });
            for (place, text) in [("the log", &log), ("a problem", &by_sms.text()), ("a problem", &by_mail.text())] {
                for canary in [PHONE, EMAIL, "heron.reed", BAD_KEY] {
                    assert!(!text.contains(canary), "{canary} is in {place}: {text}");
                }
            }
        }
    }
}

/// Returns the response without its per-request parts.
fn stable_parts(response: &Response, named: &str) -> (u16, Vec<(String, String)>, String) {
    // Only their presence is compared: the values depend on time and input length.
    let differs = ["date", "x-request-id", "content-length", "retry-after"];
    let headers = response.headers.iter().map(|(name, value)| {
        let value = if differs.contains(&name.as_str()) { "" } else { value.to_str().unwrap() };
        // Every request takes from the budget of the client.
        let value = if name == "ratelimit" { value.split(';').next().unwrap() } else { value };
        (name.to_string(), value.to_owned())
    });
    let mut headers: Vec<_> = headers.collect();
    headers.sort();
    let mut body = response.json();
    if let Some(body) = body.as_object_mut() {
        body.remove("requestId");
    }
    let body = body.to_string().replace(named, "NAMED");
    // Seconds until the next attempt may pass between two requests.
    let body = body.split(|character: char| character.is_ascii_digit()).collect();
    (response.status, headers, body)
}

#[test]
fn known_and_unknown_addresses_get_the_same_status_headers_and_body() {
    let server = Setup::default().with("ADMIN_ATTEMPTS", 5).start();
    let (known_number, unknown_number) = (server.sign_in(PHONE).phone_number, "13912345679".to_owned());
    server.sign_in_by_email(EMAIL);
    server.admin("root", "a long enough password");
    server.edit("delete from code_sends");
    let (known_email, unknown_email) = (EMAIL.to_owned(), "reed.heron@example.com".to_owned());
    let alike = |named: [&str; 2], request: &dyn Fn(&str) -> Request| {
        let [known, unknown] = named.map(|named| stable_parts(&request(named).send(), named));
        assert_eq!(known, unknown);
    };
    let numbers = [known_number.as_str(), unknown_number.as_str()];
    let emails = [known_email.as_str(), unknown_email.as_str()];
    // Twice: the second exceeds the limit.
    for _ in 0..2 {
        alike(numbers, &|number| server.post("/auth/send-code").form(&[("phoneNumber", number)]));
        alike(emails, &|email| server.post("/api/v1/auth/send-code").json(&json!({ "email": email })));
    }
    // Until the attempts are used up, and after that.
    for _ in 0..7 {
        alike(numbers, &|number| server.post("/auth/login").form(&[("phoneNumber", number), ("code", "000000")]));
        alike(emails, &|email| server.post("/api/v1/auth/login").json(&json!({ "email": email, "code": "00000000" })));
    }
    for _ in 0..2 {
        alike(["root", "toor"], &|name| {
            server.post("/admin/login").json(&json!({ "name": name, "password": "not the right password" }))
        });
    }
}
