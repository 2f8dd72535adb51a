//! Interpretations of sessions whose listeners leave, come back and are several.

use std::{
    io::Read,
    thread::scope,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::v1_interpretations::{again, interpret, points, session};
use crate::support::{
    Caller, FakeModel, ModelBehaviour, Server, Setup, eventually, eventually_some,
    fake_provider::{FakeProvider, Latch, Reply},
    model_requests::{streamed, with_model_provider},
    raw::RawConnection,
    soon,
};

const EMAIL: &str = "li.ming@example.com";
const PIECES: [&str; 3] = ["泽雷", "随，", "元亨。"];
const WHOLE: &str = "泽雷随，元亨。";

fn status(server: &Server) -> String {
    server.value("select status from interpretations order by id desc limit 1")
}

/// An event of a stream.
#[derive(Debug)]
struct Event {
    id: Option<String>,
    name: String,
    data: Value,
}

fn events(text: &str) -> Vec<Event> {
    let event = |block: &str| {
        let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(ToOwned::to_owned);
        let data = serde_json::from_str(&field("data: ")?).unwrap();
        Some(Event { id: field("id: "), name: field("event: ").unwrap(), data })
    };
    text.split("\n\n").filter_map(event).collect()
}

fn text_of(events: &[Event]) -> String {
    let deltas = events.iter().filter(|event| event.name == "delta");
    deltas.map(|event| event.data["text"].as_str().unwrap()).collect()
}

/// Checks that a stream is complete, and returns its text.
#[track_caller]
fn complete(stream: &str) -> String {
    let events = events(stream);
    let names: Vec<_> = events.iter().map(|event| event.name.as_str()).collect();
    assert_eq!((names.first(), names.last()), (Some(&"meta"), Some(&"done")), "{stream}");
    assert!(events.iter().all(|event| event.id.is_some()), "{stream}");
    assert_eq!(events[events.len() - 1].data["traceId"], events[0].data["traceId"]);
    text_of(&events)
}

/// Opens a stream and reads until this text. Dropping the connection disconnects the client.
fn listen(server: &Server, user: &Caller, session: &str, body: &Value, mark: &str) -> (RawConnection, String) {
    let mut wire = RawConnection::to(server);
    let body = body.to_string();
    wire.send(&format!(
        "POST {session}/interpretation HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\naccept: text/event-stream\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        user.token,
        body.len()
    ));
    let mut received = Vec::new();
    let mut buffer = [0; 1024];
    while !String::from_utf8_lossy(&received).contains(mark) {
        let count = wire.0.read(&mut buffer).unwrap();
        assert!(count > 0, "{}", String::from_utf8_lossy(&received));
        received.extend_from_slice(&buffer[..count]);
    }
    (wire, String::from_utf8(received).unwrap())
}

fn gated() -> FakeModel {
    FakeModel::start(ModelBehaviour::Gated(PIECES.to_vec()))
}

#[test]
fn a_call_is_finished_and_stored_after_its_listener_left() {
    let model = gated();
    let server = model.setup().start();
    let user = server.sign_in_by_email(EMAIL);
    let session = session(&server, &user);
    drop(listen(&server, &user, &session, &json!({}), "event: delta"));
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(status(&server), "running");
    model.open_gate();
    eventually("the call ends", || status(&server) != "running");
    assert_eq!(status(&server), "succeeded");
    assert_eq!(interpret(&server, &user, &session).send().expect(200).json()["result"], WHOLE);
    assert_eq!(complete(&streamed(interpret(&server, &user, &session)).send().expect(200).text()), WHOLE);
    assert_eq!(model.calls().len(), 1);
}

#[test]
fn asking_again_continues_the_running_stream_from_its_start() {
    let model = gated();
    let server = model.setup().start();
    let user = server.sign_in_by_email(EMAIL);
    let session = session(&server, &user);
    drop(listen(&server, &user, &session, &json!({}), "event: delta"));
    scope(|scope| {
        let second = scope.spawn(|| streamed(interpret(&server, &user, &session)).send().expect(200).text());
        let (third, received) = listen(&server, &user, &session, &json!({}), "event: delta");
        assert!(received.contains(PIECES[0]), "{received}");
        model.open_gate();
        assert_eq!(complete(&second.join().unwrap()), WHOLE);
        drop(third);
    });
    assert_eq!((model.calls().len(), status(&server).as_str()), (1, "succeeded"));
}

#[test]
fn a_stream_continues_after_reasoning_without_an_opening_tag() {
    for (first, expected) in [
        ("先看本卦。</think>\n\n泽雷", "随，元亨。"),
        // Left within the reasoning.
        ("先看本卦。", "泽雷随，元亨。"),
    ] {
        let rest = if first.contains("think") { "随，" } else { "</think>泽雷随，" };
        let model = FakeModel::start(ModelBehaviour::Gated(vec![first, rest, "元亨。"]));
        let server = model.setup().start();
        let user = server.sign_in_by_email(EMAIL);
        let session = session(&server, &user);
        let end = first.rsplit('\n').next().unwrap();
        let (left, received) = listen(&server, &user, &session, &json!({}), &format!("{end}\"}}\n\n"));
        drop(left);
        let last = received.lines().filter_map(|line| line.strip_prefix("id: ")).next_back().unwrap().to_owned();
        model.open_gate();
        eventually("the call ends", || status(&server) == "succeeded");
        assert_eq!(interpret(&server, &user, &session).send().expect(200).json()["result"], WHOLE);
        let continued = streamed(again(&server, &user, &session)).header("last-event-id", &last).send().expect(200);
        assert_eq!(complete(&continued.text()), expected);
        // A position behind the end begins anew.
        let behind = format!("{}:99999", last.split_once(':').unwrap().0);
        let anew = streamed(again(&server, &user, &session)).header("last-event-id", &behind).send().expect(200);
        assert_eq!(complete(&anew.text()), WHOLE);
        assert_eq!(model.calls().len(), 1);
    }
}

#[test]
fn a_stream_continues_after_the_last_event() {
    let model = gated();
    let server = model.setup().start();
    let user = server.sign_in_by_email(EMAIL);
    let session = session(&server, &user);
    let (left, received) = listen(&server, &user, &session, &json!({}), &format!("{}\"}}\n\n", PIECES[0]));
    drop(left);
    let seen: Vec<_> = received.lines().filter_map(|line| line.strip_prefix("id: ")).collect();
    let last = (*seen.last().unwrap()).to_owned();
    let continued = || streamed(again(&server, &user, &session)).header("last-event-id", &last);
    let rest = WHOLE.strip_prefix(PIECES[0]).unwrap();
    scope(|scope| {
        let running = scope.spawn(|| continued().send().expect(200).text());
        model.open_gate();
        assert_eq!(complete(&running.join().unwrap()), rest);
    });
    // The same after the end, although another interpretation was asked for.
    assert_eq!(complete(&continued().send().expect(200).text()), rest);
    let json = again(&server, &user, &session).header("last-event-id", &last).send().expect(200).json();
    assert_eq!((&json["result"], model.calls().len()), (&json!(WHOLE), 1));
    let whole = streamed(interpret(&server, &user, &session)).send().expect(200).text();
    let end = events(&whole).pop().unwrap().id.unwrap();
    let nothing = streamed(interpret(&server, &user, &session)).header("last-event-id", &end).send().expect(200).text();
    assert_eq!(complete(&nothing), "");

    for wrong in ["17", "x:1", &format!("{}:-1", "0".repeat(32))] {
        let request = interpret(&server, &user, &session).header("last-event-id", wrong);
        request.send().expect_fields(&[("Last-Event-ID", "invalid_format")]);
    }
    // An unknown stream cannot be continued, so the request is answered as without the header.
    let unknown = format!("{}:3", "0".repeat(32));
    let fresh =
        streamed(interpret(&server, &user, &session)).header("last-event-id", &unknown).send().expect(200).text();
    assert_eq!(complete(&fresh), WHOLE);
    let other = server.sign_in_by_email("other@example.com");
    interpret(&server, &other, &session).header("last-event-id", &last).send().expect_problem(404, "not_found");
}

/// Reads the rest of a stream.
fn rest(mut wire: RawConnection, mut received: String) -> String {
    let mut buffer = [0; 4096];
    while !received.contains("event: done") || !received.ends_with("0\r\n\r\n") {
        let count = wire.0.read(&mut buffer).unwrap();
        assert!(count > 0, "{received}");
        received.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
    }
    received
}

#[test]
fn each_listener_gets_the_whole_text_and_their_number_is_limited() {
    let model = gated();
    let server = model.setup().with("LLM_CALLS_PER_USER", 1).start();
    let user = server.sign_in_by_email(EMAIL);
    let session = session(&server, &user);
    let listen = || listen(&server, &user, &session, &json!({}), "event: delta");
    let listening: Vec<_> = (0..7).map(|_| listen()).collect();
    scope(|scope| {
        let json = scope.spawn(|| interpret(&server, &user, &session).send());
        // The last listener gets no text before the end, so the next one must be refused to show that it is there.
        let refused = || {
            let (sender, receiver) = std::sync::mpsc::channel();
            let request = interpret(&server, &user, &session);
            std::thread::spawn(move || drop(sender.send(request.send())));
            receiver.recv_timeout(Duration::from_millis(500)).ok()
        };
        let refused = eventually_some("too many listeners", || refused().filter(|one| one.status != 200));
        refused.expect_problem(429, "too_many_calls");
        model.open_gate();
        assert!([200, 429].contains(&json.join().unwrap().status));
    });
    for (wire, received) in listening {
        assert_eq!(complete(&rest(wire, received)), WHOLE);
    }
    assert_eq!(model.calls().len(), 1);
}

#[test]
fn a_deserted_call_is_cancelled_after_the_limit_and_refunded() {
    for limit in ["0 s", "1 s"] {
        let model = gated();
        let setup = model.setup().with("LLM_FINISH_AFTER_DISCONNECT", limit).with("LLM_CALLS_PER_USER", 1);
        let server = setup.with("POINTS_ANOTHER_INTERPRETATION", 40).start();
        let user = server.sign_in_by_email(EMAIL);
        let session = session(&server, &user);
        server.edit(&first_interpretation(&session, &user));
        let left = listen(&server, &user, &session, &json!({ "again": true }), "event: delta");
        assert_eq!(points(&server, &user), 50);
        drop(left);
        let begun = Instant::now();
        // The model sends nothing more, which is noticed after 30 s only.
        soon("the call ends", Duration::from_secs(10), || status(&server) != "running");
        assert_eq!((status(&server).as_str(), points(&server, &user)), ("cancelled", 90));
        assert!(limit == "0 s" || begun.elapsed() > Duration::from_millis(900));
        model.open_gate();
        eventually("the permit is released", || again(&server, &user, &session).send().status == 200);
        assert_eq!(points(&server, &user), 50);
    }
}

/// Returns statements that store an interpretation of this session, without a model.
fn first_interpretation(session: &str, user: &Caller) -> String {
    let (id, trace) = (session.rsplit('/').next().unwrap(), "f".repeat(32));
    format!(
        "insert into interpretations (trace_id, user_id, question, status, provider, model, prompt_version, result, \
         created_at, finished_at, of_session) values ('{trace}', {}, 'q', 'succeeded', 'p', 'm', 'v', 'first', 1, 1, 1); \
         insert into session_calls (trace_id, session_id) values ('{trace}', '{id}'); \
         update sessions set trace_id = '{trace}', model = 'm', duration_ms = 1, interpreted_at = 1 where id = '{id}'",
        user.user_id
    )
}

#[test]
fn two_devices_that_ask_again_at_once_pay_once() {
    let model = gated();
    let server = model.setup().with("POINTS_ANOTHER_INTERPRETATION", 40).start();
    let user = server.sign_in_by_email(EMAIL);
    let session = session(&server, &user);
    server.edit(&first_interpretation(&session, &user));
    let with_key = |key: &str| again(&server, &user, &session).header("idempotency-key", key);
    let both = scope(|scope| {
        let phone = scope.spawn(|| with_key("phone").send().expect(200));
        model.wait_for_calls(1);
        // Without `again` the stored one is returned meanwhile.
        assert_eq!(interpret(&server, &user, &session).send().expect(200).json()["result"], "first");
        let (tablet, received) = listen(&server, &user, &session, &json!({ "again": true }), "event: delta");
        let laptop = scope.spawn(|| with_key("laptop").send().expect(200));
        let stored = "select count(*) from idempotency_keys where key = 'laptop'";
        eventually("the laptop's key is stored", || server.value::<i64>(stored) == 1);
        model.open_gate();
        assert_eq!(complete(&rest(tablet, received)), WHOLE);
        [phone.join().unwrap(), laptop.join().unwrap()]
    });
    assert_eq!(both[0].bytes, both[1].bytes);
    for key in ["phone", "laptop"] {
        let replayed = with_key(key).send().expect(200);
        assert_eq!((replayed.header("idempotency-replayed"), &replayed.bytes), (Some("true"), &both[0].bytes));
    }
    assert_eq!((points(&server, &user), model.calls().len()), (50, 1));
}

#[test]
fn a_signed_out_listener_is_cut_off_and_the_others_are_not() {
    let model = gated();
    let server = model.setup().start();
    let user = server.sign_in_by_email(EMAIL);
    let session = session(&server, &user);
    server.edit("delete from code_sends");
    let other = server.sign_in_by_email(EMAIL);
    assert_ne!(user.token, other.token);
    scope(|scope| {
        let cut_off = scope.spawn(|| streamed(interpret(&server, &user, &session)).send().expect(200).text());
        model.wait_for_calls(1);
        let (wire, received) = listen(&server, &other, &session, &json!({}), "event: delta");
        server.post("/api/v1/auth/logout").form(&[("token", &user.token)]).send().expect(200);
        let text = cut_off.join().unwrap();
        assert!(text.contains("event: error") && text.contains("\"unauthenticated\""), "{text}");
        assert!(!text.contains(PIECES[1]), "{text}");
        model.open_gate();
        assert_eq!(complete(&rest(wire, received)), WHOLE);
    });
    assert_eq!(status(&server), "succeeded");
}

#[test]
fn a_failure_reaches_all_listeners() {
    let latch = Latch::default();
    let opened = latch.clone();
    let model = FakeProvider::with_handler(move |_| {
        opened.wait();
        Reply::status(400)
    });
    let server = with_model_provider(&model).start();
    let user = server.sign_in_by_email(EMAIL);
    let session = session(&server, &user);
    scope(|scope| {
        let json = scope.spawn(|| interpret(&server, &user, &session).send());
        eventually("the call runs", || server.value::<i64>("select count(*) from interpretations") == 1);
        let (wire, received) = listen(&server, &user, &session, &json!({}), "event: meta");
        latch.open();
        json.join().unwrap().expect_problem(502, "provider_failed");
        let mut wire = wire;
        let mut received = received;
        let mut buffer = [0; 4096];
        while !received.contains("event: error") {
            let count = wire.0.read(&mut buffer).unwrap();
            assert!(count > 0, "{received}");
            received.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
        }
        assert!(received.contains("provider_failed"), "{received}");
    });
}

#[test]
fn streams_count_as_held_bytes() {
    let model = gated();
    let server = model.setup().with("LIMITS_HELD_BYTES_PER_USER", "28 KiB").start();
    let user = server.sign_in_by_email(EMAIL);
    let session = session(&server, &user);
    let (first, received) = listen(&server, &user, &session, &json!({}), "event: delta");
    let (second, _) = listen(&server, &user, &session, &json!({}), "event: delta");
    streamed(interpret(&server, &user, &session)).send().expect_problem(503, "overloaded");
    model.open_gate();
    assert_eq!(complete(&rest(first, received)), WHOLE);
    drop(second);
    let replayed = eventually_some("there is room again", || {
        Some(streamed(interpret(&server, &user, &session)).send()).filter(|response| response.status == 200)
    });
    assert_eq!(complete(&replayed.text()), WHOLE);
}

#[test]
fn a_shutdown_waits_for_a_call_without_listeners() {
    let model = gated();
    let mut server = model.setup().start();
    let user = server.sign_in_by_email(EMAIL);
    let session = session(&server, &user);
    drop(listen(&server, &user, &session, &json!({}), "event: delta"));
    server.ask_to_stop();
    std::thread::sleep(Duration::from_millis(500));
    model.open_gate();
    assert_eq!(server.wait_for_end(), Some(0));
    let stored = "select result from interpretations where status = 'succeeded'";
    assert_eq!(server.database().query_row(stored, (), |row| row.get::<_, String>(0)).unwrap(), WHOLE);
}

#[test]
fn a_shutdown_gives_a_call_up_after_its_limit_and_refunds_it() {
    let model = gated();
    let price = |setup: Setup| setup.with("POINTS_ANOTHER_INTERPRETATION", 40);
    let mut server = price(model.setup()).with("LIMITS_DRAIN_TIMEOUT", "1 s").start();
    let user = server.sign_in_by_email(EMAIL);
    let session = session(&server, &user);
    server.edit(&first_interpretation(&session, &user));
    drop(listen(&server, &user, &session, &json!({ "again": true }), "event: delta"));
    assert_eq!(points(&server, &user), 50);
    assert_eq!(server.terminate(), Some(0));
    let database = server.database();
    let status = "select status from interpretations order by id desc limit 1";
    assert_eq!(database.query_row(status, (), |row| row.get::<_, String>(0)).unwrap(), "interrupted");
    let balance = "select balance from balances where asset = 'point'";
    assert_eq!(database.query_row(balance, (), |row| row.get::<_, i64>(0)).unwrap(), 90);
}

#[test]
fn deleting_an_account_parks_the_points_of_a_running_call() {
    let model = gated();
    let server = model.setup().with("POINTS_ANOTHER_INTERPRETATION", 40).start();
    let user = server.sign_in_by_email(EMAIL);
    let session = session(&server, &user);
    server.edit(&first_interpretation(&session, &user));
    let (wire, _) = listen(&server, &user, &session, &json!({ "again": true }), "event: delta");
    assert_eq!(points(&server, &user), 50);
    server.delete("/api/v1/account").by(&user).send().expect(204);
    assert_eq!(server.value::<i64>("select parked_points from email_rewards"), 90);
    model.open_gate();
    drop(wire);
    eventually("the call ends", || server.value::<i64>("select sum(reserved_tokens) from model_spending") == 0);
    assert_eq!(server.value::<i64>("select count(*) from interpretations"), 0);
    server.command(&["ledger", "verify"]).expect(0);
}

#[test]
fn a_kill_refunds_a_call_that_has_listeners() {
    let model = gated();
    let price = |setup: Setup| setup.with("POINTS_ANOTHER_INTERPRETATION", 40);
    let server = price(model.setup()).in_own_process().start();
    let user = server.sign_in_by_email(EMAIL);
    let session = session(&server, &user);
    server.edit(&first_interpretation(&session, &user));
    let (wire, received) = listen(&server, &user, &session, &json!({ "again": true }), "event: delta");
    let last = events(&received).iter().filter_map(|event| event.id.clone()).next_back().unwrap();
    let server = server.crash_and_restart(price(FakeModel::start(ModelBehaviour::Pieces(vec!["anew"])).setup()));
    drop(wire);
    assert_eq!((points(&server, &user), status(&server).as_str()), (90, "interrupted"));
    // What was lost cannot be continued, so the request makes another interpretation.
    let retried = streamed(again(&server, &user, &session)).header("last-event-id", &last).send().expect(200).text();
    assert_eq!((complete(&retried).as_str(), points(&server, &user)), ("anew", 50));
}
