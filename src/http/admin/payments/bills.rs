//! `/admin/payments/bill`: the providers' bills against our records.

use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    domain::money::payments::bills::{self, BillCheck, BillDifference, BillDifferenceCode},
    error::Result,
    http::{
        admin::figures::FigureDay,
        numbered_page::NumberedPage,
        params::{PageNumber, PageSize, page, parameters},
        payment_channel::ChannelName,
        reply::Json,
        request_context::RequestContext,
    },
    types::Timestamp,
};

parameters! {
    CheckBillParams(fields) {
        day: FigureDay = fields.required("day", "The day in Shanghai, before today.");
        channel: Option<ChannelName> = fields.optional("channel", "Only the bill of this channel.");
    }

    ListBillsParams(fields) {
        page: Option<PageNumber> = fields.optional("page", "Page number.");
        size: Option<PageSize> = fields.optional("size", "Bills on a page.");
    }
}

/// The checked bills of a day.
#[derive(Serialize, ToSchema)]
pub struct CheckedBills {
    bills: Vec<CheckedBill>,
}

/// A checked bill. Amounts are yuan.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckedBill {
    #[schema(example = "alipay")]
    channel: String,
    #[schema(example = "2026-01-02")]
    day: String,
    #[schema(value_type = String, format = DateTime, example = "2026-01-03T02:00:05.678Z")]
    checked_at: Timestamp,
    #[schema(example = 9)]
    payments: u32,
    #[schema(example = 1)]
    refunds: u32,
    #[schema(example = "54.00")]
    amount_paid: String,
    #[schema(example = "6.00")]
    amount_refunded: String,
    /// The provider's fees, less those given back.
    #[schema(example = "0.32400")]
    fees: String,
    differences: Vec<BilledDifference>,
}

/// A difference between the bill and our records.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BilledDifference {
    code: BillDifferenceCode,
    #[schema(example = "202601020123456789012345")]
    order_no: String,
    /// Set for a refund.
    #[schema(example = "R0123456789abcdef01234567")]
    refund_no: Option<String>,
    /// The amount on the bill.
    #[schema(example = "6.00")]
    billed: Option<String>,
    /// The amount in our records.
    #[schema(example = "5.99")]
    recorded: Option<String>,
}

impl From<Vec<BillCheck>> for CheckedBills {
    fn from(checks: Vec<BillCheck>) -> Self {
        Self { bills: checks.into_iter().map(Into::into).collect() }
    }
}

impl From<BillCheck> for CheckedBill {
    fn from(check: BillCheck) -> Self {
        Self {
            channel: check.channel,
            day: check.day.to_string(),
            checked_at: check.checked_at,
            payments: check.payments,
            refunds: check.refunds,
            amount_paid: check.amount_paid.to_string(),
            amount_refunded: check.amount_refunded.to_string(),
            fees: check.fees,
            differences: check.differences.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<BillDifference> for BilledDifference {
    fn from(found: BillDifference) -> Self {
        Self {
            code: found.code,
            order_no: found.order_no,
            refund_no: found.refund_no,
            billed: found.billed.map(|amount| amount.to_string()),
            recorded: found.recorded.map(|amount| amount.to_string()),
        }
    }
}

pub async fn list(context: RequestContext, params: ListBillsParams) -> Result<Json<NumberedPage<CheckedBill>>> {
    let page = page(&context, params.page, params.size);
    let found = context.report(move |app| bills::list(&app.core, page)).await?;
    Ok(NumberedPage::of(page, found))
}

pub async fn check(context: RequestContext, params: CheckBillParams) -> Result<Json<CheckedBills>> {
    let channel = params.channel.map(|ChannelName(name)| name);
    let day = params.day.0;
    let checked = context.blocking(move |app| bills::check(&app.payments, channel.as_deref(), day)).await?;
    Ok(Json(checked.into()))
}
