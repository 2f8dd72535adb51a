//! The change log of the word list.

use super::entry::word_of;
use crate::{
    domain::moderation::engine::Word,
    error::Result,
    store::{Read, Write},
};

/// Number of logged changes. A process that missed more reloads the whole list.
const LOGGED_CHANGES: i64 = 1_000;

/// One change of the list.
#[derive(Clone, Debug)]
pub enum WordChange {
    Added(Word),
    /// The normal form of the removed word.
    Removed(String),
}

/// The changes of the list since a version.
#[derive(Clone, Debug)]
pub enum Changes {
    None,
    /// The current version, and the changes up to it.
    Few(i64, Vec<WordChange>),
    /// Too many changes to list: the list must be reloaded.
    Many,
}

/// Returns the current version of the list.
pub fn version_in(tx: &Read<'_>) -> Result<i64> {
    tx.one("select coalesce(max(version), 0) from word_changes", (), |row| row.get(0))
}

/// Returns the changes after this version.
pub fn changes_since_in(tx: &Read<'_>, version: i64) -> Result<Changes> {
    let sql = "select version, action, folded, word, type, by_sound, severity, tags, content_types from word_changes \
         where version > ?1 order by version";
    let rows = tx.all(sql, [version], |row| {
        let change = match row.get::<String>(1)?.as_str() {
            "added" => Some(WordChange::Added(word_of(row, 3)?)),
            "removed" => Some(WordChange::Removed(row.get(2)?)),
            _ => None,
        };
        Ok((row.get::<i64>(0)?, change))
    })?;
    let (Some(first), Some(last)) = (rows.first().map(|row| row.0), rows.last().map(|row| row.0)) else {
        return Ok(Changes::None);
    };
    let is_gapless = first == version + 1 && last - version == i64::try_from(rows.len()).unwrap_or(i64::MAX);
    let changes: Option<Vec<_>> = rows.into_iter().map(|(_, change)| change).collect();
    Ok(changes.filter(|_| is_gapless).map_or(Changes::Many, |changes| Changes::Few(last, changes)))
}

/// Returns the change that leads to the current state of the word with this normal form, whatever its state was before.
pub fn state_in(tx: &Read<'_>, folded: &str) -> Result<WordChange> {
    let sql = "select word, type, by_sound, severity, tags, content_types from words where folded = ?1";
    let word = tx.first(sql, [folded], |row| word_of(row, 0))?;
    Ok(word.map_or_else(|| WordChange::Removed(folded.to_owned()), WordChange::Added))
}

pub(super) fn log_reload_in(tx: &Write<'_>) -> Result<()> {
    log_change_in(tx, "many", "", None)
}

pub(super) fn log_change_in(tx: &Write<'_>, action: &str, folded: &str, word: Option<&Word>) -> Result<()> {
    tx.execute(
        "insert into word_changes (at, action, folded, word, type, by_sound, severity, tags, content_types) \
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        (
            tx.now.0,
            action,
            folded,
            word.map(|word| &word.text),
            word.map(|word| &word.kind),
            word.map(|word| word.by_sound),
            word.map(|word| word.severity.name()),
            word.map(|word| word.tags.join(" ")),
            word.map(|word| word.content_types.names().join(" ")),
        ),
    )?;
    let oldest = version_in(tx)? - LOGGED_CHANGES;
    tx.execute("delete from word_changes where version <= ?1", [oldest]).map(drop)
}
