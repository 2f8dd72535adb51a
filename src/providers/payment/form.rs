//! Form encoding, and the canonical texts that requests and callbacks sign.
//!
//! Decoding is strict and happens exactly once; a message that two decoders could read differently is rejected. The
//! surprise: the provider's canonical text joins `name=value` pairs without escaping, so one signed text can be split
//! into fields in several ways. `decode` therefore accepts plain names only, and `hides_field` finds values that
//! contain another field.

use std::borrow::Cow;

use crate::providers::percent;

/// Bytes in which most order strings find room.
const USUAL_LENGTH: usize = 1024;

/// A decoded parameter: name and value.
pub type FormField = (String, String);

/// The reason why a form could not be parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormFault {
    /// A broken escape, an empty segment, a segment without `=`, or a name with other than plain characters.
    Malformed,
    /// The `charset` field names something other than UTF-8.
    WrongCharset,
    /// The bytes are not UTF-8.
    NotUtf8,
}

/// Decodes `application/x-www-form-urlencoded` bytes into fields, in the order received.
pub fn decode(body: &[u8]) -> Result<Vec<FormField>, FormFault> {
    let pairs = body.split(|&byte| byte == b'&').map(decode_pair).collect::<Option<Vec<_>>>();
    let pairs = pairs.ok_or(FormFault::Malformed)?;
    // The charset is checked before UTF-8, so that the reported reason is the real one.
    if pairs.iter().any(|(name, value)| name == "charset" && !value.eq_ignore_ascii_case(b"utf-8")) {
        return Err(FormFault::WrongCharset);
    }
    pairs
        .into_iter()
        .map(|(name, value)| String::from_utf8(value).map(|value| (name, value)).map_err(|_| FormFault::NotUtf8))
        .collect()
}

/// Encodes `name=value&…` in the order given.
pub(super) fn encode_all<Name: AsRef<str>, Value: AsRef<str>>(fields: &[(Name, Value)]) -> String {
    join(borrowed(fields), |text, value| text.extend(percent::pieces(value)))
}

/// Writes `name=value&…`, each value by `write`.
fn join<'field>(
    fields: impl Iterator<Item = (&'field str, &'field str)>,
    write: impl Fn(&mut String, &'field str),
) -> String {
    let mut text = String::with_capacity(USUAL_LENGTH);
    for (name, value) in fields {
        let separator = if text.is_empty() { "" } else { "&" };
        text.extend([separator, name, "="]);
        write(&mut text, value);
    }
    text
}

/// Returns the text that a request signs: all fields but `sign`, without empty ones, sorted by name, joined without
/// escaping.
pub(super) fn request_text<Name: AsRef<str>, Value: AsRef<str>>(fields: &[(Name, Value)]) -> String {
    let signed = borrowed(fields).filter(|(name, value)| *name != "sign" && !value.is_empty());
    canonical_text(signed.collect())
}

/// Returns the text that a callback signs: all fields but `sign` and `sign_type`, including empty ones, sorted by name.
pub(super) fn callback_text<Name: AsRef<str>, Value: AsRef<str>>(fields: &[(Name, Value)]) -> String {
    let signed = borrowed(fields).filter(|(name, _)| *name != "sign" && *name != "sign_type");
    canonical_text(signed.collect())
}

/// Returns true if `value` contains the text of another field with one of these names: `6.00&refund_fee=1.50`.
///
/// Such a message has the same signed text as the one with separate fields, so a third party who sees one could send
/// the other.
pub(super) fn hides_field(value: &str, names: &[&str]) -> bool {
    value.split('&').skip(1).filter_map(|piece| piece.split_once('=')).any(|(name, _)| names.contains(&name))
}

/// Returns a name that occurs more than once, if there is one.
pub(super) fn duplicate_name(fields: &[FormField]) -> Option<&str> {
    let mut names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}

/// Returns the value of the first field with this name, unless it is empty.
pub(super) fn value_of<'a>(fields: &'a [FormField], name: &str) -> Option<&'a str> {
    let (_, value) = fields.iter().find(|(found, _)| found == name)?;
    (!value.is_empty()).then_some(value)
}

/// Returns true for a field that identifies the payer.
fn is_about_payer(name: &str) -> bool {
    (name.starts_with("buyer_") && name != "buyer_pay_amount") || matches!(name, "open_id" | "payer_logon_id")
}

/// Returns the fields of a callback that identify the payer, in the order received.
pub fn payer_fields(body: &[u8]) -> Vec<FormField> {
    let fields = decode(body).unwrap_or_default();
    fields.into_iter().filter(|(name, value)| is_about_payer(name) && !value.is_empty()).collect()
}

/// Returns a callback without the fields that identify the payer. Its signature no longer matches.
pub fn without_payer(body: &[u8]) -> Vec<u8> {
    let is_kept = |segment: &&[u8]| !decode_pair(segment).is_some_and(|(name, _)| is_about_payer(&name));
    body.split(|&byte| byte == b'&').filter(is_kept).collect::<Vec<_>>().join(&b'&')
}

fn borrowed<Name: AsRef<str>, Value: AsRef<str>>(fields: &[(Name, Value)]) -> impl Iterator<Item = (&str, &str)> {
    fields.iter().map(|(name, value)| (name.as_ref(), value.as_ref()))
}

fn canonical_text(mut signed: Vec<(&str, &str)>) -> String {
    signed.sort_by_key(|&(name, _)| name);
    join(signed.into_iter(), String::push_str)
}

fn decode_pair(segment: &[u8]) -> Option<(String, Vec<u8>)> {
    let equals = segment.iter().position(|&byte| byte == b'=')?;
    let name = String::from_utf8(decode_value(&segment[..equals])?.into_owned()).ok()?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    if name.is_empty() || !name.bytes().all(plain) {
        return None;
    }
    Some((name, decode_value(&segment[equals + 1..])?.into_owned()))
}

fn decode_value(encoded: &[u8]) -> Option<Cow<'_, [u8]>> {
    if !encoded.iter().any(|byte| matches!(byte, b'%' | b'+')) {
        return Some(Cow::Borrowed(encoded));
    }
    let mut decoded = Vec::with_capacity(encoded.len());
    let mut rest = encoded;
    while let Some((&byte, after)) = rest.split_first() {
        let (value, after) = match byte {
            b'%' => (hex_value(*after.first()?)? << 4 | hex_value(*after.get(1)?)?, &after[2..]),
            b'+' => (b' ', after),
            other => (other, after),
        };
        decoded.push(value);
        rest = after;
    }
    Some(Cow::Owned(decoded))
}

fn hex_value(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fields(pairs: &[(&str, &str)]) -> Vec<FormField> {
        pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    #[test]
    fn decodes_values_exactly_once() {
        let decoded = decode(b"a=1+2&b=1%2B2&c=10%25&d=%2520&e=%e9%87%91&f=").unwrap();
        assert_eq!(decoded, fields(&[("a", "1 2"), ("b", "1+2"), ("c", "10%"), ("d", "%20"), ("e", "金"), ("f", "")]));
    }

    #[test]
    fn rejects_ambiguous_forms() {
        for body in
            ["", "a", "=1", "a=1&", "&a=1", "a=1&&b=2", "a=%", "a=%4", "a=%zz", "a=%+1", "a%26b=1", "a%3D=1", "a+b=1"]
        {
            assert_eq!(decode(body.as_bytes()), Err(FormFault::Malformed), "{body}");
        }
        assert_eq!(decode(b"a=%ff"), Err(FormFault::NotUtf8));
        assert_eq!(decode(b"a=%bd%f0&charset=GBK"), Err(FormFault::WrongCharset));
        assert_eq!(decode(b"charset=utf8"), Err(FormFault::WrongCharset));
        assert!(decode(b"charset=UTF-8").is_ok());
    }

    #[test]
    fn requests_and_callbacks_sign_different_fields() {
        let message = fields(&[("b", "2 &"), ("sign", "x"), ("a", ""), ("sign_type", "RSA2")]);
        assert_eq!(request_text(&message), "b=2 &&sign_type=RSA2");
        assert_eq!(callback_text(&message), "a=&b=2 &");
    }

    #[test]
    fn finds_values_that_contain_another_field() {
        assert!(hides_field("6.00&refund_fee=1.50", &["refund_fee"]));
        assert!(hides_field("6.00&x&refund_fee=", &["refund_fee"]));
        assert!(!hides_field("60 & refund_fee=1", &["refund_fee"]));
        assert!(!hides_field("refund_fee=1.50", &["refund_fee"]));
        assert!(!hides_field("a&b=c", &["refund_fee"]));
    }

    #[test]
    fn removes_only_the_payer() {
        let body = b"a=1&buyer_id=2088&buyer_pay_amount=6.00&buyer%5flogon_id=159%2a&seller_id=9&b=";
        assert_eq!(payer_fields(body), fields(&[("buyer_id", "2088"), ("buyer_logon_id", "159*")]));
        assert_eq!(without_payer(body), b"a=1&buyer_pay_amount=6.00&seller_id=9&b=");
        assert_eq!(without_payer(b"a=1&%"), b"a=1&%");
    }

    #[test]
    fn duplicates_and_values() {
        let message = fields(&[("b", "1"), ("a", ""), ("b", "1")]);
        assert_eq!(duplicate_name(&message), Some("b"));
        assert_eq!(duplicate_name(&message[..2]), None);
        assert_eq!(value_of(&message, "b"), Some("1"));
        assert_eq!(value_of(&message, "a"), None);
    }

    proptest! {
        #[test]
        fn encoded_fields_decode_to_themselves(value in any::<String>()) {
            let message = fields(&[("name", &value)]);
            prop_assert_eq!(decode(encode_all(&message).as_bytes()), Ok(message));
        }

        #[test]
        fn no_bytes_panic(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(message) = decode(&body) {
                prop_assert!(!message.is_empty());
            }
        }
    }
}
