//! The local word list, and the allowed phrases that contain a listed word but are innocent.
//!
//! Words are stored with their comparison form, so that no two are equivalent. Every change has a number, the list's
//! version, by which other processes notice it; small changes are recorded one by one, so that a process need not
//! reload a hundred thousand words for one. A new database gets the default list once. Afterwards only the table
//! counts, so a removed default word stays removed.

mod file;

use crate::{
    domain::{
        moderation::engine::{Word, normalise},
        operations::settings,
    },
    error::{Code, Error, Fault, FieldCode, Result},
    store::{Read, Row, Store, Write},
    types::{Listing, Page, Timestamp},
};

pub use file::{Entry, HEADING, Skipped, parse, quoted, written};

/// The type of a word that was given none.
pub const UNTYPED: &str = "other";

const DEFAULT_WORDS: &str = include_str!("../../../../assets/words.tsv");
const DEFAULT_ALLOWED: &str = include_str!("../../../../assets/allowed-words.tsv");
const SEEDED: &str = "words.seeded";
/// Number of changes recorded one by one. A process that missed more reloads the whole list.
const REMEMBERED: i64 = 1_000;

/// A stored word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub word: String,
    pub kind: String,
    pub by_sound: bool,
    pub created_at: Timestamp,
}

/// Filters for words.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub kind: Option<String>,
    /// A part of the word, in whichever spelling.
    pub part: Option<String>,
}

/// The number of words of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfKind {
    pub kind: String,
    pub count: i64,
}

/// The list in figures.
#[derive(Clone, Debug)]
pub struct Statistics {
    pub total: i64,
    pub kinds: Vec<OfKind>,
    pub allowed_phrases: i64,
    pub version: i64,
    pub changed_at: Option<Timestamp>,
}

/// One change of the list.
#[derive(Clone, Debug)]
pub enum Change {
    Added(Word),
    /// Comparison form of the removed word.
    Removed(String),
}

/// Changes of the list since a version.
#[derive(Clone, Debug)]
pub enum Changes {
    Nothing,
    /// The list's version now, and what led to it.
    Few(i64, Vec<Change>),
    /// Too many changes: reload the list.
    Many,
}

/// Returns true if the default list was inserted.
pub fn are_seeded(store: &Store) -> Result<bool> {
    store.read(|tx| Ok(settings::find_in(tx, SEEDED)?.is_some()))
}

/// Gives a new database the default list.
pub fn seed(store: &Store) -> Result<()> {
    if are_seeded(store)? {
        return Ok(());
    }
    store.write(|tx| if settings::find_in(tx, SEEDED)?.is_none() { seed_in(tx) } else { Ok(()) }).wait()
}

fn seed_in(tx: &Write<'_>) -> Result<()> {
    for line in lines(DEFAULT_WORDS) {
        let (text, kind) = line.split_once('\t').unwrap_or((line, UNTYPED));
        insert_in(tx, &Word { text: text.to_owned(), kind: kind.to_owned(), by_sound: true })?;
    }
    for phrase in lines(DEFAULT_ALLOWED) {
        insert_allowed_in(tx, phrase)?;
    }
    note_many_in(tx)?;
    settings::put_in(tx, SEEDED, "true")
}

/// Checks that a text can be listed: one line, with letters or digits, more than one of them unless `force` is set, and
/// at most `longest` characters.
///
/// # Errors
/// The fault of the text.
pub fn check(text: &str, longest: usize, force: bool) -> Result<(), Fault> {
    if text.chars().count() > longest {
        return Err(Fault::new(FieldCode::TooLong, format!("must be at most {longest} characters long")));
    }
    if text.contains(['\n', '\r']) {
        return Err(Fault::new(FieldCode::InvalidCharacter, "must stand on one line"));
    }
    match normalise(text).chars().filter(|character| !character.is_whitespace()).count() {
        0 => Err(Fault::new(FieldCode::InvalidFormat, "must have a letter or a digit")),
        1 if !force => {
            Err(Fault::new(FieldCode::TooShort, "must have two letters: one alone would refuse nearly every text"))
        }
        _ => Ok(()),
    }
}

/// Adds a word unless one that is compared alike is listed, which is then the answer.
pub fn add_in(tx: &Write<'_>, word: &Word) -> Result<Option<Listed>> {
    if insert_in(tx, word)? {
        note_in(tx, "added", &normalise(&word.text), Some(word))?;
        return Ok(None);
    }
    find_in(tx, &word.text).map(Some)
}

/// A word with what it is compared as.
pub struct Prepared {
    folded: String,
    word: Word,
}

/// Prepares and sorts words outside the transaction, because other writes wait while many words are added.
pub fn prepared(words: Vec<Word>) -> Vec<Prepared> {
    let prepare = |word: Word| Prepared { folded: normalise(&word.text), word };
    let mut prepared: Vec<_> = words.into_iter().map(prepare).collect();
    prepared.sort_by(|left, right| left.folded.cmp(&right.folded));
    prepared
}

/// Adds many words and returns how many were new. Calls `progress` with the number done.
pub fn add_many_in(tx: &Write<'_>, words: &[Prepared], mut progress: impl FnMut(usize)) -> Result<usize> {
    let mut added = 0;
    for (index, Prepared { folded, word }) in words.iter().enumerate() {
        added += usize::from(insert_folded_in(tx, folded, word)?);
        if index % 256 == 0 {
            progress(index);
        }
    }
    if added > 0 {
        note_many_in(tx)?;
    }
    progress(words.len());
    Ok(added)
}

/// Removes the word that is compared as this one, and answers it.
///
/// # Errors
/// `not_found`.
pub fn remove_in(tx: &Write<'_>, text: &str) -> Result<Listed> {
    let listed = find_in(tx, text)?;
    let folded = normalise(text);
    tx.execute("delete from words where folded = ?1", [&folded])?;
    note_in(tx, "removed", &folded, None)?;
    Ok(listed)
}

/// Allows a phrase; false if one that is compared alike was allowed before.
pub fn allow_in(tx: &Write<'_>, phrase: &str) -> Result<bool> {
    if !allowed_alike_in(tx, phrase)?.is_empty() {
        return Ok(false);
    }
    insert_allowed_in(tx, phrase)?;
    note_many_in(tx)?;
    Ok(true)
}

/// Takes an allowed phrase back, in whichever spelling.
///
/// # Errors
/// `not_found`.
pub fn disallow_in(tx: &Write<'_>, phrase: &str) -> Result<()> {
    let alike = allowed_alike_in(tx, phrase)?;
    if alike.is_empty() {
        return Err(Error::new(Code::NotFound).detail("This phrase is not allowed anyway."));
    }
    for known in alike {
        tx.execute("delete from allowed_phrases where phrase = ?1", [known])?;
    }
    note_many_in(tx)
}

/// Returns the allowed phrases with the same comparison form. Scans all of them; they are few.
fn allowed_alike_in(tx: &Read<'_>, phrase: &str) -> Result<Vec<String>> {
    let folded = normalise(phrase);
    Ok(allowed_in(tx)?.into_iter().filter(|known| normalise(known) == folded).collect())
}

/// The listed word that is compared as this text.
///
/// # Errors
/// `not_found`.
pub fn find_in(tx: &Read<'_>, text: &str) -> Result<Listed> {
    let sql = "select word, type, by_sound, created_at from words where folded = ?1";
    let found = tx.first(sql, [normalise(text)], listed_of)?;
    found.ok_or_else(|| Error::new(Code::NotFound).detail("This word is not on the list."))
}

/// Words in their own order.
pub fn list_in(tx: &Read<'_>, filter: &Filter, page: Page) -> Result<Listing<Listed>> {
    // Each filter has a statement of its own, so that a type is found by its index. `instr` and not `like`: a
    // wildcard is a plain character.
    let condition = match (&filter.kind, &filter.part) {
        (None, None) => "?1 is null and ?2 is null and ?3 is null",
        (Some(_), None) => "type = ?1 and ?2 is null and ?3 is null",
        (None, Some(_)) => "?1 is null and (instr(word, ?2) > 0 or instr(folded, ?3) > 0)",
        (Some(_), Some(_)) => "type = ?1 and (instr(word, ?2) > 0 or instr(folded, ?3) > 0)",
    };
    // An empty filter would match everything.
    let folded = filter.part.as_deref().map(normalise).filter(|folded| !folded.is_empty());
    let items = tx.all(
        &format!(
            "select word, type, by_sound, created_at from words where {condition} order by folded limit ?4 offset ?5"
        ),
        (&filter.kind, &filter.part, &folded, page.size, page.offset()),
        listed_of,
    )?;
    let count = format!("select count(*) from words where {condition}");
    Ok(Listing { items, total: tx.one(&count, (&filter.kind, &filter.part, &folded), |row| row.get(0))? })
}

/// The allowed phrases.
pub fn allowed_in(tx: &Read<'_>) -> Result<Vec<String>> {
    tx.all("select phrase from allowed_phrases order by phrase", [], |row| row.get(0))
}

/// The whole list with its version, and the allowed phrases.
pub fn all_in(tx: &Read<'_>) -> Result<(i64, Vec<Word>, Vec<String>)> {
    let words = tx.all("select word, type, by_sound from words order by folded", [], |row| {
        Ok(Word { text: row.get(0)?, kind: row.get(1)?, by_sound: row.get(2)? })
    })?;
    Ok((version_in(tx)?, words, allowed_in(tx)?))
}

/// The number of the list's last change.
pub fn version_in(tx: &Read<'_>) -> Result<i64> {
    tx.one("select coalesce(max(version), 0) from word_changes", (), |row| row.get(0))
}

/// Returns the changes after this version.
pub fn changes_since_in(tx: &Read<'_>, version: i64) -> Result<Changes> {
    let sql =
        "select version, action, folded, word, type, by_sound from word_changes where version > ?1 order by version";
    let rows = tx.all(sql, [version], |row| {
        let change = match row.get::<String>(1)?.as_str() {
            "added" => Some(Change::Added(Word { text: row.get(3)?, kind: row.get(4)?, by_sound: row.get(5)? })),
            "removed" => Some(Change::Removed(row.get(2)?)),
            _ => None,
        };
        Ok((row.get::<i64>(0)?, change))
    })?;
    let (Some(first), Some(last)) = (rows.first().map(|row| row.0), rows.last().map(|row| row.0)) else {
        return Ok(Changes::Nothing);
    };
    let is_gapless = first == version + 1 && last - version == i64::try_from(rows.len()).unwrap_or(i64::MAX);
    let changes: Option<Vec<_>> = rows.into_iter().map(|(_, change)| change).collect();
    Ok(changes.filter(|_| is_gapless).map_or(Changes::Many, |changes| Changes::Few(last, changes)))
}

/// Returns the change that leads to the current state of the word with this comparison form.
pub fn state_in(tx: &Read<'_>, folded: &str) -> Result<Change> {
    let sql = "select word, type, by_sound from words where folded = ?1";
    let word =
        tx.first(sql, [folded], |row| Ok(Word { text: row.get(0)?, kind: row.get(1)?, by_sound: row.get(2)? }))?;
    Ok(word.map_or_else(|| Change::Removed(folded.to_owned()), Change::Added))
}

/// The list in figures.
pub fn statistics_in(tx: &Read<'_>) -> Result<Statistics> {
    let kinds = tx.all("select type, count(*) from words group by type order by count(*) desc, type", (), |row| {
        Ok(OfKind { kind: row.get(0)?, count: row.get(1)? })
    })?;
    Ok(Statistics {
        total: kinds.iter().map(|kind| kind.count).sum(),
        kinds,
        allowed_phrases: tx.one("select count(*) from allowed_phrases", (), |row| row.get(0))?,
        version: version_in(tx)?,
        changed_at: tx
            .first("select at from word_changes order by version desc limit 1", (), |row| row.get(0))?
            .map(Timestamp),
    })
}

fn insert_in(tx: &Write<'_>, word: &Word) -> Result<bool> {
    insert_folded_in(tx, &normalise(&word.text), word)
}

fn insert_folded_in(tx: &Write<'_>, folded: &str, word: &Word) -> Result<bool> {
    let added = tx.execute(
        "insert into words (folded, word, type, by_sound, created_at) values (?1, ?2, ?3, ?4, ?5) \
         on conflict (folded) do nothing",
        (folded, &word.text, &word.kind, word.by_sound, tx.now.0),
    )?;
    Ok(added > 0)
}

fn insert_allowed_in(tx: &Write<'_>, phrase: &str) -> Result<()> {
    tx.execute(
        "insert into allowed_phrases (phrase, created_at) values (?1, ?2) on conflict (phrase) do nothing",
        (phrase, tx.now.0),
    )
    .map(drop)
}

fn note_many_in(tx: &Write<'_>) -> Result<()> {
    note_in(tx, "many", "", None)
}

fn note_in(tx: &Write<'_>, action: &str, folded: &str, word: Option<&Word>) -> Result<()> {
    tx.execute(
        "insert into word_changes (at, action, folded, word, type, by_sound) values (?1, ?2, ?3, ?4, ?5, ?6)",
        (
            tx.now.0,
            action,
            folded,
            word.map(|word| &word.text),
            word.map(|word| &word.kind),
            word.map(|word| word.by_sound),
        ),
    )?;
    let oldest = version_in(tx)? - REMEMBERED;
    tx.execute("delete from word_changes where version <= ?1", [oldest]).map(drop)
}

fn listed_of(row: &Row<'_>) -> rusqlite::Result<Listed> {
    Ok(Listed { word: row.get(0)?, kind: row.get(1)?, by_sound: row.get(2)?, created_at: Timestamp(row.get(3)?) })
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}
