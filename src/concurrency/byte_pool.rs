//! A pool of bytes in memory, with a limit in total and one for each holder, such as a user or a network.

use std::{
    collections::{HashMap, hash_map::Entry},
    hash::Hash,
    sync::{Arc, Mutex},
};

use foldhash::fast::RandomState;

use crate::concurrency::lock::lock_unpoisoned;

/// Bytes are taken in steps, so that a holder who takes few at a time seldom locks the pool.
const STEP: u64 = 4 << 10;

/// A pool of bytes.
#[derive(Debug)]
pub struct BytePool<K> {
    capacity: u64,
    taken: Mutex<Taken<K>>,
}

#[derive(Debug)]
struct Taken<K> {
    total: u64,
    /// With a fast hash, because each request comes here. Its seed is random.
    by_key: HashMap<K, u64, RandomState>,
}

/// Bytes taken from a [`BytePool`] for one or two keys, each with its maximum. Given back on drop.
#[derive(Debug)]
pub struct ByteShare<K: Eq + Hash + Copy> {
    pool: Arc<BytePool<K>>,
    keys: [Option<(K, u64)>; 2],
    taken: u64,
    used: u64,
}

impl<K: Eq + Hash + Copy> BytePool<K> {
    pub fn new(capacity: u64) -> Arc<Self> {
        Arc::new(Self { capacity, taken: Mutex::new(Taken { total: 0, by_key: HashMap::default() }) })
    }

    /// Takes the first bytes of a share. Returns `None` if one of the limits would be exceeded.
    pub fn take(self: &Arc<Self>, keys: [Option<(K, u64)>; 2], bytes: u64) -> Option<ByteShare<K>> {
        let mut share = ByteShare { pool: Arc::clone(self), keys, taken: 0, used: 0 };
        share.grow(bytes).then_some(share)
    }
}

impl<K: Eq + Hash + Copy> ByteShare<K> {
    /// Takes more bytes. Returns false, and takes none, if one of the limits would be exceeded. No key takes more than is
    /// left then, so that others find some, too. The only share of a key may exceed the limit of the key, and the only
    /// share of all every limit, so that a response of any size can be sent.
    pub fn grow(&mut self, bytes: u64) -> bool {
        let used = self.used + bytes;
        if used > self.taken {
            let (own, more) = (self.taken, (used - self.taken).next_multiple_of(STEP));
            let mut taken = lock_unpoisoned(&self.pool.taken);
            let left = self.pool.capacity.saturating_sub(taken.total + more);
            let has_room = |(key, most): &(K, u64)| {
                let before = taken.by_key.get(key).copied().unwrap_or(0);
                before + more <= left && (before == own || before + more <= *most)
            };
            if taken.total != own && !self.keys.iter().flatten().all(has_room) {
                return false;
            }
            taken.total += more;
            for (key, _) in self.keys.iter().flatten() {
                *taken.by_key.entry(*key).or_default() += more;
            }
            self.taken += more;
        }
        self.used = used;
        true
    }

    /// Gives back everything above the first step.
    pub fn shrink(&mut self) {
        self.give_back(self.taken.saturating_sub(STEP));
    }

    fn give_back(&mut self, bytes: u64) {
        let mut taken = lock_unpoisoned(&self.pool.taken);
        taken.total -= bytes;
        for (key, _) in self.keys.iter().flatten() {
            if let Entry::Occupied(mut of_key) = taken.by_key.entry(*key) {
                *of_key.get_mut() -= bytes;
                if *of_key.get() == 0 {
                    of_key.remove();
                }
            }
        }
        self.taken -= bytes;
        self.used = self.used.min(self.taken);
    }
}

impl<K: Eq + Hash + Copy> Drop for ByteShare<K> {
    fn drop(&mut self) {
        self.give_back(self.taken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_each_key_and_the_total() {
        let pool = BytePool::new(20 * STEP);
        let take = |user: &'static str, network: &'static str, steps: u64| {
            pool.take([Some((user, 4 * STEP)), Some((network, 6 * STEP))], steps * STEP)
        };
        assert!(take("anna", "home", 11).is_some());
        let first = take("anna", "home", 4).unwrap();
        assert!(take("anna", "work", 1).is_none() && take("berta", "home", 3).is_none());
        let second = take("berta", "home", 2).unwrap();
        assert!(take("carla", "work", 4).is_some_and(|_third| take("dora", "work", 3).is_none()));
        drop(first);
        assert!(take("anna", "home", 4).is_some());
        drop(second);
        assert!(pool.take([None, Some(("home", 6 * STEP))], 6 * STEP).is_some());
        let taken = lock_unpoisoned(&pool.taken);
        assert!(taken.total == 0 && taken.by_key.is_empty());
    }

    #[test]
    fn many_greedy_keys_leave_room_for_another() {
        let pool = BytePool::new(2_000 * STEP);
        let mut shares = Vec::new();
        for round in 0..200 {
            shares.extend((0..64).filter_map(|key| pool.take([Some((key, 500 * STEP)), None], 7 * STEP)));
            if round % 10 == 0 {
                shares.remove(round / 10);
            }
        }
        assert!(pool.take([Some((64, 500 * STEP)), None], 3 * STEP).is_some());
        assert!(shares.len() * 7 > 1_500, "{}", shares.len());
    }

    #[test]
    fn grows_in_steps_and_leaves_room_to_others() {
        let pool = BytePool::new(8 * STEP);
        let mut alone = pool.take([Some((1, 4 * STEP)), None], 1).unwrap();
        assert!(alone.grow(STEP - 1) && alone.taken == STEP);
        assert!(alone.grow(20 * STEP), "it is alone");
        alone.shrink();
        assert!(alone.taken == STEP && lock_unpoisoned(&pool.taken).total == STEP);
        drop(alone);
        let mut first = pool.take([Some((1, 8 * STEP)), None], STEP).unwrap();
        let _second = pool.take([Some((1, 8 * STEP)), None], STEP).unwrap();
        assert!(first.grow(2 * STEP) && !first.grow(1));
        let mut others: Vec<_> = (2..9).map(|key| pool.take([Some((key, 8 * STEP)), None], STEP)).collect();
        assert_eq!(others.iter().flatten().count(), 3);
        assert!(others.iter_mut().flatten().all(|other| !other.grow(1)));
    }
}
