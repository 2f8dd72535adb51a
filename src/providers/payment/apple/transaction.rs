//! A transaction: one purchase of one product.

use serde::Deserialize;

use crate::{
    providers::payment::purchase::{PurchaseBinding, PurchaseFault},
    types::named_enum,
};

named_enum! {
    /// An environment whose messages Apple signs.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum AppleEnvironment {
        Production = "Production",
        /// Purchases there cost nothing.
        Sandbox = "Sandbox",
    }
}

/// 100 %, in thousandths of a percent.
const WHOLE: u64 = 100_000;

/// A verified transaction of our app. It is counted once by environment and `transaction_id`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AppleTransaction {
    #[serde(default)]
    pub transaction_id: String,
    #[serde(default)]
    pub original_transaction_id: String,
    #[serde(default)]
    pub bundle_id: String,
    #[serde(default)]
    pub product_id: String,
    #[serde(default = "one")]
    pub quantity: u32,
    /// The kind of product: `Consumable`, or one of those that are not sold here.
    #[serde(default, rename = "type")]
    pub product_type: String,
    /// The account token that the app passed to the store.
    pub app_account_token: Option<String>,
    /// Epoch milliseconds.
    pub purchase_date: Option<i64>,
    /// Epoch milliseconds. It differs each time the same transaction is signed.
    pub signed_date: i64,
    /// `PURCHASED`, or `FAMILY_SHARED`.
    pub in_app_ownership_type: Option<String>,
    #[serde(default, rename = "environment")]
    pub(super) environment_name: String,
    /// The store's country by three letters.
    pub storefront: Option<String>,
    /// The price of the whole quantity in thousandths of `currency`. Zero for offer codes.
    pub price: Option<i64>,
    pub currency: Option<String>,
    /// Epoch milliseconds. Set if the money went back, in whole or in part.
    pub revocation_date: Option<i64>,
    revocation_percentage: Option<u64>,
    /// `REFUND_FULL`, `REFUND_PRORATED` or `FAMILY_REVOKE`.
    pub revocation_type: Option<String>,
}

fn one() -> u32 {
    1
}

impl AppleTransaction {
    /// Returns the environment. A verified transaction has one of the accepted ones.
    pub fn environment(&self) -> Option<AppleEnvironment> {
        AppleEnvironment::from_name(&self.environment_name)
    }

    /// Checks that the purchase may be credited to this account.
    pub fn check(&self, binding: &PurchaseBinding<'_>) -> Result<(), PurchaseFault> {
        binding.check(self.app_account_token.as_deref())?;
        if self.revocation_date.is_some() {
            return Err(PurchaseFault::Revoked);
        }
        if self.in_app_ownership_type.as_deref() == Some("FAMILY_SHARED") {
            return Err(PurchaseFault::FamilyShared);
        }
        if self.product_type != "Consumable" {
            return Err(PurchaseFault::NotConsumable);
        }
        Ok(())
    }

    /// Returns the part of `count` units that is to be taken back, rounded down in the user's favour. All of them if the
    /// store names no percentage.
    pub fn revoked_part_of(&self, count: u64) -> u64 {
        let percentage = u128::from(self.revocation_percentage.unwrap_or(WHOLE).min(WHOLE));
        let part = u128::from(count) * percentage / u128::from(WHOLE);
        u64::try_from(part).unwrap_or(count)
    }
}
