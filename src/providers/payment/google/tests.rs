use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::Value;

use super::*;
use crate::providers::{
    payment::{
        RejectionReason, form,
        purchase::{PurchaseBinding, PurchaseFault},
    },
    rsa::PublicKey,
};

fn published() -> Value {
    serde_json::from_str(include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/google_play.json"))).unwrap()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// The time at which the published messages are judged, in milliseconds.
fn now() -> i64 {
    published()["now"].as_i64().unwrap() * 1000
}

fn settings() -> GooglePlaySettings {
    let published = published();
    GooglePlaySettings {
        package_name: "com.example.yarrow".to_owned(),
        service_account: published["service_account"]["info"].to_string(),
        base_url: "https://androidpublisher.googleapis.com".to_owned(),
        token_url: None,
        keys_url: "https://www.googleapis.com/oauth2/v3/certs".to_owned(),
        push_audience: text(&published["push"]["audience"]),
        push_service_account: text(&published["push"]["service_account_email"]),
        timeout: Duration::from_secs(1),
    }
}

fn play() -> GooglePlay {
    let mut play = GooglePlay::new(&settings(), Box::new(now)).ok().unwrap();
    play.push.keys = JwkCache::with_keys(published()["jwks"].to_string().as_bytes());
    play
}

#[test]
fn assertions_have_the_published_claims_and_verify() {
    let published = published();
    let body = play().account.token_request(now() / 1000).unwrap();
    let fields = form::decode(body.as_bytes()).unwrap();
    let expected = form::decode(text(&published["service_account"]["token_request_body"]).as_bytes()).unwrap();
    assert_eq!(fields[0], expected[0]);
    let (ours, theirs) = (fields[1].1.clone(), expected[1].1.clone());
    let claims = |assertion: &str, part: usize| {
        let part = assertion.split('.').nth(part).unwrap().to_owned();
        serde_json::from_slice::<Value>(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
    };
    assert_eq!(claims(&ours, 0), claims(&theirs, 0));
    assert_eq!(claims(&ours, 1), claims(&theirs, 1));
    let key = PublicKey::parse(&text(&published["keys"]["google_service_account"]["public_spki_pem"])).unwrap();
    for assertion in [&ours, &theirs] {
        let (signed, signature) = assertion.rsplit_once('.').unwrap();
        assert!(key.verifies(signed.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap()));
    }
    // The library writes blanks into its JSON; the same text has the same signature.
    let (signed, signature) = theirs.rsplit_once('.').unwrap();
    let own = play().account.key.sign(signed.as_bytes()).unwrap();
    assert_eq!(URL_SAFE_NO_PAD.encode(own), signature);
}

#[test]
fn judges_published_push_tokens_as_expected() {
    let published = published();
    let tokens = published["push"]["tokens"].as_object().unwrap();
    assert!(tokens.len() >= 8);
    let body = text(&published["push"]["messages"]["test"]["body"]);
    for (name, row) in tokens {
        let judged = play().push.read(Some(&text(&row["authorization"])), body.as_bytes(), now());
        let is_accepted = row["result"] == "OK" && row["must_refuse"].is_null();
        assert_eq!(judged.is_ok(), is_accepted, "{name}: {judged:?}");
        let reason = match name.as_str() {
            "email_not_verified" | "other_service_account" | "wrong_audience" => Some(RejectionReason::WrongAudience),
            "expired" => Some(RejectionReason::Expired),
            "other_key_same_kid" => Some(RejectionReason::SignatureInvalid),
            "unknown_kid" => Some(RejectionReason::UnknownKey),
            "alg_hs256" => Some(RejectionReason::WrongSignType),
            _ => None,
        };
        assert_eq!(judged.err().map(|rejection| rejection.reason), reason, "{name}");
    }
}

#[test]
fn a_push_needs_a_token_of_the_configured_account() {
    let published = published();
    let (good, body) = (
        text(&published["push"]["tokens"]["good"]["authorization"]),
        text(&published["push"]["messages"]["test"]["body"]),
    );
    let read = |play: &GooglePlay, header: Option<&str>| {
        play.push.read(header, body.as_bytes(), now()).map(drop).map_err(|rejection| rejection.reason)
    };
    assert_eq!(read(&play(), Some(&good)), Ok(()));
    for header in [None, Some(""), Some("Basic YTpi"), Some("bearer x")] {
        assert_eq!(read(&play(), header), Err(RejectionReason::HeaderMissing("authorization")), "{header:?}");
    }
    assert_eq!(read(&play(), Some("Bearer x")), Err(RejectionReason::Malformed));
    let mut other = play();
    other.push.service_account = "push@project-2.iam.gserviceaccount.com".to_owned();
    assert_eq!(read(&other, Some(&good)), Err(RejectionReason::WrongAudience));
}

#[test]
fn reads_published_push_messages() {
    let published = published();
    let authorization = text(&published["push"]["tokens"]["good"]["authorization"]);
    let event = |name: &str| {
        let body = text(&published["push"]["messages"][name]["body"]);
        play().push.read(Some(&authorization), body.as_bytes(), now()).unwrap().event
    };
    let (product_id, token) = ("coins60".to_owned(), "opaque-token-1".to_owned());
    assert_eq!(event("test"), GoogleEvent::Test);
    assert_eq!(event("other_package"), GoogleEvent::Other);
    assert_eq!(
        event("one_time_purchased"),
        GoogleEvent::Purchased { product_id: product_id.clone(), token: token.clone() }
    );
    assert_eq!(event("one_time_canceled"), GoogleEvent::Cancelled { product_id, token: token.clone() });
    for (name, is_partial) in [("voided_full", false), ("voided_quantity", true)] {
        let order_id = "GPA.3301-1111-2222-33333".to_owned();
        assert_eq!(event(name), GoogleEvent::Voided { token: token.clone(), order_id, is_partial }, "{name}");
    }
    let broken = play().push.read(Some(&authorization), br#"{"message":{"data":"?","messageId":"1"}}"#, now());
    let rejection = broken.unwrap_err();
    assert_eq!((rejection.reason, rejection.is_genuine), (RejectionReason::Malformed, true));
}

#[test]
fn judges_published_purchases() {
    let published = published();
    let purchase = |name: &str| serde_json::from_value::<GooglePurchase>(published["purchases"][name].clone()).unwrap();
    let binding = |allows_missing_token| PurchaseBinding {
        account_token: "7e3fb20b-4cdb-47cc-936d-99d65f608138",
        allows_missing_token,
    };
    let check = |name: &str, allows| purchase(name).check(&binding(allows));
    assert_eq!(check("purchased", false), Ok(()));
    assert_eq!(check("pending", true), Err(PurchaseFault::Pending));
    assert_eq!(check("canceled", true), Err(PurchaseFault::Cancelled));
    assert_eq!(check("license_test", false), Err(PurchaseFault::MissingAccountToken));
    assert_eq!(check("license_test", true), Ok(()));
    assert!(purchase("license_test").is_test() && !purchase("purchased").is_test());
    assert_eq!((purchase("purchased").quantity, purchase("quantity_3").quantity), (1, 3));
    assert_eq!(purchase("quantity_3").refundable_quantity, Some(3));
    assert_eq!(purchase("purchased").purchased_at(), Some(1_768_465_770_000));
    assert!(!purchase("purchased").is_consumed() && !purchase("purchased").is_acknowledged());
}

#[test]
fn names_the_faults_of_settings() {
    type Change = fn(&mut GooglePlaySettings);
    let cases: [(Change, &str); 8] = [
        (|settings| settings.package_name = "app".to_owned(), "package_name"),
        (|settings| settings.service_account = "{}".to_owned(), "service_account"),
        (
            |settings| settings.service_account = settings.service_account.replace("BEGIN PRIVATE", "BEGIN PUBLIC"),
            "service_account",
        ),
        (|settings| settings.base_url = "http://androidpublisher.googleapis.com".to_owned(), "base_url"),
        (|settings| settings.keys_url = String::new(), "keys_url"),
        (|settings| settings.token_url = Some("http://example.com".to_owned()), "token_url"),
        (|settings| settings.push_audience = String::new(), "push_audience"),
        (|settings| settings.push_service_account = "push".to_owned(), "push_service_account"),
    ];
    for (change, setting) in cases {
        let mut settings = settings();
        change(&mut settings);
        let faults = GooglePlay::new(&settings, Box::new(now)).err().unwrap();
        assert_eq!(faults.iter().map(|fault| fault.setting).collect::<Vec<_>>(), [setting]);
        assert!(!format!("{faults:?} {settings:?}").contains("BEGIN"));
    }
}
