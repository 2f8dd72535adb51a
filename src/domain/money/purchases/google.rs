//! Purchases in Google Play: reports of the app, pushed notifications, voided purchases, and consumption.
//!
//! A purchase token proves nothing, so the state is always queried. A purchase is consumed by a job after its credit is
//! committed. The row says that this is due, so that a crash between the two loses nothing.

use std::{sync::Arc, time::Duration};

use crate::{
    config::PaymentGoogleConfig,
    domain::money::purchases::{
        PurchaseReceipt, Purchases, ReadSchedule, accounts,
        apple::{NOT_A_TESTER, NotificationResult, fault_error},
        crediting::{self, refused},
        messages::{self, MessageVerdict},
        purchase::{
            PurchaseEnvironment, PurchaseFacts, PurchaseKey, PurchaseState, PurchaseStore, RevokedShare, StorePurchase,
        },
        read_list_if_due, records, retry_delay,
        testers::is_tester_in,
    },
    error::{Code, Result},
    providers::{
        Failure, FailureKind,
        payment::{
            google::{GoogleEvent, GooglePlay, GooglePurchase, GoogleVoidedPurchase},
            purchase::{PurchaseBinding, PurchaseFault},
        },
    },
    store::{Read, Write},
    types::{Timestamp, UserId},
};

/// Google lists voided purchases of the last 30 days.
const VOIDED: ReadSchedule = ReadSchedule {
    mark: "purchases.google_voided",
    interval: Duration::from_hours(6),
    start: Duration::from_hours(29 * 24),
    overlap: Duration::from_hours(24),
};
/// More pages than a service of this size fills.
const VOIDED_PAGES: u32 = 500;

/// The reason of a token that belongs to another product than the one that was named with it.
const ANOTHER_PRODUCT: &str = "another_product";
/// Google's reason for the same.
const GOOGLE_ANOTHER_PRODUCT: &str = "purchaseTokenDoesNotMatchProductId";

/// A purchase as Google reports it.
struct QueriedPurchase {
    facts: PurchaseFacts,
    purchase: GooglePurchase,
}

/// Queries and credits a purchase that the app reports, once. A pending one is recorded. Blocks.
///
/// # Errors
/// `not_configured`; `purchase_refused` for an unknown token; `not_found` for another user's purchase;
/// `purchase_revoked`, `unknown_package`, `account_inconsistent`, `balance_too_large`, those of the provider.
pub fn report(purchases: &Purchases, user: UserId, product_id: &str, token: &str) -> Result<PurchaseReceipt> {
    let queried = {
        let _permit = purchases.calls.try_acquire()?;
        query_store(purchases, product_id, token)?.ok_or_else(|| refused("unknown_at_store"))?
    };
    let config = Arc::clone(&purchases.core.config);
    let write = move |tx: &Write<'_>| {
        let purchase = credit_own_in(tx, &config.payment_google, &queried, user)?;
        let balance = crediting::balance_in(tx, &purchase)?;
        Ok((purchase, balance))
    };
    let (purchase, balance) = purchases.core.store.write(write).wait()?;
    crediting::receipt_of(purchase, balance)
}

/// Returns true if keys of Google must be fetched to verify a notification.
///
/// # Errors
/// `not_configured`.
pub fn awaits_keys(purchases: &Purchases, authorization: Option<&str>, body: &[u8]) -> Result<bool> {
    let (push, now) = (&purchases.google()?.push, purchases.core.clock.now().0);
    Ok(push.needs_keys(&push.read(authorization, body, now), now))
}

/// Verifies and processes a pushed notification. Blocks.
///
/// # Errors
/// Those for which it must be sent again; `not_configured`.
pub fn receive(purchases: &Purchases, authorization: Option<&str>, body: &[u8]) -> Result<NotificationResult> {
    let store = purchases.google()?;
    let now = purchases.core.clock.now().0;
    let read_push = || store.push.read(authorization, body, now);
    let mut read = read_push();
    if store.push.needs_keys(&read, now) {
        match store.refresh_keys() {
            // Perhaps another notification fetched them meanwhile.
            Ok(_) => read = read_push(),
            Err(failure) if read.is_err() => return Err(failure.into()),
            // Expired keys stay in use while Google cannot be reached.
            Err(_) => {}
        }
    }
    let notification = match read {
        Ok(notification) => notification,
        Err(rejection) => {
            let rejected = "rejected a notification of Google Play";
            if purchases.core.log_throttle.admits(rejected, rejection.reason.code()) {
                tracing::warn!(reason = %rejection.reason, "{rejected}");
            }
            return Ok(NotificationResult::Rejected(rejection.reason));
        }
    };
    let id = notification.message_id;
    if purchases.core.store.read(|tx| messages::is_known_in(tx, PurchaseStore::Google, &id))? {
        return Ok(NotificationResult::Done(MessageVerdict::Duplicate));
    }
    let verdict = match notification.event {
        GoogleEvent::Purchased { product_id, token } => {
            process_purchase(purchases, Some((id, "purchased")), &product_id, &token)
        }
        GoogleEvent::Cancelled { product_id, token } => {
            process_purchase(purchases, Some((id, "cancelled")), &product_id, &token)
        }
        GoogleEvent::Voided { token, order_id, is_partial } => {
            process_voided(purchases, Some((id, "voided")), &token, &order_id, is_partial)
        }
        GoogleEvent::Test => store_message(purchases, Some((id, "test"))),
        GoogleEvent::Other => store_message(purchases, Some((id, "other"))),
    };
    verdict.map(NotificationResult::Done)
}

/// Applies the present state of a purchase at Google Play. Blocks.
///
/// # Errors
/// `not_configured`, those of the provider, and those of [`crediting`].
pub(super) fn query(purchases: &Purchases, purchase: &StorePurchase) -> Result<()> {
    let Some(product) = &purchase.store_product else { return Err(refused("product_not_known")) };
    let queried = query_store(purchases, product, &purchase.key.id)?.ok_or_else(|| refused("unknown_at_store"))?;
    apply(purchases, queried, None).map(drop)
}

/// Consumes a purchase whose credit is committed. Blocks.
pub(super) fn consume(purchases: &Purchases, purchase: &StorePurchase) -> Result<()> {
    let store = purchases.google()?;
    let Some(product) = &purchase.store_product else { return Ok(()) };
    match ask(purchases, || store.consume(product, &purchase.key.id)) {
        Ok(()) => Ok(()),
        // Refunded or expired since: there is nothing left to consume.
        Err(failure) if failure.kind == FailureKind::Refused => {
            tracing::warn!(purchase_id = purchase.id, %failure, "a purchase can no longer be consumed");
            Ok(())
        }
        Err(failure) => Err(failure.into()),
    }
}

/// Returns the time of the next attempt to consume a purchase. Only a consumed product can be bought again, so the
/// attempts go on.
pub(super) fn next_attempt(purchase: &StorePurchase, now: Timestamp) -> Timestamp {
    let begun = purchase.credited_at.unwrap_or(purchase.created_at);
    now.plus(retry_delay(Duration::from_millis(u64::try_from(now.0 - begun.0).unwrap_or(0))))
}

/// Reads the voided purchases since the last run, every few hours. Blocks.
///
/// # Errors
/// Those of the provider; the next run reads the same time again.
pub(super) fn read_voided_if_due(purchases: &Purchases) -> Result<()> {
    let Some(store) = &purchases.google else { return Ok(()) };
    read_list_if_due(&purchases.core, &VOIDED, |since, _| read_voided(purchases, store, since))
}

/// Returns true if all voided purchases were processed.
fn read_voided(purchases: &Purchases, store: &GooglePlay, since: Timestamp) -> Result<bool> {
    let (mut next, mut is_complete): (Option<String>, bool) = (None, true);
    for _ in 0..VOIDED_PAGES {
        let page = ask(purchases, || store.voided_purchases(since.0, next.as_deref()))?;
        for GoogleVoidedPurchase { purchase_token, order_id, voided_quantity, .. } in &page.purchases {
            let is_partial = voided_quantity.is_some();
            if let Err(error) = process_voided(purchases, None, purchase_token, order_id, is_partial) {
                tracing::warn!(%error, "a voided purchase could not be processed");
                is_complete = false;
            }
        }
        next = page.next;
        if next.is_none() {
            return Ok(is_complete);
        }
    }
    Ok(false)
}

fn ask<T>(purchases: &Purchases, question: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    purchases.breaker.run(|| purchases.core.clock.now().0, question)
}

/// Queries a purchase; `None` if Google does not know its token.
fn query_store(purchases: &Purchases, product_id: &str, token: &str) -> Result<Option<QueriedPurchase>> {
    let store = purchases.google()?;
    let found = match ask(purchases, || store.purchase(product_id, token)) {
        Ok(Some(purchase)) if !purchase.is_of(product_id, token) => return Err(refused(ANOTHER_PRODUCT)),
        Ok(found) => found,
        Err(failure) if failure.code == GOOGLE_ANOTHER_PRODUCT => return Err(refused(ANOTHER_PRODUCT)),
        // The token belongs to another app, or is malformed.
        Err(failure) if failure.kind == FailureKind::Refused => None,
        Err(failure) => return Err(failure.into()),
    };
    let Some(purchase) = found else { return Ok(None) };
    let environment = if purchase.is_test() { PurchaseEnvironment::Sandbox } else { PurchaseEnvironment::Production };
    let key = PurchaseKey { store: PurchaseStore::Google, environment, id: token.to_owned() };
    let order_id = purchase.order_id.clone().filter(|order_id| !order_id.is_empty());
    let price = match &order_id {
        Some(order_id) if purchase.is_paid() => price_of(purchases, store, &key, order_id)?,
        _ => None,
    };
    let facts = PurchaseFacts {
        key,
        order_id,
        store_product: product_id.to_owned(),
        quantity: purchase.quantity.max(1),
        country: purchase.region_code.as_ref().map(|country| country.chars().take(8).collect()),
        price,
        purchased_at: purchase.purchased_at().map(Timestamp),
    };
    Ok(Some(QueriedPurchase { facts, purchase }))
}

/// Queries the price of a purchase that is not credited yet. Without an answer the purchase has no price: what the buyer
/// gets does not depend on it.
fn price_of(
    purchases: &Purchases,
    store: &GooglePlay,
    key: &PurchaseKey,
    order_id: &str,
) -> Result<Option<(i64, String)>> {
    let known = purchases.core.store.read(|tx| records::find_in(tx, key))?;
    let is_credited = known.is_some_and(|known| known.credited_at.is_some());
    if is_credited || key.environment == PurchaseEnvironment::Sandbox {
        return Ok(None);
    }
    // Not by the circuit breaker: a missing right of the service account must not stop purchases.
    Ok(store.order_price(order_id).unwrap_or_else(|failure| {
        tracing::warn!(%failure, "Google Play did not report the price of a purchase");
        None
    }))
}

/// A notification: its id and the kind under which it is stored.
type Message = (String, &'static str);

/// Stores a notification without effect. Without one there is nothing to do.
fn store_message(purchases: &Purchases, message: Option<Message>) -> Result<MessageVerdict> {
    let write = move |tx: &Write<'_>| {
        messages::apply_once_in(tx, PurchaseStore::Google, borrowed(message.as_ref()), || {
            Ok((MessageVerdict::Ignored, None))
        })
    };
    purchases.core.store.write(write).wait()
}

/// Queries a purchase and applies its state.
fn process_purchase(
    purchases: &Purchases,
    message: Option<Message>,
    product_id: &str,
    token: &str,
) -> Result<MessageVerdict> {
    match query_store(purchases, product_id, token) {
        Ok(Some(queried)) => apply(purchases, queried, message),
        Ok(None) => store_message(purchases, message),
        Err(error) if crediting::is_final(error.code) => store_message(purchases, message),
        Err(error) => Err(error),
    }
}

/// Applies the state of a purchase, for the user whose account token it names.
fn apply(purchases: &Purchases, queried: QueriedPurchase, message: Option<Message>) -> Result<MessageVerdict> {
    let config = Arc::clone(&purchases.core.config);
    let write = move |tx: &Write<'_>| {
        messages::apply_once_in(tx, PurchaseStore::Google, borrowed(message.as_ref()), || {
            apply_state_in(tx, &config.payment_google, &queried)
        })
    };
    purchases.core.store.write(write).wait()
}

fn borrowed(message: Option<&Message>) -> Option<(&str, &str)> {
    message.map(|(id, kind)| (id.as_str(), *kind))
}

fn apply_state_in(
    tx: &Write<'_>,
    config: &PaymentGoogleConfig,
    queried: &QueriedPurchase,
) -> Result<(MessageVerdict, Option<i64>)> {
    let known = records::find_in(tx, &queried.facts.key)?;
    if let Some(known) = &known
        && known.credited_at.is_some()
    {
        let share = refunded_share(&queried.purchase);
        let after = if share == RevokedShare::NONE {
            known.clone()
        } else {
            crediting::revoke_in(tx, &queried.facts, share, None)?
        };
        return Ok((MessageVerdict::of(&after), Some(after.id)));
    }
    let token = queried.purchase.obfuscated_external_account_id.as_deref();
    let bound = accounts::user_of_in(tx, token)?.or_else(|| known.as_ref().and_then(|known| known.user));
    let Some(user) = bound else { return Ok((MessageVerdict::Unbound, known.map(|known| known.id))) };
    match tx.attempt(|tx| credit_own_in(tx, config, queried, user)) {
        Ok(purchase) => Ok((MessageVerdict::of(&purchase), Some(purchase.id))),
        // A pending purchase that was not paid.
        Err(error) if error.code == Code::PurchaseRevoked => {
            let ended = known.map(|known| crediting::cancel_in(tx, known)).transpose()?;
            Ok((MessageVerdict::Refused, ended.map(|purchase| purchase.id)))
        }
        Err(error) if crediting::is_final(error.code) => Ok((MessageVerdict::Refused, known.map(|known| known.id))),
        Err(error) => Err(error),
    }
}

/// Credits a purchase to a user, or records that it is pending.
fn credit_own_in(
    tx: &Write<'_>,
    config: &PaymentGoogleConfig,
    queried: &QueriedPurchase,
    user: UserId,
) -> Result<StorePurchase> {
    let QueriedPurchase { facts, purchase } = queried;
    match records::find_in(tx, &facts.key)? {
        Some(known) if known.user.is_some_and(|owner| owner != user) => return Err(Code::NotFound.into()),
        Some(known) if known.credited_at.is_some() => {
            return match refunded_share(purchase) {
                RevokedShare::NONE => Ok(known),
                share => crediting::revoke_in(tx, facts, share, None),
            };
        }
        _ => {}
    }
    let account = accounts::find_in(tx, user)?;
    let account_token = account.as_ref().map_or("", |account| account.account_token.as_str());
    let allows_missing_token = config.allow_missing_token;
    let checked = purchase.check(&PurchaseBinding { account_token, allows_missing_token });
    let is_pending = checked == Err(PurchaseFault::Pending);
    if is_pending {
        // The check looks at the state first, so the token of a pending purchase is compared here.
        let owner = accounts::user_of_in(tx, purchase.obfuscated_external_account_id.as_deref())?;
        if owner.is_some_and(|owner| owner != user) {
            return Err(Code::NotFound.into());
        }
        if owner.is_none() && !allows_missing_token {
            return Err(fault_error(PurchaseFault::MissingAccountToken));
        }
    } else {
        checked.map_err(fault_error)?;
    }
    if facts.key.environment == PurchaseEnvironment::Sandbox && !is_tester_in(tx, &config.testers, user)? {
        return Err(refused(NOT_A_TESTER));
    }
    if is_pending {
        return crediting::record_pending_in(tx, facts, user);
    }
    let credited = crediting::credit_in(tx, facts, user)?;
    if credited.state != PurchaseState::Credited {
        return Ok(credited);
    }
    let due_at = (!purchase.is_consumed()).then_some(tx.now);
    let credited = StorePurchase { due_at, ..credited };
    records::store_in(tx, &credited)?;
    match refunded_share(purchase) {
        RevokedShare::NONE => Ok(credited),
        share => crediting::revoke_in(tx, facts, share, None),
    }
}

/// Returns the share of a credited purchase that was refunded. One that is cancelled was paid before.
fn refunded_share(purchase: &GooglePurchase) -> RevokedShare {
    if purchase.is_cancelled() {
        return RevokedShare::ALL;
    }
    let quantity = purchase.quantity.max(1);
    match purchase.refundable_quantity {
        Some(left) if left < quantity => RevokedShare { part: quantity - left, whole: quantity },
        _ => RevokedShare::NONE,
    }
}

/// Takes back the coins of a voided purchase. Of a quantity, Google tells the refunded part with the purchase.
fn process_voided(
    purchases: &Purchases,
    message: Option<Message>,
    token: &str,
    order_id: &str,
    is_partial: bool,
) -> Result<MessageVerdict> {
    if is_partial {
        let known = purchases.core.store.read(|tx| find_voided(tx, token, order_id))?;
        let product = known.and_then(|known| known.store_product);
        return match product {
            Some(product) => process_purchase(purchases, message, &product, token),
            // When the purchase is reported, it tells the refunded part itself.
            None => store_message(purchases, message),
        };
    }
    let facts = PurchaseFacts {
        key: PurchaseKey {
            store: PurchaseStore::Google,
            environment: PurchaseEnvironment::Production,
            id: token.to_owned(),
        },
        order_id: Some(order_id.to_owned()).filter(|order_id| !order_id.is_empty()),
        store_product: String::new(),
        quantity: 1,
        country: None,
        price: None,
        purchased_at: None,
    };
    let write = move |tx: &Write<'_>| {
        messages::apply_once_in(tx, PurchaseStore::Google, borrowed(message.as_ref()), || {
            // Test purchases are voided, too. The notice does not say which they are.
            let known = find_voided(tx, &facts.key.id, facts.order_id.as_deref().unwrap_or_default())?;
            let facts = match known {
                Some(known) => PurchaseFacts { key: known.key, ..facts },
                None => facts,
            };
            let purchase = crediting::revoke_in(tx, &facts, RevokedShare::ALL, None)?;
            Ok((MessageVerdict::Revoked, Some(purchase.id)))
        })
    };
    purchases.core.store.write(write).wait()
}

/// Finds the purchase of a voided one, by token in either environment or by order.
fn find_voided(tx: &Read<'_>, token: &str, order_id: &str) -> Result<Option<StorePurchase>> {
    for environment in PurchaseEnvironment::ALL {
        let key = PurchaseKey { store: PurchaseStore::Google, environment, id: token.to_owned() };
        if let Some(found) = records::find_in(tx, &key)? {
            return Ok(Some(found));
        }
    }
    if order_id.is_empty() { Ok(None) } else { records::find_by_order_in(tx, PurchaseStore::Google, order_id) }
}
