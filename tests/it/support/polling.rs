//! Polling for asynchronous effects.

use std::{
    fmt::Debug,
    time::{Duration, Instant},
};

/// Polls until the condition holds.
#[track_caller]
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    eventually_some(what, || holds().then_some(()));
}

/// Polls until there is a value.
#[track_caller]
pub fn eventually_some<T>(what: &str, mut find: impl FnMut() -> Option<T>) -> T {
    eventually_ok(what, || find().ok_or(()))
}

/// Polls until the condition holds, and panics after `longest`. For effects that a later time-out would cause, too.
#[track_caller]
pub fn soon(what: &str, longest: Duration, mut holds: impl FnMut() -> bool) {
    poll(what, longest, || if holds() { Ok(()) } else { Err(()) });
}

/// Polls until `Ok`, and panics with the last error after a minute.
#[track_caller]
pub fn eventually_ok<T, E: Debug>(what: &str, ask: impl FnMut() -> Result<T, E>) -> T {
    poll(what, Duration::from_mins(1), ask)
}

#[track_caller]
fn poll<T, E: Debug>(what: &str, longest: Duration, mut ask: impl FnMut() -> Result<T, E>) -> T {
    let deadline = Instant::now() + longest;
    loop {
        let started_at = Instant::now();
        match ask() {
            Ok(found) => return found,
            Err(last) => assert!(Instant::now() < deadline, "timed out: {what}; {last:#?}"),
        }
        // Checks use a quarter of the time at most.
        std::thread::sleep((3 * started_at.elapsed()).max(Duration::from_millis(5)));
    }
}
