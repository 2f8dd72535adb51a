//! Matches words by pronunciation: homophones, or the romanisation in Latin letters.
//!
//! Applies only to words with that option, because Chinese has only some four hundred syllables. Each character has one
//! reading here, its most frequent one. Readings that many speakers confuse are one class.

use std::{collections::HashMap, sync::LazyLock};

use ::pinyin::ToPinyin;

use super::folding::{Fold, folding};

/// Maximum characters of a word that is matched by pronunciation.
const MAX_LENGTH: usize = 8;
/// The Han characters that have readings here.
const CHARACTERS: std::ops::RangeInclusive<char> = '\u{4E00}'..='\u{9FFF}';

/// The reading of a folded character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    /// The representative of all characters with a similar reading.
    class: char,
    /// The representative of its homophones; the character itself if it has no reading.
    pub(super) sound: char,
    /// 0 for a character without a reading.
    pub(super) tone: u8,
}

/// The readings of folded characters, and the characters of similar readings.
pub(super) struct PinyinTable {
    /// In the order of the characters.
    readings: Vec<Reading>,
    alike: HashMap<char, Vec<char>>,
}

/// Returns the pinyin table of the process.
pub(super) fn pinyin_table() -> &'static PinyinTable {
    static TABLE: LazyLock<PinyinTable> = LazyLock::new(PinyinTable::build);
    &TABLE
}

impl PinyinTable {
    fn build() -> Self {
        let mut sounds: HashMap<&str, char> = HashMap::new();
        let mut classes: HashMap<String, char> = HashMap::new();
        let mut alike: HashMap<char, Vec<char>> = HashMap::new();
        let mut reading_of = |character: char| {
            let is_folded = folding().fold(character) == Fold::Letter(character);
            let Some(reading) = character.to_pinyin().filter(|_| is_folded) else {
                return Reading { class: character, sound: character, tone: 0 };
            };
            let sound = *sounds.entry(reading.plain()).or_insert(character);
            let class = *classes.entry(blurred(reading.plain())).or_insert(character);
            alike.entry(class).or_default().push(character);
            Reading { class, sound, tone: tone_of(reading) }
        };
        Self { readings: CHARACTERS.map(&mut reading_of).collect(), alike }
    }

    pub(super) fn reading(&self, letter: char) -> Reading {
        let index = (letter as usize).checked_sub(*CHARACTERS.start() as usize);
        let reading = index.and_then(|index| self.readings.get(index)).copied();
        reading.unwrap_or(Reading { class: letter, sound: letter, tone: 0 })
    }

    /// Returns the representative of the letters that sound similar; the letter itself if it has no reading.
    pub(super) fn class(&self, letter: char) -> char {
        self.reading(letter).class
    }

    /// Returns the letters of this class.
    pub(super) fn letters_of(&self, class: char) -> impl Iterator<Item = char> {
        self.alike.get(&class).into_iter().flatten().copied()
    }
}

/// Returns true if the word can be matched by pronunciation.
pub(super) fn has_pinyin(letters: &[char]) -> bool {
    (2..=MAX_LENGTH).contains(&letters.len()) && letters.iter().all(|&letter| letter.to_pinyin().is_some())
}

/// Returns true if the word can be compared by its sound: at least one of its letters has a reading, and the others are
/// Latin.
pub(super) fn has_sound(letters: &[char]) -> bool {
    (2..=MAX_LENGTH).contains(&letters.len())
        && letters.iter().any(|letter| letter.to_pinyin().is_some())
        && letters.iter().all(|letter| letter.is_ascii_lowercase() || letter.to_pinyin().is_some())
}

/// Returns a reading without the differences that many speakers do not make: zh and z, ch and c, sh and s, n and l, f and
/// hu, final ng and n.
fn blurred(reading: &str) -> String {
    let reading = match reading.split_at(1) {
        ("l", rest) => format!("n{rest}"),
        ("f", "u") => "hu".to_owned(),
        ("f", "eng") => "hong".to_owned(),
        ("f", "ei") => "hui".to_owned(),
        ("f", "en") => "hun".to_owned(),
        ("f", rest) => format!("hu{rest}"),
        _ => reading.to_owned(),
    };
    let initial = ["zh", "ch", "sh"].iter().find_map(|&initial| Some((&initial[..1], reading.strip_prefix(initial)?)));
    let (initial, rest) = initial.unwrap_or(("", &reading));
    let rest = rest.strip_suffix('g').filter(|rest| rest.ends_with('n')).unwrap_or(rest);
    format!("{initial}{rest}")
}

fn tone_of(reading: ::pinyin::Pinyin) -> u8 {
    reading.with_tone_num_end().bytes().last().filter(u8::is_ascii_digit).map_or(0, |digit| digit - b'0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn homophones_have_one_class() {
        let pinyin_table = pinyin_table();
        for (one, other, is_alike) in [
            ('赌', '毒', true),
            ('博', '伯', true),
            ('赌', '博', false),
            ('微', '威', true),
            ('脑', '老', true),
            ('发', '花', true),
            ('风', '红', true),
            ('飞', '回', true),
        ] {
            assert_eq!(pinyin_table.class(one) == pinyin_table.class(other), is_alike, "{one}{other}");
        }
        for (one, other) in [('赌', '毒'), ('真', '曾'), ('情', '勤')] {
            assert_ne!(pinyin_table.reading(one), pinyin_table.reading(other), "{one}{other}");
        }
        assert_eq!(pinyin_table.class('真'), pinyin_table.class('增'));
        assert_eq!(pinyin_table.class('a'), 'a');
        assert!(pinyin_table.letters_of(pinyin_table.class('赌')).any(|letter| letter == '肚'));
    }
}
