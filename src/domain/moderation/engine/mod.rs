//! Finds the words of a list in texts that disguise them.
//!
//! Owns the comparison: which characters count as equal, which gaps and repetitions are ignored, and when a look-alike
//! is innocent. It knows no database; a changed list is a new [`Engine`]. An automaton proposes matches cheaply, and a
//! verifier decides; a text without proposals costs no allocation. Words can also be matched by their sound, and in
//! characters split into their parts. Each word's options and the content type decide how much disguise is presumed.

#![expect(
    clippy::cast_possible_truncation,
    reason = "texts and lists stay far below four gigabytes, and offsets of four bytes halve the memory of a large list"
)]

mod alignment;
mod automaton;
mod contact;
mod dictionary;
mod folding;
mod gaps;
mod letters;
mod lexicon;
mod lookalikes;
mod pages;
mod parts;
mod signs;
mod sound;
mod emoji_letters;
mod verifier;
mod view;

#[cfg(test)]
mod cases;
#[cfg(test)]
mod properties;

use std::cmp::{Ordering, Reverse};

pub use contact::contact_number;
use dictionary::dictionary;
use letters::Letter;
use lexicon::Lexicon;
pub use lexicon::normalise;
use verifier::{Candidate, Page, Span};
use view::{End, Likeness, View};

use crate::types::named_enum;

named_enum! {
    /// The use of a text, which decides how much disguise is presumed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum ContentType {
        /// A few characters; punctuation in it is presumed to hide something.
        Nickname = "nickname",
        /// A single line; punctuation hides a word only if the word is isolated.
        Signature = "signature",
        /// Prose of a user.
        Question = "question",
        /// Prose of a model.
        Answer = "answer",
    }
}

/// An entry of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    pub text: String,
    /// The subject, such as `gambling` or `ads`; handed back with each match.
    pub kind: String,
    /// True to match homophones too.
    pub by_sound: bool,
}

/// A list of words, ready for use. Immutable and shareable.
pub struct Engine {
    words: Lexicon,
    allowed: Lexicon,
    plain: View,
    leet: View,
    sound: View,
    allowed_view: View,
}

/// A word found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// The word as it is listed.
    pub word: String,
    pub kind: String,
    /// Offsets into the original text, in characters (Unicode scalar values); the end is exclusive.
    pub start: usize,
    pub end: usize,
    /// The original text between the offsets.
    pub text: String,
}

impl Engine {
    /// Prepares a list. A word found inside an allowed phrase is no match. Entries without any letter or digit, and
    /// those that are compared as an earlier one, count for nothing; the order of the list does not matter.
    pub fn build(words: &[Word], allowed: &[String]) -> Self {
        let phrases: Vec<Word> =
            allowed.iter().map(|text| Word { text: text.clone(), kind: String::new(), by_sound: false }).collect();
        let (words, allowed) = (Lexicon::read(words), Lexicon::read(&phrases));
        Self {
            plain: View::build(Likeness::Plain, &words),
            leet: View::build(Likeness::Leet, &words),
            sound: View::build(Likeness::Sound, &words),
            allowed_view: View::build(Likeness::Plain, &allowed),
            words,
            allowed,
        }
    }

    /// Returns the number of different words in the list.
    pub fn word_count(&self) -> usize {
        self.plain.word_count()
    }

    /// Memory that the list takes on the heap, in bytes, about.
    pub fn memory_bytes(&self) -> usize {
        let views = self.plain.size() + self.leet.size() + self.sound.size() + self.allowed_view.size();
        views + self.words.size() + self.allowed.size()
    }

    /// Screens a text. Takes time in proportion to its length, and allocates only for suspicious texts.
    pub fn check(&self, content_type: ContentType, text: &str) -> Vec<Match> {
        let (mut found, is_twofold) = self.suspected(content_type, text);
        if is_twofold && let Some(other) = emoji_letters::without_letters(text) {
            found.extend(self.suspected(content_type, &other).0);
        }
        self.verdict(text, found)
    }

    /// Returns the matches suspected after a quick scan, and whether the text may have a second reading.
    fn suspected(&self, content_type: ContentType, text: &str) -> (Vec<Found>, bool) {
        let glance = self.plain.glance(text);
        let ends_in = |view: &View, may_have: bool| {
            if may_have && view.word_count() > 0 { view.glance(text).ends } else { Vec::new() }
        };
        let suspicions = Suspicions {
            leet: ends_in(&self.leet, glance.may_be_leet),
            // A model does not hide its words behind others.
            sound: ends_in(&self.sound, content_type != ContentType::Answer),
            plain: glance.ends,
            is_split: glance.may_be_split,
        };
        let found = if suspicions.is_empty() { Vec::new() } else { self.confirmed(content_type, text, &suspicions) };
        (found, glance.may_be_twofold)
    }

    fn confirmed(&self, content_type: ContentType, text: &str, suspicions: &Suspicions) -> Vec<Found> {
        let letters = letters::read(text, false);
        let page = Page { text, letters: &letters, runs: &[], leet: false, sound: false, content_type };
        let mut found = Vec::new();
        self.collect(&self.plain, &page, &suspicions.plain, &mut found);
        if !suspicions.leet.is_empty() {
            let letters = letters::read(text, true);
            self.collect(&self.leet, &Page { letters: &letters, ..page }, &suspicions.leet, &mut found);
        }
        if suspicions.is_split {
            self.collect_split(&page, &mut found);
        }
        self.collect(&self.sound, &page, &suspicions.sound, &mut found);
        if !found.is_empty() && self.allowed.len() > 0 {
            self.drop_allowed(&page, &mut found);
        }
        found
    }

    fn verdict(&self, text: &str, mut found: Vec<Found>) -> Vec<Match> {
        found.sort_unstable_by(|left, right| self.order(left, right));
        found.dedup_by(|later, kept| later.word == kept.word && later.span == kept.span);
        self.described(text, &found)
    }

    /// By place and then by text, since the numbers of the words depend on the order of the list.
    fn order(&self, left: &Found, right: &Found) -> Ordering {
        let place = |found: &Found| (found.span.start, Reverse(found.span.end));
        place(left).cmp(&place(right)).then_with(|| self.words.compare(left.word, right.word))
    }

    /// Judges the words that may end in these places.
    fn collect(&self, view: &View, page: &Page<'_>, ends: &[End], found: &mut Vec<Found>) {
        if ends.is_empty() {
            return;
        }
        let runs = view.runs(page.letters);
        let page = Page { runs: &runs, leet: view.is_leet(), sound: view.is_sound(), ..*page };
        view.candidates_at(ends, page.letters, &runs, |last_run, word| {
            let candidate = Candidate { page: &page, pattern: self.words.pattern(word), last_run };
            found.extend(candidate.confirmed().map(|span| Found { word, span }));
        });
    }

    /// Finds words whose characters are split into their parts.
    fn collect_split(&self, page: &Page<'_>, found: &mut Vec<Found>) {
        self.collect_put_together(page, false, found);
        if parts::parts().overlap(page.letters) {
            self.collect_put_together(page, true, found);
        }
    }

    fn collect_put_together(&self, page: &Page<'_>, later: bool, found: &mut Vec<Found>) {
        let parts = page.letters;
        let (letters, is_made) = parts::parts().put_together(parts, later);
        let made: Vec<_> =
            letters.iter().zip(is_made).filter(|(_, is_made)| *is_made).map(|(letter, _)| letter).collect();
        if made.is_empty() {
            return;
        }
        let has_made = |span: &Span| {
            made.iter().any(|letter| letter.start as usize >= span.start && letter.end as usize <= span.end)
        };
        let runs = self.plain.runs(&letters);
        let page = Page { letters: &letters, runs: &runs, ..*page };
        self.plain.candidates(&runs, |last_run, word| {
            let candidate = Candidate { page: &page, pattern: self.words.pattern(word), last_run };
            let confirmed = candidate.confirmed().filter(|span| has_made(span) && !is_cut(parts, span));
            found.extend(confirmed.map(|span| Found { word, span }));
        });
    }

    fn drop_allowed(&self, page: &Page<'_>, found: &mut Vec<Found>) {
        let runs = self.allowed_view.runs(page.letters);
        let page = Page { runs: &runs, ..*page };
        let mut spans = Vec::new();
        self.allowed_view.candidates(&runs, |last_run, phrase| {
            let candidate = Candidate { page: &page, pattern: self.allowed.pattern(phrase), last_run };
            spans.extend(candidate.confirmed_exactly().map(|span| (span.start, span.end)));
        });
        let cover = Cover::new(spans);
        found.retain(|found| !cover.contains(&found.span));
    }

    /// Counts the characters before each place, which are sorted, from the one before it.
    fn described(&self, text: &str, found: &[Found]) -> Vec<Match> {
        let (mut bytes, mut start) = (0, 0);
        let describe = |Found { word, span }: &Found| {
            start += text[bytes..span.start].chars().count();
            bytes = span.start;
            let text = text[span.start..span.end].to_owned();
            let (word, kind) = (self.words.text(*word).to_owned(), self.words.kind(*word).to_owned());
            Match { word, kind, start, end: start + text.chars().count(), text }
        };
        found.iter().map(describe).collect()
    }
}

/// The text with an asterisk for each character of a match.
pub fn mask(text: &str, matches: &[Match]) -> String {
    let cover = Cover::new(matches.iter().map(|found| (found.start, found.end)).collect());
    let shown = |(index, character)| if cover.covers(index) { '*' } else { character };
    text.chars().enumerate().map(shown).collect()
}

/// Returns true if a common word, in the letters as written, overlaps this span only partly.
fn is_cut(letters: &[Letter], span: &Span) -> bool {
    let first = letters.iter().position(|letter| letter.start as usize == span.start);
    let last = letters.iter().position(|letter| letter.end as usize == span.end);
    let (Some(first), Some(last)) = (first, last) else { return false };
    let values: Vec<char> = letters.iter().map(|letter| letter.value).collect();
    dictionary().straddles(&values, first) || dictionary().straddles(&values, last + 1)
}

/// The possible ends of words in each view, for texts that need more than a quick scan.
struct Suspicions {
    plain: Vec<End>,
    leet: Vec<End>,
    sound: Vec<End>,
    /// Words may arise anywhere from letters that are put together.
    is_split: bool,
}

impl Suspicions {
    fn is_empty(&self) -> bool {
        self.plain.is_empty() && self.leet.is_empty() && self.sound.is_empty() && !self.is_split
    }
}

/// A word and where it was found.
struct Found {
    word: usize,
    span: Span,
}

/// Spans by their starts, each with the farthest end that any of them up to it reaches.
struct Cover(Vec<(usize, usize)>);

impl Cover {
    fn new(mut spans: Vec<(usize, usize)>) -> Self {
        spans.sort_unstable();
        let mut farthest = 0;
        for span in &mut spans {
            farthest = farthest.max(span.1);
            span.1 = farthest;
        }
        Self(spans)
    }

    /// Returns true if one of the spans contains this one.
    fn contains(&self, span: &Span) -> bool {
        self.farthest_end(span.start) >= span.end
    }

    fn covers(&self, index: usize) -> bool {
        self.farthest_end(index) > index
    }

    /// The farthest end of the spans that begin here or earlier.
    fn farthest_end(&self, start: usize) -> usize {
        let count = self.0.partition_point(|span| span.0 <= start);
        count.checked_sub(1).map_or(0, |index| self.0[index].1)
    }
}
