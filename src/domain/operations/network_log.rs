//! The network log: one entry for each request, written in batches in the background.
//!
//! A request only queues its entry in memory. If the disk is too slow, further entries are dropped and counted.
//!
//! The surprise: a database row holds thousands of entries (see `blocks.rs`), so that an entry costs a request almost
//! nothing. [`pieces`] make them searchable.

mod blocks;
pub mod pieces;
pub mod search;
pub mod tallies;

use std::{
    net::IpAddr,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    thread::Thread,
    time::Duration,
};

use blocks::{Block, TOGETHER, Waiting};

use crate::{
    concurrency::lock::lock_unpoisoned,
    core::Core,
    domain::operations::free_space_scrub,
    error::Result,
    store::{Read, Write},
    types::{Timestamp, UserId},
};

/// The queue's capacity: some seconds of the heaviest traffic.
const WAITING: i64 = 200_000;

/// A finished request. The route is the template, because paths and queries contain phone numbers.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'request> {
    pub at: Timestamp,
    pub user: Option<UserId>,
    pub client: IpAddr,
    pub method: &'static str,
    pub route: Option<&'static str>,
    pub status: u16,
    pub duration: Duration,
    pub request_id: &'request str,
}

/// The network log of a server, with the entries that are not stored yet.
pub struct NetworkLog {
    pub core: Core,
    waiting: Mutex<Waiting>,
    dropped: AtomicU64,
    /// The thread that is unparked when several blocks are full.
    writer: OnceLock<Thread>,
}

impl NetworkLog {
    pub fn new(core: Core) -> Self {
        Self { core, waiting: Mutex::default(), dropped: AtomicU64::new(0), writer: OnceLock::new() }
    }

    pub fn record(&self, entry: &Entry<'_>) {
        let mut waiting = lock_unpoisoned(&self.waiting);
        if waiting.entries() >= WAITING {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let is_worth_a_commit = waiting.push(entry);
        drop(waiting);
        if let Some(writer) = self.writer.get().filter(|_| is_worth_a_commit) {
            writer.unpark();
        }
    }

    /// Registers the current thread to be unparked when there are full blocks for [`flush_full`].
    pub fn wake_this_thread(&self) {
        // A process has one server with one such thread.
        let _ = self.writer.set(std::thread::current());
    }

    /// Sets the common prefix of the service's request ids, which eight hexadecimal digits follow. Such ids are stored
    /// as numbers.
    pub fn expect_ids(&self, start: &str) {
        lock_unpoisoned(&self.waiting).expect_ids(start);
    }
}

/// Writes all queued entries and returns the number of blocks. Blocks.
///
/// # Errors
/// Storage errors; entries that were not written stay queued.
pub fn flush(log: &NetworkLog) -> Result<usize> {
    let dropped = log.dropped.swap(0, Ordering::Relaxed);
    if dropped > 0 {
        tracing::warn!(dropped, "network log entries came faster than the disk took them");
    }
    let written = write_blocks(log, Waiting::pop)?;
    // Blocks may have become full during the write, without another unpark.
    Ok(written + flush_full(log)?)
}

/// Writes only full blocks. Under load this spreads the writes, so that none delays others for long.
///
/// # Errors
/// As [`flush`].
pub fn flush_full(log: &NetworkLog) -> Result<usize> {
    write_blocks(log, Waiting::pop_full)
}

/// Writes blocks in groups, until one that is not full.
fn write_blocks(log: &NetworkLog, next: fn(&mut Waiting) -> Option<Block>) -> Result<usize> {
    let mut written = 0;
    loop {
        let mut blocks: Vec<Block> = Vec::new();
        while blocks.len() < TOGETHER
            && blocks.last().is_none_or(Block::is_full)
            && let Some(block) = next(&mut lock_unpoisoned(&log.waiting))
        {
            blocks.push(block);
        }
        let Some(last) = blocks.last() else { return Ok(written) };
        let is_last = !last.is_full();
        written += blocks.len();
        let blocks = Arc::new(blocks);
        let shared = Arc::clone(&blocks);
        let receipt = log.core.store.write(move |tx| shared.iter().try_for_each(|block| blocks::insert_in(tx, block)));
        if let Err(error) = receipt.wait() {
            let mut waiting = lock_unpoisoned(&log.waiting);
            Arc::unwrap_or_clone(blocks).into_iter().rev().for_each(|block| waiting.give_back(block));
            return Err(error);
        }
        if is_last {
            return Ok(written);
        }
    }
}

/// The table of blocks.
pub const BLOCKS: &str = "access_log_blocks";
/// The view of the entries.
pub const ENTRIES: &str = "access_log";

/// Counts the entries.
///
/// # Errors
/// Storage errors.
pub fn count_in(tx: &Read<'_>) -> Result<i64> {
    blocks::count_in(tx)
}

/// Returns the latest time of any entry. Reads every block's times.
pub fn latest_in(tx: &Read<'_>) -> Result<Option<Timestamp>> {
    blocks::latest_at_in(tx)
}

/// Returns the client addresses of the newest requests, without health checks.
pub fn recent_clients_in(tx: &Read<'_>, limit: u32) -> Result<Vec<String>> {
    let newest = blocks::newest_entry_in(tx)?.unwrap_or(0);
    let mut clients = Vec::new();
    blocks::each_in(tx, newest + 1 - i64::from(limit), newest, |_, entry| {
        if entry.route.is_some_and(|route| !matches!(route, "/healthz" | "/readyz")) {
            clients.push(entry.client_ip.to_string());
        }
        Ok(())
    })?;
    Ok(clients)
}

/// Deletes some blocks whose entries are all older than `age`, the oldest first, with empty pieces.
pub fn delete_older_in(tx: &Write<'_>, age: Duration) -> Result<usize> {
    let deleted = blocks::delete_oldest_in(tx, tx.now.minus(age))?;
    if deleted > 0 {
        pieces::delete_empty_in(tx)?;
    }
    Ok(usize::try_from(deleted).unwrap_or(0))
}

/// Deletes all entries older than `age`, in batches, and returns their number. Blocks.
///
/// # Errors
/// Storage errors; earlier batches stay deleted.
pub fn clean_up(core: &Core, age: Duration) -> Result<usize> {
    let deleted = free_space_scrub::delete_in_batches(core, move |tx| delete_older_in(tx, age))?;
    free_space_scrub::delete_in_batches(core, pieces::delete_empty_in)?;
    Ok(deleted)
}
