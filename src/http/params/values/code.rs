//! A verification code as people type it.

use serde_json::{Value, json};

use crate::{
    config::Limits,
    error::{Fault, FieldCode, Result},
    http::{
        body::RawValue,
        params::{Parameter, Rules, text},
    },
    types::clean,
};

/// Characters in a code, blanks among them.
const CODE: usize = 32;

/// A verification code. Wrong ones are for the operation to refuse; here only what no code can look like. Digits are
/// read in whatever width an input method writes them, and what people put between them is passed over.
pub struct VerificationCode {
    text: String,
    is_number: bool,
}

impl VerificationCode {
    /// The code, of so many digits: one that came as a number has lost the zeros that it began with.
    pub fn of_digits(self, digits: usize) -> String {
        let Self { text, is_number } = self;
        if is_number { format!("{text:0>digits$}") } else { text }
    }
}

impl Parameter for VerificationCode {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        let written = clean(&text(value)?, CODE)?;
        let no_code = || Fault::new(FieldCode::InvalidFormat, "must be digits");
        let is_between = |character: char| character.is_whitespace() || "-‐‑–－".contains(character);
        // Separators are allowed between digits only.
        if written.starts_with(is_between) || written.ends_with(is_between) {
            return Err(no_code());
        }
        let digits = written.chars().filter(|character| !is_between(*character)).map(ascii_digit);
        let text: String = digits.collect::<Option<_>>().ok_or_else(no_code)?;
        if text.len() > 16 {
            return Err(Fault::new(FieldCode::TooLong, "must be at most 16 digits long"));
        }
        Ok(Self { text, is_number: matches!(value, RawValue::Json(raw) if !raw.get().starts_with('"')) })
    }

    fn schema(_: &Limits) -> Value {
        json!({ "type": ["string", "integer"], "pattern": "^[0-9]{1,16}$", "example": "246810" })
    }
}

/// The digit that a character is, be it a full-width one.
fn ascii_digit(character: char) -> Option<char> {
    match character {
        '0'..='9' => Some(character),
        '０'..='９' => char::from_digit(character as u32 - '０' as u32, 10),
        _ => None,
    }
}
