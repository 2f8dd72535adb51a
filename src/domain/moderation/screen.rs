//! The compiled word list of this process, and its synchronisation with the stored one.
//!
//! The list is compiled into an immutable engine. A small change does not wait for a new one: added words go into a
//! small engine beside it, and removed ones are filtered from its matches. A job recompiles the whole list once nothing
//! has changed for a moment. Screening uses the current list and never waits, except for the very first text, which has
//! the list compiled.

use std::{
    cmp::Reverse,
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::{Duration, Instant},
};

use super::engine::{ContentType, Engine, Match, Verdict, Word, normalise};
use crate::{
    concurrency::lock::lock_unpoisoned,
    domain::moderation::words::{self, Change, Changes},
    error::Result,
    store::Store,
};

/// Time without changes before the whole list is recompiled.
const QUIET: Duration = Duration::from_millis(200);
/// Number of changed words after which the whole list is recompiled even if changes continue.
const MOST_PATCHES: usize = 256;

/// The list of this process.
pub struct Screen {
    store: Store,
    in_force: RwLock<Option<Arc<InForce>>>,
    /// Held briefly while another list becomes active.
    changing: Mutex<()>,
    /// Held while the whole list is compiled, which is slow and blocks nothing else.
    compiling: Mutex<()>,
}

/// An active list. Immutable; a text keeps its list while it is screened.
pub struct InForce {
    version: i64,
    base: Arc<Engine>,
    allowed: Arc<[String]>,
    /// Words added since the base was compiled, and the engine for them.
    added: Vec<Word>,
    delta: Option<Engine>,
    /// Comparison forms of words that were removed, or added again with another type.
    removed: HashSet<String>,
    changed_at: Instant,
    /// Time taken to compile the base.
    compiled_in: Duration,
}

impl Screen {
    pub fn new(store: Store) -> Self {
        Self { store, in_force: RwLock::default(), changing: Mutex::default(), compiling: Mutex::default() }
    }

    /// The list as it is now. The first caller of a process reads and compiles it.
    pub fn in_force(&self) -> Result<Arc<InForce>> {
        if let Some(in_force) = self.peek() {
            return Ok(in_force);
        }
        let _compiling = lock_unpoisoned(&self.compiling);
        match self.peek() {
            Some(in_force) => Ok(in_force),
            None => self.compile(),
        }
    }

    /// Returns true if the list is compiled; otherwise the next text waits for it.
    pub fn is_compiled(&self) -> bool {
        self.peek().is_some()
    }

    /// Takes up what has changed in the stored list, by whichever process. Compiles the whole list if that was much.
    pub fn catch_up(&self) -> Result<()> {
        if self.take_up_few()? {
            return Ok(());
        }
        let _compiling = lock_unpoisoned(&self.compiling);
        // An earlier compilation may have read all changes.
        if self.take_up_few()? { Ok(()) } else { self.compile().map(drop) }
    }

    /// Applies all changes, or at least the current state of this word: while the whole list is being compiled, a
    /// change made here becomes active without waiting for it.
    pub fn take_up(&self, word: &str) -> Result<()> {
        if self.take_up_few()? {
            return Ok(());
        }
        let _changing = lock_unpoisoned(&self.changing);
        let Some(current) = self.peek() else { return Ok(()) };
        let change = self.store.read(|tx| words::state_in(tx, &normalise(word)))?;
        self.put(current.changed(current.version, vec![change]));
        Ok(())
    }

    /// Takes up what has changed, and compiles the whole list again if there were small changes and they have ceased.
    /// For a job.
    pub fn keep_up(&self) -> Result<()> {
        self.catch_up()?;
        match self.peek() {
            Some(current) if current.is_to_be_compiled() => {
                let _compiling = lock_unpoisoned(&self.compiling);
                self.compile().map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Takes up what has changed. False if that was so much that the whole list has to be compiled.
    fn take_up_few(&self) -> Result<bool> {
        let _changing = lock_unpoisoned(&self.changing);
        // The first text will read the list as it is then.
        let Some(current) = self.peek() else { return Ok(true) };
        match self.changes_since(&current)? {
            Changes::Nothing => {}
            Changes::Few(version, changes) => drop(self.put(current.changed(version, changes))),
            Changes::Many => return Ok(false),
        }
        Ok(true)
    }

    /// Compiles the stored list without blocking concurrent changes.
    fn compile(&self) -> Result<Arc<InForce>> {
        let fresh = InForce::compiled(&self.store)?;
        let _changing = lock_unpoisoned(&self.changing);
        let changed = match self.changes_since(&fresh)? {
            Changes::Nothing => fresh,
            Changes::Few(version, changes) => fresh.changed(version, changes),
            // The next update applies the rest. Changes that are active must stay active until then.
            Changes::Many => {
                let patches = self.peek().map(|current| current.removed.clone()).unwrap_or_default();
                let states = self.store.read(|tx| patches.iter().map(|word| words::state_in(tx, word)).collect())?;
                fresh.changed(fresh.version, states)
            }
        };
        Ok(self.put(changed))
    }

    fn changes_since(&self, list: &InForce) -> Result<Changes> {
        self.store.read(|tx| words::changes_since_in(tx, list.version))
    }

    fn peek(&self) -> Option<Arc<InForce>> {
        self.in_force.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn put(&self, list: InForce) -> Arc<InForce> {
        let list = Arc::new(list);
        *self.in_force.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&list));
        list
    }
}

impl InForce {
    /// Reads and compiles the stored list.
    fn compiled(store: &Store) -> Result<Self> {
        let (version, words, allowed) = store.read(words::all_in)?;
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
            removed: HashSet::new(),
            changed_at: begun,
            compiled_in,
        })
    }

    /// Returns this list with the changes applied.
    fn changed(&self, version: i64, changes: Vec<Change>) -> Self {
        let (mut added, mut removed) = (self.added.clone(), self.removed.clone());
        for change in changes {
            let folded = match &change {
                Change::Added(word) => normalise(&word.text),
                Change::Removed(folded) => folded.clone(),
            };
            added.retain(|known| normalise(&known.text) != folded);
            removed.insert(folded);
            if let Change::Added(word) = change {
                added.push(word);
            }
        }
        Self {
            version,
            base: Arc::clone(&self.base),
            allowed: Arc::clone(&self.allowed),
            delta: (!added.is_empty()).then(|| Engine::build(&added, &self.allowed)),
            added,
            removed,
            changed_at: Instant::now(),
            compiled_in: self.compiled_in,
        }
    }

    /// Returns true if there were small changes and they have ceased or become many.
    fn is_to_be_compiled(&self) -> bool {
        let is_patched = self.delta.is_some() || !self.removed.is_empty();
        is_patched && (self.changed_at.elapsed() >= QUIET || self.removed.len() > MOST_PATCHES)
    }

    /// Screens a text.
    pub fn check(&self, content_type: ContentType, text: &str) -> Verdict {
        let mut found = self.base.check(content_type, text).matches;
        if !self.removed.is_empty() {
            found.retain(|found| !self.removed.contains(&normalise(&found.word)));
        }
        let Some(delta) = &self.delta else { return Verdict { matches: found } };
        found.extend(delta.check(content_type, text).matches);
        let place = |found: &Match| (found.start, Reverse(found.end));
        found.sort_by(|left, right| place(left).cmp(&place(right)).then_with(|| left.word.cmp(&right.word)));
        Verdict { matches: found }
    }

    /// The version of the stored list that this is.
    pub fn version(&self) -> i64 {
        self.version
    }

    /// Bytes on the heap, about.
    pub fn memory_bytes(&self) -> usize {
        self.base.memory_bytes() + self.delta.as_ref().map_or(0, Engine::memory_bytes)
    }

    /// Returns the time taken to compile the list.
    pub fn compiled_in(&self) -> Duration {
        self.compiled_in
    }
}
