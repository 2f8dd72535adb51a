//! Trades and refunds as answers and notifications report them.
//!
//! A trade's `total` is its price and is compared with the order; `payer_total` differs from it by coupons. A refund is
//! reported by itself and not as a running total, so refunds are summed by their number.

use serde::Deserialize;

use super::PROVIDER;
use crate::{
    providers::payment::{Currency, Fen, RefundQueryOutcome, RejectionReason, Trade, TradeStatus},
    types::named_enum,
};

/// Maximum characters of the provider's numbers.
const MAX_NUMBER_LENGTH: usize = 64;

named_enum! {
    /// The state of one refund, under the provider's names.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum WeChatRefundState {
        /// Accepted, not done: query it later.
        Processing = "PROCESSING",
        Succeeded = "SUCCESS",
        /// It did not happen.
        Closed = "CLOSED",
        /// The money has left the merchant's account and could not be delivered. An operator must act at the provider.
        Abnormal = "ABNORMAL",
    }
}

/// A verified report about one refund. Refunds made at the provider's own console have numbers that are not ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeChatRefund {
    pub order_no: String,
    /// The provider's number of the trade.
    pub trade_no: String,
    pub refund_no: String,
    /// The provider's number of the refund.
    pub refund_id: String,
    pub state: WeChatRefundState,
    /// The amount of this refund alone.
    pub amount: Fen,
    /// The price of the order.
    pub total: Fen,
    /// Epoch milliseconds.
    pub succeeded_at: Option<i64>,
}

impl WeChatRefund {
    /// Returns the outcome in the words of all gateways.
    pub fn outcome(&self) -> RefundQueryOutcome {
        match self.state {
            WeChatRefundState::Succeeded => RefundQueryOutcome::Succeeded { amount: self.amount },
            WeChatRefundState::Closed => RefundQueryOutcome::Closed,
            WeChatRefundState::Processing => RefundQueryOutcome::Processing,
            WeChatRefundState::Abnormal => RefundQueryOutcome::Abnormal,
        }
    }
}

/// A trade as received.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TradeReport {
    pub(super) appid: String,
    pub(super) mchid: String,
    pub(super) out_trade_no: String,
    transaction_id: String,
    trade_state: String,
    success_time: Option<String>,
    amount: ReportedAmount,
}

/// A refund as received. A notification has `refund_status`, an answer `status`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RefundReport {
    /// Missing in answers.
    pub(super) mchid: Option<String>,
    pub(super) out_trade_no: String,
    transaction_id: String,
    pub(super) out_refund_no: String,
    refund_id: String,
    status: Option<String>,
    refund_status: Option<String>,
    success_time: Option<String>,
    amount: ReportedAmount,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ReportedAmount {
    total: Option<i64>,
    refund: Option<i64>,
    currency: Option<String>,
}

impl TradeReport {
    /// Returns the trade. `REFUND` means that it was paid and that some money went back: only the refunds say how much.
    pub(super) fn trade(&self) -> Result<Trade, RejectionReason> {
        if self.amount.currency.as_deref().is_some_and(|currency| currency != "CNY") {
            return Err(RejectionReason::WrongCurrency);
        }
        let status = match self.trade_state.as_str() {
            "SUCCESS" | "REFUND" => TradeStatus::Success,
            "NOTPAY" | "USERPAYING" | "PAYERROR" => TradeStatus::WaitBuyerPay,
            "CLOSED" | "REVOKED" => TradeStatus::Closed,
            "" => return Err(RejectionReason::FieldMissing("trade_state")),
            _ => return Err(RejectionReason::UnknownStatus),
        };
        let is_paid = status == TradeStatus::Success;
        if is_paid && self.amount.currency.is_none() {
            return Err(RejectionReason::FieldMissing("amount.currency"));
        }
        // Unpaid trades have no number yet.
        let trade_no = if is_paid || !self.transaction_id.is_empty() {
            number(&self.transaction_id, "transaction_id")?
        } else {
            String::new()
        };
        Ok(Trade {
            channel: PROVIDER,
            order_no: number(&self.out_trade_no, "out_trade_no")?,
            trade_no,
            amount: amount(self.amount.total, "amount.total")?,
            currency: Currency::CNY,
            status,
            paid_at: self.success_time.as_deref().and_then(milliseconds),
            refunded: None,
        })
    }
}

impl RefundReport {
    pub(super) fn refund(&self) -> Result<WeChatRefund, RejectionReason> {
        if self.amount.currency.as_deref().is_some_and(|currency| currency != "CNY") {
            return Err(RejectionReason::WrongCurrency);
        }
        let state = self.refund_status.as_deref().or(self.status.as_deref());
        let state = state.ok_or(RejectionReason::FieldMissing("refund_status"))?;
        Ok(WeChatRefund {
            order_no: number(&self.out_trade_no, "out_trade_no")?,
            trade_no: number(&self.transaction_id, "transaction_id")?,
            refund_no: number(&self.out_refund_no, "out_refund_no")?,
            refund_id: number(&self.refund_id, "refund_id")?,
            state: WeChatRefundState::from_name(state).ok_or(RejectionReason::UnknownStatus)?,
            amount: amount(self.amount.refund, "amount.refund")?,
            total: amount(self.amount.total, "amount.total")?,
            succeeded_at: self.success_time.as_deref().and_then(milliseconds),
        })
    }
}

fn number(text: &str, field: &'static str) -> Result<String, RejectionReason> {
    let is_number = (1..=MAX_NUMBER_LENGTH).contains(&text.len());
    if is_number { Ok(text.to_owned()) } else { Err(RejectionReason::FieldMissing(field)) }
}

fn amount(fen: Option<i64>, field: &'static str) -> Result<Fen, RejectionReason> {
    let fen = fen.ok_or(RejectionReason::FieldMissing(field))?;
    Fen::from_fen(fen).map_err(|_| RejectionReason::InvalidAmount(field))
}

/// Parses RFC 3339 into epoch milliseconds.
fn milliseconds(text: &str) -> Option<i64> {
    text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond)
}
