//! `/admin/payments/bill`: the providers' bills against our records.

use maud::html;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    app::App,
    domain::money::payments::bills::{self, BillCheck, BillDifference, BillDifferenceCode},
    error::Result,
    http::{
        admin::{figures::FigureDay, lists::StaffList},
        console::views::{
            cells::Column,
            context::{ViewContext, href},
            layout::Place,
            list_page::Frame,
            pages::bills as view,
            texts::Text,
        },
        params::{Nothing, parameters},
        payment_channel::ChannelName,
        reply::Json,
        request_context::RequestContext,
    },
    types::{PageRequest, Paginated, Timestamp},
};

parameters! {
    CheckBillParams(fields) {
        day: FigureDay = fields.required("day", "The day in Shanghai, before today.");
        channel: Option<ChannelName> = fields.optional("channel", "Only the bill of this channel.");
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

pub struct BillList;

impl StaffList for BillList {
    type Params = Nothing;
    type Filter = ();
    type Row = BillCheck;

    const PLACE: Place = Place::Orders;
    const TITLE: Text = Text::Bills;
    const EMPTY: Text = Text::NoBills;
    const COLUMNS: &'static [Column<BillCheck>] = view::BILL;

    fn filter(_: &RequestContext, _: Nothing) -> Result<()> {
        Ok(())
    }

    fn read(app: &App, (): &(), page: PageRequest) -> Result<Paginated<BillCheck>> {
        bills::list(&app.core, page)
    }

    fn frame(cx: &ViewContext, app: &App, _: Option<&()>) -> Result<Frame> {
        let channels = app.payments.channels.all().filter(|channel| channel.gateway.has_bills());
        let channels: Vec<_> = channels.map(|channel| channel.gateway.name()).collect();
        let beside = html! { a.button href=(href("orders?state=review")) { (cx.t(Text::OrdersInReview)) } };
        Ok(Frame { beside, above: view::check(cx, &channels), ..Frame::default() })
    }
}

pub async fn check(context: RequestContext, params: CheckBillParams) -> Result<Json<CheckedBills>> {
    let channel = params.channel.map(|ChannelName(name)| name);
    let day = params.day.0;
    let checked = context.blocking(move |app| bills::check(&app.payments, channel.as_deref(), day)).await?;
    Ok(Json(checked.into()))
}
