//! Rules in words: `A&B` (both near each other), `A~B` (A without B nearby) and `A{3}B` (at most three characters between).
//!
//! A rule needs parts of two letters or more, one of them with a Han character, so that `AT&T` and `R&D` are words as
//! before. The parts are compiled with the words; only texts with a part of each rule cost more.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap, HashSet},
};

use super::{
    lexicon::normalise,
    types::{ContentType, MAX_MATCHES, Match, Word},
};

/// Maximum number of characters between the parts of a rule.
const REACH: usize = 20;
/// Signs of rules.
const SIGNS: [char; 4] = ['&', '~', '{', '}'];
/// Wide signs of rules, and the wildcard of other programs. They mean nothing here.
const FOREIGN_SIGNS: [char; 4] = ['＆', '｛', '｝', '*'];
/// Maximum number of parts.
const MAX_PARTS: usize = 4;

/// The relation between the parts of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    /// All parts, in any order.
    Together,
    /// The first part with none of the others.
    Without,
    /// The second part follows the first within this number of characters.
    Followed(usize),
}

/// A rule, with the normal forms of its parts.
struct Rule {
    word: Word,
    parts: Vec<String>,
    relation: Relation,
}

/// The rules of a list.
pub(super) struct Rules(Vec<Rule>);

/// A list of words, separated by kind.
pub(super) struct SplitList<'words> {
    pub(super) words: Cow<'words, [Word]>,
    pub(super) rules: Rules,
    /// The distinct parts of the rules, in their normal forms.
    pub(super) parts: Vec<Word>,
}

impl<'words> SplitList<'words> {
    /// Separates the rules of a list from its other words.
    pub(super) fn of(words: &'words [Word]) -> Self {
        if !words.iter().any(|word| word.text.contains(SIGNS)) {
            return Self { words: Cow::Borrowed(words), rules: Rules(Vec::new()), parts: Vec::new() };
        }
        let (mut rules, mut others, mut parts) = (Vec::new(), Vec::new(), BTreeMap::new());
        for word in words {
            let Some((texts, relation)) = parse(&word.text) else {
                others.push(word.clone());
                continue;
            };
            let forms: Vec<String> = texts.iter().map(|text| normalise(text)).collect();
            for form in &forms {
                let part = Word { text: form.clone(), by_sound: word.by_sound, ..Word::default() };
                let known: &mut Word = parts.entry(form.clone()).or_insert(part);
                known.by_sound |= word.by_sound;
            }
            rules.push(Rule { word: word.clone(), parts: forms, relation });
        }
        Self { words: Cow::Owned(others), rules: Rules(rules), parts: parts.into_values().collect() }
    }
}

impl Rules {
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns true if a text with these parts may match a rule.
    pub(super) fn may_match(&self, present: &HashSet<&str>) -> bool {
        let is_present = |part: &String| present.contains(part.as_str());
        !present.is_empty()
            && self.0.iter().any(|rule| match rule.relation {
                Relation::Without => rule.parts.first().is_some_and(is_present),
                _ => rule.parts.iter().all(is_present),
            })
    }

    /// Returns the parts that match a rule, under the name of the rule. Takes the matches of all parts.
    pub(super) fn check(&self, content_type: ContentType, found: Vec<Match>) -> Vec<Match> {
        let mut places: HashMap<String, Vec<Match>> = HashMap::new();
        for found in found {
            if let Some(others) = places.get_mut(&found.word) {
                others.push(found);
            } else {
                places.insert(found.word.clone(), vec![found]);
            }
        }
        if places.is_empty() {
            return Vec::new();
        }
        let rules = self.0.iter().filter(|rule| rule.word.content_types.contains(content_type));
        rules.flat_map(|rule| rule.matches(&places)).collect()
    }
}

impl Rule {
    fn matches(&self, places: &HashMap<String, Vec<Match>>) -> Vec<Match> {
        let found_of = |part: &String| places.get(part).map_or(&[][..], Vec::as_slice);
        let Some((first, others)) = self.parts.split_first() else { return Vec::new() };
        let mut found: Vec<Match> = Vec::new();
        let is_complete = others.iter().all(|part| places.contains_key(part));
        if !is_complete && self.relation != Relation::Without {
            return found;
        }
        for one in found_of(first) {
            if found.len() >= MAX_MATCHES {
                break;
            }
            let near: Vec<Option<&Match>> = others.iter().map(|part| self.nearest(one, found_of(part))).collect();
            match self.relation {
                Relation::Without if near.iter().all(Option::is_none) => found.push(one.clone()),
                Relation::Without => {}
                _ if near.iter().all(Option::is_some) => {
                    found.push(one.clone());
                    found.extend(near.into_iter().flatten().cloned());
                }
                _ => {}
            }
        }
        for one in &mut found {
            one.word.clone_from(&self.word.text);
            one.kind.clone_from(&self.word.kind);
            one.severity = self.word.severity;
            one.tags.clone_from(&self.word.tags);
        }
        found
    }

    /// Returns a match of another part within reach of this one. Both are sorted by their starts.
    fn nearest<'found>(&self, one: &Match, others: &'found [Match]) -> Option<&'found Match> {
        let next = others.partition_point(|other| other.start < one.end);
        let (reach, before) = match self.relation {
            Relation::Followed(reach) => (reach, None),
            _ => (REACH, next.checked_sub(1).map(|index| &others[index])),
        };
        let is_near = |other: &&Match| other.start <= one.end + reach && one.start <= other.end + reach;
        // A part may not be the other part itself.
        let is_other = |other: &&Match| (other.start, other.end) != (one.start, one.end);
        others.get(next).filter(is_near).or_else(|| before.filter(is_near).filter(is_other))
    }
}

/// Returns true if a word looks like a rule but has no valid form: it would be a plain word that no text contains. A sign
/// between single letters stays a plain word if it is `*`, as in censored words.
pub fn is_malformed_rule(text: &str) -> bool {
    let is_plain = |part: &str| letter_count(part) < 2;
    let has_signs = text.contains(SIGNS)
        || FOREIGN_SIGNS.iter().any(|&sign| text.contains(sign) && (sign != '*' || !text.split(sign).any(is_plain)));
    has_signs && has_han(text) && (text.contains(FOREIGN_SIGNS) || parse(text).is_none())
}

/// Returns the parts of a rule; `None` for a plain word.
fn parse(text: &str) -> Option<(Vec<String>, Relation)> {
    let (parts, relation) = if let Some((first, rest)) = text.split_once('{') {
        let (reach, second) = rest.split_once('}')?;
        let reach = reach.parse().ok().filter(|reach| (1..=REACH).contains(reach))?;
        (vec![first, second], Relation::Followed(reach))
    } else if text.contains('~') {
        (text.split('~').collect(), Relation::Without)
    } else {
        (text.split('&').collect::<Vec<_>>(), Relation::Together)
    };
    let parts: Vec<String> = parts.iter().map(|part| part.trim().to_owned()).collect();
    let is_rule = (2..=MAX_PARTS).contains(&parts.len())
        && parts.iter().all(|part| letter_count(part) > 1 && !part.contains(SIGNS))
        && parts.iter().any(|part| has_han(part));
    is_rule.then_some((parts, relation))
}

fn letter_count(part: &str) -> usize {
    normalise(part).chars().filter(|letter| letter.is_alphanumeric()).count()
}

fn has_han(text: &str) -> bool {
    text.chars().any(|letter| ('\u{3400}'..'\u{FE00}').contains(&letter) || letter >= '\u{20000}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Engine;

    fn found(rule: &str, text: &str) -> Vec<String> {
        let word = Word { text: rule.into(), kind: "ads".into(), ..Word::default() };
        let matches = Engine::build(&[word], &[]).check(ContentType::Question, text);
        assert!(matches.iter().all(|found| found.word == rule && found.kind == "ads"), "{matches:?}");
        matches.into_iter().map(|found| found.text).collect()
    }

    #[test]
    fn parts_must_be_near_each_other() {
        assert_eq!(found("兼职&日结", "招兼职，工资日结"), ["兼职", "日结"]);
        assert_eq!(found("兼职&日结", "日★结的兼职"), ["日★结", "兼职"]);
        assert_eq!(found("兼职&日结", "只有兼职"), [""; 0]);
        assert_eq!(found("兼职&日结", &format!("兼职{}日结", "的话".repeat(11))), [""; 0]);
        assert_eq!(found("兼职&日结&加群", "兼职日结请加群"), ["兼职", "日结", "加群"]);
        assert_eq!(found("兼职&日结&加群", "兼职日结"), [""; 0]);
    }

    #[test]
    fn the_other_part_may_acquit() {
        assert_eq!(found("赌博~反对", "去赌博吧"), ["赌博"]);
        assert_eq!(found("赌博~反对", "我反对赌博"), [""; 0]);
        assert_eq!(found("赌博~反对~拒绝", "拒绝一切赌博"), [""; 0]);
        assert_eq!(found("赌博~反对", &format!("反对{}赌博", "他说".repeat(11))), ["赌博"]);
    }

    #[test]
    fn a_wildcard_stands_for_a_few_characters() {
        assert_eq!(found("代开{4}发票", "代开各种的发票"), ["代开", "发票"]);
        assert_eq!(found("代开{2}发票", "代开各种的发票"), [""; 0]);
        assert_eq!(found("代开{4}发票", "发票代开"), [""; 0]);
    }

    #[test]
    fn plain_words_stay_words() {
        for word in ["at&t", "R&D", "a~b", "100%", "c{1}d", "赌&博", "赌博{0}网", "赌博{x}网站"] {
            assert!(parse(word).is_none(), "{word}");
        }
        assert_eq!(found("q&a", "our Q&A page"), ["Q&A"]);
    }

    #[test]
    fn distinguishes_malformed_rules_from_plain_words() {
        for word in [
            "甲甲~",
            "&日结",
            "裸贷&qq~反对",
            "兼职&日结&加群&刷单&返利",
            "赌&博",
            "办理{0}证件",
            "办理{99}证",
            "办理{21}证件",
            "办理{2}证件{2}书",
            "借钱*马上",
            "兼职＆日结",
            "赌博{x}网站",
        ] {
            assert!(is_malformed_rule(word), "{word}");
        }
        for word in ["at&t", "R&D", "a~b", "c{1}d", "赌*博", "法*功", "兼职&日结", "赌博~反对", "代开{4}发票", "加我～"]
        {
            assert!(!is_malformed_rule(word), "{word}");
        }
    }

    #[test]
    fn parts_are_no_words_of_their_own() {
        let words = ["兼职&日结", "赌博"].map(|text| Word {
            text: text.into(),
            kind: "ads".into(),
            by_sound: true,
            ..Word::default()
        });
        let engine = Engine::build(&words, &["日结月结".to_owned()]);
        assert_eq!(engine.word_count(), 2);
        assert!(engine.check(ContentType::Question, "日结").is_empty());
        assert_eq!(engine.check(ContentType::Question, "赌博").len(), 1);
        assert!(engine.check(ContentType::Question, "兼职日结月结").is_empty());
    }

    #[test]
    fn time_grows_linearly_with_the_text() {
        let words = ["兼职&日结", "兼职~日结", "兼职{9}日结"];
        let words = words.map(|text| Word { text: text.into(), kind: "ads".into(), ..Word::default() });
        let engine = Engine::build(&words, &[]);
        let duration = |text: &str| {
            let begun = cpu_time::ThreadTime::now();
            std::hint::black_box(engine.check(ContentType::Question, text));
            begun.elapsed()
        };
        for unit in ["兼职", "日结", "兼职日结"] {
            let (short, long) = (duration(&unit.repeat(500)), duration(&unit.repeat(8_000)));
            assert!(long < short * 80, "{unit}: {short:?} then {long:?}");
        }
    }
}
