//! `/admin/payments`: orders, what came in about them, and what a person decides.

use axum::http::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{
    app::App,
    config::Limits,
    error::{Fault, FieldCode, Result},
    http::{
        body::Given,
        call::{Call, Repeatable},
        numbered_page::NumberedPage,
        params::{Flag, Moment, PageNumber, PageSize, Parameter, Reason, Rules, page, parameters, text},
        reply::{Json, Replayable},
        v0::payment::{Amount, OrderNo},
    },
    ops::{
        ledger::{self, Asset, Entry},
        payment::{
            callbacks::{self, Callback, Receipt},
            orders::{self, Order},
            reconcile,
            refunds::{self, Refunded},
            report::{self, Difference, Sums},
            sandbox::{self, Delivery, Rehearsal},
            settle::{self, Decision, Outcome, Verdict},
        },
    },
    providers::payment::{OrderState, Trade},
    types::{Fen, Timestamp, UserId, hex, in_order, sha256_of_parts},
};

parameters! {
    ListOrders {
        user_id: optional UserId = "userId", "Only orders of this user.";
        state: optional OrderState = "state", "Only orders in this state.";
        page: optional PageNumber = "page", "Number of the page.";
        size: optional PageSize = "size", "Orders on a page.";
    }

    OfOrder {
        order_no: path OrderNo = "orderNo", "The order's number, or the provider's.";
    }

    Settle {
        order_no: path OrderNo = "orderNo", "The order's number.";
        decision: required Decision = "decision", "`credit` gives the coins; `dismiss` leaves the order as it is.";
        reason: required Reason = "reason", "Why, for the audit.";
    }

    GiveBack {
        order_no: path OrderNo = "orderNo", "The order's number.";
        amount: optional Amount = "amount", "Yuan to return; everything that is left if it is not said.";
        refund_no: optional OrderNo = "refundNo", "A number of the caller's own choice: under one number money goes back once.";
        reason: required Reason = "reason", "Why, for the audit and for the buyer.";
    }

    SandboxPay {
        order_no: path OrderNo = "orderNo", "The order's number.";
        late: optional Flag = "late", "Pay although the time for it has passed.";
        lost: optional Flag = "lost", "Pay, and let the notification be lost.";
    }

    ListCallbacks {
        order_no: optional OrderNo = "orderNo", "Only those about this order.";
        verdict: optional Verdict = "verdict", "Only those with this verdict.";
        page: optional PageNumber = "page", "Number of the page.";
        size: optional PageSize = "size", "Callbacks on a page.";
    }

    OfCallback {
        id: path CallbackId = "id", "The callback's number.";
    }

    Between {
        from: required Moment = "from", "Orders made at this time or later.";
        to: required Moment = "to", "Orders made before this time.";
    }
}

/// An order as operators see it. Amounts are yuan with two decimals.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdminOrder {
    #[schema(example = "202601020123456789012345")]
    order_no: String,
    #[schema(value_type = String, example = "10001")]
    user_id: UserId,
    /// The gateway that it was made with.
    #[schema(example = "alipay")]
    channel: String,
    #[schema(example = "6.00")]
    amount: String,
    #[schema(example = 60)]
    coin_count: u32,
    /// `created`, `paid`, `credited`, `closed`, `refunded` or `review`.
    #[schema(example = "credited")]
    state: &'static str,
    /// Why a person must look, or how a person settled it.
    #[schema(example = "second_trade")]
    reason: Option<String>,
    #[schema(example = "2026010222001400000000000001")]
    trade_no: Option<String>,
    #[schema(example = "0.00")]
    refunded: String,
    /// Coins taken back for it.
    #[schema(example = 0)]
    coins_returned: i64,
    /// Coins that should have been taken back and that somebody let go.
    #[schema(example = 0)]
    coins_written_off: i64,
    /// Times that the provider was asked on schedule.
    #[schema(example = 0)]
    checks: u32,
    #[schema(value_type = Option<String>, format = DateTime, example = "2026-01-02T03:09:05.678Z")]
    next_check_at: Option<Timestamp>,
    #[schema(value_type = String, format = DateTime, example = "2026-01-02T03:04:05.678Z")]
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
            amount: order.amount.to_string(),
            coin_count: order.coin_count,
            state: order.state.name(),
            reason: order.reason,
            trade_no: order.trade_no,
            refunded: order.refunded.to_string(),
            coins_returned: order.coins_returned,
            coins_written_off: order.coins_written_off,
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

pub async fn list(call: Call, of: ListOrders) -> Result<Json<NumberedPage<AdminOrder>>> {
    let page = page(&call, of.page, of.size);
    if let Some(user) = of.user_id {
        call.context.subject.get_or_init(|| user);
    }
    let filter = orders::Filter { user: of.user_id, state: of.state };
    let found = call.blocking(move |app| orders::list(app, filter, page)).await?;
    Ok(NumberedPage::of(page, found))
}

/// Money that went back, or was to.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdminRefund {
    #[schema(example = "R0f1e2d3c4b5a69788796a5b4")]
    refund_no: String,
    #[schema(example = "1.50")]
    amount: String,
    /// `requested`, `succeeded` or `refused`.
    #[schema(example = "succeeded")]
    state: String,
    #[schema(example = "bought twice by mistake")]
    reason: String,
    #[schema(example = "admin:root")]
    actor: String,
    /// The provider's code of the last failure.
    #[schema(example = "ACQ.SYSTEM_ERROR")]
    failure: Option<String>,
    #[schema(value_type = String, format = DateTime, example = "2026-01-02T03:04:05.678Z")]
    created_at: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime, example = "2026-01-02T03:04:06.678Z")]
    finished_at: Option<Timestamp>,
}

impl From<refunds::Refund> for AdminRefund {
    fn from(refund: refunds::Refund) -> Self {
        Self {
            refund_no: refund.refund_no,
            amount: refund.amount.to_string(),
            state: refund.state,
            reason: refund.reason,
            actor: refund.actor,
            failure: refund.failure,
            created_at: refund.created_at,
            finished_at: refund.finished_at,
        }
    }
}

/// A notification as it was kept.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdminCallback {
    #[schema(example = 7)]
    id: i64,
    #[schema(value_type = String, format = DateTime, example = "2026-01-02T03:05:05.678Z")]
    received_at: Timestamp,
    #[schema(example = "alipay")]
    channel: String,
    /// The provider signed it. Otherwise its numbers are claims.
    #[schema(example = true)]
    is_genuine: bool,
    /// `credited`, `paid`, `closed`, `refunded`, `unchanged`, `review` or `rejected`.
    #[schema(example = "credited")]
    verdict: String,
    #[schema(example = "wrong_amount")]
    reason: Option<String>,
    #[schema(example = "202601020123456789012345")]
    order_no: Option<String>,
    #[schema(example = "2026010222001400000000000001")]
    trade_no: Option<String>,
    #[schema(example = "2026010200222030505000000000001")]
    notify_id: Option<String>,
    /// The callback of which this is another judgement.
    #[schema(example = 3)]
    replay_of: Option<i64>,
    /// The body as it came.
    #[schema(example = "notify_id=…&sign=…")]
    form: String,
}

impl From<Callback> for AdminCallback {
    fn from(callback: Callback) -> Self {
        Self {
            id: callback.id,
            received_at: callback.received_at,
            channel: callback.channel,
            is_genuine: callback.is_genuine,
            verdict: callback.verdict,
            reason: callback.reason,
            order_no: callback.order_no,
            trade_no: callback.trade_no,
            notify_id: callback.notify_id,
            replay_of: callback.replay_of,
            form: String::from_utf8_lossy(&callback.form).into_owned(),
        }
    }
}

/// What an order did to the user's coins.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OrderEntry {
    #[schema(example = 41)]
    seq: i64,
    #[schema(example = "topup")]
    kind: &'static str,
    #[schema(example = 60)]
    delta: i64,
    #[schema(example = 60)]
    balance_after: i64,
    #[schema(value_type = String, format = DateTime, example = "2026-01-02T03:05:06.678Z")]
    created_at: Timestamp,
}

impl From<Entry> for OrderEntry {
    fn from(entry: Entry) -> Self {
        let Entry { seq, kind, delta, balance_after, created_at, .. } = entry;
        Self { seq, kind: kind.name(), delta, balance_after, created_at }
    }
}

/// Everything that is known of an order.
#[derive(Serialize, ToSchema)]
pub struct AdminOrderFile {
    order: AdminOrder,
    refunds: Vec<AdminRefund>,
    /// The newest notifications about it.
    callbacks: Vec<AdminCallback>,
    entries: Vec<OrderEntry>,
    /// The user's coins now.
    #[schema(example = 60)]
    balance: i64,
}

pub async fn show(call: Call, of: OfOrder) -> Result<Json<AdminOrderFile>> {
    let file = orders::file(&call.app, &of.order_no.0)?;
    call.context.subject.get_or_init(|| file.order.user);
    Ok(Json(AdminOrderFile {
        balance: ledger::balance(&call.app, file.order.user, Asset::Coin)?,
        order: file.order.into(),
        refunds: file.refunds.into_iter().map(Into::into).collect(),
        callbacks: file.callbacks.into_iter().map(Into::into).collect(),
        entries: file.entries.into_iter().map(Into::into).collect(),
    }))
}

/// What the provider says of an order.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderTrade {
    #[schema(example = "2026010222001400000000000001")]
    trade_no: String,
    #[schema(example = "TRADE_SUCCESS")]
    status: &'static str,
    #[schema(example = "6.00")]
    amount: String,
}

impl From<Trade> for ProviderTrade {
    fn from(trade: Trade) -> Self {
        Self { trade_no: trade.trade_no, status: trade.status.as_str(), amount: trade.amount.to_string() }
    }
}

/// What the provider answered, and what that led to.
#[derive(Serialize, ToSchema)]
pub struct OrderInquiry {
    order: AdminOrder,
    /// Nothing if the buyer never opened the payment screen.
    trade: Option<ProviderTrade>,
    /// `credited`, `paid`, `closed`, `refunded`, `unchanged` or `review`.
    #[schema(example = "credited")]
    verdict: &'static str,
    #[schema(example = "wrong_amount")]
    reason: Option<&'static str>,
}

pub async fn query(call: Call, of: OfOrder) -> Result<Json<OrderInquiry>> {
    let inquiry = call.blocking(move |app| reconcile::inquire(app, &of.order_no.0)).await?;
    call.context.subject.get_or_init(|| inquiry.order.user);
    let Outcome { verdict, reason } = inquiry.outcome;
    let trade = inquiry.trade.map(Into::into);
    Ok(Json(OrderInquiry { order: inquiry.order.into(), trade, verdict: verdict.name(), reason }))
}

pub async fn settle(call: Call, settle: Settle) -> Result<Replayable<AdminOrder>> {
    let by = call.authority(Some(settle.reason.0))?;
    let OrderNo(order_no) = settle.order_no;
    let user = orders::find(&call.app, &order_no)?.user;
    call.context.subject.get_or_init(|| user);
    let decision = settle.decision;
    let operation = |app: &App, once| settle::settle(app, &order_no, decision, by, once);
    call.answer_once(StatusCode::OK, |order: &Order| AdminOrder::from(order), operation).await
}

/// A refund, and the order as it left it.
#[derive(Serialize, ToSchema)]
pub struct OrderRefunded {
    refund: AdminRefund,
    order: AdminOrder,
}

impl From<&Refunded> for OrderRefunded {
    fn from(done: &Refunded) -> Self {
        Self { refund: done.refund.clone().into(), order: (&done.order).into() }
    }
}

pub async fn refund(call: Call, refund: GiveBack) -> Result<Replayable<OrderRefunded>> {
    let by = call.authority(Some(refund.reason.0))?;
    let refund_no = refund.refund_no.map(|OrderNo(number)| number);
    let wish = refunds::Wish {
        order_no: refund.order_no.0,
        amount: refund.amount.map(|Amount(amount)| amount),
        refund_no: refund_no.or_else(|| call.repeatable.as_ref().map(|repeatable| number_of(&by.actor, repeatable))),
    };
    let user = orders::find(&call.app, &wish.order_no)?.user;
    call.context.subject.get_or_init(|| user);
    let operation = move |app: &App, once| refunds::refund(app, &wish, &by, once);
    call.blocking_once(StatusCode::OK, |done: &Refunded| done.into(), operation).await
}

/// The refund number that a caller's `Idempotency-Key` stands for.
fn number_of(actor: &str, repeatable: &Repeatable) -> String {
    let digest = sha256_of_parts(&[b"refund", actor.as_bytes(), repeatable.key.as_bytes()]);
    format!("K{}", hex(&digest[..16]))
}

/// What came of a rehearsed payment.
#[derive(Serialize, ToSchema)]
pub struct Rehearsed {
    order: AdminOrder,
    /// What the notification was answered with; nothing if it was lost.
    #[schema(example = "success")]
    answer: Option<String>,
}

pub async fn sandbox_pay(call: Call, pay: SandboxPay) -> Result<Json<Rehearsed>> {
    let is_set = |flag: Option<Flag>| flag.is_some_and(|Flag(flag)| flag);
    let delivery = if is_set(pay.lost) { Delivery::Lost } else { Delivery::Here };
    let rehearsal = Rehearsal { late: is_set(pay.late), delivery };
    let done = call.blocking(move |app| sandbox::pay(app, &pay.order_no.0, &rehearsal)).await?;
    Ok(Json(Rehearsed { order: done.order.into(), answer: done.answer }))
}

pub async fn list_callbacks(call: Call, of: ListCallbacks) -> Result<Json<NumberedPage<AdminCallback>>> {
    let page = page(&call, of.page, of.size);
    let filter = callbacks::Filter { order_no: of.order_no.map(|OrderNo(number)| number), verdict: of.verdict };
    let found = call.blocking(move |app| callbacks::list(app, &filter, page)).await?;
    Ok(NumberedPage::of(page, found))
}

/// What came of a callback that was judged again.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallbackReceipt {
    /// The number of the new judgement.
    #[schema(example = 8)]
    id: i64,
    #[schema(example = "credited")]
    verdict: &'static str,
    #[schema(example = "unknown_order")]
    reason: Option<String>,
    #[schema(example = "202601020123456789012345")]
    order_no: Option<String>,
    /// Whether the provider would be told `success`.
    #[schema(example = true)]
    acknowledged: bool,
}

pub async fn replay(call: Call, of: OfCallback) -> Result<Json<CallbackReceipt>> {
    let receipt = call.committed(callbacks::replay(&call.app, of.id.0)?).await?;
    let acknowledged = receipt.is_acknowledged();
    let Receipt { id, outcome, reason, order_no } = receipt;
    Ok(Json(CallbackReceipt { id, verdict: outcome.verdict.name(), reason, order_no, acknowledged }))
}

/// Numbers and sums over orders. Amounts are yuan with two decimals.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportSums {
    #[schema(example = 12)]
    orders: u64,
    /// Orders for which money came in.
    #[schema(example = 9)]
    paid: u64,
    #[schema(example = 9)]
    credited: u64,
    /// Orders of which some or all money went back.
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
    #[schema(example = 540)]
    coins_credited: i64,
    #[schema(example = 60)]
    coins_returned: i64,
    #[schema(example = 0)]
    coins_written_off: i64,
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
            coins_credited: sums.coins_credited,
            coins_returned: sums.coins_returned,
            coins_written_off: sums.coins_written_off,
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

/// An order whose money and coins do not agree, or an entry whose order is not there.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportDifference {
    /// `credit_missing`, `credit_unpaid`, `credit_wrong`, `returns_wrong`, `coins_owed`, or `order_missing` for coins
    /// that were given or taken back for no order.
    #[schema(example = "credit_missing")]
    code: &'static str,
    #[schema(example = "202601020123456789012345")]
    order_no: String,
    /// Null where there is no such order.
    #[schema(example = "review")]
    state: Option<&'static str>,
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
            state: found.state.map(OrderState::name),
            coins_expected: found.coins_expected,
            coins_found: found.coins_found,
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
    differences: Vec<ReportDifference>,
}

impl From<&report::Report> for PaymentReport {
    fn from(report: &report::Report) -> Self {
        let day = |(day, sums): (&crate::types::Date, &Sums)| ReportDay { day: day.to_string(), sums: sums.into() };
        Self {
            from: report.from,
            to: report.to,
            total: (&report.total).into(),
            days: report.days.iter().map(day).collect(),
            differences: report.differences.iter().map(Into::into).collect(),
        }
    }
}

pub async fn make_report(call: Call, between: Between) -> Result<Json<PaymentReport>> {
    let (Moment(from), Moment(to)) = (between.from, between.to);
    in_order(("from", from), ("to", to))?;
    let report = call.blocking(move |app| report::report(app, from, to)).await?;
    Ok(Json((&report).into()))
}

/// Parameters that are one of a few words.
macro_rules! words {
    ($($type:ty, $example:literal, [$($word:literal => $value:expr),* $(,)?];)*) => {$(
        impl Parameter for $type {
            fn read(given: &Given<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
                match text(given)?.trim() {
                    $($word => Ok($value),)*
                    _ => Err(Fault::new(FieldCode::UnknownValue, concat!("must be one of:", $(" ", $word),*))),
                }
            }

            fn schema(_: &Limits) -> Value {
                json!({ "type": "string", "enum": [$($word),*], "example": $example })
            }
        }
    )*};
}

words! {
    OrderState, "review", [
        "created" => Self::Created, "paid" => Self::Paid, "credited" => Self::Credited, "closed" => Self::Closed,
        "refunded" => Self::Refunded, "review" => Self::Review,
    ];
    Verdict, "rejected", [
        "credited" => Self::Credited, "paid" => Self::Paid, "closed" => Self::Closed, "refunded" => Self::Refunded,
        "unchanged" => Self::Unchanged, "review" => Self::Review, "rejected" => Self::Rejected,
    ];
    Decision, "credit", ["credit" => Self::Credit, "dismiss" => Self::Dismiss];
}

/// The number of a callback.
pub struct CallbackId(i64);

impl Parameter for CallbackId {
    fn read(given: &Given<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        let id = text(given)?.trim().parse().ok().filter(|id| *id > 0);
        id.map(Self).ok_or_else(|| Fault::new(FieldCode::InvalidFormat, "must be a callback's number"))
    }

    fn schema(_: &Limits) -> Value {
        json!({ "type": ["string", "integer"], "pattern": "^[0-9]{1,18}$", "minimum": 1, "example": "7" })
    }
}
