//! Signed identity tokens of Apple and Google, and Apple's notifications about identities.
//!
//! A token is verified with the provider's published keys, without a call for each sign-in. The surprise: Apple signs
//! its notifications with the same key, issuer and audience, so a token with events never proves an identity.

use std::time::Duration;

use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::Value;

use super::{ProofFault, rejected};
use crate::{
    providers::{
        Failure, FailureKind, WallClock,
        client::{Client, Limits},
        jwks::{JwkCache, TokenFault, TokenRules},
    },
    types::{hex, sha256},
};

/// The longest id of a person.
const MAX_SUBJECT: usize = 255;
const CONNECT: Duration = Duration::from_secs(3);
/// Times of events below this are in seconds and not in milliseconds.
const FIRST_MILLISECONDS: i64 = 100_000_000_000;

/// The addresses and names of a provider of identity tokens.
pub struct IdTokenSettings {
    /// The provider's name in logs and failures.
    pub provider: &'static str,
    pub issuers: &'static [&'static str],
    /// The ids of our apps at the provider.
    pub audiences: Vec<String>,
    pub keys_url: String,
    /// The name of the setting of `keys_url`.
    pub setting: &'static str,
    /// The domains whose addresses belong to the provider. It proves no others, except those of its `hd` claim; empty if
    /// it proves all.
    pub email_domains: &'static [&'static str],
    /// Apps send the provider the hash of the nonce.
    pub has_hashed_nonces: bool,
    pub timeout: Duration,
}

/// Verifies the tokens of one provider.
pub struct IdTokenVerifier {
    settings: IdTokenSettings,
    keys: JwkCache,
    client: Client,
    clock: WallClock,
}

/// The person whom a token proves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProvedToken {
    /// The provider's id of the person.
    pub subject: String,
    /// An address that the provider verified.
    pub email: Option<String>,
    /// The provider has authority over the address, so that it proves who owns it today.
    pub is_email_proved: bool,
    /// In milliseconds since 1970.
    pub expires_at: i64,
}

/// A notification about an identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentityEvent {
    pub subject: String,
    pub kind: IdentityEventKind,
    /// In milliseconds since 1970.
    pub at: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdentityEventKind {
    /// The person no longer wants to use the identity in this app.
    ConsentRevoked,
    /// The identity no longer exists.
    AccountDeleted,
    /// A kind without effect here, such as a change of the forwarding of email.
    Other,
}

#[derive(Deserialize)]
struct IdentityClaims {
    #[serde(default)]
    sub: String,
    #[serde(default)]
    exp: i64,
    nonce: Option<String>,
    email: Option<String>,
    #[serde(default, deserialize_with = "boolean_or_text")]
    email_verified: bool,
    /// The domain of an organisation that Google manages.
    hd: Option<String>,
    events: Option<Value>,
}

#[derive(Deserialize)]
struct EventClaims {
    events: Value,
}

#[derive(Deserialize)]
struct EventText {
    #[serde(rename = "type")]
    kind: String,
    sub: String,
    event_time: i64,
}

impl IdTokenVerifier {
    pub fn new(settings: IdTokenSettings, clock: WallClock) -> Self {
        let keys = JwkCache::new(settings.provider, &settings.keys_url);
        let client =
            Client::new(settings.provider, settings.setting, Limits::for_whole_calls(CONNECT, settings.timeout, true));
        Self { settings, keys, client, clock }
    }

    /// Verifies a token. Blocks if keys must be fetched.
    ///
    /// # Errors
    /// The token is rejected, or the keys could not be fetched.
    pub fn verify(&self, token: &str, nonce: Option<&str>) -> Result<ProvedToken, ProofFault> {
        let claims: IdentityClaims = self.verify_claims(token, false)?;
        if claims.events.is_some() {
            return Err(rejected("a notification"));
        }
        if claims.sub.is_empty() || claims.sub.len() > MAX_SUBJECT {
            return Err(rejected("no subject"));
        }
        if !self.has_nonce(claims.nonce.as_deref(), nonce) {
            return Err(rejected("another nonce"));
        }
        let email = claims.email.filter(|_| claims.email_verified);
        let is_email_proved = claims.hd.is_some_and(|domain| !domain.is_empty())
            || email.as_deref().is_some_and(|email| self.has_authority(email));
        Ok(ProvedToken { subject: claims.sub, email, is_email_proved, expires_at: claims.exp.saturating_mul(1000) })
    }

    /// Verifies a notification. Blocks if keys must be fetched.
    ///
    /// # Errors
    /// The notification is rejected, or the keys could not be fetched.
    pub fn read_event(&self, payload: &str) -> Result<IdentityEvent, ProofFault> {
        self.verify_claims(payload, true).and_then(event_of)
    }

    /// Verifies a notification without a fetch; `None` if keys must be fetched.
    pub fn read_known_event(&self, payload: &str) -> Option<Result<IdentityEvent, ProofFault>> {
        self.judge(payload, true, (self.clock)()).map(|claims| claims.and_then(event_of))
    }

    fn verify_claims<T: DeserializeOwned>(&self, token: &str, may_omit_expiry: bool) -> Result<T, ProofFault> {
        let now = (self.clock)();
        if let Some(judged) = self.judge(token, may_omit_expiry, now) {
            return judged;
        }
        let fetched = self.keys.refresh(&self.client, now);
        match (self.keys.verify(token, &self.rules(may_omit_expiry), now), fetched) {
            (Ok(claims), _) => Ok(claims),
            (Err(TokenFault::UnknownKey), Err(failure)) => Err(failure.into()),
            (Err(TokenFault::UnknownKey), Ok(_)) if self.keys.is_empty() => {
                Err(Failure::new(FailureKind::Unreachable, self.settings.provider, "no_keys").into())
            }
            (Err(fault), _) => Err(rejected_by(fault)),
        }
    }

    /// Verifies a token with the keys that are held; `None` if others must be fetched first.
    fn judge<T: DeserializeOwned>(
        &self,
        token: &str,
        may_omit_expiry: bool,
        now: i64,
    ) -> Option<Result<T, ProofFault>> {
        let is_stale = self.keys.is_stale(now);
        match self.keys.verify(token, &self.rules(may_omit_expiry), now) {
            // Rejected before any fetch, because anybody can send such a token.
            Err(fault @ (TokenFault::Malformed | TokenFault::WrongAlgorithm)) => Some(Err(rejected_by(fault))),
            Err(TokenFault::UnknownKey) => None,
            judged => (!is_stale).then(|| judged.map_err(rejected_by)),
        }
    }

    fn rules(&self, may_omit_expiry: bool) -> TokenRules<'_> {
        let settings = &self.settings;
        let (issuers, audiences) = (settings.issuers, &settings.audiences);
        TokenRules { issuers, audiences, expiry_leeway: 0, may_omit_expiry }
    }

    fn has_authority(&self, email: &str) -> bool {
        let domains = self.settings.email_domains;
        let is_of = |domain: &&str| email.rsplit_once('@').is_some_and(|(_, of)| of.eq_ignore_ascii_case(domain));
        domains.is_empty() || domains.iter().any(is_of)
    }

    /// Returns true if token and request have the same nonce, or neither has one.
    fn has_nonce(&self, claimed: Option<&str>, sent: Option<&str>) -> bool {
        match (claimed, sent) {
            (None, None) => true,
            (Some(claimed), Some(sent)) => {
                claimed == sent || self.settings.has_hashed_nonces && claimed == hex(&sha256(sent))
            }
            _ => false,
        }
    }

    #[cfg(test)]
    fn with_keys(settings: IdTokenSettings, keys: &[u8], clock: WallClock) -> Self {
        Self { keys: JwkCache::with_keys(keys), ..Self::new(settings, clock) }
    }
}

fn event_of(claims: EventClaims) -> Result<IdentityEvent, ProofFault> {
    // Apple sends the event as JSON text inside of JSON.
    let event: Option<EventText> = match claims.events {
        Value::String(text) => serde_json::from_str(&text).ok(),
        event => EventText::deserialize(event).ok(),
    };
    let event = event.ok_or_else(|| rejected("malformed event"))?;
    let kind = match event.kind.as_str() {
        "consent-revoked" => IdentityEventKind::ConsentRevoked,
        "account-deleted" | "account-delete" => IdentityEventKind::AccountDeleted,
        _ => IdentityEventKind::Other,
    };
    let is_seconds = event.event_time < FIRST_MILLISECONDS;
    let at = if is_seconds { event.event_time.saturating_mul(1000) } else { event.event_time };
    Ok(IdentityEvent { subject: event.sub, kind, at })
}

fn rejected_by(fault: TokenFault) -> ProofFault {
    rejected(match fault {
        TokenFault::Malformed => "malformed",
        TokenFault::WrongAlgorithm => "wrong algorithm",
        TokenFault::UnknownKey => "unknown key",
        TokenFault::SignatureInvalid => "wrong signature",
        TokenFault::WrongIssuer => "wrong issuer",
        TokenFault::WrongAudience => "wrong audience",
        TokenFault::Expired => "expired",
    })
}

/// Reads a boolean, which Apple sometimes sends as text.
fn boolean_or_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(value == Value::Bool(true) || value.as_str() == Some("true"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const VECTORS: &str = include_str!("../../../tests/vectors/identity.json");

    fn vectors() -> Value {
        serde_json::from_str(VECTORS).unwrap()
    }

    fn verifier(vectors: &Value, provider: &str) -> IdTokenVerifier {
        let (issuers, audiences, keys): (&'static [&'static str], _, _) = match provider {
            "apple_sign_in" => (&["https://appleid.apple.com"], "audiences", &vectors[provider]["jwks"]),
            _ => (&["https://accounts.google.com", "accounts.google.com"], "client_ids", &vectors["jwks"]),
        };
        let settings = IdTokenSettings {
            provider: "test",
            issuers,
            audiences: serde_json::from_value(vectors[provider][audiences].clone()).unwrap(),
            keys_url: "http://127.0.0.1:1/".to_owned(),
            setting: "auth.test.keys_url",
            email_domains: &[],
            has_hashed_nonces: provider == "apple_sign_in",
            timeout: Duration::from_secs(1),
        };
        let now = vectors["now"].as_i64().unwrap() * 1000;
        IdTokenVerifier::with_keys(settings, keys.to_string().as_bytes(), Box::new(move || now))
    }

    #[test]
    fn every_recorded_token_gets_its_verdict() {
        let vectors = vectors();
        let mut seen = 0;
        for (provider, nonce) in [("google_sign_in", "nonce"), ("apple_sign_in", "raw_nonce")] {
            let section = &vectors[provider];
            let verifier = verifier(&vectors, provider);
            for (name, case) in section["tokens"].as_object().unwrap() {
                let token = case["id_token"].as_str().unwrap();
                let verdict = verifier.verify(token, section[nonce].as_str());
                let must_refuse = case["must_refuse"].as_str();
                let is_accepted = case["result"] == "OK" && must_refuse != Some("nonce");
                assert_eq!(verdict.is_ok(), is_accepted, "{provider} {name}: {verdict:?}");
                if let Ok(proved) = verdict {
                    assert_eq!(proved.email.is_none(), must_refuse == Some("no_joining_by_email"), "{name}");
                }
                seen += 1;
            }
        }
        assert_eq!(seen, 11);
    }

    #[test]
    fn a_nonce_must_be_in_both_or_in_neither() {
        let vectors = vectors();
        let verifier = verifier(&vectors, "google_sign_in");
        assert!(verifier.has_nonce(None, None));
        assert!(!verifier.has_nonce(Some("a"), None) && !verifier.has_nonce(None, Some("a")));
        assert!(!verifier.has_nonce(Some(&hex(&sha256("a"))), Some("a")));
    }
}
