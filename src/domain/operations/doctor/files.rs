//! Checks of file permissions, free space and backups.

use std::{
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use super::{Check, Installation, Services, Verdict};
use crate::{
    config::Config,
    domain::operations::{
        backups::{self, Backup},
        health::{self, BackupState, HealthSnapshot},
    },
    error::Result,
    keys::KEYS,
    store::{
        files::{DATABASE, NETWORK_LOG, database_size, disk_space},
        lock::LOCK,
    },
    types::pluralize,
};

const BACKUPS: &str = "backups";

pub(super) fn permissions(config: &Config) -> Vec<Check> {
    const GROUP: &str = "permissions";
    let directory = config.data_dir();
    let databases = [DATABASE, NETWORK_LOG].map(|name| ["", "-wal", "-shm"].map(|suffix| format!("{name}{suffix}")));
    let others = [LOCK, "acme"].into_iter().chain(KEYS).map(ToOwned::to_owned);
    let names = databases.into_iter().flatten().chain(others);
    let files = names.map(|name| directory.join(name)).filter(|path| path.exists());
    let mut checks: Vec<_> =
        [directory.to_owned()].into_iter().chain(files).map(|path| privacy(GROUP, &path)).collect();
    checks.push(is_writable(GROUP, "data directory", directory));
    let backups = config.backup_directory();
    if backups.is_dir() {
        checks.push(is_writable(GROUP, "backup directory", &backups));
        checks.extend(open_files(&backups).map(|path| privacy(GROUP, &path)));
    }
    checks
}

/// Returns the files of the backup directory that others may access: backups contain the keys, and locks can be held by
/// everybody who can open them.
fn open_files(backups: &Path) -> impl Iterator<Item = PathBuf> {
    let paths = std::fs::read_dir(backups).into_iter().flatten().flatten().map(|entry| entry.path());
    paths.filter(|path| {
        std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o077 != 0)
    })
}

fn is_writable(group: &'static str, name: &str, directory: &Path) -> Check {
    match tempfile::Builder::new().prefix(".doctor-").tempfile_in(directory) {
        Ok(_) => Check::new(group, name, Verdict::Pass, "can be written to"),
        Err(error) => Check::new(group, name, Verdict::Fail, format!("cannot be written to: {error}")),
    }
}

fn privacy(group: &'static str, path: &Path) -> Check {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let (of_others, of_group) = match std::fs::metadata(path) {
        Err(error) => return Check::new(group, name, Verdict::Fail, error.to_string()),
        Ok(metadata) => {
            let mode = metadata.permissions().mode();
            (mode & 0o007, mode & 0o070)
        }
    };
    match (of_others, of_group) {
        (0, 0) => Check::new(group, name, Verdict::Pass, "accessible by its owner only"),
        (0, _) => Check::new(group, name, Verdict::Warn, "accessible by its group: chmod g-rwx"),
        _ => Check::new(group, name, Verdict::Fail, "accessible by everybody: chmod go-rwx"),
    }
}

pub(super) fn disk(installation: &Installation<'_>) -> Result<Vec<Check>> {
    const GROUP: &str = "disk";
    let config = installation.config;
    let data = config.data_dir();
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
        let database = match installation.services() {
            Some(services) => services.core.store.size()?,
            None => database_size(&data.join(DATABASE)),
        };
        let needed = database + config.backup.free_space.0;
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
    let mut checks: Vec<_> = installation.services().map(age).transpose()?.into_iter().collect();
    let listed = backups::list(config, installation.clock.now())?;
    if let Some(newest) = listed.first() {
        checks.push(newest_backup(installation, newest, listed.len()));
        checks.push(size_limit(config, newest));
        checks.push(location(config));
    } else if let Some(name) = last_recorded(installation)? {
        let detail = format!("{name} is missing in {}, and there is no other", config.backup_directory().display());
        checks.push(Check::new(BACKUPS, "newest", Verdict::Fail, detail));
    }
    Ok(checks)
}

fn newest_backup(installation: &Installation<'_>, newest: &Backup, count: usize) -> Check {
    let check = |verdict, detail: String| Check::new(BACKUPS, "newest", verdict, detail);
    match backups::findings(&newest.path, installation.clock.now()) {
        Ok(Some(findings)) if findings.is_sound() => {
            check(Verdict::Pass, format!("{}, sound; {count} in all", newest.name))
        }
        Ok(Some(_)) => check(Verdict::Fail, format!("{} is inconsistent", newest.name)),
        _ => check(Verdict::Fail, format!("{} cannot be read", newest.name)),
    }
}

/// Warns if the limit of the total size deletes backups that the other rules would keep.
fn size_limit(config: &Config, newest: &Backup) -> Check {
    let rules = &config.backup;
    let (wanted, fitting) =
        (u64::from(rules.keep_hourly) + u64::from(rules.keep_daily), rules.keep_size.0 / newest.bytes.max(1));
    let holds =
        |count| format!("backup.keep_size holds {} of the size of the newest", pluralize(count, "backup", "backups"));
    let detail = format!(
        "{}, and the rules would keep {wanted}: raise it, \
         or lower backup.keep_hourly or backup.keep_daily",
        holds(fitting)
    );
    Check::holds(BACKUPS, "size limit", (fitting >= wanted, holds(wanted)), (Verdict::Warn, detail))
}

/// Returns the name of the last backup that the database recorded.
fn last_recorded(installation: &Installation<'_>) -> Result<Option<String>> {
    let Some(services) = installation.services() else { return Ok(None) };
    Ok(services.core.store.read(backups::status_in)?.last.map(|last| last.name))
}

fn age(services: Services<'_>) -> Result<Check> {
    let health = HealthSnapshot::collect(services.health)?;
    let last = health.backups.last.as_ref().map_or_else(|| "never".to_owned(), |last| last.at().to_string());
    let (verdict, detail) = match health.backup_state(&services.core.config) {
        BackupState::Current => (Verdict::Pass, format!("last: {last}")),
        BackupState::Off => {
            (Verdict::Warn, format!("backup.every is 0 s: there are no scheduled backups; last: {last}"))
        }
        BackupState::None => (Verdict::Warn, "none yet: the running server will make one".to_owned()),
        BackupState::Old => (Verdict::Fail, format!("last: {last}; is the server running?")),
        BackupState::Failed => {
            let cause = health.backups.failure.as_ref().map_or("", |failure| failure.detail.as_str());
            (Verdict::Fail, format!("the last one failed: {cause} Last successful one: {last}"))
        }
    };
    Ok(Check::new(BACKUPS, "age", verdict, detail))
}

fn location(config: &Config) -> Check {
    let device = |path: &Path| std::fs::metadata(path).ok().map(|metadata| metadata.dev());
    let is_apart = device(config.data_dir()) != device(&config.backup_directory());
    Check::holds(
        BACKUPS,
        "place",
        (is_apart || config.backup.s3_endpoint.is_some(), "not only on the disk of the database"),
        (Verdict::Warn, "on the same disk as the database: set backup.directory or backup.s3_endpoint"),
    )
}
