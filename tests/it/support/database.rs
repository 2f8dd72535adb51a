//! The database of an installation, inspected and changed behind the service's back.
//!
//! Statements are written as for SQLite, with parameters `?1`, and run on the engine under test.

use std::{path::Path, time::Duration};

use yarrow::store::{SqlColumn, SqlParameters, SqlValue};

use super::server::postgresql;

/// A connection to the database.
pub struct Database(Engine);

enum Engine {
    File(rusqlite::Connection),
    Server(std::cell::RefCell<postgres::Client>),
}

/// A row of a result.
pub struct Row(Vec<Owned>);

/// A statement that was prepared for several runs.
pub struct Prepared<'database> {
    database: &'database Database,
    sql: String,
}

#[derive(Clone, Debug, PartialEq)]
enum Owned {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
    Blob(Vec<u8>),
}

pub type Failure = String;

impl Database {
    /// Opens the database of a data directory.
    pub fn open(directory: &Path) -> Self {
        let Some(server) = postgresql() else {
            let connection = rusqlite::Connection::open(directory.join("yarrow.db")).unwrap();
            connection.busy_timeout(Duration::from_secs(10)).unwrap();
            return Self(Engine::File(connection));
        };
        let name = std::fs::read_to_string(directory.join("test-database")).unwrap();
        let client = postgres::Client::connect(&format!("{server} dbname={name}"), postgres::NoTls).unwrap();
        Self(Engine::Server(client.into()))
    }

    fn rows(&self, sql: &str, parameters: &impl SqlParameters) -> Result<(Vec<Row>, usize), Failure> {
        let values: Vec<_> = parameters.values().as_ref().iter().map(|value| Owned::from(*value)).collect();
        match &self.0 {
            Engine::File(connection) => rows_of_file(connection, sql, &values).map_err(|error| error.to_string()),
            Engine::Server(client) => {
                rows_of_server(&mut client.borrow_mut(), sql, &values).map_err(|error| format!("{error:?}"))
            }
        }
    }

    /// Runs a statement and returns the number of changed rows.
    pub fn execute(&self, sql: &str, parameters: impl SqlParameters) -> Result<usize, Failure> {
        self.rows(sql, &parameters).map(|(_, changed)| changed)
    }

    /// Runs statements without parameters. `begin immediate` blocks the writers of the service until the end of the
    /// transaction.
    pub fn execute_batch(&self, sql: &str) -> Result<(), Failure> {
        match &self.0 {
            Engine::File(connection) => connection.execute_batch(sql).map_err(|error| error.to_string()),
            Engine::Server(client) => {
                let lock = "begin; update store_state set commits = commits where id = 0";
                let sql = sql.replace("begin immediate", lock);
                client.borrow_mut().batch_execute(&sql).map_err(|error| format!("{error:?}"))
            }
        }
    }

    /// Returns what a function makes of the first row.
    pub fn query_row<T>(
        &self,
        sql: &str,
        parameters: impl SqlParameters,
        read: impl FnOnce(&Row) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let (rows, _) = self.rows(sql, &parameters)?;
        read(rows.first().ok_or("the query returned no row")?)
    }

    #[expect(clippy::unnecessary_wraps, reason = "callers are written as for rusqlite")]
    pub fn prepare(&self, sql: &str) -> Result<Prepared<'_>, Failure> {
        Ok(Prepared { database: self, sql: sql.to_owned() })
    }
}

impl Prepared<'_> {
    /// Returns what a function makes of each row.
    pub fn query_map<T>(
        &mut self,
        parameters: impl SqlParameters,
        read: impl FnMut(&Row) -> Result<T, Failure>,
    ) -> Result<std::vec::IntoIter<Result<T, Failure>>, Failure> {
        let (rows, _) = self.database.rows(&self.sql, &parameters)?;
        Ok(rows.iter().map(read).collect::<Vec<_>>().into_iter())
    }
}

impl Row {
    pub fn get<I: Index, T: SqlColumn>(&self, column: I) -> Result<T, Failure> {
        let value = &self.0[column.index()];
        T::from_value(value.borrowed()).ok_or_else(|| format!("{value:?} is of another type"))
    }
}

/// A number of a column.
pub trait Index {
    fn index(self) -> usize;
}

impl Index for usize {
    fn index(self) -> usize {
        self
    }
}

impl Index for i32 {
    fn index(self) -> usize {
        self.try_into().unwrap()
    }
}

impl From<SqlValue<'_>> for Owned {
    fn from(value: SqlValue<'_>) -> Self {
        match value {
            SqlValue::Null => Self::Null,
            SqlValue::Integer(number) => Self::Integer(number),
            SqlValue::Real(number) => Self::Real(number),
            SqlValue::Text(text) => Self::Text(text.into()),
            SqlValue::Blob(bytes) => Self::Blob(bytes.into()),
        }
    }
}

impl Owned {
    fn borrowed(&self) -> SqlValue<'_> {
        match self {
            Self::Null => SqlValue::Null,
            Self::Integer(number) => SqlValue::Integer(*number),
            Self::Real(number) => SqlValue::Real(*number),
            Self::Text(text) => SqlValue::Text(text),
            Self::Blob(bytes) => SqlValue::Blob(bytes),
        }
    }
}

fn rows_of_file(connection: &rusqlite::Connection, sql: &str, values: &[Owned]) -> rusqlite::Result<(Vec<Row>, usize)> {
    use rusqlite::types::{Value, ValueRef};
    let mut statement = connection.prepare(sql)?;
    let columns = statement.column_count();
    let values = values.iter().map(|value| match value.clone() {
        Owned::Null => Value::Null,
        Owned::Integer(number) => Value::Integer(number),
        Owned::Real(number) => Value::Real(number),
        Owned::Text(text) => Value::Text(text),
        Owned::Blob(bytes) => Value::Blob(bytes),
    });
    let (before, mut found) = (connection.total_changes(), Vec::new());
    let mut rows = statement.query(rusqlite::params_from_iter(values))?;
    while let Some(row) = rows.next()? {
        let value = |column| {
            Ok(match row.get_ref(column)? {
                ValueRef::Null => Owned::Null,
                ValueRef::Integer(number) => Owned::Integer(number),
                ValueRef::Real(number) => Owned::Real(number),
                ValueRef::Text(text) => Owned::Text(String::from_utf8_lossy(text).into_owned()),
                ValueRef::Blob(bytes) => Owned::Blob(bytes.into()),
            })
        };
        found.push(Row((0..columns).map(value).collect::<rusqlite::Result<_>>()?));
    }
    drop(rows);
    Ok((found, usize::try_from(connection.total_changes() - before).unwrap()))
}

fn rows_of_server(
    client: &mut postgres::Client,
    sql: &str,
    values: &[Owned],
) -> Result<(Vec<Row>, usize), postgres::Error> {
    use postgres::fallible_iterator::FallibleIterator as _;
    let statement = client.prepare(&sql.replace('?', "$"))?;
    let columns = statement.columns().len();
    // SQLite converts digits by the type of the column.
    let converted: Vec<_> = values
        .iter()
        .zip(statement.params())
        .map(|(value, kind)| match value {
            Owned::Text(digits) if *kind == postgres::types::Type::INT8 => Owned::Integer(digits.parse().unwrap()),
            value => value.clone(),
        })
        .collect();
    let mut rows = client.query_raw(&statement, converted.iter().map(Owned::borrowed))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(Row((0..columns).map(|column| Owned::from(row.get::<_, SqlValue<'_>>(column))).collect()));
    }
    let changed = rows.rows_affected().unwrap_or(0);
    Ok((found, usize::try_from(changed).unwrap()))
}
