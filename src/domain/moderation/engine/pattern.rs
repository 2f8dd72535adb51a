//! The comparison form of a word.

/// The gaps that a word has itself, and the signs that it requires.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Spacing {
    /// Indices of the letters before which the word has a gap.
    pub(super) gaps: Vec<u32>,
    /// Signs that the text must show, each with the index of the letter that follows it.
    pub(super) required: Vec<(u32, char)>,
}

/// One word as compared.
#[derive(Clone, Copy)]
pub(super) struct Pattern<'lexicon> {
    pub(super) letters: &'lexicon [char],
    pub(super) spacing: Option<&'lexicon Spacing>,
}
