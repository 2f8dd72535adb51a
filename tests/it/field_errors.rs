//! All invalid fields in one response, including cross-field errors.

use serde_json::{Value, json};

use crate::support::{Caller, Request, Response, Server, Setup};

const OWN: &str = "13800138000";

struct Fixture {
    server: Server,
    user: Caller,
    key: String,
}

impl Fixture {
    fn new() -> Self {
        let server = Setup::default().start();
        let user = server.sign_in(OWN);
        let key = server.api_key("shop");
        Self { server, user, key }
    }

    fn by_user(&self, path: &str, body: &Value) -> Response {
        self.server.post(path).by(&self.user).json(body).send()
    }

    fn by_admin(&self, path: &str, body: &Value) -> Response {
        self.server.post(path).token(&self.key).json(body).send()
    }

    fn read(&self, path: &str) -> Request {
        self.server.get(path).token(&self.key)
    }
}

#[test]
fn a_casting_reports_all_errors() {
    let fixture = Fixture::new();
    let cast = |body: Value| fixture.by_user("/api/v1/sessions", &body);
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
        ("lines[0]", "out_of_range"),
        ("castAt", "invalid_format"),
        ("timeZone", "unknown_value"),
    ]);
}

#[test]
fn a_notification_reports_all_errors() {
    let fixture = Fixture::new();
    let send = |body: Value| fixture.by_admin("/admin/notifications", &body);
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
fn reports_a_missing_administrator_field_with_the_others() {
    let fixture = Fixture::new();
    let requested = |path, fields: &[(&str, &str)]| drop(fixture.by_admin(path, &json!({})).expect_fields(fields));
    requested("/coin/reset", &[("userId", "required"), ("reason", "required")]);
    requested("/coin/reset/phone", &[("phoneNumber", "required"), ("reason", "required")]);
    requested("/payment/update-balance", &[("orderNo", "required"), ("reason", "required")]);
    fixture.read("/coin/balance").send().expect_fields(&[("userId", "required")]);
    fixture.read("/coin/balance/phone").send().expect_fields(&[("phoneNumber", "required")]);
    fixture.read("/user/profile").send().expect_fields(&[("id", "required")]);
    fixture
        .by_admin("/admin/sensitive-words/add", &json!({ "word": "x", "type": "t".repeat(65) }))
        .expect_fields(&[("type", "too_long"), ("word", "too_short")]);
    fixture
        .by_admin("/admin/payments/202601020123456789012345/refund", &json!({ "amount": "0.00" }))
        .expect_fields(&[("reason", "required"), ("amount", "out_of_range")]);
    fixture
        .by_admin(
            "/admin/user-data/validate/batch",
            &json!({ "userIds": vec!["1"; 60], "phoneNumbers": vec![OWN; 60] }),
        )
        .expect_fields(&[("userIds", "too_many")]);
}

#[test]
fn checks_a_range_together_with_a_page() {
    let fixture = Fixture::new();
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
        fixture.read(path).query(&backwards).send().expect_fields(&wrong);
    }
    let user = fixture.server.get("/divination/records/user/x/daterange").by(&fixture.user);
    user.query(&backwards[..2]).send().expect_fields(&[("userId", "invalid_format"), ("endTime", "out_of_range")]);
    let counted = fixture.read("/divination/stats/daterange/count").query(&backwards[..2]);
    counted.send().expect_fields(&[("endTime", "out_of_range")]);
}

#[test]
fn a_list_page_reports_all_errors() {
    let fixture = Fixture::new();
    let other = fixture.server.sign_in("13900139000");
    // Another user's cursor is well-formed.
    for _ in 0..2 {
        fixture.server.command(&["points", "adjust", OWN, "5", "--reason", "test"]).expect(0);
    }
    let first = fixture.server.get("/api/v1/points/ledger").by(&fixture.user).query(&[("limit", "1")]);
    let first = first.send().expect(200).json();
    let cursor = first["nextCursor"].as_str().unwrap();
    for path in ["/api/v1/sessions", "/api/v1/points/ledger", "/api/v1/notifications"] {
        let list = fixture.server.get(path).by(&other).query(&[("cursor", cursor), ("limit", "0")]);
        let code = list.send().expect_problem(422, "invalid_parameters").json();
        let fields: Vec<_> = code["errors"].as_array().unwrap().iter().map(|error| error["field"].clone()).collect();
        assert!(fields.contains(&json!("cursor")) && fields.contains(&json!("limit")), "{path}: {fields:?}");
    }
}

#[test]
fn reports_missing_alternatives_with_the_others() {
    let fixture = Fixture::new();
    fixture
        .by_user("/api/v1/account/address", &json!({}))
        .expect_fields(&[("code", "required"), ("email", "required")]);
    fixture
        .by_user("/api/v1/account/address", &json!({ "email": "a@example.com", "phoneNumber": OWN }))
        .expect_fields(&[("code", "required"), ("phoneNumber", "unknown_value")]);
    fixture
        .by_user("/divination-history/delete", &json!({ "userId": "x" }))
        .expect_fields(&[("userId", "invalid_format"), ("localRecordId", "required")]);
    let check = |body: Value| fixture.server.post("/version/check").json(&body).send();
    check(json!({ "platform": "?" })).expect_fields(&[("platform", "invalid_format"), ("clientVersion", "required")]);
    check(json!({ "platform": "?", "clientVersion": "one" }))
        .expect_fields(&[("platform", "invalid_format"), ("clientVersion", "invalid_format")]);
    check(json!({ "clientVersion": "one", "clientVersionCode": 7 })).expect(200);
    check(json!({ "clientVersion": "one", "clientVersionCode": "x" }))
        .expect_fields(&[("clientVersion", "invalid_format"), ("clientVersionCode", "invalid_type")]);
}

#[test]
fn reports_the_errors_of_every_batch_item_with_its_position() {
    let fixture = Fixture::new();
    let compare = |body: Value| fixture.by_admin("/admin/sensitive-word-migration/batch-compare", &body);
    let wrong = json!([
        { "content": "", "contentType": "zz", "userId": "q" },
        { "content": "fine" },
        { "content": "x".repeat(3000) },
        7,
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
fn an_invalid_idempotency_key_is_reported_with_the_others() {
    let fixture = Fixture::new();
    for key in ["", " ", &"k".repeat(256)] {
        let consume = fixture.server.post("/coin/consume").by(&fixture.user).header("idempotency-key", key);
        consume
            .json(&json!({ "userId": "abc" }))
            .send()
            .expect_fields(&[("userId", "invalid_format"), ("Idempotency-Key", "invalid_format")]);
    }
    // Endpoints without idempotency ignore it.
    let check =
        fixture.server.post("/content-moderation/check-question").by(&fixture.user).header("idempotency-key", "");
    check.json(&json!({ "question": "q" })).send().expect(200);
}
