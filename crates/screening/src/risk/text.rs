//! The comparison form of a question: simplified, lower-case, without disguises.
//!
//! A text is a sequence of units: a Han character, a syllable of pinyin, another word in Latin letters, or a stop.
//! Distances in rules are counted in units. Han characters that are typed in pinyin are found by a second form, in which
//! every Han character is its syllable.

use std::{hash::Hasher, ops::Range, sync::LazyLock};

use ::pinyin::ToPinyin;

use crate::engine::{Fold, KeyHasher, folding};

/// Stands for a stop in the comparison form.
const STOP: &str = "|";
/// Stands for what is no syllable in a text that is read as pinyin.
const NO_SYLLABLE: &str = "#";
/// Texts in Latin letters are read as pinyin if at least this share of the words, in percent, can be.
const PINYIN_SHARE: usize = 75;
/// Texts with more units are divided into parts. Most questions are shorter.
const LONG: usize = 32;
/// The most units of several clauses that are a part.
const PART: usize = 20;
/// Words with more letters are not divided into syllables.
const MAX_PINYIN: usize = 48;
/// Single letters in sequence that are read as one word: `k m s`.
const SPELLED_OUT: usize = 3;

/// A Han character, a word in Latin letters or a stop.
pub(super) struct Word {
    /// Its place in the text of the words.
    place: Range<usize>,
    /// Its units.
    pub(super) units: Range<usize>,
}

/// A question in its comparison form.
#[derive(Default)]
pub(super) struct PlainText {
    text: String,
    pub(super) words: Vec<Word>,
    /// The words as keys.
    pub(super) keys: Vec<u64>,
    /// The units; those of a word that is divided into syllables are the syllables.
    pub(super) units: Vec<u64>,
    /// The syllables of all units; empty if nothing in the text is typed in pinyin.
    pub(super) pinyin: Vec<u64>,
    /// True for each unit that was typed in pinyin.
    is_typed_in_pinyin: Vec<bool>,
    /// The units after which clauses end.
    ends: Vec<usize>,
}

/// The script in which a text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Script {
    Simplified,
    Traditional,
    /// Only Han characters that both scripts share.
    SharedHan,
    NoHan,
}

/// Returns the script of a text.
pub fn script_of(text: &str) -> Script {
    let is_han = |letter: &char| matches!(letter, '\u{3400}'..='\u{9FFF}');
    let (mut has_han, mut has_simplified) = (false, false);
    for letter in text.chars().filter(is_han) {
        has_han = true;
        if folding().fold(letter) != Fold::Letter(letter) {
            return Script::Traditional;
        }
        has_simplified |= folding().sources_of(letter).any(|source| is_han(&source));
    }
    match (has_han, has_simplified) {
        (false, _) => Script::NoHan,
        (true, true) => Script::Simplified,
        (true, false) => Script::SharedHan,
    }
}

/// Returns true for a text without Han characters that can be read as pinyin.
pub fn is_pinyin(text: &str) -> bool {
    script_of(text) == Script::NoHan && !PlainText::of(text).pinyin.is_empty()
}

impl PlainText {
    pub(super) fn of(text: &str) -> Self {
        let WordReader { text, places, clauses, .. } = WordReader::read(text);
        let latin = places.iter().map(|place| &text[place.clone()]).filter(|word| is_latin(word));
        let readable = latin.clone().filter(|word| Syllables::of(word).next().is_some()).count();
        let is_read = readable > 0 && (text.contains(is_han) || readable * 100 >= latin.count() * PINYIN_SHARE);
        let mut plain = Self {
            words: Vec::with_capacity(places.len()),
            keys: Vec::with_capacity(places.len()),
            units: Vec::with_capacity(places.len()),
            ..Self::default()
        };
        let mut clauses = clauses.into_iter().peekable();
        for place in places {
            while clauses.next_if(|start| *start <= place.start).is_some() {
                plain.ends.push(plain.units.len());
            }
            plain.push(&text, place, is_read);
        }
        plain.ends.push(plain.units.len());
        Self { text, ..plain }
    }

    /// Returns the parts of a long text: from each clause as many as fit, without those that the part before ends with.
    /// A clause that is too long is a part.
    pub(super) fn parts(&self) -> impl Iterator<Item = Range<usize>> {
        let is_long = self.units.len() > LONG;
        let starts = std::iter::once(0).chain(self.ends.iter().copied()).filter(move |_| is_long);
        let mut last = 0;
        starts.enumerate().filter_map(move |(clause, start)| {
            let ends = &self.ends[clause..];
            let end = *ends.iter().take_while(|end| **end - start <= PART).last().or(ends.first())?;
            (std::mem::replace(&mut last, end) < end).then_some(start..end)
        })
    }

    /// Adds a word, and its reading in pinyin if the text is read as such.
    fn push(&mut self, text: &str, place: Range<usize>, is_read_as_pinyin: bool) {
        let (word, first) = (&text[place.clone()], self.units.len());
        let key_of_word = key(word);
        if is_read_as_pinyin && is_latin(word) {
            self.units.extend(Syllables::of(word).map(key));
            self.pinyin.extend_from_slice(&self.units[first..]);
            self.is_typed_in_pinyin.resize(self.units.len(), true);
        }
        if self.units.len() == first {
            self.units.push(key_of_word);
            if is_read_as_pinyin {
                let reading = word.chars().next().and_then(|letter| letter.to_pinyin());
                self.pinyin.push(key(reading.map_or(NO_SYLLABLE, |reading| reading.plain())));
            }
            self.is_typed_in_pinyin.push(false);
        }
        self.keys.push(key_of_word);
        self.words.push(Word { place, units: first..self.units.len() });
    }

    pub(super) fn text_of(&self, word: &Word) -> &str {
        &self.text[word.place.clone()]
    }

    /// Returns true if a part of these units was typed in pinyin.
    pub(super) fn has_pinyin(&self, units: &Range<usize>) -> bool {
        units.clone().any(|unit| self.is_typed_in_pinyin.get(unit) == Some(&true))
    }

    /// Returns the texts of the units.
    #[cfg(test)]
    pub(super) fn unit_texts(&self) -> Vec<String> {
        let of_word = |word: &Word| {
            let text = self.text_of(word);
            let is_divided = word.units.len() > 1;
            let parts = if is_divided { Syllables::of(text).collect() } else { vec![text] };
            parts.into_iter().map(ToOwned::to_owned).collect::<Vec<_>>()
        };
        self.words.iter().flat_map(of_word).collect()
    }

    /// Returns the text, with a space on each side of a word in Latin letters.
    pub(super) fn spaced(&self) -> String {
        let mut spaced = String::with_capacity(2 * self.text.len());
        for word in &self.words {
            let text = self.text_of(word);
            if is_latin(text) && text.is_ascii() {
                spaced.extend([if spaced.ends_with(' ') { "" } else { " " }, text, " "]);
            } else {
                spaced.push_str(text);
            }
        }
        spaced
    }
}

/// Returns the number by which equal words are found.
pub(super) fn key(word: &str) -> u64 {
    let mut hasher = KeyHasher::default();
    let mut letters = word.chars();
    match (letters.next(), letters.next()) {
        (Some(letter), None) => hasher.write_u32(u32::from(letter)),
        _ => hasher.write(word.as_bytes()),
    }
    hasher.finish()
}

/// Returns the number of two words in sequence.
pub(super) fn pair_key(first: u64, second: u64) -> u64 {
    let mut hasher = KeyHasher::default();
    hasher.write_u64(first);
    hasher.write_u64(second);
    hasher.finish()
}

/// Returns the syllables of a word of Han characters; none if it has others.
pub(super) fn pinyin_of(word: &PlainText) -> Option<Vec<u64>> {
    let syllable = |letter: char| letter.to_pinyin().map(|reading| key(reading.plain()));
    word.text.chars().map(syllable).collect()
}

fn is_han(letter: char) -> bool {
    letter >= '\u{2E80}'
}

fn is_latin(word: &str) -> bool {
    word != STOP && !word.starts_with(is_han)
}

/// Reads a text as words without disguises.
#[derive(Default)]
struct WordReader {
    text: String,
    /// The places of the words that have ended.
    places: Vec<Range<usize>>,
    /// The start of the next word.
    start: usize,
    /// The places in the text at which clauses begin.
    clauses: Vec<usize>,
}

impl WordReader {
    fn read(text: &str) -> Self {
        let mut reader = Self { text: String::with_capacity(text.len()), ..Self::default() };
        reader.places.reserve(text.len() / 3);
        for character in text.chars() {
            match folding().fold(character) {
                Fold::Letter(letter) => reader.push(letter),
                Fold::Letters(letters) => letters.iter().for_each(|letter| reader.push(*letter)),
                Fold::Mark | Fold::Invisible => {}
                Fold::Separator if matches!(character, '\'' | '’' | '‘' | '`' | '´' | 'ʼ') => {}
                Fold::Separator if reader.start < reader.text.len() && matches!(character, '@' | '$') => {
                    reader.push(if character == '@' { 'a' } else { 's' });
                }
                Fold::Separator => {
                    reader.end_word();
                    if character == '.' {
                        reader.clauses.push(reader.start);
                    }
                }
                Fold::Stop => {
                    reader.end_word();
                    reader.text.push_str(STOP);
                    reader.end_word();
                    reader.clauses.push(reader.start);
                }
            }
        }
        reader.end_word();
        reader.join_spelled_out();
        reader
    }

    fn push(&mut self, letter: char) {
        if is_han(letter) {
            self.end_word();
            self.text.push(letter);
            self.end_word();
        } else {
            self.text.push(letter);
        }
    }

    fn end_word(&mut self) {
        let end = self.text.len();
        if self.start < end {
            read_digits_as_letters(&mut self.text, self.start);
            self.places.push(self.start..end);
            self.start = end;
        }
    }

    /// Joins single letters in sequence: `k m s`.
    fn join_spelled_out(&mut self) {
        let Self { text, places, .. } = self;
        let is_single = |place: &Range<usize>| place.len() == 1 && text[place.clone()] != *STOP;
        if places.windows(SPELLED_OUT).any(|places| places.iter().all(is_single)) {
            let mut joined = Vec::with_capacity(places.len());
            for part in places.chunk_by(|one, other| is_single(one) && is_single(other)) {
                match part {
                    [first, .., last] if part.len() >= SPELLED_OUT => joined.push(first.start..last.end),
                    _ => joined.extend_from_slice(part),
                }
            }
            *places = joined;
        }
    }
}

/// Replaces the digits of a word by the letters that they stand for: `su1cide`.
fn read_digits_as_letters(text: &mut String, start: usize) {
    let word = &text[start..];
    let is_letter = |character: char| character.is_ascii_lowercase();
    let has_digit = word.bytes().any(|byte| byte.is_ascii_digit());
    // A digit at an end is a number beside the word: `day3`.
    if !has_digit || !word.starts_with(is_letter) || !word.ends_with(is_letter) {
        return;
    }
    let letters = word.chars().map(|character| match character {
        '0' => 'o',
        '1' => 'i',
        '3' => 'e',
        '4' => 'a',
        '5' => 's',
        other => other,
    });
    let word: String = letters.collect();
    text.replace_range(start.., &word);
}

/// The syllables of pinyin, letter by letter.
#[derive(Default)]
struct SyllableTree {
    /// The next node for each letter, 0 for none.
    next: Vec<[u16; 26]>,
    ends: Vec<bool>,
}

static SYLLABLES: LazyLock<SyllableTree> = LazyLock::new(|| {
    let mut tree = SyllableTree { next: vec![[0; 26]], ends: vec![false] };
    for reading in ('\u{4E00}'..='\u{9FFF}').filter_map(|letter| letter.to_pinyin()) {
        let syllable = reading.plain();
        if syllable.bytes().all(|letter| letter.is_ascii_lowercase()) {
            tree.add(syllable.as_bytes());
        }
    }
    tree
});

impl SyllableTree {
    fn add(&mut self, syllable: &[u8]) {
        let mut node = 0;
        for letter in syllable {
            let letter = usize::from(letter - b'a');
            if self.next[node][letter] == 0 {
                self.next[node][letter] = u16::try_from(self.next.len()).unwrap_or(0);
                self.next.push([0; 26]);
                self.ends.push(false);
            }
            node = usize::from(self.next[node][letter]);
        }
        self.ends[node] = true;
    }

    /// Returns the lengths of the syllables with which the text begins, short ones first.
    fn lengths<'text>(&'text self, text: &'text [u8]) -> impl Iterator<Item = usize> + 'text {
        let mut node = 0;
        let nodes = text.iter().map_while(move |letter| {
            let letter = letter.checked_sub(b'a').filter(|letter| *letter < 26)?;
            node = usize::from(self.next[node][usize::from(letter)]);
            (node > 0).then_some(node)
        });
        nodes.enumerate().filter(|(_, node)| self.ends[*node]).map(|(index, _)| index + 1)
    }
}

/// The syllables of pinyin that a word is divided into, long ones first; none if it cannot be.
struct Syllables<'word> {
    rest: &'word str,
    /// The length of the first syllable of each end of the word that can be divided.
    lengths: [u8; MAX_PINYIN],
    start: usize,
}

impl<'word> Syllables<'word> {
    fn of(word: &'word str) -> Self {
        let letters = word.as_bytes();
        let mut lengths = [0; MAX_PINYIN];
        if letters.len() <= MAX_PINYIN {
            for start in (0..letters.len()).rev() {
                let fits = |length: &usize| start + length == letters.len() || lengths[start + length] > 0;
                let longest = SYLLABLES.lengths(&letters[start..]).filter(fits).last().unwrap_or(0);
                lengths[start] = u8::try_from(longest).unwrap_or(0);
            }
        }
        Self { rest: word, lengths, start: 0 }
    }
}

impl<'word> Iterator for Syllables<'word> {
    type Item = &'word str;

    fn next(&mut self) -> Option<&'word str> {
        let length = usize::from(*self.lengths.get(self.start)?);
        let (syllable, rest) = self.rest.split_at_checked(length).filter(|_| length > 0)?;
        self.start += length;
        self.rest = rest;
        Some(syllable)
    }
}
