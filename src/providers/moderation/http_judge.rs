//! A judge of the operator's own: one signed POST of JSON per text to a configured URL.
//!
//! The request is `{"id", "scene", "text", "account"}` with the headers `x-yarrow-timestamp` (milliseconds) and
//! `x-yarrow-signature` (`sha256=` and the HMAC-SHA-256 of timestamp, a full stop and body, under the secret). The reply
//! is `{"refused": true, "labels": [{"label", "type", "confidence", "words"}]}`; only `refused` is required.

use std::time::Duration;

use ring::hmac;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use super::{ModerationResult, RiskLabel, Scene, TextModerator, kind_of_status, known_kind};
use crate::{
    providers::{
        Failure, FailureKind, WallClock, clean_code,
        client::{Client, Limits, Post},
        nonce::random_hex,
    },
    types::hex,
};

/// The driver's name in the configuration.
pub const NAME: &str = "http";

const TIMESTAMP: &str = "x-yarrow-timestamp";
const SIGNATURE: &str = "x-yarrow-signature";
const MAX_RESPONSE_BYTES: usize = 64 * 1024;
/// Labels and words that are kept of a reply.
const MAX_FINDINGS: usize = 32;
/// Replaces a label that cannot be logged.
const UNLABELLED: &str = "refused";

/// The judge's address. `Debug` masks the secret.
#[derive(Clone, Debug)]
pub struct HttpJudgeSettings {
    pub url: String,
    pub secret: SecretString,
    pub connect: Duration,
    pub total: Duration,
}

/// Moderates texts by a server of the operator.
pub struct HttpJudge {
    url: String,
    key: hmac::Key,
    client: Client,
    clock: WallClock,
}

#[derive(Deserialize)]
struct JudgeReply {
    refused: bool,
    #[serde(default)]
    labels: Vec<JudgeLabel>,
}

#[derive(Deserialize)]
struct JudgeLabel {
    label: String,
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    confidence: Option<f64>,
    #[serde(default)]
    words: Vec<String>,
}

impl HttpJudge {
    pub fn new(settings: &HttpJudgeSettings, clock: WallClock) -> Self {
        let limits = Limits::for_whole_calls(settings.connect, settings.total, true);
        let key = hmac::Key::new(hmac::HMAC_SHA256, settings.secret.expose_secret().as_bytes());
        Self { url: settings.url.clone(), key, client: Client::new(NAME, "moderation.judge_url", limits), clock }
    }

    fn signature(&self, timestamp: &str, body: &str) -> String {
        let signed = hmac::sign(&self.key, format!("{timestamp}.{body}").as_bytes());
        format!("sha256={}", hex(signed.as_ref()))
    }
}

impl TextModerator for HttpJudge {
    fn name(&self) -> &'static str {
        NAME
    }

    fn judge(&self, scene: Scene, text: &str, account: Option<&str>) -> Result<ModerationResult, Failure> {
        let id = random_hex::<16>(NAME)?;
        let body = serde_json::json!({ "id": id, "scene": scene.name(), "text": text, "account": account }).to_string();
        let timestamp = (self.clock)().to_string();
        let signature = self.signature(&timestamp, &body);
        let headers =
            [("content-type", "application/json"), (TIMESTAMP, timestamp.as_str()), (SIGNATURE, signature.as_str())];
        let answer = self.client.post(&Post {
            url: &self.url,
            headers: &headers,
            body: body.as_bytes(),
            total: None,
            is_unstreamed: false,
        })?;
        match answer.status {
            200..=299 => verdict_of(&answer.read_all(MAX_RESPONSE_BYTES)?),
            status => Err(Failure::new(kind_of_status(status), NAME, format!("http_{status}"))),
        }
    }
}

fn verdict_of(body: &[u8]) -> Result<ModerationResult, Failure> {
    // A reply without a verdict must not count as one.
    let reply: JudgeReply = serde_json::from_slice(body)
        .map_err(|_| Failure::new(FailureKind::InvalidResponse, NAME, "answer_not_understood"))?;
    let labels = reply.labels.into_iter().take(MAX_FINDINGS);
    let findings = labels.map(|found| RiskLabel {
        label: clean_code(&found.label).unwrap_or_else(|| UNLABELLED.to_owned()),
        kind: known_kind(found.kind.as_deref().unwrap_or(&found.label)),
        confidence: found.confidence,
        words: found.words.into_iter().take(MAX_FINDINGS).collect(),
    });
    Ok(ModerationResult { is_refused: reply.refused, findings: findings.collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_verdicts() {
        let body = br#"{"refused":true,"labels":[{"label":"spam","type":"ads","confidence":90,"words":["x"]}]}"#;
        let refused = verdict_of(body).unwrap();
        assert!(refused.is_refused);
        assert_eq!((refused.findings[0].kind, refused.findings[0].words[0].as_str()), ("ads", "x"));
        assert!(!verdict_of(br#"{"refused":false}"#).unwrap().is_refused);
        for body in ["", "{}", "null", "[]", r#"{"refused":"no"}"#, r#"{"labels":[]}"#] {
            let failure = verdict_of(body.as_bytes()).unwrap_err();
            assert_eq!(failure.kind, FailureKind::InvalidResponse, "{body}");
        }
    }
}
