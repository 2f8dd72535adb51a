//! Sign-in with an identity at another service, and the identities of an account.
//!
//! An identity is linked to an existing account only with a proof of both: a recent sign-in and the identity, or an
//! address that the provider has authority over and the account has verified. The owner is told. Proofs are checked before the write, without a
//! transaction.

use std::{net::IpAddr, sync::Arc};

use super::sign_in::{SignedIn, grant_email_points_in, issue_token_in, terms, try_redeem_in};
use crate::{
    core::Core,
    domain::{
        identity::{
            email_rewards::EmailPoints,
            identities::{self, IdentityProvider},
            identity_proofs::{IdentityProof, IdentityProviders, Proved, ProvedIdentity, error_of, not_configured},
            suspensions, tokens,
            users::{self, Address, User},
        },
        messaging::user_notices::{self, UserNotice},
        money::{
            coins,
            invites::{InviteCode, InviteHistory},
        },
    },
    error::{Code, Error, Fault, FieldCode, Result},
    providers::identity::{
        ProofFault,
        id_token::{IdentityEvent, IdentityEventKind},
    },
    store::{Pending, Write},
    types::{Secret, Timestamp, UserId},
};

/// A sign-in with a proof of identity.
#[derive(Clone, Debug)]
pub struct IdentitySignIn {
    pub proof: IdentityProof,
    /// The device's own label.
    pub label: String,
    /// An invite code to redeem in the same operation.
    pub invite_code: Option<InviteCode>,
    pub client: IpAddr,
}

/// Exchanges a proof of identity for a token, and creates the account if the identity is new. Blocks, then queues the
/// write.
///
/// # Errors
/// `invalid_identity`; `identity_taken` if the account with the identity's address has another identity of the provider;
/// `email_code_required` if the provider has no authority over that address; `user_suspended`; those of the provider.
pub fn sign_in_with_identity(providers: &IdentityProviders, sign_in: IdentitySignIn) -> Result<Pending<SignedIn>> {
    let IdentitySignIn { proof, label, invite_code, client } = sign_in;
    let proved = providers.prove(&proof, client)?;
    let core = &providers.core;
    let (config, key, terms) = (Arc::clone(&core.config), core.keys.clone(), terms(core));
    Ok(core.store.write(move |tx| {
        let known = find_in(tx, &proved)?;
        if let Some((user, _)) = &known {
            suspensions::require_none_in(tx, user.id, &config.limits.time_zone)?;
        }
        let is_new_user = known.is_none();
        let (user, is_linked) = known.map_or_else(|| Ok::<_, Error>((create_in(tx, &proved)?, false)), Ok)?;
        if let Proved::Identity(identity) = &proved {
            use_in(tx, &user, identity, is_linked)?;
            if !is_linked && !is_new_user {
                user_notices::send_in(tx, &config, user.id, &UserNotice::IdentityLinked(identity.key.provider))?;
            }
        }
        let mut points = EmailPoints::default();
        if is_new_user {
            let name = owner_name(&user, &proved);
            coins::open_in(tx, &key, user.id, &name, config.coins.initial)?;
            if let Some(email) = user.email.clone() {
                points = grant_email_points_in(tx, &key, user.id, &Address::Email(email), false, terms)?;
            }
        }
        let redeem = |code| try_redeem_in(tx, &key, &config.points, user.id, code);
        let invite = invite_code.as_ref().map(redeem).transpose()?;
        Ok(SignedIn { is_new_user, points, invite, ..issue_token_in(tx, &config.auth, user, &label)? })
    }))
}

/// Adds a proved identity to the account of a user who has just signed in. Repeating it with a new proof changes
/// nothing. Blocks, then queues the write.
///
/// # Errors
/// `step_up_required`; `invalid_identity`; `identity_taken`; those of the provider.
pub fn link_identity(
    providers: &IdentityProviders,
    (user, token): (UserId, Secret),
    proof: &IdentityProof,
    client: IpAddr,
) -> Result<Pending<()>> {
    let core = &providers.core;
    if matches!(proof, IdentityProof::Phone { .. }) {
        let fault = (
            "must be `apple`, `google` or `wechat`; a phone number is set with /api/v1/account/address",
            "须为 `apple`、`google` 或 `wechat`；手机号请用 /api/v1/account/address 设置",
        );
        return Err(Error::field("provider", Fault::new(FieldCode::UnknownValue, fault)));
    }
    core.store.read(|tx| tokens::require_recent_sign_in_in(tx, &core.config.auth, token.reveal()))?;
    let proved = providers.prove(proof, client)?;
    let (config, key) = (Arc::clone(&core.config), core.keys.clone());
    Ok(core.store.write(move |tx| {
        tokens::require_recent_sign_in_in(tx, &config.auth, token.reveal())?;
        let Proved::Identity(identity) = &proved else { return Err(Code::InvalidIdentity.into()) };
        let is_linked = match find_linked_in(tx, identity)? {
            Some(owner) if owner == user => true,
            Some(_) => return Err(Code::IdentityTaken.into()),
            None => false,
        };
        let invited = InviteHistory::load_in(tx, &key, user)?;
        use_in(tx, &users::find_in(tx, user)?, identity, is_linked)?;
        if !is_linked {
            user_notices::send_in(tx, &config, user, &UserNotice::IdentityLinked(identity.key.provider))?;
        }
        invited.carry_over_in(tx, &key, user)
    }))
}

/// Removes an identity from an account and signs out the user's other devices, because the holder of the identity may
/// have one of them.
///
/// # Errors
/// `step_up_required`; `not_found`; `last_identity` if the user could not sign in any more.
pub fn unlink_identity(core: &Core, user: UserId, token: Secret, provider: IdentityProvider) -> Pending<()> {
    let (config, key) = (Arc::clone(&core.config), core.keys.clone());
    core.store.write(move |tx| {
        tokens::require_recent_sign_in_in(tx, &config.auth, token.reveal())?;
        // Kept for the identity, so that a new account with it earns nothing twice.
        InviteHistory::load_in(tx, &key, user)?.carry_over_in(tx, &key, user)?;
        identities::unlink_in(tx, user, provider)?;
        tokens::revoke_others_in(tx, user, token.reveal())
    })
}

/// The effect of a notification about an identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdentityEventEffect {
    /// The identity was removed and the user signed out.
    Removed,
    /// The user was signed out. The identity is the only way into the account, so it stays.
    SignedOut,
    /// The identity is unknown, was used since, or the kind has no effect.
    Nothing,
}

impl IdentityEventEffect {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Removed => "removed",
            Self::SignedOut => "signed_out",
            Self::Nothing => "nothing",
        }
    }
}

/// Verifies and applies a notification of Apple. Blocks, then queues the write.
///
/// A person who revokes consent is signed out, and the identity removed if the account has another way in; if not, it
/// stays, because Apple names the same person when consent is given again. An identity that no longer exists is
/// removed in any case; the staff can then give the account a phone number.
///
/// # Errors
/// `invalid_identity` for a forged one; `not_configured`; those of the provider.
pub fn receive_apple_event(providers: &IdentityProviders, payload: &Secret) -> Result<Pending<IdentityEventEffect>> {
    let apple = providers.apple.as_ref().ok_or_else(|| not_configured(IdentityProvider::Apple.name()))?;
    apply_event(providers, apple.read_event(payload.reveal()))
}

/// Does the same without blocking; `None` if keys of Apple must be fetched.
pub fn receive_known_apple_event(
    providers: &IdentityProviders,
    payload: &Secret,
) -> Option<Result<Pending<IdentityEventEffect>>> {
    let event = providers.apple.as_ref()?.read_known_event(payload.reveal())?;
    Some(apply_event(providers, event))
}

fn apply_event(
    providers: &IdentityProviders,
    event: Result<IdentityEvent, ProofFault>,
) -> Result<Pending<IdentityEventEffect>> {
    const PROVIDER: IdentityProvider = IdentityProvider::Apple;
    let event = event.map_err(|fault| error_of(PROVIDER.name(), fault))?;
    let (key, at) = (identities::IdentityKey { provider: PROVIDER, subject: event.subject }, Timestamp(event.at));
    let server_key = providers.core.keys.clone();
    Ok(providers.core.store.write(move |tx| {
        let found = identities::find_user_in(tx, &key)?.filter(|_| event.kind != IdentityEventKind::Other);
        // An event may arrive late or twice, after the person has signed in again.
        let Some((user, _)) = found.filter(|(_, last_used_at)| *last_used_at <= at) else {
            return Ok(IdentityEventEffect::Nothing);
        };
        tokens::revoke_all_in(tx, user)?;
        let is_gone = event.kind == IdentityEventKind::AccountDeleted;
        if !is_gone && !identities::has_other_sign_in_in(tx, user, PROVIDER)? {
            return Ok(IdentityEventEffect::SignedOut);
        }
        InviteHistory::load_in(tx, &server_key, user)?.carry_over_in(tx, &server_key, user)?;
        identities::remove_in(tx, user, PROVIDER)?;
        Ok(IdentityEventEffect::Removed)
    }))
}

/// Returns the user whom a proof names, and true if the identity is linked already.
fn find_in(tx: &Write<'_>, proved: &Proved) -> Result<Option<(User, bool)>> {
    let identity = match proved {
        Proved::Phone(number) => {
            let user = users::find_by_address_in(tx, &Address::Phone(number.clone()))?;
            return Ok(user.map(|user| (user, true)));
        }
        Proved::Identity(identity) => identity,
    };
    if let Some(owner) = find_linked_in(tx, identity)? {
        return Ok(Some((users::find_in(tx, owner)?, true)));
    }
    let Some(email) = &identity.email else { return Ok(None) };
    let user = users::find_by_address_in(tx, &Address::Email(email.clone()))?;
    if user.is_some() && !identity.is_email_proved {
        return Err(Code::EmailCodeRequired.into());
    }
    Ok(user.map(|user| (user, false)))
}

/// Returns the user who has the identity, and stores it under its current id.
fn find_linked_in(tx: &Write<'_>, identity: &ProvedIdentity) -> Result<Option<UserId>> {
    if let Some(former) = &identity.former_key {
        identities::replace_subject_in(tx, former, &identity.key)?;
    }
    Ok(identities::find_user_in(tx, &identity.key)?.map(|(user, _)| user))
}

/// Records the use of a proof, and links the identity if it is new.
fn use_in(tx: &Write<'_>, user: &User, identity: &ProvedIdentity, is_linked: bool) -> Result<()> {
    if let Some(single_use) = &identity.single_use {
        single_use.consume_in(tx)?;
    }
    if is_linked { identities::touch_in(tx, &identity.key) } else { identities::link_in(tx, user.id, &identity.key) }
}

fn create_in(tx: &Write<'_>, proved: &Proved) -> Result<User> {
    match proved {
        Proved::Phone(number) => users::create_in(tx, &Address::Phone(number.clone())),
        Proved::Identity(ProvedIdentity { email: Some(email), is_email_proved: true, .. }) => {
            users::create_in(tx, &Address::Email(email.clone()))
        }
        Proved::Identity(_) => users::create_without_address_in(tx),
    }
}

/// Returns the name under which a new user gets the signup bonus of coins once.
fn owner_name(user: &User, proved: &Proved) -> String {
    match (user.addresses().next(), proved) {
        (Some(address), _) => address.as_str().to_owned(),
        (None, Proved::Identity(identity)) => identity.key.text(),
        (None, Proved::Phone(number)) => number.as_str().to_owned(),
    }
}
