//! Deletes data past its retention, in slices small enough that no other write waits long.

use std::time::Duration;

use crate::{
    core::Core,
    domain::{
        divination::{budget, history, model_calls},
        identity::{codes, email_rewards, tokens},
        messaging::{feedback, notifications},
        moderation::{shadow_mode, violations},
        operations::{
            admins,
            clock_jump::ClockGuard,
            free_space_scrub, idempotency,
            network_log::{self, NetworkLog},
        },
    },
    error::{Error, Result},
    store::Write,
};

/// Rows deleted by one write.
const SLICE: u32 = 200;

/// Deletes everything past its retention and returns the number of rows.
///
/// # Errors
/// Storage errors, after all other tables were swept.
pub fn sweep(core: &Core, log: &NetworkLog) -> Result<usize> {
    sweep_while(core, log, &|| true)
}

/// Sweeps if the clock is trusted, until `is_running` returns false. The next sweep continues.
///
/// # Errors
/// As [`sweep`].
pub fn sweep_if_clock_trusted(clock: &ClockGuard, log: &NetworkLog, is_running: &dyn Fn() -> bool) -> Result<usize> {
    if clock.is_trusted()? { sweep_while(&clock.core, log, is_running) } else { Ok(0) }
}

fn sweep_while(core: &Core, log: &NetworkLog, is_running: &dyn Fn() -> bool) -> Result<usize> {
    let retention = core.config.retention.clone();
    let zone = core.config.limits.time_zone.clone();
    let attempts_window = core.config.admin.attempts_window;
    let mut sweep = Sweep { core, is_running, deleted: 0, first_failure: None };
    sweep.expired_codes();
    sweep.in_slices(move |tx| codes::delete_old_in(tx, retention.code_sends, SLICE));
    sweep.in_slices(move |tx| codes::messages::delete_older_in(tx, retention.code_messages, SLICE));
    sweep.in_slices(|tx| tokens::delete_expired_in(tx, SLICE));
    sweep.in_slices(move |tx| history::delete_deactivated_in(tx, retention.deactivated_history, SLICE));
    sweep.in_slices(move |tx| idempotency::delete_older_in(tx, retention.idempotency_keys, SLICE));
    sweep.in_slices(move |tx| email_rewards::delete_expired_parked_in(tx, retention.parked_points, SLICE));
    sweep.in_slices(move |tx| budget::delete_old_spending_in(tx, &zone, SLICE));
    sweep.in_slices(|tx| model_calls::hourly_limit::delete_old_in(tx, SLICE));
    sweep.in_slices(move |tx| notifications::delete_expired_in(tx, retention.expired_notifications, SLICE));
    sweep.in_slices(move |tx| violations::delete_older_in(tx, retention.violations, SLICE));
    sweep.in_slices(move |tx| shadow_mode::delete_older_in(tx, retention.violations, SLICE));
    sweep.in_slices(|tx| feedback::delete_client_networks_in(tx, SLICE));
    sweep.in_slices(move |tx| admins::delete_expired_in(tx, attempts_window, SLICE));
    sweep.network_log(log, retention.access_log);
    sweep.finish()
}

/// A sweep over all tables. A table that fails, because a page is damaged, does not stop the others.
struct Sweep<'run> {
    core: &'run Core,
    is_running: &'run dyn Fn() -> bool,
    deleted: usize,
    first_failure: Option<Error>,
}

impl Sweep<'_> {
    fn expired_codes(&mut self) {
        let outcome = delete_expired_codes(self.core, &mut self.deleted, self.is_running);
        self.record(outcome);
    }

    fn in_slices(&mut self, delete: impl Fn(&Write<'_>) -> Result<usize> + Clone + Send + 'static) {
        let outcome =
            free_space_scrub::delete_counted_in_batches(self.core, &mut self.deleted, self.is_running, delete);
        self.record(outcome);
    }

    fn network_log(&mut self, log: &NetworkLog, age: Duration) {
        let outcome = network_log::delete_older(log, age, self.is_running).map(|deleted| self.deleted += deleted);
        self.record(outcome);
    }

    fn record(&mut self, outcome: Result<()>) {
        if let Err(error) = outcome {
            tracing::error!(%error, "some rows past their retention could not be deleted");
            self.first_failure.get_or_insert(error);
        }
    }

    fn finish(self) -> Result<usize> {
        if self.deleted > 0 {
            tracing::info!(deleted = self.deleted, "deleted rows past their retention");
        }
        self.first_failure.map_or(Ok(self.deleted), Err)
    }
}

/// Searches for expired codes in reads, because no index lists them and a write must not take long.
fn delete_expired_codes(core: &Core, deleted: &mut usize, is_running: &dyn Fn() -> bool) -> Result<()> {
    let mut last = None;
    while is_running() {
        let expired = core.store.read(|tx| codes::list_expired_after_in(tx, last.as_ref(), SLICE))?;
        last = expired.last().cloned();
        if last.is_none() {
            return Ok(());
        }
        let delete = move |tx: &Write<'_>| free_space_scrub::request_if_deleted_in(tx, codes::delete_in(tx, &expired)?);
        *deleted += core.store.write(delete).wait()?;
    }
    Ok(())
}
