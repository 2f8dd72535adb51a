//! Executes refunds at the provider, for the request of an operator and by the job for refunds with unknown outcome.

use std::time::Duration;

use super::{Refund, due_for_query_in, find_in};
use crate::domain::money::payments::Payments;
use crate::{
    domain::money::{
        ledger::Authority,
        payments::{
            orders,
            settle::{self, RefundSource},
        },
    },
    error::{Code, Error, Result},
    providers::{
        Failure,
        payment::{OrderState, RefundOutcome, RefundQueryOutcome, RefundRequest, ReviewReason},
    },
    store::Write,
    types::Fen,
};

/// The provider knows the outcome of a refund only seconds after the request.
const QUERY_DELAY: Duration = Duration::from_secs(10);
/// The interval of queries for a refund with unknown outcome.
const QUERY_INTERVAL: Duration = Duration::from_mins(10);

/// Queries refunds with unknown outcome.
pub fn query_open(payments: &Payments) -> Result<()> {
    let gateway = payments.gateway.as_ref();
    let open = payments.core.store.read(|tx| due_for_query_in(tx, gateway, tx.now.minus(QUERY_INTERVAL)))?;
    for refund in open {
        if let Err(error) = execute(payments, &refund, &refund.authority()) {
            tracing::warn!(%error, refund_no = refund.refund_no, "the outcome of a refund is still unknown");
        }
    }
    Ok(())
}

/// Requests a refund at the provider, after checking whether an earlier request succeeded, and stores the outcome.
pub(super) fn execute(payments: &Payments, refund: &Refund, by: &Authority) -> Result<()> {
    let may_have_happened =
        refund.failure.is_some() || !refund.asked_at.is_within(QUERY_DELAY, payments.core.clock.now());
    let number = refund.refund_no.clone();
    if !payments.core.store.write(move |tx| mark_queried_in(tx, &number)).wait()? {
        // It ended meanwhile. Repeating a refused refund could pay twice, if it was refunded elsewhere.
        return Ok(());
    }
    let done = if may_have_happened { query_outcome(payments, refund) } else { Ok(None) };
    let done = match done {
        Ok(None) => request(payments, refund),
        // Repeating the request moves no money and returns the total refunded.
        Ok(Some(known)) => Ok(request(payments, refund).ok().flatten().or(Some(known))),
        unknown => unknown,
    };
    let (number, authority) = (refund.refund_no.clone(), by.clone());
    match done {
        Ok(Some(done)) => payments.core.store.write(move |tx| succeed_in(tx, &number, done, &authority)).wait(),
        Ok(None) => {
            payments.core.store.write(move |tx| store_failure_in(tx, &number, "unconfirmed")).wait()?;
            Err(Error::new(Code::ProviderTimeout).detail(still_open("The provider accepted it.", refund)))
        }
        Err(RefundFailure::Refused(Failure { code, .. })) => {
            payments.core.store.write(move |tx| store_refusal_in(tx, &number, &code)).wait()
        }
        Err(RefundFailure::Unknown(failure)) => {
            let code = failure.code.clone();
            payments.core.store.write(move |tx| store_failure_in(tx, &number, &code)).wait()?;
            let error = Error::from(failure);
            let detail = still_open(&error.detail, refund);
            Err(error.detail(detail))
        }
    }
}

fn still_open(reason: &str, refund: &Refund) -> String {
    format!(
        "{reason} The refund {} of {} yuan is still open and will be checked again. Repeat the request to continue it.",
        refund.refund_no, refund.amount
    )
}

/// The reason why a refund is not known to have succeeded.
enum RefundFailure {
    /// The provider refused it.
    Refused(Failure),
    /// It may have succeeded or may still. A failed query says nothing about the refund.
    Unknown(Failure),
}

/// A successful refund.
#[derive(Clone, Copy)]
struct RefundSuccess {
    /// The total refunded for the order, if the provider returned it.
    total: Option<Fen>,
    /// The amount of this refund, if the provider returned it.
    amount: Option<Fen>,
}

/// Queries whether an earlier request succeeded.
fn query_outcome(payments: &Payments, refund: &Refund) -> Result<Option<RefundSuccess>, RefundFailure> {
    let asked = payments.ask(&payments.core.clock, |gateway| gateway.query_refund(&refund.order_no, &refund.refund_no));
    let state = asked.map_err(RefundFailure::Unknown)?;
    Ok(match state {
        RefundQueryOutcome::Succeeded { amount } => Some(RefundSuccess { total: None, amount: Some(amount) }),
        _ => None,
    })
}

/// Requests the refund.
fn request(payments: &Payments, refund: &Refund) -> Result<Option<RefundSuccess>, RefundFailure> {
    let request = RefundRequest {
        order_no: refund.order_no.clone(),
        refund_no: refund.refund_no.clone(),
        amount: refund.amount,
        reason: refund.reason.clone(),
    };
    let asked = payments.ask(&payments.core.clock, |gateway| gateway.refund(&request)).map_err(|failure| {
        let is_refused = failure.is_certainly_not_accepted() && !failure.is_retryable();
        if is_refused { RefundFailure::Refused(failure) } else { RefundFailure::Unknown(failure) }
    });
    match asked? {
        RefundOutcome::Moved { total } => Ok(Some(RefundSuccess { total, amount: None })),
        // The provider also responds so to a repeated request; then a query finds the refund.
        RefundOutcome::Unconfirmed { total } => {
            Ok(query_outcome(payments, refund)?.map(|known| RefundSuccess { total, ..known }))
        }
    }
}

/// Returns false if the refund is no longer open.
fn mark_queried_in(tx: &Write<'_>, refund_no: &str) -> Result<bool> {
    let asked = tx.execute(
        "update payment_refunds set asked_at = ?2 where refund_no = ?1 and state = 'requested'",
        (refund_no, tx.now.0),
    )?;
    Ok(asked == 1)
}

/// Stores that the provider refused the refund.
pub(super) fn store_refusal_in(tx: &Write<'_>, refund_no: &str, code: &str) -> Result<()> {
    tx.execute(
        "update payment_refunds set failure = ?2, state = 'refused', finished_at = ?3 \
         where refund_no = ?1 and state = 'requested'",
        (refund_no, code, tx.now.0),
    )
    .map(drop)
}

/// Stores the code of a failure after which the outcome is unknown.
fn store_failure_in(tx: &Write<'_>, refund_no: &str, code: &str) -> Result<()> {
    tx.execute(
        "update payment_refunds set failure = ?2 where refund_no = ?1 and state = 'requested'",
        (refund_no, code),
    )
    .map(drop)
}

/// Stores the success and adds the amount to the order, unless a callback did so already. Success overrides a refusal
/// that a parallel request under the same number received.
fn succeed_in(tx: &Write<'_>, refund_no: &str, done: RefundSuccess, by: &Authority) -> Result<()> {
    let changed = tx.execute(
        "update payment_refunds set state = 'succeeded', failure = null, finished_at = ?2 \
         where refund_no = ?1 and state <> 'succeeded'",
        (refund_no, tx.now.0),
    )?;
    let refund = find_in(tx, refund_no)?.ok_or(Code::NotFound)?;
    if changed == 0 {
        return Ok(());
    }
    let order = orders::find_in(tx, &refund.order_no)?;
    let sum: i64 = tx.one(
        "select coalesce(sum(amount_fen), 0) from payment_refunds where order_no = ?1 and state = 'succeeded'",
        [&refund.order_no],
        |row| row.get(0),
    )?;
    let known = Fen::from_fen(sum).map_err(Error::internal)?;
    // The provider's total includes refunds made outside this service, but never more than was paid.
    let reported = done.total.unwrap_or(Fen::ZERO);
    let is_absurd = reported > order.returnable() || done.amount.is_some_and(|amount| amount != refund.amount);
    let total = if is_absurd { known } else { known.max(reported) }.min(order.returnable());
    let full = total == order.returnable();
    // A callback may have recorded the total already. It does not end a review.
    let is_recorded =
        total < order.refunded || (total == order.refunded && !(full && order.state == OrderState::Review));
    if !is_recorded {
        settle::refund_in(tx, order, total, full, RefundSource::Refund(by))?;
    }
    if is_absurd {
        let order = orders::find_in(tx, &refund.order_no)?;
        settle::review_in(tx, order, ReviewReason::RefundExceedsAmount.name())?;
    }
    Ok(())
}
