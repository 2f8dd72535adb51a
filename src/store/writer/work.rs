//! The loop of the writer thread: batches, transactions, savepoints and replies.

use std::{
    cell::Cell,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

use rusqlite::Connection;

use super::{
    Shared,
    checkpoint::{Checkpoint, RESTART_WAIT, RESTART_WAIT_BRIEFLY},
    job::{CommitReplies, Job, TransactionKind},
};
use crate::{
    clock::Clock,
    error::{Code, Error, Result},
    keys::ServerKey,
    store::{
        self, Write,
        background_checkpointer::{BackgroundCheckpointer, CheckpointState},
        errors::is_missing_parent,
        file_identity::FileIdentity,
        snapshot::FullReads,
        wal_checkpoint::{LogPages, stop_if_sync_failed},
    },
};

/// Number of replies of a commit from which on dispatching them together is cheaper.
const MIN_DISPATCHED_REPLIES: usize = 3;
/// Time without a write that counts as quiet.
const QUIET: Duration = Duration::from_millis(20);
pub(super) const IDLE: Duration = Duration::from_secs(1);

pub(super) struct Work<'connection> {
    pub(super) connection: &'connection Connection,
    pub(super) jobs: Receiver<Box<dyn Job>>,
    pub(super) clock: Clock,
    pub(super) commits: Arc<AtomicU64>,
    pub(super) full_reads: FullReads,
    pub(super) keys: Arc<OnceLock<ServerKey>>,
    pub(super) shared: Arc<Shared>,
    /// Maximum number of operations in a commit.
    pub(super) commit_size: usize,
    /// Slower operations and commits are logged.
    pub(super) slow: Duration,
    pub(super) log_pages: LogPages,
    pub(super) files: FileIdentity,
    pub(super) checkpointer: BackgroundCheckpointer,
    pub(super) checkpoint: Cell<Checkpoint>,
    /// Time of the next attempt to truncate the WAL for an operation that requested it.
    pub(super) truncate_log_at: Cell<Option<Instant>>,
}

impl Work<'_> {
    pub(super) fn run(mut self) {
        loop {
            let is_large = self.log_pages.get() >= self.checkpoint.get().welcome_at;
            match self.jobs.recv_timeout(if is_large { QUIET } else { IDLE }) {
                Ok(first) => {
                    // On busy cores this lets callers queue more operations that then share the sync.
                    std::thread::yield_now();
                    self.commit_batch(first);
                    if self.log_pages.get() >= self.checkpoint.get().due_at {
                        self.checkpoint_busy_log();
                    }
                    self.truncate_log_if_due(RESTART_WAIT_BRIEFLY);
                }
                Err(RecvTimeoutError::Timeout) if is_large && self.checkpointer.state() != CheckpointState::Running => {
                    self.restart_log();
                    self.truncate_log_if_due(RESTART_WAIT_BRIEFLY);
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.truncate_log_if_due(RESTART_WAIT_BRIEFLY);
                    self.truncate_log_if_large();
                }
                Err(RecvTimeoutError::Disconnected) => {
                    self.shut_down();
                    return;
                }
            }
        }
    }

    fn commit_batch(&self, first: Box<dyn Job>) {
        let mut waiting: Vec<_> =
            std::iter::once(first).chain(self.jobs.try_iter().take(self.commit_size - 1)).collect();
        let (size, begun) = (waiting.len() as u64, Instant::now());
        // An error that makes SQLite roll back the whole transaction fails the operations before it. Those after it get
        // another transaction.
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

    /// Commits operations and replies to them. Stops at the first one that needs a transaction of its own or whose error
    /// ended the transaction, and returns the rest.
    fn commit_some(&self, mut jobs: Vec<Box<dyn Job>>) -> Vec<Box<dyn Job>> {
        let rest = jobs.split_off(batch_length(&jobs));
        if jobs.iter().any(|job| job.kind() == TransactionKind::Vacuum) {
            self.vacuum(jobs);
            return rest;
        }
        if let Err(error) = self.statement("begin immediate") {
            self.shared.metrics.failures.add(1);
            jobs.extend(rest);
            self.reply(jobs, Some(error));
            return Vec::new();
        }
        let transaction = Write::new(self.connection, self.clock.now()).with_keys(self.keys.get());
        let (done, outcome) = self.run_jobs(&mut jobs, &transaction);
        let mut not_run = jobs.split_off(done.len());
        not_run.extend(rest);
        let outcome = self.files.ensure_unchanged().map(|()| outcome.and_then(|()| self.statement("commit")));
        match outcome {
            Ok(Ok(())) => self.finish_commit(jobs, transaction.truncates_wal()),
            Ok(Err(error)) => {
                self.undo_failed_commit(&jobs, &error);
                let (concerned, others) = partition(jobs, &done);
                self.reply(concerned, Some(error));
                self.reply(others, None);
            }
            Err(error) => self.fail_commit(jobs, error),
        }
        not_run
    }

    /// Runs operations up to the first whose error ended the transaction. Returns for each that ran whether a failed
    /// commit concerns it: one that changed nothing and saw no change of the others has its result in any case.
    fn run_jobs(&self, jobs: &mut [Box<dyn Job>], transaction: &Write<'_>) -> (Vec<bool>, Result<()>) {
        let mut begun = Instant::now();
        let (mut is_concerned, mut has_changes) = (Vec::with_capacity(jobs.len()), false);
        for job in jobs {
            let outcome = self.run_job(job.as_mut(), transaction);
            has_changes |= outcome.is_err() || transaction.changed() > 0;
            is_concerned.push(has_changes && job.kind() != TransactionKind::Probe);
            if job.found_damage() {
                self.shared.metrics.damage_errors.add(1);
            }
            begun = self.log_if_slow(job.as_ref(), begun);
            if outcome.is_err() {
                return (is_concerned, outcome);
            }
        }
        (is_concerned, Ok(()))
    }

    fn finish_commit(&self, jobs: Vec<Box<dyn Job>>, truncates_wal: bool) {
        self.commits.fetch_add(1, Ordering::Release);
        if truncates_wal {
            self.truncate_log_at.set(Some(Instant::now()));
            self.truncate_log_if_due(RESTART_WAIT);
        }
        self.reply(jobs, None);
    }

    fn fail_commit(&self, jobs: Vec<Box<dyn Job>>, error: Error) {
        self.undo_failed_commit(&jobs, &error);
        self.reply(jobs, Some(error));
    }

    fn undo_failed_commit(&self, jobs: &[Box<dyn Job>], error: &Error) {
        tracing::error!(%error, operations = jobs.len(), "a commit failed");
        self.shared.metrics.failures.add(1);
        let is_counted = jobs.iter().any(|job| job.found_damage());
        self.shared.metrics.damage_errors.add(u64::from(store::is_damage(error) && !is_counted));
        self.roll_back();
    }

    /// Rewrites the database. The copy that VACUUM makes goes to a temporary file, because it may not fit in memory.
    fn vacuum(&self, mut jobs: Vec<Box<dyn Job>>) {
        let outcome = self.statement("pragma temp_store = file").and_then(|()| self.statement("vacuum"));
        let restored = self.statement("pragma temp_store = memory");
        match outcome.and(restored) {
            Ok(()) => {
                let transaction = Write::new(self.connection, self.clock.now()).with_keys(self.keys.get());
                for job in &mut jobs {
                    job.run(&transaction);
                }
                self.finish_commit(jobs, true);
            }
            Err(error) => self.fail_commit(jobs, error),
        }
    }

    /// Sends the replies. Each one wakes another thread, which costs more than the reply, so many are dispatched together
    /// to the threads that wait for them.
    fn reply(&self, jobs: Vec<Box<dyn Job>>, failure: Option<Error>) {
        let replies = CommitReplies { jobs, failure };
        if let Some(dispatcher) = self.shared.dispatcher.get().filter(|_| replies.jobs.len() >= MIN_DISPATCHED_REPLIES)
        {
            dispatcher(replies);
        }
    }

    /// Logs a slow operation. Returns the current time.
    fn log_if_slow(&self, job: &dyn Job, begun: Instant) -> Instant {
        let now = Instant::now();
        let took = now.duration_since(begun);
        if took >= self.slow {
            tracing::warn!(operation = job.name(), duration_ms = took.as_millis(), "slow query");
        }
        now
    }

    /// Runs one operation. An error means that the whole transaction is lost.
    fn run_job(&self, job: &mut dyn Job, transaction: &Write<'_>) -> Result<()> {
        transaction.begin_operation();
        let kind = job.kind();
        if kind == TransactionKind::Savepoint {
            self.statement("savepoint operation")?;
        }
        let keeps_changes = job.run(transaction);
        self.ensure_in_transaction()?;
        match kind {
            TransactionKind::Savepoint => {
                if !keeps_changes {
                    self.statement("rollback to operation")?;
                }
                self.statement("release operation")
            }
            _ if keeps_changes || transaction.changed() == 0 => Ok(()),
            TransactionKind::NoSavepoint | TransactionKind::Probe => {
                Err(Error::internal("an operation without a savepoint failed after a change"))
            }
            TransactionKind::Exclusive | TransactionKind::Vacuum => {
                self.statement("rollback")?;
                self.statement("begin immediate")
            }
        }
    }

    fn ensure_in_transaction(&self) -> Result<()> {
        if self.connection.is_autocommit() {
            // SQLite rolled back by itself: disk full, out of memory, I/O error.
            return Err(Error::new(Code::StorageFailed)
                .detail(("The disk failed or is full; nothing was stored.", "磁盘故障或已满，没有保存任何内容。")));
        }
        Ok(())
    }

    fn roll_back(&self) {
        if !self.connection.is_autocommit()
            && let Err(error) = self.statement("rollback")
        {
            tracing::error!(%error, "a failed transaction could not be rolled back");
        }
    }

    fn statement(&self, sql: &str) -> Result<()> {
        let outcome = self.connection.prepare_cached(sql).and_then(|mut statement| statement.execute([]));
        outcome.map(drop).map_err(|error| {
            stop_if_sync_failed(&error);
            // A foreign key that fails at commit time belongs to no single caller.
            if is_missing_parent(&error) { Error::internal(error) } else { error.into() }
        })
    }
}

type Jobs = Vec<Box<dyn Job>>;

/// Splits the operations of a failed commit into those that it concerns and the others.
fn partition(jobs: Jobs, is_concerned: &[bool]) -> (Jobs, Jobs) {
    let (mut concerned, mut others) = (Vec::new(), Vec::new());
    for (job, is_concerned) in jobs.into_iter().zip(is_concerned) {
        if *is_concerned { concerned.push(job) } else { others.push(job) }
    }
    (concerned, others)
}

/// Returns the number of leading operations that share one transaction: at least one.
fn batch_length(jobs: &[Box<dyn Job>]) -> usize {
    jobs.iter().position(|job| !job.kind().is_shared()).map_or(jobs.len(), |index| index.max(1))
}
