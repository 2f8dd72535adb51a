//! What ACME leaves in the data directory: the account's key and the certificate with its key, for their owner only.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io::{ErrorKind, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use crate::{
    config::Config,
    error::Result,
    store::backup::failed_at,
    types::{hex, sha256_of_parts},
};

/// The places of one account and one certificate.
pub struct Kept {
    directory: PathBuf,
    /// One account a certificate authority.
    pub account: PathBuf,
    /// Chain and key in one file, so that they cannot come apart. One for each list of names.
    pub certificate: PathBuf,
}

impl Kept {
    pub fn of(config: &Config) -> Result<Self> {
        let directory = config.installation.data_dir.0.join("acme");
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&directory);
        made.map_err(|error| failed_at(&directory, error))?;
        let short = |parts: &[&[u8]]| hex(&sha256_of_parts(parts)[..6]);
        let names: Vec<_> = config.server.domain.iter().map(String::as_bytes).collect();
        let first = config.server.domain.first().map(String::as_str).unwrap_or_default();
        Ok(Self {
            account: directory.join(format!("account-{}.json", short(&[config.acme.directory.as_bytes()]))),
            certificate: directory.join(format!("{first}-{}.pem", short(&names))),
            directory,
        })
    }

    /// What is in a file, if there is one.
    pub fn read(path: &Path) -> Result<Option<Vec<u8>>> {
        match std::fs::read(path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed_at(path, error)),
        }
    }

    /// Puts a file in its place whole or not at all.
    pub fn write(&self, path: &Path, content: &[u8]) -> Result<()> {
        let unfinished = path.with_extension("unfinished");
        let write = || {
            let mut options = OpenOptions::new();
            let mut file = options.create(true).truncate(true).write(true).mode(0o600).open(&unfinished)?;
            file.write_all(content)?;
            file.sync_all()?;
            std::fs::rename(&unfinished, path)?;
            File::open(&self.directory)?.sync_all()
        };
        write().map_err(|error| failed_at(path, error))
    }
}
