//! Having a session interpreted: free, again and again until it succeeded once; from then on that answer is given.
//!
//! One call runs for a session at a time, so that there is one answer and not two.

use std::time::Duration;

use super::record::{self, Interpreted, Session};
use crate::{
    core::Core,
    domain::divination::{
        interpretation::{self, Prepared, Question, Record, Status},
        model_calls::ModelCalls,
    },
    error::{Code, Result},
    providers::llm::Flow,
    store::{Write, sliding_window::PURGE_BATCH},
    types::{JsonText, Locale, UserId},
};

/// Calls of a session that came to nothing which are kept. While it is not interpreted, none of its calls came to
/// something.
const FAILED_KEPT: usize = 20;

/// What asking for an interpretation comes to.
pub enum Asked {
    /// It succeeded before.
    Stored(Box<Record>),
    /// The model is to be asked.
    Pending(PendingCall),
}

/// A model call for a session that may run, with its record written.
pub struct PendingCall {
    pub prepared: Prepared,
    session_id: String,
}

/// Finds the stored interpretation, or writes the record of a call that is about to begin.
///
/// # Errors
/// `not_found`, also for the session of somebody else; `already_running`; `too_many_requests`; `content_rejected` if
/// the question, which was allowed once, may not stand any more.
pub fn prepare(calls: &ModelCalls, user: UserId, id: &str, locale: Locale) -> Result<Asked> {
    let session = super::find(&calls.core, user, id)?;
    if let Some(stored) = stored(&calls.core, &session)? {
        return Ok(Asked::Stored(Box::new(stored)));
    }
    let lines = JsonText::from_stored(format!(r#"{{"lines":{:?}}}"#, session.cast.lines().values()));
    let question = Question {
        question_type: session.question_type,
        question: session.question,
        divination_data: Some(lines),
        locale,
    };
    let session_id = session.id.clone();
    let begin = move |tx: &Write<'_>, trace_id: &str| begin_in(tx, user, &session_id, trace_id);
    match interpretation::prepare_for_session(calls, user, question, begin) {
        Ok(prepared) => Ok(Asked::Pending(PendingCall { prepared, session_id: session.id })),
        // Another call may have succeeded while this one's question was judged.
        Err(refused) if refused.code == Code::AlreadyRunning => {
            let stored = stored(&calls.core, &super::find(&calls.core, user, id)?)?;
            stored.map(|stored| Asked::Stored(Box::new(stored))).ok_or(refused)
        }
        Err(error) => Err(error),
    }
}

/// Asks the model and keeps the answer with the session. Blocks on the provider.
///
/// # Errors
/// Those of [`interpretation::run`]; `not_found` if the session was deleted meanwhile.
pub fn run(calls: &ModelCalls, call: &PendingCall, sink: &mut dyn FnMut(&str) -> Flow) -> Result<Record> {
    let session_id = call.session_id.clone();
    interpretation::run_with(calls, &call.prepared, sink, move |tx, record| finish_in(tx, &session_id, record))
}

/// The interpretation that succeeded, if one did.
pub fn stored(core: &Core, session: &Session) -> Result<Option<Record>> {
    let interpreted = session.interpretation.as_ref();
    interpreted.map(|found| interpretation::find_by_trace(core, Some(session.user), &found.trace_id)).transpose()
}

fn begin_in(tx: &Write<'_>, user: UserId, session_id: &str, trace_id: &str) -> Result<()> {
    let session = record::find_in(tx, user, session_id)?;
    if session.interpretation.is_some() {
        return Err(Code::AlreadyRunning.into());
    }
    let mut failed = Vec::new();
    for call in record::calls_in(tx, session_id)? {
        match interpretation::standing_in(tx, &call)? {
            Some((_, Status::Running)) => return Err(Code::AlreadyRunning.into()),
            standing => failed.push((standing.map(|(number, _)| number), call)),
        }
    }
    // A few at a time, as they become too many one by one.
    failed.sort_unstable_by(|one, other| other.cmp(one));
    for (_, surplus) in failed.iter().skip(FAILED_KEPT).take(PURGE_BATCH as usize) {
        record::delete_call_in(tx, surplus)?;
    }
    record::add_call_in(tx, session_id, trace_id)
}

fn finish_in(tx: &Write<'_>, session_id: &str, record: &Record) -> Result<()> {
    if record.status != Status::Succeeded {
        return Ok(());
    }
    let interpreted = Interpreted {
        trace_id: record.trace_id.clone(),
        model: record.model.clone(),
        duration: Duration::from_millis(record.duration_ms.unwrap_or(0).unsigned_abs()),
        at: tx.now,
    };
    record::note_interpretation_in(tx, session_id, &interpreted)
}
