//! The ids of the states that reads on a server see.

use std::{
    sync::{
        Mutex, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use crate::{
    concurrency::lock::lock_unpoisoned,
    store::{SNAPSHOT_AGE, SnapshotId, snapshot_id::new_store_number},
};

pub(super) struct Snapshots {
    /// Identifies this store in the process.
    store: u64,
    opened: Instant,
    /// Counts the commits of this process.
    commits: AtomicU64,
    /// Reads the watched number.
    watch: OnceLock<&'static str>,
    /// The number as the last commit read it, with the state that the commit made.
    watched: Mutex<Option<(u64, i64)>>,
}

impl Snapshots {
    pub(super) fn new() -> Self {
        Self {
            store: new_store_number(),
            opened: Instant::now(),
            commits: AtomicU64::default(),
            watch: OnceLock::default(),
            watched: Mutex::default(),
        }
    }

    /// Lets each commit read a number in its transaction. Only the first query counts.
    pub(super) fn watch(&self, sql: &'static str) {
        let _ = self.watch.set(sql);
    }

    /// Returns the statements that end a transaction.
    pub(super) fn commit(&self) -> String {
        self.watch.get().map_or_else(|| "commit".to_owned(), |sql| format!("{sql}; commit"))
    }

    /// Begins another state after a commit, which may have failed.
    pub(super) fn advance(&self, watched: Option<i64>) {
        let commits = self.commits.load(Ordering::Relaxed) + 1;
        *lock_unpoisoned(&self.watched) = watched.map(|watched| (self.state(commits), watched));
        self.commits.store(commits, Ordering::Release);
    }

    /// Returns the id of a read that begins now. It changes with each commit of this process, and often enough for those
    /// of other copies.
    pub(super) fn current(&self) -> SnapshotId {
        let state = self.state(self.commits.load(Ordering::Acquire));
        let watched = lock_unpoisoned(&self.watched).filter(|(made, _)| *made == state);
        SnapshotId::new(self.store, state).with_watched(watched.map(|(_, watched)| watched))
    }

    fn state(&self, commits: u64) -> u64 {
        let period = self.opened.elapsed().as_millis() / SNAPSHOT_AGE.as_millis();
        commits << 32 | u64::try_from(period).unwrap_or_default() & u64::from(u32::MAX)
    }
}
