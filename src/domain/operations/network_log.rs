//! The network log: an entry a request, written in batches behind the requests.
//!
//! A request only writes its entry into memory. If entries come faster than the disk takes them, the oldest waiting
//! ones are kept, further ones are counted and dropped, and the log says so: no request ever waits for its own entry.
//!
//! The surprise: a row holds thousands of entries (see `blocks.rs`), so that one costs a request next to nothing. What
//! is in them is found by [`pieces`], which are made of them later.

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

/// Entries that wait at most: some seconds of the busiest traffic.
const WAITING: i64 = 200_000;

/// One answered request. The route is the template, because paths and queries carry phone numbers.
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
    /// Who is woken when some blocks are full.
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

    /// Has this thread unparked whenever there are full blocks to [`flush_full`]; once.
    pub fn wake_this_thread(&self) {
        // There is one server in a process, and one thread in it that writes the log.
        let _ = self.writer.set(std::thread::current());
    }

    /// Says what the ids begin with that the service gives requests; what follows are eight hexadecimal digits. Entries
    /// take less room then.
    pub fn expect_ids(&self, start: &str) {
        lock_unpoisoned(&self.waiting).expect_ids(start);
    }
}

/// Writes what waits, and waits for the disk. Says how many blocks those were.
///
/// # Errors
/// Storage errors; what could not be written waits for the next time.
pub fn flush(log: &NetworkLog) -> Result<usize> {
    let dropped = log.dropped.swap(0, Ordering::Relaxed);
    if dropped > 0 {
        tracing::warn!(dropped, "network log entries came faster than the disk took them");
    }
    let written = write_blocks(log, Waiting::pop)?;
    // Who waits for the disk is parked too, and what woke them may have been full blocks.
    Ok(written + flush_full(log)?)
}

/// The same for the blocks that are full. The busier the service is the sooner they are, and a few at a time hold up
/// nobody; all of half a second's at once would.
///
/// # Errors
/// As [`flush`].
pub fn flush_full(log: &NetworkLog) -> Result<usize> {
    write_blocks(log, Waiting::pop_full)
}

/// Writes some blocks at a time, up to one that is not full: what comes in meanwhile can wait.
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

/// The table whose rows hold many entries each.
pub const BLOCKS: &str = "access_log_blocks";
/// The name under which the entries themselves are known.
pub const ENTRIES: &str = "access_log";

/// How many requests are written down.
///
/// # Errors
/// Storage errors.
pub fn count_in(tx: &Read<'_>) -> Result<i64> {
    blocks::count_in(tx)
}

/// The latest time of any entry. Looks at every block.
pub fn latest_in(tx: &Read<'_>) -> Result<Option<Timestamp>> {
    blocks::latest_at_in(tx)
}

/// The clients of the last requests, but for those of monitors on this machine.
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

/// Deletes some of the entries older than `age`, the oldest first, and what was made of them. A block goes when all of
/// its entries are that old.
pub fn delete_older_in(tx: &Write<'_>, age: Duration) -> Result<usize> {
    let deleted = blocks::delete_oldest_in(tx, tx.now.minus(age))?;
    if deleted > 0 {
        pieces::delete_empty_in(tx)?;
    }
    Ok(usize::try_from(deleted).unwrap_or(0))
}

/// Deletes entries older than `age` in slices, and says how many those were. Blocks for as long as that takes.
///
/// # Errors
/// Storage errors; what was deleted by then stays deleted.
pub fn clean_up(core: &Core, age: Duration) -> Result<usize> {
    let deleted = free_space_scrub::delete_in_batches(core, move |tx| delete_older_in(tx, age))?;
    free_space_scrub::delete_in_batches(core, pieces::delete_empty_in)?;
    Ok(deleted)
}
