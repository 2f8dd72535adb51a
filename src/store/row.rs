//! Rows of query results.

use rusqlite::{
    Result,
    types::{FromSql, ValueRef},
};

/// A result row. Unlike rusqlite's, its `get` is compiled once for each type instead of inlined at each column.
pub struct Row<'row>(&'row rusqlite::Row<'row>);

impl<'row> Row<'row> {
    pub(super) fn new(row: &'row rusqlite::Row<'row>) -> Self {
        Self(row)
    }

    /// Returns the value of a column, counted from 0.
    ///
    /// # Errors
    /// If the value is not of this type.
    #[inline(never)]
    pub fn get<T: FromSql>(&self, column: usize) -> Result<T> {
        self.0.get(column)
    }

    /// Borrows the value of a column.
    ///
    /// # Errors
    /// If there is no such column.
    pub fn get_ref(&self, column: usize) -> Result<ValueRef<'_>> {
        self.0.get_ref(column)
    }

    /// Parses the text of a column.
    ///
    /// # Errors
    /// If `parse` returns none.
    pub fn get_parsed<T>(&self, column: usize, parse: fn(&str) -> Option<T>) -> Result<T> {
        parse(self.get_ref(column)?.as_str()?).ok_or(rusqlite::Error::InvalidQuery)
    }
}
