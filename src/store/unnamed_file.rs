//! A file that gets its name only once it is complete, so that a process that is killed leaves nothing behind.

use std::{
    fs::File,
    io,
    os::fd::AsRawFd,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags, linkat, open},
    io::Errno,
};

use super::files::{chown_to_directory_owner, create_private, file_error, parent_of, sync_directory};
use crate::error::Result;

/// A file without a name, readable by its owner only. It vanishes unless it is published.
pub struct UnnamedFile {
    pub file: File,
    /// The path, on file systems on which every file has one. It is deleted unless it is published.
    named: Option<PathBuf>,
}

impl UnnamedFile {
    /// Creates a file in the directory of a path.
    ///
    /// # Errors
    /// Storage errors.
    pub fn create_beside(path: &Path) -> Result<Self> {
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        match open(parent_of(path), flags, Mode::RUSR | Mode::WUSR) {
            Ok(descriptor) => Ok(Self { file: descriptor.into(), named: None }),
            Err(Errno::OPNOTSUPP | Errno::ISDIR) => {
                Ok(Self { file: create_private(path)?, named: Some(path.to_owned()) })
            }
            Err(error) => Err(file_error(path, error.into())),
        }
    }

    /// Syncs the file and gives it its name.
    ///
    /// # Errors
    /// Storage errors, such as for an existing file.
    pub fn publish(mut self, path: &Path) -> Result<File> {
        let failed = |error: io::Error| file_error(path, error);
        self.file.sync_all().map_err(failed)?;
        if self.named.take().is_none() {
            let source = format!("/proc/self/fd/{}", self.file.as_raw_fd());
            linkat(CWD, source, CWD, path, AtFlags::SYMLINK_FOLLOW).map_err(|error| failed(error.into()))?;
            chown_to_directory_owner(path).map_err(failed)?;
        }
        sync_directory(parent_of(path))?;
        self.file.try_clone().map_err(failed)
    }
}

impl Drop for UnnamedFile {
    fn drop(&mut self) {
        if let Some(path) = &self.named {
            drop(std::fs::remove_file(path));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn appears_only_when_it_is_complete() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("export.json");
        let mut dropped = UnnamedFile::create_beside(&path).unwrap();
        dropped.file.write_all(b"half").unwrap();
        drop(dropped);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        let mut file = UnnamedFile::create_beside(&path).unwrap();
        file.file.write_all(b"whole").unwrap();
        assert!(!path.exists() || file.named.is_some());
        file.publish(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "whole");
        assert!(UnnamedFile::create_beside(&path).and_then(|again| again.publish(&path)).is_err());
    }
}
