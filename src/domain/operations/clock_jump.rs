//! A guard against deleting data because the clock jumped ahead.
//!
//! A dead battery or a wrong time server can set the clock years ahead for a minute, which is enough to delete
//! everything past its retention. The database remembers until when the clock was trusted. If the clock is more than
//! two days past that, either the service was off for so long or the clock is wrong. Deletion then waits until the
//! service has run for an hour, so that an operator can correct the clock.

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use crate::{
    concurrency::lock::lock_unpoisoned, core::Core, domain::operations::settings, error::Result, store::Read,
    types::Timestamp,
};

const TRUSTED_UNTIL: &str = "clock.trusted_until";
/// A larger step of the clock is a jump.
const MAX_STEP: Duration = Duration::from_hours(48);
/// The running time after which a jumped clock is trusted.
const WAIT_AFTER_JUMP: Duration = Duration::from_hours(1);
/// The stored time is updated this often.
const STORE_INTERVAL: Duration = Duration::from_mins(10);

/// The guard of one process.
pub struct ClockGuard {
    pub core: Core,
    jump: Jump,
}

/// The moment at which this process first saw the clock too far ahead.
#[derive(Debug, Default)]
struct Jump(Mutex<Option<Instant>>);

impl Jump {
    /// Returns how long the clock has been too far ahead, or nothing if it is not.
    fn update(&self, is_ahead: bool) -> Option<Duration> {
        let mut since = lock_unpoisoned(&self.0);
        *since = is_ahead.then(|| since.unwrap_or_else(Instant::now));
        since.map(|since| since.elapsed())
    }
}

impl ClockGuard {
    pub fn new(core: Core) -> Self {
        Self { core, jump: Jump::default() }
    }

    /// Returns true if data may be deleted because of its age.
    ///
    /// # Errors
    /// Storage errors.
    pub fn is_trusted(&self) -> Result<bool> {
        let store = &self.core.store;
        let now = self.core.clock.now();
        let until = store.read(trusted_until_in)?;
        let ahead_for = self.jump.update(is_far_ahead(until, now));
        if ahead_for.is_some_and(|duration| duration < WAIT_AFTER_JUMP) {
            let trusted_until = until.unwrap_or_default();
            tracing::warn!(%now, %trusted_until, "the clock jumped ahead by days: deletion by age is paused for an hour");
            return Ok(false);
        }
        if until.is_none_or(|until| !until.is_within(STORE_INTERVAL, now)) {
            store.write(move |tx| settings::put_in(tx, TRUSTED_UNTIL, &now.0.to_string())).wait()?;
        }
        Ok(true)
    }
}

fn trusted_until_in(tx: &Read<'_>) -> Result<Option<Timestamp>> {
    Ok(settings::find_in(tx, TRUSTED_UNTIL)?.and_then(|until| until.parse().ok()).map(Timestamp))
}

/// Returns false if no time is stored: a new installation has nothing old to delete.
fn is_far_ahead(until: Option<Timestamp>, now: Timestamp) -> bool {
    until.is_some_and(|until| now > until.plus(MAX_STEP))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_steps_of_more_than_two_days_are_jumps() {
        let until = Some(Timestamp(0));
        assert!(!is_far_ahead(until, Timestamp(0).plus(MAX_STEP)));
        assert!(is_far_ahead(until, Timestamp(1).plus(MAX_STEP)));
        assert!(!is_far_ahead(None, Timestamp(i64::MAX)));
        assert!(!is_far_ahead(Some(Timestamp(i64::MAX)), Timestamp(0)), "a corrected clock is trusted");
    }

    #[test]
    fn correcting_the_clock_restarts_the_wait() {
        let jump = Jump::default();
        let first = jump.update(true).unwrap();
        assert!(jump.update(true).unwrap() >= first);
        let corrected_at = Instant::now();
        assert_eq!(jump.update(false), None);
        assert!(jump.update(true).unwrap() <= corrected_at.elapsed());
    }
}
