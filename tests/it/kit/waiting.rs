//! Waiting for what happens by itself.

use std::time::{Duration, Instant};

/// Waits until something holds. A minute is far beyond what anything here takes, on a slow machine too.
#[track_caller]
pub fn eventually(what: &str, holds: impl Fn() -> bool) {
    found_eventually(what, || holds().then_some(()));
}

/// Asks until there is an answer.
#[track_caller]
pub fn found_eventually<T>(what: &str, find: impl Fn() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_mins(1);
    loop {
        if let Some(found) = find() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
