//! Characters split into their parts: 女干 for 奸.
//!
//! The text is recombined instead of splitting the words: words would multiply by their spellings, while a text has few
//! such pairs, and nearly always none that forms a letter of a listed word.

use std::sync::LazyLock;

use super::{
    dictionary::dictionary,
    folding::{Fold, folding},
    letters::Letter,
};

const PARTS: &str = include_str!("../../../../assets/character-parts.tsv");

/// Pairs of folded letters, and the letter that they look like.
pub(super) struct Parts {
    /// Open addressing; an empty slot has no whole.
    slots: Vec<Pair>,
    /// A filter that rejects most pairs without a lookup.
    filter: Vec<u64>,
}

#[derive(Clone, Copy)]
struct Pair {
    first: char,
    second: char,
    whole: Option<char>,
}

const SLOTS: usize = 1 << 15;
const FILTER_BITS: usize = 1 << 17;

/// The one table of the process.
pub(super) fn parts() -> &'static Parts {
    static TABLE: LazyLock<Parts> = LazyLock::new(Parts::read);
    &TABLE
}

impl Parts {
    fn read() -> Self {
        let empty = Pair { first: '\0', second: '\0', whole: None };
        let mut parts = Self { slots: vec![empty; SLOTS], filter: vec![0; FILTER_BITS / 64] };
        PARTS.lines().filter(|line| !line.starts_with('#')).for_each(|line| parts.read_line(line));
        parts
    }

    fn read_line(&mut self, line: &str) {
        let Some((whole, splits)) = line.split_once('\t') else { return };
        let Some(whole) = whole.chars().next().and_then(folded) else { return };
        for split in splits.split(' ') {
            let mut letters = split.chars().filter_map(folded);
            if let (Some(first), Some(second)) = (letters.next(), letters.next())
                // Folding can make a part of its whole: then nothing is taken apart.
                && first != whole
                && second != whole
            {
                self.insert(first, second, whole);
            }
        }
    }

    /// Keeps the first whole of a pair that makes two.
    fn insert(&mut self, first: char, second: char, whole: char) {
        let hash = hash_of(first, second);
        let bit = hash as usize % FILTER_BITS;
        self.filter[bit / 64] |= 1 << (bit % 64);
        let slot = self.slot_of(hash, first, second);
        let whole = self.slots[slot].whole.unwrap_or(whole);
        self.slots[slot] = Pair { first, second, whole: Some(whole) };
    }

    /// Returns the slot of this pair, or the free slot for it.
    fn slot_of(&self, hash: u64, first: char, second: char) -> usize {
        let mut slot = (hash >> 20) as usize % SLOTS;
        loop {
            let pair = &self.slots[slot];
            if pair.whole.is_none() || (pair.first == first && pair.second == second) {
                return slot;
            }
            slot = (slot + 1) % SLOTS;
        }
    }

    /// The parts of all letters for which this holds.
    pub(super) fn of_letters(&self, is_wanted: impl Fn(char) -> bool) -> impl Iterator<Item = (char, char)> {
        let is_wanted = move |pair: &&Pair| pair.whole.is_some_and(&is_wanted);
        self.slots.iter().filter(is_wanted).map(|pair| (pair.first, pair.second))
    }

    /// Returns the character that two adjacent characters form, unless they are a word of their own.
    pub(super) fn whole_of_characters(&self, first: char, second: char) -> Option<char> {
        self.whole_of(folded(first)?, folded(second)?)
    }

    fn whole_of(&self, first: char, second: char) -> Option<char> {
        let hash = hash_of(first, second);
        let bit = hash as usize % FILTER_BITS;
        if self.filter[bit / 64] >> (bit % 64) & 1 == 0 {
            return None;
        }
        let whole = self.slots[self.slot_of(hash, first, second)].whole?;
        (!dictionary().contains(&[first, second])).then_some(whole)
    }

    /// The text with pairs of parts put together, and which letters were made of them. Pairs that are a word of their
    /// own, such as 女子, are left alone. Where pairs overlap, the first of them counts, or with `later` the second.
    ///
    /// Which words are listed plays no part in it, so that a longer list never finds less.
    pub(super) fn put_together(&self, letters: &[Letter], later: bool) -> (Vec<Letter>, Vec<bool>) {
        let (mut whole, mut is_made) = (Vec::with_capacity(letters.len()), Vec::with_capacity(letters.len()));
        let mut index = 0;
        // In a chain of overlapping pairs only the first one yields.
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

    /// Returns true if some pairs overlap, so that there are two ways to recombine the text.
    pub(super) fn overlap(&self, letters: &[Letter]) -> bool {
        (0..letters.len())
            .any(|index| self.whole_at(letters, index).is_some() && self.whole_at(letters, index + 1).is_some())
    }
}

fn hash_of(first: char, second: char) -> u64 {
    let product = (u64::from(first) << 32 | u64::from(second)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    product >> 24 ^ product >> 41
}

fn folded(character: char) -> Option<char> {
    match folding().fold(character) {
        Fold::Letter(letter) => Some(letter),
        _ => None,
    }
}
