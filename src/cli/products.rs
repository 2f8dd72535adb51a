//! `yarrow products`: what can be bought.

use clap::{Args, Subcommand};

use super::{Common, cli_authority, record_audit};
use crate::{
    domain::money::{
        ledger::Asset,
        products::{self, LARGEST_QUANTITY, Product, ProductId, ProductTerms, ProductText},
    },
    error::{Error, Fault, FieldCode, Result},
    http::responses::AdminProduct,
    types::Fen,
};

/// List and change the products for sale
///
/// The packages of the settings are products. A change here takes effect at once, and old orders keep their terms.
#[derive(Debug, Args)]
pub struct ProductsArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Define a product, or change its terms
    ///
    /// Options that are not given keep their values; an empty text removes a name, description or store id. A new product
    /// is offered for sale.
    ///
    /// Example: `yarrow products set coins_60 --asset coin --count 60 --price 6.00 --first-bonus 30`
    Set(Box<SetArgs>),
}

#[derive(Debug, Args)]
struct SetArgs {
    /// Product id, as `yarrow products list` prints it
    id: String,
    /// Asset that it brings: coin or point
    #[arg(long, value_parser = asset)]
    asset: Option<Asset>,
    /// Coins or points that it brings, without bonus
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=i64::from(LARGEST_QUANTITY)))]
    count: Option<u32>,
    /// Bonus of each purchase
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=i64::from(LARGEST_QUANTITY)))]
    bonus: Option<u32>,
    /// Additional bonus of a user's first purchase
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=i64::from(LARGEST_QUANTITY)))]
    first_bonus: Option<u32>,
    /// Price in yuan; a product without one is sold in app stores only
    #[arg(long)]
    price: Option<Fen>,
    /// Remove the price
    #[arg(long, conflicts_with = "price")]
    no_price: bool,
    /// Product id at Apple's App Store
    #[arg(long)]
    apple_id: Option<String>,
    /// Product id at Google Play
    #[arg(long)]
    google_id: Option<String>,
    /// Name that a buyer sees at the provider, in Chinese
    #[arg(long)]
    subject_zh: Option<String>,
    /// The same in English
    #[arg(long)]
    subject_en: Option<String>,
    /// Description for the app, in Chinese
    #[arg(long)]
    description_zh: Option<String>,
    /// The same in English
    #[arg(long)]
    description_en: Option<String>,
    /// Withdraw it from sale, or define it without offering it
    #[arg(long)]
    withdrawn: bool,
}

pub fn run(common: &Common, args: ProductsArgs) -> Result<()> {
    let app = common.open()?;
    match args.action {
        Action::Set(args) => {
            let id = parse_id(&args.id)?;
            let before = products::find_maybe(&app.core, &id)?;
            let is_for_sale = !args.withdrawn && before.as_ref().is_none_or(|product| product.is_for_sale);
            let stored = products::put(&app.core, id, terms(*args, before.clone())?, is_for_sale).wait()?;
            let change = products::describe_change(before.as_ref(), &stored);
            record_audit(&app, "products set", None, cli_authority(Some(change)))?;
            common.show(&AdminProduct::from(stored))
        }
    }
}

/// Returns the terms of the arguments, and those of the known product for all that are absent.
fn terms(args: SetArgs, known: Option<Product>) -> Result<ProductTerms> {
    let required = |name: &str| {
        let fault = Fault::new(FieldCode::Required, ("is required for a new product", "新商品必须填写此项"));
        Error::field(name, fault)
    };
    let known = known.map(|product| product.terms);
    let before = known.as_ref();
    let text = |given: Option<String>, known: Option<&String>| match given {
        Some(given) => Some(given).filter(|given| !given.is_empty()),
        None => known.cloned(),
    };
    let store_id = |name: &str, given: Option<String>, known: Option<&String>| match given {
        Some(given) if !given.is_empty() => {
            products::parse_store_id(&given).map(Some).map_err(|fault| Error::field(name, fault))
        }
        given => Ok(text(given, known)),
    };
    let texts = |chinese, english, known: Option<&ProductText>| ProductText {
        chinese: text(chinese, known.and_then(|known| known.chinese.as_ref())),
        english: text(english, known.and_then(|known| known.english.as_ref())),
    };
    Ok(ProductTerms {
        asset: args.asset.or(before.map(|terms| terms.asset)).ok_or_else(|| required("asset"))?,
        quantity: args.count.or(before.map(|terms| terms.quantity)).ok_or_else(|| required("count"))?,
        bonus: args.bonus.or(before.map(|terms| terms.bonus)).unwrap_or(0),
        first_bonus: args.first_bonus.or(before.map(|terms| terms.first_bonus)).unwrap_or(0),
        amount: args.price.or(before.and_then(|terms| terms.amount).filter(|_| !args.no_price)),
        apple_id: store_id("apple-id", args.apple_id, before.and_then(|terms| terms.apple_id.as_ref()))?,
        google_id: store_id("google-id", args.google_id, before.and_then(|terms| terms.google_id.as_ref()))?,
        subject: texts(args.subject_zh, args.subject_en, before.map(|terms| &terms.subject)),
        description: texts(args.description_zh, args.description_en, before.map(|terms| &terms.description)),
    })
}

fn parse_id(text: &str) -> Result<ProductId> {
    ProductId::parse(text).map_err(|fault| Error::field("id", fault))
}

fn asset(text: &str) -> Result<Asset, String> {
    Asset::from_name(text).ok_or_else(|| "must be coin or point".into())
}
