//! Restores a backup, or only its keys, into the data directory.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use secrecy::SecretString;
use tempfile::TempDir;

use super::{
    BackupProgress, database_path, ensure_known_schema, lock_backups,
    manifest::{self, Checksum},
    origin::{Origin, unproven},
};
use crate::{
    clock::Clock,
    config::Config,
    domain::operations::{
        audit::AuditEvent,
        database_copy::{self, DatabaseMove, DatabasePlace},
        server_key::{self, KeyMatch},
    },
    error::{Code, Error, Result},
    keys::{SERVER_KEY, ServerKey},
    store::{
        self, SCHEMA_VERSION, SchemaPolicy, Store, Tuning,
        backup::DatabaseCopy,
        files::{DATABASE, create_private_directory, database_size, ensure_free_space},
        lock::lock_alone,
    },
    types::Timestamp,
};

pub(super) const DIRECTORY_PREFIX: &str = ".restore-test-";

/// The result of a restore.
#[derive(Clone, Debug)]
pub struct RestoreResult {
    /// The directory to which the former files were moved.
    pub aside: Option<PathBuf>,
    pub took: Duration,
}

/// Replaces the database of the data directory by a backup. The former files are moved aside.
///
/// # Errors
/// `data_directory_unusable` while a server runs and for a newer schema; `not_found`; `backup_unusable` for a damaged
/// backup and for another program's file. Nothing is changed then.
pub fn restore(
    config: &Config,
    (path, origin): (&Path, &Origin),
    now: Timestamp,
    progress: BackupProgress<'_>,
) -> Result<RestoreResult> {
    restore_copy(config, (path, origin), now, progress).map_err(|error| blame_backup(path, error))
}

fn restore_copy(
    config: &Config,
    (path, origin): (&Path, &Origin),
    now: Timestamp,
    progress: BackupProgress<'_>,
) -> Result<RestoreResult> {
    let started = Instant::now();
    let directory = config.data_dir();
    let _lock = lock_alone(directory)?;
    store::restore::finish(directory, true)?;
    progress("checking", 0, 1);
    let copy = open_sound(path, now)?;
    ensure_origin(path, origin)?;
    ensure_server_key(config, path, &copy)?;
    ensure_free_space(directory, database_size(path))?;
    let had_database = database_path(config).exists();
    let aside = format!("before-restore-{}", now.to_string().replace(['-', ':'], ""));
    store::restore::restore(&copy, directory, &aside, &mut |done, total| progress("restoring", done, total))?;
    Ok(RestoreResult { aside: had_database.then(|| directory.join(aside)), took: started.elapsed() })
}

/// Fills the empty database on the configured server from a backup, and the data directory with the keys that it lacks.
/// Records the event.
///
/// # Errors
/// `data_directory_unusable` while a server runs, for a database with rows and for a newer schema; `not_found`;
/// `backup_unusable` for a damaged backup and for another program's file; `configuration` for another server key;
/// `checks_failed` if the copy differs from the backup or the ledger is inconsistent. The database is empty then.
pub fn restore_to_server(
    config: &Config,
    (path, origin): (&Path, &Origin),
    url: &SecretString,
    event: &AuditEvent,
    progress: BackupProgress<'_>,
) -> Result<DatabaseMove> {
    let clock = Clock::default();
    let mut fill = || {
        progress("checking", 0, 1);
        let copy = open_sound(path, clock.now())?;
        ensure_origin(path, origin)?;
        ensure_server_key(config, path, &copy)?;
        create_private_directory(config.data_dir())?;
        let _lock = lock_backups(&config.backup_directory())?;
        let unpacked = unpack(config, path, &copy, progress)?;
        // The backup may have an older schema.
        Store::open(&unpacked.path().join(DATABASE), &Tuning::SMALL, clock.clone(), SchemaPolicy::Migrate)?.close();
        store::restore::restore_keys(&copy, config.data_dir())?;
        let places = (&DatabasePlace::Directory(unpacked.path().into()), &DatabasePlace::Server(url.clone()));
        database_copy::copy(config, places, event, super::forget_in, progress)
    };
    fill().map_err(|error| blame_backup(path, error))
}

/// Restores the keys that are missing in the data directory, and returns their names. The database stays as it is.
///
/// # Errors
/// `not_found` if the file does not exist or has no missing key. `data_directory_unusable` while a server runs.
/// `backup_unusable` for a damaged backup and for one of another installation. Storage errors.
pub fn restore_keys(config: &Config, path: &Path, now: Timestamp) -> Result<Vec<&'static str>> {
    let directory = config.data_dir();
    let _lock = lock_alone(directory)?;
    let copy = open_sound(path, now).map_err(|error| blame_backup(path, error))?;
    ensure_same_key(config, path, &copy, now)?;
    let restored = store::restore::restore_keys(&copy, directory)?;
    if restored.is_empty() {
        let detail = format!("{} carries no key that is missing in {}.", path.display(), directory.display());
        return Err(Error::new(Code::NotFound).english_detail(detail));
    }
    Ok(restored)
}

/// Requires the seal of the backup's manifest, whose checksum was compared.
fn ensure_origin(path: &Path, origin: &Origin) -> Result<()> {
    match origin.key() {
        Some(key) if !manifest::is_sealed(path, key)? => Err(unproven(
            &path.display().to_string(),
            "no manifest beside it is sealed with the server key of this machine",
        )),
        _ => Ok(()),
    }
}

/// Opens a backup and checks all of it.
fn open_sound(path: &Path, now: Timestamp) -> Result<DatabaseCopy> {
    let copy = DatabaseCopy::open(path, now)?;
    ensure_known_schema(path, &copy)?;
    if let Some(first) = copy.faults()?.structure.first() {
        return Err(damaged(path, first));
    }
    if manifest::verify(path)? == Checksum::Wrong {
        let manifest = manifest::path_of(path);
        let cause =
            format!("its checksum differs from {}. Remove that file to restore it unchecked", manifest.display());
        return Err(damaged(path, &cause));
    }
    Ok(copy)
}

fn damaged(path: &Path, cause: &str) -> Error {
    Error::new(Code::BackupUnusable).english_detail(format!("{} is damaged: {cause}.", path.display()))
}

/// Restores a backup into a temporary directory beside the backups, whose lock the caller holds. The next holder of the lock
/// removes what a killed process left.
pub(super) fn unpack(
    config: &Config,
    path: &Path,
    copy: &DatabaseCopy,
    progress: BackupProgress<'_>,
) -> Result<TempDir> {
    let directory = tempfile::Builder::new().prefix(DIRECTORY_PREFIX).tempdir_in(config.backup_directory());
    let directory = directory.map_err(|error| Error::new(Code::StorageFailed).caused_by(error))?;
    // A migration keeps a copy of the old file and may write the whole database to the log.
    let copies = if copy.schema_version()? < SCHEMA_VERSION { 3 } else { 1 };
    ensure_free_space(directory.path(), database_size(path) * copies + config.backup.free_space.0)?;
    store::restore::restore(copy, directory.path(), "before", &mut |done, total| progress("restoring", done, total))?;
    Ok(directory)
}

/// Reports damage found by the database engine as damage of the backup, the only file that was read.
pub(super) fn blame_backup(path: &Path, error: Error) -> Error {
    match &error.source {
        Some(source) if store::is_damage(&error) => damaged(path, &source.to_string()),
        _ => error,
    }
}

/// Rejects a backup whose server key is known to differ from the key of the current database.
fn ensure_same_key(config: &Config, path: &Path, copy: &DatabaseCopy, now: Timestamp) -> Result<()> {
    let (key_path, database) = (config.data_dir().join(SERVER_KEY), database_path(config));
    let attached = copy.contents()?;
    let Some(key) = attached.get(SERVER_KEY).filter(|_| !key_path.exists() && database.exists()) else {
        return Ok(());
    };
    let key = ServerKey::from_bytes(key);
    // An unreadable database does not prevent the restore of keys: opening it reports the fault.
    let matching =
        DatabaseCopy::open(&database, now).and_then(|database| database.read(|tx| server_key::compare_in(tx, &key)));
    if !matches!(matching, Ok(KeyMatch::Different)) {
        return Ok(());
    }
    let detail = format!(
        "{} carries the {SERVER_KEY} of another installation: {} was filled under another key.",
        path.display(),
        database.display()
    );
    Err(Error::new(Code::BackupUnusable).english_detail(detail))
}

/// Rejects a restore after which there would be no server key.
fn ensure_server_key(config: &Config, path: &Path, copy: &DatabaseCopy) -> Result<()> {
    let key_path = config.data_dir().join(SERVER_KEY);
    if config.auth.secret_key.is_some() || key_path.exists() || copy.contents()?.contains_key(SERVER_KEY) {
        return Ok(());
    }
    let detail = format!(
        "{} carries no {SERVER_KEY}: put its {SERVER_KEY} at {} first, or set auth.secret_key.",
        path.display(),
        key_path.display()
    );
    Err(Error::new(Code::BackupUnusable).english_detail(detail))
}
