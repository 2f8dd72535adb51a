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
                "this is a listed word; it is no longer found. Remove the word instead, or allow a longer phrase."
            }
            Self::ContainsNoWord => "no listed word is in this phrase, so it allows nothing now.",
            Self::DoesNotAcquit => {
                "this phrase does not cover all that was found in the text, which would be found again. Allow the phrase as the text has it."
            }
        }
    }
}
