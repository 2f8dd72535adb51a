//! The network log: one row for each request, written in batches in the background.
//!
//! A request only queues its entry in memory. If the disk is too slow, further entries are dropped and counted. The rows
//! are in a database file of their own, `network-log.db`, which backups do not contain: its writes delay no others. A
//! power cut may lose the last entries. A damaged or deleted file is replaced by an empty one.

mod client_counts;
pub mod clients;
mod counted_days;
mod counted_range;
pub mod erasure;
pub mod search;

use std::{
    mem,
    net::IpAddr,
    ops::Range,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
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

/// The queue's capacity: some seconds of the heaviest traffic.
const QUEUE: usize = 200_000;
/// Rows inserted in one write.
const INSERT_BATCH_SIZE: usize = 4096;
/// Rows deleted in one write.
const DELETE_BATCH_SIZE: u32 = 2000;
/// Batches deleted between two writes of new entries.
const DELETE_BATCHES: u32 = 20;
/// Files below this size are not worth shrinking.
const SPARSE_ABOVE: u64 = 64 << 20;
/// The suffix of a file that could not be read.
const DAMAGED: &str = ".damaged";

/// A finished request. The route is the template, because paths and queries contain phone numbers.
#[derive(Clone, Debug)]
pub struct Entry {
    pub at: Timestamp,
    pub user: Option<UserId>,
    pub client: IpAddr,
    pub method: &'static str,
    pub route: Option<&'static str>,
    pub status: u16,
    pub duration: Duration,
    pub request_id: String,
}

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
    waiting: Mutex<Vec<Entry>>,
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
            waiting: Mutex::default(),
            store: Mutex::new(store),
            erased_until: AtomicI64::new(0),
        })
    }

    /// Queues the entry of a request.
    pub fn record(&self, entry: Entry) {
        let mut waiting = lock_unpoisoned(&self.waiting);
        if waiting.len() < QUEUE {
            waiting.push(entry);
        } else {
            self.metrics.dropped.add(1);
        }
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

/// Writes queued entries, deletes those of erased users, keeps the log below its maximum size, and counts a day that has
/// ended. Blocks.
///
/// # Errors
/// Storage errors; entries that were not written stay queued.
pub fn maintain(log: &NetworkLog) -> Result<()> {
    flush(log)?;
    erasure::run_some(log)?;
    enforce_max_size(log)?;
    counted_days::count_one(log)
}

/// Writes all queued entries. Blocks.
///
/// # Errors
/// As [`maintain`].
pub fn flush(log: &NetworkLog) -> Result<()> {
    let entries = Arc::new(mem::take(&mut *lock_unpoisoned(&log.waiting)));
    for start in (0..entries.len()).step_by(INSERT_BATCH_SIZE) {
        if let Err(error) = write(log, &entries, start..entries.len().min(start + INSERT_BATCH_SIZE)) {
            let mut unwritten = Arc::unwrap_or_clone(entries).split_off(start);
            let mut waiting = lock_unpoisoned(&log.waiting);
            unwritten.append(&mut waiting);
            *waiting = unwritten;
            return Err(error);
        }
    }
    Ok(())
}

fn write(log: &NetworkLog, entries: &Arc<Vec<Entry>>, range: Range<usize>) -> Result<()> {
    let insert = |store: &Store| {
        let (entries, range) = (Arc::clone(entries), range.clone());
        store.write_without_savepoint(move |tx| insert_in(tx, &entries[range])).wait()
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

fn insert_in(tx: &Write<'_>, entries: &[Entry]) -> Result<()> {
    let purged_at = purged_at_in(tx)?;
    let is_purged = |entry: &Entry| purged_at.is_some_and(|purged_at| entry.at.minus(entry.duration) <= purged_at);
    let entries: Vec<_> = entries.iter().filter(|entry| !is_purged(entry)).collect();
    let rows = entries.iter().map(|entry| {
        (
            entry.at.0,
            entry.user.map(|user| user.0),
            entry.client.to_string(),
            entry.method,
            entry.route,
            entry.status,
            i64::try_from(entry.duration.as_micros()).unwrap_or(i64::MAX),
            &entry.request_id,
            clients::is_failed_sign_in(entry.route, entry.status),
        )
    });
    tx.execute_each(
        "insert into access_log (at, user_id, client_ip, method, route, status, duration_us, request_id, \
         is_failed_sign_in) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        rows,
    )?;
    client_counts::add_in(tx, &entries)
}

/// The user of an entry.
#[derive(Clone, Copy, Debug)]
pub struct UserEntry {
    pub id: i64,
    pub at: Timestamp,
    /// None for requests without a signed-in user.
    pub user: Option<UserId>,
}

/// Returns the users of the next entries after this id, in the order in which they were written. Blocks.
///
/// # Errors
/// Storage errors.
pub fn users_after(log: &NetworkLog, after: i64, limit: u32) -> Result<Vec<UserEntry>> {
    let sql = "select id, at, user_id from access_log where id > ?1 order by id limit ?2";
    log.read(|tx| {
        tx.all(sql, (after, limit), |row| {
            let user: Option<i64> = row.get(2)?;
            Ok(UserEntry { id: row.get(0)?, at: Timestamp(row.get(1)?), user: user.map(UserId) })
        })
    })
}

/// Returns the id of the last entry, 0 in an empty log. Blocks.
///
/// # Errors
/// Storage errors.
pub fn last_id(log: &NetworkLog) -> Result<i64> {
    let sql = "select id from access_log order by id desc limit 1";
    log.read(|tx| Ok(tx.first(sql, (), |row| row.get(0))?.unwrap_or(0)))
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

/// Counts the entries. Reads an index of all of them.
///
/// # Errors
/// Storage errors.
pub fn count(log: &NetworkLog) -> Result<i64> {
    log.read(|tx| tx.one("select count(*) from access_log", (), |row| row.get(0)))
}

/// Returns the size and age of the log.
///
/// # Errors
/// Storage errors.
pub fn status(log: &NetworkLog) -> Result<LogStatus> {
    let used_bytes = log.used_bytes()?;
    log.read(|tx| {
        // Two statements, because each end is one step in the index.
        let at = |sql: &str| tx.first(sql, (), |row| row.get(0).map(Timestamp));
        Ok(LogStatus {
            used_bytes,
            oldest: at("select at from access_log order by at limit 1")?,
            latest: at("select at from access_log order by at desc limit 1")?,
        })
    })
}

/// Returns the client addresses of the newest requests, without health checks.
///
/// # Errors
/// Storage errors.
pub fn recent_clients(log: &NetworkLog, limit: u32) -> Result<Vec<String>> {
    let sql = "select client_ip from (select id, client_ip, route from access_log order by id desc limit ?1) as newest \
               where route not in ('/healthz', '/readyz') order by id desc";
    log.read(|tx| tx.all(sql, [limit], |row| row.get(0)))
}

/// Deletes some of the oldest entries before `before`, and returns their number. Blocks.
///
/// # Errors
/// Storage errors.
pub fn delete_batch_before(log: &NetworkLog, before: Timestamp) -> Result<usize> {
    let sql = "delete from access_log where id in (select id from access_log where at < ?1 order by at limit ?2)";
    log.store().write(move |tx| tx.execute(sql, (before.0, DELETE_BATCH_SIZE))).wait()
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
    tx.execute(
        "delete from access_log where id in (select id from access_log order by at limit ?1)",
        [DELETE_BATCH_SIZE],
    )
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
        is_low_priority: true,
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
