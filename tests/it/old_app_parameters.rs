//! Parameters as apps of the first generation send them: inside a field, as words for nothing, in other spellings.

use serde_json::{Value, json};

use crate::support::{Request, Setup};

const PHONE: &str = "13800138000";

/// Returns a multipart body with these parts: name, content type, text.
fn multipart(parts: &[(&str, Option<&str>, &str)], is_closed: bool) -> Vec<u8> {
    let part = |(name, content_type, text): &(&str, Option<&str>, &str)| {
        let content_type = content_type.map(|value| format!("Content-Type: {value}\r\n")).unwrap_or_default();
        format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n{content_type}\r\n{text}")
    };
    let body = parts.iter().map(part).collect::<Vec<_>>().join("\r\n");
    if is_closed { format!("{body}\r\n--b--\r\n") } else { body }.into_bytes()
}

#[test]
fn parameters_in_one_json_field_are_read() {
    const JSON: Option<&str> = Some("application/json");
    const MULTIPART: Option<&str> = Some("multipart/form-data; boundary=b");
    let server = Setup::default().start();
    let (user, other) = (server.sign_in(PHONE), server.sign_in("13800138001"));
    let put = || server.put("/user/profile").by(&user);
    let parts = |parts: &[(&str, Option<&str>, &str)]| put().bytes(MULTIPART, multipart(parts, true));
    let mut number = 0;
    let mut new = || {
        number += 1;
        format!("青山{number}")
    };
    let object = |nickname: &str| json!({ "nickname": nickname }).to_string();
    let changes: [&dyn Fn(&str) -> Request; 10] = [
        &|name| parts(&[("profile", JSON, &object(name))]),
        &|name| {
            parts(&[("request", Some("application/json;charset=UTF-8"), &object(name)), ("gender", None, "female")])
        },
        &|name| parts(&[("data", None, &object(name))]),
        &|name| parts(&[("json", None, &object(name)), ("sign", None, "abc"), ("userId", None, &user.user_id)]),
        &|name| put().form(&[("data", &object(name))]),
        &|name| put().form(&[("data", &object(name)), ("timestamp", "1767225600000")]),
        &|name| put().query(&[("data", &object(name))]),
        &|name| put().json(&json!({ "data": { "nickname": name }, "sign": "abc" })),
        &|name| put().json(&json!({ "body": object(name) })),
        &|name| put().bytes(MULTIPART, multipart(&[("nickname", None, name)], false)),
    ];
    for (index, change) in changes.iter().enumerate() {
        let nickname = new();
        let changed = change(&nickname).send().expect(200).json();
        assert_eq!(changed["nickname"], nickname.as_str(), "{index}");
    }
    assert_eq!(put().send().expect(200).json()["gender"], "female");

    // Another user in it is refused, as anywhere.
    let foreign = json!({ "userId": other.user_id }).to_string();
    let reset = |request: Request| request.by(&user).send().expect_problem(403, "not_yours");
    reset(server.post("/coin/reset").json(&json!({ "data": { "userId": other.user_id } })));
    reset(server.post("/coin/reset").form(&[("data", &foreign)]));
    reset(server.post("/coin/reset").bytes(MULTIPART, multipart(&[("data", JSON, &foreign)], true)));

    // Beside other parameters, a form with parameters in JSON is refused; what is no parameter is ignored.
    let mixed = [("gender", "male"), ("data", &object("x"))];
    put().form(&mixed).send().expect_fields(&[("data", "not_allowed")]);
    let device = r#"{"model":"X1","id":"7"}"#;
    put().form(&[("gender", "male"), ("device", device)]).send().expect(200);
    put().json(&json!({ "gender": "male", "device": { "nickname": "x" } })).send().expect(200);
    let two = [("one", JSON, r#"{"nickname":"a"}"#), ("two", JSON, r#"{"nickname":"b"}"#)];
    parts(&two).send().expect_problem(400, "conflicting_parameter");
    parts(&[("data", JSON, "{\"nickname\":")]).send().expect_problem(400, "invalid_json");
    // A parameter that is JSON itself stays one.
    let record = [("localRecordId", None, "1"), ("jsonData", JSON, r#"{"question": 1}"#)];
    let saved = server.post("/divination-history/save").by(&user).bytes(MULTIPART, multipart(&record, true));
    let saved = saved.send().expect(200).json();
    assert_eq!((&saved["jsonData"], &saved["question"]), (&json!(r#"{"question": 1}"#), &Value::Null));
}

#[test]
fn words_for_nothing_are_missing_values() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    for nothing in ["null", "undefined", "", " "] {
        let ids = [("userId", nothing), ("phoneNumber", nothing), ("id", nothing)];
        server.get("/coin/balance").by(&user).query(&ids).send().expect(200);
        server.get("/coin/balance").by(&user).json(&json!({ "userId": nothing })).send().expect(200);
        let list = [("page", nothing), ("size", nothing), ("questionType", nothing)];
        server.post("/divination-history/get").by(&user).form(&list).send().expect(200);
        let code = json!({ "phoneNumber": nothing });
        server.post("/auth/send-code").json(&code).send().expect_fields(&[("phoneNumber", "required")]);
    }
    // Free texts may be such words.
    let named = server.put("/user/nickname").by(&user).form(&[("nickname", "null")]).send().expect(200).json();
    assert_eq!(named["nickname"], "null");
}

#[test]
fn names_are_understood_in_any_case_and_spelling() {
    let server = Setup::default().start();
    let code = |phone: &str, purpose: &str| {
        server.post("/auth/send-code").json(&json!({ "phoneNumber": phone, "purpose": purpose })).send()
    };
    for (number, purpose) in ["login", "LOGIN", "signIn", "sign-in", "Register", "登录"].iter().enumerate() {
        let phone = format!("1390013901{number}");
        code(&phone, purpose).expect(200);
        let login = json!({ "phoneNumber": phone, "code": server.printed_code(&phone, 0) });
        server.post("/auth/login").json(&login).send().expect(200);
    }
    code(PHONE, "CANCELLATION").expect(200);
    let unknown = code(PHONE, "payment").expect_fields(&[("purpose", "unknown_value")]).json();
    assert_eq!(unknown["errors"][0]["message"], "must be one of: sign_in, address, cancellation");
    let key = server.api_key("tests");
    server.get("/admin/violations/list").token(&key).query(&[("contentType", "NICKNAME")]).send().expect(200);
}
