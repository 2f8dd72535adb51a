//! JSON that is kept as it came.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

/// One JSON value as its sender wrote it, to the byte. It is known to be valid, so that writing it into an answer is
/// only copying.
#[derive(Clone, Debug)]
pub struct JsonText<'text>(Cow<'text, RawValue>);

impl<'text> JsonText<'text> {
    /// Takes the text of one valid JSON value.
    pub fn from_raw(raw: &RawValue) -> Self {
        Self(Cow::Owned(raw.to_owned()))
    }

    /// Writes a text as a JSON string.
    pub fn from_text(text: &str) -> Self {
        Self(serde_json::value::to_raw_value(text).map_or(Cow::Borrowed(RawValue::NULL), Cow::Owned))
    }

    /// Takes what [`Self::as_str`] gave to the store. Should that have been damaged, it is null: one bad record must
    /// not make the whole list unreadable.
    pub fn from_stored(text: impl Into<Cow<'text, str>>) -> Self {
        let raw = match text.into() {
            Cow::Borrowed(text) => serde_json::from_str(text).map(Cow::Borrowed),
            Cow::Owned(text) => RawValue::from_string(text).map(Cow::Owned),
        };
        Self(raw.unwrap_or(Cow::Borrowed(RawValue::NULL)))
    }

    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// What the value says: the text of a string, the JSON of anything else.
    pub fn content(&self) -> String {
        serde_json::from_str::<String>(self.as_str()).unwrap_or_else(|_| self.as_str().to_owned())
    }
}

impl Serialize for JsonText<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}
