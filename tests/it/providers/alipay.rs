//! The Alipay gateway against a correct and a faulty provider.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use yarrow::{
    providers::{
        FailureKind,
        payment::{
            CloseOutcome, RefundOutcome, RefundQueryOutcome, RefundRequest, TradeQueryOutcome, TradeStatus,
            alipay::{Alipay, AlipaySettings},
        },
    },
    types::Fen,
};

use crate::support::{
    alipay::{proved, published, sign, sign_as_merchant},
    fake_provider::{FakeProvider, ReceivedRequest, Reply},
};

const ORDER: &str = "D202601150000000001";
const REFUND_NO: &str = "R202601150000000001";

/// 2026-01-15 16:30:00 in Shanghai, the time at which the published messages were signed.
const AFTERNOON: i64 = 1_768_465_800_000;
/// One byte more than the driver reads of a response.
const TOO_MANY_BYTES: usize = 256 * 1024 + 1;

/// A reply of the gateway to a request with a valid signature.
#[derive(Clone)]
enum GatewayReply {
    /// The object, signed by the provider's key.
    Signed(String),
    SignedByOther(String),
    Unsigned(String),
    Raw(Reply),
}

/// The operation and the content of each valid request.
type SeenRequests = Arc<Mutex<Vec<(String, Value)>>>;

/// A gateway that checks requests and sends the same replies in turn. Returns it with the operations and contents of
/// the valid requests.
fn provider(replies: Vec<GatewayReply>) -> (FakeProvider, SeenRequests) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (recorded, mut replies) = (Arc::clone(&seen), replies.into_iter().cycle());
    let provider = FakeProvider::with_handler(move |request| {
        let (app_id, method, content) = match proved(request) {
            Ok(proved) if is_well_formed(request) => proved,
            Ok(_) => return Reply::status(500).body("the parameters are wrong"),
            Err(fault) => return Reply::status(500).body(fault),
        };
        assert_eq!(app_id, "2021000000000001");
        let key = format!("{}_response", method.replace('.', "_"));
        recorded.lock().unwrap().push((method, content));
        let signed =
            |object: &str, signature: String| Reply::json(format!(r#"{{"{key}":{object},"sign":"{signature}"}}"#));
        match replies.next().unwrap() {
            GatewayReply::Signed(object) => signed(&object, sign(&object)),
            GatewayReply::SignedByOther(object) => signed(&object, sign_as_merchant(&object)),
            GatewayReply::Unsigned(object) => Reply::json(format!(r#"{{"{key}":{object}}}"#)),
            GatewayReply::Raw(reply) => reply,
        }
    });
    (provider, seen)
}

/// Returns true if only the body has the content, and the query has the common parameters.
fn is_well_formed(request: &ReceivedRequest) -> bool {
    let query = request.query();
    let has = |name: &str, value: &str| query.iter().any(|(known, found)| known == name && found == value);
    let body: Vec<_> = request.form().into_iter().map(|(name, _)| name).collect();
    let is_placed = request.path() == "/gateway.do" && body == ["biz_content"];
    let common = [("charset", "utf-8"), ("sign_type", "RSA2"), ("version", "1.0")];
    is_placed
        && query.iter().all(|(name, _)| name != "biz_content")
        && common.iter().all(|(name, value)| has(name, value))
}

fn settings(gateway_url: &str) -> AlipaySettings {
    let published = published();
    let key = |value: &Value| value.as_str().unwrap().to_owned();
    AlipaySettings {
        app_id: "2021000000000001".to_owned(),
        seller_id: Some("2088000000000001".to_owned()),
        private_key: key(&published["keys"]["merchant"]["private_pkcs1_der_base64"]),
        alipay_public_key: key(&published["keys"]["platform"]["public_spki_pem"]),
        certificates: None,
        gateway_url: gateway_url.to_owned(),
        notify_url: "https://api.example.test/payment/notify".to_owned(),
        timeout: Duration::from_millis(400),
    }
}

fn gateway(url: &str) -> Alipay {
    Alipay::new(&settings(&format!("{url}/gateway.do")), Box::new(|| AFTERNOON)).ok().unwrap()
}

fn with<T>(reply: GatewayReply, call: impl FnOnce(&Alipay) -> T) -> T {
    let (provider, _) = provider(vec![reply]);
    call(&gateway(&provider.url()))
}

fn refund_request() -> RefundRequest {
    RefundRequest {
        order_no: ORDER.to_owned(),
        refund_no: REFUND_NO.to_owned(),
        amount: Fen::parse("1.50").unwrap(),
        reason: "用户取消".to_owned(),
    }
}

fn published_object(name: &str) -> String {
    published()["alipay"]["responses"][name]["signed_substring"].as_str().unwrap().to_owned()
}

fn published_reply(name: &str) -> GatewayReply {
    GatewayReply::Signed(published_object(name))
}

fn signed(object: &str) -> GatewayReply {
    GatewayReply::Signed(object.to_owned())
}

fn business_error(sub_code: &str) -> GatewayReply {
    signed(&format!(r#"{{"code":"40004","msg":"Business Failed","sub_code":"{sub_code}","sub_msg":"交易"}}"#))
}

#[test]
fn a_paid_trade_is_found() {
    let state = with(published_reply("query_success"), |gateway| gateway.query(ORDER)).unwrap();
    let TradeQueryOutcome::Found(trade) = state else { panic!("not found") };
    assert_eq!((trade.channel, trade.status, trade.amount.as_fen()), ("alipay", TradeStatus::Success, 600));
    assert_eq!(trade.paid_at, Some(AFTERNOON + 65_000));
    assert_eq!(trade.refunded, None);
}

#[test]
fn sends_signed_requests() {
    let (provider, seen) = provider(vec![
        published_reply("query_success"),
        published_reply("close_success"),
        published_reply("refund_success"),
        signed(r#"{"code":"10000","msg":"Success"}"#),
    ]);
    let gateway = gateway(&provider.url());
    gateway.query(ORDER).unwrap();
    assert_eq!(gateway.close("D202601150000000002").unwrap(), CloseOutcome::Closed);
    let refunded = gateway.refund(&refund_request()).unwrap();
    assert_eq!(refunded, RefundOutcome::Moved { total: Fen::parse("1.50").ok() });
    assert_eq!(gateway.query_refund(ORDER, REFUND_NO).unwrap(), RefundQueryOutcome::NotFound);

    let seen = seen.lock().unwrap().clone();
    let methods: Vec<&str> = seen.iter().map(|(method, _)| method.as_str()).collect();
    let expected =
        ["alipay.trade.query", "alipay.trade.close", "alipay.trade.refund", "alipay.trade.fastpay.refund.query"];
    assert_eq!(methods, expected);
    assert_eq!(seen[0].1, json!({"out_trade_no": ORDER}));
    let refund = json!({
        "out_trade_no": ORDER, "refund_amount": "1.50", "out_request_no": REFUND_NO, "refund_reason": "用户取消",
    });
    assert_eq!(seen[2].1, refund);
    assert_eq!(seen[3].1, json!({"out_trade_no": ORDER, "out_request_no": REFUND_NO}));
}

#[test]
fn a_missing_trade_is_a_normal_outcome() {
    let missing = || published_reply("query_not_exist");
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

/// A reply with this status and text, with the trace id of the provider.
fn html(status: u16, text: &str) -> GatewayReply {
    GatewayReply::Raw(Reply::status(status).header("trace_id", "trace-1").body(text))
}

/// Returns the failure kinds of a query and of a refund for the same fault.
fn kinds(reply: &GatewayReply) -> (FailureKind, FailureKind, String) {
    let question = with(reply.clone(), |gateway| gateway.query(ORDER)).unwrap_err();
    let refund = with(reply.clone(), |gateway| gateway.refund(&refund_request())).unwrap_err();
    assert_eq!(question.code, refund.code);
    (question.kind, refund.kind, question.code)
}

#[test]
fn faults_of_the_provider_are_no_outcome() {
    let paid = published_object("query_success");
    let unknown = FailureKind::OutcomeUnknown;
    let cases = [
        (GatewayReply::Unsigned(paid.clone()), FailureKind::InvalidResponse, "answer_unsigned"),
        (GatewayReply::SignedByOther(paid), FailureKind::InvalidResponse, "answer_signature_invalid"),
        (html(200, "<html>maintenance</html>"), FailureKind::InvalidResponse, "answer_unreadable"),
        (html(200, ""), FailureKind::InvalidResponse, "answer_unreadable"),
        (html(200, &"x".repeat(TOO_MANY_BYTES)), FailureKind::InvalidResponse, "answer_too_large"),
        (html(502, "<html>bad gateway</html>"), unknown, "http_502"),
        (html(302, ""), FailureKind::InvalidResponse, "http_302"),
        (
            GatewayReply::Raw(Reply::json(r#"{"alipay_trade_query_response":{}}"#).cut_after(14)),
            unknown,
            "connection_lost",
        ),
        (GatewayReply::Raw(Reply::reset()), unknown, "connection_lost"),
    ];
    for (reply, question, code) in cases {
        assert_eq!(kinds(&reply), (question, unknown, code.to_owned()));
    }
}

#[test]
fn a_silent_provider_times_out() {
    let started = Instant::now();
    let (question, refund, _) = kinds(&GatewayReply::Raw(Reply::json("{}").after(Duration::from_millis(900))));
    assert_eq!((question, refund), (FailureKind::TimedOut, FailureKind::OutcomeUnknown));
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[test]
fn an_unreachable_provider_certainly_did_nothing() {
    let failure = gateway("http://127.0.0.1:9").refund(&refund_request()).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Unreachable);
    assert!(failure.is_certainly_not_accepted());
}

#[test]
fn unsigned_errors_prove_no_outcome() {
    let gateway_level = r#"{"error_response":{"code":"40002","sub_code":"isv.invalid-app-id"}}"#.to_owned();
    let misconfigured = FailureKind::Misconfigured;
    let expected = (misconfigured, misconfigured, "isv.invalid-app-id".to_owned());
    assert_eq!(kinds(&GatewayReply::Raw(Reply::json(gateway_level))), expected);
    let claim = r#"{"code":"40004","sub_code":"ACQ.TRADE_HAS_FINISHED"}"#.to_owned();
    let expected = (FailureKind::InvalidResponse, FailureKind::OutcomeUnknown, "ACQ.TRADE_HAS_FINISHED".to_owned());
    assert_eq!(kinds(&GatewayReply::Unsigned(claim)), expected);
    // An unsigned "not found" is not believed either: a paid order could be closed because of it.
    let absent = r#"{"code":"40004","sub_code":"ACQ.TRADE_NOT_EXIST"}"#.to_owned();
    assert!(with(GatewayReply::Unsigned(absent), |gateway| gateway.query(ORDER)).is_err());
}

#[test]
fn refusals_have_the_providers_code_and_trace_id() {
    let failure = with(business_error("ACQ.SELLER_BALANCE_NOT_ENOUGH"), |gateway| gateway.refund(&refund_request()));
    let failure = failure.unwrap_err();
    assert_eq!((failure.kind, failure.code.as_str()), (FailureKind::Refused, "ACQ.SELLER_BALANCE_NOT_ENOUGH"));
    let failure = with(business_error("ACQ.SYSTEM_ERROR"), |gateway| gateway.refund(&refund_request())).unwrap_err();
    assert_eq!(failure.kind, FailureKind::OutcomeUnknown);
    let failure = with(html(502, ""), |gateway| gateway.query(ORDER)).unwrap_err();
    assert_eq!(failure.request_id.as_deref(), Some("trace-1"));
}

#[test]
fn an_impossible_refund_is_refused_before_any_call() {
    let gateway = gateway("http://127.0.0.1:9");
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
    let own = published()["keys"]["merchant"]["public_pkcs1_pem"].as_str().unwrap().to_owned();
    assert_eq!(faulty_settings(|settings| settings.alipay_public_key = own), ["alipay_public_key"]);
}

#[test]
fn debug_output_shows_no_key() {
    let settings = settings("https://openapi.example.test/gateway.do");
    let shown = format!("{settings:?}");
    assert!(!shown.contains(&settings.private_key) && !shown.contains("private_key"));
}
