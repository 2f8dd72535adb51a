//! A service account of Google and its access tokens.

use std::{fmt, sync::Mutex};

use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::{Failure, FailureKind, clean_code, client::Client, jws::sign_rs256, percent, rsa::PrivateKey};
use crate::concurrency::lock::lock_unpoisoned;

/// The audience of assertions, whatever the address of the token endpoint.
const TOKEN_AUDIENCE: &str = "https://oauth2.googleapis.com/token";
const ASSERTION_LIFETIME: i64 = 3600;
/// An access token is renewed this long before it expires, in milliseconds.
const RENEWAL: i64 = 60_000;
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

/// A service account with its current access token.
pub(super) struct GoogleAccount {
    provider: &'static str,
    scope: &'static str,
    email: String,
    key_id: String,
    pub(super) key: PrivateKey,
    pub(super) project_id: Option<String>,
    token_url: String,
    token: Mutex<Option<AccessToken>>,
}

#[derive(Clone)]
struct AccessToken {
    token: SecretString,
    /// Epoch milliseconds.
    expires_at: i64,
}

#[derive(Deserialize)]
struct KeyFile {
    client_email: String,
    private_key: String,
    private_key_id: String,
    token_uri: String,
    project_id: Option<String>,
}

#[derive(Serialize)]
struct AssertionHeader<'a> {
    typ: &'static str,
    alg: &'static str,
    kid: &'a str,
}

#[derive(Serialize)]
struct AssertionClaims<'a> {
    iat: i64,
    exp: i64,
    iss: &'a str,
    aud: &'static str,
    scope: &'static str,
}

#[derive(Deserialize)]
struct TokenAnswer {
    access_token: String,
    expires_in: i64,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TokenError {
    error: String,
}

impl GoogleAccount {
    /// Reads the text of a key file. `token_url` replaces the token endpoint that it names.
    ///
    /// # Errors
    /// The fault, without any part of the file.
    pub(super) fn parse(
        provider: &'static str,
        scope: &'static str,
        key_file: &str,
        token_url: Option<&str>,
    ) -> Result<Self, String> {
        // The parser's text may repeat a part of the key.
        let file: KeyFile = serde_json::from_str(key_file)
            .map_err(|_| "must be the text of a service account's key file".to_owned())?;
        let key = PrivateKey::parse(&file.private_key).map_err(|fault| fault.to_string())?;
        Ok(Self {
            provider,
            scope,
            email: file.client_email,
            key_id: file.private_key_id,
            key,
            project_id: file.project_id,
            token_url: token_url.map_or(file.token_uri, ToOwned::to_owned),
            token: Mutex::new(None),
        })
    }

    /// Returns the address of the token endpoint.
    pub(super) fn token_url(&self) -> &str {
        &self.token_url
    }

    /// Forgets an access token that was rejected.
    pub(super) fn forget_token(&self) {
        *lock_unpoisoned(&self.token) = None;
    }

    /// Returns an access token that is valid at this time (milliseconds). Two threads may both fetch one, which does no
    /// harm.
    pub(super) fn access_token(&self, client: &Client, now: i64) -> Result<SecretString, Failure> {
        let kept = lock_unpoisoned(&self.token).clone();
        if let Some(kept) = kept.filter(|kept| now + RENEWAL < kept.expires_at) {
            return Ok(kept.token);
        }
        let body = self.token_request(now / 1000)?;
        let headers = [("content-type", "application/x-www-form-urlencoded"), ("accept", "application/json")];
        let answer = client.send("POST", &self.token_url, &headers, body.as_bytes())?;
        let status = answer.status;
        if status != 200 {
            let error: TokenError = serde_json::from_slice(&answer.read_error()).unwrap_or_default();
            let kind = if status >= 500 { FailureKind::OutcomeUnknown } else { FailureKind::Misconfigured };
            let code = clean_code(&error.error).unwrap_or_else(|| format!("token_http_{status}"));
            return Err(Failure::new(kind, self.provider, code));
        }
        let unreadable = || Failure::new(FailureKind::InvalidResponse, self.provider, "answer_unreadable");
        let body = answer.read_all(MAX_RESPONSE_BYTES)?;
        let answer: TokenAnswer = serde_json::from_slice(&body).map_err(|_| unreadable())?;
        let expires_at = now + answer.expires_in.clamp(0, 86_400) * 1000;
        let token = SecretString::from(answer.access_token);
        *lock_unpoisoned(&self.token) = Some(AccessToken { token: token.clone(), expires_at });
        Ok(token)
    }

    /// Returns the body of a request for an access token made at this time (seconds).
    pub(super) fn token_request(&self, now: i64) -> Result<String, Failure> {
        let header = AssertionHeader { typ: "JWT", alg: "RS256", kid: &self.key_id };
        let claims = AssertionClaims {
            iat: now,
            exp: now + ASSERTION_LIFETIME,
            iss: &self.email,
            aud: TOKEN_AUDIENCE,
            scope: self.scope,
        };
        let assertion = sign_rs256(&self.key, &header, &claims);
        let assertion =
            assertion.map_err(|_| Failure::new(FailureKind::Misconfigured, self.provider, "signing_failed"))?;
        let grant = percent::encode("urn:ietf:params:oauth:grant-type:jwt-bearer");
        Ok(format!("grant_type={grant}&assertion={}", percent::encode(&assertion)))
    }
}

impl fmt::Debug for GoogleAccount {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("GoogleAccount").field("email", &self.email).finish_non_exhaustive()
    }
}
