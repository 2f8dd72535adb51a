//! The newest backups with their findings and the state of their off-site copies, without reading the backups.

use std::path::PathBuf;

use super::{Backup, BackupStatus, list, manifest, parse_name};
use crate::{
    config::Config,
    error::Result,
    types::{Timestamp, named_enum},
};

named_enum! {
    /// The contents of a backup, as checked when it was made.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum BackupContents {
        Sound = "sound",
        Inconsistent = "inconsistent",
        /// The manifest is missing or invalid.
        Unknown = "unknown",
    }
}

named_enum! {
    /// The state of the off-site copy of a backup.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum OffsiteState {
        Uploaded = "uploaded",
        Waiting = "waiting",
        /// The last upload failed.
        Failed = "failed",
        /// No bucket is configured.
        Off = "off",
    }
}

/// A backup with its findings and the state of its off-site copy.
#[derive(Clone, Debug)]
pub struct BackupSummary {
    pub backup: Backup,
    pub contents: BackupContents,
    pub offsite: OffsiteState,
}

/// Returns the newest backups of this machine, newest first.
///
/// # Errors
/// Storage errors.
pub fn summarize(config: &Config, offsite: &BackupStatus, now: Timestamp, most: usize) -> Result<Vec<BackupSummary>> {
    let newest_uploaded = offsite.last.as_ref().and_then(|last| parse_name(&last.name, PathBuf::new(), last.bytes));
    let state_of = |backup: &Backup| match &newest_uploaded {
        _ if config.backup.s3_endpoint.is_none() => OffsiteState::Off,
        Some(uploaded) if backup.at <= uploaded.at => OffsiteState::Uploaded,
        _ if offsite.failure.is_some() => OffsiteState::Failed,
        _ => OffsiteState::Waiting,
    };
    let backups = list(config, now)?.into_iter().take(most);
    Ok(backups
        .map(|backup| {
            let contents = match manifest::read(&backup.path) {
                Ok(Some(manifest)) if manifest.findings.is_sound() => BackupContents::Sound,
                Ok(Some(_)) => BackupContents::Inconsistent,
                Ok(None) | Err(_) => BackupContents::Unknown,
            };
            BackupSummary { contents, offsite: state_of(&backup), backup }
        })
        .collect())
}
