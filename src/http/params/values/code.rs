//! Verification codes, in the spellings that people type.

use serde_json::{Value, json};

use crate::{
    config::LimitsConfig,
    error::{Fault, FieldCode, Result},
    http::{
        body::RawValue,
        params::{Parameter, Rules, text},
    },
    types::clean,
};

/// Longest text of a code, with separators, in characters.
const CODE: usize = 32;

/// A verification code. Accepts full-width digits and ignores separators between digits. The operation checks if the
/// code is right.
#[derive(Clone)]
pub struct VerificationCode {
    text: String,
    is_number: bool,
}

impl VerificationCode {
    /// Returns the code with this many digits. Restores leading zeros if it was sent as a number.
    pub fn of_digits(self, digits: usize) -> String {
        let Self { text, is_number } = self;
        if is_number { format!("{text:0>digits$}") } else { text }
    }
}

impl Parameter for VerificationCode {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        let written = clean(&text(value)?, CODE)?;
        let no_code = || Fault::new(FieldCode::InvalidFormat, ("must be digits", "须为数字"));
        let is_between = |character: char| character.is_whitespace() || "-‐‑–－".contains(character);
        // Separators are allowed between digits only.
        if written.starts_with(is_between) || written.ends_with(is_between) {
            return Err(no_code());
        }
        let digits = written.chars().filter(|character| !is_between(*character)).map(ascii_digit);
        let text: String = digits.collect::<Option<_>>().ok_or_else(no_code)?;
        if text.len() > 16 {
            return Err(Fault::new(FieldCode::TooLong, ("must be at most 16 digits long", "最多 16 位数字")));
        }
        Ok(Self { text, is_number: matches!(value, RawValue::Json(raw) if !raw.get().starts_with('"')) })
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "string", "pattern": "^[0-9]{1,16}$", "example": "246810" })
    }
}

/// A code that came by email. They have more digits.
pub struct EmailCode(pub VerificationCode);

impl Parameter for EmailCode {
    fn read(value: &RawValue<'_>, rules: &Rules<'_>) -> Result<Self, Fault> {
        VerificationCode::read(value, rules).map(Self)
    }

    fn schema(limits: &LimitsConfig) -> Value {
        let mut schema = VerificationCode::schema(limits);
        schema["example"] = "13572468".into();
        schema
    }
}

/// Converts an ASCII or full-width digit to ASCII.
fn ascii_digit(character: char) -> Option<char> {
    match character {
        '0'..='9' => Some(character),
        '０'..='９' => char::from_digit(character as u32 - '０' as u32, 10),
        _ => None,
    }
}
