//! Calls of the gateway against a correct and a faulty provider.

use std::time::Instant;

use super::stub_provider::{StubProvider, StubReply};
use super::*;
use crate::providers::payment::vectors;

const ORDER: &str = "D202601150000000001";
const REFUND_NO: &str = "R202601150000000001";

fn settings(gateway_url: &str) -> AlipaySettings {
    let keys = vectors::keys();
    AlipaySettings {
        app_id: "2021000000000001".to_owned(),
        seller_id: Some("2088000000000001".to_owned()),
        private_key: vectors::text(&keys["merchant"]["private_pkcs1_der_base64"]).to_owned(),
        alipay_public_key: vectors::text(&keys["platform"]["public_spki_pem"]).to_owned(),
        gateway_url: gateway_url.to_owned(),
        notify_url: "https://api.example.test/payment/notify".to_owned(),
        timeout: Duration::from_millis(400),
    }
}

fn gateway(url: &str) -> Alipay {
    Alipay::new(&settings(url), Box::new(|| vectors::AFTERNOON)).ok().unwrap()
}

fn with<T>(reply: StubReply, call: impl FnOnce(&Alipay) -> T) -> T {
    let vendor = StubProvider::start(vec![reply]);
    call(&gateway(&vendor.url))
}

fn refund_request() -> RefundRequest {
    RefundRequest {
        order_no: ORDER.to_owned(),
        refund_no: REFUND_NO.to_owned(),
        amount: Fen::parse("1.50").unwrap(),
        reason: "用户取消".to_owned(),
    }
}

fn published(name: &str) -> StubReply {
    StubReply::Signed(vectors::text(&vectors::alipay()["responses"][name]["signed_substring"]).to_owned())
}

fn signed(object: &str) -> StubReply {
    StubReply::Signed(object.to_owned())
}

fn business_error(sub_code: &str) -> StubReply {
    StubReply::Signed(format!(r#"{{"code":"40004","msg":"Business Failed","sub_code":"{sub_code}","sub_msg":"交易"}}"#))
}

#[test]
fn a_paid_trade_is_found() {
    let state = with(published("query_success"), |gateway| gateway.query(ORDER)).unwrap();
    let TradeQueryOutcome::Found(trade) = state else { panic!("not found") };
    assert_eq!((trade.channel, trade.status, trade.amount.as_fen()), ("alipay", TradeStatus::Success, 600));
    assert_eq!(trade.paid_at, Some(vectors::AFTERNOON + 65_000));
    assert_eq!(trade.refunded, None);
}

#[test]
fn sends_signed_requests() {
    let vendor = StubProvider::start(vec![
        published("query_success"),
        published("close_success"),
        published("refund_success"),
        signed(r#"{"code":"10000","msg":"Success"}"#),
    ]);
    let gateway = gateway(&vendor.url);
    gateway.query(ORDER).unwrap();
    assert_eq!(gateway.close("D202601150000000002").unwrap(), CloseOutcome::Closed);
    let refunded = gateway.refund(&refund_request()).unwrap();
    assert_eq!(refunded, RefundOutcome::Moved { total: Fen::parse("1.50").ok() });
    assert_eq!(gateway.query_refund(ORDER, REFUND_NO).unwrap(), RefundQueryOutcome::NotFound);

    let seen = vendor.seen();
    let methods: Vec<&str> = seen.iter().map(|request| request.method.as_str()).collect();
    let expected =
        ["alipay.trade.query", "alipay.trade.close", "alipay.trade.refund", "alipay.trade.fastpay.refund.query"];
    assert_eq!(methods, expected);
    assert_eq!(seen[0].content, serde_json::json!({"out_trade_no": ORDER}));
    let refund = serde_json::json!({
        "out_trade_no": ORDER, "refund_amount": "1.50", "out_request_no": REFUND_NO, "refund_reason": "用户取消",
    });
    assert_eq!(seen[2].content, refund);
    assert_eq!(seen[3].content, serde_json::json!({"out_trade_no": ORDER, "out_request_no": REFUND_NO}));
}

#[test]
fn a_missing_trade_is_a_normal_outcome() {
    let missing = || published("query_not_exist");
    assert_eq!(with(missing(), |gateway| gateway.query(ORDER)).unwrap(), TradeQueryOutcome::NotFound);
    assert_eq!(with(missing(), |gateway| gateway.close(ORDER)).unwrap(), CloseOutcome::NotFound);
    assert_eq!(
        with(missing(), |gateway| gateway.query_refund(ORDER, REFUND_NO)).unwrap(),
        RefundQueryOutcome::NotFound
    );
    let failure = with(missing(), |gateway| gateway.refund(&refund_request())).unwrap_err();
    assert_eq!((failure.kind, failure.code.as_str()), (FailureKind::Refused, "ACQ.TRADE_NOT_EXIST"));
}

#[test]
fn a_trade_that_is_no_longer_waiting_cannot_be_closed() {
    for code in ["ACQ.TRADE_STATUS_ERROR", "ACQ.REASON_TRADE_STATUS_INVALID", "ACQ.REASON_ILLEGAL_STATUS"] {
        let outcome = with(business_error(code), |gateway| gateway.close(ORDER));
        assert_eq!(outcome.unwrap(), CloseOutcome::NotClosable, "{code}");
    }
}

#[test]
fn a_closed_trade_that_was_paid_was_refunded_in_full() {
    let object = |paid: &str| {
        signed(&format!(
            r#"{{"code":"10000","out_trade_no":"{ORDER}","trade_no":"T1","trade_status":"TRADE_CLOSED","total_amount":"6.00"{paid}}}"#
        ))
    };
    let refunded = |reply| match with(reply, |gateway| gateway.query(ORDER)).unwrap() {
        TradeQueryOutcome::Found(trade) => trade.refunded,
        TradeQueryOutcome::NotFound => panic!("not found"),
    };
    assert_eq!(refunded(object("")), None);
    let all = refunded(object(r#","send_pay_date":"2026-01-15 16:31:05""#)).unwrap();
    assert_eq!(all.total, Fen::parse("6.00").ok());
}

#[test]
fn a_refund_counts_only_if_money_moved() {
    let object = |change: &str| signed(&format!(r#"{{"code":"10000","out_trade_no":"{ORDER}"{change}}}"#));
    for (change, total) in [(r#","fund_change":"N","refund_fee":"2.50""#, Fen::parse("2.50").ok()), ("", None)] {
        let outcome = with(object(change), |gateway| gateway.refund(&refund_request())).unwrap();
        assert_eq!(outcome, RefundOutcome::Unconfirmed { total }, "{change}");
    }
    let outcome = with(object(r#","fund_change":"Y""#), |gateway| gateway.refund(&refund_request())).unwrap();
    assert_eq!(outcome, RefundOutcome::Moved { total: None });
}

#[test]
fn the_refund_query_distinguishes_its_three_answers() {
    let state = |members: &str| {
        let object = format!(r#"{{"code":"10000","out_trade_no":"{ORDER}","out_request_no":"{REFUND_NO}"{members}}}"#);
        with(signed(&object), |gateway| gateway.query_refund(ORDER, REFUND_NO)).unwrap()
    };
    let amount = Fen::parse("1.50").unwrap();
    assert_eq!(
        state(r#","refund_amount":"1.50","refund_status":"REFUND_SUCCESS""#),
        RefundQueryOutcome::Succeeded { amount }
    );
    assert_eq!(state(r#","refund_amount":"1.50""#), RefundQueryOutcome::Unconfirmed);
    assert_eq!(state(r#","refund_status":"REFUND_PROCESSING""#), RefundQueryOutcome::Unconfirmed);
    assert_eq!(state(""), RefundQueryOutcome::NotFound);
}

#[test]
fn rejects_responses_about_something_else() {
    let paid = |order: &str, rest: &str| {
        signed(&format!(
            r#"{{"code":"10000","out_trade_no":"{order}","trade_no":"T1","trade_status":"TRADE_SUCCESS"{rest}}}"#
        ))
    };
    let cases = [
        (paid("D2", r#","total_amount":"6.00""#), "answer_for_another_order"),
        (paid(ORDER, ""), "answer_incomplete"),
        (paid(ORDER, r#","total_amount":"6e0""#), "answer_incomplete"),
        (paid(ORDER, r#","total_amount":"6.00","trans_currency":"USD""#), "wrong_currency"),
    ];
    for (reply, code) in cases {
        let failure = with(reply, |gateway| gateway.query(ORDER)).unwrap_err();
        assert_eq!((failure.kind, failure.code.as_str()), (FailureKind::InvalidResponse, code));
    }
    let other = signed(r#"{"code":"10000","out_trade_no":"D2","fund_change":"Y"}"#);
    let failure = with(other, |gateway| gateway.refund(&refund_request())).unwrap_err();
    assert_eq!(failure.kind, FailureKind::OutcomeUnknown);
    let other = r#"{"code":"10000","out_request_no":"R2","refund_amount":"1.50","refund_status":"REFUND_SUCCESS"}"#;
    let failure = with(signed(other), |gateway| gateway.query_refund(ORDER, REFUND_NO)).unwrap_err();
    assert_eq!(failure.code, "answer_for_another_refund");
}

/// Returns the failure kinds of a query and of a refund for the same fault.
fn kinds(reply: &StubReply) -> (FailureKind, FailureKind, String) {
    let question = with(reply.clone(), |gateway| gateway.query(ORDER)).unwrap_err();
    let refund = with(reply.clone(), |gateway| gateway.refund(&refund_request())).unwrap_err();
    assert_eq!(question.code, refund.code);
    (question.kind, refund.kind, question.code)
}

#[test]
fn faults_of_the_provider_are_no_outcome() {
    let paid = vectors::text(&vectors::alipay()["responses"]["query_success"]["signed_substring"]).to_owned();
    let unknown = FailureKind::OutcomeUnknown;
    let cases = [
        (StubReply::Unsigned(paid.clone()), FailureKind::InvalidResponse, "answer_unsigned"),
        (StubReply::SignedByOther(paid), FailureKind::InvalidResponse, "answer_signature_invalid"),
        (StubReply::Raw(200, "<html>maintenance</html>".to_owned()), FailureKind::InvalidResponse, "answer_unreadable"),
        (StubReply::Raw(200, String::new()), FailureKind::InvalidResponse, "answer_unreadable"),
        (StubReply::Raw(200, "x".repeat(MAX_RESPONSE_BYTES + 1)), FailureKind::InvalidResponse, "answer_too_large"),
        (StubReply::Raw(502, "<html>bad gateway</html>".to_owned()), unknown, "http_502"),
        (StubReply::Raw(302, String::new()), FailureKind::InvalidResponse, "http_302"),
        (StubReply::Cut("{\"alipay_trade".to_owned()), unknown, "connection_lost"),
        (StubReply::HangUp, unknown, "connection_lost"),
    ];
    for (reply, question, code) in cases {
        assert_eq!(kinds(&reply), (question, unknown, code.to_owned()));
    }
}

#[test]
fn a_silent_provider_times_out() {
    let started = Instant::now();
    let (question, refund, _) = kinds(&StubReply::Silence(Duration::from_millis(900)));
    assert_eq!((question, refund), (FailureKind::TimedOut, FailureKind::OutcomeUnknown));
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[test]
fn an_unreachable_provider_certainly_did_nothing() {
    let vendor = StubProvider::start(Vec::new());
    // The listener is dropped with its thread; until then a connection may still be taken and hung up.
    std::thread::sleep(Duration::from_millis(100));
    let failure = gateway(&vendor.url).refund(&refund_request()).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Unreachable);
    assert!(failure.is_certainly_not_accepted());
}

#[test]
fn unsigned_errors_prove_no_outcome() {
    let gateway_level = r#"{"error_response":{"code":"40002","sub_code":"isv.invalid-app-id"}}"#.to_owned();
    let misconfigured = FailureKind::Misconfigured;
    let expected = (misconfigured, misconfigured, "isv.invalid-app-id".to_owned());
    assert_eq!(kinds(&StubReply::Raw(200, gateway_level)), expected);
    let claim = r#"{"code":"40004","sub_code":"ACQ.TRADE_HAS_FINISHED"}"#.to_owned();
    let expected = (FailureKind::InvalidResponse, FailureKind::OutcomeUnknown, "ACQ.TRADE_HAS_FINISHED".to_owned());
    assert_eq!(kinds(&StubReply::Unsigned(claim)), expected);
    // An unsigned "not found" is not believed either: a paid order could be closed because of it.
    let absent = r#"{"code":"40004","sub_code":"ACQ.TRADE_NOT_EXIST"}"#.to_owned();
    assert!(with(StubReply::Unsigned(absent), |gateway| gateway.query(ORDER)).is_err());
}

#[test]
fn refusals_have_the_providers_code_and_trace_id() {
    let failure = with(business_error("ACQ.SELLER_BALANCE_NOT_ENOUGH"), |gateway| gateway.refund(&refund_request()));
    let failure = failure.unwrap_err();
    assert_eq!((failure.kind, failure.code.as_str()), (FailureKind::Refused, "ACQ.SELLER_BALANCE_NOT_ENOUGH"));
    let failure = with(business_error("ACQ.SYSTEM_ERROR"), |gateway| gateway.refund(&refund_request())).unwrap_err();
    assert_eq!(failure.kind, FailureKind::OutcomeUnknown);
    let failure = with(StubReply::Raw(502, String::new()), |gateway| gateway.query(ORDER)).unwrap_err();
    assert_eq!(failure.request_id.as_deref(), Some("trace-1"));
}

#[test]
fn an_impossible_refund_is_refused_before_any_call() {
    let gateway = gateway("http://127.0.0.1:9/gateway.do");
    let changes: [fn(&mut RefundRequest); 3] = [
        |refund| refund.refund_no = "R-1".to_owned(),
        |refund| refund.amount = Fen::ZERO,
        |refund| refund.reason = "因".repeat(257),
    ];
    for change in changes {
        let mut refund = refund_request();
        change(&mut refund);
        assert_eq!(gateway.refund(&refund).unwrap_err().code, "invalid_refund");
    }
}

fn faulty_settings(change: impl FnOnce(&mut AlipaySettings)) -> Vec<&'static str> {
    let mut settings = settings("https://openapi.example.test/gateway.do");
    change(&mut settings);
    let outcome = Alipay::new(&settings, Box::new(|| 0));
    outcome.err().unwrap_or_default().into_iter().map(|fault| fault.setting).collect()
}

#[test]
fn reports_all_setting_faults_at_once() {
    assert!(faulty_settings(|_| {}).is_empty());
    assert!(faulty_settings(|settings| settings.seller_id = None).is_empty());
    let all = faulty_settings(|settings| {
        settings.app_id = "your-app-id".to_owned();
        settings.seller_id = Some("2088".to_owned());
        settings.private_key = String::new();
        settings.alipay_public_key = "changeme".to_owned();
        settings.gateway_url = "http://openapi.example.test/gateway.do".to_owned();
        settings.notify_url = "https://api.example.test/payment/notify?x=1".to_owned();
    });
    assert_eq!(all, ["app_id", "seller_id", "gateway_url", "notify_url", "private_key", "alipay_public_key"]);
}

#[test]
fn rejects_our_own_public_key() {
    let own = vectors::text(&vectors::keys()["merchant"]["public_pkcs1_pem"]).to_owned();
    assert_eq!(faulty_settings(|settings| settings.alipay_public_key = own), ["alipay_public_key"]);
}

#[test]
fn debug_output_shows_no_key() {
    let settings = settings("https://openapi.example.test/gateway.do");
    let shown = format!("{settings:?}");
    assert!(!shown.contains(&settings.private_key) && !shown.contains("private_key"));
}
