//! Emoji that contain letters or digits: a flag is two letters and a picture, 🆗 is two letters and a button.
//!
//! Such a character has two readings: as its letters, and as an emoji that hides a word like any other. The first
//! reading is the text as it is. The second replaces each of them by an emoji without letters and of the same length in
//! bytes, so that positions in it are positions in the text.

use std::ops::RangeInclusive;

/// Characters that are emoji and fold to letters.
const EMOJI: &[RangeInclusive<char>] = &[
    'ℹ'..='ℹ',
    'Ⓜ'..='Ⓜ',
    '㊗'..='㊗',
    '㊙'..='㊙',
    '🅰'..='🅱',
    '🅾'..='🅿',
    '🆎'..='🆎',
    '🆑'..='🆚',
    // Regional indicators.
    '\u{1F1E6}'..='\u{1F1FF}',
    '🈁'..='🈂',
    '🈚'..='🈚',
    '🈯'..='🈯',
    '🈲'..='🈺',
    '🉐'..='🉑',
];

/// Makes a key of the digit before it.
const KEYCAP: char = '\u{20E3}';
/// Asks for the picture of the character before it, and not for its letter.
const PICTURE: char = '\u{FE0F}';

/// The characters by which a text shows that it may have a second reading.
pub(super) fn signs() -> impl Iterator<Item = char> {
    EMOJI.iter().cloned().flatten().chain(std::iter::once(KEYCAP))
}

/// The text with such emoji as mere separators. Nothing if it has none.
pub(super) fn without_letters(text: &str) -> Option<String> {
    let mut other = String::with_capacity(text.len());
    let mut has_any = false;
    for (place, character) in text.char_indices() {
        let is_emoji = EMOJI.iter().any(|range| range.contains(&character))
            || character.is_ascii_digit() && is_key(&text[place + character.len_utf8()..]);
        has_any |= is_emoji;
        other.push(if is_emoji { separator(character.len_utf8()) } else { character });
    }
    has_any.then_some(other)
}

/// Returns true if the following characters make a keycap of a digit.
fn is_key(after: &str) -> bool {
    after.strip_prefix(PICTURE).unwrap_or(after).starts_with(KEYCAP)
}

/// A sign of so many bytes that means nothing to any word.
const fn separator(bytes: usize) -> char {
    match bytes {
        1 => '_',
        2 => '¤',
        3 => '☆',
        _ => '😀',
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::moderation::engine::folding::{Fold, folding};

    #[test]
    fn every_such_emoji_has_letters_and_its_stand_in_has_none() {
        for emoji in signs().filter(|&sign| sign != KEYCAP) {
            assert!(matches!(folding().fold(emoji), Fold::Letter(_) | Fold::Letters(_)), "{emoji}");
            assert_eq!(folding().fold(separator(emoji.len_utf8())), Fold::Separator, "{emoji}");
        }
        assert_eq!(folding().fold(separator(1)), Fold::Separator);
    }

    #[test]
    fn places_stay_what_they_were() {
        assert_eq!(without_letters("赌🇨🇳1️⃣1博").as_deref(), Some("赌😀😀_\u{fe0f}\u{20e3}1博"));
        assert_eq!(without_letters("赌1博 ⓐ😀\u{fe0f}"), None);
    }
}
