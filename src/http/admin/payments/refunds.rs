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
        refunds::{self, Refund, RefundedOrder},
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
    types::{Fen, hex, sha256_of_parts},
};

parameters! {
    RefundOrderParams(fields) {
        order_no: OrderNo = fields.path("orderNo", "The order's number.");
        amount: Option<RefundAmount> = fields.optional("amount", "Amount to refund, in the order's currency. Default: everything not yet refunded.");
        refund_no: Option<OrderNo> = fields.optional("refundNo", "Refund number chosen by the caller. Each number refunds once.");
        reason: Reason = fields.required("reason", "Reason, stored in the audit event and shown to the buyer.");
    }
}

/// A refund, and the order after it.
#[derive(Serialize, ToSchema)]
pub struct OrderRefunded {
    refund: Refund,
    order: AdminOrder,
}

impl From<&RefundedOrder> for OrderRefunded {
    fn from(done: &RefundedOrder) -> Self {
        Self { refund: done.refund.clone(), order: (&done.order).into() }
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
    // The provider may refund although this process is killed before it gets the reply.
    context.record_start().await?;
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
