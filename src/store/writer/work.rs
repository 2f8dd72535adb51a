//! The writer's thread: what it does with the operations that were queued, commit by commit.

use std::{
    cell::Cell,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

use libsqlite3_sys::{SQLITE_IOERR_DIR_FSYNC, SQLITE_IOERR_FSYNC};
use rusqlite::Connection;

use super::{
    Shared,
    checkpoint::{Checkpoint, LogPages, RESTART_WAIT, RESTART_WAIT_BRIEFLY},
    job::{CommitReplies, Job, Kind},
};
use crate::{
    clock::Clock,
    error::{Code, Error, Result},
    store::{
        self, Write,
        background_checkpointer::{BackgroundCheckpointer, CheckpointState},
        file_identity::FileIdentity,
        snapshot::FullReads,
        statements::{Kept, Lend},
    },
};

/// Answers of one commit from which on it pays to take them to another thread together.
const WORTH_A_MESSENGER: usize = 3;
/// How long nobody must have written for a moment to be quiet.
const QUIET: Duration = Duration::from_millis(20);
pub(super) const IDLE: Duration = Duration::from_secs(1);

pub(super) struct Work<'connection> {
    pub(super) connection: &'connection Connection,
    pub(super) kept: Kept<'connection>,
    pub(super) jobs: Receiver<Box<dyn Job>>,
    pub(super) clock: Clock,
    pub(super) commits: Arc<AtomicU64>,
    pub(super) full_reads: FullReads,
    pub(super) shared: Arc<Shared>,
    /// Operations in one commit at most.
    pub(super) commit_size: usize,
    /// What takes longer than this is logged.
    pub(super) slow: Duration,
    pub(super) log_pages: LogPages,
    pub(super) files: FileIdentity,
    pub(super) checkpointer: BackgroundCheckpointer,
    pub(super) checkpoint: Cell<Checkpoint>,
    /// When the log is to be emptied, or tried to be again, for somebody who left no trace.
    pub(super) empty_log_at: Cell<Option<Instant>>,
}

impl Work<'_> {
    pub(super) fn run(mut self) {
        loop {
            let is_welcome = self.log_pages.get() >= self.checkpoint.get().welcome_at;
            match self.jobs.recv_timeout(if is_welcome { QUIET } else { IDLE }) {
                Ok(first) => {
                    // Where all cores are busy, whoever is about to queue more does so now, and shares the sync.
                    std::thread::yield_now();
                    self.commit_batch(first);
                    if self.log_pages.get() >= self.checkpoint.get().due_at {
                        self.free_busy_log();
                    }
                    self.empty_log_if_due(RESTART_WAIT_BRIEFLY);
                }
                // Nobody else can copy while the checkpointer does.
                Err(RecvTimeoutError::Timeout)
                    if is_welcome && self.checkpointer.progress() != CheckpointState::Running =>
                {
                    self.free_log();
                    self.empty_log_if_due(RESTART_WAIT_BRIEFLY);
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.empty_log_if_due(RESTART_WAIT_BRIEFLY);
                    self.truncate_log_if_large();
                }
                Err(RecvTimeoutError::Disconnected) => {
                    self.leave();
                    return;
                }
            }
        }
    }

    fn commit_batch(&self, first: Box<dyn Job>) {
        let mut waiting: Vec<_> =
            std::iter::once(first).chain(self.jobs.try_iter().take(self.commit_size - 1)).collect();
        let (size, begun) = (waiting.len() as u64, Instant::now());
        // An error that makes SQLite roll the whole transaction back fails the operations before it;
        // those behind it get a transaction of their own.
        while !waiting.is_empty() {
            waiting = self.commit_some(waiting);
        }
        self.shared.queued.fetch_sub(size, Ordering::Relaxed);
        let took = begun.elapsed();
        self.shared.metrics.operations.add(size);
        self.shared.metrics.durations.add_duration(took);
        if took >= self.slow {
            tracing::warn!(operations = size, duration_ms = took.as_millis(), "slow commit");
        }
    }

    /// Commits the operations up to the first whose error ended the transaction, or up to one that must be alone,
    /// answers them, and returns the rest.
    fn commit_some(&self, mut jobs: Vec<Box<dyn Job>>) -> Vec<Box<dyn Job>> {
        if let Err(error) = self.statement("begin immediate") {
            self.shared.metrics.failures.add(1);
            self.answer(jobs, Some(error));
            return Vec::new();
        }
        let transaction = Write::keeping(self.connection, &self.kept, self.clock.now());
        let together = together(&jobs);
        let mut done = 0;
        let mut outcome = Ok(());
        let mut begun = Instant::now();
        for job in jobs.iter_mut().take(together) {
            done += 1;
            outcome = self.run_one(job.as_mut(), &transaction);
            if job.met_damage() {
                self.shared.metrics.damage_errors.add(1);
            }
            begun = self.note_if_slow(job.as_ref(), begun);
            if outcome.is_err() {
                break;
            }
        }
        let rest = jobs.split_off(done);
        if outcome.is_ok() {
            outcome = self.files.ensure_unchanged().and_then(|()| self.statement("commit"));
        }
        match outcome {
            Ok(()) => {
                self.commits.fetch_add(1, Ordering::Release);
                if transaction.truncates_wal() {
                    self.empty_log_at.set(Some(Instant::now()));
                    self.empty_log_if_due(RESTART_WAIT);
                }
                self.answer(jobs, None);
            }
            Err(error) => {
                tracing::error!(%error, operations = jobs.len(), "a commit failed");
                self.shared.metrics.failures.add(1);
                let is_told = jobs.iter().any(|job| job.met_damage());
                self.shared.metrics.damage_errors.add(u64::from(store::is_damage(&error) && !is_told));
                self.abandon_transaction();
                self.answer(jobs, Some(error));
            }
        }
        rest
    }

    /// Answers all. Each answer wakes somebody on another thread, which costs more than the answer; so where many wait
    /// on the same threads, the answers are taken there together.
    fn answer(&self, jobs: Vec<Box<dyn Job>>, lost: Option<Error>) {
        let answers = CommitReplies { jobs, lost };
        if let Some(dispatcher) = self.shared.dispatcher.get().filter(|_| answers.jobs.len() >= WORTH_A_MESSENGER) {
            dispatcher(answers);
        }
    }

    /// Says so if an operation was slow, and when the next one begins.
    fn note_if_slow(&self, job: &dyn Job, begun: Instant) -> Instant {
        let now = Instant::now();
        let took = now.duration_since(begun);
        if took >= self.slow {
            tracing::warn!(operation = job.name(), duration_ms = took.as_millis(), "slow query");
        }
        now
    }

    /// Runs one operation. An error means that the transaction as a whole is lost.
    fn run_one(&self, job: &mut dyn Job, transaction: &Write<'_>) -> Result<()> {
        transaction.begin_operation();
        let kind = job.kind();
        if kind == Kind::Savepoint {
            self.statement("savepoint operation")?;
        }
        let keeps = job.run(transaction);
        self.check_transaction()?;
        match kind {
            Kind::Savepoint => {
                if !keeps {
                    self.statement("rollback to operation")?;
                }
                self.statement("release operation")
            }
            _ if keeps || transaction.changed() == 0 => Ok(()),
            Kind::Exclusive => {
                self.statement("rollback")?;
                self.statement("begin immediate")
            }
            Kind::NoSavepoint => {
                Err(Error::internal("an operation failed after it had changed something, and cannot be undone alone"))
            }
        }
    }

    fn check_transaction(&self) -> Result<()> {
        if self.connection.is_autocommit() {
            // SQLite rolled everything back by itself: disk full, out of memory, I/O error.
            return Err(Error::new(Code::StorageFailed).detail("The disk failed or is full; nothing was stored."));
        }
        Ok(())
    }

    fn abandon_transaction(&self) {
        if !self.connection.is_autocommit()
            && let Err(error) = self.statement("rollback")
        {
            tracing::error!(%error, "a failed transaction could not be rolled back");
        }
    }

    fn statement(&self, sql: &'static str) -> Result<()> {
        self.kept.lend(sql, &mut |statement| match statement.execute([]) {
            Ok(_) => Ok(()),
            Err(error) => {
                stop_if_sync_failed(&error);
                // What fails at the commit is nobody's in particular, whatever it is.
                Err(if store::is_missing_parent(&error) { Error::internal(error) } else { error.into() })
            }
        })
    }
}

/// How many of the operations may share the next commit.
fn together(jobs: &[Box<dyn Job>]) -> usize {
    match jobs.iter().position(|job| job.kind() == Kind::Exclusive) {
        Some(0) => 1,
        Some(before) => before,
        None => jobs.len(),
    }
}

/// Ends the process if the disk did not sync: what the kernel still holds in memory can no longer be trusted, and
/// trying again would report success for pages that were dropped.
pub(super) fn stop_if_sync_failed(error: &rusqlite::Error) {
    const SYNC_FAILURES: [i32; 2] = [SQLITE_IOERR_FSYNC, SQLITE_IOERR_DIR_FSYNC];
    if let Some(failure) = error.sqlite_error()
        && SYNC_FAILURES.contains(&failure.extended_code)
    {
        stop_after_failed_sync(error);
    }
}

pub(in crate::store) fn stop_after_failed_sync(error: &impl std::fmt::Display) -> ! {
    tracing::error!(%error, "the disk failed to sync; stopping so that the next start recovers from the log");
    std::process::exit(1);
}
