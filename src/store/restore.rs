//! Putting a copy in the place of a data directory's database, so that a kill at any moment leaves a good one.
//!
//! Everything new is first written under other names and synced. Then a note says that it is complete, and from there
//! on whoever opens the directory next finishes what was begun. The old database goes aside together with its log:
//! a log that stayed beside another database would be replayed into it.

use std::path::{Path, PathBuf};

use super::{
    backup::{DatabaseCopy, Progress},
    files::{
        DATABASE, create_private_directory, file_error, parent_of, remove_if_exists, sync, sync_and_rename,
        sync_directory, with_suffix, write_private,
    },
};
use crate::{
    error::{Code, Error, Result},
    keys::KEYS,
};

/// Says that everything new is complete, and holds the name of the directory into which the old goes.
const NOTE: &str = "restore.pending";
const NEW: &str = ".restored";
const LOGS: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Puts the copy in the place of the directory's database and keys. What was there is moved into `aside`, a name in
/// that directory. The caller holds the directory's lock.
///
/// # Errors
/// Storage errors. Until the note is written they leave everything as it was.
pub fn restore(copy: &DatabaseCopy, directory: &Path, aside: &str, progress: Progress<'_>) -> Result<()> {
    discard_prepared(directory)?;
    let database = directory.join(DATABASE);
    copy.extract(&with_suffix(&database, NEW), progress)?;
    sync(&with_suffix(&database, NEW))?;
    let carried = copy.contents()?;
    for name in KEYS {
        if let Some(key) = carried.get(name) {
            write_private(&with_suffix(&directory.join(name), NEW), key)?;
        }
    }
    let note = directory.join(NOTE);
    write_private(&with_suffix(&note, NEW), aside.as_bytes())?;
    sync_and_rename(&with_suffix(&note, NEW), &note)?;
    finish(directory, true).map(drop)
}

/// Puts the keys that the copy carries where they are missing, leaves everything else as it is, and says which.
///
/// # Errors
/// Storage errors.
pub fn restore_keys(copy: &DatabaseCopy, directory: &Path) -> Result<Vec<&'static str>> {
    let carried = copy.contents()?;
    let mut restored = Vec::new();
    for name in KEYS {
        let place = directory.join(name);
        if let Some(key) = carried.get(name).filter(|_| !place.exists()) {
            let new = with_suffix(&place, NEW);
            drop(std::fs::remove_file(&new));
            write_private(&new, key)?;
            sync_and_rename(&new, &place)?;
            restored.push(name);
        }
    }
    Ok(restored)
}

/// Whether a restore was cut off that has yet to be finished.
///
/// # Errors
/// When the directory cannot be looked at.
pub fn is_pending(directory: &Path) -> std::io::Result<bool> {
    directory.join(NOTE).try_exists()
}

/// Whether a restore was cut off before everything new was complete.
pub fn was_interrupted(directory: &Path) -> bool {
    with_suffix(&directory.join(DATABASE), NEW).exists()
}

/// Finishes a restore that was cut off; true if there was one. One that was cut off before everything new was complete
/// has changed nothing; what it has left goes.
///
/// # Errors
/// `data_directory_unusable` when one is running, which is when its note is there and the lock is not ours.
pub fn finish(directory: &Path, is_locked: bool) -> Result<bool> {
    let note = directory.join(NOTE);
    let aside = match std::fs::read_to_string(&note) {
        Ok(aside) => directory.join(aside),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            // Where there is a database, that is the one; elsewhere what was prepared tells that one was wanted.
            if is_locked && directory.join(DATABASE).exists() {
                discard_prepared(directory)?;
            }
            return Ok(false);
        }
        Err(error) => return Err(file_error(&note, error)),
    };
    if !is_locked {
        let detail = format!("The data directory {}: a backup is being restored.", directory.display());
        return Err(Error::new(Code::DataDirectoryUnusable).detail(detail));
    }
    create_private_directory(&aside)?;
    let database = directory.join(DATABASE);
    let logs: Vec<_> = LOGS.iter().map(|suffix| with_suffix(&database, suffix)).collect();
    replace(&database, &logs, &aside)?;
    for name in KEYS {
        replace(&directory.join(name), &[], &aside)?;
    }
    sync_directory(&aside)?;
    sync_directory(directory)?;
    std::fs::remove_file(&note).map_err(|error| file_error(&note, error))?;
    sync_directory(directory)?;
    // Nothing but a key may have been there, and even that not.
    drop(std::fs::remove_dir(&aside));
    Ok(true)
}

/// Moves a file and what belongs to it aside and the new one to its place, as far as that has not been done.
fn replace(file: &Path, belongings: &[PathBuf], aside: &Path) -> Result<()> {
    let new = with_suffix(file, NEW);
    if !new.exists() {
        return Ok(());
    }
    for old in belongings.iter().map(PathBuf::as_path).chain([file]).filter(|old| old.exists()) {
        std::fs::rename(old, aside.join(old.file_name().unwrap_or_default()))
            .map_err(|error| file_error(old, error))?;
    }
    // The old names must be gone for certain before the new one is there: the disk may keep names in another order.
    sync_directory(parent_of(file))?;
    std::fs::rename(&new, file).map_err(|error| file_error(file, error))
}

/// Removes what a restore that was killed early has left.
fn discard_prepared(directory: &Path) -> Result<()> {
    let names = KEYS.iter().chain([&DATABASE, &NOTE]);
    let logs = LOGS.iter().map(|suffix| with_suffix(&with_suffix(&directory.join(DATABASE), NEW), suffix));
    for file in names.map(|name| with_suffix(&directory.join(name), NEW)).chain(logs) {
        remove_if_exists(&file).map_err(|error| file_error(&file, error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory in which everything new is ready: the database, one of the keys, and the note.
    fn prepared() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
        for (name, text) in [(DATABASE, "old"), ("yarrow.db-wal", "old log"), ("yarrow.db-shm", "old index")] {
            put(name, text);
        }
        for (name, text) in [(KEYS[0], "old key"), (KEYS[1], "kept key"), (NOTE, "aside")] {
            put(name, text);
        }
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
        for gone in ["yarrow.db-wal", "yarrow.db-shm", NOTE, "yarrow.db.restored", "secret.key.restored"] {
            assert_eq!(text(directory, gone), None, "{gone}");
        }
        let aside = directory.join("aside");
        for (name, content) in [(DATABASE, "old"), ("yarrow.db-wal", "old log"), (KEYS[0], "old key")] {
            assert_eq!(text(&aside, name).as_deref(), Some(content), "{name}");
        }
    }

    #[test]
    fn a_restore_is_finished_wherever_it_was_cut_off() {
        let moves = ["yarrow.db-wal", "yarrow.db-shm", DATABASE, "", KEYS[0]];
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
    fn without_the_note_nothing_is_touched() {
        let directory = prepared();
        std::fs::remove_file(directory.path().join(NOTE)).unwrap();
        assert!(!finish(directory.path(), false).unwrap());
        assert_eq!(text(directory.path(), "yarrow.db.restored").as_deref(), Some("new"));
        assert!(!finish(directory.path(), true).unwrap());
        assert_eq!(text(directory.path(), DATABASE).as_deref(), Some("old"));
        assert_eq!(text(directory.path(), "yarrow.db.restored"), None);
        assert_eq!(text(directory.path(), KEYS[0]).as_deref(), Some("old key"));
    }
}
