//! Copies all rows from one database to another, on the same or another engine.
//!
//! Each side is one transaction that keeps other writers out, so both stay as they are until they commit. Rows are read in
//! the order of their primary key: it is the same on both engines, so the digests of both sides can be compared.

use std::{ops::ControlFlow, path::Path};

use ring::digest;
use secrecy::SecretString;

use super::{
    Read, Row, SchemaPolicy, SqlValue, Tuning, Write,
    postgres::{ServerCopySide, ServerRows, ServerStore},
    sqlite::{self, FileCopySide, FileRows, TableLayout, table_layouts},
    tables::quoted,
    transaction::Access,
    value::RowError,
};
use crate::{
    error::{Code, Error, Result},
    keys::ServerKey,
    types::{Timestamp, hex, pluralize},
};

/// The table that triggers on other tables fill. It is copied last, after its rows were deleted.
const FILLED_BY_TRIGGERS: &str = "token_changes";
/// Rows between two calls of the progress callback.
const PROGRESS_INTERVAL: u64 = 1_000;

/// Called now and then with the step, the number of rows done and of all rows.
pub type RowProgress<'watcher> = &'watcher mut dyn FnMut(&'static str, u64, u64);

/// A database that takes part in a copy. Its changes are rolled back unless it is committed.
pub struct CopySide {
    engine: CopyEngine,
    keys: Option<ServerKey>,
    now: Timestamp,
}

enum CopyEngine {
    File(FileCopySide),
    Server(Box<ServerCopySide>),
}

/// The rows of one table, the same on both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiedTable {
    pub name: String,
    pub rows: u64,
    /// SHA-256 over all columns of all rows in the order of the primary key.
    pub sha256: String,
}

impl CopySide {
    /// Opens an existing database file. The caller holds the lock of its directory.
    ///
    /// # Errors
    /// `data_directory_unusable` for another schema version, `overloaded` while another process writes, storage errors.
    pub fn open_file(path: &Path, now: Timestamp) -> Result<Self> {
        let file = FileCopySide::open(path, &Tuning::SMALL)?;
        Ok(Self { engine: CopyEngine::File(file), keys: None, now })
    }

    /// Creates a database file with the current schema.
    ///
    /// # Errors
    /// Storage errors, such as for an existing file.
    pub fn create_file(path: &Path, now: Timestamp) -> Result<Self> {
        Ok(Self { engine: CopyEngine::File(FileCopySide::create(path)?), keys: None, now })
    }

    /// Opens a database on a PostgreSQL server.
    ///
    /// # Errors
    /// `configuration` for an unusable URL, `data_directory_unusable` for another schema version, `overloaded` while
    /// another process writes, storage errors.
    pub fn open_server(url: &SecretString, now: Timestamp, policy: SchemaPolicy) -> Result<Self> {
        Ok(Self { engine: CopyEngine::Server(Box::new(ServerCopySide::open(url, policy)?)), keys: None, now })
    }

    /// Returns the side with the server key under which rows are sealed.
    #[must_use]
    pub fn with_keys(self, keys: ServerKey) -> Self {
        Self { keys: Some(keys), ..self }
    }

    fn access(&self) -> Access<'_> {
        match &self.engine {
            CopyEngine::File(file) => file.access(),
            CopyEngine::Server(server) => server.access(),
        }
    }

    /// Runs an operation in the transaction of this side.
    ///
    /// # Errors
    /// Those of the operation.
    pub fn read<T>(&self, operation: impl FnOnce(&Read<'_>) -> Result<T>) -> Result<T> {
        operation(&Read::new(self.access(), self.now).with_keys(self.keys.as_ref()))
    }

    /// Runs an operation in the transaction of this side.
    ///
    /// # Errors
    /// Those of the operation, after which the side must not be committed.
    pub fn write<T>(&self, operation: impl FnOnce(&Write<'_>) -> Result<T>) -> Result<T> {
        operation(&Write::new(self.access(), self.now).with_keys(self.keys.as_ref()))
    }

    /// Commits the changes of this side.
    ///
    /// # Errors
    /// Storage errors.
    pub fn commit(self) -> Result<()> {
        match self.engine {
            CopyEngine::File(file) => file.commit(),
            CopyEngine::Server(server) => server.commit(),
        }
    }

    /// Counts the copies of the service that run on a PostgreSQL database. A server on a file holds the lock of its
    /// directory instead.
    ///
    /// # Errors
    /// Storage errors.
    pub fn running_servers(&self) -> Result<i64> {
        match &self.engine {
            CopyEngine::File(_) => Ok(0),
            CopyEngine::Server(server) => server.running_servers(),
        }
    }

    /// Returns true if any table has a row.
    ///
    /// # Errors
    /// Storage errors.
    pub fn has_rows(&self) -> Result<bool> {
        for table in table_layouts()? {
            let any = format!("select 1 from {} limit 1", quoted(&table.name));
            if self.access().first(&any, &(), |_| Ok(()))?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn count_rows(&self, table: &TableLayout) -> Result<u64> {
        u64::try_from(self.read(|tx| tx.count_rows(&table.name))?).map_err(Error::internal)
    }

    fn insert_into(&self, table: &TableLayout) -> Result<NewRows<'_>> {
        Ok(match &self.engine {
            CopyEngine::File(file) => NewRows::File(file.insert_into(table)?),
            CopyEngine::Server(server) => NewRows::Server(server.insert_into(table)?),
        })
    }

    fn counter(&self, table: &TableLayout) -> Result<i64> {
        let counted = match &self.engine {
            CopyEngine::File(file) => file.counter(table)?,
            CopyEngine::Server(server) => server.counter(table)?,
        };
        let Some(key) = table.integer_key() else { return Ok(counted) };
        let largest = format!("select coalesce(max({}), 0) from {}", quoted(key), quoted(&table.name));
        let largest = self.access().first(&largest, &(), |row| row.get(0))?.unwrap_or(0);
        Ok(counted.max(largest))
    }
}

/// Inserts rows into a table of the target.
enum NewRows<'side> {
    File(FileRows<'side>),
    Server(ServerRows<'side>),
}

impl NewRows<'_> {
    fn write(&mut self, values: &[SqlValue<'_>]) -> Result<()> {
        match self {
            Self::File(rows) => rows.write(values),
            Self::Server(rows) => rows.write(values),
        }
    }

    fn finish(self) -> Result<()> {
        match self {
            Self::File(_) => Ok(()),
            Self::Server(rows) => rows.finish(),
        }
    }
}

/// Copies one state of a database on a server to a new file, while others write.
pub(super) fn copy_server_to_file(
    server: &ServerStore,
    path: &Path,
    now: Timestamp,
    progress: RowProgress<'_>,
) -> Result<()> {
    let source = CopySide { engine: CopyEngine::Server(Box::new(server.snapshot()?)), keys: None, now };
    let target = CopySide::create_file(path, now)?;
    copy_tables(&source, &target, progress)?;
    target.commit()
}

/// Copies the rows and counters of all tables to an empty database, and compares the result with the source.
///
/// # Errors
/// `checks_failed` if the target does not accept a row or differs from the source; storage errors. The target must not be
/// committed then.
pub fn copy_tables(source: &CopySide, target: &CopySide, progress: RowProgress<'_>) -> Result<Vec<CopiedTable>> {
    let mut tables = table_layouts()?;
    tables.sort_by_key(|table| table.name == FILLED_BY_TRIGGERS);
    let total = tables.iter().map(|table| source.count_rows(table)).sum::<Result<u64>>()?;
    let mut copied = Vec::new();
    let mut done = 0;
    for table in &tables {
        copied.push(copy_table(source, target, table, &mut |rows| progress("copying", done + rows, total))?);
        done += copied.last().map_or(0, |table| table.rows);
    }
    done = 0;
    for (table, expected) in tables.iter().zip(&copied) {
        let found = read_table(target, table, &mut |_| Ok(()), &mut |rows| progress("comparing", done + rows, total))?;
        if found != *expected {
            let detail = format!(
                "The copy of the table {} has {} with the digest {}; the source has {} with {}.",
                table.name,
                pluralize(found.rows, "row", "rows"),
                found.sha256,
                expected.rows,
                expected.sha256
            );
            return Err(Error::new(Code::ChecksFailed).english_detail(detail));
        }
        done += found.rows;
    }
    check_references(target)?;
    for table in &tables {
        set_counter(target, table, source.counter(table)?)?;
    }
    Ok(copied)
}

fn copy_table(
    source: &CopySide,
    target: &CopySide,
    table: &TableLayout,
    progress: &mut dyn FnMut(u64),
) -> Result<CopiedTable> {
    if table.name == FILLED_BY_TRIGGERS {
        target.write(|tx| tx.execute(&format!("delete from {}", quoted(&table.name)), ()))?;
    }
    let mut rows = target.insert_into(table)?;
    let copied = read_table(source, table, &mut |values| rows.write(values), progress)?;
    rows.finish()?;
    if let CopyEngine::Server(server) = &target.engine {
        server.analyze(table)?;
    }
    Ok(copied)
}

/// Passes the values of each row to a function.
fn read_table(
    side: &CopySide,
    table: &TableLayout,
    each: &mut dyn FnMut(&[SqlValue<'_>]) -> Result<()>,
    progress: &mut dyn FnMut(u64),
) -> Result<CopiedTable> {
    let (mut rows, mut digest) = (0, digest::Context::new(&digest::SHA256));
    let read = side.access().query(&table.select(), &[], &mut |row| {
        let values = values_of(row, table)?;
        for value in &values {
            add_to(&mut digest, *value);
        }
        each(&values)?;
        rows += 1;
        if rows % PROGRESS_INTERVAL == 0 {
            progress(rows);
        }
        Ok(ControlFlow::Continue(()))
    });
    read.map(drop)?;
    progress(rows);
    Ok(CopiedTable { name: table.name.clone(), rows, sha256: hex(digest.finish().as_ref()) })
}

fn values_of<'row>(row: &'row Row<'_>, table: &TableLayout) -> Result<Vec<SqlValue<'row>>> {
    let unreadable = |column| {
        let (name, _) = &table.columns[column];
        Error::new(Code::ChecksFailed)
            .english_detail(format!("A value of the column {name} of the table {} cannot be read.", table.name))
            .caused_by(RowError::Type { column, expected: "readable value" })
    };
    (0..table.columns.len()).map(|column| row.value(column).ok_or_else(|| unreadable(column))).collect()
}

/// Adds a value with its type and length, so that different rows have different texts.
fn add_to(digest: &mut digest::Context, value: SqlValue<'_>) {
    let mut add = |kind: u8, bytes: &[u8]| {
        digest.update(&[kind]);
        digest.update(&(bytes.len() as u64).to_be_bytes());
        digest.update(bytes);
    };
    match value {
        SqlValue::Null => add(0, &[]),
        SqlValue::Integer(number) => add(1, &number.to_be_bytes()),
        SqlValue::Real(number) => add(2, &number.to_bits().to_be_bytes()),
        SqlValue::Text(text) => add(3, text.as_bytes()),
        SqlValue::Blob(bytes) => add(4, bytes),
    }
}

fn check_references(target: &CopySide) -> Result<()> {
    // PostgreSQL checks each reference when its row arrives.
    let CopyEngine::File(file) = &target.engine else { return Ok(()) };
    match file.dangling_references()? {
        0 => Ok(()),
        count => {
            let detail = format!(
                "{} to missing rows.",
                pluralize(count, "row of the source refers", "rows of the source refer")
            );
            Err(Error::new(Code::ChecksFailed).english_detail(detail))
        }
    }
}

fn set_counter(target: &CopySide, table: &TableLayout, counter: i64) -> Result<()> {
    match &target.engine {
        CopyEngine::File(file) => file.set_counter(table, counter),
        CopyEngine::Server(server) => server.set_counter(table, counter),
    }
}

/// Returns true if a database file has rows.
///
/// # Errors
/// `data_directory_unusable` for the file of another program, storage errors.
pub fn file_has_rows(path: &Path) -> Result<bool> {
    sqlite::has_rows(path)
}
