//! Rows of sessions and of their model calls.

use std::time::Duration;

use super::{
    casting::{self, Method},
    search,
};
use crate::{
    core::Core,
    domain::{
        divination::{
            chart::{CastTime, DayStart, PlumBlossom},
            hexagram::{Cast, Lines},
            interpretation,
        },
        identity::users::user_exists,
        moderation::risk::{Risk, classify_question},
        operations::{
            deletions::{self, last_deletion},
            idempotency,
        },
    },
    error::{Code, Result},
    store::{Read, Row, RowError, RowResult, Write},
    types::{Timestamp, UserId, milliseconds},
};

/// Builds a query with the columns in the order in which [`session_of`] reads them.
macro_rules! select_sessions {
    ($rest:literal) => {
        concat!(
            "select id, user_id, sequence, question, question_type, method, lines, cast_at, time_zone, points_spent, \
             idempotency_key, created_at, trace_id, model, duration_ms, interpreted_at, day_start, numbers, title, note, change \
             from sessions ",
            $rest
        )
    };
}

/// The route that makes sessions, as stored with idempotency keys.
const ROUTE: &str = "/api/v1/sessions";

/// A stored session.
#[derive(Clone, Debug)]
pub struct Session {
    pub id: String,
    pub user: UserId,
    /// The number of the session among those of the user, in order of creation.
    pub sequence: i64,
    pub question: String,
    pub question_type: Option<String>,
    pub method: Method,
    /// The numbers of a casting by numbers.
    pub numbers: Vec<u32>,
    pub cast: Cast,
    /// The time of the casting, as reported by the user.
    pub cast_at: Timestamp,
    pub time_zone: String,
    /// The user's day rule at the casting. Later changes of the preference do not change the chart.
    pub day_start: DayStart,
    pub points_spent: i64,
    /// The idempotency key of the request that created it, whose stored response is deleted with the session.
    pub idempotency_key: Option<String>,
    /// The newest interpretation that succeeded.
    pub interpretation: Option<SessionInterpretation>,
    pub created_at: Timestamp,
    /// The user's own title and note.
    pub title: Option<String>,
    pub note: Option<String>,
    /// The number of the last change.
    pub change: i64,
}

impl Session {
    /// Returns the risk of the question.
    pub fn risk(&self) -> Option<Risk> {
        classify_question(&self.question, self.question_type.as_deref())
    }

    /// Returns the time and place of the casting; none if the time zone no longer exists.
    pub fn cast_time(&self) -> Option<CastTime> {
        let zone = self.time_zone.parse().ok()?;
        Some(CastTime { at: self.cast_at, zone, day_start: self.day_start })
    }

    /// Returns the derivation of a casting by time or by numbers.
    pub fn derivation(&self) -> Option<PlumBlossom> {
        casting::derivation(self.method, &self.numbers, self.cast_time().as_ref())
    }
}

/// The facts about an interpretation that are stored with the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionInterpretation {
    pub trace_id: String,
    pub model: String,
    pub duration: Duration,
    pub at: Timestamp,
}

/// The numbers of a new session.
pub(super) struct SessionNumbers {
    pub sequence: i64,
    pub change: i64,
}

/// Returns the numbers of the user's next session.
///
/// # Errors
/// `unauthenticated` for a deleted user.
pub(super) fn next_numbers_in(tx: &Read<'_>, user: UserId) -> Result<SessionNumbers> {
    let sql = concat!(
        "select coalesce((select max(sequence) from sessions where user_id = ?1), 0), \
         coalesce((select max(change) from sessions where user_id = ?1), 0), ",
        last_deletion!("?1"),
        ", ",
        user_exists!("?1")
    );
    tx.one(sql, [user.0], |row| {
        let change = deletions::next_change(tx, row.get::<i64>(1)?.max(row.get(2)?));
        Ok(row.get::<bool>(3)?.then_some(SessionNumbers { sequence: row.get::<i64>(0)? + 1, change }))
    })?
    .ok_or_else(|| Code::Unauthenticated.into())
}

pub(super) fn insert_in(tx: &Write<'_>, session: &Session) -> Result<()> {
    tx.execute_later(
        "insert into sessions (id, user_id, sequence, question, question_type, method, lines, cast_at, time_zone, \
         day_start, points_spent, idempotency_key, created_at, numbers, change) \
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
        (
            &session.id,
            session.user.0,
            session.sequence,
            &session.question,
            &session.question_type,
            session.method.name(),
            session.cast.lines().to_string(),
            session.cast_at.0,
            &session.time_zone,
            session.day_start.name(),
            session.points_spent,
            &session.idempotency_key,
            session.created_at.0,
            (!session.numbers.is_empty()).then(|| written(&session.numbers)),
            session.change,
        ),
    )?;
    put_texts_in(tx, session)
}

fn put_texts_in(tx: &Write<'_>, session: &Session) -> Result<()> {
    let texts = [session.title.as_deref(), Some(session.question.as_str()), session.note.as_deref()];
    search::put_texts_in(tx, session.user, session.sequence, texts)
}

/// Returns the number for the next change of one of the user's sessions.
pub(super) fn next_change_in(tx: &Read<'_>, user: UserId) -> Result<i64> {
    deletions::next_change_in(tx, user, last_change_in(tx, user)?)
}

/// Returns the number of the last change of the user's sessions, or 0.
pub fn last_change_in(tx: &Read<'_>, user: UserId) -> Result<i64> {
    tx.one("select coalesce(max(change), 0) from sessions where user_id = ?1", [user.0], |row| row.get(0))
}

/// Returns the user's sessions that changed after a number, in the order of the changes.
pub fn list_changed_in(tx: &Read<'_>, user: UserId, change: i64, limit: u32) -> Result<Vec<Session>> {
    tx.all(
        select_sessions!("where user_id = ?1 and change > ?2 order by change limit ?3"),
        (user.0, change, limit),
        session_of,
    )
}

/// Returns the user's session with this sequence number, if there is one.
pub(super) fn find_by_sequence_in(tx: &Read<'_>, user: UserId, sequence: i64) -> Result<Option<Session>> {
    tx.first(select_sessions!("where user_id = ?1 and sequence = ?2"), (user.0, sequence), session_of)
}

/// Stores the session's title and note.
pub(super) fn set_annotation_in(tx: &Write<'_>, session: &Session) -> Result<()> {
    tx.execute(
        "update sessions set title = ?2, note = ?3, change = ?4 where id = ?1",
        (&session.id, &session.title, &session.note, session.change),
    )?;
    put_texts_in(tx, session)
}

/// Writes numbers with commas between them.
fn written(numbers: &[u32]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// Reads what [`written`] wrote.
fn numbers_of(written: &str) -> RowResult<Vec<u32>> {
    written.split(',').map(|number| number.parse().map_err(|_| RowError::Invalid)).collect()
}

/// Returns the user's session with this id.
///
/// # Errors
/// `not_found`, also for another user's session.
pub fn find(core: &Core, user: UserId, id: &str) -> Result<Session> {
    core.store.read(|tx| find_in(tx, user, id))
}

pub(super) fn find_in(tx: &Read<'_>, user: UserId, id: &str) -> Result<Session> {
    tx.first(select_sessions!("where id = ?1 and user_id = ?2"), (id, user.0), session_of)?
        .ok_or_else(|| Code::NotFound.into())
}

/// Returns the user's sessions before this sequence number, newest first.
pub(super) fn list_before_in(tx: &Read<'_>, user: UserId, sequence: i64, limit: u32) -> Result<Vec<Session>> {
    tx.all(
        select_sessions!("where user_id = ?1 and sequence < ?2 order by sequence desc limit ?3"),
        (user.0, sequence, limit),
        session_of,
    )
}

/// Returns the user's sessions after this sequence number, oldest first.
pub(super) fn list_after_in(tx: &Read<'_>, user: UserId, sequence: i64, limit: u32) -> Result<Vec<Session>> {
    tx.all(
        select_sessions!("where user_id = ?1 and sequence > ?2 order by sequence limit ?3"),
        (user.0, sequence, limit),
        session_of,
    )
}

/// Deletes a model call of a session and its record.
pub(super) fn delete_call_in(tx: &Write<'_>, trace_id: &str) -> Result<()> {
    interpretation::delete_in(tx, trace_id)?;
    tx.execute("delete from session_calls where trace_id = ?1", [trace_id]).map(drop)
}

/// Returns the trace ids of the session's model calls.
pub(super) fn calls_in(tx: &Read<'_>, session_id: &str) -> Result<Vec<String>> {
    tx.all("select trace_id from session_calls where session_id = ?1", [session_id], |row| row.get(0))
}

pub(super) fn add_call_in(tx: &Write<'_>, session_id: &str, trace_id: &str, points_spent: u32) -> Result<()> {
    let add = "insert into session_calls (trace_id, session_id, points_spent) values (?1, ?2, ?3)";
    tx.execute(add, (trace_id, session_id, points_spent)).map(drop)
}

/// Returns the points that a call cost and that were not refunded.
pub(super) fn points_of_call_in(tx: &Read<'_>, trace_id: &str) -> Result<i64> {
    let points = "select points_spent from session_calls where trace_id = ?1";
    Ok(tx.first(points, [trace_id], |row| row.get(0))?.unwrap_or(0))
}

/// Records that the points of a call were refunded.
pub(super) fn clear_points_of_call_in(tx: &Write<'_>, trace_id: &str) -> Result<()> {
    tx.execute("update session_calls set points_spent = 0 where trace_id = ?1", [trace_id]).map(drop)
}

/// Records that the price of a casting was refunded.
pub(super) fn clear_points_in(tx: &Write<'_>, session_id: &str) -> Result<()> {
    tx.execute("update sessions set points_spent = 0 where id = ?1", [session_id]).map(drop)
}

/// Stores the newest interpretation that succeeded.
pub(super) fn set_interpretation_in(
    tx: &Write<'_>,
    user: UserId,
    session_id: &str,
    interpretation: &SessionInterpretation,
) -> Result<()> {
    tx.execute(
        "update sessions set trace_id = ?2, model = ?3, duration_ms = ?4, interpreted_at = ?5, change = ?6 where id = ?1",
        (
            session_id,
            &interpretation.trace_id,
            &interpretation.model,
            milliseconds(interpretation.duration),
            interpretation.at.0,
            next_change_in(tx, user)?,
        ),
    )
    .map(drop)
}

/// Deletes the session, its interpretations and its stored response.
pub(super) fn delete_in(tx: &Write<'_>, session: &Session) -> Result<()> {
    for trace_id in calls_in(tx, &session.id)? {
        interpretation::delete_in(tx, &trace_id)?;
    }
    if let Some(key) = &session.idempotency_key {
        idempotency::forget_in(tx, &idempotency::user(session.user), ROUTE, key, session.created_at)?;
    }
    tx.execute("delete from sessions where id = ?1", [&session.id]).map(drop)
}

fn session_of(row: &Row<'_>) -> RowResult<Session> {
    let lines: Lines = row.text(6)?.parse().map_err(|_| RowError::Invalid)?;
    let trace_id: Option<String> = row.get(12)?;
    let numbers: Option<String> = row.get(17)?;
    let interpretation = match trace_id {
        None => None,
        Some(trace_id) => Some(SessionInterpretation {
            trace_id,
            model: row.get(13)?,
            duration: Duration::from_millis(row.get::<i64>(14)?.unsigned_abs()),
            at: Timestamp(row.get(15)?),
        }),
    };
    Ok(Session {
        id: row.get(0)?,
        user: UserId(row.get(1)?),
        sequence: row.get(2)?,
        question: row.get(3)?,
        question_type: row.get(4)?,
        method: row.get_parsed(5, Method::from_name)?,
        numbers: numbers.as_deref().map(numbers_of).transpose()?.unwrap_or_default(),
        cast: Cast::from_lines(lines),
        cast_at: Timestamp(row.get(7)?),
        time_zone: row.get(8)?,
        day_start: row.get_parsed(16, DayStart::from_name)?,
        points_spent: row.get(9)?,
        idempotency_key: row.get(10)?,
        interpretation,
        created_at: Timestamp(row.get(11)?),
        title: row.get(18)?,
        note: row.get(19)?,
        change: row.get(20)?,
    })
}
