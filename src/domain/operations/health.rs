//! The health of the installation, for metrics, readiness, alerts and `yarrow doctor`.

use std::sync::Arc;

use crate::{
    certificate::{self, CertificateValidity},
    config::Config,
    core::Core,
    domain::{
        identity::codes,
        moderation::{
            external_moderator::MODERATION,
            policy::{self, Service},
        },
        money::{
            ledger::verification,
            payments::{bills, orders, report},
        },
        operations::{
            backups::{self, BackupStatus, follow::FollowMonitor},
            facts::facts,
            integrity::{IntegrityChecker, IntegrityStatus},
            job_runs::JobBoard,
        },
    },
    error::Result,
    providers::breaker::{CircuitBreaker, Outage},
    store::files::disk_space,
    types::{Timestamp, named_enum},
};

/// The sources of health information beside the database.
pub struct Health {
    pub core: Core,
    pub integrity: Arc<IntegrityChecker>,
    /// The circuit breakers of the configured providers.
    pub breakers: Vec<Arc<CircuitBreaker>>,
    /// The certificate that this process serves.
    pub served_certificate: Arc<certificate::ServedValidity>,
    /// The background jobs of this process.
    pub jobs: Arc<JobBoard>,
    /// Continuous backup of this process.
    pub follow: Arc<FollowMonitor>,
}

impl Health {
    /// Returns the configured providers, each with its outage if it has one. An external moderator that is switched off
    /// has none: it gets no calls, so its recovery would go unseen.
    pub fn outages(&self, snapshot: &HealthSnapshot) -> Vec<(&'static str, Option<Outage>)> {
        let is_used = |name: &str| name != MODERATION || snapshot.moderated_by == Service::External;
        let outage = |breaker: &CircuitBreaker| breaker.outage().filter(|_| is_used(breaker.provider()));
        self.breakers.iter().map(|breaker| (breaker.provider(), outage(breaker))).collect()
    }

    /// Returns the validity of the served certificate; in a process that serves none, of the configured files.
    pub fn certificate_validity(&self) -> Option<CertificateValidity> {
        self.served_certificate.validity().or_else(|| certificate::validity(&self.core.config).ok().flatten())
    }
}

/// A snapshot of the installation's health.
#[derive(Clone, Debug)]
pub struct HealthSnapshot {
    pub at: Timestamp,
    /// Bytes of the database and its write-ahead log.
    pub database_bytes: u64,
    /// Free bytes on the disk of the data directory.
    pub disk_free: u64,
    pub disk_total: u64,
    /// The last verification of the ledger.
    pub ledger: Option<verification::Verification>,
    /// Accounts suspended because they disagree with their ledger entries.
    pub accounts_suspended: i64,
    pub integrity: IntegrityStatus,
    pub backups: BackupStatus,
    pub offsite: BackupStatus,
    /// The service that decides about texts.
    pub moderated_by: Service,
    /// Orders that need a decision by an operator.
    pub payments_in_review: i64,
    /// Differences between payments and ledger in the last daily report, and between orders and recent bills.
    pub payment_differences: u64,
    /// Codes sent in the last 24 hours.
    pub codes_sent: u64,
}

named_enum! {
    /// The state of the ledger.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum LedgerState {
        Consistent = "consistent",
        Inconsistent = "inconsistent",
        /// It has not been verified yet.
        Unverified = "unverified",
    }
}

named_enum! {
    /// The state of the backups.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum BackupState {
        Current = "current",
        /// The last backup is older than configured.
        Old = "old",
        /// The last attempt failed.
        Failed = "failed",
        /// No backup was made yet.
        None = "none",
        /// Scheduled backups are switched off.
        Off = "off",
    }
}

impl HealthSnapshot {
    /// Collects a snapshot with a few point queries and one file system call.
    ///
    /// # Errors
    /// Storage errors.
    pub fn collect(health: &Health) -> Result<Self> {
        let store = &health.core.store;
        let (disk_free, disk_total) = disk_space(health.core.config.data_dir())?;
        store.read(|tx| {
            Ok(Self {
                at: tx.now,
                database_bytes: store.size()?,
                disk_free,
                disk_total,
                ledger: verification::last_in(tx)?,
                accounts_suspended: verification::suspended_in(tx)?,
                integrity: health.integrity.status_in(tx)?,
                backups: backups::status_in(tx)?,
                offsite: backups::offsite::status_in(tx)?,
                moderated_by: policy::current_in(tx)?.service,
                payments_in_review: orders::in_review_in(tx)?,
                payment_differences: report::last_in(tx)?.map_or(0, |last| last.differences)
                    + bills::recent_differences_in(tx)?,
                codes_sent: codes::count_recent_sends_in(tx, &health.core.config.auth)?.into(),
            })
        })
    }

    pub fn ledger_state(&self) -> LedgerState {
        match self.ledger {
            _ if self.accounts_suspended > 0 => LedgerState::Inconsistent,
            None => LedgerState::Unverified,
            Some(verification) if verification.discrepancies > 0 => LedgerState::Inconsistent,
            Some(_) => LedgerState::Consistent,
        }
    }

    pub fn backup_state(&self, config: &Config) -> BackupState {
        let rules = &config.backup;
        let max_age = rules.every.saturating_mul(rules.missed.max(1));
        match &self.backups {
            _ if rules.every.is_zero() => BackupState::Off,
            BackupStatus { failure: Some(_), .. } => BackupState::Failed,
            BackupStatus { last: None, .. } => BackupState::None,
            BackupStatus { last: Some(last), .. } if self.at > last.at().plus(max_age) => BackupState::Old,
            BackupStatus { .. } => BackupState::Current,
        }
    }

    /// Returns true if the free share of the disk is below the alert's threshold.
    pub fn is_disk_low(&self, config: &Config) -> bool {
        self.disk_free_percent() < u64::from(config.alerts.disk_free_percent)
    }

    pub fn disk_free_percent(&self) -> u64 {
        free_percent(self.disk_free, self.disk_total)
    }
}

/// Returns the free share of a disk in percent.
pub fn free_percent(free: u64, total: u64) -> u64 {
    free.saturating_mul(100).checked_div(total).unwrap_or(100)
}

facts! {
    /// The way to replace a damaged database.
    pub enum Recovery {
        SoundBackup { name: String, at: Timestamp } =
            "The newest sound backup is of {at}: stop the service, then run `yarrow restore {name}`",
            "最新的完好备份为 {at}：请停止服务，再运行 `yarrow restore {name}`";
        NoSoundBackup {} =
            "There is no sound backup on this machine. See `yarrow restore --help` to restore one from elsewhere",
            "本机没有完好的备份；从别处恢复见 `yarrow restore --help`";
    }
}

impl Recovery {
    /// Reads backups until it finds a sound one.
    pub fn find(core: &Core) -> Self {
        let now = core.clock.now();
        let listed = backups::list(&core.config, now).unwrap_or_default();
        match backups::newest_sound(&listed, now) {
            Some(backup) => Self::SoundBackup { name: backup.name.clone(), at: backup.at },
            None => Self::NoSoundBackup {},
        }
    }
}
