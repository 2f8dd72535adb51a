//! What ACME leaves in the data directory: the account's key and the certificate with its key, for their owner only.

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

/// Bytes that a chain with its key takes at most, as authorities make them.
const ROOM: usize = 16 << 10;

/// The places of one account and one certificate, in a directory that is there.
pub struct Kept(pub AcmeFiles);

impl Kept {
    pub fn of(config: &Config) -> Result<Self> {
        let files = AcmeFiles::of(config).ok_or_else(|| Error::misconfigured("server.domain: names nothing"))?;
        create_private_directory(&files.directory)?;
        Ok(Self(files))
    }

    /// What is in a file, if there is one.
    pub fn read(path: &Path) -> Result<Option<Vec<u8>>> {
        match std::fs::read(path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(file_error(path, error)),
        }
    }

    /// Makes sure that there is room for a certificate, by writing as much and deleting it again.
    ///
    /// # Errors
    /// Storage errors.
    pub fn try_room(&self) -> Result<()> {
        let unfinished = unfinished(&self.0.certificate);
        let tried = write_to(&unfinished, &[0; ROOM]);
        let deleted = std::fs::remove_file(&unfinished).map_err(|error| file_error(&unfinished, error));
        tried.and(deleted)
    }

    /// Puts a file in its place whole or not at all.
    pub fn write(path: &Path, content: &[u8]) -> Result<()> {
        let unfinished = unfinished(path);
        write_to(&unfinished, content)?;
        sync_and_rename(&unfinished, path)
    }
}

/// What stands in for a file until it is whole.
fn unfinished(path: &Path) -> PathBuf {
    path.with_extension("unfinished")
}

/// Writes a new file, also where one was left that is not whole.
fn write_to(path: &Path, content: &[u8]) -> Result<()> {
    remove_if_exists(path).map_err(|error| file_error(path, error))?;
    write_private(path, content)
}
