//! Charts and classical texts of castings, in sessions and in interpretations of the first generation.

use serde_json::{Value, json};

use crate::support::{Caller, Document, FakeModel, ModelBehaviour, Server, Setup};

const OWN: &str = "13800138000";
/// 2026-01-15 is 己丑 in Shanghai, the next day 庚寅.
const BEFORE_MIDNIGHT: &str = "2026-01-15 23:30:00";

fn fixture() -> (Server, Caller) {
    let server = Setup::default().start();
    let user = server.sign_in(OWN);
    server.command(&["points", "adjust", OWN, "1000", "--reason", "test"]).expect(0);
    (server, user)
}

fn digits(lines: &str) -> Vec<u8> {
    lines.bytes().map(|digit| digit - b'0').collect()
}

/// Casts these lines at a time in Shanghai.
fn cast(server: &Server, user: &Caller, lines: &str, cast_at: &str) -> Value {
    cast_in(server, user, lines, cast_at, "Asia/Shanghai")
}

fn cast_in(server: &Server, user: &Caller, lines: &str, cast_at: &str, zone: &str) -> Value {
    let body =
        json!({ "question": "?", "method": "manual", "lines": digits(lines), "castAt": cast_at, "timeZone": zone });
    server.post("/api/v1/sessions").by(user).json(&body).send().expect(201).json()
}

fn find(server: &Server, user: &Caller, session: &Value) -> Value {
    server.get(&format!("/api/v1/sessions/{}", session["id"].as_str().unwrap())).by(user).send().expect(200).json()
}

fn prefer(server: &Server, user: &Caller, day_start: &str) -> Value {
    let body = json!({ "dayStart": day_start });
    server.patch("/api/v1/preferences").by(user).json(&body).send().expect(200).json()
}

fn pillars(session: &Value) -> String {
    let pillars = &session["chart"]["moment"]["pillars"];
    ["year", "month", "day", "hour"].map(|name| pillars[name].as_str().unwrap()).join(" ")
}

#[test]
fn a_session_has_the_chart_of_its_lines_and_time() {
    let (server, user) = fixture();
    let session = cast(&server, &user, "788976", BEFORE_MIDNIGHT);
    let chart = &session["chart"];
    assert_eq!(chart["moment"]["local"], "2026-01-15T23:30:00+08:00");
    assert_eq!(pillars(&session), "乙巳 己丑 庚寅 丙子");
    assert_eq!(chart["moment"]["void"], json!(["午", "未"]));
    assert_eq!(chart["moment"]["nearBoundary"], json!(["day"]));
    assert_eq!(chart["palace"], json!({ "trigram": "震", "element": "wood", "stage": "returning" }));
    let member =
        |name: &str| chart["lines"].as_array().unwrap().iter().map(|line| line[name].clone()).collect::<Vec<_>>();
    assert_eq!(member("spirit"), ["白虎", "玄武", "青龙", "朱雀", "勾陈", "螣蛇"]);
    assert_eq!(member("kin"), ["父母", "兄弟", "妻财", "父母", "官鬼", "妻财"]);
    assert_eq!(member("branch"), ["子", "寅", "辰", "亥", "酉", "未"]);
    assert_eq!(member("role"), [json!(null), json!(null), json!("世"), json!(null), json!(null), json!("应")]);
    let fourth = &chart["lines"][3];
    assert_eq!((&fourth["hidden"]["kin"], &fourth["hidden"]["branch"]), (&json!("子孙"), &json!("午")));
    assert_eq!(fourth["hidden"]["void"], true);
    assert_eq!((&fourth["becomes"]["kin"], &fourth["becomes"]["relation"]), (&json!("妻财"), &json!("回头克")));
    assert_eq!(find(&server, &user, &session)["chart"], *chart);
}

#[test]
fn pillars_follow_the_solar_term_and_the_zone() {
    let (server, user) = fixture();
    for (cast_at, zone, expected) in [
        ("2026-02-04 04:01:08", "Asia/Shanghai", "乙巳 己丑 己酉 丙寅"),
        ("2026-02-04 04:03:08", "Asia/Shanghai", "丙午 庚寅 己酉 丙寅"),
        ("2026-02-03 15:00:00", "America/New_York", "乙巳 己丑 戊申 庚申"),
        ("2026-02-03 15:04:00", "America/New_York", "丙午 庚寅 戊申 庚申"),
        // Summer time.
        ("1988-07-10 23:30:00", "Asia/Shanghai", "戊辰 己未 丁卯 庚子"),
    ] {
        assert_eq!(pillars(&cast_in(&server, &user, "788976", cast_at, zone)), expected, "{cast_at} {zone}");
    }
}

#[test]
fn a_session_keeps_the_day_rule_of_its_casting() {
    let (server, user) = fixture();
    let default = server.get("/api/v1/preferences").by(&user).send().expect(200).json();
    assert_eq!(default["dayStart"], "23:00");
    assert_eq!(prefer(&server, &user, "00:00")["dayStart"], "00:00");
    let midnight = cast(&server, &user, "788976", BEFORE_MIDNIGHT);
    assert_eq!(pillars(&midnight), "乙巳 己丑 己丑 丙子");
    assert_eq!(midnight["chart"]["moment"]["dayStart"], "00:00");
    // Changes of other preferences keep it.
    let zone = json!({ "timeZone": "Europe/London" });
    let changed = server.patch("/api/v1/preferences").by(&user).json(&zone).send().expect(200).json();
    assert_eq!(changed["dayStart"], "00:00");
    prefer(&server, &user, "23:00");
    assert_eq!(find(&server, &user, &midnight)["chart"], midnight["chart"]);
    assert_eq!(pillars(&cast(&server, &user, "788976", BEFORE_MIDNIGHT)), "乙巳 己丑 庚寅 丙子");
    let export = server.get("/api/v1/account/export").by(&user).send().expect(200).json();
    let rules: Vec<_> = export["sessions"].as_array().unwrap().iter().map(|one| one["dayStart"].clone()).collect();
    assert_eq!((rules, &export["preferences"]["dayStart"]), (vec![json!("00:00"), json!("23:00")], &json!("23:00")));
    for wrong in ["1:00", "noon", "23"] {
        let body = json!({ "dayStart": wrong });
        server
            .patch("/api/v1/preferences")
            .by(&user)
            .json(&body)
            .send()
            .expect_fields(&[("dayStart", "unknown_value")]);
    }
}

#[test]
fn lists_have_neither_chart_nor_texts() {
    let (server, user) = fixture();
    cast(&server, &user, "788976", BEFORE_MIDNIGHT);
    let list = server.get("/api/v1/sessions").by(&user).send().expect(200).json();
    let session = list["items"][0].as_object().unwrap();
    assert!(!session.contains_key("chart") && !session.contains_key("classic"), "{list}");
}

/// Writes the selected texts, the main one first, such as `17/6`; position 0 is the judgement, 7 用九 or 用六.
fn selected(casting: &Value) -> (String, Vec<String>) {
    let reading = &casting["classic"]["reading"];
    let text = |(place, text): (usize, &Value)| {
        assert_eq!(text["isMain"], place == 0, "{reading}");
        assert!(
            !text["text"]["traditional"].as_str().unwrap().is_empty() && !text["plain"].as_str().unwrap().is_empty()
        );
        let position = match text["part"].as_str().unwrap() {
            "judgement" => 0,
            "line" => text["position"].as_u64().unwrap(),
            "all_lines" => 7,
            other => panic!("{other}"),
        };
        format!("{}/{position}", text["hexagram"])
    };
    let texts = reading["texts"].as_array().unwrap().iter().enumerate().map(text).collect();
    (reading["rule"].as_str().unwrap().to_owned(), texts)
}

#[test]
fn the_seven_rules_select_the_texts_to_read() {
    let (server, user) = fixture();
    for (lines, rule, texts) in [
        ("788878", "none_changing", &["3/0"][..]),
        ("788876", "one_changing", &["3/6"]),
        ("788976", "two_changing", &["17/6", "17/4"]),
        ("988698", "three_changing", &["3/0", "16/0"]),
        ("797698", "three_changing", &[]),
        ("899869", "four_changing", &["8/1", "8/4"]),
        ("689669", "five_changing", &["17/2"]),
        ("999999", "six_changing", &["1/7"]),
        ("666666", "six_changing", &["2/7"]),
        ("966966", "six_changing", &["57/0"]),
    ] {
        let session = cast(&server, &user, lines, BEFORE_MIDNIGHT);
        if texts.is_empty() {
            // Three lines change and the bottom line rests, so the relating hexagram leads.
            let (found, _) = selected(&session);
            let reading = &session["classic"]["reading"]["texts"];
            assert_eq!((found.as_str(), &reading[0]["hexagram"]), (rule, &session["hexagram"]["relating"]["number"]));
            assert_eq!(reading[1]["hexagram"], session["hexagram"]["primary"]["number"]);
            continue;
        }
        let texts = texts.iter().map(ToString::to_string).collect();
        assert_eq!(selected(&session), (rule.to_owned(), texts), "{lines}");
    }
}

#[test]
fn a_session_has_the_verses_of_its_hexagram() {
    let (server, user) = fixture();
    let session = cast(&server, &user, "788976", BEFORE_MIDNIGHT);
    let classic = &session["classic"];
    assert_eq!(
        classic["judgement"],
        json!({ "traditional": "元亨，利貞，无咎。", "simplified": "元亨，利贞，无咎。" })
    );
    assert_eq!(classic["lines"].as_array().unwrap().len(), 6);
    assert_eq!(classic["lines"][3]["simplified"], "随有获，贞凶。有孚在道，以明，何咎？");
    let main = &classic["reading"]["texts"][0];
    assert_eq!(
        (&main["label"], &main["text"]["simplified"]),
        (&json!("上六"), &json!("拘系之，乃从维之，王用亨于西山。"))
    );
    assert!(main["plain"].as_str().unwrap().starts_with("用绳系住"), "{main}");
    let english = server
        .get(&format!("/api/v1/sessions/{}", session["id"].as_str().unwrap()))
        .by(&user)
        .header("accept-language", "en")
        .send()
        .expect(200)
        .json();
    assert!(english["classic"]["reading"]["texts"][0]["plain"].as_str().unwrap().starts_with("Held fast"), "{english}");
    assert_eq!(english["classic"]["lines"], classic["lines"]);
}

#[test]
fn interpretations_of_known_lines_have_chart_and_texts() {
    let (server, user) = fixture();
    let document = Document::of(&server);
    let operation = document.operation("POST /divination/enhanced");
    let ask = |body: &Value| {
        let response = server.post("/divination/enhanced").by(&user).json(body).send().expect(200);
        document.expect_described(operation, &response);
        response.json()
    };
    let data = json!({ "lines": digits("788976") });
    let timed = ask(
        &json!({ "question": "?", "divinationData": data, "castAt": BEFORE_MIDNIGHT, "timeZone": "Asia/Shanghai" }),
    );
    let session = cast(&server, &user, "788976", BEFORE_MIDNIGHT);
    assert_eq!((&timed["chart"], &timed["classic"]), (&session["chart"], &session["classic"]));

    let timeless = ask(&json!({ "question": "?", "divinationData": data }));
    assert_eq!((&timeless["chart"]["moment"], &timeless["chart"]["momentMissing"]), (&Value::Null, &json!("unknown")));
    assert_eq!(timeless["chart"]["palace"]["trigram"], "震");
    let line = timeless["chart"]["lines"][0].as_object().unwrap();
    assert!(!line.contains_key("spirit") && !line.contains_key("strength"), "{line:?}");
    assert_eq!(timeless["classic"], session["classic"]);

    for unknown in [json!({ "question": "?" }), json!({ "question": "?", "divinationData": "得屯卦" })] {
        let answer = ask(&unknown);
        assert!(answer.get("chart").is_none() && answer.get("classic").is_none(), "{answer}");
    }
    let faulty = json!({ "question": "?", "castAt": "2999-01-01", "timeZone": "Mars/Utopia" });
    let response = server.post("/divination/enhanced").by(&user).json(&faulty).send();
    response.expect_fields(&[("castAt", "out_of_range"), ("timeZone", "unknown_value")]);
}

#[test]
fn streams_end_with_chart_and_texts() {
    let (server, user) = fixture();
    let body = json!({ "question": "?", "divinationData": { "lines": digits("788976") }, "castAt": BEFORE_MIDNIGHT });
    let stream = server
        .post("/divination/enhanced")
        .by(&user)
        .header("accept", "text/event-stream")
        .json(&body)
        .send()
        .expect(200);
    let text = stream.text();
    let done = text.split("\n\n").find(|event| event.contains("event: done")).unwrap_or_else(|| panic!("{text}"));
    let data = done.lines().find_map(|line| line.strip_prefix("data:")).unwrap();
    let done: Value = serde_json::from_str(data.trim()).unwrap();
    assert_eq!(selected(&done), ("two_changing".into(), vec!["17/6".into(), "17/4".into()]));
    assert_eq!(done["chart"]["moment"]["pillars"]["day"], "庚寅");
}

#[test]
fn the_documented_session_is_a_real_one() {
    let (server, user) = fixture();
    let document = Document::of(&server);
    let operation = document.operation("GET /api/v1/sessions/{id}");
    let example = &operation.value["responses"]["200"]["content"]["application/json"]["example"];
    let source = &example["derivation"]["source"];
    let body = json!({
        "question": "?", "method": example["method"], "castAt": example["castAt"], "timeZone": example["timeZone"],
        "numbers": [source["upper"], source["lower"], source["line"]],
    });
    let session = server.post("/api/v1/sessions").by(&user).json(&body).send().expect(201).json();
    for member in ["lines", "derivation", "chart", "classic"] {
        assert_eq!(example[member], session[member], "{member}");
    }
    let whole =
        server.get(&format!("/api/v1/sessions/{}", session["id"].as_str().unwrap())).by(&user).send().expect(200);
    document.expect_described(operation, &whole);
}

fn interpret(server: &Server, user: &Caller, session: &Value, language: &str) -> String {
    let path = format!("/api/v1/sessions/{}/interpretation", session["id"].as_str().unwrap());
    let answer = server.post(&path).by(user).header("accept-language", language).send().expect(200).json();
    answer["result"].as_str().unwrap().to_owned()
}

#[test]
fn the_offline_interpreter_reads_the_selected_texts_and_the_chart() {
    let (server, user) = fixture();
    let chinese = interpret(&server, &user, &cast(&server, &user, "788976", BEFORE_MIDNIGHT), "zh");
    for part in [
        "你自己起的卦，2026-01-15 23:30（己丑月庚寅日，旬空午未）；震宫木，归魂卦。",
        "卦中经文（随·上六）「拘系之，乃从维之，王用亨于西山。」用绳系住",
        "泛问一事，以世爻（你自己）为用神",
        "代表你自己的是三爻妻财辰土（世）",
        "四爻父母亥水（文书与长辈）动化妻财未土",
    ] {
        assert!(chinese.contains(part), "{part}: {chinese}");
    }
    // The service cast itself and needs no evidence.
    assert!(!chinese.contains("依据") && !chinese.contains("lines"), "{chinese}");
    let english = interpret(&server, &user, &cast(&server, &user, "999999", BEFORE_MIDNIGHT), "en");
    for part in [
        "Lines entered by you. Cast on 2026-01-15 at 23:30, a Tiger day (庚寅) in the Ox month (己丑)",
        "The text of The Creative, 用九: 「见群龙无首，吉。」",
    ] {
        assert!(english.contains(part), "{part}: {english}");
    }
}

#[test]
fn interpretations_of_different_castings_share_no_sentence_about_them() {
    let (server, user) = fixture();
    let sentences = |lines: &str| {
        let text = interpret(&server, &user, &cast(&server, &user, lines, BEFORE_MIDNIGHT), "zh");
        // Answer and counsel are about the question, of which each topic has three, and the last part is about the service.
        let paragraphs: Vec<&str> = text.split("\n\n").collect();
        let about = [paragraphs[1], paragraphs[3], paragraphs[4]].join("\n");
        about.split(['。', '\n']).filter(|it| it.chars().count() > 16).map(ToOwned::to_owned).collect::<Vec<_>>()
    };
    // The moment is the same; everything else differs.
    let (one, other) = (sentences("788976"), sentences("686868"));
    let shared: Vec<_> = one.iter().filter(|it| other.contains(it)).collect();
    assert!(shared.is_empty(), "{shared:?}");
}

#[test]
fn the_gender_of_the_profile_decides_the_line_of_a_partner() {
    let (server, user) = fixture();
    let reading = |gender: &str| {
        server.put("/user/profile").by(&user).json(&json!({ "gender": gender })).send().expect(200);
        let casting = json!({ "lines": [8, 7, 7, 7, 7, 7] });
        let body = json!({ "question": "我们会结婚吗", "divinationData": casting });
        let answer = server.post("/divination/enhanced").by(&user).json(&body).send().expect(200).json();
        answer["result"].as_str().unwrap().to_owned()
    };
    for (gender, parts) in [
        ("male", ["男问感情，以妻财为对方", "不在明处"]),
        ("female", ["女问感情，以官鬼为对方", "代表对方的是四爻官鬼午火"]),
        ("unknown", ["问感情而不论男女，以应爻为对方", "（应）"]),
    ] {
        let text = reading(gender);
        assert!(parts.iter().all(|part| text.contains(part)), "{gender}: {text}");
    }
}

#[test]
fn models_get_texts_chart_method_and_time_as_facts() {
    let model = FakeModel::start(ModelBehaviour::Pieces(vec!["answer"]));
    let server = model.setup().start();
    let user = server.sign_in(OWN);
    server.command(&["points", "adjust", OWN, "1000", "--reason", "test"]).expect(0);
    let session = cast(&server, &user, "788976", BEFORE_MIDNIGHT);
    interpret(&server, &user, &session, "zh");
    let calls = model.calls();
    let messages = &calls.last().unwrap().body["messages"];
    let data: Value = serde_json::from_str(messages[1]["content"].as_str().unwrap()).unwrap();
    assert_eq!((&data["method"], &data["script"]), (&json!("manual"), &json!("simplified")));
    // Only what says something is sent.
    let (sent, shown) = (&data["chart"], &session["chart"]);
    assert_eq!((&sent["palace"], &sent["moment"]["pillars"]), (&shown["palace"], &shown["moment"]["pillars"]));
    assert!(shown["lines"][0]["void"].is_boolean() && !sent.to_string().contains("false"), "{sent}");
    let reading = &data["reading"];
    assert_eq!((&reading["topic"], &reading["aim"]), (&json!("other"), &json!("wish")));
    assert!(reading["line"]["元神"].is_string() && !reading["evidence"].as_array().unwrap().is_empty(), "{reading}");
    assert_eq!(data["classic"]["rule"], "two_changing");
    let main = &data["classic"]["texts"][0];
    assert_eq!(
        (&main["hexagram"], &main["label"], &main["isMain"], &main["text"]),
        (&json!(17), &json!("上六"), &json!(true), &json!("拘系之，乃从维之，王用亨于西山。"))
    );
    // Our own prose is not called judgement.
    let primary = data["structure"]["primary"].as_object().unwrap();
    assert!(primary.contains_key("counsel") && !primary.contains_key("judgement"), "{data}");
    assert!(data["structure"].get("evidence").is_none(), "{data}");
    assert!(messages[0]["content"].as_str().unwrap().contains("classic"));
}
