//! The Prometheus page, on a listener of its own that is off by default.
//!
//! Everything is counted in memory where it happens, or read when the page is requested. No number is about one user,
//! and no label holds client input.

mod page;
pub mod requests;

use std::{sync::Arc, time::Instant};

use axum::{
    http::{HeaderValue, Method, Request, StatusCode, header},
    response::{IntoResponse, Response},
};

use self::page::{Page, real};
use self::requests::RequestMetrics;
use super::allowed_hosts::AllowedHosts;
use crate::{
    app::App,
    domain::messaging::push_queue,
    domain::operations::{
        backups::{BackupFailure, LastBackup, follow::FollowStatus},
        health::HealthSnapshot,
        integrity::IntegrityCheck,
        network_log::NetworkLog,
        webhook_outbox,
    },
    error::{Code, Error, Result},
    store::ServerLoad,
    types::Timestamp,
};

const OPEN_METRICS: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");

/// The sources of the page.
#[derive(Clone)]
pub struct Metrics {
    app: Arc<App>,
    requests: Arc<RequestMetrics>,
    hosts: AllowedHosts,
}

impl Metrics {
    pub fn new(app: &Arc<App>, requests: &Arc<RequestMetrics>, hosts: AllowedHosts) -> Self {
        Self { app: Arc::clone(app), requests: Arc::clone(requests), hosts }
    }

    /// Responds with the page. Serves nothing else and reads no body.
    pub async fn respond<B>(self, request: &Request<B>) -> Response {
        if !self.hosts.allows(request.headers()) {
            let text = "This listener does not serve this `Host`: see server.hosts.\n";
            return (StatusCode::BAD_REQUEST, text).into_response();
        }
        if request.uri().path() != "/metrics" {
            return StatusCode::NOT_FOUND.into_response();
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return StatusCode::METHOD_NOT_ALLOWED.into_response();
        }
        // A statement or two and some files: away from the threads that serve requests, because a disk may be slow.
        let page = tokio::task::spawn_blocking(move || page_of(&self)).await;
        match page.unwrap_or_else(|panic| Err(Error::internal(panic))) {
            Ok(text) => ([(header::CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
            Err(error) => {
                tracing::warn!(%error, "metrics could not be collected");
                StatusCode::SERVICE_UNAVAILABLE.into_response()
            }
        }
    }
}

fn page_of(sources: &Metrics) -> Result<String> {
    let condition = match HealthSnapshot::collect(&sources.app.health) {
        Err(error) if error.code == Code::Overloaded => return Err(error),
        observed => observed.inspect_err(|error| tracing::warn!(%error, "some metrics could not be read")).ok(),
    };
    let mut page = Page::default();
    page.gauge("yarrow_info", "The running version").whole(&[("version", env!("CARGO_PKG_VERSION"))], 1);
    add_requests(&mut page, &sources.requests);
    add_store(&mut page, &sources.app);
    if let Some(load) = sources.app.core.store.server_load() {
        let round_trips = sources.app.core.store.writer_metrics().round_trips.get();
        add_server(&mut page, load, round_trips);
    }
    add_network_log(&mut page, &sources.app.network_log);
    add_providers(&mut page, &sources.app);
    add_codes(&mut page, &sources.app);
    add_pushes(&mut page, &sources.app);
    add_webhooks(&mut page, &sources.app);
    add_certificate(&mut page, &sources.app);
    add_follow(&mut page, &sources.app.health.follow.status());
    // A database that cannot be read counts as damaged.
    let is_sound = condition.as_ref().is_some_and(|condition| !condition.integrity.is_damaged());
    page.gauge("yarrow_database_sound", "0 when the database file is damaged").whole(&[], u64::from(is_sound));
    if let Some(condition) = condition {
        add_files(&mut page, &condition);
        add_ledger(&mut page, &condition);
        add_backups(&mut page, &condition);
        page.gauge("yarrow_codes_budget_spent", "Codes sent in the last 24 hours").whole(&[], condition.codes_sent);
        page.gauge("yarrow_payments_in_review", "Orders in review")
            .whole(&[], u64::try_from(condition.payments_in_review).unwrap_or(0));
    }
    page.into_text()
}

fn add_requests(page: &mut Page, requests: &RequestMetrics) {
    let counted = requests.counts();
    let mut samples = page.counter("yarrow_requests", "Requests served");
    for row in &counted {
        for (status, count) in &row.statuses {
            let status = if *status == 0 { "other".to_owned() } else { status.to_string() };
            samples = samples.whole(&[("method", row.method), ("route", row.route), ("status", &status)], *count);
        }
    }
    let mut samples = page
        .histogram("yarrow_request_duration_seconds", "Time from the head of a request to the head of its response");
    for row in &counted {
        let labels = [("method", row.method), ("route", row.route)];
        samples = samples.buckets(&labels, &requests::BOUNDS, &row.buckets, row.sum_microseconds, 1e6);
    }
}

fn add_store(page: &mut Page, app: &App) {
    let (load, writer) = (app.core.store.writer_load(), app.core.store.writer_metrics());
    page.gauge("yarrow_writer_queue", "Queued writes").whole(&[], load.queued);
    page.gauge("yarrow_writer_queue_capacity", "Maximum number of queued writes").whole(&[], load.capacity as u64);
    page.histogram("yarrow_writer_batch_operations", "Writes per commit").sizes(&[], &writer.operations.get());
    page.histogram("yarrow_writer_batch_seconds", "Duration of a commit, including its sync")
        .seconds(&[], &writer.durations.get());
    page.counter("yarrow_writer_failed_commits", "Commits that failed").whole(&[], writer.failures.get());
    page.counter("yarrow_database_damage_met", "Reads and writes that found damage")
        .whole(&[], app.core.store.damage_errors());
    page.gauge("yarrow_wal_bytes", "Size of the write-ahead log").whole(&[], load.wal_bytes);
}

/// Adds the connections to a database server and the copies of the service on it.
fn add_server(page: &mut Page, load: ServerLoad, round_trips: u64) {
    page.counter("yarrow_writer_round_trips", "Answers of the database server that commits waited for")
        .whole(&[], round_trips);
    let used = load.readers.saturating_sub(load.idle_readers);
    page.gauge("yarrow_database_connections", "Open connections for reads")
        .whole(&[("state", "used")], used.into())
        .whole(&[("state", "idle")], load.idle_readers.into());
    page.gauge("yarrow_database_connections_max", "Maximum number of connections for reads")
        .whole(&[], load.max_readers.into());
    page.gauge("yarrow_copies", "Running copies of the service on the database").whole(&[], load.copies.into());
    page.gauge("yarrow_leader", "1 if this copy runs the jobs that must run once").whole(&[], load.is_leader.into());
}

/// Leaves out the size if the file cannot be read.
fn add_network_log(page: &mut Page, log: &NetworkLog) {
    match log.used_bytes() {
        Ok(bytes) => {
            page.gauge("yarrow_network_log_bytes", "Size of the network log").whole(&[], bytes);
        }
        Err(error) => tracing::warn!(%error, "the size of the network log could not be read"),
    }
    page.gauge("yarrow_network_log_max_bytes", "Maximum size of the network log")
        .whole(&[], log.core.config.network_log.max_size.0);
    page.counter(
        "yarrow_network_log_dropped",
        "Requests that are not in the network log, because the disk was too slow",
    )
    .whole(&[], log.metrics.dropped.get());
    page.counter("yarrow_network_log_deleted_for_size", "Entries deleted because the network log was full")
        .whole(&[], log.metrics.deleted_for_size.get());
}

fn add_files(page: &mut Page, condition: &HealthSnapshot) {
    page.gauge("yarrow_database_bytes", "Size of the database file").whole(&[], condition.database_bytes);
    page.gauge("yarrow_database_checked_timestamp_seconds", "Time of the last integrity check; 0 if none")
        .real(&[], seconds(condition.integrity.last.as_ref().map(IntegrityCheck::at)));
    page.gauge("yarrow_disk_free_bytes", "Free space on the disk of the data directory")
        .whole(&[], condition.disk_free);
}

fn add_providers(page: &mut Page, app: &App) {
    let breakers = &app.health.breakers;
    let mut samples = page.counter("yarrow_provider_calls", "Calls to providers by outcome");
    for breaker in breakers {
        let (tally, provider) = (breaker.metrics(), breaker.provider());
        for (outcome, count) in [
            ("answered", tally.answered.get()),
            ("failed", tally.failed.get()),
            ("refused", tally.refused.get()),
            ("cancelled", tally.cancelled.get()),
            ("not_made", tally.not_made.get()),
        ] {
            samples = samples.whole(&[("provider", provider), ("outcome", outcome)], count);
        }
    }
    let mut samples = page.histogram("yarrow_provider_call_seconds", "Duration of calls to providers");
    for breaker in breakers {
        samples = samples.seconds(&[("provider", breaker.provider())], &breaker.metrics().durations.get());
    }
    let mut samples = page.gauge("yarrow_provider_breaker_open", "1 while the circuit breaker of a provider is open");
    for breaker in breakers {
        samples = samples.whole(&[("provider", breaker.provider())], u64::from(breaker.is_open()));
    }
}

fn add_codes(page: &mut Page, app: &App) {
    let tally = &app.code_sender.metrics;
    page.counter("yarrow_codes_sent", "Verification codes accepted by a provider").whole(&[], tally.sent.get());
    page.counter("yarrow_codes_verified", "Verification codes entered correctly").whole(&[], tally.verified.get());
    page.counter("yarrow_codes_rejected", "Wrong, expired and used codes").whole(&[], tally.rejected.get());
    let mut samples = page.counter("yarrow_help_answers", "Questions answered with help, by class");
    for (class, count) in app.model_calls.help.counts() {
        samples = samples.whole(&[("class", class.name())], count);
    }
    page.gauge("yarrow_codes_budget", "Codes that may be sent in 24 hours")
        .whole(&[], u64::from(app.core.config.auth.sends_per_day));
}

/// Adds nothing if no receiver is configured.
fn add_webhooks(page: &mut Page, app: &App) {
    let metrics = &app.webhooks.metrics;
    if !app.webhooks.is_configured() {
        return;
    }
    page.counter("yarrow_webhooks_delivered", "Events that the receiver accepted").whole(&[], metrics.delivered.get());
    page.counter("yarrow_webhooks_failed", "Attempts that failed").whole(&[], metrics.failed.get());
    page.counter("yarrow_webhooks_given_up", "Events that were given up").whole(&[], metrics.given_up.get());
    match webhook_outbox::counts(&app.core) {
        Ok(counts) => {
            let number = |count: i64| u64::try_from(count).unwrap_or(0);
            page.gauge("yarrow_webhooks_pending", "Events that wait").whole(&[], number(counts.pending));
            page.gauge("yarrow_webhooks_undelivered", "Stored events that were given up")
                .whole(&[], number(counts.failed));
        }
        Err(error) => tracing::warn!(%error, "the outbox of webhooks could not be counted"),
    }
}

/// Adds nothing if no push service is configured.
fn add_pushes(page: &mut Page, app: &App) {
    let metrics = &app.push.metrics;
    if !app.push.is_configured() {
        return;
    }
    page.counter("yarrow_pushes_sent", "Pushes accepted by a service").whole(&[], metrics.sent.get());
    page.counter("yarrow_pushes_failed", "Attempts to push that will be repeated").whole(&[], metrics.failed.get());
    page.counter("yarrow_pushes_given_up", "Pushes refused or too old").whole(&[], metrics.given_up.get());
    page.counter("yarrow_push_tokens_dead", "Push tokens removed because the app is gone")
        .whole(&[], metrics.dead_tokens.get());
    match push_queue::counts(&app.core) {
        Ok(counts) => {
            let number = |count: i64| u64::try_from(count).unwrap_or(0);
            page.gauge("yarrow_push_devices", "Apps that get pushes").whole(&[], number(counts.devices));
            page.gauge("yarrow_pushes_queued", "Pushes that wait").whole(&[], number(counts.queued));
        }
        Err(error) => tracing::warn!(%error, "the queue of pushes could not be counted"),
    }
}

/// Adds nothing if no certificate is served.
fn add_certificate(page: &mut Page, app: &App) {
    if let Some(validity) = app.health.certificate_validity() {
        page.gauge("yarrow_certificate_expiry_timestamp_seconds", "Expiry of the served certificate")
            .real(&[], seconds(Some(validity.until)));
    }
}

fn add_ledger(page: &mut Page, condition: &HealthSnapshot) {
    let last = condition.ledger.as_ref();
    page.gauge("yarrow_ledger_verified_timestamp_seconds", "Time of the last ledger verification; 0 if none")
        .real(&[], seconds(last.map(|verification| verification.at())));
    page.gauge("yarrow_ledger_discrepancies", "Discrepancies found by the last verification")
        .whole(&[], last.map_or(0, |verification| verification.discrepancies));
    let suspended = u64::try_from(condition.accounts_suspended).unwrap_or(0);
    let verified = last.map_or(0, |verification| verification.accounts);
    page.gauge("yarrow_ledger_accounts", "Accounts, as of the last verification")
        .whole(&[("state", "ok")], verified.saturating_sub(suspended))
        .whole(&[("state", "inconsistent")], suspended);
}

fn add_backups(page: &mut Page, condition: &HealthSnapshot) {
    let (last, failure) = (condition.backups.last.as_ref(), condition.backups.failure.as_ref());
    page.gauge("yarrow_backup_timestamp_seconds", "Time of the last backup; 0 if none")
        .real(&[], seconds(last.map(LastBackup::at)));
    page.gauge("yarrow_backup_bytes", "Size of the last backup").whole(&[], last.map_or(0, |backup| backup.bytes));
    page.gauge("yarrow_backup_duration_seconds", "Duration of the last backup")
        .real(&[], last.map_or(0.0, |backup| real(backup.took_ms) / 1000.0));
    page.gauge("yarrow_backup_sound", "0 when the last backup was found inconsistent")
        .whole(&[], u64::from(last.is_none_or(|backup| backup.is_sound)));
    page.gauge("yarrow_backup_uploaded_timestamp_seconds", "Time of the last upload of a backup; 0 if none")
        .real(&[], seconds(condition.offsite.last.as_ref().map(LastBackup::at)));
    page.gauge(
        "yarrow_backup_upload_failed_timestamp_seconds",
        "Time of a failed upload since the last successful one; 0 if none",
    )
    .real(&[], seconds(condition.offsite.failure.as_ref().map(BackupFailure::at)));
    page.gauge(
        "yarrow_backup_failed_timestamp_seconds",
        "Time of a failed backup since the last successful one; 0 if none",
    )
    .real(&[], seconds(failure.map(BackupFailure::at)));
}

/// Adds continuous backup, if it is on in this process.
fn add_follow(page: &mut Page, status: &FollowStatus) {
    if !status.is_on {
        return;
    }
    page.gauge("yarrow_follow_lag_seconds", "Age of the oldest change that is not in the bucket; 0 if none")
        .real(&[], status.lag(Instant::now()).as_secs_f64());
    page.gauge("yarrow_follow_superseded", "1 if another machine has taken over, so that this one stores nothing")
        .whole(&[], u64::from(status.superseded_by.is_some()));
    page.gauge("yarrow_follow_term", "Term that this process holds; 0 if none").whole(&[], status.term.unwrap_or(0));
    page.gauge("yarrow_follow_sequence", "Number of the last object in this term").whole(&[], status.seq);
    page.gauge("yarrow_follow_pass_seconds", "Duration of the last comparison of all pages")
        .real(&[], status.pass.as_secs_f64());
    page.counter("yarrow_follow_shipments", "Objects shipped to the bucket").whole(&[], status.shipments);
    page.counter("yarrow_follow_pages", "Changed pages shipped to the bucket").whole(&[], status.pages);
    page.counter("yarrow_follow_bytes", "Bytes shipped to the bucket").whole(&[], status.bytes);
    page.counter("yarrow_follow_failures", "Failed attempts to ship changes").whole(&[], status.failures);
}

fn seconds(at: Option<Timestamp>) -> f64 {
    at.map_or(0.0, |at| real(u64::try_from(at.0).unwrap_or(0)) / 1000.0)
}
