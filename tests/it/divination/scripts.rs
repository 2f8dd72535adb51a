//! Readings, pictures and messages in traditional characters; castings entered by their pillars.

use serde_json::{Value, json};

use crate::support::{Caller, Request, Server, Setup};

const OWN: &str = "13800138000";

fn fixture() -> (Server, Caller) {
    let server = Setup::default().start();
    let user = server.sign_in(OWN);
    server.command(&["points", "adjust", OWN, "1000", "--reason", "test"]).expect(0);
    (server, user)
}

fn cast(server: &Server, user: &Caller, question: &str, time: &Value) -> Request {
    let mut body = json!({ "question": question, "method": "manual", "lines": [7, 8, 8, 9, 7, 6] });
    body.as_object_mut().unwrap().extend(time.as_object().unwrap().clone());
    server.post("/api/v1/sessions").by(user).json(&body)
}

fn session(server: &Server, user: &Caller, question: &str) -> String {
    let session =
        cast(server, user, question, &json!({ "castAt": "2026-01-15T23:30:00+08:00" })).send().expect(201).json();
    session["id"].as_str().unwrap().to_owned()
}

fn interpretation(server: &Server, user: &Caller, session: &str, language: &str) -> Request {
    let path = format!("/api/v1/sessions/{session}/interpretation");
    server.post(&path).by(user).header("accept-language", language)
}

fn result(request: Request) -> String {
    request.send().expect(200).json()["result"].as_str().unwrap().to_owned()
}

#[test]
fn readings_follow_the_script_of_the_client_the_preference_and_the_question() {
    let (server, user) = fixture();
    for (question, language, is_traditional) in [
        ("我能升职吗", "zh-TW", true),
        ("我能升职吗", "zh-HK", true),
        ("我能升职吗", "zh-Hant", true),
        ("我能升职吗", "zh-CN", false),
        ("我能升職嗎", "zh-CN", true),
    ] {
        let session = session(&server, &user, question);
        let text = result(interpretation(&server, &user, &session, language));
        assert_eq!(text.contains("職位"), is_traditional, "{question} {language}: {text}");
        assert!(text.contains("王用亨于西山"), "{text}");
        assert!(text.contains(question) && text.contains("问工作") != is_traditional, "{text}");
        let stored = server.get(&format!("/api/v1/sessions/{session}")).by(&user).send().expect(200).json();
        assert_eq!(stored["interpretation"]["result"], text);
    }
    for preference in [json!({ "script": "traditional" }), json!({ "locale": "zh-TW" })] {
        for change in [json!({ "script": "simplified" }), preference] {
            server.patch("/api/v1/preferences").by(&user).json(&change).send().expect(200);
        }
        let session = session(&server, &user, "我能升职吗");
        let streamed = interpretation(&server, &user, &session, "zh-CN").header("accept", "text/event-stream");
        let text = streamed.send().expect(200).text();
        assert!(text.contains("職位") && !text.contains("职位"), "{text}");
    }
    let shown = server.get("/api/v1/preferences").by(&user).send().expect(200).json();
    assert_eq!((&shown["locale"], &shown["script"]), (&json!("zh"), &json!("traditional")));
    server
        .patch("/api/v1/preferences")
        .by(&user)
        .json(&json!({ "script": "cursive" }))
        .send()
        .expect_fields(&[("script", "unknown_value")]);
}

#[test]
fn cards_and_problems_are_written_in_traditional_characters() {
    let (server, user) = fixture();
    let id = session(&server, &user, "我能升职吗");
    let card = server.get(&format!("/api/v1/sessions/{id}/card.svg")).by(&user).header("accept-language", "zh-TW");
    let svg = card.send().expect(200).text();
    assert!(svg.contains("zh-Hant") && svg.contains("澤雷隨") && svg.contains("歸魂") && svg.contains("應"), "{svg}");
    assert!(svg.contains("拘係之，乃從維之"), "{svg}");
    let simplified = server.get(&format!("/api/v1/sessions/{id}/card.svg?lang=zh-CN")).by(&user);
    assert!(simplified.header("accept-language", "zh-TW").send().expect(200).text().contains("泽雷随"));
    let unknown = server.get("/api/v1/sessions/nothing").by(&user).header("accept-language", "zh-TW").send();
    let problem = unknown.json();
    assert!(
        problem["message"].as_str().unwrap().chars().any(|letter| "沒無您請檢查參數記錄內容".contains(letter)),
        "{problem}"
    );
}

#[test]
fn topics_are_understood_in_both_scripts() {
    let (server, user) = fixture();
    let texts = ["我妈妈的病会好吗", "我媽媽的病會好嗎"].map(|question| {
        let session = session(&server, &user, question);
        result(interpretation(&server, &user, &session, "zh-CN"))
    });
    assert!(texts[0].contains("以父母为用神") && texts[1].contains("以父母為用神"), "{texts:?}");
}

#[test]
fn castings_are_entered_for_old_years_and_by_pillars() {
    let (server, user) = fixture();
    let old = cast(&server, &user, "?", &json!({ "castAt": "1938-05-01T12:00:00+08:00" })).send().expect(201).json();
    assert_eq!(old["chart"]["moment"]["pillars"]["year"], "戊寅");
    for (time, field, code) in [
        (json!({ "castAt": "1899-05-01T12:00:00+08:00" }), "castAt", "out_of_range"),
        (json!({ "castAt": "2101-05-01T12:00:00+08:00" }), "castAt", "out_of_range"),
        (json!({ "castPillars": "戌月甲丑日" }), "castPillars", "invalid_format"),
        (json!({ "castPillars": "甲寅日" }), "castPillars", "invalid_format"),
    ] {
        cast(&server, &user, "?", &time).send().expect_fields(&[(field, code)]);
    }
    for pillars in ["戌月甲寅日", "戌 甲寅"] {
        let session = cast(&server, &user, "?", &json!({ "castPillars": pillars })).send().expect(201).json();
        let found = &session["chart"]["moment"];
        assert_eq!(found["pillars"]["day"], "甲寅");
        assert!(found["pillars"]["month"].as_str().unwrap().ends_with('戌'), "{found}");
        assert_eq!(found["void"], json!(["子", "丑"]));
    }
    let both = json!({ "castPillars": "戌月甲寅日", "castAt": "2026-01-15T23:30:00+08:00" });
    cast(&server, &user, "?", &both).send().expect_fields(&[("castPillars", "not_allowed")]);
}

#[test]
fn the_offline_interpreter_reads_a_casting_from_other_sides_and_then_charges_nothing() {
    let settings = [("POINTS_ANOTHER_INTERPRETATION", 40), ("LLM_INTERPRETATIONS_PER_SESSION", 5)];
    let server = settings.into_iter().fold(Setup::default(), |setup, (name, value)| setup.with(name, value)).start();
    let user = server.sign_in(OWN);
    server.command(&["points", "adjust", OWN, "1000", "--reason", "test"]).expect(0);
    let session = session(&server, &user, "我能升职吗");
    let points = || server.get("/api/v1/points").by(&user).send().expect(200).json()["balance"].as_i64().unwrap();
    let again = || result(interpretation(&server, &user, &session, "zh-CN").json(&json!({ "again": true })));
    let texts = [again(), again(), again()];
    assert!(texts[0] != texts[1] && texts[1] != texts[2] && texts[0] != texts[2]);
    assert!(texts[1].contains("换个角度，从卦象的走向看") && texts[2].contains("一爻一爻看"), "{texts:?}");
    for text in &texts {
        assert!(text.contains("以官鬼（职位与上司）为用神"), "{text}");
    }
    let balance = points();
    assert_eq!((again(), points()), (texts[2].clone(), balance));
    let found = server.get(&format!("/api/v1/sessions/{session}")).by(&user).send().expect(200).json();
    assert_eq!(
        (found["interpretations"].as_array().unwrap().len(), &found["remainingInterpretations"]),
        (3, &json!(2))
    );
}

#[test]
fn charts_have_stars_marks_and_the_relating_lines() {
    let (server, user) = fixture();
    let time = json!({ "castAt": "2026-01-15T23:30:00+08:00" });
    let chart = &cast(&server, &user, "?", &time).send().expect(201).json()["chart"];
    let kinds: Vec<&str> =
        chart["stars"].as_array().unwrap().iter().map(|star| star["star"].as_str().unwrap()).collect();
    assert!(kinds.contains(&"驿马") && kinds.contains(&"天乙贵人"), "{kinds:?}");
    assert_eq!(chart["relatingLines"].as_array().unwrap().len(), 6);
    assert_eq!(chart["marks"][0]["kind"], "三合");
    assert!(chart["bodyBranch"].is_string() && chart["lines"][0]["growthStage"].is_string(), "{chart}");
}
