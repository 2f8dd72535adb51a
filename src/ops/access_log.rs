//! The network log: one row a request, written in batches behind the requests.
//!
//! A request only puts its entry into memory. If entries come faster than the disk takes them, the oldest waiting
//! ones are kept, further ones are counted and dropped, and the log says so: no request ever waits for its own entry.
//!
//! The surprise: the table has no index but its own order, so that writing an entry is appending a row. What is in it
//! is found by [`pieces`], which are made of it later, thousands of entries at once.

pub mod pieces;
pub mod search;
pub mod tallies;

use std::{
    net::IpAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use crate::{
    app::App,
    error::Result,
    store::{Read, Write},
    types::{Timestamp, UserId},
};

/// Entries that wait at most: some seconds of the busiest traffic.
const WAITING: usize = 200_000;
/// Entries written by one operation, so that other operations come in between. Each operation is a commit, and each
/// commit empties the page caches of the readers: small ones make reading slower.
const BATCH: usize = 4096;
/// Entries deleted by one operation: a few milliseconds of the writer's time.
pub const SLICE: u32 = 1000;

/// One answered request. The route is the template, because paths and queries carry phone numbers.
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

/// Entries on their way to the store.
#[derive(Default)]
pub struct Recorder {
    waiting: Mutex<Vec<Entry>>,
    dropped: AtomicU64,
}

impl Recorder {
    pub fn record(&self, entry: Entry) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() < WAITING {
            waiting.push(entry);
        } else {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn take(&self) -> Vec<Entry> {
        std::mem::take(&mut self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts entries that could not be written back in front of those that came since.
    fn give_back(&self, mut entries: Vec<Entry>) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        entries.append(&mut waiting);
        let excess = entries.len().saturating_sub(WAITING);
        entries.truncate(WAITING);
        self.dropped.fetch_add(excess as u64, Ordering::Relaxed);
        *waiting = entries;
    }
}

/// Writes what waits, and waits for the disk.
///
/// # Errors
/// Storage errors; what could not be written waits for the next time.
pub fn flush(app: &App) -> Result<()> {
    let dropped = app.access_log.dropped.swap(0, Ordering::Relaxed);
    if dropped > 0 {
        tracing::warn!(dropped, "network log entries came faster than the disk took them");
    }
    let mut waiting = app.access_log.take();
    while !waiting.is_empty() {
        let rest = waiting.split_off(waiting.len().min(BATCH));
        let batch = Arc::new(waiting);
        let shared = Arc::clone(&batch);
        if let Err(error) = app.store.write(move |tx| insert_in(tx, &shared)).wait() {
            let mut unwritten = Arc::unwrap_or_clone(batch);
            unwritten.extend(rest);
            app.access_log.give_back(unwritten);
            return Err(error);
        }
        waiting = rest;
    }
    Ok(())
}

/// When the newest entry was written.
pub fn newest_in(tx: &Read<'_>) -> Result<Option<Timestamp>> {
    tx.first("select at from access_log order by id desc limit 1", (), |row| row.get(0).map(Timestamp))
}

/// The clients of the last requests, but for those of monitors on this machine.
pub fn recent_clients_in(tx: &Read<'_>, limit: u32) -> Result<Vec<String>> {
    tx.all(
        "select client_ip from (select client_ip, route from access_log order by id desc limit ?1) \
         where route is not null and route not in ('/healthz', '/readyz')",
        [limit],
        |row| row.get(0),
    )
}

/// Deletes up to `limit` entries older than `age`, and what was made of them. Ids grow with time, so the oldest stand
/// first.
pub fn delete_older_in(tx: &Write<'_>, age: Duration, limit: u32) -> Result<usize> {
    let deleted = tx.execute(
        "delete from access_log where id in (select id from access_log order by id limit ?2) and at <= ?1",
        (tx.now.minus(age).0, limit),
    )?;
    if deleted > 0 {
        pieces::delete_empty_in(tx)?;
    }
    Ok(deleted)
}

/// Deletes entries older than `age` in slices, and says how many those were. Blocks for as long as that takes.
///
/// # Errors
/// Storage errors; what was deleted by then stays deleted.
pub fn clean_up(app: &App, age: Duration) -> Result<usize> {
    let mut deleted = 0;
    loop {
        match app.store.write(move |tx| delete_older_in(tx, age, SLICE)).wait()? {
            0 => return Ok(deleted),
            some => deleted += some,
        }
    }
}

fn insert_in(tx: &Write<'_>, entries: &[Entry]) -> Result<()> {
    // Requests of one client come together, and writing an address as text costs a tenth of its row.
    let mut client = (IpAddr::from([0; 4]), Arc::<str>::from("0.0.0.0"));
    let rows = entries.iter().map(|entry| {
        if entry.client != client.0 {
            client = (entry.client, entry.client.to_string().into());
        }
        (
            entry.at.0,
            entry.user.map(|user| user.0),
            Arc::clone(&client.1),
            entry.method,
            entry.route,
            entry.status,
            i64::try_from(entry.duration.as_micros()).unwrap_or(i64::MAX),
            &entry.request_id,
        )
    });
    tx.execute_each(
        "insert into access_log (at, user_id, client_ip, method, route, status, duration_us, request_id) \
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        rows,
    )
    .map(drop)
}
