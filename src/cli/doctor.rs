//! `yarrow doctor`: checks the installation.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use clap::Args;
use indicatif::ProgressBar;
use serde_json::json;

use super::{Common, cli_authority, record_audit, row, table};
use crate::{
    app::{App, OpenMode},
    domain::{
        money::ledger,
        operations::{
            audit,
            doctor::{self, Check, Services, Verdict},
            preflight, server_key,
        },
    },
    error::{Error, Result},
    store::files::{create_private, file_error},
    types::pluralize,
};

/// Check the installation; exit 5 if a check fails
///
/// Checks configuration, permissions, keys, certificate, listeners, disk, clock, database, ledger, providers, proxy and
/// backups. The server may be running.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Write a support file with findings, sizes and settings (secrets masked, no user data)
    #[arg(long, value_name = "FILE")]
    bundle: Option<PathBuf>,
    /// Accept the current server key for this database; data under the former key is lost
    #[arg(long)]
    accept_key: bool,
}

pub fn run(common: &Common, args: &DoctorArgs) -> Result<()> {
    let loaded = common.load_for_service(preflight::driver_faults)?;
    common.start_logging(&loaded.config.log)?;
    let opened = App::open(loaded.config.clone(), OpenMode::Attach, &common.announce());
    if args.accept_key {
        accept_key(&opened)?;
    }
    let bar = if common.json { ProgressBar::hidden() } else { ProgressBar::new_spinner() };
    let services = opened.as_ref().map(services_of);
    let checks = doctor::examine(&loaded.config, services, &mut |group| bar.set_message(group));
    bar.finish_and_clear();
    if let Some(path) = &args.bundle {
        let bundle = doctor::bundle(services.ok(), &checks, &loaded.shown)?;
        write_private(path, &format!("{bundle:#}\n"))?;
    }
    let count = |verdict| checks.iter().filter(|check| check.verdict == verdict).count();
    let (passed, warned, failed) = (count(Verdict::Pass), count(Verdict::Warn), count(Verdict::Fail));
    let json = json!({ "checks": checks, "passed": passed, "warned": warned, "failed": failed });
    common.output(&json, || {
        let findings = table(["group", "check", "result", "detail"], checks.iter().map(row));
        format!("{findings}\n{passed} passed, {}, {failed} failed", pluralize(warned, "warning", "warnings"))
    })?;
    super::check(failed == 0, format!("{} failed.", pluralize(failed, "check", "checks")))
}

fn services_of(app: &App) -> Services<'_> {
    Services { core: &app.core, health: &app.health, payments: &app.payments, network_log: &app.network_log }
}

fn accept_key(opened: &Result<App>) -> Result<()> {
    let app = opened.as_ref().map_err(Error::without_source)?;
    let is_new = server_key::accept(&app.core)?;
    // Rows are sealed with the key. Sealed again even if the key was accepted before, because that may have been cut off.
    ledger::seals::seal_all(&app.core)?;
    audit::seal_all(&app.core)?;
    if is_new {
        record_audit(app, "doctor --accept-key", None, cli_authority(None))?;
    }
    Ok(())
}

fn row(check: &Check) -> [String; 4] {
    let verdict = match check.verdict {
        Verdict::Pass => "pass",
        Verdict::Warn => "WARN",
        Verdict::Fail => "FAIL",
    };
    row![check.group, check.name, verdict, check.detail]
}

/// Writes a new file that only its owner can read.
fn write_private(path: &Path, text: &str) -> Result<()> {
    create_private(path)?.write_all(text.as_bytes()).map_err(|error| file_error(path, error))
}
