//! Limits of connections and requests, and shutdown.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::mpsc::{Sender, channel},
    thread::{scope, sleep, spawn},
    time::{Duration, Instant},
};

use serde_json::json;

use crate::support::{
    self, Caller, Server, Setup, eventually, eventually_some,
    raw::{HEALTH, RawConnection, disconnect_after},
};

#[track_caller]
fn assert_between(took: Duration, least: u64, most: u64) {
    let bounds = Duration::from_millis(least)..Duration::from_millis(most);
    assert!(bounds.contains(&took), "it took {took:?}");
}

#[test]
fn closes_a_connection_with_a_slow_head() {
    let server = Setup::default().with("LIMITS_HEADER_TIMEOUT", "1 s").start();
    for is_first_request in [true, false] {
        let started_at = Instant::now();
        let mut wire = RawConnection::to(&server);
        if !is_first_request {
            wire.expect_health();
        }
        let slow = wire.0.try_clone().unwrap();
        let drip = spawn(move || {
            let mut slow = slow;
            for byte in HEALTH.bytes() {
                if slow.write_all(&[byte]).is_err() {
                    return;
                }
                sleep(Duration::from_millis(200));
            }
        });
        let (response, _) = wire.read_to_end();
        assert_eq!(response, "");
        assert_between(started_at.elapsed(), 800, 8_000);
        wire.0.shutdown(Shutdown::Both).ok();
        drip.join().unwrap();
    }
}

#[test]
fn closes_a_silent_connection() {
    let server = Setup::default().with("LIMITS_HEADER_TIMEOUT", "1 s").start();
    let started_at = Instant::now();
    let (response, _) = RawConnection::to(&server).read_to_end();
    assert_eq!(response, "");
    assert_between(started_at.elapsed(), 800, 8_000);
}

#[test]
fn the_metrics_listener_has_the_same_limits_and_its_own_count() {
    let setup = Setup::default().with("LIMITS_HEADER_TIMEOUT", "1 s").with_metrics();
    let mut server = setup.with("LIMITS_CONNECTIONS", 20).start();
    let page = server.metrics();
    let address = page.trim_start_matches("http://").trim_end_matches("/metrics");
    let connect = || {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        RawConnection(stream)
    };
    let started_at = Instant::now();
    let (response, _) = connect().read_to_end();
    assert_eq!(response, "");
    assert_between(started_at.elapsed(), 800, 8_000);
    // A full listener does not affect the other.
    let mut run_clients: Vec<_> = (0..20).map(|_| RawConnection::to(&server)).collect();
    run_clients.iter_mut().for_each(RawConnection::expect_health);
    let mut page = connect();
    assert!(page.send("GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n"));
    assert!(page.receive().expect("no response").0.starts_with("http/1.1 200"));
    for (request, status) in [("GET /healthz", "404"), ("POST /metrics", "405")] {
        assert!(page.send(&format!("{request} HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n")));
        assert!(page.receive().expect("no response").0.starts_with(&format!("http/1.1 {status}")), "{request}");
    }
}

#[test]
fn raises_the_open_file_limit_to_the_maximum() {
    let server = Setup::default().after("ulimit -Sn 100 && ulimit -Hn 3000").in_own_process().start();
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.process_id())).unwrap();
    let files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    assert_eq!(files.split_whitespace().skip(3).take(2).collect::<Vec<_>>(), ["3000", "3000"], "{files}");
    assert!(server.lines().iter().any(|line| line.contains("fewer open files than limits.connections needs")));
}

#[test]
fn closes_an_idle_connection_after_the_timeout() {
    let setup = Setup::default().with("LIMITS_HEADER_TIMEOUT", "1 s").with("LIMITS_IDLE_TIMEOUT", "10 s");
    let server = setup.start();
    let mut wire = RawConnection::to(&server);
    wire.expect_health();
    // Longer than the head timeout, which does not apply to idle connections.
    for _ in 0..2 {
        sleep(Duration::from_millis(2_500));
        wire.expect_health();
    }
    let (response, took) = wire.read_to_end();
    assert_eq!(response, "");
    assert_between(took, 5_000, 20_000);
}

#[test]
fn responds_to_an_incomplete_and_a_slow_body() {
    let server = Setup::default().with("LIMITS_BODY_TIMEOUT", "1 s").start();
    let mut wire = RawConnection::to(&server);
    let head =
        "POST /auth/login HTTP/1.1\r\nhost: yarrow\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n";
    let started_at = Instant::now();
    assert!(wire.send(head) && wire.send("{\"code\":"));
    let (head, body) = wire.receive().expect("no response");
    assert_between(started_at.elapsed(), 800, 20_000);
    assert!(head.starts_with("http/1.1 408"), "{head}");
    assert!(String::from_utf8(body).unwrap().contains("\"request_timeout\""));
    // The rest of the body would be read as the next request.
    assert_eq!(wire.read_to_end().0, "");
}

#[test]
fn closes_a_connection_whose_client_does_not_read() {
    const RECORD: usize = 30_000;
    let server = Setup::default().with("LIMITS_IDLE_TIMEOUT", "1 s").start();
    let user = server.sign_in("13800138000");
    for number in 0..60 {
        let record = json!({ "localRecordId": number.to_string(), "aiResult": "x".repeat(RECORD) });
        server.post("/divination-history/save").by(&user).json(&record).send().expect(200);
    }
    // More than the socket buffers hold.
    let mut wire = RawConnection::to(&server);
    let head =
        format!("POST /divination-history/get HTTP/1.1\r\nhost: yarrow\r\nauthorization: Bearer {}\r\n", user.token);
    assert!(wire.send(&format!("{head}content-length: 0\r\n\r\n").repeat(16)));
    sleep(Duration::from_secs(4));
    // A client that reads now gets the buffered data, then the end.
    let (mut received, mut buffer) = (0, vec![0; 1 << 16]);
    while let Ok(length) = wire.0.read(&mut buffer)
        && length > 0
    {
        received += length;
    }
    assert!(received < 16 * 60 * RECORD, "the server waited for a client that did not read: {received} bytes");
    RawConnection::to(&server).expect_health();
}

#[test]
fn closes_connections_over_the_limit_and_serves_the_others() {
    let server = Setup::default().with("LIMITS_CONNECTIONS", 4).start();
    let mut open: Vec<_> = (0..4).map(|_| RawConnection::to(&server)).collect();
    for wire in &mut open {
        wire.expect_health();
    }
    let mut refused = RawConnection::to(&server);
    refused.send(HEALTH);
    assert_eq!(refused.read_to_end().0, "");
    for wire in &mut open {
        wire.expect_health();
    }
    drop(open.pop());
    eventually("its permit is released", || RawConnection::to(&server).is_healthy());
}

#[test]
fn limits_connections_of_a_client_unless_it_is_a_trusted_proxy() {
    let limited = Setup::default().with("LIMITS_CONNECTIONS_PER_CLIENT", 2);
    let of_strangers = limited.clone().with("SERVER_TRUSTED_PROXIES", "").start();
    let mut open: Vec<_> = (0..2).map(|_| RawConnection::to(&of_strangers)).collect();
    open.iter_mut().for_each(RawConnection::expect_health);
    let mut refused = RawConnection::to(&of_strangers);
    refused.send(HEALTH);
    assert_eq!(refused.read_to_end().0, "");
    let of_proxies = limited.with("SERVER_TRUSTED_PROXIES", "127.0.0.0/8").start();
    let mut open: Vec<_> = (0..6).map(|_| RawConnection::to(&of_proxies)).collect();
    open.iter_mut().for_each(RawConnection::expect_health);
}

#[test]
fn rejects_requests_over_the_limit_at_once_and_releases_permits() {
    let model = support::FakeModel::start(support::ModelBehaviour::Gated(vec!["大吉。"]));
    let server = model.setup().with("LIMITS_REQUESTS", 1).start();
    // Sign-in needs the only permit too.
    let user = server.sign_in("13800138000");
    let ask = || {
        let question = json!({ "question": "今年换工作合适吗？" });
        server.post("/divination/enhanced").by(&user).json(&question)
    };
    scope(|scope| {
        let slow = scope.spawn(|| ask().send().status);
        model.wait_for_calls(1);
        for _ in 0..3 {
            let refused = server.get("/healthz").send().expect_problem(503, "overloaded");
            assert!(refused.header("retry-after").is_some());
        }
        model.open_gate();
        assert_eq!(slow.join().unwrap(), 200);
    });
    server.get("/healthz").send().expect(200);
}

#[test]
fn a_slow_body_takes_no_request_permit() {
    let server = Setup::default().with("LIMITS_REQUESTS", 1).start();
    let head =
        "POST /auth/login HTTP/1.1\r\nhost: yarrow\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n";
    let mut slow: Vec<_> = (0..8).map(|_| RawConnection::to(&server)).collect();
    for wire in &mut slow {
        assert!(wire.send(head) && wire.send("{"));
    }
    for _ in 0..20 {
        server.get("/healthz").send().expect(200);
        server.post("/auth/login").json(&json!({})).send().expect(422);
    }
    for wire in &mut slow {
        assert!(wire.send("}"));
        wire.receive().expect("no response");
    }
}

#[test]
fn limits_the_held_bytes_of_slow_bodies_by_sender() {
    let server = Setup::default().with("LIMITS_HELD_BYTES_PER_USER", "1 MiB").start();
    let (user, other) = (server.sign_in("13800138000"), server.sign_in("13800138001"));
    let long = json!({ "localRecordId": "1", "aiResult": format!("x{}", "\u{1}".repeat(16_000)) }).to_string();
    let (beginning, end) = long.split_at(40_000);
    let begin = |user: &Caller| {
        let mut wire = RawConnection::to(&server);
        let head = "POST /divination-history/save HTTP/1.1\r\nhost: yarrow\r\ncontent-type: application/json\r\n";
        let (length, token) = (long.len(), &user.token);
        assert!(
            wire.send(&format!("{head}content-length: {length}\r\nauthorization: Bearer {token}\r\n\r\n{beginning}"))
        );
        wire
    };
    let status = |wire: &mut RawConnection| wire.receive().expect("no response").0[9..12].to_owned();
    let is_answered = |wire: &RawConnection| {
        wire.0.set_nonblocking(true).unwrap();
        let is_answered = wire.0.peek(&mut [0]).is_ok();
        wire.0.set_nonblocking(false).unwrap();
        is_answered
    };
    let mut wires: Vec<_> = (0..30).map(|_| begin(&user)).collect();
    eventually("some are rejected", || wires.iter().any(is_answered));
    let (mut refused, slow): (Vec<_>, Vec<_>) = wires.drain(..).partition(is_answered);
    let (head, body) = refused[0].receive().unwrap();
    assert!(head.starts_with("http/1.1 503") && head.contains("retry-after: 1"), "{head}");
    assert!(String::from_utf8(body).unwrap().contains("\"overloaded\""));
    assert!(slow.len() > 5, "{}", slow.len());
    // Bodies of others still arrive.
    let save = |user: &Caller| {
        let mut wire = begin(user);
        assert!(wire.send(end));
        status(&mut wire)
    };
    assert_eq!(save(&other), "200");
    // Aborted and completed bodies give their bytes back.
    drop((slow, refused));
    eventually("the bytes are given back", || {
        let mut wires: Vec<_> = (0..8).map(|_| begin(&user)).collect();
        wires.iter_mut().all(|wire| wire.send(end) && status(wire) == "200")
    });
}

#[test]
fn a_body_in_tiny_chunks_uses_no_more_memory() {
    const PIECES: usize = 150_000;
    let server = Setup::default().in_own_process().start();
    let user = server.sign_in("13800138000");
    let head = format!(
        "POST /divination-history/save HTTP/1.1\r\nhost: yarrow\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n",
        user.token
    );
    let before = server.memory();
    let mut wires: Vec<_> = (0..8).map(|_| RawConnection::to(&server)).collect();
    for wire in &mut wires {
        assert!(wire.send(&head) && wire.send(&"1\r\nx\r\n".repeat(PIECES)));
    }
    for _ in 0..20 {
        let grown = server.memory().saturating_sub(before);
        assert!(grown < 4 * 8 * PIECES as u64, "8 bodies of {PIECES} bytes use {grown}");
        sleep(Duration::from_millis(100));
    }
    for wire in &mut wires {
        assert!(wire.send("0\r\n\r\n"));
        let (head, body) = wire.receive().expect("no response");
        assert!(head.starts_with("http/1.1 400"), "{head}");
        assert!(String::from_utf8(body).unwrap().contains("invalid_json"));
    }
}

/// Waits until a response begins, without reading it.
fn expect_beginning(wire: &RawConnection) {
    let mut head = [0; 12];
    wire.0.peek(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");
}

/// Saves records, each of which adds some 190 KB to a response.
fn save_long_records(server: &Server, user: &Caller, records: usize) {
    let text = format!("x{}", "\u{1}".repeat(32_000));
    for number in 0..records {
        let record = json!({ "localRecordId": format!("{number}"), "aiResult": text });
        server.post("/divination-history/save").by(user).json(&record).send().expect(200);
    }
}

fn list_all(server: &Server, user: &Caller) -> support::Request {
    server.post("/divination-history/get").by(user).json(&json!({ "size": 100 }))
}

/// Requests all records on a connection that need not be read.
fn ask_for_all(server: &Server, user: &Caller) -> RawConnection {
    let mut wire = RawConnection::to(server);
    let head = "POST /divination-history/get?size=100 HTTP/1.1\r\nhost: yarrow\r\nconnection: close\r\n";
    assert!(wire.send(&format!("{head}content-length: 0\r\nauthorization: Bearer {}\r\n\r\n", user.token)));
    wire
}

#[test]
fn limits_a_user_to_few_large_responses_at_a_time() {
    let server = Setup::default().start();
    let (user, other) = (server.sign_in("13800138000"), server.sign_in("13800138001"));
    // More than the socket buffers hold, and more than half of what a user may leave unread.
    save_long_records(&server, &user, 90);
    save_long_records(&server, &other, 10);
    let list = |user: &Caller| list_all(&server, user);
    let mut reader = ask_for_all(&server, &user);
    expect_beginning(&reader);
    let refused = list(&user).send().expect_problem(503, "overloaded");
    assert!(refused.header("retry-after").is_some());
    // Other users and small responses are not affected.
    list(&other).send().expect(200);
    server.get("/coin/balance").by(&user).send().expect(200);
    let mut received = Vec::new();
    reader.0.read_to_end(&mut received).unwrap();
    assert!(received.len() > 17_000_000 && received.ends_with(b"}"), "{} bytes", received.len());
    // A client that disconnects gives its bytes back too.
    let leaving = ask_for_all(&server, &user);
    expect_beginning(&leaving);
    list(&user).send().expect(503);
    drop(leaving);
    eventually("there is room again", || list(&user).send().status == 200);
}

/// Sends a request more often than the socket buffers hold its response, and reads nothing.
fn leave_unread(server: &Server, request: &str) -> RawConnection {
    let mut wire = RawConnection::to(server);
    assert!(wire.send(&request.repeat(8)));
    wire.0.peek(&mut [0]).unwrap();
    wire
}

#[test]
fn unread_copies_of_a_static_file_share_their_bytes() {
    let server = Setup::default().in_own_process().start();
    let before = server.memory();
    let request = "GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nhost: yarrow\r\n\r\n";
    let wires: Vec<_> = (0..200).map(|_| leave_unread(&server, request)).collect();
    let grown = server.memory().saturating_sub(before);
    assert!(grown < 60 << 20, "{} unread files use {grown}", wires.len());
}

/// Asks for a list of history records in a client's name.
fn list_request(user: &Caller, size: u32, from: &str) -> String {
    format!(
        "POST /divination-history/get?size={size} HTTP/1.1\r\nhost: yarrow\r\ncontent-length: 0\r\n\
         x-forwarded-for: {from}\r\nauthorization: Bearer {}\r\n\r\n",
        user.token
    )
}

/// Returns the status of a list that is read.
fn list_status(server: &Server, user: &Caller, from: &str) -> u16 {
    list_all(server, user).header("x-forwarded-for", from).send().status
}

#[test]
fn limits_the_held_bytes_of_a_user() {
    let server = Setup::default().in_own_process().start();
    let (user, other) = (server.sign_in("13800138000"), server.sign_in("13800138001"));
    save_long_records(&server, &user, 5);
    save_long_records(&server, &other, 5);
    let length = list_all(&server, &user).send().expect(200).bytes.len() as u64;
    assert!(length > 900 << 10, "{length}");
    let before = server.memory();
    let wires: Vec<_> = (0..100).map(|_| leave_unread(&server, &list_request(&user, 100, "203.0.113.1"))).collect();
    eventually("the budget is spent", || list_all(&server, &user).send().status == 503);
    let grown = server.memory().saturating_sub(before);
    assert!(grown < 70 << 20, "{} unread lists use {grown}", wires.len());
    list_all(&server, &user).send().expect_problem(503, "overloaded");
    // Small responses and those of others are still sent.
    server.get("/coin/balance").by(&user).send().expect(200);
    list_all(&server, &other).send().expect(200);
    drop(wires);
    eventually("the bytes are given back", || list_all(&server, &user).send().status == 200);
}

#[test]
fn limits_the_held_bytes_of_a_network_and_overall() {
    let setup = Setup::default().with("LIMITS_HELD_BYTES_PER_CLIENT", "2 MiB").with("LIMITS_HELD_BYTES", "4 MiB");
    let server = setup.start();
    let users: Vec<_> = (0..4).map(|number| server.sign_in(&format!("1380013800{number}"))).collect();
    for user in &users {
        save_long_records(&server, user, 4);
    }
    let fill = |user: &Caller, from: &str| -> Vec<_> {
        (0..12).map(|_| leave_unread(&server, &list_request(user, 4, from))).collect()
    };
    let first = fill(&users[0], "203.0.113.1");
    eventually("the network's budget is spent", || list_status(&server, &users[1], "203.0.113.1") == 503);
    assert_eq!(list_status(&server, &users[1], "203.0.113.2"), 200);
    let second = fill(&users[2], "203.0.113.3");
    eventually("the whole budget is spent", || list_status(&server, &users[3], "203.0.113.4") == 503);
    drop((first, second));
    eventually("the bytes are given back", || list_status(&server, &users[3], "203.0.113.4") == 200);
}

#[test]
fn logs_a_request_whose_client_disconnected() {
    let mut server = Setup::default().with_metrics().start();
    let user = server.sign_in("13800138000");
    let save = format!(
        "POST /divination-history/save?localRecordId=r-1 HTTP/1.1\r\nhost: yarrow\r\nauthorization: Bearer {}\r\n\
         x-request-id: left-early\r\ncontent-length: 0\r\n\r\n",
        user.token
    );
    disconnect_after(&mut server, &save);
    let database = server.network_log();
    let logged = "select status from access_log where request_id = 'left-early' and route = '/divination-history/save'";
    let status = || database.query_row(logged, (), |row| row.get::<_, i64>(0)).ok();
    assert_eq!(eventually_some("the request in the network log", status), 499);
    // The write continues without its client.
    assert_eq!(server.value::<i64>("select count(*) from history"), 1);
}

/// A model server that responds to each call on demand.
struct FakeModel {
    address: String,
    calls: std::sync::mpsc::Receiver<Sender<Piece>>,
}

enum Piece {
    Text(&'static str),
    End,
}

impl FakeModel {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/v1", listener.local_addr().unwrap());
        let (reported, calls) = channel();
        spawn(move || {
            for stream in listener.incoming() {
                let (pieces, to_send) = channel();
                let stream = stream.unwrap();
                if reported.send(pieces).is_err() {
                    return;
                }
                spawn(move || answer_in_pieces(stream, to_send));
            }
        });
        Self { address, calls }
    }

    fn setup(&self) -> Setup {
        let setup = Setup::default().with("LLM_PROVIDER", "openai").with("LLM_MODEL", "oracle");
        setup.with("LLM_BASE_URL", &self.address)
    }

    /// Waits for the next call.
    fn next_call(&self) -> Sender<Piece> {
        self.calls.recv_timeout(Duration::from_secs(10)).expect("the model was not called")
    }
}

fn answer_in_pieces(stream: TcpStream, pieces: std::sync::mpsc::Receiver<Piece>) {
    let mut wire = RawConnection(stream);
    // Read the whole request: closing with unread bytes would reset the response.
    wire.receive();
    let mut send = |text: &str| {
        wire.send(text);
    };
    send("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n");
    for piece in pieces {
        match piece {
            Piece::Text(text) => {
                let delta = json!({ "model": "oracle", "choices": [{ "index": 0, "delta": { "content": text } }] });
                send(&format!("data: {delta}\n\n"));
            }
            Piece::End => {
                let end =
                    json!({ "model": "oracle", "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] });
                send(&format!("data: {end}\n\ndata: [DONE]\n\n"));
                return;
            }
        }
    }
}

fn ask(server: &Server, user: &Caller) -> crate::support::Request {
    let question = json!({ "question": "何时启程？", "divinationData": { "lines": [7, 8, 8, 8, 7, 6] } });
    server.post("/divination/enhanced").by(user).json(&question)
}

#[test]
fn a_shutdown_completes_running_requests_and_accepts_no_new_ones() {
    let model = FakeModel::start();
    let mut server = model.setup().start();
    let user = server.sign_in("13800138000");
    let request = ask(&server, &user);
    let mut idle = RawConnection::to(&server);
    idle.expect_health();
    let running = spawn(move || request.send());
    let call = model.next_call();
    call.send(Piece::Text("行")).unwrap();
    server.ask_to_stop();
    assert_eq!(idle.read_to_end().0, "");
    assert!(TcpStream::connect(server.address()).is_err(), "a new connection was accepted");
    sleep(Duration::from_millis(500));
    assert!(!running.is_finished());
    call.send(Piece::Text("则吉")).unwrap();
    call.send(Piece::End).unwrap();
    let response = running.join().unwrap().expect(200).json();
    assert_eq!(response["result"], "行则吉");
    assert_eq!(server.wait_for_end(), Some(0));
    let stored = "select count(*) from interpretations where status = 'succeeded'";
    assert_eq!(server.database().query_row(stored, (), |row| row.get::<_, i64>(0)), Ok(1));
}

#[test]
fn a_shutdown_waits_no_longer_than_configured() {
    let model = FakeModel::start();
    let mut server = model.setup().with("LIMITS_DRAIN_TIMEOUT", "1 s").start();
    let user = server.sign_in("13800138000");
    let request = ask(&server, &user);
    let running = spawn(move || request.try_send().is_err());
    let _call = model.next_call();
    let started_at = Instant::now();
    assert_eq!(server.terminate(), Some(0));
    assert_between(started_at.elapsed(), 900, 20_000);
    assert!(running.join().unwrap(), "the request completed");
}

/// Waits until the server accepts no new connections.
fn wait_until_closed(server: &Server) {
    eventually("no connection is accepted", || TcpStream::connect(server.address()).is_err());
}

#[test]
fn a_second_signal_ends_the_wait() {
    let model = FakeModel::start();
    let mut server = model.setup().with("LIMITS_DRAIN_TIMEOUT", "60 s").start();
    let user = server.sign_in("13800138000");
    let request = ask(&server, &user);
    let running = spawn(move || request.try_send().is_err());
    let _call = model.next_call();
    let started_at = Instant::now();
    server.ask_to_stop();
    wait_until_closed(&server);
    assert_eq!(server.terminate(), Some(0));
    assert_between(started_at.elapsed(), 0, 40_000);
    assert!(running.join().unwrap(), "the request completed");
}

#[test]
fn queued_changes_are_committed_before_the_process_ends() {
    let mut server = Setup::default().with_metrics().start();
    let metrics = server.metrics();
    let user = server.sign_in("13800138000");
    let other = server.database();
    other.execute_batch("begin immediate").unwrap();
    let before = Server::waiting_changes(&metrics);
    let record = json!({ "localRecordId": "r-1" });
    let request = server.post("/divination-history/save").by(&user).json(&record);
    let running = spawn(move || request.send());
    eventually("the change is queued", || Server::waiting_changes(&metrics) > before);
    server.ask_to_stop();
    wait_until_closed(&server);
    other.execute_batch("rollback").unwrap();
    running.join().unwrap().expect(200);
    assert_eq!(server.wait_for_end(), Some(0));
    assert_eq!(other.query_row("select count(*) from history", (), |row| row.get::<_, i64>(0)), Ok(1));
}

/// Requests an event stream and returns everything until the end or the close.
fn stream(server: &Server, user: &Caller, headers: &str) -> RawConnection {
    let body = json!({ "question": "何时启程？" }).to_string();
    let mut wire = RawConnection::to(server);
    wire.send(&format!(
        "POST /divination/enhanced HTTP/1.1\r\nhost: yarrow\r\nauthorization: Bearer {}\r\naccept: text/event-stream\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n{headers}\r\n{body}",
        user.token,
        body.len()
    ));
    wire
}

/// Reads until this text.
#[track_caller]
fn read_until(wire: &mut RawConnection, text: &str) -> String {
    let mut received = Vec::new();
    let mut piece = [0; 4096];
    while !String::from_utf8_lossy(&received).contains(text) {
        let count = wire.0.read(&mut piece).unwrap_or_else(|error| {
            panic!("{error} before {text:?}: {}", String::from_utf8_lossy(&received));
        });
        assert!(count > 0, "closed before {text:?}: {}", String::from_utf8_lossy(&received));
        received.extend_from_slice(&piece[..count]);
    }
    String::from_utf8_lossy(&received).into_owned()
}

#[test]
fn a_stream_may_outlast_the_idle_timeout() {
    let model = FakeModel::start();
    let server = model.setup().with("LIMITS_IDLE_TIMEOUT", "5 s").start();
    let user = server.sign_in("13800138000");
    let mut wire = stream(&server, &user, "");
    let call = model.next_call();
    call.send(Piece::Text("first")).unwrap();
    read_until(&mut wire, "first");
    sleep(Duration::from_millis(7_500));
    call.send(Piece::Text("second")).unwrap();
    call.send(Piece::End).unwrap();
    let received = read_until(&mut wire, "event: done");
    if !received.ends_with("0\r\n\r\n") {
        read_until(&mut wire, "0\r\n\r\n");
    }
    // The idle time starts now, not at the last request.
    sleep(Duration::from_millis(500));
    wire.expect_health();
}

#[test]
fn a_slow_response_leaves_its_connection_usable() {
    let model = FakeModel::start();
    let server = model.setup().with("LIMITS_IDLE_TIMEOUT", "5 s").start();
    let user = server.sign_in("13800138000");
    let body = json!({ "question": "何时启程？" }).to_string();
    let mut wire = RawConnection::to(&server);
    wire.send(&format!(
        "POST /divination/enhanced HTTP/1.1\r\nhost: yarrow\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        user.token,
        body.len()
    ));
    let call = model.next_call();
    sleep(Duration::from_millis(7_500));
    call.send(Piece::Text("则吉")).unwrap();
    call.send(Piece::End).unwrap();
    let (head, _) = wire.receive().expect("no response");
    assert!(head.starts_with("http/1.1 200"), "{head}");
    sleep(Duration::from_millis(400));
    wire.expect_health();
}

#[test]
fn does_not_buffer_a_stream_for_compression() {
    let model = FakeModel::start();
    let server = model.setup().start();
    let user = server.sign_in("13800138000");
    let mut wire = stream(&server, &user, "accept-encoding: gzip\r\n");
    let call = model.next_call();
    call.send(Piece::Text("first")).unwrap();
    let received = read_until(&mut wire, "first");
    assert!(!received.to_lowercase().contains("content-encoding"), "{received}");
    call.send(Piece::End).unwrap();
    read_until(&mut wire, "event: done");
}

#[test]
fn compresses_large_responses_on_request_only() {
    let server = Setup::default().start();
    let plain = server.get("/openapi.json").send().expect(200);
    let plain_text = plain.text();
    assert_eq!(plain.header("content-encoding"), None);
    let mut wire = RawConnection::to(&server);
    wire.send("GET /openapi.json HTTP/1.1\r\nhost: yarrow\r\naccept-encoding: gzip\r\nconnection: close\r\n\r\n");
    let mut received = Vec::new();
    wire.0.read_to_end(&mut received).unwrap();
    let end_of_head = received.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    let head = String::from_utf8_lossy(&received[..end_of_head]).to_lowercase();
    assert!(head.contains("content-encoding: gzip") && head.contains("vary: accept-encoding"), "{head}");
    assert!(received.len() < plain_text.len() / 2);
    // The documentation page is stored compressed and decompressed for clients that need it.
    for (accepted, is_packed) in [("gzip", true), ("identity", false), ("gzip;q=0", false)] {
        let mut wire = RawConnection::to(&server);
        let file = "/docs/swagger-ui-bundle.js";
        wire.send(&format!("GET {file} HTTP/1.1\r\nhost: yarrow\r\naccept-encoding: {accepted}\r\n\r\n"));
        let (head, body) = wire.receive().unwrap();
        assert_eq!(head.contains("content-encoding: gzip"), is_packed, "{head}");
        assert_eq!(body.starts_with(&[0x1f, 0x8b]), is_packed, "{accepted}");
        assert!(head.contains("vary: accept-encoding"), "{head}");
    }
    let mut wire = RawConnection::to(&server);
    wire.send("GET /healthz HTTP/1.1\r\nhost: yarrow\r\naccept-encoding: gzip\r\n\r\n");
    let (head, body) = wire.receive().unwrap();
    assert!(!head.contains("content-encoding"), "{head}");
    assert_eq!(body, b"{\"status\":\"ok\"}");
}

#[test]
fn an_unread_long_response_uses_little_server_memory() {
    let server = Setup::default().in_own_process().start();
    let length = server.get("/openapi.json").send().expect(200).bytes.len();
    let before = server.memory();
    let mut wires: Vec<_> = (0..100).map(|_| RawConnection::to(&server)).collect();
    for wire in &mut wires {
        wire.send("GET /openapi.json HTTP/1.1\r\nhost: yarrow\r\n\r\n");
        // The response has begun and stops at the socket buffers.
        wire.0.read_exact(&mut [0; 12]).unwrap();
    }
    let grown = server.memory().saturating_sub(before);
    assert!(grown < 100 * length as u64 / 10, "100 responses of {length} bytes use {grown}");
    // A client that continues gets the whole.
    let mut rest = vec![0; length];
    wires[0].0.read_exact(&mut rest).unwrap();
}

#[test]
fn head_returns_the_headers_of_get_without_a_body() {
    let server = Setup::default().start();
    for path in ["/healthz", "/openapi.json"] {
        let length = server.get(path).send().expect(200).bytes.len();
        let mut wire = RawConnection::to(&server);
        wire.send(&format!("HEAD {path} HTTP/1.1\r\nhost: yarrow\r\nconnection: close\r\n\r\n"));
        let (response, _) = wire.read_to_end();
        let response = response.to_lowercase();
        assert!(response.starts_with("http/1.1 200") && response.ends_with("\r\n\r\n"), "{response}");
        assert!(response.contains(&format!("content-length: {length}\r\n")), "{response}");
    }
}

#[test]
fn a_disconnect_releases_the_connection() {
    let server = Setup::default().with("LIMITS_CONNECTIONS", 8).start();
    for _ in 0..20 {
        eventually("six slots are released", || {
            let mut open: Vec<_> = (0..6).map(|_| RawConnection::to(&server)).collect();
            open.iter_mut().all(RawConnection::is_healthy)
        });
    }
}

#[test]
fn serves_requests_beside_two_thousand_idle_connections() {
    // This process holds the other ends, and its soft limit on open files may be too low.
    let own = std::process::id().to_string();
    let raised = std::process::Command::new("prlimit").args(["--pid", &own, "--nofile=8192:"]).status();
    assert!(raised.expect("this test needs `prlimit` of util-linux").success());
    let setup = Setup::default().after("ulimit -n 8192").with("LIMITS_HEADER_TIMEOUT", "60 s");
    let server = setup.start();
    let connections: Vec<_> = scope(|scope| {
        let threads: Vec<_> =
            (0..8).map(|_| scope.spawn(|| (0..250).map(|_| RawConnection::to(&server)).collect::<Vec<_>>())).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(connections.len(), 2_000);
    let user = server.sign_in("13800138000");
    for _ in 0..50 {
        let started_at = Instant::now();
        server.get("/user/profile").by(&user).send().expect(200);
        assert!(started_at.elapsed() < Duration::from_secs(20), "{:?}", started_at.elapsed());
    }
    let mut last = connections.into_iter().last().unwrap();
    last.expect_health();
}
