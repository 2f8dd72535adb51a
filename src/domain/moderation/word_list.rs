//! Operations on the word list. A change is stored and active in this process when the operation returns.
//!
//! They block on the disk and on the update of the active list; nothing else waits for them.

use super::{
    adviser::{self, WordAdvice},
    engine::{ContentType, Word, contacts, normalise},
    phrase_warning::PhraseWarning,
    service::Moderation,
};
use crate::{
    core::Core,
    domain::moderation::words::{self, WordEntry, WordListStatistics, WordQuery},
    error::{Code, Error, Result},
    types::{PageRequest, Paginated},
};

/// An added word, or the equal word that was listed already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedWord {
    pub word: Word,
    pub is_new: bool,
    /// True for a listed word that got another type.
    pub is_retyped: bool,
}

/// The result of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImportResult {
    pub added: usize,
    /// Words that were listed already; they keep their types.
    pub existing: usize,
}

/// Applies changes of the stored list to the active one.
///
/// # Errors
/// Storage errors.
pub fn refresh(moderation: &Moderation) -> Result<()> {
    moderation.word_list.refresh()
}

/// Adds a word. If a listed word has the same normal form, returns that word instead, with `retype` in the type of the
/// new one.
///
/// # Errors
/// `invalid_parameters` for an invalid word; see [`words::check`].
pub fn add(moderation: &Moderation, word: Word, retype: bool, force: bool) -> Result<AddedWord> {
    words::check(&word.text, moderation.core.config.limits.word as usize, force)
        .map_err(|fault| Error::field("word", fault))?;
    let stored = word.clone();
    let existing = moderation.core.store.write(move |tx| words::add_in(tx, &stored, retype)).wait()?;
    moderation.word_list.apply_change_of(&word.text)?;
    Ok(match existing {
        None => AddedWord { word, is_new: true, is_retyped: false },
        Some(listed) if retype && listed.word.kind != word.kind => {
            AddedWord { word: Word { kind: word.kind, ..listed.word }, is_new: false, is_retyped: true }
        }
        Some(listed) => AddedWord { word: listed.word, is_new: false, is_retyped: false },
    })
}

/// Removes the word with the same normal form, and returns it.
///
/// # Errors
/// `not_found`.
pub fn remove(moderation: &Moderation, text: String) -> Result<WordEntry> {
    let removed = moderation.core.store.write(move |tx| words::remove_in(tx, &text)).wait()?;
    moderation.word_list.apply_change_of(&removed.word.text)?;
    Ok(removed)
}

/// Adds all these words or none. Calls `progress` with the number of stored words, from the writer's thread.
pub fn import(
    moderation: &Moderation,
    words: Vec<Word>,
    mut progress: impl FnMut(usize) + Send + 'static,
) -> Result<ImportResult> {
    let total = words.len();
    let words = words::sorted_by_normal_form(words);
    let added = moderation.core.store.write(move |tx| words::add_many_in(tx, &words, &mut progress)).wait()?;
    moderation.word_list.refresh()?;
    Ok(ImportResult { added, existing: total - added })
}

/// The choices of an advised import.
#[derive(Clone, Copy, Debug)]
pub struct WordChoice {
    /// Leaves out words that would reject innocent texts.
    pub skip_warned: bool,
    /// Changes nothing.
    pub dry_run: bool,
}

/// The result of an import with the advice about its words.
#[derive(Clone, Debug)]
pub struct AdvisedImport {
    /// Words without those that were left out.
    pub words: usize,
    /// The words added, or those that a dry run would add.
    pub result: ImportResult,
    /// The words that a dry run would add.
    pub new: Vec<String>,
    /// The words that would reject innocent texts, whether left out or not.
    pub warnings: Vec<WordAdvice>,
}

/// Imports words after advice about them. See [`import`].
///
/// # Errors
/// Storage errors.
pub fn import_advised(
    moderation: &Moderation,
    mut words: Vec<Word>,
    choice: WordChoice,
    progress: impl FnMut(usize) + Send + 'static,
) -> Result<AdvisedImport> {
    let advice = adviser::advise(&moderation.core, &words)?;
    if choice.skip_warned {
        let mut advised = advice.iter();
        words.retain(|_| advised.next().is_none_or(|advice| !advice.is_warning()));
    }
    let warnings = advice.into_iter().filter(WordAdvice::is_warning).collect();
    let count = words.len();
    let (result, new) = if choice.dry_run {
        let (new, existing) = preview_import(&moderation.core, words)?;
        (ImportResult { added: new.len(), existing }, new)
    } else {
        (import(moderation, words, progress)?, Vec::new())
    };
    Ok(AdvisedImport { words: count, result, new, warnings })
}

/// Returns the words that an import would add, and the number of those that are listed already.
///
/// # Errors
/// Storage errors.
fn preview_import(core: &Core, words: Vec<Word>) -> Result<(Vec<String>, usize)> {
    core.store.read(|tx| {
        let (mut new, mut existing) = (Vec::new(), 0);
        for word in words {
            match words::find_in(tx, &word.text) {
                Ok(_) => existing += 1,
                Err(error) if error.code == Code::NotFound => new.push(word.text),
                Err(error) => return Err(error),
            }
        }
        Ok((new, existing))
    })
}

/// An allowed phrase.
#[derive(Clone, Copy, Debug)]
pub struct AllowedPhrase {
    /// False if it was allowed before.
    pub is_new: bool,
    pub warning: Option<PhraseWarning>,
}

/// Allows a phrase: a listed word or a contact inside it is no match.
///
/// # Errors
/// `invalid_parameters` for an invalid phrase; see [`words::check_phrase`].
pub fn allow(moderation: &Moderation, phrase: String) -> Result<AllowedPhrase> {
    words::check_phrase(&phrase, moderation.core.config.limits.word as usize)
        .map_err(|fault| Error::field("phrase", fault))?;
    let warning = warning_of(moderation, &phrase)?;
    let is_new = moderation.core.store.write(move |tx| words::allow_in(tx, &phrase)).wait()?;
    moderation.word_list.refresh()?;
    Ok(AllowedPhrase { is_new, warning: warning.filter(|_| is_new) })
}

/// Compares a phrase with the list. Nicknames are checked most strictly.
pub(super) fn warning_of(moderation: &Moderation, phrase: &str) -> Result<Option<PhraseWarning>> {
    let list = moderation.word_list.get()?;
    let found = ContentType::ALL.into_iter().flat_map(|content_type| list.check(content_type, phrase));
    let found: Vec<_> = found.chain(contacts(phrase)).collect();
    let form = normalise(phrase);
    if found.iter().any(|found| normalise(&found.text) == form && normalise(&found.word) == form) {
        return Ok(Some(PhraseWarning::SwitchesOffWord));
    }
    Ok(found.is_empty().then_some(PhraseWarning::ContainsNoWord))
}

/// Removes an allowed phrase.
///
/// # Errors
/// `not_found`.
pub fn disallow(moderation: &Moderation, phrase: String) -> Result<()> {
    moderation.core.store.write(move |tx| words::disallow_in(tx, &phrase)).wait()?;
    moderation.word_list.refresh()
}

pub fn list(core: &Core, query: &WordQuery, page: PageRequest) -> Result<Paginated<WordEntry>> {
    core.store.read(|tx| words::list_in(tx, query, page))
}

pub fn allowed_phrases(core: &Core) -> Result<Vec<String>> {
    core.store.read(words::allowed_in)
}

/// Returns all words, for an export.
pub fn all(core: &Core) -> Result<Vec<Word>> {
    core.store.read(|tx| words::all_in(tx).map(|(_, words, _)| words))
}

pub fn statistics(core: &Core) -> Result<WordListStatistics> {
    core.store.read(words::statistics_in)
}
