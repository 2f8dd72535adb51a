//! What ACME leaves in the data directory: the account's key and the certificate with its key, for their owner only.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io::{self, ErrorKind, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use crate::{
    certificate::AcmeFiles,
    config::Config,
    error::{Error, Result},
    store::files::failed_at,
};

/// Bytes that a chain with its key takes at most, as authorities make them.
const ROOM: usize = 16 << 10;

/// The places of one account and one certificate, in a directory that is there.
pub struct Kept(pub AcmeFiles);

impl Kept {
    pub fn of(config: &Config) -> Result<Self> {
        let files = AcmeFiles::of(config).ok_or_else(|| Error::misconfigured("server.domain: names nothing"))?;
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&files.directory);
        made.map_err(|error| failed_at(&files.directory, error))?;
        Ok(Self(files))
    }

    /// What is in a file, if there is one.
    pub fn read(path: &Path) -> Result<Option<Vec<u8>>> {
        match std::fs::read(path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed_at(path, error)),
        }
    }

    /// Makes sure that there is room for a certificate, by writing as much and deleting it again.
    ///
    /// # Errors
    /// Storage errors.
    pub fn try_room(&self) -> Result<()> {
        let unfinished = unfinished(&self.0.certificate);
        let tried = write_to(&unfinished, &[0; ROOM]);
        let deleted = std::fs::remove_file(&unfinished);
        tried.and(deleted).map_err(|error| failed_at(&unfinished, error))
    }

    /// Puts a file in its place whole or not at all.
    pub fn write(&self, path: &Path, content: &[u8]) -> Result<()> {
        let write = || {
            let unfinished = unfinished(path);
            write_to(&unfinished, content)?;
            std::fs::rename(&unfinished, path)?;
            File::open(&self.0.directory)?.sync_all()
        };
        write().map_err(|error| failed_at(path, error))
    }
}

/// What stands in for a file until it is whole.
fn unfinished(path: &Path) -> PathBuf {
    path.with_extension("unfinished")
}

fn write_to(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(path)?;
    file.write_all(content)?;
    file.sync_all()
}
