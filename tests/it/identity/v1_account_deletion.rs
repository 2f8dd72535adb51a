//! Account deletion: which data goes, which stays, what a return restores, and atomicity under kills.

use std::{
    io::Read,
    path::Path,
    thread::{scope, sleep},
    time::Instant,
};

use serde_json::{Value, json};

use crate::support::{
    Caller, FakeModel, ModelBehaviour, Request, Server, Setup, allow_changes, copy_directory, eventually,
    eventually_ok, holds, kill, raw::RawConnection, refuse_changes, send_concurrently,
};

pub(super) const EMAIL: &str = "li.ming@example.com";
pub(super) const PHONE: &str = "13800138000";
/// Texts of the user. None may remain.
pub(super) const TEXTS: [&str; 8] = [
    "the-nickname",
    "the-signature",
    "the-question-of-the-record",
    "the-json-of-the-record",
    "the-answer-of-the-record",
    "the-question-of-the-call",
    "the-casting-of-the-call",
    "the-refused-text",
];

fn delete(server: &Server, user: &Caller) -> Request {
    server.delete("/api/v1/account").by(user)
}

/// Creates a user with both addresses and data everywhere.
pub(super) fn person(server: &Server) -> Caller {
    let mut user = server.sign_in_by_email(EMAIL);
    server.post("/auth/send-code").json(&json!({ "phoneNumber": PHONE, "purpose": "address" })).send().expect(200);
    let code = server.printed_code(PHONE, 0);
    let address = json!({ "phoneNumber": PHONE, "code": code });
    server.post("/api/v1/account/address").by(&user).json(&address).send().expect(200);
    PHONE.clone_into(&mut user.phone_number);
    let profile = json!({ "nickname": TEXTS[0], "signature": TEXTS[1], "birthday": "1990-05-17" });
    server.patch("/api/v1/account").by(&user).json(&profile).send().expect(200);
    for number in 0..20 {
        let record = json!({
            "localRecordId": format!("record-{number}"),
            "question": TEXTS[2],
            "jsonData": { "text": TEXTS[3], "padding": "x".repeat(500 * number) },
            "aiResult": TEXTS[4],
        });
        server.post("/divination-history/save").by(&user).json(&record).send().expect(200);
    }
    let ask = json!({ "question": TEXTS[5], "questionType": "career", "divinationData": TEXTS[6] });
    server.post("/divination/enhanced").by(&user).json(&ask).send().expect(200);
    let refused = json!({ "nickname": format!("{}赌博", TEXTS[7]) });
    server.patch("/api/v1/account").by(&user).json(&refused).send().expect_problem(422, "content_rejected");
    let key = server.api_key("shop");
    let grant = server.post("/coin/increase/phone").token(&key).header("idempotency-key", "the-grant");
    grant.json(&json!({ "phoneNumber": PHONE, "coinCount": 5 })).send().expect(200);
    server.post("/coin/consume").by(&user).header("idempotency-key", "the-key").send().expect(200);
    user
}

/// Returns the texts found in the directory, with their files.
pub(super) fn found(directory: &Path, texts: &[Vec<u8>]) -> Vec<String> {
    let mut found = Vec::new();
    for file in std::fs::read_dir(directory).unwrap() {
        let path = file.unwrap().path();
        // Backups predate the deletion and hold the data. The index of the WAL holds page numbers only, and closing it here
        // would release the locks of connections in this process.
        if path.is_dir() || path.extension().is_some_and(|extension| extension == "db-shm") {
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        for text in texts {
            if holds(&bytes, text) {
                found.push(format!("{} in {}", String::from_utf8_lossy(text), path.display()));
            }
        }
    }
    found
}

pub(super) fn traces_of(user: &Caller) -> Vec<Vec<u8>> {
    let hash = ring::digest::digest(&ring::digest::SHA256, user.token.as_bytes()).as_ref().to_vec();
    let texts = TEXTS.iter().chain(&[EMAIL, PHONE]).map(|text| text.as_bytes().to_vec());
    texts.chain([user.token.as_bytes().to_vec(), hash]).collect()
}

/// Waits until no text is found.
#[track_caller]
pub(super) fn expect_no_trace(directory: &Path, texts: &[Vec<u8>]) {
    eventually_ok("no trace is left", || {
        let found = found(directory, texts);
        if found.is_empty() { Ok(()) } else { Err(found) }
    });
}

fn count(server: &Server, sql: &str) -> i64 {
    server.value(&format!("select count(*) from {sql}"))
}

#[test]
fn deletion_leaves_no_trace_in_the_files() {
    let server = Setup::default().with_fast_jobs().start();
    let stays = server.sign_in("13800138001");
    let user = person(&server);
    let traces = traces_of(&user);
    // The search finds existing data. Tokens are stored as hashes, and rejected texts masked.
    assert!(found(server.directory(), &traces).len() >= traces.len() - 2, "{:#?}", found(server.directory(), &traces));
    let gone = delete(&server, &user).send().expect(204);
    assert!(gone.bytes.is_empty());
    expect_no_trace(server.directory(), &traces);
    server.get("/api/v1/account").by(&user).send().expect_problem(401, "unauthenticated");
    delete(&server, &user).send().expect_problem(401, "unauthenticated");
    server.get("/user/profile").by(&stays).send().expect(200);
    let left = "(select user_id from history union all select user_id from tokens)";
    assert_eq!(count(&server, &format!("{left} where user_id = {}", user.user_id)), 0);
    assert_eq!(count(&server, &format!("idempotency_keys where caller = 'user:{}'", user.user_id)), 0);
    // The administrator's key stays used.
    assert_eq!(count(&server, "idempotency_keys where key = 'the-grant'"), 1);
}

#[test]
fn remaining_rows_belong_to_an_anonymous_number() {
    let server = Setup::default().start();
    let user = person(&server);
    let entries = count(&server, "ledger_entries");
    delete(&server, &user).send().expect(204);
    // One more: the points held for a return.
    assert_eq!(count(&server, "ledger_entries"), entries + 1);
    assert_eq!(
        count(&server, &format!("interpretations where user_id = {} and duration_ms is not null", user.user_id)),
        1
    );
    assert_eq!(count(&server, &format!("violations where user_id = {} and masked_text = ''", user.user_id)), 1);
    let balance = |asset: &str| -> i64 {
        server.value(&format!("select balance from balances where user_id = {} and asset = '{asset}'", user.user_id))
    };
    assert_eq!((balance("point"), balance("coin")), (0, 4));
    server.command(&["ledger", "verify"]).expect(0);
    let newcomer = server.sign_in_by_email(EMAIL);
    assert_ne!(newcomer.user_id, user.user_id);
    server.command(&["ledger", "verify"]).expect(0);
}

#[test]
fn a_long_read_delays_the_checkpoint_but_not_the_response() {
    let server = Setup::default().with_fast_jobs().start();
    let user = person(&server);
    let traces = traces_of(&user);
    let reader = server.database();
    reader.execute_batch("begin; select count(*) from users").unwrap();
    delete(&server, &user).send().expect(204);
    // The reader's snapshot keeps the data in the WAL.
    assert!(!found(server.directory(), &traces).is_empty());
    reader.execute_batch("commit").unwrap();
    expect_no_trace(server.directory(), &traces);
}

#[test]
fn deletion_needs_a_recent_sign_in() {
    let server = Setup::default().start();
    let user = server.sign_in_by_email(EMAIL);
    server.edit("update tokens set signed_in_at = signed_in_at - 600001");
    delete(&server, &user).send().expect_problem(403, "step_up_required");
    server.get("/api/v1/account").by(&user).send().expect(200);
    let again = server.sign_in_by_email(EMAIL);
    delete(&server, &again).send().expect(204);
    // All devices are signed out, the older one too.
    server.get("/api/v1/account").by(&user).send().expect_problem(401, "unauthenticated");
}

#[test]
fn returning_restores_points_once_and_grants_no_second_bonus() {
    let server = Setup::default().start();
    let first = server.sign_in_by_email(EMAIL);
    server.command(&["points", "adjust", &first.user_id, "-27", "--reason", "test"]).expect(0);
    delete(&server, &first).send().expect(204);
    for _ in 0..2 {
        let back = server.log_in_by_email(EMAIL);
        assert_eq!((&back["isNewUser"], &back["restored"]), (&json!(true), &json!(true)));
        assert_eq!((&back["pointsRestored"], &back["pointsGranted"]), (&json!(73), &json!(0)));
        assert_eq!(back["user"]["points"], 73);
        let again = server.log_in_by_email(EMAIL);
        assert_eq!((&again["isNewUser"], &again["restored"]), (&json!(false), &json!(false)));
        let token = back["token"].as_str().unwrap();
        server.delete("/api/v1/account").token(token).send().expect(204);
    }
    assert_eq!(server.value::<i64>("select sum(balance) from balances"), 0);
    server.command(&["ledger", "verify"]).expect(0);
}

#[test]
fn keeps_points_for_two_years_and_the_bonus_mark_forever() {
    let server = Setup::default().start();
    for (days, restored) in [(729, 100), (731, 0)] {
        let email = format!("after-{days}@example.com");
        delete(&server, &server.sign_in_by_email(&email)).send().expect(204);
        server.edit(&format!("update email_rewards set parked_at = parked_at - {days} * 86400000"));
        let back = server.log_in_by_email(&email);
        assert_eq!((&back["pointsRestored"], &back["pointsGranted"]), (&json!(restored), &json!(0)));
    }
}

#[test]
fn points_refunded_and_spent_are_not_restored_again() {
    let server = Setup::default().start();
    delete(&server, &server.sign_in_by_email(EMAIL)).send().expect(204);
    let back = server.log_in_by_email(EMAIL);
    assert_eq!(back["pointsRestored"], 100);
    let id = back["user"]["id"].as_str().unwrap();
    server.command(&["points", "adjust", id, "-100", "--reason", "tests"]).expect(0);
    server.delete("/api/v1/account").token(back["token"].as_str().unwrap()).send().expect(204);
    let again = server.log_in_by_email(EMAIL);
    assert_eq!((&again["pointsRestored"], &again["user"]["points"]), (&json!(0), &json!(0)));
    server.command(&["ledger", "verify"]).expect(0);
}

#[test]
fn concurrent_returns_restore_once() {
    let server = Setup::default().start();
    for round in 0..5 {
        let email = format!("round-{round}@example.com");
        let phone_number = format!("1380013810{round}");
        delete(&server, &server.sign_in_by_email(&email)).send().expect(204);
        let other = server.sign_in(&phone_number);
        server.edit("delete from code_sends");
        let sign_in = server.request_email_code(&email, "sign_in");
        server.edit("delete from code_sends");
        let address = server.request_email_code(&email, "address");
        // By signing up, and by adding the address to an existing account.
        let login = json!({ "email": email, "code": sign_in });
        let change = json!({ "email": email, "code": address });
        let mut requests = Vec::new();
        for _ in 0..8 {
            requests.push(server.post("/api/v1/auth/login").json(&login));
            requests.push(server.post("/api/v1/account/address").by(&other).json(&change));
        }
        let done = send_concurrently(requests).iter().filter(|response| response.status == 200).count();
        // The loser signs in to the winner's account or learns that the address is taken.
        assert!((1..=2).contains(&done), "{done}");
    }
    assert_eq!(count(&server, "ledger_entries where kind = 'restored'"), 5);
    assert_eq!(count(&server, "ledger_entries where kind = 'signup_bonus' and asset = 'point'"), 5);
    server.command(&["ledger", "verify"]).expect(0);
}

#[test]
fn an_account_says_before_its_deletion_what_is_lost() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    server.grant(&server.api_key("shop"), PHONE, 7);
    server.command(&["points", "adjust", PHONE, "30", "--reason", "tests"]).expect(0);
    let shown = || server.get("/api/v1/account").by(&user).send().expect(200).json()["deletion"].clone();
    assert_eq!(shown(), json!({ "pointsKept": 0, "pointsLost": 30, "coinsLost": 7 }));
    let code = server.request_email_code(EMAIL, "address");
    let address = json!({ "email": EMAIL, "code": code });
    server.post("/api/v1/account/address").by(&user).json(&address).send().expect(200);
    assert_eq!(shown(), json!({ "pointsKept": 130, "pointsLost": 0, "coinsLost": 7 }));
    delete(&server, &user).send().expect(204);
    let back = server.log_in_by_email(EMAIL);
    assert_eq!((&back["user"]["points"], &back["user"]["coins"]), (&json!(130), &json!(0)));
}

#[test]
fn deletes_accounts_that_have_only_a_phone_number() {
    let server = Setup::default().with_fast_jobs().start();
    let user = server.sign_in(PHONE);
    server.grant(&server.api_key("shop"), PHONE, 7);
    delete(&server, &user).send().expect(204);
    expect_no_trace(server.directory(), &[PHONE.as_bytes().to_vec()]);
    let back = server.sign_in_again(PHONE);
    assert_ne!(back.user_id, user.user_id);
    assert_eq!(server.get("/coin/balance").by(&back).send().expect(200).json()["balance"], 0);
    assert_eq!(server.value::<i64>(&format!("select balance from balances where user_id = {}", user.user_id)), 7);
    assert_eq!(count(&server, "email_rewards"), 0);
}

#[test]
fn payments_after_deletion_go_to_review() {
    let server = Setup::default().with_fast_jobs().start();
    let user = server.sign_in_by_email(EMAIL);
    let order = json!({ "amount": "6.00", "coinCount": 60 });
    let order = server.post("/payment/gateway/order").by(&user).json(&order).send().expect(200).json();
    let order_no = order["orderNo"].as_str().unwrap();
    delete(&server, &user).send().expect(204);
    server.command(&["payments", "sandbox-pay", order_no]).expect(0);
    let state = || server.value::<String>(&format!("select state from payment_orders where order_no = '{order_no}'"));
    eventually("the order is in review", || state() == "review");
}

#[test]
fn a_model_call_running_during_deletion_stores_nothing() {
    let model = FakeModel::start(ModelBehaviour::Gated(vec!["the-answer ", "goes on"]));
    let server = model.setup().start();
    let user = server.sign_in_by_email(EMAIL);
    let ask = json!({ "question": "the-question", "divinationData": "the-casting" });
    scope(|scope| {
        let requested = scope.spawn(|| server.post("/divination/enhanced").by(&user).json(&ask).send());
        model.wait_for_calls(1);
        delete(&server, &user).send().expect(204);
        model.open_gate();
        requested.join().unwrap().expect_problem(404, "not_found");
    });
    assert_eq!(
        server.value::<String>("select status || question || coalesce(result, '') from interpretations"),
        "cancelled"
    );
    let texts = ["the-question", "the-casting", "the-answer"].map(|text| text.as_bytes().to_vec());
    expect_no_trace(server.directory(), &texts);
}

/// Returns true if the account is gone. Panics if it is partially deleted, once a begun deletion has ended.
fn is_gone(server: &Server, user: &Caller) -> bool {
    eventually("the deletion ends", || count(server, "account_erasures") == 0);
    let id = &user.user_id;
    let counts: Vec<i64> = ["users where id =", "tokens where user_id =", "history where user_id ="]
        .iter()
        .map(|part| count(server, &format!("{part} {id}")))
        .chain([count(server, &format!("interpretations where question <> '' and user_id = {id}"))])
        .chain([count(server, &format!("balances where asset = 'point' and balance > 0 and user_id = {id}"))])
        .chain([count(server, &format!("idempotency_keys where caller = 'user:{id}'"))])
        .chain([count(server, "email_rewards where parked_points is null")])
        .collect();
    let gone = counts[0] == 0;
    for (place, found) in counts.iter().enumerate() {
        assert_eq!(*found == 0, gone, "number {place} of {counts:?}");
    }
    gone
}

#[test]
fn kills_leave_the_account_whole_or_deleted() {
    const LAST: u32 = 24;
    let (mut gone, mut whole) = (0, 0);
    let duration = {
        let server = Setup::default().with_fast_jobs().in_own_process().start();
        let request = delete(&server, &person(&server));
        let started_at = Instant::now();
        request.send().expect(204);
        started_at.elapsed()
    };
    let prepared = Setup::default().with_fast_jobs().in_own_process().start();
    let user = person(&prepared);
    let prepared = prepared.kill();
    for round in 0..=LAST {
        let temp_dir = tempfile::tempdir().unwrap();
        let directory = temp_dir.path().join("data");
        copy_directory(&prepared, &directory);
        let server = Setup::default().with_fast_jobs().on(&directory).in_own_process().start();
        // The first request is killed immediately, and the last one completes.
        let blocker = (round == 0).then(|| server.database());
        if let Some(blocker) = &blocker {
            blocker.execute_batch("begin immediate").unwrap();
        }
        let was_answered = scope(|scope| {
            let request = delete(&server, &user);
            let requested = scope.spawn(move || request.try_send().is_ok_and(|response| response.status == 204));
            sleep(duration * round / LAST);
            if round == LAST {
                eventually("the last is answered", || requested.is_finished());
            }
            kill(server.process_id());
            requested.join().unwrap()
        });
        drop(blocker);
        drop(server);
        let restarted = Setup::default().with_fast_jobs().on(&directory).in_own_process().start();
        let is_gone = is_gone(&restarted, &user);
        assert!(is_gone || !was_answered, "an acknowledged deletion was undone");
        if is_gone {
            gone += 1;
            expect_no_trace(restarted.directory(), &traces_of(&user));
        } else {
            whole += 1;
            restarted.get("/api/v1/account").by(&user).send().expect(200);
        }
        restarted.command(&["ledger", "verify"]).expect(0);
    }
    std::fs::remove_dir_all(&prepared).unwrap();
    println!("gone {gone} times, whole {whole} times");
    assert!(gone > 0 && whole > 0, "gone {gone} times, whole {whole} times");
}

#[test]
fn a_deletion_is_complete_for_everybody_before_its_rows_are_gone() {
    let server = Setup::default().with_fast_jobs().start();
    let user = person(&server);
    let key = server.api_key("support");
    let feedback = json!({ "content": "the-words-of-the-feedback" });
    server.post("/feedback").by(&user).json(&feedback).send().expect(200);
    let trace: String = server.value("select trace_id from interpretations");
    let shown = || {
        let path = format!("/divination/records/trace/{trace}");
        let record = server.get(&path).token(&key).send().expect(200).text();
        let violations = server.command(&["violations", "list"]).expect(0).text();
        let slow = server.command(&["records", "slow", "--duration-ms", "0"]).expect(0).text();
        let feedback = server.get("/admin/feedback").token(&key).send().expect(200).text();
        [record, violations, slow, feedback].concat()
    };
    assert!([TEXTS[5], TEXTS[6], TEXTS[7], "the-words"].iter().all(|text| shown().contains(text)), "{}", shown());
    server.edit(&refuse_changes("delete", "history"));
    delete(&server, &user).send().expect(204);
    assert_eq!(count(&server, "history"), 20);
    assert_eq!(count(&server, "interpretations where question <> ''"), 1);
    let texts = shown();
    assert!(TEXTS.iter().chain(&["the-words"]).all(|text| !texts.contains(text)), "{texts}");
    server.get("/api/v1/account").by(&user).send().expect_problem(401, "unauthenticated");
    server.command(&["users", "export", &user.user_id]).expect(4);
    let doctor = server.command(&["doctor"]).text();
    assert!(doctor.contains("1 account has rows left to delete"), "{doctor}");
    // A new account with the address has none of it.
    let again = server.sign_in_by_email(EMAIL);
    let listed = server.post("/divination-history/get").by(&again).send().expect(200).json();
    assert_eq!(listed["total"], 0);
    server.command(&["ledger", "verify"]).expect(0);
    server.edit(&allow_changes("history"));
    eventually("the rest is deleted", || count(&server, "account_erasures") == 0);
    assert_eq!(count(&server, "history") + count(&server, "interpretations where question <> ''"), 0);
}

// The export.

pub(super) fn export(server: &Server, user: &Caller) -> Value {
    let response = server.get("/api/v1/account/export").by(user).send().expect(200);
    assert_eq!(response.header("content-type"), Some("application/json"));
    assert_eq!(response.header("cache-control"), Some("no-store"));
    response.json()
}

#[test]
fn the_export_contains_all_stored_data() {
    let server = Setup::default().start();
    let other = server.sign_in("13800138001");
    server.post("/divination-history/save").by(&other).json(&json!({ "localRecordId": "theirs" })).send().expect(200);
    let user = person(&server);
    let reported = export(&server, &user);
    assert_eq!((&reported["account"]["email"], &reported["account"]["phoneNumber"]), (&json!(EMAIL), &json!(PHONE)));
    assert_eq!((&reported["account"]["points"], &reported["account"]["coins"]), (&json!(100), &json!(4)));
    assert_eq!(reported["devices"].as_array().unwrap().len(), 1);
    let text = reported.to_string();
    // Rejected texts are stored masked.
    for known in TEXTS {
        assert!(text.contains(known), "{known}");
    }
    assert!(!text.contains("theirs") && !text.contains(&user.token));
    assert_eq!(reported["history"].as_array().unwrap().len(), 20);
    assert_eq!(reported["history"][3]["jsonData"]["text"], TEXTS[3]);
    let kinds = |asset: &str| -> Vec<_> {
        reported[asset].as_array().unwrap().iter().map(|entry| entry["kind"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(
        (kinds("points"), kinds("coins")),
        (vec!["signup_bonus".into()], vec!["adjust".into(), "consume".into()])
    );
    server.get("/api/v1/account/export").send().expect_problem(401, "unauthenticated");
}

#[test]
fn the_export_uses_the_ids_of_the_api() {
    let server = Setup::default().start();
    let (user, key) = (server.sign_in_by_email(EMAIL), server.api_key("tests"));
    let stream_chunks = |audience: Value| {
        let mut notification = json!({ "title": "…", "body": "…" });
        notification.as_object_mut().unwrap().extend(audience.as_object().unwrap().clone());
        server.post("/admin/notifications").token(&key).json(&notification).send().expect(201).json()["id"].clone()
    };
    let own = stream_chunks(json!({ "audience": "users", "userIds": [user.user_id] }));
    let broadcast = stream_chunks(json!({ "audience": "all" }));
    let path = format!("/api/v1/notifications/{}/read", broadcast.as_str().unwrap());
    server.patch(&path).by(&user).send().expect(200);
    server.patch("/api/v1/notifications/mark-all-read").by(&user).send().expect(200);
    let feedback = server.post("/feedback").by(&user).json(&json!({ "content": "…" })).send().expect(200).json();
    let reported = export(&server, &user);
    let ids: Vec<_> = reported["notifications"].as_array().unwrap().iter().map(|item| &item["id"]).collect();
    assert_eq!(ids, [&own, &broadcast]);
    assert_eq!(reported["feedback"][0]["id"], feedback["id"]);
    assert_eq!(reported["notificationMarks"][0]["through"], broadcast);
}

/// Saves `count` records of 60,000 bytes.
fn save_large(server: &Server, user: &Caller, count: usize) {
    for number in 0..count {
        let record = json!({ "localRecordId": format!("record-{number}"), "jsonData": "x".repeat(60_000) });
        server.post("/divination-history/save").by(user).json(&record).send().expect(200);
    }
}

#[test]
fn limits_a_user_to_one_export_at_a_time() {
    let server = Setup::default().start();
    let user = server.sign_in_by_email(EMAIL);
    // More than the socket buffers hold.
    save_large(&server, &user, 400);
    let mut slow = RawConnection::to(&server);
    let token = &user.token;
    slow.send(&format!("GET /api/v1/account/export HTTP/1.1\r\nhost: yarrow\r\nauthorization: Bearer {token}\r\n\r\n"));
    let mut started_at = [0; 12];
    slow.0.read_exact(&mut started_at).unwrap();
    assert_eq!(&started_at, b"HTTP/1.1 200");
    let again = || server.get("/api/v1/account/export").by(&user).send();
    again().expect_problem(409, "already_running");
    let other = server.sign_in(PHONE);
    assert_eq!(export(&server, &other)["account"]["phoneNumber"], PHONE);
    drop(slow);
    eventually("the client's disconnect", || again().status == 200);
}

#[test]
fn sends_an_export_of_many_megabytes() {
    let server = Setup::default().start();
    let user = server.sign_in_by_email(EMAIL);
    save_large(&server, &user, 200);
    let reported = export(&server, &user);
    let history = reported["history"].as_array().unwrap();
    assert_eq!(history.len(), 200);
    assert!(history.iter().all(|record| record["jsonData"].as_str().unwrap().len() == 60_000));
}
