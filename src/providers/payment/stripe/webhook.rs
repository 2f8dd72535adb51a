//! Webhooks: an HMAC over the time and the raw body.
//!
//! Two secrets are valid while one is replaced, and a message then has two signatures. The official library accepts
//! times in the future; nothing here does, beyond the difference between two clocks.

use ring::hmac;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::Value;

use super::StripeRefund;
use crate::providers::json;
use crate::providers::payment::{DisputeState, Rejection, RejectionReason};

/// Larger bodies are not read.
const MAX_WEBHOOK_BYTES: usize = 64 * 1024;
const MAX_AGE_SECONDS: i64 = 300;
/// The allowed difference between the clocks.
const MAX_SKEW_SECONDS: i64 = 5;
/// Two secrets make two signatures; more are not computed.
const MAX_SIGNATURES: usize = 8;

/// A genuine webhook of our mode, test or live.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StripeNotification {
    /// Equal for all deliveries of one event.
    pub id: String,
    pub event: StripeEvent,
}

/// The subject of a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StripeEvent {
    /// The money of an order arrived. Compare amount and currency with the order.
    Paid(StripeCheckout),
    /// The buyer is done, and the money arrives later or never.
    AwaitingPayment(StripeCheckout),
    /// A slow method failed.
    PaymentFailed(StripeCheckout),
    /// The session ended unpaid.
    Expired(StripeCheckout),
    Refunded(StripeRefundTotal),
    /// A refund did not reach the buyer, perhaps days after it succeeded.
    RefundFailed(StripeRefund),
    /// The bank of the buyer asked the money of this payment back, or has decided about it.
    Dispute {
        id: String,
        payment_intent: String,
        state: DisputeState,
    },
    /// A kind that has no effect here: acknowledge it.
    Other(String),
}

/// A session in a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StripeCheckout {
    pub order_no: String,
    pub session_id: String,
    pub payment_intent: Option<String>,
    /// In the currency's smallest unit.
    pub amount: i64,
    /// Three letters in lower case.
    pub currency: String,
}

/// The refunds of a charge so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StripeRefundTotal {
    /// The order number, which the charge inherits from the payment.
    pub order_no: Option<String>,
    pub payment_intent: Option<String>,
    /// The sum of all refunds, in the currency's smallest unit.
    pub refunded: i64,
    pub amount: i64,
    pub currency: String,
}

/// Verifies and parses webhooks.
pub(super) struct WebhookReader {
    keys: Vec<hmac::Key>,
    is_live: bool,
}

#[derive(Deserialize)]
struct EventBody {
    #[serde(default)]
    id: String,
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    livemode: bool,
    #[serde(default)]
    data: EventData,
}

/// Unread until the kind is known: the objects of other kinds use the same names for other values.
#[derive(Default, Deserialize)]
#[serde(default)]
struct EventData {
    object: Value,
}

/// The members that have an effect, of all objects.
#[derive(Default, Deserialize)]
#[serde(default)]
struct EventObject {
    id: String,
    amount: Option<i64>,
    amount_total: Option<i64>,
    amount_refunded: Option<i64>,
    currency: String,
    client_reference_id: Option<String>,
    payment_intent: Option<String>,
    payment_status: String,
    /// The state of a dispute.
    status: String,
    metadata: Option<EventMetadata>,
    /// The price in our currency, if the buyer paid in another one and the webhook's version is an old one.
    currency_conversion: Option<CurrencyConversion>,
}

#[derive(Deserialize)]
struct CurrencyConversion {
    amount_total: i64,
    source_currency: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct EventMetadata {
    order_no: Option<String>,
}

impl WebhookReader {
    pub(super) fn new(secrets: &[SecretString], is_live: bool) -> Self {
        let key = |secret: &SecretString| hmac::Key::new(hmac::HMAC_SHA256, secret.expose_secret().as_bytes());
        Self { keys: secrets.iter().map(key).collect(), is_live }
    }

    pub(super) fn is_live(&self) -> bool {
        self.is_live
    }

    pub(super) fn read(
        &self,
        signature: Option<&str>,
        body: &[u8],
        received_at: i64,
    ) -> Result<StripeNotification, Rejection> {
        if body.len() > MAX_WEBHOOK_BYTES {
            return Err(Rejection::anonymous(RejectionReason::TooLarge, false));
        }
        self.verify(signature.unwrap_or_default(), body, received_at)
            .map_err(|reason| Rejection::anonymous(reason, false))?;
        let event: EventBody =
            json::from_slice(body).map_err(|_| Rejection::anonymous(RejectionReason::Malformed, true))?;
        let rejection = |reason| Rejection {
            order_no: event.data.object["client_reference_id"].as_str().map(|text| text.chars().take(64).collect()),
            notify_id: Some(event.id.chars().take(128).collect()),
            ..Rejection::anonymous(reason, true)
        };
        if !(1..=128).contains(&event.id.len()) {
            return Err(rejection(RejectionReason::FieldMissing("id")));
        }
        if event.livemode != self.is_live {
            return Err(rejection(RejectionReason::WrongEnvironment));
        }
        let parsed = event_of(&event.kind, &event.data.object).map_err(rejection)?;
        Ok(StripeNotification { id: event.id, event: parsed })
    }

    fn verify(&self, header: &str, body: &[u8], received_at: i64) -> Result<(), RejectionReason> {
        if header.is_empty() {
            return Err(RejectionReason::HeaderMissing("stripe-signature"));
        }
        let members = || header.split(',').filter_map(|member| member.trim().split_once('='));
        let mut times = members().filter(|(name, _)| *name == "t").map(|(_, value)| value);
        let (Some(time), None) = (times.next(), times.next()) else { return Err(RejectionReason::Malformed) };
        let is_plain = time.bytes().all(|byte| byte.is_ascii_digit());
        let signed_at: i64 = time.parse().ok().filter(|_| is_plain).ok_or(RejectionReason::Malformed)?;
        let age = (received_at / 1000).saturating_sub(signed_at);
        if !(-MAX_SKEW_SECONDS..=MAX_AGE_SECONDS).contains(&age) {
            return Err(RejectionReason::StaleTimestamp);
        }
        let text = [time.as_bytes(), b".", body].concat();
        let mut signatures = members().filter(|(name, _)| *name == "v1").take(MAX_SIGNATURES).peekable();
        if signatures.peek().is_none() {
            return Err(RejectionReason::SignatureMissing);
        }
        // `hmac::verify` compares in constant time.
        let is_valid = |signature: Vec<u8>| self.keys.iter().any(|key| hmac::verify(key, &text, &signature).is_ok());
        let has_valid = signatures.filter_map(|(_, value)| from_hex(value)).any(is_valid);
        if has_valid { Ok(()) } else { Err(RejectionReason::SignatureInvalid) }
    }
}

fn event_of(kind: &str, object: &Value) -> Result<StripeEvent, RejectionReason> {
    let other = |kind: &str| StripeEvent::Other(kind.chars().take(128).collect());
    if let "charge.refund.updated" | "refund.updated" | "refund.failed" = kind {
        let refund = StripeRefund::deserialize(object).map_err(|_| RejectionReason::Malformed)?;
        let has_failed = refund.has_failed() && refund.payment_intent.is_some();
        return Ok(if has_failed { StripeEvent::RefundFailed(refund) } else { other(kind) });
    }
    if !kind.starts_with("checkout.session.") && !kind.starts_with("charge.") {
        return Ok(other(kind));
    }
    let object = EventObject::deserialize(object).map_err(|_| RejectionReason::Malformed)?;
    let checkout = || -> Result<StripeCheckout, RejectionReason> {
        let (total, currency) = match &object.currency_conversion {
            Some(conversion) => (Some(conversion.amount_total), &conversion.source_currency),
            None => (object.amount_total, &object.currency),
        };
        Ok(StripeCheckout {
            order_no: object.client_reference_id.clone().unwrap_or_default(),
            session_id: object.id.clone(),
            payment_intent: object.payment_intent.clone(),
            amount: amount(total, "amount_total")?,
            currency: currency.to_ascii_lowercase(),
        })
    };
    Ok(match kind {
        // Other programs may sell by the same account.
        kind if kind.starts_with("checkout.session.")
            && !object.client_reference_id.as_deref().is_some_and(is_ours) =>
        {
            other(kind)
        }
        "checkout.session.completed" if object.payment_status == "paid" => StripeEvent::Paid(checkout()?),
        "checkout.session.completed" => StripeEvent::AwaitingPayment(checkout()?),
        "checkout.session.async_payment_succeeded" => StripeEvent::Paid(checkout()?),
        "checkout.session.async_payment_failed" => StripeEvent::PaymentFailed(checkout()?),
        "checkout.session.expired" => StripeEvent::Expired(checkout()?),
        // Orders are paid by payment intents only.
        kind if kind.starts_with("charge.") && object.payment_intent.is_none() => other(kind),
        "charge.refunded" => StripeEvent::Refunded(StripeRefundTotal {
            order_no: object
                .metadata
                .as_ref()
                .and_then(|metadata| metadata.order_no.clone())
                .filter(|text| is_ours(text)),
            payment_intent: object.payment_intent.clone(),
            refunded: amount(object.amount_refunded, "amount_refunded")?,
            amount: amount(object.amount, "amount")?,
            currency: object.currency.to_ascii_lowercase(),
        }),
        "charge.dispute.created" | "charge.dispute.closed" => StripeEvent::Dispute {
            state: match (kind, object.status.as_str()) {
                ("charge.dispute.created", _) => DisputeState::Open,
                (_, "lost") => DisputeState::Lost,
                _ => DisputeState::Won,
            },
            id: object.id.chars().take(64).collect(),
            payment_intent: object.payment_intent.unwrap_or_default(),
        },
        kind => other(kind),
    })
}

/// Returns true if the text can be the number of an order of ours.
fn is_ours(text: &str) -> bool {
    text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn amount(value: Option<i64>, field: &'static str) -> Result<i64, RejectionReason> {
    let value = value.ok_or(RejectionReason::FieldMissing(field))?;
    if value >= 0 { Ok(value) } else { Err(RejectionReason::InvalidAmount(field)) }
}

/// Decodes the hexadecimal digits of a SHA-256.
fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let is_digest = text.len() == 64;
    let bytes = text.as_bytes().chunks_exact(2).map(|pair| u8::try_from(digit(pair[0])? << 4 | digit(pair[1])?).ok());
    bytes.collect::<Option<Vec<_>>>().filter(|_| is_digest)
}
