//! A trade stored by the sandbox, and the rules of its changes, which are those of the real provider.
//!
//! Each rule is a pure function from the stored trade to the changed trade, or to the provider's refusal code.

use serde::{Deserialize, Serialize};

use super::terms::Terms;
use crate::providers::payment::{Currency, Fen, RefundRequest, Trade, TradeStatus, refund_implied_by_query};

/// A stored trade. Times are epoch milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxTrade {
    pub order_no: String,
    /// 1 for the first stored state, incremented with each change.
    pub version: i64,
    pub trade_no: String,
    pub amount: Fen,
    pub subject: String,
    pub status: TradeStatus,
    pub created_at: i64,
    /// An unpaid trade counts as closed from this time.
    pub expires_at: i64,
    pub paid_at: Option<i64>,
    pub closed_at: Option<i64>,
    pub refunds: Vec<SandboxRefund>,
}

/// Money that the sandbox has refunded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxRefund {
    pub refund_no: String,
    pub amount: Fen,
    pub at: i64,
}

/// The outcome of a rule.
#[derive(Debug)]
pub(super) enum TradeChange {
    None(SandboxTrade),
    To(SandboxTrade),
}

impl TradeChange {
    /// Returns the resulting trade.
    pub(super) fn left(&self) -> &SandboxTrade {
        match self {
            Self::None(trade) | Self::To(trade) => trade,
        }
    }
}

type Ruling = Result<TradeChange, &'static str>;

impl SandboxTrade {
    /// Returns the trade's state at `now`: an unpaid one closes when it expires.
    pub(super) fn state_at(mut self, now: i64) -> Self {
        if self.status == TradeStatus::WaitBuyerPay && now >= self.expires_at {
            self.status = TradeStatus::Closed;
            self.closed_at = Some(self.expires_at);
        }
        self
    }

    /// Returns the report that a query gives.
    pub(super) fn queried(self, channel: &'static str) -> Trade {
        Trade {
            channel,
            refunded: refund_implied_by_query(self.status, self.paid_at, self.amount),
            order_no: self.order_no,
            trade_no: self.trade_no,
            amount: self.amount,
            currency: Currency::CNY,
            status: self.status,
            paid_at: self.paid_at,
        }
    }

    pub(super) fn refund(&self, refund_no: &str) -> Option<&SandboxRefund> {
        self.refunds.iter().find(|refund| refund.refund_no == refund_no)
    }

    /// Returns the total refunded; `None` only on overflow.
    pub(super) fn refunded_total(&self) -> Option<Fen> {
        self.refunds.iter().try_fold(Fen::ZERO, |total, refund| total.checked_add(refund.amount))
    }

    fn changed(mut self, change: impl FnOnce(&mut Self)) -> TradeChange {
        change(&mut self);
        self.version += 1;
        TradeChange::To(self)
    }

    fn first(terms: &Terms, trade_no: &str, now: i64) -> Self {
        Self {
            order_no: terms.order_no.clone(),
            version: 0,
            trade_no: trade_no.to_owned(),
            amount: terms.amount,
            subject: terms.subject.clone(),
            status: TradeStatus::WaitBuyerPay,
            created_at: now,
            expires_at: terms.expires_at,
            paid_at: None,
            closed_at: None,
            refunds: Vec::new(),
        }
    }
}

pub(super) fn opened(found: Option<SandboxTrade>, terms: &Terms, trade_no: &str, now: i64) -> Ruling {
    match found {
        None if terms.expires_at <= now => Err("order_expired"),
        None => Ok(SandboxTrade::first(terms, trade_no, now).changed(|_| {})),
        Some(trade) => still_payable(trade, terms).map(TradeChange::None),
    }
}

pub(super) fn paid(found: Option<SandboxTrade>, terms: &Terms, trade_no: &str, now: i64) -> Ruling {
    let trade = match found {
        None => SandboxTrade::first(terms, trade_no, now),
        Some(trade) => still_payable(trade, terms)?,
    };
    Ok(trade.changed(|trade| {
        trade.status = TradeStatus::Success;
        trade.paid_at = Some(now);
    }))
}

pub(super) fn finished(found: Option<SandboxTrade>) -> Ruling {
    let trade = found.ok_or("ACQ.TRADE_NOT_EXIST")?;
    match trade.status {
        TradeStatus::Finished => Ok(TradeChange::None(trade)),
        TradeStatus::Success => Ok(trade.changed(|trade| trade.status = TradeStatus::Finished)),
        TradeStatus::WaitBuyerPay | TradeStatus::Closed => Err("ACQ.TRADE_STATUS_ERROR"),
    }
}

/// Closes a trade that waits for payment. Other trades stay unchanged.
pub(super) fn closed(found: Option<SandboxTrade>, now: i64) -> Ruling {
    let trade = found.ok_or("ACQ.TRADE_NOT_EXIST")?;
    if trade.status != TradeStatus::WaitBuyerPay {
        return Ok(TradeChange::None(trade));
    }
    Ok(trade.changed(|trade| {
        trade.status = TradeStatus::Closed;
        trade.closed_at = Some(now);
    }))
}

pub(super) fn refunded(found: Option<SandboxTrade>, refund: &RefundRequest, now: i64) -> Ruling {
    let trade = found.ok_or("ACQ.TRADE_NOT_EXIST")?;
    if let Some(earlier) = trade.refund(&refund.refund_no) {
        let same = earlier.amount == refund.amount;
        return if same { Ok(TradeChange::None(trade)) } else { Err("ACQ.DISCORDANT_REPEAT_REQUEST") };
    }
    match trade.status {
        TradeStatus::Success => {}
        TradeStatus::Finished => return Err("ACQ.TRADE_HAS_FINISHED"),
        TradeStatus::WaitBuyerPay | TradeStatus::Closed => return Err("ACQ.TRADE_STATUS_ERROR"),
    }
    let total = trade.refunded_total().and_then(|total| total.checked_add(refund.amount));
    let total = total.filter(|&total| total <= trade.amount);
    let total = total.ok_or("ACQ.REASON_TRADE_REFUND_FEE_ERR")?;
    Ok(trade.changed(|trade| {
        trade.refunds.push(SandboxRefund { refund_no: refund.refund_no.clone(), amount: refund.amount, at: now });
        if total == trade.amount {
            trade.status = TradeStatus::Closed;
            trade.closed_at = Some(now);
        }
    }))
}

fn still_payable(trade: SandboxTrade, terms: &Terms) -> Result<SandboxTrade, &'static str> {
    if trade.amount != terms.amount || trade.subject != terms.subject {
        return Err("ACQ.CONTEXT_INCONSISTENT");
    }
    match trade.status {
        TradeStatus::WaitBuyerPay => Ok(trade),
        TradeStatus::Success | TradeStatus::Finished => Err("ACQ.TRADE_HAS_SUCCESS"),
        TradeStatus::Closed => Err("ACQ.TRADE_HAS_CLOSE"),
    }
}
