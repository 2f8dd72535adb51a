//! An Aho-Corasick automaton: finds every key that ends at each position of a symbol stream.
//!
//! Not taken from a library, because the text is folded and thinned symbol by symbol while it is scanned, and because a
//! changed word list must be active at once. States are numbered breadth first, so that a state's children are adjacent
//! and building is one pass over the sorted keys. Most symbols of a text continue no key: a small filter that fits in
//! the cache shows if two symbols begin a key, without a state.

use std::ops::Range;

/// The state before any symbol.
pub(super) const ROOT: u32 = 0;

/// The highest bit of a number, which is a flag.
const FLAG: u32 = 1 << 31;
/// States per entry of the counts of ends.
const BLOCK: usize = 64;

/// Immutable after building.
pub(super) struct Automaton {
    /// For each symbol, the state after it at the start of a key, or the root if no key starts with it.
    initial: Vec<u32>,
    /// The states after the first two symbols of keys.
    pairs: Pairs,
    nodes: Vec<Node>,
    /// For each state, the symbol that leads to it.
    labels: Labels,
    /// The values of the keys, in the order of the states in which they end.
    values: Vec<u32>,
    /// For each block of states, the number of keys that end in earlier blocks, and those that end in its states.
    ends: Vec<BlockEnds>,
    /// Number of states at depth zero and one.
    shallow: u32,
}

/// The ends of keys in a block of states.
#[derive(Clone, Copy)]
struct BlockEnds {
    before: u32,
    /// A bit for each state of the block, in two halves.
    states: [u32; 2],
}

/// The position of a scan. Most symbols continue no key; then only the last symbol matters, and no state.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct ScanPosition {
    /// The state, if at least two symbols of some key have been read.
    state: u32,
    last: u32,
    lookahead: Lookahead,
}

/// A summary of a state, which avoids loading the state: true if a key ends there, and a bit set of the symbols that
/// continue it. Several symbols share a bit.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Lookahead(u32);

/// A state. Two flags take the place of a reference to the keys, because a list has millions of states.
#[derive(Clone, Copy)]
struct Node {
    /// The first child, and a flag for the end of a key. The children end where those of the next state begin.
    first_child: u32,
    /// The state of the longest proper suffix that is a prefix of a key, and a flag for a match: a key ends here or in a
    /// state that suffixes lead to.
    fail: u32,
}

impl Node {
    #[inline]
    fn first_child(self) -> usize {
        (self.first_child & !FLAG) as usize
    }

    #[inline]
    fn fail(self) -> u32 {
        self.fail & !FLAG
    }

    #[inline]
    fn ends_key(self) -> bool {
        self.first_child & FLAG != 0
    }

    #[inline]
    fn is_match(self) -> bool {
        self.fail & FLAG != 0
    }
}

/// The symbols that lead to the states, in two bytes each if all symbols fit.
enum Labels {
    Narrow(Vec<u16>),
    Wide(Vec<u32>),
}

impl Labels {
    /// Returns the label of the root alone.
    fn new(last_symbol: u32) -> Self {
        if u16::try_from(last_symbol).is_ok() { Self::Narrow(vec![0]) } else { Self::Wide(vec![0]) }
    }

    fn push(&mut self, symbol: u32) {
        match self {
            Self::Narrow(labels) => labels.push(symbol as u16),
            Self::Wide(labels) => labels.push(symbol),
        }
    }

    #[inline]
    fn get(&self, state: usize) -> u32 {
        match self {
            Self::Narrow(labels) => u32::from(labels[state]),
            Self::Wide(labels) => labels[state],
        }
    }

    /// Returns the state among these siblings that this symbol leads to.
    #[inline]
    fn find(&self, siblings: Range<usize>, symbol: u32) -> Option<u32> {
        let first = siblings.start;
        let place = match self {
            Self::Narrow(labels) => position(&labels[siblings], u16::try_from(symbol).ok()?),
            Self::Wide(labels) => position(&labels[siblings], symbol),
        };
        place.map(|place| (first + place) as u32)
    }

    fn shrink_to_fit(&mut self) {
        match self {
            Self::Narrow(labels) => labels.shrink_to_fit(),
            Self::Wide(labels) => labels.shrink_to_fit(),
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::Narrow(labels) => labels.len() * 2,
            Self::Wide(labels) => labels.len() * 4,
        }
    }
}

/// Returns the place of a label in a sorted slice.
#[inline]
fn position<T: Copy + Ord>(labels: &[T], label: T) -> Option<usize> {
    if labels.len() < 8 { labels.iter().position(|&other| other == label) } else { labels.binary_search(&label).ok() }
}

impl ScanPosition {
    pub(super) const BEGUN: Self = Self { state: ROOT, last: 0, lookahead: Lookahead(0) };

    /// Returns the last symbol, or 0.
    #[inline]
    pub(super) fn last(self) -> u32 {
        self.last
    }

    /// Returns true if a state holds more than the last symbol.
    #[inline]
    pub(super) fn has_state(self) -> bool {
        self.state != ROOT
    }

    /// Returns true if a key of two or more symbols, or the last symbol as a key, ends here. Meaningful only with a
    /// state.
    #[inline]
    pub(super) fn ends_key(self) -> bool {
        self.lookahead.0 & Lookahead::ENDS != 0
    }
}

impl Lookahead {
    const ENDS: u32 = 1 << 31;

    fn new(ends: bool, onward: impl Iterator<Item = u32>) -> Self {
        onward.fold(Self(if ends { Self::ENDS } else { 0 }), |lookahead, symbol| Self(lookahead.0 | Self::bit(symbol)))
    }

    /// Returns the summary of a state whose continuations only its children know.
    fn open(ends: bool) -> Self {
        Self(if ends { u32::MAX } else { !Self::ENDS })
    }

    #[inline]
    fn may_go_on(self, symbol: u32) -> bool {
        self.0 & Self::bit(symbol) != 0
    }

    #[inline]
    fn bit(symbol: u32) -> u32 {
        1 << (symbol & 31).min(30)
    }
}

impl Automaton {
    /// Builds from keys that are sorted, distinct, non-empty, and free of the symbol 0. Each has a value.
    pub(super) fn build(keys: &[&[u32]], values: &[u32]) -> Self {
        let mut builder = Builder::new(keys, values);
        while builder.has_states() {
            builder.append_level();
        }
        builder.finish()
    }

    /// Returns the state after one more symbol.
    #[inline]
    pub(super) fn step(&self, mut state: u32, symbol: u32) -> u32 {
        loop {
            if state == ROOT {
                return self.initial.get(symbol as usize).copied().unwrap_or(ROOT);
            }
            if let Some(child) = self.child(state, symbol) {
                return child;
            }
            state = self.nodes[state as usize].fail();
        }
    }

    /// Advances by one symbol. Does the same as [`Automaton::step`], without visiting states that lead nowhere.
    #[inline]
    pub(super) fn advance(&self, cursor: ScanPosition, symbol: u32) -> ScanPosition {
        if cursor.lookahead.may_go_on(symbol) {
            self.advance_from_state(cursor, symbol)
        } else {
            self.begin(cursor.last, symbol)
        }
    }

    /// Returns the state at a scan position.
    pub(super) fn state_of(&self, cursor: ScanPosition) -> u32 {
        if cursor.has_state() { cursor.state } else { self.step(ROOT, cursor.last) }
    }

    /// Returns the values of the keys that end in this state, longest first.
    pub(super) fn matches(&self, state: u32) -> impl Iterator<Item = u32> {
        let with_match = |state: u32| Some(state).filter(|&state| self.is_match(state));
        let states =
            std::iter::successors(with_match(state), move |&state| with_match(self.nodes[state as usize].fail()));
        states.filter(|&state| self.nodes[state as usize].ends_key()).map(|state| self.value_of(state as usize))
    }

    /// Returns the value of the key that ends in this state.
    fn value_of(&self, state: usize) -> u32 {
        let BlockEnds { before, states: [low, high] } = self.ends[state / BLOCK];
        let earlier = (u64::from(high) << 32 | u64::from(low)) & ((1 << (state % BLOCK)) - 1);
        self.values[(before + earlier.count_ones()) as usize]
    }

    /// Returns the number of bytes on the heap.
    pub(super) fn size(&self) -> usize {
        (self.initial.len() + self.values.len()) * 4
            + self.ends.len() * size_of::<BlockEnds>()
            + self.labels.size()
            + self.nodes.len() * size_of::<Node>()
            + self.pairs.size()
    }

    /// Returns the scan position after two symbols, independent of earlier ones.
    #[inline]
    fn begin(&self, first: u32, second: u32) -> ScanPosition {
        match self.pairs.find(first, second) {
            Some(pair) => ScanPosition { state: pair.state, last: second, lookahead: pair.lookahead },
            None => ScanPosition { state: ROOT, last: second, lookahead: Lookahead::default() },
        }
    }

    #[inline(never)]
    fn advance_from_state(&self, cursor: ScanPosition, symbol: u32) -> ScanPosition {
        let mut state = cursor.state;
        while !self.is_shallow(state) {
            if let Some(child) = self.child(state, symbol) {
                return ScanPosition { state: child, last: symbol, lookahead: Lookahead::open(self.is_match(child)) };
            }
            state = self.nodes[state as usize].fail();
        }
        self.begin(cursor.last, symbol)
    }

    /// Returns true if this state holds only the last symbol.
    #[inline]
    fn is_shallow(&self, state: u32) -> bool {
        state < self.shallow
    }

    /// Returns true if a key ends at this state.
    #[inline]
    fn is_match(&self, state: u32) -> bool {
        self.nodes[state as usize].is_match()
    }

    fn count_ends(&mut self) {
        let mut before = 0;
        let ends_of = |half: &[Node]| {
            half.iter().enumerate().fold(0, |ends, (index, node)| ends | u32::from(node.ends_key()) << index)
        };
        self.ends = self
            .nodes
            .chunks(BLOCK)
            .map(|block| {
                let (low, high) = block.split_at(block.len().min(BLOCK / 2));
                let block = BlockEnds { before, states: [ends_of(low), ends_of(high)] };
                before += block.states.iter().map(|half| half.count_ones()).sum::<u32>();
                block
            })
            .collect();
    }

    /// Stores the continuations of each pair of first symbols with the pair.
    fn look_ahead(&mut self) {
        let mut slots = std::mem::take(&mut self.pairs.slots);
        for pair in slots.iter_mut().filter(|pair| pair.state != ROOT) {
            let onward = self.children(pair.state).map(|child| self.labels.get(child));
            pair.lookahead = Lookahead::new(self.is_match(pair.state), onward);
        }
        self.pairs.slots = slots;
    }

    #[inline]
    fn child(&self, state: u32, symbol: u32) -> Option<u32> {
        if self.is_shallow(state) {
            return self.pairs.find(self.labels.get(state as usize), symbol).map(|pair| pair.state);
        }
        self.labels.find(self.children(state), symbol)
    }

    /// Returns the children of a state.
    #[inline]
    fn children(&self, state: u32) -> Range<usize> {
        self.nodes[state as usize].first_child()..self.nodes[state as usize + 1].first_child()
    }
}

/// The states after two symbols: a hash table with open addressing, preceded by a filter in which each pair has two
/// bits of one word.
struct Pairs {
    filter: Vec<u64>,
    /// Bits by which a hash is shifted to get the filter index.
    filter_shift: u32,
    slots: Vec<Pair>,
}

#[derive(Clone, Copy, Default)]
struct Pair {
    first: u32,
    second: u32,
    /// The root in an empty slot.
    state: u32,
    lookahead: Lookahead,
}

/// Filter bits per pair: two of a hundred pairs that begin no key pass it.
const SPARSENESS: usize = 16;

impl Pairs {
    fn new(count: usize) -> Self {
        let words = (count * SPARSENESS / 64).next_power_of_two().max(2);
        // Four fifths are in use: a list with sounds has hundreds of thousands of pairs.
        let slots = count + count / 4 + 1;
        Self { filter: vec![0; words], filter_shift: 64 - words.trailing_zeros(), slots: vec![Pair::default(); slots] }
    }

    fn insert(&mut self, pair: Pair) {
        let hash = hash_of(pair.first, pair.second);
        self.filter[(hash >> self.filter_shift) as usize] |= filter_bits(hash);
        let mut slot = self.first_slot(hash);
        while self.slots[slot].state != ROOT {
            slot = self.slot_after(slot);
        }
        self.slots[slot] = pair;
    }

    #[inline]
    fn find(&self, first: u32, second: u32) -> Option<Pair> {
        let hash = hash_of(first, second);
        let bits = filter_bits(hash);
        if self.filter[(hash >> self.filter_shift) as usize] & bits != bits {
            return None;
        }
        self.find_in_table(first, second, hash)
    }

    /// Returns the slot at which the search for a hash begins: its low bits, scaled to the number of slots.
    fn first_slot(&self, hash: u64) -> usize {
        (((hash & 0xFFFF_FFFF) * self.slots.len() as u64) >> 32) as usize
    }

    fn slot_after(&self, slot: usize) -> usize {
        if slot + 1 == self.slots.len() { 0 } else { slot + 1 }
    }

    #[inline(never)]
    fn find_in_table(&self, first: u32, second: u32, hash: u64) -> Option<Pair> {
        let mut slot = self.first_slot(hash);
        loop {
            let pair = self.slots[slot];
            if pair.state == ROOT {
                return None;
            }
            if pair.first == first && pair.second == second {
                return Some(pair);
            }
            slot = self.slot_after(slot);
        }
    }

    fn size(&self) -> usize {
        self.filter.len() * 8 + self.slots.len() * size_of::<Pair>()
    }
}

/// Returns the hash of a pair. The highest bits index the filter, the low half the table; the high bits are mixed into
/// the low half.
#[inline]
fn hash_of(first: u32, second: u32) -> u64 {
    let product = (u64::from(first) << 32 | u64::from(second)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    product ^ product >> 32
}

#[inline]
fn filter_bits(hash: u64) -> u64 {
    1 << (hash >> 24 & 63) | 1 << (hash >> 30 & 63)
}

/// The keys that pass through a state.
#[derive(Clone, Copy)]
struct KeyRange {
    first: u32,
    end: u32,
}

struct Builder<'keys> {
    keys: &'keys [&'keys [u32]],
    key_values: &'keys [u32],
    automaton: Automaton,
    /// The key ranges of the newest states, whose children are not placed yet.
    level: Vec<KeyRange>,
    depth: usize,
}

impl<'keys> Builder<'keys> {
    fn new(keys: &'keys [&'keys [u32]], key_values: &'keys [u32]) -> Self {
        let symbols = keys.iter().map(|key| key[0] as usize + 1).max().unwrap_or(0);
        let last_symbol = keys.iter().flat_map(|key| key.iter()).max().copied().unwrap_or(0);
        let automaton = Automaton {
            initial: vec![ROOT; symbols],
            pairs: Pairs::new(0),
            nodes: vec![Node { first_child: 1, fail: ROOT }],
            labels: Labels::new(last_symbol),
            values: Vec::with_capacity(keys.len()),
            ends: Vec::new(),
            shallow: 1,
        };
        Self { keys, key_values, automaton, level: vec![KeyRange { first: 0, end: keys.len() as u32 }], depth: 0 }
    }

    fn has_states(&self) -> bool {
        !self.level.is_empty()
    }

    /// Appends the children of all states of the last level.
    fn append_level(&mut self) {
        let first_parent = self.automaton.nodes.len() - self.level.len();
        let first_child = self.automaton.nodes.len();
        let mut children = Vec::with_capacity(self.level.len());
        for (index, range) in std::mem::take(&mut self.level).into_iter().enumerate() {
            let parent = first_parent + index;
            let next = self.automaton.nodes.len() as u32;
            let node = &mut self.automaton.nodes[parent];
            node.first_child = node.first_child & FLAG | next;
            self.append_children(range, &mut children);
        }
        self.level = children;
        self.depth += 1;
        self.make_findable(first_parent, first_child);
        self.link(first_parent, first_child);
    }

    fn append_children(&mut self, range: KeyRange, children: &mut Vec<KeyRange>) {
        let KeyRange { mut first, end } = range;
        if self.depth > 0 && self.key(first).len() == self.depth {
            first += 1;
        }
        while first < end {
            let symbol = self.key(first)[self.depth];
            let same = (first..end).take_while(|&key| self.key(key)[self.depth] == symbol).count() as u32;
            self.automaton.nodes.push(Node { first_child: 0, fail: ROOT });
            self.automaton.labels.push(symbol);
            children.push(KeyRange { first, end: first + same });
            first += same;
        }
    }

    /// Makes the first two levels accessible by their symbols alone.
    fn make_findable(&mut self, first_parent: usize, first_child: usize) {
        let automaton = &mut self.automaton;
        match self.depth {
            1 => {
                for state in first_child..automaton.nodes.len() {
                    automaton.initial[automaton.labels.get(state) as usize] = state as u32;
                }
                automaton.shallow = automaton.nodes.len() as u32;
            }
            2 => {
                automaton.pairs = Pairs::new(automaton.nodes.len() - first_child);
                for (parent, state) in parents(&automaton.nodes, first_parent, first_child) {
                    let (first, second) = (automaton.labels.get(parent), automaton.labels.get(state));
                    let lookahead = Lookahead::default();
                    automaton.pairs.insert(Pair { first, second, state: state as u32, lookahead });
                }
            }
            _ => {}
        }
    }

    /// Sets suffixes and outputs of the new states. The states of all earlier levels are complete.
    fn link(&mut self, first_parent: usize, first_child: usize) {
        let pairs: Vec<_> = parents(&self.automaton.nodes, first_parent, first_child).collect();
        for ((parent, state), range) in pairs.into_iter().zip(&self.level) {
            let automaton = &mut self.automaton;
            let suffix = automaton.nodes[parent].fail();
            let fail = if self.depth == 1 { ROOT } else { automaton.step(suffix, automaton.labels.get(state)) };
            let ends_here = self.keys[range.first as usize].len() == self.depth;
            let is_match = ends_here || automaton.is_match(fail);
            let node = &mut automaton.nodes[state];
            node.fail = if is_match { fail | FLAG } else { fail };
            if ends_here {
                node.first_child |= FLAG;
                automaton.values.push(self.key_values[range.first as usize]);
            }
        }
    }

    fn finish(self) -> Automaton {
        let mut automaton = self.automaton;
        // Limits the children of the last state, which has none.
        let end = automaton.nodes.len() as u32;
        automaton.nodes.push(Node { first_child: end, fail: ROOT });
        automaton.nodes.shrink_to_fit();
        automaton.labels.shrink_to_fit();
        automaton.count_ends();
        automaton.look_ahead();
        automaton
    }

    fn key(&self, index: u32) -> &'keys [u32] {
        self.keys[index as usize]
    }
}

/// Returns each new state with its parent, in order.
fn parents(nodes: &[Node], first_parent: usize, first_child: usize) -> impl Iterator<Item = (usize, usize)> {
    let end = nodes.len();
    (first_parent..first_child).flat_map(move |parent| {
        let next = if parent + 1 < first_child { nodes[parent + 1].first_child() } else { end };
        (nodes[parent].first_child()..next).map(move |state| (parent, state))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the pairs of (end, key) that the automaton finds in the text.
    fn found(keys: &[Vec<u32>], text: &[u32]) -> Vec<(usize, usize)> {
        let borrowed: Vec<&[u32]> = keys.iter().map(Vec::as_slice).collect();
        let values: Vec<u32> = (0..keys.len() as u32).collect();
        let automaton = Automaton::build(&borrowed, &values);
        let (mut state, mut cursor) = (ROOT, ScanPosition::BEGUN);
        let mut found = Vec::new();
        for (index, &symbol) in text.iter().enumerate() {
            state = automaton.step(state, symbol);
            cursor = automaton.advance(cursor, symbol);
            assert_eq!(automaton.state_of(cursor), state);
            assert!(!cursor.has_state() || cursor.ends_key() == automaton.matches(state).next().is_some());
            found.extend(automaton.matches(state).map(|key| (index + 1, key as usize)));
        }
        found.sort_unstable();
        found
    }

    fn found_naively(keys: &[Vec<u32>], text: &[u32]) -> Vec<(usize, usize)> {
        (1..=text.len())
            .flat_map(|end| {
                (0..keys.len()).filter(move |&key| text[..end].ends_with(&keys[key])).map(move |key| (end, key))
            })
            .collect()
    }

    #[test]
    fn an_empty_automaton_finds_nothing() {
        assert!(found(&[], &[1, 2, 3]).is_empty());
    }

    proptest! {
        #[test]
        fn agrees_with_naive_search(
            keys in proptest::collection::btree_set(proptest::collection::vec(1_u32..6, 1..6), 0..40),
            text in proptest::collection::vec(1_u32..7, 0..60),
        ) {
            let keys: Vec<_> = keys.into_iter().collect();
            prop_assert_eq!(found(&keys, &text), found_naively(&keys, &text));
        }

        #[test]
        fn agrees_with_naive_search_over_a_wide_alphabet(
            keys in proptest::collection::btree_set(proptest::collection::vec(1_u32..80_000, 1..4), 0..200),
            picks in proptest::collection::vec(any::<proptest::sample::Index>(), 1..20),
        ) {
            let keys: Vec<_> = keys.into_iter().collect();
            let text: Vec<_> = if keys.is_empty() { vec![5] } else { picks.iter().flat_map(|pick| pick.get(&keys).clone()).collect() };
            prop_assert_eq!(found(&keys, &text), found_naively(&keys, &text));
        }
    }
}
