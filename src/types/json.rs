//! JSON that is stored as received.

use std::borrow::Cow;

use serde::{Serialize, ser::SerializeStruct};
use serde_json::value::RawValue;

/// The name by which `serde_json` recognises text to write unchanged. Its own type would parse the whole text again.
const RAW: &str = "$serde_json::private::RawValue";

/// One JSON value as its sender wrote it, to the byte. It is known to be valid, so that writing it into an answer is
/// only copying.
#[derive(Clone, Debug)]
pub struct JsonText<'text>(Form<'text>);

#[derive(Clone, Debug)]
enum Form<'text> {
    /// Read just now.
    Parsed(Cow<'text, RawValue>),
    /// Read when it was stored, and the same since.
    Intact(&'text str),
}

impl<'text> JsonText<'text> {
    const NULL: Self = Self(Form::Parsed(Cow::Borrowed(RawValue::NULL)));

    /// Takes the text of one valid JSON value.
    pub fn from_raw(raw: &RawValue) -> Self {
        Self(Form::Parsed(Cow::Owned(raw.to_owned())))
    }

    /// Writes a text as a JSON string.
    pub fn from_text(text: &str) -> Self {
        serde_json::value::to_raw_value(text).map_or(Self::NULL, |raw| Self(Form::Parsed(Cow::Owned(raw))))
    }

    /// Takes what [`Self::as_str`] gave to the store. Should that have been damaged, it is null: one bad record must
    /// not make the whole list unreadable.
    pub fn from_stored(text: impl Into<Cow<'text, str>>) -> Self {
        let raw = match text.into() {
            Cow::Borrowed(text) => serde_json::from_str(text).map(Cow::Borrowed),
            Cow::Owned(text) => RawValue::from_string(text).map(Cow::Owned),
        };
        raw.map_or(Self::NULL, |raw| Self(Form::Parsed(raw)))
    }

    /// Like [`Self::from_stored`], for a text that was stored with its checksum: it need not be read again if that
    /// still is what it was.
    pub fn from_stored_with(text: &'text str, checksum: Option<i32>) -> Self {
        if checksum == Some(checksum_of(text)) { Self(Form::Intact(text)) } else { Self::from_stored(text) }
    }

    /// Returns the checksum to store with the text.
    pub fn checksum(&self) -> i32 {
        checksum_of(self.as_str())
    }

    pub fn as_str(&self) -> &str {
        match &self.0 {
            Form::Parsed(raw) => raw.get(),
            Form::Intact(text) => text,
        }
    }

    /// Returns the text of a JSON string, or the JSON of anything else.
    pub fn content(&self) -> String {
        serde_json::from_str::<String>(self.as_str()).unwrap_or_else(|_| self.as_str().to_owned())
    }
}

/// The CRC-32, in the four bytes that SQLite has for it if it may be negative.
fn checksum_of(text: &str) -> i32 {
    crc32fast::hash(text.as_bytes()).cast_signed()
}

impl Serialize for JsonText<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut raw = serializer.serialize_struct(RAW, 1)?;
        raw.serialize_field(RAW, self.as_str())?;
        raw.end()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_is_written_as_it_was_taken() {
        let text = r#"{"b": 1.50, "a": "\u6613"}"#;
        let stored = JsonText::from_stored(text);
        let intact = JsonText::from_stored_with(text, Some(stored.checksum()));
        assert!(matches!(intact.0, Form::Intact(_)));
        for written in [stored, intact] {
            assert_eq!(serde_json::to_string(&[&written]).unwrap(), format!("[{text}]"));
            assert_eq!(json!(written), json!({ "b": 1.5, "a": "易" }));
        }
    }

    #[test]
    fn what_is_not_what_was_stored_is_read_again() {
        let checksum = JsonText::from_stored("[1]").checksum();
        let told = |text, checksum| JsonText::from_stored_with(text, checksum).as_str().to_owned();
        assert_eq!([told("[2]", Some(checksum)), told("[1]", None)], ["[2]", "[1]"]);
        assert_eq!([told("[1", Some(checksum)), told("", None)], ["null", "null"]);
    }
}
