//! A parameter's value before its type is known: its text, and whether it is present.

use std::borrow::Cow;

use serde::Deserialize;

use super::Parameter;
use crate::{
    error::{Fault, FieldCode, Result},
    http::body::RawValue,
    types::plain_number,
};

/// Returns true if two values are equal regardless of their source: scalars by their text, anything else by its JSON.
pub(super) fn is_same(one: &RawValue<'_>, other: &RawValue<'_>) -> bool {
    match (text_of(one), text_of(other)) {
        (None, None) => {
            matches!((one, other), (RawValue::Json(one), RawValue::Json(other)) if one.get() == other.get())
        }
        (one, other) => one == other,
    }
}

/// Returns true for JSON's `true`, `false` and `null`.
pub(super) fn is_literal(value: &RawValue<'_>) -> bool {
    matches!(value, RawValue::Json(raw) if matches!(raw.get(), "true" | "false" | "null"))
}

pub(super) fn is_null(value: &RawValue<'_>) -> bool {
    matches!(value, RawValue::Json(raw) if raw.get() == "null")
}

/// Returns true if a value counts as absent.
pub fn is_absent<T: Parameter>(value: &RawValue<'_>) -> bool {
    match value {
        value if is_null(value) => true,
        value => text_of(value).is_some_and(|text| match text.trim() {
            "" => !T::EMPTY_IS_A_VALUE,
            text => !T::MAY_BE_NULL_WORD && is_null_word(text),
        }),
    }
}

/// Returns true for the words that apps send for a variable that is not set.
pub(super) fn is_null_word(text: &str) -> bool {
    matches!(text, "null" | "undefined")
}

/// Returns the text of a scalar, or `None` for an array, an object, or a text that is not valid Unicode.
pub(super) fn text_of<'value>(value: &'value RawValue<'_>) -> Option<Cow<'value, str>> {
    match value {
        RawValue::Text(text) => Some(Cow::Borrowed(text)),
        RawValue::Json(raw) => match raw.get().as_bytes().first()? {
            b'"' => serde_json::from_str::<Borrowed<'_>>(raw.get()).ok().map(|Borrowed(text)| text),
            b'[' | b'{' => None,
            _ => Some(plain_number(raw.get())),
        },
    }
}

#[derive(Deserialize)]
struct Borrowed<'text>(#[serde(borrow)] Cow<'text, str>);

/// Returns the text of a text or a number.
///
/// # Errors
/// `invalid_type` for other values; `invalid_character` for half of a surrogate pair.
pub fn text<'value>(value: &'value RawValue<'_>) -> Result<Cow<'value, str>, Fault> {
    if is_literal(value) {
        return Err(Fault::new(FieldCode::InvalidType, ("must be a text or a number", "须为文本或数字")));
    }
    text_of(value).ok_or_else(|| match value {
        // The JSON was well formed, so a string that cannot be read has a surrogate without its partner.
        RawValue::Json(raw) if raw.get().starts_with('"') => half_pair(),
        _ => Fault::new(FieldCode::InvalidType, ("must be a single value", "须为单个值")),
    })
}

/// Returns the fault of a missing required value.
pub fn required() -> Fault {
    Fault::new(FieldCode::Required, ("is required", "不能为空"))
}

/// Returns the fault of a text that is not valid Unicode.
pub fn half_pair() -> Fault {
    Fault::new(FieldCode::InvalidCharacter, ("has half of a surrogate pair", "含有半个代理对字符"))
}
