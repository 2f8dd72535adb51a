//! Coins: the balance of the first API generation, which apps spend with `/coin/consume`.
//!
//! The price comes from the configuration, never from a request. Users can only lower their balance. Payments,
//! purchases in app stores, administrators, operators and the signup bonus raise it.

use std::{sync::Arc, time::Duration};

use crate::{
    core::Core,
    domain::{
        identity::{step_up::StepUp, users},
        money::ledger::{
            self, Asset, Authority, Discrepancy, EntryKind, LARGEST_ADJUSTMENT, Posting, PostingSet,
            changes::{self, NewAccountChange},
        },
        operations::{
            confirmations::{self, ConfirmationRequest, DeletionPreview},
            idempotency::{IdempotentOutcome, IdempotentRequest, ResponseSet},
            lease::Lease,
        },
    },
    error::{Code, Error, Result},
    keys::ServerKey,
    store::{GroupedWrite, Pending, Write},
    types::{Secret, UserId, pluralize},
};

/// Users processed in one write of a repair.
const USERS_PER_WRITE: u32 = 500;
const SYNC: &str = "coins.sync";

/// A paid use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Consumed {
    pub consumed: i64,
    pub balance: i64,
}

/// The caller of a reset.
#[derive(Clone, Debug)]
pub enum ResetBy {
    /// The user, with a recent proof of identity.
    Owner(StepUp),
    /// An administrator or operator.
    Admin(Authority, ResetConfirmation),
}

/// The way in which an administrator or operator confirms a reset.
#[derive(Clone, Debug)]
pub enum ResetConfirmation {
    /// Confirmed at a terminal.
    AtTerminal,
    /// By the token of an earlier request, whose response listed the rows to be deleted.
    ByToken { token: Option<String> },
}

/// The limits of an administrator who may only grant a few coins.
#[derive(Clone, Copy, Debug)]
pub struct GrantLimit {
    /// Coins in one grant.
    pub at_once: u32,
    /// Coins granted by this administrator in 24 hours.
    pub daily: u32,
}

/// The result of a repair.
#[derive(Clone, Debug, Default)]
pub struct Synchronised {
    pub checked: u64,
    /// Accounts created for users without one.
    pub created: u64,
    /// Accounts whose balance was recomputed from the ledger.
    pub repaired: u64,
    /// Discrepancies that were not repaired.
    pub issues: Vec<Discrepancy>,
}

pub fn balance(core: &Core, user: UserId) -> Result<i64> {
    ledger::balance(core, user, Asset::Coin)
}

/// Charges the price of one use.
///
/// # Errors
/// `insufficient_coins`, `account_inconsistent`; those of [`IdempotentRequest::run_in`].
pub fn consume(core: &Core, user: UserId, once: IdempotentRequest<Consumed>) -> Pending<IdempotentOutcome<Consumed>> {
    core.store.write_grouped(Use { user, price: i64::from(core.config.coins.consume), once })
}

/// A use that waits for the writer.
struct Use {
    user: UserId,
    price: i64,
    once: IdempotentRequest<Consumed>,
}

impl GroupedWrite for Use {
    type Outcome = IdempotentOutcome<Consumed>;
    type Done = Self::Outcome;

    fn user(&self) -> UserId {
        self.user
    }

    fn run_in(tx: &Write<'_>, set: &[&Self]) -> Result<Vec<Result<Self::Outcome>>> {
        let mut postings = PostingSet::load_in(tx, Asset::Coin, set.iter().map(|of_set| of_set.user))?;
        let mut responses = ResponseSet::load_in(tx, set.iter().map(|of_set| &of_set.once))?;
        let mut outcomes = Vec::with_capacity(set.len());
        for Self { user, price, once } in set {
            if !responses.can_run(once) {
                break;
            }
            let has_user = postings.has_user(*user);
            let consume = || {
                let (user, kind) = (*user, EntryKind::Consume);
                let posting = Posting { user, asset: Asset::Coin, delta: -price, kind, reference: None };
                Ok(Consumed { consumed: *price, balance: postings.post(tx, posting)? })
            };
            outcomes.push(if has_user { responses.run(once, consume)? } else { Err(Code::Unauthenticated.into()) });
        }
        postings.store_in(tx)?;
        responses.store_in(tx)?;
        Ok(outcomes)
    }

    fn complete(self, outcome: Self::Outcome) -> Self::Done {
        outcome
    }
}

/// Sets the balance to zero and returns zero.
///
/// # Errors
/// `step_up_required` for a user without a recent sign-in by code; `invalid_code`; `confirmation_required`;
/// `account_inconsistent`.
pub fn reset(core: &Core, user: UserId, by: ResetBy, once: IdempotentRequest<i64>) -> Pending<IdempotentOutcome<i64>> {
    let (config, key) = (Arc::clone(&core.config), core.keys.clone());
    core.store.write(move |tx| {
        once.run_in(tx, |tx| match &by {
            ResetBy::Owner(proof) => {
                proof.require_in(tx, &key, &config.auth, user)?;
                reset_in(tx, user, None)
            }
            ResetBy::Admin(authority, confirmation) => {
                if let ResetConfirmation::ByToken { token } = confirmation {
                    confirmations::require_in(tx, confirmation_request_in(tx, user, authority, token.clone())?)?;
                }
                reset_in(tx, user, Some(authority))
            }
        })
    })
}

/// Adds coins, or takes coins back if negative, and returns the balance.
///
/// # Errors
/// `forbidden` above the limit; `insufficient_coins`, `balance_too_large`, `account_inconsistent`.
pub fn adjust(
    core: &Core,
    user: UserId,
    coins: i64,
    by: Authority,
    limit: Option<GrantLimit>,
    once: IdempotentRequest<i64>,
) -> Pending<IdempotentOutcome<i64>> {
    core.store.write(move |tx| {
        once.run_in(tx, |tx| {
            if let Some(limit) = limit {
                require_within_in(tx, limit, coins, &by)?;
            }
            adjust_in(tx, user, coins, &by)
        })
    })
}

/// Rejects a grant above the administrator's limits.
fn require_within_in(tx: &Write<'_>, limit: GrantLimit, coins: i64, by: &Authority) -> Result<()> {
    let forbidden = |detail: (String, String)| Err(Error::new(Code::Forbidden).detail(detail));
    if !(1..=i64::from(limit.at_once)).contains(&coins) {
        return forbidden((
            format!("Your role may grant at most {} at once.", pluralize(limit.at_once, "coin", "coins")),
            format!("您的角色单次可发放 1 到 {} 枚金币。", limit.at_once),
        ));
    }
    let granted = changes::granted_by_in(tx, &by.actor, Asset::Coin, tx.now.minus(Duration::from_hours(24)))?;
    if granted + coins > i64::from(limit.daily) {
        let most = limit.daily;
        return forbidden((
            format!("Your role may grant {} in 24 hours; you granted {granted}.", pluralize(most, "coin", "coins")),
            format!("您的角色 24 小时内可发放 {most} 枚金币，您已发放 {granted} 枚。"),
        ));
    }
    Ok(())
}

pub fn adjust_in(tx: &Write<'_>, user: UserId, coins: i64, by: &Authority) -> Result<i64> {
    if coins == 0 || coins.abs() > LARGEST_ADJUSTMENT {
        return Err(Error::internal("the adjustment is out of range"));
    }
    let posting = Posting { user, asset: Asset::Coin, delta: coins, kind: EntryKind::Adjust, reference: None };
    let after = ledger::post_in(tx, posting)?;
    let action = if coins > 0 { "increase" } else { "decrease" };
    changes::record_in(tx, by, changed(action, user, after - coins, after))?;
    Ok(after)
}

/// Creates the account of a new user and posts the signup bonus, once for each `name`: the address or identity with
/// which the user signed in first.
pub fn open_in(tx: &Write<'_>, key: &ServerKey, user: UserId, name: &str, initial: u32) -> Result<()> {
    if initial == 0 {
        return ledger::open_account_in(tx, user, Asset::Coin).map(drop);
    }
    // By name and not by user, so that deleting an account and signing in again earns no second bonus.
    let hmac = key.authenticate(&["signup_bonus", "coin", name]);
    let reference = format!("address:{}", Secret::from_bytes(&hmac).reveal());
    let delta = i64::from(initial);
    let posting = Posting { user, asset: Asset::Coin, delta, kind: EntryKind::SignupBonus, reference: Some(reference) };
    let is_new = ledger::post_once_in(tx, posting)?;
    if is_new { Ok(()) } else { ledger::open_account_in(tx, user, Asset::Coin).map(drop) }
}

/// Creates missing accounts, compares every account with the ledger, and recomputes wrong balances. Never changes
/// ledger entries. Blocks.
///
/// # Errors
/// `already_running`.
pub fn synchronise(core: &Core, by: &Authority) -> Result<Synchronised> {
    Lease::hold(core, SYNC, |run| repair_all(core, by, run))
}

fn repair_all(core: &Core, by: &Authority, run: &Lease) -> Result<Synchronised> {
    let mut done = Synchronised::default();
    let mut last = UserId(0);
    loop {
        let run = run.clone();
        let batch = move |tx: &Write<'_>| {
            run.renew_in(tx)?;
            open_missing_in(tx, last)
        };
        let (users, created) = core.store.write(batch).wait()?;
        let Some(&highest) = users.last() else { break };
        last = highest;
        done.checked += users.len() as u64;
        done.created += created;
    }
    let mut goes_on = Ok(());
    let report = ledger::verify(core, &mut |_, _| {
        if goes_on.is_ok() {
            goes_on = run.renew(core);
        }
    })?;
    goes_on?;
    let run = run.clone();
    let repaired = ledger::verification::repair_suspended(core, by, &[Asset::Coin], move |tx| run.renew_in(tx))?;
    done.repaired = repaired.len() as u64;
    let (issues, count) = report.without(&repaired);
    done.issues = issues;
    ledger::verification::remember(core, &report, count, 0)?;
    Ok(done)
}

fn open_missing_in(tx: &Write<'_>, after: UserId) -> Result<(Vec<UserId>, u64)> {
    let users = users::ids_after_in(tx, after, USERS_PER_WRITE)?;
    let mut created = 0;
    for user in &users {
        created += u64::from(ledger::open_account_in(tx, *user, Asset::Coin)?);
    }
    Ok((users, created))
}

/// Returns the confirmation that a reset needs. It names the balance of this transaction, so a token for another
/// balance is not accepted.
fn confirmation_request_in(
    tx: &Write<'_>,
    user: UserId,
    by: &Authority,
    token: Option<String>,
) -> Result<ConfirmationRequest> {
    let balance = ledger::balance_in(tx, user, Asset::Coin)?;
    let preview = DeletionPreview { delete: vec![("coins".into(), balance)], keep: Vec::new() };
    Ok(ConfirmationRequest {
        actor: by.actor.clone(),
        action: format!("coin reset {user} from {balance}"),
        token,
        preview,
    })
}

fn reset_in(tx: &Write<'_>, user: UserId, by: Option<&Authority>) -> Result<i64> {
    let account = ledger::usable_account_in(tx, user, Asset::Coin)?;
    if account.balance > 0 {
        let delta = -account.balance;
        ledger::post_in(tx, Posting { user, asset: Asset::Coin, delta, kind: EntryKind::Reset, reference: None })?;
    }
    if let Some(authority) = by {
        changes::record_in(tx, authority, changed("reset", user, account.balance, 0))?;
    }
    Ok(0)
}

const fn changed(action: &str, user: UserId, balance_before: i64, balance_after: i64) -> NewAccountChange<'_> {
    NewAccountChange { action, user, asset: Asset::Coin, balance_before, balance_after }
}
