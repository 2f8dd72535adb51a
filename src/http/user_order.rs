//! An order as its user sees it, in both API generations.

use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    domain::{
        identity::preferences,
        money::{
            ledger::Asset,
            payments::{
                order::Order,
                orders::{self, OrderedProduct},
            },
        },
    },
    error::Result,
    http::{
        payment_channel::{ChannelName, PaymentChoice},
        request_context::RequestContext,
    },
    providers::payment::{OrderState, PaymentInstruction},
    types::{Timestamp, UserId},
};

/// An order of the caller.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Order)]
pub struct UserOrder {
    #[schema(example = "202601020123456789012345")]
    order_no: String,
    /// The provider's number of the payment; null until it is paid.
    #[schema(example = "2026010222001400000000000001")]
    trade_no: Option<String>,
    user_id: UserId,
    #[schema(example = "points_600")]
    product_id: String,
    asset: Asset,
    /// Coins or points that it brings, without bonus.
    #[schema(example = 600)]
    count: u32,
    /// The same as `count`.
    #[schema(example = 600)]
    coin_count: u32,
    /// The bonus that was given. Before the credit, the bonus of each purchase, without that of a first purchase.
    #[schema(example = 0)]
    bonus: i64,
    /// The name that the buyer sees at the provider.
    #[schema(example = "600 points")]
    subject: String,
    /// The price, with two decimals.
    #[schema(example = "6.00")]
    amount: String,
    #[schema(example = "CNY")]
    currency: String,
    #[schema(value_type = ChannelName)]
    channel: String,
    status: OrderState,
    /// The amount received.
    #[schema(example = "6.00")]
    paid: String,
    #[schema(example = "0.00")]
    refunded: String,
    /// Coins or points taken back for refunds, bonus included.
    #[schema(example = 0)]
    returned: i64,
    created_at: Timestamp,
    /// Time until which it can be paid.
    #[schema(value_type = String, format = DateTime, example = "2026-01-02T03:34:05.678Z")]
    expires_at: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime, example = "2026-01-02T03:05:05.678Z")]
    paid_at: Option<Timestamp>,
    #[schema(value_type = Option<String>, format = DateTime, example = "2026-01-02T03:05:06.678Z")]
    credited_at: Option<Timestamp>,
    #[schema(value_type = Option<String>, format = DateTime, example = "2026-01-03T04:04:05.678Z")]
    closed_at: Option<Timestamp>,
    #[schema(value_type = Option<String>, format = DateTime, example = "2026-01-04T03:04:05.678Z")]
    refunded_at: Option<Timestamp>,
}

impl From<Order> for UserOrder {
    fn from(order: Order) -> Self {
        Self {
            order_no: order.order_no,
            trade_no: order.trade_no,
            user_id: order.user,
            product_id: order.product_id,
            asset: order.asset,
            count: order.coin_count,
            coin_count: order.coin_count,
            bonus: if order.credited_at.is_some() { order.bonus_credited } else { order.bonus.into() },
            subject: order.subject,
            amount: order.amount.to_string(),
            currency: order.currency.to_string(),
            channel: order.channel,
            status: order.state,
            paid: order.paid.to_string(),
            refunded: order.refunded.to_string(),
            returned: order.coins_returned + order.bonus_returned,
            created_at: order.created_at,
            expires_at: order.expires_at,
            paid_at: order.paid_at,
            credited_at: order.credited_at,
            closed_at: order.closed_at,
            refunded_at: order.refunded_at,
        }
    }
}

/// Creates an order in the user's language, or finds the open one, and prepares its payment.
pub async fn order_to_pay(
    context: &RequestContext,
    user: UserId,
    ordered: OrderedProduct,
    choice: PaymentChoice,
) -> Result<(Order, PaymentInstruction)> {
    let locale = preferences::locale(&context.app.core, user, context.locale())?;
    let pending =
        orders::create(&context.app.payments, user, ordered, choice.channel.as_deref(), &choice.client, locale)?;
    let order = context.committed(pending).await?;
    // An RSA signature takes too long for a worker thread, and some channels call the provider.
    context
        .blocking(move |app| {
            let instruction = orders::prepare(&app.payments, &order, &choice.client)?;
            Ok((order, instruction))
        })
        .await
}
