//! The SQLite engine: connections, snapshots, backups and the files of the data directory.
//!
//! Only this module opens SQLite connections. The surprise is the *sticky snapshot*: a runtime worker keeps its read
//! transaction open between requests until something is committed. Taking the WAL read lock costs more than a point
//! query. The writer increments the commit counter before it replies, so callers read their own writes. Commits of other
//! processes become visible when the snapshot is [`SNAPSHOT_AGE`] old.

mod background_checkpointer;
pub mod backup;
mod checkpoint_schedule;
mod committer;
mod connection;
mod copy;
mod errors;
mod file_identity;
mod free_space_scrub;
mod library;
mod migrate;
pub mod page_changes;
pub mod page_sums;
pub mod restore;
mod snapshot;
mod statement;
mod table_layout;
mod wal_checkpoint;

#[cfg(test)]
mod tests;

use std::{
    cell::Cell,
    path::Path,
    sync::{Arc, OnceLock, atomic::AtomicU64},
    time::Duration,
};

use r2d2_sqlite::SqliteConnectionManager;

use self::{
    background_checkpointer::BackgroundCheckpointer,
    checkpoint_schedule::{CheckpointSchedule, WAL_TRUNCATED_ABOVE},
    committer::Committer,
    file_identity::FileIdentity,
    migrate::Schema,
    snapshot::{FullReads, ReadTransaction},
    wal_checkpoint::{WalPages, note_wal_pages},
};
pub(super) use self::{
    copy::{FileCopySide, FileRows, has_rows},
    migrate::{NETWORK_LOG_SCHEMA, SCHEMA},
    snapshot::{before_blocking, is_worker},
    statement::{Statement, value_in},
    table_layout::{ColumnType, TableLayout, table_layouts},
};
pub use self::{
    errors::is_damage,
    library::sqlite_version,
    migrate::{SCHEMA_VERSION, SchemaPolicy},
    snapshot::{end_stale_snapshot, on_thread_park},
};
use super::{
    Pending, Read, Tuning, WriterLoad, files,
    snapshot_id::new_store_number,
    transaction::{Access, ErasedRead},
    writer::{TransactionKind, Writer},
};
use crate::{clock::Clock, error::Result, keys::ServerKey, metrics::Counter};
pub(super) use rusqlite::{Connection as FileConnection, Row as FileRow};

/// The maximum age of a sticky snapshot. It bounds how late changes of other processes become visible, and how long a
/// snapshot can block the reuse of the WAL.
pub const SNAPSHOT_AGE: Duration = Duration::from_millis(50);

/// The time limit of one read outside the worker threads, because it blocks the reuse of the WAL.
const LONG_READ_LIMIT: Duration = Duration::from_secs(30);

/// The size of a database file by its pages.
#[derive(Clone, Copy, Debug)]
pub struct PageBytes {
    pub used: u64,
    pub total: u64,
}

/// The database file of one data directory. Clones share it.
#[derive(Clone)]
pub struct FileStore {
    shared: Arc<Shared>,
}

struct Shared {
    /// Distinguishes the stores of one process in thread-local snapshots.
    id: u64,
    readers: r2d2::Pool<SqliteConnectionManager>,
    commits: Arc<AtomicU64>,
    full_reads: FullReads,
    clock: Clock,
    writer: Writer,
    files: FileIdentity,
    /// The server key, once it is known.
    keys: Arc<OnceLock<ServerKey>>,
    schema: Schema,
    /// Slower reads are logged.
    slow: Duration,
    tuning: Tuning,
    /// Reads that found damage in the file.
    damage_errors: Counter,
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

impl FileStore {
    pub(super) fn open(
        schema: Schema,
        path: &Path,
        tuning: &Tuning,
        clock: Clock,
        policy: SchemaPolicy,
    ) -> Result<Self> {
        let check = |connection: &rusqlite::Connection| {
            library::check(connection)?;
            schema.check(connection, policy)
        };
        let mut connection = connection::open_writer(path, tuning, schema.synchronous, check)?;
        schema.migrate(&mut connection, path)?;
        connection::truncate_wal(&connection)?;
        let can_scrub_pages = library::has_page_access(&connection)?;
        connection.wal_hook(Some(note_wal_pages));
        connection.pragma_update(None, "journal_size_limit", WAL_TRUNCATED_ABOVE.cast_signed())?;
        let (commits, full_reads) = (Arc::new(AtomicU64::new(0)), FullReads::default());
        let (files, keys) = (FileIdentity::of(path), Arc::<OnceLock<ServerKey>>::default());
        let writer = {
            let checkpointer = BackgroundCheckpointer::start(files.path(), tuning)?;
            let (commits, full_reads, keys) = (Arc::clone(&commits), full_reads.clone(), Arc::clone(&keys));
            let (files, clock) = (files.clone(), clock.clone());
            Writer::start(tuning, move |queue| {
                Committer {
                    connection,
                    queue,
                    clock,
                    commits,
                    full_reads,
                    keys,
                    wal: files::with_suffix(files.path(), "-wal"),
                    wal_pages: WalPages::of_this_thread(),
                    files,
                    checkpointer,
                    checkpoint: Cell::new(CheckpointSchedule::default()),
                    truncate_wal_at: Cell::new(None),
                }
                .run();
            })?
        };
        let shared = Shared {
            id: new_store_number(),
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
            can_scrub_pages,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    pub(super) fn set_keys(&self, keys: ServerKey) {
        let _ = self.shared.keys.set(keys);
    }

    pub(super) fn read(&self, name: &'static str, operation: ErasedRead<'_>) -> Result<()> {
        snapshot::read(&self.shared, name, operation).inspect_err(|error| {
            if is_damage(error) {
                self.shared.damage_errors.add(1);
            }
        })
    }

    pub(super) fn writer(&self) -> &Writer {
        &self.shared.writer
    }

    pub(super) fn writer_load(&self) -> WriterLoad {
        self.shared.writer.load(files::size_of(&files::with_suffix(self.path(), "-wal")))
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
        let tables = ReadTransaction::begin(&connection).and_then(|transaction| {
            Read::new(Access::File(transaction.connection()), self.shared.clock.now()).tables()
        })?;
        let mut faults = Vec::new();
        for table in tables {
            let transaction = ReadTransaction::begin(&connection)?;
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
        let transaction = ReadTransaction::begin(&connection)?;
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
}

#[cfg(test)]
impl FileStore {
    /// Returns the steps of a statement's plan.
    pub(crate) fn query_plan(&self, sql: &str) -> Vec<String> {
        let connection = rusqlite::Connection::open(self.path()).unwrap();
        let mut plan = connection.prepare(&format!("explain query plan {sql}")).unwrap();
        let unbound = vec![rusqlite::types::Null; plan.parameter_count()];
        let steps = plan.query_map(rusqlite::params_from_iter(unbound), |row| row.get::<_, String>(3)).unwrap();
        steps.map(std::result::Result::unwrap).collect()
    }

    /// Runs an operation, rolls it back, and returns the number of steps of SQLite's virtual machine: a cost that does
    /// not depend on the hardware.
    pub(crate) fn counting_steps<T>(&self, operation: impl FnOnce(&super::Write<'_>) -> Result<T>) -> (T, u64) {
        let connection = rusqlite::Connection::open(self.path()).unwrap();
        let steps = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&steps);
        connection.execute_batch("begin immediate").unwrap();
        let count = move || {
            counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            false
        };
        connection.progress_handler(1, Some(count)).unwrap();
        let outcome = operation(&super::Write::new(Access::File(&connection), self.shared.clock.now())).unwrap();
        let taken = steps.load(std::sync::atomic::Ordering::Relaxed);
        connection.execute_batch("rollback").unwrap();
        (outcome, taken)
    }
}
