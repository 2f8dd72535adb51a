//! Sign-in: exchanges an address and its verification code for a token. Also adds or changes an account's address.

use std::{net::IpAddr, sync::Arc};

use crate::{
    config::{self, AuthConfig},
    core::Core,
    domain::{
        identity::{
            accounts::send_code::CodeSender,
            codes::{self, AddressHmac, Attempt, ClientNetworks, Purpose},
            email_rewards::{self, EmailPoints, RewardTerms},
            suspensions::{self, may_be_suspended},
            tokens::{self, IssuedToken},
            users::{self, Address, User, user_columns, with_address},
        },
        messaging::user_notices::{self, UserNotice},
        money::{
            coins,
            invites::{self, InviteCode, Redeemed},
        },
    },
    error::{Code, Error, Result},
    keys::ServerKey,
    store::{Pending, Read, Write, sliding_window::WindowUse},
    types::{Secret, UserId},
};

/// An address and the code that was sent to it.
#[derive(Clone, Debug)]
pub struct SignIn {
    pub address: Address,
    pub code: String,
    /// The device's own label.
    pub label: String,
    /// An invite code to redeem in the same operation.
    pub invite_code: Option<InviteCode>,
    pub client: IpAddr,
}

/// A user who has just signed in.
#[derive(Clone, Debug)]
pub struct SignedIn {
    pub user: User,
    pub issued: IssuedToken,
    pub is_new_user: bool,
    /// Points granted or restored with an address that is new to the account.
    pub points: EmailPoints,
    /// The outcome of the invite code, if there was one: its reward, or the reason why there is none.
    pub invite: Option<Result<Redeemed, Code>>,
    /// The wrong codes that the client may still send, for a sign-in by code.
    pub attempts: Option<WindowUse>,
}

/// Exchanges an address and its code for a token, and creates the account if the address is new. An invalid invite code
/// does not fail the sign-in; an invite can be redeemed later.
///
/// # Errors
/// `invalid_code`, whatever the mismatch; `too_many_requests` for a client with too many wrong codes; `user_suspended`,
/// only after the right code.
pub fn sign_in(code_sender: &CodeSender, sign_in: SignIn) -> Pending<SignedIn> {
    let core = &code_sender.core;
    let SignIn { address, code, label, invite_code, client } = sign_in;
    let client = ClientNetworks::of(client);
    let attempt = Attempt::new(&core.keys, address.as_str(), Purpose::SignIn, &code, client);
    let (config, key, terms) = (Arc::clone(&core.config), core.keys.clone(), terms(core));
    let metrics = Arc::clone(&code_sender.metrics);
    core.store.write_without_savepoint(move |tx| {
        let attempts = metrics.count_verification(codes::verify_in(tx, &config.auth, &attempt))?;
        let known = find_in(tx, &address)?;
        if let Some((user, true)) = &known {
            suspensions::require_none_in(tx, user.id, &config.limits.time_zone)?;
        }
        let known = known.map(|(user, _)| user);
        let is_new_user = known.is_none();
        let enter = |tx: &Write<'_>| {
            let user = known.map_or_else(|| users::create_in(tx, &address), Ok)?;
            let mut points = EmailPoints::default();
            if is_new_user {
                coins::open_in(tx, &key, user.id, address.as_str(), config.coins.initial)?;
                points = grant_email_points_in(tx, &key, user.id, &address, false, terms)?;
            }
            let redeem = |code| try_redeem_in(tx, &key, &config.points, user.id, code);
            let invite = invite_code.as_ref().map(redeem).transpose()?;
            Ok(SignedIn { is_new_user, points, invite, ..issue_token_in(tx, &config.auth, user, &label)? })
        };
        // A posting to the ledger may be refused after the first change, which is then undone.
        let posts = config.coins.initial > 0 || matches!(address, Address::Email(_));
        let signed_in = if invite_code.is_some() || is_new_user && posts { tx.attempt(enter)? } else { enter(tx)? };
        attempt.delete_code_in(tx)?;
        Ok(SignedIn { attempts: Some(attempts), ..signed_in })
    })
}

/// Returns the user with this address, and true if the account may be suspended.
fn find_in(tx: &Read<'_>, address: &Address) -> Result<Option<(User, bool)>> {
    let sql = match address {
        Address::Phone(_) => {
            concat!("select ", user_columns!(), ", ", may_be_suspended!("users.id"), with_address!("phone_number"))
        }
        Address::Email(_) => {
            concat!("select ", user_columns!(), ", ", may_be_suspended!("users.id"), with_address!("email"))
        }
    };
    tx.first(sql, [address.as_str()], |row| Ok((users::user_of(row)?, row.get(4)?)))
}

/// Issues a token to an existing user.
pub(super) fn issue_token_in(tx: &Write<'_>, limits: &AuthConfig, user: User, label: &str) -> Result<SignedIn> {
    let issued = tokens::issue_in(tx, limits, &user, label)?;
    Ok(SignedIn { user, issued, is_new_user: false, points: EmailPoints::default(), invite: None, attempts: None })
}

/// A new address and the code that was sent to it.
#[derive(Clone, Debug)]
pub struct ProvedAddress {
    pub address: Address,
    pub code: String,
    pub client: IpAddr,
}

/// Adds or replaces an address of the user, verified by a code for this purpose. Replacing signs out the user's other
/// devices, because the holder of the old address may have one of them.
///
/// # Errors
/// `step_up_required`; `invalid_code`; `too_many_requests`; `address_taken` if another account has the address. The
/// caller has proven to own the address by then, so the code stays used.
pub fn change_address(
    code_sender: &CodeSender,
    user: UserId,
    token: Secret,
    proved: ProvedAddress,
) -> Pending<(User, EmailPoints)> {
    let core = &code_sender.core;
    let ProvedAddress { address, code, client } = proved;
    let client = ClientNetworks::of(client);
    let attempt = Attempt::new(&core.keys, address.as_str(), Purpose::Address, &code, client);
    let (config, key, terms) = (Arc::clone(&core.config), core.keys.clone(), terms(core));
    let metrics = Arc::clone(&code_sender.metrics);
    core.store.write(move |tx| {
        tokens::require_recent_sign_in_in(tx, &config.auth, token.reveal())?;
        metrics.count_verification(codes::consume_in(tx, &config.auth, &attempt))?;
        let before = users::find_in(tx, user)?.address_of_kind(&address);
        if before.as_ref() == Some(&address) {
            return Ok((users::find_in(tx, user)?, EmailPoints::default()));
        }
        let invited = invites::InviteHistory::load_in(tx, &key, user)?;
        let changed = users::change_address_in(tx, user, &address).map_err(keep_code_used)?;
        invited.carry_over_in(tx, &key, user)?;
        if let Some(before) = &before {
            codes::erase_in(tx, &AddressHmac::new(&key, before.as_str()))?;
            tokens::revoke_others_in(tx, user, token.reveal())?;
        }
        user_notices::send_in(tx, &config, user, &UserNotice::AddressChanged(&address))?;
        let points = grant_email_points_in(tx, &key, user, &address, before.is_some(), terms)?;
        Ok((changed, points))
    })
}

/// Redeems an invite code, or returns the reason why it cannot be redeemed.
pub(super) fn try_redeem_in(
    tx: &Write<'_>,
    key: &ServerKey,
    rules: &config::PointsConfig,
    user: UserId,
    code: &InviteCode,
) -> Result<Result<Redeemed, Code>> {
    match tx.attempt(|tx| invites::redeem_in(tx, key, rules, user, code)) {
        Ok(redeemed) => Ok(Ok(redeemed)),
        Err(error) if invites::REFUSALS.contains(&error.code) => Ok(Err(error.code)),
        Err(error) => Err(error),
    }
}

fn keep_code_used(error: Error) -> Error {
    if error.code == Code::AddressTaken { error.keeping_changes() } else { error }
}

pub(super) fn terms(core: &Core) -> RewardTerms {
    RewardTerms { signup_bonus: core.config.points.signup_bonus, parking_period: core.config.retention.parked_points }
}

/// Grants the points of an email address. Phone numbers have none.
pub(super) fn grant_email_points_in(
    tx: &Write<'_>,
    key: &ServerKey,
    user: UserId,
    address: &Address,
    is_replacement: bool,
    terms: RewardTerms,
) -> Result<EmailPoints> {
    match address {
        Address::Phone(_) => Ok(EmailPoints::default()),
        Address::Email(email) => email_rewards::grant_in(tx, key, email, user, is_replacement, terms),
    }
}
