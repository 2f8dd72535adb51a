//! The database of an installation, inspected and changed behind the service's back.
//!
//! Statements are written as for SQLite, with parameters `?1`, and run on the engine under test. PostgreSQL gets the
//! functions that they use from `tests/postgresql/functions.sql`; what a function cannot do is translated here.

use std::{path::Path, time::Duration};

use yarrow::store::{OwnedSqlValue, SqlColumn, SqlParameters, SqlValue};

use super::server::postgresql;
use postgres::error::SqlState;

/// A connection to the database.
pub struct Database(Engine);

enum Engine {
    File(rusqlite::Connection),
    Server(std::cell::RefCell<postgres::Client>),
}

/// A row of a result.
pub struct Row(Vec<OwnedSqlValue>);

/// A statement that was prepared for several runs.
pub struct Prepared<'database> {
    database: &'database Database,
    sql: String,
}

pub type Failure = String;

impl Database {
    /// Opens the database of a data directory.
    pub fn open(directory: &Path) -> Self {
        let Some(server) = postgresql() else { return Self::open_file(&directory.join("yarrow.db")) };
        let name = std::fs::read_to_string(directory.join("test-database")).unwrap();
        let client = postgres::Client::connect(&format!("{server} dbname={name}"), postgres::NoTls).unwrap();
        Self(Engine::Server(client.into()))
    }

    /// Opens the network log of a data directory, which is a file on every engine.
    pub fn open_network_log(directory: &Path) -> Self {
        Self::open_file(&directory.join("network-log.db"))
    }

    fn open_file(path: &Path) -> Self {
        let connection = rusqlite::Connection::open(path).unwrap();
        connection.busy_timeout(Duration::from_secs(10)).unwrap();
        Self(Engine::File(connection))
    }

    fn rows(&self, sql: &str, parameters: &impl SqlParameters) -> Result<(Vec<Row>, usize), Failure> {
        let values: Vec<_> = parameters.values().as_ref().iter().map(|value| OwnedSqlValue::from(*value)).collect();
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
                let mut client = client.borrow_mut();
                let mut executed = client.batch_execute(&for_server(sql));
                // A change of tables and a read of the service may wait for each other; the server then ends one of them.
                while executed.as_ref().is_err_and(|error| error.code() == Some(&SqlState::T_R_DEADLOCK_DETECTED)) {
                    client.batch_execute("rollback").map_err(|error| format!("{error:?}"))?;
                    executed = client.batch_execute(&for_server(sql));
                }
                executed.map_err(|error| format!("{error:?}"))
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

    /// Returns the texts of the first column.
    pub fn texts(&self, sql: &str) -> Vec<String> {
        let (rows, _) = self.rows(sql, &()).unwrap();
        rows.iter().map(|row| row.get(0).unwrap()).collect()
    }

    /// Returns the values of all rows of a table.
    pub fn contents(&self, table: &str) -> Vec<Vec<OwnedSqlValue>> {
        let (rows, _) = self.rows(&format!("select * from {table}"), &()).unwrap();
        rows.into_iter().map(|row| row.0).collect()
    }

    /// Returns the names of the tables.
    pub fn tables(&self) -> Vec<String> {
        self.texts(match self.0 {
            Engine::File(_) => {
                "select name from sqlite_schema where type = 'table' and name not like 'sqlite%' order by name"
            }
            Engine::Server(_) => {
                "select cast(tablename as text) from pg_tables where schemaname = current_schema() order by tablename"
            }
        })
    }

    /// Returns the names of the columns of a table in their order.
    pub fn columns(&self, table: &str) -> Vec<String> {
        self.texts(&match self.0 {
            Engine::File(_) => format!("select name from pragma_table_info('{table}') order by cid"),
            Engine::Server(_) => format!(
                "select cast(attname as text) from pg_attribute where attrelid = cast('{table}' as regclass) \
                 and attnum > 0 and not attisdropped order by attnum"
            ),
        })
    }

    /// Returns the columns of a table that reference another.
    pub fn references(&self, table: &str, other: &str) -> Vec<String> {
        self.texts(&match self.0 {
            Engine::File(_) => {
                format!("select \"from\" from pragma_foreign_key_list('{table}') where \"table\" = '{other}'")
            }
            Engine::Server(_) => format!(
                "select cast(attname as text) from pg_constraint join pg_attribute on attrelid = conrelid \
                 and attnum = any(conkey) where contype = 'f' and conrelid = cast('{table}' as regclass) \
                 and confrelid = cast('{other}' as regclass)"
            ),
        })
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

fn rows_of_file(
    connection: &rusqlite::Connection,
    sql: &str,
    values: &[OwnedSqlValue],
) -> rusqlite::Result<(Vec<Row>, usize)> {
    use rusqlite::types::{Value, ValueRef};
    let mut statement = connection.prepare(sql)?;
    let columns = statement.column_count();
    let values = values.iter().map(|value| match value.clone() {
        OwnedSqlValue::Null => Value::Null,
        OwnedSqlValue::Integer(number) => Value::Integer(number),
        OwnedSqlValue::Real(number) => Value::Real(number),
        OwnedSqlValue::Text(text) => Value::Text(text),
        OwnedSqlValue::Blob(bytes) => Value::Blob(bytes),
    });
    let (before, mut found) = (connection.total_changes(), Vec::new());
    let mut rows = statement.query(rusqlite::params_from_iter(values))?;
    while let Some(row) = rows.next()? {
        let value = |column| {
            Ok(match row.get_ref(column)? {
                ValueRef::Null => OwnedSqlValue::Null,
                ValueRef::Integer(number) => OwnedSqlValue::Integer(number),
                ValueRef::Real(number) => OwnedSqlValue::Real(number),
                ValueRef::Text(text) => OwnedSqlValue::Text(String::from_utf8_lossy(text).into_owned()),
                ValueRef::Blob(bytes) => OwnedSqlValue::Blob(bytes.into()),
            })
        };
        found.push(Row((0..columns).map(value).collect::<rusqlite::Result<_>>()?));
    }
    drop(rows);
    Ok((found, usize::try_from(connection.total_changes() - before).unwrap()))
}

/// Translates what PostgreSQL writes in another way: the lock of the writers, foreign keys that are not checked,
/// parameters, literal bytes, and products of large numbers, which have 64 bits on SQLite.
fn for_server(sql: &str) -> String {
    let sql = sql
        .replace(" as integer)", " as bigint)")
        .replace("begin immediate", "begin; update store_state set commits = commits where id = 0")
        .replace("pragma foreign_keys = off", "set session_replication_role = replica")
        .replace("pragma foreign_keys = on", "set session_replication_role = origin");
    let mut translated = String::new();
    // Texts are at the odd places.
    for (place, part) in sql.split('\'').enumerate() {
        if place > 0 {
            translated.push('\'');
        }
        if place % 2 == 1 {
            if translated.ends_with(" x'") || translated.ends_with("(x'") {
                translated.truncate(translated.len() - 2);
                translated += "'\\x";
            }
            translated += part;
            continue;
        }
        for word in part.split_inclusive(|character: char| !character.is_ascii_alphanumeric() && character != '_') {
            let number = word.trim_end_matches(|character: char| !character.is_ascii_alphanumeric());
            let is_large = number.len() > 6 && number.bytes().all(|byte| byte.is_ascii_digit());
            translated +=
                &if is_large { word.replacen(number, &format!("{number}::bigint"), 1) } else { word.replace('?', "$") };
        }
    }
    translated
}

/// Returns a statement that creates a trigger: `after update on users`. The body is one statement.
pub fn create_trigger(name: &str, event: &str, body: &str) -> String {
    if postgresql().is_none() {
        return format!("create trigger {name} {event} begin {body}; end");
    }
    // The body of a function says `raise` in another way.
    let body = body.replace("select raise(abort, ", "raise exception using message = (");
    format!(
        "create function {name}() returns trigger language plpgsql as $$ begin {body}; return new; end $$; \
         create trigger {name} {event} for each row execute function {name}()"
    )
}

/// Returns a statement that lets every change of a kind fail: `update`, `interpretations`.
pub fn refuse_changes(kind: &str, table: &str) -> String {
    create_trigger("refused", &format!("before {kind} on {table}"), "select raise(abort, 'refused')")
}

/// Returns a statement that allows them again.
pub fn allow_changes(table: &str) -> String {
    if postgresql().is_none() {
        "drop trigger refused".to_owned()
    } else {
        format!("drop trigger refused on {table}; drop function refused()")
    }
}

/// Returns a statement that drops a trigger of the schema.
pub fn drop_trigger(name: &str, table: &str) -> String {
    if postgresql().is_none() { format!("drop trigger {name}") } else { format!("drop trigger {name} on {table}") }
}

fn rows_of_server(
    client: &mut postgres::Client,
    sql: &str,
    values: &[OwnedSqlValue],
) -> Result<(Vec<Row>, usize), postgres::Error> {
    use postgres::fallible_iterator::FallibleIterator as _;
    let statement = client.prepare(&for_server(sql))?;
    let columns = statement.columns().len();
    // SQLite converts digits by the type of the column.
    let converted: Vec<_> = values
        .iter()
        .zip(statement.params())
        .map(|(value, kind)| match value {
            OwnedSqlValue::Text(digits) if *kind == postgres::types::Type::INT8 => {
                OwnedSqlValue::Integer(digits.parse().unwrap())
            }
            value => value.clone(),
        })
        .collect();
    let mut rows = client.query_raw(&statement, converted.iter().map(OwnedSqlValue::borrowed))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(Row((0..columns).map(|column| OwnedSqlValue::from(row.get::<_, SqlValue<'_>>(column))).collect()));
    }
    let changed = rows.rows_affected().unwrap_or(0);
    Ok((found, usize::try_from(changed).unwrap()))
}
