//! The methods of casting.

use crate::{
    domain::divination::hexagram::{Lines, three_coins, yarrow_stalks},
    error::Result,
    types::{fill_random, named_enum},
};

named_enum! {
    /// The method of a casting, as it is stored.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Method {
        ThreeCoins = "three_coins",
        YarrowStalks = "yarrow_stalks",
        Manual = "manual",
    }
}

/// A casting to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Casting {
    ThreeCoins,
    YarrowStalks,
    /// The user threw coins or counted stalks, and reports the lines.
    Manual(Lines),
}

impl Casting {
    pub const fn method(self) -> Method {
        match self {
            Self::ThreeCoins => Method::ThreeCoins,
            Self::YarrowStalks => Method::YarrowStalks,
            Self::Manual(_) => Method::Manual,
        }
    }

    pub(super) fn lines(self) -> Result<Lines> {
        match self {
            Self::ThreeCoins => three_coins(fill_random),
            Self::YarrowStalks => yarrow_stalks(fill_random),
            Self::Manual(lines) => Ok(lines),
        }
    }
}
