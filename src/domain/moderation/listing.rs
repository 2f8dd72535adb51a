//! Changes of the word list: a change is on disk and active in this process before the response is sent.
//!
//! These operations block until the write is durable and the list has been updated; screening never waits for them.

use super::{Moderation, engine::Word};
use crate::{
    core::Core,
    domain::moderation::words::{self, Filter, Listed, Statistics},
    error::{Error, Result},
    types::{Listing, Page},
};

/// A word on the list, and whether it is new there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Added {
    pub word: String,
    pub kind: String,
    pub is_new: bool,
}

/// The outcome of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Imported {
    pub added: usize,
    /// Words that were on the list already, under their own types.
    pub existing: usize,
}

/// Adds a word. One that is compared as a listed word is listed already, as that.
///
/// # Errors
/// `invalid_parameters` for what cannot be a word; see [`words::check`].
pub fn add(moderation: &Moderation, word: Word, force: bool) -> Result<Added> {
    words::check(&word.text, moderation.core.config.limits.word as usize, force)
        .map_err(|fault| Error::field("word", fault))?;
    let asked = word.clone();
    let existing = moderation.core.store.write(move |tx| words::add_in(tx, &word)).wait()?;
    moderation.screen.take_up(&asked.text)?;
    Ok(match existing {
        None => Added { word: asked.text, kind: asked.kind, is_new: true },
        Some(listed) => Added { word: listed.word, kind: listed.kind, is_new: false },
    })
}

/// Removes the word that is compared as this one, and answers it.
///
/// # Errors
/// `not_found`.
pub fn remove(moderation: &Moderation, text: String) -> Result<Listed> {
    let removed = moderation.core.store.write(move |tx| words::remove_in(tx, &text)).wait()?;
    moderation.screen.take_up(&removed.word)?;
    Ok(removed)
}

/// Adds all these words or none. Calls `progress` with how many are done, from the writer's thread.
pub fn import(
    moderation: &Moderation,
    words: Vec<Word>,
    mut progress: impl FnMut(usize) + Send + 'static,
) -> Result<Imported> {
    let total = words.len();
    let words = words::prepared(words);
    let added = moderation.core.store.write(move |tx| words::add_many_in(tx, &words, &mut progress)).wait()?;
    moderation.screen.catch_up()?;
    Ok(Imported { added, existing: total - added })
}

/// Allows a phrase: a listed word inside of it is no match. False if it was allowed before.
pub fn allow(moderation: &Moderation, phrase: String) -> Result<bool> {
    words::check(&phrase, moderation.core.config.limits.word as usize, true)
        .map_err(|fault| Error::field("phrase", fault))?;
    let is_new = moderation.core.store.write(move |tx| words::allow_in(tx, &phrase)).wait()?;
    moderation.screen.catch_up()?;
    Ok(is_new)
}

/// Takes an allowed phrase back.
///
/// # Errors
/// `not_found`.
pub fn disallow(moderation: &Moderation, phrase: String) -> Result<()> {
    moderation.core.store.write(move |tx| words::disallow_in(tx, &phrase)).wait()?;
    moderation.screen.catch_up()
}

pub fn list(core: &Core, filter: &Filter, page: Page) -> Result<Listing<Listed>> {
    core.store.read(|tx| words::list_in(tx, filter, page))
}

pub fn allowed(core: &Core) -> Result<Vec<String>> {
    core.store.read(words::allowed_in)
}

/// All words, for an export.
pub fn all(core: &Core) -> Result<Vec<Word>> {
    core.store.read(|tx| words::all_in(tx).map(|(_, words, _)| words))
}

pub fn statistics(core: &Core) -> Result<Statistics> {
    core.store.read(words::statistics_in)
}
