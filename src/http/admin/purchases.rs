//! `/admin/purchases`: purchases in app stores.

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::{lists::StaffList, payments::OrderEntry};
use crate::{
    app::App,
    config::LimitsConfig,
    domain::money::{
        ledger::Asset,
        purchases::{
            messages::StoreMessage,
            purchase::{PurchaseEnvironment, PurchaseState, PurchaseStore, StorePurchase},
            queries::{self, BuyerPurchase},
            records::{self, PurchaseDetails, PurchaseFilter},
        },
    },
    error::{Fault, FieldCode, Result},
    http::{
        body::RawValue,
        console::views::{
            cells::Column, context::ViewContext, layout::Place, list_page::FilterField, pages::rows, texts::Text,
        },
        params::{Parameter, Rules, parameters, text},
        reply::Json,
        request_context::RequestContext,
    },
    types::{PageRequest, Paginated, Timestamp, UserId, clean},
};

parameters! {
    ListPurchasesParams(fields) {
        user_id: Option<UserId> = fields.optional("userId", "Only purchases of this user.");
        state: Option<PurchaseState> = fields.optional("state", "Only purchases in this state.");
    }

    NamedPurchaseParams(fields) {
        id: PurchaseNumber = fields.path("id", "The purchase's id here, Apple's transaction id, or Google's order number.");
    }
}

/// A purchase as operators see it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdminPurchase {
    #[schema(example = "17")]
    id: String,
    store: PurchaseStore,
    environment: PurchaseEnvironment,
    /// Apple's transaction id, or Google's order number. Purchase tokens are not shown.
    #[schema(example = "2000000800000001")]
    store_number: Option<String>,
    /// Names the purchase in the ledger.
    #[schema(example = "apple:production:2000000800000001")]
    reference: String,
    /// Null while only a refund is known.
    user_id: Option<UserId>,
    #[schema(example = "com.example.app.coins60")]
    store_product_id: Option<String>,
    #[schema(example = "coins_60")]
    product_id: Option<String>,
    /// The version of the product whose terms the purchase has.
    #[schema(example = 1)]
    product_version: Option<u32>,
    asset: Option<Asset>,
    #[schema(example = 1)]
    quantity: u32,
    /// Coins or points that it brought, without bonus.
    #[schema(example = 60)]
    coin_count: i64,
    #[schema(example = 0)]
    bonus: i64,
    state: PurchaseState,
    /// Why it is refused.
    #[schema(example = "unknown_product")]
    reason: Option<String>,
    /// The buyer's country at the store.
    #[schema(example = "CHN")]
    country: Option<String>,
    /// The price of the quantity in thousandths of the currency, if the store tells it.
    #[schema(example = 6000)]
    price_milli: Option<i64>,
    #[schema(example = "CNY")]
    currency: Option<String>,
    #[schema(example = 0)]
    coins_returned: i64,
    #[schema(example = 0)]
    bonus_returned: i64,
    /// Coins that were spent before the refund.
    #[schema(example = 0)]
    coins_written_off: i64,
    #[schema(example = 0)]
    bonus_written_off: i64,
    /// The next call to the store, such as the consumption of a purchase in Google Play.
    #[schema(value_type = Option<String>, format = DateTime, example = "2026-01-02T03:05:05.678Z")]
    due_at: Option<Timestamp>,
    purchased_at: Option<Timestamp>,
    #[schema(value_type = String, format = DateTime, example = "2026-01-02T03:04:06.678Z")]
    created_at: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime, example = "2026-01-02T03:04:06.678Z")]
    credited_at: Option<Timestamp>,
    #[schema(value_type = Option<String>, format = DateTime, example = "2026-01-04T03:04:05.678Z")]
    revoked_at: Option<Timestamp>,
}

impl From<&StorePurchase> for AdminPurchase {
    fn from(purchase: &StorePurchase) -> Self {
        purchase.clone().into()
    }
}

impl From<StorePurchase> for AdminPurchase {
    fn from(purchase: StorePurchase) -> Self {
        let store_number = purchase.store_number().map(ToOwned::to_owned);
        let (price_milli, currency) = purchase.price.unzip();
        Self {
            id: purchase.id.to_string(),
            store: purchase.key.store,
            environment: purchase.key.environment,
            store_number,
            reference: purchase.reference,
            user_id: purchase.user,
            store_product_id: purchase.store_product,
            product_version: purchase.product.as_ref().map(|product| product.version),
            asset: purchase.product.as_ref().map(|product| product.asset),
            product_id: purchase.product.map(|product| product.id),
            quantity: purchase.quantity,
            coin_count: purchase.coin_count,
            bonus: purchase.bonus,
            state: purchase.state,
            reason: purchase.reason,
            country: purchase.country,
            price_milli,
            currency,
            coins_returned: purchase.returned,
            bonus_returned: purchase.bonus_returned,
            coins_written_off: purchase.written_off,
            bonus_written_off: purchase.bonus_written_off,
            due_at: purchase.due_at,
            purchased_at: purchase.purchased_at,
            created_at: purchase.created_at,
            credited_at: purchase.credited_at,
            revoked_at: purchase.revoked_at,
        }
    }
}

/// A purchase with its notifications of the last 30 days and its ledger entries.
#[derive(Serialize, ToSchema)]
pub struct AdminPurchaseDetails {
    purchase: AdminPurchase,
    messages: Vec<StoreMessage>,
    entries: Vec<OrderEntry>,
}

impl From<&PurchaseDetails> for AdminPurchaseDetails {
    fn from(details: &PurchaseDetails) -> Self {
        Self {
            purchase: (&details.purchase).into(),
            messages: details.messages.clone(),
            entries: details.entries.iter().cloned().map(Into::into).collect(),
        }
    }
}

pub struct PurchaseList;

impl StaffList for PurchaseList {
    type Params = ListPurchasesParams;
    type Filter = PurchaseFilter;
    type Row = StorePurchase;

    const PLACE: Place = Place::Purchases;
    const EMPTY: Text = Text::NoPurchases;
    const COLUMNS: &'static [Column<StorePurchase>] = rows::PURCHASE;

    fn fields(_: &ViewContext) -> Vec<FilterField> {
        vec![
            FilterField::new("state", Text::State)
                .choice(PurchaseState::ALL)
                .tabs([PurchaseState::Refused, PurchaseState::Revoked]),
            FilterField::new("userId", Text::UserId),
        ]
    }

    fn filter(context: &RequestContext, params: ListPurchasesParams) -> Result<PurchaseFilter> {
        context.name_subject(params.user_id);
        Ok(PurchaseFilter { user: params.user_id, state: params.state })
    }

    fn read(app: &App, filter: &PurchaseFilter, page: PageRequest) -> Result<Paginated<StorePurchase>> {
        records::list(&app.core, *filter, page)
    }
}

pub async fn show(context: RequestContext, params: NamedPurchaseParams) -> Result<Json<AdminPurchaseDetails>> {
    let details = records::find_details(&context.app.core, &params.id.0)?;
    if let Some(user) = details.purchase.user {
        context.meta.subject.get_or_init(|| user);
    }
    Ok(Json((&details).into()))
}

/// Asks the store about a purchase and applies its state.
pub async fn query(context: RequestContext, params: NamedPurchaseParams) -> Result<Json<AdminPurchase>> {
    let PurchaseNumber(number) = params.id;
    let purchase = context.blocking(move |app| queries::query(&app.purchases, &number)).await?;
    if let Some(user) = purchase.user {
        context.meta.subject.get_or_init(|| user);
    }
    Ok(Json(purchase.into()))
}

/// A purchase of a buyer at the App Store.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdminBuyerPurchase {
    /// Apple's transaction id.
    #[schema(example = "2000000800000001")]
    store_number: String,
    #[schema(example = "com.example.app.coins60")]
    store_product_id: String,
    purchased_at: Option<Timestamp>,
    /// True if its money went back, in whole or in part.
    #[schema(example = false)]
    is_refunded: bool,
    /// Null if it names no account of this service.
    purchase: Option<AdminPurchase>,
}

impl From<BuyerPurchase> for AdminBuyerPurchase {
    fn from(found: BuyerPurchase) -> Self {
        Self {
            store_number: found.store_number,
            store_product_id: found.store_product,
            purchased_at: found.purchased_at,
            is_refunded: found.is_refunded,
            purchase: found.purchase.map(Into::into),
        }
    }
}

/// The purchases of a buyer, newest first.
#[derive(Serialize, ToSchema)]
pub struct BuyerHistory {
    items: Vec<AdminBuyerPurchase>,
}

impl From<Vec<BuyerPurchase>> for BuyerHistory {
    fn from(found: Vec<BuyerPurchase>) -> Self {
        Self { items: found.into_iter().map(Into::into).collect() }
    }
}

/// Asks the App Store about all purchases of the buyer and applies their states.
pub async fn history(context: RequestContext, params: NamedPurchaseParams) -> Result<Json<BuyerHistory>> {
    let PurchaseNumber(number) = params.id;
    let found = context.blocking(move |app| queries::history(&app.purchases, &number)).await?;
    if let Some(user) = found.iter().find_map(|found| found.purchase.as_ref()?.user) {
        context.meta.subject.get_or_init(|| user);
    }
    Ok(Json(found.into()))
}

/// The number of a purchase: ours, Apple's transaction id or order number, or Google's order number.
pub struct PurchaseNumber(String);

impl Parameter for PurchaseNumber {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        let number = clean(&text(value)?, 64)?;
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
        if !number.is_empty() && number.bytes().all(is_allowed) {
            return Ok(Self(number));
        }
        Err(Fault::new(
            FieldCode::InvalidFormat,
            ("must be letters, digits, `.`, `-` and `_`", "只能包含字母、数字、`.`、`-` 和 `_`"),
        ))
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "string", "pattern": "^[0-9A-Za-z._-]{1,64}$", "example": "17" })
    }
}
