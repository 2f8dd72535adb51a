//! Cancellation of blocking calls.
//!
//! The transport waits in one call for as long as its limits allow. This module checks in between: a thread whose
//! caller has disconnected stops waiting and drops the connection, which ends the provider's work, too.

use std::{
    cell::RefCell,
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use ureq::{
    Error,
    unversioned::transport::{self, Buffers, NextTimeout, Transport},
};

/// Interval between two checks for cancellation.
pub const LOOK_UP_EVERY: Duration = Duration::from_millis(250);

/// Returns true while the caller still waits for the result.
pub type Wanted = Arc<dyn Fn() -> bool + Send + Sync>;

thread_local! {
    static WANTED: RefCell<Option<Wanted>> = const { RefCell::new(None) };
}

/// Runs work whose blocking calls fail as cancelled soon after the caller disconnected.
pub fn while_wanted<T>(is_wanted: Wanted, work: impl FnOnce() -> T) -> T {
    waiting_for(Some(is_wanted), work)
}

/// Runs a part of such work without cancellation: it is short, and others depend on its outcome.
pub fn to_its_end<T>(work: impl FnOnce() -> T) -> T {
    waiting_for(None, work)
}

fn waiting_for<T>(wanted: Option<Wanted>, work: impl FnOnce() -> T) -> T {
    /// The work may panic, and its thread does other work after it.
    struct Restored(Option<Wanted>);
    impl Drop for Restored {
        fn drop(&mut self) {
            WANTED.set(self.0.take());
        }
    }
    let _restored = Restored(WANTED.replace(wanted));
    work()
}

/// Wraps work for another thread, with this thread's cancellation.
pub(super) fn pass_on<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let wanted = WANTED.with_borrow(Clone::clone);
    move || {
        WANTED.set(wanted);
        work()
    }
}

/// A connection that looks up now and then while it waits.
#[derive(Debug)]
pub(super) struct Attentive(pub(super) Box<dyn Transport>);

impl Transport for Attentive {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.0.buffers()
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        self.0.transmit_output(amount, timeout)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        let Some(is_wanted) = WANTED.with_borrow(Clone::clone) else { return self.0.await_input(timeout) };
        let begun = Instant::now();
        let limit = timeout.for_read();
        loop {
            let after = match limit.after {
                transport::time::Duration::Exact(most) => most.saturating_sub(begun.elapsed()).min(LOOK_UP_EVERY),
                transport::time::Duration::NotHappening => LOOK_UP_EVERY,
            };
            if after.is_zero() {
                return Err(Error::Timeout(limit.reason));
            }
            match self.0.await_input(NextTimeout { after: after.into(), per_read: None, ..limit }) {
                Err(Error::Timeout(_)) if is_wanted() => {}
                Err(Error::Timeout(_)) => return Err(Error::Other(Box::new(Unwanted))),
                outcome => return outcome,
            }
        }
    }

    fn is_open(&mut self) -> bool {
        self.0.is_open()
    }

    fn is_tls(&self) -> bool {
        self.0.is_tls()
    }
}

/// The caller has disconnected.
#[derive(Debug)]
pub(super) struct Unwanted;

impl fmt::Display for Unwanted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("nobody waits for it")
    }
}

impl std::error::Error for Unwanted {}
