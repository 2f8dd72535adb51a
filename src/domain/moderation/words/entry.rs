//! The rules for an entry of the word list.

use crate::{
    domain::moderation::engine::{ContentTypes, Severity, Word, is_malformed_rule, normalise},
    error::{Fault, FieldCode},
    store::{Row, RowResult},
};

/// The type of a word without one.
pub const UNTYPED: &str = "other";
/// Maximum number of tags of a word.
const MAX_TAGS: usize = 8;
/// Maximum characters of a tag.
const MAX_TAG_LENGTH: usize = 32;

/// Reads a word from six columns of a row: `word, type, by_sound, severity, tags, content_types`.
pub(super) fn word_of(row: &Row<'_>, first: usize) -> RowResult<Word> {
    Ok(Word {
        text: row.get(first)?,
        kind: row.get(first + 1)?,
        by_sound: row.get(first + 2)?,
        severity: row.get_parsed(first + 3, Severity::from_name)?,
        tags: row.get::<String>(first + 4)?.split_whitespace().map(ToOwned::to_owned).collect(),
        content_types: row.get_parsed(first + 5, ContentTypes::from_names)?,
    })
}

/// Parses tags separated by blanks, without repetitions.
///
/// # Errors
/// The fault of a tag that is too long or contains a comma, or of too many tags.
pub fn parse_tags(text: &str) -> Result<Vec<String>, Fault> {
    let mut tags: Vec<String> = Vec::new();
    for tag in text.split_whitespace() {
        if tag.chars().count() > MAX_TAG_LENGTH {
            return Err(Fault::new(
                FieldCode::TooLong,
                (format!("must be at most {MAX_TAG_LENGTH} characters long"), format!("最多 {MAX_TAG_LENGTH} 个字")),
            ));
        }
        if tag.contains([',', '"', '\0']) {
            return Err(Fault::new(
                FieldCode::InvalidCharacter,
                ("must not contain commas, quotation marks or NUL", "不能包含逗号、引号或 NUL 字符"),
            ));
        }
        if !tags.iter().any(|known| known == tag) {
            tags.push(tag.to_owned());
        }
    }
    if tags.len() > MAX_TAGS {
        return Err(Fault::new(
            FieldCode::TooLong,
            (format!("must be at most {MAX_TAGS} tags"), format!("最多 {MAX_TAGS} 个标签")),
        ));
    }
    Ok(tags)
}

/// Validates the text of a word: one line, at most `max_length` characters, with letters, digits or emoji. A single letter
/// or digit needs `force`. A rule needs a valid form.
///
/// # Errors
/// The fault of the text.
pub fn check(text: &str, max_length: usize, force: bool) -> Result<(), Fault> {
    if is_single_letter(&form_of(text, max_length)?) && !force {
        return Err(Fault::new(
            FieldCode::TooShort,
            (
                "must have at least two letters or digits; a single one would reject nearly every text",
                "至少须有两个字母或数字，单个字会拦截几乎所有文本",
            ),
        ));
    }
    if is_malformed_rule(text) {
        return Err(Fault::new(
            FieldCode::InvalidFormat,
            (
                "is not a valid rule: write A&B (two to four parts), A~B (A without B) or A{n}B (n from 1 to 20), each \
                 part with two letters or more; `*` is not a wildcard",
                "不是有效的规则：须写作 A&B（二至四部分）、A~B（有 A 无 B）或 A{n}B（n 为 1 至 20），每部分至少两个字；`*` 不是通配符",
            ),
        ));
    }
    Ok(())
}

/// Validates an allowed phrase: like a word, but never a single letter, and no rule.
///
/// # Errors
/// The fault of the text.
pub fn check_phrase(text: &str, max_length: usize) -> Result<(), Fault> {
    let form = form_of(text, max_length)?;
    if is_single_letter(&form) || !form.contains(char::is_alphanumeric) {
        return Err(Fault::new(
            FieldCode::TooShort,
            (
                "must have at least two letters or digits; a single one is part of nearly every listed word",
                "至少须有两个字母或数字，单个字见于几乎所有词",
            ),
        ));
    }
    Ok(())
}

fn is_single_letter(form: &str) -> bool {
    let mut characters = form.chars().filter(|character| !character.is_whitespace());
    characters.next().is_some_and(char::is_alphanumeric) && characters.next().is_none()
}

/// Returns the comparison form of a text of one line.
fn form_of(text: &str, max_length: usize) -> Result<String, Fault> {
    if text.chars().count() > max_length {
        return Err(Fault::new(
            FieldCode::TooLong,
            (format!("must be at most {max_length} characters long"), format!("最多 {max_length} 个字")),
        ));
    }
    if text.contains(['\n', '\r']) {
        return Err(Fault::new(FieldCode::InvalidCharacter, ("must be on one line", "须在一行内")));
    }
    let form = normalise(text);
    if form.is_empty() {
        let fault = ("must contain a letter, a digit or an emoji", "须包含字母、数字或表情符号");
        return Err(Fault::new(FieldCode::InvalidFormat, fault));
    }
    Ok(form)
}
