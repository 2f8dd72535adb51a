//! One-tap sign-in: Aliyun's number authentication (Dypnsapi, version 2017-05-25) names the phone number of a device
//! that uses mobile data.
//!
//! A refusal usually arrives with HTTP 200, and only its `Code` tells.

use std::time::Duration;

use secrecy::SecretString;
use serde::Deserialize;

use super::{ProofFault, rejected};
use crate::providers::json;
use crate::providers::{
    Failure, FailureKind, WallClock,
    acs3::{self, Credentials, ErrorBody},
    client::{BaseUrl, Client, HttpResponse, Limits},
    nonce::random_hex,
};

const NAME: &str = "aliyun one-tap";
const ACTION: &str = "GetMobile";
const VERSION: &str = "2017-05-25";
const CONNECT: Duration = Duration::from_secs(3);
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

/// The account at Aliyun. `Debug` hides the secret.
#[derive(Clone, Debug)]
pub struct OneTapSettings {
    pub endpoint: String,
    pub access_key_id: String,
    pub access_key_secret: SecretString,
    pub timeout: Duration,
}

/// Queries phone numbers.
pub struct OneTap {
    endpoint: String,
    credentials: Credentials,
    client: Client,
    clock: WallClock,
}

#[derive(Deserialize)]
struct MobileResponse {
    #[serde(rename = "GetMobileResultDTO")]
    result: Option<MobileResult>,
}

#[derive(Deserialize)]
struct MobileResult {
    #[serde(rename = "Mobile")]
    mobile: Option<String>,
}

impl OneTap {
    pub fn new(settings: OneTapSettings, clock: WallClock) -> Self {
        let credentials =
            Credentials { access_key_id: settings.access_key_id, access_key_secret: settings.access_key_secret };
        let client =
            Client::new(NAME, "auth.one_tap.endpoint", Limits::for_whole_calls(CONNECT, settings.timeout, false));
        Self { endpoint: settings.endpoint, credentials, client, clock }
    }

    /// Returns the phone number that an access token of the app's SDK stands for. Blocks.
    ///
    /// # Errors
    /// The token is rejected, or the provider did not answer or refused this service.
    pub fn phone_number(&self, access_token: &str) -> Result<String, ProofFault> {
        let endpoint = BaseUrl::parse(NAME, &self.endpoint)?;
        let (nonce, out_id) = (random_hex::<16>(NAME)?, random_hex::<8>(NAME)?);
        let call = acs3::Acs3Request {
            host: endpoint.host_header(),
            action: ACTION,
            version: VERSION,
            now_millis: (self.clock)(),
            nonce: &nonce,
            query: &[("AccessToken", access_token), ("OutId", &out_id)],
            content_type: None,
            body: b"",
        };
        read(acs3::send(&self.client, &endpoint, &call, &self.credentials, None)?)
    }
}

fn read(response: HttpResponse) -> Result<String, ProofFault> {
    let status = response.status;
    let body = if status == 200 { response.read_all(MAX_RESPONSE_BYTES)? } else { response.read_error() };
    number_of(status, &body)
}

fn number_of(status: u16, body: &[u8]) -> Result<String, ProofFault> {
    let answer = ErrorBody::parse(body);
    let code = answer.clean_code().unwrap_or_else(|| format!("http_{status}"));
    if status == 200 && code == "OK" {
        let response: Option<MobileResponse> = json::from_slice(body).ok();
        let number = response.and_then(|response| response.result?.mobile).filter(|number| !number.is_empty());
        return number.ok_or_else(|| Failure::new(FailureKind::InvalidResponse, NAME, "answer_not_understood").into());
    }
    let kind = match acs3::kind_of_gateway_code(&code) {
        Some(kind) => kind,
        None if code.starts_with("isv.") => match code.as_str() {
            "isv.BUSINESS_LIMIT_CONTROL" => FailureKind::Busy,
            "isv.OUT_OF_SERVICE" | "isv.AMOUNT_NOT_ENOUGH" | "isv.PRODUCT_UN_SUBSCRIPT" | "isv.ACCOUNT_ABNORMAL" => {
                FailureKind::Misconfigured
            }
            // The token is unknown, expired or used.
            _ => return Err(rejected(code)),
        },
        None if code.starts_with("isp.") => FailureKind::Busy,
        None => FailureKind::of_status(status),
    };
    Err(Failure::new(kind, NAME, code).with_request_id(answer.request_id.as_deref()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_numbers_and_refusals() {
        let ok = br#"{"Code":"OK","Message":"OK","RequestId":"R","GetMobileResultDTO":{"Mobile":"13800138000"}}"#;
        assert_eq!(number_of(200, ok).as_deref(), Ok("13800138000"));
        let refused = number_of(200, br#"{"Code":"isv.INVALID_PARAMETERS","Message":"...","RequestId":"R"}"#);
        assert_eq!(refused, Err(rejected("isv.INVALID_PARAMETERS")));
        for (status, body, kind) in [
            (200, r#"{"Code":"OK"}"#, FailureKind::InvalidResponse),
            (200, "<html>", FailureKind::InvalidResponse),
            (400, r#"{"Code":"SignatureDoesNotMatch"}"#, FailureKind::Misconfigured),
            (400, r#"{"Code":"Throttling.User"}"#, FailureKind::Busy),
            (502, "bad gateway", FailureKind::OutcomeUnknown),
        ] {
            let fault = number_of(status, body.as_bytes()).unwrap_err();
            assert!(matches!(fault, ProofFault::Failed(failure) if failure.kind == kind), "{status} {body}");
        }
    }
}
