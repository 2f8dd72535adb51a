//! The published callbacks, and modifications of each.

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::providers::payment::signing::Signer;
use crate::providers::payment::{OrderState, OrderView, SettlementDecision, judge, vectors};

fn reader() -> CallbackReader {
    CallbackReader {
        channel: "alipay",
        app_id: "2021000000000001".to_owned(),
        seller_id: Some("2088000000000001".to_owned()),
        verifier: Verifier::Rsa2(vectors::platform_public_key()),
    }
}

fn vector(name: &str) -> Value {
    vectors::alipay()["notify"][name].clone()
}

fn body(name: &str) -> Vec<u8> {
    vectors::text(&vector(name)["form_body"]).as_bytes().to_vec()
}

fn order(state: OrderState) -> OrderView<'static> {
    let amount = Fen::parse("6.00").unwrap();
    OrderView {
        channel: "alipay",
        order_no: "D202601150000000001",
        amount,
        currency: Currency::CNY,
        state,
        trade_no: None,
        paid: None,
        refunded: Fen::ZERO,
    }
}

fn judged(body: &[u8], state: OrderState) -> Result<SettlementDecision, RejectionReason> {
    let callback = reader().read(body).map_err(|rejection| rejection.reason)?;
    let order = order(state);
    let known = callback.trade.order_no == order.order_no;
    Ok(judge(&callback.trade, known.then_some(&order)))
}

/// A body with these fields, signed as the provider does.
fn signed(fields: &[FormField]) -> Vec<u8> {
    let mut fields: Vec<FormField> = fields.iter().filter(|(name, _)| name != "sign").cloned().collect();
    let signer = Signer::Rsa2(vectors::platform_key());
    let signature = signer.sign(&form::callback_text(&fields)).unwrap();
    fields.push(("sign".to_owned(), signature));
    form::encode_all(&fields).into_bytes()
}

/// Returns the valid payment with some fields set (or removed, if empty), signed again.
fn altered(changes: &[(&str, &str)]) -> Vec<u8> {
    let mut fields = form::decode(&body("valid_trade_success")).unwrap();
    for &(name, value) in changes {
        fields.retain(|(found, _)| found != name);
        if !value.is_empty() {
            fields.push((name.to_owned(), value.to_owned()));
        }
    }
    signed(&fields)
}

#[test]
fn judges_published_callbacks_as_expected() {
    let all = vectors::alipay();
    let all = all["notify"].as_object().unwrap();
    assert_eq!(all.len(), 22);
    for (name, vector) in all {
        let body = vectors::text(&vector["form_body"]).as_bytes();
        let fresh = judged(body, OrderState::Created);
        let settled = judged(body, OrderState::Credited);
        match vectors::text(&vector["expect"]) {
            "credit_once_answer_success" => {
                assert_eq!(
                    (fresh, settled),
                    (Ok(SettlementDecision::Credit), Ok(SettlementDecision::Nothing)),
                    "{name}"
                );
            }
            "no_credit_answer_success" => {
                assert_eq!(
                    (fresh, settled),
                    (Ok(SettlementDecision::Nothing), Ok(SettlementDecision::Nothing)),
                    "{name}"
                );
            }
            "close_order_answer_success" => assert_eq!(fresh, Ok(SettlementDecision::Close), "{name}"),
            "record_refund_no_credit_answer_success" => {
                assert!(matches!(settled, Ok(SettlementDecision::Refund { .. })), "{name}: {settled:?}");
                let fresh = fresh.unwrap();
                assert!(
                    !matches!(fresh, SettlementDecision::Credit | SettlementDecision::Reject(_)),
                    "{name}: {fresh:?}"
                );
            }
            "reject_answer_fail" => {
                for judged in [fresh, settled] {
                    assert!(matches!(judged, Err(_) | Ok(SettlementDecision::Reject(_))), "{name}: {judged:?}");
                }
            }
            other => panic!("{name}: unknown expectation {other}"),
        }
    }
}

#[test]
fn verifies_published_signatures_as_expected() {
    let all = vectors::alipay();
    for (name, vector) in all["notify"].as_object().unwrap() {
        let body = vectors::text(&vector["form_body"]);
        let fields = form::decode(body.as_bytes()).unwrap();
        let is_verified = reader().verify(&fields).is_ok();
        assert_eq!(is_verified, vector["signature_valid"].as_bool().unwrap(), "{name}");
        if is_verified {
            assert_eq!(form::callback_text(&fields), vectors::text(&vector["sign_content"]), "{name}");
        }
    }
}

#[test]
fn reports_the_real_reason_of_a_rejection() {
    let reasons = [
        ("tampered_amount", RejectionReason::SignatureInvalid),
        ("tampered_app_id", RejectionReason::SignatureInvalid),
        ("wrong_app_id_signed", RejectionReason::WrongApp),
        ("wrong_seller_id_signed", RejectionReason::WrongSeller),
        ("signed_by_other_key", RejectionReason::SignatureInvalid),
        ("sha1_downgrade", RejectionReason::WrongSignType),
        ("sha1_signature_labelled_rsa2", RejectionReason::SignatureInvalid),
        ("missing_sign", RejectionReason::SignatureMissing),
        ("empty_sign", RejectionReason::SignatureMissing),
        ("malformed_sign", RejectionReason::SignatureInvalid),
        ("duplicate_parameter", RejectionReason::DuplicateParameter),
        ("signed_with_sign_type_included", RejectionReason::SignatureInvalid),
    ];
    for (name, reason) in reasons {
        let rejection = reader().read(&body(name)).unwrap_err();
        assert_eq!(rejection.reason, reason, "{name}");
        assert_eq!(rejection.order_no.as_deref(), Some("D202601150000000001"), "{name}");
    }
}

#[test]
fn reads_all_fields_of_a_callback() {
    let paid = reader().read(&body("valid_trade_success")).unwrap();
    assert_eq!(paid.notify_id, "2026011501222163105000000000000001");
    assert_eq!(paid.trade.trade_no, "2026011522001400000000000001");
    assert_eq!(paid.trade.amount.as_fen(), 600);
    assert_eq!(paid.trade.paid_at, Some(vectors::AFTERNOON + 65_000));
    assert_eq!(paid.field("subject"), Some("金币 60 个 & 赠送+10%"));
    assert!(!format!("{paid:?}").contains("138"));

    let refund = reader().read(&body("partial_refund_trade_success")).unwrap().trade.refunded.unwrap();
    assert_eq!(refund.total.map(Fen::as_fen), Some(150));
    assert_eq!(refund.refund_no.as_deref(), Some("R202601150000000001"));
    assert_eq!(shanghai_milliseconds("2026-01-16 10:00:00.123"), refund.at);
}

#[test]
fn both_encodings_of_a_space_are_equal() {
    let plus = reader().read(&body("valid_trade_success")).unwrap();
    let percent = reader().read(&body("valid_trade_success_percent20")).unwrap();
    assert_eq!(plus, percent);
}

#[test]
fn rejects_genuine_callbacks_that_do_not_fit() {
    let cases: [(&[(&str, &str)], RejectionReason); 14] = [
        (&[("notify_type", "batch_refund_notify")], RejectionReason::WrongType),
        (&[("notify_type", "")], RejectionReason::WrongType),
        (&[("app_id", "")], RejectionReason::WrongApp),
        (&[("seller_id", "")], RejectionReason::WrongSeller),
        (&[("trans_currency", "USD")], RejectionReason::WrongCurrency),
        (&[("out_trade_no", "")], RejectionReason::FieldMissing("out_trade_no")),
        (&[("trade_no", "")], RejectionReason::FieldMissing("trade_no")),
        (&[("notify_id", "")], RejectionReason::FieldMissing("notify_id")),
        (&[("total_amount", "")], RejectionReason::FieldMissing("total_amount")),
        (&[("total_amount", "6.000")], RejectionReason::InvalidAmount("total_amount")),
        (&[("total_amount", "6e0")], RejectionReason::InvalidAmount("total_amount")),
        (&[("refund_fee", "-1.50")], RejectionReason::InvalidAmount("refund_fee")),
        (&[("trade_status", "TRADE_PENDING")], RejectionReason::UnknownStatus),
        (&[("charset", "GBK")], RejectionReason::WrongCharset),
    ];
    for (changes, reason) in cases {
        assert_eq!(judged(&altered(changes), OrderState::Created), Err(reason), "{changes:?}");
    }
    assert_eq!(judged(&altered(&[("trans_currency", "CNY")]), OrderState::Created), Ok(SettlementDecision::Credit));
}

#[test]
fn an_unset_seller_is_not_compared() {
    let reader = CallbackReader { seller_id: None, ..reader() };
    assert!(reader.read(&body("wrong_seller_id_signed")).is_ok());
}

#[test]
fn a_zero_amount_is_no_refund_and_a_refund_time_is_one() {
    assert_eq!(judged(&altered(&[("refund_fee", "0.00")]), OrderState::Created), Ok(SettlementDecision::Credit));
    let timed = reader().read(&altered(&[("gmt_refund", "2026-01-16 10:00:00")])).unwrap();
    assert_eq!(timed.trade.refunded.unwrap().total, None);
}

#[test]
fn size_is_capped() {
    let mut long = body("valid_trade_success");
    long.resize(MAX_CALLBACK_BYTES + 1, b'x');
    assert_eq!(reader().read(&long).unwrap_err().reason, RejectionReason::TooLarge);
    long.truncate(MAX_CALLBACK_BYTES);
    assert_eq!(reader().read(&long).unwrap_err().reason, RejectionReason::SignatureInvalid);
}

/// Lets one field swallow the next of the sorted order, which leaves the signed text as it was.
fn swallowed(fields: &[FormField], keeper: &str) -> Vec<FormField> {
    let mut sorted: Vec<FormField> = fields.iter().filter(|(name, _)| !name.starts_with("sign")).cloned().collect();
    sorted.sort();
    let position = sorted.iter().position(|(name, _)| name == keeper).unwrap();
    let (name, value) = sorted.remove(position + 1);
    let swallowing = format!("{}&{name}={value}", sorted[position].1);
    sorted[position].1 = swallowing;
    sorted.extend(fields.iter().filter(|(name, _)| name.starts_with("sign")).cloned());
    sorted
}

#[test]
fn a_refund_cannot_be_recut_into_a_payment() {
    let genuine = form::decode(&body("partial_refund_trade_success")).unwrap();
    let recut = swallowed(&swallowed(&genuine, "receipt_amount"), "gmt_payment");
    assert_eq!(form::callback_text(&recut), form::callback_text(&genuine));
    assert!(recut.iter().all(|(name, _)| name != "refund_fee" && name != "gmt_refund"));
    let outcome = judged(form::encode_all(&recut).as_bytes(), OrderState::Created);
    assert_eq!(outcome, Err(RejectionReason::AmbiguousValue));
}

#[test]
fn a_name_cannot_swallow_its_neighbour_either() {
    let genuine = String::from_utf8(body("partial_refund_trade_success")).unwrap();
    let recut =
        genuine.replace("receipt_amount=6.00&", "").replace("refund_fee=", "receipt_amount%3D6.00%26refund_fee=");
    assert_ne!(recut, genuine);
    assert_eq!(judged(recut.as_bytes(), OrderState::Created), Err(RejectionReason::Malformed));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// With any byte changed, the message credits only if it still decodes to the same message.
    #[test]
    fn no_changed_byte_credits(position in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let original = body("valid_trade_success");
        let mut changed = original.clone();
        let position = position.index(changed.len());
        changed[position] = byte;
        if form::decode(&changed) != form::decode(&original) {
            prop_assert_ne!(judged(&changed, OrderState::Created), Ok(SettlementDecision::Credit));
        }
    }

    #[test]
    fn no_cut_or_lengthened_message_credits(length in any::<prop::sample::Index>(), tail in "[ -~]{1,12}") {
        let original = body("valid_trade_success");
        let cut = &original[..length.index(original.len())];
        prop_assert_ne!(judged(cut, OrderState::Created), Ok(SettlementDecision::Credit));
        let longer = [original.as_slice(), tail.as_bytes()].concat();
        prop_assert_ne!(judged(&longer, OrderState::Created), Ok(SettlementDecision::Credit));
    }

    /// One field removed, emptied, replaced or renamed under the old signature.
    #[test]
    fn no_changed_field_credits(position in any::<prop::sample::Index>(), value in "[ -~]{0,12}", change in 0..4) {
        let original = form::decode(&body("valid_trade_success")).unwrap();
        let mut fields = original.clone();
        let position = position.index(fields.len());
        match change {
            0 => { fields.remove(position); }
            1 => fields[position].1.clear(),
            2 => fields[position].1 = value,
            _ => fields[position].0.push('x'),
        }
        if fields != original {
            prop_assert_ne!(judged(form::encode_all(&fields).as_bytes(), OrderState::Created), Ok(SettlementDecision::Credit));
        }
    }

    /// Genuine signatures over changed fields: the message must still fit us and the order in every checked field.
    #[test]
    fn no_signed_message_about_something_else_credits(name in prop::sample::select(vec![
        "app_id", "seller_id", "out_trade_no", "total_amount", "trade_status", "refund_fee", "gmt_refund", "charset", "notify_type",
    ]), value in "[0-9A-Za-z_.]{1,12}") {
        prop_assume!(!matches!(
            (name, value.as_str()),
            ("total_amount", "6" | "6.0" | "6.00") | ("refund_fee", "0" | "0.0" | "0.00") | ("trade_status", "TRADE_SUCCESS")
        ));
        prop_assert_ne!(judged(&altered(&[(name, &value)]), OrderState::Created), Ok(SettlementDecision::Credit));
    }
}
