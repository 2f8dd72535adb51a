//! Requests that the operator describes: method, URL, headers and body with variables, and what counts as accepted.
//!
//! A variable is written `{name}`. Its value is escaped for the place: percent-encoded in the URL and in forms, as JSON
//! text in JSON. The surprise: many gateways answer errors with status 200, so the status alone proves nothing if a
//! member of the answer is configured.

use std::{collections::BTreeMap, time::Duration};

use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::{
    Failure, FailureKind, MessageReceipt, ProviderWords, clean_code,
    client::{BaseUrl, Client, Limits},
    percent,
};
use crate::types::without_byte_order_mark;

const CONNECT: Duration = Duration::from_secs(3);
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

/// The operator's description of a request. `Debug` would show keys, so there is none.
#[derive(Clone)]
pub struct HttpTemplateSettings {
    pub method: String,
    pub url: String,
    pub headers: BTreeMap<String, SecretString>,
    pub body: String,
    /// A JSON pointer into the answer, such as `/code`. Without one, the whole answer is compared.
    pub accepted_member: String,
    /// The values that mean accepted. Without any, each status from 200 to 299 is accepted.
    pub accepted_values: Vec<String>,
    /// A JSON pointer to the provider's id of the message.
    pub id_member: String,
    pub timeout: Duration,
}

/// Sends the described request.
pub(super) struct HttpTemplate {
    provider: &'static str,
    settings: HttpTemplateSettings,
    client: Client,
}

/// The place of a variable, which decides how its value is escaped.
#[derive(Clone, Copy)]
enum Escaping {
    Percent,
    Json,
    None,
}

impl HttpTemplate {
    pub(super) fn new(provider: &'static str, setting: &'static str, settings: HttpTemplateSettings) -> Self {
        // A reused connection may turn out dead only after the message was written to it.
        let client = Client::new(provider, setting, Limits::for_whole_calls(CONNECT, settings.timeout, false));
        Self { provider, settings, client }
    }

    /// Sends the request with these variables. Blocks.
    pub(super) fn send(&self, variables: &[(&str, &str)]) -> Result<MessageReceipt, Failure> {
        let url = fill(&self.settings.url, variables, Escaping::Percent);
        let headers: Vec<(String, String)> = self
            .settings
            .headers
            .iter()
            .map(|(name, value)| (name.to_ascii_lowercase(), fill(value.expose_secret(), variables, Escaping::None)))
            .collect();
        if headers.iter().any(|(_, value)| value.chars().any(char::is_control)) {
            return Err(Failure::new(FailureKind::Refused, self.provider, "header"));
        }
        let body = fill(&self.settings.body, variables, self.body_escaping());
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let response = self.client.send(&self.settings.method, &url, &headers, body.as_bytes())?;
        let status = response.status;
        let read = if (200..300).contains(&status) {
            // The provider has the request. If its answer is lost, the message may be on its way.
            response.read_all(MAX_RESPONSE_BYTES).map_err(Failure::with_unknown_outcome)?
        } else {
            response.read_error()
        };
        self.judge(status, &read)
    }

    /// Checks that the host answers. Sends nothing of the description but its host.
    pub(super) fn probe(&self) -> Result<(), Failure> {
        let base = self.settings.url.split(['?', '#', '{']).next().unwrap_or_default();
        let origin = BaseUrl::parse(self.provider, base)?.origin();
        self.client.send("GET", &origin, &[], b"").map(drop)
    }

    fn body_escaping(&self) -> Escaping {
        let mut types = self.settings.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        match types.next() {
            Some((_, value)) if value.expose_secret().contains("json") => Escaping::Json,
            Some((_, value)) if value.expose_secret().contains("urlencoded") => Escaping::Percent,
            None if self.settings.body.trim_start().starts_with(['{', '[']) => Escaping::Json,
            _ => Escaping::None,
        }
    }

    fn judge(&self, status: u16, body: &[u8]) -> Result<MessageReceipt, Failure> {
        // Some gateways answer in other encodings than UTF-8. The members that decide are ASCII.
        let text = String::from_utf8_lossy(body);
        let answer: Option<Value> = serde_json::from_str(without_byte_order_mark(&text).trim()).ok();
        let member = |pointer: &str| answer.as_ref().and_then(|answer| answer.pointer(pointer)).and_then(plain);
        let words = ProviderWords::new(&text);
        let fail = |kind, code: String| Failure::new(kind, self.provider, code).with_words(words.clone());
        if !(200..300).contains(&status) {
            let kind = match status {
                429 | 503 => FailureKind::Busy,
                500.. => FailureKind::OutcomeUnknown,
                400 | 405..=499 => FailureKind::Refused,
                // Key, right or path is wrong, or the provider moved.
                _ => FailureKind::Misconfigured,
            };
            return Err(fail(kind, format!("http_{status}")));
        }
        let accepted = &self.settings.accepted_values;
        if self.settings.accepted_member.is_empty() {
            let answer = without_byte_order_mark(&text).trim();
            if answer.is_empty() && !accepted.is_empty() {
                return Err(fail(FailureKind::OutcomeUnknown, "answer_not_understood".to_owned()));
            }
            if !accepted.is_empty() && !accepted.iter().any(|value| starts_with_word(answer, value)) {
                let code = clean_code(answer).unwrap_or_else(|| "refused".to_owned());
                return Err(fail(FailureKind::Refused, code));
            }
        } else {
            match member(&self.settings.accepted_member) {
                Some(value) if accepted.contains(&value) => {}
                Some(value) => {
                    let code = clean_code(&value).unwrap_or_else(|| "refused".to_owned());
                    return Err(fail(FailureKind::Refused, code));
                }
                // Accepted or not, nobody can tell.
                None => return Err(fail(FailureKind::OutcomeUnknown, "answer_not_understood".to_owned())),
            }
        }
        let provider_id = member(&self.settings.id_member).filter(|_| !self.settings.id_member.is_empty());
        Ok(MessageReceipt {
            provider_id: provider_id.as_deref().and_then(clean_code),
            words,
            ..MessageReceipt::default()
        })
    }
}

/// Returns true for `0,17` and `0`, but not for `01`, if the word is `0`.
fn starts_with_word(answer: &str, word: &str) -> bool {
    answer.strip_prefix(word).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
}

/// Returns a member of an answer as text.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}

/// Replaces the variables in one pass, so that a value is never searched for variables.
fn fill(template: &str, variables: &[(&str, &str)], escaping: Escaping) -> String {
    let mut filled = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(start) = rest.find('{') {
        filled.push_str(&rest[..start]);
        rest = &rest[start..];
        let found = variables.iter().find_map(|(name, value)| {
            let after = rest.strip_prefix('{')?.strip_prefix(name)?.strip_prefix('}')?;
            Some((*value, after))
        });
        let Some((value, after)) = found else {
            filled.push('{');
            rest = &rest[1..];
            continue;
        };
        match escaping {
            Escaping::Percent => filled.push_str(&percent::encode(value)),
            Escaping::Json => {
                let quoted = Value::from(value).to_string();
                filled.push_str(&quoted[1..quoted.len() - 1]);
            }
            Escaping::None => filled.push_str(value),
        }
        rest = after;
    }
    filled.push_str(rest);
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    const VARIABLES: &[(&str, &str)] = &[("phone", "+8613800138000"), ("text", "a \"{phone}\"\n&ü")];

    #[test]
    fn values_are_escaped_for_their_place_and_replaced_once() {
        assert_eq!(fill("/s?to={phone}&x={other}", VARIABLES, Escaping::Percent), "/s?to=%2B8613800138000&x={other}");
        let json = fill(r#"{"to":"{phone}","text":"{text}"}"#, VARIABLES, Escaping::Json);
        let value: Value = serde_json::from_str(&json).unwrap();
        assert_eq!((&value["to"], &value["text"]), (&"+8613800138000".into(), &"a \"{phone}\"\n&ü".into()));
    }

    fn template(member: &str, values: &[&str]) -> HttpTemplate {
        let settings = HttpTemplateSettings {
            method: "POST".to_owned(),
            url: "http://127.0.0.1:1/".to_owned(),
            headers: BTreeMap::new(),
            body: String::new(),
            accepted_member: member.to_owned(),
            accepted_values: values.iter().map(|value| (*value).to_owned()).collect(),
            id_member: "/data/id".to_owned(),
            timeout: Duration::from_secs(1),
        };
        HttpTemplate::new("http", "sms.http.url", settings)
    }

    #[test]
    fn a_member_decides_whatever_the_status_says() {
        let template = template("/code", &["0", "OK"]);
        let kind = |status, body: &[u8]| template.judge(status, body).map_err(|failure| failure.kind);
        let sent = kind(200, br#"{"code":0,"data":{"id":17}}"#).unwrap();
        assert_eq!(sent.provider_id.as_deref(), Some("17"));
        assert!(kind(200, b"\xef\xbb\xbf{\"code\":\"OK\"}").is_ok());
        // A text in GBK beside the member.
        assert!(kind(200, b"{\"code\":0,\"msg\":\"\xb3\xc9\xb9\xa6\"}").is_ok());
        assert_eq!(kind(200, br#"{"code":4010}"#), Err(FailureKind::Refused));
        assert_eq!(kind(200, b"<html>"), Err(FailureKind::OutcomeUnknown));
        assert_eq!(kind(401, br#"{"code":0}"#), Err(FailureKind::Misconfigured));
        assert_eq!(kind(429, b""), Err(FailureKind::Busy));
        assert_eq!(kind(502, b""), Err(FailureKind::OutcomeUnknown));
    }

    #[test]
    fn a_plain_text_decides_by_its_first_word() {
        let template = template("", &["0", "OK"]);
        let kind = |body: &[u8]| template.judge(200, body).map(drop).map_err(|failure| failure.kind);
        for accepted in [b"0".as_slice(), b"OK\r\n", b"0,20260115083000", b"OK:17"] {
            assert_eq!(kind(accepted), Ok(()));
        }
        assert_eq!(kind(b"01"), Err(FailureKind::Refused));
        assert_eq!(kind(b"-40, \xd3\xe0"), Err(FailureKind::Refused));
        assert_eq!(kind(b""), Err(FailureKind::OutcomeUnknown));
    }

    #[test]
    fn without_a_member_the_status_decides() {
        let template = template("", &[]);
        assert!(template.judge(202, b"").is_ok());
        assert!(template.judge(400, b"").is_err());
    }
}
