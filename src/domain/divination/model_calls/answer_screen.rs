//! Screens a model's output before the client sees it, sentence by sentence, so that a stream keeps moving.
//!
//! Sentence boundaries depend on characters alone, so the ruling does not depend on how the provider splits its output.
//! Each sentence is screened together with the end of the text before it, since a match can span both; only matches in
//! the new sentence count. Documents contain only screened text. Words that a rule masks are replaced before their chunk
//! is released. If screening is off, every chunk passes at once, unchanged.

use std::{collections::VecDeque, ops::Range};

use super::outcome::ModelCaller;
use crate::{
    domain::moderation::{self, AnswerRuling, Moderation, REPLACEMENT, Refusal},
    providers::llm::{Flow, ModelRequest, OutputChunk, keep_answer_only, with_answer},
    types::UserId,
};

/// Characters that end a sentence.
const SENTENCE_ENDS: [char; 8] = ['。', '！', '？', '；', '…', '!', '?', '\n'];
/// Ends a sentence unless a letter or digit follows: points stand within names and numbers.
const FULL_STOP: char = '.';
/// Longer sentences, in characters, are screened before they end.
const MAX_SENTENCE: usize = 200;
/// Maximum bytes of chunks that are held back. Above it, a sentence is screened before it ends.
const MAX_HELD: usize = 256 << 10;
/// The context, in characters, that is screened with a sentence: longer than any listed word or allowed phrase.
const CONTEXT_LENGTH: usize = 64;

/// Holds back the output of a model until it is screened.
pub(super) struct AnswerScreen<'run> {
    moderation: &'run Moderation,
    /// The user whose violation a rejection is. `None` turns screening off.
    user: Option<UserId>,
    /// True if provider documents are passed on, with their reasoning.
    with_documents: bool,
    held: VecDeque<HeldChunk>,
    /// Bytes of the held chunks, including their documents.
    held_bytes: usize,
    /// The text of the held chunks that is not screened yet.
    unscreened: String,
    /// Bytes at the start of the held chunks that may be released.
    screened: usize,
    /// The end of the text that was screened.
    context: String,
    /// The released text, and true if a part of it is masked.
    released: String,
    is_masked: bool,
    refusal: Option<Refusal>,
}

/// A chunk of output. Its reasoning is empty unless it is passed on.
#[derive(Default)]
struct HeldChunk {
    text: String,
    reasoning: String,
    document: Option<String>,
    is_whole: bool,
    model: String,
}

/// The start of the unscreened text, in bytes: how much is screened, and how much of the text is read for it.
struct Segment {
    screened: usize,
    read: usize,
}

impl<'run> AnswerScreen<'run> {
    pub(super) fn new(moderation: &'run Moderation, caller: ModelCaller, request: &ModelRequest) -> Self {
        Self {
            moderation,
            user: caller.user.filter(|_| moderation.core.config.moderation.screen_answers),
            with_documents: request.with_documents,
            held: VecDeque::new(),
            held_bytes: 0,
            unscreened: String::new(),
            screened: 0,
            context: String::new(),
            released: String::new(),
            is_masked: false,
            refusal: None,
        }
    }

    /// Adds a chunk and releases the screened ones.
    pub(super) fn push(&mut self, chunk: OutputChunk<'_>, sink: &mut dyn FnMut(OutputChunk<'_>) -> Flow) -> Flow {
        if self.user.is_none() {
            return sink(chunk);
        }
        let document = chunk.document.filter(|_| self.with_documents);
        if chunk.text.is_empty() && document.is_none() {
            return sink(OutputChunk::KEEP_ALIVE);
        }
        let reasoning = if self.with_documents { chunk.reasoning } else { "" };
        self.unscreened.push_str(reasoning);
        self.unscreened.push_str(chunk.text);
        let held = HeldChunk {
            text: chunk.text.to_owned(),
            reasoning: reasoning.to_owned(),
            document: document.map(keep_answer_only),
            is_whole: chunk.is_whole,
            model: chunk.model.to_owned(),
        };
        self.held_bytes += held.bytes();
        self.held.push_back(held);
        self.release_screened(chunk.is_whole || self.held_bytes > MAX_HELD, sink)
    }

    /// Screens and releases the rest of a complete answer.
    pub(super) fn finish(&mut self, sink: &mut dyn FnMut(OutputChunk<'_>) -> Flow) -> Flow {
        if self.held.is_empty() { Flow::Continue } else { self.release_screened(true, sink) }
    }

    /// Returns the text of a completion as it was released. A mask keeps the number of characters; the completion lacks a
    /// start that turned out to be reasoning.
    pub(super) fn as_released(&self, text: String) -> String {
        if !self.is_masked {
            return text;
        }
        let skipped = self.released.chars().count().saturating_sub(text.chars().count());
        self.released.chars().skip(skipped).collect()
    }

    /// Returns the refusal if the answer was rejected.
    pub(super) fn into_refusal(self) -> Option<Refusal> {
        self.refusal
    }

    fn release_screened(&mut self, is_complete: bool, sink: &mut dyn FnMut(OutputChunk<'_>) -> Flow) -> Flow {
        let mut segment = Segment::next(&self.unscreened, is_complete);
        if segment.is_none() && !is_complete {
            // The sink must be able to report a disconnected client also while nothing can be released.
            return sink(OutputChunk::KEEP_ALIVE);
        }
        // The external moderator is called once for all available sentences. The word list screens each on its own, as
        // in a slow stream.
        let screens_all = segment.is_some() && moderation::is_external_active(&self.moderation.core);
        while let Some(next) = segment {
            let next = if screens_all { next.extended(&self.unscreened, is_complete) } else { next };
            if !self.screen_segment(&next) {
                self.release(sink);
                return Flow::Stop;
            }
            segment = Segment::next(&self.unscreened, is_complete);
        }
        self.release(sink)
    }

    /// Screens a segment and returns true if it is allowed.
    fn screen_segment(&mut self, segment: &Segment) -> bool {
        let Some(user) = self.user else { return true };
        let text = [self.context.as_str(), &self.unscreened[..segment.read]].concat();
        let (begin, end) = (self.context.len(), self.context.len() + segment.screened);
        let masked = match moderation::check_answer(self.moderation, user, &text, begin..end) {
            AnswerRuling::Refused(refusal) => {
                self.refusal = Some(refusal);
                return false;
            }
            AnswerRuling::Masked(masked) => masked,
            AnswerRuling::Shown => Vec::new(),
        };
        self.unscreened.drain(..segment.screened);
        if masked.is_empty() {
            self.screened += segment.screened;
        } else {
            let rest = self.held_length() - self.screened - segment.screened;
            // From the end, so that the places of the others stay valid.
            for range in masked.iter().rev() {
                self.mask(range.start - begin..range.end - begin);
            }
            self.screened = self.held_length() - rest;
        }
        let context_start = text[..end].char_indices().rev().nth(CONTEXT_LENGTH - 1).map_or(0, |(index, _)| index);
        text[context_start..end].clone_into(&mut self.context);
        true
    }

    /// Masks a range of the held text behind the screened part, in bytes.
    fn mask(&mut self, range: Range<usize>) {
        let (start, end) = (self.screened + range.start, self.screened + range.end);
        let mut begin = 0;
        for held in &mut self.held {
            let length = held.length();
            let part = start.clamp(begin, begin + length) - begin..end.clamp(begin, begin + length) - begin;
            if !part.is_empty() {
                held.mask(part);
            }
            begin += length;
        }
        self.held_bytes = self.held.iter().map(HeldChunk::bytes).sum();
        self.is_masked = true;
    }

    fn held_length(&self) -> usize {
        self.held.iter().map(HeldChunk::length).sum()
    }

    fn hold_first(&mut self, chunk: HeldChunk) {
        self.held_bytes += chunk.bytes();
        self.held.push_front(chunk);
    }

    /// Releases the held chunks that are screened. A chunk without a document can be released in parts.
    fn release(&mut self, sink: &mut dyn FnMut(OutputChunk<'_>) -> Flow) -> Flow {
        while let Some(mut held) = self.held.pop_front() {
            self.held_bytes -= held.bytes();
            if held.length() > self.screened {
                if self.screened == 0 || held.document.is_some() || !held.reasoning.is_empty() {
                    self.hold_first(held);
                    break;
                }
                let text = held.text.split_off(self.screened);
                self.hold_first(HeldChunk { text, model: held.model.clone(), ..HeldChunk::default() });
            }
            self.screened -= held.length();
            self.released.push_str(&held.text);
            let HeldChunk { text, reasoning, document, is_whole, model } = &held;
            let document = document.as_deref();
            if sink(OutputChunk { text, reasoning, document, is_whole: *is_whole, model, ..OutputChunk::KEEP_ALIVE })
                == Flow::Stop
            {
                return Flow::Stop;
            }
        }
        Flow::Continue
    }
}

impl HeldChunk {
    fn length(&self) -> usize {
        self.reasoning.len() + self.text.len()
    }

    /// Replaces the characters in a range of the reasoning and the text behind it.
    fn mask(&mut self, range: Range<usize>) {
        let split = self.reasoning.len();
        replace(&mut self.text, range.start.saturating_sub(split)..range.end.saturating_sub(split));
        replace(&mut self.reasoning, range.start.min(split)..range.end.min(split));
        self.document = self.document.take().map(|document| with_answer(&document, &self.text, &self.reasoning));
    }

    fn bytes(&self) -> usize {
        self.length() + self.document.as_ref().map_or(0, String::len) + self.model.len()
    }
}

fn replace(text: &mut String, range: Range<usize>) {
    let replacement: String = text[range.clone()].chars().map(|_| REPLACEMENT).collect();
    text.replace_range(range, &replacement);
}

impl Segment {
    /// Returns the next sentence, if it is complete.
    fn next(text: &str, is_complete: bool) -> Option<Self> {
        let length_of = |count: usize| text.char_indices().nth(count - 1).map(|(start, last)| start + last.len_utf8());
        let longest = length_of(MAX_SENTENCE);
        let mut sentence = None;
        for (start, character) in text[..longest.unwrap_or(text.len())].char_indices() {
            let end = start + character.len_utf8();
            let is_end = match text[end..].chars().next() {
                _ if character != FULL_STOP => SENTENCE_ENDS.contains(&character),
                Some(next) => !next.is_alphanumeric(),
                None if is_complete => true,
                // The next character decides.
                None => return None,
            };
            if is_end {
                sentence = Some(end);
                break;
            }
        }
        let rest = Some(text.len()).filter(|length| is_complete && *length > 0);
        match (sentence, longest) {
            // A truncated sentence has no natural end, so the text after the cut is screened, too.
            (None, Some(read)) => Some(Self { screened: length_of(MAX_SENTENCE - CONTEXT_LENGTH)?, read }),
            (sentence, _) => sentence.or(rest).map(|length| Self { screened: length, read: length }),
        }
    }

    /// Extends the segment to all complete sentences after it.
    fn extended(mut self, text: &str, is_complete: bool) -> Self {
        while let Some(next) = Self::next(&text[self.screened..], is_complete) {
            self.read = self.screened + next.read;
            self.screened += next.screened;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the segments of a text whose characters arrive one by one, or all at once.
    fn segments(text: &str, one_by_one: bool) -> Vec<String> {
        let mut found = Vec::new();
        let mut unscreened = String::new();
        let mut take = |unscreened: &mut String, is_complete| {
            while let Some(segment) = Segment::next(unscreened, is_complete) {
                found.push(unscreened.drain(..segment.screened).collect());
            }
        };
        for character in text.chars() {
            unscreened.push(character);
            if one_by_one {
                take(&mut unscreened, false);
            }
        }
        take(&mut unscreened, true);
        found
    }

    #[test]
    fn segments_depend_on_characters_alone() {
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
            let segments = segments(text, false);
            assert_eq!(segments, self::segments(text, true), "{text}");
            assert_eq!(segments.concat(), text);
        }
        assert_eq!(segments("宜守。不急", false), ["宜守。", "不急"]);
        assert_eq!(segments("In 1.5 years. a.com.", false), ["In 1.5 years.", " a.com."]);
        assert_eq!(segments(&long, false).iter().map(|segment| segment.chars().count()).collect::<Vec<_>>(), [136, 64]);
        let whole = Segment::next("一。二。三", false).map(|segment| segment.extended("一。二。三", false).screened);
        assert_eq!(whole, Some("一。二。".len()));
    }
}
