//! Alipay's open platform: app payments over the classic gateway, signed with RSA2.
//!
//! Three keys are involved: our private key signs requests, the provider holds its public half, and the provider's
//! public key verifies callbacks and responses. Mixing up the two public keys is the most common mistake, and is
//! detected when the gateway is built.
//!
//! A response with an invalid signature proves nothing: a query fails as invalid, and a call that moves money or closes
//! a trade has an unknown outcome. The caller must then query before repeating it.

use serde::Serialize;

use super::bill::ProviderBill;
use super::callback::CallbackReader;
use super::order_string::Merchant;
use super::{
    CONNECT_TIMEOUT, CloseOutcome, Currency, Fen, OrderRequest, PaymentCallback, RefundOutcome, RefundQueryOutcome,
    RefundRequest, Rejection, SettingFault, Trade, TradeQueryOutcome, TradeStatus, refund_implied_by_query,
    setting_fault::{fault, is_safe_endpoint, keep},
    signing::{Signer, Verifier},
};
use crate::providers::client::{Client, Limits, Post};
use crate::providers::rsa::{PrivateKey, PublicKey};
use crate::providers::shanghai_time::{shanghai_milliseconds, shanghai_text};
use crate::providers::{Failure, FailureKind, WallClock};

use answer::{AlipayResponse, ResponseFault};
use calls::{AlipayOperation, CLOSE, QUERY, QUERY_BILL, QUERY_REFUND, REFUND, refusal};
pub use certificates::AlipayCertificateTexts;
use certificates::AlipayCertificates;
pub use settings::AlipaySettings;

mod bill;
pub(super) mod certificates;
mod answer;
mod calls;
mod settings;

pub const PROVIDER: &str = "alipay";
/// Maximum characters of the provider's trade number.
const MAX_NUMBER_LENGTH: usize = 64;
const MAX_RESPONSE_BYTES: usize = 256 * 1024;
const MAX_BILL_BYTES: usize = 64 * 1024 * 1024;

/// The gateway to Alipay.
pub struct Alipay {
    merchant: Merchant,
    reader: CallbackReader,
    /// The number of the provider's certificate, in certificate mode.
    certificate_number: Option<String>,
    gateway_url: String,
    client: Client,
    clock: WallClock,
}

impl Alipay {
    /// Builds the gateway, or returns every fault of the settings.
    pub fn new(settings: &AlipaySettings, clock: WallClock) -> Result<Self, Vec<SettingFault>> {
        let mut faults = settings.plain_faults();
        let private_key = keep(PrivateKey::parse(&settings.private_key), "private_key", &mut faults);
        let certificates = settings.certificates.as_ref().map(AlipayCertificates::parse).transpose();
        let certificates = certificates.unwrap_or_else(|found| {
            faults.extend(found);
            None
        });
        let public_key = match &certificates {
            Some(certificates) => Some(certificates.alipay_key.clone()),
            // The faults of the certificates are enough.
            None if settings.certificates.is_some() => None,
            None => keep(PublicKey::parse(&settings.alipay_public_key), "alipay_public_key", &mut faults),
        };
        if settings.certificates.is_some() && !settings.alipay_public_key.is_empty() {
            faults.push(fault("alipay_public_key", "must be empty in certificate mode; the certificate has the key"));
        }
        let (Some(private_key), Some(public_key)) = (private_key, public_key) else {
            return Err(faults);
        };
        if private_key.public_key() == public_key {
            let setting = if certificates.is_some() { "alipay_certificate" } else { "alipay_public_key" };
            faults.push(fault(setting, "is this service's own public key; set the provider's public key"));
        }
        if certificates.as_ref().is_some_and(|certificates| certificates.app_key != private_key.public_key()) {
            faults.push(fault("app_certificate", "is not that of private_key; download it for this key"));
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        Ok(Self::assemble(settings, private_key, public_key, certificates, clock))
    }

    fn assemble(
        settings: &AlipaySettings,
        private_key: PrivateKey,
        public_key: PublicKey,
        certificates: Option<AlipayCertificates>,
        clock: WallClock,
    ) -> Self {
        let (numbers, certificate_number) =
            certificates.map(|certificates| (certificates.numbers, certificates.certificate_number)).unzip();
        let merchant = Merchant {
            provider: PROVIDER,
            app_id: settings.app_id.clone(),
            seller_id: settings.seller_id.clone(),
            notify_url: settings.notify_url.clone(),
            signer: Signer::Rsa2(private_key),
            certificates: numbers,
        };
        let reader = CallbackReader {
            channel: PROVIDER,
            app_id: settings.app_id.clone(),
            seller_id: settings.seller_id.clone(),
            verifier: Verifier::Rsa2(public_key),
        };
        // A pooled connection may turn out dead after a refund was written to it, and the outcome would be unknown.
        let limits = Limits::for_whole_calls(CONNECT_TIMEOUT, settings.timeout, false);
        let gateway_url = settings.gateway_url.clone();
        Self {
            merchant,
            reader,
            certificate_number,
            gateway_url,
            client: Client::new(PROVIDER, "payment.gateway_url", limits),
            clock,
        }
    }

    /// Sends one call and verifies the response, which may still be a refusal.
    fn call(&self, call: AlipayOperation, content: &impl Serialize) -> Result<AlipayResponse, Failure> {
        self.exchange(call, content).map_err(|failure| call.with_unknown_outcome(failure))
    }

    fn exchange(&self, call: AlipayOperation, content: &impl Serialize) -> Result<AlipayResponse, Failure> {
        let (query, body) = calls::signed_request(&self.merchant, call, content, (self.clock)())?;
        let post = Post {
            url: &format!("{}?{query}", self.gateway_url),
            headers: &[
                ("content-type", "application/x-www-form-urlencoded;charset=utf-8"),
                ("accept", "application/json"),
            ],
            body: body.as_bytes(),
            total: None,
            is_unstreamed: false,
        };
        let answer = self.client.post(&post)?;
        let trace = answer.header("trace_id").map(str::to_owned);
        let result = if answer.status == 200 {
            answer.read_all(MAX_RESPONSE_BYTES).and_then(|body| self.verify(call, &body))
        } else {
            Err(calls::http_failure(PROVIDER, answer.status))
        };
        result.map_err(|failure| failure.with_request_id(trace.as_deref()))
    }

    fn verify(&self, call: AlipayOperation, body: &[u8]) -> Result<AlipayResponse, Failure> {
        answer::read(body, &call.response_key(), &self.reader.verifier).map_err(|fault| match fault {
            ResponseFault::UnsignedError(answer) => unsigned_refusal(&answer),
            ResponseFault::Unreadable => invalid_response("answer_unreadable"),
            ResponseFault::Unsigned => invalid_response("answer_unsigned"),
            // The number is not signed, so it only explains why the signature is invalid.
            ResponseFault::SignatureInvalid if self.names_other_certificate(body) => {
                invalid_response("alipay_certificate_changed")
            }
            ResponseFault::SignatureInvalid => invalid_response("answer_signature_invalid"),
        })
    }
}

impl Alipay {
    /// Returns true if a response names another certificate of the provider than the configured one.
    fn names_other_certificate(&self, body: &[u8]) -> bool {
        let named = answer::certificate_number(body);
        self.certificate_number.is_some() && named.is_some() && named != self.certificate_number
    }
}

impl Alipay {
    /// Returns the provider's id of our app.
    pub fn app_id(&self) -> &str {
        &self.merchant.app_id
    }

    /// Returns the signed string that the app passes unchanged to the provider's payment screen. Makes no network call.
    pub fn order_string(&self, order: &OrderRequest) -> Result<String, Failure> {
        self.merchant.order_string(order)
    }

    /// Parses a callback from the raw form body and verifies that signature, app and seller are ours.
    pub fn read_callback(&self, form_body: &[u8]) -> Result<PaymentCallback, Rejection> {
        self.reader.read(form_body)
    }

    /// Queries the trade of an order.
    pub fn query(&self, order_no: &str) -> Result<TradeQueryOutcome, Failure> {
        let answer = self.call(QUERY, &calls::TradeKey { out_trade_no: order_no })?;
        if answer.is_success() {
            return trade_of(&answer, order_no).map(TradeQueryOutcome::Found);
        }
        match answer.sub_code() {
            "ACQ.TRADE_NOT_EXIST" => Ok(TradeQueryOutcome::NotFound),
            _ => Err(refusal(PROVIDER, &answer)),
        }
    }

    /// Closes an unpaid trade. After `OutcomeUnknown`, query before repeating.
    pub fn close(&self, order_no: &str) -> Result<CloseOutcome, Failure> {
        let answer = self.call(CLOSE, &calls::TradeKey { out_trade_no: order_no })?;
        if answer.is_success() {
            answer.is_about(order_no).map_err(|code| CLOSE.with_unknown_outcome(invalid_response(code)))?;
            return Ok(CloseOutcome::Closed);
        }
        match answer.sub_code() {
            "ACQ.TRADE_NOT_EXIST" => Ok(CloseOutcome::NotFound),
            "ACQ.TRADE_STATUS_ERROR" | "ACQ.REASON_TRADE_STATUS_INVALID" | "ACQ.REASON_ILLEGAL_STATUS" => {
                Ok(CloseOutcome::NotClosable)
            }
            _ => Err(refusal(PROVIDER, &answer)),
        }
    }

    /// Refunds money. Safe to repeat with the same refund number and amount.
    pub fn refund(&self, refund: &RefundRequest) -> Result<RefundOutcome, Failure> {
        if !refund.is_possible() {
            return Err(Failure::new(FailureKind::Refused, PROVIDER, "invalid_refund"));
        }
        let content = calls::RefundContent {
            out_trade_no: &refund.order_no,
            refund_amount: refund.amount.to_string(),
            out_request_no: &refund.refund_no,
            refund_reason: &refund.reason,
        };
        let answer = self.call(REFUND, &content)?;
        if !answer.is_success() {
            return Err(refusal(PROVIDER, &answer));
        }
        answer.is_about(&refund.order_no).map_err(|code| REFUND.with_unknown_outcome(invalid_response(code)))?;
        let total = answer.refund_fee.as_deref().and_then(|fee| Fen::parse(fee).ok());
        Ok(match answer.fund_change.as_deref() {
            Some("Y") => RefundOutcome::Moved { total },
            _ => RefundOutcome::Unconfirmed { total },
        })
    }

    /// Queries if a refund took effect.
    pub fn query_refund(&self, order_no: &str, refund_no: &str) -> Result<RefundQueryOutcome, Failure> {
        let content = calls::RefundKey { out_trade_no: order_no, out_request_no: refund_no };
        let answer = self.call(QUERY_REFUND, &content)?;
        if answer.is_success() {
            return refund_outcome_of(&answer, order_no, refund_no);
        }
        match answer.sub_code() {
            "ACQ.TRADE_NOT_EXIST" => Ok(RefundQueryOutcome::NotFound),
            _ => Err(refusal(PROVIDER, &answer)),
        }
    }
}

impl Alipay {
    /// Fetches the bill of a day in Shanghai, given by any of its times in epoch milliseconds; `None` for a day without
    /// trades. The bill of a day is ready at 9:00 on the next.
    pub fn bill(&self, day: i64) -> Result<Option<ProviderBill>, Failure> {
        let text = shanghai_text(day).ok_or_else(|| self.merchant.misconfigured("time_out_of_range"))?;
        let bill_date = text.get(..10).unwrap_or_default();
        let answer = self.call(QUERY_BILL, &calls::BillKey { bill_type: "trade", bill_date })?;
        if !answer.is_success() {
            return match answer.sub_code() {
                "isp.bill_not_exist" | "BILL_NOT_EXIST" => Ok(None),
                _ => Err(refusal(PROVIDER, &answer)),
            };
        }
        let url = answer.bill_download_url.as_deref().filter(|url| is_safe_endpoint_with_query(url));
        let url = url.ok_or_else(|| invalid_response("bill_address"))?;
        let file = self.client.send("GET", url, &[], &[])?;
        if file.status != 200 {
            return Err(calls::http_failure(PROVIDER, file.status));
        }
        let archive = file.read_all(MAX_BILL_BYTES)?;
        bill::parse(&archive).map(Some).ok_or_else(|| invalid_response("bill_unreadable"))
    }
}

/// Returns true for an encrypted connection or one on this machine. The address is signed, but the file is not.
fn is_safe_endpoint_with_query(url: &str) -> bool {
    let without_query = url.split('?').next().unwrap_or_default();
    is_safe_endpoint(PROVIDER, without_query)
}

fn invalid_response(code: &str) -> Failure {
    Failure::new(FailureKind::InvalidResponse, PROVIDER, code)
}

/// Maps an unsigned error to a failure. A refusal by the gateway is believed, because it cannot sign for an application
/// that it does not know. A refusal by a product is not.
fn unsigned_refusal(answer: &AlipayResponse) -> Failure {
    let failure = refusal(PROVIDER, answer);
    let kind = if failure.kind == FailureKind::Refused { FailureKind::InvalidResponse } else { failure.kind };
    Failure { kind, ..failure }
}

fn trade_of(answer: &AlipayResponse, order_no: &str) -> Result<Trade, Failure> {
    let incomplete = || invalid_response("answer_incomplete");
    answer.is_about(order_no).map_err(invalid_response)?;
    if answer.trans_currency.as_deref().is_some_and(|currency| !matches!(currency, "" | "CNY")) {
        return Err(invalid_response("wrong_currency"));
    }
    let status = answer.trade_status.as_deref().and_then(TradeStatus::from_name).ok_or_else(incomplete)?;
    let amount = answer.total_amount.as_deref().and_then(|text| Fen::parse(text).ok()).ok_or_else(incomplete)?;
    let paid_at = answer.send_pay_date.as_deref().and_then(shanghai_milliseconds);
    Ok(Trade {
        channel: PROVIDER,
        order_no: order_no.to_owned(),
        trade_no: answer.trade_no.clone().filter(|number| is_number(number)).ok_or_else(incomplete)?,
        amount,
        currency: Currency::CNY,
        status,
        paid_at,
        refunded: refund_implied_by_query(status, paid_at, amount),
    })
}

/// Returns true if the text can be the provider's number of a trade.
fn is_number(text: &str) -> bool {
    (1..=MAX_NUMBER_LENGTH).contains(&text.len())
}

fn refund_outcome_of(answer: &AlipayResponse, order_no: &str, refund_no: &str) -> Result<RefundQueryOutcome, Failure> {
    let status = answer.refund_status.as_deref().unwrap_or_default();
    let Some(amount) = answer.refund_amount.as_deref().filter(|amount| !amount.is_empty()) else {
        return Ok(if status.is_empty() { RefundQueryOutcome::NotFound } else { RefundQueryOutcome::Unconfirmed });
    };
    let differs = |named: &Option<String>, asked: &str| named.as_deref().is_some_and(|named| named != asked);
    if differs(&answer.out_trade_no, order_no) || differs(&answer.out_request_no, refund_no) {
        return Err(invalid_response("answer_for_another_refund"));
    }
    let amount = Fen::parse(amount).map_err(|_| invalid_response("answer_incomplete"))?;
    Ok(if status == "REFUND_SUCCESS" {
        RefundQueryOutcome::Succeeded { amount }
    } else {
        RefundQueryOutcome::Unconfirmed
    })
}
