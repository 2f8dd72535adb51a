//! A warm standby: the newest backup and the changes since, pulled into the directory of backups of a data directory.
//!
//! A restore there downloads only what is missing. The standby claims no term and stops nobody.

use std::path::{Path, PathBuf};

use super::{
    super::{
        BackupProgress,
        manifest::{self, Checksum},
        offsite::{self, Bucket},
        origin::Origin,
        retention,
    },
    changes_object::{CHANGES, ChangesObject},
};
use crate::{
    config::Config,
    error::{Code, Error, Result},
    store::{
        files::{self, file_error, sync_and_rename, with_suffix},
        page_changes::PageChanges,
    },
    types::Timestamp,
};

/// A standby of one data directory.
pub struct Standby<'a> {
    config: &'a Config,
    bucket: Bucket,
    origin: Origin,
    /// The backup that is on this machine.
    base: Option<String>,
    /// The name of the last object that was pulled.
    last: Option<String>,
}

/// The result of a pull.
#[derive(Clone, Debug, Default)]
pub struct PulledChanges {
    /// The backup that the changes build on.
    pub base: Option<String>,
    /// Downloaded objects.
    pub objects: usize,
    /// The time of the newest state.
    pub at: Option<Timestamp>,
}

impl<'a> Standby<'a> {
    /// # Errors
    /// `configuration` without a bucket.
    pub fn new(config: &'a Config) -> Result<Self> {
        let (bucket, origin) = (offsite::require_bucket(config)?, Origin::at_hand(config)?);
        Ok(Self { config, bucket, origin, base: None, last: None })
    }

    /// Downloads the newest backup with changes, and the changes since the last pull.
    ///
    /// # Errors
    /// Those of the provider; storage errors.
    pub fn pull(&mut self, now: Timestamp, progress: BackupProgress<'_>) -> Result<PulledChanges> {
        let mut changes = self.bucket.list_changes_after(self.last.as_deref())?;
        let Some(newest) = changes.last().cloned() else { return Ok(PulledChanges::default()) };
        changes.retain(|object| object.base == newest.base);
        if self.base.as_ref() != Some(&newest.base) {
            self.fetch_base(&newest.base, progress)?;
            self.base = Some(newest.base.clone());
        }
        let total = changes.len();
        for (done, object) in changes.iter().enumerate() {
            progress("fetching", done as u64, total as u64);
            self.fetch(object)?;
        }
        self.last = Some(newest.name);
        self.remove_old(now)?;
        Ok(PulledChanges { base: Some(newest.base), objects: total, at: Some(newest.at) })
    }

    fn fetch_base(&self, name: &str, progress: BackupProgress<'_>) -> Result<()> {
        let path = self.config.backup_directory().join(name);
        if path.is_file() && manifest::verify(&path)? == Checksum::Right {
            return Ok(());
        }
        self.bucket.fetch(self.config, name, progress).map(drop)
    }

    fn fetch(&self, object: &ChangesObject) -> Result<()> {
        let path = cached_path(self.config, object);
        if path.is_file() {
            return Ok(());
        }
        files::create_private_directory(files::parent_of(files::parent_of(&path)))?;
        files::create_private_directory(files::parent_of(&path))?;
        let unfinished = with_suffix(&path, ".unfinished");
        files::remove_if_exists(&unfinished).map_err(|error| file_error(&unfinished, error))?;
        let mut file = files::create_private(&unfinished)?;
        self.bucket.storage.fetch(&self.bucket.key(&object.name), object.bytes, &mut file, &mut |_, _| ())?;
        if PageChanges::read(&unfinished, self.origin.key())?.is_none() {
            let detail = format!("{} in the bucket is damaged or not sealed with the server key.", object.name);
            return Err(Error::new(Code::ProviderFailed).english_detail(detail));
        }
        sync_and_rename(&unfinished, &path)
    }

    /// Deletes backups and changes past their retention.
    fn remove_old(&self, now: Timestamp) -> Result<()> {
        retention::prune(self.config, now)?;
        let directory = self.config.backup_directory();
        let oldest = now.minus(self.config.backup.follow_keep);
        for term in entries(&directory.join(CHANGES)) {
            for file in entries(&term) {
                let name = file.strip_prefix(&directory).ok().and_then(Path::to_str);
                if name.and_then(|name| ChangesObject::parse(name, 0)).is_some_and(|object| object.at < oldest) {
                    files::remove_if_exists(&file).map_err(|error| file_error(&file, error))?;
                }
            }
        }
        Ok(())
    }
}

/// Returns the path of an object that a standby has pulled.
pub(super) fn cached_path(config: &Config, object: &ChangesObject) -> PathBuf {
    config.backup_directory().join(&object.name)
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}
