//! The word list that is in force in this process, ready to match, and how it follows the stored one.
//!
//! The list is compiled into an engine that never changes. A small change does not wait for a new one: added words go
//! into a small engine beside it, removed ones are struck from what it finds, and a job compiles the whole list again
//! once nothing has changed for a moment. Whoever screens a text takes the list as it is and never waits for any of
//! this, but for the first of all, who has it compiled.

use std::{
    cmp::Reverse,
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::{Duration, Instant},
};

use super::engine::{ContentType, Engine, Match, Verdict, Word, normalise};
use crate::{
    error::Result,
    ops::words::{self, Change, Changes},
    store::Store,
};

/// How long nothing must have changed before the whole list is compiled again.
const QUIET: Duration = Duration::from_millis(200);

/// The list of this process.
pub struct Screen {
    store: Store,
    in_force: RwLock<Option<Arc<InForce>>>,
    /// Held by whoever puts another list in force.
    changing: Mutex<()>,
}

/// A list that is in force. Immutable; texts that are being screened keep theirs.
pub struct InForce {
    version: i64,
    base: Arc<Engine>,
    allowed: Arc<[String]>,
    /// Words added since the base was compiled, and the engine for them.
    added: Vec<Word>,
    delta: Option<Engine>,
    /// What words that were removed, or added with another type, are compared as.
    removed: HashSet<String>,
    changed_at: Instant,
    /// How long it took to compile the base.
    compiled_in: Duration,
}

impl Screen {
    pub fn new(store: Store) -> Self {
        Self { store, in_force: RwLock::default(), changing: Mutex::default() }
    }

    /// The list as it is now. The first caller of a process reads and compiles it.
    pub fn in_force(&self) -> Result<Arc<InForce>> {
        if let Some(in_force) = self.peek() {
            return Ok(in_force);
        }
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        match self.peek() {
            Some(in_force) => Ok(in_force),
            None => Ok(self.put(InForce::compiled(&self.store)?)),
        }
    }

    /// Takes up what has changed in the stored list, by whichever process.
    pub fn catch_up(&self) -> Result<()> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever asks first will read the list as it is then.
        let Some(current) = self.peek() else { return Ok(()) };
        match self.changes_since(&current)? {
            Changes::Nothing => {}
            Changes::Few(version, changes) => drop(self.put(current.changed(version, changes))),
            Changes::Many => drop(self.put(InForce::compiled(&self.store)?)),
        }
        Ok(())
    }

    /// Takes up what has changed, and compiles the whole list again if there were small changes and they have ceased.
    /// For a job.
    pub fn keep_up(&self) -> Result<()> {
        self.catch_up()?;
        match self.peek() {
            Some(current) if current.is_patched() && current.changed_at.elapsed() >= QUIET => self.consolidate(),
            _ => Ok(()),
        }
    }

    /// Compiles the stored list without holding up those who change it meanwhile.
    fn consolidate(&self) -> Result<()> {
        let fresh = InForce::compiled(&self.store)?;
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = match self.changes_since(&fresh)? {
            Changes::Few(version, changes) => fresh.changed(version, changes),
            // Whatever happened meanwhile and is more than that is taken up by the next look.
            Changes::Nothing | Changes::Many => fresh,
        };
        self.put(changed);
        Ok(())
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

    /// The same with these changes.
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

    fn is_patched(&self) -> bool {
        self.delta.is_some() || !self.removed.is_empty()
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

    /// How long it took to compile the list.
    pub fn compiled_in(&self) -> Duration {
        self.compiled_in
    }
}
