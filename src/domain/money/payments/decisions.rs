//! Decisions of operators about orders in review.
//!
//! A decision that contradicts the recorded facts is rejected: coins are not credited twice or to a deleted user, and a
//! received payment is not ignored. Beyond that the operator's statement is trusted and audited.

use std::sync::Arc;

use crate::domain::money::payments::Payments;
use crate::{
    domain::{
        money::{
            ledger::{self, Authority, EntryKind},
            payments::{
                channels::PaymentChannels,
                order::Order,
                order_states::{review_in, set_state_in, settled_state},
                orders, refunds,
                settle::{
                    RefundSource, claw_back_in, is_about_another_trade, is_user_gone_in, post_credit_in, posting_of,
                    record_in, refund_in,
                },
            },
        },
        operations::idempotency::{IdempotentOutcome, IdempotentRequest},
    },
    error::{Code, Error, Result, Sentence},
    providers::payment::OrderState,
    store::{Pending, Write},
    types::named_enum,
};

named_enum! {
    /// An operator's decision about an order in review.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Decision {
        /// Credits the coins, less those for refunded money. Gives back coins that were taken for a refund that failed.
        Credit = "credit",
        /// Writes off the coins that could not be taken back. Rejected if a payment bought nothing.
        WriteOff = "write-off",
        /// Takes back owed coins, as many as the balance allows. The order stays in review while some are missing.
        ClawBack = "claw-back",
        /// Records that the remaining money was refunded outside this service, and takes back the coins.
        RefundedExternally = "refunded-externally",
    }
}

/// Applies a decision to an order in review.
///
/// # Errors
/// `not_found`, and those of posting to the ledger. `order_state` for an order that is not in review, or that the
/// decision does not fit: it is credited already, its user is deleted, it owes no coins, nothing was paid, or a refund
/// is open.
pub fn settle(
    payments: &Payments,
    order_no: &str,
    decision: Decision,
    by: Authority,
    once: IdempotentRequest<Order>,
) -> Pending<IdempotentOutcome<Order>> {
    let (order_no, channels) = (order_no.to_owned(), Arc::clone(&payments.channels));
    payments.core.store.write(move |tx| once.run_in(tx, |tx| settle_in(tx, &channels, &order_no, decision, &by)))
}

fn settle_in(
    tx: &Write<'_>,
    channels: &PaymentChannels,
    order_no: &str,
    decision: Decision,
    by: &Authority,
) -> Result<Order> {
    let order = orders::find_in(tx, order_no)?;
    if order.state != OrderState::Review {
        return Err(wrong_state((
            format!("The order is {}, not in review.", order.state.name()),
            format!("订单状态为 {}，不在审核中。", order.state.name()),
        )));
    }
    match decision {
        Decision::Credit => refunds::end_open_in(tx, channels, &order, "credited")?,
        Decision::RefundedExternally => refunds::end_open_in(tx, channels, &order, "refunded_externally")?,
        // These concern coins only, so an open refund does not matter.
        Decision::ClawBack | Decision::WriteOff => {}
    }
    let before = Order { settled_at: Some(tx.now), ..order };
    let order = before.clone();
    let order = Order { reason: Some(by.reason.clone()), ..order };
    match decision {
        Decision::Credit => credit_manually_in(tx, &order, by)?,
        Decision::ClawBack => claw_back_owed_in(tx, before, by)?,
        Decision::RefundedExternally if order.paid_at.is_none() || order.refunded >= order.paid => {
            return Err(wrong_state(("The order has no refundable amount left.", "订单没有可退的金额。")));
        }
        Decision::RefundedExternally => {
            let all = order.paid;
            refund_in(tx, order, all, true, RefundSource::Settlement(by))?;
        }
        Decision::WriteOff if order.is_owed_to_user() => {
            return Err(wrong_state((
                "A refund failed, so the buyer has neither money nor coins: repeat the refund, or credit the order.",
                "退款失败，买家既未收到退款也没有金币：请重新退款或入账。",
            )));
        }
        Decision::WriteOff if settled_state(&order) == OrderState::Closed && order.paid_at.is_some() => {
            return Err(wrong_state((
                "The payment bought nothing: credit the order, refund it, or record that it was refunded elsewhere.",
                "该笔支付未换得任何内容：请入账、退款，或登记为已在别处退款。",
            )));
        }
        Decision::WriteOff => {
            let coins_written_off = order.coins_written_off + order.coins_owed().max(0);
            let bonus_written_off = order.bonus_written_off + order.bonus_owed().max(0);
            let (state, closed_at) = match settled_state(&order) {
                OrderState::Closed => (OrderState::Closed, order.closed_at.or(Some(tx.now))),
                state => (state, order.closed_at),
            };
            set_state_in(tx, Order { coins_written_off, bonus_written_off, closed_at, ..order }, state)?;
        }
    }
    orders::find_in(tx, order_no)
}

fn claw_back_owed_in(tx: &Write<'_>, order: Order, by: &Authority) -> Result<()> {
    if order.coins_owed() == 0 && order.bonus_owed() == 0 {
        return Err(wrong_state(("The order owes no coins.", "订单没有欠缺的金币。")));
    }
    let (order, missing) = claw_back_in(tx, order, Some(by))?;
    match missing {
        Some(reason) if reason == Code::AccountInconsistent.name() => Err(Code::AccountInconsistent.into()),
        _ if is_about_another_trade(&order) => set_state_in(tx, order, OrderState::Review),
        Some(reason) => review_in(tx, order, reason).map(drop),
        None => {
            let state = settled_state(&order);
            let order = Order { reason: Some(by.reason.clone()), ..order };
            set_state_in(tx, order, state)
        }
    }
}

fn credit_manually_in(tx: &Write<'_>, order: &Order, by: &Authority) -> Result<()> {
    if order.is_owed_to_user() {
        return give_back_in(tx, order.clone(), by);
    }
    if order.credited_at.is_some() {
        return Err(wrong_state((
            "The order is credited already; it can only be written off.",
            "订单已入账，只能核销。",
        )));
    }
    if is_user_gone_in(tx, order)? {
        return Err(wrong_state(("The user is deleted: refund the payment.", "用户已注销，请退款。")));
    }
    let (credited, after) = post_credit_in(tx, order)?;
    let before = after - i64::from(credited.coin_count) - credited.bonus_credited;
    record_in(tx, &credited, "settle_payment", by, before, after)?;
    let (order, missing) = claw_back_in(tx, credited, Some(by))?;
    if missing.is_some() {
        return Err(Error::internal("coins that were just credited could not be taken back"));
    }
    let state = settled_state(&order);
    set_state_in(tx, order, state)
}

/// Gives back the coins that were taken for money that did not go back.
fn give_back_in(tx: &Write<'_>, order: Order, by: &Authority) -> Result<()> {
    let (coins, bonus) = ((-order.coins_owed()).max(0), (-order.bonus_owed()).max(0));
    // Coins that were written off were never taken.
    let given = [coins.min(order.coins_returned), bonus.min(order.bonus_returned)];
    let returns = order.returns + 1;
    let before = ledger::account_in(tx, order.user, order.asset)?.balance;
    for (reference, delta) in order.reversal_references(returns).into_iter().zip(given) {
        if delta > 0 {
            ledger::post_in(tx, posting_of(&order, EntryKind::RefundReversal, delta, reference))?;
        }
    }
    record_in(tx, &order, "settle_payment", by, before, before + given[0] + given[1])?;
    let order = Order {
        coins_returned: order.coins_returned - given[0],
        bonus_returned: order.bonus_returned - given[1],
        coins_written_off: order.coins_written_off - (coins - given[0]),
        bonus_written_off: order.bonus_written_off - (bonus - given[1]),
        returns,
        ..order
    };
    let state = settled_state(&order);
    set_state_in(tx, order, state)
}

fn wrong_state(detail: impl Into<Sentence>) -> Error {
    Error::new(Code::OrderState).detail(detail)
}
