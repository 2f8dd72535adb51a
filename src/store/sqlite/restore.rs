//! Replaces the database of a data directory by a backup, safely against a kill at any moment.
//!
//! New files are written and synced under temporary names. Then a marker file declares them complete, and the next
//! process that opens the directory finishes an interrupted restore. The old database moves aside together with its WAL,
//! which SQLite would replay into the new database otherwise.

use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
};

use super::backup::{CopyProgress, DatabaseCopy};
use crate::{
    error::{Code, Error, Result},
    keys::KEYS,
    store::files::{
        DATABASE, NETWORK_LOG, RESTORE_MARKER, RESTORED, create_private_directory, ensure_own, file_error, parent_of,
        remove_if_exists, sync, sync_and_rename, sync_directory, with_suffix, write_private,
    },
};

const LOGS: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Replaces the directory's database and keys by those of the backup. The old ones move to `aside`, a name in that
/// directory. The caller holds the directory's lock.
///
/// # Errors
/// Storage errors. They change nothing until the marker is written.
pub fn restore(copy: &DatabaseCopy, directory: &Path, aside: &str, progress: CopyProgress<'_>) -> Result<()> {
    restore_prepared(directory, aside, |path| Ok((copy.extract(path, progress)?, copy.contents()?)))
}

/// Replaces the directory's database by the file that `prepare` writes, and its keys by those that it returns. The old
/// ones move to `aside`, a name in that directory. The caller holds the directory's lock.
///
/// # Errors
/// Those of `prepare`; storage errors. They change nothing until the marker is written.
pub fn restore_prepared<T>(
    directory: &Path,
    aside: &str,
    prepare: impl FnOnce(&Path) -> Result<(T, BTreeMap<String, Vec<u8>>)>,
) -> Result<T> {
    discard_prepared(directory)?;
    let new = with_suffix(&directory.join(DATABASE), RESTORED);
    let (prepared, carried) = prepare(&new)?;
    sync(&new)?;
    for name in KEYS {
        if let Some(key) = carried.get(name) {
            write_private(&with_suffix(&directory.join(name), RESTORED), key)?;
        }
    }
    let marker = directory.join(RESTORE_MARKER);
    write_private(&with_suffix(&marker, RESTORED), aside.as_bytes())?;
    sync_and_rename(&with_suffix(&marker, RESTORED), &marker)?;
    finish(directory, true)?;
    Ok(prepared)
}

/// Restores missing keys from the backup and nothing else. Returns their names.
///
/// # Errors
/// Storage errors.
pub fn restore_keys(copy: &DatabaseCopy, directory: &Path) -> Result<Vec<&'static str>> {
    let carried = copy.contents()?;
    let mut restored = Vec::new();
    for name in KEYS {
        let place = directory.join(name);
        if let Some(key) = carried.get(name).filter(|_| !place.exists()) {
            let new = with_suffix(&place, RESTORED);
            drop(std::fs::remove_file(&new));
            write_private(&new, key)?;
            sync_and_rename(&new, &place)?;
            restored.push(name);
        }
    }
    Ok(restored)
}

/// Checks that a name leads nowhere else: root finishes restores in directories of the service user.
fn own_name<'name>(marker: &Path, name: &'name str) -> Result<&'name str> {
    let mut components = Path::new(name).components();
    if matches!((components.next(), components.next()), (Some(Component::Normal(_)), None)) {
        return Ok(name);
    }
    let detail = format!("{} does not contain the name of a directory: remove it.", marker.display());
    Err(Error::new(Code::DataDirectoryUnusable).english_detail(detail))
}

/// Returns true if an interrupted restore must be finished.
///
/// # Errors
/// If the directory cannot be read.
pub fn is_pending(directory: &Path) -> std::io::Result<bool> {
    directory.join(RESTORE_MARKER).try_exists()
}

/// Returns true if a restore was interrupted before the new files were complete.
pub fn was_interrupted(directory: &Path) -> bool {
    with_suffix(&directory.join(DATABASE), RESTORED).exists()
}

/// Finishes an interrupted restore and returns true if there was one. Deletes the temporary files of a restore that was
/// interrupted before they were complete.
///
/// # Errors
/// `data_directory_unusable` while a restore runs: the marker exists and another process holds the lock.
pub fn finish(directory: &Path, is_locked: bool) -> Result<bool> {
    let marker = directory.join(RESTORE_MARKER);
    let aside = match std::fs::read_to_string(&marker) {
        Ok(aside) => directory.join(own_name(&marker, &aside)?),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            // Without a database the temporary files stay, because they show that a restore was attempted.
            if is_locked && directory.join(DATABASE).exists() {
                discard_prepared(directory)?;
            }
            return Ok(false);
        }
        Err(error) => return Err(file_error(&marker, error)),
    };
    if !is_locked {
        let detail = format!("The data directory {}: a backup is being restored.", directory.display());
        return Err(Error::new(Code::DataDirectoryUnusable).english_detail(detail));
    }
    ensure_own(&aside)?;
    create_private_directory(&aside)?;
    let database = directory.join(DATABASE);
    let logs: Vec<_> = LOGS.iter().map(|suffix| with_suffix(&database, suffix)).collect();
    move_network_log(&directory.join(NETWORK_LOG), &aside)?;
    replace(&database, &logs, &aside)?;
    for name in KEYS {
        replace(&directory.join(name), &[], &aside)?;
    }
    sync_directory(&aside)?;
    sync_directory(directory)?;
    std::fs::remove_file(&marker).map_err(|error| file_error(&marker, error))?;
    sync_directory(directory)?;
    // Fails unless the directory is empty, which it is if there was nothing to move.
    drop(std::fs::remove_dir(&aside));
    Ok(true)
}

/// Moves the network log aside: users created after the backup are gone, and their numbers in it would be taken for
/// those of later users.
fn move_network_log(log: &Path, aside: &Path) -> Result<()> {
    for suffix in LOGS.into_iter().chain([""]) {
        let old = with_suffix(log, suffix);
        if old.exists() {
            std::fs::rename(&old, aside.join(old.file_name().unwrap_or_default()))
                .map_err(|error| file_error(&old, error))?;
        }
    }
    Ok(())
}

/// Moves a file and its WAL aside and the new file to its name. Completed steps are skipped.
fn replace(file: &Path, companions: &[PathBuf], aside: &Path) -> Result<()> {
    let new = with_suffix(file, RESTORED);
    if !new.exists() {
        return Ok(());
    }
    for old in companions.iter().map(PathBuf::as_path).chain([file]).filter(|old| old.exists()) {
        std::fs::rename(old, aside.join(old.file_name().unwrap_or_default()))
            .map_err(|error| file_error(old, error))?;
    }
    // The old names must be gone before the new one appears: the disk may reorder renames.
    sync_directory(parent_of(file))?;
    std::fs::rename(&new, file).map_err(|error| file_error(file, error))
}

/// Deletes the temporary files of a restore that was killed early.
fn discard_prepared(directory: &Path) -> Result<()> {
    let names = KEYS.iter().chain([&DATABASE, &RESTORE_MARKER]);
    let logs = LOGS.iter().map(|suffix| with_suffix(&with_suffix(&directory.join(DATABASE), RESTORED), suffix));
    for file in names.map(|name| with_suffix(&directory.join(name), RESTORED)).chain(logs) {
        remove_if_exists(&file).map_err(|error| file_error(&file, error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory with complete new files: the database, one of the keys, and the marker.
    fn prepared() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
        for (name, text) in [(DATABASE, "old"), ("yarrow.db-wal", "old log"), ("yarrow.db-shm", "old index")] {
            put(name, text);
        }
        for (name, text) in [(KEYS[0], "old key"), (KEYS[1], "kept key"), (RESTORE_MARKER, "aside")] {
            put(name, text);
        }
        put(NETWORK_LOG, "old requests");
        put("yarrow.db.restored", "new");
        put("secret.key.restored", "new key");
        directory
    }

    fn text(directory: &Path, name: &str) -> Option<String> {
        std::fs::read_to_string(directory.join(name)).ok()
    }

    fn assert_finished(directory: &Path) {
        for (name, content) in [(DATABASE, "new"), (KEYS[0], "new key"), (KEYS[1], "kept key")] {
            assert_eq!(text(directory, name).as_deref(), Some(content), "{name}");
        }
        for gone in
            ["yarrow.db-wal", "yarrow.db-shm", NETWORK_LOG, RESTORE_MARKER, "yarrow.db.restored", "secret.key.restored"]
        {
            assert_eq!(text(directory, gone), None, "{gone}");
        }
        let aside = directory.join("aside");
        for (name, content) in
            [(DATABASE, "old"), ("yarrow.db-wal", "old log"), (NETWORK_LOG, "old requests"), (KEYS[0], "old key")]
        {
            assert_eq!(text(&aside, name).as_deref(), Some(content), "{name}");
        }
    }

    #[test]
    fn finishes_a_restore_interrupted_at_any_step() {
        let moves = [NETWORK_LOG, "yarrow.db-wal", "yarrow.db-shm", DATABASE, "", KEYS[0]];
        for done in 0..=moves.len() {
            let directory = prepared();
            let path = directory.path();
            for name in &moves[..done] {
                std::fs::create_dir_all(path.join("aside")).unwrap();
                match *name {
                    "" => std::fs::rename(path.join("yarrow.db.restored"), path.join(DATABASE)).unwrap(),
                    name => std::fs::rename(path.join(name), path.join("aside").join(name)).unwrap(),
                }
            }
            assert_eq!(finish(path, false).unwrap_err().code, Code::DataDirectoryUnusable);
            assert!(finish(path, true).unwrap());
            assert_finished(path);
            assert!(!finish(path, false).unwrap());
        }
    }

    #[test]
    fn moves_nothing_out_of_the_directory() {
        let elsewhere = tempfile::tempdir().unwrap();
        let path = elsewhere.path().join("new");
        for name in ["", ".", "..", "../new", "aside/../../new", path.to_str().unwrap()] {
            let directory = prepared();
            std::fs::write(directory.path().join(RESTORE_MARKER), name).unwrap();
            assert_eq!(finish(directory.path(), true).unwrap_err().code, Code::DataDirectoryUnusable, "{name}");
            assert_eq!(text(directory.path(), DATABASE).as_deref(), Some("old"));
            assert!(!path.exists());
        }
    }

    #[test]
    fn changes_nothing_without_the_marker() {
        let directory = prepared();
        std::fs::remove_file(directory.path().join(RESTORE_MARKER)).unwrap();
        assert!(!finish(directory.path(), false).unwrap());
        assert_eq!(text(directory.path(), "yarrow.db.restored").as_deref(), Some("new"));
        assert!(!finish(directory.path(), true).unwrap());
        assert_eq!(text(directory.path(), DATABASE).as_deref(), Some("old"));
        assert_eq!(text(directory.path(), "yarrow.db.restored"), None);
        assert_eq!(text(directory.path(), KEYS[0]).as_deref(), Some("old key"));
    }
}
