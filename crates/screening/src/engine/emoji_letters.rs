//! Emoji that contain letters or digits: a flag is two letters, and 🆗 is a button with two letters.
//!
//! Such a character has two readings: as its letters, and as an emoji that disguises a word like any other symbol. The
//! first reading is the text itself. The second replaces each such emoji by one without letters and with the same
//! length in bytes, so that its positions are positions in the text.

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

/// Turns the digit before it into a key.
const KEYCAP: char = '\u{20E3}';
/// Selects the picture of the character before it instead of its letter.
const PICTURE: char = '\u{FE0F}';

/// Returns the characters that indicate a second reading.
pub(super) fn signs() -> impl Iterator<Item = char> {
    EMOJI.iter().cloned().flatten().chain(std::iter::once(KEYCAP))
}

/// Returns the text with such emoji as mere separators; `None` if it has none.
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

/// Returns true if the following characters turn a digit into a keycap.
fn is_key(after: &str) -> bool {
    after.strip_prefix(PICTURE).unwrap_or(after).starts_with(KEYCAP)
}

/// Returns a sign of this length in bytes that is part of no word.
pub(super) const fn separator(bytes: usize) -> char {
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
    use crate::engine::folding::{Fold, folding};

    #[test]
    fn replaced_emoji_have_letters_and_replacements_none() {
        for emoji in signs().filter(|&sign| sign != KEYCAP) {
            assert!(matches!(folding().fold(emoji), Fold::Letter(_) | Fold::Letters(_)), "{emoji}");
            assert_eq!(folding().fold(separator(emoji.len_utf8())), Fold::Separator, "{emoji}");
        }
        assert_eq!(folding().fold(separator(1)), Fold::Separator);
    }

    #[test]
    fn positions_stay_the_same() {
        assert_eq!(without_letters("赌🇨🇳1️⃣1博").as_deref(), Some("赌😀😀_\u{fe0f}\u{20e3}1博"));
        assert_eq!(without_letters("赌1博 ⓐ😀\u{fe0f}"), None);
    }
}
