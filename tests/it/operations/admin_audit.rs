//! Audit events of administrators' reads and changes.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{
    Document, Setup, eventually, eventually_some,
    fake_provider::{FakeProvider, Reply},
    postgresql,
    raw::disconnect_after,
};

#[test]
fn every_administrator_request_writes_an_audit_event() {
    let server = Setup::default().in_own_process().start();
    let user = server.sign_in("13800138000");
    let admin = server.admin("root", "correct horse battery staple");
    let who = [("userId", user.user_id.as_str())];
    let id = "audited-1";
    server.get("/coin/balance").query(&who).token(&admin).header("x-request-id", id).send().expect(200);
    let increase = [("phoneNumber", user.phone_number.as_str()), ("coinCount", "5"), ("reason", "sorry")];
    server.post("/coin/increase/phone").form(&increase).token(&admin).send().expect(200);
    server.get("/coin/balance").query(&[("userId", "999")]).token(&admin).send().expect(404);
    // Requests of users are not audited.
    server.get("/coin/balance").by(&user).send().expect(200);
    server.get("/healthz").token(&admin).send().expect(200);

    let rows = server.command(&["audit", "--actor", "admin:root"]).expect(0).json();
    let row =
        |row: &serde_json::Value| json!([row["action"], row["userId"], row["outcome"], row["reason"], row["clientIp"]]);
    let found: Vec<_> = rows["items"].as_array().unwrap().iter().map(row).collect();
    assert_eq!(
        found,
        [
            json!(["GET /coin/balance", null, 404, null, "127.0.0.1"]),
            json!(["POST /coin/increase/phone", user.user_id, 200, "sorry", "127.0.0.1"]),
            json!(["GET /coin/balance", user.user_id, 200, null, "127.0.0.1"]),
            json!(["POST /admin/login", null, 200, null, "127.0.0.1"]),
        ]
    );
    assert_eq!(rows["items"][2]["requestId"], id);
    let about = server.command(&["audit", "--user", "13800138000"]).expect(0).json();
    assert_eq!(about["total"], 2);
    assert!(!about.to_string().contains("13800138000"));
    assert_eq!(server.command(&["audit"]).expect(0).json()["total"], 7, "with both commands");
}

#[test]
fn audits_right_and_wrong_sign_ins_of_administrators() {
    let server = Setup::default().with("ADMIN_ATTEMPTS", 1_000).start();
    server.admin("root", "correct horse battery staple");
    let sign_in = |name: &str, password: &str, id: &str| {
        let login = json!({ "name": name, "password": password });
        server.post("/admin/login").header("x-request-id", id).json(&login).send()
    };
    sign_in("root", "wrong password", "wrong-1").expect_problem(401, "invalid_credentials");
    sign_in("hunter2-my-password", "root", "wrong-2").expect_problem(401, "invalid_credentials");
    let rows = || server.command(&["audit"]).expect(0).json();
    let found = || {
        let row = |row: &serde_json::Value| {
            json!([row["actor"], row["action"], row["outcome"], row["reason"], row["clientIp"], row["requestId"]])
        };
        let is_wrong = |row: &&serde_json::Value| row["requestId"].as_str().unwrap().starts_with("wrong");
        rows()["items"].as_array().unwrap().iter().filter(is_wrong).map(row).collect::<Vec<_>>()
    };
    eventually("both rows are written", || found().len() == 2);
    let row = |actor: &str, id: &str| json!([actor, "POST /admin/login", 401, "invalid_credentials", "127.0.0.1", id]);
    assert_eq!(found(), [row("unknown", "wrong-2"), row("admin:root", "wrong-1")]);
    assert!(!rows().to_string().contains("hunter2"));
    assert_eq!(server.command(&["audit", "--actor", "unknown"]).expect(0).json()["total"], 1);
    // Anybody can cause rows of unknown names, so an hour has only so many.
    server.edit(
        "insert into audit (id, at, actor, action, outcome, request_id) \
         with recursive n (i) as (select 1 union all select i + 1 from n where i < 99) \
         select (select max(id) from audit) + i, unixepoch() * 1000, 'unknown', 'POST /admin/login', 401, 'filler' from n",
    );
    sign_in("nobody", "wrong password", "wrong-3").expect_problem(401, "invalid_credentials");
    sign_in("root", "correct horse battery staple", "right-1").expect(200);
    // Writes are in order, so the third would be there before the row of this sign-in.
    assert_eq!(server.value::<i64>("select count(*) from audit where request_id = 'right-1'"), 1);
    assert_eq!(server.value::<i64>("select count(*) from audit where request_id like 'wrong-%'"), 2);
}

#[test]
fn audits_which_system_user_ran_a_command() {
    let server = Setup::default().in_own_process().start();
    let key = server.api_key("tests");
    let rows = server.command(&["audit", "--actor", "cli"]).expect(0).json();
    let user = rows["items"][0]["systemUser"].as_str().unwrap();
    assert!(!user.is_empty() && rows["items"][0]["actor"] == "cli", "{rows}");
    let listed = server.get("/admin/audit").query(&[("actor", "cli")]).token(&key).send().expect(200).json();
    assert_eq!(listed["items"][0]["systemUser"], user);
    let of_key = server.get("/admin/audit").query(&[("actor", "key:tests")]).token(&key).send().expect(200).json();
    assert!(of_key["items"][0]["systemUser"].is_null(), "{of_key}");
}

#[test]
fn every_administrator_endpoint_writes_an_audit_event_for_any_outcome() {
    let server = Setup::default().start();
    let user = server.sign_in("13800138000");
    let document = Document::of(&server);
    let walked: Vec<_> = document.operations.iter().filter(|operation| operation.key.is_some()).collect();
    assert!(walked.len() > 15);
    for (number, operation) in walked.iter().enumerate() {
        let id = format!("walked-{number}");
        let request = operation.bare(&server, &user).header("x-request-id", &id);
        let request = if operation.takes_body() {
            request.json(&serde_json::Value::Object(operation.right_values(&user)))
        } else {
            let values = operation.right_values(&user);
            let texts: Vec<_> = values.iter().map(|(name, value)| (name.as_str(), text_of(value))).collect();
            let texts: Vec<_> = texts.iter().map(|(name, value)| (*name, value.as_str())).collect();
            request.query(&texts)
        };
        let response = request.send();
        let row = "select action || ' ' || outcome || ' ' || actor from audit where request_id = ?1 order by id desc";
        let row: Result<String, _> = server.database().query_row(row, [&id], |row| row.get(0));
        let expected = format!("{} {} key:tests", operation.name(), response.status);
        assert_eq!(row.as_deref(), Ok(expected.as_str()), "{}: {}", operation.name(), response.text());
    }
}

#[test]
fn audits_an_operation_whose_client_disconnected() {
    let mut server = Setup::default().with_metrics().start();
    let user = server.sign_in("13800138000");
    let key = server.api_key("hasty");
    // The last use of a key is recorded separately, before the operation.
    server.get("/admin/audit").token(&key).send().expect(200);
    let increase = format!(
        "POST /coin/increase/phone?phoneNumber={}&coinCount=5&reason=sorry HTTP/1.1\r\nhost: yarrow\r\n\
         authorization: Bearer {key}\r\nx-request-id: left-early\r\ncontent-length: 0\r\n\r\n",
        user.phone_number
    );
    disconnect_after(&mut server, &increase);
    let database = server.database();
    let row = "select action || ' ' || outcome || ' ' || reason from audit where request_id = 'left-early'";
    let row = || database.query_row(row, (), |row| row.get::<_, String>(0)).ok();
    assert_eq!(eventually_some("the row of the audit", row), "POST /coin/increase/phone 200 sorry");
    assert_eq!(server.coins(&user), 5);
}

#[test]
fn audits_operations_interrupted_by_a_shutdown() {
    let provider = FakeProvider::with_handler(|_| Reply::status(200).after(Duration::from_secs(20)));
    let mut server = Setup::default()
        .with("MODERATION_PROVIDER", "aliyun")
        .with("MODERATION_ENDPOINT", provider.url())
        .with("MODERATION_ACCESS_KEY_ID", "id")
        .with("MODERATION_ACCESS_KEY_SECRET", "secret")
        .with("MODERATION_TIMEOUT", "30 s")
        .with("LIMITS_DRAIN_TIMEOUT", "300 ms")
        .start();
    let key = server.api_key("tests");
    let compare = |id: &str| {
        let compare = server.post("/admin/sensitive-word-migration/compare").token(&key).header("x-request-id", id);
        compare.json(&json!({ "content": "何时启程？" }))
    };
    let waiting = compare("cut-off");
    std::thread::spawn(move || waiting.try_send());
    eventually("the provider is called", || !provider.requests().is_empty());
    compare("refused").json(&json!({})).send().expect(422);
    let started_at = Instant::now();
    assert_eq!(server.terminate(), Some(0));
    assert!(started_at.elapsed() < Duration::from_secs(6), "{:?}", started_at.elapsed());
    let rows =
        "select group_concat(action || ' ' || outcome || ' ' || request_id) from audit where actor = 'key:tests'";
    assert_eq!(server.value::<String>(rows), "POST /admin/sensitive-word-migration/compare 202 cut-off");
}

fn text_of(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

#[test]
fn lists_audit_events_by_user_actor_and_time() {
    let server = Setup::default().start();
    let user = server.sign_in("13800138000");
    let (one, two) = (server.api_key("one"), server.api_key("two"));
    let who = [("userId", user.user_id.as_str())];
    server.get("/coin/balance").query(&who).token(&one).send().expect(200);
    server.get("/coin/balance").query(&who).token(&two).send().expect(200);
    server.post("/coin/sync").token(&one).send().expect(200);
    let total = |query: &[(&str, &str)]| {
        let listed = server.get("/admin/audit").query(query).token(&two).send().expect(200).json();
        listed["total"].as_i64().unwrap()
    };
    assert_eq!(total(&[("actor", "key:one")]), 2);
    assert_eq!(total(&[("actor", "key:one"), ("userId", &user.user_id)]), 1);
    assert_eq!(total(&[("endTime", "2026-01-01")]), 0);
    assert_eq!(total(&[("actor", "key:one"), ("startTime", "2026-01-01")]), 2);
    // Listing the events of a user is audited itself.
    assert_eq!(total(&[("userId", &user.user_id)]), 3);
    assert_eq!(total(&[("userId", &user.user_id)]), 4);
    let page = server.get("/admin/audit?size=1&page=2").token(&two).send().expect(200).json();
    assert_eq!((&page["page"], page["items"].as_array().unwrap().len()), (&json!(2), 1));
    let list = |query: &str| server.get(&format!("/admin/audit?{query}")).token(&two).send();
    list("actor=nobody&startTime=soon&page=0").expect_fields(&[
        ("actor", "invalid_format"),
        ("startTime", "invalid_format"),
        ("page", "out_of_range"),
    ]);
    list("startTime=2026-01-02&endTime=2026-01-01").expect_fields(&[("endTime", "out_of_range")]);
    // The plans are those of SQLite.
    if postgresql().is_some() {
        return;
    }
    for sql in [
        "select id from audit where user_id = 1 and at >= 0 order by id desc limit 20",
        "select id from audit where actor = 'cli' and at >= 0 order by id desc limit 20",
        "select id from audit where at >= 0 and at < 9 order by at desc, id desc limit 20",
        "select count(*) from audit where at >= 0 and at < 9",
    ] {
        let database = server.database();
        let mut statement = database.prepare(&format!("explain query plan {sql}")).unwrap();
        let steps = statement.query_map((), |row| row.get::<_, String>(3)).unwrap();
        let steps: Vec<_> = steps.map(Result::unwrap).collect();
        assert!(steps.len() == 1 && steps[0].starts_with("SEARCH"), "{sql}: {steps:?}");
    }
}
