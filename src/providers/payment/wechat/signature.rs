//! Signatures: of our requests, of what the app passes to WeChat, and of the provider's messages.
//!
//! A message is verified with the time at which it was received, so that a stored one can be judged again later with
//! the same result.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};

use super::keys::WeChatKeys;
use crate::providers::{
    payment::RejectionReason,
    rsa::{PrivateKey, SigningFailed},
};

const SCHEME: &str = "WECHATPAY2-SHA256-RSA2048";
/// The beginning of the signatures of probe traffic, which never verify.
const PROBE: &str = "WECHATPAY/SIGNTEST/";
/// The largest difference between the time of signing and the time of receipt.
const MAX_AGE_SECONDS: i64 = 300;
/// The longest signature header: base64 of an RSA signature of 8192 bits has 1368 characters.
const MAX_HEADER_LENGTH: usize = 2048;

/// The signature headers of a message. They must be stored with a message that is to be judged again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WeChatSignature {
    timestamp: String,
    nonce: String,
    signature: String,
    serial: String,
    signature_type: Option<String>,
}

impl WeChatSignature {
    /// Takes the signature from the headers, which `header` finds by their lower-case names.
    pub fn from_headers<'a>(header: impl Fn(&str) -> Option<&'a str>) -> Result<Self, RejectionReason> {
        let optional =
            |name: &str| header(name).filter(|value| (1..=MAX_HEADER_LENGTH).contains(&value.len())).map(str::to_owned);
        let required = |name: &'static str| optional(name).ok_or(RejectionReason::HeaderMissing(name));
        Ok(Self {
            timestamp: required("wechatpay-timestamp")?,
            nonce: required("wechatpay-nonce")?,
            signature: required("wechatpay-signature")?,
            serial: required("wechatpay-serial")?,
            signature_type: optional("wechatpay-signature-type"),
        })
    }

    /// The serial of the key that the message claims to be signed with.
    pub fn serial(&self) -> &str {
        &self.serial
    }

    /// Verifies a body that was received at this time (epoch milliseconds).
    pub(super) fn verify(&self, body: &[u8], keys: &WeChatKeys, received_at: i64) -> Result<(), RejectionReason> {
        if self.signature.starts_with(PROBE) {
            return Err(RejectionReason::ProbeTraffic);
        }
        if self.signature_type.as_deref().is_some_and(|scheme| scheme != SCHEME) {
            return Err(RejectionReason::WrongSignType);
        }
        let is_plain = self.timestamp.bytes().all(|byte| byte.is_ascii_digit());
        let signed_at: i64 = self.timestamp.parse().ok().filter(|_| is_plain).ok_or(RejectionReason::Malformed)?;
        if (received_at / 1000).abs_diff(signed_at) > MAX_AGE_SECONDS.unsigned_abs() {
            return Err(RejectionReason::StaleTimestamp);
        }
        let key = keys.find(&self.serial, received_at).ok_or(RejectionReason::UnknownKey)?;
        let signature = STANDARD.decode(&self.signature).map_err(|_| RejectionReason::SignatureInvalid)?;
        let text = [self.timestamp.as_bytes(), b"\n", self.nonce.as_bytes(), b"\n", body, b"\n"].concat();
        if key.verifies(&text, &signature) { Ok(()) } else { Err(RejectionReason::SignatureInvalid) }
    }
}

/// Our identity at the provider, which signs requests.
#[derive(Debug)]
pub(super) struct WeChatMerchant {
    pub(super) merchant_id: String,
    pub(super) serial: String,
    pub(super) key: PrivateKey,
}

impl WeChatMerchant {
    /// Returns the `Authorization` header of a request. `path` is the path with the query as sent, `now` in seconds.
    pub(super) fn authorization(
        &self,
        method: &str,
        path: &str,
        body: &str,
        now: i64,
        nonce: &str,
    ) -> Result<String, SigningFailed> {
        let signature = self.sign(&[method, path, &now.to_string(), nonce, body])?;
        let Self { merchant_id, serial, .. } = self;
        Ok(format!(
            "{SCHEME} mchid=\"{merchant_id}\",nonce_str=\"{nonce}\",signature=\"{signature}\",timestamp=\"{now}\",\
             serial_no=\"{serial}\""
        ))
    }

    /// Signs these lines, each ended by a line feed.
    pub(super) fn sign(&self, lines: &[&str]) -> Result<String, SigningFailed> {
        let text: String = lines.iter().flat_map(|line| [*line, "\n"]).collect();
        Ok(STANDARD.encode(self.key.sign(text.as_bytes())?))
    }
}
