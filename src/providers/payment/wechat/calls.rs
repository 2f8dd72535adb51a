//! The provider's operations and the meaning of its errors.
//!
//! Error codes occur with and without underscores, so they are compared without.

use serde::{Deserialize, Serialize};

use super::PROVIDER;
use crate::providers::json;
use crate::providers::{Failure, FailureKind, clean_code};

/// A request to the provider.
#[derive(Debug, Clone)]
pub(super) struct WeChatCall {
    pub(super) method: &'static str,
    /// The path with the query, as sent.
    pub(super) path: String,
    pub(super) body: String,
    /// True if the call changes something at the provider, so that a lost answer leaves the outcome unknown.
    pub(super) changes: bool,
}

#[derive(Serialize)]
pub(super) struct CloseContent<'a> {
    pub(super) mchid: &'a str,
}

#[derive(Serialize)]
pub(super) struct RefundContent<'a> {
    pub(super) out_trade_no: &'a str,
    pub(super) out_refund_no: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) reason: &'a str,
    pub(super) notify_url: &'a str,
    pub(super) amount: RefundAmount,
}

#[derive(Serialize)]
pub(super) struct RefundAmount {
    pub(super) refund: i64,
    pub(super) total: i64,
    pub(super) currency: &'static str,
}

/// An answer with an error status.
#[derive(Debug)]
pub(super) struct WeChatError {
    pub(super) status: u16,
    /// Upper case, without underscores.
    code: String,
    /// The code as sent.
    shown: Option<String>,
    /// True if the provider signed it. Anything else may come from a proxy and decides nothing about money.
    pub(super) is_proven: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ErrorBody {
    code: String,
}

impl WeChatCall {
    pub(super) fn get(path: String) -> Self {
        Self { method: "GET", path, body: String::new(), changes: false }
    }

    pub(super) fn post(path: String, content: &impl Serialize, changes: bool) -> Result<Self, Failure> {
        let body = serde_json::to_string(content);
        let body = body.map_err(|_| Failure::new(FailureKind::Misconfigured, PROVIDER, "content_not_serializable"))?;
        Ok(Self { method: "POST", path, body, changes })
    }

    /// Maps a failed call that may have changed something to an unknown outcome.
    pub(super) fn with_unknown_outcome(&self, failure: Failure) -> Failure {
        if self.changes { failure.with_unknown_outcome() } else { failure }
    }
}

impl WeChatError {
    pub(super) fn new(status: u16, body: &[u8], is_proven: bool) -> Self {
        let body: ErrorBody = json::from_slice(body).unwrap_or_default();
        let code = body.code.replace('_', "").to_ascii_uppercase();
        Self { status, code, shown: clean_code(&body.code), is_proven }
    }

    /// Returns true if the code is this one, which is written without underscores.
    pub(super) fn is(&self, code: &str) -> bool {
        self.code == code
    }

    pub(super) fn failure(&self) -> Failure {
        let kind = match (self.code.as_str(), self.status) {
            ("FREQUENCYLIMITED" | "FREQUENCYLIMIT" | "RATELIMITEXCEEDED", _) | (_, 429) => FailureKind::Busy,
            ("SYSTEMERROR" | "BANKERROR", _) | (_, 500..) => FailureKind::OutcomeUnknown,
            ("SIGNERROR" | "NOAUTH" | "APPIDMCHIDNOTMATCH" | "MCHNOTEXISTS", _) | (_, 401) => {
                FailureKind::Misconfigured
            }
            ("", _) => FailureKind::InvalidResponse,
            _ => FailureKind::Refused,
        };
        let code = self.shown.clone().unwrap_or_else(|| format!("http_{}", self.status));
        Failure::new(kind, PROVIDER, code)
    }

    /// Returns the failure of a call that moves money or closes a trade: without proof its outcome is unknown.
    pub(super) fn failure_of_change(&self) -> Failure {
        let failure = self.failure();
        let kind = if self.is_proven { failure.kind } else { FailureKind::OutcomeUnknown };
        Failure { kind, ..failure }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(status: u16, code: &str) -> WeChatError {
        WeChatError::new(status, format!(r#"{{"code":"{code}","message":"…"}}"#).as_bytes(), true)
    }

    #[test]
    fn both_spellings_of_a_code_are_one() {
        for (first, second, status) in [
            ("ORDER_NOT_EXIST", "ORDERNOTEXIST", 404),
            ("SYSTEM_ERROR", "SYSTEMERROR", 500),
            ("NO_AUTH", "NOAUTH", 403),
            ("NOT_ENOUGH", "NOTENOUGH", 403),
            ("ORDER_PAID", "ORDERPAID", 400),
            ("FREQUENCY_LIMITED", "FREQUENCYLIMITED", 429),
        ] {
            let (first, second) = (error(status, first), error(status, second));
            assert!(first.is(&second.code), "{second:?}");
            assert_eq!(first.failure().kind, second.failure().kind, "{second:?}");
        }
    }

    #[test]
    fn maps_errors_to_kinds() {
        for (status, code, kind) in [
            (400, "PARAM_ERROR", FailureKind::Refused),
            (400, "APPID_MCHID_NOT_MATCH", FailureKind::Misconfigured),
            (401, "SIGN_ERROR", FailureKind::Misconfigured),
            (403, "NO_AUTH", FailureKind::Misconfigured),
            (403, "NOT_ENOUGH", FailureKind::Refused),
            (403, "RULE_LIMIT", FailureKind::Refused),
            (403, "OUT_TRADE_NO_USED", FailureKind::Refused),
            (404, "RESOURCE_NOT_EXISTS", FailureKind::Refused),
            (400, "FREQUENCY_LIMIT", FailureKind::Busy),
            (429, "RATELIMIT_EXCEEDED", FailureKind::Busy),
            (429, "", FailureKind::Busy),
            (500, "SYSTEM_ERROR", FailureKind::OutcomeUnknown),
            (500, "BANK_ERROR", FailureKind::OutcomeUnknown),
            (502, "", FailureKind::OutcomeUnknown),
            (404, "", FailureKind::InvalidResponse),
        ] {
            assert_eq!(error(status, code).failure().kind, kind, "{status} {code}");
        }
        assert_eq!(WeChatError::new(503, b"<html>", false).failure().code, "http_503");
        assert_eq!(error(403, "NOT_ENOUGH").failure().code, "NOT_ENOUGH");
    }

    #[test]
    fn an_unproven_error_leaves_a_change_unknown() {
        let unproven = WeChatError { is_proven: false, ..error(403, "NOT_ENOUGH") };
        assert_eq!(unproven.failure_of_change().kind, FailureKind::OutcomeUnknown);
        assert_eq!(error(403, "NOT_ENOUGH").failure_of_change().kind, FailureKind::Refused);
    }
}
