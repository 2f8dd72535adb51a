//! The inbox: what users are told in the app.
//!
//! A broadcast is one row, however many users there are, and a user leaves a trace here only by reading. To count
//! what is unread without walking the inbox, broadcasts are numbered (`ordinal`) and summed up in *blocks* of 512:
//! one block says which of them are there and of which kind, a user's block says which of them the user has read. So
//! a count reads one row for 512 broadcasts, and a page finds its rows by number. "All read" is a mark: one row that
//! says up to where. What is direct to single users is max_per_user down to a number for each of them, and counted.
//!
//! Users see broadcasts from after their registration. What has expired is gone from every answer at once; a job
//! takes it out of the blocks a little later. The first `read_at` stays, whatever is marked again.

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

/// Something that users are told, as it was sent.
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
