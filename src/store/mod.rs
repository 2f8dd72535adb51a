//! The database: one API over its engines, transactions, and the files of the data directory.
//!
//! Reads run on the calling thread; see [`Store::read`]. Writes run on one thread, many operations to a commit; see
//! [`Store::write`]. Each engine is a module that alone knows its client library; only `domain` adds SQL, and every
//! statement is the same text for all engines.

mod copy;
pub mod files;
pub mod lock;
mod pending;
mod postgres;
mod row;
mod row_list;
mod snapshot_id;
pub mod sliding_window;
mod sqlite;
mod tables;
mod transaction;
mod tuning;
pub mod unnamed_file;
mod value;
mod writer;

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError, sync_channel},
    },
    time::Duration,
};

use secrecy::SecretString;

pub use self::{
    copy::{CopiedTable, CopySide, RowProgress, copy_tables, file_has_rows},
    pending::Pending,
    postgres::{OLDEST_SERVER_VERSION, ServerLoad, ServerReport, without_password},
    row::Row,
    snapshot_id::SnapshotId,
    sqlite::{
        FileStore, PageBytes, SCHEMA_VERSION, SNAPSHOT_AGE, SchemaPolicy, backup, end_stale_snapshot, on_thread_park,
        page_changes, page_sums, restore, sqlite_version,
    },
    transaction::{Later, Read, Write},
    tuning::Tuning,
    value::{OwnedSqlValue, RowError, RowResult, SqlColumn, SqlParameter, SqlParameters, SqlValue},
    writer::{CommitReplies, GroupedWrite, ReplyDispatcher, WriterLoad, WriterMetrics},
};
use self::{
    postgres::ServerStore,
    transaction::ErasedRead,
    writer::{TransactionKind, Writer},
};
use crate::{
    clock::Clock,
    error::{Code, Error, Result},
    keys::ServerKey,
    types::Timestamp,
};

/// The name of the one process that uses a file, which has no copies.
const FILE_COPY_NAME: &str = "";

/// Interval at which the writer checks for a cancelled preparation.
const CANCELLATION_POLL: Duration = Duration::from_millis(50);

/// The database of an installation. Clones share it.
#[derive(Clone)]
pub struct Store {
    engine: Engine,
    cancels_preparation: Arc<AtomicBool>,
}

#[derive(Clone)]
enum Engine {
    File(FileStore),
    Server(ServerStore),
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
        FileStore::open(sqlite::SCHEMA, path, tuning, clock, policy).map(Self::of_file)
    }

    /// Opens the file of the network log. Its writes are in the file when they reply, but synced later.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_network_log(path: &Path, tuning: &Tuning, clock: Clock, policy: SchemaPolicy) -> Result<Self> {
        FileStore::open(sqlite::NETWORK_LOG_SCHEMA, path, tuning, clock, policy).map(Self::of_file)
    }

    /// Opens a database on a PostgreSQL server, creating or migrating its schema as the policy permits. `copy` names this
    /// process among the copies of the service.
    ///
    /// # Errors
    /// `configuration` for an unusable URL, `data_directory_unusable` as for a file, storage errors.
    pub fn open_server(
        url: &SecretString,
        copy: String,
        tuning: &Tuning,
        clock: Clock,
        policy: SchemaPolicy,
    ) -> Result<Self> {
        let server = ServerStore::open(url, copy, tuning, clock, policy)?;
        Ok(Self { engine: Engine::Server(server), cancels_preparation: Arc::default() })
    }

    fn of_file(file: FileStore) -> Self {
        Self { engine: Engine::File(file), cancels_preparation: Arc::default() }
    }

    /// Returns the database file, for operations that only files have.
    pub fn file(&self) -> Option<&FileStore> {
        match &self.engine {
            Engine::File(file) => Some(file),
            Engine::Server(_) => None,
        }
    }

    /// Returns the database file.
    ///
    /// # Errors
    /// `unsupported_by_database` for another engine.
    pub fn require_file(&self) -> Result<&FileStore> {
        self.file().ok_or_else(|| Code::UnsupportedByDatabase.into())
    }

    fn writer(&self) -> &Writer {
        match &self.engine {
            Engine::File(file) => file.writer(),
            Engine::Server(server) => server.writer(),
        }
    }

    /// Gives all later operations the server key. Only the first one set is used.
    pub fn set_keys(&self, keys: ServerKey) {
        match &self.engine {
            Engine::File(file) => file.set_keys(keys),
            Engine::Server(server) => server.set_keys(keys),
        }
    }

    /// Runs `operation` on a consistent view of the database, in place.
    ///
    /// On a worker thread the view is the thread's sticky snapshot, so the operation must read a bounded number of rows.
    /// On other threads it is a transaction of its own, which is interrupted after 30 seconds.
    ///
    /// # Errors
    /// Errors of the operation, storage errors.
    pub fn read<T>(&self, operation: impl FnOnce(&Read<'_>) -> Result<T>) -> Result<T> {
        let name = std::any::type_name_of_val(&operation);
        let (mut operation, mut outcome) = (Some(operation), None);
        self.read_erased(name, &mut |read| {
            outcome = operation.take().map(|operation| operation(read)).transpose()?;
            Ok(())
        })?;
        outcome.ok_or_else(|| Error::internal("a read did not run"))
    }

    /// Returns the id of a read that would begin now. `None` on a file, where a read must begin first.
    pub fn snapshot_id(&self) -> Option<SnapshotId> {
        match &self.engine {
            Engine::File(_) => None,
            Engine::Server(server) => Some(server.snapshot_id()),
        }
    }

    /// Lets each commit on a server read a number, so that the reads after it know the number without a query; see
    /// [`SnapshotId::watched`]. Only the first query counts.
    pub fn watch(&self, sql: &'static str) {
        if let Engine::Server(server) = &self.engine {
            server.watch(sql);
        }
    }

    /// Returns the first row of one statement. Cheaper than [`Self::read`] on a server.
    ///
    /// # Errors
    /// Storage errors.
    pub fn read_first<T>(
        &self,
        sql: &str,
        params: impl SqlParameters,
        row: impl FnOnce(&Row<'_>) -> RowResult<T>,
    ) -> Result<Option<T>> {
        match &self.engine {
            Engine::File(_) => self.read(|tx| tx.first(sql, params, row)),
            Engine::Server(server) => server.read_first(sql, &params, row),
        }
    }

    fn read_erased(&self, name: &'static str, operation: ErasedRead<'_>) -> Result<()> {
        match &self.engine {
            Engine::File(file) => file.read(name, operation),
            Engine::Server(server) => server.read(name, operation),
        }
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
        self.writer().submit(TransactionKind::Savepoint, operation)
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
        self.writer().submit(TransactionKind::NoSavepoint, operation)
    }

    /// Queues a write that is plain data. Those of its kind that wait at the same time run as one set, whose statements are
    /// about many rows. See [`GroupedWrite`].
    pub fn write_grouped<W: GroupedWrite>(&self, write: W) -> Pending<W::Done> {
        self.writer().submit_grouped(write)
    }

    /// Resolves once the writer has had the write lock, whether or not other changes could be committed then.
    pub fn probe_writer(&self) -> Pending<()> {
        self.writer().submit(TransactionKind::Probe, |_| Ok(()))
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
        let cancelled = Arc::clone(&self.cancels_preparation);
        let receipt = self.writer().submit(TransactionKind::Exclusive, move |tx| {
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
        self.cancels_preparation.store(true, Ordering::Relaxed);
    }

    /// Sends the replies of large commits through this dispatcher. Only the first one set is used.
    pub fn dispatch_replies_with(&self, dispatcher: ReplyDispatcher) {
        self.writer().dispatch_replies_with(dispatcher);
    }

    /// Returns the queue length and WAL size of the writer.
    pub fn writer_load(&self) -> WriterLoad {
        match &self.engine {
            Engine::File(file) => file.writer_load(),
            Engine::Server(server) => server.writer().load(0),
        }
    }

    /// Returns the connections to the database server and the copies on it, if there is a server.
    pub fn server_load(&self) -> Option<ServerLoad> {
        match &self.engine {
            Engine::File(_) => None,
            Engine::Server(server) => Some(server.load()),
        }
    }

    /// Returns the counters of the writer since the start.
    pub fn writer_metrics(&self) -> &WriterMetrics {
        self.writer().metrics()
    }

    /// Returns true if the names of the database and its WAL still refer to the open files.
    pub fn has_original_files(&self) -> bool {
        match &self.engine {
            Engine::File(file) => file.has_original_files(),
            Engine::Server(_) => true,
        }
    }

    /// Returns how many reads and writes found damage in the database since the start.
    pub fn damage_errors(&self) -> u64 {
        match &self.engine {
            Engine::File(file) => file.damage_errors(),
            Engine::Server(server) => server.writer().metrics().damage_errors.get(),
        }
    }

    /// Lists differences between the database's schema and this program's.
    ///
    /// # Errors
    /// Storage errors.
    pub fn schema_faults(&self) -> Result<Vec<String>> {
        match &self.engine {
            Engine::File(file) => file.schema_faults(),
            Engine::Server(server) => server.schema_faults(),
        }
    }

    /// Copies one state of the database to a new file, while others write. Blocks.
    ///
    /// # Errors
    /// Storage errors; the file is then incomplete.
    pub fn copy_to_file(&self, path: &Path, now: Timestamp, progress: RowProgress<'_>) -> Result<()> {
        match &self.engine {
            Engine::File(file) => file.copy_to(path, &mut |done, total| progress("copying", done, total)),
            Engine::Server(server) => copy::copy_server_to_file(server, path, now, progress),
        }
    }

    /// Returns the size of the database in bytes, with a file's write-ahead log.
    ///
    /// # Errors
    /// Storage errors.
    pub fn size(&self) -> Result<u64> {
        match &self.engine {
            Engine::File(file) => Ok(files::database_size(file.path())),
            Engine::Server(server) => server.size(),
        }
    }

    /// Returns what the database server says about itself, if there is one.
    ///
    /// # Errors
    /// Storage errors.
    pub fn server_report(&self) -> Result<Option<ServerReport>> {
        match &self.engine {
            Engine::File(_) => Ok(None),
            Engine::Server(server) => server.report().map(Some),
        }
    }

    /// Refuses all later writes of this process with `superseded`, or permits them again.
    pub fn set_superseded(&self, is_superseded: bool) {
        self.writer().set_superseded(is_superseded);
    }

    /// Returns true if another machine has taken over, so that this one writes nothing.
    pub fn is_superseded(&self) -> bool {
        self.writer().is_superseded()
    }

    /// Commits all queued writes and stops the writer. Later writes fail with `overloaded`.
    pub fn close(&self) {
        match &self.engine {
            Engine::File(file) => file.writer().stop(),
            Engine::Server(server) => server.close(),
        }
    }

    /// Makes this process one of the copies of the service that share the database, until [`Self::close`].
    ///
    /// # Errors
    /// Storage errors.
    pub fn join_copies(&self) -> Result<()> {
        match &self.engine {
            Engine::File(_) => Ok(()),
            Engine::Server(server) => server.join_copies(),
        }
    }

    /// Returns true if this process runs the jobs that must run once among all copies of the service.
    pub fn is_leader(&self) -> bool {
        match &self.engine {
            Engine::File(_) => true,
            Engine::Server(server) => server.status().is_leader(),
        }
    }

    /// Returns true if this process has been the leader without a break for as long as another copy takes to be seen as
    /// gone. So the other copies had time to announce themselves after an outage of the database.
    pub fn leads_steadily(&self) -> bool {
        match &self.engine {
            Engine::File(_) => true,
            Engine::Server(server) => server.status().leads_steadily(),
        }
    }

    /// Returns the name of this process among the copies of the service; empty for a file, which one process uses.
    pub fn copy_name(&self) -> &str {
        match &self.engine {
            Engine::File(_) => FILE_COPY_NAME,
            Engine::Server(server) => server.copy_name(),
        }
    }

    /// Returns the number of other copies of the service that run on this database.
    pub fn other_copies(&self) -> u32 {
        match &self.engine {
            Engine::File(_) => 0,
            Engine::Server(server) => server.status().others(),
        }
    }
}

/// Returns true if the error reports damage in the database itself, as opposed to its disk or permissions.
pub fn is_damage(error: &Error) -> bool {
    sqlite::is_damage(error) || postgres::is_damage(error)
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
