//! Questions on which no oracle may give a verdict: answered with help, in both API generations and in chat.

use std::{fs, time::Duration};

use serde_json::{Value, json};

use crate::support::{Caller, FakeModel, ModelBehaviour, Request, Server, Setup};

const PHONE: &str = "13800138000";
const EMAIL: &str = "reader@example.com";
const DESPERATE: &str = "我想自杀，会成功吗";
const LINES: [u8; 6] = [7, 8, 8, 8, 7, 6];
/// Words of verdicts, timing and counsel.
const VERDICTS: [&str; 9] = ["时间：", "代表此事", "世爻", "用神", "经文", "卦辞", "六爻", "In favour", "hexagram"];
/// A question of each class, the beginning of its help, and true if moderation may refuse it.
const CLASSES: [(&str, &str, &str); 8] = [
    ("emergency", "煤气漏了头很晕，要紧吗", "请现在就拨打120"),
    ("self_harm", DESPERATE, "谢谢你愿意说出来"),
    ("violence", "老公动手打我，我该不该离婚", "先顾自己的安全"),
    ("minor", "我今年十二岁，被同学家长摸了", "谢谢你说出来"),
    ("missing_person", "孩子在商场走散了怎么找", "请现在就报警，拨打110"),
    ("stopping_medicine", "化疗太难受了，我想停掉改吃偏方", "停药、减药或换药"),
    ("crime", "我想报复他，往他水里放点东西", "这个问题我们不作答"),
    ("gambling", "借高利贷去炒币行不行", "请先停一停"),
];

fn asked(question: &str) -> Value {
    json!({ "question": question, "questionType": "综合", "divinationData": { "lines": LINES } })
}

fn enhanced(server: &Server, user: &Caller, question: &str) -> Value {
    server.post("/divination/enhanced").by(user).json(&asked(question)).send().expect(200).json()
}

fn result(answer: &Value) -> String {
    answer["result"].as_str().unwrap().to_owned()
}

fn cast(server: &Server, user: &Caller, question: &str) -> Value {
    let body = json!({ "question": question, "method": "manual", "lines": LINES });
    server.post("/api/v1/sessions").by(user).json(&body).send().expect(201).json()
}

fn interpretation(server: &Server, user: &Caller, session: &Value, body: &Value) -> Value {
    let path = format!("/api/v1/sessions/{}/interpretation", session["id"].as_str().unwrap());
    server.post(&path).by(user).json(body).send().expect(200).json()
}

fn chat(server: &Server, user: &Caller, messages: &[&str]) -> String {
    let turns: Vec<_> = messages.iter().map(|text| json!({ "role": "user", "content": text })).collect();
    let answer = server.post("/llm/chat").by(user).json(&json!({ "messages": turns })).send().expect(200).json();
    answer["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
}

fn points(server: &Server, user: &Caller) -> i64 {
    server.get("/api/v1/points").by(user).send().expect(200).json()["balance"].as_i64().unwrap()
}

fn expect_no_verdict(text: &str) {
    for verdict in VERDICTS {
        assert!(!text.contains(verdict), "{verdict}: {text}");
    }
}

#[test]
fn each_class_is_answered_with_help_by_both_generations_and_in_chat() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    for (class, question, help) in CLASSES {
        let session = cast(&server, &user, question);
        let texts = [
            result(&enhanced(&server, &user, question)),
            result(&interpretation(&server, &user, &session, &json!({}))),
            chat(&server, &user, &[question]),
        ];
        for text in texts {
            assert!(text.starts_with(help), "{class}: {text}");
            if class != "missing_person" {
                expect_no_verdict(&text);
            }
        }
    }
    let ordinary = result(&enhanced(&server, &user, "今年换工作合适吗？"));
    assert!(ordinary.contains("代表此事"), "{ordinary}");
}

#[test]
fn a_missing_person_is_read_as_a_person_after_the_words_about_the_police() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    for (question, line) in [
        ("爺爺走丟了，能找回來嗎", "至於卦：得 ䷂（第 3 卦）。按傳統，尋人看人不看物，這裡以「父母」一爻"),
        ("孩子在商场走散了怎么找", "「子孙」一爻"),
        ("老公出差三天失联了，会出事吗", "「官鬼」一爻"),
        ("老婆昨晚没回家，联系不上", "应爻"),
    ] {
        let text = result(&enhanced(&server, &user, question));
        assert!(text.contains(line) && text.contains("警"), "{question}: {text}");
        for word in ["妻财", "时间：", "代表此事", "慢慢"] {
            assert!(!text.contains(word), "{word}: {text}");
        }
    }
}

#[test]
fn help_is_streamed_like_any_answer() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let session = cast(&server, &user, DESPERATE);
    let path = format!("/api/v1/sessions/{}/interpretation", session["id"].as_str().unwrap());
    for (path, body) in [("/divination/enhanced", asked(DESPERATE)), (path.as_str(), json!({}))] {
        let request = server.post(path).by(&user).header("accept", "text/event-stream").json(&body);
        let events = request.send().expect(200).text();
        assert!(events.contains("event: delta\n") && events.contains("event: done\n"), "{events}");
        assert!(events.contains("谢谢你愿意说出来") && events.contains("12356"), "{events}");
        expect_no_verdict(events.split("event: done").next().unwrap());
    }
    let body = json!({ "messages": [{ "role": "user", "content": DESPERATE }], "stream": true });
    let events = server.post("/llm/chat").by(&user).json(&body).send().expect(200).text();
    assert!(events.contains("谢谢你愿意说出来") && events.ends_with("data: [DONE]\n\n"), "{events}");
}

#[test]
fn no_model_is_called_for_the_gravest_questions() {
    let model = FakeModel::start(ModelBehaviour::Pieces(vec!["大吉，可以去做。"]));
    let server = model.setup().start();
    let user = server.sign_in(PHONE);
    for (class, question, help) in CLASSES {
        let before = model.calls().len();
        let answer = enhanced(&server, &user, question);
        let is_called = model.calls().len() > before;
        assert_eq!(is_called, matches!(class, "missing_person" | "gambling"), "{class}");
        assert!(result(&answer).starts_with(help), "{class}: {answer}");
        assert_eq!(result(&answer).ends_with("\n\n大吉，可以去做。"), is_called, "{answer}");
        assert_eq!(answer["provider"] == "builtin", !is_called, "{answer}");
    }
    let instructions = model.calls().last().unwrap().body["messages"][0]["content"].as_str().unwrap().to_owned();
    assert!(instructions.contains("gambling") && instructions.contains("不给出任何有利的判断"), "{instructions}");
}

#[test]
fn in_chat_help_comes_first_and_the_model_knows_the_class() {
    let model = FakeModel::start(ModelBehaviour::Pieces(vec!["我在听。"]));
    let server = model.setup().start();
    let user = server.sign_in(PHONE);
    for (class, question, help) in CLASSES {
        let before = model.calls().len();
        let text = chat(&server, &user, &[question]);
        let is_called = model.calls().len() > before;
        assert_eq!(is_called, !matches!(class, "emergency" | "crime" | "minor"), "{class}");
        assert!(text.starts_with(help) && text.ends_with("我在听。") == is_called, "{class}: {text}");
    }
    // The class follows the user's last three messages.
    assert!(chat(&server, &user, &[DESPERATE, "嗯", "好"]).starts_with("谢谢你愿意说出来"));
    assert_eq!(chat(&server, &user, &[DESPERATE, "嗯", "好", "今天天气不错"]), "我在听。");
}

#[test]
fn help_is_complete_if_the_model_fails() {
    let model = FakeModel::start(ModelBehaviour::Status(500));
    let server = model.setup().start();
    let user = server.sign_in(PHONE);
    let answer = enhanced(&server, &user, "孩子在商场走散了怎么找");
    assert!(result(&answer).starts_with("请现在就报警") && answer["status"] == "succeeded", "{answer}");
    assert!(chat(&server, &user, &[DESPERATE]).starts_with("谢谢你愿意说出来"));
}

#[test]
fn such_questions_cost_nothing_and_are_never_refused() {
    let server = Setup::default().with("POINTS_CAST", 10).with("LLM_CALLS_PER_USER_HOUR", 0).start();
    let user = server.sign_in(PHONE);
    server.command(&["words", "add", "自杀"]).expect(0);
    let session = cast(&server, &user, DESPERATE);
    assert_eq!((&session["pointsSpent"], points(&server, &user)), (&json!(0), 0));
    let first = interpretation(&server, &user, &session, &json!({}));
    let again = interpretation(&server, &user, &session, &json!({ "again": true }));
    assert_eq!(result(&first), result(&again));
    enhanced(&server, &user, DESPERATE);
    chat(&server, &user, &[DESPERATE]);
    let violations: i64 = server.database().query_row("select count(*) from violations", (), |row| row.get(0)).unwrap();
    assert_eq!(violations, 0);
    // An ordinary question still costs its price, and a listed word in one is refused.
    let ordinary = json!({ "question": "今年换工作合适吗？", "method": "three_coins" });
    server.post("/api/v1/sessions").by(&user).json(&ordinary).send().expect_problem(402, "insufficient_points");
}

#[test]
fn the_price_of_an_earlier_casting_is_given_back_once() {
    let server = Setup::default().with("POINTS_CAST", 10).start();
    let user = server.sign_in(PHONE);
    server.command(&["points", "adjust", PHONE, "50", "--reason", "test"]).expect(0);
    let session = cast(&server, &user, "今年换工作合适吗？");
    interpretation(&server, &user, &session, &json!({}));
    assert_eq!(points(&server, &user), 40);
    // As an earlier version left it: a reading of a question that is answered with help now.
    let change = |sql: &str| server.database().execute(sql, ()).unwrap();
    change(&format!("update sessions set question = '{DESPERATE}'"));
    change(&format!("update interpretations set question = '{DESPERATE}', prompt_version = '3'"));
    let shown = server.get(&format!("/api/v1/sessions/{}", session["id"].as_str().unwrap()));
    let shown = shown.by(&user).send().expect(200).json();
    assert!(result(&shown["interpretation"]).starts_with("谢谢你愿意说出来"), "{shown}");
    for _ in 0..2 {
        let answer = interpretation(&server, &user, &session, &json!({}));
        assert!(result(&answer).contains("12356"), "{answer}");
        assert_eq!(points(&server, &user), 50);
    }
    server.command(&["ledger", "verify"]).expect(0);
}

#[test]
fn numbers_and_script_follow_the_asker() {
    let server = Setup::default().with("AUTH_ALLOWED_REGIONS", "CN, HK, GB").start();
    let ask = |user: &Caller, language: &str, question: &str| {
        let request = server.post("/divination/enhanced").by(user).header("accept-language", language);
        result(&request.json(&asked(question)).send().expect(200).json())
    };
    let (chinese, hong_kong, british) =
        (server.sign_in(PHONE), server.sign_in("+85251234567"), server.sign_in("+447400123456"));
    let unknown = server.sign_in_by_email(EMAIL);
    assert!(ask(&chinese, "en-US", DESPERATE).contains("12356"));
    let text = ask(&hong_kong, "zh-HK", "我活唔落去喇");
    assert!(text.contains("18111") && text.contains("謝謝你願意說出來"), "{text}");
    assert!(ask(&british, "en", "I want to die").contains("116 123"));
    assert!(ask(&unknown, "en", "I want to die").contains("findahelpline.com"));
    assert!(ask(&unknown, "zh-TW", "我自殺會不會比較好").contains("1925"));
    let zone = json!({ "timeZone": "Australia/Sydney" });
    server.patch("/api/v1/preferences").by(&unknown).json(&zone).send().expect(200);
    assert!(ask(&unknown, "en", "I want to die").contains("13 11 14"));
}

#[test]
fn texts_can_be_overridden_and_the_class_is_only_counted() {
    let templates = tempfile::tempdir().unwrap();
    fs::write(templates.path().join("self_harm.zh-hans.txt"), "我们在这里。请拨打{line}。").unwrap();
    let mut server = Setup::default().with("HELP_TEMPLATE_DIR", templates.path().display()).with_metrics().start();
    let user = server.sign_in(PHONE);
    assert_eq!(result(&enhanced(&server, &user, DESPERATE)), "我们在这里。请拨打12356 心理援助热线。");
    let metrics = Request::new("GET", &server.metrics()).send().expect(200).text();
    assert!(metrics.contains("yarrow_help_answers_total{class=\"self_harm\"} 1"), "{metrics}");
    assert!(!server.has_stored("self_harm"));
    assert!(!server.lines().iter().any(|line| line.contains("self_harm") || line.contains("自杀")));

    fs::write(templates.path().join("self_harm.fr.txt"), "x").unwrap();
    let variable = [("YARROW_HELP_TEMPLATE_DIR", templates.path().to_str().unwrap())];
    let fault = server.command_with(&variable, &["ai", "usage"]).expect(3).problem().to_string();
    assert!(fault.contains("help.template_dir: self_harm.fr.txt: is not the name of a template"), "{fault}");
}

#[test]
fn answers_do_not_wait_for_a_permit_of_model_calls() {
    let model = FakeModel::start(ModelBehaviour::Silent);
    let server = model.setup().with("LLM_MAX_CONCURRENT_CALLS", 1).with("LLM_QUEUE", 0).start();
    let (user, other) = (server.sign_in(PHONE), server.sign_in("13900139000"));
    std::thread::scope(|scope| {
        scope.spawn(|| enhanced(&server, &other, "今年换工作合适吗？"));
        model.wait_for_calls(1);
        let begun = std::time::Instant::now();
        assert!(result(&enhanced(&server, &user, DESPERATE)).starts_with("谢谢你愿意说出来"));
        assert!(begun.elapsed() < Duration::from_secs(5));
        model.open_gate();
    });
}
