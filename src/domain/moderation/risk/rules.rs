//! Rules that recognise a class: words in a certain order and distance.
//!
//! The files in `assets/risk` have the words. `NAME: a|b` names alternatives, `[class]` begins the rules of a class. A
//! rule is a line of items that must follow each other: alternatives separated by `|`, of which a name in capitals stands
//! for all of its own. `*` at the end of a Latin word is any ending. After `~` the next item follows within a few
//! units, with `..` between them many, with `+` none, and with `&` the next item may stand anywhere. `! a|b` forbids
//! words. Rules of `[innocent]` make their part of the text invisible to all others. Rules of `[class?]` are hints, and
//! beside words of `[context]`, such as those of a dream, all rules are.

use std::{collections::HashMap, ops::Range};

use super::{
    RiskClass,
    text::{PlainText, key, pair_key, pinyin_of},
};
use crate::domain::moderation::engine::FixedMap;

/// The most units between two items.
const NEAR: usize = 4;
const FAR: usize = 14;
/// Letters of a stem by which it is found.
const STEM: usize = 3;
/// The most units of a word.
const LONGEST_WORD: usize = 16;

/// Ends a line in the loop over its words.
const END: &str = "";

/// The place of an item in a rule.
#[derive(Clone, Copy)]
enum Place {
    /// At most so many units after the item before it, if there is one.
    After(usize),
    Anywhere,
    Nowhere,
}

/// The effect of a rule that matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Its part of the text is harmless.
    Innocent,
    /// The text may be about a dream, a story or an exam, so that no rule is certain.
    Context,
    /// The text is of this class.
    Certain(RiskClass),
    /// The text may be of this class, which the classifier decides.
    Hint(RiskClass),
    /// An act of self-harm that has begun, which is an emergency.
    BegunSelfHarm,
}

impl Effect {
    /// Returns the class of which the text certainly is.
    pub(super) fn certain_class(self) -> Option<RiskClass> {
        match self {
            Self::Certain(class) => Some(class),
            Self::BegunSelfHarm => Some(RiskClass::Emergency),
            Self::Innocent | Self::Context | Self::Hint(_) => None,
        }
    }

    /// Returns the name of the feature that tells that a rule matches.
    pub(super) fn feature(self) -> String {
        match self {
            Self::Innocent => "[innocent]".to_owned(),
            Self::Context => "[context]".to_owned(),
            Self::BegunSelfHarm => "[begun_self_harm]".to_owned(),
            Self::Certain(class) => format!("[{}]", class.name()),
            Self::Hint(class) => format!("[{}?]", class.name()),
        }
    }
}

/// A set of alternatives, by number.
type Set = u16;

struct Rule {
    effect: Effect,
    items: Vec<Item>,
    /// The place of the item with the rarest words, around which the others are looked for.
    key: usize,
    anywhere: Vec<Set>,
    forbidden: Vec<Set>,
}

/// An item, and the most units before it.
#[derive(Clone, Copy)]
struct Item {
    distance: usize,
    set: Set,
}

/// A word of the lists.
#[derive(Default)]
struct Word {
    /// The sets that contain it, in order.
    sets: Vec<Set>,
    /// The rules of which it is a key word.
    rules: Vec<usize>,
}

/// An occurrence of a word.
#[derive(Clone, Copy)]
struct Hit {
    word: usize,
    start: usize,
    end: usize,
}

/// The words of the lists by their beginning.
#[derive(Default)]
struct Finder {
    single: FixedMap<u64, Vec<usize>>,
    /// Words of two or more parts, by the first two.
    longer: FixedMap<u64, Vec<Longer>>,
    /// Words that end in a stem, by the first letters of the stem.
    stems: FixedMap<u64, Vec<Stem>>,
}

/// The parts of a word after the first two.
struct Longer {
    rest: Vec<u64>,
    word: usize,
}

/// A stem with the parts before it.
struct Stem {
    before: Vec<u64>,
    beginning: String,
    word: usize,
}

/// The rules of all classes and languages.
pub(super) struct Rules {
    letters: Finder,
    pinyin: Finder,
    words: Vec<Word>,
    all: Vec<Rule>,
}

impl Rules {
    /// Reads files and returns the rules, and the faults of lines that are left out.
    pub(super) fn read(files: &[&str]) -> (Self, Vec<String>) {
        let mut reader = Reader::default();
        for file in files {
            reader.named.clear();
            reader.sets.clear();
            reader.read_file(file);
        }
        let (texts, mut words): (Vec<_>, Vec<_>) = reader.words.into_iter().unzip();
        // Words of many sets, such as pronouns, and words of one letter are the commonest.
        let mut commonness = vec![0; usize::from(reader.count) + 1];
        for (text, word) in texts.iter().zip(&mut words) {
            word.sets.sort_unstable();
            word.sets.dedup();
            let is_short = text.chars().count() == 1;
            for set in &word.sets {
                commonness[usize::from(*set)] += word.sets.len() * if is_short { 20 } else { 1 };
            }
        }
        let mut by_key = vec![Vec::new(); commonness.len()];
        for (index, rule) in reader.rules.iter_mut().enumerate() {
            let rarest = (0..rule.items.len()).min_by_key(|item| commonness[usize::from(rule.items[*item].set)]);
            rule.key = rarest.unwrap_or_default();
            by_key[usize::from(rule.items[rule.key].set)].push(index);
        }
        for word in &mut words {
            word.rules = word.sets.iter().flat_map(|set| by_key[usize::from(*set)].iter().copied()).collect();
        }
        let (mut letters, mut pinyin) = (Finder::default(), Finder::default());
        for (index, text) in texts.iter().enumerate() {
            if !letters.add_text(text, index) {
                reader.faults.push(format!("{text}: has no letters"));
            }
            if !text.is_ascii() {
                pinyin.add(&pinyin_of(text).unwrap_or_default(), index);
            }
        }
        (Self { letters, pinyin, words, all: reader.rules }, reader.faults)
    }

    /// Returns the effects of the rules that match.
    pub(super) fn effects(&self, text: &PlainText) -> Vec<Effect> {
        let mut hits = self.hits(text);
        let mut effects = Vec::new();
        let harmless: Vec<Range<usize>> = self.innocent_spans(&hits).collect();
        if !harmless.is_empty() {
            effects.push(Effect::Innocent);
            let overlaps = |hit: &Hit| harmless.iter().any(|span| hit.start < span.end && span.start < hit.end);
            hits.retain(|hit| !overlaps(hit));
        }
        for hit in &hits {
            for index in &self.words[hit.word].rules {
                let rule = &self.all[*index];
                let is_open = rule.effect != Effect::Innocent && !effects.contains(&rule.effect);
                if is_open && self.span(rule, *hit, &hits).is_some() {
                    effects.push(rule.effect);
                }
            }
        }
        effects
    }

    /// Returns the occurrences of words, by place.
    fn hits(&self, text: &PlainText) -> Vec<Hit> {
        let mut hits = Vec::new();
        let keys: Vec<u64> = text.words.iter().map(|word| word.key).collect();
        let units = |words: Range<usize>| text.words[words.start].units.start..text.words[words.end - 1].units.end;
        self.letters.find(&keys, |words, word| hits.push(Hit::new(units(words), word)));
        self.letters.find_stems(text, &keys, |words, word| hits.push(Hit::new(units(words), word)));
        self.pinyin.find(&text.pinyin, |found, word| {
            let hit = Hit::new(found, word);
            hits.extend(text.has_pinyin(&(hit.start..hit.end)).then_some(hit));
        });
        hits.sort_unstable_by_key(|hit| hit.start);
        hits
    }

    /// Returns the parts of the text that rules of innocence match.
    fn innocent_spans<'all>(&'all self, hits: &'all [Hit]) -> impl Iterator<Item = Range<usize>> {
        let rules = move |hit: &'all Hit| self.words[hit.word].rules.iter().map(move |index| (hit, &self.all[*index]));
        let innocent = hits.iter().flat_map(rules).filter(|(_, rule)| rule.effect == Effect::Innocent);
        innocent.filter_map(|(hit, rule)| self.span(rule, *hit, hits))
    }

    /// Returns the part of the text that a rule matches around an occurrence of its key item.
    fn span(&self, rule: &Rule, key: Hit, hits: &[Hit]) -> Option<Range<usize>> {
        let has = |set: &Set| hits.iter().any(|hit| self.is_in(*hit, *set));
        let (before, after) = (&rule.items[..rule.key], &rule.items[rule.key + 1..]);
        let start = self.start(key.start, rule.items[rule.key].distance, before, hits)?;
        let end = self.end(key.end, after, hits)?;
        (rule.anywhere.iter().all(has) && !rule.forbidden.iter().any(has)).then_some(start..end)
    }

    /// Returns the start of the first of the items before a place.
    fn start(&self, place: usize, distance: usize, items: &[Item], hits: &[Hit]) -> Option<usize> {
        let Some((item, items)) = items.split_last() else { return Some(place) };
        let until = hits.partition_point(|hit| hit.start < place);
        let near = hits[..until].iter().rev().take_while(|hit| hit.start + distance + LONGEST_WORD >= place);
        near.filter(|hit| hit.end <= place && hit.end + distance >= place && self.is_in(**hit, item.set))
            .find_map(|hit| self.start(hit.start, item.distance, items, hits))
    }

    /// Returns the end of the last of the items after a place.
    fn end(&self, place: usize, items: &[Item], hits: &[Hit]) -> Option<usize> {
        let Some((item, items)) = items.split_first() else { return Some(place) };
        let from = hits.partition_point(|hit| hit.start < place);
        let near = hits[from..].iter().take_while(|hit| hit.start <= place + item.distance);
        near.filter(|hit| self.is_in(**hit, item.set)).find_map(|hit| self.end(hit.end, items, hits))
    }

    fn is_in(&self, hit: Hit, set: Set) -> bool {
        self.words[hit.word].sets.binary_search(&set).is_ok()
    }
}

impl Hit {
    fn new(units: Range<usize>, word: usize) -> Self {
        Self { word, start: units.start, end: units.end }
    }
}

impl Finder {
    /// Adds a word unless it has no letters; returns true if it has.
    fn add_text(&mut self, text: &str, word: usize) -> bool {
        let (text, is_stem) = text.strip_suffix('*').map_or((text, false), |stem| (stem, true));
        let plain = PlainText::of(text);
        let mut keys: Vec<u64> = plain.words.iter().map(|word| word.key).collect();
        match plain.words.last().filter(|_| is_stem) {
            Some(last) => {
                let stem = plain.text_of(last).to_owned();
                keys.pop();
                self.stems.entry(stem_key(&stem)).or_default().push(Stem { before: keys, beginning: stem, word });
            }
            None => self.add(&keys, word),
        }
        !plain.words.is_empty()
    }

    fn add(&mut self, keys: &[u64], word: usize) {
        match keys {
            [] => {}
            [single] => self.single.entry(*single).or_default().push(word),
            [first, second, rest @ ..] => {
                let longer = Longer { rest: rest.to_vec(), word };
                self.longer.entry(pair_key(*first, *second)).or_default().push(longer);
            }
        }
    }

    fn find(&self, keys: &[u64], mut each: impl FnMut(Range<usize>, usize)) {
        for (place, key) in keys.iter().enumerate() {
            for word in self.single.get(key).into_iter().flatten() {
                each(place..place + 1, *word);
            }
            let Some(second) = keys.get(place + 1) else { continue };
            for Longer { rest, word } in self.longer.get(&pair_key(*key, *second)).into_iter().flatten() {
                if keys[place + 2..].starts_with(rest) {
                    each(place..place + 2 + rest.len(), *word);
                }
            }
        }
    }

    fn find_stems(&self, text: &PlainText, keys: &[u64], mut each: impl FnMut(Range<usize>, usize)) {
        for (place, word) in text.words.iter().enumerate() {
            let letters = text.text_of(word);
            if letters.len() < STEM || !letters.is_ascii() {
                continue;
            }
            for Stem { before, beginning, word } in self.stems.get(&stem_key(letters)).into_iter().flatten() {
                if letters.starts_with(beginning) && keys[..place].ends_with(before) {
                    each(place - before.len()..place + 1, *word);
                }
            }
        }
    }
}

fn stem_key(word: &str) -> u64 {
    key(word.get(..STEM).unwrap_or(word))
}

#[derive(Default)]
struct Reader<'file> {
    /// The alternatives of each name of the file.
    named: HashMap<&'file str, Vec<&'file str>>,
    /// Sets by their alternatives.
    sets: HashMap<String, Set>,
    count: Set,
    words: HashMap<String, Word>,
    rules: Vec<Rule>,
    faults: Vec<String>,
}

impl<'file> Reader<'file> {
    fn read_file(&mut self, file: &'file str) {
        let mut effect = None;
        for (number, line) in file.lines().enumerate() {
            let line = line.trim();
            let read = if line.is_empty() || line.starts_with('#') {
                Ok(())
            } else if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                effect = effect_of(name);
                if effect.is_some() { Ok(()) } else { Err("is no class") }
            } else if let Some((name, words)) = line.split_once(": ").filter(|(name, _)| is_name(name)) {
                self.named.entry(name).or_default().push(words);
                Ok(())
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

    fn rule(&mut self, effect: Effect, line: &str) -> Result<(), &'static str> {
        let mut rule = Rule { effect, items: Vec::new(), key: 0, anywhere: Vec::new(), forbidden: Vec::new() };
        let mut place = Place::After(0);
        let mut item = String::new();
        for word in line.split_whitespace().chain([END]) {
            let next = match word {
                "~" => Place::After(NEAR),
                ".." => Place::After(FAR),
                "+" | END => Place::After(0),
                "&" => Place::Anywhere,
                "!" => Place::Nowhere,
                _ => {
                    item.push_str(if item.is_empty() { "" } else { " " });
                    item.push_str(word);
                    continue;
                }
            };
            let set = self.set(&std::mem::take(&mut item))?;
            match place {
                Place::After(distance) => rule.items.push(Item { distance, set }),
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
        if let Some(set) = self.sets.get(item) {
            return Ok(*set);
        }
        self.count += 1;
        let set = self.count;
        self.sets.insert(item.to_owned(), set);
        for word in item.split('|').map(str::trim) {
            if !is_name(word) {
                self.add(word, set);
                continue;
            }
            for words in self.named.get(word).ok_or("has an unknown name")?.clone() {
                words.split('|').for_each(|word| self.add(word.trim(), set));
            }
        }
        Ok(set)
    }

    fn add(&mut self, word: &str, set: Set) {
        if let Some(known) = self.words.get_mut(word) {
            known.sets.push(set);
        } else {
            self.words.insert(word.to_owned(), Word { sets: vec![set], ..Word::default() });
        }
    }
}

fn is_name(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|character| character.is_ascii_uppercase() || character == '-')
}

fn effect_of(name: &str) -> Option<Effect> {
    match name {
        "innocent" => Some(Effect::Innocent),
        "context" => Some(Effect::Context),
        "begun_self_harm" => Some(Effect::BegunSelfHarm),
        _ => match name.strip_suffix('?') {
            Some(class) => RiskClass::from_name(class).map(Effect::Hint),
            None => RiskClass::from_name(name).map(Effect::Certain),
        },
    }
}
