//! Listed words of emoji alone, which are looked for as they stand: 🔞 in 来看🔞.
//!
//! They have no letters, so no automaton knows them. Skin tones and invisible characters in them and in texts, such as
//! variation selectors, are ignored.

use std::ops::RangeInclusive;

use super::{
    folding::{Fold, folding},
    types::{ContentType, Match, MatchWay, Word},
};

/// Symbols and pictures. Those that fold to letters are none here.
const PICTURES: &[RangeInclusive<char>] = &['\u{2190}'..='\u{2BFF}', '\u{1F000}'..='\u{1FBFF}'];
const SKIN_TONES: RangeInclusive<char> = '\u{1F3FB}'..='\u{1F3FF}';

/// The listed words of a list that are emoji, with their comparison forms.
pub(super) struct Pictures(Vec<(String, Word)>);

impl Pictures {
    pub(super) fn of(words: &[Word]) -> Self {
        let with_form = |word: &Word| (form(&word.text), word.clone());
        Self(
            words
                .iter()
                .filter(|word| !has_letters(&word.text))
                .map(with_form)
                .filter(|(form, _)| !form.is_empty())
                .collect(),
        )
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// Adds the matches in a text.
    pub(super) fn find(&self, content_type: ContentType, text: &str, found: &mut Vec<Match>) {
        if self.0.is_empty() {
            return;
        }
        let pictures = text.char_indices().enumerate().filter(|(_, (_, character))| is_picture(*character));
        for (start, (place, _)) in pictures {
            for (form, word) in self.0.iter().filter(|(_, word)| word.content_types.contains(content_type)) {
                if let Some(length) = prefix_length(&text[place..], form) {
                    let text = text[place..place + length].to_owned();
                    found.push(Match {
                        word: word.text.clone(),
                        kind: word.kind.clone(),
                        severity: word.severity,
                        tags: word.tags.clone(),
                        way: MatchWay::Exact,
                        start,
                        end: start + text.chars().count(),
                        text,
                    });
                }
            }
        }
    }
}

/// Returns the emoji of a text without their variants.
pub(super) fn form(text: &str) -> String {
    text.chars().filter(|character| is_picture(*character)).collect()
}

fn is_picture(character: char) -> bool {
    PICTURES.iter().any(|range| range.contains(&character)) && !is_ignored(character)
}

/// Returns true for a character that makes no other picture.
fn is_ignored(character: char) -> bool {
    SKIN_TONES.contains(&character) || matches!(folding().fold(character), Fold::Invisible | Fold::Mark)
}

fn has_letters(text: &str) -> bool {
    text.chars().any(|character| matches!(folding().fold(character), Fold::Letter(_) | Fold::Letters(_)))
}

/// Returns the length in bytes of a form at the beginning of a text.
fn prefix_length(text: &str, form: &str) -> Option<usize> {
    let mut wanted = form.chars().peekable();
    for (place, character) in text.char_indices() {
        match wanted.peek() {
            Some(next) if *next == character => drop(wanted.next()),
            Some(_) if place > 0 && is_ignored(character) => {}
            Some(_) => return None,
            None => return Some(place),
        }
    }
    wanted.peek().is_none().then_some(text.len())
}

#[cfg(test)]
mod tests {
    use super::super::{Engine, normalise};
    use super::*;

    fn word(text: &str) -> Word {
        Word { text: text.to_owned(), kind: "ads".to_owned(), ..Word::default() }
    }

    #[test]
    fn finds_listed_emoji_as_they_stand() {
        let engine = Engine::build(&[word("🔞"), word("🐔🐔"), word("☎️"), word("赌博")], &[]);
        assert_eq!(engine.word_count(), 4);
        let found = |text: &str| -> Vec<(usize, usize)> {
            engine.check(ContentType::Question, text).iter().map(|found| (found.start, found.end)).collect()
        };
        assert_eq!(found("来看🔞吗，🔞"), [(2, 3), (5, 6)]);
        assert_eq!(found("🐔🐔"), [(0, 2)]);
        assert_eq!(found("🐔\u{200d}🐔"), [(0, 3)]);
        assert_eq!(found("🐔"), []);
        assert_eq!(found("🐔 🐔"), []);
        assert_eq!(found("☎ ☎️"), [(0, 1), (2, 3)]);
        assert_eq!(found("🔞赌🔞博"), [(0, 1), (1, 4), (2, 3)]);
        assert_eq!(
            (normalise("👍🏽"), normalise("👍"), normalise("！？…"), normalise("a👍")),
            ("👍".into(), "👍".into(), String::new(), "a".into())
        );
    }
}
