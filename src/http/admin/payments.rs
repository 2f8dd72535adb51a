//! `/admin/payments`: orders, and decisions of administrators about them.

mod bills;
mod callbacks;
mod refunds;
mod report;

use axum::http::StatusCode;
use maud::html;
use serde::Serialize;
use utoipa::ToSchema;

pub use self::{
    bills::{BillList, CheckedBill, CheckedBills, check as check_bill},
    callbacks::{CallbackList, CallbackReceipt, replay},
    refunds::{OrderRefunded, refund},
    report::{PaymentReport, ReportSums, make as make_report},
};
use super::lists::StaffList;
use crate::{
    app::App,
    domain::{
        money::{
            ledger::{self, Asset, LedgerEntry},
            payments::{
                callbacks::Callback,
                decisions::{self, Decision},
                order::Order,
                order_details,
                order_states::{SettlementEffect, SettlementOutcome},
                orders::{self, AmountRange, OrderFilter},
                reconcile::{self, Inquiry},
                refunds::Refund,
                sandbox::{self, Delivery, TestPayment},
            },
        },
        operations::admins::roles::{Right, Role},
    },
    error::{Code, Error, Result},
    http::{
        console::views::{
            cells::Column,
            context::{ViewContext, href},
            forms::{self, Control},
            layout::Place,
            list_page::{FilterField, Frame},
            lists::Bulk,
            pages::rows,
            texts::Text,
        },
        params::{Flag, Reason, Rules, TimeRange, optional_time_range, parameters},
        payment_channel::ChannelName,
        reply::{Json, Replayable},
        request_context::RequestContext,
        v0::payment::{OrderNo, YuanAmount},
    },
    providers::payment::{OrderState, Trade, TradeStatus},
    types::{PageRequest, Paginated, Timestamp, UserId},
};

parameters! {
    ListOrdersParams(fields) {
        user_id: Option<UserId> = fields.optional("userId", "Only orders of this user.");
        amount: Option<YuanAmount> = fields.optional("amount", "Only orders with this price, in any currency.");
        min_amount: Option<YuanAmount> = fields.optional("minAmount", "Only orders with this price or a higher one, in any currency.");
        max_amount: Option<YuanAmount> = fields.optional("maxAmount", "Only orders with this price or a lower one, in any currency.");
        time: TimeRange = optional_time_range(fields, "Orders created at this time or later.", "Orders created before this time; a whole day is included.");
        state: Option<OrderState> = {
            let state = fields.optional("state", "Only orders in this state.");
            let status = fields.optional("status", "Alias of `state`.");
            fields.cross_field(state.zip(status), one_state)
        };
    }

    OrderParams(fields) {
        order_no: OrderNo = fields.path("orderNo", "The order's number, or the provider's.");
    }

    SettleOrderParams(fields) {
        order_no: OrderNo = fields.path("orderNo", "The order's number.");
        decision: Decision = fields.required("decision", "`credit` posts the coins; `write-off` closes the order unchanged; `claw-back` takes back the owed coins; `refunded-externally` records that all the money was refunded outside the service.");
        reason: Reason = fields.required("reason", "Reason, stored in the audit event.");
    }

    SandboxPayParams(fields) {
        order_no: OrderNo = fields.path("orderNo", "The order's number.");
        late: Option<Flag> = fields.optional("late", "Pay even if the order has expired.");
        lost: Option<Flag> = fields.optional("lost", "Pay, but drop the callback.");
    }
}

/// An order as operators see it. Amounts are in its currency, with two decimals.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdminOrder {
    #[schema(example = "202601020123456789012345")]
    order_no: String,
    user_id: UserId,
    /// The gateway that it was made with.
    #[schema(value_type = ChannelName)]
    channel: String,
    /// The provider's application id of the order, if known.
    #[schema(example = "2021000000000001")]
    app_id: Option<String>,
    #[schema(example = "6.00")]
    amount: String,
    #[schema(example = "CNY")]
    currency: String,
    #[schema(example = "coins_60")]
    product_id: String,
    /// The version of the product whose terms the order has; 0 for a product of the settings.
    #[schema(example = 0)]
    product_version: u32,
    asset: Asset,
    /// Coins or points that it brings, without bonus.
    #[schema(example = 60)]
    coin_count: u32,
    /// The name that the buyer sees.
    #[schema(example = "60 coins")]
    subject: String,
    state: OrderState,
    /// The order's state.
    status: OrderState,
    /// The reason for the review. Once it was decided, the reason of the decision, for owners only.
    #[schema(example = "second_trade")]
    reason: Option<String>,
    #[schema(example = "2026010222001400000000000001")]
    trade_no: Option<String>,
    /// The amount received, which may differ from the price.
    #[schema(example = "6.00")]
    paid: String,
    #[schema(example = "0.00")]
    refunded: String,
    /// Coins clawed back for it.
    #[schema(example = 0)]
    coins_returned: i64,
    /// Coins that could not be clawed back and were written off.
    #[schema(example = 0)]
    coins_written_off: i64,
    /// The bonus that was given.
    #[schema(example = 0)]
    bonus_credited: i64,
    /// Bonus clawed back for it.
    #[schema(example = 0)]
    bonus_returned: i64,
    /// Bonus that could not be clawed back and was written off.
    #[schema(example = 0)]
    bonus_written_off: i64,
    /// Number of scheduled checks with the provider.
    #[schema(example = 0)]
    checks: u32,
    #[schema(value_type = Option<String>, format = DateTime, example = "2026-01-02T03:09:05.678Z")]
    next_check_at: Option<Timestamp>,
    created_at: Timestamp,
    #[schema(value_type = String, format = DateTime, example = "2026-01-02T03:34:05.678Z")]
    expires_at: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime, example = "2026-01-02T03:05:05.678Z")]
    paid_at: Option<Timestamp>,
    #[schema(value_type = Option<String>, format = DateTime, example = "2026-01-02T03:05:06.678Z")]
    credited_at: Option<Timestamp>,
    #[schema(value_type = Option<String>, format = DateTime, example = "2026-01-03T04:04:05.678Z")]
    closed_at: Option<Timestamp>,
    #[schema(value_type = Option<String>, format = DateTime, example = "2026-01-04T03:04:05.678Z")]
    refunded_at: Option<Timestamp>,
}

impl From<&Order> for AdminOrder {
    fn from(order: &Order) -> Self {
        order.clone().into()
    }
}

impl From<Order> for AdminOrder {
    fn from(order: Order) -> Self {
        Self {
            order_no: order.order_no,
            user_id: order.user,
            channel: order.channel,
            app_id: order.app_id,
            amount: order.amount.to_string(),
            currency: order.currency.to_string(),
            product_id: order.product_id,
            product_version: order.product_version,
            asset: order.asset,
            coin_count: order.coin_count,
            subject: order.subject,
            state: order.state,
            status: order.state,
            reason: order.reason,
            trade_no: order.trade_no,
            paid: order.paid.to_string(),
            refunded: order.refunded.to_string(),
            coins_returned: order.coins_returned,
            coins_written_off: order.coins_written_off,
            bonus_credited: order.bonus_credited,
            bonus_returned: order.bonus_returned,
            bonus_written_off: order.bonus_written_off,
            checks: order.checks,
            next_check_at: order.next_check_at,
            created_at: order.created_at,
            expires_at: order.expires_at,
            paid_at: order.paid_at,
            credited_at: order.credited_at,
            closed_at: order.closed_at,
            refunded_at: order.refunded_at,
        }
    }
}

pub struct OrderList;

impl StaffList for OrderList {
    type Params = ListOrdersParams;
    /// The filter, and the role that sees the orders.
    type Filter = (OrderFilter, Role);
    type Row = Order;

    const PLACE: Place = Place::Orders;
    const EMPTY: Text = Text::NoOrders;
    const COLUMNS: &'static [Column<Order>] = rows::ORDER;

    fn fields(_: &ViewContext) -> Vec<FilterField> {
        let [from, to] = FilterField::range(Text::From, Text::To);
        vec![
            FilterField::new("state", Text::State)
                .choice(OrderState::ALL)
                .tabs([OrderState::Review, OrderState::Refunded]),
            FilterField::new("userId", Text::UserId),
            FilterField::new("minAmount", Text::MinAmount).control(Control::Decimal),
            FilterField::new("maxAmount", Text::MaxAmount).control(Control::Decimal),
            from,
            to,
        ]
    }

    fn filter(context: &RequestContext, params: ListOrdersParams) -> Result<(OrderFilter, Role)> {
        context.name_subject(params.user_id);
        let price = |amount: Option<YuanAmount>| amount.map(|amount| amount.0);
        let filter = OrderFilter {
            user: params.user_id,
            state: params.state,
            amount: AmountRange::new(price(params.amount), price(params.min_amount), price(params.max_amount)),
            from: params.time.start,
            to: params.time.end,
        };
        Ok((filter, context.admin()?.role()))
    }

    fn read(app: &App, (filter, role): &(OrderFilter, Role), page: PageRequest) -> Result<Paginated<Order>> {
        let mut found = orders::list(&app.core, *filter, page)?;
        found.items = found.items.into_iter().map(|order| order.seen_by(*role)).collect();
        Ok(found)
    }

    fn frame(cx: &ViewContext, _: &App, _: Option<&(OrderFilter, Role)>) -> Result<Frame> {
        let beside = html! {
            a.button href=(href("orders/bills")) { (cx.t(Text::Bills)) }
            a.button href=(href("orders/callbacks")) { (cx.t(Text::Callbacks)) }
        };
        let controls = html! {
            (forms::reason(cx, "bulk", "", None))
            button.button.primary type="submit" name="act" value="query" { (cx.t(Text::AskProvider)) }
        };
        let bulk = cx.may(Right::SupportUsers).then(|| Bulk { action: href("orders/bulk"), controls });
        Ok(Frame { beside, bulk, ..Frame::default() })
    }

    fn pick(order: &Order) -> Option<String> {
        Some(order.order_no.clone())
    }
}

fn one_state(_: &Rules<'_>, (state, status): (Option<OrderState>, Option<OrderState>)) -> Result<Option<OrderState>> {
    match (state, status) {
        (Some(state), Some(status)) if state != status => {
            let detail = (
                "`status` is another name of `state`, and was given with another value.",
                "`status` 与 `state` 相同，但两者的值不同。",
            );
            Err(Error::new(Code::ConflictingParameter).detail(detail))
        }
        _ => Ok(state.or(status)),
    }
}

/// A ledger entry of the order.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OrderEntry {
    #[schema(example = 41)]
    seq: i64,
    kind: ledger::EntryKind,
    #[schema(example = 60)]
    delta: i64,
    #[schema(example = 60)]
    balance_after: i64,
    #[schema(value_type = String, format = DateTime, example = "2026-01-02T03:05:06.678Z")]
    created_at: Timestamp,
}

impl From<LedgerEntry> for OrderEntry {
    fn from(entry: LedgerEntry) -> Self {
        let LedgerEntry { seq, kind, delta, balance_after, created_at, .. } = entry;
        Self { seq, kind, delta, balance_after, created_at }
    }
}

/// An order with its entries, refunds and callbacks.
#[derive(Serialize, ToSchema)]
pub struct AdminOrderFile {
    order: AdminOrder,
    refunds: Vec<Refund>,
    /// The newest callbacks about it.
    callbacks: Vec<Callback>,
    entries: Vec<OrderEntry>,
    /// The user's coins now.
    #[schema(example = 60)]
    balance: i64,
}

pub async fn show(context: RequestContext, params: OrderParams) -> Result<Json<AdminOrderFile>> {
    let file = order_details::find(&context.app.payments, &params.order_no.0)?;
    context.meta.subject.get_or_init(|| file.order.user);
    Ok(Json(AdminOrderFile {
        balance: ledger::balance(&context.app.core, file.order.user, Asset::Coin)?,
        order: file.order.seen_by(context.admin()?.role()).into(),
        refunds: file.refunds,
        callbacks: file.callbacks,
        entries: file.entries.into_iter().map(Into::into).collect(),
    }))
}

/// The provider's report about an order.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderTrade {
    #[schema(example = "2026010222001400000000000001")]
    trade_no: String,
    status: TradeStatus,
    #[schema(example = "6.00")]
    amount: String,
}

impl From<Trade> for ProviderTrade {
    fn from(trade: Trade) -> Self {
        Self { trade_no: trade.trade_no, status: trade.status, amount: trade.amount.to_string() }
    }
}

/// The provider's response, and its effect on the order.
#[derive(Serialize, ToSchema)]
pub struct OrderInquiry {
    order: AdminOrder,
    /// Null if the buyer never opened the payment screen.
    trade: Option<ProviderTrade>,
    verdict: SettlementEffect,
    #[schema(example = "wrong_amount")]
    reason: Option<&'static str>,
}

impl From<Inquiry> for OrderInquiry {
    fn from(inquiry: Inquiry) -> Self {
        let SettlementOutcome { verdict, reason } = inquiry.outcome;
        let trade = inquiry.trade.map(Into::into);
        Self { order: inquiry.order.into(), trade, verdict, reason }
    }
}

pub async fn query(context: RequestContext, params: OrderParams) -> Result<Json<OrderInquiry>> {
    let inquiry = context.blocking(move |app| reconcile::inquire(&app.payments, &params.order_no.0)).await?;
    context.meta.subject.get_or_init(|| inquiry.order.user);
    let order = inquiry.order.seen_by(context.admin()?.role());
    Ok(Json(Inquiry { order, ..inquiry }.into()))
}

pub async fn settle(context: RequestContext, settle: SettleOrderParams) -> Result<Replayable<AdminOrder>> {
    let by = context.authority(Some(settle.reason.0))?;
    let OrderNo(order_no) = settle.order_no;
    let user = orders::find(&context.app.payments, &order_no)?.user;
    context.meta.subject.get_or_init(|| user);
    let decision = settle.decision;
    let operation = |app: &App, once| decisions::settle(&app.payments, &order_no, decision, by, once);
    context.respond_once(StatusCode::OK, |order: &Order| AdminOrder::from(order), operation).await
}

/// The result of a sandbox payment.
#[derive(Serialize, ToSchema)]
pub struct Rehearsed {
    order: AdminOrder,
    /// The response to the callback; null if the callback was dropped.
    #[schema(example = "success")]
    answer: Option<String>,
}

impl From<sandbox::TestPaymentResult> for Rehearsed {
    fn from(done: sandbox::TestPaymentResult) -> Self {
        Self { order: done.order.into(), answer: done.answer }
    }
}

pub async fn sandbox_pay(context: RequestContext, pay: SandboxPayParams) -> Result<Json<Rehearsed>> {
    let is_set = |flag: Option<Flag>| flag.is_some_and(|Flag(flag)| flag);
    let delivery = if is_set(pay.lost) { Delivery::Lost } else { Delivery::Here };
    let payment = TestPayment { late: is_set(pay.late), delivery };
    let done = context.blocking(move |app| sandbox::pay(&app.payments, &pay.order_no.0, &payment)).await?;
    Ok(Json(done.into()))
}
