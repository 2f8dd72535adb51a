//! Model servers that send without end, and clients that do not read.

use std::{
    io::Write,
    time::{Duration, Instant},
};

use serde_json::json;

use crate::support::{
    Caller, Server, Setup, eventually,
    fake_provider::{FakeProvider, Reply},
    model_requests::{PHONE, ask, budget_usage, with_model_provider},
    raw::RawConnection,
};

/// An event without text that has this many bytes.
fn padding(bytes: usize) -> String {
    let chunk = json!({ "model": "m", "choices": [{ "index": 0, "delta": {} }], "padding": "x".repeat(bytes) });
    format!("data: {chunk}\n\n")
}

#[test]
fn events_without_text_do_not_go_on_without_end() {
    for (name, body) in [
        ("events", padding(1_000)),
        ("large events", padding(200 << 10)),
        ("comments", ": keep-alive\n".repeat(300)),
        ("blank events", "data:\n\n".repeat(300)),
    ] {
        let provider = FakeProvider::with_handler(move |_| Reply::event_stream(body.as_str()).endless());
        let server = with_model_provider(&provider).in_own_process().start();
        let user = server.sign_in(PHONE);
        let started_at = Instant::now();
        let taken = server.memory_taken(|server| {
            ask(server, &user).send().expect_problem(502, "provider_failed");
        });
        let took = started_at.elapsed();
        println!("{name}: {} MiB, {took:?}", taken >> 20);
        assert!(taken < 32 << 20, "{name}: {taken} bytes");
        assert!(took < Duration::from_mins(1), "{name}: {took:?}");
        provider.expect_client_disconnect();
    }
}

#[test]
fn clients_that_do_not_read_hold_little_memory() {
    const CLIENTS: usize = 32;
    let body = padding(200 << 10);
    let provider = FakeProvider::with_handler(move |_| Reply::event_stream(body.as_str()).endless());
    let setup: Setup = with_model_provider(&provider);
    let server =
        setup.with("LLM_CALLS_PER_USER", CLIENTS).with("LIMITS_WRITE_TIMEOUT", "60 s").in_own_process().start();
    let user = server.sign_in(PHONE);
    let mut clients = Vec::new();
    let taken = server.memory_taken(|server| {
        clients.extend((0..CLIENTS).map(|_| begin(server, &user)));
        eventually("all of them are answered", || provider.requests().len() == CLIENTS);
        // The buffers of system and service fill up.
        eventually("nothing more is sent", || {
            let before = server.memory();
            std::thread::sleep(Duration::from_secs(2));
            server.memory().abs_diff(before) < 1 << 20
        });
    });
    println!("{CLIENTS} clients that do not read: {} MiB", taken >> 20);
    assert!(taken < 160 << 20, "{taken} bytes");
}

/// Asks for a stream and reads nothing.
fn begin(server: &Server, user: &Caller) -> RawConnection {
    let body = json!({ "messages": [{ "role": "user", "content": "你好" }], "stream": true }).to_string();
    let head = format!(
        "POST /llm/chat HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n",
        user.token,
        body.len()
    );
    let mut wire = RawConnection::to(server);
    wire.0.write_all((head + &body).as_bytes()).unwrap();
    wire
}

#[test]
fn an_absurd_count_or_name_has_no_great_effect() {
    let words = json!({ "model": "m".repeat(250_000), "choices": [{ "index": 0, "delta": { "content": "大吉" } }] });
    let end = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 9_000_000_000_000_u64, "completion_tokens": u64::MAX } });
    let stream = format!("data: {words}\n\ndata: {end}\n\ndata: [DONE]\n\n");
    let provider = FakeProvider::with_handler(move |_| Reply::event_stream(stream.as_str()));
    let server = with_model_provider(&provider).with("LLM_TOKENS_PER_DAY", 1_000_000).start();
    let user = server.sign_in(PHONE);
    for _ in 0..3 {
        ask(&server, &user).send().expect(200);
    }
    let (charged, reserved) = budget_usage(&server);
    assert!(charged < 100_000 && reserved == 0, "{charged} {reserved}");
    assert_eq!(server.value::<i64>("select max(length(model)) from interpretations"), 128);
}
