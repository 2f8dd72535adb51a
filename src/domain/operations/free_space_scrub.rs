//! Schedules and runs the free-space scrub, which clears remains of deleted rows from the database file.
//!
//! An operation that deletes private data requests a scrub in the same write. Some seconds later a background pass reads
//! the whole file and overwrites stale bytes in small writes; see `store/sqlite/free_space_scrub.rs`. If the compiled SQLite
//! cannot write single pages, the pass runs VACUUM instead. The request is stored, so that an interrupted pass restarts.

use std::{
    thread::sleep,
    time::{Duration, Instant},
};

use crate::{
    core::Core,
    domain::operations::{settings, steps},
    error::Result,
    store::{
        Store, Write,
        files::{database_size, ensure_free_space, parent_of},
    },
};

/// Number of requests so far.
const REQUESTED: &str = "scrub_requested";
/// Number of requests that the last complete pass covers.
const COMPLETED: &str = "scrub_completed";
/// Pages inspected in one read, which blocks the reuse of the WAL meanwhile.
const PAGES_PER_READ: u32 = 512;
/// Pages overwritten in one write: about a millisecond of the writer's time.
const PAGES_PER_WRITE: usize = 64;
/// Pause between two writes of a pass, so that other writes are barely delayed.
const PAUSE: Duration = Duration::from_millis(10);

/// The result of a pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pass {
    pub pages: u32,
    /// Pages that were overwritten. VACUUM does not count them.
    pub scrubbed: usize,
    pub took: Duration,
}

/// The way in which a pass clears unused space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    OverwritePages,
    Vacuum,
}

/// Requests a scrub, because private data was deleted in this write.
pub fn request_in(tx: &Write<'_>) -> Result<()> {
    settings::increase_in(tx, REQUESTED)
}

/// Requests a scrub if rows were deleted. Returns their number.
pub fn request_if_deleted_in(tx: &Write<'_>, deleted: usize) -> Result<usize> {
    if deleted > 0 {
        request_in(tx)?;
    }
    Ok(deleted)
}

/// Deletes in steps until none is left, so that no write takes long. Returns the number of deleted rows.
///
/// # Errors
/// Storage errors; earlier steps stay deleted.
pub fn delete_in_steps(
    core: &Core,
    delete: impl Fn(&Write<'_>) -> Result<usize> + Clone + Send + 'static,
) -> Result<usize> {
    let mut deleted = 0;
    delete_counted_in_steps(core, &mut deleted, &|| true, delete)?;
    Ok(deleted)
}

/// Deletes in steps until none is left or `continues` returns false: see [`steps::repeat`].
///
/// # Errors
/// Storage errors; earlier steps stay deleted.
pub fn delete_counted_in_steps(
    core: &Core,
    deleted: &mut usize,
    continues: &dyn Fn() -> bool,
    delete: impl Fn(&Write<'_>) -> Result<usize> + Clone + Send + 'static,
) -> Result<()> {
    steps::repeat(core, deleted, continues, move |tx| request_if_deleted_in(tx, delete(tx)?))
}

/// Runs a pass if one was requested since the last complete pass. Blocks until the pass is complete.
///
/// # Errors
/// Storage errors; the next call starts a new pass.
pub fn run_if_due(core: &Core) -> Result<Option<Pass>> {
    // Other engines reuse the space of deleted rows by themselves.
    let Some(file) = core.store.file() else { return Ok(None) };
    let method = if file.can_scrub_pages() { Method::OverwritePages } else { Method::Vacuum };
    run_if_due_with(&core.store, method)
}

fn run_if_due_with(store: &Store, method: Method) -> Result<Option<Pass>> {
    let (requested, completed) =
        store.read(|tx| Ok((settings::number_in(tx, REQUESTED)?, settings::number_in(tx, COMPLETED)?)))?;
    if requested == completed {
        return Ok(None);
    }
    let begun = Instant::now();
    let mut pass = match method {
        Method::OverwritePages => overwrite_pages(store)?,
        Method::Vacuum => vacuum(store)?,
    };
    store.write(move |tx| complete_in(tx, requested)).wait()?;
    pass.took = begun.elapsed();
    Ok(Some(pass))
}

fn overwrite_pages(store: &Store) -> Result<Pass> {
    let mut pass = Pass::default();
    loop {
        let done = pass.pages;
        let inspected = store.read(|tx| {
            let Some(pages) = tx.scrubbable_pages()? else { return Ok(None) };
            let last = pages.min(done + PAGES_PER_READ);
            Ok(Some((last, tx.pages_to_scrub(done + 1..last + 1)?)))
        })?;
        let Some((last, found)) = inspected else {
            tracing::warn!("the free-space scrub is not possible: the file exceeds 64 GiB or has an unknown layout");
            return Ok(pass);
        };
        if last <= done {
            return Ok(pass);
        }
        pass.pages = last;
        for batch in found.chunks(PAGES_PER_WRITE) {
            let batch = batch.to_vec();
            pass.scrubbed += store.write(move |tx| tx.scrub_pages(&batch)).wait()?;
            sleep(PAUSE);
        }
    }
}

/// Rewrites the file. It needs space for a temporary copy and for the same pages in the WAL.
fn vacuum(store: &Store) -> Result<Pass> {
    let file = store.require_file()?;
    ensure_free_space(parent_of(file.path()), database_size(file.path()).saturating_mul(2))?;
    file.vacuum().wait()?;
    let pages = store.read(|tx| tx.one("pragma page_count", (), |row| row.get(0)))?;
    Ok(Pass { pages, ..Pass::default() })
}

fn complete_in(tx: &Write<'_>, requested: i64) -> Result<()> {
    settings::put_in(tx, COMPLETED, &requested.to_string())?;
    // The WAL contains the pages as they were before.
    tx.truncate_wal_after_commit();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        clock::Clock,
        store::{SchemaPolicy, Tuning},
    };

    const SECRET: &str = "a question that its user deleted";

    /// Stores and deletes enough rows that SQLite leaves stale copies of them, and requests a scrub.
    fn delete_rows(store: &Store) {
        let put = |tx: &Write<'_>, number: u64| {
            let name = format!("{:016x} {SECRET}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            tx.execute("insert into settings (name, value, updated_at) values (?1, '', 0)", [name]).map(drop)
        };
        store.write(move |tx| (0..5_000).try_for_each(|number| put(tx, number))).wait().unwrap();
        let deleted = store.write(|tx| {
            tx.truncate_wal_after_commit();
            request_if_deleted_in(tx, tx.execute("delete from settings where name like '%deleted'", ())?)
        });
        assert_eq!(deleted.wait().unwrap(), 5_000);
    }

    fn is_in_file(store: &Store) -> bool {
        let bytes = std::fs::read(store.file().unwrap().path()).unwrap();
        bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes())
    }

    #[test]
    fn clears_deleted_rows_once_for_each_request() {
        for method in [Method::OverwritePages, Method::Vacuum] {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("yarrow.db");
            let store = Store::open(&path, &Tuning::SMALL, Clock::default(), SchemaPolicy::Migrate).unwrap();
            if method == Method::OverwritePages && !store.file().unwrap().can_scrub_pages() {
                continue;
            }
            assert_eq!(run_if_due_with(&store, method).unwrap(), None);
            for _ in 0..2 {
                delete_rows(&store);
                let pass = run_if_due_with(&store, method).unwrap().unwrap();
                assert!(pass.pages > 0);
                assert!(!is_in_file(&store), "{method:?}");
                assert_eq!(run_if_due_with(&store, method).unwrap(), None);
            }
        }
    }
}
