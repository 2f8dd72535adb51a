//! Apple's push service, with a signed token of the provider, over HTTP/2.
//!
//! The signed token must be between 20 and 60 minutes old when it is replaced: Apple refuses older ones, and those of
//! providers that replace it more often.

use std::{sync::Mutex, time::Duration};

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{PushFault, PushMessage, PushSender, PushService, cut};
use crate::providers::json;
use crate::{
    concurrency::lock::lock_unpoisoned,
    providers::{
        Failure, FailureKind, WallClock, clean_code,
        client::BaseUrl,
        http2::{Http2Client, Http2Request, Http2Response},
        jws::Es256Key,
    },
};

const NAME: &str = "apns";
/// Seconds after which the signed token is replaced.
const TOKEN_AGE: i64 = 50 * 60;
/// The largest payload that Apple accepts.
const MAX_PAYLOAD: usize = 4096;

/// The operator's settings.
#[derive(Clone)]
pub struct ApnsSettings {
    /// `https://api.push.apple.com`, or `https://api.sandbox.push.apple.com` for builds of developers.
    pub base_url: String,
    pub team_id: String,
    pub key_id: String,
    /// The text of the `.p8` file.
    pub private_key: SecretString,
    /// The bundle id of the app.
    pub topic: String,
    pub timeout: Duration,
}

/// Sends messages to iPhones.
pub struct Apns {
    client: Http2Client,
    settings: ApnsSettings,
    key: Es256Key,
    token: Mutex<Option<SignedToken>>,
    clock: WallClock,
}

#[derive(Clone)]
struct SignedToken {
    /// Seconds since 1970.
    issued_at: i64,
    authorization: String,
}

#[derive(Serialize)]
struct TokenHeader<'a> {
    alg: &'static str,
    kid: &'a str,
}

#[derive(Serialize)]
struct TokenClaims<'a> {
    iss: &'a str,
    iat: i64,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ApnsError {
    reason: String,
    /// In milliseconds since 1970.
    timestamp: Option<i64>,
}

impl Apns {
    /// Builds the sender.
    ///
    /// # Errors
    /// The fault of a setting, with its name.
    pub fn new(settings: ApnsSettings, clock: WallClock) -> Result<Self, String> {
        let key = Es256Key::parse(settings.private_key.expose_secret());
        let key = key.map_err(|fault| format!("private_key: {fault}"))?;
        let endpoint = BaseUrl::parse(NAME, &settings.base_url);
        let endpoint = endpoint.map_err(|_| "base_url: must be an https address without a query".to_owned())?;
        let client = Http2Client::new(NAME, "push.apns.base_url", endpoint, settings.timeout)
            .map_err(|failure| failure.to_string())?;
        Ok(Self { client, settings, key, token: Mutex::default(), clock })
    }

    fn authorization(&self) -> Result<String, Failure> {
        let now = (self.clock)() / 1000;
        let mut kept = lock_unpoisoned(&self.token);
        if let Some(token) = kept.as_ref().filter(|token| (0..TOKEN_AGE).contains(&(now - token.issued_at))) {
            return Ok(token.authorization.clone());
        }
        let header = TokenHeader { alg: "ES256", kid: &self.settings.key_id };
        let token = self.key.sign(&header, &TokenClaims { iss: &self.settings.team_id, iat: now });
        let token = token.map_err(|_| Failure::new(FailureKind::Misconfigured, NAME, "signing_failed"))?;
        let authorization = format!("bearer {token}");
        *kept = Some(SignedToken { issued_at: now, authorization: authorization.clone() });
        Ok(authorization)
    }

    fn request(&self, message: &PushMessage, authorization: &str) -> Http2Request {
        let headers = vec![
            ("authorization", authorization.to_owned()),
            ("content-type", "application/json".to_owned()),
            ("apns-topic", self.settings.topic.clone()),
            ("apns-push-type", "alert".to_owned()),
            ("apns-priority", if message.is_urgent { "10" } else { "5" }.to_owned()),
            ("apns-expiration", message.expires_at.to_string()),
            ("apns-collapse-id", message.collapse_key.to_owned()),
            ("apns-id", message.id.clone()),
        ];
        // A token is hexadecimal digits; others never reach this place.
        Http2Request { path: format!("/3/device/{}", message.token), headers, body: payload(message) }
    }
}

/// Returns the payload, with as much of the text as fits.
fn payload(message: &PushMessage) -> Vec<u8> {
    let with = |body: &str| {
        let json = json!({
            "aps": {
                "alert": { "title": message.title, "body": body },
                "badge": message.unread,
                "sound": "default",
                "thread-id": message.collapse_key,
            },
            "notificationId": message.notification_id,
            "kind": message.collapse_key,
        });
        json.to_string().into_bytes()
    };
    // JSON escapes some characters.
    let escaped_len = |text: &str| json!(text).to_string().len() - 2;
    with(&cut(&message.body, MAX_PAYLOAD.saturating_sub(with("").len()), escaped_len))
}

impl PushSender for Apns {
    fn service(&self) -> PushService {
        PushService::Apns
    }

    fn send_all(&self, messages: &[PushMessage]) -> Vec<Result<(), PushFault>> {
        let authorization = match self.authorization() {
            Ok(authorization) => authorization,
            Err(failure) => return messages.iter().map(|_| Err(failure.clone().into())).collect(),
        };
        let requests: Vec<_> = messages.iter().map(|message| self.request(message, &authorization)).collect();
        let outcomes: Vec<_> = self.client.send_all(&requests).into_iter().map(|answer| judge(&answer?)).collect();
        let is_expired = |fault: &PushFault| match fault {
            PushFault::Failed(failure) => failure.code == "ExpiredProviderToken",
            PushFault::DeadToken { .. } | PushFault::RefusedToken { .. } => false,
        };
        if outcomes.iter().any(|outcome| outcome.as_ref().is_err_and(is_expired)) {
            // The clock here or there was wrong. The next attempt signs a new one.
            *lock_unpoisoned(&self.token) = None;
        }
        outcomes
    }

    fn probe(&self) -> Result<(), Failure> {
        let authorization = self.authorization()?;
        // No phone has this token. Apple checks the credentials first.
        let message = PushMessage {
            token: "0".repeat(64),
            id: "00000000-0000-4000-8000-000000000000".to_owned(),
            title: String::new(),
            body: String::new(),
            collapse_key: "system",
            notification_id: "0".to_owned(),
            unread: 0,
            expires_at: 0,
            lifetime: 0,
            is_urgent: false,
        };
        let mut answers = self.client.send_all(&[self.request(&message, &authorization)]);
        let answer = answers.pop().unwrap_or_else(|| Err(Failure::new(FailureKind::InvalidResponse, NAME, "none")))?;
        match judge(&answer) {
            Ok(()) | Err(PushFault::DeadToken { .. } | PushFault::RefusedToken { .. }) => Ok(()),
            Err(PushFault::Failed(failure)) => Err(failure),
        }
    }
}

fn judge(answer: &Http2Response) -> Result<(), PushFault> {
    if answer.status == 200 {
        return Ok(());
    }
    let error: ApnsError = json::from_slice(&answer.body).unwrap_or_default();
    let kind = match (answer.status, error.reason.as_str()) {
        (410, _) => return Err(PushFault::DeadToken { since: error.timestamp }),
        (400, "BadDeviceToken") => return Err(PushFault::RefusedToken { reason: "BadDeviceToken" }),
        (400, "DeviceTokenNotForTopic") => return Err(PushFault::RefusedToken { reason: "DeviceTokenNotForTopic" }),
        (403, "ExpiredProviderToken") | (429 | 503, _) => FailureKind::Busy,
        (400, "BadTopic" | "MissingTopic" | "TopicDisallowed") | (403, _) => FailureKind::Misconfigured,
        (500.., _) => FailureKind::OutcomeUnknown,
        _ => FailureKind::Refused,
    };
    let code = clean_code(&error.reason).unwrap_or_else(|| format!("http_{}", answer.status));
    Err(Failure::new(kind, NAME, code).with_request_id(answer.header("apns-id")).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_to_the_largest_payload() {
        let message = PushMessage {
            token: "ab".to_owned(),
            id: String::new(),
            title: "标题".to_owned(),
            body: "\u{1}卦".repeat(2000),
            collapse_key: "activity",
            notification_id: "7".to_owned(),
            unread: 3,
            expires_at: 0,
            lifetime: 0,
            is_urgent: true,
        };
        let payload = payload(&message);
        assert!((MAX_PAYLOAD - 9..=MAX_PAYLOAD).contains(&payload.len()), "{}", payload.len());
        let json: serde_json::Value = serde_json::from_slice(&payload).unwrap();
        assert_eq!((&json["aps"]["badge"], &json["notificationId"]), (&json!(3), &json!("7")));
        let body = json["aps"]["alert"]["body"].as_str().unwrap();
        assert!(body.starts_with("\u{1}卦") && body.ends_with('…'), "{body}");
    }
}
