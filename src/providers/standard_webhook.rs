//! Signed events to the operator's URL, with the headers and signatures of the Standard Webhooks specification, which
//! receivers verify with its libraries.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::hmac;

use super::{
    Failure, FailureKind,
    client::{BaseUrl, Client, Limits},
};
use crate::providers::retry_after::retry_after;

pub const NAME: &str = "webhooks";
const CONNECT: Duration = Duration::from_secs(3);
/// The mark before the key in base64.
const SECRET_PREFIX: &str = "whsec_";
const MIN_KEY_BYTES: usize = 24;

/// The receiver of events.
pub struct StandardWebhook {
    url: String,
    /// The current key, and the old one while receivers change to it.
    keys: Vec<hmac::Key>,
    client: Client,
}

impl StandardWebhook {
    /// Builds the receiver.
    ///
    /// # Errors
    /// The fault of a setting, with its name.
    pub fn new(url: &str, secrets: &[&str], timeout: Duration) -> Result<Self, String> {
        let base = url.split(['?', '#']).next().unwrap_or_default();
        BaseUrl::parse(NAME, base).map_err(|_| "url: must be an http or https address".to_owned())?;
        let fault = "secrets: must be `whsec_` and at least 24 random bytes in base64, each";
        let key = |secret: &&str| {
            let bytes = STANDARD.decode(secret.trim().strip_prefix(SECRET_PREFIX)?).ok()?;
            (bytes.len() >= MIN_KEY_BYTES).then(|| hmac::Key::new(hmac::HMAC_SHA256, &bytes))
        };
        let keys: Option<Vec<_>> = secrets.iter().map(key).collect();
        let keys = keys.filter(|keys| !keys.is_empty()).ok_or(fault)?;
        Ok(Self {
            url: url.to_owned(),
            keys,
            client: Client::new(NAME, "webhooks.url", Limits::for_whole_calls(CONNECT, timeout, true)),
        })
    }

    /// Sends an event. Any status from 200 to 299 means that it was accepted. `now` is in seconds since 1970.
    ///
    /// # Errors
    /// The event was not accepted, or its outcome is unknown.
    pub fn send(&self, id: &str, now: i64, body: &str) -> Result<(), Failure> {
        let (timestamp, signature) = (now.to_string(), self.signature(id, now, body));
        let headers = [
            ("content-type", "application/json"),
            ("webhook-id", id),
            ("webhook-timestamp", &timestamp),
            ("webhook-signature", &signature),
        ];
        let answer = self.client.send("POST", &self.url, &headers, body.as_bytes())?;
        let retry_after = retry_after(|name| answer.header(name));
        match answer.status {
            200..=299 => Ok(()),
            status => {
                let kind = if status >= 500 || status == 429 { FailureKind::Busy } else { FailureKind::Refused };
                Err(Failure::new(kind, NAME, format!("http_{status}")).with_retry_after(retry_after))
            }
        }
    }

    fn signature(&self, id: &str, now: i64, body: &str) -> String {
        let text = format!("{id}.{now}.{body}");
        let sign = |key| format!("v1,{}", STANDARD.encode(hmac::sign(key, text.as_bytes())));
        self.keys.iter().map(sign).collect::<Vec<_>>().join(" ")
    }

    /// Checks that the host answers. The rest of the URL may contain a secret and is not sent.
    ///
    /// # Errors
    /// The host does not answer.
    pub fn probe(&self) -> Result<(), Failure> {
        let base = self.url.split(['?', '#']).next().unwrap_or_default();
        self.client.send("GET", &BaseUrl::parse(NAME, base)?.origin(), &[], b"").map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_the_example_of_the_specification() {
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let webhook = StandardWebhook::new("https://example.com/hooks", &[secret], CONNECT).ok().unwrap();
        let signature = webhook.signature("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        let both = StandardWebhook::new("https://example.com/", &[secret, secret], CONNECT).ok().unwrap();
        assert_eq!(both.signature("a", 1, "").matches("v1,").count(), 2);
    }

    #[test]
    fn keys_must_be_long_enough() {
        for secrets in [&[][..], &["secret"], &["whsec_c2hvcnQ="], &["whsec_*"]] {
            assert!(StandardWebhook::new("https://example.com/", secrets, CONNECT).is_err(), "{secrets:?}");
        }
        assert!(StandardWebhook::new("example.com", &["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"], CONNECT).is_err());
    }
}
