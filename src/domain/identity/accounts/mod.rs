//! Accounts: sign-in, token validation, export and deletion.

pub mod send_code;
pub mod export;
mod sign_in;
mod identity_sign_in;
mod code_messages;
mod deletion;
pub mod erasure;
mod last_delivery;

pub use code_messages::{CodeMessages, delivered_code_messages, list_code_messages};
pub use deletion::{BalancesAfterDeletion, DeletionActor, erase, preview_deletion};
pub use export::export;
pub use identity_sign_in::{
    IdentityEventEffect, IdentitySignIn, link_identity, receive_apple_event, receive_known_apple_event,
    sign_in_with_identity, unlink_identity,
};
pub use send_code::{CodeRequest, CodeSender, CodeTerms, EMAIL_CODE_DIGITS, SMS_CODE_DIGITS, code_digits, send_code};
pub use sign_in::{ProvedAddress, SignIn, SignedIn, change_address, sign_in};

use std::sync::Arc;

use crate::{
    core::Core,
    domain::{
        identity::{
            identities::{self, UserIdentity},
            suspensions,
            tokens::{self, IssuedToken, TokenStatus},
            users::{self, Profile, User},
        },
        money::{
            ledger::{self, Asset},
            points,
        },
    },
    error::Result,
    store::{Pending, Read},
    types::{Secret, Timestamp, UserId},
};

/// A validated token.
#[derive(Clone, Debug)]
pub struct ValidatedToken {
    pub user: User,
    pub expires_at: Timestamp,
    /// The token was extended.
    pub refreshed: bool,
}

/// Validates a token and extends it if it expires soon. Returns `None` for an invalid token.
pub fn validate_token(core: &Core, token: &Secret) -> Pending<Option<ValidatedToken>> {
    let limits = &core.config.auth;
    let read = core.store.read(|tx| match tokens::status_in(tx, limits, token.reveal())? {
        // Both need a write.
        TokenStatus::Valid { is_renewable: true, .. } | TokenStatus::Reused => Ok(None),
        status => validated_in(tx, status, false).map(Some),
    });
    if let Some(validated) = read.transpose() {
        return Pending::ready(validated);
    }
    let (token, config) = (token.clone(), Arc::clone(&core.config));
    core.store.write(move |tx| {
        let status = tokens::extend_in(tx, &config.auth, token.reveal())?;
        validated_in(tx, status, matches!(status, TokenStatus::Valid { .. }))
    })
}

fn validated_in(tx: &Read<'_>, status: TokenStatus, refreshed: bool) -> Result<Option<ValidatedToken>> {
    match status {
        TokenStatus::Valid { user, expires_at, .. } | TokenStatus::InGrace { user, until: expires_at } => {
            // Apps lead to the sign-in then, which says until when.
            if suspensions::in_force_in(tx, user)?.is_some() {
                return Ok(None);
            }
            Ok(Some(ValidatedToken { user: users::find_in(tx, user)?, expires_at, refreshed }))
        }
        TokenStatus::Reused | TokenStatus::Invalid => Ok(None),
    }
}

/// Replaces a token by its successor.
///
/// # Errors
/// `unauthenticated` for an invalid token; `user_suspended`.
pub fn refresh_token(core: &Core, token: &Secret) -> Pending<IssuedToken> {
    let (token, config, key) = (token.clone(), Arc::clone(&core.config), core.keys.clone());
    core.store.write(move |tx| {
        let issued = tokens::refresh_in(tx, &key, &config.auth, token.reveal())?;
        suspensions::require_none_in(tx, issued.user, &config.limits.time_zone)?;
        Ok(issued)
    })
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
    pub identities: Vec<UserIdentity>,
    pub points: i64,
    pub coins: i64,
    pub after_deletion: BalancesAfterDeletion,
}

pub fn find(core: &Core, user: UserId) -> Result<Account> {
    core.store.read(|tx| {
        let (points, coins) = (points::balance_in(tx, user)?, ledger::balance_in(tx, user, Asset::Coin)?);
        let found = users::find_in(tx, user)?;
        Ok(Account {
            after_deletion: BalancesAfterDeletion::of(&found, points, coins),
            user: found,
            profile: users::profile_in(tx, user)?,
            identities: identities::of_user_in(tx, user)?,
            points,
            coins,
        })
    })
}
