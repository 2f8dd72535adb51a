//! The runs of background jobs: what runs now, what ran last and when each job runs next.
//!
//! The state is in memory, because some jobs run four times a second. Last runs are stored once a minute, for commands
//! and the next start; after a run on demand, or when a job begins or ceases to fail, within a second. A poll that finds
//! nothing to do is not recorded as a run. Runs that take longer than a second are reported to commands while they run.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

use super::settings;
use crate::{
    concurrency::lock::lock_unpoisoned,
    config::{Config, ModerationProvider},
    core::Core,
    error::{Code, Result},
    types::{Timestamp, milliseconds, named_enum},
};

const LAST_RUNS: &str = "jobs.last_runs";
const STORE_INTERVAL: Duration = Duration::from_mins(1);
const RUNNING: &str = "jobs.running";
/// Shorter runs are not reported to other processes: most polls take less than a millisecond.
const REPORTED_AFTER: Duration = Duration::from_secs(1);
const REPORT_RENEWAL: Duration = Duration::from_secs(5);
/// A report of this age belongs to a server that has stopped.
const REPORT_LIFETIME: Duration = Duration::from_secs(15);

named_enum! {
    /// A background job.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum JobName {
        Backup = "backup",
        BackupUpload = "backup_upload",
        BackupVerification = "backup_verification",
        IntegrityCheck = "integrity_check",
        LedgerVerification = "ledger_verification",
        /// Runs on demand only.
        Doctor = "doctor",
        Reconciler = "reconciler",
        Purchases = "purchases",
        Bills = "bills",
        PaymentKeys = "payment_keys",
        Retention = "retention",
        Erasure = "erasure",
        NotificationExpiry = "notification_expiry",
        Push = "push",
        Webhooks = "webhooks",
        Figures = "figures",
        Alerts = "alerts",
        FreeSpaceScrub = "free_space_scrub",
        WordList = "word_list",
        ShadowMode = "shadow_mode",
        NetworkLog = "network_log",
    }
}

impl JobName {
    /// Returns true if the settings switch the job off.
    fn is_off(self, config: &Config) -> bool {
        match self {
            Self::Backup => config.backup.every.is_zero(),
            Self::BackupUpload => config.backup.s3_endpoint.is_none(),
            Self::BackupVerification => !config.has_continuous_backup(),
            Self::IntegrityCheck => config.database.check_every.is_zero(),
            Self::Purchases => {
                config.payment_apple.bundle_id.is_empty() && config.payment_google.package_name.is_empty()
            }
            Self::Bills => config.payment.private_key.is_none() && config.payment_wechat.merchant_id.is_empty(),
            Self::PaymentKeys => config.payment_wechat.merchant_id.is_empty(),
            Self::Push => !config.has_push(),
            Self::Webhooks => config.webhooks.url.is_none(),
            Self::ShadowMode => config.moderation.provider == ModerationProvider::None,
            _ => false,
        }
    }
}

named_enum! {
    /// The state of a background job.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum JobState {
        Running = "running",
        Waiting = "waiting",
        /// The last run failed.
        Failed = "failed",
        /// The settings switch it off.
        Off = "off",
    }
}

/// The result of a run that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobOutcome {
    Done,
    /// There was nothing to do.
    NothingDue,
}

impl From<bool> for JobOutcome {
    fn from(is_done: bool) -> Self {
        if is_done { Self::Done } else { Self::NothingDue }
    }
}

/// The last finished run of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct LastRun {
    /// Milliseconds since 1970.
    started_at: i64,
    took_ms: i64,
    /// The code of the error, if it failed.
    failure: Option<String>,
}

/// A run in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct RunningJob {
    /// Milliseconds since 1970.
    since: i64,
    done: u64,
    total: u64,
}

impl RunningJob {
    const fn since(since: Timestamp) -> Self {
        Self { since: since.0, done: 0, total: 0 }
    }
}

/// The runs in progress, as the server stores them for commands.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct RunningReport {
    /// Milliseconds since 1970.
    at: i64,
    jobs: BTreeMap<String, RunningJob>,
}

impl RunningReport {
    /// Returns true if a report with these jobs must be stored.
    fn is_outdated(&self, jobs: &BTreeMap<String, RunningJob>, now: Timestamp) -> bool {
        let needs_renewal = !jobs.is_empty() && !Timestamp(self.at).is_within(REPORT_RENEWAL, now);
        self.jobs != *jobs || needs_renewal
    }
}

#[derive(Debug, Default)]
struct JobEntry {
    scheduled: Option<RunningJob>,
    /// A run that a person started. A scheduled one may run beside it; the jobs lock what they must.
    manual: Option<RunningJob>,
    /// A run of the server, in other processes.
    reported: Option<RunningJob>,
    last: Option<LastRun>,
    next_at: Option<Timestamp>,
}

impl JobEntry {
    fn running(&mut self, is_manual: bool) -> &mut Option<RunningJob> {
        if is_manual { &mut self.manual } else { &mut self.scheduled }
    }
}

#[derive(Debug, Default)]
struct BoardState {
    jobs: BTreeMap<JobName, JobEntry>,
    /// Runs finished since the last store.
    is_changed: bool,
    /// A run on demand ended, or a job began or ceased to fail, since the last store.
    is_urgent: bool,
    stored_at: Option<Instant>,
    /// The last report that was stored.
    report: RunningReport,
}

impl BoardState {
    /// Returns the runs in progress that commands are told about.
    fn reported_runs(&self, now: Timestamp) -> BTreeMap<String, RunningJob> {
        let running = self.jobs.iter().filter_map(|(name, entry)| Some((name, entry.manual.or(entry.scheduled)?)));
        let is_long = |run: &RunningJob| now.0.saturating_sub(run.since) >= milliseconds(REPORTED_AFTER);
        running.filter(|(_, run)| is_long(run)).map(|(name, run)| (name.name().to_owned(), run)).collect()
    }
}

/// The state of all background jobs of this process.
pub struct JobBoard {
    core: Core,
    opened_at: Timestamp,
    state: Mutex<BoardState>,
}

/// The state of a job as shown to operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobStatus {
    pub name: JobName,
    pub state: JobState,
    pub running_since: Option<Timestamp>,
    /// Progress of the run in percent, if it is known.
    pub percent: Option<u8>,
    pub last_started_at: Option<Timestamp>,
    pub last_took_ms: Option<i64>,
    /// The code of the error of the last run, if it failed.
    pub failure: Option<String>,
    /// Nothing in other processes than the server.
    pub next_at: Option<Timestamp>,
}

impl JobStatus {
    /// Returns the time at which the last run ended.
    pub fn last_ended_at(&self) -> Option<Timestamp> {
        let took = Duration::from_millis(self.last_took_ms?.unsigned_abs());
        Some(self.last_started_at?.plus(took))
    }
}

impl JobBoard {
    /// Creates the board with the stored last runs and the reported runs of a server. A board that cannot be read starts
    /// empty.
    pub fn new(core: Core) -> Self {
        let last_runs = core.store.read(|tx| settings::find_json_in::<BTreeMap<String, LastRun>>(tx, LAST_RUNS));
        let report = core.store.read(|tx| settings::find_json_in::<RunningReport>(tx, RUNNING));
        let report = report.ok().flatten().unwrap_or_default();
        let mut state = BoardState::default();
        for (name, last) in last_runs.ok().flatten().unwrap_or_default() {
            if let Some(name) = JobName::from_name(&name) {
                state.jobs.entry(name).or_default().last = Some(last);
            }
        }
        if Timestamp(report.at).is_within(REPORT_LIFETIME, core.clock.now()) {
            for (name, run) in &report.jobs {
                if let Some(name) = JobName::from_name(name) {
                    state.jobs.entry(name).or_default().reported = Some(*run);
                }
            }
        }
        state.report = report;
        Self { opened_at: core.clock.now(), core, state: Mutex::new(state) }
    }

    /// Returns the start of this process.
    pub const fn opened_at(&self) -> Timestamp {
        self.opened_at
    }

    /// Marks the start of a scheduled run.
    pub fn begin(self: &Arc<Self>, name: JobName) -> JobRun {
        let at = self.core.clock.now();
        lock_unpoisoned(&self.state).jobs.entry(name).or_default().scheduled = Some(RunningJob::since(at));
        self.run(name, at, false)
    }

    fn run(self: &Arc<Self>, name: JobName, at: Timestamp, is_manual: bool) -> JobRun {
        JobRun { board: Arc::clone(self), name, at, begun: Instant::now(), is_manual, is_finished: false }
    }

    /// Marks the start of a run on demand.
    ///
    /// # Errors
    /// `already_running` while another run on demand is in progress.
    pub fn begin_manual(self: &Arc<Self>, name: JobName) -> Result<JobRun> {
        let at = self.core.clock.now();
        let mut state = lock_unpoisoned(&self.state);
        let entry = state.jobs.entry(name).or_default();
        if entry.manual.is_some() {
            return Err(Code::AlreadyRunning.into());
        }
        entry.manual = Some(RunningJob::since(at));
        Ok(self.run(name, at, true))
    }

    /// Sets the time of the next run.
    pub fn schedule_next(&self, name: JobName, wait: Duration) {
        let next_at = self.core.clock.now().plus(wait);
        lock_unpoisoned(&self.state).jobs.entry(name).or_default().next_at = Some(next_at);
    }

    /// Returns the state of all jobs.
    pub fn statuses(&self) -> Vec<JobStatus> {
        let state = lock_unpoisoned(&self.state);
        JobName::ALL
            .into_iter()
            .map(|name| status_of(name, state.jobs.get(&name), name.is_off(&self.core.config)))
            .collect()
    }

    /// Stores the last runs and the runs in progress if that is due. Only the server calls it.
    ///
    /// # Errors
    /// Storage errors; the next call tries again.
    pub fn store_if_due(&self) -> Result<()> {
        let now = self.core.clock.now();
        let mut state = lock_unpoisoned(&self.state);
        // A report at the start is of the last server.
        state.jobs.values_mut().for_each(|entry| entry.reported = None);
        let is_old = state.stored_at.is_none_or(|stored_at| stored_at.elapsed() >= STORE_INTERVAL);
        let are_runs_due = state.is_urgent || (state.is_changed && is_old);
        let running = state.reported_runs(now);
        if !are_runs_due && !state.report.is_outdated(&running, now) {
            return Ok(());
        }
        let runs: BTreeMap<_, _> =
            state.jobs.iter().filter_map(|(name, entry)| Some((name.name(), entry.last.clone()?))).collect();
        if are_runs_due {
            (state.is_changed, state.is_urgent, state.stored_at) = (false, false, Some(Instant::now()));
        }
        state.report = RunningReport { at: now.0, jobs: running };
        let report = state.report.clone();
        drop(state);
        let stored = self
            .core
            .store
            .write(move |tx| {
                settings::put_json_in(tx, RUNNING, &report)?;
                if are_runs_due { settings::put_json_in(tx, LAST_RUNS, &runs) } else { Ok(()) }
            })
            .wait();
        if stored.is_err() {
            lock_unpoisoned(&self.state).is_urgent = true;
        }
        stored
    }
}

fn status_of(name: JobName, entry: Option<&JobEntry>, is_off: bool) -> JobStatus {
    let running = entry.and_then(|entry| entry.manual.or(entry.scheduled).or(entry.reported));
    let last = entry.and_then(|entry| entry.last.as_ref());
    let failure = last.and_then(|last| last.failure.clone());
    let state = match running {
        Some(_) => JobState::Running,
        None if is_off => JobState::Off,
        None if failure.is_some() => JobState::Failed,
        None => JobState::Waiting,
    };
    let percent = running.filter(|running| running.total > 0).map(|running| {
        let percent = running.done.min(running.total).saturating_mul(100) / running.total;
        u8::try_from(percent).unwrap_or(100)
    });
    JobStatus {
        name,
        state,
        running_since: running.map(|running| Timestamp(running.since)),
        percent,
        last_started_at: last.map(|last| Timestamp(last.started_at)),
        last_took_ms: last.map(|last| last.took_ms),
        failure,
        next_at: entry.and_then(|entry| entry.next_at).filter(|_| !is_off),
    }
}

/// A run in progress. Dropping it unfinished, as a panic does, records a failure.
pub struct JobRun {
    board: Arc<JobBoard>,
    name: JobName,
    at: Timestamp,
    begun: Instant,
    is_manual: bool,
    is_finished: bool,
}

impl JobRun {
    /// Returns the time of the start.
    pub const fn started_at(&self) -> Timestamp {
        self.at
    }

    /// Records how far the run is.
    pub fn progress(&self, done: u64, total: u64) {
        let mut state = lock_unpoisoned(&self.board.state);
        let Some(entry) = state.jobs.get_mut(&self.name) else { return };
        if let Some(running) = entry.running(self.is_manual) {
            (running.done, running.total) = (done, total);
        }
    }

    /// Records the outcome.
    pub fn finish(mut self, outcome: Result<JobOutcome, Code>) {
        self.record(outcome);
    }

    fn record(&mut self, outcome: Result<JobOutcome, Code>) {
        self.is_finished = true;
        let mut state = lock_unpoisoned(&self.board.state);
        let entry = state.jobs.entry(self.name).or_default();
        *entry.running(self.is_manual) = None;
        if outcome == Ok(JobOutcome::NothingDue) {
            return;
        }
        let failure = outcome.err().map(|code| code.name().to_owned());
        let had_failed = entry.last.as_ref().is_some_and(|last| last.failure.is_some());
        let has_failed = failure.is_some();
        entry.last = Some(LastRun { started_at: self.at.0, took_ms: milliseconds(self.begun.elapsed()), failure });
        state.is_changed = true;
        state.is_urgent |= had_failed != has_failed || self.is_manual;
    }
}

impl Drop for JobRun {
    fn drop(&mut self) {
        if !self.is_finished {
            self.record(Err(Code::Internal));
        }
    }
}
