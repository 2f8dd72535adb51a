//! Queries of operators: the present state of a purchase at its store.

use crate::{
    domain::money::purchases::{
        Purchases, apple, google,
        purchase::{PurchaseStore, StorePurchase},
        records,
    },
    error::{Code, Result},
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

/// Returns true for text such as `MK5TTTVWJH`.
fn is_apple_order(number: &str) -> bool {
    number.starts_with('M')
        && (8..=20).contains(&number.len())
        && number.bytes().all(|byte| byte.is_ascii_alphanumeric())
}
