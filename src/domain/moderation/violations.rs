//! Violations: rejected texts, with their users, types and masked matches.
//!
//! A violation never holds the original text, and only an excerpt of the masked one. Deleting an account clears its texts.
//! The number of violations of a user has an hourly limit, and only the newest are kept.

use std::{borrow::Cow, time::Duration};

use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::{
    core::Core,
    domain::{
        Each,
        identity::users,
        operations::{
            account_erasures, free_space_scrub, steps,
            webhook_outbox::{self, NewWebhookEvent, WebhookKind},
        },
    },
    error::{Code, Error, RateLimit, Result},
    store::{
        Read, Row, RowResult, Write,
        sliding_window::{self, HOUR, PURGE_BATCH, Window, is_purge_due, window_rows},
    },
    types::{PageRequest, Paginated, Timestamp, UserId},
};

/// The default retention of a cleanup, in days.
pub const DAYS_TO_KEEP: u32 = 180;
/// The default window in which the violations of frequent violators are counted, in days.
pub const FREQUENT_DAYS: u32 = 30;
/// The default number of violations from which a user is a frequent violator.
pub const FREQUENT_THRESHOLD: u32 = 3;

macro_rules! violation_columns {
    () => {
        "id, user_id, content_type, violation_type, words, masked_text, provider, created_at, acquitted_at, acquitted_by"
    };
}

const DAY: i64 = 24 * 60 * 60 * 1_000;

/// A violation to be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub user: UserId,
    pub content_type: &'static str,
    /// The type of the first word found.
    pub violation_type: String,
    pub words: Vec<String>,
    pub masked_text: String,
    /// The service that rejected the text.
    pub provider: Cow<'static, str>,
}

/// A stored violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViolationRecord {
    pub id: i64,
    pub user: UserId,
    pub content_type: String,
    pub violation_type: String,
    pub words: Vec<String>,
    pub masked_text: String,
    pub provider: String,
    pub at: Timestamp,
    /// The time at which a moderator acquitted the text.
    pub acquitted_at: Option<Timestamp>,
    pub acquitted_by: Option<String>,
}

/// A query for violations. The times are a half-open range.
#[derive(Clone, Debug, Default)]
pub struct ViolationQuery {
    pub user: Option<UserId>,
    pub content_type: Option<String>,
    pub violation_type: Option<String>,
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
}

/// A number of violations by kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ViolationCount)]
pub struct NameCount {
    #[serde(rename = "type")]
    #[schema(example = "gambling")]
    pub name: String,
    #[schema(example = 3)]
    pub count: i64,
}

/// Statistics about a user's violations.
#[derive(Clone, Debug)]
pub struct ViolationSummary {
    pub total: i64,
    pub types: Vec<NameCount>,
    pub content_types: Vec<NameCount>,
    pub first_at: Option<Timestamp>,
    pub last_at: Option<Timestamp>,
}

/// A user with many violations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = FrequentViolator)]
pub struct Violator {
    #[serde(rename = "userId")]
    pub user: UserId,
    #[schema(example = 5)]
    pub count: i64,
    pub last_at: Timestamp,
}

/// Rejects a user with `allowed` violations in the last hour. Violations of model answers do not count.
///
/// # Errors
/// `too_many_requests`.
pub fn check_rate_limit_in(tx: &Read<'_>, user: UserId, allowed: u32) -> Result<()> {
    let rows = window_rows!("violations", "created_at", "user_id = ?1 and content_type <> 'answer'");
    let limit = RateLimit { name: "rejected-texts", quota: allowed, window: HOUR };
    sliding_window::require_open_in(tx, &[Window { limit, rows, key: user.0 }])
}

/// Returns the number of a user's violations after a time, of one type or all. Those of model answers and acquitted ones
/// do not count.
pub fn count_since_in(tx: &Read<'_>, user: UserId, violation_type: Option<&str>, since: Timestamp) -> Result<i64> {
    let sql = "select count(*) from violations where user_id = ?1 and created_at > ?2 and content_type <> 'answer' \
               and acquitted_at is null and (violation_type = ?3 or ?3 is null)";
    tx.one(sql, (user.0, since.0, violation_type), |row| row.get(0))
}

/// Records a violation, and deletes those beyond the user's newest `kept`. Returns its id.
pub fn record_in(tx: &Write<'_>, violation: &Violation, kept: u32) -> Result<i64> {
    users::require_in(tx, violation.user)?;
    let id = tx.insert(
        "insert into violations (user_id, content_type, violation_type, words, masked_text, provider, created_at) \
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        (
            violation.user.0,
            violation.content_type,
            &violation.violation_type,
            serde_json::to_string(&violation.words).map_err(Error::internal)?,
            &violation.masked_text,
            &violation.provider,
            tx.now.0,
        ),
    )?;
    if is_purge_due(id, kept) {
        delete_surplus_in(tx, violation.user, kept)?;
    }
    let data = json!({
        "violationId": id.to_string(), "contentType": violation.content_type,
        "violationType": violation.violation_type,
    });
    let (kind, user) = (WebhookKind::ViolationRecorded, Some(violation.user));
    webhook_outbox::record_in(tx, &NewWebhookEvent { kind, user, data, text: Some(&violation.masked_text) })?;
    Ok(id)
}

/// Deletes a violation whose review was undone.
pub fn remove_in(tx: &Write<'_>, id: i64) -> Result<()> {
    tx.execute("delete from violations where id = ?1", [id]).map(drop)
}

/// Marks a violation as wrongly refused.
///
/// # Errors
/// `not_found`; `already_exists` if it is acquitted.
pub fn acquit_in(tx: &Write<'_>, id: i64, actor: &str) -> Result<ViolationRecord> {
    if find_in(tx, id)?.acquitted_at.is_some() {
        return Err(
            Error::new(Code::AlreadyExists).detail(("This refusal is already acquitted.", "此条已改判为误判。"))
        );
    }
    tx.one(
        concat!(
            "update violations set acquitted_at = ?2, acquitted_by = ?3 where id = ?1 returning ",
            violation_columns!()
        ),
        (id, tx.now.0, actor),
        violation_of,
    )
}

/// Undoes an acquittal.
///
/// # Errors
/// `not_found`; `already_exists` if it is not acquitted.
pub fn undo_acquittal_in(tx: &Write<'_>, id: i64) -> Result<ViolationRecord> {
    let undone = tx.first(
        concat!(
            "update violations set acquitted_at = null, acquitted_by = null \
             where id = ?1 and acquitted_at is not null returning ",
            violation_columns!()
        ),
        [id],
        violation_of,
    )?;
    match undone {
        Some(undone) => Ok(undone),
        None => find_in(tx, id).and_then(|_| {
            let detail = ("This refusal is not acquitted; there is nothing to undo.", "此条未改判，无可撤销。");
            Err(Error::new(Code::AlreadyExists).detail(detail))
        }),
    }
}

fn delete_surplus_in(tx: &Write<'_>, user: UserId, kept: u32) -> Result<()> {
    tx.execute(
        "delete from violations where id in (select id from violations where user_id = ?1 \
         order by created_at desc, id desc limit ?2 offset ?3)",
        (user.0, PURGE_BATCH, kept),
    )
    .map(drop)
}

/// Returns a page of violations, newest first.
pub fn list(core: &Core, query: &ViolationQuery, page: PageRequest) -> Result<Paginated<ViolationRecord>> {
    core.store.read(|tx| list_in(tx, query, page))
}

/// Returns the violation with this id.
///
/// # Errors
/// `not_found`.
pub fn find(core: &Core, id: i64) -> Result<ViolationRecord> {
    core.store.read(|tx| find_in(tx, id))
}

fn find_in(tx: &Read<'_>, id: i64) -> Result<ViolationRecord> {
    let sql = concat!("select ", violation_columns!(), " from violations where id = ?1");
    let found = tx.first(sql, [id], violation_of)?;
    without_erased_in(tx, found.into_iter().collect())?.pop().ok_or_else(|| Code::NotFound.into())
}

/// Returns statistics about a user's violations, also for a deleted user who has some.
///
/// # Errors
/// `not_found` if neither the user nor a violation exists.
pub fn of_user(core: &Core, user: UserId) -> Result<ViolationSummary> {
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
        Ok(ViolationSummary {
            total,
            types: by("violation_type")?,
            content_types: by("content_type")?,
            first_at: first.map(Timestamp),
            last_at: last.map(Timestamp),
        })
    })
}

/// Returns the number of violations by type, most frequent first.
pub fn types(core: &Core) -> Result<Vec<NameCount>> {
    let sql = "select violation_type, count(*) from violations group by violation_type \
               order by count(*) desc, violation_type";
    core.store.read(|tx| tx.all(sql, (), count_of))
}

/// Returns users with at least `threshold` violations in the last `days`, most first. Violations of model answers do
/// not count.
pub fn frequent(core: &Core, days: u32, threshold: u32, page: PageRequest) -> Result<Paginated<Violator>> {
    core.store.read(|tx| {
        let since = tx.now.0.saturating_sub(i64::from(days).saturating_mul(DAY));
        // The sum makes the planner use the index by time, which covers the query, instead of scanning the index by user.
        let grouped = "select user_id + 0 as violator, count(*) as found, max(created_at) as last from violations \
                     where created_at >= ?1 and content_type <> 'answer' group by user_id + 0 having count(*) >= ?2";
        let items = tx.all(
            &format!("{grouped} order by found desc, violator limit ?3 offset ?4"),
            (since, threshold, page.size, page.offset()),
            |row| Ok(Violator { user: UserId(row.get(0)?), count: row.get(1)?, last_at: Timestamp(row.get(2)?) }),
        )?;
        let total =
            tx.one(&format!("select count(*) from ({grouped}) as violators"), (since, threshold), |row| row.get(0))?;
        Ok(Paginated { items, total })
    })
}

/// Deletes violations older than `days_to_keep` days, and returns their number. Blocks.
pub fn clean_up(core: &Core, days_to_keep: u32) -> Result<u64> {
    let age = Duration::from_hours(24) * days_to_keep;
    Ok(free_space_scrub::delete_in_steps(core, move |tx| delete_older_in(tx, age, steps::CHUNK))? as u64)
}

/// Deletes up to `limit` violations older than `age`, and returns their number.
pub fn delete_older_in(tx: &Write<'_>, age: Duration, limit: u32) -> Result<usize> {
    tx.execute(
        "delete from violations where id in (select id from violations where created_at < ?1 limit ?2)",
        (tx.now.minus(age).0, limit),
    )
}

/// Returns the number of violations that a cleanup would delete.
pub fn older_than(core: &Core, days_to_keep: u32) -> Result<i64> {
    core.store.read(|tx| {
        let before = tx.now.0.saturating_sub(i64::from(days_to_keep).saturating_mul(DAY));
        tx.one("select count(*) from violations where created_at < ?1", [before], |row| row.get(0))
    })
}

fn list_in(tx: &Read<'_>, query: &ViolationQuery, page: PageRequest) -> Result<Paginated<ViolationRecord>> {
    let condition = query.condition();
    let user = query.user.map(|user| user.0);
    let (from, to) = (query.from.map(|from| from.0), query.to.map(|to| to.0));
    let total = tx.one(
        &format!("select count(*) from violations where {condition}"),
        (user, &query.violation_type, &query.content_type, from, to),
        |row| row.get(0),
    )?;
    let items = tx.all(
        &format!(
            "select {} from violations where {condition} order by created_at desc, id desc limit ?6 offset ?7",
            violation_columns!()
        ),
        (user, &query.violation_type, &query.content_type, from, to, page.size, page.offset()),
        violation_of,
    )?;
    Ok(Paginated { items: without_erased_in(tx, items)?, total })
}

impl ViolationQuery {
    /// Builds the condition. Each set of filters gets its own statement, so that the planner picks the right index. With
    /// both a type and a content type it must use the index by type, because nearly all violations share a content type.
    fn condition(&self) -> String {
        let content_term = if self.violation_type.is_some() { "content_type || '' = ?3" } else { "content_type = ?3" };
        let terms = [
            (self.user.is_some(), "user_id = ?1", "cast(?1 as bigint) is null"),
            (self.violation_type.is_some(), "violation_type = ?2", "cast(?2 as text) is null"),
            (self.content_type.is_some(), content_term, "cast(?3 as text) is null"),
            (self.from.is_some(), "created_at >= ?4", "cast(?4 as bigint) is null"),
            (self.to.is_some(), "created_at < ?5", "cast(?5 as bigint) is null"),
        ];
        terms.map(|(is_set, compared, absent)| if is_set { compared } else { absent }).join(" and ")
    }
}

/// Returns id, type and time of the violations after an id, in order.
pub fn types_after_in(tx: &Read<'_>, after: i64, limit: u32) -> Result<Vec<(i64, String, Timestamp)>> {
    let sql = "select id, violation_type, created_at from violations where id > ?1 order by id limit ?2";
    tx.all(sql, (after, limit), |row| Ok((row.get(0)?, row.get(1)?, Timestamp(row.get(2)?))))
}

fn violation_of(row: &Row<'_>) -> RowResult<ViolationRecord> {
    let words: String = row.get(4)?;
    Ok(ViolationRecord {
        id: row.get(0)?,
        user: UserId(row.get(1)?),
        content_type: row.get(2)?,
        violation_type: row.get(3)?,
        words: serde_json::from_str(&words).unwrap_or_default(),
        masked_text: row.get(5)?,
        provider: row.get(6)?,
        at: Timestamp(row.get(7)?),
        acquitted_at: row.get::<Option<i64>>(8)?.map(Timestamp),
        acquitted_by: row.get(9)?,
    })
}

fn count_of(row: &Row<'_>) -> RowResult<NameCount> {
    Ok(NameCount { name: row.get(0)?, count: row.get(1)? })
}

/// Clears the texts of up to `limit` violations of a deleted user.
pub fn erase_user_in(tx: &Write<'_>, user: UserId, limit: u32) -> Result<usize> {
    tx.execute(
        "update violations set words = '[]', masked_text = '' where id in (select id from violations \
         where user_id = ?1 and (words <> '[]' or masked_text <> '') limit ?2)",
        (user.0, limit),
    )
}

/// Leaves out the texts of users who are being erased.
fn without_erased_in(tx: &Read<'_>, violations: Vec<ViolationRecord>) -> Result<Vec<ViolationRecord>> {
    let erased = account_erasures::list_in(tx)?;
    let shown = violations.into_iter().map(|record| {
        let is_erased = erased.contains(&record.user);
        if is_erased { ViolationRecord { words: Vec::new(), masked_text: String::new(), ..record } } else { record }
    });
    Ok(shown.collect())
}

/// Exports the user's violations without the words that matched.
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
