//! An Aho-Corasick automaton: finds every key that ends at each position of a symbol stream.
//!
//! Not taken from a library, because the text is folded and thinned symbol by symbol while it is scanned, and because a
//! changed word list must be active at once. States are numbered breadth first, so that a state's children are adjacent
//! and building is one pass over the sorted keys. Most symbols of a text continue no key: a small filter that fits in
//! the cache shows if two symbols begin a key, without a state.

/// The state before any symbol.
pub(super) const ROOT: u32 = 0;

const NONE: u32 = u32::MAX;

/// Immutable after building.
pub(super) struct Automaton {
    /// For each symbol, the state after it at the start of a key, or the root if no key starts with it.
    initial: Vec<u32>,
    /// The states after the first two symbols of keys.
    pairs: Pairs,
    nodes: Vec<Node>,
    /// For each state, the symbol that leads to it.
    labels: Vec<u32>,
    outputs: Vec<Output>,
    /// Number of states at depth zero and one.
    shallow: u32,
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

#[derive(Clone, Copy)]
struct Node {
    /// The first child. The children end where those of the next state begin.
    first_child: u32,
    /// The state of the longest proper suffix that is a prefix of a key.
    fail: u32,
    /// The first key that ends here, as an index into the outputs.
    output: u32,
}

struct Output {
    key: u32,
    next: u32,
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
        1 << (symbol % 31)
    }
}

impl Automaton {
    /// Builds from keys that are sorted, distinct, non-empty, and free of the symbol 0.
    pub(super) fn build(keys: &[&[u32]]) -> Self {
        let mut builder = Builder::new(keys);
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
            state = self.nodes[state as usize].fail;
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

    /// Returns the indices of the keys that end in this state, longest first.
    pub(super) fn matches(&self, state: u32) -> impl Iterator<Item = usize> {
        let first = self.outputs.get(self.nodes[state as usize].output as usize);
        std::iter::successors(first, |output| self.outputs.get(output.next as usize)).map(|output| output.key as usize)
    }

    /// Returns the number of bytes on the heap.
    pub(super) fn size(&self) -> usize {
        (self.initial.len() + self.labels.len()) * 4
            + self.nodes.len() * size_of::<Node>()
            + self.outputs.len() * size_of::<Output>()
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
            state = self.nodes[state as usize].fail;
        }
        self.begin(cursor.last, symbol)
    }

    /// Returns true if this state holds only the last symbol.
    #[inline]
    fn is_shallow(&self, state: u32) -> bool {
        state < self.shallow
    }

    /// Returns true if a key ends in this state.
    #[inline]
    fn is_match(&self, state: u32) -> bool {
        self.nodes[state as usize].output != NONE
    }

    /// Stores the continuations of each pair of first symbols with the pair.
    fn look_ahead(&mut self) {
        let mut slots = std::mem::take(&mut self.pairs.slots);
        for pair in slots.iter_mut().filter(|pair| pair.state != ROOT) {
            let (_, onward) = self.children(pair.state);
            pair.lookahead = Lookahead::new(self.is_match(pair.state), onward.iter().copied());
        }
        self.pairs.slots = slots;
    }

    #[inline]
    fn child(&self, state: u32, symbol: u32) -> Option<u32> {
        if self.is_shallow(state) {
            return self.pairs.find(self.labels[state as usize], symbol).map(|pair| pair.state);
        }
        let (first, children) = self.children(state);
        let place = if children.len() < 8 {
            children.iter().position(|&label| label == symbol)
        } else {
            children.binary_search(&symbol).ok()
        };
        place.map(|place| first + place as u32)
    }

    /// Returns the first child of a state, and the symbols that lead to its children.
    #[inline]
    fn children(&self, state: u32) -> (u32, &[u32]) {
        let (first, end) = (self.nodes[state as usize].first_child, self.nodes[state as usize + 1].first_child);
        (first, &self.labels[first as usize..end as usize])
    }
}

/// The states after two symbols: a hash table with open addressing, preceded by a filter in which each pair has two
/// bits of one word.
struct Pairs {
    filter: Vec<u64>,
    /// Bits by which a hash is shifted to get the filter index.
    filter_shift: u32,
    slots: Vec<Pair>,
    slot_mask: usize,
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
        let slots = (count * 2).next_power_of_two();
        Self {
            filter: vec![0; words],
            filter_shift: 64 - words.trailing_zeros(),
            slots: vec![Pair::default(); slots],
            slot_mask: slots - 1,
        }
    }

    fn insert(&mut self, pair: Pair) {
        let hash = hash_of(pair.first, pair.second);
        self.filter[(hash >> self.filter_shift) as usize] |= filter_bits(hash);
        let mut slot = hash as usize & self.slot_mask;
        while self.slots[slot].state != ROOT {
            slot = (slot + 1) & self.slot_mask;
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
        self.find_in_table(first, second, hash as usize & self.slot_mask)
    }

    #[inline(never)]
    fn find_in_table(&self, first: u32, second: u32, mut slot: usize) -> Option<Pair> {
        loop {
            let pair = self.slots[slot];
            if pair.state == ROOT {
                return None;
            }
            if pair.first == first && pair.second == second {
                return Some(pair);
            }
            slot = (slot + 1) & self.slot_mask;
        }
    }

    fn size(&self) -> usize {
        self.filter.len() * 8 + self.slots.len() * size_of::<Pair>()
    }
}

/// Returns the hash of a pair. The highest bits index the filter, the lowest the table; the middle bits are mixed into
/// the lowest.
#[inline]
fn hash_of(first: u32, second: u32) -> u64 {
    let product = (u64::from(first) << 32 | u64::from(second)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    product ^ product >> 37
}

#[inline]
fn filter_bits(hash: u64) -> u64 {
    1 << (hash >> 24 & 63) | 1 << (hash >> 30 & 63)
}

/// The keys that pass through a state.
#[derive(Clone, Copy)]
struct Range {
    first: u32,
    end: u32,
}

struct Builder<'keys> {
    keys: &'keys [&'keys [u32]],
    automaton: Automaton,
    /// The key ranges of the newest states, whose children are not placed yet.
    level: Vec<Range>,
    depth: usize,
}

impl<'keys> Builder<'keys> {
    fn new(keys: &'keys [&'keys [u32]]) -> Self {
        let symbols = keys.iter().map(|key| key[0] as usize + 1).max().unwrap_or(0);
        let automaton = Automaton {
            initial: vec![ROOT; symbols],
            pairs: Pairs::new(0),
            nodes: vec![Node { first_child: 1, fail: ROOT, output: NONE }],
            labels: vec![0],
            outputs: Vec::with_capacity(keys.len()),
            shallow: 1,
        };
        Self { keys, automaton, level: vec![Range { first: 0, end: keys.len() as u32 }], depth: 0 }
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
            self.automaton.nodes[parent].first_child = self.automaton.nodes.len() as u32;
            self.append_children(range, &mut children);
        }
        self.level = children;
        self.depth += 1;
        self.make_findable(first_parent, first_child);
        self.link(first_parent, first_child);
    }

    fn append_children(&mut self, range: Range, children: &mut Vec<Range>) {
        let Range { mut first, end } = range;
        if self.depth > 0 && self.key(first).len() == self.depth {
            first += 1;
        }
        while first < end {
            let symbol = self.key(first)[self.depth];
            let same = (first..end).take_while(|&key| self.key(key)[self.depth] == symbol).count() as u32;
            self.automaton.nodes.push(Node { first_child: NONE, fail: ROOT, output: NONE });
            self.automaton.labels.push(symbol);
            children.push(Range { first, end: first + same });
            first += same;
        }
    }

    /// Makes the first two levels accessible by their symbols alone.
    fn make_findable(&mut self, first_parent: usize, first_child: usize) {
        let automaton = &mut self.automaton;
        match self.depth {
            1 => {
                for state in first_child..automaton.nodes.len() {
                    automaton.initial[automaton.labels[state] as usize] = state as u32;
                }
                automaton.shallow = automaton.nodes.len() as u32;
            }
            2 => {
                automaton.pairs = Pairs::new(automaton.nodes.len() - first_child);
                for (parent, state) in parents(&automaton.nodes, first_parent, first_child) {
                    let (first, second) = (automaton.labels[parent], automaton.labels[state]);
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
            let suffix = automaton.nodes[parent].fail;
            let fail = if self.depth == 1 { ROOT } else { automaton.step(suffix, automaton.labels[state]) };
            let inherited = automaton.nodes[fail as usize].output;
            let ends_here = self.keys[range.first as usize].len() == self.depth;
            let node = &mut automaton.nodes[state];
            node.fail = fail;
            node.output = inherited;
            if ends_here {
                node.output = automaton.outputs.len() as u32;
                automaton.outputs.push(Output { key: range.first, next: inherited });
            }
        }
    }

    fn finish(self) -> Automaton {
        let mut automaton = self.automaton;
        // Limits the children of the last state, which has none.
        let end = automaton.nodes.len() as u32;
        automaton.nodes.push(Node { first_child: end, fail: ROOT, output: NONE });
        automaton.nodes.shrink_to_fit();
        automaton.labels.shrink_to_fit();
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
        let next = if parent + 1 < first_child { nodes[parent + 1].first_child as usize } else { end };
        (nodes[parent].first_child as usize..next).map(move |state| (parent, state))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the pairs of (end, key) that the automaton finds in the text.
    fn found(keys: &[Vec<u32>], text: &[u32]) -> Vec<(usize, usize)> {
        let borrowed: Vec<&[u32]> = keys.iter().map(Vec::as_slice).collect();
        let automaton = Automaton::build(&borrowed);
        let (mut state, mut cursor) = (ROOT, ScanPosition::BEGUN);
        let mut found = Vec::new();
        for (index, &symbol) in text.iter().enumerate() {
            state = automaton.step(state, symbol);
            cursor = automaton.advance(cursor, symbol);
            assert_eq!(automaton.state_of(cursor), state);
            assert!(!cursor.has_state() || cursor.ends_key() == automaton.matches(state).next().is_some());
            found.extend(automaton.matches(state).map(|key| (index + 1, key)));
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
            keys in proptest::collection::btree_set(proptest::collection::vec(1_u32..3000, 1..4), 0..200),
            picks in proptest::collection::vec(any::<proptest::sample::Index>(), 1..20),
        ) {
            let keys: Vec<_> = keys.into_iter().collect();
            let text: Vec<_> = if keys.is_empty() { vec![5] } else { picks.iter().flat_map(|pick| pick.get(&keys).clone()).collect() };
            prop_assert_eq!(found(&keys, &text), found_naively(&keys, &text));
        }
    }
}
