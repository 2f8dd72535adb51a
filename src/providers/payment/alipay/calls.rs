//! The gateway's operations: names, contents, signed requests, and the meaning of refusals.
//!
//! Every call is a POST with the common parameters in the query and `biz_content` in the form body; the signature
//! covers both. The status is 200 even for errors, so only `code` and `sub_code` decide.

use serde::Serialize;

use super::answer::AlipayResponse;
use crate::providers::payment::form;
use crate::providers::payment::order_string::Merchant;
use crate::providers::{Failure, FailureKind, clean_code};

/// An operation of the gateway.
#[derive(Debug, Clone, Copy)]
pub(super) struct AlipayOperation {
    method: &'static str,
    /// True if the call changes something at the provider, so that a lost response leaves the outcome unknown.
    changes: bool,
}

pub(super) const QUERY: AlipayOperation = AlipayOperation { method: "alipay.trade.query", changes: false };
pub(super) const CLOSE: AlipayOperation = AlipayOperation { method: "alipay.trade.close", changes: true };
pub(super) const REFUND: AlipayOperation = AlipayOperation { method: "alipay.trade.refund", changes: true };
pub(super) const QUERY_REFUND: AlipayOperation =
    AlipayOperation { method: "alipay.trade.fastpay.refund.query", changes: false };

pub(super) const QUERY_BILL: AlipayOperation =
    AlipayOperation { method: "alipay.data.dataservice.bill.downloadurl.query", changes: false };

/// A day as `2026-01-15`.
#[derive(Serialize)]
pub(super) struct BillKey<'a> {
    pub(super) bill_type: &'static str,
    pub(super) bill_date: &'a str,
}

#[derive(Serialize)]
pub(super) struct TradeKey<'a> {
    pub(super) out_trade_no: &'a str,
}

#[derive(Serialize)]
pub(super) struct RefundContent<'a> {
    pub(super) out_trade_no: &'a str,
    pub(super) refund_amount: String,
    pub(super) out_request_no: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) refund_reason: &'a str,
}

#[derive(Serialize)]
pub(super) struct RefundKey<'a> {
    pub(super) out_trade_no: &'a str,
    pub(super) out_request_no: &'a str,
}

impl AlipayOperation {
    /// Returns the response member that holds the operation's result.
    pub(super) fn response_key(self) -> String {
        format!("{}_response", self.method.replace('.', "_"))
    }

    /// Maps a failed call that may have changed something to an unknown outcome.
    pub(super) fn with_unknown_outcome(self, failure: Failure) -> Failure {
        if self.changes { failure.with_unknown_outcome() } else { failure }
    }
}

/// Returns the URL query and the form body of a call made at `now` (epoch milliseconds).
pub(super) fn signed_request(
    merchant: &Merchant,
    call: AlipayOperation,
    content: &impl Serialize,
    now: i64,
) -> Result<(String, String), Failure> {
    let mut parameters = merchant.common_parameters(call.method, now)?;
    parameters.push(("biz_content", merchant.json(content)?));
    merchant.sign(&mut parameters)?;
    let (body, query): (Vec<_>, Vec<_>) = parameters.into_iter().partition(|(name, _)| *name == "biz_content");
    Ok((form::encode_all(&query), form::encode_all(&body)))
}

/// Maps an unsuccessful response to a failure with the provider's most precise code.
pub(super) fn refusal(provider: &'static str, answer: &AlipayResponse) -> Failure {
    let sub_code = answer.sub_code();
    let temporary =
        ["isp.", "aop."].iter().any(|prefix| sub_code.starts_with(prefix)) || sub_code.ends_with("SYSTEM_ERROR");
    let kind = match answer.code.as_str() {
        "40005" => FailureKind::Busy,
        _ if sub_code.contains("call-limited") => FailureKind::Busy,
        _ if temporary => FailureKind::OutcomeUnknown,
        "20001" | "40001" | "40002" | "40006" => FailureKind::Misconfigured,
        "40003" | "40004" => FailureKind::Refused,
        _ => FailureKind::OutcomeUnknown,
    };
    let code = clean_code(sub_code).or_else(|| clean_code(&answer.code));
    Failure::new(kind, provider, code.unwrap_or_else(|| "no_code".to_owned()))
}

/// Maps an HTTP status other than 200, which a proxy in front of the gateway sent, to a failure.
pub(super) fn http_failure(provider: &'static str, status: u16) -> Failure {
    let kind = match status {
        429 => FailureKind::Busy,
        500..=599 => FailureKind::OutcomeUnknown,
        _ => FailureKind::InvalidResponse,
    };
    Failure::new(kind, provider, format!("http_{status}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::payment::signing::Signer;
    use crate::providers::payment::vectors;

    fn merchant() -> Merchant {
        Merchant {
            provider: "alipay",
            app_id: "2021000000000001".to_owned(),
            seller_id: None,
            notify_url: String::new(),
            signer: Signer::Rsa2(vectors::merchant_key()),
            certificates: None,
        }
    }

    fn refund() -> RefundContent<'static> {
        RefundContent {
            out_trade_no: "D202601150000000001",
            refund_amount: "1.50".to_owned(),
            out_request_no: "R202601150000000001",
            refund_reason: "用户取消",
        }
    }

    fn assert_same_as(name: &str, (query, body): (String, String)) {
        let vector = &vectors::alipay()["gateway_requests"]["official_node"][name];
        let (_, published) = vectors::text(&vector["url"]).split_once('?').unwrap();
        assert_eq!(query, published.replace('+', "%20"), "{name}");
        assert_eq!(body, vectors::text(&vector["body"]), "{name}");
    }

    #[test]
    fn requests_equal_the_published_ones_byte_for_byte() {
        let now = vectors::AFTERNOON;
        let first = TradeKey { out_trade_no: "D202601150000000001" };
        let second = TradeKey { out_trade_no: "D202601150000000002" };
        assert_same_as("query_request", signed_request(&merchant(), QUERY, &first, now).unwrap());
        assert_same_as("close_request", signed_request(&merchant(), CLOSE, &second, now).unwrap());
        assert_same_as("refund_request", signed_request(&merchant(), REFUND, &refund(), now).unwrap());
    }

    #[test]
    fn signs_the_other_published_requests_equally() {
        let all = vectors::alipay();
        let requests = all["gateway_requests"]["official_python"].as_object().unwrap();
        assert_eq!(requests.len(), 3);
        for (name, vector) in requests {
            let text = form::request_text(&vectors::string_pairs(&vector["params"]));
            assert_eq!(text, vectors::text(&vector["sign_content"]), "{name}");
            assert_eq!(merchant().signer.sign(&text).unwrap(), vectors::text(&vector["sign"]), "{name}");
        }
    }

    fn kind(code: &str, sub_code: &str) -> FailureKind {
        let answer =
            AlipayResponse { code: code.to_owned(), sub_code: Some(sub_code.to_owned()), ..AlipayResponse::default() };
        refusal("alipay", &answer).kind
    }

    #[test]
    fn maps_refusals_to_kinds() {
        assert_eq!(kind("20000", "isp.unknow-error"), FailureKind::OutcomeUnknown);
        assert_eq!(kind("20000", "aop.unknow-error"), FailureKind::OutcomeUnknown);
        assert_eq!(kind("40004", "ACQ.SYSTEM_ERROR"), FailureKind::OutcomeUnknown);
        assert_eq!(kind("40004", "ACQ.SELLER_BALANCE_NOT_ENOUGH"), FailureKind::Refused);
        assert_eq!(kind("40004", "ACQ.TRADE_HAS_FINISHED"), FailureKind::Refused);
        assert_eq!(kind("40002", "isv.invalid-signature"), FailureKind::Misconfigured);
        assert_eq!(kind("40006", "isv.insufficient-isv-permissions"), FailureKind::Misconfigured);
        assert_eq!(kind("40005", "isv.app-call-limited"), FailureKind::Busy);
        assert_eq!(kind("99999", ""), FailureKind::OutcomeUnknown);
    }

    #[test]
    fn the_most_precise_code_is_kept_and_cleaned() {
        let answer = AlipayResponse {
            code: "40004".to_owned(),
            sub_code: Some("ACQ.X\n 交易".to_owned()),
            ..AlipayResponse::default()
        };
        assert_eq!(refusal("alipay", &answer).code, "ACQ.X");
        let bare = AlipayResponse { code: "40004".to_owned(), ..AlipayResponse::default() };
        assert_eq!(refusal("alipay", &bare).code, "40004");
    }

    #[test]
    fn only_a_call_that_changes_something_has_an_unknown_outcome() {
        let lost = || Failure::new(FailureKind::TimedOut, "alipay", "total_timeout");
        assert_eq!(REFUND.with_unknown_outcome(lost()).kind, FailureKind::OutcomeUnknown);
        assert_eq!(QUERY.with_unknown_outcome(lost()).kind, FailureKind::TimedOut);
        let refused = Failure::new(FailureKind::Unreachable, "alipay", "connect_failed");
        assert_eq!(REFUND.with_unknown_outcome(refused).kind, FailureKind::Unreachable);
    }
}
