//! Creates backups, on demand and on schedule.

use std::{
    collections::BTreeMap,
    path::Path,
    time::{Duration, Instant},
};

use super::{
    Backup, BackupFailure, BackupProgress, Backups, FINDINGS, Findings, LastBackup, Occasion, UNFINISHED, file_name,
    list, lock_backups, manifest, prune,
    status::{LAST_BACKUP, LAST_FAILURE, status_in, store_outcome},
};
use crate::{
    core::Core,
    domain::{money::ledger::verification, operations::integrity::IntegrityCheck},
    error::{Code, Error, Result},
    keys::KEYS,
    store::{
        self, Write,
        backup::{self, DatabaseCopy},
        files,
    },
    types::{Timestamp, milliseconds},
};

/// The wait after a failure: a full disk or an unreachable bucket stays so for a while.
pub(super) const RETRY_AFTER: Duration = Duration::from_mins(10);

/// A new backup.
#[derive(Clone, Debug)]
pub struct CreatedBackup {
    pub backup: Backup,
    pub findings: Findings,
    pub took: Duration,
}

/// The cause of a failure: the copy that was to become a backup is damaged.
#[derive(Debug)]
struct DamagedCopy(String);

impl std::fmt::Display for DamagedCopy {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for DamagedCopy {}

/// Creates and checks a backup. Blocks, also while another process creates one. Writes continue meanwhile.
///
/// # Errors
/// `storage_full` when too little of the disk would stay free; storage errors. A failure is stored, and leaves no file.
pub fn create(backups: &Backups, occasion: Occasion, progress: BackupProgress<'_>) -> Result<CreatedBackup> {
    let core = &backups.core;
    let outcome = lock_backups(&core.config.backup_directory()).and_then(|_lock| make(core, occasion, progress));
    record_outcome(backups, &outcome);
    outcome
}

/// Creates a backup and then runs `destroy`. No other write runs from the start of the backup until `destroy` is
/// committed, so that it deletes nothing that the backup lacks. Blocks.
///
/// # Errors
/// As [`create`], and those of `destroy`; nothing is destroyed then.
pub fn create_before<T, F>(
    backups: &Backups,
    occasion: Occasion,
    progress: BackupProgress<'_>,
    destroy: F,
) -> Result<(CreatedBackup, T)>
where
    T: Send + 'static,
    F: FnOnce(&Write<'_>) -> Result<T> + Send + 'static,
{
    let core = &backups.core;
    // Waits for other backups before it blocks writes.
    let _lock = lock_backups(&core.config.backup_directory())?;
    let mut created = None;
    let prepare = || {
        created.insert(make(core, occasion, progress)).as_ref().map(CreatedBackup::clone).map_err(Error::without_source)
    };
    let destroyed = core.store.write_exclusive_with(prepare, |tx, created| Ok((created, destroy(tx)?)));
    if let Some(outcome) = &created {
        record_outcome(backups, outcome);
    }
    destroyed
}

/// Creates a backup if the newest is older than configured, then prunes. Returns true if it created one.
///
/// # Errors
/// As [`create`] and [`prune`].
pub fn run_if_due(backups: &Backups, progress: BackupProgress<'_>) -> Result<bool> {
    let core = &backups.core;
    let every = core.config.backup.every;
    if every.is_zero() {
        return Ok(false);
    }
    let now = core.clock.now();
    let failure = core.store.read(status_in)?.failure;
    let has_just_failed = failure.is_some_and(|failure| failure.at().is_within(RETRY_AFTER.min(every), now));
    // Reads the directory instead of the stored status, because backups may have been removed.
    let existing = match list(&core.config, now) {
        Ok(existing) => existing,
        Err(_) if has_just_failed => return Ok(false),
        // No backup can be made in such a directory, so this counts as a failed backup.
        Err(error) => {
            record_outcome(backups, &Err(error.without_source()));
            return Err(error);
        }
    };
    if existing.into_iter().any(|backup| backup.at.is_within(every, now)) {
        return Ok(false);
    }
    // Each attempt may copy the whole database, so it is not repeated at once.
    if has_just_failed || is_known_damaged(backups)? {
        return Ok(false);
    }
    create(backups, Occasion::Scheduled, progress)?;
    if backups.clock_guard.is_trusted()? {
        prune(&core.config, core.clock.now())?;
    }
    Ok(true)
}

/// Returns true if a recent check found the database damaged: a copy would be damaged, too.
fn is_known_damaged(backups: &Backups) -> Result<bool> {
    let core = &backups.core;
    let last = core.store.read(|tx| backups.integrity.status_in(tx))?.last;
    let is_recent = |check: &IntegrityCheck| check.at().is_within(core.config.backup.every, core.clock.now());
    Ok(last.is_some_and(|check| check.fault.is_some() && is_recent(&check)))
}

/// Logs and stores the outcome. If it cannot be stored, on a full disk for example, the backup still counts.
fn record_outcome(backups: &Backups, outcome: &Result<CreatedBackup>) {
    let recorded = match outcome {
        Ok(created) => record_success(backups, created),
        Err(error) => record_failure(backups, error),
    };
    if let Err(error) = recorded {
        tracing::warn!(%error, "the outcome of a backup could not be stored");
    }
}

fn record_success(backups: &Backups, created: &CreatedBackup) -> Result<()> {
    let CreatedBackup { backup, findings, took } = created;
    let (took_ms, bytes) = (milliseconds(*took).unsigned_abs(), backup.bytes);
    tracing::info!(backup = backup.name, bytes, took_ms, "created a backup");
    if !findings.is_sound() {
        tracing::error!(backup = backup.name, ?findings, "the backed-up database is inconsistent");
    }
    let (at, name, is_sound) = (backup.at.0, backup.name.clone(), findings.is_sound());
    store_outcome(&backups.core, LAST_BACKUP, LastBackup { at, name, bytes, took_ms, is_sound })?;
    backups.integrity.store_result(None)
}

fn record_failure(backups: &Backups, error: &Error) -> Result<()> {
    tracing::error!(%error, "a backup failed");
    if error.source.as_ref().is_some_and(|source| source.is::<DamagedCopy>()) || store::is_damage(error) {
        // The damage may be in the copy alone, which may be on another disk.
        if let Err(error) = backups.integrity.check() {
            tracing::warn!(%error, "the database could not be checked");
        }
    }
    let at = backups.core.clock.now().0;
    let failure = BackupFailure { at, code: error.code.name().into(), detail: error.detail.to_string() };
    store_outcome(&backups.core, LAST_FAILURE, failure)
}

/// Creates a backup in the locked directory.
fn make(core: &Core, occasion: Occasion, progress: BackupProgress<'_>) -> Result<CreatedBackup> {
    let started = Instant::now();
    let directory = core.config.backup_directory();
    files::ensure_free_space(&directory, core.store.size()? + core.config.backup.free_space.0)?;
    let at = core.clock.now();
    let name = file_name(at, occasion);
    let path = directory.join(&name);
    let unfinished = directory.join(format!("{name}{UNFINISHED}"));
    let mut write = || -> Result<Findings> {
        core.store.copy_to_file(&unfinished, at, progress)?;
        let findings = check_copy(core, &unfinished, at, progress)?;
        backup::add_contents(&unfinished, &attachments(core, findings)?)?;
        manifest::write(&unfinished, &path, findings, &core.keys)?;
        files::sync_and_rename(&unfinished, &path)?;
        Ok(findings)
    };
    let findings = write().inspect_err(|_| drop(std::fs::remove_file(&unfinished)))?;
    let bytes = files::database_size(&path);
    Ok(CreatedBackup { backup: Backup { name, path, at, occasion, bytes }, findings, took: started.elapsed() })
}

/// Checks a copy.
///
/// # Errors
/// `storage_failed` when its structure is damaged.
fn check_copy(core: &Core, path: &Path, now: Timestamp, progress: BackupProgress<'_>) -> Result<Findings> {
    progress("checking", 0, 2);
    let copy = DatabaseCopy::open(path, now)?.with_keys(core.keys.clone());
    let faults = copy.faults()?;
    if let Some(first) = faults.structure.first() {
        let detail = format!("{} is damaged: {first}", path.display());
        return Err(Error::new(Code::StorageFailed).english_detail(detail).caused_by(DamagedCopy(first.clone())));
    }
    progress("checking", 1, 2);
    let report = verification::inspect_copy(&copy, &mut |_, _| ())?;
    progress("checking", 2, 2);
    Ok(Findings {
        schema_version: copy.schema_version()?,
        ledger_entries: report.entries,
        ledger_accounts: report.accounts,
        ledger_discrepancies: report.discrepancies_found,
        dangling_references: faults.dangling,
    })
}

/// Returns the files to store in a backup: the keys of the data directory, and the findings.
fn attachments(core: &Core, findings: Findings) -> Result<BTreeMap<String, Vec<u8>>> {
    let directory = core.config.data_dir();
    let mut files = BTreeMap::from([(FINDINGS.to_owned(), serde_json::to_vec(&findings).map_err(Error::internal)?)]);
    for name in KEYS {
        match std::fs::read(directory.join(name)) {
            Ok(key) => drop(files.insert(name.to_owned(), key)),
            // A key from the configuration has no file.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::new(Code::StorageFailed).english_detail(format!("{name}: {error}"))),
        }
    }
    Ok(files)
}
