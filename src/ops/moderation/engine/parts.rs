//! Characters taken apart: 女干 for 奸.
//!
//! The text is put together again, and not the words taken apart: words would multiply by the ways to write them,
//! while a text has few such pairs, and nearly always none that makes a letter of any listed word.

use std::{collections::HashMap, sync::LazyLock};

use super::{
    dictionary::dictionary,
    folding::{Fold, folding},
    letters::Letter,
};

const PARTS: &str = include_str!("../../../../assets/character-parts.tsv");

/// Pairs of folded letters, and the letter that they look like.
pub(super) struct Parts {
    wholes: HashMap<(char, char), char>,
}

/// The one table of the process.
pub(super) fn parts() -> &'static Parts {
    static TABLE: LazyLock<Parts> = LazyLock::new(Parts::read);
    &TABLE
}

impl Parts {
    fn read() -> Self {
        let mut wholes = HashMap::new();
        for line in PARTS.lines().filter(|line| !line.starts_with('#')) {
            let Some((whole, splits)) = line.split_once('\t') else { continue };
            let Some(whole) = whole.chars().next().and_then(folded) else { continue };
            for split in splits.split(' ') {
                let mut parts = split.chars().filter_map(folded);
                if let (Some(first), Some(second)) = (parts.next(), parts.next()) {
                    wholes.entry((first, second)).or_insert(whole);
                }
            }
        }
        Self { wholes }
    }

    /// The parts of all letters for which this holds.
    pub(super) fn of_letters(&self, is_wanted: impl Fn(char) -> bool) -> impl Iterator<Item = (char, char)> {
        self.wholes.iter().filter(move |(_, whole)| is_wanted(**whole)).map(|(&parts, _)| parts)
    }

    /// The text with pairs of parts put together, and which letters were made of them. Pairs that are a word of their
    /// own, such as 女子, are left alone. Where pairs overlap, the first of them counts, or with `later` the second.
    ///
    /// Which words are listed plays no part in it, so that a longer list never finds less.
    pub(super) fn put_together(&self, letters: &[Letter], later: bool) -> (Vec<Letter>, Vec<bool>) {
        let (mut whole, mut is_made) = (Vec::with_capacity(letters.len()), Vec::with_capacity(letters.len()));
        let mut index = 0;
        // Of a chain of overlapping pairs only the first one yields.
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

    /// What the letter here and the one behind it make together.
    fn whole_at(&self, letters: &[Letter], index: usize) -> Option<Letter> {
        let (first, second) = (letters.get(index)?, letters.get(index + 1)?);
        let value = *self.wholes.get(&(first.value, second.value))?;
        let is_apart = second.gap.is_open() || dictionary().contains(&[first.value, second.value]);
        (!is_apart).then_some(Letter { value, end: second.end, end_byte: second.end_byte, ..*first })
    }

    /// Whether some pairs overlap, so that there are two ways to put the text together.
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
