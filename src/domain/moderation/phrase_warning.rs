//! The warnings about allowed phrases.

use crate::types::named_enum;

named_enum! {
    /// The reason for which an allowed phrase probably does not do what was wanted.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum PhraseWarning {
        /// The phrase is a listed word, which is now found in no text that spells it like this.
        SwitchesOffWord = "switches_off_word",
        /// No listed word is in the phrase, as it is only a part of one, or the list has none.
        ContainsNoWord = "contains_no_word",
        /// The text of the decision has a listed word or a contact outside the phrase, and would be found again.
        DoesNotAcquit = "does_not_acquit",
    }
}

impl PhraseWarning {
    /// Returns the sentence for operators, after a colon.
    pub const fn detail(self) -> &'static str {
        match self {
            Self::SwitchesOffWord => {
                "this is a listed word, which is not found any more. Remove the word instead, or allow a longer phrase."
            }
            Self::ContainsNoWord => "the phrase contains no listed word, so it has no effect.",
            Self::DoesNotAcquit => {
                "the phrase does not cover every match in the text, so the text would be flagged again. Allow the phrase exactly as it appears in the text."
            }
        }
    }
}
