//! Backups: copies of the database that are proved when they are made, kept by rules, rehearsed, and restored.
//!
//! A backup is one file. It is written under another name, looked through (structure, references, ledger), synced, and
//! only then gets its name; so whatever is listed is whole, whenever a process was killed. It carries the
//! installation's keys, so it is as secret as the data directory.
//!
//! The surprise: a database whose ledger is found inconsistent is backed up all the same, because that is when one
//! needs a backup most. The backup says what was found, and the newest sound one is never pruned.

pub mod manifest;
pub mod offsite;
mod rehearsal;
mod retention;

use std::{
    cmp::Ordering,
    collections::BTreeMap,
    fs::File,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

use super::{clock_jump, integrity, settings};
use crate::domain::money::ledger::verification;
use crate::{
    app::App,
    config::Config,
    error::{Code, Error, Result},
    keys::KEYS,
    store::{
        self, Read, SCHEMA_VERSION, Write,
        backup::{self, DatabaseCopy},
        files::{self, DATABASE, create_private_directory},
    },
    types::{Timestamp, milliseconds, named},
};

pub use rehearsal::{Rehearsal, Restored, rehearse, restore, restore_keys};
pub use retention::{newest_sound, prune};

/// After a failure the next attempt waits: a disk or a bucket that is gone stays gone for a while.
const AGAIN_AFTER: Duration = Duration::from_mins(10);
const LAST_BACKUP: &str = "backup.last";
const LAST_FAILURE: &str = "backup.failure";
const PREFIX: &str = "yarrow-";
const SUFFIX: &str = ".db";
const UNFINISHED: &str = ".unfinished";
const ABOUT: &str = "about";

named! {
    /// Why a backup is made. It stands in the file's name.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Occasion {
        /// It was time.
        Scheduled = "scheduled",
        /// Somebody asked for one.
        Manual = "manual",
        /// Something is about to be destroyed.
        BeforeCleanup = "before-cleanup",
    }
}

/// A finished backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backup {
    pub name: String,
    pub path: PathBuf,
    /// When it was begun: it holds what was committed until then.
    pub at: Timestamp,
    pub occasion: Occasion,
    pub bytes: u64,
}

/// What is remembered in a backup about itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Findings {
    pub schema_version: usize,
    pub ledger_entries: i64,
    pub ledger_accounts: i64,
    pub ledger_discrepancies: u64,
    /// Rows that refer to something that is not there.
    pub dangling_references: u64,
}

impl Findings {
    pub fn is_sound(&self) -> bool {
        self.ledger_discrepancies == 0 && self.dangling_references == 0
    }
}

/// The copy that was to become a backup is damaged.
#[derive(Debug)]
struct DamagedCopy(String);

impl std::fmt::Display for DamagedCopy {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for DamagedCopy {}

/// A backup that was just made.
#[derive(Clone, Debug)]
pub struct Made {
    pub backup: Backup,
    pub findings: Findings,
    pub took: Duration,
}

/// The last backup, as it is remembered in the database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Remembered {
    /// Milliseconds since 1970.
    at: i64,
    pub name: String,
    pub bytes: u64,
    pub took_ms: u64,
    pub is_sound: bool,
}

/// A backup that failed, as it is remembered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// Milliseconds since 1970.
    at: i64,
    pub code: String,
    pub detail: String,
}

impl Remembered {
    pub fn at(&self) -> Timestamp {
        Timestamp(self.at)
    }
}

impl Failed {
    pub fn at(&self) -> Timestamp {
        Timestamp(self.at)
    }
}

/// What is known of backups without looking into the directory, or of the bucket without asking it.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    /// The newest backup, and when it was made, or last made sure that the bucket has it.
    pub last: Option<Remembered>,
    /// The last failure, if it did not work since.
    pub failure: Option<Failed>,
}

impl Standing {
    /// What is remembered under these names. What is of a time to come was noted while the clock was ahead, and says
    /// nothing of how old the last backup is, nor whether it worked since a failure.
    fn noted_in(tx: &Read<'_>, last: &str, failure: &str) -> Result<Self> {
        let (last, failure): (Option<Remembered>, Option<Failed>) =
            (settings::find_json_in(tx, last)?, settings::find_json_in(tx, failure)?);
        let last = last.filter(|last| last.at() <= tx.now);
        let is_newer = |failure: &Failed| last.as_ref().is_none_or(|last| last.at <= failure.at);
        let failure = failure.filter(|failure| failure.at() <= tx.now && is_newer(failure));
        Ok(Self { last, failure })
    }
}

/// Told now and then which part of the work is how far.
pub type Progress<'watcher> = &'watcher mut dyn FnMut(&'static str, u64, u64);

/// Makes a backup and looks through it. Blocks for as long as that takes; while another is being made, until that is
/// done. Writers are not held up.
///
/// # Errors
/// `storage_full` when it would leave too little of the disk; storage errors. Nothing is left of a backup that failed,
/// and the failure is remembered.
pub fn create(app: &App, occasion: Occasion, progress: Progress<'_>) -> Result<Made> {
    let outcome = enter(&app.config.backup_directory()).and_then(|_lock| make(app, occasion, progress));
    note(app, &outcome);
    outcome
}

/// Makes a backup and then destroys what is in it, and nothing else: from the backup's beginning until that is done
/// nobody writes. Blocks for as long as both take.
///
/// # Errors
/// As [`create`]; those of `destroy`. Nothing is destroyed then.
pub fn create_before<T, F>(app: &App, occasion: Occasion, progress: Progress<'_>, destroy: F) -> Result<(Made, T)>
where
    T: Send + 'static,
    F: FnOnce(&Write<'_>) -> Result<T> + Send + 'static,
{
    // Others who make backups are waited for before anybody has to wait for this one.
    let _lock = enter(&app.config.backup_directory())?;
    let mut made = None;
    let prepare = || made.insert(make(app, occasion, progress)).as_ref().map(Made::clone).map_err(Error::again);
    let destroyed = app.store.write_exclusive_with(prepare, |tx, made| Ok((made, destroy(tx)?)));
    if let Some(outcome) = &made {
        note(app, outcome);
    }
    destroyed
}

/// Remembers what came of a backup. A note that cannot be taken, on a disk that is full for instance, changes nothing
/// about that.
fn note(app: &App, outcome: &Result<Made>) {
    let noted = match outcome {
        Ok(Made { backup, findings, took }) => {
            let (took_ms, bytes) = (milliseconds(*took).unsigned_abs(), backup.bytes);
            tracing::info!(backup = backup.name, bytes, took_ms, "made a backup");
            if !findings.is_sound() {
                tracing::error!(backup = backup.name, ?findings, "the database that was backed up is not consistent");
            }
            let (at, name, is_sound) = (backup.at.0, backup.name.clone(), findings.is_sound());
            remember(app, LAST_BACKUP, Remembered { at, name, bytes, took_ms, is_sound })
                .and_then(|()| integrity::remember(app, None))
        }
        Err(error) => {
            tracing::error!(%error, "a backup failed");
            if error.source.as_ref().is_some_and(|source| source.is::<DamagedCopy>()) || store::is_damage(error) {
                // It may be the copy alone, by a disk of its own.
                if let Err(error) = integrity::check(app) {
                    tracing::warn!(%error, "the database could not be looked through");
                }
            }
            let failed =
                Failed { at: app.clock.now().0, code: error.code.name().into(), detail: error.detail.to_string() };
            remember(app, LAST_FAILURE, failed)
        }
    };
    if let Err(error) = noted {
        tracing::warn!(%error, "what came of a backup could not be remembered");
    }
}

/// Makes a backup if the last one is old enough, and prunes; true if one was made.
///
/// # Errors
/// As [`create`] and [`prune`].
pub fn run_if_due(app: &App) -> Result<bool> {
    let every = app.config.backup.every;
    if every.is_zero() {
        return Ok(false);
    }
    // What is in the directory counts, not what is remembered: somebody may have emptied it.
    let now = app.clock.now();
    let failure = app.store.read(standing_in)?.failure;
    let has_just_failed = failure.is_some_and(|failure| failure.at().is_within(AGAIN_AFTER.min(every), now));
    let kept = match list(&app.config) {
        Ok(kept) => kept,
        Err(_) if has_just_failed => return Ok(false),
        // No backup can be made there either, and that is to be told like any other failure.
        Err(error) => {
            note(app, &Err(error.again()));
            return Err(error);
        }
    };
    if kept.into_iter().any(|backup| backup.at.is_within(every, now)) {
        return Ok(false);
    }
    // A disk that has failed has mostly failed for a while, and each attempt may copy the whole database.
    if has_just_failed || is_known_to_fail(app)? {
        return Ok(false);
    }
    // What was kept stays if this fails: no rule prunes a good backup for want of a new one.
    create(app, Occasion::Scheduled, &mut |_, _, _| ())?;
    if clock_jump::is_believed(app)? {
        prune(&app.config, app.clock.now())?;
    }
    Ok(true)
}

/// Whether the database was found damaged a short while ago, so that a copy of it would only be found damaged again.
fn is_known_to_fail(app: &App) -> Result<bool> {
    let last = app.store.read(|tx| integrity::standing_in(tx, app))?.last;
    let is_fresh = |check: &integrity::Check| check.at().is_within(app.config.backup.every, app.clock.now());
    Ok(last.is_some_and(|check| check.fault.is_some() && is_fresh(&check)))
}

/// The backups, newest first.
///
/// # Errors
/// Storage errors.
pub fn list(config: &Config) -> Result<Vec<Backup>> {
    let directory = config.backup_directory();
    let entries = match std::fs::read_dir(&directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|error| files::file_error(&directory, error))?,
    };
    let mut found: Vec<_> = entries.filter_map(|entry| backup_of(&entry.ok()?.path())).collect();
    found.sort_unstable_by(newest_first);
    Ok(found)
}

fn newest_first(left: &Backup, right: &Backup) -> Ordering {
    right.at.cmp(&left.at).then_with(|| right.name.cmp(&left.name))
}

/// The backup that somebody means: a file, or the name of one that is listed; the newest if nothing is said.
///
/// # Errors
/// `not_found`.
pub fn find(config: &Config, meant: Option<&str>) -> Result<PathBuf> {
    let Some(meant) = meant else {
        let newest = list(config)?.into_iter().next().map(|backup| backup.path);
        return newest.ok_or_else(|| Error::new(Code::NotFound).detail("There is no backup."));
    };
    let missing = || Error::new(Code::NotFound).detail(format!("There is no backup `{meant}`."));
    let file = PathBuf::from(meant);
    // A name is one of the directory's, and leads nowhere else.
    let is_name = file.file_name().is_some_and(|name| name == file.as_os_str());
    let listed = is_name.then(|| config.backup_directory().join(meant));
    std::iter::once(file).chain(listed).find(|place| place.is_file()).ok_or_else(missing)
}

/// What a backup says of itself. Nothing for a file that was not made as a backup.
///
/// # Errors
/// `not_found`; storage errors.
pub fn findings(path: &Path, now: Timestamp) -> Result<Option<Findings>> {
    let carried = DatabaseCopy::open(path, now)?.contents()?;
    carried.get(ABOUT).map(|about| serde_json::from_slice(about).map_err(Error::internal)).transpose()
}

/// What is known of the last backup and the last failure.
pub fn standing_in(tx: &Read<'_>) -> Result<Standing> {
    Standing::noted_in(tx, LAST_BACKUP, LAST_FAILURE)
}

fn remember(app: &App, name: &'static str, what: impl Serialize + Send + 'static) -> Result<()> {
    app.store.write(move |tx| settings::put_json_in(tx, name, &what)).wait()
}

/// Makes a backup in the directory that the caller has entered. Changes nothing in the database.
fn make(app: &App, occasion: Occasion, progress: Progress<'_>) -> Result<Made> {
    let begun = Instant::now();
    let directory = app.config.backup_directory();
    files::ensure_free_space(&directory, files::database_size(app.store.path()) + app.config.backup.free_space.0)?;
    let at = app.clock.now();
    let name = name_of(at, occasion);
    let path = directory.join(&name);
    let unfinished = directory.join(format!("{name}{UNFINISHED}"));
    let mut finish = || -> Result<Findings> {
        app.store.copy_to(&unfinished, &mut |done, total| progress("copying", done, total))?;
        let findings = examine(&unfinished, at, progress)?;
        backup::add_contents(&unfinished, &carried(app, findings)?)?;
        manifest::write(&unfinished, &path, findings)?;
        files::sync_and_rename(&unfinished, &path)?;
        Ok(findings)
    };
    let findings = finish().inspect_err(|_| drop(std::fs::remove_file(&unfinished)))?;
    let bytes = files::database_size(&path);
    Ok(Made { backup: Backup { name, path, at, occasion, bytes }, findings, took: begun.elapsed() })
}

/// Enters the directory, alone, and removes what killed processes have left in it.
fn enter(directory: &Path) -> Result<File> {
    let failed =
        |error: std::io::Error| Error::new(Code::StorageFailed).detail(format!("{}: {error}", directory.display()));
    create_private_directory(directory)?;
    let lock = files::open_lock(&directory.join("backup.lock")).map_err(failed)?;
    lock.lock().map_err(failed)?;
    for entry in std::fs::read_dir(directory).map_err(failed)?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_unfinished = name.starts_with(PREFIX) && name.contains(UNFINISHED);
        if is_unfinished || name.strip_suffix(manifest::SUFFIX).is_some_and(|backup| is_missing(directory, backup)) {
            std::fs::remove_file(entry.path()).map_err(failed)?;
        } else if name.starts_with(rehearsal::DIRECTORY_PREFIX) {
            std::fs::remove_dir_all(entry.path()).map_err(failed)?;
        }
    }
    Ok(lock)
}

/// Whether a manifest stands beside a backup that is not there.
fn is_missing(directory: &Path, backup: &str) -> bool {
    described(backup, PathBuf::new(), 0).is_some() && !directory.join(backup).exists()
}

/// Looks through a copy.
///
/// # Errors
/// `storage_failed` when it is damaged, which no rule can excuse.
fn examine(path: &Path, now: Timestamp, progress: Progress<'_>) -> Result<Findings> {
    progress("checking", 0, 2);
    let copy = DatabaseCopy::open(path, now)?;
    let faults = copy.faults()?;
    if let Some(first) = faults.structure.first() {
        let detail = format!("{} is damaged: {first}", path.display());
        return Err(Error::new(Code::StorageFailed).detail(detail).caused_by(DamagedCopy(first.clone())));
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

/// The keys that the data directory keeps, and what was found.
fn carried(app: &App, findings: Findings) -> Result<BTreeMap<String, Vec<u8>>> {
    let directory = &app.config.installation.data_dir.0;
    let mut contents = BTreeMap::from([(ABOUT.to_owned(), serde_json::to_vec(&findings).map_err(Error::internal)?)]);
    for name in KEYS {
        match std::fs::read(directory.join(name)) {
            Ok(key) => drop(contents.insert(name.to_owned(), key)),
            // It is configured, and then it is not kept.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::new(Code::StorageFailed).detail(format!("{name}: {error}"))),
        }
    }
    Ok(contents)
}

/// `yarrow-20260102T030405.678Z-scheduled.db`
fn name_of(at: Timestamp, occasion: Occasion) -> String {
    let at = at.to_string().replace(['-', ':'], "");
    format!("{PREFIX}{at}-{}{SUFFIX}", occasion.name())
}

fn backup_of(path: &Path) -> Option<Backup> {
    let bytes = path.metadata().ok().filter(std::fs::Metadata::is_file)?.len();
    described(path.file_name()?.to_str()?, path.to_owned(), bytes)
}

/// What a name says about a backup. Nothing for a name that is none of a backup.
fn described(name: &str, path: PathBuf, bytes: u64) -> Option<Backup> {
    let (at, occasion) = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.split_once('-')?;
    let occasion = Occasion::named(occasion)?;
    Some(Backup { path, name: name.to_owned(), at: time_of(at)?, occasion, bytes })
}

/// Reads `20260102T030405.678Z`.
fn time_of(text: &str) -> Option<Timestamp> {
    let (date, time) = text.split_at_checked(8)?;
    let (year, month, day) = (date.get(..4)?, date.get(4..6)?, date.get(6..)?);
    let (hour, minute, rest) = (time.get(1..3)?, time.get(3..5)?, time.get(5..)?);
    Timestamp::from_rfc3339(&format!("{year}-{month}-{day}T{hour}:{minute}:{rest}"))
}

/// The database of a data directory.
fn database_of(config: &Config) -> PathBuf {
    config.installation.data_dir.0.join(DATABASE)
}

/// Whether this program can work with the schema of a copy.
fn refuse_schema(path: &Path, version: usize) -> Result<()> {
    match version {
        0 => {
            let detail = format!("{} is not a backup: it contains no Yarrow database.", path.display());
            Err(Error::new(Code::BackupUnusable).detail(detail))
        }
        version if version > SCHEMA_VERSION => Err(Error::new(Code::DataDirectoryUnusable).detail(format!(
            "The backup has schema version {version}; this program knows versions up to {SCHEMA_VERSION}."
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_when_and_why() {
        let at = Timestamp(1_767_323_045_678);
        let name = name_of(at, Occasion::BeforeCleanup);
        assert_eq!(name, "yarrow-20260102T030405.678Z-before-cleanup.db");
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(&name);
        std::fs::write(&path, "1234").unwrap();
        let backup = backup_of(&path).unwrap();
        assert_eq!((backup.at, backup.occasion, backup.bytes), (at, Occasion::BeforeCleanup, 4));
        for other in ["yarrow.db", "yarrow-x-manual.db", "yarrow-20260102T030405.678Z-other.db", "yarrow-é-manual.db"]
        {
            let path = directory.path().join(other);
            std::fs::write(&path, "").unwrap();
            assert_eq!(backup_of(&path), None, "{other}");
        }
    }
}
