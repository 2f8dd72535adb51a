//! `/api/v1/products`: what can be bought, and what uses cost. The first API generation has the same list.

use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    domain::money::{
        ledger::Asset,
        payments::channels::PaymentChannel,
        products::{self, Product},
    },
    error::Result,
    http::{
        params::parameters,
        payment_channel::ChannelName,
        public_content::{PublicJson, PublicResource},
        request_context::RequestContext,
    },
    providers::payment::PaymentGateway,
    types::{Fen, Locale},
};

parameters! {
    ListProductsParams(fields) {
        asset: Option<Asset> = fields.optional("asset", "Only products that bring this.");
    }
}

/// A product that can be bought.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Product)]
pub struct ProductForSale {
    #[schema(example = "points_600")]
    id: String,
    asset: Asset,
    /// Coins or points that it brings, without bonus.
    #[schema(example = 600)]
    count: u32,
    /// Given with each purchase.
    #[schema(example = 0)]
    bonus: u32,
    /// Given with the user's first purchase too.
    #[schema(example = 0)]
    first_bonus: u32,
    /// Yuan with two decimals. Null for a product that only app stores sell, at their price.
    #[schema(example = "6.00")]
    price: Option<String>,
    #[schema(example = "CNY")]
    currency: &'static str,
    /// The channels that sell it, the default first, each with its price. Empty if only app stores do.
    channels: Vec<ChannelPrice>,
    /// The product id at Apple's App Store.
    apple_id: Option<String>,
    /// The product id at Google Play.
    google_id: Option<String>,
    /// The name, in the language of the request.
    #[schema(example = "600 points")]
    subject: String,
    description: Option<String>,
}

/// The price of a product in a payment channel.
#[derive(Serialize, ToSchema)]
pub struct ChannelPrice {
    /// The `channel` of an order.
    #[schema(value_type = ChannelName)]
    channel: &'static str,
    /// In `currency`, with two decimals.
    #[schema(example = "6.00")]
    price: String,
    #[schema(example = "CNY")]
    currency: String,
}

/// The price of a use.
#[derive(Serialize, ToSchema)]
pub struct UsePrice {
    asset: Asset,
    #[schema(example = 10)]
    count: u32,
}

/// The prices of all uses.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsePrices {
    /// One use in the first API generation.
    r#use: UsePrice,
    /// A casting, with its first interpretation.
    casting: UsePrice,
    /// Each further interpretation of the same session.
    another_interpretation: UsePrice,
}

/// The products for sale, by asset and price, and the prices of uses.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProductList {
    items: Vec<ProductForSale>,
    prices: UsePrices,
    /// Points that a user gets for one coin. 0 if coins cannot be exchanged.
    #[schema(example = 0)]
    points_per_coin: u32,
}

impl PublicResource for ProductList {}

impl ProductForSale {
    fn new(product: Product, locale: Locale, channels: &[&PaymentChannel]) -> Self {
        let terms = product.terms;
        let in_channel = |gateway: &dyn PaymentGateway| {
            let price = gateway.price(terms.amount?)?.to_string();
            Some(ChannelPrice { channel: gateway.name(), price, currency: gateway.currency().to_string() })
        };
        Self {
            id: product.id.to_string(),
            asset: terms.asset,
            count: terms.quantity,
            bonus: terms.bonus,
            first_bonus: terms.first_bonus,
            price: terms.amount.as_ref().map(Fen::to_string),
            currency: "CNY",
            channels: channels.iter().filter_map(|channel| in_channel(channel.gateway.as_ref())).collect(),
            subject: terms.subject(locale),
            description: terms.description.in_locale(locale).map(ToOwned::to_owned),
            apple_id: terms.apple_id,
            google_id: terms.google_id,
        }
    }
}

pub async fn list(context: RequestContext, params: ListProductsParams) -> Result<PublicJson<ProductList>> {
    let (config, locale) = (&context.app.core.config, context.locale());
    let for_sale = products::for_sale(&context.app.core)?.into_iter();
    let wanted = for_sale.filter(|product| params.asset.is_none_or(|asset| product.terms.asset == asset));
    let channels = context.app.payments.channels.for_sale();
    let points = |count| UsePrice { asset: Asset::Point, count };
    let list = ProductList {
        items: wanted.map(|product| ProductForSale::new(product, locale, &channels)).collect(),
        prices: UsePrices {
            r#use: UsePrice { asset: Asset::Coin, count: config.coins.consume },
            casting: points(config.points.cast),
            another_interpretation: points(config.points.another_interpretation),
        },
        points_per_coin: config.points.per_coin,
    };
    PublicJson::changing(&list, &context.headers)
}
