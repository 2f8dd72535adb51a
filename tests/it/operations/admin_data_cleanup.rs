//! Clearing tables: asked for twice, after a backup, never more than was said, and whole or not at all.

use std::{
    collections::BTreeSet,
    fs::File,
    path::Path,
    process::Command,
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
    thread::{scope, sleep},
    time::{Duration, Instant},
};

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::{
    Answer, Ended, Server, Setup, assert_sound, copy_of, count, cut_off, eventually, install, killed_after,
    log_statement, raw::Wire, started,
};

/// Moments, spread over the whole duration, at which a clearing is killed.
const KILLS: u32 = 8;

fn clear(server: &Server, key: &str, what: &str, confirm: Option<&str>) -> Answer {
    let request = server.request("DELETE", &format!("/admin/data-cleanup/{what}")).token(key);
    confirm.map_or_else(|| request.clone(), |token| request.clone().form(&[("confirm", token)])).send()
}

/// Asks, and gives what would happen.
fn asked(server: &Server, key: &str, what: &str) -> Value {
    clear(server, key, what, None).expect_problem(428, "confirmation_required").json()
}

/// Asks, confirms, and gives what happened.
fn cleared(server: &Server, key: &str, what: &str) -> Value {
    let token = asked(server, key, what)["confirm"].as_str().unwrap().to_owned();
    clear(server, key, what, Some(&token)).expect(200).json()
}

#[test]
fn codes_go_when_it_was_said_twice_and_budgets_stay() {
    let server = Setup::default().start();
    let key = server.api_key("tests");
    let user = server.sign_in("13800138000");
    server.request_code("13800138001");
    server.request_code("13800138002");
    let problem = asked(&server, &key, "verification-codes");
    assert_eq!(problem["wouldDelete"], json!({ "codes": 2 }));
    assert!(problem["expiresAt"].is_string());
    assert_eq!(server.value::<i64>("select count(*) from codes"), 2);
    let token = problem["confirm"].as_str().unwrap();
    let done = clear(&server, &key, "verification-codes", Some(token)).expect(200).json();
    assert_eq!(done["deleted"], json!({ "codes": 2 }));
    assert_eq!(server.value::<i64>("select count(*) from codes"), 0);
    assert_eq!(server.value::<i64>("select count(*) from code_sends"), 3);
    server.get("/coin/balance").by(&user).send().expect(200);
    // The backup that is named holds what went.
    let backups = server.directory().join("backups");
    let file = backups.join(done["backup"].as_str().unwrap());
    let copy = rusqlite::Connection::open(file).unwrap();
    assert_eq!(copy.query_row("select count(*) from codes", [], |row| row.get::<_, i64>(0)), Ok(2));
}

#[test]
fn a_token_is_good_for_one_action_of_one_administrator_once_and_for_a_while() {
    let server = Setup::default().start();
    let (key, other) = (server.api_key("tests"), server.api_key("others"));
    let token = asked(&server, &key, "verification-codes")["confirm"].as_str().unwrap().to_owned();
    clear(&server, &key, "payment-records", Some(&token)).expect_problem(428, "confirmation_required");
    clear(&server, &other, "verification-codes", Some(&token)).expect_problem(428, "confirmation_required");
    clear(&server, &key, "verification-codes", Some("yes")).expect_problem(428, "confirmation_required");
    clear(&server, &key, "verification-codes", Some(&token)).expect(200);
    clear(&server, &key, "verification-codes", Some(&token)).expect_problem(428, "confirmation_required");
    let token = asked(&server, &key, "verification-codes")["confirm"].as_str().unwrap().to_owned();
    server.edit("update confirmations set expires_at = expires_at - 600000");
    clear(&server, &key, "verification-codes", Some(&token)).expect_problem(428, "confirmation_required");
}

#[test]
fn payment_records_younger_than_the_floor_and_open_ones_stay() {
    let server = Setup::default().start();
    let key = server.api_key("tests");
    let user = server.sign_in("13800138000");
    let order = |amount: &str, coins: &str| {
        let order = server.get("/payment/gateway/order").by(&user).query(&[("amount", amount), ("coinCount", coins)]);
        order.send().expect(200).json()["orderNo"].as_str().unwrap().to_owned()
    };
    let (paid, open, young) = (order("6.00", "60"), order("30.00", "330"), order("68.00", "780"));
    for order in [&paid, &young] {
        server.command(&["payments", "sandbox-pay", order]).expect(0);
    }
    let age = |order: &str, days: i64| {
        server.edit(&format!(
            "update payment_orders set created_at = created_at - {days} * 86400000, \
             credited_at = credited_at - {days} * 86400000 where order_no = '{order}'; \
             update payment_callbacks set received_at = received_at - {days} * 86400000 where order_no = '{order}'"
        ));
    };
    age(&paid, 1100);
    age(&open, 1100);
    age(&young, 1000);
    let problem = asked(&server, &key, "payment-records");
    assert_eq!(problem["wouldDelete"], json!({ "payment_orders": 1 }));
    assert_eq!(problem["wouldKeep"], json!({ "payment_orders": 2 }));
    let done = cleared(&server, &key, "payment-records");
    assert_eq!((&done["deleted"], &done["kept"]), (&json!({ "payment_orders": 1 }), &json!({ "payment_orders": 2 })));
    server.command(&["payments", "show", &paid]).expect(4);
    server.command(&["payments", "show", &open]).expect(0);
    server.command(&["payments", "show", &young]).expect(0);
    let left = format!("select count(*) from payment_callbacks where order_no = '{paid}'");
    assert_eq!(server.value::<i64>(&left), 0);
    // What the orders did to the balance stays.
    assert_eq!(server.get("/coin/balance").by(&user).send().expect(200).json()["balance"], 840);
    server.command(&["ledger", "verify"]).expect(0);
}

/// What clearing everything leaves. A table that is added has to be put on one side.
const KEPT: [&str; 13] = [
    "admin_attempts",
    "admin_tokens",
    "admins",
    "allowed_phrases",
    "api_keys",
    "audit",
    "confirmations",
    "releases",
    "sandbox_trades",
    "settings",
    "token_changes",
    "words",
    "word_changes",
];

#[test]
fn clearing_all_leaves_the_operators_their_audit_and_a_service_that_works() {
    let server = Setup::default().start();
    let key = server.api_key("tests");
    let user = server.sign_in("13800138000");
    server.grant(&key, "13800138000", 60);
    server.post("/coin/consume").by(&user).send().expect(200);
    server.post("/divination-history/save").by(&user).json(&json!({ "localRecordId": "r-1" })).send().expect(201);
    server.post("/divination/enhanced").by(&user).json(&json!({ "question": "何时启程？" })).send().expect(200);
    let token = asked(&server, &key, "all")["confirm"].as_str().unwrap().to_owned();
    let done = clear(&server, &key, "all", Some(&token)).expect(200).json();
    assert_eq!((&done["deleted"]["users"], &done["deleted"]["history"]), (&json!(1), &json!(1)));
    assert_eq!(done["deleted"]["ledger_entries"], 2);
    let database = server.database();
    let mut tables =
        database.prepare("select name from sqlite_schema where type = 'table' and name not like 'sqlite%'").unwrap();
    let tables: BTreeSet<String> = tables.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    for table in &tables {
        let rows: i64 = database.query_row(&format!("select count(*) from {table}"), [], |row| row.get(0)).unwrap();
        let is_of_today = ["access_log_blocks", "access_log_pieces", "access_log_subjects"].contains(&table.as_str());
        let is_kept = KEPT.contains(&table.as_str()) || table.starts_with("admin_");
        // Told by the name of what is in it.
        let table = if table == "access_log_blocks" { "access_log" } else { table };
        assert!(is_kept || is_of_today || rows == 0, "{table} has {rows} rows");
        assert_eq!(done["deleted"].get(table).is_none(), is_kept, "{table}");
    }
    let foreign_keys: i64 =
        database.query_row("select count(*) from pragma_foreign_key_check", [], |row| row.get(0)).unwrap();
    assert_eq!(foreign_keys, 0);
    server.get("/coin/balance").by(&user).send().expect_problem(401, "unauthenticated");
    // The ledger still refuses to be changed, and begins anew; ids are not given twice.
    let again = server.sign_in("13800138000");
    assert_ne!(again.user_id, user.user_id);
    server.grant(&key, "13800138000", 5);
    assert!(database.execute("update ledger_entries set delta = 7", []).is_err());
    assert!(database.execute("delete from ledger_audit", []).is_err());
    server.command(&["ledger", "verify"]).expect(0);
    let rows = server.command(&["audit", "--actor", "key:tests"]).expect(0).json();
    assert!(rows["items"].as_array().unwrap().iter().any(|row| row["action"] == "DELETE /admin/data-cleanup/all"));
}

#[test]
fn a_hundred_confirmations_at_once_clear_once() {
    let server = Setup::default().start();
    let key = server.api_key("tests");
    let token = asked(&server, &key, "verification-codes")["confirm"].as_str().unwrap().to_owned();
    let request =
        || server.request("DELETE", "/admin/data-cleanup/verification-codes").token(&key).form(&[("confirm", &token)]);
    let answers = crate::support::at_once((0..100).map(|_| request()).collect());
    let done = answers.iter().filter(|answer| answer.status == 200).count();
    let refused = answers.iter().filter(|answer| answer.status == 428).count();
    assert_eq!((done, done + refused), (1, 100));
}

#[test]
fn without_a_backup_nothing_is_cleared() {
    let server = Setup::default().start();
    let key = server.api_key("tests");
    server.request_code("13800138001");
    // A file stands where the backups should be.
    let backups = server.directory().join("backups");
    drop(std::fs::remove_dir_all(&backups));
    std::fs::write(&backups, "in the way").unwrap();
    let token = asked(&server, &key, "verification-codes")["confirm"].as_str().unwrap().to_owned();
    let failed = clear(&server, &key, "verification-codes", Some(&token));
    assert!(failed.status >= 500, "{}", failed.text());
    assert_eq!(server.value::<i64>("select count(*) from codes"), 1);
}

#[test]
fn the_command_asks_or_is_told_yes_and_counts_when_asked_to() {
    let server = Setup::default().start();
    server.request_code("13800138001");
    server.command(&["cleanup", "verification-codes"]).expect(2);
    let counted = server.command(&["cleanup", "verification-codes", "--dry-run"]).expect(0).json();
    assert_eq!(counted["wouldDelete"], json!({ "codes": 1 }));
    assert_eq!(server.value::<i64>("select count(*) from codes"), 1);
    let done = server.command(&["cleanup", "verification-codes", "--yes"]).expect(0).json();
    assert_eq!(done["deleted"], json!({ "codes": 1 }));
    assert_eq!(
        server.command(&["cleanup", "payment-records", "--yes"]).expect(0).json()["kept"],
        json!({ "payment_orders": 0 })
    );
    let user = server.sign_in("13800138000");
    server.edit("delete from access_log_blocks");
    server.edit(&log_statement(
        "with recursive counter (n) as (select 1 union all select n + 1 from counter where n < 20) \
         select n, null, '192.0.2.1', 'GET', null, 404, 1, 'filler' from counter",
    ));
    let counted = server.command(&["cleanup", "all", "--dry-run"]).expect(0).json();
    assert!(counted["wouldDelete"]["access_log"].as_i64().unwrap() >= 20, "{counted}");
    assert!(counted["wouldDelete"]["access_log_blocks"].is_null(), "{counted}");
    let done = server.command(&["cleanup", "all", "--yes"]).expect(0).json();
    assert_eq!(done["deleted"]["users"], 1);
    std::thread::sleep(std::time::Duration::from_millis(100));
    server.get("/coin/balance").by(&user).send().expect(401);
    let rows = server.command(&["audit", "--actor", "cli"]).expect(0).json();
    assert_eq!(rows["items"][0]["action"], "yarrow cleanup all");
}

/// A server with so much to copy that much can be written in the meantime.
fn filled() -> Server {
    let unlimited = 1_000_000;
    let server = Setup::default()
        .with("BACKUP_EVERY", "0 s")
        .with("LIMITS_FEEDBACK_PER_CLIENT", unlimited)
        .with("AUTH_SENDS_PER_DAY", unlimited)
        .start();
    server.edit(&log_statement(
        "with recursive counter (n) as (select 1 union all select n + 1 from counter where n < 6000) \
         select 9000000000000, null, hex(randomblob(1500)), 'GET', null, 200, 1, 'filler' from counter",
    ));
    server
}

/// Clears while `write` is called with one number after another, and gives the backup that was made before.
fn cleared_while(server: &Server, write: impl Fn(u32) + Sync, clear: impl FnOnce() -> Value) -> Connection {
    let (stop, written) = (AtomicBool::new(false), AtomicU32::new(0));
    let done = scope(|scope| {
        let writing = scope.spawn(|| {
            for number in (1..).take_while(|_| !stop.load(Ordering::Relaxed)) {
                write(number);
                written.store(number, Ordering::Relaxed);
            }
        });
        let wait_for_more = || {
            let before = written.load(Ordering::Relaxed);
            while written.load(Ordering::Relaxed) < before + 3 && !writing.is_finished() {
                sleep(Duration::from_millis(5));
            }
        };
        wait_for_more();
        let done = clear();
        wait_for_more();
        stop.store(true, Ordering::Relaxed);
        done
    });
    Connection::open(server.directory().join("backups").join(done["backup"].as_str().unwrap())).unwrap()
}

/// What a query finds, in the backup or in the database that was cleared after it.
fn held(server: &Server, backup: &Connection, sql: &str) -> BTreeSet<String> {
    let texts = |database: &Connection| -> BTreeSet<String> {
        let mut statement = database.prepare(sql).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let (before, after) = (texts(backup), texts(&server.database()));
    assert!(!before.is_empty() && !after.is_empty(), "nothing was written before or after: this proves nothing");
    before.union(&after).cloned().collect()
}

/// Has feedback sent all the time, and fails if some that was taken is neither in the backup nor in the database.
fn assert_no_feedback_is_lost(what: &str, clear: impl FnOnce(&Server) -> Value) {
    let server = filled();
    let taken = std::sync::Mutex::new(BTreeSet::new());
    let write = |number: u32| {
        let text = format!("feedback {number}");
        let answer = server.post("/feedback").json(&json!({ "content": text })).send();
        match answer.status {
            201 => drop(taken.lock().unwrap().insert(text)),
            // A command that clears everything holds up the server's changes for as long as that takes.
            status => assert_eq!(status, 503, "{}", answer.text()),
        }
    };
    let backup = cleared_while(&server, write, || clear(&server));
    let held = held(&server, &backup, "select content from feedback");
    let taken = taken.into_inner().unwrap();
    let lost: Vec<_> = taken.difference(&held).collect();
    assert!(lost.is_empty(), "{what}: {} of {} are lost: {lost:?}", lost.len(), taken.len());
}

#[test]
fn nothing_is_lost_that_is_written_while_everything_is_cleared() {
    assert_no_feedback_is_lost("HTTP", |server| cleared(server, &server.api_key("tests"), "all"));
    assert_no_feedback_is_lost("the command", |server| server.command(&["cleanup", "all", "--yes"]).expect(0).json());
}

#[test]
fn nothing_is_lost_that_is_written_while_feedback_is_cleared() {
    assert_no_feedback_is_lost("HTTP", |server| cleared(server, &server.api_key("tests"), "feedback"));
    assert_no_feedback_is_lost("the command", |server| {
        server.command(&["cleanup", "feedback", "--yes"]).expect(0).json()
    });
}

#[test]
fn no_code_is_lost_that_is_sent_while_codes_are_cleared() {
    let server = filled();
    let sent = std::sync::atomic::AtomicUsize::new(0);
    let ask = |number: u32| {
        drop(server.request_code(&format!("138{number:08}")));
        sent.fetch_add(1, Ordering::Relaxed);
    };
    let clear = || server.command(&["cleanup", "verification-codes", "--yes"]).expect(0).json();
    let backup = cleared_while(&server, ask, clear);
    assert_eq!(held(&server, &backup, "select hex(code_hmac) from codes").len(), sent.into_inner());
}

#[test]
fn an_order_stays_of_which_something_came_in_after_the_backup() {
    let server = filled();
    let user = server.sign_in("13800138000");
    let order = server.get("/payment/gateway/order").by(&user).query(&[("amount", "6.00"), ("coinCount", "60")]);
    let order = order.send().expect(200).json()["orderNo"].as_str().unwrap().to_owned();
    server.command(&["payments", "sandbox-pay", &order]).expect(0);
    server.edit(
        "update payment_orders set created_at = created_at - 1100 * 86400000, \
         credited_at = credited_at - 1100 * 86400000; \
         update payment_callbacks set received_at = received_at - 1100 * 86400000",
    );
    let receive = |number: u32| {
        server.edit(&format!(
            "insert into payment_callbacks (received_at, channel, is_genuine, verdict, order_no, notify_id, form) \
             values (0, 'sandbox', 1, 'unchanged', '{order}', 'n-{number}', x'00')"
        ));
    };
    let clear = || server.command(&["cleanup", "payment-records", "--yes"]).expect(0).json();
    let backup = cleared_while(&server, receive, clear);
    let received = held(&server, &backup, "select notify_id from payment_callbacks");
    let newest: String = server.value("select notify_id from payment_callbacks order by id desc limit 1");
    let newest: usize = newest.strip_prefix("n-").unwrap().parse().unwrap();
    // The one more is the notification of the payment itself.
    assert_eq!(received.len(), newest + 1);
    server.command(&["payments", "show", &order]).expect(0);
    let done = server.command(&["cleanup", "payment-records", "--yes"]).expect(0).json();
    assert_eq!(done["deleted"], json!({ "payment_orders": 1 }));
}

#[test]
fn a_clearing_that_is_killed_leaves_a_good_database() {
    const ROWS: u32 = 30_000;
    let temporary = tempfile::tempdir().unwrap();
    let pristine = temporary.path().join("pristine");
    let mut server = Setup::default().on(&pristine).with("BACKUP_EVERY", "0 s").start();
    let user = server.sign_in("13800138000");
    server.command(&["coins", "grant", "13800138000", "5"]).expect(0);
    let fill = format!(
        "with recursive counter (n) as (select 1 union all select n + 1 from counter where n < {ROWS}) \
         insert into history (user_id, sequence, local_record_id, ai_result, created_at, updated_at) \
         select {}, n, n, hex(randomblob(300)), 1, 1 from counter",
        user.user_id
    );
    server.database().execute_batch(&fill).unwrap();
    assert_eq!(server.terminate(), Some(0));
    let arguments = ["cleanup", "all", "--yes"];
    let timed = temporary.path().join("timed");
    copy_of(&pristine, &timed);
    let begun = Instant::now();
    assert!(started(&timed, &arguments).wait().unwrap().success());
    let whole = begun.elapsed();
    let directory = temporary.path().join("killed");
    cut_off(KILLS, whole, |wait| {
        copy_of(&pristine, &directory);
        let is_cut_off = killed_after(&directory, &arguments, wait);
        let database = Connection::open(directory.join("yarrow.db")).unwrap();
        assert_sound(&database);
        // Everything is cleared in one transaction.
        let left = (count(&database, "users"), count(&database, "history"), count(&database, "ledger_entries"));
        assert!([(1, i64::from(ROWS), 1), (0, 0, 0)].contains(&left), "{left:?}");
        drop(database);
        Ended::run(&directory, &["ledger", "verify"], "").expect(0);
        if left.0 == 0 {
            // What was cleared can be had back: the backup came first.
            Ended::run(&directory, &["backup", "verify"], "").expect(0);
        }
        Ended::run(&directory, &arguments, "").expect(0);
        assert_eq!(count(&Connection::open(directory.join("yarrow.db")).unwrap(), "users"), 0);
        std::fs::remove_dir_all(&directory).unwrap();
        is_cut_off
    });
}

/// Takes the lock under which backups are made, so that a clearing waits for it until this is dropped.
fn hold_backups(directory: &Path) -> File {
    let backups = directory.join("backups");
    std::fs::create_dir_all(&backups).unwrap();
    let lock = File::create(backups.join("backup.lock")).unwrap();
    lock.lock().unwrap();
    lock
}

/// What the audit says of clearings, oldest first: `yarrow cleanup all 200`.
fn clearings(directory: &Path) -> Vec<String> {
    let database = Connection::open(directory.join("yarrow.db")).unwrap();
    let sql = "select action || ' ' || outcome from audit where action like '%cleanup%' and outcome <> 428 order by id";
    let mut statement = database.prepare(sql).unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

#[test]
fn a_clearing_that_is_killed_was_written_down_before() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("data");
    install(&directory);
    for what in ["all", "verification-codes", "payment-records", "feedback"] {
        let _held = hold_backups(&directory);
        let mut process = started(&directory, &["cleanup", what, "--yes"]);
        let begun = format!("yarrow cleanup {what} 202");
        eventually("the beginning is written down", || clearings(&directory).last() == Some(&begun));
        process.kill().unwrap();
        process.wait().unwrap();
    }
    Ended::run(&directory, &["cleanup", "expired", "--yes"], "").expect(0);
    assert_eq!(clearings(&directory)[4..], ["yarrow cleanup expired 202", "yarrow cleanup expired 200"]);
    Ended::run(&directory, &["cleanup", "all", "--yes"], "").expect(0);
    assert_eq!(clearings(&directory)[6..], ["yarrow cleanup all 202", "yarrow cleanup all 200"]);
}

/// Confirms a clearing over HTTP and comes back once it has begun.
fn begin_clearing(server: &Server, key: &str, what: &str) -> Wire {
    let token = asked(server, key, what)["confirm"].as_str().unwrap().to_owned();
    let mut wire = Wire::to(server);
    assert!(wire.send(&format!(
        "DELETE /admin/data-cleanup/{what}?confirm={token} HTTP/1.1\r\nhost: yarrow\r\nauthorization: Bearer {key}\r\n\
         content-length: 0\r\n\r\n"
    )));
    eventually("it is confirmed", || server.value::<i64>("select count(*) from confirmations") == 0);
    wire
}

#[test]
fn a_clearing_over_http_is_written_down_before_and_after() {
    let server = Setup::default().with("BACKUP_EVERY", "0 s").start();
    let (begun, done) =
        ("DELETE /admin/data-cleanup/verification-codes 202", "DELETE /admin/data-cleanup/verification-codes 200");
    let key = server.api_key("tests");
    cleared(&server, &key, "verification-codes");
    assert_eq!(clearings(server.directory()), [begun, done]);
    let _held = hold_backups(server.directory());
    let _waiting = begin_clearing(&server, &key, "verification-codes");
    eventually("the beginning is written down", || clearings(server.directory()).len() == 3);
    let directory = server.kill();
    assert_eq!(clearings(&directory)[2..], [begun]);
    std::fs::remove_dir_all(directory.parent().unwrap()).unwrap();
}

#[test]
fn a_stop_waits_for_what_an_administrator_began_who_has_left() {
    let mut server = Setup::default().with("BACKUP_EVERY", "0 s").start();
    server.request_code("13800138001");
    let held = hold_backups(server.directory());
    drop(begin_clearing(&server, &server.api_key("hasty"), "verification-codes"));
    server.ask_to_stop();
    sleep(Duration::from_millis(700));
    drop(held);
    assert_eq!(server.wait_for_end(), Some(0));
    assert_eq!(server.value::<i64>("select count(*) from codes"), 0);
    let rows = clearings(server.directory());
    assert_eq!(rows.last().map(String::as_str), Some("DELETE /admin/data-cleanup/verification-codes 200"), "{rows:?}");
}

#[test]
fn a_stop_does_not_wait_for_the_backup_before_everything_is_cleared() {
    let mut server = Setup::default().with("LIMITS_DRAIN_TIMEOUT", "300 ms").with("BACKUP_EVERY", "0 s").start();
    let (user, key) = (server.sign_in("13800138000"), server.api_key("tests"));
    // A key that does not come to its end holds up the backup that it goes into.
    let kept = server.directory().join("sandbox.key");
    std::fs::remove_file(&kept).unwrap();
    assert!(Command::new("mkfifo").arg(&kept).status().unwrap().success());
    let _waiting = begin_clearing(&server, &key, "all");
    let database = server.database();
    database.busy_timeout(Duration::ZERO).unwrap();
    eventually("nobody else may write", || database.execute_batch("begin immediate; rollback").is_err());
    let begun = Instant::now();
    assert_eq!(server.terminate(), Some(0));
    assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
    let left: String = server.value("select group_concat(phone_number) from users");
    assert_eq!(left, user.phone_number);
    let rows = clearings(server.directory());
    // That it began, once.
    assert_eq!(rows, ["DELETE /admin/data-cleanup/all 202"]);
}
