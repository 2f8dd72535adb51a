//! Verification codes, and the budgets for sending them.
//!
//! A code is stored as an HMAC under the server key, at most one per address and purpose, and allows a few attempts.
//! The address is an HMAC too: records of sends outlive an account by some days for the budgets, and must not identify
//! a deleted user. Budgets are rolling windows over stored rows and counts, so that a restart, another process or
//! another client address resets nothing. An address without a code fails exactly like one with another code: both write
//! a failure, so that the time is the same too. Other clients than the one that requested a code may use up only some of
//! its attempts. Otherwise anybody could lock a known number out.

mod counts;
pub mod masking;
pub mod messages;
mod networks;
mod records;

use std::time::Duration;

use subtle::ConstantTimeEq;

use crate::{
    config::AuthConfig,
    error::{Code, Error, RateLimit, Result},
    keys::ServerKey,
    metrics::Counter,
    store::{
        Later, Read, Write,
        sliding_window::{self, HOUR, WindowUse},
    },
    types::{Secret, Timestamp, named_enum},
};

use counts::{ALL, CountedEvent, CountedWindow, Totals};

pub use networks::{ClientNetworks, client_network};
pub use records::{
    CodeSend, LiveCode, StoredCode, count_in, delete_in, list_after_in, list_expired_after_in, list_live_in,
    list_sends_in,
};

const DAY: Duration = Duration::from_hours(24);
/// The limits of the networks around a client, as multiples of the client's limit.
const WIDE: u32 = 4;
const WIDEST: u32 = 8;
/// The part of the day's remaining budget that the networks around a client may have spent.
const SHARE: u32 = 4;
/// Attempts at a code that clients in other networks may use up.
const ATTEMPTS_ELSEWHERE: u32 = 2;

named_enum! {
    /// The purpose of a code. A code is valid for its own purpose only.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Purpose {
        SignIn = "sign_in",
        /// Adds or changes an address of an account.
        Address = "address",
        /// Authorises the cancellation of an account.
        Cancellation = "cancellation",
    }
}

/// Counts of code outcomes since the start.
#[derive(Debug, Default)]
pub struct CodeMetrics {
    /// Requested and not refused by a limit.
    pub asked: Counter,
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
pub fn count_recent_sends_in(tx: &Read<'_>, limits: &AuthConfig) -> Result<u32> {
    Ok(window_of_day(limits).state_in(tx)?.0)
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

/// A reservation in the sending budgets for one message.
#[derive(Clone, Debug)]
pub struct SendReservation {
    id: i64,
    at: Timestamp,
    client: ClientNetworks,
    /// The codes that the client has left in its hour.
    pub client_use: WindowUse,
}

/// Reserves one message in every budget. Logs a warning when half or all of the daily budget is spent.
///
/// # Errors
/// `too_many_requests`, with the time until the last exhausted window opens again.
pub fn reserve_in(
    tx: &Write<'_>,
    limits: &AuthConfig,
    recipient: &AddressHmac,
    client: &ClientNetworks,
) -> Result<SendReservation> {
    let Spent { of_day, of_client } = require_budget_in(tx, limits, recipient, client)?;
    let spent = of_day.saturating_add(1);
    let id = tx.insert(
        "insert into code_sends (address, client_network, sent_at) values (?1, ?2, ?3)",
        (recipient.0.as_str(), &client.own, tx.now.0),
    )?;
    counts::add_in(tx, CountedEvent::Sent, client.all().chain([ALL]))?;
    let budget = limits.sends_per_day;
    if spent == budget / 2 || spent == budget {
        tracing::warn!(spent, budget, "half or all of the daily budget for verification codes is spent");
    }
    let limit = client_hourly_limit(limits);
    let client_use = match of_client {
        0 => WindowUse::unused(limit).with_another(),
        _ => client_use_in(tx, limits, client)?,
    };
    Ok(SendReservation { id, at: tx.now, client: client.clone(), client_use })
}

/// The codes sent so far.
#[derive(Clone, Copy, Debug)]
pub struct Spent {
    /// To all in the day.
    of_day: u32,
    /// To the client in the hour.
    of_client: u32,
}

/// Checks that every budget allows another message, and returns how much is spent. Reserves nothing.
///
/// # Errors
/// As [`reserve_in`].
pub fn require_budget_in(
    tx: &Read<'_>,
    limits: &AuthConfig,
    recipient: &AddressHmac,
    client: &ClientNetworks,
) -> Result<Spent> {
    let mut waits = waits_of_address_in(tx, limits, recipient)?;
    let day = window_of_day(limits);
    let (of_day, wait) = day.state_in(tx)?;
    let mut spent = Spent { of_day, of_client: 0 };
    waits.push((day.limit, wait));
    let (hourly, daily) = (client_hourly_limit(limits), client_daily_limit(limits));
    let share = share_of_day(limits, of_day);
    let mut asked = Vec::new();
    for ((subject, in_hour), (_, in_day)) in client.limits(hourly.quota).zip(client.limits(daily.quota)) {
        let around = [
            RateLimit { name: "codes-network-hour", quota: in_hour, ..hourly },
            RateLimit { name: "codes-network-day", quota: in_day.min(share), ..daily },
        ];
        let is_client = subject == client.own;
        let of_subject = if is_client { [hourly, daily] } else { around };
        asked.push((is_client, of_subject, Totals::ask_in(tx, CountedEvent::Sent, subject, of_subject)?));
    }
    for (is_client, of_subject, totals) in asked {
        let states = totals.states_in(tx)?;
        if is_client {
            spent.of_client = states[0].0;
        }
        waits.extend(of_subject.into_iter().zip(states.map(|(_, wait)| wait)));
    }
    sliding_window::require_open(waits)?;
    Ok(spent)
}

/// Returns the time until each limit of an address allows another message.
fn waits_of_address_in(
    tx: &Read<'_>,
    limits: &AuthConfig,
    recipient: &AddressHmac,
) -> Result<Vec<(RateLimit, Duration)>> {
    let limits = [resend_limit(limits), hourly_limit(limits), daily_limit(limits)];
    let newest_first =
        "select sent_at from code_sends where address = ?1 and sent_at <= ?2 order by sent_at desc limit ?3";
    let most = limits.iter().map(|limit| limit.quota).max().unwrap_or_default();
    let sends: Vec<i64> = tx.all(newest_first, (recipient.0.as_str(), tx.now.0, most), |row| row.get(0))?;
    let wait = |limit: RateLimit| match usize::try_from(limit.quota) {
        Ok(0) => limit.window,
        Ok(quota) => sends.get(quota - 1).map_or(Duration::ZERO, |at| Timestamp(*at).plus(limit.window).since(tx.now)),
        Err(_) => Duration::ZERO,
    };
    Ok(limits.into_iter().map(|limit| (limit, wait(limit))).collect())
}

const fn window_of_day(limits: &AuthConfig) -> CountedWindow<'static> {
    let limit = RateLimit { name: "codes-day", quota: limits.sends_per_day, window: DAY };
    CountedWindow { limit, event: CountedEvent::Sent, subject: ALL }
}

/// Returns how many codes a network may have requested in a day. It shrinks with the budget that is left, so that a few
/// networks cannot spend the budget of everybody.
fn share_of_day(limits: &AuthConfig, spent: u32) -> u32 {
    (limits.sends_per_day.saturating_sub(spent) / SHARE).max(limits.sends_per_client_hour)
}

/// Checks that the client's networks have not sent too many wrong codes, and returns how many the client itself has sent. A
/// client may send as many as would use up all attempts at the codes that it may request.
///
/// # Errors
/// `too_many_requests`.
pub fn require_attempt_in(tx: &Read<'_>, limits: &AuthConfig, client: &ClientNetworks) -> Result<u32> {
    WrongCodes::ask_in(tx, limits, client)?.require_in(tx)
}

/// The wrong codes of a client's networks, with the limit of each.
struct WrongCodes<'client>(Vec<(RateLimit, Totals<'client>)>);

impl<'client> WrongCodes<'client> {
    fn ask_in(tx: &Read<'_>, limits: &AuthConfig, client: &'client ClientNetworks) -> Result<Self> {
        let networks = client.limits(attempts_limit(limits).quota).map(|(subject, quota)| {
            let limit = RateLimit { quota, ..attempts_limit(limits) };
            Ok((limit, CountedWindow { limit, event: CountedEvent::Wrong, subject }.ask_in(tx)?))
        });
        networks.collect::<Result<_>>().map(Self)
    }

    fn require_in(self, tx: &Read<'_>) -> Result<u32> {
        let (mut waits, mut of_client) = (Vec::with_capacity(self.0.len()), None);
        for (limit, totals) in self.0 {
            let [(used, wait), _] = totals.states_in(tx)?;
            of_client.get_or_insert(used);
            waits.push((limit, wait));
        }
        sliding_window::require_open(waits)?;
        Ok(of_client.unwrap_or_default())
    }
}

/// Returns the limit on the interval between codes for one address.
pub fn resend_limit(limits: &AuthConfig) -> RateLimit {
    RateLimit { name: "codes-address-interval", quota: 1, window: limits.resend_after }
}

/// Returns the limit on codes for one address in an hour.
pub fn hourly_limit(limits: &AuthConfig) -> RateLimit {
    RateLimit { name: "codes-address-hour", quota: limits.sends_per_address_hour, window: HOUR }
}

/// Returns the limit on codes for one address in a day.
pub fn daily_limit(limits: &AuthConfig) -> RateLimit {
    RateLimit { name: "codes-address-day", quota: limits.sends_per_address_day, window: DAY }
}

/// Returns the limit on codes that one client requests in an hour.
pub fn client_hourly_limit(limits: &AuthConfig) -> RateLimit {
    RateLimit { name: "codes-client-hour", quota: limits.sends_per_client_hour, window: HOUR }
}

/// Returns the limit on codes that one client requests in a day.
pub fn client_daily_limit(limits: &AuthConfig) -> RateLimit {
    RateLimit { name: "codes-client-day", quota: limits.sends_per_client_day, window: DAY }
}

/// Returns the limit on wrong codes that one client sends in an hour.
pub fn attempts_limit(limits: &AuthConfig) -> RateLimit {
    let quota = limits.sends_per_client_hour.saturating_mul(limits.code_tries);
    RateLimit { name: "wrong-codes-client-hour", quota, window: HOUR }
}

/// Returns how many more codes a client may request in the hour.
pub fn client_use_in(tx: &Read<'_>, limits: &AuthConfig, client: &ClientNetworks) -> Result<WindowUse> {
    CountedWindow { limit: client_hourly_limit(limits), event: CountedEvent::Sent, subject: &client.own }.use_in(tx)
}

/// Returns how many more wrong codes a client may send in the hour.
pub fn attempts_use_in(tx: &Read<'_>, limits: &AuthConfig, client: &ClientNetworks) -> Result<WindowUse> {
    CountedWindow { limit: attempts_limit(limits), event: CountedEvent::Wrong, subject: &client.own }.use_in(tx)
}

/// Releases a reservation, because nothing was sent.
pub fn release_in(tx: &Write<'_>, reservation: &SendReservation) -> Result<()> {
    tx.execute("delete from code_sends where id = ?1", [reservation.id])?;
    counts::remove_in(tx, CountedEvent::Sent, reservation.client.all().chain([ALL]), reservation.at)
}

/// A new code for an address and purpose.
#[derive(Clone, Debug)]
pub struct NewCode {
    pub recipient: AddressHmac,
    /// The client that requested it.
    pub client: ClientNetworks,
    pub purpose: Purpose,
    pub hmac: [u8; 32],
    pub lifetime: Duration,
}

/// Stores a code with all its attempts. Replaces an earlier code for the same address and purpose.
pub fn store_in(tx: &Write<'_>, limits: &AuthConfig, code: &NewCode) -> Result<()> {
    tx.execute(
        "insert into codes (address, purpose, code_hmac, tries_left, expires_at, client_network) \
         values (?1, ?2, ?3, ?4, ?5, ?6) \
         on conflict (address, purpose) do update set code_hmac = excluded.code_hmac, \
         tries_left = excluded.tries_left, expires_at = excluded.expires_at, client_network = excluded.client_network",
        (
            &code.recipient.0,
            code.purpose.name(),
            code.hmac,
            limits.code_tries,
            tx.now.plus(code.lifetime).0,
            &code.client.wide,
        ),
    )
    .map(drop)
}

/// Stores the fixed code of a review account. While it is valid, a repeated request does not restore attempts, because
/// the code stays the same.
pub fn store_fixed_in(tx: &Write<'_>, limits: &AuthConfig, code: &NewCode) -> Result<()> {
    let updated = tx.execute(
        "update codes set client_network = ?4 where address = ?1 and purpose = ?2 and expires_at > ?3",
        (&code.recipient.0, code.purpose.name(), tx.now.0, &code.client.wide),
    )?;
    if updated == 0 { store_in(tx, limits, code) } else { Ok(()) }
}

/// Deletes the code if it has not been replaced.
pub fn delete_if_current_in(tx: &Write<'_>, recipient: &AddressHmac, purpose: Purpose, hmac: [u8; 32]) -> Result<()> {
    tx.execute_later(
        "delete from codes where address = ?1 and purpose = ?2 and code_hmac = ?3",
        (&recipient.0, purpose.name(), hmac),
    )
}

/// An attempt to prove an address by its code.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub recipient: AddressHmac,
    pub purpose: Purpose,
    pub hmac: [u8; 32],
    pub client: ClientNetworks,
}

impl Attempt {
    pub fn new(key: &ServerKey, address: &str, purpose: Purpose, code: &str, client: ClientNetworks) -> Self {
        let hmac = compute_hmac(key, address, purpose, code);
        Self { recipient: AddressHmac::new(key, address), purpose, hmac, client }
    }

    /// Deletes the code that was verified.
    pub fn delete_code_in(&self, tx: &Write<'_>) -> Result<()> {
        delete_if_current_in(tx, &self.recipient, self.purpose, self.hmac)
    }
}

/// Verifies and deletes the code, or counts a failed attempt.
///
/// # Errors
/// As [`verify_in`].
pub fn consume_in(tx: &Write<'_>, limits: &AuthConfig, attempt: &Attempt) -> Result<()> {
    verify_in(tx, limits, attempt)?;
    attempt.delete_code_in(tx)
}

/// Verifies the code, or counts a failed attempt. The caller deletes the code in the same operation. Returns how many more
/// wrong codes the client may send.
///
/// # Errors
/// As [`verify_any_in`].
pub fn verify_in(tx: &Write<'_>, limits: &AuthConfig, attempt: &Attempt) -> Result<WindowUse> {
    verify_any_in(tx, limits, &attempt.client, std::slice::from_ref(attempt))
}

/// Verifies a code that one of the addresses may have got for one of the purposes, or counts a failed attempt at each.
///
/// # Errors
/// `invalid_code`, whether the code is wrong, expired, used or out of attempts. The attempt stays counted.
/// `too_many_requests` for a client with too many of them.
pub fn verify_any_in(
    tx: &Write<'_>,
    limits: &AuthConfig,
    client: &ClientNetworks,
    attempts: &[Attempt],
) -> Result<WindowUse> {
    let wrong = WrongCodes::ask_in(tx, limits, client)?;
    let stored = attempts.iter().map(|attempt| TriedCode::ask_in(tx, attempt)).collect::<Result<Vec<_>>>()?;
    let wrong = wrong.require_in(tx)?;
    let mut failed = Vec::with_capacity(attempts.len());
    for (attempt, stored) in attempts.iter().zip(stored) {
        match matches_in(tx, limits, attempt, stored)? {
            Some(true) if wrong == 0 => return Ok(WindowUse::unused(attempts_limit(limits))),
            Some(true) => return attempts_use_in(tx, limits, client),
            Some(false) => failed.push(attempt),
            None => {}
        }
    }
    for attempt in failed {
        tx.execute_later(
            "update codes set tries_left = tries_left - 1 where address = ?1 and purpose = ?2 and tries_left > 0",
            (&attempt.recipient.0, attempt.purpose.name()),
        )?;
    }
    record_failure_in(tx, client)?;
    Err(Error::new(Code::InvalidCode).keeping_changes())
}

/// A stored code that may be tried.
struct TriedCode {
    hmac: [u8; 32],
    tries_left: u32,
    network: String,
}

impl TriedCode {
    fn ask_in(tx: &Read<'_>, attempt: &Attempt) -> Result<Later<Self>> {
        tx.first_later(
            "select code_hmac, tries_left, client_network from codes \
             where address = ?1 and purpose = ?2 and tries_left > 0 and expires_at > ?3",
            (&attempt.recipient.0, attempt.purpose.name(), tx.now.0),
            |row| Ok(Self { hmac: row.get(0)?, tries_left: row.get(1)?, network: row.get(2)? }),
        )
    }
}

/// Compares an attempt with the stored code. Returns nothing without a code that this client may still try.
fn matches_in(tx: &Read<'_>, limits: &AuthConfig, attempt: &Attempt, stored: Later<TriedCode>) -> Result<Option<bool>> {
    let stored = stored.get(tx)?;
    let reserved = limits.code_tries.saturating_sub(ATTEMPTS_ELSEWHERE);
    let stored = stored.filter(|code| code.network == attempt.client.wide || code.tries_left > reserved);
    // Compares even without a stored code, so that the time is the same. An unset hash never passes.
    let expected = stored.as_ref().map_or([0; 32], |code| code.hmac);
    let is_right = bool::from(expected.ct_eq(&attempt.hmac));
    Ok(stored.map(|_| is_right))
}

/// Records a wrong code or an invalid proof of identity.
pub fn record_failure_in(tx: &Write<'_>, client: &ClientNetworks) -> Result<()> {
    counts::add_in(tx, CountedEvent::Wrong, client.all())
}

/// Deletes the codes of an address. Sends stay counted.
pub fn erase_in(tx: &Write<'_>, recipient: &AddressHmac) -> Result<()> {
    tx.execute("delete from codes where address = ?1", [&recipient.0]).map(drop)
}

/// Deletes up to `limit` sends, and as many counts, that are older than every window. Sends that a wrong clock dated further
/// ahead go too: they are deleted in the order of their ids, so that no index by time is needed.
pub fn delete_old_in(tx: &Write<'_>, age: Duration, limit: u32) -> Result<usize> {
    let sends = tx.execute(
        "delete from code_sends where id in (select id from code_sends order by id limit ?2) \
         and (sent_at <= ?1 or sent_at > ?3)",
        (tx.now.minus(age).0, limit, tx.now.plus(age).0),
    )?;
    Ok(sends + counts::delete_older_in(tx, age, limit)?)
}
