//! Characters split into their parts: 女干 for 奸.
//!
//! The text is recombined instead of splitting the words. Splitting would multiply the words, while a text has few such
//! pairs and almost none that form a letter of a listed word.

use std::sync::LazyLock;

use super::{
    dictionary::dictionary,
    fixed_map::FixedMap,
    folding::{Fold, folding},
    letters::Letter,
};

const PARTS: &str = include_str!("../../../../assets/character-parts.tsv");

/// Pairs of folded letters, and the character that each pair resembles.
pub(super) struct SplitCharacters(FixedMap<(char, char), char>);

/// Returns the table of the process.
pub(super) fn split_characters() -> &'static SplitCharacters {
    static TABLE: LazyLock<SplitCharacters> = LazyLock::new(SplitCharacters::read);
    &TABLE
}

impl SplitCharacters {
    fn read() -> Self {
        let mut characters = Self(FixedMap::default());
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

    /// Returns the pairs of parts in a text.
    pub(super) fn pairs_in(&self, letters: &[Letter]) -> PartPairs {
        let whole_at = |pair: &[Letter]| match pair {
            [first, second] if !second.gap.is_open() => self.whole_of(first.value, second.value),
            _ => None,
        };
        PartPairs(letters.windows(2).map(whole_at).collect())
    }
}

/// For each letter of a text, the one that it forms with the next.
pub(super) struct PartPairs(Vec<Option<char>>);

impl PartPairs {
    pub(super) fn are_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    /// Returns true if pairs overlap, so that there are two ways to recombine the text.
    pub(super) fn overlap(&self) -> bool {
        self.0.windows(2).any(|pair| pair[0].is_some() && pair[1].is_some())
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
            let overlaps = self.made_at(index + 1).is_some();
            let made = self.made_at(index);
            match made {
                Some(value) if has_yielded || !overlaps => {
                    whole.push(Letter { value, end: letters[index + 1].end, ..letters[index] });
                    is_made.push(true);
                    has_yielded = !later || overlaps;
                    index += 2;
                }
                _ => {
                    whole.push(letters[index]);
                    is_made.push(false);
                    has_yielded = !later || made.is_some();
                    index += 1;
                }
            }
        }
        (whole, is_made)
    }

    fn made_at(&self, index: usize) -> Option<char> {
        self.0.get(index).copied().flatten()
    }
}

fn folded(character: char) -> Option<char> {
    match folding().fold(character) {
        Fold::Letter(letter) => Some(letter),
        _ => None,
    }
}
