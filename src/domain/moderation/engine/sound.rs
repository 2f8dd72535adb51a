//! Words written by their sound: other characters that are read alike, or the reading itself in Latin letters.
//!
//! Only words that ask for it are compared so, because Chinese has some four hundred syllables for all of its words.
//! Each character has one reading here, its most frequent one.

use std::{collections::HashMap, sync::LazyLock};

use pinyin::ToPinyin;

use super::{
    alignment::Alignment,
    dictionary::dictionary,
    folding::{Fold, folding},
    letters::Letter,
    lexicon::Spacing,
    verifier::Candidate,
};

/// The longest word that is written by its sound, in characters.
const LONGEST: usize = 8;
/// The longest word of which every mixture of characters and readings is compared; of longer ones, those with one
/// character replaced.
const LONGEST_MIXED: usize = 3;
/// Letters of the shortest romanisation that matches a word on its own.
const SHORTEST_READING: usize = 4;

/// English words that are also the reading of two Chinese syllables or more.
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

/// For each folded character, the representative of its homophones, and its tone.
pub(super) struct Sounds {
    of: HashMap<char, (char, u8)>,
    alike: HashMap<char, Vec<char>>,
}

/// The one table of the process.
pub(super) fn sounds() -> &'static Sounds {
    static TABLE: LazyLock<Sounds> = LazyLock::new(Sounds::computed);
    &TABLE
}

/// A way to write a word, partly or wholly by its reading.
pub(super) struct Writing {
    pub(super) letters: Vec<char>,
    pub(super) spacing: Spacing,
}

impl Sounds {
    fn computed() -> Self {
        let mut classes: HashMap<&str, char> = HashMap::new();
        let mut of = HashMap::new();
        let mut alike: HashMap<char, Vec<char>> = HashMap::new();
        for character in '\u{4E00}'..='\u{9FFF}' {
            let is_folded = folding().fold(character) == Fold::Letter(character);
            if let Some(reading) = character.to_pinyin().filter(|_| is_folded) {
                let class = *classes.entry(reading.plain()).or_insert(character);
                of.insert(character, (class, tone_of(reading)));
                alike.entry(class).or_default().push(character);
            }
        }
        Self { of, alike }
    }

    /// Returns the representative of the letter's homophones; the letter itself if it has no reading.
    pub(super) fn class(&self, letter: char) -> char {
        self.of.get(&letter).map_or(letter, |&(class, _)| class)
    }

    pub(super) fn tone(&self, letter: char) -> Option<u8> {
        self.of.get(&letter).map(|&(_, tone)| tone)
    }

    /// The letters of this class.
    pub(super) fn alike(&self, class: char) -> impl Iterator<Item = char> {
        self.alike.get(&class).into_iter().flatten().copied()
    }
}

impl Candidate<'_> {
    /// Returns true if homophones of the word are here and are not a word of their own: with the same tones, or with
    /// most letters of the listed word unchanged.
    pub(super) fn is_homophone(&self, alignment: &Alignment) -> bool {
        let shown = &self.page.letters[alignment.first..=alignment.last];
        let word = self.pattern.letters;
        if shown.len() != word.len() {
            return false;
        }
        let replaced: Vec<_> = word.iter().zip(shown).filter(|(letter, shown)| **letter != shown.value).collect();
        let kept = word.len() - replaced.len();
        let sounds = sounds();
        let is_same_tone = || replaced.iter().all(|(letter, shown)| sounds.tone(**letter) == sounds.tone(shown.value));
        let is_meant = !replaced.is_empty() && (kept * 3 >= word.len() * 2 || is_same_tone());
        is_meant && !is_common(shown)
    }
}

/// Returns true if the letters are a word, or adjacent words with a meaning of their own.
fn is_common(shown: &[Letter]) -> bool {
    let values: Vec<char> = shown.iter().map(|letter| letter.value).collect();
    let is_word = |letters: &[char]| dictionary().contains(letters);
    is_word(&values) || (2..values.len() - 1).any(|cut| is_word(&values[..cut]) && is_word(&values[cut..]))
}

/// Returns true if the word can be spelled by its sound.
pub(super) fn has_sound(letters: &[char]) -> bool {
    (2..=LONGEST).contains(&letters.len()) && letters.iter().all(|&letter| letter.to_pinyin().is_some())
}

/// The ways to write a word with readings in the place of some or all characters.
pub(super) fn writings(letters: &[char]) -> Vec<Writing> {
    if !has_sound(letters) {
        return Vec::new();
    }
    let all = (1_u32 << letters.len()) - 1;
    let is_compared = |replaced: u32| letters.len() <= LONGEST_MIXED || replaced == all || replaced.is_power_of_two();
    let written = (1..=all).filter(|&replaced| is_compared(replaced)).map(|replaced| writing(letters, replaced));
    written.filter(|writing| !is_innocent(&writing.letters)).collect()
}

/// Returns the word with the characters in the bit set replaced by their romanisation. The text may have a gap between
/// a romanisation and its neighbour.
fn writing(letters: &[char], replaced: u32) -> Writing {
    let mut writing = Writing { letters: Vec::new(), spacing: Spacing::default() };
    let mut was_reading = false;
    for (index, &letter) in letters.iter().enumerate() {
        let is_reading = replaced & (1 << index) != 0;
        if index > 0 && (is_reading || was_reading) {
            writing.spacing.gaps.push(writing.letters.len() as u32);
        }
        match letter.to_pinyin().filter(|_| is_reading) {
            // The umlaut is typed as a v.
            Some(reading) => writing.letters.extend(reading.plain().replace('ü', "v").chars()),
            None => writing.letters.push(letter),
        }
        was_reading = is_reading;
    }
    writing
}

/// Returns true if a romanisation is too short or an English word.
fn is_innocent(letters: &[char]) -> bool {
    let is_latin = letters.iter().all(char::is_ascii_lowercase);
    let text: String = letters.iter().collect();
    is_latin && (letters.len() < SHORTEST_READING || ENGLISH.binary_search(&text.as_str()).is_ok())
}

fn tone_of(reading: pinyin::Pinyin) -> u8 {
    reading.with_tone_num_end().bytes().last().filter(u8::is_ascii_digit).map_or(0, |digit| digit - b'0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_are_read_alike_are_one_class() {
        let sounds = sounds();
        for (one, other, is_alike) in [('赌', '毒', true), ('博', '伯', true), ('赌', '博', false), ('微', '威', true)]
        {
            assert_eq!(sounds.class(one) == sounds.class(other), is_alike, "{one}{other}");
        }
        assert_ne!(sounds.tone('赌'), sounds.tone('毒'));
        assert_eq!(sounds.class('a'), 'a');
        assert!(sounds.alike(sounds.class('赌')).any(|letter| letter == '肚'));
    }

    #[test]
    fn short_words_are_written_in_every_mixture_and_long_ones_in_few() {
        let written = |word: &str| -> Vec<String> {
            let letters: Vec<char> = word.chars().collect();
            writings(&letters).iter().map(|writing| writing.letters.iter().collect()).collect()
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
