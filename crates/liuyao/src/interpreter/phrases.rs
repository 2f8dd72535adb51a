//! The phrases of a reading, in Chinese and English, with places for values in braces.

use std::{borrow::Cow, collections::HashMap, sync::LazyLock};

use super::Written;
use crate::script::BOUNDARY;
static PHRASES: LazyLock<HashMap<&'static str, [&'static str; 2]>> = LazyLock::new(|| {
    let rows = include_str!("../../../../assets/interpreter/phrases.tsv").lines().skip(1);
    rows.filter_map(|row| {
        let [key, chinese, english] = row.split('\t').collect::<Vec<_>>().try_into().ok()?;
        Some((key, [chinese, english]))
    })
    .collect()
});

/// The phrases of one language.
#[derive(Clone, Copy)]
pub(super) struct Phrases(pub Written);

impl Phrases {
    pub(super) fn is_english(self) -> bool {
        self.0 == Written::English
    }

    pub(super) fn find(self, key: &str) -> Option<&'static str> {
        PHRASES.get(key).map(|phrases| phrases[usize::from(self.is_english())])
    }

    pub(super) fn get(self, key: &str) -> &'static str {
        self.find(key).unwrap_or_default()
    }

    /// Returns the term of a group, such as `kin.父母`.
    pub(super) fn term(self, group: &str, name: &str) -> &'static str {
        self.get(&format!("{group}.{name}"))
    }

    /// Returns the phrase with its values. Braces around other words stay.
    pub(super) fn say(self, key: &str, values: &[(&str, &str)]) -> String {
        self.fill(self.get(key), &|name| Some(Cow::from(values.iter().find(|(key, _)| *key == name)?.1)))
    }

    /// Returns the phrase with the values that it names.
    pub(super) fn say_with(self, key: &str, value: &dyn Fn(&str) -> Option<Cow<'static, str>>) -> String {
        self.fill(self.get(key), value)
    }

    /// Returns the first phrase that there is of these keys, with the values that it names.
    pub(super) fn say_first(self, keys: &[String], value: &dyn Fn(&str) -> Option<Cow<'static, str>>) -> String {
        self.fill(keys.iter().find_map(|key| self.find(key)).unwrap_or_default(), value)
    }

    /// Fills in the values, in traditional characters with a mark around each.
    fn fill<'v>(self, phrase: &str, value: &dyn Fn(&str) -> Option<Cow<'v, str>>) -> String {
        let mark = (self.0 == Written::Traditional).then_some(BOUNDARY);
        let mut filled = String::with_capacity(phrase.len() * 2);
        let mut rest = phrase;
        while let Some((before, after)) = rest.split_once('{') {
            filled.push_str(before);
            let found = after.split_once('}').and_then(|(name, after)| Some((value(name)?, after)));
            rest = after;
            if let Some((value, after)) = found {
                filled.extend(mark);
                filled.push_str(&value);
                filled.extend(mark);
                rest = after;
            } else {
                filled.push('{');
            }
        }
        filled + rest
    }

    /// Joins sentences: with spaces in English.
    pub(super) fn join(self, sentences: &[String]) -> String {
        let is_there = |sentence: &&str| !sentence.is_empty();
        let sentences = sentences.iter().map(|sentence| sentence.trim_end()).filter(is_there);
        sentences.collect::<Vec<_>>().join(if self.is_english() { " " } else { "" })
    }

    /// Returns an English paragraph with a capital at the start of each sentence.
    pub(super) fn capitalised(self, text: &str) -> String {
        if !self.is_english() {
            return text.to_owned();
        }
        let (mut starts, mut was_end) = (true, false);
        let letters = text.chars().map(|letter| {
            if starts && letter.is_ascii_alphabetic() {
                starts = false;
                return letter.to_ascii_uppercase();
            }
            starts = starts && !letter.is_ascii_digit() || (was_end && letter == ' ');
            was_end = matches!(letter, '.' | '?');
            letter
        });
        letters.collect()
    }
}
