//! Word lists as CSV or tab-separated files: a word, and optionally its type, a flag for matching by pronunciation, its
//! severity, further tags and the content types in which it is looked for.
//!
//! An invalid line is skipped and reported with its number; it never stops an import.

use std::collections::HashSet;

use super::entry::{UNTYPED, check, parse_tags};
use crate::{
    domain::moderation::engine::{ContentType, ContentTypes, Severity, Word, normalise},
    types::FORMULA_STARTS,
};

/// The maximum length of a type's name.
const MAX_KIND_LENGTH: usize = 64;
/// The byte order mark that spreadsheets write at the start of a file.
const BYTE_ORDER_MARK: &str = "\u{feff}";
/// The header line of an export.
pub const CSV_HEADER: &str = "word,type,bySound,severity,tags,contentTypes";
/// The maximum number of fields in a line.
const MAX_FIELDS: usize = 6;

/// Header lines of other lists.
const FOREIGN_HEADERS: [&str; 8] = ["word", "type", "敏感词", "词语", "词", "类型", "类别", "分类"];
/// Separators of other lists. A word that contains one never matches as a whole, so it must be quoted.
const FOREIGN_SEPARATORS: [char; 5] = ['，', '；', ';', '|', '｜'];

const TOO_MANY_FIELDS: &str = "has too many fields; quote a word that contains a comma or tab";

/// The options of an import.
#[derive(Clone, Debug)]
pub struct ImportOptions<'settings> {
    /// The type of words without one.
    pub kind: &'settings str,
    /// The maximum length of a word in characters.
    pub max_length: usize,
    /// Accepts words of a single letter.
    pub force: bool,
    /// True to match words by pronunciation if the file does not say.
    pub by_sound: bool,
    /// The severity, tags and content types of words whose line has none.
    pub severity: Severity,
    pub tags: Vec<String>,
    pub content_types: ContentTypes,
}

/// A line that was skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedLine {
    pub line: usize,
    pub text: String,
    pub reason: String,
}

impl Default for ImportOptions<'_> {
    fn default() -> Self {
        Self {
            kind: UNTYPED,
            max_length: 50,
            force: false,
            by_sound: false,
            severity: Severity::default(),
            tags: Vec::new(),
            content_types: ContentTypes::ALL,
        }
    }
}

/// Parses a list. Calls `progress` with the number of bytes read so far.
pub fn parse(
    bytes: &[u8],
    options: &ImportOptions<'_>,
    mut progress: impl FnMut(usize),
) -> (Vec<Word>, Vec<SkippedLine>) {
    let (mut words, mut skipped, mut seen) = (Vec::new(), Vec::new(), HashSet::new());
    let mut read = 0;
    for (index, raw) in lines(bytes).enumerate() {
        read += raw.len() + 1;
        if index % 512 == 0 {
            progress(read);
        }
        let mut skip = |text: &str, reason: &str| {
            skipped.push(SkippedLine { line: index + 1, text: text.to_owned(), reason: reason.to_owned() });
        };
        let Ok(line) = str::from_utf8(raw) else {
            skip(&String::from_utf8_lossy(raw), "is not UTF-8");
            continue;
        };
        let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line).trim();
        if line.is_empty() || line.starts_with('#') || is_header(index, line) {
            continue;
        }
        match parse_word(line, options) {
            Err(reason) => skip(line, &reason),
            Ok(word) if !seen.insert(normalise(&word.text)) => {
                skip(line, "has the same normal form as an earlier line");
            }
            Ok(word) => words.push(word),
        }
    }
    progress(bytes.len());
    (words, skipped)
}

/// Splits lines that end in `\n`, `\r\n` or `\r`.
fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = bytes.split(|&byte| byte == b'\n');
    lines.flat_map(|line| line.strip_suffix(b"\r").unwrap_or(line).split(|&byte| byte == b'\r'))
}

/// Formats a word as a CSV line.
pub fn to_csv_line(word: &Word) -> String {
    let (text, kind, severity) = (csv_field(&word.text), csv_field(&word.kind), word.severity.name());
    let (tags, content_types) = (csv_field(&word.tags.join(" ")), word.content_types.names().join(" "));
    format!("{text},{kind},{},{severity},{tags},{content_types}", word.by_sound)
}

/// Quotes a CSV field if necessary. One that a spreadsheet would run as a formula gets an apostrophe, which an import
/// removes.
pub fn csv_field(field: &str) -> String {
    let defused = format!("'{field}");
    let field = if is_defused(&defused) { defused.as_str() } else { field };
    let is_special = |letter| ['"', ',', '\t', '\n', '\r'].contains(&letter) || FOREIGN_SEPARATORS.contains(&letter);
    if field.contains(is_special) || field.starts_with('#') || field.trim() != field {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

/// Returns true if the text begins with an apostrophe before a formula.
fn is_defused(field: &str) -> bool {
    field.starts_with('\'') && field.trim_start_matches('\'').starts_with(FORMULA_STARTS)
}

fn is_header(index: usize, line: &str) -> bool {
    let Ok(fields) = split_fields(line) else { return false };
    let fields = || fields.iter().map(|field| field.trim());
    let is_own = fields().zip(CSV_HEADER.split(',')).all(|(field, name)| field.eq_ignore_ascii_case(name));
    let is_foreign = fields().all(|field| FOREIGN_HEADERS.iter().any(|name| field.eq_ignore_ascii_case(name)));
    index == 0 && (is_own || is_foreign && fields().count() > 1)
}

fn parse_word(line: &str, options: &ImportOptions<'_>) -> Result<Word, String> {
    let fields = split_fields(line)?;
    let field = |index: usize| {
        let field = fields.get(index).map(|field| field.trim()).filter(|field| !field.is_empty())?;
        Some(if is_defused(field) { &field[1..] } else { field })
    };
    let text = field(0).unwrap_or_default();
    let kind = field(1).unwrap_or(options.kind);
    if text.contains('\0') {
        return Err("must not contain NUL".into());
    }
    check(text, options.max_length, options.force).map_err(|fault| fault.message.english.into_owned())?;
    if kind.chars().count() > MAX_KIND_LENGTH {
        return Err(format!("its type must be at most {MAX_KIND_LENGTH} characters long"));
    }
    let by_sound = match field(2) {
        None => options.by_sound,
        Some(text) => text.to_ascii_lowercase().parse().map_err(|_| TOO_MANY_FIELDS)?,
    };
    let severity = match field(3) {
        None => options.severity,
        Some(name) => Severity::from_name(&name.to_ascii_lowercase())
            .ok_or_else(|| format!("its severity must be one of: {}", Severity::ALL.map(Severity::name).join(", ")))?,
    };
    let tags = match field(4) {
        None => options.tags.clone(),
        Some(tags) => parse_tags(tags).map_err(|fault| format!("its tags: {}", fault.message))?,
    };
    let content_types = match field(5) {
        None => options.content_types,
        Some(names) => ContentTypes::from_names(&names.to_ascii_lowercase()).ok_or_else(|| {
            let names = ContentType::ALL.map(ContentType::name).join(", ");
            format!("its content types must be some of: {names}, separated by blanks")
        })?,
    };
    Ok(Word { text: text.to_owned(), kind: kind.to_owned(), by_sound, severity, tags, content_types })
}

/// Splits a line into its unquoted fields.
fn split_fields(line: &str) -> Result<Vec<String>, String> {
    let separator = separator_of(line);
    let (mut fields, mut rest) = (Vec::new(), Some(line));
    while let Some(text) = rest {
        let field;
        (field, rest) = next_field(text, separator)?;
        fields.push(field);
    }
    if fields.len() > MAX_FIELDS { Err(TOO_MANY_FIELDS.into()) } else { Ok(fields) }
}

/// Returns the separator of a line: a tab if one occurs outside quotes, otherwise a comma.
fn separator_of(line: &str) -> char {
    let plain = match line.strip_prefix('"').and_then(quoted_field) {
        Some((_, rest)) => rest,
        None => line,
    };
    let end = plain.find(",\"").unwrap_or(plain.len());
    if plain[..end].contains('\t') { '\t' } else { ',' }
}

/// Returns the first field, and the text after its separator.
fn next_field(text: &str, separator: char) -> Result<(String, Option<&str>), String> {
    let Some(inside) = text.trim_start_matches(' ').strip_prefix('"') else {
        let (field, rest) = text.split_once(separator).map_or((text, None), |(field, rest)| (field, Some(rest)));
        if field.contains(FOREIGN_SEPARATORS) {
            return Err("has another separator than a comma or tab; quote a word that contains it".into());
        }
        if field.trim_end().ends_with('"') {
            return Err("ends with a quotation mark that was not opened on this line".into());
        }
        return Ok((field.to_owned(), rest));
    };
    let (field, rest) = quoted_field(inside).ok_or("has a quotation mark that is not closed")?;
    match rest.trim_start_matches(' ').strip_prefix(separator) {
        Some(rest) => Ok((field, Some(rest))),
        None if rest.trim().is_empty() => Ok((field, None)),
        None => Err("has text after a quoted field".into()),
    }
}

/// Returns the content of a quoted field, and the text after its closing mark.
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
        let (words, skipped) = parse(text, &ImportOptions::default(), |_| {});
        let words = words.into_iter().map(|word| (word.text, word.kind)).collect();
        (words, skipped.into_iter().map(|skipped| (skipped.line, skipped.reason)).collect())
    }

    fn pairs(pairs: &[(&str, &str)]) -> Pairs {
        pairs.iter().map(|(word, kind)| ((*word).to_owned(), (*kind).to_owned())).collect()
    }

    #[test]
    fn reads_plain_lines_commas_tabs_and_quotes() {
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
    fn defuses_formulas_and_reads_them_back() {
        for word in ["=1+cmd", "+cmd", "-cmd", "@cmd", "＝cmd", "'=cmd", "''cmd", "'quoted'"] {
            let field = csv_field(word);
            assert!(!field.trim_start_matches('"').starts_with(FORMULA_STARTS), "{field}");
            let read = parse_word(&field, &ImportOptions::default()).map(|word| word.text);
            assert_eq!(read.as_deref(), Ok(word), "{field}");
        }
        assert_eq!((csv_field("=a,b").as_str(), csv_field("'a").as_str()), ("\"'=a,b\"", "'a"));
    }

    #[test]
    fn skips_invalid_words_with_their_lines() {
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
    fn accepts_quoted_headers_and_any_line_ending() {
        for heading in [
            "\"word\",\"type\"",
            "Word,Type",
            "\"word\"",
            "word\ttype",
            "word,type,bySound",
            CSV_HEADER,
            "\u{feff}\"word\"\t\"type\"",
        ] {
            for end in ["\n", "\r\n", "\r"] {
                let (words, skipped) = read(format!("{heading}{end}赌博,ads{end}刷单{end}").as_bytes());
                assert_eq!((words, skipped), (pairs(&[("赌博", "ads"), ("刷单", "other")]), Vec::new()), "{heading:?}");
            }
        }
    }

    #[test]
    fn commas_in_words_need_quotes() {
        for line in ["a,b,\"x\"", "a,b,x", "\"a\",b,c", "ab,c,true,d", "ab,\"c\" d"] {
            let (words, skipped) = read(line.as_bytes());
            assert_eq!((words, skipped.len()), (Vec::new(), 1), "{line}");
        }
        let (words, _) = read("ab,\"c,\td\"\n\"a,b\" , c\nc,d\tads\n5\" disk\tads\n".as_bytes());
        assert_eq!(words, pairs(&[("ab", "c,\td"), ("a,b", "c"), ("c,d", "ads"), ("5\" disk", "ads")]));
    }

    #[test]
    fn lists_of_other_programs_yield_no_mangled_words() {
        let (words, skipped) = read(
            "敏感词,类型\n\"卯词\n测试\",ads\n壬词测试，ads\n庚词测试;ads\n乙词测试|ads\n\"丙词；丁词\",ads\n"
                .as_bytes(),
        );
        assert_eq!(words, pairs(&[("丙词；丁词", "ads")]));
        let lines: Vec<_> = skipped.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [2, 3, 4, 5, 6], "{skipped:?}");
        // A single word may be one that heads other lists.
        assert_eq!(read("词语\n".as_bytes()).0, pairs(&[("词语", "other")]));
    }

    #[test]
    fn reads_the_sound_flag_of_each_word() {
        for by_sound in [false, true] {
            let options = ImportOptions { by_sound, ..ImportOptions::default() };
            let list = format!("{CSV_HEADER}\n赌博,ads,true\n刷单,ads,FALSE\n代开发票,ads,\n迷药\n");
            let (words, skipped) = parse(list.as_bytes(), &options, |_| {});
            let flags: Vec<_> = words.iter().map(|word| word.by_sound).collect();
            assert_eq!((flags, skipped.len()), (vec![true, false, by_sound, by_sound], 0));
            let list: Vec<_> = words.iter().map(to_csv_line).collect();
            assert_eq!(parse(list.join("\n").as_bytes(), &ImportOptions::default(), |_| {}).0, words);
        }
    }

    #[test]
    fn reads_severity_tags_and_content_types() {
        let options = ImportOptions {
            severity: Severity::Low,
            tags: vec!["old".to_owned()],
            content_types: ContentTypes::of([ContentType::Nickname]),
            ..ImportOptions::default()
        };
        let list = format!(
            "{CSV_HEADER}\n赌博,gambling,true,HIGH,money addiction money,question Signature\n刷单,fraud,,,,\n代练,ads\n\
             迷药,x,true,awful\n裸聊,x,true,low,{}\n网赚,x,true,low,,poem\n发票,x,true,low,,,more\n",
            "长".repeat(33)
        );
        let (words, skipped) = parse(list.as_bytes(), &options, |_| {});
        let [first, second, third] = &words[..] else { panic!("{words:?}") };
        assert_eq!(
            (first.severity, &first.tags[..]),
            (Severity::High, &["money".to_owned(), "addiction".to_owned()][..])
        );
        assert_eq!(first.content_types.names(), ["signature", "question"]);
        for word in [second, third] {
            assert_eq!((word.severity, &word.tags[..]), (Severity::Low, &["old".to_owned()][..]));
            assert_eq!(word.content_types.names(), ["nickname"]);
        }
        let lines: Vec<_> = skipped.iter().map(|skipped| skipped.line).collect();
        assert_eq!(lines, [5, 6, 7, 8], "{skipped:?}");
        assert!(skipped[0].reason.contains("low, medium, high"), "{skipped:?}");
        let written: Vec<_> = words.iter().map(to_csv_line).collect();
        assert_eq!(written[0], "赌博,gambling,true,high,money addiction,signature question");
        assert_eq!(parse(written.join("\n").as_bytes(), &ImportOptions::default(), |_| {}).0, words);
    }

    #[test]
    fn reads_what_it_writes() {
        for word in ["赌博", "a,b", "say \"hi\"", "#tag", "free money", "甲词；乙词", "a|b"] {
            let (words, _) = read(format!("{},ads\n", csv_field(word)).as_bytes());
            assert_eq!(words, pairs(&[(word, "ads")]));
        }
    }

    mod properties {
        use proptest::prelude::*;

        use super::*;

        proptest! {
            #[test]
            fn each_line_yields_at_most_one_word_or_reason(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
                let (words, skipped) = parse(&bytes, &ImportOptions::default(), |_| {});
                let lines = lines(&bytes).count();
                prop_assert!(words.len() + skipped.len() <= lines);
                prop_assert!(skipped.iter().all(|skipped| (1..=lines).contains(&skipped.line)));
            }

            #[test]
            fn imports_what_it_exports(text in "[\u{4e00}-\u{9fa5}a-z\",#\t]{2,20}", kind in "[a-z,\" ]{1,10}") {
                let first = parse(format!("{},{}", csv_field(&text), csv_field(&kind)).as_bytes(), &ImportOptions::default(), |_| {}).0;
                for word in first {
                    let line = format!("{},{}", csv_field(&word.text), csv_field(&word.kind));
                    let again = parse(line.as_bytes(), &ImportOptions::default(), |_| {}).0;
                    prop_assert_eq!(again.len(), 1, "{}", line);
                    prop_assert_eq!((&again[0].text, &again[0].kind), (&word.text, &word.kind));
                }
            }
        }
    }
}
