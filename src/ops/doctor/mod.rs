//! Examining an installation: everything that an operator would have to look at one by one, with a verdict each.
//!
//! It looks and changes nothing. A check that fails says what is wrong in words that somebody can act on; one that
//! only warns is about what is fine for a trial and not for a service.

mod files;
mod service;

use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    app::App,
    config::Shown,
    error::Result,
    ops::{condition, ledger},
    store::SCHEMA_VERSION,
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

/// Looks at one group of things.
type Look = fn(&App) -> Result<Vec<Check>>;

/// Looks at everything. Blocks on the providers and for as long as it takes to read the whole database.
pub fn examine(app: &App, progress: Progress<'_>) -> Vec<Check> {
    let mut checks = Vec::new();
    let groups: [(&'static str, Look); 9] = [
        ("configuration", |app| Ok(service::configuration(app))),
        ("permissions", |app| Ok(files::permissions(app))),
        ("disk", files::disk),
        ("clock", service::clock),
        ("database", database),
        ("ledger", examine_ledger),
        ("providers", |app| Ok(service::providers(app))),
        ("proxy", service::proxy),
        ("backups", files::backups),
    ];
    for (group, look) in groups {
        progress(group);
        match look(app) {
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
pub fn bundle(app: &App, checks: &[Check], settings: &[Shown]) -> Result<Value> {
    let condition = condition::observe(app)?;
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
        "at": condition.at,
        "cores": std::thread::available_parallelism().map_or(0, std::num::NonZero::get),
        "checks": checks,
        "settings": shown.collect::<Vec<_>>(),
        "condition": {
            "databaseBytes": condition.database_bytes, "diskFree": condition.disk_free, "diskTotal": condition.disk_total,
            "ledger": condition.ledger_state().name(), "accountsSuspended": condition.accounts_suspended,
            "backups": condition.backup_state(app).name(), "paymentsInReview": condition.payments_in_review,
            "codesSent": condition.codes_sent,
        },
    }))
}

fn database(app: &App) -> Result<Vec<Check>> {
    const GROUP: &str = "database";
    const LARGE_LOG: u64 = 256 << 20;
    let faults = app.store.faults()?;
    let log = app.store.pressure().log_bytes >> 20;
    Ok(vec![
        Check::holds(
            GROUP,
            "structure",
            (faults.structure.is_empty(), "sound"),
            (Verdict::Fail, format!("damaged: {}; restore a backup", faults.structure.join("; "))),
        ),
        Check::holds(
            GROUP,
            "references",
            (faults.dangling == 0, "none dangles"),
            (Verdict::Fail, format!("{} rows refer to something that is not there", faults.dangling)),
        ),
        Check::new(GROUP, "schema", Verdict::Pass, format!("version {SCHEMA_VERSION}")),
        Check::holds(
            GROUP,
            "write-ahead log",
            (app.store.pressure().log_bytes < LARGE_LOG, format!("{log} MiB")),
            (Verdict::Warn, format!("{log} MiB: something has been reading for long")),
        ),
    ])
}

fn examine_ledger(app: &App) -> Result<Vec<Check>> {
    const GROUP: &str = "ledger";
    let report = ledger::verification::inspect(&app.store, &mut |_, _| ())?;
    let condition = condition::observe(app)?;
    let (entries, found, closed) = (report.entries, report.discrepancies_found, condition.accounts_suspended);
    let verified = condition.ledger.map_or_else(|| "not yet".to_owned(), |last| last.at().to_string());
    let review = condition.payments_in_review;
    Ok(vec![
        Check::holds(
            GROUP,
            "entries",
            (found == 0, format!("{entries} entries agree with every balance and the audit chain")),
            (Verdict::Fail, format!("{found} discrepancies; see `yarrow ledger verify`")),
        ),
        Check::holds(
            GROUP,
            "accounts",
            (closed == 0, "none is closed"),
            (Verdict::Fail, format!("{closed} are closed; see `yarrow coins sync`")),
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
