//! Runs SQLite's checkpoints, which copy the WAL into the database, and reports the WAL's pages.
//!
//! A failed sync ends the process, whichever thread meets it.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use libsqlite3_sys::{SQLITE_IOERR_DIR_FSYNC, SQLITE_IOERR_FSYNC};
use rusqlite::{Connection, Row, hooks::Wal};

thread_local! {
    static WAL_PAGES: WalPages = WalPages::default();
}

/// WAL pages after the last commit, as SQLite reports them to the connection's hook.
#[derive(Clone, Default)]
pub(super) struct WalPages(Arc<AtomicI64>);

impl WalPages {
    /// Returns the counter of the connection that commits on this thread.
    pub(super) fn of_this_thread() -> Self {
        WAL_PAGES.with(Self::clone)
    }

    pub(super) fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn set(&self, pages: i64) {
        self.0.store(pages, Ordering::Relaxed);
    }
}

// rusqlite takes a plain function, which runs on the committing thread; hence the thread-local.
#[expect(clippy::unnecessary_wraps)]
pub(super) fn note_wal_pages(_: &Wal, pages: i32) -> rusqlite::Result<()> {
    WAL_PAGES.with(|noted| noted.set(i64::from(pages)));
    Ok(())
}

/// The outcome of a checkpoint.
pub(super) struct Copied {
    /// WAL pages that are in the database now.
    pub(super) pages: i64,
    /// The whole WAL was copied. A passive checkpoint is not "busy" when a snapshot blocks a part of the copy, so the page
    /// counts are compared too.
    pub(super) is_all: bool,
}

/// Runs a checkpoint. Logs a failure and returns none.
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

/// Ends the process if a sync failed. The kernel may have dropped the pages, and a retry would report success.
pub(super) fn stop_if_sync_failed(error: &rusqlite::Error) {
    const SYNC_FAILURES: [i32; 2] = [SQLITE_IOERR_FSYNC, SQLITE_IOERR_DIR_FSYNC];
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
