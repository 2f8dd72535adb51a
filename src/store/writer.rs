//! The one thread that writes: it commits many operations at once and answers after the disk has them.
//!
//! While one commit syncs, the next operations gather; so the sync is paid once for all of them, and durable writes
//! are several times faster than one commit each. Each operation that may have to be undone has a savepoint. A failed commit fails
//! every operation in it and acknowledges none. A failed sync ends the process: after it the kernel may have marked
//! the lost pages clean, and only recovery from the log at the next start is safe.

use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicI64, AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use rusqlite::{Connection, Row, ffi, hooks::Wal};

use super::{
    Pending, Tuning, Write,
    connection::BUSY_TIMEOUT,
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

/// Answers of one commit from which on it pays to take them to another thread together.
const WORTH_A_MESSENGER: usize = 3;
/// Pages in the log from which on a quiet moment is used to copy it into the database, so that it can be reused from
/// its start.
const CHECKPOINT_PAGES: i64 = 2000;
/// Pages in the log at which it is copied even if no moment is quiet. A page that many commits changed is copied once,
/// so copying rarely costs less.
const CHECKPOINT_PAGES_AT_MOST: i64 = 8_000;
/// Pages that may come in while it is copied. Then callers wait for the copy, so that the log stays below
/// [`LOG_TRUNCATED_ABOVE`] whatever the disk.
const PAGES_MEANWHILE: i64 = 4_000;
/// Pages after which it is tried again to begin at the log's start.
const PAGES_UNTIL_RETRY: i64 = 1_000;
/// Attempts in which the writer waits for readers as long as it may. If all fail somebody reads for long, as another
/// process that makes a backup does, and callers must not pay for it again and again.
const PATIENT_ATTEMPTS: u32 = 6;
/// How long nobody must have written for a moment to be quiet.
const QUIET: Duration = Duration::from_millis(20);
/// The log keeps its size, because overwriting syncs faster than appending; past this it is truncated once it is free.
const LOG_TRUNCATED_ABOVE: u64 = 64 << 20;
const IDLE: Duration = Duration::from_secs(1);
/// How long the writer waits for readers to leave the log, so that it can begin at the log's start again: longer than
/// a kept snapshot lives, shorter than a caller notices.
const RESTART_WAIT: Duration = Duration::from_millis(100);
/// The same after [`PATIENT_ATTEMPTS`], and when emptying the log is tried again. Busy threads let go of their snapshots
/// sooner than this.
const RESTART_WAIT_BRIEFLY: Duration = Duration::from_millis(10);
/// How long a busy reader takes to see that there is something new.
const READERS_LOOK: Duration = Duration::from_millis(1);
/// How often a process that ends tries to empty the log for somebody who left no trace.
const ATTEMPTS_TO_EMPTY: u32 = 50;

/// Pages in the log after the last commit, told by SQLite. One process has one server, and one server one writer;
/// a second store in the same process (tests) at worst makes one checkpoint too many.
static LOG_PAGES: AtomicI64 = AtomicI64::new(0);

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

/// Pages in the log after the last commit.
pub(super) fn log_pages() -> i64 {
    LOG_PAGES.load(Ordering::Relaxed)
}

// The hook's signature is the library's.
#[expect(clippy::unnecessary_wraps)]
fn note_log_pages(_: &Wal, pages: i32) -> rusqlite::Result<()> {
    LOG_PAGES.store(i64::from(pages), Ordering::Relaxed);
    Ok(())
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
    place: Place,
    copier: Copier,
    checkpoint: Cell<Checkpoint>,
    /// When the log is to be emptied, or tried to be again, for somebody who left no trace.
    empty_log_at: Cell<Option<Instant>>,
}

/// When the next checkpoint is to be: pages in the log at which it is welcome, and at which it is due.
#[derive(Clone, Copy)]
struct Checkpoint {
    welcome_at: i64,
    due_at: i64,
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
    fn run(mut self) {
        loop {
            let is_welcome = log_pages() >= self.checkpoint.get().welcome_at;
            match self.jobs.recv_timeout(if is_welcome { QUIET } else { IDLE }) {
                Ok(first) => {
                    // Where all cores are busy, whoever is about to queue more does so now, and shares the sync.
                    std::thread::yield_now();
                    self.commit_batch(first);
                    if log_pages() >= self.checkpoint.get().due_at {
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

    /// Has the log copied beside the writer first, so that there is little left to copy here.
    fn free_busy_log(&self) {
        let checkpoint = self.checkpoint.get();
        if checkpoint.is_retry() {
            self.free_log();
            return;
        }
        if log_pages() >= checkpoint.due_at + PAGES_MEANWHILE {
            self.copier.wait();
        }
        match self.copier.progress() {
            Progress::Idle => self.copier.begin(),
            Progress::Running => {}
            Progress::Done => self.free_log(),
        }
    }

    /// Copies the log into the database. Here and not inside the commit, so that those who wait for the commit do not
    /// wait for this, and so that an error is seen.
    ///
    /// SQLite begins at the log's start again only if nobody reads from the log at that moment. Under constant load
    /// there is always a kept snapshot that does, and the log would grow without end. So the counter is moved once the
    /// log is copied: whoever reads next takes a new snapshot, of the database file alone, and the log is soon free.
    /// A long read is not waited for; the next attempt comes many pages later.
    fn free_log(&self) {
        let pages = log_pages();
        let wait = if self.full_reads.are_running() { Duration::ZERO } else { self.checkpoint.get().wait() };
        let copy = || self.checkpoint("pragma wal_checkpoint(passive)");
        // A snapshot from before the last commit keeps some of the log from being copied, and one that is taken before all
        // of it is copied is of the log again. What the first copy takes, long on a slow disk, is no waiting for readers.
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
            LOG_PAGES.store(0, Ordering::Relaxed);
        }
        self.checkpoint.set(if is_free { Checkpoint::default() } else { self.checkpoint.get().after_failure(pages) });
        self.copier.reset();
    }

    /// Copies the log into the database and truncates it, so that nothing of what was deleted is left in it. Kept
    /// snapshots end by the counter; a long read is not waited for, and the next attempt comes a second later. It ends
    /// within half a minute, because reads that take longer are cut; and whatever ends the process, the next start
    /// empties the log.
    fn empty_log_if_due(&self, wait: Duration) {
        if self.empty_log_at.get().is_none_or(|due| Instant::now() < due) {
            return;
        }
        self.commits.fetch_add(1, Ordering::Release);
        let is_empty = self.truncate_log(wait);
        if is_empty {
            LOG_PAGES.store(0, Ordering::Relaxed);
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
    fn truncate_log_if_large(&self) {
        if file_size(&self.log) > LOG_TRUNCATED_ABOVE {
            self.truncate_log(Duration::ZERO);
        }
    }

    /// Truncates the log if that is possible now: a database at rest is one file, which is what people copy. A command
    /// that must leave no trace beside a running server tries for longer, in steps that hold up nobody for long.
    fn leave(&mut self) {
        self.copier.stop();
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

/// How many of the operations may share the next commit.
fn together(jobs: &[Box<dyn Job>]) -> usize {
    match jobs.iter().position(|job| job.kind() == Kind::Alone) {
        Some(0) => 1,
        Some(before) => before,
        None => jobs.len(),
    }
}

/// What a checkpoint came to.
pub(super) struct Copied {
    /// Pages of the log that are in the database now.
    pub(super) pages: i64,
    /// It did all that it was to do. One that waits for nobody is not "busy" with a part of the log that somebody's
    /// snapshot keeps from being copied.
    is_all: bool,
}

/// Runs a checkpoint; nothing if it failed.
pub(super) fn checkpoint(connection: &Connection, sql: &str) -> Option<Copied> {
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
