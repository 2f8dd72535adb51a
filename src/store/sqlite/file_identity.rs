//! Detects database files that were deleted or replaced while open.
//!
//! Such a file still accepts writes, and all of them are lost when it is closed. The same holds for the WAL.

use std::{
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, StatxFlags, makedev, statx},
    io::Errno,
};

use crate::error::{Code, Error, Result};
use crate::store::files::with_suffix;

/// Suffixes of the WAL and of its index.
const WAL_SUFFIXES: [&str; 2] = ["-wal", "-shm"];

/// The files of an open database by name, with their identity at the time of opening.
#[derive(Clone, Debug)]
pub(super) struct FileIdentity {
    path: PathBuf,
    files: Vec<(PathBuf, Option<Inode>)>,
}

/// Device and inode number.
type Inode = (u64, u64);

impl FileIdentity {
    /// Records the current files of an open database.
    pub(super) fn of(path: &Path) -> Self {
        let wal = WAL_SUFFIXES.iter().map(|suffix| with_suffix(path, suffix)).filter(|path| path.exists());
        let files = std::iter::once(path.to_owned()).chain(wal).map(|path| {
            let inode = inode_of(&path);
            (path, inode)
        });
        Self { path: path.to_owned(), files: files.collect() }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true if each name still refers to the same file.
    pub(super) fn is_unchanged(&self) -> bool {
        self.files.iter().all(|(path, inode)| inode_of(path) == *inode)
    }

    /// # Errors
    /// `storage_failed` if a file was deleted or replaced.
    pub(super) fn ensure_unchanged(&self) -> Result<()> {
        if self.is_unchanged() {
            return Ok(());
        }
        let detail = (
            "The database or its write-ahead log was deleted or replaced while it was open; nothing was stored.",
            "数据库或其日志在打开期间被删除或替换，没有保存任何内容。",
        );
        Err(Error::new(Code::StorageFailed).detail(detail))
    }
}

/// Returns the inode of a name. Requests only that field from `statx`. A query of the change time would make Linux
/// record the exact time of the next write, and each sync would write that as well.
fn inode_of(path: &Path) -> Option<Inode> {
    match statx(CWD, path, AtFlags::empty(), StatxFlags::INO) {
        Ok(file) => Some((makedev(file.stx_dev_major, file.stx_dev_minor), file.stx_ino)),
        // Old kernels lack the call, some sandboxes forbid it.
        Err(Errno::NOSYS | Errno::PERM) => {
            std::fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
        }
        Err(_) => None,
    }
}
