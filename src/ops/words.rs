//! The local word list of content moderation, and the phrases that are innocent although they contain a listed word.
//!
//! A new database is given the default list once; from then on the table alone counts, so that a default word which
//! was removed stays removed.

use crate::{
    error::Result,
    ops::{
        moderation::engine::{Word, normalise},
        settings,
    },
    store::{Read, Store, Write},
};

const DEFAULT_WORDS: &str = include_str!("../../assets/words.tsv");
const DEFAULT_ALLOWED: &str = include_str!("../../assets/allowed-words.tsv");
const SEEDED: &str = "words.seeded";

/// Gives a new database the default list.
pub fn seed(store: &Store) -> Result<()> {
    if store.read(|tx| settings::find_in(tx, SEEDED))?.is_some() {
        return Ok(());
    }
    store.write(|tx| if settings::find_in(tx, SEEDED)?.is_none() { seed_in(tx) } else { Ok(()) }).wait()
}

fn seed_in(tx: &Write<'_>) -> Result<()> {
    for line in lines(DEFAULT_WORDS) {
        let (word, kind) = line.split_once('\t').unwrap_or((line, "other"));
        add_in(tx, word, kind)?;
    }
    for phrase in lines(DEFAULT_ALLOWED) {
        tx.execute(
            "insert into allowed_phrases (phrase, created_at) values (?1, ?2) on conflict (phrase) do nothing",
            (phrase, tx.now.0),
        )?;
    }
    settings::put_in(tx, SEEDED, "true")
}

/// Adds a word unless one that folds alike is listed; true if it was added.
pub fn add_in(tx: &Write<'_>, word: &str, kind: &str) -> Result<bool> {
    let added = tx.execute(
        "insert into words (folded, word, type, created_at) values (?1, ?2, ?3, ?4) on conflict (folded) do nothing",
        (normalise(word), word, kind, tx.now.0),
    )?;
    Ok(added > 0)
}

/// The whole list and the allowed phrases.
pub fn all_in(tx: &Read<'_>) -> Result<(Vec<Word>, Vec<String>)> {
    let words = tx.all("select word, type from words order by folded", [], |row| {
        Ok(Word { text: row.get(0)?, kind: row.get(1)? })
    })?;
    let allowed = tx.all("select phrase from allowed_phrases order by phrase", [], |row| row.get(0))?;
    Ok((words, allowed))
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}
