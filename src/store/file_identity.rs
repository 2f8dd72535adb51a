//! Whether the files of the database still have their names: one that was deleted or replaced while it was open still
//! takes what is written, and loses all of it when it is closed. That goes for the log as well as for the database.

use std::{
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, StatxFlags, makedev, statx},
    io::Errno,
};

use super::files::with_suffix;
use crate::error::{Code, Error, Result};

/// What the names of the log and of its index end in.
const BELONGINGS: [&str; 2] = ["-wal", "-shm"];

/// The files of an open database, and the names that they had.
#[derive(Clone, Debug)]
pub(super) struct FileIdentity {
    path: PathBuf,
    files: Vec<(PathBuf, Option<File>)>,
}

/// Device and number.
type File = (u64, u64);

impl FileIdentity {
    /// The files as they are now. The database is open.
    pub(super) fn of(path: &Path) -> Self {
        let belongings = BELONGINGS.iter().map(|end| with_suffix(path, end)).filter(|path| path.exists());
        let files = std::iter::once(path.to_owned()).chain(belongings).map(|path| {
            let file = file_at(&path);
            (path, file)
        });
        Self { path: path.to_owned(), files: files.collect() }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the files still have their names.
    pub(super) fn is_unchanged(&self) -> bool {
        self.files.iter().all(|(path, file)| file_at(path) == *file)
    }

    /// Refuses to go on with a file that is lost.
    ///
    /// # Errors
    /// `storage_failed`.
    pub(super) fn ensure_unchanged(&self) -> Result<()> {
        if self.is_unchanged() {
            return Ok(());
        }
        let detail = "The database or its log was deleted or replaced while it was open; nothing was stored.";
        Err(Error::new(Code::StorageFailed).detail(detail))
    }
}

/// The file of that name. It is not asked when the file changed: the system would then note the exact time of the next
/// write, which it does not otherwise, and each sync would have to write that too.
fn file_at(path: &Path) -> Option<File> {
    match statx(CWD, path, AtFlags::empty(), StatxFlags::INO) {
        Ok(file) => Some((makedev(file.stx_dev_major, file.stx_dev_minor), file.stx_ino)),
        // Older than the call, or kept from it.
        Err(Errno::NOSYS | Errno::PERM) => {
            std::fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
        }
        Err(_) => None,
    }
}
