//! One way to compare texts and words: an alphabet, an automaton over it, and the words that end in its states.
//!
//! The plain view compares folded letters. The leet view compares classes of letters with the digits and signs that
//! resemble them, and has words of Latin letters only. The sound view compares syllables.

use super::{
    automaton::{Automaton, ROOT, Walk},
    emoji_letters,
    folding::{Fold, LetterClass, class_of, folding},
    letters::{Letter, Run, leet_signs, runs},
    lexicon::Lexicon,
    lookalikes::leet_class,
    pages::PageTable,
    parts::parts,
    sound::{has_sound, sounds},
};

/// The equality of letters in a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Likeness {
    Plain,
    Leet,
    Sound,
}

pub(super) struct View {
    likeness: Likeness,
    /// For each code point a symbol in the low bits, and what the character is in the high ones.
    symbols: PageTable,
    automaton: Automaton,
    /// Words in the order of their symbols, so that the words of one key are adjacent.
    words: Vec<u32>,
    /// The start of each key's words, and the end of the last.
    keys: Vec<u32>,
    /// Number of listed words, without their alternative spellings.
    listed: usize,
}

/// The result of a quick scan.
#[derive(Default)]
pub(super) struct Glance {
    /// Positions where a word may end.
    pub(super) ends: Vec<End>,
    /// The text has Latin letters, and digits or signs that resemble some.
    pub(super) may_be_leet: bool,
    /// A word may appear once split characters are recombined.
    pub(super) may_be_split: bool,
    /// The text has emoji with letters, which may only separate the letters of a word.
    pub(super) may_be_twofold: bool,
}

const SYMBOL: u32 = (1 << 24) - 1;
/// A letter that no word has.
const UNKNOWN: u32 = 0;
/// Not a letter.
const SKIPPED: u32 = 1;
/// Several letters in one.
const SEVERAL: u32 = 2;
const FIRST_SYMBOL: u32 = 3;
/// A symbol of which a run counts for as many as it has.
const UNREPEATED: u32 = 1 << 24;
const LATIN: u32 = 1 << 25;
const LEET: u32 = 1 << 26;
/// The first and the second part of a letter that some word has.
const FIRST_PART: u32 = 1 << 27;
const SECOND_PART: u32 = 1 << 28;
/// A character that combines with the one before it, or is invisible.
const UNSEEN: u32 = 1 << 29;
/// A symbol that is a word by itself, as in 哈哈, whose repetition does not count.
const ALONE: u32 = 1 << 30;
/// A sign of an emoji with a letter in it.
const TWOFOLD: u32 = 1 << 31;

/// A letter with which some word may end.
#[derive(Clone, Copy)]
pub(super) struct End {
    /// Its character, as an offset in bytes.
    character: u32,
    /// Index of the letter within its character; most characters have one.
    letter: u32,
    state: u32,
}

/// The scan positions that a quick scan tracks.
struct Walks {
    walk: Walk,
    /// The walk as it was one letter ago.
    before: Walk,
    /// A second one over the text with two parts put together, until both agree again.
    other: Option<Walk>,
    /// There was one a letter ago.
    had_other: bool,
    previous: char,
    previous_entry: u32,
}

impl Likeness {
    /// Returns the representative of the letters equal to this one.
    fn representative(self, letter: char) -> Option<char> {
        match self {
            Self::Plain => Some(letter),
            Self::Leet => leet_class(letter),
            Self::Sound => Some(sounds().class(letter)),
        }
    }

    /// Returns true if repetition may be emphasis: not for digits, but for signs used as letters.
    fn repeats(self, letter: char) -> bool {
        self == Self::Leet || class_of(letter) != LetterClass::Digit
    }

    fn takes(self, lexicon: &Lexicon, id: usize) -> bool {
        let letters = lexicon.pattern(id).letters;
        match self {
            Self::Plain => true,
            Self::Leet => lexicon.is_listed(id) && letters.len() > 2 && letters.iter().all(char::is_ascii_lowercase),
            Self::Sound => lexicon.is_sounding(id) && has_sound(letters),
        }
    }
}

impl View {
    pub(super) fn build(likeness: Likeness, lexicon: &Lexicon) -> Self {
        let ids: Vec<u32> = (0..lexicon.len()).filter(|&id| likeness.takes(lexicon, id)).map(|id| id as u32).collect();
        let alphabet = alphabet(likeness, lexicon, &ids);
        // Without words no text is scanned.
        let mut symbols = if ids.is_empty() { PageTable::empty() } else { symbol_table(likeness, &alphabet) };
        let arena = KeyArena::collect(likeness, lexicon, ids, &symbols);
        let (words, keys) = arena.grouped(lexicon);
        let borrowed: Vec<&[u32]> =
            keys.iter().take(keys.len() - 1).map(|&first| arena.key_of(words[first as usize])).collect();
        mark_lone_symbols(&mut symbols, &borrowed);
        Self {
            likeness,
            automaton: Automaton::build(&borrowed),
            symbols,
            listed: words.iter().filter(|word| lexicon.is_listed(word.id as usize)).count(),
            words: words.iter().map(|word| word.id).collect(),
            keys,
        }
    }

    pub(super) fn word_count(&self) -> usize {
        self.listed
    }

    /// Scans the text for positions where words may end. Allocates only if there are any.
    pub(super) fn glance(&self, text: &str) -> Glance {
        let mut seen = 0;
        let mut glance = Glance::default();
        let (mut walk, mut before) = (Walk::BEGUN, Walk::BEGUN);
        let (mut previous, mut previous_entry) = ('\0', 0);
        let (mut other, mut had_other) = (None, false);
        for (place, character) in text.char_indices() {
            let entry = self.symbols.get(character);
            seen |= entry;
            if entry & SYMBOL < FIRST_SYMBOL && entry & SYMBOL != UNKNOWN {
                if entry & SYMBOL == SEVERAL {
                    self.advance_over_several(&mut walk, place as u32, character, &mut glance.ends);
                    // Too seldom to be followed.
                    glance.may_be_split |= other.is_some();
                }
                previous_entry &= if entry & UNSEEN == 0 { 0 } else { u32::MAX };
                continue;
            }
            let start = walk;
            let found;
            (walk, found) = self.advanced(walk, entry);
            if found {
                glance.ends.push(End { character: place as u32, letter: 0, state: self.automaton.state_of(walk) });
            }
            if other.is_some() || had_other || (previous_entry << 1) & entry & SECOND_PART != 0 {
                let mut walks = Walks { walk, before, other, had_other, previous, previous_entry };
                glance.may_be_split |= self.follow_parts(&mut walks, character, entry);
                (other, had_other) = (walks.other, other.is_some());
            }
            (before, previous, previous_entry) = (start, character, entry);
        }
        glance.may_be_leet = seen & (LATIN | LEET) == LATIN | LEET;
        glance.may_be_twofold = seen & TWOFOLD != 0;
        glance
    }

    /// Advances by one letter with two parts recombined, and returns true if a word may end with it. Adjacent parts
    /// combine in more ways than one scan can follow; a word is then presumed.
    #[inline(never)]
    fn follow_parts(&self, walks: &mut Walks, character: char, entry: u32) -> bool {
        let mut is_found = false;
        let mut follow = |from: Walk, entry: u32| {
            let (walk, found) = self.advanced_aside(from, entry);
            let agrees = walk == walks.walk;
            // A letter that repeats a recombined one changes no state, but a word may continue from both.
            is_found |= found || (agrees && walk == from);
            Some(walk).filter(|_| !agrees)
        };
        if let Some(other) = walks.other {
            walks.other = follow(other, entry);
        }
        if (walks.previous_entry << 1) & entry & SECOND_PART != 0
            && let Some(whole) = self.whole_of(walks.previous, character)
        {
            let is_crowded = walks.other.is_some() || walks.had_other;
            walks.other = follow(walks.before, whole);
            return is_found || is_crowded;
        }
        is_found
    }

    /// Groups the letters of a text for [`View::candidates`].
    pub(super) fn runs(&self, letters: &[Letter]) -> Vec<Run> {
        runs(letters, |letter| {
            let entry = self.symbols.get(letter.value);
            let symbol = if entry & SYMBOL < FIRST_SYMBOL { UNKNOWN } else { entry & SYMBOL };
            (symbol, symbol != UNKNOWN && entry & UNREPEATED == 0)
        })
    }

    /// Calls back with each word that may end with each run: the index of the run, then the word's.
    pub(super) fn candidates(&self, runs: &[Run], mut propose: impl FnMut(usize, usize)) {
        let mut state = ROOT;
        for (index, run) in runs.iter().enumerate() {
            state = self.step(state, run);
            self.words_of(state).for_each(|word| propose(index, word));
        }
    }

    /// Returns the candidates at ends that the quick scan found.
    pub(super) fn candidates_at(
        &self,
        ends: &[End],
        letters: &[Letter],
        runs: &[Run],
        mut propose: impl FnMut(usize, usize),
    ) {
        let mut done = None;
        for end in ends {
            let letter = letters.partition_point(|letter| letter.start < end.character) + end.letter as usize;
            let run = runs.partition_point(|run| run.last < letter);
            // Each letter of a run ends the same words.
            if done.replace(run) != Some(run) {
                self.words_of(end.state).for_each(|word| propose(run, word));
            }
        }
    }

    /// All ends, found without a glance.
    #[cfg(test)]
    pub(super) fn ends(&self, letters: &[Letter]) -> Vec<End> {
        let (mut state, mut ends) = (ROOT, Vec::new());
        for run in self.runs(letters) {
            state = self.step(state, &run);
            let character = letters[run.first].start;
            let letter = letters[..run.first].iter().rev().take_while(|letter| letter.start == character).count();
            ends.push(End { character, letter: letter as u32, state });
        }
        ends
    }

    fn step(&self, state: u32, run: &Run) -> u32 {
        if run.symbol == UNKNOWN { ROOT } else { self.automaton.step(state, run.symbol) }
    }

    fn words_of(&self, state: u32) -> impl Iterator<Item = usize> {
        let words_of = |key: usize| &self.words[self.keys[key] as usize..self.keys[key + 1] as usize];
        self.automaton.matches(state).flat_map(words_of).map(|&word| word as usize)
    }

    pub(super) fn is_leet(&self) -> bool {
        self.likeness == Likeness::Leet
    }

    pub(super) fn is_sound(&self) -> bool {
        self.likeness == Likeness::Sound
    }

    /// Bytes on the heap.
    pub(super) fn size(&self) -> usize {
        self.symbols.size() + self.automaton.size() + (self.words.len() + self.keys.len()) * 4
    }

    /// Advances by one letter and returns true if a word ends with it.
    #[expect(clippy::inline_always, reason = "a call for each character of every text costs as much as what it does")]
    #[inline(always)]
    fn advanced(&self, walk: Walk, entry: u32) -> (Walk, bool) {
        let symbol = entry & SYMBOL;
        if symbol == UNKNOWN {
            return (Walk::BEGUN, false);
        }
        let is_repetition = symbol == walk.last() && entry & UNREPEATED == 0;
        let walk = if is_repetition { walk } else { self.automaton.advance(walk, symbol) };
        (walk, if walk.has_state() { walk.ends_key() } else { entry & ALONE != 0 })
    }

    /// The slow path, kept out of the loop over all characters.
    #[inline(never)]
    fn advanced_aside(&self, walk: Walk, entry: u32) -> (Walk, bool) {
        self.advanced(walk, entry)
    }

    #[inline(never)]
    fn advance_over_several(&self, walk: &mut Walk, place: u32, character: char, ends: &mut Vec<End>) {
        let Fold::Letters(letters) = folding().fold(character) else { return };
        for (index, &letter) in letters.iter().enumerate() {
            let found;
            (*walk, found) = self.advanced_aside(*walk, self.symbols.get(letter));
            if found {
                ends.push(End { character: place, letter: index as u32, state: self.automaton.state_of(*walk) });
            }
        }
    }

    /// Returns the letter that two characters resemble together, if a word contains it.
    fn whole_of(&self, first: char, second: char) -> Option<u32> {
        let whole = parts().whole_of_characters(first, second)?;
        Some(self.symbols.get(whole)).filter(|entry| entry & SYMBOL >= FIRST_SYMBOL)
    }
}

/// The letters of the words, the most frequent first: frequent letters with small symbols make a dense automaton.
fn alphabet(likeness: Likeness, lexicon: &Lexicon, ids: &[u32]) -> Vec<char> {
    let mut counts = vec![0_u32; 0x11_0000];
    let mut letters = Vec::new();
    for &id in ids {
        for &letter in lexicon.pattern(id as usize).letters {
            let Some(representative) = likeness.representative(letter) else {
                continue;
            };
            let count = &mut counts[representative as usize];
            if *count == 0 {
                letters.push(representative);
            }
            *count += 1;
        }
    }
    // Equally frequent letters are sorted as well, so that the order of the list shows nowhere.
    letters.sort_unstable_by_key(|&letter| (std::cmp::Reverse(counts[letter as usize]), letter));
    letters
}

fn symbol_table(likeness: Likeness, alphabet: &[char]) -> PageTable {
    let mut table = folding().mapped(|fold| match fold {
        None => UNKNOWN,
        Some(Fold::Letter(letter)) => UNKNOWN | nature(letter),
        Some(Fold::Letters(letters)) => letters.iter().fold(SEVERAL, |entry, &letter| entry | nature(letter)),
        Some(Fold::Mark | Fold::Invisible) => SKIPPED | UNSEEN,
        Some(_) => SKIPPED,
    });
    for letter in ('a'..='z').chain('0'..='9') {
        table.set(letter, UNKNOWN | nature(letter));
    }
    for (sign, _) in leet_signs() {
        table.set(sign, LEET | if likeness == Likeness::Leet { UNKNOWN } else { SKIPPED });
    }
    for (symbol, &representative) in (FIRST_SYMBOL..).zip(alphabet) {
        for letter in equals(likeness, representative) {
            let repeats = if likeness.repeats(letter) { 0 } else { UNREPEATED };
            let entry = symbol | repeats | nature(letter);
            table.set(letter, entry);
            folding().sources_of(letter).for_each(|source| table.set(source, entry));
        }
    }
    if likeness == Likeness::Plain {
        mark_parts(&mut table);
        emoji_letters::signs().for_each(|sign| table.set(sign, table.get(sign) | TWOFOLD));
    }
    table
}

/// Marks the symbols that are keys by themselves.
fn mark_lone_symbols(table: &mut PageTable, keys: &[&[u32]]) {
    let alone: Vec<u32> = keys.iter().filter(|key| key.len() == 1).map(|key| key[0]).collect();
    if !alone.is_empty() {
        table.update(|entry| if alone.binary_search(&(entry & SYMBOL)).is_ok() { entry | ALONE } else { entry });
    }
}

/// Marks the parts of the letters that words have.
fn mark_parts(table: &mut PageTable) {
    let wanted: Vec<_> = parts().of_letters(|whole| table.get(whole) & SYMBOL >= FIRST_SYMBOL).collect();
    let mut mark = |letter: char, part: u32| {
        table.set(letter, table.get(letter) | part);
        for source in folding().sources_of(letter) {
            table.set(source, table.get(source) | part);
        }
    };
    for (first, second) in wanted {
        mark(first, FIRST_PART);
        mark(second, SECOND_PART);
    }
}

/// Returns the letters with this representative, and the signs if they are letters in this view.
fn equals(likeness: Likeness, representative: char) -> impl Iterator<Item = char> {
    let signs = (likeness == Likeness::Leet).then(|| leet_signs().map(|(sign, plain)| (sign, leet_class(plain))));
    let others = ('a'..='z').chain('0'..='9').map(|letter| (letter, leet_class(letter)));
    let others = (likeness == Likeness::Leet).then_some(others);
    let sounding = (likeness == Likeness::Sound).then(|| sounds().alike(representative));
    let sounding = sounding.into_iter().flatten().map(move |letter| (letter, Some(representative)));
    let alike = others.into_iter().flatten().chain(signs.into_iter().flatten()).chain(sounding);
    std::iter::once(representative).chain(
        alike
            .filter(move |&(letter, class)| letter != representative && class == Some(representative))
            .map(|(letter, _)| letter),
    )
}

fn nature(letter: char) -> u32 {
    match letter {
        'a'..='z' => LATIN,
        '0'..='9' | '!' | '@' | '$' | '|' | '+' | '€' | '！' | '＠' | '＄' | '﹩' | '｜' | '＋' => LEET,
        _ => 0,
    }
}

/// A word with what it is sorted by.
#[derive(Clone, Copy)]
struct Keyed {
    id: u32,
    first: u32,
    end: u32,
    /// The first four symbols, so that most comparisons touch nothing else.
    prefix: u64,
}

/// The symbols of all words.
struct KeyArena {
    symbols: Vec<u32>,
    words: Vec<Keyed>,
}

impl KeyArena {
    fn collect(likeness: Likeness, lexicon: &Lexicon, ids: Vec<u32>, table: &PageTable) -> Self {
        let mut arena = Self { symbols: Vec::new(), words: Vec::with_capacity(ids.len()) };
        for id in ids {
            let first = arena.symbols.len();
            for &letter in lexicon.pattern(id as usize).letters {
                let entry = table.get(likeness.representative(letter).unwrap_or(letter));
                let is_repetition = arena.symbols[first..].last() == Some(&(entry & SYMBOL));
                if !is_repetition || entry & UNREPEATED != 0 {
                    arena.symbols.push(entry & SYMBOL);
                }
            }
            let prefix = (0..4).fold(0, |prefix, index| {
                prefix << 16 | u64::from(arena.symbols.get(first + index).copied().unwrap_or(0).min(0xFFFF))
            });
            arena.words.push(Keyed { id, first: first as u32, end: arena.symbols.len() as u32, prefix });
        }
        arena
    }

    fn key_of(&self, word: Keyed) -> &[u32] {
        &self.symbols[word.first as usize..word.end as usize]
    }

    /// The words sorted by key and without duplicates, and where each key's words begin.
    fn grouped(&self, lexicon: &Lexicon) -> (Vec<Keyed>, Vec<u32>) {
        let mut words = self.words.clone();
        words.sort_unstable_by(|left, right| {
            let keys = left.prefix.cmp(&right.prefix).then_with(|| self.key_of(*left).cmp(self.key_of(*right)));
            keys.then_with(|| lexicon.compare(left.id as usize, right.id as usize))
        });
        words.dedup_by(|later, kept| lexicon.is_duplicate(later.id as usize, kept.id as usize));
        let mut keys: Vec<u32> = Vec::with_capacity(words.len() + 1);
        for index in 0..words.len() {
            if index == 0 || self.key_of(words[index]) != self.key_of(words[index - 1]) {
                keys.push(index as u32);
            }
        }
        keys.push(words.len() as u32);
        (words, keys)
    }
}
