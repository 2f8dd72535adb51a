//! How the installation is, in numbers: what metrics, readiness, alerts and `yarrow doctor` all say the same about.

use crate::{
    app::App,
    domain::{
        identity::codes,
        moderation::policy::{self, Service},
        money::{ledger::verification, payments::orders},
        operations::{backups, integrity},
    },
    error::Result,
    store::files::{database_size, disk_space},
    types::{Timestamp, named},
};

/// The installation at one moment.
#[derive(Clone, Debug)]
pub struct Condition {
    pub at: Timestamp,
    /// Bytes of the database with its log.
    pub database_bytes: u64,
    /// Bytes free on the disk of the data directory, and of how many.
    pub disk_free: u64,
    pub disk_total: u64,
    /// The last verification of the ledger, if there was one.
    pub ledger: Option<verification::Verification>,
    /// Accounts that are closed because they disagree with their entries.
    pub accounts_suspended: i64,
    /// What is known of the database file.
    pub integrity: integrity::Standing,
    pub backups: backups::Standing,
    pub offsite: backups::Standing,
    /// Who decides about texts.
    pub moderated_by: Service,
    /// Orders that a person must look at.
    pub payments_in_review: i64,
    /// Codes sent in the last 24 hours.
    pub codes_sent: u64,
}

named! {
    /// What is known of the ledger.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum LedgerState {
        Consistent = "consistent",
        Inconsistent = "inconsistent",
        /// It has not been verified yet.
        Unverified = "unverified",
    }
}

named! {
    /// What is known of the backups.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum BackupState {
        Current = "current",
        /// The last one is older than it should be.
        Old = "old",
        /// The last attempt failed.
        Failed = "failed",
        /// There has been no time for one yet.
        None = "none",
        /// None are made without somebody asking.
        Off = "off",
    }
}

impl Condition {
    pub fn ledger_state(&self) -> LedgerState {
        match self.ledger {
            _ if self.accounts_suspended > 0 => LedgerState::Inconsistent,
            None => LedgerState::Unverified,
            Some(verification) if verification.discrepancies > 0 => LedgerState::Inconsistent,
            Some(_) => LedgerState::Consistent,
        }
    }

    /// How the backups are, by the rules of this configuration.
    pub fn backup_state(&self, app: &App) -> BackupState {
        let rules = &app.config.backup;
        let oldest_allowed = rules.every.saturating_mul(rules.missed.max(1));
        match &self.backups {
            _ if rules.every.is_zero() => BackupState::Off,
            backups::Standing { failure: Some(_), .. } => BackupState::Failed,
            backups::Standing { last: None, .. } => BackupState::None,
            backups::Standing { last: Some(last), .. } if self.at > last.at().plus(oldest_allowed) => BackupState::Old,
            backups::Standing { .. } => BackupState::Current,
        }
    }

    /// Whether less of the disk is free than what is an alert.
    pub fn is_disk_low(&self, app: &App) -> bool {
        self.disk_free_percent() < u64::from(app.config.alerts.disk_free_percent)
    }

    /// The free share of the disk, in percent.
    pub fn disk_free_percent(&self) -> u64 {
        free_percent(self.disk_free, self.disk_total)
    }
}

/// The free share of a disk, in percent.
pub fn free_percent(free: u64, total: u64) -> u64 {
    free.saturating_mul(100).checked_div(total).unwrap_or(100)
}

/// Looks how the installation is. A handful of point queries and a question to the file system.
///
/// # Errors
/// Storage errors.
pub fn observe(app: &App) -> Result<Condition> {
    let (disk_free, disk_total) = disk_space(&app.config.installation.data_dir.0)?;
    app.store.read(|tx| {
        Ok(Condition {
            at: tx.now,
            database_bytes: database_size(app.store.path()),
            disk_free,
            disk_total,
            ledger: verification::last_in(tx)?,
            accounts_suspended: verification::suspended_in(tx)?,
            integrity: integrity::standing_in(tx, app)?,
            backups: backups::standing_in(tx)?,
            offsite: backups::offsite::standing_in(tx)?,
            moderated_by: policy::current_in(tx)?.service,
            payments_in_review: orders::in_review_in(tx)?,
            codes_sent: codes::spent_in(tx)?,
        })
    })
}

/// What somebody is told of a damaged database.
pub fn damage(fault: Option<&str>) -> String {
    format!("The database is damaged ({}).", fault.unwrap_or("a request met it"))
}

/// What there is to put in the place of a damaged database. Reads backups until one is sound.
pub fn way_out(app: &App) -> String {
    let listed = backups::list(&app.config).unwrap_or_default();
    match backups::newest_sound(&listed, app.clock.now()) {
        Some(sound) => format!(
            "The newest backup that was found sound is of {}: stop the service, then `yarrow restore {}`.",
            sound.at, sound.name
        ),
        None => "There is no sound backup here; see `yarrow restore --help` if there is one elsewhere.".to_owned(),
    }
}
