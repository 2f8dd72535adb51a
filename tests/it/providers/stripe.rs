//! Stripe against a correct and a faulty provider.

use std::time::Duration;

use yarrow::providers::{
    FailureKind,
    payment::stripe::{Stripe, StripeEvent, StripeOrder, StripeRefundRequest, StripeSettings},
};

use crate::support::stripe::{FakeStripe, STRIPE_KEY, STRIPE_SECRET, stripe_payment_of};

const ORDER: &str = "202601150000000000000001";
const NOW: i64 = 1_768_465_800;

fn start() -> (FakeStripe, Stripe) {
    let provider = FakeStripe::start();
    let settings = StripeSettings {
        secret_key: STRIPE_KEY.into(),
        webhook_secrets: vec![STRIPE_SECRET.into()],
        base_url: provider.url(),
        timeout: Duration::from_secs(2),
    };
    (provider, Stripe::new(&settings).ok().unwrap())
}

fn order() -> StripeOrder {
    StripeOrder {
        order_no: ORDER.to_owned(),
        amount: 99,
        currency: "usd".to_owned(),
        subject: "60 coins & more".to_owned(),
        success_url: "https://example.com/paid?a=b&c=d".to_owned(),
        cancel_url: "https://example.com/".to_owned(),
        expires_at: (NOW + 3600) * 1000,
        now: NOW * 1000,
    }
}

fn refund_request(session_id: &str) -> StripeRefundRequest {
    StripeRefundRequest { payment_intent: stripe_payment_of(session_id), refund_no: "R1".to_owned(), amount: 33 }
}

#[test]
fn an_order_is_paid_and_refunded() {
    let (provider, stripe) = start();
    let session = stripe.create_session(&order()).unwrap();
    assert!(session.url.is_some() && !session.is_paid());
    assert_eq!(stripe.create_session(&order()).unwrap().id, session.id);
    provider.pay(&session.id);
    let paid = stripe.session(&session.id).unwrap().unwrap();
    assert!(paid.is_paid());
    assert_eq!(
        (paid.amount_total, paid.payment_intent.as_deref()),
        (Some(99), Some(stripe_payment_of(&session.id).as_str()))
    );
    let (signature, body) = provider.webhook("checkout.session.completed", &session.id, NOW);
    let read = stripe.read_webhook(Some(&signature), body.as_bytes(), NOW * 1000).unwrap();
    assert!(matches!(read.event, StripeEvent::Paid(checkout) if checkout.order_no == ORDER && checkout.amount == 99));
    for _ in 0..2 {
        assert_eq!(stripe.refund(&refund_request(&session.id)).unwrap().status, "succeeded");
    }
    assert_eq!(provider.refund_count(), 1);
    assert_eq!(stripe.session("cs_9").unwrap(), None);
}

#[test]
fn requests_are_forms_with_a_pinned_version_and_a_key_for_repetition() {
    let (provider, stripe) = start();
    stripe.create_session(&order()).unwrap();
    let request = &provider.requests()[0];
    let form = request.form();
    let value = |name: &str| form.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    assert_eq!(value("line_items[0][price_data][product_data][name]"), Some("60 coins & more"));
    assert_eq!(value("success_url"), Some("https://example.com/paid?a=b&c=d"));
    assert_eq!(value("expires_at"), Some("1768469400"));
    assert_eq!(value("payment_intent_data[metadata][order_no]"), Some(ORDER));
    assert_eq!(request.header("idempotency-key"), Some("order-202601150000000000000001"));
    assert_eq!(request.header("stripe-version"), Some("2025-12-15.clover"));
    let changed = StripeOrder { amount: 98, ..order() };
    let failure = stripe.create_session(&changed).unwrap_err();
    assert_eq!((failure.kind, failure.code.as_str()), (FailureKind::Refused, "idempotency_error"));
}

#[test]
fn an_open_session_can_be_ended() {
    let (provider, stripe) = start();
    let session = stripe.create_session(&order()).unwrap();
    assert_eq!(stripe.expire_session(&session.id).unwrap().status.as_deref(), Some("expired"));
    provider.pay(&session.id);
    assert_eq!(stripe.expire_session(&session.id).unwrap_err().kind, FailureKind::Refused);
}

#[test]
fn a_lost_answer_leaves_a_refund_unknown_and_repeating_it_refunds_once() {
    let (provider, stripe) = start();
    provider.lose_answers(true);
    assert_eq!(
        stripe.refund(&refund_request("cs_live_000000000000000000000001")).unwrap_err().kind,
        FailureKind::OutcomeUnknown
    );
    provider.lose_answers(false);
    assert_eq!(stripe.refund(&refund_request("cs_live_000000000000000000000001")).unwrap().id, "re_1");
    assert_eq!(provider.refund_count(), 1);
}

#[test]
fn sessions_of_the_test_mode_are_rejected() {
    let (provider, stripe) = start();
    provider.be_in_test_mode();
    let failure = stripe.create_session(&order()).unwrap_err();
    assert_eq!((failure.kind, failure.code.as_str()), (FailureKind::InvalidResponse, "wrong_environment"));
}

#[test]
fn rejects_orders_that_stripe_would_reject_without_a_call() {
    let (provider, stripe) = start();
    for order in [
        StripeOrder { amount: 0, ..order() },
        StripeOrder { currency: "USD".to_owned(), ..order() },
        StripeOrder { subject: String::new(), ..order() },
        StripeOrder { expires_at: (NOW + 60) * 1000, ..order() },
        StripeOrder { order_no: String::new(), ..order() },
    ] {
        assert_eq!(stripe.create_session(&order).unwrap_err().kind, FailureKind::Misconfigured);
    }
    assert!(provider.requests().is_empty());
}

#[test]
fn maps_errors_to_kinds() {
    for (status, code, kind) in [
        (401, "invalid_api_key", FailureKind::Misconfigured),
        (402, "charge_already_refunded", FailureKind::Refused),
        (409, "lock_timeout", FailureKind::Busy),
        (429, "rate_limit", FailureKind::Busy),
        (500, "api_error", FailureKind::OutcomeUnknown),
    ] {
        let (provider, stripe) = start();
        provider.fail(status, code);
        let failure = stripe.refund(&refund_request("cs_live_000000000000000000000001")).unwrap_err();
        assert_eq!((failure.kind, failure.code.as_str()), (kind, code));
        assert_eq!(failure.request_id.as_deref(), Some("req_1"));
    }
}
