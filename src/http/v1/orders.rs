//! `/api/v1/orders`: purchases through payment gateways.

use std::collections::BTreeMap;

use axum::{
    body::Body,
    http::{Response, StatusCode},
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    domain::money::{
        payments::{
            orders::{self, OrderedProduct},
            reconcile::{self, ClaimedPayment, OrderConfirmation},
            sandbox,
        },
        products::ProductId,
    },
    error::Result,
    http::{
        cursor_page::{CursorList, CursorPage, span},
        params::{PageSize, Rules, parameters},
        payment_channel::{PaymentChoice, payment_choice},
        reply::{Json, Reply, ReplyDescription},
        request_context::RequestContext,
        user_order::{UserOrder, order_to_pay},
        v0::payment::OrderNo,
    },
    providers::payment::{OrderState, PaymentInstruction},
    types::Cursor,
};

const ORDERS: CursorList = CursorList("orders");

parameters! {
    OrderProductParams(fields) {
        product_id: ProductId = fields.required("productId", "The product, from the list of products.");
        choice: PaymentChoice = payment_choice(fields);
    }

    ListOwnOrdersParams(fields) {
        limit: Option<PageSize> = fields.optional("limit", "Maximum number of orders.");
        before: Option<i64> = {
            let cursor = fields.optional("cursor", "`nextCursor` of the previous response.");
            fields.cross_field(cursor, before)
        };
    }

    OwnOrderParams(fields) {
        order_no: OrderNo = fields.path("orderNo", "The order.");
    }
}

/// An order that can be paid.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewOrder {
    #[serde(flatten)]
    order: UserOrder,
    /// Alipay and the sandbox: pass it unchanged to the provider's SDK. Null for other channels.
    #[schema(example = "method=alipay.trade.app.pay&app_id=sandbox&charset=utf-8&…")]
    order_string: Option<String>,
    /// Other channels: the parameters for WeChat's SDK or page, or `url`, `h5_url` or `code_url` to open or show.
    #[schema(example = json!({ "url": "https://checkout.stripe.com/c/pay/cs_1" }))]
    payment: BTreeMap<String, String>,
}

/// Returns the same order for some minutes.
pub async fn create(context: RequestContext, params: OrderProductParams) -> Result<Json<NewOrder>> {
    let (user, ordered) = (context.user()?, OrderedProduct::ById(params.product_id));
    let (order, instruction) = order_to_pay(&context, user, ordered, params.choice).await?;
    let PaymentInstruction { order_string, parameters: payment, .. } = instruction;
    Ok(Json(NewOrder { order: order.into(), order_string, payment }))
}

pub async fn list(context: RequestContext, params: ListOwnOrdersParams) -> Result<Json<CursorPage<UserOrder>>> {
    let span = span(&context, params.before, params.limit);
    let slice = orders::of_user(&context.app.core, context.user()?, span)?;
    ORDERS.page(&context, slice, Into::into)
}

pub async fn find(context: RequestContext, params: OwnOrderParams) -> Result<Json<UserOrder>> {
    Ok(Json(orders::find_own(&context.app.core, context.user()?, &params.order_no.0)?.into()))
}

pub async fn confirm(context: RequestContext, params: OwnOrderParams) -> Result<ConfirmedOrder> {
    let user = context.user()?;
    let OrderNo(order_no) = params.order_no;
    let claim = ClaimedPayment { order_no, trade_no: None, amount: None, coin_count: None };
    Ok(ConfirmedOrder(context.blocking(move |app| reconcile::confirm(&app.payments, user, &claim)).await?))
}

pub async fn pay_in_sandbox(context: RequestContext, params: OwnOrderParams) -> Result<Json<UserOrder>> {
    let user = context.user()?;
    let paid = context.blocking(move |app| sandbox::pay_own(&app.payments, user, &params.order_no.0)).await?;
    Ok(Json(paid.into()))
}

/// Status 200 with the order, or 202 while it is not paid or unknown.
pub struct ConfirmedOrder(OrderConfirmation);

impl Reply for ConfirmedOrder {
    fn into_response(self) -> Result<Response<Body>> {
        let OrderConfirmation { order, is_pending, .. } = self.0;
        let is_pending = is_pending || order.state == OrderState::Created;
        let mut response = Json(UserOrder::from(order)).into_response()?;
        if is_pending {
            *response.status_mut() = StatusCode::ACCEPTED;
        }
        Ok(response)
    }

    fn describe() -> ReplyDescription {
        ReplyDescription {
            statuses: vec![
                (StatusCode::OK, "The order."),
                (
                    StatusCode::ACCEPTED,
                    "The order is not paid yet, or the provider is unavailable; a later check follows.",
                ),
            ],
            ..Json::<UserOrder>::describe()
        }
    }
}

fn before(rules: &Rules<'_>, cursor: Option<Cursor>) -> Result<Option<i64>> {
    ORDERS.position(rules.context, cursor)
}
