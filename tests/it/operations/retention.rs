//! Retention: expired rows are deleted, and every period is configurable.

use std::time::{Duration, Instant};

use crate::support::{CommandOutput, Setup, eventually};

const DAY: i64 = 24 * 60 * 60 * 1_000;

/// A setting with its days, a row whose age replaces `AGE`, and a query that counts it. No default is used.
const KEPT: &[(&str, i64, &str, &str)] = &[
    (
        "access_log",
        7,
        "insert into access_log (at, client_ip, method, status, duration_us, request_id) \
         values (NOW - AGE, '192.0.2.1', 'GET', 200, 1, 'aged')",
        "access_log where request_id = 'aged'",
    ),
    (
        "code_sends",
        5,
        "insert into code_sends (address, client_network, sent_at) values ('aged', '192.0.2.1', NOW - AGE)",
        "code_sends where address = 'aged'",
    ),
    (
        "code_messages",
        8,
        "insert into code_messages (address, channel, purpose, asked_at, outcome) \
         values ('aged', 'sms', 'sign_in', NOW - AGE, 'sent')",
        "code_messages where address = 'aged'",
    ),
    (
        "deactivated_history",
        3,
        "insert into history (user_id, sequence, local_record_id, created_at, updated_at) \
         values (USER, (select coalesce(max(sequence), 0) + 1 from history), hex(randomblob(8)), 1, 1); \
         insert into history_hidings (user_id, hidden_at, through, surplus_through) \
         values (USER, NOW - AGE, (select max(sequence) from history), 0)",
        "history",
    ),
    (
        "parked_points",
        11,
        "insert into email_rewards (email_hmac, created_at, parked_points, parking, parked_at) \
         values (randomblob(32), 1, 5, 'aged', NOW - AGE)",
        "email_rewards where parked_points is not null",
    ),
    (
        "expired_notifications",
        4,
        "insert into notifications (kind, title, body, payload, created_at, expires_at, is_live) \
         values ('system', 'aged', '', '{}', 1, NOW - AGE, 0)",
        "notifications",
    ),
    (
        "violations",
        6,
        "insert into violations (user_id, content_type, violation_type, words, masked_text, provider, created_at) \
         values (USER, 'question', 'ads', '[]', '', 'local', NOW - AGE)",
        "violations",
    ),
    (
        "idempotency_keys",
        2,
        "insert into idempotency_keys (caller, route, key, request_sha256, status, body, created_at) \
         values ('user:1', 'POST /', hex(randomblob(8)), x'00', 200, x'', NOW - AGE)",
        "idempotency_keys",
    ),
    (
        "deletions",
        12,
        // A little longer, because a client may still be reading.
        "insert into deletions (user_id, number, kind, subject, deleted_at) \
         values (USER, AGE, 'session', 'aged', NOW - AGE - 60000)",
        "deletions where subject = 'aged'",
    ),
    (
        "webhook_events",
        13,
        "insert into webhook_events (event_id, kind, data, state, created_at, due_at, attempts) \
         values (hex(randomblob(8)), 'aged', '{}', 'delivered', NOW - AGE, 0, 1)",
        "webhook_events where kind = 'aged'",
    ),
];

#[test]
fn every_retention_setting_applies() {
    let mut server = Setup::default().start();
    let user = server.sign_in("13800138000");
    let now: i64 = server.value("select cast(unixepoch() * 1000 as integer)");
    let hour = DAY / 24;
    for (_, days, sql, _) in KEPT {
        // The older first: some tables are swept from their oldest row on.
        for age in [days * DAY + hour, days * DAY - hour] {
            let sql = sql.replace("NOW", &now.to_string()).replace("AGE", &age.to_string());
            let sql = sql.replace("USER", &user.user_id);
            server.edit(&sql);
        }
    }
    let settings = server.directory().join("yarrow.toml");
    let lines: Vec<_> = KEPT.iter().map(|(name, days, ..)| format!("{name} = \"{days} days\"")).collect();
    std::fs::write(&settings, format!("[retention]\n{}\n", lines.join("\n"))).unwrap();
    let arguments = ["cleanup", "expired", "--yes", "--config", settings.to_str().unwrap()];
    CommandOutput::run(server.directory(), &arguments, "").expect(0);
    for (name, _, _, count) in KEPT {
        let left: i64 = server.value(&format!("select count(*) from {count}"));
        assert_eq!(left, 1, "retention.{name}: the older of two rows is deleted, the younger stays");
    }
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn disagreements_expire_with_violations() {
    let server = Setup::default().start();
    for age in [181, 179] {
        server.edit(&format!(
            "insert into disagreements (content_type, decided_by, local_allowed, external_allowed, words, labels, \
             masked_text, created_at) values ('question', 'local', 1, 0, '[]', '[]', '{age}', \
             unixepoch() * 1000 - {age} * {DAY})"
        ));
    }
    CommandOutput::run(server.directory(), &["cleanup", "expired", "--yes"], "").expect(0);
    assert_eq!(server.value::<String>("select group_concat(masked_text) from disagreements"), "179");
}

#[test]
fn an_entry_in_the_future_keeps_no_older_one_in_the_network_log() {
    let server = Setup::default().start();
    for (id, days) in [("ahead", -40), ("old", 200), ("ahead too", -1), ("older", 210), ("young", 1), ("late", -40)] {
        server.edit(&format!(
            "insert into access_log (at, client_ip, method, status, duration_us, request_id) \
             values (unixepoch() * 1000 - {days} * {DAY}, '192.0.2.1', 'GET', 200, 1, '{id}')"
        ));
    }
    CommandOutput::run(server.directory(), &["cleanup", "expired", "--yes"], "").expect(0);
    let left = "select group_concat(request_id) from (select request_id from access_log order by id)";
    assert_eq!(server.value::<String>(left), "young,ahead too,ahead,late");
}

#[test]
fn a_shutdown_does_not_wait_for_a_sweep() {
    // Filled before jobs run at short intervals, which would wait for the write lock meanwhile.
    let server = Setup::default().in_own_process().start();
    server.edit(
        "with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < 3000000) \
         insert into code_sends (address, client_network, sent_at) select '', '', n from numbers",
    );
    let mut server = server.crash_and_restart(Setup::default().with_fast_jobs().with("BACKUP_EVERY", "0 s"));
    // The oldest go first.
    eventually("a sweep has begun", || server.value::<i64>("select min(sent_at) from code_sends") > 1);
    let started_at = Instant::now();
    assert_eq!(server.terminate(), Some(0));
    let took = started_at.elapsed();
    assert!(
        server.value::<bool>("select exists (select 1 from code_sends)"),
        "there was too little to delete, which proves nothing"
    );
    assert!(took < Duration::from_secs(5), "{took:?}");
    server.assert_file_is_sound();
    let failed: Vec<_> = server.lines().into_iter().filter(|line| line.contains("ERROR")).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn deletes_expired_codes_and_keeps_the_others_between_them() {
    let server = Setup::default().start();
    // More than one batch of each kind, alternating in table order.
    server.edit(
        "with recursive numbers (n) as (select 0 union all select n + 1 from numbers where n < 999) \
         insert into codes (address, purpose, code_hmac, tries_left, expires_at) \
         select printf('%04d', n), 'sign_in', zeroblob(32), 5, \
         unixepoch() * 1000 - 86400000 + case n % 2 when 1 then -3600000 else 3600000 end from numbers",
    );
    CommandOutput::run(server.directory(), &["cleanup", "expired", "--yes"], "").expect(0);
    let left = "select count(*) = 500 and max(cast(address as integer) % 2) = 0 from codes";
    assert!(server.value::<bool>(left), "those that expired a day ago are deleted, and no others");
}

#[test]
fn covers_every_retention_setting() {
    let output = crate::support::Binary::command().args(["config", "show", "--json"]).output().unwrap();
    let shown: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    let names = shown.iter().filter_map(|setting| setting["name"].as_str()?.strip_prefix("retention."));
    // Payment records are only purged on request, and this setting is the minimum age.
    let names = names.filter(|name| *name != "payment_records");
    let left_out: Vec<_> = names.filter(|name| !KEPT.iter().any(|(known, ..)| known == name)).collect();
    assert!(left_out.is_empty(), "settings without a test: {left_out:?}");
}
