//! Rules that recognise a class: words in a certain order and distance.
//!
//! The files in `assets/risk` have the words. `NAME: a|b` names alternatives, `[class]` begins the rules of a class. A
//! rule is a line of items that must follow each other: alternatives separated by `|`, of which a name in capitals stands
//! for all of its own. `*` at the end of a Latin word is any ending. After `~` the next item follows within a few
//! units, with `..` between them many, with `+` none, and with `&` the next item may stand anywhere. `! a|b` forbids
//! words. Rules of `[innocent]` and `[harmless]` make their part of the text invisible to all others; a text of the latter
//! has no class unless a rule names one. The classifier weighs all that match: those of `[class]`, which few other texts have, those of `[class?]`, and those of `[context]`, such as a dream.

use std::{collections::HashMap, ops::Range};

use super::{
    RiskClass,
    text::{PlainText, key, pair_key, pinyin_of},
};
use crate::engine::FixedMap;

/// The most units between two items.
const NEAR: usize = 4;
const FAR: usize = 14;
/// Letters of a stem by which it is found.
const STEM: usize = 3;
/// The most sets of a word that is not common.
const UNCOMMON: usize = 128;
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
    /// Its part is harmless, and so is the text if no rule of a class matches.
    Harmless,
    /// The text may be about a dream, a story or an exam.
    Context,
    /// Few texts of other classes have it.
    Likely(RiskClass),
    /// Some texts of other classes have it, too.
    Possible(RiskClass),
    /// An act of self-harm that has begun, which is an emergency.
    BegunSelfHarm,
}

impl Effect {
    fn is_innocent(self) -> bool {
        matches!(self, Self::Innocent | Self::Harmless)
    }

    /// Returns true if the rule is one of a class.
    pub(super) fn names_class(self) -> bool {
        matches!(self, Self::Likely(_) | Self::Possible(_) | Self::BegunSelfHarm)
    }

    /// Returns the name of the feature that tells that a rule matches.
    pub(super) fn feature(self) -> String {
        match self {
            Self::Innocent | Self::Harmless => "[innocent]".to_owned(),
            Self::Context => "[context]".to_owned(),
            Self::BegunSelfHarm => "[begun_self_harm]".to_owned(),
            Self::Likely(class) => format!("[{}]", class.name()),
            Self::Possible(class) => format!("[{}?]", class.name()),
        }
    }
}

/// The part of a text that a rule matches.
pub(super) struct Match {
    pub(super) effect: Effect,
    pub(super) units: Range<usize>,
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

/// A part of a table.
#[derive(Clone, Copy)]
struct Part {
    start: u32,
    end: u32,
}

/// A word of the lists, or all words with one reading in pinyin.
struct Word {
    /// The sets that contain it, in order.
    sets: Part,
    /// A bit for each remainder of these sets, by which others are told fast.
    signature: u64,
    /// The rules of innocence of which it is a key word, and the others.
    innocent: Part,
    others: Part,
}

/// A rule that may match where its key word occurs.
#[derive(Clone, Copy)]
struct Candidate {
    rule: u32,
    /// The item with the next rarest words, if it has several.
    other: Option<Set>,
}

/// An occurrence of a word.
struct Hit {
    word: u32,
    start: usize,
    end: usize,
}

/// Words by their parts. The keys of its parts, combined one after the other, lead to the entry of a word.
#[derive(Default)]
struct Finder {
    entries: FixedMap<u64, Entry>,
    /// Words that end in a stem, by the first letters of the stem.
    stems: FixedMap<u64, Vec<Stem>>,
}

/// Some parts in sequence: a word, the beginning of longer ones, or both.
#[derive(Default)]
struct Entry {
    word: Option<u32>,
    /// True if they begin longer words.
    has_longer: bool,
}

/// A stem with the parts before it.
struct Stem {
    before: Vec<u64>,
    beginning: String,
    word: u32,
}

/// The rules of all classes and languages. Words are in tables without gaps, so that few pages are read for a text.
#[derive(Default)]
pub(super) struct Rules {
    letters: Finder,
    pinyin: Finder,
    words: Vec<Word>,
    sets: Vec<Set>,
    candidates: Vec<Candidate>,
    all: Vec<Rule>,
    /// True for the sets of common words.
    is_common: Vec<bool>,
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
        let (mut rules, mut faults) = (Self::default(), std::mem::take(&mut reader.faults));
        let mut words: Vec<Vec<Set>> = Vec::new();
        for (text, sets) in &reader.words {
            let plain = PlainText::of(text);
            if plain.keys.is_empty() {
                faults.push(format!("{text}: has no letters"));
            } else if text.ends_with('*') {
                rules.letters.add_stem(&plain, &mut words).extend(sets);
            } else {
                rules.letters.add(&plain.keys, &mut words).extend(sets);
                if let Some(reading) = pinyin_of(&plain) {
                    rules.pinyin.add(&reading, &mut words).extend(sets);
                }
            }
        }
        let by_key = reader.rules_by_key();
        rules.is_common = vec![false; by_key.len()];
        rules.all = reader.rules;
        for mut sets in words {
            sets.sort_unstable();
            sets.dedup();
            if sets.len() > UNCOMMON {
                for set in &sets {
                    rules.is_common[usize::from(*set)] = true;
                }
            }
            let candidates = sets.iter().flat_map(|set| by_key[usize::from(*set)].iter().copied());
            let is_innocent = |candidate: &Candidate| rules.all[candidate.rule as usize].effect.is_innocent();
            let (innocent, others) = candidates.partition(is_innocent);
            rules.words.push(Word {
                signature: sets.iter().fold(0, |bits, set| bits | 1 << (set % 64)),
                sets: Part::append(&mut rules.sets, sets),
                innocent: Part::append(&mut rules.candidates, innocent),
                others: Part::append(&mut rules.candidates, others),
            });
        }
        (rules, faults)
    }

    /// Returns the rules that match.
    pub(super) fn matches(&self, text: &PlainText) -> Vec<Match> {
        let mut hits = self.hits(text);
        let search = Search::new(&hits, self);
        let innocent = |hit| search.possible(self.word(hit).innocent).map(move |rule| (rule, hit));
        let harmless = hits.iter().flat_map(innocent);
        let harmless = harmless.filter_map(|(rule, hit)| Some((rule.effect, search.span(rule, hit)?)));
        let harmless: Vec<(Effect, Range<usize>)> = harmless.collect();
        let rest;
        let search = if harmless.is_empty() {
            search
        } else {
            let overlaps = |hit: &Hit| harmless.iter().any(|(_, span)| hit.start < span.end && span.start < hit.end);
            hits.retain(|hit| !overlaps(hit));
            rest = hits;
            Search::new(&rest, self)
        };
        let others = |hit| search.possible(self.word(hit).others).map(move |rule| (rule, hit));
        let others = search.hits.iter().flat_map(others);
        let others = others.filter_map(|(rule, hit)| Some((rule.effect, search.span(rule, hit)?)));
        harmless.iter().cloned().chain(others).map(|(effect, units)| Match { effect, units }).collect()
    }

    /// Returns the occurrences of words, by place.
    fn hits(&self, text: &PlainText) -> Vec<Hit> {
        let mut hits = Vec::with_capacity(2 * text.units.len());
        let units = |words: Range<usize>| text.words[words.start].units.start..text.words[words.end - 1].units.end;
        self.letters.find(&text.keys, |words, word| hits.push(Hit::new(units(words), word)));
        self.letters.find_stems(text, |words, word| hits.push(Hit::new(units(words), word)));
        self.pinyin.find(&text.pinyin, |found, word| {
            hits.extend(text.has_pinyin(&found).then_some(Hit::new(found, word)));
        });
        // Mostly in order already, which a stable sort uses.
        hits.sort_by_key(|hit| hit.start);
        hits
    }

    fn word(&self, hit: &Hit) -> &Word {
        &self.words[hit.word as usize]
    }

    /// Returns the sets that contain a word.
    fn sets(&self, hit: &Hit) -> &[Set] {
        self.word(hit).sets.of(&self.sets)
    }
}

/// The words of a text in which rules are looked for.
struct Search<'text> {
    rules: &'text Rules,
    hits: &'text [Hit],
    /// True for the sets of which a word occurs, and for those of common words, which are not worth a look.
    may_occur: Vec<bool>,
}

impl<'text> Search<'text> {
    fn new(hits: &'text [Hit], rules: &'text Rules) -> Self {
        let mut may_occur = rules.is_common.clone();
        for set in hits.iter().map(|hit| rules.sets(hit)).filter(|sets| sets.len() <= UNCOMMON).flatten() {
            may_occur[usize::from(*set)] = true;
        }
        Self { rules, hits, may_occur }
    }

    /// Returns the rules of which other words may occur, too.
    fn possible(&self, candidates: Part) -> impl Iterator<Item = &'text Rule> {
        let candidates = candidates.of(&self.rules.candidates).iter();
        let possible = candidates.filter(|one| one.other.is_none_or(|set| self.may_occur[usize::from(set)]));
        possible.map(|one| &self.rules.all[one.rule as usize])
    }

    /// Returns the part of the text that a rule matches around an occurrence of its key item.
    fn span(&self, rule: &Rule, key: &Hit) -> Option<Range<usize>> {
        let has = |set: &Set| self.hits.iter().any(|hit| self.is_in(hit, *set));
        let (before, after) = (&rule.items[..rule.key], &rule.items[rule.key + 1..]);
        let start = self.start(key.start, rule.items[rule.key].distance, before)?;
        let end = self.end(key.end, after)?;
        (rule.anywhere.iter().all(has) && !rule.forbidden.iter().any(has)).then_some(start..end)
    }

    /// Returns the start of the first of the items before a place.
    fn start(&self, place: usize, distance: usize, items: &[Item]) -> Option<usize> {
        let Some((item, items)) = items.split_last() else { return Some(place) };
        let until = self.hits.partition_point(|hit| hit.start < place);
        let near = self.hits[..until].iter().rev().take_while(|hit| hit.start + distance + LONGEST_WORD >= place);
        near.filter(|hit| hit.end <= place && hit.end + distance >= place && self.is_in(hit, item.set))
            .find_map(|hit| self.start(hit.start, item.distance, items))
    }

    /// Returns the end of the last of the items after a place.
    fn end(&self, place: usize, items: &[Item]) -> Option<usize> {
        let Some((item, items)) = items.split_first() else { return Some(place) };
        let from = self.hits.partition_point(|hit| hit.start < place);
        let near = self.hits[from..].iter().take_while(|hit| hit.start <= place + item.distance);
        near.filter(|hit| self.is_in(hit, item.set)).find_map(|hit| self.end(hit.end, items))
    }

    fn is_in(&self, hit: &Hit, set: Set) -> bool {
        let word = self.rules.word(hit);
        word.signature & (1 << (set % 64)) != 0 && word.sets.of(&self.rules.sets).binary_search(&set).is_ok()
    }
}

impl Part {
    /// Adds values to the end of a table.
    fn append<T>(table: &mut Vec<T>, values: Vec<T>) -> Self {
        let place = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        let start = place(table.len());
        table.extend(values);
        Self { start, end: place(table.len()) }
    }

    fn of<T>(self, table: &[T]) -> &[T] {
        &table[self.start as usize..self.end as usize]
    }
}

impl Hit {
    fn new(units: Range<usize>, word: u32) -> Self {
        Self { word, start: units.start, end: units.end }
    }
}

impl Finder {
    /// Returns the sets of a word, which is added to `words` if it is new.
    fn add<'words>(&mut self, keys: &[u64], words: &'words mut Vec<Vec<Set>>) -> &'words mut Vec<Set> {
        let mut number = keys.first().copied().unwrap_or_default();
        for key in keys.iter().skip(1) {
            self.entries.entry(number).or_default().has_longer = true;
            number = pair_key(number, *key);
        }
        let word = *self.entries.entry(number).or_default().word.get_or_insert_with(|| new_word(words));
        &mut words[word as usize]
    }

    fn add_stem<'words>(&mut self, plain: &PlainText, words: &'words mut Vec<Vec<Set>>) -> &'words mut Vec<Set> {
        let beginning = plain.words.last().map_or("", |word| plain.text_of(word)).to_owned();
        let before = plain.keys[..plain.keys.len() - 1].to_vec();
        let word = new_word(words);
        self.stems.entry(stem_key(&beginning)).or_default().push(Stem { before, beginning, word });
        &mut words[word as usize]
    }

    fn find(&self, keys: &[u64], mut each: impl FnMut(Range<usize>, u32)) {
        for (start, first) in keys.iter().enumerate() {
            let (mut number, mut end) = (*first, start + 1);
            while let Some(entry) = self.entries.get(&number) {
                if let Some(word) = entry.word {
                    each(start..end, word);
                }
                let Some(next) = keys.get(end).filter(|_| entry.has_longer) else { break };
                number = pair_key(number, *next);
                end += 1;
            }
        }
    }

    fn find_stems(&self, text: &PlainText, mut each: impl FnMut(Range<usize>, u32)) {
        for (place, word) in text.words.iter().enumerate() {
            let letters = text.text_of(word);
            if letters.len() < STEM || !letters.is_ascii() {
                continue;
            }
            for Stem { before, beginning, word } in self.stems.get(&stem_key(letters)).into_iter().flatten() {
                if letters.starts_with(beginning) && text.keys[..place].ends_with(before) {
                    each(place - before.len()..place + 1, *word);
                }
            }
        }
    }
}

/// Adds a word without sets and returns its number.
fn new_word(words: &mut Vec<Vec<Set>>) -> u32 {
    words.push(Vec::new());
    u32::try_from(words.len() - 1).unwrap_or(u32::MAX)
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
    /// The sets of each word.
    words: HashMap<String, Vec<Set>>,
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
        if let Some(sets) = self.words.get_mut(word) {
            sets.push(set);
        } else {
            self.words.insert(word.to_owned(), vec![set]);
        }
    }

    /// Chooses the key item of each rule and returns the rules by its set.
    fn rules_by_key(&mut self) -> Vec<Vec<Candidate>> {
        // Words of many sets, such as pronouns, and words of one letter are the commonest.
        let mut commonness = vec![0; usize::from(self.count) + 1];
        for (text, sets) in &self.words {
            let is_short = text.chars().count() == 1;
            for set in sets {
                commonness[usize::from(*set)] += sets.len() * if is_short { 20 } else { 1 };
            }
        }
        let mut by_key = vec![Vec::new(); commonness.len()];
        for (number, rule) in (0..).zip(&mut self.rules) {
            let mut items: Vec<usize> = (0..rule.items.len()).collect();
            items.sort_by_key(|item| commonness[usize::from(rule.items[*item].set)]);
            let Some((key, others)) = items.split_first() else { continue };
            rule.key = *key;
            let other = others.first().map(|item| rule.items[*item].set);
            by_key[usize::from(rule.items[*key].set)].push(Candidate { rule: number, other });
        }
        by_key
    }
}

fn is_name(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|character| character.is_ascii_uppercase() || character == '-')
}

fn effect_of(name: &str) -> Option<Effect> {
    match name {
        "innocent" => Some(Effect::Innocent),
        "harmless" => Some(Effect::Harmless),
        "context" => Some(Effect::Context),
        "begun_self_harm" => Some(Effect::BegunSelfHarm),
        _ => match name.strip_suffix('?') {
            Some(class) => RiskClass::from_name(class).map(Effect::Possible),
            None => RiskClass::from_name(name).map(Effect::Likely),
        },
    }
}
