//! Disputes: a buyer's bank asks the money of a payment back, and decides later.
//!
//! Reports of a dispute and of its payment arrive in any order and any number of times, so each dispute is remembered by
//! its own number. A decided dispute never opens again.

use crate::{
    domain::money::payments::{
        order::Order,
        order_states::{self, SettlementEffect, SettlementOutcome},
        orders,
    },
    error::Result,
    providers::payment::{DisputeState, OrderState},
    store::Write,
};

/// The review reason of an order whose money the buyer's bank asks back.
pub(super) const DISPUTED: &str = "disputed";
/// The review reason of an order whose money the provider took back for the buyer's bank.
pub(super) const DISPUTE_LOST: &str = "dispute_lost";

/// Records the state of a dispute and applies it to the order of the payment. Returns the order's number.
pub(super) fn apply_in(
    tx: &Write<'_>,
    channel: &str,
    trade_no: &str,
    dispute_no: &str,
    state: DisputeState,
) -> Result<(Option<String>, SettlementOutcome)> {
    let changed = tx.execute(
        "insert into payment_disputes (channel, trade_no, dispute_no, state, reported_at) values (?1, ?2, ?3, ?4, ?5) \
         on conflict (channel, trade_no, dispute_no) do update set state = excluded.state, \
         reported_at = excluded.reported_at where payment_disputes.state = 'open' and excluded.state <> 'open'",
        (channel, trade_no, dispute_no, state.name(), tx.now.0),
    )?;
    let Some(order) = orders::find_by_trade_in(tx, channel, trade_no)? else {
        return Ok((None, SettlementEffect::Unchanged.into()));
    };
    let order_no = order.order_no.clone();
    let outcome = if changed == 0 { SettlementEffect::Unchanged.into() } else { settle_in(tx, order)? };
    Ok((Some(order_no), outcome))
}

/// Moves an order to review while one of its disputes is open or was lost, and back when all are won. An order in
/// review for another reason stays there, and one whose money was refunded needs no decision.
pub(super) fn settle_in(tx: &Write<'_>, order: Order) -> Result<SettlementOutcome> {
    let states = tx.all(
        "select state from payment_disputes where channel = ?1 and trade_no = ?2",
        (&order.channel, order.trade_no.as_deref()),
        |row| row.get_parsed(0, DisputeState::from_name),
    )?;
    let is_about_it = order.state == OrderState::Review && is_dispute(&order);
    if states.is_empty() || order.state == OrderState::Refunded || (order.state == OrderState::Review && !is_about_it) {
        return Ok(SettlementEffect::Unchanged.into());
    }
    if states.contains(&DisputeState::Lost) {
        return order_states::review_in(tx, order, DISPUTE_LOST);
    }
    if states.contains(&DisputeState::Open) {
        return order_states::review_in(tx, order, DISPUTED);
    }
    if is_about_it {
        let state = order_states::settled_state(&order);
        order_states::set_state_in(tx, Order { reason: None, ..order }, state)?;
    }
    Ok(SettlementEffect::Unchanged.into())
}

/// Returns true if the order is in review only because of a dispute.
pub(super) fn is_dispute(order: &Order) -> bool {
    matches!(order.reason.as_deref(), Some(DISPUTED | DISPUTE_LOST))
}
