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

named_enum! {
    /// The way in which a match was found: how much the text differs from the listed word. Ordered by certainty.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum MatchWay {
        /// As listed, apart from case, width and traditional characters.
        Exact = "exact",
        /// With separators or invisible characters between the letters.
        Gap = "gap",
        /// With repeated letters, styled letters, letters of other alphabets, or digits and signs for letters.
        Letters = "letters",
        /// With characters split into their parts.
        Split = "split",
        /// With emoji that contain letters between its characters.
        Emoji = "emoji",
        /// By characters of the same sound, or romanised.
        Sound = "sound",
        /// By characters of a similar sound, or with particles inserted.
        Fuzzy = "fuzzy",
        /// With one character replaced by the initial of its romanisation.
        Initial = "initial",
        /// By characters of a similar shape.
        Shape = "shape",
        /// Backwards.
        Reversed = "reversed",
    }
}

impl MatchWay {
    /// Returns true if a match that is found in this way refuses a text by default. Moderators review the others.
    pub fn is_certain(self) -> bool {
        !matches!(self, Self::Fuzzy | Self::Initial | Self::Shape | Self::Reversed)
    }
}

/// A match of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// The word as listed.
    pub word: String,
    pub kind: String,
    pub way: MatchWay,
    /// Offsets into the original text, in characters (Unicode scalar values). The end is exclusive.
    pub start: usize,
    pub end: usize,
    /// The original text between the offsets.
    pub text: String,
}
