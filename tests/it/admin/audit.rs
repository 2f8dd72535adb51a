//! What administrators see and change is written down.

use serde_json::json;

use crate::kit::Setup;

#[test]
fn every_call_of_an_administrator_leaves_a_row() {
    let server = Setup::default().start();
    let user = server.sign_in("13800138000");
    let admin = server.admin("root", "correct horse battery staple");
    let who = [("userId", user.user_id.as_str())];
    let id = "audited-1";
    server.get("/coin/balance").query(&who).token(&admin).header("x-request-id", id).send().expect(200);
    let increase = [("phoneNumber", user.phone_number.as_str()), ("coinCount", "5"), ("reason", "sorry")];
    server.post("/coin/increase/phone").form(&increase).token(&admin).send().expect(200);
    server.get("/coin/balance").query(&[("userId", "999")]).token(&admin).send().expect(404);
    // What users do for themselves is no business of the audit.
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
        ]
    );
    assert_eq!(rows["items"][2]["requestId"], id);
    let about = server.command(&["audit", "--user", "13800138000"]).expect(0).json();
    assert_eq!(about["total"], 2);
    assert!(!about.to_string().contains("13800138000"));
    assert_eq!(server.command(&["audit"]).expect(0).json()["total"], 4);
}
