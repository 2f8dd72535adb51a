//! Accounts: sign-in, token validation, export and deletion.

pub mod send_code;
pub mod export;
mod sign_in;
mod deletion;

pub use deletion::{DeletionActor, erase};
pub use export::export;
pub use send_code::{CodeRequest, CodeTerms, code_digits, send_code};
pub use sign_in::{SignIn, SignedIn, change_address, sign_in};

use std::sync::Arc;

use crate::{
    core::Core,
    domain::{
        identity::{
            tokens::{self, IssuedToken, TokenStatus},
            users::{self, Profile, User},
        },
        money::{
            ledger::{self, Asset},
            points,
        },
    },
    error::{Code, Result},
    store::Pending,
    types::{Secret, Timestamp, UserId},
};

/// A validated token.
#[derive(Clone, Debug)]
pub struct ValidatedToken {
    pub user: User,
    /// The token to use from now on.
    pub token: Secret,
    pub expires_at: Timestamp,
    /// The request's token was replaced by `token`.
    pub refreshed: bool,
}

/// Validates a token and replaces it if it expires soon. Returns `None` for an invalid token.
pub fn validate_token(core: &Core, token: &Secret) -> Pending<Option<ValidatedToken>> {
    let limits = &core.config.auth;
    let read = core.store.read(|tx| match tokens::status_in(tx, limits, token.reveal())? {
        TokenStatus::Valid { user, expires_at, is_renewable: false, .. } => {
            let user = users::find_in(tx, user)?;
            Ok(Some(Some(ValidatedToken { user, token: token.clone(), expires_at, refreshed: false })))
        }
        TokenStatus::Invalid => Ok(Some(None)),
        TokenStatus::Valid { .. } | TokenStatus::InGrace { .. } | TokenStatus::Reused => Ok(None),
    });
    match read {
        Ok(Some(validated)) => Pending::ready(Ok(validated)),
        Ok(None) => validate_by_replacing(core, token),
        Err(error) => Pending::ready(Err(error)),
    }
}

fn validate_by_replacing(core: &Core, token: &Secret) -> Pending<Option<ValidatedToken>> {
    let (token, config, key) = (token.clone(), Arc::clone(&core.config), core.keys.clone());
    core.store.write(move |tx| match tokens::refresh_in(tx, &key, &config.auth, token.reveal()) {
        Ok(issued) => {
            let user = users::find_in(tx, issued.user)?;
            Ok(Some(ValidatedToken { user, token: issued.token, expires_at: issued.expires_at, refreshed: true }))
        }
        Err(error) if error.code == Code::Unauthenticated => Ok(None),
        Err(error) => Err(error),
    })
}

/// Replaces a token by its successor.
///
/// # Errors
/// `unauthenticated` for an invalid token.
pub fn refresh_token(core: &Core, token: &Secret) -> Pending<IssuedToken> {
    let (token, config, key) = (token.clone(), Arc::clone(&core.config), core.keys.clone());
    core.store.write(move |tx| tokens::refresh_in(tx, &key, &config.auth, token.reveal()))
}

/// Signs out the token's device. An unknown token is not an error.
pub fn sign_out(core: &Core, token: &Secret) -> Pending<()> {
    let token = token.clone();
    core.store.write(move |tx| tokens::revoke_in(tx, token.reveal()))
}

/// An account's current data.
#[derive(Clone, Debug)]
pub struct Account {
    pub user: User,
    pub profile: Profile,
    pub points: i64,
    pub coins: i64,
}

pub fn find(core: &Core, user: UserId) -> Result<Account> {
    core.store.read(|tx| {
        Ok(Account {
            user: users::find_in(tx, user)?,
            profile: users::profile_in(tx, user)?,
            points: points::balance_in(tx, user)?,
            coins: ledger::account_in(tx, user, Asset::Coin)?.balance,
        })
    })
}
