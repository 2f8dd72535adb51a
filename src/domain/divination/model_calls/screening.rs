//! Holding an answer back until what it says has been screened: sentence by sentence, so that a stream still moves.
//!
//! Where an answer is cut depends on its characters alone, so that the verdict is the same however its vendor cuts it
//! into pieces. What was let through is read again with the next sentence, because what may not stand can begin in one
//! and end in the other; but it is not judged again, because the beginning of what made it innocent may be forgotten by
//! then. Of a vendor's documents only what was screened is passed on. Without screening everything passes at once, as
//! it is.

use std::collections::VecDeque;

use super::Asker;
use crate::{
    domain::moderation::{self, Moderation, Refusal},
    providers::llm::{Flow, Piece, Request, with_the_answer_only},
    types::UserId,
};

/// Where a sentence may end.
const ENDS: [char; 8] = ['。', '！', '？', '；', '…', '!', '?', '\n'];
/// Ends a sentence, too, unless a letter or a digit follows: it stands within names and numbers.
const POINT: char = '.';
/// A sentence without an end is screened after so many characters.
const LONGEST_SENTENCE: usize = 200;
/// Characters around what is judged that are read with it: longer than anything that is listed or allowed.
const CONTEXT: usize = 64;

/// What stands between a model and its listener.
pub(super) struct Gate<'run> {
    moderation: &'run Moderation,
    /// On whose account a refusal is recorded; nobody if nothing is screened.
    user: Option<UserId>,
    /// Whether documents are passed on, and reasoning in them.
    tells_documents: bool,
    held: VecDeque<Held>,
    /// What the held pieces say and was not judged yet.
    unjudged: String,
    /// Bytes at the beginning of the held pieces that may be let through.
    judged: usize,
    /// The end of what was judged.
    remembered: String,
    refusal: Option<Refusal>,
}

/// A piece; its reasoning is empty unless it is passed on.
#[derive(Default)]
struct Held {
    text: String,
    reasoning: String,
    document: Option<String>,
    is_whole: bool,
    model: String,
}

/// Bytes at the beginning of what is not judged: so many are judged, and read with what follows them.
struct Part {
    judged: usize,
    read: usize,
}

impl<'run> Gate<'run> {
    pub(super) fn new(moderation: &'run Moderation, asker: Asker, request: &Request) -> Self {
        Self {
            moderation,
            user: asker.user.filter(|_| moderation.core.config.moderation.screen_answers),
            tells_documents: request.is_told_documents,
            held: VecDeque::new(),
            unjudged: String::new(),
            judged: 0,
            remembered: String::new(),
            refusal: None,
        }
    }

    /// Takes a piece, and lets through what may be.
    pub(super) fn pass(&mut self, piece: Piece<'_>, sink: &mut dyn FnMut(Piece<'_>) -> Flow) -> Flow {
        if self.user.is_none() {
            return sink(piece);
        }
        let document = piece.document.filter(|_| self.tells_documents);
        if piece.text.is_empty() && document.is_none() {
            return sink(Piece::SIGN_OF_LIFE);
        }
        let reasoning = if self.tells_documents { piece.reasoning } else { "" };
        self.unjudged.push_str(reasoning);
        self.unjudged.push_str(piece.text);
        self.held.push_back(Held {
            text: piece.text.to_owned(),
            reasoning: reasoning.to_owned(),
            document: document.map(with_the_answer_only),
            is_whole: piece.is_whole,
            model: piece.model.to_owned(),
        });
        self.let_through(piece.is_whole, sink)
    }

    /// Lets through the rest of an answer that is complete.
    pub(super) fn finish(&mut self, sink: &mut dyn FnMut(Piece<'_>) -> Flow) -> Flow {
        if self.held.is_empty() { Flow::Continue } else { self.let_through(true, sink) }
    }

    /// The refusal of an answer that may not stand.
    pub(super) fn into_refusal(self) -> Option<Refusal> {
        self.refusal
    }

    fn let_through(&mut self, is_complete: bool, sink: &mut dyn FnMut(Piece<'_>) -> Flow) -> Flow {
        let mut part = Part::next(&self.unjudged, is_complete);
        if part.is_none() && !is_complete {
            // Whoever left must be noticed also while nothing can be let through.
            return sink(Piece::SIGN_OF_LIFE);
        }
        // An outside service is asked once about what is there, and the list about each sentence as in a slow stream.
        let at_once = part.is_some() && moderation::asks_outside(&self.moderation.core);
        while let Some(next) = part {
            let next = if at_once { next.with_all_after_it(&self.unjudged, is_complete) } else { next };
            if !self.judge(&next) {
                self.release(sink);
                return Flow::Stop;
            }
            part = Part::next(&self.unjudged, is_complete);
        }
        self.release(sink)
    }

    /// Whether the part may stand. It is then no longer among what is not judged.
    fn judge(&mut self, part: &Part) -> bool {
        let Some(user) = self.user else { return true };
        let text = [self.remembered.as_str(), &self.unjudged[..part.read]].concat();
        let (begin, end) = (self.remembered.len(), self.remembered.len() + part.judged);
        self.refusal = moderation::check_answer(self.moderation, user, &text, begin..end);
        if self.refusal.is_some() {
            return false;
        }
        self.unjudged.drain(..part.judged);
        self.judged += part.judged;
        let forgotten = text[..end].char_indices().rev().nth(CONTEXT - 1).map_or(0, |(index, _)| index);
        text[forgotten..end].clone_into(&mut self.remembered);
        true
    }

    /// Hands out the held pieces that were judged. Of one without a document a part may be handed out.
    fn release(&mut self, sink: &mut dyn FnMut(Piece<'_>) -> Flow) -> Flow {
        while let Some(mut held) = self.held.pop_front() {
            if held.length() > self.judged {
                if self.judged == 0 || held.document.is_some() || !held.reasoning.is_empty() {
                    self.held.push_front(held);
                    break;
                }
                let text = held.text.split_off(self.judged);
                self.held.push_front(Held { text, model: held.model.clone(), ..Held::default() });
            }
            self.judged -= held.length();
            let Held { text, reasoning, document, is_whole, model } = &held;
            let document = document.as_deref();
            if sink(Piece { text, reasoning, document, is_whole: *is_whole, model, ..Piece::SIGN_OF_LIFE })
                == Flow::Stop
            {
                return Flow::Stop;
            }
        }
        Flow::Continue
    }
}

impl Held {
    fn length(&self) -> usize {
        self.reasoning.len() + self.text.len()
    }
}

impl Part {
    /// The next sentence, if it is there to its end.
    fn next(text: &str, is_complete: bool) -> Option<Self> {
        let length_of = |count: usize| text.char_indices().nth(count - 1).map(|(start, last)| start + last.len_utf8());
        let longest = length_of(LONGEST_SENTENCE);
        let mut sentence = None;
        for (start, character) in text[..longest.unwrap_or(text.len())].char_indices() {
            let end = start + character.len_utf8();
            let is_end = match text[end..].chars().next() {
                _ if character != POINT => ENDS.contains(&character),
                Some(next) => !next.is_alphanumeric(),
                None if is_complete => true,
                // The next character will tell.
                None => return None,
            };
            if is_end {
                sentence = Some(end);
                break;
            }
        }
        let rest = Some(text.len()).filter(|length| is_complete && *length > 0);
        match (sentence, longest) {
            // Where it is cut there is no end of anything, so that what follows decides, too.
            (None, Some(read)) => Some(Self { judged: length_of(LONGEST_SENTENCE - CONTEXT)?, read }),
            (sentence, _) => sentence.or(rest).map(|length| Self { judged: length, read: length }),
        }
    }

    /// This part and all that can be judged after it.
    fn with_all_after_it(mut self, text: &str, is_complete: bool) -> Self {
        while let Some(next) = Self::next(&text[self.judged..], is_complete) {
            self.read = self.judged + next.read;
            self.judged += next.judged;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts of a text whose characters come one by one, or all at once.
    fn parts(text: &str, one_by_one: bool) -> Vec<String> {
        let mut found = Vec::new();
        let mut unjudged = String::new();
        let mut take = |unjudged: &mut String, is_complete| {
            while let Some(part) = Part::next(unjudged, is_complete) {
                found.push(unjudged.drain(..part.judged).collect());
            }
        };
        for character in text.chars() {
            unjudged.push(character);
            if one_by_one {
                take(&mut unjudged, false);
            }
        }
        take(&mut unjudged, true);
        found
    }

    #[test]
    fn where_an_answer_is_cut_depends_on_nothing_but_its_characters() {
        let long = "卦".repeat(200);
        let at_the_limit = |end: &str| format!("{}{end}", &long[3..]);
        for text in [
            "",
            "吉",
            "吉。",
            "吉。凶",
            "a.b!\n？",
            "1.5 a.b. c...",
            &long,
            &format!("{long}。"),
            &at_the_limit("。吉"),
            &at_the_limit(". a"),
            &at_the_limit(".a"),
            &at_the_limit("."),
        ] {
            let parts = parts(text, false);
            assert_eq!(parts, self::parts(text, true), "{text}");
            assert_eq!(parts.concat(), text);
        }
        assert_eq!(parts("宜守。不急", false), ["宜守。", "不急"]);
        assert_eq!(parts("In 1.5 years. a.com.", false), ["In 1.5 years.", " a.com."]);
        assert_eq!(parts(&long, false).iter().map(|part| part.chars().count()).collect::<Vec<_>>(), [136, 64]);
        let whole = Part::next("一。二。三", false).map(|part| part.with_all_after_it("一。二。三", false).judged);
        assert_eq!(whole, Some("一。二。".len()));
    }
}
