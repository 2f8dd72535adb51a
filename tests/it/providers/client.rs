//! The shared HTTP client: requests on the wire, and how responses end.

use std::time::Duration;

use yarrow::providers::client::{Client, HttpResponse, Limits, Post};
use yarrow::providers::{Failure, FailureKind};

use crate::support::fake_provider::{FakeProvider, Reply};

fn client() -> Client {
    let second = Duration::from_secs(1);
    let limits = Limits {
        connect: 5 * second,
        first_byte: 20 * second,
        idle: 20 * second,
        total: 20 * second,
        reuse_connections: true,
    };
    Client::new("test", "test.url", limits)
}

fn post(provider: &FakeProvider, body: &[u8]) -> Result<HttpResponse, Failure> {
    let headers = [("content-type", "application/x-www-form-urlencoded"), ("host", "provider.example:8443")];
    client().post(&Post {
        url: &format!("{}/a?b=c", provider.url()),
        headers: &headers,
        body,
        total: None,
        is_unstreamed: false,
    })
}

#[test]
fn a_form_arrives_byte_for_byte() {
    let provider = FakeProvider::with_replies([Reply::json("{}").header("x-id", "7")]);
    let response = post(&provider, b"Service=a&Text=%E5%8D%A6+x%2By").unwrap();
    assert_eq!((response.status, response.header("x-id")), (200, Some("7")));
    assert_eq!(response.read_all(2).unwrap(), b"{}");
    let request = provider.only_request();
    assert_eq!(request.target, "/a?b=c");
    assert_eq!(request.body, b"Service=a&Text=%E5%8D%A6+x%2By");
    let form = [("Service", "a"), ("Text", "卦 x+y")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(request.form(), form);
    assert_eq!(request.headers.iter().filter(|(name, _)| name == "host").count(), 1);
    assert_eq!(request.header("host"), Some("provider.example:8443"));
    assert_eq!(request.header("accept-encoding"), Some("identity"));
}

#[test]
fn every_status_is_a_response() {
    for status in [204, 302, 400, 404, 500, 599] {
        let provider = FakeProvider::with_replies([Reply::status(status)]);
        assert_eq!(post(&provider, b"").unwrap().status, status);
    }
}

#[test]
fn rejects_a_response_one_byte_over_the_limit() {
    let provider = FakeProvider::with_replies([Reply::json("123")]);
    let failure = post(&provider, b"x").unwrap().read_all(2).unwrap_err();
    assert_eq!((failure.kind, failure.code.as_str()), (FailureKind::InvalidResponse, "answer_too_large"));
}

#[test]
fn reads_an_endless_error_only_as_far_as_needed() {
    let provider = FakeProvider::with_replies([Reply::status(500).body("x".repeat(4096)).endless()]);
    assert_eq!(post(&provider, b"x").unwrap().read_error().len(), 64 * 1024);
}

#[test]
fn an_endless_head_is_not_http() {
    let provider = FakeProvider::with_replies([Reply::status(200).header("x-long", &"x".repeat(100_000))]);
    let failure = post(&provider, b"x").err().unwrap();
    assert_eq!((failure.kind, failure.code.as_str()), (FailureKind::InvalidResponse, "not_http"));
}

#[test]
fn a_connection_lost_after_sending_leaves_the_outcome_unknown() {
    let provider = FakeProvider::with_replies([Reply::reset()]);
    let failure = post(&provider, b"x").err().unwrap();
    assert_eq!((failure.kind, failure.code.as_str()), (FailureKind::OutcomeUnknown, "connection_lost"));
    assert_eq!(provider.requests().len(), 1);
}

#[test]
fn an_upload_may_take_longer_than_a_response() {
    let limit = Duration::from_millis(100);
    let total = Duration::from_secs(20);
    let limits = Limits { connect: total, first_byte: limit, idle: limit, total, reuse_connections: false };
    let provider = FakeProvider::with_handler(move |_| Reply::status(200).after(10 * limit));
    let client = Client::new("test", "test.url", limits);
    let failure = client.send("PUT", &provider.url(), &[], b"x").err().unwrap();
    assert_eq!((failure.kind, failure.code.as_str()), (FailureKind::TimedOut, "first_byte_timeout"));
    assert_eq!(client.upload("PUT", &provider.url(), &[], b"x").unwrap().status, 200);
}
