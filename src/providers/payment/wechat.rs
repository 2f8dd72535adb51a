//! WeChat Pay, version 3: payments in apps, pages and by code.
//!
//! Requests are signed with the merchant's key. Answers and notifications are signed with a key that their serial
//! names: the merchant's public key at WeChat, or a platform certificate. A message without a valid signature proves
//! nothing.
//!
//! The surprise: WeChat sends probe traffic, whose signatures are invalid on purpose, also as answers to real calls. Such
//! a call took place, so it is repeated once, which is safe for all calls here.

use std::sync::Mutex;

use serde::{Deserialize, de::DeserializeOwned};

use super::{
    CONNECT_TIMEOUT, CloseOutcome, Fen, OrderRequest, RefundRequest, Rejection, RejectionReason, SettingFault,
    TradeQueryOutcome,
    setting_fault::{fault, keep},
};
use crate::{
    concurrency::lock::lock_unpoisoned,
    providers::{
        Failure, FailureKind, WallClock,
        client::{BaseUrl, Client, HttpResponse, Limits},
        nonce::random_hex,
        percent,
        rsa::{PrivateKey, PublicKey},
        shanghai_time::shanghai_day,
        x509::RsaCertificate,
    },
};

use crate::providers::json;
use calls::{CloseContent, RefundAmount, RefundContent, WeChatCall, WeChatError};
use keys::{ApiV3Key, EncryptedResource, WeChatKeys};
use notification::NotificationReader;
use prepay::PrepayAnswer;
use report::{RefundReport, TradeReport};
use signature::WeChatMerchant;

pub use bill::{WeChatBill, WeChatBillLine, WeChatBillRefund};
pub use notification::{WeChatEvent, WeChatNotification};
pub use prepay::{AppPaymentCall, JsapiPaymentCall, WeChatClient, WeChatPayment};
pub use report::{WeChatRefund, WeChatRefundState};
pub use settings::WeChatSettings;
pub use signature::WeChatSignature;

mod keys;
mod signature;
mod report;
mod notification;
mod prepay;
mod calls;
mod bill;
mod settings;
#[cfg(test)]
mod tests;

pub const PROVIDER: &str = "wechat";
const MAX_RESPONSE_BYTES: usize = 256 * 1024;
const MAX_BILL_BYTES: usize = 64 * 1024 * 1024;
/// Serials in messages are chosen by their senders, so unknown ones must not cause a fetch each.
const CERTIFICATE_FETCH_INTERVAL: i64 = 60_000;

/// The connection to WeChat Pay.
pub struct WeChatPay {
    app_id: String,
    merchant: WeChatMerchant,
    keys: WeChatKeys,
    api_v3_key: ApiV3Key,
    /// Sent with every request, so that answers are signed with it.
    public_key_id: Option<String>,
    base: BaseUrl,
    notify_url: String,
    client: Client,
    clock: WallClock,
    /// The time of the last fetch of certificates.
    fetched_at: Mutex<Option<i64>>,
}

/// A platform certificate, to be stored so that a restart needs no fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlatformCertificate {
    /// Upper-case hexadecimal digits.
    pub serial: String,
    pub pem: String,
    /// Epoch milliseconds.
    pub expires_at: i64,
}

/// An answer with a success status and a valid signature, or an error.
type WeChatAnswer = Result<Vec<u8>, WeChatError>;

#[derive(Deserialize)]
struct CertificateList {
    data: Vec<ListedCertificate>,
}

#[derive(Deserialize)]
struct ListedCertificate {
    encrypt_certificate: EncryptedResource,
}

#[derive(Deserialize)]
struct BillLocation {
    hash_type: String,
    hash_value: String,
    download_url: String,
}

impl WeChatPay {
    /// Builds the connection, or returns every fault of the settings.
    pub fn new(settings: &WeChatSettings, clock: WallClock) -> Result<Self, Vec<SettingFault>> {
        let mut faults = settings.plain_faults();
        let private_key = keep(PrivateKey::parse(&settings.private_key), "private_key", &mut faults);
        let api_v3_key = keep(ApiV3Key::parse(&settings.api_v3_key), "api_v3_key", &mut faults);
        let keys = WeChatKeys::default();
        if let (Some(id), Some(text)) = (&settings.public_key_id, &settings.public_key)
            && let Some(key) = keep(PublicKey::parse(text), "public_key", &mut faults)
        {
            if private_key.as_ref().is_some_and(|private_key| private_key.public_key() == key) {
                faults.push(fault("public_key", "is this service's own public key; set the provider's public key"));
            }
            keys.add_public_key(id, key);
        }
        if let Some(text) = &settings.platform_certificates {
            let certificates = keep(RsaCertificate::parse_all(text), "platform_certificates", &mut faults);
            certificates.into_iter().flatten().for_each(|certificate| keys.add_certificate(certificate));
        }
        let base = BaseUrl::parse(PROVIDER, &settings.base_url);
        let (Some(key), Some(api_v3_key), Ok(base)) = (private_key, api_v3_key, base) else { return Err(faults) };
        if !faults.is_empty() {
            return Err(faults);
        }
        // A pooled connection may turn out dead after a refund was written to it, and the outcome would be unknown.
        let limits = Limits::for_whole_calls(CONNECT_TIMEOUT, settings.timeout, false);
        let (merchant_id, serial) = (settings.merchant_id.clone(), settings.merchant_serial.to_ascii_uppercase());
        Ok(Self {
            app_id: settings.app_id.clone(),
            merchant: WeChatMerchant { merchant_id, serial, key },
            keys,
            api_v3_key,
            public_key_id: settings.public_key_id.clone(),
            base,
            notify_url: settings.notify_url.clone(),
            client: Client::new(PROVIDER, "payment.wechat.base_url", limits),
            clock,
            fetched_at: Mutex::new(None),
        })
    }

    /// Returns the provider's id of our app.
    pub fn app_id(&self) -> &str {
        &self.app_id
    }

    /// Places an order and returns what the client needs to pay it. Safe to repeat with unchanged parameters.
    pub fn prepay(&self, client: WeChatClient<'_>, order: &OrderRequest) -> Result<WeChatPayment, Failure> {
        let content = prepay::content(client, order, &self.app_id, &self.merchant.merchant_id, &self.notify_url);
        let content = content.map_err(misconfigured)?;
        let answer = self.call(&WeChatCall::post(client.path().to_owned(), &content, false)?)?;
        let answer: PrepayAnswer = parsed(&answer.map_err(|error| error.failure())?)?;
        let (now, nonce) = ((self.clock)() / 1000, random_hex::<16>(PROVIDER)?);
        let payment = prepay::payment(client, answer, &self.merchant, &self.app_id, now, &nonce);
        payment.map_err(|_| misconfigured("signing_failed"))?.ok_or_else(|| invalid_response("answer_incomplete"))
    }

    /// Queries the trade of an order. A refunded trade is reported as paid: only its refunds say how much went back.
    pub fn query(&self, order_no: &str) -> Result<TradeQueryOutcome, Failure> {
        let Self { merchant, .. } = self;
        let path = format!("{}?mchid={}", order_path(order_no), merchant.merchant_id);
        let body = match self.call(&WeChatCall::get(path))? {
            Ok(body) => body,
            Err(error) if error.is("ORDERNOTEXIST") => return Ok(TradeQueryOutcome::NotFound),
            Err(error) => return Err(error.failure()),
        };
        let report: TradeReport = parsed(&body)?;
        if report.out_trade_no != order_no || report.mchid != merchant.merchant_id || report.appid != self.app_id {
            return Err(invalid_response("answer_for_another_order"));
        }
        report.trade().map(TradeQueryOutcome::Found).map_err(|reason| invalid_response(reason.code()))
    }

    /// Closes an unpaid trade. After `OutcomeUnknown`, query before repeating.
    pub fn close(&self, order_no: &str) -> Result<CloseOutcome, Failure> {
        let content = CloseContent { mchid: &self.merchant.merchant_id };
        let call = WeChatCall::post(format!("{}/close", order_path(order_no)), &content, true)?;
        match self.call(&call)? {
            Ok(_) => Ok(CloseOutcome::Closed),
            Err(error) if error.is("ORDERNOTEXIST") => Ok(CloseOutcome::NotFound),
            Err(error) if error.is("ORDERPAID") => Ok(CloseOutcome::NotClosable),
            // Closed already.
            Err(error) if error.is("ORDERCLOSED") && error.is_proven => Ok(CloseOutcome::Closed),
            Err(error) => Err(error.failure_of_change()),
        }
    }

    /// Refunds money of an order with this price. Safe to repeat with the same refund number and amount. The provider
    /// confirms the refund later, by a notification or by [`Self::query_refund`].
    pub fn refund(&self, refund: &RefundRequest, price: Fen) -> Result<WeChatRefund, Failure> {
        let is_possible = refund.is_possible() && refund.reason.chars().count() <= 80 && refund.amount <= price;
        if !is_possible {
            return Err(Failure::new(FailureKind::Refused, PROVIDER, "invalid_refund"));
        }
        let content = RefundContent {
            out_trade_no: &refund.order_no,
            out_refund_no: &refund.refund_no,
            reason: &refund.reason,
            notify_url: &self.notify_url,
            amount: RefundAmount { refund: refund.amount.as_fen(), total: price.as_fen(), currency: "CNY" },
        };
        let call = WeChatCall::post("/v3/refund/domestic/refunds".to_owned(), &content, true)?;
        let body = self.call(&call)?.map_err(|error| error.failure_of_change())?;
        refund_in(&body, &refund.order_no, &refund.refund_no).map_err(|failure| call.with_unknown_outcome(failure))
    }

    /// Queries a refund; `None` if the provider does not know it. Without proof of that the call fails, because the
    /// refund may have taken place.
    pub fn query_refund(&self, order_no: &str, refund_no: &str) -> Result<Option<WeChatRefund>, Failure> {
        let path = format!("/v3/refund/domestic/refunds/{}", percent::encode(refund_no));
        match self.call(&WeChatCall::get(path))? {
            Ok(body) => refund_in(&body, order_no, refund_no).map(Some),
            Err(error) if error.is_proven && (error.is("RESOURCENOTEXISTS") || error.is("REFUNDNOTEXISTS")) => Ok(None),
            Err(error) => Err(error.failure_of_change()),
        }
    }

    /// Fetches the bill of a day in Shanghai, given by any of its times in epoch milliseconds; `None` for a day without
    /// trades. The bill of a day is ready at 10:00 on the next.
    pub fn bill(&self, day: i64) -> Result<Option<WeChatBill>, Failure> {
        let day = shanghai_day(day).ok_or_else(|| misconfigured("time_out_of_range"))?;
        let path = format!("/v3/bill/tradebill?bill_date={}-{}-{}&bill_type=ALL", &day[..4], &day[4..6], &day[6..]);
        let location: BillLocation = match self.call(&WeChatCall::get(path))? {
            Ok(body) => parsed(&body)?,
            Err(error) if error.is("NOSTATEMENTEXIST") => return Ok(None),
            Err(error) => return Err(error.failure()),
        };
        if location.hash_type != "SHA1" {
            return Err(invalid_response("bill_hash_unknown"));
        }
        let path = location.download_url.strip_prefix(self.base.base()).filter(|path| path.starts_with('/'));
        let path = path.ok_or_else(|| invalid_response("bill_address"))?;
        let answer = self.send(&WeChatCall::get(path.to_owned()))?;
        if answer.status != 200 {
            let error = WeChatError::new(answer.status, &answer.read_error(), false);
            return Err(error.failure());
        }
        let file = answer.read_all(MAX_BILL_BYTES)?;
        if !bill::has_sha1(&file, &location.hash_value) {
            return Err(invalid_response("bill_checksum"));
        }
        bill::parse(&file).map(Some).ok_or_else(|| invalid_response("bill_unreadable"))
    }

    /// Verifies and parses a notification that was received at this time (epoch milliseconds). Makes no network call.
    ///
    /// The answer is 200 or 204 once its effect is stored, else 4xx or 5xx. For `UnknownKey` call
    /// [`Self::refresh_certificates`] and read it again. `ProbeTraffic` is no fault; `Undecryptable` means that the
    /// `APIv3` key was changed at the provider.
    pub fn read_notification(
        &self,
        signature: &WeChatSignature,
        body: &[u8],
        received_at: i64,
    ) -> Result<WeChatNotification, Rejection> {
        let reader = NotificationReader {
            app_id: &self.app_id,
            merchant_id: &self.merchant.merchant_id,
            keys: &self.keys,
            api_v3_key: &self.api_v3_key,
        };
        reader.read(signature, body, received_at)
    }

    /// Fetches the platform certificates and keeps their keys. Returns nothing within a minute after the last fetch, and
    /// for merchants in public-key mode.
    pub fn refresh_certificates(&self) -> Result<Vec<PlatformCertificate>, Failure> {
        let now = (self.clock)();
        {
            let mut fetched_at = lock_unpoisoned(&self.fetched_at);
            if fetched_at.is_some_and(|fetched_at| now < fetched_at + CERTIFICATE_FETCH_INTERVAL) {
                return Ok(Vec::new());
            }
            *fetched_at = Some(now);
        }
        let answer = self.send(&WeChatCall::get("/v3/certificates".to_owned()))?;
        if answer.status != 200 {
            let error = WeChatError::new(answer.status, &answer.read_error(), false);
            return if error.is("RESOURCENOTEXISTS") { Ok(Vec::new()) } else { Err(error.failure()) };
        }
        let signature = WeChatSignature::from_headers(|name| answer.header(name));
        let signature = signature.map_err(unproven)?;
        let body = answer.read_all(MAX_RESPONSE_BYTES)?;
        let list: CertificateList = parsed(&body)?;
        let opened = list.data.iter().map(|listed| self.api_v3_key.open_certificate(&listed.encrypt_certificate));
        let opened = opened.collect::<Result<Vec<_>, _>>().map_err(unproven)?;
        // The answer is signed with one of the certificates inside it. Until that is checked their keys are not kept.
        let candidates = WeChatKeys::default();
        for (certificate, _) in &opened {
            candidates.add_certificate(certificate.clone());
        }
        let verified = match signature.verify(&body, &candidates, now) {
            Err(RejectionReason::UnknownKey) => signature.verify(&body, &self.keys, now),
            verified => verified,
        };
        verified.map_err(unproven)?;
        let keep = |(certificate, pem): (RsaCertificate, String)| {
            let (serial, expires_at) = (certificate.serial.clone(), certificate.expires_at);
            self.keys.add_certificate(certificate);
            PlatformCertificate { serial, pem, expires_at }
        };
        Ok(opened.into_iter().map(keep).collect())
    }

    /// Sends one call and verifies the answer. A probe is answered by repeating the call once.
    fn call(&self, call: &WeChatCall) -> Result<WeChatAnswer, Failure> {
        if self.keys.is_empty() {
            self.refresh_certificates()?;
            // Without a key no answer can be verified, so nothing is sent.
            if self.keys.is_empty() {
                return Err(misconfigured("no_verification_key"));
            }
        }
        let attempt = || self.exchange(call).map_err(|failure| call.with_unknown_outcome(failure));
        match attempt() {
            Err(failure) if failure.code == RejectionReason::ProbeTraffic.code() => attempt(),
            other => other,
        }
    }

    fn exchange(&self, call: &WeChatCall) -> Result<WeChatAnswer, Failure> {
        let answer = self.send(call)?;
        let (status, request_id) = (answer.status, answer.header("request-id").map(str::to_owned));
        let signature = WeChatSignature::from_headers(|name| answer.header(name));
        let received_at = (self.clock)();
        let with_id = |failure: Failure| failure.with_request_id(request_id.as_deref());
        if !(200..300).contains(&status) {
            let body = answer.read_error();
            let is_proven = signature.is_ok_and(|signature| self.verify(&signature, &body, received_at).is_ok());
            return Ok(Err(WeChatError::new(status, &body, is_proven)));
        }
        let body = answer.read_all(MAX_RESPONSE_BYTES).map_err(with_id)?;
        let verified = signature.and_then(|signature| self.verify(&signature, &body, received_at));
        verified.map_err(|reason| with_id(unproven(reason)))?;
        Ok(Ok(body))
    }

    /// Verifies an answer. A key that the provider has introduced since the last fetch is fetched.
    fn verify(&self, signature: &WeChatSignature, body: &[u8], received_at: i64) -> Result<(), RejectionReason> {
        match signature.verify(body, &self.keys, received_at) {
            Err(RejectionReason::UnknownKey) => match self.refresh_certificates() {
                Ok(fetched) if !fetched.is_empty() => signature.verify(body, &self.keys, received_at),
                _ => Err(RejectionReason::UnknownKey),
            },
            verified => verified,
        }
    }

    fn send(&self, call: &WeChatCall) -> Result<HttpResponse, Failure> {
        let (now, nonce) = ((self.clock)() / 1000, random_hex::<16>(PROVIDER)?);
        let authorization = self.merchant.authorization(call.method, &call.path, &call.body, now, &nonce);
        let authorization = authorization.map_err(|_| misconfigured("signing_failed"))?;
        let mut headers = vec![("accept", "application/json"), ("authorization", authorization.as_str())];
        if !call.body.is_empty() {
            headers.push(("content-type", "application/json"));
        }
        if let Some(id) = &self.public_key_id {
            headers.push(("wechatpay-serial", id));
        }
        let url = format!("{}{}", self.base.base(), call.path);
        self.client.send(call.method, &url, &headers, call.body.as_bytes())
    }
}

fn order_path(order_no: &str) -> String {
    format!("/v3/pay/transactions/out-trade-no/{}", percent::encode(order_no))
}

fn refund_in(body: &[u8], order_no: &str, refund_no: &str) -> Result<WeChatRefund, Failure> {
    let report: RefundReport = parsed(body)?;
    if report.out_trade_no != order_no || report.out_refund_no != refund_no {
        return Err(invalid_response("answer_for_another_refund"));
    }
    report.refund().map_err(|reason| invalid_response(reason.code()))
}

fn parsed<T: DeserializeOwned>(body: &[u8]) -> Result<T, Failure> {
    json::from_slice(body).map_err(|_| invalid_response("answer_unreadable"))
}

fn invalid_response(code: &str) -> Failure {
    Failure::new(FailureKind::InvalidResponse, PROVIDER, code)
}

fn misconfigured(code: &str) -> Failure {
    Failure::new(FailureKind::Misconfigured, PROVIDER, code)
}

/// Maps an answer without a valid signature. The call took place, so a probe leaves the outcome unknown.
fn unproven(reason: RejectionReason) -> Failure {
    let kind = match reason {
        RejectionReason::ProbeTraffic => FailureKind::OutcomeUnknown,
        _ => FailureKind::InvalidResponse,
    };
    Failure::new(kind, PROVIDER, reason.code())
}
