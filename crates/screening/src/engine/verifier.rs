//! Decides if a candidate of the automaton is a match.
//!
//! The automaton ignores gaps and repetitions. All rules against false positives are applied here, and only to the few
//! candidates.

use std::ops::Range;

use super::{
    candidate::{Alignment, ByteSpan, Candidate, Context, DOUBLING_LENGTH, Group},
    dictionary::dictionary,
    folding::LetterClass,
    letters::Letter,
    segmentation::{TextWords, WordCut},
    types::MatchWay,
};

/// Letters that English often doubles, so that doubling one may yield another word (god, good).
const OFTEN_DOUBLED: &str = "bcdefglmnoprstz";

/// A verified match.
pub(super) struct Confirmed {
    pub(super) span: ByteSpan,
    pub(super) way: MatchWay,
}

impl Candidate<'_> {
    /// Returns the span of the word, and the way it was found, if it is a match. `words` are those of the page.
    pub(super) fn confirmed(&self, words: &TextWords<'_>) -> Option<Confirmed> {
        let alignment = self.align()?;
        let doubt = if self.page.sound { self.sound_doubt(&alignment)? } else { 0 };
        if !self.is_word(&alignment) {
            return None;
        }
        let cut = if self.is_emphasised(&alignment) { WordCut::None } else { self.cut(&alignment, words, doubt) };
        let way = match cut {
            WordCut::None if self.page.sound => self.sound_way(&alignment)?,
            WordCut::Doubtful if self.page.sound => self.sound_way(&alignment)?.max(MatchWay::Fuzzy),
            WordCut::None => self.way(&alignment),
            WordCut::Doubtful if self.pattern.way.is_none() && !self.page.leet => MatchWay::Fuzzy,
            WordCut::Doubtful | WordCut::Certain => return None,
        };
        if way == MatchWay::Initial && !self.is_lone_initial(&alignment) {
            return None;
        }
        Some(Confirmed { span: self.span(alignment.first, alignment.last)?, way })
    }

    /// Returns the letters of the word if only the words around it acquit it.
    pub(super) fn acquitted(&self, words: &TextWords<'_>) -> Option<Range<usize>> {
        let alignment = self.align()?;
        let doubt = if self.page.sound { self.sound_doubt(&alignment)? } else { 0 };
        let is_acquitted = self.pattern.way.is_none()
            && self.is_word(&alignment)
            && self.cut(&alignment, words, doubt) == WordCut::Certain;
        is_acquitted.then_some(alignment.first..alignment.last + 1)
    }

    fn is_word(&self, alignment: &Alignment) -> bool {
        self.is_plausibly_stretched(alignment)
            && self.has_edges(alignment.first, alignment.last)
            && self.has_allowed_spaced_gaps(alignment)
            && self.has_allowed_ideographic_gaps(alignment)
            && (!self.page.leet || self.is_leet(alignment))
    }

    /// Returns the span of the word if it is written with no disguise but folding.
    pub(super) fn confirmed_exactly(&self) -> Option<ByteSpan> {
        let alignment = self.align()?;
        let (first, last) = (alignment.core_first, alignment.core_last);
        let is_exact = alignment
            .groups
            .iter()
            .all(|group| group.first < first || group.last > last || group.count == group.last - group.first + 1)
            && self.has_edges(first, last)
            && (first + 1..=last).all(|index| !self.letter(index).gap.is_open() || self.is_own_gap(&alignment, index));
        if is_exact { self.span(first, last) } else { None }
    }

    /// Returns the way in which this view finds the word.
    fn way(&self, alignment: &Alignment) -> MatchWay {
        if let Some(way) = self.pattern.way {
            return if way == MatchWay::Sound && self.is_name(alignment) { MatchWay::Fuzzy } else { way };
        }
        if self.page.leet {
            return MatchWay::Letters;
        }
        let (first, last) = (alignment.core_first, alignment.core_last);
        let is_apart = |index: usize| {
            let (before, letter) = (self.letter(index - 1), self.letter(index));
            // Letters of one character share its position.
            letter.start > before.end && !self.is_own_gap(alignment, index)
        };
        if (first + 1..=last).any(is_apart) {
            return MatchWay::Gap;
        }
        let is_repeated = alignment.groups.iter().any(|group| group.last - group.first + 1 > group.count);
        let is_styled = (first..=last).any(|index| self.letter(index).is_styled(self.page.text));
        if is_repeated || is_styled { MatchWay::Letters } else { MatchWay::Exact }
    }

    /// Returns true if repeated letters are emphasis. A single doubled letter often yields another word: good is not
    /// god, and 你妈妈 is not 你妈.
    fn is_plausibly_stretched(&self, alignment: &Alignment) -> bool {
        let stretched = || alignment.groups.iter().filter(|group| group.last - group.first + 1 > group.count);
        let is_doubled = |group: &Group| group.count == 1 && group.last == group.first + 1;
        if self.is_emphasised(alignment) {
            return true;
        }
        if stretched().any(|group| is_doubled(group) && self.is_doubled_word(alignment, group)) {
            return false;
        }
        let mut stretched = stretched();
        match (stretched.next(), stretched.next()) {
            (Some(only), None) if is_doubled(only) => {
                self.pattern.letters.len() >= DOUBLING_LENGTH
                    || !OFTEN_DOUBLED.contains(self.pattern.letters[only.start])
            }
            _ => true,
        }
    }

    /// Returns true if every letter of the word is repeated, without gaps: 加加微微信信.
    fn is_emphasised(&self, alignment: &Alignment) -> bool {
        alignment.groups.len() > 1
            && alignment.groups.iter().all(|group| group.last - group.first + 1 > group.count)
            && (alignment.first + 1..=alignment.last).all(|index| !self.letter(index).gap.is_open())
    }

    /// Returns true if an initial and the other character of a word of two stand by themselves: d博 for 赌博, not in 3d博物馆.
    /// Longer words need no such proof.
    fn is_lone_initial(&self, alignment: &Alignment) -> bool {
        if self.pattern.letters.len() > 2 {
            return true;
        }
        let Some(Context { letters, first, last }) = self.context(alignment) else { return false };
        let is_latin = |index: usize| letters.get(index).is_some_and(char::is_ascii_alphanumeric);
        let is_joined = |edge: usize| dictionary().straddles(&letters, edge);
        !(is_latin(last + 1) || first.checked_sub(1).is_some_and(is_latin) || is_joined(first) || is_joined(last + 1))
    }

    /// Returns true if the romanisation is written like a name: two or more words, each with a capital: Zi Wei.
    fn is_name(&self, alignment: &Alignment) -> bool {
        let (start, end) = (self.letter(alignment.first).start as usize, self.letter(alignment.last).end as usize);
        let text = self.page.text;
        let is_apart = |character: char| !character.is_ascii_alphabetic();
        let is_title = |word: &str| {
            word.starts_with(|letter: char| letter.is_ascii_uppercase())
                && word.chars().skip(1).all(|letter| letter.is_ascii_lowercase())
        };
        let written = &text[start..end];
        let is_neighbour = |word: Option<&str>| word.is_some_and(|word| !word.is_empty() && is_title(word));
        let before = || text[..start].strip_suffix(' ').and_then(|rest| rest.rsplit(is_apart).next());
        let after = || text[end..].strip_prefix(' ').and_then(|rest| rest.split(is_apart).next());
        written.chars().all(|letter| letter.is_ascii_alphabetic() || matches!(letter, ' ' | '-'))
            && written.split(is_apart).all(is_title)
            && (written.contains([' ', '-']) || is_neighbour(before()) || is_neighbour(after()))
    }

    /// Checks inside the listed word only; at its edges the surrounding words decide.
    fn is_doubled_word(&self, alignment: &Alignment, group: &Group) -> bool {
        let letter = self.letter(group.first).value;
        group.first > alignment.first
            && group.last < alignment.last
            && !self.letter(group.last).gap.is_open()
            && dictionary().contains(&[letter, letter])
    }

    /// Requires a boundary next to a Latin letter or a digit at either end of the word.
    fn has_edges(&self, first: usize, last: usize) -> bool {
        let before = first.checked_sub(1).filter(|_| !self.letter(first).gap.is_open()).map(|index| self.letter(index));
        let after = self.page.letters.get(last + 1).filter(|letter| !letter.gap.is_open());
        let (front, back) = (self.letter(first), self.letter(last));
        before.is_none_or(|neighbour| self.may_neighbour(front, neighbour))
            && after.is_none_or(|neighbour| self.may_neighbour(back, neighbour))
    }

    fn may_neighbour(&self, edge: &Letter, neighbour: &Letter) -> bool {
        match edge.class {
            LetterClass::Ideographic => true,
            LetterClass::Alphabetic | LetterClass::Sign => neighbour.class != LetterClass::Alphabetic,
            LetterClass::Digit if self.page.leet => {
                !matches!(neighbour.class, LetterClass::Alphabetic | LetterClass::Digit)
            }
            LetterClass::Digit => neighbour.class != LetterClass::Digit,
        }
    }
}
