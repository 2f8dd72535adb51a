//! Runs a model call, and stores its outcome in the caller's record.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    answer_screen::AnswerScreen,
    outcome::{CallResult, FinishedCall, ModelCaller, NOT_CALLED, Outcome, StreamProgress},
    service::ModelCalls,
};
use crate::{
    core::Core,
    domain::{divination::budget::BudgetWarning, moderation},
    error::{Code, Error, Result},
    providers::{
        Failure, FailureKind,
        llm::{Completion, Flow, ModelRequest, OutputChunk, ServiceAnswer, models::ModelReply, offline},
    },
    store::Write,
    types::{UserId, hex, random_hex},
};

/// Separates the words of the service from the model's.
const PARAGRAPH: &str = "\n\n";

/// The outcome of a call and, if it failed, the error for the caller.
pub struct CallReport {
    pub outcome: Outcome,
    pub failure: Option<Error>,
}

/// Returns a new trace id: 32 hexadecimal digits.
pub fn new_trace_id() -> Result<String> {
    random_hex::<16>()
}

/// Returns the opaque reference by which a provider knows the user. It never changes and reveals nothing.
pub fn user_reference(core: &Core, user: UserId) -> String {
    hex(&core.keys.authenticate(&["model user", &user.to_string()])[..16])
}

/// Calls the model and returns the outcome. Blocks on the provider.
///
/// `sink` gets each chunk of the output; [`Flow::Stop`] cancels the call. It is also called once before the model is
/// called, so that no call is made for a client that has disconnected.
///
/// A panic becomes a failed outcome, because the caller's record must be finished.
pub fn run(
    calls: &ModelCalls,
    caller: ModelCaller,
    request: ModelRequest,
    sink: &mut dyn FnMut(OutputChunk<'_>) -> Flow,
) -> CallReport {
    let request = ModelRequest { time_left: Some(calls.core.config.llm.total_timeout), ..request };
    let begun = Instant::now();
    let mut progress = StreamProgress::default();
    let response = catch_unwind(AssertUnwindSafe(|| call_model(calls, caller, &request, begun, &mut progress, sink)));
    let response = response.unwrap_or_else(|_| ModelResponse {
        result: CallResult::panicked(),
        failure: Some(Error::internal("a model call panicked")),
        provider: calls.models.name(),
        model: calls.models.model().to_owned(),
        failover: None,
        duration: begun.elapsed(),
    });
    let ModelResponse { result, failure, provider, model, failover, duration } = response;
    let call = FinishedCall { caller, request: &request, progress: &progress, provider, model, failover, duration };
    CallReport { outcome: result.into_outcome(calls, call), failure }
}

/// The result of a call, and the model that was called last.
struct ModelResponse {
    result: CallResult,
    failure: Option<Error>,
    provider: &'static str,
    model: String,
    failover: Option<Failure>,
    duration: Duration,
}

impl ModelResponse {
    /// Returns the response of the service to a request that calls no model.
    fn of_service(answer: &ServiceAnswer, duration: Duration) -> Self {
        Self {
            result: CallResult::of_service(answer, None),
            failure: None,
            provider: offline::NAME,
            model: offline::MODEL.to_owned(),
            failover: None,
            duration,
        }
    }
}

fn call_model(
    calls: &ModelCalls,
    caller: ModelCaller,
    request: &ModelRequest,
    begun: Instant,
    progress: &mut StreamProgress,
    sink: &mut dyn FnMut(OutputChunk<'_>) -> Flow,
) -> ModelResponse {
    let beginning = match &request.service_answer {
        Some(answer) => {
            progress.begin(begun);
            let is_wanted = sink(OutputChunk { text: &answer.text, model: offline::MODEL, ..OutputChunk::KEEP_ALIVE });
            if answer.is_whole {
                return ModelResponse::of_service(answer, begun.elapsed());
            }
            is_wanted
        }
        None => sink(OutputChunk::KEEP_ALIVE),
    };
    let mut has_continued = request.service_answer.is_none();
    let sink: &mut dyn FnMut(OutputChunk<'_>) -> Flow = &mut |chunk| {
        let has_content = !chunk.text.is_empty() || chunk.document.is_some();
        if has_content && !has_continued {
            has_continued = true;
            if sink(OutputChunk { text: PARAGRAPH, model: offline::MODEL, ..OutputChunk::KEEP_ALIVE }) == Flow::Stop {
                return Flow::Stop;
            }
        }
        sink(chunk)
    };
    let mut screen = AnswerScreen::new(&calls.moderation, caller, request);
    let ModelReply { provider, model, failover, result } = match beginning {
        Flow::Stop => calls.models.not_called(Failure::new(FailureKind::Cancelled, calls.models.name(), NOT_CALLED)),
        Flow::Continue => calls.models.converse(|| calls.core.clock.now().0, request, &mut |chunk| {
            progress.record(chunk, begun);
            screen.push(chunk, sink)
        }),
    };
    let duration = begun.elapsed();
    let result = result.and_then(|completion| match screen.finish(sink) {
        Flow::Continue => Ok(completion),
        Flow::Stop => Err(Failure::new(FailureKind::Cancelled, provider, "cancelled")),
    });
    let result = result.map(|completion| Completion { text: screen.as_released(completion.text), ..completion });
    let (result, failure) = match (result, screen.into_refusal()) {
        // The words of the service are an answer by themselves.
        (result, refusal) if let Some(answer) = &request.service_answer => match (result, refusal) {
            (Ok(completion), None) => {
                let text = [answer.text.as_str(), completion.text.as_str()].map(str::trim_end);
                let text = text.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(PARAGRAPH);
                (CallResult::succeeded(Completion { text, ..completion }), None)
            }
            (Err(failure), None) if failure.kind == FailureKind::Cancelled => {
                (CallResult::failed(&failure), Some(caller_error(failure)))
            }
            (result, _) => {
                let failure = result.err();
                if let Some(failure) = &failure {
                    log_failure(failure, caller, &request.trace_id);
                }
                (CallResult::of_service(answer, failure.as_ref()), None)
            }
        },
        (result, Some(refusal)) => {
            let error = refusal.record::<()>(&calls.core).wait().err().unwrap_or_else(answer_rejected);
            (CallResult::rejected(result), Some(error))
        }
        (Ok(completion), None) => (CallResult::succeeded(completion), None),
        (Err(failure), None) => {
            log_failure(&failure, caller, &request.trace_id);
            (CallResult::failed(&failure), Some(caller_error(failure)))
        }
    };
    ModelResponse { result, failure, provider, model, failover, duration }
}

/// Finishes the caller's record and settles the budgets. A write that fails is queued and retried.
///
/// `finish` returns `None`, and changes nothing, if the record is already finished or deleted.
///
/// # Errors
/// `not_found` if `finish` returns `None`; storage errors, although the record will be finished later.
pub fn store_outcome<T, F>(calls: &ModelCalls, trace_id: &str, finish: F) -> Result<T>
where
    T: Send + 'static,
    F: Fn(&Write<'_>) -> Result<Option<(T, Vec<BudgetWarning>)>> + Send + Sync + 'static,
{
    let finish = Arc::new(finish);
    let first_attempt = Arc::clone(&finish);
    match calls.core.store.write(move |tx| first_attempt(tx)).wait() {
        Ok(Some((record, warnings))) => {
            log_warnings(&warnings);
            Ok(record)
        }
        Ok(None) => Err(Error::new(Code::NotFound).detail((
            "The record of this model call was deleted while it ran.",
            "此次模型调用的记录在运行期间已被删除。",
        ))),
        Err(error) => {
            calls.retry_queue.push(move |tx| finish(tx).map(drop));
            Err(error.with_trace_id(trace_id))
        }
    }
}

fn log_warnings(warnings: &[BudgetWarning]) {
    for BudgetWarning { user, resource, percent } in warnings {
        match user {
            None => tracing::warn!(resource, percent, "the daily budget of the language model is nearly spent"),
            Some(user) => tracing::warn!(%user, resource, percent, "the daily model budget of a user is nearly spent"),
        }
    }
}

fn log_failure(failure: &Failure, caller: ModelCaller, trace_id: &str) {
    let kind = caller.kind;
    match failure.kind {
        FailureKind::Misconfigured => {
            tracing::error!(trace_id, %failure, kind, "the language model rejects all calls: check its settings");
        }
        FailureKind::Cancelled => tracing::debug!(trace_id, %failure, kind, "a model call was cancelled"),
        _ => tracing::warn!(trace_id, %failure, kind, "a model call failed"),
    }
}

/// Converts a provider's failure into the error that the caller gets.
fn caller_error(failure: Failure) -> Error {
    match failure.kind {
        // The provider does not say whether it rejected the question or its own output.
        FailureKind::ContentRefused => Error::from(failure).in_fields(vec![moderation::rejected("answer")]),
        // Output arrived, but not all of it.
        FailureKind::OutcomeUnknown => Error::new(Code::ProviderFailed).caused_by(failure),
        _ => Error::from(failure),
    }
}

fn answer_rejected() -> Error {
    Error::new(Code::ContentRejected)
        .detail(("Content moderation rejected the model's answer.", "模型的回答未通过内容审核。"))
}
