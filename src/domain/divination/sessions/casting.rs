//! The methods of casting.

use crate::{
    domain::divination::{
        chart::{CastSource, CastTime, PlumBlossom},
        hexagram::{Lines, three_coins, yarrow_stalks},
    },
    error::{Error, Fault, FieldCode, Result},
    types::{fill_random, named_enum},
};

named_enum! {
    /// The method of a casting, as it is stored.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Method {
        ThreeCoins = "three_coins",
        YarrowStalks = "yarrow_stalks",
        Manual = "manual",
        /// By the lunar date and the double hour (梅花易数).
        Time = "time",
        /// By one to three numbers (梅花易数).
        Numbers = "numbers",
    }
}

/// A casting to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Casting {
    ThreeCoins,
    YarrowStalks,
    /// The user threw coins or counted stalks, and reports the lines.
    Manual(Lines),
    Time,
    /// One to three numbers.
    Numbers(Vec<u32>),
}

impl Casting {
    pub const fn method(&self) -> Method {
        match self {
            Self::ThreeCoins => Method::ThreeCoins,
            Self::YarrowStalks => Method::YarrowStalks,
            Self::Manual(_) => Method::Manual,
            Self::Time => Method::Time,
            Self::Numbers(_) => Method::Numbers,
        }
    }

    /// Returns the numbers of a casting by numbers, otherwise none.
    pub fn numbers(&self) -> &[u32] {
        if let Self::Numbers(numbers) = self { numbers } else { &[] }
    }

    /// Returns true if the lines follow from the time.
    pub fn needs_time(&self) -> bool {
        matches!(self, Self::Time) || self.numbers().len() == 1
    }

    /// # Errors
    /// `invalid_parameters` if the method needs a time for which there is no lunar calendar; errors of the random source.
    pub(super) fn lines(&self, time: &CastTime) -> Result<Lines> {
        match self {
            Self::ThreeCoins => three_coins(fill_random),
            Self::YarrowStalks => yarrow_stalks(fill_random),
            Self::Manual(lines) => Ok(*lines),
            Self::Time | Self::Numbers(_) => {
                let derivation = derivation(self.method(), self.numbers(), Some(time));
                let no_calendar = || {
                    Error::field("castAt", Fault::new(FieldCode::OutOfRange, ("must be before 2101", "须早于 2101 年")))
                };
                derivation.map(|derivation| derivation.cast.lines()).ok_or_else(no_calendar)
            }
        }
    }
}

/// Returns the derivation of a casting by time or by numbers; none for other methods.
pub(super) fn derivation(method: Method, numbers: &[u32], time: Option<&CastTime>) -> Option<PlumBlossom> {
    let moment = || time.and_then(CastTime::moment);
    let source = match (method, numbers) {
        (Method::Time, _) => CastSource::at(&moment()?),
        (Method::Numbers, [number]) => CastSource::number_at(*number, &moment()?),
        (Method::Numbers, [upper, lower]) => CastSource::TwoNumbers { upper: *upper, lower: *lower },
        (Method::Numbers, [upper, lower, line]) => {
            CastSource::ThreeNumbers { upper: *upper, lower: *lower, line: *line }
        }
        _ => return None,
    };
    Some(PlumBlossom::new(source))
}
