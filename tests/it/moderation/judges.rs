//! Judges beside Aliyun: a server of the operator, and a language model.

use ring::hmac;
use serde_json::{Value, json};
use yarrow::types::hex;

use super::{OWN, check, fallback, switch};
use crate::support::{
    Server, Setup, eventually_some,
    fake_provider::{FakeProvider, ReceivedRequest, Reply},
};

const SECRET: &str = "the-secret-of-the-judge";
const KEY: &str = "sk-test-of-the-judge";
const MIGRATION: &str = "/admin/sensitive-word-migration";

/// Checks the signature of a request and judges its text: refused if it contains 微信.
fn judged(request: &ReceivedRequest) -> Reply {
    let timestamp = request.header("x-yarrow-timestamp").expect("a timestamp").to_owned();
    let signed = [timestamp.as_bytes(), b".", &request.body].concat();
    let expected = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes()), &signed);
    let expected = format!("sha256={}", hex(expected.as_ref()));
    assert_eq!(request.header("x-yarrow-signature"), Some(expected.as_str()));
    let body = request.json();
    assert!(body["id"].as_str().is_some_and(|id| id.len() == 32), "{body}");
    if body["text"].as_str().unwrap().contains("微信") {
        let label = json!({ "label": "contact_invite", "type": "contact", "confidence": 91.5, "words": ["微信"] });
        return Reply::json(json!({ "refused": true, "labels": [label] }).to_string());
    }
    Reply::json(json!({ "refused": false }).to_string())
}

fn with_judge(url: &str) -> Setup {
    Setup::default()
        .with("MODERATION_PROVIDER", "http")
        .with("MODERATION_JUDGE_URL", url)
        .with("MODERATION_JUDGE_SECRET", SECRET)
        .with("MODERATION_TIMEOUT", "2 s")
}

fn with_model(url: &str) -> Setup {
    Setup::default()
        .with("MODERATION_PROVIDER", "llm")
        .with("MODERATION_LLM_BASE_URL", format!("{url}/v1"))
        .with("MODERATION_LLM_API_KEY", KEY)
        .with("MODERATION_LLM_MODEL", "judge-1")
        .with("MODERATION_TIMEOUT", "2 s")
}

/// Judges as a model: refuses texts that contain 微信, and speaks nonsense about 胡话.
fn model(request: &ReceivedRequest) -> Reply {
    assert_eq!(
        (request.path(), request.header("authorization")),
        ("/v1/chat/completions", Some("Bearer sk-test-of-the-judge"))
    );
    let body = request.json();
    assert_eq!((&body["model"], &body["temperature"]), (&json!("judge-1"), &json!(0)));
    let asked: Value = serde_json::from_str(body["messages"][1]["content"].as_str().unwrap()).unwrap();
    let text = asked["text"].as_str().unwrap();
    let content = match text {
        _ if text.contains("胡话") => "I cannot say.".to_owned(),
        _ if text.contains("微信") => r#"```json
{"verdict":"refuse","type":"contact","words":["微信"]}
```"#
            .to_owned(),
        _ => r#"{"verdict":"allow","type":null,"words":[]}"#.to_owned(),
    };
    Reply::json(json!({ "choices": [{ "message": { "role": "assistant", "content": content } }] }).to_string())
}

fn compare(server: &Server, key: &str, text: &str) -> Value {
    let request = server.post(&format!("{MIGRATION}/compare")).token(key).json(&json!({ "content": text }));
    request.send().expect(200).json()
}

#[test]
fn a_judge_of_ones_own_decides_by_signed_requests() {
    let judge = FakeProvider::with_handler(judged);
    let server = with_judge(&judge.url()).start();
    let (user, key) = (server.sign_in(OWN), server.api_key("operator"));
    let compared = compare(&server, &key, "能加你微信吗");
    assert_eq!((&compared["agree"], &compared["external"]["matches"][0]["type"]), (&json!(false), &json!("contact")));
    switch(&server, &key, true).expect(200);
    let refused = check(&server, &user, "能加你微信吗").expect(200).json();
    assert_eq!((&refused["allowed"], &refused["provider"]), (&json!(false), &json!("http")));
    assert_eq!(check(&server, &user, "一起赌博吧").expect(200).json()["allowed"], true);
    let (words, masked): (String, String) =
        (server.value("select words from violations"), server.value("select masked_text from violations"));
    assert_eq!((words.as_str(), masked.as_str()), (r#"["contact_invite"]"#, "能加你**吗"));
}

#[test]
fn a_judge_that_fails_leaves_the_decision_to_the_list() {
    let judge = FakeProvider::with_handler(|_| Reply::json("{}"));
    let server = with_judge(&judge.url()).start();
    let (user, key) = (server.sign_in(OWN), server.api_key("operator"));
    switch(&server, &key, true).expect(200);
    let decided = check(&server, &user, "一起赌博吧").expect(200).json();
    assert_eq!(
        (&decided["allowed"], &decided["degraded"], &decided["provider"]),
        (&json!(false), &json!(true), &json!("local"))
    );
    fallback(&server, &key, false);
    check(&server, &user, "今年换工作合适吗？").expect_problem(503, "moderation_unavailable");
}

#[test]
fn a_model_judges_by_a_rubric_and_each_text_once() {
    let judge = FakeProvider::with_handler(model);
    let server = with_model(&judge.url()).start();
    let (user, key) = (server.sign_in(OWN), server.api_key("operator"));
    switch(&server, &key, true).expect(200);
    for _ in 0..3 {
        let refused = check(&server, &user, "能加你微信吗").expect(200).json();
        assert_eq!((&refused["allowed"], &refused["provider"]), (&json!(false), &json!("llm")));
    }
    assert_eq!(judge.requests().len(), 1, "the verdict is cached");
    assert_eq!(check(&server, &user, "今年换工作合适吗？").expect(200).json()["allowed"], true);
    assert_eq!(server.value::<String>("select masked_text from violations limit 1"), "能加你**吗");
    // Nonsense is no acquittal.
    let decided = check(&server, &user, "一起赌博说胡话").expect(200).json();
    assert_eq!((&decided["allowed"], &decided["degraded"]), (&json!(false), &json!(true)));
}

#[test]
fn the_texts_of_a_day_have_a_limit() {
    let judge = FakeProvider::with_handler(model);
    let server = with_model(&judge.url()).with("MODERATION_LLM_TEXTS_PER_DAY", 2).start();
    let key = server.api_key("operator");
    for (text, error) in [("一", Value::Null), ("二", Value::Null), ("三", json!("budget_spent")), ("一", Value::Null)]
    {
        let compared = compare(&server, &key, text);
        assert_eq!(compared["external"].get("error").cloned().unwrap_or_default(), error, "{text}: {compared}");
    }
    assert_eq!(judge.requests().len(), 2);
}

#[test]
fn a_model_works_in_shadow() {
    let judge = FakeProvider::with_handler(model);
    let server = with_model(&judge.url()).with("MODERATION_SHADOW_SAMPLE_RATE", 1).start();
    let (user, key) = (server.sign_in(OWN), server.api_key("operator"));
    check(&server, &user, "能加你微信吗").expect(200);
    let found = eventually_some("the disagreement is stored", || {
        let listed = server.get(&format!("{MIGRATION}/disagreements")).token(&key).send().expect(200).json();
        listed["items"].get(0).cloned()
    });
    assert_eq!(found["maskedText"], "能加你**吗", "{found}");
}
