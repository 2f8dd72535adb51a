//! Deletions that the other devices of a user have to follow, and the numbers that order a user's changes.
//!
//! A change number is the time in milliseconds, or one more than the last number if the clock did not advance. The
//! writer assigns them one after the other, so a number is greater than every one that a client may have seen before,
//! also of rows that are gone, and after the restore of a backup.

use std::time::Duration;

use crate::{
    error::Result,
    store::{Read, Write},
    types::{UserId, named_enum},
};

named_enum! {
    /// The kind of something deleted.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum DeletedKind {
        Session = "session",
        History = "history",
        Notification = "notification",
    }
}

/// The deletion of something that a user's devices may have stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    pub number: i64,
    pub kind: DeletedKind,
    /// The id of what was deleted.
    pub subject: String,
}

/// Returns the number of the next change, greater than `last` and all numbers of deletions.
pub fn next_change_in(tx: &Read<'_>, user: UserId, last: i64) -> Result<i64> {
    Ok(tx.now.0.max(last + 1).max(last_number_in(tx, user)? + 1))
}

/// Returns the number of the user's last deletion that is stored, or 0.
pub fn last_number_in(tx: &Read<'_>, user: UserId) -> Result<i64> {
    tx.one("select coalesce(max(number), 0) from deletions where user_id = ?1", [user.0], |row| row.get(0))
}

/// Records deletions. `last` is the greatest change number of the rows before they were deleted.
pub fn record_in(tx: &Write<'_>, user: UserId, kind: DeletedKind, subjects: &[String], last: i64) -> Result<()> {
    if subjects.is_empty() {
        return Ok(());
    }
    let first = next_change_in(tx, user, last)?;
    tx.execute_each(
        "insert into deletions (user_id, number, kind, subject, deleted_at) values (?1, ?2, ?3, ?4, ?5)",
        (first..).zip(subjects).map(|(number, subject)| (user.0, number, kind.name(), subject, tx.now.0)),
    )
    .map(drop)
}

/// Returns true if the deletion is recorded.
pub fn is_recorded_in(tx: &Read<'_>, user: UserId, kind: DeletedKind, subject: &str) -> Result<bool> {
    let sql = "select exists (select 1 from deletions where user_id = ?1 and kind = ?2 and subject = ?3)";
    tx.one(sql, (user.0, kind.name(), subject), |row| row.get(0))
}

/// Returns the user's deletions after a number, in order.
pub fn list_after_in(tx: &Read<'_>, user: UserId, number: i64, limit: u32) -> Result<Vec<Deletion>> {
    tx.all(
        "select number, kind, subject from deletions where user_id = ?1 and number > ?2 order by number limit ?3",
        (user.0, number, limit),
        |row| {
            Ok(Deletion { number: row.get(0)?, kind: row.get_parsed(1, DeletedKind::from_name)?, subject: row.get(2)? })
        },
    )
}

/// Deletes up to `limit` records of deletions that are older than `age`.
pub fn delete_older_in(tx: &Write<'_>, age: Duration, limit: u32) -> Result<usize> {
    let old: Vec<(i64, i64)> = tx.all(
        "select user_id, number from deletions where deleted_at < ?1 order by deleted_at limit ?2",
        (tx.now.minus(age).0, limit),
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    tx.execute_each("delete from deletions where user_id = ?1 and number = ?2", old)
}

/// Deletes all records of the user's deletions.
pub fn erase_user_in(tx: &Write<'_>, user: UserId) -> Result<()> {
    tx.execute("delete from deletions where user_id = ?1", [user.0]).map(drop)
}
