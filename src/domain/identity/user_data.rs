//! Consistency of users' stored data: validation, and repair of unambiguous issues.
//!
//! Validation changes nothing. A repair validates again in its own transaction and repairs what it finds, so that a
//! second run finds nothing. Issues that need a manual decision (two accounts with one number, contradictory ledger
//! entries) are reported and left unchanged.

mod phone_spellings;

use std::sync::Arc;

use self::phone_spellings::{IrregularNumbers, find_owners_in};
use crate::{
    core::Core,
    domain::{
        divination::history,
        identity::users::{self, StoredUser},
        money::ledger::{
            self, Asset, Authority,
            consistency::{AccountConsistency, consistency_in},
            verification,
        },
        operations::{free_space_scrub, lease::Lease, steps},
    },
    error::{Code, Result},
    store::{Pending, Read, Write},
    types::{EmailAddress, PhoneNumber, PhoneRules, UserId},
};

/// Users read per transaction.
const BATCH_SIZE: u32 = 200;
/// Maximum issues in the report of a synchronisation.
const MAX_ISSUES: usize = 1000;
const SYNC: &str = "user_data.sync";

/// An inconsistency in a user's stored data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    pub code: &'static str,
    pub detail: String,
    /// True if it can be repaired automatically.
    pub fixable: bool,
}

impl Issue {
    fn fixable(code: &'static str, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into(), fixable: true }
    }

    fn open(code: &'static str, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into(), fixable: false }
    }
}

/// The result of validating a user.
#[derive(Clone, Debug)]
pub struct Validation {
    pub user: UserId,
    pub phone_number: Option<String>,
    pub issues: Vec<Issue>,
}

/// The result of repairing a user.
#[derive(Clone, Debug)]
pub struct UserRepair {
    pub user: UserId,
    pub phone_number: Option<String>,
    pub fixed: Vec<Issue>,
    pub remaining: Vec<Issue>,
}

/// The result of a synchronisation.
#[derive(Clone, Debug, Default)]
pub struct SyncReport {
    pub checked: u64,
    /// Users with repaired issues.
    pub fixed: u64,
    /// Deleted history records of users who no longer exist.
    pub orphans_deleted: u64,
    /// Users with remaining issues.
    pub inconsistent: u64,
    /// The first thousand remaining issues, with their users.
    pub issues: Vec<(UserId, Issue)>,
}

impl SyncReport {
    /// Returns the report of a synchronisation of one user.
    pub fn of_user(repair: UserRepair) -> Self {
        let UserRepair { user, fixed, remaining, .. } = repair;
        Self {
            checked: 1,
            fixed: u64::from(!fixed.is_empty()),
            orphans_deleted: 0,
            inconsistent: u64::from(!remaining.is_empty()),
            issues: remaining.into_iter().map(|issue| (user, issue)).collect(),
        }
    }
}

/// The user to validate or repair.
#[derive(Clone, Debug)]
pub enum UserSelector {
    Id(UserId),
    Phone(PhoneNumber),
}

/// Validates a user's stored data.
///
/// # Errors
/// `not_found`.
pub fn validate(core: &Core, selector: &UserSelector) -> Result<Validation> {
    core.store.read(|tx| {
        let stored_user = find_in(tx, &core.phone_rules, selector)?.ok_or(Code::NotFound)?;
        validate_in(tx, &core.phone_rules, stored_user, None)
    })
}

/// Returns the issues of a user, but reads the entries of an account only if it takes none or disagrees with its newest
/// entry. The daily verification reads all.
///
/// # Errors
/// `not_found`.
pub fn suspected_issues_in(tx: &Read<'_>, rules: &PhoneRules, user: UserId) -> Result<Vec<Issue>> {
    let stored_user = users::find_stored_in(tx, user)?.ok_or(Code::NotFound)?;
    let mut issues = Vec::new();
    validate_phone_in(tx, rules, &stored_user, None, &mut issues)?;
    validate_email_in(tx, &stored_user, &mut issues)?;
    for asset in Asset::ALL {
        if !ledger::is_sound_at_first_sight_in(tx, user, asset)? {
            validate_account_in(tx, user, asset, &mut issues)?;
        }
    }
    Ok(issues)
}

/// Repairs the fixable issues of a user in one transaction.
///
/// # Errors
/// `not_found`.
pub fn repair(core: &Core, selector: UserSelector, by: Authority) -> Pending<UserRepair> {
    let rules = core.phone_rules.clone();
    core.store.write(move |tx| {
        let stored_user = find_in(tx, &rules, &selector)?.ok_or(Code::NotFound)?;
        repair_in(tx, &rules, stored_user.id, None, &by)
    })
}

/// Validates and repairs all users. Blocks until it has finished.
///
/// # Errors
/// `already_running`.
pub fn synchronise(core: &Core, by: &Authority, progress: &mut dyn FnMut(u64)) -> Result<SyncReport> {
    Lease::hold(core, SYNC, |run| synchronise_all(core, by, run, progress))
}

fn synchronise_all(core: &Core, by: &Authority, run: &Lease, progress: &mut dyn FnMut(u64)) -> Result<SyncReport> {
    let mut report = SyncReport::default();
    let irregular = Arc::new(IrregularNumbers::find_all(core, BATCH_SIZE)?);
    let mut last = UserId(0);
    loop {
        let validations = core.store.read(|tx| validate_slice_in(tx, &core.phone_rules, last, &irregular))?;
        let Some(newest) = validations.last() else { break };
        last = newest.user;
        for validation in validations {
            report.checked += 1;
            if !validation.issues.is_empty() {
                repair_listed(core, by, validation, &irregular, &mut report)?;
            }
        }
        run.renew(core)?;
        progress(report.checked);
    }
    report.orphans_deleted = delete_orphans(core, run)?;
    Ok(report)
}

fn repair_listed(
    core: &Core,
    by: &Authority,
    validation: Validation,
    irregular: &Arc<IrregularNumbers>,
    report: &mut SyncReport,
) -> Result<()> {
    let user = validation.user;
    let remaining = if validation.issues.iter().any(|issue| issue.fixable) {
        let (rules, irregular, by) = (core.phone_rules.clone(), Arc::clone(irregular), by.clone());
        let repaired = core.store.write(move |tx| repair_in(tx, &rules, user, Some(&irregular), &by)).wait();
        let repair = match repaired {
            // Deleted since the validation.
            Err(error) if error.code == Code::NotFound => return Ok(()),
            fixed => fixed?,
        };
        report.fixed += u64::from(!repair.fixed.is_empty());
        repair.remaining
    } else {
        validation.issues
    };
    report.inconsistent += u64::from(!remaining.is_empty());
    let free = MAX_ISSUES.saturating_sub(report.issues.len());
    report.issues.extend(remaining.into_iter().take(free).map(|issue| (user, issue)));
    Ok(())
}

/// Deletes history records whose user no longer exists.
fn delete_orphans(core: &Core, run: &Lease) -> Result<u64> {
    let (mut deleted, mut checked) = (0, 0);
    let mut last = UserId(0);
    while let Some(owner) = core.store.read(|tx| history::next_owner_in(tx, last))? {
        last = owner;
        checked += 1;
        if checked % BATCH_SIZE == 0 {
            run.renew(core)?;
        }
        if core.store.read(|tx| users::find_stored_in(tx, owner))?.is_some() {
            continue;
        }
        let orphans =
            free_space_scrub::delete_in_steps(core, move |tx| history::delete_orphans_in(tx, owner, steps::CHUNK))?;
        deleted += orphans as u64;
    }
    Ok(deleted)
}

fn validate_slice_in(
    tx: &Read<'_>,
    rules: &PhoneRules,
    after: UserId,
    irregular: &IrregularNumbers,
) -> Result<Vec<Validation>> {
    let ids = users::ids_after_in(tx, after, BATCH_SIZE)?;
    let stored_user = ids.into_iter().filter_map(|id| users::find_stored_in(tx, id).transpose());
    stored_user.map(|stored_user| validate_in(tx, rules, stored_user?, Some(irregular))).collect()
}

fn find_in(tx: &Read<'_>, rules: &PhoneRules, selector: &UserSelector) -> Result<Option<StoredUser>> {
    match selector {
        UserSelector::Id(id) => users::find_stored_in(tx, *id),
        UserSelector::Phone(phone_number) => {
            let found = find_owners_in(tx, rules, phone_number, None)?;
            // Prefers the canonical spelling, because that account is the one that sign-in finds.
            let is_canonical =
                |stored_user: &&StoredUser| stored_user.phone_number.as_deref() == Some(phone_number.as_str());
            Ok(found.iter().find(is_canonical).or(found.first()).cloned())
        }
    }
}

fn validate_in(
    tx: &Read<'_>,
    rules: &PhoneRules,
    stored_user: StoredUser,
    irregular: Option<&IrregularNumbers>,
) -> Result<Validation> {
    let mut issues = Vec::new();
    validate_phone_in(tx, rules, &stored_user, irregular, &mut issues)?;
    validate_email_in(tx, &stored_user, &mut issues)?;
    for asset in Asset::ALL {
        validate_account_in(tx, stored_user.id, asset, &mut issues)?;
    }
    if !history::are_right_in(tx, stored_user.id)? {
        issues.push(Issue::fixable(
            "history_sums_wrong",
            "the stored sums of the history records are not those of the records",
        ));
    }
    Ok(Validation { user: stored_user.id, phone_number: stored_user.phone_number, issues })
}

fn validate_phone_in(
    tx: &Read<'_>,
    rules: &PhoneRules,
    stored_user: &StoredUser,
    irregular: Option<&IrregularNumbers>,
    issues: &mut Vec<Issue>,
) -> Result<()> {
    let Some(stored) = &stored_user.phone_number else { return Ok(()) };
    let Ok(canonical) = PhoneNumber::parse(stored, rules) else {
        // A number of a region that is no longer allowed is still valid.
        let has_only_digits = stored.strip_prefix('+').unwrap_or(stored).bytes().all(|byte| byte.is_ascii_digit());
        if !has_only_digits {
            issues.push(Issue::open("phone_invalid", "the stored phone number is invalid"));
        }
        return Ok(());
    };
    let same = find_owners_in(tx, rules, &canonical, irregular)?;
    let others: Vec<_> =
        same.iter().filter(|other| other.id != stored_user.id).map(|other| other.id.to_string()).collect();
    if !others.is_empty() {
        let detail = format!("another spelling of this phone number belongs to user {}", others.join(", "));
        issues.push(Issue::open("duplicate_phone", detail));
    } else if canonical.as_str() != stored {
        issues.push(Issue::fixable("phone_not_canonical", "the phone number is not stored in canonical form"));
    }
    Ok(())
}

fn validate_email_in(tx: &Read<'_>, stored_user: &StoredUser, issues: &mut Vec<Issue>) -> Result<()> {
    let Some(stored) = &stored_user.email else { return Ok(()) };
    let canonical = canonical_email(stored);
    if canonical == *stored {
        return Ok(());
    }
    issues.push(match users::find_by_stored_email_in(tx, &canonical)? {
        Some(other) => {
            Issue::open("duplicate_email", format!("another spelling of this address belongs to user {other}"))
        }
        None => Issue::fixable("email_not_canonical", "the email address is not stored in canonical form"),
    });
    Ok(())
}

fn validate_account_in(tx: &Read<'_>, user: UserId, asset: Asset, issues: &mut Vec<Issue>) -> Result<()> {
    let name = asset.name();
    match consistency_in(tx, user, asset)? {
        AccountConsistency::Missing if asset == Asset::Coin => {
            issues.push(Issue::fixable("account_missing", format!("the {name} account is missing")));
        }
        // A user who never had points has no point account.
        AccountConsistency::Sound | AccountConsistency::Missing => {}
        AccountConsistency::Wrong { balance, entries } => {
            let detail = format!("the {name} balance is {balance}; the ledger's entries sum to {entries}");
            issues.push(Issue::fixable("balance_wrong", detail));
        }
        AccountConsistency::Suspended => {
            issues.push(Issue::fixable(
                "account_suspended",
                format!("the {name} account is suspended although it is consistent"),
            ));
        }
        AccountConsistency::Broken(discrepancies) => issues.extend(
            discrepancies
                .into_iter()
                .map(|found| Issue::open("ledger_broken", format!("{name}: {}: {}", found.code, found.detail))),
        ),
    }
    Ok(())
}

fn repair_in(
    tx: &Write<'_>,
    rules: &PhoneRules,
    user: UserId,
    irregular: Option<&IrregularNumbers>,
    by: &Authority,
) -> Result<UserRepair> {
    let stored_user = users::find_stored_in(tx, user)?.ok_or(Code::NotFound)?;
    let (fixed, remaining): (Vec<_>, Vec<_>) =
        validate_in(tx, rules, stored_user.clone(), irregular)?.issues.into_iter().partition(|issue| issue.fixable);
    let phone_number = stored_user.phone_number.as_deref().map(|stored| match PhoneNumber::parse(stored, rules) {
        Ok(canonical) => canonical.as_str().to_owned(),
        Err(_) => stored.to_owned(),
    });
    let has = |code: &str| fixed.iter().any(|issue| issue.code == code);
    if has("phone_not_canonical") || has("email_not_canonical") {
        let has_wrong_email = has("email_not_canonical");
        let respell = |stored: &str| if has_wrong_email { canonical_email(stored) } else { stored.to_owned() };
        let email = stored_user.email.as_deref().map(respell);
        let phone_number = if has("phone_not_canonical") { &phone_number } else { &stored_user.phone_number };
        users::set_addresses_in(tx, user, phone_number.as_deref(), email.as_deref())?;
    }
    if has("history_sums_wrong") {
        history::repair_in(tx, user)?;
    }
    for asset in Asset::ALL {
        match consistency_in(tx, user, asset)? {
            AccountConsistency::Missing if asset == Asset::Coin => drop(ledger::open_account_in(tx, user, asset)?),
            AccountConsistency::Wrong { .. } | AccountConsistency::Suspended => {
                drop(verification::repair_in(tx, by, user, asset)?);
            }
            _ => {}
        }
    }
    let phone_number = users::find_stored_in(tx, user)?.and_then(|stored_user| stored_user.phone_number);
    Ok(UserRepair { user, phone_number, fixed, remaining })
}

fn canonical_email(stored: &str) -> String {
    EmailAddress::parse(stored).map_or_else(|_| stored.trim().to_lowercase(), |email| email.as_str().to_owned())
}
