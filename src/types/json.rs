//! JSON that is kept as it came.

use serde::Serialize;
use serde_json::value::RawValue;

/// One JSON value as its sender wrote it, to the byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonText(String);

impl JsonText {
    /// Takes the text of one valid JSON value.
    pub fn from_raw(raw: &RawValue) -> Self {
        Self(raw.get().to_owned())
    }

    /// Writes a text as a JSON string.
    pub fn from_text(text: &str) -> Self {
        Self(serde_json::Value::from(text).to_string())
    }

    /// Takes what [`Self::as_str`] gave to the store.
    pub fn from_stored(text: String) -> Self {
        Self(text)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What the value says: the text of a string, the JSON of anything else.
    pub fn content(&self) -> String {
        serde_json::from_str::<String>(&self.0).unwrap_or_else(|_| self.0.clone())
    }
}

impl Serialize for JsonText {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serde_json::from_str::<&RawValue>(&self.0) {
            Ok(raw) => raw.serialize(serializer),
            Err(_) => serializer.serialize_none(),
        }
    }
}
