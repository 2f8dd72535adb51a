//! The writer thread: commits many operations at once and replies once the disk has them.
//!
//! While one commit syncs, the next operations queue up and share the next sync, which makes durable writes several times
//! faster. Operations that may fail run in a savepoint. A failed commit fails all its operations, except those that changed
//! nothing and saw no change. A failed sync ends the process: the kernel may have marked the lost pages clean, so only
//! recovery from the WAL at the next start is safe.

mod checkpoint;
mod job;
mod work;

use std::{
    cell::Cell,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{SyncSender, TrySendError, sync_channel},
    },
    thread::JoinHandle,
    time::Duration,
};

use rusqlite::Connection;

use self::{
    checkpoint::{Checkpoint, LOG_TRUNCATED_ABOVE},
    job::{Job, Operation},
    work::Work,
};
use super::{
    Pending, Tuning, Write,
    background_checkpointer::BackgroundCheckpointer,
    file_identity::FileIdentity,
    snapshot::FullReads,
    wal_checkpoint::{LogPages, note_log_pages},
};
use crate::{
    clock::Clock,
    concurrency::lock::lock_unpoisoned,
    error::{Code, Error, Result, Sentence},
    keys::ServerKey,
    metrics::{Counter, Histogram, SIZE_BOUNDS, SLOW_BOUNDS},
    thread_priority::lower_thread_priority,
};

pub(super) use job::TransactionKind;
pub use job::{CommitReplies, ReplyDispatcher};

/// The queue length and WAL size of the writer.
#[derive(Clone, Copy, Debug)]
pub struct WriterLoad {
    /// Operations queued or being committed.
    pub queued: u64,
    /// Maximum number of queued operations.
    pub capacity: usize,
    /// Bytes of the write-ahead log.
    pub log_bytes: u64,
}

/// Counters of the writer since the start.
#[derive(Debug)]
pub struct WriterMetrics {
    /// Operations per commit.
    pub operations: Histogram,
    /// Microseconds from the start of a commit to its replies.
    pub durations: Histogram,
    /// Commits that failed.
    pub failures: Counter,
    /// Operations that found damage in the file, and commits that failed of it without such an operation.
    pub damage_errors: Counter,
}

/// State shared by the thread and its callers.
struct Shared {
    /// Operations queued or being committed.
    queued: AtomicU64,
    metrics: WriterMetrics,
    dispatcher: OnceLock<ReplyDispatcher>,
    log: PathBuf,
    /// True if another machine has taken over.
    is_superseded: AtomicBool,
}

pub(super) struct Writer {
    queue: Mutex<Option<SyncSender<Box<dyn Job>>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    shared: Arc<Shared>,
    capacity: usize,
}

impl Writer {
    pub(super) fn start(
        connection: Connection,
        files: FileIdentity,
        tuning: &Tuning,
        clock: Clock,
        commits: Arc<AtomicU64>,
        full_reads: FullReads,
        keys: Arc<OnceLock<ServerKey>>,
    ) -> Result<Self> {
        let (queue, jobs) = sync_channel(tuning.queue);
        connection.wal_hook(Some(note_log_pages));
        connection.pragma_update(None, "journal_size_limit", LOG_TRUNCATED_ABOVE.cast_signed())?;
        let checkpointer = BackgroundCheckpointer::start(files.path(), tuning)?;
        let shared = Arc::new(Shared {
            queued: AtomicU64::new(0),
            metrics: WriterMetrics {
                operations: Histogram::new(&SIZE_BOUNDS),
                durations: Histogram::new(&SLOW_BOUNDS),
                failures: Counter::default(),
                damage_errors: Counter::default(),
            },
            dispatcher: OnceLock::default(),
            log: files.path().with_extension("db-wal"),
            is_superseded: AtomicBool::new(false),
        });
        let (of_thread, slow, commit_size) = (Arc::clone(&shared), tuning.slow, tuning.commit_size);
        let is_low_priority = tuning.is_low_priority;
        let work = move || {
            if is_low_priority {
                lower_thread_priority();
            }
            let work = Work {
                connection: &connection,
                jobs,
                clock,
                commits,
                full_reads,
                keys,
                shared: of_thread,
                commit_size,
                slow,
                log_pages: LogPages::of_this_thread(),
                files,
                checkpointer,
                checkpoint: Cell::new(Checkpoint::default()),
                truncate_log_at: Cell::new(None),
            };
            work.run();
        };
        let thread = std::thread::Builder::new().name("writer".into()).spawn(work);
        Ok(Self {
            queue: Mutex::new(Some(queue)),
            thread: Mutex::new(Some(thread.map_err(Error::internal)?)),
            shared,
            capacity: tuning.queue,
        })
    }

    pub(super) fn submit<T, F>(&self, kind: TransactionKind, operation: F) -> Pending<T>
    where
        T: Send + 'static,
        F: FnOnce(&Write<'_>) -> Result<T> + Send + 'static,
    {
        if self.is_superseded() {
            return Pending::ready(Err(Code::Superseded.into()));
        }
        let (reply, receiver) = oneshot::channel();
        let job = Box::new(Operation { kind, work: Some(operation), outcome: None, reply });
        let Some(queue) = lock_unpoisoned(&self.queue).clone() else {
            return Pending::ready(Err(busy(("The service is stopping.", "服务正在停止。"))));
        };
        self.shared.queued.fetch_add(1, Ordering::Relaxed);
        match queue.try_send(job) {
            Ok(()) => Pending::queued(receiver),
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.shared.queued.fetch_sub(1, Ordering::Relaxed);
                Pending::ready(Err(busy(("Too many changes are waiting for the disk.", "等待写入磁盘的更改过多。"))))
            }
        }
    }

    /// Sets the dispatcher of replies. Only the first one counts.
    pub(super) fn dispatch_replies_with(&self, dispatcher: ReplyDispatcher) {
        // A process has one runtime, so a second dispatcher would do the same.
        let _ = self.shared.dispatcher.set(dispatcher);
    }

    pub(super) fn set_superseded(&self, is_superseded: bool) {
        self.shared.is_superseded.store(is_superseded, Ordering::Relaxed);
    }

    pub(super) fn is_superseded(&self) -> bool {
        self.shared.is_superseded.load(Ordering::Relaxed)
    }

    pub(super) fn load(&self) -> WriterLoad {
        WriterLoad {
            queued: self.shared.queued.load(Ordering::Relaxed),
            capacity: self.capacity,
            log_bytes: file_size(&self.shared.log),
        }
    }

    pub(super) fn metrics(&self) -> &WriterMetrics {
        &self.shared.metrics
    }

    pub(super) fn stop(&self) {
        drop(lock_unpoisoned(&self.queue).take());
        if let Some(thread) = lock_unpoisoned(&self.thread).take()
            && thread.join().is_err()
        {
            tracing::error!("the writer thread panicked");
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn busy(detail: impl Into<Sentence>) -> Error {
    Error::new(Code::Overloaded).detail(detail).retry_after(Duration::from_secs(1))
}

fn file_size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}
