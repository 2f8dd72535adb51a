//! `yarrow restore`: replaces the database with a backup.

use std::path::Path;

use clap::Args;
use secrecy::SecretString;
use serde_json::json;

use super::{
    Common,
    backup::{describe_latest, latest_to_json, parse_time, show_progress},
    check, cli_authority,
    database::event,
    record_audit,
    system_user::system_user,
};
use crate::{
    app::{App, OpenMode},
    clock::Clock,
    config::Config,
    domain::operations::{
        backups::{self, Findings, follow, origin::Origin},
        data_dir::ensure_initialized,
    },
    error::{Code, Result},
    store::without_password,
    types::{Timestamp, milliseconds, pluralize},
};

/// Replace the database with a backup; the server must be stopped
///
/// The current database is moved to `before-restore-…` in the data directory. Exits with 6 while a server is running.
/// With `database.url` it fills an empty PostgreSQL database.
///
/// A backup must be sealed with the server key of this machine: configured, or in the data directory. On a machine without it,
/// and for backups of former versions, --unproven says that you know where the backup comes from.
///
/// It takes as long as the whole database needs, and nothing else changes meanwhile.
///
/// With --latest it downloads the newest state of the bucket, and the next start of the server takes over from the machine
/// that wrote it; exit 5 if a later object is missing or damaged.
///
/// Example: yarrow restore yarrow-20260102T030405.678Z-scheduled.db
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "independent flags of the command line")]
pub struct RestoreArgs {
    /// File, or backup name from `yarrow backup list`
    #[arg(required_unless_present = "latest")]
    file: Option<String>,
    /// Restore the newest state in the bucket
    #[arg(long, conflicts_with_all = ["file", "keys"])]
    latest: bool,
    /// With --latest: the newest state until this time, such as 2026-01-02T03:04:05Z
    #[arg(long, value_name = "TIME", requires = "latest", value_parser = parse_time)]
    at: Option<Timestamp>,
    /// Skip the confirmation
    #[arg(long)]
    yes: bool,
    /// Restore although no seal under the server key proves that the backup comes from this installation
    #[arg(long, conflicts_with = "keys")]
    unproven: bool,
    /// Restore only missing key files, and keep the database
    #[arg(long)]
    keys: bool,
}

pub fn run(common: &Common, args: &RestoreArgs) -> Result<()> {
    let config = common.load()?.config;
    common.start_logging(&config.log)?;
    let Some(file) = &args.file else {
        return if config.database.url.is_none() {
            restore_latest(common, config, args)
        } else {
            Err(Code::UnsupportedByDatabase.into())
        };
    };
    let path = backups::find(&config, Some(file), Clock::default().now())?;
    if args.keys {
        return restore_keys(common, config, &path);
    }
    let origin = Origin::for_restore(&config, args.unproven)?;
    if let Some(url) = &config.database.url {
        return restore_to_server(common, &config, (&path, &origin), url);
    }
    let directory = config.data_dir().display().to_string();
    common.confirm(args.yes, &format!("Replace the database in {directory} with {}?", path.display()))?;
    let restored = backups::restore(&config, (&path, &origin), Clock::default().now(), &mut show_progress(common))?;
    let is_sound = backups::findings(&path, Clock::default().now())?.as_ref().map(Findings::is_sound);
    // Opens the database to prove that it works, and to migrate an older one.
    let app = App::open(config, OpenMode::Restore, &common.announce())?;
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

/// Fills an empty database, so needs no confirmation.
fn restore_to_server(
    common: &Common,
    config: &Config,
    (path, origin): (&Path, &Origin),
    url: &SecretString,
) -> Result<()> {
    let event = event("restore", path.display().to_string());
    let restored = backups::restore_to_server(config, (path, origin), url, &event, &mut show_progress(common))?;
    let (into, rows) = (without_password(url), restored.tables.iter().map(|table| table.rows).sum::<u64>());
    let json = json!({
        "restored": path, "into": into, "rows": rows, "ledgerEntries": restored.ledger_entries,
        "tookMs": milliseconds(restored.took),
    });
    common.output(&json, || {
        let rows = pluralize(rows, "row", "rows");
        format!("restored {} into {into} in {:.1?}: {rows}, equal to the backup", path.display(), restored.took)
    })
}

fn restore_latest(common: &Common, config: Config, args: &RestoreArgs) -> Result<()> {
    let origin = Origin::for_restore(&config, args.unproven)?;
    let directory = config.data_dir().display().to_string();
    let until = args.at.map_or_else(String::new, |at| format!(" until {at}"));
    common.confirm(
        args.yes,
        &format!("Replace the database in {directory} with the newest state in the bucket{until}?"),
    )?;
    let restored = follow::restore_latest(
        &config,
        (args.at, &origin),
        &Clock::default(),
        system_user(),
        &mut show_progress(common),
    )?;
    let app = App::open(config, OpenMode::Restore, &common.announce())?;
    backups::adopt_newest(&app.core)?;
    record_audit(&app, "restore --latest", None, cli_authority(restored.test.state.object_name()))?;
    let mut json = latest_to_json(&restored.test);
    json["into"] = json!(directory);
    json["aside"] = json!(restored.aside);
    common.output(&json, || {
        let aside = restored.aside.as_ref().map(|aside| format!("\nthe previous database is in {}", aside.display()));
        let warning = (!restored.test.is_consistent()).then_some(
            "\nwarning: the state had inconsistent data; run `yarrow ledger verify` and `yarrow sync users`",
        );
        let (aside, warning) = (aside.unwrap_or_default(), warning.unwrap_or_default());
        format!("restored {} into {directory}{aside}{warning}", describe_latest(&restored.test))
    })?;
    let gap = restored.test.state.gap.as_deref().unwrap_or_default();
    check(gap.is_empty(), format!("The restored state is whole but not the newest: {gap}."))
}

/// Restores missing keys. Overwrites nothing, so needs no confirmation.
fn restore_keys(common: &Common, config: Config, path: &Path) -> Result<()> {
    ensure_initialized(&config)?;
    let restored = backups::restore_keys(&config, path, Clock::default().now())?;
    let directory = config.data_dir().display().to_string();
    match App::open(config, OpenMode::Attach, &common.announce()) {
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
