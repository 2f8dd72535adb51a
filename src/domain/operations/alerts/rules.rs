//! The alert rules.

use std::time::{Duration, Instant};

use super::content::AlertFact;
use crate::{
    config::Config,
    core::Core,
    domain::operations::{
        backups::{BackupFailure, LastBackup},
        health::{BackupState, Health, HealthSnapshot, LedgerState, Recovery},
    },
    error::Error,
    providers::breaker::Outage,
    store,
    types::Timestamp,
};

/// The longest normal delay of the continuous backup.
const MAX_LAG: Duration = Duration::from_mins(1);
/// The same in intervals; the longer one applies.
const MAX_LAG_INTERVALS: u32 = 6;
/// Additional delay before the alert is raised.
const LAG_TOLERANCE: Duration = Duration::from_mins(2);
/// The prefix of the rule of each provider.
pub const PROVIDER_DOWN: &str = "provider_down:";
/// The rule that fires while no health snapshot can be taken, so that no other rule can be evaluated.
pub(super) const HEALTH_UNKNOWN: &str = "condition_unknown";

/// The evaluation of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The stable name, with the provider where there are several: `provider_down:sms`.
    pub rule: String,
    pub is_firing: bool,
    /// The problem, without personal data.
    pub fact: AlertFact,
}

impl Finding {
    fn new(rule: &str, is_firing: bool, fact: AlertFact) -> Self {
        Self { rule: rule.to_owned(), is_firing, fact }
    }
}

/// Evaluates every rule.
pub fn evaluate(health: &Health, snapshot: &HealthSnapshot) -> Vec<Finding> {
    let config = &health.core.config;
    let mut findings = providers_down(health, snapshot);
    findings.extend([
        payments_in_review(snapshot),
        ledger_mismatch(snapshot),
        ledger_repaired(snapshot),
        payment_mismatch(snapshot),
        database_damaged(snapshot),
        finding_of(HEALTH_UNKNOWN, None),
        disk_low(config, snapshot),
        backup_old(config, snapshot),
    ]);
    findings.extend(backup_upload_failed(config, snapshot));
    findings.extend(backup_behind(health));
    findings.extend(certificate_expiring(health, snapshot.at));
    findings.push(code_budget(config, snapshot));
    findings
}

/// Returns the finding for a failed health snapshot. Only damage calls for a restore.
pub(super) fn unreadable(core: &Core, error: &Error) -> Finding {
    let cause = error.describe();
    if store::is_damage(error) || !core.store.has_original_files() {
        damage(true, Some(cause))
    } else {
        Finding::new(HEALTH_UNKNOWN, true, AlertFact::ConditionUnknown { cause })
    }
}

/// Adds advice that is slow to find. Only messages that are sent or shown get it.
pub fn with_advice(core: &Core, fact: AlertFact) -> AlertFact {
    match fact {
        AlertFact::DatabaseDamaged { fault, .. } => {
            AlertFact::DatabaseDamaged { fault, recovery: Some(Recovery::find(core)) }
        }
        fact => fact,
    }
}

fn providers_down(health: &Health, snapshot: &HealthSnapshot) -> Vec<Finding> {
    let finding = |(name, outage): (&str, Option<Outage>)| {
        let (is_firing, provider) = (outage.is_some(), name.to_owned());
        let fact = match outage {
            Some(Outage::Misconfigured(code)) => AlertFact::ProviderRejects { provider, code },
            _ => AlertFact::ProviderPaused { provider },
        };
        Finding::new(&format!("{PROVIDER_DOWN}{name}"), is_firing, fact)
    };
    health.outages(snapshot).into_iter().map(finding).collect()
}

fn payments_in_review(snapshot: &HealthSnapshot) -> Finding {
    let payments = snapshot.payments_in_review;
    Finding::new("payments_in_review", payments > 0, AlertFact::PaymentsInReview { payments })
}

fn ledger_mismatch(snapshot: &HealthSnapshot) -> Finding {
    let discrepancies = snapshot.ledger.map_or(0, |verification| verification.discrepancies);
    let fact = AlertFact::LedgerMismatch { discrepancies, suspended: snapshot.accounts_suspended };
    Finding::new("ledger_mismatch", snapshot.ledger_state() == LedgerState::Inconsistent, fact)
}

/// Fires until the next verification repairs nothing.
fn ledger_repaired(snapshot: &HealthSnapshot) -> Finding {
    let accounts = snapshot.ledger.map_or(0, |verification| verification.repaired);
    Finding::new("ledger_repaired", accounts > 0, AlertFact::LedgerRepaired { accounts })
}

fn payment_mismatch(snapshot: &HealthSnapshot) -> Finding {
    let differences = snapshot.payment_differences;
    Finding::new("payment_mismatch", differences > 0, AlertFact::PaymentMismatch { differences })
}

fn database_damaged(snapshot: &HealthSnapshot) -> Finding {
    damage(snapshot.integrity.is_damaged(), snapshot.integrity.fault().map(ToOwned::to_owned))
}

fn damage(is_damaged: bool, fault: Option<String>) -> Finding {
    Finding::new("database_damaged", is_damaged, AlertFact::DatabaseDamaged { fault, recovery: None })
}

fn disk_low(config: &Config, snapshot: &HealthSnapshot) -> Finding {
    let fact = AlertFact::DiskLow { percent: snapshot.disk_free_percent(), mebibytes: snapshot.disk_free >> 20 };
    Finding::new("disk_low", snapshot.is_disk_low(config), fact)
}

fn backup_old(config: &Config, snapshot: &HealthSnapshot) -> Finding {
    let state = snapshot.backup_state(config);
    let last = snapshot.backups.last.as_ref().map(LastBackup::at);
    let fact = match (state, &snapshot.backups.failure) {
        (BackupState::Failed, Some(failure)) => AlertFact::BackupFailed { code: failure.code.clone(), last },
        _ => AlertFact::BackupOverdue { last },
    };
    Finding::new("backup_old", matches!(state, BackupState::Old | BackupState::Failed), fact)
}

/// Returns nothing if no bucket is configured.
fn backup_upload_failed(config: &Config, snapshot: &HealthSnapshot) -> Option<Finding> {
    config.backup.s3_endpoint.as_ref()?;
    let failed = |failure: &BackupFailure| AlertFact::BackupUploadFailed { cause: failure.detail.clone() };
    Some(finding_of("backup_upload_failed", snapshot.offsite.failure.as_ref().map(failed)))
}

/// Returns nothing without continuous backup. A lag of six intervals is more than a failed shipment.
fn backup_behind(health: &Health) -> Vec<Finding> {
    let config = &health.core.config;
    if !config.has_continuous_backup() {
        return Vec::new();
    }
    let (status, now) = (health.follow.status(), Instant::now());
    let lag = status.lag(now);
    let most = MAX_LAG.max(config.backup.follow * MAX_LAG_INTERVALS) + LAG_TOLERANCE;
    let behind = AlertFact::BackupBehind { seconds: lag.as_secs(), cause: status.failure };
    let superseded = status
        .superseded_by
        .map(|by| AlertFact::BackupSuperseded { machine: by.claim.machine, since: Timestamp(by.claim.at) });
    vec![
        Finding::new("backup_behind", lag > most && superseded.is_none(), behind),
        finding_of("backup_superseded", superseded),
    ]
}

/// Returns the finding of a rule that has nothing to say unless it fires.
fn finding_of(rule: &str, fact: Option<AlertFact>) -> Finding {
    Finding::new(rule, fact.is_some(), fact.unwrap_or(AlertFact::NoProblem {}))
}

/// Evaluates the served certificate: the files may already hold a renewed one that cannot be loaded.
fn certificate_expiring(health: &Health, now: Timestamp) -> Option<Finding> {
    let validity = health.certificate_validity()?;
    let fact = AlertFact::CertificateExpiring { until: validity.until };
    Some(Finding::new("certificate_expiring", validity.ends_soon(now), fact))
}

fn code_budget(config: &Config, snapshot: &HealthSnapshot) -> Finding {
    let (sent, budget) = (snapshot.codes_sent, u64::from(config.auth.sends_per_day));
    let fact = AlertFact::CodeBudget { sent, budget };
    Finding::new("code_budget", budget > 0 && sent >= budget.div_ceil(2), fact)
}
