//! Reading in place, on a snapshot that a worker thread keeps from one read to the next.
//!
//! Only threads that have told us that they park (see [`on_thread_park`]) keep one, because parking is where an idle
//! thread lets go of it. A kept snapshot pins the WAL and hides what other processes commit, so a busy thread ends it
//! too once it is old, by [`end_stale_snapshot`] at the start of every request; a read does not look at the time.
//!
//! So a slow read is noticed without a clock as well: SQLite calls back once a statement has taken many steps, and only
//! from then on the time is looked at. A read that waits for the disk with few steps shows as a slow request alone.

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
use self_cell::self_cell;

use super::{
    LONG_READ_LIMIT, Read, SNAPSHOT_AGE, Shared,
    statements::{Kept, Lend},
};
use crate::error::{Error, Result};

/// Steps of SQLite's machine after which a read is worth a look at the time: a millisecond or so.
const MANY_STEPS: i32 = 50_000;

thread_local! {
    /// Since when the read of this thread is known to take many steps.
    static LONG_SINCE: Cell<Option<Instant>> = const { Cell::new(None) };
    static PARKS: Cell<bool> = const { Cell::new(false) };
    static RESIDENT: RefCell<Option<Resident>> = const { RefCell::new(None) };
}

/// The reading connection that a worker thread keeps checked out.
struct Resident {
    store: u64,
    reader: Reader,
    snapshot: Option<Snapshot>,
}

type Pooled = r2d2::PooledConnection<SqliteConnectionManager>;

self_cell!(
    /// A connection and the statements that it keeps.
    struct Reader {
        owner: Pooled,
        #[not_covariant]
        dependent: Kept,
    }
);

/// One state of one database, as a worker thread sees it from one read to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotId {
    store: u64,
    /// No two snapshots have the same.
    number: u64,
}

impl SnapshotId {
    /// Whether both are of the same database.
    pub fn is_same_store(self, other: Self) -> bool {
        self.store == other.store
    }
}

struct Snapshot {
    view: SnapshotId,
    /// The commit counter from before the snapshot was taken: it may be older than the snapshot, never newer.
    commits: u64,
    taken: Instant,
}

/// What is done with a read, seen from here, where all are the same.
type Reading<'operation> = &'operation mut dyn FnMut(&Read<'_>) -> Result<()>;

pub(super) fn read<T>(shared: &Shared, operation: impl FnOnce(&Read<'_>) -> Result<T>) -> Result<T> {
    let name = std::any::type_name_of_val(&operation);
    let (mut operation, mut outcome) = (Some(operation), None);
    read_named(shared, name, &mut |read| {
        outcome = operation.take().map(|operation| operation(read)).transpose()?;
        Ok(())
    })?;
    outcome.ok_or_else(|| Error::internal("a read was begun and not done"))
}

fn read_named(shared: &Shared, name: &'static str, operation: Reading<'_>) -> Result<()> {
    if !is_worker() {
        return read_once(shared, name, operation);
    }
    RESIDENT.with(|resident| match resident.try_borrow_mut() {
        Ok(mut resident) => {
            let resident = resident_of(shared, &mut resident)?;
            let view = resident.refresh(shared)?;
            let outcome = resident.reader.with_dependent(|connection, kept| {
                operation(&Read::keeping(connection, kept, shared.clock.now()).of(view))
            });
            if let Some(since) = LONG_SINCE.take() {
                note_if_slow(shared, name, since);
            }
            outcome
        }
        // A read inside a read: it cannot share the connection's transaction, so it gets one of its own.
        Err(_) => read_once(shared, name, operation),
    })
}

/// Says that this thread is about to park, and lets go of its snapshot. The server's runtime calls this.
pub fn on_thread_park() {
    PARKS.set(true);
    RESIDENT.with(|resident| {
        if let Ok(mut resident) = resident.try_borrow_mut()
            && let Some(resident) = resident.as_mut()
        {
            resident.let_go();
        }
    });
}

/// Whether this is one of the runtime's worker threads.
pub(super) fn is_worker() -> bool {
    PARKS.get()
}

/// Ends this thread's snapshot if it is too old: for a thread that is busy without reading or parking.
pub fn end_stale_snapshot(now: Instant) {
    RESIDENT.with(|resident| {
        if let Ok(mut resident) = resident.try_borrow_mut()
            && let Some(resident) = resident.as_mut()
            && resident.snapshot.as_ref().is_some_and(|snapshot| now.duration_since(snapshot.taken) > SNAPSHOT_AGE)
        {
            resident.let_go();
        }
    });
}

fn resident_of<'cell>(shared: &Shared, resident: &'cell mut Option<Resident>) -> Result<&'cell mut Resident> {
    // A thread that outlives a store, as in tests that open several, must not read the old one's file.
    if resident.as_ref().is_some_and(|resident| resident.store != shared.id) {
        *resident = None;
    }
    if resident.is_none() {
        let connection = shared.reader()?;
        connection.progress_handler(MANY_STEPS, Some(note_many_steps))?;
        let reader = Reader::new(connection, |connection| Kept::new(connection));
        *resident = Some(Resident { store: shared.id, reader, snapshot: None });
    }
    resident.as_mut().ok_or_else(|| Error::internal("a connection was checked out and is gone"))
}

impl Resident {
    /// Makes sure that the open snapshot shows all that was committed before this call.
    fn refresh(&mut self, shared: &Shared) -> Result<SnapshotId> {
        static SNAPSHOTS: AtomicU64 = AtomicU64::new(0);
        let commits = shared.commits.load(Ordering::Acquire);
        if let Some(snapshot) = self.snapshot.as_ref().filter(|snapshot| snapshot.commits == commits) {
            return Ok(snapshot.view);
        }
        self.let_go();
        self.run("begin")?;
        let view = SnapshotId { store: self.store, number: SNAPSHOTS.fetch_add(1, Ordering::Relaxed) };
        self.snapshot = Some(Snapshot { view, commits, taken: Instant::now() });
        Ok(view)
    }

    fn let_go(&mut self) {
        if self.snapshot.take().is_some()
            && let Err(error) = self.run("rollback")
        {
            // It changed nothing, so there is nothing to lose; the next `begin` fails, and that is reported.
            tracing::error!(%error, "a read transaction could not be ended");
        }
    }

    fn run(&self, sql: &'static str) -> Result<()> {
        self.reader.with_dependent(|_, kept| kept.lend(sql, &mut |statement| Ok(statement.execute([]).map(drop)?)))
    }
}

impl Drop for Resident {
    fn drop(&mut self) {
        // The connection goes back to the pool, and must not take an open transaction there.
        self.let_go();
        let taken_back = self.reader.borrow_owner().progress_handler(0, None::<fn() -> bool>);
        if let Err(error) = taken_back {
            tracing::error!(%error, "a connection could not be told to forget its thread");
        }
    }
}

fn read_once(shared: &Shared, name: &'static str, operation: Reading<'_>) -> Result<()> {
    let connection = shared.reader()?;
    let begun = Instant::now();
    let once = Once::begin(&connection)?;
    connection.progress_handler(100_000, Some(move || begun.elapsed() > LONG_READ_LIMIT))?;
    let outcome = operation(&Read::new(once.0, shared.clock.now()));
    note_if_slow(shared, name, begun);
    outcome
}

/// Notes when a statement has taken many steps, and lets it go on.
fn note_many_steps() -> bool {
    if LONG_SINCE.get().is_none() {
        LONG_SINCE.set(Some(Instant::now()));
    }
    false
}

fn note_if_slow(shared: &Shared, operation: &'static str, begun: Instant) {
    let took = begun.elapsed();
    if took >= shared.slow {
        tracing::warn!(operation, duration_ms = took.as_millis(), "slow query");
    }
}

/// Reads of the whole file, counted while they run: they take long, and nobody need wait for one to leave the log.
#[derive(Clone, Default)]
pub(super) struct FullReads(Arc<AtomicUsize>);

pub(super) struct FullRead<'counted>(&'counted FullReads);

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

/// A connection on loan for one read. However the read ends, by a panic too, its transaction ends with it: a connection
/// that went back to the pool inside of one would fail everybody after it, and pin the WAL for ever.
pub(super) struct Once<'connection>(&'connection Connection);

impl<'connection> Once<'connection> {
    pub(super) fn begin(connection: &'connection Connection) -> Result<Self> {
        let once = Self(connection);
        begin(connection)?;
        Ok(once)
    }

    pub(super) fn connection(&self) -> &'connection Connection {
        self.0
    }
}

impl Drop for Once<'_> {
    fn drop(&mut self) {
        if !self.0.is_autocommit() {
            end(self.0);
        }
        if let Err(error) = self.0.progress_handler(0, None::<fn() -> bool>) {
            tracing::error!(%error, "the time limit of a read could not be taken back");
        }
    }
}

fn begin(connection: &Connection) -> Result<()> {
    Ok(connection.prepare_cached("begin")?.execute([]).map(drop)?)
}

/// Ends a read transaction. It changed nothing, so there is nothing to lose if ending it fails; a transaction that
/// stays open makes the next `begin` fail, which is reported.
fn end(connection: &Connection) {
    let ended = connection.prepare_cached("rollback").and_then(|mut statement| statement.execute([]));
    if let Err(error) = ended {
        tracing::error!(%error, "a read transaction could not be ended");
    }
}
