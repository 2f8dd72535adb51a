//! Payment providers: the gateway trait, and the plain types that cross the boundary.
//!
//! A gateway signs orders, verifies notifications and queries the provider. It stores nothing and knows no user.
//! [`judge`] decides the effect of a report on an order; the caller applies it inside the transaction that holds the
//! order.
//!
//! A [`Trade`] is the same whether it came in a notification or from a query, and only those two may lead to a credit.
//! A client's own report of a payment is worth nothing.

pub mod alipay;
pub mod delivery;
pub mod sandbox;

mod clock_text;
pub mod form;
mod settlement_rule;
mod notification;
mod order_string;
mod signing;
#[cfg(test)]
mod vectors;

use std::fmt;

use crate::{
    providers::Failure,
    types::{Fen, named_enum},
};

pub use notification::{MAX_NOTIFICATION_BYTES, Rejection, RejectionReason};
pub use settlement_rule::{OrderState, OrderView, RejectReason, ReviewReason, SettlementDecision, judge};

/// The names of all gateways there are.
pub const CHANNELS: [&str; 2] = [alipay::PROVIDER, sandbox::PROVIDER];

/// A payment provider. All calls block; all but `order_string` and `read_notification` may take seconds.
pub trait PaymentGateway: Send + Sync {
    /// The channel that an order made with this gateway is stored under.
    fn name(&self) -> &'static str;

    /// The provider's number of the app that orders are made for. Under another one the provider does not know them.
    fn app_id(&self) -> &str;

    /// The signed string that the app hands unchanged to the provider's payment screen. No network is used.
    fn order_string(&self, order: &OrderRequest) -> Result<String, Failure>;

    /// Reads a notification from the raw form body, and proves it: signature, application and seller are ours.
    /// Whether it fits an order is for [`judge`].
    fn read_notification(&self, form_body: &[u8]) -> Result<PaymentNotification, Rejection>;

    /// Asks for the trade of an order. A trade comes into being only when the buyer confirms, so not finding
    /// one is an ordinary answer.
    fn query(&self, order_no: &str) -> Result<TradeState, Failure>;

    /// Closes an unpaid trade. After `OutcomeUnknown`, query before repeating.
    fn close(&self, order_no: &str) -> Result<CloseOutcome, Failure>;

    /// Returns money. Safe to repeat with the same refund number and amount; after `OutcomeUnknown` or
    /// `Unconfirmed`, ask `query_refund` (ten seconds later at the soonest) before anything else.
    fn refund(&self, refund: &RefundRequest) -> Result<RefundOutcome, Failure>;

    /// Asks whether a refund took effect.
    fn query_refund(&self, order_no: &str, refund_no: &str) -> Result<RefundState, Failure>;
}

/// An order to be paid.
#[derive(Debug, Clone)]
pub struct OrderRequest {
    /// Our number: at most 64 letters, digits and `_`, never used twice.
    pub order_no: String,
    /// 0.01 to 100 000 000.00 yuan.
    pub amount: Fen,
    /// Shown to the buyer: at most 256 characters, without `/`, `=` and `&`. Must not change once sent.
    pub subject: String,
    /// Epoch milliseconds. The provider closes the trade by itself then.
    pub expires_at: i64,
    /// Epoch milliseconds.
    pub now: i64,
}

named_enum! {
    /// The state of a trade at the provider, under the provider's names.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
    pub enum TradeStatus {
        /// Made, not paid.
        #[serde(rename = "WAIT_BUYER_PAY")]
        WaitBuyerPay = "WAIT_BUYER_PAY",
        /// Paid; can be refunded.
        #[serde(rename = "TRADE_SUCCESS")]
        Success = "TRADE_SUCCESS",
        /// Paid; can no longer be refunded.
        #[serde(rename = "TRADE_FINISHED")]
        Finished = "TRADE_FINISHED",
        /// Timed out unpaid, or fully refunded.
        #[serde(rename = "TRADE_CLOSED")]
        Closed = "TRADE_CLOSED",
    }
}

/// A verified report of the provider about a trade.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trade {
    /// The [`PaymentGateway::name`] that vouches for it.
    pub channel: &'static str,
    pub order_no: String,
    /// The provider's number.
    pub trade_no: String,
    /// The order's price as the provider knows it, before vouchers.
    pub amount: Fen,
    pub status: TradeStatus,
    /// Epoch milliseconds.
    pub paid_at: Option<i64>,
    /// Present when money has gone back.
    pub refunded: Option<RefundResult>,
}

/// Money that has gone back to the buyer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefundResult {
    /// The total returned so far; `None` if the provider did not report it.
    pub total: Option<Fen>,
    /// The refund that the report is about.
    pub refund_no: Option<String>,
    /// Epoch milliseconds.
    pub at: Option<i64>,
}

/// A genuine message from the provider.
#[derive(Clone, PartialEq, Eq)]
pub struct PaymentNotification {
    /// Equal for every repetition of one notification.
    pub notify_id: String,
    pub trade: Trade,
    /// All parameters as received, decoded, in order. They hold a masked buyer account, so `Debug` leaves them out.
    pub fields: Vec<(String, String)>,
}

/// The answer to a trade query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TradeState {
    /// The buyer has not confirmed yet, and perhaps never will.
    NotFound,
    Found(Trade),
}

/// The outcome of closing a trade.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseOutcome {
    Closed,
    /// There is no trade yet; the buyer can still pay until the order string expires.
    NotFound,
    /// The trade no longer waits for payment: query it.
    NotClosable,
}

/// Money to be returned.
#[derive(Debug, Clone)]
pub struct RefundRequest {
    pub order_no: String,
    /// Our number for this refund: at most 64 letters, digits and `_`. It makes repetition safe.
    pub refund_no: String,
    pub amount: Fen,
    /// At most 256 characters; the buyer may see it.
    pub reason: String,
}

/// The outcome of a refund request. A request that the provider refused is a [`Failure`] of kind `Refused`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefundOutcome {
    /// Money moved with this very call.
    Moved {
        /// The total returned so far, if the provider reported it.
        total: Option<Fen>,
    },
    /// The provider took the request, which is no proof: ask [`PaymentGateway::query_refund`].
    Unconfirmed {
        /// The total returned so far, including this refund if it took effect.
        total: Option<Fen>,
    },
}

/// The state of a refund at the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefundState {
    Succeeded {
        amount: Fen,
    },
    /// No such refund took effect so far.
    NotFound,
    /// The provider knows it, and does not call it a success yet.
    Unconfirmed,
}

impl Trade {
    /// Returns true if money was received, even if it was refunded since.
    pub fn is_paid(&self) -> bool {
        matches!(self.status, TradeStatus::Success | TradeStatus::Finished) || self.refunded.is_some()
    }
}

impl RefundRequest {
    /// Returns true if the provider accepts such a number, amount and reason.
    fn is_possible(&self) -> bool {
        is_number(&self.refund_no) && order_string::is_chargeable(self.amount) && self.reason.chars().count() <= 256
    }
}

impl PaymentNotification {
    /// The value of a received parameter, unless it is absent or empty.
    pub fn field(&self, name: &str) -> Option<&str> {
        form::value_of(&self.fields, name)
    }
}

impl fmt::Debug for PaymentNotification {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut output = formatter.debug_struct("Notification");
        output.field("notify_id", &self.notify_id).field("trade", &self.trade);
        output.finish_non_exhaustive()
    }
}

/// Returns the full refund implied by a closed trade that was paid. A query reports nothing else about refunds.
fn refund_implied_by_query(status: TradeStatus, paid_at: Option<i64>, amount: Fen) -> Option<RefundResult> {
    let fully_refunded = status == TradeStatus::Closed && paid_at.is_some();
    fully_refunded.then_some(RefundResult { total: Some(amount), refund_no: None, at: None })
}

/// Returns true if the text can be an order or refund number at the provider.
fn is_number(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
