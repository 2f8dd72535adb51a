//! What an operation may do with the database: ask, or ask and change.
//!
//! Both kinds carry `now`, one instant for the whole transaction, so that an operation never reads the clock.

use std::{
    cell::Cell,
    ops::{ControlFlow, Deref},
};

use rusqlite::{Connection, Params, Statement};

use super::{
    SnapshotId,
    row::Row,
    statements::{Lend, Sql},
};
use crate::{
    error::{Error, Result},
    types::Timestamp,
};

/// A consistent view of the database.
pub struct Read<'connection> {
    connection: &'connection Connection,
    /// The statements that the connection keeps; nothing for one that serves a single operation.
    kept: Option<&'connection (dyn Lend + 'connection)>,
    /// What other reads see too.
    view: Option<SnapshotId>,
    pub now: Timestamp,
}

impl<'connection> Read<'connection> {
    pub(super) fn new(connection: &'connection Connection, now: Timestamp) -> Self {
        Self { connection, kept: None, view: None, now }
    }

    /// On a connection that keeps its statements.
    pub(super) fn keeping(
        connection: &'connection Connection,
        kept: &'connection (dyn Lend + 'connection),
        now: Timestamp,
    ) -> Self {
        Self { connection, kept: Some(kept), view: None, now }
    }

    /// On the view of a thread that reads it again.
    pub(super) fn of(self, view: SnapshotId) -> Self {
        Self { view: Some(view), ..self }
    }

    /// The view that this is a read of, if the thread reads it more than once: what is found now is true of it then.
    pub fn snapshot_id(&self) -> Option<SnapshotId> {
        self.view
    }

    /// Runs a statement that is prepared once for each connection.
    fn prepared<T>(&self, sql: impl Sql, run: impl FnOnce(&mut Statement<'_>) -> Result<T>) -> Result<T> {
        let (mut run, mut outcome) = (Some(run), None);
        self.lend(sql, &mut |statement| {
            outcome = run.take().map(|run| run(statement)).transpose()?;
            Ok(())
        })?;
        outcome.ok_or_else(|| Error::internal("a statement was lent and not run"))
    }

    /// CheckpointConnection the statement over, once. What is done with it is in the program once for each statement, and this is not.
    fn lend(&self, sql: impl Sql, borrow: &mut dyn FnMut(&mut Statement<'_>) -> Result<()>) -> Result<()> {
        match (self.kept, sql.lasting()) {
            (Some(kept), Some(lasting)) => kept.lend(lasting, borrow),
            _ => borrow(&mut *self.connection.prepare_cached(sql.text())?),
        }
    }

    /// The first row, if there is one.
    pub fn first<T>(
        &self,
        sql: impl Sql,
        params: impl Params,
        row: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>> {
        self.prepared(sql, |statement| {
            let mut rows = statement.query(params)?;
            Ok(match rows.next()? {
                Some(found) => Some(row(&Row::new(found))?),
                None => None,
            })
        })
    }

    /// The one row that a statement such as a count always has.
    pub fn one<T>(
        &self,
        sql: impl Sql,
        params: impl Params,
        row: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<T> {
        self.first(sql, params, row)?.ok_or_else(|| Error::internal("a statement that always has a row had none"))
    }

    /// All rows. The statement bounds how many there are.
    pub fn all<T>(
        &self,
        sql: impl Sql,
        params: impl Params,
        mut row: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        let mut all = Vec::new();
        self.each(sql, params, |found| {
            all.push(row(found)?);
            Ok(())
        })?;
        Ok(all)
    }

    /// CheckpointConnection over one row after the other, for lists that are too long to be held.
    pub fn each(&self, sql: impl Sql, params: impl Params, mut row: impl FnMut(&Row<'_>) -> Result<()>) -> Result<()> {
        self.each_until(sql, params, |found| row(found).map(ControlFlow::Continue)).map(drop)
    }

    /// CheckpointConnection over one row after the other until that is enough, and says whether it was.
    pub fn each_until(
        &self,
        sql: impl Sql,
        params: impl Params,
        mut row: impl FnMut(&Row<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<ControlFlow<()>> {
        self.prepared(sql, |statement| {
            let mut rows = statement.query(params)?;
            while let Some(found) = rows.next()? {
                if row(&Row::new(found))?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Ok(ControlFlow::Continue(()))
        })
    }
}

/// A place in a transaction of the writer thread.
pub struct Write<'connection> {
    read: Read<'connection>,
    truncates_wal: Cell<bool>,
    /// Rows that the connection had changed when the operation began, and those that it changed and undid since: the
    /// connection counts both for ever.
    changes_before: Cell<u64>,
}

impl<'connection> Write<'connection> {
    #[cfg(test)]
    pub(super) fn new(connection: &'connection Connection, now: Timestamp) -> Self {
        Self::of(Read::new(connection, now))
    }

    /// On a connection that keeps its statements.
    pub(super) fn keeping(
        connection: &'connection Connection,
        kept: &'connection (dyn Lend + 'connection),
        now: Timestamp,
    ) -> Self {
        Self::of(Read::keeping(connection, kept, now))
    }

    fn of(read: Read<'connection>) -> Self {
        let changes_before = Cell::new(read.connection.total_changes());
        Self { read, truncates_wal: Cell::new(false), changes_before }
    }

    /// Says that another operation of the same transaction begins.
    pub(super) fn begin_operation(&self) {
        self.changes_before.set(self.read.connection.total_changes());
    }

    /// How many rows the operation has changed, without those that were undone.
    pub(super) fn changed(&self) -> u64 {
        self.read.connection.total_changes() - self.changes_before.get()
    }

    /// Has the write-ahead log emptied before the answer, or as soon as nobody reads from it any more: what was deleted
    /// must not live on in pages of the log that nothing points to.
    pub fn truncate_wal_after_commit(&self) {
        self.truncates_wal.set(true);
    }

    pub(super) fn truncates_wal(&self) -> bool {
        self.truncates_wal.get()
    }

    /// Runs a statement and says how many rows it changed.
    pub fn execute(&self, sql: impl Sql, params: impl Params) -> Result<usize> {
        self.read.prepared(sql, |statement| Ok(statement.execute(params)?))
    }

    /// Inserts one row into a table with a numeric key and returns its key. An insert that returns columns makes a
    /// temporary table each time, which costs as much as the row.
    pub fn insert(&self, sql: impl Sql, params: impl Params) -> Result<i64> {
        self.read.prepared(sql, |statement| Ok(statement.insert(params)?))
    }

    /// Undoes everything that this operation has done so far, so that something else can be stored in its place: goes
    /// back to the savepoint that the writer gave it, if there is anything to undo.
    pub fn undo(&self) -> Result<()> {
        if self.changed() > 0 { self.go_back("rollback to operation", 0) } else { Ok(()) }
    }

    /// Undoes what the operation changed after its first so many changes.
    fn go_back(&self, sql: &'static str, changed: u64) -> Result<()> {
        self.execute(sql, ())?;
        self.changes_before.set(self.read.connection.total_changes() - changed);
        Ok(())
    }

    /// Does a part of an operation that is undone alone if it fails, so that the operation can go on without it.
    ///
    /// # Errors
    /// Those of the part, and storage errors.
    pub fn attempt<T>(&self, part: impl FnOnce(&Self) -> Result<T>) -> Result<T> {
        self.execute("savepoint part", ())?;
        let changed = self.changed();
        let outcome = part(self);
        let undone = if outcome.is_err() { self.go_back("rollback to part", changed) } else { Ok(()) };
        // Going back leaves the savepoint, and an outer part has one of the same name.
        match (undone.and_then(|()| self.execute("release part", ())), outcome) {
            (Err(error), Ok(_)) => Err(error),
            // What failed the part may have ended the whole transaction, and then there is nothing to go back to.
            (_, outcome) => outcome,
        }
    }

    /// Runs a statement once for each set of parameters and says how many rows it changed. Looking the statement up
    /// costs a third of inserting a row, so many rows share it.
    pub fn execute_each<P: Params>(&self, sql: impl Sql, sets: impl IntoIterator<Item = P>) -> Result<usize> {
        self.read.prepared(sql, |statement| {
            sets.into_iter().try_fold(0, |changed, params| Ok(changed + statement.execute(params)?))
        })
    }
}

impl<'connection> Deref for Write<'connection> {
    type Target = Read<'connection>;

    fn deref(&self) -> &Self::Target {
        &self.read
    }
}
