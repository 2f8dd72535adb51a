//! `/divination`: interpretations, streams and their records.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    time::Duration,
};

use serde_json::{Value, json};

use crate::support::{Caller, FakeModel, ModelBehaviour, Request, Server, Setup, eventually, eventually_some, soon};

const PHONE: &str = "13800138000";
/// A word on the default word list.
const LISTED: &str = "赌博";

fn ask(server: &Server, user: &Caller, body: &Value) -> Request {
    server.post("/divination/enhanced").by(user).json(body)
}

fn simple() -> Value {
    json!({ "question": "今年换工作合适吗？", "questionType": "career", "divinationData": { "lines": [7, 8, 8, 8, 7, 6] } })
}

fn record(server: &Server, user: &Caller, trace_id: &Value) -> Value {
    let path = format!("/divination/records/trace/{}", trace_id.as_str().unwrap());
    server.get(&path).by(user).send().expect(200).json()
}

fn records(server: &Server, user: &Caller, query: &[(&str, &str)]) -> Value {
    server.get(&format!("/divination/records/user/{}", user.user_id)).by(user).query(query).send().expect(200).json()
}

/// Returns the events of a stream: names and data.
fn events(text: &str) -> Vec<(String, Value)> {
    let event = |block: &str| {
        let (name, data) = block.strip_prefix("event: ")?.split_once("\ndata: ")?;
        Some((name.to_owned(), serde_json::from_str(data).unwrap()))
    };
    text.split("\n\n").filter_map(event).collect()
}

fn is_trace_id(value: &Value) -> bool {
    let text = value.as_str().unwrap();
    text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

// The offline interpreter.

#[test]
fn interprets_a_casting_without_configuration() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let response = ask(&server, &user, &simple()).send().expect(200).json();
    assert!(is_trace_id(&response["traceId"]));
    assert_eq!((&response["status"], &response["provider"]), (&json!("succeeded"), &json!("builtin")));
    assert!(response["result"].as_str().unwrap().contains("屯"), "{response}");
    assert!(response["durationMs"].is_i64() && response["usage"].is_object(), "{response}");

    let record = record(&server, &user, &response["traceId"]);
    for name in ["traceId", "status", "result", "provider", "model", "durationMs", "usage"] {
        assert_eq!(record[name], response[name], "{name}");
    }
    for name in ["question", "questionType", "divinationData"] {
        assert_eq!(record[name], simple()[name], "{name}");
    }
    assert_eq!(record["userId"], user.user_id);
    assert!(record["finishedAt"].is_string());
}

#[test]
fn uses_the_language_of_the_client() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let english = ask(&server, &user, &simple()).header("accept-language", "en-GB,en;q=0.9").send().expect(200).json();
    let result = english["result"].as_str().unwrap();
    assert!(result.split_whitespace().count() > 20, "{result}");
}

#[test]
fn requires_a_question_or_a_casting() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let response = ask(&server, &user, &json!({ "question": "你好" })).send().expect(200).json();
    assert_eq!(response["status"], "succeeded");
    for body in [json!({}), json!({ "question": "  " }), json!({ "question": null })] {
        ask(&server, &user, &body).send().expect_fields(&[("question", "required")]);
    }
    let long = json!({ "question": "问".repeat(201) });
    ask(&server, &user, &long).send().expect_fields(&[("question", "too_long")]);
    assert_eq!(server.value::<i64>("select count(*) from interpretations"), 1);
    for body in [
        json!({ "divinationData": { "lines": [7, 8, 8, 8, 7, 6] } }),
        json!({ "divinationData": { "lines": [7, 8, 8, 8, 7, 6] }, "question": " ", "questionType": "career" }),
    ] {
        let response = ask(&server, &user, &body).send().expect(200).json();
        assert_eq!(response["status"], "succeeded");
        assert!(response["result"].as_str().unwrap().contains("屯"), "{response}");
    }
}

#[test]
fn reads_the_castings_of_other_apps() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let chart = "占问：换工作\n震宫：泽雷随(归魂)　　　巽宫：风雷益\n六神　本卦　　变卦\n玄武　父母丁未土";
    for (data, primary, relating, assumed) in [
        (json!({ "benGua": "山风蛊", "bianGua": "水地比", "dong": [1, 2, 4, 5] }), "蛊", "比", "从零数起"),
        (json!({ "benGua": "泽雷随", "bianGua": "风雷益", "dong": [3, 5] }), "随", "益", "从零数起"),
        (json!({ "benGua": "泽雷随", "bianGua": "风雷益", "dong": [1, 3] }), "随", "益", "自上而下数"),
        (json!({ "benGua": "泽雷随", "bianGua": "风雷益", "dong": [4, 6] }), "随", "益", ""),
        (json!(chart), "随", "益", ""),
    ] {
        let question = json!({ "question": "今年换工作合适吗？", "divinationData": data });
        let answer = ask(&server, &user, &question).send().expect(200).json();
        let result = answer["result"].as_str().unwrap();
        for part in [primary, relating, assumed] {
            assert!(result.contains(part), "{data}: {part} is not in {result}");
        }
        assert_eq!(result.contains("原数据"), !assumed.is_empty(), "{data}: {result}");
    }
}

#[test]
fn stores_divination_data_byte_for_byte() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let data = r#"{ "lines" :[7, 8,8 , 8,7,6], "note":"\u4e7e" , "n":1E+2}"#;
    let body = format!(r#"{{"question":"x","divinationData":{data}}}"#);
    let response = server.post("/divination/enhanced").by(&user).raw_json(&body).send().expect(200).json();
    let path = format!("/divination/records/trace/{}", response["traceId"].as_str().unwrap());
    let text = server.get(&path).by(&user).send().expect(200).text();
    assert!(text.contains(&format!(r#""divinationData":{data},"#)), "{text}");
}

#[test]
fn a_stream_sends_metadata_text_and_result_in_order() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let response = ask(&server, &user, &simple()).header("accept", "text/event-stream").send().expect(200);
    assert_eq!(response.header("content-type"), Some("text/event-stream"));
    assert_eq!(response.header("cache-control"), Some("no-store"));
    let events = events(&response.text());
    let names: Vec<_> = events.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!((names[0], names[names.len() - 1]), ("meta", "done"));
    assert!(names.len() > 2 && names[1..names.len() - 1].iter().all(|name| *name == "delta"), "{names:?}");
    let pieces: String = events[1..events.len() - 1].iter().map(|(_, data)| data["text"].as_str().unwrap()).collect();
    let (meta, done) = (&events[0].1, &events[events.len() - 1].1);
    assert_eq!(done["result"], pieces);
    assert_eq!(done["traceId"], meta["traceId"]);
    assert_eq!(record(&server, &user, &meta["traceId"])["result"], pieces);
}

#[test]
fn returns_problems_for_invalid_stream_requests() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let stream = |body: Value| ask(&server, &user, &body).header("accept", "text/event-stream");
    stream(json!({})).send().expect_fields(&[("question", "required")]);
    stream(json!({ "question": LISTED })).send().expect_problem(422, "content_rejected");
    stream(json!({ "question": "x", "userId": 999_999 })).send().expect_problem(403, "not_yours");
}

#[test]
fn listed_words_reach_no_model_and_record_a_violation() {
    let model = FakeModel::start(ModelBehaviour::Pieces(vec!["x"]));
    let server = model.setup().start();
    let user = server.sign_in(PHONE);
    let response = ask(&server, &user, &json!({ "question": format!("今天{LISTED}好吗") })).send();
    let response = response.expect_problem(422, "content_rejected");
    assert!(!response.text().contains(LISTED), "{}", response.text());
    assert_eq!(response.json()["errors"][0]["field"], "question");
    assert!(model.calls().is_empty());
    assert_eq!(server.value::<i64>("select count(*) from interpretations"), 0);
    let masked: String = server.value("select masked_text from violations where content_type = 'question'");
    assert!(!masked.contains(LISTED) && masked.starts_with("今天") && masked.ends_with("好吗"), "{masked}");
}

#[test]
fn screens_the_question_type_like_the_question() {
    let model = FakeModel::start(ModelBehaviour::Pieces(vec!["x"]));
    let server = model.setup().start();
    let user = server.sign_in(PHONE);
    let refused = |body: Value| {
        let response = ask(&server, &user, &body).send().expect_problem(422, "content_rejected");
        let fields = response.json()["errors"].as_array().unwrap().clone();
        fields.iter().map(|error| error["field"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(refused(json!({ "question": "今天好吗", "questionType": LISTED })), ["questionType"]);
    assert_eq!(refused(json!({ "question": LISTED, "questionType": LISTED })), ["question", "questionType"]);
    assert!(model.calls().is_empty());
    assert_eq!(server.value::<i64>("select count(*) from violations where content_type = 'question'"), 3);
    ask(&server, &user, &json!({ "question": "今天好吗", "questionType": "career" })).send().expect(200);
}

#[test]
fn limits_interpretations_an_hour() {
    let server = Setup::default().with("LLM_CALLS_PER_USER_HOUR", 3).start();
    let (user, other) = (server.sign_in(PHONE), server.sign_in("13800138001"));
    let chat = |user: &Caller| {
        let message = json!({ "messages": [{ "role": "user", "content": "你好" }] });
        server.post("/llm/chat").by(user).json(&message).send()
    };
    let question = json!({ "question": "何时启程？" });
    for _ in 0..3 {
        ask(&server, &user, &question).send().expect(200);
        chat(&user).expect(200);
    }
    for refused in [ask(&server, &user, &question).send(), chat(&user)] {
        let wait: u32 = refused.header("retry-after").unwrap().parse().unwrap();
        assert!((3_500..=3_600).contains(&wait), "{wait}");
        refused.expect_problem(429, "too_many_requests");
    }
    ask(&server, &other, &question).send().expect(200);
    for table in ["interpretations", "chats"] {
        assert_eq!(server.value::<i64>(&format!("select count(*) from {table} where user_id = {}", user.user_id)), 3);
    }
    server.edit("update model_calls set created_at = created_at - 3600000");
    ask(&server, &user, &question).send().expect(200);
    chat(&user).expect(200);
}

#[test]
fn limits_stored_records_without_a_session() {
    let setup = Setup::default().with("LLM_CALLS_PER_USER_HOUR", 3).with("LIMITS_INTERPRETATION_RECORDS", 4);
    let server = setup.start();
    let (user, other) = (server.sign_in(PHONE), server.sign_in("13800138001"));
    server.command(&["points", "adjust", PHONE, "100", "--reason", "test"]).expect(0);
    let cast = json!({ "question": "何时启程？", "method": "three_coins" });
    let session = server.post("/api/v1/sessions").by(&user).json(&cast).send().expect(201).json();
    let session = format!("/api/v1/sessions/{}", session["id"].as_str().unwrap());
    server.post(&format!("{session}/interpretation")).by(&user).send().expect(200);
    ask(&server, &other, &json!({ "question": "别人的" })).send().expect(200);
    for number in 0..7 {
        for table in ["interpretations", "chats", "model_calls"] {
            server.edit(&format!("update {table} set created_at = created_at - 3600000"));
        }
        ask(&server, &user, &json!({ "question": format!("问{number}") })).send().expect(200);
        let message = json!({ "messages": [{ "role": "user", "content": "你好" }] });
        server.post("/llm/chat").by(&user).json(&message).send().expect(200);
    }
    let stored: String = server.value(&format!(
        "select group_concat(question, ' ' order by id) from interpretations where user_id = {}",
        user.user_id
    ));
    assert_eq!(stored, "何时启程？ 问3 问4 问5 问6");
    assert_eq!(server.value::<i64>("select count(*) from chats"), 4);
    assert_eq!(server.value::<i64>("select count(*) from interpretations"), 6);
    assert!(server.get(&session).by(&user).send().expect(200).json()["interpretation"]["result"].is_string());
}

#[test]
fn keeps_few_records_with_much_data() {
    let server = Setup::default().with("LLM_CALLS_PER_USER_HOUR", 20).with("LIMITS_INTERPRETATION_RECORDS", 20).start();
    let (user, other) = (server.sign_in(PHONE), server.sign_in("13800138001"));
    let large = json!({ "lines": [7, 8, 8, 8, 7, 6], "note": "注".repeat(4_000) });
    ask(&server, &other, &json!({ "question": "别人的", "divinationData": large })).send().expect(200);
    for number in 0..4 {
        ask(&server, &user, &json!({ "question": format!("大{number}"), "divinationData": large })).send().expect(200);
        ask(&server, &user, &json!({ "question": format!("小{number}") })).send().expect(200);
    }
    let stored = "select group_concat(question, ' ' order by id) from interpretations";
    assert_eq!(server.value::<String>(stored), "别人的 小0 小1 大2 小2 大3 小3");
}

// Records.

#[test]
fn returns_records_newest_first_in_pages() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    for number in 0..5 {
        ask(&server, &user, &json!({ "question": format!("问{number}") })).send().expect(200);
    }
    let questions = |page: &Value| -> Vec<String> {
        let items = page["items"].as_array().unwrap();
        items.iter().map(|item| item["question"].as_str().unwrap().to_owned()).collect()
    };
    let all = records(&server, &user, &[]);
    assert_eq!(questions(&all), ["问4", "问3", "问2", "问1", "问0"]);
    assert_eq!((&all["page"], &all["size"], &all["total"]), (&json!(1), &json!(20), &json!(5)));
    let second = records(&server, &user, &[("page", "2"), ("size", "2")]);
    assert_eq!(questions(&second), ["问2", "问1"]);
    assert_eq!((&second["page"], &second["size"], &second["total"]), (&json!(2), &json!(2), &json!(5)));
    assert_eq!(records(&server, &user, &[("page", "9")])["items"], json!([]));
    let path = format!("/divination/records/user/{}", user.user_id);
    for (query, code) in [
        (("page", "0"), "out_of_range"),
        (("page", "x"), "invalid_type"),
        (("size", "0"), "out_of_range"),
        (("size", "101"), "out_of_range"),
        (("size", "-1"), "out_of_range"),
        (("page", "99999999999"), "out_of_range"),
        (("size", "9".repeat(30).as_str()), "out_of_range"),
    ] {
        server.get(&path).by(&user).query(&[query]).send().expect_fields(&[(query.0, code)]);
    }
}

#[test]
fn hides_records_of_other_users() {
    let server = Setup::default().start();
    let (user, other) = (server.sign_in(PHONE), server.sign_in("13800138001"));
    let response = ask(&server, &other, &simple()).send().expect(200).json();
    let of_other = format!("/divination/records/trace/{}", response["traceId"].as_str().unwrap());
    let of_nobody = format!("/divination/records/trace/{}", "0".repeat(32));
    for path in [of_other, of_nobody] {
        server.get(&path).by(&user).send().expect_problem(404, "not_found");
    }
    for id in [other.user_id.as_str(), "999999"] {
        let path = format!("/divination/records/user/{id}");
        server.get(&path).by(&user).send().expect_problem(403, "not_yours");
        let body = json!({ "question": "x", "userId": id });
        ask(&server, &user, &body).send().expect_problem(403, "not_yours");
    }
    let bad = "/divination/records/trace/xyz";
    server.get(bad).by(&user).send().expect_fields(&[("traceId", "invalid_format")]);
    assert_eq!(records(&server, &user, &[])["total"], 0);
}

// An external model.

#[test]
fn sends_the_model_no_personal_data() {
    let model = FakeModel::start(ModelBehaviour::Pieces(vec!["水雷", "屯"]));
    let server = model.setup().start();
    let user = server.sign_in(PHONE);
    let nickname = json!({ "nickname": "青山不老" });
    server.put("/user/profile").by(&user).json(&nickname).send().expect(200);
    let response = ask(&server, &user, &simple()).send().expect(200).json();
    assert_eq!(
        (&response["result"], &response["provider"], &response["model"]),
        (&json!("水雷屯"), &json!("openai"), &json!("stub-1"))
    );
    assert_eq!(response["usage"], json!({ "promptTokens": 11, "completionTokens": 7 }));

    let call = model.calls().remove(0);
    assert_eq!(call.header("authorization"), Some("Bearer the-key-of-the-model"));
    let trace_id = response["traceId"].as_str().unwrap();
    assert!(call.header("traceparent").unwrap().starts_with(&format!("00-{trace_id}-")), "{call:?}");
    assert_eq!(call.body["model"], "stub-1");
    let message = call.body["messages"].to_string();
    assert!(message.contains("今年换工作合适吗？") && message.contains("career"), "{message}");
    let everything = format!("{:?} {}", call.headers, call.body);
    for secret in [PHONE, &user.token, "青山不老"] {
        assert!(!everything.contains(secret), "{everything}");
    }
}

#[test]
fn limits_a_user_to_two_concurrent_calls() {
    let model = FakeModel::start(ModelBehaviour::Silent);
    let server = model.setup().start();
    let (user, other) = (server.sign_in(PHONE), server.sign_in("13800138001"));
    std::thread::scope(|scope| {
        let running: Vec<_> = [&user, &user, &other]
            .map(|caller| {
                let request = ask(&server, caller, &simple());
                scope.spawn(move || request.send())
            })
            .into();
        model.wait_for_calls(3);
        let refused = ask(&server, &user, &simple()).send().expect_problem(429, "too_many_calls");
        assert!(refused.header("retry-after").is_some());
        ask(&server, &user, &simple())
            .header("accept", "text/event-stream")
            .send()
            .expect_problem(429, "too_many_calls");
        // Other users and other requests are not delayed.
        server.get("/user/profile").by(&user).send().expect(200);
        assert_eq!(records(&server, &user, &[])["items"][0]["status"], "running");
        model.open_gate();
        for response in running {
            response.join().unwrap().expect(200);
        }
    });
    ask(&server, &user, &simple()).send().expect(200);
    assert_eq!(server.value::<i64>("select count(*) from interpretations"), 4);
}

#[test]
fn limits_concurrent_calls_overall() {
    let model = FakeModel::start(ModelBehaviour::Silent);
    let server = model.setup().with("LLM_MAX_CONCURRENT_CALLS", 1).with("LLM_QUEUE", 0).start();
    let (user, other) = (server.sign_in(PHONE), server.sign_in("13800138001"));
    std::thread::scope(|scope| {
        let request = ask(&server, &user, &simple());
        let running = scope.spawn(move || request.send());
        model.wait_for_calls(1);
        let refused = ask(&server, &other, &simple()).send().expect_problem(503, "overloaded");
        assert!(refused.header("retry-after").is_some());
        model.open_gate();
        running.join().unwrap().expect(200);
    });
    ask(&server, &other, &simple()).send().expect(200);
}

/// Panics unless the call fails with this problem and record.
#[track_caller]
fn expect_failure(server: &Server, user: &Caller, status: u16, code: &str) {
    let problem = ask(server, user, &simple()).send().expect_problem(status, code);
    assert!(!problem.text().contains("secret words of the provider"), "{}", problem.text());
    let record = record(server, user, &problem.json()["traceId"]);
    assert_eq!((&record["status"], &record["result"]), (&json!("failed"), &Value::Null));
    assert!(record["durationMs"].is_i64() && record["errorClass"].is_string(), "{record}");
}

#[test]
fn a_rejecting_model_is_502_with_a_record() {
    let model = FakeModel::start(ModelBehaviour::Status(400));
    let server = model.setup().start();
    expect_failure(&server, &server.sign_in(PHONE), 502, "provider_failed");
    assert_eq!(model.calls().len(), 1);
}

#[test]
fn an_invalid_model_response_is_502_with_a_record() {
    let server = FakeModel::start(ModelBehaviour::Nonsense).setup().start();
    expect_failure(&server, &server.sign_in(PHONE), 502, "provider_failed");
}

#[test]
fn retries_an_overloaded_model_once_and_returns_503() {
    let model = FakeModel::start(ModelBehaviour::Status(503));
    let server = model.setup().start();
    expect_failure(&server, &server.sign_in(PHONE), 503, "provider_unavailable");
    assert_eq!(model.calls().len(), 2);
}

#[test]
fn an_unreachable_model_is_503() {
    let server = FakeModel::start(ModelBehaviour::Silent).setup().with("LLM_BASE_URL", "http://127.0.0.1:1/v1").start();
    expect_failure(&server, &server.sign_in(PHONE), 503, "provider_unavailable");
}

#[test]
fn a_silent_model_is_504() {
    let model = FakeModel::start(ModelBehaviour::Silent);
    let server = model.setup().with("LLM_FIRST_BYTE_TIMEOUT", "200 ms").with("LLM_IDLE_TIMEOUT", "200 ms").start();
    expect_failure(&server, &server.sign_in(PHONE), 504, "provider_timeout");
}

#[test]
fn a_failing_stream_ends_with_an_error_event() {
    let server = FakeModel::start(ModelBehaviour::Status(400)).setup().start();
    let user = server.sign_in(PHONE);
    let response = ask(&server, &user, &simple()).header("accept", "text/event-stream").send().expect(200);
    let events = events(&response.text());
    let names: Vec<_> = events.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["meta", "error"]);
    assert_eq!(events[1].1["code"], "provider_failed");
    assert_eq!(events[1].1["traceId"], events[0].1["traceId"]);
    assert_eq!(record(&server, &user, &events[0].1["traceId"])["status"], "failed");
}

/// Opens a raw stream and reads until the first text.
fn listen(server: &Server, user: &Caller) -> BufReader<TcpStream> {
    listen_until(server, user, "event: delta")
}

fn listen_until(server: &Server, user: &Caller, event: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let body = simple().to_string();
    write!(
        stream,
        "POST /divination/enhanced HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\naccept: text/event-stream\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        user.token,
        body.len()
    )
    .unwrap();
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while !line.contains(event) {
        line.clear();
        assert!(reader.read_line(&mut line).unwrap() > 0, "the stream ended before any text");
    }
    reader
}

/// Waits until the only record is not `running` and returns its status.
fn ended(server: &Server) -> String {
    eventually_some("the call ends", || {
        Some(server.value::<String>("select status from interpretations")).filter(|status| status != "running")
    })
}

#[test]
fn sends_text_while_the_model_is_still_writing() {
    let model = FakeModel::start(ModelBehaviour::Gated(vec!["一", "二"]));
    let server = model.setup().start();
    let user = server.sign_in(PHONE);
    let mut reader = listen(&server, &user);
    assert_eq!(server.value::<String>("select status from interpretations"), "running");
    model.open_gate();
    let mut line = String::new();
    while !line.contains("event: done") {
        line.clear();
        assert!(reader.read_line(&mut line).unwrap() > 0, "the stream ended before it was done");
    }
    assert_eq!(ended(&server), "succeeded");
}

fn has_ended(server: &Server) -> bool {
    server.value::<String>("select status from interpretations") != "running"
}

#[test]
fn a_disconnect_cancels_the_call_and_releases_its_permit() {
    let model = FakeModel::start(ModelBehaviour::Gated(vec!["一", "二", "三", "四"]));
    let server = model.setup().with("LLM_CALLS_PER_USER", 1).start();
    let user = server.sign_in(PHONE);
    drop(listen(&server, &user));
    // The model never sends another chunk, which is noticed after 30 s only.
    soon("the call ends", Duration::from_secs(10), || has_ended(&server));
    assert_eq!(ended(&server), "cancelled");
    model.open_gate();
    // The permit is released after the record is written.
    eventually("the permit is released", || ask(&server, &user, &simple()).send().status == 200);
}

#[test]
fn a_disconnect_before_the_first_chunk_cancels_the_call() {
    let model = FakeModel::start(ModelBehaviour::Silent);
    let server = model.setup().with("LLM_CALLS_PER_USER", 1).start();
    let user = server.sign_in(PHONE);
    let listening = listen_until(&server, &user, "event: meta");
    model.wait_for_calls(1);
    drop(listening);
    soon("the call ends", Duration::from_secs(10), || has_ended(&server));
    assert_eq!(ended(&server), "cancelled");
    assert_eq!(server.value::<Option<String>>("select error_class from interpretations").as_deref(), Some("cancelled"));
}

#[test]
fn records_a_call_interrupted_by_a_crash() {
    let model = FakeModel::start(ModelBehaviour::Gated(vec!["一", "二"]));
    let server = model.setup().in_own_process().start();
    let user = server.sign_in(PHONE);
    let reader = listen(&server, &user);
    let server = server.crash_and_restart(model.setup());
    drop(reader);
    let listed = records(&server, &user, &[]);
    assert_eq!((&listed["total"], &listed["items"][0]["status"]), (&json!(1), &json!("interrupted")));
}

#[test]
fn never_logs_questions() {
    let server = Setup::default().with("LOG_LEVEL", "debug").start();
    let user = server.sign_in(PHONE);
    ask(&server, &user, &json!({ "question": "寂静的问题", "divinationData": "寂静的卦" })).send().expect(200);
    ask(&server, &user, &json!({ "question": format!("寂静{LISTED}") })).send().expect_problem(422, "content_rejected");
    server.get("/user/profile").by(&user).query(&[("id", "999")]).send().expect_problem(403, "not_yours");
    eventually("the last request is in the log", || server.lines().iter().any(|line| line.contains("status=403")));
    let lines: Vec<_> = server.lines().into_iter().filter(|line| !line.contains("SMS to")).collect();
    let log = lines.join("\n");
    assert!(log.contains("/divination/enhanced"), "{log}");
    for secret in ["寂静", PHONE, &user.token] {
        assert!(!log.contains(secret), "{log}");
    }
}
