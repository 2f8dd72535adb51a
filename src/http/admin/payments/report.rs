//! `/admin/payments/report`: the reconciliation of orders, money and coins.

use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    domain::money::{
        payments::report::{self, Difference, Sums},
        purchases::report::{PurchaseGroup, PurchaseSums},
    },
    error::Result,
    http::{
        params::{TimeRange, parameters, required_time_range},
        reply::Json,
        request_context::RequestContext,
    },
    providers::payment::OrderState,
    types::{Currency, Date, Fen, Timestamp},
};

parameters! {
    PaymentReportParams(fields) {
        time: TimeRange = required_time_range(fields, "Orders created at this time or later.", "Orders created before this time; a whole day is included.");
    }
}

/// Numbers and sums over orders. Amounts are yuan with two decimals.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportSums {
    #[schema(example = 12)]
    orders: u64,
    /// Paid orders.
    #[schema(example = 9)]
    paid: u64,
    #[schema(example = 9)]
    credited: u64,
    /// Orders refunded in part or in full.
    #[schema(example = 1)]
    refunded: u64,
    #[schema(example = 1)]
    open: u64,
    #[schema(example = 2)]
    closed: u64,
    #[schema(example = 0)]
    in_review: u64,
    #[schema(example = "54.00")]
    amount_paid: String,
    #[schema(example = "6.00")]
    amount_refunded: String,
    /// With bonus, like the following numbers.
    #[schema(example = 540)]
    coins_credited: i64,
    #[schema(example = 60)]
    coins_returned: i64,
    #[schema(example = 0)]
    coins_written_off: i64,
    #[schema(example = 0)]
    points_credited: i64,
    #[schema(example = 0)]
    points_returned: i64,
    #[schema(example = 0)]
    points_written_off: i64,
}

impl From<&Sums> for ReportSums {
    fn from(sums: &Sums) -> Self {
        let yuan = |fen: i64| Fen::from_fen(fen).unwrap_or(Fen::ZERO).to_string();
        Self {
            orders: sums.orders,
            paid: sums.paid,
            credited: sums.credited,
            refunded: sums.refunded,
            open: sums.open,
            closed: sums.closed,
            in_review: sums.in_review,
            amount_paid: yuan(sums.amount_paid),
            amount_refunded: yuan(sums.amount_refunded),
            coins_credited: sums.coins.credited,
            coins_returned: sums.coins.returned,
            coins_written_off: sums.coins.written_off,
            points_credited: sums.points.credited,
            points_returned: sums.points.returned,
            points_written_off: sums.points.written_off,
        }
    }
}

/// The orders of one day.
#[derive(Serialize, ToSchema)]
pub struct ReportDay {
    #[schema(example = "2026-01-02")]
    day: String,
    #[serde(flatten)]
    sums: ReportSums,
}

/// The orders of one channel and currency, with amounts in that currency.
#[derive(Serialize, ToSchema)]
pub struct ReportChannel {
    #[schema(example = "alipay")]
    channel: String,
    #[schema(example = "CNY")]
    currency: String,
    #[serde(flatten)]
    sums: ReportSums,
}

/// An order whose money and coins do not agree, or an entry without its order.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportDifference {
    /// `credit_missing`, `credit_unpaid`, `credit_wrong`, `bonus_wrong`, `returns_wrong`, `coins_owed`, `refund_unpaid` if more was refunded than paid, or `order_missing` and `purchase_missing` for coins posted without one.
    #[schema(example = "credit_missing")]
    code: &'static str,
    /// The order, or the reference of a purchase in an app store.
    #[schema(example = "202601020123456789012345")]
    order_no: String,
    /// Null where there is no such order.
    state: Option<OrderState>,
    #[schema(example = 60)]
    coins_expected: i64,
    #[schema(example = 0)]
    coins_found: i64,
}

impl From<&Difference> for ReportDifference {
    fn from(found: &Difference) -> Self {
        Self {
            code: found.code,
            order_no: found.order_no.clone(),
            state: found.state,
            coins_expected: found.coins_expected,
            coins_found: found.coins_found,
        }
    }
}

/// The purchases of one product in one app store and currency. Purchases in a sandbox are not counted.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportPurchases {
    #[schema(example = "apple")]
    store: &'static str,
    /// Null where the store does not tell the price.
    #[schema(example = "CNY")]
    currency: Option<String>,
    #[schema(example = "coins_60")]
    product_id: String,
    #[schema(example = 3)]
    purchases: u64,
    /// Purchases refunded in part or in full.
    #[schema(example = 1)]
    refunded: u64,
    /// The prices, in thousandths of the currency.
    #[schema(example = 18000)]
    amount_milli: i64,
    /// The refunded share of the prices.
    #[schema(example = 6000)]
    amount_refunded_milli: i64,
    /// Coins or points with bonus, like the following numbers.
    #[schema(example = 180)]
    credited: i64,
    #[schema(example = 60)]
    returned: i64,
    #[schema(example = 0)]
    written_off: i64,
}

impl From<(&PurchaseGroup, &PurchaseSums)> for ReportPurchases {
    fn from((group, sums): (&PurchaseGroup, &PurchaseSums)) -> Self {
        Self {
            store: group.store.name(),
            currency: Some(group.currency.clone()).filter(|currency| !currency.is_empty()),
            product_id: group.product_id.clone(),
            purchases: sums.purchases,
            refunded: sums.refunded,
            amount_milli: sums.amount_milli,
            amount_refunded_milli: sums.amount_refunded_milli,
            credited: sums.credited,
            returned: sums.returned,
            written_off: sums.written_off,
        }
    }
}

/// The reconciliation of orders, money and coins.
#[derive(Serialize, ToSchema)]
pub struct PaymentReport {
    #[schema(value_type = String, format = DateTime, example = "2026-01-01T16:00:00.000Z")]
    from: Timestamp,
    #[schema(value_type = String, format = DateTime, example = "2026-01-31T16:00:00.000Z")]
    to: Timestamp,
    total: ReportSums,
    days: Vec<ReportDay>,
    /// Purchases in app stores, which are not in the sums.
    purchases: Vec<ReportPurchases>,
    /// By channel and currency. Amounts of `total` and `days` are those in yuan.
    channels: Vec<ReportChannel>,
    differences: Vec<ReportDifference>,
}

impl From<&report::OrderReport> for PaymentReport {
    fn from(report: &report::OrderReport) -> Self {
        let day = |(day, sums): (&Date, &Sums)| ReportDay { day: day.to_string(), sums: sums.into() };
        let of_channel = |((channel, currency), sums): (&(String, Currency), &Sums)| ReportChannel {
            channel: channel.clone(),
            currency: currency.to_string(),
            sums: sums.into(),
        };
        Self {
            from: report.from,
            to: report.to,
            total: (&report.total).into(),
            days: report.days.iter().map(day).collect(),
            purchases: report.purchases.groups.iter().map(Into::into).collect(),
            channels: report.channels.iter().map(of_channel).collect(),
            differences: report.differences.iter().map(Into::into).collect(),
        }
    }
}

pub async fn make(context: RequestContext, between: PaymentReportParams) -> Result<Json<PaymentReport>> {
    let (from, to) = (between.time.from(), between.time.to());
    let report = context.report(move |app| report::report(&app.payments, from, to)).await?;
    Ok(Json((&report).into()))
}
