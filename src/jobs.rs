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
        divination::crash_recovery,
        identity::accounts::erasure,
        messaging::{notifications, push},
        moderation::shadow_mode,
        money::{ledger, payments, purchases},
        operations::{
            backups::{
                self, Occasion,
                follow::{self, Shipper},
            },
            doctor::{self, Services},
            figures, free_space_scrub,
            job_runs::{JobName, JobOutcome, JobRun},
            network_log, purge, retention, server_log, webhooks,
        },
    },
    error::{Code, Error, Result},
    thread_priority::lower_thread_priority,
    types::{Timestamp, named_enum},
};

/// The longest time that a network log entry waits in memory.
const NETWORK_LOG_INTERVAL: Duration = Duration::from_millis(500);
const ERASURE_INTERVAL: Duration = Duration::from_millis(500);
const RETRY_INTERVAL: Duration = Duration::from_millis(500);
/// After a scrub the job pauses for so many times the duration of the pass.
const SCRUB_PAUSE_FACTOR: u32 = 10;
/// Also the wait before a failed check is repeated.
const BILL_INTERVAL: Duration = Duration::from_mins(10);
const PAYMENT_INTERVAL: Duration = Duration::from_secs(1);
/// Other processes, such as commands, also change the word list.
const WORD_LIST_INTERVAL: Duration = Duration::from_millis(250);
/// The time for which a start waits for the bucket, and a stop for the last shipment.
const CLAIM_WAIT: Duration = Duration::from_secs(5);
const LAST_SHIPMENT: Duration = Duration::from_secs(3);
const PUSH_INTERVAL: Duration = Duration::from_millis(250);
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
    /// Poll interval of the continuous backup.
    follow: Duration,
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
            follow: Duration::from_millis(250),
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
            follow: interval / 4,
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
    /// Not waited for at shutdown: provider calls, backups and ledger verification may take long, and the next start
    /// continues or repeats them.
    _detached: Vec<Job>,
    /// Waited for at shutdown. They finish their current batch, which is short.
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
    let mut detached = vec![
        start("payments", check_payments)?,
        start("purchases", run_purchases)?,
        start("payment-keys", refresh_payment_keys)?,
        start("push", send_pushes)?,
        start("webhooks", send_webhooks)?,
        start("bills", check_bills)?,
        start("ledger", verify_ledger)?,
        start("alerts", send_alerts)?,
        start("words", update_word_list)?,
        start("shadow", moderate_samples)?,
        start("backups", make_backups)?,
        start("uploads", upload_backups)?,
    ];
    // Other engines have no pages.
    if app.core.store.file().is_some() {
        detached.extend([start("latest", verify_latest)?, start("free-space", scrub_free_space)?]);
    }
    let awaited = vec![
        start("network-log", write_network_log)?,
        start("jobs", run_small_jobs)?,
        start("retention", delete_expired)?,
        start("erasure", erase_accounts)?,
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

/// Runs a job after a first wait and then at an interval, until shutdown.
fn every(
    app: &App,
    stopped: &Receiver<()>,
    (first, interval): (Duration, Duration),
    job: JobName,
    mut work: impl FnMut(&JobRun) -> Result<JobOutcome>,
) {
    let mut wait = first;
    app.health.jobs.schedule_next(job, wait);
    while is_running_after(stopped, wait) {
        run(app, job, &mut work);
        wait = interval;
        app.health.jobs.schedule_next(job, wait);
    }
}

/// Waits. Returns false if shutdown was requested meanwhile.
fn is_running_after(stopped: &Receiver<()>, wait: Duration) -> bool {
    stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout)
}

/// Writes the network log on a thread of its own, because the entries wait in memory.
fn write_network_log(app: &App, _: Schedule, stopped: &Receiver<()>) {
    let is_running = || {
        app.network_log.wait_for_entries(NETWORK_LOG_INTERVAL);
        stopped.try_recv() == Err(TryRecvError::Empty)
    };
    while is_running() {
        run(app, JobName::NetworkLog, |_| {
            let stored = server_log::flush(&app.server_log, &app.network_log);
            network_log::maintain(&app.network_log)?;
            if app.core.store.file().is_none() {
                purge::follow_other_copies(&app.network_log)?;
            }
            done(stored)
        });
        app.health.jobs.schedule_next(JobName::NetworkLog, NETWORK_LOG_INTERVAL);
    }
    run(app, JobName::NetworkLog, |_| {
        let stored = server_log::flush(&app.server_log, &app.network_log);
        network_log::flush(&app.network_log)?;
        done(stored)
    });
}

fn run_small_jobs(app: &App, schedule: Schedule, stopped: &Receiver<()>) {
    let mut next_expiry = Instant::now();
    while is_running_after(stopped, RETRY_INTERVAL) {
        app.core.log_throttle.log_ended();
        app.model_calls.retry_outcomes();
        close_calls_of_gone_copies(app);
        if Instant::now() >= next_expiry {
            run(app, JobName::NotificationExpiry, |_| done(notifications::expire_due(&app.core)));
            next_expiry = Instant::now() + schedule.expiry;
            app.health.jobs.schedule_next(JobName::NotificationExpiry, schedule.expiry);
        }
        store_last_runs(app);
    }
    app.model_calls.retry_outcomes();
    store_last_runs(app);
}

/// Deletes on a thread of its own, because there may be much to delete.
fn delete_expired(app: &App, schedule: Schedule, stopped: &Receiver<()>) {
    let is_running = || stopped.try_recv() == Err(TryRecvError::Empty);
    every(app, stopped, (schedule.first_sweep, schedule.sweep), JobName::Retention, |_| {
        done(retention::sweep_if_clock_trusted(&app.clock_guard, &app.network_log, &is_running))
    });
}

/// Erases deleted accounts on a thread of its own, because one may be large.
fn erase_accounts(app: &App, _: Schedule, stopped: &Receiver<()>) {
    let is_running = || stopped.try_recv() == Err(TryRecvError::Empty);
    every(app, stopped, (ERASURE_INTERVAL, ERASURE_INTERVAL), JobName::Erasure, |_| {
        erasure::run_due(&app.core, &is_running).map(JobOutcome::from)
    });
}

/// Counts figures on a thread of its own, because the first run may read a large ledger.
fn count_figures(app: &App, schedule: Schedule, stopped: &Receiver<()>) {
    lower_thread_priority();
    let is_running = || stopped.try_recv() == Err(TryRecvError::Empty);
    let mut next_tallies = Instant::now() + schedule.tallies;
    every(app, stopped, (schedule.figures, schedule.figures), JobName::Figures, |_| {
        if app.core.store.is_leader() {
            figures::advance(&app.core, &is_running)?;
        }
        figures::advance_active_users(&app.core, &app.network_log, &is_running)?;
        if Instant::now() >= next_tallies {
            next_tallies = Instant::now() + schedule.tallies;
            flush_tallies(app)?;
        }
        Ok(JobOutcome::Done)
    });
    run(app, JobName::Figures, |_| done(flush_tallies(app)));
}

/// Stores the counts that are in memory.
fn flush_tallies(app: &App) -> Result<()> {
    app.request_tallies.flush(&app.core)?;
    figures::flush_codes(&app.core, &app.counted_codes, &app.code_sender.metrics)
}

/// Verifies the ledger on a thread of its own, because it reads all of it.
fn verify_ledger(app: &App, schedule: Schedule, stopped: &Receiver<()>) {
    every(app, stopped, (schedule.first_sweep, schedule.sweep), JobName::LedgerVerification, |run| {
        let is_verified = ledger::verify_if_due(&app.core, &mut entries_read(run))?;
        payments::report::run_if_due(&app.payments)?;
        Ok(is_verified.into())
    });
}

/// Queries the payment provider on a thread of its own, because the provider may hang.
fn check_payments(app: &App, _: Schedule, stopped: &Receiver<()>) {
    every(app, stopped, (PAYMENT_INTERVAL, PAYMENT_INTERVAL), JobName::Reconciler, |_| {
        done(payments::reconcile::check_due(&app.payments))
    });
}

/// Calls the app stores on a thread of its own, because a store may hang.
fn run_purchases(app: &App, _: Schedule, stopped: &Receiver<()>) {
    every(app, stopped, (PAYMENT_INTERVAL, PAYMENT_INTERVAL), JobName::Purchases, |_| {
        done(purchases::jobs::run_due(&app.purchases))
    });
}

/// Sends pushes on a thread of its own, because a service may hang.
fn send_pushes(app: &App, _: Schedule, stopped: &Receiver<()>) {
    if !app.push.is_configured() {
        return;
    }
    let is_running = || stopped.try_recv() == Err(TryRecvError::Empty);
    every(app, stopped, (PUSH_INTERVAL, PUSH_INTERVAL), JobName::Push, |_| {
        push::run_due(&app.push, &is_running).map(JobOutcome::from)
    });
}

/// Sends webhooks on a thread of its own, because the receiver may hang.
fn send_webhooks(app: &App, _: Schedule, stopped: &Receiver<()>) {
    if !app.webhooks.is_configured() {
        return;
    }
    let is_running = || stopped.try_recv() == Err(TryRecvError::Empty);
    every(app, stopped, (PUSH_INTERVAL, PUSH_INTERVAL), JobName::Webhooks, |_| {
        webhooks::run_due(&app.webhooks, &is_running).map(JobOutcome::from)
    });
}

/// Checks the providers' bills on a thread of its own, because they may be large.
fn check_bills(app: &App, _: Schedule, stopped: &Receiver<()>) {
    lower_thread_priority();
    every(app, stopped, (BILL_INTERVAL, BILL_INTERVAL), JobName::Bills, |_| {
        done(payments::bills::run_if_due(&app.payments))
    });
}

/// Fetches verification keys on a thread of its own, because the provider may hang.
fn refresh_payment_keys(app: &App, _: Schedule, stopped: &Receiver<()>) {
    every(app, stopped, (PAYMENT_INTERVAL, payments::certificates::REFRESH_INTERVAL), JobName::PaymentKeys, |_| {
        done(payments::certificates::refresh(&app.payments))
    });
}

/// Makes backups and checks the database file at low priority, because both read all of it.
fn make_backups(app: &App, schedule: Schedule, stopped: &Receiver<()>) {
    lower_thread_priority();
    while is_running_after(stopped, schedule.backups) {
        run(app, JobName::Backup, |run| backups::run_if_due(&app.backups, &mut steps_done(run)).map(JobOutcome::from));
        run(app, JobName::IntegrityCheck, |_| app.integrity.check_if_due().map(JobOutcome::from));
        for job in [JobName::Backup, JobName::IntegrityCheck] {
            app.health.jobs.schedule_next(job, schedule.backups);
        }
    }
}

/// Uploads backups on a thread of its own, so that a slow bucket delays neither backups nor integrity checks.
fn upload_backups(app: &App, schedule: Schedule, stopped: &Receiver<()>) {
    lower_thread_priority();
    every(app, stopped, (schedule.backups, schedule.backups), JobName::BackupUpload, |run| {
        backups::offsite::upload_if_due(&app.backups, &mut steps_done(run)).map(JobOutcome::from)
    });
}

/// Verifies the newest state in the bucket on a thread of its own, because it reads a whole backup.
fn verify_latest(app: &App, schedule: Schedule, stopped: &Receiver<()>) {
    lower_thread_priority();
    every(app, stopped, (schedule.first_sweep, schedule.first_sweep), JobName::BackupVerification, |run| {
        follow::verify_if_due(&app.backups, &mut steps_done(run)).map(JobOutcome::from)
    });
}

/// The thread that ships changes to the bucket. It outlives the other jobs, to ship the last writes of the stop.
pub struct Shipping {
    stop: Sender<()>,
    done: Receiver<()>,
}

/// Starts to ship changes, if that is configured. Returns once the bucket has said whether this machine may take writes,
/// or has not answered for some seconds.
///
/// # Errors
/// `internal` when the system cannot start a thread.
pub fn start_shipping(app: &Arc<App>, schedule: Schedule) -> Result<Option<Shipping>> {
    if !app.core.config.has_continuous_backup() {
        return Ok(None);
    }
    let (stop, stopped) = channel();
    let (report, reports) = channel();
    let app = Arc::clone(app);
    let work = move || {
        lower_thread_priority();
        let shipped = catch_unwind(AssertUnwindSafe(|| ship(&app, schedule, &stopped, &report)));
        match shipped {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(%error, "continuous backup cannot start"),
            Err(_) => tracing::error!("continuous backup panicked"),
        }
        let _ = report.send(());
    };
    std::thread::Builder::new().name("follow".into()).spawn(work).map_err(Error::internal)?;
    // A timeout means that the bucket is away. The machine serves, and the thread asks later.
    let _ = reports.recv_timeout(CLAIM_WAIT);
    Ok(Some(Shipping { stop, done: reports }))
}

fn ship(app: &App, schedule: Schedule, stopped: &Receiver<()>, report: &Sender<()>) -> Result<()> {
    let mut shipper = Shipper::open(&app.backups)?;
    shipper.claim(Instant::now());
    let _ = report.send(());
    while is_running_after(stopped, schedule.follow) {
        shipper.tick(Instant::now());
    }
    shipper.finish(Instant::now());
    Ok(())
}

impl Shipping {
    /// Ships what is left, for a few seconds at most.
    pub fn finish(self) {
        drop(self.stop);
        let deadline = Instant::now() + LAST_SHIPMENT;
        // The first report may be that of the claim.
        while let Some(left) = deadline.checked_duration_since(Instant::now()) {
            match self.done.recv_timeout(left) {
                Ok(()) => {}
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => break,
            }
        }
        tracing::warn!("the last changes could not be shipped to the bucket in time");
    }
}

/// Scrubs deleted data on a thread of its own, because a pass reads the whole file.
fn scrub_free_space(app: &App, schedule: Schedule, stopped: &Receiver<()>) {
    lower_thread_priority();
    let mut wait = schedule.free_space_scrub;
    while is_running_after(stopped, wait) {
        wait = schedule.free_space_scrub;
        run(app, JobName::FreeSpaceScrub, |_| {
            let outcome = free_space_scrub::run_if_due(&app.core);
            if outcome.is_err() && !is_running_after(stopped, Duration::ZERO) {
                // The stop interrupted the pass. The next start repeats it.
                return Ok(JobOutcome::NothingDue);
            }
            let Some(pass) = outcome? else { return Ok(JobOutcome::NothingDue) };
            let duration_ms = pass.took.as_millis();
            tracing::debug!(pages = pass.pages, scrubbed = pass.scrubbed, duration_ms, "scrubbed free space");
            wait = wait.max(pass.took * SCRUB_PAUSE_FACTOR);
            Ok(JobOutcome::Done)
        });
        app.health.jobs.schedule_next(JobName::FreeSpaceScrub, wait);
    }
}

/// Sends alerts on a thread of its own, because a webhook may hang.
fn send_alerts(app: &App, schedule: Schedule, stopped: &Receiver<()>) {
    every(app, stopped, (schedule.alerts, schedule.alerts), JobName::Alerts, |_| done(app.alerts.run()));
}

/// Compiles the word list at the start, which takes longer than the rest of the start, and after each change.
fn update_word_list(app: &App, schedule: Schedule, stopped: &Receiver<()>) {
    if schedule.compiles_words {
        run(app, JobName::WordList, |_| done(app.moderation.word_list.get()));
    }
    every(app, stopped, (WORD_LIST_INTERVAL, WORD_LIST_INTERVAL), JobName::WordList, |_| {
        done(app.moderation.word_list.refresh_and_recompile())
    });
}

/// Sends samples to the external moderator on a thread of its own, because it may hang.
fn moderate_samples(app: &App, _: Schedule, stopped: &Receiver<()>) {
    every(app, stopped, (SHADOW_INTERVAL, SHADOW_INTERVAL), JobName::ShadowMode, |_| {
        done(shadow_mode::process_samples(&app.moderation))
    });
}

/// Converts the result of work that is done at every run.
fn done<T>(outcome: Result<T>) -> Result<JobOutcome> {
    outcome.map(|_| JobOutcome::Done)
}

/// Returns a callback that records the position within the current step of a backup.
fn steps_done(run: &JobRun) -> impl FnMut(&'static str, u64, u64) + '_ {
    |_, position, total| run.progress(position, total)
}

/// Returns a callback that records the number of verified ledger entries.
fn entries_read(run: &JobRun) -> impl FnMut(i64, i64) + '_ {
    |position, total| run.progress(position.unsigned_abs(), total.unsigned_abs())
}

/// Closes the model calls that copies of the service left when they were killed.
fn close_calls_of_gone_copies(app: &App) {
    if app.core.store.leads_steadily()
        && let Err(error) = crash_recovery::close_abandoned(&app.core)
    {
        tracing::warn!(%error, "the model calls of a killed copy could not be closed");
    }
}

fn store_last_runs(app: &App) {
    if app.core.store.is_superseded() || !app.core.store.is_leader() {
        return;
    }
    if let Err(error) = app.health.jobs.store_if_due() {
        tracing::warn!(%error, "the last runs of the jobs could not be stored");
    }
}

/// Runs a job once. A failure or panic is logged and does not end the thread.
fn run(app: &App, job: JobName, work: impl FnOnce(&JobRun) -> Result<JobOutcome>) {
    // A superseded machine stores nothing, and its backups must not appear beside those of the other one.
    let is_harmless = matches!(job, JobName::Alerts | JobName::NetworkLog | JobName::WordList);
    if app.core.store.is_superseded() && !is_harmless {
        return;
    }
    // These work on what each copy of the service keeps for itself.
    let is_of_each_copy = matches!(
        job,
        JobName::NetworkLog
            | JobName::WordList
            | JobName::ShadowMode
            | JobName::PaymentKeys
            | JobName::Retention
            | JobName::Figures
    );
    if !is_of_each_copy && !app.core.store.is_leader() {
        return;
    }
    record_run(app.health.jobs.begin(job), job, work);
}

fn record_run(run: JobRun, job: JobName, work: impl FnOnce(&JobRun) -> Result<JobOutcome>) {
    let outcome = catch(job, || work(&run));
    run.finish(outcome);
}

/// Runs a job once, and logs a failure or panic.
fn catch(job: JobName, work: impl FnOnce() -> Result<JobOutcome>) -> Result<JobOutcome, Code> {
    let outcome = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(Error::internal("a job panicked")));
    if let Err(error) = &outcome
        && error.code != Code::Superseded
    {
        tracing::error!(%error, job = job.name(), "a job failed");
    }
    outcome.map_err(|error| error.code)
}

named_enum! {
    /// A job that a person can start.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ManualJob {
        Backup = "backup",
        LedgerVerification = "ledger_verification",
        Doctor = "doctor",
    }
}

impl ManualJob {
    const fn job(self) -> JobName {
        match self {
            Self::Backup => JobName::Backup,
            Self::LedgerVerification => JobName::LedgerVerification,
            Self::Doctor => JobName::Doctor,
        }
    }

    fn run(self, app: &App, run: &JobRun) -> Result<JobOutcome> {
        match self {
            Self::Backup => {
                backups::create(&app.backups, Occasion::Manual, &mut steps_done(run))?;
                backups::offsite::upload(&app.backups, &mut steps_done(run))?;
            }
            Self::LedgerVerification => {
                ledger::verify(&app.core, &mut entries_read(run))?;
            }
            Self::Doctor => {
                let App { core, health, payments, network_log, .. } = app;
                let services = Services { core, health, payments, network_log };
                doctor::examine_and_store(services, &mut |position, total| run.progress(position, total))?;
            }
        }
        Ok(JobOutcome::Done)
    }
}

/// Starts a job at once on a thread of its own, and returns the time of its start. The stop of the server does not wait
/// for it.
///
/// # Errors
/// `already_running` if somebody else started it and it has not finished; `internal` when the system cannot start a
/// thread.
pub fn start_manual(app: &Arc<App>, job: ManualJob) -> Result<Timestamp> {
    let run = app.health.jobs.begin_manual(job.job())?;
    let started_at = run.started_at();
    let app = Arc::clone(app);
    let thread = std::thread::Builder::new().name(job.name().into());
    let work = move || {
        lower_thread_priority();
        record_run(run, job.job(), |run| job.run(&app, run));
    };
    thread.spawn(work).map_err(Error::internal)?;
    Ok(started_at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_fails_one_run_only() {
        assert_eq!(catch(JobName::Alerts, || panic!("expected by this test")), Err(Code::Internal));
        assert_eq!(catch(JobName::Alerts, || Ok(JobOutcome::Done)), Ok(JobOutcome::Done));
    }
}
