//! Joins surrogate pairs that providers split between two texts. JSON writes a character beyond U+FFFF as two escapes.
//! A Rust string cannot hold one alone, so it is replaced by a private-use character until the other one arrives.

use std::borrow::Cow;

/// The 2048 private-use characters at the end of Unicode mark the 2048 surrogates.
const FIRST_MARK: u32 = 0x10_F800;
const FIRST_HALF: u32 = 0xD800;
const FIRST_LOW_HALF: u32 = 0xDC00;
const LAST_HALF: u32 = 0xDFFF;

/// Replaces each escape of an unpaired surrogate by a mark.
pub(super) fn mark_unpaired(json: &str) -> Cow<'_, str> {
    if !json.contains("\\ud") && !json.contains("\\uD") {
        return Cow::Borrowed(json);
    }
    let mut result = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        result.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = match (half_at(rest), rest.get(6..).and_then(half_at)) {
            (Some(high), Some(low)) if high < FIRST_LOW_HALF && low >= FIRST_LOW_HALF => 12,
            (Some(half), _) => {
                result.extend(char::from_u32(FIRST_MARK + half - FIRST_HALF));
                rest = &rest[6..];
                continue;
            }
            // An escaped backslash starts no escape.
            (None, _) => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
        };
        result.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    result.push_str(rest);
    Cow::Owned(result)
}

/// Replaces the marks by escapes again.
pub(super) fn restore_escapes(json: &str) -> String {
    let mut result = String::with_capacity(json.len());
    for character in json.chars() {
        match half_of(character) {
            Some(half) => {
                let escape = format!("\\u{half:04x}");
                result.push_str(&escape);
            }
            None => result.push(character),
        }
    }
    result
}

/// Joins `before`, a pending high surrogate, and the text. A high surrogate at the end becomes pending; an unpaired one
/// becomes U+FFFD.
pub(super) fn join(before: &mut Option<char>, text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    for character in text.chars() {
        let half = half_of(character);
        let high = before.take().and_then(half_of);
        match (high, half) {
            (Some(high), Some(low)) if low >= FIRST_LOW_HALF => {
                let whole = 0x1_0000 + ((high - FIRST_HALF) << 10) + (low - FIRST_LOW_HALF);
                result.push(char::from_u32(whole).unwrap_or(char::REPLACEMENT_CHARACTER));
                continue;
            }
            (Some(_), _) => result.push(char::REPLACEMENT_CHARACTER),
            (None, _) => {}
        }
        match half {
            Some(half) if half < FIRST_LOW_HALF => *before = Some(character),
            Some(_) => result.push(char::REPLACEMENT_CHARACTER),
            None => result.push(character),
        }
    }
    result
}

fn half_of(character: char) -> Option<u32> {
    u32::from(character).checked_sub(FIRST_MARK).map(|number| FIRST_HALF + number)
}

/// Returns the surrogate that an escape at the start names.
fn half_at(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    let number = u32::from_str_radix(digits, 16).ok()?;
    (FIRST_HALF..=LAST_HALF).contains(&number).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> String {
        serde_json::from_str(&mark_unpaired(json)).unwrap()
    }

    #[test]
    fn keeps_pairs_and_escaped_backslashes() {
        for json in [r#""\ud83d\ude00""#, r#""\\ud83d""#, r#""\\\\ud83d 吉""#, r#""\u5409""#, r#""""#] {
            assert_eq!(mark_unpaired(json), json);
        }
        assert_eq!(read(r#""\ud83d\ude00\\""#), "😀\\");
    }

    #[test]
    fn joins_halves_across_texts() {
        let mut before = None;
        let first = join(&mut before, &read(r#""吉\uD83D""#));
        let second = join(&mut before, &read(r#""\ude00凶""#));
        assert_eq!((first.as_str(), second.as_str(), before), ("吉", "😀凶", None));
    }

    #[test]
    fn replaces_an_unpaired_half() {
        let mut before = None;
        assert_eq!(join(&mut before, &read(r#""\ude00吉\ud83d\ud83d凶""#)), "\u{fffd}吉\u{fffd}\u{fffd}凶");
        assert_eq!(join(&mut before, &read(r#""\ud83d""#)), "");
        assert_eq!(join(&mut before, "吉"), "\u{fffd}吉");
    }

    #[test]
    fn restores_escapes_from_marks() {
        let json = r#"{"content":"吉\ud83d"}"#;
        assert_eq!(restore_escapes(&mark_unpaired(json)), json);
    }
}
