//! What stands on the disk: who may read it, whether there is room, and whether there are backups.

use std::{
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
};

use super::{Check, Installation, Verdict};
use crate::{
    app::App,
    config::Config,
    domain::operations::{
        backups,
        health::{self, BackupState},
    },
    error::Result,
    keys::KEYS,
    store::files::{DATABASE, database_size, disk_space},
};

const BACKUPS: &str = "backups";

pub(super) fn permissions(config: &Config) -> Vec<Check> {
    const GROUP: &str = "permissions";
    let directory = &config.installation.data_dir.0;
    let files = [DATABASE].into_iter().chain(KEYS).map(|name| directory.join(name)).filter(|path| path.exists());
    let mut checks: Vec<_> =
        [directory.clone()].into_iter().chain(files).map(|path| privacy_of(GROUP, &path)).collect();
    checks.push(written_to(GROUP, "data directory", directory));
    let backups = config.backup_directory();
    if backups.is_dir() {
        checks.push(written_to(GROUP, "backup directory", &backups));
    }
    checks
}

fn written_to(group: &'static str, name: &str, directory: &Path) -> Check {
    match tempfile::Builder::new().prefix(".doctor-").tempfile_in(directory) {
        Ok(_) => Check::new(group, name, Verdict::Pass, "can be written to"),
        Err(error) => Check::new(group, name, Verdict::Fail, format!("cannot be written to: {error}")),
    }
}

fn privacy_of(group: &'static str, path: &Path) -> Check {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let (others, neighbours) = match std::fs::metadata(path) {
        Err(error) => return Check::new(group, name, Verdict::Fail, error.to_string()),
        Ok(metadata) => {
            let mode = metadata.permissions().mode();
            (mode & 0o007, mode & 0o070)
        }
    };
    match (others, neighbours) {
        (0, 0) => Check::new(group, name, Verdict::Pass, "for its owner only"),
        (0, _) => Check::new(group, name, Verdict::Warn, "its group may enter: chmod g-rwx"),
        _ => Check::new(group, name, Verdict::Fail, "everybody may enter: chmod go-rwx"),
    }
}

pub(super) fn disk(config: &Config) -> Result<Vec<Check>> {
    const GROUP: &str = "disk";
    let data = &config.installation.data_dir.0;
    let (free, total) = disk_space(data)?;
    let percent = health::free_percent(free, total);
    let detail = format!("{percent} % free, {} MiB", free >> 20);
    let verdict = match () {
        () if free < config.backup.free_space.0 => Verdict::Fail,
        () if percent < u64::from(config.alerts.disk_free_percent) => Verdict::Warn,
        () => Verdict::Pass,
    };
    let mut checks = vec![Check::new(GROUP, "data directory", verdict, detail)];
    let directory = config.backup_directory();
    if directory.is_dir() {
        let needed = database_size(&data.join(DATABASE)) + config.backup.free_space.0;
        let (free, _) = disk_space(&directory)?;
        checks.push(Check::holds(
            GROUP,
            "backup directory",
            (free >= needed, format!("{} MiB free", free >> 20)),
            (Verdict::Fail, format!("{} MiB free; the next backup needs {}", free >> 20, needed >> 20)),
        ));
    }
    Ok(checks)
}

pub(super) fn backups(installation: &Installation<'_>) -> Result<Vec<Check>> {
    let config = installation.config;
    let mut checks: Vec<_> = installation.app.map(age).transpose()?.into_iter().collect();
    let listed = backups::list(config)?;
    if let Some(newest) = listed.first() {
        let count = listed.len();
        let check = |verdict, detail: String| Check::new(BACKUPS, "newest", verdict, detail);
        checks.push(match backups::findings(&newest.path, installation.clock.now()) {
            Ok(Some(findings)) if findings.is_sound() => {
                check(Verdict::Pass, format!("{}, found sound; {count} are kept", newest.name))
            }
            Ok(Some(_)) => check(Verdict::Fail, format!("{} was found inconsistent", newest.name)),
            _ => check(Verdict::Fail, format!("{} cannot be read", newest.name)),
        });
        checks.push(place(config));
    } else if let Some(remembered) = remembered(installation)? {
        let detail = format!("{remembered} is not in {}, nor any other", config.backup_directory().display());
        checks.push(Check::new(BACKUPS, "newest", Verdict::Fail, detail));
    }
    Ok(checks)
}

/// The name of the last backup that was made, as the database remembers it.
fn remembered(installation: &Installation<'_>) -> Result<Option<String>> {
    let Some(app) = installation.app else { return Ok(None) };
    Ok(app.store.read(backups::standing_in)?.last.map(|last| last.name))
}

/// How old the last backup is, as the database remembers it.
fn age(app: &App) -> Result<Check> {
    let condition = health::observe(app)?;
    let last = condition.backups.last.as_ref().map_or_else(|| "never".to_owned(), |last| last.at().to_string());
    let (verdict, detail) = match condition.backup_state(app) {
        BackupState::Current => (Verdict::Pass, format!("last: {last}")),
        BackupState::Off => {
            (Verdict::Warn, format!("backup.every is 0 s: none is made unless asked for; last: {last}"))
        }
        BackupState::None => (Verdict::Warn, "none was made yet: a running server makes one".to_owned()),
        BackupState::Old => (Verdict::Fail, format!("last: {last}; is the server running?")),
        BackupState::Failed => {
            let why = condition.backups.failure.as_ref().map_or("", |failure| failure.detail.as_str());
            (Verdict::Fail, format!("the last one failed: {why} Last good one: {last}"))
        }
    };
    Ok(Check::new(BACKUPS, "age", verdict, detail))
}

fn place(config: &Config) -> Check {
    let device = |path: &Path| std::fs::metadata(path).ok().map(|metadata| metadata.dev());
    let is_apart = device(&config.installation.data_dir.0) != device(&config.backup_directory());
    Check::holds(
        BACKUPS,
        "place",
        (is_apart || config.backup.s3_endpoint.is_some(), "not only on the disk of the database"),
        (Verdict::Warn, "on the same disk as the database: set backup.directory or backup.s3_endpoint"),
    )
}
