//! The rules for an entry of the word list.

use crate::{
    domain::moderation::engine::normalise,
    error::{Fault, FieldCode},
};

/// The type of a word without one.
pub const UNTYPED: &str = "other";

/// Validates the text of a word: one line, at most `max_length` characters, with letters or digits. A single letter or
/// digit needs `force`.
///
/// # Errors
/// The fault of the text.
pub fn check(text: &str, max_length: usize, force: bool) -> Result<(), Fault> {
    if text.chars().count() > max_length {
        return Err(Fault::new(FieldCode::TooLong, format!("must be at most {max_length} characters long")));
    }
    if text.contains(['\n', '\r']) {
        return Err(Fault::new(FieldCode::InvalidCharacter, "must be on one line"));
    }
    match normalise(text).chars().filter(|character| !character.is_whitespace()).count() {
        0 => Err(Fault::new(FieldCode::InvalidFormat, "must contain a letter or a digit")),
        1 if !force => Err(Fault::new(
            FieldCode::TooShort,
            "must have at least two letters or digits; a single one would reject nearly every text",
        )),
        _ => Ok(()),
    }
}
