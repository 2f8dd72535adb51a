//! Escapes control characters in text before it reaches a terminal.
//!
//! Users' text could otherwise move the cursor, set the title or reverse the writing direction. The escapes are those of
//! JSON, so printed JSON stays valid.

use std::{borrow::Cow, fmt::Write, io};

/// Escapes control characters, but keeps line breaks and tabs.
pub fn escape(text: &str) -> Cow<'_, str> {
    escape_if(text, |character| is_unsafe(character) && !matches!(character, '\n' | '\t'))
}

/// Escapes control characters including line breaks and tabs, for a cell of a table.
pub fn escape_line(text: &str) -> Cow<'_, str> {
    escape_if(text, is_unsafe)
}

/// Returns true for control, direction and line-separator characters.
fn is_unsafe(character: char) -> bool {
    let changes_direction =
        matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    character.is_control() || changes_direction || matches!(character, '\u{2028}' | '\u{2029}')
}

fn escape_if(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            '\n' if is_escaped('\n') => escaped.push_str("\\n"),
            '\t' if is_escaped('\t') => escaped.push_str("\\t"),
            _ if is_escaped(character) => drop(write!(escaped, "\\u{:04x}", u32::from(character))),
            _ => escaped.push(character),
        }
    }
    Cow::Owned(escaped)
}

/// A writer that escapes control characters in UTF-8 text.
pub struct EscapingWriter<W: io::Write> {
    output: W,
    /// The beginning of a character whose rest has not been written yet.
    partial: Vec<u8>,
}

impl<W: io::Write> EscapingWriter<W> {
    pub fn new(output: W) -> Self {
        Self { output, partial: Vec::new() }
    }
}

impl<W: io::Write> io::Write for EscapingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.partial.extend_from_slice(bytes);
        let whole = match str::from_utf8(&self.partial) {
            Ok(text) => text.len(),
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error)),
        };
        let rest = self.partial.split_off(whole);
        let text = std::mem::replace(&mut self.partial, rest);
        self.output.write_all(escape(&String::from_utf8_lossy(&text)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn escapes_control_and_direction_characters() {
        assert_eq!(
            escape("\u{1b}]0;x\u{7}\r\n\tb\u{202e}c\u{9b}2J"),
            "\\u001b]0;x\\u0007\\u000d\n\tb\\u202ec\\u009b2J"
        );
        assert_eq!(escape_line("a\nb\tc"), "a\\nb\\tc");
        assert!(matches!(escape("何时启程？\n☯"), Cow::Borrowed(_)));
    }

    #[test]
    fn escapes_text_that_is_written_in_pieces() {
        let text = "{\"a\":\"\u{9b}2J 何\u{202e}\"}";
        let mut writer = EscapingWriter::new(Vec::new());
        text.as_bytes().chunks(1).for_each(|byte| writer.write_all(byte).unwrap());
        assert_eq!(String::from_utf8(writer.output).unwrap(), "{\"a\":\"\\u009b2J 何\\u202e\"}");
        assert!(EscapingWriter::new(Vec::new()).write_all(&[0xff]).is_err());
    }

    #[test]
    fn keeps_the_value_of_json() {
        let value = serde_json::json!({ "text": "a\u{1b}\u{9b}\u{202e}\u{2028}\nb" });
        let printed = serde_json::to_string_pretty(&value).unwrap();
        let printed = escape(&printed);
        assert!(!printed.contains(|character| is_unsafe(character) && character != '\n'), "{printed}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&printed).unwrap(), value);
    }
}
