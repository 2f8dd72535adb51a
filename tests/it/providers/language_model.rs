//! Chat completions: requests, responses and every kind of failure.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use yarrow::providers::llm::openai::{OpenAi, OpenAiSettings};
use yarrow::providers::llm::{Completion, Flow, LanguageModel, MessageRole, ModelMessage, ModelRequest, Sampling};
use yarrow::providers::{Failure, FailureKind};

use crate::support::fake_provider::{FakeProvider, Reply};

const VECTORS: &str = include_str!("../../vectors/llm.json");
const ANSWER: &str = r#"{"id":"chatcmpl-1","model":"m-2026","choices":[{"index":0,"message":{"role":"assistant","content":"大吉","reasoning_content":"先看本卦"},"finish_reason":"stop"}],"usage":{"prompt_tokens":31,"completion_tokens":6,"total_tokens":37}}"#;
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

fn settings(provider: &FakeProvider) -> OpenAiSettings {
    settings_for(format!("{}/v1/", provider.url()))
}

fn settings_for(base_url: String) -> OpenAiSettings {
    OpenAiSettings {
        base_url,
        setting: "llm.base_url",
        api_key: Some("sk-test".into()),
        model: "m".into(),
        connect_timeout: Duration::from_secs(5),
        first_byte_timeout: Duration::from_secs(30),
        idle_timeout: Duration::from_secs(30),
        total_timeout: Duration::from_mins(2),
        max_retry_delay: Duration::from_secs(1),
        max_response_bytes: 1 << 20,
    }
}

/// Short timeouts that a busy machine can still meet.
fn impatient(provider: &FakeProvider) -> OpenAiSettings {
    OpenAiSettings {
        first_byte_timeout: Duration::from_secs(1),
        idle_timeout: Duration::from_secs(1),
        total_timeout: Duration::from_secs(3),
        ..settings(provider)
    }
}

fn request(stream: bool) -> ModelRequest {
    ModelRequest {
        trace_id: TRACE.into(),
        user_reference: "u-7f3a".into(),
        messages: vec![
            ModelMessage { role: MessageRole::System, content: "你解卦".into() },
            ModelMessage { role: MessageRole::User, content: "问事业".into() },
        ],
        stream,
        sampling: Sampling { temperature: Some(0.7), ..Sampling::default() },
        max_tokens: Some(800),
        ..ModelRequest::default()
    }
}

/// Requests a whole response: without `stream`, `sink` is not called.
fn complete(model: &OpenAi, request: &ModelRequest, sink: &mut dyn FnMut(&str) -> Flow) -> Result<Completion, Failure> {
    model.converse(request, &mut |piece| if request.stream { sink(piece.text) } else { Flow::Continue })
}

fn ask(settings: OpenAiSettings, stream: bool) -> (String, Result<Completion, Failure>) {
    let mut text = String::new();
    let result = complete(&OpenAi::new(settings), &request(stream), &mut |piece| {
        text.push_str(piece);
        Flow::Continue
    });
    (text, result)
}

fn failure_of(provider: &FakeProvider, stream: bool) -> Failure {
    ask(impatient(provider), stream).1.err().expect("a failure")
}

fn stream(name: &str) -> String {
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    vectors["streams"][name]["body"].as_str().unwrap().to_owned()
}

#[test]
fn reads_a_whole_response() {
    let provider = FakeProvider::with_replies([Reply::json(ANSWER).header("x-request-id", "req_9")]);
    let (text, result) = ask(settings(&provider), false);
    let completion = result.unwrap();
    assert_eq!(text, "", "without streaming nothing is handed out early");
    assert_eq!((completion.text.as_str(), completion.model.as_str()), ("大吉", "m-2026"));
    assert_eq!(completion.reasoning.as_deref(), Some("先看本卦"));
    assert_eq!(completion.finish_reason, "stop");
    assert_eq!(completion.usage.unwrap().total_tokens, 37);
    assert_eq!(completion.request_id.as_deref(), Some("req_9"));

    let request = provider.only_request();
    assert_eq!((request.method.as_str(), request.path()), ("POST", "/v1/chat/completions"));
    assert_eq!(request.header("authorization"), Some("Bearer sk-test"));
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert!(request.header("user-agent").unwrap().starts_with("yarrow/"));
    let traceparent = request.header("traceparent").unwrap();
    assert!(traceparent.starts_with(&format!("00-{TRACE}-")) && traceparent.ends_with("-01"), "{traceparent}");
    assert_eq!(traceparent.len(), 55);
    let body = request.json();
    assert_eq!((&body["model"], &body["stream"], &body["user"]), (&json!("m"), &json!(false), &json!("u-7f3a")));
    assert_eq!((&body["temperature"], &body["max_tokens"]), (&json!(0.7), &json!(800)));
    assert_eq!(body["messages"][0], json!({ "role": "system", "content": "你解卦" }));
}

#[test]
fn ignores_blank_lines_before_a_response() {
    let provider =
        FakeProvider::with_replies([Reply::json(format!("\n\n\r\n  \n{ANSWER}\n")).in_chunks([1, 1, 3, 50])]);
    assert_eq!(ask(settings(&provider), false).1.unwrap().text, "大吉");
}

#[test]
fn ignores_a_byte_order_mark_before_a_response() {
    for sizes in [vec![1], vec![5_000]] {
        let provider = FakeProvider::with_replies([Reply::json(format!("\u{feff}\n{ANSWER}")).in_chunks(sizes)]);
        let mut reported = String::new();
        let result = OpenAi::new(settings(&provider)).converse(&request(false), &mut |piece| {
            reported.push_str(piece.document.unwrap_or_default());
            Flow::Continue
        });
        assert_eq!((result.unwrap().text.as_str(), reported.as_str()), ("大吉", ANSWER));
    }
}

#[test]
fn reads_every_recorded_stream_in_odd_chunks() {
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    for (name, recorded) in vectors["streams"].as_object().unwrap() {
        for sizes in [vec![1], vec![7, 1, 13], vec![5000]] {
            let body = recorded["body"].as_str().unwrap();
            let provider = FakeProvider::with_replies([Reply::event_stream(body).in_chunks(sizes)]);
            let (text, result) = ask(settings(&provider), true);
            assert_eq!(text, recorded["expect"]["content"].as_str().unwrap(), "{name}");
            let is_answer = matches!(recorded["expect"]["finish_reason"].as_str(), Some("stop" | "length"));
            assert_eq!(result.is_ok(), is_answer, "{name}");
            if let Ok(completion) = result {
                assert_eq!(completion.text, text, "{name}");
            }
            assert_eq!(provider.only_request().json()["stream_options"], json!({ "include_usage": true }));
        }
    }
}

#[test]
fn accepts_a_document_for_a_stream_and_vice_versa() {
    let provider = FakeProvider::with_replies([Reply::json(ANSWER)]);
    let (text, result) = ask(settings(&provider), true);
    assert_eq!((text.as_str(), result.unwrap().text.as_str()), ("大吉", "大吉"));

    let provider = FakeProvider::with_replies([Reply::event_stream(stream("openai_style_usage_chunk"))]);
    let (text, result) = ask(settings(&provider), false);
    assert_eq!((text.as_str(), result.unwrap().text.as_str()), ("", "乾卦，大吉"));
}

#[test]
fn reuses_a_connection_after_a_response() {
    let provider = FakeProvider::with_replies([Reply::json(ANSWER), Reply::json(ANSWER)]);
    let model = OpenAi::new(settings(&provider));
    for _ in 0..2 {
        complete(&model, &request(false), &mut |_| Flow::Continue).map(|_| ()).unwrap();
    }
    assert_eq!(provider.requests().iter().map(|request| request.connection).collect::<Vec<_>>(), [0, 0]);
}

#[test]
fn retries_a_transient_failure_before_the_first_byte_once() {
    for reply in [
        Reply::status(429),
        Reply::status(500),
        Reply::status(502).body("<html>bad gateway</html>"),
        Reply::status(503),
        Reply::status(408),
        Reply::status(409),
        Reply::reset(),
        Reply::status(400).header("x-should-retry", "true"),
    ] {
        let provider =
            FakeProvider::with_replies([reply.clone(), Reply::event_stream(stream("openai_style_usage_chunk"))]);
        let (text, result) = ask(settings(&provider), true);
        assert!(result.is_ok(), "{reply:?}: {:?}", result.err());
        assert_eq!((text.as_str(), provider.requests().len()), ("乾卦，大吉", 2));

        let provider = FakeProvider::with_replies([reply.clone(), reply, Reply::json(ANSWER)]);
        failure_of(&provider, false);
        assert_eq!(provider.requests().len(), 2);
    }
}

#[test]
fn does_not_retry_permanent_failures() {
    let cases = [
        (Reply::status(401), FailureKind::Misconfigured),
        (Reply::status(402), FailureKind::Misconfigured),
        (Reply::status(404), FailureKind::Misconfigured),
        (Reply::status(400), FailureKind::Refused),
        (Reply::status(503).header("x-should-retry", "false"), FailureKind::Busy),
        (Reply::json(r#"{"error":{"code":"insufficient_quota"}}"#).with_status(429), FailureKind::Misconfigured),
        (Reply::json(r#"{"error":{"code":"data_inspection_failed"}}"#).with_status(400), FailureKind::ContentRefused),
        (Reply::status(307).header("location", "http://127.0.0.1:1/"), FailureKind::Misconfigured),
    ];
    for (reply, kind) in cases {
        let provider = FakeProvider::with_replies([reply.clone(), Reply::json(ANSWER)]);
        assert_eq!(failure_of(&provider, true).kind, kind, "{reply:?}");
        assert_eq!(provider.requests().len(), 1, "{reply:?}");
    }
}

#[test]
fn maps_every_recorded_error() {
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    for (name, recorded) in vectors["errors"].as_object().unwrap() {
        let mut reply = Reply::status(u16::try_from(recorded["status"].as_u64().unwrap()).unwrap())
            .body(recorded["body"].as_str().unwrap());
        for (header, value) in recorded["headers"].as_object().unwrap() {
            reply = reply.header(header, value.as_str().unwrap());
        }
        let provider = FakeProvider::with_replies([reply.clone(), reply]);
        let failure = failure_of(&provider, false);
        let (kind, retry_after, requests) = match recorded["expect"].as_str().unwrap() {
            // Seven seconds exceed the retry delay limit of these settings.
            "retry_after_7s" => (FailureKind::Busy, Some(Duration::from_secs(7)), 1),
            "retry" => (FailureKind::Busy, None, 2),
            "content_rejected" => (FailureKind::ContentRefused, None, 1),
            _ => (FailureKind::Misconfigured, None, 1),
        };
        assert_eq!((failure.kind, failure.retry_after), (kind, retry_after), "{name}");
        assert_eq!(provider.requests().len(), requests, "{name}");
        assert_eq!(failure.request_id.as_deref(), recorded["headers"]["x-request-id"].as_str(), "{name}");
    }
}

#[test]
fn reads_an_endless_error() {
    let body = r#"{"error":{"code":"insufficient_quota"}}"#;
    let provider =
        FakeProvider::with_replies([Reply::json(body).with_status(429).in_chunks([1_000]).cut_after(body.len())]);
    let failure = failure_of(&provider, true);
    assert_eq!((failure.kind, failure.code.as_str()), (FailureKind::Misconfigured, "insufficient_quota"));
    assert_eq!(provider.requests().len(), 1);
}

#[test]
fn respects_the_providers_retry_delay() {
    let provider =
        FakeProvider::with_replies([Reply::status(429).header("retry-after-ms", "700"), Reply::json(ANSWER)]);
    let started = Instant::now();
    ask(settings(&provider), false).1.map(|_| ()).unwrap();
    assert!(started.elapsed() >= Duration::from_millis(700));
}

#[test]
fn does_not_retry_after_the_first_byte() {
    let body = stream("openai_style_usage_chunk");
    let cases = [
        ("cut", Reply::event_stream(body.as_str()).cut_after(450), FailureKind::OutcomeUnknown, "connection_lost"),
        ("stalled", Reply::event_stream(body.as_str()).stalled_after(450), FailureKind::TimedOut, "idle_timeout"),
        ("ended", Reply::event_stream(&body.as_bytes()[..450]), FailureKind::InvalidResponse, "truncated"),
        (
            "ended",
            Reply::event_stream(&body.as_bytes()[..450]).until_close(),
            FailureKind::InvalidResponse,
            "truncated",
        ),
        ("broken", Reply::event_stream("data: {]\n\n"), FailureKind::InvalidResponse, "not_json"),
        (
            "huge",
            Reply::event_stream("data: x".repeat(600)).endless(),
            FailureKind::InvalidResponse,
            "answer_too_large",
        ),
    ];
    for (name, reply, kind, code) in cases {
        let provider = FakeProvider::with_replies([reply, Reply::event_stream(body.as_str())]);
        let failure = failure_of(&provider, true);
        assert_eq!((failure.kind, failure.code.as_str()), (kind, code), "{name}");
        assert_eq!(provider.requests().len(), 1, "{name}");
    }
}

#[test]
fn rejects_invalid_responses() {
    let cases = [
        ("no JSON", Reply::json("<html>"), FailureKind::InvalidResponse, "not_json"),
        ("empty", Reply::json(""), FailureKind::InvalidResponse, "not_json"),
        ("no choices", Reply::json(r#"{"choices":[]}"#), FailureKind::InvalidResponse, "empty_answer"),
        (
            "no text",
            Reply::json(r#"{"choices":[{"message":{"content":null},"finish_reason":"stop"}]}"#),
            FailureKind::Unusable,
            "empty_answer",
        ),
        ("huge", Reply::json(" ".repeat(4096)).endless(), FailureKind::InvalidResponse, "answer_too_large"),
        ("cut", Reply::json(ANSWER).cut_after(40), FailureKind::OutcomeUnknown, "connection_lost"),
        ("error", Reply::json(r#"{"error":{"type":"server_error"}}"#), FailureKind::Busy, "server_error"),
    ];
    for (name, reply, kind, code) in cases {
        let provider = FakeProvider::with_replies([reply]);
        let failure = failure_of(&provider, false);
        assert_eq!((failure.kind, failure.code.as_str()), (kind, code), "{name}");
    }
}

#[test]
fn accepts_any_value_in_unused_members() {
    let whole = |members: &str, content: &str| {
        let choice = format!(r#"{{"message":{{"content":{content}}},"finish_reason":"stop"}}"#);
        format!(r#"{{{members}"choices":[{choice}]}}"#)
    };
    let cases = [
        (whole(r#""usage":{"prompt_tokens":11.0,"completion_tokens":7},"#, "\"大吉\""), Some(18)),
        (whole(r#""usage":{"prompt_tokens":-1,"completion_tokens":7},"#, "\"大吉\""), None),
        (whole(r#""usage":"many","#, "\"大吉\""), None),
        (whole(r#""id":12345,"model":7,"#, "\"大吉\""), None),
        (whole("", r#"[{"type":"text","text":"大"},{"type":"image"},{"type":"text","text":"吉"}]"#), None),
        (whole(r#""error":null,"created":"now","#, "\"大吉\""), None),
    ];
    for (document, tokens) in cases {
        for (is_stream, reply) in [
            (false, Reply::json(document.as_str())),
            (true, Reply::event_stream(format!("data: {document}\n\ndata: [DONE]\n\n"))),
        ] {
            let provider = FakeProvider::with_replies([reply]);
            let completion =
                ask(impatient(&provider), is_stream).1.unwrap_or_else(|failure| panic!("{failure}: {document}"));
            assert_eq!(completion.text, "大吉", "{document}");
            assert_eq!(completion.usage.map(|usage| usage.total_tokens), tokens, "{document}");
        }
    }
}

#[test]
fn accepts_split_characters_and_empty_events() {
    let chunk = |content: &str| format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{content}\"}}}}]}}\n\n");
    let end = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    let stream = ["data:\n\n", &chunk(r"吉\ud83d"), "data: \n\n", &chunk(r"\ude00凶"), &chunk(r"\ud83d"), end].concat();
    let provider = FakeProvider::with_replies([Reply::event_stream(stream)]);
    let (text, result) = ask(impatient(&provider), true);
    assert_eq!((text.as_str(), result.unwrap().text.as_str()), ("吉😀凶", "吉😀凶"));
}

#[test]
fn detects_the_form_by_its_first_bytes_not_its_content_type() {
    let events = stream("openai_style_usage_chunk");
    let typed = |content_type: &str, body: &str| Reply::status(200).header("content-type", content_type).body(body);
    for is_stream in [false, true] {
        for content_type in ["application/json", "text/plain", "text/event-stream", "application/octet-stream"] {
            for (body, text) in [(events.as_str(), "乾卦，大吉"), (ANSWER, "大吉")] {
                for size in [1, 5_000] {
                    let provider = FakeProvider::with_replies([typed(content_type, body).in_chunks([size])]);
                    let response = ask(impatient(&provider), is_stream).1;
                    let response = response.unwrap_or_else(|failure| panic!("{failure}: {content_type} {body}"));
                    assert_eq!(response.text, text, "{content_type}");
                }
            }
        }
    }
}

#[test]
fn a_silent_provider_times_out() {
    let provider = FakeProvider::with_replies([Reply::json(ANSWER).after(Duration::from_secs(40))]);
    let started = Instant::now();
    let failure = failure_of(&provider, true);
    assert_eq!((failure.kind, failure.code.as_str()), (FailureKind::TimedOut, "first_byte_timeout"));
    assert!(started.elapsed() < Duration::from_secs(20));
    assert_eq!(provider.requests().len(), 1);
}

#[test]
fn a_whole_response_may_take_the_time_of_the_call() {
    let provider = FakeProvider::with_replies([Reply::json(ANSWER).after(Duration::from_millis(1_500))]);
    let patient = OpenAiSettings { total_timeout: Duration::from_secs(30), ..impatient(&provider) };
    assert_eq!(ask(patient, false).1.unwrap().text, "大吉");

    let provider = FakeProvider::with_replies([Reply::json(ANSWER).after(Duration::from_secs(30))]);
    assert_eq!(failure_of(&provider, false).code, "total_timeout");
}

#[test]
fn comments_extend_the_timeout_within_a_limit() {
    let alive = Reply::event_stream(": keep-alive\n\n").in_chunks([14]).with_pauses(Duration::from_millis(100));
    let patient = FakeProvider::with_replies([Reply::event_stream(
        ": keep-alive\n\n".repeat(10) + &stream("deepseek_style_keepalive_reasoning"),
    )
    .in_chunks([14, 14, 14, 14, 14, 14, 14, 14, 14, 14, 9000])
    .with_pauses(Duration::from_millis(500))]);
    let settings = OpenAiSettings {
        first_byte_timeout: Duration::from_secs(3),
        idle_timeout: Duration::from_secs(3),
        total_timeout: Duration::from_secs(40),
        ..settings(&patient)
    };
    assert_eq!(ask(settings, true).1.unwrap().text, "坤卦");

    let endless = FakeProvider::with_replies([alive.endless().in_chunks([14])]);
    let started = Instant::now();
    let failure = failure_of(&endless, true);
    assert_eq!((failure.kind, failure.code.as_str()), (FailureKind::TimedOut, "total_timeout"));
    assert!((Duration::from_secs(3)..Duration::from_secs(20)).contains(&started.elapsed()));
}

#[test]
fn a_cancelled_call_disconnects_from_the_provider() {
    let provider =
        FakeProvider::with_replies([Reply::event_stream(stream("openai_style_usage_chunk")).stalled_after(450)]);
    let mut text = String::new();
    let result = complete(&OpenAi::new(settings(&provider)), &request(true), &mut |piece| {
        text.push_str(piece);
        if text.is_empty() { Flow::Continue } else { Flow::Stop }
    });
    assert_eq!(result.err().unwrap().kind, FailureKind::Cancelled);
    assert_eq!(text, "乾卦");
    provider.expect_client_disconnect();
}

#[test]
fn a_cancelled_call_is_not_retried() {
    let provider = FakeProvider::with_replies([Reply::status(503).header("retry-after", "9"), Reply::json(ANSWER)]);
    let patient = OpenAiSettings { max_retry_delay: Duration::from_secs(10), ..settings(&provider) };
    let started = Instant::now();
    let result = complete(&OpenAi::new(patient), &request(true), &mut |_| Flow::Stop);
    assert_eq!(result.err().unwrap().kind, FailureKind::Cancelled);
    assert_eq!(provider.requests().len(), 1);
    // It is noticed during the wait.
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}

#[test]
fn an_unused_address_is_unreachable() {
    let settings = settings_for(FakeProvider::unreachable_url());
    let failure = ask(settings, false).1.err().unwrap();
    assert_eq!((failure.kind, failure.code.as_str()), (FailureKind::Unreachable, "connect_failed"));
}

#[test]
fn errors_contain_neither_question_nor_key() {
    let echo = r#"{"error":{"message":"问事业 sk-test","type":"invalid_request_error"}}"#;
    let provider = FakeProvider::with_replies([Reply::json(echo).with_status(400)]);
    let failure = failure_of(&provider, false);
    let shown = format!("{failure} {failure:?}");
    assert!(!shown.contains("事业") && !shown.contains("sk-test"), "{shown}");
}
