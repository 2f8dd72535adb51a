//! RSA keys of an identity provider, by id, and identity tokens that are signed with them.
//!
//! The keys change every few days. They are fetched when they expire or when a token names an unknown one, but not for
//! every unknown id, because the sender of a token chooses it. Old keys stay in use while the provider cannot be reached.
//! Few callers wait for a fetch, because each occupies a thread and strangers can send tokens.

use std::{collections::BTreeMap, sync::Mutex, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, de::DeserializeOwned};

use serde_json::Value;

use super::{Failure, FailureKind, client::Client, json, jws::CompactJws};
use crate::concurrency::{lock::lock_unpoisoned, semaphore::Semaphore};

/// The shortest time between two fetches, in milliseconds.
const FETCH_INTERVAL: i64 = 30_000;
/// The shortest time between a failed fetch and the next one, in milliseconds.
const RETRY_INTERVAL: i64 = 10_000;
/// The shortest time for which fetched keys are kept, in milliseconds.
const MIN_LIFETIME: i64 = 60 * 60_000;
const MAX_RESPONSE_BYTES: usize = 256 * 1024;
/// Callers of one cache that fetch keys or wait for them. Each occupies a thread.
const MAX_CALLERS: u32 = 32;
/// The delay after which a caller that found too many others should try again.
const RETRY_AFTER: Duration = Duration::from_secs(5);
/// The allowed difference between the clocks, in seconds.
pub(super) const CLOCK_SKEW: i64 = 60;

/// The keys of one provider.
pub(super) struct JwkCache {
    provider: &'static str,
    url: String,
    state: Mutex<JwkState>,
    /// Held while keys are fetched, so that callers which need the same keys wait for them.
    fetching: Mutex<()>,
    callers: Semaphore,
}

/// Modulus and exponent by key id.
type RsaKeys = BTreeMap<String, (Vec<u8>, Vec<u8>)>;

#[derive(Default)]
struct JwkState {
    keys: RsaKeys,
    next_try_at: Option<i64>,
    has_failed: bool,
    expires_at: Option<i64>,
}

/// The demands on a token besides its signature.
pub(super) struct TokenRules<'a> {
    pub(super) issuers: &'a [&'a str],
    pub(super) audiences: &'a [String],
    /// Seconds after its expiry for which a token is still accepted.
    pub(super) expiry_leeway: i64,
    /// True for messages that may never expire.
    pub(super) may_omit_expiry: bool,
}

/// The reason why an identity token is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenFault {
    Malformed,
    WrongAlgorithm,
    /// Fetch the keys and try again.
    UnknownKey,
    SignatureInvalid,
    WrongIssuer,
    WrongAudience,
    Expired,
}

#[derive(Deserialize)]
struct JwkSet {
    keys: Vec<Value>,
}

#[derive(Deserialize)]
struct Jwk {
    kid: String,
    n: String,
    e: String,
}

#[derive(Deserialize)]
struct TokenHeader {
    alg: String,
    #[serde(default)]
    kid: String,
}

/// The claims that every identity token has.
#[derive(Deserialize)]
struct CommonClaims {
    iss: String,
    aud: Audience,
    exp: Option<i64>,
    iat: i64,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Many(Vec<String>),
}

impl JwkCache {
    pub(super) fn new(provider: &'static str, url: &str) -> Self {
        Self {
            provider,
            url: url.to_owned(),
            state: Mutex::default(),
            fetching: Mutex::default(),
            callers: Semaphore::new(MAX_CALLERS),
        }
    }

    /// Returns true if the keys are missing or have expired.
    pub(super) fn is_stale(&self, now: i64) -> bool {
        lock_unpoisoned(&self.state).expires_at.is_none_or(|expires_at| now >= expires_at)
    }

    /// Returns true if no keys were fetched yet, so that an unknown key says nothing about a token.
    pub(super) fn is_empty(&self) -> bool {
        lock_unpoisoned(&self.state).keys.is_empty()
    }

    /// Fetches the keys, unless that was done within half a minute. Waits while another caller fetches them, or fails if
    /// too many callers wait already. Returns true if this call fetched them.
    ///
    /// # Errors
    /// The fetch failed, now or within seconds; `Overloaded`.
    pub(super) fn refresh(&self, client: &Client, now: i64) -> Result<bool, Failure> {
        if let Some(recent) = self.recent_fetch(now) {
            return recent;
        }
        let overloaded = |_| {
            Failure::new(FailureKind::Overloaded, self.provider, "keys_awaited").with_retry_after(Some(RETRY_AFTER))
        };
        let _caller = self.callers.try_acquire().map_err(overloaded)?;
        let _fetching = lock_unpoisoned(&self.fetching);
        if let Some(recent) = self.recent_fetch(now) {
            return recent;
        }
        let fetched = self.fetch(client);
        let mut state = lock_unpoisoned(&self.state);
        state.has_failed = fetched.is_err();
        state.next_try_at = Some(now + if state.has_failed { RETRY_INTERVAL } else { FETCH_INTERVAL });
        let (keys, lifetime) = fetched?;
        state.keys = keys;
        state.expires_at = Some(now.saturating_add(lifetime));
        Ok(true)
    }

    /// Returns the outcome of the last fetch for callers that must not fetch again yet.
    fn recent_fetch(&self, now: i64) -> Option<Result<bool, Failure>> {
        let state = lock_unpoisoned(&self.state);
        let failed = || Failure::new(FailureKind::Unreachable, self.provider, "keys_not_fetched");
        let is_recent = state.next_try_at.is_some_and(|next_try_at| now < next_try_at);
        is_recent.then(|| if state.has_failed { Err(failed()) } else { Ok(false) })
    }

    /// Fetches the keys and their lifetime in milliseconds.
    fn fetch(&self, client: &Client) -> Result<(RsaKeys, i64), Failure> {
        let answer = client.send("GET", &self.url, &[("accept", "application/json")], b"")?;
        if answer.status != 200 {
            return Err(Failure::new(FailureKind::InvalidResponse, self.provider, format!("http_{}", answer.status)));
        }
        let lifetime = answer.header("cache-control").and_then(max_age).unwrap_or_default().max(MIN_LIFETIME);
        let keys = parse(&answer.read_all(MAX_RESPONSE_BYTES)?);
        let keys = keys.ok_or_else(|| Failure::new(FailureKind::InvalidResponse, self.provider, "keys_unreadable"))?;
        Ok((keys, lifetime))
    }

    /// Verifies an identity token and returns its claims. `now` is in epoch milliseconds.
    pub(super) fn verify<T: DeserializeOwned>(
        &self,
        token: &str,
        rules: &TokenRules<'_>,
        now: i64,
    ) -> Result<T, TokenFault> {
        let message = CompactJws::parse(token).ok_or(TokenFault::Malformed)?;
        let header: TokenHeader = serde_json::from_slice(&message.header).map_err(|_| TokenFault::Malformed)?;
        if header.alg != "RS256" {
            return Err(TokenFault::WrongAlgorithm);
        }
        let key = lock_unpoisoned(&self.state).keys.get(&header.kid).cloned();
        let (modulus, exponent) = key.ok_or(TokenFault::UnknownKey)?;
        if !message.is_signed_rs256(&modulus, &exponent) {
            return Err(TokenFault::SignatureInvalid);
        }
        let claims: CommonClaims = serde_json::from_slice(&message.payload).map_err(|_| TokenFault::Malformed)?;
        if !rules.issuers.contains(&claims.iss.as_str()) {
            return Err(TokenFault::WrongIssuer);
        }
        let is_ours = |audience: &String| rules.audiences.contains(audience);
        let is_for_us = match &claims.aud {
            Audience::One(audience) => is_ours(audience),
            Audience::Many(named) => named.iter().any(is_ours),
        };
        if !is_for_us {
            return Err(TokenFault::WrongAudience);
        }
        let seconds = now / 1000;
        let is_expired = match claims.exp {
            Some(expires_at) => expires_at.saturating_add(rules.expiry_leeway) <= seconds,
            None => !rules.may_omit_expiry,
        };
        if is_expired || claims.iat > seconds.saturating_add(CLOCK_SKEW) {
            return Err(TokenFault::Expired);
        }
        serde_json::from_slice(&message.payload).map_err(|_| TokenFault::Malformed)
    }

    #[cfg(test)]
    pub(super) fn with_keys(json: &[u8]) -> Self {
        let cache = Self::new("test", "");
        lock_unpoisoned(&cache.state).keys = parse(json).unwrap();
        cache
    }
}

/// Parses a set of keys. Keys of other kinds, and those that cannot be read, are left out; none of RSA may be left.
fn parse(json: &[u8]) -> Option<RsaKeys> {
    let set: JwkSet = json::from_slice(json).ok()?;
    let decode = |text: &str| URL_SAFE_NO_PAD.decode(text).ok();
    let is_of_rsa = |key: &Value| key["kty"] == "RSA";
    let has_rsa = set.keys.iter().any(is_of_rsa);
    let read = |key: Value| serde_json::from_value::<Jwk>(key).ok().filter(|key| !key.kid.is_empty());
    let read = set.keys.into_iter().filter(is_of_rsa).filter_map(read);
    let keys: RsaKeys = read.filter_map(|key| Some((key.kid, (decode(&key.n)?, decode(&key.e)?)))).collect();
    Some(keys).filter(|keys| !has_rsa || !keys.is_empty())
}

/// Returns the `max-age` of a `Cache-Control` header in milliseconds.
fn max_age(header: &str) -> Option<i64> {
    let seconds: i64 = header.split(',').find_map(|part| part.trim().strip_prefix("max-age="))?.parse().ok()?;
    Some(seconds.clamp(0, 7 * 24 * 3600) * 1000)
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        net::TcpListener,
        time::Duration,
    };

    use super::*;
    use crate::providers::client::Limits;

    #[test]
    fn reads_max_age() {
        assert_eq!(max_age("public, max-age=22935, must-revalidate"), Some(22_935_000));
        assert_eq!(max_age("no-store"), None);
        assert_eq!(max_age("max-age=-5"), Some(0));
    }

    /// Publishes one key a connection, with the id that counts them. The third connection fails.
    fn publish(listener: &TcpListener) {
        for (number, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]).unwrap();
            if number == 2 {
                write!(stream, "HTTP/1.1 503 Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n").unwrap();
                continue;
            }
            let keys = format!(r#"{{"keys":[{{"kty":"RSA","kid":"{number}","n":"AQAB","e":"AQAB"}}]}}"#);
            let length = keys.len();
            write!(stream, "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{keys}").unwrap();
        }
    }

    #[test]
    fn keys_that_have_just_been_rotated_are_fetched_within_half_a_minute() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let cache = JwkCache::new("test", &format!("http://{}/", listener.local_addr().unwrap()));
        std::thread::spawn(move || publish(&listener));
        let second = Duration::from_secs(1);
        let client = Client::new("test", "auth.test.keys_url", Limits::for_whole_calls(second, second, false));
        let ids = || lock_unpoisoned(&cache.state).keys.keys().cloned().collect::<Vec<_>>();
        for (now, is_fetched, id) in [(0, true, "0"), (29_999, false, "0"), (30_000, true, "1"), (30_001, false, "1")] {
            assert_eq!(cache.refresh(&client, now).unwrap(), is_fetched, "{now}");
            assert_eq!(ids(), [id], "{now}");
        }
        // A failed fetch is told to those who come before the next one, so that they do not take a new key for a wrong one.
        for (now, code) in [(60_001, "http_503"), (60_002, "keys_not_fetched"), (70_000, "keys_not_fetched")] {
            assert_eq!((cache.refresh(&client, now).unwrap_err().code.as_str(), ids()), (code, vec!["1".to_owned()]));
        }
        assert!(cache.refresh(&client, 70_001).unwrap());
        assert_eq!(ids(), ["3"]);
    }

    #[test]
    fn keys_that_cannot_be_used_harm_no_others() {
        let good = r#"{"kty":"RSA","kid":"good","n":"AQAB","e":"AQAB"}"#;
        for bad in [
            r#"{"kty":"EC","kid":"a"}"#,
            r#"{"kty":"RSA","kid":"a","n":"AQAB==","e":"AQAB"}"#,
            r#"{"kty":"RSA","kid":"a","n":"+/+/","e":"AQAB"}"#,
            r#"{"kid":"a","n":"AQAB","e":"AQAB"}"#,
            r#"{"kty":"RSA","kid":7,"n":"AQAB","e":"AQAB"}"#,
            r#"{"kty":"RSA","kid":null,"n":"AQAB","e":"AQAB"}"#,
            r#"{"kty":"RSA","kid":"a"}"#,
            "7",
        ] {
            let keys = parse(format!(r#"{{"keys":[{bad},{good}]}}"#).as_bytes()).unwrap();
            assert_eq!(keys.keys().collect::<Vec<_>>(), ["good"], "{bad}");
        }
        assert_eq!(parse(br#"{"keys":[{"kty":"EC","kid":"a"}]}"#).unwrap().len(), 0);
        assert!(parse(br#"{"keys":[{"kty":"RSA","kid":"a","n":"?","e":"AQAB"}]}"#).is_none());
        assert!(parse(b"[]").is_none());
    }
}
