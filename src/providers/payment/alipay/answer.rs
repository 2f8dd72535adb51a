//! Verifies and parses the gateway's responses.
//!
//! The signature covers the inner object byte for byte as received, escapes included. So the object is cut out by the
//! JSON structure and never serialised again. Searching the text for `"sign"` would be wrong: a subject may contain it.

use std::{borrow::Cow, collections::BTreeMap};

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::providers::payment::signing::Verifier;

/// The members that have an effect, of all responses. Texts for humans are not read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct AlipayResponse {
    pub(super) code: String,
    pub(super) sub_code: Option<String>,
    pub(super) out_trade_no: Option<String>,
    pub(super) trade_no: Option<String>,
    pub(super) trade_status: Option<String>,
    pub(super) total_amount: Option<String>,
    pub(super) trans_currency: Option<String>,
    pub(super) send_pay_date: Option<String>,
    pub(super) fund_change: Option<String>,
    pub(super) refund_fee: Option<String>,
    pub(super) out_request_no: Option<String>,
    pub(super) refund_amount: Option<String>,
    pub(super) refund_status: Option<String>,
    pub(super) bill_download_url: Option<String>,
}

/// The reason why a response is not trusted.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ResponseFault {
    /// Not JSON, or not the object that belongs to the call.
    Unreadable,
    /// A success without a signature.
    Unsigned,
    SignatureInvalid,
    /// A failure without a signature: the gateway rejected the request before any product processed it.
    UnsignedError(Box<AlipayResponse>),
}

impl AlipayResponse {
    /// Returns true if the gateway accepted the call. The other members hold its outcome.
    pub(super) fn is_success(&self) -> bool {
        self.code == "10000"
    }

    pub(super) fn sub_code(&self) -> &str {
        self.sub_code.as_deref().unwrap_or_default()
    }

    /// Rejects a response about another order, with the failure's code.
    pub(super) fn is_about(&self, order_no: &str) -> Result<(), &'static str> {
        if self.out_trade_no.as_deref() == Some(order_no) { Ok(()) } else { Err("answer_for_another_order") }
    }
}

/// Parses a response whose object is named `response_key` and verifies it with the provider's key.
pub(super) fn read(body: &[u8], response_key: &str, verifier: &Verifier) -> Result<AlipayResponse, ResponseFault> {
    let text = in_utf8(body).ok_or(ResponseFault::Unreadable)?;
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(&text).map_err(|_| ResponseFault::Unreadable)?;
    let object =
        members.get(response_key).or_else(|| members.get("error_response")).ok_or(ResponseFault::Unreadable)?;
    let answer: AlipayResponse = serde_json::from_str(object.get()).map_err(|_| ResponseFault::Unreadable)?;
    let signature: Option<String> = members.get("sign").and_then(|sign| serde_json::from_str(sign.get()).ok());
    let signed = bytes_of(body, &text, object.get()).ok_or(ResponseFault::Unreadable)?;
    match signature.filter(|signature| !signature.is_empty()) {
        Some(signature) if verifier.verifies(signed, &signature) => Ok(answer),
        Some(_) => Err(ResponseFault::SignatureInvalid),
        None if answer.is_success() || answer.code.is_empty() => Err(ResponseFault::Unsigned),
        None => Err(ResponseFault::UnsignedError(Box::new(answer))),
    }
}

/// Returns the number of the provider's certificate that a response names. It is not signed.
pub(super) fn certificate_number(body: &[u8]) -> Option<String> {
    let text = in_utf8(body)?;
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(&text).ok()?;
    serde_json::from_str(members.get("alipay_cert_sn")?.get()).ok()
}

/// Returns the text of a body in UTF-8, or that of a body in GBK with `?` for each byte of its characters beyond ASCII. Its
/// length stays the same.
fn in_utf8(body: &[u8]) -> Option<Cow<'_, str>> {
    if let Ok(text) = std::str::from_utf8(body) {
        return Some(Cow::Borrowed(text));
    }
    let mut text = String::with_capacity(body.len());
    let mut rest = body;
    while let Some(&byte) = rest.first() {
        // The second byte of a character may be that of a backslash or a brace.
        let length = match rest {
            [0..=0x7f, ..] => 1,
            [0x81..=0xfe, 0x30..=0x39, 0x81..=0xfe, 0x30..=0x39, ..] => 4,
            [0x81..=0xfe, 0x40..=0x7e | 0x80..=0xfe, ..] => 2,
            _ => return None,
        };
        text.extend(std::iter::repeat_n(if length == 1 { char::from(byte) } else { '?' }, length));
        rest = &rest[length..];
    }
    Some(Cow::Owned(text))
}

/// Returns the bytes of the body at the position of `part` in its text.
fn bytes_of<'body>(body: &'body [u8], text: &str, part: &str) -> Option<&'body [u8]> {
    let start = part.as_ptr().addr().checked_sub(text.as_ptr().addr())?;
    body.get(start..start + part.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::payment::{signing::Signer, vectors};

    fn verifier() -> Verifier {
        Verifier::Rsa2(vectors::platform_public_key())
    }

    fn read_vector(name: &str) -> Result<AlipayResponse, ResponseFault> {
        let vector = &vectors::alipay()["responses"][name];
        read(vectors::text(&vector["raw_body"]).as_bytes(), vectors::text(&vector["response_key"]), &verifier())
    }

    #[test]
    fn verifies_published_responses_as_expected() {
        let all = vectors::alipay();
        let all = all["responses"].as_object().unwrap();
        assert_eq!(all.len(), 8);
        for (name, vector) in all {
            assert_eq!(read_vector(name).is_ok(), vector["signature_valid"].as_bool().unwrap(), "{name}");
        }
    }

    #[test]
    fn parses_published_responses() {
        for name in ["query_success", "query_subject_contains_sign_text"] {
            let paid = read_vector(name).unwrap();
            assert!(paid.is_success());
            assert_eq!(paid.trade_status.as_deref(), Some("TRADE_SUCCESS"));
            assert_eq!(paid.total_amount.as_deref(), Some("6.00"));
        }
        assert_eq!(read_vector("query_not_exist").unwrap().sub_code(), "ACQ.TRADE_NOT_EXIST");
        assert_eq!(read_vector("refund_success").unwrap().fund_change.as_deref(), Some("Y"));
        assert!(read_vector("close_success").unwrap().is_about("D202601150000000002").is_ok());
    }

    #[test]
    fn rejects_responses_for_the_right_reason() {
        assert_eq!(read_vector("query_tampered"), Err(ResponseFault::SignatureInvalid));
        assert_eq!(read_vector("query_other_key"), Err(ResponseFault::SignatureInvalid));
        assert_eq!(read_vector("query_without_sign"), Err(ResponseFault::Unsigned));
    }

    #[test]
    fn white_space_is_signed_only_inside_the_object() {
        let vector = &vectors::alipay()["responses"]["query_success"];
        let body = vectors::text(&vector["raw_body"]);
        let key = vectors::text(&vector["response_key"]);
        let spaced = body.replacen(":{", " : \n{", 1).replacen("},\"sign\"", "} , \"sign\"", 1);
        assert_ne!(spaced, body);
        assert!(read(spaced.as_bytes(), key, &verifier()).is_ok());
        let inside = body.replacen("{\"code\"", "{ \"code\"", 1);
        assert_eq!(read(inside.as_bytes(), key, &verifier()), Err(ResponseFault::SignatureInvalid));
    }

    #[test]
    fn verifies_a_gbk_response_by_its_bytes() {
        let key = Signer::Rsa2(vectors::platform_key());
        // "Does not exist", a character of four bytes, and one whose second byte is a backslash.
        let object = b"{\"code\":\"40004\",\"sub_code\":\"ACQ.TRADE_NOT_EXIST\",\"sub_msg\":\"\xbd\xbb\xd2\xd7\xb2\xbb\xb4\xe6\xd4\xda\x95\x32\x82\x36\x81\x5c\"}";
        let signature = key.sign_bytes(object).unwrap();
        let body = |object: &[u8]| {
            [b"{\"alipay_trade_query_response\":", object, b",\"sign\":\"", signature.as_bytes(), b"\"}"].concat()
        };
        let answer = read(&body(object), "alipay_trade_query_response", &verifier()).unwrap();
        assert_eq!(answer.sub_code(), "ACQ.TRADE_NOT_EXIST");
        let mut changed = object.to_vec();
        *changed.iter_mut().find(|byte| **byte == 0xbd).unwrap() = 0xbe;
        let forged = read(&body(&changed), "alipay_trade_query_response", &verifier());
        assert_eq!(forged, Err(ResponseFault::SignatureInvalid));
    }

    #[test]
    fn rejects_a_response_to_another_call() {
        let body = vectors::alipay()["responses"]["query_success"]["raw_body"].clone();
        let other = read(vectors::text(&body).as_bytes(), "alipay_trade_refund_response", &verifier());
        assert_eq!(other, Err(ResponseFault::Unreadable));
    }

    #[test]
    fn accepts_unsigned_errors_but_not_successes() {
        let error = br#"{"error_response":{"code":"40002","msg":"Invalid","sub_code":"isv.invalid-app-id"}}"#;
        let Err(ResponseFault::UnsignedError(answer)) = read(error, "alipay_trade_query_response", &verifier()) else {
            panic!("an unsigned error was not recognised");
        };
        assert_eq!(answer.sub_code(), "isv.invalid-app-id");
        for success in [
            r#"{"error_response":{"code":"10000"}}"#,
            r#"{"error_response":{}}"#,
            r#"{"error_response":{"code":"10000"},"sign":""}"#,
        ] {
            assert_eq!(read(success.as_bytes(), "x", &verifier()), Err(ResponseFault::Unsigned), "{success}");
        }
    }

    #[test]
    fn rejects_invalid_responses() {
        for body in [
            "",
            "<html>busy</html>",
            "[]",
            "{}",
            "{\"x\":{}}",
            "{\"error_response\":3}",
            "{\"error_response\":{\"code\":1}}",
        ] {
            assert_eq!(
                read(body.as_bytes(), "alipay_trade_query_response", &verifier()),
                Err(ResponseFault::Unreadable),
                "{body}"
            );
        }
    }
}
