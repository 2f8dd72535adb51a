//! Health: checks of the doctor, alerts, backups, ledger verification, providers and jobs.

use maud::{Markup, html};

use crate::{
    domain::operations::{
        alerts::{ActiveAlerts, ResolvedAlert},
        backups::summary::BackupSummary,
        doctor::{Check, DoctorReport},
        health::{BackupState, LedgerState},
        health_report::ProviderStatus,
        job_runs::{JobState, JobStatus},
    },
    http::console::views::{
        context::{Right, ViewContext, href},
        format::{self, Timestamp},
        forms,
        layout::{self, PageBody, Place},
        lists::{self, number, text, time},
        parts::{self, facts, panel, panel_with},
        texts::{self, Text, Tone},
    },
};

/// The last verification of the ledger.
#[derive(Clone, Debug)]
pub struct LedgerHealth {
    pub state: LedgerState,
    pub at: Option<Timestamp>,
    pub accounts: u64,
    pub discrepancies: u64,
    pub suspended: i64,
    pub payment_differences: u64,
}

/// Continuous backup to a bucket.
#[derive(Clone, Debug)]
pub struct ContinuousBackup {
    /// `current`, `behind` or `superseded`.
    pub state: String,
    /// Age of the oldest change that is not in the bucket.
    pub lag_s: u64,
    /// The time of the newest state in the bucket.
    pub shipped_at: Option<Timestamp>,
    pub objects: u64,
    pub failure: Option<String>,
}

/// The health page.
#[derive(Clone, Debug)]
pub struct HealthPage {
    pub taken_at: Timestamp,
    pub alerts: ActiveAlerts,
    pub past_alerts: Vec<ResolvedAlert>,
    /// The last report of the doctor; none before the first run.
    pub doctor: Option<DoctorReport>,
    pub backups: Vec<BackupSummary>,
    pub backup_state: BackupState,
    pub backup_failure: Option<(Timestamp, String)>,
    pub upload_failure: Option<(Timestamp, String)>,
    /// None if it is switched off.
    pub continuous: Option<ContinuousBackup>,
    pub ledger: LedgerHealth,
    pub providers: Vec<ProviderStatus>,
    pub jobs: Vec<JobStatus>,
    pub database_bytes: u64,
    pub disk_free: u64,
    pub disk_total: u64,
    /// Version, start and process of the server.
    pub version: String,
    pub started_at: Timestamp,
}

/// Renders the health page.
pub fn page(cx: &ViewContext, health: &HealthPage) -> Markup {
    let body = html! {
        (layout::heading(cx.t(Text::Health), None, &html! {
            @if cx.may(Right::Administer) {
                (forms::button(cx, &href("health/alert-test"), cx.t(Text::TestAlerts), ""))
                (forms::button(cx, &href("health/doctor"), cx.t(Text::RunDoctor), "primary"))
            }
        }))
        (live(cx, health))
    };
    layout::page(cx, &PageBody::new(cx.t(Text::Health), Place::Health, body).live())
}

/// Renders the part that refreshes itself. Its request is not audited and does not extend the session.
pub fn live(cx: &ViewContext, health: &HealthPage) -> Markup {
    // The result of a job that somebody started shows as soon as it is there.
    let is_running = health.jobs.iter().any(|job| job.state == JobState::Running);
    let trigger = if is_running { "every 2s" } else { "every 15s" };
    html! {
        div.live id="live" hx-get=(href("fragments/health")) hx-trigger=(trigger) hx-swap="outerHTML" data-live-region data-signature=(health.alerts.len()) data-announce=(texts::alerts(cx.language, health.alerts.len())) {
            @if health.alerts.is_empty() { (parts::note(Tone::Good, &html! { p { strong { (cx.t(Text::NoAlerts)) } } })) }
            @for (rule, alert) in &health.alerts {
                (parts::alert(cx, rule, alert, &html! { code { (rule) } " · " (cx.t(Text::Since)) " " (cx.time(alert.since())) }))
            }
            div.columns.three { (server(cx, health)) (ledger(cx, &health.ledger)) (providers(cx, &health.providers)) }
            (jobs(cx, &health.jobs))
            (backups(cx, health))
            (doctor(cx, health.doctor.as_ref()))
            (past(cx, health))
            p.hint.taken { (cx.t(Text::AsOf)) " " (cx.time(health.taken_at)) }
        }
    }
}

fn server(cx: &ViewContext, health: &HealthPage) -> Markup {
    let used =
        100_u64.saturating_sub(health.disk_free.saturating_mul(100).checked_div(health.disk_total).unwrap_or(100));
    let used = u8::try_from(used).unwrap_or(100);
    panel(
        "server",
        cx.t(Text::Server),
        &facts(
            cx,
            &[
                (Text::Version, html! { code { (health.version) } }),
                (Text::Started, cx.time(health.started_at)),
                (Text::Database, html! { (format::bytes(health.database_bytes)) }),
                (Text::DiskFree, html! { (format::bytes(health.disk_free)) " / " (format::bytes(health.disk_total)) }),
                (Text::DiskUsed, parts::progress(cx.t(Text::DiskUsed), used)),
            ],
        ),
    )
}

fn ledger(cx: &ViewContext, ledger: &LedgerHealth) -> Markup {
    let number = |value: u64| html! { (format::number(i64::try_from(value).unwrap_or(i64::MAX))) };
    panel_with(
        "ledger",
        cx.t(Text::Ledger),
        &parts::state(cx, &ledger.state),
        &html! {
            (facts(cx, &[
                (Text::VerifiedAt, ledger.at.map_or_else(|| parts::dash(cx), |at| cx.time(at))),
                (Text::Accounts, number(ledger.accounts)),
                (Text::Discrepancies, number(ledger.discrepancies)),
                (Text::AccountsSuspended, html! { (format::number(ledger.suspended)) }),
                (Text::PaymentDifferences, number(ledger.payment_differences)),
            ]))
            @if cx.may(Right::Administer) { div.actions { (forms::button(cx, &href("health/ledger-verification"), cx.t(Text::VerifyNow), "")) } }
        },
    )
}

fn jobs(cx: &ViewContext, jobs: &[JobStatus]) -> Markup {
    let columns =
        [text(Text::Job), text(Text::State), time(Text::LastRun), number(Text::Duration), time(Text::NextRun)];
    let at = |at: Option<Timestamp>| at.map_or_else(|| parts::dash(cx), |at| cx.cell_time(at));
    panel(
        "jobs",
        cx.t(Text::Jobs),
        &html! {
            @if jobs.is_empty() { p.empty { (cx.t(Text::Nothing)) } } @else {
                (lists::table(cx, Text::Jobs, &columns, jobs.iter().map(|job| vec![
                    html! { (cx.word(&job.name)) },
                    html! {
                        (parts::state(cx, &job.state))
                        @if let Some(percent) = job.percent { " " (parts::progress(cx.word(&job.name), percent)) }
                        @if let Some(failure) = &job.failure { " " span.hint { (texts::code(cx.language, failure)) } }
                    },
                    at(job.running_since.or(job.last_started_at)),
                    html! { @match job.last_took_ms.filter(|_| job.running_since.is_none()) { Some(ms) => (format::milliseconds(ms)), None => (parts::dash(cx)) } },
                    at(job.next_at),
                ])))
            }
        },
    )
}

fn backups(cx: &ViewContext, health: &HealthPage) -> Markup {
    panel_with(
        "backups",
        cx.t(Text::Backups),
        &parts::state(cx, &health.backup_state),
        &html! {
            @for (at, detail) in health.backup_failure.iter().chain(&health.upload_failure) { (parts::note(Tone::Bad, &html! { p { (detail) } p.hint { (cx.time(*at)) } })) }
            @if let Some(continuous) = &health.continuous {
                @if let Some(failure) = &continuous.failure { (parts::note(Tone::Bad, &html! { p { (failure) } })) }
                (facts(cx, &[
                    (Text::ContinuousBackup, parts::state(cx, &continuous.state)),
                    (Text::NewestInBucket, continuous.shipped_at.map_or_else(|| parts::dash(cx), |at| cx.time(at))),
                    (Text::BackupLag, html! { (format::duration(i64::try_from(continuous.lag_s).unwrap_or(i64::MAX).saturating_mul(1_000_000))) }),
                    (Text::ObjectsShipped, html! { (format::number(i64::try_from(continuous.objects).unwrap_or(i64::MAX))) }),
                ]))
            }
            @if health.backups.is_empty() { p.empty { (cx.t(Text::NoBackups)) } } @else {
                (lists::table(cx, Text::Backups, &[time(Text::Time), number(Text::Size), text(Text::Sound), text(Text::Offsite)], health.backups.iter().map(|row| vec![
                    cx.cell_time(row.backup.at),
                    html! { (format::bytes(row.backup.bytes)) },
                    parts::state(cx, &row.contents),
                    parts::state(cx, &row.offsite),
                ])))
            }
            p.hint { (cx.t(Text::NoRestoreHere)) }
            @if cx.may(Right::Administer) { div.actions { (forms::button(cx, &href("health/backup"), cx.t(Text::BackUpNow), "")) } }
        },
    )
}

fn providers(cx: &ViewContext, providers: &[ProviderStatus]) -> Markup {
    panel(
        "providers",
        cx.t(Text::Providers),
        &html! {
            @if providers.is_empty() { p.empty { (cx.t(Text::NoProviders)) } } @else {
                ul.lines { @for provider in providers {
                    li {
                        span { (texts::code(cx.language, provider.name)) span.hint { (provider.failure.as_deref().unwrap_or_default()) @if let Some(since) = provider.since { " · " (cx.t(Text::Since)) " " (cx.ago(since)) } } }
                        (parts::state(cx, &provider.state))
                    }
                } }
            }
        },
    )
}

fn doctor(cx: &ViewContext, report: Option<&DoctorReport>) -> Markup {
    let when = html! { @if let Some(report) = report { span.hint { (cx.time(report.at())) } } };
    let row = |check: &Check| {
        let words = check.words();
        let [group, name, detail] = words.each_ref().map(|words| words.in_locale(cx.language.locale()));
        vec![html! { (name) " " span.hint { (group) } }, parts::state(cx, &check.verdict), html! { (detail) }]
    };
    panel_with(
        "doctor",
        cx.t(Text::Doctor),
        &when,
        &html! {
            @if let Some(report) = report {
                (lists::table(cx, Text::Doctor, &[text(Text::CheckName), text(Text::Verdict), text(Text::Detail)], report.checks.iter().map(row)))
            } @else { p.empty { (cx.t(Text::DoctorNotRun)) } }
        },
    )
}

fn past(cx: &ViewContext, health: &HealthPage) -> Markup {
    panel(
        "past-alerts",
        cx.t(Text::PastAlerts),
        &html! {
            @if health.past_alerts.is_empty() { p.empty { (cx.t(Text::NothingYet)) } } @else {
                (lists::table(cx, Text::PastAlerts, &[text(Text::Alert), text(Text::Detail), time(Text::From), time(Text::To)], health.past_alerts.iter().map(|alert| vec![
                    html! { (texts::alert(cx.language, &alert.rule)) },
                    html! { (alert.content.text(cx.language.locale())) },
                    cx.cell_time(alert.since()),
                    cx.cell_time(alert.until()),
                ])))
            }
        },
    )
}
