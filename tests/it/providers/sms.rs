//! `SendSms`: requests, and no retry if the outcome is unknown.

use std::time::{Duration, Instant};

use yarrow::providers::sms::aliyun::{AliyunSms, AliyunSmsSettings};
use yarrow::providers::sms::{CodeMessage, SmsSender};
use yarrow::providers::{Failure, FailureKind, MessageReceipt};

use crate::support::fake_provider::{FakeProvider, Reply};

const KEY_ID: &str = "TESTAccessKeyId000000001";
const SECRET: &str = "TESTAccessKeySecret0000000000001";
/// 2026-01-15T08:30:00Z.
const NOW: i64 = 1_768_465_800_000;
const ACCEPTED: &str = r#"{"Code":"OK","Message":"OK","BizId":"900619746936498440^0","RequestId":"R-1"}"#;

fn sender(url: &str, total: Duration) -> AliyunSms {
    let settings = AliyunSmsSettings {
        endpoint: url.to_owned(),
        access_key_id: KEY_ID.into(),
        access_key_secret: SECRET.into(),
        sign_name: "易 卦*~(测)'试".into(),
        template_code: "SMS_000000001".into(),
    };
    AliyunSms::with_total_timeout(settings, Box::new(|| NOW), total)
}

fn message() -> CodeMessage {
    CodeMessage { phone_number: "+8613900000000".into(), code: "012345".into(), expires_in_minutes: 5 }
}

fn send(provider: &FakeProvider) -> Result<MessageReceipt, Failure> {
    send_to(&provider.url())
}

/// Allows more than the default five seconds, for busy machines.
fn send_to(url: &str) -> Result<MessageReceipt, Failure> {
    sender(url, Duration::from_secs(20)).send_code(&message())
}

#[test]
fn a_message_arrives_signed_and_complete() {
    let provider = FakeProvider::with_replies([Reply::json(ACCEPTED)]);
    assert_eq!(send(&provider).unwrap().provider_id.as_deref(), Some("900619746936498440^0"));
    let request = provider.only_request();
    request.check_acs3(KEY_ID, SECRET).unwrap();
    assert_eq!((request.method.as_str(), request.path(), request.body.len()), ("POST", "/", 0));
    assert_eq!(request.parameter("PhoneNumbers").as_deref(), Some("13900000000"));
    assert_eq!(request.parameter("SignName").as_deref(), Some("易 卦*~(测)'试"));
    assert_eq!(request.parameter("TemplateCode").as_deref(), Some("SMS_000000001"));
    assert_eq!(request.parameter("TemplateParam").as_deref(), Some(r#"{"code":"012345"}"#));
    assert_eq!(request.header("x-acs-date"), Some("2026-01-15T08:30:00Z"));
    assert_eq!(request.header("x-acs-version"), Some("2017-05-25"));
    assert_eq!(request.header("x-acs-action"), Some("SendSms"));
    assert_eq!(request.header("host"), provider.url().strip_prefix("http://"));
    assert_eq!(request.header("accept"), Some("application/json"));
}

#[test]
fn the_signature_check_detects_errors() {
    let provider = FakeProvider::with_replies([Reply::json(ACCEPTED)]);
    send(&provider).unwrap();
    let request = provider.only_request();
    assert!(request.check_acs3(KEY_ID, "another secret").is_err());
    let mut tampered = request.clone();
    tampered.target = tampered.target.replace("13900000000", "13900000001");
    assert!(tampered.check_acs3(KEY_ID, SECRET).is_err());
    let mut tampered = request;
    tampered.body = b"x".to_vec();
    assert!(tampered.check_acs3(KEY_ID, SECRET).is_err());
}

#[test]
fn retries_throttling_once_with_another_nonce() {
    let throttled = r#"{"Code":"Throttling.User","RequestId":"R-0"}"#;
    let provider = FakeProvider::with_replies([Reply::json(throttled).with_status(400), Reply::json(ACCEPTED)]);
    send(&provider).unwrap();
    let requests = provider.requests();
    assert_eq!(requests.len(), 2);
    for request in &requests {
        request.check_acs3(KEY_ID, SECRET).unwrap();
    }
    assert_ne!(requests[0].header("x-acs-signature-nonce"), requests[1].header("x-acs-signature-nonce"));
    assert_ne!(requests[0].connection, requests[1].connection, "a message must not be sent on a reused connection");
}

#[test]
fn retries_only_once() {
    let unavailable = Reply::json(r#"{"Code":"ServiceUnavailable","RequestId":"R-3"}"#).with_status(503);
    let provider = FakeProvider::with_replies([unavailable.clone(), unavailable, Reply::json(ACCEPTED)]);
    let failure = send(&provider).unwrap_err();
    assert_eq!((failure.kind, failure.request_id.as_deref()), (FailureKind::Busy, Some("R-3")));
    assert_eq!(provider.requests().len(), 2);
}

#[test]
fn does_not_retry_after_a_long_retry_delay() {
    let reply = Reply::json(r#"{"Code":"Throttling"}"#).with_status(429).header("x-acs-retry-after", "60000");
    let provider = FakeProvider::with_replies([reply]);
    let failure = send(&provider).unwrap_err();
    assert_eq!((failure.kind, failure.retry_after), (FailureKind::Busy, Some(Duration::from_mins(1))));
    assert_eq!(provider.requests().len(), 1);
}

#[test]
fn does_not_retry_if_the_message_may_have_been_accepted() {
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
        let provider = FakeProvider::with_replies([reply]);
        let failure = sender(&provider.url(), Duration::from_secs(2)).send_code(&message()).unwrap_err();
        // Both timeouts are two seconds here, and either may end the call.
        let code = if failure.kind == FailureKind::TimedOut { failure.code.as_str() } else { code };
        assert_eq!((failure.kind, failure.code.as_str()), (kind, code), "{name}");
        assert!(!failure.is_certainly_not_accepted(), "{name}");
        assert_eq!(provider.requests().len(), 1, "{name}");
    }
}

#[test]
fn rejections_map_to_an_action() {
    let cases = [
        ("isv.BUSINESS_LIMIT_CONTROL", FailureKind::RecipientLimited),
        ("isv.MOBILE_NUMBER_ILLEGAL", FailureKind::Refused),
        ("isv.SMS_TEMPLATE_ILLEGAL", FailureKind::Misconfigured),
        ("isv.AMOUNT_NOT_ENOUGH", FailureKind::Misconfigured),
    ];
    for (code, kind) in cases {
        let provider =
            FakeProvider::with_replies([Reply::json(format!(r#"{{"Code":"{code}","Message":"触发分钟级流控"}}"#))]);
        let failure = send(&provider).unwrap_err();
        assert_eq!((failure.kind, failure.code.as_str()), (kind, code));
        assert!(failure.is_certainly_not_accepted(), "{code}");
        assert_eq!(provider.requests().len(), 1, "{code}");
    }
}

#[test]
fn an_unused_address_is_unreachable_and_tried_twice() {
    let started = Instant::now();
    let failure = send_to(&FakeProvider::unreachable_url()).unwrap_err();
    assert_eq!((failure.kind, failure.code.as_str()), (FailureKind::Unreachable, "connect_failed"));
    assert!(failure.is_certainly_not_accepted());
    assert!(started.elapsed() >= Duration::from_millis(250), "there is a pause between the attempts");
}

#[test]
fn an_unknown_host_is_unreachable() {
    let failure = send_to("http://sms.invalid").unwrap_err();
    assert!(matches!(failure.kind, FailureKind::Unreachable | FailureKind::TimedOut), "{failure}");
    assert!(failure.is_certainly_not_accepted());
}

#[test]
fn plain_http_at_an_https_url_is_unreachable() {
    let provider = FakeProvider::with_replies([]);
    let failure = send_to(&provider.url().replace("http:", "https:")).unwrap_err();
    assert!(failure.is_certainly_not_accepted(), "{failure}");
}

#[test]
fn does_not_follow_redirects() {
    let elsewhere = FakeProvider::with_replies([Reply::json(ACCEPTED)]);
    let provider = FakeProvider::with_replies([Reply::status(307).header("location", &elsewhere.url())]);
    let failure = send(&provider).unwrap_err();
    assert_eq!((failure.kind, failure.code.as_str()), (FailureKind::Misconfigured, "http_307"));
    assert!(elsewhere.requests().is_empty());
}

#[test]
fn errors_contain_neither_number_nor_code_nor_secret() {
    let echo = r#"{"Code":"isv.MOBILE_NUMBER_ILLEGAL","Message":"13900000000 012345","RequestId":"R"}"#;
    let provider = FakeProvider::with_replies([Reply::json(echo)]);
    let failure = send(&provider).unwrap_err();
    let shown = format!("{failure} {failure:?}");
    for secret in ["13900000000", "012345", SECRET, KEY_ID] {
        assert!(!shown.contains(secret), "{shown}");
    }
}
