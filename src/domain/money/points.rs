//! Points: the balance that pays for castings in the current API generation.
//!
//! Only the service raises a balance: by purchases, bonuses, the exchange of coins, restored points and an operator's
//! correction. The rate of an exchange comes from the configuration.

use crate::{
    core::Core,
    domain::{
        money::ledger::{
            self, AccountRepair, Asset, Authority, EntryKind, LARGEST_ADJUSTMENT, LedgerEntry, Posting,
            changes::{self, NewAccountChange},
        },
        operations::idempotency::{IdempotentOutcome, IdempotentRequest},
    },
    error::{Code, Error, Result},
    store::{Pending, Read, Write},
    types::{CursorRange, CursorSlice, UserId, random_hex},
};

/// The suffix of the reference of a restored bonus.
const RESTORED_BONUS: &str = ":bonus";

pub fn balance(core: &Core, user: UserId) -> Result<i64> {
    ledger::balance(core, user, Asset::Point)
}

pub fn balance_in(tx: &Read<'_>, user: UserId) -> Result<i64> {
    ledger::balance_in(tx, user, Asset::Point)
}

/// Returns a page of the user's entries by cursor, newest first.
pub fn entries(core: &Core, user: UserId, span: CursorRange) -> Result<CursorSlice<LedgerEntry>> {
    ledger::entries_in_span(core, user, Asset::Point, span)
}

/// An exchange of coins for points, and the balances after it.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    pub coins: i64,
    pub points: i64,
    pub coin_balance: i64,
    pub point_balance: i64,
}

/// Exchanges coins for points at the configured rate.
///
/// # Errors
/// `not_configured` without a rate; `insufficient_coins`, `balance_too_large`, `account_inconsistent`.
pub fn exchange(
    core: &Core,
    user: UserId,
    coins: i64,
    once: IdempotentRequest<Exchange>,
) -> Pending<IdempotentOutcome<Exchange>> {
    let rate = i64::from(core.config.points.per_coin);
    if rate == 0 {
        return Pending::ready(Err(Code::NotConfigured.into()));
    }
    core.store.write(move |tx| {
        once.run_in(tx, |tx| {
            let reference = Some(format!("exchange:{}", random_hex::<12>()?));
            let post = |asset, delta| {
                let kind = EntryKind::Exchange;
                let posting = Posting { user, asset, delta, kind, reference: reference.clone() };
                ledger::post_in(tx, posting)
            };
            let points = coins.checked_mul(rate).ok_or(Code::BalanceTooLarge)?;
            let coin_balance = post(Asset::Coin, -coins)?;
            Ok(Exchange { coins, points, coin_balance, point_balance: post(Asset::Point, points)? })
        })
    })
}

/// Charges the price of a casting and returns the balance. A free casting writes no entry.
///
/// # Errors
/// `insufficient_points`, `account_inconsistent`.
pub fn charge_cast_in(tx: &Write<'_>, user: UserId, price: u32, reference: String) -> Result<i64> {
    if price == 0 {
        return balance_in(tx, user);
    }
    let delta = -i64::from(price);
    let posting = Posting { user, asset: Asset::Point, delta, kind: EntryKind::Cast, reference: Some(reference) };
    ledger::post_in(tx, posting)
}

/// Returns the price of a casting, once.
///
/// # Errors
/// `account_inconsistent`, `balance_too_large`.
pub fn refund_cast_in(tx: &Write<'_>, user: UserId, points: i64, session_id: &str) -> Result<()> {
    let reference = Some(format!("session:{session_id}"));
    let posting =
        Posting { user, asset: Asset::Point, delta: points, kind: EntryKind::InterpretationRefund, reference };
    ledger::post_once_in(tx, posting).map(drop)
}

/// Charges the price of another interpretation. A free one writes no entry.
///
/// # Errors
/// `insufficient_points`, `account_inconsistent`.
pub fn charge_interpretation_in(tx: &Write<'_>, user: UserId, price: u32, trace_id: &str) -> Result<()> {
    if price == 0 {
        return Ok(());
    }
    let (delta, reference) = (-i64::from(price), Some(interpretation_reference(trace_id)));
    let posting = Posting { user, asset: Asset::Point, delta, kind: EntryKind::Interpretation, reference };
    ledger::post_in(tx, posting).map(drop)
}

/// Returns the points of an interpretation that failed, once.
///
/// # Errors
/// `account_inconsistent`, `balance_too_large`.
pub fn refund_interpretation_in(tx: &Write<'_>, user: UserId, points: i64, trace_id: &str) -> Result<()> {
    let reference = Some(interpretation_reference(trace_id));
    let posting =
        Posting { user, asset: Asset::Point, delta: points, kind: EntryKind::InterpretationRefund, reference };
    ledger::post_once_in(tx, posting).map(drop)
}

fn interpretation_reference(trace_id: &str) -> String {
    format!("interpretation:{trace_id}")
}

/// Posts the signup bonus once for each user, and returns the points granted.
///
/// # Errors
/// `account_inconsistent`.
pub fn grant_signup_bonus_in(tx: &Write<'_>, user: UserId, bonus: u32) -> Result<i64> {
    if bonus == 0 {
        return Ok(0);
    }
    let (delta, reference) = (i64::from(bonus), Some(format!("user:{user}")));
    let posting = Posting { user, asset: Asset::Point, delta, kind: EntryKind::SignupBonus, reference };
    let is_new = ledger::post_once_in(tx, posting)?;
    Ok(if is_new { delta } else { 0 })
}

/// Takes the whole balance of an account that is about to be deleted, and returns it. `parking` names the event.
///
/// # Errors
/// `account_inconsistent`.
pub fn park_in(tx: &Write<'_>, user: UserId, parking: &str) -> Result<i64> {
    let account = ledger::usable_account_in(tx, user, Asset::Point)?;
    if account.balance > 0 {
        let (delta, reference) = (-account.balance, Some(format!("parking:{parking}")));
        ledger::post_in(tx, Posting { user, asset: Asset::Point, delta, kind: EntryKind::Parked, reference })?;
    }
    Ok(account.balance)
}

/// Restores points parked under this name: a signup bonus, and others. The two are separate entries, so that
/// [`bonus_in`] finds the bonus again.
///
/// # Errors
/// `already_posted` if they were restored before; `balance_too_large`, `account_inconsistent`.
pub fn restore_in(tx: &Write<'_>, user: UserId, bonus: i64, others: i64, parking: &str) -> Result<()> {
    let parts = [(others, format!("parking:{parking}")), (bonus, format!("parking:{parking}{RESTORED_BONUS}"))];
    for (delta, reference) in parts.into_iter().filter(|(delta, _)| *delta > 0) {
        let reference = Some(reference);
        ledger::post_in(tx, Posting { user, asset: Asset::Point, delta, kind: EntryKind::Restored, reference })?;
    }
    Ok(())
}

/// Returns the signup bonus that the user has had, with this account or restored from an earlier one.
pub fn bonus_in(tx: &Read<'_>, user: UserId) -> Result<i64> {
    let granted = ledger::sum_in(tx, user, Asset::Point, EntryKind::SignupBonus, "")?;
    Ok(granted + ledger::sum_in(tx, user, Asset::Point, EntryKind::Restored, RESTORED_BONUS)?)
}

/// Corrects the balance by a number of points, up or down, and returns it.
///
/// # Errors
/// `insufficient_points`, `balance_too_large`, `account_inconsistent`.
pub fn adjust(core: &Core, user: UserId, points: i64, by: Authority) -> Pending<i64> {
    core.store.write(move |tx| adjust_in(tx, user, points, &by))
}

pub fn adjust_in(tx: &Write<'_>, user: UserId, points: i64, by: &Authority) -> Result<i64> {
    if points == 0 || !(-LARGEST_ADJUSTMENT..=LARGEST_ADJUSTMENT).contains(&points) {
        return Err(Error::internal("the correction is out of range"));
    }
    let posting = Posting { user, asset: Asset::Point, delta: points, kind: EntryKind::Adjust, reference: None };
    let after = ledger::post_in(tx, posting)?;
    let changed = NewAccountChange {
        action: "adjust",
        user,
        asset: Asset::Point,
        balance_before: after - points,
        balance_after: after,
    };
    changes::record_in(tx, by, changed)?;
    Ok(after)
}

/// Recomputes a wrong balance from the entries and reactivates the account.
pub fn repair(core: &Core, user: UserId, by: Authority) -> Pending<AccountRepair> {
    core.store.write(move |tx| ledger::verification::repair_in(tx, &by, user, Asset::Point))
}
