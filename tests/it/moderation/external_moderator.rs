//! The external moderator: requests, switching, comparison and shadow mode.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{
    KEY_ID, LISTED, OWN, SECRET, check, content_of, fallback, field, judged, switch, verdict, violations, with_vendor,
};
use crate::support::{
    Caller, Server, Setup, eventually,
    fake_provider::{FakeProvider, Latch, Reply},
    model_requests::{provider_streaming, read_stream_until},
};

const MIGRATION: &str = "/admin/sensitive-word-migration";

fn get(server: &Server, key: &str, path: &str) -> Value {
    server.get(&format!("{MIGRATION}/{path}")).token(key).send().expect(200).json()
}

fn post(server: &Server, key: &str, path: &str, body: &Value) -> Value {
    server.post(&format!("{MIGRATION}/{path}")).token(key).json(body).send().expect(200).json()
}

#[test]
fn the_external_moderator_decides_once_switched_on() {
    let provider = FakeProvider::with_handler(|request| judged(request, "微信"));
    let server = with_vendor(&provider).start();
    let (user, key) = (server.sign_in(OWN), server.api_key("operator"));
    // The local list differs.
    assert_eq!(check(&server, &user, "一起赌博吧").expect(200).json()["allowed"], false);
    assert!(provider.requests().is_empty());
    switch(&server, &key, true).expect(200);
    let response = check(&server, &user, "一起赌博吧").expect(200).json();
    let expected = json!({ "allowed": true, "contentType": "question", "provider": "aliyun", "degraded": false });
    assert_eq!(response, expected);
    let response = check(&server, &user, "能加你微信吗").expect(200).json();
    assert_eq!((&response["allowed"], &response["provider"]), (&json!(false), &json!("aliyun")));
    let row: String = server.value(
        "select concat_ws('|', content_type, violation_type, words, masked_text, provider) \
         from violations order by id desc",
    );
    assert_eq!(row, "question|contact|[\"pt_to_contact\"]|能加你**吗|aliyun");
    switch(&server, &key, false).expect(200);
    assert_eq!(check(&server, &user, "能加你微信吗").expect(200).json()["provider"], "local");
}

#[test]
fn requests_are_signed_and_contain_no_user() {
    let provider = FakeProvider::with_handler(|request| judged(request, "微信"));
    let server = with_vendor(&provider).start();
    let (user, key) = (server.sign_in(OWN), server.api_key("operator"));
    switch(&server, &key, true).expect(200);
    check(&server, &user, "今年 换工作&合适=吗？+%").expect(200);
    check(&server, &user, "再问一次").expect(200);
    server.put("/user/nickname").by(&user).form(&[("nickname", "青山")]).send().expect(200);
    server.put("/user/signature").by(&user).form(&[("signature", "心静则明")]).send().expect(200);
    let requests = provider.requests();
    let services: Vec<_> = requests.iter().map(|request| field(request, "Service")).collect();
    assert_eq!(
        services,
        ["comment_detection_pro", "comment_detection_pro", "nickname_detection_pro", "comment_detection_pro"]
    );
    for request in &requests {
        request.check_acs3(KEY_ID, SECRET).unwrap();
        assert!(request.check_acs3(KEY_ID, "another secret").is_err());
        assert_eq!(request.header("x-acs-action"), Some("TextModerationPlus"));
        assert_eq!(request.header("x-acs-version"), Some("2022-03-02"));
        assert_eq!(request.header("content-type"), Some("application/x-www-form-urlencoded"));
        let sent = String::from_utf8(request.body.clone()).unwrap();
        assert!(!sent.contains(OWN), "{sent}");
    }
    assert_eq!(content_of(&requests[0]), "今年 换工作&合适=吗？+%");
    let account = |index: usize| -> Value {
        serde_json::from_str::<Value>(&field(&requests[index], "ServiceParameters")).unwrap()["accountId"].clone()
    };
    assert_eq!(account(0), account(1), "one user is one account");
    assert_ne!(account(0), json!(user.user_id));
    let nonces: std::collections::BTreeSet<_> =
        requests.iter().map(|request| request.header("x-acs-signature-nonce").unwrap()).collect();
    assert_eq!(nonces.len(), requests.len());
}

#[test]
fn does_not_reject_divination_terms() {
    let provider =
        FakeProvider::with_handler(|_| verdict("high", &[("inappropriate_superstition", "卦"), ("religion_t", "")]));
    let server = with_vendor(&provider).start();
    let (user, key) = (server.sign_in(OWN), server.api_key("operator"));
    switch(&server, &key, true).expect(200);
    assert_eq!(check(&server, &user, "道士的卦准吗").expect(200).json()["allowed"], true);
    let strict = with_vendor(&provider).with("MODERATION_IGNORED_LABELS", "religion_t").start();
    let (user, key) = (strict.sign_in(OWN), strict.api_key("operator"));
    switch(&strict, &key, true).expect(200);
    assert_eq!(check(&strict, &user, "道士的卦准吗").expect(200).json()["allowed"], false);
}

#[test]
fn splits_long_texts_and_uses_the_worst_result() {
    let provider = FakeProvider::with_handler(|request| judged(request, "微信"));
    let server = with_vendor(&provider).start();
    let key = server.api_key("operator");
    let text = format!("{}微信{}", "卦".repeat(1_150), "象".repeat(300));
    let compared = post(&server, &key, "compare", &json!({ "content": text }));
    assert_eq!((&compared["external"]["allowed"], &compared["agree"]), (&json!(false), &json!(false)));
    assert_eq!(compared["external"]["matches"][0]["start"], 1_150);
    let sent: Vec<usize> = provider.requests().iter().map(|request| content_of(request).chars().count()).collect();
    assert!(sent.len() >= 2 && sent.iter().all(|&length| length <= 600), "{sent:?}");
}

#[test]
fn sends_no_request_for_empty_texts() {
    let provider = FakeProvider::with_handler(|request| judged(request, "微信"));
    let server = with_vendor(&provider).start();
    let (user, key) = (server.sign_in(OWN), server.api_key("operator"));
    switch(&server, &key, true).expect(200);
    server.put("/user/nickname").by(&user).form(&[("nickname", "")]).send().expect(200);
    assert!(provider.requests().is_empty());
}

#[test]
fn cannot_switch_without_an_external_moderator() {
    let server = Setup::default().start();
    let key = server.api_key("operator");
    switch(&server, &key, true).expect_problem(409, "not_configured");
    assert_eq!(switch(&server, &key, false).expect(200).json()["service"], "local");
    assert!(server.command(&["moderation", "switch", "external"]).expect(1).stderr().contains("moderation.provider"));
    let health = get(&server, &key, "health-check");
    assert_eq!((&health["healthy"], &health["external"]["configured"]), (&json!(true), &json!(false)));
    let compared = post(&server, &key, "compare", &json!({ "content": "一起赌博吧" }));
    assert_eq!((&compared["agree"], &compared["external"]["error"]), (&json!(null), &json!("not_configured")));
    assert_eq!(compared["local"]["allowed"], false);
}

#[test]
fn status_shows_both_moderators_and_the_switches() {
    let provider = FakeProvider::with_handler(|_| Reply::status(500));
    let server = with_vendor(&provider).start();
    let (user, key) = (server.sign_in(OWN), server.api_key("operator"));
    let status = get(&server, &key, "status");
    assert_eq!((&status["service"], &status["useAliyun"]), (&json!("local"), &json!(false)));
    assert_eq!((&status["enableFallback"], &status["external"]["provider"]), (&json!(true), &json!("aliyun")));
    assert!(status["local"]["wordCount"].as_i64().unwrap() > 40);
    assert_eq!((&status["external"]["breaker"], &status["external"]["lastFailure"]), (&json!("closed"), &json!(null)));
    let switched = post(&server, &key, "switch", &json!({ "useAliyun": "true" }));
    assert_eq!((&switched["service"], &switched["useAliyun"]), (&json!("external"), &json!(true)));
    for _ in 0..5 {
        assert_eq!(check(&server, &user, "今年换工作合适吗").expect(200).json()["degraded"], true);
    }
    let status = get(&server, &key, "status");
    assert_eq!(
        (&status["external"]["breaker"], &status["external"]["lastFailure"]["code"]),
        (&json!("open"), &json!("http_500"))
    );
    let health = get(&server, &key, "health-check");
    assert_eq!((&health["healthy"], &health["external"]["breaker"]), (&json!(false), &json!("open")));
    fallback(&server, &key, false);
    assert_eq!(get(&server, &key, "status")["enableFallback"], false);
    for (path, name) in [("switch", "useAliyun"), ("fallback", "enableFallback")] {
        let request = server.post(&format!("{MIGRATION}/{path}")).token(&key);
        request.clone().send().expect_fields(&[(name, "required")]);
        request.json(&json!({ name: "perhaps" })).send().expect_fields(&[(name, "invalid_type")]);
    }
}

#[test]
fn switches_are_audited_and_survive_a_restart() {
    let provider = FakeProvider::with_handler(|request| judged(request, "微信"));
    let server = with_vendor(&provider).in_own_process().start();
    let key = server.api_key("operator");
    switch(&server, &key, true).expect(200);
    fallback(&server, &key, false);
    let reasons = |like: &str| -> Vec<String> {
        let database = server.database();
        let sql = format!("select reason from audit where action like '{like}' order by id");
        let mut statement = database.prepare(&sql).unwrap();
        statement.query_map((), |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    assert_eq!(reasons("%/switch"), ["local to external"]);
    assert_eq!(reasons("%/fallback"), ["on to off"]);
    let server = server.crash_and_restart(with_vendor(&provider));
    let status = get(&server, &key, "status");
    assert_eq!((&status["service"], &status["enableFallback"]), (&json!("external"), &json!(false)));
}

#[test]
fn commands_switch_a_running_server() {
    let provider = FakeProvider::with_handler(|request| judged(request, "微信"));
    let server = with_vendor(&provider).start();
    let (user, key) = (server.sign_in(OWN), server.api_key("operator"));
    let settings = tempfile::NamedTempFile::new().unwrap();
    let text = format!(
        "[moderation]\nprovider = \"aliyun\"\nendpoint = \"{}\"\naccess_key_id = \"{KEY_ID}\"\naccess_key_secret = \"{SECRET}\"\n",
        provider.url()
    );
    std::fs::write(settings.path(), text).unwrap();
    let run = |arguments: &[&str]| {
        let with_file = ["--config", settings.path().to_str().unwrap(), "moderation"];
        server.command(&[&with_file, arguments].concat())
    };
    assert_eq!(run(&["switch", "external"]).expect(0).json()["service"], "external");
    std::thread::sleep(Duration::from_millis(60));
    assert_eq!(check(&server, &user, "能加你微信吗").expect(200).json()["provider"], "aliyun");
    assert_eq!(run(&["fallback", "off"]).expect(0).json()["enableFallback"], false);
    assert_eq!(get(&server, &key, "status")["enableFallback"], false);
    let compared = run(&["compare", "能加你微信吗"]).expect(0).json();
    assert_eq!((&compared["external"]["allowed"], &compared["agree"]), (&json!(false), &json!(false)));
    assert_eq!(run(&["health"]).expect(0).json()["healthy"], true);
    assert_eq!(run(&["status"]).expect(0).json()["external"]["configured"], true);
    assert_eq!(run(&["switch", "local"]).expect(0).json()["service"], "local");
    run(&["switch", "both"]).expect(2);
    let flips: i64 =
        server.value("select count(*) from audit where actor = 'cli' and action like 'yarrow moderation %'");
    assert_eq!(flips, 6, "three changes and three looks");
    drop(provider);
    assert_eq!(run(&["health"]).expect(5).json()["external"]["error"], "connect_failed");
}

#[test]
fn compares_both_moderators_on_one_text_and_a_batch() {
    let provider = FakeProvider::with_handler(|request| judged(request, "微信"));
    let server = with_vendor(&provider).start();
    let key = server.api_key("operator");
    let compared =
        post(&server, &key, "compare", &json!({ "content": LISTED, "contentType": "nickname", "userId": 1 }));
    assert_eq!((&compared["local"]["allowed"], &compared["external"]["allowed"]), (&json!(false), &json!(true)));
    assert_eq!((&compared["local"]["found"], &compared["agree"]), (&json!([LISTED]), &json!(false)));
    assert!(compared["durations"]["externalMs"].as_f64().unwrap() > 0.0);
    assert_eq!(field(&provider.requests()[0], "Service"), "nickname_detection_pro");
    let texts = ["一起赌博吧", "今年好吗", "你的微信", "加微信聊赌博"];
    let items: Vec<Value> = texts.iter().map(|content| json!({ "content": content })).collect();
    let expected = [(false, true), (true, true), (true, false), (false, false)];
    for body in [json!({ "items": items }), json!(items)] {
        let compared = post(&server, &key, "batch-compare", &body);
        for ((text, (local, external)), item) in texts.iter().zip(expected).zip(compared["items"].as_array().unwrap()) {
            assert_eq!(
                (&item["local"]["allowed"], &item["external"]["allowed"]),
                (&json!(local), &json!(external)),
                "{text}"
            );
        }
        let summary = json!({
            "total": 4, "agreed": 2, "disagreed": 2, "failed": 0, "onlyLocalRefused": 1, "onlyExternalRefused": 1,
        });
        assert_eq!(compared["summary"], summary);
    }
    assert_eq!(violations(&server), 0);
}

#[test]
fn a_batch_respects_the_concurrency_limit() {
    for calls in [1, 2] {
        let provider = FakeProvider::with_handler(|request| judged(request, "微信").after(Duration::from_millis(20)));
        let server = with_vendor(&provider).with("MODERATION_MAX_CONCURRENT_CALLS", calls).start();
        let key = server.api_key("operator");
        let items: Vec<Value> = (0..20).map(|number| json!({ "content": format!("文{number}") })).collect();
        let compared = post(&server, &key, "batch-compare", &json!(items));
        assert_eq!((&compared["summary"]["failed"], &compared["summary"]["agreed"]), (&json!(0), &json!(20)));
    }
}

#[test]
fn a_client_disconnect_is_no_moderator_failure() {
    for falls_back in [true, false] {
        let model = crate::support::model_requests::provider_streaming("大吉。宜守。");
        let provider = FakeProvider::with_handler(|request| {
            let is_answer = content_of(request).contains('吉');
            let delay = Duration::from_secs(if is_answer { 10 } else { 0 });
            judged(request, "微信").after(delay)
        });
        let setup = with_vendor(&provider).with("MODERATION_SCREEN_ANSWERS", true);
        let setup = setup.with("LLM_PROVIDER", "openai").with("LLM_MODEL", "first");
        let setup = setup.with("MODERATION_TIMEOUT", "40 s").with("LLM_HEARTBEAT", "800 ms");
        let server = setup.with("LLM_BASE_URL", format!("{}/v1", model.url())).start();
        let (user, key) = (server.sign_in(OWN), server.api_key("operator"));
        switch(&server, &key, true).expect(200);
        fallback(&server, &key, falls_back);
        let question = json!({ "question": "问" });
        // While the response is judged.
        drop(read_stream_until(&server, &user, ("/divination/enhanced", &question), ": heartbeat"));
        eventually("the call ends", || server.value::<String>("select status from interpretations") != "running");
        assert_eq!(server.value::<String>("select status || error_class from interpretations"), "cancelledcancelled");
        let status = get(&server, &key, "status");
        assert_eq!(status["external"]["lastFailure"], Value::Null, "{status}");
        assert_eq!(provider.requests().len(), 2);
    }
}

#[test]
fn limits_a_batch() {
    let server = Setup::default().start();
    let key = server.api_key("operator");
    let send = |body: Value| server.post(&format!("{MIGRATION}/batch-compare")).token(&key).json(&body).send();
    let items = |count: usize| -> Vec<Value> { (0..count).map(|n| json!({ "content": format!("文{n}") })).collect() };
    assert_eq!(send(json!(items(100))).expect(200).json()["summary"]["failed"], 100);
    send(json!(items(101))).expect_fields(&[("items", "too_many")]);
    send(json!({ "items": [] })).expect_fields(&[("items", "required")]);
    send(json!([])).expect_fields(&[("items", "required")]);
    send(json!([{ "text": "x" }])).expect_fields(&[("items[0].content", "required")]);
    send(json!([{ "content": " " }])).expect_fields(&[("items[0].content", "required")]);
    send(json!([{ "content": "字".repeat(2_001) }])).expect_fields(&[("items[0].content", "too_long")]);
    send(json!([{ "content": "好", "contentType": "poem" }]))
        .expect_fields(&[("items[0].contentType", "unknown_value")]);
    send(json!([{ "content": "好", "userId": "me" }])).expect_fields(&[("items[0].userId", "invalid_format")]);
}

#[test]
fn probes_at_most_once_a_minute() {
    let provider = FakeProvider::with_handler(|request| judged(request, "微信"));
    let server = with_vendor(&provider).start();
    let key = server.api_key("operator");
    for _ in 0..3 {
        let health = get(&server, &key, "health-check");
        assert_eq!((&health["healthy"], &health["external"]["healthy"]), (&json!(true), &json!(true)));
        assert!(health["external"]["checkedAt"].is_string());
    }
    assert_eq!(provider.requests().len(), 1);
    let broken = FakeProvider::with_handler(|_| verdict("high", &[("political_n", "")]));
    let server = with_vendor(&broken).start();
    let health = get(&server, &server.api_key("operator"), "health-check");
    assert_eq!((&health["healthy"], &health["external"]["error"]), (&json!(false), &json!("refuses_harmless_text")));
}

#[test]
fn a_moderator_behind_an_open_breaker_is_unhealthy() {
    let is_broken = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let broken = std::sync::Arc::clone(&is_broken);
    let provider = FakeProvider::with_handler(move |request| {
        let is_broken = broken.load(std::sync::atomic::Ordering::Relaxed);
        if is_broken { Reply::status(500) } else { judged(request, "微信") }
    });
    let server = with_vendor(&provider).start();
    let (user, key) = (server.sign_in(OWN), server.api_key("operator"));
    assert_eq!(get(&server, &key, "health-check")["external"]["breaker"], "closed");
    switch(&server, &key, true).expect(200);
    is_broken.store(true, std::sync::atomic::Ordering::Relaxed);
    for _ in 0..5 {
        assert_eq!(check(&server, &user, "今年换工作合适吗").expect(200).json()["degraded"], true);
    }
    // An open breaker is no failure of the moderator.
    assert_eq!(check(&server, &user, "今年换工作合适吗").expect(200).json()["degraded"], true);
    let failure = get(&server, &key, "status")["external"]["lastFailure"]["code"].clone();
    assert!(failure.is_string() && failure != "breaker_open", "{failure}");
    // The cached probe succeeded, but the breaker has failed since.
    let health = get(&server, &key, "health-check");
    assert_eq!((&health["external"]["error"], &health["external"]["breaker"]), (&json!(null), &json!("open")));
    assert_eq!((&health["healthy"], &health["external"]["healthy"]), (&json!(false), &json!(false)));
}

/// Waits for `count` stored disagreements.
fn wait_for_disagreements(server: &Server, key: &str, count: u64) -> Value {
    let started_at = Instant::now();
    loop {
        let found = get(server, key, "disagreements");
        if found["total"].as_u64() >= Some(count) {
            return found;
        }
        assert!(started_at.elapsed() < Duration::from_secs(10), "{found}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn shadow_mode_asks_the_other_moderator_and_stores_masked_disagreements() {
    let provider = FakeProvider::with_handler(|request| judged(request, "微信"));
    let server = with_vendor(&provider).with("MODERATION_SHADOW_SAMPLE_RATE", 1).start();
    let (user, key) = (server.sign_in(OWN), server.api_key("operator"));
    // Agreement, rejected only by the local list, rejected only by the external moderator. Each is
    // stored after its answer, so the order is certain only when one is waited for before the next.
    for (question, disagreements) in [("今年好吗", 0), ("一起赌博吧", 1), ("问问你的微信", 2)] {
        check(&server, &user, question).expect(200);
        wait_for_disagreements(&server, &key, disagreements);
    }
    let found = wait_for_disagreements(&server, &key, 2);
    assert_eq!(found["total"], 2);
    let of = |decided: &str, local: bool, external: bool, words: &[&str], labels: &[&str], masked: &str| {
        json!([decided, local, external, words, labels, masked])
    };
    let shown = |row: &Value| {
        json!([
            row["decidedBy"],
            row["localAllowed"],
            row["externalAllowed"],
            row["words"],
            row["labels"],
            row["maskedText"]
        ])
    };
    let rows: Vec<_> = found["items"].as_array().unwrap().iter().map(shown).collect();
    assert_eq!(rows[0], of("local", true, false, &[], &["pt_to_contact"], "问问你的**"));
    assert_eq!(rows[1], of("local", false, true, &[LISTED], &[], "一起**吧"));
    switch(&server, &key, true).expect(200);
    check(&server, &user, "还是一起赌博吧").expect(200);
    let found = wait_for_disagreements(&server, &key, 3);
    assert_eq!(shown(&found["items"][0]), of("external", false, true, &[LISTED], &[], "还是一起**吧"));
    let listed = server.command(&["moderation", "disagreements"]).expect(0).json();
    assert_eq!(listed["total"], 3);
}

#[test]
fn keeps_only_the_newest_disagreements() {
    let provider = FakeProvider::with_handler(|request| judged(request, "微信"));
    let setup = with_vendor(&provider).with("MODERATION_SHADOW_SAMPLE_RATE", 1).with("MODERATION_DISAGREEMENTS", 3);
    let server = setup.start();
    let (user, key) = (server.sign_in(OWN), server.api_key("operator"));
    for number in 0..6 {
        check(&server, &user, &format!("第{number}次的微信")).expect(200);
    }
    wait_for_disagreements(&server, &key, 3);
    let started_at = Instant::now();
    while get(&server, &key, "disagreements")["items"][0]["maskedText"] != "第5次的**" {
        assert!(started_at.elapsed() < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(get(&server, &key, "disagreements")["total"], 3);
}

#[test]
fn masks_the_whole_text_if_the_reported_word_is_not_found() {
    let provider = FakeProvider::with_handler(|request| {
        let words = if content_of(request).contains("夜") { "坏词,SECRETWORD,深夜" } else { "坏词,SECRETWORD" };
        verdict("high", &[("customized", words)])
    });
    let server = with_vendor(&provider).start();
    let (user, key) = (server.sign_in(OWN), server.api_key("operator"));
    switch(&server, &key, true).expect(200);
    let masked = "select masked_text from violations order by id desc";
    check(&server, &user, "坏词 SecretWord 高危").expect(200);
    assert_eq!(server.value::<String>(masked), "** ********** 高危");
    check(&server, &user, "坏词 SecretWord 夜").expect(200);
    assert_eq!(server.value::<String>(masked), "*".repeat(15));
}

#[test]
fn skips_samples_of_deleted_users() {
    let gate = std::sync::Arc::new(std::sync::Barrier::new(2));
    let held = std::sync::Arc::clone(&gate);
    let provider = FakeProvider::with_handler(move |request| {
        if content_of(request).starts_with('一') {
            held.wait();
        }
        judged(request, "微信")
    });
    let setup = with_vendor(&provider).with("MODERATION_SHADOW_SAMPLE_RATE", 1).with("MODERATION_TIMEOUT", "30 s");
    let server = setup.start();
    let (leaves, stays) = (server.sign_in(OWN), server.sign_in("13800138001"));
    let key = server.api_key("operator");
    check(&server, &leaves, "一问微信").expect(200);
    eventually("the first is sampled", || !provider.requests().is_empty());
    check(&server, &leaves, "二问微信").expect(200);
    server.delete("/api/v1/account").by(&leaves).send().expect(204);
    gate.wait();
    // Samples are processed in order.
    check(&server, &stays, "三问微信").expect(200);
    let stored = wait_for_disagreements(&server, &key, 1);
    assert_eq!((&stored["total"], &stored["items"][0]["maskedText"]), (&json!(1), &json!("三问**")));
    let requested: Vec<_> = provider.requests().iter().map(content_of).collect();
    assert_eq!(requested, ["一问微信", "三问微信"]);
    server.delete("/api/v1/account").by(&stays).send().expect(204);
    assert_eq!(get(&server, &key, "disagreements")["total"], 0);
}

#[test]
fn a_hanging_shadow_moderator_delays_nobody() {
    let provider = FakeProvider::with_handler(|_| verdict("none", &[]).after(Duration::from_secs(50)));
    let server =
        with_vendor(&provider).with("MODERATION_SHADOW_SAMPLE_RATE", 1).with("MODERATION_TIMEOUT", "60 s").start();
    let user = server.sign_in(OWN);
    for _ in 0..20 {
        let started_at = Instant::now();
        check(&server, &user, "今年换工作合适吗").expect(200);
        assert!(started_at.elapsed() < Duration::from_secs(20), "{:?}", started_at.elapsed());
    }
}

#[test]
fn a_sample_rate_of_zero_disables_shadow_mode() {
    let provider = FakeProvider::with_handler(|request| judged(request, "微信"));
    let server = with_vendor(&provider).start();
    let user = server.sign_in(OWN);
    for _ in 0..5 {
        check(&server, &user, "问问你的微信").expect(200);
    }
    std::thread::sleep(Duration::from_millis(600));
    assert!(provider.requests().is_empty());
}

#[test]
fn the_active_moderator_checks_interpretation_questions() {
    let provider = FakeProvider::with_handler(|request| judged(request, "微信"));
    let server = with_vendor(&provider).start();
    let (user, key) = (server.sign_in(OWN), server.api_key("operator"));
    switch(&server, &key, true).expect(200);
    let ask = |question: &str| {
        let body = json!({ "question": question, "divinationData": { "lines": [7, 8, 8, 8, 7, 6] } });
        server.post("/divination/enhanced").by(&user).json(&body).send()
    };
    ask("能加你微信吗").expect_problem(422, "content_rejected");
    ask("一起赌博吧").expect(200);
    assert_eq!(server.value::<String>("select provider from violations"), "aliyun");
}

#[test]
fn a_casting_waiting_for_the_moderator_blocks_no_worker() {
    let gate = Latch::default();
    let held = gate.clone();
    let provider = FakeProvider::with_handler(move |request| {
        held.wait();
        judged(request, "微信")
    });
    let server = with_vendor(&provider).with("MODERATION_TIMEOUT", "50 s").start();
    let (user, key) = (server.sign_in(OWN), server.api_key("operator"));
    server.command(&["points", "adjust", OWN, "1000", "--reason", "test"]).expect(0);
    switch(&server, &key, true).expect(200);
    let cast = json!({ "question": "今年换工作合适吗", "method": "three_coins" });
    std::thread::scope(|scope| {
        let casts: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| server.post("/api/v1/sessions").by(&user).json(&cast).send().status))
            .collect();
        eventually("a casting is checked", || !provider.requests().is_empty());
        std::thread::sleep(Duration::from_millis(300));
        // More castings wait than there are workers, and other requests are served.
        for _ in 0..5 {
            let started_at = Instant::now();
            server.get("/user/profile").by(&user).send().expect(200);
            assert!(started_at.elapsed() < Duration::from_secs(20), "{:?}", started_at.elapsed());
        }
        gate.open();
        let statuses: Vec<_> = casts.into_iter().map(|cast| cast.join().unwrap()).collect();
        assert!(statuses.iter().all(|status| [201, 503].contains(status)), "{statuses:?}");
    });
}

#[test]
fn requests_over_the_hourly_limit_cost_no_moderator_call() {
    let provider = FakeProvider::with_handler(|request| judged(request, "微信"));
    let server = with_vendor(&provider).with("LLM_CALLS_PER_USER_HOUR", 2).start();
    let (user, other) = (server.sign_in(OWN), server.sign_in("13800138001"));
    switch(&server, &server.api_key("operator"), true).expect(200);
    let chat = |content: &str| json!({ "messages": [{ "role": "user", "content": content }] });
    let say = |content: &str| server.post("/llm/chat").by(&user).json(&chat(content)).send();
    let ask = || server.post("/divination/enhanced").by(&user).json(&json!({ "question": "问" })).send();
    for _ in 0..2 {
        say("你好").expect(200);
        ask().expect(200);
    }
    assert_eq!(provider.requests().len(), 4);
    for _ in 0..5 {
        say("你好").expect_problem(429, "too_many_requests");
        ask().expect_problem(429, "too_many_requests");
    }
    assert_eq!(provider.requests().len(), 4);
    // Neither do users with too many violations.
    for _ in 0..2 {
        assert_eq!(check(&server, &other, "能加你微信吗").expect(200).json()["allowed"], false);
    }
    for _ in 0..5 {
        check(&server, &other, "今年换工作合适吗").expect_problem(429, "too_many_requests");
    }
    assert_eq!(provider.requests().len(), 6);
}

#[test]
fn limits_moderator_calls_of_a_user_an_hour() {
    let provider = FakeProvider::with_handler(|request| judged(request, "微信"));
    let server = with_vendor(&provider).with("MODERATION_TEXTS_PER_USER_HOUR", 4).start();
    let (user, other, key) = (server.sign_in(OWN), server.sign_in("13800138001"), server.api_key("operator"));
    switch(&server, &key, true).expect(200);
    let rename = |user: &Caller| server.put("/user/profile").by(user).form(&[("nickname", "青山")]).send();
    check(&server, &user, "今年换工作合适吗").expect(200);
    rename(&user).expect(200);
    let both = json!({ "question": "问", "questionType": "事业" });
    let ask = || server.post("/divination/enhanced").by(&user).json(&both).send();
    ask().expect(200);
    assert_eq!(provider.requests().len(), 4);
    for _ in 0..3 {
        check(&server, &user, "今年换工作合适吗").expect_problem(429, "too_many_requests");
        rename(&user).expect_problem(429, "too_many_requests");
        let problem = ask();
        let wait: u64 = problem.header("retry-after").unwrap().parse().unwrap();
        assert!((3_500..=3_600).contains(&wait), "{wait}");
        problem.expect_problem(429, "too_many_requests");
    }
    assert_eq!(provider.requests().len(), 4);
    // The limit is per user. Administrator tests and local checks do not count.
    rename(&other).expect(200);
    let tried = server.post("/content-moderation/check-question").token(&key).json(&json!({ "question": "问" }));
    tried.send().expect(200);
    switch(&server, &key, false).expect(200);
    rename(&user).expect(200);
    ask().expect(200);
}

#[test]
fn returns_an_interpretation_completed_during_the_check() {
    let model = provider_streaming("泽雷随");
    let mut requested = 0;
    let provider = FakeProvider::with_handler(move |request| {
        requested += 1;
        judged(request, "微信").after(Duration::from_secs(if requested == 1 { 5 } else { 0 }))
    });
    let setup = with_vendor(&provider).with("LLM_PROVIDER", "openai").with("LLM_MODEL", "first");
    let setup = setup.with("LLM_BASE_URL", format!("{}/v1", model.url())).with("MODERATION_TIMEOUT", "20 s");
    let server = setup.start();
    let (user, key) = (server.sign_in(OWN), server.api_key("operator"));
    server.command(&["points", "adjust", OWN, "100", "--reason", "test"]).expect(0);
    let cast = json!({ "question": "问", "questionType": "career", "method": "three_coins" });
    let session = server.post("/api/v1/sessions").by(&user).json(&cast).send().expect(201).json();
    let interpret = || {
        let path = format!("/api/v1/sessions/{}/interpretation", session["id"].as_str().unwrap());
        server.post(&path).by(&user).send().expect(200).json()
    };
    switch(&server, &key, true).expect(200);
    std::thread::scope(|scope| {
        let slow = scope.spawn(interpret);
        eventually("the question is checked", || provider.requests().len() == 1);
        let quick = interpret();
        assert_eq!(slow.join().unwrap()["traceId"], quick["traceId"]);
    });
    assert_eq!(model.requests().len(), 1);
}

#[test]
fn an_accepted_change_still_waits_for_the_disk() {
    let provider = FakeProvider::with_handler(|request| judged(request, "微信"));
    let server = with_vendor(&provider).with("LIMITS_WRITE_TIMEOUT", "500 ms").start();
    let (user, key) = (server.sign_in(OWN), server.api_key("operator"));
    switch(&server, &key, true).expect(200);
    let database = server.database();
    database.execute_batch("begin immediate").unwrap();
    let started_at = Instant::now();
    let change = server.put("/user/nickname").by(&user).form(&[("nickname", "青山")]);
    let refused = change.send().expect_problem(503, "overloaded").json();
    let took = started_at.elapsed();
    assert!(refused["detail"].as_str().unwrap().contains("may still be made"), "{refused}");
    assert!(took < Duration::from_secs(3), "{took:?}");
    database.execute_batch("rollback").unwrap();
    eventually("the change is made", || server.value::<i64>("select count(*) from users where nickname = '青山'") == 1);
}
