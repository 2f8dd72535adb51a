//! What is remembered about the installation itself while it runs, by name: switches and marks, not configuration.

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    error::{Error, Result},
    store::{Read, Write},
};

/// The value under this name, if one was ever put there.
pub fn find_in(tx: &Read<'_>, name: &str) -> Result<Option<String>> {
    tx.first("select value from settings where name = ?1", [name], |row| row.get(0))
}

/// The number under this name; 0 if there is none.
pub fn number_in(tx: &Read<'_>, name: &str) -> Result<i64> {
    Ok(find_in(tx, name)?.and_then(|number| number.parse().ok()).unwrap_or(0))
}

/// Counts one more under this name.
pub fn increase_in(tx: &Write<'_>, name: &str) -> Result<()> {
    put_in(tx, name, &(number_in(tx, name)? + 1).to_string())
}

/// What [`put_json_in`] put under this name.
pub fn find_json_in<T: DeserializeOwned>(tx: &Read<'_>, name: &str) -> Result<Option<T>> {
    find_in(tx, name)?.map(|text| serde_json::from_str(&text).map_err(Error::internal)).transpose()
}

/// Puts a value of several parts under this name, as JSON.
pub fn put_json_in(tx: &Write<'_>, name: &str, value: &impl Serialize) -> Result<()> {
    put_in(tx, name, &serde_json::to_string(value).map_err(Error::internal)?)
}

/// The values under these two names, by one statement.
pub fn find_two_in(tx: &Read<'_>, names: [&str; 2]) -> Result<[Option<String>; 2]> {
    let sql = "select (select value from settings where name = ?1), (select value from settings where name = ?2)";
    tx.one(sql, names, |row| Ok([row.get(0)?, row.get(1)?]))
}

/// Puts a value under this name in place of any that was there.
pub fn put_in(tx: &Write<'_>, name: &str, value: &str) -> Result<()> {
    tx.execute(
        "insert into settings (name, value, updated_at) values (?1, ?2, ?3) \
         on conflict (name) do update set value = excluded.value, updated_at = excluded.updated_at",
        (name, value, tx.now.0),
    )
    .map(drop)
}

/// Takes away the value under this name.
pub fn remove_in(tx: &Write<'_>, name: &str) -> Result<()> {
    tx.execute("delete from settings where name = ?1", [name]).map(drop)
}
