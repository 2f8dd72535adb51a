//! Stripe: Checkout on the web, refunds, and signed webhooks.
//!
//! Amounts are whole numbers of the currency's smallest unit, which is the unit itself for some currencies. A report
//! is believed only from a webhook with a valid signature or from the answer to a query.
//!
//! The surprise: a completed session need not be paid. Slow methods are paid, or fail, days later.

use std::{fmt, time::Duration};

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, de::DeserializeOwned};

use super::{
    CONNECT_TIMEOUT, SettingFault, form,
    setting_fault::{fault, require_safe_endpoint},
};
use crate::providers::{
    Failure, FailureKind, clean_code,
    client::{BaseUrl, Client, HttpResponse, Limits},
    percent,
};

use crate::providers::json;
use webhook::WebhookReader;

pub use currency::decimals_of;
pub use webhook::{StripeCheckout, StripeEvent, StripeNotification, StripeRefundTotal};

mod currency;
mod webhook;
#[cfg(test)]
mod tests;

pub const PROVIDER: &str = "stripe";
/// The version of the API that this module speaks. An account's default version changes without notice.
const API_VERSION: &str = "2025-12-15.clover";
const MAX_RESPONSE_BYTES: usize = 512 * 1024;
/// Limits on the lifetime of a Checkout session, in milliseconds.
const MIN_SESSION_LIFETIME: i64 = 30 * 60_000;
const MAX_SESSION_LIFETIME: i64 = 24 * 60 * 60_000;

/// The operator's settings. `Debug` shows no key.
#[derive(Clone)]
pub struct StripeSettings {
    /// `sk_live_…`, `sk_test_…`, or a restricted key with `rk_`.
    pub secret_key: SecretString,
    /// `whsec_…`. While one is replaced, the old and the new.
    pub webhook_secrets: Vec<SecretString>,
    /// `https://api.stripe.com` in production.
    pub base_url: String,
    /// The timeout of one call, including connecting.
    pub timeout: Duration,
}

/// The connection to Stripe.
pub struct Stripe {
    secret_key: SecretString,
    webhooks: WebhookReader,
    base: BaseUrl,
    client: Client,
}

/// An order to be paid on Stripe's page.
#[derive(Debug, Clone)]
pub struct StripeOrder {
    pub order_no: String,
    /// In the currency's smallest unit.
    pub amount: i64,
    /// Three letters in lower case.
    pub currency: String,
    pub subject: String,
    /// The pages to which the buyer returns. A return proves nothing.
    pub success_url: String,
    pub cancel_url: String,
    /// Epoch milliseconds: half an hour to a day after `now`.
    pub expires_at: i64,
    /// Epoch milliseconds.
    pub now: i64,
}

/// A Checkout session as Stripe reports it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct StripeSession {
    pub id: String,
    /// The page on which the buyer pays; missing once the session has ended.
    pub url: Option<String>,
    /// `open`, `complete` or `expired`.
    #[serde(default)]
    pub status: Option<String>,
    /// `paid`, `unpaid` or `no_payment_required`.
    pub payment_status: String,
    pub amount_total: Option<i64>,
    pub currency: Option<String>,
    /// The order number.
    pub client_reference_id: Option<String>,
    /// The payment to refund, once there is one.
    pub payment_intent: Option<String>,
    #[serde(default)]
    livemode: bool,
}

/// A request to refund money.
#[derive(Debug, Clone)]
pub struct StripeRefundRequest {
    pub payment_intent: String,
    /// Our refund number. It makes the request safe to repeat.
    pub refund_no: String,
    /// In the currency's smallest unit.
    pub amount: i64,
}

/// A refund as Stripe reports it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct StripeRefund {
    pub id: String,
    pub amount: i64,
    pub currency: String,
    /// `pending`, `requires_action`, `succeeded`, `failed` or `canceled`.
    pub status: String,
    pub payment_intent: Option<String>,
    #[serde(default)]
    metadata: Option<RefundMetadata>,
}

/// The members that we add to a refund.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
struct RefundMetadata {
    refund_no: Option<String>,
}

#[derive(Deserialize)]
struct RefundList {
    data: Vec<StripeRefund>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ErrorBody {
    error: StripeError,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct StripeError {
    #[serde(rename = "type")]
    kind: String,
    code: Option<String>,
}

impl StripeRefund {
    /// Returns our number of the refund.
    fn refund_no(&self) -> Option<&str> {
        self.metadata.as_ref()?.refund_no.as_deref()
    }

    /// Returns our number of the refund, or Stripe's if it was made in the dashboard.
    pub fn number(&self) -> &str {
        self.refund_no().unwrap_or(&self.id)
    }

    /// Returns true if no money reached the buyer, and none will. A refund may succeed and fail days later.
    pub fn has_failed(&self) -> bool {
        matches!(self.status.as_str(), "failed" | "canceled")
    }
}

impl StripeSession {
    /// Returns true if the money arrived. A complete session alone proves nothing.
    pub fn is_paid(&self) -> bool {
        self.payment_status == "paid"
    }
}

impl Stripe {
    /// Builds the connection, or returns every fault of the settings.
    pub fn new(settings: &StripeSettings) -> Result<Self, Vec<SettingFault>> {
        let mut faults = Vec::new();
        let key = settings.secret_key.expose_secret();
        let mode = ["sk_live_", "rk_live_", "sk_test_", "rk_test_"].into_iter().find(|prefix| key.starts_with(prefix));
        if mode.is_none() || !key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            faults.push(fault("secret_key", "must be a secret key, which begins with sk_ or rk_"));
        }
        let secrets = &settings.webhook_secrets;
        if secrets.is_empty() || !secrets.iter().all(|secret| secret.expose_secret().starts_with("whsec_")) {
            faults.push(fault("webhook_secrets", "must be signing secrets, which begin with whsec_"));
        }
        require_safe_endpoint(PROVIDER, "base_url", &settings.base_url, &mut faults);
        let (true, Some(mode), Ok(base)) = (faults.is_empty(), mode, BaseUrl::parse(PROVIDER, &settings.base_url))
        else {
            return Err(faults);
        };
        // Repeating is safe with an idempotency key, but an unknown outcome costs a query.
        let limits = Limits::for_whole_calls(CONNECT_TIMEOUT, settings.timeout, false);
        Ok(Self {
            secret_key: settings.secret_key.clone(),
            webhooks: WebhookReader::new(secrets, mode.contains("live")),
            base,
            client: Client::new(PROVIDER, "payment.stripe.base_url", limits),
        })
    }

    /// Creates the session in which an order is paid. Safe to repeat with unchanged parameters within a day.
    pub fn create_session(&self, order: &StripeOrder) -> Result<StripeSession, Failure> {
        let lifetime = order.expires_at.saturating_sub(order.now);
        let is_currency = order.currency.len() == 3 && order.currency.bytes().all(|byte| byte.is_ascii_lowercase());
        let is_possible = !order.order_no.is_empty()
            && order.order_no.len() <= 200
            && (1..=99_999_999).contains(&order.amount)
            && is_currency
            && (1..=250).contains(&order.subject.chars().count())
            && (MIN_SESSION_LIFETIME..=MAX_SESSION_LIFETIME).contains(&lifetime);
        if !is_possible {
            return Err(Failure::new(FailureKind::Misconfigured, PROVIDER, "invalid_order"));
        }
        let (amount, expires_at) = (order.amount.to_string(), (order.expires_at / 1000).to_string());
        let fields = [
            ("mode", "payment"),
            ("line_items[0][quantity]", "1"),
            ("line_items[0][price_data][currency]", &order.currency),
            ("line_items[0][price_data][unit_amount]", &amount),
            ("line_items[0][price_data][product_data][name]", &order.subject),
            ("client_reference_id", &order.order_no),
            ("metadata[order_no]", &order.order_no),
            ("payment_intent_data[metadata][order_no]", &order.order_no),
            ("success_url", &order.success_url),
            ("cancel_url", &order.cancel_url),
            ("expires_at", &expires_at),
        ];
        let session: StripeSession =
            self.post("/v1/checkout/sessions", &fields, Some(&format!("order-{}", order.order_no)))?;
        let is_about_it = session.client_reference_id.as_ref() == Some(&order.order_no);
        if is_about_it { self.checked(session) } else { Err(invalid_response("answer_for_another_order")) }
    }

    /// Queries a session; `None` if Stripe does not know it.
    pub fn session(&self, id: &str) -> Result<Option<StripeSession>, Failure> {
        let answer = self.send("GET", &format!("/v1/checkout/sessions/{}", percent::encode(id)), "", None)?;
        match answer.status {
            200 => self.checked(parsed(answer)?).map(Some),
            404 => Ok(None),
            _ => Err(failure_of(answer)),
        }
    }

    /// Ends an open session, so that it can no longer be paid. Fails as `Refused` if it is not open: query it then.
    pub fn expire_session(&self, id: &str) -> Result<StripeSession, Failure> {
        let session = self.post(&format!("/v1/checkout/sessions/{}/expire", percent::encode(id)), &[], None)?;
        self.checked(session)
    }

    /// Refunds money. Safe to repeat with the same refund number and amount.
    pub fn refund(&self, refund: &StripeRefundRequest) -> Result<StripeRefund, Failure> {
        if refund.amount <= 0 || refund.payment_intent.is_empty() || !super::is_number(&refund.refund_no) {
            return Err(Failure::new(FailureKind::Refused, PROVIDER, "invalid_refund"));
        }
        let amount = refund.amount.to_string();
        let fields = [
            ("payment_intent", refund.payment_intent.as_str()),
            ("amount", &amount),
            ("metadata[refund_no]", &refund.refund_no),
        ];
        let made = self.post("/v1/refunds", &fields, Some(&format!("refund-{}", refund.refund_no)));
        let made: StripeRefund = made.map_err(Failure::with_unknown_outcome)?;
        if made.amount == refund.amount {
            Ok(made)
        } else {
            Err(invalid_response("answer_for_another_refund").with_unknown_outcome())
        }
    }

    /// Finds a refund of a payment by our number; `None` if there is none. Idempotency keys are forgotten after a day,
    /// so this must come before a refund is repeated.
    pub fn find_refund(&self, payment_intent: &str, refund_no: &str) -> Result<Option<StripeRefund>, Failure> {
        Ok(self.refunds_of(payment_intent)?.into_iter().find(|refund| refund.refund_no() == Some(refund_no)))
    }

    /// Returns the sum of a payment's successful refunds, also of those that were made in Stripe's dashboard.
    pub fn refunded_sum(&self, payment_intent: &str) -> Result<i64, Failure> {
        let refunds = self.refunds_of(payment_intent)?;
        Ok(refunds.iter().filter(|refund| refund.status == "succeeded").map(|refund| refund.amount).sum())
    }

    /// Returns the refunds of a payment, newest first.
    pub fn refunds_of(&self, payment_intent: &str) -> Result<Vec<StripeRefund>, Failure> {
        let path = format!("/v1/refunds?payment_intent={}&limit=100", percent::encode(payment_intent));
        let answer = self.send("GET", &path, "", None)?;
        match answer.status {
            200 => Ok(parsed::<RefundList>(answer)?.data),
            404 => Ok(Vec::new()),
            _ => Err(failure_of(answer)),
        }
    }

    /// Returns true if the keys are those of the live mode.
    pub fn is_live(&self) -> bool {
        self.webhooks.is_live()
    }

    /// Verifies and parses a webhook that was received at this time (epoch milliseconds). Makes no network call.
    ///
    /// Answer 2xx once its effect is stored; Stripe repeats anything else for three days, in any order.
    pub fn read_webhook(
        &self,
        signature: Option<&str>,
        body: &[u8],
        received_at: i64,
    ) -> Result<StripeNotification, super::Rejection> {
        self.webhooks.read(signature, body, received_at)
    }

    /// Rejects a session of the other mode: a test key in production would credit without money.
    fn checked(&self, session: StripeSession) -> Result<StripeSession, Failure> {
        if session.livemode == self.webhooks.is_live() {
            Ok(session)
        } else {
            Err(invalid_response("wrong_environment"))
        }
    }

    fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        fields: &[(&str, &str)],
        idempotency_key: Option<&str>,
    ) -> Result<T, Failure> {
        let answer = self.send("POST", path, &form::encode_all(fields), idempotency_key)?;
        if answer.status == 200 { parsed(answer) } else { Err(failure_of(answer)) }
    }

    fn send(
        &self,
        method: &str,
        path: &str,
        body: &str,
        idempotency_key: Option<&str>,
    ) -> Result<HttpResponse, Failure> {
        let authorization = format!("Bearer {}", self.secret_key.expose_secret());
        let mut headers = vec![("authorization", authorization.as_str()), ("stripe-version", API_VERSION)];
        if method == "POST" {
            headers.push(("content-type", "application/x-www-form-urlencoded"));
        }
        headers.extend(idempotency_key.map(|key| ("idempotency-key", key)));
        self.client.send(method, &format!("{}{path}", self.base.base()), &headers, body.as_bytes())
    }
}

fn parsed<T: DeserializeOwned>(answer: HttpResponse) -> Result<T, Failure> {
    let request_id = answer.header("request-id").map(str::to_owned);
    let body = answer.read_all(MAX_RESPONSE_BYTES)?;
    json::from_slice(&body).map_err(|_| invalid_response("answer_unreadable").with_request_id(request_id.as_deref()))
}

fn failure_of(answer: HttpResponse) -> Failure {
    let (status, request_id) = (answer.status, answer.header("request-id").map(str::to_owned));
    let body: ErrorBody = json::from_slice(&answer.read_error()).unwrap_or_default();
    let code = body.error.code.as_deref().and_then(clean_code).or_else(|| clean_code(&body.error.kind));
    let code = code.unwrap_or_else(|| format!("http_{status}"));
    Failure::new(FailureKind::of_status(status), PROVIDER, code).with_request_id(request_id.as_deref())
}

fn invalid_response(code: &str) -> Failure {
    Failure::new(FailureKind::InvalidResponse, PROVIDER, code)
}

impl fmt::Debug for StripeSettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("StripeSettings").field("base_url", &self.base_url).finish_non_exhaustive()
    }
}
