//! The status of moderation, and a health check of both services.

use std::time::{Duration, Instant};

use super::{
    engine::ContentType,
    external_moderator::{HARMLESS_TEXT, LastFailure, ProbeResult},
    policy::{self, Policy},
    service::Moderation,
};
use crate::{
    domain::moderation::words::{self, WordListStatistics},
    error::Result,
    providers::breaker::BreakerState,
    types::Timestamp,
};

/// The policy, the word list and the state of the external moderator.
#[derive(Clone, Debug)]
pub struct ModerationOverview {
    pub policy: Policy,
    pub words: WordListStatistics,
    /// The version of the active word list in this process, and its memory.
    pub active_version: i64,
    pub memory_bytes: usize,
    pub compiled_in: Duration,
    pub provider: &'static str,
    pub is_configured: bool,
    pub breaker: BreakerState,
    pub last_failure: Option<LastFailure>,
    pub last_success_at: Option<Timestamp>,
    pub sample_rate: f64,
}

/// The result of a health check.
#[derive(Clone, Debug)]
pub struct ModerationHealth {
    /// The active word list is the stored one, and a check ran.
    pub local_is_current: bool,
    pub local_took: Duration,
    /// `None` if no external moderator is configured.
    pub external: Option<ProbeResult>,
    /// While it is open, no text reaches the external moderator, even if the probe succeeded.
    pub breaker: BreakerState,
}

impl ModerationHealth {
    pub fn is_healthy(&self) -> bool {
        self.local_is_current && self.external_is_healthy() != Some(false)
    }

    /// Returns whether texts reach the external moderator; `None` if none is configured.
    pub fn external_is_healthy(&self) -> Option<bool> {
        let is_open = matches!(self.breaker, BreakerState::Open { .. });
        self.external.as_ref().map(|probe| probe.failure.is_none() && !is_open)
    }
}

/// Returns the status of moderation.
pub fn current(moderation: &Moderation) -> Result<ModerationOverview> {
    let active = moderation.word_list.get()?;
    let external = &moderation.external;
    Ok(ModerationOverview {
        policy: policy::current(&moderation.core)?,
        words: moderation.core.store.read(words::statistics_in)?,
        active_version: active.version(),
        memory_bytes: active.memory_bytes(),
        compiled_in: active.compiled_in(),
        provider: external.name(),
        is_configured: external.is_configured(),
        breaker: external.breaker_state(),
        last_failure: external.last_failure(),
        last_success_at: external.last_success_at(),
        sample_rate: moderation.shadow_sampler.sample_rate(),
    })
}

/// Checks both services. Blocks on the external moderator, at most once a minute.
pub fn check_health(moderation: &Moderation) -> Result<ModerationHealth> {
    moderation.word_list.refresh()?;
    let begun = Instant::now();
    let active = moderation.word_list.get()?;
    active.check(ContentType::Question, HARMLESS_TEXT);
    let local_took = begun.elapsed();
    let local_is_current = active.version() >= moderation.core.store.read(words::version_in)?;
    let external = moderation.external.probe();
    Ok(ModerationHealth { local_is_current, local_took, external, breaker: moderation.external.breaker_state() })
}
