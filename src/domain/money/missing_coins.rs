//! Explains coins that a user misses after a payment or a purchase in an app store. The first cause that holds is the answer.

use super::{
    ledger::{self, Asset, CoinUses, EntryKind, LedgerEntry},
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

/// The cause, in the order in which causes are checked.
#[derive(Clone, Debug)]
pub enum MissingCoins {
    /// The account takes no entries, because its balance disagrees with them.
    AccountSuspended {
        since: Timestamp,
    },
    /// An order was created or paid, or is in review.
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
    /// A purchase in an app store is pending or refused.
    PurchaseOpen(Box<StorePurchase>),
    /// A store's refund took coins back.
    PurchaseRefunded {
        purchase: Box<StorePurchase>,
        at: Timestamp,
    },
    Nothing,
}

/// Finds the cause. `trade_no` is a number from the user's receipt.
///
/// # Errors
/// `not_found` for a trade number of no order.
pub fn explain(payments: &Payments, user: UserId, trade_no: Option<&str>) -> Result<MissingCoins> {
    let core = &payments.core;
    if let Some(since) = core.store.read(|tx| ledger::account_in(tx, user, Asset::Coin))?.suspended_at {
        return Ok(MissingCoins::AccountSuspended { since });
    }
    let page = PageRequest::of_newest(LOOKED_AT);
    let found = orders::list(core, OrderFilter::of_user(user), page)?.items;
    let is_open = |order: &&Order| matches!(order.state, OrderState::Created | OrderState::Paid | OrderState::Review);
    if let Some(order) = found.iter().find(is_open) {
        return Ok(MissingCoins::OrderOpen(Box::new(order.clone())));
    }
    let own = records::PurchaseFilter { user: Some(user), state: None };
    let purchases = records::list(core, own, page)?.items;
    let is_waiting =
        |purchase: &&StorePurchase| matches!(purchase.state, PurchaseState::Pending | PurchaseState::Refused);
    if let Some(purchase) = purchases.iter().find(is_waiting) {
        return Ok(MissingCoins::PurchaseOpen(Box::new(purchase.clone())));
    }
    if let Some(trade_no) = trade_no {
        let order = orders::find(payments, trade_no)?;
        if order.user != user {
            return Ok(MissingCoins::OtherAccount(Box::new(order)));
        }
    }
    let mut coin_orders = found.iter().filter(|order| order.asset == Asset::Coin);
    let credited = coin_orders.find_map(|order| order.credited_at.map(|at| (order, at)));
    if let Some((order, credited_at)) = credited {
        let CoinUses { newest, total } = core.store.read(|tx| {
            let credit = ledger::find_by_reference_in(tx, Asset::Coin, EntryKind::Topup, &order.credit_reference())?;
            // Without its entry, the time of the credit alone decides.
            let after = credit.map_or(0, |entry| entry.sequence);
            ledger::uses_after_in(tx, user, Asset::Coin, (after, credited_at), SHOWN_USES)
        })?;
        if total > 0 {
            return Ok(MissingCoins::Used { order: Box::new(order.clone()), credited_at, uses: newest, total });
        }
    }
    if let Some((purchase, at)) =
        purchases.into_iter().find_map(|purchase| purchase.revoked_at.map(|at| (purchase, at)))
    {
        return Ok(MissingCoins::PurchaseRefunded { purchase: Box::new(purchase), at });
    }
    let refunded = found.into_iter().find_map(|order| order.refunded_at.map(|at| (order, at)));
    Ok(refunded.map_or(MissingCoins::Nothing, |(order, at)| MissingCoins::Refunded { order: Box::new(order), at }))
}
