//! All data about a user of every feature: the export contains it, and deletion removes it.

use std::{collections::HashSet, thread::scope};

use ring::digest::{SHA256, digest};
use rusqlite::types::Value as Stored;
use serde_json::{Value, json};

use super::v1_account_deletion::{EMAIL, PHONE, TEXTS, expect_no_trace, export, found, person, traces_of};
use crate::support::{Caller, FakeModel, ModelBehaviour, Request, Server, Setup, eventually, model_requests::ask};

/// Further texts that the user wrote or received.
const MORE_TEXTS: [&str; 16] = [
    "the-question-of-the-session",
    "the-type-of-the-session",
    "the-words-of-the-feedback",
    "the-title-of-the-notice",
    "the-body-of-the-notice",
    "the-other-device",
    "Antarctica/Troll",
    "the-text-of-the-disagreement",
    "the-note-of-the-rating",
    "the-note-of-the-staff",
    "the-reason-of-the-suspension",
    "the-text-in-review",
    "the-title-of-the-session",
    "the-remark-on-the-session",
    "the-person-at-the-provider",
    "the-token-of-the-app",
];

/// Tables with user rows and their location in the export. The test compares row counts.
const EXPORTED: [(&str, &str); 23] = [
    ("users", "account"),
    ("identities", "identities"),
    ("push_devices", "pushDevices"),
    ("tokens", "devices"),
    ("violations", "violations"),
    ("disagreements", "disagreements"),
    ("reviews", "reviews"),
    ("history", "history"),
    ("interpretations", "interpretations"),
    ("chats", "chats"),
    ("model_spending", "modelUse"),
    ("sessions", "sessions"),
    ("invite_codes", "invites"),
    ("invites", "invites"),
    ("ledger_audit", "corrections"),
    ("payment_orders", "orders"),
    ("preferences", "preferences"),
    ("notification_reads", "notifications"),
    ("notification_marks", "notificationMarks"),
    ("feedback", "feedback"),
    ("suspensions", "suspensions"),
    ("staff_notes", "staffNotes"),
    ("imported_users", "importedFrom"),
];

/// Tables with user rows that the export covers differently or not at all, with the reason.
const EXCEPTIONS: [(&str, &str); 15] = [
    ("balances", "told as the balances of the account"),
    ("ledger_entries", "told as points and coins, which are counted together below"),
    ("access_log", "told as requests, which go on being written"),
    ("access_log_users", "counts the same requests by client address"),
    ("notification_recipients", "told among the notifications, with those to everybody that were read"),
    ("audit", "says what administrators did: it is theirs"),
    ("notification_read_blocks", "the same readings once more, to be counted"),
    ("session_texts", "the texts of the sessions once more, to be searched"),
    ("deletions", "the ids of what the user deleted, kept for the other devices"),
    ("webhook_events", "tells the operator's systems of facts that the export has"),
    ("running_calls", "told as interpretations and chats, and deleted when the call ends"),
    ("model_calls", "when the calls of the last hour began, to be counted"),
    ("history_hidings", "told as the times since when records are hidden"),
    ("history_restorings", "when records were restored, to be counted"),
    ("idempotency_keys", "answers that the user was given, kept for three days to be given again"),
];

fn rate(server: &Server, user: &Caller, trace: &Value, note: &str) -> Request {
    let path = format!("/api/v1/interpretations/{}/rating", trace.as_str().unwrap());
    server.put(&path).by(user).json(&json!({ "helpful": true, "note": note }))
}

/// Creates a user who has used every feature.
fn whole_person(server: &Server) -> Caller {
    let host = server.sign_in_by_email("host@example.com");
    let code = |user: &Caller| server.get("/api/v1/invite").by(user).send().expect(200).json()["code"].clone();
    let redeem = |user: &Caller, code: Value| {
        server.post("/api/v1/invite/redeem").by(user).json(&json!({ "code": code })).send().expect(200);
    };
    let user = person(server);
    redeem(&user, code(&host));
    redeem(&server.sign_in_by_email("guest@example.com"), code(&user));
    let cast = json!({ "question": MORE_TEXTS[0], "questionType": MORE_TEXTS[1], "method": "yarrow_stalks" });
    let cast = server.post("/api/v1/sessions").by(&user).json(&cast).header("idempotency-key", "the-cast");
    let session = cast.send().expect(201).json();
    let path = format!("/api/v1/sessions/{}", session["id"].as_str().unwrap());
    let annotation = json!({ "title": MORE_TEXTS[12], "note": MORE_TEXTS[13] });
    server.patch(&path).by(&user).json(&annotation).send().expect(200);
    let record = json!({ "localRecordId": "deleted" });
    server.post("/divination-history/save").by(&user).json(&record).send().expect(200);
    server.post("/divination-history/delete").by(&user).json(&record).send().expect(200);
    let kept = json!({ "localRecordId": "hidden and shown again" });
    server.post("/divination-history/save").by(&user).json(&kept).send().expect(200);
    for path in ["deactivate-all", "restore-all"] {
        server.post(&format!("/divination-history/{path}")).by(&user).send().expect(200);
    }
    let path = format!("{path}/interpretation");
    let trace = server.post(&path).by(&user).send().expect(200).json()["traceId"].clone();
    rate(server, &user, &trace, MORE_TEXTS[8]).send().expect(200);
    let chat = json!({ "messages": [{ "role": "user", "content": "Hello" }] });
    server.post("/llm/chat").by(&user).json(&chat).send().expect(200);
    let feedback = json!({ "content": MORE_TEXTS[2] });
    server.post("/feedback").by(&user).json(&feedback).send().expect(200);
    let hopeful_fields = json!({ "locale": "zh", "timeZone": MORE_TEXTS[6] });
    server.patch("/api/v1/preferences").by(&user).json(&hopeful_fields).send().expect(200);
    let key = server.api_key("notices");
    let notify = |body: Value| server.post("/admin/notifications").token(&key).json(&body).send().expect(201).json();
    let read = |sent: Value| {
        let path = format!("/api/v1/notifications/{}/read", sent["id"].as_str().unwrap());
        server.patch(&path).by(&user).send().expect(200);
    };
    // The notice of the new address.
    let notices = server.get("/api/v1/notifications").by(&user).send().expect(200).json();
    read(notices["items"][0].clone());
    read(notify(json!({
        "audience": "users", "title": MORE_TEXTS[3], "body": MORE_TEXTS[4], "userIds": [user.user_id],
    })));
    let to_all = || notify(json!({ "audience": "all", "title": "to all", "body": "broadcast" }));
    to_all();
    server.patch("/api/v1/notifications/mark-all-read").by(&user).send().expect(200);
    read(to_all());
    let order = json!({ "amount": "6.00", "coinCount": 60 });
    server.post("/payment/gateway/order").by(&user).json(&order).send().expect(200);
    server.database().execute("delete from code_sends", ()).unwrap();
    let sign_in = server.request_email_code(EMAIL, "sign_in");
    let device = json!({ "email": EMAIL, "code": sign_in, "device": MORE_TEXTS[5] });
    server.post("/api/v1/auth/login").json(&device).send().expect(200);
    let of_user = |path: &str| format!("/admin/users/{}/{path}", user.user_id);
    let note = json!({ "content": MORE_TEXTS[9] });
    server.post(&of_user("notes")).token(&key).json(&note).send().expect(201);
    // Not over HTTP, because the audit keeps the reason for ever.
    server.edit(&format!(
        "insert into suspensions (user_id, scope, source, reason, actor, created_at, lifted_at) \
         values ({}, 'account', 'staff', '{}', 'cli', 1, 2)",
        user.user_id, MORE_TEXTS[10]
    ));
    server.edit(&format!(
        "insert into running_calls (trace_id, copy, user_id, kind, provider, model, day, reserved_tokens, \
         reserved_cost_micros) values ('a call', '', {}, 'chat', 'stub', 'stub-1', '2026-01-01', 1, 1)",
        user.user_id
    ));
    server.edit(&format!("insert into imported_users values ('legacy', 'u-1', {})", user.user_id));
    server.edit(&format!(
        "insert into identities (provider, subject, user_id, linked_at, last_used_at) values ('apple', '{}', {}, 1, 1)",
        MORE_TEXTS[14], user.user_id
    ));
    server.edit(&format!(
        "insert into push_devices (user_id, family, service, token, created_at, updated_at) \
         values ({}, zeroblob(32), 'apns', '{}', 1, 1)",
        user.user_id, MORE_TEXTS[15]
    ));
    server.edit(&format!(
        "insert into webhook_events (event_id, kind, user_id, data, state, created_at, due_at, attempts) \
         values ('msg_1', 'user.created', {}, '{{}}', 'delivered', unixepoch() * 1000, 1, 1)",
        user.user_id
    ));
    server.edit(&format!(
        "insert into disagreements (content_type, decided_by, local_allowed, external_allowed, words, labels, \
         masked_text, created_at, user_id) values ('question', 'local', 1, 0, '[]', '[]', '{}', unixepoch() * 1000, {})",
        MORE_TEXTS[7], user.user_id
    ));
    server.edit(&format!(
        "insert into reviews (user_id, content_type, violation_type, words, ways, excerpt, masked_text, provider, \
         created_at, state) values ({}, 'question', 'ads', '[]', '[]', '{}', '', 'local', \
         unixepoch() * 1000, 'waiting')",
        user.user_id, MORE_TEXTS[11]
    ));
    user
}

/// Counts the rows of a user in every table, by columns that reference users or texts that contain the id.
fn rows_of(server: &Server, user: &Caller) -> Vec<(String, i64)> {
    let mut found = Vec::new();
    let databases = server.all_databases();
    let tables =
        databases.iter().flat_map(|database| database.tables().into_iter().map(move |table| (database, table)));
    // The entries of the network log are in blocks, which a view shows.
    for (database, table) in tables.chain([(&databases[1], "access_log".to_owned())]) {
        let refers = database.references(&table, "users");
        let columns = database.columns(&table);
        let names_users = |column: &&String| {
            refers.contains(column)
                || column.ends_with("user_id")
                || *column == "inviter_id"
                || (table == "users" && *column == "id")
        };
        let of_number =
            columns.iter().filter(names_users).map(|column| format!("cast({column} as text) = '{}'", user.user_id));
        let of_text = columns.iter().map(|column| format!("cast({column} as text) = 'user:{}'", user.user_id));
        let condition = of_number.chain(of_text).collect::<Vec<_>>().join(" or ");
        let count = format!("select count(*) from {table} where {condition}");
        let rows = database.query_row(&count, (), |row| row.get(0)).unwrap();
        if rows > 0 {
            found.push((table, rows));
        }
    }
    found.sort();
    found
}

fn length(reported: &Value, member: &str) -> i64 {
    match &reported[member] {
        Value::Array(items) => i64::try_from(items.len()).unwrap(),
        Value::Object(_) => 1,
        other => panic!("{member} is {other}"),
    }
}

#[test]
fn export_covers_every_table_with_user_data() {
    // The offline interpreter uses no tokens.
    let model = FakeModel::start(ModelBehaviour::Pieces(vec!["the answer of the model"]));
    let server = model.setup().start();
    let user = whole_person(&server);
    // The network log is written asynchronously, in response order.
    server.get("/healthz").by(&user).header("x-request-id", "the-last").send().expect(200);
    let last = "select count(*) from access_log where request_id = 'the-last'";
    eventually("the last request is in the log", || server.value::<i64>(last) == 1);
    let rows = rows_of(&server, &user);
    let reported = export(&server, &user);
    let names: HashSet<_> = rows.iter().map(|(table, _)| table.as_str()).collect();
    for (table, _) in EXPORTED.iter().chain(&EXCEPTIONS) {
        assert!(names.contains(table), "the user has no row in {table}");
    }
    let of = |table: &str| rows.iter().find(|(known, _)| known == table).unwrap().1;
    for (table, count) in &rows {
        let Some((_, member)) = EXPORTED.iter().find(|(known, _)| known == table) else {
            let is_reasoned = EXCEPTIONS.iter().any(|(known, _)| known == table);
            assert!(is_reasoned, "{table} has {count} rows of the user that the export does not contain");
            continue;
        };
        match *member {
            "invites" => {}
            _ => assert_eq!(length(&reported, member), *count, "{table}: {}", reported[member]),
        }
    }
    assert_eq!(length(&reported, "points") + length(&reported, "coins"), of("ledger_entries"));
    let requests = length(&reported, "requests");
    assert!((1..=of("access_log")).contains(&requests), "{requests} of {}", of("access_log"));
    assert!(reported["requests"][0]["clientIp"] == "127.0.0.1", "{}", reported["requests"][0]);
    let invites = &reported["invites"];
    assert!(invites["own"]["code"].is_string() && invites["redeemedAt"].is_string(), "{invites}");
    assert_eq!((&invites["own"]["invited"], invites["acceptedAt"].as_array().unwrap().len()), (&json!(1), 1));
    let session = &reported["sessions"][0];
    assert_eq!((&session["question"], &session["traceIds"].as_array().unwrap().len()), (&json!(MORE_TEXTS[0]), &1));
    assert!(session["interpretedAt"].is_string() && session["lines"].as_array().unwrap().len() == 6, "{session}");
    let notice = &reported["notifications"][1];
    assert_eq!((&notice["title"], &notice["body"]), (&json!(MORE_TEXTS[3]), &json!(MORE_TEXTS[4])));
    assert!(notice["readAt"].is_string(), "{notice}");
    let text = reported.to_string();
    for known in TEXTS.iter().chain(&MORE_TEXTS) {
        assert!(text.contains(known), "{known}");
    }
    assert!(!text.contains("host@example.com") && !text.contains("guest@example.com"));
}

#[test]
fn deletion_leaves_no_trace_in_the_files() {
    let server = Setup::default().with_fast_jobs().start();
    let user = whole_person(&server);
    let code: String = server.value(&format!("select code from invite_codes where user_id = {}", user.user_id));
    let mut traces = traces_of(&user);
    traces.extend(MORE_TEXTS.iter().map(|text| text.as_bytes().to_vec()));
    traces.extend([code.into_bytes(), b"the-cast".to_vec()]);
    let before = found(server.directory(), &traces).len();
    assert!(before >= traces.len() - 2, "{before} of {}", traces.len());
    server.delete("/api/v1/account").by(&user).send().expect(204);
    expect_no_trace(server.directory(), &traces);
    eventually("the network log has no entry of the user", || {
        !rows_of(&server, &user)
            .iter()
            .any(|(table, _)| table.starts_with("access_log") && table != "access_log_erasures")
    });
    // The remaining rows are those that the documentation names.
    let left: HashSet<_> = rows_of(&server, &user).into_iter().map(|(table, _)| table).collect();
    let stays = [
        "access_log_erasures",
        "audit",
        "balances",
        "chats",
        "interpretations",
        "ledger_audit",
        "ledger_entries",
        "payment_orders",
        "violations",
        "webhook_events",
    ];
    for table in &left {
        assert!(stays.contains(&table.as_str()), "{table}");
    }
}

/// Counts how many of these 32-byte texts occur in the database file or its WAL.
fn found_of_32_bytes(server: &Server, texts: &[String]) -> usize {
    let wanted: HashSet<&[u8]> = texts.iter().map(String::as_bytes).collect();
    let mut found = HashSet::new();
    for name in ["yarrow.db", "yarrow.db-wal"] {
        let bytes = std::fs::read(server.directory().join(name)).unwrap_or_default();
        found.extend(bytes.windows(32).filter_map(|window| wanted.get(window)).map(|text| text.to_vec()));
    }
    found.len()
}

/// Returns a random id, spread over the index.
fn random_id(number: u64) -> String {
    let hash = digest(&SHA256, &number.to_le_bytes());
    let number = u128::from_be_bytes(hash.as_ref()[..16].try_into().unwrap());
    format!("{number:032x}")
}

#[test]
fn scrubs_row_copies_left_by_sqlite() {
    let server = Setup::default().with_fast_jobs().start();
    let (user, other) = (server.sign_in_by_email(EMAIL), server.sign_in(PHONE));
    let mut database = server.database_file();
    // As every connection of the service does.
    database.pragma_update(None, "secure_delete", true).unwrap();
    let transaction = database.transaction().unwrap();
    let mut insert = transaction
        .prepare(
            "insert into history (user_id, sequence, local_record_id, question, created_at, updated_at) \
             values (?1, ?2, ?3, ?4, 0, 0)",
        )
        .unwrap();
    for number in 0..8_000 {
        let owner = if number % 8 == 0 { &user } else { &other };
        let owner: i64 = owner.user_id.parse().unwrap();
        let question = Stored::Text("?".repeat((number * 13 % 90) as usize));
        insert.execute((owner, i64::try_from(number).unwrap() + 1, random_id(number), question)).unwrap();
    }
    drop(insert);
    transaction.commit().unwrap();
    drop(database);
    let theirs: Vec<_> = (0..8_000).step_by(8).map(random_id).collect();
    assert_eq!(found_of_32_bytes(&server, &theirs), theirs.len());
    server.delete("/api/v1/account").by(&user).send().expect(204);
    eventually("no text is found", || found_of_32_bytes(&server, &theirs) == 0);
    assert_eq!(server.value::<String>("pragma integrity_check"), "ok");
    assert_eq!(server.value::<i64>("select count(*) from history"), 7_000);
}

#[test]
fn restarts_a_scrub_after_a_crash() {
    let server = Setup::default().in_own_process().start();
    let user = person(&server);
    server.delete("/api/v1/account").by(&user).send().expect(204);
    let server = server.crash_and_restart(Setup::default().with_fast_jobs());
    let is_cleared = "select (select value from settings where name = 'scrub_requested') \
                      is (select value from settings where name = 'scrub_completed')";
    eventually("a scrub ran", || server.value(is_cleared));
    expect_no_trace(server.directory(), &traces_of(&user));
}

#[test]
fn scrubs_what_operators_delete() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    server.post("/feedback").by(&user).json(&json!({ "content": "a word" })).send().expect(200);
    server.edit(
        "insert into violations (user_id, content_type, violation_type, words, masked_text, provider, created_at) \
         values (1, 'question', 'ads', '[]', '…', 'local', 0)",
    );
    let notice = ["notify", "send", "A", "B", "--all"];
    let sent = server.command(&notice).expect(0).json()["id"].to_string().replace('"', "");
    let noted = || {
        server.value::<i64>(
            "select coalesce(max(cast(value as integer)), 0) from settings where name = 'scrub_requested'",
        )
    };
    let mut before = noted();
    for command in [
        &["violations", "cleanup", "--days-to-keep", "1", "--yes"][..],
        &["notify", "delete", &sent, "--yes"],
        &["cleanup", "feedback", "--yes"],
        &["cleanup", "all", "--yes"],
    ] {
        server.command(command).expect(0);
        let after = noted();
        assert!(after > before, "{command:?}");
        before = after;
    }
}

/// A request sent before the deletion may arrive after it.
#[test]
fn rejects_requests_of_a_user_during_deletion() {
    let mut server = Setup::default().with_fast_jobs().with_metrics().start();
    let metrics = server.metrics();
    let user = server.sign_in_by_email(EMAIL);
    let trace = ask(&server, &user).send().expect(200).json()["traceId"].clone();
    let rating = format!("/api/v1/interpretations/{}/rating", trace.as_str().unwrap());
    // Nothing else is left to write.
    let logged = "select count(*) from access_log where route like '%/auth/login' or route = '/divination/enhanced'";
    eventually("both requests are in the network log", || server.value::<i64>(logged) == 2);
    let other = server.database();
    // Everything waits for the disk: first the deletion, then the rest.
    other.execute_batch("begin immediate").unwrap();
    let statuses = scope(|scope| {
        let send = |method: &str, path: &str, body: Value| {
            let request = server.request(method, path).by(&user);
            let request = if body.is_null() { request } else { request.json(&body) };
            let before = Server::waiting_changes(&metrics);
            let waiting = scope.spawn(move || request.send().status);
            eventually("it is queued", || Server::waiting_changes(&metrics) > before);
            waiting
        };
        let late = [
            send("DELETE", "/api/v1/account", Value::Null),
            send("POST", "/divination-history/save", json!({ "localRecordId": "late-record" })),
            send("PATCH", "/api/v1/preferences", json!({ "locale": "en" })),
            send("POST", "/feedback", json!({ "content": "late-feedback" })),
            send("POST", "/api/v1/sessions", json!({ "question": "late-question", "method": "three_coins" })),
            send("POST", "/llm/chat", json!({ "messages": [{ "role": "user", "content": "late" }] })),
            send("PATCH", "/api/v1/notifications/mark-all-read", Value::Null),
            send("GET", "/api/v1/invite", Value::Null),
            send("PATCH", "/api/v1/account", json!({ "nickname": "late-nickname" })),
            send("PUT", &rating, json!({ "helpful": true, "note": "late-note" })),
        ];
        other.execute_batch("commit").unwrap();
        late.map(|waiting| waiting.join().unwrap())
    });
    assert_eq!(statuses[0], 204);
    assert!(statuses[1..].iter().all(|status| [401, 404].contains(status)), "{statuses:?}");
    let late = ["late-record", "late-feedback", "late-question", "late-nickname", "late-note"];
    let late = late.map(|text| text.as_bytes().to_vec());
    expect_no_trace(server.directory(), &late);
    assert_eq!(server.value::<i64>("select count(*) from chats"), 0);
}

#[test]
fn deletion_accepts_no_body_and_no_parameters() {
    let server = Setup::default().with_fast_jobs().start();
    let user = server.sign_in_by_email(EMAIL);
    let delete = || server.delete("/api/v1/account").by(&user);
    delete().json(&json!({ "confirm": false })).send().expect_fields(&[("confirm", "not_allowed")]);
    delete()
        .form(&[("id", "1"), ("dryRun", "true")])
        .send()
        .expect_fields(&[("id", "not_allowed"), ("dryRun", "not_allowed")]);
    server.delete("/api/v1/account?userId=2").by(&user).send().expect_fields(&[("userId", "not_allowed")]);
    server.get("/api/v1/account").by(&user).send().expect(200);
    // An empty object is allowed.
    delete().json(&json!({})).send().expect(204);
}
