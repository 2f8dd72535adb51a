//! The rules, and what is said of one that holds.

use crate::{
    app::App,
    domain::{
        moderation::{external::MODERATION, policy::Service},
        operations::health::{self, BackupState, Condition, LedgerState},
    },
    error::Error,
    store,
    types::{Timestamp, counted},
};

const DAMAGED: &str = "database_damaged";
/// The rule that holds while the condition cannot be read, and so nothing is known of the others.
pub(super) const UNKNOWN: &str = "condition_unknown";

/// A rule, and whether it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The stable name, with the provider where there are several: `provider_down:sms`.
    pub rule: String,
    pub is_firing: bool,
    /// What is the matter, for people. No personal data.
    pub detail: String,
}

impl Finding {
    fn new(rule: &str, is_firing: bool, detail: String) -> Self {
        Self { rule: rule.to_owned(), is_firing, detail }
    }
}

/// Every rule, and whether it holds now.
pub fn evaluate(app: &App, condition: &Condition) -> Vec<Finding> {
    let mut findings = providers_down(app, condition);
    findings.extend([
        payments_in_review(condition),
        ledger_mismatch(condition),
        database_damaged(condition),
        Finding::new(UNKNOWN, false, String::new()),
        disk_low(app, condition),
        backup_old(app, condition),
    ]);
    findings.extend(backup_upload_failed(app, condition));
    findings.extend(certificate_expiring(app, condition.at));
    findings.push(code_budget(app, condition));
    findings
}

/// What is known when the condition cannot be read. Only damage is a reason to put a backup in the database's place.
pub(super) fn unreadable(app: &App, error: &Error) -> Finding {
    let why = error.explained();
    let (rule, detail) = if store::is_damage(error) || !app.store.has_original_files() {
        (DAMAGED, health::damage(Some(&why)))
    } else {
        (UNKNOWN, format!("How the installation is cannot be read ({why}); see `yarrow doctor`."))
    };
    Finding::new(rule, true, detail)
}

/// What is said of a rule that holds, with what takes time to find out: it is asked for when somebody is told.
pub fn spelled_out(app: &App, rule: &str, detail: String) -> String {
    if rule == DAMAGED { format!("{detail} {}", health::way_out(app)) } else { detail }
}

/// A service that no longer decides about texts is not asked, so that nobody would see that it is back.
fn providers_down(app: &App, condition: &Condition) -> Vec<Finding> {
    let is_used = |name: &str| name != MODERATION || condition.moderated_by == Service::External;
    let finding = |name: &str, is_open| {
        let detail = format!("The provider for {name} has failed several times in a row; it is not called.");
        Finding::new(&format!("provider_down:{name}"), is_open, detail)
    };
    app.breakers()
        .into_iter()
        .map(|breaker| finding(breaker.provider(), breaker.is_open() && is_used(breaker.provider())))
        .collect()
}

fn payments_in_review(condition: &Condition) -> Finding {
    let review = condition.payments_in_review;
    let payments = counted(review, "payment needs", "payments need");
    let detail = format!("{payments} a decision; see `yarrow payments list --state review`.");
    Finding::new("payments_in_review", review > 0, detail)
}

fn ledger_mismatch(condition: &Condition) -> Finding {
    let discrepancies = condition.ledger.map_or(0, |verification| verification.discrepancies);
    let closed = condition.accounts_suspended;
    let discrepancies = counted(discrepancies, "discrepancy", "discrepancies");
    let closed = counted(closed, "account is closed", "accounts are closed");
    let detail = format!("The ledger has {discrepancies}, {closed}; see `yarrow ledger verify`.");
    Finding::new("ledger_mismatch", condition.ledger_state() == LedgerState::Inconsistent, detail)
}

fn database_damaged(condition: &Condition) -> Finding {
    let (is_damaged, fault) = (condition.integrity.is_damaged(), condition.integrity.fault());
    Finding::new(DAMAGED, is_damaged, health::damage(fault))
}

fn disk_low(app: &App, condition: &Condition) -> Finding {
    let percent = condition.disk_free_percent();
    let detail = format!("{percent} % of the disk are free, which are {} MiB.", condition.disk_free >> 20);
    Finding::new("disk_low", condition.is_disk_low(app), detail)
}

fn backup_old(app: &App, condition: &Condition) -> Finding {
    let state = condition.backup_state(app);
    let is_old = matches!(state, BackupState::Old | BackupState::Failed);
    Finding::new("backup_old", is_old, backup_detail(state, condition))
}

fn backup_detail(state: BackupState, condition: &Condition) -> String {
    let last = condition.backups.last.as_ref().map_or_else(|| "never".to_owned(), |last| last.at().to_string());
    match (state, &condition.backups.failure) {
        (BackupState::Failed, Some(failure)) => {
            format!("The last backup failed ({}); the last good one was made {last}.", failure.code)
        }
        _ => format!("The last backup was made {last}."),
    }
}

/// Nothing where backups stay on this machine.
fn backup_upload_failed(app: &App, condition: &Condition) -> Option<Finding> {
    app.config.backup.s3_endpoint.as_ref()?;
    let failure = condition.offsite.failure.as_ref();
    let why = failure.map_or_else(String::new, |failure| failure.detail.clone());
    let detail = format!("Backups cannot be uploaded: {why}");
    Some(Finding::new("backup_upload_failed", failure.is_some(), detail))
}

/// Whether the certificate that is shown ends soon, whatever a renewal made of the files: it is shown on until they are
/// right again.
fn certificate_expiring(app: &App, now: Timestamp) -> Option<Finding> {
    let validity = app.certificate_validity()?;
    let detail = format!("The certificate that is shown is good until {}; see `yarrow doctor`.", validity.until);
    Some(Finding::new("certificate_expiring", validity.ends_soon(now), detail))
}

fn code_budget(app: &App, condition: &Condition) -> Finding {
    let (sent, budget) = (condition.codes_sent, u64::from(app.config.auth.sends_per_day));
    let detail = format!("{sent} verification codes of a budget of {budget} were sent in 24 hours.");
    Finding::new("code_budget", budget > 0 && sent >= budget.div_ceil(2), detail)
}
