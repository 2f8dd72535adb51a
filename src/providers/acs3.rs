//! Aliyun `OpenAPI` requests: signature version 3 (ACS3-HMAC-SHA256), and the meaning of the gateway's error codes.
//!
//! Owns canonicalisation, the signature and the codes that all products share. A product's own business codes stay with
//! its driver. Clock and nonce are passed in, so that a test can reproduce every signature.
//!
//! The surprise: the server verifies the headers named in `SignedHeaders`. Only the required ones are signed, because a
//! proxy may change any other header.

use std::fmt::Write as _;
use std::time::Duration;

use jiff::Timestamp;
use ring::hmac;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use super::{
    Failure, FailureKind, ProviderWords, clean_code,
    client::{BaseUrl, Client, HttpResponse, Post},
    percent,
};
use crate::types::{hex, sha256_hex};

const ALGORITHM: &str = "ACS3-HMAC-SHA256";

/// An access key. Its `Debug` shows the identifier and masks the secret.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// The public half, sent with every request.
    pub access_key_id: String,
    /// The private half, used unchanged as the HMAC key.
    pub access_key_secret: SecretString,
}

/// One call of an operation: always `POST /`, with the operation named in headers.
///
/// Has no `Debug`: the parameters contain user input and verification codes.
#[derive(Clone, Copy)]
pub struct Acs3Request<'a> {
    /// The value of the `host` header, with the port unless it is the scheme's default.
    pub host: &'a str,
    /// The operation, such as `SendSms`.
    pub action: &'a str,
    /// The product's version date, such as `2017-05-25`.
    pub version: &'a str,
    /// The current time in milliseconds since 1970. The server accepts a deviation of 15 minutes.
    pub now_millis: i64,
    /// Different for every attempt; usually 32 hexadecimal digits.
    pub nonce: &'a str,
    /// Query parameters, in any order, not yet encoded.
    pub query: &'a [(&'a str, &'a str)],
    /// Set if a body is sent.
    pub content_type: Option<&'a str>,
    /// The body as it is sent.
    pub body: &'a [u8],
}

/// The parts of a signed call other than its body. Has no `Debug` for the same reason.
pub struct SignedCall {
    /// The encoded query without its question mark; empty if there is none.
    pub query: String,
    /// All headers to send, with lower-case names, including `authorization` and `accept`.
    pub headers: Vec<(&'static str, String)>,
}

/// The body of an error response, from the gateway or from an operation.
#[derive(Debug, Default, Deserialize)]
pub struct ErrorBody {
    /// The code that decides. A text from the gateway and most products.
    #[serde(default, rename = "Code", alias = "code", deserialize_with = "code_as_text")]
    pub code: Option<String>,
    /// The identifier to quote to the provider's support.
    #[serde(default, rename = "RequestId", alias = "requestId", alias = "request_id")]
    pub request_id: Option<String>,
}

/// Signs a call.
pub fn sign(call: &Acs3Request<'_>, credentials: &Credentials) -> SignedCall {
    let query = canonical_query(call.query);
    let body_hash = sha256_hex(call.body);
    let mut headers = vec![
        ("host", call.host.to_owned()),
        ("x-acs-action", call.action.to_owned()),
        ("x-acs-content-sha256", body_hash.clone()),
        ("x-acs-date", date(call.now_millis)),
        ("x-acs-signature-nonce", call.nonce.to_owned()),
        ("x-acs-version", call.version.to_owned()),
    ];
    if let Some(content_type) = call.content_type {
        headers.push(("content-type", content_type.to_owned()));
    }
    let authorization = authorization(&query, &headers, &body_hash, credentials);
    headers.push(("authorization", authorization));
    // Without it some products respond in XML.
    headers.push(("accept", "application/json".to_owned()));
    SignedCall { query, headers }
}

/// Signs a call and sends it to an endpoint.
///
/// # Errors
/// Those of the client.
pub fn send(
    client: &Client,
    endpoint: &BaseUrl,
    call: &Acs3Request<'_>,
    credentials: &Credentials,
    total: Option<Duration>,
) -> Result<HttpResponse, Failure> {
    let signed = sign(call, credentials);
    let headers: Vec<(&str, &str)> = signed.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let separator = if signed.query.is_empty() { "" } else { "?" };
    let url = format!("{}/{separator}{}", endpoint.base(), signed.query);
    client.post(&Post { url: &url, headers: &headers, body: call.body, total, is_unstreamed: false })
}

/// Encodes parameters as the signature requires: sorted by name, with every character percent-encoded except letters,
/// digits and `-_.~`.
pub fn canonical_query(parameters: &[(&str, &str)]) -> String {
    let mut sorted: Vec<_> = parameters.to_vec();
    sorted.sort_unstable();
    let pairs: Vec<String> =
        sorted.iter().map(|(name, value)| format!("{}={}", percent::encode(name), percent::encode(value))).collect();
    pairs.join("&")
}

/// Maps a code of the gateway, or one common to every product, to a failure kind. `None` for other codes.
pub fn kind_of_gateway_code(code: &str) -> Option<FailureKind> {
    if code == "Throttling" || code.starts_with("Throttling.") {
        return Some(FailureKind::Busy);
    }
    match code {
        "ServiceUnavailable" | "ServiceUnavailableTemporary" => Some(FailureKind::Busy),
        // The gateway failed before it reached the product, or it has seen this request already.
        "InternalError" | "SignatureNonceUsed" => Some(FailureKind::OutcomeUnknown),
        "SignatureDoesNotMatch"
        | "IncompleteSignature"
        | "MissingParameter"
        | "UnsupportedOperation"
        | "NoPermission"
        | "Forbidden" => Some(FailureKind::Misconfigured),
        "InvalidParameter" => Some(FailureKind::Refused),
        _ => ["InvalidTimeStamp.", "InvalidAccessKeyId.", "InvalidSecurityToken.", "InvalidAction.", "Forbidden."]
            .iter()
            .any(|prefix| code.starts_with(prefix))
            .then_some(FailureKind::Misconfigured),
    }
}

/// Parses an `x-acs-retry-after` header: positive whole milliseconds.
pub fn retry_after(header: Option<&str>) -> Option<Duration> {
    let millis: u64 = header?.trim().parse().ok()?;
    (millis > 0).then(|| Duration::from_millis(millis))
}

impl ErrorBody {
    /// Parses a body leniently: one that is no JSON object yields an empty value.
    pub fn parse(body: &[u8]) -> Self {
        serde_json::from_slice(body).unwrap_or_default()
    }

    /// Returns the explanation in a body. Read apart from the code, which counts whatever the explanation looks like.
    pub fn words(body: &[u8]) -> Option<ProviderWords> {
        let body: serde_json::Value = serde_json::from_slice(body).ok()?;
        ProviderWords::new(["Message", "message"].iter().find_map(|name| body[name].as_str())?)
    }

    /// Returns the code, cleaned for logs.
    pub fn clean_code(&self) -> Option<String> {
        self.code.as_deref().and_then(clean_code)
    }
}

fn code_as_text<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(match serde_json::Value::deserialize(deserializer)? {
        serde_json::Value::String(text) => Some(text),
        serde_json::Value::Number(number) => Some(number.to_string()),
        _ => None,
    })
}

fn authorization(query: &str, headers: &[(&str, String)], body_hash: &str, credentials: &Credentials) -> String {
    let mut sorted: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.trim())).collect();
    sorted.sort_unstable();
    let names = sorted.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
    let canonical = canonical_request(query, &sorted, &names, body_hash);
    let signature = signature(&string_to_sign(&canonical), &credentials.access_key_secret);
    format!("{ALGORITHM} Credential={},SignedHeaders={names},Signature={signature}", credentials.access_key_id)
}

fn canonical_request(query: &str, sorted_headers: &[(&str, &str)], names: &str, body_hash: &str) -> String {
    let mut text = format!("POST\n/\n{query}\n");
    for (name, value) in sorted_headers {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name}:{value}");
    }
    text.push('\n');
    text.push_str(names);
    text.push('\n');
    text.push_str(body_hash);
    text
}

fn string_to_sign(canonical_request: &str) -> String {
    format!("{ALGORITHM}\n{}", sha256_hex(canonical_request.as_bytes()))
}

fn signature(string_to_sign: &str, secret: &SecretString) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.expose_secret().as_bytes());
    hex(hmac::sign(&key, string_to_sign.as_bytes()).as_ref())
}

fn date(now_millis: i64) -> String {
    // A time outside the calendar becomes 1970, which the server rejects too.
    let time = Timestamp::from_millisecond(now_millis).unwrap_or(Timestamp::UNIX_EPOCH);
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    const VECTORS: &str = include_str!("../../tests/vectors/acs3.json");

    fn vectors() -> Value {
        serde_json::from_str(VECTORS).unwrap()
    }

    fn text<'a>(value: &'a Value, name: &str) -> &'a str {
        value[name].as_str().unwrap_or_else(|| panic!("no {name}"))
    }

    fn credentials(vectors: &Value) -> Credentials {
        Credentials {
            access_key_id: text(vectors, "access_key_id").to_owned(),
            access_key_secret: text(vectors, "access_key_secret").into(),
        }
    }

    fn pairs(object: &Value) -> Vec<(&str, &str)> {
        object.as_object().unwrap().iter().map(|(name, value)| (name.as_str(), value.as_str().unwrap())).collect()
    }

    /// Signs the case as the drivers do and returns the query and the headers.
    fn sign_case(case: &Value, headers: &Value, credentials: &Credentials) -> SignedCall {
        let time: Timestamp = text(headers, "x-acs-date").parse().unwrap();
        sign(
            &Acs3Request {
                host: text(headers, "host"),
                action: text(headers, "x-acs-action"),
                version: text(headers, "x-acs-version"),
                now_millis: time.as_millisecond(),
                nonce: text(headers, "x-acs-signature-nonce"),
                query: &pairs(&case["query_parameters"]),
                content_type: headers["content-type"].as_str(),
                body: text(case, "body").as_bytes(),
            },
            credentials,
        )
    }

    fn header<'a>(signed: &'a SignedCall, name: &str) -> &'a str {
        &signed.headers.iter().find(|(candidate, _)| *candidate == name).unwrap().1
    }

    #[test]
    fn signs_every_recorded_case_with_the_minimal_header_set() {
        let vectors = vectors();
        let credentials = credentials(&vectors);
        let cases = vectors["cases"].as_object().unwrap();
        assert_eq!(cases.len(), 4);
        for (name, case) in cases {
            let minimal = &case["minimal"];
            let signed = sign_case(case, &minimal["headers"], &credentials);
            assert_eq!(signed.query, text(case, "canonical_query"), "{name}");
            assert_eq!(header(&signed, "authorization"), text(minimal, "authorization"), "{name}");
            for (expected_name, expected) in pairs(&minimal["headers"]) {
                assert_eq!(header(&signed, expected_name), expected, "{name}");
            }
        }
    }

    #[test]
    fn canonicalises_and_signs_any_set_of_headers() {
        let vectors = vectors();
        let credentials = credentials(&vectors);
        for (name, case) in vectors["cases"].as_object().unwrap() {
            for set in ["sdk", "minimal"] {
                let expected = &case[set];
                let headers: Vec<(&str, String)> =
                    pairs(&expected["headers"]).into_iter().map(|(name, value)| (name, value.to_owned())).collect();
                let mut sorted = pairs(&expected["headers"]);
                sorted.sort_unstable();
                let query = canonical_query(&pairs(&case["query_parameters"]));
                let body_hash = sha256_hex(text(case, "body").as_bytes());
                let canonical = canonical_request(&query, &sorted, text(expected, "signed_headers"), &body_hash);
                assert_eq!(canonical, text(expected, "canonical_request"), "{name} {set}");
                assert_eq!(string_to_sign(&canonical), text(expected, "string_to_sign"), "{name} {set}");
                assert_eq!(
                    signature(&string_to_sign(&canonical), &credentials.access_key_secret),
                    text(expected, "signature"),
                    "{name} {set}"
                );
                let written = authorization(&query, &headers, &body_hash, &credentials);
                assert_eq!(written, text(expected, "authorization"), "{name} {set}");
            }
        }
    }

    #[test]
    fn reproduces_the_published_example() {
        let vectors = vectors();
        let example = &vectors["published_example"];
        let signed = sign_case(example, &example["headers"], &credentials(example));
        assert_eq!(header(&signed, "authorization"), text(example, "authorization"));
    }

    #[test]
    fn maps_gateway_codes() {
        let cases = [
            ("Throttling", Some(FailureKind::Busy)),
            ("Throttling.User", Some(FailureKind::Busy)),
            ("ThrottlingOfSomethingElse", None),
            ("ServiceUnavailable", Some(FailureKind::Busy)),
            ("InternalError", Some(FailureKind::OutcomeUnknown)),
            ("SignatureNonceUsed", Some(FailureKind::OutcomeUnknown)),
            ("InvalidTimeStamp.Expired", Some(FailureKind::Misconfigured)),
            ("InvalidAccessKeyId.NotFound", Some(FailureKind::Misconfigured)),
            ("Forbidden.RAM", Some(FailureKind::Misconfigured)),
            ("isv.SOMETHING", None),
        ];
        for (code, kind) in cases {
            assert_eq!(kind_of_gateway_code(code), kind, "{code}");
        }
    }

    #[test]
    fn parses_error_bodies_leniently() {
        let body = ErrorBody::parse(br#"{"Code":"Throttling","RequestId":"R-1","HostId":"h"}"#);
        assert_eq!((body.code.as_deref(), body.request_id.as_deref()), (Some("Throttling"), Some("R-1")));
        assert_eq!(ErrorBody::parse(br#"{"code":588}"#).code.as_deref(), Some("588"));
        assert_eq!(ErrorBody::parse(b"<html>").code, None);
    }

    #[test]
    fn accepts_only_positive_millisecond_delays() {
        assert_eq!(retry_after(Some("1500")), Some(Duration::from_millis(1500)));
        assert_eq!(retry_after(Some("0")), None);
        assert_eq!(retry_after(Some("soon")), None);
        assert_eq!(retry_after(None), None);
    }

    #[test]
    fn debug_output_hides_the_secret() {
        let shown = format!("{:?}", credentials(&vectors()));
        assert!(!shown.contains("TESTAccessKeySecret"), "{shown}");
    }
}
