//! `/admin/health`: the health of the installation, and work that an owner can start.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::{
    domain::{
        money::ledger::Verification,
        operations::{
            alerts::{ActiveAlert, DeliveryResult, ResolvedAlert},
            backups::{BackupFailure, summary::BackupSummary},
            doctor::{Check, DoctorReport},
            facts,
            health::{BackupState, LedgerState},
            health_report::{HealthReport, ProviderStatus},
            job_runs::JobStatus,
        },
    },
    error::{Code, Error, Result},
    http::{
        params::Nothing,
        reply::{Accepted, Json},
        request_context::RequestContext,
    },
    jobs::{self, ManualJob},
    types::Timestamp,
};

/// The health of the installation.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstallationHealth {
    at: Timestamp,
    #[schema(example = "0.1.0")]
    version: &'static str,
    /// Bytes of the database and its write-ahead log.
    #[schema(example = 1_504_000)]
    database_bytes: u64,
    /// `sound`, `damaged`, or `unchecked` until the first complete check.
    #[schema(example = "sound")]
    database: &'static str,
    /// Free bytes on the disk of the data directory.
    #[schema(example = 61_000_000_000_u64)]
    disk_free: u64,
    #[schema(example = 160_000_000_000_u64)]
    disk_total: u64,
    ledger: ShownLedgerHealth,
    backups: ShownBackups,
    /// Alerts of which the operators were notified.
    alerts: Vec<ShownAlert>,
    /// Newest first.
    resolved_alerts: Vec<ShownResolvedAlert>,
    providers: Vec<ShownProvider>,
    jobs: Vec<ShownJob>,
    /// The last report of the doctor; null before the first.
    doctor: Option<ShownDoctorReport>,
}

/// The state of the ledger.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShownLedgerHealth {
    state: LedgerState,
    /// Time of the last verification of the whole ledger.
    verified_at: Option<Timestamp>,
    /// Accounts of the last verification.
    #[schema(example = 812)]
    accounts: u64,
    #[schema(example = 0)]
    discrepancies: u64,
    #[schema(example = 0)]
    accounts_suspended: i64,
    /// Differences between payments and ledger in the last daily report.
    #[schema(example = 0)]
    payment_differences: u64,
}

/// The backups of this machine and their off-site copies.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShownBackups {
    state: BackupState,
    /// Time of the last failure, if no backup succeeded since.
    #[schema(value_type = Option<String>, format = DateTime, example = json!(null))]
    failed_at: Option<Timestamp>,
    #[schema(example = json!(null))]
    failure: Option<String>,
    /// Time of the last failed upload, if none succeeded since.
    #[schema(value_type = Option<String>, format = DateTime, example = json!(null))]
    upload_failed_at: Option<Timestamp>,
    #[schema(example = json!(null))]
    upload_failure: Option<String>,
    /// The newest backups, newest first.
    items: Vec<ShownBackup>,
}

/// A backup.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShownBackup {
    #[schema(example = "yarrow-20260102T030405.678Z-scheduled.db")]
    name: String,
    at: Timestamp,
    #[schema(example = 418_200_000)]
    bytes: u64,
    /// `sound` or `inconsistent`, as checked when it was made; `unknown` without a manifest.
    #[schema(example = "sound")]
    contents: &'static str,
    /// `uploaded`, `waiting`, `failed`, or `off` without a bucket.
    #[schema(example = "uploaded")]
    offsite: &'static str,
}

/// A firing alert.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShownAlert {
    #[schema(example = "payments_in_review")]
    rule: String,
    #[schema(example = "1 payment needs a decision; see `yarrow payments list --state review`.")]
    detail: String,
    /// The numbers and names in the text, by which a client can word it. Null for alerts of an earlier version.
    #[schema(value_type = Option<Object>, example = json!({ "payments": 1 }))]
    values: Option<Value>,
    since: Timestamp,
    /// Time of the last message to the operators.
    notified_at: Timestamp,
}

/// An alert that is over.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShownResolvedAlert {
    #[schema(example = "provider_down:sms")]
    rule: String,
    #[schema(example = "Calls to the sms provider are paused because several failed in a row.")]
    detail: String,
    /// The numbers and names in the text, by which a client can word it. Null for alerts of an earlier version.
    #[schema(value_type = Option<Object>, example = json!({ "provider": "sms" }))]
    values: Option<Value>,
    since: Timestamp,
    #[schema(value_type = String, format = DateTime, example = "2026-01-02T03:14:05.678Z")]
    until: Timestamp,
}

/// A provider as this process knows it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShownProvider {
    #[schema(example = "sms")]
    name: &'static str,
    /// `working`, `paused` after several failures, `probing`, or `misconfigured` if it rejects all calls.
    #[schema(example = "working")]
    state: &'static str,
    /// Start of the pause.
    #[schema(value_type = Option<String>, format = DateTime, example = json!(null))]
    since: Option<Timestamp>,
    /// The code with which the provider rejects all calls.
    #[schema(example = json!(null))]
    failure: Option<String>,
}

/// A background job with its last run that had something to do.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShownJob {
    #[schema(example = "backup")]
    name: &'static str,
    /// `running`, `waiting`, `failed` after a failed run, or `off` by the settings.
    #[schema(example = "waiting")]
    state: &'static str,
    #[schema(value_type = Option<String>, format = DateTime, example = json!(null))]
    running_since: Option<Timestamp>,
    /// Progress of the current step of the run.
    #[schema(example = json!(null))]
    percent: Option<u8>,
    last_started_at: Option<Timestamp>,
    #[schema(value_type = Option<String>, format = DateTime, example = "2026-01-02T03:04:06.678Z")]
    last_ended_at: Option<Timestamp>,
    /// The error code of the last run, if it failed.
    #[schema(example = json!(null))]
    failure: Option<String>,
    /// Time of the next run; null for jobs that run on demand, and in commands.
    #[schema(value_type = Option<String>, format = DateTime, example = "2026-01-03T03:04:05.678Z")]
    next_at: Option<Timestamp>,
}

/// The last report of the doctor that the server made.
#[derive(Serialize, ToSchema)]
pub struct ShownDoctorReport {
    at: Timestamp,
    checks: Vec<ShownCheck>,
}

/// A check of the doctor.
#[derive(Serialize, ToSchema)]
pub struct ShownCheck {
    #[schema(example = "disk")]
    group: String,
    #[schema(example = "backup directory")]
    name: String,
    /// `pass`, `warn` or `fail`.
    #[schema(example = "pass")]
    verdict: &'static str,
    #[schema(example = "61000 MiB free")]
    detail: String,
    /// The finding, by which a client can word it with `values`. Null in a report of an earlier version.
    #[schema(example = "backup_space")]
    rule: Option<String>,
    #[schema(value_type = Option<Object>, example = json!({ "mebibytes": 61_000 }))]
    values: Option<Value>,
}

impl From<HealthReport> for InstallationHealth {
    fn from(report: HealthReport) -> Self {
        let HealthReport { snapshot, alerts, resolved_alerts, doctor, backups, backup_state, providers, jobs } = report;
        let ledger = ShownLedgerHealth {
            state: snapshot.ledger_state(),
            verified_at: snapshot.ledger.map(Verification::at),
            accounts: snapshot.ledger.map_or(0, |last| last.accounts),
            discrepancies: snapshot.ledger.map_or(0, |last| last.discrepancies),
            accounts_suspended: snapshot.accounts_suspended,
            payment_differences: snapshot.payment_differences,
        };
        let (failure, upload_failure) = (snapshot.backups.failure, snapshot.offsite.failure);
        let backups = ShownBackups {
            state: backup_state,
            failed_at: failure.as_ref().map(BackupFailure::at),
            failure: failure.map(|failure| failure.detail),
            upload_failed_at: upload_failure.as_ref().map(BackupFailure::at),
            upload_failure: upload_failure.map(|failure| failure.detail),
            items: backups.into_iter().map(ShownBackup::from).collect(),
        };
        Self {
            at: snapshot.at,
            version: env!("CARGO_PKG_VERSION"),
            database_bytes: snapshot.database_bytes,
            database: snapshot.integrity.name(),
            disk_free: snapshot.disk_free,
            disk_total: snapshot.disk_total,
            ledger,
            backups,
            alerts: alerts.into_iter().map(ShownAlert::from).collect(),
            resolved_alerts: resolved_alerts.into_iter().map(ShownResolvedAlert::from).collect(),
            providers: providers.into_iter().map(ShownProvider::from).collect(),
            jobs: jobs.into_iter().map(ShownJob::from).collect(),
            doctor: doctor.map(ShownDoctorReport::from),
        }
    }
}

impl From<BackupSummary> for ShownBackup {
    fn from(BackupSummary { backup, contents, offsite }: BackupSummary) -> Self {
        Self {
            name: backup.name,
            at: backup.at,
            bytes: backup.bytes,
            contents: contents.name(),
            offsite: offsite.name(),
        }
    }
}

impl From<(String, ActiveAlert)> for ShownAlert {
    fn from((rule, alert): (String, ActiveAlert)) -> Self {
        let (since, notified_at) = (alert.since(), alert.notified_at());
        Self { rule, since, notified_at, values: alert.content.values(), detail: alert.content.detail }
    }
}

impl From<ResolvedAlert> for ShownResolvedAlert {
    fn from(alert: ResolvedAlert) -> Self {
        let (since, until) = (alert.since(), alert.until());
        Self { since, until, rule: alert.rule, values: alert.content.values(), detail: alert.content.detail }
    }
}

impl From<ProviderStatus> for ShownProvider {
    fn from(ProviderStatus { name, state, since, failure }: ProviderStatus) -> Self {
        Self { name, state: state.name(), since, failure }
    }
}

impl From<JobStatus> for ShownJob {
    fn from(job: JobStatus) -> Self {
        Self {
            name: job.name.name(),
            state: job.state.name(),
            running_since: job.running_since,
            percent: job.percent,
            last_ended_at: job.last_ended_at(),
            last_started_at: job.last_started_at,
            failure: job.failure,
            next_at: job.next_at,
        }
    }
}

impl From<DoctorReport> for ShownDoctorReport {
    fn from(report: DoctorReport) -> Self {
        Self { at: report.at(), checks: report.checks.into_iter().map(ShownCheck::from).collect() }
    }
}

impl From<Check> for ShownCheck {
    fn from(Check { group, name, verdict, detail, fact }: Check) -> Self {
        let (rule, values) = fact.as_ref().map(facts::rule_and_values).unzip();
        Self { group, name, verdict: verdict.name(), detail, rule, values }
    }
}

/// The outcome of a test message, by channel.
#[derive(Serialize, ToSchema)]
pub struct AlertTested {
    pub items: Vec<ShownDelivery>,
}

/// The delivery of a message through one channel.
#[derive(Serialize, ToSchema)]
pub struct ShownDelivery {
    #[schema(example = "webhook")]
    pub channel: &'static str,
    #[schema(example = true)]
    pub delivered: bool,
    /// The reason of the failure.
    #[schema(example = json!(null))]
    pub error: Option<String>,
}

impl AlertTested {
    pub fn new(deliveries: &[DeliveryResult]) -> Self {
        Self { items: deliveries.iter().map(ShownDelivery::from).collect() }
    }
}

impl From<&DeliveryResult> for ShownDelivery {
    fn from(delivery: &DeliveryResult) -> Self {
        let error = delivery.outcome.as_ref().err().map(ToString::to_string);
        Self { channel: delivery.channel, delivered: error.is_none(), error }
    }
}

/// A job that was started. `GET /admin/health` shows its progress and its outcome.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobStarted {
    #[schema(example = "backup")]
    job: &'static str,
    started_at: Timestamp,
}

pub async fn show(context: RequestContext, _: Nothing) -> Result<Json<InstallationHealth>> {
    let report = context.report(|app| HealthReport::collect(&app.health)).await?;
    Ok(Json(report.into()))
}

pub async fn test_alerts(context: RequestContext, _: Nothing) -> Result<Json<AlertTested>> {
    let deliveries = context.blocking(|app| app.alerts.send_test()).await.map_err(without_channels)?;
    Ok(Json(AlertTested::new(&deliveries)))
}

/// Converts the error of an installation without channels, which is no fault of the server.
fn without_channels(mut error: Error) -> Error {
    if error.code == Code::Configuration {
        error.code = Code::NotConfigured;
    }
    error
}

pub async fn back_up(context: RequestContext, _: Nothing) -> Result<Accepted<JobStarted>> {
    start(&context, ManualJob::Backup)
}

pub async fn verify_ledger(context: RequestContext, _: Nothing) -> Result<Accepted<JobStarted>> {
    start(&context, ManualJob::LedgerVerification)
}

pub async fn run_doctor(context: RequestContext, _: Nothing) -> Result<Accepted<JobStarted>> {
    start(&context, ManualJob::Doctor)
}

fn start(context: &RequestContext, job: ManualJob) -> Result<Accepted<JobStarted>> {
    let started_at = jobs::start_manual(&context.app, job)?;
    Ok(Accepted(JobStarted { job: job.name(), started_at }))
}
