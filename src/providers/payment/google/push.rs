//! Real-time notifications, which Google's Pub/Sub pushes.
//!
//! A notification is a hint: the state of a purchase is always queried. Its proof is an identity token, which must name
//! the configured service account. Anybody can have Google sign a token for our address under another account.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;

use crate::providers::json;
use crate::providers::{
    Failure,
    client::Client,
    jwks::{CLOCK_SKEW, JwkCache, TokenFault, TokenRules},
    payment::{MAX_CALLBACK_BYTES, Rejection, RejectionReason},
};

const ISSUERS: [&str; 2] = ["https://accounts.google.com", "accounts.google.com"];

/// Verifies and parses pushed notifications about one app.
pub struct GooglePushReader {
    pub(super) package_name: String,
    pub(super) audience: String,
    pub(super) service_account: String,
    pub(super) keys: JwkCache,
}

/// A genuine notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoogleNotification {
    /// Equal for all deliveries of one notification.
    pub message_id: String,
    pub event: GoogleEvent,
}

/// The subject of a notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GoogleEvent {
    /// Query the purchase.
    Purchased {
        product_id: String,
        token: String,
    },
    /// A pending purchase was not paid.
    Cancelled {
        product_id: String,
        token: String,
    },
    /// Money went back. For a part, query the refundable quantity.
    Voided {
        token: String,
        order_id: String,
        is_partial: bool,
    },
    Test,
    /// A kind without effect here, or about another app: acknowledge it.
    Other,
}

#[derive(Deserialize)]
struct PushClaims {
    email: Option<String>,
    #[serde(default)]
    email_verified: bool,
}

#[derive(Deserialize)]
struct PushBody {
    message: PushMessage,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PushMessage {
    #[serde(default)]
    data: String,
    #[serde(default)]
    message_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DeveloperNotification {
    #[serde(default)]
    package_name: String,
    one_time_product_notification: Option<OneTimeProduct>,
    voided_purchase_notification: Option<VoidedPurchase>,
    test_notification: Option<serde_json::Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OneTimeProduct {
    notification_type: i64,
    purchase_token: String,
    sku: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct VoidedPurchase {
    purchase_token: String,
    #[serde(default)]
    order_id: String,
    product_type: i64,
    #[serde(default)]
    refund_type: i64,
}

impl GooglePushReader {
    /// Returns true if keys should be fetched and a notification read again. Not for one that is rejected with whatever
    /// keys, because anybody can send it.
    pub fn needs_keys(&self, read: &Result<GoogleNotification, Rejection>, now: i64) -> bool {
        match read {
            Err(rejection) if !rejection.reason.depends_on_keys() => false,
            Err(rejection) if rejection.reason == RejectionReason::UnknownKey => true,
            _ => self.keys.is_stale(now),
        }
    }

    pub(super) fn refresh_keys(&self, client: &Client, now: i64) -> Result<bool, Failure> {
        self.keys.refresh(client, now)
    }

    /// Verifies and parses a pushed notification. `authorization` is the header's value, `now` in epoch milliseconds.
    /// Makes no network call: after `UnknownKey` fetch the keys and read it again.
    ///
    /// Answer 200 or 204 once its effect is stored; Google repeats anything else for days.
    pub fn read(&self, authorization: Option<&str>, body: &[u8], now: i64) -> Result<GoogleNotification, Rejection> {
        let fault = |reason, is_genuine| Rejection::anonymous(reason, is_genuine);
        if body.len() > MAX_CALLBACK_BYTES {
            return Err(fault(RejectionReason::TooLarge, false));
        }
        self.verify(authorization, now).map_err(|reason| fault(reason, false))?;
        let body: PushBody = json::from_slice(body).map_err(|_| fault(RejectionReason::Malformed, true))?;
        let message_id: String = body.message.message_id.chars().take(128).collect();
        let data = STANDARD.decode(&body.message.data).ok();
        let data = data.and_then(|data| json::from_slice::<DeveloperNotification>(&data).ok());
        let data = data.ok_or_else(|| Rejection {
            notify_id: Some(message_id.clone()),
            ..fault(RejectionReason::Malformed, true)
        })?;
        Ok(GoogleNotification { message_id, event: self.event(data) })
    }

    fn verify(&self, authorization: Option<&str>, now: i64) -> Result<(), RejectionReason> {
        let token = authorization.and_then(|header| header.strip_prefix("Bearer "));
        let token = token.ok_or(RejectionReason::HeaderMissing("authorization"))?.trim();
        let rules = TokenRules {
            issuers: &ISSUERS,
            audiences: std::slice::from_ref(&self.audience),
            expiry_leeway: CLOCK_SKEW,
            may_omit_expiry: false,
        };
        let claims: PushClaims = self.keys.verify(token, &rules, now).map_err(RejectionReason::from)?;
        let is_ours = claims.email_verified && claims.email.as_deref() == Some(&self.service_account);
        if is_ours { Ok(()) } else { Err(RejectionReason::WrongAudience) }
    }

    fn event(&self, data: DeveloperNotification) -> GoogleEvent {
        if data.package_name != self.package_name {
            return GoogleEvent::Other;
        }
        match (data.one_time_product_notification, data.voided_purchase_notification) {
            (Some(OneTimeProduct { notification_type: 1, purchase_token, sku }), _) => {
                GoogleEvent::Purchased { product_id: sku, token: purchase_token }
            }
            (Some(OneTimeProduct { notification_type: 2, purchase_token, sku }), _) => {
                GoogleEvent::Cancelled { product_id: sku, token: purchase_token }
            }
            (None, Some(voided)) if voided.product_type == 2 => GoogleEvent::Voided {
                token: voided.purchase_token,
                order_id: voided.order_id,
                is_partial: voided.refund_type == 2,
            },
            _ if data.test_notification.is_some() => GoogleEvent::Test,
            _ => GoogleEvent::Other,
        }
    }
}

impl From<TokenFault> for RejectionReason {
    fn from(fault: TokenFault) -> Self {
        match fault {
            TokenFault::Malformed => Self::Malformed,
            TokenFault::WrongAlgorithm => Self::WrongSignType,
            TokenFault::UnknownKey => Self::UnknownKey,
            TokenFault::SignatureInvalid => Self::SignatureInvalid,
            TokenFault::WrongIssuer | TokenFault::WrongAudience => Self::WrongAudience,
            TokenFault::Expired => Self::Expired,
        }
    }
}
