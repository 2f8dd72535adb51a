//! Matches words by pronunciation: homophones, or the romanisation in Latin letters.
//!
//! Applies only to words with that option, because Chinese has only some four hundred syllables. Each character has one
//! reading here, its most frequent one. Readings that many speakers confuse are one class.

use std::{collections::HashMap, sync::LazyLock};

use ::pinyin::ToPinyin;

use super::{
    folding::{Fold, folding},
    pattern::Spacing,
};

/// Maximum characters of a word that is matched by pronunciation.
const MAX_LENGTH: usize = 8;
/// Maximum length of a word of which every mixture of characters and romanisations is matched. In longer words one
/// character at a time is replaced.
const MAX_MIXED_LENGTH: usize = 3;
/// Minimum letters of a romanisation that matches a whole word.
const MIN_READING_LENGTH: usize = 4;

/// English words that also romanise two Chinese syllables or more.
const ENGLISH: &[&str] = &[
    "bake", "bale", "bandage", "bane", "bate", "beige", "bike", "bile", "binge", "bite", "cage", "cake", "cane",
    "canine", "change", "china", "cube", "cute", "dada", "dame", "dance", "danger", "date", "demo", "dense", "dice",
    "dike", "dine", "dodo", "dome", "dude", "duke", "dune", "fade", "fake", "fame", "fate", "fine", "fuse", "game",
    "gaming", "gate", "gauge", "gaze", "gene", "genie", "guide", "guru", "hale", "halo", "hate", "haze", "hinge",
    "huge", "judo", "june", "kale", "lace", "lake", "lame", "lane", "langue", "late", "laze", "lido", "like", "liming",
    "lineage", "lite", "lounge", "luke", "lulu", "lunge", "lute", "made", "make", "male", "mama", "manage", "mane",
    "mango", "mate", "maze", "memo", "menage", "menu", "mice", "mine", "mite", "mono", "mule", "mute", "name",
    "naming", "nano", "nice", "nine", "nuance", "nude", "nuke", "pace", "page", "pale", "panda", "pane", "papa",
    "pike", "pile", "pine", "pipe", "poke", "polo", "puke", "race", "range", "rice", "rude", "rule", "sage", "sake",
    "sale", "same", "sane", "sate", "sauna", "sense", "shade", "shake", "shame", "shine", "silo", "singe", "site",
    "solo", "sumo", "sushi", "take", "tale", "tame", "taming", "tangle", "tense", "tile", "time", "tinge", "tire",
    "tofu", "tube", "tune", "tutu", "wade", "wage", "wake", "wane", "wide", "wine", "wise", "women", "yoga", "yoke",
    "zone",
];

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

/// A spelling of a word that romanises some or all of its characters.
pub(super) struct Spelling {
    pub(super) letters: Vec<char>,
    pub(super) spacing: Spacing,
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

/// Returns the spellings of a word with some or all characters romanised.
pub(super) fn spellings(letters: &[char]) -> Vec<Spelling> {
    if !has_pinyin(letters) {
        return Vec::new();
    }
    let all = (1_u32 << letters.len()) - 1;
    let is_compared =
        |replaced: u32| letters.len() <= MAX_MIXED_LENGTH || replaced == all || replaced.is_power_of_two();
    let written = (1..=all).filter(|&replaced| is_compared(replaced)).map(|replaced| spelling(letters, replaced));
    written.filter(|spelling| !is_innocent(&spelling.letters)).collect()
}

/// Returns the word with the characters in the bit set romanised. The text may have a gap between a romanisation and
/// its neighbour.
fn spelling(letters: &[char], replaced: u32) -> Spelling {
    let mut spelling = Spelling { letters: Vec::new(), spacing: Spacing::default() };
    let mut was_reading = false;
    for (index, &letter) in letters.iter().enumerate() {
        let is_reading = replaced & (1 << index) != 0;
        if index > 0 && (is_reading || was_reading) {
            spelling.spacing.gaps.push(spelling.letters.len() as u32);
        }
        match letter.to_pinyin().filter(|_| is_reading) {
            // The umlaut is usually typed as v.
            Some(reading) => spelling.letters.extend(reading.plain().replace('ü', "v").chars()),
            None => spelling.letters.push(letter),
        }
        was_reading = is_reading;
    }
    spelling
}

/// Returns true if a romanisation is too short or an English word.
fn is_innocent(letters: &[char]) -> bool {
    let is_latin = letters.iter().all(char::is_ascii_lowercase);
    let text: String = letters.iter().collect();
    is_latin && (letters.len() < MIN_READING_LENGTH || ENGLISH.binary_search(&text.as_str()).is_ok())
}

/// Returns a reading without the differences that many speakers do not make: zh and z, ch and c, sh and s, final ng
/// and n.
fn blurred(reading: &str) -> String {
    let initial = ["zh", "ch", "sh"].iter().find_map(|&initial| Some((&initial[..1], reading.strip_prefix(initial)?)));
    let (initial, rest) = initial.unwrap_or(("", reading));
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
        for (one, other, is_alike) in [('赌', '毒', true), ('博', '伯', true), ('赌', '博', false), ('微', '威', true)]
        {
            assert_eq!(pinyin_table.class(one) == pinyin_table.class(other), is_alike, "{one}{other}");
        }
        for (one, other) in [('赌', '毒'), ('真', '曾'), ('情', '勤')] {
            assert_ne!(pinyin_table.reading(one), pinyin_table.reading(other), "{one}{other}");
        }
        assert_eq!(pinyin_table.class('真'), pinyin_table.class('增'));
        assert_eq!(pinyin_table.class('a'), 'a');
        assert!(pinyin_table.letters_of(pinyin_table.class('赌')).any(|letter| letter == '肚'));
    }

    #[test]
    fn mixes_readings_more_in_short_words() {
        let written = |word: &str| -> Vec<String> {
            let letters: Vec<char> = word.chars().collect();
            spellings(&letters).iter().map(|spelling| spelling.letters.iter().collect()).collect()
        };
        assert_eq!(written("赌博"), ["du博", "赌bo", "dubo"]);
        assert_eq!(written("六合彩").len(), 7);
        assert_eq!(written("代开发票").len(), 5);
        assert_eq!(written("妈的"), ["ma的", "妈de"], "made is English");
        assert!(written("casino").is_empty() && written("赌").is_empty() && written("加vx").is_empty());
    }

    #[test]
    fn the_english_words_are_sorted() {
        assert!(ENGLISH.is_sorted());
    }
}
