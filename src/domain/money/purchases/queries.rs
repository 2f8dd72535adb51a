//! Queries of operators: the present state of a purchase at its store.

use crate::{
    domain::money::purchases::{
        Purchases, apple, google,
        purchase::{PurchaseEnvironment, PurchaseStore, StorePurchase},
        records,
    },
    error::{Code, Error, Result},
    providers::payment::apple::AppleTransaction,
    types::Timestamp,
};

/// Queries a purchase and applies its state. The number is that of [`records::find`], or the order number in the mail
/// from Apple, whose purchase may be unknown here. Blocks.
///
/// # Errors
/// `not_found`; `not_configured`, `purchase_refused`, those of the provider and of the credit.
pub fn query(purchases: &Purchases, number: &str) -> Result<StorePurchase> {
    match records::find(&purchases.core, number) {
        Ok(purchase) => {
            match purchase.key.store {
                PurchaseStore::Apple => apple::query(purchases, &purchase)?,
                PurchaseStore::Google => google::query(purchases, &purchase)?,
            }
            records::find(&purchases.core, &purchase.id.to_string())
        }
        Err(error) if error.code == Code::NotFound && purchases.apple.is_some() && is_apple_order(number) => {
            let ids = apple::query_order(purchases, number)?;
            let found = ids.iter().find_map(|id| records::find(&purchases.core, id).ok());
            found.ok_or(error)
        }
        Err(error) => Err(error),
    }
}

/// A purchase of a buyer at the App Store, and what is known about it here.
#[derive(Clone, Debug)]
pub struct BuyerPurchase {
    /// Apple's transaction id.
    pub store_number: String,
    pub store_product: String,
    pub purchased_at: Option<Timestamp>,
    /// True if its money went back, in whole or in part.
    pub is_refunded: bool,
    /// `None` if it names no account token of this service.
    pub purchase: Option<StorePurchase>,
}

/// Queries all purchases of the buyer of one in the App Store, applies the state of each, and returns them, newest first.
/// The number is that of [`records::find`], or the transaction id of a purchase that is unknown here. Blocks.
///
/// # Errors
/// `not_found`, also for a purchase in Google Play, which has no history of purchases; `not_configured`, those of the provider.
pub fn history(purchases: &Purchases, number: &str) -> Result<Vec<BuyerPurchase>> {
    let (environment, id) = match records::find(&purchases.core, number) {
        Ok(purchase) if purchase.key.store == PurchaseStore::Apple => (purchase.key.environment, purchase.key.id),
        Ok(_) => {
            return Err(Error::new(Code::NotFound)
                .detail(("Google Play cannot list the purchases of a buyer.", "Google Play 不提供买家的购买记录。")));
        }
        Err(error) if error.code == Code::NotFound && purchases.apple.is_some() => {
            (PurchaseEnvironment::Production, number.to_owned())
        }
        Err(error) => return Err(error),
    };
    let mut found = apple::query_history(purchases, environment, &id)?;
    if found.is_empty() {
        return Err(Code::NotFound.into());
    }
    found.reverse();
    purchases.core.store.read(|tx| {
        let purchase = |transaction: AppleTransaction| {
            Ok(BuyerPurchase {
                purchase: records::find_in(tx, &apple::key_of(&transaction)?)?,
                store_number: transaction.transaction_id,
                store_product: transaction.product_id,
                purchased_at: transaction.purchase_date.map(Timestamp),
                is_refunded: transaction.revocation_date.is_some(),
            })
        };
        found.into_iter().map(purchase).collect()
    })
}

/// Returns true for text such as `MK5TTTVWJH`.
fn is_apple_order(number: &str) -> bool {
    number.starts_with('M')
        && (8..=20).contains(&number.len())
        && number.bytes().all(|byte| byte.is_ascii_alphanumeric())
}
