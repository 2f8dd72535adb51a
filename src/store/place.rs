//! Which file has a name: one that was deleted or replaced while it was open still takes what is written, and loses all
//! of it when it is closed.

use std::{
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use crate::error::{Code, Error, Result};

/// A file, and the name that it had.
#[derive(Clone, Debug)]
pub(super) struct Place {
    path: PathBuf,
    /// Device and number.
    file: Option<(u64, u64)>,
}

impl Place {
    pub(super) fn of(path: &Path) -> Self {
        Self { path: path.to_owned(), file: file_at(path) }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file still has its name.
    pub(super) fn is_kept(&self) -> bool {
        file_at(&self.path) == self.file
    }

    /// Refuses to go on with a file that is lost.
    ///
    /// # Errors
    /// `storage_failed`.
    pub(super) fn demand(&self) -> Result<()> {
        if self.is_kept() {
            return Ok(());
        }
        let detail = "The database was deleted or replaced while it was open; nothing was stored.";
        Err(Error::new(Code::StorageFailed).detail(detail))
    }
}

fn file_at(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}
