//! Arguments with a fixed set of values.

/// Parses an argument as a type of named values. Help and errors list the names.
macro_rules! choice {
    ($type:ty) => {{
        use clap::builder::{PossibleValuesParser, TypedValueParser};
        PossibleValuesParser::new(<$type>::ALL.map(<$type>::name))
            .try_map(|name| <$type>::from_name(&name).ok_or("is not a possible value"))
    }};
}

pub(super) use choice;
