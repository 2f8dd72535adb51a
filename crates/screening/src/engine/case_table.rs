//! Runs the table of cases, grouped by trick: texts that must be blocked, must pass, must be found in a way that needs
//! review, or must not be found at all.

use std::fmt::Write;

use super::{ContentType, Engine, Word};

const TABLE: &str = include_str!("../../../../tests/moderation/cases.tsv");

struct Case<'table> {
    line: usize,
    expected: &'table str,
    content_type: ContentType,
    trick: &'table str,
    words: Vec<Word>,
    text: String,
    allowed: Vec<String>,
}

fn cases() -> Vec<Case<'static>> {
    let lines = TABLE.lines().enumerate().filter(|(_, line)| !line.starts_with('#') && !line.is_empty());
    lines.map(|(index, line)| parse(index + 1, line)).collect()
}

fn parse(line: usize, row: &str) -> Case<'_> {
    let fields: Vec<&str> = row.split('\t').collect();
    assert!(matches!(fields.len(), 5 | 6), "line {line} has {} columns", fields.len());
    let list = |field: &str| -> Vec<String> { field.split(',').map(unescape).collect() };
    Case {
        line,
        expected: fields[0],
        content_type: ContentType::from_name(fields[1]).unwrap_or_else(|| panic!("line {line}: {}", fields[1])),
        trick: fields[2],
        words: list(fields[3])
            .into_iter()
            .map(|text| Word { text, kind: "other".into(), by_sound: true, ..Word::default() })
            .collect(),
        text: unescape(fields[4]),
        allowed: fields.get(5).map(|field| list(field)).unwrap_or_default(),
    }
}

/// Replaces `\n`, `\t` and `\u{…}` by the characters they stand for.
fn unescape(text: &str) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        result.push_str(before);
        let (character, length) = match after.chars().next() {
            Some('n') => ('\n', 1),
            Some('t') => ('\t', 1),
            Some('u') => {
                let end = after.find('}').expect("the escape is closed");
                let code = u32::from_str_radix(&after[2..end], 16).expect("the escape is hexadecimal");
                (char::from_u32(code).expect("the escape names a character"), end + 1)
            }
            _ => ('\\', 0),
        };
        result.push(character);
        rest = &after[length..];
    }
    result + rest
}

#[test]
fn blocks_and_passes_the_cases_of_the_table() {
    let mut failures = String::new();
    let (mut blocks, mut passes) = (0, 0);
    for case in cases() {
        let matches = Engine::build(&case.words, &case.allowed).check(case.content_type, &case.text);
        let is_blocked = matches.iter().any(|found| found.way.is_certain());
        let is_expected = match case.expected {
            "block" => is_blocked,
            "review" => !is_blocked && !matches.is_empty(),
            "pass" => !is_blocked,
            "none" => matches.is_empty(),
            other => panic!("line {} expects {other}", case.line),
        };
        blocks += usize::from(case.expected == "block");
        passes += usize::from(case.expected == "pass");
        if !is_expected {
            writeln!(failures, "line {}: {} ({}) {:?}: {matches:?}", case.line, case.expected, case.trick, case.text)
                .expect("writing to a string succeeds");
        }
    }
    assert!(blocks >= 150 && passes >= 150, "the table has {blocks} and {passes} cases");
    assert!(failures.is_empty(), "\n{failures}");
}

fn rows(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.starts_with('#'))
}

#[test]
fn the_default_list_is_short_and_sound() {
    let words: Vec<Word> = rows(include_str!("../../../../assets/words.tsv"))
        .map(|row| row.split_once('\t').expect("a row has a word and a type"))
        .map(|(text, kind)| Word { text: text.into(), kind: kind.into(), by_sound: true, ..Word::default() })
        .collect();
    let allowed: Vec<String> = rows(include_str!("../../../../assets/allowed-words.tsv")).map(str::to_owned).collect();
    let (strict, lenient) = (Engine::build(&words, &[]), Engine::build(&words, &allowed));
    assert!(words.len() <= 60 && strict.word_count() == words.len());
    for word in &words {
        assert!(!lenient.check(ContentType::Question, &word.text).is_empty(), "{}", word.text);
    }
    for phrase in &allowed {
        assert!(!strict.check(ContentType::Question, phrase).is_empty(), "{phrase} needs no permission");
        assert!(lenient.check(ContentType::Question, phrase).is_empty(), "{phrase}");
    }
}

#[test]
fn slang_is_found_and_its_innocents_are_not() {
    let rows_of = |file: &'static str| rows(file).map(|row| row.split('\t').collect()).collect::<Vec<Vec<&str>>>();
    let entries = rows_of(include_str!("../../../../assets/slang.tsv"));
    let innocents = rows_of(include_str!("../../../../tests/moderation/slang-innocents.tsv"));
    let words: Vec<Word> =
        entries.iter().map(|entry| Word { text: entry[0].into(), kind: entry[1].into(), ..Word::default() }).collect();
    let engine = Engine::build(&words, &[]);
    let default_list = include_str!("../../../../assets/words.tsv");
    assert!(words.len() > 80 && engine.word_count() == words.len() && innocents.len() == words.len());
    for (entry, innocents) in entries.iter().zip(&innocents) {
        let found = engine.check(ContentType::Question, &format!("问一下{}吗", entry[0]));
        assert!(found.iter().any(|found| found.word == entry[0]), "{}", entry[0]);
        assert!(default_list.contains(&format!("\t{}\n", entry[1])), "{} has a type of its own", entry[0]);
        assert_eq!((entry[0], &entry[2..4]), (innocents[0], &["false", "low"][..]));
        assert!(matches!(entry[4], "initials" | "homophone" | "cover") && !innocents[1].is_empty(), "{entry:?}");
        for innocent in innocents[1].split('|') {
            let found = engine.check(ContentType::Question, innocent);
            assert!(found.is_empty(), "{innocent}: {found:?}");
        }
    }
}
