//! Products: what can be bought, and what each brings.
//!
//! The packages of the settings are products. An operator can add products and change or withdraw any of them while the
//! service runs; such a product replaces the one of the settings with the same id. Each change of terms is a new
//! version. An order copies the terms of its version, so that a later change does not affect it.

use crate::{
    config::{Packages, PaymentConfig},
    core::Core,
    domain::money::ledger::Asset,
    error::{Code, Error, Fault, FieldCode, Result},
    store::{Pending, Read, Row, RowError, RowResult, Write},
    types::{Fen, Locale, Timestamp, clean_line, clean_lines, pluralize},
};

/// Maximum number of products.
const MAX_PRODUCTS: usize = 500;
/// Maximum characters of a subject. Payment providers accept no more.
pub const SUBJECT_LENGTH: usize = 100;
/// Maximum characters of a description.
pub const DESCRIPTION_LENGTH: usize = 500;
/// Maximum characters of an id, here and at app stores.
pub const ID_LENGTH: usize = 128;
/// Maximum coins, points or bonus of one product.
pub const LARGEST_QUANTITY: u32 = 100_000_000;

/// A product id: lower-case letters, digits, `_`, `-` and `.`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProductId(String);

/// A text by language. Without a text, a default is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProductText {
    pub chinese: Option<String>,
    pub english: Option<String>,
}

/// The asset, numbers, price and names of a product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProductTerms {
    pub asset: Asset,
    pub quantity: u32,
    /// Given with each purchase.
    pub bonus: u32,
    /// Given with the user's first purchase too.
    pub first_bonus: u32,
    /// The price at payment gateways. `None` for a product that only app stores sell.
    pub amount: Option<Fen>,
    /// The product id at Apple's App Store.
    pub apple_id: Option<String>,
    /// The product id at Google Play.
    pub google_id: Option<String>,
    /// The name that the buyer sees at the provider.
    pub subject: ProductText,
    pub description: ProductText,
}

/// A product with its current terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Product {
    pub id: ProductId,
    /// Counts the changes of its terms by operators: 0 for a product of the settings.
    pub version: u32,
    pub is_for_sale: bool,
    pub terms: ProductTerms,
}

impl Product {
    /// Returns numbers, price and state in one line.
    fn summary(&self) -> String {
        let ProductTerms { asset, quantity, bonus, first_bonus, amount, apple_id, google_id, .. } = &self.terms;
        let mut summary = format!("{quantity} {}", asset.name());
        let parts = [
            (*bonus > 0).then(|| format!("bonus {bonus}")),
            (*first_bonus > 0).then(|| format!("first bonus {first_bonus}")),
            amount.as_ref().map(|amount| format!("price {amount}")),
            apple_id.as_ref().map(|id| format!("Apple {id}")),
            google_id.as_ref().map(|id| format!("Google {id}")),
            (!self.is_for_sale).then(|| "withdrawn".to_owned()),
        ];
        for part in parts.into_iter().flatten() {
            summary.push_str(", ");
            summary.push_str(&part);
        }
        summary
    }
}

impl ProductId {
    /// Parses an id.
    ///
    /// # Errors
    /// `too_long`, `invalid_format`.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let text = clean_line(text, ID_LENGTH)?;
        let is_allowed =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-' | b'.');
        if !text.is_empty() && text.bytes().all(is_allowed) {
            return Ok(Self(text));
        }
        Err(Fault::new(
            FieldCode::InvalidFormat,
            ("must be lower-case letters, digits, `_`, `-` and `.`", "只能包含小写字母、数字、`_`、`-` 和 `.`"),
        ))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Parses a product id of an app store.
///
/// # Errors
/// `too_long`, `invalid_format`.
pub fn parse_store_id(text: &str) -> Result<String, Fault> {
    let text = clean_line(text, ID_LENGTH)?;
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    if !text.is_empty() && text.bytes().all(is_allowed) {
        return Ok(text);
    }
    Err(Fault::new(
        FieldCode::InvalidFormat,
        ("must be letters, digits, `_`, `-` and `.`", "只能包含字母、数字、`_`、`-` 和 `.`"),
    ))
}

impl std::fmt::Display for ProductId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl ProductText {
    pub fn in_locale(&self, locale: Locale) -> Option<&str> {
        match locale {
            Locale::Chinese => self.chinese.as_deref(),
            Locale::English => self.english.as_deref(),
        }
    }
}

impl ProductTerms {
    /// Returns terms without bonus, store ids and texts.
    pub fn of_package(asset: Asset, quantity: u32, amount: Fen) -> Self {
        Self {
            asset,
            quantity,
            bonus: 0,
            first_bonus: 0,
            amount: Some(amount),
            apple_id: None,
            google_id: None,
            subject: ProductText::default(),
            description: ProductText::default(),
        }
    }

    /// Returns the name that the buyer sees.
    pub fn subject(&self, locale: Locale) -> String {
        let default = || match (self.asset, locale) {
            (Asset::Coin, Locale::English) => pluralize(self.quantity, "coin", "coins"),
            (Asset::Coin, Locale::Chinese) => format!("{} 金币", self.quantity),
            (Asset::Point, Locale::English) => pluralize(self.quantity, "point", "points"),
            (Asset::Point, Locale::Chinese) => format!("{} 积分", self.quantity),
        };
        self.subject.in_locale(locale).map_or_else(default, ToOwned::to_owned)
    }

    /// Checks what single values cannot show.
    ///
    /// # Errors
    /// `invalid_parameters` with all faults.
    fn check(&self) -> Result<()> {
        let mut faults = Vec::new();
        if self.amount == Some(Fen::ZERO) {
            faults.push(Fault::new(FieldCode::OutOfRange, ("must be more than 0", "须大于 0")).in_field("price"));
        }
        if self.amount.is_none() && self.apple_id.is_none() && self.google_id.is_none() {
            faults.push(
                Fault::new(
                    FieldCode::Required,
                    ("is required without `appleId` and `googleId`", "没有 `appleId` 和 `googleId` 时必填"),
                )
                .in_field("price"),
            );
        }
        for (field, text) in [("subjectZh", &self.subject.chinese), ("subjectEn", &self.subject.english)] {
            faults.extend(subject_fault(text.as_deref()).map(|fault| fault.in_field(field)));
        }
        let descriptions = [("descriptionZh", &self.description.chinese), ("descriptionEn", &self.description.english)];
        for (field, text) in descriptions {
            let checked = text.as_deref().map_or(Ok(String::new()), |text| clean_lines(text, DESCRIPTION_LENGTH));
            faults.extend(checked.err().map(|fault| fault.in_field(field)));
        }
        if faults.is_empty() { Ok(()) } else { Err(Error::fields(faults)) }
    }
}

/// Returns the fault of a name that a provider would refuse.
fn subject_fault(text: Option<&str>) -> Option<Fault> {
    let text = text?;
    if text.trim().is_empty() {
        return Some(Fault::new(FieldCode::TooShort, ("must not be empty", "不能为空")));
    }
    if text.contains(['/', '=', '&']) {
        return Some(Fault::new(
            FieldCode::InvalidCharacter,
            ("must not contain `/`, `=` or `&`", "不能包含 `/`、`=` 或 `&`"),
        ));
    }
    clean_line(text, SUBJECT_LENGTH).err()
}

/// Returns all products, those withdrawn too, by asset and price.
pub fn all(core: &Core) -> Result<Vec<Product>> {
    core.store.read(|tx| all_in(tx, &core.config.payment))
}

/// Returns the products that can be bought, by asset and price.
pub fn for_sale(core: &Core) -> Result<Vec<Product>> {
    let mut products = all(core)?;
    products.retain(|product| product.is_for_sale);
    Ok(products)
}

/// Finds a product, for sale or not.
///
/// # Errors
/// `not_found`.
pub fn find(core: &Core, id: &ProductId) -> Result<Product> {
    core.store.read(|tx| find_in(tx, &core.config.payment, id))
}

/// Finds a product, for sale or not, or none.
pub fn find_maybe(core: &Core, id: &ProductId) -> Result<Option<Product>> {
    Ok(all(core)?.into_iter().find(|product| product.id == *id))
}

/// Describes a change of a product for the audit: its id, and its terms before and after.
pub fn describe_change(before: Option<&Product>, after: &Product) -> String {
    let (id, new) = (&after.id, after.summary());
    let Some(before) = before else { return format!("{id}: {new}") };
    let old = before.summary();
    let has_new_texts =
        before.terms.subject != after.terms.subject || before.terms.description != after.terms.description;
    match (old == new, has_new_texts) {
        (false, _) => format!("{id}: {old} -> {new}"),
        (true, true) => format!("{id}: {new}, with other texts"),
        (true, false) => format!("{id}: {new}, unchanged"),
    }
}

/// Stores a product. Other terms than the current ones are a new version.
///
/// # Errors
/// `invalid_parameters`. `already_exists` if another product has the id at an app store, or for too many products.
pub fn put(core: &Core, id: ProductId, terms: ProductTerms, is_for_sale: bool) -> Pending<Product> {
    if let Err(error) = terms.check() {
        return Pending::ready(Err(error));
    }
    let config = core.config.clone();
    core.store.write(move |tx| {
        let products = all_in(tx, &config.payment)?;
        reject_known_store_id(&products, &id, &terms)?;
        let known = products.iter().find(|product| product.id == id);
        if known.is_none() && products.len() >= MAX_PRODUCTS {
            let detail = (
                format!("There are {MAX_PRODUCTS} products already. Change one of them."),
                format!("商品已达上限 {MAX_PRODUCTS} 种，请修改其中一种。"),
            );
            return Err(Error::new(Code::AlreadyExists).detail(detail));
        }
        store_in(tx, known, Product { id, version: 0, is_for_sale, terms })
    })
}

/// Offers a product for sale, or withdraws it.
///
/// # Errors
/// `not_found`.
pub fn set_for_sale(core: &Core, id: ProductId, is_for_sale: bool) -> Pending<Product> {
    let config = core.config.clone();
    core.store.write(move |tx| {
        let known = find_in(tx, &config.payment, &id)?;
        store_in(tx, Some(&known), Product { is_for_sale, ..known.clone() })
    })
}

/// Finds a product that can be bought at a gateway, with its price.
///
/// # Errors
/// `unknown_product`.
pub fn find_for_sale_in(tx: &Read<'_>, config: &PaymentConfig, id: &ProductId) -> Result<(Product, Fen)> {
    let found = first_in(tx, config, |product| product.id == *id && product.is_for_sale)?;
    found.and_then(priced).ok_or_else(|| Code::UnknownProduct.into())
}

/// Finds the product with this price and number of coins.
///
/// # Errors
/// `unknown_package`.
pub fn find_package_in(tx: &Read<'_>, config: &PaymentConfig, amount: Fen, coin_count: u32) -> Result<(Product, Fen)> {
    let is_package = |product: &Product| {
        let terms = &product.terms;
        let brings = (terms.asset, terms.quantity, terms.amount);
        product.is_for_sale && brings == (Asset::Coin, coin_count, Some(amount))
    };
    let found = first_in(tx, config, is_package)?;
    found.and_then(priced).ok_or_else(|| Code::UnknownPackage.into())
}

/// Selects terms for [`product_row`] by the product's id at a store.
macro_rules! select_terms {
    ($rest:literal) => {
        concat!(
            "select product.id, terms.version, is_for_sale, asset, quantity, bonus, first_bonus, amount_fen, apple_id, \
             google_id, subject_zh, subject_en, description_zh, description_en from product_versions as terms \
             join products as product on product.id = terms.product_id ",
            $rest
        )
    };
}

/// Finds the product with this id at the App Store, with the terms of a time, also if it was withdrawn since.
pub fn find_by_apple_id_in(tx: &Read<'_>, id: &str, at: Timestamp) -> Result<Option<Product>> {
    let newest = select_terms!(
        "where apple_id = ?1 and terms.created_at <= ?2 order by terms.created_at desc, terms.version desc limit 1"
    );
    let first = select_terms!("where apple_id = ?1 order by terms.created_at, terms.version limit 1");
    terms_at_in(tx, [newest, first], id, at)
}

/// Finds the product with this id at Google Play, with the terms of a time, also if it was withdrawn since.
pub fn find_by_google_id_in(tx: &Read<'_>, id: &str, at: Timestamp) -> Result<Option<Product>> {
    let newest = select_terms!(
        "where google_id = ?1 and terms.created_at <= ?2 order by terms.created_at desc, terms.version desc limit 1"
    );
    let first = select_terms!("where google_id = ?1 order by terms.created_at, terms.version limit 1");
    terms_at_in(tx, [newest, first], id, at)
}

/// Finds the newest terms up to a time, or the first ones for a purchase from before the operator defined the product.
fn terms_at_in(tx: &Read<'_>, [newest, first]: [&str; 2], id: &str, at: Timestamp) -> Result<Option<Product>> {
    match tx.first(newest, (id, at.0), product_row)? {
        Some(product) => Ok(Some(product)),
        None => tx.first(first, [id], product_row),
    }
}

fn priced(product: Product) -> Option<(Product, Fen)> {
    product.terms.amount.map(|amount| (product, amount))
}

fn find_in(tx: &Read<'_>, config: &PaymentConfig, id: &ProductId) -> Result<Product> {
    first_in(tx, config, |product| product.id == *id)?.ok_or_else(|| Code::NotFound.into())
}

fn first_in(tx: &Read<'_>, config: &PaymentConfig, is_wanted: impl Fn(&Product) -> bool) -> Result<Option<Product>> {
    Ok(all_in(tx, config)?.into_iter().find(is_wanted))
}

/// Returns the products of operators, and those of the settings that no operator changed.
fn all_in(tx: &Read<'_>, config: &PaymentConfig) -> Result<Vec<Product>> {
    let mut products = tx.all(
        "select product.id, product.version, is_for_sale, asset, quantity, bonus, first_bonus, amount_fen, apple_id, google_id, \
         subject_zh, subject_en, description_zh, description_en from products as product \
         join product_versions as terms on terms.product_id = product.id and terms.version = product.version",
        (),
        product_row,
    )?;
    let of_settings = [(Asset::Coin, &config.packages), (Asset::Point, &config.point_packages)];
    for product in of_settings.into_iter().flat_map(|(asset, packages)| of_packages(asset, packages)) {
        if products.iter().all(|known| known.id != product.id) {
            products.push(product);
        }
    }
    products.sort_by(|left, right| order_of(left).cmp(&order_of(right)));
    Ok(products)
}

fn order_of(product: &Product) -> (Asset, bool, Option<Fen>, &ProductId) {
    (product.terms.asset, product.terms.amount.is_none(), product.terms.amount, &product.id)
}

/// Returns the products of a price list. Their ids tell what they bring: `coins_60`. Of two with the same number, the
/// dearer one is `coins_60_2`.
fn of_packages(asset: Asset, packages: &Packages) -> Vec<Product> {
    let name = match asset {
        Asset::Coin => "coins",
        Asset::Point => "points",
    };
    let mut products: Vec<Product> = Vec::new();
    for (amount, quantity) in &packages.0 {
        let same = products.iter().filter(|product| product.terms.quantity == *quantity).count();
        let id = match same {
            0 => format!("{name}_{quantity}"),
            same => format!("{name}_{quantity}_{}", same + 1),
        };
        let terms = ProductTerms::of_package(asset, *quantity, *amount);
        products.push(Product { id: ProductId(id), version: 0, is_for_sale: true, terms });
    }
    products
}

fn reject_known_store_id(products: &[Product], id: &ProductId, terms: &ProductTerms) -> Result<()> {
    let is_same = |left: &Option<String>, right: &Option<String>| left.is_some() && left == right;
    let other = products.iter().find(|product| {
        let known = &product.terms;
        product.id != *id && (is_same(&known.apple_id, &terms.apple_id) || is_same(&known.google_id, &terms.google_id))
    });
    match other {
        Some(other) => {
            let detail = (
                format!("The product `{}` already has this id at the app store.", other.id),
                format!("商品 `{}` 已使用此应用商店 ID。", other.id),
            );
            Err(Error::new(Code::AlreadyExists).detail(detail))
        }
        None => Ok(()),
    }
}

/// Stores a product over the known one, with the next version if its terms differ.
fn store_in(tx: &Write<'_>, known: Option<&Product>, product: Product) -> Result<Product> {
    let known_version = known.map_or(0, |known| known.version);
    let is_new = known_version == 0 || known.is_none_or(|known| known.terms != product.terms);
    let product = Product { version: if is_new { known_version + 1 } else { known_version }, ..product };
    tx.execute(
        "insert into products (id, version, is_for_sale) values (?1, ?2, ?3) \
         on conflict (id) do update set version = excluded.version, is_for_sale = excluded.is_for_sale",
        (product.id.as_str(), product.version, product.is_for_sale),
    )?;
    if is_new {
        insert_version_in(tx, &product)?;
    }
    Ok(product)
}

fn insert_version_in(tx: &Write<'_>, product: &Product) -> Result<()> {
    let terms = &product.terms;
    tx.execute(
        "insert into product_versions (product_id, version, asset, quantity, bonus, first_bonus, amount_fen, apple_id, \
         google_id, subject_zh, subject_en, description_zh, description_en, created_at) \
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
        (
            product.id.as_str(),
            product.version,
            terms.asset.name(),
            terms.quantity,
            terms.bonus,
            terms.first_bonus,
            terms.amount.map(Fen::as_fen),
            &terms.apple_id,
            &terms.google_id,
            &terms.subject.chinese,
            &terms.subject.english,
            &terms.description.chinese,
            &terms.description.english,
            tx.now.0,
        ),
    )
    .map(drop)
}

fn product_row(row: &Row<'_>) -> RowResult<Product> {
    let amount = match row.get::<Option<i64>>(7)? {
        Some(fen) => Some(Fen::from_fen(fen).map_err(|_| RowError::Invalid)?),
        None => None,
    };
    Ok(Product {
        id: ProductId(row.get(0)?),
        version: row.get(1)?,
        is_for_sale: row.get(2)?,
        terms: ProductTerms {
            asset: row.get_parsed(3, Asset::from_name)?,
            quantity: row.get(4)?,
            bonus: row.get(5)?,
            first_bonus: row.get(6)?,
            amount,
            apple_id: row.get(8)?,
            google_id: row.get(9)?,
            subject: ProductText { chinese: row.get(10)?, english: row.get(11)? },
            description: ProductText { chinese: row.get(12)?, english: row.get(13)? },
        },
    })
}
