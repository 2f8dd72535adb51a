//! One row that a statement found.

use rusqlite::{
    Result,
    types::{FromSql, ValueRef},
};

/// The library's row. Its own `get` makes errors in place, ten times as much code as reading a value, at every column
/// of every statement; here it is in the program once for each type.
pub struct Row<'row>(&'row rusqlite::Row<'row>);

impl<'row> Row<'row> {
    pub(super) fn new(row: &'row rusqlite::Row<'row>) -> Self {
        Self(row)
    }

    /// The value of a column, counted from 0.
    ///
    /// # Errors
    /// When the value is not of this type.
    #[inline(never)]
    pub fn get<T: FromSql>(&self, column: usize) -> Result<T> {
        self.0.get(column)
    }

    /// The value of a column as it stands there, for whoever reads it without a copy.
    ///
    /// # Errors
    /// When there is no such column.
    pub fn get_ref(&self, column: usize) -> Result<ValueRef<'_>> {
        self.0.get_ref(column)
    }

    /// The value whose name is in a column.
    ///
    /// # Errors
    /// When the name is that of none.
    pub fn get_parsed<T>(&self, column: usize, named: fn(&str) -> Option<T>) -> Result<T> {
        named(self.get_ref(column)?.as_str()?).ok_or(rusqlite::Error::InvalidQuery)
    }
}
