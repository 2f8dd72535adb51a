//! The callbacks that the sandbox signs, with the same fields and format as the real provider's.

use super::trade::SandboxTrade;
use super::{APP_ID, SELLER_ID};
use crate::providers::payment::form;
use crate::providers::payment::order_string::{Merchant, OrderParameter};
use crate::providers::shanghai_time::shanghai_text;

/// Returns the signed form body about the current state of a trade; `None` if a time is out of range or signing fails.
pub(super) fn about(trade: &SandboxTrade, merchant: &Merchant, now: i64) -> Option<String> {
    let mut fields: Vec<OrderParameter> = vec![
        ("gmt_create", shanghai_text(trade.created_at)?),
        ("charset", "utf-8".to_owned()),
        ("subject", trade.subject.clone()),
        ("notify_id", notify_id(trade)),
        ("notify_type", "trade_status_sync".to_owned()),
        ("notify_time", shanghai_text(now)?),
        ("trade_status", trade.status.name().to_owned()),
        ("app_id", APP_ID.to_owned()),
        ("auth_app_id", APP_ID.to_owned()),
        ("seller_id", SELLER_ID.to_owned()),
        ("buyer_id", "sandbox_buyer".to_owned()),
        ("version", "1.0".to_owned()),
        ("out_trade_no", trade.order_no.clone()),
        ("trade_no", trade.trade_no.clone()),
        ("total_amount", trade.amount.to_string()),
    ];
    add_payment(&mut fields, trade)?;
    add_refund(&mut fields, trade)?;
    if let Some(closed_at) = trade.closed_at {
        fields.push(("gmt_close", shanghai_text(closed_at)?));
    }
    let signature = merchant.signer.sign(&form::callback_text(&fields)).ok()?;
    fields.push(("sign_type", merchant.signer.sign_type().to_owned()));
    fields.push(("sign", signature));
    Some(form::encode_all(&fields))
}

/// The version changes with the trade, except that an expired trade closes without a stored change.
fn notify_id(trade: &SandboxTrade) -> String {
    let closed = u8::from(trade.closed_at.is_some());
    format!("{}{:04}{closed}", trade.trade_no, trade.version)
}

fn add_payment(fields: &mut Vec<OrderParameter>, trade: &SandboxTrade) -> Option<()> {
    let Some(paid_at) = trade.paid_at else {
        return Some(());
    };
    fields.push(("gmt_payment", shanghai_text(paid_at)?));
    for name in ["receipt_amount", "buyer_pay_amount", "invoice_amount"] {
        fields.push((name, trade.amount.to_string()));
    }
    Some(())
}

fn add_refund(fields: &mut Vec<OrderParameter>, trade: &SandboxTrade) -> Option<()> {
    let Some(last) = trade.refunds.last() else {
        return Some(());
    };
    fields.push(("refund_fee", trade.refunded_total()?.to_string()));
    fields.push(("gmt_refund", format!("{}.{:03}", shanghai_text(last.at)?, last.at.rem_euclid(1000))));
    fields.push(("out_biz_no", last.refund_no.clone()));
    Some(())
}
