//! The comparison form of a question: simplified, lower-case, without disguises.
//!
//! A text is a sequence of units: a Han character, a syllable of pinyin, another word in Latin letters, or a stop.
//! Distances in rules are counted in units. Han characters that are typed in pinyin are found by a second form, in which
//! every Han character is its syllable.

use std::{hash::Hasher, ops::Range, sync::LazyLock};

use ::pinyin::ToPinyin;

use crate::domain::moderation::engine::{Fold, KeyHasher, folding};

/// Stands for a stop in the comparison form.
const STOP: &str = "|";
/// Stands for what is no syllable in a text that is read as pinyin.
const NO_SYLLABLE: &str = "#";
/// Texts in Latin letters are read as pinyin if at least this share of the words, in percent, can be.
const PINYIN_SHARE: usize = 75;
/// Words with more letters are not divided into syllables.
const MAX_PINYIN: usize = 48;
/// Single letters in sequence that are read as one word: `k m s`.
const SPELLED_OUT: usize = 3;

/// A Han character, a word in Latin letters or a stop.
pub(super) struct Word {
    /// Its place in the text of the words.
    place: Range<usize>,
    pub(super) key: u64,
    /// Its units.
    pub(super) units: Range<usize>,
}

/// A question in its comparison form.
#[derive(Default)]
pub(super) struct PlainText {
    text: String,
    pub(super) words: Vec<Word>,
    /// The units; those of a word that is divided into syllables are the syllables.
    pub(super) units: Vec<u64>,
    /// The syllables of all units; empty if nothing in the text is typed in pinyin.
    pub(super) pinyin: Vec<u64>,
    /// True for each unit that was typed in pinyin.
    is_typed_in_pinyin: Vec<bool>,
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

#[derive(Clone)]
enum Token {
    Han(char),
    Word(String),
    Stop,
}

impl PlainText {
    pub(super) fn of(text: &str) -> Self {
        let tokens = tokens(text);
        let has_han = tokens.iter().any(|token| matches!(token, Token::Han(_)));
        let words = tokens.iter().filter_map(Token::word);
        let readable = words.clone().filter(|word| !syllables(word).is_empty()).count();
        let reads_pinyin = readable > 0 && (has_han || readable * 100 >= words.count() * PINYIN_SHARE);
        let mut plain = Self {
            text: String::with_capacity(text.len()),
            words: Vec::with_capacity(tokens.len()),
            units: Vec::with_capacity(tokens.len()),
            ..Self::default()
        };
        for token in &tokens {
            plain.push(token, reads_pinyin);
        }
        plain
    }

    fn push(&mut self, token: &Token, reads_pinyin: bool) {
        match token {
            Token::Han(letter) => {
                self.push_word(letter.encode_utf8(&mut [0; 4]), &[]);
                if reads_pinyin {
                    self.pinyin.push(key(letter.to_pinyin().map_or(NO_SYLLABLE, |reading| reading.plain())));
                }
            }
            Token::Word(word) if reads_pinyin => {
                let syllables = syllables(word);
                self.push_word(word, &syllables);
                self.pinyin.extend(syllables.iter().map(|syllable| key(syllable)));
                self.is_typed_in_pinyin.resize(self.pinyin.len(), true);
                self.pinyin.resize(self.units.len(), key(NO_SYLLABLE));
            }
            Token::Word(word) => self.push_word(word, &[]),
            Token::Stop => {
                self.push_word(STOP, &[]);
                if reads_pinyin {
                    self.pinyin.push(key(NO_SYLLABLE));
                }
            }
        }
        self.is_typed_in_pinyin.resize(self.units.len(), false);
    }

    fn push_word(&mut self, word: &str, syllables: &[&str]) {
        let (place, unit) = (self.text.len(), self.units.len());
        self.text.push_str(word);
        let key_of_word = key(word);
        if syllables.is_empty() {
            self.units.push(key_of_word);
        } else {
            self.units.extend(syllables.iter().map(|syllable| key(syllable)));
        }
        self.words.push(Word { place: place..self.text.len(), key: key_of_word, units: unit..self.units.len() });
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
            let parts = if is_divided { syllables(text) } else { vec![text] };
            parts.into_iter().map(ToOwned::to_owned).collect::<Vec<_>>()
        };
        self.words.iter().flat_map(of_word).collect()
    }

    /// Returns the text, with a space on each side of a word in Latin letters.
    pub(super) fn spaced(&self) -> String {
        let mut spaced = String::with_capacity(2 * self.text.len());
        for word in &self.words {
            let text = self.text_of(word);
            if text.is_ascii() && text != STOP {
                spaced.extend([if spaced.ends_with(' ') { "" } else { " " }, text, " "]);
            } else {
                spaced.push_str(text);
            }
        }
        spaced
    }
}

impl Token {
    fn word(&self) -> Option<&str> {
        if let Self::Word(word) = self { Some(word) } else { None }
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
pub(super) fn pinyin_of(word: &str) -> Option<Vec<u64>> {
    let syllable = |token: &Token| match token {
        Token::Han(letter) => letter.to_pinyin().map(|reading| key(reading.plain())),
        _ => None,
    };
    tokens(word).iter().map(syllable).collect()
}

fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::with_capacity(text.len() / 2);
    let mut word = String::new();
    let end_word = |tokens: &mut Vec<Token>, word: &mut String| {
        if !word.is_empty() {
            tokens.push(Token::Word(plain_word(std::mem::take(word))));
        }
    };
    let push = |tokens: &mut Vec<Token>, word: &mut String, letter: char| {
        if letter >= '\u{2E80}' {
            end_word(tokens, word);
            tokens.push(Token::Han(letter));
        } else {
            word.push(letter);
        }
    };
    for character in text.chars() {
        match folding().fold(character) {
            Fold::Letter(letter) => push(&mut tokens, &mut word, letter),
            Fold::Letters(letters) => letters.iter().for_each(|letter| push(&mut tokens, &mut word, *letter)),
            Fold::Mark | Fold::Invisible => {}
            Fold::Separator if matches!(character, '\'' | '’' | '‘' | '`' | '´' | 'ʼ') => {}
            Fold::Separator if !word.is_empty() && matches!(character, '@' | '$') => {
                word.push(if character == '@' { 'a' } else { 's' });
            }
            Fold::Separator => end_word(&mut tokens, &mut word),
            Fold::Stop => {
                end_word(&mut tokens, &mut word);
                tokens.push(Token::Stop);
            }
        }
    }
    end_word(&mut tokens, &mut word);
    join_spelled_out(tokens)
}

/// Returns a word with the letters that digits in it stand for: `su1cide`.
fn plain_word(word: String) -> String {
    let is_letter = |character: char| character.is_ascii_lowercase();
    let has_digit = word.contains(|character: char| character.is_ascii_digit());
    // A digit at an end is a number beside the word: `day3`.
    if !has_digit || !word.starts_with(is_letter) || !word.ends_with(is_letter) {
        return word;
    }
    word.chars()
        .map(|character| match character {
            '0' => 'o',
            '1' => 'i',
            '3' => 'e',
            '4' => 'a',
            '5' => 's',
            other => other,
        })
        .collect()
}

fn join_spelled_out(tokens: Vec<Token>) -> Vec<Token> {
    let is_single = |token: &Token| matches!(token, Token::Word(word) if word.len() == 1);
    if !tokens.windows(SPELLED_OUT).any(|tokens| tokens.iter().all(is_single)) {
        return tokens;
    }
    let mut joined: Vec<Token> = Vec::with_capacity(tokens.len());
    for part in tokens.chunk_by(|one, other| is_single(one) && is_single(other)) {
        if part.len() >= SPELLED_OUT {
            joined.push(Token::Word(part.iter().filter_map(Token::word).collect()));
        } else {
            joined.extend_from_slice(part);
        }
    }
    joined
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

/// Divides a word into syllables of pinyin, long ones first; none if that is not possible.
fn syllables(word: &str) -> Vec<&str> {
    let letters = word.as_bytes();
    if letters.len() > MAX_PINYIN {
        return Vec::new();
    }
    // The length of the first syllable of each end of the word that can be divided.
    let mut first = [0; MAX_PINYIN + 1];
    for start in (0..letters.len()).rev() {
        let fits = |length: &usize| start + length == letters.len() || first[start + length] > 0;
        first[start] = SYLLABLES.lengths(&letters[start..]).filter(fits).last().unwrap_or(0);
    }
    let starts = std::iter::successors((first[0] > 0).then_some(0), |start| {
        Some(start + first[*start]).filter(|next| *next < letters.len())
    });
    starts.map(|start| &word[start..start + first[start]]).collect()
}
