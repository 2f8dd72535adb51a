//! Words and texts built from common Chinese words by a fixed random sequence, so that every run measures the same.

use screening::engine::Word;

const DICTIONARY: &str = include_str!("../../assets/han-words.txt");
const ENGLISH: &[&str] = &["hello", "today", "question", "job", "love", "iPhone", "2024", "exam", "ok"];

/// Chinese words by frequency.
pub struct Vocabulary {
    common: Vec<String>,
    rare: Vec<String>,
}

impl Vocabulary {
    pub fn read() -> Self {
        let mut vocabulary = Self { common: Vec::new(), rare: Vec::new() };
        for line in DICTIONARY.lines().filter(|line| !line.starts_with('#')) {
            let Some(head) = line.chars().next() else {
                continue;
            };
            let mut word = String::from(head);
            for character in line.chars().skip(1) {
                if character.is_ascii_alphabetic() {
                    vocabulary.take(std::mem::replace(&mut word, String::from(head)), character);
                } else {
                    word.push(character);
                }
            }
        }
        vocabulary
    }

    /// Adds a word: frequency class S counts as common, up to J with two characters or more as rare.
    fn take(&mut self, word: String, class: char) {
        if class.is_ascii_lowercase() || class >= 'S' {
            self.common.push(word);
        } else if class <= 'J' && word.chars().count() > 1 {
            self.rare.push(word);
        }
    }

    /// Builds a word list: mostly pairs of rare words, some single ones, and some Latin ones.
    pub fn list(&self, count: usize, random: &mut Random) -> Vec<Word> {
        let make = |index: usize, random: &mut Random| match index % 25 {
            0 => format!("{}{}", random.pick(&["zan", "qor", "vex", "mil", "tup"]), random.below(100_000)),
            1..=5 => random.pick(&self.rare).clone(),
            _ => format!("{}{}", random.pick(&self.rare), random.pick(&self.rare)),
        };
        (0..count)
            .map(|index| Word { text: make(index, random), kind: "other".into(), by_sound: false, ..Word::default() })
            .collect()
    }

    /// Builds texts of common words, one in twenty with a listed word.
    pub fn texts(&self, count: usize, length: usize, words: &[Word], random: &mut Random) -> Vec<String> {
        (0..count).map(|index| self.text(length, (index % 20 == 0).then(|| &random.pick(words).text), random)).collect()
    }

    fn text(&self, length: usize, planted: Option<&String>, random: &mut Random) -> String {
        let mut text = String::new();
        let mut characters = 0;
        while characters < length {
            let piece = match random.below(20) {
                0 => "，",
                1 => "。",
                2 => *random.pick(ENGLISH),
                _ => random.pick(&self.common),
            };
            text.push_str(piece);
            characters += piece.chars().count();
        }
        text.extend(planted.map(String::as_str));
        text
    }
}

/// A small generator with a fixed seed.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or(0) % limit
    }

    pub fn pick<'items, T>(&mut self, items: &'items [T]) -> &'items T {
        &items[self.below(items.len())]
    }
}
