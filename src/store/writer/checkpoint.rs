//! The write-ahead log: copied into the database, begun anew, and emptied of what was deleted.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, Instant},
};

use rusqlite::{Connection, Row, hooks::Wal};

use super::{
    file_size,
    work::{IDLE, Work, stop_if_sync_failed},
};
use crate::store::{background_checkpointer::CheckpointState, connection::BUSY_TIMEOUT};

/// Pages in the log from which on a quiet moment is used to copy it into the database, so that it can be reused from
/// its start.
const CHECKPOINT_PAGES: i64 = 2000;
/// Pages in the log at which it is copied even if no moment is quiet. A page that many commits changed is copied once,
/// so copying rarely costs less.
const CHECKPOINT_PAGES_AT_MOST: i64 = 11_000;
/// Pages that may come in while it is copied. Then callers wait for the copy, so that the log stays below
/// [`LOG_TRUNCATED_ABOVE`] whatever the disk.
const PAGES_MEANWHILE: i64 = 4_000;
/// Pages after which it is tried again to begin at the log's start.
const PAGES_UNTIL_RETRY: i64 = 1_000;
/// Attempts in which the writer waits for readers as long as it may. If all fail somebody reads for long, as another
/// process that makes a backup does, and callers must not pay for it again and again.
const PATIENT_ATTEMPTS: u32 = 6;
/// The log keeps its size, because overwriting syncs faster than appending; past this it is truncated once it is free.
pub(super) const LOG_TRUNCATED_ABOVE: u64 = 64 << 20;
/// How long the writer waits for readers to leave the log, so that it can begin at the log's start again: longer than
/// a kept snapshot lives, shorter than a caller notices.
pub(super) const RESTART_WAIT: Duration = Duration::from_millis(100);
/// The same after [`PATIENT_ATTEMPTS`], and when emptying the log is tried again. Busy threads let go of their
/// snapshots sooner than this.
pub(super) const RESTART_WAIT_BRIEFLY: Duration = Duration::from_millis(10);
/// How long a busy reader takes to see that there is something new.
const READERS_LOOK: Duration = Duration::from_millis(1);
/// How often a process that ends tries to empty the log for somebody who left no trace.
const ATTEMPTS_TO_EMPTY: u32 = 50;

thread_local! {
    static LOG_PAGES: LogPages = LogPages::default();
}

/// Pages in the log after a writer's last commit, told by SQLite.
#[derive(Clone, Default)]
pub(in crate::store) struct LogPages(Arc<AtomicI64>);

impl LogPages {
    /// Of the connection that this thread commits with.
    pub(super) fn of_this_thread() -> Self {
        LOG_PAGES.with(Self::clone)
    }

    pub(in crate::store) fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self, pages: i64) {
        self.0.store(pages, Ordering::Relaxed);
    }
}

// The hook's signature is the library's. It is called on the thread that commits.
#[expect(clippy::unnecessary_wraps)]
pub(super) fn note_log_pages(_: &Wal, pages: i32) -> rusqlite::Result<()> {
    LOG_PAGES.with(|noted| noted.set(i64::from(pages)));
    Ok(())
}

/// When the next checkpoint is to be: pages in the log at which it is welcome, and at which it is due.
#[derive(Clone, Copy)]
pub(super) struct Checkpoint {
    pub(super) welcome_at: i64,
    pub(super) due_at: i64,
    /// Attempts since the log was last free.
    failures: u32,
}

impl Default for Checkpoint {
    fn default() -> Self {
        Self { welcome_at: CHECKPOINT_PAGES, due_at: CHECKPOINT_PAGES_AT_MOST, failures: 0 }
    }
}

impl Checkpoint {
    /// After an attempt at so many pages that could not free the log.
    fn after_failure(self, pages: i64) -> Self {
        let failures = self.failures + 1;
        let distance = if failures < PATIENT_ATTEMPTS { PAGES_UNTIL_RETRY } else { CHECKPOINT_PAGES.max(pages / 4) };
        Self { welcome_at: pages + distance, due_at: pages + distance, failures }
    }

    /// How long the writer may wait for readers.
    fn wait(self) -> Duration {
        if self.failures < PATIENT_ATTEMPTS { RESTART_WAIT } else { RESTART_WAIT_BRIEFLY }
    }

    /// The log was copied a moment ago, and only somebody's reading was in the way.
    fn is_retry(self) -> bool {
        (1..PATIENT_ATTEMPTS).contains(&self.failures)
    }
}

impl Work<'_> {
    /// Has the log copied beside the writer first, so that there is little left to copy here.
    pub(super) fn free_busy_log(&self) {
        let checkpoint = self.checkpoint.get();
        if checkpoint.is_retry() {
            self.free_log();
            return;
        }
        if self.log_pages.get() >= checkpoint.due_at + PAGES_MEANWHILE {
            self.checkpointer.wait();
        }
        match self.checkpointer.progress() {
            CheckpointState::Idle => self.checkpointer.begin(self.log_pages.clone()),
            CheckpointState::Running => {}
            CheckpointState::Done => self.free_log(),
        }
    }

    /// Copies the log into the database. Here and not inside the commit, so that those who wait for the commit do not
    /// wait for this, and so that an error is seen.
    ///
    /// SQLite begins at the log's start again only if nobody reads from the log at that moment. Under constant load
    /// there is always a kept snapshot that does, and the log would grow without end. So the counter is moved once the
    /// log is copied: whoever reads next takes a new snapshot, of the database file alone, and the log is soon free.
    /// A long read is not waited for; the next attempt comes many pages later.
    pub(super) fn free_log(&self) {
        let pages = self.log_pages.get();
        let wait = if self.full_reads.are_running() { Duration::ZERO } else { self.checkpoint.get().wait() };
        let copy = || self.checkpoint("pragma wal_checkpoint(passive)");
        // A snapshot from before the last commit keeps some of the log from being copied, and one that is taken before
        // all of it is copied is of the log again. What the first copy takes, long on a slow disk, is no waiting for
        // readers.
        let mut is_copied = copy();
        let begun = Instant::now();
        while !is_copied && begun.elapsed() < wait {
            self.commits.fetch_add(1, Ordering::Release);
            std::thread::sleep(READERS_LOOK);
            is_copied = copy();
        }
        self.commits.fetch_add(1, Ordering::Release);
        self.wait_for_others(wait);
        let is_free = self.checkpoint("pragma wal_checkpoint(restart)");
        self.wait_for_others(BUSY_TIMEOUT);
        if is_free {
            self.log_pages.set(0);
        }
        self.checkpoint.set(if is_free { Checkpoint::default() } else { self.checkpoint.get().after_failure(pages) });
        self.checkpointer.reset();
    }

    /// Copies the log into the database and truncates it, so that nothing of what was deleted is left in it. Kept
    /// snapshots end by the counter; a long read is not waited for, and the next attempt comes a second later. It ends
    /// within half a minute, because reads that take longer are cut; and whatever ends the process, the next start
    /// empties the log.
    pub(super) fn empty_log_if_due(&self, wait: Duration) {
        if self.empty_log_at.get().is_none_or(|due| Instant::now() < due) {
            return;
        }
        self.commits.fetch_add(1, Ordering::Release);
        let is_empty = self.truncate_log(wait);
        if is_empty {
            self.log_pages.set(0);
            self.checkpoint.set(Checkpoint::default());
        }
        self.empty_log_at.set(if is_empty { None } else { Some(Instant::now() + IDLE) });
    }

    /// How long this connection waits for a lock from now on.
    fn wait_for_others(&self, timeout: Duration) {
        if let Err(error) = self.connection.busy_timeout(timeout) {
            tracing::error!(%error, "the time to wait for a lock could not be set");
        }
    }

    /// Whoever truncates holds the lock that commits need, so readers are not waited for here: while a backup reads,
    /// each attempt would hold up all writers of a running server for as long as it waits.
    pub(super) fn truncate_log_if_large(&self) {
        if file_size(&self.shared.log) > LOG_TRUNCATED_ABOVE {
            self.truncate_log(Duration::ZERO);
        }
    }

    /// Truncates the log if that is possible now: a database at rest is one file, which is what people copy. A command
    /// that must leave no trace beside a running server tries for longer, in steps that hold up nobody for long.
    pub(super) fn leave(&mut self) {
        self.checkpointer.stop();
        let must_be_empty = self.empty_log_at.get().is_some();
        for _ in 0..if must_be_empty { ATTEMPTS_TO_EMPTY } else { 1 } {
            self.commits.fetch_add(1, Ordering::Release);
            if self.truncate_log(RESTART_WAIT) {
                return;
            }
            if must_be_empty {
                std::thread::sleep(RESTART_WAIT);
            }
        }
        if must_be_empty {
            tracing::warn!(
                "somebody reads for long, so the write-ahead log keeps what was deleted until the next start"
            );
        }
    }

    fn truncate_log(&self, wait: Duration) -> bool {
        // What can be copied without the lock is copied without it.
        self.checkpoint("pragma wal_checkpoint(passive)");
        self.wait_for_others(wait);
        let is_empty = self.checkpoint("pragma wal_checkpoint(truncate)");
        self.wait_for_others(BUSY_TIMEOUT);
        is_empty
    }

    fn checkpoint(&self, sql: &str) -> bool {
        checkpoint(self.connection, sql).is_some_and(|copied| copied.is_all)
    }
}

/// What a checkpoint came to.
pub(in crate::store) struct Copied {
    /// Pages of the log that are in the database now.
    pub(in crate::store) pages: i64,
    /// It did all that it was to do. One that waits for nobody is not "busy" with a part of the log that somebody's
    /// snapshot keeps from being copied.
    is_all: bool,
}

/// Runs a checkpoint; nothing if it failed.
pub(in crate::store) fn checkpoint(connection: &Connection, sql: &str) -> Option<Copied> {
    let copied = |row: &Row<'_>| {
        let (log, pages): (i64, i64) = (row.get("log")?, row.get("checkpointed")?);
        Ok(Copied { pages, is_all: !row.get::<_, bool>("busy")? && log == pages })
    };
    let outcome = connection.prepare_cached(sql).and_then(|mut statement| statement.query_row([], copied));
    outcome
        .inspect_err(|error| {
            stop_if_sync_failed(error);
            tracing::warn!(%error, "the write-ahead log could not be copied into the database");
        })
        .ok()
}
