//! Executes refunds at the provider, for the request of an operator and by the job for refunds with unknown outcome.

use std::time::Duration;

use super::{Refund, find_in, unheard_of_in};
use crate::domain::money::payments::Payments;
use crate::{
    domain::money::{
        ledger::Authority,
        payments::{
            orders,
            settle::{self, ToldBy},
        },
    },
    error::{Code, Error, Result},
    providers::{
        Failure,
        payment::{OrderState, RefundOutcome, RefundRequest, RefundState},
    },
    store::Write,
    types::Fen,
};

/// The provider knows the outcome of a refund only seconds after the request.
const ASK_AFTER: Duration = Duration::from_secs(10);
/// The interval of queries for a refund with unknown outcome.
const ASK_AGAIN_AFTER: Duration = Duration::from_mins(10);

/// Queries refunds with unknown outcome.
pub fn ask_about_open(payments: &Payments) -> Result<()> {
    let gateway = payments.gateway.as_ref();
    let open = payments.core.store.read(|tx| unheard_of_in(tx, gateway, tx.now.minus(ASK_AGAIN_AFTER)))?;
    for refund in open {
        if let Err(error) = carry_out(payments, &refund, &refund.authority()) {
            tracing::warn!(%error, refund_no = refund.refund_no, "a refund is still open");
        }
    }
    Ok(())
}

/// Requests a refund at the provider, after checking whether an earlier request succeeded, and stores the outcome.
pub(super) fn carry_out(payments: &Payments, refund: &Refund, by: &Authority) -> Result<()> {
    let may_have_happened =
        refund.failure.is_some() || !refund.asked_at.is_within(ASK_AFTER, payments.core.clock.now());
    let number = refund.refund_no.clone();
    if !payments.core.store.write(move |tx| note_asked_in(tx, &number)).wait()? {
        // It ended meanwhile. Repeating a refused refund could pay twice, if it was refunded elsewhere.
        return Ok(());
    }
    let done = if may_have_happened { became_of(payments, refund) } else { Ok(None) };
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
            payments.core.store.write(move |tx| note_failure_in(tx, &number, "unconfirmed")).wait()?;
            Err(Error::new(Code::ProviderTimeout).detail(still_open("The provider took it.", refund)))
        }
        Err(Undone::Refused(Failure { code, .. })) => {
            payments.core.store.write(move |tx| note_refusal_in(tx, &number, &code)).wait()
        }
        Err(Undone::Unknown(failure)) => {
            let code = failure.code.clone();
            payments.core.store.write(move |tx| note_failure_in(tx, &number, &code)).wait()?;
            let error = Error::from(failure);
            let detail = still_open(&error.detail, refund);
            Err(error.detail(detail))
        }
    }
}

fn still_open(why: &str, refund: &Refund) -> String {
    format!(
        "{why} The refund {} of {} yuan is not done yet: it is asked about again, and the same request goes on with it.",
        refund.refund_no, refund.amount
    )
}

/// The reason why a refund is not known to have succeeded.
enum Undone {
    /// The provider refused it.
    Refused(Failure),
    /// It may have succeeded or may still. A failed query says nothing about the refund.
    Unknown(Failure),
}

/// A successful refund.
#[derive(Clone, Copy)]
struct Done {
    /// The total refunded for the order, if the provider returned it.
    total: Option<Fen>,
}

/// Queries whether an earlier request succeeded.
fn became_of(payments: &Payments, refund: &Refund) -> Result<Option<Done>, Undone> {
    let asked = payments.ask(&payments.core.clock, |gateway| gateway.query_refund(&refund.order_no, &refund.refund_no));
    let state = asked.map_err(Undone::Unknown)?;
    Ok(matches!(state, RefundState::Succeeded { .. }).then_some(Done { total: None }))
}

/// Requests the refund.
fn request(payments: &Payments, refund: &Refund) -> Result<Option<Done>, Undone> {
    let request = RefundRequest {
        order_no: refund.order_no.clone(),
        refund_no: refund.refund_no.clone(),
        amount: refund.amount,
        reason: refund.reason.clone(),
    };
    let asked = payments.ask(&payments.core.clock, |gateway| gateway.refund(&request)).map_err(|failure| {
        let is_refused = failure.is_certainly_not_accepted() && !failure.is_retryable();
        if is_refused { Undone::Refused(failure) } else { Undone::Unknown(failure) }
    });
    match asked? {
        RefundOutcome::Moved { total } => Ok(Some(Done { total })),
        // The provider also responds so to a repeated request; then a query finds the refund.
        RefundOutcome::Unconfirmed { total } => Ok(became_of(payments, refund)?.map(|_| Done { total })),
    }
}

/// Returns false if the refund is no longer open.
fn note_asked_in(tx: &Write<'_>, refund_no: &str) -> Result<bool> {
    let asked = tx.execute(
        "update payment_refunds set asked_at = ?2 where refund_no = ?1 and state = 'requested'",
        (refund_no, tx.now.0),
    )?;
    Ok(asked == 1)
}

/// Stores that the provider refused the refund.
pub(super) fn note_refusal_in(tx: &Write<'_>, refund_no: &str, code: &str) -> Result<()> {
    tx.execute(
        "update payment_refunds set failure = ?2, state = 'refused', finished_at = ?3 \
         where refund_no = ?1 and state = 'requested'",
        (refund_no, code, tx.now.0),
    )
    .map(drop)
}

/// Stores the code of a failure after which the outcome is unknown.
fn note_failure_in(tx: &Write<'_>, refund_no: &str, code: &str) -> Result<()> {
    tx.execute(
        "update payment_refunds set failure = ?2 where refund_no = ?1 and state = 'requested'",
        (refund_no, code),
    )
    .map(drop)
}

/// Stores the success and adds the amount to the order, unless a callback did so already. Success overrides a refusal
/// that a parallel request under the same number received.
fn succeed_in(tx: &Write<'_>, refund_no: &str, done: Done, by: &Authority) -> Result<()> {
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
    // The provider's total includes refunds made outside this service.
    let told = done.total.unwrap_or(Fen::ZERO);
    let total = Fen::from_fen(sum).map_err(Error::internal)?.max(told).min(order.returnable());
    let full = total == order.returnable();
    // A callback may have recorded the total already. It does not end a review.
    if total < order.refunded || (total == order.refunded && !(full && order.state == OrderState::Review)) {
        return Ok(());
    }
    settle::refund_in(tx, order, total, full, ToldBy::Refund(by)).map(drop)
}
