//! Payment providers: the data types that all gateways share. The trait is in [`gateway`].
//!
//! A gateway signs orders, verifies callbacks and queries the provider. It stores nothing and knows no user. [`judge`]
//! decides the effect of a report on an order; the caller applies it inside the transaction that holds the order.
//!
//! A [`Trade`] comes from a callback or a query, and only those may lead to a credit. A payment reported by a client
//! proves nothing.

pub mod alipay;
pub mod apple;
pub mod bill;
pub mod delivery;
pub mod form;
pub mod gateway;
pub mod google;
pub mod payer;
pub mod purchase;
pub mod sandbox;
pub mod stripe;
pub mod wechat;

mod callback;
mod order_string;
mod rejection;
mod setting_fault;
mod settlement_rule;
mod signing;
#[cfg(test)]
mod vectors;

use std::{fmt, time::Duration};

use crate::types::{Currency, Fen, named_enum};

pub use callback::MAX_CALLBACK_BYTES;
pub use gateway::{
    CallbackMessage, FailedRefund, GatewayEvent, GatewayReport, OrderKey, PayerClient, PaymentGateway,
    PaymentInstruction, RefundReport,
};
pub use rejection::{Rejection, RejectionReason};
pub use setting_fault::SettingFault;
pub use settlement_rule::{OrderState, OrderView, RejectReason, ReviewReason, SettlementDecision, judge};

/// The time limit of connecting to a provider.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The names of all gateways.
pub const CHANNELS: [&str; 4] = [alipay::PROVIDER, wechat::PROVIDER, stripe::PROVIDER, sandbox::PROVIDER];

named_enum! {
    /// The state of a dispute about a payment.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum DisputeState {
        Open = "open",
        /// The money stays: the bank decided for the merchant, or the buyer gave up.
        Won = "won",
        /// The provider has taken the money back.
        Lost = "lost",
    }
}

/// An order to be paid.
#[derive(Debug, Clone)]
pub struct OrderRequest {
    /// Our order number: at most 64 letters, digits and `_`, never reused.
    pub order_no: String,
    /// 0.01 to 100 000 000.00 yuan.
    pub amount: Fen,
    /// Shown to the buyer: at most 256 characters, without `/`, `=` and `&`. Must not change once sent.
    pub subject: String,
    /// Epoch milliseconds. The provider closes the trade at this time.
    pub expires_at: i64,
    /// Epoch milliseconds.
    pub now: i64,
}

named_enum! {
    /// The state of a trade at the provider, under the provider's names.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
    pub enum TradeStatus {
        /// Created, not paid.
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
    /// The [`PaymentGateway::name`] of the gateway that verified it.
    pub channel: &'static str,
    pub order_no: String,
    /// The provider's trade number.
    pub trade_no: String,
    /// The order's price as the provider knows it, before vouchers.
    pub amount: Fen,
    pub currency: Currency,
    pub status: TradeStatus,
    /// Epoch milliseconds.
    pub paid_at: Option<i64>,
    /// Set if money was refunded.
    pub refunded: Option<RefundResult>,
}

/// Money that was refunded to the buyer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefundResult {
    /// The total refunded so far; `None` if the provider did not report it.
    pub total: Option<Fen>,
    /// The refund that the report is about.
    pub refund_no: Option<String>,
    /// Epoch milliseconds.
    pub at: Option<i64>,
}

/// A genuine callback of the provider.
#[derive(Clone, PartialEq, Eq)]
pub struct PaymentCallback {
    /// Equal for all deliveries of one callback.
    pub notify_id: String,
    pub trade: Trade,
    /// All parameters as received, decoded, in order. They contain a masked buyer account, so `Debug` omits them.
    pub fields: Vec<(String, String)>,
}

/// The outcome of a trade query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TradeQueryOutcome {
    /// The buyer has not confirmed yet, and may never do so.
    NotFound,
    Found(Trade),
}

/// The outcome of closing a trade.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseOutcome {
    Closed,
    /// There is no trade yet. The buyer can still pay until the order string expires.
    NotFound,
    /// The trade no longer waits for payment: query it.
    NotClosable,
}

/// A request to refund money.
#[derive(Debug, Clone)]
pub struct RefundRequest {
    pub order_no: String,
    /// Our refund number: at most 64 letters, digits and `_`. It makes the request safe to repeat.
    pub refund_no: String,
    pub amount: Fen,
    /// At most 256 characters; the buyer may see it.
    pub reason: String,
}

/// The outcome of a refund request. A request that the provider refused is a [`Failure`](super::Failure) of kind `Refused`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefundOutcome {
    /// This call moved money.
    Moved {
        /// The total refunded so far, if the provider reported it.
        total: Option<Fen>,
    },
    /// The provider accepted the request, which proves nothing: call [`PaymentGateway::query_refund`].
    Unconfirmed {
        /// The total refunded so far, including this refund if it took effect.
        total: Option<Fen>,
    },
    /// The provider accepted it. A callback or a query tells the outcome.
    Processing,
    /// It did not happen and will not under this number.
    Closed,
    /// The money has left our account and could not be delivered. An operator must act at the provider.
    Abnormal,
}

/// The outcome of a refund query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefundQueryOutcome {
    Succeeded {
        amount: Fen,
    },
    /// No such refund took effect so far.
    NotFound,
    /// The provider knows the refund but has not confirmed its success yet.
    Unconfirmed,
    /// As [`RefundOutcome::Processing`].
    Processing,
    /// As [`RefundOutcome::Closed`].
    Closed,
    /// As [`RefundOutcome::Abnormal`].
    Abnormal,
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

impl PaymentCallback {
    /// Returns the value of a received parameter, unless it is missing or empty.
    pub fn field(&self, name: &str) -> Option<&str> {
        form::value_of(&self.fields, name)
    }
}

impl fmt::Debug for PaymentCallback {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut output = formatter.debug_struct("PaymentCallback");
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
