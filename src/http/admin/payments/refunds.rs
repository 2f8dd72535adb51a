//! Refunds of orders.

use axum::http::StatusCode;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::AdminOrder;
use crate::{
    app::App,
    config::LimitsConfig,
    domain::money::payments::{
        orders,
        refunds::{self, RefundState, RefundedOrder},
    },
    error::{Fault, Result},
    http::{
        body::RawValue,
        params::{Parameter, Reason, Rules, parameters},
        reply::Replayable,
        request_context::RequestContext,
        request_meta::IdempotencyHeader,
        v0::payment::{OrderNo, YuanAmount},
    },
    types::{Fen, Timestamp, hex, sha256_of_parts},
};

parameters! {
    RefundOrderParams(fields) {
        order_no: OrderNo = fields.path("orderNo", "The order's number.");
        amount: Option<RefundAmount> = fields.optional("amount", "Amount to refund, in the order's currency. Default: everything not yet refunded.");
        refund_no: Option<OrderNo> = fields.optional("refundNo", "Refund number chosen by the caller. Each number refunds once.");
        reason: Reason = fields.required("reason", "Reason, stored in the audit event and shown to the buyer.");
    }
}

/// A refund of an order.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdminRefund {
    #[schema(example = "R0f1e2d3c4b5a69788796a5b4")]
    refund_no: String,
    /// Refunded amount, or the amount requested.
    #[schema(example = "1.50")]
    amount: String,
    #[schema(value_type = RefundState)]
    state: String,
    #[schema(example = "bought twice by mistake")]
    reason: String,
    #[schema(example = "admin:root")]
    actor: String,
    /// The provider's code of the last failure, or the operator's decision `credited` or `refunded_externally`.
    #[schema(example = "ACQ.SYSTEM_ERROR")]
    failure: Option<String>,
    created_at: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime, example = "2026-01-02T03:04:06.678Z")]
    finished_at: Option<Timestamp>,
}

impl From<refunds::Refund> for AdminRefund {
    fn from(refund: refunds::Refund) -> Self {
        Self {
            refund_no: refund.refund_no,
            amount: refund.amount.to_string(),
            state: refund.state.name().to_owned(),
            reason: refund.reason,
            actor: refund.actor,
            failure: refund.failure,
            created_at: refund.created_at,
            finished_at: refund.finished_at,
        }
    }
}

/// A refund, and the order after it.
#[derive(Serialize, ToSchema)]
pub struct OrderRefunded {
    refund: AdminRefund,
    order: AdminOrder,
}

impl From<&RefundedOrder> for OrderRefunded {
    fn from(done: &RefundedOrder) -> Self {
        Self { refund: done.refund.clone().into(), order: (&done.order).into() }
    }
}

pub async fn refund(context: RequestContext, refund: RefundOrderParams) -> Result<Replayable<OrderRefunded>> {
    let by = context.authority(Some(refund.reason.0))?;
    let refund_no = refund.refund_no.map(|OrderNo(number)| number);
    let spec = refunds::RefundRequestSpec {
        order_no: refund.order_no.0,
        amount: refund.amount.map(|RefundAmount(amount)| amount),
        refund_no: refund_no
            .or_else(|| context.idempotency.as_ref().map(|repeatable| number_of(&by.actor, repeatable))),
    };
    let user = orders::find(&context.app.payments, &spec.order_no)?.user;
    context.meta.subject.get_or_init(|| user);
    let operation = move |app: &App, once| refunds::refund(&app.payments, &spec, &by, once);
    context.blocking_once(StatusCode::OK, |done: &RefundedOrder| done.into(), operation).await
}

/// Derives the refund number from the caller's `Idempotency-Key`.
fn number_of(actor: &str, header: &IdempotencyHeader) -> String {
    let digest = sha256_of_parts(&[b"refund", actor.as_bytes(), header.value.as_bytes()]);
    format!("K{}", hex(&digest[..16]))
}

/// An amount to refund; more than zero.
pub struct RefundAmount(Fen);

impl Parameter for RefundAmount {
    fn read(value: &RawValue<'_>, rules: &Rules<'_>) -> Result<Self, Fault> {
        let YuanAmount(amount) = YuanAmount::read(value, rules)?;
        refunds::require_positive(amount).map(|()| Self(amount))
    }

    fn schema(limits: &LimitsConfig) -> Value {
        YuanAmount::schema(limits)
    }
}
