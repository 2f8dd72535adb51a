//! The active word list: the list of this process, compiled for matching, and its synchronisation with the stored list.
//!
//! A compiled list never changes. A small change does not wait for a new compilation: added words go into a small second
//! engine, and matches of removed words are dropped. A job recompiles the whole list once it has not changed for a moment.
//! Checks never wait for any of this, except for the first compilation of the process.

use std::{
    cmp::Reverse,
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::{Duration, Instant},
};

use super::engine::{AcquittedWord, ContentType, Engine, Match, Word, normalise};
use crate::{
    concurrency::lock::lock_unpoisoned,
    domain::moderation::words::{self, Changes, WordChange},
    error::Result,
    store::Store,
};

/// The time without changes after which the whole list is recompiled.
const SETTLE_TIME: Duration = Duration::from_millis(200);
/// The number of changed words at which the whole list is recompiled although it keeps changing.
const MAX_PATCHES: usize = 256;

/// The word list of this process.
pub struct ActiveWordList {
    store: Store,
    /// True to look for the words of the list of slang as well.
    has_slang: bool,
    active: RwLock<Option<Arc<CompiledWordList>>>,
    /// Held briefly while the list is replaced.
    replacing: Mutex<()>,
    /// Held during a compilation of the whole list, which takes long and blocks no change.
    compiling: Mutex<()>,
}

/// A compiled list. Immutable: a check keeps the list it began with.
pub struct CompiledWordList {
    version: i64,
    base: Arc<Engine>,
    allowed: Arc<[String]>,
    /// Words added since `base` was compiled, and the engine for them.
    added: Vec<Word>,
    delta: Option<Engine>,
    /// Normal forms of words that were removed, or added with another type, since `base` was compiled.
    replaced: HashSet<String>,
    changed_at: Instant,
    /// The time that compiling `base` took.
    compiled_in: Duration,
}

impl ActiveWordList {
    pub fn new(store: Store, has_slang: bool) -> Self {
        Self { store, has_slang, active: RwLock::default(), replacing: Mutex::default(), compiling: Mutex::default() }
    }

    /// Returns the current list. The first caller of the process compiles it.
    pub fn get(&self) -> Result<Arc<CompiledWordList>> {
        if let Some(list) = self.current() {
            return Ok(list);
        }
        let _compiling = lock_unpoisoned(&self.compiling);
        match self.current() {
            Some(list) => Ok(list),
            None => self.compile(),
        }
    }

    /// Returns true if the list is compiled; otherwise the next check compiles it.
    pub fn is_compiled(&self) -> bool {
        self.current().is_some()
    }

    /// Applies the changes of the stored list, made by any process. Recompiles the list if there were many.
    pub fn refresh(&self) -> Result<()> {
        if self.apply_changes()? {
            return Ok(());
        }
        let _compiling = lock_unpoisoned(&self.compiling);
        // Another thread may have compiled the list meanwhile.
        if self.apply_changes()? { Ok(()) } else { self.compile().map(drop) }
    }

    /// Applies the changes, or at least the current state of this word. A change made here is then active, and its caller
    /// does not wait, even while another thread recompiles the whole list.
    pub fn apply_change_of(&self, word: &str) -> Result<()> {
        if self.apply_changes()? {
            return Ok(());
        }
        let _changing = lock_unpoisoned(&self.replacing);
        let Some(current) = self.current() else { return Ok(()) };
        let change = self.store.read(|tx| words::state_in(tx, &normalise(word)))?;
        self.replace(current.with_changes(current.version, vec![change]));
        Ok(())
    }

    /// Applies the changes, and recompiles the list if small changes have settled. A periodic job calls it.
    pub fn refresh_and_recompile(&self) -> Result<()> {
        self.refresh()?;
        match self.current() {
            Some(current) if current.needs_recompilation() => {
                let _compiling = lock_unpoisoned(&self.compiling);
                self.compile().map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Applies the changes. Returns false if there were too many, so that the list must be recompiled.
    fn apply_changes(&self) -> Result<bool> {
        let _changing = lock_unpoisoned(&self.replacing);
        // The first check will compile the list as it is then.
        let Some(current) = self.current() else { return Ok(true) };
        match self.changes_since(&current)? {
            Changes::None => {}
            Changes::Few(version, changes) => drop(self.replace(current.with_changes(version, changes))),
            Changes::Many => return Ok(false),
        }
        Ok(true)
    }

    /// Compiles the stored list without blocking changes.
    fn compile(&self) -> Result<Arc<CompiledWordList>> {
        let fresh = CompiledWordList::compiled(&self.store, self.has_slang)?;
        let _changing = lock_unpoisoned(&self.replacing);
        let with_changes = match self.changes_since(&fresh)? {
            Changes::None => fresh,
            Changes::Few(version, changes) => fresh.with_changes(version, changes),
            // The next refresh applies the rest. Words patched so far must stay patched until then.
            Changes::Many => {
                let patches = self.current().map(|current| current.replaced.clone()).unwrap_or_default();
                let states = self.store.read(|tx| patches.iter().map(|word| words::state_in(tx, word)).collect())?;
                fresh.with_changes(fresh.version, states)
            }
        };
        Ok(self.replace(with_changes))
    }

    fn changes_since(&self, list: &CompiledWordList) -> Result<Changes> {
        self.store.read(|tx| words::changes_since_in(tx, list.version))
    }

    fn current(&self) -> Option<Arc<CompiledWordList>> {
        self.active.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn replace(&self, list: CompiledWordList) -> Arc<CompiledWordList> {
        let list = Arc::new(list);
        *self.active.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&list));
        list
    }
}

impl CompiledWordList {
    /// Loads and compiles the stored list.
    fn compiled(store: &Store, has_slang: bool) -> Result<Self> {
        let (version, words, allowed) = store.read(|tx| {
            let (version, mut words, allowed) = words::all_in(tx)?;
            if has_slang {
                words.extend(words::slang_in(tx)?);
            }
            Ok((version, words, allowed))
        })?;
        let begun = Instant::now();
        let base = Arc::new(Engine::build(&words, &allowed));
        let compiled_in = begun.elapsed();
        tracing::debug!(
            version,
            words = words.len(),
            compiled_in_ms = compiled_in.as_millis(),
            "compiled the word list"
        );
        Ok(Self {
            version,
            base,
            allowed: allowed.into(),
            added: Vec::new(),
            delta: None,
            replaced: HashSet::new(),
            changed_at: begun,
            compiled_in,
        })
    }

    /// Returns a copy with these changes.
    fn with_changes(&self, version: i64, changes: Vec<WordChange>) -> Self {
        let (mut added, mut replaced) = (self.added.clone(), self.replaced.clone());
        for change in changes {
            let folded = match &change {
                WordChange::Added(word) => normalise(&word.text),
                WordChange::Removed(folded) => folded.clone(),
            };
            added.retain(|known| normalise(&known.text) != folded);
            replaced.insert(folded);
            if let WordChange::Added(word) = change {
                added.push(word);
            }
        }
        Self {
            version,
            base: Arc::clone(&self.base),
            allowed: Arc::clone(&self.allowed),
            delta: (!added.is_empty()).then(|| Engine::build(&added, &self.allowed)),
            added,
            replaced,
            changed_at: Instant::now(),
            compiled_in: self.compiled_in,
        }
    }

    /// Returns true if there are patches, and they have settled or become many.
    fn needs_recompilation(&self) -> bool {
        let is_patched = self.delta.is_some() || !self.replaced.is_empty();
        is_patched && (self.changed_at.elapsed() >= SETTLE_TIME || self.replaced.len() > MAX_PATCHES)
    }

    /// Returns the matches in a text.
    pub fn check(&self, content_type: ContentType, text: &str) -> Vec<Match> {
        let mut found = self.base.check(content_type, text);
        if !self.replaced.is_empty() {
            // A text may have thousands of matches, but of few words.
            let words: HashSet<&str> = found.iter().map(|found| found.word.as_str()).collect();
            let replaced: HashSet<String> = words
                .into_iter()
                .filter(|word| self.replaced.contains(&normalise(word)))
                .map(ToOwned::to_owned)
                .collect();
            found.retain(|found| !replaced.contains(&found.word));
        }
        let Some(delta) = &self.delta else { return found };
        found.extend(delta.check(content_type, text));
        let place = |found: &Match| (found.start, Reverse(found.end));
        found.sort_by(|left, right| place(left).cmp(&place(right)).then_with(|| left.word.cmp(&right.word)));
        found
    }

    /// Returns the listed words that a text seems to have, and that the words around them acquit.
    pub fn acquitted(&self, content_type: ContentType, text: &str) -> Vec<AcquittedWord> {
        let engines = std::iter::once(&*self.base).chain(&self.delta);
        let found = engines.flat_map(|engine| engine.acquitted(content_type, text));
        found.filter(|found| !self.replaced.contains(&normalise(&found.word)) || self.is_added(&found.word)).collect()
    }

    fn is_added(&self, word: &str) -> bool {
        self.added.iter().any(|added| added.text == word)
    }

    /// Drops matches of other detectors that lie in an allowed phrase.
    pub fn drop_allowed(&self, text: &str, found: &mut Vec<Match>) {
        self.base.drop_allowed_matches(text, found);
    }

    /// Returns the version of the stored list.
    pub fn version(&self) -> i64 {
        self.version
    }

    /// Returns the approximate size on the heap, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.base.memory_bytes() + self.delta.as_ref().map_or(0, Engine::memory_bytes)
    }

    /// Returns the time that compiling the list took.
    pub fn compiled_in(&self) -> Duration {
        self.compiled_in
    }
}
