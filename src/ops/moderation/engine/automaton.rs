//! Finds which of many symbol strings end at each place of a symbol stream: Aho and Corasick's automaton in a double
//! array.
//!
//! Written here, and not taken from a library, because the text is folded and thinned symbol by symbol on its way in,
//! and because a changed word list must be in force at once: building from sorted keys takes a third of the time that
//! the libraries need.

use std::collections::VecDeque;

/// The state before any symbol.
pub(super) const ROOT: u32 = 0;

const FREE: u32 = u32::MAX;
const NOTHING: u32 = u32::MAX;

/// Immutable after building.
pub(super) struct Automaton {
    nodes: Vec<Node>,
    outputs: Vec<Output>,
}

#[derive(Clone, Copy)]
struct Node {
    /// Where the children begin: the child by symbol `s` has the index `base + s`.
    base: u32,
    /// The parent, which proves that the child belongs to it.
    check: u32,
    /// The state of the longest proper suffix that is still the beginning of a key.
    fail: u32,
    /// The first key that ends here, as an index into the outputs.
    output: u32,
}

struct Output {
    key: u32,
    next: u32,
}

impl Automaton {
    /// Builds from keys that are sorted, distinct, not empty, and free of the symbol 0.
    pub(super) fn build(keys: &[&[u32]]) -> Self {
        let mut builder = Builder::new();
        let mut queue = VecDeque::from([Pending { state: ROOT, first: 0, end: keys.len(), depth: 0 }]);
        while let Some(pending) = queue.pop_front() {
            builder.place_children(keys, &pending, &mut queue);
        }
        builder.nodes.shrink_to_fit();
        Self { nodes: builder.nodes, outputs: builder.outputs }
    }

    /// The state after one more symbol.
    #[inline]
    pub(super) fn step(&self, mut state: u32, symbol: u32) -> u32 {
        loop {
            let node = &self.nodes[state as usize];
            let target = node.base.wrapping_add(symbol);
            if self.nodes.get(target as usize).is_some_and(|child| child.check == state) {
                return target;
            }
            if state == ROOT {
                return ROOT;
            }
            state = node.fail;
        }
    }

    /// Whether any key ends in this state.
    #[inline]
    pub(super) fn is_match(&self, state: u32) -> bool {
        self.nodes[state as usize].output != NOTHING
    }

    /// The indices of the keys that end in this state, the longest first.
    pub(super) fn matches(&self, state: u32) -> impl Iterator<Item = usize> {
        let first = self.outputs.get(self.nodes[state as usize].output as usize);
        std::iter::successors(first, |output| self.outputs.get(output.next as usize)).map(|output| output.key as usize)
    }

    /// Bytes on the heap.
    pub(super) fn size(&self) -> usize {
        self.nodes.len() * size_of::<Node>() + self.outputs.len() * size_of::<Output>()
    }
}

/// A placed state whose children are not: the keys `first..end` pass through it.
struct Pending {
    state: u32,
    first: usize,
    end: usize,
    depth: usize,
}

struct Builder {
    nodes: Vec<Node>,
    outputs: Vec<Output>,
    /// Neighbours in the ring of free slots; slot 0, the root, is its anchor.
    next_free: Vec<u32>,
    previous_free: Vec<u32>,
    /// The symbols and key ranges of the children in hand, kept to spare an allocation a state.
    children: Vec<(u32, usize)>,
}

/// How many free slots are tried for a state with several children before the array is lengthened instead.
const TRIES: usize = 48;

impl Builder {
    fn new() -> Self {
        Self {
            nodes: vec![Node { base: 0, check: FREE - 1, fail: ROOT, output: NOTHING }],
            outputs: Vec::new(),
            next_free: vec![0],
            previous_free: vec![0],
            children: Vec::new(),
        }
    }

    fn place_children(&mut self, keys: &[&[u32]], parent: &Pending, queue: &mut VecDeque<Pending>) {
        let mut first = parent.first;
        if keys.get(first).is_some_and(|key| key.len() == parent.depth) {
            first += 1;
        }
        self.collect_children(keys, first, parent);
        if self.children.is_empty() {
            return;
        }
        let base = self.find_base();
        self.nodes[parent.state as usize].base = base;
        for index in 0..self.children.len() {
            let (symbol, start) = self.children[index];
            let end = self.children.get(index + 1).map_or(parent.end, |&(_, next)| next);
            let state = base.wrapping_add(symbol);
            self.occupy(state, parent.state);
            let ends_here = keys[start].len() == parent.depth + 1;
            self.link(state, parent.state, symbol, ends_here.then_some(start as u32));
            queue.push_back(Pending { state, first: start, end, depth: parent.depth + 1 });
        }
    }

    fn collect_children(&mut self, keys: &[&[u32]], first: usize, parent: &Pending) {
        self.children.clear();
        let mut last = None;
        for (index, key) in keys.iter().enumerate().take(parent.end).skip(first) {
            let symbol = key[parent.depth];
            if last != Some(symbol) {
                self.children.push((symbol, index));
                last = Some(symbol);
            }
        }
    }

    /// Shallower states are complete when a state is linked, since states are placed breadth first.
    fn link(&mut self, state: u32, parent: u32, symbol: u32, key: Option<u32>) {
        let fail = if parent == ROOT { ROOT } else { self.longest_suffix(parent, symbol) };
        let inherited = self.nodes[fail as usize].output;
        let output = key.map_or(inherited, |key| {
            self.outputs.push(Output { key, next: inherited });
            (self.outputs.len() - 1) as u32
        });
        let node = &mut self.nodes[state as usize];
        node.fail = fail;
        node.output = output;
    }

    fn longest_suffix(&self, parent: u32, symbol: u32) -> u32 {
        let mut state = self.nodes[parent as usize].fail;
        loop {
            let node = self.nodes[state as usize];
            let target = node.base.wrapping_add(symbol);
            if self.nodes.get(target as usize).is_some_and(|child| child.check == state) {
                return target;
            }
            if state == ROOT {
                return ROOT;
            }
            state = node.fail;
        }
    }

    fn find_base(&self) -> u32 {
        let lowest = self.children[0].0;
        let mut slot = self.next_free[0];
        for _ in 0..TRIES {
            if slot == 0 {
                break;
            }
            let base = slot.wrapping_sub(lowest);
            if self.children[1..].iter().all(|&(symbol, _)| self.is_free(base.wrapping_add(symbol))) {
                return base;
            }
            slot = self.next_free[slot as usize];
        }
        (self.nodes.len() as u32).wrapping_sub(lowest)
    }

    fn is_free(&self, slot: u32) -> bool {
        self.nodes.get(slot as usize).is_none_or(|node| node.check == FREE)
    }

    fn occupy(&mut self, slot: u32, parent: u32) {
        while self.nodes.len() <= slot as usize {
            self.append_free_slot();
        }
        let (previous, next) = (self.previous_free[slot as usize], self.next_free[slot as usize]);
        self.next_free[previous as usize] = next;
        self.previous_free[next as usize] = previous;
        self.nodes[slot as usize].check = parent;
    }

    fn append_free_slot(&mut self) {
        let slot = self.nodes.len() as u32;
        let last = self.previous_free[0];
        self.nodes.push(Node { base: 0, check: FREE, fail: ROOT, output: NOTHING });
        self.next_free.push(0);
        self.previous_free.push(last);
        self.next_free[last as usize] = slot;
        self.previous_free[0] = slot;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Pairs of (end, key) found in the text, by the automaton.
    fn found(keys: &[Vec<u32>], text: &[u32]) -> Vec<(usize, usize)> {
        let borrowed: Vec<&[u32]> = keys.iter().map(Vec::as_slice).collect();
        let automaton = Automaton::build(&borrowed);
        let mut state = ROOT;
        let mut found = Vec::new();
        for (index, &symbol) in text.iter().enumerate() {
            state = automaton.step(state, symbol);
            assert_eq!(automaton.is_match(state), automaton.matches(state).next().is_some());
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
