//! The proof that a backup comes from this installation: seals under the server key.
//!
//! Whoever writes to a bucket, or to a directory of backups, could otherwise plant a database with an owner of their own.

use secrecy::ExposeSecret;

use crate::{
    config::Config,
    error::{Code, Error, Result},
    keys::{SERVER_KEY, ServerKey},
    store::files::file_error,
};

/// The proof that is asked of backups.
#[derive(Clone, Debug)]
pub enum Origin {
    /// They must be sealed with this key.
    Sealed(ServerKey),
    /// There is no key to check them with, or the operator vouches for them.
    Unproven,
}

impl Origin {
    /// Returns the proof that the server key of this machine gives, if there is one: configured, or in the data directory.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn at_hand(config: &Config) -> Result<Self> {
        if let Some(key) = &config.auth.secret_key {
            return Ok(Self::Sealed(ServerKey::from_bytes(key.expose_secret().as_bytes())));
        }
        let path = config.data_dir().join(SERVER_KEY);
        match std::fs::read(&path) {
            Ok(key) => Ok(Self::Sealed(ServerKey::from_bytes(&key))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::Unproven),
            Err(error) => Err(file_error(&path, error)),
        }
    }

    /// Returns the proof for a restore. `is_waived` says that the operator vouches for the backup.
    ///
    /// # Errors
    /// `backup_unusable` without a key, unless waived; those of the file system.
    pub fn for_restore(config: &Config, is_waived: bool) -> Result<Self> {
        if is_waived {
            return Ok(Self::Unproven);
        }
        match Self::at_hand(config)? {
            Self::Unproven => Err(unproven("The backup", "no server key is at hand to check it with")),
            sealed @ Self::Sealed(_) => Ok(sealed),
        }
    }

    pub fn key(&self) -> Option<&ServerKey> {
        match self {
            Self::Sealed(key) => Some(key),
            Self::Unproven => None,
        }
    }
}

/// Returns the error of a backup without proof.
pub(super) fn unproven(name: &str, cause: &str) -> Error {
    Error::new(Code::BackupUnusable).english_detail(format!(
        "{name}: nothing proves that it comes from this installation: {cause}. Set auth.secret_key or put its {SERVER_KEY} \
         into the data directory; or make sure of the origin yourself and repeat with --unproven."
    ))
}
