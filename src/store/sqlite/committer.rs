//! The writer thread on a SQLite file: transactions, savepoints and the schedule of checkpoints.
//!
//! A failed sync ends the process: the kernel may have marked the lost pages clean, so only recovery from the WAL at the
//! next start is safe.

use std::{
    cell::Cell,
    path::PathBuf,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
        mpsc::RecvTimeoutError,
    },
    time::{Duration, Instant},
};

use rusqlite::Connection;

use super::{
    background_checkpointer::{BackgroundCheckpointer, CheckpointState},
    checkpoint_schedule::{CheckpointSchedule, RESTART_WAIT, RESTART_WAIT_BRIEFLY},
    errors::is_missing_parent,
    file_identity::FileIdentity,
    snapshot::FullReads,
    wal_checkpoint::{WalPages, stop_if_sync_failed},
};
use crate::{
    clock::Clock,
    error::{Code, Error, Result},
    keys::ServerKey,
    store::{
        Write,
        transaction::Access,
        writer::{Job, Jobs, Queue, TransactionKind, batch_length},
    },
};

/// Time without a write that counts as quiet.
const QUIET: Duration = Duration::from_millis(20);
pub(super) const IDLE: Duration = Duration::from_secs(1);

pub(super) struct Committer {
    pub(super) connection: Connection,
    pub(super) queue: Queue,
    pub(super) clock: Clock,
    pub(super) commits: Arc<AtomicU64>,
    pub(super) full_reads: FullReads,
    pub(super) keys: Arc<OnceLock<ServerKey>>,
    pub(super) wal: PathBuf,
    pub(super) wal_pages: WalPages,
    pub(super) files: FileIdentity,
    pub(super) checkpointer: BackgroundCheckpointer,
    pub(super) checkpoint: Cell<CheckpointSchedule>,
    /// Time of the next attempt to truncate the WAL for an operation that requested it.
    pub(super) truncate_wal_at: Cell<Option<Instant>>,
}

impl Committer {
    pub(super) fn run(mut self) {
        loop {
            let is_large = self.wal_pages.get() >= self.checkpoint.get().welcome_at;
            match self.queue.jobs.recv_timeout(if is_large { QUIET } else { IDLE }) {
                Ok(first) => {
                    // On busy cores this lets callers queue more operations that then share the sync.
                    std::thread::yield_now();
                    // An error that makes SQLite roll back the whole transaction fails the operations before it. Those
                    // after it get another transaction.
                    self.queue.commit_batch(first, |waiting| self.commit_some(waiting));
                    if self.wal_pages.get() >= self.checkpoint.get().due_at {
                        self.checkpoint_busy_wal();
                    }
                    self.truncate_wal_if_due(RESTART_WAIT_BRIEFLY);
                }
                Err(RecvTimeoutError::Timeout) if is_large && self.checkpointer.state() != CheckpointState::Running => {
                    self.restart_wal();
                    self.truncate_wal_if_due(RESTART_WAIT_BRIEFLY);
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.truncate_wal_if_due(RESTART_WAIT_BRIEFLY);
                    self.truncate_wal_if_large();
                }
                Err(RecvTimeoutError::Disconnected) => {
                    self.shut_down();
                    return;
                }
            }
        }
    }

    /// Commits operations and replies to them. Stops at the first one that needs a transaction of its own or whose error
    /// ended the transaction, and returns the rest.
    fn commit_some(&self, mut jobs: Jobs) -> Jobs {
        let rest = jobs.split_off(batch_length(&jobs));
        if jobs.iter().any(|job| job.kind() == TransactionKind::Vacuum) {
            self.vacuum(jobs);
            return rest;
        }
        if let Err(error) = self.statement("begin immediate") {
            self.queue.note_refusal();
            jobs.extend(rest);
            self.queue.reply(jobs, Some(error));
            return Vec::new();
        }
        let transaction = self.transaction();
        let run = |set: &mut [Box<dyn Job>], is_isolated| self.run_set(set, is_isolated, &transaction);
        let (done, outcome) = self.queue.run_jobs(&mut jobs, &transaction, run);
        let mut not_run = jobs.split_off(done.len());
        not_run.extend(rest);
        let outcome = self.files.ensure_unchanged().map(|()| outcome.and_then(|()| self.statement("commit")));
        match outcome {
            Ok(Ok(())) => self.finish_commit(jobs, transaction.truncates_wal()),
            Ok(Err(error)) => {
                self.undo_failed_commit(&jobs, &error);
                self.queue.reply_to_failed(jobs, &done, error);
            }
            Err(error) => self.fail_commit(jobs, error),
        }
        not_run
    }

    fn transaction(&self) -> Write<'_> {
        Write::new(Access::File(&self.connection), self.clock.now()).with_keys(self.keys.get())
    }

    fn finish_commit(&self, jobs: Jobs, truncates_wal: bool) {
        self.commits.fetch_add(1, Ordering::Release);
        if truncates_wal {
            self.truncate_wal_at.set(Some(Instant::now()));
            self.truncate_wal_if_due(RESTART_WAIT);
        }
        self.queue.reply(jobs, None);
    }

    fn fail_commit(&self, jobs: Jobs, error: Error) {
        self.undo_failed_commit(&jobs, &error);
        self.queue.reply(jobs, Some(error));
    }

    fn undo_failed_commit(&self, jobs: &[Box<dyn Job>], error: &Error) {
        self.queue.note_failure(jobs, error);
        self.roll_back();
    }

    /// Rewrites the database. The copy that VACUUM makes goes to a temporary file, because it may not fit in memory.
    fn vacuum(&self, mut jobs: Jobs) {
        let outcome = self.statement("pragma temp_store = file").and_then(|()| self.statement("vacuum"));
        let restored = self.statement("pragma temp_store = memory");
        match outcome.and(restored) {
            Ok(()) => {
                let transaction = self.transaction();
                for job in &mut jobs {
                    job.run(&mut [], &transaction);
                }
                self.finish_commit(jobs, true);
            }
            Err(error) => self.fail_commit(jobs, error),
        }
    }

    /// Runs operations that form a set. Returns false if they were rolled back. An error means that the whole transaction is
    /// lost.
    fn run_set(&self, set: &mut [Box<dyn Job>], is_isolated: bool, transaction: &Write<'_>) -> Result<bool> {
        let Some((first, others)) = set.split_first_mut() else { return Ok(true) };
        transaction.begin_operation();
        let kind = if is_isolated { TransactionKind::Savepoint } else { first.kind() };
        if kind == TransactionKind::Savepoint {
            self.statement("savepoint operation")?;
        }
        let keeps_changes = first.run(others, transaction);
        self.ensure_in_transaction()?;
        match kind {
            TransactionKind::Savepoint => {
                if !keeps_changes {
                    self.statement("rollback to operation")?;
                }
                self.statement("release operation")?;
            }
            _ if keeps_changes || transaction.changed() == 0 => {}
            TransactionKind::NoSavepoint | TransactionKind::Probe => {
                return Err(Error::internal("an operation without a savepoint failed after a change"));
            }
            TransactionKind::Exclusive | TransactionKind::Vacuum => {
                self.statement("rollback")?;
                self.statement("begin immediate")?;
            }
        }
        Ok(keeps_changes)
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
