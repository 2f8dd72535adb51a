use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use super::*;
use crate::providers::payment::{
    RejectionReason,
    purchase::{PurchaseBinding, PurchaseFault},
};

const TOKEN: &str = "7e3fb20b-4cdb-47cc-936d-99d65f608138";

fn published() -> Value {
    serde_json::from_str(include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/app_store.json"))).unwrap()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// The time at which the published messages are judged, in milliseconds.
fn now() -> i64 {
    published()["now"].as_i64().unwrap() * 1000
}

fn settings(environment: AppleEnvironment) -> AppStoreSettings {
    let published = published();
    AppStoreSettings {
        bundle_id: text(&published["bundle_id"]),
        app_apple_id: published["app_apple_id"].as_i64(),
        environments: vec![environment],
        root: Some(text(&published["test_root_der_base64"])),
        issuer_id: text(&published["api_token"]["claims"]["iss"]),
        key_id: text(&published["api_token"]["header"]["kid"]),
        private_key: text(&published["api_token"]["key"]["private_pkcs8_pem"]),
        base_url: "https://api.storekit.apple.com".to_owned(),
        sandbox_base_url: "https://api.storekit-sandbox.apple.com".to_owned(),
        timeout: Duration::from_secs(1),
    }
}

fn store_of(settings: &AppStoreSettings) -> AppStore {
    AppStore::new(settings, Box::new(now)).ok().unwrap()
}

fn store() -> AppStore {
    store_of(&settings(AppleEnvironment::Production))
}

fn binding(allows_missing_token: bool) -> PurchaseBinding<'static> {
    PurchaseBinding { account_token: TOKEN, allows_missing_token }
}

/// Returns the reason for which a transaction is not genuine, in the words of the official library.
fn library_word(reason: RejectionReason, jws: &str) -> &'static str {
    let header = jws.split('.').next().and_then(|header| URL_SAFE_NO_PAD.decode(header).ok()).unwrap_or_default();
    let header: Value = serde_json::from_slice(&header).unwrap_or_default();
    match reason {
        RejectionReason::WrongApp => "INVALID_APP_IDENTIFIER",
        RejectionReason::WrongEnvironment => "INVALID_ENVIRONMENT",
        RejectionReason::UntrustedCertificate if header["x5c"].as_array().is_some_and(|chain| chain.len() == 4) => {
            "INVALID_CHAIN_LENGTH"
        }
        _ => "VERIFICATION_FAILURE",
    }
}

#[test]
fn judges_published_transactions_as_the_library_does() {
    let published = published();
    let transactions = published["transactions"].as_object().unwrap();
    assert_eq!(transactions.len(), 22);
    for (environment, member) in
        [(AppleEnvironment::Production, "result"), (AppleEnvironment::Sandbox, "result_as_sandbox")]
    {
        let store = store_of(&settings(environment));
        for (name, row) in transactions {
            let jws = text(&row["jws"]);
            let judged = store.verifier.transaction(&jws, now());
            let word = judged.as_ref().err().map_or("OK", |reason| library_word(*reason, &jws));
            assert_eq!(word, text(&row[member]), "{name} {environment:?}: {judged:?}");
        }
    }
}

#[test]
fn genuine_transactions_that_must_be_refused_are_not_credited() {
    let published = published();
    let check = |name: &str, allows_missing_token| {
        let jws = text(&published["transactions"][name]["jws"]);
        store().verifier.transaction(&jws, now()).unwrap().check(&binding(allows_missing_token))
    };
    for allows_missing_token in [false, true] {
        for name in ["paid", "paid_signed_anew", "quantity_2", "unknown_product"] {
            assert_eq!(check(name, allows_missing_token), Ok(()), "{name}");
        }
        for (name, fault) in [
            ("foreign_account_token", PurchaseFault::AnotherAccount),
            ("revoked", PurchaseFault::Revoked),
            ("not_consumable", PurchaseFault::NotConsumable),
        ] {
            assert_eq!(check(name, allows_missing_token), Err(fault), "{name}");
        }
    }
    assert_eq!(check("no_account_token", false), Err(PurchaseFault::MissingAccountToken));
    assert_eq!(check("no_account_token", true), Ok(()));
}

#[test]
fn family_members_do_not_get_what_another_bought() {
    let jws = text(&published()["transactions"]["paid"]["jws"]);
    let mut shared = store().verifier.transaction(&jws, now()).unwrap();
    shared.in_app_ownership_type = Some("FAMILY_SHARED".to_owned());
    assert_eq!(shared.check(&binding(false)), Err(PurchaseFault::FamilyShared));
}

#[test]
fn reads_published_transactions() {
    let published = published();
    let read = |name: &str| store().verifier.transaction(&text(&published["transactions"][name]["jws"]), now());
    let (paid, again, double) = (read("paid").unwrap(), read("paid_signed_anew").unwrap(), read("quantity_2").unwrap());
    assert_eq!(paid.transaction_id, "2000000801234567");
    assert_eq!((again.transaction_id == paid.transaction_id, again.signed_date == paid.signed_date), (true, false));
    assert_eq!((paid.quantity, double.quantity), (1, 2));
    assert_eq!(
        (paid.price, paid.currency.as_deref(), paid.storefront.as_deref()),
        (Some(6000), Some("CNY"), Some("CHN"))
    );
    assert_eq!(paid.product_id, "com.example.yarrow.coins60");
    assert_eq!(paid.environment(), Some(AppleEnvironment::Production));
}

#[test]
fn judges_published_notifications_as_expected() {
    let published = published();
    let notifications = published["notifications"].as_object().unwrap();
    assert_eq!(notifications.len(), 14);
    for (environment, member) in
        [(AppleEnvironment::Production, "result"), (AppleEnvironment::Sandbox, "result_as_sandbox")]
    {
        let store = store_of(&settings(environment));
        for (name, row) in notifications {
            let judged = store.verifier.read_notification(text(&row["body"]).as_bytes(), now());
            // The library does not look at the inner transaction.
            let is_accepted = row[member] == "OK" && row["must_refuse"].is_null();
            assert_eq!(judged.is_ok(), is_accepted, "{name} {environment:?}: {judged:?}");
            match judged {
                Ok(read) => assert_eq!(read.uuid, text(&row["notificationUUID"]), "{name}"),
                Err(rejection) => {
                    assert_eq!(rejection.is_genuine, row[member] != "VERIFICATION_FAILURE", "{name}");
                }
            }
        }
    }
}

#[test]
fn inner_transactions_are_refused_for_their_own_reasons() {
    let published = published();
    let both = AppStoreSettings { environments: AppleEnvironment::ALL.to_vec(), ..settings(AppleEnvironment::Sandbox) };
    for (name, reason) in [
        ("inner_of_other_key", RejectionReason::SignatureInvalid),
        ("inner_other_environment", RejectionReason::WrongEnvironment),
        ("wrong_bundle", RejectionReason::WrongApp),
        ("outer_other_root", RejectionReason::UntrustedCertificate),
    ] {
        let body = text(&published["notifications"][name]["body"]);
        let rejection = store_of(&both).verifier.read_notification(body.as_bytes(), now()).unwrap_err();
        assert_eq!(rejection.reason, reason, "{name}");
    }
    let other_app = AppStoreSettings { app_apple_id: Some(1), ..settings(AppleEnvironment::Production) };
    let body = text(&published["notifications"]["test"]["body"]);
    let rejection = store_of(&other_app).verifier.read_notification(body.as_bytes(), now()).unwrap_err();
    assert_eq!(rejection.reason, RejectionReason::WrongApp);
}

#[test]
fn notifications_have_their_effects() {
    let published = published();
    let event = |name: &str| {
        let body = text(&published["notifications"][name]["body"]);
        store().verifier.read_notification(body.as_bytes(), now()).unwrap().event
    };
    assert_eq!(event("test"), AppleEvent::Test);
    assert_eq!(event("unknown_type"), AppleEvent::Other);
    assert!(matches!(event("one_time_charge"), AppleEvent::Charged(transaction)
        if transaction.check(&binding(false)) == Ok(())));
    assert!(matches!(event("refund_full"), AppleEvent::Refunded(transaction)
        if transaction.revoked_part_of(60) == 60 && transaction.check(&binding(false)) == Err(PurchaseFault::Revoked)));
    assert!(
        matches!(event("refund_prorated"), AppleEvent::Refunded(transaction) if transaction.revoked_part_of(60) == 40)
    );
    assert!(matches!(event("refund_reversed"), AppleEvent::RefundReversed(transaction)
        if transaction.revocation_date.is_none()));
    assert!(matches!(event("refund_declined"), AppleEvent::RefundDeclined(_)));
    assert!(matches!(event("refund_before_credit"), AppleEvent::Refunded(transaction)
        if transaction.transaction_id == "2000000809999999"));
    assert!(matches!(event("consumption_request"), AppleEvent::ConsumptionRequested { reason: Some(reason), .. }
        if reason == "UNINTENDED_PURCHASE"));
}

#[test]
fn the_real_chain_leads_to_the_compiled_root() {
    let published = published();
    let chain = ["leaf", "intermediate", "root"].map(|name| text(&published["real_chain_der_base64"][name]));
    let digest = ring::digest::digest(&ring::digest::SHA256, ROOT);
    assert_eq!(crate::types::hex(digest.as_ref()), text(&published["apple_root_ca_g3_sha256"]));
    let real = ChainVerifier::new(ROOT).unwrap();
    let leaf = base64::engine::general_purpose::STANDARD.decode(&chain[0]).unwrap();
    let leaf = crate::providers::x509::parse_certificate(&leaf).unwrap();
    let (start, end) = (leaf.validity().not_before.timestamp() * 1000, leaf.validity().not_after.timestamp() * 1000);
    for (signed_at, is_valid) in [(start, true), (end, true), (start - 1000, false), (end + 1000, false)] {
        // The second time the chain comes from the cache.
        for _ in 0..2 {
            assert_eq!(real.key_of(&chain, signed_at, now()).is_some(), is_valid, "{signed_at}");
        }
    }
    assert!(store().verifier.chain.key_of(&chain, start, now()).is_none());
}

#[test]
fn judges_published_chains() {
    let published = published();
    let verifier = store().verifier.chain;
    let chains = published["chains"].as_object().unwrap();
    let mut judged = 0;
    for (name, chain) in chains.iter().filter(|(_, chain)| chain.is_array()) {
        let chain: Vec<String> = chain.as_array().unwrap().iter().map(text).collect();
        let is_good = ["good", "good_leaf_other_root_certificate"].contains(&name.as_str());
        assert_eq!(verifier.key_of(&chain, now(), now()).is_some(), is_good, "{name}");
        judged += 1;
    }
    assert_eq!(judged, 10);
}

#[test]
fn no_changed_byte_of_a_message_verifies() {
    let jws = text(&published()["transactions"]["paid"]["jws"]);
    let store = store();
    assert!(store.verifier.transaction(&jws, now()).is_ok());
    // Bytes of every part; the last one of a part may hold bits that mean nothing.
    for position in (0..jws.len() - 2).step_by(97) {
        let mut changed = jws.clone().into_bytes();
        changed[position] = if changed[position] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(changed).unwrap();
        assert!(store.verifier.transaction(&changed, now()).is_err(), "{position}");
    }
}

#[test]
fn bearer_tokens_have_the_published_members_and_verify() {
    let published = published();
    let token = store().token(1_768_465_800).unwrap();
    let parts: Vec<&str> = token.split('.').collect();
    let json = |part: &str| serde_json::from_slice::<Value>(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap();
    assert_eq!(json(parts[0]), published["api_token"]["header"]);
    let claims = json(parts[1]);
    assert_eq!((claims["iat"].as_i64(), claims["exp"].as_i64()), (Some(1_768_465_800), Some(1_768_466_100)));
    for name in ["bid", "iss", "aud"] {
        assert_eq!(claims[name], published["api_token"]["claims"][name], "{name}");
    }
    let pem = parse_pem(text(&published["api_token"]["key"]["public_spki_pem"]).as_bytes()).unwrap();
    // The key ends with its point.
    let point = &pem[0].der[pem[0].der.len() - 65..];
    let message = crate::providers::jws::CompactJws::parse(&token).unwrap();
    assert!(message.is_signed_es256(point));
    let example = text(&published["api_token"]["example"]);
    assert!(crate::providers::jws::CompactJws::parse(&example).unwrap().is_signed_es256(point));
}

#[test]
fn names_the_faults_of_settings() {
    type Change = fn(&mut AppStoreSettings);
    let cases: [(Change, &str); 8] = [
        (|settings| settings.bundle_id = String::new(), "bundle_id"),
        (|settings| settings.issuer_id = "a b".to_owned(), "issuer_id"),
        (|settings| settings.key_id = String::new(), "key_id"),
        (|settings| settings.environments = Vec::new(), "environments"),
        (|settings| settings.private_key = "key".to_owned(), "private_key"),
        (|settings| settings.root = Some("MAA=".to_owned()), "root"),
        (|settings| settings.base_url = "http://api.storekit.apple.com".to_owned(), "base_url"),
        (|settings| settings.sandbox_base_url = String::new(), "sandbox_base_url"),
    ];
    for (change, setting) in cases {
        let mut settings = settings(AppleEnvironment::Production);
        change(&mut settings);
        let faults = AppStore::new(&settings, Box::new(now)).err().unwrap();
        assert_eq!(faults.iter().map(|fault| fault.setting).collect::<Vec<_>>(), [setting]);
    }
    assert!(!format!("{:?}", settings(AppleEnvironment::Production)).contains("BEGIN"));
    assert_eq!(json!(AppleEnvironment::ALL.map(AppleEnvironment::name)), json!(["Production", "Sandbox"]));
}
