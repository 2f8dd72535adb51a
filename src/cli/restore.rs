//! `yarrow restore`: a backup in the place of the database.

use std::path::Path;

use clap::Args;
use serde_json::json;

use super::{Common, announce, authority, backup::watch, confirm, record, start_logging};
use yarrow::{
    app::{App, OpenMode},
    clock::Clock,
    config::Config,
    domain::operations::backups::{self, Findings},
    error::{Code, Result},
    types::milliseconds,
};

/// Put a backup in the place of the data directory's database. The server must not be running (exit 6). What was there
/// is moved aside, into a directory beside it.
#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// File, or name of a backup that `yarrow backup list` shows.
    file: String,
    /// Do not ask.
    #[arg(long)]
    yes: bool,
    /// Only put the keys back that are missing in the data directory, and leave the database as it is.
    #[arg(long)]
    keys: bool,
}

pub fn run(common: &Common, args: &RestoreArgs) -> Result<()> {
    let config = common.load()?.config;
    start_logging(&config.log)?;
    let path = backups::find(&config, Some(&args.file))?;
    if args.keys {
        return restore_keys(common, config, &path);
    }
    let directory = config.installation.data_dir.0.display().to_string();
    confirm(args.yes, &format!("Put {} in the place of the database in {directory}?", path.display()))?;
    let restored = backups::restore(&config, &path, Clock::default().now(), &mut watch(common))?;
    let is_sound = backups::findings(&path, Clock::default().now())?.as_ref().map(Findings::is_sound);
    // Opening it is the proof, and migrates it if it is of an older version.
    let app = App::open(config, OpenMode::Restore, &announce())?;
    record(&app, "restore", None, authority(Some(path.display().to_string())))?;
    let json = json!({
        "restored": path, "into": directory, "aside": restored.aside, "tookMs": milliseconds(restored.took),
        "sound": is_sound,
    });
    common.answer(&json, || {
        let aside = restored.aside.as_ref().map(|aside| format!("\nwhat was there is in {}", aside.display()));
        let warning = (is_sound == Some(false)).then_some(
            "\nits contents were not consistent when it was made: see `yarrow ledger verify` and `yarrow sync users`",
        );
        let (aside, warning) = (aside.unwrap_or_default(), warning.unwrap_or_default());
        format!("restored {} into {directory} in {:.1?}{aside}{warning}", path.display(), restored.took)
    })
}

/// Nothing is asked: it puts something where there is nothing.
fn restore_keys(common: &Common, config: Config, path: &Path) -> Result<()> {
    let restored = backups::restore_keys(&config, path, Clock::default().now())?;
    let directory = config.installation.data_dir.0.display().to_string();
    match App::open(config, OpenMode::Attach, &announce()) {
        Ok(app) => record(&app, "restore --keys", None, authority(Some(path.display().to_string())))?,
        // The database stays as it is, and a server that starts brings it up to date.
        Err(error) if error.code == Code::DataDirectoryUnusable => {
            tracing::warn!(%error, "the keys are in their place, and the audit could not be told");
        }
        Err(error) => return Err(error),
    }
    let json = json!({ "restored": path, "into": directory, "keys": restored });
    common.answer(&json, || format!("restored {} from {} into {directory}", restored.join(", "), path.display()))
}
