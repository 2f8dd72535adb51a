//! What a call comes to: how it ended, what was seen of it, and what it costs.

use std::time::{Duration, Instant};

use crate::{
    config,
    domain::divination::{
        budget::{self, Amount, Reservation, Used, Warning},
        model_calls::{Asker, ModelCalls, NOT_ASKED, Status},
    },
    error::Result,
    providers::{
        Failure, FailureKind,
        llm::{Completion, Piece, Request, Usage, offline},
    },
    store::Write,
    types::{Micros, milliseconds},
};

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

/// What was seen of an answer while it came, for calls that end without a count.
#[derive(Default)]
pub(super) struct Seen {
    of_first: SeenOf,
    of_second: SeenOf,
    first: Option<Duration>,
}

/// What was seen of one model.
#[derive(Clone, Copy, Default)]
struct SeenOf {
    tokens: u64,
    /// Tries that were lost on their way and made again: their vendor may have done something for each.
    lost_tries: u64,
}

impl Seen {
    pub(super) fn note(&mut self, piece: Piece<'_>, begun: Instant) {
        if !piece.text.is_empty() {
            self.first.get_or_insert_with(|| begun.elapsed());
        }
        let model = if piece.is_of_second { &mut self.of_second } else { &mut self.of_first };
        model.tokens += budget::estimated_tokens(piece.text) + budget::estimated_tokens(piece.reasoning);
        model.lost_tries += u64::from(piece.is_after_lost_try);
    }
}

/// A call that is over: who asked what of which model, and what was seen of it.
pub(super) struct Call<'run> {
    pub(super) asker: Asker,
    pub(super) request: &'run Request,
    pub(super) seen: &'run Seen,
    /// The driver that was asked last.
    pub(super) provider: &'static str,
    /// The model that was asked for last.
    pub(super) model: String,
    /// Why the first model did not answer, when the second was asked.
    pub(super) failover: Option<Failure>,
    pub(super) duration: Duration,
}

/// What one model did for a call, as far as it is known.
struct Work<'run> {
    provider: &'static str,
    model: &'run str,
    request: &'run Request,
    /// As its vendor counted.
    usage: Option<Usage>,
    seen: SeenOf,
    /// The vendor certainly did nothing for it, unless something came.
    is_free: bool,
}

impl Work<'_> {
    /// What it is charged with: as counted, else as estimated. Of a try that was lost only what was said is known.
    fn amount(&self, settings: &config::Llm) -> Amount {
        if self.provider == offline::NAME {
            return Amount::default();
        }
        let said = self.request.messages.iter().map(|message| budget::estimated_tokens(&message.content)).sum::<u64>();
        let amount = |said, told| budget::amount(settings, self.model, said, told);
        let of_last_try = match self.usage {
            Some(usage) => amount(usage.prompt_tokens, usage.completion_tokens),
            None if self.is_free && self.seen.tokens == 0 => Amount::default(),
            None => amount(said, self.seen.tokens),
        };
        of_last_try.plus(amount(said * self.seen.lost_tries, 0))
    }
}

/// Whether the vendor certainly did nothing for what failed so.
fn is_free(failure: &Failure) -> bool {
    failure.is_certainly_not_accepted() || failure.code == NOT_ASKED
}

/// How a call ended, before it is known where.
pub(super) struct Ending {
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
    pub(super) fn of(completion: Completion) -> Self {
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

    pub(super) fn failed(failure: &Failure) -> Self {
        let status = if failure.kind == FailureKind::Cancelled { Status::Cancelled } else { Status::Failed };
        Self {
            status,
            text: None,
            finish_reason: None,
            model: None,
            usage: failure.usage,
            error_class: Some(failure.kind.to_string()),
            is_free: is_free(failure),
        }
    }

    /// Something is wrong with this program, and how far it came nobody knows.
    pub(super) fn panicked() -> Self {
        Self {
            status: Status::Failed,
            text: None,
            finish_reason: None,
            model: None,
            usage: None,
            error_class: Some("panicked".to_owned()),
            is_free: false,
        }
    }

    /// Nothing of the answer is told but what it cost, as far as it came.
    pub(super) fn withheld(answer: Result<Completion, Failure>) -> Self {
        let (model, usage) = match answer {
            Ok(answer) => (Some(answer.model), answer.usage),
            Err(failure) => (None, failure.usage),
        };
        let error_class = Some("answer withheld".to_owned());
        Self { status: Status::Failed, text: None, finish_reason: None, model, usage, error_class, is_free: false }
    }

    /// All that is known of the call, with what it costs by the settings.
    pub(super) fn outcome(self, calls: &ModelCalls, call: Call<'_>) -> Outcome {
        let Call { asker, request, seen, provider, model, failover, duration } = call;
        let settings = &calls.core.config.llm;
        let seen_of_last = if failover.is_some() { seen.of_second } else { seen.of_first };
        let last =
            Work { provider, model: &model, request, usage: self.usage, seen: seen_of_last, is_free: self.is_free };
        // A first model that thought and said nothing has its price, too.
        let first = failover.as_ref().map(|failure| Work {
            provider: calls.models.name(),
            model: calls.models.model(),
            request,
            usage: failure.usage,
            seen: seen.of_first,
            is_free: is_free(failure),
        });
        let charged_first = first.map_or_else(Amount::default, |first| first.amount(settings));
        let charged = charged_first.plus(last.amount(settings));
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
            charged,
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
