//! Backups on another machine: in a bucket that speaks S3, by the same names and the same rules.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use super::{
    AGAIN_AFTER, Backup, Failed, Remembered, Standing, described, enter, findings, list,
    manifest::{self, Manifest},
    newest_first, remember, retention,
};
use crate::{
    app::App,
    config::{Backup as Settings, Config, S3Addressing},
    domain::operations::clock_jump,
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

/// What came of an upload.
#[derive(Clone, Debug, Default)]
pub struct Uploaded {
    pub uploaded: Vec<Backup>,
    pub deleted: Vec<Backup>,
    /// Why others that no rule keeps are still there. The rights to a bucket may not include to delete.
    pub not_deleted: Option<String>,
    /// The newest that is there now.
    pub newest: Option<Backup>,
}

/// The bucket of this configuration, if there is one.
///
/// # Errors
/// `provider_failed` when endpoint and bucket make no address.
pub fn bucket(config: &Config) -> Result<Option<Bucket>> {
    let settings = &config.backup;
    let Some(endpoint) = &settings.s3_endpoint else { return Ok(None) };
    let storage = ObjectStorage::new(&object_storage::Settings {
        endpoint: endpoint.clone(),
        bucket: settings.s3_bucket.clone(),
        region: settings.s3_region.clone(),
        bucket_in_path: settings.s3_addressing == S3Addressing::Path,
        access_key_id: settings.s3_access_key_id.clone(),
        secret_access_key: settings.s3_secret_access_key.clone().unwrap_or_default(),
    })?;
    Ok(Some(Bucket { storage, prefix: settings.s3_prefix.clone() }))
}

/// The same, for what needs one.
///
/// # Errors
/// `configuration` when there is none.
pub fn demand_bucket(config: &Config) -> Result<Bucket> {
    let missing = || Error::new(Code::Configuration).detail("backup.s3_endpoint: is not set, so there is no bucket");
    bucket(config)?.ok_or_else(missing)
}

/// Backups in a bucket.
pub struct Bucket {
    storage: ObjectStorage,
    prefix: String,
}

impl Bucket {
    /// The backups that are there, newest first.
    ///
    /// # Errors
    /// Those of the provider.
    pub fn list(&self) -> Result<Vec<Backup>> {
        let objects = self.storage.list(&self.prefix)?;
        let backups = objects.into_iter().filter_map(|object| {
            let name = object.key.strip_prefix(&self.prefix)?;
            described(name, PathBuf::new(), object.bytes)
        });
        let mut backups: Vec<_> = backups.collect();
        backups.sort_unstable_by(newest_first);
        Ok(backups)
    }

    /// Brings a backup into the directory of backups.
    ///
    /// # Errors
    /// `not_found`; those of the provider; storage errors.
    pub fn fetch(&self, config: &Config, name: &str, progress: super::Progress<'_>) -> Result<PathBuf> {
        let known = self.list()?.into_iter().find(|backup| backup.name == name);
        let known = known.ok_or_else(|| Error::new(Code::NotFound).detail(format!("There is no `{name}` there.")))?;
        let directory = config.backup_directory();
        let _lock = enter(&directory)?;
        files::ensure_free_space(&directory, known.bytes + config.backup.free_space.0)?;
        let (path, unfinished) = (directory.join(name), directory.join(format!("{name}{}", super::UNFINISHED)));
        let mut finish = || self.fetch_to(&unfinished, &known, &path, progress);
        finish().inspect_err(|_| drop(std::fs::remove_file(&unfinished)))?;
        Ok(path)
    }

    /// Fetches a backup under another name, and gives it its own once it is known to be whole.
    fn fetch_to(&self, unfinished: &Path, known: &Backup, path: &Path, progress: super::Progress<'_>) -> Result<()> {
        let mut file = files::create_private(unfinished)?;
        let report = &mut |done, total| progress("fetching", done, total);
        let received = self.storage.fetch(&self.key(&known.name), &mut file, report)?;
        drop(file);
        let manifest = self.manifest(&known.name)?;
        let is_whole = received == known.bytes
            && match &manifest {
                Some((_, manifest)) => files::checksum(unfinished)? == manifest.sha256,
                None => true,
            };
        if !is_whole {
            let detail = format!("`{}` did not arrive as it was sent.", known.name);
            return Err(Error::new(Code::ProviderFailed).detail(detail));
        }
        if let Some((json, _)) = manifest {
            manifest::keep(path, &json)?;
        }
        files::sync_and_rename(unfinished, path)
    }

    /// Asks the server whether it answers and knows us.
    ///
    /// # Errors
    /// Those of the provider.
    pub fn probe(&self) -> Result<(), Failure> {
        self.storage.list(&self.prefix).map(drop)
    }

    /// What stands beside a backup there, as it is and as it is understood.
    fn manifest(&self, name: &str) -> Result<Option<(Vec<u8>, Manifest)>> {
        let mut json = Vec::new();
        match self.storage.fetch(&self.key(&manifest::name_of(name)), &mut json, &mut |_, _| ()) {
            Ok(_) => Ok(serde_json::from_slice(&json).ok().map(|manifest| (json, manifest))),
            Err(failure) if matches!(failure.code.as_str(), "NoSuchKey" | "NotFound" | "http_404") => Ok(None),
            Err(failure) => Err(failure.into()),
        }
    }

    /// The newest backup there that was found sound, by what stands beside it or, where nothing does, by what is here.
    fn newest_sound(&self, config: &Config, all: &[Backup], now: Timestamp) -> Result<Option<String>> {
        for backup in retention::past_first(all, now) {
            let is_sound = if let Some((_, manifest)) = self.manifest(&backup.name)? {
                manifest.findings.is_sound()
            } else {
                let here = config.backup_directory().join(&backup.name);
                matches!(findings(&here, now), Ok(Some(found)) if found.is_sound())
            };
            if is_sound {
                return Ok(Some(backup.name.clone()));
            }
        }
        Ok(None)
    }

    /// Uploads what is newer than what is there, and what is not there in its whole size, and deletes there what no
    /// rule keeps.
    fn synchronise(&self, app: &App, progress: super::Progress<'_>) -> Result<Uploaded> {
        let (config, now) = (&app.config, app.clock.now());
        let mut local = list(config)?;
        let mut remote = self.list()?;
        let cut_short = cut_short(&remote, &local);
        let mut there = remote.iter().filter(|backup| !cut_short.contains(&backup.name));
        let known: BTreeSet<_> = there.clone().map(|backup| backup.name.clone()).collect();
        let newest_there = there.find(|backup| backup.at <= now).map(|backup| backup.at);
        local.retain(|backup| backup.at <= now);
        // When the bucket is new, the newest is enough to begin with.
        let is_due = |index: usize, backup: &Backup| {
            cut_short.contains(&backup.name) || newest_there.map_or(index == 0, |newest| backup.at > newest)
        };
        let due = local.iter().enumerate().filter(|(index, backup)| is_due(*index, backup));
        let mut done = Uploaded::default();
        // The oldest first, so that what is cut off goes on where it stopped. What is pruned meanwhile has no need.
        let due = due.filter(|(_, backup)| !known.contains(&backup.name)).rev();
        for (_, backup) in due.filter(|(_, backup)| backup.path.exists()) {
            let report = &mut |sent, total| progress("uploading", sent, total);
            // Before the backup: one that is there has its manifest too.
            let manifest = manifest::beside(&backup.path);
            if manifest.exists() {
                self.storage.put(&self.key(&manifest::name_of(&backup.name)), &manifest, &mut |_, _| ())?;
            }
            self.storage.put(&self.key(&backup.name), &backup.path, report)?;
            done.uploaded.push(backup.clone());
        }
        if !done.uploaded.is_empty() {
            remote = self.list()?;
            demand_whole(&remote, &done.uploaded)?;
        }
        done.newest = newest(&remote, now).cloned();
        if clock_jump::is_believed(app)? {
            let pruned = self.prune(config, &remote, now, &mut done.deleted);
            done.not_deleted = pruned.err().map(|error| reason(&error));
        }
        Ok(done)
    }

    /// Deletes there what no rule keeps.
    fn prune(&self, config: &Config, remote: &[Backup], now: Timestamp, deleted: &mut Vec<Backup>) -> Result<()> {
        let rules = Settings { keep_size: crate::config::Bytes(u64::MAX), ..config.backup.clone() };
        let doomed = retention::superfluous(remote, &rules, now);
        let kept = if doomed.is_empty() { None } else { self.newest_sound(config, remote, now)? };
        for backup in doomed.into_iter().filter(|backup| Some(&backup.name) != kept.as_ref()) {
            self.storage.delete(&self.key(&backup.name))?;
            self.storage.delete(&self.key(&manifest::name_of(&backup.name)))?;
            deleted.push(backup);
        }
        Ok(())
    }

    fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }
}

/// The names of those that are not in the bucket as long as they are here.
fn cut_short(remote: &[Backup], local: &[Backup]) -> BTreeSet<String> {
    let length: BTreeMap<_, _> = local.iter().map(|backup| (&backup.name, backup.bytes)).collect();
    let is_cut_short = |backup: &&Backup| length.get(&backup.name).is_some_and(|bytes| *bytes != backup.bytes);
    remote.iter().filter(is_cut_short).map(|backup| backup.name.clone()).collect()
}

/// Makes sure that what was just sent is there as it was sent, as far as a list tells. What is not listed would be sent
/// again and again.
fn demand_whole(remote: &[Backup], uploaded: &[Backup]) -> Result<()> {
    let there: BTreeMap<_, _> = remote.iter().map(|backup| (&backup.name, backup.bytes)).collect();
    let is_missing = |backup: &&Backup| there.get(&backup.name) != Some(&backup.bytes);
    let Some(Backup { name, .. }) = uploaded.iter().find(is_missing) else { return Ok(()) };
    let failure = Failure::new(FailureKind::OutcomeUnknown, object_storage::NAME, "stored_in_part");
    let detail = format!("The bucket did not store all of `{name}`.");
    Err(Error::new(Code::ProviderFailed).detail(detail).caused_by(failure))
}

/// Uploads what is newer than what is in the bucket, prunes there, and remembers what came of it. Nothing without a
/// bucket.
///
/// # Errors
/// Those of the provider; storage errors.
pub fn upload(app: &App, progress: super::Progress<'_>) -> Result<Option<Uploaded>> {
    let outcome = match bucket(&app.config) {
        Ok(None) => return Ok(None),
        Ok(Some(bucket)) => bucket.synchronise(app, progress),
        Err(error) => Err(error),
    };
    match &outcome {
        Ok(Uploaded { uploaded, not_deleted, newest, .. }) => {
            for backup in uploaded {
                tracing::info!(backup = backup.name, bytes = backup.bytes, "uploaded a backup");
            }
            if let Some(why) = not_deleted {
                tracing::warn!(why, "what no rule keeps could not be deleted from the bucket");
            }
            let Standing { last, failure } = app.store.read(standing_in)?;
            let is_known = |newest: &Backup| last.is_some_and(|last| last.name == newest.name) && failure.is_none();
            if let Some(newest) = newest.as_ref().filter(|newest| !is_known(newest)) {
                let (at, name, bytes) = (app.clock.now().0, newest.name.clone(), newest.bytes);
                remember(app, LAST_UPLOAD, Remembered { at, name, bytes, took_ms: 0, is_sound: true })?;
            }
        }
        Err(error) => {
            tracing::error!(%error, "a backup could not be uploaded");
            let (at, code) = (app.clock.now().0, error.code.name().to_owned());
            remember(app, LAST_FAILURE, Failed { at, code, detail: reason(error) })?;
        }
    }
    outcome.map(Some)
}

/// The newest of these backups, newest first. What a clock that was ahead dated is not the newest of anything.
fn newest(all: &[Backup], now: Timestamp) -> Option<&Backup> {
    all.iter().find(|backup| backup.at <= now)
}

/// The provider's codes say more than the sentence for everybody.
fn reason(error: &Error) -> String {
    error.source.as_ref().map_or_else(|| error.detail.to_string(), ToString::to_string)
}

/// Uploads if a backup was made since the last upload, unless that has just failed; true if something was uploaded.
///
/// # Errors
/// As [`upload`].
pub fn upload_if_due(app: &App) -> Result<bool> {
    if app.config.backup.s3_endpoint.is_none() {
        return Ok(false);
    }
    let Standing { last, failure } = app.store.read(standing_in)?;
    let has_just_failed = failure.is_some_and(|failure| failure.at().is_within(AGAIN_AFTER, app.clock.now()));
    let local = list(&app.config)?;
    let newest = newest(&local, app.clock.now());
    let there = last.and_then(|last| described(&last.name, PathBuf::new(), last.bytes));
    let is_new = newest.is_some_and(|newest| there.is_none_or(|there| there.at < newest.at));
    if has_just_failed || !is_new {
        return Ok(false);
    }
    Ok(upload(app, &mut |_, _, _| ())?.is_some_and(|done| !done.uploaded.is_empty()))
}

/// What is known of the bucket without asking it.
pub fn standing_in(tx: &Read<'_>) -> Result<Standing> {
    Standing::noted_in(tx, LAST_UPLOAD, LAST_FAILURE)
}
