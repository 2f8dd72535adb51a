//! Blocks of the network log: rows with thousands of entries each.
//!
//! One row for each entry would cost a request more than reading a balance. A block stores its entries as a JSON array
//! of arrays, which the view `access_log` unpacks for manual queries. Entries are numbered without gaps; a block stores
//! its first and last number.
//!
//! A block stores repeated values once, because each byte is written to disk twice. Times are relative to the block's.
//! Methods and routes are indexes into the block's texts. Ids with the service's common prefix are stored as numbers.

use std::{
    borrow::Cow,
    collections::VecDeque,
    fmt::{self, Formatter},
    ptr,
};

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, Visitor},
};

use super::{Entry, search::Logged};
use crate::{
    error::{Error, Result},
    store::{Read, Row, Write},
    types::{Timestamp, UserId},
};

/// The maximum number of entries in a block, which a search must read for any one of them.
pub(super) const BLOCK: i64 = 8192;

/// Full blocks written in one commit. Each commit makes all readers drop their snapshots.
pub(super) const TOGETHER: usize = 4;

/// Blocks deleted in one write, if they are small.
const SLICE: u32 = 64;

/// The hexadecimal digits of an id that is stored as a number.
const DIGITS: usize = 8;

/// A block in memory.
#[derive(Clone, Debug)]
pub(super) struct Block {
    entries: i64,
    first_at: Timestamp,
    last_at: Timestamp,
    /// The base of the entries' times.
    base_at: Timestamp,
    /// The prefix of ids stored as numbers.
    id_start: String,
    /// The methods and routes that entries refer to by index.
    texts: Vec<&'static str>,
    /// The JSON array.
    written: Vec<u8>,
}

/// The queue of blocks to be stored, oldest first. Only the newest may have free space.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    blocks: VecDeque<Block>,
    entries: i64,
    /// The common prefix of request ids.
    id_start: String,
    /// The size in bytes of the last full block, used as capacity of the next.
    usual_size: usize,
}

impl Waiting {
    pub(super) fn entries(&self) -> i64 {
        self.entries
    }

    /// Sets the prefix of ids for new blocks.
    pub(super) fn expect_ids(&mut self, start: &str) {
        start.clone_into(&mut self.id_start);
    }

    /// Appends an entry. Returns true if enough blocks for a commit have just become full.
    pub(super) fn push(&mut self, entry: &Entry<'_>) -> bool {
        if self.blocks.back().is_none_or(Block::is_full) {
            self.blocks.push_back(Block::begun(entry.at, self.id_start.clone(), self.usual_size));
        }
        if let Some(block) = self.blocks.back_mut() {
            self.entries += i64::from(block.push(entry));
            if block.is_full() {
                self.usual_size = block.written.len();
            }
        }
        self.blocks.len() == TOGETHER && self.blocks.back().is_some_and(Block::is_full)
    }

    /// Removes the oldest block.
    pub(super) fn pop(&mut self) -> Option<Block> {
        let block = self.blocks.pop_front()?;
        self.entries -= block.entries;
        Some(block)
    }

    /// Removes the oldest block if it is full.
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
    fn begun(at: Timestamp, id_start: String, size: usize) -> Self {
        let written = Vec::with_capacity(size);
        Self { entries: 0, first_at: at, last_at: at, base_at: at, id_start, texts: Vec::new(), written }
    }

    /// Returns true if the block accepts no further entry.
    pub(super) fn is_full(&self) -> bool {
        self.entries == BLOCK
    }

    /// Appends an entry. Returns false if it cannot be serialized, which does not happen.
    fn push(&mut self, entry: &Entry<'_>) -> bool {
        let row = (
            entry.at.0 - self.base_at.0,
            entry.user.map(|user| user.0),
            entry.client,
            self.place_of(entry.method),
            entry.route.map(|route| self.place_of(route)),
            entry.status,
            u64::try_from(entry.duration.as_micros()).unwrap_or(u64::MAX),
            self.shortened(entry.request_id),
        );
        // Moves the closing bracket behind the new entry.
        let is_first = self.written.pop().is_none();
        let end = self.written.len();
        self.written.push(if is_first { b'[' } else { b',' });
        let outcome = serde_json::to_writer(&mut self.written, &row);
        if outcome.is_err() {
            self.written.truncate(end);
        }
        if outcome.is_ok() || !is_first {
            self.written.push(b']');
        }
        if outcome.is_err() {
            return false;
        }
        self.first_at = self.first_at.min(entry.at);
        self.last_at = self.last_at.max(entry.at);
        self.entries += 1;
        true
    }

    /// Returns the index of a text, and adds it if it is new. Compares addresses, because each endpoint's texts are
    /// static.
    fn place_of(&mut self, text: &'static str) -> usize {
        self.texts.iter().position(|known| ptr::eq(*known, text)).unwrap_or_else(|| {
            self.texts.push(text);
            self.texts.len() - 1
        })
    }

    /// Returns the id as a number if it has the common prefix.
    fn shortened<'id>(&self, id: &'id str) -> Said<'id> {
        let number =
            id.strip_prefix(self.id_start.as_str()).filter(|digits| digits.len() == DIGITS).and_then(number_of);
        number.map_or(Said::Text(id.into()), |number| Said::Number(number.into()))
    }
}

/// Parses lower-case hexadecimal digits.
fn number_of(digits: &str) -> Option<u32> {
    digits.bytes().try_fold(0_u32, |number, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some((number << 4) | u32::from(value))
    })
}

/// A text in an entry, or the number that stands for it.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
enum Said<'block> {
    Number(u64),
    Text(Cow<'block, str>),
}

impl<'de: 'block, 'block> Deserialize<'de> for Said<'block> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = Said<'de>;

            fn expecting(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
                formatter.write_str("a text or a number")
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> std::result::Result<Self::Value, E> {
                Ok(Said::Number(number))
            }

            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> std::result::Result<Self::Value, E> {
                Ok(Said::Text(text.into()))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> std::result::Result<Self::Value, E> {
                Ok(Said::Text(text.to_owned().into()))
            }
        }

        deserializer.deserialize_any(Either)
    }
}

/// An entry as stored.
#[derive(Deserialize)]
struct Written<'block>(
    i64,
    Option<i64>,
    #[serde(borrow)] Cow<'block, str>,
    #[serde(borrow)] Said<'block>,
    #[serde(borrow)] Option<Said<'block>>,
    u16,
    i64,
    #[serde(borrow)] Said<'block>,
);

/// The shared values of a block.
struct Shared<'block> {
    base_at: i64,
    id_start: &'block str,
    texts: Vec<&'block str>,
}

/// An entry as read, with shared values resolved.
pub(super) struct Kept<'block> {
    pub at: Timestamp,
    pub user: Option<i64>,
    pub client_ip: &'block str,
    pub method: &'block str,
    pub route: Option<&'block str>,
    pub status: u16,
    pub duration_us: i64,
    id_start: &'block str,
    id: &'block Said<'block>,
}

impl<'block> Shared<'block> {
    fn text(&self, said: &'block Said<'block>) -> Result<&'block str> {
        match said {
            Said::Text(text) => Ok(text),
            Said::Number(place) => usize::try_from(*place)
                .ok()
                .and_then(|place| self.texts.get(place).copied())
                .ok_or_else(|| Error::internal("a block of the network log lacks a text")),
        }
    }

    fn entry(&'block self, written: &'block Written<'block>) -> Result<Kept<'block>> {
        let Written(at, user, client_ip, method, route, status, duration_us, id) = written;
        Ok(Kept {
            at: Timestamp(self.base_at + at),
            user: *user,
            client_ip,
            method: self.text(method)?,
            route: route.as_ref().map(|route| self.text(route)).transpose()?,
            status: *status,
            duration_us: *duration_us,
            id_start: self.id_start,
            id,
        })
    }
}

impl Kept<'_> {
    pub(super) fn to_logged(&self, id: i64) -> Logged {
        Logged {
            id,
            at: self.at,
            user: self.user.map(UserId),
            client_ip: self.client_ip.to_owned(),
            method: self.method.to_owned(),
            route: self.route.map(str::to_owned),
            status: self.status,
            duration_us: self.duration_us,
            request_id: match self.id {
                Said::Text(id) => id.to_string(),
                Said::Number(number) => format!("{}{number:0DIGITS$x}", self.id_start),
            },
        }
    }
}

pub(super) fn insert_in(tx: &Write<'_>, block: &Block) -> Result<()> {
    let first = newest_entry_in(tx)?.unwrap_or(0) + 1;
    tx.execute(
        "insert into access_log_blocks (first_entry, last_entry, first_at, last_at, entries, base_at, id_start, texts) \
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        (
            first,
            first + block.entries - 1,
            block.first_at.0,
            block.last_at.0,
            std::str::from_utf8(&block.written).map_err(Error::internal)?,
            block.base_at.0,
            &block.id_start,
            serde_json::to_string(&block.texts).map_err(Error::internal)?,
        ),
    )
    .map(drop)
}

/// Calls a function for each entry from `first` to `last`, oldest first. Returns their number.
pub(super) fn each_in(
    tx: &Read<'_>,
    first: i64,
    last: i64,
    mut each: impl FnMut(i64, &Kept<'_>) -> Result<()>,
) -> Result<i64> {
    let mut seen = 0;
    tx.each(
        "select first_entry, entries, base_at, id_start, texts from access_log_blocks \
         where first_entry between ?1 and ?2 and last_entry >= ?3 order by first_entry",
        (first.saturating_sub(BLOCK - 1), last, first),
        |row| {
            let begin: i64 = row.get(0)?;
            let entries: Vec<Written<'_>> = serde_json::from_str(text_of(row, 1)?).map_err(Error::internal)?;
            let shared = Shared {
                base_at: row.get(2)?,
                id_start: text_of(row, 3)?,
                texts: serde_json::from_str(text_of(row, 4)?).map_err(Error::internal)?,
            };
            for (id, written) in (begin..).zip(&entries).filter(|(id, _)| (first..=last).contains(id)) {
                each(id, &shared.entry(written)?)?;
                seen += 1;
            }
            Ok(())
        },
    )?;
    Ok(seen)
}

fn text_of<'row>(row: &'row Row<'_>, column: usize) -> Result<&'row str> {
    row.get_ref(column)?.as_str().map_err(Error::internal)
}

/// Returns the number of the oldest entry.
pub(super) fn oldest_entry_in(tx: &Read<'_>) -> Result<Option<i64>> {
    tx.first("select first_entry from access_log_blocks order by first_entry limit 1", (), |row| row.get(0))
}

/// Returns the number of the newest entry.
pub(super) fn newest_entry_in(tx: &Read<'_>) -> Result<Option<i64>> {
    tx.first("select last_entry from access_log_blocks order by first_entry desc limit 1", (), |row| row.get(0))
}

/// Counts the entries.
pub(super) fn count_in(tx: &Read<'_>) -> Result<i64> {
    let (oldest, newest) = (oldest_entry_in(tx)?, newest_entry_in(tx)?);
    Ok(oldest.zip(newest).map_or(0, |(oldest, newest)| newest - oldest + 1))
}

/// Returns the latest time of any entry, which need not be the newest entry's: the clock may have been set back. Reads
/// every block's times.
pub(super) fn latest_at_in(tx: &Read<'_>) -> Result<Option<Timestamp>> {
    let latest: Option<i64> = tx.one("select max(last_at) from access_log_blocks", (), |row| row.get(0))?;
    Ok(latest.map(Timestamp))
}

/// Deletes some of the oldest blocks without an entry after `until`. Returns the number of entries. A block with a
/// future time, from a clock that was ahead, counts as old as the next one.
pub(super) fn delete_oldest_in(tx: &Write<'_>, until: Timestamp) -> Result<i64> {
    let first_dated = tx.first(
        "select first_entry, last_at from access_log_blocks where last_at <= ?1 order by first_entry limit 1",
        [tx.now.0],
        |row| Ok((row.get::<i64>(0)?, row.get(1).map(Timestamp)?)),
    )?;
    let Some((first_old, _)) = first_dated.filter(|(_, last_at)| *last_at <= until) else { return Ok(0) };
    let oldest = tx.all(
        "select first_entry, last_entry, last_at from access_log_blocks order by first_entry limit ?1",
        [SLICE],
        |row| Ok((row.get::<i64>(0)?, row.get::<i64>(1)?, row.get(2).map(Timestamp)?)),
    )?;
    let (mut deleted, mut newest) = (0, None);
    for (first, last, last_at) in oldest {
        let count = last - first + 1;
        if (first > first_old && last_at > until) || (deleted > 0 && deleted + count > BLOCK) {
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
    use crate::{
        clock::Clock,
        store::{SchemaPolicy, Store, Tuning},
    };

    #[test]
    fn what_a_block_says_once_is_read_in_every_entry_also_by_the_view() {
        let started = "0123456789abcdef";
        let (at, user, client) = (Timestamp(1_000), Some(UserId(7)), IpAddr::V4(Ipv4Addr::LOCALHOST));
        let ids = ["0000000a", "ffffffff", "0000000A", "+000000a", "00000a", "1000000000", ""]
            .map(|end| format!("{started}{end}"));
        let others = ["0000000a", "12", "a\"b"].map(ToOwned::to_owned);
        let routes = [Some("/one"), None, Some("/two")];
        let logged: Vec<_> = (1..)
            .zip(ids.iter().chain(&others).zip(routes.into_iter().cycle()))
            .map(|(number, (request_id, route))| Logged {
                id: number,
                at: Timestamp(at.0 - 3 + number),
                user: user.filter(|_| number % 2 == 0),
                client_ip: client.to_string(),
                method: if number % 3 == 0 { "GET" } else { "POST" }.to_owned(),
                route: route.map(ToOwned::to_owned),
                status: 200,
                duration_us: number,
                request_id: request_id.clone(),
            })
            .collect();
        let mut waiting = Waiting::default();
        waiting.expect_ids(started);
        for (entry, route) in logged.iter().zip(routes.into_iter().cycle()) {
            waiting.push(&Entry {
                at: entry.at,
                user: entry.user,
                client,
                method: if entry.method == "GET" { "GET" } else { "POST" },
                route,
                status: entry.status,
                duration: entry.duration(),
                request_id: &entry.request_id,
            });
        }
        let block = waiting.pop().unwrap();
        let size = block.written.len();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("yarrow.db");
        let store = Store::open(&path, &Tuning::SMALL, Clock::default(), SchemaPolicy::Migrate).unwrap();
        store.write(move |tx| insert_in(tx, &block)).wait().unwrap();
        let mut read = Vec::new();
        let each = |id, entry: &Kept<'_>| {
            read.push(entry.to_logged(id));
            Ok(())
        };
        store.read(|tx| each_in(tx, 1, 100, each)).unwrap();
        assert_eq!(read, logged);
        let shown = store
            .read(|tx| {
                let sql =
                    "select id, at, user_id, client_ip, method, route, status, duration_us, request_id from access_log";
                tx.all(sql, (), |row| {
                    Ok(Logged {
                        id: row.get(0)?,
                        at: Timestamp(row.get(1)?),
                        user: row.get::<Option<i64>>(2)?.map(UserId),
                        client_ip: row.get(3)?,
                        method: row.get(4)?,
                        route: row.get(5)?,
                        status: row.get(6)?,
                        duration_us: row.get(7)?,
                        request_id: row.get(8)?,
                    })
                })
            })
            .unwrap();
        assert_eq!(shown, logged);
        let long: usize = logged.iter().map(|entry| entry.request_id.len()).sum();
        assert!(size < 40 * logged.len() + long - 2 * started.len(), "{size}");
    }

    #[test]
    fn full_blocks_are_told_once_and_taken_without_what_came_after_them() {
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
        let (together, all) = (i64::try_from(TOGETHER).unwrap() * BLOCK, 5 * BLOCK + 1);
        let told: Vec<_> = (1..=all).filter(|_| waiting.push(&entry)).collect();
        assert_eq!(told, [together]);
        let full: Vec<_> = std::iter::from_fn(|| waiting.pop_full().map(|block| block.entries)).collect();
        assert_eq!(full, [BLOCK; 5]);
        assert_eq!(waiting.entries(), 1);
        assert_eq!(waiting.pop().map(|block| block.entries), Some(1));
    }
}
