//! Fills a data directory with history: `rows` castings, ledger entries and network log entries, a fifth as many
//! interpretations and notifications, and a hundredth as many users.
//!
//! Every user has the same number of rows at every size, so only the tables grow and not the rows that one request
//! touches. A user's rows are spread over the tables, as they arrive in real use. They are written straight into the
//! file, without triggers and journal; through the operations it would take an hour. Derived rows, and those that a
//! start creates, come from the service itself.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    path::Path,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use rusqlite::{Connection, Transaction, params};
use yarrow::{
    app::{App, OpenMode},
    config::{Sources, load},
    domain::{
        money::ledger,
        operations::{
            admins::{self, roles::Role},
            network_log::{self, Entry},
        },
    },
    store::files::DATABASE,
    types::{Timestamp, UserId, sha256},
};

use crate::support::Failure;

pub const PER_USER: i64 = 100;
/// Castings and ledger entries for each interpretation and notification.
const PER_RECORD: i64 = 5;
/// Consecutive requests of one user.
const BURST: i64 = 32;
/// Network log entries written in one batch.
const FLUSHED: i64 = 20_000;
const RECIPIENTS: i64 = 100;
const DAY: i64 = 24 * 60 * 60 * 1000;
/// One in this many castings and log entries is past its retention, so that a sweep deletes it.
const OVERDUE: i64 = 100;

pub struct Filled {
    pub rows: i64,
    pub users: i64,
    pub admin_key: String,
}

pub fn open(directory: &Path) -> Result<App, Failure> {
    let flags = BTreeMap::from([("data_dir".to_owned(), directory.to_string_lossy().into_owned())]);
    let config = load(Sources { flags, ..Sources::default() })?.config;
    Ok(App::open(config, OpenMode::Server, &(Arc::new(|_: &str| {}) as _))?)
}

/// Fills the directory, unless an earlier run left it filled.
pub fn fill_or_find(directory: &Path, rows: i64) -> Result<Filled, Failure> {
    let kept = directory.join("admin-key");
    if let Ok(admin_key) = std::fs::read_to_string(&kept) {
        return Ok(Filled { rows, users: users_of(rows), admin_key });
    }
    let filled = fill(directory, rows)?;
    std::fs::write(kept, &filled.admin_key)?;
    Ok(filled)
}

fn users_of(rows: i64) -> i64 {
    (rows / PER_USER).max(1)
}

fn fill(directory: &Path, rows: i64) -> Result<Filled, Failure> {
    close(open(directory)?);
    let users = users_of(rows);
    let mut connection = Connection::open(directory.join(DATABASE))?;
    let pragmas = "pragma journal_mode = off; pragma synchronous = off; pragma cache_size = -2000000; \
                   pragma foreign_keys = off; pragma locking_mode = exclusive;";
    connection.execute_batch(pragmas)?;
    let now = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?;
    let transaction = connection.transaction()?;
    fill_users(&transaction, users, now)?;
    fill_history(&transaction, rows, users, now)?;
    fill_ledger(&transaction, rows, users, now)?;
    fill_records(&transaction, rows / PER_RECORD, users, now)?;
    fill_notifications(&transaction, rows / PER_RECORD, users, now)?;
    transaction.commit()?;
    connection.execute_batch("pragma journal_mode = wal; pragma optimize;")?;
    drop(connection);
    let app = open(directory)?;
    ledger::seals::seal_all(&app.core)?;
    fill_log(&app, rows, users, now)?;
    let admin_key = admins::keys::create(&app.core, "growth", Role::Owner, None)?.wait()?.reveal().to_owned();
    close(app);
    Ok(Filled { rows, users, admin_key })
}

pub fn close(app: App) {
    app.network_log.close();
    app.core.store.close();
    drop(app);
}

pub fn token(user: i64) -> String {
    format!("{user:043}")
}

pub fn phone_number(user: i64) -> String {
    format!("138{user:08}")
}

/// Returns a trace id scattered over the whole range, like a random one.
pub fn trace_id(record: i64) -> String {
    format!("{:032x}", u128::from(record.unsigned_abs() + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
}

/// Returns the creation time of a row, if `of` rows arrive evenly over `days` days.
fn at(now: i64, row: i64, of: i64, days: i64) -> Result<i64, Failure> {
    let age = i128::from(of - row) * i128::from(days * DAY) / i128::from(of);
    Ok(now - i64::try_from(age)?)
}

pub fn fill_users(tx: &Transaction<'_>, users: i64, now: i64) -> Result<(), Failure> {
    let mut user_row = tx.prepare("insert into users (id, phone_number, created_at) values (?1, ?2, ?3)")?;
    let mut token_row = tx.prepare(
        "insert into tokens (token_sha256, user_id, expires_at, family, family_expires_at, created_at, label, \
         signed_in_at, last_used_at) values (?1, ?2, ?3, ?1, ?3, ?4, '', ?4, ?4)",
    )?;
    for user in 1..=users {
        let (phone_number, created_at) = (phone_number(user), now - 100 * DAY);
        user_row.execute(params![user, phone_number, created_at])?;
        token_row.execute(params![sha256(&token(user)), user, now + 20 * DAY, now])?;
    }
    Ok(())
}

fn fill_history(tx: &Transaction<'_>, rows: i64, users: i64, now: i64) -> Result<(), Failure> {
    let mut casting = tx.prepare(
        "insert into history (user_id, sequence, local_record_id, question_type, question, json_data, \
         client_timestamp, created_at, updated_at) \
         values (?1, ?2, ?3, 'career', '今年换工作合适吗？', '{\"lines\":[7,8,8,8,7,6],\"method\":\"coins\"}', ?4, ?4, ?4)",
    )?;
    let mut hiding = tx
        .prepare("insert into history_hidings (user_id, hidden_at, through, surplus_through) values (?1, ?2, ?3, 0)")?;
    for row in 0..rows {
        let created_at = at(now, row, rows, 90)?;
        let (user, sequence) = (row % users + 1, row / users + 1);
        casting.execute(params![user, sequence, format!("{created_at}-{row:x}"), created_at])?;
        if row < rows / OVERDUE {
            hiding.execute(params![user, created_at, sequence])?;
        }
    }
    Ok(())
}

fn fill_ledger(tx: &Transaction<'_>, rows: i64, users: i64, now: i64) -> Result<(), Failure> {
    let mut entry = tx.prepare(
        "insert into ledger_entries (user_id, asset, sequence, delta, balance_after, kind, created_at) \
         values (?1, 'coin', ?2, 1000, ?2 * 1000, 'topup', ?3)",
    )?;
    for row in 0..rows {
        entry.execute(params![row % users + 1, row / users + 1, at(now, row, rows, 90)?])?;
    }
    tx.execute(
        "insert into balances (user_id, asset, balance, last_sequence) \
         select user_id, asset, max(sequence) * 1000, max(sequence) from ledger_entries group by user_id, asset",
        (),
    )?;
    Ok(())
}

/// Fills the network log through the service, which keeps the counts.
fn fill_log(app: &App, rows: i64, users: i64, now: i64) -> Result<(), Failure> {
    for row in 0..rows {
        let user = row / BURST % users + 1;
        // The first entries are past the retention.
        let came = if row < rows / OVERDUE { now - 200 * DAY } else { at(now, row, rows, 90)? };
        app.network_log.record(Entry {
            at: Timestamp(came),
            user: Some(UserId(user)),
            client: client_of(user),
            method: "GET",
            route: Some("/coin/balance"),
            status: if row % 50 == 0 { 404 } else { 200 },
            duration_us: 100,
            request_id: format!("{row:024x}").as_str().into(),
        });
        if row % FLUSHED == 0 {
            network_log::flush(&app.network_log)?;
        }
    }
    network_log::flush(&app.network_log)?;
    Ok(())
}

pub fn client_of(user: i64) -> IpAddr {
    let [.., third, fourth] = user.to_be_bytes();
    IpAddr::from([10, third, fourth, 1])
}

fn fill_records(tx: &Transaction<'_>, records: i64, users: i64, now: i64) -> Result<(), Failure> {
    let mut record = tx.prepare(
        "insert into interpretations (trace_id, user_id, question_type, question, divination_data, status, provider, \
         model, prompt_version, result, duration_ms, created_at, finished_at) values (?1, ?2, 'career', \
         '今年换工作合适吗？', '{\"lines\":[7,8,8,8,7,6]}', ?3, 'offline', 'offline', '1', \
         '水雷屯。云雷屯，君子以经纶。', ?4, ?5, ?5)",
    )?;
    for row in 0..records {
        let status = if row % 100 == 0 { "failed" } else { "succeeded" };
        let created_at = at(now, row, records, 90)?;
        record.execute(params![trace_id(row), row % users + 1, status, row % 9973, created_at])?;
    }
    Ok(())
}

fn fill_notifications(tx: &Transaction<'_>, rows: i64, users: i64, now: i64) -> Result<(), Failure> {
    let mut notification = tx.prepare(
        "insert into notifications (id, kind, title, body, payload, created_at) \
         values (?1, 'activity', '春分', '今日春分，昼夜平分。', '{}', ?2)",
    )?;
    let mut recipient = tx.prepare(
        "insert into notification_recipients (user_id, notification_id, kind) values (?1, ?2, 'activity') \
         on conflict do nothing",
    )?;
    for row in 0..rows {
        if row % RECIPIENTS == 0 {
            notification.execute(params![row / RECIPIENTS + 1, at(now, row, rows, 90)?])?;
        }
        recipient.execute(params![row % users + 1, row / RECIPIENTS + 1])?;
    }
    Ok(())
}
