//! Taking away what deleted rows left in unused space of the file: see `store/residue.rs`.
//!
//! Whoever deletes what must not be found again notes it in the same write. Some seconds later a pass over the whole
//! file looks at every page, on a thread of its own, and clears what it finds in slices that hold the writer for about
//! a millisecond each. The note is kept in the database: a pass that was cut off begins again with the next start.

use std::{
    thread::sleep,
    time::{Duration, Instant},
};

use crate::{app::App, core::Core, domain::operations::settings, error::Result, store::Write};

/// Counts the deletions that were noted.
const NOTED: &str = "scrub_requested";
/// The last of them that a whole pass came after.
const CLEARED: &str = "scrub_completed";
/// Pages looked at in one view of the database, which pins the log for as long as that takes.
const LOOKED_AT_ONCE: u32 = 512;
/// Pages cleared by one operation.
const CLEARED_AT_ONCE: usize = 64;
/// Between two operations that clear, so that other writes have the disk to themselves most of the time.
const PAUSE: Duration = Duration::from_millis(10);

/// What a pass over the file came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pass {
    pub pages: u32,
    /// Pages that had residue.
    pub cleared: usize,
    pub took: Duration,
}

/// Notes that something was deleted that must not be found again.
pub fn request_in(tx: &Write<'_>) -> Result<()> {
    settings::increase_in(tx, NOTED)
}

/// The same where so many rows were deleted, and says how many.
pub fn request_if_deleted_in(tx: &Write<'_>, deleted: usize) -> Result<usize> {
    if deleted > 0 {
        request_in(tx)?;
    }
    Ok(deleted)
}

/// Deletes slice by slice until none is left, so that the writer is never held for long, and says how many rows went.
/// Blocks for as long as that takes.
///
/// # Errors
/// Storage errors; what was deleted by then stays deleted.
pub fn delete_in_batches(
    core: &Core,
    delete: impl Fn(&Write<'_>) -> Result<usize> + Clone + Send + 'static,
) -> Result<usize> {
    let mut deleted = 0;
    delete_counted_in_batches(core, &mut deleted, &|| true, delete)?;
    Ok(deleted)
}

/// The same as long as somebody wants it to go on, adding to `deleted` slice by slice, so that what went before a
/// failure counts.
///
/// # Errors
/// Storage errors.
pub fn delete_counted_in_batches(
    core: &Core,
    deleted: &mut usize,
    goes_on: &dyn Fn() -> bool,
    delete: impl Fn(&Write<'_>) -> Result<usize> + Clone + Send + 'static,
) -> Result<()> {
    while goes_on() {
        let delete = delete.clone();
        match core.store.write(move |tx| request_if_deleted_in(tx, delete(tx)?)).wait()? {
            0 => return Ok(()),
            some => *deleted += some,
        }
    }
    Ok(())
}

/// Clears what was left by all that was deleted until now, if there is something that no pass came after. Blocks for
/// as long as reading the file takes.
///
/// # Errors
/// Storage errors; then the next pass begins anew.
pub fn run_if_due(app: &App) -> Result<Option<Pass>> {
    let (noted, cleared) =
        app.store.read(|tx| Ok((settings::number_in(tx, NOTED)?, settings::number_in(tx, CLEARED)?)))?;
    if noted == cleared {
        return Ok(None);
    }
    let begun = Instant::now();
    let mut pass = Pass::default();
    loop {
        let done = pass.pages;
        let looked_at = app.store.read(|tx| {
            let Some(pages) = tx.scrubbable_pages()? else { return Ok(None) };
            let last = pages.min(done + LOOKED_AT_ONCE);
            Ok(Some((last, tx.pages_to_scrub(done + 1..last + 1)?)))
        })?;
        let Some((last, found)) = looked_at else {
            tracing::warn!(
                "what deleted rows left cannot be cleared: the file is larger than 64 GiB, or of another make"
            );
            break;
        };
        if last <= done {
            break;
        }
        pass.pages = last;
        for some in found.chunks(CLEARED_AT_ONCE) {
            let some = some.to_vec();
            pass.cleared += app.store.write(move |tx| tx.scrub_pages(&some)).wait()?;
            sleep(PAUSE);
        }
    }
    app.store.write(move |tx| finish_in(tx, noted)).wait()?;
    pass.took = begun.elapsed();
    Ok(Some(pass))
}

fn finish_in(tx: &Write<'_>, noted: i64) -> Result<()> {
    settings::put_in(tx, CLEARED, &noted.to_string())?;
    // The log has the pages as they were.
    tx.truncate_wal_after_commit();
    Ok(())
}
