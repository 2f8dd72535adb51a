//! Parses a verified order string: the sandbox's side of the payment screen.

use serde::Deserialize;

use crate::providers::payment::Fen;
use crate::providers::payment::form::{self, FormField};
use crate::providers::payment::signing::Verifier;
use crate::providers::shanghai_time::shanghai_milliseconds;

/// The terms under which an order can be paid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Terms {
    pub(super) order_no: String,
    pub(super) amount: Fen,
    pub(super) subject: String,
    /// Epoch milliseconds.
    pub(super) expires_at: i64,
}

#[derive(Deserialize)]
struct Content {
    out_trade_no: String,
    total_amount: String,
    subject: String,
    time_expire: String,
}

impl Terms {
    /// Parses an order string. The error is the code of the refusal.
    pub(super) fn read(order_string: &str, verifier: &Verifier) -> Result<Self, &'static str> {
        let fields = form::decode(order_string.as_bytes()).map_err(|_| "order_string_unreadable")?;
        if !is_genuine(&fields, verifier) {
            return Err("isv.invalid-signature");
        }
        if form::value_of(&fields, "method") != Some("alipay.trade.app.pay") {
            return Err("isv.invalid-method");
        }
        let content = form::value_of(&fields, "biz_content").unwrap_or_default();
        Self::from_content(content).ok_or("ACQ.INVALID_PARAMETER")
    }

    fn from_content(content: &str) -> Option<Self> {
        let content: Content = serde_json::from_str(content).ok()?;
        Some(Self {
            order_no: content.out_trade_no,
            amount: Fen::parse(&content.total_amount).ok()?,
            subject: content.subject,
            expires_at: shanghai_milliseconds(&content.time_expire)?,
        })
    }
}

fn is_genuine(fields: &[FormField], verifier: &Verifier) -> bool {
    let value = |name| form::value_of(fields, name);
    let text = form::request_text(fields);
    value("sign_type") == Some(verifier.sign_type())
        && value("sign").is_some_and(|signature| verifier.verifies(text.as_bytes(), signature))
}
