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
/// New rows for which a search of surplus ones is made once.
const PURGE_INTERVAL: i64 = 8;
/// A search that skips fewer rows costs little.
const FEW_KEPT: u32 = 512;

/// Returns true if the row with this id is one after which rows beyond the newest `kept` are searched and deleted. The
/// search skips those that are kept, so it is made for one in some rows if they are many.
pub const fn is_purge_due(id: i64, kept: u32) -> bool {
    kept < FEW_KEPT || id % PURGE_INTERVAL == 0
}

/// A limit on the number of rows in a period.
pub struct Window<K> {
    pub limit: RateLimit,
    pub rows: WindowRows,
    pub key: K,
}

/// The statements over the rows of a key (`?1`). They ignore rows after now (`?3`), which a clock that ran ahead left behind.
#[derive(Clone, Copy)]
pub struct WindowRows {
    /// Selects the number of rows after `?2` and the time of the oldest.
    pub within: &'static str,
    /// Selects the time of the row with `?2` newer rows.
    pub newest_first: &'static str,
}

/// The statements over the rows of a table with the column of their time, such as
/// `window_rows!("feedback", "created_at", "user_id = ?1")`.
macro_rules! window_rows {
    ($table:literal, $at:literal, $condition:literal) => {
        $crate::store::sliding_window::WindowRows {
            within: concat!(
                "select count(*), min(",
                $at,
                ") from ",
                $table,
                " where ",
                $condition,
                " and ",
                $at,
                " > ?2 and ",
                $at,
                " <= ?3"
            ),
            newest_first: concat!(
                "select ",
                $at,
                " from ",
                $table,
                " where ",
                $condition,
                " and ",
                $at,
                " <= ?3 order by ",
                $at,
                " desc limit 1 offset ?2"
            ),
        }
    };
}

pub(crate) use window_rows;

/// The use of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowUse {
    pub limit: RateLimit,
    /// Further rows that the window accepts.
    pub remaining: u32,
    /// Time until the oldest row leaves the window. `None` for an empty one.
    pub frees_after: Option<Duration>,
}

impl WindowUse {
    /// Returns the use after another row.
    pub fn with_another(self) -> Self {
        let frees_after = self.frees_after.or(Some(self.limit.window));
        Self { remaining: self.remaining.saturating_sub(1), frees_after, ..self }
    }

    /// Returns the use after some time; none if a row has left the window.
    pub fn after(self, elapsed: Duration) -> Option<Self> {
        let Some(left) = self.frees_after else { return Some(self) };
        let left = left.checked_sub(elapsed).filter(|left| !left.is_zero())?;
        Some(Self { frees_after: Some(left), ..self })
    }

    /// Returns the use of an empty window.
    pub const fn unused(limit: RateLimit) -> Self {
        Self { limit, remaining: limit.quota, frees_after: None }
    }
}

impl<K: SqlParameter> Window<K> {
    /// Checks that the window accepts another row, and returns its use.
    ///
    /// # Errors
    /// As [`require_open`].
    pub fn require_open_in(&self, tx: &Read<'_>) -> Result<WindowUse> {
        let found = self.use_in(tx)?;
        if found.remaining == 0 {
            require_open([(self.limit, self.opens_after_in(tx)?)])?;
        }
        Ok(found)
    }

    /// Returns the time until the window accepts another row.
    pub fn opens_after_in(&self, tx: &Read<'_>) -> Result<Duration> {
        let Some(newer) = self.limit.quota.checked_sub(1) else { return Ok(self.limit.window) };
        if self.use_in(tx)?.remaining > 0 {
            return Ok(Duration::ZERO);
        }
        let last: Option<i64> = tx.first(self.rows.newest_first, (&self.key, newer, tx.now.0), |row| row.get(0))?;
        Ok(last.map_or(Duration::ZERO, |time| self.leaves_after(tx, time)))
    }

    /// Returns the use of the window. Reads its rows, of which there are at most as many as the limit allows, and none of the
    /// older ones.
    pub fn use_in(&self, tx: &Read<'_>) -> Result<WindowUse> {
        let begin = tx.now.minus(self.limit.window);
        let (used, oldest): (u32, Option<i64>) =
            tx.one(self.rows.within, (&self.key, begin.0, tx.now.0), |row| Ok((row.get(0)?, row.get(1)?)))?;
        let frees_after = oldest.map(|time| self.leaves_after(tx, time));
        Ok(WindowUse { limit: self.limit, remaining: self.limit.quota.saturating_sub(used), frees_after })
    }

    fn leaves_after(&self, tx: &Read<'_>, time: i64) -> Duration {
        Timestamp(time).plus(self.limit.window).since(tx.now)
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
