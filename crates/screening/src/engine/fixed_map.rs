//! A fast hash map and set for tables of this program. Texts cannot add to it, so nobody can fill it with colliding keys.

use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasherDefault, Hasher},
};

pub(crate) type FixedMap<Key, Value> = HashMap<Key, Value, BuildHasherDefault<KeyHasher>>;
pub(crate) type FixedSet<Key> = HashSet<Key, BuildHasherDefault<KeyHasher>>;

/// A hash of keys of at most eight bytes, or of a few of them.
#[derive(Default)]
pub(crate) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u32(&mut self, key: u32) {
        self.write_u64(u64::from(key));
    }

    fn write_u64(&mut self, key: u64) {
        let mixed = (self.0 ^ key).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = (mixed ^ (mixed >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }
}
