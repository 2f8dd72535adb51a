//! Acknowledged effects, recorded outside the killed process and compared with the database.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use rusqlite::Connection;

use crate::support;

/// An acknowledged effect.
#[derive(Clone, Debug)]
pub enum Effect {
    /// The record has this version or a later one.
    Saved { id: String, version: u64 },
    /// A coin was spent under this key.
    Used { key: String },
    /// A hexagram was cast and paid for under this key.
    Cast { id: String },
    /// A notification was sent.
    Sent { id: String },
    /// A user read a notification, first at this time.
    Read { id: String, read_at: i64 },
    /// An order was paid and credited.
    Credited { order_no: String },
    /// A token was issued.
    SignedIn { token: String },
    /// A casting was interpreted.
    Interpreted { trace_id: String },
}

/// The requests sent and the effects acknowledged.
#[derive(Default)]
pub struct Oracle {
    numbers: AtomicU64,
    /// By request id.
    acknowledged: Mutex<BTreeMap<String, Effect>>,
    /// The newest version sent of each record, acknowledged or not.
    sent: Mutex<BTreeMap<String, u64>>,
}

impl Oracle {
    pub fn next(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    pub fn will_save(&self, id: &str, version: u64) {
        self.sent.lock().unwrap().insert(id.to_owned(), version);
    }

    pub fn acknowledge(&self, request_id: &str, effect: Effect) {
        self.acknowledged.lock().unwrap().insert(request_id.to_owned(), effect);
    }

    pub fn count(&self) -> usize {
        self.acknowledged.lock().unwrap().len()
    }

    pub fn acknowledged(&self) -> BTreeMap<String, Effect> {
        self.acknowledged.lock().unwrap().clone()
    }

    /// Checks that the database contains each effect exactly once and complete.
    pub fn check<'a>(&self, database: &Connection, effects: impl Iterator<Item = &'a Effect>) {
        assert_whole(database);
        let stored = Stored::read(database);
        let sent = self.sent.lock().unwrap();
        let mut newest = BTreeMap::new();
        for effect in effects {
            match effect {
                Effect::Saved { id, version } => {
                    let newest = newest.entry(id).or_insert(*version);
                    *newest = (*newest).max(*version);
                }
                Effect::Used { key } => assert!(stored.uses.contains(key), "the use {key} is missing"),
                Effect::Cast { id } => assert!(stored.sessions.contains(id), "the session {id} is missing"),
                Effect::Sent { id } => assert!(stored.notifications.contains(id), "the notification {id} is missing"),
                Effect::Read { id, read_at } => {
                    assert_eq!(stored.reads.get(id), Some(read_at), "{id} is unread, or has a later read time");
                }
                Effect::Credited { order_no } => assert!(stored.credited.contains(order_no), "{order_no} is unpaid"),
                Effect::SignedIn { token } => {
                    let digest = ring::digest::digest(&ring::digest::SHA256, token.as_bytes());
                    assert!(stored.tokens.contains(digest.as_ref()), "a token is missing");
                }
                Effect::Interpreted { trace_id } => {
                    assert!(stored.interpretations.contains(trace_id), "the interpretation {trace_id} is missing");
                }
            }
        }
        for (id, version) in newest {
            let found = stored.records.get(id).unwrap_or_else(|| panic!("the record {id} is missing"));
            assert!(*found >= version, "the record {id} has version {found}, and {version} was acknowledged");
        }
        for (id, version) in &stored.records {
            let newest = sent.get(id).unwrap_or_else(|| panic!("{id} was never sent"));
            assert!(version <= newest, "the record {id} has version {version}, which was never sent");
        }
    }
}

/// The effects stored in a database.
struct Stored {
    records: BTreeMap<String, u64>,
    uses: BTreeSet<String>,
    sessions: BTreeSet<String>,
    notifications: BTreeSet<String>,
    reads: BTreeMap<String, i64>,
    credited: BTreeSet<String>,
    tokens: BTreeSet<Vec<u8>>,
    interpretations: BTreeSet<String>,
}

impl Stored {
    fn read(database: &Connection) -> Self {
        Self {
            records: pairs::<_, String>(database, "select local_record_id, question from history")
                .into_iter()
                .map(|(id, question)| (id, question.strip_prefix("version ").unwrap().parse().unwrap()))
                .collect(),
            uses: column(
                database,
                "select key from idempotency_keys where route like '%/coin/consume' and status = 200",
            ),
            sessions: column(database, "select id from sessions"),
            notifications: column(database, "select cast(id as text) from notifications"),
            reads: pairs(database, "select cast(notification_id as text), read_at from notification_reads"),
            credited: column(database, "select order_no from payment_orders where state = 'credited'"),
            tokens: column(database, "select token_sha256 from tokens"),
            interpretations: column(database, "select trace_id from interpretations where status = 'succeeded'"),
        }
    }
}

fn column<T: rusqlite::types::FromSql + Ord>(database: &Connection, sql: &str) -> BTreeSet<T> {
    let mut statement = database.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.map(Result::unwrap).collect()
}

fn pairs<K, V>(database: &Connection, sql: &str) -> BTreeMap<K, V>
where
    K: rusqlite::types::FromSql + Ord,
    V: rusqlite::types::FromSql,
{
    let mut statement = database.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

/// Queries for half-finished operations. They must return no rows.
const HALF_DONE: [(&str, &str); 8] = [
    (
        "a balance that its entries do not make",
        "select user_id from balances where balance <> (select coalesce(sum(delta), 0) from ledger_entries e \
         where e.user_id = balances.user_id and e.asset = balances.asset)",
    ),
    (
        "a gap in an account's sequence",
        "select user_id from ledger_entries group by user_id, asset having max(sequence) <> count(*)",
    ),
    (
        "a session that was not paid",
        "select id from sessions where not exists \
         (select 1 from ledger_entries where kind = 'cast' and ref = 'session:' || sessions.id)",
    ),
    (
        "a payment for no session",
        "select ref from ledger_entries where kind = 'cast' and not exists \
         (select 1 from sessions where ref = 'session:' || sessions.id)",
    ),
    (
        "as many uses as keys",
        "select 1 where (select count(*) from ledger_entries where kind = 'consume') <> \
         (select count(*) from idempotency_keys where route like '%/coin/consume' and status = 200)",
    ),
    (
        "as many credits as credited orders",
        "select 1 where (select count(*) from ledger_entries where kind = 'topup') <> \
         (select count(*) from payment_orders where state = 'credited')",
    ),
    (
        "an answer without its session",
        "select key from idempotency_keys where route like '%/sessions' and status = 201 \
      and not exists (select 1 from sessions where idempotency_key = key)",
    ),
    (
        "a notification for nobody",
        "select id from notifications where ordinal is null and not exists \
         (select 1 from notification_recipients where notification_id = notifications.id)",
    ),
];

fn assert_whole(database: &Connection) {
    support::assert_sound(database);
    let finds = |sql: &str| database.prepare(sql).unwrap().query([]).unwrap().next().unwrap().is_some();
    for (what, sql) in HALF_DONE {
        assert!(!finds(sql), "{what}");
    }
}
