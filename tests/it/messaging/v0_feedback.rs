//! `/feedback`: access, limits and reading.

use serde_json::{Value, json};

use crate::support::{Server, Setup, send_concurrently};

const OWN: &str = "13800138000";

#[test]
fn users_write_only_in_their_own_name() {
    let server = Setup::default().start();
    let (user, other) = (server.sign_in(OWN), server.sign_in("13800138001"));
    let key = server.api_key("tests");
    let submit = |body: Value| server.post("/feedback").json(&body);
    let created = submit(json!({ "user_id": user.user_id, "phone_number": "+86 138 0013 8000", "content": " 很好 " }));
    let created = created.by(&user).send().expect(200).json();
    assert_eq!(created["content"], "很好");
    // Only the length is checked, not the words.
    submit(json!({ "content": "有人赌博" })).by(&user).send().expect(200);
    for foreign in [
        json!({ "user_id": other.user_id, "content": "x" }),
        json!({ "userId": other.user_id, "content": "x" }),
        json!({ "phone_number": "13800138001", "content": "x" }),
        json!({ "phone_number": OWN, "phoneNumber": "13800138001", "content": "x" }),
        json!({ "user_id": "999999", "content": "x" }),
    ] {
        submit(foreign).by(&user).send().expect_problem(403, "not_yours");
    }
    submit(json!({ "content": "x" })).token(&key).send().expect_problem(403, "forbidden");
    let listed = server.get("/admin/feedback").token(&key).send().expect(200).json();
    assert_eq!(listed["total"], 2);
    let first = &listed["items"][1];
    assert_eq!(
        (&first["userId"], &first["isVerified"], &first["phoneNumber"]),
        (&json!(user.user_id), &json!(true), &json!(OWN))
    );
    assert_eq!((&first["id"], &first["createdAt"]), (&created["id"], &created["createdAt"]));
}

#[test]
fn accepts_anonymous_feedback_and_trusts_none_of_its_claims() {
    let server = Setup::default().start();
    let user = server.sign_in(OWN);
    let key = server.api_key("tests");
    let form = [("user_id", user.user_id.as_str()), ("phone_number", OWN), ("content", "我是他")];
    server.post("/feedback").form(&form).send().expect(200);
    server.post("/feedback").query(&[("content", "nobody")]).send().expect(200);
    let listed = server.get("/admin/feedback").token(&key).send().expect(200).json();
    let claimed = &listed["items"][1];
    assert_eq!((&claimed["userId"], &claimed["phoneNumber"]), (&json!(user.user_id), &json!(OWN)));
    assert_eq!(claimed["isVerified"], false);
    assert_eq!((&listed["items"][0]["userId"], &listed["items"][0]["isVerified"]), (&Value::Null, &json!(false)));
    let of_user = server.get("/admin/feedback").query(&[("userId", &user.user_id)]).token(&key).send().json();
    assert_eq!(of_user["total"], 1);
    let listed = server.command(&["feedback", "list", "--user", OWN]).expect(0).json();
    assert_eq!(listed["items"][0]["content"], "我是他");
    assert!(server.command(&["audit", "--user", OWN]).expect(0).json().to_string().contains("yarrow feedback list"));
}

#[test]
fn anonymous_senders_have_a_lower_hourly_limit() {
    let setup = Setup::default().with("LIMITS_FEEDBACK_PER_CLIENT", 2).with("LIMITS_FEEDBACK_PER_USER", 3);
    let server = setup.start();
    let user = server.sign_in(OWN);
    let submit = || server.post("/feedback").json(&json!({ "content": "x" }));
    for _ in 0..2 {
        submit().send().expect(200);
    }
    let refused = submit().send().expect_problem(429, "too_many_requests");
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((3_590..=3_601).contains(&wait), "{wait}");
    for _ in 0..3 {
        submit().by(&user).send().expect(200);
    }
    submit().by(&user).send().expect_problem(429, "too_many_requests");
    // A rolling window: once the oldest is an hour old, one more fits.
    server.edit("update feedback set created_at = created_at - 3600001 where id in (1, 3)");
    submit().send().expect(200);
    submit().send().expect_problem(429, "too_many_requests");
    submit().by(&user).send().expect(200);
    submit().by(&user).send().expect_problem(429, "too_many_requests");
}

#[test]
fn rejects_empty_and_long_feedback() {
    let server = Setup::default().start();
    let submit = |body: Value| server.post("/feedback").json(&body).send();
    submit(json!({ "content": "乾".repeat(1001) })).expect_fields(&[("content", "too_long")]);
    submit(json!({ "content": "  " })).expect_fields(&[("content", "required")]);
    submit(json!({ "content": "x", "user_id": "me", "phone_number": "12" }))
        .expect_fields(&[("user_id", "invalid_format"), ("phone_number", "invalid_format")]);
    submit(json!({ "content": "乾".repeat(1000) })).expect(200);
}

/// Submits feedback of a user and returns its id.
fn submitted(server: &Server, user: &crate::support::Caller, content: &str) -> String {
    let sent = server.post("/feedback").by(user).json(&json!({ "content": content })).send().expect(200).json();
    sent["id"].as_str().unwrap().to_owned()
}

#[test]
fn staff_assign_answer_and_close_feedback() {
    let server = Setup::default().start();
    let user = server.sign_in(OWN);
    let alice = server.admin("alice", "correct horse battery");
    let id = submitted(&server, &user, "金币没有到账");
    submitted(&server, &user, "很好");
    let path = format!("/admin/feedback/{id}");
    let change = |body: Value| server.patch(&path).token(&alice).json(&body).send();
    let changed = change(json!({ "state": "in_progress", "assignee": "alice" })).expect(200).json();
    assert_eq!((&changed["state"], &changed["assignee"]), (&json!("in_progress"), &json!("alice")));
    change(json!({ "state": "lost" })).expect_fields(&[("state", "unknown_value")]);
    change(json!({ "assignee": "nobody" })).expect_fields(&[("assignee", "unknown_value")]);
    let list =
        |query: &[(&str, &str)]| server.get("/admin/feedback").token(&alice).query(query).send().expect(200).json();
    assert_eq!(
        (list(&[("state", "open")])["total"].as_i64(), list(&[("assignee", "alice")])["total"].as_i64()),
        (Some(1), Some(1))
    );
    assert_eq!(list(&[("assignee", "alice"), ("state", "closed")])["total"], 0);
    let reply = |text: &str| server.post(&format!("{path}/reply")).token(&alice).json(&json!({ "text": text }));
    reply("").send().expect_fields(&[("text", "required")]);
    reply(&"乾".repeat(1001)).send().expect_fields(&[("text", "too_long")]);
    let replied = reply(" 已补发，请查看 ").send().expect(201).json();
    assert_eq!(replied["replies"][0]["content"], "已补发，请查看");
    let inbox = server.get("/api/v1/notifications").by(&user).send().expect(200).json();
    assert_eq!(
        (&inbox["items"][0]["title"], &inbox["items"][0]["body"]),
        (&json!("您的反馈有了回复"), &json!("已补发，请查看"))
    );
    server.patch("/api/v1/preferences").by(&user).json(&json!({ "locale": "en" })).send().expect(200);
    for _ in 0..2 {
        reply("Done").header("idempotency-key", "k").send().expect(201);
    }
    let inbox = server.get("/api/v1/notifications").by(&user).send().expect(200).json();
    assert_eq!(
        (&inbox["items"][0]["title"], inbox["items"].as_array().unwrap().len()),
        (&json!("A reply to your feedback"), 2)
    );
    let done = json!({ "text": "Bye", "state": "closed" });
    let closed = server.post(&format!("{path}/reply")).token(&alice).json(&done).send().expect(201).json();
    assert_eq!((&closed["state"], &closed["replies"][2]["content"]), (&json!("closed"), &json!("Bye")));
    assert_eq!(reply("Again").send().expect(201).json()["state"], "closed", "a reply reopens nothing");
    assert!(change(json!({ "state": "closed", "assignee": "" })).expect(200).json()["assignee"].is_null());
    let exported = server.get("/api/v1/account/export").by(&user).send().expect(200).json();
    assert_eq!(exported["feedback"][0]["replies"][1]["content"], "Done");
    assert!(!exported["feedback"].to_string().contains("alice"), "{exported}");
    server.command(&["users", "erase", OWN, "--yes"]).expect(0);
    assert_eq!(server.value::<i64>("select count(*) from feedback_replies"), 0);
    change(json!({ "state": "open" })).expect_problem(404, "not_found");
}

#[test]
fn replies_reach_verified_senders_only_and_none_is_lost() {
    let server = Setup::default().start();
    let user = server.sign_in(OWN);
    let key = server.api_key("tests");
    let claimed = json!({ "content": "x", "user_id": user.user_id });
    let claimed = server.post("/feedback").json(&claimed).send().expect(200).json()["id"].as_str().unwrap().to_owned();
    let reply = |id: &str, text: &str| {
        server.post(&format!("/admin/feedback/{id}/reply")).token(&key).json(&json!({ "text": text }))
    };
    reply(&claimed, "hello").send().expect_fields(&[("text", "not_allowed")]);
    let id = submitted(&server, &user, "y");
    let answered = send_concurrently((0..8).map(|number| reply(&id, &format!("reply {number}"))).collect());
    assert!(answered.iter().all(|response| response.status == 201));
    let listed = server.command(&["feedback", "list", "--state", "in_progress"]).expect(0).json();
    assert_eq!(listed["items"][0]["replies"].as_array().unwrap().len(), 8);
    let inbox = server.get("/api/v1/notifications").by(&user).send().expect(200).json();
    assert_eq!(inbox["items"].as_array().unwrap().len(), 8);
}

#[test]
fn the_console_answers_feedback_once_on_a_double_click() {
    let server = Setup::default().start();
    let user = server.sign_in(OWN);
    let id = submitted(&server, &user, "<b>hello</b>");
    for number in 0..60 {
        server
            .edit(&format!("insert into feedback (is_verified, content, created_at) values (0, 'filler {number}', 1)"));
    }
    let cookie = server.console_cookie("alice", "support");
    let get = |path: &str| {
        let request = server.get(&format!("/admin/console/{path}")).header("cookie", &cookie);
        request.header("accept-language", "en").send().expect(200).text()
    };
    let first = get("feedback?state=open");
    let next = first.split("rel=\"next\" href=\"/admin/console/").nth(1).unwrap().split('"').next().unwrap();
    let shown = get(&next.replace("&amp;", "&"));
    assert!(
        shown.contains("&lt;b&gt;hello") && !shown.contains("filler 59") && shown.contains("138••••8000"),
        "{shown}"
    );
    let hidden = |name: &str| {
        let rest = shown.split(&format!("name=\"{name}\" value=\"")).nth(1).unwrap();
        rest.split('"').next().unwrap().to_owned()
    };
    let (csrf, once) = (hidden("csrf"), hidden("once"));
    let send = |act: &str, fields: &[(&str, &str)]| {
        let all = [&[("csrf", csrf.as_str()), ("once", once.as_str()), ("id", id.as_str())], fields].concat();
        let path = format!("/admin/console/feedback/{act}");
        server.post(&path).header("cookie", &cookie).header("accept-language", "en").form(&all).send()
    };
    let refused = send("reply", &[("text", ""), ("back", &hidden("back").replace("&amp;", "&"))]).expect(422).text();
    assert!(refused.contains("is required"), "{refused}");
    for _ in 0..2 {
        let sent = send("reply", &[("text", "谢谢"), ("back", "/admin/console/feedback?state=open")]).expect(303);
        assert_eq!(sent.header("location"), Some("/admin/console/feedback?state=open"));
    }
    assert_eq!(server.value::<i64>("select count(*) from feedback_replies"), 1);
    let sent = send("change", &[("state", "in_progress"), ("assignee", "alice"), ("back", "https://evil.example/")]);
    assert_eq!(sent.expect(303).header("location"), Some("/admin/console/feedback"));
    assert!(get("feedback?mine=true").contains("&lt;b&gt;hello"));
    assert!(get("").contains("<span class=\"count\">60"));
}
