//! Backups: verified copies of the database, pruned by rules, tested and restored.
//!
//! A backup is one file. It is written under a temporary name, checked (structure, references, ledger), synced and only
//! then renamed, so every listed backup is complete. It contains the installation's keys and is as secret as the data
//! directory.
//!
//! The surprise: a database with an inconsistent ledger is still backed up, because that is when a backup matters most.
//! The backup records the findings, and the newest sound one is never pruned.

mod create;
pub mod follow;
pub mod manifest;
pub mod offsite;
pub mod origin;
mod restore_test;
mod restoring;
mod retention;
mod status;
pub mod summary;

use std::{
    cmp::Ordering,
    fs::{File, TryLockError},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

use super::{clock_jump::ClockGuard, integrity::IntegrityChecker};
use crate::{
    config::Config,
    core::Core,
    error::{Code, Error, Result},
    store::{
        SCHEMA_VERSION,
        backup::DatabaseCopy,
        files::{self, DATABASE, create_private_directory},
    },
    types::{Timestamp, named_enum, pluralize},
};

use follow::FollowMonitor;

pub use create::{CreatedBackup, create, create_before, run_if_due};
pub use restore_test::{RestoreTest, test_restore};
pub use restoring::{RestoreResult, restore, restore_keys, restore_to_server};
pub use retention::{newest_sound, prune};
pub use status::{BackupFailure, BackupStatus, LastBackup, adopt_newest, forget_in, status_in};

const PREFIX: &str = "yarrow-";
const SUFFIX: &str = ".db";
/// Time that a backup waits for the work of another process on the same directory.
const LOCK_TIMEOUT: Duration = Duration::from_mins(10);
const LOCK_INTERVAL: Duration = Duration::from_millis(50);
const UNFINISHED: &str = ".unfinished";
/// The entry of a backup's attached files that holds its findings.
const FINDINGS: &str = "about";

/// The service that makes and uploads backups.
pub struct Backups {
    pub core: Core,
    pub integrity: Arc<IntegrityChecker>,
    pub clock_guard: Arc<ClockGuard>,
    pub follow: Arc<FollowMonitor>,
}

named_enum! {
    /// The reason for a backup, which is part of its file name.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Occasion {
        Scheduled = "scheduled",
        Manual = "manual",
        /// A purge follows.
        BeforeCleanup = "before-cleanup",
    }
}

/// A finished backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backup {
    pub name: String,
    pub path: PathBuf,
    /// The time of its start. It contains all earlier commits.
    pub at: Timestamp,
    pub occasion: Occasion,
    pub bytes: u64,
}

/// The results of the checks of a backup, which it carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Findings {
    pub schema_version: usize,
    pub ledger_entries: i64,
    pub ledger_accounts: i64,
    pub ledger_discrepancies: u64,
    /// Rows with a foreign key to a missing row.
    pub dangling_references: u64,
}

impl Findings {
    pub fn is_sound(&self) -> bool {
        self.ledger_discrepancies == 0 && self.dangling_references == 0
    }
}

/// A callback that receives a phase with the amount done and the total.
pub type BackupProgress<'watcher> = &'watcher mut dyn FnMut(&'static str, u64, u64);

/// Lists the backups, newest first. Those dated ahead come last: the clock was wrong, so their real age is unknown.
///
/// # Errors
/// Storage errors.
pub fn list(config: &Config, now: Timestamp) -> Result<Vec<Backup>> {
    let directory = config.backup_directory();
    let entries = match std::fs::read_dir(&directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|error| files::file_error(&directory, error))?,
    };
    let mut backups: Vec<_> = entries.filter_map(|entry| backup_at(&entry.ok()?.path())).collect();
    backups.sort_unstable_by(newest_first);
    Ok(retention::future_last(&backups, now).cloned().collect())
}

fn newest_first(left: &Backup, right: &Backup) -> Ordering {
    right.at.cmp(&left.at).then_with(|| right.name.cmp(&left.name))
}

/// Finds a backup by path or by listed name; without either, the newest.
///
/// # Errors
/// `not_found`.
pub fn find(config: &Config, path_or_name: Option<&str>, now: Timestamp) -> Result<PathBuf> {
    let Some(wanted) = path_or_name else {
        let newest = list(config, now)?.into_iter().next().map(|backup| backup.path);
        return newest.ok_or_else(|| Error::new(Code::NotFound).english_detail("There is no backup."));
    };
    let missing = || Error::new(Code::NotFound).english_detail(format!("There is no backup `{wanted}`."));
    let file = PathBuf::from(wanted);
    // Only a bare name is looked up in the directory, so that no path leads out of it.
    let is_name = file.file_name().is_some_and(|name| name == file.as_os_str());
    let listed = is_name.then(|| config.backup_directory().join(wanted));
    std::iter::once(file).chain(listed).find(|path| path.is_file()).ok_or_else(missing)
}

/// Reads the findings that a backup carries. Nothing for a file that was not made as a backup.
///
/// # Errors
/// `not_found`; storage errors.
pub fn findings(path: &Path, now: Timestamp) -> Result<Option<Findings>> {
    let attached = DatabaseCopy::open(path, now)?.contents()?;
    attached.get(FINDINGS).map(|json| serde_json::from_slice(json).map_err(Error::internal)).transpose()
}

/// Locks the directory of backups and removes what killed processes left in it.
fn lock_backups(directory: &Path) -> Result<File> {
    let failed = |error: std::io::Error| {
        Error::new(Code::StorageFailed).english_detail(format!("{}: {error}", directory.display()))
    };
    create_private_directory(directory)?;
    let lock = files::open_lock(&directory.join("backup.lock")).map_err(failed)?;
    wait_for(&lock, directory, LOCK_TIMEOUT)?;
    for entry in std::fs::read_dir(directory).map_err(failed)?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_unfinished = name.starts_with(PREFIX) && name.contains(UNFINISHED);
        if is_unfinished || is_orphaned_manifest(directory, &name) {
            std::fs::remove_file(entry.path()).map_err(failed)?;
        } else if name.starts_with(restoring::DIRECTORY_PREFIX) {
            std::fs::remove_dir_all(entry.path()).map_err(failed)?;
        }
    }
    Ok(lock)
}

/// Locks the file. Waits for another process, but not for one that hangs.
fn wait_for(lock: &File, directory: &Path, timeout: Duration) -> Result<()> {
    let deadline = Instant::now() + timeout;
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(files::file_error(directory, error)),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => std::thread::sleep(LOCK_INTERVAL),
            Err(TryLockError::WouldBlock) => {
                let detail = format!(
                    "Another process has held the lock of the backups in {} for {}.",
                    directory.display(),
                    pluralize(timeout.as_secs() / 60, "minute", "minutes")
                );
                return Err(Error::new(Code::AlreadyRunning).english_detail(detail));
            }
        }
    }
}

fn is_orphaned_manifest(directory: &Path, name: &str) -> bool {
    let backup = name.strip_suffix(manifest::SUFFIX);
    let is_backup = |name: &&str| parse_name(name, PathBuf::new(), 0).is_some();
    backup.filter(is_backup).is_some_and(|backup| !directory.join(backup).exists())
}

/// `yarrow-20260102T030405.678Z-scheduled.db`
fn file_name(at: Timestamp, occasion: Occasion) -> String {
    let at = at.to_string().replace(['-', ':'], "");
    format!("{PREFIX}{at}-{}{SUFFIX}", occasion.name())
}

fn backup_at(path: &Path) -> Option<Backup> {
    let bytes = path.metadata().ok().filter(std::fs::Metadata::is_file)?.len();
    parse_name(path.file_name()?.to_str()?, path.to_owned(), bytes)
}

/// Parses the name of a backup. Returns nothing for any other file.
fn parse_name(name: &str, path: PathBuf, bytes: u64) -> Option<Backup> {
    let (at, occasion) = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.split_once('-')?;
    let occasion = Occasion::from_name(occasion)?;
    Some(Backup { path, name: name.to_owned(), at: parse_time(at)?, occasion, bytes })
}

/// Parses `20260102T030405.678Z`.
fn parse_time(text: &str) -> Option<Timestamp> {
    let (date, time) = text.split_at_checked(8)?;
    let (year, month, day) = (date.get(..4)?, date.get(4..6)?, date.get(6..)?);
    let (hour, minute, rest) = (time.get(1..3)?, time.get(3..5)?, time.get(5..)?);
    Timestamp::from_rfc3339(&format!("{year}-{month}-{day}T{hour}:{minute}:{rest}"))
}

/// The database file of the data directory.
fn database_path(config: &Config) -> PathBuf {
    config.data_dir().join(DATABASE)
}

/// Rejects a copy whose schema this program does not know, or that has other tables, triggers or views.
fn ensure_known_schema(path: &Path, copy: &DatabaseCopy) -> Result<()> {
    match copy.schema_version()? {
        0 => {
            let detail = format!("{} is not a backup of Yarrow.", path.display());
            Err(Error::new(Code::BackupUnusable).english_detail(detail))
        }
        version if version > SCHEMA_VERSION => Err(Error::new(Code::DataDirectoryUnusable).english_detail(format!(
            "The backup has schema version {version}; this program supports versions up to {SCHEMA_VERSION}."
        ))),
        version => {
            let faults = copy.schema_faults()?;
            if faults.is_empty() {
                return Ok(());
            }
            let detail =
                format!("{} does not have schema version {version} of Yarrow: {}.", path.display(), faults.join(", "));
            Err(Error::new(Code::BackupUnusable).english_detail(detail))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_contain_time_and_occasion() {
        let at = Timestamp(1_767_323_045_678);
        let name = file_name(at, Occasion::BeforeCleanup);
        assert_eq!(name, "yarrow-20260102T030405.678Z-before-cleanup.db");
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(&name);
        std::fs::write(&path, "1234").unwrap();
        let backup = backup_at(&path).unwrap();
        assert_eq!((backup.at, backup.occasion, backup.bytes), (at, Occasion::BeforeCleanup, 4));
        for other in ["yarrow.db", "yarrow-x-manual.db", "yarrow-20260102T030405.678Z-other.db", "yarrow-é-manual.db"]
        {
            let path = directory.path().join(other);
            std::fs::write(&path, "").unwrap();
            assert_eq!(backup_at(&path), None, "{other}");
        }
    }

    #[test]
    fn a_lock_that_another_process_keeps_is_an_error_after_some_time() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("backup.lock");
        let (held, wanted) = (files::open_lock(&path).unwrap(), files::open_lock(&path).unwrap());
        held.lock_shared().unwrap();
        let refused = wait_for(&wanted, directory.path(), Duration::from_millis(120)).unwrap_err();
        assert_eq!(refused.code, Code::AlreadyRunning);
        drop(held);
        wait_for(&wanted, directory.path(), Duration::from_millis(120)).unwrap();
    }
}
