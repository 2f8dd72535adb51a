//! What stands beside a backup: how large it is, its checksum, and what was found in it when it was made.
//!
//! The database engine notices damage in the structure of a file, and nothing of damage inside the rows; the checksum
//! does. And what was found can be read without the backup, which may be in a bucket and large.

use std::{
    io::{Read, Write},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{Findings, UNFINISHED};
use crate::{
    error::{Error, Result},
    store::files::{self, file_error},
    types::named,
};

pub(super) const SUFFIX: &str = ".json";
/// More than any manifest has.
const LARGEST: u64 = 64 << 10;

/// What is kept beside a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    pub sha256: String,
    pub bytes: u64,
    pub findings: Findings,
}

named! {
    /// How a backup stands to what is kept beside it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Checksum {
        Right = "right",
        Wrong = "wrong",
        /// Nothing is beside it: it is from elsewhere, or somebody moved it alone.
        Unknown = "unknown",
    }
}

/// The name of the manifest of this backup, be it of a file or in a bucket.
pub(super) fn name_of(backup: &str) -> String {
    format!("{backup}{SUFFIX}")
}

/// Where the manifest of this backup is.
pub(super) fn beside(backup: &Path) -> PathBuf {
    files::with_suffix(backup, SUFFIX)
}

/// Writes the manifest of an unfinished backup to where it belongs beside the finished one, which must come after it:
/// a backup that has its name has its manifest too.
pub(super) fn write(unfinished: &Path, path: &Path, findings: Findings) -> Result<()> {
    let bytes = std::fs::metadata(unfinished).map_err(|error| file_error(unfinished, error))?.len();
    let manifest = Manifest { sha256: files::checksum(unfinished)?, bytes, findings };
    keep(path, &serde_json::to_vec_pretty(&manifest).map_err(Error::internal)?)
}

/// Puts a manifest beside where its backup is or will be.
pub(super) fn keep(path: &Path, json: &[u8]) -> Result<()> {
    let place = beside(path);
    let draft = files::with_suffix(&place, UNFINISHED);
    files::create_private(&draft)?.write_all(json).map_err(|error| file_error(&draft, error))?;
    files::sync_and_rename(&draft, &place)
}

/// What stands beside a backup; nothing if there is nothing, or nothing that can be understood.
///
/// # Errors
/// Storage errors.
pub fn read(backup: &Path) -> Result<Option<Manifest>> {
    let place = beside(backup);
    let file = match std::fs::File::open(&place) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(|error| file_error(&place, error))?,
    };
    let mut json = Vec::new();
    file.take(LARGEST).read_to_end(&mut json).map_err(|error| file_error(&place, error))?;
    Ok(serde_json::from_slice(&json).ok())
}

/// Holds a backup against what stands beside it. Reads all of it.
///
/// # Errors
/// Storage errors.
pub fn verify(backup: &Path) -> Result<Checksum> {
    let Some(manifest) = read(backup)? else {
        let is_there = beside(backup).exists();
        return Ok(if is_there { Checksum::Wrong } else { Checksum::Unknown });
    };
    let is_right = files::checksum(backup)? == manifest.sha256;
    Ok(if is_right { Checksum::Right } else { Checksum::Wrong })
}
