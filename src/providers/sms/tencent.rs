//! Tencent Cloud short messages: the operation `SendSms`, version 2021-01-11, with signature TC3-HMAC-SHA256.
//!
//! Every answer has status 200; `Error` or the status of the message tells what happened. Nothing is retried here: the
//! service has no idempotency key.

use std::time::Duration;

use jiff::Timestamp;
use ring::hmac;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use super::{CodeMessage, SmsSender};
use crate::{
    providers::{
        Failure, FailureKind, MessageReceipt, ProviderWords, WallClock, clean_code,
        client::{BaseUrl, Client, Limits, Post},
    },
    types::{hex, sha256_hex},
};

/// The driver's name in the configuration.
pub const NAME: &str = "tencent";

const ACTION: &str = "SendSms";
const PROBE: &str = "DescribeSmsTemplateList";
const VERSION: &str = "2021-01-11";
const SERVICE: &str = "sms";
const CONTENT_TYPE: &str = "application/json";
const ALGORITHM: &str = "TC3-HMAC-SHA256";
const CONNECT: Duration = Duration::from_secs(3);
const TOTAL: Duration = Duration::from_secs(5);
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

/// The account data from the provider's console. `Debug` masks the key.
#[derive(Clone, Debug)]
pub struct TencentSmsSettings {
    /// `https://sms.tencentcloudapi.com`.
    pub endpoint: String,
    pub region: String,
    pub secret_id: String,
    pub secret_key: SecretString,
    /// The id of the application for messages.
    pub app_id: String,
    pub sign_name: String,
    pub template_id: String,
    /// The template has a second variable for the minutes.
    pub has_minutes: bool,
}

/// Sends verification codes through Tencent Cloud.
pub struct TencentSms {
    settings: TencentSmsSettings,
    client: Client,
    clock: WallClock,
}

/// The parts of a request that its signature covers.
struct Tc3Request<'a> {
    host: &'a str,
    /// Seconds since 1970.
    seconds: i64,
    body: &'a str,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct TencentAnswer {
    response: TencentResponse,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", default)]
#[derive(Default)]
struct TencentResponse {
    error: Option<TencentStatus>,
    send_status_set: Vec<TencentStatus>,
    request_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", default)]
#[derive(Default)]
struct TencentStatus {
    code: String,
    message: String,
    serial_no: String,
}

impl TencentSms {
    /// Creates a sender for one account. With an invalid endpoint, every message fails as `Misconfigured`.
    pub fn new(settings: TencentSmsSettings, clock: WallClock) -> Self {
        // A pooled connection may turn out dead only after the message was written to it.
        let client = Client::new(NAME, "sms.tencent.endpoint", Limits::for_whole_calls(CONNECT, TOTAL, false));
        Self { settings, client, clock }
    }

    fn call(&self, action: &str, body: &str) -> Result<TencentResponse, Failure> {
        let endpoint = BaseUrl::parse(NAME, &self.settings.endpoint)?;
        let seconds = (self.clock)() / 1000;
        let request = Tc3Request { host: endpoint.host_header(), seconds, body };
        let authorization = self.authorization(&request);
        let timestamp = seconds.to_string();
        let headers = [
            ("content-type", CONTENT_TYPE),
            ("host", endpoint.host_header()),
            ("x-tc-action", action),
            ("x-tc-version", VERSION),
            ("x-tc-timestamp", &timestamp),
            ("x-tc-region", &self.settings.region),
            ("authorization", &authorization),
        ];
        let url = format!("{}/", endpoint.base());
        let post = Post { url: &url, headers: &headers, body: body.as_bytes(), total: None, is_unstreamed: false };
        let response = self.client.post(&post)?;
        if response.status != 200 {
            let kind = FailureKind::of_status(response.status);
            return Err(Failure::new(kind, NAME, format!("http_{}", response.status)));
        }
        let unreadable = || Failure::new(FailureKind::OutcomeUnknown, NAME, "answer_not_understood");
        let body = response.read_all(MAX_RESPONSE_BYTES).map_err(Failure::with_unknown_outcome)?;
        let answer: TencentAnswer = serde_json::from_slice(&body).map_err(|_| unreadable())?;
        Ok(answer.response)
    }

    fn authorization(&self, request: &Tc3Request<'_>) -> String {
        let date = date(request.seconds);
        let scope = format!("{date}/{SERVICE}/tc3_request");
        let canonical = format!(
            "POST\n/\n\ncontent-type:{CONTENT_TYPE}\nhost:{}\n\ncontent-type;host\n{}",
            request.host,
            sha256_hex(request.body.as_bytes())
        );
        let text = format!("{ALGORITHM}\n{}\n{scope}\n{}", request.seconds, sha256_hex(canonical.as_bytes()));
        let secret = format!("TC3{}", self.settings.secret_key.expose_secret());
        let key = [date.as_str(), SERVICE, "tc3_request"]
            .iter()
            .fold(secret.into_bytes(), |key, part| hmac_sha256(&key, part.as_bytes()));
        let signature = hex(&hmac_sha256(&key, text.as_bytes()));
        let secret_id = &self.settings.secret_id;
        format!("{ALGORITHM} Credential={secret_id}/{scope}, SignedHeaders=content-type;host, Signature={signature}")
    }
}

impl SmsSender for TencentSms {
    fn name(&self) -> &'static str {
        NAME
    }

    fn send_code(&self, message: &CodeMessage) -> Result<MessageReceipt, Failure> {
        let mut parameters = vec![message.code.expose_secret().to_owned()];
        if self.settings.has_minutes {
            parameters.push(message.expires_in_minutes.to_string());
        }
        let body = serde_json::json!({
            "PhoneNumberSet": [message.phone_number],
            "SmsSdkAppId": self.settings.app_id,
            "SignName": self.settings.sign_name,
            "TemplateId": self.settings.template_id,
            "TemplateParamSet": parameters,
        });
        outcome(&self.call(ACTION, &body.to_string())?)
    }

    fn probe(&self) -> Result<(), Failure> {
        let response = self.call(PROBE, r#"{"International":0,"Limit":1,"Offset":0}"#)?;
        match response.error {
            Some(error) => Err(failure_of(&error, response.request_id.as_deref())),
            None => Ok(()),
        }
    }
}

fn outcome(response: &TencentResponse) -> Result<MessageReceipt, Failure> {
    let request_id = response.request_id.as_deref();
    if let Some(error) = &response.error {
        return Err(failure_of(error, request_id));
    }
    match response.send_status_set.first() {
        Some(status) if status.code.eq_ignore_ascii_case("ok") => Ok(MessageReceipt {
            provider_id: clean_code(&status.serial_no),
            words: ProviderWords::new(&status.message),
            ..MessageReceipt::default()
        }),
        Some(status) => Err(failure_of(status, request_id)),
        None => {
            Err(Failure::new(FailureKind::OutcomeUnknown, NAME, "answer_not_understood").with_request_id(request_id))
        }
    }
}

fn failure_of(status: &TencentStatus, request_id: Option<&str>) -> Failure {
    let code = clean_code(&status.code).unwrap_or_else(|| "no_code".to_owned());
    Failure::new(kind_of(&code), NAME, code).with_request_id(request_id).with_words(ProviderWords::new(&status.message))
}

fn kind_of(code: &str) -> FailureKind {
    if code.starts_with("LimitExceeded.PhoneNumber") {
        return FailureKind::RecipientLimited;
    }
    match code {
        "InvalidParameterValue.IncorrectPhoneNumber" | "FailedOperation.PhoneNumberInBlacklist" => FailureKind::Refused,
        "RequestLimitExceeded" => FailureKind::Busy,
        _ => match code.split('.').next().unwrap_or_default() {
            "LimitExceeded" | "RequestLimitExceeded" => FailureKind::Busy,
            // The provider failed after it may have sent the message.
            "InternalError" => FailureKind::OutcomeUnknown,
            "AuthFailure"
            | "UnauthorizedOperation"
            | "FailedOperation"
            | "InvalidParameter"
            | "InvalidParameterValue"
            | "MissingParameter"
            | "UnsupportedOperation"
            | "UnsupportedRegion"
            | "InvalidAction"
            | "NoSuchVersion"
            | "UnknownParameter" => FailureKind::Misconfigured,
            _ => FailureKind::Refused,
        },
    }
}

fn hmac_sha256(key: &[u8], text: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text).as_ref().to_vec()
}

fn date(seconds: i64) -> String {
    // A time outside the calendar becomes 1970, which the server rejects too.
    let time = Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH);
    time.strftime("%Y-%m-%d").to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn sender(vector: &Value) -> TencentSms {
        let text = |name: &str| vector[name].as_str().unwrap().to_owned();
        let settings = TencentSmsSettings {
            endpoint: "https://sms.tencentcloudapi.com".to_owned(),
            region: "ap-guangzhou".to_owned(),
            secret_id: text("secret_id"),
            secret_key: text("secret_key").into(),
            app_id: "1400006666".to_owned(),
            sign_name: "占卜".to_owned(),
            template_id: "1110".to_owned(),
            has_minutes: true,
        };
        TencentSms::new(settings, Box::new(|| 1_768_465_800_000))
    }

    #[test]
    fn signs_the_recorded_request() {
        let vectors: Value = serde_json::from_str(include_str!("../../../tests/vectors/identity.json")).unwrap();
        let vector = &vectors["tencent_sms"];
        let headers = &vector["headers"];
        let request = Tc3Request {
            host: headers["Host"].as_str().unwrap(),
            seconds: headers["X-TC-Timestamp"].as_str().unwrap().parse().unwrap(),
            body: vector["body"].as_str().unwrap(),
        };
        assert_eq!(sender(vector).authorization(&request), headers["Authorization"].as_str().unwrap());
    }

    #[test]
    fn reads_outcomes_from_answers_with_status_200() {
        let read = |json: &str| {
            let answer: TencentAnswer = serde_json::from_str(json).unwrap();
            outcome(&answer.response).map_err(|failure| failure.kind)
        };
        let sent = read(
            r#"{"Response":{"SendStatusSet":[{"SerialNo":"5000:1045710669157053657849499619","PhoneNumber":"+8618511122233","Fee":1,"SessionContext":"test","Code":"Ok","Message":"send success","IsoCode":"CN"}],"RequestId":"a0aabda6-cf91-4f3e-a81f-9198114a2279"}}"#,
        );
        assert_eq!(sent.unwrap().provider_id.as_deref(), Some("5000:1045710669157053657849499619"));
        for (code, kind) in [
            ("LimitExceeded.PhoneNumberDailyLimit", FailureKind::RecipientLimited),
            ("LimitExceeded.AppDailyLimit", FailureKind::Busy),
            ("FailedOperation.InsufficientBalanceInSmsPackage", FailureKind::Misconfigured),
            ("InvalidParameterValue.IncorrectPhoneNumber", FailureKind::Refused),
            ("InternalError.Timeout", FailureKind::OutcomeUnknown),
        ] {
            let status =
                format!(r#"{{"Response":{{"SendStatusSet":[{{"Code":"{code}","Message":"m"}}],"RequestId":"R"}}}}"#);
            assert_eq!(read(&status).unwrap_err(), kind, "{code}");
        }
        let error =
            read(r#"{"Response":{"Error":{"Code":"AuthFailure.SignatureFailure","Message":"m"},"RequestId":"R"}}"#);
        assert_eq!(error.unwrap_err(), FailureKind::Misconfigured);
        assert_eq!(read(r#"{"Response":{"RequestId":"R"}}"#).unwrap_err(), FailureKind::OutcomeUnknown);
    }
}
