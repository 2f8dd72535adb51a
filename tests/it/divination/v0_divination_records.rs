//! `/divination/records`: interpretation records as users and operators read them.

use serde_json::{Value, json};

use crate::support::{Caller, FakeModel, ModelBehaviour, Request, Server, Setup};

const PHONE: &str = "13800138000";
const OTHER: &str = "13800138001";

fn interpret(server: &Server, user: &Caller, question: &str) -> Value {
    let body = json!({ "question": question, "divinationData": { "lines": [7, 8, 8, 8, 7, 6] } });
    server.post("/divination/enhanced").by(user).json(&body).send().json()
}

fn questions(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|item| item["question"].as_str().unwrap()).collect()
}

fn of(request: Request) -> Value {
    request.send().expect(200).json()
}

/// Moves the calls to the given days of January, in order of creation.
fn spread(server: &Server, days: &[u32]) {
    for (index, day) in days.iter().enumerate() {
        let at = 1_767_225_600_000_i64 + i64::from(day - 1) * 86_400_000;
        server.edit(&format!("update interpretations set created_at = {at} where id = {}", index + 1));
    }
}

#[test]
fn finds_records_by_phone_number() {
    let server = Setup::default().start();
    let (user, other) = (server.sign_in(PHONE), server.sign_in(OTHER));
    interpret(&server, &user, "甲");
    interpret(&server, &other, "乙");
    interpret(&server, &user, "丙");
    let path = format!("/divination/records/phone/{PHONE}");
    assert_eq!(questions(&of(server.get(&path).by(&user))), ["丙", "甲"]);
    let paged = of(server.get(&path).by(&user).query(&[("page", "2"), ("size", "1")]));
    assert_eq!((questions(&paged), &paged["total"]), (vec!["甲"], &json!(2)));
    // In every spelling of the number.
    let spelled = "/divination/records/phone/%2B86%20138%200013%208000";
    assert_eq!(of(server.get(spelled).by(&user))["total"], 2);
    server.get(&path).by(&other).send().expect_problem(403, "not_yours");
    server.get("/divination/records/phone/123").by(&user).send().expect_fields(&[("phoneNumber", "invalid_format")]);

    let key = server.api_key("reports");
    assert_eq!(of(server.get(&path).token(&key))["total"], 2);
    server.get("/divination/records/phone/13800138099").token(&key).send().expect_problem(404, "not_found");
    let seen: i64 = server.value("select count(*) from audit where action = 'GET /divination/records/phone/{phoneNumber}' and user_id is not null");
    assert_eq!(seen, 1);
}

#[test]
fn ranges_are_half_open_and_newest_first() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    for question in ["一", "二", "三", "四"] {
        interpret(&server, &user, question);
    }
    // In January, at midnight UTC of these days.
    spread(&server, &[1, 3, 2, 5]);
    let path = format!("/divination/records/user/{}/daterange", user.user_id);
    let between =
        |start: &str, end: &str| of(server.get(&path).by(&user).query(&[("startTime", start), ("endTime", end)]));
    assert_eq!(questions(&between("2026-01-01T00:00:00Z", "2026-01-05T00:00:00Z")), ["二", "三", "一"]);
    assert_eq!(questions(&between("2026-01-05T00:00:00Z", "2026-01-05T00:00:00.001Z")), ["四"]);
    assert_eq!(between("2026-01-03T00:00:00Z", "2026-01-03T00:00:00Z")["total"], 0);
    // Dates without a zone are local: midnight in Shanghai is 16:00 UTC the day before. A whole day is included.
    assert_eq!(questions(&between("2026-01-03", "2026-01-04")), ["二"]);
    assert_eq!(questions(&between("2026-01-02", "2026-01-03")), ["二", "三"]);
    assert_eq!(questions(&between("2026-01-02", "2026-01-03T23:59:59")), ["二", "三"]);
    assert_eq!(questions(&between("2026-01-02T00:00:00", "2026-01-03T00:00:00")), ["三"]);
    for midnight in ["2026-01-03T00:00:00", "2026-01-03T00:00:00+08:00", "20260103000000", "202601030000"] {
        assert_eq!(questions(&between(midnight, midnight)), ["二"], "{midnight}");
    }
    assert_eq!(questions(&between("1767225600000", "1767312000000")), ["一"]);
    let all = [("startTime", "2026-01-01"), ("endTime", "2026-02-01"), ("page", "2"), ("size", "3")];
    let second = of(server.get(&path).by(&user).query(&all));
    assert_eq!((questions(&second), &second["total"], &second["page"]), (vec!["一"], &json!(4), &json!(2)));

    let bad = |query: &[(&str, &str)]| server.get(&path).by(&user).query(query).send();
    bad(&[]).expect_fields(&[("startTime", "required"), ("endTime", "required")]);
    bad(&[("startTime", "soon"), ("endTime", "2026-01-01")]).expect_fields(&[("startTime", "invalid_format")]);
    bad(&[("startTime", "2026-01-02"), ("endTime", "2026-01-01")]).expect_fields(&[("endTime", "out_of_range")]);

    let key = server.api_key("reports");
    let count = |start: &str, end: &str| {
        let query = [("startTime", start), ("endTime", end)];
        of(server.get("/divination/stats/daterange/count").token(&key).query(&query))["count"].clone()
    };
    assert_eq!((count("2026-01-01", "2026-02-01"), count("2026-01-06", "2026-02-01")), (json!(4), json!(0)));
    let query = [("startTime", "2026-01-02"), ("endTime", "2026-01-01")];
    let reversed = server.get("/divination/stats/daterange/count").token(&key).query(&query).send();
    reversed.expect_fields(&[("endTime", "out_of_range")]);
}

#[test]
fn reads_dates_without_a_zone_in_the_configured_zone() {
    let server = Setup::default().with("LIMITS_TIME_ZONE", "Europe/Berlin").start();
    let user = server.sign_in(PHONE);
    for (index, at) in ["2026-01-15T22:59:59Z", "2026-01-15T23:00:00Z", "2026-07-15T22:00:00Z"].iter().enumerate() {
        interpret(&server, &user, at);
        let id = index + 1;
        server.edit(&format!("update interpretations set created_at = unixepoch('{at}') * 1000 where id = {id}"));
    }
    let path = format!("/divination/records/user/{}/daterange", user.user_id);
    let between =
        |start: &str, end: &str| of(server.get(&path).by(&user).query(&[("startTime", start), ("endTime", end)]));
    assert_eq!(questions(&between("2026-01-15", "2026-01-15")), ["2026-01-15T22:59:59Z"]);
    assert_eq!(questions(&between("2026-01-16 00:00:00", "2026-01-16 00:00:01")), ["2026-01-15T23:00:00Z"]);
    // Two hours ahead in summer.
    assert_eq!(questions(&between("2026-07-16", "2026-07-17")), ["2026-07-15T22:00:00Z"]);
}

#[test]
fn counts_only_records_of_the_user() {
    let server = Setup::default().start();
    let (user, other) = (server.sign_in(PHONE), server.sign_in(OTHER));
    for _ in 0..3 {
        interpret(&server, &user, "问");
    }
    let path = format!("/divination/stats/user/{}/count", user.user_id);
    assert_eq!(of(server.get(&path).by(&user)), json!({ "count": 3 }));
    server.get(&path).by(&other).send().expect_problem(403, "not_yours");
    let key = server.api_key("reports");
    assert_eq!(of(server.get(&path).token(&key)), json!({ "count": 3 }));
    server.get("/divination/stats/user/999999/count").token(&key).send().expect_problem(404, "not_found");
}

#[test]
fn operators_see_failed_and_slow_calls() {
    let model = FakeModel::start(ModelBehaviour::Status(400));
    let server = model.setup().start();
    let user = server.sign_in(PHONE);
    let key = server.api_key("reports");
    for question in ["一", "二", "三"] {
        interpret(&server, &user, question);
    }
    server
        .edit("update interpretations set status = 'succeeded', error_class = null, duration_ms = 20000 where id = 2");
    server.edit("update interpretations set status = 'interrupted', duration_ms = null where id = 3");
    server.edit("update interpretations set duration_ms = 9999 where id = 1");
    let report = |path: &str, query: &[(&str, &str)]| of(server.get(path).token(&key).query(query));
    let failed = report("/divination/records/failed", &[]);
    assert_eq!((questions(&failed), &failed["total"]), (vec!["三", "一"], &json!(2)));
    assert_eq!(failed["items"][1]["errorClass"], "refused");
    assert_eq!(questions(&report("/divination/records/failed", &[("page", "2"), ("size", "1")])), ["一"]);

    assert_eq!(questions(&report("/divination/records/slow", &[])), ["二"]);
    let slow = report("/divination/records/slow", &[("durationMs", "9999")]);
    assert_eq!((questions(&slow), &slow["total"]), (vec!["二", "一"], &json!(2)));
    let second = report("/divination/records/slow", &[("durationMs", "0"), ("page", "2"), ("size", "1")]);
    assert_eq!((questions(&second), &second["total"]), (vec!["一"], &json!(2)));
    let bad = server.get("/divination/records/slow").token(&key).query(&[("durationMs", "-1")]).send();
    bad.expect_fields(&[("durationMs", "out_of_range")]);
    for path in ["/divination/records/failed", "/divination/records/slow", "/divination/stats/daterange/count"] {
        server.get(path).by(&user).send().expect_problem(403, "forbidden");
    }
}

#[test]
fn records_include_usage_and_cost() {
    let model = FakeModel::start(ModelBehaviour::Pieces(vec!["吉"]));
    let server = model.setup().with("LLM_PRICES", "stub-1=2.00/8.00").start();
    let user = server.sign_in(PHONE);
    let response = interpret(&server, &user, "问");
    let path = format!("/divination/records/trace/{}", response["traceId"].as_str().unwrap());
    let record = of(server.get(&path).by(&user));
    // 11 tokens in at 2 and 7 out at 8 per million.
    assert_eq!(
        (&record["cost"], &record["usage"]),
        (&json!("0.000078"), &json!({ "promptTokens": 11, "completionTokens": 7 }))
    );
    assert_eq!(
        (&record["provider"], &record["model"], &record["promptVersion"]),
        (&json!("openai"), &json!("stub-1"), &json!("5"))
    );
    assert!(record["firstTokenMs"].as_i64().unwrap() <= record["durationMs"].as_i64().unwrap(), "{record}");
    assert_eq!((&record["failover"], &record["errorClass"]), (&Value::Null, &Value::Null));
}

#[test]
fn lists_and_counts_use_their_indexes() {
    let server = Setup::default().start();
    let queries = [
        "select result from interpretations where user_id = ?1 and created_at >= ?2 and created_at < ?3 \
         order by created_at desc, id desc limit ?4 offset ?5",
        "select count(*) from interpretations where user_id = ?1 and created_at >= ?2 and created_at < ?3",
        "select count(*) from interpretations where user_id = ?1",
        "select result from interpretations where user_id = ?1 order by created_at, id",
        "select count(*) from interpretations where created_at >= ?1 and created_at < ?2",
        "select result from interpretations where status in ('failed', 'interrupted') order by id desc limit ?1 offset ?2",
        "select count(*) from interpretations where status in ('failed', 'interrupted')",
        "select count(*) from interpretations where duration_ms >= ?1",
        "select model from chats where user_id = ?1 order by created_at, id",
        "select calls from model_usage where day >= ?1 and day <= ?2 order by day, kind, provider, model, outcome",
        "select tokens from model_spending where day = ?1 and user_id = ?2",
        "delete from running_calls where copy = ?1 returning trace_id",
        "update running_calls set user_id = null where user_id = ?1",
        "select day, user_id from model_spending where day < ?1 order by day, user_id limit ?2",
    ];
    for sql in queries {
        for step in server.query_plan(sql) {
            let is_partial = step.contains("interpretations_failed");
            assert!((!step.starts_with("SCAN") || is_partial) && !step.contains("TEMP B-TREE"), "{sql}: {step}");
        }
    }
    // Slow calls are few. They are found by duration, and only the returned ids are sorted.
    let slow = "select result from interpretations where id in (select id from interpretations where duration_ms >= ?1 \
                order by +id desc limit ?2 offset ?3) order by id desc";
    let plan = server.query_plan(slow);
    assert!(plan.iter().any(|step| step.contains("interpretations_by_duration (duration_ms>?)")), "{plan:?}");
    assert!(!plan.iter().any(|step| step.starts_with("SCAN")), "{plan:?}");
}
