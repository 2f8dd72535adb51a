//! What stands on the disk: who may read it, whether there is room, and whether there are backups.

use std::{
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
};

use super::{Check, Verdict};
use crate::{
    app::App,
    error::Result,
    ops::{
        backups,
        condition::{self, BackupState},
    },
    store::{
        backup::disk_space,
        restore::{DATABASE, KEYS},
    },
};

pub(super) fn permissions(app: &App) -> Vec<Check> {
    const GROUP: &str = "permissions";
    let directory = &app.config.installation.data_dir.0;
    let files = [DATABASE].into_iter().chain(KEYS).map(|name| directory.join(name)).filter(|path| path.exists());
    let mut checks: Vec<_> =
        [directory.clone()].into_iter().chain(files).map(|path| privacy_of(GROUP, &path)).collect();
    let written = tempfile::Builder::new().prefix(".doctor-").tempfile_in(directory);
    checks.push(match written {
        Ok(_) => Check::new(GROUP, "data directory", Verdict::Pass, "can be written to"),
        Err(error) => Check::new(GROUP, "data directory", Verdict::Fail, format!("cannot be written to: {error}")),
    });
    checks
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

pub(super) fn disk(app: &App) -> Result<Vec<Check>> {
    const GROUP: &str = "disk";
    let condition = condition::observe(app)?;
    let percent = condition.disk_free_percent();
    let detail = format!("{percent} % free, {} MiB", condition.disk_free >> 20);
    let verdict = match () {
        () if condition.disk_free < app.config.backup.free_space.0 => Verdict::Fail,
        () if condition.is_disk_low(app) => Verdict::Warn,
        () => Verdict::Pass,
    };
    let mut checks = vec![Check::new(GROUP, "data directory", verdict, detail)];
    let directory = app.config.backup_directory();
    if directory.is_dir() {
        let needed = condition.database_bytes + app.config.backup.free_space.0;
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

pub(super) fn backups(app: &App) -> Result<Vec<Check>> {
    const GROUP: &str = "backups";
    let condition = condition::observe(app)?;
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
    let mut checks = vec![Check::new(GROUP, "age", verdict, detail)];
    let listed = backups::list(&app.config)?;
    if let Some(newest) = listed.first() {
        let count = listed.len();
        checks.push(match backups::findings(&newest.path, condition.at) {
            Ok(Some(findings)) if findings.is_sound() => {
                Check::new(GROUP, "newest", Verdict::Pass, format!("{}, found sound; {count} are kept", newest.name))
            }
            Ok(Some(_)) => {
                Check::new(GROUP, "newest", Verdict::Fail, format!("{} was found inconsistent", newest.name))
            }
            _ => Check::new(GROUP, "newest", Verdict::Fail, format!("{} cannot be read", newest.name)),
        });
        checks.push(place(app, GROUP));
    }
    Ok(checks)
}

fn place(app: &App, group: &'static str) -> Check {
    let device = |path: &Path| std::fs::metadata(path).ok().map(|metadata| metadata.dev());
    let is_apart = device(&app.config.installation.data_dir.0) != device(&app.config.backup_directory());
    Check::holds(
        group,
        "place",
        (is_apart || app.config.backup.s3_endpoint.is_some(), "not only on the disk of the database"),
        (Verdict::Warn, "on the same disk as the database: set backup.directory or backup.s3_endpoint"),
    )
}
