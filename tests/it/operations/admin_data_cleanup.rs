//! `/admin/data-cleanup`: confirmation, backup, limits and atomicity of purges.

use std::{
    collections::BTreeSet,
    fs::File,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    path::Path,
    process::Command,
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
    thread::{scope, sleep},
    time::{Duration, Instant},
};

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::{
    CommandOutput, Response, Server, Setup, assert_sound, copy_directory, count, eventually, filler_statement, install,
    kill_after, kill_at_intervals, log_statement, open_app, raw::RawConnection, spawn_command,
};

/// The number of moments at which a purge is killed.
const KILLS: u32 = 8;

fn clear(server: &Server, key: &str, what: &str, confirm: Option<&str>) -> Response {
    let request = server.request("DELETE", &format!("/admin/data-cleanup/{what}")).token(key);
    confirm.map_or_else(|| request.clone(), |token| request.clone().form(&[("confirm", token)])).send()
}

/// Requests a purge and returns the preview.
fn requested(server: &Server, key: &str, what: &str) -> Value {
    clear(server, key, what, None).expect_problem(428, "confirmation_required").json()
}

/// Requests and confirms a purge and returns the result.
fn cleared(server: &Server, key: &str, what: &str) -> Value {
    let token = requested(server, key, what)["confirm"].as_str().unwrap().to_owned();
    clear(server, key, what, Some(&token)).expect(200).json()
}

#[test]
fn purges_codes_after_confirmation_and_keeps_limits() {
    let server = Setup::default().start();
    let key = server.api_key("tests");
    let user = server.sign_in("13800138000");
    server.request_code("13800138001");
    server.request_code("13800138002");
    let problem = requested(&server, &key, "verification-codes");
    assert_eq!(problem["wouldDelete"], json!({ "codes": 2 }));
    assert!(problem["expiresAt"].is_string());
    assert_eq!(server.value::<i64>("select count(*) from codes"), 2);
    let token = problem["confirm"].as_str().unwrap();
    let done = clear(&server, &key, "verification-codes", Some(token)).expect(200).json();
    assert_eq!(done["deleted"], json!({ "codes": 2 }));
    assert_eq!(server.value::<i64>("select count(*) from codes"), 0);
    assert_eq!(server.value::<i64>("select count(*) from code_sends"), 3);
    server.get("/coin/balance").by(&user).send().expect(200);
    // The named backup holds the purged rows.
    let backups = server.directory().join("backups");
    let file = backups.join(done["backup"].as_str().unwrap());
    let copy = rusqlite::Connection::open(file).unwrap();
    assert_eq!(copy.query_row("select count(*) from codes", (), |row| row.get::<_, i64>(0)), Ok(2));
}

#[test]
fn a_confirmation_is_bound_to_action_and_administrator_and_used_once() {
    let server = Setup::default().start();
    let (key, other) = (server.api_key("tests"), server.api_key("others"));
    let token = requested(&server, &key, "verification-codes")["confirm"].as_str().unwrap().to_owned();
    clear(&server, &key, "payment-records", Some(&token)).expect_problem(428, "confirmation_required");
    clear(&server, &other, "verification-codes", Some(&token)).expect_problem(428, "confirmation_required");
    clear(&server, &key, "verification-codes", Some("yes")).expect_problem(428, "confirmation_required");
    clear(&server, &key, "verification-codes", Some(&token)).expect(200);
    clear(&server, &key, "verification-codes", Some(&token)).expect_problem(428, "confirmation_required");
    let token = requested(&server, &key, "verification-codes")["confirm"].as_str().unwrap().to_owned();
    server.edit("update confirmations set expires_at = expires_at - 600000");
    clear(&server, &key, "verification-codes", Some(&token)).expect_problem(428, "confirmation_required");
}

#[test]
fn keeps_recent_and_open_payment_records() {
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
    let problem = requested(&server, &key, "payment-records");
    assert_eq!(problem["wouldDelete"], json!({ "payment_orders": 1, "store_purchases": 0 }));
    assert_eq!(problem["wouldKeep"], json!({ "payment_orders": 2, "store_purchases": 0 }));
    let done = cleared(&server, &key, "payment-records");
    assert_eq!(
        (&done["deleted"], &done["kept"]),
        (&json!({ "payment_orders": 1, "store_purchases": 0 }), &json!({ "payment_orders": 2, "store_purchases": 0 }))
    );
    server.command(&["payments", "show", &paid]).expect(4);
    server.command(&["payments", "show", &open]).expect(0);
    server.command(&["payments", "show", &young]).expect(0);
    let left = format!("select count(*) from payment_callbacks where order_no = '{paid}'");
    assert_eq!(server.value::<i64>(&left), 0);
    // The effect of the orders on balances stays.
    assert_eq!(server.get("/coin/balance").by(&user).send().expect(200).json()["balance"], 840);
    server.command(&["ledger", "verify"]).expect(0);
}

/// Tables that survive a purge of everything. Each new table must be classified.
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
fn purging_everything_keeps_operators_audit_and_a_working_service() {
    let server = Setup::default().start();
    let key = server.api_key("tests");
    let user = server.sign_in("13800138000");
    server.grant(&key, "13800138000", 60);
    server.post("/coin/consume").by(&user).send().expect(200);
    server.post("/divination-history/save").by(&user).json(&json!({ "localRecordId": "r-1" })).send().expect(200);
    server.post("/divination/enhanced").by(&user).json(&json!({ "question": "何时启程？" })).send().expect(200);
    let token = requested(&server, &key, "all")["confirm"].as_str().unwrap().to_owned();
    let done = clear(&server, &key, "all", Some(&token)).expect(200).json();
    assert_eq!((&done["deleted"]["users"], &done["deleted"]["history"]), (&json!(1), &json!(1)));
    assert_eq!(done["deleted"]["ledger_entries"], 2);
    let database = server.database_file();
    let mut tables =
        database.prepare("select name from sqlite_schema where type = 'table' and name not like 'sqlite%'").unwrap();
    let tables: BTreeSet<String> = tables.query_map((), |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    for table in &tables {
        let rows: i64 = database.query_row(&format!("select count(*) from {table}"), [], |row| row.get(0)).unwrap();
        let is_kept = KEPT.contains(&table.as_str()) || table.starts_with("admin_");
        assert!(is_kept || rows == 0, "{table} has {rows} rows");
        assert_eq!(done["deleted"].get(table).is_none(), is_kept, "{table}");
    }
    assert!(done["deleted"]["access_log"].is_i64(), "{}", done["deleted"]);
    let of_user = format!("select count(*) from access_log where user_id = {}", user.user_id);
    assert_eq!(server.value::<i64>(&of_user), 0);
    let foreign_keys: i64 =
        database.query_row("select count(*) from pragma_foreign_key_check", (), |row| row.get(0)).unwrap();
    assert_eq!(foreign_keys, 0);
    server.get("/coin/balance").by(&user).send().expect_problem(401, "unauthenticated");
    // The ledger restarts and is still append-only. Ids are not reused.
    let again = server.sign_in("13800138000");
    assert_ne!(again.user_id, user.user_id);
    server.grant(&key, "13800138000", 5);
    assert!(database.execute("update ledger_entries set delta = 7", ()).is_err());
    assert!(database.execute("delete from ledger_audit", ()).is_err());
    server.command(&["ledger", "verify"]).expect(0);
    let rows = server.command(&["audit", "--actor", "key:tests"]).expect(0).json();
    assert!(rows["items"].as_array().unwrap().iter().any(|row| row["action"] == "DELETE /admin/data-cleanup/all"));
}

#[test]
fn a_hundred_concurrent_confirmations_purge_once() {
    let server = Setup::default().start();
    let key = server.api_key("tests");
    let token = requested(&server, &key, "verification-codes")["confirm"].as_str().unwrap().to_owned();
    let request =
        || server.request("DELETE", "/admin/data-cleanup/verification-codes").token(&key).form(&[("confirm", &token)]);
    let responses = crate::support::send_concurrently((0..100).map(|_| request()).collect());
    let done = responses.iter().filter(|response| response.status == 200).count();
    let refused = responses.iter().filter(|response| response.status == 428).count();
    assert_eq!((done, done + refused), (1, 100));
}

#[test]
fn purges_nothing_without_a_backup() {
    let server = Setup::default().start();
    let key = server.api_key("tests");
    server.request_code("13800138001");
    // A file blocks the backup directory.
    let backups = server.directory().join("backups");
    drop(std::fs::remove_dir_all(&backups));
    std::fs::write(&backups, "in the way").unwrap();
    let token = requested(&server, &key, "verification-codes")["confirm"].as_str().unwrap().to_owned();
    let failed = clear(&server, &key, "verification-codes", Some(&token));
    assert!(failed.status >= 500, "{}", failed.text());
    assert_eq!(server.value::<i64>("select count(*) from codes"), 1);
}

#[test]
fn the_command_asks_accepts_yes_and_counts_in_a_dry_run() {
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
        json!({ "payment_orders": 0, "store_purchases": 0 })
    );
    let user = server.sign_in("13800138000");
    server.edit("delete from access_log");
    server.edit(&log_statement(
        "with recursive counter (n) as (select 1 union all select n + 1 from counter where n < 20) \
         select n, null, '192.0.2.1', 'GET', null, 404, 1, 'filler' from counter",
    ));
    let counted = server.command(&["cleanup", "all", "--dry-run"]).expect(0).json();
    assert!(counted["wouldDelete"]["access_log"].as_i64().unwrap() >= 20, "{counted}");
    let done = server.command(&["cleanup", "all", "--yes"]).expect(0).json();
    assert_eq!(done["deleted"]["users"], 1);
    std::thread::sleep(std::time::Duration::from_millis(100));
    server.get("/coin/balance").by(&user).send().expect(401);
    let rows = server.command(&["audit", "--actor", "cli"]).expect(0).json();
    assert_eq!(rows["items"][0]["action"], "yarrow cleanup all");
}

/// Starts a server with enough data that a purge takes a while.
fn filled() -> Server {
    let unlimited = 1_000_000;
    let server = Setup::default()
        .with("BACKUP_EVERY", "0 s")
        .with("LIMITS_FEEDBACK_PER_CLIENT", unlimited)
        .with("AUTH_SENDS_PER_DAY", unlimited)
        .start();
    server.edit(&filler_statement(6000));
    server
}

/// Purges while `write` is called with increasing numbers. Returns the backup made before.
fn purge_while(server: &Server, write: impl Fn(u32) + Sync, clear: impl FnOnce() -> Value) -> Connection {
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
        // A failure must end the writer too, or the scope waits for it.
        let done = catch_unwind(AssertUnwindSafe(|| {
            wait_for_more();
            let done = clear();
            wait_for_more();
            done
        }));
        stop.store(true, Ordering::Relaxed);
        done.unwrap_or_else(|panic| resume_unwind(panic))
    });
    Connection::open(server.directory().join("backups").join(done["backup"].as_str().unwrap())).unwrap()
}

/// Returns the values of a query in the backup or in the purged database.
fn held(server: &Server, backup: &Connection, sql: &str) -> BTreeSet<String> {
    let texts = |database: &Connection| -> BTreeSet<String> {
        let mut statement = database.prepare(sql).unwrap();
        statement.query_map((), |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let (before, after) = (texts(backup), texts(&server.database_file()));
    assert!(!before.is_empty() && !after.is_empty(), "nothing was written before or after, which proves nothing");
    before.union(&after).cloned().collect()
}

/// Sends feedback throughout a purge. Panics if accepted feedback is in neither backup nor database.
fn assert_no_feedback_is_lost(what: &str, clear: impl FnOnce(&Server) -> Value) {
    let server = filled();
    let taken = std::sync::Mutex::new(BTreeSet::new());
    let write = |number: u32| {
        let text = format!("feedback {number}");
        let response = server.post("/feedback").json(&json!({ "content": text })).send();
        match response.status {
            200 => drop(taken.lock().unwrap().insert(text)),
            // A purge of everything by command blocks the server's writes for its duration.
            status => assert_eq!(status, 503, "{}", response.text()),
        }
    };
    let backup = purge_while(&server, write, || clear(&server));
    let held = held(&server, &backup, "select content from feedback");
    let taken = taken.into_inner().unwrap();
    let lost: Vec<_> = taken.difference(&held).collect();
    assert!(lost.is_empty(), "{what}: {} of {} are lost: {lost:?}", lost.len(), taken.len());
}

#[test]
fn a_purge_of_everything_loses_no_concurrent_write() {
    assert_no_feedback_is_lost("HTTP", |server| cleared(server, &server.api_key("tests"), "all"));
    assert_no_feedback_is_lost("the command", |server| server.command(&["cleanup", "all", "--yes"]).expect(0).json());
}

#[test]
fn a_purge_of_feedback_loses_no_concurrent_write() {
    assert_no_feedback_is_lost("HTTP", |server| cleared(server, &server.api_key("tests"), "feedback"));
    assert_no_feedback_is_lost("the command", |server| {
        server.command(&["cleanup", "feedback", "--yes"]).expect(0).json()
    });
}

#[test]
fn a_purge_of_codes_loses_no_concurrent_code() {
    let server = filled();
    let sent = std::sync::atomic::AtomicUsize::new(0);
    let ask = |number: u32| {
        drop(server.request_code(&format!("138{number:08}")));
        sent.fetch_add(1, Ordering::Relaxed);
    };
    let clear = || server.command(&["cleanup", "verification-codes", "--yes"]).expect(0).json();
    let backup = purge_while(&server, ask, clear);
    assert_eq!(held(&server, &backup, "select hex(code_hmac) from codes").len(), sent.into_inner());
}

#[test]
fn keeps_an_order_with_activity_after_the_backup() {
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
    let backup = purge_while(&server, receive, clear);
    let received = held(&server, &backup, "select notify_id from payment_callbacks");
    let newest: String = server.value("select notify_id from payment_callbacks order by id desc limit 1");
    let newest: usize = newest.strip_prefix("n-").unwrap().parse().unwrap();
    // The additional one is the payment notification itself.
    assert_eq!(received.len(), newest + 1);
    server.command(&["payments", "show", &order]).expect(0);
    let done = server.command(&["cleanup", "payment-records", "--yes"]).expect(0).json();
    assert_eq!(done["deleted"], json!({ "payment_orders": 1, "store_purchases": 0 }));
}

#[test]
fn killed_purges_leave_a_sound_database() {
    const ROWS: u32 = 30_000;
    let temp_dir = tempfile::tempdir().unwrap();
    let pristine = temp_dir.path().join("pristine");
    let mut server = Setup::default().on(&pristine).with("BACKUP_EVERY", "0 s").start();
    let user = server.sign_in("13800138000");
    server.command(&["coins", "grant", "13800138000", "5"]).expect(0);
    let fill = format!(
        "with recursive counter (n) as (select 1 union all select n + 1 from counter where n < {ROWS}) \
         insert into history (user_id, sequence, local_record_id, ai_result, created_at, updated_at) \
         select {}, n, n, hex(randomblob(300)), 1, 1 from counter",
        user.user_id
    );
    server.database_file().execute_batch(&fill).unwrap();
    assert_eq!(server.terminate(), Some(0));
    let arguments = ["cleanup", "all", "--yes"];
    let timed = temp_dir.path().join("timed");
    copy_directory(&pristine, &timed);
    let started_at = Instant::now();
    assert!(spawn_command(&timed, &arguments).wait().unwrap().success());
    let whole = started_at.elapsed();
    let directory = temp_dir.path().join("killed");
    kill_at_intervals(KILLS, whole, |wait| {
        copy_directory(&pristine, &directory);
        let is_cut_off = kill_after(&directory, &arguments, wait);
        let database = Connection::open(directory.join("yarrow.db")).unwrap();
        assert_sound(&database);
        // The purge is one transaction.
        let left = (count(&database, "users"), count(&database, "history"), count(&database, "ledger_entries"));
        assert!([(1, i64::from(ROWS), 1), (0, 0, 0)].contains(&left), "{left:?}");
        drop(database);
        CommandOutput::run(&directory, &["ledger", "verify"], "").expect(0);
        if left.0 == 0 {
            // The backup allows recovery.
            CommandOutput::run(&directory, &["backup", "verify"], "").expect(0);
        }
        CommandOutput::run(&directory, &arguments, "").expect(0);
        assert_eq!(count(&Connection::open(directory.join("yarrow.db")).unwrap(), "users"), 0);
        std::fs::remove_dir_all(&directory).unwrap();
        is_cut_off
    });
}

/// Takes the backup lock, so that a purge waits until this is dropped.
fn lock_backups(directory: &Path) -> File {
    let backups = directory.join("backups");
    std::fs::create_dir_all(&backups).unwrap();
    let lock = File::create(backups.join("backup.lock")).unwrap();
    lock.lock().unwrap();
    lock
}

/// Returns the audit events of purges, oldest first: `yarrow cleanup all 200`.
fn purge_events(directory: &Path) -> Vec<String> {
    let database = Connection::open(directory.join("yarrow.db")).unwrap();
    let sql = "select action || ' ' || outcome from audit where action like '%cleanup%' and outcome <> 428 order by id";
    let mut statement = database.prepare(sql).unwrap();
    statement.query_map((), |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

#[test]
fn audits_a_purge_before_it_starts() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    install(&directory);
    for what in ["all", "verification-codes", "payment-records", "feedback"] {
        let _held = lock_backups(&directory);
        let mut process = spawn_command(&directory, &["cleanup", what, "--yes"]);
        let started_at = format!("yarrow cleanup {what} 202");
        eventually("the start is audited", || purge_events(&directory).last() == Some(&started_at));
        process.kill().unwrap();
        process.wait().unwrap();
    }
    CommandOutput::run(&directory, &["cleanup", "expired", "--yes"], "").expect(0);
    assert_eq!(purge_events(&directory)[4..], ["yarrow cleanup expired 202", "yarrow cleanup expired 200"]);
    CommandOutput::run(&directory, &["cleanup", "all", "--yes"], "").expect(0);
    assert_eq!(purge_events(&directory)[6..], ["yarrow cleanup all 202", "yarrow cleanup all 200"]);
}

/// Confirms a purge over HTTP and returns once it has begun.
fn begin_purge(server: &Server, key: &str, what: &str) -> RawConnection {
    let token = requested(server, key, what)["confirm"].as_str().unwrap().to_owned();
    let mut wire = RawConnection::to(server);
    assert!(wire.send(&format!(
        "DELETE /admin/data-cleanup/{what}?confirm={token} HTTP/1.1\r\nhost: yarrow\r\nauthorization: Bearer {key}\r\n\
         content-length: 0\r\n\r\n"
    )));
    eventually("it is confirmed", || server.value::<i64>("select count(*) from confirmations") == 0);
    wire
}

#[test]
fn audits_a_purge_over_http_before_and_after() {
    let server = Setup::default().with("BACKUP_EVERY", "0 s").in_own_process().start();
    let (started_at, done) =
        ("DELETE /admin/data-cleanup/verification-codes 202", "DELETE /admin/data-cleanup/verification-codes 200");
    let key = server.api_key("tests");
    cleared(&server, &key, "verification-codes");
    assert_eq!(purge_events(server.directory()), [started_at, done]);
    let _held = lock_backups(server.directory());
    let _waiting = begin_purge(&server, &key, "verification-codes");
    eventually("the start is audited", || purge_events(server.directory()).len() == 3);
    let directory = server.kill();
    assert_eq!(purge_events(&directory)[2..], [started_at]);
    std::fs::remove_dir_all(directory.parent().unwrap()).unwrap();
}

#[test]
fn a_shutdown_waits_for_an_operation_whose_client_disconnected() {
    let mut server = Setup::default().with("BACKUP_EVERY", "0 s").start();
    server.request_code("13800138001");
    let held = lock_backups(server.directory());
    drop(begin_purge(&server, &server.api_key("hasty"), "verification-codes"));
    server.ask_to_stop();
    sleep(Duration::from_millis(700));
    drop(held);
    assert_eq!(server.wait_for_end(), Some(0));
    assert_eq!(server.value::<i64>("select count(*) from codes"), 0);
    let rows = purge_events(server.directory());
    assert_eq!(rows.last().map(String::as_str), Some("DELETE /admin/data-cleanup/verification-codes 200"), "{rows:?}");
}

#[test]
fn a_shutdown_does_not_wait_for_the_backup_of_a_purge() {
    let mut server = Setup::default().with("LIMITS_DRAIN_TIMEOUT", "300 ms").with("BACKUP_EVERY", "0 s").start();
    let (user, key) = (server.sign_in("13800138000"), server.api_key("tests"));
    // A key file that never ends blocks the backup that reads it.
    let stored = server.directory().join("sandbox.key");
    std::fs::remove_file(&stored).unwrap();
    assert!(Command::new("mkfifo").arg(&stored).status().unwrap().success());
    let _waiting = begin_purge(&server, &key, "all");
    let database = server.database_file();
    database.busy_timeout(Duration::ZERO).unwrap();
    eventually("writes are blocked", || database.execute_batch("begin immediate; rollback").is_err());
    let started_at = Instant::now();
    assert_eq!(server.terminate(), Some(0));
    assert!(started_at.elapsed() < Duration::from_secs(6), "{:?}", started_at.elapsed());
    let left: String = server.value("select group_concat(phone_number) from users");
    assert_eq!(left, user.phone_number);
    let rows = purge_events(server.directory());
    // The start, once.
    assert_eq!(rows, ["DELETE /admin/data-cleanup/all 202"]);
}

#[test]
fn requests_from_before_a_purge_are_not_logged_after_it() {
    use std::net::Ipv4Addr;

    use yarrow::{
        domain::operations::network_log::{self, Entry},
        types::UserId,
    };

    let (_directory, app) = open_app(&[]);
    let entry = |request_id: &str, duration: Duration| Entry {
        at: app.core.clock.now(),
        user: Some(UserId(7)),
        client: Ipv4Addr::LOCALHOST.into(),
        method: "GET",
        route: Some("/coin/balance"),
        status: 200,
        duration_us: u32::try_from(duration.as_micros()).unwrap(),
        request_id: request_id.into(),
    };
    app.network_log.record(entry("written", Duration::ZERO));
    network_log::flush(&app.network_log).unwrap();
    app.network_log.record(entry("in memory", Duration::ZERO));
    sleep(Duration::from_millis(2));
    assert_eq!(network_log::delete_all(&app.network_log).unwrap(), 1);
    sleep(Duration::from_millis(2));
    // It was running during the purge.
    app.network_log.record(entry("running", Duration::from_secs(1)));
    network_log::flush(&app.network_log).unwrap();
    assert_eq!(network_log::count(&app.network_log).unwrap(), 0);
    app.network_log.record(entry("later", Duration::ZERO));
    network_log::flush(&app.network_log).unwrap();
    assert_eq!(network_log::count(&app.network_log).unwrap(), 1);
}
