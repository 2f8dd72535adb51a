//! Rows of words and allowed phrases.

use super::{
    changes::{WordChange, log_change_in, log_reload_in, state_in, version_in},
    entry::{UNTYPED, word_of},
};
use crate::{
    domain::{
        moderation::engine::{Severity, Word, normalise},
        operations::settings,
    },
    error::{Code, Error, Result},
    store::{Read, Row, RowResult, Store, Write},
    types::{PageRequest, Paginated, Timestamp},
};

const DEFAULT_WORDS: &str = include_str!("../../../../assets/words.tsv");
const DEFAULT_ALLOWED: &str = include_str!("../../../../assets/allowed-words.tsv");
const SLANG: &str = include_str!("../../../../assets/slang.tsv");
const SEEDED: &str = "words.seeded";
/// A stored word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordEntry {
    pub word: Word,
    pub created_at: Timestamp,
}

/// A query for words.
#[derive(Clone, Debug, Default)]
pub struct WordQuery {
    pub kind: Option<String>,
    pub tag: Option<String>,
    /// A part of the word, in any spelling.
    pub part: Option<String>,
}

/// The number of words of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindCount {
    pub kind: String,
    pub count: i64,
}

/// Statistics about the word list.
#[derive(Clone, Debug)]
pub struct WordListStatistics {
    pub total: i64,
    pub kinds: Vec<KindCount>,
    pub allowed_phrases: i64,
    pub version: i64,
    pub changed_at: Option<Timestamp>,
}

/// Returns true if the default list was added to the database.
pub fn are_seeded(store: &Store) -> Result<bool> {
    store.read(|tx| Ok(settings::find_in(tx, SEEDED)?.is_some()))
}

/// Adds the default list to a new database.
pub fn seed(store: &Store) -> Result<()> {
    if are_seeded(store)? {
        return Ok(());
    }
    store.write(|tx| if settings::find_in(tx, SEEDED)?.is_none() { seed_in(tx) } else { Ok(()) }).wait()
}

fn seed_in(tx: &Write<'_>) -> Result<()> {
    for line in lines(DEFAULT_WORDS) {
        let (text, kind) = line.split_once('\t').unwrap_or((line, UNTYPED));
        let (text, kind) = (text.to_owned(), kind.to_owned());
        insert_in(tx, &Word { text, kind, by_sound: true, ..Word::default() })?;
    }
    for phrase in lines(DEFAULT_ALLOWED) {
        insert_allowed_in(tx, phrase)?;
    }
    log_reload_in(tx)?;
    settings::put_in(tx, SEEDED, "true")
}

/// Adds a word. If a word with the same normal form exists, returns that word instead, as it was. With `retype` it gets
/// the type of the new one.
pub fn add_in(tx: &Write<'_>, word: &Word, retype: bool) -> Result<Option<WordEntry>> {
    let folded = normalise(&word.text);
    if insert_in(tx, word)? {
        log_change_in(tx, "added", &folded, Some(word))?;
        return Ok(None);
    }
    let listed = find_in(tx, &word.text)?;
    if retype && listed.word.kind != word.kind {
        tx.execute("update words set type = ?2 where folded = ?1", (&folded, &word.kind))?;
        log_change_in(tx, "added", &folded, Some(&Word { kind: word.kind.clone(), ..listed.word.clone() }))?;
    }
    Ok(Some(listed))
}

/// A word with its normal form.
pub struct NormalisedWord {
    folded: String,
    word: Word,
}

/// Computes normal forms and sorts the words in the order in which they are stored. Done before the transaction, which
/// blocks all other writes.
pub fn sorted_by_normal_form(words: Vec<Word>) -> Vec<NormalisedWord> {
    let normalise_word = |word: Word| NormalisedWord { folded: normalise(&word.text), word };
    let mut sorted_by_normal_form: Vec<_> = words.into_iter().map(normalise_word).collect();
    sorted_by_normal_form.sort_by(|left, right| left.folded.cmp(&right.folded));
    sorted_by_normal_form
}

/// Adds many words and returns the number of new ones. Calls `progress` with the number of processed words.
pub fn add_many_in(tx: &Write<'_>, words: &[NormalisedWord], mut progress: impl FnMut(usize)) -> Result<usize> {
    let mut added = 0;
    for (index, NormalisedWord { folded, word }) in words.iter().enumerate() {
        added += usize::from(insert_folded_in(tx, folded, word)?);
        if index % 256 == 0 {
            progress(index);
        }
    }
    if added > 0 {
        log_reload_in(tx)?;
    }
    progress(words.len());
    Ok(added)
}

/// Removes the word with the same normal form, and returns it.
///
/// # Errors
/// `not_found`.
pub fn remove_in(tx: &Write<'_>, text: &str) -> Result<WordEntry> {
    let listed = find_in(tx, text)?;
    let folded = normalise(text);
    tx.execute("delete from words where folded = ?1", [&folded])?;
    log_change_in(tx, "removed", &folded, None)?;
    Ok(listed)
}

/// Allows a phrase. Returns false if a phrase with the same normal form exists.
pub fn allow_in(tx: &Write<'_>, phrase: &str) -> Result<bool> {
    if !find_allowed_in(tx, phrase)?.is_empty() {
        return Ok(false);
    }
    insert_allowed_in(tx, phrase)?;
    log_reload_in(tx)?;
    Ok(true)
}

/// Removes an allowed phrase, in any spelling.
///
/// # Errors
/// `not_found`.
pub fn disallow_in(tx: &Write<'_>, phrase: &str) -> Result<()> {
    let found = find_allowed_in(tx, phrase)?;
    if found.is_empty() {
        return Err(Error::new(Code::NotFound)
            .detail(("This phrase is not among the allowed phrases.", "允许词组中没有此词组。")));
    }
    for stored in found {
        tx.execute("delete from allowed_phrases where phrase = ?1", [stored])?;
    }
    log_reload_in(tx)
}

/// Returns the allowed phrases with the same normal form. Compares with all phrases, because administrators add them and
/// they are few.
fn find_allowed_in(tx: &Read<'_>, phrase: &str) -> Result<Vec<String>> {
    let folded = normalise(phrase);
    Ok(allowed_in(tx)?.into_iter().filter(|stored| normalise(stored) == folded).collect())
}

/// Returns the word with the same normal form.
///
/// # Errors
/// `not_found`.
pub fn find_in(tx: &Read<'_>, text: &str) -> Result<WordEntry> {
    let sql = "select word, type, by_sound, severity, tags, content_types, created_at from words where folded = ?1";
    let found = tx.first(sql, [normalise(text)], entry_of)?;
    found.ok_or_else(|| Error::new(Code::NotFound).detail(("This word is not on the list.", "词表中没有此词。")))
}

/// Returns a page of words, ordered by normal form.
pub fn list_in(tx: &Read<'_>, query: &WordQuery, page: PageRequest) -> Result<Paginated<WordEntry>> {
    // Each filter gets its own statement, so that a type is found by its index. `replace` and not `like`, because a wildcard
    // is a plain character here.
    let part = query.part.as_ref().filter(|part| !part.is_empty());
    let of_kind = if query.kind.is_some() { "type = ?1" } else { "cast(?1 as text) is null" };
    let with_part = if part.is_some() {
        "(replace(word, ?2, '') <> word or replace(folded, ?3, '') <> folded)"
    } else {
        "cast(?2 as text) is null and cast(?3 as text) is null"
    };
    // Tags are between blanks. Like a part of a word, a tag is found by reading the words.
    let tag = query.tag.as_ref().map(|tag| format!(" {tag} "));
    let tagged = if tag.is_some() {
        "replace(' ' || tags || ' ', ?4, '') <> ' ' || tags || ' '"
    } else {
        "cast(?4 as text) is null"
    };
    let condition = format!("{of_kind} and {with_part} and {tagged}");
    // An empty normal form would match every word.
    let folded = part.map(|part| normalise(part)).filter(|folded| !folded.is_empty());
    let items = tx.all(
        &format!(
            "select word, type, by_sound, severity, tags, content_types, created_at from words where {condition} \
             order by folded limit ?5 offset ?6"
        ),
        (&query.kind, part, &folded, &tag, page.size, page.offset()),
        entry_of,
    )?;
    let count = format!("select count(*) from words where {condition}");
    Ok(Paginated { items, total: tx.one(&count, (&query.kind, part, &folded, &tag), |row| row.get(0))? })
}

/// Returns the allowed phrases.
pub fn allowed_in(tx: &Read<'_>) -> Result<Vec<String>> {
    tx.all("select phrase from allowed_phrases order by phrase", (), |row| row.get(0))
}

/// Returns the version, all words and the allowed phrases.
pub fn all_in(tx: &Read<'_>) -> Result<(i64, Vec<Word>, Vec<String>)> {
    let sql = "select word, type, by_sound, severity, tags, content_types from words order by folded";
    let words = tx.all(sql, (), |row| word_of(row, 0))?;
    Ok((version_in(tx)?, words, allowed_in(tx)?))
}

/// Returns the words of the list of slang that the stored list lacks. Texts with them are reviewed.
pub fn slang_in(tx: &Read<'_>) -> Result<Vec<Word>> {
    let mut words = Vec::new();
    // All entries have the severity `low`, and none is matched by sound.
    for line in lines(SLANG) {
        let fields: Vec<String> = line.split('\t').map(ToOwned::to_owned).collect();
        if let [text, kind, _, _, tag] = &fields[..]
            && matches!(state_in(tx, &normalise(text))?, WordChange::Removed(_))
        {
            let (text, kind, tags) = (text.clone(), kind.clone(), vec![tag.clone()]);
            words.push(Word { text, kind, tags, severity: Severity::Low, ..Word::default() });
        }
    }
    Ok(words)
}

/// Returns statistics about the word list.
pub fn statistics_in(tx: &Read<'_>) -> Result<WordListStatistics> {
    let kinds = tx.all("select type, count(*) from words group by type order by count(*) desc, type", (), |row| {
        Ok(KindCount { kind: row.get(0)?, count: row.get(1)? })
    })?;
    Ok(WordListStatistics {
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
        "insert into words (folded, word, type, by_sound, severity, tags, content_types, created_at) \
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) on conflict (folded) do nothing",
        (
            folded,
            &word.text,
            &word.kind,
            word.by_sound,
            word.severity.name(),
            word.tags.join(" "),
            word.content_types.names().join(" "),
            tx.now.0,
        ),
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

fn entry_of(row: &Row<'_>) -> RowResult<WordEntry> {
    Ok(WordEntry { word: word_of(row, 0)?, created_at: Timestamp(row.get(6)?) })
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}
