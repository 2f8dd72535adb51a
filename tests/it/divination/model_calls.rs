//! Model calls under load: queueing, budgets, provider failures, disk failures and crashes.

use std::{
    thread::{scope, sleep},
    time::Duration,
};

use serde_json::{Value, json};

use crate::support::{
    Binary, Database, FakeModel, ModelBehaviour, Server, allow_changes, eventually,
    fake_provider::{FakeProvider, Reply},
    model_requests::{
        LISTED, PHONE, ask, budget_usage, chat, chunks, provider_streaming, read_stream_until, record, streamed,
        with_model_provider,
    },
    open_app, refuse_changes,
};

const OTHER: &str = "13800138001";

// Queueing.

#[test]
fn calls_queue_in_order_of_arrival() {
    let model = FakeModel::start(ModelBehaviour::Silent);
    let server = model
        .setup()
        .with("LLM_MAX_CONCURRENT_CALLS", 1)
        .with("LLM_QUEUE", 1)
        .with("LLM_QUEUE_TIMEOUT", "20 s")
        .start();
    let users: Vec<_> = (0..3).map(|number| server.sign_in(&format!("1380013800{number}"))).collect();
    scope(|scope| {
        let first = scope.spawn(|| ask(&server, &users[0]).send());
        model.wait_for_calls(1);
        let second = scope.spawn(|| streamed(ask(&server, &users[1])).send());
        // Before the second call waits, a third could overtake it.
        sleep(Duration::from_secs(2));
        ask(&server, &users[2]).send().expect_problem(503, "overloaded");
        assert_eq!((model.calls().len(), server.value::<i64>("select count(*) from interpretations")), (1, 1));
        model.open_gate();
        first.join().unwrap().expect(200);
        assert!(second.join().unwrap().expect(200).text().contains("event: done"));
    });
}

#[test]
fn rejects_calls_that_wait_too_long() {
    let model = FakeModel::start(ModelBehaviour::Silent);
    let server = model.setup().with("LLM_MAX_CONCURRENT_CALLS", 1).with("LLM_QUEUE_TIMEOUT", "200 ms").start();
    let (user, other) = (server.sign_in(PHONE), server.sign_in(OTHER));
    scope(|scope| {
        let running = scope.spawn(|| ask(&server, &user).send());
        model.wait_for_calls(1);
        for _ in 0..3 {
            let refused = ask(&server, &other).send().expect_problem(503, "overloaded");
            assert!(refused.header("retry-after").is_some());
        }
        model.open_gate();
        running.join().unwrap().expect(200);
    });
    ask(&server, &other).send().expect(200);
}

// Provider failures.

#[test]
fn uses_the_fallback_provider_and_records_it() {
    let (first, second) = (FakeProvider::with_handler(|_| Reply::status(503)), provider_streaming("吉"));
    let server = with_model_provider(&first)
        .with("LLM_FALLBACK_BASE_URL", format!("{}/v1", second.url()))
        .with("LLM_FALLBACK_API_KEY", "key-of-the-second")
        .with("LLM_FALLBACK_MODEL", "second")
        .with("LLM_PRICES", "first=100/100,second=10/20")
        .start();
    let user = server.sign_in(PHONE);
    let response = ask(&server, &user).send().expect(200);
    assert_eq!(response.json()["result"], "吉");
    let record = record(&server, &response);
    assert_eq!((&record["failover"], &record["status"]), (&json!("busy"), &json!("succeeded")));
    // At the price of the provider that responded: 60 in, 40 out.
    assert_eq!(record["cost"], "0.0014");
    let sent = second.only_request();
    assert_eq!(
        (sent.json()["model"].as_str(), sent.header("authorization")),
        (Some("second"), Some("Bearer key-of-the-second"))
    );
    assert_eq!(first.requests().len(), 2);
    let counted: String = server.value("select model || ' ' || outcome || ' ' || calls from model_usage");
    assert_eq!(counted, "second succeeded 1");
}

#[test]
fn a_call_that_has_begun_streaming_does_not_fall_back() {
    let body = chunks(&["开头", "尾"]);
    let in_the_second_event = body.find("\n\n").unwrap() + 10;
    let first = FakeProvider::with_handler(move |_| Reply::event_stream(body.as_str()).cut_after(in_the_second_event));
    let second = provider_streaming("吉");
    let server = with_model_provider(&first)
        .with("LLM_FALLBACK_BASE_URL", format!("{}/v1", second.url()))
        .with("LLM_FALLBACK_MODEL", "second")
        .start();
    let user = server.sign_in(PHONE);
    let text = streamed(ask(&server, &user)).send().expect(200).text();
    assert_eq!((text.matches("event: delta").count(), text.matches("event: error").count()), (1, 1), "{text}");
    assert!(second.requests().is_empty());
    assert_eq!(server.value::<String>("select status from interpretations"), "failed");
}

#[test]
fn opens_the_circuit_breaker_and_retries_later() {
    let is_well = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let well = std::sync::Arc::clone(&is_well);
    let provider = FakeProvider::with_handler(move |_| {
        if well.load(std::sync::atomic::Ordering::SeqCst) {
            Reply::event_stream(chunks(&["吉"]))
        } else {
            Reply::status(500).header("x-should-retry", "false")
        }
    });
    let setup =
        |pause: &str| with_model_provider(&provider).with("LLM_BREAKER_THRESHOLD", 2).with("LLM_BREAKER_PAUSE", pause);
    let server = setup("1 h").in_own_process().start();
    let user = server.sign_in(PHONE);
    for _ in 0..4 {
        ask(&server, &user).send().expect_problem(503, "provider_unavailable");
    }
    assert_eq!(provider.requests().len(), 2);
    assert_eq!(server.value::<i64>("select count(*) from interpretations where status = 'failed'"), 4);
    // Each process has its own circuit breaker.
    let server = server.crash_and_restart(setup("1 s"));
    for _ in 0..2 {
        ask(&server, &user).send().expect_problem(503, "provider_unavailable");
    }
    is_well.store(true, std::sync::atomic::Ordering::SeqCst);
    eventually("the provider is called", || ask(&server, &user).send().status == 200);
    assert_eq!(provider.requests().len(), 5);
}

#[test]
fn one_user_cannot_open_the_circuit_breaker_for_others() {
    let ended = |words: Value, reason: &str| {
        let chunk = json!({ "model": "m", "choices": [{ "index": 0, "delta": words, "finish_reason": reason }] });
        format!("data: {chunk}\n\ndata: [DONE]\n\n")
    };
    let error = json!({ "error": { "type": "invalid_request_error", "code": "context_length_exceeded" } });
    let responses = [
        // Reasoning used all allowed tokens.
        (ended(json!({ "content": "", "reasoning_content": "想" }), "length"), 502),
        (ended(json!({ "content": " " }), "stop"), 502),
        (ended(json!({}), "tea_break"), 502),
        (ended(json!({}), "sensitive"), 422),
        (ended(json!({}), "content_filter"), 422),
        (format!("data: {error}\n\n"), 502),
    ];
    for (response, status) in responses {
        let reported = std::sync::Arc::new(std::sync::Mutex::new(response.clone()));
        let telling = std::sync::Arc::clone(&reported);
        let provider = FakeProvider::with_handler(move |_| Reply::event_stream(telling.lock().unwrap().as_str()));
        let server = with_model_provider(&provider).start();
        let (user, other) = (server.sign_in(PHONE), server.sign_in(OTHER));
        for _ in 0..5 {
            let refused = chat(&server, &user).send();
            assert_eq!(refused.status, status, "{response}: {}", refused.text());
        }
        *reported.lock().unwrap() = chunks(&["吉"]);
        chat(&server, &other).send().expect(200);
    }
}

#[test]
fn cuts_off_endless_responses() {
    let endless = chunks(&["长".repeat(50).as_str()]).replace("\"stop\"", "null").replace("data: [DONE]\n\n", "");
    let provider = FakeProvider::with_handler(move |_| Reply::event_stream(endless.as_str()).endless());
    let server = with_model_provider(&provider).with("LLM_MAX_RESPONSE_BYTES", "4 KiB").start();
    let user = server.sign_in(PHONE);
    ask(&server, &user).send().expect_problem(502, "provider_failed");
    assert_eq!(server.value::<String>("select error_class from interpretations"), "unusable");
}

#[test]
fn silent_streams_send_heartbeats() {
    let model = FakeModel::start(ModelBehaviour::Gated(vec!["一", "二"]));
    let server = model.setup().with("LLM_HEARTBEAT", "50 ms").start();
    let user = server.sign_in(PHONE);
    scope(|scope| {
        let reported = scope.spawn(|| streamed(ask(&server, &user)).send());
        model.wait_for_calls(1);
        sleep(Duration::from_secs(3));
        model.open_gate();
        let text = reported.join().unwrap().expect(200).text();
        assert!(text.matches(": heartbeat\n\n").count() >= 3 && text.contains("event: done"), "{text}");
    });
}

// Budgets.

#[test]
fn enforces_the_daily_token_budget_of_a_user() {
    let provider = provider_streaming("吉");
    let server = with_model_provider(&provider).with("LLM_USER_TOKENS_PER_DAY", 150).start();
    let (user, other) = (server.sign_in(PHONE), server.sign_in(OTHER));
    // Each call counts 100 tokens: the second one exceeds the budget, and the next is rejected.
    ask(&server, &user).send().expect(200);
    chat(&server, &user).send().expect(200);
    for request in [ask(&server, &user), chat(&server, &user), streamed(ask(&server, &user))] {
        let refused = request.send().expect_problem(503, "budget_spent");
        let seconds: u64 = refused.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=86_400).contains(&seconds), "{seconds}");
    }
    assert_eq!(provider.requests().len(), 2);
    assert_eq!(server.value::<i64>("select count(*) from interpretations"), 1);
    ask(&server, &other).send().expect(200);
    // A new day.
    server.edit("update model_spending set day = '2020-01-01'");
    ask(&server, &user).send().expect(200);
}

#[test]
fn enforces_the_total_cost_budget_and_warns_before() {
    let provider = provider_streaming("吉");
    // 60 in and 40 out at 1 per thousand: 0.1 for each call.
    let mut server = with_model_provider(&provider)
        .with("LLM_PRICES", "first=1000/1000")
        .with("LLM_COST_PER_DAY", "0.2")
        .in_own_process()
        .start();
    let (user, other) = (server.sign_in(PHONE), server.sign_in(OTHER));
    ask(&server, &user).send().expect(200);
    server.wait_for_line("percent=50");
    ask(&server, &other).send().expect(200);
    server.wait_for_line("percent=80");
    chat(&server, &user).send().expect_problem(503, "budget_spent");
    let warned = server.lines().iter().filter(|line| line.contains("percent=")).count();
    assert_eq!(warned, 2, "{:#?}", server.lines());
}

#[test]
fn the_cost_budget_of_one_user_does_not_affect_others() {
    let provider = provider_streaming("吉");
    // 0.1 for each call, as above.
    let setup =
        with_model_provider(&provider).with("LLM_PRICES", "first=1000/1000").with("LLM_USER_COST_PER_DAY", "0.2");
    let server = setup.start();
    let (user, other) = (server.sign_in(PHONE), server.sign_in(OTHER));
    for _ in 0..2 {
        ask(&server, &user).send().expect(200);
    }
    for request in [ask(&server, &user), chat(&server, &user)] {
        request.send().expect_problem(503, "budget_spent");
    }
    assert_eq!(provider.requests().len(), 2);
    chat(&server, &other).send().expect(200);
}

#[test]
fn concurrent_calls_cannot_exceed_the_budget() {
    let model = FakeModel::start(ModelBehaviour::Silent);
    let server = model.setup().with("LLM_TOKENS_PER_DAY", 1_000).with("LLM_CALLS_PER_USER", 8).start();
    let user = server.sign_in(PHONE);
    scope(|scope| {
        // The first reserves more than the budget, so no other call starts.
        let first = scope.spawn(|| ask(&server, &user).send());
        model.wait_for_calls(1);
        for _ in 0..5 {
            ask(&server, &user).send().expect_problem(503, "budget_spent");
        }
        model.open_gate();
        first.join().unwrap().expect(200);
    });
    // It used 18 tokens, and the rest was released.
    ask(&server, &user).send().expect(200);
    assert_eq!(budget_usage(&server), (36, 0));
}

// Records.

#[test]
fn retries_writing_an_outcome_that_failed() {
    let provider = provider_streaming("吉");
    let server = with_model_provider(&provider).start();
    let user = server.sign_in(PHONE);
    server.edit(&refuse_changes("update", "interpretations"));
    let failed = ask(&server, &user).send();
    assert_eq!(failed.status, 500, "{}", failed.text());
    assert_eq!(failed.json()["traceId"], server.value::<String>("select trace_id from interpretations"));
    assert_eq!(server.value::<String>("select status from interpretations"), "running");
    server.edit(&allow_changes("interpretations"));
    eventually("the record is complete", || server.value::<String>("select status from interpretations") != "running");
    assert_eq!(server.value::<String>("select status || ' ' || result from interpretations"), "succeeded 吉");
    assert_eq!(server.value::<i64>("select sum(calls) from model_usage"), 1);
}

/// Not reachable over HTTP, so the callback panics.
#[test]
fn a_panicking_call_is_closed() {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use yarrow::{
        domain::divination::interpretation::{self, CastingQuestion},
        providers::llm::builtin::View,
        types::{LanguageTag, Locale, UserId},
    };

    let unreachable_url = FakeProvider::unreachable_url();
    let provider = [("LLM_PROVIDER", "openai"), ("LLM_BASE_URL", unreachable_url.as_str()), ("LLM_MODEL", "first")];
    let (directory, app) = open_app(&[provider.as_slice(), &[("LLM_TOKENS_PER_DAY", "1000000")]].concat());
    let database = Database::open(directory.path());
    let user = "insert into users (id, phone_number, created_at) values (1, ?1, 1)";
    database.execute(user, [PHONE]).unwrap();
    let locale = Locale::English;
    let question = CastingQuestion {
        question_type: None,
        question: "Why?".to_owned(),
        divination_data: None,
        cast: None,
        cast_time: None,
        method: None,
        locale,
        tag: LanguageTag::default(),
        view: View::default(),
    };
    let prepared = interpretation::prepare(&app.model_calls, UserId(1), question).unwrap();
    let mut run = || interpretation::run(&app.model_calls, &prepared, &mut |_| panic!("expected by this test"));
    let reported = catch_unwind(AssertUnwindSafe(&mut run)).expect("the panic was propagated");
    assert_eq!(reported.unwrap_err().code.name(), "internal");
    let text = |sql: &str| -> String { database.query_row(sql, (), |row| row.get(0)).unwrap() };
    assert_eq!(text("select status || ' ' || error_class from interpretations"), "failed panicked");
    assert_eq!(text("select outcome || ' ' || calls from model_usage"), "failed 1");
    assert_eq!(
        text(
            "select reserved_tokens || ' ' || case when tokens > 0 then 1 else 0 end from model_spending where user_id = 0"
        ),
        "0 1"
    );
}

#[test]
fn a_kill_at_any_step_leaves_one_correct_record() {
    // Before the response, in the middle of it, and after the end.
    for (behaviour, so_far, expected) in [
        (ModelBehaviour::Silent, "event: meta", "interrupted"),
        (ModelBehaviour::Gated(vec!["一", "二"]), "一", "interrupted"),
        (ModelBehaviour::Pieces(vec!["一", "二"]), "event: done", "succeeded"),
    ] {
        let model = FakeModel::start(behaviour);
        let setup = || model.setup().with("LLM_TOKENS_PER_DAY", 1_000_000);
        let server = setup().in_own_process().start();
        let user = server.sign_in(PHONE);
        let question = json!({ "question": "问" });
        let listening = read_stream_until(&server, &user, ("/divination/enhanced", &question), so_far);
        model.wait_for_calls(1);
        let server = server.crash_and_restart(setup());
        drop(listening);
        assert_eq!(server.value::<String>("select group_concat(status) from interpretations"), expected);
        assert_eq!(server.value::<String>("select group_concat(outcome) from model_usage"), expected);
        // The usage of an interrupted call is unknown, so its reservation is charged.
        let budget_usage: (i64, i64) = budget_usage(&server);
        assert_eq!((budget_usage.0 > 1_000, budget_usage.1), (expected == "interrupted", 0), "{budget_usage:?}");
        let unfinished = "select count(*) from interpretations where finished_at is null or status = 'running'";
        assert_eq!(server.value::<i64>(unfinished), 0);
    }
}

#[test]
fn a_crash_charges_the_reserved_cost() {
    let model = FakeModel::start(ModelBehaviour::Silent);
    let setup = || model.setup().with("LLM_PRICES", "stub-1=1000/1000").with("LLM_COST_PER_DAY", "1000");
    let server = setup().in_own_process().start();
    let user = server.sign_in(PHONE);
    let request = ask(&server, &user);
    std::thread::spawn(move || request.try_send());
    model.wait_for_calls(1);
    let spending = |server: &Server| -> Vec<(i64, i64, i64, i64)> {
        let database = server.database();
        let sql =
            "select tokens, cost_micros, reserved_tokens, reserved_cost_micros from model_spending order by user_id";
        let mut statement = database.prepare(sql).unwrap();
        let rows = statement.query_map((), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)));
        rows.unwrap().map(Result::unwrap).collect()
    };
    let reserved = spending(&server);
    assert_eq!(reserved.len(), 2, "of all users and of this one");
    let server = server.crash_and_restart(setup());
    for ((tokens, cost, reserved_tokens, reserved_cost), before) in spending(&server).into_iter().zip(reserved) {
        assert!(before.2 > 0 && before.3 > 0, "{before:?}");
        assert_eq!((tokens, cost, reserved_tokens, reserved_cost), (before.2, before.3, 0, 0));
    }
}

#[test]
fn interrupted_calls_are_closed_and_charged_atomically() {
    let model = FakeModel::start(ModelBehaviour::Silent);
    let setup = || model.setup().with("LLM_TOKENS_PER_DAY", 1_000_000);
    let server = setup().in_own_process().start();
    let (user, other) = (server.sign_in(PHONE), server.sign_in(OTHER));
    for request in [ask(&server, &user), chat(&server, &other)] {
        std::thread::spawn(move || request.try_send());
    }
    model.wait_for_calls(2);
    let reserved = budget_usage(&server);
    assert!(reserved.0 == 0 && reserved.1 > 0, "{reserved:?}");
    server.edit(&refuse_changes("update", "chats"));
    let directory = server.kill();
    let start = || Binary::command().args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(&directory).output();
    assert_eq!(start().unwrap().status.code(), Some(1));
    let database = Database::open(&directory);
    let spent = "select tokens, reserved_tokens from model_spending where user_id = 0";
    let spent = || -> (i64, i64) { database.query_row(spent, (), |row| Ok((row.get(0)?, row.get(1)?))).unwrap() };
    let status = |table: &str| -> String {
        database.query_row(&format!("select status from {table}"), (), |row| row.get(0)).unwrap()
    };
    assert_eq!((spent(), status("interpretations").as_str()), (reserved, "running"));
    database.execute_batch(&allow_changes("chats")).unwrap();
    drop(setup().on(&directory).in_own_process().start());
    assert_eq!(spent(), (reserved.1, 0));
    assert_eq!([status("interpretations"), status("chats")], ["interrupted", "interrupted"]);
    std::fs::remove_dir_all(directory.parent().unwrap()).unwrap();
}

#[test]
fn streams_report_a_shutdown() {
    for (is_chat, expected) in [(false, "event: error\ndata: {"), (true, "data: {\"error\":{")] {
        let model = FakeModel::start(ModelBehaviour::Gated(vec!["一", "二"]));
        let mut server = model.setup().with("LIMITS_DRAIN_TIMEOUT", "1 s").start();
        let user = server.sign_in(PHONE);
        let request = streamed(if is_chat { chat(&server, &user) } else { ask(&server, &user) });
        let reported = std::thread::spawn(move || request.try_send());
        model.wait_for_calls(1);
        assert_eq!(server.terminate(), Some(0));
        let text = reported.join().unwrap().unwrap().text();
        let last = text.trim_end().rsplit("\n\n").next().unwrap();
        assert!(last.starts_with(expected) && last.contains("overloaded"), "{text}");
        assert!(last.contains("\"retryAfter\":"), "{text}");
        let ended: bool = server.value(
            "select status not in ('running', 'succeeded') from interpretations union all \
             select status not in ('running', 'succeeded') from chats",
        );
        assert!(ended);
    }
}

#[test]
fn a_shutdown_records_a_running_call_at_once() {
    let model = FakeModel::start(ModelBehaviour::Silent);
    let mut server = model.setup().with("LIMITS_DRAIN_TIMEOUT", "300 ms").start();
    let user = server.sign_in(PHONE);
    let request = ask(&server, &user);
    std::thread::spawn(move || request.try_send());
    model.wait_for_calls(1);
    assert_eq!(server.terminate(), Some(0));
    assert_eq!(server.value::<String>("select status from interpretations"), "interrupted");
}

#[test]
fn never_logs_conversations() {
    let (question, response, nickname) = ("金丝雀之问", "金丝雀之答", "金丝雀之名");
    let providers = [
        FakeProvider::with_handler(move |_| Reply::event_stream(chunks(&[response]))),
        FakeProvider::with_handler(move |request| {
            Reply::json(format!(r#"{{"error":{{"message":{}}}}}"#, request.json())).with_status(400)
        }),
        FakeProvider::with_handler(move |_| {
            Reply::event_stream(format!(
                "data: {{\"error\":{{\"message\":\"{response}\",\"code\":\"{response}\"}}}}\n\n"
            ))
        }),
        FakeProvider::with_handler(move |_| Reply::json(response)),
        FakeProvider::with_handler(move |_| Reply::event_stream(chunks(&[response, LISTED]))),
    ];
    for provider in &providers {
        let server =
            with_model_provider(provider).with("LOG_LEVEL", "trace").with("MODERATION_SCREEN_ANSWERS", true).start();
        let user = server.sign_in(PHONE);
        server.put("/user/nickname").by(&user).json(&json!({ "nickname": nickname })).send().expect(200);
        for stream in [false, true] {
            let body = json!({ "question": question, "divinationData": question });
            let interpret = server.post("/divination/enhanced").by(&user).json(&body);
            let chat = json!({ "messages": [{ "role": "user", "content": question }], "stream": stream });
            if stream {
                streamed(interpret).send()
            } else {
                interpret.send()
            };
            server.post("/llm/chat").by(&user).json(&chat).send();
        }
        let lines: Vec<_> = server.lines().into_iter().filter(|line| !line.contains("SMS to")).collect();
        let log = lines.join("\n");
        assert!(log.contains("/llm/chat"), "{log}");
        for canary in ["金丝雀", PHONE, &user.token, LISTED] {
            assert!(!log.contains(canary), "{log}");
        }
    }
}

// Operators.

#[test]
fn operators_see_the_usage() {
    let provider = provider_streaming("吉");
    let server = with_model_provider(&provider).with("LLM_PRICES", "first=1000/1000").start();
    let user = server.sign_in(PHONE);
    for _ in 0..2 {
        ask(&server, &user).send().expect(200);
    }
    chat(&server, &user).send().expect(200);
    let usage = server.command(&["ai", "usage", "--days", "2"]).expect(0).json();
    let days = usage["items"].as_array().unwrap();
    assert_eq!(
        (days.len(), &days[1]["calls"], &days[1]["promptTokens"], &days[1]["cost"]),
        (2, &json!(3), &json!(180), &json!("0.30"))
    );
    assert_eq!((&days[0]["calls"], &usage["currency"]), (&json!(0), &json!("CNY")));
    let by_model = server.command(&["ai", "usage", "--by", "model"]).expect(0).json();
    assert_eq!((&by_model["items"][0]["model"], &by_model["items"][0]["calls"]), (&json!("openai/first"), &json!(3)));
    let by_outcome = server.command(&["ai", "usage", "--by", "outcome"]).expect(0).json();
    assert_eq!(
        (&by_outcome["items"][0]["outcome"], &by_outcome["items"][0]["completionTokens"]),
        (&json!("succeeded"), &json!(120))
    );
    let mut command = crate::support::Binary::command();
    command.args(["ai", "usage", "--data-dir"]).arg(server.directory());
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.contains("█") && text.contains("180"), "{text}");
    server.command(&["ai", "usage", "--days", "0"]).expect(2);
}

#[test]
fn operators_can_test_the_model() {
    let directory = tempfile::tempdir().unwrap();
    crate::support::install(directory.path());
    let run = |provider: &FakeProvider| {
        let mut command = crate::support::Binary::command();
        command.args(["ai", "test", "--json", "--data-dir"]).arg(directory.path());
        command.env("YARROW_LLM_PROVIDER", "openai").env("YARROW_LLM_MODEL", "first");
        command.env("YARROW_LLM_BASE_URL", format!("{}/v1", provider.url()));
        let output = command.output().unwrap();
        (output.status.code(), serde_json::from_slice::<Value>(&output.stdout).unwrap())
    };
    let (code, response) = run(&provider_streaming("Peace."));
    assert_eq!((code, &response["outcome"], &response["text"]), (Some(0), &json!("succeeded"), &json!("Peace.")));
    assert!(response["firstTokenMs"].is_i64() && response["durationMs"].is_i64(), "{response}");
    let (code, response) = run(&FakeProvider::with_handler(|_| Reply::status(401)));
    assert_eq!((code, &response["errorClass"]), (Some(1), &json!("misconfigured")));
}
