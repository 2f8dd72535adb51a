//! Having a casting interpreted by a model: one call, one record, whatever happens.
//!
//! The record is written before the call and finished after it, so that a call that is cut off by a crash is still
//! known. The user's question is screened before anything leaves the house, and travels to the model as data, apart
//! from the instructions. No transaction is open while the model thinks.

mod prompt;
mod record;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

pub use record::{Record, Status, Usage, delete_in, find_by_trace, is_running_in, list_of_user};

use crate::{
    app::App,
    error::{Code, Error, Result},
    ops::{
        hexagram,
        interpretation::record::{Draft, Outcome},
        moderation::{self, Field, engine::ContentType},
    },
    providers::{
        Failure, FailureKind,
        llm::{self, Completion, Flow, Request},
    },
    store::Write,
    types::{JsonText, Locale, UserId, fill_random, hex},
};

/// What a user wants to have interpreted.
#[derive(Clone, Debug)]
pub struct Question {
    pub question_type: Option<String>,
    pub question: String,
    pub divination_data: Option<JsonText>,
    pub locale: Locale,
}

/// A call that may run, with its record written. Dropping it without running it leaves the record open.
pub struct Prepared {
    pub trace_id: String,
    user: UserId,
    question: Question,
}

/// Screens the question and writes the record of a call that is about to begin.
///
/// # Errors
/// `content_rejected` if the question may not stand; then no model is asked.
pub fn prepare(app: &App, user: UserId, question: Question) -> Result<Prepared> {
    prepare_with(app, user, question, |_, _| Ok(()))
}

/// Like [`prepare`]. `also` is done with the writing of the record, all or nothing; it gets the trace id.
///
/// # Errors
/// Those of [`prepare`] and of `also`.
pub fn prepare_with(
    app: &App,
    user: UserId,
    question: Question,
    also: impl FnOnce(&Write<'_>, &str) -> Result<()> + Send + 'static,
) -> Result<Prepared> {
    let field = Field { name: "question", content_type: ContentType::Question, text: &question.question };
    if let Some(refusal) = moderation::screen(app, user, &[field]) {
        return refusal.record::<Prepared>(app).wait();
    }
    let trace_id = new_trace_id()?;
    let draft = Draft {
        trace_id: trace_id.clone(),
        user,
        question: question.clone(),
        provider: app.llm.name(),
        model: app.llm.model().to_owned(),
        prompt_version: prompt::VERSION,
    };
    let begin = move |tx: &Write<'_>| {
        record::begin_in(tx, &draft)?;
        also(tx, &draft.trace_id)
    };
    app.store.write(begin).wait()?;
    Ok(Prepared { trace_id, user, question })
}

/// Asks the model and finishes the record, whatever came of it. Blocks on the provider.
///
/// `sink` gets the text as it comes; when it says [`Flow::Stop`], because nobody listens any more, the call is
/// cancelled and the record says so.
///
/// # Errors
/// `provider_failed`, `provider_unavailable` or `provider_timeout`, each with the trace id.
pub fn run(app: &App, prepared: &Prepared, sink: &mut dyn FnMut(&str) -> Flow) -> Result<Record> {
    run_with(app, prepared, sink, |_, _| Ok(()))
}

/// Like [`run`]. `also` is done with the finishing of the record, all or nothing, whatever came of the call.
///
/// # Errors
/// Those of [`run`] and of `also`; `not_found` if the record was deleted meanwhile, with what it was about.
pub fn run_with(
    app: &App,
    prepared: &Prepared,
    sink: &mut dyn FnMut(&str) -> Flow,
    also: impl FnOnce(&Write<'_>, &Record) -> Result<()> + Send + 'static,
) -> Result<Record> {
    let request = request(app, prepared);
    let begun = Instant::now();
    let completed = app.llm_breaker.run(|| app.clock.now().0, || app.llm.complete(&request, sink));
    let duration = begun.elapsed();
    let (outcome, failure) = match completed {
        Ok(completion) => (succeeded(completion), None),
        Err(failure) => (failed(&failure), Some(failure)),
    };
    let trace_id = prepared.trace_id.clone();
    let finish = move |tx: &Write<'_>| {
        let record = record::finish_in(tx, &trace_id, &outcome, duration)?;
        also(tx, &record)?;
        Ok(record)
    };
    let record = app.store.write(finish).wait()?;
    match failure {
        None => Ok(record),
        Some(failure) => {
            tracing::warn!(trace_id = prepared.trace_id, %failure, "an interpretation failed");
            Err(Error { trace_id: Some(prepared.trace_id.clone()), ..Error::from(failure) })
        }
    }
}

/// Marks the calls that a crash cut off. For the start of the server, when none can be running.
pub fn close_interrupted(app: &App) -> Result<()> {
    let closed = app.store.write(record::close_interrupted_in).wait()?;
    if closed > 0 {
        tracing::warn!(closed, "interpretations were interrupted by the last stop");
    }
    Ok(())
}

fn request(app: &App, prepared: &Prepared) -> Request {
    let question = &prepared.question;
    let facts = hexagram::read(&question.divination_data.as_ref().map(JsonText::content).unwrap_or_default());
    Request {
        trace_id: prepared.trace_id.clone(),
        user_reference: hex(&app.keys.authenticate(&["model user", &prepared.user.to_string()])[..16]),
        messages: prompt::messages(question, &facts),
        // Also when nobody watches it grow: an answer in one piece would have to come whole within the time that
        // the first byte is given.
        stream: true,
        temperature: app.config.llm.temperature,
        max_tokens: Some(app.config.llm.max_tokens),
        reading: Some(prompt::reading(question, &facts)),
    }
}

fn succeeded(completion: Completion) -> Outcome {
    let count = |tokens: fn(&llm::Usage) -> u64| {
        completion.usage.as_ref().map(|usage| i64::try_from(tokens(usage)).unwrap_or(i64::MAX))
    };
    Outcome {
        status: Status::Succeeded,
        result: Some(completion.text),
        model: Some(completion.model),
        usage: Usage {
            prompt_tokens: count(|usage| usage.prompt_tokens),
            completion_tokens: count(|usage| usage.completion_tokens),
        },
        first_token: completion.first_token_after,
        error_class: None,
    }
}

fn failed(failure: &Failure) -> Outcome {
    let status = if failure.kind == FailureKind::Cancelled { Status::Cancelled } else { Status::Failed };
    Outcome {
        status,
        result: None,
        model: None,
        usage: Usage::default(),
        first_token: None,
        error_class: Some(failure.kind.to_string()),
    }
}

fn new_trace_id() -> Result<String> {
    let mut bytes = [0; 16];
    fill_random(&mut bytes)?;
    Ok(hex(&bytes))
}

/// How many model calls may run, over all and for each user.
pub struct Permits {
    over_all: u32,
    of_user: u32,
    running: Arc<Mutex<HashMap<UserId, u32>>>,
}

/// One running call, counted until it is dropped.
pub struct Permit {
    running: Arc<Mutex<HashMap<UserId, u32>>>,
    user: UserId,
}

impl Permits {
    pub fn new(over_all: u32, of_user: u32) -> Self {
        Self { over_all, of_user, running: Arc::default() }
    }

    /// Counts a call of this user.
    ///
    /// # Errors
    /// `too_many_calls` when the user has enough running, `overloaded` when the service has.
    pub fn enter(&self, user: UserId) -> Result<Permit> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if running.get(&user).copied().unwrap_or(0) >= self.of_user {
            return Err(Code::TooManyCalls.into());
        }
        if running.values().sum::<u32>() >= self.over_all {
            return Err(Error::new(Code::Overloaded).detail("Too many interpretations are running."));
        }
        *running.entry(user).or_default() += 1;
        Ok(Permit { running: Arc::clone(&self.running), user })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = running.get_mut(&self.user) {
            *count -= 1;
            if *count == 0 {
                running.remove(&self.user);
            }
        }
    }
}
