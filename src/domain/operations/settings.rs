//! Named values that the service stores about itself: run-time switches and markers, not configuration.

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    error::{Error, Result},
    store::{Read, Write},
};

/// Returns the value under this name.
pub fn find_in(tx: &Read<'_>, name: &str) -> Result<Option<String>> {
    tx.first("select value from settings where name = ?1", [name], |row| row.get(0))
}

/// Returns the number under this name, or 0.
pub fn number_in(tx: &Read<'_>, name: &str) -> Result<i64> {
    Ok(find_in(tx, name)?.and_then(|number| number.parse().ok()).unwrap_or(0))
}

/// Increments the number under this name.
pub fn increase_in(tx: &Write<'_>, name: &str) -> Result<()> {
    put_in(tx, name, &(number_in(tx, name)? + 1).to_string())
}

/// Returns the JSON value under this name.
pub fn find_json_in<T: DeserializeOwned>(tx: &Read<'_>, name: &str) -> Result<Option<T>> {
    find_in(tx, name)?.map(|text| serde_json::from_str(&text).map_err(Error::internal)).transpose()
}

/// Stores a value under this name as JSON.
pub fn put_json_in(tx: &Write<'_>, name: &str, value: &impl Serialize) -> Result<()> {
    put_in(tx, name, &serde_json::to_string(value).map_err(Error::internal)?)
}

/// Returns the values under two names with one statement.
pub fn find_two_in(tx: &Read<'_>, names: [&str; 2]) -> Result<[Option<String>; 2]> {
    let sql = "select (select value from settings where name = ?1), (select value from settings where name = ?2)";
    tx.one(sql, names, |row| Ok([row.get(0)?, row.get(1)?]))
}

/// Stores a value under this name.
pub fn put_in(tx: &Write<'_>, name: &str, value: &str) -> Result<()> {
    tx.execute(
        "insert into settings (name, value, updated_at) values (?1, ?2, ?3) \
         on conflict (name) do update set value = excluded.value, updated_at = excluded.updated_at",
        (name, value, tx.now.0),
    )
    .map(drop)
}

/// Deletes the value under this name.
pub fn remove_in(tx: &Write<'_>, name: &str) -> Result<()> {
    tx.execute("delete from settings where name = ?1", [name]).map(drop)
}
