//! The finished requests that wait for the writer of the network log, in a bounded number of bytes.
//!
//! A request only copies its entry under a lock that the writer holds for a moment. An entry has a fixed size and owns no
//! memory. Entries that find the queue full are counted by route.

use std::{
    mem,
    net::IpAddr,
    sync::{Mutex, OnceLock},
    thread::{self, Thread},
    time::Duration,
};

use super::unlisted::{self, Unlisted};
use crate::{
    concurrency::lock::lock_unpoisoned,
    types::{Timestamp, UserId},
};

/// The bytes of all entries in memory, also of those that are being written.
pub const QUEUE_BYTES: usize = 8 << 20;
/// The most entries in memory.
const CAPACITY: usize = QUEUE_BYTES / size_of::<Entry>();
/// The number of entries that wakes the writer.
const HALF: usize = CAPACITY / 2;
/// Entries that are allocated at once. Longer vectors would be mapped anew, page by page.
const CHUNK: usize = 512;

/// A finished request. The route is the template, because paths and queries contain phone numbers.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub at: Timestamp,
    pub user: Option<UserId>,
    pub client: IpAddr,
    pub method: &'static str,
    pub route: Option<&'static str>,
    pub status: u16,
    pub duration_us: u32,
    pub request_id: RequestId,
}

impl Entry {
    /// Returns the time at which the request began.
    pub(super) fn began_at(&self) -> Timestamp {
        self.at.minus(Duration::from_micros(self.duration_us.into()))
    }
}

/// A request id: up to 64 ASCII characters.
#[derive(Clone, Copy, Debug)]
pub struct RequestId {
    length: u8,
    text: [u8; 64],
}

impl From<&str> for RequestId {
    /// Cuts off what is too long.
    fn from(id: &str) -> Self {
        let mut text = [0; 64];
        let length = id.floor_char_boundary(text.len());
        text[..length].copy_from_slice(&id.as_bytes()[..length]);
        Self { length: u8::try_from(length).unwrap_or(64), text }
    }
}

impl RequestId {
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.text[..self.length.into()]).unwrap_or_default()
    }
}

#[derive(Default)]
pub(super) struct EntryQueue {
    waiting: Mutex<Waiting>,
    writer: OnceLock<Thread>,
}

#[derive(Default)]
struct Waiting {
    chunks: Vec<Vec<Entry>>,
    /// Entries in memory: those of the chunks, and those that were taken and not written yet.
    count: usize,
    unlisted: Unlisted,
}

impl EntryQueue {
    /// Waits until the queue is half full, the time is over or the thread is unparked. The only caller is the writer.
    pub fn wait(&self, longest: Duration) {
        self.writer.get_or_init(thread::current);
        if lock_unpoisoned(&self.waiting).count < HALF {
            thread::park_timeout(longest);
        }
    }

    /// Queues an entry. Returns false, and counts it, if the queue is full.
    pub fn push(&self, entry: Entry) -> bool {
        let mut waiting = lock_unpoisoned(&self.waiting);
        if waiting.count >= CAPACITY {
            *waiting.unlisted.entry(entry.route).or_default() += 1;
            return false;
        }
        waiting.count += 1;
        if waiting.chunks.last().is_none_or(|chunk| chunk.len() == CHUNK) {
            waiting.chunks.push(Vec::with_capacity(CHUNK));
        }
        if let Some(chunk) = waiting.chunks.last_mut() {
            chunk.push(entry);
        }
        if let (HALF, Some(writer)) = (waiting.count, self.writer.get()) {
            writer.unpark();
        }
        true
    }

    /// Takes all entries, which stay part of the queue's size until [`Self::forget`].
    pub fn take(&self) -> Vec<Vec<Entry>> {
        mem::take(&mut lock_unpoisoned(&self.waiting).chunks)
    }

    /// Takes the counts of the entries that found the queue full.
    pub fn take_unlisted(&self) -> Unlisted {
        mem::take(&mut lock_unpoisoned(&self.waiting).unlisted)
    }

    /// Puts back counts that could not be stored.
    pub fn put_back_unlisted(&self, unlisted: Unlisted) {
        unlisted::add(&mut lock_unpoisoned(&self.waiting).unlisted, unlisted);
    }

    /// Puts back chunks that could not be written, before those that came since.
    pub fn put_back(&self, mut chunks: Vec<Vec<Entry>>) {
        let mut waiting = lock_unpoisoned(&self.waiting);
        chunks.append(&mut waiting.chunks);
        waiting.chunks = chunks;
    }

    /// Gives back the space of entries that were written.
    pub fn forget(&self, written: usize) {
        lock_unpoisoned(&self.waiting).count -= written;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(route: &'static str) -> Entry {
        Entry {
            at: Timestamp(0),
            user: None,
            client: IpAddr::from([192, 0, 2, 1]),
            method: "GET",
            route: Some(route),
            status: 200,
            duration_us: 1,
            request_id: RequestId::from("request"),
        }
    }

    #[test]
    fn a_full_queue_counts_by_route_until_entries_are_written() {
        let queue = EntryQueue::default();
        assert!((0..CAPACITY).all(|_| queue.push(entry("/first"))));
        assert!(!queue.push(entry("/first")) && !queue.push(entry("/second")) && !queue.push(entry("/second")));
        // What the writer holds counts, too.
        let taken = queue.take();
        assert!(!queue.push(entry("/first")));
        let unlisted = queue.take_unlisted();
        assert_eq!(unlisted, Unlisted::from([(Some("/first"), 2), (Some("/second"), 2)]));
        queue.put_back_unlisted(unlisted.clone());
        assert_eq!(queue.take_unlisted(), unlisted);
        queue.put_back(taken);
        queue.forget(1);
        assert!(queue.push(entry("/third")) && !queue.push(entry("/third")));
        let chunks = queue.take();
        assert_eq!(chunks.iter().map(Vec::len).sum::<usize>(), CAPACITY + 1);
        assert_eq!(chunks.last().unwrap().last().unwrap().route, Some("/third"));
    }

    #[test]
    fn the_queue_has_a_bounded_size() {
        assert!(size_of::<Entry>() <= 160, "{}", size_of::<Entry>());
        assert_eq!(RequestId::from("a".repeat(70).as_str()).as_str(), "a".repeat(64));
    }
}
