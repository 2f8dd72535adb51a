//! WeChat Pay against a correct and a faulty provider.

use std::time::Duration;

use serde_json::Value;
use yarrow::{
    providers::{
        FailureKind,
        payment::{
            CloseOutcome, OrderRequest, RefundRequest, TradeQueryOutcome, TradeStatus,
            wechat::{
                WeChatClient, WeChatEvent, WeChatPay, WeChatPayment, WeChatRefundState, WeChatSettings, WeChatSignature,
            },
        },
    },
    types::Fen,
};

use crate::support::{
    fake_provider::FakeProvider,
    wechat::{FakeWeChatPay, SignedNotification, WeChatMode, published_wechat},
};

const ORDER: &str = "202601150000000000000001";
const REFUND_NO: &str = "R0123456789abcdef01234567";
/// 2026-01-15 16:30:00 in Shanghai.
const NOW: i64 = 1_768_465_800;

fn settings(url: &str) -> WeChatSettings {
    let published = published_wechat();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    WeChatSettings {
        app_id: text(&published["appid"]),
        merchant_id: text(&published["mchid"]),
        merchant_serial: text(&published["merchant_serial_no"]),
        private_key: text(&published["keys"]["wechat_merchant"]["private_pkcs8_pem"]),
        api_v3_key: text(&published["apiv3_key"]),
        public_key_id: Some(text(&published["public_key_id"])),
        public_key: Some(text(&published["keys"]["wechat_public_key_mode"]["public_spki_pem"])),
        platform_certificates: None,
        base_url: url.to_owned(),
        notify_url: "https://api.example.test/payment/notify/wechat".to_owned(),
        timeout: Duration::from_millis(400),
    }
}

fn start() -> (FakeWeChatPay, WeChatPay) {
    let provider = FakeWeChatPay::start_at(|| NOW);
    let driver = driver(&settings(&provider.url()));
    (provider, driver)
}

fn driver(settings: &WeChatSettings) -> WeChatPay {
    WeChatPay::new(settings, Box::new(|| NOW * 1000)).ok().unwrap()
}

fn fen(fen: i64) -> Fen {
    Fen::from_fen(fen).unwrap()
}

fn order() -> OrderRequest {
    OrderRequest {
        order_no: ORDER.to_owned(),
        amount: fen(600),
        subject: "金币 60 个".to_owned(),
        expires_at: (NOW + 1800) * 1000,
        now: NOW * 1000,
    }
}

fn refund_request(amount: i64) -> RefundRequest {
    RefundRequest {
        order_no: ORDER.to_owned(),
        refund_no: REFUND_NO.to_owned(),
        amount: fen(amount),
        reason: "用户取消".to_owned(),
    }
}

fn read(driver: &WeChatPay, (headers, body): &SignedNotification) -> Option<WeChatEvent> {
    let find = |name: &str| headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    let signature = WeChatSignature::from_headers(|name| find(name).map(|(_, value)| value.as_str())).ok()?;
    driver.read_notification(&signature, body.as_bytes(), NOW * 1000).ok().map(|read| read.event)
}

#[test]
fn an_order_is_placed_paid_and_refunded() {
    let (provider, driver) = start();
    assert_eq!(driver.query(ORDER).unwrap(), TradeQueryOutcome::NotFound);
    let WeChatPayment::MobileApp(call) = driver.prepay(WeChatClient::MobileApp, &order()).unwrap() else { panic!() };
    assert_eq!((call.prepayid, call.package), (format!("wx{ORDER}"), "Sign=WXPay"));
    let TradeQueryOutcome::Found(trade) = driver.query(ORDER).unwrap() else { panic!() };
    assert_eq!(trade.status, TradeStatus::WaitBuyerPay);

    provider.pay(ORDER, 600);
    let TradeQueryOutcome::Found(trade) = driver.query(ORDER).unwrap() else { panic!() };
    assert_eq!((trade.status, trade.amount), (TradeStatus::Success, fen(600)));
    assert_eq!(read(&driver, &provider.payment_notification(ORDER)), Some(WeChatEvent::Paid(trade)));
    assert_eq!(driver.close(ORDER).unwrap(), CloseOutcome::NotClosable);

    assert_eq!(driver.query_refund(ORDER, REFUND_NO).unwrap(), None);
    for _ in 0..2 {
        assert_eq!(driver.refund(&refund_request(150), fen(600)).unwrap().state, WeChatRefundState::Processing);
    }
    let refund = driver.query_refund(ORDER, REFUND_NO).unwrap().unwrap();
    assert_eq!((refund.state, refund.amount), (WeChatRefundState::Succeeded, fen(150)));
    let Some(WeChatEvent::Refund(reported)) = read(&driver, &provider.refund_notification(ORDER)) else { panic!() };
    assert_eq!((reported.refund_no.as_str(), reported.amount), (REFUND_NO, fen(150)));
    let TradeQueryOutcome::Found(trade) = driver.query(ORDER).unwrap() else { panic!() };
    assert!(trade.is_paid() && trade.refunded.is_none());

    let bill = driver.bill(NOW * 1000).unwrap().unwrap();
    assert_eq!((bill.lines.len(), bill.paid, bill.refunded), (2, fen(600), fen(150)));
}

#[test]
fn every_kind_of_client_gets_its_call() {
    let (_provider, driver) = start();
    // The provider keeps an order for the way to pay that it was made for.
    let numbered = |number: u32| OrderRequest { order_no: format!("{ORDER}{number}"), ..order() };
    let jsapi = driver.prepay(WeChatClient::Jsapi { open_id: "oUpF8u" }, &order()).unwrap();
    assert!(matches!(jsapi, WeChatPayment::Jsapi(call) if call.package == format!("prepay_id=wx{ORDER}")));
    let page = driver.prepay(WeChatClient::H5 { client_ip: "203.0.113.9" }, &numbered(2)).unwrap();
    assert!(matches!(page, WeChatPayment::H5 { h5_url } if h5_url.starts_with("https://wx.tenpay.com/")));
    let code = driver.prepay(WeChatClient::Native, &numbered(3)).unwrap();
    assert!(matches!(code, WeChatPayment::Native { code_url } if code_url.starts_with("weixin://")));
    let dearer = OrderRequest { amount: fen(601), ..order() };
    let failure = driver.prepay(WeChatClient::MobileApp, &dearer).unwrap_err();
    assert_eq!((failure.kind, failure.code.as_str()), (FailureKind::Refused, "OUT_TRADE_NO_USED"));
}

#[test]
fn rejects_orders_and_refunds_that_the_provider_would_reject_without_a_call() {
    let (provider, driver) = start();
    for order in [
        OrderRequest { order_no: "D1".to_owned(), ..order() },
        OrderRequest { amount: fen(0), ..order() },
        OrderRequest { subject: String::new(), ..order() },
        OrderRequest { expires_at: NOW * 1000, ..order() },
    ] {
        assert_eq!(driver.prepay(WeChatClient::MobileApp, &order).unwrap_err().kind, FailureKind::Misconfigured);
    }
    assert_eq!(driver.refund(&refund_request(601), fen(600)).unwrap_err().kind, FailureKind::Refused);
    assert_eq!(driver.refund(&refund_request(0), fen(600)).unwrap_err().kind, FailureKind::Refused);
    assert!(provider.requests().is_empty());
}

#[test]
fn closes_unpaid_orders() {
    let (provider, driver) = start();
    assert_eq!(driver.close(ORDER).unwrap(), CloseOutcome::NotFound);
    driver.prepay(WeChatClient::MobileApp, &order()).unwrap();
    assert_eq!(driver.close(ORDER).unwrap(), CloseOutcome::Closed);
    assert_eq!(driver.close(ORDER).unwrap(), CloseOutcome::Closed);
    let TradeQueryOutcome::Found(trade) = driver.query(ORDER).unwrap() else { panic!() };
    assert_eq!(trade.status, TradeStatus::Closed);
    assert_eq!(provider.calls()[0], format!("POST /v3/pay/transactions/out-trade-no/{ORDER}/close"));
}

#[test]
fn a_probe_is_asked_again_once() {
    let (provider, driver) = start();
    provider.pay(ORDER, 600);
    provider.be(WeChatMode::ProbesOnce);
    assert!(matches!(driver.query(ORDER), Ok(TradeQueryOutcome::Found(_))));
    assert_eq!(provider.calls().len(), 2);
    provider.be(WeChatMode::Probes);
    let failure = driver.refund(&refund_request(150), fen(600)).unwrap_err();
    assert_eq!((failure.kind, failure.code.as_str()), (FailureKind::OutcomeUnknown, "probe_traffic"));
    assert_eq!(provider.calls().len(), 4);
}

#[test]
fn answers_without_a_valid_signature_prove_nothing() {
    for (mode, code) in [
        (WeChatMode::Tampered, "signature_invalid"),
        (WeChatMode::Unsigned, "header_missing"),
        (WeChatMode::Stale, "stale_timestamp"),
    ] {
        let (provider, driver) = start();
        provider.pay(ORDER, 600);
        provider.be(mode);
        let failure = driver.query(ORDER).unwrap_err();
        assert_eq!((failure.kind, failure.code.as_str()), (FailureKind::InvalidResponse, code));
        let failure = driver.refund(&refund_request(150), fen(600)).unwrap_err();
        assert_eq!((failure.kind, failure.code.as_str()), (FailureKind::OutcomeUnknown, code));
    }
}

#[test]
fn lost_answers_and_server_errors_leave_a_refund_unknown() {
    for (mode, query) in [
        (WeChatMode::Lost, FailureKind::OutcomeUnknown),
        (WeChatMode::Slow(900), FailureKind::TimedOut),
        (WeChatMode::Broken, FailureKind::OutcomeUnknown),
    ] {
        let (provider, driver) = start();
        provider.pay(ORDER, 600);
        provider.be(mode);
        assert_eq!(driver.query(ORDER).unwrap_err().kind, query, "{mode:?}");
        assert_eq!(driver.refund(&refund_request(1), fen(600)).unwrap_err().kind, FailureKind::OutcomeUnknown);
    }
    // Nothing listens there.
    let away = driver(&settings(&FakeProvider::unreachable_url().replace("http://", "https://")));
    assert_eq!(away.refund(&refund_request(1), fen(600)).unwrap_err().kind, FailureKind::Unreachable);
}

#[test]
fn an_error_decides_about_a_refund_only_if_it_is_signed() {
    let (provider, driver) = start();
    provider.pay(ORDER, 600);
    provider.be(WeChatMode::NoBalance);
    let refused = driver.refund(&refund_request(150), fen(600)).unwrap_err();
    assert_eq!((refused.kind, refused.code.as_str()), (FailureKind::Refused, "NOT_ENOUGH"));
    provider.be(WeChatMode::UnsignedErrors);
    let unknown = RefundRequest { order_no: "202601150000000000000009".to_owned(), ..refund_request(150) };
    assert_eq!(driver.refund(&unknown, fen(600)).unwrap_err().kind, FailureKind::OutcomeUnknown);
    assert_eq!(driver.query_refund(ORDER, "R9").unwrap_err().kind, FailureKind::OutcomeUnknown);
    // An order that is not there yet may be paid later, so nothing depends on this answer.
    assert_eq!(driver.query("202601150000000000000009").unwrap(), TradeQueryOutcome::NotFound);
}

#[test]
fn refunds_end_in_every_state() {
    for (mode, state) in [
        (WeChatMode::AbnormalRefunds, WeChatRefundState::Abnormal),
        (WeChatMode::ClosedRefunds, WeChatRefundState::Closed),
    ] {
        let (provider, driver) = start();
        provider.pay(ORDER, 600);
        driver.refund(&refund_request(150), fen(600)).unwrap();
        provider.be(mode);
        assert_eq!(driver.query_refund(ORDER, REFUND_NO).unwrap().unwrap().state, state);
        let Some(WeChatEvent::Refund(refund)) = read(&driver, &provider.refund_notification(ORDER)) else { panic!() };
        assert_eq!(refund.state, state);
    }
}

#[test]
fn certificates_are_fetched_when_a_message_needs_them_and_at_most_once_a_minute() {
    let (provider, driver) = start();
    provider.pay(ORDER, 600);
    provider.be(WeChatMode::SignsWithCertificate);
    assert!(matches!(driver.query(ORDER), Ok(TradeQueryOutcome::Found(_))));
    assert_eq!(provider.calls().iter().filter(|call| call.ends_with("/v3/certificates")).count(), 1);
    assert!(driver.refresh_certificates().unwrap().is_empty());
    let (headers, body) = provider.notification("X", "transaction", &Value::Null, "platform_cert");
    assert_eq!(read(&driver, &(headers, body)), Some(WeChatEvent::Other("X".to_owned())));
}

#[test]
fn a_merchant_without_a_public_key_starts_with_fetched_certificates() {
    let provider = FakeWeChatPay::start_at(|| NOW);
    let bare = WeChatSettings { public_key: None, public_key_id: None, ..settings(&provider.url()) };
    provider.pay(ORDER, 600);
    assert!(matches!(driver(&bare).query(ORDER), Ok(TradeQueryOutcome::Found(_))));
    let fetched = driver(&bare).refresh_certificates().unwrap();
    assert_eq!(fetched[0].serial, published_wechat()["platform_certificate_serial"]);
    let restarted = WeChatSettings { platform_certificates: Some(fetched[0].pem.clone()), ..bare.clone() };
    let before = provider.calls().len();
    assert!(matches!(driver(&restarted).query(ORDER), Ok(TradeQueryOutcome::Found(_))));
    assert_eq!(provider.calls().len(), before + 1);
    provider.be(WeChatMode::NoCertificates);
    let failure = driver(&bare).refund(&refund_request(1), fen(600)).unwrap_err();
    assert_eq!((failure.kind, failure.code.as_str()), (FailureKind::Misconfigured, "no_verification_key"));
}

#[test]
fn a_bill_must_have_its_checksum() {
    let (provider, driver) = start();
    assert_eq!(driver.bill(NOW * 1000).unwrap(), None);
    provider.pay(ORDER, 600);
    provider.be(WeChatMode::WrongBillChecksum);
    assert_eq!(driver.bill(NOW * 1000).unwrap_err().code, "bill_checksum");
}
