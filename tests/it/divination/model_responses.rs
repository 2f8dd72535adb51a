//! Model responses in the wrong form, truncated, or with an empty beginning.

use serde_json::{Value, json};

use crate::support::{
    Caller, Request, Server, Setup,
    fake_provider::{FakeProvider, Reply},
    model_requests::{PHONE, ask, chat, chunks, provider_streaming, record, streamed, with_model_provider},
};

fn event(document: &Value) -> String {
    format!("data: {document}\n\n")
}

fn delta(delta: Value, finish_reason: &str) -> Value {
    let finish_reason = if finish_reason.is_empty() { Value::Null } else { json!(finish_reason) };
    json!({ "id": "c", "model": "m", "choices": [{ "index": 0, "delta": delta, "finish_reason": finish_reason }] })
}

fn role() -> String {
    event(&delta(json!({ "role": "assistant", "content": "" }), ""))
}

fn with_second(setup: Setup, second: &FakeProvider) -> Setup {
    setup.with("LLM_FALLBACK_BASE_URL", format!("{}/v1", second.url())).with("LLM_FALLBACK_MODEL", "second")
}

fn streamed_chat(server: &Server, user: &Caller) -> Request {
    let conversation = json!({ "messages": [{ "role": "user", "content": "你好" }], "stream": true });
    server.post("/llm/chat").by(user).json(&conversation)
}

/// Returns the JSON documents of a stream of chunks.
fn documents(text: &str) -> Vec<Value> {
    let data = text.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]");
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

#[test]
fn an_empty_beginning_does_not_prevent_the_fallback() {
    let beginnings = || {
        let started_at = role();
        let length = started_at.len();
        [
            ("an error", Reply::event_stream(started_at.clone() + "data: {\"error\":{\"type\":\"server_error\"}}\n\n")),
            ("a reset", Reply::event_stream(started_at.clone() + ": alive\n\n").cut_after(length)),
            ("silence", Reply::event_stream(started_at.clone() + ": alive\n\n").stalled_after(length)),
            ("no text", Reply::event_stream(started_at + &event(&delta(json!({}), "stop")) + "data: [DONE]\n\n")),
        ]
    };
    for (name, reply) in beginnings() {
        let (first, second) = (FakeProvider::with_handler(move |_| reply.clone()), provider_streaming("吉"));
        let setup = with_model_provider(&first).with("LLM_FIRST_BYTE_TIMEOUT", "1 s").with("LLM_IDLE_TIMEOUT", "1 s");
        let server = with_second(setup, &second).start();
        let user = server.sign_in(PHONE);
        let response = ask(&server, &user).send().expect(200);
        assert_eq!(response.json()["result"], "吉", "{name}");
        assert!(record(&server, &response)["failover"].is_string(), "{name}");
        // A whole response may take the time of the whole call.
        if name != "silence" {
            let whole = chat(&server, &user).send().expect(200).json();
            assert_eq!(whole["choices"][0]["message"]["content"], "吉", "{name}");
        }
        let text = streamed_chat(&server, &user).send().expect(200).text();
        assert!(text.contains("吉") && text.contains("[DONE]"), "{name}: {text}");
        // The beginning of the first response is not sent before the second.
        assert!(!text.contains("\"id\":\"c\""), "{name}: {text}");
    }
}

#[test]
fn sends_the_beginning_in_order_once_it_has_content() {
    let body = role() + &role() + &chunks(&["大", "吉"]);
    let provider = FakeProvider::with_handler(move |_| Reply::event_stream(body.as_str()));
    let second = provider_streaming("凶");
    let server = with_second(with_model_provider(&provider), &second).start();
    let user = server.sign_in(PHONE);
    let text = streamed_chat(&server, &user).send().expect(200).text();
    let documents = documents(&text);
    let deltas: Vec<_> = documents.iter().map(|document| &document["choices"][0]["delta"]).collect();
    let empty = json!({ "role": "assistant", "content": "" });
    assert_eq!(deltas, [&empty, &empty, &json!({ "content": "大" }), &json!({ "content": "吉" }), &json!({})]);
    assert!(second.requests().is_empty());
}

#[test]
fn reasoning_counts_as_a_beginning_only_if_it_is_passed_on() {
    let thinking = event(&delta(json!({ "reasoning_content": "想" }), ""));
    let length = thinking.len();
    let reply = Reply::event_stream(thinking + ": alive\n\n").cut_after(length);
    let (first, second) = (FakeProvider::with_handler(move |_| reply.clone()), provider_streaming("吉"));
    let server = with_second(with_model_provider(&first), &second).start();
    let user = server.sign_in(PHONE);
    let text = streamed_chat(&server, &user).send().expect(200).text();
    assert!(text.contains("想") && text.contains("\"error\"") && !text.contains("[DONE]"), "{text}");
    assert!(second.requests().is_empty());
    assert_eq!(ask(&server, &user).send().expect(200).json()["result"], "吉");
    assert_eq!(second.requests().len(), 1);
}

/// A provider that sends a document for a stream and the other way round.
fn contrary() -> FakeProvider {
    let usage = json!({ "prompt_tokens": 60, "completion_tokens": 40, "total_tokens": 100 });
    let message = json!({ "role": "assistant", "content": "大吉" });
    let whole = json!({ "id": "c", "model": "m-2026", "usage": usage.clone(),
        "choices": [{ "index": 0, "message": message, "finish_reason": "length" }] });
    let chunk = json!({ "id": "c", "model": "m-2026", "usage": usage,
        "choices": [{ "index": 0, "delta": { "content": "大吉" }, "finish_reason": "length" }] });
    FakeProvider::with_handler(move |request| {
        if request.json()["stream"] == true {
            Reply::json(whole.to_string())
        } else {
            Reply::event_stream(event(&chunk) + "data: [DONE]\n\n")
        }
    })
}

#[test]
fn accepts_a_response_in_the_other_form_without_loss() {
    let provider = contrary();
    let server = with_model_provider(&provider).start();
    let user = server.sign_in(PHONE);
    let usage = json!({ "prompt_tokens": 60, "completion_tokens": 40, "total_tokens": 100 });
    let whole = chat(&server, &user).send().expect(200).json();
    let choice = &whole["choices"][0];
    assert_eq!((&choice["finish_reason"], &choice["message"]["content"]), (&json!("length"), &json!("大吉")));
    assert_eq!((&whole["model"], &whole["usage"]), (&json!("m-2026"), &usage));
    let text = streamed_chat(&server, &user).send().expect(200).text();
    let documents = documents(&text);
    assert!(documents.iter().all(|document| document["model"] == "m-2026"), "{text}");
    let last = documents.last().unwrap();
    assert_eq!((&last["choices"][0]["finish_reason"], &last["usage"]), (&json!("length"), &usage), "{text}");
    let reported: String =
        documents.iter().filter_map(|document| document["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(reported, "大吉");
}

#[test]
fn marks_truncated_interpretations_everywhere() {
    for (reason, expected) in [("length", json!("length")), ("stop", json!("stop"))] {
        let body = event(&delta(json!({ "content": "大吉，但" }), reason)) + "data: [DONE]\n\n";
        let provider = FakeProvider::with_handler(move |_| Reply::event_stream(body.as_str()));
        let server = with_model_provider(&provider).start();
        let user = server.sign_in_by_email("li.ming@example.com");
        let response = ask(&server, &user).send().expect(200);
        assert_eq!((&response.json()["finishReason"], &response.json()["result"]), (&expected, &json!("大吉，但")));
        assert_eq!(record(&server, &response)["finishReason"], expected);
        let cast = json!({ "question": "问", "method": "three_coins" });
        let created = server.post("/api/v1/sessions").by(&user).json(&cast).send().expect(201).json();
        let session = format!("/api/v1/sessions/{}", created["id"].as_str().unwrap());
        // While streaming, and from the store.
        for _ in 0..2 {
            let reported =
                server.post(&format!("{session}/interpretation")).by(&user).header("accept", "text/event-stream");
            let text = reported.send().expect(200).text();
            let done = text.split("event: done\ndata: ").nth(1).unwrap().lines().next().unwrap();
            assert_eq!(serde_json::from_str::<Value>(done).unwrap()["finishReason"], expected, "{text}");
        }
        let shown = server.get(&session).by(&user).send().expect(200).json();
        assert_eq!(shown["interpretation"]["finishReason"], expected);
    }
}

#[test]
fn does_not_pass_on_error_texts_of_the_provider() {
    let error = "event: error\ndata: {\"message\":\"boom\",\"code\":500}\n\n";
    let bare = "data: {\"message\":\"boom\",\"code\":500}\n\n";
    for beginning in [String::new(), role(), event(&delta(json!({ "content": "大" }), ""))] {
        for error in [error, bare] {
            let body = beginning.clone() + error;
            let provider = FakeProvider::with_handler(move |_| Reply::event_stream(body.as_str()));
            let server = with_model_provider(&provider).start();
            let user = server.sign_in(PHONE);
            let response = streamed_chat(&server, &user).send();
            let text = response.text();
            assert!(!text.contains("boom") && text.contains("provider_unavailable"), "{text}");
            assert_eq!(
                (response.status, text.contains('大')),
                if beginning.contains('大') { (200, true) } else { (503, false) }
            );
        }
    }
}

#[test]
fn errors_in_a_stream_include_the_retry_delay() {
    for (header, seconds) in [("7", 7), ("", 1)] {
        let reply = Reply::status(503).header("x-should-retry", "false").header("retry-after", header);
        let provider = FakeProvider::with_handler(move |_| reply.clone());
        let server = with_model_provider(&provider).start();
        let user = server.sign_in(PHONE);
        let text = streamed(ask(&server, &user)).send().expect(200).text();
        let error = text.split("event: error\ndata: ").nth(1).unwrap().lines().next().unwrap();
        let error: Value = serde_json::from_str(error).unwrap();
        assert_eq!((&error["code"], &error["retryAfter"]), (&json!("provider_unavailable"), &json!(seconds)), "{text}");
    }
}
