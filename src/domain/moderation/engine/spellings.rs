//! Other spellings of a listed word: romanised, with digits for numerals, with an initial, and backwards.
//!
//! Words with the option to match by pronunciation get all of them, other words only digits for numerals.

use pinyin::ToPinyin;

use super::{
    dictionary::dictionary,
    folding::{LetterClass, class_of},
    pattern::Spacing,
    pinyin::has_pinyin,
    types::MatchWay,
};

/// Maximum length of a word of which every mixture of characters and romanisations is matched. In longer words one
/// character at a time is replaced.
const MAX_MIXED_LENGTH: usize = 3;
/// Minimum letters of a romanisation that matches a whole word.
const MIN_READING_LENGTH: usize = 4;

/// Minimum length of a word that is found with one of its characters as an initial.
const MIN_INITIAL_LENGTH: usize = 3;

/// Units after a number.
const UNITS: &str = "级个人位名次字年月日号天时点分秒岁米斤里层楼页章集期届条件张本份只台套款种元块万亿千百";
const NUMERALS: [char; 10] = ['零', '一', '二', '三', '四', '五', '六', '七', '八', '九'];

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

/// A spelling of a word, and the way in which a text with it is found.
pub(super) struct Spelling {
    pub(super) letters: Vec<char>,
    pub(super) spacing: Spacing,
    pub(super) way: MatchWay,
}

/// Returns the other spellings of a word.
pub(super) fn spellings(letters: &[char], by_sound: bool) -> Vec<Spelling> {
    let mut spellings: Vec<Spelling> = with_digits(letters).into_iter().collect();
    if by_sound && has_pinyin(letters) {
        spellings.extend(romanised(letters));
        spellings.extend(with_second_readings(letters));
        spellings.extend(with_initials(letters));
        spellings.extend(backwards(letters));
    }
    spellings
}

/// Returns the spelling with digits for numerals; `None` without numerals, or of a number.
fn with_digits(letters: &[char]) -> Option<Spelling> {
    let digit_of = |letter: char| NUMERALS.iter().position(|&numeral| numeral == letter);
    let written: Vec<char> = letters
        .iter()
        .map(|&letter| digit_of(letter).and_then(|digit| char::from_digit(digit as u32, 10)).unwrap_or(letter))
        .collect();
    let is_number = written.iter().all(char::is_ascii_digit);
    // A digit before a unit usually counts: 3级.
    let is_count = letters.len() == 2 && UNITS.contains(letters[1]);
    let way = if is_count { MatchWay::Fuzzy } else { MatchWay::Letters };
    (written != letters && !is_number).then(|| unspaced(written, way))
}

/// Returns the Han numeral of a digit.
pub(super) fn numeral(digit: u32) -> char {
    NUMERALS[digit as usize]
}

/// Returns the spellings with one character replaced by the initial of its romanisation.
fn with_initials(letters: &[char]) -> impl Iterator<Item = Spelling> {
    let places = if letters.len() < MIN_INITIAL_LENGTH { 0..0 } else { 0..letters.len() };
    places.filter_map(|place| {
        let mut written = letters.to_vec();
        written[place] = letters[place].to_pinyin()?.plain().chars().next()?;
        Some(unspaced(written, MatchWay::Initial))
    })
}

/// Returns the word backwards, unless that is a word.
fn backwards(letters: &[char]) -> Option<Spelling> {
    let written: Vec<char> = letters.iter().rev().copied().collect();
    let is_other = written != letters && !dictionary().contains(&written);
    (is_other && written.iter().all(|&letter| class_of(letter) == LetterClass::Ideographic))
        .then(|| unspaced(written, MatchWay::Reversed))
}

fn unspaced(letters: Vec<char>, way: MatchWay) -> Spelling {
    Spelling { letters, spacing: Spacing::default(), way }
}

/// Returns the spellings with one character, or all, romanised, one of them by its second reading.
fn with_second_readings(letters: &[char]) -> impl Iterator<Item = Spelling> {
    let all = (1_u32 << letters.len()) - 1;
    let places = (0..letters.len()).filter_map(|place| {
        let (_, reading) = SECOND_READINGS.iter().find(|(letter, _)| *letter == letters[place])?;
        Some((place, *reading))
    });
    let spelled = places
        .flat_map(move |(place, reading)| [1 << place, all].map(|set| spelling(letters, set, Some((place, reading)))));
    spelled.filter(|spelling| !is_innocent(&spelling.letters))
}

/// Returns the spellings with some or all characters romanised.
fn romanised(letters: &[char]) -> Vec<Spelling> {
    let all = (1_u32 << letters.len()) - 1;
    let is_compared =
        |replaced: u32| letters.len() <= MAX_MIXED_LENGTH || replaced == all || replaced.is_power_of_two();
    let written = (1..=all).filter(|&replaced| is_compared(replaced)).map(|replaced| spelling(letters, replaced, None));
    written.filter(|spelling| !is_innocent(&spelling.letters)).collect()
}

/// Returns the word with the characters in the bit set romanised. The text may have a gap between a romanisation and
/// its neighbour.
fn spelling(letters: &[char], replaced: u32, second: Option<(usize, &str)>) -> Spelling {
    let mut spelling = Spelling { letters: Vec::new(), spacing: Spacing::default(), way: MatchWay::Sound };
    let mut was_reading = false;
    for (index, &letter) in letters.iter().enumerate() {
        let is_reading = replaced & (1 << index) != 0;
        if index > 0 && (is_reading || was_reading) {
            spelling.spacing.gaps.push(spelling.letters.len() as u32);
        }
        let second = second.filter(|second| second.0 == index).map(|second| second.1);
        let first = letter.to_pinyin().map(::pinyin::Pinyin::plain);
        match second.or(first).filter(|_| is_reading) {
            // The umlaut is usually typed as v.
            Some(reading) => spelling.letters.extend(reading.replace('ü', "v").chars()),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_readings_more_in_short_words() {
        let written = |word: &str| -> Vec<String> {
            let letters: Vec<char> = word.chars().collect();
            romanised(&letters).iter().map(|spelling| spelling.letters.iter().collect()).collect()
        };
        assert_eq!(written("赌博"), ["du博", "赌bo", "dubo"]);
        assert_eq!(written("六合彩").len(), 7);
        assert_eq!(written("代开发票").len(), 5);
        assert_eq!(written("妈的"), ["ma的", "妈de"], "made is English");
        assert!(spellings(&['v', 'x'], true).is_empty() && spellings(&['赌'], true).is_empty());
    }

    #[test]
    fn the_english_words_are_sorted() {
        assert!(ENGLISH.is_sorted());
    }
}
