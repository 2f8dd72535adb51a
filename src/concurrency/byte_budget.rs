//! A budget of bytes in memory, in total and for each key, such as a user or a network.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex},
};

use crate::concurrency::lock::lock_unpoisoned;

/// A budget of bytes. Clones share it.
#[derive(Clone, Debug)]
pub struct ByteBudget<K: Eq + Hash> {
    capacity: u64,
    taken: Arc<Mutex<Taken<K>>>,
}

/// Bytes taken from a [`ByteBudget`], given back on drop.
#[derive(Debug)]
pub struct ByteShare<K: Eq + Hash> {
    keys: Vec<K>,
    bytes: u64,
    taken: Arc<Mutex<Taken<K>>>,
}

#[derive(Debug)]
struct Taken<K> {
    total: u64,
    by_key: HashMap<K, u64>,
}

impl<K: Eq + Hash> ByteBudget<K> {
    pub fn new(capacity: u64) -> Self {
        Self { capacity, taken: Arc::new(Mutex::new(Taken { total: 0, by_key: HashMap::new() })) }
    }

    /// Takes bytes for different keys, each with its maximum. Returns `None` if one of the limits would be exceeded.
    /// Bytes taken while no others are taken always fit, so that a response of any size can be sent.
    pub fn try_take<const KEYS: usize>(&self, keys: [Option<(K, u64)>; KEYS], bytes: u64) -> Option<ByteShare<K>>
    where
        K: Clone,
    {
        let mut taken = lock_unpoisoned(&self.taken);
        let fits = |before: u64, most: u64| before == 0 || before + bytes <= most;
        let has_room = |(key, most): &(K, u64)| fits(taken.by_key.get(key).copied().unwrap_or(0), *most);
        if !fits(taken.total, self.capacity) || !keys.iter().flatten().all(has_room) {
            return None;
        }
        taken.total += bytes;
        let keys: Vec<K> = keys.into_iter().flatten().map(|(key, _)| key).collect();
        for key in &keys {
            *taken.by_key.entry(key.clone()).or_default() += bytes;
        }
        Some(ByteShare { keys, bytes, taken: Arc::clone(&self.taken) })
    }
}

impl<K: Eq + Hash> Drop for ByteShare<K> {
    fn drop(&mut self) {
        let mut taken = lock_unpoisoned(&self.taken);
        taken.total -= self.bytes;
        for key in &self.keys {
            if let Some(of_key) = taken.by_key.get_mut(key) {
                *of_key -= self.bytes;
                if *of_key == 0 {
                    taken.by_key.remove(key);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_each_key_and_the_total() {
        let budget = ByteBudget::new(10);
        let take = |user: &'static str, network: &'static str, bytes| {
            budget.try_take([Some((user, 4)), Some((network, 6))], bytes)
        };
        assert!(take("anna", "home", 11).is_some());
        let first = take("anna", "home", 4).unwrap();
        assert!(take("anna", "work", 1).is_none() && take("berta", "home", 3).is_none());
        let second = take("berta", "home", 2).unwrap();
        assert!(take("carla", "work", 4).is_some_and(|third| take("dora", "train", 1).is_none() && third.bytes == 4));
        drop(first);
        assert!(take("anna", "home", 4).is_some());
        drop(second);
        assert!(budget.try_take([None, Some(("home", 6))], 6).is_some());
        let taken = lock_unpoisoned(&budget.taken);
        assert!(taken.total == 0 && taken.by_key.is_empty());
    }
}
