//! Invites: a user's code, and the points that both sides earn when a new user redeems it.
//!
//! An address can redeem only once and earns a limited number of rewards. Both are stored under its HMAC, so that
//! deleting an account and registering again earns nothing. A redemption checks everything before it changes anything,
//! so that a sign-in can continue after a rejected code.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    config,
    core::Core,
    domain::{
        identity::{
            identities,
            users::{self, Address},
        },
        money::{
            ledger::{self, Asset, EntryKind, Posting},
            points,
        },
        operations::idempotency::{IdempotentOutcome, IdempotentRequest},
    },
    error::{Code, Fault, FieldCode, Result},
    keys::ServerKey,
    store::{Pending, Read, Write},
    types::{Timestamp, UserId, hex, random_text},
};

/// Digits and letters that are not confused with each other in writing or speech.
const ALPHABET: &[u8; 30] = b"23456789ABCDEFGHJKMNPQRSTVWXYZ";
const LENGTH: usize = 8;

/// The errors of a redemption that a sign-in ignores.
pub const REFUSALS: [Code; 6] = [
    Code::UnknownInvite,
    Code::OwnInvite,
    Code::InviteExpired,
    Code::AlreadyInvited,
    Code::AccountInconsistent,
    Code::BalanceTooLarge,
];

/// A normalized invite code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InviteCode(String);

impl InviteCode {
    /// Parses a code. Ignores case, spaces and hyphens.
    ///
    /// # Errors
    /// `invalid_format`.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let code: String = text.chars().filter(|letter| !matches!(letter, ' ' | '-')).collect();
        let code = code.to_ascii_uppercase();
        if code.len() == LENGTH && code.bytes().all(|letter| ALPHABET.contains(&letter)) {
            return Ok(Self(code));
        }
        Err(Fault::new(
            FieldCode::InvalidFormat,
            ("must be an invite code of 8 letters and digits", "须为 8 位字母和数字的邀请码"),
        ))
    }

    /// Returns a uniformly random code.
    fn random() -> Result<Self> {
        random_text(LENGTH, ALPHABET).map(Self)
    }
}

/// A user's code with its statistics.
#[derive(Clone, Debug)]
pub struct Invite {
    pub code: String,
    /// Number of users who redeemed it.
    pub invited: i64,
    /// Rewarded invites, including those of earlier accounts.
    pub rewarded: i64,
    /// The time at which the user redeemed a code.
    pub redeemed_at: Option<Timestamp>,
    /// The end of the time in which the user can redeem a code.
    pub redeemable_until: Timestamp,
}

/// The result of a redemption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Redeemed {
    pub points_granted: i64,
    pub balance: i64,
}

/// Returns the user's code, and creates it at the first request.
pub fn find(core: &Core, user: UserId) -> Pending<Invite> {
    let (key, window) = (core.keys.clone(), core.config.points.invite_window);
    match core.store.read(|tx| find_in(tx, &key, user, window)) {
        Ok(Some(invite)) => Pending::ready(Ok(invite)),
        Ok(None) => core.store.write(move |tx| {
            users::require_in(tx, user)?;
            create_code_in(tx, user)?;
            find_in(tx, &key, user, window)?.ok_or_else(|| Code::NotFound.into())
        }),
        Err(error) => Pending::ready(Err(error)),
    }
}

/// Redeems another user's code.
///
/// # Errors
/// Those of [`redeem_in`] and of [`IdempotentRequest::run_in`].
pub fn redeem(
    core: &Core,
    user: UserId,
    code: InviteCode,
    once: IdempotentRequest<Redeemed>,
) -> Pending<IdempotentOutcome<Redeemed>> {
    let (key, config) = (core.keys.clone(), Arc::clone(&core.config));
    core.store.write(move |tx| once.run_in(tx, |tx| redeem_in(tx, &key, &config.points, user, &code)))
}

/// Redeems another user's code and posts points to both. Two users who invite each other get none for the second invite.
/// Changes nothing if it fails.
///
/// # Errors
/// `unknown_invite`. `own_invite`, also for another account of the same mailbox. `invite_expired` for a user who
/// registered too long ago. `already_invited` for one who redeemed a code before, also under an earlier account.
/// `account_inconsistent` if the owner's account is suspended.
pub fn redeem_in(
    tx: &Write<'_>,
    key: &ServerKey,
    rules: &config::PointsConfig,
    user: UserId,
    code: &InviteCode,
) -> Result<Redeemed> {
    let owner = owner_in(tx, code)?.ok_or(Code::UnknownInvite)?;
    let history = InviteHistory::load_in(tx, key, user)?;
    if owner == user {
        return Err(Code::OwnInvite.into());
    }
    if tx.now >= history.registered_at.plus(rules.invite_window) {
        return Err(Code::InviteExpired.into());
    }
    if history.has_redeemed {
        return Err(Code::AlreadyInvited.into());
    }
    let owner_history = InviteHistory::load_in(tx, key, owner)?;
    // Another account of the same mailbox.
    if owner_history.addresses.iter().any(|address| history.addresses.contains(address)) {
        return Err(Code::OwnInvite.into());
    }
    if has_invited_in(tx, user, owner)? {
        // A mutual invite brings no new user.
        insert_in(tx, user, owner)?;
        count_in(tx, owner, false)?;
        history.store_in(tx, true, history.rewarded)?;
        return Ok(Redeemed { points_granted: 0, balance: points::balance_in(tx, user)? });
    }
    let reference = format!("invite:{}", hex(history.addresses.first().ok_or(Code::NotFound)?));
    let is_rewarded = rules.invite_bonus > 0 && owner_history.rewarded < i64::from(rules.rewarded_invites);
    // Posted first, because the owner's account may be suspended. The new user's cannot be.
    if is_rewarded {
        post_in(tx, owner, rules.invite_bonus, EntryKind::InviteBonus, &reference)?;
    }
    if rules.invitee_bonus > 0 {
        post_in(tx, user, rules.invitee_bonus, EntryKind::InviteeBonus, &reference)?;
    }
    insert_in(tx, user, owner)?;
    count_in(tx, owner, is_rewarded)?;
    history.store_in(tx, true, history.rewarded)?;
    owner_history.store_in(tx, owner_history.has_redeemed, owner_history.rewarded + i64::from(is_rewarded))?;
    Ok(Redeemed { points_granted: i64::from(rules.invitee_bonus), balance: points::balance_in(tx, user)? })
}

/// Exports the user's code and statistics, and the times of redemptions without the other users.
pub fn export_in(tx: &Read<'_>, user: UserId) -> Result<Value> {
    let code = "select code, invited, rewarded, created_at from invite_codes where user_id = ?1";
    let own = tx.first(code, [user.0], |row| {
        Ok(json!({
            "code": row.get::<String>(0)?,
            "invited": row.get::<i64>(1)?,
            "rewarded": row.get::<i64>(2)?,
            "createdAt": Timestamp(row.get(3)?),
        }))
    })?;
    let accepted = "select created_at from invites where inviter_id = ?1 order by created_at, invitee_id";
    let accepted_at: Vec<Timestamp> = tx.all(accepted, [user.0], |row| row.get(0).map(Timestamp))?;
    Ok(json!({ "own": own, "redeemedAt": redeemed_at_in(tx, user)?, "acceptedAt": accepted_at }))
}

/// Stores the history of a user who deletes their account under each of their addresses, and deletes the code.
pub fn archive_in(tx: &Write<'_>, key: &ServerKey, user: UserId) -> Result<()> {
    let history = InviteHistory::load_in(tx, key, user)?;
    history.store_if_any_in(tx, history.has_redeemed, history.rewarded)?;
    tx.execute("delete from invite_codes where user_id = ?1", [user.0])?;
    tx.execute("delete from invites where invitee_id = ?1", [user.0]).map(drop)
}

/// Deletes a deleted user from up to `limit` invites of others.
pub fn forget_inviter_in(tx: &Write<'_>, user: UserId, limit: u32) -> Result<usize> {
    tx.execute(
        "update invites set inviter_id = null where invitee_id in \
         (select invitee_id from invites where inviter_id = ?1 limit ?2)",
        (user.0, limit),
    )
}

/// A user's invite history: under this account, and under earlier accounts with the same addresses.
pub struct InviteHistory {
    registered_at: Timestamp,
    /// HMACs of the user's addresses and identities.
    addresses: Vec<[u8; 32]>,
    has_redeemed: bool,
    /// Invites that earned points.
    rewarded: i64,
}

impl InviteHistory {
    pub fn load_in(tx: &Read<'_>, key: &ServerKey, user: UserId) -> Result<Self> {
        let rewarded = "select rewarded from invite_codes where user_id = ?1";
        let rewarded = tx.first(rewarded, [user.0], |row| row.get(0))?.unwrap_or(0);
        let has_redeemed = redeemed_at_in(tx, user)?.is_some();
        let user = users::find_in(tx, user)?;
        let mut addresses: Vec<_> = user.addresses().map(|address| address_hmac(key, &address)).collect();
        let identities = identities::of_user_in(tx, user.id)?;
        addresses.extend(identities.iter().map(|identity| key.authenticate(&["invite", &identity.key.text()])));
        let mut history = Self { registered_at: user.created_at, addresses, has_redeemed, rewarded };
        for address in &history.addresses {
            let kept = tx.first(
                "select has_redeemed, rewarded from invite_addresses where address_hmac = ?1",
                [address],
                |row| Ok((row.get::<bool>(0)?, row.get::<i64>(1)?)),
            )?;
            let (has_redeemed, rewarded) = kept.unwrap_or_default();
            history.has_redeemed |= has_redeemed;
            history.rewarded = history.rewarded.max(rewarded);
        }
        Ok(history)
    }

    /// Stores the history under the user's current addresses as well.
    pub fn carry_over_in(&self, tx: &Write<'_>, key: &ServerKey, user: UserId) -> Result<()> {
        let now = Self::load_in(tx, key, user)?;
        now.store_if_any_in(tx, self.has_redeemed || now.has_redeemed, self.rewarded.max(now.rewarded))
    }

    fn store_if_any_in(&self, tx: &Write<'_>, has_redeemed: bool, rewarded: i64) -> Result<()> {
        if has_redeemed || rewarded > 0 { self.store_in(tx, has_redeemed, rewarded) } else { Ok(()) }
    }

    fn store_in(&self, tx: &Write<'_>, has_redeemed: bool, rewarded: i64) -> Result<()> {
        tx.execute_each(
            "insert into invite_addresses (address_hmac, has_redeemed, rewarded) values (?1, ?2, ?3) \
             on conflict (address_hmac) do update set has_redeemed = excluded.has_redeemed, rewarded = excluded.rewarded",
            self.addresses.iter().map(|address| (address, has_redeemed, rewarded)),
        )
        .map(drop)
    }
}

/// Computes the HMAC under which the history of an address is stored. Aliases of a mailbox count as one address.
fn address_hmac(key: &ServerKey, address: &Address) -> [u8; 32] {
    match address {
        Address::Phone(number) => key.authenticate(&["invite", number.as_str()]),
        Address::Email(email) => key.authenticate(&["invite", email.mailbox().as_str()]),
    }
}

/// Returns true if `invitee` redeemed the code of `inviter`.
fn has_invited_in(tx: &Read<'_>, inviter: UserId, invitee: UserId) -> Result<bool> {
    tx.one(
        "select exists (select 1 from invites where invitee_id = ?1 and inviter_id = ?2)",
        (invitee.0, inviter.0),
        |row| row.get(0),
    )
}

fn post_in(tx: &Write<'_>, user: UserId, points: u32, kind: EntryKind, reference: &str) -> Result<()> {
    let (delta, reference) = (i64::from(points), Some(reference.to_owned()));
    ledger::post_in(tx, Posting { user, asset: Asset::Point, delta, kind, reference }).map(drop)
}

fn find_in(tx: &Read<'_>, key: &ServerKey, user: UserId, window: std::time::Duration) -> Result<Option<Invite>> {
    let row = tx.first("select code, invited from invite_codes where user_id = ?1", [user.0], |row| {
        Ok((row.get(0)?, row.get(1)?))
    })?;
    let Some((code, invited)) = row else { return Ok(None) };
    let InviteHistory { registered_at, rewarded, .. } = InviteHistory::load_in(tx, key, user)?;
    let (redeemed_at, redeemable_until) = (redeemed_at_in(tx, user)?, registered_at.plus(window));
    Ok(Some(Invite { code, invited, rewarded, redeemed_at, redeemable_until }))
}

/// Creates the user's code unless a parallel request did.
fn create_code_in(tx: &Write<'_>, user: UserId) -> Result<()> {
    users::find_in(tx, user)?;
    loop {
        let InviteCode(code) = InviteCode::random()?;
        if owner_in(tx, &InviteCode(code.clone()))?.is_none() {
            let make = "insert into invite_codes (user_id, code, created_at) values (?1, ?2, ?3) \
                        on conflict (user_id) do nothing";
            return tx.execute(make, (user.0, &code, tx.now.0)).map(drop);
        }
    }
}

fn owner_in(tx: &Read<'_>, code: &InviteCode) -> Result<Option<UserId>> {
    tx.first("select user_id from invite_codes where code = ?1", [&code.0], |row| row.get(0).map(UserId))
}

fn redeemed_at_in(tx: &Read<'_>, user: UserId) -> Result<Option<Timestamp>> {
    tx.first("select created_at from invites where invitee_id = ?1", [user.0], |row| row.get(0).map(Timestamp))
}

fn insert_in(tx: &Write<'_>, user: UserId, owner: UserId) -> Result<()> {
    let insert = "insert into invites (invitee_id, inviter_id, created_at) values (?1, ?2, ?3)";
    tx.execute(insert, (user.0, owner.0, tx.now.0)).map(drop)
}

fn count_in(tx: &Write<'_>, inviter: UserId, is_rewarded: bool) -> Result<()> {
    let count = "update invite_codes set invited = invited + 1, rewarded = rewarded + ?2 where user_id = ?1";
    tx.execute(count, (inviter.0, is_rewarded)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_codes_in_any_spelling() {
        for text in ["2345ABCD", "2345abcd", " 2345-AbCd ", "23 45 AB CD"] {
            assert_eq!(InviteCode::parse(text), Ok(InviteCode("2345ABCD".into())), "{text}");
        }
        for text in
            ["", "2345ABC", "2345ABCDE", "2345ABC0", "2345ABCI", "2345ABCO", "2345ABCU", "2345ABC１", "' or 1=1"]
        {
            assert_eq!(InviteCode::parse(text).unwrap_err().code, FieldCode::InvalidFormat, "{text}");
        }
    }

    #[test]
    fn new_codes_parse_and_use_every_letter() {
        let codes: Vec<_> = (0..500).map(|_| InviteCode::random().unwrap().0).collect();
        assert!(codes.iter().all(|code| InviteCode::parse(code) == Ok(InviteCode(code.clone()))));
        let all = codes.concat();
        // 4000 letters, about 133 of each: random codes never deviate this far.
        for letter in ALPHABET {
            let count = all.bytes().filter(|found| found == letter).count();
            assert!((40..250).contains(&count), "{} came {count} times", char::from(*letter));
        }
    }
}
