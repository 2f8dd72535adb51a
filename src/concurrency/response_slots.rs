//! At most one large response in memory per user, held until its client has read it.
//!
//! A second request is rejected while the first response is being read: otherwise two devices of one user would abort
//! each other forever. A response that nobody has read for 15 seconds is replaced, because a phone that lost its network
//! does not close the connection; its memory is freed at once.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use crate::concurrency::lock::lock_unpoisoned;

/// Time without a read after which a response counts as stalled. The kernel accepts more only once a third of its send
/// buffer (some hundred KiB) is free, which takes a phone on a slow network several seconds.
const STALLED_AFTER: Duration = Duration::from_secs(15);

/// The large responses being sent, by the key of their receiver.
#[derive(Debug)]
pub struct PerUserResponseSlots<K: Eq + Hash, C>(Arc<Mutex<Active<K, C>>>);

type Active<K, C> = HashMap<K, Arc<Mutex<Buffer<C>>>>;

/// One response, held until it is dropped or superseded.
#[derive(Debug)]
pub struct ResponseSlot<K: Eq + Hash, C> {
    key: K,
    buffer: Arc<Mutex<Buffer<C>>>,
    active: Arc<Mutex<Active<K, C>>>,
}

#[derive(Debug)]
struct Buffer<C> {
    /// `None` once superseded.
    content: Option<C>,
    length: usize,
    read: usize,
    last_read: Instant,
}

/// Another response has replaced this stalled one.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("a newer response replaced this one, which was not being read")]
pub struct Superseded;

impl<K: Eq + Hash, C> Default for PerUserResponseSlots<K, C> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: Eq + Hash + Clone, C: AsRef<[u8]>> PerUserResponseSlots<K, C> {
    /// Frees the memory of the key's current response if that is stalled.
    ///
    /// # Errors
    /// The shortest time until it can count as stalled, if it is being read.
    pub fn discard_stalled(&self, key: &K, now: Instant) -> Result<(), Duration> {
        let active = lock_unpoisoned(&self.0);
        active.get(key).map_or(Ok(()), |current| lock_unpoisoned(current).discard_if_stalled(now))
    }

    /// Stores a response for the key.
    ///
    /// # Errors
    /// The shortest time until the current response can count as stalled, if one is being read.
    pub fn begin(&self, key: K, content: C, now: Instant) -> Result<ResponseSlot<K, C>, Duration> {
        let mut active = lock_unpoisoned(&self.0);
        if let Some(older) = active.get(&key) {
            lock_unpoisoned(older).discard_if_stalled(now)?;
        }
        let length = content.as_ref().len();
        let buffer = Arc::new(Mutex::new(Buffer { content: Some(content), length, read: 0, last_read: now }));
        active.insert(key.clone(), Arc::clone(&buffer));
        Ok(ResponseSlot { key, buffer, active: Arc::clone(&self.0) })
    }
}

impl<K: Eq + Hash, C: AsRef<[u8]>> ResponseSlot<K, C> {
    /// Copies up to `max` of the next bytes; returns an empty vector at the end. A copy, so that a caller never keeps
    /// the whole buffer alive.
    ///
    /// # Errors
    /// [`Superseded`].
    pub fn take(&self, max: usize, now: Instant) -> Result<Vec<u8>, Superseded> {
        lock_unpoisoned(&self.buffer).take(max, now)
    }

    /// Returns the number of bytes not read yet.
    pub fn remaining(&self) -> usize {
        let buffer = lock_unpoisoned(&self.buffer);
        buffer.length - buffer.read
    }
}

impl<K: Eq + Hash, C> Drop for ResponseSlot<K, C> {
    fn drop(&mut self) {
        let mut active = lock_unpoisoned(&self.active);
        if active.get(&self.key).is_some_and(|buffer| Arc::ptr_eq(buffer, &self.buffer)) {
            active.remove(&self.key);
        }
    }
}

impl<C: AsRef<[u8]>> Buffer<C> {
    fn discard_if_stalled(&mut self, now: Instant) -> Result<(), Duration> {
        let wait = STALLED_AFTER.saturating_sub(now.saturating_duration_since(self.last_read));
        if !wait.is_zero() {
            return Err(wait);
        }
        self.content = None;
        Ok(())
    }

    fn take(&mut self, max: usize, now: Instant) -> Result<Vec<u8>, Superseded> {
        let content = self.content.as_ref().ok_or(Superseded)?.as_ref();
        let end = self.length.min(self.read + max);
        let piece = content[self.read..end].to_vec();
        (self.read, self.last_read) = (end, now);
        Ok(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropping_a_read_response_frees_its_slot() {
        let (slots, now) = (PerUserResponseSlots::default(), Instant::now());
        let slot = slots.begin("one", b"abcde".to_vec(), now).unwrap();
        assert_eq!((slot.take(3, now), slot.remaining()), (Ok(b"abc".to_vec()), 2));
        assert!(slots.begin("other", Vec::new(), now).is_ok());
        assert_eq!((slot.take(3, now), slot.remaining()), (Ok(b"de".to_vec()), 0));
        assert_eq!(slot.take(3, now), Ok(Vec::new()));
        assert_eq!(slots.begin("one", Vec::new(), now).unwrap_err(), STALLED_AFTER);
        drop(slot);
        assert!(slots.begin("one", Vec::new(), now).is_ok());
    }

    #[test]
    fn only_a_stalled_response_is_replaced() {
        let (slots, begun) = (PerUserResponseSlots::default(), Instant::now());
        let at = |seconds| begun + Duration::from_secs(seconds);
        let older = slots.begin((), b"abcde".to_vec(), begun).unwrap();
        assert!(older.take(1, at(9)).is_ok());
        assert_eq!(slots.begin((), Vec::new(), at(18)).unwrap_err(), Duration::from_secs(6));
        assert!(older.take(1, at(21)).is_ok());
        assert_eq!(slots.discard_stalled(&(), at(35)), Err(Duration::from_secs(1)));
        let newer = slots.begin((), b"fgh".to_vec(), at(36)).unwrap();
        assert!(lock_unpoisoned(&older.buffer).content.is_none(), "a superseded response keeps its memory");
        assert_eq!((older.take(1, at(36)), older.remaining()), (Err(Superseded), 3));
        // Dropping the older slot keeps the newer one.
        drop(older);
        assert!(slots.begin((), Vec::new(), at(39)).is_err());
        assert_eq!(newer.take(9, at(39)), Ok(b"fgh".to_vec()));
        drop(newer);
        assert!(lock_unpoisoned(&slots.0).is_empty());
    }
}
