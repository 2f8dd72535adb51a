//! Read and write access of an operation to the database.
//!
//! Both carry `now`, one instant for the whole transaction, so that an operation never reads the clock.

use std::{
    cell::{Cell, RefCell},
    ops::{ControlFlow, Deref},
};

use super::{
    FILE_COPY_NAME, SnapshotId,
    postgres::{self, AwaitedRows, Session},
    row::Row,
    sqlite::{FileConnection, Statement},
    value::{RowResult, SqlParameters, SqlValue},
};
use crate::{
    error::{Error, Result},
    keys::ServerKey,
    types::Timestamp,
};

/// The connection of a transaction.
#[derive(Clone, Copy)]
pub(super) enum Access<'connection> {
    File(&'connection FileConnection),
    Server(&'connection Session),
}

/// Receives the rows of a query until it breaks. Not generic, so that the code around it is compiled once.
pub(super) type Visit<'operation> = &'operation mut dyn FnMut(&Row<'_>) -> Result<ControlFlow<()>>;

impl Access<'_> {
    pub(super) fn query(self, sql: &str, parameters: &[SqlValue<'_>], visit: Visit<'_>) -> Result<ControlFlow<()>> {
        match self {
            Self::File(connection) => Statement::prepare(connection, sql)?.query(parameters, visit),
            Self::Server(session) => session.query(sql, parameters, visit),
        }
    }

    /// Returns the first row, if there is one.
    pub(super) fn first<T>(
        self,
        sql: &str,
        parameters: &impl SqlParameters,
        row: impl FnOnce(&Row<'_>) -> RowResult<T>,
    ) -> Result<Option<T>> {
        let (mut row, mut first) = (Some(row), None);
        self.query(sql, parameters.values().as_ref(), &mut |found| {
            first = row.take().map(|row| row(found)).transpose()?;
            Ok(ControlFlow::Break(()))
        })
        .map(|_| first)
    }

    pub(super) fn execute(self, sql: &str, parameters: &impl SqlParameters) -> Result<usize> {
        let values = parameters.values();
        match self {
            Self::File(connection) => Statement::prepare(connection, sql)?.execute(values.as_ref()),
            Self::Server(session) => session.execute(sql, values.as_ref()),
        }
    }

    fn execute_later(self, sql: &str, parameters: &impl SqlParameters) -> Result<()> {
        let values = parameters.values();
        match self {
            Self::File(connection) => Statement::prepare(connection, sql)?.execute(values.as_ref()).map(drop),
            Self::Server(session) => session.execute_later(sql, values.as_ref()),
        }
    }

    fn insert(self, sql: &str, parameters: &impl SqlParameters) -> Result<i64> {
        let values = parameters.values();
        match self {
            Self::File(connection) => Statement::prepare(connection, sql)?.insert(values.as_ref()),
            Self::Server(session) => session.insert(sql, values.as_ref()),
        }
    }

    /// Returns the number of rows changed on this connection so far. It never decreases.
    fn changes(self) -> u64 {
        match self {
            Self::File(connection) => connection.total_changes(),
            Self::Server(session) => session.changes(),
        }
    }
}

/// A consistent view of the database.
pub struct Read<'connection> {
    access: Access<'connection>,
    snapshot_id: Option<SnapshotId>,
    keys: Option<&'connection ServerKey>,
    pub now: Timestamp,
}

#[expect(clippy::needless_pass_by_value, reason = "callers write tuples of parameters in place")]
impl<'connection> Read<'connection> {
    pub(super) fn new(access: Access<'connection>, now: Timestamp) -> Self {
        Self { access, snapshot_id: None, keys: None, now }
    }

    pub(super) fn with_snapshot_id(self, id: SnapshotId) -> Self {
        Self { snapshot_id: Some(id), ..self }
    }

    pub(super) fn with_keys(self, keys: Option<&'connection ServerKey>) -> Self {
        Self { keys, ..self }
    }

    /// Returns true for a SQLite file.
    pub(super) fn is_of_file(&self) -> bool {
        matches!(self.access, Access::File(_))
    }

    /// Returns the server key, under which rows are sealed. None for a file whose key is unknown.
    pub fn keys(&self) -> Option<&'connection ServerKey> {
        self.keys
    }

    /// Returns the id of the sticky snapshot, if this is a read of one. Values cached under it stay valid for it.
    pub fn snapshot_id(&self) -> Option<SnapshotId> {
        self.snapshot_id
    }

    /// Returns the names of the running copies of the service, including this one.
    pub fn running_copies(&self) -> Result<Vec<String>> {
        match self.access {
            Access::File(_) => Ok(vec![FILE_COPY_NAME.to_owned()]),
            Access::Server(_) => postgres::running_copies_in(self.access),
        }
    }

    /// Returns the first row, if there is one.
    pub fn first<T>(
        &self,
        sql: &str,
        params: impl SqlParameters,
        row: impl FnOnce(&Row<'_>) -> RowResult<T>,
    ) -> Result<Option<T>> {
        self.access.first(sql, &params, row)
    }

    /// Returns the one row of a statement that always has one, such as a count.
    pub fn one<T>(
        &self,
        sql: &str,
        params: impl SqlParameters,
        row: impl FnOnce(&Row<'_>) -> RowResult<T>,
    ) -> Result<T> {
        self.first(sql, params, row)?
            .ok_or_else(|| Error::internal("a statement that always returns a row returned none"))
    }

    /// Returns all rows. The statement must bound their number.
    pub fn all<T>(
        &self,
        sql: &str,
        params: impl SqlParameters,
        mut row: impl FnMut(&Row<'_>) -> RowResult<T>,
    ) -> Result<Vec<T>> {
        let mut all = Vec::new();
        self.each(sql, params, |found| {
            all.push(row(found)?);
            Ok(())
        })?;
        Ok(all)
    }

    /// Passes each row to a function, for results that are too long for memory.
    pub fn each(
        &self,
        sql: &str,
        params: impl SqlParameters,
        mut row: impl FnMut(&Row<'_>) -> Result<()>,
    ) -> Result<()> {
        self.each_until(sql, params, |found| row(found).map(ControlFlow::Continue)).map(drop)
    }

    /// Passes the rows of several keys to a function, in no order and perhaps more than once. The query is that of one key,
    /// whose values are not null.
    pub fn each_of<P: SqlParameters>(
        &self,
        sql: &str,
        keys: impl IntoIterator<Item = P>,
        mut row: impl FnMut(&Row<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut visit = |found: &Row<'_>| row(found).map(ControlFlow::Continue);
        let mut keys = keys.into_iter();
        match self.access {
            Access::File(connection) => {
                let mut statement = Statement::prepare(connection, sql)?;
                keys.try_for_each(|key| statement.query(key.values().as_ref(), &mut visit).map(drop))
            }
            Access::Server(session) => session.query_lists(sql, &keys.collect::<Vec<_>>(), &mut visit),
        }
    }

    /// Sends a query together with the next statement, if the database is on a server, and returns its first row later.
    pub fn first_later<T>(
        &self,
        sql: &str,
        params: impl SqlParameters,
        row: impl FnOnce(&Row<'_>) -> RowResult<T> + 'static,
    ) -> Result<Later<T>> {
        match self.access {
            Access::File(_) => self.first(sql, params, row).map(Later::Known),
            Access::Server(session) => {
                Ok(Later::Asked(session.query_later(sql, params.values().as_ref())?, Box::new(row)))
            }
        }
    }

    /// Passes each row to a function until it breaks. Returns whether it did.
    pub fn each_until(
        &self,
        sql: &str,
        params: impl SqlParameters,
        mut row: impl FnMut(&Row<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<ControlFlow<()>> {
        self.access.query(sql, params.values().as_ref(), &mut row)
    }
}

type ReadRow<T> = Box<dyn FnOnce(&Row<'_>) -> RowResult<T>>;

/// The first row of a query, which may not be answered yet.
pub enum Later<T> {
    Known(Option<T>),
    Asked(AwaitedRows, ReadRow<T>),
}

impl<T> Later<T> {
    /// Returns the row, and waits for it if no statement has been sent since.
    pub fn get(self, tx: &Read<'_>) -> Result<Option<T>> {
        match (self, tx.access) {
            (Self::Asked(rows, row), Access::Server(session)) => {
                Ok(session.wait_for(&rows)?.first().map(|found| row(&Row::of_server(found))).transpose()?)
            }
            (Self::Known(first), _) => Ok(first),
            (Self::Asked(..), Access::File(_)) => Err(Error::internal("a query was sent by another transaction")),
        }
    }
}

/// A read with its result type erased, so that the code around it is compiled once.
pub(super) type ErasedRead<'operation> = &'operation mut dyn FnMut(&Read<'_>) -> Result<()>;

/// A change that does not depend on the outcome of the operation that asked for it.
type FollowUp = Box<dyn FnOnce(&Write<'_>) -> Result<()>>;

/// An operation's access to the writer's transaction.
pub struct Write<'connection> {
    read: Read<'connection>,
    follow_ups: RefCell<Vec<FollowUp>>,
    truncates_wal: Cell<bool>,
    /// The connection's change counter when the operation began, plus the changes that it rolled back: SQLite never
    /// decreases the counter.
    changes_before: Cell<u64>,
}

#[expect(clippy::needless_pass_by_value, reason = "callers write tuples of parameters in place")]
impl<'connection> Write<'connection> {
    pub(super) fn new(access: Access<'connection>, now: Timestamp) -> Self {
        let changes_before = Cell::new(access.changes());
        Self {
            read: Read::new(access, now),
            follow_ups: RefCell::default(),
            truncates_wal: Cell::new(false),
            changes_before,
        }
    }

    pub(super) fn with_keys(self, keys: Option<&'connection ServerKey>) -> Self {
        Self { read: self.read.with_keys(keys), ..self }
    }

    /// Resets the change count for the next operation of the transaction.
    pub(super) fn begin_operation(&self) {
        self.changes_before.set(self.read.access.changes());
    }

    /// Returns the number of rows that the operation has changed and not rolled back.
    pub fn changed(&self) -> u64 {
        self.read.access.changes() - self.changes_before.get()
    }

    /// Requests that the WAL is truncated before the reply, or as soon as no reader uses it: deleted data must not
    /// remain in it.
    pub fn truncate_wal_after_commit(&self) {
        self.truncates_wal.set(true);
    }

    pub(super) fn truncates_wal(&self) -> bool {
        self.truncates_wal.get()
    }

    /// Runs `change` in this transaction after the operation, even if the operation fails and is rolled back.
    pub fn follow_up(&self, change: impl FnOnce(&Write<'_>) -> Result<()> + 'static) {
        self.follow_ups.borrow_mut().push(Box::new(change));
    }

    /// Drops the changes that were to follow an operation which is repeated.
    pub(super) fn drop_follow_ups(&self) {
        self.follow_ups.take();
    }

    pub(super) fn run_follow_ups(&self) -> Result<()> {
        self.follow_ups.take().into_iter().try_for_each(|change| change(self))
    }

    /// Runs a statement and returns the number of changed rows.
    pub fn execute(&self, sql: &str, params: impl SqlParameters) -> Result<usize> {
        self.read.access.execute(sql, &params)
    }

    /// Runs a statement that changes rows and cannot fail for a reason of the caller's. A server receives it together with
    /// the next statement of any operation. If it fails there, so do all operations of the transaction.
    pub fn execute_later(&self, sql: &str, params: impl SqlParameters) -> Result<()> {
        self.read.access.execute_later(sql, &params)
    }

    /// Runs a statement once for each set of parameters, as [`Self::execute_later`] does.
    pub fn execute_each_later<P: SqlParameters>(&self, sql: &str, sets: impl IntoIterator<Item = P>) -> Result<()> {
        match self.read.access {
            Access::File(_) => self.execute_each(sql, sets).map(drop),
            Access::Server(_) => sets.into_iter().try_for_each(|set| self.execute_later(sql, set)),
        }
    }

    /// Inserts rows as [`Self::execute_later`] does. The statement is that of one row.
    pub fn insert_all_later<P: SqlParameters>(&self, sql: &str, rows: impl IntoIterator<Item = P>) -> Result<()> {
        let mut rows = rows.into_iter();
        match self.read.access {
            Access::File(_) => rows.try_for_each(|row| self.read.access.execute_later(sql, &row)),
            Access::Server(session) => session.insert_lists_later(sql, &rows.collect::<Vec<_>>()),
        }
    }

    /// Inserts one row into a table with an integer key and returns the key. This is cheaper than `returning`, for which
    /// SQLite creates a temporary table each time.
    pub fn insert(&self, sql: &str, params: impl SqlParameters) -> Result<i64> {
        self.read.access.insert(sql, &params)
    }

    /// Rolls back all changes of this operation, so that it can store something else instead. Requires the savepoint of
    /// [`Store::write`](super::Store::write) if there are changes.
    pub fn undo(&self) -> Result<()> {
        if self.changed() > 0 { self.roll_back("rollback to operation", 0) } else { Ok(()) }
    }

    /// Rolls back to a savepoint at which the operation had this many changes.
    fn roll_back(&self, sql: &str, changed: u64) -> Result<()> {
        self.execute(sql, ())?;
        self.changes_before.set(self.read.access.changes() - changed);
        Ok(())
    }

    /// Runs a part of an operation in a savepoint of its own. If the part fails, only its changes are rolled back.
    ///
    /// # Errors
    /// Errors of the part, storage errors.
    pub fn attempt<T>(&self, part: impl FnOnce(&Self) -> Result<T>) -> Result<T> {
        self.execute("savepoint part", ())?;
        let changed = self.changed();
        let outcome = part(self);
        let rolled_back = if outcome.is_err() { self.roll_back("rollback to part", changed) } else { Ok(()) };
        // A rollback keeps the savepoint, so it is released in either case.
        match (rolled_back.and_then(|()| self.execute("release part", ())), outcome) {
            (Err(error), Ok(_)) => Err(error),
            // The failure may have ended the whole transaction, and the savepoint with it.
            (_, outcome) => outcome,
        }
    }

    /// Runs a statement once for each set of parameters and returns the number of changed rows.
    pub fn execute_each<P: SqlParameters>(&self, sql: &str, sets: impl IntoIterator<Item = P>) -> Result<usize> {
        match self.read.access {
            Access::File(connection) => {
                let mut statement = Statement::prepare(connection, sql)?;
                sets.into_iter()
                    .try_fold(0, |changed, params| Ok(changed + statement.execute(params.values().as_ref())?))
            }
            Access::Server(session) => session.execute_each(sql, &sets.into_iter().collect::<Vec<_>>()),
        }
    }
}

impl<'connection> Deref for Write<'connection> {
    type Target = Read<'connection>;

    fn deref(&self) -> &Self::Target {
        &self.read
    }
}
