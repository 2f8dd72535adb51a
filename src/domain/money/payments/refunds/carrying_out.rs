//! Asking the provider for a refund, and for what became of one: for whoever asked, and by the job for what stayed
//! open.

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

/// The provider knows what became of a refund some seconds after it was asked for it, not at once.
const ASK_AFTER: Duration = Duration::from_secs(10);
/// How often the provider is asked about a refund whose outcome is unknown.
const ASK_AGAIN_AFTER: Duration = Duration::from_mins(10);

/// Asks what became of refunds whose outcome is unknown.
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

/// Asks the provider for the money's return, or first what became of an earlier request, and writes the outcome down.
pub(super) fn carry_out(payments: &Payments, refund: &Refund, by: &Authority) -> Result<()> {
    let may_have_happened =
        refund.failure.is_some() || !refund.asked_at.is_within(ASK_AFTER, payments.core.clock.now());
    let number = refund.refund_no.clone();
    if !payments.core.store.write(move |tx| note_asked_in(tx, &number)).wait()? {
        // It ended since it was read. What was refused may have been returned in another way by now.
        return Ok(());
    }
    let done = if may_have_happened { became_of(payments, refund) } else { Ok(None) };
    let done = match done {
        Ok(None) => request(payments, refund),
        // Repeating it moves nothing, and tells how much went back in all.
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

/// Why a refund is not known to have been done.
enum Undone {
    /// The provider will not do it.
    Refused(Failure),
    /// It may have been done, or may be done yet. A question about it that fails says nothing of the refund, whatever
    /// it fails of.
    Unknown(Failure),
}

/// The money moved.
#[derive(Clone, Copy)]
struct Done {
    /// All that went back for the order so far, if the provider said so.
    total: Option<Fen>,
}

/// Whether a refund that was asked for before took effect.
fn became_of(payments: &Payments, refund: &Refund) -> Result<Option<Done>, Undone> {
    let asked = payments.ask(&payments.core.clock, |gateway| gateway.query_refund(&refund.order_no, &refund.refund_no));
    let state = asked.map_err(Undone::Unknown)?;
    Ok(matches!(state, RefundState::Succeeded { .. }).then_some(Done { total: None }))
}

/// Asks for the money's return.
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
        // A repetition is answered so, too: then the provider knows the refund by now.
        RefundOutcome::Unconfirmed { total } => Ok(became_of(payments, refund)?.map(|_| Done { total })),
    }
}

/// False if the refund is not open any more.
fn note_asked_in(tx: &Write<'_>, refund_no: &str) -> Result<bool> {
    let asked = tx.execute(
        "update payment_refunds set asked_at = ?2 where refund_no = ?1 and state = 'requested'",
        (refund_no, tx.now.0),
    )?;
    Ok(asked == 1)
}

/// The provider will not do it.
pub(super) fn note_refusal_in(tx: &Write<'_>, refund_no: &str, code: &str) -> Result<()> {
    tx.execute(
        "update payment_refunds set failure = ?2, state = 'refused', finished_at = ?3 \
         where refund_no = ?1 and state = 'requested'",
        (refund_no, code, tx.now.0),
    )
    .map(drop)
}

/// It may have been done all the same, and is asked about again.
fn note_failure_in(tx: &Write<'_>, refund_no: &str, code: &str) -> Result<()> {
    tx.execute(
        "update payment_refunds set failure = ?2 where refund_no = ?1 and state = 'requested'",
        (refund_no, code),
    )
    .map(drop)
}

/// Marks the refund as done and carries its sum over to the order, unless a notification was faster. That the money
/// went is more than a refusal, which another request under the same number may have got in the meantime.
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
    // The provider also knows of what was returned without us.
    let told = done.total.unwrap_or(Fen::ZERO);
    let total = Fen::from_fen(sum).map_err(Error::internal)?.max(told).min(order.returnable());
    let full = total == order.returnable();
    // A notification may have told the sum already; it lets nothing out of review.
    if total < order.refunded || (total == order.refunded && !(full && order.state == OrderState::Review)) {
        return Ok(());
    }
    settle::refund_in(tx, order, total, full, ToldBy::Refund(by)).map(drop)
}
