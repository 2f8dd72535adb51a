//! Asking a language model for somebody: a place among the running calls, the budgets, the screening of what it says,
//! and what came of it in the words of a record.
//!
//! Whoever asks writes a record of their own before the call, in the transaction that reserves the budget, and finishes
//! it with the [`Outcome`] in the one that settles; what is owned here is only the count of the last hour. An outcome
//! that cannot be written is kept and tried again, so that no record goes on saying that a call runs.

mod ending;
pub mod hourly;
mod admission_queue;
pub mod rehearsal;
mod screening;
mod outcome_retry_queue;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    core::Core,
    domain::{
        divination::{
            budget::{self, Amount, Warning},
            model_calls::{
                ending::{Call, Ending, Seen},
                screening::Gate,
            },
        },
        moderation::{self, Moderation},
    },
    error::{Code, Error, Result},
    providers::llm::models::Models,
    providers::{
        Failure, FailureKind,
        llm::{Flow, Piece, Request, models::Asked},
    },
    store::Write,
    types::{UserId, hex, named, random_hex},
};

/// The service that calls language models: admission, the models behind their breakers, and outcomes not yet stored.
pub struct ModelCalls {
    pub core: Core,
    /// Screens what the models say.
    pub moderation: Arc<Moderation>,
    /// The language models, each behind its breaker.
    pub models: Models,
    /// Running calls, and those that wait.
    pub queue: Places,
    /// Outcomes that could not be stored yet.
    pub retry_queue: Unwritten,
}

impl ModelCalls {
    pub fn new(core: Core, moderation: Arc<Moderation>, models: Models) -> Self {
        let settings = &core.config.llm;
        let queue = Places::new(settings.calls, settings.calls_per_user, settings.queue);
        Self { core, moderation, models, queue, retry_queue: Unwritten::default() }
    }
}

pub use admission_queue::{Entering, Place, Places, overloaded};
pub use ending::Outcome;
pub use outcome_retry_queue::{Unwritten, write_again};

/// The code of a call that was given up before the model was asked.
const NOT_ASKED: &str = "not_asked";

named! {
    /// What became of a call.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Status {
        Running = "running",
        Succeeded = "succeeded",
        Failed = "failed",
        /// The client went away before the answer was complete.
        Cancelled = "cancelled",
        /// The service stopped while the call ran.
        Interrupted = "interrupted",
    }
}

/// Who asks, and for what purpose it is counted.
#[derive(Clone, Copy, Debug)]
pub struct Asker {
    /// Nobody for the operator's own test.
    pub user: Option<UserId>,
    /// `interpretation`, `chat` or `test`.
    pub kind: &'static str,
}

/// What came of a call, and what its caller is to be told if it failed.
pub struct Ran {
    pub outcome: Outcome,
    pub failure: Option<Error>,
}

/// A new trace id: 32 hexadecimal digits.
pub fn new_trace_id() -> Result<String> {
    random_hex::<16>()
}

/// The opaque reference by which a vendor knows the user, the same for ever and of no use to anybody else.
pub fn reference(core: &Core, user: UserId) -> String {
    hex(&core.keys.authenticate(&["model user", &user.to_string()])[..16])
}

/// What the request may use at most, of the model that is asked first.
pub fn largest_use(calls: &ModelCalls, request: &Request) -> Amount {
    budget::largest_use(&calls.core.config.llm, calls.models.name(), calls.models.model(), request)
}

/// Asks the model and says what came of it. Blocks on the provider.
///
/// `sink` gets what arrives; when it says [`Flow::Stop`], because nobody listens any more, the call is cancelled. It is
/// asked once before the model is, so that nothing is asked for somebody who has left already.
///
/// A panic on the way is an outcome like any other failure: whoever asks must not be left with a record that nobody ends.
pub fn run(calls: &ModelCalls, asker: Asker, request: Request, sink: &mut dyn FnMut(Piece<'_>) -> Flow) -> Ran {
    let request = Request { time_left: Some(calls.core.config.llm.total_timeout), ..request };
    let begun = Instant::now();
    let mut seen = Seen::default();
    let concluded = catch_unwind(AssertUnwindSafe(|| conclude(calls, asker, &request, begun, &mut seen, sink)));
    let concluded = concluded.unwrap_or_else(|_| Concluded {
        ending: Ending::panicked(),
        failure: Some(Error::internal("a model call panicked")),
        provider: calls.models.name(),
        model: calls.models.model().to_owned(),
        failover: None,
        duration: begun.elapsed(),
    });
    let Concluded { ending, failure, provider, model, failover, duration } = concluded;
    let call = Call { asker, request: &request, seen: &seen, provider, model, failover, duration };
    Ran { outcome: ending.outcome(calls, call), failure }
}

/// How a call ended, and who was asked last.
struct Concluded {
    ending: Ending,
    failure: Option<Error>,
    provider: &'static str,
    model: String,
    failover: Option<Failure>,
    duration: Duration,
}

fn conclude(
    calls: &ModelCalls,
    asker: Asker,
    request: &Request,
    begun: Instant,
    seen: &mut Seen,
    sink: &mut dyn FnMut(Piece<'_>) -> Flow,
) -> Concluded {
    let mut gate = Gate::new(&calls.moderation, asker, request);
    let Asked { provider, model, failover, result } = match sink(Piece::SIGN_OF_LIFE) {
        Flow::Stop => calls.models.not_asked(Failure::new(FailureKind::Cancelled, calls.models.name(), NOT_ASKED)),
        Flow::Continue => calls.models.converse(|| calls.core.clock.now().0, request, &mut |piece| {
            seen.note(piece, begun);
            gate.pass(piece, sink)
        }),
    };
    let duration = begun.elapsed();
    let result = result.and_then(|completion| match gate.finish(sink) {
        Flow::Continue => Ok(completion),
        Flow::Stop => Err(Failure::new(FailureKind::Cancelled, provider, "cancelled")),
    });
    let refusal = gate.into_refusal();
    let (ending, failure) = match (result, refusal) {
        (result, Some(refusal)) => {
            (Ending::withheld(result), Some(refusal.record::<()>(&calls.core).wait().err().unwrap_or_else(withheld)))
        }
        (Ok(completion), None) => (Ending::of(completion), None),
        (Err(failure), None) => {
            log_failure(&failure, asker, &request.trace_id);
            (Ending::failed(&failure), Some(told(failure)))
        }
    };
    Concluded { ending, failure, provider, model, failover, duration }
}

/// Finishes a record and settles its call. What cannot be written now is kept, and written as soon as it can be.
///
/// `finish` gives nothing if the record was finished before, and must change nothing then.
///
/// # Errors
/// Storage errors; the record will say the truth all the same.
pub fn write_down<T, F>(calls: &ModelCalls, trace_id: &str, finish: F) -> Result<T>
where
    T: Send + 'static,
    F: Fn(&Write<'_>) -> Result<Option<(T, Vec<Warning>)>> + Send + Sync + 'static,
{
    let finish = Arc::new(finish);
    let now = Arc::clone(&finish);
    match calls.core.store.write(move |tx| now(tx)).wait() {
        Ok(Some((record, warnings))) => {
            warn(&warnings);
            Ok(record)
        }
        Ok(None) => Err(Error::new(Code::NotFound).detail("What the model was asked about was deleted meanwhile.")),
        Err(error) => {
            calls.retry_queue.keep(move |tx| finish(tx).map(drop));
            Err(error.of_trace(trace_id))
        }
    }
}

fn warn(warnings: &[Warning]) {
    for Warning { user, of, per_cent } in warnings {
        match user {
            None => tracing::warn!(of, per_cent, "the language model's budget of the day is nearly spent"),
            Some(user) => tracing::warn!(%user, of, per_cent, "a user's budget of the day is nearly spent"),
        }
    }
}

/// What the operator must know of a failure.
fn log_failure(failure: &Failure, asker: Asker, trace_id: &str) {
    let kind = asker.kind;
    match failure.kind {
        FailureKind::Misconfigured => {
            tracing::error!(trace_id, %failure, kind, "the language model refuses until somebody acts");
        }
        FailureKind::Cancelled => tracing::debug!(trace_id, %failure, kind, "a model call was cancelled"),
        _ => tracing::warn!(trace_id, %failure, kind, "a model call failed"),
    }
}

/// The caller's side of a failure.
fn told(failure: Failure) -> Error {
    match failure.kind {
        // It does not say whether the question or what would have answered it.
        FailureKind::ContentRefused => Error::from(failure).in_fields(vec![moderation::rejected("answer")]),
        // It answered, and not to the end.
        FailureKind::OutcomeUnknown => Error::new(Code::ProviderFailed).caused_by(failure),
        _ => Error::from(failure),
    }
}

fn withheld() -> Error {
    Error::new(Code::ContentRejected).detail("The answer was refused by content moderation.")
}
