//! Deleting what has been kept long enough, in slices small enough that nobody waits for them.

use crate::{
    app::App,
    domain::{
        divination::{budget, history, model_calls},
        identity::{codes, known_emails, tokens},
        messaging::{feedback, notifications},
        moderation::{shadow, violations},
        operations::{admins, clock_jump, free_space_scrub, idempotency, network_log},
    },
    error::{Error, Result},
    store::Write,
};

/// Rows deleted by one operation, so that the writer is never held for long.
const SLICE: u32 = 200;

/// Deletes everything that is past its retention and says how many rows that were.
///
/// # Errors
/// Storage errors, after all else was deleted.
pub fn sweep(app: &App) -> Result<usize> {
    sweep_while(app, &|| true)
}

fn sweep_while(app: &App, goes_on: &dyn Fn() -> bool) -> Result<usize> {
    let retention = app.config.retention.clone();
    let zone = app.config.limits.time_zone.clone();
    let attempts_window = app.config.admin.attempts_window;
    let mut sweep = Sweep { app, goes_on, deleted: 0, failure: None };
    sweep.expired_codes();
    sweep.in_slices(move |tx| codes::delete_old_sends_in(tx, retention.code_sends, SLICE));
    sweep.in_slices(|tx| tokens::delete_expired_in(tx, SLICE));
    sweep.in_slices(move |tx| history::delete_deactivated_in(tx, retention.deactivated_history, SLICE));
    sweep.in_slices(move |tx| idempotency::delete_older_in(tx, retention.idempotency_keys, SLICE));
    sweep.in_slices(move |tx| known_emails::forget_parked_in(tx, retention.parked_points, SLICE));
    sweep.in_slices(move |tx| budget::delete_old_spending_in(tx, &zone, SLICE));
    sweep.in_slices(|tx| model_calls::hourly_limit::delete_old_in(tx, SLICE));
    sweep.in_slices(move |tx| notifications::delete_expired_in(tx, retention.expired_notifications, SLICE));
    sweep.in_slices(move |tx| violations::delete_older_in(tx, retention.violations, SLICE));
    sweep.in_slices(move |tx| shadow::delete_older_in(tx, retention.violations, SLICE));
    sweep.in_slices(|tx| feedback::forget_clients_in(tx, SLICE));
    sweep.in_slices(move |tx| admins::delete_expired_in(tx, attempts_window, SLICE));
    sweep.in_slices(move |tx| network_log::delete_older_in(tx, retention.access_log));
    sweep.in_slices(network_log::pieces::delete_empty_in);
    sweep.end()
}

/// The same without anybody asking, and so only while the clock is believed. Between two slices it is asked whether to
/// go on: what is left then is left to the next sweep.
///
/// # Errors
/// As [`sweep`].
pub fn sweep_if_believed(app: &App, goes_on: &dyn Fn() -> bool) -> Result<usize> {
    if clock_jump::is_believed(app)? { sweep_while(app, goes_on) } else { Ok(0) }
}

/// What was deleted so far. A table that cannot be swept, because a page of it is damaged, keeps nobody from the
/// others.
struct Sweep<'app> {
    app: &'app App,
    goes_on: &'app dyn Fn() -> bool,
    deleted: usize,
    /// The first.
    failure: Option<Error>,
}

impl Sweep<'_> {
    fn expired_codes(&mut self) {
        let outcome = delete_expired_codes(self.app, &mut self.deleted, self.goes_on);
        self.note(outcome);
    }

    fn in_slices(&mut self, delete: impl Fn(&Write<'_>) -> Result<usize> + Clone + Send + 'static) {
        let outcome = free_space_scrub::delete_counted_in_batches(self.app, &mut self.deleted, self.goes_on, delete);
        self.note(outcome);
    }

    fn note(&mut self, outcome: Result<()>) {
        if let Err(error) = outcome {
            tracing::error!(%error, "some of what is past its retention could not be deleted");
            self.failure.get_or_insert(error);
        }
    }

    fn end(self) -> Result<usize> {
        if self.deleted > 0 {
            tracing::info!(deleted = self.deleted, "deleted rows past their retention");
        }
        self.failure.map_or(Ok(self.deleted), Err)
    }
}

/// Looks for them where nobody waits for it.
fn delete_expired_codes(app: &App, deleted: &mut usize, goes_on: &dyn Fn() -> bool) -> Result<()> {
    let mut last = None;
    while goes_on() {
        let expired = app.store.read(|tx| codes::expired_after_in(tx, last.as_ref(), SLICE))?;
        last = expired.last().cloned();
        if last.is_none() {
            return Ok(());
        }
        let delete = move |tx: &Write<'_>| free_space_scrub::request_if_deleted_in(tx, codes::clear_in(tx, &expired)?);
        *deleted += app.store.write(delete).wait()?;
    }
    Ok(())
}
