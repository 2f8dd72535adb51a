//! Opens and configures connections: common pragmas, and those of the writer and the readers.

use std::{fs::OpenOptions, path::Path, time::Duration};

use r2d2_sqlite::SqliteConnectionManager;
use rusqlite::{Connection, OpenFlags, config::DbConfig};

use crate::{
    error::Result,
    store::{Tuning, files::file_error},
};

/// Timeout for a lock of another process.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Prepared statements that each connection caches: more than the program has, so that none is prepared twice.
const CACHED_STATEMENTS: usize = 512;

/// Opens the writer's connection. `check` sees the file before anything is written to it.
pub(super) fn open_writer(
    path: &Path,
    tuning: &Tuning,
    synchronous: &str,
    check: impl FnOnce(&Connection) -> Result<()>,
) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    create_private_if_missing(path)?;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    check(&connection)?;
    configure(&connection, tuning)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    // FULL syncs the WAL at every commit; with NORMAL a power cut may undo acknowledged writes.
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // Overwrites deleted rows, because deleted user data must not remain in free pages.
    connection.pragma_update(None, "secure_delete", true)?;
    Ok(connection)
}

/// Copies the WAL into the database and truncates it: after a crash it may hold data that was deleted since. Does
/// nothing while other processes read from it.
pub(super) fn truncate_wal(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(Duration::ZERO)?;
    connection.query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(()))?;
    connection.busy_timeout(BUSY_TIMEOUT)
}

/// Creates a missing file with access for its owner only. SQLite gives the WAL the same permissions.
fn create_private_if_missing(path: &Path) -> Result<()> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop).map_err(|error| file_error(path, error))
}

/// Flags of connections other than the writer's: they change no data but take part in its locks.
fn flags_beside() -> OpenFlags {
    OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX
}

fn configure_beside(connection: &Connection, tuning: &Tuning) -> rusqlite::Result<()> {
    configure(connection, tuning)?;
    connection.pragma_update(None, "query_only", true)
}

/// Opens a read-only connection outside the pool.
pub(super) fn open_beside(path: &Path, tuning: &Tuning) -> Result<Connection> {
    let connection = Connection::open_with_flags(path, flags_beside())?;
    configure_beside(&connection, tuning)?;
    // Applies to checkpoints.
    connection.pragma_update(None, "synchronous", "full")?;
    Ok(connection)
}

pub(super) fn reader_pool(path: &Path, tuning: &Tuning) -> r2d2::Pool<SqliteConnectionManager> {
    let for_each = tuning.clone();
    let manager = SqliteConnectionManager::file(path)
        .with_flags(flags_beside())
        .with_init(move |connection| configure_beside(connection, &for_each));
    // Connections open on first use, so that a quiet server uses less memory.
    r2d2::Pool::builder()
        .max_size(tuning.readers)
        .min_idle(Some(0))
        .test_on_check_out(false)
        .connection_timeout(BUSY_TIMEOUT)
        .build_unchecked(manager)
}

fn configure(connection: &Connection, tuning: &Tuning) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
    // Without the stability guarantee SQLite prepares a statement again at every bind once ANALYZE has run, which
    // doubles the cost of a point query.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "temp_store", "memory")?;
    connection.pragma_update(None, "cache_size", -i64::from(tuning.cache_kib))?;
    connection.pragma_update(None, "mmap_size", i64::try_from(tuning.mmap_size).unwrap_or(i64::MAX))
}
