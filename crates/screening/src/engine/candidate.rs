//! Aligns a listed word with the letters of a text that may spell it.
//!
//! Repeated letters are aligned with one letter of the word, except that those at its edges end at the first gap.

use std::ops::Range;

use super::{
    confusables::leet_class,
    folding::{LetterClass, class_of},
    letters::{Letter, Run},
    pattern::Pattern,
    pinyin::pinyin_table,
    types::ContentType,
};

/// A range of a text, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ByteSpan {
    pub(super) start: usize,
    pub(super) end: usize,
}

impl ByteSpan {
    /// Returns the span of the whole characters of a text that contain this one.
    pub(super) fn within(self, text: &str) -> Self {
        Self { start: text.floor_char_boundary(self.start), end: text.ceil_char_boundary(self.end) }
    }
}

/// A text as needed by the verifier.
pub(super) struct FoldedText<'text> {
    pub(super) text: &'text str,
    pub(super) letters: &'text [Letter],
    pub(super) runs: &'text [Run],
    /// True to compare digits and signs as the letters they resemble.
    pub(super) leet: bool,
    /// True to compare letters by their sound.
    pub(super) sound: bool,
    pub(super) content_type: ContentType,
}

impl<'text> FoldedText<'text> {
    /// Returns the range of the letters in a span of the text.
    pub(super) fn letters_of(&self, span: &ByteSpan) -> Range<usize> {
        let first = self.letters.partition_point(|letter| (letter.end as usize) <= span.start);
        first..self.letters.partition_point(|letter| (letter.start as usize) < span.end)
    }

    /// Returns the letters in these spans and up to `reach` letters around each, as ranges in order and apart.
    pub(super) fn parts_around<'span>(
        &self,
        spans: impl Iterator<Item = &'span ByteSpan>,
        reach: usize,
    ) -> Vec<Range<usize>> {
        let count = self.letters.len();
        let mut parts: Vec<Range<usize>> = Vec::new();
        for span in spans {
            if parts.len() * reach >= count {
                return vec![Range { start: 0, end: count }];
            }
            let Range { start, end } = self.letters_of(span);
            parts.push(start.saturating_sub(reach)..(end + reach).min(count));
        }
        parts.sort_unstable_by_key(|part| part.start);
        parts.dedup_by(|next, part| {
            let overlaps = next.start <= part.end;
            if overlaps {
                part.end = part.end.max(next.end);
            }
            overlaps
        });
        parts
    }

    /// Returns a text that is compared by its letters as written.
    pub(super) fn plain(text: &'text str, letters: &'text [Letter]) -> Self {
        Self { text, letters, runs: &[], leet: false, sound: false, content_type: ContentType::Question }
    }
}

/// A word that may end at the run `last_run`.
pub(super) struct Candidate<'text> {
    pub(super) page: &'text FoldedText<'text>,
    pub(super) pattern: Pattern<'text>,
    pub(super) last_run: usize,
}

#[cfg(test)]
thread_local! {
    /// Number of visited letters, to prove that the time is linear.
    pub(super) static VISITS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Shorter words too easily equal another word with one letter doubled.
pub(super) const DOUBLING_LENGTH: usize = 5;

/// A group of equal letters in the word, aligned with the text's run of them.
#[derive(Clone, Copy)]
pub(super) struct Group {
    /// Index of the group's first letter in the word.
    pub(super) start: usize,
    pub(super) count: usize,
    /// The letters of the text, without those beyond the edges of the word.
    pub(super) first: usize,
    pub(super) last: usize,
}

/// The alignment of a word's letters with the text.
pub(super) struct Alignment {
    pub(super) groups: Vec<Group>,
    /// With all repetitions of the first and last letters.
    pub(super) first: usize,
    pub(super) last: usize,
    /// With as many as the word has.
    pub(super) core_first: usize,
    pub(super) core_last: usize,
}

/// The letters around a match, up to the next gap on each side. The match is `first..=last` of them.
pub(super) struct Context {
    pub(super) letters: Vec<char>,
    pub(super) first: usize,
    pub(super) last: usize,
}

impl<'text> Candidate<'text> {
    pub(super) fn letter(&self, index: usize) -> &'text Letter {
        #[cfg(test)]
        VISITS.set(VISITS.get() + 1);
        &self.page.letters[index]
    }

    pub(super) fn align(&self) -> Option<Alignment> {
        let mut groups = self.word_groups();
        let first_run = (self.last_run + 1).checked_sub(groups.len())?;
        let runs = &self.page.runs[first_run..=self.last_run];
        for (group, run) in groups.iter_mut().zip(runs) {
            if run.last - run.first + 1 < group.count {
                return None;
            }
            (group.first, group.last) = (run.first, run.last);
        }
        if let [only] = &mut groups[..] {
            self.trim_single(only);
        } else {
            groups.first_mut().map(|group| self.trim_front(group))?;
            groups.last_mut().map(|group| self.trim_back(group))?;
        }
        let (front, back) = (*groups.first()?, *groups.last()?);
        let core_first = if groups.len() == 1 { front.first } else { front.last + 1 - front.count };
        let core_last = back.first + back.count - 1;
        Some(Alignment { first: front.first, last: back.last, core_first, core_last, groups })
    }

    /// Groups the letters of the word as the runs of the text are grouped.
    fn word_groups(&self) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::with_capacity(self.pattern.letters.len());
        let mut last = None;
        for (start, &letter) in self.pattern.letters.iter().enumerate() {
            let symbol = match (self.page.leet, self.page.sound) {
                (true, _) => leet_class(letter),
                (_, true) => Some(pinyin_table().class(letter)),
                _ => Some(letter),
            };
            match groups.last_mut() {
                Some(group) if last == symbol && (self.page.leet || class_of(letter) != LetterClass::Digit) => {
                    group.count += 1;
                }
                _ => groups.push(Group { start, count: 1, first: 0, last: 0 }),
            }
            last = symbol;
        }
        groups
    }

    /// Keeps the last part without gaps, so that "best casino" does not extend into a word before it.
    fn trim_front(&self, group: &mut Group) {
        let mut first = group.last;
        while first > group.first && !self.letter(first).gap.is_open() {
            first -= 1;
        }
        group.first = first.min(group.last + 1 - group.count);
    }

    fn trim_back(&self, group: &mut Group) {
        let piece = self.piece_end(group.first, group.last);
        group.last = piece.max(group.first + group.count - 1);
    }

    /// A word of one repeated letter gets the first sufficiently long part without gaps, or else everything.
    fn trim_single(&self, group: &mut Group) {
        let mut start = group.first;
        while start <= group.last {
            let end = self.piece_end(start, group.last);
            if end + 1 - start >= group.count {
                (group.first, group.last) = (start, end);
                return;
            }
            start = end + 1;
        }
    }

    pub(super) fn piece_end(&self, start: usize, limit: usize) -> usize {
        let gap = (start + 1..=limit).find(|&index| self.letter(index).gap.is_open());
        gap.map_or(limit, |index| index - 1)
    }
}

/// Returns true if the letter belongs to a script with spaces between words, or is a digit.
pub(super) fn is_spaced(letter: &Letter) -> bool {
    letter.class != LetterClass::Ideographic
}
