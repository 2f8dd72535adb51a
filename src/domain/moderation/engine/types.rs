//! The types of the interface: content types, listed words and matches.

use crate::types::named_enum;

named_enum! {
    /// The use of a text, which determines how much disguise is presumed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum ContentType {
        /// A few characters; punctuation is presumed to disguise a word.
        Nickname = "nickname",
        /// A single line; punctuation disguises a word only if the word is isolated.
        Signature = "signature",
        /// Prose of a user.
        Question = "question",
        /// Prose of a model.
        Answer = "answer",
    }
}

/// A listed word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    pub text: String,
    /// The type, such as `gambling` or `ads`; returned with each match.
    pub kind: String,
    /// True to also match by pronunciation.
    pub by_sound: bool,
}

/// A match of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// The word as listed.
    pub word: String,
    pub kind: String,
    /// Offsets into the original text, in characters (Unicode scalar values). The end is exclusive.
    pub start: usize,
    pub end: usize,
    /// The original text between the offsets.
    pub text: String,
}
