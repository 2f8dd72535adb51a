//! Firebase Cloud Messaging, version 1 of its HTTP API.

use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{PushFault, PushMessage, PushSender, PushService, cut, send_in_parallel};
use crate::providers::json;
use crate::providers::retry_after::retry_after;
use crate::providers::{
    Failure, FailureKind, WallClock, clean_code,
    client::{BaseUrl, Client, Limits},
    google_account::GoogleAccount,
    percent,
};

const NAME: &str = "fcm";
const SCOPE: &str = "https://www.googleapis.com/auth/firebase.messaging";
const CONNECT: Duration = Duration::from_secs(3);
/// The largest text that fits into a message of 4 KB beside its other members.
const MAX_TEXT: usize = 2048;

/// The operator's settings.
#[derive(Clone)]
pub struct FcmSettings {
    /// `https://fcm.googleapis.com`.
    pub base_url: String,
    /// The text of the service account's key file.
    pub service_account: SecretString,
    /// The token endpoint in place of the one in the key file, for tests.
    pub token_url: Option<String>,
    pub timeout: Duration,
}

/// Sends messages to Android phones.
pub struct Fcm {
    client: Client,
    account: GoogleAccount,
    url: String,
    clock: WallClock,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct FcmErrorBody {
    error: FcmError,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct FcmError {
    status: String,
    message: String,
    details: Vec<FcmErrorDetail>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct FcmErrorDetail {
    error_code: String,
    field_violations: Vec<FcmFieldViolation>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct FcmFieldViolation {
    field: String,
}

impl Fcm {
    /// Builds the sender.
    ///
    /// # Errors
    /// The fault of a setting, with its name.
    pub fn new(settings: &FcmSettings, clock: WallClock) -> Result<Self, String> {
        let key_file = settings.service_account.expose_secret();
        let account = GoogleAccount::parse(NAME, SCOPE, key_file, settings.token_url.as_deref());
        let account = account.map_err(|fault| format!("service_account: {fault}"))?;
        let project = account.project_id.as_deref().ok_or("service_account: names no project")?;
        let base = BaseUrl::parse(NAME, &settings.base_url);
        let base = base.map_err(|_| "base_url: must be an https address without a query".to_owned())?;
        let url = format!("{}/v1/projects/{}/messages:send", base.base(), percent::encode(project));
        let client = Client::new(NAME, "push.fcm.base_url", Limits::for_whole_calls(CONNECT, settings.timeout, true));
        Ok(Self { client, account, url, clock })
    }

    fn send(&self, message: &PushMessage) -> Result<(), PushFault> {
        let body = json!({ "message": content(message) }).to_string();
        match self.post(&body) {
            // The token was revoked before it expired.
            Err(PushFault::Failed(failure)) if failure.code == "UNAUTHENTICATED" => {
                self.account.forget_token();
                self.post(&body)
            }
            outcome => outcome,
        }
    }

    fn post(&self, body: &str) -> Result<(), PushFault> {
        let token = self.account.access_token(&self.client, (self.clock)())?;
        let authorization = format!("Bearer {}", token.expose_secret());
        let headers = [("content-type", "application/json"), ("authorization", authorization.as_str())];
        let answer = self.client.send("POST", &self.url, &headers, body.as_bytes())?;
        let status = answer.status;
        if status == 200 {
            return Ok(());
        }
        let retry_after = retry_after(|name| answer.header(name));
        judge(status, &answer.read_error(), retry_after)
    }
}

fn content(message: &PushMessage) -> Value {
    let text = cut(&message.body, MAX_TEXT, str::len);
    json!({
        "token": message.token,
        "notification": { "title": message.title, "body": text },
        "data": { "notificationId": message.notification_id, "kind": message.collapse_key },
        "android": {
            "collapse_key": message.collapse_key,
            "ttl": format!("{}s", message.lifetime),
            "priority": if message.is_urgent { "HIGH" } else { "NORMAL" },
            "notification": { "tag": message.collapse_key },
        },
    })
}

fn judge(status: u16, body: &[u8], retry_after: Option<Duration>) -> Result<(), PushFault> {
    let FcmErrorBody { error } = json::from_slice(body).unwrap_or_default();
    let code = error.details.iter().map(|detail| detail.error_code.as_str()).find(|code| !code.is_empty());
    // Some answers name no field.
    let names_token = error.message.contains("registration token")
        || error.details.iter().flat_map(|detail| &detail.field_violations).any(|fault| fault.field == "message.token");
    let kind = match (status, code.unwrap_or(&error.status)) {
        (404, "UNREGISTERED") => return Err(PushFault::DeadToken { since: None }),
        (403, "SENDER_ID_MISMATCH") => return Err(PushFault::RefusedToken { reason: "SENDER_ID_MISMATCH" }),
        (400, _) if names_token => return Err(PushFault::RefusedToken { reason: "INVALID_ARGUMENT" }),
        (429 | 503, _) => FailureKind::Busy,
        (401 | 403 | 404, _) => FailureKind::Misconfigured,
        (500.., _) => FailureKind::OutcomeUnknown,
        _ => FailureKind::Refused,
    };
    let code = code.and_then(clean_code).or_else(|| clean_code(&error.status));
    let failure = Failure::new(kind, NAME, code.unwrap_or_else(|| format!("http_{status}")));
    Err(failure.with_retry_after(retry_after).into())
}

impl PushSender for Fcm {
    fn service(&self) -> PushService {
        PushService::Fcm
    }

    fn send_all(&self, messages: &[PushMessage]) -> Vec<Result<(), PushFault>> {
        send_in_parallel(messages, |message| self.send(message))
    }

    fn probe(&self) -> Result<(), Failure> {
        // Nobody has this token, and nothing is sent.
        let body = json!({ "validate_only": true, "message": { "token": "none" } }).to_string();
        match self.post(&body) {
            Ok(()) | Err(PushFault::DeadToken { .. } | PushFault::RefusedToken { .. }) => Ok(()),
            Err(PushFault::Failed(failure)) if failure.kind == FailureKind::Refused => Ok(()),
            Err(PushFault::Failed(failure)) => Err(failure),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_dead_tokens_from_other_errors() {
        let dead = Err(PushFault::DeadToken { since: None });
        let unregistered = br#"{"error":{"code":404,"message":"Requested entity was not found.","status":"NOT_FOUND",
            "details":[{"@type":"type.googleapis.com/google.firebase.fcm.v1.FcmError","errorCode":"UNREGISTERED"}]}}"#;
        assert_eq!(judge(404, unregistered, None), dead);
        let invalid = br#"{"error":{"code":400,"status":"INVALID_ARGUMENT","details":[
            {"@type":"type.googleapis.com/google.firebase.fcm.v1.FcmError","errorCode":"INVALID_ARGUMENT"},
            {"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":"message.token"}]}]}}"#;
        let refused = Err(PushFault::RefusedToken { reason: "INVALID_ARGUMENT" });
        assert_eq!(judge(400, invalid, None), refused);
        let without_field =
            br#"{"error":{"code":400,"message":"The registration token is not a valid FCM registration token",
            "status":"INVALID_ARGUMENT","details":[
            {"@type":"type.googleapis.com/google.firebase.fcm.v1.FcmError","errorCode":"INVALID_ARGUMENT"}]}}"#;
        assert_eq!(judge(400, without_field, None), refused);
        let kind = |status, body: &[u8]| match judge(status, body, None).unwrap_err() {
            PushFault::Failed(failure) => failure.kind,
            fault => panic!("{fault:?}"),
        };
        // A wrong project is no dead token.
        assert_eq!(kind(404, br#"{"error":{"status":"NOT_FOUND"}}"#), FailureKind::Misconfigured);
        assert_eq!(kind(400, br#"{"error":{"status":"INVALID_ARGUMENT"}}"#), FailureKind::Refused);
        assert_eq!(kind(429, b""), FailureKind::Busy);
        assert_eq!(kind(401, br#"{"error":{"status":"UNAUTHENTICATED"}}"#), FailureKind::Misconfigured);
        assert_eq!(kind(500, b"<html>"), FailureKind::OutcomeUnknown);
    }
}
