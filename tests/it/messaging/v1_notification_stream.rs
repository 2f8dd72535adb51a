//! `/api/v1/notifications/stream`: news while the app is open.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::support::{Caller, Server, Setup};

const PATIENCE: Duration = Duration::from_secs(20);

/// An event: name, id and data.
#[derive(Debug)]
struct Event {
    name: String,
    id: Option<String>,
    data: Value,
}

/// A client of the stream.
struct Listener(BufReader<TcpStream>);

impl Listener {
    fn open(server: &Server, user: &Caller, last: Option<&str>) -> Self {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let last = last.map(|id| format!("last-event-id: {id}\r\n")).unwrap_or_default();
        let head = format!(
            "GET /api/v1/notifications/stream HTTP/1.1\r\nhost: yarrow\r\naccept: text/event-stream\r\n\
             authorization: Bearer {}\r\n{last}\r\n",
            user.token
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut listener = Self(BufReader::new(stream));
        let first = listener.line().unwrap();
        assert!(first.starts_with("HTTP/1.1 200"), "{first}");
        while !listener.line().unwrap().is_empty() {}
        listener
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let length = self.0.read_line(&mut line).unwrap();
        (length > 0).then(|| line.trim_end().to_owned())
    }

    /// Returns the next event; none at the end of the stream.
    fn next(&mut self) -> Option<Event> {
        let (mut name, mut id, mut data) = (None, None, None);
        loop {
            // The last chunk ends the stream, not the connection.
            let line = self.line().filter(|line| line != "0")?;
            match line.split_once(": ") {
                Some(("event", value)) => name = Some(value.to_owned()),
                Some(("id", value)) => id = Some(value.to_owned()),
                Some(("data", value)) => data = Some(serde_json::from_str(value).unwrap()),
                _ if line.is_empty() && name.is_some() => {
                    return Some(Event { name: name.unwrap(), id, data: data.unwrap() });
                }
                _ => {}
            }
        }
    }

    fn expect(&mut self, name: &str) -> Event {
        let event = self.next().unwrap();
        assert_eq!(event.name, name, "{event:?}");
        event
    }
}

struct Fixture {
    server: Server,
    user: Caller,
    key: String,
}

impl Fixture {
    fn new(setup: Setup) -> Self {
        let server = setup.start();
        let (user, key) = (server.sign_in("13800138000"), server.api_key("tests"));
        Self { server, user, key }
    }

    fn listen(&self) -> (Listener, Event) {
        let mut listener = Listener::open(&self.server, &self.user, None);
        let open = listener.expect("open");
        (listener, open)
    }

    fn send(&self, body: &Value) -> String {
        let sent = self.server.post("/admin/notifications").token(&self.key).json(body).send().expect(201).json();
        sent["id"].as_str().unwrap().to_owned()
    }

    fn broadcast(&self, title: &str) -> String {
        self.send(&json!({ "audience": "all", "title": title, "body": "…" }))
    }

    fn notify(&self, user: &Caller, title: &str) -> String {
        self.send(&json!({ "audience": "users", "userIds": [user.user_id], "title": title, "body": "…" }))
    }

    fn adjust(&self, points: i64) {
        let command = ["points", "adjust", &self.user.phone_number, &points.to_string(), "--reason", "test"];
        self.server.command(&command).expect(0);
    }
}

#[test]
fn news_arrive_and_continue_after_the_last_event() {
    let fixture = Fixture::new(Setup::default());
    let earlier = fixture.broadcast("before");
    let (mut listener, open) = fixture.listen();
    assert_eq!(open.data["unread"], 1);
    assert_eq!(open.data["balances"], json!({ "points": 0, "coins": 0 }));
    let id = fixture.broadcast("to all");
    let event = listener.expect("notification");
    assert_eq!((&event.data["id"], &event.data["title"]), (&json!(id), &json!("to all")));
    assert_ne!(event.data["id"], json!(earlier));
    fixture.adjust(30);
    assert_eq!(listener.expect("balances").data, json!({ "points": 30, "coins": 0 }));
    let other = fixture.server.sign_in("13900139000");
    fixture.notify(&other, "to another");
    let own = fixture.notify(&fixture.user, "to me");
    let last = listener.expect("notification");
    assert_eq!(last.data["id"], json!(own));
    drop(listener);
    fixture.broadcast("while away");
    fixture.adjust(12);
    let mut again = Listener::open(&fixture.server, &fixture.user, last.id.as_deref());
    assert_eq!(again.expect("open").data["balances"]["points"], 42);
    assert_eq!(again.expect("notification").data["title"], "while away");
    assert_eq!(again.expect("balances").data["points"], 42);
    // Another process commits, and kinds that are switched off do not come.
    let off = json!({ "notifications": { "promotion": false } });
    fixture.server.patch("/api/v1/preferences").by(&fixture.user).json(&off).send().expect(200);
    fixture.send(&json!({ "audience": "all", "kind": "promotion", "title": "sale", "body": "…" }));
    fixture.server.command(&["notify", "send", "by command", "…", "--all"]).expect(0);
    assert_eq!(again.expect("notification").data["title"], "by command");
}

#[test]
fn invalid_positions_are_refused() {
    let fixture = Fixture::new(Setup::default());
    let request = fixture.server.get("/api/v1/notifications/stream").by(&fixture.user).header("last-event-id", "x");
    request.send().expect_fields(&[("Last-Event-ID", "invalid_format")]);
}

#[test]
fn a_stream_ends_with_its_token_only() {
    let fixture = Fixture::new(Setup::default());
    let other = fixture.server.sign_in("13900139000");
    let (mut listener, _) = fixture.listen();
    let mut stays = Listener::open(&fixture.server, &other, None);
    stays.expect("open");
    fixture.server.post("/auth/logout").form(&[("token", &fixture.user.token)]).send().expect(200);
    let begun = Instant::now();
    assert_eq!(listener.expect("error").data["code"], "unauthenticated");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert!(listener.next().is_none());
    fixture.broadcast("still here");
    assert_eq!(stays.expect("notification").data["title"], "still here");
}

#[test]
fn an_expired_token_ends_its_stream() {
    let fixture = Fixture::new(Setup::default().with("AUTH_TOKEN_LIFETIME", "2 s").with("AUTH_TOKEN_RENEWAL", "1 s"));
    let (mut listener, _) = fixture.listen();
    assert_eq!(listener.expect("error").data["code"], "unauthenticated");
}

#[test]
fn streams_are_limited_and_their_permits_released() {
    let fixture = Fixture::new(Setup::default().with("NOTIFICATIONS_STREAMS_PER_USER", 2));
    let (first, _) = fixture.listen();
    let (_second, _) = fixture.listen();
    let ask = || {
        let request = fixture.server.get("/api/v1/notifications/stream").by(&fixture.user);
        request.header("accept", "text/event-stream").send()
    };
    // The state as JSON needs no place.
    let state = fixture.server.get("/api/v1/notifications/stream").by(&fixture.user).send().expect(200).json();
    assert_eq!(state, json!({ "unread": 0, "balances": { "points": 0, "coins": 0 } }));
    let refused = ask().expect_problem(503, "overloaded");
    assert!(refused.header("retry-after").is_some());
    drop(first);
    // The service notices at the next event that the client has left.
    fixture.broadcast("…");
    crate::support::eventually("the place is free", || {
        let mut stream = TcpStream::connect(fixture.server.address()).unwrap();
        let head = format!(
            "GET /api/v1/notifications/stream HTTP/1.1\r\nhost: yarrow\r\naccept: text/event-stream\r\n\
             authorization: Bearer {}\r\n\r\n",
            fixture.user.token
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        line.starts_with("HTTP/1.1 200")
    });
}

/// Sends bytes on a new connection and reads until these words arrive.
fn exchange(server: &Server, request: &str, end: &str) -> String {
    let mut connection = BufReader::new(TcpStream::connect(server.address()).unwrap());
    connection.get_ref().set_read_timeout(Some(PATIENCE)).unwrap();
    connection.get_mut().write_all(request.as_bytes()).unwrap();
    let mut received = String::new();
    while !received.contains(end) {
        assert!(connection.read_line(&mut received).unwrap() > 0, "{received}");
    }
    received
}

#[test]
fn a_stream_has_its_connection_for_itself() {
    let fixture = Fixture::new(Setup::default());
    let request = |line: &str| {
        let token = &fixture.user.token;
        format!("{line}\r\nhost: yarrow\r\naccept: text/event-stream\r\nauthorization: Bearer {token}\r\n\r\n")
    };
    let stream =
        |method: &str, version: &str| request(&format!("{method} /api/v1/notifications/stream HTTP/{version}"));
    // A request before it, and one that the client sends without waiting for the end.
    let other = request("GET /api/v1/account HTTP/1.1");
    let received =
        exchange(&fixture.server, &[&other, &stream("GET", "1.1"), &other].map(String::as_str).concat(), "event: open");
    let [_, first, second] = received.split("HTTP/1.1 200 OK\r\n").collect::<Vec<_>>()[..] else {
        panic!("{received}")
    };
    assert!(first.contains("\"points\""), "{first}");
    let (headers, _) = second.split_once("\r\n\r\n").unwrap();
    for header in
        ["connection: close", "transfer-encoding: chunked", "content-type: text/event-stream", "x-request-id: "]
    {
        assert!(headers.contains(header), "{header}: {headers}");
    }
    let date = headers.lines().find_map(|line| line.strip_prefix("date: ")).unwrap();
    assert!(date.ends_with(" GMT"), "{date}");
    // HTTP/1.0 has no chunks, and a response to HEAD no body.
    let old = exchange(&fixture.server, &stream("GET", "1.0"), "event: open");
    assert!(!old.contains("chunked"), "{old}");
    let head = exchange(&fixture.server, &stream("HEAD", "1.1"), "\r\n\r\n");
    assert!(!head.contains("connection: close"), "{head}");
}

#[test]
fn shutdown_ends_streams_at_once() {
    let mut fixture = Fixture::new(Setup::default());
    let (mut listener, _) = fixture.listen();
    let begun = Instant::now();
    fixture.server.terminate();
    assert_eq!(listener.expect("error").data["code"], "overloaded");
    assert!(listener.next().is_none());
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[test]
fn clients_without_patch_send_it_as_post() {
    let fixture = Fixture::new(Setup::default());
    let request = fixture.server.post("/api/v1/preferences").by(&fixture.user).json(&json!({ "locale": "en" }));
    let changed = request.header("x-http-method-override", "PATCH").send().expect(200).json();
    assert_eq!(changed["locale"], "en");
    let other = fixture.server.post("/api/v1/preferences").by(&fixture.user).header("x-http-method-override", "DELETE");
    other.send().expect_problem(405, "method_not_allowed");
}
