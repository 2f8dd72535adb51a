//! Charges for failed model calls: the provider's usage if reported, else an estimate.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{
    FakeModel, ModelBehaviour,
    fake_provider::{FakeProvider, Reply},
    model_requests::{
        PHONE, ask, budget_usage, chat, chunks, provider_streaming, read_stream_until, with_model_provider,
    },
    soon,
};

fn events(chunks: &[Value]) -> String {
    let events: Vec<_> = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    events.concat()
}

fn thought(text: &str) -> Value {
    json!({ "model": "m", "choices": [{ "index": 0, "delta": { "reasoning_content": text } }] })
}

fn end(reason: &str) -> Value {
    json!({ "model": "m", "choices": [{ "index": 0, "delta": { "content": "" }, "finish_reason": reason }] })
}

fn count() -> Value {
    json!({ "model": "m", "choices": [], "usage": { "prompt_tokens": 50, "completion_tokens": 2000 } })
}

#[test]
fn charges_and_records_usage_reported_by_a_failed_call() {
    let thinking = vec![thought("想"); 200];
    let failing = |last: &[Value]| events(&[&thinking, last].concat()) + "data: [DONE]\n\n";
    let streams = [
        ("out of tokens", failing(&[end("length"), count()])),
        ("filtered", failing(&[end("content_filter"), count()])),
        ("a tool", failing(&[end("tool_calls"), count()])),
        ("unknown", failing(&[end("tea_break"), count()])),
        ("an error after the end", failing(&[end("stop"), count(), json!({ "error": { "type": "server_error" } })])),
        ("cut", events(&[thinking.as_slice(), &[count()]].concat())),
    ];
    for (name, stream) in streams {
        let provider = FakeProvider::with_handler(move |_| Reply::event_stream(stream.as_str()));
        let server = with_model_provider(&provider).with("LLM_PRICES", "first=1000/1000").start();
        let user = server.sign_in(PHONE);
        let failed = ask(&server, &user).send();
        assert!(failed.status >= 422, "{name}: {}", failed.text());
        assert_eq!(budget_usage(&server), (2_050, 0), "{name}");
        let stored = "select prompt_tokens || ' ' || completion_tokens || ' ' || cost_micros || ' ' || status from ";
        assert_eq!(server.value::<String>(&format!("{stored} interpretations")), "50 2000 2050000 failed", "{name}");
        let counted = "select prompt_tokens || ' ' || completion_tokens from model_usage";
        assert_eq!(server.value::<String>(counted), "50 2000", "{name}");
    }
}

#[test]
fn charges_usage_reported_with_an_invalid_document() {
    let provider = FakeProvider::with_handler(|_| {
        let message = json!({ "role": "assistant", "content": "", "reasoning_content": "想" });
        let choice = json!({ "index": 0, "finish_reason": "length", "message": message });
        let usage = json!({ "prompt_tokens": 50, "completion_tokens": 2000 });
        Reply::json(json!({ "model": "m", "choices": [choice], "usage": usage }).to_string())
    });
    let server = with_model_provider(&provider).start();
    let user = server.sign_in(PHONE);
    chat(&server, &user).send().expect_problem(502, "provider_failed");
    assert_eq!(budget_usage(&server), (2_050, 0));
    assert_eq!(server.value::<i64>("select completion_tokens from chats"), 2_000);
}

#[test]
fn charges_usage_of_the_first_model_in_addition_to_the_fallback() {
    let stream = events(&[thought("想"), end("length"), count()]);
    let first = FakeProvider::with_handler(move |_| Reply::event_stream(stream.as_str()));
    let second = provider_streaming("吉");
    let server = with_model_provider(&first)
        .with("LLM_FALLBACK_BASE_URL", format!("{}/v1", second.url()))
        .with("LLM_FALLBACK_MODEL", "second")
        .start();
    let user = server.sign_in(PHONE);
    ask(&server, &user).send().expect(200);
    assert_eq!(budget_usage(&server), (2_150, 0));
}

#[test]
fn estimates_usage_of_the_first_model_in_addition_to_the_fallback() {
    let thinking = events(&vec![thought(&"想".repeat(1_000)); 20]);
    let first = FakeProvider::with_handler(move |_| Reply::event_stream(thinking.as_str()));
    let second = provider_streaming("吉");
    let stream =
        events(&[json!({ "model": "m", "choices": [{ "index": 0, "delta": { "content": "吉" } }] }), end("stop")]);
    let uncounted = FakeProvider::with_handler(move |_| Reply::event_stream(stream.as_str()));
    let busy = FakeProvider::with_handler(|_| Reply::status(503));
    let charged = |first: &FakeProvider, second: &FakeProvider| {
        let server = with_model_provider(first)
            .with("LLM_FALLBACK_BASE_URL", format!("{}/v1", second.url()))
            .with("LLM_FALLBACK_MODEL", "second")
            .start();
        ask(&server, &server.sign_in(PHONE)).send().expect(200);
        assert_eq!(budget_usage(&server).1, 0);
        budget_usage(&server).0
    };
    // The reasoning has 20,000 characters, and both models received the request of some thousand tokens.
    let estimated = charged(&first, &second);
    assert!((20_500..25_000).contains(&estimated), "{estimated}");
    let both = charged(&first, &uncounted);
    assert_eq!(both - estimated + 100, estimated - 20_000 - 100 + 1, "what the first reasoning is charged once");
    // A first model that did nothing costs nothing.
    assert_eq!(charged(&busy, &second), 100);
}

#[test]
fn charges_usage_of_a_withheld_response() {
    let said = |content: &str, tokens: u32| {
        json!({ "model": "m", "choices": [{ "index": 0, "delta": { "content": content } }],
            "usage": { "prompt_tokens": 5_000, "completion_tokens": tokens } })
    };
    let stream = events(&[said("大吉。", 3_000), said("去赌博吧。", 3_010)]);
    let length = stream.len();
    let provider = FakeProvider::with_handler(move |_| Reply::event_stream(stream.as_str()).stalled_after(length));
    let server = with_model_provider(&provider).with("MODERATION_SCREEN_ANSWERS", true).start();
    let user = server.sign_in(PHONE);
    ask(&server, &user).send().expect_problem(422, "content_rejected");
    assert_eq!(budget_usage(&server), (8_010, 0));
    let stored = "select prompt_tokens || ' ' || completion_tokens || ' ' || error_class from interpretations";
    assert_eq!(server.value::<String>(stored), "5000 3010 answer withheld");
}

#[test]
fn charges_reasoning_before_a_disconnect() {
    let mut thoughts = vec![thought(&"想".repeat(100)); 40];
    thoughts.push(thought("终"));
    let thinking = events(&thoughts);
    let length = thinking.len();
    let provider = FakeProvider::with_handler(move |_| Reply::event_stream(thinking.as_str()).stalled_after(length));
    let server = with_model_provider(&provider).start();
    let user = server.sign_in(PHONE);
    let body = json!({ "messages": [{ "role": "user", "content": "你好" }], "stream": true });
    drop(read_stream_until(&server, &user, ("/llm/chat", &body), "终"));
    // A provider that stalls is noticed after 30 s.
    let has_ended = || server.value::<String>("select status from chats") != "running";
    soon("the call ends", Duration::from_secs(10), has_ended);
    assert_eq!(server.value::<String>("select status from chats"), "cancelled");
    let (charged, reserved) = budget_usage(&server);
    assert!(charged >= 4_000, "{charged}");
    assert_eq!(reserved, 0);
}

#[test]
fn charges_output_before_a_disconnect() {
    let model = FakeModel::start(ModelBehaviour::Gated(vec!["一二三四五", "六"]));
    let server = model.setup().with("LLM_TOKENS_PER_DAY", 1_000_000).start();
    let user = server.sign_in(PHONE);
    drop(read_stream_until(&server, &user, ("/divination/enhanced", &json!({ "question": "问" })), "一二三四五"));
    let has_ended = || server.value::<String>("select status from interpretations") != "running";
    soon("the call ends", Duration::from_secs(10), has_ended);
    assert_eq!(server.value::<String>("select status from interpretations"), "cancelled");
    assert_eq!(server.value::<Option<i64>>("select prompt_tokens from interpretations"), None);
    let charged: i64 = server.value("select tokens from model_spending where user_id = 0");
    assert!(charged > 100, "the prompt alone costs more: {charged}");
    assert_eq!(server.value::<i64>("select reserved_tokens from model_spending where user_id = 0"), 0);
}

#[test]
fn charges_an_attempt_that_was_lost_and_retried() {
    let spent = |replies: Vec<Reply>| {
        let provider = FakeProvider::with_replies(replies);
        let server = with_model_provider(&provider).with("LLM_TOKENS_PER_DAY", 1_000_000).start();
        let user = server.sign_in(PHONE);
        let response = ask(&server, &user).send();
        assert_eq!(provider.requests().len(), 2);
        (response.status, budget_usage(&server))
    };
    // The usage of both attempts is unknown.
    let (status, (lost_twice, set_aside)) = spent(vec![Reply::reset(), Reply::reset()]);
    assert!(status >= 500 && lost_twice > 0 && set_aside == 0, "{status} {lost_twice} {set_aside}");
    let reported = || Reply::event_stream(chunks(&["吉"]));
    assert_eq!(spent(vec![Reply::reset(), reported()]), (200, (100 + lost_twice / 2, 0)));
    // A rejected attempt costs nothing.
    assert_eq!(spent(vec![Reply::status(503), reported()]), (200, (100, 0)));
    assert_eq!(spent(vec![Reply::reset(), Reply::status(503)]), (503, (lost_twice / 2, 0)));
}
