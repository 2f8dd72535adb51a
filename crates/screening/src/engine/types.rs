//! The types of the interface: content types, listed words and matches.

use named_enum::named_enum;

/// Maximum matches of a text. One that has so many is not searched for more disguises, and callers refuse it.
pub const MAX_MATCHES: usize = 200;

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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word {
    pub text: String,
    /// The type, such as `gambling` or `ads`; returned with each match.
    pub kind: String,
    /// True to also match by pronunciation.
    pub by_sound: bool,
    pub severity: Severity,
    /// Further types, without blanks.
    pub tags: Vec<String>,
    /// The content types in which the word is looked for.
    pub content_types: ContentTypes,
}

named_enum! {
    /// The severity of a listed word.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Severity {
        /// Moderators review the text by default.
        Low = "low",
        #[default]
        Medium = "medium",
        High = "high",
    }
}

/// A set of content types, never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContentTypes(u8);

impl ContentTypes {
    pub const ALL: Self = Self((1 << ContentType::ALL.len()) - 1);

    /// Returns the set of these content types, or of all if there are none.
    pub fn of(types: impl IntoIterator<Item = ContentType>) -> Self {
        let bits = types.into_iter().fold(0, |bits, one| bits | Self::bit(one));
        if bits == 0 { Self::ALL } else { Self(bits) }
    }

    /// Parses names separated by blanks; an empty text stands for all.
    pub fn from_names(names: &str) -> Option<Self> {
        let types: Option<Vec<_>> = names.split_whitespace().map(ContentType::from_name).collect();
        types.map(Self::of)
    }

    pub fn contains(self, content_type: ContentType) -> bool {
        self.0 & Self::bit(content_type) != 0
    }

    /// Returns the names of the content types; empty for all of them.
    pub fn names(self) -> Vec<&'static str> {
        let listed = ContentType::ALL.into_iter().filter(|one| self != Self::ALL && self.contains(*one));
        listed.map(ContentType::name).collect()
    }

    const fn bit(content_type: ContentType) -> u8 {
        1 << content_type as u8
    }
}

impl Default for ContentTypes {
    fn default() -> Self {
        Self::ALL
    }
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
        /// By characters of a similar sound, with particles inserted, or as listed where the text may have other words.
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
    pub severity: Severity,
    /// Further types of the word.
    pub tags: Vec<String>,
    pub way: MatchWay,
    /// Offsets into the original text, in characters (Unicode scalar values). The end is exclusive.
    pub start: usize,
    pub end: usize,
    /// The original text between the offsets.
    pub text: String,
}
