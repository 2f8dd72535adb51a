//! Holding an answer back until what it says has been screened: sentence by sentence, so that a stream still moves.
//!
//! What was let through is remembered for a few words, because what may not stand can begin in one sentence and end in
//! the next. Of a vendor's documents only what was screened is passed on. Without screening everything passes at once,
//! as it is.

use super::Asker;
use crate::{
    app::App,
    ops::moderation::{self, Refusal},
    providers::llm::{Flow, Piece, with_the_answer_only},
    types::UserId,
};

/// Where a sentence may end.
const ENDS: [char; 9] = ['。', '！', '？', '；', '…', '.', '!', '?', '\n'];
/// A sentence without an end is screened after so many characters.
const LONGEST_SENTENCE: usize = 200;
/// Characters of what was let through that are screened again with the next sentence.
const REMEMBERED: usize = 64;

/// What stands between a model and its listener.
pub(super) struct Gate<'app> {
    app: &'app App,
    /// On whose account a refusal is recorded; nobody if nothing is screened.
    user: Option<UserId>,
    held: Vec<Held>,
    /// Whether reasoning is passed on, too.
    tells_reasoning: bool,
    /// What the held pieces say.
    sentence: String,
    remembered: String,
    refusal: Option<Refusal>,
}

struct Held {
    text: String,
    reasoning: String,
    document: Option<String>,
    is_whole: bool,
}

impl<'app> Gate<'app> {
    pub(super) fn new(app: &'app App, asker: Asker) -> Self {
        Self {
            app,
            user: asker.user.filter(|_| app.config.moderation.screen_answers),
            tells_reasoning: asker.is_told_reasoning,
            held: Vec::new(),
            sentence: String::new(),
            remembered: String::new(),
            refusal: None,
        }
    }

    /// Takes a piece, and lets through what may be.
    pub(super) fn pass(&mut self, piece: Piece<'_>, sink: &mut dyn FnMut(Piece<'_>) -> Flow) -> Flow {
        if self.user.is_none() || (piece.text.is_empty() && piece.document.is_none()) {
            return sink(piece);
        }
        let reasoning = if self.tells_reasoning { piece.reasoning } else { "" };
        let is_end = reasoning.contains(ENDS) || piece.text.contains(ENDS);
        self.sentence.push_str(reasoning);
        self.sentence.push_str(piece.text);
        self.held.push(Held {
            text: piece.text.to_owned(),
            reasoning: piece.reasoning.to_owned(),
            document: piece.document.map(with_the_answer_only),
            is_whole: piece.is_whole,
        });
        if is_end || self.sentence.chars().count() >= LONGEST_SENTENCE {
            self.let_through(sink)
        } else {
            Flow::Continue
        }
    }

    /// Lets through the rest of an answer that is complete.
    pub(super) fn finish(&mut self, sink: &mut dyn FnMut(Piece<'_>) -> Flow) -> Flow {
        if self.held.is_empty() { Flow::Continue } else { self.let_through(sink) }
    }

    /// The refusal of an answer that may not stand.
    pub(super) fn into_refusal(self) -> Option<Refusal> {
        self.refusal
    }

    fn let_through(&mut self, sink: &mut dyn FnMut(Piece<'_>) -> Flow) -> Flow {
        let Some(user) = self.user else { return Flow::Continue };
        let text = format!("{}{}", self.remembered, self.sentence);
        self.refusal = moderation::check_answer(self.app, user, &text);
        if self.refusal.is_some() {
            return Flow::Stop;
        }
        let skipped = text.chars().count().saturating_sub(REMEMBERED);
        self.remembered = text.chars().skip(skipped).collect();
        self.sentence.clear();
        for Held { text, reasoning, document, is_whole } in self.held.drain(..) {
            let document = document.as_deref();
            if sink(Piece { text: &text, reasoning: &reasoning, document, is_whole }) == Flow::Stop {
                return Flow::Stop;
            }
        }
        Flow::Continue
    }
}
