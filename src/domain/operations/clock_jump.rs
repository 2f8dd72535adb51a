//! Whether the clock is believed by what destroys for good because so much time has passed.
//!
//! A machine whose battery is empty, or whose time server is wrong, may be years ahead for a minute, and a minute is
//! enough to delete everything that is kept for a time. So it is remembered until when such work was done. When the
//! clock is days beyond that, either nothing ran for so long or the clock is ahead, and nobody here can tell which.
//! Then it has to stay so for an hour in which somebody may put it right; what is to be deleted can wait for that.

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use crate::{
    app::App, concurrency::lock::lock_unpoisoned, domain::operations::settings, error::Result, store::Read,
    types::Timestamp,
};

const BELIEVED_UNTIL: &str = "clock.believed_until";
/// So far the clock may be beyond what is remembered.
const STRIDE: Duration = Duration::from_hours(48);
/// So long it has to stay so while this process runs.
const PATIENCE: Duration = Duration::from_hours(1);
/// What is remembered need be no newer than this.
const NOTED_EVERY: Duration = Duration::from_mins(10);

/// Since when this process finds the clock far ahead.
#[derive(Debug, Default)]
pub struct Watch(Mutex<Option<Instant>>);

impl Watch {
    /// For how long it was found far ahead; nothing once it is not.
    fn look(&self, is_far_ahead: bool) -> Option<Duration> {
        let mut since = lock_unpoisoned(&self.0);
        *since = is_far_ahead.then(|| since.unwrap_or_else(Instant::now));
        since.map(|since| since.elapsed())
    }
}

/// Whether something may be deleted because it is old.
///
/// # Errors
/// Storage errors.
pub fn is_believed(app: &App) -> Result<bool> {
    let now = app.clock.now();
    let until = app.store.read(believed_until_in)?;
    let waited = app.clock_watch.look(is_far_ahead(until, now));
    if waited.is_some_and(|waited| waited < PATIENCE) {
        let last = until.unwrap_or_default();
        tracing::warn!(%now, %last, "the clock is days ahead of when something was last deleted: nothing is for an hour");
        return Ok(false);
    }
    if until.is_none_or(|until| !until.is_within(NOTED_EVERY, now)) {
        app.store.write(move |tx| settings::put_in(tx, BELIEVED_UNTIL, &now.0.to_string())).wait()?;
    }
    Ok(true)
}

fn believed_until_in(tx: &Read<'_>) -> Result<Option<Timestamp>> {
    Ok(settings::find_in(tx, BELIEVED_UNTIL)?.and_then(|until| until.parse().ok()).map(Timestamp))
}

/// What was never remembered is of an installation that has nothing old yet.
fn is_far_ahead(until: Option<Timestamp>, now: Timestamp) -> bool {
    until.is_some_and(|until| now > until.plus(STRIDE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_a_jump_and_hours_are_not() {
        let until = Some(Timestamp(0));
        assert!(!is_far_ahead(until, Timestamp(0).plus(STRIDE)));
        assert!(is_far_ahead(until, Timestamp(1).plus(STRIDE)));
        assert!(!is_far_ahead(None, Timestamp(i64::MAX)));
        assert!(!is_far_ahead(Some(Timestamp(i64::MAX)), Timestamp(0)), "a clock that was put right is believed");
    }

    #[test]
    fn a_clock_that_was_put_right_has_to_wait_anew() {
        let watch = Watch::default();
        let first = watch.look(true).unwrap();
        assert!(watch.look(true).unwrap() >= first);
        let begun = Instant::now();
        assert_eq!(watch.look(false), None);
        assert!(watch.look(true).unwrap() <= begun.elapsed());
    }
}
