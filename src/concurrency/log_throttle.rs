//! Throttle of the log lines that anybody can cause, so that strangers can neither fill the disk nor hide other lines.
//!
//! The first event of a kind is logged as its example, and opens a window of a minute. Events within the window are
//! counted only, and one line tells their number when it ends.

use std::{
    collections::BTreeMap,
    sync::Mutex,
    time::{Duration, Instant},
};

use super::lock::lock_unpoisoned;

const WINDOW: Duration = Duration::from_mins(1);

/// A message and its variant, such as the reason. Both are constants, so that strangers cannot add kinds.
type Kind = (&'static str, &'static str);

/// The open windows by kind.
#[derive(Default)]
pub struct LogThrottle(Mutex<BTreeMap<Kind, Suppressed>>);

/// The events of a window that were not logged.
struct Suppressed {
    since: Instant,
    count: u64,
}

impl LogThrottle {
    /// Returns true if the caller must log the event. Counts it otherwise.
    pub fn admits(&self, message: &'static str, variant: &'static str) -> bool {
        self.admits_at((message, variant), Instant::now())
    }

    fn admits_at(&self, kind: Kind, now: Instant) -> bool {
        let mut windows = lock_unpoisoned(&self.0);
        if let Some(open) = windows.get_mut(&kind) {
            open.count += 1;
            return false;
        }
        windows.insert(kind, Suppressed { since: now, count: 0 });
        true
    }

    /// Closes the windows that have ended and logs their counts.
    pub fn log_ended(&self) {
        for ((message, variant), count) in self.take_ended(Instant::now()) {
            tracing::warn!(message_of = message, variant, count, "lines of one kind were left out for a minute");
        }
    }

    fn take_ended(&self, now: Instant) -> Vec<(Kind, u64)> {
        let mut ended = Vec::new();
        lock_unpoisoned(&self.0).retain(|kind, open| {
            let is_open = now.saturating_duration_since(open.since) < WINDOW;
            if !is_open && open.count > 0 {
                ended.push((*kind, open.count));
            }
            is_open
        });
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_logged_once_a_minute_and_the_rest_counted() {
        let (throttle, start) = (LogThrottle::default(), Instant::now());
        let (junk, other) = (("rejected", "junk"), ("rejected", "other"));
        let admitted = [junk, junk, other, junk].map(|kind| throttle.admits_at(kind, start));
        assert_eq!(admitted, [true, false, true, false]);
        assert_eq!(throttle.take_ended(start + WINDOW / 2), []);
        assert_eq!(throttle.take_ended(start + WINDOW), [(junk, 2)]);
        assert!(throttle.admits_at(junk, start + WINDOW));
    }
}
