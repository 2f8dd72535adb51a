//! Semaphores that reject instead of waiting, so that a slow provider or a burst of password hashes cannot occupy every
//! thread.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
};

use crate::{
    concurrency::lock::lock_unpoisoned,
    error::{Code, Error, Result},
};

/// A counting semaphore.
#[derive(Debug)]
pub struct Semaphore {
    capacity: u32,
    acquired: AtomicU32,
}

/// A permit of a [`Semaphore`], released on drop.
#[derive(Debug)]
pub struct Permit<'semaphore>(&'semaphore AtomicU32);

impl Semaphore {
    pub fn new(capacity: u32) -> Self {
        Self { capacity, acquired: AtomicU32::new(0) }
    }

    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Acquires a permit.
    ///
    /// # Errors
    /// `overloaded` if none is free. Waiting for one would occupy the thread that the semaphore is meant to save.
    pub fn try_acquire(&self) -> Result<Permit<'_>> {
        let before = self.acquired.fetch_add(1, Ordering::Relaxed);
        let permit = Permit(&self.acquired);
        if before < self.capacity {
            Ok(permit)
        } else {
            Err(Error::new(Code::Overloaded).detail("Too many operations of this kind are running. Try again later."))
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A semaphore that also limits how many permits one key may hold. Clones share the permits.
#[derive(Clone, Debug)]
pub struct KeyedSemaphore<K: Eq + Hash> {
    capacity: u32,
    acquired: Arc<Mutex<Acquired<K>>>,
}

/// A permit of a [`KeyedSemaphore`] or [`KeyedMutex`], released on drop.
#[derive(Debug)]
pub struct KeyedPermit<K: Eq + Hash> {
    key: K,
    acquired: Arc<Mutex<Acquired<K>>>,
}

#[derive(Debug)]
struct Acquired<K> {
    total: u32,
    by_key: HashMap<K, u32>,
}

impl<K: Eq + Hash + Clone> KeyedSemaphore<K> {
    pub fn new(capacity: u32) -> Self {
        Self { capacity, acquired: Arc::new(Mutex::new(Acquired { total: 0, by_key: HashMap::new() })) }
    }

    /// Acquires a permit, or returns `None` if none is free or `key` already holds `max_per_key`.
    pub fn try_acquire(&self, key: K, max_per_key: u32) -> Option<KeyedPermit<K>> {
        let mut acquired = lock_unpoisoned(&self.acquired);
        let of_key = acquired.by_key.get(&key).copied().unwrap_or(0);
        if acquired.total >= self.capacity || of_key >= max_per_key {
            return None;
        }
        acquired.total += 1;
        acquired.by_key.insert(key.clone(), of_key + 1);
        Some(KeyedPermit { key, acquired: Arc::clone(&self.acquired) })
    }
}

impl<K: Eq + Hash> Drop for KeyedPermit<K> {
    fn drop(&mut self) {
        let mut acquired = lock_unpoisoned(&self.acquired);
        acquired.total = acquired.total.saturating_sub(1);
        if let Some(count) = acquired.by_key.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                acquired.by_key.remove(&self.key);
            }
        }
    }
}

/// A mutex for each key, such as one per user.
#[derive(Debug)]
pub struct KeyedMutex<K: Eq + Hash>(KeyedSemaphore<K>);

impl<K: Eq + Hash + Clone> Default for KeyedMutex<K> {
    fn default() -> Self {
        Self(KeyedSemaphore::new(u32::MAX))
    }
}

impl<K: Eq + Hash + Clone> KeyedMutex<K> {
    /// Locks the key until the permit is dropped.
    ///
    /// # Errors
    /// `already_running` if the key is locked.
    pub fn try_acquire(&self, key: K) -> Result<KeyedPermit<K>> {
        self.0.try_acquire(key, 1).ok_or_else(|| Code::AlreadyRunning.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::UserId;

    #[test]
    fn dropping_a_permit_releases_it() {
        let semaphore = Semaphore::new(1);
        let permit = semaphore.try_acquire().unwrap();
        assert_eq!(semaphore.try_acquire().unwrap_err().code, Code::Overloaded);
        drop(permit);
        assert!(semaphore.try_acquire().is_ok());
    }

    #[test]
    fn a_keyed_mutex_locks_each_key_once() {
        let mutex = KeyedMutex::default();
        let first = mutex.try_acquire(UserId(1)).unwrap();
        assert_eq!(mutex.try_acquire(UserId(1)).unwrap_err().code, Code::AlreadyRunning);
        assert!(mutex.try_acquire(UserId(2)).is_ok());
        drop(first);
        assert!(mutex.try_acquire(UserId(1)).is_ok());
    }

    #[test]
    fn a_keyed_semaphore_limits_each_key_and_the_total() {
        let semaphore = KeyedSemaphore::new(3);
        let acquire = |key: &'static str| semaphore.try_acquire(key, 2);
        let of_one = [acquire("one"), acquire("one")];
        assert!(of_one.iter().all(Option::is_some) && acquire("one").is_none());
        let of_another = acquire("another").unwrap();
        assert!(acquire("another").is_none() && acquire("a third").is_none());
        drop(of_one);
        assert!(acquire("one").is_some() && acquire("another").is_some());
        drop(of_another);
        assert!(semaphore.acquired.lock().unwrap().by_key.is_empty());
    }
}
