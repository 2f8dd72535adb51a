//! The SQLite databases: connections, transactions, backups and the files of the data directory.
//!
//! Reads run in place on the calling thread, on read-only connections; see [`Store::read`]. Writes run on one thread,
//! many operations to a commit; see [`Store::write`]. Only this module opens connections; only `domain` adds SQL.
//!
//! The surprise is the *sticky snapshot*: a runtime worker keeps its read transaction open between requests until
//! something is committed. Taking the WAL read lock costs more than a point query. The writer increments the commit
//! counter before it replies, so callers read their own writes. Commits of other processes become visible when the
//! snapshot is [`SNAPSHOT_AGE`] old.

mod background_checkpointer;
pub mod backup;
mod connection;
mod engine;
mod errors;
mod file_identity;
pub mod files;
mod free_space_scrub;
pub mod lock;
mod migrate;
pub mod page_changes;
pub mod page_sums;
mod pending;
pub mod restore;
mod row;
pub mod sliding_window;
mod snapshot;
mod tables;
mod transaction;
pub mod unnamed_file;
mod wal_checkpoint;
mod writer;

#[cfg(test)]
mod tests;

use std::{
    path::Path,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, sync_channel},
    },
    time::Duration,
};

use r2d2_sqlite::SqliteConnectionManager;

pub use connection::Tuning;
pub use engine::sqlite_version;
pub use errors::is_damage;
use file_identity::FileIdentity;
use migrate::{NETWORK_LOG_SCHEMA, SCHEMA, Schema};
pub use migrate::{SCHEMA_VERSION, SchemaPolicy};
pub use pending::Pending;
pub use row::Row;
use snapshot::FullReads;
pub use snapshot::{SnapshotId, end_stale_snapshot, on_thread_park};
pub use transaction::{Read, Write};
use writer::TransactionKind;
pub use writer::{CommitReplies, ReplyDispatcher, WriterLoad, WriterMetrics};

use crate::{
    clock::Clock,
    error::{Code, Error, Result},
    keys::ServerKey,
    metrics::Counter,
};

/// The maximum age of a sticky snapshot. It bounds how late changes of other processes become visible, and how long a
/// snapshot can block the reuse of the WAL.
pub const SNAPSHOT_AGE: Duration = Duration::from_millis(50);

/// The time limit of one read outside the worker threads, because it blocks the reuse of the WAL.
const LONG_READ_LIMIT: Duration = Duration::from_secs(30);

/// Interval at which the writer checks for a cancelled preparation.
const CANCELLATION_POLL: Duration = Duration::from_millis(50);

/// The database of one data directory. Clones share it.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
}

/// The size of a database file by its pages.
#[derive(Clone, Copy, Debug)]
pub struct PageBytes {
    pub used: u64,
    pub total: u64,
}

struct Shared {
    /// Distinguishes the stores of one process in thread-local snapshots.
    id: u64,
    readers: r2d2::Pool<SqliteConnectionManager>,
    commits: Arc<AtomicU64>,
    full_reads: FullReads,
    clock: Clock,
    writer: writer::Writer,
    files: FileIdentity,
    /// The server key, once it is known.
    keys: Arc<OnceLock<ServerKey>>,
    schema: Schema,
    /// Slower reads are logged.
    slow: Duration,
    tuning: Tuning,
    /// Reads that found damage in the file.
    damage_errors: Counter,
    cancels_preparation: Arc<AtomicBool>,
    can_scrub_pages: bool,
}

impl Shared {
    /// Takes a connection from the pool. The pool hides why a connection cannot be opened, so one is opened directly to
    /// find the cause.
    fn reader(&self) -> Result<r2d2::PooledConnection<SqliteConnectionManager>> {
        self.readers.get().map_err(|error| match connection::open_beside(self.files.path(), &self.tuning) {
            Err(cause) => cause,
            Ok(_) => error.into(),
        })
    }
}

impl Store {
    /// Opens the database file, creating or migrating it as the policy permits.
    ///
    /// The caller holds the lock of the data directory, or the policy is [`SchemaPolicy::RequireCurrent`].
    ///
    /// # Errors
    /// `data_directory_unusable` for a schema that is newer or may not be migrated, `configuration` if the compiled
    /// SQLite lacks a feature, storage errors otherwise.
    pub fn open(path: &Path, tuning: &Tuning, clock: Clock, policy: SchemaPolicy) -> Result<Self> {
        Self::open_with(SCHEMA, path, tuning, clock, policy)
    }

    /// Opens the file of the network log. Its writes are in the file when they reply, but synced later.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_network_log(path: &Path, tuning: &Tuning, clock: Clock, policy: SchemaPolicy) -> Result<Self> {
        Self::open_with(NETWORK_LOG_SCHEMA, path, tuning, clock, policy)
    }

    fn open_with(schema: Schema, path: &Path, tuning: &Tuning, clock: Clock, policy: SchemaPolicy) -> Result<Self> {
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        let check = |connection: &rusqlite::Connection| {
            engine::check(connection)?;
            schema.check(connection, policy)
        };
        let mut connection = connection::open_writer(path, tuning, schema.synchronous, check)?;
        schema.migrate(&mut connection, path)?;
        connection::truncate_wal(&connection)?;
        let can_scrub_pages = engine::has_page_access(&connection)?;
        let (commits, full_reads) = (Arc::new(AtomicU64::new(0)), FullReads::default());
        let files = FileIdentity::of(path);
        let keys = Arc::<OnceLock<ServerKey>>::default();
        let writer = writer::Writer::start(
            connection,
            files.clone(),
            tuning,
            clock.clone(),
            Arc::clone(&commits),
            full_reads.clone(),
            Arc::clone(&keys),
        )?;
        let shared = Shared {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            readers: connection::reader_pool(path, tuning),
            commits,
            full_reads,
            clock,
            writer,
            files,
            keys,
            schema,
            slow: tuning.slow,
            tuning: tuning.clone(),
            damage_errors: Counter::default(),
            cancels_preparation: Arc::default(),
            can_scrub_pages,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Gives all later operations the server key. Only the first one set is used.
    pub fn set_keys(&self, keys: ServerKey) {
        let _ = self.shared.keys.set(keys);
    }

    /// Runs `operation` on a consistent view of the database, in place.
    ///
    /// On a worker thread the view is the thread's sticky snapshot, so the operation must read a bounded number of rows.
    /// On other threads it is a transaction of its own, which is interrupted after 30 seconds.
    ///
    /// # Errors
    /// Errors of the operation, storage errors.
    pub fn read<T>(&self, operation: impl FnOnce(&Read<'_>) -> Result<T>) -> Result<T> {
        snapshot::read(&self.shared, operation).inspect_err(|error| {
            if is_damage(error) {
                self.shared.damage_errors.add(1);
            }
        })
    }

    /// Queues `operation` for the writer thread and returns its receipt at once.
    ///
    /// The operation runs in its own savepoint: if it fails or panics, its changes are rolled back and the other
    /// operations of the commit are unaffected. The receipt resolves after the commit is synced to disk. If the queue is
    /// full it resolves to `overloaded` at once.
    pub fn write<T, F>(&self, operation: F) -> Pending<T>
    where
        T: Send + 'static,
        F: FnOnce(&Write<'_>) -> Result<T> + Send + 'static,
    {
        self.shared.writer.submit(TransactionKind::Savepoint, operation)
    }

    /// Like [`Self::write`], without a savepoint, which is much of the cost of a small change.
    ///
    /// The operation must not fail after it changed something. If it does, its whole commit fails, so that no partial
    /// change remains.
    pub fn write_without_savepoint<T, F>(&self, operation: F) -> Pending<T>
    where
        T: Send + 'static,
        F: FnOnce(&Write<'_>) -> Result<T> + Send + 'static,
    {
        self.shared.writer.submit(TransactionKind::NoSavepoint, operation)
    }

    /// Resolves once the writer has had the write lock, whether or not other changes could be committed then.
    pub fn probe_writer(&self) -> Pending<()> {
        self.shared.writer.submit(TransactionKind::Probe, |_| Ok(()))
    }

    /// Runs `prepare` on this thread while a write transaction excludes all other writers, and then `operation` in that
    /// transaction. So `operation` finds the data that `prepare` read.
    ///
    /// Blocks for both; other writes wait, or fail with `overloaded`. `prepare` must not write, or it deadlocks.
    ///
    /// # Errors
    /// Errors of both, storage errors; `overloaded` when the preparation is cancelled. Nothing is changed then.
    pub fn write_exclusive_with<P, T, F>(&self, prepare: impl FnOnce() -> Result<P>, operation: F) -> Result<T>
    where
        P: Send + 'static,
        T: Send + 'static,
        F: FnOnce(&Write<'_>, P) -> Result<T> + Send + 'static,
    {
        let (started, start) = sync_channel(1);
        let (prepared, preparation) = sync_channel(1);
        let cancelled = Arc::clone(&self.shared.cancels_preparation);
        let receipt = self.shared.writer.submit(TransactionKind::Exclusive, move |tx| {
            if !cancelled.load(Ordering::Relaxed) {
                // Either channel fails only when the other side has stopped.
                let _ = started.send(());
            }
            operation(tx, wait_for_preparation(&preparation, &cancelled)?)
        });
        if start.recv().is_ok() {
            let _ = prepared.send(prepare()?);
        }
        receipt.wait()
    }

    /// Cancels preparations of [`Self::write_exclusive_with`] from now on, so that none delays the shutdown.
    pub fn cancel_preparation(&self) {
        self.shared.cancels_preparation.store(true, Ordering::Relaxed);
    }

    /// Sends the replies of large commits through this dispatcher. Only the first one set is used.
    pub fn dispatch_replies_with(&self, dispatcher: ReplyDispatcher) {
        self.shared.writer.dispatch_replies_with(dispatcher);
    }

    /// Returns the queue length and WAL size of the writer.
    pub fn writer_load(&self) -> WriterLoad {
        self.shared.writer.load()
    }

    /// Returns the counters of the writer since the start.
    pub fn writer_metrics(&self) -> &WriterMetrics {
        self.shared.writer.metrics()
    }

    /// Returns true if the names of the database and its WAL still refer to the open files.
    pub fn has_original_files(&self) -> bool {
        self.shared.files.is_unchanged()
    }

    /// Returns how many reads and writes found damage in the file since the start.
    pub fn damage_errors(&self) -> u64 {
        self.shared.damage_errors.get() + self.shared.writer.metrics().damage_errors.get()
    }

    /// Checks the structure of the whole database, one table with its indexes at a time. Each table is checked on its
    /// own snapshot, so that the WAL can be reused in between.
    ///
    /// # Errors
    /// Storage errors, such as damage to the list of tables.
    pub fn structure_faults(&self) -> Result<Vec<String>> {
        let outcome = self.find_structure_faults();
        if outcome.as_ref().map_or_else(is_damage, |faults| !faults.is_empty()) {
            self.shared.damage_errors.add(1);
        }
        outcome
    }

    fn find_structure_faults(&self) -> Result<Vec<String>> {
        let _running = self.shared.full_reads.begin();
        let connection = self.shared.reader()?;
        // Cached pages may differ from the disk.
        connection.execute_batch("pragma shrink_memory")?;
        let tables = snapshot::ReadTransaction::begin(&connection)
            .and_then(|transaction| Read::new(transaction.connection(), self.shared.clock.now()).tables())?;
        let mut faults = Vec::new();
        for table in tables {
            let transaction = snapshot::ReadTransaction::begin(&connection)?;
            faults.extend(backup::structure_faults_of(transaction.connection(), Some(&table))?);
        }
        Ok(faults)
    }

    /// Checks the whole database on one snapshot.
    ///
    /// # Errors
    /// Storage errors.
    pub fn faults(&self) -> Result<backup::Faults> {
        let _running = self.shared.full_reads.begin();
        let connection = self.shared.reader()?;
        let transaction = snapshot::ReadTransaction::begin(&connection)?;
        backup::faults_of(transaction.connection())
    }

    /// Lists differences between the database's schema and this program's.
    ///
    /// # Errors
    /// Storage errors.
    pub fn schema_faults(&self) -> Result<Vec<String>> {
        let connection = self.shared.reader()?;
        self.shared.schema.faults(&connection)
    }

    /// Refuses all later writes of this process with `superseded`, or permits them again.
    pub fn set_superseded(&self, is_superseded: bool) {
        self.shared.writer.set_superseded(is_superseded);
    }

    /// Returns true if another machine has taken over, so that this one writes nothing.
    pub fn is_superseded(&self) -> bool {
        self.shared.writer.is_superseded()
    }

    /// Returns true if the compiled SQLite can overwrite single pages. [`Self::vacuum`] is the alternative.
    pub fn can_scrub_pages(&self) -> bool {
        self.shared.can_scrub_pages
    }

    /// Rewrites the database without unused space, and truncates the WAL. No write runs meanwhile.
    pub fn vacuum(&self) -> Pending<()> {
        self.shared.writer.submit(TransactionKind::Vacuum, |_| Ok(()))
    }

    /// Returns how many bytes of the file's pages are in use, and how many there are.
    ///
    /// # Errors
    /// Storage errors.
    pub fn page_bytes(&self) -> Result<PageBytes> {
        let connection = self.shared.reader()?;
        let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, u32>(0).map(u64::from));
        let (size, total, free) = (pragma("page_size")?, pragma("page_count")?, pragma("freelist_count")?);
        Ok(PageBytes { used: size * total.saturating_sub(free), total: size * total })
    }

    /// Returns the path of the database file.
    pub fn path(&self) -> &Path {
        self.shared.files.path()
    }

    /// Commits all queued writes and stops the writer. Later writes fail with `overloaded`.
    pub fn close(&self) {
        self.shared.writer.stop();
    }
}

#[cfg(test)]
impl Store {
    /// Runs an operation, rolls it back, and returns the number of steps of SQLite's virtual machine: a cost that does
    /// not depend on the hardware.
    pub(crate) fn counting_steps<T>(&self, operation: impl FnOnce(&Write<'_>) -> Result<T>) -> (T, u64) {
        let connection = rusqlite::Connection::open(self.path()).unwrap();
        let steps = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&steps);
        connection.execute_batch("begin immediate").unwrap();
        let count = move || {
            counted.fetch_add(1, Ordering::Relaxed);
            false
        };
        connection.progress_handler(1, Some(count)).unwrap();
        let outcome = operation(&Write::new(&connection, self.shared.clock.now())).unwrap();
        let taken = steps.load(Ordering::Relaxed);
        connection.execute_batch("rollback").unwrap();
        (outcome, taken)
    }
}

/// Waits for the result of the preparing thread, unless the preparation is cancelled.
fn wait_for_preparation<P>(preparation: &Receiver<P>, cancelled: &AtomicBool) -> Result<P> {
    while !cancelled.load(Ordering::Relaxed) {
        match preparation.recv_timeout(CANCELLATION_POLL) {
            Ok(prepared) => return Ok(prepared),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Error::internal("the preparation of an exclusive write failed"));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
    Err(Error::new(Code::Overloaded).detail(("The service is stopping.", "服务正在停止。")))
}

/// Returns true if the database file exists and is empty, and so is its WAL.
pub fn is_empty(path: &Path) -> bool {
    path.exists() && files::database_size(path) == 0
}
