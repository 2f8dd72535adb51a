//! Failures of the external moderator, with and without fallback.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{
    LISTED, OWN, check, content_of, fallback, judged, switch, verdict, violations, with_service_at, with_vendor,
};
use crate::support::{
    Request, eventually,
    fake_provider::{FakeProvider, Latch, ReceivedRequest, Reply},
    model_requests::provider_streaming,
    send_concurrently,
};

fn business(code: u16) -> Reply {
    Reply::json(json!({ "Code": code, "Message": "no", "RequestId": "R-9" }).to_string())
}

fn gateway(status: u16, code: &str) -> Reply {
    Reply::json(json!({ "Code": code, "Message": "no", "RequestId": "R-9" }).to_string()).with_status(status)
}

/// Returns failures by name, and the number of attempts for one text.
fn failures() -> Vec<(&'static str, Reply, usize)> {
    let clean = verdict("none", &[("nonLabel", "")]);
    vec![
        ("bad request", business(400), 1),
        ("not allowed", business(401), 1),
        ("forbidden", business(403), 1),
        ("not activated", business(596), 1),
        ("general error", business(500), 2),
        ("unavailable", business(503), 2),
        ("database", business(580), 2),
        ("timeout inside", business(581), 2),
        ("algorithm failed", business(586), 2),
        ("quota", business(588), 1),
        ("unheard code", business(777), 1),
        ("throttled", gateway(400, "Throttling.User"), 1),
        ("gateway unavailable", gateway(503, "ServiceUnavailable"), 2),
        ("gateway broken", gateway(500, "InternalError"), 2),
        ("nonce used", gateway(400, "SignatureNonceUsed"), 2),
        ("signature", gateway(400, "SignatureDoesNotMatch"), 1),
        ("key", gateway(404, "InvalidAccessKeyId.NotFound"), 1),
        ("clock", gateway(400, "InvalidTimeStamp.Expired"), 1),
        ("proxy", Reply::status(502).body("<html>"), 2),
        ("moved", Reply::status(302).header("location", "http://127.0.0.1:1/"), 1),
        ("no JSON", Reply::json("<html>"), 1),
        ("empty", Reply::json(""), 1),
        ("no data", Reply::json(r#"{"Code":200,"Message":"OK"}"#), 1),
        ("unheard risk", verdict("purple", &[]), 1),
        ("huge", Reply::json(" ".repeat(4096)).endless(), 1),
        ("reset", Reply::reset(), 2),
        ("cut", clean.clone().cut_after(20), 2),
        ("stalled", clean.clone().stalled_after(20), 1),
        ("silent", clean.after(Duration::from_secs(4)), 1),
    ]
}

/// Runs each failure against its own server, several at once.
fn for_each_failure(run: impl Fn(&str, FakeProvider, usize) + Sync) {
    let cases = std::sync::Mutex::new(failures());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let Some((name, reply, requested)) = cases.lock().unwrap().pop() else { return };
                    run(name, FakeProvider::with_handler(move |_| reply.clone()), requested);
                }
            });
        }
    });
}

#[test]
fn with_fallback_the_local_list_decides_and_the_response_says_so() {
    for_each_failure(|name, provider, requested| {
        let server = with_vendor(&provider).start();
        let (user, key) = (server.sign_in(OWN), server.api_key("operator"));
        switch(&server, &key, true).expect(200);
        let started_at = Instant::now();
        let response = check(&server, &user, "今年换工作合适吗").expect(200).json();
        assert!(started_at.elapsed() < Duration::from_secs(10), "{name}: {:?}", started_at.elapsed());
        let expected = json!({ "allowed": true, "contentType": "question", "provider": "local", "degraded": true });
        assert_eq!(response, expected, "{name}");
        assert_eq!(provider.requests().len(), requested, "{name}");
        let response = check(&server, &user, &format!("一起{LISTED}吧")).expect(200).json();
        assert_eq!((&response["allowed"], &response["degraded"]), (&json!(false), &json!(true)), "{name}");
        assert_eq!(server.value::<String>("select provider from violations"), "local", "{name}");
    });
}

#[test]
fn without_fallback_nothing_passes_and_no_violation_is_recorded() {
    for_each_failure(|name, provider, _| {
        let server = with_vendor(&provider).start();
        let (user, key) = (server.sign_in(OWN), server.api_key("operator"));
        switch(&server, &key, true).expect(200);
        fallback(&server, &key, false);
        let refused = check(&server, &user, "今年换工作合适吗").expect_problem(503, "moderation_unavailable");
        assert!(refused.header("retry-after").is_some(), "{name}");
        assert!(!refused.text().contains("aliyun"), "{name}: {}", refused.text());
        let nickname = server.put("/user/nickname").by(&user).form(&[("nickname", "青山")]).send();
        nickname.expect_problem(503, "moderation_unavailable");
        let profile = server.get("/user/profile").by(&user).send().expect(200).json();
        assert_eq!((&profile["nickname"], violations(&server)), (&json!(""), 0), "{name}");
        let shown = server.lines().join("\n");
        assert!(!shown.contains("今年换工作"), "{name}: {shown}");
    });
}

#[test]
fn a_rejection_stands_if_the_next_text_cannot_be_checked() {
    let broken = |request: &ReceivedRequest| content_of(request).contains("心静");
    let provider = FakeProvider::with_handler(
        move |request| if broken(request) { business(588) } else { judged(request, "微信") },
    );
    let server = with_vendor(&provider).start();
    let (user, key) = (server.sign_in(OWN), server.api_key("operator"));
    switch(&server, &key, true).expect(200);
    fallback(&server, &key, false);
    let change = |nickname: &str| {
        let body = json!({ "nickname": nickname, "signature": "心静则明" });
        server.patch("/api/v1/account").by(&user).json(&body).send()
    };
    let refused = change("微信").expect_problem(422, "content_rejected").json();
    assert_eq!(refused["errors"].as_array().unwrap().len(), 1, "{refused}");
    assert_eq!(refused["errors"][0]["field"], "nickname");
    assert_eq!(violations(&server), 1);
    change("青山").expect_problem(503, "moderation_unavailable");
    assert_eq!(violations(&server), 1);
}

#[test]
fn without_fallback_no_endpoint_accepts_a_text() {
    let (provider, model) = (FakeProvider::with_handler(|_| business(500)), provider_streaming("吉"));
    let setup = with_vendor(&provider).with("LLM_PROVIDER", "openai").with("LLM_MODEL", "first");
    let server = setup.with("LLM_BASE_URL", format!("{}/v1", model.url())).start();
    let (user, key) = (server.sign_in(OWN), server.api_key("operator"));
    server.command(&["points", "adjust", OWN, "1000", "--reason", "test"]).expect(0);
    switch(&server, &key, true).expect(200);
    fallback(&server, &key, false);
    let account = || server.get("/api/v1/account").by(&user).send().expect(200).json();
    let before = account();
    let chat = json!({ "messages": [{ "role": "user", "content": "你好" }] });
    for (method, path, body) in [
        ("PUT", "/user/profile", json!({ "signature": "山高水长" })),
        ("PUT", "/user/signature", json!({ "signature": "山高水长" })),
        ("PATCH", "/api/v1/account", json!({ "nickname": "青山" })),
        ("PATCH", "/api/v1/account", json!({ "signature": "山高水长" })),
        ("POST", "/api/v1/sessions", json!({ "question": "何时启程？", "method": "three_coins" })),
        ("POST", "/divination/enhanced", json!({ "question": "何时启程？" })),
        ("POST", "/llm/chat", chat),
    ] {
        let refused = server.request(method, path).by(&user).json(&body).send();
        let refused = refused.expect_problem(503, "moderation_unavailable");
        assert!(refused.header("retry-after").is_some(), "{path}");
    }
    assert_eq!(account(), before);
    assert_eq!(server.value::<i64>("select count(*) from sessions"), 0);
    assert!(model.requests().is_empty());
    assert_eq!(violations(&server), 0);
}

#[test]
fn an_unreachable_moderator_is_a_failure() {
    let server = with_service_at(&FakeProvider::unreachable_url()).start();
    let (user, key) = (server.sign_in(OWN), server.api_key("operator"));
    switch(&server, &key, true).expect(200);
    assert_eq!(check(&server, &user, "好吗").expect(200).json()["degraded"], true);
    fallback(&server, &key, false);
    check(&server, &user, "好吗").expect_problem(503, "moderation_unavailable");
}

#[test]
fn one_failure_is_retried() {
    let provider =
        FakeProvider::with_replies([business(500), verdict("none", &[]), Reply::reset(), verdict("none", &[])]);
    let server = with_vendor(&provider).start();
    let (user, key) = (server.sign_in(OWN), server.api_key("operator"));
    switch(&server, &key, true).expect(200);
    for _ in 0..2 {
        let response = check(&server, &user, "好吗").expect(200).json();
        assert_eq!((&response["provider"], &response["degraded"]), (&json!("aliyun"), &json!(false)));
    }
    let requests = provider.requests();
    assert_eq!(requests.len(), 4);
    assert_ne!(requests[0].header("x-acs-signature-nonce"), requests[1].header("x-acs-signature-nonce"));
}

#[test]
fn tries_another_region_after_a_failure() {
    let (broken, backup) =
        (FakeProvider::with_handler(|_| business(500)), FakeProvider::with_handler(|request| judged(request, "微信")));
    let server = with_vendor(&broken).with("MODERATION_BACKUP_ENDPOINT", backup.url()).start();
    let (user, key) = (server.sign_in(OWN), server.api_key("operator"));
    switch(&server, &key, true).expect(200);
    assert_eq!(check(&server, &user, "能加你微信吗").expect(200).json()["provider"], "aliyun");
    assert_eq!((broken.requests().len(), backup.requests().len()), (1, 1));
}

#[test]
fn opens_the_circuit_breaker_after_repeated_failures() {
    let provider = FakeProvider::with_handler(|_| business(503));
    let server = with_vendor(&provider).start();
    let (user, key) = (server.sign_in(OWN), server.api_key("operator"));
    switch(&server, &key, true).expect(200);
    for _ in 0..20 {
        assert_eq!(check(&server, &user, "好吗").expect(200).json()["degraded"], true);
    }
    assert_eq!(provider.requests().len(), 10, "five failures of two attempts each");
    fallback(&server, &key, false);
    let refused = check(&server, &user, "好吗").expect_problem(503, "moderation_unavailable");
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=31).contains(&wait), "{wait}");
}

#[test]
fn load_of_one_user_lets_no_text_pass_by_the_word_list() {
    // The word list knows nothing of this word, so each acceptance would be its.
    let provider = FakeProvider::with_handler(|request| judged(request, "微信").after(Duration::from_millis(300)));
    let server = with_vendor(&provider).start();
    let (user, other, key) = (server.sign_in(OWN), server.sign_in("13800138001"), server.api_key("operator"));
    switch(&server, &key, true).expect(200);
    let nickname =
        |user, number: usize| server.put("/user/nickname").by(user).form(&[("nickname", &format!("微信{number}"))]);
    let mut requests: Vec<_> = (0..60).map(|number| nickname(&user, number)).collect();
    requests.push(nickname(&other, 60));
    let responses = send_concurrently(requests);
    let statuses: Vec<_> = responses.iter().map(|response| response.status).collect();
    assert!(statuses.iter().all(|status| [422, 503].contains(status)), "{statuses:?}");
    assert_eq!(statuses[60], 422, "another user waits for nobody");
    let busy = responses.iter().find(|response| response.status == 503).expect("not all of them get a permit");
    assert!(busy.header("retry-after").is_some() && busy.json()["code"] == "moderation_unavailable");
    for user in [&user, &other] {
        assert_eq!(server.get("/user/profile").by(user).send().expect(200).json()["nickname"], "");
    }
}

#[test]
fn a_slow_moderator_does_not_delay_others() {
    let gate = Latch::default();
    let held = gate.clone();
    let provider = FakeProvider::with_handler(move |_| {
        held.wait();
        verdict("none", &[])
    });
    let server = with_vendor(&provider).with("MODERATION_TIMEOUT", "50 s").start();
    let (user, other, key) = (server.sign_in(OWN), server.sign_in("13800138001"), server.api_key("operator"));
    switch(&server, &key, true).expect(200);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| check(&server, &user, "好吗").expect(200));
            scope.spawn(|| server.put("/user/nickname").by(&user).form(&[("nickname", "青山")]).send().expect(200));
        }
        eventually("a text is checked", || !provider.requests().is_empty());
        for _ in 0..10 {
            let started_at = Instant::now();
            server.get("/user/profile").by(&other).send().expect(200);
            assert!(started_at.elapsed() < Duration::from_secs(20), "{:?}", started_at.elapsed());
        }
        gate.open();
    });
}

#[test]
fn alerts_while_a_failing_moderator_is_active() {
    let (provider, webhook) =
        (FakeProvider::with_handler(|_| business(500)), FakeProvider::with_handler(|_| Reply::status(200)));
    let setup = with_vendor(&provider).with_fast_jobs().with("ALERTS_WEBHOOK_URL", webhook.url()).with_metrics();
    let mut server = setup.start();
    let metrics = server.metrics();
    let (user, key) = (server.sign_in(OWN), server.api_key("operator"));
    let is_reported = |event: &str| {
        let reported = webhook.requests().iter().map(ReceivedRequest::json).collect::<Vec<_>>();
        reported.iter().any(|message| message["rule"] == "provider_down:moderation" && message["event"] == event)
    };
    switch(&server, &key, true).expect(200);
    for _ in 0..5 {
        check(&server, &user, "好吗").expect(200);
    }
    let page = Request::new("GET", &metrics).send().expect(200).text();
    for line in [
        r#"yarrow_provider_calls_total{provider="moderation",outcome="failed"} 5"#,
        r#"yarrow_provider_breaker_open{provider="moderation"} 1"#,
    ] {
        assert!(page.lines().any(|found| found == line), "{line}: {page}");
    }
    eventually("the failing service is reported", || is_reported("firing"));
    // With the breaker open, only a probe notices the recovery.
    switch(&server, &key, false).expect(200);
    eventually("the recovery is reported", || is_reported("resolved"));
}
