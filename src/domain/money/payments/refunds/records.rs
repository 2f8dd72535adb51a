//! Stored refunds.

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{
    core::Core,
    domain::money::{ledger::Authority, payments::order::Order},
    error::{Error, Result},
    providers::payment::PaymentGateway,
    store::{Read, Row, RowError, RowResult, Write},
    types::{Fen, Timestamp, as_text, named_enum},
};

/// The stored reason of a refund that the provider closed: it did not happen.
pub(super) const REFUND_CLOSED: &str = "refund_closed";

/// Selects the columns that [`refund_row`] reads.
macro_rules! select_refunds {
    ($rest:literal) => {
        concat!(
            "select refund_no, order_no, amount_fen, state, reason, actor, failure, asked_at, created_at, finished_at \
             from payment_refunds ",
            $rest
        )
    };
}

named_enum! {
    /// The state of a refund.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum RefundState {
        /// The outcome is not known yet.
        Requested = "requested",
        Succeeded = "succeeded",
        /// The provider refused it. It can be requested again.
        Refused = "refused",
        /// The provider carries it out and reports its end later.
        Processing = "processing",
        /// The money has left our account and could not be delivered. An operator must act at the provider.
        Abnormal = "abnormal",
    }
}

impl RefundState {
    /// Returns true if the refund may still succeed.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Requested | Self::Processing | Self::Abnormal)
    }
}

/// A refund of an order.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = AdminRefund)]
#[serde(rename_all = "camelCase")]
pub struct Refund {
    #[schema(example = "R0f1e2d3c4b5a69788796a5b4")]
    pub refund_no: String,
    #[serde(skip)]
    pub order_no: String,
    /// Refunded amount, or the amount requested.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = String, example = "1.50")]
    pub amount: Fen,
    pub state: RefundState,
    #[schema(example = "bought twice by mistake")]
    pub reason: String,
    #[schema(example = "admin:root")]
    pub actor: String,
    /// The provider's code of the last failure, or the operator's decision `credited` or `refunded_externally`.
    #[schema(example = "ACQ.SYSTEM_ERROR")]
    pub failure: Option<String>,
    #[serde(skip)]
    pub asked_at: Timestamp,
    pub created_at: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime, example = "2026-01-02T03:04:06.678Z")]
    pub finished_at: Option<Timestamp>,
}

impl Refund {
    /// Returns the refund for the user's export.
    pub(in crate::domain::money::payments) fn exported(&self) -> Value {
        json!({
            "amount": self.amount.to_string(),
            "state": self.state.name(),
            "createdAt": self.created_at,
            "finishedAt": self.finished_at,
        })
    }

    /// Returns true if the provider ended it without moving money. Its number is used up there.
    pub(super) fn has_failed(&self) -> bool {
        self.state == RefundState::Refused && self.failure.as_deref() == Some(REFUND_CLOSED)
    }

    /// Returns true if it was made at the provider's console.
    pub(super) fn is_of_provider(&self) -> bool {
        self.actor == PROVIDER_ACTOR
    }

    /// Returns the operator who requested it.
    pub(super) fn authority(&self) -> Authority {
        Authority { actor: self.actor.clone(), reason: self.reason.clone(), request_id: self.refund_no.clone() }
    }
}

/// The actor of refunds that were made at the provider's console.
pub(super) const PROVIDER_ACTOR: &str = "provider";

/// Lists the refunds of an order, oldest first.
pub fn of_order(core: &Core, order_no: &str) -> Result<Vec<Refund>> {
    core.store.read(|tx| of_order_in(tx, order_no))
}

pub(in crate::domain::money::payments) fn of_order_in(tx: &Read<'_>, order_no: &str) -> Result<Vec<Refund>> {
    tx.all(select_refunds!("where order_no = ?1 order by created_at"), [order_no], refund_row)
}

/// Returns the successful refunds that no response has reported yet, oldest first.
pub(super) fn unreported_in(tx: &Read<'_>, order_no: &str) -> Result<Vec<Refund>> {
    tx.all(
        select_refunds!("where order_no = ?1 and state = 'succeeded' and told_at is null order by created_at"),
        [order_no],
        refund_row,
    )
}

/// Records that a response reports the refund.
pub(super) fn mark_reported_in(tx: &Write<'_>, refund_no: &str) -> Result<()> {
    tx.execute("update payment_refunds set told_at = coalesce(told_at, ?2) where refund_no = ?1", (refund_no, tx.now.0))
        .map(drop)
}

/// Returns the open refund of an order.
pub(super) fn open_in(tx: &Read<'_>, order_no: &str) -> Result<Option<Refund>> {
    tx.first(
        select_refunds!("where order_no = ?1 and finished_at is null order by created_at limit 1"),
        [order_no],
        refund_row,
    )
}

/// Returns open refunds of this gateway that were not queried since, oldest query first.
pub(super) fn due_for_query_in(tx: &Read<'_>, gateway: &dyn PaymentGateway, since: Timestamp) -> Result<Vec<Refund>> {
    tx.all(
        select_refunds!(
            "where finished_at is null and (asked_at <= ?1 or asked_at > ?2) and exists (select 1 \
             from payment_orders where order_no = payment_refunds.order_no and channel = ?3 \
             and (app_id is null or app_id = ?4)) \
             order by asked_at limit 50"
        ),
        (since.0, tx.now.0, gateway.name(), gateway.app_id()),
        refund_row,
    )
}

/// Returns the operator of the order's open refund, if the refunded total covers it.
pub(in crate::domain::money::payments) fn authority_for_in(
    tx: &Read<'_>,
    order: &Order,
    total: Fen,
) -> Result<Option<Authority>> {
    let open = open_in(tx, &order.order_no)?;
    let is_covered = |refund: &Refund| order.refunded.checked_add(refund.amount).is_some_and(|sum| sum <= total);
    Ok(open.filter(|refund| !refund.is_of_provider() && is_covered(refund)).map(|refund| refund.authority()))
}

/// Returns our successful refunds that were requested in `[from, to)`, of the channel's orders.
pub(in crate::domain::money::payments) fn succeeded_between_in(
    tx: &Read<'_>,
    channel: &str,
    from: Timestamp,
    to: Timestamp,
) -> Result<Vec<Refund>> {
    tx.all(
        select_refunds!(
            "where created_at >= ?1 and created_at < ?2 and state = 'succeeded' and actor <> 'provider' \
             and exists (select 1 from payment_orders where order_no = payment_refunds.order_no and channel = ?3)"
        ),
        (from.0, to.0, channel),
        refund_row,
    )
}

/// Returns the sum of an order's successful refunds.
pub(super) fn succeeded_sum_in(tx: &Read<'_>, order_no: &str) -> Result<Fen> {
    let sum: i64 = tx.one(
        "select coalesce(sum(amount_fen), 0) from payment_refunds where order_no = ?1 and state = 'succeeded'",
        [order_no],
        |row| row.get(0),
    )?;
    Fen::from_fen(sum).map_err(Error::internal)
}

pub(super) fn find_in(tx: &Read<'_>, refund_no: &str) -> Result<Option<Refund>> {
    tx.first(select_refunds!("where refund_no = ?1"), [refund_no], refund_row)
}

fn refund_row(row: &Row<'_>) -> RowResult<Refund> {
    let amount: i64 = row.get(2)?;
    Ok(Refund {
        refund_no: row.get(0)?,
        order_no: row.get(1)?,
        amount: Fen::from_fen(amount).map_err(|_| RowError::Invalid)?,
        state: row.get_parsed(3, RefundState::from_name)?,
        reason: row.get(4)?,
        actor: row.get(5)?,
        failure: row.get(6)?,
        asked_at: Timestamp(row.get(7)?),
        created_at: Timestamp(row.get(8)?),
        finished_at: row.get::<Option<i64>>(9)?.map(Timestamp),
    })
}
