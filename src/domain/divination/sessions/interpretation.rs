//! Interprets sessions. The first interpretation is part of the casting; further ones may cost points.
//!
//! Only one call runs per session, so that parallel requests get one interpretation and are charged once. Points are
//! charged in the transaction that writes the record of the call, and returned in the one that finishes it without an
//! interpretation.

use std::time::Duration;

use serde_json::Value;

use super::record::{self, Session, SessionInterpretation};
use crate::{
    core::Core,
    domain::{
        divination::{
            interpretation::{self, CallRecord, CallStatus, CastingQuestion, PreparedInterpretation},
            model_calls::{ModelCalls, running_calls},
        },
        moderation::risk::Risk,
        money::points,
        operations::idempotency::{IdempotentOutcome, IdempotentRequest, StoredResponse},
    },
    error::{Code, Result},
    providers::llm::{Flow, builtin::View},
    store::{Pending, Read, Write, sliding_window::PURGE_BATCH},
    types::{JsonText, LanguageTag, Locale, UserId},
};

/// Calls without an interpretation that are kept for each session.
const MAX_FAILED_CALLS: usize = 20;

/// The member of a stored response that names the call.
pub const TRACE_ID: &str = "traceId";

/// A request for an interpretation.
pub struct InterpretationRequest {
    pub user: UserId,
    pub session_id: String,
    pub locale: Locale,
    /// The region and script that the client prefers.
    pub tag: LanguageTag,
    /// True for another interpretation, even if there is one.
    pub again: bool,
    /// The stored response names the call by its trace id.
    pub once: IdempotentRequest<String>,
}

/// The answer to a request that needs no new call.
pub enum Existing {
    /// A stored interpretation.
    Stored(Box<CallRecord>),
    /// The interpretation that an earlier request with the same key made.
    Replayed(Box<CallRecord>),
    /// The stored error of an earlier request with the same key.
    Refused(StoredResponse),
}

/// The result of preparing an interpretation.
pub enum Preparation {
    Existing(Existing),
    /// A call to run.
    Pending(PendingCall),
}

/// A prepared model call, whose record is written.
pub struct PendingCall {
    pub prepared: PreparedInterpretation,
    session_id: String,
}

/// The interpretations of a session, and the terms of a further one.
pub struct SessionInterpretations {
    /// Newest first.
    pub items: Vec<CallRecord>,
    /// The number of further interpretations that the limit allows.
    pub remaining: u32,
    /// The points that the next one costs.
    pub next_points: u32,
}

impl SessionInterpretations {
    /// Returns those of a new session with this limit.
    pub const fn none(limit: u32) -> Self {
        Self { items: Vec::new(), remaining: limit, next_points: 0 }
    }
}

/// Returns the answer if the request needs no new call. `risk` is that of the session's question.
///
/// # Errors
/// `idempotency_key_reused`.
pub fn find_existing(
    core: &Core,
    request: &InterpretationRequest,
    session: &Session,
    risk: Option<Risk>,
) -> Result<Option<Existing>> {
    if let Some(response) = request.once.stored_response(core)? {
        let Some(trace_id) = trace_id_of(&response) else { return Ok(Some(Existing::Refused(response))) };
        let found = interpretation::find_succeeded(core, request.user, &trace_id)?;
        return Ok(found.map(|record| Existing::Replayed(Box::new(record))));
    }
    if request.again && risk.is_none() {
        return Ok(None);
    }
    let stored = stored(core, session)?.filter(|record| risk.is_none() || record.follows_help_rules());
    Ok(stored.map(|record| Existing::Stored(Box::new(record))))
}

/// Returns the answer that exists, or writes the record of a new call and charges its price. `risk` is that of the session's
/// question, which never changes.
///
/// # Errors
/// `not_found`, also for another user's session; `already_running`; `interpretation_limit`; `insufficient_points`;
/// `too_many_requests`; `content_rejected` if moderation now rejects the question; `idempotency_key_reused`.
pub fn prepare(calls: &ModelCalls, request: InterpretationRequest, risk: Option<Risk>) -> Result<Preparation> {
    let session = record::find(&calls.core, request.user, &request.session_id)?;
    if let Some(existing) = find_existing(&calls.core, &request, &session, risk)? {
        return Ok(Preparation::Existing(existing));
    }
    let InterpretationRequest { user, session_id, locale, tag, again, once } = request;
    let (made, limit) = (list(&calls.core, &session)?.items.len(), calls.core.config.llm.interpretations_per_session);
    if risk.is_none() && calls.is_offline() && made >= View::ALL.len() && made < limit as usize {
        // The offline interpreter has nothing new to say, so it costs nothing.
        if let Some(stored) = stored(&calls.core, &session)? {
            return Ok(Preparation::Existing(Existing::Stored(Box::new(stored))));
        }
    }
    let terms = if risk.is_some() { Terms::HELP } else { Terms::of(&calls.core, again) };
    let begun_session = session_id.clone();
    let begin = move |tx: &Write<'_>, trace_id: &str| {
        let is_void = |response: &StoredResponse| is_void_in(tx, response);
        match once.run_unless_void_in(tx, is_void, |tx| begin_in(tx, user, &begun_session, trace_id, &terms))? {
            IdempotentOutcome::Fresh(..) => Ok(()),
            IdempotentOutcome::Replayed(_) => Err(Code::AlreadyRunning.into()),
        }
    };
    match interpretation::prepare_for_session(calls, user, (question_of(session, locale, tag, made), risk), begin) {
        Ok(prepared) => Ok(Preparation::Pending(PendingCall { prepared, session_id })),
        // Another call may have succeeded while the question of this one was screened.
        Err(refused) if refused.code == Code::AlreadyRunning && !again => {
            let stored = stored(&calls.core, &record::find(&calls.core, user, &session_id)?)?;
            let existing = stored.map(|stored| Preparation::Existing(Existing::Stored(Box::new(stored))));
            existing.ok_or(refused)
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

/// Returns the newest interpretation that succeeded, if there is one.
pub fn stored(core: &Core, session: &Session) -> Result<Option<CallRecord>> {
    let stored = session.interpretation.as_ref();
    stored.map(|found| interpretation::find_by_trace(core, Some(session.user), &found.trace_id)).transpose()
}

/// Returns the session's interpretation with this trace id; none if the call is running, failed or deleted.
pub fn find_of_session(core: &Core, session: &Session, trace_id: &str) -> Result<Option<CallRecord>> {
    let calls = core.store.read(|tx| record::calls_in(tx, &session.id))?;
    if !calls.iter().any(|call| call == trace_id) {
        return Ok(None);
    }
    interpretation::find_succeeded(core, session.user, trace_id)
}

/// Stores that a request got the call that was running. A repeated request with its key then gets the same.
///
/// # Errors
/// Those of [`IdempotentRequest::run_in`].
pub fn name_call(core: &Core, once: IdempotentRequest<String>, trace_id: String) -> Pending<IdempotentOutcome<String>> {
    core.store.write(move |tx| once.run_unless_void_in(tx, |response| is_void_in(tx, response), |_| Ok(trace_id)))
}

/// Returns all interpretations of a session.
pub fn list(core: &Core, session: &Session) -> Result<SessionInterpretations> {
    let items = core.store.read(|tx| interpretation::succeeded_in(tx, &record::calls_in(tx, &session.id)?))?;
    let made = u32::try_from(items.len()).unwrap_or(u32::MAX);
    let remaining = core.config.llm.interpretations_per_session.saturating_sub(made);
    let next_points = if made == 0 { 0 } else { core.config.points.another_interpretation };
    Ok(SessionInterpretations { items, remaining, next_points })
}

/// Refunds the running calls of a user whose account is about to be deleted.
pub fn refund_user_in(tx: &Write<'_>, user: UserId) -> Result<()> {
    for trace_id in running_calls::list_of_user_in(tx, user)? {
        refund_in(tx, user, &trace_id)?;
    }
    Ok(())
}

/// Refunds the running call of a session that is about to be deleted.
pub(super) fn refund_running_in(tx: &Write<'_>, session: &Session) -> Result<()> {
    for trace_id in record::calls_in(tx, &session.id)? {
        if let Some((_, CallStatus::Running)) = interpretation::position_and_status_in(tx, &trace_id)? {
            refund_in(tx, session.user, &trace_id)?;
        }
    }
    Ok(())
}

/// The terms on which a call may begin.
struct Terms {
    again: bool,
    /// The maximum number of interpretations of a session.
    limit: u32,
    /// The points for each but the first.
    price: u32,
    /// True if the price of the casting is given back.
    is_free_casting: bool,
}

impl Terms {
    /// The terms of a question that needs help: it costs nothing and is never refused.
    const HELP: Self = Self { again: true, limit: u32::MAX, price: 0, is_free_casting: true };

    fn of(core: &Core, again: bool) -> Self {
        let limit = core.config.llm.interpretations_per_session;
        Self { again, limit, price: core.config.points.another_interpretation, is_free_casting: false }
    }
}

/// Returns the price of a casting whose question needs help, once. A new casting of this kind costs nothing from the
/// start; this one was charged by an earlier version, or before its words were known.
fn refund_casting_in(tx: &Write<'_>, session: &Session) -> Result<()> {
    if session.points_spent == 0 {
        return Ok(());
    }
    match points::refund_cast_in(tx, session.user, session.points_spent, &session.id) {
        Ok(()) => record::clear_points_in(tx, &session.id),
        // Help is not refused because of an account that cannot be posted to.
        Err(error) if matches!(error.code, Code::AccountInconsistent | Code::BalanceTooLarge) => Ok(()),
        Err(error) => Err(error),
    }
}

fn question_of(session: Session, locale: Locale, tag: LanguageTag, made: usize) -> CastingQuestion {
    let cast_time = session.cast_time();
    let lines = JsonText::from_stored(format!(r#"{{"lines":{:?}}}"#, session.cast.lines().values()));
    CastingQuestion {
        question_type: session.question_type,
        question: session.question,
        divination_data: Some(lines),
        cast: Some(session.cast),
        cast_time,
        method: Some(session.method.name()),
        locale,
        tag,
        view: View::ALL[made % View::ALL.len()],
    }
}

/// Returns the trace id that a stored response names; none for a stored error.
fn trace_id_of(response: &StoredResponse) -> Option<String> {
    let body: Value = serde_json::from_slice(&response.body).ok().filter(|_| response.status == 200)?;
    body[TRACE_ID].as_str().map(ToOwned::to_owned)
}

/// Returns true if the call that a stored response names has failed or is deleted.
fn is_void_in(tx: &Read<'_>, response: &StoredResponse) -> Result<bool> {
    let Some(trace_id) = trace_id_of(response) else { return Ok(false) };
    let status = interpretation::position_and_status_in(tx, &trace_id)?.map(|(_, status)| status);
    Ok(!matches!(status, Some(CallStatus::Running | CallStatus::Succeeded)))
}

/// Adds a call to the session, charges its price and returns the trace id.
fn begin_in(tx: &Write<'_>, user: UserId, session_id: &str, trace_id: &str, terms: &Terms) -> Result<String> {
    let session = record::find_in(tx, user, session_id)?;
    if session.interpretation.is_some() && !terms.again {
        return Err(Code::AlreadyRunning.into());
    }
    let (mut made, mut failed) = (0, Vec::new());
    for call in record::calls_in(tx, session_id)? {
        match interpretation::position_and_status_in(tx, &call)? {
            Some((_, CallStatus::Running)) => return Err(Code::AlreadyRunning.into()),
            Some((_, CallStatus::Succeeded)) => made += 1,
            position => failed.push((position.map(|(number, _)| number), call)),
        }
    }
    if made >= terms.limit {
        return Err(Code::InterpretationLimit.into());
    }
    // Each call adds at most one surplus call, so few are deleted at a time.
    failed.sort_unstable_by(|one, other| other.cmp(one));
    for (_, surplus) in failed.iter().skip(MAX_FAILED_CALLS).take(PURGE_BATCH as usize) {
        record::delete_call_in(tx, surplus)?;
    }
    if terms.is_free_casting {
        refund_casting_in(tx, &session)?;
    }
    let price = if made == 0 { 0 } else { terms.price };
    points::charge_interpretation_in(tx, user, price, trace_id)?;
    record::add_call_in(tx, session_id, trace_id, price)?;
    Ok(trace_id.to_owned())
}

fn finish_in(tx: &Write<'_>, session_id: &str, record: &CallRecord) -> Result<()> {
    if record.status != CallStatus::Succeeded {
        return refund_in(tx, record.user, &record.trace_id);
    }
    let stored = SessionInterpretation {
        trace_id: record.trace_id.clone(),
        model: record.model.clone(),
        duration: Duration::from_millis(record.duration_ms.unwrap_or(0).unsigned_abs()),
        at: tx.now,
    };
    record::set_interpretation_in(tx, record.user, session_id, &stored)
}

/// Returns the points of a call without an interpretation. A suspended account must not keep the call from being
/// finished, so its refund is left to an operator.
pub fn refund_in(tx: &Write<'_>, user: UserId, trace_id: &str) -> Result<()> {
    let points = record::points_of_call_in(tx, trace_id)?;
    if points == 0 {
        return Ok(());
    }
    match points::refund_interpretation_in(tx, user, points, trace_id) {
        Ok(()) => record::clear_points_of_call_in(tx, trace_id),
        Err(error) if matches!(error.code, Code::AccountInconsistent | Code::BalanceTooLarge) => {
            tracing::warn!(%user, trace_id, points, %error, "the points of a failed interpretation could not be refunded");
            Ok(())
        }
        Err(error) => Err(error),
    }
}
