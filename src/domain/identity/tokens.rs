//! Sign-in tokens: 256 random bits, kept as SHA-256, replaced now and then. Before the bits a token says whose it is,
//! so that it is found among the few of its user: no index of the hashes is needed, which every sign-in would write to.
//!
//! A sign-in starts a *family*. Refreshing replaces the family's token by a successor; the old one works on for a
//! short grace, because an answer may be lost, and then gives the same successor again. That is possible although
//! only hashes are kept, because a successor is an HMAC of its predecessor under the server key. A replaced token
//! that comes back after the grace was stolen from somewhere, and ends its whole family.
//!
//! To its user a family is a *device*: when it signed in, when it was last used, and what it calls itself. The last
//! use is noted by the hour, so that reading does not become writing.

mod token_cache;

use std::{sync::Arc, time::Duration};

use serde_json::json;

use crate::{
    config::Auth,
    core::Core,
    domain::{
        Each,
        identity::users::{self, User},
    },
    error::{Code, Error, Result},
    keys::ServerKey,
    store::{Pending, Read, Row, Write},
    types::{EmailAddress, PhoneNumber, Secret, Timestamp, UserId, hex, sha256},
};

/// How old the last use that is written down may become.
const USE_IS_NOTED_AFTER: Duration = Duration::from_hours(1);
/// Replaced tokens of a family that are remembered, so that their return is noticed. Apps replace one in some weeks.
const REPLACED_KEPT: u32 = 20;
/// What stands between a token's user and its bits.
const BEFORE_BITS: char = '.';
/// Bytes of a family's hash that name it to its user.
const DEVICE_ID: usize = 8;

/// A token that was just issued, for its owner.
#[derive(Clone, Debug)]
pub struct Issued {
    pub token: Secret,
    pub user: UserId,
    pub expires_at: Timestamp,
}

/// What a token turned out to be worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It speaks for this user. `renewable` says that replacing it would give it more time.
    Valid {
        user: UserId,
        expires_at: Timestamp,
        renewable: bool,
        /// The use is to be noted; see [`note_use`].
        is_use_due: bool,
    },
    /// It was replaced a moment ago and still speaks for this user.
    InGrace {
        user: UserId,
    },
    /// It was replaced long ago: somebody uses an old copy.
    Reused,
    Unknown,
}

/// Whom a token speaks for.
#[derive(Clone, Debug)]
pub enum Bearer {
    /// This user. That the token was used may have to be noted; see [`note_use`].
    User {
        user: User,
        presence: Presence,
        is_use_due: bool,
    },
    /// It was replaced long ago: somebody uses an old copy.
    Reused,
    Unknown,
}

/// That a user was there when their token was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Presence {
    user: UserId,
    /// The number in `token_changes` then.
    changes: i64,
}

impl Presence {
    /// Makes sure that the user is still there, for what wants to keep something of theirs. Tokens end with their user:
    /// as long as none has changed since, nothing of the user has to be looked up.
    ///
    /// # Errors
    /// `unauthenticated`.
    pub fn require_in(self, tx: &Read<'_>) -> Result<()> {
        if changes_in(tx)? == self.changes { Ok(()) } else { users::require_in(tx, self.user) }
    }
}

/// The number that goes up whenever a token may be worth something else than before.
fn changes_in(tx: &Read<'_>) -> Result<i64> {
    let number = tx.first("select number from token_changes where id = 0", (), |row| row.get(0))?;
    Ok(number.unwrap_or(0))
}

/// Says what a token is worth.
pub fn standing_in(tx: &Read<'_>, limits: &Auth, token: &str) -> Result<Standing> {
    Ok(find_in(tx, token)?.map_or(Standing::Unknown, |row| row.standing(tx.now, limits)))
}

/// Says whom a token speaks for. Every request asks this.
pub fn bearer_in(tx: &Read<'_>, limits: &Auth, token: &str) -> Result<Bearer> {
    token_cache::bearer_in(tx, limits, token)
}

/// Whether a token speaks for nobody any more. One that was replaced lives on in its successor.
pub fn was_ended(core: &Core, token: &str) -> Result<bool> {
    core.store.read(|tx| Ok(matches!(bearer_in(tx, &core.config.auth, token)?, Bearer::Unknown)))
}

/// Ends the family of a token that was used after its grace. Does nothing to one that is still good.
pub fn end_reused_family(core: &Core, token: &str) -> Pending<()> {
    let (token, config) = (token.to_owned(), Arc::clone(&core.config));
    core.store.write(move |tx| match find_in(tx, &token)? {
        Some(row) if row.standing(tx.now, &config.auth) == Standing::Reused => end_family_in(tx, &row),
        _ => Ok(()),
    })
}

/// Starts a family for the user, and ends the oldest beyond the number of devices allowed.
pub fn issue_in(tx: &Write<'_>, limits: &Auth, user: &User, label: &str) -> Result<Issued> {
    let token = naming(user.id, &Secret::random()?);
    let hash = sha256(token.reveal());
    let family_ends = tx.now.plus(limits.sign_in_lifetime);
    let expires_at = tx.now.plus(limits.token_lifetime).min(family_ends);
    let lifetimes = Lifetimes { expires_at, replaced_at: None, family_ends, last_used_at: tx.now };
    let row =
        TokenRow { hash, user: user.clone(), family: hash, lifetimes, label: label.to_owned(), signed_in_at: tx.now };
    insert_in(tx, &row)?;
    end_oldest_in(tx, user.id, limits.tokens_per_user)?;
    Ok(Issued { token, user: user.id, expires_at })
}

/// Ends the user's oldest devices, if there are more than this. What ended of itself is counted until it is cleared
/// away, so the devices are only looked at when there may be too many. Which came last is told by the rows' numbers and
/// not by their times: a clock that was ahead and set back would call a device that signs in now the oldest.
fn end_oldest_in(tx: &Write<'_>, user: UserId, allowed: u32) -> Result<()> {
    let tokens: u32 = tx.one("select count(*) from tokens where user_id = ?1", [user.0], |row| row.get(0))?;
    if tokens <= allowed {
        return Ok(());
    }
    tx.execute(
        "delete from tokens where user_id = ?1 and family in (select family from tokens \
         where user_id = ?1 and replaced_at is null order by id desc limit -1 offset ?2)",
        (user.0, allowed),
    )
    .map(drop)
}

/// Replaces a token by its successor; within the grace, gives the same successor again.
///
/// # Errors
/// `unauthenticated`; if the token was used after its grace, its family has then ended.
pub fn replace_in(tx: &Write<'_>, key: &ServerKey, limits: &Auth, token: &str) -> Result<Issued> {
    let row = find_in(tx, token)?.ok_or(Code::Unauthenticated)?;
    let successor = naming(row.user.id, &Secret::from_bytes(&key.authenticate(&["successor", token])));
    match row.standing(tx.now, limits) {
        Standing::Valid { .. } => succeed_in(tx, limits, row, successor),
        Standing::InGrace { user } => {
            let kept = find_in(tx, successor.reveal())?.ok_or(Code::Unauthenticated)?;
            Ok(Issued { token: successor, user, expires_at: kept.lifetimes.expires_at })
        }
        Standing::Reused => {
            end_family_in(tx, &row)?;
            Err(Error::new(Code::Unauthenticated).keeping_changes())
        }
        Standing::Unknown => Err(Code::Unauthenticated.into()),
    }
}

/// Ends the family of this token. An unknown token has none, which is no error.
pub fn revoke_in(tx: &Write<'_>, token: &str) -> Result<()> {
    match find_in(tx, token)? {
        Some(row) => end_family_in(tx, &row),
        None => Ok(()),
    }
}

/// Makes sure that a code was proved a short while ago: that the sign-in which this token comes from is recent.
///
/// # Errors
/// `step_up_required`; `unauthenticated` for a token that has ended since it was looked at.
pub fn require_recent_sign_in_in(tx: &Read<'_>, limits: &Auth, token: &str) -> Result<()> {
    match find_in(tx, token)?.map(|row| row.signed_in_at) {
        Some(at) if at.is_near(limits.step_up, tx.now) => Ok(()),
        Some(_) => Err(Code::StepUpRequired.into()),
        None => Err(Code::Unauthenticated.into()),
    }
}

/// A sign-in that still lives, as its user sees it.
#[derive(Clone, Debug)]
pub struct Device {
    pub id: String,
    /// What the device calls itself.
    pub label: String,
    pub signed_in_at: Timestamp,
    /// To the hour.
    pub last_used_at: Timestamp,
    pub expires_at: Timestamp,
    /// It is the one that asks.
    pub is_current: bool,
}

/// The user's devices, the newest sign-in first. `token` is the asking one's.
pub fn devices(core: &Core, user: UserId, token: Option<&Secret>) -> Result<Vec<Device>> {
    core.store.read(|tx| {
        let current = token.map(|token| find_in(tx, token.reveal())).transpose()?.flatten();
        let current = current.map(|row| row.family);
        let devices = devices_in(tx, user)?;
        Ok(devices.into_iter().map(|(family, device)| shown(device, Some(family) == current)).collect())
    })
}

/// Ends the user's device with this id.
///
/// # Errors
/// `not_found` for a device that has ended and for another's.
pub fn end_device(core: &Core, user: UserId, id: String) -> Pending<()> {
    core.store.write(move |tx| {
        let found = devices_in(tx, user)?.into_iter().find(|(_, device)| device.id == id);
        let (family, _) = found.ok_or(Code::NotFound)?;
        delete_family_in(tx, user, family)
    })
}

/// Ends all of the user's devices but the one with this token.
pub fn end_others_in(tx: &Write<'_>, user: UserId, token: &str) -> Result<()> {
    let own = find_in(tx, token)?.ok_or(Code::Unauthenticated)?;
    tx.execute("delete from tokens where user_id = ?1 and family <> ?2", (user.0, own.family)).map(drop)
}

/// Ends all of the user's devices.
pub fn end_all_in(tx: &Write<'_>, user: UserId) -> Result<()> {
    tx.execute("delete from tokens where user_id = ?1", [user.0]).map(drop)
}

/// Notes that the token was used. Nobody needs to wait for it.
pub fn note_use(core: &Core, token: &str) -> Pending<()> {
    let token = token.to_owned();
    core.store.write(move |tx| {
        let Some(user) = user_named_by(&token) else { return Ok(()) };
        let noted_before = tx.now.minus(USE_IS_NOTED_AFTER);
        let sql = "update tokens set last_used_at = ?3 where user_id = ?1 and token_sha256 = ?2 and last_used_at <= ?4";
        tx.execute(sql, (user.0, sha256(&token), tx.now.0, noted_before.0)).map(drop)
    })
}

/// The user's devices.
pub fn export_in(tx: &Read<'_>, user: UserId, each: Each<'_>) -> Result<()> {
    devices_in(tx, user)?.into_iter().try_for_each(|(_, device)| {
        each(json!({
            "id": device.id,
            "label": device.label,
            "createdAt": device.signed_in_at,
            "lastUsedAt": device.last_used_at,
            "expiresAt": device.expires_at,
        }))
    })
}

/// Deletes up to `limit` tokens whose family has expired or that expired themselves.
pub fn delete_expired_in(tx: &Write<'_>, limit: u32) -> Result<usize> {
    tx.execute(
        "delete from tokens where id in (select id from tokens where expires_at <= ?1 order by expires_at limit ?2)",
        (tx.now.0, limit),
    )
}

/// Returns the user that the token names.
fn user_named_by(token: &str) -> Option<UserId> {
    let (user, _) = token.split_once(BEFORE_BITS)?;
    user.parse().ok().map(UserId)
}

/// A token that says whose it is.
fn naming(user: UserId, bits: &Secret) -> Secret {
    Secret::from_text(format!("{user}{BEFORE_BITS}{}", bits.reveal()))
}

struct TokenRow {
    hash: [u8; 32],
    user: User,
    family: [u8; 32],
    lifetimes: Lifetimes,
    label: String,
    signed_in_at: Timestamp,
}

/// Until when a token and its family live.
#[derive(Clone, Copy)]
struct Lifetimes {
    expires_at: Timestamp,
    replaced_at: Option<Timestamp>,
    family_ends: Timestamp,
    last_used_at: Timestamp,
}

impl TokenRow {
    fn standing(&self, now: Timestamp, limits: &Auth) -> Standing {
        self.lifetimes.standing(self.user.id, now, limits)
    }
}

impl Lifetimes {
    fn standing(&self, user: UserId, now: Timestamp, limits: &Auth) -> Standing {
        match self.replaced_at {
            Some(replaced_at) if replaced_at.is_near(limits.token_grace, now) => Standing::InGrace { user },
            // The clock went back, and by how much is not known: it may have been a moment ago, which makes no thief.
            Some(replaced_at) if now < replaced_at => Standing::Unknown,
            Some(_) => Standing::Reused,
            None if now >= self.expires_at => Standing::Unknown,
            None => {
                let is_near_expiry = now.plus(limits.token_renewal) > self.expires_at;
                let renewable = is_near_expiry && self.expires_at < self.family_ends;
                Standing::Valid { user, expires_at: self.expires_at, renewable, is_use_due: self.is_use_due(now) }
            }
        }
    }

    fn is_use_due(&self, now: Timestamp) -> bool {
        self.last_used_at.plus(USE_IS_NOTED_AFTER) <= now
    }
}

/// Forgets all but the last tokens of a family that were replaced: an app that refreshes without end must not fill the
/// table. Whoever comes with one of these is a stranger like any other.
fn forget_replaced_in(tx: &Write<'_>, row: &TokenRow) -> Result<()> {
    tx.execute(
        "delete from tokens where id in (select id from tokens where user_id = ?1 and family = ?2 \
         and replaced_at is not null order by id desc limit -1 offset ?3)",
        (row.user.id.0, row.family, REPLACED_KEPT),
    )
    .map(drop)
}

fn succeed_in(tx: &Write<'_>, limits: &Auth, row: TokenRow, successor: Secret) -> Result<Issued> {
    let expires_at = tx.now.plus(limits.token_lifetime).min(row.lifetimes.family_ends);
    let sql = "update tokens set replaced_at = ?3 where user_id = ?1 and token_sha256 = ?2";
    tx.execute(sql, (row.user.id.0, row.hash, tx.now.0))?;
    forget_replaced_in(tx, &row)?;
    let lifetimes = Lifetimes { expires_at, replaced_at: None, last_used_at: tx.now, ..row.lifetimes };
    let user = row.user.id;
    insert_in(tx, &TokenRow { hash: sha256(successor.reveal()), lifetimes, ..row })?;
    Ok(Issued { token: successor, user, expires_at })
}

fn insert_in(tx: &Write<'_>, row: &TokenRow) -> Result<()> {
    let Lifetimes { expires_at, family_ends, last_used_at, .. } = row.lifetimes;
    tx.execute(
        "insert into tokens (user_id, token_sha256, phone_number, email, user_created_at, expires_at, replaced_at, \
         family, family_expires_at, created_at, label, signed_in_at, last_used_at) \
         values (?1, ?2, ?3, ?4, ?5, ?6, null, ?7, ?8, ?9, ?10, ?11, ?12)",
        (
            row.user.id.0,
            row.hash,
            row.user.phone_number.as_ref().map(PhoneNumber::as_str),
            row.user.email.as_ref().map(EmailAddress::as_str),
            row.user.created_at.0,
            expires_at.0,
            row.family,
            family_ends.0,
            tx.now.0,
            &row.label,
            row.signed_in_at.0,
            last_used_at.0,
        ),
    )
    .map(drop)
}

fn end_family_in(tx: &Write<'_>, row: &TokenRow) -> Result<()> {
    delete_family_in(tx, row.user.id, row.family)
}

fn delete_family_in(tx: &Write<'_>, user: UserId, family: [u8; 32]) -> Result<()> {
    tx.execute("delete from tokens where user_id = ?1 and family = ?2", (user.0, family)).map(drop)
}

fn find_in(tx: &Read<'_>, token: &str) -> Result<Option<TokenRow>> {
    let hash = sha256(token);
    let Some(user) = user_named_by(token) else { return Ok(None) };
    tx.first(
        "select family, label, signed_in_at, expires_at, replaced_at, family_expires_at, last_used_at, phone_number, \
         email, user_created_at from tokens where user_id = ?1 and token_sha256 = ?2",
        (user.0, hash),
        |row| {
            Ok(TokenRow {
                hash,
                family: row.get(0)?,
                label: row.get(1)?,
                signed_in_at: Timestamp(row.get(2)?),
                lifetimes: lifetimes_of(row, 3)?,
                user: users::addressed(row, user, 7)?,
            })
        },
    )
}

/// The user's families that still live, with their devices, the newest sign-in first. There are few: one more than
/// allowed ends the oldest.
fn devices_in(tx: &Read<'_>, user: UserId) -> Result<Vec<([u8; 32], Device)>> {
    tx.all(
        "select family, label, signed_in_at, last_used_at, expires_at from tokens \
         where user_id = ?1 and replaced_at is null and expires_at > ?2 order by created_at desc, signed_in_at desc",
        (user.0, tx.now.0),
        |row| {
            let family: [u8; 32] = row.get(0)?;
            let device = Device {
                id: hex(&family[..DEVICE_ID]),
                label: row.get(1)?,
                signed_in_at: Timestamp(row.get(2)?),
                last_used_at: Timestamp(row.get(3)?),
                expires_at: Timestamp(row.get(4)?),
                is_current: false,
            };
            Ok((family, device))
        },
    )
}

fn shown(device: Device, is_current: bool) -> Device {
    Device { is_current, ..device }
}

/// Reads the four columns that begin at `first`.
fn lifetimes_of(row: &Row<'_>, first: usize) -> rusqlite::Result<Lifetimes> {
    Ok(Lifetimes {
        expires_at: Timestamp(row.get(first)?),
        replaced_at: row.get::<Option<i64>>(first + 1)?.map(Timestamp),
        family_ends: Timestamp(row.get(first + 2)?),
        last_used_at: Timestamp(row.get(first + 3)?),
    })
}
