//! The work of the server between requests: calls that a store waits for, and what notifications missed.

use crate::{
    domain::money::purchases::{
        Purchases, apple, google,
        purchase::{PurchaseStore, StorePurchase},
        records,
    },
    error::{Code, Result},
    types::Timestamp,
};

/// Purchases processed in one run.
const BATCH_SIZE: u32 = 50;

/// Makes the calls that are due, and reads what the stores list. Blocks on the stores.
///
/// # Errors
/// Those of the first store that fails, after the other was asked, too.
pub fn run_due(purchases: &Purchases) -> Result<()> {
    if purchases.apple.is_none() && purchases.google.is_none() {
        return Ok(());
    }
    let outcomes =
        [make_due_calls(purchases), apple::read_history_if_due(purchases), google::read_voided_if_due(purchases)];
    outcomes.into_iter().collect()
}

fn make_due_calls(purchases: &Purchases) -> Result<()> {
    for purchase in purchases.core.store.read(|tx| records::due_in(tx, BATCH_SIZE))? {
        let outcome = match purchase.key.store {
            PurchaseStore::Apple => apple::send_consumption(purchases, &purchase),
            PurchaseStore::Google => google::consume(purchases, &purchase),
        };
        let id = purchase.id;
        let due_at = match outcome {
            Ok(()) => None,
            Err(error) if error.code == Code::ProviderFailed && purchase.key.store == PurchaseStore::Apple => {
                tracing::warn!(%error, purchase_id = id, "the App Store refused consumption data");
                None
            }
            Err(error) => {
                tracing::warn!(%error, purchase_id = id, "a call to an app store failed and is repeated later");
                next_attempt(purchases, &purchase)
            }
        };
        purchases.core.store.write(move |tx| records::schedule_in(tx, id, due_at)).wait()?;
    }
    Ok(())
}

fn next_attempt(purchases: &Purchases, purchase: &StorePurchase) -> Option<Timestamp> {
    let now = purchases.core.clock.now();
    match purchase.key.store {
        PurchaseStore::Apple => apple::next_attempt(purchase, now),
        PurchaseStore::Google => Some(google::next_attempt(purchase, now)),
    }
}
