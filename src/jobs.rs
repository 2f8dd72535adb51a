//! Background jobs of the server. Each runs an operation on its own thread, on a schedule.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use crate::{
    app::App,
    domain::{
        messaging::notifications,
        moderation::shadow_mode,
        money::{ledger, payments, purchases},
        operations::{backups, figures, free_space_scrub, network_log, retention},
    },
    error::{Error, Result},
    thread_priority::lower_thread_priority,
};

/// The longest time that a network log entry waits in memory.
const NETWORK_LOG_INTERVAL: Duration = Duration::from_millis(500);
const RETRY_INTERVAL: Duration = Duration::from_millis(500);
/// After a scrub the job pauses for so many times the duration of the pass.
const SCRUB_PAUSE_FACTOR: u32 = 10;
/// Also the wait before a failed check is repeated.
const BILL_INTERVAL: Duration = Duration::from_mins(10);
const PAYMENT_INTERVAL: Duration = Duration::from_secs(1);
/// Other processes, such as commands, also change the word list.
const WORD_LIST_INTERVAL: Duration = Duration::from_millis(250);
const SHADOW_INTERVAL: Duration = Duration::from_millis(250);

/// The intervals of the slow jobs.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// The first sweep and the first verification of the ledger are delayed, so that they do not slow down the start.
    first_sweep: Duration,
    sweep: Duration,
    expiry: Duration,
    /// Backups, integrity checks and uploads.
    backups: Duration,
    free_space_scrub: Duration,
    alerts: Duration,
    figures: Duration,
    /// Counts of requests and codes.
    tallies: Duration,
    /// True if the word list is compiled at the start and not by the first text.
    compiles_words: bool,
}

impl Default for Schedule {
    fn default() -> Self {
        Self {
            first_sweep: Duration::from_secs(30),
            sweep: Duration::from_hours(1),
            expiry: Duration::from_secs(10),
            backups: Duration::from_secs(10),
            free_space_scrub: Duration::from_secs(2),
            alerts: Duration::from_secs(5),
            figures: Duration::from_secs(15),
            tallies: Duration::from_mins(1),
            compiles_words: true,
        }
    }
}

impl Schedule {
    /// Leaves the word list to the first text, for tests that screen none.
    #[must_use]
    pub fn without_words(self) -> Self {
        Self { compiles_words: false, ..self }
    }

    /// Short intervals, for tests that wait for a job.
    pub fn fast() -> Self {
        let interval = Duration::from_millis(200);
        Self {
            first_sweep: interval,
            sweep: interval,
            expiry: interval,
            backups: interval,
            free_space_scrub: interval,
            alerts: interval,
            figures: interval,
            tallies: interval,
            ..Self::default()
        }
    }
}

/// The function of a job.
type Work = fn(&App, Schedule, &Receiver<()>);

/// The running jobs. Dropping it stops them.
pub struct Jobs {
    /// Not waited for at the stop: provider calls, backups and ledger verification may take long, and the next start
    /// continues or repeats them.
    _detached: Vec<Job>,
    /// Waited for at the stop. They finish their current batch, which is short.
    awaited: Vec<Job>,
}

/// A thread that ends once its sender is dropped.
struct Job {
    _stop: Sender<()>,
    thread: JoinHandle<()>,
}

/// Starts the jobs of a server.
///
/// # Errors
/// `internal` when the system cannot start a thread.
pub fn start(app: &Arc<App>, schedule: Schedule) -> Result<Jobs> {
    let start = |name, work: Work| Job::start(name, Arc::clone(app), schedule, work);
    let detached = vec![
        start("payments", check_payments)?,
        start("purchases", run_purchases)?,
        start("payment-keys", refresh_payment_keys)?,
        start("bills", check_bills)?,
        start("backups", make_backups)?,
        start("uploads", upload_backups)?,
        start("ledger", verify_ledger)?,
        start("free-space", scrub_free_space)?,
        start("alerts", send_alerts)?,
        start("words", update_word_list)?,
        start("shadow", moderate_samples)?,
    ];
    let awaited = vec![
        start("network-log", write_network_log)?,
        start("jobs", run_small_jobs)?,
        start("retention", delete_expired)?,
        start("figures", count_figures)?,
    ];
    Ok(Jobs { _detached: detached, awaited })
}

impl Drop for Jobs {
    fn drop(&mut self) {
        let threads: Vec<_> = self.awaited.drain(..).map(|job| job.thread).collect();
        for thread in threads {
            thread.thread().unpark();
            if thread.join().is_err() {
                tracing::error!("the thread of a job has panicked");
            }
        }
    }
}

impl Job {
    fn start(name: &str, app: Arc<App>, schedule: Schedule, work: Work) -> Result<Self> {
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new().name(name.into()).spawn(move || work(&app, schedule, &stopped));
        Ok(Self { _stop: stop, thread: thread.map_err(Error::internal)? })
    }
}

/// Runs a job after a first wait and then at an interval, until the stop.
fn every(stopped: &Receiver<()>, first: Duration, interval: Duration, job: &str, mut work: impl FnMut() -> Result<()>) {
    let mut wait = first;
    while is_running_after(stopped, wait) {
        run(job, &mut work);
        wait = interval;
    }
}

/// Waits. Returns false if the stop came meanwhile.
fn is_running_after(stopped: &Receiver<()>, wait: Duration) -> bool {
    stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout)
}

/// Writes the network log on a thread of its own, because the entries wait in memory.
fn write_network_log(app: &App, _: Schedule, stopped: &Receiver<()>) {
    every(stopped, NETWORK_LOG_INTERVAL, NETWORK_LOG_INTERVAL, "network log", || {
        network_log::maintain(&app.network_log)
    });
    run("network log", || network_log::flush(&app.network_log));
}

fn run_small_jobs(app: &App, schedule: Schedule, stopped: &Receiver<()>) {
    let mut next_expiry = Instant::now();
    while is_running_after(stopped, RETRY_INTERVAL) {
        app.model_calls.retry_outcomes();
        if Instant::now() >= next_expiry {
            run("notification expiry", || notifications::expire_due(&app.core));
            next_expiry = Instant::now() + schedule.expiry;
        }
    }
    app.model_calls.retry_outcomes();
}

/// Deletes on a thread of its own, because there may be much to delete.
fn delete_expired(app: &App, schedule: Schedule, stopped: &Receiver<()>) {
    let is_running = || stopped.try_recv() == Err(TryRecvError::Empty);
    every(stopped, schedule.first_sweep, schedule.sweep, "retention", || {
        retention::sweep_if_clock_trusted(&app.clock_guard, &app.network_log, &is_running).map(drop)
    });
}

/// Counts figures on a thread of its own, because the first run may read a large ledger.
fn count_figures(app: &App, schedule: Schedule, stopped: &Receiver<()>) {
    lower_thread_priority();
    let is_running = || stopped.try_recv() == Err(TryRecvError::Empty);
    let mut next_tallies = Instant::now() + schedule.tallies;
    every(stopped, schedule.figures, schedule.figures, "figures", || {
        if Instant::now() >= next_tallies {
            flush_tallies(app)?;
            next_tallies = Instant::now() + schedule.tallies;
        }
        figures::advance(&app.core, &app.network_log, &is_running)
    });
    run("tallies", || flush_tallies(app));
}

/// Stores the counts that are in memory.
fn flush_tallies(app: &App) -> Result<()> {
    app.request_tallies.flush(&app.core)?;
    figures::flush_codes(&app.core, &app.counted_codes, &app.code_sender.metrics)
}

/// Verifies the ledger on a thread of its own, because it reads all of it.
fn verify_ledger(app: &App, schedule: Schedule, stopped: &Receiver<()>) {
    every(stopped, schedule.first_sweep, schedule.sweep, "ledger verification", || {
        ledger::verify_if_due(&app.core)?;
        payments::report::run_if_due(&app.payments).map(drop)
    });
}

/// Queries the payment provider on a thread of its own, because the provider may hang.
fn check_payments(app: &App, _: Schedule, stopped: &Receiver<()>) {
    every(stopped, PAYMENT_INTERVAL, PAYMENT_INTERVAL, "payment checks", || {
        payments::reconcile::check_due(&app.payments)
    });
}

/// Calls the app stores on a thread of its own, because a store may hang.
fn run_purchases(app: &App, _: Schedule, stopped: &Receiver<()>) {
    every(stopped, PAYMENT_INTERVAL, PAYMENT_INTERVAL, "purchases", || purchases::jobs::run_due(&app.purchases));
}

/// Checks the providers' bills on a thread of its own, because they may be large.
fn check_bills(app: &App, _: Schedule, stopped: &Receiver<()>) {
    lower_thread_priority();
    every(stopped, BILL_INTERVAL, BILL_INTERVAL, "bills", || payments::bills::run_if_due(&app.payments));
}

/// Fetches verification keys on a thread of its own, because the provider may hang.
fn refresh_payment_keys(app: &App, _: Schedule, stopped: &Receiver<()>) {
    every(stopped, PAYMENT_INTERVAL, payments::certificates::REFRESH_INTERVAL, "payment keys", || {
        payments::certificates::refresh(&app.payments)
    });
}

/// Makes backups and checks the database file at low priority, because both read all of it.
fn make_backups(app: &App, schedule: Schedule, stopped: &Receiver<()>) {
    lower_thread_priority();
    while is_running_after(stopped, schedule.backups) {
        run("backup", || backups::run_if_due(&app.backups).map(drop));
        run("integrity check", || app.integrity.check_if_due());
    }
}

/// Uploads backups on a thread of its own, so that a slow bucket delays neither backups nor integrity checks.
fn upload_backups(app: &App, schedule: Schedule, stopped: &Receiver<()>) {
    lower_thread_priority();
    every(stopped, schedule.backups, schedule.backups, "backup upload", || {
        backups::offsite::upload_if_due(&app.backups).map(drop)
    });
}

/// Scrubs deleted data on a thread of its own, because a pass reads the whole file.
fn scrub_free_space(app: &App, schedule: Schedule, stopped: &Receiver<()>) {
    lower_thread_priority();
    let mut wait = schedule.free_space_scrub;
    while is_running_after(stopped, wait) {
        wait = schedule.free_space_scrub;
        run("free space scrub", || {
            let outcome = free_space_scrub::run_if_due(&app.core);
            if outcome.is_err() && !is_running_after(stopped, Duration::ZERO) {
                // The stop interrupted the pass. The next start repeats it.
                return Ok(());
            }
            if let Some(pass) = outcome? {
                let duration_ms = pass.took.as_millis();
                tracing::debug!(pages = pass.pages, scrubbed = pass.scrubbed, duration_ms, "scrubbed free space");
                wait = wait.max(pass.took * SCRUB_PAUSE_FACTOR);
            }
            Ok(())
        });
    }
}

/// Sends alerts on a thread of its own, because a webhook may hang.
fn send_alerts(app: &App, schedule: Schedule, stopped: &Receiver<()>) {
    every(stopped, schedule.alerts, schedule.alerts, "alerts", || app.alerts.run());
}

/// Compiles the word list at the start, which takes longer than the rest of the start, and after each change.
fn update_word_list(app: &App, schedule: Schedule, stopped: &Receiver<()>) {
    if schedule.compiles_words {
        run("word list", || app.moderation.word_list.get().map(drop));
    }
    every(stopped, WORD_LIST_INTERVAL, WORD_LIST_INTERVAL, "word list", || {
        app.moderation.word_list.refresh_and_recompile()
    });
}

/// Sends samples to the external moderator on a thread of its own, because it may hang.
fn moderate_samples(app: &App, _: Schedule, stopped: &Receiver<()>) {
    every(stopped, SHADOW_INTERVAL, SHADOW_INTERVAL, "shadow moderation", || {
        shadow_mode::process_samples(&app.moderation)
    });
}

/// Runs a job once. A failure or panic is logged and does not end the thread.
fn run(job: &str, work: impl FnOnce() -> Result<()>) {
    let outcome = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(Error::internal("a job panicked")));
    if let Err(error) = outcome {
        tracing::error!(%error, job, "a job failed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn continues_after_a_panic() {
        let mut has_run = false;
        run("panicking", || panic!("expected by this test"));
        run("next", || {
            has_run = true;
            Ok(())
        });
        assert!(has_run);
    }
}
