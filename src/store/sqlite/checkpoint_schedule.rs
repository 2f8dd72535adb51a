//! The writer's schedule of checkpoints: when the WAL is copied, restarted, and truncated after deletions.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use super::{
    background_checkpointer::CheckpointState,
    committer::{Committer, IDLE},
    connection::BUSY_TIMEOUT,
    wal_checkpoint,
};
use crate::store::files::size_of;

/// WAL pages from which the writer uses an idle moment for a checkpoint.
const WELCOME_PAGES: i64 = 2000;
/// WAL pages at which a checkpoint is made under load. A page changed by many commits is copied once, so rare checkpoints
/// cost less.
const DUE_PAGES: i64 = 11_000;
/// Pages that commits may add during a background checkpoint. Beyond that the writer waits for it, so that the WAL stays
/// below [`WAL_TRUNCATED_ABOVE`] on slow disks.
const PAGES_MEANWHILE: i64 = 4_000;
/// Pages until the next attempt to restart the WAL.
const PAGES_UNTIL_RETRY: i64 = 1_000;
/// Attempts in which the writer waits for readers for the full time. If all fail, a long read is running, such as another
/// process's backup, and callers must not wait for it again and again.
const PATIENT_ATTEMPTS: u32 = 6;
/// The WAL keeps its size, because overwriting syncs faster than appending. Above this size it is truncated when free.
pub(super) const WAL_TRUNCATED_ABOVE: u64 = 64 << 20;
/// Timeout for readers to leave the WAL: longer than a sticky snapshot lives, too short to notice.
pub(super) const RESTART_WAIT: Duration = Duration::from_millis(100);
/// The same after [`PATIENT_ATTEMPTS`] and for repeated attempts to truncate. Busy workers end their snapshots sooner.
pub(super) const RESTART_WAIT_BRIEFLY: Duration = Duration::from_millis(10);
/// Interval between attempts while readers release their snapshots.
const READER_POLL: Duration = Duration::from_millis(1);
/// Attempts to truncate the WAL at shutdown if an operation requested it.
const SHUTDOWN_ATTEMPTS: u32 = 50;

/// The schedule of the next checkpoint: WAL pages at which it is welcome, and at which it is due.
#[derive(Clone, Copy)]
pub(super) struct CheckpointSchedule {
    pub(super) welcome_at: i64,
    pub(super) due_at: i64,
    /// Failed attempts since the WAL was last restarted.
    failures: u32,
}

impl Default for CheckpointSchedule {
    fn default() -> Self {
        Self { welcome_at: WELCOME_PAGES, due_at: DUE_PAGES, failures: 0 }
    }
}

impl CheckpointSchedule {
    /// Returns the schedule after a failed attempt at this many pages.
    fn after_failure(self, pages: i64) -> Self {
        let failures = self.failures + 1;
        let distance = if failures < PATIENT_ATTEMPTS { PAGES_UNTIL_RETRY } else { WELCOME_PAGES.max(pages / 4) };
        Self { welcome_at: pages + distance, due_at: pages + distance, failures }
    }

    /// Returns how long the writer may wait for readers.
    fn wait(self) -> Duration {
        if self.failures < PATIENT_ATTEMPTS { RESTART_WAIT } else { RESTART_WAIT_BRIEFLY }
    }

    /// Returns true if the WAL was copied recently and only a reader prevented its restart.
    fn is_retry(self) -> bool {
        (1..PATIENT_ATTEMPTS).contains(&self.failures)
    }
}

impl Committer {
    /// Starts a background checkpoint, or completes it so that little is copied on this thread.
    pub(super) fn checkpoint_busy_wal(&self) {
        let checkpoint = self.checkpoint.get();
        if checkpoint.is_retry() {
            self.restart_wal();
            return;
        }
        if self.wal_pages.get() >= checkpoint.due_at + PAGES_MEANWHILE {
            self.checkpointer.wait();
        }
        match self.checkpointer.state() {
            CheckpointState::Idle => self.checkpointer.begin(self.wal_pages.clone()),
            CheckpointState::Running => {}
            CheckpointState::Done => self.restart_wal(),
        }
    }

    /// Copies the WAL into the database and restarts it. Runs outside of commits, so that no caller waits for it.
    ///
    /// SQLite restarts the WAL only while no snapshot uses it. Under constant load some sticky snapshot always does, and
    /// the WAL would grow without bound. So this increments the commit counter once the WAL is copied: the next reads take
    /// snapshots of the database file alone. It does not wait for long reads; the next attempt comes many pages later.
    pub(super) fn restart_wal(&self) {
        let pages = self.wal_pages.get();
        let wait = if self.full_reads.are_running() { Duration::ZERO } else { self.checkpoint.get().wait() };
        let copy = || self.checkpoint("pragma wal_checkpoint(passive)");
        // Snapshots older than the last commit block a part of the copy, and a snapshot taken before its end uses the WAL
        // again. The time of the first copy does not count as waiting for readers.
        let mut is_copied = copy();
        let begun = Instant::now();
        while !is_copied && begun.elapsed() < wait {
            self.commits.fetch_add(1, Ordering::Release);
            std::thread::sleep(READER_POLL);
            is_copied = copy();
        }
        self.commits.fetch_add(1, Ordering::Release);
        self.set_lock_timeout(wait);
        let is_restarted = self.checkpoint("pragma wal_checkpoint(restart)");
        self.set_lock_timeout(BUSY_TIMEOUT);
        if is_restarted {
            self.wal_pages.set(0);
        }
        self.checkpoint.set(if is_restarted {
            CheckpointSchedule::default()
        } else {
            self.checkpoint.get().after_failure(pages)
        });
        self.checkpointer.reset();
    }

    /// Truncates the WAL if an operation requested it, so that it holds no deleted data. Sticky snapshots end by the
    /// commit counter. A long read is retried a second later; it ends within 30 seconds, the limit of reads. If the
    /// process ends before, the next start truncates the WAL.
    pub(super) fn truncate_wal_if_due(&self, wait: Duration) {
        if self.truncate_wal_at.get().is_none_or(|due| Instant::now() < due) {
            return;
        }
        self.commits.fetch_add(1, Ordering::Release);
        let is_truncated = self.truncate_wal(wait);
        if is_truncated {
            self.wal_pages.set(0);
            self.checkpoint.set(CheckpointSchedule::default());
        }
        self.truncate_wal_at.set(if is_truncated { None } else { Some(Instant::now() + IDLE) });
    }

    /// Sets how long this connection waits for a lock.
    fn set_lock_timeout(&self, timeout: Duration) {
        if let Err(error) = self.connection.busy_timeout(timeout) {
            tracing::error!(%error, "the lock timeout could not be set");
        }
    }

    /// Does not wait for readers: truncation holds the write lock, and during a backup each attempt would block writes.
    pub(super) fn truncate_wal_if_large(&self) {
        if size_of(&self.wal) > WAL_TRUNCATED_ABOVE {
            self.truncate_wal(Duration::ZERO);
        }
    }

    /// Truncates the WAL if possible, because operators copy a stopped database as one file. Tries longer if an operation
    /// requested it, in short steps, because a server may be running beside this command.
    pub(super) fn shut_down(&mut self) {
        self.checkpointer.stop();
        let is_requested = self.truncate_wal_at.get().is_some();
        for _ in 0..if is_requested { SHUTDOWN_ATTEMPTS } else { 1 } {
            self.commits.fetch_add(1, Ordering::Release);
            if self.truncate_wal(RESTART_WAIT) {
                return;
            }
            if is_requested {
                std::thread::sleep(RESTART_WAIT);
            }
        }
        if is_requested {
            tracing::warn!(
                "a long read prevented truncating the write-ahead log; it holds deleted data until the next start"
            );
        }
    }

    fn truncate_wal(&self, wait: Duration) -> bool {
        // Copies what it can without the write lock.
        self.checkpoint("pragma wal_checkpoint(passive)");
        self.set_lock_timeout(wait);
        let is_truncated = self.checkpoint("pragma wal_checkpoint(truncate)");
        self.set_lock_timeout(BUSY_TIMEOUT);
        is_truncated
    }

    fn checkpoint(&self, sql: &str) -> bool {
        wal_checkpoint::checkpoint(&self.connection, sql).is_some_and(|copied| copied.is_all)
    }
}
