//! Decides which gaps inside a match are a disguise, and which are spaces between words.

use std::ops::Range;

use super::{
    candidate::{Alignment, Candidate, Context, DOUBLING_LENGTH, is_spaced},
    dictionary::{Listed, dictionary},
    folding::{LetterClass, class_of},
    letters::{Letter, piece_around},
    segmentation::{CONTEXT_LENGTH, TextWords, WordCut},
    spellings::numeral,
    types::{ContentType, MatchWay},
};

/// Maximum visible separators in one gap of a word outside nicknames.
const MAX_GAP: u8 = 6;

/// Words before a thing that is offered or wanted.
const TRADE: &[&str] = &["卖", "买", "购", "售", "贩", "批发", "供应", "求购", "转让", "出手"];

impl Candidate<'_> {
    pub(super) fn has_allowed_spaced_gaps(&self, alignment: &Alignment) -> bool {
        let open: Vec<usize> = (alignment.first + 1..=alignment.last)
            .filter(|&index| self.is_spaced_junction(index) && self.is_open(alignment, index))
            .collect();
        if open.is_empty() {
            return true;
        }
        let is_letter_spaced = self.are_groups_apart(alignment, |index| self.is_spaced_junction(index));
        if self.pattern.letters.iter().all(|&letter| class_of(letter) == LetterClass::Digit) {
            return self.has_allowed_digit_gaps(&open, is_letter_spaced);
        }
        if is_letter_spaced && self.is_inside_letter_spacing(alignment) {
            return false;
        }
        if is_letter_spaced && self.is_lone_pair(alignment) && !self.letter(alignment.last).gap.has_stop() {
            return true;
        }
        // A single gap, as in "a ss", is common in English; two gaps are not.
        let gaps = (alignment.first + 1..=alignment.last).filter(|&index| self.letter(index).gap.is_open());
        (is_letter_spaced && gaps.count() > 1) || self.has_only_symbol_gaps(&open)
    }

    /// Returns true if the two letters of a short name (v x, Q Q) are inside Chinese text and not in a sequence of
    /// Latin words.
    fn is_lone_pair(&self, alignment: &Alignment) -> bool {
        let before = alignment.first.checked_sub(1).map(|index| self.letter(index));
        let after = self.page.letters.get(alignment.last + 1);
        self.pattern.letters.len() == 2
            && before.is_none_or(|letter| letter.class != LetterClass::Alphabetic)
            && after.is_none_or(|letter| {
                let follows = letter.class == LetterClass::Digit && !letter.gap.is_open();
                letter.class != LetterClass::Alphabetic && !follows
            })
    }

    fn is_spaced_junction(&self, index: usize) -> bool {
        is_spaced(self.letter(index - 1)) && is_spaced(self.letter(index))
    }

    /// Decides on gaps in a number. Short numbers with a point or a dash inside are other numbers.
    fn has_allowed_digit_gaps(&self, open: &[usize], is_letter_spaced: bool) -> bool {
        match self.pattern.letters.len() {
            0..=3 => false,
            4..=6 => is_letter_spaced,
            _ => open.iter().all(|&index| self.letter(index).gap.size <= 2 && !self.letter(index).gap.has_stop()),
        }
    }

    /// Returns true if only symbols disguise the word. Spaces separate words, except in nicknames, which are too short
    /// for prose.
    fn has_only_symbol_gaps(&self, open: &[usize]) -> bool {
        let gaps = || open.iter().map(|&index| (index, self.letter(index).gap));
        if self.page.content_type == ContentType::Nickname {
            return self.pattern.letters.len() >= DOUBLING_LENGTH || gaps().all(|(_, gap)| !gap.has_space);
        }
        gaps().all(|(index, gap)| {
            let separates = gap.has_space || gap.has_stop() || gap.size > MAX_GAP;
            let contracts = gap.has_apostrophe && self.is_contraction(index);
            !separates && !contracts
        })
    }

    /// Returns true if the letters before the next gap are the end of a contraction: she'll, they've, it's.
    fn is_contraction(&self, index: usize) -> bool {
        let end = self.piece_end(index, (index + 3).min(self.page.letters.len() - 1));
        let tail: String = self.page.letters[index..=end].iter().map(|letter| letter.value).collect();
        matches!(tail.as_str(), "s" | "t" | "d" | "m" | "ll" | "re" | "ve")
    }

    /// Returns true if the match is a part of a longer sequence of single letters, as "a s s" is in "c l a s s y".
    fn is_inside_letter_spacing(&self, alignment: &Alignment) -> bool {
        let before = alignment.first.checked_sub(1).filter(|&index| self.is_lone_letter(index));
        let after = Some(alignment.last + 1).filter(|&index| self.is_lone_letter(index));
        let is_word = |index: usize| matches!(self.letter(index).value, 'a' | 'i');
        before
            .is_some_and(|index| !is_word(index) || index.checked_sub(1).is_some_and(|next| self.is_lone_letter(next)))
            || after.is_some_and(|index| !is_word(index) || self.is_lone_letter(index + 1))
    }

    fn is_lone_letter(&self, index: usize) -> bool {
        let Some(letter) = self.page.letters.get(index) else {
            return false;
        };
        let next_is_apart = self.page.letters.get(index + 1).is_none_or(|next| next.gap.is_open() || !is_spaced(next));
        let is_apart = index == 0 || letter.gap.is_open() || !is_spaced(self.letter(index - 1));
        letter.class == LetterClass::Alphabetic && is_apart && next_is_apart
    }

    pub(super) fn has_allowed_ideographic_gaps(&self, alignment: &Alignment) -> bool {
        let open: Vec<usize> = (alignment.first + 1..=alignment.last)
            .filter(|&index| !self.is_spaced_junction(index) && self.is_open(alignment, index))
            .collect();
        if open.is_empty() {
            return true;
        }
        let is_nickname = self.page.content_type == ContentType::Nickname;
        let is_wide = open.iter().any(|&index| self.letter(index).gap.size > MAX_GAP);
        let has_stop = open.iter().any(|&index| self.letter(index).gap.has_stop());
        (is_nickname || !is_wide)
            && (!has_stop || self.may_cross_stops(alignment))
            && !self.is_joined_outside(alignment, &open)
    }

    /// Returns true if marks between clauses count as a disguise.
    fn may_cross_stops(&self, alignment: &Alignment) -> bool {
        let is_whole_text = alignment.first == 0 && alignment.last + 1 == self.page.letters.len();
        let is_scattered = self.are_groups_apart(alignment, |_| true) && self.pattern.letters.len() > 2;
        let stands_apart = || {
            (alignment.first == 0 || self.letter(alignment.first).gap.is_open())
                && self.page.letters.get(alignment.last + 1).is_none_or(|letter| letter.gap.is_open())
        };
        match self.page.content_type {
            ContentType::Nickname => true,
            ContentType::Signature => is_whole_text || is_scattered || stands_apart(),
            ContentType::Question | ContentType::Answer => is_whole_text || is_scattered,
        }
    }

    /// Returns true if letters of the match beside a gap belong to a common word outside it: 赌 博物馆.
    fn is_joined_outside(&self, alignment: &Alignment, open: &[usize]) -> bool {
        open.iter().any(|&gap| {
            let ends_outside = (gap..gap + 4).any(|end| end > alignment.last && self.is_common_word(gap, end));
            let begins_outside = (gap.saturating_sub(4)..gap)
                .any(|start| start < alignment.first && self.is_common_word(start, gap - 1));
            ends_outside || begins_outside
        })
    }

    fn is_common_word(&self, start: usize, end: usize) -> bool {
        let Some(letters) = self.page.letters.get(start..=end) else {
            return false;
        };
        let is_whole = letters.iter().skip(1).all(|letter| !letter.gap.is_open());
        is_whole && dictionary().contains(&letters.iter().map(|letter| letter.value).collect::<Vec<_>>())
    }

    /// Returns how the words around a match without gaps cut it. A word of trade before it raises doubts about words
    /// that cut it: 出售大麻烦.
    pub(super) fn cut(&self, alignment: &Alignment, words: &TextWords<'_>, doubt: i32) -> WordCut {
        let Some(part) = self.part_around(alignment) else { return WordCut::None };
        let (first, last) = (alignment.core_first, alignment.core_last);
        let word = &self.pattern.letters;
        let cut = if self.has_numerals() {
            let letters: Vec<Letter> = self.page.letters[part.clone()].iter().map(with_numeral).collect();
            let listed = Listed { first: first - part.start, last: last - part.start };
            TextWords::new(&letters).cut(&(0..letters.len()), listed, word, doubt)
        } else {
            words.cut(&part, Listed { first, last }, word, doubt)
        };
        let is_stretched = (alignment.first, alignment.last) != (first, last);
        match cut {
            WordCut::Doubtful if is_stretched => WordCut::None,
            WordCut::Certain if is_traded(&self.page.letters[part.start..first]) => WordCut::Doubtful,
            cut => cut,
        }
    }

    /// Returns the letters around a match of Han characters without gaps.
    pub(super) fn context(&self, alignment: &Alignment) -> Option<Context> {
        let part = self.part_around(alignment)?;
        let start = part.start;
        let value = |letter: &Letter| if self.has_numerals() { with_numeral(letter).value } else { letter.value };
        let letters = self.page.letters[part].iter().map(value).collect();
        Some(Context { letters, first: alignment.core_first - start, last: alignment.core_last - start })
    }

    /// Returns the range of the letters around a match of Han characters without gaps.
    fn part_around(&self, alignment: &Alignment) -> Option<Range<usize>> {
        let (first, last) = (alignment.core_first, alignment.core_last);
        let is_ideographic = |index: usize| self.letter(index).class == LetterClass::Ideographic;
        if first == last || !(is_ideographic(first) || is_ideographic(last)) {
            return None;
        }
        if (first + 1..=last).any(|index| self.letter(index).gap.is_open()) {
            return None;
        }
        Some(piece_around(self.page.letters, first, last, CONTEXT_LENGTH))
    }

    /// Returns true for a word with digits for numerals, which the dictionary has with the numerals.
    fn has_numerals(&self) -> bool {
        self.pattern.way == Some(MatchWay::Letters)
    }

    /// Returns true if there is a gap before this letter that the listed word does not have.
    fn is_open(&self, alignment: &Alignment, index: usize) -> bool {
        self.letter(index).gap.is_open() && !self.is_own_gap(alignment, index)
    }

    /// Returns true if each letter of the match, with its repetitions, is isolated at the junctions that `concerns`
    /// selects.
    fn are_groups_apart(&self, alignment: &Alignment, concerns: impl Fn(usize) -> bool) -> bool {
        let mut junctions = alignment.groups.iter().skip(1).map(|group| group.first).filter(|&index| concerns(index));
        junctions.all(|index| self.letter(index).gap.is_open())
    }
}

/// Returns true if a text before a word ends with a word of trade.
fn is_traded(before: &[Letter]) -> bool {
    let values = || before.iter().rev().map(|letter| letter.value);
    TRADE.iter().any(|word| values().take(word.chars().count()).eq(word.chars().rev()))
}

/// Returns the letter, a digit as a numeral.
fn with_numeral(letter: &Letter) -> Letter {
    Letter { value: letter.value.to_digit(10).map_or(letter.value, numeral), ..*letter }
}
