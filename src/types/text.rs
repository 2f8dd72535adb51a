//! Text from outside: trimmed, free of NUL, no longer than its limit.

use crate::error::{Fault, FieldCode};

/// Trims the text and checks it: at most `limit` characters (Unicode scalar values), no NUL, something to be seen unless
/// it is empty.
///
/// # Errors
/// `too_long` or `invalid_character`.
pub fn clean(text: &str, limit: usize) -> Result<String, Fault> {
    let text = text.trim();
    if text.contains('\0') {
        return Err(Fault::new(FieldCode::InvalidCharacter, "must not contain NUL"));
    }
    // Bytes bound characters from above, so that short texts are not counted.
    if text.len() > limit && text.chars().count() > limit {
        return Err(Fault::new(FieldCode::TooLong, format!("must be at most {limit} characters long")));
    }
    if !text.is_empty() && text.chars().all(|character| is_invisible(character) || character.is_whitespace()) {
        return Err(Fault::new(FieldCode::InvalidCharacter, "must have a character that is seen"));
    }
    Ok(text.to_owned())
}

/// Controls, joiners, marks of direction, selectors and fillers: what takes no ink, and is not white space.
pub fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\0'..='\u{8}' | '\u{E}'..='\u{1F}' | '\u{7F}'..='\u{84}' | '\u{86}'..='\u{9F}'
            | '\u{AD}' | '\u{600}'..='\u{605}' | '\u{61C}' | '\u{6DD}' | '\u{70F}' | '\u{890}'..='\u{891}' | '\u{8E2}'
            | '\u{115F}'..='\u{1160}' | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}' | '\u{2800}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}'
            | '\u{FFF0}'..='\u{FFFB}' | '\u{110BD}' | '\u{110CD}' | '\u{13430}'..='\u{1343F}'
            | '\u{1BCA0}'..='\u{1BCA3}' | '\u{1D173}'..='\u{1D17A}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_counted_and_not_bytes() {
        assert_eq!(clean(" 乾坤 ", 2), Ok("乾坤".to_owned()));
        assert_eq!(clean("乾坤屯", 2).unwrap_err().code, FieldCode::TooLong);
    }

    #[test]
    fn nul_is_refused() {
        assert_eq!(clean("a\0b", 10).unwrap_err().code, FieldCode::InvalidCharacter);
    }

    #[test]
    fn what_nobody_sees_is_no_text_by_itself() {
        for unseen in ["\u{200b}", "\u{feff}\u{2060}", "\u{3164} \u{2800}", " \u{200d}\n\u{202e} "] {
            assert_eq!(clean(unseen, 10).unwrap_err().code, FieldCode::InvalidCharacter, "{unseen:?}");
        }
        for seen in ["", " ", "☯\u{fe0f}", "\u{200b}乾", "👩\u{200d}👦", "."] {
            assert_eq!(clean(seen, 10).as_deref(), Ok(seen.trim()), "{seen:?}");
        }
    }
}
