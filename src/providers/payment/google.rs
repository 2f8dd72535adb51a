//! Purchases in Google Play: the publisher API and the notifications of Pub/Sub.
//!
//! A purchase token of the app proves nothing; its state is queried with an access token of a service account. A
//! purchase is consumed only after it was credited: consumed ones can be bought again, and those that are neither
//! consumed nor acknowledged within three days are refunded.

use std::{fmt, time::Duration};

use secrecy::ExposeSecret;
use serde::{Deserialize, de::DeserializeOwned};

use super::{
    CONNECT_TIMEOUT, SettingFault,
    setting_fault::{fault, keep, require_safe_endpoint},
};
use crate::providers::json;
use crate::providers::{
    Failure, FailureKind, WallClock, clean_code,
    client::{BaseUrl, Client, HttpResponse, Limits},
    google_account::GoogleAccount,
    jwks::JwkCache,
    percent,
};

pub use purchase::{GooglePurchase, GoogleVoidedPage, GoogleVoidedPurchase};
pub use push::{GoogleEvent, GoogleNotification, GooglePushReader};

mod purchase;
mod push;
#[cfg(test)]
mod tests;

pub const PROVIDER: &str = "google";
const MAX_RESPONSE_BYTES: usize = 2 * 1024 * 1024;
const SCOPE: &str = "https://www.googleapis.com/auth/androidpublisher";

/// The operator's settings. `Debug` shows no key.
#[derive(Clone)]
pub struct GooglePlaySettings {
    pub package_name: String,
    /// The text of the service account's key file, which is JSON.
    pub service_account: String,
    /// `https://androidpublisher.googleapis.com` in production.
    pub base_url: String,
    /// Another token endpoint than the key file names, for tests.
    pub token_url: Option<String>,
    /// The address of Google's keys for notifications: `https://www.googleapis.com/oauth2/v3/certs`.
    pub keys_url: String,
    /// The audience of pushed notifications, usually their address.
    pub push_audience: String,
    /// The email address of the service account that the push subscription uses.
    pub push_service_account: String,
    /// The timeout of one call, including connecting.
    pub timeout: Duration,
}

/// The connection to Google Play for one app.
pub struct GooglePlay {
    pub push: GooglePushReader,
    account: GoogleAccount,
    base: BaseUrl,
    client: Client,
    clock: WallClock,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct GoogleErrorBody {
    error: GoogleError,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct GoogleError {
    status: String,
    errors: Vec<GoogleErrorReason>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct GoogleErrorReason {
    reason: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct VoidedAnswer {
    voided_purchases: Vec<GoogleVoidedPurchase>,
    token_pagination: Option<TokenPagination>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TokenPagination {
    next_page_token: Option<String>,
}

#[derive(Deserialize)]
struct OrderAnswer {
    total: Option<GoogleMoney>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GoogleMoney {
    currency_code: String,
    /// Left out for an amount below one.
    units: Option<String>,
    nanos: Option<i64>,
}

impl GoogleMoney {
    fn in_thousandths(self) -> Option<(i64, String)> {
        let units: i64 = self.units.as_deref().unwrap_or("0").parse().ok()?;
        let amount = units.checked_mul(1000)?.checked_add(self.nanos.unwrap_or(0) / 1_000_000)?;
        let is_code = self.currency_code.len() == 3 && self.currency_code.bytes().all(|byte| byte.is_ascii_uppercase());
        (is_code && amount >= 0).then_some((amount, self.currency_code))
    }
}

impl GooglePlay {
    /// Builds the connection, or returns every fault of the settings.
    pub fn new(settings: &GooglePlaySettings, clock: WallClock) -> Result<Self, Vec<SettingFault>> {
        let mut faults = Vec::new();
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"._".contains(&byte);
        if !settings.package_name.contains('.') || !settings.package_name.bytes().all(is_name) {
            faults.push(fault("package_name", "must be the name of the app's package, such as com.example.app"));
        }
        let account = GoogleAccount::parse(PROVIDER, SCOPE, &settings.service_account, settings.token_url.as_deref());
        let account = keep(account, "service_account", &mut faults);
        for (setting, url) in [("base_url", &settings.base_url), ("keys_url", &settings.keys_url)] {
            require_safe_endpoint(PROVIDER, setting, url, &mut faults);
        }
        if let Some(account) = &account {
            require_safe_endpoint(PROVIDER, "token_url", account.token_url(), &mut faults);
        }
        if settings.push_audience.is_empty() {
            faults.push(fault("push_audience", "must be the audience of the push subscription"));
        }
        if !settings.push_service_account.contains('@') {
            faults.push(fault("push_service_account", "must be the email address of a service account"));
        }
        let base = BaseUrl::parse(PROVIDER, &settings.base_url);
        let (Some(account), Ok(base)) = (account, base) else {
            return Err(faults);
        };
        if !faults.is_empty() {
            return Err(faults);
        }
        let limits = Limits::for_whole_calls(CONNECT_TIMEOUT, settings.timeout, true);
        Ok(Self {
            push: GooglePushReader {
                package_name: settings.package_name.clone(),
                audience: settings.push_audience.clone(),
                service_account: settings.push_service_account.clone(),
                keys: JwkCache::new(PROVIDER, &settings.keys_url),
            },
            account,
            base,
            client: Client::new(PROVIDER, "payment.google.base_url", limits),
            clock,
        })
    }

    /// Queries a purchase; `None` if its token is unknown or no longer valid.
    pub fn purchase(&self, product_id: &str, token: &str) -> Result<Option<GooglePurchase>, Failure> {
        let answer = self.send("GET", &product_path(product_id, token))?;
        match answer.status {
            200 => parsed(answer).map(Some),
            404 | 410 => Ok(None),
            _ => Err(failure_of(answer)),
        }
    }

    /// Consumes a purchase that was credited. Safe to repeat.
    pub fn consume(&self, product_id: &str, token: &str) -> Result<(), Failure> {
        let answer = self.send("POST", &format!("{}:consume", product_path(product_id, token)))?;
        if (200..300).contains(&answer.status) { Ok(()) } else { Err(failure_of(answer)) }
    }

    /// Returns a page of the purchases that were voided since a time (epoch milliseconds), at most 30 days back. This is
    /// the only sure way to hear of refunds.
    pub fn voided_purchases(&self, since: i64, page: Option<&str>) -> Result<GoogleVoidedPage, Failure> {
        let page = page.map(|token| format!("&token={}", percent::encode(token))).unwrap_or_default();
        let path = format!(
            "/purchases/voidedpurchases?startTime={since}&type=0&maxResults=1000\
             &includeQuantityBasedPartialRefund=true{page}"
        );
        let answer = self.send("GET", &path)?;
        if answer.status != 200 {
            return Err(failure_of(answer));
        }
        let answer: VoidedAnswer = parsed(answer)?;
        Ok(GoogleVoidedPage {
            purchases: answer.voided_purchases,
            next: answer.token_pagination.and_then(|pagination| pagination.next_page_token),
        })
    }

    /// Returns what the buyer paid for an order, in thousandths of the currency. The service account needs the right to
    /// see financial data.
    pub fn order_price(&self, order_id: &str) -> Result<Option<(i64, String)>, Failure> {
        let answer = self.send("GET", &format!("/orders/{}", percent::encode(order_id)))?;
        match answer.status {
            200 => Ok(parsed::<OrderAnswer>(answer)?.total.and_then(GoogleMoney::in_thousandths)),
            404 => Ok(None),
            _ => Err(failure_of(answer)),
        }
    }

    /// Refunds an order and takes the right to its product back.
    pub fn refund(&self, order_id: &str) -> Result<(), Failure> {
        let answer = self.send("POST", &format!("/orders/{}:refund?revoke=true", percent::encode(order_id)));
        let answer = answer.map_err(Failure::with_unknown_outcome)?;
        match answer.status {
            200..=299 => Ok(()),
            _ => Err(failure_of(answer)),
        }
    }

    /// Fetches the keys of notifications, at most every five minutes. Returns true if they were fetched.
    pub fn refresh_keys(&self) -> Result<bool, Failure> {
        self.push.refresh_keys(&self.client, (self.clock)())
    }

    /// Sends a request with an access token. A rejected token is renewed once.
    fn send(&self, method: &str, path: &str) -> Result<HttpResponse, Failure> {
        let answer = self.send_once(method, path)?;
        if answer.status != 401 {
            return Ok(answer);
        }
        self.account.forget_token();
        self.send_once(method, path)
    }

    fn send_once(&self, method: &str, path: &str) -> Result<HttpResponse, Failure> {
        let token = self.account.access_token(&self.client, (self.clock)())?;
        let authorization = format!("Bearer {}", token.expose_secret());
        let headers = [("accept", "application/json"), ("authorization", authorization.as_str())];
        let package = percent::encode(&self.push.package_name);
        let url = format!("{}/androidpublisher/v3/applications/{package}{path}", self.base.base());
        self.client.send(method, &url, &headers, b"")
    }
}

fn product_path(product_id: &str, token: &str) -> String {
    format!("/purchases/products/{}/tokens/{}", percent::encode(product_id), percent::encode(token))
}

fn parsed<T: DeserializeOwned>(answer: HttpResponse) -> Result<T, Failure> {
    let body = answer.read_all(MAX_RESPONSE_BYTES)?;
    json::from_slice(&body).map_err(|_| Failure::new(FailureKind::InvalidResponse, PROVIDER, "answer_unreadable"))
}

fn failure_of(answer: HttpResponse) -> Failure {
    let status = answer.status;
    let body: GoogleErrorBody = json::from_slice(&answer.read_error()).unwrap_or_default();
    let reason = body.error.errors.first().and_then(|error| clean_code(&error.reason));
    let code = reason.or_else(|| clean_code(&body.error.status)).unwrap_or_else(|| format!("http_{status}"));
    Failure::new(FailureKind::of_status(status), PROVIDER, code)
}

impl fmt::Debug for GooglePlaySettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut output = formatter.debug_struct("GooglePlaySettings");
        output.field("package_name", &self.package_name).field("base_url", &self.base_url);
        output.field("push_audience", &self.push_audience).field("push_service_account", &self.push_service_account);
        output.finish_non_exhaustive()
    }
}
