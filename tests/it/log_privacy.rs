//! Nothing that is secret or private comes out where nobody asked for it: marked values go through every endpoint,
//! right and wrong, and are then looked for in logs, metrics, problems, the network log and the names of backups.

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::{
    invalid_input::{Way, texts, ways},
    support::{Answer, Document, Operation, Parameter, Place, Request, Server, Setup, eventually},
};

const PHONE: &str = "13912345678";
const EMAIL: &str = "heron.reed@example.com";
const QUESTION: &str = "朱雀何时归巢";
const ANSWER: &str = "玄武藏于深渊";
const BAD_TOKEN: &str = "canaryTokenQ7xW2mLp9RtYvBn4KsJd8HgFzE3cUaX6oI1";
const BAD_KEY: &str = "canaryKeyZ3xW2mLp9RtYvBn4KsJd8HgFzE7cUaX5oI";

struct World {
    server: Server,
    user: crate::support::Caller,
    key: String,
    code: String,
    document: Document,
    metrics: String,
}

impl World {
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

    /// A marked value for this parameter: the user's own where a user is meant.
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

    /// Every endpoint with marked values everywhere, in this place.
    fn request(&self, operation: &Operation, way: Way) -> Request {
        let parameters = operation.parameters.iter().filter(|parameter| parameter.place != Place::Path);
        let values: Map<_, _> = parameters.map(|parameter| (parameter.name.clone(), self.marked(parameter))).collect();
        let request = self.server.request(&operation.method, &operation.path_of(&self.user));
        let pairs = texts(&values);
        let pairs: Vec<_> = pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        match way {
            Way::Json => request.json(&Value::Object(values)),
            Way::Form => request.form(&pairs),
            Way::Query => request.query(&pairs),
        }
    }

    /// What may be nowhere.
    fn canaries(&self) -> Vec<String> {
        let fixed = [PHONE, EMAIL, QUESTION, ANSWER, BAD_TOKEN, BAD_KEY].map(ToOwned::to_owned);
        let mut canaries = fixed.to_vec();
        canaries.extend([self.user.token.clone(), self.key.clone(), self.code.clone()]);
        // As a path or a query would have it, and as a log may escape it.
        canaries.push(percent_encoding::utf8_percent_encode(QUESTION, percent_encoding::NON_ALPHANUMERIC).to_string());
        canaries.push(QUESTION.escape_unicode().to_string());
        canaries.push(serde_json::to_string(EMAIL).unwrap().trim_matches('"').replace('@', "%40"));
        canaries
    }

    #[track_caller]
    fn assert_silent(&self, place: &str, text: &str) {
        for canary in self.canaries() {
            // Six digits can be part of any number; a code is looked for as a word.
            let is_there = if canary == self.code {
                text.split(|character: char| !character.is_ascii_alphanumeric()).any(|word| word == canary)
            } else {
                text.contains(&canary)
            };
            assert!(!is_there, "{canary:?} is in {place}: {text}");
        }
    }

    fn assert_silent_problem(&self, operation: &Operation, answer: &Answer) {
        if answer.status >= 400 {
            self.assert_silent(&format!("a problem of {}", operation.name()), &answer.text());
        }
    }
}

fn walk(level: &str) {
    let world = World::at(level);
    let (mut calls, server) = (0, &world.server);
    for operation in world.document.operations.iter().filter(|operation| !operation.is_farewell()) {
        for way in ways(operation) {
            let request = world.request(operation, way);
            let credential = operation.key.as_deref().unwrap_or(&world.user.token);
            for request in [request.clone().token(credential), request.clone(), request.clone().token(BAD_TOKEN)] {
                let answer = request.send();
                assert!(answer.status < 500, "{}: {}", operation.name(), answer.text());
                world.assert_silent_problem(operation, &answer);
                calls += 1;
            }
        }
        if operation.takes_body() {
            let cut_off = format!("{{\"question\":\"{QUESTION}\",\"phoneNumber\":\"{PHONE}\",\"token\":\"{BAD_TOKEN}");
            let answer = operation.bare(server, &world.user).raw_json(&cut_off).send();
            world.assert_silent_problem(operation, &answer);
            let bare = format!("\"{QUESTION} {PHONE} {BAD_TOKEN}\"");
            let answer = operation.bare(server, &world.user).raw_json(&bare).send();
            world.assert_silent_problem(operation, &answer);
        }
    }
    // While the disk cannot be written, faults are the service's own, and one of them is a crash.
    let blocker = server.database();
    blocker.execute_batch("begin immediate").unwrap();
    let record = json!({ "localRecordId": "r-1", "question": QUESTION, "aiResult": ANSWER });
    server.post("/divination-history/save").by(&world.user).json(&record).send().expect(503);
    blocker.execute_batch("rollback").unwrap();
    server.command(&["backup", "create"]).expect(0);
    for leave in ["/auth/logout", "/api/v1/auth/logout"] {
        server.post(leave).json(&json!({ "token": BAD_TOKEN })).by(&world.user).send();
    }
    assert!(calls > 500, "only {calls} calls");
    look_everywhere(&world);
}

fn look_everywhere(world: &World) {
    let metrics = Request::new("GET", &world.metrics).send().expect(200).text();
    world.assert_silent("the metrics", &metrics);
    // The console that stands in for a provider of messages is all that may say a number and a code.
    let is_message = |line: &String| line.contains("SMS to ") || line.contains("Email to ");
    let lines: Vec<_> = world.server.lines().into_iter().filter(|line| !is_message(line)).collect();
    assert!(lines.len() > 3);
    for line in &lines {
        world.assert_silent("the log", line);
    }
    let database = world.server.database();
    let columns: String = database
        .query_row("select group_concat(name) from pragma_table_info('access_log')", [], |row| row.get(0))
        .unwrap();
    let texts = format!("select group_concat(concat_ws('|', {columns}), char(10)) from access_log");
    world.assert_silent("the network log", &database.query_row::<String, _, _>(&texts, [], |row| row.get(0)).unwrap());
    let backups = std::fs::read_dir(world.server.directory().join("backups")).unwrap();
    let names: Vec<_> = backups.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(!names.is_empty());
    world.assert_silent("the names of backups", &names.join("\n"));
}

/// What is said at any other level is said at this one too.
#[test]
fn nothing_private_comes_out_at_level_trace() {
    walk("trace");
}

#[test]
fn a_method_of_a_clients_own_invention_is_repeated_nowhere() {
    let setup = Setup::default().with("LOG_LEVEL", "trace").with_metrics();
    let mut server = setup.start();
    let metrics = server.metrics();
    let method = format!("HERON{PHONE}");
    let request = format!("{method} /user/profile HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    let answer = server.send_raw(request.as_bytes());
    assert!((400..500).contains(&answer.status), "{}", answer.text());
    assert!(!answer.text().contains(&method), "{}", answer.text());
    let logged = "select count(*) > 0 from access_log where method = 'OTHER'";
    eventually("the request is in the network log as one with another method", || server.value(logged));
    let told = Request::new("GET", &metrics).send().expect(200).text();
    assert!(!told.contains(&method), "{told}");
    assert!(server.lines().iter().all(|line| !line.contains(&method)));
}

/// The two-sample statistic of Kolmogorov and Smirnov: the largest distance between two distributions.
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

/// Times two kinds of calls in turn, and fails if they can be told apart. Noise of the machine looks like a difference
/// once in a thousand times, so that it takes three in a row.
fn assert_alike(what: &str, count: u32, mut call: impl FnMut(bool, u32, u32) -> Duration) {
    let mut found = Vec::new();
    for attempt in 0..3 {
        let (mut one, mut other) = (Vec::new(), Vec::new());
        for number in 0..count {
            // Who goes first changes, because the second of two finds warmer caches.
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
    panic!("{what}: known and unknown are told apart by the time of the answer: {found:?}");
}

fn timed(request: Request, status: u16) -> Duration {
    let begun = Instant::now();
    request.send().expect(status);
    begun.elapsed()
}

const TIMED: u32 = 120;
/// Enough to see a difference of a few hundredths of what an answer takes.
const TIMED_LONG: u32 = 1_500;

/// Number by attempt and turn, of somebody whom the service knows or does not.
fn number(is_known: bool, attempt: u32, turn: u32) -> String {
    format!("13{}0{attempt}{turn:06}", if is_known { 8 } else { 9 })
}

fn address(is_known: bool, attempt: u32, turn: u32) -> String {
    format!("reed.{attempt}{turn:06}@{}.example.com", if is_known { "known" } else { "never" })
}

/// A server that knows half of the numbers and addresses, and lets one client ask without end.
fn acquainted(count: u32) -> Server {
    let server = Setup::default().with("AUTH_SENDS_PER_DAY", 10_000_000).start();
    let mut database = server.database();
    let known = database.transaction().unwrap();
    for (attempt, turn) in (0..3).flat_map(|attempt| (0..count).map(move |turn| (attempt, turn))) {
        let insert = "insert into users (phone_number, email, created_at) values (?1, ?2, 1)";
        known.execute(insert, [number(true, attempt, turn), address(true, attempt, turn)]).unwrap();
    }
    known.commit().unwrap();
    server
}

fn compare_numbers(count: u32) {
    let server = acquainted(count);
    let ask = |number: &str| server.post("/auth/send-code").form(&[("phoneNumber", number)]);
    assert_alike("a code to a number", count, |known, attempt, turn| timed(ask(&number(known, attempt, turn)), 200));
    let guess = |number: &str| server.post("/auth/login").form(&[("phoneNumber", number), ("code", "000000")]);
    assert_alike("a guess", count, |known, attempt, turn| timed(guess(&number(known, attempt, turn)), 401));
}

fn compare_addresses(count: u32) {
    let server = acquainted(count);
    let post = |path: &str, body: Value| server.post(path).json(&body);
    assert_alike("a code to an address", count, |known, attempt, turn| {
        let body = json!({ "email": address(known, attempt, turn) });
        timed(post("/api/v1/auth/send-code", body), 200)
    });
    assert_alike("a guess by email", count, |known, attempt, turn| {
        let body = json!({ "email": address(known, attempt, turn), "code": "00000000" });
        timed(post("/api/v1/auth/login", body), 401)
    });
    // What may be learned by naming somebody else while signed in oneself.
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
fn names_of_administrators_cannot_be_told_from_others_by_the_time() {
    let server = Setup::default().with("ADMIN_ATTEMPTS", 1_000_000).start();
    server.admin("root", "a long enough password");
    // Each takes as long as a password hash, so that few do.
    assert_alike("an administrator's name", 24, |known, _, turn| {
        let name = if known { "root".to_owned() } else { format!("root{turn}") };
        let guess = json!({ "name": name, "password": "not the right password" });
        timed(server.post("/admin/login").json(&guess), 401)
    });
}

/// What an answer says beside what differs from one to the next.
fn essence(answer: &Answer, named: &str) -> (u16, Vec<(String, String)>, String) {
    // Of these it counts that they are there: their values go with the time and the length of what was named.
    let differs = ["date", "x-request-id", "content-length", "retry-after"];
    let headers = answer.headers.iter().map(|(name, value)| {
        let value = if differs.contains(&name.as_str()) { "" } else { value.to_str().unwrap() };
        (name.to_string(), value.to_owned())
    });
    let mut headers: Vec<_> = headers.collect();
    headers.sort();
    let mut body = answer.json();
    if let Some(body) = body.as_object_mut() {
        body.remove("requestId");
    }
    (answer.status, headers, body.to_string().replace(named, "NAMED"))
}

#[test]
fn known_and_unknown_addresses_are_answered_alike_in_status_headers_and_body() {
    let server = Setup::default().with("ADMIN_ATTEMPTS", 5).start();
    let (known_number, unknown_number) = (server.sign_in(PHONE).phone_number, "13912345679".to_owned());
    server.sign_in_by_email(EMAIL);
    server.admin("root", "a long enough password");
    server.edit("delete from code_sends");
    let (known_email, unknown_email) = (EMAIL.to_owned(), "reed.heron@example.com".to_owned());
    let alike = |named: [&str; 2], request: &dyn Fn(&str) -> Request| {
        let [known, unknown] = named.map(|named| essence(&request(named).send(), named));
        assert_eq!(known, unknown);
    };
    let numbers = [known_number.as_str(), unknown_number.as_str()];
    let emails = [known_email.as_str(), unknown_email.as_str()];
    // Twice: the second time there is no place in the budget.
    for _ in 0..2 {
        alike(numbers, &|number| server.post("/auth/send-code").form(&[("phoneNumber", number)]));
        alike(emails, &|email| server.post("/api/v1/auth/send-code").json(&json!({ "email": email })));
    }
    // Until there are no tries left, and after that.
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
