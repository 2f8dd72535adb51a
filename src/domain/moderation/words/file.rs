//! Word list files: one word per line, with an optional type and sound option, separated by commas or tabs, quoted as
//! in CSV where needed.
//!
//! Lines that cannot be words are skipped and reported; nothing else fails an import.

use std::collections::HashSet;

use super::{UNTYPED, check};
use crate::domain::moderation::engine::{Word, normalise};

/// The longest name of a type.
const LONGEST_KIND: usize = 64;
/// A file from a spreadsheet begins with this mark.
const BYTE_ORDER_MARK: &str = "\u{feff}";
/// The names of the fields.
pub const HEADING: &str = "word,type,bySound";

const SEVERAL_SEPARATORS: &str = "has several commas or tabs: a word with one in it is quoted";

/// Options for reading a list.
#[derive(Clone, Debug)]
pub struct Entry<'settings> {
    /// The type of words that name none.
    pub kind: &'settings str,
    /// Characters of a word.
    pub longest: usize,
    /// Take words of one letter too.
    pub force: bool,
    /// Find those by their sound too of which the file does not say.
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
    for (index, raw) in lines(bytes).enumerate() {
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

/// Lines, however they end: in `\n`, `\r\n` or `\r`.
fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = bytes.split(|&byte| byte == b'\n');
    lines.flat_map(|line| line.strip_suffix(b"\r").unwrap_or(line).split(|&byte| byte == b'\r'))
}

/// A line of the list.
pub fn written(word: &Word) -> String {
    format!("{},{},{}", quoted(&word.text), quoted(&word.kind), word.by_sound)
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
    let Ok(Line { word, kind, by_sound }) = fields(line) else { return false };
    let mut named = [Some(word), kind, by_sound].into_iter().flatten().zip(HEADING.split(','));
    index == 0 && named.all(|(field, name)| field.trim().eq_ignore_ascii_case(name))
}

fn word_of(line: &str, entry: &Entry<'_>) -> Result<Word, String> {
    let Line { word, kind, by_sound } = fields(line)?;
    let text = word.trim();
    let kind = kind.as_deref().map(str::trim).filter(|kind| !kind.is_empty()).unwrap_or(entry.kind);
    if text.contains('\0') {
        return Err("must not contain NUL".into());
    }
    check(text, entry.longest, entry.force).map_err(|fault| fault.message)?;
    if kind.chars().count() > LONGEST_KIND {
        return Err(format!("its type must be at most {LONGEST_KIND} characters long"));
    }
    let by_sound = match by_sound.as_deref().map(str::trim) {
        None | Some("") => entry.by_sound,
        Some(said) => said.to_ascii_lowercase().parse().map_err(|_| SEVERAL_SEPARATORS)?,
    };
    Ok(Word { text: text.to_owned(), kind: kind.to_owned(), by_sound })
}

/// The fields of a line, unquoted.
struct Line {
    word: String,
    kind: Option<String>,
    by_sound: Option<String>,
}

/// A word, its type, and whether it is found by its sound.
fn fields(line: &str) -> Result<Line, String> {
    let separator = separator_of(line);
    let (mut fields, mut rest) = (Vec::new(), Some(line));
    while let Some(text) = rest {
        let field;
        (field, rest) = next_field(text, separator)?;
        fields.push(field);
    }
    let mut fields = fields.into_iter();
    let line = Line { word: fields.next().unwrap_or_default(), kind: fields.next(), by_sound: fields.next() };
    if fields.next().is_some() { Err(SEVERAL_SEPARATORS.into()) } else { Ok(line) }
}

/// A tab if there is one before anything is quoted, else a comma.
fn separator_of(line: &str) -> char {
    let plain = match line.strip_prefix('"').and_then(quoted_field) {
        Some((_, rest)) => rest,
        None => line,
    };
    let end = plain.find(",\"").unwrap_or(plain.len());
    if plain[..end].contains('\t') { '\t' } else { ',' }
}

/// Parses the field at the start and returns the text after its separator.
fn next_field(text: &str, separator: char) -> Result<(String, Option<&str>), String> {
    let Some(inside) = text.trim_start_matches(' ').strip_prefix('"') else {
        return Ok(text
            .split_once(separator)
            .map_or((text.to_owned(), None), |(field, rest)| (field.to_owned(), Some(rest))));
    };
    let (field, rest) = quoted_field(inside).ok_or("has a quotation mark that is not closed")?;
    match rest.trim_start_matches(' ').strip_prefix(separator) {
        Some(rest) => Ok((field, Some(rest))),
        None if rest.trim().is_empty() => Ok((field, None)),
        None => Err("has something between a quoted field and the next".into()),
    }
}

/// Parses a quoted field and returns the text after its closing quote.
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
    fn a_heading_may_be_quoted_and_lines_may_end_as_they_like() {
        for heading in [
            "\"word\",\"type\"",
            "Word,Type",
            "\"word\"",
            "word\ttype",
            "word,type,bySound",
            "\u{feff}\"word\"\t\"type\"",
        ] {
            for end in ["\n", "\r\n", "\r"] {
                let (words, skipped) = read(format!("{heading}{end}赌博,ads{end}刷单{end}").as_bytes());
                assert_eq!((words, skipped), (pairs(&[("赌博", "ads"), ("刷单", "other")]), Vec::new()), "{heading:?}");
            }
        }
    }

    #[test]
    fn a_comma_stands_in_a_word_only_if_that_is_quoted() {
        for line in ["a,b,\"x\"", "a,b,x", "\"a\",b,c", "ab,c,true,d", "ab,\"c\" d"] {
            let (words, skipped) = read(line.as_bytes());
            assert_eq!((words, skipped.len()), (Vec::new(), 1), "{line}");
        }
        let (words, _) = read("ab,\"c,\td\"\n\"a,b\" , c\nc,d\tads\n5\" disk\tads\n".as_bytes());
        assert_eq!(words, pairs(&[("ab", "c,\td"), ("a,b", "c"), ("c,d", "ads"), ("5\" disk", "ads")]));
    }

    #[test]
    fn a_file_says_of_each_word_whether_it_is_found_by_its_sound() {
        for by_sound in [false, true] {
            let entry = Entry { by_sound, ..Entry::default() };
            let list = format!("{HEADING}\n赌博,ads,true\n刷单,ads,FALSE\n代开发票,ads,\n迷药\n");
            let (words, skipped) = parse(list.as_bytes(), &entry, |_| {});
            let flags: Vec<_> = words.iter().map(|word| word.by_sound).collect();
            assert_eq!((flags, skipped.len()), (vec![true, false, by_sound, by_sound], 0));
            let list: Vec<_> = words.iter().map(written).collect();
            assert_eq!(parse(list.join("\n").as_bytes(), &Entry::default(), |_| {}).0, words);
        }
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
                let lines = lines(&bytes).count();
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
