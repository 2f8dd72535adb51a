//! Deletions that the other devices of a user have to follow, and the numbers that order a user's changes.
//!
//! A change number is the time in milliseconds, or one more than the last number if the clock did not advance. The
//! writer assigns them one after the other, so a number is greater than every one that a client may have seen before,
//! also of rows that are gone, and after the restore of a backup.
//!
//! History records that are hidden together are one row, a range: so hiding costs the same however many they are. A record
//! of a range gets a row of its own once it is purged, with the number that it had in the range.

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

/// History records of a user that were hidden together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeletedRange {
    /// The number of the deletion of the last record.
    pub number: i64,
    /// The sequence before that of the first record, and the sequence of the last.
    pub after: i64,
    pub through: i64,
}

impl DeletedRange {
    /// Returns the number of the deletion of the record with this sequence.
    pub const fn number_of(self, sequence: i64) -> i64 {
        self.number - self.through + sequence
    }
}

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredDeletion {
    One(Deletion),
    Range(DeletedRange),
}

/// The number of the last deletion of a user that is stored, or 0, as a part of a statement.
macro_rules! last_deletion {
    ($user:literal) => {
        concat!("coalesce((select max(number) from deletions where user_id = ", $user, "), 0)")
    };
}

pub(in crate::domain) use last_deletion;

/// Returns the number of the next change, greater than `last` and all numbers of deletions.
pub fn next_change_in(tx: &Read<'_>, user: UserId, last: i64) -> Result<i64> {
    Ok(next_change(tx, last.max(last_number_in(tx, user)?)))
}

/// Returns the number of the next change after `last`.
pub fn next_change(tx: &Read<'_>, last: i64) -> i64 {
    tx.now.0.max(last + 1)
}

/// Returns the number of the user's last deletion that is stored, or 0.
pub fn last_number_in(tx: &Read<'_>, user: UserId) -> Result<i64> {
    tx.one(concat!("select ", last_deletion!("?1")), [user.0], |row| row.get(0))
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

/// Records that the history records with a sequence in `(after, through]` were hidden.
pub fn record_range_in(tx: &Write<'_>, user: UserId, after: i64, through: i64, last: i64) -> Result<()> {
    let number = next_change_in(tx, user, last)? - 1 + (through - after);
    tx.execute(
        "insert into deletions (user_id, number, kind, subject, deleted_at, range_after, range_through) \
         values (?1, ?2, ?3, '', ?4, ?5, ?6)",
        (user.0, number, DeletedKind::History.name(), tx.now.0, after, through),
    )
    .map(drop)
}

/// Records the deletion of a history record that is purged, if it was last hidden in a range.
pub fn record_purged_in(tx: &Write<'_>, user: UserId, sequence: i64, subject: &str) -> Result<()> {
    // The `+` stops the planner from reading all deletions of the user in order.
    let newest = "select number, range_after, range_through, deleted_at from deletions where user_id = ?1 \
                  and range_through >= ?2 and range_after < ?2 order by +number desc limit 1";
    let found = tx.first(newest, (user.0, sequence), |row| {
        Ok((DeletedRange { number: row.get(0)?, after: row.get(1)?, through: row.get(2)? }, row.get::<i64>(3)?))
    })?;
    let Some((range, deleted_at)) = found else { return Ok(()) };
    tx.execute(
        "insert into deletions (user_id, number, kind, subject, deleted_at) values (?1, ?2, ?3, ?4, ?5) \
         on conflict (user_id, number) do nothing",
        (user.0, range.number_of(sequence), DeletedKind::History.name(), subject, deleted_at),
    )
    .map(drop)
}

/// Returns true if the deletion is recorded.
pub fn is_recorded_in(tx: &Read<'_>, user: UserId, kind: DeletedKind, subject: &str) -> Result<bool> {
    let sql = "select exists (select 1 from deletions where user_id = ?1 and kind = ?2 and subject = ?3)";
    tx.one(sql, (user.0, kind.name(), subject), |row| row.get(0))
}

/// Returns the user's deletions after a number, in order. The first range may begin before the number.
pub fn list_after_in(tx: &Read<'_>, user: UserId, number: i64, limit: u32) -> Result<Vec<StoredDeletion>> {
    tx.all(
        "select number, kind, subject, range_after, range_through from deletions \
         where user_id = ?1 and number > ?2 order by number limit ?3",
        (user.0, number, limit),
        |row| {
            let number = row.get(0)?;
            if let (Some(after), Some(through)) = (row.get(3)?, row.get(4)?) {
                return Ok(StoredDeletion::Range(DeletedRange { number, after, through }));
            }
            let kind = row.get_parsed(1, DeletedKind::from_name)?;
            Ok(StoredDeletion::One(Deletion { number, kind, subject: row.get(2)? }))
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

/// Deletes up to `limit` records of the deletions of a deleted user.
pub fn erase_user_in(tx: &Write<'_>, user: UserId, limit: u32) -> Result<usize> {
    tx.execute(
        "delete from deletions where user_id = ?1 and number in \
         (select number from deletions where user_id = ?1 order by number limit ?2)",
        (user.0, limit),
    )
}
