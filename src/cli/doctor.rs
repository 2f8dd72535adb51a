//! `yarrow doctor`: what is wrong with this installation.

use std::path::PathBuf;

use clap::Args;
use indicatif::ProgressBar;
use serde_json::json;

use super::{Common, table};
use crate::{
    app::{App, Role},
    error::{Code, Error, Result},
    ops::doctor::{self, Check, Verdict},
};

/// Examine the installation: configuration, permissions, disk, clock, database, ledger, providers, proxy, backups. Exit
/// 5 if something fails. The server may be running.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Also write a file for whoever helps: findings, settings with secrets masked, sizes. No user's data.
    #[arg(long, value_name = "FILE")]
    bundle: Option<PathBuf>,
}

pub fn run(common: &Common, args: &DoctorArgs) -> Result<()> {
    let loaded = common.load()?;
    super::start_logging(&loaded.config.log)?;
    let app = App::open(loaded.config, Role::Tool, &super::announce())?;
    let bar = if common.json { ProgressBar::hidden() } else { ProgressBar::new_spinner() };
    let checks = doctor::examine(&app, &mut |group| bar.set_message(group));
    bar.finish_and_clear();
    if let Some(path) = &args.bundle {
        let bundle = doctor::bundle(&app, &checks, &loaded.shown)?;
        write_private(path, &format!("{bundle:#}\n"))?;
    }
    let count = |verdict| checks.iter().filter(|check| check.verdict == verdict).count();
    let (passed, warned, failed) = (count(Verdict::Pass), count(Verdict::Warn), count(Verdict::Fail));
    let json = json!({ "checks": checks, "passed": passed, "warned": warned, "failed": failed });
    common.answer(&json, || {
        let listed = table(["group", "check", "", "found"], checks.iter().map(row));
        format!("{listed}\n{passed} passed, {warned} warnings, {failed} failed")
    })?;
    match failed {
        0 => Ok(()),
        failed => Err(Error::new(Code::ChecksFailed).detail(format!("Checks that failed: {failed}."))),
    }
}

fn row(check: &Check) -> [String; 4] {
    let verdict = match check.verdict {
        Verdict::Pass => "pass",
        Verdict::Warn => "WARN",
        Verdict::Fail => "FAIL",
    };
    [check.group.to_owned(), check.name.clone(), verdict.to_owned(), check.detail.clone()]
}

/// Writes a file that only its owner may read, and never over another.
fn write_private(path: &std::path::Path, text: &str) -> Result<()> {
    use std::io::Write as _;
    let failed = |error: std::io::Error| Error::new(Code::StorageFailed).detail(format!("{}: {error}", path.display()));
    let mut options = std::fs::OpenOptions::new();
    options.create_new(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).and_then(|mut file| file.write_all(text.as_bytes())).map_err(failed)
}
