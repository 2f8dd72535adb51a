//! Whether a text may stand: the question asked of everything a user writes for others or for a model.
//!
//! A refusal names the field and never the word, and leaves a violation record. The engine is immutable and shared.
//! It is built by whoever needs it first, which at a server's start is its own background thread: the tables behind it
//! take longer to make than everything else that a start has to do.

pub mod engine;

use std::sync::OnceLock;

use engine::{ContentType, Engine, Match, Word, mask};

use crate::{
    app::App,
    error::{Code, Error, Fault, FieldCode, Result},
    ops::{
        violations::{self, Violation},
        words,
    },
    store::{Pending, Store},
    types::UserId,
};

const LOCAL: &str = "local";

/// The engine in use, and the list that it is made from.
pub struct Screen {
    words: Vec<Word>,
    allowed: Vec<String>,
    engine: OnceLock<Engine>,
}

impl Screen {
    /// Loads the stored list.
    pub fn load(store: &Store) -> Result<Self> {
        words::seed(store)?;
        let (words, allowed) = store.read(words::all_in)?;
        Ok(Self { words, allowed, engine: OnceLock::new() })
    }

    pub fn engine(&self) -> &Engine {
        self.engine.get_or_init(|| Engine::build(&self.words, &self.allowed))
    }
}

/// A text under the name of the field in which it came.
#[derive(Clone, Copy, Debug)]
pub struct Field<'text> {
    pub name: &'static str,
    pub content_type: ContentType,
    pub text: &'text str,
}

/// The refusal of texts that may not stand: what to remember, and what to tell the user.
pub struct Refusal {
    violations: Vec<Violation>,
    error: Error,
}

impl Refusal {
    /// Remembers the refusal, then answers it.
    pub fn record<T: Send + 'static>(self, app: &App) -> Pending<T> {
        app.store.write(move |tx| {
            for violation in &self.violations {
                violations::record_in(tx, violation)?;
            }
            Err(self.error.keeping_changes())
        })
    }
}

/// Checks a user's texts. Nothing if all of them may stand.
pub fn screen(app: &App, user: UserId, fields: &[Field<'_>]) -> Option<Refusal> {
    let engine = app.screen.engine();
    let refused: Vec<_> = fields
        .iter()
        .map(|field| (field, engine.check(field.content_type, field.text).matches))
        .filter(|(_, matches)| !matches.is_empty())
        .collect();
    if refused.is_empty() {
        return None;
    }
    let violations = refused.iter().map(|(field, matches)| violation(user, field, matches)).collect();
    let fault = || Fault::new(FieldCode::Rejected, "was refused by content moderation");
    let fields = refused.iter().map(|(field, _)| fault().in_field(field.name)).collect();
    Some(Refusal { violations, error: Error { fields, ..Error::new(Code::ContentRejected) } })
}

fn violation(user: UserId, field: &Field<'_>, matches: &[Match]) -> Violation {
    Violation {
        user,
        content_type: field.content_type.as_str(),
        violation_type: matches.first().map(|found| found.kind.clone()).unwrap_or_default(),
        words: matches.iter().map(|found| found.word.clone()).collect(),
        masked_text: mask(field.text, matches),
        provider: LOCAL,
    }
}
