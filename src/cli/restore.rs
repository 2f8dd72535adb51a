//! `yarrow restore`: replaces the database with a backup.

use std::path::Path;

use clap::Args;
use serde_json::json;

use super::{Common, announce, backup::show_progress, cli_authority, confirm, record_audit, start_logging};
use yarrow::{
    app::{App, OpenMode},
    clock::Clock,
    config::Config,
    domain::operations::{
        backups::{self, Findings},
        data_dir::ensure_initialized,
    },
    error::{Code, Result},
    types::milliseconds,
};

/// Replace the database with a backup; the server must be stopped
///
/// The current database is moved to `before-restore-…` in the data directory. Exits with 6 while a server is running.
/// Example: yarrow restore yarrow-20260102T030405.678Z-scheduled.db
#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// File, or backup name from `yarrow backup list`
    file: String,
    /// Skip the confirmation
    #[arg(long)]
    yes: bool,
    /// Restore only missing key files, and keep the database
    #[arg(long)]
    keys: bool,
}

pub fn run(common: &Common, args: &RestoreArgs) -> Result<()> {
    let config = common.load()?.config;
    start_logging(&config.log)?;
    let path = backups::find(&config, Some(&args.file), Clock::default().now())?;
    if args.keys {
        return restore_keys(common, config, &path);
    }
    let directory = config.data_dir().display().to_string();
    confirm(args.yes, &format!("Replace the database in {directory} with {}?", path.display()))?;
    let restored = backups::restore(&config, &path, Clock::default().now(), &mut show_progress(common))?;
    let is_sound = backups::findings(&path, Clock::default().now())?.as_ref().map(Findings::is_sound);
    // Opens the database to prove that it works, and to migrate an older one.
    let app = App::open(config, OpenMode::Restore, &announce())?;
    backups::adopt_newest(&app.core)?;
    record_audit(&app, "restore", None, cli_authority(Some(path.display().to_string())))?;
    let json = json!({
        "restored": path, "into": directory, "aside": restored.aside, "tookMs": milliseconds(restored.took),
        "sound": is_sound,
    });
    common.output(&json, || {
        let aside = restored.aside.as_ref().map(|aside| format!("\nthe previous database is in {}", aside.display()));
        let warning = (is_sound == Some(false)).then_some(
            "\nwarning: the backup had inconsistent data; run `yarrow ledger verify` and `yarrow sync users`",
        );
        let (aside, warning) = (aside.unwrap_or_default(), warning.unwrap_or_default());
        format!("restored {} into {directory} in {:.1?}{aside}{warning}", path.display(), restored.took)
    })
}

/// Restores missing keys. Overwrites nothing, so needs no confirmation.
fn restore_keys(common: &Common, config: Config, path: &Path) -> Result<()> {
    ensure_initialized(&config)?;
    let restored = backups::restore_keys(&config, path, Clock::default().now())?;
    let directory = config.data_dir().display().to_string();
    match App::open(config, OpenMode::Attach, &announce()) {
        Ok(app) => record_audit(&app, "restore --keys", None, cli_authority(Some(path.display().to_string())))?,
        // The next start of the server migrates an older database, not this command.
        Err(error) if error.code == Code::DataDirectoryUnusable => {
            tracing::warn!(%error, "restored the keys, but could not write the audit event");
        }
        Err(error) => return Err(error),
    }
    let json = json!({ "restored": path, "into": directory, "keys": restored });
    common.output(&json, || format!("restored {} from {} into {directory}", restored.join(", "), path.display()))
}
