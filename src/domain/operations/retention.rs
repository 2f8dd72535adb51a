//! Deletes data past its retention, in steps so short that no other write waits long.

use std::time::Duration;

use crate::{
    core::Core,
    domain::{
        divination::{budget, history, model_calls},
        identity::{codes, email_rewards, identities, tokens},
        messaging::{feedback, notifications, push_queue},
        moderation::{reviews, shadow_mode, violations},
        money::purchases::messages,
        operations::{
            active_users, admins,
            clock_jump::ClockGuard,
            deletions, free_space_scrub, idempotency,
            network_log::{self, NetworkLog},
            request_tallies,
            steps::CHUNK,
            webhook_outbox,
        },
    },
    error::{Error, Result},
    store::Write,
};

/// The time between a change and the moment at which a client can have read everything before it.
const DELETIONS_MARGIN: Duration = Duration::from_hours(1);

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
    sweep.in_steps(move |tx| codes::delete_old_in(tx, retention.code_sends, CHUNK));
    sweep.in_steps(move |tx| codes::messages::delete_older_in(tx, retention.code_messages, CHUNK));
    sweep.in_steps(|tx| tokens::delete_expired_in(tx, CHUNK));
    sweep.in_steps(|tx| identities::delete_expired_tokens_in(tx, CHUNK));
    sweep.in_steps(move |tx| history::delete_expired_in(tx, retention.deactivated_history, CHUNK));
    sweep.in_steps(|tx| history::delete_old_hidings_in(tx, CHUNK));
    // A little longer than cursors are accepted: a cursor may be as old as the retention.
    let deletions_age = retention.deletions + DELETIONS_MARGIN;
    sweep.in_steps(move |tx| deletions::delete_older_in(tx, deletions_age, CHUNK));
    sweep.in_steps(move |tx| notifications::delete_old_deletions_in(tx, deletions_age, CHUNK));
    sweep.in_steps(move |tx| idempotency::delete_older_in(tx, retention.idempotency_keys, CHUNK));
    sweep.in_steps(move |tx| email_rewards::delete_expired_parked_in(tx, retention.parked_points, CHUNK));
    sweep.in_steps(move |tx| budget::delete_old_spending_in(tx, &zone, CHUNK));
    sweep.in_steps(|tx| model_calls::hourly_limit::delete_old_in(tx, CHUNK));
    sweep.in_steps(move |tx| notifications::delete_expired_in(tx, retention.expired_notifications, CHUNK));
    sweep.in_steps(move |tx| webhook_outbox::delete_older_in(tx, retention.webhook_events, CHUNK));
    let max_push_age = core.config.push.max_age;
    sweep.in_steps(move |tx| push_queue::delete_older_in(tx, max_push_age, CHUNK));
    sweep.in_steps(move |tx| violations::delete_older_in(tx, retention.violations, CHUNK));
    sweep.in_steps(move |tx| reviews::delete_older_in(tx, retention.violations, CHUNK));
    sweep.in_steps(|tx| reviews::clear_decided_in(tx, CHUNK));
    sweep.in_steps(move |tx| shadow_mode::delete_older_in(tx, retention.violations, CHUNK));
    sweep.in_steps(|tx| messages::delete_old_in(tx, CHUNK));
    sweep.in_steps(|tx| feedback::delete_client_networks_in(tx, CHUNK));
    sweep.in_steps(move |tx| admins::delete_expired_in(tx, attempts_window, CHUNK));
    let zone = core.config.limits.time_zone.clone();
    sweep.in_steps(move |tx| active_users::delete_older_in(tx, &zone, retention.access_log, CHUNK));
    sweep.in_steps(|tx| request_tallies::delete_old_in(tx, CHUNK));
    sweep.in_steps(move |tx| network_log::erasure::delete_older_in(tx, retention.access_log, CHUNK));
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

    fn in_steps(&mut self, delete: impl Fn(&Write<'_>) -> Result<usize> + Clone + Send + 'static) {
        let outcome = free_space_scrub::delete_counted_in_steps(self.core, &mut self.deleted, self.is_running, delete);
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
        let expired = core.store.read(|tx| codes::list_expired_after_in(tx, last.as_ref(), CHUNK))?;
        last = expired.last().cloned();
        if last.is_none() {
            return Ok(());
        }
        let delete = move |tx: &Write<'_>| free_space_scrub::request_if_deleted_in(tx, codes::delete_in(tx, &expired)?);
        *deleted += core.store.write(delete).wait()?;
    }
    Ok(())
}
