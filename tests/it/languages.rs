//! The language of problems: Chinese or English by `Accept-Language`, with the same codes.

use serde_json::{Value, json};

use crate::support::{Response, Server, Setup};

fn is_chinese(text: &Value) -> bool {
    text.as_str().unwrap().chars().any(|character| ('\u{4e00}'..='\u{9fff}').contains(&character))
}

fn asked(server: &Server, method: &str, path: &str, language: Option<&str>, body: &Value) -> Response {
    let request = server.request(method, path);
    let request = language.map_or(request.clone(), |language| request.header("accept-language", language));
    if method == "GET" { request.send() } else { request.json(body).send() }
}

#[test]
fn details_and_faults_follow_the_language() {
    let server = Setup::default().start();
    let long = "长".repeat(2_000);
    for (method, path, body) in [
        ("POST", "/auth/send-code", json!({})),
        ("POST", "/auth/send-code", json!({ "phoneNumber": "12" })),
        ("POST", "/auth/login", json!({ "phoneNumber": "13800138000", "code": "x" })),
        ("POST", "/auth/login", json!({ "phoneNumber": "13800138000", "code": "123456" })),
        ("POST", "/feedback", json!({ "content": long })),
        ("POST", "/feedback", json!([1])),
        ("GET", "/version/latest", json!({})),
        ("POST", "/version/check", json!({ "clientVersion": "x" })),
        ("POST", "/version/check", json!({ "clientVersionCode": "x" })),
        ("GET", "/api/v1/account", json!({})),
        ("GET", "/api/v1/hexagrams/65", json!({})),
        ("GET", "/payment/products?asset=gold", json!({})),
        ("GET", "/nowhere", json!({})),
        ("PUT", "/version/latest", json!({})),
        ("POST", "/admin/login", json!({ "name": "root", "password": "wrong" })),
    ] {
        let ask = |language| asked(&server, method, path, language, &body);
        let what = format!("{method} {path} {body}");
        let (plain, english, chinese) = (ask(None), ask(Some("en-US,en;q=0.9")), ask(Some("zh-Hans-CN, en;q=0.5")));
        let texts = [&plain, &english, &chinese].map(Response::json);
        let [old, english_problem, chinese_problem] = &texts;
        assert!(texts.iter().all(|problem| problem["code"] == old["code"]), "{what}: {texts:?}");
        // Clients that name no language get what they always got: a detail in English, a message in Chinese.
        assert!(!is_chinese(&old["detail"]) && is_chinese(&old["message"]), "{what}: {old}");
        assert_eq!(old["detail"], english_problem["detail"], "{what}");
        assert!(!is_chinese(&english_problem["message"]), "{what}: {english_problem}");
        let for_users = [english_problem, chinese_problem].map(|problem| problem["message"].as_str().unwrap());
        assert!(!for_users.iter().any(|message| message.contains(['`', '_', '/', '{'])), "{what}: {for_users:?}");
        assert!(is_chinese(&chinese_problem["detail"]), "{what}: {chinese_problem}");
        assert_eq!(old["message"], chinese_problem["message"], "{what}");
        for (index, fault) in chinese_problem["errors"].as_array().into_iter().flatten().enumerate() {
            assert!(is_chinese(&fault["message"]), "{what}: {fault}");
            let [old, english] = [old, english_problem].map(|problem| &problem["errors"][index]);
            assert_eq!((&fault["code"], &fault["field"]), (&old["code"], &old["field"]), "{what}");
            assert_eq!(old["message"], english["message"], "{what}");
            assert!(!is_chinese(&old["message"]), "{what}: {old}");
        }
        let languages = [&plain, &english, &chinese].map(|response| response.header("content-language"));
        assert_eq!(languages, [Some("en, zh"), Some("en"), Some("zh")], "{what}");
        let varies = chinese.headers.get_all("vary").iter().any(|value| value == "accept-language");
        assert!(varies, "{what}: {:?}", chinese.headers);
    }
}

#[test]
fn every_language_tag_has_its_quality() {
    let server = Setup::default().start();
    let is_answered_in_chinese = |language: &str| {
        is_chinese(&asked(&server, "GET", "/api/v1/account", Some(language), &json!({})).json()["detail"])
    };
    for language in ["zh", "zh-CN", "zh-Hans", "zh-TW,zh;q=0.9,en;q=0.8", "fr, zh;q=0.2, en;q=0.1"] {
        assert!(is_answered_in_chinese(language), "{language}");
    }
    for language in ["en", "zh;q=0.3, en;q=0.5", "fr", "*", "zh;q=0"] {
        assert!(!is_answered_in_chinese(language), "{language}");
    }
}

#[test]
fn a_suspension_tells_its_end_in_the_language() {
    let server = Setup::default().start();
    let user = server.sign_in("13800138000");
    let key = server.admin("root", "correct horse battery staple");
    let body = json!({ "reason": "测试", "endsAt": "2100-01-01T00:00:00+08:00" });
    server.post(&format!("/admin/users/{}/suspension", user.user_id)).token(&key).json(&body).send().expect(201);
    let detail = |language: &str| {
        let refused = server.get("/user/profile").by(&user).header("accept-language", language).send();
        refused.expect_problem(403, "user_suspended").json()["detail"].as_str().unwrap().to_owned()
    };
    assert!(detail("zh-CN").contains("2100-01-01") && detail("zh-CN").contains("停用"), "{}", detail("zh-CN"));
    assert!(detail("en").contains("until 2100-01-01"), "{}", detail("en"));
}
