//! Maps the statuses and error codes of OpenAI-compatible servers to failures.
//!
//! Only statuses and codes count. The provider's text is never read, because it changes with the language and may
//! repeat the user's words.

use serde_json::Value;

use super::OPENAI;
use crate::providers::{Failure, FailureKind, clean_code};

/// Codes of an empty account or a spent budget, which have the same statuses as throttling. Plain numbers are those of
/// `Zhipu`, numbers with a prefix those of `MiniMax`.
const UNPAID: [&str; 14] = [
    "insufficient_quota",
    "insufficient_balance",
    "credit_balance_exhausted",
    "billing_hard_limit_reached",
    "billing_not_active",
    "billing_error",
    "account_deactivated",
    "access_terminated",
    "arrearage",
    "exceeded_current_quota_error",
    "insufficient_user_quota",
    "payment_required",
    "1113",
    "base_resp_1008",
];

/// Codes of rejected content.
const CONTENT: [&str; 10] = [
    "data_inspection_failed",
    "datainspectionfailed",
    "content_filter",
    "content_policy_violation",
    "responsibleaipolicyviolation",
    "moderation_blocked",
    "sensitive",
    "1301",
    "base_resp_1026",
    "base_resp_1027",
];

/// Codes of a wrong key, model or path, whatever the status.
const MISCONFIGURED: [&str; 20] = [
    "invalid_api_key",
    "invalidapikey",
    "model_not_found",
    "modelnotfound",
    "not_found_error",
    "access_denied",
    "authentication_error",
    "invalid_authentication_error",
    "incorrect_api_key",
    "incorrect_api_key_error",
    "permission_denied_error",
    "resource_not_found_error",
    "api_key_invalid",
    "1000",
    "1001",
    "1002",
    "1003",
    "1004",
    "base_resp_1004",
    "base_resp_2049",
];

/// Codes of an overloaded server.
const BUSY: [&str; 14] = [
    "rate_limit_exceeded",
    "slow_down",
    "limit_requests",
    "server_is_overloaded",
    "overloaded_error",
    "server_error",
    "internal_server_error",
    "engine_overloaded_error",
    "rate_limit_reached_error",
    "rate_limit_error",
    "service_unavailable",
    "1302",
    "1303",
    "1305",
];

/// Codes of an invalid request. They count only without a status: with one, some providers use them for an empty
/// account.
const REFUSED: [&str; 4] =
    ["invalid_request_error", "context_length_exceeded", "string_above_max_length", "badrequesterror"];

/// Maps a response with an error status to a failure.
pub(super) fn of_status(status: u16, body: &[u8], request_id: Option<&str>) -> Failure {
    let document: Value = serde_json::from_slice(body).unwrap_or_default();
    let codes = codes_of(&document);
    let code = codes.first().and_then(|code| clean_code(code));
    let (kind, code) = match (kind_of_codes(&codes), code) {
        (Some(kind), Some(code)) => (kind, code),
        // Without a known code the status decides. The code alone may mislead: an empty account is reported as
        // `invalid_request_error`.
        (_, Some(code)) => (kind_of_status(status), format!("http_{status}:{code}")),
        // A firewall in front of the server rejects some texts with an HTML page.
        (_, None) if status == 403 && body.trim_ascii_start().starts_with(b"<") => {
            (FailureKind::Refused, "http_403".to_owned())
        }
        (_, None) => (kind_of_status(status), format!("http_{status}")),
    };
    let in_body = document["request_id"].as_str().or_else(|| document["id"].as_str());
    Failure::new(kind, OPENAI, code).with_request_id(request_id.or(in_body))
}

/// Maps the `error` member of a response that began as a success.
pub(super) fn in_response(error: &Value) -> Failure {
    let codes = codes_in(error);
    let kind = kind_of_codes(&codes).unwrap_or_else(|| match numeric_status(error) {
        Some(status) => kind_of_status(status),
        None if has_any(&codes, &REFUSED) => FailureKind::Refused,
        None => FailureKind::Busy,
    });
    let code = codes.first().and_then(|code| clean_code(code)).unwrap_or_else(|| "error_in_answer".to_owned());
    Failure::new(kind, OPENAI, code)
}

fn kind_of_status(status: u16) -> FailureKind {
    match status {
        400 | 413 | 422 => FailureKind::Refused,
        451 => FailureKind::ContentRefused,
        // 501 and 505 come from something that is no such server.
        408 | 409 | 425 | 429 | 500 | 502..=504 | 506.. => FailureKind::Busy,
        // Key, rights, balance, model or path. A redirect means that another server responds than the configured one.
        _ => FailureKind::Misconfigured,
    }
}

fn kind_of_codes(codes: &[String]) -> Option<FailureKind> {
    let any_of = |list: &[&str]| has_any(codes, list);
    if any_of(&CONTENT) {
        Some(FailureKind::ContentRefused)
    } else if any_of(&UNPAID) || any_of(&MISCONFIGURED) {
        Some(FailureKind::Misconfigured)
    } else if any_of(&BUSY) || codes.iter().any(|code| code.to_ascii_lowercase().starts_with("throttling")) {
        Some(FailureKind::Busy)
    } else {
        None
    }
}

/// Returns true if one of the codes is listed, ignoring case.
fn has_any(codes: &[String], list: &[&str]) -> bool {
    codes.iter().any(|code| list.contains(&code.to_ascii_lowercase().as_str()))
}

/// Returns the codes of an error document, most specific first. Most servers wrap them in `error`.
fn codes_of(document: &Value) -> Vec<String> {
    // Some servers send a list with one element.
    let document = document.get(0).unwrap_or(document);
    match &document["error"] {
        error @ Value::Object(_) => codes_in(error),
        _ => codes_in(document),
    }
}

fn codes_in(error: &Value) -> Vec<String> {
    let members = ["code", "type"].into_iter().filter_map(|name| match &error[name] {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        _ => None,
    });
    let inner = error["innererror"]["code"].as_str().map(str::to_owned);
    let details = error["details"].as_array().into_iter().flatten();
    let reasons = details.filter_map(|detail| detail["reason"].as_str().map(str::to_owned));
    // `OpenRouter` rejects content with the status of missing rights.
    let flagged = error["metadata"]["flagged_input"].is_string().then(|| "moderation_blocked".to_owned());
    flagged.into_iter().chain(members).chain(inner).chain(reasons).collect()
}

fn numeric_status(error: &Value) -> Option<u16> {
    let number = error["code"].as_u64().or_else(|| error["status"].as_u64())?;
    u16::try_from(number).ok().filter(|status| (400..600).contains(status))
}

#[cfg(test)]
mod tests {
    use super::*;

    const VECTORS: &str = include_str!("../../../tests/vectors/llm.json");

    #[test]
    fn maps_every_recorded_error() {
        let vectors: Value = serde_json::from_str(VECTORS).unwrap();
        let errors = vectors["errors"].as_object().unwrap();
        assert_eq!(errors.len(), 6);
        for (name, error) in errors {
            let status = u16::try_from(error["status"].as_u64().unwrap()).unwrap();
            let request_id = error["headers"]["x-request-id"].as_str();
            let failure = of_status(status, error["body"].as_str().unwrap().as_bytes(), request_id);
            let expected = match error["expect"].as_str().unwrap() {
                "retry_after_7s" | "retry" => FailureKind::Busy,
                "do_not_retry_alert" | "configuration_error" => FailureKind::Misconfigured,
                "content_rejected" => FailureKind::ContentRefused,
                other => panic!("{name}: an expectation without a meaning: {other}"),
            };
            assert_eq!(failure.kind, expected, "{name}");
            if let Some(request_id) = request_id {
                assert_eq!(failure.request_id.as_deref(), Some(request_id), "{name}");
            }
        }
    }

    #[test]
    fn maps_statuses_and_codes() {
        let cases: [(u16, &str, FailureKind, &str); 21] = [
            (
                400,
                r#"[{"error":{"code":400,"status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}]"#,
                FailureKind::Misconfigured,
                "API_KEY_INVALID",
            ),
            (
                403,
                r#"{"error":{"code":403,"metadata":{"reasons":["violence"],"flagged_input":"x"}}}"#,
                FailureKind::ContentRefused,
                "moderation_blocked",
            ),
            (429, r#"{"error":{"code":"1113","message":"m"}}"#, FailureKind::Misconfigured, "1113"),
            (400, r#"{"error":{"code":"1301","message":"m"}}"#, FailureKind::ContentRefused, "1301"),
            (
                400,
                r#"{"error":{"code":"context_length_exceeded"}}"#,
                FailureKind::Refused,
                "http_400:context_length_exceeded",
            ),
            (400, r#"{"error":{"code":"Arrearage"}}"#, FailureKind::Misconfigured, "Arrearage"),
            (400, r#"{"error":{"code":"DataInspectionFailed"}}"#, FailureKind::ContentRefused, "DataInspectionFailed"),
            (401, r#"{"code":"InvalidApiKey","message":"m"}"#, FailureKind::Misconfigured, "InvalidApiKey"),
            (402, "", FailureKind::Misconfigured, "http_402"),
            (403, r#"{"error":{"type":"permission_error"}}"#, FailureKind::Misconfigured, "http_403:permission_error"),
            (403, "<html>blocked</html>", FailureKind::Refused, "http_403"),
            (404, r#"{"error":"model 'x' not found"}"#, FailureKind::Misconfigured, "http_404"),
            (408, "", FailureKind::Busy, "http_408"),
            (409, "", FailureKind::Busy, "http_409"),
            (413, "", FailureKind::Refused, "http_413"),
            (
                422,
                r#"{"error":{"type":"invalid_request_error","code":null}}"#,
                FailureKind::Refused,
                "http_422:invalid_request_error",
            ),
            (429, r#"{"error":{"code":"Throttling.RateQuota"}}"#, FailureKind::Busy, "Throttling.RateQuota"),
            (
                429,
                r#"{"error":{"type":"insufficient_quota","code":429}}"#,
                FailureKind::Misconfigured,
                "insufficient_quota",
            ),
            (503, r#"{"error":{"code":"server_is_overloaded"}}"#, FailureKind::Busy, "server_is_overloaded"),
            (307, "", FailureKind::Misconfigured, "http_307"),
            (500, "[1,2]", FailureKind::Busy, "http_500"),
        ];
        for (status, body, kind, code) in cases {
            let failure = of_status(status, body.as_bytes(), None);
            assert_eq!((failure.kind, failure.code.as_str()), (kind, code), "{status} {body}");
        }
    }

    #[test]
    fn reads_the_status_of_an_error_in_a_response() {
        let verdict = |text: &str| in_response(&serde_json::from_str(text).unwrap()).kind;
        assert_eq!(verdict(r#"{"message":"m","code":400}"#), FailureKind::Refused);
        assert_eq!(verdict(r#"{"message":"m","type":"server_error"}"#), FailureKind::Busy);
        let too_long = r#"{"type":"invalid_request_error","code":"context_length_exceeded"}"#;
        assert_eq!(verdict(too_long), FailureKind::Refused);
        assert_eq!(verdict(r#""just text""#), FailureKind::Busy);
        assert_eq!(verdict(r#"{"code":"data_inspection_failed"}"#), FailureKind::ContentRefused);
    }

    #[test]
    fn does_not_pass_on_the_providers_text() {
        let body = r#"{"error":{"message":"my secret question","type":"invalid_request_error"}}"#;
        let failure = of_status(400, body.as_bytes(), None);
        assert!(!format!("{failure} {failure:?}").contains("secret"));
    }
}
