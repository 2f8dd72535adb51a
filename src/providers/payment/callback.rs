//! Parses a provider's callback: form, signature, receiver and fields, in that order.
//!
//! Nothing in a message is believed before its signature is verified, with our scheme and not the message's. The
//! readable parts of a rejected message go into the [`Rejection`] as unverified claims: an operator who looks for lost
//! money needs the order number.
//!
//! A genuine signature is not enough. The signed text joins fields without escaping, so a partial refund can be re-cut
//! into a plain payment whose `receipt_amount` swallows `refund_fee`. Such messages are rejected.

use super::form::{self, FormFault, FormField};
use super::rejection::{Rejection, RejectionReason};
use super::signing::Verifier;
use super::{Currency, Fen, PaymentCallback, RefundResult, Trade, TradeStatus};
use crate::providers::shanghai_time::shanghai_milliseconds;

/// Larger bodies are not read.
pub const MAX_CALLBACK_BYTES: usize = 16 * 1024;

/// Verifies and parses the callbacks of one provider.
#[derive(Debug)]
pub(super) struct CallbackReader {
    pub(super) channel: &'static str,
    pub(super) app_id: String,
    pub(super) seller_id: Option<String>,
    pub(super) verifier: Verifier,
}

/// All fields that have an effect. No other field's value may contain one of these.
const EFFECTIVE_FIELDS: &[&str] = &[
    "app_id",
    "charset",
    "gmt_payment",
    "gmt_refund",
    "notify_id",
    "notify_type",
    "out_biz_no",
    "out_trade_no",
    "refund_fee",
    "seller_id",
    "total_amount",
    "trade_no",
    "trade_status",
    "trans_currency",
];

impl CallbackReader {
    pub(super) fn read(&self, form_body: &[u8]) -> Result<PaymentCallback, Rejection> {
        if form_body.len() > MAX_CALLBACK_BYTES {
            return Err(rejection(RejectionReason::TooLarge, &[]));
        }
        let fields = form::decode(form_body).map_err(|fault| rejection(fault.into(), &[]))?;
        self.verify(&fields).map_err(|reason| rejection(reason, &fields))?;
        match self.trade(&fields) {
            Ok((notify_id, trade)) => Ok(PaymentCallback { notify_id, trade, fields }),
            Err(reason) => Err(Rejection { is_genuine: true, ..rejection(reason, &fields) }),
        }
    }

    /// Checks that the provider signed the message and that it can be split into fields in one way only.
    fn verify(&self, fields: &[FormField]) -> Result<(), RejectionReason> {
        if form::duplicate_name(fields).is_some() {
            return Err(RejectionReason::DuplicateParameter);
        }
        if fields.iter().any(|(_, value)| form::hides_field(value, EFFECTIVE_FIELDS)) {
            return Err(RejectionReason::AmbiguousValue);
        }
        if form::value_of(fields, "sign_type") != Some(self.verifier.sign_type()) {
            return Err(RejectionReason::WrongSignType);
        }
        let signature = form::value_of(fields, "sign").ok_or(RejectionReason::SignatureMissing)?;
        let text = form::callback_text(fields);
        if self.verifier.verifies(text.as_bytes(), signature) { Ok(()) } else { Err(RejectionReason::SignatureInvalid) }
    }

    /// Parses a complete trade report for our app and seller.
    fn trade(&self, fields: &[FormField]) -> Result<(String, Trade), RejectionReason> {
        let value = |name| form::value_of(fields, name);
        if value("notify_type") != Some("trade_status_sync") {
            return Err(RejectionReason::WrongType);
        }
        if value("app_id") != Some(&self.app_id) {
            return Err(RejectionReason::WrongApp);
        }
        if self.seller_id.is_some() && value("seller_id") != self.seller_id.as_deref() {
            return Err(RejectionReason::WrongSeller);
        }
        if value("trans_currency").is_some_and(|currency| currency != "CNY") {
            return Err(RejectionReason::WrongCurrency);
        }
        let status = required(fields, "trade_status", 64)?;
        let trade = Trade {
            channel: self.channel,
            order_no: required(fields, "out_trade_no", 64)?.to_owned(),
            trade_no: required(fields, "trade_no", 64)?.to_owned(),
            amount: amount(required(fields, "total_amount", 16)?, "total_amount")?,
            currency: Currency::CNY,
            status: TradeStatus::from_name(status).ok_or(RejectionReason::UnknownStatus)?,
            paid_at: value("gmt_payment").and_then(shanghai_milliseconds),
            refunded: refunded(fields)?,
        };
        Ok((required(fields, "notify_id", 128)?.to_owned(), trade))
    }
}

/// Parses the refund of a report, if it names a refunded amount or a refund time. An amount of zero is no refund.
fn refunded(fields: &[FormField]) -> Result<Option<RefundResult>, RejectionReason> {
    let total = form::value_of(fields, "refund_fee").map(|text| amount(text, "refund_fee")).transpose()?;
    let total = total.filter(|&total| total > Fen::ZERO);
    let time = form::value_of(fields, "gmt_refund");
    if total.is_none() && time.is_none() {
        return Ok(None);
    }
    let refund_no = form::value_of(fields, "out_biz_no").map(str::to_owned);
    Ok(Some(RefundResult { total, refund_no, at: time.and_then(shanghai_milliseconds) }))
}

fn required<'a>(fields: &'a [FormField], name: &'static str, limit: usize) -> Result<&'a str, RejectionReason> {
    let value = form::value_of(fields, name).filter(|value| value.len() <= limit);
    value.ok_or(RejectionReason::FieldMissing(name))
}

fn amount(text: &str, field: &'static str) -> Result<Fen, RejectionReason> {
    Fen::parse(text).map_err(|_| RejectionReason::InvalidAmount(field))
}

fn rejection(reason: RejectionReason, fields: &[FormField]) -> Rejection {
    let claim = |name, limit| {
        let value: String = form::value_of(fields, name)?.chars().take(limit).collect();
        Some(value)
    };
    Rejection {
        reason,
        is_genuine: false,
        order_no: claim("out_trade_no", 64),
        trade_no: claim("trade_no", 64),
        notify_id: claim("notify_id", 128),
    }
}

impl From<FormFault> for RejectionReason {
    fn from(fault: FormFault) -> Self {
        match fault {
            FormFault::Malformed => Self::Malformed,
            FormFault::WrongCharset => Self::WrongCharset,
            FormFault::NotUtf8 => Self::NotUtf8,
        }
    }
}

#[cfg(test)]
mod tests;
