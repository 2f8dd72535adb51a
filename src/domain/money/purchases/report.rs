//! The purchases of a period by store, currency and product, compared with the ledger.
//!
//! Purchases in a sandbox are compared as well, but never counted.

use std::collections::BTreeMap;

use crate::{
    core::Core,
    domain::money::{
        ledger::EntryKind,
        purchases::{
            purchase::{PurchaseStore, StorePurchase},
            records,
        },
    },
    error::Result,
    store::Read,
    types::Timestamp,
};

/// Purchases read in one snapshot.
const BATCH_SIZE: u32 = 500;

/// The group of a sum: store, currency and product. The currency is empty where the store does not tell the price.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PurchaseGroup {
    pub store: PurchaseStore,
    pub currency: String,
    pub product_id: String,
}

/// Counts and sums over purchases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PurchaseSums {
    pub purchases: u64,
    /// Purchases of which money went back.
    pub refunded: u64,
    /// Prices, in thousandths of the currency.
    pub amount_milli: i64,
    /// The refunded share of the prices.
    pub amount_refunded_milli: i64,
    pub credited: i64,
    pub returned: i64,
    pub written_off: i64,
}

/// A purchase whose ledger entries differ from what is recorded about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurchaseDifference {
    /// `credit_wrong`, `bonus_wrong` or `returns_wrong`.
    pub code: &'static str,
    pub reference: String,
    pub expected: i64,
    pub found: i64,
}

/// The purchases recorded in a period.
#[derive(Clone, Debug, Default)]
pub struct PurchaseReport {
    pub groups: BTreeMap<PurchaseGroup, PurchaseSums>,
    pub differences: Vec<PurchaseDifference>,
}

/// Compares the purchases recorded in `[from, to)` with the ledger. Blocks.
pub fn report(core: &Core, from: Timestamp, to: Timestamp) -> Result<PurchaseReport> {
    let mut report = PurchaseReport::default();
    let mut last = (from, 0);
    loop {
        let read = core.store.read(|tx| {
            let batch = records::made_between_in(tx, last, to, BATCH_SIZE)?;
            for purchase in &batch {
                report.add_in(tx, purchase)?;
            }
            Ok(batch.last().map(|purchase| (purchase.created_at, purchase.id)))
        })?;
        match read {
            Some(place) => last = place,
            None => return Ok(report),
        }
    }
}

impl PurchaseReport {
    fn add_in(&mut self, tx: &Read<'_>, purchase: &StorePurchase) -> Result<()> {
        self.differences.extend(difference_in(tx, purchase)?);
        let Some(product) = purchase.product.as_ref().filter(|_| !purchase.is_test()) else { return Ok(()) };
        let (amount, currency) = purchase.price.clone().unwrap_or_default();
        let group = PurchaseGroup { store: purchase.key.store, currency, product_id: product.id.clone() };
        let sums = self.groups.entry(group).or_default();
        sums.purchases += 1;
        sums.refunded += u64::from(purchase.revoked_at.is_some());
        sums.amount_milli += amount;
        sums.amount_refunded_milli += purchase.revoked.of(amount);
        sums.credited += purchase.coin_count + purchase.bonus;
        sums.returned += purchase.returned + purchase.bonus_returned;
        sums.written_off += purchase.written_off + purchase.bonus_written_off;
        Ok(())
    }
}

fn difference_in(tx: &Read<'_>, purchase: &StorePurchase) -> Result<Option<PurchaseDifference>> {
    let entries = records::entries_in(tx, purchase)?;
    let sum = |events: &[(EntryKind, String)]| -> i64 {
        let is_of = |kind, reference: &Option<String>| {
            events.iter().any(|event| event.0 == kind && Some(&event.1) == reference.as_ref())
        };
        entries.iter().filter(|entry| is_of(entry.kind, &entry.reference)).map(|entry| entry.delta).sum()
    };
    let credited = i64::from(purchase.credited_at.is_some());
    let checks = [
        ("credit_wrong", credited * purchase.coin_count, sum(&[purchase.credit_event()])),
        ("bonus_wrong", credited * purchase.bonus, sum(&[purchase.bonus_event()])),
        ("returns_wrong", purchase.returned + purchase.bonus_returned, -sum(&purchase.later_events())),
    ];
    let wrong = checks.into_iter().find(|(_, expected, found)| expected != found);
    Ok(wrong.map(|(code, expected, found)| PurchaseDifference {
        code,
        reference: purchase.reference.clone(),
        expected,
        found,
    }))
}
