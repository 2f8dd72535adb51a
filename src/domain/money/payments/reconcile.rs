//! Queries to the payment provider: on a user's request, on an operator's, or by the job for orders without callback.

use std::time::Duration;

use crate::domain::money::payments::Payments;
use crate::{
    domain::money::{
        ledger,
        payments::{
            order::Order,
            order_states::{self, SettlementEffect, SettlementOutcome},
            orders, refunds, settle,
        },
    },
    error::{Code, Error, Fault, FieldCode, Result},
    providers::payment::{CHANNELS, CloseOutcome, OrderState, Trade, TradeQueryOutcome, sandbox},
    store::{Pending, Write},
    types::{Fen, Timestamp, UserId},
};

/// The wait after the provider could not be reached or gave contradicting responses.
const RETRY_AFTER: Duration = Duration::from_mins(1);
/// Orders queried in one run of the job.
const BATCH_SIZE: u32 = 50;

/// The provider's response and its effect.
#[derive(Clone, Debug)]
pub struct Inquiry {
    pub order: Order,
    /// `None` if the user has not opened the payment screen.
    pub trade: Option<Trade>,
    pub outcome: SettlementOutcome,
}

/// A claim of the user's app about a payment.
#[derive(Clone, Debug)]
pub struct ClaimedPayment {
    pub order_no: String,
    pub trade_no: Option<String>,
    pub amount: Option<Fen>,
    pub coin_count: Option<u32>,
}

/// The state of a user's order after a query.
#[derive(Clone, Debug)]
pub struct OrderConfirmation {
    pub order: Order,
    pub balance: i64,
    /// The provider could not be reached; the job will query it.
    pub is_pending: bool,
}

/// Queries an order at the provider and applies the response. Blocks on the provider.
///
/// # Errors
/// `not_found`; `order_state` for an order of another gateway; those of the provider.
pub fn inquire(payments: &Payments, order_no: &str) -> Result<Inquiry> {
    let order = orders::find(payments, order_no)?;
    let trade = match payments.ask(&order, |gateway, key| gateway.query(key))?? {
        TradeQueryOutcome::NotFound => {
            return Ok(Inquiry { order, trade: None, outcome: SettlementEffect::Unchanged.into() });
        }
        TradeQueryOutcome::Found(trade) => trade,
    };
    let answered = trade.clone();
    let (order, outcome) = payments.core.store.write(move |tx| settle_by_answer_in(tx, &answered)).wait()?;
    if order.refunded == Fen::ZERO {
        return Ok(Inquiry { order, trade: Some(trade), outcome });
    }
    let failed = payments.ask(&order, |gateway, key| gateway.failed_refunds(key))??;
    let fail = move |tx: &Write<'_>| {
        let mut outcome = outcome;
        for refund in &failed {
            let effect = refunds::fail_in(tx, orders::find_in(tx, &order.order_no)?, refund)?;
            outcome = if effect.verdict == SettlementEffect::Unchanged { outcome } else { effect };
        }
        Ok((orders::find_in(tx, &order.order_no)?, outcome))
    };
    let (order, outcome) = payments.core.store.write(fail).wait()?;
    Ok(Inquiry { order, trade: Some(trade), outcome })
}

/// Queries the order that a user claims to have paid, and returns its state. Blocks on the provider.
///
/// # Errors
/// `not_found` for another user's order; `invalid_parameters` for a claim that does not match the order.
pub fn confirm(payments: &Payments, user: UserId, claim: &ClaimedPayment) -> Result<OrderConfirmation> {
    let order = orders::find_own(&payments.core, user, &claim.order_no)?;
    check_claim(&order, claim)?;
    let is_open = matches!(order.state, OrderState::Created | OrderState::Paid | OrderState::Closed);
    let is_pending = is_open && query_unless_recent(payments, &order.order_no)?;
    let order = orders::find_own(&payments.core, user, &claim.order_no)?;
    Ok(OrderConfirmation { is_pending, balance: ledger::balance(&payments.core, user, order.asset)?, order })
}

/// Queries orders and refunds that are due. Blocks on the provider.
pub fn check_due(payments: &Payments) -> Result<()> {
    let (own, others): (Vec<_>, Vec<_>) =
        CHANNELS.into_iter().partition(|channel| payments.channels.find(channel).is_some());
    // Orders of other gateways first: they need no provider, so an outage must not delay them.
    for channel in others.into_iter().chain(own) {
        check_due_of(payments, channel)?;
    }
    refunds::query_open(payments)
}

fn check_due_of(payments: &Payments, channel: &str) -> Result<()> {
    let payment = &payments.core.config.payment;
    let latest =
        payment.checks.iter().copied().fold(settle::CREDIT_RETRY_AFTER.max(payment.order_lifetime), Duration::max);
    for order in payments.core.store.read(|tx| orders::due_in(tx, channel, latest, BATCH_SIZE))? {
        let order_no = order.order_no.clone();
        if let Err(error) = check(payments, order) {
            tracing::warn!(%error, order_no, "an order could not be queried at the provider");
            payments.core.store.write(move |tx| postpone_in(tx, &order_no)).wait()?;
            // The breaker is open, so the next query would fail, too.
            if error.code == Code::ProviderUnavailable {
                break;
            }
        }
    }
    Ok(())
}

/// Queries the order unless that was done a moment ago. Returns true if the result is still unknown.
fn query_unless_recent(payments: &Payments, order_no: &str) -> Result<bool> {
    let Ok(_asking) = payments.asking.try_acquire(order_no.to_owned()) else { return Ok(true) };
    if !claim_query(payments, order_no)? {
        return Ok(false);
    }
    let is_unknown = match payments.calls.try_acquire() {
        Ok(_slot) => query_for_user(payments, order_no)?,
        Err(_) => true,
    };
    if is_unknown {
        let order_no = order_no.to_owned();
        payments.core.store.write(move |tx| orders::release_query_in(tx, &order_no)).wait()?;
    }
    Ok(is_unknown)
}

/// Queries the order. Returns true if the provider could not be reached.
fn query_for_user(payments: &Payments, order_no: &str) -> Result<bool> {
    match inquire(payments, order_no) {
        Ok(_) => Ok(false),
        Err(error) if is_provider_failure(error.code) => {
            tracing::warn!(%error, order_no, "the provider could not be reached for an order");
            Ok(true)
        }
        Err(error) if error.code == Code::OrderState => Ok(false),
        Err(error) => Err(error),
    }
}

const fn is_provider_failure(code: Code) -> bool {
    matches!(code, Code::ProviderFailed | Code::ProviderTimeout | Code::ProviderUnavailable | Code::TooManyRequests)
}

/// Limits how often a user can trigger a query of one order.
fn claim_query(payments: &Payments, order_no: &str) -> Result<bool> {
    let (order_no, wait) = (order_no.to_owned(), payments.core.config.payment.ask_again_after);
    payments.core.store.write(move |tx| orders::claim_query_in(tx, &order_no, tx.now.minus(wait))).wait()
}

/// Compares a claim with the order.
///
/// # Errors
/// `invalid_parameters`.
pub fn check_claim(order: &Order, claim: &ClaimedPayment) -> Result<()> {
    let mut wrong = Vec::new();
    let mut require = |holds: bool, field: &str| {
        if !holds {
            wrong.push(Fault::new(FieldCode::UnknownValue, ("does not match the order", "与订单不符")).in_field(field));
        }
    };
    require(claim.amount.is_none_or(|amount| amount == order.amount), "amount");
    require(claim.coin_count.is_none_or(|count| count == order.coin_count), "coinCount");
    // After the credit a number changes nothing: apps make one up.
    let is_trade = |claimed: &String| {
        order.state == OrderState::Credited || order.trade_no.as_ref().is_none_or(|known| known == claimed)
    };
    require(claim.trade_no.as_ref().is_none_or(is_trade), "tradeNo");
    if wrong.is_empty() { Ok(()) } else { Err(Error::fields(wrong)) }
}

/// Applies a response to a query. A response that does not match the order goes to review, because it cannot be spam.
fn settle_by_answer_in(tx: &Write<'_>, trade: &Trade) -> Result<(Order, SettlementOutcome)> {
    let outcome = settle::apply_in(tx, trade)?;
    let order = orders::find_in(tx, &trade.order_no)?;
    let outcome = match (outcome.verdict, order.state) {
        (SettlementEffect::Rejected, OrderState::Review) => {
            SettlementOutcome { verdict: SettlementEffect::Review, ..outcome }
        }
        (SettlementEffect::Rejected, _) if settle::is_payment_recorded(&order, trade) => {
            SettlementEffect::Unchanged.into()
        }
        (SettlementEffect::Rejected, _) => {
            settle::review_rejected_in(tx, order, trade, outcome.reason.unwrap_or("rejected"))?
        }
        _ => outcome,
    };
    Ok((orders::find_in(tx, &trade.order_no)?, outcome))
}

fn check(payments: &Payments, order: Order) -> Result<()> {
    if order.state == OrderState::Paid {
        let order_no = order.order_no;
        return payments.core.store.write(move |tx| retry_credit_in(tx, &order_no)).wait();
    }
    let can_be_asked = payments.channels.find(&order.channel).is_some();
    let order = if can_be_asked { inquire(payments, &order.order_no)?.order } else { order };
    if order.state != OrderState::Created {
        return payments.core.store.write(move |tx| end_checks_in(tx, &order)).wait();
    }
    match next_check(payments, &order) {
        Some(at) => schedule(payments, &order.order_no, at).wait(),
        // The user may still open the payment screen, which the provider cannot prevent.
        None if payments.core.clock.now() < order.expires_at => {
            schedule(payments, &order.order_no, order.expires_at).wait()
        }
        None if payments.channels.can_serve(&order) => close(payments, &order),
        None => end_unreachable(payments, order).wait(),
    }
}

/// Ends an order whose provider can no longer be queried: with review where real money may be involved.
fn end_unreachable(payments: &Payments, order: Order) -> Pending<()> {
    payments.core.store.write(move |tx| {
        let order = orders::find_in(tx, &order.order_no)?;
        if order.state != OrderState::Created {
            return Ok(());
        }
        let order = Order { checks: order.checks + 1, ..order };
        match order.channel.as_str() {
            sandbox::PROVIDER => settle::close_in(tx, order).map(drop),
            _ => order_states::review_in(tx, order, order_states::NOT_CONFIGURED).map(drop),
        }
    })
}

fn retry_credit_in(tx: &Write<'_>, order_no: &str) -> Result<()> {
    let order = orders::find_in(tx, order_no)?;
    if order.state == OrderState::Paid {
        settle::credit_paid_in(tx, order)?;
    }
    Ok(())
}

/// Returns the time of the next scheduled query. Times that passed while the service was off are skipped.
fn next_check(payments: &Payments, order: &Order) -> Option<Timestamp> {
    let now = payments.core.clock.now();
    // An order with a future time, from a clock that was ahead, counts as created now.
    let begun = order.created_at.min(now);
    payments.core.config.payment.checks.iter().map(|age| begun.plus(*age)).find(|at| *at > now)
}

fn schedule(payments: &Payments, order_no: &str, at: Timestamp) -> Pending<()> {
    let order_no = order_no.to_owned();
    payments.core.store.write(move |tx| {
        let order = orders::find_in(tx, &order_no)?;
        if order.state != OrderState::Created {
            return Ok(());
        }
        orders::store_in(tx, &Order { checks: order.checks + 1, next_check_at: Some(at), ..order })
    })
}

/// Closes the order at the provider first, so that it cannot be paid there once it is closed here.
fn close(payments: &Payments, order: &Order) -> Result<()> {
    match payments.ask(order, |gateway, key| gateway.close(key))?? {
        CloseOutcome::Closed | CloseOutcome::NotFound => {
            let order_no = order.order_no.clone();
            let close = move |tx: &Write<'_>| {
                let order = orders::find_in(tx, &order_no)?;
                if order.state == OrderState::Created {
                    settle::close_in(tx, Order { checks: order.checks + 1, ..order })?;
                }
                Ok(())
            };
            payments.core.store.write(close).wait()
        }
        // It was paid or closed after the query, or the provider contradicts itself.
        CloseOutcome::NotClosable => {
            schedule(payments, &order.order_no, payments.core.clock.now().plus(RETRY_AFTER)).wait()
        }
    }
}

/// Ends the query that a report about a finished order asked for, unless another one did since.
fn end_checks_in(tx: &Write<'_>, checked: &Order) -> Result<()> {
    let order = orders::find_in(tx, &checked.order_no)?;
    let is_same = order.state != OrderState::Paid && order.next_check_at == checked.next_check_at;
    if is_same && order.next_check_at.is_some() {
        orders::store_in(tx, &Order { next_check_at: None, ..order })?;
    }
    Ok(())
}

fn postpone_in(tx: &Write<'_>, order_no: &str) -> Result<()> {
    let order = orders::find_in(tx, order_no)?;
    if order.next_check_at.is_none() {
        return Ok(());
    }
    orders::store_in(tx, &Order { next_check_at: Some(tx.now.plus(RETRY_AFTER)), ..order })
}
