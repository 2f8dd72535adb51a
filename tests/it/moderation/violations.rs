//! Violations: recording, listing and retention.

use serde_json::{Value, json};

use super::{LISTED, OWN, check, violations};
use crate::support::{Binary, Caller, Server, Setup};

const DAY: i64 = 24 * 60 * 60 * 1_000;

fn list(server: &Server, key: &str, query: &[(&str, &str)]) -> Value {
    server.get("/admin/violations/list").token(key).query(query).send().expect(200).json()
}

/// Creates two users with violations of different kinds.
fn fixture() -> (Server, Caller, Caller, String) {
    let server = Setup::default().start();
    let (user, other, key) = (server.sign_in(OWN), server.sign_in("13800138001"), server.api_key("reader"));
    for question in ["一起赌博吧", "网络赌 博好吗", "他是王八蛋"] {
        assert_eq!(check(&server, &user, question).expect(200).json()["allowed"], false);
    }
    let nickname = [("nickname", "賭博"), ("userId", other.user_id.as_str())];
    server.put("/user/nickname").by(&other).form(&nickname).send().expect_problem(422, "content_rejected");
    (server, user, other, key)
}

#[test]
fn a_rejected_question_hides_the_word_and_stores_a_masked_text() {
    let server = Setup::default().start();
    let (user, key) = (server.sign_in(OWN), server.api_key("reader"));
    let question = "和邻居一起 賭*博 会赢吗";
    let response = check(&server, &user, question).expect(200);
    let expected = json!({ "allowed": false, "contentType": "question", "provider": "local", "degraded": false });
    assert_eq!(response.json(), expected);
    let shown = list(&server, &key, &[])["items"][0].clone();
    assert_eq!((&shown["userId"], &shown["contentType"]), (&json!(user.user_id), &json!("question")));
    assert_eq!((&shown["violationType"], &shown["matchedWords"]), (&json!("gambling"), &json!([LISTED])));
    assert_eq!((&shown["maskedText"], &shown["provider"]), (&json!("和邻居一起 *** 会赢吗"), &json!("local")));
    let path = format!("/admin/violations/{}", shown["id"].as_str().unwrap());
    assert_eq!(server.get(&path).token(&key).send().expect(200).json(), shown);
    assert!(!server.has_stored(question), "the text is on disk");
}

#[test]
fn an_accepted_question_stores_nothing() {
    let server = Setup::default().start();
    let user = server.sign_in(OWN);
    let response = check(&server, &user, "今年换工作合适吗？").expect(200).json();
    assert_eq!(response, json!({ "allowed": true, "contentType": "question", "provider": "local", "degraded": false }));
    assert_eq!(violations(&server), 0);
}

#[test]
fn an_administrator_check_shows_the_word_and_records_nothing() {
    let server = Setup::default().start();
    let (user, key) = (server.sign_in(OWN), server.api_key("reader"));
    let ask = |body: Value| server.post("/content-moderation/check-question").token(&key).json(&body).send();
    let response = ask(json!({ "question": "一起赌博吧" })).expect(200).json();
    assert_eq!((&response["allowed"], &response["matches"][0]["word"]), (&json!(false), &json!(LISTED)));
    ask(json!({ "question": "一起赌博吧", "userId": user.user_id })).expect(200);
    ask(json!({ "question": "一起赌博吧", "userId": 999_999 })).expect_problem(404, "not_found");
    assert_eq!(violations(&server), 0);
}

#[test]
fn rejects_checks_in_the_name_of_another_user() {
    let server = Setup::default().start();
    let (user, other) = (server.sign_in(OWN), server.sign_in("13800138001"));
    for id in [other.user_id.as_str(), "999999"] {
        let body = json!({ "question": "好吗", "userId": id });
        let request = server.post("/content-moderation/check-question").by(&user).json(&body);
        request.send().expect_problem(403, "not_yours");
    }
    let request = server.post("/content-moderation/check-question").by(&user);
    request.send().expect_fields(&[("question", "required")]);
    check(&server, &user, &"好".repeat(201)).expect_fields(&[("question", "too_long")]);
    server.post("/content-moderation/check-question").send().expect_problem(401, "unauthenticated");
}

#[test]
fn filters_work_alone_and_combined() {
    let (server, user, other, key) = fixture();
    let total = |query: &[(&str, &str)]| list(&server, &key, query)["total"].as_i64().unwrap();
    assert_eq!(total(&[]), 4);
    assert_eq!(total(&[("userId", &user.user_id)]), 3);
    assert_eq!(total(&[("userId", &other.user_id)]), 1);
    assert_eq!(total(&[("contentType", "question")]), 3);
    assert_eq!(total(&[("contentType", "nickname")]), 1);
    assert_eq!(total(&[("violationType", "gambling")]), 3);
    assert_eq!(total(&[("violationType", "gambling"), ("contentType", "question")]), 2);
    assert_eq!(total(&[("violationType", "gambling"), ("userId", &other.user_id)]), 1);
    assert_eq!(total(&[("violationType", "nothing")]), 0);
    server
        .edit(&format!("update violations set created_at = created_at - 2 * {DAY} where user_id = {}", other.user_id));
    let yesterday = (jiff::Timestamp::now() - jiff::SignedDuration::from_hours(24)).to_string();
    assert_eq!(total(&[("startTime", &yesterday)]), 3);
    assert_eq!(total(&[("endTime", &yesterday)]), 1);
    assert_eq!(total(&[("endTime", &yesterday), ("userId", &user.user_id)]), 0);
    let page = list(&server, &key, &[("size", "2"), ("page", "2")]);
    assert_eq!((page["items"].as_array().unwrap().len(), &page["page"], &page["size"]), (2, &json!(2), &json!(2)));
    assert_eq!(page["items"][1]["userId"], other.user_id, "the oldest is last");
    let bad = [("contentType", "poem"), ("startTime", "soon"), ("size", "0")];
    let response = server.get("/admin/violations/list").token(&key).query(&bad).send();
    response.expect_fields(&[
        ("contentType", "unknown_value"),
        ("startTime", "invalid_format"),
        ("size", "out_of_range"),
    ]);
    let backwards = [("startTime", "2026-01-02"), ("endTime", "2026-01-01")];
    let response = server.get("/admin/violations/list").token(&key).query(&backwards).send();
    response.expect_fields(&[("endTime", "out_of_range")]);
}

#[test]
fn counts_violations_by_user_and_type() {
    let (server, user, _, key) = fixture();
    let stats = |id: &str| server.get(&format!("/admin/violations/user/{id}/stats")).token(&key).send();
    let own = stats(&user.user_id).expect(200).json();
    assert_eq!((&own["total"], &own["types"][0]), (&json!(3), &json!({ "type": "gambling", "count": 2 })));
    assert_eq!(own["contentTypes"], json!([{ "type": "question", "count": 3 }]));
    assert!(own["firstAt"].as_str().unwrap() <= own["lastAt"].as_str().unwrap());
    let clean = server.sign_in("13800138002");
    assert_eq!(stats(&clean.user_id).expect(200).json()["total"], 0);
    stats("999999").expect_problem(404, "not_found");
    let types = server.get("/admin/violations/stats/types").token(&key).send().expect(200).json();
    let expected =
        json!({ "total": 4, "types": [{ "type": "gambling", "count": 3 }, { "type": "abuse", "count": 1 }] });
    assert_eq!(types, expected);
}

#[test]
fn frequent_violators_are_those_of_recent_days() {
    let (server, user, _, key) = fixture();
    let frequent = |query: &[(&str, &str)]| {
        server.get("/admin/violations/frequent-violators").token(&key).query(query).send().expect(200).json()
    };
    let found = frequent(&[]);
    assert_eq!((&found["days"], &found["threshold"], &found["total"]), (&json!(30), &json!(3), &json!(1)));
    assert_eq!((&found["items"][0]["userId"], &found["items"][0]["count"]), (&json!(user.user_id), &json!(3)));
    assert_eq!(frequent(&[("threshold", "1")])["total"], 2);
    assert_eq!(frequent(&[("threshold", "4")])["total"], 0);
    server.edit(&format!("update violations set created_at = created_at - 31 * {DAY} where id = 1"));
    assert_eq!(frequent(&[])["total"], 0);
    assert_eq!(frequent(&[("days", "32")])["total"], 1);
    let bad = [("days", "0"), ("threshold", "-1")];
    let response = server.get("/admin/violations/frequent-violators").token(&key).query(&bad).send();
    response.expect_fields(&[("days", "out_of_range"), ("threshold", "out_of_range")]);
}

#[test]
fn deletes_expired_violations_only() {
    let (server, _, _, key) = fixture();
    server.edit(&format!("update violations set created_at = created_at - 181 * {DAY} where id <= 2"));
    let clean =
        |query: &[(&str, &str)]| server.request("DELETE", "/admin/violations/cleanup").token(&key).query(query).send();
    clean(&[("daysToKeep", "0")]).expect_fields(&[("daysToKeep", "out_of_range")]);
    assert_eq!(clean(&[("daysToKeep", "182")]).expect(200).json(), json!({ "deleted": 0, "daysToKeep": 182 }));
    assert_eq!(clean(&[]).expect(200).json(), json!({ "deleted": 2, "daysToKeep": 180 }));
    assert_eq!(violations(&server), 2);
    server.edit(&format!("update violations set created_at = created_at - 2 * {DAY}"));
    server.command(&["violations", "cleanup", "--days-to-keep", "1"]).expect(2);
    assert_eq!(violations(&server), 2);
    let done = server.command(&["violations", "cleanup", "--days-to-keep", "1", "--yes"]).expect(0).json();
    assert_eq!((&done["deleted"], violations(&server)), (&json!(2), 0));
}

#[test]
fn deletes_many_expired_violations_in_batches() {
    let server = Setup::default().start();
    let key = server.api_key("cleaner");
    server.edit(
        "insert into violations (user_id, content_type, violation_type, words, masked_text, provider, created_at) \
         with recursive n(i) as (select 1 union all select i + 1 from n where i < 1700) \
         select 1, 'question', 'ads', '[]', '*', 'local', 0 from n",
    );
    let done = server.request("DELETE", "/admin/violations/cleanup").token(&key).send().expect(200).json();
    assert_eq!(done["deleted"], 1700);
}

#[test]
fn commands_list_and_count_violations() {
    let (server, user, _, _) = fixture();
    let run = |arguments: &[&str]| server.command(&[&["violations"], arguments].concat());
    assert_eq!(run(&["list"]).expect(0).json()["total"], 4);
    let of_user = run(&["list", "--user", OWN, "--type", "gambling", "--content-type", "question"]).expect(0).json();
    assert_eq!((&of_user["total"], &of_user["items"][0]["userId"]), (&json!(2), &json!(user.user_id)));
    // The table shows the id that `violations show` takes.
    let id = of_user["items"][0]["id"].as_str().unwrap();
    let mut command = Binary::command();
    let table = command.args(["violations", "list", "--data-dir"]).arg(server.directory()).output().unwrap().stdout;
    let table = String::from_utf8(table).unwrap();
    assert!(table.lines().any(|line| line.split_whitespace().next() == Some(id)), "{id}: {table}");
    assert_eq!(run(&["list", "--from", "2999-01-01"]).expect(0).json()["total"], 0);
    run(&["list", "--from", "soon"]).expect(2);
    run(&["list", "--user", "13800138055"]).expect(4);
    let stats = run(&["stats"]).expect(0).json();
    assert_eq!(stats["types"][0], json!({ "type": "gambling", "count": 3 }));
    assert_eq!(run(&["frequent"]).expect(0).json()["items"][0]["count"], 3);
    assert_eq!(run(&["stats", "--user", OWN]).expect(0).json()["total"], 3);
}

#[test]
fn every_filter_uses_its_index() {
    let server = Setup::default().start();
    let database = server.database();
    let all = ["user_id = ?1", "violation_type = ?2", "content_type = ?3", "created_at >= ?4", "created_at < ?5"];
    for given in 0..1 << all.len() {
        let terms = all.iter().enumerate().map(|(index, term)| {
            if given & (1 << index) == 0 { format!("?{} is null", index + 1) } else { (*term).to_owned() }
        });
        let condition = terms.collect::<Vec<_>>().join(" and ");
        let sql =
            format!("select id from violations where {condition} order by created_at desc, id desc limit ?6 offset ?7");
        let mut statement = database.prepare(&format!("explain query plan {sql}")).unwrap();
        let plan: Vec<String> =
            statement.query_map((1, "x", "x", 1, 2, 20, 0), |row| row.get(3)).unwrap().map(Result::unwrap).collect();
        let plan = plan.join("; ");
        assert!(plan.contains("INDEX violations_by_") && !plan.contains("TEMP B-TREE"), "{condition}: {plan}");
        assert!(given == 0 || plan.starts_with("SEARCH"), "{condition}: {plan}");
    }
}
