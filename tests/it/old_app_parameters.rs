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

#[test]
fn chinese_names_and_other_types_of_words_are_understood() {
    let server = Setup::default().start();
    let (user, key) = (server.sign_in(PHONE), server.api_key("tests"));
    let profile = server.put("/user/profile").by(&user).form(&[("gender", "保密")]).send().expect(200).json();
    assert_eq!(profile["gender"], "unknown");

    let add = |word: Value| server.post("/admin/sensitive-words/add").token(&key).json(&word).send().json();
    let state = |added: &Value| (added["type"].clone(), added["created"].clone(), added["updated"].clone());
    let added = |kind: &str, created, updated| (json!(kind), json!(created), json!(updated));
    let word = "青山绿水词";
    assert_eq!(state(&add(json!({ "word": word, "type": "GAMBLING" }))), added("gambling", true, false));
    for (sent, expected) in [
        (json!({ "word": word, "type": "广告" }), added("ads", false, true)),
        (json!({ "word": word, "type": "Ads" }), added("ads", false, false)),
        (json!({ "word": word }), added("ads", false, false)),
        (json!({ "word": word, "type": "Own" }), added("Own", false, true)),
        (json!({ "word": word, "type": "广告" }), added("ads", false, true)),
    ] {
        assert_eq!(state(&add(sent)), expected);
    }
    let test = server.post("/admin/sensitive-words/test/nickname").token(&key).form(&[("content", word)]);
    assert_eq!(test.send().expect(200).json()["matches"][0]["type"], "ads");
    server.put("/user/nickname").by(&user).form(&[("nickname", word)]).send().expect_problem(422, "content_rejected");
    let list = |query: &[(&str, &str)]| server.get("/admin/violations/list").token(&key).query(query).send();
    let total = |query: &[(&str, &str)]| list(query).expect(200).json()["total"].clone();
    for content_type in ["昵称", "NickName"] {
        for violation_type in ["广告", "ADS"] {
            assert_eq!(total(&[("contentType", content_type), ("violationType", violation_type)]), 1);
        }
    }
    assert_eq!(total(&[("contentType", "签名")]), 0);
    // Other names of a range.
    assert_eq!(total(&[("start", "2020-01-01"), ("end", "2100-01-01")]), 1);
    assert_eq!(total(&[("end", "2020-01-01")]), 0);
    list(&[("start", "2020-01-01"), ("startTime", "2021-01-01")]).expect_problem(400, "conflicting_parameter");
    let paged = server.get("/admin/feedback").token(&key).query(&[("start", "20")]).send();
    paged.expect_fields(&[("start", "not_allowed")]);
    let command = ["words", "add", word, "--type", "fraud"];
    assert_eq!(server.command(&command).expect(0).json()["updated"], true);
}

#[test]
fn texts_alone_can_be_compared() {
    let server = Setup::default().start();
    let key = server.api_key("tests");
    let compare =
        |body: Value| server.post("/admin/sensitive-word-migration/batch-compare").token(&key).json(&body).send();
    for body in [json!(["一", "二"]), json!({ "items": ["一", { "content": "二", "contentType": "昵称" }] })] {
        let compared = compare(body).expect(200).json();
        let local = &compared["items"][1]["local"]["allowed"];
        assert_eq!((&compared["summary"]["total"], local), (&json!(2), &json!(true)));
    }
    compare(json!(["一", ""])).expect_fields(&[("items[1]", "required")]);
    compare(json!([1])).expect_fields(&[("items[0]", "invalid_type")]);
}

#[test]
fn feedback_has_the_names_that_apps_send() {
    let server = Setup::default().start();
    let (user, key) = (server.sign_in(PHONE), server.api_key("tests"));
    let sent = server.post("/feedback").by(&user).form(&[("content", "好")]).send().expect(200).json();
    let listed = server.get("/admin/feedback").token(&key).send().expect(200).json()["items"][0].clone();
    for shown in [sent, listed] {
        for name in ["user_id", "userId"] {
            assert_eq!(shown[name], user.user_id.as_str());
        }
        for name in ["phone_number", "phoneNumber"] {
            assert_eq!(shown[name], PHONE);
        }
    }
}

#[test]
fn payments_tell_user_coins_and_trade_number() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let package = json!({ "amount": "6.00", "coinCount": 60 });
    let order = server.post("/payment/gateway/order").by(&user).json(&package).send().expect(200).json();
    assert_eq!((&order["userId"], &order["coinCount"]), (&json!(user.user_id), &json!(60)));
    assert_eq!(order["tradeNo"], Value::Null);
    let order_no = order["orderNo"].as_str().unwrap();
    let paid = server.command(&["payments", "sandbox-pay", order_no]).expect(0);
    assert_eq!(paid.json()["answer"], "success");
    // After the credit the number that the app sends changes nothing.
    let claim = json!({ "orderNo": order_no, "tradeNo": "made_up", "amount": "6.00", "coinCount": 60, "status": "ok" });
    let told = server.post("/payment/update-balance").by(&user).json(&claim).send().expect(200).json();
    assert_eq!((&told["status"], &told["balance"]), (&json!("credited"), &json!(60)));
    let listed = server.get("/payment/orders").by(&user).send().expect(200).json()["items"][0].clone();
    for shown in [told, listed] {
        assert_eq!((&shown["userId"], &shown["coinCount"]), (&json!(user.user_id), &json!(60)));
        assert!(shown["tradeNo"].as_str().is_some_and(|number| number.len() > 10), "{shown}");
    }
}
