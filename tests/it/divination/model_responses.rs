//! Answers of models in other forms than were asked for, cut short, or begun with nothing in them.

use serde_json::{Value, json};

use crate::support::{
    Caller, Request, Server, Setup,
    calls::{PHONE, answering, ask, asking, chat, chunks, record, streamed},
    vendors::{Reply, Vendor},
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

fn with_second(setup: Setup, second: &Vendor) -> Setup {
    setup.with("LLM_FALLBACK_BASE_URL", format!("{}/v1", second.url())).with("LLM_FALLBACK_MODEL", "second")
}

fn streamed_chat(server: &Server, user: &Caller) -> Request {
    let conversation = json!({ "messages": [{ "role": "user", "content": "你好" }], "stream": true });
    server.post("/llm/chat").by(user).json(&conversation)
}

/// The documents of a stream of chunks.
fn documents(text: &str) -> Vec<Value> {
    let data = text.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]");
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

#[test]
fn a_beginning_with_nothing_in_it_does_not_keep_the_second_model_from_answering() {
    let beginnings = || {
        let begun = role();
        let length = begun.len();
        [
            ("an error", Reply::event_stream(begun.clone() + "data: {\"error\":{\"type\":\"server_error\"}}\n\n")),
            ("a reset", Reply::event_stream(begun.clone() + ": alive\n\n").cut_after(length)),
            ("silence", Reply::event_stream(begun.clone() + ": alive\n\n").stalled_after(length)),
            ("no text", Reply::event_stream(begun + &event(&delta(json!({}), "stop")) + "data: [DONE]\n\n")),
        ]
    };
    for (name, reply) in beginnings() {
        let (first, second) = (Vendor::answering(move |_| reply.clone()), answering("吉"));
        let setup = asking(&first).with("LLM_FIRST_BYTE_TIMEOUT", "1 s").with("LLM_IDLE_TIMEOUT", "1 s");
        let server = with_second(setup, &second).start();
        let user = server.sign_in(PHONE);
        let answer = ask(&server, &user).send().expect(200);
        assert_eq!(answer.json()["result"], "吉", "{name}");
        assert!(record(&server, &answer)["failover"].is_string(), "{name}");
        // An answer in one piece has the time of the whole call to come.
        if name != "silence" {
            let whole = chat(&server, &user).send().expect(200).json();
            assert_eq!(whole["choices"][0]["message"]["content"], "吉", "{name}");
        }
        let text = streamed_chat(&server, &user).send().expect(200).text();
        assert!(text.contains("吉") && text.contains("[DONE]"), "{name}: {text}");
        // Nothing of the first one's beginning is told before the second one's.
        assert!(!text.contains("\"id\":\"c\""), "{name}: {text}");
    }
}

#[test]
fn a_beginning_is_told_in_order_once_there_is_something_in_it() {
    let body = role() + &role() + &chunks(&["大", "吉"]);
    let vendor = Vendor::answering(move |_| Reply::event_stream(body.as_str()));
    let second = answering("凶");
    let server = with_second(asking(&vendor), &second).start();
    let user = server.sign_in(PHONE);
    let text = streamed_chat(&server, &user).send().expect(200).text();
    let documents = documents(&text);
    let deltas: Vec<_> = documents.iter().map(|document| &document["choices"][0]["delta"]).collect();
    let empty = json!({ "role": "assistant", "content": "" });
    assert_eq!(deltas, [&empty, &empty, &json!({ "content": "大" }), &json!({ "content": "吉" }), &json!({})]);
    assert!(second.requests().is_empty());
}

#[test]
fn thinking_is_a_beginning_for_those_only_who_are_told_it() {
    let thinking = event(&delta(json!({ "reasoning_content": "想" }), ""));
    let length = thinking.len();
    let reply = Reply::event_stream(thinking + ": alive\n\n").cut_after(length);
    let (first, second) = (Vendor::answering(move |_| reply.clone()), answering("吉"));
    let server = with_second(asking(&first), &second).start();
    let user = server.sign_in(PHONE);
    let text = streamed_chat(&server, &user).send().expect(200).text();
    assert!(text.contains("想") && text.contains("\"error\"") && !text.contains("[DONE]"), "{text}");
    assert!(second.requests().is_empty());
    assert_eq!(ask(&server, &user).send().expect(200).json()["result"], "吉");
    assert_eq!(second.requests().len(), 1);
}

/// A vendor that answers in one piece whoever asked for a stream, and the other way round.
fn contrary() -> Vendor {
    let usage = json!({ "prompt_tokens": 60, "completion_tokens": 40, "total_tokens": 100 });
    let message = json!({ "role": "assistant", "content": "大吉" });
    let whole = json!({ "id": "c", "model": "m-2026", "usage": usage.clone(),
        "choices": [{ "index": 0, "message": message, "finish_reason": "length" }] });
    let chunk = json!({ "id": "c", "model": "m-2026", "usage": usage,
        "choices": [{ "index": 0, "delta": { "content": "大吉" }, "finish_reason": "length" }] });
    Vendor::answering(move |request| {
        if request.json()["stream"] == true {
            Reply::json(whole.to_string())
        } else {
            Reply::event_stream(event(&chunk) + "data: [DONE]\n\n")
        }
    })
}

#[test]
fn an_answer_in_another_form_than_was_asked_for_loses_nothing() {
    let vendor = contrary();
    let server = asking(&vendor).start();
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
    let told: String =
        documents.iter().filter_map(|document| document["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(told, "大吉");
}

#[test]
fn an_interpretation_that_was_cut_says_so_wherever_it_is_shown() {
    for (reason, expected) in [("length", json!("length")), ("stop", json!("stop"))] {
        let body = event(&delta(json!({ "content": "大吉，但" }), reason)) + "data: [DONE]\n\n";
        let vendor = Vendor::answering(move |_| Reply::event_stream(body.as_str()));
        let server = asking(&vendor).start();
        let user = server.sign_in_by_email("li.ming@example.com");
        let answer = ask(&server, &user).send().expect(200);
        assert_eq!((&answer.json()["finishReason"], &answer.json()["result"]), (&expected, &json!("大吉，但")));
        assert_eq!(record(&server, &answer)["finishReason"], expected);
        let cast = json!({ "question": "问", "method": "three_coins" });
        let made = server.post("/api/v1/sessions").by(&user).json(&cast).send().expect(201).json();
        let session = format!("/api/v1/sessions/{}", made["id"].as_str().unwrap());
        // As it is written, and from the store.
        for _ in 0..2 {
            let told =
                server.post(&format!("{session}/interpretation")).by(&user).header("accept", "text/event-stream");
            let text = told.send().expect(200).text();
            let done = text.split("event: done\ndata: ").nth(1).unwrap().lines().next().unwrap();
            assert_eq!(serde_json::from_str::<Value>(done).unwrap()["finishReason"], expected, "{text}");
        }
        let shown = server.get(&session).by(&user).send().expect(200).json();
        assert_eq!(shown["interpretation"]["finishReason"], expected);
    }
}

#[test]
fn what_the_vendor_says_of_its_errors_is_not_passed_on() {
    let error = "event: error\ndata: {\"message\":\"boom\",\"code\":500}\n\n";
    let bare = "data: {\"message\":\"boom\",\"code\":500}\n\n";
    for beginning in [String::new(), role(), event(&delta(json!({ "content": "大" }), ""))] {
        for error in [error, bare] {
            let body = beginning.clone() + error;
            let vendor = Vendor::answering(move |_| Reply::event_stream(body.as_str()));
            let server = asking(&vendor).start();
            let user = server.sign_in(PHONE);
            let answer = streamed_chat(&server, &user).send();
            let text = answer.text();
            assert!(!text.contains("boom") && text.contains("provider_unavailable"), "{text}");
            assert_eq!(
                (answer.status, text.contains('大')),
                if beginning.contains('大') { (200, true) } else { (503, false) }
            );
        }
    }
}

#[test]
fn an_error_in_a_stream_says_when_to_ask_again() {
    for (header, seconds) in [("7", 7), ("", 1)] {
        let reply = Reply::status(503).header("x-should-retry", "false").header("retry-after", header);
        let vendor = Vendor::answering(move |_| reply.clone());
        let server = asking(&vendor).start();
        let user = server.sign_in(PHONE);
        let text = streamed(ask(&server, &user)).send().expect(200).text();
        let error = text.split("event: error\ndata: ").nth(1).unwrap().lines().next().unwrap();
        let error: Value = serde_json::from_str(error).unwrap();
        assert_eq!((&error["code"], &error["retryAfter"]), (&json!("provider_unavailable"), &json!(seconds)), "{text}");
    }
}
