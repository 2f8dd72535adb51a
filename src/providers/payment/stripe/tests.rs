use serde_json::{Value, json};

use super::*;
use crate::providers::payment::{Rejection, RejectionReason};

fn published() -> Value {
    serde_json::from_str(include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/stripe.json"))).unwrap()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn now() -> i64 {
    published()["now"].as_i64().unwrap() * 1000
}

fn settings() -> StripeSettings {
    StripeSettings {
        secret_key: "sk_live_0123456789".into(),
        webhook_secrets: vec![text(&published()["secret"]).into()],
        base_url: "https://api.stripe.com".to_owned(),
        timeout: Duration::from_secs(1),
    }
}

fn read(settings: &StripeSettings, name: &str, at: i64) -> Result<StripeEvent, Rejection> {
    let row = &published()["webhooks"][name];
    let header = text(&row["header"]);
    let header = Some(header.as_str()).filter(|header| !header.is_empty());
    let stripe = Stripe::new(settings).ok().unwrap();
    stripe.read_webhook(header, text(&row["body"]).as_bytes(), at).map(|read| read.event)
}

#[test]
fn judges_published_webhooks_as_expected() {
    let published = published();
    let webhooks = published["webhooks"].as_object().unwrap();
    assert_eq!(webhooks.len(), 9);
    for (name, row) in webhooks {
        let judged = read(&settings(), name, now());
        // An unpaid session is genuine, too, but no payment.
        let is_accepted = row["result"] == "OK" && row["must_refuse"] != "livemode";
        assert_eq!(judged.is_ok(), is_accepted, "{name}: {judged:?}");
        let reason = match name.as_str() {
            "tampered" | "other_secret" => Some((RejectionReason::SignatureInvalid, false)),
            "old" => Some((RejectionReason::StaleTimestamp, false)),
            "no_header" => Some((RejectionReason::HeaderMissing("stripe-signature"), false)),
            "test_mode" => Some((RejectionReason::WrongEnvironment, true)),
            _ => None,
        };
        assert_eq!(judged.err().map(|rejection| (rejection.reason, rejection.is_genuine)), reason, "{name}");
    }
}

#[test]
fn webhooks_have_their_effects() {
    let checkout = StripeCheckout {
        order_no: "202601150000000000000001".to_owned(),
        session_id: "cs_live_1".to_owned(),
        payment_intent: Some("pi_1".to_owned()),
        amount: 99,
        currency: "usd".to_owned(),
    };
    let event = |name: &str| read(&settings(), name, now()).unwrap();
    assert_eq!(event("paid"), StripeEvent::Paid(checkout.clone()));
    assert_eq!(event("two_secrets_while_rolling"), StripeEvent::Paid(checkout.clone()));
    assert_eq!(event("unpaid_async"), StripeEvent::AwaitingPayment(checkout));
    let StripeEvent::Refunded(total) = event("refund_part") else { panic!() };
    assert_eq!((total.refunded, total.amount, total.payment_intent.as_deref()), (33, 99, Some("pi_1")));
}

/// Reads a body with a genuine signature.
fn read_signed(body: &Value) -> Result<StripeEvent, Rejection> {
    let (body, at) = (body.to_string(), now() / 1000);
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, text(&published()["secret"]).as_bytes());
    let signature = ring::hmac::sign(&key, format!("{at}.{body}").as_bytes());
    let header = format!("t={at},v1={}", crate::types::hex(signature.as_ref()));
    let stripe = Stripe::new(&settings()).ok().unwrap();
    stripe.read_webhook(Some(&header), body.as_bytes(), now()).map(|read| read.event)
}

#[test]
fn events_of_other_programs_on_the_account_are_acknowledged() {
    let setup = json!({
        "id": "cs_live_1", "object": "checkout.session", "mode": "setup", "status": "complete",
        "payment_status": "no_payment_required", "amount_total": null, "currency": null, "client_reference_id": null,
        "payment_intent": null, "livemode": true, "metadata": {},
    });
    let cart = |currency: &str, number: &str| {
        json!({
            "id": "cs_live_1", "payment_status": "paid", "amount_total": 4_900, "currency": currency,
            "client_reference_id": number, "payment_intent": "pi_1",
        })
    };
    for (kind, object) in [
        ("checkout.session.completed", setup),
        ("customer.created", json!({ "id": "cus_1", "currency": null, "metadata": null })),
        ("account.updated", json!({ "id": "acct_1", "status": null })),
        ("checkout.session.completed", cart("usd", "cart-9241")),
        ("checkout.session.expired", cart("jpy", "cart-9241")),
        ("checkout.session.completed", cart("jpy", "1")),
    ] {
        let event = json!({ "id": "evt_1", "type": kind, "livemode": true, "data": { "object": object } });
        assert_eq!(read_signed(&event), Ok(StripeEvent::Other(kind.to_owned())), "{event}");
    }
    let refund = json!({
        "id": "ch_1", "amount": 4_900, "amount_refunded": 4_900, "currency": "usd", "payment_intent": "pi_1",
        "metadata": { "order_no": "A-77" },
    });
    let event = json!({ "id": "evt_1", "type": "charge.refunded", "livemode": true, "data": { "object": refund } });
    let Ok(StripeEvent::Refunded(total)) = read_signed(&event) else { panic!() };
    assert_eq!(total.order_no, None);
}

#[test]
fn both_secrets_are_valid_while_one_is_replaced() {
    let published = published();
    let (old, new) = (text(&published["old_secret"]), text(&published["secret"]));
    let with = |secrets: &[&str]| StripeSettings {
        webhook_secrets: secrets.iter().map(|secret| SecretString::from(*secret)).collect(),
        ..settings()
    };
    for secrets in [vec![old.as_str(), &new], vec![&new, &old], vec![&new], vec![&old]] {
        assert!(read(&with(&secrets), "two_secrets_while_rolling", now()).is_ok(), "{secrets:?}");
    }
    assert!(read(&with(&[&old, &new]), "paid", now()).is_ok());
    assert!(read(&with(&[&old]), "paid", now()).is_err());
}

#[test]
fn a_webhook_is_neither_old_nor_from_the_future() {
    for (offset, is_valid) in [(0, true), (300, true), (301, false), (-5, true), (-6, false), (-300, false)] {
        assert_eq!(read(&settings(), "paid", now() + offset * 1000).is_ok(), is_valid, "{offset}");
    }
}

#[test]
fn rejects_unusual_signature_headers() {
    let row = &published()["webhooks"]["paid"];
    let stripe = Stripe::new(&settings()).ok().unwrap();
    let reason = |header: &str| {
        let read = stripe.read_webhook(Some(header), text(&row["body"]).as_bytes(), now());
        read.err().map(|rejection| rejection.reason)
    };
    let header = text(&row["header"]);
    let signature = header.split_once("v1=").unwrap().1;
    assert_eq!(reason(&header), None);
    assert_eq!(reason(&format!("v1={signature}")), Some(RejectionReason::Malformed));
    assert_eq!(reason(&format!("t=1768465800,t=1768465800,v1={signature}")), Some(RejectionReason::Malformed));
    assert_eq!(reason(&format!("t=+1768465800,v1={signature}")), Some(RejectionReason::Malformed));
    assert_eq!(reason("t=1768465800"), Some(RejectionReason::SignatureMissing));
    assert_eq!(reason(&format!("t=1768465800,v0={signature}")), Some(RejectionReason::SignatureMissing));
    assert_eq!(reason(&format!("t=1768465801,v1={signature}")), Some(RejectionReason::SignatureInvalid));
    assert_eq!(reason(&format!("t=1768465800,v1={}", &signature[..62])), Some(RejectionReason::SignatureInvalid));
    assert_eq!(reason("t=1768465800,v1="), Some(RejectionReason::SignatureInvalid));
    let empty = stripe.read_webhook(None, b"", now()).unwrap_err();
    assert_eq!(empty.reason, RejectionReason::HeaderMissing("stripe-signature"));
}

#[test]
fn names_the_faults_of_settings() {
    type Change = fn(&mut StripeSettings);
    let cases: [(Change, &str); 5] = [
        (|settings| settings.secret_key = "pk_live_0".into(), "secret_key"),
        (|settings| settings.secret_key = "sk_live_0\r\nx: y".into(), "secret_key"),
        (|settings| settings.webhook_secrets = Vec::new(), "webhook_secrets"),
        (|settings| settings.webhook_secrets.push("secret".into()), "webhook_secrets"),
        (|settings| settings.base_url = "http://api.stripe.com".to_owned(), "base_url"),
    ];
    for (change, setting) in cases {
        let mut settings = settings();
        change(&mut settings);
        let faults = Stripe::new(&settings).err().unwrap();
        assert_eq!(faults.iter().map(|fault| fault.setting).collect::<Vec<_>>(), [setting]);
    }
    assert!(!format!("{:?}", settings()).contains("sk_live"));
}
