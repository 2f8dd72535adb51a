//! Other spellings of a listed word: romanised, with digits for numerals, with an initial, and backwards.
//!
//! Words with the option to match by pronunciation get all of them, other words only digits for numerals.

use pinyin::ToPinyin;

use super::{
    dictionary::dictionary,
    folding::{LetterClass, class_of},
    pattern::Spacing,
    pinyin::has_pinyin,
    similar_characters::is_taboo,
    types::MatchWay,
};

/// Maximum length of a word of which every mixture of characters and romanisations is matched. In longer words one
/// character at a time is replaced.
const MAX_MIXED_LENGTH: usize = 3;
/// Minimum letters of a romanisation that matches a whole word.
const MIN_READING_LENGTH: usize = 4;

/// Ordinary words of a Latin letter and a Han character.
const MIXED_WORDS: &str = "a股 b股 h股 t恤 k歌 b超 u盘 x光 q弹 c位 q版 p图 k线 t台 a站 b站 v字 v领 n次 a片 d盘 c盘 e盘 g点 k粉 a型 b型 o型 \
    d版 v信 w信 q群";

/// Units after a number.
pub(super) const UNITS: &str = "级个人位名次字年月日号天时点分秒岁米斤里层楼页章集期届条件张本份只台套款种元块万亿千百";
const NUMERALS: [char; 10] = ['零', '一', '二', '三', '四', '五', '六', '七', '八', '九'];
/// The numerals of cheques.
const CAPITALS: [char; 10] = ['零', '壹', '贰', '叁', '肆', '伍', '陆', '柒', '捌', '玖'];

/// Second readings of common characters.
const SECOND_READINGS: &[(char, &str)] = &[
    ('行', "hang"),
    ('长', "zhang"),
    ('重', "chong"),
    ('乐', "yue"),
    ('还', "huan"),
    ('传', "zhuan"),
    ('弹', "dan"),
    ('调', "tiao"),
    ('会', "kuai"),
    ('了', "liao"),
    ('没', "mo"),
    ('便', "pian"),
    ('朝', "zhao"),
    ('车', "ju"),
    ('降', "xiang"),
    ('角', "jue"),
    ('觉', "jiao"),
    ('解', "xie"),
    ('卡', "qia"),
    ('率', "shuai"),
    ('露', "lou"),
    ('绿', "lu"),
    ('模', "mu"),
    ('色', "shai"),
    ('厦', "sha"),
    ('参', "shen"),
    ('盛', "cheng"),
    ('似', "shi"),
    ('说', "shui"),
    ('宿', "xiu"),
    ('吓', "he"),
    ('校', "jiao"),
    ('血', "xie"),
    ('约', "yao"),
    ('择', "zhai"),
    ('扎', "za"),
    ('着', "zhao"),
    ('差', "chai"),
    ('查', "zha"),
    ('单', "shan"),
    ('大', "dai"),
    ('度', "duo"),
    ('番', "pan"),
    ('佛', "fu"),
    ('合', "ge"),
    ('和', "huo"),
    ('核', "hu"),
    ('奇', "ji"),
    ('强', "jiang"),
    ('期', "ji"),
    ('薄', "bao"),
    ('剥', "bao"),
    ('伯', "bai"),
    ('臭', "xiu"),
    ('藏', "zang"),
    ('地', "de"),
    ('系', "ji"),
    ('都', "du"),
    ('给', "ji"),
    ('得', "dei"),
    ('落', "lao"),
    ('塞', "sai"),
    ('熟', "shou"),
    ('肖', "xiao"),
    ('咽', "yan"),
    ('炸', "zha"),
    ('折', "she"),
    ('仔', "zai"),
    ('什', "shi"),
    ('石', "dan"),
    ('尿', "sui"),
    ('帖', "tie"),
    ('柏', "bo"),
    ('曾', "zeng"),
    ('称', "chen"),
    ('冲', "chong"),
    ('恶', "wu"),
    ('省', "xing"),
    ('识', "zhi"),
    ('数', "shuo"),
    ('转', "zhuan"),
    ('万', "mo"),
    ('尾', "yi"),
    ('否', "pi"),
    ('屏', "bing"),
    ('泊', "po"),
    ('秘', "bi"),
    ('龟', "jun"),
    ('叶', "xie"),
    ('贾', "gu"),
    ('术', "zhu"),
    ('提', "di"),
    ('拓', "ta"),
    ('巷', "hang"),
    ('吭', "hang"),
    ('雀', "qiao"),
    ('六', "lu"),
    ('颈', "geng"),
    ('勒', "lei"),
    ('粘', "nian"),
    ('缝', "feng"),
    ('炮', "bao"),
];

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

/// Latin letters that are written for others.
const ALIKE: &[(&[char], &[char])] = &[
    (&['f'], &['p', 'h']),
    (&['c', 'k'], &['k']),
    (&['c', 'k'], &['q']),
    (&['c'], &['k']),
    (&['k'], &['c']),
    (&['s'], &['z']),
    (&['u'], &['v']),
    (&['i'], &['y']),
    (&['x'], &['k', 's']),
    (&['x'], &['c', 'k', 's']),
    (&['o'], &['0', '0']),
];

/// A spelling of a word other than the listed one. Small, because a word has many: its letters are written when needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Spelling {
    /// Digits for numerals.
    Digits,
    /// Numerals of cheques for numerals: 陆合彩.
    Capitals,
    /// The characters in the bit set romanised.
    Romanised(u8),
    /// The same, and the character at this place by its second reading.
    SecondReading {
        romanised: u8,
        place: u8,
    },
    /// The character at this place replaced by the initial of its romanisation.
    Initial(u8),
    Backwards,
    /// A plus sign for 加 at the beginning.
    Plus,
    /// The misspelling of a Latin word with this number.
    Masked(u8),
}

/// The letters of a spelling, and its gaps.
#[derive(Debug)]
pub(super) struct Spelled {
    pub(super) letters: Vec<char>,
    pub(super) spacing: Option<Spacing>,
}

impl Spelling {
    /// Returns the way in which a text with this spelling of a word is found.
    pub(super) fn way(self, word: &[char]) -> MatchWay {
        match self {
            // A digit before a unit usually counts: 3级.
            Self::Digits if word.len() == 2 && UNITS.contains(word[1]) => MatchWay::Fuzzy,
            Self::Digits | Self::Capitals | Self::Plus => MatchWay::Letters,
            Self::Romanised(_) | Self::SecondReading { .. } => MatchWay::Sound,
            Self::Initial(place) if is_taboo(word[usize::from(place)]) => MatchWay::Sound,
            Self::Initial(_) => MatchWay::Initial,
            Self::Backwards => MatchWay::Reversed,
            Self::Masked(_) => MatchWay::Shape,
        }
    }

    /// Returns the word in this spelling.
    pub(super) fn of(self, word: &[char]) -> Spelled {
        let unspaced = |letters: Vec<char>| Spelled { letters, spacing: None };
        match self {
            Self::Digits => unspaced(word.iter().map(|&letter| digit_of(letter).unwrap_or(letter)).collect()),
            Self::Capitals => unspaced(word.iter().map(|&letter| capital_of(letter).unwrap_or(letter)).collect()),
            Self::Romanised(set) => romanised(word, set, None),
            Self::SecondReading { romanised: set, place } => {
                let place = usize::from(place);
                romanised(word, set, second_reading(word[place]).map(|reading| (place, reading)))
            }
            Self::Initial(place) => {
                let initial = |letter: char| letter.to_pinyin().and_then(|reading| reading.plain().chars().next());
                let is_replaced = |index: usize| index == usize::from(place);
                let shown =
                    |(index, &letter): (usize, &char)| initial(letter).filter(|_| is_replaced(index)).unwrap_or(letter);
                unspaced(word.iter().enumerate().map(shown).collect())
            }
            Self::Backwards => unspaced(word.iter().rev().copied().collect()),
            Self::Masked(number) => unspaced(masked(word).into_iter().nth(number.into()).unwrap_or_default()),
            Self::Plus => {
                let spacing = Spacing { required: vec![(0, '+')], ..Spacing::default() };
                Spelled { letters: word[1..].to_vec(), spacing: Some(spacing) }
            }
        }
    }

    /// Returns true if texts with this spelling mean something else.
    fn is_innocent(self, word: &[char]) -> bool {
        let letters = self.of(word).letters;
        match self {
            Self::Digits => letters == word || letters.iter().all(char::is_ascii_digit),
            Self::Capitals => {
                letters == word
                    || dictionary().contains(&letters)
                    || letters.iter().all(|letter| CAPITALS.contains(letter))
            }
            Self::Backwards => {
                let is_han = letters.iter().all(|&letter| class_of(letter) == LetterClass::Ideographic);
                letters == word || !is_han || dictionary().contains(&letters)
            }
            Self::Initial(_) => {
                let text: String = letters.iter().collect();
                MIXED_WORDS.split_whitespace().any(|word| word == text)
            }
            Self::Plus => false,
            Self::Masked(_) => letters == word,
            Self::Romanised(_) | Self::SecondReading { .. } => is_innocent(&letters),
        }
    }
}

/// Returns the other spellings of a word.
pub(super) fn spellings(word: &[char], by_sound: bool) -> impl Iterator<Item = Spelling> {
    let is_spoken = by_sound && has_pinyin(word);
    let count = if is_spoken { word.len() as u8 } else { 0 };
    // A word has at most eight characters here.
    let all = ((1_u16 << count) - 1) as u8;
    let is_compared = move |set: &u8| usize::from(count) <= MAX_MIXED_LENGTH || *set == all || set.is_power_of_two();
    let romanised = (1..=all).filter(is_compared).map(Spelling::Romanised);
    let second = (0..count)
        .filter(|&place| second_reading(word[usize::from(place)]).is_some())
        .flat_map(move |place| [1 << place, all].map(|romanised| Spelling::SecondReading { romanised, place }));
    let initials = (0..count).map(Spelling::Initial);
    let digits = word.iter().any(|&letter| digit_of(letter).is_some()).then_some(Spelling::Digits);
    let backwards = is_spoken.then_some(Spelling::Backwards);
    let capitals = digits.is_some().then_some(Spelling::Capitals);
    let plus = (by_sound && matches!(word, ['加', second, _, ..] if *second != '我')).then_some(Spelling::Plus);
    let is_latin = by_sound && word.len() >= MIN_READING_LENGTH && word.iter().all(char::is_ascii_lowercase);
    let masked = if is_latin { masked(word).len() as u8 } else { 0 };
    let plus = plus.into_iter().chain((0..masked).map(Spelling::Masked));
    let all =
        plus.into_iter().chain(digits).chain(capitals).chain(romanised).chain(second).chain(initials).chain(backwards);
    all.filter(|spelling| !spelling.is_innocent(word))
}

/// Returns the usual misspellings of a Latin word that hide it: a vowel dropped, letters doubled or exchanged, or letters that
/// sound alike.
fn masked(word: &[char]) -> Vec<Vec<char>> {
    let with =
        |range: std::ops::Range<usize>, other: &[char]| [&word[..range.start], other, &word[range.end..]].concat();
    let mut all = Vec::new();
    for (index, &letter) in word.iter().enumerate() {
        if index > 0 {
            if "aeiou".contains(letter) {
                all.push(with(index..index + 1, &[]));
            }
            all.push(with(index..index + 1, &[letter, letter]));
            if let Some(&next) = word.get(index + 1) {
                all.push(with(index..index + 2, &[next, letter]));
            }
        }
        for (sound, other) in ALIKE {
            if word[index..].starts_with(sound) {
                all.push(with(index..index + sound.len(), other));
            }
        }
    }
    all
}

/// Returns the Han numeral of a digit.
pub(super) fn numeral(digit: u32) -> char {
    NUMERALS[digit as usize]
}

fn digit_of(letter: char) -> Option<char> {
    let digit = NUMERALS.iter().position(|&numeral| numeral == letter)?;
    char::from_digit(digit as u32, 10)
}

fn capital_of(letter: char) -> Option<char> {
    NUMERALS.iter().position(|&numeral| numeral == letter).map(|digit| CAPITALS[digit])
}

fn second_reading(letter: char) -> Option<&'static str> {
    SECOND_READINGS.iter().find(|(other, _)| *other == letter).map(|(_, reading)| *reading)
}

/// Returns the word with the characters in the bit set romanised. The text may have a gap between a romanisation and
/// its neighbour.
fn romanised(word: &[char], set: u8, second: Option<(usize, &str)>) -> Spelled {
    let (mut letters, mut spacing) = (Vec::with_capacity(word.len() * 4), Spacing::default());
    let mut was_reading = false;
    for (index, &letter) in word.iter().enumerate() {
        let is_reading = set & (1 << index) != 0;
        if index > 0 && (is_reading || was_reading) {
            spacing.gaps.push(letters.len() as u32);
        }
        let second = second.filter(|second| second.0 == index).map(|second| second.1);
        let first = letter.to_pinyin().map(::pinyin::Pinyin::plain);
        match second.or(first).filter(|_| is_reading) {
            // The umlaut is usually typed as v.
            Some(reading) => letters.extend(reading.chars().map(|letter| if letter == 'ü' { 'v' } else { letter })),
            None => letters.push(letter),
        }
        was_reading = is_reading;
    }
    Spelled { letters, spacing: Some(spacing) }
}

/// Returns true if a romanisation is too short or an English word.
fn is_innocent(letters: &[char]) -> bool {
    let is_latin = letters.iter().all(char::is_ascii_lowercase);
    let text: String = letters.iter().collect();
    is_latin && (letters.len() < MIN_READING_LENGTH || ENGLISH.binary_search(&text.as_str()).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_readings_more_in_short_words() {
        let written = |word: &str| -> Vec<String> {
            let letters: Vec<char> = word.chars().collect();
            spellings(&letters, true)
                .filter(|spelling| matches!(spelling, Spelling::Romanised(_)))
                .map(|spelling| spelling.of(&letters).letters.iter().collect())
                .collect()
        };
        assert_eq!(written("赌博"), ["du博", "赌bo", "dubo"]);
        assert_eq!(written("六合彩").len(), 7);
        assert_eq!(written("代开发票").len(), 5);
        assert_eq!(written("妈的"), ["ma的", "妈de"], "made is English");
        assert!(spellings(&['v', 'x'], true).next().is_none() && spellings(&['赌'], true).next().is_none());
    }

    #[test]
    fn the_english_words_are_sorted() {
        assert!(ENGLISH.is_sorted());
    }
}
