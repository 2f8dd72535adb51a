//! Rows of query results.

use super::{
    postgres::ServerRow,
    sqlite::{FileRow, value_in},
    value::{RowError, RowResult, SqlColumn, SqlValue},
};

/// A result row.
pub struct Row<'row>(Source<'row>);

enum Source<'row> {
    File(&'row FileRow<'row>),
    Server(&'row ServerRow),
}

impl<'row> Row<'row> {
    pub(super) fn of_file(row: &'row FileRow<'row>) -> Self {
        Self(Source::File(row))
    }

    pub(super) fn of_server(row: &'row ServerRow) -> Self {
        Self(Source::Server(row))
    }

    pub(super) fn value(&self, column: usize) -> Option<SqlValue<'_>> {
        match &self.0 {
            Source::File(row) => value_in(row, column),
            Source::Server(row) => row.try_get(column).ok(),
        }
    }

    /// Returns the value of a column, counted from 0. It is compiled once for each type.
    ///
    /// # Errors
    /// If the value is not of this type.
    #[inline(never)]
    pub fn get<T: SqlColumn>(&self, column: usize) -> RowResult<T> {
        let value = self.value(column).and_then(T::from_value);
        value.ok_or(RowError::Type { column, expected: std::any::type_name::<T>() })
    }

    /// Borrows the text of a column.
    ///
    /// # Errors
    /// If it holds no text.
    pub fn text(&self, column: usize) -> RowResult<&str> {
        let text = self.value(column).and_then(SqlValue::as_text);
        text.ok_or(RowError::Type { column, expected: "text" })
    }

    /// Borrows the text of a column, if it holds any.
    ///
    /// # Errors
    /// If it holds something else.
    pub fn optional_text(&self, column: usize) -> RowResult<Option<&str>> {
        match self.value(column) {
            Some(SqlValue::Null) => Ok(None),
            Some(SqlValue::Text(text)) => Ok(Some(text)),
            _ => Err(RowError::Type { column, expected: "text" }),
        }
    }

    /// Borrows the bytes of a column.
    ///
    /// # Errors
    /// If it holds no bytes.
    pub fn bytes(&self, column: usize) -> RowResult<&[u8]> {
        let bytes = self.value(column).and_then(SqlValue::as_blob);
        bytes.ok_or(RowError::Type { column, expected: "bytes" })
    }

    /// Parses the text of a column.
    ///
    /// # Errors
    /// If `parse` returns none.
    pub fn get_parsed<T>(&self, column: usize, parse: fn(&str) -> Option<T>) -> RowResult<T> {
        parse(self.text(column)?).ok_or(RowError::Invalid)
    }
}
