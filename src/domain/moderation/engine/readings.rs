//! Second readings of a text: other spellings with the same length in bytes, so that positions in them are positions in
//! the text.
//!
//! An emoji with a letter may only separate letters, a cross may stand for an x, and bopomofo for its romanisation. A
//! digit, a Latin letter, a stroke or a kana between two Han characters may be a filler.

use super::{
    bopomofo,
    dictionary::dictionary,
    emoji_letters,
    folding::{Fold, LetterClass, class_of, folded_letter, folding},
};

/// Strokes and kana that fill gaps between Han characters.
const STROKES: &str = "丶丨丿亅乀乁乚一〇";
const KANA: std::ops::RangeInclusive<char> = '\u{3041}'..='\u{30FF}';
/// Characters that form a phrase with 一 before them.
const AFTER_ONE: &str = "试下看次点起种般样些直番遍回趟阵句声步个";
/// Particles that fill gaps between Han characters, and are words in most texts.
const PARTICLES: &str = "个的了下着过吧呢啊吗嘛哦呀把";
/// Crosses of two and of three bytes, which resemble an x.
const CROSSES: &str = "×✕✖✗✘❌❎╳⨯⨉☓";

/// The kind of a filler other than a Latin letter or a digit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Filler {
    /// A stroke or a kana.
    Stroke,
    /// A particle, which is a word in most texts.
    Particle,
}

/// The readings of a text beside the text itself that may have matches.
#[expect(clippy::struct_excessive_bools, reason = "the readings are independent")]
#[derive(Clone, Copy, Default)]
pub(super) struct OtherReadings {
    pub(super) emoji: bool,
    pub(super) spelled: bool,
    pub(super) fillers: bool,
    pub(super) particles: bool,
}

/// A second reading of a text.
pub(super) struct Reading {
    pub(super) text: String,
    /// Byte offsets of the characters that were replaced, in ascending order.
    pub(super) replaced: Vec<usize>,
}

/// Returns the characters other than Latin letters and digits that may be fillers, with their kinds.
pub(super) fn fillers() -> impl Iterator<Item = (char, Filler)> {
    let kana = KANA.filter(|&kana| folding().fold(kana) == Fold::Letter(kana));
    let strokes = STROKES.chars().chain(kana).map(|stroke| (stroke, Filler::Stroke));
    strokes.chain(PARTICLES.chars().map(|particle| (particle, Filler::Particle)))
}

/// Returns the characters that indicate a second spelling.
pub(super) fn respelled() -> impl Iterator<Item = char> {
    CROSSES.chars().chain(bopomofo::LETTERS)
}

/// Returns the text with crosses beside Latin letters as x, and with bopomofo romanised; `None` if it has neither.
pub(super) fn spelled(text: &str) -> Option<String> {
    let romanised = bopomofo::romanised(text);
    let source = romanised.as_deref().unwrap_or(text);
    let mut result = String::with_capacity(text.len());
    let mut has_crosses = false;
    let mut before = None;
    let mut characters = source.chars().peekable();
    while let Some(character) = characters.next() {
        let is_latin = |neighbour: Option<char>| {
            neighbour.is_some_and(|neighbour| {
                matches!(folding().fold(neighbour), Fold::Letter('a'..='z')) || CROSSES.contains(neighbour)
            })
        };
        let after = characters.peek().copied();
        if CROSSES.contains(character) && (is_latin(before) || is_latin(after)) {
            result.push(if character.len_utf8() == 2 { 'х' } else { 'ｘ' });
            has_crosses = true;
        } else {
            result.push(character);
        }
        before = Some(character);
    }
    (romanised.is_some() || has_crosses).then_some(result)
}

/// Returns the text with fillers as separators; `None` if it has none. Particles count as fillers only with
/// `particles`.
pub(super) fn without_fillers(text: &str, particles: bool) -> Option<Reading> {
    let mut reading = Reading { text: String::with_capacity(text.len()), replaced: Vec::new() };
    let letters: Vec<(usize, char, Option<char>)> =
        text.char_indices().map(|(place, character)| (place, character, folded_letter(character))).collect();
    for (index, &(place, character, letter)) in letters.iter().enumerate() {
        let neighbour = |index: Option<usize>| index.and_then(|index| letters.get(index)).and_then(|letter| letter.2);
        let (before, after) = (neighbour(index.checked_sub(1)), neighbour(Some(index + 1)));
        let is_stroke = |index: Option<usize>| neighbour(index).is_some_and(|letter| STROKES.contains(letter));
        // 一 begins many words and phrases, such as 测一试, but not if the next gap has a stroke too.
        let is_word = letter == Some('一')
            && after.is_some_and(|after| AFTER_ONE.contains(after) || dictionary().contains(&['一', after]))
            && !is_stroke(index.checked_sub(2))
            && !is_stroke(Some(index + 2));
        let is_filler = !is_word && letter.is_some_and(|letter| is_filler(letter, before, after, particles));
        if is_filler {
            reading.text.push(emoji_letters::separator(character.len_utf8()));
            reading.replaced.push(place);
        } else {
            reading.text.push(character);
        }
    }
    (!reading.replaced.is_empty()).then_some(reading)
}

/// Returns true if a letter between these may be a filler, or is the tone of the syllable before it.
fn is_filler(letter: char, before: Option<char>, after: Option<char>, particles: bool) -> bool {
    let is_han =
        |neighbour: Option<char>| neighbour.is_some_and(|neighbour| class_of(neighbour) == LetterClass::Ideographic);
    let is_between = is_han(before) && is_han(after);
    match letter {
        '1'..='5' if before.is_some_and(|before| before.is_ascii_lowercase()) => {
            after.is_none_or(|after| !after.is_ascii_digit())
        }
        '0'..='9' | 'a'..='z' => is_between,
        _ if STROKES.contains(letter) || KANA.contains(&letter) => is_between,
        _ => particles && is_between && PARTICLES.contains(letter),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_keep_positions() {
        for (text, expected) in [
            ("加1微a信", Some("加_微_信")),
            ("加丶微の信", Some("加☆微☆信")),
            ("du3bo2", Some("du_bo_")),
            ("加12微", None),
            ("加 1 微", None),
            ("加的微", None),
        ] {
            let reading = without_fillers(text, false);
            assert_eq!(reading.as_ref().map(|reading| reading.text.as_str()), expected, "{text}");
            assert!(reading.is_none_or(|reading| reading.text.len() == text.len()));
        }
        assert_eq!(without_fillers("加的微", true).unwrap().text, "加☆微");
        assert_eq!(spelled("v×se❌a").unwrap(), "vхseｘa");
        assert!(spelled("3×4").is_none() && spelled("加微").is_none());
        for (cross, _) in CROSSES.chars().zip(0..) {
            assert!(matches!(cross.len_utf8(), 2 | 3), "{cross}");
        }
    }
}
