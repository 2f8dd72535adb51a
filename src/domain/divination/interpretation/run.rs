//! Prepares and runs the model call of an interpretation.

use std::sync::Arc;

use super::{
    prompt,
    question::CastingQuestion,
    reading,
    record::{self, CallRecord, NewRecord, RecordRetention},
};
use crate::{
    domain::{
        divination::{
            help::{Asker, HelpAnswer, HelpOccasion},
            hexagram::{self, Cast, Facts},
            model_calls::{
                self, CallReport, ModelCaller, ModelCalls, Outcome,
                hourly_limit::{self, UserCall},
                running_calls,
            },
            prompts::PromptKind,
        },
        identity::users::{self, Gender},
        moderation::{
            self, ScreenedField, reviews,
            risk::{Risk, RiskClass, classify_question},
        },
    },
    error::Result,
    providers::llm::{
        Flow, ModelRequest, Sampling,
        builtin::{AskerGender, Written},
    },
    store::{Write, sliding_window::WindowUse},
    types::{JsonText, UserId},
};

/// A prepared call. Its record is written; unless the call is run, the record stays in the state "running".
pub struct PreparedInterpretation {
    pub trace_id: String,
    /// The casting that was read from the data, if its lines are known and the question needs no help.
    pub cast: Option<Cast>,
    /// The provider and model that answer.
    pub provider: &'static str,
    pub model: String,
    /// The calls that the user has left, if this one was counted.
    pub budget_use: Option<WindowUse>,
    user: UserId,
    request: Box<ModelRequest>,
}

/// Screens the question and its type, reserves the budget and writes the record.
///
/// # Errors
/// `content_rejected` if moderation rejects the question; `too_many_requests`; `budget_spent`.
pub fn prepare(calls: &ModelCalls, user: UserId, question: CastingQuestion) -> Result<PreparedInterpretation> {
    let risk = classify_question(&question.question, question.question_type.as_deref());
    begin(calls, user, (question, risk), RecordRetention::Newest, |_, _| Ok(()))
}

/// Like [`prepare`], for a session, with the risk of its question: the record is deleted with the session. `also` gets the
/// trace id and runs in the transaction that writes the record.
///
/// # Errors
/// Those of [`prepare`] and of `also`.
pub fn prepare_for_session(
    calls: &ModelCalls,
    user: UserId,
    question: (CastingQuestion, Option<Risk>),
    also: impl FnOnce(&Write<'_>, &str) -> Result<()> + Send + 'static,
) -> Result<PreparedInterpretation> {
    begin(calls, user, question, RecordRetention::WithSession, also)
}

fn begin(
    calls: &ModelCalls,
    user: UserId,
    (question, risk): (CastingQuestion, Option<Risk>),
    retention: RecordRetention,
    also: impl FnOnce(&Write<'_>, &str) -> Result<()> + Send + 'static,
) -> Result<PreparedInterpretation> {
    let core = &calls.core;
    let asker = Asker::find(core, user, question.tag, question.locale)?;
    let question = CastingQuestion { locale: asker.locale.unwrap_or(question.locale), ..question };
    let written = asker.written(&question.question, question.locale);
    let help = risk.map(|risk| calls.help_for(risk, &question.question, &asker, HelpOccasion::Interpretation));
    // The service's own answers cost nothing, and nobody in need is refused one.
    let is_limited = help.as_ref().is_none_or(|help| !help.is_whole);
    // Checked here to reject the call before moderation is asked, and again when the call is counted.
    let allowed = core.config.llm.calls_per_user_hour;
    let gender = core.store.read(|tx| {
        if is_limited {
            hourly_limit::check_in(tx, user, UserCall::Interpretation, allowed)?;
        }
        Ok(asker_gender(users::profile_in(tx, user)?.gender))
    })?;
    let fields = ScreenedField::of_question(&question.question, question.question_type.as_deref());
    let mut screening = match moderation::screen_question(&calls.moderation, user, risk, &fields) {
        Ok(screening) => screening,
        Err(refusal) => return refusal.record::<PreparedInterpretation>(core).wait(),
    };
    let reviewed = screening.take_reviews();
    let question = CastingQuestion {
        question: screening.replacement("question").unwrap_or(question.question),
        question_type: screening.replacement("questionType").or(question.question_type),
        ..question
    };
    let facts = facts_of(&question);
    let class = help.as_ref().map(|help| help.class);
    let trace_id = model_calls::new_trace_id()?;
    // The offline interpreter reads no prompt.
    let request = ModelRequest {
        user_reference: model_calls::user_reference(core, user),
        ..request(calls, &trace_id, &question, &facts, (gender, written), help, !calls.is_offline())
    };
    let (provider, model) = calls.responder(&request);
    let model = model.to_owned();
    let config = Arc::clone(&core.config);
    let prompt_version = calls.prompts.version(PromptKind::Interpretation, question.locale);
    let record = NewRecord {
        call: calls.new_call(user, UserCall::Interpretation, &request),
        question,
        prompt_version,
        retention,
    };
    let begin = core.store.write(move |tx| {
        let check = || hourly_limit::check_in(tx, user, UserCall::Interpretation, allowed);
        let before = is_limited.then(check).transpose()?;
        if is_limited {
            hourly_limit::count_in(tx, user, UserCall::Interpretation)?;
        }
        running_calls::begin_in(tx, &config, &record.call)?;
        reviews::add_in(tx, &reviewed)?;
        let id = record::begin_in(tx, &record)?;
        record::delete_surplus_in(tx, user, id, config.max_records_per_user())?;
        also(tx, &record.call.trace_id)?;
        Ok(before.map(WindowUse::with_another))
    });
    let budget_use = begin.wait()?;
    if let Some(class) = class {
        calls.help.count(class);
    }
    // Help comes without a chart.
    let cast = facts.cast.filter(|_| class.is_none());
    Ok(PreparedInterpretation { trace_id, cast, provider, model, budget_use, user, request: Box::new(request) })
}

/// Calls the model and finishes the record, whatever the outcome. Blocks on the provider.
///
/// `sink` gets the text as it arrives; [`Flow::Stop`] cancels the call.
///
/// # Errors
/// `provider_failed`, `provider_unavailable` or `provider_timeout`, or `content_rejected` if moderation rejects the
/// answer, each with the trace id.
pub fn run(
    calls: &ModelCalls,
    prepared: &PreparedInterpretation,
    sink: &mut dyn FnMut(&str) -> Flow,
) -> Result<CallRecord> {
    run_with(calls, prepared, sink, |_, _| Ok(()))
}

/// Like [`run`]. `also` runs in the transaction that finishes the record, whatever the outcome.
///
/// # Errors
/// Those of [`run`] and of `also`; `not_found` if the record was deleted meanwhile.
pub fn run_with(
    calls: &ModelCalls,
    prepared: &PreparedInterpretation,
    sink: &mut dyn FnMut(&str) -> Flow,
    also: impl Fn(&Write<'_>, &CallRecord) -> Result<()> + Send + Sync + 'static,
) -> Result<CallRecord> {
    let caller = ModelCaller { user: Some(prepared.user), kind: UserCall::Interpretation.name() };
    let CallReport { outcome, failure } =
        model_calls::run(calls, caller, ModelRequest::clone(&prepared.request), &mut |piece| sink(piece.text));
    let record = finish(calls, prepared, outcome, also)?;
    match failure {
        None => Ok(record),
        Some(error) => Err(error.with_trace_id(&prepared.trace_id)),
    }
}

fn finish(
    calls: &ModelCalls,
    prepared: &PreparedInterpretation,
    outcome: Outcome,
    also: impl Fn(&Write<'_>, &CallRecord) -> Result<()> + Send + Sync + 'static,
) -> Result<CallRecord> {
    let trace_id = prepared.trace_id.clone();
    let config = Arc::clone(&calls.core.config);
    model_calls::store_outcome(calls, &prepared.trace_id, move |tx| {
        let Some(warnings) = outcome.settle_in(tx, &config.llm, &trace_id)? else { return Ok(None) };
        let Some(record) = record::finish_in(tx, &trace_id, &outcome)? else { return Ok(None) };
        also(tx, &record)?;
        Ok(Some((record, warnings)))
    })
}

/// Returns the request that interprets a question, without a user. For tests of the prompt by operators.
///
/// # Errors
/// Those of the random source.
pub fn request_for_test(calls: &ModelCalls, question: &CastingQuestion) -> Result<ModelRequest> {
    let asker = Asker { locale: Some(question.locale), ..Asker::default() };
    let risk = classify_question(&question.question, question.question_type.as_deref());
    let help = risk.map(|risk| calls.help_for(risk, &question.question, &asker, HelpOccasion::Interpretation));
    let written = asker.written(&question.question, question.locale);
    Ok(request(calls, &model_calls::new_trace_id()?, question, &facts_of(question), (None, written), help, true))
}

fn facts_of(question: &CastingQuestion) -> Facts {
    let data = || question.divination_data.as_ref().map(JsonText::content).unwrap_or_default();
    question.cast.map_or_else(|| hexagram::read(&data()), Facts::from_cast)
}

fn request(
    calls: &ModelCalls,
    trace_id: &str,
    question: &CastingQuestion,
    facts: &Facts,
    (gender, written): (Option<AskerGender>, Written),
    help: Option<HelpAnswer>,
    has_prompt: bool,
) -> ModelRequest {
    let settings = &calls.core.config.llm;
    let is_missing = help.as_ref().is_some_and(|help| help.class == RiskClass::MissingPerson);
    // The reading follows the words of help in their language.
    let written = help.as_ref().filter(|_| is_missing).map_or(written, |help| help.written);
    let reading = reading::reading(question, facts, gender, (written, is_missing));
    let messages = has_prompt.then(|| prompt::messages(&calls.prompts, question, &reading, help.as_ref()));
    ModelRequest {
        trace_id: trace_id.to_owned(),
        messages: messages.unwrap_or_default(),
        // Streamed even for JSON responses, so that a stalled provider is noticed long before the total timeout.
        stream: true,
        with_documents: false,
        sampling: Sampling { temperature: settings.temperature, ..Sampling::default() },
        max_tokens: Some(settings.max_tokens),
        reading: Some(reading),
        service_answer: help.map(HelpAnswer::into_service_answer),
        ..ModelRequest::default()
    }
}

/// Returns the gender for the offline interpreter. It is not part of the prompt.
fn asker_gender(gender: Gender) -> Option<AskerGender> {
    match gender {
        Gender::Male => Some(AskerGender::Male),
        Gender::Female => Some(AskerGender::Female),
        Gender::Unknown | Gender::Other => None,
    }
}
