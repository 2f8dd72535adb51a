//! The number of the last row of an append-only table, authenticated with the server key, so that rows cannot be removed
//! from its end.
//!
//! A head that disagrees with its table is marked and stays so: a later row must not hide the removal.

use crate::{
    domain::operations::settings,
    error::Result,
    keys::ServerKey,
    store::{Read, Write},
    types::hex,
};

/// The head of an empty table.
const FIRST: i64 = 0;
/// In the place of a seal: the head disagreed with its table.
const BROKEN: &str = "broken";

/// Moves the head from the row before to the new last row.
pub fn advance_in(tx: &Write<'_>, name: &str, before: i64, last: i64) -> Result<()> {
    let head = find_in(tx, name)?;
    let is_right = head.map_or(before == FIRST, |head| head.is_at(before));
    if is_right { put_in(tx, name, last) } else { settings::put_in(tx, name, &format!("{last}:{BROKEN}")) }
}

/// Sets the head to a row, after a purge or under another key.
pub fn put_in(tx: &Write<'_>, name: &str, last: i64) -> Result<()> {
    let seal = tx.keys().map(|keys| seal(keys, name, last)).unwrap_or_default();
    settings::put_in(tx, name, &format!("{last}:{seal}"))
}

/// Returns the disagreement of the head with the last row of its table.
pub fn fault_in(tx: &Read<'_>, name: &str, last: i64) -> Result<Option<String>> {
    Ok(match find_in(tx, name)? {
        None if last == FIRST => None,
        None => Some(format!("ends with row {last}, and the number of its last row is missing")),
        Some(head) if !head.is_genuine => Some("has lost rows at its end, or its last number was changed".to_owned()),
        Some(head) if head.last != last => {
            Some(format!("ends with row {last}; the last one that was written is {}", head.last))
        }
        Some(_) => None,
    })
}

struct Head {
    last: i64,
    is_genuine: bool,
}

impl Head {
    fn is_at(&self, row: i64) -> bool {
        self.is_genuine && self.last == row
    }
}

fn find_in(tx: &Read<'_>, name: &str) -> Result<Option<Head>> {
    let Some(stored) = settings::find_in(tx, name)? else { return Ok(None) };
    let (last, found) = stored.split_once(':').unwrap_or((&stored, ""));
    let Ok(last) = last.parse() else { return Ok(Some(Head { last: FIRST, is_genuine: false })) };
    let is_genuine = found != BROKEN && tx.keys().is_none_or(|keys| seal(keys, name, last) == found);
    Ok(Some(Head { last, is_genuine }))
}

fn seal(keys: &ServerKey, name: &str, last: i64) -> String {
    hex(&keys.seal_row(&["head", name, &last.to_string()]))
}
