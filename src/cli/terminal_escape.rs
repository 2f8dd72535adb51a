//! Text that strangers wrote, as a terminal may show it: nothing in it moves the cursor, sets a title or turns the
//! direction of what follows. The escapes are those of JSON, so that JSON stays what it was.

use std::{borrow::Cow, fmt::Write};

/// Keeps the lines of a text.
pub fn tamed(text: &str) -> Cow<'_, str> {
    escaped(text, |character| acts(character) && !matches!(character, '\n' | '\t'))
}

/// For a place in a table, which is one line whatever stands in it.
pub fn tamed_line(text: &str) -> Cow<'_, str> {
    escaped(text, acts)
}

/// Whether it does something to a terminal instead of being seen.
fn acts(character: char) -> bool {
    let turns =
        matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    character.is_control() || turns || matches!(character, '\u{2028}' | '\u{2029}')
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut tamed = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            '\n' if is_escaped('\n') => tamed.push_str("\\n"),
            '\t' if is_escaped('\t') => tamed.push_str("\\t"),
            _ if is_escaped(character) => drop(write!(tamed, "\\u{:04x}", u32::from(character))),
            _ => tamed.push(character),
        }
    }
    Cow::Owned(tamed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_is_shown_and_does_nothing() {
        assert_eq!(tamed("\u{1b}]0;x\u{7}\r\n\tb\u{202e}c\u{9b}2J"), "\\u001b]0;x\\u0007\\u000d\n\tb\\u202ec\\u009b2J");
        assert_eq!(tamed_line("a\nb\tc"), "a\\nb\\tc");
        assert!(matches!(tamed("何时启程？\n☯"), Cow::Borrowed(_)));
    }

    #[test]
    fn json_stays_what_it_was() {
        let value = serde_json::json!({ "text": "a\u{1b}\u{9b}\u{202e}\u{2028}\nb" });
        let shown = serde_json::to_string_pretty(&value).unwrap();
        let shown = tamed(&shown);
        assert!(!shown.contains(|character| acts(character) && character != '\n'), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }
}
