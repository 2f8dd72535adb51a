//! Assembles the newest state in the bucket: a backup and the changes since, each checked before it is applied.
//!
//! A missing or damaged object ends the chain there. The state before it is whole, and the report names the gap.

use std::{
    fs::File,
    io::{self, BufWriter},
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime},
};

use serde::{Deserialize, Serialize};

use super::{
    super::{
        Backup, BackupProgress, Backups, database_path, ensure_known_schema,
        manifest::{self, Checksum},
        offsite::{self, Bucket},
        origin::Origin,
        restore_test::key_of,
        status::store_outcome,
    },
    changes_object::ChangesObject,
    machine_files::{MachineFiles, TakeOverPermission},
    standby::cached_path,
    terms::last_term,
};
use crate::{
    clock::Clock,
    config::Config,
    domain::{money::ledger::verification, operations::settings},
    error::{Code, Error, Result},
    keys::{SERVER_KEY, ServerKey},
    store::{
        self,
        backup::{DatabaseCopy, Faults},
        files::{self, ensure_free_space, file_error},
        lock::lock_alone,
        page_changes::{PageChanges, sums_of_file},
        page_sums::copy_summing,
    },
    types::Timestamp,
};

/// Objects that are downloaded at the same time.
const DOWNLOADS: usize = 8;
const DOWNLOADS_DIRECTORY: &str = ".changes-";
const TEST_DIRECTORY: &str = ".verify-latest-";
const TEST_INTERVAL: Duration = Duration::from_hours(24);
const LAST_TEST: &str = "backup.latest_verified";

/// The newest state in a bucket, assembled in a file.
#[derive(Clone, Debug)]
pub struct LatestState {
    /// The backup at the start, and its copy on this machine.
    pub base: String,
    base_path: PathBuf,
    /// Objects of changes applied to it.
    pub changes: usize,
    /// The time of the state.
    pub at: Timestamp,
    /// Term and number of the last object.
    pub last: Option<(u64, u64)>,
    /// The reason why later objects could not be used.
    pub gap: Option<String>,
}

impl LatestState {
    /// Returns term and number of the last object, if there is one.
    pub fn object_name(&self) -> Option<String> {
        self.last.map(|(term, seq)| format!("{term}/{seq}"))
    }
}

/// The result of the checks of an assembled state.
#[derive(Clone, Debug)]
pub struct LatestTest {
    pub state: LatestState,
    pub faults: Faults,
    pub ledger_entries: i64,
    pub ledger_accounts: i64,
    pub ledger_discrepancies: u64,
    pub took: Duration,
}

impl LatestTest {
    /// Returns true if the state has no faults and is the newest.
    pub fn is_sound(&self) -> bool {
        self.is_consistent() && self.state.gap.is_none()
    }

    pub fn is_consistent(&self) -> bool {
        self.faults == Faults::default() && self.ledger_discrepancies == 0
    }
}

/// The result of a restore of the newest state.
#[derive(Clone, Debug)]
pub struct LatestRestore {
    pub test: LatestTest,
    /// The directory to which the former files were moved.
    pub aside: Option<PathBuf>,
}

/// Replaces the database of the data directory by the newest state in the bucket, or by the newest one until a time. The
/// next start takes over from the machine that holds the last term.
///
/// # Errors
/// `data_directory_unusable` while a server runs and for a newer schema; `not_found` for an empty bucket;
/// `backup_unusable` for a damaged state; those of the provider. Nothing is changed then.
pub fn restore_latest(
    config: &Config,
    (until, origin): (Option<Timestamp>, &Origin),
    clock: &Clock,
    system_user: String,
    progress: BackupProgress<'_>,
) -> Result<LatestRestore> {
    let directory = config.data_dir();
    let _lock = lock_alone(directory)?;
    store::restore::finish(directory, true)?;
    remove_downloads(directory);
    let (bucket, machine) = (offsite::require_bucket(config)?, MachineFiles::new(directory));
    let term = last_term(&bucket, origin.key())?.map_or(0, |last| last.term);
    let had_database = database_path(config).exists();
    let aside = format!("before-restore-{}", clock.now().to_string().replace(['-', ':'], ""));
    let prepare = |target: &Path| {
        let test = assemble_and_check(&bucket, config, (until, origin), clock, target, progress)?;
        if let Some(first) = test.faults.structure.first() {
            let detail = format!("The newest state in the bucket is damaged: {first}.");
            return Err(Error::new(Code::BackupUnusable).english_detail(detail));
        }
        let keys = DatabaseCopy::open(&test.state.base_path, clock.now())?.contents()?;
        let has_key = config.auth.secret_key.is_some() || keys.contains_key(SERVER_KEY);
        if !has_key && !directory.join(SERVER_KEY).exists() {
            let detail = format!("{} carries no {SERVER_KEY}: set auth.secret_key.", test.state.base);
            return Err(Error::new(Code::BackupUnusable).english_detail(detail));
        }
        Ok((test, keys))
    };
    let test = store::restore::restore_prepared(directory, &aside, prepare)?;
    // Not earlier: a killed restore must not let an old database take over.
    machine.permit(&TakeOverPermission { after_term: term, system_user })?;
    machine.clear_mark()?;
    Ok(LatestRestore { test, aside: had_database.then(|| directory.join(aside)) })
}

/// Assembles the newest state in a temporary directory and checks it.
///
/// # Errors
/// As [`restore_latest`]. Faults are part of the result.
pub fn test_latest(
    config: &Config,
    until: Option<Timestamp>,
    clock: &Clock,
    progress: BackupProgress<'_>,
) -> Result<LatestTest> {
    let bucket = offsite::require_bucket(config)?;
    let parent = config.backup_directory();
    files::create_private_directory(&parent)?;
    remove_leftovers(&parent);
    let directory = tempfile::Builder::new().prefix(TEST_DIRECTORY).tempdir_in(&parent);
    let directory = directory.map_err(|error| file_error(&parent, error))?;
    let target = directory.path().join("latest.db");
    assemble_and_check(&bucket, config, (until, &Origin::at_hand(config)?), clock, &target, progress)
}

/// The last daily test of the newest state.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct LastTest {
    /// Milliseconds since 1970.
    at: i64,
}

/// Tests the newest state if the last test is older than a day. Returns true if it did.
///
/// # Errors
/// `checks_failed` for a state that is damaged or not the newest; as [`test_latest`].
pub fn verify_if_due(backups: &Backups, progress: BackupProgress<'_>) -> Result<bool> {
    let core = &backups.core;
    let last: Option<LastTest> = core.store.read(|tx| settings::find_json_in(tx, LAST_TEST))?;
    let now = core.clock.now();
    let is_shipping = backups.follow.status().shipped_at.is_some();
    if !is_shipping || last.is_some_and(|last| Timestamp(last.at).is_within(TEST_INTERVAL, now)) {
        return Ok(false);
    }
    // A failed test is repeated the next day, too: it reads the whole database.
    store_outcome(core, LAST_TEST, LastTest { at: now.0 })?;
    let test = test_latest(&core.config, None, &core.clock, progress)?;
    if test.is_sound() {
        return Ok(true);
    }
    let cause = test.state.gap.unwrap_or_else(|| "it is damaged or inconsistent".to_owned());
    Err(Error::new(Code::ChecksFailed)
        .english_detail(format!("The newest state in the bucket cannot be restored: {cause}.")))
}

/// Deletes the directories of killed tests.
fn remove_leftovers(parent: &Path) {
    let is_old = |entry: &std::fs::DirEntry| {
        let modified = entry.metadata().and_then(|metadata| metadata.modified()).ok();
        let age = modified.and_then(|modified| SystemTime::elapsed(&modified).ok());
        age.is_some_and(|age| age > TEST_INTERVAL)
    };
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(TEST_DIRECTORY) && is_old(&entry) {
            drop(std::fs::remove_dir_all(entry.path()));
        }
    }
}

/// Deletes the downloads of a killed restore. The caller holds the directory's lock.
pub(super) fn remove_downloads(data_directory: &Path) {
    for entry in std::fs::read_dir(data_directory).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(DOWNLOADS_DIRECTORY) {
            drop(std::fs::remove_dir_all(entry.path()));
        }
    }
}

fn assemble_and_check(
    bucket: &Bucket,
    config: &Config,
    (until, origin): (Option<Timestamp>, &Origin),
    clock: &Clock,
    target: &Path,
    progress: BackupProgress<'_>,
) -> Result<LatestTest> {
    let started = Instant::now();
    let state = Assembly { bucket, config, until, key: origin.key(), now: clock.now(), target }.run(progress)?;
    progress("checking", 0, 2);
    let copy = DatabaseCopy::open(target, clock.now())?;
    ensure_known_schema(target, &copy)?;
    let faults = copy.faults()?;
    progress("checking", 1, 2);
    let copy = match key_of(config, &DatabaseCopy::open(&state.base_path, clock.now())?)? {
        Some(key) => copy.with_keys(key),
        None => copy,
    };
    if !faults.structure.is_empty() {
        let (took, ledger) = (started.elapsed(), 0);
        return Ok(LatestTest {
            state,
            faults,
            ledger_entries: 0,
            ledger_accounts: 0,
            ledger_discrepancies: ledger,
            took,
        });
    }
    let report = verification::inspect_copy(&copy, &mut |_, _| ())?;
    progress("checking", 2, 2);
    Ok(LatestTest {
        state,
        faults,
        ledger_entries: report.entries,
        ledger_accounts: report.accounts,
        ledger_discrepancies: report.discrepancies_found,
        took: started.elapsed(),
    })
}

/// The assembly of the newest state.
struct Assembly<'a> {
    bucket: &'a Bucket,
    config: &'a Config,
    until: Option<Timestamp>,
    /// The key that must have sealed every object.
    key: Option<&'a ServerKey>,
    now: Timestamp,
    target: &'a Path,
}

/// A downloaded object, or the reason why it cannot be used.
struct Link {
    object: ChangesObject,
    path: PathBuf,
    head: Result<PageChanges, String>,
}

impl Assembly<'_> {
    fn run(&self, progress: BackupProgress<'_>) -> Result<LatestState> {
        let is_wanted = |at: Timestamp| self.until.is_none_or(|until| at <= until);
        let mut backups = self.bucket.list()?;
        let first = backups.last().map(|backup| backup.at);
        backups.retain(|backup| is_wanted(backup.at) && backup.at <= self.now.plus(Duration::from_mins(1)));
        let mut changes = self.bucket.list_changes()?;
        changes.retain(|object| is_wanted(object.at));
        let mut gap = None;
        // A backup without changes is the newest state if continuous backup was switched off meanwhile.
        let last = changes.last().map(|object| object.at);
        if let Some(newest) = backups.first().filter(|newest| last.is_none_or(|last| newest.at > last)) {
            match self.fetch_base(newest, progress)? {
                Ok(path) => return self.finish(newest, &path, &[], None),
                Err(cause) => gap = Some(cause),
            }
        }
        for group in groups(changes) {
            let name = group.last().map(|object| object.base.clone()).unwrap_or_default();
            let Some(base) = backups.iter().find(|backup| backup.name == name) else {
                gap.get_or_insert_with(|| format!("{name} is missing"));
                continue;
            };
            let path = match self.fetch_base(base, progress)? {
                Ok(path) => path,
                Err(cause) => {
                    gap.get_or_insert(cause);
                    continue;
                }
            };
            if let Some(state) = self.apply_group(base, &path, &group, &mut gap, progress)? {
                return Ok(state);
            }
        }
        for backup in &backups {
            if let Ok(path) = self.fetch_base(backup, progress)? {
                return self.finish(backup, &path, &[], gap);
            }
        }
        Err(Error::new(Code::NotFound).english_detail(match (gap, self.until, first) {
            (Some(gap), ..) => format!("The bucket has no whole state: {gap}."),
            (None, Some(until), Some(first)) if until < first => {
                format!(
                    "The bucket has no backup until {until}: the first is of {first}. Name that time or a later one."
                )
            }
            _ => "The bucket has no backup.".to_owned(),
        }))
    }

    /// Applies the changes of one backup. Returns nothing if none can be used.
    fn apply_group(
        &self,
        base: &Backup,
        path: &Path,
        group: &[ChangesObject],
        gap: &mut Option<String>,
        progress: BackupProgress<'_>,
    ) -> Result<Option<LatestState>> {
        let failed = |error: io::Error| file_error(path, error);
        let parent = files::parent_of(self.target);
        let directory = tempfile::Builder::new().prefix(DOWNLOADS_DIRECTORY).tempdir_in(parent);
        let directory = directory.map_err(|error| file_error(parent, error))?;
        let (sums, sha256) = copy_summing(&mut File::open(path).map_err(failed)?, io::sink()).map_err(failed)?;
        let sums =
            sums.ok_or_else(|| Error::new(Code::BackupUnusable).english_detail(format!("{} is cut.", base.name)))?;
        let links = self.fetch_links(group, directory.path(), progress)?;
        let (usable, unusable) = longest_chain(&links, sums.fingerprint(), &sha256);
        if let Some(cause) = unusable {
            gap.get_or_insert(cause);
        }
        if usable.is_empty() {
            return Ok(None);
        }
        self.finish(base, path, usable, gap.take()).map(Some)
    }

    /// Returns the path of a backup's copy on this machine, or the reason why the backup in the bucket cannot be used.
    fn fetch_base(&self, base: &Backup, progress: BackupProgress<'_>) -> Result<Result<PathBuf, String>> {
        let path = self.config.backup_directory().join(&base.name);
        let is_proven = |path: &Path| self.key.map_or(Ok(true), |key| manifest::is_sealed(path, key));
        if path.is_file() && manifest::verify(&path)? == Checksum::Right && is_proven(&path)? {
            return Ok(Ok(path));
        }
        match self.bucket.fetch(self.config, &base.name, progress) {
            Ok(path) if is_proven(&path)? => Ok(Ok(path)),
            Ok(_) => Ok(Err(format!("{} is not sealed with the server key", base.name))),
            // Without a source it is not the bucket that failed.
            Err(error) if matches!(error.code, Code::ProviderFailed | Code::NotFound) && error.source.is_none() => {
                Ok(Err(format!("{} is missing or damaged", base.name)))
            }
            Err(error) => Err(error),
        }
    }

    /// Downloads and checks objects, several at a time.
    fn fetch_links(
        &self,
        objects: &[ChangesObject],
        directory: &Path,
        progress: BackupProgress<'_>,
    ) -> Result<Vec<Link>> {
        let total = objects.len();
        let mut links = Vec::with_capacity(total);
        for chunk in objects.chunks(DOWNLOADS) {
            progress("fetching", links.len() as u64, total as u64);
            let fetched: Vec<Result<Link>> = std::thread::scope(|scope| {
                let start = |object| scope.spawn(move || self.fetch_link(object, directory));
                let running: Vec<_> = chunk.iter().map(start).collect();
                let panicked = |_| Err(Error::internal("a download panicked"));
                running.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).collect()
            });
            for link in fetched {
                links.push(link?);
            }
        }
        Ok(links)
    }

    fn fetch_link(&self, object: &ChangesObject, directory: &Path) -> Result<Link> {
        let path = directory.join(format!("{}-{}", object.term, object.seq));
        let (key, name) = (self.bucket.key(&object.name), &object.name);
        let cached = cached_path(self.config, object);
        if cached.is_file()
            && let Some(head) =
                PageChanges::read(&cached, self.key)?.filter(|head| (head.term, head.seq) == object.rank())
        {
            return Ok(Link { object: object.clone(), path: cached, head: Ok(head) });
        }
        let mut attempt = 0;
        loop {
            attempt += 1;
            let file = File::create(&path).map_err(|error| file_error(&path, error))?;
            match self.bucket.storage.fetch(&key, object.bytes, &mut BufWriter::new(file), &mut |_, _| ()) {
                Ok(_) => break,
                Err(failure) if failure.is_missing_object() => {
                    return Ok(Link { object: object.clone(), path, head: Err(format!("{name} is missing")) });
                }
                Err(failure) if failure.is_retryable() && attempt < 3 => {
                    std::thread::sleep(Duration::from_millis(500) * attempt);
                }
                Err(failure) => return Err(failure.into()),
            }
        }
        let head = PageChanges::read(&path, self.key)?.filter(|head| (head.term, head.seq) == object.rank());
        Ok(Link { object: object.clone(), path, head: head.ok_or_else(|| self.fault_of(name)) })
    }

    fn fault_of(&self, name: &str) -> String {
        match self.key {
            Some(_) => format!("{name} is damaged, or not sealed with the server key"),
            None => format!("{name} is damaged"),
        }
    }

    /// Writes the state to the target and compares its fingerprint.
    fn finish(&self, base: &Backup, path: &Path, links: &[Link], gap: Option<String>) -> Result<LatestState> {
        let failed = |error: io::Error| file_error(self.target, error);
        ensure_free_space(files::parent_of(self.target), base.bytes)?;
        files::remove_if_exists(self.target).map_err(failed)?;
        drop(files::create_private(self.target)?);
        let mut file = File::options().read(true).write(true).open(self.target).map_err(failed)?;
        let mut source = File::open(path).map_err(|error| file_error(path, error))?;
        io::copy(&mut source, &mut file).map_err(failed)?;
        for link in links {
            let bytes = link.head.as_ref().map_or(0, PageChanges::bytes);
            ensure_free_space(files::parent_of(self.target), bytes.saturating_add(self.config.backup.free_space.0))?;
            PageChanges::apply(&link.path, &file)?;
        }
        let last = links.last();
        if let Some(head) = last.and_then(|link| link.head.as_ref().ok()) {
            let sums = sums_of_file(&file).map_err(failed)?;
            if sums.is_none_or(|sums| sums.fingerprint() != head.after || sums.count() != head.page_count) {
                let detail = "The assembled database differs from the one that was shipped.";
                return Err(Error::new(Code::BackupUnusable).english_detail(detail));
            }
        }
        file.sync_all().map_err(failed)?;
        Ok(LatestState {
            base: base.name.clone(),
            base_path: path.to_owned(),
            changes: links.len(),
            at: last.map_or(base.at, |link| link.object.at),
            last: last.map(|link| link.object.rank()),
            gap,
        })
    }
}

/// Groups objects by their backup, newest group first.
fn groups(changes: Vec<ChangesObject>) -> Vec<Vec<ChangesObject>> {
    let mut groups: Vec<Vec<ChangesObject>> = Vec::new();
    for object in changes {
        let is_same = |group: &Vec<ChangesObject>| group.first().is_some_and(|first| first.base == object.base);
        match groups.iter().position(is_same) {
            Some(position) => groups[position].push(object),
            None => groups.push(vec![object]),
        }
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.last().map(ChangesObject::rank)));
    groups
}

/// Returns the links that lead to the newest state, each of which continues the one before and the first of which starts
/// at the backup, and the reason why later links cannot be used.
fn longest_chain<'links>(links: &'links [Link], base: u64, sha256: &str) -> (&'links [Link], Option<String>) {
    let (mut best, mut running) = (0..0, None::<(usize, u64)>);
    let mut cause = None;
    for (index, link) in links.iter().enumerate() {
        let next = match &link.head {
            Err(fault) => Err(fault.clone()),
            Ok(head) if head.base != link.object.base || head.base_sha256 != sha256 => {
                Err(format!("{} builds on another backup", link.object.name))
            }
            Ok(head) if head.before == base => Ok((index, head.after)),
            Ok(head) => match running {
                Some((start, state)) if state == head.before => Ok((start, head.after)),
                _ => Err(format!("an object before {} is missing", link.object.name)),
            },
        };
        match next {
            Ok((start, after)) => (running, best, cause) = (Some((start, after)), start..index + 1, None),
            Err(fault) => {
                running = None;
                cause.get_or_insert(fault);
            }
        }
    }
    (&links[best], cause)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "yarrow-20260102T020000.000Z-scheduled.db";

    fn link(seq: u64, before: u64, after: u64) -> Link {
        let object = ChangesObject::new(1, seq, Timestamp(0), BASE);
        let head = PageChanges {
            term: 1,
            seq,
            base: BASE.into(),
            base_sha256: "sum".into(),
            at: 0,
            page_size: 4096,
            page_count: 1,
            pages: 1,
            before,
            after,
        };
        Link { object, path: PathBuf::new(), head: Ok(head) }
    }

    fn chain(links: &[Link]) -> (Vec<u64>, bool) {
        let (usable, cause) = longest_chain(links, 7, "sum");
        (usable.iter().map(|link| link.object.seq).collect(), cause.is_some())
    }

    #[test]
    fn links_continue_each_other_from_the_backup_on() {
        let whole = [link(1, 7, 8), link(2, 8, 9), link(3, 9, 10)];
        assert_eq!(chain(&whole), (vec![1, 2, 3], false));
        assert_eq!(chain(&[link(1, 7, 8), link(3, 9, 10)]), (vec![1], true));
        assert_eq!(chain(&[link(2, 8, 9), link(3, 9, 10)]), (vec![], true));
        // A chain that began anew needs none of the former links.
        assert_eq!(chain(&[link(1, 7, 8), link(3, 9, 10), link(4, 7, 11), link(5, 11, 12)]), (vec![4, 5], false));
        let mut damaged = [link(1, 7, 8), link(2, 7, 9), link(3, 9, 10)];
        damaged[1].head = Err("damaged".into());
        assert_eq!(chain(&damaged), (vec![1], true));
        let mut other = [link(1, 7, 8)];
        other[0].head.as_mut().unwrap().base_sha256 = "other".into();
        assert_eq!(chain(&other), (vec![], true));
    }
}
