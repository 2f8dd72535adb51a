//! Explains coins that a user misses after a payment or a purchase in an app store. The newest cause is the
//! answer; a suspended account and the trade number of another account come first.

use super::{
    ledger::{self, Asset, EntryKind, LedgerEntry},
    payments::{
        Payments,
        order::Order,
        orders::{self, OrderFilter},
    },
    purchases::{
        purchase::{PurchaseState, StorePurchase},
        records,
    },
};
use crate::{
    error::Result,
    providers::payment::OrderState,
    types::{PageRequest, Timestamp, UserId},
};

/// Orders and purchases that are looked at, newest first.
const LOOKED_AT: u32 = 50;
/// Uses that are shown, newest first. All of them count in the total.
const SHOWN_USES: u32 = 20;

/// The cause.
#[derive(Clone, Debug)]
pub enum MissingCoins {
    /// The account takes no entries, because its balance disagrees with them.
    AccountSuspended {
        since: Timestamp,
    },
    /// An order was created or paid, or is in review, and was not credited.
    OrderOpen(Box<Order>),
    /// The trade number belongs to an order of another user.
    OtherAccount(Box<Order>),
    /// The coins arrived and were used. `uses` are the newest ones, `total` is the sum of all since.
    Used {
        order: Box<Order>,
        credited_at: Timestamp,
        uses: Vec<LedgerEntry>,
        total: i64,
    },
    /// A refund took coins back.
    Refunded {
        order: Box<Order>,
        at: Timestamp,
    },
    /// The staff took coins.
    Deducted {
        coins: i64,
        at: Timestamp,
    },
    /// A purchase in an app store is pending or refused.
    PurchaseOpen(Box<StorePurchase>),
    /// A store's refund took coins back.
    PurchaseRefunded {
        purchase: Box<StorePurchase>,
        at: Timestamp,
    },
    Nothing,
}

/// The changes of the balance of coins since the last purchase, which everyone can follow.
#[derive(Clone, Debug, Default)]
pub struct Reckoning {
    /// The balance before the purchase; 0 if nothing was bought.
    pub before: i64,
    /// The sum of each kind of entry.
    pub changes: Vec<(EntryKind, i64)>,
    pub balance: i64,
}

/// The answer: the newest cause, and the reckoning.
#[derive(Clone, Debug)]
pub struct Explanation {
    pub cause: MissingCoins,
    pub reckoning: Reckoning,
}

/// Checks all causes. `trade_no` is a number from the user's receipt.
///
/// # Errors
/// `not_found` for a trade number of no order.
pub fn explain(payments: &Payments, user: UserId, trade_no: Option<&str>) -> Result<Explanation> {
    let core = &payments.core;
    let page = PageRequest::of_newest(LOOKED_AT);
    let found = orders::list(core, OrderFilter::of_user(user), page)?.items;
    let own = records::PurchaseFilter { user: Some(user), state: None };
    let purchases = records::list(core, own, page)?.items;
    let coin_orders = found.iter().filter(|order| order.asset == Asset::Coin);
    let credited = coin_orders.filter_map(|order| order.credited_at.map(|at| (at, order))).max_by_key(|(at, _)| *at);
    let (account, credit, sums, uses) = core.store.read(|tx| {
        let reference = credited.map(|(_, order)| order.credit_reference());
        let credit = reference.map(|text| ledger::find_by_reference_in(tx, Asset::Coin, EntryKind::Topup, &text));
        let credit = credit.transpose()?.flatten();
        let after = credit.as_ref().map_or(0, |entry| entry.sequence - 1);
        let sums = ledger::sums_after_in(tx, user, Asset::Coin, after)?;
        let uses = ledger::uses_after_in(tx, user, Asset::Coin, after, SHOWN_USES)?;
        Ok((ledger::account_in(tx, user, Asset::Coin)?, credit, sums, uses))
    })?;
    let before = credit.map_or(0, |entry| entry.balance_after - entry.delta);
    let changes = sums.iter().map(|(kind, sum, _)| (*kind, *sum)).collect();
    let reckoning = Reckoning { before, changes, balance: account.balance };
    let explained = |cause| Ok(Explanation { cause, reckoning });
    if let Some(since) = account.suspended_at {
        return explained(MissingCoins::AccountSuspended { since });
    }
    if let Some(trade_no) = trade_no {
        let order = orders::find(payments, trade_no)?;
        if order.user != user {
            return explained(MissingCoins::OtherAccount(Box::new(order)));
        }
    }
    let mut causes: Vec<(Timestamp, MissingCoins)> = Vec::new();
    for order in &found {
        if let Some(at) = order.refunded_at {
            causes.push((at, MissingCoins::Refunded { order: Box::new(order.clone()), at }));
        }
        // An order in review may be credited already, such as one that was paid twice.
        let is_open = matches!(order.state, OrderState::Created | OrderState::Paid | OrderState::Review);
        if is_open && order.credited_at.is_none() {
            causes.push((order.created_at, MissingCoins::OrderOpen(Box::new(order.clone()))));
        }
    }
    for purchase in purchases {
        if let Some(at) = purchase.revoked_at {
            causes.push((at, MissingCoins::PurchaseRefunded { purchase: Box::new(purchase), at }));
        } else if matches!(purchase.state, PurchaseState::Pending | PurchaseState::Refused) {
            causes.push((purchase.created_at, MissingCoins::PurchaseOpen(Box::new(purchase))));
        }
    }
    let by_hand = sums.iter().filter(|(kind, sum, _)| matches!(kind, EntryKind::Adjust | EntryKind::Reset) && *sum < 0);
    causes.extend(by_hand.map(|(_, sum, at)| (*at, MissingCoins::Deducted { coins: -sum, at: *at })));
    if let (Some((credited_at, order)), Some(newest)) = (credited, uses.first()) {
        let spent = sums.iter().filter(|(kind, sum, _)| *sum < 0 && !ledger::NO_USES.contains(kind));
        let total = -spent.map(|(_, sum, _)| sum).sum::<i64>();
        let at = newest.created_at;
        causes.push((at, MissingCoins::Used { order: Box::new(order.clone()), credited_at, uses, total }));
    }
    let newest = causes.into_iter().max_by_key(|(at, _)| *at);
    explained(newest.map_or(MissingCoins::Nothing, |(_, cause)| cause))
}
