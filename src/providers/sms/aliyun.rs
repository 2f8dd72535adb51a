//! Aliyun short messages: the operations `SendSms` and `QuerySendDetails` of Dysmsapi, version 2017-05-25.
//!
//! Owns the request, the single safe retry, and the meaning of the business codes. Nothing with an unknown outcome is
//! retried: the service has no idempotency key, and two codes confuse a user more than a failure.
//!
//! A refusal usually arrives with HTTP 200, and only its `Code` tells.

use std::time::{Duration, Instant};

use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use super::{CodeMessage, DeliveryReceipt, DeliveryStatus, SentMessage, SmsSender};
use crate::providers::acs3::{self, Credentials, ErrorBody};
use crate::providers::client::{BaseUrl, Client, HttpResponse, Limits};
use crate::providers::nonce::{random_bytes, random_hex};
use crate::providers::shanghai_time::{shanghai_day, shanghai_milliseconds};
use crate::providers::{Failure, FailureKind, MessageReceipt, WallClock, clean_code};

/// The driver's name in the configuration.
pub const NAME: &str = "aliyun";

const ACTION: &str = "SendSms";
const DETAILS: &str = "QuerySendDetails";
const PROBE: &str = "QuerySmsTemplate";
const VERSION: &str = "2017-05-25";
const CONNECT: Duration = Duration::from_secs(3);
const TOTAL: Duration = Duration::from_secs(5);
/// With less time left a second attempt would probably time out. The provider recommends at least a second.
const MIN_ATTEMPT_TIME: Duration = Duration::from_secs(1);
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

/// The account data from the provider's console. `Debug` masks the secret.
#[derive(Clone, Debug)]
pub struct AliyunSmsSettings {
    /// `https://dysmsapi.aliyuncs.com`, or the address of another region.
    pub endpoint: String,
    /// The public half of the access key.
    pub access_key_id: String,
    /// The private half of the access key.
    pub access_key_secret: SecretString,
    /// The approved signature, without brackets.
    pub sign_name: String,
    /// The approved template, which has the one variable `code`.
    pub template_code: String,
}

/// Sends verification codes through Aliyun.
pub struct AliyunSms {
    settings: AliyunSmsSettings,
    credentials: Credentials,
    client: Client,
    clock: WallClock,
    total: Duration,
}

#[derive(Deserialize)]
struct SendSmsResponse {
    #[serde(rename = "BizId")]
    provider_id: Option<String>,
}

#[derive(Deserialize)]
struct DetailsResponse {
    #[serde(rename = "SmsSendDetailDTOs")]
    details: Details,
}

#[derive(Deserialize)]
struct Details {
    #[serde(rename = "SmsSendDetailDTO")]
    messages: Vec<Detail>,
}

/// One message. Its text, which holds the code, is not read.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Detail {
    send_status: serde_json::Value,
    err_code: Option<String>,
    receive_date: Option<String>,
}

impl AliyunSms {
    /// Creates a sender for one account. With an invalid endpoint, every message fails as `Misconfigured`.
    pub fn new(settings: AliyunSmsSettings, clock: WallClock) -> Self {
        Self::with_total_timeout(settings, clock, TOTAL)
    }

    /// Creates a driver with a time limit other than five seconds per message, retry included.
    pub fn with_total_timeout(settings: AliyunSmsSettings, clock: WallClock, total: Duration) -> Self {
        let limits = Limits {
            connect: CONNECT.min(total),
            first_byte: total,
            idle: total,
            total,
            // A pooled connection may turn out dead only after the message was written to it.
            reuse_connections: false,
        };
        let credentials = Credentials {
            access_key_id: settings.access_key_id.clone(),
            access_key_secret: settings.access_key_secret.clone(),
        };
        Self { settings, credentials, client: Client::new(NAME, "sms.endpoint", limits), clock, total }
    }

    fn attempt(&self, message: &CodeMessage, total: Duration) -> Result<MessageReceipt, Failure> {
        let parameter = serde_json::json!({ "code": message.code.expose_secret() }).to_string();
        let query = [
            ("PhoneNumbers", recipient(&message.phone_number)),
            ("SignName", self.settings.sign_name.clone()),
            ("TemplateCode", self.settings.template_code.clone()),
            ("TemplateParam", parameter),
        ];
        let accepted = self.call(ACTION, &query, total)?;
        let provider_id =
            serde_json::from_slice::<SendSmsResponse>(&accepted).ok().and_then(|answer| answer.provider_id);
        Ok(MessageReceipt {
            provider_id: provider_id.as_deref().and_then(clean_code),
            words: ErrorBody::words(&accepted),
            ..MessageReceipt::default()
        })
    }

    /// Calls an operation and returns the body of a good answer.
    fn call(&self, action: &str, query: &[(&str, String)], total: Duration) -> Result<Vec<u8>, Failure> {
        let endpoint = BaseUrl::parse(NAME, &self.settings.endpoint)?;
        let nonce = random_hex::<16>(NAME)?;
        let query: Vec<(&str, &str)> = query.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let call = acs3::Acs3Request {
            host: endpoint.host_header(),
            action,
            version: VERSION,
            now_millis: (self.clock)(),
            nonce: &nonce,
            query: &query,
            content_type: None,
            body: b"",
        };
        judge(acs3::send(&self.client, &endpoint, &call, &self.credentials, Some(total))?)
    }

    /// Returns the delay before the single retry; `None` if the call must not be retried.
    fn pause_before_retry(failure: &Failure, left: Duration) -> Option<Duration> {
        if !failure.is_certainly_not_accepted()
            || !failure.is_retryable()
            || failure.kind == FailureKind::RecipientLimited
        {
            return None;
        }
        let [random] = random_bytes::<1>(NAME).ok()?;
        let jittered = Duration::from_millis(250 + u64::from(random));
        let pause = failure.retry_after.unwrap_or(jittered);
        (pause + MIN_ATTEMPT_TIME <= left).then_some(pause)
    }
}

impl SmsSender for AliyunSms {
    fn name(&self) -> &'static str {
        NAME
    }

    fn send_code(&self, message: &CodeMessage) -> Result<MessageReceipt, Failure> {
        let started = Instant::now();
        let failure = match self.attempt(message, self.total) {
            Err(failure) => failure,
            accepted => return accepted,
        };
        let left = self.total.saturating_sub(started.elapsed());
        let Some(pause) = Self::pause_before_retry(&failure, left) else {
            return Err(failure);
        };
        std::thread::sleep(pause);
        self.attempt(message, self.total.saturating_sub(started.elapsed()))
    }

    fn delivery(&self, sent: &SentMessage) -> Result<Option<DeliveryReceipt>, Failure> {
        let day = shanghai_day(sent.sent_at).ok_or_else(|| Failure::new(FailureKind::Refused, NAME, "date"))?;
        let query = [
            ("PhoneNumber", recipient(&sent.phone_number)),
            ("BizId", sent.provider_id.clone()),
            ("SendDate", day),
            ("PageSize", "1".to_owned()),
            ("CurrentPage", "1".to_owned()),
        ];
        Ok(delivery_of(&self.call(DETAILS, &query, self.total)?))
    }

    fn probe(&self) -> Result<(), Failure> {
        // Requires the permission to query templates, which the provider's permission to send includes.
        self.call(PROBE, &[("TemplateCode", self.settings.template_code.clone())], self.total).map(drop)
    }
}

/// Formats the number for the provider: mainland numbers without a country code, all others without the plus sign.
fn recipient(phone_number: &str) -> String {
    let digits = phone_number.trim_start_matches('+');
    match digits.strip_prefix("86") {
        Some(national) if phone_number.starts_with('+') && national.len() == 11 => national.to_owned(),
        _ => digits.to_owned(),
    }
}

/// Reads a delivery receipt; `None` if there is none, or it says nothing known.
fn delivery_of(body: &[u8]) -> Option<DeliveryReceipt> {
    let answer: DetailsResponse = serde_json::from_slice(body).ok()?;
    let message = answer.details.messages.into_iter().next()?;
    let status = match message.send_status.as_i64().or_else(|| message.send_status.as_str()?.parse().ok())? {
        1 => DeliveryStatus::Waiting,
        2 => DeliveryStatus::Failed,
        3 => DeliveryStatus::Delivered,
        _ => return None,
    };
    Some(DeliveryReceipt {
        status,
        code: message.err_code.as_deref().and_then(clean_code),
        at: message.receive_date.as_deref().and_then(shanghai_milliseconds),
    })
}

fn judge(answer: HttpResponse) -> Result<Vec<u8>, Failure> {
    let status = answer.status;
    let retry_after = acs3::retry_after(answer.header("x-acs-retry-after"));
    let request_id = answer.header("x-acs-request-id").map(str::to_owned);
    if status != 200 {
        let failure = rejection_of(status, &answer.read_error(), retry_after);
        return Err(failure.or_request_id(request_id.as_deref()));
    }
    // The request arrived and got a response. If it cannot be parsed, the message may have been sent.
    let unreadable = || Failure::new(FailureKind::OutcomeUnknown, NAME, "answer_not_understood");
    let body = answer.read_all(MAX_RESPONSE_BYTES).map_err(|failure| match failure.kind {
        FailureKind::InvalidResponse => unreadable(),
        _ => failure,
    })?;
    match parse_answer(&body, retry_after).unwrap_or_else(|| Err(unreadable())) {
        Ok(()) => Ok(body),
        Err(failure) => Err(failure.or_request_id(request_id.as_deref())),
    }
}

/// Parses a response with HTTP 200; `None` if it has no code.
fn parse_answer(body: &[u8], retry_after: Option<Duration>) -> Option<Result<(), Failure>> {
    let outcome = ErrorBody::parse(body);
    let code = outcome.code.as_deref()?;
    if code == "OK" {
        return Some(Ok(()));
    }
    let kind = kind_of_business_code(code);
    let retry_after = match kind {
        FailureKind::RecipientLimited => retry_after.or_else(|| window_of_limit(body)),
        _ => retry_after,
    };
    let failure = Failure::new(kind, NAME, outcome.clean_code().unwrap_or_default()).with_words(ErrorBody::words(body));
    Some(Err(failure.with_request_id(outcome.request_id.as_deref()).with_retry_after(retry_after)))
}

/// Maps a response with any other status to a failure.
fn rejection_of(status: u16, body: &[u8], retry_after: Option<Duration>) -> Failure {
    let outcome = ErrorBody::parse(body);
    let kind = match (&outcome.code, status) {
        // A 5xx without a code comes from a proxy in front of the provider, which may have passed the request on.
        (None, 500..) => FailureKind::OutcomeUnknown,
        (None, 429) => FailureKind::Busy,
        (None, _) => FailureKind::Misconfigured,
        (Some(code), _) => match kind_of_business_code(code) {
            // Besides throttling, only 503 guarantees that nothing was done.
            FailureKind::Busy if status >= 500 && status != 503 && !code.starts_with("Throttling") => {
                FailureKind::OutcomeUnknown
            }
            FailureKind::Refused if status >= 500 => FailureKind::OutcomeUnknown,
            kind => kind,
        },
    };
    let code = outcome.clean_code().unwrap_or_else(|| format!("http_{status}"));
    Failure::new(kind, NAME, code)
        .with_request_id(outcome.request_id.as_deref())
        .with_retry_after(retry_after)
        .with_words(ErrorBody::words(body))
}

fn kind_of_business_code(code: &str) -> FailureKind {
    if let Some(kind) = acs3::kind_of_gateway_code(code) {
        return kind;
    }
    match code {
        "isv.BUSINESS_LIMIT_CONTROL" => FailureKind::RecipientLimited,
        // Quota, balance, account and rights.
        "isv.DAY_LIMIT_CONTROL"
        | "isv.MONTH_LIMIT_CONTROL"
        | "isv.AMOUNT_NOT_ENOUGH"
        | "isv.OUT_OF_SERVICE"
        | "isv.ACCOUNT_NOT_EXISTS"
        | "isv.ACCOUNT_ABNORMAL"
        | "isv.PRODUCT_UN_SUBSCRIPT"
        | "isv.PRODUCT_UNSUBSCRIBE"
        | "isv.DENY_IP_RANGE"
        | "isv.DOMESTIC_NUMBER_NOT_SUPPORTED"
        | "isp.RAM_PERMISSION_DENY"
        // Template and signature.
        | "isv.TEMPLATE_MISSING_PARAMETERS"
        | "isv.TEMPLATE_PARAMS_ILLEGAL"
        | "isv.INVALID_JSON_PARAM"
        | "isv.PARAM_LENGTH_LIMIT"
        | "isv.PARAM_NOT_SUPPORT_URL"
        | "isv.INVALID_PARAMETERS"
        | "isv.SMS_TEMPLATE_ILLEGAL"
        | "isv.SMS_SIGNATURE_ILLEGAL"
        | "isv.SMS_SIGNATURE_SCENE_ILLEGAL"
        | "isv.SIGN_STATE_ILLEGAL"
        | "isv.SMS_SIGN_ILLEGAL"
        | "isv.SMS_CONTENT_ILLEGAL"
        | "isv.EXTEND_CODE_ERROR" => FailureKind::Misconfigured,
        // Faults of the provider are temporary, known or not.
        _ if code.starts_with("isp.") => FailureKind::Busy,
        _ => FailureKind::Refused,
    }
}

/// Returns the window of the exceeded limit. Only the message mentions it, so it is a mere hint for `Retry-After`.
fn window_of_limit(body: &[u8]) -> Option<Duration> {
    #[derive(Deserialize)]
    struct Message {
        #[serde(rename = "Message")]
        text: String,
    }
    let text = serde_json::from_slice::<Message>(body).ok()?.text.to_lowercase();
    let names = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let seconds = match () {
        () if names(&["分钟", "minute"]) => 60,
        () if names(&["小时", "hour"]) => 3_600,
        () if names(&["天", "日", "day"]) => 86_400,
        () => return None,
    };
    Some(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(body: &str) -> Failure {
        parse_answer(body.as_bytes(), None).unwrap().unwrap_err()
    }

    #[test]
    fn formats_numbers_for_the_provider() {
        assert_eq!(recipient("+8613900000000"), "13900000000");
        assert_eq!(recipient("+85291234567"), "85291234567");
        assert_eq!(recipient("+447700900123"), "447700900123");
    }

    #[test]
    fn delivery_receipts_say_what_became_of_a_message() {
        let of = |detail: &str| {
            let body =
                format!(r#"{{"Code":"OK","TotalCount":1,"SmsSendDetailDTOs":{{"SmsSendDetailDTO":[{detail}]}}}}"#);
            delivery_of(body.as_bytes())
        };
        let delivered =
            r#"{"SendStatus":3,"ErrCode":"DELIVERED","ReceiveDate":"2026-01-15 16:30:00","Content":"123456"}"#;
        let at = Some(1_768_465_800_000);
        let delivery =
            |status, code: Option<&str>, at| Some(DeliveryReceipt { status, code: code.map(str::to_owned), at });
        assert_eq!(of(delivered), delivery(DeliveryStatus::Delivered, Some("DELIVERED"), at));
        let failed = r#"{"SendStatus":"2","ErrCode":"SIGN_BLACK"}"#;
        assert_eq!(of(failed), delivery(DeliveryStatus::Failed, Some("SIGN_BLACK"), None));
        assert_eq!(of(r#"{"SendStatus":1}"#), delivery(DeliveryStatus::Waiting, None, None));
        for unknown in ["", r#"{"SendStatus":9}"#, r#"{"SendStatus":null}"#, "{}"] {
            assert_eq!(of(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn maps_business_codes() {
        let cases = [
            ("isv.BUSINESS_LIMIT_CONTROL", FailureKind::RecipientLimited),
            ("isv.DAY_LIMIT_CONTROL", FailureKind::Misconfigured),
            ("isv.MOBILE_NUMBER_ILLEGAL", FailureKind::Refused),
            ("isv.BLACK_KEY_CONTROL_LIMIT", FailureKind::Refused),
            ("isv.SMS_TEMPLATE_ILLEGAL", FailureKind::Misconfigured),
            ("isv.AMOUNT_NOT_ENOUGH", FailureKind::Misconfigured),
            ("isp.RAM_PERMISSION_DENY", FailureKind::Misconfigured),
            ("isp.SYSTEM_ERROR", FailureKind::Busy),
            ("isp.NEVER_SEEN", FailureKind::Busy),
            ("isv.NEVER_SEEN", FailureKind::Refused),
            ("Throttling.Api", FailureKind::Busy),
            ("SignatureDoesNotMatch", FailureKind::Misconfigured),
        ];
        for (code, kind) in cases {
            let failure = refused(&format!(r#"{{"Code":"{code}","Message":"m","RequestId":"R-2"}}"#));
            assert_eq!((failure.kind, failure.code.as_str()), (kind, code));
            assert_eq!(failure.request_id.as_deref(), Some("R-2"));
        }
    }

    #[test]
    fn reads_the_window_of_a_recipient_limit() {
        let cases = [
            ("触发分钟级流控Permits:1", Some(60)),
            ("触发小时级流控Permits:5", Some(3_600)),
            ("触发天级流控Permits:10", Some(86_400)),
            ("stay away", None),
        ];
        for (message, seconds) in cases {
            let failure = refused(&format!(r#"{{"Code":"isv.BUSINESS_LIMIT_CONTROL","Message":"{message}"}}"#));
            assert_eq!(failure.retry_after, seconds.map(Duration::from_secs), "{message}");
        }
    }

    #[test]
    fn statuses_decide_if_the_request_was_processed() {
        let cases: [(u16, &str, FailureKind, &str); 9] = [
            (400, r#"{"Code":"Throttling.User"}"#, FailureKind::Busy, "Throttling.User"),
            (500, r#"{"Code":"Throttling"}"#, FailureKind::Busy, "Throttling"),
            (503, r#"{"Code":"ServiceUnavailable"}"#, FailureKind::Busy, "ServiceUnavailable"),
            (500, r#"{"Code":"ServiceUnavailable"}"#, FailureKind::OutcomeUnknown, "ServiceUnavailable"),
            (500, r#"{"Code":"InternalError"}"#, FailureKind::OutcomeUnknown, "InternalError"),
            (400, r#"{"Code":"SignatureNonceUsed"}"#, FailureKind::OutcomeUnknown, "SignatureNonceUsed"),
            (403, r#"{"Code":"Forbidden.RAM"}"#, FailureKind::Misconfigured, "Forbidden.RAM"),
            (502, "<html>", FailureKind::OutcomeUnknown, "http_502"),
            (302, "", FailureKind::Misconfigured, "http_302"),
        ];
        for (status, body, kind, code) in cases {
            let failure = rejection_of(status, body.as_bytes(), None);
            assert_eq!((failure.kind, failure.code.as_str()), (kind, code), "{status} {body}");
        }
    }

    #[test]
    fn retries_only_if_certainly_not_accepted() {
        let second = Duration::from_secs(1);
        let pause = |kind, retry_after: Option<Duration>, left: Duration| {
            let failure = Failure::new(kind, NAME, "x").with_retry_after(retry_after);
            AliyunSms::pause_before_retry(&failure, left)
        };
        assert!(pause(FailureKind::Busy, None, 5 * second).is_some());
        assert!(pause(FailureKind::Unreachable, None, 5 * second).is_some());
        assert_eq!(pause(FailureKind::Busy, Some(second), 5 * second), Some(second));
        assert_eq!(pause(FailureKind::Busy, Some(60 * second), 5 * second), None);
        assert_eq!(pause(FailureKind::Busy, None, second), None);
        for kind in [
            FailureKind::TimedOut,
            FailureKind::OutcomeUnknown,
            FailureKind::InvalidResponse,
            FailureKind::Refused,
            FailureKind::RecipientLimited,
            FailureKind::Misconfigured,
        ] {
            assert_eq!(pause(kind, None, 5 * second), None, "{kind}");
        }
    }
}
