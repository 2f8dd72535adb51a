//! Orders with everything recorded about them, for support and export.

use serde_json::json;

use crate::{
    domain::{
        Each,
        money::{
            ledger::LedgerEntry,
            payments::{
                Payments,
                callbacks::{self, Callback},
                order::Order,
                orders,
                refunds::{self, Refund},
            },
        },
    },
    error::Result,
    store::Read,
    types::{PageRequest, UserId},
};

/// An order with everything recorded about it.
#[derive(Clone, Debug)]
pub struct OrderDetails {
    pub order: Order,
    pub refunds: Vec<Refund>,
    /// The newest callbacks.
    pub callbacks: Vec<Callback>,
    /// The ledger entries of its coins.
    pub entries: Vec<LedgerEntry>,
}

/// Returns an order with its refunds, callbacks and ledger entries.
pub fn find(payments: &Payments, number: &str) -> Result<OrderDetails> {
    let order = orders::find(payments, number)?;
    let filter = callbacks::CallbackFilter { order_no: Some(order.order_no.clone()), verdict: None };
    Ok(OrderDetails {
        refunds: refunds::of_order(&payments.core, &order.order_no)?,
        callbacks: callbacks::list(&payments.core, &filter, PageRequest::of_newest(20))?.items,
        entries: payments.core.store.read(|tx| orders::entries_in(tx, &order))?,
        order,
    })
}

/// Exports the user's orders with their refunds, oldest first.
pub fn export_in(tx: &Read<'_>, user: UserId, each: Each<'_>) -> Result<()> {
    orders::each_of_user_in(tx, user, &mut |order| {
        let refunds = refunds::of_order_in(tx, &order.order_no)?;
        let payers = callbacks::payers_in(tx, &order.order_no)?;
        each(json!({
            "orderNo": order.order_no,
            "channel": order.channel,
            "amount": order.amount.to_string(),
            "currency": order.currency.to_string(),
            "productId": order.product_id,
            "productVersion": order.product_version,
            "asset": order.asset.name(),
            "coinCount": order.coin_count,
            "bonus": order.bonus_credited,
            "subject": order.subject,
            "status": order.state.name(),
            "tradeNo": order.trade_no,
            "paid": order.paid.to_string(),
            "refunded": order.refunded.to_string(),
            "coinsReturned": order.coins_returned,
            "coinsWrittenOff": order.coins_written_off,
            "bonusReturned": order.bonus_returned,
            "bonusWrittenOff": order.bonus_written_off,
            "refunds": refunds.iter().map(Refund::exported).collect::<Vec<_>>(),
            "payers": payers,
            "createdAt": order.created_at,
            "expiresAt": order.expires_at,
            "paidAt": order.paid_at,
            "creditedAt": order.credited_at,
            "closedAt": order.closed_at,
            "refundedAt": order.refunded_at,
        }))
    })
}
