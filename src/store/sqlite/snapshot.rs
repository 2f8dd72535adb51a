//! Read transactions: the sticky snapshot of each runtime worker, and single transactions for all other threads.
//!
//! A worker keeps its snapshot until something is committed, until it parks ([`on_thread_park`]), or until the snapshot
//! is old ([`end_stale_snapshot`], which every request calls). An open snapshot blocks the reuse of the WAL and hides
//! commits of other processes. Threads that never park, such as the blocking pool's, have no sticky snapshot.

use std::{
    cell::{Cell, RefCell},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Instant,
};

use r2d2_sqlite::SqliteConnectionManager;
use rusqlite::Connection;

use super::{LONG_READ_LIMIT, SNAPSHOT_AGE, Shared};
use crate::{
    error::{Error, Result},
    store::{
        Read, SnapshotId,
        transaction::{Access, ErasedRead},
        writer::log_if_slow,
    },
};

/// Steps of SQLite's virtual machine between two checks of a read's time limit.
const STEPS_BETWEEN_CHECKS: i32 = 100_000;

thread_local! {
    static IS_WORKER: Cell<bool> = const { Cell::new(false) };
    static READER: RefCell<Option<WorkerReader>> = const { RefCell::new(None) };
}

/// The read-only connection that a worker thread keeps checked out.
struct WorkerReader {
    store: u64,
    connection: r2d2::PooledConnection<SqliteConnectionManager>,
    snapshot: Option<Snapshot>,
}

struct Snapshot {
    id: SnapshotId,
    /// The commit counter, read before the snapshot was taken: it may be older than the snapshot, never newer.
    commits: u64,
    taken: Instant,
}

pub(super) fn read(shared: &Shared, name: &'static str, operation: ErasedRead<'_>) -> Result<()> {
    let begun = Instant::now();
    let outcome = if is_worker() { read_on_worker(shared, operation) } else { read_once(shared, operation) };
    log_if_slow(name, begun.elapsed(), shared.slow);
    outcome
}

fn read_on_worker(shared: &Shared, operation: ErasedRead<'_>) -> Result<()> {
    READER.with(|reader| match reader.try_borrow_mut() {
        Ok(mut reader) => {
            let reader = reader_of(shared, &mut reader)?;
            let id = reader.refresh(shared)?;
            let read = Read::new(Access::File(&reader.connection), shared.clock.now()).with_snapshot_id(id);
            operation(&read.with_keys(shared.keys.get()))
        }
        // A nested read cannot share the transaction of the outer one.
        Err(_) => read_once(shared, operation),
    })
}

fn read_once(shared: &Shared, operation: ErasedRead<'_>) -> Result<()> {
    let connection = shared.reader()?;
    let begun = Instant::now();
    let transaction = ReadTransaction::begin(&connection)?;
    connection.progress_handler(STEPS_BETWEEN_CHECKS, Some(move || begun.elapsed() > LONG_READ_LIMIT))?;
    operation(&Read::new(Access::File(transaction.connection()), shared.clock.now()).with_keys(shared.keys.get()))
}

/// Marks this thread as a runtime worker and ends its snapshot. The runtime calls this before a worker parks.
pub fn on_thread_park() {
    IS_WORKER.set(true);
    end_snapshot_if(|_| true);
}

/// Ends the snapshot of a thread that is about to block, after which it may no longer be a worker. It is one again once
/// it parks.
pub(in crate::store) fn before_blocking() {
    IS_WORKER.set(false);
    end_snapshot_if(|_| true);
}

/// Returns true on a worker thread of the runtime.
pub(in crate::store) fn is_worker() -> bool {
    IS_WORKER.get()
}

/// Ends this thread's snapshot if it is too old.
pub fn end_stale_snapshot(now: Instant) {
    end_snapshot_if(|snapshot| now.duration_since(snapshot.taken) > SNAPSHOT_AGE);
}

fn end_snapshot_if(condition: impl FnOnce(&Snapshot) -> bool) {
    READER.with(|reader| {
        if let Ok(mut reader) = reader.try_borrow_mut()
            && let Some(reader) = reader.as_mut()
            && reader.snapshot.as_ref().is_some_and(condition)
        {
            reader.end_snapshot();
        }
    });
}

fn reader_of<'cell>(shared: &Shared, reader: &'cell mut Option<WorkerReader>) -> Result<&'cell mut WorkerReader> {
    // Tests open several stores on one thread.
    if reader.as_ref().is_some_and(|reader| reader.store != shared.id) {
        *reader = None;
    }
    if reader.is_none() {
        *reader = Some(WorkerReader { store: shared.id, connection: shared.reader()?, snapshot: None });
    }
    reader.as_mut().ok_or_else(|| Error::internal("the connection of a worker is missing"))
}

impl WorkerReader {
    /// Returns a snapshot that contains every commit made before this call.
    fn refresh(&mut self, shared: &Shared) -> Result<SnapshotId> {
        static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);
        let commits = shared.commits.load(Ordering::Acquire);
        if let Some(snapshot) = self.snapshot.as_ref().filter(|snapshot| snapshot.commits == commits) {
            return Ok(snapshot.id);
        }
        self.end_snapshot();
        begin(&self.connection)?;
        let id = SnapshotId::new(self.store, NEXT_NUMBER.fetch_add(1, Ordering::Relaxed));
        self.snapshot = Some(Snapshot { id, commits, taken: Instant::now() });
        Ok(id)
    }

    fn end_snapshot(&mut self) {
        if self.snapshot.take().is_some() {
            end(&self.connection);
        }
    }
}

impl Drop for WorkerReader {
    fn drop(&mut self) {
        // The connection must not return to the pool inside a transaction.
        self.end_snapshot();
    }
}

/// Counts running reads of the whole file. They take long, so the writer does not wait for them.
#[derive(Clone, Default)]
pub(super) struct FullReads(Arc<AtomicUsize>);

/// A running read of the whole file.
pub(super) struct FullRead<'counter>(&'counter FullReads);

impl FullReads {
    pub(super) fn begin(&self) -> FullRead<'_> {
        self.0.fetch_add(1, Ordering::Relaxed);
        FullRead(self)
    }

    pub(super) fn are_running(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

impl Drop for FullRead<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A read transaction on a pooled connection. It ends on drop, even after a panic: a connection that returned to the
/// pool inside a transaction would fail all later reads and pin the WAL.
pub(super) struct ReadTransaction<'connection>(&'connection Connection);

impl<'connection> ReadTransaction<'connection> {
    pub(super) fn begin(connection: &'connection Connection) -> Result<Self> {
        let transaction = Self(connection);
        begin(connection)?;
        Ok(transaction)
    }

    pub(super) fn connection(&self) -> &'connection Connection {
        self.0
    }
}

impl Drop for ReadTransaction<'_> {
    fn drop(&mut self) {
        if !self.0.is_autocommit() {
            end(self.0);
        }
        if let Err(error) = self.0.progress_handler(0, None::<fn() -> bool>) {
            tracing::error!(%error, "the time limit of a read could not be removed");
        }
    }
}

fn begin(connection: &Connection) -> Result<()> {
    Ok(connection.prepare_cached("begin")?.execute([]).map(drop)?)
}

/// Ends a read transaction. A failure loses nothing, but makes the next `begin` fail, which is reported.
fn end(connection: &Connection) {
    let ended = connection.prepare_cached("rollback").and_then(|mut statement| statement.execute([]));
    if let Err(error) = ended {
        tracing::error!(%error, "a read transaction could not be ended");
    }
}
