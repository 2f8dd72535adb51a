//! The manifest beside a backup: size, checksum and findings.
//!
//! The database engine detects damage in a file's structure but not inside its rows; the checksum does. The manifest can
//! also be read without the backup, which may be large and in a bucket.

use std::{
    io::{Read, Write},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{Findings, UNFINISHED};
use crate::{
    error::{Error, Result},
    keys::ServerKey,
    store::files::{self, file_error},
    types::{hex, named_enum},
};

pub(super) const SUFFIX: &str = ".json";
/// A manifest is much smaller.
pub(super) const MAX_BYTES: u64 = 64 << 10;

/// A manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    pub sha256: String,
    pub bytes: u64,
    pub findings: Findings,
    /// An HMAC of the rest and of the backup's name under the server key. Former versions wrote none.
    #[serde(default)]
    seal: Option<String>,
}

impl Manifest {
    /// Returns true if the server key sealed this manifest for the backup with this name.
    pub(super) fn is_sealed(&self, name: &str, key: &ServerKey) -> bool {
        self.seal.as_ref().is_some_and(|seal| *seal == self.seal_under(name, key))
    }

    fn seal_under(&self, name: &str, key: &ServerKey) -> String {
        let findings = serde_json::to_string(&self.findings).unwrap_or_default();
        hex(&key.authenticate(&["backup", name, &self.sha256, &self.bytes.to_string(), &findings]))
    }
}

named_enum! {
    /// The comparison of a backup with its manifest.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Checksum {
        Right = "right",
        Wrong = "wrong",
        /// The backup has no manifest: somebody moved it alone.
        Unknown = "unknown",
    }
}

/// Returns the name of a backup's manifest.
pub(super) fn name_of(backup: &str) -> String {
    format!("{backup}{SUFFIX}")
}

/// Returns the path of a backup's manifest.
pub(super) fn path_of(backup: &Path) -> PathBuf {
    files::with_suffix(backup, SUFFIX)
}

/// Writes the manifest for the final path of an unfinished backup. The backup is renamed afterwards, so that a finished
/// one always has its manifest.
pub(super) fn write(unfinished: &Path, path: &Path, findings: Findings, key: &ServerKey) -> Result<()> {
    let bytes = std::fs::metadata(unfinished).map_err(|error| file_error(unfinished, error))?.len();
    let mut manifest = Manifest { sha256: files::checksum(unfinished)?, bytes, findings, seal: None };
    manifest.seal = Some(manifest.seal_under(&file_name_of(path), key));
    store(path, &serde_json::to_vec_pretty(&manifest).map_err(Error::internal)?)
}

/// Stores a manifest for the backup at this path.
pub(super) fn store(backup: &Path, json: &[u8]) -> Result<()> {
    let path = path_of(backup);
    let unfinished = files::with_suffix(&path, UNFINISHED);
    files::create_private(&unfinished)?.write_all(json).map_err(|error| file_error(&unfinished, error))?;
    files::sync_and_rename(&unfinished, &path)
}

/// Reads a backup's manifest. Nothing if it is missing or invalid.
///
/// # Errors
/// Storage errors.
pub fn read(backup: &Path) -> Result<Option<Manifest>> {
    let path = path_of(backup);
    let file = match std::fs::File::open(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(|error| file_error(&path, error))?,
    };
    let mut json = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut json).map_err(|error| file_error(&path, error))?;
    Ok(serde_json::from_slice(&json).ok())
}

/// Returns true if the server key sealed the manifest of the backup at this path.
///
/// # Errors
/// Storage errors.
pub(super) fn is_sealed(backup: &Path, key: &ServerKey) -> Result<bool> {
    Ok(read(backup)?.is_some_and(|manifest| manifest.is_sealed(&file_name_of(backup), key)))
}

fn file_name_of(backup: &Path) -> String {
    backup.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Compares a backup with its manifest. Reads the whole backup.
///
/// # Errors
/// Storage errors.
pub fn verify(backup: &Path) -> Result<Checksum> {
    let Some(manifest) = read(backup)? else {
        let exists = path_of(backup).exists();
        return Ok(if exists { Checksum::Wrong } else { Checksum::Unknown });
    };
    let is_right = files::checksum(backup)? == manifest.sha256;
    Ok(if is_right { Checksum::Right } else { Checksum::Wrong })
}
