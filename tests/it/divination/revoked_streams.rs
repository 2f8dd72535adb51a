//! Streams whose token is revoked while they run.

use std::{
    thread::scope,
    time::{Duration, Instant},
};

use serde_json::json;

use crate::support::{
    Caller, FakeModel, ModelBehaviour, Server, eventually,
    model_requests::{PHONE, ask, streamed},
};

/// Much shorter than the silence of the model, and much longer than the check interval.
const SOON: Duration = Duration::from_secs(20);

fn sign_out(server: &Server, user: &Caller) {
    server.post("/auth/logout").form(&[("token", &user.token)]).send().expect(200);
}

#[test]
fn an_interpretation_ends_with_its_token() {
    for behaviour in [ModelBehaviour::Silent, ModelBehaviour::Gated(vec!["一", "二"])] {
        let model = FakeModel::start(behaviour);
        let server = model.setup().start();
        let user = server.sign_in(PHONE);
        scope(|scope| {
            let reported = scope.spawn(|| streamed(ask(&server, &user)).send().expect(200).text());
            model.wait_for_calls(1);
            let started_at = Instant::now();
            sign_out(&server, &user);
            let text = reported.join().unwrap();
            assert!(started_at.elapsed() < SOON, "{:?}", started_at.elapsed());
            assert!(text.contains("event: error") && text.contains("\"unauthenticated\""), "{text}");
            assert!(!text.contains("event: done") && !text.contains('二'), "{text}");
        });
        eventually("the call ends", || server.value::<String>("select status from interpretations") != "running");
        assert_eq!(server.value::<String>("select status from interpretations"), "cancelled");
    }
}

#[test]
fn a_conversation_ends_with_its_token() {
    let model = FakeModel::start(ModelBehaviour::Gated(vec!["一", "二"]));
    let server = model.setup().start();
    let user = server.sign_in(PHONE);
    let conversation = json!({ "messages": [{ "role": "user", "content": "你好" }], "stream": true });
    scope(|scope| {
        let reported = scope.spawn(|| server.post("/llm/chat").by(&user).json(&conversation).send().text());
        model.wait_for_calls(1);
        let started_at = Instant::now();
        sign_out(&server, &user);
        let text = reported.join().unwrap();
        assert!(started_at.elapsed() < SOON, "{:?}", started_at.elapsed());
        assert!(text.contains("\"unauthenticated\"") && !text.contains("[DONE]") && !text.contains('二'), "{text}");
    });
}

#[test]
fn a_stream_continues_after_a_token_refresh() {
    let model = FakeModel::start(ModelBehaviour::Gated(vec!["一", "二"]));
    let server = model.setup().with("AUTH_TOKEN_GRACE", "0 s").start();
    let user = server.sign_in(PHONE);
    scope(|scope| {
        let reported = scope.spawn(|| streamed(ask(&server, &user)).send().expect(200).text());
        model.wait_for_calls(1);
        let renewed = server.post("/auth/refresh-token").form(&[("token", &user.token)]).send().expect(200).json();
        assert_ne!(renewed["token"], user.token.as_str());
        // After the next check.
        std::thread::sleep(Duration::from_millis(2_500));
        model.open_gate();
        assert!(reported.join().unwrap().contains("event: done"));
    });
}
