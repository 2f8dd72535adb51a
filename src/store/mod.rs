//! One SQLite file: who may touch it, and how a change becomes durable.
//!
//! Reading happens in place, on the calling thread, on a read-only connection; see [`Store::read`]. Writing happens
//! on one thread, many operations to a commit; see [`Store::write`]. Nothing outside this room opens a connection,
//! and nothing but `ops` writes SQL.
//!
//! The surprise is the *sticky snapshot*: a worker thread keeps its read transaction open from one request to the
//! next for as long as nothing was committed, because taking and releasing the read lock of the WAL costs more than a
//! point query. The writer moves [`Store`]'s commit counter after the commit and before it answers, so everyone reads
//! their own writes; another process's commit is seen when the snapshot is [`SNAPSHOT_AGE`] old.
//!
//! Between SQLite and the system stands `gathering.c`, which writes the pages of a commit to the log in few calls.

pub mod backup;
mod connection;
mod background_checkpointer;
pub mod files;
pub mod lock;
mod migrate;
mod pending;
mod file_identity;
mod free_space_scrub;
pub mod restore;
mod row;
pub mod sliding_window;
mod snapshot;
mod statements;
mod tables;
mod transaction;
mod writer;

#[cfg(test)]
mod tests;

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, sync_channel},
    },
    time::Duration,
};

use r2d2_sqlite::SqliteConnectionManager;

use crate::{
    clock::Clock,
    error::{Code, Error, Result},
    metrics::Counter,
};

pub use connection::Tuning;
use file_identity::FileIdentity;
use migrate::SCHEMA;
pub use migrate::{SCHEMA_VERSION, SchemaPolicy};
pub use pending::Pending;
pub use row::Row;
use snapshot::FullReads;
pub use snapshot::{SnapshotId, end_stale_snapshot, on_thread_park};
pub use transaction::{Read, Write};
use writer::Kind;
pub use writer::{CommitReplies, ReplyDispatcher, WriterLoad, WriterMetrics};

/// How old a sticky snapshot may become: it bounds how late another process's change is seen, and how long the WAL
/// cannot be reused.
pub const SNAPSHOT_AGE: Duration = Duration::from_millis(50);

/// How long one read outside the worker threads may take before it is cut, because it pins the WAL.
const LONG_READ_LIMIT: Duration = Duration::from_secs(30);

/// How long it goes unnoticed that a preparation is given up.
const LOOK_UP_EVERY: Duration = Duration::from_millis(50);

/// The version of SQLite that is compiled in.
pub fn sqlite_version() -> &'static str {
    rusqlite::version()
}

/// The database of one data directory. Clones share it.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
}

struct Shared {
    /// Tells the stores of one process apart in thread-local snapshots.
    id: u64,
    readers: r2d2::Pool<SqliteConnectionManager>,
    commits: Arc<AtomicU64>,
    full_reads: FullReads,
    clock: Clock,
    writer: writer::Writer,
    files: FileIdentity,
    /// A read that takes longer is logged.
    slow: Duration,
    tuning: Tuning,
    /// Reads that met damage in the file.
    damage_errors: Counter,
    /// Nobody's preparation is waited for any longer.
    gives_up_preparing: Arc<AtomicBool>,
}

impl Shared {
    /// A connection of the pool. Where none can be opened, the pool knows that but not why.
    fn reader(&self) -> Result<r2d2::PooledConnection<SqliteConnectionManager>> {
        self.readers.get().map_err(|error| match connection::open_beside(self.files.path(), &self.tuning) {
            Err(cause) => cause,
            Ok(_) => error.into(),
        })
    }
}

impl Store {
    /// Opens the database file, making it with today's schema if there is none.
    ///
    /// The caller holds the data directory's lock, or the policy is to require the current schema.
    ///
    /// # Errors
    /// `data_directory_unusable` for a schema that is newer or may not be migrated, storage errors otherwise.
    pub fn open(path: &Path, tuning: &Tuning, clock: Clock, policy: SchemaPolicy) -> Result<Self> {
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        let refuse = |connection: &rusqlite::Connection| SCHEMA.check(connection, policy);
        let mut connection = connection::open_writer(path, tuning, refuse)?;
        SCHEMA.migrate(&mut connection, path)?;
        connection::empty_log(&connection)?;
        let (commits, full_reads) = (Arc::new(AtomicU64::new(0)), FullReads::default());
        let files = FileIdentity::of(path);
        let writer = writer::Writer::start(
            connection,
            files.clone(),
            tuning,
            clock.clone(),
            Arc::clone(&commits),
            full_reads.clone(),
        )?;
        let readers = connection::reader_pool(path, tuning);
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let (tuning, slow) = (tuning.clone(), tuning.slow);
        Ok(Self {
            shared: Arc::new(Shared {
                id,
                readers,
                commits,
                full_reads,
                clock,
                writer,
                files,
                slow,
                tuning,
                damage_errors: Counter::default(),
                gives_up_preparing: Arc::default(),
            }),
        })
    }

    /// Runs `operation` on a consistent view of the database, in place.
    ///
    /// On a worker thread of the server the view is the thread's sticky snapshot, so the operation must touch a
    /// bounded number of rows; elsewhere it is a transaction of its own, cut after half a minute.
    ///
    /// # Errors
    /// Those of the operation, and storage errors.
    pub fn read<T>(&self, operation: impl FnOnce(&Read<'_>) -> Result<T>) -> Result<T> {
        snapshot::read(&self.shared, operation).inspect_err(|error| {
            if is_damage(error) {
                self.shared.damage_errors.add(1);
            }
        })
    }

    /// Queues `operation` for the writer thread and returns the receipt at once.
    ///
    /// The operation runs in a savepoint of its own: if it fails or panics, what it changed is undone and the others
    /// of its commit are not touched. The receipt is answered when the commit is synced to disk, never before.
    /// A full queue answers `overloaded` at once.
    pub fn write<T, F>(&self, operation: F) -> Pending<T>
    where
        T: Send + 'static,
        F: FnOnce(&Write<'_>) -> Result<T> + Send + 'static,
    {
        self.shared.writer.submit(Kind::Savepoint, operation)
    }

    /// Like [`Self::write`], for an operation that fails, if it does, before it changes anything. It needs no
    /// savepoint, which is much of what a small change costs, and what is changed after one is held in memory besides.
    ///
    /// One that breaks its promise takes everything in its commit with it, so that nothing stays half done.
    pub fn write_without_savepoint<T, F>(&self, operation: F) -> Pending<T>
    where
        T: Send + 'static,
        F: FnOnce(&Write<'_>) -> Result<T> + Send + 'static,
    {
        self.shared.writer.submit(Kind::NoSavepoint, operation)
    }

    /// Runs `prepare` on this thread while nobody writes, be it in this process or in another, and then `operation`, in
    /// the transaction that kept everybody from writing. So what `prepare` reads is what `operation` finds. Blocks for
    /// as long as both take; other writes wait until then or are answered `overloaded`. `prepare` itself must not
    /// write: it would wait for itself.
    ///
    /// # Errors
    /// Those of both, with nothing changed then, and storage errors; `overloaded` when it is given up meanwhile.
    pub fn write_exclusive_with<P, T, F>(&self, prepare: impl FnOnce() -> Result<P>, operation: F) -> Result<T>
    where
        P: Send + 'static,
        T: Send + 'static,
        F: FnOnce(&Write<'_>, P) -> Result<T> + Send + 'static,
    {
        let (begun, beginning) = sync_channel(1);
        let (prepared, preparation) = sync_channel(1);
        let gives_up = Arc::clone(&self.shared.gives_up_preparing);
        let receipt = self.shared.writer.submit(Kind::Exclusive, move |tx| {
            if !gives_up.load(Ordering::Relaxed) {
                // Either channel fails only when the other side has given up.
                let _ = begun.send(());
            }
            operation(tx, prepared_meanwhile(&preparation, &gives_up)?)
        });
        if beginning.recv().is_ok() {
            let _ = prepared.send(prepare()?);
        }
        receipt.wait()
    }

    /// Has the writer wait for no preparation of [`Self::write_exclusive_with`] any longer: a service that stops must not be held
    /// up by one, and whatever else is to be written waits behind it.
    pub fn cancel_preparation(&self) {
        self.shared.gives_up_preparing.store(true, Ordering::Relaxed);
    }

    /// Has the answers of commits that many wait for taken to where they wait, by the first dispatcher that is named.
    pub fn dispatch_replies_with(&self, dispatcher: ReplyDispatcher) {
        self.shared.writer.dispatch_replies_with(dispatcher);
    }

    /// How much work waits for the writer, and how large its write-ahead log is.
    pub fn writer_load(&self) -> WriterLoad {
        self.shared.writer.writer_load()
    }

    /// What the writer has done since the start.
    pub fn writer_metrics(&self) -> &WriterMetrics {
        self.shared.writer.metrics()
    }

    /// Whether the database and its log still have their names.
    pub fn has_original_files(&self) -> bool {
        self.shared.files.is_unchanged()
    }

    /// How often a read or a write met damage in the file since the start.
    pub fn damage_errors(&self) -> u64 {
        self.shared.damage_errors.get() + self.shared.writer.metrics().damage_errors.get()
    }

    /// Looks through the structure of the whole database, one table with its indexes after the other. Each is looked at
    /// on a snapshot of its own, so that the log can be reused in between.
    ///
    /// # Errors
    /// Storage errors, also damage to the list of tables.
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
        // What is remembered of the file is not what stands on the disk.
        connection.execute_batch("pragma shrink_memory")?;
        let tables = snapshot::Once::begin(&connection)
            .and_then(|view| Read::new(view.connection(), self.shared.clock.now()).tables())?;
        let mut faults = Vec::new();
        for table in tables {
            let view = snapshot::Once::begin(&connection)?;
            faults.extend(backup::structure_faults_of(view.connection(), Some(&table))?);
        }
        Ok(faults)
    }

    /// Looks through the whole database for what is wrong with it.
    ///
    /// # Errors
    /// Storage errors.
    pub fn faults(&self) -> Result<backup::Faults> {
        let _running = self.shared.full_reads.begin();
        let connection = self.shared.reader()?;
        let view = snapshot::Once::begin(&connection)?;
        backup::faults_of(view.connection())
    }

    /// What of the schema is missing, or other than this program makes it.
    ///
    /// # Errors
    /// Storage errors.
    pub fn schema_faults(&self) -> Result<Vec<String>> {
        let connection = self.shared.reader()?;
        SCHEMA.faults(&connection)
    }

    /// The database file.
    pub fn path(&self) -> &Path {
        self.shared.files.path()
    }

    /// Ends the writer after it has committed all that was queued. Later writes answer `overloaded`.
    pub fn close(&self) {
        self.shared.writer.stop();
    }
}

#[cfg(test)]
impl Store {
    /// Runs an operation on a connection of its own, undoes it, and says how many steps SQLite's machine took: what an
    /// operation costs, whatever the machine under it.
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

impl From<rusqlite::Error> for Error {
    #[cold]
    #[inline(never)]
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode;
        let code = match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Code::StorageFull,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::OperationInterrupted) => {
                Code::Overloaded
            }
            Some(
                ErrorCode::SystemIoFailure
                | ErrorCode::ReadOnly
                | ErrorCode::CannotOpen
                | ErrorCode::DatabaseCorrupt
                | ErrorCode::NotADatabase,
            ) => Code::StorageFailed,
            // Whoever the row would belong to has left since the token was looked up, and the token with them.
            _ if is_missing_parent(&error) => Code::Unauthenticated,
            _ => Code::Internal,
        };
        let detail = match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                "The database is damaged where this is kept; nothing was stored."
            }
            Some(ErrorCode::ReadOnly) => {
                "The database, its directory or its disk may not be written to; nothing was stored."
            }
            _ => code.meaning(),
        };
        let error = Self::new(code).detail(detail).caused_by(error);
        if matches!(code, Code::Internal | Code::Unauthenticated) {
            error
        } else {
            error.retry_after(Duration::from_secs(1))
        }
    }
}

/// Waits for what is prepared on another thread, unless that is given up.
fn prepared_meanwhile<P>(preparation: &Receiver<P>, gives_up: &AtomicBool) -> Result<P> {
    while !gives_up.load(Ordering::Relaxed) {
        match preparation.recv_timeout(LOOK_UP_EVERY) {
            Ok(prepared) => return Ok(prepared),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Error::internal("what was to be prepared was not"));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
    Err(Error::new(Code::Overloaded).detail("The service is stopping."))
}

/// Whether an error says that the file itself is damaged, and not the disk or the rights to it.
pub fn is_damage(error: &Error) -> bool {
    error.source.as_ref().and_then(|source| source.downcast_ref()).is_some_and(is_damage_of)
}

fn is_damage_of(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode;
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// Whether there is a database file with nothing in it, and no log that would fill it.
pub fn is_empty(path: &Path) -> bool {
    path.exists() && files::database_size(path) == 0
}

fn is_missing_parent(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| error.extended_code == libsqlite3_sys::SQLITE_CONSTRAINT_FOREIGNKEY)
}

impl From<r2d2::Error> for Error {
    fn from(error: r2d2::Error) -> Self {
        Self::new(Code::Overloaded).retry_after(Duration::from_secs(1)).caused_by(error)
    }
}
