//! `SendSms` as the vendor sees it, and the rule that nothing is repeated whose outcome is in doubt.

use std::time::{Duration, Instant};

use yarrow::providers::sms::aliyun::{Aliyun, Settings};
use yarrow::providers::sms::{CodeMessage, Receipt, SmsSender};
use yarrow::providers::{Failure, FailureKind};

use crate::support::vendors::{Reply, Vendor};

const KEY_ID: &str = "TESTAccessKeyId000000001";
const SECRET: &str = "TESTAccessKeySecret0000000000001";
/// 2026-01-15T08:30:00Z.
const NOW: i64 = 1_768_465_800_000;
const ACCEPTED: &str = r#"{"Code":"OK","Message":"OK","BizId":"900619746936498440^0","RequestId":"R-1"}"#;

fn sender(url: &str, total: Duration) -> Aliyun {
    let settings = Settings {
        endpoint: url.to_owned(),
        access_key_id: KEY_ID.into(),
        access_key_secret: SECRET.into(),
        sign_name: "易 卦*~(测)'试".into(),
        template_code: "SMS_000000001".into(),
    };
    Aliyun::with_total_timeout(settings, Box::new(|| NOW), total)
}

fn message() -> CodeMessage {
    CodeMessage { phone_number: "+8613900000000".into(), code: "012345".into(), expires_in_minutes: 5 }
}

fn send(vendor: &Vendor) -> Result<Receipt, Failure> {
    send_to(&vendor.url())
}

/// Leaves a busy machine more time than the five seconds of every day.
fn send_to(url: &str) -> Result<Receipt, Failure> {
    sender(url, Duration::from_secs(20)).send_code(&message())
}

#[test]
fn a_message_arrives_signed_and_whole() {
    let vendor = Vendor::playing([Reply::json(ACCEPTED)]);
    assert_eq!(send(&vendor).unwrap().provider_id.as_deref(), Some("900619746936498440^0"));
    let request = vendor.only_request();
    request.check_acs3(KEY_ID, SECRET).unwrap();
    assert_eq!((request.method.as_str(), request.path(), request.body.len()), ("POST", "/", 0));
    assert_eq!(request.parameter("PhoneNumbers").as_deref(), Some("13900000000"));
    assert_eq!(request.parameter("SignName").as_deref(), Some("易 卦*~(测)'试"));
    assert_eq!(request.parameter("TemplateCode").as_deref(), Some("SMS_000000001"));
    assert_eq!(request.parameter("TemplateParam").as_deref(), Some(r#"{"code":"012345"}"#));
    assert_eq!(request.header("x-acs-date"), Some("2026-01-15T08:30:00Z"));
    assert_eq!(request.header("x-acs-version"), Some("2017-05-25"));
    assert_eq!(request.header("x-acs-action"), Some("SendSms"));
    assert_eq!(request.header("host"), vendor.url().strip_prefix("http://"));
    assert_eq!(request.header("accept"), Some("application/json"));
}

#[test]
fn the_vendors_check_does_find_faults() {
    let vendor = Vendor::playing([Reply::json(ACCEPTED)]);
    send(&vendor).unwrap();
    let request = vendor.only_request();
    assert!(request.check_acs3(KEY_ID, "another secret").is_err());
    let mut tampered = request.clone();
    tampered.target = tampered.target.replace("13900000000", "13900000001");
    assert!(tampered.check_acs3(KEY_ID, SECRET).is_err());
    let mut tampered = request;
    tampered.body = b"x".to_vec();
    assert!(tampered.check_acs3(KEY_ID, SECRET).is_err());
}

#[test]
fn throttling_is_repeated_once_with_another_nonce() {
    let throttled = r#"{"Code":"Throttling.User","RequestId":"R-0"}"#;
    let vendor = Vendor::playing([Reply::json(throttled).with_status(400), Reply::json(ACCEPTED)]);
    send(&vendor).unwrap();
    let requests = vendor.requests();
    assert_eq!(requests.len(), 2);
    for request in &requests {
        request.check_acs3(KEY_ID, SECRET).unwrap();
    }
    assert_ne!(requests[0].header("x-acs-signature-nonce"), requests[1].header("x-acs-signature-nonce"));
    assert_ne!(requests[0].connection, requests[1].connection, "a message must not travel on a kept connection");
}

#[test]
fn it_is_repeated_once_only() {
    let unavailable = Reply::json(r#"{"Code":"ServiceUnavailable","RequestId":"R-3"}"#).with_status(503);
    let vendor = Vendor::playing([unavailable.clone(), unavailable, Reply::json(ACCEPTED)]);
    let failure = send(&vendor).unwrap_err();
    assert_eq!((failure.kind, failure.request_id.as_deref()), (FailureKind::Busy, Some("R-3")));
    assert_eq!(vendor.requests().len(), 2);
}

#[test]
fn a_vendor_who_wants_to_be_left_alone_for_long_is() {
    let reply = Reply::json(r#"{"Code":"Throttling"}"#).with_status(429).header("x-acs-retry-after", "60000");
    let vendor = Vendor::playing([reply]);
    let failure = send(&vendor).unwrap_err();
    assert_eq!((failure.kind, failure.retry_after), (FailureKind::Busy, Some(Duration::from_mins(1))));
    assert_eq!(vendor.requests().len(), 1);
}

#[test]
fn whatever_may_have_been_accepted_is_not_repeated() {
    let accepted_in_part = Reply::json(ACCEPTED);
    let cases = [
        ("reset", Reply::reset(), FailureKind::OutcomeUnknown, "connection_lost"),
        ("silent", Reply::json(ACCEPTED).after(Duration::from_secs(4)), FailureKind::TimedOut, "first_byte_timeout"),
        ("cut", accepted_in_part.clone().cut_after(20), FailureKind::OutcomeUnknown, "connection_lost"),
        ("stalled", accepted_in_part.stalled_after(20), FailureKind::TimedOut, "total_timeout"),
        ("no JSON", Reply::json("<html>"), FailureKind::OutcomeUnknown, "answer_not_understood"),
        ("huge", Reply::json(" ".repeat(4096)).endless(), FailureKind::OutcomeUnknown, "answer_not_understood"),
        ("no code", Reply::json("{}"), FailureKind::OutcomeUnknown, "answer_not_understood"),
        ("broken gateway", Reply::status(502).body("<html>"), FailureKind::OutcomeUnknown, "http_502"),
        ("no error body", Reply::status(503), FailureKind::OutcomeUnknown, "http_503"),
        (
            "broken product",
            Reply::json(r#"{"Code":"InternalError"}"#).with_status(500),
            FailureKind::OutcomeUnknown,
            "InternalError",
        ),
    ];
    for (name, reply, kind, code) in cases {
        let vendor = Vendor::playing([reply]);
        let failure = sender(&vendor.url(), Duration::from_secs(2)).send_code(&message()).unwrap_err();
        // Both limits are two seconds here; which of them notices first does not matter.
        let code = if failure.kind == FailureKind::TimedOut { failure.code.as_str() } else { code };
        assert_eq!((failure.kind, failure.code.as_str()), (kind, code), "{name}");
        assert!(!failure.is_certainly_not_accepted(), "{name}");
        assert_eq!(vendor.requests().len(), 1, "{name}");
    }
}

#[test]
fn refusals_say_who_must_act() {
    let cases = [
        ("isv.BUSINESS_LIMIT_CONTROL", FailureKind::RecipientLimited),
        ("isv.MOBILE_NUMBER_ILLEGAL", FailureKind::Refused),
        ("isv.SMS_TEMPLATE_ILLEGAL", FailureKind::Misconfigured),
        ("isv.AMOUNT_NOT_ENOUGH", FailureKind::Misconfigured),
    ];
    for (code, kind) in cases {
        let vendor = Vendor::playing([Reply::json(format!(r#"{{"Code":"{code}","Message":"触发分钟级流控"}}"#))]);
        let failure = send(&vendor).unwrap_err();
        assert_eq!((failure.kind, failure.code.as_str()), (kind, code));
        assert!(failure.is_certainly_not_accepted(), "{code}");
        assert_eq!(vendor.requests().len(), 1, "{code}");
    }
}

#[test]
fn nobody_listening_is_unreachable_and_tried_twice() {
    let started = Instant::now();
    let failure = send_to(&Vendor::nowhere()).unwrap_err();
    assert_eq!((failure.kind, failure.code.as_str()), (FailureKind::Unreachable, "connect_failed"));
    assert!(failure.is_certainly_not_accepted());
    assert!(started.elapsed() >= Duration::from_millis(250), "there is a pause between the attempts");
}

#[test]
fn a_name_that_does_not_exist_is_unreachable() {
    let failure = send_to("http://sms.invalid").unwrap_err();
    assert!(matches!(failure.kind, FailureKind::Unreachable | FailureKind::TimedOut), "{failure}");
    assert!(failure.is_certainly_not_accepted());
}

#[test]
fn plain_http_behind_an_https_address_is_unreachable() {
    let vendor = Vendor::playing([]);
    let failure = send_to(&vendor.url().replace("http:", "https:")).unwrap_err();
    assert!(failure.is_certainly_not_accepted(), "{failure}");
}

#[test]
fn redirects_are_not_followed() {
    let elsewhere = Vendor::playing([Reply::json(ACCEPTED)]);
    let vendor = Vendor::playing([Reply::status(307).header("location", &elsewhere.url())]);
    let failure = send(&vendor).unwrap_err();
    assert_eq!((failure.kind, failure.code.as_str()), (FailureKind::Misconfigured, "http_307"));
    assert!(elsewhere.requests().is_empty());
}

#[test]
fn failures_show_neither_number_nor_code_nor_secret() {
    let echo = r#"{"Code":"isv.MOBILE_NUMBER_ILLEGAL","Message":"13900000000 012345","RequestId":"R"}"#;
    let vendor = Vendor::playing([Reply::json(echo)]);
    let failure = send(&vendor).unwrap_err();
    let shown = format!("{failure} {failure:?}");
    for secret in ["13900000000", "012345", SECRET, KEY_ID] {
        assert!(!shown.contains(secret), "{shown}");
    }
}
