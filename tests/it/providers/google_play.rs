//! Google Play against a correct and a faulty provider.

use std::time::Duration;

use serde_json::json;
use yarrow::providers::{
    FailureKind,
    payment::{
        RejectionReason,
        google::{GoogleEvent, GooglePlay, GooglePlaySettings},
        purchase::{PurchaseBinding, PurchaseFault},
    },
};

use crate::support::google_play::{FakeGoogle, PACKAGE, google_purchase, google_push, published_google};

const TOKEN: &str = "7e3fb20b4cdb47cc936d99d65f608138";
const AUDIENCE: &str = "https://api.example.test/payment/notify/google";
const ACCOUNT: &str = "push@project-1.iam.gserviceaccount.com";
const NOW: i64 = 1_768_465_800;

fn start() -> (FakeGoogle, GooglePlay) {
    let provider = FakeGoogle::start_at(|| NOW);
    let settings = GooglePlaySettings {
        package_name: PACKAGE.to_owned(),
        service_account: published_google()["service_account"]["info"].to_string(),
        base_url: provider.url(),
        token_url: Some(format!("{}/token", provider.url())),
        keys_url: format!("{}/certs", provider.url()),
        push_audience: AUDIENCE.to_owned(),
        push_service_account: ACCOUNT.to_owned(),
        timeout: Duration::from_secs(2),
    };
    let play = GooglePlay::new(&settings, Box::new(|| NOW * 1000)).ok().unwrap();
    (provider, play)
}

#[test]
fn a_purchase_is_queried_and_consumed() {
    let (provider, play) = start();
    assert_eq!(play.purchase("coins60", "t-1").unwrap(), None);
    provider.set_purchase("coins60", "t-1", google_purchase("GPA.1", Some(TOKEN)));
    let binding = PurchaseBinding { account_token: TOKEN, allows_missing_token: false };
    let purchase = play.purchase("coins60", "t-1").unwrap().unwrap();
    assert_eq!((purchase.check(&binding), purchase.is_consumed()), (Ok(()), false));
    for _ in 0..2 {
        play.consume("coins60", "t-1").unwrap();
    }
    let consumed = play.purchase("coins60", "t-1").unwrap().unwrap();
    assert!(consumed.is_consumed() && consumed.is_acknowledged());
    assert_eq!(provider.purchase("coins60", "t-1")["consumptionState"], 1);
    assert_eq!(provider.counts().0, 1);
}

#[test]
fn a_pending_purchase_is_neither_credited_nor_consumed() {
    let (provider, play) = start();
    let mut pending = google_purchase("GPA.1", Some(TOKEN));
    pending["purchaseState"] = 2.into();
    provider.set_purchase("coins60", "t-1", pending);
    let binding = PurchaseBinding { account_token: TOKEN, allows_missing_token: false };
    let purchase = play.purchase("coins60", "t-1").unwrap().unwrap();
    assert_eq!(purchase.check(&binding), Err(PurchaseFault::Pending));
    let failure = play.consume("coins60", "t-1").unwrap_err();
    assert_eq!((failure.kind, failure.code.as_str()), (FailureKind::Refused, "productNotOwnedByUser"));
}

#[test]
fn a_rejected_access_token_is_renewed_once() {
    let (provider, play) = start();
    provider.set_purchase("coins60", "t-1", google_purchase("GPA.1", Some(TOKEN)));
    play.purchase("coins60", "t-1").unwrap();
    provider.revoke_tokens();
    assert!(play.purchase("coins60", "t-1").unwrap().is_some());
    assert_eq!(provider.counts().0, 2);
    provider.fail(401, "authError");
    let failure = play.purchase("coins60", "t-1").unwrap_err();
    assert_eq!((failure.kind, failure.code.as_str()), (FailureKind::Misconfigured, "authError"));
    assert_eq!(provider.counts().0, 3);
}

#[test]
fn voided_purchases_are_read_page_by_page() {
    let (provider, play) = start();
    for number in 1..=5 {
        provider.void(&format!("t-{number}"), &format!("GPA.{number}"));
    }
    let (mut orders, mut page) = (Vec::new(), None::<String>);
    loop {
        let listed = play.voided_purchases((NOW - 86_400) * 1000, page.as_deref()).unwrap();
        orders.extend(listed.purchases.into_iter().map(|purchase| purchase.order_id));
        page = listed.next;
        if page.is_none() {
            break;
        }
    }
    assert_eq!(orders, ["GPA.1", "GPA.2", "GPA.3", "GPA.4", "GPA.5"]);
    play.refund("GPA.1").unwrap();
    assert_eq!(provider.refunds(), ["GPA.1"]);
}

#[test]
fn keys_are_fetched_when_a_push_names_an_unknown_one_and_not_again_at_once() {
    let (provider, play) = start();
    let notification = json!({
        "version": "1.0", "packageName": PACKAGE, "eventTimeMillis": "1768465800000",
        "oneTimeProductNotification": {
            "version": "1.0", "notificationType": 1, "purchaseToken": "t-1", "sku": "coins60",
        },
    });
    let (authorization, body) = google_push(&notification, AUDIENCE, ACCOUNT, NOW);
    let judge = |header: &str| play.push.read(Some(header), body.as_bytes(), NOW * 1000);
    let read = |header: &str| judge(header).map(|read| read.event).map_err(|rejection| rejection.reason);
    let needs_keys = |header: &str| play.push.needs_keys(&judge(header), NOW * 1000);
    // Anybody can send what no key would make valid.
    assert!(needs_keys(&authorization) && !needs_keys("Bearer a.b.c") && !needs_keys("Basic YTpi"));
    assert_eq!(read(&authorization), Err(RejectionReason::UnknownKey));
    assert!(play.refresh_keys().unwrap());
    assert!(!play.refresh_keys().unwrap() && !needs_keys(&authorization));
    assert_eq!(provider.counts().1, 1);
    let event = GoogleEvent::Purchased { product_id: "coins60".to_owned(), token: "t-1".to_owned() };
    assert_eq!(read(&authorization), Ok(event));
    let (other_account, _) = google_push(&notification, AUDIENCE, "push@evil.iam.gserviceaccount.com", NOW);
    assert_eq!(read(&other_account), Err(RejectionReason::WrongAudience));
}

#[test]
fn maps_errors_to_kinds() {
    for (status, reason, kind) in [
        (400, "invalid", FailureKind::Refused),
        (403, "permissionDenied", FailureKind::Misconfigured),
        (409, "concurrentUpdate", FailureKind::Busy),
        (429, "rateLimitExceeded", FailureKind::Busy),
        (503, "backendError", FailureKind::OutcomeUnknown),
    ] {
        let (provider, play) = start();
        provider.fail(status, reason);
        let failure = play.purchase("coins60", "t-1").unwrap_err();
        assert_eq!((failure.kind, failure.code.as_str()), (kind, reason));
    }
}
