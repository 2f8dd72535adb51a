//! The decision on one text, and what is recorded of a rejected one.

use std::{collections::HashSet, ops::Range};

use super::{
    engine::{MAX_MATCHES, Match, MatchWay, Severity, mask},
    match_actions::MatchActions,
    reviews::ReviewDraft,
    violations::Violation,
};
use crate::{
    config::MatchAction,
    domain::moderation::engine::ContentType,
    providers::moderation::{ModerationResult, RiskLabel},
    types::UserId,
};

/// The provider name of the word list.
pub const LOCAL: &str = "local";
/// The violation type of a rejection without a word or a label.
const OTHER: &str = "other";
/// The violation type of a text without a match, of a user whose every text is reviewed.
const WATCHED: &str = "watched";
/// The character that replaces those of a match.
pub const REPLACEMENT: char = '＊';
/// Maximum characters of a rejected text that are recorded.
const MAX_EXCERPT: usize = 1_000;
/// Maximum matched words that are recorded.
const MAX_WORDS: usize = 50;

/// The decision on one text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ruling {
    pub allowed: bool,
    /// `local`, or the name of the external moderator.
    pub provider: &'static str,
    /// The word list decided because the external moderator failed.
    pub degraded: bool,
    /// The text is allowed, but a moderator has to see it.
    pub needs_review: bool,
    /// The allowed text with its matches masked that must not be stored or shown as they are; `None` if there are none.
    pub replacement: Option<String>,
    /// The type of the first of the most severe matches that decided; empty for a text without matches.
    pub violation_type: String,
    /// The listed words that were found, or the labels of the external moderator.
    pub found: Vec<String>,
    pub matches: Vec<Match>,
    /// The text with its matches masked, or completely masked if the external moderator does not locate all of them.
    pub masked_text: String,
}

impl Ruling {
    /// Returns the ruling for these matches of the word list. A text full of words is refused whatever the rules say,
    /// because it was not searched for all disguises.
    pub(super) fn from_matches(text: &str, matches: Vec<Match>, actions: MatchActions<'_>) -> Self {
        let mut known = HashSet::new();
        let found = matches.iter().map(|found| &found.word).filter(|word| known.insert(*word)).cloned().collect();
        let is_full = is_full(&matches);
        let strictest = matches.iter().map(|found| actions.of(found)).max();
        let strictest = if is_full { Some(MatchAction::Block) } else { strictest };
        let weight = |found: &&Match| (actions.of(found), found.severity);
        // The last of equal maxima is the first match.
        let deciding = matches.iter().rev().max_by_key(weight);
        let mut masked_text = mask(text, &matches);
        if is_full {
            masked_text = mask_from(&masked_text, matches.last().map_or(0, |found| found.end));
        }
        let with = |action| matches.iter().filter(move |found| actions.of(found) == action);
        let allowed = strictest != Some(MatchAction::Block);
        let is_masked = strictest == Some(MatchAction::Mask);
        Self {
            allowed,
            provider: LOCAL,
            degraded: false,
            needs_review: allowed && with(MatchAction::Review).next().is_some(),
            replacement: is_masked.then(|| replace(text, with(MatchAction::Mask))),
            violation_type: deciding.map(|found| found.kind.clone()).unwrap_or_default(),
            found,
            masked_text,
            matches,
        }
    }

    /// Returns the ruling for the verdict of an external moderator.
    pub(super) fn from_verdict(provider: &'static str, text: &str, verdict: &ModerationResult) -> Self {
        if !verdict.is_refused {
            return Self {
                allowed: true,
                provider,
                degraded: false,
                needs_review: false,
                replacement: None,
                violation_type: String::new(),
                found: Vec::new(),
                matches: Vec::new(),
                masked_text: text.to_owned(),
            };
        }
        let (matches, is_complete) = locate(text, &verdict.findings);
        Self {
            allowed: false,
            provider,
            degraded: false,
            needs_review: false,
            replacement: None,
            violation_type: verdict.findings.first().map_or(OTHER, |found| found.kind).to_owned(),
            found: verdict.findings.iter().map(|found| found.label.clone()).collect(),
            masked_text: if is_complete { mask(text, &matches) } else { "*".repeat(text.chars().count()) },
            matches,
        }
    }

    /// Restricts the ruling to matches that overlap a part of the text, given in bytes. The masked text stays complete.
    /// A rejection by an external moderator stays, because it does not locate all of its findings.
    pub(super) fn restricted_to(self, text: &str, part: &Range<usize>, actions: MatchActions<'_>) -> Self {
        if self.matches.is_empty() || is_full(&self.matches) || self.provider != LOCAL {
            return self;
        }
        let (begin, end) = (text[..part.start].chars().count(), text[..part.end].chars().count());
        let overlaps = |found: &Match| found.end > begin && found.start < end;
        let matches = self.matches.into_iter().filter(overlaps).collect();
        Self { degraded: self.degraded, masked_text: self.masked_text, ..Self::from_matches(text, matches, actions) }
    }

    /// Returns the byte ranges of a part of the text that have to be masked, in order and without overlaps.
    pub(super) fn masked_ranges(
        &self,
        text: &str,
        part: &Range<usize>,
        actions: MatchActions<'_>,
    ) -> Vec<Range<usize>> {
        if self.replacement.is_none() {
            return Vec::new();
        }
        let place_of = |index: usize| text.char_indices().nth(index).map_or(text.len(), |(place, _)| place);
        let masked = self.matches.iter().filter(|found| actions.of(found) == MatchAction::Mask);
        let mut ranges: Vec<_> = masked
            .map(|found| place_of(found.start).max(part.start)..place_of(found.end).min(part.end))
            .filter(|range| !range.is_empty())
            .collect();
        ranges.sort_unstable_by_key(|range| range.start);
        ranges.dedup_by(|next, range| {
            let overlaps = next.start <= range.end;
            if overlaps {
                range.end = range.end.max(next.end);
            }
            overlaps
        });
        ranges
    }

    /// Returns the name of the strictest action: `allow`, `review`, `mask` or `block`.
    pub fn action(&self) -> &'static str {
        match self {
            Self { allowed: false, .. } => "block",
            Self { replacement: Some(_), .. } => "mask",
            Self { needs_review: true, .. } => "review",
            _ => "allow",
        }
    }

    /// Returns the review of this text.
    pub(super) fn to_review(&self, user: UserId, content_type: ContentType, text: &str) -> ReviewDraft {
        let first = self.matches.iter().map(|found| found.start).min().unwrap_or(0);
        let mut ways: Vec<&'static str> = self.matches.iter().map(|found| found.way.name()).collect();
        ways.sort_unstable();
        ways.dedup();
        let mut violation = self.clone().into_violation(user, content_type);
        if self.matches.is_empty() {
            WATCHED.clone_into(&mut violation.violation_type);
        }
        ReviewDraft { violation, ways, excerpt: excerpt(text.to_owned(), first) }
    }

    /// Returns the record of this rejection.
    pub(super) fn into_violation(mut self, user: UserId, content_type: ContentType) -> Violation {
        let first = self.matches.iter().map(|found| found.start).min().unwrap_or(0);
        self.found.truncate(MAX_WORDS);
        Violation {
            user,
            content_type: content_type.name(),
            violation_type: self.violation_type,
            words: self.found,
            masked_text: excerpt(self.masked_text, first),
            provider: self.provider.into(),
        }
    }
}

/// Returns true if the search ended before the whole text was searched.
fn is_full(matches: &[Match]) -> bool {
    matches.len() >= MAX_MATCHES
}

/// Masks the characters from one on.
fn mask_from(text: &str, start: usize) -> String {
    text.chars().enumerate().map(|(index, letter)| if index < start { letter } else { '*' }).collect()
}

/// Replaces the characters of matches. Unlike the mask of records, it is seen by others than the staff.
fn replace<'a>(text: &str, matches: impl Iterator<Item = &'a Match>) -> String {
    let mut letters: Vec<char> = text.chars().collect();
    for found in matches {
        if let Some(part) = letters.get_mut(found.start..found.end) {
            part.fill(REPLACEMENT);
        }
    }
    letters.into_iter().collect()
}

/// Cuts a long text to the text around one character.
fn excerpt(text: String, center: usize) -> String {
    let length = text.chars().count();
    if length <= MAX_EXCERPT {
        return text;
    }
    let begin = center.saturating_sub(MAX_EXCERPT / 2).min(length - MAX_EXCERPT);
    let ellipsis = |is_cut: bool| is_cut.then_some('…');
    let excerpt = text.chars().skip(begin).take(MAX_EXCERPT);
    ellipsis(begin > 0).into_iter().chain(excerpt).chain(ellipsis(begin + MAX_EXCERPT < length)).collect()
}

/// Locates the words that the external moderator names, ignoring case. Also returns whether they explain the whole
/// verdict: there are findings, each names words, and each word occurs in the text.
fn locate(text: &str, findings: &[RiskLabel]) -> (Vec<Match>, bool) {
    let letters: Vec<char> = text.chars().collect();
    let lower_text: Vec<char> = letters.iter().copied().map(lower).collect();
    let (mut matches, mut is_complete) = (Vec::new(), !findings.is_empty());
    for finding in findings {
        is_complete &= !finding.words.is_empty();
        for word in &finding.words {
            let word: Vec<char> = word.chars().map(lower).collect();
            let starts = occurrences(&word, &lower_text);
            is_complete &= !starts.is_empty();
            matches.extend(starts.into_iter().map(|start| Match {
                word: finding.label.clone(),
                kind: finding.kind.to_owned(),
                severity: Severity::default(),
                tags: Vec::new(),
                way: MatchWay::Exact,
                start,
                end: start + word.len(),
                text: letters[start..start + word.len()].iter().collect(),
            }));
        }
    }
    matches.sort_by_key(|found| (found.start, found.end));
    (matches, is_complete)
}

/// Lowers a character to exactly one character, so that offsets stay valid.
fn lower(character: char) -> char {
    character.to_lowercase().next().unwrap_or(character)
}

fn occurrences(word: &[char], text: &[char]) -> Vec<usize> {
    if word.is_empty() {
        return Vec::new();
    }
    text.windows(word.len()).enumerate().filter(|(_, part)| *part == word).map(|(start, _)| start).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MASK_ALL: crate::config::MatchRule = crate::config::MatchRule {
        violation_type: None,
        way: None,
        content_type: None,
        severity: None,
        action: MatchAction::Mask,
    };

    fn found(start: usize, end: usize) -> Match {
        Match {
            word: "x".into(),
            kind: "ads".into(),
            severity: Severity::Medium,
            tags: Vec::new(),
            way: MatchWay::Exact,
            start,
            end,
            text: String::new(),
        }
    }

    fn verdict(words: &[&str]) -> ModerationResult {
        let words = words.iter().map(|&word| word.to_owned()).collect();
        let finding = RiskLabel { label: "contraband_gambling".into(), kind: "gambling", confidence: None, words };
        ModerationResult { is_refused: true, findings: vec![finding] }
    }

    #[test]
    fn masks_located_words_or_the_whole_text() {
        let named = Ruling::from_verdict("aliyun", "一起赌博吧，赌博", &verdict(&["赌博"]));
        assert_eq!((named.masked_text.as_str(), named.matches.len()), ("一起**吧，**", 2));
        assert_eq!((named.violation_type.as_str(), named.found), ("gambling", vec!["contraband_gambling".to_owned()]));
        let other_case = Ruling::from_verdict("aliyun", "坏词 SecretWord 高危", &verdict(&["坏词", "SECRETWORD"]));
        assert_eq!((other_case.masked_text.as_str(), other_case.matches.len()), ("** ********** 高危", 2));
        for words in [&[][..], &[""], &["赌博", "没有"], &["赌愽"]] {
            let unnamed = Ruling::from_verdict("aliyun", "一起赌博吧", &verdict(words));
            assert_eq!(unnamed.masked_text, "*****", "{words:?}");
        }
        let mut partly = verdict(&["赌博"]);
        partly.findings.extend(verdict(&[]).findings);
        assert_eq!(Ruling::from_verdict("aliyun", "一起赌博吧", &partly).masked_text, "*****");
        let unexplained =
            Ruling::from_verdict("aliyun", "x", &ModerationResult { is_refused: true, findings: Vec::new() });
        assert!(!unexplained.allowed && unexplained.violation_type == "other" && unexplained.masked_text == "*");
    }

    #[test]
    fn a_text_full_of_words_is_refused() {
        let actions = MatchActions { rules: &[MASK_ALL], content_type: ContentType::Answer };
        let text = "赌博".repeat(MAX_MATCHES + 1);
        let ruling = |count: usize| {
            let matches = (0..count).map(|index| found(index * 2, index * 2 + 2)).collect();
            Ruling::from_matches(&text, matches, actions)
        };
        assert_eq!(ruling(MAX_MATCHES - 1).action(), "mask");
        let full = ruling(MAX_MATCHES);
        assert_eq!((full.action(), full.violation_type.as_str()), ("block", "ads"));
        assert_eq!(full.masked_text, "*".repeat(text.chars().count()));
        assert_eq!(full.clone().restricted_to(&text, &(0..6), actions), full);
    }

    #[test]
    fn masked_ranges_stay_in_the_part() {
        let actions = MatchActions { rules: &[MASK_ALL], content_type: ContentType::Answer };
        let text = "去赌博网站a赌";
        let ranges = |matches: Vec<Match>, part: Range<usize>| {
            Ruling::from_matches(text, matches, actions).masked_ranges(text, &part, actions)
        };
        assert_eq!(ranges(vec![found(2, 5), found(1, 3), found(6, 7)], 0..text.len()), [3..15, 16..19]);
        assert_eq!(ranges(vec![found(0, 2), found(5, 7)], 3..16), [3..6, 15..16]);
        assert_eq!(ranges(vec![found(0, 1)], 3..16), [0..0; 0]);
        assert_eq!(ranges(Vec::new(), 0..text.len()), [0..0; 0]);
    }

    #[test]
    fn excerpt_surrounds_the_first_match() {
        let (head, tail) = ("卦".repeat(600), "象".repeat(900));
        for (text, around, expected) in [
            (format!("{head}**{tail}"), 600, format!("…{}**{}…", "卦".repeat(500), "象".repeat(498))),
            (format!("**{tail}{tail}"), 0, format!("**{tail}{}…", "象".repeat(98))),
            (format!("{tail}**"), 900, format!("{tail}**")),
            (format!("{tail}{tail}**"), 1_800, format!("…{tail}{}**", "象".repeat(98))),
        ] {
            assert_eq!(excerpt(text, around), expected);
        }
    }
}
