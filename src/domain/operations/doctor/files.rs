//! Checks of file permissions, free space and backups.

use std::{
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use super::{CheckFact, Installation, Services};
use crate::{
    config::Config,
    domain::operations::{
        backups::{self, Backup, LastBackup},
        health::{self, BackupState, HealthSnapshot},
    },
    error::Result,
    keys::KEYS,
    store::{
        files::{DATABASE, NETWORK_LOG, database_size, disk_space},
        lock::LOCK,
    },
};

pub(super) fn permissions(config: &Config) -> Vec<CheckFact> {
    let directory = config.data_dir();
    let databases = [DATABASE, NETWORK_LOG].map(|name| ["", "-wal", "-shm"].map(|suffix| format!("{name}{suffix}")));
    let others = [LOCK, "acme"].into_iter().chain(KEYS).map(ToOwned::to_owned);
    let names = databases.into_iter().flatten().chain(others);
    let files = names.map(|name| directory.join(name)).filter(|path| path.exists());
    let mut checks: Vec<_> = [directory.to_owned()].into_iter().chain(files).map(|path| privacy(&path)).collect();
    checks.push(is_writable("data directory", directory));
    let backups = config.backup_directory();
    if backups.is_dir() {
        checks.push(is_writable("backup directory", &backups));
        checks.extend(open_files(&backups).map(|path| privacy(&path)));
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

fn is_writable(name: &str, path: &Path) -> CheckFact {
    let directory = name.to_owned();
    match tempfile::Builder::new().prefix(".doctor-").tempfile_in(path) {
        Ok(_) => CheckFact::DirectoryWritable { directory },
        Err(error) => CheckFact::DirectoryReadOnly { directory, error: error.to_string() },
    }
}

fn privacy(path: &Path) -> CheckFact {
    let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mode = match std::fs::metadata(path) {
        Err(error) => return CheckFact::FileUnreadable { file, error: error.to_string() },
        Ok(metadata) => metadata.permissions().mode(),
    };
    match (mode & 0o007, mode & 0o070) {
        (0, 0) => CheckFact::OwnerOnly { file },
        (0, _) => CheckFact::GroupAccess { file },
        _ => CheckFact::EverybodyAccess { file },
    }
}

pub(super) fn disk(installation: &Installation<'_>) -> Result<Vec<CheckFact>> {
    let config = installation.config;
    let data = config.data_dir();
    let (free, total) = disk_space(data)?;
    let (percent, mebibytes) = (health::free_percent(free, total), free >> 20);
    let mut checks = vec![match () {
        () if free < config.backup.free_space.0 => CheckFact::DiskFull { percent, mebibytes },
        () if percent < u64::from(config.alerts.disk_free_percent) => CheckFact::DiskLow { percent, mebibytes },
        () => CheckFact::DiskFree { percent, mebibytes },
    }];
    let directory = config.backup_directory();
    if directory.is_dir() {
        let database = match installation.services() {
            Some(services) => services.core.store.size()?,
            None => database_size(&data.join(DATABASE)),
        };
        let needed = database + config.backup.free_space.0;
        let (free, _) = disk_space(&directory)?;
        let mebibytes = free >> 20;
        checks.push(if free >= needed {
            CheckFact::BackupSpace { mebibytes }
        } else {
            CheckFact::NoBackupSpace { mebibytes, needed: needed >> 20 }
        });
    }
    Ok(checks)
}

pub(super) fn backups(installation: &Installation<'_>) -> Result<Vec<CheckFact>> {
    let config = installation.config;
    let mut checks: Vec<_> = installation.services().map(age).transpose()?.into_iter().collect();
    let listed = backups::list(config, installation.clock.now())?;
    if let Some(newest) = listed.first() {
        checks.extend([
            newest_backup(installation, newest, listed.len()),
            size_limit(config, newest),
            location(config),
        ]);
    } else if let Some(backup) = last_recorded(installation)? {
        let directory = config.backup_directory().display().to_string();
        checks.push(CheckFact::NewestMissing { backup, directory });
    }
    Ok(checks)
}

fn newest_backup(installation: &Installation<'_>, newest: &Backup, count: usize) -> CheckFact {
    let backup = newest.name.clone();
    match backups::findings(&newest.path, installation.clock.now()) {
        Ok(Some(findings)) if findings.is_sound() => CheckFact::NewestSound { backup, count },
        Ok(Some(_)) => CheckFact::NewestInconsistent { backup },
        _ => CheckFact::NewestUnreadable { backup },
    }
}

/// Warns if the limit of the total size deletes backups that the other rules would keep.
fn size_limit(config: &Config, newest: &Backup) -> CheckFact {
    let rules = &config.backup;
    let wanted = u64::from(rules.keep_hourly) + u64::from(rules.keep_daily);
    let fitting = rules.keep_size.0 / newest.bytes.max(1);
    if fitting >= wanted {
        CheckFact::LimitFits { backups: wanted }
    } else {
        CheckFact::LimitTight { backups: fitting, wanted }
    }
}

/// Returns the name of the last backup that the database recorded.
fn last_recorded(installation: &Installation<'_>) -> Result<Option<String>> {
    let Some(services) = installation.services() else { return Ok(None) };
    Ok(services.core.store.read(backups::status_in)?.last.map(|last| last.name))
}

fn age(services: Services<'_>) -> Result<CheckFact> {
    let health = HealthSnapshot::collect(services.health)?;
    let last = health.backups.last.as_ref().map(LastBackup::at);
    Ok(match health.backup_state(&services.core.config) {
        BackupState::Current => CheckFact::BackupRecent { last },
        BackupState::Off => CheckFact::BackupsOff { last },
        BackupState::None => CheckFact::NoBackupYet {},
        BackupState::Old => CheckFact::BackupLate { last },
        BackupState::Failed => {
            let cause = health.backups.failure.map(|failure| failure.detail).unwrap_or_default();
            CheckFact::LastBackupFailed { cause, last }
        }
    })
}

fn location(config: &Config) -> CheckFact {
    let device = |path: &Path| std::fs::metadata(path).ok().map(|metadata| metadata.dev());
    let is_apart = device(config.data_dir()) != device(&config.backup_directory());
    if is_apart || config.backup.s3_endpoint.is_some() {
        CheckFact::BackupsApart {}
    } else {
        CheckFact::BackupsOnSameDisk {}
    }
}
