//! Purchases in the App Store: reports of the app, notifications, their history, and queries by operators.

use std::{sync::Arc, time::Duration};

use crate::{
    config::PaymentAppleConfig,
    domain::money::{
        ledger,
        purchases::{
            PurchaseReceipt, Purchases, ReadSchedule,
            accounts::{self, StoreAccount},
            crediting::{self, refused},
            messages::{self, MessageVerdict},
            purchase::{
                PurchaseEnvironment, PurchaseFacts, PurchaseKey, PurchaseState, PurchaseStore, RevokedShare,
                StorePurchase,
            },
            read_list_if_due, records, retry_delay,
            testers::is_tester_in,
        },
    },
    error::{Code, Error, Result},
    providers::payment::{
        Rejection, RejectionReason,
        apple::{
            AppStore, AppleConsumption, AppleEnvironment, AppleEvent, AppleNotification, AppleNotificationQuery,
            AppleTransaction,
        },
        purchase::{PurchaseBinding, PurchaseFault},
    },
    store::{Read, Write},
    types::{Timestamp, UserId},
};

/// The reason of a purchase in the sandbox by somebody who is no tester.
pub(super) const NOT_A_TESTER: &str = "sandbox_not_allowed";
/// Thousandths of a percent in a whole.
const WHOLE: u32 = 100_000;
/// The time after its request during which Apple accepts consumption data.
const CONSUMPTION_PERIOD: Duration = Duration::from_hours(12);
/// Apple keeps notifications for half a year and repeats one for days.
const HISTORY: ReadSchedule = ReadSchedule {
    mark: "purchases.apple_history",
    interval: Duration::from_hours(1),
    start: Duration::from_hours(30 * 24),
    overlap: Duration::from_hours(6 * 24),
};
/// More pages than a service of this size fills.
const HISTORY_PAGES: u32 = 500;

/// The response to a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotificationResult {
    /// Its effect is stored.
    Done(MessageVerdict),
    /// It is not from the store.
    Rejected(RejectionReason),
}

/// Credits a purchase that the app reports, once. `consent` is the user's consent to send consumption data, if the app
/// says it. Blocks.
///
/// # Errors
/// `not_configured`; `purchase_refused` for what Apple did not sign for this app; `not_found` for another user's
/// purchase; `purchase_revoked`, `unknown_package`, `account_inconsistent`, `balance_too_large`.
pub fn report(purchases: &Purchases, user: UserId, jws: &str, consent: Option<bool>) -> Result<PurchaseReceipt> {
    let (store, config) = (purchases.apple()?, Arc::clone(&purchases.core.config));
    let transaction = store.verifier.transaction(jws, purchases.core.clock.now().0);
    let transaction = transaction.map_err(|reason| refused(reason.code()))?;
    let write = move |tx: &Write<'_>| {
        let account = accounts::find_in(tx, user)?;
        if let Some(consent) = consent {
            accounts::put_consent_in(tx, user, consent)?;
        }
        let purchase = credit_own_in(tx, &config.payment_apple, &transaction, user, account.as_ref())?;
        let balance = crediting::balance_in(tx, &purchase)?;
        Ok((purchase, balance))
    };
    let (purchase, balance) = purchases.core.store.write(write).wait()?;
    crediting::receipt_of(purchase, balance)
}

/// Verifies and processes a notification. Blocks.
///
/// # Errors
/// Those for which it must be sent again; `not_configured`.
pub fn receive(purchases: &Purchases, body: &[u8]) -> Result<NotificationResult> {
    let read = purchases.apple()?.verifier.read_notification(body, purchases.core.clock.now().0);
    process(purchases, read)
}

/// Applies the present state of a purchase at the App Store. Blocks.
///
/// # Errors
/// `not_configured`, those of the provider, and those of [`crediting`].
pub(super) fn query(purchases: &Purchases, purchase: &StorePurchase) -> Result<()> {
    match purchases.apple()?.find_transaction(environment_at_apple(purchase.key.environment), &purchase.key.id)? {
        Some(transaction) => apply_state(purchases, transaction),
        None => Err(refused("unknown_at_store")),
    }
}

/// Applies the present state of all purchases of an order number, which a buyer finds in the mail from Apple. Returns
/// their transaction ids. Blocks.
///
/// # Errors
/// As [`query`].
pub(super) fn query_order(purchases: &Purchases, order_id: &str) -> Result<Vec<String>> {
    let found = purchases.apple()?.find_order(AppleEnvironment::Production, order_id)?;
    let ids = found.iter().map(|transaction| transaction.transaction_id.clone()).collect();
    found.into_iter().try_for_each(|transaction| apply_state(purchases, transaction))?;
    Ok(ids)
}

/// Returns all purchases of the buyer of a transaction, oldest first, after the present state of each was applied. One
/// that cannot be applied is listed all the same. Blocks.
///
/// # Errors
/// `not_configured`, and those of the provider.
pub(super) fn query_history(
    purchases: &Purchases,
    environment: PurchaseEnvironment,
    id: &str,
) -> Result<Vec<AppleTransaction>> {
    let environment = environment_at_apple(environment);
    let (store, mut found, mut revision) = (purchases.apple()?, Vec::new(), None::<String>);
    for _ in 0..HISTORY_PAGES {
        let page = store.history(environment, id, revision.as_deref())?;
        for transaction in page.transactions {
            if let Err(error) = apply_state(purchases, transaction.clone()) {
                tracing::warn!(%error, "a purchase in the history of a buyer could not be applied");
            }
            found.push(transaction);
        }
        if !page.has_more {
            break;
        }
        revision = page.revision;
    }
    Ok(found)
}

/// Reads notifications that did not arrive, once an hour. Blocks.
///
/// # Errors
/// Those of the provider; the next run reads the same time again.
pub(super) fn read_history_if_due(purchases: &Purchases) -> Result<()> {
    let Some(store) = &purchases.apple else { return Ok(()) };
    read_list_if_due(&purchases.core, &HISTORY, |since, now| {
        for environment in store.verifier.environments() {
            read_history(purchases, store, *environment, since, now)?;
        }
        Ok(true)
    })
}

/// Answers a consumption request. Blocks.
pub(super) fn send_consumption(purchases: &Purchases, purchase: &StorePurchase) -> Result<()> {
    let used = purchases.core.store.read(|tx| used_part_in(tx, purchase))?;
    let consumption = AppleConsumption { is_delivered: true, has_sample: false, used, preference: None };
    Ok(purchases.apple()?.send_consumption(
        environment_at_apple(purchase.key.environment),
        &purchase.key.id,
        &consumption,
    )?)
}

const fn environment_at_apple(environment: PurchaseEnvironment) -> AppleEnvironment {
    match environment {
        PurchaseEnvironment::Production => AppleEnvironment::Production,
        PurchaseEnvironment::Sandbox => AppleEnvironment::Sandbox,
    }
}

fn read_history(
    purchases: &Purchases,
    store: &AppStore,
    environment: AppleEnvironment,
    since: Timestamp,
    now: Timestamp,
) -> Result<()> {
    let query =
        AppleNotificationQuery { start_date: since.0, end_date: now.0, only_failures: true, transaction_id: None };
    let mut next: Option<String> = None;
    for _ in 0..HISTORY_PAGES {
        let page = store.notification_history(environment, &query, next.as_deref())?;
        for notification in page.notifications {
            if let Err(error) = process(purchases, notification) {
                tracing::warn!(%error, "a missed notification of the App Store could not be processed");
            }
        }
        next = page.next;
        if next.is_none() {
            break;
        }
    }
    Ok(())
}

fn process(purchases: &Purchases, read: Result<AppleNotification, Rejection>) -> Result<NotificationResult> {
    let notification = match read {
        Ok(notification) => notification,
        // Genuine, but about another app or environment: sending it again changes nothing.
        Err(rejection)
            if rejection.is_genuine
                && matches!(rejection.reason, RejectionReason::WrongApp | RejectionReason::WrongEnvironment) =>
        {
            let ignored = "ignored a notification of the App Store";
            if purchases.core.log_throttle.admits(ignored, rejection.reason.code()) {
                tracing::info!(reason = rejection.reason.code(), "{ignored}");
            }
            return Ok(NotificationResult::Done(MessageVerdict::Ignored));
        }
        Err(rejection) => {
            let rejected = "rejected a notification of the App Store";
            if purchases.core.log_throttle.admits(rejected, rejection.reason.code()) {
                tracing::warn!(reason = %rejection.reason, "{rejected}");
            }
            return Ok(NotificationResult::Rejected(rejection.reason));
        }
    };
    let config = Arc::clone(&purchases.core.config);
    let verdict = purchases.core.store.write(move |tx| apply_in(tx, &config.payment_apple, &notification)).wait()?;
    Ok(NotificationResult::Done(verdict))
}

/// Applies a notification once.
fn apply_in(tx: &Write<'_>, config: &PaymentAppleConfig, notification: &AppleNotification) -> Result<MessageVerdict> {
    let message = Some((notification.uuid.as_str(), notification.kind.as_str()));
    messages::apply_once_in(tx, PurchaseStore::Apple, message, || match &notification.event {
        AppleEvent::Charged(transaction) => credit_bound_in(tx, config, transaction),
        AppleEvent::Refunded(transaction) => {
            let purchase = revoke_in(tx, transaction)?;
            Ok((MessageVerdict::Revoked, Some(purchase.id)))
        }
        AppleEvent::RefundReversed(transaction) => {
            restore_in(tx, config, transaction, Timestamp(notification.signed_at))
        }
        AppleEvent::RefundDeclined(transaction) => {
            let known = records::find_in(tx, &key_of(transaction)?)?;
            Ok((MessageVerdict::Noted, known.map(|purchase| purchase.id)))
        }
        AppleEvent::ConsumptionRequested { transaction, .. } => request_consumption_in(tx, transaction),
        AppleEvent::Test | AppleEvent::Other => Ok((MessageVerdict::Ignored, None)),
    })
}

/// Applies the state of a transaction, as the server API tells it.
fn apply_state(purchases: &Purchases, transaction: AppleTransaction) -> Result<()> {
    let config = Arc::clone(&purchases.core.config);
    purchases
        .core
        .store
        .write(move |tx| {
            if transaction.revocation_date.is_some() {
                return revoke_in(tx, &transaction).map(drop);
            }
            let known = records::find_in(tx, &key_of(&transaction)?)?;
            match known.filter(|known| known.revoked != RevokedShare::NONE) {
                Some(_) => restore_in(tx, &config.payment_apple, &transaction, tx.now).map(drop),
                None => credit_bound_in(tx, &config.payment_apple, &transaction).map(drop),
            }
        })
        .wait()
}

/// Credits a purchase to the user who reports it.
fn credit_own_in(
    tx: &Write<'_>,
    config: &PaymentAppleConfig,
    transaction: &AppleTransaction,
    user: UserId,
    account: Option<&StoreAccount>,
) -> Result<StorePurchase> {
    let facts = facts_of(transaction)?;
    // A known purchase of this user is bound already, and the app repeats its report until it gets 200.
    if let Some(known) = records::find_in(tx, &facts.key)?
        && known.is_of(user)
        && known.credited_at.is_some()
    {
        return Ok(known);
    }
    let account_token = account.map_or("", |account| account.account_token.as_str());
    let binding = PurchaseBinding { account_token, allows_missing_token: config.allow_missing_token };
    transaction.check(&binding).map_err(fault_error)?;
    if facts.key.environment == PurchaseEnvironment::Sandbox && !is_tester_in(tx, &config.testers, user)? {
        return Err(refused(NOT_A_TESTER));
    }
    crediting::credit_in(tx, &facts, user)
}

/// Credits a purchase to the user whose account token it names.
fn credit_bound_in(
    tx: &Write<'_>,
    config: &PaymentAppleConfig,
    transaction: &AppleTransaction,
) -> Result<(MessageVerdict, Option<i64>)> {
    let Some(user) = accounts::user_of_in(tx, transaction.app_account_token.as_deref())? else {
        return Ok((MessageVerdict::Unbound, None));
    };
    let account = accounts::find_in(tx, user)?;
    match tx.attempt(|tx| credit_own_in(tx, config, transaction, user, account.as_ref())) {
        Ok(purchase) => Ok((MessageVerdict::of(&purchase), Some(purchase.id))),
        Err(error) if crediting::is_final(error.code) => Ok((MessageVerdict::Refused, None)),
        Err(error) => Err(error),
    }
}

fn revoke_in(tx: &Write<'_>, transaction: &AppleTransaction) -> Result<StorePurchase> {
    let part = u32::try_from(transaction.revoked_part_of(u64::from(WHOLE))).unwrap_or(WHOLE);
    let at = transaction.revocation_date.map(Timestamp);
    crediting::revoke_in(tx, &facts_of(transaction)?, RevokedShare { part, whole: WHOLE }, at)
}

/// Undoes a refund. A purchase that was never credited because of it is credited now.
fn restore_in(
    tx: &Write<'_>,
    config: &PaymentAppleConfig,
    transaction: &AppleTransaction,
    at: Timestamp,
) -> Result<(MessageVerdict, Option<i64>)> {
    let known = match records::find_in(tx, &key_of(transaction)?)? {
        Some(known) => known,
        // Remembered, because the refund that it undoes may be reported later.
        None => records::insert_in(tx, &facts_of(transaction)?, None)?,
    };
    let restored = crediting::restore_in(tx, known, at)?;
    match restored.state {
        PurchaseState::Credited => return Ok((MessageVerdict::Restored, Some(restored.id))),
        PurchaseState::Revoked => return Ok((MessageVerdict::Noted, Some(restored.id))),
        PurchaseState::Pending | PurchaseState::Refused => {}
    }
    let (verdict, _) = credit_bound_in(tx, config, transaction)?;
    Ok((verdict, Some(restored.id)))
}

/// Schedules the response to a consumption request if the user agreed to it.
fn request_consumption_in(tx: &Write<'_>, transaction: &AppleTransaction) -> Result<(MessageVerdict, Option<i64>)> {
    let known = records::find_in(tx, &key_of(transaction)?)?;
    let Some(purchase) = known.filter(|purchase| purchase.credited_at.is_some()) else {
        return Ok((MessageVerdict::Ignored, None));
    };
    let account = purchase.user.map(|user| accounts::find_in(tx, user)).transpose()?.flatten();
    if !account.is_some_and(|account| account.shares_consumption) {
        return Ok((MessageVerdict::Ignored, Some(purchase.id)));
    }
    let (due_at, due_until) = (Some(tx.now), Some(tx.now.plus(CONSUMPTION_PERIOD)));
    records::store_in(tx, &StorePurchase { due_at, due_until, ..purchase.clone() })?;
    Ok((MessageVerdict::Noted, Some(purchase.id)))
}

/// Returns the used part of a purchase in thousandths of a percent. The oldest coins are used first, so what is left
/// belongs to the newest credits.
fn used_part_in(tx: &Read<'_>, purchase: &StorePurchase) -> Result<u32> {
    let granted = purchase.coin_count + purchase.bonus;
    let credit = records::entries_in(tx, purchase)?.into_iter().next();
    let Some(credit) = credit.filter(|_| granted > 0) else { return Ok(0) };
    let balance = crediting::balance_in(tx, purchase)?;
    // The bonus is posted after the coins and belongs to the same purchase.
    let newer = ledger::added_after_in(tx, &credit)? - purchase.bonus;
    let left = (balance - newer).clamp(0, granted);
    u32::try_from(i64::from(WHOLE) * (granted - left) / granted).map_err(Error::internal)
}

pub(super) fn fault_error(fault: PurchaseFault) -> Error {
    match fault {
        PurchaseFault::AnotherAccount => Code::NotFound.into(),
        PurchaseFault::Revoked | PurchaseFault::Cancelled => Code::PurchaseRevoked.into(),
        fault => refused(fault.name()),
    }
}

pub(super) fn key_of(transaction: &AppleTransaction) -> Result<PurchaseKey> {
    let environment = match transaction.environment() {
        Some(AppleEnvironment::Production) => PurchaseEnvironment::Production,
        Some(AppleEnvironment::Sandbox) => PurchaseEnvironment::Sandbox,
        None => return Err(Error::internal("a verified transaction has no environment")),
    };
    Ok(PurchaseKey { store: PurchaseStore::Apple, environment, id: transaction.transaction_id.clone() })
}

fn facts_of(transaction: &AppleTransaction) -> Result<PurchaseFacts> {
    Ok(PurchaseFacts {
        key: key_of(transaction)?,
        order_id: None,
        store_product: transaction.product_id.chars().take(255).collect(),
        quantity: transaction.quantity,
        country: transaction.storefront.as_ref().map(|country| country.chars().take(8).collect()),
        price: transaction.price.zip(transaction.currency.as_ref().map(|code| code.chars().take(8).collect())),
        purchased_at: transaction.purchase_date.map(Timestamp),
    })
}

/// Returns the time of the next attempt to send consumption data, or `None` if Apple no longer waits.
pub(super) fn next_attempt(purchase: &StorePurchase, now: Timestamp) -> Option<Timestamp> {
    let until = purchase.due_until?;
    let begun = until.minus(CONSUMPTION_PERIOD);
    let waited = Duration::from_millis(u64::try_from(now.0 - begun.0).unwrap_or(0));
    Some(now.plus(retry_delay(waited))).filter(|at| *at < until)
}
