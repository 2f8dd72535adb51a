//! The apps that get pushes, and the queue of pushes to them.
//!
//! The queue is written in the transaction of the notification, so that a kill loses nothing. It is bounded: at most one
//! entry for each app and kind, in which a newer notification replaces an older one. A broadcast is one row, which the
//! job spreads over the apps in small writes.
//!
//! A token belongs to the user who registered it last. It ends with the sign-in that registered it.

use std::time::Duration;

use serde_json::json;

use crate::{
    core::Core,
    domain::{Each, identity::preferences::NotificationKind},
    error::{Code, Result},
    providers::push::PushService,
    store::{Pending, Read, Row, RowResult, Write},
    types::{Timestamp, UserId},
};

/// Apps that a broadcast is queued for in one write.
const BROADCAST_BATCH: u32 = 500;

/// An app on a phone that gets pushes. `Debug` would show its token, so there is none.
#[derive(Clone)]
pub struct PushDevice {
    pub id: i64,
    pub user: UserId,
    pub service: PushService,
    pub token: String,
    /// The sign-in that registered it.
    pub family: [u8; 32],
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// The first refusal of the token since a push was accepted.
    pub refused_at: Option<Timestamp>,
}

/// A push that is due.
#[derive(Clone)]
pub struct QueuedPush {
    pub device: PushDevice,
    pub kind: NotificationKind,
    pub notification: i64,
    pub queued_at: Timestamp,
    pub attempts: u32,
}

/// The result of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushResult {
    /// Not to be sent any more.
    Done,
    /// Accepted by the service.
    Sent,
    /// The service refuses the token. It may accept it later.
    Refused,
    /// To be tried at this time. A deferred push was not attempted.
    Later { at: Timestamp, is_attempt: bool },
    /// The app is gone. One that was registered again after this time is not.
    DeadDevice { since: Timestamp },
}

/// The number of apps and of queued pushes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PushCounts {
    pub devices: i64,
    pub queued: i64,
}

macro_rules! device_columns {
    () => {
        "device.id, device.user_id, device.service, device.token, device.family, device.created_at, device.updated_at, \
         device.refused_at"
    };
}

/// Registers an app, or moves it to this user and sign-in.
pub fn register_in(
    tx: &Write<'_>,
    user: UserId,
    family: [u8; 32],
    service: PushService,
    token: &str,
) -> Result<PushDevice> {
    // Pushes to the previous user must not reach this one.
    tx.execute(
        "delete from push_queue where device_id in \
         (select id from push_devices where service = ?1 and token = ?2 and user_id <> ?3)",
        (service.name(), token, user.0),
    )?;
    // An app whose token changed replaces its old one: a sign-in is one app.
    tx.execute(
        "delete from push_devices where user_id = ?1 and family = ?2 and service = ?3 and token <> ?4",
        (user.0, family, service.name(), token),
    )?;
    tx.one(
        concat!(
            "insert into push_devices as device (user_id, service, token, family, created_at, updated_at) \
             values (?1, ?2, ?3, ?4, ?5, ?5) on conflict (service, token) do update set \
             created_at = case when device.user_id = excluded.user_id then device.created_at else excluded.created_at end, \
             user_id = excluded.user_id, family = excluded.family, updated_at = excluded.updated_at returning ",
            "id, user_id, service, token, family, created_at, updated_at, refused_at"
        ),
        (user.0, service.name(), token, family, tx.now.0),
        |row| device_of(row, 0),
    )
}

/// Removes the user's apps that registered first, beyond `limit`.
pub fn remove_oldest_in(tx: &Write<'_>, user: UserId, limit: u32) -> Result<()> {
    tx.execute(
        "delete from push_devices where user_id = ?1 and id in (select id from push_devices where user_id = ?1 \
         order by updated_at desc, id desc limit 9223372036854775807 offset ?2)",
        (user.0, limit),
    )
    .map(drop)
}

/// Lists the user's apps, newest first.
pub fn list(core: &Core, user: UserId) -> Result<Vec<PushDevice>> {
    core.store.read(|tx| list_in(tx, user))
}

/// Removes one of the user's apps.
///
/// # Errors
/// `not_found`.
pub fn remove(core: &Core, user: UserId, id: i64) -> Pending<()> {
    core.store.write(move |tx| {
        let deleted = tx.execute("delete from push_devices where user_id = ?1 and id = ?2", (user.0, id))?;
        if deleted == 1 { Ok(()) } else { Err(Code::NotFound.into()) }
    })
}

fn list_in(tx: &Read<'_>, user: UserId) -> Result<Vec<PushDevice>> {
    tx.all(
        concat!("select ", device_columns!(), " from push_devices as device where user_id = ?1 order by id desc"),
        [user.0],
        |row| device_of(row, 0),
    )
}

/// Queues a notification for the user's apps.
pub fn add_in(tx: &Write<'_>, user: UserId, kind: NotificationKind, notification: i64) -> Result<()> {
    tx.execute(
        "insert into push_queue (device_id, kind, notification_id, queued_at, due_at, attempts) \
         select id, ?2, ?3, ?4, ?4, 0 from push_devices where user_id = ?1 \
         on conflict (device_id, kind) do update set notification_id = excluded.notification_id, \
         queued_at = excluded.queued_at, due_at = excluded.due_at, attempts = 0",
        (user.0, kind.name(), notification, tx.now.0),
    )
    .map(drop)
}

/// Queues a broadcast, if there are apps.
pub fn add_broadcast_in(tx: &Write<'_>, kind: NotificationKind, notification: i64) -> Result<()> {
    tx.execute(
        "insert into push_broadcasts (notification_id, kind, last_device, sent_at) \
         select ?1, ?2, 0, ?3 where exists (select 1 from push_devices)",
        (notification, kind.name(), tx.now.0),
    )
    .map(drop)
}

/// Queues the oldest broadcast for the next apps. Returns false if there is none.
pub fn spread_broadcast(core: &Core) -> Result<bool> {
    let oldest = "select 1 from push_broadcasts limit 1";
    if core.store.read(|tx| tx.first(oldest, (), |row| row.get::<i64>(0)))?.is_none() {
        return Ok(false);
    }
    core.store.write(spread_broadcast_in).wait().map(|()| true)
}

fn spread_broadcast_in(tx: &Write<'_>) -> Result<()> {
    let oldest: Option<(i64, String, i64, i64)> = tx.first(
        "select notification_id, kind, last_device, sent_at from push_broadcasts order by notification_id limit 1",
        (),
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)),
    )?;
    let Some((notification, kind, last_device, sent_at)) = oldest else { return Ok(()) };
    let last: Option<i64> = tx.one(
        "select max(id) from (select id from push_devices where id > ?1 order by id limit ?2) as batch",
        (last_device, BROADCAST_BATCH),
        |row| row.get(0),
    )?;
    let Some(last) = last else {
        return tx.execute("delete from push_broadcasts where notification_id = ?1", [notification]).map(drop);
    };
    // A notification that was sent meanwhile is newer.
    tx.execute(
        "insert into push_queue (device_id, kind, notification_id, queued_at, due_at, attempts) \
         select id, ?3, ?4, ?5, ?6, 0 from push_devices where id > ?1 and id <= ?2 \
         on conflict (device_id, kind) do update set notification_id = excluded.notification_id, \
         queued_at = excluded.queued_at, due_at = excluded.due_at, attempts = 0 \
         where push_queue.notification_id < excluded.notification_id",
        (last_device, last, &kind, notification, sent_at, tx.now.0),
    )?;
    tx.execute("update push_broadcasts set last_device = ?2 where notification_id = ?1", (notification, last)).map(drop)
}

/// Returns up to `limit` pushes that are due, the oldest first.
pub fn list_due_in(tx: &Read<'_>, limit: u32) -> Result<Vec<QueuedPush>> {
    tx.all(
        concat!(
            "select push.kind, push.notification_id, push.queued_at, push.attempts, ",
            device_columns!(),
            " from push_queue as push join push_devices as device on device.id = push.device_id \
             where push.due_at <= ?1 order by push.due_at limit ?2"
        ),
        (tx.now.0, limit),
        |row| {
            Ok(QueuedPush {
                kind: row.get_parsed(0, NotificationKind::from_name)?,
                notification: row.get(1)?,
                queued_at: Timestamp(row.get(2)?),
                attempts: row.get(3)?,
                device: device_of(row, 4)?,
            })
        },
    )
}

/// Stores the results of attempts. A push that a newer notification replaced meanwhile stays.
pub fn settle_in(tx: &Write<'_>, results: &[(QueuedPush, PushResult)]) -> Result<()> {
    for (push, result) in results {
        match result {
            PushResult::Done => remove_in(tx, push)?,
            PushResult::Sent => {
                if push.device.refused_at.is_some() {
                    tx.execute("update push_devices set refused_at = null where id = ?1", [push.device.id])?;
                }
                remove_in(tx, push)?
            }
            PushResult::Refused => {
                tx.execute(
                    "update push_devices set refused_at = ?3 where id = ?1 and token = ?2 and refused_at is null",
                    (push.device.id, &push.device.token, tx.now.0),
                )?;
                remove_in(tx, push)?
            }
            PushResult::Later { at, is_attempt } => tx.execute(
                "update push_queue set due_at = ?4, attempts = attempts + ?5 \
                 where device_id = ?1 and kind = ?2 and notification_id = ?3",
                (push.device.id, push.kind.name(), push.notification, at.0, u32::from(*is_attempt)),
            )?,
            PushResult::DeadDevice { since } => tx.execute(
                "delete from push_devices where id = ?1 and token = ?2 and updated_at <= ?3",
                (push.device.id, &push.device.token, since.0),
            )?,
        };
    }
    Ok(())
}

fn remove_in(tx: &Write<'_>, push: &QueuedPush) -> Result<usize> {
    tx.execute(
        "delete from push_queue where device_id = ?1 and kind = ?2 and notification_id = ?3",
        (push.device.id, push.kind.name(), push.notification),
    )
}

/// Returns the number of apps and queued pushes.
pub fn counts(core: &Core) -> Result<PushCounts> {
    core.store.read(|tx| {
        tx.one("select (select count(*) from push_devices), (select count(*) from push_queue)", (), |row| {
            Ok(PushCounts { devices: row.get(0)?, queued: row.get(1)? })
        })
    })
}

/// Deletes up to `limit` pushes that were queued more than `age` ago, as without a configured service.
pub fn delete_older_in(tx: &Write<'_>, age: Duration, limit: u32) -> Result<usize> {
    tx.execute(
        "delete from push_queue where (device_id, kind) in \
         (select device_id, kind from push_queue where queued_at < ?1 order by queued_at limit ?2)",
        (tx.now.minus(age).0, limit),
    )
}

/// Exports the user's apps with their tokens.
pub fn export_in(tx: &Read<'_>, user: UserId, each: Each<'_>) -> Result<()> {
    list_in(tx, user)?.into_iter().try_for_each(|device| {
        each(json!({
            "id": device.id.to_string(),
            "service": device.service.name(),
            "token": device.token,
            "createdAt": device.created_at,
            "updatedAt": device.updated_at,
        }))
    })
}

/// Deletes the apps of a user whose account is deleted, with the pushes to them.
pub fn erase_user_in(tx: &Write<'_>, user: UserId) -> Result<()> {
    tx.execute("delete from push_devices where user_id = ?1", [user.0]).map(drop)
}

/// Reads the columns of `device_columns` from `first` on.
fn device_of(row: &Row<'_>, first: usize) -> RowResult<PushDevice> {
    Ok(PushDevice {
        id: row.get(first)?,
        user: UserId(row.get(first + 1)?),
        service: row.get_parsed(first + 2, PushService::from_name)?,
        token: row.get(first + 3)?,
        family: row.get(first + 4)?,
        created_at: Timestamp(row.get(first + 5)?),
        updated_at: Timestamp(row.get(first + 6)?),
        refused_at: row.get::<Option<i64>>(first + 7)?.map(Timestamp),
    })
}
