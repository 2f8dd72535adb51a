//! Account tokens: what an app passes to the store, so that a purchase names its user.
//!
//! A token is a random UUID. It goes with the account, so purchases of a deleted account bind to nobody.

use serde_json::{Value, json};

use crate::{
    core::Core,
    domain::identity::users,
    error::{Code, Result},
    providers::payment::purchase::plain_token,
    store::{Pending, Read, Write},
    types::{UserId, hex, random_bytes},
};

/// A user's account token, and the consent to send consumption data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreAccount {
    pub account_token: String,
    /// The user agreed that the store is told how much of a purchase was used.
    pub shares_consumption: bool,
}

/// Returns the user's account token, and creates it at the first call.
///
/// # Errors
/// `not_found` for a deleted account.
pub fn account_token(core: &Core, user: UserId) -> Result<Pending<String>> {
    if let Some(known) = core.store.read(|tx| find_in(tx, user))? {
        return Ok(Pending::ready(Ok(known.account_token)));
    }
    let made = new_token()?;
    Ok(core.store.write(move |tx| {
        if !users::exists_in(tx, user)? {
            return Err(Code::NotFound.into());
        }
        tx.execute(
            "insert into store_accounts (user_id, account_token) values (?1, ?2) on conflict (user_id) do nothing",
            (user.0, &made),
        )?;
        Ok(find_in(tx, user)?.ok_or(Code::NotFound)?.account_token)
    }))
}

/// Returns the account of a user.
pub fn find_in(tx: &Read<'_>, user: UserId) -> Result<Option<StoreAccount>> {
    tx.first("select account_token, shares_consumption from store_accounts where user_id = ?1", [user.0], |row| {
        Ok(StoreAccount { account_token: row.get(0)?, shares_consumption: row.get(1)? })
    })
}

/// Returns the user to whom a token was given, in any spelling.
pub(super) fn user_of_in(tx: &Read<'_>, token: Option<&str>) -> Result<Option<UserId>> {
    let plain = plain_token(token.unwrap_or_default());
    if plain.len() != 32 || !plain.is_ascii() {
        return Ok(None);
    }
    tx.first("select user_id from store_accounts where account_token = ?1", [hyphenated(&plain)], |row| {
        row.get(0).map(UserId)
    })
}

/// Stores the user's consent to send consumption data, or its withdrawal.
pub(super) fn put_consent_in(tx: &Write<'_>, user: UserId, is_given: bool) -> Result<()> {
    tx.execute("update store_accounts set shares_consumption = ?2 where user_id = ?1", (user.0, is_given)).map(drop)
}

/// Exports the user's account token and consent; null without one.
pub fn export_in(tx: &Read<'_>, user: UserId) -> Result<Value> {
    let account = find_in(tx, user)?;
    Ok(account.map_or(
        Value::Null,
        |account| json!({ "accountToken": account.account_token, "sharesConsumption": account.shares_consumption }),
    ))
}

/// Deletes the token of a user whose account is deleted.
pub fn erase_user_in(tx: &Write<'_>, user: UserId) -> Result<()> {
    tx.execute("delete from store_accounts where user_id = ?1", [user.0]).map(drop)
}

/// Returns a random UUID of version 4.
fn new_token() -> Result<String> {
    let mut bytes = random_bytes::<16>()?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Ok(hyphenated(&hex(&bytes)))
}

fn hyphenated(plain: &str) -> String {
    [&plain[..8], &plain[8..12], &plain[12..16], &plain[16..20], &plain[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_uuids_of_version_4() {
        let token = new_token().unwrap();
        assert_eq!(token.len(), 36);
        assert_eq!(&token[14..15], "4");
        assert!("89ab".contains(&token[19..20]));
        assert_eq!(hyphenated(&plain_token(&token.to_uppercase())), token);
        assert_ne!(token, new_token().unwrap());
    }
}
