//! Credits purchases and takes their coins back, in the transaction that records them.
//!
//! Every source of a fact ends here: the app's report, notifications, histories and operators. Facts may come in any
//! order and any number of times. A balance never falls below zero: coins that were spent before a refund are written
//! off.

use serde_json::json;

use crate::{
    domain::{
        identity::users,
        money::{
            ledger::{self, EntryKind, Posting},
            products,
            purchases::{
                PurchaseReceipt,
                purchase::{
                    PurchaseFacts, PurchaseState, PurchaseStore, PurchasedProduct, RevokedShare, StorePurchase,
                },
                records,
            },
        },
        operations::webhook_outbox::{self, NewWebhookEvent, WebhookKind},
    },
    error::{Code, Error, Result},
    store::{Read, Write},
    types::{Timestamp, UserId},
};

/// The reason of a purchase of a product that is not defined here. It is credited once the product is.
pub const UNKNOWN_PRODUCT: &str = "unknown_product";
/// The reason of a purchase whose order is known under another token.
const KNOWN_ORDER: &str = "known_order";

/// Credits a purchase to a user, or returns the known one. The state tells the outcome.
///
/// # Errors
/// `not_found` if it belongs to another user, without telling whose, or if the user is gone; `already_posted` if its row
/// was deleted after the retention; `balance_too_large`, `account_inconsistent`.
pub fn credit_in(tx: &Write<'_>, facts: &PurchaseFacts, user: UserId) -> Result<StorePurchase> {
    let purchase = match own_in(tx, facts, user)? {
        Some(known) if known.credited_at.is_some() || known.state == PurchaseState::Revoked => return Ok(known),
        Some(known) => known,
        None => records::insert_in(tx, &without_known_order_in(tx, facts)?, Some(user))?,
    };
    if let Some(order_id) = &facts.order_id
        && records::find_by_order_in(tx, facts.key.store, order_id)?.is_some_and(|other| other.id != purchase.id)
    {
        return refuse_in(tx, purchase, KNOWN_ORDER);
    }
    let purchase = with_facts(purchase, facts, user);
    let bought_at = facts.purchased_at.unwrap_or(tx.now);
    let sold = match facts.key.store {
        PurchaseStore::Apple => products::find_by_apple_id_in(tx, &facts.store_product, bought_at)?,
        PurchaseStore::Google => products::find_by_google_id_in(tx, &facts.store_product, bought_at)?,
    };
    let Some(product) = sold else { return refuse_in(tx, purchase, UNKNOWN_PRODUCT) };
    let (terms, quantity) = (&product.terms, i64::from(facts.quantity));
    let first_bonus = if ledger::has_topup_in(tx, user)? { 0 } else { i64::from(terms.first_bonus) };
    let credited = StorePurchase {
        product: Some(PurchasedProduct {
            id: product.id.as_str().to_owned(),
            version: product.version,
            asset: terms.asset,
        }),
        coin_count: quantity * i64::from(terms.quantity),
        bonus: quantity * i64::from(terms.bonus) + first_bonus,
        state: PurchaseState::Credited,
        reason: None,
        credited_at: Some(tx.now),
        ..purchase
    };
    post_in(tx, &credited, credited.credit_event(), credited.coin_count)?;
    if credited.bonus > 0 {
        post_in(tx, &credited, credited.bonus_event(), credited.bonus)?;
    }
    records::store_credit_in(tx, &credited)?;
    tell_in(tx, WebhookKind::PurchaseCredited, &credited)?;
    Ok(credited)
}

fn tell_in(tx: &Write<'_>, kind: WebhookKind, purchase: &StorePurchase) -> Result<()> {
    let product = purchase.product.as_ref();
    let data = json!({
        "purchaseId": purchase.id.to_string(),
        "state": purchase.state.name(),
        "productId": product.map(|product| product.id.as_str()),
        "asset": product.map(|product| product.asset.name()),
        "count": purchase.coin_count,
        "bonus": purchase.bonus,
        "returned": purchase.returned + purchase.bonus_returned,
    });
    webhook_outbox::record_in(tx, &NewWebhookEvent { kind, user: purchase.user, data, text: None })
}

/// Records a purchase that the buyer has not paid yet.
///
/// # Errors
/// `not_found` if it belongs to another user.
pub(super) fn record_pending_in(tx: &Write<'_>, facts: &PurchaseFacts, user: UserId) -> Result<StorePurchase> {
    match own_in(tx, facts, user)? {
        Some(known) => Ok(known),
        None => records::insert_in(tx, &without_known_order_in(tx, facts)?, Some(user)),
    }
}

/// Records that a purchase was not paid.
pub(super) fn cancel_in(tx: &Write<'_>, purchase: StorePurchase) -> Result<StorePurchase> {
    match purchase.state {
        PurchaseState::Pending => refuse_in(tx, purchase, "cancelled"),
        _ => Ok(purchase),
    }
}

/// Records a refund and takes back its share of the coins. `facts` are those of the refund, for an unknown purchase.
///
/// # Errors
/// `account_inconsistent`: the refund must be reported again.
pub fn revoke_in(
    tx: &Write<'_>,
    facts: &PurchaseFacts,
    share: RevokedShare,
    at: Option<Timestamp>,
) -> Result<StorePurchase> {
    let purchase = match find_known_in(tx, facts)? {
        Some(known) => known,
        None => records::insert_in(tx, facts, None)?,
    };
    let is_older = purchase.restored_at.is_some_and(|restored| at.is_some_and(|at| at <= restored));
    let (revoked, before) = (purchase.revoked.larger(share), purchase.revoked);
    if is_older {
        return Ok(purchase);
    }
    // The last refund, because a reversal undoes only those before it.
    let revoked_at = purchase.revoked_at.max(at).or(Some(tx.now));
    let is_later = revoked_at != purchase.revoked_at;
    let purchase = StorePurchase { revoked, revoked_at, ..purchase };
    if revoked == before {
        if is_later && before != RevokedShare::NONE {
            records::store_in(tx, &purchase)?;
        }
        return Ok(purchase);
    }
    // A refund of an unknown purchase revokes all of it, even if only a part went back: it is never credited.
    let is_over = revoked.is_all() || purchase.credited_at.is_none();
    let state = if is_over { PurchaseState::Revoked } else { purchase.state };
    let due_at = purchase.due_at.filter(|_| purchase.credited_at.is_some() && !revoked.is_all());
    let purchase = StorePurchase { state, due_at, ..claw_back_in(tx, purchase)? };
    records::store_in(tx, &purchase)?;
    tell_in(tx, WebhookKind::PurchaseRefunded, &purchase)?;
    Ok(purchase)
}

/// Undoes the refunds of a purchase before `at` and gives back what was taken for them, once.
///
/// # Errors
/// `account_inconsistent`, `balance_too_large`.
pub fn restore_in(tx: &Write<'_>, purchase: StorePurchase, at: Timestamp) -> Result<StorePurchase> {
    let restored_at = purchase.restored_at.max(Some(at));
    if purchase.revoked == RevokedShare::NONE || purchase.revoked_at > Some(at) {
        let purchase = StorePurchase { restored_at, ..purchase };
        records::store_in(tx, &purchase)?;
        return Ok(purchase);
    }
    let (returned, returns) = (purchase.returned + purchase.bonus_returned, purchase.returns + 1);
    if returned > 0 {
        post_in(tx, &purchase, purchase.reversal_event(returns), returned)?;
    }
    let state = if purchase.credited_at.is_some() { PurchaseState::Credited } else { PurchaseState::Pending };
    let purchase = StorePurchase {
        state,
        revoked: RevokedShare::NONE,
        restored_at,
        revoked_at: None,
        returned: 0,
        bonus_returned: 0,
        written_off: 0,
        bonus_written_off: 0,
        returns,
        ..purchase
    };
    records::store_in(tx, &purchase)?;
    Ok(purchase)
}

/// Returns the receipt of a purchase, or the reason why it brings nothing.
///
/// # Errors
/// `purchase_revoked`, `unknown_package`, `purchase_refused`.
pub(super) fn receipt_of(purchase: StorePurchase, balance: i64) -> Result<PurchaseReceipt> {
    match (purchase.state, purchase.reason.as_deref()) {
        (PurchaseState::Revoked, _) if purchase.credited_at.is_none() => Err(Code::PurchaseRevoked.into()),
        (PurchaseState::Refused, Some(UNKNOWN_PRODUCT)) => {
            let detail = (
                "The operator has not defined the product. The purchase is recorded; report it again later.",
                "运营方尚未定义此商品。购买已记录，请稍后再次上报。",
            );
            Err(Error::new(Code::UnknownPackage).detail(detail))
        }
        (PurchaseState::Refused, reason) => Err(refused(reason.unwrap_or("refused"))),
        _ => Ok(PurchaseReceipt { purchase, balance }),
    }
}

/// Returns the balance of the purchase's asset.
pub(super) fn balance_in(tx: &Read<'_>, purchase: &StorePurchase) -> Result<i64> {
    match (purchase.user, &purchase.product) {
        (Some(user), Some(product)) => ledger::balance_in(tx, user, product.asset),
        _ => Ok(0),
    }
}

/// Returns the error of a purchase that is not credited, with its reason as a stable word.
pub(super) fn refused(reason: &str) -> Error {
    Error::new(Code::PurchaseRefused)
        .detail((format!("The purchase cannot be credited: {reason}."), format!("此次购买无法入账：{reason}。")))
}

/// Returns true for an error that a repeated report of the purchase cannot change.
pub(super) const fn is_final(code: Code) -> bool {
    matches!(
        code,
        Code::NotFound | Code::PurchaseRefused | Code::PurchaseRevoked | Code::AlreadyPosted | Code::BalanceTooLarge
    )
}

/// Returns the known purchase if it is the user's, or only its refund is known.
fn own_in(tx: &Read<'_>, facts: &PurchaseFacts, user: UserId) -> Result<Option<StorePurchase>> {
    if !users::exists_in(tx, user)? {
        return Err(Code::NotFound.into());
    }
    match records::find_in(tx, &facts.key)? {
        Some(known) if known.user.is_some_and(|owner| owner != user) => Err(Code::NotFound.into()),
        known => Ok(known),
    }
}

/// Finds the purchase of a refund: Google names some by their order only.
fn find_known_in(tx: &Read<'_>, facts: &PurchaseFacts) -> Result<Option<StorePurchase>> {
    let by_key = records::find_in(tx, &facts.key)?;
    match (&facts.order_id, by_key) {
        (Some(order_id), None) => records::find_by_order_in(tx, facts.key.store, order_id),
        (_, found) => Ok(found),
    }
}

/// Leaves out an order number that another purchase has: the row is stored, and then refused.
fn without_known_order_in(tx: &Read<'_>, facts: &PurchaseFacts) -> Result<PurchaseFacts> {
    let other = match &facts.order_id {
        Some(order_id) => records::find_by_order_in(tx, facts.key.store, order_id)?,
        None => None,
    };
    Ok(PurchaseFacts { order_id: facts.order_id.clone().filter(|_| other.is_none()), ..facts.clone() })
}

fn with_facts(purchase: StorePurchase, facts: &PurchaseFacts, user: UserId) -> StorePurchase {
    StorePurchase {
        user: Some(user),
        order_id: facts.order_id.clone().or(purchase.order_id),
        store_product: Some(facts.store_product.clone()),
        quantity: facts.quantity,
        country: facts.country.clone().or(purchase.country),
        price: facts.price.clone().or(purchase.price),
        purchased_at: facts.purchased_at.or(purchase.purchased_at),
        ..purchase
    }
}

fn refuse_in(tx: &Write<'_>, purchase: StorePurchase, reason: &str) -> Result<StorePurchase> {
    let (purchase_id, store) = (purchase.id, purchase.key.store.name());
    tracing::warn!(
        purchase_id,
        store,
        reason,
        "a purchase cannot be credited; see `yarrow purchases list --state refused`"
    );
    let purchase = StorePurchase { state: PurchaseState::Refused, reason: Some(reason.to_owned()), ..purchase };
    records::store_credit_in(tx, &purchase)?;
    Ok(purchase)
}

/// Takes back owed coins, as many as the balance allows, and writes off the rest.
fn claw_back_in(tx: &Write<'_>, purchase: StorePurchase) -> Result<StorePurchase> {
    let ((owed, bonus_owed), Some(user), Some(product)) = (purchase.owed(), purchase.user, &purchase.product) else {
        return Ok(purchase);
    };
    if owed + bonus_owed == 0 {
        return Ok(purchase);
    }
    let account = ledger::usable_account_in(tx, user, product.asset)?;
    let taken = owed.min(account.balance);
    let bonus_taken = bonus_owed.min(account.balance - taken);
    let returns = purchase.returns + 1;
    for (event, part) in purchase.return_events(returns).into_iter().zip([taken, bonus_taken]) {
        if part > 0 {
            post_in(tx, &purchase, event, -part)?;
        }
    }
    let missing = owed + bonus_owed - taken - bonus_taken;
    if missing > 0 {
        let (purchase_id, written_off) = (purchase.id, missing);
        tracing::warn!(purchase_id, written_off, "coins of a refunded purchase were spent and are written off");
    }
    Ok(StorePurchase {
        returned: purchase.returned + taken,
        bonus_returned: purchase.bonus_returned + bonus_taken,
        written_off: purchase.written_off + owed - taken,
        bonus_written_off: purchase.bonus_written_off + bonus_owed - bonus_taken,
        returns,
        ..purchase
    })
}

fn post_in(tx: &Write<'_>, purchase: &StorePurchase, event: (EntryKind, String), delta: i64) -> Result<()> {
    let (Some(user), Some(product)) = (purchase.user, &purchase.product) else {
        return Err(Error::internal("a purchase without user or product is posted"));
    };
    let (kind, reference) = event;
    ledger::post_in(tx, Posting { user, asset: product.asset, delta, kind, reference: Some(reference) }).map(drop)
}
