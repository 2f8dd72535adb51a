//! Suspensions of users, by the staff or by a rule.
//!
//! A user whose account is suspended keeps devices and data. The guard rejects their requests, except those that read
//! notifications, export the account or send feedback, and sign-in issues no token. A smaller scope only forbids changes
//! of the nickname, or sends every text to review. A suspension ends by itself at its end, or when somebody lifts it.

use std::sync::Arc;

use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use super::users;
use crate::{
    core::Core,
    domain::{
        Each,
        messaging::user_notices::{self, SuspensionCause, UserNotice},
        money::ledger::Authority,
        operations::idempotency::{IdempotentOutcome, IdempotentRequest},
    },
    error::{Code, Error, Fault, FieldCode, Result},
    store::{Pending, Read, Row, RowResult, Write},
    types::{SuspensionScope, TimeZone, Timestamp, UserId, named_enum},
};

/// Earlier suspensions that a list shows.
const SHOWN: u32 = 50;

macro_rules! suspension_columns {
    () => {
        "id, user_id, scope, source, reason, actor, created_at, ends_at, lifted_at, lifted_by"
    };
}

macro_rules! select_suspensions {
    ($rest:literal) => {
        concat!("select ", suspension_columns!(), " from suspensions ", $rest)
    };
}

/// True if the account of a user may be suspended, as a part of a statement of another module. [`require_none_in`] tells
/// whether it still is.
macro_rules! may_be_suspended {
    ($user:literal) => {
        concat!(
            "exists (select 1 from suspensions where user_id = ",
            $user,
            " and scope = 'account' and lifted_at is null)"
        )
    };
}

pub(super) use may_be_suspended;

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
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ShownSuspension)]
pub struct Suspension {
    #[serde(skip)]
    pub id: i64,
    #[serde(rename = "userId")]
    pub user: UserId,
    pub scope: SuspensionScope,
    pub source: SuspensionSource,
    #[schema(example = "several insulting nicknames")]
    pub reason: String,
    /// The administrator, key or command.
    #[schema(example = "admin:alice")]
    pub actor: String,
    pub created_at: Timestamp,
    /// Null for a suspension that holds until it is lifted.
    pub ends_at: Option<Timestamp>,
    pub lifted_at: Option<Timestamp>,
    /// Null for a suspension that was not lifted by hand.
    #[schema(example = json!(null))]
    pub lifted_by: Option<String>,
}

impl Suspension {
    pub fn is_in_force(&self, now: Timestamp) -> bool {
        self.lifted_at.is_none() && self.ends_at.is_none_or(|ends_at| ends_at > now)
    }

    /// Returns the error for the suspended user, with the end as the clocks of a zone show it.
    pub fn error(&self, zone: &TimeZone) -> Error {
        let (code, what) = match self.scope {
            SuspensionScope::Nickname => (Code::NicknameSuspended, ("Changes of the nickname are", "昵称修改")),
            SuspensionScope::Account | SuspensionScope::Review => (Code::UserSuspended, ("The account is", "账号")),
        };
        let Some(ends_at) = self.ends_at else { return code.into() };
        let (shown, (english, chinese)) = (zone.local_text(ends_at), what);
        Error::new(code).detail((
            format!("{english} suspended until {shown}. Send feedback to appeal."),
            format!("{chinese}已停用至 {shown}。如有异议，请提交意见反馈。"),
        ))
    }
}

/// Suspends a user and tells them. The reason of `by` is part of the message.
///
/// # Errors
/// `not_found`; `invalid_parameters` for an end in the past; `already_exists` if the user is suspended in this scope.
pub fn suspend(
    core: &Core,
    user: UserId,
    scope: SuspensionScope,
    ends_at: Option<Timestamp>,
    by: Authority,
    once: IdempotentRequest<Suspension>,
) -> Pending<IdempotentOutcome<Suspension>> {
    let config = Arc::clone(&core.config);
    core.store.write(move |tx| {
        once.run_in(tx, |tx| {
            let suspension = suspend_in(tx, user, scope, SuspensionSource::Staff, ends_at, &by)?;
            let cause = SuspensionCause::Given(&by.reason);
            user_notices::send_in(tx, &config, user, &UserNotice::Suspended { scope, cause, ends_at })?;
            Ok(suspension)
        })
    })
}

/// Lifts the suspension of a user and tells them.
///
/// # Errors
/// `not_found` if the user does not exist or is not suspended in this scope.
pub fn lift(core: &Core, user: UserId, scope: SuspensionScope, by: Authority) -> Pending<Suspension> {
    let config = Arc::clone(&core.config);
    core.store.write(move |tx| {
        let Some(suspension) = scope_in_force_in(tx, user, scope)? else {
            return Err(not_suspended_in(tx, user, scope)?);
        };
        let lifted = tx.one(
            concat!(
                "update suspensions set lifted_at = ?2, lifted_by = ?3 where id = ?1 returning ",
                suspension_columns!()
            ),
            (suspension.id, tx.now.0, &by.actor),
            suspension_of,
        )?;
        user_notices::send_in(tx, &config, user, &UserNotice::SuspensionLifted { scope })?;
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

/// Returns the suspension of a user's account that is in force.
pub fn in_force_in(tx: &Read<'_>, user: UserId) -> Result<Option<Suspension>> {
    scope_in_force_in(tx, user, SuspensionScope::Account)
}

/// Returns the suspension with this scope that is in force.
pub fn scope_in_force_in(tx: &Read<'_>, user: UserId, scope: SuspensionScope) -> Result<Option<Suspension>> {
    let sql = select_suspensions!("where user_id = ?1 and scope = ?2 and lifted_at is null");
    let found = tx.first(sql, (user.0, scope.name()), suspension_of)?;
    Ok(found.filter(|suspension| suspension.is_in_force(tx.now)))
}

/// Returns the newest suspension with this scope, also if it has ended.
pub fn newest_in(tx: &Read<'_>, user: UserId, scope: SuspensionScope) -> Result<Option<Suspension>> {
    let sql = select_suspensions!("where user_id = ?1 and scope = ?2 order by id desc limit 1");
    tx.first(sql, (user.0, scope.name()), suspension_of)
}

/// Rejects the change of a nickname by a user who may not change it.
///
/// # Errors
/// `nickname_suspended`.
pub fn require_nickname_in(tx: &Read<'_>, user: UserId, zone: &TimeZone) -> Result<()> {
    let suspension = scope_in_force_in(tx, user, SuspensionScope::Nickname)?;
    suspension.map_or(Ok(()), |suspension| Err(suspension.error(zone)))
}

/// Rejects a suspended user.
///
/// # Errors
/// `user_suspended`.
pub fn require_none_in(tx: &Read<'_>, user: UserId, zone: &TimeZone) -> Result<()> {
    in_force_in(tx, user)?.map_or(Ok(()), |suspension| Err(suspension.error(zone)))
}

/// Returns the suspensions of accounts that are not lifted with ids below this one, newest first. Some may have ended.
pub fn not_lifted_before_in(tx: &Read<'_>, before: i64, limit: u32) -> Result<Vec<Suspension>> {
    tx.all(
        select_suspensions!("where scope = 'account' and lifted_at is null and id < ?1 order by id desc limit ?2"),
        (before, limit),
        suspension_of,
    )
}

/// Exports the user's suspensions, oldest first.
pub fn export_in(tx: &Read<'_>, user: UserId, each: Each<'_>) -> Result<()> {
    tx.each(select_suspensions!("where user_id = ?1 order by id"), [user.0], |row| {
        let suspension = suspension_of(row)?;
        each(json!({
            "scope": suspension.scope.name(),
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

/// Suspends a user without telling them.
///
/// # Errors
/// As of [`suspend`].
pub fn suspend_in(
    tx: &Write<'_>,
    user: UserId,
    scope: SuspensionScope,
    source: SuspensionSource,
    ends_at: Option<Timestamp>,
    by: &Authority,
) -> Result<Suspension> {
    users::find_in(tx, user)?;
    if ends_at.is_some_and(|ends_at| ends_at <= tx.now) {
        return Err(Error::field(
            "endsAt",
            Fault::new(FieldCode::OutOfRange, ("must be in the future", "须为将来的时间")),
        ));
    }
    if scope_in_force_in(tx, user, scope)?.is_some() {
        let name = scope.name();
        let detail = (
            format!("The user is already suspended in the scope `{name}`. Lift that suspension first to change it."),
            format!("该用户已在 `{name}` 范围内停用。如需修改，请先解除停用。"),
        );
        return Err(Error::new(Code::AlreadyExists).detail(detail));
    }
    // Closes one that has ended by itself, because a user can have only one of a scope that is not lifted.
    tx.execute(
        "update suspensions set lifted_at = ends_at where user_id = ?1 and scope = ?2 and lifted_at is null",
        (user.0, scope.name()),
    )?;
    tx.one(
        concat!(
            "insert into suspensions (user_id, scope, source, reason, actor, created_at, ends_at) \
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7) returning ",
            suspension_columns!()
        ),
        (user.0, scope.name(), source.name(), &by.reason, &by.actor, tx.now.0, ends_at.map(|ends_at| ends_at.0)),
        suspension_of,
    )
}

/// Returns the error for a scope without a suspension. It names the scopes that have one.
fn not_suspended_in(tx: &Read<'_>, user: UserId, scope: SuspensionScope) -> Result<Error> {
    let mut others = Vec::new();
    for other in SuspensionScope::ALL {
        if scope_in_force_in(tx, user, other)?.is_some() {
            others.push(format!("`{}`", other.name()));
        }
    }
    let error = Error::new(Code::NotFound);
    if others.is_empty() {
        return Ok(error.detail(("The user is not suspended.", "该用户未停用。")));
    }
    let (name, others) = (scope.name(), others.join(", "));
    Ok(error.detail((
        format!("The user is not suspended in the scope `{name}` but in {others}. Specify that scope."),
        format!("该用户未在 `{name}` 范围内停用，而是在 {others}。请指明该范围。"),
    )))
}

fn suspension_of(row: &Row<'_>) -> RowResult<Suspension> {
    Ok(Suspension {
        id: row.get(0)?,
        user: UserId(row.get(1)?),
        scope: row.get_parsed(2, SuspensionScope::from_name)?,
        source: row.get_parsed(3, SuspensionSource::from_name)?,
        reason: row.get(4)?,
        actor: row.get(5)?,
        created_at: Timestamp(row.get(6)?),
        ends_at: row.get::<Option<i64>>(7)?.map(Timestamp),
        lifted_at: row.get::<Option<i64>>(8)?.map(Timestamp),
        lifted_by: row.get(9)?,
    })
}
