//! In-app notifications.
//!
//! A broadcast is one row, whatever the number of users, and a user has rows here only after reading. Broadcasts are
//! numbered by `ordinal` and summarised in blocks of 512: a block holds their kinds, a user's block holds the user's
//! read bits. So an unread count reads two rows per 512 broadcasts. "Mark all as read" stores one mark with the last
//! id. Notifications to single users are limited per user and counted individually.
//!
//! Users see broadcasts since their registration. An expired notification disappears from every response at once; a job
//! removes it from the blocks later. The first `read_at` never changes.

/// The columns that [`notification_of`] reads, in its order.
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

/// The time of first reading by user `?1`: the notification's own, or that of the first mark that covers it.
macro_rules! read_at {
    ($id:literal) => {
        concat!(
            "coalesce((select read_at from notification_reads where user_id = ?1 and notification_id = ",
            $id,
            "), (select marked_at from notification_marks where user_id = ?1 and through >= ",
            $id,
            " order by through limit 1))"
        )
    };
}

/// The columns that `item_of` in `inbox.rs` reads, for user `?1`.
macro_rules! select_items {
    ($rest:literal) => {
        concat!("select ", notification_columns!(), ", ", read_at!("notifications.id"), " from notifications ", $rest)
    };
}

mod blocks;
mod inbox;
mod payload;
mod sending;

#[cfg(test)]
mod tests;

use crate::{
    store::{Row, RowResult},
    types::Timestamp,
};

pub use crate::domain::identity::preferences::NotificationKind;
pub use inbox::{
    LastNotification, MarkAllOutcome, NEWEST, NewNotifications, ReadMark, erase_readings_in, erase_user_in, export_in,
    export_marks_in, find_visible_in, is_known_in, last_mark_in, last_read_change_in, latest_broadcast, list,
    list_after_in, list_newest, list_read_after_in, mark_all_read, mark_read, newest_for_in, newest_id_in,
    recipients_after_in, unread_count, unread_count_in,
};
pub use payload::Payload;
pub use sending::{
    Audience, NotificationDraft, SentNotification, delete, delete_expired_in, delete_old_deletions_in, expire_due,
    last_deletion_in, list_deleted_after_in, list_sent, require_future, require_recipients, send, send_in, send_once,
};

/// A notification as sent.
#[derive(Clone, Debug)]
pub struct Notification {
    pub id: i64,
    /// The number of a broadcast; `None` for a notification to single users.
    pub ordinal: Option<i64>,
    pub kind: NotificationKind,
    pub title: String,
    pub body: String,
    pub payload: Payload,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
}

/// A notification in a user's inbox.
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

/// Reads the columns of `notification_columns`.
fn notification_of(row: &Row<'_>) -> RowResult<Notification> {
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
