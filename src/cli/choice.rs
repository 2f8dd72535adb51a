//! Arguments that are one of a few words.

/// Reads such an argument as a value of this type, by the names that its values have everywhere.
macro_rules! choice {
    ($type:ty) => {{
        use clap::builder::{PossibleValuesParser, TypedValueParser};
        PossibleValuesParser::new(<$type>::ALL.map(<$type>::name))
            .try_map(|name| <$type>::named(&name).ok_or("is none of the words"))
    }};
}

pub(super) use choice;
