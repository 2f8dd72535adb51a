//! Recognises a data directory by its files, and reports missing files together with the command that recovers them.

use std::path::Path;

use crate::{
    clock::Clock,
    config::Config,
    domain::{
        moderation::words,
        operations::backups::{self, follow::MachineFiles},
    },
    error::{Code, Error, Result},
    keys::{KEYS, SERVER_KEY},
    store::{
        self, SchemaPolicy, Store, Tuning,
        files::{self, DATABASE, NETWORK_LOG, with_suffix},
        restore,
    },
    types::{hex, random_hex, sha256},
};

/// Rejects a directory without an installation. Its name was probably mistyped.
///
/// # Errors
/// `not_found`.
pub fn ensure_initialized(config: &Config) -> Result<()> {
    if config.database.url.is_some() {
        return Ok(());
    }
    let directory = config.data_dir();
    let mut parts = [DATABASE].into_iter().chain(KEYS).map(|name| directory.join(name).try_exists());
    // Files that cannot be inspected count as present; opening them reports the fault.
    if parts.any(|is_there| is_there.unwrap_or(true)) || restore::is_pending(directory).unwrap_or(true) {
        return Ok(());
    }
    let remedy = newest_backup(config).map_or_else(
        || "`yarrow serve` creates one there".to_owned(),
        |newest| format!("There are backups: `yarrow restore {}` restores one there", newest.name),
    );
    let directory = directory.display();
    let detail = format!("There is no installation in {directory}. {remedy}; --data-dir names another directory.");
    Err(Error::new(Code::NotFound).english_detail(detail))
}

/// Changes the owner of files that a first start as root created to the owner of the directory.
pub(crate) fn chown_new_files(directory: &Path) -> Result<()> {
    let databases = [DATABASE, NETWORK_LOG].map(|name| directory.join(name));
    let databases = databases.iter().flat_map(|path| ["", "-wal", "-shm"].map(|suffix| with_suffix(path, suffix)));
    let made = KEYS.into_iter().map(|name| directory.join(name)).chain(databases);
    for path in made.filter(|path| path.exists()) {
        files::chown_to_directory_owner(&path).map_err(|error| files::file_error(&path, error))?;
    }
    Ok(())
}

/// Rejects a server key other than the one the database was created with. A first start creates the key before it
/// inserts the default words, so a database without words is an interrupted first start.
pub(crate) fn ensure_server_key(config: &Config, store: &Store) -> Result<()> {
    let path = config.data_dir().join(SERVER_KEY);
    if config.auth.secret_key.is_some() || !words::are_seeded(store)? || path.exists() {
        return Ok(());
    }
    let remedy = newest_backup(config).map_or_else(
        || "`yarrow restore FILE --keys` takes it from a backup".to_owned(),
        |newest| format!("`yarrow restore {} --keys` takes it from a backup", newest.name),
    );
    let detail = format!(
        "{} is missing, and the codes, seals and encrypted values in the database need it. {remedy} and \
         leaves the database as it is. If auth.secret_key was set, set it again.",
        path.display()
    );
    Err(Error::new(Code::StorageFailed).english_detail(detail))
}

/// Opens the database, unless other files show that a database was lost.
pub(crate) fn open_store(config: &Config, tuning: &Tuning, clock: Clock, policy: SchemaPolicy) -> Result<Store> {
    if let Some(url) = &config.database.url {
        return Store::open_server(url, copy_name(config, policy)?, tuning, clock, policy);
    }
    let directory = config.data_dir();
    let path = directory.join(DATABASE);
    if !path.exists()
        && let Some(reason) = loss_reason(config, directory)
    {
        return Err(lost(config, &format!("{} {reason}", path.display())));
    }
    // A first start creates the file before the keys.
    if has_keys(directory) && store::is_empty(&path) {
        return Err(damaged(config, &path, "it is empty"));
    }
    Store::open(&path, tuning, clock, policy)
}

/// Returns the name of this process among the copies of the service: that of the data directory on this machine for the
/// process that holds its lock, another one for a command beside it. Machines of one template have the same host name, so
/// the id of the data directory is a part of it.
fn copy_name(config: &Config, policy: SchemaPolicy) -> Result<String> {
    if policy == SchemaPolicy::RequireCurrent {
        return random_hex::<16>();
    }
    let directory = config.data_dir();
    let path = directory.canonicalize().map_err(|error| files::file_error(directory, error))?;
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let id = MachineFiles::new(directory).id()?;
    Ok(hex(&sha256(&format!("{machine} {} {id}", path.display()))[..16]))
}

/// Returns the reason why a missing database counts as lost. A first start creates it before the keys, so keys without a
/// database prove a loss.
fn loss_reason(config: &Config, directory: &Path) -> Option<&'static str> {
    if has_keys(directory) {
        return Some("is missing");
    }
    if restore::was_interrupted(directory) {
        return Some("is missing, because a restore was interrupted");
    }
    // To start over, move the backups away.
    newest_backup(config).map(|_| "is missing, although there are backups")
}

/// Adds the command that recovers to an error about a damaged database. Errors about files of other programs stay
/// unchanged.
pub(crate) fn describe_damage(config: &Config, error: Error) -> Error {
    let directory = config.data_dir();
    let is_ours = has_keys(directory) || error.code == Code::StorageFailed;
    match &error.source {
        Some(source) if is_ours && store::is_damage(&error) => {
            damaged(config, &directory.join(DATABASE), &source.to_string()).caused_by(error)
        }
        _ => error,
    }
}

fn damaged(config: &Config, path: &Path, what: &str) -> Error {
    lost(config, &format!("{} is damaged ({what})", path.display()))
}

/// Returns true if the directory holds an installation's keys.
fn has_keys(directory: &Path) -> bool {
    KEYS.iter().any(|key| directory.join(key).exists())
}

/// Returns the backup to suggest: the newest sound one, or else the newest. `None` if the directory cannot be read.
fn newest_backup(config: &Config) -> Option<backups::Backup> {
    let now = Clock::default().now();
    let all = backups::list(config, now).ok()?;
    backups::newest_sound(&all, now).or_else(|| all.first()).cloned()
}

/// Builds the error about a lost file, with the backup to restore.
fn lost(config: &Config, what: &str) -> Error {
    let remedy = match newest_backup(config) {
        Some(newest) => format!(
            "There is a backup of {}: `yarrow restore {}` restores it and moves the current files aside",
            newest.at, newest.name
        ),
        None => format!(
            "There is no backup in {}: if there is one elsewhere, see `yarrow restore --help`",
            config.backup_directory().display()
        ),
    };
    Error::new(Code::StorageFailed).english_detail(format!("{what}. {remedy}."))
}
