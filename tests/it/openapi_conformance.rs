//! Real responses against the OpenAPI document: status, headers, body and codes.

use serde_json::{Value, json};

use crate::support::{Caller, Document, Operation, Request, Response, Server, Setup, plain_text};

const PHONE: &str = "13800138000";
const EMAIL: &str = "li.ming@example.com";

struct Fixture {
    server: Server,
    document: Document,
    key: String,
}

impl Fixture {
    fn new() -> Self {
        let server = Setup::default().start();
        let document = Document::of(&server);
        Self { key: server.api_key("world"), server, document }
    }

    /// Sends a request for an operation, checks the status and the description, and returns the body.
    #[track_caller]
    fn send(&self, name: &str, request: Request, status: u16) -> Value {
        let response = request.send().expect(status);
        self.document.expect_described(self.document.operation(name), &response);
        serde_json::from_slice(&response.bytes).unwrap_or_default()
    }

    /// Calls an operation without path parameters by name.
    #[track_caller]
    fn call(&self, name: &str, token: &str, body: Value, status: u16) -> Value {
        let (method, path) = name.split_once(' ').unwrap();
        self.send(name, self.server.request(method, path).token(token).json(&body), status)
    }
}

/// A user with data of every kind.
struct FullUser {
    user: Caller,
    session: String,
    trace: String,
    order: String,
    notification: String,
    device: String,
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is not a text")).to_owned()
}

fn live(fixture: &Fixture) -> FullUser {
    let Fixture { server, key, .. } = fixture;
    let mut user = server.sign_in_by_email(EMAIL);
    let token = user.token.clone();
    let sent = json!({ "phoneNumber": PHONE, "purpose": "address" });
    fixture.call("POST /auth/send-code", &token, sent, 200);
    let proved = json!({ "phoneNumber": PHONE, "code": server.printed_code(PHONE, 0) });
    fixture.call("POST /api/v1/account/address", &token, proved, 200);
    PHONE.clone_into(&mut user.phone_number);
    fixture.call("GET /api/v1/account", &token, json!({}), 200);
    let profile = json!({ "nickname": "青山", "gender": "female", "birthday": "1990-05-17" });
    fixture.call("PATCH /api/v1/account", &token, profile, 200);
    fixture.call("PUT /user/nickname", &token, json!({ "nickname": "赌博" }), 422);
    let reported = json!({ "notifications": { "promotion": false }, "locale": "zh", "timeZone": "Asia/Shanghai" });
    fixture.call("PATCH /api/v1/preferences", &token, reported, 200);

    let cast =
        json!({ "question": "何时启程？", "questionType": "travel", "method": "manual", "lines": [7, 8, 9, 6, 7, 8] });
    let session = text(&fixture.call("POST /api/v1/sessions", &token, cast, 201)["id"]);
    let name = "POST /api/v1/sessions/{id}/interpretation";
    fixture.send(name, server.post(&format!("/api/v1/sessions/{session}/interpretation")).by(&user), 200);
    let still = json!({ "question": "何时启程？", "method": "manual", "lines": [7, 8, 7, 8, 7, 8] });
    fixture.call("POST /api/v1/sessions", &token, still, 201);
    let ask = json!({ "question": "何时启程？", "divinationData": { "lines": [7, 8, 8, 8, 7, 6] } });
    let trace = text(&fixture.call("POST /divination/enhanced", &token, ask, 200)["traceId"]);
    fixture.call("POST /divination/enhanced", &token, json!({ "question": "何时？" }), 200);
    let chat = json!({ "messages": [{ "role": "user", "content": "屯卦在说什么？" }] });
    fixture.call("POST /llm/chat", &token, chat, 200);
    let casting = json!({ "localRecordId": "1", "jsonData": [7], "aiResult": "屯", "timestamp": 1, "question": "…" });
    fixture.call("POST /divination-history/save", &token, casting, 200);
    fixture.call("POST /divination-history/save", &token, json!({ "localRecordId": "2" }), 200);
    fixture.call("POST /divination-history/save", &token, json!({ "localRecordId": "2" }), 200);
    fixture.call("POST /divination-history/get", &token, json!({}), 200);

    let package = json!({ "amount": "6.00", "coinCount": 60 });
    let order = text(&fixture.call("POST /payment/gateway/order", &token, package.clone(), 200)["orderNo"]);
    fixture.call("POST /payment/gateway/order", &token, package, 200);
    fixture.call("POST /payment/update-balance", &token, json!({ "orderNo": order }), 202);
    let paths = ["sandbox-pay", "query"].map(|act| (act, format!("/admin/payments/{order}/{act}")));
    for (act, path) in &paths {
        fixture.send(&format!("POST /admin/payments/{{orderNo}}/{act}"), server.post(path).token(key), 200);
    }
    let back = json!({ "amount": "1.00", "reason": "test" });
    let refund = server.post(&format!("/admin/payments/{order}/refund")).token(key).json(&back);
    fixture.send("POST /admin/payments/{orderNo}/refund", refund, 200);
    fixture.send("POST /coin/consume", server.post("/coin/consume").by(&user).header("idempotency-key", "1"), 200);
    fixture.send("POST /coin/consume", server.post("/coin/consume").by(&user).header("idempotency-key", "1"), 200);
    fixture.call("POST /coin/increase/phone", key, json!({ "phoneNumber": PHONE, "coinCount": 5 }), 200);
    fixture.call(
        "POST /coin/reset",
        key,
        json!({ "phoneNumber": PHONE, "userId": user.user_id, "reason": "test" }),
        428,
    );

    let page = json!({ "type": "open_route", "route": "points", "params": { "a": [1] } });
    let stream_chunks =
        json!({ "audience": "all", "title": "…", "body": "…", "payload": page, "expiresAt": "2100-01-01" });
    let notification = text(&fixture.call("POST /admin/notifications", key, stream_chunks, 201)["id"]);
    let stream_chunks =
        json!({ "audience": "users", "userIds": [user.user_id], "title": "…", "body": "…", "kind": "system" });
    fixture.call("POST /admin/notifications", key, stream_chunks, 201);
    fixture.call("GET /notifications/latest", &token, json!({}), 200);
    let read = server.patch(&format!("/api/v1/notifications/{notification}/read")).by(&user);
    fixture.send("PATCH /api/v1/notifications/{id}/read", read, 200);
    fixture.call("POST /feedback", &token, json!({ "content": "…" }), 200);
    let claims = json!({ "content": "…", "phone_number": PHONE });
    fixture.send("POST /feedback", server.post("/feedback").json(&claims), 200);
    let release = json!({ "version": "2.3.1", "versionCode": 231 });
    fixture.call("POST /admin/releases", key, release, 201);
    fixture.call("POST /version/check", &token, json!({ "clientVersionCode": 1 }), 200);
    let inviter = server.sign_in_by_email("other@example.com");
    let code = fixture.call("GET /api/v1/invite", &inviter.token, json!({}), 200)["code"].clone();
    fixture.call("POST /api/v1/invite/redeem", &token, json!({ "code": code }), 200);
    let compare = json!({ "items": [{ "content": "赌博" }, { "content": "屯" }] });
    fixture.call("POST /admin/sensitive-word-migration/batch-compare", key, compare, 200);
    let everybody = json!({ "userIds": [user.user_id, "99999"] });
    fixture.call("POST /admin/user-data/validate/batch", key, everybody, 200);
    fixture.call("POST /auth/validate-token", &token, json!({}), 200);
    fixture.call("POST /auth/validate-token", "nobody's", json!({}), 200);
    fixture.call("POST /auth/validate-token", &inviter.token, json!({}), 200);
    let device = text(&fixture.call("GET /api/v1/auth/tokens", &token, json!({}), 200)["items"][0]["id"]);
    FullUser { user, session, trace, order, notification, device }
}

/// Returns the path of an operation for this user's data.
fn path_of(operation: &Operation, life: &FullUser) -> String {
    let id = match operation.path.as_str() {
        path if path.contains("/sessions/") => &life.session,
        path if path.contains("/tokens/") => &life.device,
        path if path.contains("/notifications/") => &life.notification,
        _ => "1",
    };
    let path = operation.path.replace("{id}", id).replace("{orderNo}", &life.order).replace("{traceId}", &life.trace);
    let path = path.replace("{clientIp}", "127.0.0.1").replace("{file}", "swagger-ui.css").replace("{number}", "3");
    path.replace("{userId}", &life.user.user_id).replace("{phoneNumber}", &life.user.phone_number)
}

#[test]
fn every_read_matches_its_documentation() {
    let fixture = Fixture::new();
    let life = live(&fixture);
    let always = [("startTime", "2020-01-01"), ("endTime", "2100-01-01")];
    let mut lists = 0;
    for operation in fixture.document.operations.iter().filter(|operation| operation.method == "GET") {
        let path = path_of(operation, &life);
        let mut values = operation.required_values(&life.user);
        values.remove("startTime");
        values.remove("endTime");
        let ranged = operation.parameters.iter().any(|parameter| parameter.name == "startTime");
        let is_bounded = ["count/ip", "suspicious"].iter().any(|part| operation.path.contains(part));
        let range = if ranged && !is_bounded { &always[..] } else { &[] };
        let pairs: Vec<_> = values.iter().map(|(name, value)| (name.as_str(), plain_text(value))).collect();
        let pairs: Vec<_> = pairs.iter().map(|(name, value)| (*name, value.as_str())).collect();
        for who in [Some(life.user.token.as_str()), operation.key.as_deref(), None] {
            let request = fixture.server.get(&path).query(&pairs).query(range);
            let response = who.map_or(request.clone(), |token| request.token(token)).send();
            fixture.document.expect_described(operation, &response);
            if response.status == 200 && response.text().starts_with(r#"{"items":[{"#) {
                lists += 1;
                expect_possible_example(operation, &response.json());
            }
        }
    }
    // The network log may not be written yet.
    assert!(lists >= 15, "only {lists}");
}

/// Panics if the documented example of a list shows a member that no item has.
fn expect_possible_example(operation: &Operation, list: &Value) {
    let example = &operation.value["responses"]["200"]["content"]["application/json"]["example"]["items"][0];
    let items = list["items"].as_array().unwrap();
    for name in example.as_object().unwrap().keys() {
        assert!(items.iter().any(|item| item.get(name).is_some()), "{}: no item has {name}", operation.name());
    }
}

#[test]
fn every_response_to_minimal_data_matches_its_documentation() {
    let fixture = Fixture::new();
    let user = fixture.server.sign_in(PHONE);
    for operation in fixture.document.operations.iter().filter(|operation| !operation.ends_session()) {
        let values = Value::Object(operation.right_values(&user));
        let request = operation.bare(&fixture.server, &user);
        let response = if operation.takes_body() { request.json(&values).send() } else { request.send() };
        fixture.document.expect_described(operation, &response);
    }
}

/// These errors are independent of the endpoint's purpose.
fn wrong(operation: &Operation, server: &Server, user: &Caller) -> Vec<Response> {
    let path = operation.path_of(user);
    let request = |path: &str| operation.with_token(server.request(&operation.method, path), user);
    let mut requests = vec![
        request(&format!("{path}?x=%ff")),
        request(&format!("{path}?userId=x&user_id=x&id=x&phoneNumber=x")),
        request(&format!("{path}?userId=99999")),
        request(&format!("{path}?userId=1&userId=2")),
        server.request(&operation.method, &path),
        server.request(&operation.method, &path).token("nobody's"),
        server.request(&operation.method, &path).by(user),
        server.request(&operation.method, &path).by(user).query(&[("userId", "99999")]),
        server.request(&operation.method, &path).by(user).query(&[("phoneNumber", "x")]),
        request(&path).header("idempotency-key", "1").header("idempotency-key", "2"),
        request(&path).header("idempotency-key", ""),
    ];
    if path != operation.path {
        let segments = operation.path.split('/');
        let not_text: Vec<_> = segments.map(|part| if part.starts_with('{') { "%ff" } else { part }).collect();
        requests.push(request(&not_text.join("/")));
    }
    if operation.takes_body() {
        requests.extend([
            request(&path).raw_json("{"),
            request(&path).bytes(Some("text/plain"), b"{}".to_vec()),
            request(&path).bytes(Some("application/x-www-form-urlencoded"), vec![b'x'; 600_000]),
        ]);
    }
    requests.into_iter().map(Request::send).collect()
}

#[test]
fn every_error_matches_its_documentation() {
    let fixture = Fixture::new();
    for operation in fixture.document.operations.iter().filter(|operation| !operation.ends_session()) {
        let user = fixture.server.sign_in_again(PHONE);
        for response in wrong(operation, &fixture.server, &user) {
            fixture.document.expect_described(operation, &response);
        }
    }
}
