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
pub const CANCELLATION_POLL: Duration = Duration::from_millis(250);

/// Returns true while the caller still waits for the result.
pub type CancellationCheck = Arc<dyn Fn() -> bool + Send + Sync>;

thread_local! {
    static CHECK: RefCell<Option<CancellationCheck>> = const { RefCell::new(None) };
}

/// Runs work whose provider calls fail as `Cancelled` soon after `is_wanted` returns false.
pub fn with_cancellation<T>(is_wanted: CancellationCheck, work: impl FnOnce() -> T) -> T {
    with_check(Some(is_wanted), work)
}

/// Runs a part of cancellable work that must complete, because it is short and other callers use its result.
pub fn uncancellable<T>(work: impl FnOnce() -> T) -> T {
    with_check(None, work)
}

fn with_check<T>(wanted: Option<CancellationCheck>, work: impl FnOnce() -> T) -> T {
    /// Restores the check also after a panic, because the thread is reused.
    struct RestoreOnDrop(Option<CancellationCheck>);
    impl Drop for RestoreOnDrop {
        fn drop(&mut self) {
            CHECK.set(self.0.take());
        }
    }
    let _restore = RestoreOnDrop(CHECK.replace(wanted));
    work()
}

/// Wraps work for another thread, with this thread's cancellation.
pub(super) fn inherit_cancellation<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let wanted = CHECK.with_borrow(Clone::clone);
    move || {
        CHECK.set(wanted);
        work()
    }
}

/// A connection that checks for cancellation while it waits.
#[derive(Debug)]
pub(super) struct CancellableTransport(pub(super) Box<dyn Transport>);

impl Transport for CancellableTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.0.buffers()
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        self.0.transmit_output(amount, timeout)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        let Some(is_wanted) = CHECK.with_borrow(Clone::clone) else { return self.0.await_input(timeout) };
        let begun = Instant::now();
        let limit = timeout.for_read();
        loop {
            let after = match limit.after {
                transport::time::Duration::Exact(most) => most.saturating_sub(begun.elapsed()).min(CANCELLATION_POLL),
                transport::time::Duration::NotHappening => CANCELLATION_POLL,
            };
            if after.is_zero() {
                return Err(Error::Timeout(limit.reason));
            }
            match self.0.await_input(NextTimeout { after: after.into(), per_read: None, ..limit }) {
                Err(Error::Timeout(_)) if is_wanted() => {}
                Err(Error::Timeout(_)) => return Err(Error::Other(Box::new(Cancelled))),
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
pub(super) struct Cancelled;

impl fmt::Display for Cancelled {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the caller no longer waits")
    }
}

impl std::error::Error for Cancelled {}
