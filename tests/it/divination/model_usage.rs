//! What model calls are charged with when they come to nothing: what the vendor counted, else what was seen.

use serde_json::{Value, json};

use crate::support::{
    Behaviour, Model,
    calls::{PHONE, answering, ask, asking, chat, chunks, read_stream_until, spending},
    eventually,
    vendors::{Reply, Vendor},
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
fn what_the_vendor_counted_of_a_call_that_failed_is_charged_and_recorded() {
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
        let vendor = Vendor::answering(move |_| Reply::event_stream(stream.as_str()));
        let server = asking(&vendor).with("LLM_PRICES", "first=1000/1000").start();
        let user = server.sign_in(PHONE);
        let failed = ask(&server, &user).send();
        assert!(failed.status >= 422, "{name}: {}", failed.text());
        assert_eq!(spending(&server), (2_050, 0), "{name}");
        let kept = "select prompt_tokens || ' ' || completion_tokens || ' ' || cost_micros || ' ' || status from ";
        assert_eq!(server.value::<String>(&format!("{kept} interpretations")), "50 2000 2050000 failed", "{name}");
        let counted = "select prompt_tokens || ' ' || completion_tokens from model_usage";
        assert_eq!(server.value::<String>(counted), "50 2000", "{name}");
    }
}

#[test]
fn what_the_vendor_counted_of_a_document_that_is_no_answer_is_charged() {
    let vendor = Vendor::answering(|_| {
        let message = json!({ "role": "assistant", "content": "", "reasoning_content": "想" });
        let choice = json!({ "index": 0, "finish_reason": "length", "message": message });
        let usage = json!({ "prompt_tokens": 50, "completion_tokens": 2000 });
        Reply::json(json!({ "model": "m", "choices": [choice], "usage": usage }).to_string())
    });
    let server = asking(&vendor).start();
    let user = server.sign_in(PHONE);
    chat(&server, &user).send().expect_problem(502, "provider_failed");
    assert_eq!(spending(&server), (2_050, 0));
    assert_eq!(server.value::<i64>("select completion_tokens from chats"), 2_000);
}

#[test]
fn what_the_first_model_counted_is_charged_beside_the_second() {
    let stream = events(&[thought("想"), end("length"), count()]);
    let first = Vendor::answering(move |_| Reply::event_stream(stream.as_str()));
    let second = answering("吉");
    let server = asking(&first)
        .with("LLM_FALLBACK_BASE_URL", format!("{}/v1", second.url()))
        .with("LLM_FALLBACK_MODEL", "second")
        .start();
    let user = server.sign_in(PHONE);
    ask(&server, &user).send().expect(200);
    assert_eq!(spending(&server), (2_150, 0));
}

#[test]
fn what_the_first_model_did_not_count_is_estimated_beside_the_second() {
    let thinking = events(&vec![thought(&"想".repeat(1_000)); 20]);
    let first = Vendor::answering(move |_| Reply::event_stream(thinking.as_str()));
    let second = answering("吉");
    let stream =
        events(&[json!({ "model": "m", "choices": [{ "index": 0, "delta": { "content": "吉" } }] }), end("stop")]);
    let uncounted = Vendor::answering(move |_| Reply::event_stream(stream.as_str()));
    let busy = Vendor::answering(|_| Reply::status(503));
    let charged = |first: &Vendor, second: &Vendor| {
        let server = asking(first)
            .with("LLM_FALLBACK_BASE_URL", format!("{}/v1", second.url()))
            .with("LLM_FALLBACK_MODEL", "second")
            .start();
        ask(&server, &server.sign_in(PHONE)).send().expect(200);
        assert_eq!(spending(&server).1, 0);
        spending(&server).0
    };
    // Twenty thousand characters were thought; the request of some hundred tokens was put to both.
    let estimated = charged(&first, &second);
    assert!((20_200..21_500).contains(&estimated), "{estimated}");
    let both = charged(&first, &uncounted);
    assert_eq!(both - estimated + 100, estimated - 20_000 - 100 + 1, "what the first thought is charged once");
    // A first one that did nothing costs nothing.
    assert_eq!(charged(&busy, &second), 100);
}

#[test]
fn what_was_counted_of_an_answer_that_is_withheld_is_charged() {
    let said = |content: &str, tokens: u32| {
        json!({ "model": "m", "choices": [{ "index": 0, "delta": { "content": content } }],
            "usage": { "prompt_tokens": 5_000, "completion_tokens": tokens } })
    };
    let stream = events(&[said("大吉。", 3_000), said("去赌博吧。", 3_010)]);
    let length = stream.len();
    let vendor = Vendor::answering(move |_| Reply::event_stream(stream.as_str()).stalled_after(length));
    let server = asking(&vendor).with("MODERATION_SCREEN_ANSWERS", true).start();
    let user = server.sign_in(PHONE);
    ask(&server, &user).send().expect_problem(422, "content_rejected");
    assert_eq!(spending(&server), (8_010, 0));
    let kept = "select prompt_tokens || ' ' || completion_tokens || ' ' || error_class from interpretations";
    assert_eq!(server.value::<String>(kept), "5000 3010 answer withheld");
}

#[test]
fn what_a_listener_left_behind_of_the_thinking_is_charged() {
    let mut thoughts = vec![thought(&"想".repeat(100)); 40];
    thoughts.push(thought("终"));
    let thinking = events(&thoughts);
    let length = thinking.len();
    let vendor = Vendor::answering(move |_| Reply::event_stream(thinking.as_str()).stalled_after(length));
    let server = asking(&vendor).start();
    let user = server.sign_in(PHONE);
    let body = json!({ "messages": [{ "role": "user", "content": "你好" }], "stream": true });
    drop(read_stream_until(&server, &user, ("/llm/chat", &body), "终"));
    eventually("the call ends", || server.value::<String>("select status from chats") != "running");
    assert_eq!(server.value::<String>("select status from chats"), "cancelled");
    let (charged, reserved) = spending(&server);
    assert!(charged >= 4_000, "{charged}");
    assert_eq!(reserved, 0);
}

#[test]
fn what_a_listener_left_behind_is_charged() {
    let model = Model::start(Behaviour::Gated(vec!["一二三四五", "六"]));
    let server = model.setup().with("LLM_TOKENS_PER_DAY", 1_000_000).start();
    let user = server.sign_in(PHONE);
    drop(read_stream_until(&server, &user, ("/divination/enhanced", &json!({ "question": "问" })), "一二三四五"));
    eventually("the call ends", || server.value::<String>("select status from interpretations") != "running");
    assert_eq!(server.value::<String>("select status from interpretations"), "cancelled");
    assert_eq!(server.value::<Option<i64>>("select prompt_tokens from interpretations"), None);
    let charged: i64 = server.value("select tokens from model_spending where user_id = 0");
    assert!(charged > 100, "the instructions alone are more: {charged}");
    assert_eq!(server.value::<i64>("select reserved_tokens from model_spending where user_id = 0"), 0);
}

#[test]
fn a_try_that_was_lost_on_its_way_is_charged_although_it_is_made_again() {
    let spent = |replies: Vec<Reply>| {
        let vendor = Vendor::playing(replies);
        let server = asking(&vendor).with("LLM_TOKENS_PER_DAY", 1_000_000).start();
        let user = server.sign_in(PHONE);
        let answer = ask(&server, &user).send();
        assert_eq!(vendor.requests().len(), 2);
        (answer.status, spending(&server))
    };
    // Nobody knows what the vendor did of either.
    let (status, (lost_twice, set_aside)) = spent(vec![Reply::reset(), Reply::reset()]);
    assert!(status >= 500 && lost_twice > 0 && set_aside == 0, "{status} {lost_twice} {set_aside}");
    let told = || Reply::event_stream(chunks(&["吉"]));
    assert_eq!(spent(vec![Reply::reset(), told()]), (200, (100 + lost_twice / 2, 0)));
    // One that was refused has cost nothing.
    assert_eq!(spent(vec![Reply::status(503), told()]), (200, (100, 0)));
    assert_eq!(spent(vec![Reply::reset(), Reply::status(503)]), (503, (lost_twice / 2, 0)));
}
