//! The lock of a data directory: its one server holds it for as long as it runs, a command while it opens.

use std::{
    fs::{File, TryLockError},
    path::Path,
    time::Duration,
};

use super::files::{create_private_directory, open_lock, parent_of};
use crate::error::{Code, Error, Result};

/// The file in a data directory whose lock its server holds.
pub const LOCK: &str = "yarrow.lock";
/// How long a server waits for the lock of a command that opens, and how often it looks.
const OPENING: Duration = Duration::from_secs(2);
const LOCK_LOOK: Duration = Duration::from_millis(50);

/// The lock of a data directory, which is made if there is none; nothing when a server holds it.
///
/// # Errors
/// `data_directory_unusable`.
pub fn lock_directory(directory: &Path) -> Result<Option<File>> {
    if !directory.is_dir() {
        create_private_directory(directory).map_err(|error| unusable(directory, &error.detail))?;
        // Its name must outlast the power like what will be in it. A parent that may be passed and not read cannot be
        // synced, and was not made by us.
        let _ = File::open(parent_of(directory)).and_then(|parent| parent.sync_all());
    }
    let opened = open_lock(&directory.join(LOCK));
    let file = opened.map_err(|error| unusable(directory, &error.to_string()))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(unusable(directory, &error.to_string())),
    }
}

/// The lock for a server, which waits a little for a command that has just begun: it holds the lock while it opens.
///
/// # Errors
/// `data_directory_unusable`, also when a server holds it.
pub fn lock_for_server(directory: &Path) -> Result<File> {
    for _ in 0..OPENING.as_millis() / LOCK_LOOK.as_millis() {
        if let Some(lock) = lock_directory(directory)? {
            return Ok(lock);
        }
        std::thread::sleep(LOCK_LOOK);
    }
    lock_directory(directory)?.ok_or_else(|| in_use_error(directory))
}

fn unusable(directory: &Path, why: &str) -> Error {
    Error::new(Code::DataDirectoryUnusable).detail(format!("The data directory {}: {why}", directory.display()))
}

/// What is said of a directory whose lock a server holds.
pub fn in_use_error(directory: &Path) -> Error {
    unusable(directory, "another server is running on it.")
}
