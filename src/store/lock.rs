//! The lock of a data directory. A server holds it while it runs, a command while it opens the database.

use std::{
    fs::{File, TryLockError},
    io::{Read as _, Seek as _, Write as _},
    iter,
    path::Path,
    time::Duration,
};

use super::files::{
    DATABASE, NETWORK_LOG, RESTORE_MARKER, RESTORED, create_private_directory, ensure_own, open_lock,
    open_lock_for_reading, parent_of,
};
use crate::{
    error::{Code, Error, Result},
    keys::KEYS,
};

/// The lock file of a data directory.
pub const LOCK: &str = "yarrow.lock";
/// Timeout for the lock of a command that is opening the database.
const OPENING_WAIT: Duration = Duration::from_secs(2);
/// Interval between attempts.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// Locks a data directory, creating it if it is missing. Returns none if a server holds the lock.
///
/// # Errors
/// `data_directory_unusable`.
pub fn lock_directory(directory: &Path) -> Result<Option<File>> {
    if !directory.is_dir() {
        create_private_directory(directory).map_err(|error| unusable(directory, &error.detail))?;
        // The name of the directory must survive a power cut. A parent that cannot be opened cannot be synced.
        let _ = File::open(parent_of(directory)).and_then(|parent| parent.sync_all());
    }
    for name in known_names() {
        ensure_own(&directory.join(name))?;
    }
    let opened = open_lock(&directory.join(LOCK));
    let file = opened.map_err(|error| unusable(directory, &error.to_string()))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(unusable(directory, &error.to_string())),
    }
}

/// Locks a data directory for a server, or for work that no server may do meanwhile. Waits briefly for a command that is
/// opening the database, and for a server that ends.
///
/// # Errors
/// `data_directory_unusable`, such as when another server holds the lock.
pub fn lock_alone(directory: &Path) -> Result<File> {
    for _ in 0..OPENING_WAIT.as_millis() / RETRY_INTERVAL.as_millis() {
        if let Some(lock) = lock_directory(directory)? {
            return Ok(lock);
        }
        std::thread::sleep(RETRY_INTERVAL);
    }
    lock_directory(directory)?.ok_or_else(|| in_use_error(directory))
}

/// Writes the server's base URL into the lock file, for commands that call the server.
///
/// # Errors
/// Those of the file system.
pub fn publish_address(mut lock: &File, url: &str) -> std::io::Result<()> {
    lock.set_len(0)?;
    lock.rewind()?;
    lock.write_all(url.as_bytes())
}

/// Returns the base URL of the server that holds the directory's lock.
pub fn running_server(directory: &Path) -> Option<String> {
    let mut file = open_lock_for_reading(&directory.join(LOCK)).ok()?;
    let is_held = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
    let mut url = String::new();
    file.read_to_string(&mut url).ok()?;
    (is_held && !url.is_empty()).then_some(url)
}

/// Names of files and directories that the program opens in a data directory.
fn known_names() -> impl Iterator<Item = String> {
    let of_database = |name| ["", "-wal", "-shm", "-journal"].map(|suffix| format!("{name}{suffix}"));
    let others = [LOCK, "backups", "acme", "machine.id", "take-over", "superseded.json", "fencing", RESTORE_MARKER]
        .into_iter()
        .chain(KEYS)
        .map(ToOwned::to_owned);
    let restored = iter::once(DATABASE).chain(KEYS).map(|name| format!("{name}{RESTORED}"));
    [DATABASE, NETWORK_LOG].into_iter().flat_map(of_database).chain(others).chain(restored)
}

fn unusable(directory: &Path, why: &str) -> Error {
    Error::new(Code::DataDirectoryUnusable).english_detail(format!("The data directory {}: {why}", directory.display()))
}

/// Creates the error for a directory that a server has locked.
fn in_use_error(directory: &Path) -> Error {
    unusable(directory, "another server is running on it.")
}
