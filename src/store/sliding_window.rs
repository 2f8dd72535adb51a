//! Rolling windows: so much in so long a time, counted over rows, so that a restart, another process or another caller
//! resets nothing.

use std::time::Duration;

use rusqlite::Params;

use crate::{
    error::{Code, Error, Result},
    store::Read,
    types::Timestamp,
};

/// How long the window is in which a user's model calls and refusals are counted.
pub const HOUR: Duration = Duration::from_hours(1);

/// How many records that are too many go at once: more than come, so that those of before there was a limit go too.
pub const PURGE_BATCH: u32 = 16;

/// So many in so long a time, of something that has rows.
pub struct Window<K> {
    /// Asks when the row was made that `?2` newer ones of the key `?1` follow, of those that were made by now, `?3`:
    /// what a clock that was ahead left does not count.
    pub newest_first: &'static str,
    pub key: K,
    pub allowed: u32,
    pub length: Duration,
}

impl<K> Window<K>
where
    for<'key> (&'key K, u32, i64): Params,
{
    /// How long until the window takes one more: the oldest that still counts must leave.
    pub fn opens_after_in(&self, tx: &Read<'_>) -> Result<Duration> {
        let Some(newer) = self.allowed.checked_sub(1) else { return Ok(self.length) };
        let oldest: Option<i64> = tx.first(self.newest_first, (&self.key, newer, tx.now.0), |row| row.get(0))?;
        Ok(oldest.map_or(Duration::ZERO, |oldest| Timestamp(oldest).plus(self.length).since(tx.now)))
    }
}

/// Refuses one more than some window takes.
///
/// # Errors
/// `too_many_requests`, with the time until the last of the full windows opens.
pub fn require_open_in<K>(tx: &Read<'_>, windows: &[Window<K>]) -> Result<()>
where
    for<'key> (&'key K, u32, i64): Params,
{
    let mut wait = Duration::ZERO;
    for window in windows {
        wait = wait.max(window.opens_after_in(tx)?);
    }
    if wait.is_zero() { Ok(()) } else { Err(Error::new(Code::TooManyRequests).retry_after(wait)) }
}
