//! Examining an installation: everything that an operator would have to look at one by one, with a verdict each.
//!
//! It looks and changes nothing. What needs no database is looked at even where that cannot be opened. A check that
//! fails says what is wrong in words that somebody can act on; one that only warns is about what is fine for a trial
//! and not for a service.

mod certificate;
mod files;
mod listeners;
mod service;

use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    app::App,
    clock::Clock,
    config::{Config, Shown},
    domain::{
        money::ledger,
        operations::{
            health,
            server_key::{self, Standing},
        },
    },
    error::{Error, Result},
    store::SCHEMA_VERSION,
    types::counted,
};

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Pass,
    Warn,
    Fail,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    pub group: &'static str,
    pub name: String,
    pub verdict: Verdict,
    /// What was found; no personal data and no secret.
    pub detail: String,
}

impl Check {
    fn new(group: &'static str, name: impl Into<String>, verdict: Verdict, detail: impl Into<String>) -> Self {
        Self { group, name: name.into(), verdict, detail: detail.into() }
    }

    /// Passes with one detail if it holds, and has the other verdict and detail if not.
    fn holds(
        group: &'static str,
        name: impl Into<String>,
        (holds, passed): (bool, impl Into<String>),
        (otherwise, detail): (Verdict, impl Into<String>),
    ) -> Self {
        if holds { Self::new(group, name, Verdict::Pass, passed) } else { Self::new(group, name, otherwise, detail) }
    }
}

/// Told which group is being looked at.
pub type Progress<'watcher> = &'watcher mut dyn FnMut(&'static str);

/// What is examined.
struct Installation<'opened> {
    config: &'opened Config,
    clock: Clock,
    /// The application, if its data directory could be opened.
    app: Option<&'opened App>,
    /// Why it could not.
    failure: Option<&'opened Error>,
}

/// Looks at one group of things.
type Look = fn(&Installation<'_>) -> Result<Vec<Check>>;

/// Looks at everything, or, where the data directory could not be opened, at what needs no database. Blocks on the
/// providers and for as long as it takes to read the whole database.
pub fn examine(config: &Config, opened: &Result<App>, progress: Progress<'_>) -> Vec<Check> {
    let installation =
        Installation { config, clock: Clock::default(), app: opened.as_ref().ok(), failure: opened.as_ref().err() };
    let mut checks = Vec::new();
    let groups: [(&'static str, Look); 12] = [
        ("configuration", |installation| Ok(service::configuration(installation.config))),
        ("permissions", |installation| Ok(files::permissions(installation.config))),
        ("keys", keys),
        ("tls", |installation| Ok(certificate::certificate(installation))),
        ("listeners", |installation| Ok(listeners::listeners(installation))),
        ("disk", |installation| files::disk(installation.config)),
        ("clock", service::clock),
        ("database", database),
        ("ledger", examine_ledger),
        ("providers", |installation| Ok(service::providers(installation))),
        ("proxy", service::proxy),
        ("backups", files::backups),
    ];
    for (group, look) in groups {
        progress(group);
        match look(&installation) {
            Ok(found) => checks.extend(found),
            // What cannot even be looked at is what somebody has to know first.
            Err(error) => checks.push(Check::new(group, "examination", Verdict::Fail, error.to_string())),
        }
    }
    checks
}

/// Everything that somebody who helps would ask for, without a secret and without anybody's data.
///
/// # Errors
/// Storage errors.
pub fn bundle(opened: &Result<App>, checks: &[Check], settings: &[Shown]) -> Result<Value> {
    let condition = opened.as_ref().ok().map(condition_of).transpose()?;
    // Addresses are personal, and each stands before a code.
    let shown = settings.iter().map(|setting| {
        let value = if setting.name == "auth.review_accounts" && setting.value != "{}" {
            "****"
        } else {
            setting.value.as_str()
        };
        json!({ "name": setting.name, "value": value, "origin": setting.origin })
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

fn condition_of(app: &App) -> Result<Value> {
    let condition = health::observe(app)?;
    Ok(json!({
        "databaseBytes": condition.database_bytes, "diskFree": condition.disk_free, "diskTotal": condition.disk_total,
        "ledger": condition.ledger_state().name(), "accountsSuspended": condition.accounts_suspended,
        "backups": condition.backup_state(app).name(), "paymentsInReview": condition.payments_in_review,
        "codesSent": condition.codes_sent,
    }))
}

fn database(installation: &Installation<'_>) -> Result<Vec<Check>> {
    const GROUP: &str = "database";
    const LARGE_LOG: u64 = 256 << 20;
    let opening = installation.failure.map(|error| Check::new(GROUP, "opening", Verdict::Fail, error.explained()));
    let Some(app) = installation.app else { return Ok(opening.into_iter().collect()) };
    let faults = app.store.faults()?;
    let log = app.store.writer_load().log_bytes >> 20;
    Ok(vec![
        if faults.structure.is_empty() {
            Check::new(GROUP, "structure", Verdict::Pass, "sound".to_owned())
        } else {
            let damage = health::damage(Some(&faults.structure.join("; ")));
            Check::new(GROUP, "structure", Verdict::Fail, format!("{damage} {}", health::way_out(app)))
        },
        Check::holds(
            GROUP,
            "references",
            (faults.dangling == 0, "none dangles"),
            (
                Verdict::Fail,
                counted(
                    faults.dangling,
                    "row refers to something that is not there",
                    "rows refer to something that is not there",
                ),
            ),
        ),
        schema(app)?,
        Check::holds(
            GROUP,
            "write-ahead log",
            (app.store.writer_load().log_bytes < LARGE_LOG, format!("{log} MiB")),
            (Verdict::Warn, format!("{log} MiB: something has been reading for long")),
        ),
    ])
}

/// Whether the schema is the one that this program makes: without a trigger or an index everything seems well.
fn schema(app: &App) -> Result<Check> {
    let faults = app.store.schema_faults()?;
    Ok(Check::holds(
        "database",
        "schema",
        (faults.is_empty(), format!("version {SCHEMA_VERSION}")),
        (Verdict::Fail, format!("{}: restore a backup, or make it again by hand", faults.join(", "))),
    ))
}

/// Whether the server key is the one under which the database was filled.
fn keys(installation: &Installation<'_>) -> Result<Vec<Check>> {
    let Some(app) = installation.app else { return Ok(Vec::new()) };
    let (verdict, detail) = match app.store.read(|tx| server_key::standing_in(tx, &app.keys))? {
        Standing::Own => (Verdict::Pass, "the one under which the database was filled"),
        Standing::Unknown => (Verdict::Pass, "noted by the next start"),
        Standing::Other => (
            Verdict::Fail,
            "not the one under which the database was filled: parked points, spent bonuses and second factors are not \
             recognised. Put that one back, or take this one for good: yarrow doctor --accept-key",
        ),
    };
    Ok(vec![Check::new("keys", "server key", verdict, detail)])
}

fn examine_ledger(installation: &Installation<'_>) -> Result<Vec<Check>> {
    const GROUP: &str = "ledger";
    let Some(app) = installation.app else { return Ok(Vec::new()) };
    let report = ledger::verification::inspect(&app.store, &mut |_, _| ())?;
    let condition = health::observe(app)?;
    let (entries, found, closed) = (report.entries, report.discrepancies_found, condition.accounts_suspended);
    let verified = condition.ledger.map_or_else(|| "not yet".to_owned(), |last| last.at().to_string());
    let review = condition.payments_in_review;
    Ok(vec![
        Check::holds(
            GROUP,
            "entries",
            (
                found == 0,
                format!("{} with every balance and the audit chain", counted(entries, "entry agrees", "entries agree")),
            ),
            (Verdict::Fail, format!("{}; see `yarrow ledger verify`", counted(found, "discrepancy", "discrepancies"))),
        ),
        Check::holds(
            GROUP,
            "accounts",
            (closed == 0, "none is closed"),
            (Verdict::Fail, format!("{closed} are closed; see `yarrow sync users`")),
        ),
        Check::new(GROUP, "daily verification", Verdict::Pass, format!("last: {verified}")),
        Check::holds(
            GROUP,
            "payments",
            (review == 0, "none needs a decision"),
            (Verdict::Warn, format!("{review} need a decision; see `yarrow payments list --state review`")),
        ),
    ])
}
