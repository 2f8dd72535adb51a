//! How the entries of the network log are kept: thousands to a row, in the order in which they came.
//!
//! A row an entry would cost each request more than reading a balance does. A block is one row, whose entries were
//! written out when their requests ended, as a JSON array of arrays, so that the view `access_log` can show them to
//! whoever looks into the database by hand. Entries are numbered without gaps; a block knows the numbers of its first
//! and its last.

use std::{borrow::Cow, collections::VecDeque};

use serde::Deserialize;

use super::{Entry, search::Logged};
use crate::{
    error::{Error, Result},
    store::{Read, Write},
    types::{Timestamp, UserId},
};

/// Entries of one block at most: what has to be read for the sake of one of them.
pub(super) const BLOCK: i64 = 4096;

/// Blocks deleted by one operation, if they are small ones: a few milliseconds of the writer's time.
const SLICE: u32 = 64;

/// Entries that are not in the store yet.
#[derive(Clone, Debug)]
pub(super) struct Block {
    entries: i64,
    first_at: Timestamp,
    last_at: Timestamp,
    /// The JSON array without its end.
    written: Vec<u8>,
}

/// Blocks that wait to be stored, the oldest first. Only the newest may have room.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    blocks: VecDeque<Block>,
    entries: i64,
}

impl Waiting {
    pub(super) fn entries(&self) -> i64 {
        self.entries
    }

    /// Writes the entry behind the others. True if now there is a full block and there was none.
    pub(super) fn push(&mut self, entry: &Entry<'_>) -> bool {
        if self.blocks.back().is_none_or(Block::is_full) {
            self.blocks.push_back(Block::begun(entry.at));
        }
        if let Some(block) = self.blocks.back_mut() {
            self.entries += i64::from(block.push(entry));
        }
        self.blocks.len() == 1 && self.blocks.front().is_some_and(Block::is_full)
    }

    /// The oldest block.
    pub(super) fn pop(&mut self) -> Option<Block> {
        let block = self.blocks.pop_front()?;
        self.entries -= block.entries;
        Some(block)
    }

    /// The oldest block, if nothing comes into it any more.
    pub(super) fn pop_full(&mut self) -> Option<Block> {
        if self.blocks.front()?.is_full() { self.pop() } else { None }
    }

    /// Puts a block back in front.
    pub(super) fn give_back(&mut self, block: Block) {
        self.entries += block.entries;
        self.blocks.push_front(block);
    }
}

impl Block {
    fn begun(at: Timestamp) -> Self {
        Self { entries: 0, first_at: at, last_at: at, written: Vec::new() }
    }

    /// Whether no further entry comes into it.
    pub(super) fn is_full(&self) -> bool {
        self.entries == BLOCK
    }

    /// True if the entry could be written, as it always can.
    fn push(&mut self, entry: &Entry<'_>) -> bool {
        let end = self.written.len();
        self.written.push(if end == 0 { b'[' } else { b',' });
        let row = (
            entry.at.0,
            entry.user.map(|user| user.0),
            entry.client,
            entry.method,
            entry.route,
            entry.status,
            u64::try_from(entry.duration.as_micros()).unwrap_or(u64::MAX),
            entry.request_id,
        );
        if serde_json::to_writer(&mut self.written, &row).is_err() {
            self.written.truncate(end);
            return false;
        }
        self.first_at = self.first_at.min(entry.at);
        self.last_at = self.last_at.max(entry.at);
        self.entries += 1;
        true
    }
}

/// An entry as it is written.
#[derive(Deserialize)]
pub(super) struct Kept<'block> {
    pub at: i64,
    pub user: Option<i64>,
    #[serde(borrow)]
    pub client_ip: Cow<'block, str>,
    pub method: &'block str,
    pub route: Option<&'block str>,
    pub status: u16,
    pub duration_us: i64,
    #[serde(borrow)]
    pub request_id: Cow<'block, str>,
}

impl Kept<'_> {
    pub(super) fn at(&self) -> Timestamp {
        Timestamp(self.at)
    }

    pub(super) fn to_logged(&self, id: i64) -> Logged {
        Logged {
            id,
            at: self.at(),
            user: self.user.map(UserId),
            client_ip: self.client_ip.clone().into_owned(),
            method: self.method.to_owned(),
            route: self.route.map(str::to_owned),
            status: self.status,
            duration_us: self.duration_us,
            request_id: self.request_id.clone().into_owned(),
        }
    }
}

pub(super) fn insert_in(tx: &Write<'_>, block: &Block) -> Result<()> {
    let first = newest_entry_in(tx)?.unwrap_or(0) + 1;
    let mut written = std::str::from_utf8(&block.written).map_err(Error::internal)?.to_owned();
    written.push(']');
    tx.execute(
        "insert into access_log_blocks (first_entry, last_entry, first_at, last_at, entries) \
         values (?1, ?2, ?3, ?4, ?5)",
        (first, first + block.entries - 1, block.first_at.0, block.last_at.0, written),
    )
    .map(drop)
}

/// Calls back with each entry from `first` to `last`, the oldest first, and says how many those were.
pub(super) fn each_in(
    tx: &Read<'_>,
    first: i64,
    last: i64,
    mut each: impl FnMut(i64, &Kept<'_>) -> Result<()>,
) -> Result<i64> {
    let mut seen = 0;
    tx.each(
        "select first_entry, entries from access_log_blocks where first_entry between ?1 and ?2 and last_entry >= ?3 \
         order by first_entry",
        (first.saturating_sub(BLOCK - 1), last, first),
        |row| {
            let begin: i64 = row.get(0)?;
            let entries: Vec<Kept<'_>> =
                serde_json::from_str(row.get_ref(1)?.as_str().map_err(Error::internal)?).map_err(Error::internal)?;
            for (id, kept) in (begin..).zip(&entries).filter(|(id, _)| (first..=last).contains(id)) {
                each(id, kept)?;
                seen += 1;
            }
            Ok(())
        },
    )?;
    Ok(seen)
}

/// The number of the oldest entry.
pub(super) fn oldest_entry_in(tx: &Read<'_>) -> Result<Option<i64>> {
    tx.first("select first_entry from access_log_blocks order by first_entry limit 1", (), |row| row.get(0))
}

/// The number of the newest entry.
pub(super) fn newest_entry_in(tx: &Read<'_>) -> Result<Option<i64>> {
    tx.first("select last_entry from access_log_blocks order by first_entry desc limit 1", (), |row| row.get(0))
}

/// How many entries there are.
pub(super) fn count_in(tx: &Read<'_>) -> Result<i64> {
    let (oldest, newest) = (oldest_entry_in(tx)?, newest_entry_in(tx)?);
    Ok(oldest.zip(newest).map_or(0, |(oldest, newest)| newest - oldest + 1))
}

/// When the newest block's latest entry was written.
pub(super) fn newest_at_in(tx: &Read<'_>) -> Result<Option<Timestamp>> {
    tx.first("select last_at from access_log_blocks order by first_entry desc limit 1", (), |row| {
        row.get(0).map(Timestamp)
    })
}

/// Deletes some of the oldest blocks, of which no entry is younger than `until`, and says how many entries they had.
pub(super) fn delete_oldest_in(tx: &Write<'_>, until: Timestamp) -> Result<i64> {
    let oldest = tx.all(
        "select first_entry, last_entry, last_at from access_log_blocks order by first_entry limit ?1",
        [SLICE],
        |row| Ok((row.get::<i64>(0)?, row.get::<i64>(1)?, row.get(2).map(Timestamp)?)),
    )?;
    let (mut deleted, mut newest) = (0, None);
    for (first, last, last_at) in oldest {
        let count = last - first + 1;
        if last_at > until || (deleted > 0 && deleted + count > BLOCK) {
            break;
        }
        (deleted, newest) = (deleted + count, Some(first));
    }
    if let Some(newest) = newest {
        tx.execute("delete from access_log_blocks where first_entry <= ?1", [newest])?;
    }
    Ok(deleted)
}

#[cfg(test)]
mod tests {
    use std::{
        net::{IpAddr, Ipv4Addr},
        time::Duration,
    };

    use super::*;

    #[test]
    fn a_full_block_is_told_once_and_taken_without_what_came_after_it() {
        let entry = Entry {
            at: Timestamp(1),
            user: None,
            client: IpAddr::V4(Ipv4Addr::LOCALHOST),
            method: "GET",
            route: None,
            status: 200,
            duration: Duration::ZERO,
            request_id: "1",
        };
        let mut waiting = Waiting::default();
        let told: Vec<_> = (1..=3 * BLOCK + 1).filter(|_| waiting.push(&entry)).collect();
        assert_eq!(told, [BLOCK]);
        let full: Vec<_> = std::iter::from_fn(|| waiting.pop_full().map(|block| block.entries)).collect();
        assert_eq!(full, [BLOCK; 3]);
        assert_eq!(waiting.entries(), 1);
        assert_eq!(waiting.pop().map(|block| block.entries), Some(1));
    }
}
