//! What bounds a connection and a request, and how the service stops.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::mpsc::{Sender, channel},
    thread::{scope, sleep, spawn},
    time::{Duration, Instant},
};

use serde_json::json;

use crate::support::{
    self, Caller, Server, Setup, eventually, found_eventually,
    raw::{HEALTH, Wire, leave_after},
};

#[track_caller]
fn assert_between(took: Duration, least: u64, most: u64) {
    let bounds = Duration::from_millis(least)..Duration::from_millis(most);
    assert!(bounds.contains(&took), "it took {took:?}");
}

#[test]
fn a_client_that_sends_its_head_a_byte_at_a_time_is_cut_off() {
    let server = Setup::default().with("LIMITS_HEADER_TIMEOUT", "1 s").start();
    for is_first_request in [true, false] {
        let begun = Instant::now();
        let mut wire = Wire::to(&server);
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
        let (answer, _) = wire.read_to_end();
        assert_eq!(answer, "");
        assert_between(begun.elapsed(), 800, 8_000);
        wire.0.shutdown(Shutdown::Both).ok();
        drip.join().unwrap();
    }
}

#[test]
fn a_client_that_says_nothing_is_cut_off() {
    let server = Setup::default().with("LIMITS_HEADER_TIMEOUT", "1 s").start();
    let begun = Instant::now();
    let (answer, _) = Wire::to(&server).read_to_end();
    assert_eq!(answer, "");
    assert_between(begun.elapsed(), 800, 8_000);
}

#[test]
fn the_door_for_metrics_has_the_same_limits_and_counts_apart() {
    let setup = Setup::default().with("LIMITS_HEADER_TIMEOUT", "1 s").with_metrics();
    let mut server = setup.with("LIMITS_CONNECTIONS", 20).start();
    let page = server.metrics();
    let address = page.trim_start_matches("http://").trim_end_matches("/metrics");
    let connect = || {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Wire(stream)
    };
    let begun = Instant::now();
    let (answer, _) = connect().read_to_end();
    assert_eq!(answer, "");
    assert_between(begun.elapsed(), 800, 8_000);
    // Who fills one door leaves the other open.
    let mut crowd: Vec<_> = (0..20).map(|_| Wire::to(&server)).collect();
    crowd.iter_mut().for_each(Wire::expect_health);
    let mut page = connect();
    assert!(page.send("GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n"));
    assert!(page.receive().expect("no answer").0.starts_with("http/1.1 200"));
    for (request, status) in [("GET /healthz", "404"), ("POST /metrics", "405")] {
        assert!(page.send(&format!("{request} HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n")));
        assert!(page.receive().expect("no answer").0.starts_with(&format!("http/1.1 {status}")), "{request}");
    }
}

#[test]
fn as_many_files_may_be_open_as_the_system_lets_it() {
    let server = Setup::default().after("ulimit -Sn 100 && ulimit -Hn 3000").start();
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.process_id())).unwrap();
    let files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    assert_eq!(files.split_whitespace().skip(3).take(2).collect::<Vec<_>>(), ["3000", "3000"], "{files}");
    assert!(server.lines().iter().any(|line| line.contains("fewer open files than limits.connections needs")));
}

#[test]
fn a_connection_may_be_idle_for_a_while_and_no_longer() {
    let setup = Setup::default().with("LIMITS_HEADER_TIMEOUT", "1 s").with("LIMITS_IDLE_TIMEOUT", "10 s");
    let server = setup.start();
    let mut wire = Wire::to(&server);
    wire.expect_health();
    // Longer than a head may take: a quiet client is not a slow one.
    for _ in 0..2 {
        sleep(Duration::from_millis(2_500));
        wire.expect_health();
    }
    let (answer, took) = wire.read_to_end();
    assert_eq!(answer, "");
    assert_between(took, 5_000, 20_000);
}

#[test]
fn a_body_that_does_not_arrive_is_answered_and_a_slow_one_too() {
    let server = Setup::default().with("LIMITS_BODY_TIMEOUT", "1 s").start();
    let mut wire = Wire::to(&server);
    let head =
        "POST /auth/login HTTP/1.1\r\nhost: yarrow\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n";
    let begun = Instant::now();
    assert!(wire.send(head) && wire.send("{\"code\":"));
    let (head, body) = wire.receive().expect("no answer");
    assert_between(begun.elapsed(), 800, 20_000);
    assert!(head.starts_with("http/1.1 408"), "{head}");
    assert!(String::from_utf8(body).unwrap().contains("\"request_timeout\""));
    // The rest of the body would be taken for the next request.
    assert_eq!(wire.read_to_end().0, "");
}

#[test]
fn a_client_that_leaves_its_answers_unread_is_cut_off() {
    const RECORD: usize = 30_000;
    let server = Setup::default().with("LIMITS_IDLE_TIMEOUT", "1 s").start();
    let user = server.sign_in("13800138000");
    for number in 0..60 {
        let record = json!({ "localRecordId": number.to_string(), "aiResult": "x".repeat(RECORD) });
        server.post("/divination-history/save").by(&user).json(&record).send().expect(201);
    }
    // More than the buffers of both sides can hold.
    let mut wire = Wire::to(&server);
    let head =
        format!("POST /divination-history/get HTTP/1.1\r\nhost: yarrow\r\nauthorization: Bearer {}\r\n", user.token);
    assert!(wire.send(&format!("{head}content-length: 0\r\n\r\n").repeat(16)));
    sleep(Duration::from_secs(4));
    // Whoever reads now finds what was under way, and then the end.
    let (mut received, mut buffer) = (0, vec![0; 1 << 16]);
    while let Ok(length) = wire.0.read(&mut buffer)
        && length > 0
    {
        received += length;
    }
    assert!(received < 16 * 60 * RECORD, "the server waited for a client that did not read: {received} bytes");
    Wire::to(&server).expect_health();
}

#[test]
fn connections_beyond_the_limit_are_closed_and_others_go_on() {
    let server = Setup::default().with("LIMITS_CONNECTIONS", 4).start();
    let mut open: Vec<_> = (0..4).map(|_| Wire::to(&server)).collect();
    for wire in &mut open {
        wire.expect_health();
    }
    let mut refused = Wire::to(&server);
    refused.send(HEALTH);
    assert_eq!(refused.read_to_end().0, "");
    for wire in &mut open {
        wire.expect_health();
    }
    drop(open.pop());
    eventually("its place is free", || Wire::to(&server).is_healthy());
}

#[test]
fn one_client_cannot_take_all_connections_unless_it_is_a_trusted_proxy() {
    let limited = Setup::default().with("LIMITS_CONNECTIONS_PER_CLIENT", 2);
    let of_strangers = limited.clone().with("SERVER_TRUSTED_PROXIES", "").start();
    let mut open: Vec<_> = (0..2).map(|_| Wire::to(&of_strangers)).collect();
    open.iter_mut().for_each(Wire::expect_health);
    let mut refused = Wire::to(&of_strangers);
    refused.send(HEALTH);
    assert_eq!(refused.read_to_end().0, "");
    let of_proxies = limited.with("SERVER_TRUSTED_PROXIES", "127.0.0.0/8").start();
    let mut open: Vec<_> = (0..6).map(|_| Wire::to(&of_proxies)).collect();
    open.iter_mut().for_each(Wire::expect_health);
}

#[test]
fn requests_beyond_the_limit_are_refused_at_once_and_counted_back() {
    let model = support::Model::start(support::Behaviour::Gated(vec!["大吉。"]));
    let server = model.setup().with("LIMITS_REQUESTS", 1).start();
    // The one place is needed for signing in, too.
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
fn a_body_that_comes_slowly_takes_no_place_from_others() {
    let server = Setup::default().with("LIMITS_REQUESTS", 1).start();
    let head =
        "POST /auth/login HTTP/1.1\r\nhost: yarrow\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n";
    let mut slow: Vec<_> = (0..8).map(|_| Wire::to(&server)).collect();
    for wire in &mut slow {
        assert!(wire.send(head) && wire.send("{"));
    }
    for _ in 0..20 {
        server.get("/healthz").send().expect(200);
        server.post("/auth/login").json(&json!({})).send().expect(422);
    }
    for wire in &mut slow {
        assert!(wire.send("}"));
        wire.receive().expect("no answer");
    }
}

#[test]
fn long_bodies_that_come_slowly_are_bounded_for_each_sender_and_keep_nobody_else_away() {
    let server = Setup::default().start();
    let (user, other) = (server.sign_in("13800138000"), server.sign_in("13800138001"));
    let long = json!({ "localRecordId": "1", "aiResult": format!("x{}", "\u{1}".repeat(16_000)) }).to_string();
    let (beginning, end) = long.split_at(40_000);
    let begin = |user: &Caller| {
        let mut wire = Wire::to(&server);
        let head = "POST /divination-history/save HTTP/1.1\r\nhost: yarrow\r\ncontent-type: application/json\r\n";
        let (length, token) = (long.len(), &user.token);
        assert!(
            wire.send(&format!("{head}content-length: {length}\r\nauthorization: Bearer {token}\r\n\r\n{beginning}"))
        );
        wire
    };
    let status = |wire: &mut Wire| wire.receive().expect("no answer").0[9..12].to_owned();
    let is_answered = |wire: &Wire| {
        wire.0.set_nonblocking(true).unwrap();
        let is_answered = wire.0.peek(&mut [0]).is_ok();
        wire.0.set_nonblocking(false).unwrap();
        is_answered
    };
    let mut wires: Vec<_> = (0..18).map(|_| begin(&user)).collect();
    eventually("two are refused", || wires.iter().filter(|wire| is_answered(wire)).count() == 2);
    let (mut refused, mut slow): (Vec<_>, Vec<_>) = wires.drain(..).partition(is_answered);
    for wire in &mut refused {
        assert!(wire.send(end));
        let (head, body) = wire.receive().unwrap();
        assert!(head.starts_with("http/1.1 503") && head.contains("retry-after: 1"), "{head}");
        assert!(String::from_utf8(body).unwrap().contains("\"overloaded\""));
    }
    // The user's short ones get through, and whatever others send.
    let short = json!({ "localRecordId": "2", "jsonData": "x".repeat(15_000) });
    server.post("/divination-history/save").by(&user).json(&short).send().expect(201);
    let save = |user: &Caller| {
        let mut wire = begin(user);
        assert!(wire.send(end));
        status(&mut wire)
    };
    assert_eq!(save(&other), "201");
    assert_eq!(save(&user), "503");
    // What has come takes no place any more, and neither does what was given up.
    assert!(slow[0].send(end));
    assert_eq!(status(&mut slow[0]), "201");
    assert_eq!(save(&user), "200");
    drop(slow);
    eventually("all places are free", || {
        let mut wires: Vec<_> = (0..16).map(|_| begin(&user)).collect();
        wires.iter_mut().all(|wire| wire.send(end) && status(wire) == "200")
    });
}

#[test]
fn a_body_in_tiny_pieces_is_held_in_no_more_memory_than_others() {
    const PIECES: usize = 150_000;
    let server = Setup::default().start();
    let user = server.sign_in("13800138000");
    let head = format!(
        "POST /divination-history/save HTTP/1.1\r\nhost: yarrow\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n",
        user.token
    );
    let before = server.memory();
    let mut wires: Vec<_> = (0..8).map(|_| Wire::to(&server)).collect();
    for wire in &mut wires {
        assert!(wire.send(&head) && wire.send(&"1\r\nx\r\n".repeat(PIECES)));
    }
    for _ in 0..20 {
        let grown = server.memory().saturating_sub(before);
        assert!(grown < 4 * 8 * PIECES as u64, "8 bodies of {PIECES} bytes make it hold {grown}");
        sleep(Duration::from_millis(100));
    }
    for wire in &mut wires {
        assert!(wire.send("0\r\n\r\n"));
        let (head, body) = wire.receive().expect("no answer");
        assert!(head.starts_with("http/1.1 400"), "{head}");
        assert!(String::from_utf8(body).unwrap().contains("invalid_json"));
    }
}

/// Waits until an answer begins, and reads nothing of it.
fn expect_beginning(wire: &Wire) {
    let mut head = [0; 12];
    wire.0.peek(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");
}

/// Saves as many records, each of which makes an answer longer by some 190 KB.
fn save_long_records(server: &Server, user: &Caller, records: usize) {
    let text = format!("x{}", "\u{1}".repeat(32_000));
    for number in 0..records {
        let record = json!({ "localRecordId": format!("{number}"), "aiResult": text });
        server.post("/divination-history/save").by(user).json(&record).send().expect(201);
    }
}

fn list_all(server: &Server, user: &Caller) -> support::Request {
    server.post("/divination-history/get").by(user).json(&json!({ "size": 100 }))
}

/// The same on a connection that need not be read.
fn ask_for_all(server: &Server, user: &Caller) -> Wire {
    let mut wire = Wire::to(server);
    let head = "POST /divination-history/get?size=100 HTTP/1.1\r\nhost: yarrow\r\nconnection: close\r\n";
    assert!(wire.send(&format!("{head}content-length: 0\r\nauthorization: Bearer {}\r\n\r\n", user.token)));
    wire
}

#[test]
fn a_large_answer_is_held_for_each_user_once() {
    let server = Setup::default().start();
    let (user, other) = (server.sign_in("13800138000"), server.sign_in("13800138001"));
    // More than the buffers between take.
    save_long_records(&server, &user, 90);
    save_long_records(&server, &other, 10);
    let list = |user: &Caller| list_all(&server, user);
    let mut reader = ask_for_all(&server, &user);
    expect_beginning(&reader);
    // Read for longer than one that nobody reads is waited for.
    let (begun, mut received, mut piece) = (Instant::now(), Vec::new(), vec![0; 60_000]);
    while begun.elapsed() < Duration::from_secs(17) {
        reader.0.read_exact(&mut piece).unwrap();
        received.extend_from_slice(&piece);
        sleep(Duration::from_millis(100));
    }
    let refused = list(&user).send().expect_problem(503, "overloaded");
    assert!(refused.header("retry-after").is_some());
    // Others have theirs, and the same user what is small.
    list(&other).send().expect(200);
    server.get("/coin/balance").by(&user).send().expect(200);
    reader.0.read_to_end(&mut received).unwrap();
    assert!(received.len() > 17_000_000 && received.ends_with(b"}"), "{} bytes", received.len());
    // Whoever leaves without reading gives it back, too.
    let leaving = ask_for_all(&server, &user);
    expect_beginning(&leaving);
    list(&user).send().expect(503);
    drop(leaving);
    eventually("the place is free again", || list(&user).send().status == 200);
}

#[test]
fn a_large_answer_that_nobody_reads_gives_way_to_another() {
    let server = Setup::default().start();
    let user = server.sign_in("13800138000");
    save_long_records(&server, &user, 90);
    let length = list_all(&server, &user).send().expect(200).bytes.len() as u64;
    let before = server.memory();
    let mut wires = Vec::new();
    for _ in 0..2 {
        // All of these stay open, and nobody reads any of them.
        let begun = Instant::now();
        eventually("another is sent", || {
            let (wire, mut head) = (ask_for_all(&server, &user), [0; 12]);
            wire.0.peek(&mut head).unwrap();
            wires.push(wire);
            sleep(Duration::from_millis(300));
            head.ends_with(b"200")
        });
        assert!(begun.elapsed() < Duration::from_secs(40), "{:?}", begun.elapsed());
        let grown = server.memory().saturating_sub(before);
        assert!(grown < 2 * length, "{} connections make it hold {grown}", wires.len());
    }
    assert!(wires.len() > 10, "{}", wires.len());
    // Whoever reads on sees that it is not whole.
    let mut whole = Vec::new();
    let _ = wires[0].0.read_to_end(&mut whole);
    assert!((1..length).contains(&(whole.len() as u64)), "{}", whole.len());
}

#[test]
fn a_request_whose_client_left_is_in_the_network_log() {
    let mut server = Setup::default().with_metrics().start();
    let user = server.sign_in("13800138000");
    let save = format!(
        "POST /divination-history/save?localRecordId=r-1 HTTP/1.1\r\nhost: yarrow\r\nauthorization: Bearer {}\r\n\
         x-request-id: left-early\r\ncontent-length: 0\r\n\r\n",
        user.token
    );
    leave_after(&mut server, &save);
    let database = server.database();
    let logged = "select status from access_log where request_id = 'left-early' and route = '/divination-history/save'";
    let status = || database.query_row(logged, [], |row| row.get::<_, i64>(0)).ok();
    assert_eq!(found_eventually("the request in the network log", status), 499);
    // The write went on without its caller.
    assert_eq!(database.query_row("select count(*) from history", [], |row| row.get::<_, i64>(0)), Ok(1));
}

/// A model server that answers each call as told. It says when a call has come.
struct Model {
    address: String,
    calls: std::sync::mpsc::Receiver<Sender<Piece>>,
}

enum Piece {
    Text(&'static str),
    End,
}

impl Model {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/v1", listener.local_addr().unwrap());
        let (told, calls) = channel();
        spawn(move || {
            for stream in listener.incoming() {
                let (pieces, to_send) = channel();
                let stream = stream.unwrap();
                if told.send(pieces).is_err() {
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

    /// Waits for the next call, to answer it.
    fn next_call(&self) -> Sender<Piece> {
        self.calls.recv_timeout(Duration::from_secs(10)).expect("the model was not asked")
    }
}

fn answer_in_pieces(stream: TcpStream, pieces: std::sync::mpsc::Receiver<Piece>) {
    let mut wire = Wire(stream);
    // The whole request: closing with something unread would break the answer off.
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
fn stopping_lets_running_requests_end_and_takes_no_new_ones() {
    let model = Model::start();
    let mut server = model.setup().start();
    let user = server.sign_in("13800138000");
    let request = ask(&server, &user);
    let mut idle = Wire::to(&server);
    idle.expect_health();
    let running = spawn(move || request.send());
    let call = model.next_call();
    call.send(Piece::Text("行")).unwrap();
    server.ask_to_stop();
    assert_eq!(idle.read_to_end().0, "");
    assert!(TcpStream::connect(server.address()).is_err(), "a new connection was taken");
    sleep(Duration::from_millis(500));
    assert!(!running.is_finished());
    call.send(Piece::Text("则吉")).unwrap();
    call.send(Piece::End).unwrap();
    let answer = running.join().unwrap().expect(200).json();
    assert_eq!(answer["result"], "行则吉");
    assert_eq!(server.wait_for_end(), Some(0));
    let stored = "select count(*) from interpretations where status = 'succeeded'";
    assert_eq!(server.database().query_row(stored, [], |row| row.get::<_, i64>(0)), Ok(1));
}

#[test]
fn stopping_waits_no_longer_than_it_was_told_to() {
    let model = Model::start();
    let mut server = model.setup().with("LIMITS_DRAIN_TIMEOUT", "1 s").start();
    let user = server.sign_in("13800138000");
    let request = ask(&server, &user);
    let running = spawn(move || request.try_send().is_err());
    let _call = model.next_call();
    let begun = Instant::now();
    assert_eq!(server.terminate(), Some(0));
    assert_between(begun.elapsed(), 900, 20_000);
    assert!(running.join().unwrap(), "the request was answered");
}

/// Waits until the server has heard that it is to stop: it then takes no new connection.
fn wait_until_closed(server: &Server) {
    eventually("no connection is taken", || TcpStream::connect(server.address()).is_err());
}

#[test]
fn being_told_to_stop_twice_ends_the_wait() {
    let model = Model::start();
    let mut server = model.setup().with("LIMITS_DRAIN_TIMEOUT", "60 s").start();
    let user = server.sign_in("13800138000");
    let request = ask(&server, &user);
    let running = spawn(move || request.try_send().is_err());
    let _call = model.next_call();
    let begun = Instant::now();
    server.ask_to_stop();
    wait_until_closed(&server);
    assert_eq!(server.terminate(), Some(0));
    assert_between(begun.elapsed(), 0, 40_000);
    assert!(running.join().unwrap(), "the request was answered");
}

#[test]
fn changes_that_were_queued_are_made_before_the_process_ends() {
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
    running.join().unwrap().expect(201);
    assert_eq!(server.wait_for_end(), Some(0));
    assert_eq!(other.query_row("select count(*) from history", [], |row| row.get::<_, i64>(0)), Ok(1));
}

/// Asks for an event stream and gives what came until the connection closed or the stream ended.
fn stream(server: &Server, user: &Caller, headers: &str) -> Wire {
    let body = json!({ "question": "何时启程？" }).to_string();
    let mut wire = Wire::to(server);
    wire.send(&format!(
        "POST /divination/enhanced HTTP/1.1\r\nhost: yarrow\r\nauthorization: Bearer {}\r\naccept: text/event-stream\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n{headers}\r\n{body}",
        user.token,
        body.len()
    ));
    wire
}

/// Reads until this text has come.
#[track_caller]
fn read_until(wire: &mut Wire, text: &str) -> String {
    let mut received = Vec::new();
    let mut piece = [0; 4096];
    while !String::from_utf8_lossy(&received).contains(text) {
        let count = wire.0.read(&mut piece).unwrap_or_else(|error| {
            panic!("{error} before {text:?} came: {}", String::from_utf8_lossy(&received));
        });
        assert!(count > 0, "closed before {text:?} came: {}", String::from_utf8_lossy(&received));
        received.extend_from_slice(&piece[..count]);
    }
    String::from_utf8_lossy(&received).into_owned()
}

#[test]
fn a_stream_may_take_longer_than_a_connection_may_be_idle() {
    let model = Model::start();
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
    // The connection is idle from now on, and not since its last request.
    sleep(Duration::from_millis(500));
    wire.expect_health();
}

#[test]
fn an_answer_that_took_longer_than_a_connection_may_be_idle_leaves_it_usable() {
    let model = Model::start();
    let server = model.setup().with("LIMITS_IDLE_TIMEOUT", "5 s").start();
    let user = server.sign_in("13800138000");
    let body = json!({ "question": "何时启程？" }).to_string();
    let mut wire = Wire::to(&server);
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
    let (head, _) = wire.receive().expect("no answer");
    assert!(head.starts_with("http/1.1 200"), "{head}");
    sleep(Duration::from_millis(400));
    wire.expect_health();
}

#[test]
fn a_stream_is_not_held_back_to_be_compressed() {
    let model = Model::start();
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
fn large_answers_are_compressed_for_those_who_ask_and_small_ones_are_not() {
    let server = Setup::default().start();
    let plain = server.get("/openapi.json").send().expect(200);
    let plain_text = plain.text();
    assert_eq!(plain.header("content-encoding"), None);
    let mut wire = Wire::to(&server);
    wire.send("GET /openapi.json HTTP/1.1\r\nhost: yarrow\r\naccept-encoding: gzip\r\nconnection: close\r\n\r\n");
    let mut received = Vec::new();
    wire.0.read_to_end(&mut received).unwrap();
    let end_of_head = received.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    let head = String::from_utf8_lossy(&received[..end_of_head]).to_lowercase();
    assert!(head.contains("content-encoding: gzip") && head.contains("vary: accept-encoding"), "{head}");
    assert!(received.len() < plain_text.len() / 2);
    // The page of the documentation is kept packed, and unpacked for whoever cannot.
    for (accepted, is_packed) in [("gzip", true), ("identity", false), ("gzip;q=0", false)] {
        let mut wire = Wire::to(&server);
        let file = "/docs/swagger-ui-bundle.js";
        wire.send(&format!("GET {file} HTTP/1.1\r\nhost: yarrow\r\naccept-encoding: {accepted}\r\n\r\n"));
        let (head, body) = wire.receive().unwrap();
        assert_eq!(head.contains("content-encoding: gzip"), is_packed, "{head}");
        assert_eq!(body.starts_with(&[0x1f, 0x8b]), is_packed, "{accepted}");
        assert!(head.contains("vary: accept-encoding"), "{head}");
    }
    let mut wire = Wire::to(&server);
    wire.send("GET /healthz HTTP/1.1\r\nhost: yarrow\r\naccept-encoding: gzip\r\n\r\n");
    let (head, body) = wire.receive().unwrap();
    assert!(!head.contains("content-encoding"), "{head}");
    assert_eq!(body, b"{\"status\":\"ok\"}");
}

#[test]
fn who_does_not_read_a_long_answer_makes_the_server_hold_little_of_it() {
    let server = Setup::default().start();
    let length = server.get("/openapi.json").send().expect(200).bytes.len();
    let before = server.memory();
    let mut wires: Vec<_> = (0..100).map(|_| Wire::to(&server)).collect();
    for wire in &mut wires {
        wire.send("GET /openapi.json HTTP/1.1\r\nhost: yarrow\r\n\r\n");
        // The head has come: the answer is on its way, and goes no further than the buffers between us.
        wire.0.read_exact(&mut [0; 12]).unwrap();
    }
    let grown = server.memory().saturating_sub(before);
    assert!(grown < 100 * length as u64 / 10, "100 answers of {length} bytes make it hold {grown}");
    // The whole is there for whoever goes on.
    let mut rest = vec![0; length];
    wires[0].0.read_exact(&mut rest).unwrap();
}

#[test]
fn head_is_answered_like_get_without_the_body() {
    let server = Setup::default().start();
    for path in ["/healthz", "/openapi.json"] {
        let length = server.get(path).send().expect(200).bytes.len();
        let mut wire = Wire::to(&server);
        wire.send(&format!("HEAD {path} HTTP/1.1\r\nhost: yarrow\r\nconnection: close\r\n\r\n"));
        let (answer, _) = wire.read_to_end();
        let answer = answer.to_lowercase();
        assert!(answer.starts_with("http/1.1 200") && answer.ends_with("\r\n\r\n"), "{answer}");
        assert!(answer.contains(&format!("content-length: {length}\r\n")), "{answer}");
    }
}

#[test]
fn a_client_that_leaves_frees_its_connection() {
    let server = Setup::default().with("LIMITS_CONNECTIONS", 8).start();
    for _ in 0..20 {
        eventually("six places are free", || {
            let mut open: Vec<_> = (0..6).map(|_| Wire::to(&server)).collect();
            open.iter_mut().all(Wire::is_healthy)
        });
    }
}

#[test]
fn two_thousand_idle_connections_leave_the_server_answering() {
    // This process holds the other ends. Its own soft limit on open files may be lower than it is allowed to be.
    let own = std::process::id().to_string();
    let raised = std::process::Command::new("prlimit").args(["--pid", &own, "--nofile=8192:"]).status();
    assert!(raised.expect("this test needs `prlimit` of util-linux").success());
    let setup = Setup::default().after("ulimit -n 8192").with("LIMITS_HEADER_TIMEOUT", "60 s");
    let server = setup.start();
    let connections: Vec<_> = scope(|scope| {
        let threads: Vec<_> =
            (0..8).map(|_| scope.spawn(|| (0..250).map(|_| Wire::to(&server)).collect::<Vec<_>>())).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(connections.len(), 2_000);
    let user = server.sign_in("13800138000");
    for _ in 0..50 {
        let begun = Instant::now();
        server.get("/user/profile").by(&user).send().expect(200);
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    }
    let mut last = connections.into_iter().last().unwrap();
    last.expect_health();
}
