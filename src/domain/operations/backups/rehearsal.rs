//! Restoring, in earnest and as a rehearsal: both do the same, the one in the data directory and the other in a
//! directory of its own that is deleted again.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::{
    Progress, database_of, enter,
    manifest::{self, Checksum},
    refuse_schema,
};
use crate::{
    clock::Clock,
    config::Config,
    data_dir::ensure_initialized,
    domain::{
        money::ledger::verification,
        operations::server_key::{Standing, standing_in},
    },
    error::{Code, Error, Result},
    keys::{SERVER_KEY, ServerKey},
    store::{
        self, SCHEMA_VERSION, SchemaPolicy, Store, Tuning,
        backup::{DatabaseCopy, Faults},
        files::{DATABASE, database_size, ensure_free_space},
        lock::{in_use_error, lock_directory},
    },
    types::Timestamp,
};

pub(super) const DIRECTORY_PREFIX: &str = ".rehearsal-";

/// What came of a rehearsal.
#[derive(Clone, Debug)]
pub struct Rehearsal {
    /// What the database engine found.
    pub faults: Faults,
    pub checksum: Checksum,
    pub ledger_entries: i64,
    pub ledger_accounts: i64,
    pub ledger_discrepancies: u64,
    /// Time for putting the files in place, as a restore would.
    pub restored_in: Duration,
    /// Time for everything, with the checks.
    pub took: Duration,
}

impl Rehearsal {
    pub fn is_sound(&self) -> bool {
        self.faults == Faults::default() && self.checksum != Checksum::Wrong && self.ledger_discrepancies == 0
    }
}

/// What came of a restore.
#[derive(Clone, Debug)]
pub struct Restored {
    /// Where the files are that were there before.
    pub aside: Option<PathBuf>,
    pub took: Duration,
}

/// Restores a backup into a directory of its own, opens it as a server would, looks through it, and deletes it again.
///
/// # Errors
/// `not_found`; `data_directory_unusable` for a newer schema; `backup_unusable` for another program's file and for
/// damage that lets nobody look on; storage errors. What else is found wrong is no error but what the rehearsal is for.
pub fn rehearse(config: &Config, path: &Path, clock: &Clock, progress: Progress<'_>) -> Result<Rehearsal> {
    rehearse_copy(config, path, clock, progress).map_err(|error| blaming(path, error))
}

fn rehearse_copy(config: &Config, path: &Path, clock: &Clock, progress: Progress<'_>) -> Result<Rehearsal> {
    let begun = Instant::now();
    let copy = DatabaseCopy::open(path, clock.now())?;
    let version = copy.schema_version()?;
    refuse_schema(path, version)?;
    let _lock = enter(&config.backup_directory())?;
    progress("reading", 0, 1);
    let checksum = manifest::verify(path)?;
    let place = tempfile::Builder::new().prefix(DIRECTORY_PREFIX).tempdir_in(config.backup_directory());
    let place = place.map_err(|error| Error::new(Code::StorageFailed).caused_by(error))?;
    // Migrating keeps a copy of what was before, and may write all of it anew into the log.
    let copies = if version < SCHEMA_VERSION { 3 } else { 1 };
    ensure_free_space(place.path(), database_size(path) * copies + config.backup.free_space.0)?;
    store::restore::restore(&copy, place.path(), "before", &mut |done, total| progress("restoring", done, total))?;
    let tuning = Tuning { cache_kib: 8192, slow: Duration::MAX, ..Tuning::SMALL };
    let database = place.path().join(DATABASE);
    let store = Store::open(&database, &tuning, clock.clone(), SchemaPolicy::Migrate)?;
    let restored_in = begun.elapsed();
    let report = verification::inspect(&store, &mut |done, total| {
        progress("verifying", u64::try_from(done).unwrap_or(0), u64::try_from(total).unwrap_or(0));
    })?;
    store.close();
    drop(store);
    let faults = DatabaseCopy::open(&database, clock.now())?.faults()?;
    Ok(Rehearsal {
        faults,
        checksum,
        ledger_entries: report.entries,
        ledger_accounts: report.accounts,
        ledger_discrepancies: report.discrepancies_found,
        restored_in,
        took: begun.elapsed(),
    })
}

/// Puts a backup in the place of the data directory's database. What was there is moved aside.
///
/// # Errors
/// `data_directory_unusable` while a server runs and for a newer schema; `not_found`; `backup_unusable` for a damaged
/// backup and for another program's file, before anything was changed.
pub fn restore(config: &Config, path: &Path, now: Timestamp, progress: Progress<'_>) -> Result<Restored> {
    restore_copy(config, path, now, progress).map_err(|error| blaming(path, error))
}

fn restore_copy(config: &Config, path: &Path, now: Timestamp, progress: Progress<'_>) -> Result<Restored> {
    let begun = Instant::now();
    let directory = &config.installation.data_dir.0;
    let _lock = lock_directory(directory)?.ok_or_else(|| in_use_error(directory))?;
    store::restore::finish(directory, true)?;
    progress("checking", 0, 1);
    let copy = sound_copy(path, now)?;
    demand_server_key(config, path, &copy)?;
    ensure_free_space(directory, database_size(path))?;
    let had_any = database_of(config).exists();
    let aside = format!("before-restore-{}", now.to_string().replace(['-', ':'], ""));
    store::restore::restore(&copy, directory, &aside, &mut |done, total| progress("restoring", done, total))?;
    Ok(Restored { aside: had_any.then(|| directory.join(aside)), took: begun.elapsed() })
}

/// Opens a backup after looking through all of it.
fn sound_copy(path: &Path, now: Timestamp) -> Result<DatabaseCopy> {
    let copy = DatabaseCopy::open(path, now)?;
    refuse_schema(path, copy.schema_version()?)?;
    if let Some(first) = copy.faults()?.structure.first() {
        return Err(damaged(path, first));
    }
    if manifest::verify(path)? == Checksum::Wrong {
        let why = format!(
            "its checksum is not the one in {}; without that file it would be restored as it is",
            manifest::beside(path).display()
        );
        return Err(damaged(path, &why));
    }
    Ok(copy)
}

fn damaged(path: &Path, why: &str) -> Error {
    Error::new(Code::BackupUnusable).detail(format!("{} is damaged: {why}.", path.display()))
}

/// What the database engine says of damage is said of the backup: nothing else is read in a restore.
fn blaming(path: &Path, error: Error) -> Error {
    match &error.source {
        Some(source) if store::is_damage(&error) => damaged(path, &source.to_string()),
        _ => error,
    }
}

/// Puts the keys that a backup carries where they are missing, and says which. The database stays as it is.
///
/// # Errors
/// `not_found` when there is no such file, or no key in it that is missing; `data_directory_unusable` while a server
/// runs; `backup_unusable` for a damaged backup and for one of another installation; storage errors.
pub fn restore_keys(config: &Config, path: &Path, now: Timestamp) -> Result<Vec<&'static str>> {
    let directory = &config.installation.data_dir.0;
    ensure_initialized(config)?;
    let _lock = lock_directory(directory)?.ok_or_else(|| in_use_error(directory))?;
    let copy = sound_copy(path, now).map_err(|error| blaming(path, error))?;
    demand_own_key(config, path, &copy, now)?;
    let restored = store::restore::restore_keys(&copy, directory)?;
    if restored.is_empty() {
        let detail = format!("{} carries no key that is missing in {}.", path.display(), directory.display());
        return Err(Error::new(Code::NotFound).detail(detail));
    }
    Ok(restored)
}

/// Makes sure that a key which would be put back is the one under which the database was filled, where that is known.
fn demand_own_key(config: &Config, path: &Path, copy: &DatabaseCopy, now: Timestamp) -> Result<()> {
    let (place, database) = (config.installation.data_dir.0.join(SERVER_KEY), database_of(config));
    let carried = copy.contents()?;
    let Some(key) = carried.get(SERVER_KEY).filter(|_| !place.exists() && database.exists()) else { return Ok(()) };
    let key = ServerKey::from_bytes(key);
    // What cannot be read says nothing about keys; whoever opens it next says what is wrong.
    let standing = DatabaseCopy::open(&database, now).and_then(|database| database.read(|tx| standing_in(tx, &key)));
    if !matches!(standing, Ok(Standing::Other)) {
        return Ok(());
    }
    let detail = format!(
        "{} carries the {SERVER_KEY} of another installation: {} was filled under another key.",
        path.display(),
        database.display()
    );
    Err(Error::new(Code::BackupUnusable).detail(detail))
}

/// Makes sure that the key of what is to be restored will be there: in the copy, in the directory or configured.
fn demand_server_key(config: &Config, path: &Path, copy: &DatabaseCopy) -> Result<()> {
    let place = config.installation.data_dir.0.join(SERVER_KEY);
    if config.auth.secret_key.is_some() || place.exists() || copy.contents()?.contains_key(SERVER_KEY) {
        return Ok(());
    }
    let detail = format!(
        "{} carries no {SERVER_KEY}: put the one that belongs to it at {} first, or set auth.secret_key.",
        path.display(),
        place.display()
    );
    Err(Error::new(Code::BackupUnusable).detail(detail))
}
