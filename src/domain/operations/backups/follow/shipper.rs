//! Ships changed pages to the bucket.
//!
//! A shipment whose outcome is unknown is repeated with the same bytes under the same key. While the bucket is away one
//! file waits, whatever the time: the next comparison contains everything since.

use std::{
    io,
    time::{Duration, Instant},
};

use tempfile::NamedTempFile;

use super::{
    super::{Backup, Backups, manifest, offsite, retention},
    changes_object::{CHANGES, ChangesObject},
    latest::remove_downloads,
    machine_files::MachineFiles,
    status::FollowMonitor,
    term_holder::TermHolder,
    terms::{ClaimOutcome, TakeOver, claim_next, find_term},
};
use crate::{
    domain::operations::audit::{self, AuditEvent},
    error::{Code, Error, Result},
    providers::object_storage::NewObject,
    store::{
        files::{self, file_error},
        page_changes::{PageChanges, PageDifference, PageReader},
        page_sums::{PageSums, SummingWriter, copy_summing},
    },
    types::Timestamp,
};

/// Changes that follow a first one within this time are shipped with it.
const GATHERING: Duration = Duration::from_secs(1);
/// A comparison of all pages takes at most one part of so many of the time.
const PASS_SHARE: u32 = 20;
/// Interval at which old changes are deleted.
const SWEEP_INTERVAL: Duration = Duration::from_mins(10);
/// Interval at which a superseded machine looks for the permission to take over, or an unreachable bucket is tried.
const CLAIM_INTERVAL: Duration = Duration::from_secs(5);
const TEMPORARY: &str = ".follow-";

/// The sender of changed pages.
pub struct Shipper<'app> {
    backups: &'app Backups,
    monitor: &'app FollowMonitor,
    bucket: offsite::Bucket,
    files: MachineFiles,
    reader: PageReader,
    term: Option<u64>,
    seq: u64,
    chain: Option<Chain>,
    pending: Option<Shipment>,
    /// The version of the database that is in the bucket.
    shipped: Option<i64>,
    /// The first change that is not in the bucket was noticed then.
    changed_at: Option<Instant>,
    next_at: Option<Instant>,
    next_sweep: Option<Instant>,
    /// The bucket is asked then for a later term, whether or not there is something to ship.
    next_look: Option<Instant>,
    /// The newest backup that the server recorded as uploaded when the chain began.
    upload: Option<String>,
}

/// The state in the bucket that the next changes build on.
struct Chain {
    base: String,
    base_sha256: String,
    sums: PageSums,
    /// The time of its first object.
    began: Option<Timestamp>,
}

/// A file of changes that is not certainly in the bucket.
struct Shipment {
    object: ChangesObject,
    file: NamedTempFile,
    pages: u32,
    bytes: u64,
    sums: PageSums,
    data_version: i64,
    taken: Instant,
    pass: Duration,
}

impl<'app> Shipper<'app> {
    /// Prepares to ship the changes of this process's database.
    ///
    /// # Errors
    /// `configuration` without a bucket or access to pages; storage errors.
    pub fn open(backups: &'app Backups) -> Result<Self> {
        let core = &backups.core;
        let files = MachineFiles::new(core.config.data_dir());
        let shipper = Self {
            backups,
            monitor: &backups.follow,
            bucket: offsite::require_bucket(&core.config)?,
            reader: core.store.require_file()?.page_reader()?,
            term: None,
            seq: 0,
            chain: None,
            pending: None,
            shipped: None,
            changed_at: None,
            next_at: None,
            next_sweep: None,
            next_look: None,
            upload: None,
            files,
        };
        shipper.monitor.update(|status| status.is_on = true);
        shipper.remove_leftovers()?;
        if let Some(holder) = shipper.files.superseded_by()? {
            shipper.stop_writes(holder)?;
        }
        Ok(shipper)
    }

    /// Claims a term. A failure is logged, and [`Self::tick`] tries again.
    pub fn claim(&mut self, now: Instant) {
        if let Err(error) = self.try_claim(now) {
            self.record_failure(&error, now);
        }
    }

    /// Ships what is due. A failure is logged and repeated after the interval.
    pub fn tick(&mut self, now: Instant) {
        if let Err(error) = self.try_tick(now) {
            self.record_failure(&error, now);
        }
    }

    /// Ships everything at once, for the stop of the server.
    pub fn finish(&mut self, now: Instant) {
        for _ in 0..2 {
            self.next_at = None;
            let is_due = self.note_changes(now).map(|()| self.changed_at.is_some());
            match is_due.and_then(|is_due| if is_due && self.term.is_some() { self.ship(now) } else { Ok(()) }) {
                // A waiting shipment does not contain the last changes.
                Ok(()) if self.changed_at.is_some() => {}
                Ok(()) => return,
                Err(error) => return self.record_failure(&error, now),
            }
        }
    }

    fn try_tick(&mut self, now: Instant) -> Result<()> {
        self.note_changes(now)?;
        let is_waiting = self.next_at.is_some_and(|next| now < next);
        if is_waiting {
            return Ok(());
        }
        if self.term.is_none() {
            return self.try_claim(now);
        }
        // Expired changes that cannot be deleted are no reason not to ship.
        if let Err(error) = self.sweep(now) {
            tracing::warn!(%error, "expired changes could not be deleted from the bucket");
        }
        if self.changed_at.is_some_and(|since| now.saturating_duration_since(since) >= self.gathering()) {
            return self.ship(now);
        }
        // A machine without commits must learn that it is superseded before its next one.
        if self.next_look.is_none_or(|next| now >= next) && !self.is_superseded_at(now)? {
            self.monitor.update(|status| status.failure = None);
        }
        Ok(())
    }

    fn gathering(&self) -> Duration {
        GATHERING.min(self.interval())
    }

    fn interval(&self) -> Duration {
        self.backups.core.config.backup.follow
    }

    /// Looks for commits and for a newer backup in the bucket.
    fn note_changes(&mut self, now: Instant) -> Result<()> {
        let has_changed = Some(self.reader.data_version()?) != self.shipped;
        let upload = self.backups.core.store.read(offsite::status_in)?.last.map(|last| last.name);
        if self.chain.is_some() && upload != self.upload {
            self.chain = None;
        }
        if (has_changed || self.chain.is_none()) && self.changed_at.is_none() {
            self.set_changed_at(Some(now));
        }
        Ok(())
    }

    fn set_changed_at(&mut self, at: Option<Instant>) {
        self.changed_at = at;
        self.monitor.update(|status| status.behind_since = at);
    }

    fn record_failure(&mut self, error: &Error, now: Instant) {
        let cause = error.source.as_ref().map_or_else(|| error.detail.to_string(), ToString::to_string);
        self.next_at = Some(now + self.interval().max(Duration::from_millis(100)));
        self.monitor.update(|status| {
            // An outage of hours is one line.
            if status.failure.as_ref() != Some(&cause) {
                tracing::warn!(%error, cause, "changes could not be shipped to the bucket");
            }
            status.failures += 1;
            status.failure = Some(cause);
        });
    }

    fn try_claim(&mut self, now: Instant) -> Result<()> {
        self.next_at = Some(now + CLAIM_INTERVAL.min(self.interval()));
        let is_superseded = self.backups.core.store.is_superseded();
        if is_superseded && self.files.permission()?.is_none() {
            return Ok(());
        }
        match claim_next(&self.bucket, &self.backups.core.keys, &self.files, self.backups.core.clock.now())? {
            ClaimOutcome::Superseded(holder) => self.stop_writes(holder),
            ClaimOutcome::Claimed { holder, is_exclusive, taken_over } => {
                tracing::info!(term = holder.term, is_exclusive, "claimed a term of the bucket");
                self.backups.core.store.set_superseded(false);
                (self.term, self.seq, self.next_at) = (Some(holder.term), 0, None);
                (self.chain, self.pending) = (None, None);
                self.monitor.update(|status| {
                    (status.term, status.seq, status.superseded_by) = (Some(holder.term), 0, None);
                    (status.is_exclusive, status.failure) = (Some(is_exclusive), None);
                });
                taken_over.map_or(Ok(()), |taken_over| self.record_take_over(holder.term, taken_over))
            }
        }
    }

    /// Writes the audit event of a permitted take-over. The command could not: until now this machine stored nothing.
    fn record_take_over(&self, term: u64, TakeOver { from, system_user }: TakeOver) -> Result<()> {
        let reason = format!("term {term}, after term {} of machine {}", from.term, from.claim.machine);
        let event = AuditEvent {
            actor: "cli".into(),
            action: "yarrow backup take-over".into(),
            user: None,
            reason: Some(reason),
            outcome: 200,
            client_ip: None,
            request_id: format!("term-{term}"),
            system_user,
        };
        audit::record(&self.backups.core, event).wait()
    }

    /// Stops all writes because another machine has taken over.
    fn stop_writes(&self, by: TermHolder) -> Result<()> {
        self.backups.core.store.set_superseded(true);
        let is_known = self.monitor.status().superseded_by.as_ref() == Some(&by);
        if !is_known {
            tracing::error!(
                term = by.term,
                machine = by.claim.machine,
                "another machine has taken over; this one stores nothing"
            );
        }
        let marked = self.files.mark_superseded(&by);
        self.monitor.update(|status| (status.term, status.superseded_by) = (None, Some(by)));
        marked
    }

    fn supersede(&mut self, by: TermHolder) -> Result<()> {
        (self.term, self.chain, self.pending) = (None, None, None);
        self.stop_writes(by)
    }

    /// Asks the bucket for a later term, and stops all writes if there is one.
    fn is_superseded_at(&mut self, now: Instant) -> Result<bool> {
        let Some(term) = self.term else { return Ok(false) };
        self.next_look = Some(now + self.interval());
        let next = term.checked_add(1).map(|next| self.find_term(next)).transpose()?.flatten();
        let Some(next) = next else { return Ok(false) };
        self.supersede(next)?;
        Ok(true)
    }

    fn find_term(&self, term: u64) -> Result<Option<TermHolder>> {
        find_term(&self.bucket, Some(&self.backups.core.keys), term)
    }

    fn ship(&mut self, now: Instant) -> Result<()> {
        let Some(term) = self.term else { return Ok(()) };
        if self.is_superseded_at(now)? {
            return Ok(());
        }
        if self.pending.is_none() && !self.prepare(term, now)? {
            return Ok(());
        }
        let Some(shipment) = self.pending.take() else { return Ok(()) };
        match self.send(&shipment) {
            Ok(true) => self.advance(shipment, now),
            Ok(false) => match self.find_term(term)? {
                Some(holder) => self.supersede(holder),
                None => Err(Error::new(Code::ProviderFailed).english_detail("The bucket lost the claim of this term.")),
            },
            Err(error) => {
                self.pending = Some(shipment);
                Err(error)
            }
        }
    }

    /// Stores a shipment. Returns false if its key holds something else.
    fn send(&self, shipment: &Shipment) -> Result<bool> {
        let (key, storage) = (self.bucket.key(&shipment.object.name), &self.bucket.storage);
        match storage.put_new(&key, shipment.file.path())? {
            NewObject::Stored => return Ok(true),
            NewObject::Exists => {}
            NewObject::Unsupported => {
                if storage.get(&key, 0).is_ok_and(|object| object.is_none()) {
                    return Ok(storage.put(&key, shipment.file.path(), &mut |_, _| ()).map(|()| true)?);
                }
            }
        }
        let mut stored = SummingWriter::new(io::sink());
        storage.fetch(&key, shipment.bytes, &mut stored, &mut |_, _| ())?;
        Ok(stored.finish().1 == files::checksum(shipment.file.path())?)
    }

    /// Records that a shipment is in the bucket.
    fn advance(&mut self, shipment: Shipment, now: Instant) -> Result<()> {
        let Shipment { object, pages, bytes, sums, data_version, taken, pass, .. } = shipment;
        self.seq = object.seq;
        if let Some(chain) = &mut self.chain {
            chain.sums = sums;
            chain.began.get_or_insert(object.at);
        }
        self.monitor.update(|status| {
            (status.seq, status.shipped_at, status.base) = (object.seq, Some(object.at), Some(object.base));
            status.shipments += 1;
            status.pages += u64::from(pages);
            status.bytes += bytes;
            (status.pass, status.failure) = (pass, None);
        });
        tracing::debug!(object = object.name, pages, bytes, "shipped changes to the bucket");
        self.schedule_next(data_version, taken, pass, now)
    }

    /// Records the shipped version and schedules the next comparison.
    fn schedule_next(&mut self, data_version: i64, taken: Instant, pass: Duration, now: Instant) -> Result<()> {
        self.shipped = Some(data_version);
        self.next_at = Some(now + self.interval().max(pass * PASS_SHARE));
        let is_current = self.reader.data_version()? == data_version && self.chain.is_some();
        self.set_changed_at(if is_current { None } else { Some(taken) });
        Ok(())
    }

    /// Compares all pages and writes those that differ to a file. Returns false if there is nothing to ship.
    fn prepare(&mut self, term: u64, now: Instant) -> Result<bool> {
        let config = &self.backups.core.config;
        let at = self.backups.core.clock.now();
        let is_long =
            |chain: &Chain| chain.began.is_some_and(|began| !began.is_near(config.backup.follow_keep / 2, at));
        if self.chain.as_ref().is_none_or(is_long) {
            self.begin_chain()?;
        }
        let chain = self.chain.as_ref().ok_or_else(|| {
            Error::new(Code::NotFound).english_detail("The bucket has no backup yet on which changes could build.")
        })?;
        let directory = config.backup_directory();
        let began = Instant::now();
        let object = ChangesObject::new(term, self.seq + 1, at, &chain.base);
        let write = |difference: &PageDifference<'_>| {
            let pass = began.elapsed();
            if difference.is_empty(&chain.sums) {
                return Ok((pass, difference.data_version, None));
            }
            let file = tempfile::Builder::new().prefix(TEMPORARY).tempfile_in(&directory);
            let file = file.map_err(|error| file_error(&directory, error))?;
            difference.write(&head_of(&object, chain, difference), &self.backups.core.keys, file.as_file())?;
            Ok((pass, difference.data_version, Some((file, difference.count()))))
        };
        let ((pass, data_version, written), sums) = self.reader.compare(&chain.sums, write)?;
        let Some((file, pages)) = written else {
            self.monitor.update(|status| (status.shipped_at, status.failure) = (Some(at), None));
            self.schedule_next(data_version, now, pass, now)?;
            return Ok(false);
        };
        let bytes = file.as_file().metadata().map_err(|error| file_error(&directory, error))?.len();
        self.pending = Some(Shipment { object, file, pages, bytes, sums, data_version, taken: now, pass });
        Ok(true)
    }

    /// Starts a chain on the newest uploaded backup.
    fn begin_chain(&mut self) -> Result<()> {
        let core = &self.backups.core;
        let upload = core.store.read(offsite::status_in)?.last.map(|last| last.name);
        let listed = self.bucket.list()?;
        let Some(base) = retention::newest(&listed, core.clock.now()) else { return Ok(()) };
        let (sums, base_sha256) = self.sums_of(base)?;
        self.chain = Some(Chain { base: base.name.clone(), base_sha256, sums, began: None });
        self.upload = upload;
        Ok(())
    }

    /// Returns the sums of a backup in the bucket, from its local copy if that is the same.
    fn sums_of(&self, base: &Backup) -> Result<(PageSums, String)> {
        let expected = self.bucket.manifest(&base.name)?.map(|(_, manifest)| manifest.sha256);
        let path = self.backups.core.config.backup_directory().join(&base.name);
        if let Ok(mut file) = std::fs::File::open(&path)
            && let (Some(sums), sha256) =
                copy_summing(&mut file, io::sink()).map_err(|error| file_error(&path, error))?
            && (Some(&sha256) == expected.as_ref()
                || expected.is_none() && manifest::read(&path)?.is_some_and(|manifest| manifest.sha256 == sha256))
        {
            return Ok((sums, sha256));
        }
        let mut writer = SummingWriter::new(io::sink());
        self.bucket.storage.fetch(&self.bucket.key(&base.name), base.bytes, &mut writer, &mut |_, _| ())?;
        let (sums, sha256) = writer.finish();
        let is_right = expected.is_none_or(|expected| expected == sha256);
        sums.filter(|_| is_right).map(|sums| (sums, sha256)).ok_or_else(|| {
            Error::new(Code::ProviderFailed).english_detail(format!("{} in the bucket is damaged.", base.name))
        })
    }

    /// Deletes changes that are older than configured, while the clock is trusted.
    fn sweep(&mut self, now: Instant) -> Result<()> {
        if self.next_sweep.is_some_and(|next| now < next) {
            return Ok(());
        }
        self.next_sweep = Some(now + SWEEP_INTERVAL);
        if !self.backups.clock_guard.is_trusted()? {
            return Ok(());
        }
        let (core, bucket) = (&self.backups.core, &self.bucket);
        let oldest = core.clock.now().minus(core.config.backup.follow_keep);
        loop {
            // The keys begin with term and number, so the oldest come first.
            let page = bucket.storage.list_first(&bucket.key(CHANGES))?;
            let expired: Vec<_> = page
                .iter()
                .filter(|object| bucket.changes_object(object).is_some_and(|changes| changes.at < oldest))
                .collect();
            for object in &expired {
                bucket.storage.delete(&object.key)?;
            }
            if expired.is_empty() || expired.len() < page.len() {
                return Ok(());
            }
        }
    }

    /// Deletes the files of a process that was killed.
    fn remove_leftovers(&self) -> Result<()> {
        let directory = self.backups.core.config.backup_directory();
        files::create_private_directory(&directory)?;
        remove_downloads(self.backups.core.config.data_dir());
        for entry in std::fs::read_dir(&directory).map_err(|error| file_error(&directory, error))?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(TEMPORARY) {
                files::remove_if_exists(&entry.path()).map_err(|error| file_error(&directory, error))?;
            }
        }
        Ok(())
    }
}

fn head_of(object: &ChangesObject, chain: &Chain, difference: &PageDifference<'_>) -> PageChanges {
    PageChanges {
        term: object.term,
        seq: object.seq,
        base: chain.base.clone(),
        base_sha256: chain.base_sha256.clone(),
        at: object.at.0,
        page_size: difference.sums.page_size,
        page_count: difference.sums.count(),
        pages: difference.count(),
        before: chain.sums.fingerprint(),
        after: difference.sums.fingerprint(),
    }
}
