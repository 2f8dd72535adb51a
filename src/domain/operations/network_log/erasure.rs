//! Erasure of a deleted user's entries.
//!
//! The deletion of an account queues the erasure in the main database, in its own transaction, because the log is another
//! file. Requests that were running at that time are logged later, so an erasure is repeated until they have ended. On a
//! database server it stays queued as long as entries are kept, for copies of the service that do not run meanwhile.

use std::time::Duration;

use super::{
    DELETE_BATCHES, NetworkLog,
    blocks::{self, Key},
    packing,
};
use crate::{
    error::Result,
    store::{Read, Write},
    types::{Timestamp, UserId},
};

/// The time after which no request of a deleted user can still be running.
const SETTLED_AFTER: Duration = Duration::from_mins(15);

/// Queues the erasure of the user's entries.
pub fn request_in(tx: &Write<'_>, user: UserId) -> Result<()> {
    tx.execute(
        "insert into access_log_erasures (user_id, requested_at) values (?1, ?2) \
         on conflict (user_id) do update set requested_at = excluded.requested_at",
        (user.0, tx.now.0),
    )
    .map(drop)
}

/// Deletes the entries of erased users. Blocks.
///
/// # Errors
/// Storage errors; the next call continues.
pub fn run(log: &NetworkLog) -> Result<()> {
    while packing::pack_some(log)? || run_some(log)? {}
    Ok(())
}

/// Deletes some entries of erased users. Returns true if more may be left.
///
/// # Errors
/// As [`run`].
pub(super) fn run_some(log: &NetworkLog) -> Result<bool> {
    let settled = log.erased_until(log.core.clock.now());
    let erasures = log.core.store.read(|tx| list_after_in(tx, settled))?;
    for (user, requested_at) in erasures {
        for _ in 0..DELETE_BATCHES {
            if !log.read(|tx| has_entries_in(tx, user))? {
                break;
            }
            log.store().write(move |tx| delete_some_in(tx, user)).wait()?;
        }
        if log.read(|tx| has_entries_in(tx, user))? {
            return Ok(true);
        }
        if log.core.clock.now() > requested_at.plus(SETTLED_AFTER) {
            if log.core.store.file().is_some() {
                log.core.store.write(move |tx| complete_in(tx, user)).wait()?;
            }
            log.set_erased_until(requested_at);
        }
    }
    Ok(false)
}

/// Deletes up to `limit` erasures that are older than the entries of all logs, and returns their number.
pub fn delete_older_in(tx: &Write<'_>, age: Duration, limit: u32) -> Result<usize> {
    let sql = "delete from access_log_erasures where user_id in \
               (select user_id from access_log_erasures where requested_at < ?1 limit ?2)";
    tx.execute(sql, (tx.now.minus(age.max(SETTLED_AFTER)).0, limit))
}

/// Lists the erasures that are not settled and the last that is, the oldest first.
fn list_after_in(tx: &Read<'_>, settled: Timestamp) -> Result<Vec<(UserId, Timestamp)>> {
    let sql =
        "select user_id, requested_at from access_log_erasures where requested_at >= ?1 order by requested_at, user_id";
    tx.all(sql, [settled.0], |row| Ok((UserId(row.get(0)?), Timestamp(row.get(1)?))))
}

fn complete_in(tx: &Write<'_>, user: UserId) -> Result<()> {
    tx.execute("delete from access_log_erasures where user_id = ?1", [user.0]).map(drop)
}

fn has_entries_in(tx: &Read<'_>, user: UserId) -> Result<bool> {
    Ok(!blocks::oldest_in(tx, Key::User(user.0), 1)?.is_empty())
}

fn delete_some_in(tx: &Write<'_>, user: UserId) -> Result<()> {
    super::delete_some_in(tx, Key::User(user.0), |row| row.user == Some(user.0))?;
    tx.truncate_wal_after_commit();
    Ok(())
}
