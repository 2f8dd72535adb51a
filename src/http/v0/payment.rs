//! `/payment`: purchases of coins.

use std::collections::BTreeMap;

use axum::{
    body::Body,
    http::{HeaderValue, Response, StatusCode, header},
};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::{ToSchema, openapi::schema::Object};

use crate::{
    config::LimitsConfig,
    domain::{
        money::{
            coins,
            payments::{
                callbacks::{self, CallbackReply},
                decisions::{self, Decision},
                order::Order,
                orders::{self, OrderedProduct},
                reconcile::{self, ClaimedPayment, OrderConfirmation},
            },
        },
        operations::idempotency::IdempotentRequest,
    },
    error::{Error, Fault, FieldCode, Result},
    http::{
        body::RawValue,
        claims::Claims,
        numbered_page::NumberedPage,
        openapi::schemas::one_of_names,
        params::{
            BodyShape, Fields, Label, Location, PageNumber, PageSize, Parameter, ParameterDescription, Parameters,
            Reason, Rules, page, parameters, reason_of_admin, text,
        },
        payment_channel::{ChannelName, PaymentChoice, payment_choice},
        reply::{Json, Reply, ReplyDescription},
        request_context::RequestContext,
        user_order::{UserOrder, order_to_pay},
    },
    providers::payment::{OrderState, PaymentInstruction, TradeStatus},
    types::{Fen, Timestamp, UserId, clean},
};

/// The status of an order that is not known to be paid.
const PENDING: &str = "pending";

parameters! {
    CreateOrderParams(fields) {
        user_id: Option<UserId> = fields.optional("userId", "The caller's own id.");
        amount: YuanAmount = fields.required("amount", "The price in yuan. With `coinCount`, a pair of the price list.");
        coin_count: PackageCoins = fields.required("coinCount", "The coins that it buys.");
        choice: PaymentChoice = payment_choice(fields);
    }

    ListOrdersOfUserParams(fields) {
        user_id: Option<UserId> = fields.optional("userId", "The caller's own id.");
        page: Option<PageNumber> = fields.optional("page", "Page number.");
        size: Option<PageSize> = fields.optional("size", "Orders on a page.");
    }

    PaymentClaimParams(fields) {
        user_id: Option<UserId> = fields.optional("userId", "The caller's own id.");
        order_no: OrderNo = fields.required("orderNo", "The order.");
        trade_no: Option<OrderNo> = fields.optional("tradeNo", "The provider's trade number. Before the credit it must equal that of the order.");
        amount: Option<YuanAmount> = fields.optional("amount", "The price in yuan. Must equal that of the order.");
        coin_count: Option<PackageCoins> = fields.optional("coinCount", "The number of coins. Must equal that of the order.");
        _believed: Option<Label> = fields.optional("status", "The status the app has seen. The provider is asked regardless.");
        reason: Option<Reason> = reason_of_admin(fields);
    }
}

/// An order that can be paid.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PaymentOrder {
    #[schema(example = "202601020123456789012345")]
    order_no: String,
    /// The provider's number of the payment; null until it is paid.
    #[schema(example = json!(null))]
    trade_no: Option<String>,
    user_id: UserId,
    /// Yuan, with two decimals.
    #[schema(example = "6.00")]
    amount: String,
    #[schema(example = 60)]
    coin_count: u32,
    status: OrderState,
    #[schema(value_type = ChannelName)]
    channel: String,
    #[schema(example = "CNY")]
    currency: String,
    /// Alipay and the sandbox: pass it unchanged to the provider's SDK. Null for other channels.
    #[schema(example = "method=alipay.trade.app.pay&app_id=sandbox&charset=utf-8&…")]
    order_string: Option<String>,
    /// Other channels: the parameters for WeChat's SDK or page, or `url`, `h5_url` or `code_url` to open or show.
    #[schema(example = json!({ "url": "https://checkout.stripe.com/c/pay/cs_1" }))]
    payment: BTreeMap<String, String>,
    /// Time until which it can be paid.
    #[schema(value_type = String, format = DateTime, example = "2026-01-02T03:34:05.678Z")]
    expires_at: Timestamp,
}

/// Returns the same order for some minutes, for GET and POST alike.
pub async fn order(context: RequestContext, package: CreateOrderParams) -> Result<Json<PaymentOrder>> {
    let user = context.acting_for(&Claims::of_user(package.user_id))?;
    let (YuanAmount(amount), PackageCoins(coin_count)) = (package.amount, package.coin_count);
    let ordered = OrderedProduct::Package { amount, coin_count };
    let (order, instruction) = order_to_pay(&context, user, ordered, package.choice).await?;
    let Order { order_no, trade_no, amount, currency, channel, coin_count, state, expires_at, .. } = order;
    let (amount, currency, status) = (amount.to_string(), currency.to_string(), state);
    let PaymentInstruction { order_string, parameters: payment, .. } = instruction;
    Ok(Json(PaymentOrder {
        order_no,
        trade_no,
        user_id: user,
        amount,
        coin_count,
        status,
        channel,
        currency,
        order_string,
        payment,
        expires_at,
    }))
}

pub async fn list(context: RequestContext, params: ListOrdersOfUserParams) -> Result<Json<NumberedPage<UserOrder>>> {
    let user = context.acting_for(&Claims::of_user(params.user_id))?;
    let page = page(&context, params.page, params.size);
    let filter = orders::OrderFilter::of_user(user);
    Ok(NumberedPage::of(page, orders::list(&context.app.core, filter, page)?))
}

/// Receives the provider's callback. Always responds with one word, because the provider understands nothing else.
pub async fn notify(context: RequestContext, _: CallbackForm) -> Result<CallbackReply> {
    let pending = callbacks::receive(&context.app.payments, None, BTreeMap::new(), context.body.to_vec());
    let receipt = match tokio::time::timeout(context.app.core.config.limits.notify_timeout, pending).await {
        Ok(receipt) => receipt?,
        Err(_) => return Ok(CallbackReply::Fail),
    };
    let order_no = receipt.order_no.as_deref().filter(|_| receipt.is_acknowledged());
    let verdict = receipt.verdict.name();
    tracing::info!(request_id = context.meta.request_id, callback = receipt.id, verdict, order_no, "notified");
    Ok(receipt.word())
}

/// The status of an order, and the user's balance.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PaymentStatus {
    #[schema(example = "202601020123456789012345")]
    order_no: String,
    /// The provider's number of the payment; null until it is paid.
    #[schema(example = "2026010222001400000000000001")]
    trade_no: Option<String>,
    user_id: UserId,
    #[schema(example = 60)]
    coin_count: u32,
    #[schema(schema_with = standings)]
    status: &'static str,
    #[schema(example = 60)]
    balance: i64,
}

fn standings() -> Object {
    let names = OrderState::ALL.map(OrderState::name).into_iter().chain([PENDING]).collect();
    one_of_names(
        "The state of the order; `pending` until it is paid, and while the provider is unavailable.",
        names,
        "credited",
    )
}

pub async fn update_balance(context: RequestContext, result: PaymentClaimParams) -> Result<Confirmed> {
    if context.is_admin() {
        return settle_by_hand(context, result).await;
    }
    let user = context.acting_for(&Claims::of_user(result.user_id))?;
    let claim = claimed_payment(&result);
    Ok(Confirmed(context.blocking(move |app| reconcile::confirm(&app.payments, user, &claim)).await?))
}

fn claimed_payment(result: &PaymentClaimParams) -> ClaimedPayment {
    ClaimedPayment {
        order_no: result.order_no.0.clone(),
        trade_no: result.trade_no.as_ref().map(|OrderNo(number)| number.clone()),
        amount: result.amount.as_ref().map(|YuanAmount(amount)| *amount),
        coin_count: result.coin_count.as_ref().map(|PackageCoins(count)| *count),
    }
}

/// Credits an order in review on the decision of an administrator, with a reason.
async fn settle_by_hand(context: RequestContext, result: PaymentClaimParams) -> Result<Confirmed> {
    let claim = claimed_payment(&result);
    let by = context.authority(result.reason.map(|Reason(reason)| reason))?;
    let order = orders::find(&context.app.payments, &result.order_no.0)?;
    if result.user_id.is_some_and(|claimed| claimed != order.user) {
        return Err(Error::field(
            "userId",
            Fault::new(FieldCode::UnknownValue, ("must be the owner of the order", "须为订单的所有者")),
        ));
    }
    reconcile::check_claim(&order, &claim)?;
    context.meta.subject.get_or_init(|| order.user);
    let pending = decisions::settle(
        &context.app.payments,
        &order.order_no,
        Decision::Credit,
        by,
        IdempotentRequest::without_key(None),
    );
    context.committed(pending).await?;
    let order = orders::find(&context.app.payments, &order.order_no)?;
    let balance = coins::balance(&context.app.core, order.user)?;
    Ok(Confirmed(OrderConfirmation { order, balance, is_pending: false }))
}

/// Status 200 with the order's status, or 202 while it is not paid or unknown.
pub struct Confirmed(OrderConfirmation);

impl Reply for Confirmed {
    fn into_response(self) -> Result<Response<Body>> {
        let OrderConfirmation { order, balance, is_pending } = self.0;
        // Apps treat `created` as success.
        let is_pending = is_pending || order.state == OrderState::Created;
        let status = if is_pending { PENDING } else { order.state.name() };
        let Order { order_no, trade_no, user: user_id, coin_count, .. } = order;
        let status = PaymentStatus { order_no, trade_no, user_id, coin_count, status, balance };
        let mut response = Json(status).into_response()?;
        if is_pending {
            *response.status_mut() = StatusCode::ACCEPTED;
        }
        Ok(response)
    }

    fn describe() -> ReplyDescription {
        ReplyDescription {
            statuses: vec![
                (StatusCode::OK, "State of the order."),
                (
                    StatusCode::ACCEPTED,
                    "The order is not paid yet, or the provider is unavailable; a later check follows.",
                ),
            ],
            ..Json::<PaymentStatus>::describe()
        }
    }
}

impl Reply for CallbackReply {
    fn into_response(self) -> Result<Response<Body>> {
        let mut response = Response::new(Body::from(self.name()));
        let content_type = HeaderValue::from_static("text/plain; charset=utf-8");
        response.headers_mut().insert(header::CONTENT_TYPE, content_type);
        Ok(response)
    }

    fn describe() -> ReplyDescription {
        ReplyDescription {
            statuses: vec![(StatusCode::OK, "`success` once it is on disk; `fail` to have it sent again.")],
            contents: vec![(
                "text/plain",
                json!({ "type": "string", "enum": [Self::Success.name(), Self::Fail.name()] }),
            )],
            schemas: Vec::new(),
            headers: &[],
        }
    }

    fn from_error(_: &Error) -> Option<Self> {
        Some(Self::Fail)
    }
}

/// A callback. Its signature covers the fields as received, so the gateway parses them.
pub struct CallbackForm;

impl Parameters for CallbackForm {
    const BODY: BodyShape = BodyShape::Raw;

    fn read(_: &mut Fields<'_, '_>) -> Option<Self> {
        Some(Self)
    }

    /// Describes the fields that the gateways read.
    fn describe() -> Vec<ParameterDescription> {
        let location = Location::Anywhere;
        let always = |name, description, schema| ParameterDescription {
            name,
            description,
            location,
            is_required: true,
            is_usual: false,
            schema,
        };
        let at_times = |name, description, schema| ParameterDescription {
            name,
            description,
            location,
            is_required: false,
            is_usual: false,
            schema,
        };
        vec![
            always("notify_id", "The callback's id.", |_| form_text("2026010200222030505000000000001")),
            always("notify_type", "The type of the callback; always about a trade.", |_| {
                form_text("trade_status_sync")
            }),
            always("app_id", "The app that the order was made for.", |_| form_text("2021000000000001")),
            always("charset", "Format of the signed text.", |_| form_text("utf-8")),
            always("out_trade_no", "The order.", |_| form_text("202601020123456789012345")),
            always("trade_no", "The provider's number.", |_| form_text("2026010222001400000000000001")),
            always("trade_status", "State of the trade.", |_| form_text(TradeStatus::Success.name())),
            always("total_amount", "The price in yuan.", |_| form_text("6.00")),
            at_times("seller_id", "The receiver of the payment.", |_| form_text("2088000000000001")),
            at_times("gmt_payment", "Time of the payment, in China Standard Time.", |_| {
                form_text("2026-01-02 11:05:05")
            }),
            at_times("refund_fee", "Refunded amount in yuan.", |_| form_text("6.00")),
            always("sign_type", "Signature algorithm.", |_| form_text("RSA2")),
            always("sign", "The signature over the other fields.", |_| form_text("kX8c0Qy3m1dJ7w5uV2sZ9pT4rB6nL0aH…")),
        ]
    }
}

fn form_text(example: &str) -> Value {
    json!({ "type": "string", "example": example })
}

/// An amount of money in yuan.
pub struct YuanAmount(pub Fen);

impl Parameter for YuanAmount {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        let amount = without_surplus_zeros(text(value)?.trim()).parse().map(Self);
        amount.map_err(|fault| {
            let chinese = "须为最多两位小数的金额，例如 6 或 6.00";
            Fault::new(FieldCode::InvalidFormat, (fault.to_string(), chinese))
        })
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "string", "pattern": "^[0-9]{1,10}(\\.[0-9]{1,2}0*)?$", "example": "6.00" })
    }
}

/// Removes zeros after the second decimal: some clients send six yuan as `6.000`.
fn without_surplus_zeros(text: &str) -> &str {
    match text.split_once('.') {
        Some((yuan, decimals)) if decimals.is_char_boundary(2) && decimals[2..].bytes().all(|digit| digit == b'0') => {
            &text[..yuan.len() + 3]
        }
        _ => text,
    }
}

/// The coins of a package.
pub struct PackageCoins(u32);

impl Parameter for PackageCoins {
    fn read(value: &RawValue<'_>, rules: &Rules<'_>) -> Result<Self, Fault> {
        u32::read(value, rules).map(Self)
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "integer", "minimum": 1, "maximum": 999_999_999, "example": 60 })
    }
}

/// The number of an order: ours or the provider's.
pub struct OrderNo(pub String);

impl Parameter for OrderNo {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        let number = clean(&text(value)?, 64)?;
        if number.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            Ok(Self(number))
        } else {
            Err(Fault::new(FieldCode::InvalidFormat, ("must be letters, digits and `_`", "只能包含字母、数字和 `_`")))
        }
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "string", "pattern": "^[0-9A-Za-z_]{1,64}$", "example": "202601020123456789012345" })
    }
}
