//! Identities at other services, with which users sign in beside their addresses.
//!
//! An identity is the provider's id of a person and never an address, because addresses change hands. It belongs to one
//! user, and a user has at most one of each provider. A signed token is good for one sign-in: its hash is stored until
//! it expires.

use serde_json::json;

use crate::{
    domain::{Each, identity::users},
    error::{Code, Error, Result},
    store::{Read, Row, RowResult, Write},
    types::{Timestamp, UserId, named_enum},
};

named_enum! {
    /// A service at which users have an identity.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum IdentityProvider {
        Apple = "apple",
        Google = "google",
        Wechat = "wechat",
    }
}

/// The provider's id of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityKey {
    pub provider: IdentityProvider,
    pub subject: String,
}

impl IdentityKey {
    /// Returns a text that identifies the person among all providers.
    pub fn text(&self) -> String {
        format!("identity:{}:{}", self.provider.name(), self.subject)
    }
}

/// An identity of a user.
#[derive(Clone, Debug)]
pub struct UserIdentity {
    pub key: IdentityKey,
    pub linked_at: Timestamp,
    /// The time of the last sign-in with it.
    pub last_used_at: Timestamp,
}

/// A signed token that is good for one use.
#[derive(Clone, Debug)]
pub struct SingleUse {
    pub token_sha256: [u8; 32],
    pub expires_at: Timestamp,
}

impl SingleUse {
    /// Records the use of the token.
    ///
    /// # Errors
    /// `invalid_identity` if it was used before.
    pub fn consume_in(&self, tx: &Write<'_>) -> Result<()> {
        let inserted = tx.execute(
            "insert into used_identity_tokens (token_sha256, expires_at) values (?1, ?2) \
             on conflict (token_sha256) do nothing",
            (self.token_sha256, self.expires_at.0),
        )?;
        if inserted == 1 {
            Ok(())
        } else {
            Err(Error::new(Code::InvalidIdentity).detail((
                "The token was used before. Get a new one from the provider.",
                "该凭证已使用过，请向平台重新获取。",
            )))
        }
    }
}

/// Returns the user with this identity and the time of its last use.
pub fn find_user_in(tx: &Read<'_>, key: &IdentityKey) -> Result<Option<(UserId, Timestamp)>> {
    tx.first(
        "select user_id, last_used_at from identities where provider = ?1 and subject = ?2",
        (key.provider.name(), &key.subject),
        |row| Ok((UserId(row.get(0)?), Timestamp(row.get(1)?))),
    )
}

/// Returns the identities of a user, in the order of the providers' names.
pub fn of_user_in(tx: &Read<'_>, user: UserId) -> Result<Vec<UserIdentity>> {
    tx.all(
        "select provider, subject, linked_at, last_used_at from identities where user_id = ?1 order by provider",
        [user.0],
        identity_of,
    )
}

/// Adds an identity to a user.
///
/// # Errors
/// `identity_taken` if another account has it, or this account has another one of the provider.
pub fn link_in(tx: &Write<'_>, user: UserId, key: &IdentityKey) -> Result<()> {
    let inserted = tx.execute(
        "insert into identities (provider, subject, user_id, linked_at, last_used_at) values (?1, ?2, ?3, ?4, ?4) \
         on conflict do nothing",
        (key.provider.name(), &key.subject, user.0, tx.now.0),
    )?;
    if inserted == 1 { Ok(()) } else { Err(Code::IdentityTaken.into()) }
}

/// Records a sign-in with an identity.
pub fn touch_in(tx: &Write<'_>, key: &IdentityKey) -> Result<()> {
    tx.execute(
        "update identities set last_used_at = ?3 where provider = ?1 and subject = ?2",
        (key.provider.name(), &key.subject, tx.now.0),
    )
    .map(drop)
}

/// Replaces the id of a person, if it is known, by another id of the same person.
pub fn replace_subject_in(tx: &Write<'_>, old: &IdentityKey, new: &IdentityKey) -> Result<()> {
    tx.execute(
        "update identities set subject = ?3 where provider = ?1 and subject = ?2 and not exists \
         (select 1 from identities as other where other.provider = ?1 and other.subject = ?3)",
        (old.provider.name(), &old.subject, &new.subject),
    )
    .map(drop)
}

/// Removes an identity of a user.
///
/// # Errors
/// `not_found`; `last_identity` if the user could not sign in any more.
pub fn unlink_in(tx: &Write<'_>, user: UserId, provider: IdentityProvider) -> Result<()> {
    if !of_user_in(tx, user)?.iter().any(|identity| identity.key.provider == provider) {
        return Err(Code::NotFound.into());
    }
    if !has_other_sign_in_in(tx, user, provider)? {
        return Err(Code::LastIdentity.into());
    }
    remove_in(tx, user, provider)
}

/// Removes an identity of a user, also the last way into the account.
pub fn remove_in(tx: &Write<'_>, user: UserId, provider: IdentityProvider) -> Result<()> {
    tx.execute("delete from identities where user_id = ?1 and provider = ?2", (user.0, provider.name())).map(drop)
}

/// Returns true if the user could sign in without the identity of this provider.
pub fn has_other_sign_in_in(tx: &Read<'_>, user: UserId, provider: IdentityProvider) -> Result<bool> {
    let has_address = users::find_in(tx, user)?.addresses().next().is_some();
    Ok(has_address || of_user_in(tx, user)?.iter().any(|identity| identity.key.provider != provider))
}

/// Exports the identities of a user.
pub fn export_in(tx: &Read<'_>, user: UserId, each: Each<'_>) -> Result<()> {
    of_user_in(tx, user)?.into_iter().try_for_each(|identity| {
        each(json!({
            "provider": identity.key.provider.name(),
            "subject": identity.key.subject,
            "linkedAt": identity.linked_at,
            "lastUsedAt": identity.last_used_at,
        }))
    })
}

/// Deletes the identities of a user whose account is deleted.
pub fn erase_user_in(tx: &Write<'_>, user: UserId) -> Result<()> {
    tx.execute("delete from identities where user_id = ?1", [user.0]).map(drop)
}

/// Deletes up to `limit` hashes of tokens that have expired.
pub fn delete_expired_tokens_in(tx: &Write<'_>, limit: u32) -> Result<usize> {
    tx.execute(
        "delete from used_identity_tokens where token_sha256 in \
         (select token_sha256 from used_identity_tokens where expires_at <= ?1 order by expires_at limit ?2)",
        (tx.now.0, limit),
    )
}

fn identity_of(row: &Row<'_>) -> RowResult<UserIdentity> {
    Ok(UserIdentity {
        key: IdentityKey { provider: row.get_parsed(0, IdentityProvider::from_name)?, subject: row.get(1)? },
        linked_at: Timestamp(row.get(2)?),
        last_used_at: Timestamp(row.get(3)?),
    })
}
