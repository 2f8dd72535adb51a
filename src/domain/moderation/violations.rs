//! Violations: refused texts with their users and reasons, masked.
//!
//! A row is deleted with its user's account. It never holds the text as sent, and no more of it than shows its subject.
//! The refusals of a user per hour are limited, and only each user's newest rows are kept.

use std::time::Duration;

use serde_json::json;

use crate::{
    core::Core,
    domain::{Each, identity::users, operations::free_space_scrub},
    error::{Code, Error, Result},
    store::{
        Read, Row, Write,
        sliding_window::{self, HOUR, PURGE_BATCH, Window},
    },
    types::{Listing, Page, Timestamp, UserId},
};

/// Default age in days at which a cleanup deletes records.
pub const DAYS_TO_KEEP: u32 = 180;
/// Default window and count for frequent violators.
pub const FREQUENT_DAYS: u32 = 30;
pub const FREQUENT_THRESHOLD: u32 = 3;

/// Rows deleted by one operation, so that the writer is never held for long.
const SLICE: u32 = 500;
const DAY: i64 = 24 * 60 * 60 * 1_000;

/// A refusal to be remembered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub user: UserId,
    pub content_type: &'static str,
    /// The type of the first word found.
    pub violation_type: String,
    pub words: Vec<String>,
    pub masked_text: String,
    /// The service that refused.
    pub provider: &'static str,
}

/// A stored violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    pub id: i64,
    pub user: UserId,
    pub content_type: String,
    pub violation_type: String,
    pub words: Vec<String>,
    pub masked_text: String,
    pub provider: String,
    pub at: Timestamp,
}

/// Filters for violations. The times are a half-open range.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub user: Option<UserId>,
    pub content_type: Option<String>,
    pub violation_type: Option<String>,
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
}

/// A number of violations by kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    pub name: String,
    pub count: i64,
}

/// A user's refusals in figures.
#[derive(Clone, Debug)]
pub struct OfUser {
    pub total: i64,
    pub types: Vec<Count>,
    pub content_types: Vec<Count>,
    pub first_at: Option<Timestamp>,
    pub last_at: Option<Timestamp>,
}

/// A user with many violations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violator {
    pub user: UserId,
    pub count: i64,
    pub last_at: Timestamp,
}

/// Refuses a user of whom so many texts were refused in the last hour. What a model answered them is not their doing.
///
/// # Errors
/// `too_many_requests`.
pub fn require_open_in(tx: &Read<'_>, user: UserId, allowed: u32) -> Result<()> {
    let newest_first = "select created_at from violations where user_id = ?1 and created_at <= ?3 \
                        and content_type <> 'answer' order by created_at desc limit 1 offset ?2";
    sliding_window::require_open_in(tx, &[Window { newest_first, key: user.0, allowed, length: HOUR }])
}

/// Remembers a refusal, and keeps of its user's only the newest `kept`.
pub fn record_in(tx: &Write<'_>, violation: &Violation, kept: u32) -> Result<()> {
    users::require_in(tx, violation.user)?;
    tx.execute(
        "insert into violations (user_id, content_type, violation_type, words, masked_text, provider, created_at) \
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        (
            violation.user.0,
            violation.content_type,
            &violation.violation_type,
            serde_json::to_string(&violation.words).map_err(Error::internal)?,
            &violation.masked_text,
            violation.provider,
            tx.now.0,
        ),
    )?;
    make_room_in(tx, violation.user, kept)
}

fn make_room_in(tx: &Write<'_>, user: UserId, kept: u32) -> Result<()> {
    tx.execute(
        "delete from violations where id in (select id from violations where user_id = ?1 \
         order by created_at desc, id desc limit ?2 offset ?3)",
        (user.0, PURGE_BATCH, kept),
    )
    .map(drop)
}

/// One page of refusals, newest first.
pub fn list(core: &Core, filter: &Filter, page: Page) -> Result<Listing<Recorded>> {
    core.store.read(|tx| list_in(tx, filter, page))
}

/// One refusal.
///
/// # Errors
/// `not_found`.
pub fn find(core: &Core, id: i64) -> Result<Recorded> {
    let sql = "select id, user_id, content_type, violation_type, words, masked_text, provider, created_at \
               from violations where id = ?1";
    core.store.read(|tx| tx.first(sql, [id], row_of)?.ok_or_else(|| Code::NotFound.into()))
}

/// Returns statistics of a user's violations. Records may outlive their user.
///
/// # Errors
/// `not_found` if there is neither a record nor a user.
pub fn of_user(core: &Core, user: UserId) -> Result<OfUser> {
    core.store.read(|tx| {
        let sums = "select count(*), min(created_at), max(created_at) from violations where user_id = ?1";
        let (total, first, last): (i64, Option<i64>, Option<i64>) =
            tx.one(sums, [user.0], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        if total == 0 {
            users::find_in(tx, user)?;
        }
        let by = |column: &str| {
            let sql = format!(
                "select {column}, count(*) from violations where user_id = ?1 group by {column} \
                 order by count(*) desc, {column}"
            );
            tx.all(&sql, [user.0], count_of)
        };
        Ok(OfUser {
            total,
            types: by("violation_type")?,
            content_types: by("content_type")?,
            first_at: first.map(Timestamp),
            last_at: last.map(Timestamp),
        })
    })
}

/// Counts violations by type, most frequent first.
pub fn types(core: &Core) -> Result<Vec<Count>> {
    let sql = "select violation_type, count(*) from violations group by violation_type \
               order by count(*) desc, violation_type";
    core.store.read(|tx| tx.all(sql, (), count_of))
}

/// Users with at least `threshold` refusals in the last `days`, the worst first. What a model answered them is not
/// their doing.
pub fn frequent(core: &Core, days: u32, threshold: u32, page: Page) -> Result<Listing<Violator>> {
    core.store.read(|tx| {
        let since = tx.now.0.saturating_sub(i64::from(days).saturating_mul(DAY));
        // The plus: the index by time has all that is asked for, that by user would be read from end to end.
        let grouped = "select user_id, count(*) as found, max(created_at) as last from violations \
                     where created_at >= ?1 and content_type <> 'answer' group by +user_id having count(*) >= ?2";
        let items = tx.all(
            &format!("{grouped} order by found desc, user_id limit ?3 offset ?4"),
            (since, threshold, page.size, page.offset()),
            |row| Ok(Violator { user: UserId(row.get(0)?), count: row.get(1)?, last_at: Timestamp(row.get(2)?) }),
        )?;
        let total = tx.one(&format!("select count(*) from ({grouped})"), (since, threshold), |row| row.get(0))?;
        Ok(Listing { items, total })
    })
}

/// Deletes violations older than `days_to_keep` and returns their number. Blocks; works in small slices.
pub fn clean_up(core: &Core, days_to_keep: u32) -> Result<u64> {
    let age = Duration::from_hours(24) * days_to_keep;
    Ok(free_space_scrub::delete_in_batches(core, move |tx| delete_older_in(tx, age, SLICE))? as u64)
}

/// Deletes up to `slice` violations older than `age` and returns the number deleted.
pub fn delete_older_in(tx: &Write<'_>, age: Duration, slice: u32) -> Result<usize> {
    tx.execute(
        "delete from violations where id in (select id from violations where created_at < ?1 limit ?2)",
        (tx.now.minus(age).0, slice),
    )
}

/// Returns the number of violations that a cleanup would delete.
pub fn older_than(core: &Core, days_to_keep: u32) -> Result<i64> {
    core.store.read(|tx| {
        let before = tx.now.0.saturating_sub(i64::from(days_to_keep).saturating_mul(DAY));
        tx.one("select count(*) from violations where created_at < ?1", [before], |row| row.get(0))
    })
}

fn list_in(tx: &Read<'_>, filter: &Filter, page: Page) -> Result<Listing<Recorded>> {
    let condition = filter.condition();
    let user = filter.user.map(|user| user.0);
    let (from, to) = (filter.from.map(|from| from.0), filter.to.map(|to| to.0));
    let total = tx.one(
        &format!("select count(*) from violations where {condition}"),
        (user, &filter.violation_type, &filter.content_type, from, to),
        |row| row.get(0),
    )?;
    let items = tx.all(
        &format!(
            "select id, user_id, content_type, violation_type, words, masked_text, provider, created_at \
             from violations where {condition} order by created_at desc, id desc limit ?6 offset ?7"
        ),
        (user, &filter.violation_type, &filter.content_type, from, to, page.size, page.offset()),
        row_of,
    )?;
    Ok(Listing { items, total })
}

impl Filter {
    /// Builds the condition from the given filters only, so that each set of filters is its own statement and uses the
    /// index that serves it. With both a type and a content type, the index of the type is better: nearly all
    /// violations have one content type.
    fn condition(&self) -> String {
        let of_content = if self.violation_type.is_some() { "+content_type = ?3" } else { "content_type = ?3" };
        let terms = [
            (self.user.is_some(), "user_id = ?1", "?1 is null"),
            (self.violation_type.is_some(), "violation_type = ?2", "?2 is null"),
            (self.content_type.is_some(), of_content, "?3 is null"),
            (self.from.is_some(), "created_at >= ?4", "?4 is null"),
            (self.to.is_some(), "created_at < ?5", "?5 is null"),
        ];
        terms.map(|(is_given, compared, absent)| if is_given { compared } else { absent }).join(" and ")
    }
}

fn row_of(row: &Row<'_>) -> rusqlite::Result<Recorded> {
    let words: String = row.get(4)?;
    Ok(Recorded {
        id: row.get(0)?,
        user: UserId(row.get(1)?),
        content_type: row.get(2)?,
        violation_type: row.get(3)?,
        words: serde_json::from_str(&words).unwrap_or_default(),
        masked_text: row.get(5)?,
        provider: row.get(6)?,
        at: Timestamp(row.get(7)?),
    })
}

fn count_of(row: &Row<'_>) -> rusqlite::Result<Count> {
    Ok(Count { name: row.get(0)?, count: row.get(1)? })
}

/// Takes the texts out of the user's violations. That there were some stays known, for the statistics.
pub fn erase_user_in(tx: &Write<'_>, user: UserId) -> Result<()> {
    tx.execute("update violations set words = '[]', masked_text = '' where user_id = ?1", [user.0]).map(drop)
}

/// Exports the user's violations.
pub fn export_in(tx: &Read<'_>, user: UserId, each: Each<'_>) -> Result<()> {
    tx.each(
        "select content_type, violation_type, masked_text, created_at from violations where user_id = ?1 order by id",
        [user.0],
        |row| {
            each(json!({
                "contentType": row.get::<String>(0)?,
                "violationType": row.get::<String>(1)?,
                "maskedText": row.get::<String>(2)?,
                "createdAt": Timestamp(row.get(3)?),
            }))
        },
    )
}
