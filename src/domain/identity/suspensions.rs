//! Suspensions of users by the staff.
//!
//! A suspended user keeps devices and data. The guard rejects their requests, except those that read notifications,
//! export the account or send feedback, and sign-in issues no token. A suspension ends by itself at its end, or when
//! somebody lifts it.

use std::sync::Arc;

use serde_json::json;

use super::users;
use crate::{
    core::Core,
    domain::{
        Each,
        messaging::staff_notices::{self, StaffNotice},
        money::ledger::Authority,
        operations::idempotency::{IdempotentOutcome, IdempotentRequest},
    },
    error::{Code, Error, Fault, FieldCode, Result},
    store::{Pending, Read, Row, Write},
    types::{TimeZone, Timestamp, UserId, named_enum},
};

/// Earlier suspensions that a list shows.
const SHOWN: u32 = 50;

macro_rules! suspension_columns {
    () => {
        "id, user_id, source, reason, actor, created_at, ends_at, lifted_at, lifted_by"
    };
}

macro_rules! select_suspensions {
    ($rest:literal) => {
        concat!("select ", suspension_columns!(), " from suspensions ", $rest)
    };
}

named_enum! {
    /// The author of a suspension.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum SuspensionSource {
        Staff = "staff",
        /// A rule that suspends by itself.
        Rule = "rule",
    }
}

/// A suspension of a user.
#[derive(Clone, Debug)]
pub struct Suspension {
    pub id: i64,
    pub user: UserId,
    pub source: SuspensionSource,
    pub reason: String,
    pub actor: String,
    pub created_at: Timestamp,
    /// `None` for one without an end.
    pub ends_at: Option<Timestamp>,
    pub lifted_at: Option<Timestamp>,
    pub lifted_by: Option<String>,
}

impl Suspension {
    pub fn is_in_force(&self, now: Timestamp) -> bool {
        self.lifted_at.is_none() && self.ends_at.is_none_or(|ends_at| ends_at > now)
    }

    /// Returns the error for the suspended user, with the end as the clocks of a zone show it.
    pub fn error(&self, zone: &TimeZone) -> Error {
        let Some(ends_at) = self.ends_at else { return Code::UserSuspended.into() };
        let shown = zone.local_text(ends_at);
        Error::new(Code::UserSuspended)
            .detail(format!("The account is suspended until {shown}. Send feedback to object."))
    }
}

/// Suspends a user and tells them. The reason of `by` is part of the message.
///
/// # Errors
/// `not_found`; `invalid_parameters` for an end in the past; `already_exists` if the user is suspended.
pub fn suspend(
    core: &Core,
    user: UserId,
    ends_at: Option<Timestamp>,
    by: Authority,
    once: IdempotentRequest<Suspension>,
) -> Pending<IdempotentOutcome<Suspension>> {
    let config = Arc::clone(&core.config);
    core.store.write(move |tx| {
        once.run_in(tx, |tx| {
            let suspension = suspend_in(tx, user, SuspensionSource::Staff, ends_at, &by)?;
            staff_notices::send_in(tx, &config, user, &StaffNotice::Suspended { reason: &by.reason, ends_at })?;
            Ok(suspension)
        })
    })
}

/// Lifts the suspension of a user and tells them.
///
/// # Errors
/// `not_found` if the user does not exist or is not suspended.
pub fn lift(core: &Core, user: UserId, by: Authority) -> Pending<Suspension> {
    let config = Arc::clone(&core.config);
    core.store.write(move |tx| {
        let suspension = in_force_in(tx, user)?.ok_or_else(not_suspended)?;
        let lifted = tx.one(
            concat!(
                "update suspensions set lifted_at = ?2, lifted_by = ?3 where id = ?1 returning ",
                suspension_columns!()
            ),
            (suspension.id, tx.now.0, &by.actor),
            suspension_of,
        )?;
        staff_notices::send_in(tx, &config, user, &StaffNotice::SuspensionLifted)?;
        Ok(lifted)
    })
}

/// Lists the newest suspensions of a user, newest first.
///
/// # Errors
/// `not_found`.
pub fn list(core: &Core, user: UserId) -> Result<Vec<Suspension>> {
    core.store.read(|tx| {
        users::find_in(tx, user)?;
        list_in(tx, user)
    })
}

pub fn list_in(tx: &Read<'_>, user: UserId) -> Result<Vec<Suspension>> {
    tx.all(select_suspensions!("where user_id = ?1 order by id desc limit ?2"), (user.0, SHOWN), suspension_of)
}

/// Returns the suspension of a user that is in force.
pub fn in_force_in(tx: &Read<'_>, user: UserId) -> Result<Option<Suspension>> {
    let found = tx.first(select_suspensions!("where user_id = ?1 and lifted_at is null"), [user.0], suspension_of)?;
    Ok(found.filter(|suspension| suspension.is_in_force(tx.now)))
}

/// Rejects a suspended user.
///
/// # Errors
/// `user_suspended`.
pub fn require_none_in(tx: &Read<'_>, user: UserId, zone: &TimeZone) -> Result<()> {
    in_force_in(tx, user)?.map_or(Ok(()), |suspension| Err(suspension.error(zone)))
}

/// Returns the suspensions that are not lifted with ids below this one, newest first. Some may have ended.
pub fn not_lifted_before_in(tx: &Read<'_>, before: i64, limit: u32) -> Result<Vec<Suspension>> {
    tx.all(
        select_suspensions!("where lifted_at is null and id < ?1 order by id desc limit ?2"),
        (before, limit),
        suspension_of,
    )
}

/// Exports the user's suspensions, oldest first.
pub fn export_in(tx: &Read<'_>, user: UserId, each: Each<'_>) -> Result<()> {
    tx.each(select_suspensions!("where user_id = ?1 order by id"), [user.0], |row| {
        let suspension = suspension_of(row)?;
        each(json!({
            "source": suspension.source.name(),
            "reason": suspension.reason,
            "createdAt": suspension.created_at,
            "endsAt": suspension.ends_at,
            "liftedAt": suspension.lifted_at,
        }))
    })
}

/// Deletes the user's suspensions.
pub fn erase_user_in(tx: &Write<'_>, user: UserId) -> Result<()> {
    tx.execute("delete from suspensions where user_id = ?1", [user.0]).map(drop)
}

fn suspend_in(
    tx: &Write<'_>,
    user: UserId,
    source: SuspensionSource,
    ends_at: Option<Timestamp>,
    by: &Authority,
) -> Result<Suspension> {
    users::find_in(tx, user)?;
    if ends_at.is_some_and(|ends_at| ends_at <= tx.now) {
        return Err(Error::field("endsAt", Fault::new(FieldCode::OutOfRange, "must be in the future")));
    }
    if in_force_in(tx, user)?.is_some() {
        let detail = "The user is already suspended. Lift the suspension first to change it.";
        return Err(Error::new(Code::AlreadyExists).detail(detail));
    }
    // Closes one that has ended by itself, because a user can have only one that is not lifted.
    tx.execute("update suspensions set lifted_at = ends_at where user_id = ?1 and lifted_at is null", [user.0])?;
    tx.one(
        concat!(
            "insert into suspensions (user_id, source, reason, actor, created_at, ends_at) \
             values (?1, ?2, ?3, ?4, ?5, ?6) returning ",
            suspension_columns!()
        ),
        (user.0, source.name(), &by.reason, &by.actor, tx.now.0, ends_at.map(|ends_at| ends_at.0)),
        suspension_of,
    )
}

fn not_suspended() -> Error {
    Error::new(Code::NotFound).detail("The user is not suspended.")
}

fn suspension_of(row: &Row<'_>) -> rusqlite::Result<Suspension> {
    Ok(Suspension {
        id: row.get(0)?,
        user: UserId(row.get(1)?),
        source: row.get_parsed(2, SuspensionSource::from_name)?,
        reason: row.get(3)?,
        actor: row.get(4)?,
        created_at: Timestamp(row.get(5)?),
        ends_at: row.get::<Option<i64>>(6)?.map(Timestamp),
        lifted_at: row.get::<Option<i64>>(7)?.map(Timestamp),
        lifted_by: row.get(8)?,
    })
}
