//! Word lists as files: a word a line, or a word and its type between a comma or a tab, quoted as in CSV where needed.
//!
//! What cannot be a word is skipped and reported with its line; nothing else stops a list from being read.

use std::collections::HashSet;

use super::{UNTYPED, check};
use crate::ops::moderation::engine::{Word, normalise};

/// The longest name of a type.
const LONGEST_KIND: usize = 64;
/// A file from a spreadsheet begins with this mark.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// How a list is to be read.
#[derive(Clone, Debug)]
pub struct Entry<'settings> {
    /// The type of words that name none.
    pub kind: &'settings str,
    /// Characters of a word.
    pub longest: usize,
    /// Take words of one letter too.
    pub force: bool,
    /// Find them by their sound too.
    pub by_sound: bool,
}

/// A line that was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    pub line: usize,
    pub text: String,
    pub reason: String,
}

impl Default for Entry<'_> {
    fn default() -> Self {
        Self { kind: UNTYPED, longest: 50, force: false, by_sound: false }
    }
}

/// Reads a list. Calls `progress` with the bytes read so far.
pub fn parse(bytes: &[u8], entry: &Entry<'_>, mut progress: impl FnMut(usize)) -> (Vec<Word>, Vec<Skipped>) {
    let (mut words, mut skipped, mut seen) = (Vec::new(), Vec::new(), HashSet::new());
    let mut read = 0;
    for (index, raw) in bytes.split(|&byte| byte == b'\n').enumerate() {
        read += raw.len() + 1;
        if index % 512 == 0 {
            progress(read);
        }
        let mut skip = |text: &str, reason: &str| {
            skipped.push(Skipped { line: index + 1, text: text.to_owned(), reason: reason.to_owned() });
        };
        let Ok(line) = str::from_utf8(raw) else {
            skip(&String::from_utf8_lossy(raw), "is not UTF-8");
            continue;
        };
        let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line).trim();
        if line.is_empty() || line.starts_with('#') || is_header(index, line) {
            continue;
        }
        match word_of(line, entry) {
            Err(reason) => skip(line, &reason),
            Ok(word) if !seen.insert(normalise(&word.text)) => skip(line, "is compared as an earlier line"),
            Ok(word) => words.push(word),
        }
    }
    progress(bytes.len());
    (words, skipped)
}

/// A field as CSV wants it.
pub fn quoted(field: &str) -> String {
    if field.contains(['"', ',', '\t', '\n', '\r']) || field.starts_with('#') || field.trim() != field {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

fn is_header(index: usize, line: &str) -> bool {
    index == 0 && matches!(line.to_lowercase().as_str(), "word" | "word,type" | "word\ttype")
}

fn word_of(line: &str, entry: &Entry<'_>) -> Result<Word, String> {
    let (text, kind) = fields(line)?;
    let text = text.trim();
    let kind = kind.as_deref().map(str::trim).filter(|kind| !kind.is_empty()).unwrap_or(entry.kind);
    if text.contains('\0') {
        return Err("must not contain NUL".into());
    }
    check(text, entry.longest, entry.force).map_err(|fault| fault.message)?;
    if kind.chars().count() > LONGEST_KIND {
        return Err(format!("its type must be at most {LONGEST_KIND} characters long"));
    }
    Ok(Word { text: text.to_owned(), kind: kind.to_owned(), by_sound: entry.by_sound })
}

/// A word, and the type that stands after a comma or a tab.
fn fields(line: &str) -> Result<(String, Option<String>), String> {
    if let Some(rest) = line.strip_prefix('"') {
        let (word, rest) = quoted_field(rest).ok_or("has a quotation mark that is not closed")?;
        return match rest.trim_start().strip_prefix([',', '\t']) {
            Some(kind) => Ok((word, Some(plain_field(kind)))),
            None if rest.trim().is_empty() => Ok((word, None)),
            None => Err("has something between the quoted word and its type".into()),
        };
    }
    if let Some((word, kind)) = before_quoted_kind(line).or_else(|| line.split_once('\t')) {
        return Ok((word.to_owned(), Some(plain_field(kind))));
    }
    match line.rsplit_once(',') {
        Some((word, _)) if word.contains(',') => Err("has several commas: a word with a comma in it is quoted".into()),
        Some((word, kind)) => Ok((word.to_owned(), Some(plain_field(kind)))),
        None => Ok((line.to_owned(), None)),
    }
}

/// A plain word and its quoted type, in which commas and tabs separate nothing.
fn before_quoted_kind(line: &str) -> Option<(&str, &str)> {
    let at = line.find(",\"").or_else(|| line.find("\t\""))?;
    line.ends_with('"').then(|| (&line[..at], &line[at + 1..]))
}

/// What stands before the closing mark, and what comes after it.
fn quoted_field(text: &str) -> Option<(String, &str)> {
    let mut field = String::new();
    let mut rest = text;
    loop {
        let (before, after) = rest.split_once('"')?;
        field.push_str(before);
        match after.strip_prefix('"') {
            Some(after) => {
                field.push('"');
                rest = after;
            }
            None => return Some((field, after)),
        }
    }
}

fn plain_field(text: &str) -> String {
    let text = text.trim();
    text.strip_prefix('"').and_then(quoted_field).map_or_else(|| text.to_owned(), |(field, _)| field)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Pairs = Vec<(String, String)>;

    fn read(text: &[u8]) -> (Pairs, Vec<(usize, String)>) {
        let (words, skipped) = parse(text, &Entry::default(), |_| {});
        let words = words.into_iter().map(|word| (word.text, word.kind)).collect();
        (words, skipped.into_iter().map(|skipped| (skipped.line, skipped.reason)).collect())
    }

    fn pairs(pairs: &[(&str, &str)]) -> Pairs {
        pairs.iter().map(|(word, kind)| ((*word).to_owned(), (*kind).to_owned())).collect()
    }

    #[test]
    fn plain_lines_commas_tabs_and_quotes_are_read() {
        let text = "\u{feff}word,type\r\n# a comment\n赌博\n刷单,fraud\r\n代开发票\tads\n\"a,b \"\"c\"\"\",\"other kind\"\n\nfree money\n";
        let (words, skipped) = read(text.as_bytes());
        let expected = pairs(&[
            ("赌博", "other"),
            ("刷单", "fraud"),
            ("代开发票", "ads"),
            ("a,b \"c\"", "other kind"),
            ("free money", "other"),
        ]);
        assert_eq!((words, skipped), (expected, Vec::new()));
    }

    #[test]
    fn what_is_no_word_is_skipped_with_its_line() {
        let mut text =
            format!("ok\n*,other\n赌\n{}\n\"open\n賭 博\n赌博\nfree,money,ads\n", "长".repeat(51)).into_bytes();
        text.extend(b"\xc4\xe3\xba\xc3\n");
        let (words, skipped) = read(&text);
        assert_eq!(words, pairs(&[("ok", "other"), ("賭 博", "other")]));
        let lines: Vec<_> = skipped.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [2, 3, 4, 5, 7, 8, 9], "{skipped:?}");
        assert_eq!(skipped[6].1, "is not UTF-8");
    }

    #[test]
    fn what_is_written_is_read_again() {
        for word in ["赌博", "a,b", "say \"hi\"", "#tag", "free money"] {
            let (words, _) = read(format!("{},ads\n", quoted(word)).as_bytes());
            assert_eq!(words, pairs(&[(word, "ads")]));
        }
    }

    mod properties {
        use proptest::prelude::*;

        use super::*;

        proptest! {
            #[test]
            fn every_line_is_a_word_a_reason_or_nothing(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
                let (words, skipped) = parse(&bytes, &Entry::default(), |_| {});
                let lines = bytes.split(|byte| *byte == b'\n').count();
                prop_assert!(words.len() + skipped.len() <= lines);
                prop_assert!(skipped.iter().all(|skipped| (1..=lines).contains(&skipped.line)));
            }

            #[test]
            fn what_is_exported_is_imported(text in "[\u{4e00}-\u{9fa5}a-z\",#\t]{2,20}", kind in "[a-z,\" ]{1,10}") {
                let first = parse(format!("{},{}", quoted(&text), quoted(&kind)).as_bytes(), &Entry::default(), |_| {}).0;
                for word in first {
                    let line = format!("{},{}", quoted(&word.text), quoted(&word.kind));
                    let again = parse(line.as_bytes(), &Entry::default(), |_| {}).0;
                    prop_assert_eq!(again.len(), 1, "{}", line);
                    prop_assert_eq!((&again[0].text, &again[0].kind), (&word.text, &word.kind));
                }
            }
        }
    }
}
