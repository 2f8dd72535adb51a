//! Interprets sessions, free of charge. A session can be interpreted until it succeeds; later requests return the
//! stored interpretation.
//!
//! Only one call runs per session, so that there is only one interpretation.

use std::time::Duration;

use super::{
    operations,
    record::{self, Session, SessionInterpretation},
};
use crate::{
    core::Core,
    domain::divination::{
        interpretation::{self, CallRecord, CallStatus, CastingQuestion, PreparedInterpretation},
        model_calls::ModelCalls,
    },
    error::{Code, Result},
    providers::llm::Flow,
    store::{Write, sliding_window::PURGE_BATCH},
    types::{JsonText, Locale, UserId},
};

/// Failed calls that are kept for each session. A session without an interpretation has only failed calls.
const MAX_FAILED_CALLS: usize = 20;

/// The result of preparing an interpretation.
pub enum Preparation {
    /// The stored interpretation.
    Stored(Box<CallRecord>),
    /// A call to run.
    Pending(PendingCall),
}

/// A prepared model call, whose record is written.
pub struct PendingCall {
    pub prepared: PreparedInterpretation,
    session_id: String,
}

/// Returns the stored interpretation, or writes the record of a new call.
///
/// # Errors
/// `not_found`, also for another user's session; `already_running`; `too_many_requests`; `content_rejected` if
/// moderation now rejects the question.
pub fn prepare(calls: &ModelCalls, user: UserId, id: &str, locale: Locale) -> Result<Preparation> {
    let session = operations::find(&calls.core, user, id)?;
    if let Some(stored) = stored(&calls.core, &session)? {
        return Ok(Preparation::Stored(Box::new(stored)));
    }
    let cast_time = session.cast_time();
    let lines = JsonText::from_stored(format!(r#"{{"lines":{:?}}}"#, session.cast.lines().values()));
    let question = CastingQuestion {
        question_type: session.question_type,
        question: session.question,
        divination_data: Some(lines),
        cast: Some(session.cast),
        cast_time,
        method: Some(session.method.name()),
        locale,
    };
    let session_id = session.id.clone();
    let begin = move |tx: &Write<'_>, trace_id: &str| begin_in(tx, user, &session_id, trace_id);
    match interpretation::prepare_for_session(calls, user, question, begin) {
        Ok(prepared) => Ok(Preparation::Pending(PendingCall { prepared, session_id: session.id })),
        // Another call may have succeeded while the question of this one was screened.
        Err(refused) if refused.code == Code::AlreadyRunning => {
            let stored = stored(&calls.core, &operations::find(&calls.core, user, id)?)?;
            stored.map(|stored| Preparation::Stored(Box::new(stored))).ok_or(refused)
        }
        Err(error) => Err(error),
    }
}

/// Calls the model and stores the interpretation with the session. Blocks on the provider.
///
/// # Errors
/// Those of [`interpretation::run`]; `not_found` if the session was deleted meanwhile.
pub fn run(calls: &ModelCalls, call: &PendingCall, sink: &mut dyn FnMut(&str) -> Flow) -> Result<CallRecord> {
    let session_id = call.session_id.clone();
    interpretation::run_with(calls, &call.prepared, sink, move |tx, record| finish_in(tx, &session_id, record))
}

/// Returns the interpretation that succeeded, if there is one.
pub fn stored(core: &Core, session: &Session) -> Result<Option<CallRecord>> {
    let stored = session.interpretation.as_ref();
    stored.map(|found| interpretation::find_by_trace(core, Some(session.user), &found.trace_id)).transpose()
}

fn begin_in(tx: &Write<'_>, user: UserId, session_id: &str, trace_id: &str) -> Result<()> {
    let session = record::find_in(tx, user, session_id)?;
    if session.interpretation.is_some() {
        return Err(Code::AlreadyRunning.into());
    }
    let mut failed = Vec::new();
    for call in record::calls_in(tx, session_id)? {
        match interpretation::position_and_status_in(tx, &call)? {
            Some((_, CallStatus::Running)) => return Err(Code::AlreadyRunning.into()),
            position => failed.push((position.map(|(number, _)| number), call)),
        }
    }
    // Each call adds at most one surplus call, so few are deleted at a time.
    failed.sort_unstable_by(|one, other| other.cmp(one));
    for (_, surplus) in failed.iter().skip(MAX_FAILED_CALLS).take(PURGE_BATCH as usize) {
        record::delete_call_in(tx, surplus)?;
    }
    record::add_call_in(tx, session_id, trace_id)
}

fn finish_in(tx: &Write<'_>, session_id: &str, record: &CallRecord) -> Result<()> {
    if record.status != CallStatus::Succeeded {
        return Ok(());
    }
    let stored = SessionInterpretation {
        trace_id: record.trace_id.clone(),
        model: record.model.clone(),
        duration: Duration::from_millis(record.duration_ms.unwrap_or(0).unsigned_abs()),
        at: tx.now,
    };
    record::set_interpretation_in(tx, session_id, &stored)
}
