//! Sends, lists, deletes and expires notifications.

use std::time::Duration;

use super::{Notification, Payload, blocks, notification_of};
use crate::{
    core::Core,
    domain::{
        identity::{preferences::NotificationKind, users},
        messaging::push_queue,
        operations::{
            deletions::{self, DeletedKind},
            free_space_scrub,
            idempotency::{IdempotentOutcome, IdempotentRequest},
        },
    },
    error::{Code, Error, Fault, FieldCode, Result},
    store::{Pending, Read, Write},
    types::{PageRequest, Paginated, Timestamp, UserId},
};

/// Notifications that expire in one write.
const BATCH_SIZE: u32 = 200;

/// The audience of a notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Audience {
    Everybody,
    Users(Vec<UserId>),
}

/// A notification before it is sent.
#[derive(Clone, Debug)]
pub struct NotificationDraft {
    pub audience: Audience,
    pub kind: NotificationKind,
    pub title: String,
    pub body: String,
    pub payload: Payload,
    pub expires_at: Option<Timestamp>,
}

/// A sent notification with its number of readers.
#[derive(Clone, Debug)]
pub struct SentNotification {
    pub notification: Notification,
    /// Number of direct recipients; `None` for a broadcast.
    pub recipients: Option<u32>,
    /// Number of users who have read it.
    pub readers: u32,
}

/// Sends a notification to all users, which is one row, or to some.
///
/// # Errors
/// `invalid_parameters` for an unknown user or an expiry in the past.
pub fn send(core: &Core, draft: NotificationDraft) -> Pending<SentNotification> {
    let max_per_user = core.config.notifications.per_user;
    core.store.write(move |tx| send_in(tx, &draft, max_per_user))
}

/// Sends a notification, once for each key.
///
/// # Errors
/// As [`send`]; those of the key.
pub fn send_once(
    core: &Core,
    draft: NotificationDraft,
    once: IdempotentRequest<SentNotification>,
) -> Pending<IdempotentOutcome<SentNotification>> {
    let max_per_user = core.config.notifications.per_user;
    core.store.write(move |tx| once.run_in(tx, |tx| send_in(tx, &draft, max_per_user)))
}

/// Lists sent notifications, newest first.
pub fn list_sent(core: &Core, page: PageRequest) -> Result<Paginated<SentNotification>> {
    core.store.read(|tx| {
        let found = tx.all(
            select_notifications!("order by id desc limit ?1 offset ?2"),
            (page.size, page.offset()),
            notification_of,
        )?;
        let items = found.into_iter().map(|notification| sent_in(tx, notification)).collect::<Result<_>>()?;
        Ok(Paginated { items, total: tx.one("select count(*) from notifications", (), |row| row.get(0))? })
    })
}

/// Requires that all of these users exist. Used to validate a draft before it is sent.
///
/// # Errors
/// `invalid_parameters` for the first unknown user.
pub fn require_recipients(core: &Core, users: &[UserId]) -> Result<()> {
    core.store.read(|tx| users.iter().try_for_each(|user| require_recipient_in(tx, *user)))
}

/// Requires that an expiry is in the future.
///
/// # Errors
/// `out_of_range`.
pub fn require_future(expires_at: Timestamp, now: Timestamp) -> Result<(), Fault> {
    if expires_at > now {
        Ok(())
    } else {
        Err(Fault::new(FieldCode::OutOfRange, ("must be in the future", "须为将来的时间")))
    }
}

/// Deletes a notification from every inbox.
///
/// # Errors
/// `not_found`.
pub fn delete(core: &Core, id: i64) -> Pending<()> {
    core.store.write(move |tx| {
        record_deletion_in(tx, id)?;
        if delete_in(tx, id)? { free_space_scrub::request_in(tx) } else { Err(Code::NotFound.into()) }
    })
}

/// Returns the numbers and notification ids of broadcasts deleted after a number.
pub fn list_deleted_after_in(tx: &Read<'_>, number: i64, limit: u32) -> Result<Vec<(i64, i64)>> {
    tx.all(
        "select number, notification_id from notification_deletions where number > ?1 order by number limit ?2",
        (number, limit),
        |row| Ok((row.get(0)?, row.get(1)?)),
    )
}

/// Returns the number of the last deletion of a broadcast, or 0.
pub fn last_deletion_in(tx: &Read<'_>) -> Result<i64> {
    tx.one("select coalesce(max(number), 0) from notification_deletions", (), |row| row.get(0))
}

/// Deletes up to `limit` records of deleted broadcasts that are older than `age`.
pub fn delete_old_deletions_in(tx: &Write<'_>, age: Duration, limit: u32) -> Result<usize> {
    tx.execute(
        "delete from notification_deletions where number in (select number from notification_deletions \
         where deleted_at < ?1 order by deleted_at limit ?2)",
        (tx.now.minus(age).0, limit),
    )
}

/// Records that a notification is deleted, for all users or its recipients.
fn record_deletion_in(tx: &Write<'_>, id: i64) -> Result<()> {
    tx.execute(
        "insert into notification_deletions (notification_id, deleted_at) \
         select id, ?2 from notifications where id = ?1 and ordinal is not null",
        (id, tx.now.0),
    )?;
    let recipients: Vec<i64> =
        tx.all("select user_id from notification_recipients where notification_id = ?1", [id], |row| row.get(0))?;
    let subject = [id.to_string()];
    recipients
        .into_iter()
        .try_for_each(|user| deletions::record_in(tx, UserId(user), DeletedKind::Notification, &subject, 0))
}

/// Removes expired broadcasts from the blocks, so that counts need not exclude them.
pub fn expire_due(core: &Core) -> Result<()> {
    while !core.store.read(|tx| due_in(tx, 1))?.is_empty() {
        core.store.write(expire_due_in).wait()?;
    }
    Ok(())
}

/// Deletes up to `limit` notifications that expired more than `age` ago.
pub fn delete_expired_in(tx: &Write<'_>, age: Duration, limit: u32) -> Result<usize> {
    let ids: Vec<i64> = tx.all(
        "select id from notifications where expires_at is not null and is_live = 0 and expires_at <= ?1 \
         order by expires_at limit ?2",
        (tx.now.minus(age).0, limit),
        |row| row.get(0),
    )?;
    for id in &ids {
        delete_in(tx, *id)?;
    }
    Ok(ids.len())
}

/// Sends a notification within another operation. Each recipient keeps the newest `max_per_user` notifications.
pub fn send_in(tx: &Write<'_>, draft: &NotificationDraft, max_per_user: u32) -> Result<SentNotification> {
    if let Some(expires_at) = draft.expires_at {
        require_future(expires_at, tx.now).map_err(|fault| Error::field("expiresAt", fault))?;
    }
    let ordinal = match draft.audience {
        Audience::Everybody => Some(blocks::append_in(tx, draft.kind)?),
        Audience::Users(_) => None,
    };
    let notification = tx.one(
        concat!(
            "insert into notifications (ordinal, kind, title, body, payload, created_at, expires_at) \
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7) returning ",
            notification_columns!()
        ),
        (
            ordinal,
            draft.kind.name(),
            &draft.title,
            &draft.body,
            draft.payload.to_json(),
            tx.now.0,
            draft.expires_at.map(|expires_at| expires_at.0),
        ),
        notification_of,
    )?;
    match &draft.audience {
        Audience::Everybody => push_queue::add_broadcast_in(tx, notification.kind, notification.id)?,
        Audience::Users(users) => {
            for user in users {
                add_recipient_in(tx, &notification, *user, max_per_user)?;
                push_queue::add_in(tx, *user, notification.kind, notification.id)?;
            }
        }
    }
    sent_in(tx, notification)
}

fn add_recipient_in(tx: &Write<'_>, notification: &Notification, user: UserId, max_per_user: u32) -> Result<()> {
    require_recipient_in(tx, user)?;
    tx.execute(
        "insert into notification_recipients (user_id, notification_id, kind, expires_at) values (?1, ?2, ?3, ?4) \
         on conflict (user_id, notification_id) do nothing",
        (user.0, notification.id, notification.kind.name(), notification.expires_at.map(|expires_at| expires_at.0)),
    )?;
    let dropped: Vec<i64> = tx.all(
        "select notification_id from notification_recipients where user_id = ?1 \
         order by notification_id desc limit 9223372036854775807 offset ?2",
        (user.0, max_per_user),
        |row| row.get(0),
    )?;
    for id in &dropped {
        for sql in [
            "delete from notification_recipients where user_id = ?1 and notification_id = ?2",
            "delete from notification_reads where user_id = ?1 and notification_id = ?2",
        ] {
            tx.execute(sql, (user.0, id))?;
        }
    }
    let subjects: Vec<_> = dropped.iter().map(ToString::to_string).collect();
    deletions::record_in(tx, user, DeletedKind::Notification, &subjects, 0)?;
    delete_orphans_in(tx, dropped)
}

fn require_recipient_in(tx: &Read<'_>, user: UserId) -> Result<()> {
    match users::find_in(tx, user) {
        Ok(_) => Ok(()),
        Err(error) if error.code == Code::NotFound => Err(Error::field(
            "userIds",
            Fault::new(FieldCode::UnknownValue, (format!("user {user} does not exist"), format!("用户 {user} 不存在"))),
        )),
        Err(error) => Err(error),
    }
}

/// Deletes those of these notifications that have no recipients left.
pub(super) fn delete_orphans_in(tx: &Write<'_>, ids: impl IntoIterator<Item = i64>) -> Result<()> {
    tx.execute_each(
        "delete from notifications where id = ?1 and ordinal is null \
         and not exists (select 1 from notification_recipients where notification_id = ?1)",
        ids.into_iter().map(|id| [id]),
    )
    .map(drop)
}

/// Deletes a notification and returns true if it existed.
fn delete_in(tx: &Write<'_>, id: i64) -> Result<bool> {
    tx.execute(
        "delete from notification_reads where notification_id = ?1 \
         and user_id in (select user_id from notification_recipients where notification_id = ?1)",
        [id],
    )?;
    let ordinal: Option<Option<i64>> =
        tx.first("delete from notifications where id = ?1 returning ordinal", [id], |row| row.get(0))?;
    if let Some(Some(ordinal)) = ordinal {
        blocks::remove_in(tx, ordinal)?;
    }
    Ok(ordinal.is_some())
}

fn due_in(tx: &Read<'_>, limit: u32) -> Result<Vec<(i64, Option<i64>)>> {
    tx.all(
        "select id, ordinal from notifications where expires_at is not null and is_live = 1 and expires_at <= ?1 \
         order by expires_at limit ?2",
        (tx.now.0, limit),
        |row| Ok((row.get(0)?, row.get(1)?)),
    )
}

fn expire_due_in(tx: &Write<'_>) -> Result<()> {
    for (id, ordinal) in due_in(tx, BATCH_SIZE)? {
        tx.execute("update notifications set is_live = 0 where id = ?1", [id])?;
        if let Some(ordinal) = ordinal {
            blocks::remove_in(tx, ordinal)?;
        }
    }
    Ok(())
}

fn sent_in(tx: &Read<'_>, notification: Notification) -> Result<SentNotification> {
    if let Some(ordinal) = notification.ordinal {
        let readers = blocks::reader_count_in(tx, ordinal)?;
        return Ok(SentNotification { notification, recipients: None, readers });
    }
    let (recipients, readers) = tx.one(
        "select count(*), count(*) filter (where exists (select 1 from notification_reads as done \
         where done.user_id = given.user_id and done.notification_id = ?1) or exists (select 1 from notification_marks \
         as mark where mark.user_id = given.user_id and mark.through >= ?1)) \
         from notification_recipients as given where given.notification_id = ?1",
        [notification.id],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    Ok(SentNotification { notification, recipients: Some(recipients), readers })
}
