//! Executes refunds at the provider, for the request of an operator and by the job for refunds with unknown outcome.

use std::time::Duration;

use super::records::{REFUND_CLOSED, Refund, RefundState, due_for_query_in, find_in, succeeded_sum_in};
use crate::domain::money::payments::Payments;
use crate::{
    domain::money::{
        ledger::Authority,
        payments::{
            order::Order,
            order_states, orders,
            settle::{self, RefundSource},
        },
    },
    error::{Code, Error, Result},
    providers::{
        Failure,
        payment::{OrderState, PaymentGateway, RefundOutcome, RefundQueryOutcome, RefundRequest, ReviewReason},
    },
    store::Write,
    types::{Fen, Locale},
};

/// The provider knows the outcome of a refund only seconds after the request.
const QUERY_DELAY: Duration = Duration::from_secs(10);
/// The interval of queries for a refund with unknown outcome.
const QUERY_INTERVAL: Duration = Duration::from_mins(10);

/// Queries refunds with unknown outcome.
pub fn query_open(payments: &Payments) -> Result<()> {
    let due = |gateway: &dyn PaymentGateway| {
        payments.core.store.read(|tx| due_for_query_in(tx, gateway, tx.now.minus(QUERY_INTERVAL)))
    };
    let open = payments.channels.all().map(|channel| due(channel.gateway.as_ref())).collect::<Result<Vec<_>>>()?;
    for refund in open.into_iter().flatten() {
        if let Err(error) = execute(payments, &refund, &refund.authority()) {
            tracing::warn!(%error, refund_no = refund.refund_no, "the outcome of a refund is still unknown");
        }
    }
    Ok(())
}

/// Requests a refund at the provider, after checking whether an earlier request succeeded, and stores the outcome.
pub(super) fn execute(payments: &Payments, refund: &Refund, by: &Authority) -> Result<()> {
    let order = orders::find(payments, &refund.order_no)?;
    let may_have_happened = refund.failure.is_some()
        || refund.state != RefundState::Requested
        || !refund.asked_at.is_within(QUERY_DELAY, payments.core.clock.now());
    let number = refund.refund_no.clone();
    if !payments.core.store.write(move |tx| mark_queried_in(tx, &number)).wait()? {
        // It ended meanwhile. Repeating a refused refund could pay twice, if it was refunded elsewhere.
        return Ok(());
    }
    let known = if may_have_happened { query_outcome(payments, &order, refund)? } else { Ok(RefundProgress::Unknown) };
    let progress = match known {
        Ok(RefundProgress::Unknown) if !refund.is_of_provider() => request(payments, &order, refund)?,
        // Repeating the request moves no money and returns the total refunded.
        Ok(RefundProgress::Succeeded(known)) if !refund.is_of_provider() => {
            Ok(match request(payments, &order, refund)? {
                Ok(RefundProgress::Succeeded(repeated)) => RefundProgress::Succeeded(repeated),
                _ => RefundProgress::Succeeded(known),
            })
        }
        other => other,
    };
    store_progress(payments, refund, by, progress)
}

/// Stores the outcome of a refund request or query.
fn store_progress(
    payments: &Payments,
    refund: &Refund,
    by: &Authority,
    progress: Result<RefundProgress, RefundFailure>,
) -> Result<()> {
    let (number, authority) = (refund.refund_no.clone(), by.clone());
    let store = &payments.core.store;
    match progress {
        Ok(RefundProgress::Succeeded(done)) => store.write(move |tx| succeed_in(tx, &number, done, &authority)).wait(),
        Ok(RefundProgress::Processing) => store.write(move |tx| store_processing_in(tx, &number)).wait(),
        Ok(RefundProgress::Abnormal) => store.write(move |tx| store_abnormal_in(tx, &number)).wait(),
        Ok(RefundProgress::Closed) => store.write(move |tx| store_refusal_in(tx, &number, REFUND_CLOSED)).wait(),
        Ok(RefundProgress::Unknown) => {
            store.write(move |tx| store_failure_in(tx, &number, "unconfirmed")).wait()?;
            Err(Error::new(Code::ProviderTimeout)
                .detail(still_open(("The provider accepted it.", "支付渠道已受理。"), refund)))
        }
        Err(RefundFailure::Refused(Failure { code, .. })) => {
            store.write(move |tx| store_refusal_in(tx, &number, &code)).wait()
        }
        Err(RefundFailure::Unknown(failure)) => {
            let code = failure.code.clone();
            store.write(move |tx| store_failure_in(tx, &number, &code)).wait()?;
            let error = Error::from(failure);
            let reason = (error.detail_in(Locale::English), error.detail_in(Locale::Chinese));
            let detail = still_open(reason, refund);
            Err(error.detail(detail))
        }
    }
}

fn still_open((english, chinese): (&str, &str), refund: &Refund) -> (String, String) {
    let (number, amount) = (&refund.refund_no, refund.amount);
    (
        format!(
            "{english} The refund {number} of {amount} is still open and will be checked again. Repeat the request to \
             continue it."
        ),
        format!("{chinese}退款 {number}（{amount}）尚未完成，系统将再次查询。重新提交请求可继续。"),
    )
}

/// The reason why a refund is not known to have succeeded.
enum RefundFailure {
    /// The provider refused it.
    Refused(Failure),
    /// It may have succeeded or may still. A failed query says nothing about the refund.
    Unknown(Failure),
}

/// The state of a refund at the provider.
enum RefundProgress {
    Succeeded(RefundSuccess),
    Processing,
    Abnormal,
    Closed,
    /// The provider has not confirmed it or does not know it.
    Unknown,
}

/// A successful refund.
#[derive(Clone, Copy)]
pub(super) struct RefundSuccess {
    /// The total refunded for the order, if the provider returned it.
    total: Option<Fen>,
    /// The amount of this refund, if the provider returned it.
    amount: Option<Fen>,
}

/// Queries whether an earlier request succeeded.
fn query_outcome(payments: &Payments, order: &Order, refund: &Refund) -> Result<Result<RefundProgress, RefundFailure>> {
    let asked = payments.ask(order, |gateway, key| gateway.query_refund(key, &refund.refund_no))?;
    Ok(asked.map_err(RefundFailure::Unknown).map(|outcome| match outcome {
        RefundQueryOutcome::Succeeded { amount } => {
            RefundProgress::Succeeded(RefundSuccess { total: None, amount: Some(amount) })
        }
        RefundQueryOutcome::Processing => RefundProgress::Processing,
        RefundQueryOutcome::Abnormal => RefundProgress::Abnormal,
        RefundQueryOutcome::Closed => RefundProgress::Closed,
        RefundQueryOutcome::NotFound | RefundQueryOutcome::Unconfirmed => RefundProgress::Unknown,
    }))
}

/// Requests the refund.
fn request(payments: &Payments, order: &Order, refund: &Refund) -> Result<Result<RefundProgress, RefundFailure>> {
    let request = RefundRequest {
        order_no: refund.order_no.clone(),
        refund_no: refund.refund_no.clone(),
        amount: refund.amount,
        reason: refund.reason.clone(),
    };
    let asked = payments.ask(order, |gateway, key| gateway.refund(&request, key))?;
    let failed = |failure: Failure| {
        let is_refused = failure.is_certainly_not_accepted() && !failure.is_retryable();
        if is_refused { RefundFailure::Refused(failure) } else { RefundFailure::Unknown(failure) }
    };
    Ok(match asked {
        Ok(RefundOutcome::Moved { total }) => Ok(RefundProgress::Succeeded(RefundSuccess { total, amount: None })),
        // The provider also responds so to a repeated request; then a query finds the refund.
        Ok(RefundOutcome::Unconfirmed { total }) => query_outcome(payments, order, refund)?.map(|found| match found {
            RefundProgress::Succeeded(known) => RefundProgress::Succeeded(RefundSuccess { total, ..known }),
            other => other,
        }),
        Ok(RefundOutcome::Processing) => Ok(RefundProgress::Processing),
        Ok(RefundOutcome::Closed) => Ok(RefundProgress::Closed),
        Ok(RefundOutcome::Abnormal) => Ok(RefundProgress::Abnormal),
        Err(failure) => Err(failed(failure)),
    })
}

/// Returns false if the refund is no longer open.
fn mark_queried_in(tx: &Write<'_>, refund_no: &str) -> Result<bool> {
    let asked = tx.execute(
        "update payment_refunds set asked_at = ?2 where refund_no = ?1 and finished_at is null",
        (refund_no, tx.now.0),
    )?;
    Ok(asked == 1)
}

/// Stores that the provider refused the refund.
pub(super) fn store_refusal_in(tx: &Write<'_>, refund_no: &str, code: &str) -> Result<()> {
    tx.execute(
        "update payment_refunds set failure = ?2, state = 'refused', finished_at = ?3 \
         where refund_no = ?1 and finished_at is null",
        (refund_no, code, tx.now.0),
    )
    .map(drop)
}

/// Stores that the provider carries the refund out.
pub(super) fn store_processing_in(tx: &Write<'_>, refund_no: &str) -> Result<()> {
    tx.execute(
        "update payment_refunds set state = 'processing', failure = null where refund_no = ?1 and finished_at is null",
        [refund_no],
    )
    .map(drop)
}

/// Stores that the money could not be delivered, and moves the order to review, because an operator must act.
pub(super) fn store_abnormal_in(tx: &Write<'_>, refund_no: &str) -> Result<()> {
    let changed = tx.execute(
        "update payment_refunds set state = 'abnormal', failure = 'abnormal' \
         where refund_no = ?1 and finished_at is null and state <> 'abnormal'",
        [refund_no],
    )?;
    if changed == 0 {
        return Ok(());
    }
    let refund = find_in(tx, refund_no)?.ok_or(Code::NotFound)?;
    let order = orders::find_in(tx, &refund.order_no)?;
    order_states::ensure_review_in(tx, order, order_states::REFUND_ABNORMAL).map(drop)
}

/// Stores the code of a failure after which the outcome is unknown.
fn store_failure_in(tx: &Write<'_>, refund_no: &str, code: &str) -> Result<()> {
    tx.execute(
        "update payment_refunds set failure = ?2 where refund_no = ?1 and finished_at is null",
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
    let known = succeeded_sum_in(tx, &refund.order_no)?;
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
        order_states::review_in(tx, order, ReviewReason::RefundExceedsAmount.name())?;
    }
    Ok(())
}
