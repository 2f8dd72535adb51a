//! Rewards bound to an email address: the signup bonus, and temporarily the points of a deleted account.
//!
//! An address is stored as an HMAC. Its row is created when the address first joins an account and is never deleted, so
//! that re-registration earns nothing. The mailbox behind an alias has a row too, so that aliases share one bonus.
//! Parked points are restored once, to the next account with the address. An account that already had a bonus gets no
//! second one with them, so that changing addresses does not accumulate bonuses.

use std::time::Duration;

use crate::{
    domain::money::points,
    error::Result,
    keys::ServerKey,
    store::{Read, Write},
    types::{EmailAddress, Timestamp, UserId, fill_random, hex},
};

/// The HMAC of an email address, under which its rewards are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmailHmac([u8; 32]);

impl EmailHmac {
    pub fn new(key: &ServerKey, email: &EmailAddress) -> Self {
        Self(key.authenticate(&["known email", email.as_str()]))
    }

    fn of_mailbox(key: &ServerKey, email: &EmailAddress) -> Self {
        Self::new(key, &email.mailbox())
    }
}

/// The points that an address brings to an account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EmailPoints {
    /// The signup bonus. Zero if the address or the user had one before, or if the address replaces another.
    pub granted: i64,
    /// Points that were parked for the address.
    pub restored: i64,
}

/// The settings of these rewards.
#[derive(Clone, Copy, Debug)]
pub struct RewardTerms {
    pub signup_bonus: u32,
    /// Time for which points stay parked.
    pub parking_period: Duration,
}

/// Grants the points of an address that was just added to the user. An address that replaces another brings no bonus,
/// because the earlier address did.
///
/// # Errors
/// Those of posting to the ledger.
pub fn grant_in(
    tx: &Write<'_>,
    key: &ServerKey,
    email: &EmailAddress,
    user: UserId,
    is_replacement: bool,
    terms: RewardTerms,
) -> Result<EmailPoints> {
    let (email, mailbox) = (EmailHmac::new(key, email), EmailHmac::of_mailbox(key, email));
    let Some(parked) = find_in(tx, email)? else {
        insert_in(tx, email)?;
        let is_alias_of_known = mailbox != email && !insert_in(tx, mailbox)?;
        let bonus = if is_replacement || is_alias_of_known { 0 } else { terms.signup_bonus };
        let granted = points::grant_signup_bonus_in(tx, user, bonus)?;
        return Ok(EmailPoints { granted, restored: 0 });
    };
    match parked {
        Some(parked) if tx.now < parked.at.plus(terms.parking_period) => {
            clear_in(tx, email)?;
            let bonus = if points::bonus_in(tx, user)? > 0 { 0 } else { parked.bonus };
            let others = parked.points - parked.bonus;
            points::restore_in(tx, user, bonus, others, &parked.name)?;
            Ok(EmailPoints { granted: 0, restored: bonus + others })
        }
        _ => Ok(EmailPoints::default()),
    }
}

/// Stores an address. Returns false if it is known.
fn insert_in(tx: &Write<'_>, email: EmailHmac) -> Result<bool> {
    let insert =
        "insert into email_rewards (email_hmac, created_at) values (?1, ?2) on conflict (email_hmac) do nothing";
    Ok(tx.execute(insert, (email.0, tx.now.0))? == 1)
}

/// Moves the points of an account to its address, before the account is deleted.
///
/// # Errors
/// `account_inconsistent`.
pub fn park_in(tx: &Write<'_>, email: EmailHmac, user: UserId) -> Result<()> {
    let mut name = [0; 16];
    fill_random(&mut name)?;
    let name = hex(&name);
    let had_bonus = points::bonus_in(tx, user)?;
    let points = points::park_in(tx, user, &name)?;
    if points == 0 {
        return Ok(());
    }
    tx.execute(
        "insert into email_rewards (email_hmac, created_at, parked_points, parked_bonus, parking, parked_at) \
         values (?1, ?2, ?3, ?4, ?5, ?2) on conflict (email_hmac) do update set \
         parked_points = excluded.parked_points, parked_bonus = excluded.parked_bonus, parking = excluded.parking, \
         parked_at = excluded.parked_at",
        (email.0, tx.now.0, points, points.min(had_bonus), name),
    )
    .map(drop)
}

/// Deletes up to `limit` parked balances older than `age`. The rows of the addresses stay.
pub fn delete_expired_parked_in(tx: &Write<'_>, age: Duration, limit: u32) -> Result<usize> {
    tx.execute(
        "update email_rewards set parked_points = null, parked_bonus = 0, parking = null, parked_at = null \
         where email_hmac in \
         (select email_hmac from email_rewards where parked_at <= ?1 order by parked_at limit ?2)",
        (tx.now.minus(age).0, limit),
    )
}

struct Parked {
    points: i64,
    /// The part that was a signup bonus.
    bonus: i64,
    name: String,
    at: Timestamp,
}

fn clear_in(tx: &Write<'_>, email: EmailHmac) -> Result<()> {
    let sql = "update email_rewards set parked_points = null, parked_bonus = 0, parking = null, parked_at = null \
               where email_hmac = ?1";
    tx.execute(sql, [email.0]).map(drop)
}

/// Returns `None` for an unknown address, and `Some(None)` for one without parked points.
#[expect(clippy::option_option, reason = "a known address without parked points differs from an unknown one")]
fn find_in(tx: &Read<'_>, email: EmailHmac) -> Result<Option<Option<Parked>>> {
    let sql = "select parked_points, parked_bonus, parking, parked_at from email_rewards where email_hmac = ?1";
    tx.first(sql, [email.0], |row| match row.get(0)? {
        Some(points) => Ok(Some(Parked { points, bonus: row.get(1)?, name: row.get(2)?, at: Timestamp(row.get(3)?) })),
        None => Ok(None),
    })
}
