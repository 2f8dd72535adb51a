//! Interpretation records, written before the call and finished after it.

use std::{cmp::Reverse, time::Duration};

use serde_json::json;

use super::{question::CastingQuestion, rating::Rating};
use crate::{
    core::Core,
    domain::{
        Each,
        divination::{
            help,
            model_calls::{CallStatus, Outcome, running_calls::NewCall},
        },
        identity::users,
        moderation::risk::classify_question,
        operations::account_erasures,
    },
    error::{Code, Result},
    store::{
        Read, Row, RowResult, Write,
        sliding_window::{PURGE_BATCH, is_purge_due},
    },
    types::{JsonText, MicroAmount, PageRequest, Paginated, Timestamp, UserId, milliseconds},
};

/// The columns of a record, in the order in which [`record_of`] reads them.
macro_rules! columns {
    () => {
        "trace_id, user_id, question_type, question, divination_data, status, provider, model, prompt_version, \
         result, prompt_tokens, completion_tokens, cost_micros, failover, first_token_ms, duration_ms, error_class, \
         created_at, finished_at, finish_reason, is_helpful, rating_note, rated_at"
    };
}

/// At most one in this many kept records may have more than 4,000 characters of data.
const LARGE_SHARE: u32 = 10;

/// The first version of the instructions under which no oracle answers a question that needs help.
const FIRST_VERSION_WITH_HELP: u32 = 4;

/// A record of an interpretation.
#[derive(Clone, Debug)]
pub struct CallRecord {
    pub trace_id: String,
    pub user: UserId,
    pub question_type: Option<String>,
    /// Empty if there was none, and after the account was deleted.
    pub question: String,
    pub divination_data: Option<JsonText<'static>>,
    pub status: CallStatus,
    pub provider: String,
    pub model: String,
    pub prompt_version: String,
    pub result: Option<String>,
    /// The usage that the provider reported, if any.
    pub prompt_tokens: Option<i64>,
    pub completion_tokens: Option<i64>,
    /// The cost by the price list, if tokens and price are known.
    pub cost: Option<MicroAmount>,
    /// The failure of the primary model, if the fallback was called.
    pub failover: Option<String>,
    pub first_token_ms: Option<i64>,
    pub duration_ms: Option<i64>,
    pub error_class: Option<String>,
    pub created_at: Timestamp,
    pub finished_at: Option<Timestamp>,
    /// `stop`, or `length` if the token limit cut the result.
    pub finish_reason: Option<String>,
    pub rating: Option<Rating>,
}

impl CallRecord {
    /// Returns true if the record was made under the rules for questions that need help.
    pub fn follows_help_rules(&self) -> bool {
        let version = self.prompt_version.split('+').next().and_then(|version| version.parse::<u32>().ok());
        version.is_some_and(|version| version >= FIRST_VERSION_WITH_HELP)
    }

    /// Puts help in place of a reading that an earlier version gave to a question on which none may be given.
    fn with_help(self) -> Self {
        if self.result.is_none() || self.follows_help_rules() {
            return self;
        }
        let risk = classify_question(&self.question, self.question_type.as_deref());
        let help = risk.map(|risk| help::general_answer(risk, &self.question));
        Self { result: help.or(self.result), ..self }
    }
}

/// A record as written before the call.
pub(super) struct NewRecord {
    pub call: NewCall,
    pub question: CastingQuestion,
    pub prompt_version: String,
    pub retention: RecordRetention,
}

/// The rule by which a record is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordRetention {
    /// Deleted with its session.
    WithSession,
    /// Deleted once the user has enough newer records.
    Newest,
}

/// Returns the user's records, newest first.
pub fn list_of_user(core: &Core, user: UserId, page: PageRequest) -> Result<Paginated<CallRecord>> {
    list_of_user_between(core, user, Timestamp(i64::MIN), Timestamp(i64::MAX), page)
}

/// Returns the user's records of `[from, to)`, newest first.
pub fn list_of_user_between(
    core: &Core,
    user: UserId,
    from: Timestamp,
    to: Timestamp,
    page: PageRequest,
) -> Result<Paginated<CallRecord>> {
    core.store.read(|tx| {
        let items = tx.all(
            concat!(
                "select ",
                columns!(),
                " from interpretations where user_id = ?1 and created_at >= ?2 and created_at < ?3 \
                 order by created_at desc, id desc limit ?4 offset ?5"
            ),
            (user.0, from.0, to.0, page.size, page.offset()),
            record_of,
        )?;
        let items = without_erased_in(tx, items)?;
        let count = "select count(*) from interpretations where user_id = ?1 and created_at >= ?2 and created_at < ?3";
        Ok(Paginated { items, total: tx.one(count, (user.0, from.0, to.0), |row| row.get(0))? })
    })
}

/// Returns calls that failed or were interrupted, newest first.
pub fn list_failed(core: &Core, page: PageRequest) -> Result<Paginated<CallRecord>> {
    core.store.read(|tx| {
        let items = tx.all(
            concat!(
                "select ",
                columns!(),
                " from interpretations where status in ('failed', 'interrupted') order by id desc limit ?1 offset ?2"
            ),
            (page.size, page.offset()),
            record_of,
        )?;
        let items = without_erased_in(tx, items)?;
        let count = "select count(*) from interpretations where status in ('failed', 'interrupted')";
        Ok(Paginated { items, total: tx.one(count, (), |row| row.get(0))? })
    })
}

/// Returns calls that took at least this long, newest first.
pub fn list_slow(core: &Core, duration: Duration, page: PageRequest) -> Result<Paginated<CallRecord>> {
    let duration_ms = milliseconds(duration);
    core.store.read(|tx| {
        // The `+` stops the planner from scanning the whole table in order of id. Slow calls are few, so sorting their ids is
        // cheap, and only rows of the page are read in full.
        let items = tx.all(
            concat!(
                "select ",
                columns!(),
                " from interpretations where id in (select id from interpretations where duration_ms >= ?1 \
                 order by +id desc limit ?2 offset ?3) order by id desc"
            ),
            (duration_ms, page.size, page.offset()),
            record_of,
        )?;
        let items = without_erased_in(tx, items)?;
        let count = "select count(*) from interpretations where duration_ms >= ?1";
        Ok(Paginated { items, total: tx.one(count, [duration_ms], |row| row.get(0))? })
    })
}

pub fn count_of_user(core: &Core, user: UserId) -> Result<i64> {
    let count = "select count(*) from interpretations where user_id = ?1";
    core.store.read(|tx| tx.one(count, [user.0], |row| row.get(0)))
}

/// Returns the number of calls that began in `[from, to)`.
pub fn count_between(core: &Core, from: Timestamp, to: Timestamp) -> Result<i64> {
    let count = "select count(*) from interpretations where created_at >= ?1 and created_at < ?2";
    core.store.read(|tx| tx.one(count, (from.0, to.0), |row| row.get(0)))
}

/// Returns the record with this trace id; with an owner, only if it belongs to them.
///
/// # Errors
/// `not_found` also for another user's record.
pub fn find_by_trace(core: &Core, owner: Option<UserId>, trace_id: &str) -> Result<CallRecord> {
    core.store.read(|tx| find_in(tx, owner, trace_id))
}

fn find_in(tx: &Read<'_>, owner: Option<UserId>, trace_id: &str) -> Result<CallRecord> {
    let found = tx.first(
        concat!("select ", columns!(), " from interpretations where trace_id = ?1 and (user_id = ?2 or ?2 is null)"),
        (trace_id, owner.map(|owner| owner.0)),
        record_of,
    )?;
    without_erased_in(tx, found.into_iter().collect())?.pop().ok_or_else(|| Code::NotFound.into())
}

/// Returns the interpretation with this trace id; none if the call is running, failed or deleted.
pub fn find_succeeded(core: &Core, owner: UserId, trace_id: &str) -> Result<Option<CallRecord>> {
    match find_by_trace(core, Some(owner), trace_id) {
        Ok(record) => Ok(Some(record).filter(|record| record.status == CallStatus::Succeeded)),
        Err(error) if error.code == Code::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the successful ones of these calls, newest first.
pub fn succeeded_in(tx: &Read<'_>, trace_ids: &[String]) -> Result<Vec<CallRecord>> {
    let mut found = Vec::new();
    for trace_id in trace_ids {
        if let Some((position, CallStatus::Succeeded)) = position_and_status_in(tx, trace_id)? {
            found.push((position, find_in(tx, None, trace_id)?));
        }
    }
    found.sort_unstable_by_key(|(position, _)| Reverse(*position));
    Ok(found.into_iter().map(|(_, record)| record).collect())
}

/// Returns the record's position by age and its status.
pub fn position_and_status_in(tx: &Read<'_>, trace_id: &str) -> Result<Option<(i64, CallStatus)>> {
    let sql = "select id, status from interpretations where trace_id = ?1";
    tx.first(sql, [trace_id], |row| Ok((row.get(0)?, row.get_parsed(1, CallStatus::from_name)?)))
}

/// Deletes a record. The answer of a call that is still running is then dropped.
pub fn delete_in(tx: &Write<'_>, trace_id: &str) -> Result<()> {
    tx.execute("delete from interpretations where trace_id = ?1", [trace_id]).map(drop)
}

/// Marks a running call of a user who is deleted as cancelled. Its answer is then dropped.
pub fn cancel_in(tx: &Write<'_>, trace_id: &str) -> Result<()> {
    let cancel = "update interpretations set status = 'cancelled', finished_at = ?2 where trace_id = ?1 \
                  and status = 'running'";
    tx.execute(cancel, (trace_id, tx.now.0)).map(drop)
}

/// Returns the ids of the user's records.
pub fn ids_of_user_in(tx: &Read<'_>, user: UserId) -> Result<Vec<i64>> {
    tx.all("select id from interpretations where user_id = ?1 order by created_at, id", [user.0], |row| row.get(0))
}

/// Clears the texts of a record of a deleted user. Durations stay for the statistics.
pub fn erase_in(tx: &Write<'_>, id: i64) -> Result<()> {
    tx.execute(
        "update interpretations set question_type = null, question = '', divination_data = null, result = null, \
         rating_note = null, status = case status when 'running' then 'cancelled' else status end, \
         finished_at = coalesce(finished_at, ?2) where id = ?1",
        (id, tx.now.0),
    )
    .map(drop)
}

/// Leaves out the texts of users who are being erased.
fn without_erased_in(tx: &Read<'_>, records: Vec<CallRecord>) -> Result<Vec<CallRecord>> {
    let erased = account_erasures::list_in(tx)?;
    let cleared = |record: CallRecord| CallRecord {
        question_type: None,
        question: String::new(),
        divination_data: None,
        result: None,
        rating: record.rating.map(|rating| Rating { note: None, ..rating }),
        ..record
    };
    let shown = records.into_iter().map(|record| if erased.contains(&record.user) { cleared(record) } else { record });
    Ok(shown.collect())
}

/// Exports the user's records.
pub fn export_in(tx: &Read<'_>, user: UserId, each: Each<'_>) -> Result<()> {
    let sql = concat!("select ", columns!(), " from interpretations where user_id = ?1 order by created_at, id");
    tx.each(sql, [user.0], |row| {
        let record = record_of(row)?;
        each(json!({
            "traceId": record.trace_id,
            "questionType": record.question_type,
            "question": record.question,
            "divinationData": record.divination_data,
            "status": record.status.name(),
            "provider": record.provider,
            "model": record.model,
            "result": record.result,
            "finishReason": record.finish_reason,
            "durationMs": record.duration_ms,
            "createdAt": record.created_at,
            "finishedAt": record.finished_at,
            "rating": record.rating.map(Rating::into_json),
        }))
    })
}

/// Deletes finished records beyond the user's newest `kept`, except those of sessions, a few at a time: each new record
/// adds at most one surplus record.
pub(super) fn delete_surplus_in(tx: &Write<'_>, user: UserId, newest: i64, kept: u32) -> Result<()> {
    if !is_purge_due(newest, kept) {
        return Ok(());
    }
    tx.execute(
        "delete from interpretations where id in (select id from interpretations where user_id = ?1 \
         order by created_at desc, id desc limit ?2 offset ?3) and status <> 'running' and of_session = 0",
        (user.0, PURGE_BATCH, kept),
    )?;
    // Fewer of the large ones, so that nobody fills the disk with what a request may contain.
    tx.execute(
        "delete from interpretations where id in (select id from interpretations where user_id = ?1 \
         and length(divination_data) > 4000 order by created_at desc, id desc limit ?2 offset ?3) \
         and status <> 'running' and of_session = 0",
        (user.0, PURGE_BATCH, kept.div_ceil(LARGE_SHARE)),
    )
    .map(drop)
}

/// Returns the id of the record.
pub(super) fn begin_in(tx: &Write<'_>, record: &NewRecord) -> Result<i64> {
    users::require_in(tx, record.call.user)?;
    tx.insert(
        "insert into interpretations (trace_id, user_id, question_type, question, divination_data, status, provider, \
         model, prompt_version, created_at, of_session) values (?1, ?2, ?3, ?4, ?5, 'running', ?6, ?7, ?8, ?9, ?10)",
        (
            &record.call.trace_id,
            record.call.user.0,
            &record.question.question_type,
            &record.question.question,
            record.question.divination_data.as_ref().map(JsonText::as_str),
            record.call.provider,
            &record.call.model,
            &record.prompt_version,
            tx.now.0,
            record.retention == RecordRetention::WithSession,
        ),
    )
}

/// Finishes a record. Returns `None` if it is not in the state "running".
pub(super) fn finish_in(tx: &Write<'_>, trace_id: &str, outcome: &Outcome) -> Result<Option<CallRecord>> {
    let (prompt_tokens, completion_tokens) = outcome.tokens();
    let finished = tx.execute(
        "update interpretations set status = ?2, result = ?3, provider = ?4, model = ?5, prompt_tokens = ?6, \
         completion_tokens = ?7, cost_micros = ?8, failover = ?9, first_token_ms = ?10, duration_ms = ?11, \
         error_class = ?12, finished_at = ?13, finish_reason = ?14 where trace_id = ?1 and status = 'running'",
        (
            trace_id,
            outcome.status.name(),
            &outcome.text,
            outcome.provider,
            &outcome.model,
            prompt_tokens,
            completion_tokens,
            outcome.cost.map(MicroAmount::as_i64),
            &outcome.failover,
            outcome.first_token_ms(),
            outcome.duration_ms(),
            &outcome.error_class,
            tx.now.0,
            &outcome.finish_reason,
        ),
    )?;
    if finished == 0 {
        return Ok(None);
    }
    // Not by `returning`, for which SQLite builds a temporary tree.
    tx.first(concat!("select ", columns!(), " from interpretations where trace_id = ?1"), [trace_id], record_of)
}

/// Marks the record of a running call as interrupted.
pub fn interrupt_in(tx: &Write<'_>, trace_id: &str) -> Result<()> {
    tx.execute(
        "update interpretations set status = 'interrupted', error_class = 'interrupted', finished_at = ?2 \
         where trace_id = ?1 and status = 'running'",
        (trace_id, tx.now.0),
    )
    .map(drop)
}

fn record_of(row: &Row<'_>) -> RowResult<CallRecord> {
    let record = CallRecord {
        trace_id: row.get(0)?,
        user: UserId(row.get(1)?),
        question_type: row.get(2)?,
        question: row.get(3)?,
        divination_data: row.get::<Option<String>>(4)?.map(JsonText::from_stored),
        status: row.get_parsed(5, CallStatus::from_name)?,
        provider: row.get(6)?,
        model: row.get(7)?,
        prompt_version: row.get(8)?,
        result: row.get(9)?,
        prompt_tokens: row.get(10)?,
        completion_tokens: row.get(11)?,
        cost: row.get::<Option<i64>>(12)?.map(MicroAmount::from_stored),
        failover: row.get(13)?,
        first_token_ms: row.get(14)?,
        duration_ms: row.get(15)?,
        error_class: row.get(16)?,
        created_at: Timestamp(row.get(17)?),
        finished_at: row.get::<Option<i64>>(18)?.map(Timestamp),
        finish_reason: row.get(19)?,
        rating: match (row.get(20)?, row.get::<Option<i64>>(22)?) {
            (Some(is_helpful), Some(rated_at)) => {
                Some(Rating { is_helpful, note: row.get(21)?, rated_at: Timestamp(rated_at) })
            }
            _ => None,
        },
    };
    Ok(record.with_help())
}
