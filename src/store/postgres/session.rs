//! One connection: prepared statements, and requests that share a round trip.
//!
//! A round trip costs more than most statements. So statements whose answer nobody needs, such as `begin` and `savepoint`,
//! are kept and sent together with the next one.

use std::{
    cell::{Cell, RefCell},
    collections::{HashMap, VecDeque},
    future::{Future, poll_fn},
    ops::ControlFlow,
    pin::{Pin, pin},
    sync::{Arc, OnceLock},
    task::{Context, Waker},
    time::{Duration, Instant},
};

use bytes::Buf;
use futures_util::{
    Stream, TryStreamExt,
    future::{join, try_join_all},
};
use tokio_postgres::{
    Client, CopyInSink, Error as DatabaseError, Row as ServerRow, RowStream, SimpleQueryMessage, Statement,
};

use super::{driver::Driver, errors::is_connection_lost};
use crate::{
    error::{Error, Result},
    store::{
        OwnedSqlValue, Row, SqlParameters, SqlValue, row_list,
        transaction::{Access, Visit},
    },
};

/// The time after its last use for which a connection is not expected to have ended.
const IDLE: Duration = Duration::from_millis(100);

pub(in crate::store) struct Session {
    client: Client,
    /// Dropped after the client.
    driver: Driver,
    statements: RefCell<HashMap<Box<str>, Prepared>>,
    /// The statements of [`Self::insert`], completed by the key that they return.
    insertions: RefCell<HashMap<Box<str>, Arc<str>>>,
    /// Requests to send before the next one.
    deferred: RefCell<Vec<Deferred>>,
    /// Results that are being read, the outermost first.
    results: RefCell<Vec<RowBuffer>>,
    changes: Cell<u64>,
    round_trips: Cell<u64>,
    transaction: Cell<TransactionState>,
    is_lost: Cell<bool>,
    used_at: Cell<Instant>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TransactionState {
    #[default]
    Sound,
    /// A statement failed. The transaction accepts nothing until it is rolled back, at least to the last savepoint.
    Failed,
    /// A deferred statement failed, perhaps one of an operation that has ended. All of it must be rolled back.
    Lost,
}

/// A request that is sent together with the next one.
enum Deferred {
    /// Statements without parameters.
    Text(String),
    Statement(Statement, Vec<OwnedSqlValue>),
    Query(Statement, Vec<OwnedSqlValue>, AwaitedRows),
}

/// The rows of a query, once they have arrived.
pub(in crate::store) type AwaitedRows = Arc<OnceLock<Vec<ServerRow>>>;

#[derive(Clone)]
struct Prepared {
    statement: Statement,
    /// True if the rows that it returns were changed by it.
    is_change: bool,
}

/// The rest of a result, which arrives while it is read.
struct RowBuffer {
    /// None once the result is complete.
    stream: Option<Pin<Box<RowStream>>>,
    received: VecDeque<ServerRow>,
    affected: u64,
}

impl Session {
    pub(super) fn new(client: Client, driver: Driver) -> Self {
        Self {
            client,
            driver,
            statements: RefCell::default(),
            insertions: RefCell::default(),
            deferred: RefCell::default(),
            results: RefCell::default(),
            changes: Cell::default(),
            round_trips: Cell::default(),
            transaction: Cell::default(),
            is_lost: Cell::default(),
            used_at: Cell::new(Instant::now()),
        }
    }

    /// Returns true if the connection cannot be used any more.
    pub(super) fn is_lost(&self) -> bool {
        self.is_lost.get() || self.client.is_closed()
    }

    pub(super) fn transaction(&self) -> TransactionState {
        self.transaction.get()
    }

    /// Sends a statement without parameters and results together with the next one.
    pub(super) fn defer(&self, sql: &str) {
        let mut deferred = self.deferred.borrow_mut();
        if let Some(Deferred::Text(text)) = deferred.last_mut() {
            text.push_str(sql);
            text.push(';');
        } else {
            deferred.push(Deferred::Text(format!("{sql};")));
        }
        if sql.starts_with("rollback") && self.transaction.get() == TransactionState::Failed {
            self.transaction.set(TransactionState::Sound);
        }
    }

    /// Runs statements without parameters, with those that were deferred before them.
    pub(super) fn run(&self, sql: &str) -> Result<(), DatabaseError> {
        self.round_trip(async { self.client.batch_execute(sql).await })
    }

    /// Runs statements without parameters, and returns the values of the last row as text.
    pub(super) fn run_for_row(&self, sql: &str) -> Result<Vec<Option<String>>, DatabaseError> {
        let answers = self.round_trip(async { self.client.simple_query(sql).await })?;
        let rows = answers.iter().filter_map(|answer| match answer {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        });
        let last = rows.last().map(|row| (0..row.len()).map(|column| row.get(column).map(str::to_owned)).collect());
        Ok(last.unwrap_or_default())
    }

    /// Ends a transaction that failed.
    pub(super) fn roll_back(&self) -> Result<(), DatabaseError> {
        self.deferred.take();
        self.run("rollback")?;
        self.transaction.set(TransactionState::Sound);
        Ok(())
    }

    /// Ends a read transaction without waiting for the answer.
    pub(super) fn end_read(&self) {
        let is_begun = self.deferred.take().is_empty();
        self.transaction.set(TransactionState::Sound);
        if is_begun && !self.is_lost() {
            // The first poll queues the request; later requests follow it.
            let request = pin!(self.client.batch_execute("rollback"));
            let _ = request.poll(&mut Context::from_waker(Waker::noop()));
            self.driver.flush();
        }
        self.used_at.set(Instant::now());
    }

    /// Ends the use for a statement without a transaction.
    pub(super) fn end_statement(&self) {
        self.transaction.set(TransactionState::Sound);
        self.used_at.set(Instant::now());
    }

    /// Waits for an answer of the server.
    fn round_trip<T>(&self, request: impl Future<Output = Result<T, DatabaseError>>) -> Result<T, DatabaseError> {
        // The server answers in order, and the answers to this request wait behind the results that are being read.
        for result in self.results.borrow_mut().iter_mut() {
            result.receive_all(&self.driver)?;
        }
        self.round_trips.set(self.round_trips.get() + 1);
        let deferred = self.deferred.take();
        // Those before a savepoint may be of an operation that has ended.
        let are_own =
            !deferred.iter().any(|deferred| matches!(deferred, Deferred::Text(text) if text.contains("savepoint ")));
        let outcome = self.driver.wait(async {
            if deferred.is_empty() {
                return request.await;
            }
            let before = try_join_all(deferred.iter().map(|deferred| deferred.send(&self.client)));
            let (before, outcome) = join(before, request).await;
            let before = before.inspect_err(|_| {
                if !are_own {
                    self.transaction.set(TransactionState::Lost);
                }
            });
            before.and(outcome)
        });
        outcome.inspect_err(|error| self.note_failure(error))
    }

    /// Returns how often this session has waited for the server since the last call.
    pub(super) fn take_round_trips(&self) -> u64 {
        self.round_trips.take()
    }

    /// Waits for a request that another method has begun.
    pub(super) fn wait<T>(&self, request: impl Future<Output = T>) -> T {
        self.driver.wait(request)
    }

    /// Receives what has arrived since the last request, such as the end of the connection, unless it was used just now.
    pub(super) fn receive_if_idle(&self) {
        if self.used_at.get().elapsed() > IDLE {
            self.driver.receive();
        }
    }

    /// Begins to stream rows into a table.
    pub(super) fn copy_in<Chunk: Buf + Send + 'static>(&self, sql: &str) -> Result<CopyInSink<Chunk>, DatabaseError> {
        self.round_trip(async { self.client.copy_in(sql).await })
    }

    /// Remembers that a statement failed outside of [`Self::round_trip`].
    pub(super) fn note_failure(&self, error: &DatabaseError) {
        if self.transaction.get() == TransactionState::Sound {
            self.transaction.set(TransactionState::Failed);
        }
        self.is_lost.set(self.is_lost.get() || is_connection_lost(error));
    }

    fn prepare(&self, sql: &str) -> Result<Prepared, DatabaseError> {
        if let Some(prepared) = self.statements.borrow().get(sql) {
            return Ok(prepared.clone());
        }
        let numbered = numbered(sql);
        let statement = self.round_trip(async { self.client.prepare(&numbered).await })?;
        let verb = sql.trim_start();
        let is_change = ["insert ", "update ", "delete "].iter().any(|start| verb.starts_with(start));
        let prepared = Prepared { statement, is_change };
        self.statements.borrow_mut().insert(sql.into(), prepared.clone());
        Ok(prepared)
    }

    /// Passes each row to `visit` until it breaks.
    pub(in crate::store) fn query(
        &self,
        sql: &str,
        parameters: &[SqlValue<'_>],
        visit: Visit<'_>,
    ) -> Result<ControlFlow<()>> {
        let prepared = self.prepare(sql)?;
        let stream = self.round_trip(async { self.client.query_raw(&prepared.statement, parameters).await })?;
        let mut result = RowBuffer { stream: Some(Box::pin(stream)), received: VecDeque::new(), affected: 0 };
        if prepared.is_change {
            result.receive_all(&self.driver).inspect_err(|error| self.note_failure(error))?;
            self.changes.set(self.changes.get() + result.affected);
        }
        let reading = Reading::begin(self, result);
        while let Some(row) = reading.next()? {
            if visit(&Row::of_server(&row))?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Returns the number of changed rows.
    pub(in crate::store) fn execute(&self, sql: &str, parameters: &[SqlValue<'_>]) -> Result<usize> {
        if ["savepoint ", "release ", "rollback to "].iter().any(|start| sql.starts_with(start)) {
            self.defer(sql);
            return Ok(0);
        }
        let prepared = self.prepare(sql)?;
        let changed = self.round_trip(async { self.client.execute_raw(&prepared.statement, parameters).await })?;
        self.changes.set(self.changes.get() + changed);
        usize::try_from(changed).map_err(Error::internal)
    }

    /// Sends a statement together with the next one, which reports its failure. It counts as one change.
    pub(in crate::store) fn execute_later(&self, sql: &str, parameters: &[SqlValue<'_>]) -> Result<()> {
        let prepared = self.prepare(sql)?;
        let parameters = parameters.iter().copied().map(OwnedSqlValue::from).collect();
        self.deferred.borrow_mut().push(Deferred::Statement(prepared.statement, parameters));
        self.changes.set(self.changes.get() + 1);
        Ok(())
    }

    /// Runs a statement once for each set of parameters, all in one round trip, and returns the number of changed rows.
    pub(in crate::store) fn execute_each<P: SqlParameters>(&self, sql: &str, sets: &[P]) -> Result<usize> {
        if sets.is_empty() {
            return Ok(0);
        }
        let prepared = self.prepare(sql)?;
        let sets: Vec<_> = sets.iter().map(SqlParameters::values).collect();
        let requests =
            sets.iter().map(|set| self.client.execute_raw(&prepared.statement, set.as_ref().iter().copied()));
        let changed = self.round_trip(try_join_all(requests))?.into_iter().sum::<u64>();
        self.changes.set(self.changes.get() + changed);
        usize::try_from(changed).map_err(Error::internal)
    }

    /// Passes the rows of several keys to a function. The query is that of one key.
    pub(in crate::store) fn query_lists<P: SqlParameters>(
        &self,
        sql: &str,
        keys: &[P],
        visit: Visit<'_>,
    ) -> Result<()> {
        row_list::chunks(keys).try_for_each(|chunk| {
            let count = row_list::padded(chunk.len());
            let lists: Vec<_> = chunk.iter().cycle().take(count).map(SqlParameters::values).collect();
            let values = flattened(&lists);
            if count == 1 {
                return self.query(sql, &values, &mut *visit).map(drop);
            }
            let types: Vec<_> = values[..values.len() / count].iter().map(|value| type_of(*value)).collect();
            self.query(&row_list::query(sql, count, &types), &values, &mut *visit).map(drop)
        })
    }

    /// Inserts rows together with the next statement. The statement is that of one row.
    pub(in crate::store) fn insert_lists_later<P: SqlParameters>(&self, sql: &str, rows: &[P]) -> Result<()> {
        row_list::parts(rows).try_for_each(|part| {
            let lists: Vec<_> = part.iter().map(SqlParameters::values).collect();
            let insertion = row_list::insertion(sql, part.len());
            let insertion = insertion.ok_or_else(|| Error::internal("an insertion has no row of values"))?;
            self.execute_later(&insertion, &flattened(&lists))
        })
    }

    /// Sends a query together with the next statement.
    pub(in crate::store) fn query_later(&self, sql: &str, parameters: &[SqlValue<'_>]) -> Result<AwaitedRows> {
        let (prepared, rows) = (self.prepare(sql)?, AwaitedRows::default());
        let parameters = parameters.iter().copied().map(OwnedSqlValue::from).collect();
        self.deferred.borrow_mut().push(Deferred::Query(prepared.statement, parameters, Arc::clone(&rows)));
        Ok(rows)
    }

    /// Returns the rows of a query that was sent later.
    pub(in crate::store) fn wait_for<'rows>(&self, rows: &'rows AwaitedRows) -> Result<&'rows [ServerRow]> {
        if rows.get().is_none() {
            self.flush()?;
        }
        rows.get().map(Vec::as_slice).ok_or_else(|| Error::internal("a query was not sent"))
    }

    /// Sends the deferred statements.
    pub(super) fn flush(&self) -> Result<(), DatabaseError> {
        let is_empty = self.deferred.borrow().is_empty();
        if is_empty { Ok(()) } else { self.round_trip(async { Ok(()) }) }
    }

    /// Inserts one row into a table with an integer key and returns the key.
    pub(in crate::store) fn insert(&self, sql: &str, parameters: &[SqlValue<'_>]) -> Result<i64> {
        let known = self.insertions.borrow().get(sql).cloned();
        let complete = if let Some(complete) = known {
            complete
        } else {
            let complete: Arc<str> = format!("{sql} returning {}", self.key_of(sql)?).into();
            self.insertions.borrow_mut().insert(sql.into(), Arc::clone(&complete));
            complete
        };
        let mut key = None;
        self.query(&complete, parameters, &mut |row| {
            key = Some(row.get(0)?);
            Ok(ControlFlow::Break(()))
        })
        .map(drop)?;
        key.ok_or_else(|| Error::internal("an insertion inserted no row"))
    }

    /// Returns the column of the primary key of the table that a statement inserts into.
    fn key_of(&self, sql: &str) -> Result<String> {
        let table = sql.trim_start().trim_start_matches("insert into ");
        let table = table.split([' ', '(']).next().unwrap_or_default();
        let find = "select cast(a.attname as text) from pg_index i join pg_attribute a on a.attrelid = i.indrelid \
            and a.attnum = i.indkey[0] where i.indrelid = to_regclass(cast(?1 as text)) and i.indisprimary";
        let key = Access::Server(self).first(find, &[table], |row| row.get(0))?;
        key.ok_or_else(|| Error::internal("a table has no key"))
    }

    /// Returns the number of rows changed on this connection so far. It never decreases.
    pub(in crate::store) fn changes(&self) -> u64 {
        self.changes.get()
    }
}

impl Deferred {
    async fn send(&self, client: &Client) -> Result<(), DatabaseError> {
        match self {
            Self::Text(text) => client.batch_execute(text).await,
            Self::Statement(statement, parameters) => {
                client.execute_raw(statement, parameters.iter().map(OwnedSqlValue::borrowed)).await.map(drop)
            }
            Self::Query(statement, parameters, rows) => {
                let stream = client.query_raw(statement, parameters.iter().map(OwnedSqlValue::borrowed)).await?;
                // They are asked for once.
                let _ = rows.set(stream.try_collect().await?);
                Ok(())
            }
        }
    }
}

impl RowBuffer {
    /// Waits for the next row of the server. Returns false at the end.
    fn receive(&mut self, driver: &Driver) -> Result<bool, DatabaseError> {
        let Some(stream) = &mut self.stream else { return Ok(false) };
        let row = driver.wait(poll_fn(|context| stream.as_mut().poll_next(context)));
        let is_row = row.is_some();
        if let Some(row) = row {
            self.received.push_back(row?);
        } else {
            self.affected = stream.rows_affected().unwrap_or(0);
            self.stream = None;
        }
        Ok(is_row)
    }

    fn receive_all(&mut self, driver: &Driver) -> Result<(), DatabaseError> {
        while self.receive(driver)? {}
        Ok(())
    }
}

/// A result that is being read. Statements that run meanwhile receive the rest of it first.
struct Reading<'session> {
    session: &'session Session,
    depth: usize,
}

impl<'session> Reading<'session> {
    fn begin(session: &'session Session, result: RowBuffer) -> Self {
        let mut results = session.results.borrow_mut();
        results.push(result);
        Self { session, depth: results.len() - 1 }
    }

    fn next(&self) -> Result<Option<ServerRow>> {
        let mut results = self.session.results.borrow_mut();
        let Some(result) = results.get_mut(self.depth) else { return Ok(None) };
        if result.received.is_empty() {
            let received = result.receive(&self.session.driver);
            received.inspect_err(|error| self.session.note_failure(error))?;
        }
        Ok(result.received.pop_front())
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.session.results.borrow_mut().truncate(self.depth);
    }
}

/// Returns the type of the columns that a value is compared with.
const fn type_of(value: SqlValue<'_>) -> &'static str {
    match value {
        SqlValue::Integer(_) | SqlValue::Null => "bigint",
        SqlValue::Real(_) => "double precision",
        SqlValue::Text(_) => "text",
        SqlValue::Blob(_) => "bytea",
    }
}

fn flattened<'own>(lists: &[impl AsRef<[SqlValue<'own>]>]) -> Vec<SqlValue<'own>> {
    lists.iter().flat_map(|list| list.as_ref().iter().copied()).collect()
}

/// Returns a statement with parameters as PostgreSQL numbers them: `?1` becomes `$1`.
fn numbered(sql: &str) -> String {
    let mut is_literal = false;
    let mut numbered = String::with_capacity(sql.len());
    for character in sql.chars() {
        is_literal ^= character == '\'';
        numbered.push(if character == '?' && !is_literal { '$' } else { character });
    }
    numbered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_parameters_outside_of_literals() {
        assert_eq!(numbered("select '?1', a from b where c = ?12"), "select '?1', a from b where c = $12");
        assert_eq!(numbered("select 'it''s ?' where d = ?1"), "select 'it''s ?' where d = $1");
    }
}
