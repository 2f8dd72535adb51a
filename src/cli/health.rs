//! `yarrow health`: the health of the installation.

use clap::Args;

use super::{Common, or_empty, row, table};
use crate::{
    domain::operations::{health_report::HealthReport, job_runs::JobState},
    error::Result,
    http::responses::InstallationHealth,
};

/// Show alerts, backups, ledger and background jobs
///
/// Last runs of jobs are at most a minute old, and running jobs at most a second. Only the server knows which providers
/// are down.
#[derive(Debug, Args)]
pub struct HealthArgs {}

pub fn run(common: &Common, _: &HealthArgs) -> Result<()> {
    let app = common.open()?;
    let report = HealthReport::collect(&app.health)?;
    let text = text_of(&report);
    common.output(&InstallationHealth::from(report), || text)
}

fn text_of(report: &HealthReport) -> String {
    let snapshot = &report.snapshot;
    let mut parts = vec![table(
        ["", "state"],
        [
            row!["database", snapshot.integrity.name()],
            row!["ledger", snapshot.ledger_state().name()],
            row!["backups", report.backup_state.name()],
            row!["disk", format!("{} % free", snapshot.disk_free_percent())],
        ],
    )];
    if !report.alerts.is_empty() {
        let rows = report.alerts.iter().map(|(rule, alert)| row![rule, alert.since(), alert.content.detail]);
        parts.push(table(["alert", "since", "detail"], rows));
    }
    if !report.backups.is_empty() {
        let rows = report.backups.iter().map(|summary| {
            row![summary.backup.name, summary.backup.at, summary.contents.name(), summary.offsite.name()]
        });
        parts.push(table(["backup", "at", "contents", "off-site"], rows));
    }
    let rows = report.jobs.iter().map(|job| {
        let state = match (job.state, job.percent) {
            (JobState::Running, Some(percent)) => format!("running, {percent} %"),
            (JobState::Failed, _) => job.failure.clone().unwrap_or_else(|| job.state.name().to_owned()),
            _ => job.state.name().to_owned(),
        };
        row![job.name.name(), state, or_empty(job.last_started_at), or_empty(job.last_took_ms)]
    });
    parts.push(table(["job", "state", "last run", "ms"], rows));
    parts.join("\n\n")
}
