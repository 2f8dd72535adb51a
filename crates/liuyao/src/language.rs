//! The languages of texts.

use named_enum::named_enum;

named_enum! {
    /// A language, by its two-letter code.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Locale {
        Chinese = "zh",
        English = "en",
    }
}
