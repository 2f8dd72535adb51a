//! The network log: an entry for each request, written in blocks in the background.
//!
//! A request only queues its entry in memory. If the disk is too slow, further entries are counted by route. The blocks are
//! in a database file of their own, `network-log.db`, which backups do not contain: its writes delay no others. A power
//! cut may lose the last entries. A damaged or deleted file is replaced by an empty one.

mod blocks;
mod client_counts;
pub mod clients;
mod counted_days;
mod counted_range;
pub mod erasure;
mod packing;
pub mod unlisted;
mod queue;
pub mod search;

use std::{
    collections::HashMap,
    net::IpAddr,
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, Instant},
};

pub use self::queue::{Entry, QUEUE_BYTES, RequestId};
use self::{
    blocks::{Key, Order, Row},
    queue::EntryQueue,
};

use crate::{
    concurrency::lock::lock_unpoisoned,
    config::Config,
    core::Core,
    error::Result,
    metrics::Counter,
    store::{
        self, Read, SchemaPolicy, Store, Tuning, Write,
        files::{NETWORK_LOG, ensure_free_space, file_error, parent_of, remove_if_exists, with_suffix},
    },
    types::{Timestamp, UserId},
};

/// Chunks of the queue written at once: at most a full block.
const CHUNKS: usize = 16;
/// The time for which a run of the job writes what came meanwhile, before its other work.
const LONGEST_FLUSH: Duration = Duration::from_secs(1);
/// The times for which the writer works and rests in turn. Without a rest it would keep a core for whole time slices, and
/// all requests of that core would wait.
const BURST: Duration = Duration::from_micros(100);
/// Entries deleted in one write, rounded up to whole blocks.
const DELETE_BATCH_SIZE: usize = 2000;
/// Batches deleted between two writes of new entries.
const DELETE_BATCHES: u32 = 20;
/// Files below this size are not worth shrinking.
const SPARSE_ABOVE: u64 = 64 << 20;
/// The suffix of a file that could not be read.
const DAMAGED: &str = ".damaged";

/// Counters since the start.
#[derive(Debug, Default)]
pub struct NetworkLogMetrics {
    /// Entries that came faster than the disk took them.
    pub dropped: Counter,
    /// Entries deleted because the log had reached its maximum size.
    pub deleted_for_size: Counter,
}

/// The network log, with the entries that are not stored yet.
pub struct NetworkLog {
    pub core: Core,
    pub metrics: NetworkLogMetrics,
    waiting: EntryQueue,
    unreported: Mutex<unlisted::Unreported>,
    /// Replaced when the file is damaged or lost.
    store: Mutex<Store>,
    /// The time until which users were deleted whose entries this process has erased for good.
    erased_until: AtomicI64,
}

/// The size and age of the log.
#[derive(Clone, Copy, Debug)]
pub struct LogStatus {
    /// Bytes of the pages in use.
    pub used_bytes: u64,
    pub oldest: Option<Timestamp>,
    pub latest: Option<Timestamp>,
}

impl NetworkLog {
    /// Opens the log's file. Creates a missing one and replaces a damaged one, as far as the policy permits.
    ///
    /// # Errors
    /// As [`Store::open_network_log`].
    pub fn open(core: Core, policy: SchemaPolicy) -> Result<Self> {
        let outcome = open_file(&core, policy);
        let store = match outcome {
            Err(error) if policy != SchemaPolicy::RequireCurrent && store::is_damage(&error) => {
                tracing::warn!(%error, "the network log is damaged; its file is kept aside and a new log begins");
                set_aside(&path_of(&core.config))?;
                open_file(&core, policy)?
            }
            outcome => outcome?,
        };
        Ok(Self {
            core,
            metrics: NetworkLogMetrics::default(),
            waiting: EntryQueue::default(),
            unreported: Mutex::default(),
            store: Mutex::new(store),
            erased_until: AtomicI64::new(0),
        })
    }

    /// Queues the entry of a request.
    pub fn record(&self, entry: Entry) {
        if !self.waiting.push(entry) {
            self.metrics.dropped.add(1);
            if self.core.log_throttle.admits("network log", "queue is full") {
                tracing::warn!("the disk is too slow for the network log: requests are counted by route instead");
            }
        }
    }

    /// Waits until many entries are queued, the time is over or the thread is unparked. The only caller is the writer.
    pub fn wait_for_entries(&self, longest: Duration) {
        self.waiting.wait(longest);
    }

    /// Runs `operation` on a consistent view of the log. Blocks.
    ///
    /// # Errors
    /// Errors of the operation, storage errors.
    pub fn read<T>(&self, operation: impl FnOnce(&Read<'_>) -> Result<T>) -> Result<T> {
        self.store().read(operation)
    }

    /// Returns how many bytes of the file are in use.
    ///
    /// # Errors
    /// Storage errors.
    pub fn used_bytes(&self) -> Result<u64> {
        Ok(self.store().require_file()?.page_bytes()?.used)
    }

    /// Commits what is being written and closes the file.
    pub fn close(&self) {
        self.store().close();
    }

    pub(super) fn store(&self) -> Store {
        lock_unpoisoned(&self.store).clone()
    }

    /// Returns the time of the last erasure that is settled. Ignores one in the future, set while the clock was ahead.
    fn erased_until(&self, now: Timestamp) -> Timestamp {
        let until = self.erased_until.load(Ordering::Relaxed);
        Timestamp(if until > now.0 { 0 } else { until })
    }

    fn set_erased_until(&self, until: Timestamp) {
        self.erased_until.store(until.0, Ordering::Relaxed);
    }

    /// Replaces the file by an empty one. The caller is the server, which holds the lock of the data directory.
    fn begin_anew(&self) -> Result<()> {
        let mut store = lock_unpoisoned(&self.store);
        store.close();
        set_aside(store.require_file()?.path())?;
        *store = open_file(&self.core, SchemaPolicy::Create)?;
        Ok(())
    }
}

/// Bursts of work, and rests between them.
pub(super) struct Pace(Instant);

impl Default for Pace {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl Pace {
    /// Rests if the burst has been long enough.
    pub fn rest(&mut self) {
        if self.0.elapsed() >= BURST {
            std::thread::sleep(BURST);
            self.0 = Instant::now();
        }
    }
}

/// Writes queued entries, deletes those of erased users, keeps the log below its maximum size, and counts a day that has
/// ended. Blocks.
///
/// # Errors
/// Storage errors; entries that were not written stay queued.
pub fn maintain(log: &NetworkLog) -> Result<()> {
    let begun = Instant::now();
    while flush_some(log)? >= blocks::LARGEST.into() && begun.elapsed() < LONGEST_FLUSH {}
    unlisted::store(log)?;
    if !packing::pack_some(log)? {
        erasure::run_some(log)?;
    }
    enforce_max_size(log)?;
    counted_days::count_one(log)
}

/// Writes all queued entries. Blocks.
///
/// # Errors
/// As [`maintain`].
pub fn flush(log: &NetworkLog) -> Result<()> {
    flush_some(log)?;
    unlisted::store(log)
}

/// Writes the entries that are queued now and returns their number.
fn flush_some(log: &NetworkLog) -> Result<usize> {
    let (mut waiting, mut total) = (log.waiting.take(), 0);
    while !waiting.is_empty() {
        let rest = waiting.split_off(waiting.len().min(CHUNKS));
        let chunks = Arc::new(waiting);
        let count = chunks.iter().map(Vec::len).sum();
        if let Err(error) = write(log, &chunks) {
            let mut unwritten = Arc::unwrap_or_clone(chunks);
            unwritten.extend(rest);
            log.waiting.put_back(unwritten);
            return Err(error);
        }
        log.waiting.forget(count);
        (waiting, total) = (rest, total + count);
    }
    Ok(total)
}

fn write(log: &NetworkLog, chunks: &Arc<Vec<Vec<Entry>>>) -> Result<()> {
    let insert = |store: &Store| {
        let chunks = Arc::clone(chunks);
        store.write_without_savepoint(move |tx| insert_in(tx, &chunks)).wait()
    };
    let store = log.store();
    match insert(&store) {
        Err(error) if store::is_damage(&error) || !store.has_original_files() => {
            tracing::warn!(%error, "the network log is damaged or deleted; a new one begins");
            log.begin_anew()?;
            insert(&log.store())
        }
        outcome => outcome,
    }
}

/// Inserts up to [`blocks::LARGEST`] entries.
fn insert_in(tx: &Write<'_>, chunks: &[Vec<Entry>]) -> Result<()> {
    let (purged_at, mut pace) = (purged_at_in(tx)?, Pace::default());
    let is_purged = |entry: &Entry| purged_at.is_some_and(|purged_at| entry.began_at() <= purged_at);
    let entries: Vec<_> = chunks.iter().flatten().filter(|entry| !is_purged(entry)).collect();
    let mut clients = HashMap::<IpAddr, String, foldhash::fast::RandomState>::default();
    for entry in &entries {
        clients.entry(entry.client).or_insert_with(|| entry.client.to_string());
    }
    let mut rows = Vec::with_capacity(entries.len());
    rows.extend(entries.iter().map(|entry| Row {
        position: 0,
        at: entry.at.0,
        user: entry.user.map(|user| user.0),
        client: &clients[&entry.client],
        method: entry.method,
        route: entry.route,
        status: entry.status,
        duration_us: entry.duration_us.into(),
        request_id: entry.request_id.as_str(),
    }));
    rows.sort_by_key(|row| row.at);
    pace.rest();
    blocks::append_in(tx, &mut rows, &mut pace)?;
    client_counts::add_in(tx, &rows, &mut pace)
}

/// The user of an entry.
#[derive(Clone, Copy, Debug)]
pub struct UserEntry {
    pub id: i64,
    pub at: Timestamp,
    /// None for requests without a signed-in user.
    pub user: Option<UserId>,
}

/// Returns the users of the next entries after this id, in the order of time, and of more to complete a block. An id of the
/// future, from a clock that was set back since, counts as one of ten minutes ago. Entries that were stored after those
/// of later ten minutes are left out. Blocks.
///
/// # Errors
/// Storage errors.
pub fn users_after(log: &NetworkLog, after: i64, limit: usize) -> Result<Vec<UserEntry>> {
    let now = log.core.clock.now().0;
    let after = if after < blocks::first_entry(now + blocks::PERIOD) { after } else { blocks::first_entry(now) };
    log.read(|tx| {
        let mut found = Vec::new();
        blocks::each_from_in(tx, blocks::block_of(after), |block, rows| {
            let rows = rows.iter().filter(|row| row.id(block) > after);
            found.extend(rows.map(|row| UserEntry {
                id: row.id(block),
                at: Timestamp(row.at),
                user: row.user.map(UserId),
            }));
            found.sort_unstable_by_key(|entry| entry.id);
            Ok(if found.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        Ok(found)
    })
}

/// Returns the id of the last entry, 0 in an empty log. Blocks.
///
/// # Errors
/// Storage errors.
pub fn last_id(log: &NetworkLog) -> Result<i64> {
    log.read(|tx| {
        let mut last = 0;
        blocks::each_in(tx, Key::All, blocks::ALWAYS, Order::NewestFirst, |block, _| {
            let ids = |rows: &[Row<'_>]| Ok(rows.iter().map(|row| row.id(block)).max());
            last = blocks::rows_in(tx, block, Order::NewestFirst, ids)?.unwrap_or(0);
            Ok(ControlFlow::Break(()))
        })?;
        Ok(last)
    })
}

/// Returns the time of the last deletion of all entries.
///
/// # Errors
/// Storage errors.
pub fn purged_at(log: &NetworkLog) -> Result<Option<Timestamp>> {
    log.read(purged_at_in)
}

/// Returns the time of the last purge. Ignores one in the future, which was stored while the clock was ahead.
fn purged_at_in(tx: &Read<'_>) -> Result<Option<Timestamp>> {
    let purged_at =
        tx.first("select purged_at from access_log_purges where id = 1", (), |row| row.get(0).map(Timestamp));
    Ok(purged_at?.filter(|purged_at| *purged_at <= tx.now))
}

/// The table of the entries.
pub const TABLE: &str = "access_log";

/// Counts the entries. Reads all blocks' numbers of entries.
///
/// # Errors
/// Storage errors.
pub fn count(log: &NetworkLog) -> Result<i64> {
    log.read(|tx| {
        let sql = "select coalesce((select cast(sum(entries) as bigint) from access_log_blocks), 0) \
                   + (select count(*) from access_log_unpacked)";
        tx.one(sql, (), |row| row.get(0))
    })
}

/// Returns the size and age of the log.
///
/// # Errors
/// Storage errors.
pub fn status(log: &NetworkLog) -> Result<LogStatus> {
    let used_bytes = log.used_bytes()?;
    log.read(|tx| {
        Ok(LogStatus { used_bytes, oldest: edge_in(tx, Order::OldestFirst)?, latest: edge_in(tx, Order::NewestFirst)? })
    })
}

/// Returns the time of the first entry in an order.
fn edge_in(tx: &Read<'_>, order: Order) -> Result<Option<Timestamp>> {
    let mut edge = None;
    blocks::each_row_in(tx, Key::All, blocks::ALWAYS, order, |_, row| {
        edge = Some(Timestamp(row.at));
        Ok(ControlFlow::Break(()))
    })?;
    Ok(edge)
}

/// Returns the client addresses of the newest requests, without health checks.
///
/// # Errors
/// Storage errors.
pub fn recent_clients(log: &NetworkLog, limit: usize) -> Result<Vec<String>> {
    log.read(|tx| {
        let (mut seen, mut clients) = (0, Vec::new());
        blocks::each_row_in(tx, Key::All, blocks::ALWAYS, Order::NewestFirst, |_, row| {
            if row.route.is_some_and(|route| !["/healthz", "/readyz"].contains(&route)) {
                clients.push(row.client.to_owned());
            }
            seen += 1;
            Ok(if seen < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        Ok(clients)
    })
}

/// Deletes some of the oldest entries before `before`, and returns their number. Blocks.
///
/// # Errors
/// Storage errors.
pub fn delete_batch_before(log: &NetworkLog, before: Timestamp) -> Result<usize> {
    let delete = move |tx: &Write<'_>| {
        unlisted::delete_before_in(tx, before)?;
        delete_some_in(tx, Key::All, |row| row.at < before.0)
    };
    log.store().write(delete).wait()
}

/// Deletes entries for which `is_deleted` is true, the oldest first, until enough are deleted, or a block has none.
fn delete_some_in(tx: &Write<'_>, key: Key<'_>, is_deleted: impl Fn(&Row<'_>) -> bool) -> Result<usize> {
    let mut deleted = 0;
    for block in blocks::oldest_in(tx, key, DELETE_BATCH_SIZE)? {
        let count = client_counts::delete_in(tx, block, |row| !is_deleted(row))?;
        deleted += count;
        if count == 0 || deleted >= DELETE_BATCH_SIZE {
            break;
        }
    }
    Ok(deleted)
}

/// Deletes entries older than `age` until none is left or `is_running` returns false. Blocks.
///
/// # Errors
/// Storage errors; earlier batches stay deleted.
pub fn delete_older(log: &NetworkLog, age: Duration, is_running: &dyn Fn() -> bool) -> Result<usize> {
    let before = log.core.clock.now().minus(age);
    let mut total = 0;
    while is_running() {
        let deleted = delete_batch_before(log, before)?;
        if deleted == 0 {
            shrink_if_sparse(log)?;
            break;
        }
        total += deleted;
    }
    Ok(total)
}

/// Deletes all entries older than `age` and returns their number. Blocks.
///
/// # Errors
/// As [`delete_older`].
pub fn clean_up(log: &NetworkLog, age: Duration) -> Result<usize> {
    delete_older(log, age, &|| true)
}

/// Deletes all entries and returns their number. Blocks. Entries of earlier requests that are not written yet, also in
/// another process, will not be written.
///
/// # Errors
/// As [`delete_older`].
pub fn delete_all(log: &NetworkLog) -> Result<usize> {
    let mut total = log
        .store()
        .write(|tx| {
            put_purge_in(tx)?;
            packing::delete_all_in(tx)?;
            delete_oldest_in(tx)
        })
        .wait()?;
    loop {
        match log.store().write(delete_oldest_in).wait()? {
            0 => break,
            deleted => total += deleted,
        }
    }
    shrink_if_sparse(log)?;
    Ok(total)
}

fn put_purge_in(tx: &Write<'_>) -> Result<()> {
    let sql = "insert into access_log_purges (id, purged_at) values (1, ?1) \
               on conflict (id) do update set purged_at = excluded.purged_at";
    tx.execute(sql, [tx.now.0]).map(drop)
}

fn delete_oldest_in(tx: &Write<'_>) -> Result<usize> {
    let deleted = delete_some_in(tx, Key::All, |_| true)?;
    let next_period = tx.now.plus(Duration::from_millis(blocks::PERIOD.unsigned_abs()));
    unlisted::delete_before_in(tx, edge_in(tx, Order::OldestFirst)?.unwrap_or(next_period))?;
    Ok(deleted)
}

/// Deletes the oldest entries while the log is larger than configured. Stops after some batches, so that new entries are
/// written in time.
fn enforce_max_size(log: &NetworkLog) -> Result<()> {
    let store = log.store();
    for _ in 0..DELETE_BATCHES {
        if log.used_bytes()? <= log.core.config.network_log.max_size.0 {
            break;
        }
        let deleted = store.write(delete_oldest_in).wait()?;
        if deleted == 0 {
            break;
        }
        log.metrics.deleted_for_size.add(deleted as u64);
    }
    Ok(())
}

/// Rewrites the file if less than half of it is in use. Otherwise new entries use the space.
fn shrink_if_sparse(log: &NetworkLog) -> Result<()> {
    let store = log.store();
    let file = store.require_file()?;
    let pages = file.page_bytes()?;
    if pages.total < SPARSE_ABOVE || pages.used > pages.total / 2 {
        return Ok(());
    }
    ensure_free_space(parent_of(file.path()), pages.used.saturating_mul(2))?;
    file.vacuum().wait()
}

fn path_of(config: &Config) -> PathBuf {
    config.data_dir().join(NETWORK_LOG)
}

fn open_file(core: &Core, policy: SchemaPolicy) -> Result<Store> {
    let database = &core.config.database;
    let tuning = Tuning {
        mmap_size: database.mmap_size.0,
        cache_kib: u32::try_from(database.cache.0 / 1024).unwrap_or(u32::MAX),
        // Exports, reports, and one for maintenance.
        readers: database.long_reads + database.reports + 1,
        slow: core.config.limits.slow_query,
        ..Tuning::SMALL
    };
    Store::open_network_log(&path_of(&core.config), &tuning, core.clock.clone(), policy)
}

/// Renames a damaged file, so that an operator can examine it. Replaces an earlier one.
fn set_aside(path: &Path) -> Result<()> {
    let aside = with_suffix(path, DAMAGED);
    for suffix in ["", "-wal"] {
        let (from, to) = (with_suffix(path, suffix), with_suffix(&aside, suffix));
        remove_if_exists(&to).map_err(|error| file_error(&to, error))?;
        if from.exists() {
            std::fs::rename(&from, &to).map_err(|error| file_error(&from, error))?;
        }
    }
    let index = with_suffix(path, "-shm");
    remove_if_exists(&index).map_err(|error| file_error(&index, error))
}

/// Returns the file that was set aside as damaged, if there is one.
pub fn damaged_file(config: &Config) -> Option<PathBuf> {
    Some(with_suffix(&path_of(config), DAMAGED)).filter(|path| path.exists())
}
