//! Every bad field of a request in one answer: those that are bad by themselves, and those that do not fit others.

use serde_json::{Value, json};

use crate::support::{Answer, Caller, Request, Server, Setup};

const OWN: &str = "13800138000";

struct World {
    server: Server,
    user: Caller,
    key: String,
}

impl World {
    fn new() -> Self {
        let server = Setup::default().start();
        let user = server.sign_in(OWN);
        let key = server.api_key("shop");
        Self { server, user, key }
    }

    fn by_user(&self, path: &str, body: &Value) -> Answer {
        self.server.post(path).by(&self.user).json(body).send()
    }

    fn by_admin(&self, path: &str, body: &Value) -> Answer {
        self.server.post(path).token(&self.key).json(body).send()
    }

    fn read(&self, path: &str) -> Request {
        self.server.get(path).token(&self.key)
    }
}

#[test]
fn a_casting_says_all_that_is_wrong_with_it() {
    let world = World::new();
    let cast = |body: Value| world.by_user("/api/v1/sessions", &body);
    cast(json!({ "method": "manual" })).expect_fields(&[("question", "required"), ("lines", "required")]);
    cast(json!({ "question": "q".repeat(201), "method": "manual", "lines": [6, 7] }))
        .expect_fields(&[("question", "too_long"), ("lines", "too_short")]);
    cast(json!({ "question": "q", "method": "manual", "castAt": "2999-01-01" }))
        .expect_fields(&[("castAt", "out_of_range"), ("lines", "required")]);
    cast(json!({ "method": "three_coins", "lines": [6], "castAt": "2999-01-01", "timeZone": "Mars/Utopia" }))
        .expect_fields(&[
            ("question", "required"),
            ("lines", "unknown_value"),
            ("castAt", "out_of_range"),
            ("timeZone", "unknown_value"),
        ]);
    cast(json!({ "method": "manual", "lines": [5], "castAt": "soon", "timeZone": "Mars/Utopia" })).expect_fields(&[
        ("question", "required"),
        ("lines", "out_of_range"),
        ("castAt", "invalid_format"),
        ("timeZone", "unknown_value"),
    ]);
}

#[test]
fn a_notification_says_all_that_is_wrong_with_it() {
    let world = World::new();
    let send = |body: Value| world.by_admin("/admin/notifications", &body);
    send(json!({ "audience": "users" })).expect_fields(&[
        ("title", "required"),
        ("body", "required"),
        ("userIds", "required"),
    ]);
    send(json!({ "audience": "all", "userIds": [1], "title": "t" }))
        .expect_fields(&[("body", "required"), ("userIds", "unknown_value")]);
    let past = json!({ "audience": "users", "title": "t", "body": "b", "expiresAt": "2020-01-01" });
    send(past.clone()).expect_fields(&[("userIds", "required"), ("expiresAt", "out_of_range")]);
    let mut all_wrong = past;
    all_wrong["userIds"] = json!([9999]);
    all_wrong["payload"] = json!({ "type": "open_url", "url": "http://app.example.com" });
    send(all_wrong).expect_fields(&[
        ("userIds", "unknown_value"),
        ("expiresAt", "out_of_range"),
        ("payload", "rejected"),
    ]);
}

#[test]
fn what_an_administrator_must_say_is_said_with_the_rest() {
    let world = World::new();
    let asked = |path, fields: &[(&str, &str)]| drop(world.by_admin(path, &json!({})).expect_fields(fields));
    asked("/coin/reset", &[("userId", "required"), ("reason", "required")]);
    asked("/coin/reset/phone", &[("phoneNumber", "required"), ("reason", "required")]);
    asked("/payment/update-balance", &[("orderNo", "required"), ("reason", "required")]);
    world.read("/coin/balance").send().expect_fields(&[("userId", "required")]);
    world.read("/coin/balance/phone").send().expect_fields(&[("phoneNumber", "required")]);
    world.read("/user/profile").send().expect_fields(&[("id", "required")]);
    world
        .by_admin("/admin/sensitive-words/add", &json!({ "word": "x", "type": "t".repeat(65) }))
        .expect_fields(&[("type", "too_long"), ("word", "too_short")]);
    world
        .by_admin("/admin/payments/202601020123456789012345/refund", &json!({ "amount": "0.00" }))
        .expect_fields(&[("reason", "required"), ("amount", "out_of_range")]);
    world
        .by_admin(
            "/admin/user-data/validate/batch",
            &json!({ "userIds": vec!["1"; 60], "phoneNumbers": vec![OWN; 60] }),
        )
        .expect_fields(&[("userIds", "too_many")]);
}

#[test]
fn a_range_is_judged_beside_a_page() {
    let world = World::new();
    let backwards = [("startTime", "2026-02-01"), ("endTime", "2026-01-01"), ("page", "0"), ("size", "500")];
    let wrong = [("page", "out_of_range"), ("size", "out_of_range"), ("endTime", "out_of_range")];
    for path in [
        "/admin/violations/list",
        "/admin/audit",
        "/admin/network-logs/user/1",
        "/admin/network-logs/ip/127.0.0.1",
        "/admin/network-logs/time-range",
        "/admin/network-logs/failed",
        "/admin/network-logs/suspicious",
        "/admin/network-logs/count/ip",
        "/divination/records/user/1/daterange",
    ] {
        world.read(path).query(&backwards).send().expect_fields(&wrong);
    }
    let user = world.server.get("/divination/records/user/x/daterange").by(&world.user);
    user.query(&backwards[..2]).send().expect_fields(&[("userId", "invalid_format"), ("endTime", "out_of_range")]);
    let counted = world.read("/divination/stats/daterange/count").query(&backwards[..2]);
    counted.send().expect_fields(&[("endTime", "out_of_range")]);
}

#[test]
fn a_piece_of_a_list_says_all_that_is_wrong_with_it() {
    let world = World::new();
    let other = world.server.sign_in("13900139000");
    // Another user's cursor has the form of one.
    for _ in 0..2 {
        world.server.command(&["points", "adjust", OWN, "5", "--reason", "test"]).expect(0);
    }
    let first = world.server.get("/api/v1/points/ledger").by(&world.user).query(&[("limit", "1")]);
    let first = first.send().expect(200).json();
    let cursor = first["nextCursor"].as_str().unwrap();
    for path in ["/api/v1/sessions", "/api/v1/points/ledger", "/api/v1/notifications"] {
        let list = world.server.get(path).by(&other).query(&[("cursor", cursor), ("limit", "0")]);
        let code = list.send().expect_problem(422, "invalid_parameters").json();
        let fields: Vec<_> = code["errors"].as_array().unwrap().iter().map(|error| error["field"].clone()).collect();
        assert!(fields.contains(&json!("cursor")) && fields.contains(&json!("limit")), "{path}: {fields:?}");
    }
}

#[test]
fn what_must_be_there_one_way_or_another_is_missed_with_the_rest() {
    let world = World::new();
    world.by_user("/api/v1/account/address", &json!({})).expect_fields(&[("code", "required"), ("email", "required")]);
    world
        .by_user("/api/v1/account/address", &json!({ "email": "a@example.com", "phoneNumber": OWN }))
        .expect_fields(&[("code", "required"), ("phoneNumber", "unknown_value")]);
    world
        .by_user("/divination-history/delete", &json!({ "userId": "x" }))
        .expect_fields(&[("userId", "invalid_format"), ("localRecordId", "required")]);
    let check = |body: Value| world.server.post("/version/check").json(&body).send();
    check(json!({ "platform": "?" })).expect_fields(&[("platform", "invalid_format"), ("clientVersion", "required")]);
    check(json!({ "platform": "?", "clientVersion": "one" }))
        .expect_fields(&[("platform", "invalid_format"), ("clientVersion", "invalid_format")]);
    check(json!({ "clientVersion": "one", "clientVersionCode": 7 })).expect(200);
    check(json!({ "clientVersion": "one", "clientVersionCode": "x" }))
        .expect_fields(&[("clientVersion", "invalid_format"), ("clientVersionCode", "invalid_type")]);
}

#[test]
fn every_item_of_a_batch_says_what_is_wrong_with_it_and_where() {
    let world = World::new();
    let compare = |body: Value| world.by_admin("/admin/sensitive-word-migration/batch-compare", &body);
    let wrong = json!([
        { "content": "", "contentType": "zz", "userId": "q" },
        { "content": "fine" },
        { "content": "x".repeat(3000) },
        "bare",
        { "content": 7, "userId": null },
    ]);
    let fields = [
        ("items[0].content", "required"),
        ("items[0].contentType", "unknown_value"),
        ("items[0].userId", "invalid_format"),
        ("items[2].content", "too_long"),
        ("items[3]", "invalid_type"),
        ("items[4].content", "invalid_type"),
    ];
    compare(wrong.clone()).expect_fields(&fields);
    compare(json!({ "items": wrong })).expect_fields(&fields);
    compare(json!({ "items": [] })).expect_fields(&[("items", "required")]);
    compare(json!([])).expect_fields(&[("items", "required")]);
}

#[test]
fn a_key_that_is_none_is_a_bad_field_beside_others() {
    let world = World::new();
    for key in ["", " ", &"k".repeat(256)] {
        let consume = world.server.post("/coin/consume").by(&world.user).header("idempotency-key", key);
        consume
            .json(&json!({ "userId": "abc" }))
            .send()
            .expect_fields(&[("userId", "invalid_format"), ("Idempotency-Key", "invalid_format")]);
    }
    // Where nothing is done once, nobody looks at it.
    let check = world.server.post("/content-moderation/check-question").by(&world.user).header("idempotency-key", "");
    check.json(&json!({ "question": "q" })).send().expect(200);
}
