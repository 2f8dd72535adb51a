//! The alert rules and their texts.

use std::time::{Duration, Instant};

use crate::{
    config::Config,
    core::Core,
    domain::operations::health::{self, BackupState, Health, HealthSnapshot, LedgerState},
    error::Error,
    providers::breaker::Outage,
    store,
    types::{Timestamp, pluralize},
};

/// The longest normal delay of the continuous backup.
const MAX_LAG: Duration = Duration::from_mins(1);
/// The same in intervals; the longer one applies.
const MAX_LAG_INTERVALS: u32 = 6;
/// Additional delay before the alert is raised.
const LAG_TOLERANCE: Duration = Duration::from_mins(2);
/// The prefix of the rule of each provider.
pub const PROVIDER_DOWN: &str = "provider_down:";
const DATABASE_DAMAGED: &str = "database_damaged";
/// The rule that fires while no health snapshot can be taken, so that no other rule can be evaluated.
pub(super) const HEALTH_UNKNOWN: &str = "condition_unknown";

/// The evaluation of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The stable name, with the provider where there are several: `provider_down:sms`.
    pub rule: String,
    pub is_firing: bool,
    /// A description of the problem, without personal data.
    pub detail: String,
}

impl Finding {
    fn new(rule: &str, is_firing: bool, detail: String) -> Self {
        Self { rule: rule.to_owned(), is_firing, detail }
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
        Finding::new(HEALTH_UNKNOWN, false, String::new()),
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
    let (rule, detail) = if store::is_damage(error) || !core.store.has_original_files() {
        (DATABASE_DAMAGED, health::damage_detail(Some(&cause)))
    } else {
        (HEALTH_UNKNOWN, format!("The health of the installation cannot be read ({cause}). Run `yarrow doctor`."))
    };
    Finding::new(rule, true, detail)
}

/// Adds advice that is slow to compute. Only messages that are sent or shown get it.
pub fn with_advice(core: &Core, rule: &str, detail: String) -> String {
    if rule == DATABASE_DAMAGED { format!("{detail} {}", health::recovery_advice(core)) } else { detail }
}

fn providers_down(health: &Health, snapshot: &HealthSnapshot) -> Vec<Finding> {
    let finding = |name: &str, outage: Option<Outage>| {
        let is_firing = outage.is_some();
        let detail = match outage {
            Some(Outage::Misconfigured(code)) => {
                format!("The {name} provider rejects all calls ({code}). Check its account and its settings.")
            }
            _ => format!("Calls to the {name} provider are paused because several failed in a row."),
        };
        Finding::new(&format!("{PROVIDER_DOWN}{name}"), is_firing, detail)
    };
    let outages = health.outages(snapshot);
    outages.into_iter().map(|(name, outage)| finding(name, outage)).collect()
}

fn payments_in_review(snapshot: &HealthSnapshot) -> Finding {
    let review = snapshot.payments_in_review;
    let payments = pluralize(review, "payment needs", "payments need");
    let detail = format!("{payments} a decision; see `yarrow payments list --state review`.");
    Finding::new("payments_in_review", review > 0, detail)
}

fn ledger_mismatch(snapshot: &HealthSnapshot) -> Finding {
    let discrepancies = snapshot.ledger.map_or(0, |verification| verification.discrepancies);
    let discrepancies = pluralize(discrepancies, "discrepancy", "discrepancies");
    let suspended = pluralize(snapshot.accounts_suspended, "account is suspended", "accounts are suspended");
    let detail = format!("The ledger has {discrepancies}, and {suspended}. Run `yarrow ledger verify`.");
    Finding::new("ledger_mismatch", snapshot.ledger_state() == LedgerState::Inconsistent, detail)
}

/// Fires until the next verification repairs nothing.
fn ledger_repaired(snapshot: &HealthSnapshot) -> Finding {
    let repaired = snapshot.ledger.map_or(0, |verification| verification.repaired);
    let accounts = pluralize(repaired, "account", "accounts");
    let detail = format!(
        "The daily verification recomputed the balance of {accounts} from the ledger. Run `yarrow users show` for the changes."
    );
    Finding::new("ledger_repaired", repaired > 0, detail)
}

fn payment_mismatch(snapshot: &HealthSnapshot) -> Finding {
    let found = snapshot.payment_differences;
    let differences = pluralize(found, "difference", "differences");
    let detail = format!(
        "Payments, ledger and bills have {differences}. Run `yarrow payments report` and `yarrow payments bill`."
    );
    Finding::new("payment_mismatch", found > 0, detail)
}

fn database_damaged(snapshot: &HealthSnapshot) -> Finding {
    let (is_damaged, fault) = (snapshot.integrity.is_damaged(), snapshot.integrity.fault());
    Finding::new(DATABASE_DAMAGED, is_damaged, health::damage_detail(fault))
}

fn disk_low(config: &Config, snapshot: &HealthSnapshot) -> Finding {
    let percent = snapshot.disk_free_percent();
    let detail = format!(
        "Only {percent} % ({} MiB) of the disk of the data directory is free. Free some space.",
        snapshot.disk_free >> 20
    );
    Finding::new("disk_low", snapshot.is_disk_low(config), detail)
}

fn backup_old(config: &Config, snapshot: &HealthSnapshot) -> Finding {
    let state = snapshot.backup_state(config);
    let is_old = matches!(state, BackupState::Old | BackupState::Failed);
    Finding::new("backup_old", is_old, backup_detail(state, snapshot))
}

fn backup_detail(state: BackupState, snapshot: &HealthSnapshot) -> String {
    let last = snapshot.backups.last.as_ref().map_or_else(|| "never".to_owned(), |last| last.at().to_string());
    match (state, &snapshot.backups.failure) {
        (BackupState::Failed, Some(failure)) => {
            format!("The last backup failed ({}). The last successful backup: {last}.", failure.code)
        }
        _ => format!("Backups are overdue. The last one: {last}."),
    }
}

/// Returns nothing if no bucket is configured.
fn backup_upload_failed(config: &Config, snapshot: &HealthSnapshot) -> Option<Finding> {
    config.backup.s3_endpoint.as_ref()?;
    let failure = snapshot.offsite.failure.as_ref();
    let cause = failure.map_or_else(String::new, |failure| failure.detail.clone());
    Some(Finding::new("backup_upload_failed", failure.is_some(), format!("Backups cannot be uploaded: {cause}")))
}

/// Returns nothing without continuous backup. A lag of six intervals is more than a failed shipment.
fn backup_behind(health: &Health) -> Vec<Finding> {
    let config = &health.core.config;
    if !config.has_continuous_backup() {
        return Vec::new();
    }
    let (status, now) = (health.follow.status(), Instant::now());
    let lag = status.lag(now);
    let is_superseded = status.superseded_by.is_some();
    let most = MAX_LAG.max(config.backup.follow * MAX_LAG_INTERVALS) + LAG_TOLERANCE;
    let cause = status.failure.map_or_else(String::new, |failure| format!(": {failure}"));
    let behind = format!("The continuous backup is {} s behind{cause}.", lag.as_secs());
    let superseded = status.superseded_by.map_or_else(String::new, |by| {
        let since = Timestamp(by.claim.at);
        format!("Machine {} took over at {since}, and this one stores nothing. Run `yarrow backup take-over` here, or switch this one off.", by.claim.machine)
    });
    vec![
        Finding::new("backup_behind", lag > most && !is_superseded, behind),
        Finding::new("backup_superseded", is_superseded, superseded),
    ]
}

/// Evaluates the served certificate: the files may already hold a renewed one that cannot be loaded.
fn certificate_expiring(health: &Health, now: Timestamp) -> Option<Finding> {
    let validity = health.certificate_validity()?;
    let detail = format!("The TLS certificate expires at {}. Run `yarrow doctor`.", validity.until);
    Some(Finding::new("certificate_expiring", validity.ends_soon(now), detail))
}

fn code_budget(config: &Config, snapshot: &HealthSnapshot) -> Finding {
    let (sent, budget) = (snapshot.codes_sent, u64::from(config.auth.sends_per_day));
    let detail = format!("{sent} of at most {budget} verification codes were sent in the last 24 hours.");
    Finding::new("code_budget", budget > 0 && sent >= budget.div_ceil(2), detail)
}
