//! The main journey of an app user.

use serde_json::json;

use crate::support::Setup;

#[test]
fn a_user_signs_in_gets_an_interpretation_saves_it_and_signs_out() {
    let server = Setup::default().start();
    let user = server.sign_in("13800138000");

    let profile = json!({ "nickname": "青山", "gender": "女", "birthday": "1990-05-17", "signature": "心静则明" });
    let profile = server.put("/user/profile").by(&user).json(&profile).send().expect(200).json();
    assert_eq!(profile["gender"], "female");

    let casting = json!({ "lines": [7, 8, 8, 8, 7, 6] });
    let ask = json!({ "question": "今年换工作合适吗？", "questionType": "career", "divinationData": casting });
    let interpretation = server.post("/divination/enhanced").by(&user).json(&ask).send().expect(200).json();
    assert_eq!(interpretation["status"], "succeeded");
    assert_eq!(interpretation["provider"], "builtin");
    assert!(interpretation["result"].as_str().unwrap().contains("屯"));

    let record = json!({
        "userId": user.user_id, "phoneNumber": user.phone_number, "localRecordId": "r-1", "jsonData": casting,
        "aiResult": interpretation["result"], "questionType": "career", "question": "今年换工作合适吗？",
        "timestamp": 1_767_225_600_000_i64,
    });
    server.post("/divination-history/save").by(&user).json(&record).send().expect(200);
    let phone = [("phoneNumber", user.phone_number.as_str())];
    let history = server.post("/divination-history/get").by(&user).form(&phone).send().expect(200).json();
    assert_eq!(history["total"], 1);
    assert_eq!(history["items"][0]["jsonData"], casting);

    let trace = format!("/divination/records/trace/{}", interpretation["traceId"].as_str().unwrap());
    assert_eq!(server.get(&trace).by(&user).send().expect(200).json()["question"], "今年换工作合适吗？");

    server.post("/auth/logout").by(&user).send().expect(200);
    server.get("/user/profile").by(&user).send().expect_problem(401, "unauthenticated");
}
