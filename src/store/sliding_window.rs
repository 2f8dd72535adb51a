//! Sliding-window limits counted over stored rows, so that neither a restart nor another process resets them.

use std::time::Duration;

use rusqlite::Params;

use crate::{
    error::{Code, Error, Result},
    store::Read,
    types::Timestamp,
};

/// The window of the limits on model calls and violations.
pub const HOUR: Duration = Duration::from_hours(1);

/// Maximum number of surplus records that a write purges. More than one, so that a lowered limit takes effect in time.
pub const PURGE_BATCH: u32 = 16;

/// A limit on the number of rows in a period.
pub struct Window<K> {
    /// SQL for the time of the row of key `?1` that `?2` newer rows follow. It ignores rows after now (`?3`), which a
    /// clock that ran ahead left behind.
    pub newest_first: &'static str,
    pub key: K,
    pub allowed: u32,
    pub length: Duration,
}

impl<K> Window<K>
where
    for<'key> (&'key K, u32, i64): Params,
{
    /// Returns the time until the window accepts another row.
    pub fn opens_after_in(&self, tx: &Read<'_>) -> Result<Duration> {
        let Some(newer) = self.allowed.checked_sub(1) else { return Ok(self.length) };
        let oldest: Option<i64> = tx.first(self.newest_first, (&self.key, newer, tx.now.0), |row| row.get(0))?;
        Ok(oldest.map_or(Duration::ZERO, |oldest| Timestamp(oldest).plus(self.length).since(tx.now)))
    }
}

/// Checks that every window accepts another row.
///
/// # Errors
/// `too_many_requests`, with the time until all windows do.
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
