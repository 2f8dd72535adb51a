//! `/feedback`: access, limits and reading.

use serde_json::{Value, json};

use crate::support::Setup;

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
