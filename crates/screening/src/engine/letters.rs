//! A text as a sequence of folded letters, each with its position in the original and the gap before it.
//!
//! Built only for texts in which the automaton found something; most texts need none.

use std::{borrow::Cow, cell::OnceCell, ops::Range};

use super::{
    confusables::leet_class,
    folding::{Fold, LetterClass, class_of, folding},
};

/// A letter of a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Letter {
    pub(super) value: char,
    pub(super) class: LetterClass,
    pub(super) gap: Gap,
    /// The byte offset of the original character.
    pub(super) start: u32,
    pub(super) end: u32,
}

impl Letter {
    /// Returns true if the text has another character in place of this letter, apart from case, width and traditional
    /// script, or marks on it.
    pub(super) fn is_styled(&self, text: &str) -> bool {
        let mut written = text[self.start as usize..self.end as usize].chars();
        let Some(character) = written.next() else { return false };
        if character == self.value {
            return written.next().is_some();
        }
        let plain = match character {
            '\u{FF01}'..='\u{FF5E}' => char::from_u32(character as u32 - 0xFEE0).unwrap_or(character),
            _ => character,
        };
        let is_han = |letter| matches!(letter, '\u{3400}'..='\u{9FFF}' | '\u{20000}'..='\u{323FF}');
        let is_plain = plain.to_lowercase().eq(std::iter::once(self.value)) || is_han(plain) && is_han(self.value);
        !is_plain || written.next().is_some()
    }
}

/// The gap between a letter and the one before it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Gap {
    /// Visible separators; a run of equal ones counts once.
    pub(super) size: u8,
    pub(super) stop: Stop,
    pub(super) has_space: bool,
    pub(super) has_apostrophe: bool,
}

/// The strongest break in a gap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stop {
    #[default]
    None,
    LineBreak,
    ClauseMark,
}

impl Gap {
    pub(super) fn has_stop(self) -> bool {
        self.stop != Stop::None
    }

    pub(super) fn is_open(self) -> bool {
        self.size > 0
    }
}

/// A run of letters that compare equal, with any gaps between them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) first: usize,
    pub(super) last: usize,
    pub(super) symbol: u32,
}

/// Reads a text. With `signs`, signs used as letters are letters too.
pub(super) fn read(text: &str, signs: bool) -> Vec<Letter> {
    let folding = folding();
    let mut reader = Reader {
        letters: Vec::with_capacity(text.chars().count()),
        gap: Gap::default(),
        last: None,
        place: Place::default(),
    };
    for (start, character) in text.char_indices() {
        reader.place = Place { start: start as u32, end: (start + character.len_utf8()) as u32 };
        reader.read(folding.fold(character), character, signs);
    }
    reader.letters
}

/// A text with its letters.
pub(super) struct LetteredText<'text> {
    text: Cow<'text, str>,
    letters: OnceCell<Vec<Letter>>,
    letters_and_signs: OnceCell<Vec<Letter>>,
}

impl<'text> LetteredText<'text> {
    pub(super) fn new(text: impl Into<Cow<'text, str>>) -> Self {
        Self { text: text.into(), letters: OnceCell::new(), letters_and_signs: OnceCell::new() }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn letters(&self) -> &[Letter] {
        self.letters.get_or_init(|| read(&self.text, false))
    }

    /// Returns the letters, and the signs that are used as letters.
    pub(super) fn letters_and_signs(&self) -> &[Letter] {
        self.letters_and_signs.get_or_init(|| read(&self.text, true))
    }
}

/// Returns the letters around `first..=last` of a text up to the next gap on each side, and `reach` letters at most.
pub(super) fn piece_around(letters: &[Letter], first: usize, last: usize, reach: usize) -> Range<usize> {
    let is_open = |index: &usize| letters[*index].gap.is_open();
    let least = first.saturating_sub(reach);
    let start = (least + 1..=first).rev().find(is_open).unwrap_or(least);
    let most = (last + 1 + reach).min(letters.len());
    start..(last + 1..most).find(is_open).unwrap_or(most)
}

/// Groups letters by their symbols in the automaton. Symbols for which `repeats` is false, and unknown symbols, stay
/// single.
pub(super) fn runs(letters: &[Letter], symbol_of: impl Fn(&Letter) -> (u32, bool)) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::with_capacity(letters.len());
    for (index, letter) in letters.iter().enumerate() {
        let (symbol, repeats) = symbol_of(letter);
        match runs.last_mut() {
            Some(run) if repeats && run.symbol == symbol => run.last = index,
            _ => runs.push(Run { first: index, last: index, symbol }),
        }
    }
    runs
}

#[derive(Clone, Copy, Default)]
struct Place {
    start: u32,
    end: u32,
}

struct Reader {
    letters: Vec<Letter>,
    gap: Gap,
    /// The last separator of the gap.
    last: Option<char>,
    place: Place,
}

impl Reader {
    fn read(&mut self, fold: Fold<'_>, character: char, signs: bool) {
        match fold {
            Fold::Letter(letter) => self.push(letter, class_of(letter)),
            Fold::Letters(letters) => letters.iter().for_each(|&letter| self.push(letter, class_of(letter))),
            Fold::Separator | Fold::Stop if signs && leet_sign(character).is_some() => {
                self.push(leet_sign(character).unwrap_or(character), LetterClass::Sign);
            }
            Fold::Separator => self.separate(character, false),
            Fold::Stop => self.separate(character, true),
            Fold::Mark => self.extend_last_letter(),
            Fold::Invisible => {}
        }
    }

    fn push(&mut self, value: char, class: LetterClass) {
        let Place { start, end } = self.place;
        let gap = std::mem::take(&mut self.gap);
        self.last = None;
        self.letters.push(Letter { value, class, gap, start, end });
    }

    fn separate(&mut self, character: char, is_stop: bool) {
        let is_space = character.is_whitespace();
        // A full stop joins letters (`t.me`) unless a space follows.
        let ends_sentence = is_space && self.last == Some('.');
        let stop = match (is_stop, is_space) {
            _ if ends_sentence => Stop::ClauseMark,
            (true, false) => Stop::ClauseMark,
            (true, true) => Stop::LineBreak,
            (false, _) => Stop::None,
        };
        self.gap.stop = self.gap.stop.max(stop);
        self.gap.has_space |= is_space;
        self.gap.has_apostrophe |= matches!(character, '\'' | '’' | 'ʼ' | '＇' | '‘' | '`');
        if self.last != Some(character) {
            self.gap.size = self.gap.size.saturating_add(1);
            self.last = Some(character);
        }
    }

    /// Extends the last letter by its marks, so that masking the letter masks them too.
    fn extend_last_letter(&mut self) {
        if !self.gap.is_open()
            && let Some(letter) = self.letters.last_mut()
            && letter.end == self.place.start
        {
            letter.end = self.place.end;
        }
    }
}

/// Returns the plain form of a sign that may replace a letter.
pub(super) fn leet_sign(character: char) -> Option<char> {
    let plain = match character {
        '！' => '!',
        '＠' => '@',
        '＄' | '﹩' => '$',
        '｜' => '|',
        '＋' => '+',
        other => other,
    };
    (matches!(plain, '!' | '@' | '$' | '|' | '+' | '€') && leet_class(plain).is_some()).then_some(plain)
}

/// Returns all signs of [`leet_sign`] with their plain forms.
pub(super) fn leet_signs() -> impl Iterator<Item = (char, char)> {
    "!@$|+€！＠＄﹩｜＋".chars().filter_map(|sign| Some((sign, leet_sign(sign)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_have_their_position_and_gap() {
        let letters = read("赌\u{336} ~~博。ok", false);
        let places: Vec<_> =
            letters.iter().map(|letter| (letter.value, letter.start, letter.end, letter.gap.size)).collect();
        assert_eq!(places, [('赌', 0, 5, 0), ('博', 8, 11, 2), ('o', 14, 15, 1), ('k', 15, 16, 0)]);
        assert!(letters[1].gap.has_space && !letters[1].gap.has_stop() && letters[2].gap.has_stop());
    }

    #[test]
    fn letters_of_one_character_share_its_position() {
        let letters = read("㎏", false);
        assert_eq!((letters.len(), letters[1].start, letters[1].end), (2, 0, 3));
    }

    #[test]
    fn runs_span_gaps() {
        let letters = read("赌 赌博", false);
        let runs = runs(&letters, |letter| (letter.value as u32, true));
        assert_eq!((runs.len(), runs[0].last), (2, 1));
    }
}
