//! Pieces of the network log: counts of entries by caller, which replace an index over all entries.
//!
//! When enough entries have been written, they become a piece: one row with the number of entries for each client
//! address, for each user, and for failures. A search asks each piece for its caller with one point query, and reads
//! only pieces with matches. A background job appends the rows.

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

/// Entries of a piece. A search for one page reads at most one piece more, and the uncounted entries.
pub const PIECE: i64 = 8192;
/// Rows inserted in one write.
const SLICE: usize = 500;
/// Rows deleted in one write. A piece has up to two rows for each of its entries.
const SUBJECTS_DELETED: u32 = 3000;

/// A condition for which pieces count entries.
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

/// A range of entries that may contain matches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub first: i64,
    pub last: i64,
    /// The number of matches, if the piece counts exactly what the filter asks for.
    pub matching: Option<i64>,
}

/// Creates the next piece. Returns false if there are too few uncounted entries.
///
/// # Errors
/// Storage errors; the next call creates the piece again.
pub fn make(core: &Core) -> Result<bool> {
    let Some(draft) = core.store.read(draft_in)? else { return Ok(false) };
    let Draft { piece, first, last, counts } = draft;
    let (first_at, last_at) = (counts.first_at, counts.last_at);
    for slice in counts.rows(piece).chunks(SLICE) {
        let slice = slice.to_vec();
        core.store.write(move |tx| insert_subjects_in(tx, &slice)).wait()?;
    }
    // Written last: searches ignore the rows of a piece that does not exist yet.
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

/// Deletes some rows of the oldest piece if all its entries are deleted. Returns the number of rows.
pub fn delete_empty_in(tx: &Write<'_>) -> Result<usize> {
    let Some(oldest) = oldest_entry_in(tx)? else {
        // The numbers of an empty log start again, so no piece may stay.
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

/// Returns the ranges that may contain matches, newest first. The first one holds the uncounted entries.
pub(super) fn spans_in(tx: &Read<'_>, filter: &Filter) -> Result<Vec<Span>> {
    let oldest = oldest_entry_in(tx)?.unwrap_or(i64::MAX);
    let is_partly_deleted = |first: i64| first < oldest;
    let found = match filter.subject() {
        Some(subject) => tx.all(
            // A subquery instead of a join, which the planner might start at the much longer table.
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
    /// Nothing if the caller has no entries in the piece.
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

/// Counts the entries after the last piece, if they are enough for one.
fn draft_in(tx: &Read<'_>) -> Result<Option<Draft>> {
    let (last_piece, last_entry) = last_piece_in(tx)?;
    let newest = newest_entry_in(tx)?.unwrap_or(0);
    // Entries may have been deleted before they were counted.
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

    /// Returns the rows in the order of their key, so that inserting appends.
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

/// Returns the number of the last piece and of its last entry, or zeros.
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
