//! `/admin/payments/callbacks`: callbacks from providers.

use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    domain::money::payments::{
        callbacks::{self, Callback, CallbackResult},
        settle::SettlementEffect,
    },
    error::Result,
    http::{
        numbered_page::NumberedPage,
        params::{PageNumber, PageSize, RowNumber, page, parameters},
        reply::Json,
        request_context::RequestContext,
        v0::payment::OrderNo,
    },
    types::Timestamp,
};

parameters! {
    ListCallbacksParams(fields) {
        order_no: Option<OrderNo> = fields.optional("orderNo", "Only those about this order.");
        verdict: Option<SettlementEffect> = fields.optional("verdict", "Only those with this verdict.");
        page: Option<PageNumber> = fields.optional("page", "Page number.");
        size: Option<PageSize> = fields.optional("size", "Callbacks on a page.");
    }

    CallbackParams(fields) {
        id: RowNumber = fields.path("id", "The callback's number.");
    }
}

/// A stored callback.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdminCallback {
    #[schema(example = "7")]
    id: String,
    #[schema(value_type = String, format = DateTime, example = "2026-01-02T03:05:05.678Z")]
    received_at: Timestamp,
    #[schema(example = "alipay")]
    channel: String,
    /// True if the provider's signature is valid. Otherwise the numbers are unverified.
    #[schema(example = true)]
    is_genuine: bool,
    #[schema(value_type = SettlementEffect)]
    verdict: String,
    #[schema(example = "wrong_amount")]
    reason: Option<String>,
    #[schema(example = "202601020123456789012345")]
    order_no: Option<String>,
    #[schema(example = "2026010222001400000000000001")]
    trade_no: Option<String>,
    #[schema(example = "2026010200222030505000000000001")]
    notify_id: Option<String>,
    /// The callback that was replayed.
    #[schema(example = "3")]
    replay_of: Option<String>,
    /// The body as received.
    #[schema(example = "notify_id=…&sign=…")]
    form: String,
}

impl From<Callback> for AdminCallback {
    fn from(callback: Callback) -> Self {
        Self {
            id: callback.id.to_string(),
            received_at: callback.received_at,
            channel: callback.channel,
            is_genuine: callback.is_genuine,
            verdict: callback.verdict,
            reason: callback.reason,
            order_no: callback.order_no,
            trade_no: callback.trade_no,
            notify_id: callback.notify_id,
            replay_of: callback.replay_of.map(|id| id.to_string()),
            form: String::from_utf8_lossy(&callback.form).into_owned(),
        }
    }
}

pub async fn list(context: RequestContext, params: ListCallbacksParams) -> Result<Json<NumberedPage<AdminCallback>>> {
    let page = page(&context, params.page, params.size);
    let filter =
        callbacks::CallbackFilter { order_no: params.order_no.map(|OrderNo(number)| number), verdict: params.verdict };
    let found = context.report(move |app| callbacks::list(&app.core, &filter, page)).await?;
    Ok(NumberedPage::of(page, found))
}

/// The result of replaying a callback.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallbackReceipt {
    /// The id of the new callback.
    #[schema(example = "8")]
    id: String,
    verdict: SettlementEffect,
    #[schema(example = "unknown_order")]
    reason: Option<String>,
    #[schema(example = "202601020123456789012345")]
    order_no: Option<String>,
    /// True if the provider would receive `success`.
    #[schema(example = true)]
    acknowledged: bool,
}

impl From<CallbackResult> for CallbackReceipt {
    fn from(receipt: CallbackResult) -> Self {
        let acknowledged = receipt.is_acknowledged();
        let CallbackResult { id, verdict, reason, order_no, .. } = receipt;
        Self { id: id.to_string(), verdict, reason, order_no, acknowledged }
    }
}

pub async fn replay(context: RequestContext, params: CallbackParams) -> Result<Json<CallbackReceipt>> {
    let receipt = context.committed(callbacks::replay(&context.app.payments, params.id.0)?).await?;
    Ok(Json(receipt.into()))
}
