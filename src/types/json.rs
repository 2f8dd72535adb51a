//! JSON that is stored as received.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

/// The text of one valid JSON value, kept byte for byte.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct JsonText<'text>(Cow<'text, RawValue>);

impl<'text> JsonText<'text> {
    pub const NULL: Self = Self(Cow::Borrowed(RawValue::NULL));

    /// Takes the text of one valid JSON value.
    pub fn from_raw(raw: &RawValue) -> Self {
        Self(Cow::Owned(raw.to_owned()))
    }

    /// Writes a text as a JSON string.
    pub fn from_text(text: &str) -> Self {
        serde_json::value::to_raw_value(text).map_or(Self::NULL, |raw| Self(Cow::Owned(raw)))
    }

    pub fn from_number(number: i64) -> Self {
        serde_json::value::to_raw_value(&number).map_or(Self::NULL, |raw| Self(Cow::Owned(raw)))
    }

    /// Reads a text that [`Self::as_str`] gave to the store. A damaged text becomes null: one bad record must not make
    /// the whole list unreadable.
    pub fn from_stored(text: impl Into<Cow<'text, str>>) -> Self {
        let raw = match text.into() {
            Cow::Borrowed(text) => serde_json::from_str(text).map(Cow::Borrowed),
            Cow::Owned(text) => RawValue::from_string(text).map(Cow::Owned),
        };
        raw.map_or(Self::NULL, Self)
    }

    pub fn into_owned(self) -> JsonText<'static> {
        JsonText(Cow::Owned(self.0.into_owned()))
    }

    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// Returns the text of a JSON string, or the JSON of anything else.
    pub fn content(&self) -> String {
        serde_json::from_str::<String>(self.as_str()).unwrap_or_else(|_| self.as_str().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn writes_json_byte_for_byte() {
        let text = r#"{"b": 1.50, "a": "\u6613"}"#;
        let stored = JsonText::from_stored(text);
        assert_eq!(serde_json::to_string(&[&stored]).unwrap(), format!("[{text}]"));
        assert_eq!(json!(stored), json!({ "b": 1.5, "a": "易" }));
    }

    #[test]
    fn reads_damaged_json_as_null() {
        assert_eq!(["[1", ""].map(|text| JsonText::from_stored(text).as_str().to_owned()), ["null", "null"]);
    }
}
