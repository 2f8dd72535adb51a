//! Semaphores that reject, or wait for a bounded time, so that a slow provider cannot occupy every
//! thread.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
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
        if before < self.capacity { Ok(permit) } else { Err(overloaded()) }
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

/// The limits of a [`WaitingSemaphore`].
#[derive(Clone, Copy, Debug)]
pub struct WaitLimits {
    /// Permits in total.
    pub permits: u32,
    /// Permits of one key.
    pub permits_per_key: u32,
    /// Callers that wait in total. Each occupies a thread.
    pub waiting: u32,
    /// Callers of one key that wait.
    pub waiting_per_key: u32,
    /// The most time that a caller waits.
    pub max_wait: Duration,
}

/// A semaphore with a limit per key, whose callers wait for a permit. For blocking threads only.
#[derive(Debug)]
pub struct WaitingSemaphore<K> {
    limits: WaitLimits,
    usage: Mutex<Usage<K>>,
    released: Condvar,
}

/// A permit of a [`WaitingSemaphore`], released on drop.
#[derive(Debug)]
pub struct WaitingPermit<'semaphore, K: Eq + Hash + Clone> {
    semaphore: &'semaphore WaitingSemaphore<K>,
    key: K,
}

/// The limit that left a caller without a permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPermit {
    /// The key holds all permits that it may hold.
    KeyLimit,
    /// All keys together hold all permits.
    TotalLimit,
}

#[derive(Debug)]
struct Usage<K> {
    running: u32,
    waiting: u32,
    /// Running and waiting callers by key.
    by_key: HashMap<K, (u32, u32)>,
}

impl<K: Eq + Hash + Clone> WaitingSemaphore<K> {
    pub fn new(limits: WaitLimits) -> Self {
        let usage = Usage { running: 0, waiting: 0, by_key: HashMap::new() };
        Self { limits, usage: Mutex::new(usage), released: Condvar::new() }
    }

    /// Returns the number of permits in total.
    pub fn permits(&self) -> u32 {
        self.limits.permits
    }

    /// Acquires a permit for the key. Blocks until one is free.
    ///
    /// # Errors
    /// The limit that was exceeded, if the wait took too long or too many callers wait.
    pub fn acquire(&self, key: K) -> Result<WaitingPermit<'_, K>, NoPermit> {
        let deadline = Instant::now() + self.limits.max_wait;
        let mut usage = lock_unpoisoned(&self.usage);
        let (_, waiting_of_key) = usage.of_key(&key);
        let can_wait = usage.waiting < self.limits.waiting && waiting_of_key < self.limits.waiting_per_key;
        usage.waiting += 1;
        usage.change(&key, 0, 1);
        let outcome = loop {
            let exceeded = match usage.of_key(&key) {
                (running, _) if running >= self.limits.permits_per_key => NoPermit::KeyLimit,
                _ if usage.running >= self.limits.permits => NoPermit::TotalLimit,
                _ => break Ok(()),
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if !can_wait || left.is_zero() {
                break Err(exceeded);
            }
            usage = self.released.wait_timeout(usage, left).unwrap_or_else(PoisonError::into_inner).0;
        };
        usage.waiting -= 1;
        usage.change(&key, i32::from(outcome.is_ok()), -1);
        usage.running += u32::from(outcome.is_ok());
        drop(usage);
        outcome.map(|()| WaitingPermit { semaphore: self, key })
    }
}

impl<K: Eq + Hash + Clone> Usage<K> {
    /// Returns the number of running and of waiting callers.
    fn of_key(&self, key: &K) -> (u32, u32) {
        self.by_key.get(key).copied().unwrap_or_default()
    }

    /// Changes the callers of a key, and forgets keys without callers.
    fn change(&mut self, key: &K, running: i32, waiting: i32) {
        let (was_running, was_waiting) = self.of_key(key);
        let now = (was_running.saturating_add_signed(running), was_waiting.saturating_add_signed(waiting));
        if now == (0, 0) {
            self.by_key.remove(key);
        } else {
            self.by_key.insert(key.clone(), now);
        }
    }
}

impl<K: Eq + Hash + Clone> Drop for WaitingPermit<'_, K> {
    fn drop(&mut self) {
        let mut usage = lock_unpoisoned(&self.semaphore.usage);
        usage.running -= 1;
        usage.change(&self.key, -1, 0);
        drop(usage);
        self.semaphore.released.notify_all();
    }
}

impl From<NoPermit> for Error {
    /// Maps the limit of one key to the key's own fault.
    fn from(limit: NoPermit) -> Self {
        match limit {
            NoPermit::KeyLimit => Self::new(Code::TooManyRequests).retry_after(Duration::from_secs(1)),
            NoPermit::TotalLimit => overloaded(),
        }
    }
}

/// The error of a caller for whom no permit is free.
pub(super) fn overloaded() -> Error {
    Error::new(Code::Overloaded).detail((
        "Too many operations of this kind are running. Try again later.",
        "此类操作正在运行的过多，请稍后再试。",
    ))
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
    fn a_waiting_semaphore_limits_keys_and_callers() {
        let limits = WaitLimits {
            permits: 3,
            permits_per_key: 2,
            waiting: 9,
            waiting_per_key: 1,
            max_wait: Duration::from_millis(20),
        };
        let semaphore = WaitingSemaphore::new(limits);
        let of_one = [semaphore.acquire("one").unwrap(), semaphore.acquire("one").unwrap()];
        assert_eq!(semaphore.acquire("one").err(), Some(NoPermit::KeyLimit));
        let of_two = semaphore.acquire("two").unwrap();
        assert_eq!(semaphore.acquire("three").err(), Some(NoPermit::TotalLimit));
        drop((of_one, of_two));
        let usage = semaphore.usage.lock().unwrap();
        assert!(usage.by_key.is_empty() && usage.running == 0 && usage.waiting == 0, "{usage:?}");
    }

    #[test]
    fn a_released_permit_passes_to_a_waiting_caller() {
        let limits = WaitLimits {
            permits: 1,
            permits_per_key: 1,
            waiting: 1,
            waiting_per_key: 1,
            max_wait: Duration::from_mins(1),
        };
        let semaphore = WaitingSemaphore::new(limits);
        let first = semaphore.acquire("one").unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| semaphore.acquire("one").map(drop));
            while semaphore.usage.lock().unwrap().waiting == 0 {
                std::thread::yield_now();
            }
            assert_eq!(semaphore.acquire("one").err(), Some(NoPermit::KeyLimit), "a second caller does not wait");
            drop(first);
            assert_eq!(waiting.join().unwrap(), Ok(()));
        });
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
