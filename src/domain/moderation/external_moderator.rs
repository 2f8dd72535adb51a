//! The external moderator, called behind a circuit breaker and a semaphore, with data about its health for operators.
//!
//! A user holds at most an eighth of the permits. A text without a permit is undecided: our own load is no failure of
//! the provider, and must not let the word list decide instead.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use super::engine::ContentType;
use crate::{
    clock::Clock,
    concurrency::{
        lock::lock_unpoisoned,
        semaphore::{WaitLimits, WaitingSemaphore},
    },
    config,
    core::Core,
    providers::{
        Failure, FailureKind,
        breaker::{BreakerState, CircuitBreaker},
        client::uncancellable,
        moderation::{ModerationResult, Scene, TextModerator},
    },
    types::{Timestamp, UserId, hex},
};

/// A text that neither service rejects. Each probe is billed, so its result is reused for a minute.
pub(super) const HARMLESS_TEXT: &str = "今天天气很好";
const PROBE_LIFETIME: Duration = Duration::from_mins(1);

/// The provider name in health checks and alerts.
pub const MODERATION: &str = "moderation";

/// The failure code of a text that got no permit. The service was not called.
pub(super) const NO_PERMIT: &str = "too_many_calls";

/// The external moderator, if one is configured.
pub struct ExternalModerator {
    moderator: Option<Box<dyn TextModerator>>,
    clock: Clock,
    breaker: Arc<CircuitBreaker>,
    /// Keyed by the pseudonym of the user; empty for texts without a user.
    permits: WaitingSemaphore<String>,
    observations: Mutex<Observations>,
}

#[derive(Clone, Debug, Default)]
struct Observations {
    last_failure: Option<LastFailure>,
    last_success_at: Option<Timestamp>,
    probe: Option<ProbeResult>,
}

/// The last failure of the external moderator. Calls that the circuit breaker rejects do not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastFailure {
    pub at: Timestamp,
    pub code: String,
}

/// The result of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeResult {
    pub at: Timestamp,
    pub took: Duration,
    /// The code of the failure, if it failed.
    pub failure: Option<String>,
}

impl ExternalModerator {
    pub fn new(moderator: Option<Box<dyn TextModerator>>, clock: Clock, settings: &config::ModerationConfig) -> Self {
        let breaker = Arc::new(CircuitBreaker::with_defaults(MODERATION));
        let max_calls = settings.max_concurrent_calls;
        let permits = WaitingSemaphore::new(WaitLimits {
            permits: max_calls,
            permits_per_key: (max_calls / 8).max(1),
            waiting: max_calls,
            waiting_per_key: (max_calls / 2).max(1),
            max_wait: settings.timeout,
        });
        Self { moderator, clock, breaker, permits, observations: Mutex::default() }
    }

    pub fn is_configured(&self) -> bool {
        self.moderator.is_some()
    }

    /// Returns the driver's name, or `none`.
    pub fn name(&self) -> &'static str {
        self.moderator.as_ref().map_or("none", |moderator| moderator.name())
    }

    /// Returns the maximum number of concurrent calls.
    pub fn max_calls(&self) -> u32 {
        self.permits.permits()
    }

    /// Returns the circuit breaker, if a moderator is configured.
    pub fn breaker(&self) -> Option<&Arc<CircuitBreaker>> {
        self.is_configured().then_some(&self.breaker)
    }

    pub fn breaker_state(&self) -> BreakerState {
        self.breaker.state()
    }

    pub fn last_failure(&self) -> Option<LastFailure> {
        lock_unpoisoned(&self.observations).last_failure.clone()
    }

    pub fn last_success_at(&self) -> Option<Timestamp> {
        lock_unpoisoned(&self.observations).last_success_at
    }

    /// Moderates a text. Blocks for some seconds at most: for a permit, and for each part of a long text.
    ///
    /// Fails with code `NO_PERMIT` if too many texts are being moderated.
    pub fn moderate(
        &self,
        content_type: ContentType,
        text: &str,
        account: Option<&str>,
    ) -> Result<ModerationResult, Failure> {
        let Some(moderator) = &self.moderator else {
            return Err(Failure::new(FailureKind::Misconfigured, "none", "not_configured"));
        };
        // Before the circuit breaker, because our own limit says nothing about the provider.
        let _permit = self
            .permits
            .acquire(account.unwrap_or_default().to_owned())
            .map_err(|_| Failure::new(FailureKind::Busy, moderator.name(), NO_PERMIT))?;
        self.breaker.run(
            || self.clock.now().0,
            || {
                // Not cancelled when the client disconnects: that would count as a failure of the provider.
                let outcome = uncancellable(|| moderator.judge(scene(content_type), text, account));
                // Inside the breaker, so that calls it rejects are not recorded.
                self.observe(outcome.as_ref().err());
                outcome
            },
        )
    }

    /// Moderates a harmless text without the circuit breaker, unless a probe was made within a minute. Returns `None` if no
    /// moderator is configured.
    pub fn probe(&self) -> Option<ProbeResult> {
        let moderator = self.moderator.as_ref()?;
        let cached = lock_unpoisoned(&self.observations).probe.clone();
        if let Some(probe) = cached.filter(|probe| probe.at.is_within(PROBE_LIFETIME, self.clock.now())) {
            return Some(probe);
        }
        let begun = Instant::now();
        let outcome = moderator.judge(Scene::Prose, HARMLESS_TEXT, None);
        self.observe(outcome.as_ref().err());
        let failure = match outcome {
            Err(failure) => Some(failure.code),
            // A moderator that rejects this text rejects every text.
            Ok(verdict) if verdict.is_refused => Some("refuses_harmless_text".to_owned()),
            Ok(_) => None,
        };
        let probe = ProbeResult { at: self.clock.now(), took: begun.elapsed(), failure };
        lock_unpoisoned(&self.observations).probe = Some(probe.clone());
        Some(probe)
    }

    fn observe(&self, failure: Option<&Failure>) {
        let at = self.clock.now();
        let mut observations = lock_unpoisoned(&self.observations);
        match failure {
            None => observations.last_success_at = Some(at),
            Some(failure) => observations.last_failure = Some(LastFailure { at, code: failure.code.clone() }),
        }
    }
}

/// Returns the pseudonym by which the provider knows the user. It never changes.
pub fn account_of(core: &Core, user: UserId) -> String {
    hex(&core.keys.authenticate(&["moderation account", &user.to_string()])[..16])
}

const fn scene(content_type: ContentType) -> Scene {
    match content_type {
        ContentType::Nickname => Scene::Nickname,
        ContentType::Signature | ContentType::Question => Scene::Prose,
        ContentType::Answer => Scene::ModelOutput,
    }
}
