//! Rules that recognise a class: words in a certain order and distance.
//!
//! The files in `assets/risk` have the words. `NAME: a|b` names alternatives, `[class]` begins the rules of a class. A
//! rule is a line of items that must follow each other: alternatives separated by `|`, of which a name in capitals stands
//! for all of its own. `_` is a space, `*` at the end of a Latin word any ending. Between two items there may be a few
//! units, with `..` between them many, and with `&` the next item may stand anywhere. `!a|b` forbids words. Rules of
//! `[innocent]` make their part of the text invisible to all others.

use std::{collections::HashMap, ops::Range};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use super::{
    RiskClass,
    text::{Form, PlainText, pinyin_form, word_form},
};

/// The most units between two items.
const NEAR: u32 = 4;
const FAR: u32 = 14;

/// Ends a line in the loop over its words.
const END: &str = "";

/// The place of an item in a rule.
#[derive(Clone, Copy)]
enum Place {
    First,
    /// At most so many units after the item before it.
    After(u32),
    Anywhere,
    Nowhere,
}

/// The effect of a rule that matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Its part of the text is harmless.
    Innocent,
    Class(RiskClass),
    /// An act of self-harm that has begun.
    BegunSelfHarm,
}

impl Effect {
    /// Returns the name of the feature that tells that a rule matches.
    pub(super) fn feature(self) -> &'static str {
        match self {
            Self::Innocent => "[innocent]",
            Self::BegunSelfHarm => "[begun_self_harm]",
            Self::Class(RiskClass::Emergency) => "[emergency]",
            Self::Class(RiskClass::SelfHarm) => "[self_harm]",
            Self::Class(RiskClass::Minor) => "[minor]",
            Self::Class(RiskClass::Violence) => "[violence]",
            Self::Class(RiskClass::MissingPerson) => "[missing_person]",
            Self::Class(RiskClass::StoppingMedicine) => "[stopping_medicine]",
            Self::Class(RiskClass::Crime) => "[crime]",
            Self::Class(RiskClass::Gambling) => "[gambling]",
        }
    }
}

/// A set of alternatives, by number.
type Set = u16;

struct Rule {
    effect: Effect,
    first: Set,
    /// The next items, with the most units before each.
    next: Vec<(u32, Set)>,
    anywhere: Vec<Set>,
    forbidden: Vec<Set>,
}

/// An occurrence of one of a set's words.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Hit {
    set: Set,
    start: u32,
    end: u32,
}

/// An automaton with the sets of each of its words.
struct Words {
    automaton: Option<AhoCorasick>,
    sets: Vec<Vec<Set>>,
}

/// The rules of all classes and languages.
pub(super) struct Rules {
    letters: Words,
    pinyin: Words,
    /// Those of innocence first.
    all: Vec<Rule>,
}

impl Rules {
    /// Reads files and returns the rules, and the faults of lines that are left out.
    pub(super) fn read(files: &[&str]) -> (Self, Vec<String>) {
        let mut reader = Reader::default();
        for file in files {
            reader.named.clear();
            reader.read_file(file);
        }
        let pinyin = reader.words.iter().filter_map(|(word, sets)| Some((pinyin_form(word)?, sets.clone())));
        let pinyin: Vec<_> = pinyin.collect();
        let letters = reader.words.into_iter().map(|(word, sets)| (word_form(&word), sets)).collect();
        // Rules of innocence come first.
        reader.rules.sort_by_key(|rule| rule.effect != Effect::Innocent);
        (Self { letters: Words::new(letters), pinyin: Words::new(pinyin), all: reader.rules }, reader.faults)
    }

    /// Returns the effects of the rules that match.
    pub(super) fn effects(&self, text: &PlainText) -> Vec<Effect> {
        let mut hits = Vec::new();
        self.letters.find(&text.letters, |hit| hits.push(hit));
        self.pinyin.find(&text.pinyin, |hit| hits.extend(text.has_pinyin(&(hit.start..hit.end)).then_some(hit)));
        hits.sort_unstable();
        hits.dedup();
        let innocent = self.all.partition_point(|rule| rule.effect == Effect::Innocent);
        let (innocent, rules) = self.all.split_at(innocent);
        let harmless: Vec<Range<u32>> = innocent.iter().flat_map(|rule| rule.spans(&hits)).collect();
        let mut effects = Vec::new();
        if !harmless.is_empty() {
            effects.push(Effect::Innocent);
            let overlaps = |hit: &Hit| harmless.iter().any(|span| hit.start < span.end && span.start < hit.end);
            hits.retain(|hit| !overlaps(hit));
        }
        effects.extend(rules.iter().filter(|rule| rule.spans(&hits).next().is_some()).map(|rule| rule.effect));
        effects
    }
}

impl Rule {
    /// Returns the parts of the text, in units, from the first to the last item.
    fn spans(&self, hits: &[Hit]) -> impl Iterator<Item = Range<u32>> {
        let first = of_set(hits, self.first);
        let is_open = !first.is_empty()
            && self.anywhere.iter().all(|set| !of_set(hits, *set).is_empty())
            && self.forbidden.iter().all(|set| of_set(hits, *set).is_empty());
        let first = if is_open { first } else { &[] };
        first.iter().filter_map(|hit| end_of(hits, hit.end, &self.next).map(|end| hit.start..end))
    }
}

/// Returns the end of the last item after a place, if all follow.
fn end_of(hits: &[Hit], place: u32, next: &[(u32, Set)]) -> Option<u32> {
    let Some(((distance, set), rest)) = next.split_first() else { return Some(place) };
    let found = of_set(hits, *set);
    let from = found.partition_point(|hit| hit.start < place);
    found[from..].iter().take_while(|hit| hit.start <= place + distance).find_map(|hit| end_of(hits, hit.end, rest))
}

fn of_set(hits: &[Hit], set: Set) -> &[Hit] {
    let from = hits.partition_point(|hit| hit.set < set);
    let length = hits[from..].partition_point(|hit| hit.set == set);
    &hits[from..from + length]
}

impl Words {
    fn new(words: Vec<(String, Vec<Set>)>) -> Self {
        let mut by_form: HashMap<String, Vec<Set>> = HashMap::new();
        for (form, sets) in words {
            by_form.entry(form).or_default().extend(sets);
        }
        let (forms, sets): (Vec<_>, Vec<_>) = by_form.into_iter().unzip();
        let builder = |kind| AhoCorasick::builder().match_kind(MatchKind::Standard).kind(Some(kind)).build(&forms);
        Self { automaton: builder(AhoCorasickKind::ContiguousNFA).ok(), sets }
    }

    fn find(&self, form: &Form, mut each: impl FnMut(Hit)) {
        let Some(automaton) = self.automaton.as_ref().filter(|_| !form.text.is_empty()) else { return };
        for found in automaton.find_overlapping_iter(&form.text) {
            let units = form.units(found.range());
            for set in &self.sets[found.pattern().as_usize()] {
                each(Hit { set: *set, start: units.start, end: units.end });
            }
        }
    }
}

#[derive(Default)]
struct Reader {
    named: HashMap<String, Set>,
    /// Sets by their alternatives.
    sets: HashMap<String, Set>,
    count: Set,
    words: HashMap<String, Vec<Set>>,
    rules: Vec<Rule>,
    faults: Vec<String>,
}

impl Reader {
    fn read_file(&mut self, file: &str) {
        let mut effect = None;
        for (number, line) in file.lines().enumerate() {
            let line = line.trim();
            let read = if line.is_empty() || line.starts_with('#') {
                Ok(())
            } else if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                effect = effect_of(name);
                if effect.is_some() { Ok(()) } else { Err("is no class") }
            } else if let Some((name, words)) = line.split_once(": ").filter(|(name, _)| is_name(name)) {
                self.name(name, words)
            } else if let Some(effect) = effect {
                self.rule(effect, line)
            } else {
                Err("is a rule without a class")
            };
            if let Err(fault) = read {
                self.faults.push(format!("line {}: {line}: {fault}", number + 1));
            }
        }
    }

    fn name(&mut self, name: &str, words: &str) -> Result<(), &'static str> {
        let set = self.named.get(name).copied().unwrap_or_else(|| self.new_set());
        self.named.insert(name.to_owned(), set);
        self.fill(set, words)
    }

    fn rule(&mut self, effect: Effect, line: &str) -> Result<(), &'static str> {
        let mut rule = Rule { effect, first: 0, next: Vec::new(), anywhere: Vec::new(), forbidden: Vec::new() };
        let mut place = Place::First;
        let mut item = String::new();
        for word in line.split_whitespace().chain([END]) {
            let next = match word {
                "~" => Place::After(NEAR),
                ".." => Place::After(FAR),
                "+" => Place::After(0),
                "&" => Place::Anywhere,
                "!" => Place::Nowhere,
                END => Place::First,
                _ => {
                    item.push_str(if item.is_empty() { "" } else { " " });
                    item.push_str(word);
                    continue;
                }
            };
            let set = self.set(&std::mem::take(&mut item))?;
            match place {
                Place::First => rule.first = set,
                Place::After(distance) => rule.next.push((distance, set)),
                Place::Anywhere => rule.anywhere.push(set),
                Place::Nowhere => rule.forbidden.push(set),
            }
            place = next;
        }
        self.rules.push(rule);
        Ok(())
    }

    /// Returns the set of an item.
    fn set(&mut self, item: &str) -> Result<Set, &'static str> {
        if let Some(set) = self.named.get(item) {
            return Ok(*set);
        }
        if let Some(set) = self.sets.get(item) {
            return Ok(*set);
        }
        let set = self.new_set();
        self.fill(set, item)?;
        if !item.split('|').any(is_name) {
            self.sets.insert(item.to_owned(), set);
        }
        Ok(set)
    }

    fn new_set(&mut self) -> Set {
        self.count += 1;
        self.count
    }

    fn fill(&mut self, set: Set, words: &str) -> Result<(), &'static str> {
        for word in words.split('|').map(str::trim) {
            if is_name(word) {
                let other = *self.named.get(word).ok_or("has an unknown name")?;
                for sets in self.words.values_mut().filter(|sets| sets.contains(&other)) {
                    sets.push(set);
                }
                continue;
            }
            if word_form(word).is_empty() {
                return Err("has an empty word");
            }
            self.words.entry(word.to_owned()).or_default().push(set);
        }
        Ok(())
    }
}

fn is_name(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|character| character.is_ascii_uppercase() || character == '-')
}

fn effect_of(name: &str) -> Option<Effect> {
    match name {
        "innocent" => Some(Effect::Innocent),
        "begun_self_harm" => Some(Effect::BegunSelfHarm),
        _ => RiskClass::from_name(name).map(Effect::Class),
    }
}
