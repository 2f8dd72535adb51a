//! The external moderation service beside the local list: its circuit breaker, its limit of concurrent calls, and its
//! health.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use super::engine::ContentType;
use crate::{
    clock::Clock,
    concurrency::{lock::lock_unpoisoned, semaphore::Semaphore},
    core::Core,
    providers::{
        Failure, FailureKind,
        breaker::{BreakerState, CircuitBreaker},
        client::uncancellable,
        moderation::{Judgement, Scene, TextModerator},
    },
    types::{Timestamp, UserId, hex},
};

/// A harmless text for probes. Each probe is a billed call, so its result is cached for a minute.
pub(super) const HARMLESS: &str = "今天天气很好";
const PROBE_HOLDS: Duration = Duration::from_mins(1);

/// The external service's name in lists of providers.
pub const MODERATION: &str = "moderation";

/// The outside service, if one is configured.
pub struct External {
    moderator: Option<Box<dyn TextModerator>>,
    clock: Clock,
    breaker: Arc<CircuitBreaker>,
    asking: Semaphore,
    notes: Mutex<Notes>,
}

#[derive(Clone, Debug, Default)]
struct Notes {
    last_failure: Option<NotedFailure>,
    last_answer_at: Option<Timestamp>,
    probe: Option<Probe>,
}

/// The last failure of the service, for operators: not that we did not ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotedFailure {
    pub at: Timestamp,
    pub code: String,
}

/// The result of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    pub at: Timestamp,
    pub took: Duration,
    /// The code of the failure, if it failed.
    pub failure: Option<String>,
}

impl External {
    pub fn new(moderator: Option<Box<dyn TextModerator>>, clock: Clock, calls: u32) -> Self {
        let breaker = Arc::new(CircuitBreaker::with_defaults(MODERATION));
        Self { moderator, clock, breaker, asking: Semaphore::new(calls), notes: Mutex::default() }
    }

    pub fn is_configured(&self) -> bool {
        self.moderator.is_some()
    }

    /// The driver's name, `none` if there is none.
    pub fn name(&self) -> &'static str {
        self.moderator.as_ref().map_or("none", |moderator| moderator.name())
    }

    /// Returns the limit of concurrent calls.
    pub fn calls(&self) -> u32 {
        self.asking.capacity()
    }

    /// Returns the breaker of the service, if one is configured.
    pub fn breaker(&self) -> Option<&Arc<CircuitBreaker>> {
        self.is_configured().then_some(&self.breaker)
    }

    pub fn condition(&self) -> BreakerState {
        self.breaker.state()
    }

    pub fn last_failure(&self) -> Option<NotedFailure> {
        lock_unpoisoned(&self.notes).last_failure.clone()
    }

    pub fn last_answer_at(&self) -> Option<Timestamp> {
        lock_unpoisoned(&self.notes).last_answer_at
    }

    /// Asks about a text. Blocks for some seconds at most, for each piece of a long one.
    pub fn ask(&self, content_type: ContentType, text: &str, account: Option<&str>) -> Result<Judgement, Failure> {
        let Some(moderator) = &self.moderator else {
            return Err(Failure::new(FailureKind::Misconfigured, "none", "not_configured"));
        };
        // Before the breaker: our own load says nothing about the service.
        let _place = self
            .asking
            .try_acquire()
            .map_err(|_| Failure::new(FailureKind::Busy, moderator.name(), "too_many_calls"))?;
        self.breaker.run(
            || self.clock.now().0,
            || {
                // Not cancelled when the client disconnects: that would count as a failure of the service.
                let outcome = uncancellable(|| moderator.judge(scene(content_type), text, account));
                // In here: what the breaker refuses was not asked, and did not fail.
                self.note(outcome.as_ref().err());
                outcome
            },
        )
    }

    /// Asks about a harmless text, past the breaker, unless that was done a moment ago. Nothing without a service.
    pub fn probe(&self) -> Option<Probe> {
        let moderator = self.moderator.as_ref()?;
        let known = lock_unpoisoned(&self.notes).probe.clone();
        if let Some(probe) = known.filter(|probe| probe.at.is_within(PROBE_HOLDS, self.clock.now())) {
            return Some(probe);
        }
        let begun = Instant::now();
        let outcome = moderator.judge(Scene::Prose, HARMLESS, None);
        self.note(outcome.as_ref().err());
        let failure = match outcome {
            Err(failure) => Some(failure.code),
            // A service that refuses a harmless text refuses everything.
            Ok(judged) if judged.is_refused => Some("refuses_harmless_text".to_owned()),
            Ok(_) => None,
        };
        let probe = Probe { at: self.clock.now(), took: begun.elapsed(), failure };
        lock_unpoisoned(&self.notes).probe = Some(probe.clone());
        Some(probe)
    }

    fn note(&self, failure: Option<&Failure>) {
        let at = self.clock.now();
        let mut notes = lock_unpoisoned(&self.notes);
        match failure {
            None => notes.last_answer_at = Some(at),
            Some(failure) => notes.last_failure = Some(NotedFailure { at, code: failure.code.clone() }),
        }
    }
}

/// Returns a stable pseudonym of the user for the provider.
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
