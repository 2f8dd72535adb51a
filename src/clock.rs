//! The clock of the service.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::types::{Timestamp, milliseconds};

/// The only place that reads the system clock. Clones are one clock.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    /// Milliseconds that this clock is behind the system's.
    behind: Arc<AtomicI64>,
}

impl Clock {
    pub fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(milliseconds(since) - self.behind.load(Ordering::Relaxed))
    }

    /// Sets the clock back, so that a demonstration can have a past that was lived through the real operations.
    pub fn set_back(&self, by: Duration) {
        self.behind.store(milliseconds(by), Ordering::Relaxed);
    }
}
