//! Text from outside: trimmed, free of NUL, no longer than its limit.

use crate::error::{Fault, FieldCode};

/// Trims the text and checks it: at most `limit` characters (Unicode scalar values), no NUL.
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
    Ok(text.to_owned())
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
}
