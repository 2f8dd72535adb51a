//! A purchase of a one-time product, as the API reports it.

use serde::Deserialize;

use crate::providers::payment::purchase::{PurchaseBinding, PurchaseFault};

/// The state of a purchase. It is counted once by its token, and by its order id, too.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GooglePurchase {
    /// `GPA.` and digits. Missing while the purchase is pending.
    pub order_id: Option<String>,
    /// Missing in most answers: Google refuses a token that belongs to another product than the one in the address.
    product_id: Option<String>,
    purchase_token: Option<String>,
    purchase_state: i64,
    #[serde(default)]
    consumption_state: i64,
    #[serde(default)]
    acknowledgement_state: i64,
    purchase_time_millis: Option<String>,
    #[serde(default = "one")]
    pub quantity: u32,
    /// The quantity that is left after refunds of parts.
    pub refundable_quantity: Option<u32>,
    purchase_type: Option<i64>,
    /// The account token that the app passed to the store.
    pub obfuscated_external_account_id: Option<String>,
    pub region_code: Option<String>,
}

fn one() -> u32 {
    1
}

impl GooglePurchase {
    /// Checks that the purchase may be credited to this account. Consume it only after the credit is stored.
    pub fn check(&self, binding: &PurchaseBinding<'_>) -> Result<(), PurchaseFault> {
        if self.purchase_state == 2 {
            return Err(PurchaseFault::Pending);
        }
        match binding.check(self.obfuscated_external_account_id.as_deref()) {
            // The state of another account's purchase is not told.
            Err(PurchaseFault::AnotherAccount) => Err(PurchaseFault::AnotherAccount),
            _ if !self.is_paid() || self.is_cancelled() => Err(PurchaseFault::Cancelled),
            checked => checked,
        }
    }

    /// Returns true if Google's answer names no other product or token than those that were queried.
    pub fn is_of(&self, product_id: &str, token: &str) -> bool {
        let is_same =
            |named: &Option<String>, queried| named.as_deref().is_none_or(|named| named.is_empty() || named == queried);
        is_same(&self.product_id, product_id) && is_same(&self.purchase_token, token)
    }

    pub fn is_paid(&self) -> bool {
        self.purchase_state == 0
    }

    /// Returns true if it was not paid, or if its money went back. A refund in the console that leaves the buyer the
    /// product shows only in the quantity that is left.
    pub fn is_cancelled(&self) -> bool {
        self.purchase_state == 1 || self.refundable_quantity == Some(0)
    }

    /// Returns true if the product can be bought again.
    pub fn is_consumed(&self) -> bool {
        self.consumption_state == 1
    }

    /// Returns true if Google will not refund the purchase by itself. It does so after three days.
    pub fn is_acknowledged(&self) -> bool {
        self.acknowledgement_state == 1
    }

    /// Returns true for a purchase by a licence tester, which cost nothing.
    pub fn is_test(&self) -> bool {
        self.purchase_type == Some(0)
    }

    /// Returns the time of the purchase in epoch milliseconds.
    pub fn purchased_at(&self) -> Option<i64> {
        self.purchase_time_millis.as_deref()?.parse().ok()
    }
}

/// A purchase whose money went back.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GoogleVoidedPurchase {
    pub purchase_token: String,
    pub order_id: String,
    /// Set if only a part of a quantity went back.
    pub voided_quantity: Option<u32>,
}

/// A page of voided purchases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoogleVoidedPage {
    pub purchases: Vec<GoogleVoidedPurchase>,
    /// Set if there are more; pass it to the next call.
    pub next: Option<String>,
}
