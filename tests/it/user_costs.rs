//! The time of the writer that one user's data can take from others: `SECURITY.md` has the table. With small numbers here,
//! with the full ones as `long_` tests. Each operation of the writer that takes longer than the limit is a line of the log.

use std::{
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
    thread::scope,
    time::{Duration, Instant},
};

use serde_json::json;

use crate::support::{Caller, Server, Setup, eventually};

/// The operations of the writer that may take longer than the limit.
const MAX_SLOW: usize = 5;
/// These operations, by a part of their names in the log.
const ACTS: [&str; 7] =
    ["deactivate_all", "restore_all", "history::delete", "steps::", "deletion::", "user_data::", "sending::"];
const DAY: i64 = 24 * 60 * 60 * 1000;

/// The numbers of a run.
struct Scale {
    accounts: usize,
    /// Records of each account, with about 94 KiB each.
    records: usize,
    /// Rows of other kinds in each account.
    rows: usize,
    /// The longest time of one operation of the writer, without the sync.
    limit: &'static str,
}

const SMALL: Scale = Scale { accounts: 2, records: 160, rows: 500, limit: "60ms" };
/// 60 MB of history in each of sixteen accounts.
const FULL: Scale = Scale { accounts: 16, records: 640, rows: 5_000, limit: "50ms" };

/// Adds rows of the kinds of which an account may have many.
fn add_rows(server: &Server, user: &Caller, rows: usize) {
    let id = &user.user_id;
    let text = "z".repeat(4_000);
    for insert in [
        format!(
            "insert into sessions (id, user_id, sequence, question, method, lines, cast_at, time_zone, day_start, \
             points_spent, created_at) select 's-{id}-' || n, {id}, n, 'question', 'three_coins', '777777', 1, 'UTC', \
             '23:00', 0, 1 from numbers"
        ),
        format!("insert into session_texts (user_id, sequence, text) select {id}, n, 'question' from numbers"),
        format!(
            "insert into interpretations (trace_id, user_id, question, divination_data, status, provider, model, \
             prompt_version, result, created_at, finished_at) select 't-{id}-' || n, {id}, 'question', '{text}', \
             'succeeded', 'stub', 'stub', '1', '{text}', n, n from numbers"
        ),
        format!(
            "insert into violations (user_id, content_type, violation_type, words, masked_text, provider, created_at) \
             select {id}, 'question', 'ads', '[]', 'text', 'local', n from numbers"
        ),
        format!(
            "insert into deletions (user_id, number, kind, subject, deleted_at) \
             select {id}, n, 'session', 's-' || n, 1 from numbers"
        ),
        format!("insert into notification_reads (user_id, notification_id, read_at) select {id}, n, 1 from numbers"),
        format!(
            "insert into idempotency_keys (caller, route, key, request_sha256, status, body, created_at) \
             select 'user:{id}', '/', 'k-' || n, zeroblob(32), 200, zeroblob(2000), 1 from numbers"
        ),
    ] {
        let (head, select) = insert.split_once(" select ").unwrap();
        server.edit(&format!(
            "with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < {rows}) {head} \
             select {select}"
        ));
    }
}

/// Saves records in batches of 20.
fn fill(server: &Server, user: &Caller, records: usize) {
    for first in (0..records).step_by(20) {
        let record = |number: usize| {
            json!({
                "localRecordId": format!("r-{number}"), "jsonData": "x".repeat(63_000), "aiResult": "y".repeat(31_000),
            })
        };
        let batch: Vec<_> = (first..records.min(first + 20)).map(record).collect();
        server.post("/divination-history/save-batch").by(user).json(&json!({ "records": batch })).send().expect(200);
    }
}

/// Works while another user saves, and prints the longest time that a save took.
fn beside_saves(server: &Server, other: &Caller, what: &str, work: impl FnOnce()) {
    let (over, saves) = (AtomicBool::new(false), AtomicU32::new(0));
    let slowest = scope(|threads| {
        let saver = threads.spawn(|| {
            let mut slowest = Duration::ZERO;
            while !over.load(Ordering::Relaxed) {
                let record = json!({ "localRecordId": format!("r-{}", saves.fetch_add(1, Ordering::Relaxed) % 50) });
                let begun = Instant::now();
                server.post("/divination-history/save").by(other).json(&record).send().expect(200);
                slowest = slowest.max(begun.elapsed());
            }
            slowest
        });
        work();
        over.store(true, Ordering::Relaxed);
        saver.join().unwrap()
    });
    println!("{what}: {} saves of another user, {slowest:?} at most", saves.load(Ordering::Relaxed));
}

fn in_parallel(users: &[Caller], work: impl Fn(&Caller) + Sync) {
    scope(|threads| {
        for user in users {
            threads.spawn(|| work(user));
        }
    });
}

fn large_accounts_delay_nobody(scale: &Scale) {
    let server = Setup::default().with("LIMITS_SLOW_QUERY", scale.limit).with("BACKUP_EVERY", "0 s").in_own_process();
    let server = server.with("LIMITS_BODY_TIMEOUT", "120 s").start();
    let other = server.sign_in("13800138000");
    let users: Vec<_> = (1..=scale.accounts).map(|number| server.sign_in(&format!("138001381{number:02}"))).collect();
    in_parallel(&users, |user| fill(&server, user, scale.records));
    for user in &users {
        add_rows(&server, user, scale.rows);
    }
    let post = |user: &Caller, path: &str| server.post(&format!("/divination-history/{path}")).by(user).send();
    beside_saves(&server, &other, "hiding and restoring in turn", || {
        in_parallel(&users, |user| {
            let mut rounds = 0;
            while post(user, "deactivate-all").status == 200 {
                assert_eq!(post(user, "restore-all").expect(200).json()["restored"], scale.records);
                rounds += 1;
            }
            assert_eq!(rounds, 10, "the repetition is limited");
            post(user, "deactivate-all").expect_problem(429, "too_many_requests");
        });
    });
    beside_saves(&server, &other, "exporting", || {
        in_parallel(&users, |user| {
            let export = server.get("/api/v1/account/export").by(user).send();
            assert!(matches!(export.status, 200 | 503), "{}", export.status);
        });
    });
    let key = server.api_key("operator");
    beside_saves(&server, &other, "acts of the staff", || {
        let all = json!({ "audience": "all", "title": "to all", "body": "broadcast" });
        server.post("/admin/notifications").token(&key).json(&all).send().expect(201);
        server.command(&["users", "fix", &users[0].user_id]).expect(0);
        server.command(&["coins", "reset", &users[0].user_id, "--reason", "test", "--yes"]).expect(0);
        server.command(&["webhooks", "replay"]).expect(0);
    });
    let (expiring, deleted) = users.split_at(scale.accounts / 2);
    server.edit(&format!("update history_hidings set hidden_at = hidden_at - {DAY}"));
    in_parallel(expiring, |user| drop(post(user, "deactivate-all").expect(200)));
    server.edit(&format!("update history_hidings set hidden_at = hidden_at - {}", 31 * DAY));
    beside_saves(&server, &other, "the end of hidden records", || {
        server.command(&["cleanup", "expired", "--yes"]).expect(0);
    });
    beside_saves(&server, &other, "repairing all users", || drop(server.command(&["sync", "users"]).expect(0)));
    beside_saves(&server, &other, "deleting records", || {
        let ids: Vec<_> = (0..100).map(|number| format!("r-{number}")).collect();
        let ids = json!({ "localRecordIds": ids });
        in_parallel(deleted, |user| {
            let deleted = server.post("/divination-history/delete").by(user).json(&ids).send().expect(200).json();
            assert_eq!(deleted["deleted"], 100);
        });
        eventually("the rows are deleted", || {
            server.value::<i64>("select count(*) from history where sequence < 0") == 0
        });
    });
    beside_saves(&server, &other, "deleting accounts", || {
        in_parallel(deleted, |user| drop(server.delete("/api/v1/account").by(user).send().expect(204)));
        eventually("nothing is left", || server.value::<i64>("select count(*) from account_erasures") == 0);
    });
    assert_eq!(server.value::<i64>("select count(*) from history where sequence > 50 or bytes > 1000"), 0);
    let is_slow = |line: &String| line.contains("slow query") && ACTS.iter().any(|act| line.contains(act));
    let slow: Vec<_> = server.lines().into_iter().filter(is_slow).collect();
    // The system may stop the writer for others now and then.
    assert!(slow.len() <= MAX_SLOW, "{slow:#?}");
}

#[test]
fn large_accounts_delay_no_save_of_others() {
    large_accounts_delay_nobody(&SMALL);
}

#[test]
#[ignore = "stores a gigabyte; run with `cargo test --test it -- --ignored long_`"]
fn long_sixteen_large_accounts_delay_no_save_of_others() {
    large_accounts_delay_nobody(&FULL);
}

fn an_import_delays_nobody(scale: &Scale) {
    let server = Setup::default().with("LIMITS_SLOW_QUERY", scale.limit).with("BACKUP_EVERY", "0 s").in_own_process();
    let server = server.start();
    let other = server.sign_in("13800138000");
    let import = |kind: &str, text: String| {
        let path = server.directory().join(format!("{kind}.ndjson"));
        std::fs::write(&path, text).unwrap();
        server.command(&["import", kind, path.to_str().unwrap(), "--source", "legacy"]).expect(0).json()["added"]
            .clone()
    };
    let record = |user: usize, number: usize| {
        let text = "x".repeat(60_000);
        json!({ "userId": format!("u-{user}"), "localRecordId": format!("r-{number}"), "jsonData": text }).to_string()
    };
    let users = 0..scale.accounts;
    let person = |user: usize| json!({ "id": format!("u-{user}"), "phoneNumber": format!("138001381{user:02}") });
    import("users", users.clone().map(|user| person(user).to_string() + "\n").collect());
    let records = users.flat_map(|user| (0..scale.records).map(move |number| record(user, number) + "\n")).collect();
    // The command has a writer of its own, which shares the lock of the file.
    beside_saves(&server, &other, "importing", || {
        assert_eq!(import("history", records), scale.accounts * scale.records);
    });
}

#[test]
fn an_import_delays_no_save_of_others() {
    an_import_delays_nobody(&SMALL);
}

#[test]
#[ignore = "stores a gigabyte; run with `cargo test --test it -- --ignored long_`"]
fn long_a_large_import_delays_no_save_of_others() {
    an_import_delays_nobody(&FULL);
}

#[test]
fn history_is_hidden_and_restored_a_limited_number_of_times_a_day() {
    let server = Setup::default().start();
    let user = server.sign_in("13800138000");
    server.post("/divination-history/save").by(&user).json(&json!({ "localRecordId": "a" })).send().expect(200);
    let post = |path: &str| server.post(&format!("/divination-history/{path}")).by(&user).send();
    let hour_later = || {
        for (table, column) in [("history_hidings", "hidden_at"), ("history_restorings", "restored_at")] {
            server.edit(&format!("update {table} set {column} = {column} - 3600001"));
        }
    };
    for _ in 0..2 {
        for _ in 0..10 {
            post("deactivate-all").expect(200);
            assert_eq!(post("restore-all").expect(200).json()["restored"], 1);
        }
        post("deactivate-all").expect_problem(429, "too_many_requests");
        // What shows nothing is not limited.
        assert_eq!(post("restore-all").expect(200).json()["restored"], 0);
        hour_later();
    }
    let refused = post("deactivate-all").expect_problem(429, "too_many_requests");
    let wait: i64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!(wait > 20 * 3600, "{wait} s");
    (0..23).for_each(|_| hour_later());
    post("deactivate-all").expect(200);
    post("restore-all").expect(200);
}
