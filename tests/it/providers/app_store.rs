//! The App Store's messages and server API.

use std::time::Duration;

use serde_json::{Value, json};
use yarrow::providers::{
    FailureKind,
    payment::{
        apple::{
            AppStore, AppStoreSettings, AppleConsumption, AppleEnvironment, AppleEvent, AppleNotificationQuery,
            AppleRefundPreference,
        },
        purchase::PurchaseBinding,
    },
};

use crate::support::app_store::{
    APP_APPLE_ID, BUNDLE, FakeAppStore, published_app_store, revocation, sign_jws, store_notification, store_root,
    store_transaction,
};

const TOKEN: &str = "7e3fb20b-4cdb-47cc-936d-99d65f608138";
/// 2026-01-15 16:30:00 in Shanghai.
const NOW: i64 = 1_768_465_800;

fn settings(url: &str) -> AppStoreSettings {
    let published = published_app_store();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    AppStoreSettings {
        bundle_id: BUNDLE.to_owned(),
        app_apple_id: Some(APP_APPLE_ID),
        environments: AppleEnvironment::ALL.to_vec(),
        root: Some(store_root()),
        issuer_id: text(&published["api_token"]["claims"]["iss"]),
        key_id: text(&published["api_token"]["header"]["kid"]),
        private_key: text(&published["api_token"]["key"]["private_pkcs8_pem"]),
        base_url: url.to_owned(),
        sandbox_base_url: url.to_owned(),
        timeout: Duration::from_secs(2),
    }
}

fn start() -> (FakeAppStore, AppStore) {
    let provider = FakeAppStore::start_at(|| NOW);
    let store = AppStore::new(&settings(&provider.url()), Box::new(|| NOW * 1000)).ok().unwrap();
    (provider, store)
}

fn transaction(id: &str, changes: &[(&str, Value)]) -> Value {
    store_transaction(id, Some(TOKEN), NOW * 1000, changes)
}

#[test]
fn verifies_transactions_and_notifications_of_the_configured_root() {
    let (_provider, store) = start();
    let paid = store.verifier.transaction(&sign_jws(&transaction("1", &[])), NOW * 1000).unwrap();
    let binding = PurchaseBinding { account_token: TOKEN, allows_missing_token: false };
    assert_eq!(paid.check(&binding), Ok(()));
    let refunded = transaction("1", &revocation(67_932, NOW * 1000));
    let body = store_notification("REFUND", "u-1", Some(&refunded), NOW * 1000);
    let notification = store.verifier.read_notification(body.as_bytes(), NOW * 1000).unwrap();
    assert!(matches!(notification.event, AppleEvent::Refunded(transaction) if transaction.revoked_part_of(60) == 40));
    // Apple's own root does not know this chain.
    let real = AppStoreSettings { root: None, ..settings("https://api.storekit.apple.com") };
    let real = AppStore::new(&real, Box::new(|| NOW * 1000)).ok().unwrap();
    assert!(real.verifier.transaction(&sign_jws(&transaction("1", &[])), NOW * 1000).is_err());
}

#[test]
fn looks_up_transactions_and_orders() {
    let (provider, store) = start();
    assert_eq!(store.find_transaction(AppleEnvironment::Production, "1").unwrap(), None);
    provider.add_transaction(transaction("1", &[]));
    provider.add_transaction(transaction("2", &[("environment", "Sandbox".into())]));
    let found = store.find_transaction(AppleEnvironment::Production, "1").unwrap().unwrap();
    assert_eq!(found.app_account_token.as_deref(), Some(TOKEN));
    assert_eq!(store.find_order(AppleEnvironment::Production, "MK1").unwrap().len(), 2);
}

#[test]
fn histories_are_read_page_by_page() {
    let (provider, store) = start();
    for id in ["1", "2", "3", "4", "5"] {
        let changes = if id > "2" { revocation(100_000, NOW * 1000).to_vec() } else { Vec::new() };
        provider.add_transaction(transaction(id, &changes));
    }
    let (mut found, mut revision) = (Vec::new(), None::<String>);
    loop {
        let page = store.history(AppleEnvironment::Production, "1", revision.as_deref()).unwrap();
        found.extend(page.transactions);
        if !page.has_more {
            break;
        }
        revision = page.revision;
    }
    let shown: Vec<_> =
        found.iter().map(|found| (found.transaction_id.as_str(), found.revocation_date.is_some())).collect();
    assert_eq!(shown, [("1", false), ("2", false), ("3", true), ("4", true), ("5", true)]);
}

#[test]
fn the_history_of_notifications_is_verified_one_by_one() {
    let (provider, store) = start();
    let strange = transaction("2", &[("bundleId", "com.evil".into())]);
    provider.add_notification("TEST", "u-1", None, NOW * 1000);
    provider.add_notification("REFUND", "u-2", Some(&strange), NOW * 1000);
    provider.add_notification("ONE_TIME_CHARGE", "u-3", Some(&transaction("3", &[])), NOW * 1000);
    let query = AppleNotificationQuery {
        start_date: (NOW - 3600) * 1000,
        end_date: NOW * 1000,
        only_failures: true,
        transaction_id: None,
    };
    let list = |page: Option<&str>| store.notification_history(AppleEnvironment::Production, &query, page).unwrap();
    let first = list(None);
    assert_eq!(first.notifications.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false]);
    let second = list(first.next.as_deref());
    assert!(matches!(&second.notifications[0].as_ref().unwrap().event, AppleEvent::Charged(_)));
    assert_eq!(second.next, None);
}

#[test]
fn answers_consumption_requests_and_tests_notifications() {
    let (provider, store) = start();
    let consumption = AppleConsumption {
        is_delivered: true,
        has_sample: false,
        used: 25_000,
        preference: Some(AppleRefundPreference::GrantProrated),
    };
    store.send_consumption(AppleEnvironment::Production, "1", &consumption).unwrap();
    let expected = json!({
        "customerConsented": true, "sampleContentProvided": false, "deliveryStatus": "DELIVERED",
        "consumptionPercentage": 25_000, "refundPreference": "GRANT_PRORATED",
    });
    assert_eq!(provider.consumption(), [("1".to_owned(), expected)]);
    let token = store.request_test_notification(AppleEnvironment::Sandbox).unwrap();
    let result = store.test_notification_result(AppleEnvironment::Sandbox, &token).unwrap();
    assert_eq!(result.as_deref(), Some("SUCCESS"));
}

#[test]
fn maps_errors_to_kinds() {
    for (status, code, kind) in [
        (400, 4_000_006, FailureKind::Refused),
        (401, 0, FailureKind::Misconfigured),
        (404, 4_040_006, FailureKind::OutcomeUnknown),
        (404, 0, FailureKind::InvalidResponse),
        (429, 4_290_000, FailureKind::Busy),
        (500, 5_000_000, FailureKind::OutcomeUnknown),
    ] {
        let (provider, store) = start();
        provider.fail(status, code);
        let failure = store.find_transaction(AppleEnvironment::Production, "1").unwrap_err();
        assert_eq!(failure.kind, kind, "{status} {code}");
        assert!(!format!("{failure:?}").contains("secret"));
    }
}
