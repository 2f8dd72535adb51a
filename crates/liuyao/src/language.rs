//! The languages and scripts of texts.

use named_enum::named_enum;

named_enum! {
    /// A language, by its two-letter code.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Locale {
        Chinese = "zh",
        English = "en",
    }
}

named_enum! {
    /// A script of Chinese.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ChineseScript {
        Simplified = "simplified",
        Traditional = "traditional",
    }
}
