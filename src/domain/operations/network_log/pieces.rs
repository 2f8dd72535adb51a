//! Pieces of the network log: who is in which, so that one caller's requests are found without an index over all.
//!
//! Once enough entries have come in, they become a piece: for each client address and each user in it, and for what
//! failed, one row that counts their entries. A search asks each piece whether it has what is wanted, which is one
//! point look-up, and reads only those that do. Rows of pieces are appended in their order, several hundred to a page,
//! by a job behind the log.

use std::collections::HashMap;

use super::{
    blocks::{Kept, each_in, newest_entry_in, oldest_entry_in},
    search::Filter,
};
use crate::{
    core::Core,
    error::Result,
    store::{Read, Row, Write},
    types::{Timestamp, UserId},
};

/// Entries of one piece: what a search reads at most for a page, beside the entries that are in no piece yet.
pub const PIECE: i64 = 8192;
/// Rows written by one operation, so that the writer is never held for long.
const SLICE: usize = 500;
/// Rows deleted by one operation. A piece has up to two for each of its entries, so its entries may be gone before
/// them.
const SUBJECTS_DELETED: u32 = 3000;

/// What entries are counted for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    Client(String),
    Failed,
    User(UserId),
}

impl Subject {
    fn name(&self) -> String {
        match self {
            Self::Client(client_ip) => format!("ip:{client_ip}"),
            Self::Failed => "failed".into(),
            Self::User(user) => format!("user:{user}"),
        }
    }
}

/// A run of entries that a search may have to read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub first: i64,
    pub last: i64,
    /// How many of them match, where that is known without reading them.
    pub matching: Option<i64>,
}

/// Makes pieces of what has come in since the last one, if it is enough for one. True if it was.
///
/// # Errors
/// Storage errors. A piece that was begun is made anew the next time.
pub fn make(core: &Core) -> Result<bool> {
    let Some(draft) = core.store.read(draft_in)? else { return Ok(false) };
    let Draft { piece, first, last, counts } = draft;
    let (first_at, last_at) = (counts.first_at, counts.last_at);
    for slice in counts.rows(piece).chunks(SLICE) {
        let slice = slice.to_vec();
        core.store.write(move |tx| insert_subjects_in(tx, &slice)).wait()?;
    }
    // The piece counts from here on; rows without their piece are looked at by nobody.
    core.store
        .write(move |tx| {
            tx.execute(
                "insert into access_log_pieces (id, first_entry, last_entry, first_at, last_at) \
                 values (?1, ?2, ?3, ?4, ?5)",
                (piece, first, last, first_at.0, last_at.0),
            )
        })
        .wait()?;
    Ok(true)
}

/// Deletes the oldest piece if no entry of it is left, not all at once, and says how many rows went.
pub fn delete_empty_in(tx: &Write<'_>) -> Result<usize> {
    let Some(oldest) = oldest_entry_in(tx)? else {
        // Numbers begin again, so nothing may stay that counts from the old ones.
        let pieces = tx.execute("delete from access_log_pieces", ())?;
        return Ok(pieces + tx.execute("delete from access_log_subjects", ())?);
    };
    let empty: Option<i64> = tx.first(
        "select id from access_log_pieces where last_entry < ?1 and id = (select min(id) from access_log_pieces)",
        [oldest],
        |row| row.get(0),
    )?;
    let Some(piece) = empty else { return Ok(0) };
    let deleted = tx.execute(
        "delete from access_log_subjects where (piece, subject) in \
         (select piece, subject from access_log_subjects where piece = ?1 limit ?2)",
        (piece, SUBJECTS_DELETED),
    )?;
    if deleted < SUBJECTS_DELETED as usize {
        return Ok(deleted + tx.execute("delete from access_log_pieces where id = ?1", [piece])?);
    }
    Ok(deleted)
}

/// The runs that may hold what is asked for, newest first.
pub(super) fn spans_in(tx: &Read<'_>, filter: &Filter) -> Result<Vec<Span>> {
    let oldest = oldest_entry_in(tx)?.unwrap_or(i64::MAX);
    let is_partly_deleted = |first: i64| first < oldest;
    let found = match filter.subject() {
        Some(subject) => tx.all(
            // A subquery and no join, which might be begun at its other end, of a much longer table.
            "select p.first_entry, p.last_entry, p.first_at, p.last_at, \
             (select entries from access_log_subjects where piece = p.id and subject = ?1) \
             from access_log_pieces p order by p.id desc",
            [subject.name()],
            piece_of,
        )?,
        None => tx.all(
            "select first_entry, last_entry, first_at, last_at, last_entry - first_entry + 1 from access_log_pieces \
             order by id desc",
            (),
            piece_of,
        )?,
    };
    let is_wanted =
        |piece: &Found| piece.entries.is_some() && piece.last_at >= filter.from && piece.first_at < filter.to;
    let is_whole = |piece: &Found| piece.first_at >= filter.from && piece.last_at < filter.to;
    let span = |piece: Found| Span {
        first: piece.first,
        last: piece.last,
        matching: piece
            .entries
            .filter(|_| is_whole(&piece) && filter.has_one_condition() && !is_partly_deleted(piece.first)),
    };
    let tail = Span { first: oldest.max(last_piece_in(tx)?.1 + 1), last: i64::MAX, matching: None };
    Ok(std::iter::once(tail).chain(found.into_iter().filter(is_wanted).map(span)).collect())
}

struct Found {
    first: i64,
    last: i64,
    first_at: Timestamp,
    last_at: Timestamp,
    /// Nothing if the subject has none in it.
    entries: Option<i64>,
}

struct Draft {
    piece: i64,
    first: i64,
    last: i64,
    counts: Counts,
}

#[derive(Default)]
struct Counts {
    first_at: Timestamp,
    last_at: Timestamp,
    clients: HashMap<String, i64>,
    users: HashMap<i64, i64>,
    failed: i64,
}

/// What the next piece will say, or nothing if too little has come in since the last one.
fn draft_in(tx: &Read<'_>) -> Result<Option<Draft>> {
    let (last_piece, last_entry) = last_piece_in(tx)?;
    let newest = newest_entry_in(tx)?.unwrap_or(0);
    // Entries may have been deleted before they came into a piece.
    let first = oldest_entry_in(tx)?.unwrap_or(newest).max(last_entry + 1);
    if newest - first + 1 < PIECE {
        return Ok(None);
    }
    let last = first + PIECE - 1;
    let mut counts = Counts { first_at: Timestamp(i64::MAX), ..Counts::default() };
    each_in(tx, first, last, |_, entry| {
        counts.take(entry);
        Ok(())
    })?;
    Ok(Some(Draft { piece: last_piece + 1, first, last, counts }))
}

impl Counts {
    fn take(&mut self, entry: &Kept<'_>) {
        self.first_at = self.first_at.min(entry.at);
        self.last_at = self.last_at.max(entry.at);
        self.failed += i64::from(entry.status >= 400);
        if let Some(user) = entry.user {
            *self.users.entry(user).or_default() += 1;
        }
        match self.clients.get_mut(entry.client_ip) {
            Some(entries) => *entries += 1,
            None => drop(self.clients.insert(entry.client_ip.to_string(), 1)),
        }
    }

    /// Rows in the order of their key, so that writing them is appending.
    fn rows(self, piece: i64) -> Vec<(i64, String, i64)> {
        let failed = Some((Subject::Failed, self.failed)).filter(|(_, entries)| *entries > 0);
        let clients = self.clients.into_iter().map(|(client, entries)| (Subject::Client(client), entries));
        let users = self.users.into_iter().map(|(user, entries)| (Subject::User(UserId(user)), entries));
        let subjects = clients.chain(users).chain(failed);
        let mut rows: Vec<_> = subjects.map(|(subject, entries)| (piece, subject.name(), entries)).collect();
        rows.sort_unstable();
        rows
    }
}

/// The number of the last piece and its last entry; zeros if there is none.
fn last_piece_in(tx: &Read<'_>) -> Result<(i64, i64)> {
    let last = tx.first("select id, last_entry from access_log_pieces order by id desc limit 1", (), |row| {
        Ok((row.get(0)?, row.get(1)?))
    })?;
    Ok(last.unwrap_or((0, 0)))
}

fn insert_subjects_in(tx: &Write<'_>, rows: &[(i64, String, i64)]) -> Result<()> {
    let sets = rows.iter().map(|(piece, subject, entries)| (piece, subject, entries));
    tx.execute_each(
        "insert into access_log_subjects (piece, subject, entries) values (?1, ?2, ?3) \
         on conflict (piece, subject) do update set entries = excluded.entries",
        sets,
    )
    .map(drop)
}

fn piece_of(row: &Row<'_>) -> rusqlite::Result<Found> {
    Ok(Found {
        first: row.get(0)?,
        last: row.get(1)?,
        first_at: Timestamp(row.get(2)?),
        last_at: Timestamp(row.get(3)?),
        entries: row.get(4)?,
    })
}
