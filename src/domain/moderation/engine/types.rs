//! The types of the interface: content types, listed words and matches.

use crate::types::named_enum;

named_enum! {
    /// The use of a text, which decides how much disguise is presumed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum ContentType {
        /// A few characters; punctuation in it is presumed to hide something.
        Nickname = "nickname",
        /// A single line; punctuation hides a word only if the word is isolated.
        Signature = "signature",
        /// Prose of a user.
        Question = "question",
        /// Prose of a model.
        Answer = "answer",
    }
}

/// An entry of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    pub text: String,
    /// The subject, such as `gambling` or `ads`; handed back with each match.
    pub kind: String,
    /// True to match homophones too.
    pub by_sound: bool,
}

/// A word found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// The word as it is listed.
    pub word: String,
    pub kind: String,
    /// Offsets into the original text, in characters (Unicode scalar values); the end is exclusive.
    pub start: usize,
    pub end: usize,
    /// The original text between the offsets.
    pub text: String,
}
