//! Waiting for what happens by itself.

use std::{
    fmt::Debug,
    time::{Duration, Instant},
};

/// Waits until something holds.
#[track_caller]
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    found_eventually(what, || holds().then_some(()));
}

/// Asks until there is an answer.
#[track_caller]
pub fn found_eventually<T>(what: &str, mut find: impl FnMut() -> Option<T>) -> T {
    settled(what, || find().ok_or(()))
}

/// Asks until it is so, and tells how it was last if it never is. A minute is far beyond what anything here takes, on a
/// slow machine too.
#[track_caller]
pub fn settled<T, E: Debug>(what: &str, mut ask: impl FnMut() -> Result<T, E>) -> T {
    let deadline = Instant::now() + Duration::from_mins(1);
    loop {
        let begun = Instant::now();
        match ask() {
            Ok(found) => return found,
            Err(last) => assert!(Instant::now() < deadline, "waited in vain: {what}; {last:#?}"),
        }
        // What takes long to ask is asked half of the time at most, and leaves the rest to who is waited for.
        std::thread::sleep(begun.elapsed().max(Duration::from_millis(5)));
    }
}
