//! The names of hexagrams and trigrams.
//!
//! All text is normalised before, so spelling makes no difference. Text that only resembles a name is rejected. Full
//! Chinese names are parsed and not looked up (水雷屯 is water over thunder, and 屯 must agree), so that a contradictory
//! name is rejected.

use serde_json::Value;

use super::super::catalog::{Hexagram, Trigram};
use super::NameForm;
use super::normalize::normalize;
use crate::Locale;

/// Alternative names by King Wen number, normalised and without a leading article.
const OTHER_ENGLISH_NAMES: [(u8, &str); 36] = [
    (1, "creative heaven, heaven"),
    (2, "receptive earth, earth"),
    (3, "initial difficulty"),
    (4, "youthful inexperience, inexperience"),
    (8, "union"),
    (9, "taming power of the small, small accumulation"),
    (10, "conduct, treading conduct"),
    (12, "stagnation, standstill stagnation"),
    (13, "fellowship with men, fellowship with people"),
    (14, "possession in great measure, great possessions"),
    (18, "work on what has been spoiled, work on what has been spoiled decay, decay"),
    (20, "contemplation view"),
    (24, "return the turning point, returning"),
    (25, "innocence the unexpected"),
    (26, "taming power of the great, great accumulation"),
    (27, "mouth corners, corners of the mouth, corners of the mouth providing nourishment"),
    (28, "preponderance of the great, great excess"),
    (29, "abysmal, water"),
    (30, "clinging, fire"),
    (31, "influence wooing"),
    (34, "power of the great"),
    (37, "family the clan"),
    (43, "break through, resoluteness, breakthrough resoluteness"),
    (45, "gathering together massing, gathering"),
    (46, "ascending"),
    (47, "exhaustion, oppression exhaustion"),
    (49, "revolution molting"),
    (50, "caldron"),
    (51, "arousing, thunder"),
    (52, "keeping still, mountain"),
    (53, "development gradual progress, gradual progress"),
    (55, "abundance fullness"),
    (57, "gentle, wind"),
    (58, "joyous, lake"),
    (59, "dispersion dissolution"),
    (62, "preponderance of the small, small excess"),
];

/// The maximum number of words in an English name.
const MAX_ENGLISH_WORDS: usize = 8;

/// The pinyin of the trigrams without tones, in their order.
const TRIGRAM_PINYIN: [&str; 8] = ["qian", "dui", "li", "zhen", "xun", "kan", "gen", "kun"];

/// Returns the hexagram that the whole text names, by sign, Chinese or English name, or number.
pub(super) fn hexagram(text: &str) -> Option<(Hexagram, NameForm)> {
    let text = text.trim();
    let by_start = hexagram_at_start(text)
        .filter(|(_, _, rest)| matches!(rest.trim(), "" | "卦"))
        .map(|(hexagram, form, _)| (hexagram, form));
    by_start
        .or_else(|| hexagram_by_number(text).map(|hexagram| (hexagram, NameForm::Number)))
        .or_else(|| hexagram_by_code_point(text).map(|hexagram| (hexagram, NameForm::Sign)))
        .or_else(|| hexagram_by_english_name(text).map(|hexagram| (hexagram, NameForm::EnglishName)))
}

/// Returns the hexagram whose sign or Chinese name starts the text, and the text after it.
pub(super) fn hexagram_at_start(text: &str) -> Option<(Hexagram, NameForm, &str)> {
    sign_at_start(text).or_else(|| full_name_at_start(text)).or_else(|| short_name_at_start(text))
}

/// Returns the hexagram whose sign starts the text.
pub(super) fn sign_at_start(text: &str) -> Option<(Hexagram, NameForm, &str)> {
    let sign = text.chars().next()?;
    let hexagram = Hexagram::from_sign(sign)?;
    Some((hexagram, NameForm::Sign, &text[sign.len_utf8()..]))
}

/// Returns the hexagram whose full name (水雷屯, 乾为天) starts the text.
pub(super) fn full_name_at_start(text: &str) -> Option<(Hexagram, NameForm, &str)> {
    let mut letters = text.chars();
    let (first, second) = (letters.next()?, letters.next()?);
    let hexagram = if second == '为' {
        let trigram = trigram_by_letter(first, Trigram::chinese_name)?;
        Hexagram::from_trigrams(trigram, trigram)
    } else {
        let upper = trigram_by_letter(first, chinese_image)?;
        Hexagram::from_trigrams(upper, trigram_by_letter(second, chinese_image)?)
    };
    let rest = text.strip_prefix(hexagram.chinese_full_name())?;
    Some((hexagram, NameForm::FullName, rest))
}

/// Returns the hexagram whose short name starts the text, the longer of two that match.
pub(super) fn short_name_at_start(text: &str) -> Option<(Hexagram, NameForm, &str)> {
    Hexagram::all()
        .filter_map(|hexagram| Some((hexagram, text.strip_prefix(hexagram.chinese_name())?)))
        .max_by_key(|(hexagram, _)| hexagram.chinese_name().len())
        .map(|(hexagram, rest)| (hexagram, NameForm::ShortName, rest))
}

/// Returns the hexagram with the longest English name at the start of the text.
pub(super) fn english_name_at_start(text: &str) -> Option<Hexagram> {
    let end = text
        .find(|letter: char| !letter.is_ascii_alphabetic() && !matches!(letter, ' ' | '-' | '\''))
        .unwrap_or(text.len());
    let words: Vec<&str> = words(&text[..end]).take(MAX_ENGLISH_WORDS + 1).collect();
    (1..=words.len()).rev().find_map(|count| hexagram_by_english_name(&words[..count].join(" ")))
}

/// Parses the King Wen number in a text such as `3`, `No. 3`, `#3`, `第3卦` or `第三卦`.
pub(super) fn hexagram_by_number(text: &str) -> Option<Hexagram> {
    let text = ["no.", "no", "#", "hexagram", "第"].iter().find_map(|prefix| text.strip_prefix(prefix)).unwrap_or(text);
    let digits = text.strip_suffix('卦').unwrap_or(text).trim();
    let number = digits.parse().ok().or_else(|| chinese_number(digits))?;
    Hexagram::from_number(number)
}

/// Returns the trigram that the whole text names: ☵, 坎, 水, 坎水, kan, water or The Abysmal.
pub(super) fn trigram(text: &str) -> Option<Trigram> {
    let text = text.trim().trim_end_matches('卦');
    let words: Vec<&str> = words(text).collect();
    let words = words.strip_prefix(&["the"]).unwrap_or(&words).join(" ");
    Trigram::all()
        .zip(TRIGRAM_PINYIN)
        .find(|(trigram, pinyin)| {
            words == *pinyin || words == trigram.image(Locale::English) || is_named(trigram.english_name(), &words)
        })
        .map(|(trigram, _)| trigram)
        .or_else(|| trigram_at_start(text).filter(|(_, rest)| rest.is_empty()).map(|it| it.0))
}

/// Returns the trigram whose sign, Chinese name or image starts the text, and the text after it.
pub(super) fn trigram_at_start(text: &str) -> Option<(Trigram, &str)> {
    let first = text.chars().next()?;
    let trigram = Trigram::from_sign(first)
        .or_else(|| trigram_by_letter(first, Trigram::chinese_name))
        .or_else(|| trigram_by_letter(first, chinese_image))?;
    let rest = &text[first.len_utf8()..];
    let repeated = rest.strip_prefix(trigram.chinese_name()).unwrap_or(rest);
    let repeated = repeated.strip_prefix(chinese_image(trigram)).unwrap_or(repeated);
    Some((trigram, repeated))
}

/// Returns the trigram in a JSON value. The value is a text, an object with a name or sign, three lines from the
/// bottom, or the Earlier Heaven number from 1 (乾) to 8 (坤).
pub(super) fn trigram_of_value(value: &Value) -> Option<Trigram> {
    match value {
        Value::String(text) => trigram(&normalize(text)).or_else(|| trigram_of_digits(text)),
        Value::Number(number) => {
            let role = usize::try_from(number.as_u64()?).ok()?.checked_sub(1)?;
            Trigram::all().nth(role)
        }
        Value::Array(lines) => {
            let lines: Vec<bool> = lines.iter().map(is_yang).collect::<Option<_>>()?;
            Some(Trigram::from_figure(lines.try_into().ok()?))
        }
        Value::Object(fields) => ["name", "chineseName", "symbol", "sign", "gua", "english"]
            .iter()
            .find_map(|key| trigram(&normalize(fields.get(*key)?.as_str()?))),
        Value::Bool(_) | Value::Null => None,
    }
}

fn trigram_by_letter(letter: char, name: fn(Trigram) -> &'static str) -> Option<Trigram> {
    Trigram::all().find(|trigram| name(*trigram).starts_with(letter))
}

fn trigram_of_digits(text: &str) -> Option<Trigram> {
    let lines: Vec<bool> = text
        .trim()
        .bytes()
        .map(|digit| match digit {
            b'0' => Some(false),
            b'1' => Some(true),
            _ => None,
        })
        .collect::<Option<_>>()?;
    Some(Trigram::from_figure(lines.try_into().ok()?))
}

fn is_yang(line: &Value) -> Option<bool> {
    match line {
        Value::Bool(is_yang) => Some(*is_yang),
        Value::Number(number) => match number.as_u64()? {
            0 | 8 => Some(false),
            1 | 7 => Some(true),
            _ => None,
        },
        _ => None,
    }
}

fn chinese_image(trigram: Trigram) -> &'static str {
    trigram.image(Locale::Chinese)
}

fn hexagram_by_code_point(text: &str) -> Option<Hexagram> {
    let digits = text.strip_prefix("u+").or_else(|| text.strip_prefix("\\u"))?;
    Hexagram::from_sign(char::from_u32(u32::from_str_radix(digits, 16).ok()?)?)
}

fn hexagram_by_english_name(text: &str) -> Option<Hexagram> {
    let words: Vec<&str> = words(text).take(MAX_ENGLISH_WORDS + 1).collect();
    let words = words.strip_prefix(&["the"]).unwrap_or(&words).join(" ");
    Hexagram::all().find(|hexagram| is_named(hexagram.english_name(), &words)).or_else(|| {
        let (number, _) = OTHER_ENGLISH_NAMES.iter().find(|(_, names)| names.split(", ").any(|name| name == words))?;
        Hexagram::from_number(*number)
    })
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty())
}

/// Compares without allocating, and ignores the article of some names.
fn is_named(name: &str, words: &str) -> bool {
    name.strip_prefix("The ").unwrap_or(name).eq_ignore_ascii_case(words)
}

/// Parses 一 to 九十九.
fn chinese_number(text: &str) -> Option<u8> {
    let digit = |text: &str| -> Option<u8> {
        let mut letters = text.chars();
        let role = "一二三四五六七八九".chars().position(|it| Some(it) == letters.clone().next())?;
        letters.next();
        letters.next().is_none().then_some(u8::try_from(role).ok()? + 1)
    };
    let Some((tens, ones)) = text.split_once('十') else {
        return digit(text);
    };
    let tens = if tens.is_empty() { 1 } else { digit(tens)? };
    let ones = if ones.is_empty() { 0 } else { digit(ones)? };
    Some(tens * 10 + ones)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Option<(u8, NameForm)> {
        hexagram(&normalize(text)).map(|(hexagram, form)| (hexagram.number(), form))
    }

    #[test]
    fn recognises_every_name_of_every_hexagram() {
        for expected in Hexagram::all() {
            let names = [
                (expected.sign(), NameForm::Sign),
                (expected.chinese_full_name(), NameForm::FullName),
                (expected.chinese_name(), NameForm::ShortName),
                (expected.english_name(), NameForm::EnglishName),
            ];
            for (name, form) in names {
                assert_eq!(hexagram(&normalize(name)), Some((expected, form)));
            }
            let numbered = format!("第{}卦", expected.number());
            assert_eq!(hexagram(&numbered), Some((expected, NameForm::Number)));
        }
    }

    #[test]
    fn recognises_other_spellings() {
        let spellings = [
            ("乾為天", 1, NameForm::FullName),
            ("風澤中孚卦", 61, NameForm::FullName),
            ("歸妹", 54, NameForm::ShortName),
            ("无妄卦", 25, NameForm::ShortName),
            ("無妄", 25, NameForm::ShortName),
            ("U+4DC2", 3, NameForm::Sign),
            ("６４", 64, NameForm::Number),
            ("第六十四卦", 64, NameForm::Number),
            ("第十卦", 10, NameForm::Number),
            ("No. 20", 20, NameForm::Number),
            ("THE ABYSMAL (WATER)", 29, NameForm::EnglishName),
            ("Work on What Has Been Spoiled", 18, NameForm::EnglishName),
            ("creative", 1, NameForm::EnglishName),
        ];
        for (text, expected, form) in spellings {
            assert_eq!(number(text), Some((expected, form)), "{text}");
        }
    }

    #[test]
    fn texts_without_a_name_yield_none() {
        for text in ["", "水雷需", "乾为地", "卦", "65", "0", "第0卦", "peaceful", "师傅", "u+4e00"] {
            assert_eq!(number(text), None, "{text}");
        }
    }

    #[test]
    fn recognises_every_name_of_every_trigram() {
        for (expected, pinyin) in Trigram::all().zip(TRIGRAM_PINYIN) {
            let names = [
                expected.sign(),
                expected.chinese_name(),
                chinese_image(expected),
                pinyin,
                expected.english_name(),
                expected.image(Locale::English),
            ];
            for name in names {
                assert_eq!(trigram(&normalize(name)), Some(expected), "{name}");
            }
        }
        assert_eq!(trigram("坎水"), trigram("坎卦"));
        assert_eq!(trigram("坎离"), None);
        assert_eq!(trigram(""), None);
    }

    #[test]
    fn english_names_match_whole_words() {
        let at_start = |text| english_name_at_start(text).map(Hexagram::number);
        assert_eq!(at_start("peace, and then"), Some(11));
        assert_eq!(at_start("the taming power of the small with"), Some(9));
        assert_eq!(at_start("peaceful"), None);
        assert_eq!(at_start(""), None);
    }
}
