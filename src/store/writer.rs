//! The queue of the writer thread, which commits many operations at once and replies once they are durable.
//!
//! While one commit syncs, the next operations queue up and share the next sync, which makes durable writes several times
//! faster. Operations that may fail run in a savepoint. Those that are plain data run as sets; see [`GroupedWrite`]. A failed
//! commit fails all its operations, except those that changed nothing and saw no change. Each engine commits in its own way:
//! `sqlite/committer.rs`, `postgres/committer.rs`.

mod job;

use std::{
    collections::HashMap,
    mem,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use self::job::{Closure, Grouped, Operation, Work};
pub use self::job::{CommitReplies, GroupedWrite, ReplyDispatcher};
pub(super) use self::job::{Job, TransactionKind};
use super::{Pending, Tuning, Write, is_damage};
use crate::{
    concurrency::lock::lock_unpoisoned,
    error::{Code, Error, Result, Sentence},
    metrics::{Counter, Histogram, SIZE_BOUNDS, SLOW_BOUNDS},
};

/// The queue length and WAL size of the writer.
#[derive(Clone, Copy, Debug)]
pub struct WriterLoad {
    /// Operations queued or being committed.
    pub queued: u64,
    /// Maximum number of queued operations.
    pub capacity: usize,
    /// Bytes of the write-ahead log. 0 without a database file.
    pub wal_bytes: u64,
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
    /// Answers of a database server that commits waited for.
    pub round_trips: Counter,
}

/// Jobs of one commit.
pub(super) type Jobs = Vec<Box<dyn Job>>;

/// Number of replies of a commit from which on dispatching them together is cheaper.
const MIN_DISPATCHED_REPLIES: usize = 3;

/// State shared by the thread and its callers.
struct Shared {
    /// Operations queued or being committed.
    queued: AtomicU64,
    metrics: WriterMetrics,
    dispatcher: OnceLock<ReplyDispatcher>,
    /// True if another machine has taken over, or a newer version of the service.
    is_superseded: Arc<AtomicBool>,
}

pub(super) struct Writer {
    queue: Mutex<Option<SyncSender<Box<dyn Job>>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    shared: Arc<Shared>,
    capacity: usize,
}

/// The thread's side of the queue.
pub(super) struct Queue {
    pub(super) jobs: Receiver<Box<dyn Job>>,
    shared: Arc<Shared>,
    /// Maximum number of operations in a commit.
    commit_size: usize,
    /// Slower operations and commits are logged.
    slow: Duration,
}

impl Queue {
    /// Passes this operation and those that wait behind it to `commit`, which commits some and returns the rest, until
    /// none is left.
    pub(super) fn commit_batch(&self, first: Box<dyn Job>, commit: impl Fn(Jobs) -> Jobs) {
        let waiting: Jobs = std::iter::once(first).chain(self.jobs.try_iter().take(self.commit_size - 1)).collect();
        let mut waiting = gather_sets(waiting);
        let (size, begun) = (waiting.len() as u64, Instant::now());
        while !waiting.is_empty() {
            waiting = commit(waiting);
        }
        self.shared.queued.fetch_sub(size, Ordering::Relaxed);
        let took = begun.elapsed();
        self.shared.metrics.operations.add(size);
        self.shared.metrics.durations.add_duration(took);
        if took >= self.slow {
            tracing::warn!(operations = size, duration_ms = took.as_millis(), "slow commit");
        }
    }

    /// Runs sets of operations with `run` up to the first whose error ended the transaction. Returns for each operation
    /// that ran whether a failed commit concerns it: one that changed nothing and saw no change of the others has its result
    /// in any case.
    ///
    /// `run` returns true unless it rolled the set back. If it is told that the set is isolated, it rolls it back too if the
    /// database refuses its changes. A refused set runs again one by one.
    pub(super) fn run_jobs(
        &self,
        jobs: &mut [Box<dyn Job>],
        transaction: &Write<'_>,
        run: impl Fn(&mut [Box<dyn Job>], bool) -> Result<bool>,
    ) -> (Vec<bool>, Result<()>) {
        let mut begun = Instant::now();
        let (mut is_concerned, mut has_changes) = (Vec::with_capacity(jobs.len()), false);
        let mut run_set = |set: &mut [Box<dyn Job>], is_isolated: bool| -> Result<bool> {
            let ran = run(set, is_isolated);
            if set.len() > 1 && matches!(ran, Ok(false)) {
                transaction.drop_follow_ups();
                return Ok(false);
            }
            let outcome = ran.and_then(|_| transaction.run_follow_ups());
            has_changes |= outcome.is_err() || transaction.changed() > 0;
            let ended = Instant::now();
            for job in &*set {
                is_concerned.push(has_changes && job.kind() != TransactionKind::Probe);
                if job.found_damage() {
                    self.shared.metrics.damage_errors.add(1);
                }
            }
            if let [job, ..] = set {
                log_if_slow(job.name(), ended.duration_since(begun), self.slow);
            }
            begun = ended;
            outcome.map(|()| true)
        };
        let mut run_sets = || -> Result<()> {
            for set in jobs.chunk_by_mut(|one, other| is_same_set(&**one, &**other)) {
                if !run_set(set, set.len() > 1)? {
                    tracing::warn!(writes = set.len(), "the database refused a set of writes; they run one by one");
                    set.chunks_mut(1).try_for_each(|one| run_set(one, true).map(drop))?;
                }
            }
            Ok(())
        };
        let outcome = run_sets();
        (is_concerned, outcome)
    }

    /// Counts and logs a failed commit.
    pub(super) fn note_failure(&self, jobs: &[Box<dyn Job>], error: &Error) {
        tracing::error!(%error, operations = jobs.len(), "a commit failed");
        self.shared.metrics.failures.add(1);
        let is_counted = jobs.iter().any(|job| job.found_damage());
        self.shared.metrics.damage_errors.add(u64::from(is_damage(error) && !is_counted));
    }

    /// Counts answers of a database server that a commit waited for.
    pub(super) fn note_round_trips(&self, count: u64) {
        self.shared.metrics.round_trips.add(count);
    }

    /// Counts a transaction that could not begin.
    pub(super) fn note_refusal(&self) {
        self.shared.metrics.failures.add(1);
    }

    /// Sends the replies. Each one wakes another thread, which costs more than the reply, so many are dispatched together
    /// to the threads that wait for them.
    pub(super) fn reply(&self, jobs: Jobs, failure: Option<Error>) {
        let replies = CommitReplies { jobs, failure };
        if let Some(dispatcher) = self.shared.dispatcher.get().filter(|_| replies.jobs.len() >= MIN_DISPATCHED_REPLIES)
        {
            dispatcher(replies);
        }
    }

    /// Replies to the operations of a failed commit: with the failure to those that it concerns.
    pub(super) fn reply_to_failed(&self, jobs: Jobs, is_concerned: &[bool], error: Error) {
        let (mut concerned, mut others) = (Vec::new(), Vec::new());
        for (job, is_concerned) in jobs.into_iter().zip(is_concerned) {
            if *is_concerned { concerned.push(job) } else { others.push(job) }
        }
        self.reply(concerned, Some(error));
        self.reply(others, None);
    }
}

fn is_same_set(one: &dyn Job, other: &dyn Job) -> bool {
    one.set().zip(other.set()).is_some_and(|((one, _), (other, _))| one == other)
}

/// Moves the writes of one kind together. None passes a write of another kind of its user, or a closure, which may concern
/// anybody.
fn gather_sets(jobs: Jobs) -> Jobs {
    if jobs.len() < 2 {
        return jobs;
    }
    let (mut gathered, mut sets, mut users) = (Vec::with_capacity(jobs.len()), Vec::<Jobs>::new(), HashMap::new());
    for job in jobs {
        let set = job.set();
        if set.is_none_or(|(set, user)| *users.entry(user).or_insert(set) != set) {
            gathered.extend(mem::take(&mut sets).into_iter().flatten());
            users.clear();
            users.extend(set.map(|(set, user)| (user, set)));
        }
        match sets.iter_mut().find(|of_kind| of_kind.first().is_some_and(|first| is_same_set(&**first, &*job))) {
            Some(of_kind) => of_kind.push(job),
            None if set.is_some() => sets.push(vec![job]),
            None => gathered.push(job),
        }
    }
    gathered.extend(sets.into_iter().flatten());
    gathered
}

/// Logs an operation that took as long as this limit.
pub(super) fn log_if_slow(operation: &'static str, took: Duration, limit: Duration) {
    if took >= limit {
        tracing::warn!(operation, duration_ms = took.as_millis(), "slow query");
    }
}

/// Returns the number of leading operations that share one transaction: at least one.
pub(super) fn batch_length(jobs: &[Box<dyn Job>]) -> usize {
    jobs.iter().position(|job| !job.kind().is_shared()).map_or(jobs.len(), |index| index.max(1))
}

impl Writer {
    /// Starts the thread. It runs `work` until the queue is closed.
    pub(super) fn start(tuning: &Tuning, work: impl FnOnce(Queue) + Send + 'static) -> Result<Self> {
        let (queue, jobs) = sync_channel(tuning.queue);
        let shared = Arc::new(Shared {
            queued: AtomicU64::new(0),
            metrics: WriterMetrics {
                operations: Histogram::new(&SIZE_BOUNDS),
                durations: Histogram::new(&SLOW_BOUNDS),
                failures: Counter::default(),
                damage_errors: Counter::default(),
                round_trips: Counter::default(),
            },
            dispatcher: OnceLock::default(),
            is_superseded: Arc::default(),
        });
        let of_thread = Queue { jobs, shared: Arc::clone(&shared), commit_size: tuning.commit_size, slow: tuning.slow };
        let thread = std::thread::Builder::new().name("writer".into()).spawn(move || work(of_thread));
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
        self.submit_work(kind, Closure::new(operation))
    }

    pub(super) fn submit_grouped<W: GroupedWrite>(&self, write: W) -> Pending<W::Done> {
        self.submit_work(TransactionKind::NoSavepoint, Grouped(write))
    }

    fn submit_work<W: Work>(&self, kind: TransactionKind, work: W) -> Pending<W::Done> {
        let (reply, receiver) = oneshot::channel();
        let job = Box::new(Operation { kind, work, outcome: None, reply });
        match self.enqueue(job) {
            Ok(()) => Pending::queued(receiver),
            Err(refusal) => Pending::ready(Err(refusal)),
        }
    }

    fn enqueue(&self, job: Box<dyn Job>) -> Result<()> {
        if self.is_superseded() {
            return Err(Code::Superseded.into());
        }
        let Some(queue) = lock_unpoisoned(&self.queue).clone() else {
            return Err(busy(("The service is stopping.", "服务正在停止。")));
        };
        self.shared.queued.fetch_add(1, Ordering::Relaxed);
        queue.try_send(job).map_err(|_| {
            self.shared.queued.fetch_sub(1, Ordering::Relaxed);
            busy(("Too many changes are waiting for the disk.", "等待写入磁盘的更改过多。"))
        })
    }

    /// Sets the dispatcher of replies. Only the first one counts.
    pub(super) fn dispatch_replies_with(&self, dispatcher: ReplyDispatcher) {
        // A process has one runtime, so a second dispatcher would do the same.
        let _ = self.shared.dispatcher.set(dispatcher);
    }

    /// Returns the flag of [`Self::is_superseded`].
    pub(super) fn superseded_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.shared.is_superseded)
    }

    pub(super) fn set_superseded(&self, is_superseded: bool) {
        self.shared.is_superseded.store(is_superseded, Ordering::Relaxed);
    }

    pub(super) fn is_superseded(&self) -> bool {
        self.shared.is_superseded.load(Ordering::Relaxed)
    }

    /// Returns the load of a writer whose log has this size.
    pub(super) fn load(&self, wal_bytes: u64) -> WriterLoad {
        WriterLoad { queued: self.shared.queued.load(Ordering::Relaxed), capacity: self.capacity, wal_bytes }
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
