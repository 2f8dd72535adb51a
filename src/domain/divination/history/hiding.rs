//! Hides and restores all records of a user.
//!
//! Neither touches a record, so both cost the same whatever the user has stored. A record is hidden by its sequence: the
//! visible ones are always the newest, because saving a hidden record gives it a new sequence, and a restoration shows
//! the newest. For other devices, a hiding is a range of deletions, and a restoration moves the number of the last
//! change of its records. Records that are hidden for too long, exceed the limit or were deleted are removed by jobs, a few at a time.

use std::time::Duration;

use super::{
    state::{HistoryState, state_in},
    sums::{self, Sums},
};
use crate::{
    core::Core,
    domain::{identity::users, operations::deletions},
    error::{RateLimit, Result},
    store::{
        Pending, Read, Write,
        sliding_window::{self, HOUR, Window, window_rows},
    },
    types::{Timestamp, UserId},
};

const DAY: Duration = Duration::from_hours(24);
/// The number of times that a user may hide records.
const HIDINGS: [RateLimit; 2] = [
    RateLimit { name: "history-hidings", quota: 10, window: HOUR },
    RateLimit { name: "history-hidings-of-day", quota: 20, window: DAY },
];
/// The number of times that users may restore their records, which all their devices then load again.
pub const RESTORINGS: [RateLimit; 2] = [
    RateLimit { name: "history-restorings", quota: 10, window: HOUR },
    RateLimit { name: "history-restorings-of-day", quota: 20, window: DAY },
];

/// Returns the sequence of the user's last hidden record, or 0.
pub(super) fn hidden_through_in(tx: &Read<'_>, user: UserId) -> Result<i64> {
    let sql = "select coalesce(max(through), 0) from history_hidings where user_id = ?1";
    tx.one(sql, [user.0], |row| row.get(0))
}

/// Returns the user's hidings, oldest first, each with the sequence up to which records are hidden since then.
pub(super) fn hidden_ranges_in(tx: &Read<'_>, user: UserId) -> Result<Vec<(i64, Timestamp)>> {
    let sql = "select through, hidden_at from history_hidings where user_id = ?1 order by hidden_at, through";
    tx.all(sql, [user.0], |row| Ok((row.get(0)?, Timestamp(row.get(1)?))))
}

/// Returns the numbers of the changes after one, and the ids of the visible records that changed, in order.
pub(super) fn list_changes_in(tx: &Read<'_>, user: UserId, change: i64, limit: u32) -> Result<Vec<(i64, i64)>> {
    let state = state_in(tx, user)?;
    let (through, base) = (state.restored_through, state.restored_base);
    let pair = |row: &crate::store::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let mut found: Vec<(i64, i64)> = tx.all(
        "select change, id from history where user_id = ?1 and change > ?2 and sequence > ?3 \
         and (sequence > ?4 or change > ?5 + sequence) order by change limit ?6",
        (user.0, change, state.hidden_through, through, base, limit),
        pair,
    )?;
    let after = state.hidden_through.max(change - base);
    if after < through {
        found.extend(tx.all(
            "select ?2 + sequence, id from history where user_id = ?1 and sequence > ?3 and sequence <= ?4 \
             and change <= ?2 + sequence order by sequence limit ?5",
            (user.0, base, after, through, limit),
            pair,
        )?);
        found.sort_unstable();
        found.truncate(limit as usize);
    }
    Ok(found)
}

/// Hides all of the user's records and returns their number. Hidden records beyond the limit for visible ones are
/// deleted, oldest first.
///
/// Requires no proof beyond the token, because [`restore_all`] undoes it. A repetition that hides nothing is not limited.
///
/// # Errors
/// `unauthenticated` if the account was deleted; `too_many_requests`.
pub fn deactivate_all(core: &Core, user: UserId) -> Pending<usize> {
    let limit = i64::from(core.config.limits.history_records);
    core.store.write(move |tx| {
        users::require_in(tx, user)?;
        let state = state_in(tx, user)?;
        let Sums { visible, hidden, .. } = sums::find_in(tx, user, state)?;
        if visible == 0 {
            return Ok(0);
        }
        let first = first_after_in(tx, user, state.hidden_through)?;
        let rows = window_rows!("history_hidings", "hidden_at", "user_id = ?1");
        sliding_window::require_open_in(tx, &HIDINGS.map(|limit| Window { limit, rows, key: user.0 }))?;
        let surplus = (visible + hidden - limit).max(0);
        let (surplus_through, surplus_bytes): (i64, i64) = tx.one(
            "select coalesce(max(sequence), 0), cast(coalesce(sum(bytes), 0) as bigint) from (select sequence, bytes \
             from history where user_id = ?1 and sequence > ?2 order by sequence limit ?3) as surplus",
            (user.0, state.surplus_through, surplus),
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        let change = Sums { visible: -visible, hidden: visible - surplus, bytes: -surplus_bytes };
        sums::move_in(tx, user, change)?;
        tx.execute(
            "insert into history_hidings (user_id, hidden_at, through, surplus_through) values (?1, ?2, ?3, ?4)",
            (user.0, tx.now.0, state.sequence, surplus_through),
        )?;
        deletions::record_range_in(tx, user, first - 1, state.sequence, state.last_change())?;
        Ok(usize::try_from(visible).unwrap_or(usize::MAX))
    })
}

/// The result of a restoration.
#[derive(Clone, Copy, Debug)]
pub struct RestoredRecords {
    pub restored: usize,
    /// Records that stay hidden because of the limit.
    pub hidden: i64,
}

/// Shows the user's hidden records again, newest first and up to the limit for visible ones. Records whose time is over
/// stay hidden, also before the cleanup deletes them. `limits` are those of users, [`RESTORINGS`], or none. A repetition
/// that shows nothing is not limited.
///
/// # Errors
/// As of [`deactivate_all`].
pub fn restore_all(core: &Core, user: UserId, limits: &'static [RateLimit]) -> Pending<RestoredRecords> {
    let (limit, kept_for) = (i64::from(core.config.limits.history_records), core.config.retention.deactivated_history);
    core.store.write(move |tx| {
        users::require_in(tx, user)?;
        let state = state_in(tx, user)?;
        let expired = "select coalesce(max(through), 0) from history_hidings where user_id = ?1 and hidden_at <= ?2";
        let expired: i64 = tx.one(expired, (user.0, tx.now.minus(kept_for).0), |row| row.get(0))?;
        let Sums { visible, hidden, .. } = sums::find_in(tx, user, state)?;
        // Those that a job is about to delete.
        let overdue = "select count(*) from history where user_id = ?1 and sequence > ?2 and sequence <= ?3";
        let overdue: i64 = tx.one(overdue, (user.0, state.surplus_through, expired), |row| row.get(0))?;
        let (free, restorable) = ((limit - visible).max(0), hidden - overdue);
        let restored = restorable.min(free);
        if restored > 0 {
            require_within_in(tx, user, limits)?;
            let first = if restored == restorable {
                first_after_in(tx, user, expired.max(state.surplus_through))?
            } else {
                let newest = "select sequence from history where user_id = ?1 and sequence <= ?2 \
                              order by sequence desc limit 1 offset ?3";
                tx.one(newest, (user.0, state.hidden_through, restored - 1), |row| row.get(0))?
            };
            restore_in(tx, user, state, first)?;
            sums::move_in(tx, user, Sums { visible: restored, hidden: -restored, bytes: 0 })?;
        }
        let hidden = hidden - restored.max(0);
        Ok(RestoredRecords { restored: usize::try_from(restored).unwrap_or(0), hidden })
    })
}

/// Returns the sequence of the oldest record after one, or 0.
fn first_after_in(tx: &Read<'_>, user: UserId, sequence: i64) -> Result<i64> {
    let sql = "select coalesce(min(sequence), 0) from history where user_id = ?1 and sequence > ?2";
    tx.one(sql, (user.0, sequence), |row| row.get(0))
}

fn require_within_in(tx: &Read<'_>, user: UserId, limits: &[RateLimit]) -> Result<()> {
    let rows = window_rows!("history_restorings", "restored_at", "user_id = ?1");
    let windows: Vec<_> = limits.iter().map(|limit| Window { limit: *limit, rows, key: user.0 }).collect();
    sliding_window::require_open_in(tx, &windows)
}

/// Shows the records from the sequence `first` on.
fn restore_in(tx: &Write<'_>, user: UserId, state: HistoryState, first: i64) -> Result<()> {
    // Before the row that must stay: the newest has the highest numbers.
    tx.execute(
        "delete from history_restorings where user_id = ?1 and restored_at < ?2",
        (user.0, tx.now.minus(DAY).0),
    )?;
    let lower = "update history_hidings set through = ?2 where user_id = ?1 and through > ?2";
    tx.execute(lower, (user.0, first - 1))?;
    tx.execute(
        "insert into history_restorings (user_id, restored_at, through, base) values (?1, ?2, ?3, ?4)",
        (
            user.0,
            tx.now.0,
            state.hidden_through.max(state.restored_through),
            deletions::next_change_in(tx, user, state.last_change())? - first,
        ),
    )
    .map(drop)
}

/// Deletes up to `limit` records that users deleted or that exceed the limit of their user. Returns 0 once none is left.
pub fn delete_marked_in(tx: &Write<'_>, limit: u32) -> Result<usize> {
    let deleted = "delete from history where id in (select id from history where sequence < 0 limit ?1)";
    let deleted = tx.execute(deleted, [limit])?;
    if deleted > 0 {
        return Ok(deleted);
    }
    let next = "select id, user_id, surplus_through from history_hidings where surplus_through > 0 \
                order by surplus_through limit 1";
    let Some((id, user, through)) =
        tx.first(next, (), |row| Ok((row.get::<i64>(0)?, UserId(row.get(1)?), row.get(2)?)))?
    else {
        return Ok(0);
    };
    match purge_in(tx, user, through, limit)? {
        0 => tx.execute("update history_hidings set surplus_through = 0 where id = ?1", [id]),
        deleted => Ok(deleted),
    }
}

/// Returns the number of users of whom such records are left, and since when.
pub fn marked_in(tx: &Read<'_>) -> Result<(i64, Option<Timestamp>)> {
    let sql = "select count(distinct user_id), min(marked_at) from (select user_id, hidden_at as marked_at \
               from history_hidings where surplus_through > 0 union all select user_id, updated_at from history \
               where sequence < 0) as marked";
    tx.one(sql, (), |row| Ok((row.get(0)?, row.get::<Option<i64>>(1)?.map(Timestamp))))
}

/// Deletes up to `limit` records that have been hidden for longer than `age`. Returns 0 once none is left.
pub fn delete_expired_in(tx: &Write<'_>, age: Duration, limit: u32) -> Result<usize> {
    let next = "select id, user_id, through from history_hidings where hidden_at <= ?1 and through > 0 \
                order by hidden_at limit 1";
    let found =
        tx.first(next, [tx.now.minus(age).0], |row| Ok((row.get::<i64>(0)?, UserId(row.get(1)?), row.get(2)?)))?;
    let Some((id, user, through)) = found else { return Ok(0) };
    match purge_in(tx, user, through, limit)? {
        0 => tx.execute("update history_hidings set through = 0, surplus_through = 0 where id = ?1", [id]),
        deleted => Ok(deleted),
    }
}

/// Deletes up to `limit` of the user's records up to a sequence, all of which are hidden.
fn purge_in(tx: &Write<'_>, user: UserId, through: i64, limit: u32) -> Result<usize> {
    let purged: Vec<(i64, i64, String, i64)> = tx.all(
        "select id, sequence, local_record_id, bytes from history where user_id = ?1 and sequence <= ?2 \
         order by sequence limit ?3",
        (user.0, through, limit),
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)),
    )?;
    let (state, mut change) = (state_in(tx, user)?, Sums::default());
    for (_, sequence, local_record_id, bytes) in &purged {
        deletions::record_purged_in(tx, user, *sequence, local_record_id)?;
        if *sequence > state.surplus_through {
            change.hidden -= 1;
            change.bytes -= bytes;
        }
    }
    sums::move_in(tx, user, change)?;
    tx.execute_each("delete from history where id = ?1", purged.iter().map(|(id, ..)| [*id]))
}

/// Deletes up to `limit` hidings that no longer count and hide nothing.
pub fn delete_old_hidings_in(tx: &Write<'_>, limit: u32) -> Result<usize> {
    tx.execute(
        "delete from history_hidings where id in (select id from history_hidings where hidden_at < ?1 \
         and through = 0 order by hidden_at limit ?2)",
        (tx.now.minus(DAY).0, limit),
    )
}

/// Deletes the hidings and restorations of a user who is deleted.
pub fn erase_hidings_in(tx: &Write<'_>, user: UserId) -> Result<()> {
    sums::delete_in(tx, user)?;
    tx.execute("delete from history_hidings where user_id = ?1", [user.0])?;
    tx.execute("delete from history_restorings where user_id = ?1", [user.0]).map(drop)
}
