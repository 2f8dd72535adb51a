//! `yarrow doctor`: examines the installation and gives a verdict on each check.
//!
//! It changes nothing. Checks that need no database run even if the database cannot be opened. A failed check says what
//! to do; a warning is about settings that suit a trial but not production.

mod facts;
mod certificate;
mod database;
mod database_server;
mod files;
mod listeners;
mod service;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use facts::CheckFact;

use crate::{
    clock::Clock,
    config::{Config, ResolvedSetting},
    core::Core,
    domain::{
        money::payments::Payments,
        operations::{
            health::{Health, HealthSnapshot},
            network_log::NetworkLog,
            settings,
        },
    },
    error::{Error, Result, Sentence},
    store::{Read, SCHEMA_VERSION},
    types::{Timestamp, named_enum},
};

const LAST_REPORT: &str = "doctor.report";
/// The number of groups of checks.
const GROUPS: usize = 15;

named_enum! {
    /// The result of a check.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Verdict {
        Pass = "pass",
        Warn = "warn",
        Fail = "fail",
    }
}

/// A check with its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    pub group: String,
    pub name: String,
    pub verdict: Verdict,
    /// The fact in English, without personal data or secrets.
    pub detail: String,
    /// None in a report of an earlier version.
    #[serde(flatten)]
    pub fact: Option<CheckFact>,
}

impl Check {
    /// Returns group, name and detail. A report of an earlier version has English ones only.
    pub fn words(&self) -> [Sentence; 3] {
        match &self.fact {
            Some(fact) => {
                let [group, name] = fact.check();
                [group, name, fact.sentence()]
            }
            None => [&self.group, &self.name, &self.detail].map(|text| Sentence::for_reader(text.clone())),
        }
    }
}

impl From<CheckFact> for Check {
    fn from(fact: CheckFact) -> Self {
        let ([group, name], detail) = (fact.check().map(|name| name.to_string()), fact.sentence().to_string());
        Self { group, name, verdict: fact.verdict(), detail, fact: Some(fact) }
    }
}

/// The findings of an examination that the server made on demand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoctorReport {
    /// Milliseconds since 1970.
    at: i64,
    pub checks: Vec<Check>,
}

impl DoctorReport {
    pub const fn new(at: Timestamp, checks: Vec<Check>) -> Self {
        Self { at: at.0, checks }
    }

    pub const fn at(&self) -> Timestamp {
        Timestamp(self.at)
    }
}

/// A callback that receives the name of each group before its checks run.
pub type DoctorProgress<'watcher> = &'watcher mut dyn FnMut(&'static str);

/// The services that need an open database.
#[derive(Clone, Copy)]
pub struct Services<'app> {
    pub core: &'app Core,
    pub health: &'app Health,
    pub payments: &'app Payments,
    pub network_log: &'app NetworkLog,
}

/// The installation under examination.
struct Installation<'app> {
    config: &'app Config,
    clock: Clock,
    /// The services, or the reason why the data directory could not be opened.
    services: Result<Services<'app>, &'app Error>,
}

impl<'app> Installation<'app> {
    fn services(&self) -> Option<Services<'app>> {
        self.services.as_ref().ok().copied()
    }
}

/// The checks of a group.
type CheckGroup = fn(&Installation<'_>) -> Result<Vec<CheckFact>>;

/// Runs all checks, or those that need no database if it could not be opened. Calls the providers and reads the whole
/// database, so it blocks for long.
pub fn examine<'app>(
    config: &'app Config,
    services: Result<Services<'app>, &'app Error>,
    progress: DoctorProgress<'_>,
) -> Vec<Check> {
    let installation = Installation { config, clock: Clock::default(), services };
    let mut facts = Vec::new();
    let groups: [(&'static str, CheckGroup); GROUPS] = [
        ("configuration", |installation| Ok(service::configuration(installation.config))),
        ("permissions", |installation| Ok(files::permissions(installation.config))),
        ("keys", database::keys),
        ("tls", |installation| Ok(certificate::certificate(installation))),
        ("listeners", |installation| Ok(listeners::listeners(installation))),
        ("disk", files::disk),
        ("clock", service::clock),
        ("database", database::database),
        ("ledger", database::ledger),
        ("history", database::history_sums),
        ("erasure", database::erasure),
        ("network log", service::network_log),
        ("providers", |installation| Ok(service::providers(installation))),
        ("proxy", service::proxy),
        ("backups", files::backups),
    ];
    for (group, run) in groups {
        progress(group);
        match run(&installation) {
            Ok(group) => facts.extend(group),
            Err(error) => {
                facts.push(CheckFact::ExaminationFailed { group: group.to_owned(), error: error.to_string() });
            }
        }
    }
    facts.into_iter().map(Check::from).collect()
}

/// Runs all checks of a running server and stores the report. Blocks for long, as [`examine`].
///
/// # Errors
/// Storage errors.
pub fn examine_and_store(services: Services<'_>, progress: &mut dyn FnMut(u64, u64)) -> Result<DoctorReport> {
    let core = services.core;
    let (mut done, total) = (0, GROUPS as u64);
    let checks = examine(&core.config, Ok(services), &mut |_| {
        progress(done, total);
        done += 1;
    });
    let report = DoctorReport::new(core.clock.now(), checks);
    let stored = report.clone();
    core.store.write(move |tx| settings::put_json_in(tx, LAST_REPORT, &stored)).wait()?;
    Ok(report)
}

/// Returns the last stored report.
pub fn last_report_in(tx: &Read<'_>) -> Result<Option<DoctorReport>> {
    settings::find_json_in(tx, LAST_REPORT)
}

/// Returns the report that `yarrow doctor --bundle` writes, without secrets or user data.
///
/// # Errors
/// Storage errors.
pub fn bundle(services: Option<Services<'_>>, checks: &[Check], settings: &[ResolvedSetting]) -> Result<Value> {
    let condition = services.map(health_summary).transpose()?;
    // Review accounts pair an address, which is personal data, with a code.
    let shown = settings.iter().map(|setting| {
        let value = if setting.name == "auth.review_accounts" && setting.value != "{}" {
            "****"
        } else {
            setting.value.as_str()
        };
        json!({ "name": setting.name, "value": value, "origin": setting.origin.to_string() })
    });
    Ok(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "schemaVersion": SCHEMA_VERSION,
        "at": Clock::default().now(),
        "cores": std::thread::available_parallelism().map_or(0, std::num::NonZero::get),
        "checks": checks,
        "settings": shown.collect::<Vec<_>>(),
        "condition": condition,
    }))
}

fn health_summary(services: Services<'_>) -> Result<Value> {
    let health = HealthSnapshot::collect(services.health)?;
    Ok(json!({
        "databaseBytes": health.database_bytes, "diskFree": health.disk_free, "diskTotal": health.disk_total,
        "ledger": health.ledger_state().name(), "accountsSuspended": health.accounts_suspended,
        "backups": health.backup_state(&services.core.config).name(), "paymentsInReview": health.payments_in_review,
        "codesSent": health.codes_sent,
    }))
}
