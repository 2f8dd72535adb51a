//! A view of texts and words: an alphabet, an automaton over it, and the words that end in its states.
//!
//! The plain view compares folded letters. The leet view compares classes of letters with the digits and signs that
//! resemble them, and contains words of Latin letters only. The sound view compares syllables.

use std::ops::ControlFlow;

use super::{
    automaton::{Automaton, ROOT, ScanPosition},
    code_point_table::CodePointTable,
    folding::{Fold, folding},
    letters::{Letter, Run, runs},
    lexicon::Lexicon,
    readings::OtherReadings,
    similar_characters::similar_characters,
    split_characters::split_characters,
    symbols::{
        ALONE, EMOJI_LETTER, Equivalence, FILLER, FIRST_SYMBOL, LATIN, LEET, LOOKALIKE, PARTICLE, RESPELLED,
        SECOND_PART, SEVERAL, SKIPPED, SYMBOL, UNKNOWN, UNREPEATED, UNSEEN, alphabet, mark_lone_symbols, symbol_table,
    },
};

pub(super) struct Matcher {
    equivalence: Equivalence,
    /// For each code point, a symbol in the low bits and flags in the high bits.
    symbols: CodePointTable,
    automaton: Automaton,
    /// Words in the order of their symbols, so that the words of one key are adjacent. The last of each key has a flag.
    words: Vec<u32>,
    /// Number of listed words, without their alternative spellings.
    listed: usize,
}

/// The result of a quick scan.
#[derive(Default)]
pub(super) struct Scan {
    /// Positions at which a word may end.
    pub(super) ends: Vec<MatchEnd>,
    /// True if the text has Latin letters and digits or signs that resemble some.
    pub(super) may_be_leet: bool,
    /// True if recombining split characters may yield a word.
    pub(super) may_be_split: bool,
    /// Other readings of the text that may have words.
    pub(super) others: OtherReadings,
}

/// A letter at which a word may end.
#[derive(Clone, Copy)]
pub(super) struct MatchEnd {
    /// The byte offset of its character.
    character: u32,
    /// Index of the letter within its character; most characters have one.
    letter: u32,
    state: u32,
}

/// The flag of the last word of a key.
const LAST: u32 = 1 << 31;
/// Number of letters behind a filler that are read in advance.
const MAX_LOOKAHEAD: usize = 8;

/// A second scan position, over the text with two parts recombined.
#[derive(Default)]
struct Recombined {
    /// The position, until it agrees with the first one again.
    other: Option<ScanPosition>,
    /// True if there was a second position one letter ago.
    had_alternative: bool,
}

/// A letter in a quick scan, and the one before it.
struct LetterPair {
    /// The scan positions before and after the first letter.
    before: ScanPosition,
    cursor: ScanPosition,
    letters: (char, char),
    entries: (u32, u32),
}

impl Matcher {
    pub(super) fn build(equivalence: Equivalence, lexicon: &Lexicon) -> Self {
        let ids: Vec<u32> =
            (0..lexicon.len()).filter(|&id| equivalence.takes(lexicon, id)).map(|id| id as u32).collect();
        let alphabet = alphabet(equivalence, lexicon, &ids);
        // Without words no text is scanned.
        let mut symbols = if ids.is_empty() {
            CodePointTable::empty()
        } else {
            symbol_table(equivalence, &alphabet, lexicon.has_sounding())
        };
        let arena = KeyArena::collect(equivalence, lexicon, ids, &symbols);
        let words = arena.grouped(lexicon);
        let is_last =
            |index: usize| words.get(index + 1).is_none_or(|next| arena.key_of(*next) != arena.key_of(words[index]));
        let flagged: Vec<u32> = words
            .iter()
            .enumerate()
            .map(|(index, word)| if is_last(index) { word.id | LAST } else { word.id })
            .collect();
        let starts: Vec<u32> = (0..words.len())
            .filter(|&index| index.checked_sub(1).is_none_or(|before| flagged[before] & LAST != 0))
            .map(|index| index as u32)
            .collect();
        let keys: Vec<&[u32]> = starts.iter().map(|&start| arena.key_of(words[start as usize])).collect();
        mark_lone_symbols(&mut symbols, &keys);
        symbols.shrink_to_fit();
        Self {
            equivalence,
            automaton: Automaton::build(&keys, &starts),
            symbols,
            listed: words.iter().filter(|word| lexicon.is_listed(word.id as usize)).count(),
            words: flagged,
        }
    }

    pub(super) fn word_count(&self) -> usize {
        self.listed
    }

    /// Scans the text for positions where words may end. Allocates only if there are any.
    pub(super) fn scan(&self, text: &str) -> Scan {
        let mut seen = 0;
        let mut scan = Scan::default();
        let (mut cursor, mut before) = (ScanPosition::BEGUN, ScanPosition::BEGUN);
        let (mut previous, mut previous_entry) = ('\0', 0);
        let mut recombined = Recombined::default();
        // The position before a filler of two letters.
        let mut before_pair = ScanPosition::BEGUN;
        // The position before a longer filler, such as particles or a romanisation, and the place of its last letter.
        let (mut before_run, mut run_end, mut previous_place) = (ScanPosition::BEGUN, usize::MAX, 0);
        // Not zero while there is a second position.
        let mut is_recombined = 0;
        for (place, character) in text.char_indices() {
            let entry = self.symbols.get(character);
            seen |= entry;
            if entry & SYMBOL < FIRST_SYMBOL && entry & SYMBOL != UNKNOWN {
                if entry & SYMBOL == SEVERAL {
                    self.advance_over_several(&mut cursor, place as u32, character, &mut scan.ends);
                    // Too rare to be followed; a word is presumed.
                    scan.may_be_split |= recombined.other.is_some();
                }
                // Symbols and spaces may separate a filler from the letter after it.
                previous_entry &= match entry & (UNSEEN | FILLER) {
                    0 => 0,
                    FILLER => FILLER | LATIN | LEET,
                    _ => u32::MAX,
                };
                continue;
            }
            let start = cursor;
            let found;
            (cursor, found) = self.advanced(cursor, entry);
            if found {
                scan.ends.push(MatchEnd { character: place as u32, letter: 0, state: self.automaton.state_of(cursor) });
            }
            // One test for all that is rare.
            let joined = (previous_entry << 1) & entry & SECOND_PART | is_recombined;
            let filler = previous_entry & (FILLER | PARTICLE);
            if joined | filler | entry & LOOKALIKE != 0 {
                if joined != 0 {
                    let letters = (previous, character);
                    let pair = LetterPair { before, cursor, letters, entries: (previous_entry, entry) };
                    scan.may_be_split |= self.follow_parts(&pair, &mut recombined);
                    is_recombined = u32::from(recombined.other.is_some() || recombined.had_alternative);
                }
                if entry & LOOKALIKE != 0 && !scan.others.lookalikes {
                    scan.others.lookalikes = self.may_resemble(start, character, &text[place + character.len_utf8()..]);
                }
                if filler != 0 && entry & SYMBOL != UNKNOWN {
                    // A digit behind a Latin letter may be a tone; other Latin letters and digits side by side are words.
                    let is_inside_word =
                        entry & LEET != 0 || entry & LATIN != 0 && previous_entry & (LEET | PARTICLE) == 0;
                    if !is_inside_word {
                        let is_run = run_end == previous_place;
                        for position in [before, before_pair, if is_run { before_run } else { before_pair }] {
                            if position.last() != UNKNOWN {
                                self.follow_filler(position, previous_entry, &text[place..], &mut scan.others);
                            }
                        }
                    }
                }
                before_pair = if entry & previous_entry & FILLER != 0 { before } else { ScanPosition::BEGUN };
                if filler != 0 && entry & (FILLER | PARTICLE) != 0 {
                    before_run = if run_end == previous_place { before_run } else { before };
                    run_end = place;
                }
            }
            previous_place = place;
            (before, previous, previous_entry) = (start, character, entry);
        }
        scan.may_be_leet = seen & (LATIN | LEET) == LATIN | LEET;
        scan.others.emoji = seen & EMOJI_LETTER != 0;
        scan.others.spelled = seen & RESPELLED != 0;
        scan
    }

    /// Looks for words that continue behind a filler, the previous letter, from a position before it.
    #[inline(never)]
    fn follow_filler(&self, before: ScanPosition, filler: u32, rest: &str, others: &mut OtherReadings) {
        let is_particle = filler & PARTICLE != 0;
        let is_known = if is_particle { others.particles } else { others.fillers };
        if !is_known && self.may_end_in(before, rest) {
            others.particles |= is_particle;
            others.fillers |= !is_particle;
        }
    }

    /// Returns true if a word that began before this position may end in the next letters of a text, perhaps with more
    /// fillers.
    fn may_end_in(&self, mut position: ScanPosition, rest: &str) -> bool {
        for (index, character) in rest.chars().enumerate().take(MAX_LOOKAHEAD) {
            let entry = self.symbols.get(character);
            if entry & SYMBOL == SKIPPED {
                continue;
            }
            // A repetition changes no state, and another filler or similar character leads to more positions than one.
            if entry & SYMBOL == SEVERAL
                || entry & SYMBOL == position.last()
                || index > 0 && entry & (FILLER | PARTICLE) != 0
                || entry & LOOKALIKE != 0
            {
                return true;
            }
            let found;
            (position, found) = self.advanced(position, entry);
            if !position.has_state() {
                return false;
            }
            if found {
                return true;
            }
        }
        true
    }

    /// Returns true if a word may be in the text with a similar letter in place of this character.
    #[inline(never)]
    fn may_resemble(&self, before: ScanPosition, character: char, rest: &str) -> bool {
        let similar = similar_characters().letter_of(character).map(|letter| self.symbols.get(letter));
        similar.filter(|entry| entry & SYMBOL >= FIRST_SYMBOL).is_some_and(|entry| {
            let (position, found) = self.advanced(before, entry);
            found || !rest.is_empty() && self.may_end_in(position, rest)
        })
    }

    /// Advances by one letter with two parts recombined, and returns true if a word may end with it. Adjacent parts can
    /// be recombined in more ways than one scan can follow; then a word is presumed.
    #[inline(never)]
    fn follow_parts(&self, pair: &LetterPair, recombined: &mut Recombined) -> bool {
        let (previous_entry, entry) = pair.entries;
        let mut is_found = false;
        let mut follow = |from: ScanPosition, entry: u32| {
            let (cursor, found) = self.advanced_aside(from, entry);
            let agrees = cursor == pair.cursor;
            // A letter that repeats a recombined one changes no state, but a word may continue from both positions.
            is_found |= found || (agrees && cursor == from);
            Some(cursor).filter(|_| !agrees)
        };
        let had_alternative = std::mem::replace(&mut recombined.had_alternative, recombined.other.is_some());
        if let Some(other) = recombined.other {
            recombined.other = follow(other, entry);
        }
        if (previous_entry << 1) & entry & SECOND_PART != 0
            && let Some(whole) = self.whole_of(pair.letters.0, pair.letters.1)
        {
            let is_crowded = recombined.other.is_some() || had_alternative;
            recombined.other = follow(pair.before, whole);
            return is_found || is_crowded;
        }
        is_found
    }

    /// Groups the letters of a text for [`Matcher::candidates`].
    pub(super) fn runs(&self, letters: &[Letter]) -> Vec<Run> {
        runs(letters, |letter| {
            let entry = self.symbols.get(letter.value);
            let symbol = if entry & SYMBOL < FIRST_SYMBOL { UNKNOWN } else { entry & SYMBOL };
            (symbol, symbol != UNKNOWN && entry & UNREPEATED == 0)
        })
    }

    /// Calls `propose` for each word that may end with each run, with the index of the run and of the word, until it
    /// breaks.
    pub(super) fn candidates(
        &self,
        runs: &[Run],
        mut propose: impl FnMut(usize, usize) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut state = ROOT;
        for (index, run) in runs.iter().enumerate() {
            state = self.step(state, run);
            self.words_of(state).try_for_each(|word| propose(index, word))?;
        }
        ControlFlow::Continue(())
    }

    /// Returns the candidates at the ends that the quick scan found.
    pub(super) fn candidates_at(
        &self,
        ends: &[MatchEnd],
        letters: &[Letter],
        runs: &[Run],
        mut propose: impl FnMut(usize, usize) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let (mut done, mut first, mut run) = (None, 0, 0);
        // Ends, letters and runs are in the order of the text.
        for end in ends {
            first += letters[first..].iter().take_while(|letter| letter.start < end.character).count();
            let letter = first + end.letter as usize;
            run += runs[run..].iter().take_while(|run| run.last < letter).count();
            // All letters of a run end the same words.
            if done.replace(run) != Some(run) {
                self.words_of(end.state).try_for_each(|word| propose(run, word))?;
            }
        }
        ControlFlow::Continue(())
    }

    /// Returns all ends, found without the quick scan.
    #[cfg(test)]
    pub(super) fn ends(&self, letters: &[Letter]) -> Vec<MatchEnd> {
        let (mut state, mut ends) = (ROOT, Vec::new());
        for run in self.runs(letters) {
            state = self.step(state, &run);
            let character = letters[run.first].start;
            let letter = letters[..run.first].iter().rev().take_while(|letter| letter.start == character).count();
            ends.push(MatchEnd { character, letter: letter as u32, state });
        }
        ends
    }

    fn step(&self, state: u32, run: &Run) -> u32 {
        if run.symbol == UNKNOWN { ROOT } else { self.automaton.step(state, run.symbol) }
    }

    fn words_of(&self, state: u32) -> impl Iterator<Item = usize> {
        let words_of = |start: u32| {
            let words = &self.words[start as usize..];
            &words[..words.iter().position(|word| word & LAST != 0).map_or(0, |last| last + 1)]
        };
        self.automaton.matches(state).flat_map(words_of).map(|&word| (word & !LAST) as usize)
    }

    pub(super) fn is_leet(&self) -> bool {
        self.equivalence == Equivalence::Leet
    }

    pub(super) fn is_sound(&self) -> bool {
        self.equivalence == Equivalence::Sound
    }

    /// Returns the number of bytes on the heap.
    pub(super) fn size(&self) -> usize {
        self.symbols.size() + self.automaton.size() + self.words.len() * 4
    }

    /// Advances by one letter and returns true if a word ends with it.
    #[expect(clippy::inline_always, reason = "a call per character costs as much as its work")]
    #[inline(always)]
    fn advanced(&self, cursor: ScanPosition, entry: u32) -> (ScanPosition, bool) {
        let symbol = entry & SYMBOL;
        if symbol == UNKNOWN {
            return (ScanPosition::BEGUN, false);
        }
        let is_repetition = symbol == cursor.last() && entry & UNREPEATED == 0;
        let cursor = if is_repetition { cursor } else { self.automaton.advance(cursor, symbol) };
        (cursor, if cursor.has_state() { cursor.ends_key() } else { entry & ALONE != 0 })
    }

    /// Advances on the slow path, kept out of the loop over all characters.
    #[inline(never)]
    fn advanced_aside(&self, cursor: ScanPosition, entry: u32) -> (ScanPosition, bool) {
        self.advanced(cursor, entry)
    }

    #[inline(never)]
    fn advance_over_several(&self, cursor: &mut ScanPosition, place: u32, character: char, ends: &mut Vec<MatchEnd>) {
        let Fold::Letters(letters) = folding().fold(character) else { return };
        for (index, &letter) in letters.iter().enumerate() {
            let found;
            (*cursor, found) = self.advanced_aside(*cursor, self.symbols.get(letter));
            if found {
                ends.push(MatchEnd { character: place, letter: index as u32, state: self.automaton.state_of(*cursor) });
            }
        }
    }

    /// Returns the letter that two characters resemble together, if a word contains it.
    fn whole_of(&self, first: char, second: char) -> Option<u32> {
        let whole = split_characters().whole_of_characters(first, second)?;
        Some(self.symbols.get(whole)).filter(|entry| entry & SYMBOL >= FIRST_SYMBOL)
    }
}

/// A word with its sort key.
#[derive(Clone, Copy)]
struct Keyed {
    id: u32,
    first: u32,
    end: u32,
    /// The first four symbols, so that most comparisons read nothing else.
    prefix: u64,
}

/// The symbols of all words.
struct KeyArena {
    symbols: Vec<u32>,
    words: Vec<Keyed>,
}

impl KeyArena {
    fn collect(equivalence: Equivalence, lexicon: &Lexicon, ids: Vec<u32>, table: &CodePointTable) -> Self {
        let mut arena = Self { symbols: Vec::new(), words: Vec::with_capacity(ids.len()) };
        for id in ids {
            let first = arena.symbols.len();
            for &letter in lexicon.pattern(id as usize).letters.iter() {
                let entry = table.get(equivalence.representative(letter).unwrap_or(letter));
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

    /// Returns the words sorted by key and without duplicates.
    fn grouped(&self, lexicon: &Lexicon) -> Vec<Keyed> {
        let mut words = self.words.clone();
        words.sort_unstable_by(|left, right| {
            let keys = left.prefix.cmp(&right.prefix).then_with(|| self.key_of(*left).cmp(self.key_of(*right)));
            keys.then_with(|| lexicon.compare(left.id as usize, right.id as usize))
        });
        words.dedup_by(|later, kept| lexicon.is_duplicate(later.id as usize, kept.id as usize));
        words
    }
}
