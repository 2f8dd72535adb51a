//! A purchase in an app store, and the shares of its coins.

use crate::{
    domain::money::ledger::{Asset, EntryKind, LedgerEntry},
    types::{Currency, Timestamp, UserId, hex, named_enum, sha256},
};

named_enum! {
    /// An app store.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum PurchaseStore {
        Apple = "apple",
        Google = "google",
    }
}

named_enum! {
    /// The environment of a purchase.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum PurchaseEnvironment {
        Production = "production",
        /// Purchases there cost nothing, and only testers make them.
        Sandbox = "sandbox",
    }
}

named_enum! {
    /// The state of a purchase.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum PurchaseState {
        /// The buyer has not paid yet.
        Pending = "pending",
        Credited = "credited",
        /// All its money went back.
        Revoked = "revoked",
        /// It is genuine, but brings nothing; the reason says why.
        Refused = "refused",
    }
}

/// The id of a purchase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurchaseKey {
    pub store: PurchaseStore,
    pub environment: PurchaseEnvironment,
    /// Apple's transaction id, Google's purchase token.
    pub id: String,
}

impl PurchaseKey {
    /// Returns the reference of the ledger entries. Google's tokens are as good as keys, so they are hashed.
    pub fn reference(&self) -> String {
        match self.store {
            PurchaseStore::Apple => format!("apple:{}:{}", self.environment.name(), self.id),
            PurchaseStore::Google => {
                let digest = hex(&sha256(&self.id));
                format!("google:{}:{}", self.environment.name(), &digest[..32])
            }
        }
    }
}

/// The facts about a purchase that its store proved.
#[derive(Clone, Debug)]
pub struct PurchaseFacts {
    pub key: PurchaseKey,
    /// Google's order number.
    pub order_id: Option<String>,
    /// The product's id at the store.
    pub store_product: String,
    pub quantity: u32,
    pub country: Option<String>,
    /// The price of the quantity in thousandths, with its currency.
    pub price: Option<(i64, String)>,
    pub purchased_at: Option<Timestamp>,
}

/// The share of a purchase whose money went back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RevokedShare {
    pub part: u32,
    pub whole: u32,
}

impl RevokedShare {
    pub const NONE: Self = Self { part: 0, whole: 1 };
    pub const ALL: Self = Self { part: 1, whole: 1 };

    /// Returns the share of a number, rounded down in the user's favour.
    pub fn of(self, number: i64) -> i64 {
        let part = i128::from(number) * i128::from(self.part) / i128::from(self.whole.max(1));
        i64::try_from(part).unwrap_or(number)
    }

    pub const fn is_all(self) -> bool {
        self.part >= self.whole
    }

    fn exceeds(self, other: Self) -> bool {
        u64::from(self.part) * u64::from(other.whole) > u64::from(other.part) * u64::from(self.whole)
    }

    /// Returns the larger of two shares.
    #[must_use]
    pub fn larger(self, other: Self) -> Self {
        if other.exceeds(self) { other } else { self }
    }
}

/// The product whose terms a purchase has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurchasedProduct {
    pub id: String,
    pub version: u32,
    pub asset: Asset,
}

/// A stored purchase.
#[derive(Clone, Debug)]
pub struct StorePurchase {
    pub id: i64,
    pub key: PurchaseKey,
    pub reference: String,
    pub order_id: Option<String>,
    /// `None` while only a refund is known.
    pub user: Option<UserId>,
    pub store_product: Option<String>,
    pub quantity: u32,
    /// Set once it was credited.
    pub product: Option<PurchasedProduct>,
    /// Coins or points of the quantity, without bonus.
    pub coin_count: i64,
    pub bonus: i64,
    pub state: PurchaseState,
    pub reason: Option<String>,
    pub country: Option<String>,
    pub price: Option<(i64, String)>,
    pub revoked: RevokedShare,
    /// The store's time of the last reversed refund. Older refunds have no effect.
    pub restored_at: Option<Timestamp>,
    pub returned: i64,
    pub bonus_returned: i64,
    /// Coins that were spent before the refund.
    pub written_off: i64,
    pub bonus_written_off: i64,
    /// The number of postings after the credit.
    pub returns: u32,
    /// The next attempt of a call that the store waits for.
    pub due_at: Option<Timestamp>,
    pub due_until: Option<Timestamp>,
    pub purchased_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub credited_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}

impl StorePurchase {
    /// Returns the number under which the store's support knows the purchase: Apple's transaction id, or Google's order
    /// number.
    pub fn store_number(&self) -> Option<&str> {
        match self.key.store {
            PurchaseStore::Apple => Some(&self.key.id),
            PurchaseStore::Google => self.order_id.as_deref(),
        }
    }

    /// Returns what the purchase brings: coins for a product that is unknown here.
    pub fn asset(&self) -> Asset {
        self.product.as_ref().map_or(Asset::Coin, |product| product.asset)
    }

    /// Returns the price in hundredths of its currency, as orders have it.
    pub fn price_in_hundredths(&self) -> Option<(i64, Currency)> {
        let (milli, currency) = self.price.as_ref()?;
        Some((milli / 10, Currency::parse(currency).ok()?))
    }

    pub fn is_test(&self) -> bool {
        self.key.environment == PurchaseEnvironment::Sandbox
    }

    pub fn is_of(&self, user: UserId) -> bool {
        self.user == Some(user)
    }

    /// Returns the kind and reference of the entry that credits the coins.
    pub fn credit_event(&self) -> (EntryKind, String) {
        (self.kind(EntryKind::Topup), self.reference.clone())
    }

    /// Returns the kind and reference of the entry that credits the bonus.
    pub fn bonus_event(&self) -> (EntryKind, String) {
        (self.kind(EntryKind::PurchaseBonus), self.bonus_reference(self.reference.clone()))
    }

    /// Returns kind and reference of the `number`th posting after the credit, of coins and of bonus.
    pub fn return_events(&self, number: u32) -> [(EntryKind, String); 2] {
        let reference = format!("{}/refund:{number}", self.reference);
        [
            (self.kind(EntryKind::Refund), reference.clone()),
            (self.kind(EntryKind::PurchaseBonusRefund), self.bonus_reference(reference)),
        ]
    }

    /// Returns kind and reference of a posting that gives coins back.
    pub fn reversal_event(&self, number: u32) -> (EntryKind, String) {
        (self.kind(EntryKind::RefundReversal), format!("{}/reversal:{number}", self.reference))
    }

    /// Returns true if the ledger entry belongs to this purchase, by user, asset and reference.
    pub fn owns_entry(&self, entry: &LedgerEntry) -> bool {
        let is_own =
            self.is_of(entry.user) && self.product.as_ref().is_some_and(|product| product.asset == entry.asset);
        is_own
            && self
                .events()
                .iter()
                .any(|(kind, reference)| *kind == entry.kind && entry.reference.as_deref() == Some(reference))
    }

    /// Returns kind and reference of all entries that the purchase may have.
    pub fn events(&self) -> Vec<(EntryKind, String)> {
        [self.credit_event(), self.bonus_event()].into_iter().chain(self.later_events()).collect()
    }

    /// Returns kind and reference of the entries that may follow the credit.
    pub fn later_events(&self) -> Vec<(EntryKind, String)> {
        let events_of = |number| self.return_events(number).into_iter().chain([self.reversal_event(number)]);
        (1..=self.returns).flat_map(events_of).collect()
    }

    /// Returns the coins and the bonus still to be taken back for refunds.
    pub fn owed(&self) -> (i64, i64) {
        let coins = self.revoked.of(self.coin_count) - self.returned - self.written_off;
        let bonus = self.revoked.of(self.bonus) - self.bonus_returned - self.bonus_written_off;
        (coins.max(0), bonus.max(0))
    }

    /// Purchases in the sandbox have one kind for everything, so that they are never counted as sold.
    fn kind(&self, kind: EntryKind) -> EntryKind {
        if self.is_test() { EntryKind::TestPurchase } else { kind }
    }

    fn bonus_reference(&self, reference: String) -> String {
        if self.is_test() { format!("{reference}/bonus") } else { reference }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_round_down_and_compare() {
        let prorated = RevokedShare { part: 67_932, whole: 100_000 };
        assert_eq!([prorated.of(60), RevokedShare { part: 1, whole: 3 }.of(180), RevokedShare::ALL.of(7)], [40, 60, 7]);
        assert_eq!(prorated.larger(RevokedShare::ALL), RevokedShare::ALL);
        assert_eq!(prorated.larger(RevokedShare::NONE), prorated);
        assert_eq!(RevokedShare::NONE.of(60), 0);
    }

    #[test]
    fn references_hide_tokens_of_google() {
        let key = |store, environment, id: &str| PurchaseKey { store, environment, id: id.to_owned() };
        let apple = key(PurchaseStore::Apple, PurchaseEnvironment::Sandbox, "2000000800000001");
        assert_eq!(apple.reference(), "apple:sandbox:2000000800000001");
        let google = key(PurchaseStore::Google, PurchaseEnvironment::Production, "secret-token").reference();
        assert!(google.starts_with("google:production:") && !google.contains("secret"));
        assert_eq!(google.len(), "google:production:".len() + 32);
    }
}
