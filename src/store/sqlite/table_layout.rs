//! Tables, columns and keys of the schema, for code that handles all tables alike.
//!
//! The schemas of both engines have the same tables and columns, so the layout is read from SQLite's for either.

use rusqlite::Connection;

use super::migrate::SCHEMA;
use crate::{
    error::{Error, Result},
    store::tables::quoted,
};

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum ColumnType {
    Integer,
    Real,
    Text,
    Blob,
}

/// A table of the schema.
#[derive(Clone, Debug)]
pub(in crate::store) struct TableLayout {
    pub(in crate::store) name: String,
    /// Names and types in the order of their declaration.
    pub(in crate::store) columns: Vec<(String, ColumnType)>,
    /// The columns of the primary key.
    pub(in crate::store) key: Vec<String>,
    /// True if SQLite never uses an id again, even after the row was deleted.
    pub(in crate::store) has_counter: bool,
    /// Tables to which foreign keys refer.
    parents: Vec<String>,
}

impl TableLayout {
    /// Returns the names of all columns as a list in SQL.
    pub(in crate::store) fn column_list(&self) -> String {
        self.columns.iter().map(|(name, _)| quoted(name)).collect::<Vec<_>>().join(", ")
    }

    /// Returns the primary key if it is one integer column.
    pub(in crate::store) fn integer_key(&self) -> Option<&str> {
        let [key] = &self.key[..] else { return None };
        let is_integer = |(name, column): &&(String, ColumnType)| name == key && *column == ColumnType::Integer;
        self.columns.iter().find(is_integer).map(|(name, _)| &**name)
    }

    /// Returns the statement that reads all rows in the order of the primary key.
    pub(in crate::store) fn select(&self) -> String {
        let key: Vec<_> = self.key.iter().map(|name| quoted(name)).collect();
        format!("select {} from {} order by {}", self.column_list(), quoted(&self.name), key.join(", "))
    }
}

/// Returns all tables of the current schema. Each comes after the tables to which it refers.
///
/// # Errors
/// `internal` for tables that refer to each other in a circle.
pub(in crate::store) fn table_layouts() -> Result<Vec<TableLayout>> {
    let mut connection = Connection::open_in_memory()?;
    SCHEMA.apply_from(&mut connection, 0)?;
    let names = "select name, sql like '%autoincrement%' from sqlite_schema where type = 'table' \
                 and name not like 'sqlite!_%' escape '!' order by name";
    let mut statement = connection.prepare(names)?;
    let names = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let names = names.collect::<rusqlite::Result<Vec<(String, bool)>>>()?;
    let mut tables = Vec::new();
    for (name, has_counter) in names {
        tables.push(layout_of(&connection, name, has_counter)?);
    }
    sorted_by_references(tables)
}

fn layout_of(connection: &Connection, name: String, has_counter: bool) -> Result<TableLayout> {
    let mut statement = connection.prepare("select name, type, pk from pragma_table_info(?1) order by cid")?;
    let found = statement.query_map([&name], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let found = found.collect::<rusqlite::Result<Vec<(String, String, u32)>>>()?;
    let mut key: Vec<_> = found.iter().filter(|(_, _, place)| *place > 0).collect();
    key.sort_by_key(|(_, _, place)| *place);
    let key: Vec<String> = key.into_iter().map(|(column, ..)| column.clone()).collect();
    if key.is_empty() {
        return Err(Error::internal(format!("table {name} has no primary key")));
    }
    let columns = found.into_iter().map(|(column, kind, _)| match kind.as_str() {
        "INTEGER" => Ok((column, ColumnType::Integer)),
        "REAL" => Ok((column, ColumnType::Real)),
        "TEXT" => Ok((column, ColumnType::Text)),
        "BLOB" => Ok((column, ColumnType::Blob)),
        other => Err(Error::internal(format!("column {column} of {name} has the type {other}"))),
    });
    let columns = columns.collect::<Result<_>>()?;
    let mut statement = connection.prepare("select distinct \"table\" from pragma_foreign_key_list(?1)")?;
    let parents = statement.query_map([&name], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
    let parents = parents.into_iter().filter(|parent| *parent != name).collect();
    Ok(TableLayout { name, columns, key, has_counter, parents })
}

fn sorted_by_references(mut waiting: Vec<TableLayout>) -> Result<Vec<TableLayout>> {
    let mut sorted: Vec<TableLayout> = Vec::new();
    while !waiting.is_empty() {
        let is_known = |parent: &String| sorted.iter().any(|table| table.name == *parent);
        let (ready, rest): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|table| table.parents.iter().all(is_known));
        if ready.is_empty() {
            return Err(Error::internal("tables refer to each other in a circle"));
        }
        sorted.extend(ready);
        waiting = rest;
    }
    Ok(sorted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_follow_those_to_which_they_refer() {
        let tables = table_layouts().unwrap();
        assert!(tables.len() > 50, "{}", tables.len());
        for (place, table) in tables.iter().enumerate() {
            let is_before = |parent: &String| tables[..place].iter().any(|earlier| earlier.name == *parent);
            assert!(table.parents.iter().all(is_before), "{table:?}");
        }
        let sessions = tables.iter().find(|table| table.name == "session_calls").unwrap();
        assert!(sessions.parents.contains(&"sessions".to_owned()), "{sessions:?}");
        let words = tables.iter().find(|table| table.name == "codes").unwrap();
        assert!(words.select().ends_with("from \"codes\" order by \"address\", \"purpose\""), "{}", words.select());
    }
}
