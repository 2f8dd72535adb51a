//! The comparison form of a question: simplified, lower-case, without disguises.
//!
//! A text is a sequence of units: a Han character, a syllable of pinyin, another word in Latin letters, or a stop.
//! Distances in rules are counted in units. Han characters that are typed in pinyin are found by a second form, in which
//! every Han character is its syllable.

use std::{ops::Range, sync::LazyLock};

use ::pinyin::ToPinyin;

use crate::domain::moderation::engine::{Fold, folding};

/// Stands for a stop in the comparison form.
const STOP: char = '|';
/// Texts in Latin letters are read as pinyin if at least this share of the words, in percent, can be.
const PINYIN_SHARE: usize = 75;
/// Words with more letters are not divided into syllables.
const MAX_PINYIN: usize = 48;
/// Single letters in sequence that are read as one word: `k m s`.
const SPELLED_OUT: usize = 3;

/// A string in which words are found, and the unit of each byte.
#[derive(Default)]
pub(super) struct Form {
    pub(super) text: String,
    units: Vec<u32>,
}

impl Form {
    fn with_capacity(bytes: usize) -> Self {
        Self { text: String::with_capacity(bytes), units: Vec::with_capacity(bytes) }
    }

    fn push(&mut self, text: &str, unit: usize) {
        self.text.push_str(text);
        self.units.extend(std::iter::repeat_n(u32::try_from(unit).unwrap_or(u32::MAX), text.len()));
    }

    /// Adds a word with a space on each side.
    fn push_word(&mut self, word: &str, unit: usize) {
        if !self.text.ends_with(' ') {
            self.push(" ", unit);
        }
        self.push(word, unit);
        self.push(" ", unit);
    }

    /// Returns the units of a part of the text, without spaces around it.
    pub(super) fn units(&self, part: Range<usize>) -> Range<u32> {
        let bytes = &self.text.as_bytes()[part.clone()];
        let start = part.start + usize::from(bytes.first() == Some(&b' '));
        let end = part.end - usize::from(bytes.last() == Some(&b' '));
        self.units[start]..self.units[end - 1] + 1
    }
}

/// A question in its comparison forms.
#[derive(Default)]
pub(super) struct PlainText {
    pub(super) letters: Form,
    /// The text in pinyin; empty if nothing in it is typed in pinyin.
    pub(super) pinyin: Form,
    /// The places of the words in the letters.
    words: Vec<Range<usize>>,
    /// True for each unit that was typed in pinyin.
    typed_in_pinyin: Vec<bool>,
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
    script_of(text) == Script::NoHan && !PlainText::of(text).pinyin.text.is_empty()
}

enum Token {
    Han(char),
    Word(String),
    Stop,
}

impl PlainText {
    pub(super) fn of(text: &str) -> Self {
        let tokens = tokens(text);
        let syllables: Vec<Vec<&str>> = tokens
            .iter()
            .map(|token| match token {
                Token::Word(word) => syllables(word),
                _ => Vec::new(),
            })
            .collect();
        let words = tokens.iter().filter(|token| matches!(token, Token::Word(_))).count();
        let readable = syllables.iter().filter(|syllables| !syllables.is_empty()).count();
        let has_han = tokens.iter().any(|token| matches!(token, Token::Han(_)));
        let reads_pinyin = readable > 0 && (has_han || readable * 100 >= words * PINYIN_SHARE);
        let mut plain = Self {
            letters: Form::with_capacity(text.len() + tokens.len()),
            words: Vec::with_capacity(tokens.len()),
            ..Self::default()
        };
        let mut unit = 0;
        for (token, syllables) in tokens.iter().zip(&syllables) {
            let count = plain.push(token, if reads_pinyin { syllables } else { &[] }, unit, reads_pinyin);
            unit += count;
        }
        plain
    }

    /// Adds a token and returns the number of its units.
    fn push(&mut self, token: &Token, syllables: &[&str], unit: usize, reads_pinyin: bool) -> usize {
        match token {
            Token::Han(letter) => {
                self.letters.push(letter.encode_utf8(&mut [0; 4]), unit);
                self.add_word(letter.len_utf8(), 0);
                if reads_pinyin {
                    self.pinyin.push_word(letter.to_pinyin().map_or("#", |reading| reading.plain()), unit);
                }
            }
            Token::Word(word) => {
                self.letters.push_word(word, unit);
                let mut left = word.len();
                for syllable in syllables {
                    self.add_word(syllable.len(), 1 + left - syllable.len());
                    left -= syllable.len();
                }
                if syllables.is_empty() {
                    self.add_word(word.len(), 1);
                }
                for (index, syllable) in syllables.iter().enumerate() {
                    self.pinyin.push_word(syllable, unit + index);
                }
                if reads_pinyin && syllables.is_empty() {
                    self.pinyin.push_word("#", unit);
                }
                let count = syllables.len().max(1);
                self.typed_in_pinyin.resize(unit, false);
                self.typed_in_pinyin.resize(unit + count, !syllables.is_empty());
                return count;
            }
            Token::Stop => {
                self.letters.push(STOP.encode_utf8(&mut [0; 4]), unit);
                self.add_word(1, 0);
                if reads_pinyin {
                    self.pinyin.push_word("#", unit);
                }
            }
        }
        1
    }

    /// Adds the place of a word that ends so many bytes before the end of the letters.
    fn add_word(&mut self, length: usize, after: usize) {
        let end = self.letters.text.len() - after;
        self.words.push(end - length..end);
    }

    /// Returns the words in the order of the text: Han characters, syllables of pinyin, other words and stops.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(|word| &self.letters.text[word.clone()])
    }

    /// Returns true if a part of these units was typed in pinyin.
    pub(super) fn has_pinyin(&self, units: &Range<u32>) -> bool {
        units.clone().any(|unit| self.typed_in_pinyin.get(unit as usize) == Some(&true))
    }
}

/// Returns the comparison form of a word of the lists.
pub(super) fn word_form(word: &str) -> String {
    let (word, is_stem) = word.strip_suffix('*').map_or((word, false), |stem| (stem, true));
    let mut form = PlainText::of(word).letters.text;
    if is_stem {
        form.truncate(form.trim_end().len());
    }
    form
}

/// Returns the pinyin of a word of Han characters; none if it has others.
pub(super) fn pinyin_form(word: &str) -> Option<String> {
    let mut form = Form::default();
    for token in tokens(word) {
        let Token::Han(letter) = token else { return None };
        form.push_word(letter.to_pinyin()?.plain(), 0);
    }
    Some(form.text)
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
    if !word.starts_with(is_letter) || !word.contains(|character: char| character.is_ascii_digit()) {
        return word;
    }
    // A number after a word: `day3`.
    if !word.ends_with(is_letter) {
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
        let letters =
            || part.iter().filter_map(|token| if let Token::Word(word) = token { Some(word.as_str()) } else { None });
        if part.len() >= SPELLED_OUT {
            joined.push(Token::Word(letters().collect()));
        } else {
            joined.extend(part.iter().map(|token| match token {
                Token::Han(letter) => Token::Han(*letter),
                Token::Word(word) => Token::Word(word.clone()),
                Token::Stop => Token::Stop,
            }));
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
