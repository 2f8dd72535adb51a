//! Server notifications, version 2.
//!
//! A notification contains a signed transaction, which is verified by itself: a valid outer signature says nothing about
//! it. Order is not kept, so a refund may come before its purchase.

use serde::Deserialize;

use super::{transaction::AppleEnvironment, transaction::AppleTransaction, verifier::AppStoreVerifier};
use crate::providers::json;
use crate::providers::payment::{Rejection, RejectionReason};

/// Larger bodies are not read. A notification holds two messages with three certificates each.
pub const MAX_APPLE_NOTIFICATION_BYTES: usize = 64 * 1024;

/// A genuine notification about our app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppleNotification {
    /// Equal for all deliveries of one notification. Effects are also counted by transaction, because the history repeats
    /// notifications.
    pub uuid: String,
    /// The provider's name of the kind.
    pub kind: String,
    pub subtype: Option<String>,
    /// Epoch milliseconds.
    pub signed_at: i64,
    pub environment: AppleEnvironment,
    pub event: AppleEvent,
}

/// The subject of a notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AppleEvent {
    /// A consumable was bought; the app may never report it.
    Charged(Box<AppleTransaction>),
    /// Money went back: take back [`AppleTransaction::revoked_part_of`]. If the purchase is not known yet, it must never
    /// be credited.
    Refunded(Box<AppleTransaction>),
    /// A refund was undone: give back what was taken for it.
    RefundReversed(Box<AppleTransaction>),
    RefundDeclined(Box<AppleTransaction>),
    /// Apple decides about a refund and asks how much was used. Answer within 12 hours, if the user agreed.
    ConsumptionRequested {
        transaction: Box<AppleTransaction>,
        reason: Option<String>,
    },
    Test,
    /// A kind that has no effect here: acknowledge it.
    Other,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NotificationBody {
    signed_payload: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NotificationPayload {
    #[serde(default)]
    notification_type: String,
    subtype: Option<String>,
    #[serde(rename = "notificationUUID", default)]
    uuid: String,
    signed_date: i64,
    data: Option<NotificationData>,
    /// Kinds without `data` have one of these instead.
    summary: Option<NotificationData>,
    app_data: Option<NotificationData>,
    external_purchase_token: Option<NotificationData>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NotificationData {
    app_apple_id: Option<i64>,
    bundle_id: Option<String>,
    environment: Option<String>,
    signed_transaction_info: Option<String>,
    consumption_request_reason: Option<String>,
}

impl AppStoreVerifier {
    /// Verifies and parses the body of a notification. `now` is in epoch milliseconds.
    ///
    /// Answer 200 once its effect is stored, and also to kinds without effect. A 4xx is final at Apple, so answer 5xx if
    /// it must come again.
    pub fn read_notification(&self, body: &[u8], now: i64) -> Result<AppleNotification, Rejection> {
        if body.len() > MAX_APPLE_NOTIFICATION_BYTES {
            return Err(Rejection::anonymous(RejectionReason::TooLarge, false));
        }
        let body: NotificationBody =
            json::from_slice(body).map_err(|_| Rejection::anonymous(RejectionReason::Malformed, false))?;
        self.notification(&body.signed_payload, now)
    }

    /// Verifies and parses a signed notification, as it is in the history, too.
    pub fn notification(&self, jws: &str, now: i64) -> Result<AppleNotification, Rejection> {
        let payload: NotificationPayload =
            self.payload(jws, now).map_err(|reason| Rejection::anonymous(reason, false))?;
        let uuid: String = payload.uuid.chars().take(128).collect();
        let event = self.judge(&payload, now);
        let (environment, event) = event.map_err(|(reason, trade_no)| Rejection {
            trade_no,
            notify_id: Some(uuid.clone()),
            ..Rejection::anonymous(reason, true)
        })?;
        Ok(AppleNotification {
            uuid,
            kind: payload.notification_type,
            subtype: payload.subtype,
            signed_at: payload.signed_date,
            environment,
            event,
        })
    }

    fn judge(
        &self,
        payload: &NotificationPayload,
        now: i64,
    ) -> Result<(AppleEnvironment, AppleEvent), (RejectionReason, Option<String>)> {
        let fault = |reason| (reason, None);
        if payload.uuid.is_empty() {
            return Err(fault(RejectionReason::FieldMissing("notificationUUID")));
        }
        let parts = [&payload.data, &payload.summary, &payload.app_data, &payload.external_purchase_token];
        let data = parts.into_iter().find_map(Option::as_ref);
        let data = data.ok_or_else(|| fault(RejectionReason::FieldMissing("data")))?;
        let environment = data.environment.as_deref().unwrap_or_default();
        let environment = self.accept_app(data.bundle_id.as_deref(), environment).map_err(fault)?;
        let is_our_app = match environment {
            AppleEnvironment::Production => self.app_apple_id.is_none() || data.app_apple_id == self.app_apple_id,
            AppleEnvironment::Sandbox => true,
        };
        if !is_our_app {
            return Err(fault(RejectionReason::WrongApp));
        }
        let transaction = || self.inner(data, environment, now).map(Box::new);
        let event = match payload.notification_type.as_str() {
            "ONE_TIME_CHARGE" => AppleEvent::Charged(transaction()?),
            "REFUND" | "REVOKE" => AppleEvent::Refunded(transaction()?),
            "REFUND_REVERSED" => AppleEvent::RefundReversed(transaction()?),
            "REFUND_DECLINED" => AppleEvent::RefundDeclined(transaction()?),
            "CONSUMPTION_REQUEST" => AppleEvent::ConsumptionRequested {
                transaction: transaction()?,
                reason: data.consumption_request_reason.clone(),
            },
            "TEST" => AppleEvent::Test,
            _ => AppleEvent::Other,
        };
        Ok((environment, event))
    }

    /// Verifies the transaction inside a notification, which must be of the same environment.
    fn inner(
        &self,
        data: &NotificationData,
        environment: AppleEnvironment,
        now: i64,
    ) -> Result<AppleTransaction, (RejectionReason, Option<String>)> {
        let jws = data.signed_transaction_info.as_deref();
        let jws = jws.ok_or((RejectionReason::FieldMissing("signedTransactionInfo"), None))?;
        let transaction = self.transaction(jws, now).map_err(|reason| (reason, None))?;
        if transaction.environment() == Some(environment) {
            Ok(transaction)
        } else {
            Err((RejectionReason::WrongEnvironment, Some(transaction.transaction_id)))
        }
    }
}
