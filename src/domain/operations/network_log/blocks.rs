//! Blocks of entries: the requests of up to ten minutes in one row, and how many of them have which user, address, route,
//! failed status or request id.
//!
//! The id of a block begins with the number of its ten minutes, so blocks are in the order of time. Few requests at a time
//! are added to the last block of their ten minutes, so that blocks are not small. Positions in a block never change.

use std::{collections::HashMap, ops::ControlFlow};

use foldhash::fast::RandomState;
use serde::{Deserialize, Serialize, Serializer};

use super::Pace;
use crate::{
    error::{Error, Result},
    store::{Read, Write},
};

/// The length of a period in milliseconds, as in `network-log.sql`.
pub(super) const PERIOD: i64 = 10 * 60 * 1000;
/// Blocks of a period, as in `network-log-2.sql`.
const BLOCKS: i64 = 1 << 20;
/// Positions in a block, as in `network-log-2.sql`.
const POSITIONS: i64 = 16_384;
/// The most entries of a block: readers decode a whole block, and each user of a block takes a row of its own.
pub(super) const LARGEST: u16 = 8192;
/// Entries that are encoded without a rest.
const ENCODED: usize = 128;
/// A block with fewer entries grows.
const SMALL: i64 = 128;
/// All times.
pub(super) const ALWAYS: (i64, i64) = (i64::MIN, i64::MAX);
/// Entries recorded at the same time may wait in another order.
const DISORDER: i64 = 1000;

/// A map with a fast hash, whose seed is random because clients choose some keys.
pub(super) type Map<K, V> = HashMap<K, V, RandomState>;

/// An entry of a block.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Row<'text> {
    /// Given by [`append_in`].
    pub position: i64,
    pub at: i64,
    pub user: Option<i64>,
    pub client: &'text str,
    pub method: &'text str,
    pub route: Option<&'text str>,
    pub status: u16,
    pub duration_us: i64,
    pub request_id: &'text str,
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let Self { position, at, user, client, method, route, status, duration_us, request_id } = self;
        (position, at, user, client, method, route, status, duration_us, request_id).serialize(serializer)
    }
}

impl<'text> Row<'text> {
    pub fn id(&self, block: i64) -> i64 {
        block * POSITIONS + self.position
    }

    pub fn is_failed(&self) -> bool {
        self.status >= 400
    }

    /// Returns true if a client was refused where codes or passwords are sent or accepted. Token refreshes do not count:
    /// several apps behind one address that refresh expired tokens are not an attack.
    pub fn is_failed_sign_in(&self) -> bool {
        const SIGN_IN: [&str; 5] =
            ["/auth/send-code", "/auth/login", "/api/v1/auth/send-code", "/api/v1/auth/login", "/admin/login"];
        matches!(self.status, 401 | 403 | 429) && self.route.is_some_and(|route| SIGN_IN.contains(&route))
    }

    fn keys(&self) -> impl Iterator<Item = Key<'text>> {
        [
            self.user.map(Key::User),
            Some(Key::Client(self.client)),
            self.route.map(Key::Route),
            self.is_failed().then_some(Key::Status(self.status)),
            Some(Key::Request(beginning(self.request_id))),
        ]
        .into_iter()
        .flatten()
    }
}

/// The entries to find. Those of a request id are some others, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key<'text> {
    All,
    Failed,
    User(i64),
    Client(&'text str),
    Route(&'text str),
    /// Of failed requests only.
    Status(u16),
    Request(&'text str),
}

impl<'text> Key<'text> {
    /// Returns the key under which the requests with this id are found.
    pub fn of_request(id: &'text str) -> Self {
        Self::Request(beginning(id))
    }

    fn text(self) -> String {
        match self {
            Self::All | Self::Failed => String::new(),
            Self::User(user) => format!("u{user}"),
            Self::Client(client) => format!("c{client}"),
            Self::Route(route) => format!("r{route}"),
            Self::Status(status) => format!("s{status}"),
            Self::Request(id) => format!("q{id}"),
        }
    }
}

/// Returns the part of a request id that thousands of consecutive ids share if the service assigned it, or else all of it.
fn beginning(id: &str) -> &str {
    let is_assigned = id.len() == 24 && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if is_assigned { &id[..21] } else { id }
}

/// The order in which blocks are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    OldestFirst,
    NewestFirst,
}

/// Returns the id of the first block of a time or later.
fn first_block(at: i64) -> i64 {
    at.div_euclid(PERIOD).saturating_mul(BLOCKS)
}

pub(super) fn period_of(block: i64) -> i64 {
    block.div_euclid(BLOCKS)
}

/// Returns the ids of the blocks that may have entries of a time range.
fn blocks_of(from: i64, to: i64) -> (i64, i64) {
    (first_block(from), first_block(to.saturating_sub(1)).saturating_add(BLOCKS))
}

/// Returns true if all entries of a block are in a time range.
pub(super) fn is_inside(block: i64, from: i64, to: i64) -> bool {
    let start = period_of(block) * PERIOD;
    from <= start && start + PERIOD <= to
}

/// Returns the least id of an entry of the same ten minutes or later.
pub(super) fn first_entry(at: i64) -> i64 {
    first_block(at).saturating_mul(POSITIONS)
}

/// Returns the id of the block of an entry.
pub(super) fn block_of(entry: i64) -> i64 {
    entry.div_euclid(POSITIONS)
}

/// Passes the blocks of a time range that have entries with the key to a function, with the number of these entries.
pub(super) fn each_in(
    tx: &Read<'_>,
    key: Key<'_>,
    (from, to): (i64, i64),
    order: Order,
    mut block: impl FnMut(i64, i64) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let (first, end) = blocks_of(from, to);
    let order = match order {
        Order::OldestFirst => "asc",
        Order::NewestFirst => "desc",
    };
    let row = |row: &crate::store::Row<'_>| block(row.get(0)?, row.get(1)?);
    match key {
        Key::All => {
            let sql =
                format!("select id, entries from access_log_blocks where id >= ?1 and id < ?2 order by id {order}");
            tx.each_until(&sql, (first, end), row)
        }
        Key::Failed => {
            let sql = format!(
                "select id, failed from access_log_blocks where id >= ?1 and id < ?2 and failed > 0 order by id {order}"
            );
            tx.each_until(&sql, (first, end), row)
        }
        key => {
            let sql = format!(
                "select block, entries from access_log_keys where key = ?3 and block >= ?1 and block < ?2 \
                 order by block {order}"
            );
            tx.each_until(&sql, (first, end, key.text()), row)
        }
    }
    .map(drop)
}

/// Passes the entries of a time range that have the key to a function. Other entries of their blocks come, too.
pub(super) fn each_row_in(
    tx: &Read<'_>,
    key: Key<'_>,
    range: (i64, i64),
    order: Order,
    mut row: impl FnMut(i64, &Row<'_>) -> Result<ControlFlow<()>>,
) -> Result<()> {
    each_in(tx, key, range, order, |block, _| {
        rows_in(tx, block, order, |rows| {
            for found in rows.iter().filter(|row| (range.0..range.1).contains(&row.at)) {
                if row(block, found)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Ok(ControlFlow::Continue(()))
        })
    })
}

/// Decodes a block.
pub(super) fn rows_in<T>(
    tx: &Read<'_>,
    block: i64,
    order: Order,
    use_rows: impl FnOnce(&[Row<'_>]) -> Result<T>,
) -> Result<T> {
    let text: String = tx.one("select rows from access_log_blocks where id = ?1", [block], |row| row.get(0))?;
    let mut rows = decoded(&text)?;
    match order {
        Order::OldestFirst => rows.sort_by_key(|row| (row.at, row.position)),
        Order::NewestFirst => rows.sort_by_key(|row| std::cmp::Reverse((row.at, row.position))),
    }
    use_rows(&rows)
}

fn decoded(text: &str) -> Result<Vec<Row<'_>>> {
    serde_json::from_str(text).map_err(Error::internal)
}

/// Passes the blocks from this id on to a function, the oldest first.
pub(super) fn each_from_in(
    tx: &Read<'_>,
    first: i64,
    mut block: impl FnMut(i64, &[Row<'_>]) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let sql = "select id, rows from access_log_blocks where id >= ?1 order by id";
    tx.each_until(sql, [first], |row| block(row.get(0)?, &decoded(&row.get::<String>(1)?)?)).map(drop)
}

/// Returns the oldest blocks that have entries with the key.
pub(super) fn oldest_in(tx: &Read<'_>, key: Key<'_>, limit: usize) -> Result<Vec<i64>> {
    let mut found = Vec::new();
    each_in(tx, key, ALWAYS, Order::OldestFirst, |block, _| {
        found.push(block);
        Ok(if found.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    Ok(found)
}

/// Adds up to [`LARGEST`] entries, which are in the order of time.
pub(super) fn append_in(tx: &Write<'_>, rows: &mut [Row<'_>], pace: &mut Pace) -> Result<()> {
    let of_one_period = |one: &Row<'_>, other: &Row<'_>| first_block(one.at) == first_block(other.at);
    rows.chunk_by_mut(of_one_period).try_for_each(|rows| append_to_period_in(tx, rows, pace))
}

fn append_to_period_in(tx: &Write<'_>, rows: &mut [Row<'_>], pace: &mut Pace) -> Result<()> {
    let Some(first) = rows.first() else { return Ok(()) };
    let (start, end) = blocks_of(first.at, first.at + 1);
    let last = "select id, last_at, entries, next_position from access_log_blocks where id >= ?1 and id < ?2 \
                order by id desc limit 1";
    let last = tx.first(last, (start, end), |row| {
        Ok((row.get::<i64>(0)?, row.get::<i64>(1)?, row.get::<i64>(2)?, row.get::<i64>(3)?))
    })?;
    let count = i64::try_from(rows.len()).map_err(Error::internal)?;
    let (id, at, position) = match last {
        None => (start, i64::MIN, 0),
        Some((id, at, entries, next)) if entries < SMALL && next + count <= i64::from(LARGEST) => (id, at, next),
        Some((id, at, ..)) => (id + 1, at, 0),
    };
    let (mut last_at, mut failed) = (at, 0);
    let mut keys = Map::<Key<'_>, i64>::default();
    for (position, row) in (position..).zip(&mut *rows) {
        if usize::try_from(position).is_ok_and(|position| position.is_multiple_of(ENCODED)) {
            pace.rest();
        }
        if (0..DISORDER).contains(&(last_at.saturating_sub(row.at))) {
            row.at = last_at;
        }
        (last_at, row.position) = (row.at, position);
        failed += i64::from(row.is_failed());
        row.keys().for_each(|key| *keys.entry(key).or_default() += 1);
    }
    let text = encoded(rows, pace)?;
    if position == 0 {
        let sql = "insert into access_log_blocks (id, last_at, entries, failed, next_position, rows) \
                   values (?1, ?2, ?3, ?4, ?3, ?5)";
        tx.execute(sql, (id, last_at, count, failed, text))?;
    } else {
        let stored: String = tx.one("select rows from access_log_blocks where id = ?1", [id], |row| row.get(0))?;
        let joined = match stored.strip_suffix(']') {
            Some(stored) if stored.len() > 1 => format!("{stored},{}", &text[1..]),
            _ => text,
        };
        let sql = "update access_log_blocks set last_at = ?2, entries = entries + ?3, failed = failed + ?4, \
                   next_position = next_position + ?3, rows = ?5 where id = ?1";
        tx.execute(sql, (id, last_at, count, failed, joined))?;
    }
    let sql = if position == 0 {
        "insert into access_log_keys (key, block, entries) values (?1, ?2, ?3)"
    } else {
        "insert into access_log_keys (key, block, entries) values (?1, ?2, ?3) \
         on conflict (key, block) do update set entries = access_log_keys.entries + excluded.entries"
    };
    tx.execute_each(
        sql,
        keys.into_iter().map(|(key, entries)| {
            pace.rest();
            (key.text(), id, entries)
        }),
    )
    .map(drop)
}

fn encoded(rows: &[Row<'_>], pace: &mut Pace) -> Result<String> {
    let mut text = b"[".to_vec();
    for rows in rows.chunks(ENCODED) {
        for row in rows {
            serde_json::to_writer(&mut text, row).map_err(Error::internal)?;
            text.push(b',');
        }
        pace.rest();
    }
    text.pop();
    text.push(b']');
    String::from_utf8(text).map_err(Error::internal)
}

/// Deletes the entries of a block that are not kept, passes them to a function, and returns their number.
pub(super) fn delete_in(
    tx: &Write<'_>,
    block: i64,
    is_kept: impl Fn(&Row<'_>) -> bool,
    subtract: impl FnOnce(&[Row<'_>], &mut Pace) -> Result<()>,
) -> Result<usize> {
    let text: String = tx.one("select rows from access_log_blocks where id = ?1", [block], |row| row.get(0))?;
    let (kept, deleted): (Vec<_>, Vec<_>) = decoded(&text)?.into_iter().partition(is_kept);
    if deleted.is_empty() {
        return Ok(0);
    }
    let mut keys = Map::<Key<'_>, i64>::default();
    deleted.iter().flat_map(Row::keys).for_each(|key| *keys.entry(key).or_default() += 1);
    let mut pace = Pace::default();
    for (key, entries) in keys {
        pace.rest();
        let key = key.text();
        let sql = "update access_log_keys set entries = entries - ?3 where key = ?1 and block = ?2 and entries > ?3";
        if tx.execute(sql, (&key, block, entries))? == 0 {
            tx.execute("delete from access_log_keys where key = ?1 and block = ?2", (&key, block))?;
        }
    }
    if kept.is_empty() {
        tx.execute("delete from access_log_blocks where id = ?1", [block])?;
    } else {
        let failed: i64 = deleted.iter().map(|row| i64::from(row.is_failed())).sum();
        let entries = i64::try_from(deleted.len()).map_err(Error::internal)?;
        let text = serde_json::to_string(&kept).map_err(Error::internal)?;
        let sql = "update access_log_blocks set entries = entries - ?2, failed = failed - ?3, rows = ?4 where id = ?1";
        tx.execute(sql, (block, entries, failed, text))?;
    }
    subtract(&deleted, &mut pace)?;
    Ok(deleted.len())
}

/// Returns whether a block in a range of periods has entries of the user, and whether one has entries of both user and
/// address.
pub(super) fn has_user_in(tx: &Read<'_>, user: i64, client: &str, periods: (i64, i64)) -> Result<(bool, bool)> {
    let both = "select 1, exists (select 1 from access_log_keys as others where others.key = ?2 and others.block = mine.block) \
                from access_log_keys as mine where mine.key = ?1 and mine.block >= ?3 and mine.block < ?4";
    let keys = (Key::User(user).text(), Key::Client(client).text(), periods.0 * BLOCKS, periods.1 * BLOCKS);
    let mut found = (false, false);
    tx.each_until(both, keys, |row| {
        found = (true, row.get(1)?);
        Ok(if found.1 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })
    .map(|_| found)
}

#[cfg(test)]
mod tests {
    use super::Row;

    #[test]
    fn failed_sign_ins_are_known_by_route_and_status() {
        let is_one = |route, status| {
            let (position, at, user, client, method, duration_us, request_id) = (0, 0, None, "", "POST", 0, "");
            let row = Row { position, at, user, client, method, route, status, duration_us, request_id };
            row.is_failed_sign_in()
        };
        for route in ["/auth/login", "/auth/send-code", "/api/v1/auth/login", "/admin/login"] {
            assert!(is_one(Some(route), 401), "{route}");
            assert!(!is_one(Some(route), 200) && !is_one(Some(route), 422), "{route}");
        }
        for route in ["/coin/balance", "/admin/payments", "/auth/refresh-token", "/api/v1/auth/refresh"] {
            assert!(!is_one(Some(route), 401), "{route}");
        }
        assert!(!is_one(None, 401));
    }
}
