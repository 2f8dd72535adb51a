//! Castings by time and by numbers (梅花易数), with their derivation.

use serde_json::{Value, json};

use crate::support::{Caller, Document, Response, Server, Setup};

const OWN: &str = "13800138000";

fn fixture() -> (Server, Caller) {
    let server = Setup::default().start();
    let user = server.sign_in(OWN);
    server.command(&["points", "adjust", OWN, "1000", "--reason", "test"]).expect(0);
    (server, user)
}

fn send(server: &Server, user: &Caller, body: &Value) -> Response {
    let mut whole = json!({ "question": "?", "timeZone": "Asia/Shanghai" });
    whole.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
    server.post("/api/v1/sessions").by(user).json(&whole).send()
}

fn cast(server: &Server, user: &Caller, body: &Value) -> Value {
    send(server, user, body).expect(201).json()
}

fn find(server: &Server, user: &Caller, session: &Value) -> Value {
    server.get(&format!("/api/v1/sessions/{}", session["id"].as_str().unwrap())).by(user).send().expect(200).json()
}

/// Returns the primary hexagram, the changing lines and the relating hexagram.
fn result(session: &Value) -> (u64, Value, u64) {
    let hexagram = &session["hexagram"];
    let number = |name: &str| hexagram[name]["number"].as_u64().unwrap();
    (number("primary"), hexagram["changing"].clone(), number("relating"))
}

#[test]
fn casts_by_the_lunar_date_and_the_double_hour() {
    let (server, user) = fixture();
    // 观梅占: year 辰, twelfth month, day 17, hour 申.
    let session = cast(&server, &user, &json!({ "method": "time", "castAt": "2025-01-16 16:00:00" }));
    assert_eq!(session["method"], "time");
    assert_eq!(result(&session), (49, json!([1]), 31));
    assert_eq!(session["hexagram"]["nuclear"]["chineseName"], "姤");
    let derivation = &session["derivation"];
    let branch = |branch: &str, number: u8| json!({ "branch": branch, "number": number });
    assert_eq!(
        derivation["source"],
        json!({ "kind": "time", "year": branch("辰", 5), "month": 12, "isLeapMonth": false, "day": 17, "hour": branch("申", 9) })
    );
    assert_eq!(derivation["upper"], json!({ "sum": 34, "remainder": 2, "trigram": "兑" }));
    assert_eq!(derivation["lower"], json!({ "sum": 43, "remainder": 3, "trigram": "离" }));
    assert_eq!(derivation["changingLine"], json!({ "sum": 43, "position": 1 }));
    let body = &derivation["bodyAndUse"];
    assert_eq!(body["body"], json!({ "half": "upper", "trigram": "兑", "element": "metal" }));
    assert_eq!(body["use"], json!({ "half": "lower", "trigram": "离", "element": "fire", "relation": "克体" }));
    assert_eq!(find(&server, &user, &session)["derivation"], *derivation);
}

#[test]
fn casts_by_one_two_or_three_numbers() {
    let (server, user) = fixture();
    let by = |numbers: Value| {
        cast(&server, &user, &json!({ "method": "numbers", "numbers": numbers, "castAt": "2026-01-15 23:30:00" }))
    };
    let two = by(json!([3, 8]));
    assert_eq!(result(&two), (35, json!([5]), 12));
    assert_eq!(two["derivation"]["source"], json!({ "kind": "two_numbers", "upper": 3, "lower": 8 }));
    assert_eq!(two["derivation"]["bodyAndUse"]["use"]["relation"], "生体");
    let three = by(json!(["1", 2, 3]));
    assert_eq!(result(&three), (10, json!([3]), 1));
    assert_eq!(three["derivation"]["source"], json!({ "kind": "three_numbers", "upper": 1, "lower": 2, "line": 3 }));
    // The hour is 子, 1.
    let one = by(json!([10]));
    assert_eq!(result(&one), (43, json!([5]), 34));
    assert_eq!(
        one["derivation"]["source"],
        json!({ "kind": "number_and_hour", "number": 10, "hour": { "branch": "子", "number": 1 } })
    );
    for session in [&one, &two, &three] {
        assert_eq!(find(&server, &user, session)["derivation"], session["derivation"]);
        assert!(session["chart"]["moment"].is_object(), "{session}");
    }
}

#[test]
fn derivations_outlive_restarts_and_changed_preferences() {
    let (server, user) = fixture();
    let rule = |server: &Server, rule: &str| {
        server.patch("/api/v1/preferences").by(&user).json(&json!({ "dayStart": rule })).send().expect(200);
    };
    let night = json!({ "method": "time", "castAt": "2025-01-16 23:30:00" });
    let next_day = cast(&server, &user, &night);
    assert_eq!(next_day["derivation"]["source"]["day"], 18);
    rule(&server, "00:00");
    let same_day = cast(&server, &user, &night);
    assert_eq!(same_day["derivation"]["source"]["day"], 17);
    let numbers = cast(&server, &user, &json!({ "method": "numbers", "numbers": [999_999_999, 1] }));
    // Without `castAt` the time is that of the service.
    let now = cast(&server, &user, &json!({ "method": "time" }));
    rule(&server, "23:00");
    let server = server.restart(Setup::default());
    for session in [&next_day, &same_day, &numbers, &now] {
        let found = find(&server, &user, session);
        assert_eq!((&found["derivation"], &found["lines"]), (&session["derivation"], &session["lines"]));
    }
    let export = server.get("/api/v1/account/export").by(&user).send().expect(200).json();
    let exported: Vec<_> = export["sessions"].as_array().unwrap().iter().map(|one| one["numbers"].clone()).collect();
    assert_eq!(exported, [json!([]), json!([]), json!([999_999_999, 1]), json!([])]);
    for session in [&next_day, &numbers] {
        let path = format!("/api/v1/sessions/{}", session["id"].as_str().unwrap());
        server.delete(&path).by(&user).send().expect(204);
    }
    assert_eq!(server.value::<i64>("select count(*) from session_snapshots where method in ('time', 'numbers')"), 2);
}

#[test]
fn other_methods_have_no_derivation() {
    let (server, user) = fixture();
    for body in [json!({ "method": "three_coins" }), json!({ "method": "manual", "lines": [7, 8, 8, 8, 7, 6] })] {
        assert!(cast(&server, &user, &body).get("derivation").is_none(), "{body}");
    }
    cast(&server, &user, &json!({ "method": "numbers", "numbers": [1, 2] }));
    let list = server.get("/api/v1/sessions").by(&user).send().expect(200).json();
    assert!(list["items"].as_array().unwrap().iter().all(|session| session.get("derivation").is_none()), "{list}");
}

#[test]
fn numbers_belong_to_their_method() {
    let (server, user) = fixture();
    for (body, field, code) in [
        (json!({ "method": "numbers" }), "numbers", "required"),
        (json!({ "method": "numbers", "numbers": [] }), "numbers", "required"),
        (json!({ "method": "numbers", "numbers": [1, 2, 3, 4] }), "numbers", "too_many"),
        (json!({ "method": "numbers", "numbers": [0, 1] }), "numbers[0]", "out_of_range"),
        (json!({ "method": "numbers", "numbers": [1, 1_000_000_000] }), "numbers[1]", "out_of_range"),
        (json!({ "method": "numbers", "numbers": ["x"] }), "numbers[0]", "invalid_type"),
        (json!({ "method": "numbers", "numbers": [1], "lines": [7, 8, 8, 8, 7, 6] }), "lines", "unknown_value"),
        (json!({ "method": "time", "numbers": [1] }), "numbers", "unknown_value"),
        (json!({ "method": "three_coins", "numbers": [1] }), "numbers", "unknown_value"),
        (json!({ "method": "time", "lines": [7, 8, 8, 8, 7, 6] }), "lines", "unknown_value"),
    ] {
        send(&server, &user, &body).expect_fields(&[(field, code)]);
    }
    assert_eq!(server.value::<i64>("select count(*) from sessions"), 0);
}

#[test]
fn derivations_match_their_documentation() {
    let (server, user) = fixture();
    let document = Document::of(&server);
    for body in [
        json!({ "method": "time", "castAt": "2025-01-16 16:00:00" }),
        json!({ "method": "numbers", "numbers": [5] }),
        json!({ "method": "numbers", "numbers": [5, 6] }),
        json!({ "method": "numbers", "numbers": [5, 6, 7] }),
    ] {
        let response = send(&server, &user, &body).expect(201);
        document.expect_described(document.operation("POST /api/v1/sessions"), &response);
    }
}

#[test]
fn the_offline_interpreter_names_the_method() {
    let (server, user) = fixture();
    let session = cast(&server, &user, &json!({ "method": "numbers", "numbers": [3, 8] }));
    let path = format!("/api/v1/sessions/{}/interpretation", session["id"].as_str().unwrap());
    let answer = server.post(&path).by(&user).send().expect(200).json();
    assert!(answer["result"].as_str().unwrap().contains("按所报的数起卦（梅花易数）"), "{answer}");
}
