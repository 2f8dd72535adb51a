//! Romanises bopomofo. A syllable never gets longer than its letters, so that positions stay the same.

/// The letters of bopomofo.
pub(super) const LETTERS: std::ops::RangeInclusive<char> = '\u{3105}'..='\u{3129}';
/// Fills the place of letters that the romanisation does not need. It is invisible and one byte long.
const PADDING: char = '\u{7F}';
/// Marks of tones, each two bytes long, and the separator in their place.
const TONES: &str = "ˊˇˋ˙";
const TONE_SEPARATOR: char = '¤';

const INITIALS: &[(char, &str)] = &[
    ('ㄅ', "b"),
    ('ㄆ', "p"),
    ('ㄇ', "m"),
    ('ㄈ', "f"),
    ('ㄉ', "d"),
    ('ㄊ', "t"),
    ('ㄋ', "n"),
    ('ㄌ', "l"),
    ('ㄍ', "g"),
    ('ㄎ', "k"),
    ('ㄏ', "h"),
    ('ㄐ', "j"),
    ('ㄑ', "q"),
    ('ㄒ', "x"),
    ('ㄓ', "zh"),
    ('ㄔ', "ch"),
    ('ㄕ', "sh"),
    ('ㄖ', "r"),
    ('ㄗ', "z"),
    ('ㄘ', "c"),
    ('ㄙ', "s"),
];
const FINALS: &[(char, &str)] = &[
    ('ㄚ', "a"),
    ('ㄛ', "o"),
    ('ㄜ', "e"),
    ('ㄝ', "e"),
    ('ㄞ', "ai"),
    ('ㄟ', "ei"),
    ('ㄠ', "ao"),
    ('ㄡ', "ou"),
    ('ㄢ', "an"),
    ('ㄣ', "en"),
    ('ㄤ', "ang"),
    ('ㄥ', "eng"),
    ('ㄦ', "er"),
];
/// A final, its letters with the medial after an initial, and without one.
type Rime = (&'static str, &'static str, &'static str);

/// Finals after a medial: the letters after an initial, and the whole syllable without one.
const MEDIALS: &[(char, &[Rime])] = &[
    (
        'ㄧ',
        &[
            ("", "i", "yi"),
            ("a", "ia", "ya"),
            ("o", "io", "yo"),
            ("e", "ie", "ye"),
            ("ai", "iai", "yai"),
            ("ao", "iao", "yao"),
            ("ou", "iu", "you"),
            ("an", "ian", "yan"),
            ("en", "in", "yin"),
            ("ang", "iang", "yang"),
            ("eng", "ing", "ying"),
        ],
    ),
    (
        'ㄨ',
        &[
            ("", "u", "wu"),
            ("a", "ua", "wa"),
            ("o", "uo", "wo"),
            ("ai", "uai", "wai"),
            ("ei", "ui", "wei"),
            ("an", "uan", "wan"),
            ("en", "un", "wen"),
            ("ang", "uang", "wang"),
            ("eng", "ong", "weng"),
        ],
    ),
    ('ㄩ', &[("", "u", "yu"), ("e", "ue", "yue"), ("an", "uan", "yuan"), ("en", "un", "yun"), ("eng", "iong", "yong")]),
];

/// Returns the text with bopomofo romanised; `None` if it has none.
pub(super) fn romanised(text: &str) -> Option<String> {
    if !text.contains(|letter| LETTERS.contains(&letter)) {
        return None;
    }
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    let mut is_after_syllable = false;
    while let Some(character) = rest.chars().next() {
        let length = if let Some((syllable, length)) = syllable(rest) {
            result.push_str(&syllable);
            result.extend(std::iter::repeat_n(PADDING, length - syllable.len()));
            is_after_syllable = true;
            length
        } else {
            let is_tone = is_after_syllable && TONES.contains(character);
            result.push(if is_tone { TONE_SEPARATOR } else { character });
            is_after_syllable = false;
            character.len_utf8()
        };
        rest = &rest[length..];
    }
    Some(result)
}

/// Returns the romanised syllable at the start of a text, and its bytes in the text.
fn syllable(text: &str) -> Option<(String, usize)> {
    if !text.starts_with(|letter| LETTERS.contains(&letter)) {
        return None;
    }
    let mut letters = text.chars().peekable();
    let initial = letters.next_if(|letter| INITIALS.iter().any(|(initial, _)| initial == letter));
    let medial = letters.next_if(|letter| MEDIALS.iter().any(|(medial, _)| medial == letter));
    let last = letters.next_if(|letter| FINALS.iter().any(|(last, _)| last == letter));
    let length = [initial, medial, last].into_iter().flatten().map(char::len_utf8).sum();
    let latin = |table: &[(char, &'static str)], letter: Option<char>| {
        letter.and_then(|letter| table.iter().find(|row| row.0 == letter)).map_or("", |row| row.1)
    };
    let (initial, last) = (latin(INITIALS, initial), latin(FINALS, last));
    let syllable = match medial {
        None if last.is_empty() && matches!(initial, "zh" | "ch" | "sh" | "r" | "z" | "c" | "s") => {
            format!("{initial}i")
        }
        None => format!("{initial}{last}"),
        Some(medial) => {
            let (_, rows) = MEDIALS.iter().find(|row| row.0 == medial)?;
            let (_, after, alone) = rows.iter().find(|row| row.0 == last)?;
            let is_umlaut = medial == 'ㄩ' && matches!(initial, "n" | "l");
            match initial {
                "" => (*alone).to_owned(),
                _ if is_umlaut => format!("{initial}{}", after.replacen('u', "v", 1)),
                _ => format!("{initial}{after}"),
            }
        }
    };
    (length > 0 && !syllable.is_empty()).then_some((syllable, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn romanises_syllables_in_place() {
        for (text, expected) in [
            ("ㄉㄨˇㄅㄛˊ", "du bo "),
            ("赌ㄅㄛ", "赌bo"),
            ("ㄓ", "zhi"),
            ("ㄐㄧㄚㄨㄟㄒㄧㄣ", "jiaweixin"),
            ("ㄌㄩˋ", "lv "),
            ("ㄒㄩㄥ", "xiong"),
            ("ㄧㄥˊ", "ying "),
        ] {
            let result = romanised(text).unwrap();
            assert_eq!(result.len(), text.len(), "{text}");
            assert_eq!(result.replace(PADDING, "").replace(TONE_SEPARATOR, " "), expected, "{text}");
        }
        assert!(LETTERS.clone().all(|letter| romanised(&letter.to_string()).is_some_and(|text| text.len() == 3)));
        assert_eq!(romanised("赌博"), None);
    }
}
