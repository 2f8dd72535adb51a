//! The payer in stored callbacks: found for exports, and removed once the account is deleted.
//!
//! Forms have fields about the payer. Stripe's messages name the buyer in JSON. WeChat's are encrypted, so that nothing
//! can be cut out of them, and are removed as a whole.

use serde_json::Value;

use super::{
    form::{self, FormField},
    stripe, wechat,
};
use crate::providers::json;

/// Returns the members of a callback that identify the payer, as far as they can be read without keys.
pub fn payer_fields(channel: &str, body: &[u8]) -> Vec<FormField> {
    match channel {
        wechat::PROVIDER => Vec::new(),
        stripe::PROVIDER => stripe_payer(body),
        _ => form::payer_fields(body),
    }
}

/// Returns a callback without what identifies the payer. Its signature no longer matches.
pub fn without_payer(channel: &str, body: &[u8]) -> Vec<u8> {
    match channel {
        wechat::PROVIDER | stripe::PROVIDER => Vec::new(),
        _ => form::without_payer(body),
    }
}

fn stripe_payer(body: &[u8]) -> Vec<FormField> {
    let event: Value = json::from_slice(body).unwrap_or_default();
    let object = &event["data"]["object"];
    let groups = ["customer_details", "billing_details"];
    let found = groups.iter().flat_map(|group| ["email", "name", "phone"].map(|name| (name, &object[*group][name])));
    found.filter_map(|(name, value)| Some((name.to_owned(), value.as_str()?.to_owned()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_and_removes_the_payer_of_each_channel() {
        let event = br#"{"data":{"object":{"customer_details":{"email":"ann@example.com","name":null}}}}"#;
        assert_eq!(payer_fields("stripe", event), [("email".to_owned(), "ann@example.com".to_owned())]);
        assert!(without_payer("stripe", event).is_empty() && without_payer("wechat", b"{}").is_empty());
        assert_eq!(payer_fields("alipay", b"buyer_id=2088&a=b"), [("buyer_id".to_owned(), "2088".to_owned())]);
        assert_eq!(without_payer("alipay", b"buyer_id=2088&a=b"), b"a=b");
    }
}
