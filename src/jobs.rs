//! The clock as a door: work that is done without anybody asking, by the same functions as everything else.

use std::{
    sync::{
        Arc,
        mpsc::{RecvTimeoutError, Sender, channel},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use crate::{
    app::App,
    error::{Error, Result},
    ops::{
        access_log, alerts, backups, cleanup, integrity, ledger, model_calls, moderation::shadow, notifications,
        payment, residue,
    },
    priority::give_way,
};

const FLUSH_EVERY: Duration = Duration::from_millis(500);
const SWEEP_EVERY: Duration = Duration::from_hours(1);
/// How often it is looked whether notifications have expired.
const EXPIRE_EVERY: Duration = Duration::from_secs(10);
/// How often it is looked whether a backup is due.
const BACKUPS_EVERY: Duration = Duration::from_secs(10);
/// How often it is looked whether deleted rows may have left something in the file.
const RESIDUE_EVERY: Duration = Duration::from_secs(2);
/// After a pass over the file it rests for so many times as long as the pass took.
const RESIDUE_REST: u32 = 10;
/// How often the rules of alerts are looked at.
const ALERTS_EVERY: Duration = Duration::from_secs(5);
/// How often it is looked whether a payment provider is to be asked about an order.
const PAYMENTS_EVERY: Duration = Duration::from_secs(1);

/// How often it is looked whether the word list has changed, by a command for instance.
const WORDS_EVERY: Duration = Duration::from_millis(250);
/// How often the service that does not decide is asked about sampled texts.
const SHADOW_EVERY: Duration = Duration::from_millis(250);

/// The running jobs. Dropping it ends them after a last flush.
pub struct Jobs {
    stop: Option<Sender<()>>,
    /// Ends the thread that asks payment providers, by being dropped. It is not waited for, because a provider may
    /// take long to answer and the next start takes up whatever was cut off.
    _stop_payments: Sender<()>,
    /// Ends the thread that makes backups in the same way: a backup that is cut off leaves nothing behind.
    _stop_backups: Sender<()>,
    /// The same for the thread that clears what deleted rows left in the file: the next start begins it anew.
    _stop_residue: Sender<()>,
    /// Ends the thread that tells people, in the same way: what was not delivered is told after the next start.
    _stop_alerts: Sender<()>,
    /// The same for the threads that keep the word list up and ask in the shadow.
    _stop_moderation: [Sender<()>; 2],
    thread: Option<JoinHandle<()>>,
}

/// Starts the jobs of a server.
///
/// # Errors
/// `internal` when the system has no thread to spare.
pub fn start(app: Arc<App>) -> Result<Jobs> {
    let stop_payments = start_payments(Arc::clone(&app))?;
    let stop_backups = start_backups(Arc::clone(&app))?;
    let stop_residue = start_residue(Arc::clone(&app))?;
    let stop_alerts = start_alerts(Arc::clone(&app))?;
    let stop_moderation = [start_words(Arc::clone(&app))?, start_shadow(Arc::clone(&app))?];
    let (stop, stopped) = channel();
    let work = move || {
        // The first sweep waits a little, so that a start is not slowed by it.
        let mut next_sweep = Instant::now() + Duration::from_secs(30);
        let mut next_expiry = Instant::now();
        while stopped.recv_timeout(FLUSH_EVERY) == Err(RecvTimeoutError::Timeout) {
            run("writing the network log", || access_log::flush(&app));
            run("counting the network log", || access_log::pieces::make(&app).map(drop));
            run("writing what came of model calls", || model_calls::write_again(&app));
            if Instant::now() >= next_expiry {
                run("letting notifications expire", || notifications::expire_due(&app));
                next_expiry = Instant::now() + EXPIRE_EVERY;
            }
            if Instant::now() >= next_sweep {
                run("verifying the ledger", || ledger::verify_if_due(&app).map(drop));
                run("deleting what is past its retention", || cleanup::sweep(&app).map(drop));
                next_sweep = Instant::now() + SWEEP_EVERY;
            }
        }
        run("writing the network log", || access_log::flush(&app));
        run("writing what came of model calls", || model_calls::write_again(&app));
    };
    let thread = std::thread::Builder::new().name("jobs".into()).spawn(work).map_err(Error::internal)?;
    Ok(Jobs {
        stop: Some(stop),
        _stop_payments: stop_payments,
        _stop_backups: stop_backups,
        _stop_residue: stop_residue,
        _stop_alerts: stop_alerts,
        _stop_moderation: stop_moderation,
        thread: Some(thread),
    })
}

/// Asks about payments on a thread of its own: a provider that hangs must not hold up the other jobs.
fn start_payments(app: Arc<App>) -> Result<Sender<()>> {
    let (stop, stopped) = channel();
    let work = move || {
        while stopped.recv_timeout(PAYMENTS_EVERY) == Err(RecvTimeoutError::Timeout) {
            run("asking about payments", || payment::reconcile::check_due(&app));
        }
    };
    std::thread::Builder::new().name("payments".into()).spawn(work).map_err(Error::internal)?;
    Ok(stop)
}

/// Makes backups, and looks through the database where they do not, on a thread of its own: it takes long, and everybody
/// else on this machine goes before it.
fn start_backups(app: Arc<App>) -> Result<Sender<()>> {
    let (stop, stopped) = channel();
    let work = move || {
        give_way();
        while stopped.recv_timeout(BACKUPS_EVERY) == Err(RecvTimeoutError::Timeout) {
            run("making a backup", || backups::run_if_due(&app).map(drop));
            run("looking through the database", || integrity::check_if_due(&app));
            run("uploading a backup", || backups::offsite::upload_if_due(&app).map(drop));
        }
    };
    std::thread::Builder::new().name("backups".into()).spawn(work).map_err(Error::internal)?;
    Ok(stop)
}

/// Clears what deleted rows left in the file on a thread of its own, because it reads the whole file.
fn start_residue(app: Arc<App>) -> Result<Sender<()>> {
    let (stop, stopped) = channel();
    let work = move || {
        give_way();
        let mut rest = RESIDUE_EVERY;
        while stopped.recv_timeout(rest) == Err(RecvTimeoutError::Timeout) {
            rest = RESIDUE_EVERY;
            run("clearing what deleted rows left", || {
                if let Some(pass) = residue::clear_if_due(&app)? {
                    let duration_ms = pass.took.as_millis();
                    tracing::debug!(pages = pass.pages, cleared = pass.cleared, duration_ms, "cleared residue");
                    rest = rest.max(pass.took * RESIDUE_REST);
                }
                Ok(())
            });
        }
    };
    std::thread::Builder::new().name("residue".into()).spawn(work).map_err(Error::internal)?;
    Ok(stop)
}

/// Tells people on a thread of its own: a webhook that hangs must not hold up the other jobs.
fn start_alerts(app: Arc<App>) -> Result<Sender<()>> {
    let (stop, stopped) = channel();
    let work = move || {
        while stopped.recv_timeout(ALERTS_EVERY) == Err(RecvTimeoutError::Timeout) {
            run("looking at the rules of alerts", || alerts::run(&app));
        }
    };
    std::thread::Builder::new().name("alerts".into()).spawn(work).map_err(Error::internal)?;
    Ok(stop)
}

/// Compiles the word list at the start, which takes longer than everything else that a start has to do, and again
/// when it has changed.
fn start_words(app: Arc<App>) -> Result<Sender<()>> {
    let (stop, stopped) = channel();
    let work = move || {
        run("compiling the word list", || app.moderation.screen.in_force().map(drop));
        while stopped.recv_timeout(WORDS_EVERY) == Err(RecvTimeoutError::Timeout) {
            run("taking up changed words", || app.moderation.screen.keep_up());
        }
    };
    std::thread::Builder::new().name("words".into()).spawn(work).map_err(Error::internal)?;
    Ok(stop)
}

/// Asks about samples on a thread of its own: an outside service that hangs must not hold up the other jobs.
fn start_shadow(app: Arc<App>) -> Result<Sender<()>> {
    let (stop, stopped) = channel();
    let work = move || {
        while stopped.recv_timeout(SHADOW_EVERY) == Err(RecvTimeoutError::Timeout) {
            run("asking in the shadow", || shadow::ask_about_samples(&app));
        }
    };
    std::thread::Builder::new().name("shadow".into()).spawn(work).map_err(Error::internal)?;
    Ok(stop)
}

/// A job that fails is tried again at its next time; it must not end the others.
fn run(job: &str, work: impl FnOnce() -> Result<()>) {
    if let Err(error) = work() {
        tracing::error!(%error, job, "a job failed");
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the jobs thread had panicked");
        }
    }
}
