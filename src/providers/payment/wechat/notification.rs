//! Notifications: signature first, then decryption, then the receiver.

use serde::Deserialize;

use super::{
    keys::{ApiV3Key, EncryptedResource, WeChatKeys},
    report::{RefundReport, TradeReport, WeChatRefund},
    signature::WeChatSignature,
};
use crate::providers::json;
use crate::providers::payment::{MAX_CALLBACK_BYTES, Rejection, RejectionReason, Trade, TradeStatus};

/// A genuine notification for our merchant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeChatNotification {
    /// Equal for all deliveries of one notification. Two notifications may report the same payment.
    pub id: String,
    pub event: WeChatEvent,
}

/// The subject of a notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WeChatEvent {
    Paid(Trade),
    /// A refund ended, in any of its final states.
    Refund(WeChatRefund),
    /// A kind that has no effect here: acknowledge it.
    Other(String),
}

/// Verifies and parses notifications.
pub(super) struct NotificationReader<'a> {
    pub(super) app_id: &'a str,
    pub(super) merchant_id: &'a str,
    pub(super) keys: &'a WeChatKeys,
    pub(super) api_v3_key: &'a ApiV3Key,
}

#[derive(Deserialize)]
struct Notice {
    #[serde(default)]
    id: String,
    #[serde(default)]
    event_type: String,
    resource: EncryptedResource,
}

impl NotificationReader<'_> {
    pub(super) fn read(
        &self,
        signature: &WeChatSignature,
        body: &[u8],
        received_at: i64,
    ) -> Result<WeChatNotification, Rejection> {
        if body.len() > MAX_CALLBACK_BYTES {
            return Err(Rejection::anonymous(RejectionReason::TooLarge, false));
        }
        signature
            .verify(body, self.keys, received_at)
            .map_err(|reason| Rejection { notify_id: claimed_id(body), ..Rejection::anonymous(reason, false) })?;
        let genuine = |reason| Rejection { notify_id: claimed_id(body), ..Rejection::anonymous(reason, true) };
        let notice: Notice = json::from_slice(body).map_err(|_| genuine(RejectionReason::Malformed))?;
        if !(1..=128).contains(&notice.id.len()) {
            return Err(genuine(RejectionReason::FieldMissing("id")));
        }
        let is_trade = notice.event_type == "TRANSACTION.SUCCESS";
        if !is_trade && !notice.event_type.starts_with("REFUND.") {
            return Ok(WeChatNotification { id: notice.id, event: WeChatEvent::Other(notice.event_type) });
        }
        let text = self.api_v3_key.open(&notice.resource).map_err(genuine)?;
        let event = if is_trade { self.payment(&text) } else { self.refund(&text) };
        event.map(|event| WeChatNotification { id: notice.id.clone(), event }).map_err(|(reason, order_no)| Rejection {
            notify_id: Some(notice.id),
            order_no,
            ..Rejection::anonymous(reason, true)
        })
    }

    fn payment(&self, text: &[u8]) -> Result<WeChatEvent, (RejectionReason, Option<String>)> {
        let report: TradeReport = json::from_slice(text).map_err(|_| (RejectionReason::Malformed, None))?;
        let fault = |reason| (reason, short(&report.out_trade_no));
        if report.mchid != self.merchant_id {
            return Err(fault(RejectionReason::WrongSeller));
        }
        if report.appid != self.app_id {
            return Err(fault(RejectionReason::WrongApp));
        }
        let trade = report.trade().map_err(fault)?;
        if trade.status == TradeStatus::Success {
            Ok(WeChatEvent::Paid(trade))
        } else {
            Err(fault(RejectionReason::NotPaid))
        }
    }

    /// A refund names no app.
    fn refund(&self, text: &[u8]) -> Result<WeChatEvent, (RejectionReason, Option<String>)> {
        let report: RefundReport = json::from_slice(text).map_err(|_| (RejectionReason::Malformed, None))?;
        let fault = |reason| (reason, short(&report.out_trade_no));
        if report.mchid.as_deref() != Some(self.merchant_id) {
            return Err(fault(RejectionReason::WrongSeller));
        }
        report.refund().map(WeChatEvent::Refund).map_err(fault)
    }
}

fn short(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.chars().take(64).collect())
}

/// Returns the id that a body names, without any proof.
fn claimed_id(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Named {
        id: String,
    }
    let named: Named = json::from_slice(body).ok()?;
    (!named.id.is_empty()).then(|| named.id.chars().take(128).collect())
}
