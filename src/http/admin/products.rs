//! `/admin/products`: the products for sale and their terms.

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{
    config::LimitsConfig,
    domain::money::{
        ledger::Asset,
        products::{
            self, DESCRIPTION_LENGTH, ID_LENGTH, LARGEST_QUANTITY, Product, ProductId, ProductTerms, ProductText,
            SUBJECT_LENGTH,
        },
    },
    error::{Fault, Result},
    http::{
        body::RawValue,
        params::{Flag, Nothing, Parameter, Reason, Rules, parameters, text, whole_number},
        reply::Json,
        request_context::RequestContext,
        v0::payment::YuanAmount,
    },
    types::{Fen, clean_line, clean_lines},
};

parameters! {
    NamedProductParams(fields) {
        id: ChangedProductId = fields.path("id", "The product.");
        reason: Option<Reason> = fields.optional("reason", "The reason, for the audit.");
    }

    PutProductParams(fields) {
        id: ChangedProductId = fields.path("id", "The product.");
        asset: Asset = fields.required("asset", "The asset that it brings.");
        count: Quantity = fields.required("count", "Coins or points that it brings, without bonus.");
        bonus: Option<BonusQuantity> = fields.optional("bonus", "Bonus of each purchase. Default: 0.");
        first_bonus: Option<BonusQuantity> = fields.optional("firstBonus", "Additional bonus of a user's first purchase. Default: 0.");
        price: Option<YuanAmount> = fields.usual("price", "The price in yuan. Without it only app stores sell the product.");
        apple_id: Option<StoreId> = fields.optional("appleId", "The product id at Apple's App Store.");
        google_id: Option<StoreId> = fields.optional("googleId", "The product id at Google Play.");
        subject_zh: Option<ProductName> = fields.optional("subjectZh", "The name that a buyer sees at the provider, in Chinese. Default: the number of coins or points.");
        subject_en: Option<ProductName> = fields.optional("subjectEn", "The same in English.");
        description_zh: Option<ProductDescription> = fields.optional("descriptionZh", "A description for the app, in Chinese.");
        description_en: Option<ProductDescription> = fields.optional("descriptionEn", "The same in English.");
        is_for_sale: Option<Flag> = fields.optional("isForSale", "False to withdraw it from sale. Default: true.");
        reason: Option<Reason> = fields.optional("reason", "The reason, for the audit.");
    }
}

/// A product with its current terms.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdminProduct {
    #[schema(example = "coins_60")]
    id: String,
    /// Counts the changes of its terms: 0 for a product of the settings.
    #[schema(example = 1)]
    version: u32,
    is_for_sale: bool,
    asset: Asset,
    #[schema(example = 60)]
    count: u32,
    #[schema(example = 6)]
    bonus: u32,
    #[schema(example = 30)]
    first_bonus: u32,
    #[schema(example = "6.00")]
    price: Option<String>,
    apple_id: Option<String>,
    google_id: Option<String>,
    #[schema(example = "60 金币")]
    subject_zh: Option<String>,
    #[schema(example = "60 coins")]
    subject_en: Option<String>,
    description_zh: Option<String>,
    description_en: Option<String>,
}

/// All products, by asset and price.
#[derive(Serialize, ToSchema)]
pub struct AdminProductList {
    items: Vec<AdminProduct>,
}

impl From<Product> for AdminProduct {
    fn from(product: Product) -> Self {
        let terms = product.terms;
        Self {
            id: product.id.to_string(),
            version: product.version,
            is_for_sale: product.is_for_sale,
            asset: terms.asset,
            count: terms.quantity,
            bonus: terms.bonus,
            first_bonus: terms.first_bonus,
            price: terms.amount.as_ref().map(Fen::to_string),
            apple_id: terms.apple_id,
            google_id: terms.google_id,
            subject_zh: terms.subject.chinese,
            subject_en: terms.subject.english,
            description_zh: terms.description.chinese,
            description_en: terms.description.english,
        }
    }
}

pub async fn list(context: RequestContext, _: Nothing) -> Result<Json<AdminProductList>> {
    let items = products::all(&context.app.core)?.into_iter().map(AdminProduct::from).collect();
    Ok(Json(AdminProductList { items }))
}

pub async fn find(context: RequestContext, params: NamedProductParams) -> Result<Json<AdminProduct>> {
    Ok(Json(products::find(&context.app.core, &params.id.0)?.into()))
}

pub async fn put(context: RequestContext, params: PutProductParams) -> Result<Json<AdminProduct>> {
    let bonus = |bonus: Option<BonusQuantity>| bonus.map_or(0, |BonusQuantity(bonus)| bonus);
    let store_id = |id: Option<StoreId>| id.map(|StoreId(id)| id);
    let subject = |subject: Option<ProductName>| subject.map(|ProductName(text)| text);
    let description = |description: Option<ProductDescription>| description.map(|ProductDescription(text)| text);
    let terms = ProductTerms {
        asset: params.asset,
        quantity: params.count.0,
        bonus: bonus(params.bonus),
        first_bonus: bonus(params.first_bonus),
        amount: params.price.map(|YuanAmount(amount)| amount),
        apple_id: store_id(params.apple_id),
        google_id: store_id(params.google_id),
        subject: ProductText { chinese: subject(params.subject_zh), english: subject(params.subject_en) },
        description: ProductText {
            chinese: description(params.description_zh),
            english: description(params.description_en),
        },
    };
    let is_for_sale = params.is_for_sale.is_none_or(|Flag(is_for_sale)| is_for_sale);
    let before = products::find_maybe(&context.app.core, &params.id.0)?;
    let after = Product { id: params.id.0.clone(), version: 0, is_for_sale, terms: terms.clone() };
    name_change(&context, before.as_ref(), &after, params.reason)?;
    let stored = context.committed(products::put(&context.app.core, params.id.0, terms, is_for_sale)).await?;
    Ok(Json(stored.into()))
}

pub async fn offer(context: RequestContext, params: NamedProductParams) -> Result<Json<AdminProduct>> {
    set_for_sale(&context, params, true).await
}

pub async fn withdraw(context: RequestContext, params: NamedProductParams) -> Result<Json<AdminProduct>> {
    set_for_sale(&context, params, false).await
}

/// Adds the product with its terms before and after to the audit event, and the reason.
fn name_change(
    context: &RequestContext,
    before: Option<&Product>,
    after: &Product,
    reason: Option<Reason>,
) -> Result<()> {
    let change = products::describe_change(before, after);
    let reason = reason.map_or_else(String::new, |Reason(reason)| format!("; {reason}"));
    context.authority(Some(format!("{change}{reason}"))).map(drop)
}

async fn set_for_sale(
    context: &RequestContext,
    params: NamedProductParams,
    is_for_sale: bool,
) -> Result<Json<AdminProduct>> {
    let before = products::find(&context.app.core, &params.id.0)?;
    name_change(context, Some(&before), &Product { is_for_sale, ..before.clone() }, params.reason)?;
    let stored = context.committed(products::set_for_sale(&context.app.core, params.id.0, is_for_sale)).await?;
    Ok(Json(stored.into()))
}

impl Parameter for ProductId {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        Self::parse(&text(value)?)
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "string", "pattern": "^[0-9a-z_.-]{1,128}$", "example": "points_600" })
    }
}

/// The product that an administrator reads or changes. Its example is not that of buyers, which must stay for sale.
pub struct ChangedProductId(ProductId);

impl Parameter for ChangedProductId {
    fn read(value: &RawValue<'_>, rules: &Rules<'_>) -> Result<Self, Fault> {
        ProductId::read(value, rules).map(Self)
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "string", "pattern": "^[0-9a-z_.-]{1,128}$", "example": "coins_330" })
    }
}

/// Coins or points of a product.
pub struct Quantity(u32);

impl Parameter for Quantity {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        whole_number(value, 1..=LARGEST_QUANTITY).map(Self)
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "integer", "minimum": 1, "maximum": LARGEST_QUANTITY, "example": 60 })
    }
}

/// A bonus, or none.
pub struct BonusQuantity(u32);

impl Parameter for BonusQuantity {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        whole_number(value, 0..=LARGEST_QUANTITY).map(Self)
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "integer", "minimum": 0, "maximum": LARGEST_QUANTITY, "example": 6 })
    }
}

/// A product id at an app store.
pub struct StoreId(pub String);

impl Parameter for StoreId {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        products::parse_store_id(&text(value)?).map(Self)
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "string", "pattern": "^[0-9A-Za-z_.-]{1,128}$", "maxLength": ID_LENGTH, "example": "com.example.coins60" })
    }
}

/// The name of a product at the provider.
pub struct ProductName(String);

impl Parameter for ProductName {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        clean_line(&text(value)?, SUBJECT_LENGTH).map(Self)
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "string", "maxLength": SUBJECT_LENGTH, "example": "60 coins" })
    }
}

/// The description of a product.
pub struct ProductDescription(String);

impl Parameter for ProductDescription {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        clean_lines(&text(value)?, DESCRIPTION_LENGTH).map(Self)
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "string", "maxLength": DESCRIPTION_LENGTH, "example": "For a month of questions" })
    }
}
