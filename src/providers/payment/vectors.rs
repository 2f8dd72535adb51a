//! Published messages, keys and expected results, shared by the tests of this module.

use serde_json::Value;

use crate::providers::rsa::{PrivateKey, PublicKey};

/// 2026-01-15 16:30:00 in Shanghai, the time at which the published requests were signed.
pub(super) const AFTERNOON: i64 = 1_768_465_800_000;

pub(super) fn keys() -> Value {
    all()["keys"].clone()
}

pub(super) fn alipay() -> Value {
    all()["alipay"].clone()
}

/// Our own key.
pub(super) fn merchant_key() -> PrivateKey {
    PrivateKey::parse(text(&keys()["merchant"]["private_pkcs8_der_base64"])).unwrap()
}

/// The provider's private key, which signs its messages.
pub(super) fn platform_key() -> PrivateKey {
    PrivateKey::parse(text(&keys()["platform"]["private_pkcs1_pem"])).unwrap()
}

/// The provider's public key, which verifies its messages.
pub(super) fn platform_public_key() -> PublicKey {
    PublicKey::parse(text(&keys()["platform"]["public_spki_der_base64"])).unwrap()
}

/// Returns the members of an object whose values are strings.
pub(super) fn string_pairs(object: &Value) -> Vec<(String, String)> {
    object.as_object().unwrap().iter().map(|(name, value)| (name.clone(), text(value).to_owned())).collect()
}

pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn all() -> Value {
    serde_json::from_str(include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/alipay.json"))).unwrap()
}
