//! The comparison form of a word.

/// The gaps of a word, and its required signs.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Spacing {
    /// Indices of the letters before which the word has a gap.
    pub(super) gaps: Vec<u32>,
    /// Signs that the text must contain, each with the index of the letter after it.
    pub(super) required: Vec<(u32, char)>,
}

/// A word as compared.
#[derive(Clone, Copy)]
pub(super) struct Pattern<'lexicon> {
    pub(super) letters: &'lexicon [char],
    pub(super) spacing: Option<&'lexicon Spacing>,
    /// True for a spelling that romanises characters of the listed word.
    pub(super) is_romanised: bool,
}
