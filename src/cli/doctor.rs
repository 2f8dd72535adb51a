//! `yarrow doctor`: what is wrong with this installation.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use clap::Args;
use indicatif::ProgressBar;
use serde_json::json;

use super::{Common, announce, authority, record, row, start_logging, table};
use yarrow::{
    app::{App, OpenMode},
    domain::operations::{
        doctor::{self, Check, Verdict},
        preflight, server_key,
    },
    error::{Error, Result},
    store::files::{create_private, file_error},
    types::counted,
};

/// Examine the installation: configuration, permissions, keys, certificate, listeners, disk, clock, database, ledger,
/// providers, proxy, backups. Exit 5 if something fails. The server may be running.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Also write a file for whoever helps: findings, settings with secrets masked, sizes. No user's data.
    #[arg(long, value_name = "FILE")]
    bundle: Option<PathBuf>,
    /// Take the server key that is there now for the one of this database, before examining. What was kept under the
    /// one before is given up.
    #[arg(long)]
    accept_key: bool,
}

pub fn run(common: &Common, args: &DoctorArgs) -> Result<()> {
    let loaded = common.load_for_service(preflight::driver_faults)?;
    start_logging(&loaded.config.log)?;
    let opened = App::open(loaded.config.clone(), OpenMode::Attach, &announce());
    if args.accept_key {
        accept_key(&opened)?;
    }
    let bar = if common.json { ProgressBar::hidden() } else { ProgressBar::new_spinner() };
    let checks = doctor::examine(&loaded.config, &opened, &mut |group| bar.set_message(group));
    bar.finish_and_clear();
    if let Some(path) = &args.bundle {
        let bundle = doctor::bundle(&opened, &checks, &loaded.shown)?;
        write_private(path, &format!("{bundle:#}\n"))?;
    }
    let count = |verdict| checks.iter().filter(|check| check.verdict == verdict).count();
    let (passed, warned, failed) = (count(Verdict::Pass), count(Verdict::Warn), count(Verdict::Fail));
    let json = json!({ "checks": checks, "passed": passed, "warned": warned, "failed": failed });
    common.answer(&json, || {
        let listed = table(["group", "check", "", "found"], checks.iter().map(row));
        format!("{listed}\n{passed} passed, {}, {failed} failed", counted(warned, "warning", "warnings"))
    })?;
    super::check(failed == 0, format!("Checks that failed: {failed}."))
}

fn accept_key(opened: &Result<App>) -> Result<()> {
    let app = opened.as_ref().map_err(Error::again)?;
    if server_key::accept(app)? {
        record(app, "doctor --accept-key", None, authority(None))?;
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

/// Writes a file that only its owner may read, and never over another.
fn write_private(path: &Path, text: &str) -> Result<()> {
    create_private(path)?.write_all(text.as_bytes()).map_err(|error| file_error(path, error))
}
