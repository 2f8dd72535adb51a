//! In-app notifications.
//!
//! A broadcast is one row, whatever the number of users, and a user has rows here only after reading. Broadcasts are
//! numbered (`ordinal`) and summed up in *blocks* of 512: one block holds their kinds, a user's block holds the user's
//! read bits. So the unread count reads one row per 512 broadcasts, and a page finds its rows by ordinal. "Mark all as
//! read" is a mark: one row with the last id. Direct notifications are limited per user and counted individually.
//!
//! Users see broadcasts since their registration. An expired notification disappears from every response at once; a job
//! removes it from the blocks a little later. The first `read_at` stays, whatever is marked again.

/// The columns in the order in which [`notification_of`] reads them.
macro_rules! notification_columns {
    () => {
        "id, ordinal, kind, title, body, payload, created_at, expires_at"
    };
}

macro_rules! select_notifications {
    ($rest:literal) => {
        concat!("select ", notification_columns!(), " from notifications ", $rest)
    };
}

mod blocks;
mod inbox;
mod payload;
mod sending;

#[cfg(test)]
mod tests;

use crate::{store::Row, types::Timestamp};

pub use crate::domain::identity::preferences::NotificationKind;
pub use inbox::{
    MarkAllOutcome, erase_user_in, export_in, export_marks_in, latest_broadcast, list, list_broadcasts, mark_all_read,
    mark_read, unread_count,
};
pub use payload::Payload;
pub use sending::{
    Audience, NotificationDraft, SentNotification, delete, delete_expired_in, expire_due, list_sent, require_future,
    require_recipients, send, send_in,
};

/// A notification as sent.
#[derive(Clone, Debug)]
pub struct Notification {
    pub id: i64,
    /// The number among the broadcasts; nothing for what is direct to single users.
    pub ordinal: Option<i64>,
    pub kind: NotificationKind,
    pub title: String,
    pub body: String,
    pub payload: Payload,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
}

/// A notification as its reader finds it.
#[derive(Clone, Debug)]
pub struct InboxItem {
    pub notification: Notification,
    pub read_at: Option<Timestamp>,
}

impl Notification {
    fn has_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|expires_at| expires_at <= now)
    }
}

/// Reads `id, ordinal, kind, title, body, payload, created_at, expires_at`.
fn notification_of(row: &Row<'_>) -> rusqlite::Result<Notification> {
    let payload: String = row.get(5)?;
    Ok(Notification {
        id: row.get(0)?,
        ordinal: row.get(1)?,
        kind: row.get_parsed(2, NotificationKind::from_name)?,
        title: row.get(3)?,
        body: row.get(4)?,
        payload: Payload::from_stored(&payload),
        created_at: Timestamp(row.get(6)?),
        expires_at: row.get::<Option<i64>>(7)?.map(Timestamp),
    })
}
