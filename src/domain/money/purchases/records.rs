//! The table of purchases.

use serde_json::json;

use crate::{
    core::Core,
    domain::{
        Each,
        money::{
            ledger::{self, Asset, LedgerEntry},
            purchases::{
                messages::{self, StoreMessage},
                purchase::{
                    PurchaseEnvironment, PurchaseFacts, PurchaseKey, PurchaseState, PurchaseStore, PurchasedProduct,
                    RevokedShare, StorePurchase,
                },
                retention,
            },
        },
    },
    error::{Code, Error, Result},
    store::{Read, Row, RowResult, Write},
    types::{Currency, CursorRange, CursorSlice, PageRequest, Paginated, Timestamp, UserId},
};

/// Selects the columns that [`purchase_row`] reads.
macro_rules! select_purchases {
    ($rest:literal) => {
        concat!(
            "select id, store, environment, purchase_id, reference, order_id, user_id, store_product_id, quantity, \
             product_id, product_version, asset, coin_count, bonus, state, reason, country, price_milli, currency, \
             revoked_part, revoked_whole, restored_at, returned, bonus_returned, written_off, bonus_written_off, \
             returns, due_at, due_until, purchased_at, created_at, credited_at, revoked_at from store_purchases ",
            $rest
        )
    };
}

/// A filter on purchases.
#[derive(Clone, Copy, Debug, Default)]
pub struct PurchaseFilter {
    pub user: Option<UserId>,
    pub state: Option<PurchaseState>,
}

/// The money that went back for a purchase.
#[derive(Clone, Debug)]
pub struct RefundedPurchase {
    /// The time of the first refund.
    pub at: Timestamp,
    pub store: PurchaseStore,
    pub currency: Currency,
    pub asset: Asset,
    /// In hundredths.
    pub amount: i64,
}

/// A purchase with everything recorded about it.
#[derive(Clone, Debug)]
pub struct PurchaseDetails {
    pub purchase: StorePurchase,
    pub messages: Vec<StoreMessage>,
    /// The ledger entries of its coins.
    pub entries: Vec<LedgerEntry>,
}

/// Finds a purchase by its id here, Apple's transaction id, or Google's order number.
///
/// # Errors
/// `not_found`.
pub fn find(core: &Core, number: &str) -> Result<StorePurchase> {
    core.store.read(|tx| find_by_number_in(tx, number))?.ok_or_else(|| Code::NotFound.into())
}

/// Returns a purchase with its notifications and ledger entries.
///
/// # Errors
/// `not_found`.
pub fn find_details(core: &Core, number: &str) -> Result<PurchaseDetails> {
    core.store.read(|tx| {
        let purchase = find_by_number_in(tx, number)?.ok_or(Code::NotFound)?;
        Ok(PurchaseDetails {
            messages: messages::of_purchase_in(tx, purchase.id)?,
            entries: entries_in(tx, &purchase)?,
            purchase,
        })
    })
}

/// Lists purchases, newest first.
pub fn list(core: &Core, filter: PurchaseFilter, page: PageRequest) -> Result<Paginated<StorePurchase>> {
    core.store.read(|tx| list_in(tx, filter, page))
}

/// Returns a page of the user's purchases by cursor, newest first.
pub fn of_user(core: &Core, user: UserId, span: CursorRange) -> Result<CursorSlice<StorePurchase>> {
    let rows = core.store.read(|tx| {
        tx.all(
            select_purchases!("where user_id = ?1 and id < ?2 order by id desc limit ?3"),
            (user.0, span.upper_bound(), span.rows_to_read()),
            purchase_row,
        )
    })?;
    Ok(span.slice(rows, |purchase| purchase.id))
}

fn find_by_number_in(tx: &Read<'_>, number: &str) -> Result<Option<StorePurchase>> {
    if let Some(id) = number.parse::<i64>().ok().filter(|_| number.len() < 12)
        && let Some(found) = find_by_id_in(tx, id)?
    {
        return Ok(Some(found));
    }
    for environment in PurchaseEnvironment::ALL {
        let key = PurchaseKey { store: PurchaseStore::Apple, environment, id: number.to_owned() };
        if let Some(found) = find_in(tx, &key)? {
            return Ok(Some(found));
        }
    }
    find_by_order_in(tx, PurchaseStore::Google, number)
}

pub(super) fn find_by_id_in(tx: &Read<'_>, id: i64) -> Result<Option<StorePurchase>> {
    tx.first(select_purchases!("where id = ?1"), [id], purchase_row)
}

pub(super) fn find_in(tx: &Read<'_>, key: &PurchaseKey) -> Result<Option<StorePurchase>> {
    tx.first(
        select_purchases!("where store = ?1 and environment = ?2 and purchase_id = ?3"),
        (key.store.name(), key.environment.name(), &key.id),
        purchase_row,
    )
}

pub(super) fn find_by_order_in(tx: &Read<'_>, store: PurchaseStore, order_id: &str) -> Result<Option<StorePurchase>> {
    tx.first(select_purchases!("where store = ?1 and order_id = ?2"), (store.name(), order_id), purchase_row)
}

/// Finds the purchase that a ledger entry names.
pub fn find_by_reference_in(tx: &Read<'_>, reference: &str) -> Result<Option<StorePurchase>> {
    tx.first(select_purchases!("where reference = ?1"), [reference], purchase_row)
}

/// Returns true if a ledger entry names a purchase in an app store.
pub fn is_of_store(entry: &LedgerEntry) -> bool {
    let reference = entry.reference.as_deref().unwrap_or_default();
    PurchaseStore::ALL.iter().any(|store| reference.split(':').next() == Some(store.name()))
}

/// Returns true if the purchase that a ledger entry names has this entry, or may have been purged.
pub fn is_known_in(tx: &Read<'_>, entry: &LedgerEntry) -> Result<bool> {
    let reference = entry.reference.as_deref().unwrap_or_default();
    let reference = reference.split('/').next().unwrap_or_default();
    match find_by_reference_in(tx, reference)? {
        Some(purchase) => Ok(purchase.owns_entry(entry)),
        None => Ok(entry.created_at <= retention::purged_until_in(tx)?),
    }
}

/// Returns the purchases stored before `to` and after the cursor `after` (a time and an id), oldest first.
pub(super) fn made_between_in(
    tx: &Read<'_>,
    after: (Timestamp, i64),
    to: Timestamp,
    limit: u32,
) -> Result<Vec<StorePurchase>> {
    tx.all(
        select_purchases!("where (created_at, id) > (?1, ?2) and created_at < ?3 order by created_at, id limit ?4"),
        (after.0.0, after.1, to.0, limit),
        purchase_row,
    )
}

/// Returns the refunded money of credited purchases whose first refund was in `[from, to)`. Purchases in a sandbox, and
/// those whose store does not tell the price, are left out.
pub fn refunds_between_in(tx: &Read<'_>, from: Timestamp, to: Timestamp) -> Result<Vec<RefundedPurchase>> {
    let purchases = tx.all(
        select_purchases!("where revoked_at is not null and revoked_at >= ?1 and revoked_at < ?2"),
        (from.0, to.0),
        purchase_row,
    )?;
    let refund = |purchase: StorePurchase| {
        let (price, currency) = purchase.price_in_hundredths().filter(|_| !purchase.is_test())?;
        let amount = purchase.revoked.of(price);
        Some(RefundedPurchase {
            at: purchase.revoked_at?,
            store: purchase.key.store,
            currency,
            asset: purchase.product?.asset,
            amount,
        })
    };
    Ok(purchases.into_iter().filter_map(refund).collect())
}

/// Returns purchases for which a call to the store is due.
pub(super) fn due_in(tx: &Read<'_>, limit: u32) -> Result<Vec<StorePurchase>> {
    tx.all(select_purchases!("where due_at <= ?1 order by due_at limit ?2"), (tx.now.0, limit), purchase_row)
}

/// Returns the ledger entries of a purchase.
pub(super) fn entries_in(tx: &Read<'_>, purchase: &StorePurchase) -> Result<Vec<LedgerEntry>> {
    let Some(product) = &purchase.product else { return Ok(Vec::new()) };
    let mut entries = Vec::new();
    for (kind, reference) in purchase.events() {
        entries.extend(ledger::find_by_reference_in(tx, product.asset, kind, &reference)?);
    }
    Ok(entries)
}

fn list_in(tx: &Read<'_>, filter: PurchaseFilter, page: PageRequest) -> Result<Paginated<StorePurchase>> {
    let (size, offset) = (page.size, page.offset());
    let (user, state) = (filter.user.map(|user| user.0), filter.state.map(PurchaseState::name));
    let count = |row: &Row<'_>| row.get(0);
    Ok(match (user, state) {
        (None, None) => Paginated {
            items: tx.all(select_purchases!("order by id desc limit ?1 offset ?2"), (size, offset), purchase_row)?,
            total: tx.one("select count(*) from store_purchases", (), count)?,
        },
        (None, Some(state)) => Paginated {
            items: tx.all(
                select_purchases!("where state = ?1 order by id desc limit ?2 offset ?3"),
                (state, size, offset),
                purchase_row,
            )?,
            total: tx.one("select count(*) from store_purchases where state = ?1", [state], count)?,
        },
        // A user has few purchases, so they need no index by state.
        (Some(user), state) => Paginated {
            items: tx.all(
                select_purchases!(
                    "where user_id = ?1 and (state = ?2 or ?2 is null) order by id desc limit ?3 offset ?4"
                ),
                (user, state, size, offset),
                purchase_row,
            )?,
            total: tx.one(
                "select count(*) from store_purchases where user_id = ?1 and (state = ?2 or ?2 is null)",
                (user, state),
                count,
            )?,
        },
    })
}

/// Stores a purchase that is not known yet, in the state `pending`.
pub(super) fn insert_in(tx: &Write<'_>, facts: &PurchaseFacts, user: Option<UserId>) -> Result<StorePurchase> {
    let (price, currency) = facts.price.clone().unzip();
    let product = Some(&facts.store_product).filter(|product| !product.is_empty());
    let id = tx.insert(
        "insert into store_purchases (store, environment, purchase_id, reference, order_id, user_id, store_product_id, \
         quantity, state, country, price_milli, currency, purchased_at, created_at) \
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
        (
            facts.key.store.name(),
            facts.key.environment.name(),
            &facts.key.id,
            facts.key.reference(),
            &facts.order_id,
            user.map(|user| user.0),
            product,
            facts.quantity,
            PurchaseState::Pending.name(),
            &facts.country,
            price,
            currency,
            facts.purchased_at.map(|at| at.0),
            tx.now.0,
        ),
    )?;
    find_by_id_in(tx, id)?.ok_or_else(|| Error::internal("a purchase that was just stored is missing"))
}

/// Stores the columns that a credit sets.
pub(super) fn store_credit_in(tx: &Write<'_>, purchase: &StorePurchase) -> Result<()> {
    let product = purchase.product.as_ref();
    let (price, currency) = purchase.price.clone().unzip();
    tx.execute(
        "update store_purchases set user_id = ?2, order_id = ?3, store_product_id = ?4, quantity = ?5, product_id = ?6, \
         product_version = ?7, asset = ?8, coin_count = ?9, bonus = ?10, country = ?11, price_milli = ?12, \
         currency = ?13, purchased_at = ?14, credited_at = ?15 where id = ?1",
        (
            purchase.id,
            purchase.user.map(|user| user.0),
            &purchase.order_id,
            &purchase.store_product,
            purchase.quantity,
            product.map(|product| &product.id),
            product.map(|product| product.version),
            product.map(|product| product.asset.name()),
            purchase.coin_count,
            purchase.bonus,
            &purchase.country,
            price,
            currency,
            purchase.purchased_at.map(|at| at.0),
            purchase.credited_at.map(|at| at.0),
        ),
    )?;
    store_in(tx, purchase)
}

/// Stores the columns that change after a credit.
pub(super) fn store_in(tx: &Write<'_>, purchase: &StorePurchase) -> Result<()> {
    tx.execute(
        "update store_purchases set state = ?2, reason = ?3, revoked_part = ?4, revoked_whole = ?5, restored_at = ?6, \
         returned = ?7, bonus_returned = ?8, written_off = ?9, bonus_written_off = ?10, returns = ?11, due_at = ?12, \
         due_until = ?13, revoked_at = ?14 where id = ?1",
        (
            purchase.id,
            purchase.state.name(),
            &purchase.reason,
            purchase.revoked.part,
            purchase.revoked.whole,
            purchase.restored_at.map(|at| at.0),
            purchase.returned,
            purchase.bonus_returned,
            purchase.written_off,
            purchase.bonus_written_off,
            purchase.returns,
            purchase.due_at.map(|at| at.0),
            purchase.due_until.map(|at| at.0),
            purchase.revoked_at.map(|at| at.0),
        ),
    )
    .map(drop)
}

/// Schedules the call that the store waits for, or ends it.
pub(super) fn schedule_in(tx: &Write<'_>, id: i64, due_at: Option<Timestamp>) -> Result<()> {
    tx.execute("update store_purchases set due_at = ?2 where id = ?1", (id, due_at.map(|at| at.0))).map(drop)
}

/// Exports the user's purchases and account token, oldest first.
pub fn export_in(tx: &Read<'_>, user: UserId, each: Each<'_>) -> Result<()> {
    tx.each(select_purchases!("where user_id = ?1 order by id"), [user.0], |row| {
        let purchase = purchase_row(row)?;
        each(json!({
            "store": purchase.key.store.name(),
            "environment": purchase.key.environment.name(),
            "purchaseId": purchase.key.id,
            "orderId": purchase.order_id,
            "storeProductId": purchase.store_product,
            "quantity": purchase.quantity,
            "productId": purchase.product.as_ref().map(|product| &product.id),
            "productVersion": purchase.product.as_ref().map(|product| product.version),
            "asset": purchase.product.as_ref().map(|product| product.asset.name()),
            "coinCount": purchase.coin_count,
            "bonus": purchase.bonus,
            "state": purchase.state.name(),
            "reason": purchase.reason,
            "country": purchase.country,
            "priceMilli": purchase.price.as_ref().map(|(price, _)| price),
            "currency": purchase.price.as_ref().map(|(_, currency)| currency),
            "coinsReturned": purchase.returned,
            "bonusReturned": purchase.bonus_returned,
            "coinsWrittenOff": purchase.written_off,
            "bonusWrittenOff": purchase.bonus_written_off,
            "purchasedAt": purchase.purchased_at,
            "createdAt": purchase.created_at,
            "creditedAt": purchase.credited_at,
            "revokedAt": purchase.revoked_at,
        }))
    })
}

fn purchase_row(row: &Row<'_>) -> RowResult<StorePurchase> {
    let time = |index| -> RowResult<Option<Timestamp>> { Ok(row.get::<Option<i64>>(index)?.map(Timestamp)) };
    let product = match row.get::<Option<String>>(9)? {
        Some(id) => Some(PurchasedProduct { id, version: row.get(10)?, asset: row.get_parsed(11, Asset::from_name)? }),
        None => None,
    };
    let price: (Option<i64>, Option<String>) = (row.get(17)?, row.get(18)?);
    Ok(StorePurchase {
        id: row.get(0)?,
        key: PurchaseKey {
            store: row.get_parsed(1, PurchaseStore::from_name)?,
            environment: row.get_parsed(2, PurchaseEnvironment::from_name)?,
            id: row.get(3)?,
        },
        reference: row.get(4)?,
        order_id: row.get(5)?,
        user: row.get::<Option<i64>>(6)?.map(UserId),
        store_product: row.get(7)?,
        quantity: row.get(8)?,
        product,
        coin_count: row.get(12)?,
        bonus: row.get(13)?,
        state: row.get_parsed(14, PurchaseState::from_name)?,
        reason: row.get(15)?,
        country: row.get(16)?,
        price: price.0.zip(price.1),
        revoked: RevokedShare { part: row.get(19)?, whole: row.get(20)? },
        restored_at: time(21)?,
        returned: row.get(22)?,
        bonus_returned: row.get(23)?,
        written_off: row.get(24)?,
        bonus_written_off: row.get(25)?,
        returns: row.get(26)?,
        due_at: time(27)?,
        due_until: time(28)?,
        purchased_at: time(29)?,
        created_at: Timestamp(row.get(30)?),
        credited_at: time(31)?,
        revoked_at: time(32)?,
    })
}
