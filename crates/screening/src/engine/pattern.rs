//! The comparison form of a word.

use std::borrow::Cow;

use super::types::MatchWay;

/// The gaps of a word, and its required signs.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Spacing {
    /// Indices of the letters before which the word has a gap.
    pub(super) gaps: Vec<u32>,
    /// Signs that the text must contain, each with the index of the letter after it.
    pub(super) required: Vec<(u32, char)>,
}

/// A word as compared.
pub(super) struct Pattern<'lexicon> {
    pub(super) letters: Cow<'lexicon, [char]>,
    pub(super) spacing: Option<Cow<'lexicon, Spacing>>,
    /// The way in which a text with this spelling is found, unless it is the word as listed.
    pub(super) way: Option<MatchWay>,
}
