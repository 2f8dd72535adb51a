//! Sign-in tokens: 256 random bits, stored as SHA-256.
//!
//! A sign-in starts a token family, which the user sees as a device. Validation extends a token that expires soon, in
//! place, so that apps which ignore the response stay signed in. A refresh replaces the family's token. The old token
//! stays valid for a short grace period and yields the same successor, because the first response may be lost. Only
//! hashes are stored, so the successor is an HMAC of its predecessor. A replaced token that is used after the grace
//! period was probably stolen, so it revokes the whole family. Neither way prolongs a family beyond its absolute
//! lifetime.

mod devices;
mod token_cache;

use std::{sync::Arc, time::Duration};

use crate::{
    config::AuthConfig,
    core::Core,
    domain::identity::{
        suspensions::{self, Suspension},
        users::{self, User},
    },
    error::{Code, Error, Result},
    keys::ServerKey,
    store::{Pending, Read, Row, RowResult, Store, Write},
    types::{Secret, Timestamp, UserId, sha256},
};

pub use devices::{Device, devices_in, export_in, list_devices, revoke_device};
pub use token_cache::TokenCache;

/// Minimum time between two updates of a token's last use, so that reads do not become writes.
const USE_INTERVAL: Duration = Duration::from_hours(1);
/// Replaced tokens stored per family to detect reuse. Apps refresh every few weeks.
const MAX_REPLACED: u32 = 20;

/// A newly issued token.
#[derive(Clone, Debug)]
pub struct IssuedToken {
    pub token: Secret,
    pub user: UserId,
    pub expires_at: Timestamp,
}

/// The status of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenStatus {
    Valid {
        user: UserId,
        expires_at: Timestamp,
        /// It is close to expiry, and [`extend_in`] would extend it.
        is_renewable: bool,
        /// The last use is stale; see [`record_use`].
        is_use_due: bool,
    },
    /// Replaced within the grace period, and still accepted.
    InGrace { user: UserId, until: Timestamp },
    /// Replaced before the grace period.
    Reused,
    /// Unknown, revoked or expired.
    Invalid,
}

/// The outcome of authenticating a token.
#[derive(Clone, Debug)]
pub enum Authentication {
    User {
        user: User,
        /// The last use is stale; see [`record_use`].
        is_use_due: bool,
    },
    /// The token is valid and its user is suspended.
    Suspended(User, Suspension),
    /// The token was replaced before the grace period.
    Reused,
    /// The token is unknown, revoked or expired.
    Invalid,
}

/// The standing of one of several tokens in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Unknown, revoked or expired.
    Invalid,
    /// Replaced before the grace period.
    Reused,
    Valid {
        user: UserId,
        signed_in_at: Timestamp,
        /// Replaced within the grace period.
        is_replaced: bool,
    },
}

/// Returns the standing of a token among several.
pub fn standing_in(tx: &Read<'_>, limits: &AuthConfig, token: &str) -> Result<Standing> {
    let Some(row) = find_in(tx, token)? else { return Ok(Standing::Invalid) };
    let signed_in_at = row.signed_in_at;
    Ok(match row.status(tx.now, limits) {
        TokenStatus::Valid { user, .. } => Standing::Valid { user, signed_in_at, is_replaced: false },
        TokenStatus::InGrace { user, .. } => Standing::Valid { user, signed_in_at, is_replaced: true },
        TokenStatus::Reused => Standing::Reused,
        TokenStatus::Invalid => Standing::Invalid,
    })
}

/// Returns the status of a token.
pub fn status_in(tx: &Read<'_>, limits: &AuthConfig, token: &str) -> Result<TokenStatus> {
    Ok(find_in(tx, token)?.map_or(TokenStatus::Invalid, |row| row.status(tx.now, limits)))
}

/// Returns the user of a token. Every authenticated request calls this.
pub fn authenticate(core: &Core, cache: &TokenCache, token: &str) -> Result<Authentication> {
    let snapshot = core.store.snapshot_id();
    if let Some(user) = snapshot.and_then(|snapshot| cache.find_at(snapshot, &sha256(token), core.clock.now())) {
        return Ok(Authentication::User { user, is_use_due: false });
    }
    core.store.read(|tx| authenticate_in(tx, cache, &core.config.auth, token))
}

fn authenticate_in(tx: &Read<'_>, cache: &TokenCache, limits: &AuthConfig, token: &str) -> Result<Authentication> {
    let hash = sha256(token);
    if let Some(user) = cache.find_in(tx, &hash)? {
        return Ok(Authentication::User { user, is_use_due: false });
    }
    let Some(row) = find_by_hash_in(tx, hash)? else { return Ok(Authentication::Invalid) };
    let user = users::find_in(tx, row.user)?;
    let suspension = suspensions::in_force_in(tx, row.user)?;
    if suspension.is_none()
        && let Some(valid_until) = row.lifetime.cacheable_until()
    {
        cache.insert_in(tx, hash, user.clone(), valid_until)?;
    }
    Ok(match (row.status(tx.now, limits), suspension) {
        (TokenStatus::Valid { .. } | TokenStatus::InGrace { .. }, Some(suspension)) => {
            Authentication::Suspended(user, suspension)
        }
        (TokenStatus::Valid { is_use_due, .. }, None) => Authentication::User { user, is_use_due },
        (TokenStatus::InGrace { .. }, None) => Authentication::User { user, is_use_due: false },
        (TokenStatus::Reused, _) => Authentication::Reused,
        (TokenStatus::Invalid, _) => Authentication::Invalid,
    })
}

/// Returns true if the token is revoked or expired, or its user suspended. A replaced token lives on in its successor.
pub fn has_ended(core: &Core, cache: &TokenCache, token: &str) -> Result<bool> {
    let authentication = authenticate(core, cache, token)?;
    Ok(matches!(authentication, Authentication::Invalid | Authentication::Suspended(..)))
}

/// Makes all caches drop their tokens, after a change that triggers do not see.
pub fn invalidate_cached_in(tx: &Write<'_>) -> Result<()> {
    token_cache::invalidate_in(tx)
}

/// Lets the store tell after each commit whether cached tokens are still valid.
pub fn watch_changes(store: &Store) {
    store.watch(token_cache::LAST_CHANGE);
}

/// Returns the number of the last change of any token that a cached token would not show, such as a revocation.
pub fn last_change(core: &Core) -> Result<i64> {
    core.store.read(token_cache::last_change_in)
}

/// Revokes the family of a token that was used after its grace period. Does nothing if the token is valid.
pub fn revoke_reused_family(core: &Core, token: &str) -> Pending<()> {
    let (token, config) = (token.to_owned(), Arc::clone(&core.config));
    core.store.write(move |tx| match find_in(tx, &token)? {
        Some(row) if row.status(tx.now, &config.auth) == TokenStatus::Reused => revoke_family_of_in(tx, &row),
        _ => Ok(()),
    })
}

/// Issues the first token of a new family and revokes the user's oldest devices above the limit.
pub fn issue_in(tx: &Write<'_>, limits: &AuthConfig, user: &User, label: &str) -> Result<IssuedToken> {
    let token = Secret::random()?;
    let hash = sha256(token.reveal());
    let family_expires_at = tx.now.plus(limits.sign_in_lifetime);
    let expires_at = tx.now.plus(limits.token_lifetime).min(family_expires_at);
    let lifetime = Lifetime { expires_at, replaced_at: None, family_expires_at, last_used_at: tx.now };
    let row = TokenRow { hash, user: user.id, family: hash, lifetime, label: label.to_owned(), signed_in_at: tx.now };
    insert_in(tx, &row)?;
    devices::revoke_oldest_in(tx, user.id, limits.tokens_per_user)?;
    Ok(IssuedToken { token, user: user.id, expires_at })
}

/// Extends a token that expires soon, up to the absolute lifetime of its family, and returns its status. A token that was
/// used after its grace period revokes its family.
pub fn extend_in(tx: &Write<'_>, limits: &AuthConfig, token: &str) -> Result<TokenStatus> {
    let Some(row) = find_in(tx, token)? else { return Ok(TokenStatus::Invalid) };
    match row.status(tx.now, limits) {
        TokenStatus::Valid { is_renewable: true, .. } => {
            let expires_at = tx.now.plus(limits.token_lifetime).min(row.lifetime.family_expires_at);
            let update = "update tokens set expires_at = ?2, last_used_at = ?3 where token_sha256 = ?1";
            tx.execute(update, (row.hash, expires_at.0, tx.now.0))?;
            Ok(TokenStatus::Valid { user: row.user, expires_at, is_renewable: false, is_use_due: false })
        }
        TokenStatus::Reused => {
            revoke_family_of_in(tx, &row)?;
            Ok(TokenStatus::Reused)
        }
        status => Ok(status),
    }
}

/// Replaces a token by its successor. Within the grace period, returns the same successor again.
///
/// # Errors
/// `unauthenticated`. A token used after its grace period also revokes its family.
pub fn refresh_in(tx: &Write<'_>, key: &ServerKey, limits: &AuthConfig, token: &str) -> Result<IssuedToken> {
    let row = find_in(tx, token)?.ok_or(Code::Unauthenticated)?;
    let successor = Secret::from_bytes(&key.authenticate(&["successor", token]));
    match row.status(tx.now, limits) {
        TokenStatus::Valid { .. } => replace_in(tx, limits, row, successor),
        TokenStatus::InGrace { user, .. } => {
            let stored = find_in(tx, successor.reveal())?.ok_or(Code::Unauthenticated)?;
            Ok(IssuedToken { token: successor, user, expires_at: stored.lifetime.expires_at })
        }
        TokenStatus::Reused => {
            revoke_family_of_in(tx, &row)?;
            Err(Error::new(Code::Unauthenticated).keeping_changes())
        }
        TokenStatus::Invalid => Err(Code::Unauthenticated.into()),
    }
}

/// Revokes the family of a token. An unknown token is not an error.
pub fn revoke_in(tx: &Write<'_>, token: &str) -> Result<()> {
    match find_in(tx, token)? {
        Some(row) => revoke_family_of_in(tx, &row),
        None => Ok(()),
    }
}

/// Revokes all of the user's devices except the one with this token.
pub fn revoke_others_in(tx: &Write<'_>, user: UserId, token: &str) -> Result<()> {
    let own = find_in(tx, token)?.ok_or(Code::Unauthenticated)?;
    tx.execute("delete from tokens where user_id = ?1 and family <> ?2", (user.0, own.family)).map(drop)
}

/// Revokes all of the user's devices.
pub fn revoke_all_in(tx: &Write<'_>, user: UserId) -> Result<()> {
    tx.execute("delete from tokens where user_id = ?1", [user.0]).map(drop)
}

/// Requires that the token's family began with a recent sign-in, so that its user has just verified a code.
///
/// # Errors
/// `step_up_required`; `unauthenticated` if the token was revoked.
pub fn require_recent_sign_in_in(tx: &Read<'_>, limits: &AuthConfig, token: &str) -> Result<()> {
    match find_in(tx, token)?.map(|row| row.signed_in_at) {
        Some(at) if at.is_near(limits.step_up, tx.now) => Ok(()),
        Some(_) => Err(Code::StepUpRequired.into()),
        None => Err(Code::Unauthenticated.into()),
    }
}

/// Returns the family of the user's token.
pub fn family_in(tx: &Read<'_>, user: UserId, token: &Secret) -> Result<Option<[u8; 32]>> {
    Ok(find_in(tx, token.reveal())?.filter(|row| row.user == user).map(|row| row.family))
}

/// Returns true if the family has not ended.
pub fn has_family_in(tx: &Read<'_>, user: UserId, family: [u8; 32]) -> Result<bool> {
    let found = tx.first(
        "select true from tokens where user_id = ?1 and family = ?2 and replaced_at is null and expires_at > ?3",
        (user.0, family, tx.now.0),
        |row| row.get(0),
    )?;
    Ok(found.unwrap_or(false))
}

/// Records the use of a token. Callers need not wait for the write.
pub fn record_use(core: &Core, token: &str) -> Pending<()> {
    let hash = sha256(token);
    core.store.write(move |tx| {
        let stale_before = tx.now.minus(USE_INTERVAL);
        let sql = "update tokens set last_used_at = ?2 where token_sha256 = ?1 and last_used_at <= ?3";
        tx.execute(sql, (hash, tx.now.0, stale_before.0)).map(drop)
    })
}

/// Deletes up to `limit` expired tokens.
pub fn delete_expired_in(tx: &Write<'_>, limit: u32) -> Result<usize> {
    tx.execute(
        "delete from tokens where id in (select id from tokens where expires_at <= ?1 order by expires_at limit ?2)",
        (tx.now.0, limit),
    )
}

struct TokenRow {
    hash: [u8; 32],
    user: UserId,
    family: [u8; 32],
    lifetime: Lifetime,
    label: String,
    signed_in_at: Timestamp,
}

/// The times that decide the status of a token.
#[derive(Clone, Copy)]
#[expect(clippy::struct_field_names, reason = "the columns of the table")]
struct Lifetime {
    expires_at: Timestamp,
    replaced_at: Option<Timestamp>,
    family_expires_at: Timestamp,
    last_used_at: Timestamp,
}

impl TokenRow {
    fn status(&self, now: Timestamp, limits: &AuthConfig) -> TokenStatus {
        self.lifetime.status(self.user, now, limits)
    }
}

impl Lifetime {
    fn status(&self, user: UserId, now: Timestamp, limits: &AuthConfig) -> TokenStatus {
        match self.replaced_at {
            Some(replaced_at) if replaced_at.is_near(limits.token_grace, now) => {
                TokenStatus::InGrace { user, until: replaced_at.plus(limits.token_grace) }
            }
            // The clock was set back, so the token may have been replaced a moment ago. That is no sign of theft.
            Some(replaced_at) if now < replaced_at => TokenStatus::Invalid,
            Some(_) => TokenStatus::Reused,
            None if now >= self.expires_at => TokenStatus::Invalid,
            None => {
                let is_near_expiry = now.plus(limits.token_renewal) > self.expires_at;
                TokenStatus::Valid {
                    user,
                    expires_at: self.expires_at,
                    is_renewable: is_near_expiry && self.expires_at < self.family_expires_at,
                    is_use_due: self.next_use_update() <= now,
                }
            }
        }
    }

    fn next_use_update(&self) -> Timestamp {
        self.last_used_at.plus(USE_INTERVAL)
    }

    /// Returns the time until which the token is valid without an update of its last use. `None` for a replaced token,
    /// whose status also depends on the grace period.
    fn cacheable_until(&self) -> Option<Timestamp> {
        self.replaced_at.is_none().then(|| self.expires_at.min(self.next_use_update()))
    }
}

fn replace_in(tx: &Write<'_>, limits: &AuthConfig, row: TokenRow, successor: Secret) -> Result<IssuedToken> {
    let user = row.user;
    let expires_at = tx.now.plus(limits.token_lifetime).min(row.lifetime.family_expires_at);
    tx.execute_later("update tokens set replaced_at = ?2 where token_sha256 = ?1", (row.hash, tx.now.0))?;
    delete_oldest_replaced_in(tx, &row)?;
    let lifetime = Lifetime { expires_at, replaced_at: None, last_used_at: tx.now, ..row.lifetime };
    insert_in(tx, &TokenRow { hash: sha256(successor.reveal()), lifetime, ..row })?;
    Ok(IssuedToken { token: successor, user, expires_at })
}

/// Limits the replaced tokens of a family, so that an app that refreshes in a loop does not fill the table. A deleted
/// one is treated as unknown.
fn delete_oldest_replaced_in(tx: &Write<'_>, row: &TokenRow) -> Result<()> {
    tx.execute_later(
        "delete from tokens where id in (select id from tokens where user_id = ?1 and family = ?2 \
         and replaced_at is not null order by id desc limit 9223372036854775807 offset ?3)",
        (row.user.0, row.family, MAX_REPLACED),
    )
}

fn insert_in(tx: &Write<'_>, row: &TokenRow) -> Result<()> {
    let Lifetime { expires_at, family_expires_at, last_used_at, .. } = row.lifetime;
    tx.execute_later(
        "insert into tokens (token_sha256, user_id, expires_at, replaced_at, family, family_expires_at, created_at, \
         label, signed_in_at, last_used_at) values (?1, ?2, ?3, null, ?4, ?5, ?6, ?7, ?8, ?9)",
        (
            row.hash,
            row.user.0,
            expires_at.0,
            row.family,
            family_expires_at.0,
            tx.now.0,
            &row.label,
            row.signed_in_at.0,
            last_used_at.0,
        ),
    )
}

fn revoke_family_of_in(tx: &Write<'_>, row: &TokenRow) -> Result<()> {
    delete_family_in(tx, row.user, row.family)
}

/// Revokes one device.
pub fn delete_family_in(tx: &Write<'_>, user: UserId, family: [u8; 32]) -> Result<()> {
    tx.execute("delete from tokens where user_id = ?1 and family = ?2", (user.0, family)).map(drop)
}

fn find_in(tx: &Read<'_>, token: &str) -> Result<Option<TokenRow>> {
    find_by_hash_in(tx, sha256(token))
}

fn find_by_hash_in(tx: &Read<'_>, hash: [u8; 32]) -> Result<Option<TokenRow>> {
    tx.first(
        "select user_id, family, label, signed_in_at, expires_at, replaced_at, family_expires_at, last_used_at \
         from tokens where token_sha256 = ?1",
        [hash],
        |row| {
            Ok(TokenRow {
                hash,
                user: UserId(row.get(0)?),
                family: row.get(1)?,
                label: row.get(2)?,
                signed_in_at: Timestamp(row.get(3)?),
                lifetime: lifetime_of(row, 4)?,
            })
        },
    )
}

/// Reads four columns from `first` on: expires at, replaced at, family expires at, last used at.
fn lifetime_of(row: &Row<'_>, first: usize) -> RowResult<Lifetime> {
    Ok(Lifetime {
        expires_at: Timestamp(row.get(first)?),
        replaced_at: row.get::<Option<i64>>(first + 1)?.map(Timestamp),
        family_expires_at: Timestamp(row.get(first + 2)?),
        last_used_at: Timestamp(row.get(first + 3)?),
    })
}
