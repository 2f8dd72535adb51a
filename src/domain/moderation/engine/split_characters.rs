//! Characters split into their parts: 女干 for 奸.
//!
//! The text is recombined instead of splitting the words. Splitting would multiply the words, while a text has few such
//! pairs and almost none that form a letter of a listed word.

use std::{collections::HashMap, sync::LazyLock};

use super::{
    dictionary::dictionary,
    folding::{Fold, folding},
    letters::Letter,
};

const PARTS: &str = include_str!("../../../../assets/character-parts.tsv");

/// Pairs of folded letters, and the character that each pair resembles.
pub(super) struct SplitCharacters(HashMap<(char, char), char>);

/// Returns the table of the process.
pub(super) fn split_characters() -> &'static SplitCharacters {
    static TABLE: LazyLock<SplitCharacters> = LazyLock::new(SplitCharacters::read);
    &TABLE
}

impl SplitCharacters {
    fn read() -> Self {
        let mut characters = Self(HashMap::new());
        PARTS.lines().filter(|line| !line.starts_with('#')).for_each(|line| characters.read_line(line));
        characters
    }

    fn read_line(&mut self, line: &str) {
        let Some((whole, splits)) = line.split_once('\t') else { return };
        let Some(whole) = whole.chars().next().and_then(folded) else { return };
        for split in splits.split(' ') {
            let mut letters = split.chars().filter_map(folded);
            if let (Some(first), Some(second)) = (letters.next(), letters.next())
                // Folding can turn a part into its whole; then nothing is split.
                && first != whole
                && second != whole
            {
                // The first character counts if two have the same parts.
                self.0.entry((first, second)).or_insert(whole);
            }
        }
    }

    /// Returns the parts of all characters that `is_wanted` accepts.
    pub(super) fn of_letters(&self, is_wanted: impl Fn(char) -> bool) -> impl Iterator<Item = (char, char)> {
        self.0.iter().filter(move |(_, whole)| is_wanted(**whole)).map(|(parts, _)| *parts)
    }

    /// Returns the character that two adjacent ones resemble, unless they are a word themselves.
    pub(super) fn whole_of_characters(&self, first: char, second: char) -> Option<char> {
        self.whole_of(folded(first)?, folded(second)?)
    }

    fn whole_of(&self, first: char, second: char) -> Option<char> {
        let whole = *self.0.get(&(first, second))?;
        (!dictionary().contains(&[first, second])).then_some(whole)
    }

    /// Recombines pairs of parts, and marks the recombined letters. Pairs that are a word themselves, such as 女子, stay
    /// as they are. Where pairs overlap, the first one counts, or with `later` the second.
    ///
    /// Does not depend on the listed words, so that a longer list never finds less.
    pub(super) fn recombine(&self, letters: &[Letter], later: bool) -> (Vec<Letter>, Vec<bool>) {
        let (mut whole, mut is_made) = (Vec::with_capacity(letters.len()), Vec::with_capacity(letters.len()));
        let mut index = 0;
        // In a chain of overlapping pairs only the first pair is skipped.
        let mut has_yielded = !later;
        while index < letters.len() {
            let overlaps = self.whole_at(letters, index + 1).is_some();
            match self.whole_at(letters, index) {
                Some(made) if has_yielded || !overlaps => {
                    whole.push(made);
                    is_made.push(true);
                    has_yielded = !later || overlaps;
                    index += 2;
                }
                pair => {
                    whole.push(letters[index]);
                    is_made.push(false);
                    has_yielded = !later || pair.is_some();
                    index += 1;
                }
            }
        }
        (whole, is_made)
    }

    /// Returns the letter that this one and the next form together.
    fn whole_at(&self, letters: &[Letter], index: usize) -> Option<Letter> {
        let (first, second) = (letters.get(index)?, letters.get(index + 1)?);
        if second.gap.is_open() {
            return None;
        }
        let value = self.whole_of(first.value, second.value)?;
        Some(Letter { value, end: second.end, ..*first })
    }

    /// Returns true if pairs overlap, so that there are two ways to recombine the text.
    pub(super) fn overlap(&self, letters: &[Letter]) -> bool {
        (0..letters.len())
            .any(|index| self.whole_at(letters, index).is_some() && self.whole_at(letters, index + 1).is_some())
    }
}

fn folded(character: char) -> Option<char> {
    match folding().fold(character) {
        Fold::Letter(letter) => Some(letter),
        _ => None,
    }
}
