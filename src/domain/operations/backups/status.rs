//! The stored outcome of the last backup and the last upload.

use serde::{Deserialize, Serialize};

use super::{findings, list, retention::newest};
use crate::{
    core::Core,
    domain::operations::settings,
    error::Result,
    store::{Read, Write},
    types::Timestamp,
};

pub(super) const LAST_BACKUP: &str = "backup.last";
pub(super) const LAST_FAILURE: &str = "backup.failure";

/// The last successful backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastBackup {
    /// Milliseconds since 1970.
    pub(super) at: i64,
    pub name: String,
    pub bytes: u64,
    pub took_ms: u64,
    pub is_sound: bool,
}

/// The last failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupFailure {
    /// Milliseconds since 1970.
    pub(super) at: i64,
    pub code: String,
    pub detail: String,
}

impl LastBackup {
    pub fn at(&self) -> Timestamp {
        Timestamp(self.at)
    }
}

impl BackupFailure {
    pub fn at(&self) -> Timestamp {
        Timestamp(self.at)
    }
}

/// The status of backups, or of uploads, without reading the directory or the bucket.
#[derive(Clone, Debug, Default)]
pub struct BackupStatus {
    /// The newest backup. For uploads, with the time at which it was last found in the bucket.
    pub last: Option<LastBackup>,
    /// The last failure, if nothing succeeded since.
    pub failure: Option<BackupFailure>,
}

impl BackupStatus {
    /// Reads the status under these names. Ignores future times, which were stored while the clock was ahead.
    pub(super) fn load_in(tx: &Read<'_>, last: &str, failure: &str) -> Result<Self> {
        let (last, failure): (Option<LastBackup>, Option<BackupFailure>) =
            (settings::find_json_in(tx, last)?, settings::find_json_in(tx, failure)?);
        let last = last.filter(|last| last.at() <= tx.now);
        let is_newer = |failure: &BackupFailure| last.as_ref().is_none_or(|last| last.at <= failure.at);
        let failure = failure.filter(|failure| failure.at() <= tx.now && is_newer(failure));
        Ok(Self { last, failure })
    }
}

/// Returns the status of backups on this machine.
pub fn status_in(tx: &Read<'_>) -> Result<BackupStatus> {
    BackupStatus::load_in(tx, LAST_BACKUP, LAST_FAILURE)
}

/// Replaces the stored status by that of the newest backup in the directory. A restored database knows only the status
/// of the time at which it was backed up.
///
/// # Errors
/// Storage errors.
pub fn adopt_newest(core: &Core) -> Result<()> {
    let now = core.clock.now();
    let existing = list(&core.config, now)?;
    let last = newest(&existing, now).map(|backup| LastBackup {
        at: backup.at.0,
        name: backup.name.clone(),
        bytes: backup.bytes,
        took_ms: 0,
        is_sound: matches!(findings(&backup.path, now), Ok(Some(found)) if found.is_sound()),
    });
    let adopt = move |tx: &Write<'_>| {
        forget_in(tx)?;
        last.as_ref().map_or(Ok(()), |last| settings::put_json_in(tx, LAST_BACKUP, last))
    };
    core.store.write(adopt).wait()
}

/// Forgets the backups of another directory, in a database that was copied from there.
///
/// # Errors
/// Storage errors.
pub fn forget_in(tx: &Write<'_>) -> Result<()> {
    settings::remove_in(tx, LAST_BACKUP)?;
    settings::remove_in(tx, LAST_FAILURE)
}

/// Stores an outcome.
pub(super) fn store_outcome(core: &Core, name: &'static str, outcome: impl Serialize + Send + 'static) -> Result<()> {
    core.store.write(move |tx| settings::put_json_in(tx, name, &outcome)).wait()
}
