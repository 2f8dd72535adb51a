//! Copies of backups in an S3-compatible bucket, under the same names and pruned by the same rules.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use super::{
    Backup, BackupFailure, BackupStatus, Backups, LastBackup, PREFIX,
    create::RETRY_AFTER,
    findings, list, lock_backups,
    manifest::{self, Manifest},
    newest_first, parse_name, retention,
    status::store_outcome,
};
use crate::{
    config::{BackupConfig as Settings, Config, S3Addressing},
    error::{Code, Error, Result},
    providers::{
        Failure, FailureKind,
        object_storage::{self, ObjectStorage},
    },
    store::{Read, files},
    types::Timestamp,
};

const LAST_UPLOAD: &str = "backup.upload";
const LAST_FAILURE: &str = "backup.upload_failure";

/// The result of an upload.
#[derive(Clone, Debug, Default)]
pub struct Uploaded {
    pub uploaded: Vec<Backup>,
    pub deleted: Vec<Backup>,
    /// The reason why expired backups stay in the bucket. The credentials may lack the right to delete.
    pub not_deleted: Option<String>,
    /// The newest backup in the bucket.
    pub newest: Option<Backup>,
}

/// Returns the configured bucket, if there is one.
///
/// # Errors
/// `provider_failed` when endpoint and bucket form no valid URL.
pub fn bucket(config: &Config) -> Result<Option<Bucket>> {
    let settings = &config.backup;
    let Some(endpoint) = &settings.s3_endpoint else { return Ok(None) };
    let storage = ObjectStorage::new(&object_storage::ObjectStorageSettings {
        endpoint: endpoint.clone(),
        bucket: settings.s3_bucket.clone(),
        region: settings.s3_region.clone(),
        bucket_in_path: settings.s3_addressing == S3Addressing::Path,
        access_key_id: settings.s3_access_key_id.clone(),
        secret_access_key: settings.s3_secret_access_key.clone().unwrap_or_default(),
    })?;
    Ok(Some(Bucket { storage, prefix: settings.s3_prefix.clone() }))
}

/// Returns the configured bucket.
///
/// # Errors
/// `configuration` when there is none; as [`bucket`].
pub fn require_bucket(config: &Config) -> Result<Bucket> {
    let missing =
        || Error::new(Code::Configuration).english_detail("backup.s3_endpoint: is not set, so there is no bucket");
    bucket(config)?.ok_or_else(missing)
}

/// A bucket with backups.
pub struct Bucket {
    pub(super) storage: ObjectStorage,
    pub(super) prefix: String,
}

impl Bucket {
    /// Lists the backups in the bucket, newest first.
    ///
    /// # Errors
    /// Those of the provider.
    pub fn list(&self) -> Result<Vec<Backup>> {
        let objects = self.storage.list(&self.key(PREFIX))?;
        let backups = objects.into_iter().filter_map(|object| {
            let name = object.key.strip_prefix(&self.prefix)?;
            parse_name(name, PathBuf::new(), object.bytes)
        });
        let mut backups: Vec<_> = backups.collect();
        backups.sort_unstable_by(newest_first);
        Ok(backups)
    }

    /// Downloads a backup into the directory of backups.
    ///
    /// # Errors
    /// `not_found`; those of the provider; storage errors.
    pub fn fetch(&self, config: &Config, name: &str, progress: super::BackupProgress<'_>) -> Result<PathBuf> {
        let listed = self.list()?.into_iter().find(|backup| backup.name == name);
        let missing = || Error::new(Code::NotFound).english_detail(format!("The bucket has no `{name}`."));
        let listed = listed.ok_or_else(missing)?;
        let directory = config.backup_directory();
        let _lock = lock_backups(&directory)?;
        files::ensure_free_space(&directory, listed.bytes.saturating_add(config.backup.free_space.0))?;
        let (path, unfinished) = (directory.join(name), directory.join(format!("{name}{}", super::UNFINISHED)));
        let mut fetch = || self.fetch_to(&unfinished, &listed, &path, progress);
        fetch().inspect_err(|_| drop(std::fs::remove_file(&unfinished)))?;
        Ok(path)
    }

    /// Downloads a backup under a temporary name. Rejects it if its size or checksum differs, else renames it.
    fn fetch_to(
        &self,
        unfinished: &Path,
        listed: &Backup,
        path: &Path,
        progress: super::BackupProgress<'_>,
    ) -> Result<()> {
        let mut file = files::create_private(unfinished)?;
        let report = &mut |done, total| progress("fetching", done, total);
        // A longer file than the listed one would pass the check of the free space.
        let received = self.storage.fetch(&self.key(&listed.name), listed.bytes, &mut file, report)?;
        drop(file);
        let manifest = self.manifest(&listed.name)?;
        let is_complete = received == listed.bytes
            && match &manifest {
                Some((_, manifest)) => files::checksum(unfinished)? == manifest.sha256,
                None => true,
            };
        if !is_complete {
            let detail = format!("The size or checksum of the downloaded `{}` is wrong.", listed.name);
            return Err(Error::new(Code::ProviderFailed).english_detail(detail));
        }
        if let Some((json, _)) = manifest {
            manifest::store(path, &json)?;
        }
        files::sync_and_rename(unfinished, path)
    }

    /// Checks that the server answers and accepts the credentials.
    ///
    /// # Errors
    /// Those of the provider.
    pub fn probe(&self) -> Result<(), Failure> {
        self.storage.probe(&self.prefix)
    }

    /// Downloads the manifest of a backup, as bytes and parsed.
    pub(super) fn manifest(&self, name: &str) -> Result<Option<(Vec<u8>, Manifest)>> {
        let mut json = Vec::new();
        let key = self.key(&manifest::name_of(name));
        match self.storage.fetch(&key, manifest::MAX_BYTES, &mut json, &mut |_, _| ()) {
            Ok(_) => Ok(serde_json::from_slice(&json).ok().map(|manifest| (json, manifest))),
            Err(failure) if failure.is_missing_object() => Ok(None),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Returns the newest sound backup in the bucket, by its manifest or, without one, by the local copy.
    fn newest_sound(&self, config: &Config, all: &[Backup], now: Timestamp) -> Result<Option<String>> {
        for backup in retention::future_last(all, now) {
            let is_sound = if let Some((_, manifest)) = self.manifest(&backup.name)? {
                manifest.findings.is_sound()
            } else {
                let local = config.backup_directory().join(&backup.name);
                matches!(findings(&local, now), Ok(Some(found)) if found.is_sound())
            };
            if is_sound {
                return Ok(Some(backup.name.clone()));
            }
        }
        Ok(None)
    }

    /// Uploads newer and incomplete backups, then prunes the bucket.
    fn synchronise(&self, backups: &Backups, progress: super::BackupProgress<'_>) -> Result<Uploaded> {
        let (config, now) = (&backups.core.config, backups.core.clock.now());
        let mut remote = self.list()?;
        let mut result = Uploaded::default();
        for backup in missing_in(&remote, list(config, now)?, now) {
            // It may have been pruned during an earlier upload.
            if backup.path.exists() {
                self.upload(&backup, progress)?;
                result.uploaded.push(backup);
            }
        }
        if !result.uploaded.is_empty() {
            remote = self.list()?;
            ensure_stored(&remote, &result.uploaded)?;
        }
        result.newest = retention::newest(&remote, now).cloned();
        if backups.clock_guard.is_trusted()? {
            let pruned = self.prune(config, &remote, now, &mut result.deleted);
            result.not_deleted = pruned.err().map(|error| cause(&error));
        }
        Ok(result)
    }

    /// Uploads a backup after its manifest, so that every backup in the bucket has one.
    fn upload(&self, backup: &Backup, progress: super::BackupProgress<'_>) -> Result<()> {
        let manifest = manifest::path_of(&backup.path);
        if manifest.exists() {
            self.storage.put(&self.key(&manifest::name_of(&backup.name)), &manifest, &mut |_, _| ())?;
        }
        let report = &mut |sent, total| progress("uploading", sent, total);
        Ok(self.storage.put(&self.key(&backup.name), &backup.path, report)?)
    }

    /// Deletes the backups in the bucket that no rule keeps.
    fn prune(&self, config: &Config, remote: &[Backup], now: Timestamp, deleted: &mut Vec<Backup>) -> Result<()> {
        let rules = Settings { keep_size: crate::config::Bytes(u64::MAX), ..config.backup.clone() };
        let expired = retention::expired(remote, &rules, now);
        let sound = if expired.is_empty() { None } else { self.newest_sound(config, remote, now)? };
        // Changes are useless without the backup on which they build.
        let window = match &config.backup {
            rules if rules.follow.is_zero() => std::time::Duration::ZERO,
            rules => rules.follow_keep + rules.every,
        };
        let is_base = |backup: &Backup| backup.at.is_within(window, now);
        for backup in expired.into_iter().filter(|backup| Some(&backup.name) != sound.as_ref() && !is_base(backup)) {
            self.storage.delete(&self.key(&backup.name))?;
            self.storage.delete(&self.key(&manifest::name_of(&backup.name)))?;
            deleted.push(backup);
        }
        Ok(())
    }

    pub(super) fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }
}

/// Returns the local backups to upload, oldest first, so that an interrupted upload continues where it stopped: those
/// newer than the newest in the bucket, and those stored incompletely. An empty bucket gets only the newest.
fn missing_in(remote: &[Backup], mut local: Vec<Backup>, now: Timestamp) -> Vec<Backup> {
    let incomplete = incomplete(remote, &local);
    let mut complete = remote.iter().filter(|backup| !incomplete.contains(&backup.name));
    let names: BTreeSet<_> = complete.clone().map(|backup| &backup.name).collect();
    let newest = complete.find(|backup| backup.at <= now).map(|backup| backup.at);
    local.retain(|backup| backup.at <= now);
    let is_due = |index: usize, backup: &Backup| {
        incomplete.contains(&backup.name) || newest.map_or(index == 0, |newest| backup.at > newest)
    };
    let due = local.iter().enumerate().filter(|(index, backup)| is_due(*index, backup)).map(|(_, backup)| backup);
    due.filter(|backup| !names.contains(&backup.name)).rev().cloned().collect()
}

/// Returns the names of the backups whose size in the bucket differs from the local one.
fn incomplete(remote: &[Backup], local: &[Backup]) -> BTreeSet<String> {
    let sizes: BTreeMap<_, _> = local.iter().map(|backup| (&backup.name, backup.bytes)).collect();
    let is_incomplete = |backup: &&Backup| sizes.get(&backup.name).is_some_and(|bytes| *bytes != backup.bytes);
    remote.iter().filter(is_incomplete).map(|backup| backup.name.clone()).collect()
}

/// Checks that the bucket lists the uploaded backups in full size. A missing one would be uploaded again and again.
fn ensure_stored(remote: &[Backup], uploaded: &[Backup]) -> Result<()> {
    let sizes: BTreeMap<_, _> = remote.iter().map(|backup| (&backup.name, backup.bytes)).collect();
    let is_missing = |backup: &&Backup| sizes.get(&backup.name) != Some(&backup.bytes);
    let Some(Backup { name, .. }) = uploaded.iter().find(is_missing) else { return Ok(()) };
    let failure = Failure::new(FailureKind::OutcomeUnknown, object_storage::NAME, "stored_in_part");
    let detail = format!("The bucket did not store all of `{name}`.");
    Err(Error::new(Code::ProviderFailed).english_detail(detail).caused_by(failure))
}

/// Uploads to the bucket, prunes it, and stores the outcome. Returns nothing if no bucket is configured.
///
/// # Errors
/// `superseded`; those of the provider; storage errors.
pub fn upload(backups: &Backups, progress: super::BackupProgress<'_>) -> Result<Option<Uploaded>> {
    // The backups of a superseded machine would appear newer than those of the machine that took over.
    if backups.core.store.is_superseded() {
        return Err(Code::Superseded.into());
    }
    let outcome = match bucket(&backups.core.config) {
        Ok(None) => return Ok(None),
        Ok(Some(bucket)) => bucket.synchronise(backups, progress),
        Err(error) => Err(error),
    };
    match &outcome {
        Ok(uploaded) => record_success(backups, uploaded)?,
        Err(error) => {
            tracing::error!(%error, "a backup could not be uploaded");
            let (at, code) = (backups.core.clock.now().0, error.code.name().to_owned());
            store_outcome(&backups.core, LAST_FAILURE, BackupFailure { at, code, detail: cause(error) })?;
        }
    }
    outcome.map(Some)
}

fn record_success(backups: &Backups, uploaded: &Uploaded) -> Result<()> {
    for backup in &uploaded.uploaded {
        tracing::info!(backup = backup.name, bytes = backup.bytes, "uploaded a backup");
    }
    if let Some(cause) = &uploaded.not_deleted {
        tracing::warn!(cause, "expired backups could not be deleted from the bucket");
    }
    let core = &backups.core;
    let BackupStatus { last, failure } = core.store.read(status_in)?;
    let is_stored = |newest: &Backup| last.is_some_and(|last| last.name == newest.name) && failure.is_none();
    let Some(newest) = uploaded.newest.as_ref().filter(|newest| !is_stored(newest)) else { return Ok(()) };
    let (at, name, bytes) = (core.clock.now().0, newest.name.clone(), newest.bytes);
    store_outcome(core, LAST_UPLOAD, LastBackup { at, name, bytes, took_ms: 0, is_sound: true })
}

/// Returns the provider's message, which says more than the error's public detail.
fn cause(error: &Error) -> String {
    error.source.as_ref().map_or_else(|| error.detail.to_string(), ToString::to_string)
}

/// Uploads if there is a backup newer than the last upload, unless an upload has just failed. Returns true if it
/// uploaded one.
///
/// # Errors
/// As [`upload`].
pub fn upload_if_due(backups: &Backups, progress: super::BackupProgress<'_>) -> Result<bool> {
    let core = &backups.core;
    if core.config.backup.s3_endpoint.is_none() {
        return Ok(false);
    }
    let BackupStatus { last, failure } = core.store.read(status_in)?;
    let has_just_failed = failure.is_some_and(|failure| failure.at().is_within(RETRY_AFTER, core.clock.now()));
    let local = list(&core.config, core.clock.now())?;
    let newest = retention::newest(&local, core.clock.now());
    let uploaded = last.and_then(|last| parse_name(&last.name, PathBuf::new(), last.bytes));
    let is_new = newest.is_some_and(|newest| uploaded.is_none_or(|uploaded| uploaded.at < newest.at));
    if has_just_failed || !is_new {
        return Ok(false);
    }
    Ok(upload(backups, progress)?.is_some_and(|result| !result.uploaded.is_empty()))
}

/// Returns the status of uploads.
pub fn status_in(tx: &Read<'_>) -> Result<BackupStatus> {
    BackupStatus::load_in(tx, LAST_UPLOAD, LAST_FAILURE)
}
