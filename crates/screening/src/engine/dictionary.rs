//! A dictionary of Chinese words with their frequencies, to distinguish a listed word from adjacent innocent ones.
//!
//! Knows words of up to eight characters. It is read at first use, in the order of its file, into two arrays of four
//! megabytes together.

use std::{ops::Range, sync::LazyLock};

const WORDS: &str = include_str!("../../../../assets/han-words.txt");

/// Maximum length of a word.
pub(super) const MAX_WORD_LENGTH: usize = 8;
/// The lowest frequency class of a word that counts by itself: four occurrences. Rarer ones, among them most names, only
/// count in a segmentation.
const KNOWN_FREQUENCY: u8 = 4;

/// The frequency classes of the words that begin with a letter, by their length.
pub(super) type WordClasses = [Option<u8>; MAX_WORD_LENGTH];

/// Words with their frequency classes: twice the binary logarithm of their count.
pub(super) struct Dictionary {
    /// The letters of each word after its first one, then its class. In the order of the words.
    units: Vec<u16>,
    /// The number of units before those of each word, and of all.
    words: Vec<u32>,
    /// The number of words before those of each first letter.
    firsts: Vec<u32>,
}

/// Returns the dictionary of the process.
pub(super) fn dictionary() -> &'static Dictionary {
    static DICTIONARY: LazyLock<Dictionary> = LazyLock::new(Dictionary::read);
    &DICTIONARY
}

impl Dictionary {
    /// Returns true if these letters are a word.
    pub(super) fn contains(&self, letters: &[char]) -> bool {
        letters.len() > 1 && self.class(letters).is_some_and(is_known)
    }

    /// Returns true if a word begins before this position of a text and ends after it.
    pub(super) fn straddles(&self, text: &[char], place: usize) -> bool {
        let mut starts = place.saturating_sub(MAX_WORD_LENGTH - 1)..place;
        starts.any(|start| {
            let classes = self.classes(text[start..].iter().copied());
            classes[place - start..].iter().copied().flatten().any(is_known)
        })
    }

    pub(super) fn class(&self, letters: &[char]) -> Option<u8> {
        let length = letters.len().checked_sub(1).filter(|length| *length < MAX_WORD_LENGTH)?;
        self.classes(letters.iter().copied())[length]
    }

    /// Returns the frequency classes of the words with which a text begins. Few searches answer for most texts: few pairs
    /// of letters begin a word.
    pub(super) fn classes(&self, text: impl Iterator<Item = char>) -> WordClasses {
        let mut classes = WordClasses::default();
        let mut units = text.map_while(|letter| u16::try_from(letter as u32).ok());
        let Some(mut words) = units.next().map(|first| self.words_with(first)) else { return classes };
        for length in 0..MAX_WORD_LENGTH {
            // The word of the letters so far comes before longer ones.
            if !words.is_empty()
                && let (letters, class) = self.word(words.start)
                && letters.len() == length
            {
                classes[length] = Some(class);
                words.start += 1;
            }
            let Some(next) = units.next().filter(|_| !words.is_empty()) else { break };
            words = self.narrowed(words, |letters| letters[length] < next);
            words.end = self.narrowed(words.clone(), |letters| letters[length] == next).start;
        }
        classes
    }

    /// Returns the rest of sorted words after those that come before others.
    fn narrowed(&self, words: Range<usize>, is_before: impl Fn(&[u16]) -> bool) -> Range<usize> {
        let (mut start, mut end) = (words.start, words.end);
        while start < end {
            let middle = usize::midpoint(start, end);
            if is_before(self.word(middle).0) { start = middle + 1 } else { end = middle }
        }
        start..words.end
    }

    /// Returns the letters of a word after its first one, and its class.
    fn word(&self, index: usize) -> (&[u16], u8) {
        let units = &self.units[self.words[index] as usize..self.words[index + 1] as usize];
        units.split_last().map_or((units, 0), |(class, letters)| (letters, class.to_le_bytes()[0]))
    }

    /// Returns the words with this first letter.
    fn words_with(&self, first: u16) -> Range<usize> {
        let first = usize::from(first);
        self.firsts[first] as usize..self.firsts[first + 1] as usize
    }

    /// Returns the letters of the words with at least this frequency class.
    pub(super) fn words(&self, class: u8) -> impl Iterator<Item = Vec<char>> {
        (0..=u16::MAX).flat_map(move |first| {
            let words = self.words_with(first).map(|index| self.word(index)).filter(move |(_, known)| *known >= class);
            words.map(move |(letters, _)| {
                let units = std::iter::once(&first).chain(letters);
                units.filter_map(|unit| char::from_u32(u32::from(*unit))).collect()
            })
        })
    }

    fn read() -> Self {
        let mut read = Self { units: Vec::with_capacity(WORDS.len() / 2), words: Vec::new(), firsts: vec![0] };
        WORDS.lines().filter(|line| !line.starts_with('#')).for_each(|line| read.read_line(line));
        read.firsts.resize(usize::from(u16::MAX) + 2, read.words.len() as u32);
        read.words.push(read.units.len() as u32);
        read.units.shrink_to_fit();
        read.words.shrink_to_fit();
        read
    }

    /// Adds the words of a line, which begin with the same letter. Lines and their words are sorted, and written in
    /// letters that fold to themselves.
    fn read_line(&mut self, line: &str) {
        let mut characters = line.chars();
        let Some(first) = characters.next().and_then(unit_of) else { return };
        self.firsts.resize(usize::from(first) + 1, self.words.len() as u32);
        let mut start = self.units.len();
        for character in characters {
            if let Some(class) = class_of_code(character) {
                self.units.push(u16::from(class));
                self.words.push(start as u32);
                start = self.units.len();
            } else {
                self.units.extend(unit_of(character));
            }
        }
    }
}

/// Returns true if a word of this class counts by itself.
pub(super) fn is_known(class: u8) -> bool {
    class >= KNOWN_FREQUENCY
}

fn unit_of(letter: char) -> Option<u16> {
    u16::try_from(letter as u32).ok()
}

/// The first and the last letter of a listed word in a text.
#[derive(Clone, Copy)]
pub(super) struct Listed {
    pub(super) first: usize,
    pub(super) last: usize,
}

impl Listed {
    /// Returns true if `start..end` is a part of the listed word.
    pub(super) fn contains(self, start: usize, end: usize) -> bool {
        self.first <= start && end <= self.last + 1
    }

    /// Returns true if a word over `start..end` overlaps the listed word only partly.
    pub(super) fn is_cut_by(self, start: usize, end: usize) -> bool {
        let enters = start < self.first && self.first < end && end <= self.last;
        let leaves = self.first < start && start <= self.last && self.last + 1 < end;
        enters || leaves
    }
}

fn class_of_code(code: char) -> Option<u8> {
    match code {
        'A'..='Z' => Some(code as u8 - b'A'),
        'a'..='z' => Some(code as u8 - b'a' + 26),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::folding::folded_letter;

    #[test]
    fn knows_common_words() {
        let count = dictionary().words.len();
        assert!(count > 400_000, "{count}");
        assert!(dictionary().contains(&['妈', '妈']));
        assert!(!dictionary().contains(&['妈', '她']));
        assert!(dictionary().units.len() * 2 + count * 4 + dictionary().firsts.len() * 4 < 8_000_000);
    }

    #[test]
    fn words_are_sorted_and_folded() {
        let words: Vec<Vec<char>> = dictionary().words(0).collect();
        let unsorted = words.windows(2).find(|pair| pair[0] >= pair[1]);
        assert_eq!(unsorted, None);
        for word in &words {
            assert!(word.iter().all(|&letter| folded_letter(letter) == Some(letter)), "{word:?}");
            assert_eq!(dictionary().class(word).is_some(), word.len() <= MAX_WORD_LENGTH, "{word:?}");
        }
    }
}
