//! Deleting what has been kept long enough, in slices small enough that nobody waits for them.

use crate::{
    app::App,
    error::Result,
    ops::{
        access_log, admins, budget, codes, feedback, history, idempotency, known_emails, notifications, residue,
        tokens, violations,
    },
    store::Write,
};

/// Rows deleted by one operation, so that the writer is never held for long.
const SLICE: u32 = 200;

/// Deletes everything that is past its retention and says how many rows that were.
pub fn sweep(app: &App) -> Result<usize> {
    let retention = app.config.retention.clone();
    let zone = app.config.limits.time_zone.clone();
    let deleted = delete_expired_codes(app)?
        + in_slices(app, move |tx| codes::delete_old_sends_in(tx, retention.code_sends, SLICE))?
        + in_slices(app, |tx| tokens::delete_expired_in(tx, SLICE))?
        + in_slices(app, move |tx| history::delete_deactivated_in(tx, retention.deactivated_history, SLICE))?
        + in_slices(app, move |tx| idempotency::delete_older_in(tx, retention.idempotency_keys, SLICE))?
        + in_slices(app, move |tx| known_emails::forget_parked_in(tx, retention.parked_points, SLICE))?
        + in_slices(app, move |tx| budget::delete_old_spending_in(tx, &zone, SLICE))?
        + in_slices(app, move |tx| notifications::delete_expired_in(tx, retention.expired_notifications, SLICE))?
        + in_slices(app, move |tx| violations::delete_older_in(tx, retention.violations, SLICE))?
        + in_slices(app, |tx| feedback::forget_clients_in(tx, SLICE))?
        + in_slices(app, |tx| admins::delete_expired_in(tx, SLICE))?
        + in_slices(app, move |tx| access_log::delete_older_in(tx, retention.access_log))?;
    if deleted > 0 {
        app.store.write(residue::note_in).wait()?;
        tracing::info!(deleted, "deleted rows past their retention");
    }
    Ok(deleted)
}

/// Looks for them where nobody waits for it.
fn delete_expired_codes(app: &App) -> Result<usize> {
    let (mut deleted, mut last) = (0, None);
    loop {
        let expired = app.store.read(|tx| codes::expired_after_in(tx, last.as_ref(), SLICE))?;
        last = expired.last().cloned();
        if last.is_none() {
            return Ok(deleted);
        }
        deleted += app.store.write(move |tx| codes::clear_in(tx, &expired)).wait()?;
    }
}

fn in_slices(app: &App, delete: impl Fn(&Write<'_>) -> Result<usize> + Clone + Send + 'static) -> Result<usize> {
    let mut deleted = 0;
    loop {
        let delete = delete.clone();
        match app.store.write(move |tx| delete(tx)).wait()? {
            0 => return Ok(deleted),
            some => deleted += some,
        }
    }
}
