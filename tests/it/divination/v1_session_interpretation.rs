//! Session interpretations: language and abandoned requests.

use serde_json::json;

use crate::support::{Caller, FakeModel, ModelBehaviour, Server, Setup, eventually, raw::disconnect_after};

const ENGLISH: &str = "You are ";

fn session(server: &Server, user: &Caller) -> String {
    let cast = json!({ "question": "Should I move?", "method": "three_coins" });
    let created = server.post("/api/v1/sessions").by(user).json(&cast).send().expect(201).json();
    format!("/api/v1/sessions/{}/interpretation", created["id"].as_str().unwrap())
}

fn prefer(server: &Server, user: &Caller, locale: &str) {
    server.patch("/api/v1/preferences").by(user).json(&json!({ "locale": locale })).send().expect(200);
}

#[test]
fn uses_the_users_language_then_the_requests() {
    let model = FakeModel::start(ModelBehaviour::Pieces(vec!["answer"]));
    let server = model.setup().start();
    let user = server.sign_in_by_email("li.ming@example.com");
    let ask = |language: &str| {
        let enhanced = json!({ "question": "Should I move?", "divinationData": [7, 7, 7, 7, 7, 7] });
        let chat = json!({ "messages": [{ "role": "user", "content": "Hello" }] });
        for request in [
            server.post(&session(&server, &user)),
            server.post("/divination/enhanced").json(&enhanced),
            server.post("/llm/chat").json(&chat),
        ] {
            request.by(&user).header("accept-language", language).send().expect(200);
        }
        let calls = model.calls();
        let are_english = calls[calls.len() - 3..]
            .iter()
            .map(|call| call.body["messages"][0]["content"].as_str().unwrap().starts_with(ENGLISH));
        are_english.collect::<Vec<_>>()
    };
    assert_eq!((ask("zh-CN"), ask("en-GB")), (vec![false; 3], vec![true; 3]));
    assert_eq!((ask("en;q=0.1,zh;q=0.9"), ask("fr, en;q=0.8, zh;q=0")), (vec![false; 3], vec![true; 3]));
    prefer(&server, &user, "en");
    assert_eq!(ask("zh-CN"), [true; 3]);
    prefer(&server, &user, "zh");
    assert_eq!(ask("en"), [false; 3]);
}

#[test]
fn deleting_sessions_does_not_reset_the_hourly_limit() {
    let server = Setup::default().with("LLM_CALLS_PER_USER_HOUR", 3).start();
    let user = server.sign_in_by_email("li.ming@example.com");
    for _ in 0..3 {
        let path = session(&server, &user);
        server.post(&path).by(&user).send().expect(200);
        server.delete(path.strip_suffix("/interpretation").unwrap()).by(&user).send().expect(204);
    }
    assert_eq!(server.value::<i64>("select count(*) from interpretations"), 0);
    let path = session(&server, &user);
    server.post(&path).by(&user).send().expect_problem(429, "too_many_requests");
    server.edit("update model_calls set created_at = created_at - 3600001");
    server.post(&path).by(&user).send().expect(200);
    // Expired rows are deleted.
    server.command(&["cleanup", "expired", "--yes"]).expect(0);
    assert_eq!(server.value::<i64>("select count(*) from model_calls"), 1);
}

/// Sends a request and disconnects while its record waits for a blocked database.
fn ask_and_leave(server: &mut Server, user: &Caller, path: &str, accept: &str) {
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\naccept: {accept}\r\ncontent-length: 0\r\n\r\n",
        user.token
    );
    disconnect_after(server, &request);
}

#[test]
fn an_abandoned_request_leaves_no_running_call() {
    for accept in ["application/json", "text/event-stream"] {
        let mut server = Setup::default().with_metrics().start();
        let user = server.sign_in_by_email("li.ming@example.com");
        let path = session(&server, &user);
        ask_and_leave(&mut server, &user, &path, accept);
        let is_done = "select count(*) = 1 and sum(status = 'running') = 0 from interpretations";
        eventually(&format!("one interpretation, and ended: {accept}"), || server.value(is_done));
        // The session can be interpreted again.
        server.post(&path).by(&user).send().expect(200);
    }
}
