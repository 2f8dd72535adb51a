//! Sliding-window limits counted over stored rows, so that neither a restart nor another process resets them.

use std::time::Duration;

use crate::{
    error::{Code, Error, RateLimit, Result},
    store::{Read, SqlParameter},
    types::Timestamp,
};

/// The window of the limits on model calls and violations.
pub const HOUR: Duration = Duration::from_hours(1);

/// Maximum number of surplus records that a write purges. More than one, so that a lowered limit takes effect in time.
pub const PURGE_BATCH: u32 = 16;

/// A limit on the number of rows in a period.
pub struct Window<K> {
    pub limit: RateLimit,
    /// SQL that selects the time of the row of key `?1` with `?2` newer rows. Ignores rows after now (`?3`), which a clock
    /// that ran ahead left behind.
    pub newest_first: &'static str,
    pub key: K,
}

/// The use of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowUse {
    pub limit: RateLimit,
    /// Further rows that the window accepts.
    pub remaining: u32,
    /// Time until the oldest row leaves the window. `None` for an empty one.
    pub frees_after: Option<Duration>,
}

impl<K: SqlParameter> Window<K> {
    /// Returns the time until the window accepts another row.
    pub fn opens_after_in(&self, tx: &Read<'_>) -> Result<Duration> {
        let Some(newer) = self.limit.quota.checked_sub(1) else { return Ok(self.limit.window) };
        Ok(self.leaves_after_in(tx, newer)?.unwrap_or_default())
    }

    /// Returns the use of the window. Finds the oldest of its rows in steps, so that a window of hundreds costs a few
    /// short reads.
    pub fn use_in(&self, tx: &Read<'_>) -> Result<WindowUse> {
        let (mut used, mut above, mut frees_after) = (0, self.limit.quota, None);
        while used < above {
            let newer = used + (above - used) / 2;
            match self.leaves_after_in(tx, newer)? {
                Some(wait) => (used, frees_after) = (newer + 1, Some(wait)),
                None => above = newer,
            }
        }
        Ok(WindowUse { limit: self.limit, remaining: self.limit.quota - used, frees_after })
    }

    /// Returns the time until the row that `newer` rows follow leaves the window, or `None` if it is not in it.
    fn leaves_after_in(&self, tx: &Read<'_>, newer: u32) -> Result<Option<Duration>> {
        let row: Option<i64> = tx.first(self.newest_first, (&self.key, newer, tx.now.0), |row| row.get(0))?;
        let wait = row.map(|time| Timestamp(time).plus(self.limit.window).since(tx.now));
        Ok(wait.filter(|wait| !wait.is_zero()))
    }
}

/// Checks that every window accepts another row.
///
/// # Errors
/// As [`require_open`].
pub fn require_open_in<K: SqlParameter>(tx: &Read<'_>, windows: &[Window<K>]) -> Result<()> {
    let waits = windows.iter().map(|window| Ok((window.limit, window.opens_after_in(tx)?)));
    require_open(waits.collect::<Result<Vec<_>>>()?)
}

/// Checks that every limit allows another row now, given the time until it does.
///
/// # Errors
/// `too_many_requests`, with the longest of these times and its limit.
pub fn require_open(waits: impl IntoIterator<Item = (RateLimit, Duration)>) -> Result<()> {
    let longest = waits.into_iter().reduce(|longest, other| if other.1 > longest.1 { other } else { longest });
    match longest {
        Some((limit, wait)) if !wait.is_zero() => {
            Err(Error::new(Code::TooManyRequests).retry_after(wait).exceeding(limit))
        }
        _ => Ok(()),
    }
}
