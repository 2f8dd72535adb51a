//! The record of a model call: begun before it, finished after it.

use std::time::Duration;

use rusqlite::Row;

use super::Question;
use crate::{
    app::App,
    error::{Code, Error, Result},
    store::{Read, Write},
    types::{JsonText, Listing, Page, Timestamp, UserId},
};

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Running,
    Succeeded,
    Failed,
    /// The client went away before the answer was complete.
    Cancelled,
    /// The service stopped while the call ran.
    Interrupted,
}

impl Status {
    const ALL: [Self; 5] = [Self::Running, Self::Succeeded, Self::Failed, Self::Cancelled, Self::Interrupted];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
        }
    }
}

/// Tokens that the provider counted. Nothing where it did not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub prompt_tokens: Option<i64>,
    pub completion_tokens: Option<i64>,
}

/// A call and all that is known of it.
#[derive(Clone, Debug)]
pub struct Record {
    pub trace_id: String,
    pub user: UserId,
    pub question_type: Option<String>,
    pub question: String,
    pub divination_data: Option<JsonText>,
    pub status: Status,
    pub provider: String,
    pub model: String,
    pub prompt_version: String,
    pub result: Option<String>,
    pub usage: Usage,
    pub first_token_ms: Option<i64>,
    pub duration_ms: Option<i64>,
    pub error_class: Option<String>,
    pub created_at: Timestamp,
    pub finished_at: Option<Timestamp>,
}

pub(super) struct Draft {
    pub trace_id: String,
    pub user: UserId,
    pub question: Question,
    pub provider: &'static str,
    pub model: String,
    pub prompt_version: &'static str,
}

pub(super) struct Outcome {
    pub status: Status,
    pub result: Option<String>,
    /// The model that answered, if the provider names another than was asked.
    pub model: Option<String>,
    pub usage: Usage,
    pub first_token: Option<Duration>,
    pub error_class: Option<String>,
}

/// The user's records, newest first.
pub fn list_of_user(app: &App, user: UserId, page: Page) -> Result<Listing<Record>> {
    app.store.read(|tx| {
        let items = tx.all(
            "select trace_id, user_id, question_type, question, divination_data, status, provider, model, \
             prompt_version, result, prompt_tokens, completion_tokens, first_token_ms, duration_ms, error_class, \
             created_at, finished_at from interpretations where user_id = ?1 order by id desc limit ?2 offset ?3",
            (user.0, page.size, page.offset()),
            record_of,
        )?;
        let count = "select count(*) from interpretations where user_id = ?1";
        Ok(Listing { items, total: tx.one(count, [user.0], |row| row.get(0))? })
    })
}

/// The record with this trace id; with an owner, only if it is theirs.
///
/// # Errors
/// `not_found` also for the record of somebody else than the owner.
pub fn find_by_trace(app: &App, owner: Option<UserId>, trace_id: &str) -> Result<Record> {
    app.store.read(|tx| {
        tx.first(
            "select trace_id, user_id, question_type, question, divination_data, status, provider, model, \
             prompt_version, result, prompt_tokens, completion_tokens, first_token_ms, duration_ms, error_class, \
             created_at, finished_at from interpretations where trace_id = ?1 and (?2 is null or user_id = ?2)",
            (trace_id, owner.map(|owner| owner.0)),
            record_of,
        )?
        .ok_or_else(|| Code::NotFound.into())
    })
}

/// Whether this call is running.
pub fn is_running_in(tx: &Read<'_>, trace_id: &str) -> Result<bool> {
    let running = "select 1 from interpretations where trace_id = ?1 and status = 'running'";
    Ok(tx.first(running, [trace_id], |_| Ok(()))?.is_some())
}

/// Deletes a record. What a running call answers is then dropped.
pub fn delete_in(tx: &Write<'_>, trace_id: &str) -> Result<()> {
    tx.execute("delete from interpretations where trace_id = ?1", [trace_id]).map(drop)
}

pub(super) fn begin_in(tx: &Write<'_>, draft: &Draft) -> Result<()> {
    tx.execute(
        "insert into interpretations (trace_id, user_id, question_type, question, divination_data, status, provider, \
         model, prompt_version, created_at) values (?1, ?2, ?3, ?4, ?5, 'running', ?6, ?7, ?8, ?9)",
        (
            &draft.trace_id,
            draft.user.0,
            &draft.question.question_type,
            &draft.question.question,
            draft.question.divination_data.as_ref().map(JsonText::as_str),
            draft.provider,
            &draft.model,
            draft.prompt_version,
            tx.now.0,
        ),
    )
    .map(drop)
}

pub(super) fn finish_in(tx: &Write<'_>, trace_id: &str, outcome: &Outcome, duration: Duration) -> Result<Record> {
    let milliseconds = |duration: Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
    let finished = tx.first(
        "update interpretations set status = ?2, result = ?3, model = coalesce(?4, model), prompt_tokens = ?5, \
         completion_tokens = ?6, first_token_ms = ?7, duration_ms = ?8, error_class = ?9, finished_at = ?10 \
         where trace_id = ?1 and status = 'running' \
         returning trace_id, user_id, question_type, question, divination_data, status, provider, model, \
         prompt_version, result, prompt_tokens, completion_tokens, first_token_ms, duration_ms, error_class, \
         created_at, finished_at",
        (
            trace_id,
            outcome.status.name(),
            &outcome.result,
            &outcome.model,
            outcome.usage.prompt_tokens,
            outcome.usage.completion_tokens,
            outcome.first_token.map(milliseconds),
            milliseconds(duration),
            &outcome.error_class,
            tx.now.0,
        ),
        record_of,
    )?;
    finished.ok_or_else(|| Error::new(Code::NotFound).detail("What was to be interpreted was deleted meanwhile."))
}

pub(super) fn close_interrupted_in(tx: &Write<'_>) -> Result<usize> {
    tx.execute(
        "update interpretations set status = 'interrupted', finished_at = ?1 where status = 'running'",
        [tx.now.0],
    )
}

fn record_of(row: &Row<'_>) -> rusqlite::Result<Record> {
    let status: String = row.get(5)?;
    Ok(Record {
        trace_id: row.get(0)?,
        user: UserId(row.get(1)?),
        question_type: row.get(2)?,
        question: row.get(3)?,
        divination_data: row.get::<_, Option<String>>(4)?.map(JsonText::from_stored),
        status: Status::ALL.into_iter().find(|known| known.name() == status).unwrap_or(Status::Running),
        provider: row.get(6)?,
        model: row.get(7)?,
        prompt_version: row.get(8)?,
        result: row.get(9)?,
        usage: Usage { prompt_tokens: row.get(10)?, completion_tokens: row.get(11)? },
        first_token_ms: row.get(12)?,
        duration_ms: row.get(13)?,
        error_class: row.get(14)?,
        created_at: Timestamp(row.get(15)?),
        finished_at: row.get::<_, Option<i64>>(16)?.map(Timestamp),
    })
}
