//! ACME's files in the data directory: the account key and the certificate with its key, readable by the owner only.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
};

use crate::{
    certificate::AcmeFiles,
    config::Config,
    error::{Error, Result},
    store::files::{create_private_directory, file_error, remove_if_exists, sync_and_rename, write_private},
};

/// Maximum size of a chain with its key, in bytes.
const MAX_SIZE: usize = 16 << 10;

/// The files of one account and one certificate, in an existing directory.
pub struct AcmeStorage(pub AcmeFiles);

impl AcmeStorage {
    pub fn of(config: &Config) -> Result<Self> {
        let files = AcmeFiles::of(config).ok_or_else(|| Error::misconfigured("server.domain: contains no domain"))?;
        create_private_directory(&files.directory)?;
        Ok(Self(files))
    }

    /// Returns a file's content, if it exists.
    pub fn read(path: &Path) -> Result<Option<Vec<u8>>> {
        match std::fs::read(path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(file_error(path, error)),
        }
    }

    /// Checks for disk space by writing a file of the size of a certificate and deleting it.
    ///
    /// # Errors
    /// Storage errors.
    pub fn check_space(&self) -> Result<()> {
        let unfinished = unfinished(&self.0.certificate);
        let written = write_to(&unfinished, &[0; MAX_SIZE]);
        let deleted = std::fs::remove_file(&unfinished).map_err(|error| file_error(&unfinished, error));
        written.and(deleted)
    }

    /// Writes a file atomically.
    pub fn write(path: &Path, content: &[u8]) -> Result<()> {
        let unfinished = unfinished(path);
        write_to(&unfinished, content)?;
        sync_and_rename(&unfinished, path)
    }
}

/// Returns the temporary name of a file being written.
fn unfinished(path: &Path) -> PathBuf {
    path.with_extension("unfinished")
}

/// Writes a new file, and replaces an unfinished one.
fn write_to(path: &Path, content: &[u8]) -> Result<()> {
    remove_if_exists(path).map_err(|error| file_error(path, error))?;
    write_private(path, content)
}
