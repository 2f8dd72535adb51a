//! Having a casting interpreted by a model: one call, one record, whatever happens.
//!
//! The record is written before the call and finished after it, so that a call that is cut off by a crash is still
//! known. The user's question is screened before anything leaves the house, and travels to the model as data, apart
//! from the instructions. No transaction is open while the model thinks.

mod prompt;
mod record;

pub use record::{
    Record, close_interrupted_in, count_between, count_of_user, delete_in, erase_user_in, export_in, find_by_trace,
    list_failed, list_of_user, list_of_user_between, list_slow, standing_in,
};

pub use crate::domain::divination::model_calls::Status;
use std::sync::Arc;

use crate::{
    core::Core,
    domain::{
        divination::{
            budget::{self, Reservation},
            hexagram::{self, Facts},
            interpretation::record::{Draft, Keeper},
            model_calls::{
                self, Asker, ModelCalls, Outcome, Ran,
                hourly::{self, Counted},
            },
        },
        moderation::{self, Field},
    },
    error::Result,
    providers::llm::{Flow, Request},
    store::{Pending, Write},
    types::{JsonText, Locale, UserId},
};

const KIND: &str = "interpretation";

/// What a user wants to have interpreted.
#[derive(Clone, Debug)]
pub struct Question {
    pub question_type: Option<String>,
    pub question: String,
    pub divination_data: Option<JsonText<'static>>,
    pub locale: Locale,
}

/// A call that may run, with its record written. Dropping it without running it leaves the record open.
pub struct Prepared {
    pub trace_id: String,
    user: UserId,
    request: Box<Request>,
    reservation: Reservation,
}

/// Screens the question and its type, and writes the record of a call that is about to begin. What was cast is read
/// from the client's own data.
///
/// # Errors
/// `content_rejected` if the question may not stand; `too_many_requests`; `budget_spent`. Then no model is asked.
pub fn prepare(calls: &ModelCalls, user: UserId, question: Question) -> Result<Prepared> {
    begin(calls, user, question, Keeper::Age, |_, _| Ok(()))
}

/// Like [`prepare`], for a session, with which the record goes. `also` is done with the writing of the record, all or
/// nothing; it gets the trace id.
///
/// # Errors
/// Those of [`prepare`] and of `also`.
pub fn prepare_for_session(
    calls: &ModelCalls,
    user: UserId,
    question: Question,
    also: impl FnOnce(&Write<'_>, &str) -> Result<()> + Send + 'static,
) -> Result<Prepared> {
    begin(calls, user, question, Keeper::Session, also)
}

fn begin(
    calls: &ModelCalls,
    user: UserId,
    question: Question,
    keeper: Keeper,
    also: impl FnOnce(&Write<'_>, &str) -> Result<()> + Send + 'static,
) -> Result<Prepared> {
    // Before anybody is asked about the text; what holds is asked again below.
    let allowed = calls.core.config.llm.calls_per_user_hour;
    calls.core.store.read(|tx| hourly::require_open_in(tx, user, Counted::Interpretations, allowed))?;
    let facts = hexagram::read(&question.divination_data.as_ref().map(JsonText::content).unwrap_or_default());
    let fields = Field::of_question(&question.question, question.question_type.as_deref());
    if let Some(refusal) = moderation::screen(&calls.moderation, user, &fields) {
        return refusal.record::<Prepared>(&calls.core).wait();
    }
    let trace_id = model_calls::new_trace_id()?;
    let request = request(&calls.core, &trace_id, user, &question, &facts);
    let amount = model_calls::largest_use(calls, &request);
    let config = Arc::clone(&calls.core.config);
    let draft = Draft {
        trace_id: trace_id.clone(),
        user,
        question,
        provider: calls.models.name(),
        model: calls.models.model().to_owned(),
        prompt_version: prompt::VERSION,
        keeper,
    };
    let begin: Pending<Reservation> = calls.core.store.write(move |tx| {
        hourly::take_in(tx, user, Counted::Interpretations, allowed)?;
        let reservation = budget::reserve_in(tx, &config.llm, &config.limits.time_zone, user, amount)?;
        record::begin_in(tx, &draft)?;
        record::make_room_in(tx, user, config.records_kept())?;
        also(tx, &draft.trace_id)?;
        Ok(reservation)
    });
    Ok(Prepared { trace_id, user, request: Box::new(request), reservation: begin.wait()? })
}

/// Asks the model and finishes the record, whatever came of it. Blocks on the provider.
///
/// `sink` gets the text as it comes; when it says [`Flow::Stop`], because nobody listens any more, the call is
/// cancelled and the record says so.
///
/// # Errors
/// `provider_failed`, `provider_unavailable` or `provider_timeout`, or `content_rejected` for an answer that may not
/// stand, each with the trace id.
pub fn run(calls: &ModelCalls, prepared: &Prepared, sink: &mut dyn FnMut(&str) -> Flow) -> Result<Record> {
    run_with(calls, prepared, sink, |_, _| Ok(()))
}

/// Like [`run`]. `also` is done with the finishing of the record, all or nothing, whatever came of the call.
///
/// # Errors
/// Those of [`run`] and of `also`; `not_found` if the record was deleted meanwhile, with what it was about.
pub fn run_with(
    calls: &ModelCalls,
    prepared: &Prepared,
    sink: &mut dyn FnMut(&str) -> Flow,
    also: impl Fn(&Write<'_>, &Record) -> Result<()> + Send + Sync + 'static,
) -> Result<Record> {
    let asker = Asker { user: Some(prepared.user), kind: KIND };
    let Ran { outcome, failure } =
        model_calls::run(calls, asker, Request::clone(&prepared.request), &mut |piece| sink(piece.text));
    let record = finish(calls, prepared, outcome, also)?;
    match failure {
        None => Ok(record),
        Some(error) => Err(error.of_trace(&prepared.trace_id)),
    }
}

fn finish(
    calls: &ModelCalls,
    prepared: &Prepared,
    outcome: Outcome,
    also: impl Fn(&Write<'_>, &Record) -> Result<()> + Send + Sync + 'static,
) -> Result<Record> {
    let (trace_id, reservation) = (prepared.trace_id.clone(), prepared.reservation.clone());
    let config = Arc::clone(&calls.core.config);
    model_calls::write_down(calls, &prepared.trace_id, move |tx| {
        let record = record::finish_in(tx, &trace_id, &outcome)?;
        // Of a record that was deleted meanwhile the use is counted all the same.
        if record.is_none() && !record::is_erased_in(tx, &trace_id)? {
            return Ok(None);
        }
        let warnings = outcome.settle_in(tx, &config.llm, &reservation)?;
        let Some(record) = record else { return Ok(None) };
        also(tx, &record)?;
        Ok(Some((record, warnings)))
    })
}

fn request(core: &Core, trace_id: &str, user: UserId, question: &Question, facts: &Facts) -> Request {
    Request {
        trace_id: trace_id.to_owned(),
        user_reference: model_calls::reference(core, user),
        messages: prompt::messages(question, facts),
        // Also when nobody watches it grow: silence then shows long before the whole time is up.
        stream: true,
        is_told_documents: false,
        temperature: core.config.llm.temperature,
        max_tokens: Some(core.config.llm.max_tokens),
        time_left: None,
        reading: Some(prompt::reading(question, facts)),
    }
}
