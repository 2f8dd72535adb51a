//! Names states of a database, under which values read from it can be cached.

use std::sync::atomic::{AtomicU64, Ordering};

/// Names a state of one database, under which cached values are valid. Reads of a file with equal ids see the same data.
/// Those of a server are at most [`SNAPSHOT_AGE`](super::SNAPSHOT_AGE) apart, and this process committed nothing
/// between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotId {
    store: u64,
    number: u64,
    watched: Option<i64>,
}

impl SnapshotId {
    pub(super) fn new(store: u64, number: u64) -> Self {
        Self { store, number, watched: None }
    }

    pub(super) fn with_watched(self, watched: Option<i64>) -> Self {
        Self { watched, ..self }
    }

    /// Returns the number that [`Store::watch`](super::Store::watch) reads, if the last commit of this process read it and
    /// made this state.
    pub fn watched(self) -> Option<i64> {
        self.watched
    }
}

/// Returns a number that no other store of this process has.
pub(super) fn new_store_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
