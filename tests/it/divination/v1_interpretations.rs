//! Further interpretations of a session, their price, and ratings.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread::scope,
};

use serde_json::{Value, json};

use crate::support::{
    Binary, Caller, FakeModel, ModelBehaviour, Request, Server, Setup,
    fake_provider::{FakeProvider, Reply},
    model_requests::{LISTED, ask, chunks, with_model_provider},
    send_concurrently,
};

const EMAIL: &str = "li.ming@example.com";
const SIX_WORDS: [&str; 6] = ["one", "two", "three", "four", "five", "six"];

/// A model that answers its calls with "one", "two" and so on.
fn counting_model() -> FakeProvider {
    let calls = Arc::new(AtomicUsize::new(0));
    FakeProvider::with_handler(move |_| Reply::event_stream(chunks(&[SIX_WORDS[calls.fetch_add(1, Ordering::SeqCst)]])))
}

/// Casts and returns the path of the session.
pub(super) fn session(server: &Server, user: &Caller) -> String {
    let cast = json!({ "question": "Should I move?", "method": "manual", "lines": [7, 8, 8, 9, 7, 6] });
    let created = server.post("/api/v1/sessions").by(user).json(&cast).send().expect(201).json();
    format!("/api/v1/sessions/{}", created["id"].as_str().unwrap())
}

pub(super) fn interpret(server: &Server, user: &Caller, session: &str) -> Request {
    server.post(&format!("{session}/interpretation")).by(user)
}

pub(super) fn again(server: &Server, user: &Caller, session: &str) -> Request {
    interpret(server, user, session).json(&json!({ "again": true }))
}

pub(super) fn points(server: &Server, user: &Caller) -> i64 {
    server.get("/api/v1/points").by(user).send().expect(200).json()["balance"].as_i64().unwrap()
}

fn results(session: &Value) -> Vec<&str> {
    session["interpretations"].as_array().unwrap().iter().map(|item| item["result"].as_str().unwrap()).collect()
}

fn kinds(server: &Server) -> Vec<(String, i64)> {
    let database = server.database();
    let mut statement = database
        .prepare("select kind, delta from ledger_entries where kind like 'interpretation%' order by seq")
        .unwrap();
    let rows = statement.query_map((), |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

#[test]
fn interprets_again_up_to_the_limit_and_keeps_earlier_ones() {
    let model = counting_model();
    let server = with_model_provider(&model).start();
    let user = server.sign_in_by_email(EMAIL);
    let session = session(&server, &user);
    let found = server.get(&session).by(&user).send().expect(200).json();
    assert_eq!((&found["interpretations"], &found["remainingInterpretations"]), (&json!([]), &json!(3)));
    // Without an interpretation, another one is the first.
    assert_eq!(again(&server, &user, &session).send().expect(200).json()["result"], "one");
    assert_eq!(interpret(&server, &user, &session).send().expect(200).json()["result"], "one");
    let second = again(&server, &user, &session).send().expect(200).json();
    assert_eq!(second["result"], "two");
    assert_eq!(interpret(&server, &user, &session).json(&json!({ "again": false })).send().json(), second);
    let streamed = again(&server, &user, &session).header("accept", "text/event-stream").send().expect(200).text();
    assert!(streamed.contains("\"three\"") && streamed.contains("event: done"), "{streamed}");
    again(&server, &user, &session).send().expect_problem(409, "interpretation_limit");
    interpret(&server, &user, &session).query(&[("again", "maybe")]).send().expect_fields(&[("again", "invalid_type")]);

    let found = server.get(&session).by(&user).send().expect(200).json();
    assert_eq!(results(&found), ["three", "two", "one"]);
    assert_eq!(found["interpretation"], found["interpretations"][0]);
    assert_eq!((&found["remainingInterpretations"], &found["nextInterpretationPoints"]), (&json!(0), &json!(0)));
    let shown = &found["interpretations"][1];
    assert_eq!(shown["traceId"], second["traceId"]);
    assert!(
        shown["createdAt"].is_string() && shown["promptVersion"].is_string() && shown["rating"].is_null(),
        "{shown}"
    );
    assert_eq!((&shown["model"], points(&server, &user)), (&json!("m"), 90));
    assert!(kinds(&server).is_empty());
    // All of them go with the session.
    server.delete(&session).by(&user).send().expect(204);
    assert_eq!(server.value::<i64>("select count(*) from interpretations"), 0);
    assert_eq!(server.value::<i64>("select count(*) from session_calls"), 0);
}

#[test]
fn charges_each_further_interpretation_once() {
    let model = counting_model();
    let setup = with_model_provider(&model).with("POINTS_ANOTHER_INTERPRETATION", 40);
    let server = setup.with("LLM_INTERPRETATIONS_PER_SESSION", 9).start();
    let user = server.sign_in_by_email(EMAIL);
    let session = session(&server, &user);
    assert_eq!(again(&server, &user, &session).send().expect(200).json()["result"], "one");
    assert_eq!(points(&server, &user), 90);
    let found = server.get(&session).by(&user).send().expect(200).json();
    assert_eq!(found["nextInterpretationPoints"], 40);

    let keyed = || again(&server, &user, &session).header("idempotency-key", "k");
    let first = keyed().send().expect(200);
    let second = keyed().send().expect(200);
    assert_eq!((first.json()["result"].clone(), first.bytes), (json!("two"), second.bytes.clone()));
    assert_eq!(second.header("idempotency-replayed"), Some("true"));
    let streamed = keyed().header("accept", "text/event-stream").send().expect(200);
    assert_eq!(streamed.header("idempotency-replayed"), Some("true"));
    assert!(streamed.text().contains("\"two\""), "{}", streamed.text());
    interpret(&server, &user, &session)
        .header("idempotency-key", "k")
        .send()
        .expect_problem(422, "idempotency_key_reused");
    assert_eq!(points(&server, &user), 50);

    assert_eq!(again(&server, &user, &session).send().expect(200).json()["result"], "three");
    again(&server, &user, &session).send().expect_problem(402, "insufficient_points");
    let poor = again(&server, &user, &session).header("idempotency-key", "poor");
    poor.clone().send().expect_problem(402, "insufficient_points");
    let refused = poor.send().expect(402);
    assert_eq!(refused.header("idempotency-replayed"), Some("true"));
    assert_eq!(refused.json()["code"], "insufficient_points");
    assert_eq!((points(&server, &user), model.requests().len()), (10, 3));
    let charge = ("interpretation".to_owned(), -40);
    assert_eq!(kinds(&server), [charge.clone(), charge]);
    assert_eq!(server.value::<i64>("select count(*) from interpretations where status <> 'succeeded'"), 0);
    server.command(&["ledger", "verify"]).expect(0);
}

#[test]
fn refunds_a_failed_interpretation() {
    let calls = Arc::new(AtomicUsize::new(0));
    let model = FakeProvider::with_handler(move |_| match calls.fetch_add(1, Ordering::SeqCst) {
        1 => Reply::status(400),
        number => Reply::event_stream(chunks(&[SIX_WORDS[number]])),
    });
    let server = with_model_provider(&model).with("POINTS_ANOTHER_INTERPRETATION", 40).start();
    let user = server.sign_in_by_email(EMAIL);
    let session = session(&server, &user);
    interpret(&server, &user, &session).send().expect(200);
    let keyed = || again(&server, &user, &session).header("idempotency-key", "k");
    keyed().send().expect_problem(502, "provider_failed");
    assert_eq!(points(&server, &user), 90);
    // The key of a failed request is free.
    let third = keyed().send().expect(200);
    assert_eq!((third.json()["result"].clone(), third.header("idempotency-replayed")), (json!("three"), None));
    assert_eq!(keyed().send().expect(200).header("idempotency-replayed"), Some("true"));
    assert_eq!(points(&server, &user), 50);
    let expected = [("interpretation", -40), ("interpretation_refund", 40), ("interpretation", -40)];
    assert_eq!(kinds(&server), expected.map(|(kind, delta)| (kind.to_owned(), delta)));
    let found = server.get(&session).by(&user).send().expect(200).json();
    assert_eq!((results(&found), &found["remainingInterpretations"]), (vec!["three", "one"], &json!(1)));
    server.command(&["ledger", "verify"]).expect(0);
}

#[test]
fn refunds_an_interpretation_that_a_kill_interrupted() {
    let working = FakeModel::start(ModelBehaviour::Pieces(vec!["one"]));
    let price = |setup: Setup| setup.with("POINTS_ANOTHER_INTERPRETATION", 40);
    let server = price(working.setup()).in_own_process().start();
    let user = server.sign_in_by_email(EMAIL);
    let session = session(&server, &user);
    interpret(&server, &user, &session).send().expect(200);
    let silent = FakeModel::start(ModelBehaviour::Silent);
    let server = server.crash_and_restart(price(silent.setup()));
    let keyed = |server: &Server| again(server, &user, &session).header("idempotency-key", "k");
    let server = scope(|scope| {
        let request = keyed(&server);
        let cut_off = scope.spawn(|| request.try_send().is_err());
        silent.wait_for_calls(1);
        assert_eq!(points(&server, &user), 50);
        let server = server.crash_and_restart(price(working.setup()));
        assert!(cut_off.join().unwrap());
        server
    });
    assert_eq!(points(&server, &user), 90);
    assert_eq!(keyed(&server).send().expect(200).header("idempotency-replayed"), None);
    let server = server.crash_and_restart(price(working.setup()));
    assert_eq!(points(&server, &user), 50);
    server.command(&["ledger", "verify"]).expect(0);
}

#[test]
fn refunds_the_running_interpretation_of_a_deleted_session() {
    let model = FakeModel::start(ModelBehaviour::Gated(vec!["o", "ne"]));
    let server = model.setup().with("POINTS_ANOTHER_INTERPRETATION", 40).start();
    let user = server.sign_in_by_email(EMAIL);
    let session = session(&server, &user);
    server.edit(&first_interpretation(&session, &user));
    scope(|scope| {
        let running = scope.spawn(|| again(&server, &user, &session).send());
        model.wait_for_calls(1);
        assert_eq!(points(&server, &user), 50);
        server.delete(&session).by(&user).send().expect(204);
        assert_eq!(points(&server, &user), 90);
        model.open_gate();
        running.join().unwrap().expect_problem(404, "not_found");
    });
    assert_eq!(points(&server, &user), 90);
    assert_eq!(server.value::<i64>("select count(*) from interpretations"), 0);
}

/// Returns statements that store an interpretation of this session, without a model.
fn first_interpretation(session: &str, user: &Caller) -> String {
    let (id, trace) = (session.rsplit('/').next().unwrap(), "f".repeat(32));
    format!(
        "insert into interpretations (trace_id, user_id, question, status, provider, model, prompt_version, result, \
         created_at, finished_at, of_session) values ('{trace}', {}, 'q', 'succeeded', 'p', 'm', 'v', 'first', 1, 1, 1); \
         insert into session_calls (trace_id, session_id) values ('{trace}', '{id}'); \
         update sessions set trace_id = '{trace}', model = 'm', duration_ms = 1, interpreted_at = 1 where id = '{id}'",
        user.user_id
    )
}

#[test]
fn parallel_requests_are_charged_for_each_interpretation_once() {
    for key in [None, Some("k")] {
        let model = counting_model();
        let setup = with_model_provider(&model).with("POINTS_ANOTHER_INTERPRETATION", 5);
        let setup = setup.with("LLM_INTERPRETATIONS_PER_SESSION", 5).with("LLM_CALLS_PER_USER", 20);
        let server = setup.start();
        let user = server.sign_in_by_email(EMAIL);
        let session = session(&server, &user);
        server.edit(&first_interpretation(&session, &user));
        let request = |_| {
            let request = again(&server, &user, &session);
            if let Some(key) = key { request.header("idempotency-key", key) } else { request }
        };
        let responses = send_concurrently((0..12).map(request).collect());
        let answered = responses.iter().filter(|response| response.status == 200).count();
        assert!(responses.iter().all(|response| [200, 409, 429].contains(&response.status)));
        let made = server.value::<i64>("select count(*) from interpretations where status = 'succeeded'") - 1;
        assert!(answered > 0 && (1..=4).contains(&made), "{answered} answers, {made} interpretations");
        if key.is_some() {
            assert_eq!(made, 1);
        }
        assert_eq!(points(&server, &user), 90 - 5 * made);
        assert_eq!(i64::try_from(kinds(&server).len()).unwrap(), made);
        assert_eq!(i64::try_from(model.requests().len()).unwrap(), made);
    }
}

// Ratings.

fn rate(server: &Server, user: &Caller, trace_id: &Value, rating: &Value) -> Request {
    let path = format!("/api/v1/interpretations/{}/rating", trace_id.as_str().unwrap());
    server.put(&path).by(user).json(rating)
}

#[test]
fn users_rate_their_interpretations_and_change_the_rating() {
    let server = Setup::default().start();
    let user = server.sign_in_by_email(EMAIL);
    let other = server.sign_in_by_email("other@example.com");
    let session = session(&server, &user);
    let trace = interpret(&server, &user, &session).send().expect(200).json()["traceId"].clone();
    let good = json!({ "helpful": true, "note": " clear and kind " });
    let rated = rate(&server, &user, &trace, &good).send().expect(200).json();
    assert_eq!((&rated["helpful"], &rated["note"]), (&json!(true), &json!("clear and kind")));
    assert!(rated["ratedAt"].is_string());
    let shown = || server.get(&session).by(&user).send().expect(200).json()["interpretations"][0]["rating"].clone();
    assert_eq!(shown(), rated);
    assert_eq!(interpret(&server, &user, &session).send().expect(200).json()["rating"], rated);
    rate(&server, &user, &trace, &json!({ "helpful": false })).send().expect(200);
    assert_eq!((shown()["helpful"].clone(), shown()["note"].clone()), (json!(false), Value::Null));

    let fields = |rating: Value, expected: &[(&str, &str)]| {
        rate(&server, &user, &trace, &rating).send().expect_fields(expected);
    };
    fields(json!({ "note": "x" }), &[("helpful", "required")]);
    fields(json!({ "helpful": "perhaps" }), &[("helpful", "invalid_type")]);
    fields(json!({ "helpful": true, "note": "字".repeat(501) }), &[("note", "too_long")]);
    let rejected = rate(&server, &user, &trace, &json!({ "helpful": true, "note": format!("去{LISTED}") })).send();
    assert_eq!(rejected.expect_problem(422, "content_rejected").json()["errors"][0]["field"], "note");
    assert_eq!(server.value::<i64>("select count(*) from violations"), 1);
    assert_eq!(shown()["note"], Value::Null);
    rate(&server, &other, &trace, &good).send().expect_problem(404, "not_found");
    rate(&server, &user, &json!("0".repeat(32)), &good).send().expect_problem(404, "not_found");
    server.edit("update interpretations set status = 'failed'");
    rate(&server, &user, &trace, &good).send().expect_problem(404, "not_found");
}

#[test]
fn interpretations_of_the_first_generation_are_rated_too() {
    let server = Setup::default().start();
    let user = server.sign_in("13800138000");
    let trace = ask(&server, &user).send().expect(200).json()["traceId"].clone();
    let rated = rate(&server, &user, &trace, &json!({ "helpful": true, "note": "x" })).send().expect(200).json();
    let record = format!("/divination/records/trace/{}", trace.as_str().unwrap());
    assert_eq!(server.get(&record).by(&user).send().expect(200).json()["rating"], rated);
    let shown = server.command(&["records", "show", trace.as_str().unwrap()]).expect(0).json();
    assert_eq!(shown["rating"], rated);
}

#[test]
fn operators_see_ratings_by_model_and_prompt_version() {
    let server = Setup::default().start();
    let (user, key) = (server.sign_in_by_email(EMAIL), server.api_key("support"));
    let session = session(&server, &user);
    for (helpful, note) in [(true, Some("first note")), (false, Some("second note")), (true, None)] {
        let trace = again(&server, &user, &session).send().expect(200).json()["traceId"].clone();
        rate(&server, &user, &trace, &json!({ "helpful": helpful, "note": note })).send().expect(200);
    }
    server.edit("update interpretations set prompt_version = 'other', model = 'x' where rating_note = 'first note'");
    let report = server.get("/admin/interpretation-ratings").token(&key).send().expect(200).json();
    let rates = report["rates"].as_array().unwrap();
    assert_eq!(rates.len(), 2, "{report}");
    let find = |model: &str| rates.iter().find(|rate| (rate["model"] == "x") == (model == "x")).unwrap();
    let numbers = |rate: &Value| (rate["rated"].clone(), rate["helpful"].clone(), rate["helpfulPercent"].clone());
    assert_eq!(numbers(find("x")), (json!(1), json!(1), json!(100)));
    assert_eq!(numbers(find("builtin")), (json!(2), json!(1), json!(50)));
    let notes: Vec<_> = report["notes"]["items"].as_array().unwrap().iter().map(|note| &note["note"]).collect();
    assert_eq!((notes, &report["notes"]["total"]), (vec![&json!("second note"), &json!("first note")], &json!(2)));
    assert_eq!(report["notes"]["items"][0]["userId"], user.user_id);

    let command = server.command(&["ai", "ratings", "--size", "20"]).expect(0).json();
    assert_eq!(command, report);
    let text = Binary::command().arg("--data-dir").arg(server.directory()).args(["ai", "ratings"]).output().unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("helpful percent") && text.contains("second note"), "{text}");
    let later = server.get("/admin/interpretation-ratings").query(&[("startTime", "2100-01-01")]).token(&key);
    let later = later.send().expect(200).json();
    assert_eq!((&later["rates"], &later["notes"]["total"]), (&json!([]), &json!(0)));
    server.get("/admin/interpretation-ratings").by(&user).send().expect_problem(403, "forbidden");
    let audited =
        "select count(*) from audit where action like '%interpretation-ratings' or action = 'yarrow ai ratings'";
    assert_eq!(server.value::<i64>(audited), 4);

    // The account's deletion erases the notes; the first-generation records and their ratings stay.
    let trace = ask(&server, &user).send().expect(200).json()["traceId"].clone();
    rate(&server, &user, &trace, &json!({ "helpful": false, "note": "third note" })).send().expect(200);
    server.delete("/api/v1/account").by(&user).send().expect(204);
    let report = server.get("/admin/interpretation-ratings").token(&key).send().expect(200).json();
    assert_eq!((&report["rates"][0]["rated"], &report["notes"]["total"]), (&json!(1), &json!(0)));
}
