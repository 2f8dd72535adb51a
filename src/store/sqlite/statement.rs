//! Runs statements on a connection, from its cache of prepared ones.

use std::{ops::ControlFlow, str};

use rusqlite::{
    CachedStatement, Connection, ToSql,
    types::{ToSqlOutput, ValueRef},
};

use crate::{
    error::{Error, Result},
    store::{Row, transaction::Visit, value::SqlValue},
};

/// A prepared statement that runs any number of times.
pub(in crate::store) struct Statement<'connection> {
    prepared: CachedStatement<'connection>,
    connection: &'connection Connection,
}

impl<'connection> Statement<'connection> {
    pub(in crate::store) fn prepare(connection: &'connection Connection, sql: &str) -> Result<Self> {
        Ok(Self { prepared: connection.prepare_cached(sql)?, connection })
    }

    fn bind(&mut self, parameters: &[SqlValue<'_>]) -> rusqlite::Result<()> {
        let needed = self.prepared.parameter_count();
        if needed != parameters.len() {
            return Err(rusqlite::Error::InvalidParameterCount(parameters.len(), needed));
        }
        (1..).zip(parameters).try_for_each(|(number, value)| self.prepared.raw_bind_parameter(number, value))
    }

    /// Passes each row to `visit` until it breaks.
    pub(in crate::store) fn query(&mut self, parameters: &[SqlValue<'_>], visit: Visit<'_>) -> Result<ControlFlow<()>> {
        self.bind(parameters)?;
        let mut rows = self.prepared.raw_query();
        while let Some(found) = rows.next()? {
            if visit(&Row::of_file(found))?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Returns the number of changed rows.
    pub(in crate::store) fn execute(&mut self, parameters: &[SqlValue<'_>]) -> Result<usize> {
        self.bind(parameters)?;
        Ok(self.prepared.raw_execute()?)
    }

    /// Inserts one row and returns its integer key.
    pub(in crate::store) fn insert(&mut self, parameters: &[SqlValue<'_>]) -> Result<i64> {
        match self.execute(parameters)? {
            1 => Ok(self.connection.last_insert_rowid()),
            count => Err(Error::internal(rusqlite::Error::StatementChangedRows(count))),
        }
    }
}

impl ToSql for SqlValue<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match *self {
            Self::Null => ValueRef::Null,
            Self::Integer(number) => ValueRef::Integer(number),
            Self::Real(number) => ValueRef::Real(number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

/// Returns the value of a column, counted from 0. None for text that is not UTF-8, and without such a column.
pub(in crate::store) fn value_in<'row>(row: &'row rusqlite::Row<'_>, column: usize) -> Option<SqlValue<'row>> {
    Some(match row.get_ref(column).ok()? {
        ValueRef::Null => SqlValue::Null,
        ValueRef::Integer(number) => SqlValue::Integer(number),
        ValueRef::Real(number) => SqlValue::Real(number),
        ValueRef::Text(bytes) => SqlValue::Text(str::from_utf8(bytes).ok()?),
        ValueRef::Blob(bytes) => SqlValue::Blob(bytes),
    })
}
