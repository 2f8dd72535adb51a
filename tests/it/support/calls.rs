//! Calls of a language model: as apps ask for them, as vendors answer, and what is kept of them.

use serde_json::{Value, json};

use super::{
    Answer, Caller, Request, Server, Setup,
    vendors::{Reply, Vendor},
};

pub const PHONE: &str = "13800138000";
/// On the default word list.
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

pub fn asking(vendor: &Vendor) -> Setup {
    Setup::default()
        .with("LLM_PROVIDER", "openai")
        .with("LLM_BASE_URL", format!("{}/v1", vendor.url()))
        .with("LLM_MODEL", "first")
        .with("LLM_LONGEST_RETRY_WAIT", "1 s")
}

pub fn answering(text: &'static str) -> Vendor {
    Vendor::answering(move |_| Reply::event_stream(chunks(&[text])))
}

/// Tokens spent and set aside over all.
pub fn spending(server: &Server) -> (i64, i64) {
    let sql = "select tokens, reserved_tokens from model_spending where user_id = 0";
    server.database().query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
}

pub fn record(server: &Server, answer: &Answer) -> Value {
    let key = server.api_key("looker");
    let path = format!("/divination/records/trace/{}", answer.json()["traceId"].as_str().unwrap());
    server.get(&path).token(&key).send().expect(200).json()
}
