//! Broadcasts in blocks of 512: their kinds, the users' read bits, and the numbers of readers.
//!
//! With blocks, an unread count reads two small rows per 512 broadcasts, not two rows per broadcast. The broadcast with
//! ordinal `n` has index `n - 1`: block `index / 512`, slot `index % 512`.

use crate::{
    domain::identity::preferences::NotificationKind,
    error::Result,
    store::{Read, Write},
    types::UserId,
};

/// Broadcasts per block.
pub const BLOCK_SIZE: i64 = 512;

/// The position of a broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    pub block: i64,
    pub slot: usize,
}

impl Position {
    pub fn of(ordinal: i64) -> Self {
        let index = ordinal - 1;
        Self {
            block: index.div_euclid(BLOCK_SIZE),
            slot: usize::try_from(index.rem_euclid(BLOCK_SIZE)).unwrap_or_default(),
        }
    }
}

pub fn ordinal_of(block: i64, slot: usize) -> i64 {
    block * BLOCK_SIZE + i64::try_from(slot).unwrap_or(i64::MAX) + 1
}

/// A block of broadcasts: one byte each, the kind of an active broadcast or 0 for a removed one.
#[derive(Clone, Debug)]
pub struct BroadcastBlock {
    pub number: i64,
    kinds: Vec<u8>,
}

/// The broadcasts of a block that a user has read, one bit each.
#[derive(Clone, Debug, Default)]
pub struct ReadBits(Vec<u8>);

impl BroadcastBlock {
    /// Returns the ordinals and kinds of the active broadcasts, oldest first.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = (i64, NotificationKind)> + '_ {
        let number = self.number;
        let entries = self.kinds.iter().enumerate();
        entries.filter_map(move |(slot, byte)| Some((ordinal_of(number, slot), kind_of(*byte)?)))
    }
}

impl ReadBits {
    pub fn contains(&self, ordinal: i64) -> bool {
        let Position { slot, .. } = Position::of(ordinal);
        self.0.get(slot / 8).is_some_and(|byte| byte & (1 << (slot % 8)) != 0)
    }

    fn insert(&mut self, ordinal: i64) {
        let Position { slot, .. } = Position::of(ordinal);
        self.0.resize(self.0.len().max(slot / 8 + 1), 0);
        self.0[slot / 8] |= 1 << (slot % 8);
    }
}

fn byte_of(kind: NotificationKind) -> u8 {
    match kind {
        NotificationKind::System => 1,
        NotificationKind::Account => 2,
        NotificationKind::Activity => 3,
        NotificationKind::Promotion => 4,
    }
}

fn kind_of(byte: u8) -> Option<NotificationKind> {
    NotificationKind::ALL.into_iter().find(|kind| byte_of(*kind) == byte)
}

/// Returns the ordinal of the last broadcast ever sent, or 0.
pub fn last_ordinal_in(tx: &Read<'_>) -> Result<i64> {
    let last = tx.first(
        "select block * ?1 + length(kinds) from notification_blocks where block >= 0 order by block desc limit 1",
        [BLOCK_SIZE],
        |row| row.get(0),
    )?;
    Ok(last.unwrap_or(0))
}

/// Adds a broadcast and returns its ordinal. Ordinals are never reused.
pub fn append_in(tx: &Write<'_>, kind: NotificationKind) -> Result<i64> {
    let ordinal = last_ordinal_in(tx)? + 1;
    let block = Position::of(ordinal).block;
    let mut kinds = kinds_in(tx, block)?.unwrap_or_default();
    kinds.push(byte_of(kind));
    tx.execute(
        "insert into notification_blocks (block, kinds) values (?1, ?2) on conflict (block) do update set kinds = ?2",
        (block, kinds),
    )?;
    Ok(ordinal)
}

/// Removes a deleted or expired broadcast from its block.
pub fn remove_in(tx: &Write<'_>, ordinal: i64) -> Result<()> {
    let Position { block, slot } = Position::of(ordinal);
    let Some(mut kinds) = kinds_in(tx, block)? else { return Ok(()) };
    if let Some(byte) = kinds.get_mut(slot) {
        *byte = 0;
    }
    tx.execute("update notification_blocks set kinds = ?2 where block = ?1", (block, kinds)).map(drop)
}

/// Returns this block and the later ones, newest first.
pub fn list_from_in(tx: &Read<'_>, block: i64) -> Result<Vec<BroadcastBlock>> {
    tx.all("select block, kinds from notification_blocks where block >= ?1 order by block desc", [block], |row| {
        Ok(BroadcastBlock { number: row.get(0)?, kinds: row.get(1)? })
    })
}

/// Returns one block, if it exists.
pub fn find_in(tx: &Read<'_>, block: i64) -> Result<Option<BroadcastBlock>> {
    Ok(kinds_in(tx, block)?.map(|kinds| BroadcastBlock { number: block, kinds }))
}

fn kinds_in(tx: &Read<'_>, block: i64) -> Result<Option<Vec<u8>>> {
    tx.first("select kinds from notification_blocks where block = ?1", [block], |row| row.get(0))
}

/// Returns the user's read bits of a block.
pub fn read_bits_in(tx: &Read<'_>, user: UserId, block: i64) -> Result<ReadBits> {
    let bits = tx.first(
        "select bits from notification_read_blocks where user_id = ?1 and block = ?2",
        (user.0, block),
        |row| row.get(0),
    )?;
    Ok(ReadBits(bits.unwrap_or_default()))
}

/// Sets the user's read bit of a broadcast.
pub fn set_read_in(tx: &Write<'_>, user: UserId, ordinal: i64) -> Result<()> {
    let block = Position::of(ordinal).block;
    let mut bits = read_bits_in(tx, user, block)?;
    bits.insert(ordinal);
    tx.execute(
        "insert into notification_read_blocks (user_id, block, bits) values (?1, ?2, ?3) \
         on conflict (user_id, block) do update set bits = excluded.bits",
        (user.0, block, bits.0),
    )
    .map(drop)
}

/// Deletes the user's read bits of the blocks before this one, because a mark covers them.
pub fn delete_read_bits_before_in(tx: &Write<'_>, user: UserId, before: i64) -> Result<()> {
    tx.execute("delete from notification_read_blocks where user_id = ?1 and block < ?2", (user.0, before)).map(drop)
}

/// Increments the number of readers of these broadcasts, all in one block.
pub fn increment_readers_in(tx: &Write<'_>, block: i64, ordinals: &[i64]) -> Result<()> {
    let mut counts = counts_in(tx, block)?;
    for ordinal in ordinals {
        let at = Position::of(*ordinal).slot * 4;
        counts.resize(counts.len().max(at + 4), 0);
        let count = count_at(&counts, at).saturating_add(1);
        counts[at..at + 4].copy_from_slice(&count.to_be_bytes());
    }
    tx.execute(
        "insert into notification_readers (block, counts) values (?1, ?2) \
         on conflict (block) do update set counts = excluded.counts",
        (block, counts),
    )
    .map(drop)
}

/// Returns the number of users who have read this broadcast.
pub fn reader_count_in(tx: &Read<'_>, ordinal: i64) -> Result<u32> {
    let Position { block, slot } = Position::of(ordinal);
    Ok(count_at(&counts_in(tx, block)?, slot * 4))
}

fn counts_in(tx: &Read<'_>, block: i64) -> Result<Vec<u8>> {
    let counts =
        tx.first("select counts from notification_readers where block = ?1", [block], |row| row.get::<Vec<u8>>(0))?;
    Ok(counts.unwrap_or_default())
}

fn count_at(counts: &[u8], at: usize) -> u32 {
    counts.get(at..at + 4).map_or(0, |bytes| bytes.iter().fold(0, |count, byte| count << 8 | u32::from(*byte)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn positions_and_ordinals_convert_both_ways(ordinal in 1_i64..10_000_000) {
            let Position { block, slot } = Position::of(ordinal);
            prop_assert!(i64::try_from(slot).unwrap() < BLOCK_SIZE && block >= 0);
            prop_assert_eq!(ordinal_of(block, slot), ordinal);
        }

        #[test]
        fn read_bits_behave_like_a_set(read in proptest::collection::btree_set(1_i64..513, 0..80)) {
            let mut bits = ReadBits::default();
            for ordinal in &read {
                bits.insert(*ordinal);
            }
            prop_assert!((1..513).all(|ordinal| bits.contains(ordinal) == read.contains(&ordinal)));
        }
    }
}
