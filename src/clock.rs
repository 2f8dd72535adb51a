//! The clock of the service.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::types::{Timestamp, milliseconds};

/// The only reader of the system clock. Clones share one offset.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    /// Milliseconds by which this clock is behind the system clock.
    behind: Arc<AtomicI64>,
}

impl Clock {
    pub fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(milliseconds(since) - self.behind.load(Ordering::Relaxed))
    }

    /// Returns the time of this clock at an instant of another machine's system clock.
    pub fn at_database(&self, system: Timestamp) -> Timestamp {
        Timestamp(system.0 - self.behind.load(Ordering::Relaxed))
    }

    /// Sets the clock back, so that demo data in the past can be created by the normal operations.
    pub fn set_back(&self, by: Duration) {
        self.behind.store(milliseconds(by), Ordering::Relaxed);
    }
}
