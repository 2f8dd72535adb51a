//! The outcome of a model call: status, text, usage and cost.

use std::time::{Duration, Instant};

use super::{running_calls, service::ModelCalls};
use crate::{
    config,
    domain::divination::budget::{self, Amount, BudgetWarning, CallUsage},
    error::Result,
    providers::{
        Failure, FailureKind,
        llm::{Completion, ModelRequest, OutputChunk, ServiceAnswer, TokenUsage, offline},
    },
    store::Write,
    types::{MicroAmount, UserId, milliseconds, named_enum},
};

/// Tokens that a provider may add to a request or an answer: its own instructions and markers. Each token of text has
/// at least one byte.
const TEMPLATE_TOKENS: u64 = 8_192;

/// The failure code of a call that was cancelled before the model was called.
pub(super) const NOT_CALLED: &str = "not_called";

named_enum! {
    /// The status of a model call.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum CallStatus {
        Running = "running",
        Succeeded = "succeeded",
        Failed = "failed",
        /// The client disconnected before the answer was complete.
        Cancelled = "cancelled",
        /// The service stopped while the call ran.
        Interrupted = "interrupted",
    }
}

/// The user who makes a call, and the kind under which it is counted.
#[derive(Clone, Copy, Debug)]
pub struct ModelCaller {
    /// `None` for the operator's test call.
    pub user: Option<UserId>,
    /// `interpretation`, `chat` or `test`.
    pub kind: &'static str,
}

/// The recorded facts about a finished call. Its only text is the answer.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub status: CallStatus,
    /// The whole answer of a call that succeeded.
    pub text: Option<String>,
    /// `stop`, or `length` if the token limit cut the answer.
    pub finish_reason: Option<String>,
    pub provider: &'static str,
    /// The model that answered, or else the one that was called.
    pub model: String,
    /// The failure of the primary model, if the fallback was called.
    pub failover: Option<String>,
    /// The usage that the provider reported, if any.
    pub usage: Option<TokenUsage>,
    pub cost: Option<MicroAmount>,
    pub first_token: Option<Duration>,
    pub duration: Duration,
    pub error_class: Option<String>,
    call_usage: CallUsage,
}

impl Outcome {
    /// Ends the call and settles the budgets, in the transaction that finishes the caller's record. Returns `None` if the
    /// call was closed before, because its copy of the service seemed to be gone.
    pub fn settle_in(
        &self,
        tx: &Write<'_>,
        settings: &config::LlmConfig,
        trace_id: &str,
    ) -> Result<Option<Vec<BudgetWarning>>> {
        running_calls::end_in(tx, settings, trace_id, &self.call_usage)
    }

    /// Counts a call for which no budget was reserved.
    pub fn count_in(&self, tx: &Write<'_>, day: &str) -> Result<()> {
        budget::count_in(tx, day, &self.call_usage)
    }

    pub fn duration_ms(&self) -> i64 {
        milliseconds(self.duration)
    }

    pub fn first_token_ms(&self) -> Option<i64> {
        self.first_token.map(milliseconds)
    }

    /// Returns prompt and completion tokens as stored.
    pub fn tokens(&self) -> (Option<i64>, Option<i64>) {
        let count =
            |tokens: fn(TokenUsage) -> u64| self.usage.map(|usage| i64::try_from(tokens(usage)).unwrap_or(i64::MAX));
        (count(|usage| usage.prompt_tokens), count(|usage| usage.completion_tokens))
    }
}

/// The output received so far, from which usage is estimated if the provider reports none.
#[derive(Default)]
pub(super) struct StreamProgress {
    first_model: ModelProgress,
    failover_model: ModelProgress,
    first_token: Option<Duration>,
}

/// The output received from one model.
#[derive(Clone, Copy, Default)]
struct ModelProgress {
    tokens: u64,
    bytes: u64,
    /// Attempts that were retried after their connection broke. The provider may bill each of them.
    broken_attempts: u64,
}

impl StreamProgress {
    /// Records the first text of the service itself.
    pub(super) fn begin(&mut self, begun: Instant) {
        self.first_token.get_or_insert_with(|| begun.elapsed());
    }

    pub(super) fn record(&mut self, chunk: OutputChunk<'_>, begun: Instant) {
        if !chunk.text.is_empty() {
            self.first_token.get_or_insert_with(|| begun.elapsed());
        }
        let model = if chunk.is_from_fallback { &mut self.failover_model } else { &mut self.first_model };
        model.bytes += (chunk.text.len() + chunk.reasoning.len()) as u64;
        model.tokens += budget::estimate_tokens(chunk.text) + budget::estimate_tokens(chunk.reasoning);
        model.broken_attempts += u64::from(chunk.has_lost_attempt);
    }
}

/// A finished call, whose outcome is to be computed.
pub(super) struct FinishedCall<'run> {
    pub(super) caller: ModelCaller,
    pub(super) request: &'run ModelRequest,
    pub(super) progress: &'run StreamProgress,
    /// The provider that was called last.
    pub(super) provider: &'static str,
    /// The model that was requested last.
    pub(super) model: String,
    /// The failure of the primary model, if the fallback was called.
    pub(super) failover: Option<Failure>,
    pub(super) duration: Duration,
}

/// The part of a call that one model handled.
struct ModelShare<'run> {
    provider: &'static str,
    model: &'run str,
    request: &'run ModelRequest,
    /// As reported by the provider.
    usage: Option<TokenUsage>,
    progress: ModelProgress,
    /// The provider did not process the request, unless output arrived.
    is_free: bool,
}

impl ModelShare<'_> {
    /// Returns the reported usage, limited to what request and output allow. A wrong report must not use up the budgets
    /// of a day.
    fn plausible_usage(&self, settings: &config::LlmConfig) -> Option<TokenUsage> {
        let usage = self.usage?;
        let prompt_bytes: usize = self.request.messages.iter().map(|message| message.content.len()).sum();
        let max_tokens = u64::from(self.request.max_tokens.unwrap_or(settings.max_tokens));
        let prompt_tokens = usage.prompt_tokens.min(prompt_bytes as u64 + TEMPLATE_TOKENS);
        let completion_tokens = usage.completion_tokens.min(max_tokens.max(self.progress.bytes) + TEMPLATE_TOKENS);
        let total_tokens = usage.total_tokens.min(prompt_tokens + completion_tokens);
        Some(TokenUsage { prompt_tokens, completion_tokens, total_tokens })
    }

    /// Returns the amount to charge: as reported by the provider, or else estimated. A broken attempt is charged for
    /// its prompt only, since its output is unknown.
    fn amount(&self, settings: &config::LlmConfig) -> Amount {
        if self.provider == offline::NAME {
            return Amount::default();
        }
        let messages = self.request.messages.iter();
        let prompt_tokens = messages.map(|message| budget::estimate_tokens(&message.content)).sum::<u64>();
        let amount = |prompt, completion| budget::amount(settings, self.model, prompt, completion);
        let last_attempt = match self.plausible_usage(settings) {
            Some(usage) => amount(usage.prompt_tokens, usage.completion_tokens),
            None if self.is_free && self.progress.tokens == 0 => Amount::default(),
            None => amount(prompt_tokens, self.progress.tokens),
        };
        last_attempt.plus(amount(prompt_tokens * self.progress.broken_attempts, 0))
    }
}

/// Returns true if the provider certainly did not process the request.
fn is_free_failure(failure: &Failure) -> bool {
    failure.is_certainly_not_accepted() || failure.code == NOT_CALLED
}

/// The result of a call without provider and duration.
pub(super) struct CallResult {
    status: CallStatus,
    text: Option<String>,
    finish_reason: Option<String>,
    model: Option<String>,
    usage: Option<TokenUsage>,
    error_class: Option<String>,
    /// The provider certainly did not process the request.
    is_free: bool,
}

impl CallResult {
    pub(super) fn succeeded(completion: Completion) -> Self {
        Self {
            status: CallStatus::Succeeded,
            text: Some(completion.text),
            finish_reason: Some(completion.finish_reason),
            model: Some(completion.model),
            usage: completion.usage,
            error_class: None,
            is_free: false,
        }
    }

    /// Returns the result of a call that only the service answered, and the failure of the model if one was called.
    pub(super) fn of_service(answer: &ServiceAnswer, failure: Option<&Failure>) -> Self {
        Self {
            status: CallStatus::Succeeded,
            text: Some(answer.text.clone()),
            finish_reason: Some("stop".to_owned()),
            model: Some(offline::MODEL.to_owned()),
            usage: failure.and_then(|failure| failure.usage.as_deref().copied()),
            error_class: None,
            is_free: failure.is_none_or(is_free_failure),
        }
    }

    pub(super) fn failed(failure: &Failure) -> Self {
        let is_cancelled = failure.kind == FailureKind::Cancelled;
        Self {
            status: if is_cancelled { CallStatus::Cancelled } else { CallStatus::Failed },
            usage: failure.usage.as_deref().copied(),
            is_free: is_free_failure(failure),
            ..Self::without_text(&failure.kind.to_string())
        }
    }

    /// Returns the result of a call that panicked.
    pub(super) fn panicked() -> Self {
        Self::without_text("panicked")
    }

    /// Returns the result of a call whose answer content moderation rejected. Its usage is still charged.
    pub(super) fn rejected(answer: Result<Completion, Failure>) -> Self {
        let (model, usage) = match answer {
            Ok(answer) => (Some(answer.model), answer.usage),
            Err(failure) => (None, failure.usage.map(|usage| *usage)),
        };
        Self { model, usage, ..Self::without_text("answer withheld") }
    }

    fn without_text(error_class: &str) -> Self {
        Self {
            status: CallStatus::Failed,
            text: None,
            finish_reason: None,
            model: None,
            usage: None,
            error_class: Some(error_class.to_owned()),
            is_free: false,
        }
    }

    /// Adds provider, duration and cost.
    pub(super) fn into_outcome(self, calls: &ModelCalls, call: FinishedCall<'_>) -> Outcome {
        let settings = &calls.core.config.llm;
        let last = self.last_share(&call);
        let usage = last.plausible_usage(settings);
        if usage.map(TokenUsage::sum) != self.usage.map(TokenUsage::sum) {
            let trace_id = &call.request.trace_id;
            tracing::warn!(trace_id, "the language model reported more tokens than the call can have used");
        }
        let charged = first_share(calls, &call).map_or_else(Amount::default, |first| first.amount(settings));
        let charged = charged.plus(last.amount(settings));
        let FinishedCall { caller, progress, provider, model, failover, duration, .. } = call;
        let cost = usage.and_then(|usage| budget::cost(settings, &model, usage));
        let call_usage = CallUsage {
            kind: caller.kind,
            provider: provider.to_owned(),
            model: model.clone(),
            outcome: self.status.name(),
            prompt_tokens: usage.map_or(0, |usage| usage.prompt_tokens),
            completion_tokens: usage.map_or(0, |usage| usage.completion_tokens),
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
            usage,
            cost,
            first_token: progress.first_token,
            duration,
            error_class: self.error_class,
            call_usage,
        }
    }

    /// Returns the share of the model that was called last.
    fn last_share<'call>(&self, call: &'call FinishedCall<'_>) -> ModelShare<'call> {
        let is_of_failover = call.failover.is_some();
        ModelShare {
            provider: call.provider,
            model: &call.model,
            request: call.request,
            usage: self.usage,
            progress: if is_of_failover { call.progress.failover_model } else { call.progress.first_model },
            is_free: self.is_free,
        }
    }
}

/// Returns the share of the primary model, if the fallback was called. Reasoning before the failure costs, too.
fn first_share<'call>(calls: &'call ModelCalls, call: &'call FinishedCall<'_>) -> Option<ModelShare<'call>> {
    call.failover.as_ref().map(|failure| ModelShare {
        provider: calls.models.name(),
        model: calls.models.model(),
        request: call.request,
        usage: failure.usage.as_deref().copied(),
        progress: call.progress.first_model,
        is_free: is_free_failure(failure),
    })
}
