//! The state of moderation: its switches, and the health of both services.

use std::time::{Duration, Instant};

use super::{
    Moderation,
    engine::ContentType,
    external::{HARMLESS, NotedFailure, Probe},
    policy::{self, Policy},
};
use crate::{
    domain::moderation::words::{self, Statistics},
    error::Result,
    providers::breaker::BreakerState,
    types::Timestamp,
};

/// The switches, and the last outcome of each service.
#[derive(Clone, Debug)]
pub struct Status {
    pub policy: Policy,
    pub words: Statistics,
    /// The version and memory of this process's active list.
    pub version_in_force: i64,
    pub memory_bytes: usize,
    pub compiled_in: Duration,
    pub provider: &'static str,
    pub is_configured: bool,
    pub breaker: BreakerState,
    pub last_failure: Option<NotedFailure>,
    pub last_answer_at: Option<Timestamp>,
    pub shadow_share: f64,
}

/// The health of both services.
#[derive(Clone, Debug)]
pub struct Health {
    /// The list of this process is the stored one, and matches.
    pub local_is_current: bool,
    pub local_took: Duration,
    /// `None` if no external service is configured.
    pub external: Option<Probe>,
    /// While it is open the outside service is not asked about any text, whatever a probe says.
    pub breaker: BreakerState,
}

impl Health {
    pub fn is_healthy(&self) -> bool {
        self.local_is_current && self.external_is_healthy() != Some(false)
    }

    /// Returns true if the external service is reachable; `None` if none is configured.
    pub fn external_is_healthy(&self) -> Option<bool> {
        let is_open = matches!(self.breaker, BreakerState::Open { .. });
        self.external.as_ref().map(|probe| probe.failure.is_none() && !is_open)
    }
}

pub fn status(moderation: &Moderation) -> Result<Status> {
    let in_force = moderation.screen.in_force()?;
    let external = &moderation.external;
    Ok(Status {
        policy: policy::current(&moderation.core)?,
        words: moderation.core.store.read(words::statistics_in)?,
        version_in_force: in_force.version(),
        memory_bytes: in_force.memory_bytes(),
        compiled_in: in_force.compiled_in(),
        provider: external.name(),
        is_configured: external.is_configured(),
        breaker: external.condition(),
        last_failure: external.last_failure(),
        last_answer_at: external.last_answer_at(),
        shadow_share: moderation.shadow.share(),
    })
}

/// Probes both services. Blocks on the outside one, at most once a minute.
pub fn health(moderation: &Moderation) -> Result<Health> {
    moderation.screen.catch_up()?;
    let begun = Instant::now();
    let in_force = moderation.screen.in_force()?;
    in_force.check(ContentType::Question, HARMLESS);
    let local_took = begun.elapsed();
    let local_is_current = in_force.version() >= moderation.core.store.read(words::version_in)?;
    let external = moderation.external.probe();
    Ok(Health { local_is_current, local_took, external, breaker: moderation.external.condition() })
}
