//! Administrators' read access to user data.

use serde_json::json;

use crate::support::Setup;

#[test]
fn an_administrator_reads_user_data_with_an_audit_event() {
    let server = Setup::default().start();
    let user = server.sign_in("13800138000");
    let other = server.sign_in("13800138001");
    let ask = json!({ "question": "今年换工作合适吗？" });
    let created = server.post("/divination/enhanced").by(&user).json(&ask).send().expect(200).json();
    let key = server.api_key("support");

    let profile = format!("/user/profile?userId={}", user.user_id);
    assert_eq!(server.get(&profile).token(&key).send().expect(200).json()["userId"], user.user_id);
    server.get("/user/profile").token(&key).send().expect_fields(&[("id", "required")]);
    server.put(&profile).token(&key).form(&[("nickname", "x")]).send().expect_problem(403, "forbidden");

    let records = format!("/divination/records/user/{}", user.user_id);
    assert_eq!(server.get(&records).token(&key).send().expect(200).json()["total"], 1);
    server.get(&records).by(&other).send().expect_problem(403, "not_yours");

    let trace = format!("/divination/records/trace/{}", created["traceId"].as_str().unwrap());
    assert_eq!(server.get(&trace).token(&key).send().expect(200).json()["userId"], user.user_id);
    server.get(&trace).by(&other).send().expect_problem(404, "not_found");

    let rows = server.command(&["audit", "--user", &user.phone_number]).expect(0).json();
    let actions: Vec<_> = rows["items"].as_array().unwrap().iter().map(|row| row["action"].as_str().unwrap()).collect();
    let expected =
        ["GET /divination/records/trace/{traceId}", "GET /divination/records/user/{userId}", "GET /user/profile"];
    assert_eq!(actions, expected);
}
