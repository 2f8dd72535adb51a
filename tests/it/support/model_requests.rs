//! Requests that call a language model, and a fake provider for them.

use std::io::{Read, Write};

use serde_json::{Value, json};

use super::{
    Caller, Request, Response, Server, Setup,
    fake_provider::{FakeProvider, Reply},
    raw::RawConnection,
};

pub const PHONE: &str = "13800138000";
/// A word on the default word list.
pub const LISTED: &str = "赌博";

pub fn ask(server: &Server, user: &Caller) -> Request {
    let body = json!({ "question": "今年换工作合适吗？", "divinationData": { "lines": [7, 8, 8, 8, 7, 6] } });
    server.post("/divination/enhanced").by(user).json(&body)
}

pub fn chat(server: &Server, user: &Caller) -> Request {
    server.post("/llm/chat").by(user).json(&json!({ "messages": [{ "role": "user", "content": "你好" }] }))
}

pub fn streamed(request: Request) -> Request {
    request.header("accept", "text/event-stream")
}

pub fn chunks(texts: &[&str]) -> String {
    let chunk = |text: &&str| json!({ "model": "m", "choices": [{ "index": 0, "delta": { "content": text } }] });
    let mut events: Vec<_> = texts.iter().map(chunk).collect();
    events.push(json!({ "model": "m", "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 60, "completion_tokens": 40, "total_tokens": 100 } }));
    let events: Vec<_> = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    events.concat() + "data: [DONE]\n\n"
}

pub fn with_model_provider(provider: &FakeProvider) -> Setup {
    Setup::default()
        .with("LLM_PROVIDER", "openai")
        .with("LLM_BASE_URL", format!("{}/v1", provider.url()))
        .with("LLM_MODEL", "first")
        .with("LLM_MAX_RETRY_DELAY", "1 s")
}

pub fn provider_streaming(text: &'static str) -> FakeProvider {
    FakeProvider::with_handler(move |_| Reply::event_stream(chunks(&[text])))
}

/// Returns the spent and the reserved tokens of all users.
pub fn budget_usage(server: &Server) -> (i64, i64) {
    let sql = "select tokens, reserved_tokens from model_spending where user_id = 0";
    server.database().query_row(sql, (), |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
}

pub fn record(server: &Server, response: &Response) -> Value {
    let key = server.api_key("looker");
    let path = format!("/divination/records/trace/{}", response.json()["traceId"].as_str().unwrap());
    server.get(&path).token(&key).send().expect(200).json()
}

/// Sends a request for an event stream.
fn begin_stream(server: &Server, user: &Caller, (path, body): (&str, &Value)) -> RawConnection {
    let body = body.to_string();
    let mut wire = RawConnection::to(server);
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\naccept: text/event-stream\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        user.token,
        body.len()
    );
    wire.0.write_all((head + &body).as_bytes()).unwrap();
    wire
}

/// Sends a request for an event stream and reads until `mark`. Dropping the connection disconnects the client.
pub fn read_stream_until(server: &Server, user: &Caller, call: (&str, &Value), mark: &str) -> RawConnection {
    let mut wire = begin_stream(server, user, call);
    let mut received = Vec::new();
    let mut buffer = [0; 1024];
    while !String::from_utf8_lossy(&received).contains(mark) {
        let count = wire.0.read(&mut buffer).unwrap();
        assert!(count > 0, "{}", String::from_utf8_lossy(&received));
        received.extend_from_slice(&buffer[..count]);
    }
    wire
}
