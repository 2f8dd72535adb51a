//! How connections are opened: the pragmas that every one of them has, and those of its kind.

use std::{fs::OpenOptions, path::Path, time::Duration};

use r2d2_sqlite::SqliteConnectionManager;
use rusqlite::{Connection, OpenFlags, config::DbConfig};

use super::files::file_error;
use crate::error::Result;

/// What an operator may tune.
#[derive(Clone, Debug)]
pub struct Tuning {
    /// Bytes of the file that are mapped into memory; 0 for none, because an I/O error under a map kills the process.
    pub mmap_size: u64,
    /// Page cache of each connection, in KiB.
    pub cache_kib: u32,
    /// Connections for reading: one for each worker thread, the rest for long operations.
    pub readers: u32,
    /// Operations that may wait for the writer; one more is refused.
    pub queue: usize,
    /// Operations in one commit at most: it bounds how long the first of them waits for the last.
    pub commit_size: usize,
    /// What takes longer than this is logged.
    pub slow: Duration,
}

impl Tuning {
    /// For a store that serves one caller for a moment.
    pub const SMALL: Self =
        Self { mmap_size: 0, cache_kib: 1024, readers: 2, queue: 64, commit_size: 64, slow: Duration::from_secs(1) };
}

/// How long a connection waits for a lock that another process holds, such as a command beside the server.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

const STATEMENTS_KEPT: usize = 128;

/// Opens the writer's connection. What is found in the file is shown to `refuse` before anything is written to it.
pub(super) fn open_writer(
    path: &Path,
    tuning: &Tuning,
    refuse: impl FnOnce(&Connection) -> Result<()>,
) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    make_private(path)?;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    refuse(&connection)?;
    configure(&connection, tuning)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    // FULL syncs the log at every commit; with NORMAL a power cut may undo what was already acknowledged.
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // Deleted text is overwritten: who leaves must not stay in free pages.
    connection.pragma_update(None, "secure_delete", true)?;
    Ok(connection)
}

/// Copies what a crash left in the log into the database and truncates the log: it may hold what was deleted since. A
/// log that others are reading from stays as it is; it is not a crash's then.
pub(super) fn empty_log(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(Duration::ZERO)?;
    connection.query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(()))?;
    connection.busy_timeout(BUSY_TIMEOUT)
}

/// Makes the file, if there is none, so that only its owner may read it. SQLite gives its log the same rights.
fn make_private(path: &Path) -> Result<()> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop).map_err(|error| file_error(path, error))
}

/// What connections beside the writer's are opened with: they change nothing, but take part in its locks.
fn flags_beside() -> OpenFlags {
    OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX
}

fn configure_beside(connection: &Connection, tuning: &Tuning) -> rusqlite::Result<()> {
    configure(connection, tuning)?;
    connection.pragma_update(None, "query_only", true)
}

/// A connection that is none of the pool's.
pub(super) fn open_beside(path: &Path, tuning: &Tuning) -> Result<Connection> {
    let connection = Connection::open_with_flags(path, flags_beside())?;
    configure_beside(&connection, tuning)?;
    // Checkpoints sync by this.
    connection.pragma_update(None, "synchronous", "full")?;
    Ok(connection)
}

pub(super) fn reader_pool(path: &Path, tuning: &Tuning) -> r2d2::Pool<SqliteConnectionManager> {
    let for_each = tuning.clone();
    let manager = SqliteConnectionManager::file(path)
        .with_flags(flags_beside())
        .with_init(move |connection| configure_beside(connection, &for_each));
    // Connections are made when they are first needed: a quiet server should not hold the memory of a busy one.
    r2d2::Pool::builder()
        .max_size(tuning.readers)
        .min_idle(Some(0))
        .test_on_check_out(false)
        .connection_timeout(BUSY_TIMEOUT)
        .build_unchecked(manager)
}

fn configure(connection: &Connection, tuning: &Tuning) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
    // Without the stability guarantee a bound parameter that the planner peeked at makes SQLite prepare the statement
    // again at every bind, which doubles the cost of a point query once ANALYZE has run.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "temp_store", "memory")?;
    connection.pragma_update(None, "cache_size", -i64::from(tuning.cache_kib))?;
    connection.pragma_update(None, "mmap_size", i64::try_from(tuning.mmap_size).unwrap_or(i64::MAX))
}
