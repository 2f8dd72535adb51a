//! The symbols of a matcher: a number for each character, equal for equivalent characters.
//!
//! The low bits of an entry are the symbol, the high bits are flags, so that a scan needs one lookup per character.

use std::{cmp::Reverse, collections::HashMap};

use super::{
    code_point_table::CodePointTable,
    confusables::leet_class,
    emoji_letters, emoji_names,
    folding::{Fold, LetterClass, class_of, folding},
    letters::leet_signs,
    lexicon::Lexicon,
    pinyin::{has_sound, pinyin_table},
    readings::{self, Filler},
    similar_characters,
    split_characters::split_characters,
};

/// The equivalence of letters in a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Equivalence {
    Plain,
    Leet,
    Sound,
}

pub(super) const SYMBOL: u32 = (1 << 20) - 1;
/// A letter that occurs in no word.
pub(super) const UNKNOWN: u32 = 0;
/// Not a letter.
pub(super) const SKIPPED: u32 = 1;
/// A character that folds to several letters.
pub(super) const SEVERAL: u32 = 2;
pub(super) const FIRST_SYMBOL: u32 = 3;
/// A character that resembles a letter that occurs in some word.
pub(super) const LOOKALIKE: u32 = 1 << 20;
/// A character with a second spelling.
pub(super) const RESPELLED: u32 = 1 << 21;
/// A character that may be a filler between Han characters, or a symbol that may separate one from them.
pub(super) const FILLER: u32 = 1 << 22;
/// A particle: it may be a filler, but more often is a word.
pub(super) const PARTICLE: u32 = 1 << 23;
/// A symbol whose repetitions count separately.
pub(super) const UNREPEATED: u32 = 1 << 24;
pub(super) const LATIN: u32 = 1 << 25;
pub(super) const LEET: u32 = 1 << 26;
/// The first and the second part of a letter that occurs in some word.
pub(super) const FIRST_PART: u32 = 1 << 27;
pub(super) const SECOND_PART: u32 = 1 << 28;
/// A character that combines with the one before it, or is invisible.
pub(super) const UNSEEN: u32 = 1 << 29;
/// A symbol that is a key by itself, as in 哈哈. Its repetition does not count.
pub(super) const ALONE: u32 = 1 << 30;
/// An emoji with a letter in it.
pub(super) const EMOJI_LETTER: u32 = 1 << 31;

impl Equivalence {
    /// Returns the representative of the letters equal to this one.
    pub(super) fn representative(self, letter: char) -> Option<char> {
        match self {
            Self::Plain => Some(letter),
            Self::Leet => leet_class(letter),
            Self::Sound => Some(pinyin_table().class(letter)),
        }
    }

    /// Returns true if repetition may be emphasis: not for digits, but for signs used as letters.
    fn repeats(self, letter: char) -> bool {
        self == Self::Leet || class_of(letter) != LetterClass::Digit
    }

    pub(super) fn takes(self, lexicon: &Lexicon, id: usize) -> bool {
        match self {
            Self::Plain => true,
            Self::Leet => {
                let is_latin = |letters: &[char]| letters.len() > 2 && letters.iter().all(char::is_ascii_lowercase);
                lexicon.is_listed(id) && is_latin(&lexicon.pattern(id).letters)
            }
            Self::Sound => lexicon.is_listed(id) && lexicon.is_sounding(id) && has_sound(&lexicon.pattern(id).letters),
        }
    }
}

/// Returns the letters of the words, most frequent first: small symbols for frequent letters make the automaton dense.
pub(super) fn alphabet(equivalence: Equivalence, lexicon: &Lexicon, ids: &[u32]) -> Vec<char> {
    let mut counts = HashMap::<char, u32>::new();
    for &id in ids {
        let pattern = lexicon.pattern(id as usize);
        for representative in pattern.letters.iter().filter_map(|&letter| equivalence.representative(letter)) {
            *counts.entry(representative).or_default() += 1;
        }
    }
    let mut letters: Vec<(char, u32)> = counts.into_iter().collect();
    // Equally frequent letters are sorted as well, so that the result does not depend on the order of the list.
    letters.sort_unstable_by_key(|&(letter, count)| (Reverse(count), letter));
    letters.into_iter().map(|(letter, _)| letter).collect()
}

/// Returns the entries of all characters. Particles and similar characters matter only to lists with words that are matched
/// by sound, as `is_sounding` says.
pub(super) fn symbol_table(equivalence: Equivalence, alphabet: &[char], is_sounding: bool) -> CodePointTable {
    let mut table = folding().mapped(|fold| match fold {
        None => UNKNOWN,
        Some(Fold::Letter(letter)) => UNKNOWN | nature(letter),
        Some(Fold::Letters(letters)) => letters.iter().fold(SEVERAL, |entry, &letter| entry | nature(letter)),
        Some(Fold::Mark | Fold::Invisible) => SKIPPED | UNSEEN,
        Some(Fold::Separator) => SKIPPED | FILLER,
        Some(Fold::Stop) => SKIPPED,
    });
    for letter in ('a'..='z').chain('0'..='9') {
        table.set(letter, UNKNOWN | nature(letter));
    }
    for (sign, _) in leet_signs() {
        // In the other views it stays a symbol, which may stand beside a filler: 赌a$博.
        let symbol = if equivalence == Equivalence::Leet { UNKNOWN } else { table.get(sign) };
        table.set(sign, LEET | symbol);
    }
    for (symbol, &representative) in (FIRST_SYMBOL..).zip(alphabet) {
        for letter in equals(equivalence, representative) {
            let repeats = if equivalence.repeats(letter) { 0 } else { UNREPEATED };
            let entry = symbol | repeats | nature(letter);
            table.set(letter, entry);
            folding().sources_of(letter).for_each(|source| table.set(source, entry));
        }
    }
    if equivalence == Equivalence::Plain {
        mark_parts(&mut table);
        emoji_letters::signs().for_each(|sign| table.set(sign, table.get(sign) | EMOJI_LETTER));
        let named = emoji_names::signs().filter(|_| is_sounding);
        readings::respelled().chain(named).for_each(|sign| table.set(sign, table.get(sign) | RESPELLED));
        for (letter, filler) in readings::fillers().filter(|&(_, filler)| is_sounding || filler == Filler::Stroke) {
            let flag = if filler == Filler::Particle { PARTICLE } else { FILLER };
            table.set(letter, table.get(letter) | flag);
        }
        for (similar, letter) in similar_characters::pairs().filter(|_| is_sounding) {
            if table.get(letter) & SYMBOL >= FIRST_SYMBOL {
                table.set(similar, table.get(similar) | LOOKALIKE);
            }
        }
    }
    table
}

/// Marks the symbols that are keys by themselves.
pub(super) fn mark_lone_symbols(table: &mut CodePointTable, keys: &[&[u32]]) {
    let alone: Vec<u32> = keys.iter().filter(|key| key.len() == 1).map(|key| key[0]).collect();
    if !alone.is_empty() {
        table.update(|entry| if alone.binary_search(&(entry & SYMBOL)).is_ok() { entry | ALONE } else { entry });
    }
}

/// Marks the parts of letters that occur in words.
fn mark_parts(table: &mut CodePointTable) {
    let wanted: Vec<_> = split_characters().of_letters(|whole| table.get(whole) & SYMBOL >= FIRST_SYMBOL).collect();
    let mut mark = |letter: char, part: u32| {
        table.set(letter, table.get(letter) | part);
        for source in folding().sources_of(letter) {
            table.set(source, table.get(source) | part);
        }
    };
    for (first, second) in wanted {
        mark(first, FIRST_PART);
        mark(second, SECOND_PART);
    }
}

/// Returns the letters with this representative, including signs that are letters in this view.
fn equals(equivalence: Equivalence, representative: char) -> impl Iterator<Item = char> {
    let signs = (equivalence == Equivalence::Leet).then(|| leet_signs().map(|(sign, plain)| (sign, leet_class(plain))));
    let others = ('a'..='z').chain('0'..='9').map(|letter| (letter, leet_class(letter)));
    let others = (equivalence == Equivalence::Leet).then_some(others);
    let sounding = (equivalence == Equivalence::Sound).then(|| pinyin_table().letters_of(representative));
    let sounding = sounding.into_iter().flatten().map(move |letter| (letter, Some(representative)));
    let alike = others.into_iter().flatten().chain(signs.into_iter().flatten()).chain(sounding);
    std::iter::once(representative).chain(
        alike
            .filter(move |&(letter, class)| letter != representative && class == Some(representative))
            .map(|(letter, _)| letter),
    )
}

fn nature(letter: char) -> u32 {
    match letter {
        'a'..='z' => LATIN | FILLER,
        '0'..='9' => LEET | FILLER,
        '!' | '@' | '$' | '|' | '+' | '€' | '！' | '＠' | '＄' | '﹩' | '｜' | '＋' => LEET,
        _ => 0,
    }
}
