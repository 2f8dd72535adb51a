//! Applies verified trade reports to orders and the ledger, in one transaction.
//!
//! [`judge`] decides; this module applies the decision. Callbacks, query responses and refunds all end here, in any
//! order and any number of times. Money is recorded as totals and coins by reference, so nothing counts twice. If coins
//! cannot be taken back, the order goes to review; a balance never falls below zero.

use serde_json::json;

use crate::{
    domain::{
        identity::users,
        money::{
            ledger::{
                self, Authority, EntryKind, Posting,
                changes::{self, NewAccountChange},
            },
            payments::{
                disputes,
                order::Order,
                order_states::{
                    NOT_CONFIGURED, REFUND_ABNORMAL, REFUND_FAILED, SettlementEffect, SettlementOutcome,
                    ensure_review_in, review_in, set_state_in, settled_state, under_review,
                },
                orders,
                refunds::records,
            },
        },
        operations::webhook_outbox::{self, NewWebhookEvent, WebhookKind},
    },
    error::{Code, Result},
    providers::payment::{OrderState, RejectReason, ReviewReason, SettlementDecision, Trade, judge},
    store::Write,
    types::{Fen, Timestamp},
};

/// The retry interval of a credit that the account rejects.
pub(super) const CREDIT_RETRY_AFTER: std::time::Duration = std::time::Duration::from_mins(10);

/// The review reason of an order whose trade has already paid another order.
const TRADE_OF_ANOTHER: &str = "trade_of_another_order";

/// Applies a report to its order.
pub fn apply_in(tx: &Write<'_>, trade: &Trade) -> Result<SettlementOutcome> {
    let order = orders::find_maybe_in(tx, &trade.order_no)?.map(|order| reopen(order, trade));
    let judgement = judge(trade, order.as_ref().map(Order::view).as_ref());
    let Some(order) = order else { return Ok(SettlementOutcome::unknown_order()) };
    let changes_it = !matches!(judgement, SettlementDecision::Nothing | SettlementDecision::Reject(_));
    if changes_it && is_trade_of_another_in(tx, &order, trade)? {
        return ensure_review_in(tx, order, TRADE_OF_ANOTHER);
    }
    match judgement {
        SettlementDecision::Credit => {
            let credited = credit_paid_in(tx, with_payment_of(order, trade, tx.now))?;
            disputes::settle_in(tx, orders::find_in(tx, &trade.order_no)?)?;
            Ok(credited)
        }
        SettlementDecision::Close => close_in(tx, order),
        SettlementDecision::Refund { total, full } => {
            // The callback of our own refund may arrive before the response to the refund request.
            let by = records::authority_for_in(tx, &order, total)?;
            let told = by.as_ref().map_or(RefundSource::Report, RefundSource::Refund);
            let order = with_payment_of(order, trade, tx.now);
            if order.refunded >= total {
                // Recorded with the payment of an order that was never credited.
                tell_refunded_in(tx, &order, total, full)?;
            }
            refund_in(tx, order, total, full, told)
        }
        SettlementDecision::Nothing => {
            record_payment_in(tx, order, trade)?;
            Ok(SettlementEffect::Unchanged.into())
        }
        SettlementDecision::Review(ReviewReason::OrderUnderReview) => {
            record_payment_in(tx, order, trade)?;
            Ok(under_review())
        }
        SettlementDecision::Review(reason) => review_in(tx, with_payment_of(order, trade, tx.now), reason.name()),
        SettlementDecision::Reject(reason) => {
            if reason == RejectReason::WrongAmount && trade.is_paid() && !is_payment_recorded(&order, trade) {
                review_rejected_in(tx, order, trade, reason.name())?;
            }
            Ok(SettlementOutcome { verdict: SettlementEffect::Rejected, reason: Some(reason.name()) })
        }
    }
}

/// Returns true if this payment is already recorded on the order. Operators' decisions about it are kept.
pub(super) fn is_payment_recorded(order: &Order, trade: &Trade) -> bool {
    order.paid_at.is_some() && order.trade_no.as_ref() == Some(&trade.trade_no) && order.paid == trade.amount
}

/// Records a payment that has no other effect on the order.
fn record_payment_in(tx: &Write<'_>, order: Order, trade: &Trade) -> Result<()> {
    if !trade.is_paid() || order.paid_at.is_some() || is_trade_of_another_in(tx, &order, trade)? {
        return Ok(());
    }
    orders::store_in(tx, &with_payment_of(order, trade, tx.now))
}

/// Reopens an order that went to review only for want of this report: its provider was not configured, or a refund of a
/// part was reported before the payment.
fn reopen(order: Order, trade: &Trade) -> Order {
    if order.state != OrderState::Review {
        return order;
    }
    let is_payment = trade.is_paid() && trade.refunded.is_none();
    match order.reason.as_deref() {
        Some(NOT_CONFIGURED) => Order { state: OrderState::Created, reason: None, ..order },
        Some(reason) if is_payment && reason == ReviewReason::RefundBeforeCredit.name() => {
            Order { state: OrderState::Paid, reason: None, ..order }
        }
        _ => order,
    }
}

/// Credits a paid order. For a suspended account the credit is retried until its repair; other refusals go to review.
pub fn credit_paid_in(tx: &Write<'_>, order: Order) -> Result<SettlementOutcome> {
    if is_user_gone_in(tx, &order)? {
        return review_in(tx, order, "user_gone");
    }
    match post_credit_in(tx, &order) {
        Ok((credited, _)) => {
            let (order, _) = claw_back_in(tx, credited, None)?;
            if order.refunded > Fen::ZERO {
                tell_refunded_in(tx, &order, order.refunded, false)?;
            }
            set_state_in(tx, order, OrderState::Credited)?;
            Ok(SettlementEffect::Credited.into())
        }
        Err(error) if error.code == Code::AccountInconsistent => {
            let reason = Some(error.code.name());
            // An account that was just found changed in the file needs a person, and so does the money for it.
            if ledger::account_in(tx, order.user, order.asset)?.suspended_at.is_none() {
                return review_in(tx, order, error.code.name());
            }
            let next_check_at = Some(tx.now.plus(CREDIT_RETRY_AFTER));
            orders::store_in(tx, &Order { state: OrderState::Paid, next_check_at, ..order })?;
            Ok(SettlementOutcome { verdict: SettlementEffect::Paid, reason })
        }
        Err(error) if matches!(error.code, Code::BalanceTooLarge | Code::AlreadyPosted) => {
            review_in(tx, order, error.code.name())
        }
        Err(error) => Err(error),
    }
}

/// Closes an unpaid order.
pub fn close_in(tx: &Write<'_>, order: Order) -> Result<SettlementOutcome> {
    set_state_in(tx, Order { closed_at: Some(tx.now), ..order }, OrderState::Closed)?;
    Ok(SettlementEffect::Closed.into())
}

/// Moves an order with a contradicting report to review. A payment in the report is still recorded.
pub fn review_rejected_in(
    tx: &Write<'_>,
    order: Order,
    trade: &Trade,
    reason: &'static str,
) -> Result<SettlementOutcome> {
    let is_its_own = !is_trade_of_another_in(tx, &order, trade)?;
    let order = if is_its_own { with_payment_of(order, trade, tx.now) } else { order };
    review_in(tx, order, reason)
}

/// The source of the information about a refund.
#[derive(Clone, Copy)]
pub enum RefundSource<'told> {
    /// The provider's report.
    Report,
    /// The response to an operator's refund.
    Refund(&'told Authority),
    /// An operator's decision about an order in review.
    Settlement(&'told Authority),
}

impl<'told> RefundSource<'told> {
    fn administrator(self) -> Option<&'told Authority> {
        match self {
            Self::Report => None,
            Self::Refund(by) | Self::Settlement(by) => Some(by),
        }
    }
}

/// Records the total refunded and takes back the coins. A provider's report does not end a review.
pub fn refund_in(
    tx: &Write<'_>,
    order: Order,
    total: Fen,
    full: bool,
    told: RefundSource<'_>,
) -> Result<SettlementOutcome> {
    if order.refunded < total {
        tell_refunded_in(tx, &order, total, full)?;
    }
    let refunded = Order { refunded: total, refunded_at: Some(tx.now), ..order };
    let (order, missing) = claw_back_in(tx, refunded, told.administrator())?;
    let is_undelivered = matches!(order.reason.as_deref(), Some(REFUND_ABNORMAL | REFUND_FAILED));
    let is_before_credit = order.reason.as_deref() == Some(ReviewReason::RefundBeforeCredit.name());
    let is_ended_by_refund =
        order.state == OrderState::Review && (is_undelivered || is_before_credit || disputes::is_dispute(&order));
    let is_settled = match told {
        RefundSource::Report => full && is_ended_by_refund,
        RefundSource::Refund(_) => !is_about_another_trade(&order) && !order.is_owed_to_user(),
        RefundSource::Settlement(_) => true,
    };
    if order.state == OrderState::Review && !is_settled {
        set_state_in(tx, order, OrderState::Review)?;
        return Ok(under_review());
    }
    if let Some(reason) = missing {
        return review_in(tx, order, reason);
    }
    let (state, reason) = match full {
        true => (OrderState::Refunded, order.reason.clone().filter(|_| !is_ended_by_refund)),
        false if is_ended_by_refund && is_undelivered => (settled_state(&order), None),
        false => (order.state, order.reason.clone()),
    };
    set_state_in(tx, Order { reason, ..order }, state)?;
    Ok(SettlementEffect::Refunded.into())
}

/// Returns true if the trade has already paid another order.
fn is_trade_of_another_in(tx: &Write<'_>, order: &Order, trade: &Trade) -> Result<bool> {
    let other = orders::find_by_trade_in(tx, trade.channel, &trade.trade_no)?;
    Ok(other.is_some_and(|other| other.order_no != order.order_no))
}

/// Returns the order with the payment data of its own trade. Ignores another trade and an unpaid one.
fn with_payment_of(order: Order, trade: &Trade, now: Timestamp) -> Order {
    let has_another = order.trade_no.as_ref().is_some_and(|known| *known != trade.trade_no) && order.paid_at.is_some();
    if has_another || !trade.is_paid() {
        return order;
    }
    let paid_at = order.paid_at.or(trade.paid_at.map(Timestamp)).or(Some(now));
    let total = trade.refunded.as_ref().and_then(|refunded| refunded.total);
    // Before the credit no coins depend on it, so it can be recorded during a review.
    let refunded = match (order.credited_at, total) {
        (None, Some(total)) if total <= trade.amount => total.max(order.refunded),
        _ => order.refunded,
    };
    let reported_at = trade.refunded.as_ref().and_then(|refunded| refunded.at).map(Timestamp);
    let refunded_at = order.refunded_at.or_else(|| (refunded > Fen::ZERO).then_some(reported_at.unwrap_or(now)));
    Order { trade_no: Some(trade.trade_no.clone()), paid: trade.amount, paid_at, refunded, refunded_at, ..order }
}

/// Takes back owed coins, as many as the balance allows. Returns a reason if some are missing.
pub(super) fn claw_back_in(
    tx: &Write<'_>,
    order: Order,
    by: Option<&Authority>,
) -> Result<(Order, Option<&'static str>)> {
    let (owed, bonus_owed) = (order.coins_owed().max(0), order.bonus_owed().max(0));
    if owed + bonus_owed == 0 {
        return Ok((order, None));
    }
    let account = match ledger::usable_account_in(tx, order.user, order.asset) {
        Err(error) if error.code == Code::AccountInconsistent => return Ok((order, Some(error.code.name()))),
        account => account?,
    };
    let taken = owed.min(account.balance);
    let bonus_taken = bonus_owed.min(account.balance - taken);
    let missing = (taken + bonus_taken < owed + bonus_owed).then_some("coins_spent");
    if taken + bonus_taken == 0 {
        return Ok((order, missing));
    }
    let returns = order.returns + 1;
    let reference = order.return_reference(returns);
    for (kind, part) in [(EntryKind::Refund, taken), (EntryKind::PurchaseBonusRefund, bonus_taken)] {
        if part > 0 {
            ledger::post_in(tx, posting_of(&order, kind, -part, reference.clone()))?;
        }
    }
    if let Some(authority) = by {
        let after = account.balance - taken - bonus_taken;
        record_in(tx, &order, "refund_payment", authority, account.balance, after)?;
    }
    let (coins_returned, bonus_returned) = (order.coins_returned + taken, order.bonus_returned + bonus_taken);
    Ok((Order { coins_returned, bonus_returned, returns, ..order }, missing))
}

/// Posts the credit and its bonus. Returns the credited order and the balance after it.
pub(super) fn post_credit_in(tx: &Write<'_>, order: &Order) -> Result<(Order, i64)> {
    tx.attempt(|tx| {
        let first_bonus = if ledger::has_topup_in(tx, order.user)? { 0 } else { order.first_bonus };
        let bonus_credited = i64::from(order.bonus) + i64::from(first_bonus);
        let credit = posting_of(order, EntryKind::Topup, order.coin_count.into(), order.credit_reference());
        let mut balance = ledger::post_in(tx, credit)?;
        if bonus_credited > 0 {
            let bonus = posting_of(order, EntryKind::PurchaseBonus, bonus_credited, order.credit_reference());
            balance = ledger::post_in(tx, bonus)?;
        }
        tell_credited_in(tx, order, bonus_credited)?;
        Ok((Order { credited_at: Some(tx.now), bonus_credited, ..order.clone() }, balance))
    })
}

fn tell_credited_in(tx: &Write<'_>, order: &Order, bonus: i64) -> Result<()> {
    let data = json!({
        "orderNo": order.order_no, "channel": order.channel, "productId": order.product_id,
        "paid": order.paid.to_string(), "currency": order.currency.to_string(), "asset": order.asset.name(), "count": order.coin_count,
        "bonus": bonus,
    });
    let event = NewWebhookEvent { kind: WebhookKind::OrderCredited, user: Some(order.user), data, text: None };
    webhook_outbox::record_in(tx, &event)
}

fn tell_refunded_in(tx: &Write<'_>, order: &Order, total: Fen, is_full: bool) -> Result<()> {
    let data = json!({
        "orderNo": order.order_no, "channel": order.channel, "refunded": total.to_string(), "currency": order.currency.to_string(),
        "isFull": is_full,
    });
    let event = NewWebhookEvent { kind: WebhookKind::OrderRefunded, user: Some(order.user), data, text: None };
    webhook_outbox::record_in(tx, &event)
}

pub(super) fn posting_of(order: &Order, kind: EntryKind, delta: i64, reference: String) -> Posting {
    Posting { user: order.user, asset: order.asset, delta, kind, reference: Some(reference) }
}

pub(super) fn record_in(
    tx: &Write<'_>,
    order: &Order,
    action: &str,
    by: &Authority,
    before: i64,
    after: i64,
) -> Result<()> {
    let changed =
        NewAccountChange { action, user: order.user, asset: order.asset, balance_before: before, balance_after: after };
    changes::record_in(tx, by, changed)
}

/// Returns true if the review is about another trade's money, so that refunds of the order's own trade do not end it.
pub(super) fn is_about_another_trade(order: &Order) -> bool {
    let reason = order.reason.as_deref();
    reason == Some(ReviewReason::SecondTrade.name()) || reason == Some(TRADE_OF_ANOTHER)
}

pub(super) fn is_user_gone_in(tx: &Write<'_>, order: &Order) -> Result<bool> {
    match users::find_in(tx, order.user) {
        Ok(_) => Ok(false),
        Err(error) if error.code == Code::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}
