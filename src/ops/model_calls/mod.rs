//! Asking a language model for somebody: a place among the running calls, the budgets, the screening of what it says,
//! and what came of it in the words of a record.
//!
//! It owns no table: whoever asks writes a record of their own before the call, in the transaction that reserves the
//! budget, and finishes it with the [`Outcome`] in the one that settles. An outcome that cannot be written is kept
//! and tried again, so that no record goes on saying that a call runs.

mod places;
pub mod rehearsal;
mod screening;
mod unwritten;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    app::App,
    config,
    error::{Code, Error, Result},
    ops::{
        budget::{self, Amount, Reservation, Used, Warning},
        model_calls::screening::Gate,
        moderation,
        sliding_window::{self, Window},
    },
    providers::{
        Failure, FailureKind,
        llm::{Completion, Flow, Piece, Request, Usage, models::Asked, offline},
    },
    store::{Read, Write},
    types::{Micros, UserId, fill_random, hex},
};

pub use places::{Entering, Place, Places, overloaded};
pub use unwritten::{Unwritten, write_again};

/// The code of a call that was given up before the model was asked.
const NOT_ASKED: &str = "not_asked";

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

    /// Takes what [`Self::name`] gave to the store.
    pub fn from_stored(name: &str) -> Self {
        Self::ALL.into_iter().find(|known| known.name() == name).unwrap_or(Self::Running)
    }
}

/// How many records that are too many go at once: more than come, so that those of before there was a limit go too.
pub const SURPLUS: u32 = 16;

/// Who asks, and for what purpose it is counted.
#[derive(Clone, Copy, Debug)]
pub struct Asker {
    /// Nobody for the operator's own test.
    pub user: Option<UserId>,
    /// `interpretation`, `chat` or `test`.
    pub kind: &'static str,
}

/// All that is known of a call that is over. Nothing of what was said is in it but the answer itself.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub status: Status,
    /// The whole answer of a call that succeeded.
    pub text: Option<String>,
    /// How that answer ended: `stop`, or `length` when the limit of tokens cut it.
    pub finish_reason: Option<String>,
    pub provider: &'static str,
    /// The model that answered, or that was asked.
    pub model: String,
    /// What kept the first model from answering, when the second was asked.
    pub failover: Option<String>,
    /// As the provider counted; nothing where it did not say.
    pub usage: Option<Usage>,
    pub cost: Option<Micros>,
    pub first_token: Option<Duration>,
    pub duration: Duration,
    pub error_class: Option<String>,
    used: Used,
}

/// What came of a call, and what its caller is to be told if it failed.
pub struct Ran {
    pub outcome: Outcome,
    pub failure: Option<Error>,
}

impl Outcome {
    /// Settles the budgets. For the transaction that finishes the record.
    pub fn settle_in(&self, tx: &Write<'_>, settings: &config::Llm, reservation: &Reservation) -> Result<Vec<Warning>> {
        budget::settle_in(tx, settings, reservation, &self.used)
    }

    /// Counts the call without a budget.
    pub fn count_in(&self, tx: &Write<'_>, day: &str) -> Result<()> {
        budget::count_in(tx, day, &self.used)
    }

    pub fn duration_ms(&self) -> i64 {
        milliseconds(self.duration)
    }

    pub fn first_token_ms(&self) -> Option<i64> {
        self.first_token.map(milliseconds)
    }

    /// Tokens of request and answer for the store.
    pub fn tokens(&self) -> (Option<i64>, Option<i64>) {
        let count = |tokens: fn(Usage) -> u64| self.usage.map(|usage| i64::try_from(tokens(usage)).unwrap_or(i64::MAX));
        (count(|usage| usage.prompt_tokens), count(|usage| usage.completion_tokens))
    }
}

/// How many records of calls are kept of a user: never fewer than those by which the calls of an hour are counted.
pub fn records_kept(config: &config::Config) -> u32 {
    config.limits.interpretation_records.max(config.llm.calls_per_user_hour)
}

/// Refuses more than so many in an hour. `newest_first` asks the caller's own records, as a [`Window`] does.
///
/// # Errors
/// `too_many_requests`.
pub fn require_open_in(tx: &Read<'_>, newest_first: &'static str, user: UserId, allowed: u32) -> Result<()> {
    let length = Duration::from_hours(1);
    sliding_window::require_open_in(tx, &[Window { newest_first, key: user.0, allowed, length }])
}

/// A new trace id: 32 hexadecimal digits.
pub fn new_trace_id() -> Result<String> {
    let mut bytes = [0; 16];
    fill_random(&mut bytes)?;
    Ok(hex(&bytes))
}

/// The opaque reference by which a vendor knows the user, the same for ever and of no use to anybody else.
pub fn reference(app: &App, user: UserId) -> String {
    hex(&app.keys.authenticate(&["model user", &user.to_string()])[..16])
}

/// What the request may use at most, of the model that is asked first.
pub fn largest_use(app: &App, request: &Request) -> Amount {
    budget::largest_use(&app.config.llm, app.llm.name(), app.llm.model(), request)
}

/// Asks the model and says what came of it. Blocks on the provider.
///
/// `sink` gets what arrives; when it says [`Flow::Stop`], because nobody listens any more, the call is cancelled. It is
/// asked once before the model is, so that nothing is asked for somebody who has left already.
pub fn run(app: &App, asker: Asker, request: Request, sink: &mut dyn FnMut(Piece<'_>) -> Flow) -> Ran {
    let request = Request { time_left: Some(app.config.llm.total_timeout), ..request };
    let begun = Instant::now();
    let mut seen = Seen::default();
    let mut gate = Gate::new(app, asker, &request);
    let Asked { provider, model, failover, result } = match sink(Piece::SIGN_OF_LIFE) {
        Flow::Stop => app.llm.not_asked(Failure::new(FailureKind::Cancelled, app.llm.name(), NOT_ASKED)),
        Flow::Continue => app.llm.converse(|| app.clock.now().0, &request, &mut |piece| {
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
            (Ending::withheld(result.ok()), Some(refusal.record::<()>(app).wait().err().unwrap_or_else(withheld)))
        }
        (Ok(completion), None) => (Ending::of(completion), None),
        (Err(failure), None) => (Ending::failed(&failure), Some(told(failure, asker))),
    };
    let outcome = ending.outcome(app, asker, &request, (provider, model, failover), &seen, duration);
    Ran { outcome, failure }
}

/// Finishes a record and settles its call. What cannot be written now is kept, and written as soon as it can be.
///
/// `finish` gives nothing if the record was finished before, and must change nothing then.
///
/// # Errors
/// Storage errors; the record will say the truth all the same.
pub fn write_down<T, F>(app: &App, trace_id: &str, finish: F) -> Result<T>
where
    T: Send + 'static,
    F: Fn(&Write<'_>) -> Result<Option<(T, Vec<Warning>)>> + Send + Sync + 'static,
{
    let finish = Arc::new(finish);
    let now = Arc::clone(&finish);
    match app.store.write(move |tx| now(tx)).wait() {
        Ok(Some((record, warnings))) => {
            warn(&warnings);
            Ok(record)
        }
        Ok(None) => Err(Error::new(Code::NotFound).detail("What the model was asked about was deleted meanwhile.")),
        Err(error) => {
            app.unwritten.keep(move |tx| finish(tx).map(drop));
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

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// The caller's side of a failure, logged with what the operator must know.
fn told(failure: Failure, asker: Asker) -> Error {
    match failure.kind {
        FailureKind::Misconfigured => {
            tracing::error!(%failure, kind = asker.kind, "the language model refuses until somebody acts");
        }
        FailureKind::Cancelled => tracing::debug!(%failure, kind = asker.kind, "a model call was cancelled"),
        _ => tracing::warn!(%failure, kind = asker.kind, "a model call failed"),
    }
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

/// What was seen of an answer while it came, for calls that end without a count.
#[derive(Default)]
struct Seen {
    tokens: u64,
    first: Option<Duration>,
}

impl Seen {
    fn note(&mut self, piece: Piece<'_>, begun: Instant) {
        if !piece.text.is_empty() {
            self.first.get_or_insert_with(|| begun.elapsed());
        }
        self.tokens += budget::estimated_tokens(piece.text) + budget::estimated_tokens(piece.reasoning);
    }
}

/// How a call ended, before it is known where.
struct Ending {
    status: Status,
    text: Option<String>,
    finish_reason: Option<String>,
    model: Option<String>,
    usage: Option<Usage>,
    error_class: Option<String>,
    /// The vendor certainly did nothing for it.
    is_free: bool,
}

impl Ending {
    fn of(completion: Completion) -> Self {
        Self {
            status: Status::Succeeded,
            text: Some(completion.text),
            finish_reason: Some(completion.finish_reason),
            model: Some(completion.model),
            usage: completion.usage,
            error_class: None,
            is_free: false,
        }
    }

    fn failed(failure: &Failure) -> Self {
        let status = if failure.kind == FailureKind::Cancelled { Status::Cancelled } else { Status::Failed };
        Self {
            status,
            text: None,
            finish_reason: None,
            model: None,
            usage: failure.usage,
            error_class: Some(failure.kind.to_string()),
            is_free: failure.is_certainly_not_accepted() || failure.code == NOT_ASKED,
        }
    }

    /// Nothing of the answer is told but what it cost, if it came to its end.
    fn withheld(answer: Option<Completion>) -> Self {
        let (model, usage) = answer.map(|answer| (answer.model, answer.usage)).unzip();
        let error_class = Some("answer withheld".to_owned());
        Self {
            status: Status::Failed,
            text: None,
            finish_reason: None,
            model,
            usage: usage.flatten(),
            error_class,
            is_free: false,
        }
    }

    fn outcome(
        self,
        app: &App,
        asker: Asker,
        request: &Request,
        (provider, model, failover): (&'static str, String, Option<Failure>),
        seen: &Seen,
        duration: Duration,
    ) -> Outcome {
        let settings = &app.config.llm;
        let of_last = match self.usage {
            _ if provider == offline::NAME || (self.usage.is_none() && self.is_free && seen.tokens == 0) => {
                Amount::default()
            }
            Some(usage) => budget::amount(settings, &model, usage.prompt_tokens, usage.completion_tokens),
            None => {
                let prompt = request.messages.iter().map(|message| budget::estimated_tokens(&message.content)).sum();
                budget::amount(settings, &model, prompt, seen.tokens)
            }
        };
        // A first model that thought and said nothing has its price, too.
        let of_first = failover.as_ref().and_then(|failure| failure.usage).map_or_else(Amount::default, |usage| {
            budget::amount(settings, app.llm.model(), usage.prompt_tokens, usage.completion_tokens)
        });
        let cost = self.usage.and_then(|usage| budget::cost(settings, &model, usage));
        let used = Used {
            kind: asker.kind,
            provider: provider.to_owned(),
            model: model.clone(),
            outcome: self.status.name(),
            prompt_tokens: self.usage.map_or(0, |usage| usage.prompt_tokens),
            completion_tokens: self.usage.map_or(0, |usage| usage.completion_tokens),
            cost: cost.unwrap_or_default(),
            duration_ms: milliseconds(duration),
            charged: of_first.plus(of_last),
        };
        Outcome {
            status: self.status,
            text: self.text,
            finish_reason: self.finish_reason,
            provider,
            model: self.model.unwrap_or(model),
            failover: failover.map(|failure| failure.kind.to_string()),
            usage: self.usage,
            cost,
            first_token: seen.first,
            duration,
            error_class: self.error_class,
            used,
        }
    }
}
