//! Webhooks: signed events, retries, replay, privacy, and an outbox that survives kills.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::hmac;
use serde_json::{Value, json};

use crate::support::{
    Server, Setup, eventually,
    fake_provider::{FakeProvider, Latch, ReceivedRequest, Reply},
    send_concurrently,
};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OLD_SECRET: &str = "whsec_bWV0YWxzIGFuZCBhbGxveXMgb2YgdGhlIGVhcnRo";

/// A receiver that checks signatures, and the bodies that it accepted, by id.
struct Receiver {
    provider: FakeProvider,
    accepted: Arc<Mutex<BTreeMap<String, Vec<String>>>>,
    /// The status in place of 204.
    status: Arc<AtomicUsize>,
}

impl Receiver {
    fn start() -> Self {
        let accepted: Arc<Mutex<BTreeMap<String, Vec<String>>>> = Arc::default();
        let status = Arc::new(AtomicUsize::new(204));
        let (book, mood) = (Arc::clone(&accepted), Arc::clone(&status));
        let provider = FakeProvider::with_handler(move |request| {
            let (id, body) = verified(request, SECRET).expect("a valid signature");
            let status = u16::try_from(mood.load(Ordering::SeqCst)).unwrap();
            if status < 300 {
                book.lock().unwrap().entry(id).or_default().push(body);
            }
            Reply::status(status)
        });
        Self { provider, accepted, status }
    }

    fn setup(&self) -> Setup {
        Setup::default()
            .with("WEBHOOKS_URL", format!("{}/hooks?key=in-the-url", self.provider.url()))
            .with("WEBHOOKS_SECRETS", format!("{SECRET},{OLD_SECRET}"))
            .with("LIMITS_FEEDBACK_PER_CLIENT", "1000000")
    }

    fn answer(&self, status: usize) {
        self.status.store(status, Ordering::SeqCst);
    }

    /// Returns the accepted events, each once.
    fn events(&self) -> Vec<Value> {
        let accepted = self.accepted.lock().unwrap();
        accepted.values().map(|bodies| serde_json::from_str(&bodies[0]).unwrap()).collect()
    }

    fn kinds(&self) -> BTreeSet<String> {
        self.events().iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
    }
}

/// Returns id and body of a request whose signature fits the secret and whose time is near.
fn verified(request: &ReceivedRequest, secret: &str) -> Option<(String, String)> {
    let id = request.header("webhook-id")?.to_owned();
    let timestamp = request.header("webhook-timestamp")?;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let is_near = now.abs_diff(timestamp.parse().ok()?) < 300;
    let body = String::from_utf8(request.body.clone()).ok()?;
    let key = hmac::Key::new(hmac::HMAC_SHA256, &STANDARD.decode(secret.strip_prefix("whsec_")?).ok()?);
    let text = format!("{id}.{timestamp}.{body}");
    let is_signed = request.header("webhook-signature")?.split(' ').any(|signature| {
        let bytes = signature.strip_prefix("v1,").and_then(|signature| STANDARD.decode(signature).ok());
        bytes.is_some_and(|bytes| hmac::verify(&key, text.as_bytes(), &bytes).is_ok())
    });
    (is_near && is_signed).then_some((id, body))
}

fn pending(server: &Server) -> i64 {
    server.value("select count(*) from webhook_events where state = 'pending'")
}

fn feedback(server: &Server, content: &str) {
    server.post("/feedback").json(&json!({ "content": content })).send().expect(200);
}

#[test]
fn events_are_signed_and_contain_no_personal_text() {
    let receiver = Receiver::start();
    let server = receiver.setup().start();
    let user = server.sign_in("13800138000");
    server.post("/feedback").by(&user).json(&json!({ "content": "my secret words" })).send().expect(200);
    feedback(&server, "anonymous words");
    let package = [("amount", "6.00"), ("coinCount", "60")];
    let order = server.get("/payment/gateway/order").by(&user).query(&package).send().expect(200).json();
    let order_no = order["orderNo"].as_str().unwrap().to_owned();
    server.command(&["payments", "sandbox-pay", &order_no]).expect(0);
    let key = server.api_key("tests");
    let refund = json!({ "amount": "1.00", "reason": "tests" });
    server.post(&format!("/admin/payments/{order_no}/refund")).token(&key).json(&refund).send().expect(200);
    server.delete("/api/v1/account").by(&user).send().expect(204);
    eventually("all events are delivered", || pending(&server) == 0);
    let kinds = receiver.kinds();
    for kind in ["user.created", "user.erased", "feedback.submitted", "order.credited", "order.refunded"] {
        assert!(kinds.contains(kind), "{kind}: {kinds:?}");
    }
    let events = receiver.events();
    for event in &events {
        assert!(event["timestamp"].as_str().unwrap().ends_with('Z'));
        let text = event.to_string();
        for private in ["13800138000", "secret words", "anonymous words"] {
            assert!(!text.contains(private), "{text}");
        }
        assert!(event["data"]["userId"].is_null() || event["data"]["userId"] == user.user_id, "{event}");
    }
    let credited = events.iter().find(|event| event["type"] == "order.credited").unwrap();
    let expected = json!([order_no, "6.00", "coin", 60]);
    let data = &credited["data"];
    assert_eq!(json!([data["orderNo"], data["paid"], data["asset"], data["count"]]), expected);
    // Both keys sign while the receiver changes to a new one.
    let request = receiver.provider.requests().pop().unwrap();
    assert!(verified(&request, OLD_SECRET).is_some() && verified(&request, SECRET).is_some());
    let log = server.lines().join("\n");
    assert!(!log.contains("in-the-url") && !log.contains("whsec"), "{log}");
}

#[test]
fn texts_are_sent_only_if_asked_for_and_erased_with_their_user() {
    let receiver = Receiver::start();
    let server = receiver.setup().with("WEBHOOKS_WITH_TEXTS", "true").start();
    let user = server.sign_in("13800138000");
    receiver.answer(500);
    let send =
        |content: &str| server.post("/feedback").by(&user).json(&json!({ "content": content })).send().expect(200);
    send("the first words");
    eventually("it was tried", || server.value::<i64>("select max(attempts) from webhook_events") > 0);
    let stored = "select count(*) from webhook_events where text is not null";
    assert_eq!(server.value::<i64>(stored), 1);
    server.delete("/api/v1/account").by(&user).send().expect(204);
    assert_eq!(server.value::<i64>(stored), 0);
    receiver.answer(204);
    feedback(&server, "the second words");
    server.edit("update webhook_events set due_at = 0");
    eventually("all events are delivered", || pending(&server) == 0);
    let texts: Vec<_> =
        receiver.events().iter().filter_map(|event| event["data"]["text"].as_str().map(ToOwned::to_owned)).collect();
    assert_eq!(texts, ["the second words"]);
    // Delivered texts are not kept.
    assert_eq!(server.value::<i64>(stored), 0);
}

#[test]
fn failures_are_retried_given_up_and_replayed() {
    let receiver = Receiver::start();
    let server = receiver.setup().with("WEBHOOKS_RETRY_FOR", "1 minute").start();
    let key = server.api_key("tests");
    receiver.answer(503);
    feedback(&server, "x");
    eventually("it was tried", || server.value::<i64>("select max(attempts) from webhook_events") == 1);
    let wait: i64 = server.value("select due_at - created_at from webhook_events");
    assert!((5_000..20_000).contains(&wait), "{wait}");
    server.edit("update webhook_events set due_at = 0, attempts = 6");
    eventually("it is given up", || server.value::<String>("select state from webhook_events") == "failed");
    let list = |state: &str| {
        let query = [("state", state)];
        server.get("/admin/webhooks").query(&query).token(&key).send().expect(200).json()["items"].clone()
    };
    let failed = list("failed");
    assert_eq!((&failed[0]["failure"], &failed[0]["kind"]), (&json!("http_503"), &json!("feedback.submitted")));
    assert_eq!(list("delivered"), json!([]));
    receiver.answer(204);
    let replayed = server.post("/admin/webhooks/replay").token(&key).json(&json!({})).send().expect(200).json();
    assert_eq!(replayed["count"], 1);
    eventually("it is delivered", || pending(&server) == 0);
    assert_eq!(list("delivered")[0]["eventId"], failed[0]["eventId"]);
    // A single one again, by the command beside the server.
    let id = failed[0]["id"].as_str().unwrap();
    server.command(&["webhooks", "replay", id]).expect(0);
    let copies = || receiver.accepted.lock().unwrap()[failed[0]["eventId"].as_str().unwrap()].len();
    eventually("it arrives again", || copies() == 2);
    let missing = json!({ "number": "999" });
    server.post("/admin/webhooks/replay").token(&key).json(&missing).send().expect_problem(404, "not_found");
    let tested = server.post("/admin/webhooks/test").token(&key).send().expect(200).json();
    assert!(receiver.accepted.lock().unwrap().contains_key(tested["eventId"].as_str().unwrap()));
    receiver.answer(400);
    server.post("/admin/webhooks/test").token(&key).send().expect_problem(502, "provider_failed");
}

#[test]
fn a_receiver_that_is_gone_gets_an_event_once() {
    let receiver = Receiver::start();
    let server = receiver.setup().start();
    receiver.answer(410);
    feedback(&server, "x");
    eventually("it is given up", || server.value::<String>("select state from webhook_events") == "failed");
    assert_eq!(server.value::<i64>("select attempts from webhook_events"), 1);
}

#[test]
fn a_damaged_event_delays_no_others() {
    let receiver = Receiver::start();
    let server = receiver.setup().start();
    receiver.answer(503);
    feedback(&server, "first");
    feedback(&server, "second");
    eventually("both were tried", || server.value::<i64>("select min(attempts) from webhook_events") > 0);
    server.edit("update webhook_events set due_at = 0, data = case when id = 1 then '{' else data end");
    receiver.answer(204);
    eventually("the second is delivered", || receiver.events().len() == 1);
    let failure = "select failure from webhook_events where id = 1";
    eventually("the first has failed", || server.value::<String>(failure) == "event_damaged");
}

#[test]
fn a_replay_during_an_attempt_is_not_lost() {
    for second in [503, 204] {
        let latch = Latch::default();
        let arrived = Arc::new(AtomicUsize::new(0));
        let (gate, counted) = (latch.clone(), Arc::clone(&arrived));
        let provider = FakeProvider::with_handler(move |_| match counted.fetch_add(1, Ordering::SeqCst) {
            0 => Reply::status(503),
            1 => {
                gate.wait();
                Reply::status(second)
            }
            _ => Reply::status(204),
        });
        let setup = Setup::default().with("WEBHOOKS_URL", provider.url()).with("WEBHOOKS_SECRETS", SECRET);
        let server = setup.with("WEBHOOKS_RETRY_FOR", "1 minute").start();
        feedback(&server, "x");
        eventually("it was tried", || server.value::<i64>("select max(attempts) from webhook_events") == 1);
        // A failure of the second attempt would give the event up.
        server.edit("update webhook_events set due_at = 0, created_at = created_at - 3600000");
        eventually("the second attempt is under way", || arrived.load(Ordering::SeqCst) == 2);
        let id: i64 = server.value("select id from webhook_events");
        server.command(&["webhooks", "replay", &id.to_string()]).expect(0);
        latch.open();
        eventually("it is sent again", || arrived.load(Ordering::SeqCst) == 3);
        eventually("it is delivered", || server.value::<String>("select state from webhook_events") == "delivered");
        assert_eq!(server.value::<i64>("select attempts from webhook_events"), 1, "{second}");
    }
}

#[test]
fn concurrent_replays_and_tests_deliver_an_event_once_at_a_time() {
    const EVENTS: usize = 10;
    const PAUSE: Duration = Duration::from_millis(60);
    let attempts: Arc<Mutex<Vec<(String, String, Instant)>>> = Arc::default();
    let book = Arc::clone(&attempts);
    let provider = FakeProvider::with_handler(move |request| {
        let (id, body) = verified(request, SECRET).expect("a valid signature");
        let mut book = book.lock().unwrap();
        book.push((id, body, Instant::now()));
        // A third of the attempts fails.
        Reply::status(if book.len().is_multiple_of(3) { 503 } else { 204 }).after(PAUSE)
    });
    let setup = Setup::default().with("WEBHOOKS_URL", provider.url()).with("WEBHOOKS_SECRETS", SECRET);
    let server = setup.with("LIMITS_FEEDBACK_PER_CLIENT", "1000000").start();
    let key = server.api_key("tests");
    for number in 0..EVENTS {
        feedback(&server, &number.to_string());
    }
    let mut tested = Vec::new();
    for _ in 0..3 {
        let requests = (0..50).map(|caller| match caller % 5 {
            0 => server.post("/admin/webhooks/test").token(&key),
            1 => server.post("/admin/webhooks/replay").token(&key).json(&json!({})),
            _ => server
                .post("/admin/webhooks/replay")
                .token(&key)
                .json(&json!({ "number": (caller % EVENTS + 1).to_string() })),
        });
        for (caller, response) in send_concurrently(requests.collect()).into_iter().enumerate() {
            match (caller % 5, response.status) {
                (0, 200) => tested.push(response.json()["eventId"].as_str().unwrap().to_owned()),
                // The receiver fails, or too many requests wait for it.
                (0, 429 | 502 | 503) | (1.., 200) => {}
                (_, status) => panic!("{status}: {}", response.text()),
            }
        }
    }
    eventually("all events are delivered", || {
        server.edit("update webhook_events set due_at = 0 where state = 'pending' and failure is not null");
        pending(&server) == 0
    });
    let stored: BTreeSet<String> = {
        let database = server.database();
        let mut statement = database.prepare("select event_id from webhook_events").unwrap();
        let ids = statement.query_map((), |row| row.get(0)).unwrap();
        ids.map(Result::unwrap).collect()
    };
    assert_eq!((stored.len(), server.value::<i64>("select count(*) from webhook_events")), (EVENTS, 10));
    // Tests leave no event, and each has an id of its own.
    let distinct: BTreeSet<_> = tested.iter().cloned().collect();
    assert!(!tested.is_empty() && distinct.len() == tested.len() && distinct.is_disjoint(&stored), "{tested:?}");
    let attempts = attempts.lock().unwrap();
    let mut last = BTreeMap::<&String, (&String, Instant)>::new();
    let mut repeated = 0;
    for (id, body, at) in attempts.iter() {
        if let Some((same, before)) = last.insert(id, (body, *at)) {
            repeated += 1;
            assert_eq!(same, body);
            assert!(at.duration_since(before) >= PAUSE, "{id} was sent twice at once");
        }
    }
    assert!(repeated > 0 && stored.iter().all(|id| last.contains_key(id)));
}

#[test]
fn nothing_is_stored_without_a_receiver() {
    let server = Setup::default().start();
    server.sign_in("13800138000");
    feedback(&server, "x");
    assert_eq!(server.value::<i64>("select count(*) from webhook_events"), 0);
    let key = server.api_key("tests");
    server.post("/admin/webhooks/test").token(&key).send().expect_problem(409, "not_configured");
}

#[test]
fn fifty_kills_lose_no_event_and_give_none_a_second_id() {
    const KILLS: u32 = 50;
    let receiver = Receiver::start();
    let mut server = receiver.setup().in_own_process().start();
    let mut promised = BTreeSet::new();
    for kill in 0..KILLS {
        let (stop, address) = (AtomicBool::new(false), server.address());
        let confirmed: Mutex<Vec<String>> = Mutex::default();
        let wait = Duration::from_millis(u64::from(kill * 7 % 60 + 5));
        thread::scope(|scope| {
            for worker in 0..3 {
                let (stop, confirmed) = (&stop, &confirmed);
                scope.spawn(move || {
                    while !stop.load(Ordering::SeqCst) {
                        if let Some(id) = submit(address, worker) {
                            confirmed.lock().unwrap().push(id);
                        }
                    }
                });
            }
            thread::sleep(wait);
            crate::support::kill(server.process_id());
            stop.store(true, Ordering::SeqCst);
        });
        promised.extend(confirmed.into_inner().unwrap());
        server = server.crash_and_restart(receiver.setup());
    }
    eventually("all events are delivered", || pending(&server) == 0);
    assert!(promised.len() > KILLS as usize, "{}", promised.len());
    let accepted = receiver.accepted.lock().unwrap().clone();
    let mut told = BTreeMap::<String, BTreeSet<String>>::new();
    for (id, bodies) in &accepted {
        assert!(bodies.iter().all(|body| *body == bodies[0]), "{id} changed: {bodies:?}");
        let event: Value = serde_json::from_str(&bodies[0]).unwrap();
        let feedback = event["data"]["feedbackId"].as_str().unwrap().to_owned();
        told.entry(feedback).or_default().insert(id.clone());
    }
    // Each fact has one event, and each event its fact.
    assert!(told.values().all(|ids| ids.len() == 1), "{told:?}");
    let stored: BTreeSet<String> = {
        let database = server.database();
        let mut statement = database.prepare("select id from feedback").unwrap();
        let ids = statement.query_map((), |row| row.get::<_, i64>(0)).unwrap();
        ids.map(|id| id.unwrap().to_string()).collect()
    };
    assert_eq!(told.keys().cloned().collect::<BTreeSet<_>>(), stored);
    assert!(promised.is_subset(&stored), "{:?}", promised.difference(&stored).collect::<Vec<_>>());
    let repeated = accepted.values().filter(|bodies| bodies.len() > 1).count();
    println!("{KILLS} kills, {} events, {} promised, {repeated} repeated", accepted.len(), promised.len());
}

/// Submits feedback and returns its id if the server confirmed it.
fn submit(address: std::net::SocketAddr, worker: u32) -> Option<String> {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    let body = format!(r#"{{"content":"words of {worker}"}}"#);
    let head = format!(
        "POST /feedback HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).ok()?;
    let mut response = String::new();
    stream.read_to_string(&mut response).ok()?;
    let (head, body) = response.split_once("\r\n\r\n")?;
    if !head.starts_with("HTTP/1.1 200") {
        return None;
    }
    let answer: Value = serde_json::from_str(body).ok()?;
    answer["id"].as_str().map(ToOwned::to_owned)
}
