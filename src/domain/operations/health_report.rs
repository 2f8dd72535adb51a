//! The health of the installation in one report: checks, alerts, backups, ledger, providers and background jobs.

use std::sync::Arc;

use super::{
    alerts::{self, ActiveAlerts, ResolvedAlert},
    backups::summary::{BackupSummary, summarize},
    doctor::{self, DoctorReport},
    health::{BackupState, Health, HealthSnapshot},
    job_runs::{JobName, JobStatus},
};
use crate::{
    domain::money::ledger::Verification,
    error::Result,
    providers::breaker::{BreakerState, CircuitBreaker, Outage},
    types::{Timestamp, named_enum},
};

/// Backups in the report.
const BACKUPS: usize = 10;

named_enum! {
    /// The state of a provider.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ProviderState {
        Working = "working",
        /// Calls are paused after several failures.
        Paused = "paused",
        /// A single call tests whether it works again.
        Probing = "probing",
        /// It rejects all calls.
        Misconfigured = "misconfigured",
    }
}

/// A configured provider.
#[derive(Clone, Debug)]
pub struct ProviderStatus {
    pub name: &'static str,
    pub state: ProviderState,
    /// Start of the pause.
    pub since: Option<Timestamp>,
    /// The code with which the provider rejects all calls.
    pub failure: Option<String>,
}

/// The health of the installation.
pub struct HealthReport {
    pub snapshot: HealthSnapshot,
    pub alerts: ActiveAlerts,
    /// Newest first.
    pub resolved_alerts: Vec<ResolvedAlert>,
    /// The last report of the doctor that the server made.
    pub doctor: Option<DoctorReport>,
    /// Newest first.
    pub backups: Vec<BackupSummary>,
    pub backup_state: BackupState,
    pub providers: Vec<ProviderStatus>,
    pub jobs: Vec<JobStatus>,
}

impl HealthReport {
    /// Collects the report. Reads the directory of backups, so it may block.
    ///
    /// # Errors
    /// Storage errors.
    pub fn collect(health: &Health) -> Result<Self> {
        let core = &health.core;
        let snapshot = HealthSnapshot::collect(health)?;
        let (alerts, resolved_alerts, doctor) = core
            .store
            .read(|tx| Ok((alerts::active_in(tx)?, alerts::resolved_in(tx)?, doctor::last_report_in(tx)?)))?;
        let mut jobs = health.jobs.statuses();
        for job in &mut jobs {
            job.next_at = job.next_at.map(|polls_at| next_due(health, &snapshot, job.name, polls_at));
        }
        Ok(Self {
            backup_state: snapshot.backup_state(&core.config),
            // An unreadable directory is reported as the failure of the last backup.
            backups: summarize(&core.config, &snapshot.offsite, snapshot.at, BACKUPS).unwrap_or_default(),
            alerts,
            resolved_alerts,
            doctor,
            providers: health.breakers.iter().map(provider_status).collect(),
            jobs,
            snapshot,
        })
    }
}

/// Returns the time at which a job that polls will have something to do.
fn next_due(health: &Health, snapshot: &HealthSnapshot, job: JobName, polls_at: Timestamp) -> Timestamp {
    let config = &health.core.config;
    let due = match job {
        JobName::Backup => snapshot.backups.last.as_ref().map(|last| last.at().plus(config.backup.every)),
        JobName::IntegrityCheck => {
            snapshot.integrity.last.as_ref().map(|last| last.at().plus(config.database.check_every))
        }
        JobName::LedgerVerification => snapshot.ledger.map(Verification::next_due),
        _ => None,
    };
    due.map_or(polls_at, |due| due.max(polls_at))
}

impl From<BreakerState> for ProviderState {
    fn from(state: BreakerState) -> Self {
        match state {
            BreakerState::Closed { .. } => Self::Working,
            BreakerState::Open { probing: true, .. } => Self::Probing,
            BreakerState::Open { probing: false, .. } => Self::Paused,
        }
    }
}

fn provider_status(breaker: &Arc<CircuitBreaker>) -> ProviderStatus {
    let state = breaker.state();
    let since = match state {
        BreakerState::Closed { .. } => None,
        BreakerState::Open { since_millis, .. } => Some(Timestamp(since_millis)),
    };
    let failure = match breaker.outage() {
        Some(Outage::Misconfigured(code)) => Some(code),
        _ => None,
    };
    let state = if failure.is_some() { ProviderState::Misconfigured } else { state.into() };
    ProviderStatus { name: breaker.provider(), state, since, failure }
}
