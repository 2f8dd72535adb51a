//! The one thread that writes: it commits many operations at once and answers after the disk has them.
//!
//! While one commit syncs, the next operations gather; so the sync is paid once for all of them, and durable writes
//! are several times faster than one commit each. Each operation that may have to be undone has a savepoint. A failed commit fails
//! every operation in it and acknowledges none. A failed sync ends the process: after it the kernel may have marked
//! the lost pages clean, and only recovery from the log at the next start is safe.

mod checkpoint;

use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use rusqlite::{Connection, ffi};

use self::checkpoint::{Checkpoint, LOG_TRUNCATED_ABOVE, RESTART_WAIT, RESTART_WAIT_BRIEFLY, note_log_pages};
use super::{
    Pending, Tuning, Write,
    copier::{Copier, Progress},
    place::Place,
    snapshot::FullReads,
    statements::{Kept, Lend},
};
use crate::{
    clock::Clock,
    error::{Code, Error, Result},
    tally::{Counter, Distribution, SIZE_BOUNDS, SLOW_BOUNDS},
};

pub(super) use checkpoint::{LogPages, checkpoint};

/// Answers of one commit from which on it pays to take them to another thread together.
const WORTH_A_MESSENGER: usize = 3;
/// How long nobody must have written for a moment to be quiet.
const QUIET: Duration = Duration::from_millis(20);
const IDLE: Duration = Duration::from_secs(1);

/// How much work waits for the writer.
#[derive(Clone, Copy, Debug)]
pub struct Pressure {
    /// Operations queued or being committed.
    pub queued: u64,
    /// Operations that may be queued.
    pub capacity: usize,
    /// Bytes of the write-ahead log.
    pub log_bytes: u64,
}

/// What the writer has done since the start.
#[derive(Debug)]
pub struct WriterTally {
    /// Operations that were committed together.
    pub operations: Distribution,
    /// Microseconds from the first of them to the answers.
    pub durations: Distribution,
    /// Commits that failed.
    pub failures: Counter,
    /// Operations, and commits without such an operation, that met damage in the file.
    pub damage_met: Counter,
}

/// The answers of one commit. Whoever drops them gives them.
pub struct Answers {
    jobs: Vec<Box<dyn Job>>,
    /// Why nothing of the commit counts.
    lost: Option<Error>,
}

impl Drop for Answers {
    fn drop(&mut self) {
        for job in self.jobs.drain(..) {
            job.answer(self.lost.as_ref());
        }
    }
}

/// Takes the answers of a commit to where those are who wait for them.
pub type Messenger = Box<dyn Fn(Answers) + Send + Sync>;

pub(super) struct Writer {
    queue: Mutex<Option<SyncSender<Box<dyn Job>>>>,
    messenger: Arc<OnceLock<Messenger>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    queued: Arc<AtomicU64>,
    tally: Arc<WriterTally>,
    capacity: usize,
    log: PathBuf,
}

impl Writer {
    pub(super) fn start(
        connection: Connection,
        place: Place,
        tuning: &Tuning,
        clock: Clock,
        commits: Arc<AtomicU64>,
        full_reads: FullReads,
    ) -> Result<Self> {
        let (queue, jobs) = sync_channel(tuning.queue);
        let queued = Arc::new(AtomicU64::new(0));
        let log = place.path().with_extension("db-wal");
        connection.wal_hook(Some(note_log_pages));
        connection.pragma_update(None, "journal_size_limit", LOG_TRUNCATED_ABOVE.cast_signed())?;
        let tally = Arc::new(WriterTally {
            operations: Distribution::new(&SIZE_BOUNDS),
            durations: Distribution::new(&SLOW_BOUNDS),
            failures: Counter::default(),
            damage_met: Counter::default(),
        });
        let copier = Copier::start(place.path(), tuning)?;
        let (for_thread, slow, commit_size) = (Arc::clone(&queued), tuning.slow, tuning.commit_size);
        let (tally_of_thread, log_of_thread) = (Arc::clone(&tally), log.clone());
        let messenger = Arc::<OnceLock<Messenger>>::default();
        let messenger_of_thread = Arc::clone(&messenger);
        let work = move || {
            let work = Work {
                connection: &connection,
                kept: Kept::new(&connection),
                jobs,
                clock,
                commits,
                full_reads,
                queued: for_thread,
                messenger: messenger_of_thread,
                tally: tally_of_thread,
                commit_size,
                slow,
                log: log_of_thread,
                log_pages: LogPages::of_this_thread(),
                place,
                copier,
                checkpoint: Cell::new(Checkpoint::default()),
                empty_log_at: Cell::new(None),
            };
            work.run();
        };
        let thread = std::thread::Builder::new().name("writer".into()).spawn(work);
        Ok(Self {
            queue: Mutex::new(Some(queue)),
            messenger,
            thread: Mutex::new(Some(thread.map_err(Error::internal)?)),
            queued,
            tally,
            capacity: tuning.queue,
            log,
        })
    }

    pub(super) fn submit<T, F>(&self, kind: Kind, operation: F) -> Pending<T>
    where
        T: Send + 'static,
        F: FnOnce(&Write<'_>) -> Result<T> + Send + 'static,
    {
        let (reply, receiver) = oneshot::channel();
        let job = Box::new(Operation { kind, work: Some(operation), outcome: None, reply });
        let Some(queue) = lock(&self.queue).clone() else {
            return Pending::known(Err(busy("The service is stopping.")));
        };
        self.queued.fetch_add(1, Ordering::Relaxed);
        match queue.try_send(job) {
            Ok(()) => Pending::queued(receiver),
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.queued.fetch_sub(1, Ordering::Relaxed);
                Pending::known(Err(busy("Too many changes are waiting for the disk.")))
            }
        }
    }

    /// Has the answers of commits that many wait for taken to them; once.
    pub(super) fn answer_through(&self, messenger: Messenger) {
        // Who asks a second time has the same runtime in mind.
        let _ = self.messenger.set(messenger);
    }

    pub(super) fn pressure(&self) -> Pressure {
        Pressure {
            queued: self.queued.load(Ordering::Relaxed),
            capacity: self.capacity,
            log_bytes: file_size(&self.log),
        }
    }

    pub(super) fn tally(&self) -> &WriterTally {
        &self.tally
    }

    pub(super) fn stop(&self) {
        drop(lock(&self.queue).take());
        if let Some(thread) = lock(&self.thread).take()
            && thread.join().is_err()
        {
            tracing::error!("the writer thread had panicked");
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn busy(detail: &'static str) -> Error {
    Error::new(Code::Overloaded).detail(detail).retry_after(Duration::from_secs(1))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn file_size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// How an operation that fails is undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// By the savepoint that it gets.
    Undoable,
    /// Not at all: it changes nothing before it is sure to succeed.
    CheckedFirst,
    /// By the savepoint; and it is the only one of its commit, so that whoever reads while it runs sees all that was
    /// written before it.
    Alone,
}

/// A queued operation, whatever it answers.
trait Job: Send {
    fn kind(&self) -> Kind;

    /// Runs the operation and says whether what it changed is to stay.
    fn run(&mut self, transaction: &Write<'_>) -> bool;

    /// Whether it failed because the file is damaged.
    fn met_damage(&self) -> bool;

    /// Where the operation is written.
    fn name(&self) -> &'static str;

    /// Tells the caller the outcome; `lost` is why nothing of the commit counts.
    fn answer(self: Box<Self>, lost: Option<&Error>);
}

struct Operation<T, F> {
    kind: Kind,
    work: Option<F>,
    outcome: Option<Result<T>>,
    reply: oneshot::Sender<Result<T>>,
}

impl<T, F> Job for Operation<T, F>
where
    T: Send,
    F: FnOnce(&Write<'_>) -> Result<T> + Send,
{
    fn kind(&self) -> Kind {
        self.kind
    }

    fn run(&mut self, transaction: &Write<'_>) -> bool {
        let Some(operation) = self.work.take() else { return false };
        let outcome = catch_unwind(AssertUnwindSafe(|| operation(transaction)))
            .unwrap_or_else(|_| Err(Error::internal("an operation panicked on the writer thread")));
        let keeps = match &outcome {
            Ok(_) => true,
            Err(error) => error.keeps_changes,
        };
        self.outcome = Some(outcome);
        keeps
    }

    fn met_damage(&self) -> bool {
        matches!(&self.outcome, Some(Err(error)) if super::is_damage(error))
    }

    fn name(&self) -> &'static str {
        std::any::type_name::<F>()
    }

    fn answer(self: Box<Self>, lost: Option<&Error>) {
        let outcome = match (self.outcome, lost) {
            (Some(Err(error)), None) => Err(error),
            (Some(Err(error)), Some(_)) if !error.keeps_changes => Err(error),
            (_, Some(lost)) => Err(lost.again()),
            (Some(Ok(value)), None) => Ok(value),
            (None, None) => Err(Error::internal("an operation was answered before it ran")),
        };
        // A caller that has gone away does not want the answer.
        drop(self.reply.send(outcome));
    }
}

struct Work<'connection> {
    connection: &'connection Connection,
    kept: Kept<'connection>,
    jobs: Receiver<Box<dyn Job>>,
    clock: Clock,
    commits: Arc<AtomicU64>,
    full_reads: FullReads,
    queued: Arc<AtomicU64>,
    messenger: Arc<OnceLock<Messenger>>,
    tally: Arc<WriterTally>,
    /// Operations in one commit at most.
    commit_size: usize,
    /// What takes longer than this is logged.
    slow: Duration,
    log: PathBuf,
    log_pages: LogPages,
    place: Place,
    copier: Copier,
    checkpoint: Cell<Checkpoint>,
    /// When the log is to be emptied, or tried to be again, for somebody who left no trace.
    empty_log_at: Cell<Option<Instant>>,
}

impl Work<'_> {
    fn run(mut self) {
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
                // Nobody else can copy while the copier does.
                Err(RecvTimeoutError::Timeout) if is_welcome && self.copier.progress() != Progress::Running => {
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
        self.queued.fetch_sub(size, Ordering::Relaxed);
        let took = begun.elapsed();
        self.tally.operations.add(size);
        self.tally.durations.add_duration(took);
        if took >= self.slow {
            tracing::warn!(operations = size, duration_ms = took.as_millis(), "slow commit");
        }
    }

    /// Commits the operations up to the first whose error ended the transaction, or up to one that must be alone,
    /// answers them, and returns the rest.
    fn commit_some(&self, mut jobs: Vec<Box<dyn Job>>) -> Vec<Box<dyn Job>> {
        if let Err(error) = self.statement("begin immediate") {
            self.tally.failures.add(1);
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
            self.tally.damage_met.add(u64::from(job.met_damage()));
            begun = self.note_if_slow(job.as_ref(), begun);
            if outcome.is_err() {
                break;
            }
        }
        let rest = jobs.split_off(done);
        if outcome.is_ok() {
            outcome = self.place.demand().and_then(|()| self.statement("commit"));
        }
        match outcome {
            Ok(()) => {
                self.commits.fetch_add(1, Ordering::Release);
                if transaction.leaves_no_trace() {
                    self.empty_log_at.set(Some(Instant::now()));
                    self.empty_log_if_due(RESTART_WAIT);
                }
                self.answer(jobs, None);
            }
            Err(error) => {
                tracing::error!(%error, operations = jobs.len(), "a commit failed");
                self.tally.failures.add(1);
                let is_told = jobs.iter().any(|job| job.met_damage());
                self.tally.damage_met.add(u64::from(super::is_damage(&error) && !is_told));
                self.abandon_transaction();
                self.answer(jobs, Some(error));
            }
        }
        rest
    }

    /// Answers all. Each answer wakes somebody on another thread, which costs more than the answer; so where many wait on
    /// the same threads, the answers are taken there together.
    fn answer(&self, jobs: Vec<Box<dyn Job>>, lost: Option<Error>) {
        let answers = Answers { jobs, lost };
        if let Some(messenger) = self.messenger.get().filter(|_| answers.jobs.len() >= WORTH_A_MESSENGER) {
            messenger(answers);
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
        if job.kind() == Kind::CheckedFirst {
            return self.run_without_savepoint(job, transaction);
        }
        self.statement("savepoint operation")?;
        let keeps = job.run(transaction);
        self.check_transaction()?;
        if !keeps {
            self.statement("rollback to operation")?;
        }
        self.statement("release operation")
    }

    fn run_without_savepoint(&self, job: &mut dyn Job, transaction: &Write<'_>) -> Result<()> {
        let keeps = job.run(transaction);
        self.check_transaction()?;
        if keeps || transaction.changed() == 0 {
            return Ok(());
        }
        Err(Error::internal("an operation failed after it had changed something, and cannot be undone alone"))
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
                Err(if super::is_missing_parent(&error) { Error::internal(error) } else { error.into() })
            }
        })
    }
}

/// How many of the operations may share the next commit.
fn together(jobs: &[Box<dyn Job>]) -> usize {
    match jobs.iter().position(|job| job.kind() == Kind::Alone) {
        Some(0) => 1,
        Some(before) => before,
        None => jobs.len(),
    }
}

/// Ends the process if the disk did not sync: what the kernel still holds in memory can no longer be trusted, and
/// trying again would report success for pages that were dropped.
fn stop_if_sync_failed(error: &rusqlite::Error) {
    const SYNC_FAILURES: [i32; 2] = [ffi::SQLITE_IOERR_FSYNC, ffi::SQLITE_IOERR_DIR_FSYNC];
    if let Some(failure) = error.sqlite_error()
        && SYNC_FAILURES.contains(&failure.extended_code)
    {
        stop_after_failed_sync(error);
    }
}

pub(super) fn stop_after_failed_sync(error: &impl std::fmt::Display) -> ! {
    tracing::error!(%error, "the disk failed to sync; stopping so that the next start recovers from the log");
    std::process::exit(1);
}
