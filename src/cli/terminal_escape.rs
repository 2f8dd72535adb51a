//! Escapes control characters in text before it reaches a terminal.
//!
//! Users' text could otherwise move the cursor, set the title or reverse the writing direction. The escapes are those of
//! JSON, so printed JSON stays valid.

use std::{borrow::Cow, fmt::Write};

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

#[cfg(test)]
mod tests {
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
    fn keeps_the_value_of_json() {
        let value = serde_json::json!({ "text": "a\u{1b}\u{9b}\u{202e}\u{2028}\nb" });
        let printed = serde_json::to_string_pretty(&value).unwrap();
        let printed = escape(&printed);
        assert!(!printed.contains(|character| is_unsafe(character) && character != '\n'), "{printed}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&printed).unwrap(), value);
    }
}
