//! Text from outside: trimmed, without control characters, and limited in length.

use unicode_segmentation::UnicodeSegmentation;

use super::is_invisible;
use crate::error::{Fault, FieldCode};

/// Code points that one character may have on average, in a text as long as its limit. Families of emoji have up to 11.
const CODE_POINTS: usize = 12;

/// The characters with which a spreadsheet begins a formula.
pub const FORMULA_STARTS: [char; 10] = ['=', '+', '-', '@', '\t', '\r', '＝', '＋', '－', '＠'];

/// Trims and validates a text: at most `limit` characters as people count them, no control characters but line breaks
/// and tabs, and something visible unless it is empty.
///
/// # Errors
/// `too_long` or `invalid_character`.
pub fn clean(text: &str, limit: usize) -> Result<String, Fault> {
    let is_rejected = |character: char| character.is_control() && !matches!(character, '\n' | '\t');
    reject_characters(text, is_rejected)?;
    clean_characters(text, limit)
}

/// Like [`clean`], for text shown on one line with other texts: no line breaks, and no marks that change the direction
/// of the text around them.
///
/// # Errors
/// `too_long` or `invalid_character`.
pub fn clean_line(text: &str, limit: usize) -> Result<String, Fault> {
    reject_characters(text, |character| character == '\n' || breaks_line_or_direction(character))?;
    clean_characters(text, limit)
}

/// Like [`clean_line`], but with line breaks.
///
/// # Errors
/// `too_long` or `invalid_character`.
pub fn clean_lines(text: &str, limit: usize) -> Result<String, Fault> {
    reject_characters(text, |character| character != '\n' && breaks_line_or_direction(character))?;
    clean_characters(text, limit)
}

/// Counts an emoji or letter that several code points form as one character.
fn clean_characters(text: &str, limit: usize) -> Result<String, Fault> {
    let text = text.trim();
    // Bytes bound characters from above, so that short texts are not counted.
    let code_points = if text.len() > limit { text.chars().count() } else { 0 };
    let has_too_many = || text.graphemes(true).take(limit + 1).count() > limit;
    if code_points > limit && (code_points > limit.saturating_mul(CODE_POINTS) || has_too_many()) {
        return Err(too_long(limit));
    }
    clean_as_sent(text, usize::MAX)
}

/// Like [`clean`], for text that is returned as sent, or only compared: any character but NUL, and at most `limit` code
/// points.
///
/// # Errors
/// `too_long` or `invalid_character`.
pub fn clean_as_sent(text: &str, limit: usize) -> Result<String, Fault> {
    let text = text.trim();
    if text.contains('\0') {
        return Err(Fault::new(FieldCode::InvalidCharacter, ("must not contain NUL", "不能包含 NUL 字符")));
    }
    if text.len() > limit && text.chars().count() > limit {
        return Err(too_long(limit));
    }
    if !text.is_empty() && text.chars().all(|character| is_invisible(character) || character.is_whitespace()) {
        return Err(Fault::new(FieldCode::InvalidCharacter, ("must contain a visible character", "须有可见的字符")));
    }
    Ok(text.to_owned())
}

fn too_long(limit: usize) -> Fault {
    Fault::new(FieldCode::TooLong, (format!("must be at most {limit} characters long"), format!("最多 {limit} 个字")))
}

/// Ignores the characters that trimming removes, and accepts the CRLF line ends of forms.
fn reject_characters(text: &str, is_rejected: impl Fn(char) -> bool) -> Result<(), Fault> {
    let text = text.trim();
    let is_found = text.contains(|character: char| character != '\r' && is_rejected(character));
    let mut returns = text.match_indices('\r').map(|(place, _)| &text[place + 1..]);
    if is_found || returns.any(|after| is_rejected('\n') || !after.starts_with('\n')) {
        return Err(Fault::new(
            FieldCode::InvalidCharacter,
            ("must not contain control characters", "不能包含控制字符"),
        ));
    }
    Ok(())
}

/// Returns true for controls, separators of lines and paragraphs, and marks that change the direction of the text
/// around them.
fn breaks_line_or_direction(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{2028}' | '\u{2029}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_counted_and_not_bytes() {
        assert_eq!(clean(" 乾坤 ", 2), Ok("乾坤".to_owned()));
        assert_eq!(clean("乾坤屯", 2).unwrap_err().code, FieldCode::TooLong);
        let family = "👨‍👩‍👧‍👦";
        assert_eq!(clean(&family.repeat(2), 2), Ok(family.repeat(2)));
        assert_eq!(clean(&family.repeat(3), 2).unwrap_err().code, FieldCode::TooLong);
        assert_eq!(clean(&format!("e{}", "\u{301}".repeat(100)), 2).unwrap_err().code, FieldCode::TooLong);
    }

    #[test]
    fn characters_without_ink_are_no_text() {
        for text in [
            "\u{e0061}\u{e0062}",
            "\u{34f}",
            "\u{17b4}\u{17b5}",
            "\u{e0100} \u{e01ef}",
            "\u{e0001}\u{200b}",
            "\u{e0fff}",
        ] {
            assert_eq!(clean(text, 10).unwrap_err().code, FieldCode::InvalidCharacter, "{text:?}");
        }
        let seen = "🏴\u{e0067}\u{e0062}\u{e007f} 字\u{e0100}";
        assert_eq!(clean(seen, 20), Ok(seen.to_owned()));
    }

    #[test]
    fn nul_is_rejected() {
        assert_eq!(clean("a\0b", 10).unwrap_err().code, FieldCode::InvalidCharacter);
    }

    #[test]
    fn rejects_control_and_formatting_characters() {
        let is_rejected = |read: fn(&str, usize) -> Result<String, Fault>, text: &str| match read(text, 20) {
            Ok(read) => {
                assert_eq!(read, text);
                false
            }
            Err(fault) => fault.code == FieldCode::InvalidCharacter,
        };
        for (text, prose, lines, line) in [
            ("a\nb", false, false, true),
            ("a\r\nb", false, false, true),
            ("a\rb", true, true, true),
            ("a\tb", false, true, true),
            ("a\u{1b}[31mb", true, true, true),
            ("a\u{7}b", true, true, true),
            ("a\u{7f}b", true, true, true),
            ("a\u{9b}31mb", true, true, true),
            ("\u{202e}博赌\u{202c}", false, true, true),
            ("a\u{2066}b\u{2069}", false, true, true),
            ("a\u{2028}b", false, true, true),
            ("שלום\u{200f} ☯\u{fe0f} 👩\u{200d}👦", false, false, false),
        ] {
            assert_eq!(is_rejected(clean, text), prose, "{text:?}");
            assert_eq!(is_rejected(clean_lines, text), lines, "{text:?}");
            assert_eq!(is_rejected(clean_line, text), line, "{text:?}");
            assert!(!is_rejected(clean_as_sent, text), "{text:?}");
        }
    }

    #[test]
    fn rejects_text_of_invisible_characters_only() {
        for unseen in ["\u{200b}", "\u{feff}\u{2060}", "\u{3164} \u{2800}", " \u{200d}\n\u{202e} "] {
            assert_eq!(clean(unseen, 10).unwrap_err().code, FieldCode::InvalidCharacter, "{unseen:?}");
        }
        for seen in ["", " ", "☯\u{fe0f}", "\u{200b}乾", "👩\u{200d}👦", "."] {
            assert_eq!(clean(seen, 10).as_deref(), Ok(seen.trim()), "{seen:?}");
        }
    }
}
