//! The database file as one side of a copy between databases.
//!
//! The target is a new file without a journal: it gets its final name only when it is complete, so a partial one is never
//! opened.

use std::path::Path;

use rusqlite::Connection;

use super::{
    connection::open_writer,
    library,
    migrate::{SCHEMA, SchemaPolicy},
    table_layout::TableLayout,
};
use crate::{
    error::Result,
    store::{SqlValue, Tuning, files::create_private, tables::quoted, transaction::Access},
};

/// Page cache of a new file, in KiB: its indexes are filled in random order.
const NEW_FILE_CACHE_KIB: i64 = 128 << 10;

/// A transaction on a database file.
pub(in crate::store) struct FileCopySide(Connection);

/// Inserts rows into a table.
pub(in crate::store) struct FileRows<'side>(rusqlite::Statement<'side>);

impl FileCopySide {
    /// Begins a transaction that keeps other writers out of an existing database.
    pub(in crate::store) fn open(path: &Path, tuning: &Tuning) -> Result<Self> {
        let check = |connection: &Connection| {
            library::check(connection)?;
            SCHEMA.check(connection, SchemaPolicy::RequireCurrent)
        };
        let connection = open_writer(path, tuning, SCHEMA.synchronous, check)?;
        connection.execute_batch("begin immediate")?;
        Ok(Self(connection))
    }

    /// Creates a new database and begins a transaction in it.
    pub(in crate::store) fn create(path: &Path) -> Result<Self> {
        create_private(path)?;
        let mut connection = Connection::open(path)?;
        connection.pragma_update(None, "journal_mode", "off")?;
        connection.pragma_update(None, "synchronous", "off")?;
        connection.pragma_update(None, "temp_store", "memory")?;
        connection.pragma_update(None, "cache_size", -NEW_FILE_CACHE_KIB)?;
        // All references are checked at the end.
        connection.pragma_update(None, "foreign_keys", false)?;
        SCHEMA.apply_from(&mut connection, 0)?;
        connection.execute_batch("begin immediate")?;
        Ok(Self(connection))
    }

    pub(in crate::store) fn access(&self) -> Access<'_> {
        Access::File(&self.0)
    }

    pub(in crate::store) fn commit(self) -> Result<()> {
        Ok(self.0.execute_batch("commit")?)
    }

    pub(in crate::store) fn insert_into(&self, table: &TableLayout) -> Result<FileRows<'_>> {
        let values: Vec<_> = (1..=table.columns.len()).map(|number| format!("?{number}")).collect();
        let (name, columns) = (quoted(&table.name), table.column_list());
        let insert = format!("insert into {name} ({columns}) values ({})", values.join(", "));
        Ok(FileRows(self.0.prepare(&insert)?))
    }

    /// Returns the largest id that a table has ever had.
    pub(in crate::store) fn counter(&self, table: &TableLayout) -> Result<i64> {
        let counted = "select seq from sqlite_sequence where name = ?1";
        Ok(self.access().first(counted, &[&*table.name], |row| row.get(0))?.unwrap_or(0))
    }

    /// Lets the ids of new rows begin after this one.
    pub(in crate::store) fn set_counter(&self, table: &TableLayout, counter: i64) -> Result<()> {
        if table.has_counter {
            self.0.execute("delete from sqlite_sequence where name = ?1", [&table.name])?;
            if counter > 0 {
                let insert = "insert into sqlite_sequence (name, seq) values (?1, ?2)";
                self.0.execute(insert, (&table.name, counter))?;
            }
        }
        Ok(())
    }

    /// Counts rows that refer to a missing row.
    pub(in crate::store) fn dangling_references(&self) -> Result<i64> {
        Ok(self.0.query_row("select count(*) from pragma_foreign_key_check", [], |row| row.get(0))?)
    }
}

impl FileRows<'_> {
    pub(in crate::store) fn write(&mut self, values: &[SqlValue<'_>]) -> Result<()> {
        for (place, value) in values.iter().enumerate() {
            self.0.raw_bind_parameter(place + 1, value)?;
        }
        Ok(self.0.raw_execute().map(drop)?)
    }
}

/// Returns true if the file holds a database of this program with rows.
///
/// # Errors
/// `data_directory_unusable` for the file of another program, storage errors.
pub(in crate::store) fn has_rows(path: &Path) -> Result<bool> {
    let connection = Connection::open(path)?;
    SCHEMA.version_of(&connection)?;
    let tables = "select name from sqlite_schema where type = 'table' and name not like 'sqlite!_%' escape '!'";
    let mut statement = connection.prepare(tables)?;
    let names = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
    for name in names {
        if connection.prepare(&format!("select 1 from {}", quoted(&name)))?.exists([])? {
            return Ok(true);
        }
    }
    Ok(false)
}
