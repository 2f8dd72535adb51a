//! Webhooks: one POST of JSON to a configured URL.
//!
//! With a secret the body is signed, so that the receiver can authenticate it.

use std::time::Duration;

use ring::hmac;
use secrecy::{ExposeSecret, SecretString};

use super::{
    Failure, FailureKind,
    client::{BaseUrl, Client, Limits, Post},
};
use crate::types::hex;

const NAME: &str = "webhook";
/// `sha256=` and the HMAC-SHA-256 of the body under the secret, in hexadecimal digits.
const SIGNATURE: &str = "x-yarrow-signature";
const TIMEOUT: Duration = Duration::from_secs(10);

/// One configured webhook.
pub struct Webhook {
    url: String,
    key: Option<hmac::Key>,
    client: Client,
}

impl Webhook {
    pub fn new(url: &str, secret: Option<&SecretString>) -> Self {
        let limits =
            Limits { connect: TIMEOUT, first_byte: TIMEOUT, idle: TIMEOUT, total: TIMEOUT, reuse_connections: false };
        let key = secret.map(|secret| hmac::Key::new(hmac::HMAC_SHA256, secret.expose_secret().as_bytes()));
        Self { url: url.to_owned(), key, client: Client::new(NAME, "alerts.webhook_url", limits) }
    }

    /// Posts a JSON text. Any status from 200 to 299 means that it was accepted.
    ///
    /// # Errors
    /// The message was not accepted, or its outcome is unknown.
    pub fn send(&self, json: &str) -> Result<(), Failure> {
        let signature =
            self.key.as_ref().map(|key| format!("sha256={}", hex(hmac::sign(key, json.as_bytes()).as_ref())));
        let mut headers = vec![("content-type", "application/json")];
        headers.extend(signature.as_deref().map(|signature| (SIGNATURE, signature)));
        let answer = self.client.post(&Post {
            url: &self.url,
            headers: &headers,
            body: json.as_bytes(),
            total: None,
            is_unstreamed: false,
        })?;
        match answer.status {
            200..=299 => Ok(()),
            // Any other status means that the message was not accepted.
            status => Err(Failure::new(FailureKind::Refused, NAME, format!("http_{status}"))),
        }
    }

    /// Checks that the host responds. The rest of the URL may contain a secret and is not sent.
    ///
    /// # Errors
    /// The host does not respond.
    pub fn probe(&self) -> Result<(), Failure> {
        let base = self.url.split(['?', '#']).next().unwrap_or_default();
        let origin = BaseUrl::parse(NAME, base)?.origin();
        self.client.send("GET", &origin, &[], b"").map(drop)
    }
}
