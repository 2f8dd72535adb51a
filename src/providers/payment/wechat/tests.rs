use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::providers::payment::Currency;
use crate::providers::payment::{OrderState, OrderView, RejectReason, SettlementDecision, Trade, TradeStatus, judge};

const ORDER: &str = "202601150000000000000001";

fn published() -> Value {
    serde_json::from_str(include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/wechat.json"))).unwrap()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// The time at which the published messages are judged, in milliseconds.
fn now() -> i64 {
    published()["now"].as_i64().unwrap() * 1000
}

fn settings() -> WeChatSettings {
    let published = published();
    WeChatSettings {
        app_id: text(&published["appid"]),
        merchant_id: text(&published["mchid"]),
        merchant_serial: text(&published["merchant_serial_no"]),
        private_key: text(&published["keys"]["wechat_merchant"]["private_pkcs8_pem"]),
        api_v3_key: text(&published["apiv3_key"]),
        public_key_id: Some(text(&published["public_key_id"])),
        public_key: Some(text(&published["keys"]["wechat_public_key_mode"]["public_spki_pem"])),
        platform_certificates: Some(text(&published["platform_certificate_pem"])),
        base_url: "https://api.mch.weixin.qq.com".to_owned(),
        notify_url: "https://api.example.test/payment/notify/wechat".to_owned(),
        timeout: Duration::from_secs(1),
    }
}

fn provider_of(settings: &WeChatSettings) -> WeChatPay {
    WeChatPay::new(settings, Box::new(now)).ok().unwrap()
}

fn provider() -> WeChatPay {
    provider_of(&settings())
}

fn signature_of(message: &Value) -> WeChatSignature {
    let headers = message["headers"].as_object().unwrap();
    let find = |name: &str| headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    WeChatSignature::from_headers(|name| find(name).and_then(|(_, value)| value.as_str())).unwrap()
}

fn read(name: &str) -> Result<WeChatNotification, Rejection> {
    let message = &published()["notifications"][name];
    provider().read_notification(&signature_of(message), text(&message["body"]).as_bytes(), now())
}

#[test]
fn signs_published_requests_equally() {
    let (provider, published) = (provider(), published());
    let requests = published["requests"].as_object().unwrap();
    assert_eq!(requests.len(), 7);
    for (name, request) in requests {
        let field = |name: &str| text(&request[name]);
        let time = field("timestamp").parse().unwrap();
        let header =
            provider.merchant.authorization(&field("method"), &field("path"), &field("body"), time, &field("nonce"));
        assert_eq!(header.unwrap(), field("authorization"), "{name}");
    }
}

#[test]
fn contents_equal_the_published_ones_byte_for_byte() {
    let requests = published()["requests"].clone();
    let settings = settings();
    let order = OrderRequest {
        order_no: ORDER.to_owned(),
        amount: Fen::parse("6.00").unwrap(),
        subject: "金币 60 个".to_owned(),
        expires_at: now() + 30 * 60_000,
        now: now(),
    };
    let json = |client| {
        let content = prepay::content(client, &order, &settings.app_id, &settings.merchant_id, &settings.notify_url);
        serde_json::to_string(&content.ok().unwrap()).unwrap()
    };
    assert_eq!(json(WeChatClient::MobileApp), text(&requests["app_prepay"]["body"]));
    // The published one has no time of expiry.
    let by_page = json(WeChatClient::H5 { client_ip: "203.0.113.9" });
    assert_eq!(
        by_page.replace(r#""time_expire":"2026-01-15T17:00:00+08:00","#, ""),
        text(&requests["h5_prepay"]["body"])
    );
    assert!(json(WeChatClient::Jsapi { open_id: "oUpF8u" }).ends_with(r#""payer":{"openid":"oUpF8u"}}"#));
    let refund = RefundContent {
        out_trade_no: ORDER,
        out_refund_no: "R0123456789abcdef01234567",
        reason: "用户取消",
        notify_url: &settings.notify_url,
        amount: RefundAmount { refund: 150, total: 600, currency: "CNY" },
    };
    assert_eq!(serde_json::to_string(&refund).unwrap(), text(&requests["refund"]["body"]));
    let close = CloseContent { mchid: &settings.merchant_id };
    assert_eq!(serde_json::to_string(&close).unwrap(), text(&requests["close"]["body"]));
    assert_eq!(format!("{}/close", order_path(ORDER)), text(&requests["close"]["path"]));
}

#[test]
fn signs_the_published_client_calls_equally() {
    let (provider, published) = (provider(), published());
    let call = |client, name: &str| {
        let vector = &published["client_sign"][name];
        let answer = PrepayAnswer { prepay_id: Some(text(&vector["prepay_id"])), ..PrepayAnswer::default() };
        let time = text(&vector["timestamp"]).parse().unwrap();
        let made = prepay::payment(client, answer, &provider.merchant, &provider.app_id, time, &text(&vector["nonce"]));
        (made.unwrap().unwrap(), text(&vector["sign"]))
    };
    let (made, sign) = call(WeChatClient::MobileApp, "app");
    assert_eq!(
        serde_json::to_value(made).unwrap(),
        json!({
            "appid": "wx0123456789abcdef", "partnerid": "1900000109", "package": "Sign=WXPay", "sign": sign,
            "prepayid": "wx15163000000000000000000000000001", "noncestr": "5K8264ILTKCH16CQ2502SI8ZNMTM67VS",
            "timestamp": "1768465800",
        })
    );
    let (made, sign) = call(WeChatClient::Jsapi { open_id: "oUpF8u" }, "jsapi");
    assert_eq!(
        serde_json::to_value(made).unwrap(),
        json!({
            "appId": "wx0123456789abcdef", "timeStamp": "1768465800", "nonceStr": "5K8264ILTKCH16CQ2502SI8ZNMTM67VS",
            "package": "prepay_id=wx15163000000000000000000000000001", "signType": "RSA", "paySign": sign,
        })
    );
}

#[test]
fn verifies_published_answers_as_expected() {
    let (provider, published) = (provider(), published());
    let answers = published["responses"].as_object().unwrap();
    assert_eq!(answers.len(), 15);
    for (name, answer) in answers {
        let verified = signature_of(answer).verify(text(&answer["body"]).as_bytes(), &provider.keys, now());
        let refusal = answer["must_refuse"].as_str();
        let expected = answer["signature_valid"].as_bool().unwrap() && refusal.is_none();
        assert_eq!(verified.is_ok(), expected, "{name}: {verified:?}");
        let reason = match name.as_str() {
            "stale" => Some(RejectionReason::StaleTimestamp),
            "signtest_probe" => Some(RejectionReason::ProbeTraffic),
            "tampered" | "other_key" => Some(RejectionReason::SignatureInvalid),
            _ => None,
        };
        assert_eq!(verified.err(), reason, "{name}");
    }
}

#[test]
fn reads_published_trades() {
    let published = published();
    let trade = |name: &str| {
        let report: TradeReport = parsed(text(&published["responses"][name]["body"]).as_bytes()).unwrap();
        report.trade().unwrap()
    };
    for name in ["query_success", "query_success_platform_certificate", "query_refund_state", "query_coupon"] {
        let paid = trade(name);
        assert!(paid.is_paid(), "{name}");
        assert_eq!((paid.amount.as_fen(), paid.paid_at), (600, Some(1_768_465_780_000)), "{name}");
        assert_eq!(paid.trade_no, "4200001234202601150000000001");
    }
    let open = trade("query_notpay");
    assert_eq!((open.status, open.is_paid(), open.trade_no.as_str()), (TradeStatus::WaitBuyerPay, false, ""));
    let body = text(&published["responses"]["refund_processing"]["body"]);
    let refund = refund_in(body.as_bytes(), ORDER, "R0123456789abcdef01234567").unwrap();
    assert_eq!((refund.state, refund.amount.as_fen()), (WeChatRefundState::Processing, 150));
    assert!(refund_in(body.as_bytes(), ORDER, "R2").is_err());
}

#[test]
fn judges_published_notifications_as_expected() {
    let published = published();
    let notifications = published["notifications"].as_object().unwrap();
    assert_eq!(notifications.len(), 13);
    for (name, message) in notifications {
        let outcome = read(name);
        let is_genuine = message["signature_valid"].as_bool().unwrap();
        // The amount is compared with the order later.
        let is_refused = message["must_refuse"].as_str().is_some_and(|reason| reason != "wrong_amount");
        assert_eq!(outcome.is_ok(), is_genuine && !is_refused, "{name}: {outcome:?}");
        let Err(rejection) = outcome else { continue };
        let reason = match name.as_str() {
            "wrong_appid" => RejectionReason::WrongApp,
            "not_cny" => RejectionReason::WrongCurrency,
            "state_not_success" => RejectionReason::NotPaid,
            "wrong_apiv3_key" => RejectionReason::Undecryptable,
            "signtest_probe" => RejectionReason::ProbeTraffic,
            "tampered" => RejectionReason::SignatureInvalid,
            other => panic!("{other}"),
        };
        assert_eq!((rejection.reason, rejection.is_genuine), (reason, is_genuine), "{name}");
        assert_eq!(rejection.notify_id.as_deref(), Some("EV-2026011516300000001"), "{name}");
    }
}

fn paid_trade(name: &str) -> Trade {
    match read(name).unwrap().event {
        WeChatEvent::Paid(trade) => trade,
        other => panic!("{other:?}"),
    }
}

fn open_order() -> OrderView<'static> {
    OrderView {
        channel: PROVIDER,
        order_no: ORDER,
        amount: Fen::parse("6.00").unwrap(),
        currency: Currency::CNY,
        state: OrderState::Created,
        trade_no: None,
        paid: None,
        refunded: Fen::ZERO,
    }
}

#[test]
fn payments_credit_and_wrong_amounts_do_not() {
    for name in ["paid", "paid_again_other_id", "paid_platform_certificate", "paid_empty_associated_data"] {
        assert_eq!(judge(&paid_trade(name), Some(&open_order())), SettlementDecision::Credit, "{name}");
    }
    let wrong = judge(&paid_trade("wrong_amount"), Some(&open_order()));
    assert_eq!(wrong, SettlementDecision::Reject(RejectReason::WrongAmount));
}

#[test]
fn refunds_are_reported_one_by_one() {
    for (name, state, outcome) in [
        ("refund_part", WeChatRefundState::Succeeded, "Succeeded { amount: Fen(150) }"),
        ("refund_closed", WeChatRefundState::Closed, "Closed"),
    ] {
        let WeChatEvent::Refund(refund) = read(name).unwrap().event else { panic!("{name}") };
        assert_eq!((refund.state, refund.amount.as_fen(), refund.total.as_fen()), (state, 150, 600), "{name}");
        assert_eq!(format!("{:?}", refund.outcome()), outcome);
    }
}

#[test]
fn the_time_of_receipt_decides_and_not_the_time_of_judging() {
    let message = &published()["notifications"]["paid"];
    let (signature, body) = (signature_of(message), text(&message["body"]));
    let reason_at = |at| provider().read_notification(&signature, body.as_bytes(), at).err().map(|found| found.reason);
    for (offset, reason) in [
        (0, None),
        (300, None),
        (-300, None),
        (301, Some(RejectionReason::StaleTimestamp)),
        (-301, Some(RejectionReason::StaleTimestamp)),
    ] {
        assert_eq!(reason_at(now() + offset * 1000), reason, "{offset}");
    }
    assert_eq!(reason_at(i64::MIN), Some(RejectionReason::StaleTimestamp));
    let stored = serde_json::to_string(&signature).unwrap();
    assert_eq!(serde_json::from_str::<WeChatSignature>(&stored).unwrap(), signature);
}

#[test]
fn a_message_verifies_with_the_key_that_it_names_only() {
    let published = published();
    let without_certificate = WeChatSettings { platform_certificates: None, ..settings() };
    let without_public_key = WeChatSettings { public_key: None, public_key_id: None, ..settings() };
    for (name, settings) in [("paid_platform_certificate", without_certificate), ("paid", without_public_key)] {
        let message = &published["notifications"][name];
        let read =
            provider_of(&settings).read_notification(&signature_of(message), text(&message["body"]).as_bytes(), now());
        assert_eq!(read.unwrap_err().reason, RejectionReason::UnknownKey, "{name}");
    }
    let mut renamed = published["notifications"]["paid"].clone();
    renamed["headers"]["Wechatpay-Serial"] = published["platform_certificate_serial"].clone();
    let read = provider().read_notification(&signature_of(&renamed), text(&renamed["body"]).as_bytes(), now());
    assert_eq!(read.unwrap_err().reason, RejectionReason::SignatureInvalid);
}

#[test]
fn rejects_incomplete_and_unusual_headers() {
    let message = published()["notifications"]["paid"].clone();
    let body = text(&message["body"]);
    let read = |name: &str, value: Option<&str>| {
        let mut headers = message["headers"].as_object().unwrap().clone();
        match value {
            Some(value) => headers.insert(name.to_owned(), value.into()),
            None => headers.remove(name),
        };
        let find = |name: &str| headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        let signature = WeChatSignature::from_headers(|name| find(name).and_then(|(_, value)| value.as_str()))?;
        provider().read_notification(&signature, body.as_bytes(), now()).map(drop).map_err(|found| found.reason)
    };
    assert_eq!(read("Wechatpay-Signature-Type", None), Ok(()));
    for (name, value, reason) in [
        ("Wechatpay-Nonce", None, RejectionReason::HeaderMissing("wechatpay-nonce")),
        ("Wechatpay-Serial", Some(""), RejectionReason::HeaderMissing("wechatpay-serial")),
        ("Wechatpay-Signature-Type", Some("WECHATPAY2-SM2-WITH-SM3"), RejectionReason::WrongSignType),
        ("Wechatpay-Timestamp", Some("+1768465800"), RejectionReason::Malformed),
        ("Wechatpay-Timestamp", Some("1768465801"), RejectionReason::SignatureInvalid),
        ("Wechatpay-Signature", Some("%"), RejectionReason::SignatureInvalid),
        ("Wechatpay-Serial", Some("4f"), RejectionReason::UnknownKey),
    ] {
        assert_eq!(read(name, value), Err(reason), "{name}");
    }
    let long = "x".repeat(3000);
    assert_eq!(read("Wechatpay-Signature", Some(&long)), Err(RejectionReason::HeaderMissing("wechatpay-signature")));
}

#[test]
fn rejects_changed_ciphertexts_and_large_bodies() {
    let key = ApiV3Key::parse("abcdefghijklmnopqrstuvwxyz012345").unwrap();
    let message: Value = serde_json::from_str(&text(&published()["notifications"]["paid"]["body"])).unwrap();
    let open = |change: fn(&mut Value)| {
        let mut resource = message["resource"].clone();
        change(&mut resource);
        key.open(&serde_json::from_value(resource).unwrap()).map(|text| !text.is_empty())
    };
    assert_eq!(open(|_| ()), Ok(true));
    assert_eq!(open(|resource| resource["nonce"] = "fdasflkja485".into()), Err(RejectionReason::Undecryptable));
    assert_eq!(open(|resource| resource["associated_data"] = "refund".into()), Err(RejectionReason::Undecryptable));
    assert_eq!(open(|resource| resource["nonce"] = "short".into()), Err(RejectionReason::Malformed));
    assert_eq!(open(|resource| resource["ciphertext"] = "AAAA".into()), Err(RejectionReason::Undecryptable));
    assert_eq!(open(|resource| resource["ciphertext"] = "?".into()), Err(RejectionReason::Malformed));
    assert_eq!(open(|resource| resource["algorithm"] = "AEAD_SM4_GCM".into()), Err(RejectionReason::WrongSignType));
    let signature = signature_of(&published()["notifications"]["paid"]);
    let large = provider().read_notification(&signature, &vec![b' '; 16 * 1024 + 1], now());
    assert_eq!(large.unwrap_err().reason, RejectionReason::TooLarge);
}

#[test]
fn names_the_faults_of_settings() {
    type Change = fn(&mut WeChatSettings);
    let merchant_key = |settings: &mut WeChatSettings| {
        settings.public_key = Some(text(&published()["keys"]["wechat_merchant"]["public_spki_pem"]));
    };
    let cases: [(Change, &str); 11] = [
        (|settings| settings.app_id = String::new(), "app_id"),
        (|settings| settings.merchant_id = "19a".to_owned(), "merchant_id"),
        (|settings| settings.merchant_serial = "serial".to_owned(), "merchant_serial"),
        (|settings| settings.private_key = "key".to_owned(), "private_key"),
        (|settings| settings.api_v3_key.push('6'), "api_v3_key"),
        (|settings| settings.public_key_id = None, "public_key_id"),
        (|settings| settings.public_key_id = Some("0119".to_owned()), "public_key_id"),
        (|settings| settings.platform_certificates = Some("MAA=".to_owned()), "platform_certificates"),
        (|settings| settings.base_url = "http://api.mch.weixin.qq.com".to_owned(), "base_url"),
        (|settings| settings.notify_url = "https://api.example.test/?a=b".to_owned(), "notify_url"),
        (merchant_key, "public_key"),
    ];
    for (change, setting) in cases {
        let mut settings = settings();
        change(&mut settings);
        let faults = WeChatPay::new(&settings, Box::new(now)).err().unwrap();
        assert_eq!(faults.iter().map(|fault| fault.setting).collect::<Vec<_>>(), [setting]);
    }
    assert!(!format!("{:?}", settings()).contains("BEGIN"));
    assert!(!format!("{:?}", provider().api_v3_key).contains("abcdef"));
}
