//! Notifications of the stores: each acts once, however often it is delivered.

use std::time::Duration;

use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    domain::money::purchases::purchase::{PurchaseState, PurchaseStore, StorePurchase},
    error::Result,
    store::{Read, Row, RowResult, Write},
    types::{Timestamp, named_enum},
};

/// The time for which notifications are remembered. Effects also count once by purchase.
const RETENTION: Duration = Duration::from_hours(30 * 24);

named_enum! {
    /// The effect of a notification.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum MessageVerdict {
        Credited = "credited",
        Pending = "pending",
        Revoked = "revoked",
        Restored = "restored",
        /// A refund was declined, or consumption data will be sent.
        Noted = "noted",
        /// No account has the account token, or the purchase has none.
        Unbound = "unbound",
        /// The purchase brings nothing; its state says why.
        Refused = "refused",
        /// Without effect here.
        Ignored = "ignored",
        /// It was processed before.
        Duplicate = "duplicate",
    }
}

impl MessageVerdict {
    /// Returns the verdict on a report of a purchase that has this state now.
    pub(super) const fn of(purchase: &StorePurchase) -> Self {
        match purchase.state {
            PurchaseState::Credited => Self::Credited,
            PurchaseState::Pending => Self::Pending,
            PurchaseState::Revoked => Self::Revoked,
            PurchaseState::Refused => Self::Refused,
        }
    }
}

/// A notification of a store about a purchase.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = AdminStoreMessage)]
#[serde(rename_all = "camelCase")]
pub struct StoreMessage {
    #[schema(example = "002e14d5-51f5-4503-b5a8-c3a1af68eb20")]
    pub message_id: String,
    /// The store's name of its kind.
    #[schema(example = "REFUND")]
    pub kind: String,
    #[schema(example = "revoked")]
    pub verdict: String,
    #[schema(value_type = String, format = DateTime, example = "2026-01-04T03:04:05.678Z")]
    pub received_at: Timestamp,
}

/// Applies a notification once and stores its verdict. `message` is its id and kind; without one it only applies.
pub(super) fn apply_once_in(
    tx: &Write<'_>,
    store: PurchaseStore,
    message: Option<(&str, &str)>,
    apply: impl FnOnce() -> Result<(MessageVerdict, Option<i64>)>,
) -> Result<MessageVerdict> {
    let Some((id, kind)) = message else { return Ok(apply()?.0) };
    if !insert_in(tx, store, id, kind)? {
        return Ok(MessageVerdict::Duplicate);
    }
    let (verdict, purchase) = apply()?;
    put_verdict_in(tx, store, id, verdict, purchase)?;
    Ok(verdict)
}

/// Stores a notification. Returns false if it is known.
fn insert_in(tx: &Write<'_>, store: PurchaseStore, message_id: &str, kind: &str) -> Result<bool> {
    let kind: String = kind.chars().take(64).collect();
    let stored = tx.execute(
        "insert into store_messages (store, message_id, kind, verdict, received_at) values (?1, ?2, ?3, ?4, ?5) \
         on conflict (store, message_id) do nothing",
        (store.name(), message_id, kind, MessageVerdict::Ignored.name(), tx.now.0),
    )?;
    Ok(stored == 1)
}

/// Returns true if the notification was processed.
pub(super) fn is_known_in(tx: &Read<'_>, store: PurchaseStore, message_id: &str) -> Result<bool> {
    let sql = "select 1 from store_messages where store = ?1 and message_id = ?2";
    Ok(tx.first(sql, (store.name(), message_id), |row| row.get::<i64>(0))?.is_some())
}

/// Stores the effect of a notification and the purchase that it is about.
fn put_verdict_in(
    tx: &Write<'_>,
    store: PurchaseStore,
    message_id: &str,
    verdict: MessageVerdict,
    purchase: Option<i64>,
) -> Result<()> {
    let sql = "update store_messages set verdict = ?3, purchase = ?4 where store = ?1 and message_id = ?2";
    tx.execute(sql, (store.name(), message_id, verdict.name(), purchase)).map(drop)
}

/// Returns the notifications about a purchase, oldest first.
pub(super) fn of_purchase_in(tx: &Read<'_>, purchase: i64) -> Result<Vec<StoreMessage>> {
    tx.all(
        "select message_id, kind, verdict, received_at from store_messages \
         where purchase = ?1 order by received_at limit 100",
        [purchase],
        message_row,
    )
}

/// Deletes old notifications, at most `limit`.
pub fn delete_old_in(tx: &Write<'_>, limit: u32) -> Result<usize> {
    tx.execute(
        "delete from store_messages where (store, message_id) in (select store, message_id from store_messages \
         where received_at < ?1 limit ?2)",
        (tx.now.minus(RETENTION).0, limit),
    )
}

fn message_row(row: &Row<'_>) -> RowResult<StoreMessage> {
    Ok(StoreMessage {
        message_id: row.get(0)?,
        kind: row.get(1)?,
        verdict: row.get(2)?,
        received_at: Timestamp(row.get(3)?),
    })
}
