//! Verification codes, and the budgets for sending them.
//!
//! A code is stored as an HMAC under the server key, at most one per address and purpose, and allows a few attempts.
//! The address is an HMAC too: records of sends outlive an account by some days for the budgets, and must not identify
//! a deleted user. Budgets are rolling windows over rows, so that a restart, another process or another client address
//! resets nothing. An address without a code fails exactly like one with another code.

mod records;

use std::{net::IpAddr, time::Duration};

use subtle::ConstantTimeEq;

use crate::{
    config::Auth,
    error::{Code, Error, Result},
    keys::ServerKey,
    metrics::Counter,
    store::{
        Read, Write,
        sliding_window::{self, HOUR, Window},
    },
    types::{Secret, named_enum},
};

pub use records::{
    CodeSend, LiveCode, StoredCode, count_in, delete_in, list_after_in, list_expired_after_in, list_live_in,
    list_sends_in,
};

const DAY: Duration = Duration::from_hours(24);

named_enum! {
    /// The purpose of a code. A code is valid for its own purpose only.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Purpose {
        SignIn = "sign_in",
        /// Adds or changes an address of an account.
        Address = "address",
    }
}

/// Counts of code outcomes since the start.
#[derive(Debug, Default)]
pub struct CodeMetrics {
    /// Accepted by a provider.
    pub sent: Counter,
    /// Verified.
    pub verified: Counter,
    /// Wrong, expired, used or out of attempts.
    pub rejected: Counter,
}

impl CodeMetrics {
    /// Counts the outcome of a verification and returns it.
    pub fn count_verification<T>(&self, outcome: Result<T>) -> Result<T> {
        match &outcome {
            Ok(_) => self.verified.add(1),
            Err(_) => self.rejected.add(1),
        }
        outcome
    }
}

/// Returns the number of codes sent in the last 24 hours.
pub fn count_recent_sends_in(tx: &Read<'_>) -> Result<u64> {
    tx.one("select count(*) from code_sends where sent_at > ?1", [tx.now.minus(DAY).0], |row| row.get(0).map(u32::into))
}

/// Computes the stored HMAC of a code, bound to the address and the purpose.
pub fn compute_hmac(key: &ServerKey, address: &str, purpose: Purpose, code: &str) -> [u8; 32] {
    key.authenticate(&["code", purpose.name(), address, code])
}

/// The HMAC of an address, under which codes and sends are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressHmac(String);

impl AddressHmac {
    pub fn new(key: &ServerKey, address: &str) -> Self {
        Self(Secret::from_bytes(&key.authenticate(&["recipient", address])).reveal().to_owned())
    }
}

/// Returns the network of a client for rate limits: the IPv4 address, or the /64 of an IPv6 address, because one
/// subscriber has a whole /64.
pub fn client_network(client: IpAddr) -> String {
    match client.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            format!("{a:x}:{b:x}:{c:x}:{d:x}::/64")
        }
    }
}

/// A reservation in the sending budgets for one message.
#[derive(Clone, Copy, Debug)]
pub struct SendReservation(i64);

/// Reserves one message in every budget.
///
/// # Errors
/// `too_many_requests`, with the time until the last exhausted window opens again.
pub fn reserve_in(
    tx: &Write<'_>,
    limits: &Auth,
    recipient: &AddressHmac,
    client_network: &str,
) -> Result<SendReservation> {
    require_budget_in(tx, limits, recipient, client_network)?;
    let id = tx.one(
        "insert into code_sends (address, client_network, sent_at) values (?1, ?2, ?3) returning id",
        (recipient.0.as_str(), client_network, tx.now.0),
        |row| row.get(0),
    )?;
    warn_of_budget_use(tx, limits.sends_per_day)?;
    Ok(SendReservation(id))
}

/// Checks that every budget allows another message. Reserves nothing.
///
/// # Errors
/// As [`reserve_in`].
pub fn require_budget_in(tx: &Read<'_>, limits: &Auth, recipient: &AddressHmac, client_network: &str) -> Result<()> {
    let address = recipient.0.as_str();
    let per_address =
        "select sent_at from code_sends where address = ?1 and sent_at <= ?3 order by sent_at desc limit 1 offset ?2";
    let per_client = "select sent_at from code_sends where client_network = ?1 and sent_at <= ?3 order by sent_at desc limit 1 offset ?2";
    let over_all =
        "select sent_at from code_sends where ?1 = '' and sent_at <= ?3 order by sent_at desc limit 1 offset ?2";
    let windows = [
        (per_address, address, 1, limits.resend_after),
        (per_address, address, limits.sends_per_address_hour, HOUR),
        (per_address, address, limits.sends_per_address_day, DAY),
        (per_client, client_network, limits.sends_per_client_hour, HOUR),
        (per_client, client_network, limits.sends_per_client_day, DAY),
        (over_all, "", limits.sends_per_day, DAY),
    ];
    let windows = windows.map(|(newest_first, key, allowed, length)| Window { newest_first, key, allowed, length });
    sliding_window::require_open_in(tx, &windows)
}

/// Logs a warning when half or all of the daily budget is spent.
fn warn_of_budget_use(tx: &Write<'_>, budget: u32) -> Result<()> {
    let spent: u32 = tx.one(
        "select count(*) from (select 1 from code_sends where sent_at > ?1 limit ?2)",
        (tx.now.minus(DAY).0, budget),
        |row| row.get(0),
    )?;
    if spent == budget / 2 || spent == budget {
        tracing::warn!(spent, budget, "half or all of the daily budget for verification codes is spent");
    }
    Ok(())
}

/// Releases a reservation, because nothing was sent.
pub fn release_in(tx: &Write<'_>, reservation: SendReservation) -> Result<()> {
    tx.execute("delete from code_sends where id = ?1", [reservation.0]).map(drop)
}

/// A new code for an address and purpose.
#[derive(Clone, Debug)]
pub struct NewCode {
    pub recipient: AddressHmac,
    pub purpose: Purpose,
    pub hmac: [u8; 32],
    pub lifetime: Duration,
}

/// Stores a code with all its attempts. Replaces an earlier code for the same address and purpose.
pub fn store_in(tx: &Write<'_>, limits: &Auth, code: &NewCode) -> Result<()> {
    tx.execute(
        "insert into codes (address, purpose, code_hmac, tries_left, expires_at) values (?1, ?2, ?3, ?4, ?5) \
         on conflict (address, purpose) do update set code_hmac = excluded.code_hmac, \
         tries_left = excluded.tries_left, expires_at = excluded.expires_at",
        (&code.recipient.0, code.purpose.name(), code.hmac, limits.code_tries, tx.now.plus(code.lifetime).0),
    )
    .map(drop)
}

/// Stores the fixed code of a review account, unless it is still valid. A repeated request does not restore attempts,
/// because it costs no budget and would allow unlimited guesses.
pub fn store_fixed_in(tx: &Write<'_>, limits: &Auth, code: &NewCode) -> Result<()> {
    let is_live: Option<bool> = tx.first(
        "select true from codes where address = ?1 and purpose = ?2 and expires_at > ?3",
        (&code.recipient.0, code.purpose.name(), tx.now.0),
        |row| row.get(0),
    )?;
    if is_live.is_none() {
        store_in(tx, limits, code)?;
    }
    Ok(())
}

/// Deletes the code if it has not been replaced.
pub fn delete_if_current_in(tx: &Write<'_>, recipient: &AddressHmac, purpose: Purpose, hmac: [u8; 32]) -> Result<()> {
    tx.execute(
        "delete from codes where address = ?1 and purpose = ?2 and code_hmac = ?3",
        (&recipient.0, purpose.name(), hmac),
    )
    .map(drop)
}

/// Verifies and deletes the code, or counts a failed attempt.
///
/// # Errors
/// As [`verify_in`].
pub fn consume_in(tx: &Write<'_>, recipient: &AddressHmac, purpose: Purpose, hmac: [u8; 32]) -> Result<()> {
    verify_in(tx, recipient, purpose, hmac)?;
    delete_if_current_in(tx, recipient, purpose, hmac)
}

/// Verifies the code, or counts a failed attempt. The caller deletes the code in the same operation.
///
/// # Errors
/// `invalid_code`, whether the code is wrong, expired, used or out of attempts. The attempt stays counted.
pub fn verify_in(tx: &Write<'_>, recipient: &AddressHmac, purpose: Purpose, hmac: [u8; 32]) -> Result<()> {
    let stored: Option<[u8; 32]> = tx.first(
        "select code_hmac from codes where address = ?1 and purpose = ?2 and tries_left > 0 and expires_at > ?3",
        (&recipient.0, purpose.name(), tx.now.0),
        |row| row.get(0),
    )?;
    // Compares without a stored code too, so that the time is the same. An unset hash never passes.
    let expected = stored.unwrap_or([0; 32]);
    if bool::from(expected.ct_eq(&hmac)) && stored.is_some() {
        return Ok(());
    }
    tx.execute(
        "update codes set tries_left = tries_left - 1 where address = ?1 and purpose = ?2 and tries_left > 0",
        (&recipient.0, purpose.name()),
    )?;
    Err(Error::new(Code::InvalidCode).keeping_changes())
}

/// Deletes the codes of an address. Sends stay counted.
pub fn erase_in(tx: &Write<'_>, recipient: &AddressHmac) -> Result<()> {
    tx.execute("delete from codes where address = ?1", [&recipient.0]).map(drop)
}

/// Deletes up to `limit` sends that are older than every window.
pub fn delete_old_sends_in(tx: &Write<'_>, age: Duration, limit: u32) -> Result<usize> {
    tx.execute(
        "delete from code_sends where id in \
         (select id from code_sends where sent_at <= ?1 order by sent_at limit ?2)",
        (tx.now.minus(age).0, limit),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifies_clients_by_ipv4_address_or_ipv6_network() {
        let network = |text: &str| client_network(text.parse().unwrap());
        assert_eq!(network("203.0.113.9"), "203.0.113.9");
        assert_eq!(network("::ffff:203.0.113.9"), "203.0.113.9");
        assert_eq!(network("2001:db8:1:2:3:4:5:6"), network("2001:db8:1:2:ffff::1"));
        assert_ne!(network("2001:db8:1:2::1"), network("2001:db8:1:3::1"));
    }
}
