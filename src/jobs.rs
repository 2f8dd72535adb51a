//! The clock as a door: work that is done without anybody asking, by the same functions as everything else.

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
        moderation::shadow,
        money::{ledger, payments},
        operations::{alerts, backups, free_space_scrub, integrity, network_log, retention},
    },
    error::{Error, Result},
    thread_priority::lower_thread_priority,
};

/// How long an entry of the network log waits at most.
const FLUSH_EVERY: Duration = Duration::from_millis(500);
/// Every so many times a piece of the log is counted while requests come so fast that whole blocks of it are written in
/// between; otherwise every time. Requests are not held up for those who will search, who read more until it is made up
/// for.
const BUSY_TIMES_TO_COUNT: u32 = 10;
/// How often it is looked whether something is to be done that others could not do in time.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// After a pass over the file it rests for so many times as long as the pass took.
const SCRUB_REST: u32 = 10;
/// How often it is looked whether a payment provider is to be asked about an order.
const PAYMENTS_EVERY: Duration = Duration::from_secs(1);

/// How often it is looked whether the word list has changed, by a command for instance.
const WORDS_EVERY: Duration = Duration::from_millis(250);
/// How often the service that does not decide is asked about sampled texts.
const SHADOW_EVERY: Duration = Duration::from_millis(250);

/// Intervals of the slow jobs.
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
            expiry: interval,
            backups: interval,
            free_space_scrub: interval,
            alerts: interval,
            ..Self::default()
        }
    }
}

/// The running jobs. Dropping it ends them.
pub struct Jobs {
    /// They are told to end and not waited for: asking somebody outside, making a backup or reading the whole ledger
    /// may take long, and the next start takes up or begins anew whatever was cut off.
    _others: Vec<Job>,
    /// They finish what they do, or the piece of it that they are at; nothing of it takes long.
    awaited: Vec<Job>,
}

type Work = fn(&Arc<App>, Schedule, &Receiver<()>);

/// A thread that ends once its sender is dropped.
struct Job {
    _stop: Sender<()>,
    thread: JoinHandle<()>,
}

/// Starts the jobs of a server.
///
/// # Errors
/// `internal` when the system has no thread to spare.
pub fn start(app: &Arc<App>, schedule: Schedule) -> Result<Jobs> {
    let start = |name, work: Work| Job::start(name, Arc::clone(app), schedule, work);
    let others = vec![
        start("payments", ask_about_payments)?,
        start("backups", make_backups)?,
        start("uploads", upload_backups)?,
        start("ledger", verify_ledger)?,
        start("residue", scrub_free_space)?,
        start("alerts", look_at_alerts)?,
        start("words", keep_words_up)?,
        start("shadow", ask_in_the_shadow)?,
    ];
    let awaited = vec![
        start("network-log", write_network_log)?,
        start("jobs", do_small_things)?,
        start("retention", delete_what_is_old)?,
    ];
    Ok(Jobs { _others: others, awaited })
}

impl Drop for Jobs {
    fn drop(&mut self) {
        let threads: Vec<_> = self.awaited.drain(..).map(|job| job.thread).collect();
        for thread in threads {
            thread.thread().unpark();
            if thread.join().is_err() {
                tracing::error!("a job's thread had panicked");
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

/// Does a job after a first wait and then so often, until it is to end.
fn every(stopped: &Receiver<()>, first: Duration, wait: Duration, job: &str, mut work: impl FnMut() -> Result<()>) {
    let mut next = first;
    while goes_on(stopped, next) {
        run(job, &mut work);
        next = wait;
    }
}

/// Waits, and says whether there is to be another time.
fn goes_on(stopped: &Receiver<()>, wait: Duration) -> bool {
    stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout)
}

/// On a thread of its own, because the network log waits in memory, and nothing else may hold it up.
fn write_network_log(app: &Arc<App>, _: Schedule, stopped: &Receiver<()>) {
    app.access_log.wake_this_thread();
    let mut next_flush = Instant::now() + FLUSH_EVERY;
    let (mut blocks, mut uncounted) = (0, 0);
    while stopped.try_recv() == Err(TryRecvError::Empty) {
        std::thread::park_timeout(next_flush.saturating_duration_since(Instant::now()));
        if Instant::now() < next_flush {
            run("writing the network log", || network_log::flush_full(app).map(|written| blocks += written));
            continue;
        }
        run("writing the network log", || network_log::flush(app).map(|written| blocks += written));
        uncounted += 1;
        if blocks <= 1 || uncounted >= BUSY_TIMES_TO_COUNT {
            run("counting the network log", || network_log::pieces::make(app).map(drop));
            uncounted = 0;
        }
        blocks = 0;
        next_flush = Instant::now() + FLUSH_EVERY;
    }
    run("writing the network log", || network_log::flush(app).map(drop));
}

fn do_small_things(app: &Arc<App>, schedule: Schedule, stopped: &Receiver<()>) {
    let mut next_expiry = Instant::now();
    while goes_on(stopped, LOOK_EVERY) {
        app.model_calls.retry_outcomes();
        if Instant::now() >= next_expiry {
            run("letting notifications expire", || notifications::expire_due(app));
            next_expiry = Instant::now() + schedule.expiry;
        }
    }
    app.model_calls.retry_outcomes();
}

/// Deletes on a thread of its own: there may be much, which holds up neither the other jobs nor a stop.
fn delete_what_is_old(app: &Arc<App>, schedule: Schedule, stopped: &Receiver<()>) {
    let is_wanted = || stopped.try_recv() == Err(TryRecvError::Empty);
    every(stopped, schedule.first_sweep, schedule.sweep, "deleting what is past its retention", || {
        retention::sweep_if_believed(app, &is_wanted).map(drop)
    });
}

/// Verifies the ledger on a thread of its own, because it reads all of it.
fn verify_ledger(app: &Arc<App>, schedule: Schedule, stopped: &Receiver<()>) {
    every(stopped, schedule.first_sweep, schedule.sweep, "verifying the ledger", || {
        ledger::verify_if_due(app).map(drop)
    });
}

/// On a thread of its own: a provider that hangs must not hold up the other jobs.
fn ask_about_payments(app: &Arc<App>, _: Schedule, stopped: &Receiver<()>) {
    every(stopped, PAYMENTS_EVERY, PAYMENTS_EVERY, "asking about payments", || payments::reconcile::check_due(app));
}

/// Makes backups, and looks through the database where they do not, on a thread of its own: it takes long, and
/// everybody else on this machine goes before it.
fn make_backups(app: &Arc<App>, schedule: Schedule, stopped: &Receiver<()>) {
    lower_thread_priority();
    while goes_on(stopped, schedule.backups) {
        run("making a backup", || backups::run_if_due(app).map(drop));
        run("looking through the database", || integrity::check_if_due(app));
    }
}

/// Uploads backups on a thread of its own: a bucket that is slow or hangs must hold up neither the next backup nor the
/// look through the database.
fn upload_backups(app: &Arc<App>, schedule: Schedule, stopped: &Receiver<()>) {
    lower_thread_priority();
    every(stopped, schedule.backups, schedule.backups, "uploading a backup", || {
        backups::offsite::upload_if_due(app).map(drop)
    });
}

/// Scrubs free space on a thread of its own, because a pass reads the whole file.
fn scrub_free_space(app: &Arc<App>, schedule: Schedule, stopped: &Receiver<()>) {
    lower_thread_priority();
    let mut rest = schedule.free_space_scrub;
    while goes_on(stopped, rest) {
        rest = schedule.free_space_scrub;
        run("scrubbing free space", || {
            let cleared = free_space_scrub::run_if_due(app);
            if cleared.is_err() && !goes_on(stopped, Duration::ZERO) {
                // The stop cut it off, and the next start begins it anew.
                return Ok(());
            }
            if let Some(pass) = cleared? {
                let duration_ms = pass.took.as_millis();
                tracing::debug!(pages = pass.pages, scrubbed = pass.scrubbed, duration_ms, "scrubbed free space");
                rest = rest.max(pass.took * SCRUB_REST);
            }
            Ok(())
        });
    }
}

/// Tells people on a thread of its own: a webhook that hangs must not hold up the other jobs.
fn look_at_alerts(app: &Arc<App>, schedule: Schedule, stopped: &Receiver<()>) {
    every(stopped, schedule.alerts, schedule.alerts, "looking at the rules of alerts", || alerts::run(app));
}

/// Compiles the word list at the start, which takes longer than everything else that a start has to do, and again
/// when it has changed.
fn keep_words_up(app: &Arc<App>, schedule: Schedule, stopped: &Receiver<()>) {
    if schedule.compiles_words {
        run("compiling the word list", || app.moderation.screen.in_force().map(drop));
    }
    every(stopped, WORDS_EVERY, WORDS_EVERY, "taking up changed words", || app.moderation.screen.keep_up());
}

/// Asks about samples on a thread of its own: an outside service that hangs must not hold up the other jobs.
fn ask_in_the_shadow(app: &Arc<App>, _: Schedule, stopped: &Receiver<()>) {
    every(stopped, SHADOW_EVERY, SHADOW_EVERY, "asking in the shadow", || shadow::ask_about_samples(&app.moderation));
}

/// A job that fails or panics is tried again at its next time; it must not end the others.
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
    fn a_job_that_panics_does_not_end_its_thread() {
        let mut is_run_again = false;
        run("panicking", || panic!("expected by this test"));
        run("going on", || {
            is_run_again = true;
            Ok(())
        });
        assert!(is_run_again);
    }
}
