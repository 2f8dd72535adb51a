//! The health of the installation.

use std::{sync::Arc, time::Instant};

use axum::{body::Body, http::Response};

use crate::{
    app::App,
    domain::{
        money::ledger::Verification,
        operations::{backups::BackupFailure, health_report::HealthReport},
    },
    error::Result,
    http::{
        admin::{self, health::ShownDelivery},
        console::{
            acts,
            request::{ConsoleRequest, ok},
            views::{
                context::Flash,
                pages::health::{self as view, ContinuousBackup, HealthPage, LedgerHealth},
                texts::{self, Tone},
            },
        },
        reply::Json,
    },
};

pub async fn show(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let health = console.context.report(collect).await?;
    ok(view::page(&console.view()?, &health))
}

pub async fn refresh(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let health = console.context.report(collect).await?;
    ok(view::live(&console.view()?, &health))
}

fn collect(app: &App) -> Result<HealthPage> {
    let report = HealthReport::collect(&app.health)?;
    let snapshot = &report.snapshot;
    let failure = |failure: &BackupFailure| (failure.at(), failure.detail.clone());
    Ok(HealthPage {
        taken_at: snapshot.at,
        ledger: ledger(&report),
        database_bytes: snapshot.database_bytes,
        disk_free: snapshot.disk_free,
        disk_total: snapshot.disk_total,
        backup_state: report.backup_state,
        backup_failure: snapshot.backups.failure.as_ref().map(failure),
        upload_failure: snapshot.offsite.failure.as_ref().map(failure),
        continuous: continuous(app),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: app.health.jobs.opened_at(),
        doctor: report.doctor,
        alerts: report.alerts,
        past_alerts: report.resolved_alerts,
        backups: report.backups,
        providers: report.providers,
        jobs: report.jobs,
    })
}

fn continuous(app: &App) -> Option<ContinuousBackup> {
    let config = &app.core.config;
    if !config.has_continuous_backup() {
        return None;
    }
    let (status, now) = (app.health.follow.status(), Instant::now());
    let lag = status.lag(now);
    let state = match () {
        () if status.superseded_by.is_some() => "superseded",
        () if lag > config.backup.follow * 6 => "behind",
        () => "current",
    };
    Some(ContinuousBackup {
        state: state.to_owned(),
        lag_s: lag.as_secs(),
        shipped_at: status.shipped_at,
        objects: status.shipments,
        failure: status.failure,
    })
}

fn ledger(report: &HealthReport) -> LedgerHealth {
    let snapshot = &report.snapshot;
    LedgerHealth {
        state: snapshot.ledger_state(),
        at: snapshot.ledger.map(Verification::at),
        accounts: snapshot.ledger.map_or(0, |last| last.accounts),
        discrepancies: snapshot.ledger.map_or(0, |last| last.discrepancies),
        suspended: snapshot.accounts_suspended,
        payment_differences: snapshot.payment_differences,
    }
}

/// Sends a test alert, and says what became of it by channel.
pub async fn test_alerts(console: Arc<ConsoleRequest>) -> Result<Response<Body>> {
    let deliveries = match acts::perform(&console, &admin::health::test_alerts).await {
        Ok(Json(tested)) => tested.items,
        Err(error) => return acts::reject(&console, error).await,
    };
    let language = console.language();
    let outcome = |delivery: &ShownDelivery| {
        let outcome = delivery.error.as_deref().unwrap_or("delivered");
        format!("{}: {}", texts::code(language, delivery.channel), texts::code(language, outcome))
    };
    let tone = if deliveries.iter().all(|delivery| delivery.delivered) { Tone::Good } else { Tone::Bad };
    console.redirect(&Flash { tone, text: deliveries.iter().map(outcome).collect::<Vec<_>>().join("; ") })
}
