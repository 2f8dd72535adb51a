//! Castings by time and by numbers (梅花易数), with the derivation that led to the lines.
//!
//! Two sums, each modulo eight, choose the trigrams in the Earlier Heaven order. A third, modulo six, chooses the
//! changing line. A remainder of zero counts as the divisor. A leap month counts as the month that it repeats, and the
//! year begins with the lunar year.

use serde::Serialize;

use super::{
    calendar::CalendarMoment,
    najia::{self, chinese_name},
    pattern::Half,
};
use crate::{
    Branch, Element, ElementRelation, StemBranch,
    hexagram::{Cast, Hexagram, Trigram},
};
use named_enum::named_enum;

named_enum! {
    /// The relation of another trigram's element to the body's (体).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum BodyRelation {
        /// The other trigram feeds the body: favourable.
        FeedsBody = "生体",
        /// The body feeds the other trigram: costly.
        FedByBody = "体生",
        /// The other trigram controls the body: adverse.
        ControlsBody = "克体",
        /// The body controls the other trigram: achieved with effort.
        ControlledByBody = "体克",
        /// Both have the same element: favourable.
        Same = "比和",
    }
}

/// A casting by time or by numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlumBlossom {
    #[serde(skip)]
    pub cast: Cast,
    pub source: CastSource,
    pub upper: TrigramChoice,
    pub lower: TrigramChoice,
    pub changing_line: LineChoice,
    pub body_and_use: BodyAndUse,
}

/// The numbers that a casting began with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum CastSource {
    /// Year, month, day and double hour of the lunar calendar.
    Time { year: NumberedBranch, month: u8, is_leap_month: bool, day: u8, hour: NumberedBranch },
    /// One number for the upper trigram, and the double hour for the lower.
    NumberAndHour { number: u32, hour: NumberedBranch },
    /// A number for each trigram; their sum chooses the line.
    TwoNumbers { upper: u32, lower: u32 },
    /// A number for each trigram and one for the line.
    ThreeNumbers { upper: u32, lower: u32, line: u32 },
}

/// A branch with its number from 1 (子) to 12 (亥).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct NumberedBranch {
    pub branch: Branch,
    pub number: u8,
}

/// A trigram and the sum that chose it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TrigramChoice {
    pub sum: u64,
    /// From 1 to 8.
    pub remainder: u8,
    #[serde(serialize_with = "chinese_name")]
    pub trigram: Trigram,
}

/// A changing line and the sum that chose it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LineChoice {
    pub sum: u64,
    /// From 1 at the bottom to 6.
    pub position: u8,
}

/// The trigram that stands for the asker (体), the one that stands for the matter (用), and what acts on the asker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct BodyAndUse {
    /// The half without the changing line.
    pub body: BodyTrigram,
    #[serde(rename = "use")]
    pub use_trigram: ActingTrigram,
    /// The trigrams of the nuclear hexagram, the lower first.
    pub nuclear: [ActingTrigram; 2],
    /// The trigram into which the use changes.
    pub changed: ActingTrigram,
}

/// The body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct BodyTrigram {
    pub half: Half,
    #[serde(serialize_with = "chinese_name")]
    pub trigram: Trigram,
    pub element: Element,
}

/// A trigram that acts on the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ActingTrigram {
    pub half: Half,
    #[serde(serialize_with = "chinese_name")]
    pub trigram: Trigram,
    pub element: Element,
    pub relation: BodyRelation,
}

impl CastSource {
    /// The source of a casting at a time. The lunar date and the hour follow the moment's day rule.
    pub fn at(moment: &CalendarMoment) -> Self {
        let (lunar, year) = (moment.lunar, StemBranch::of_lunar_year(moment.lunar.year).branch());
        Self::Time {
            year: year.into(),
            month: lunar.month,
            is_leap_month: lunar.is_leap_month,
            day: lunar.day,
            hour: moment.pillars.hour.branch().into(),
        }
    }

    /// The source of a casting by one number at a time.
    pub fn number_at(number: u32, moment: &CalendarMoment) -> Self {
        Self::NumberAndHour { number, hour: moment.pillars.hour.branch().into() }
    }

    /// The sums for the upper trigram, the lower trigram and the line.
    fn sums(self) -> [u64; 3] {
        match self {
            Self::Time { year, month, day, hour, .. } => {
                let date = u64::from(year.number) + u64::from(month) + u64::from(day);
                let total = date + u64::from(hour.number);
                [date, total, total]
            }
            Self::NumberAndHour { number, hour } => {
                let (number, hour) = (u64::from(number), u64::from(hour.number));
                [number, hour, number + hour]
            }
            Self::TwoNumbers { upper, lower } => {
                let (upper, lower) = (u64::from(upper), u64::from(lower));
                [upper, lower, upper + lower]
            }
            Self::ThreeNumbers { upper, lower, line } => [upper, lower, line].map(u64::from),
        }
    }
}

impl PlumBlossom {
    pub fn new(source: CastSource) -> Self {
        let [upper, lower, line] = source.sums();
        let (upper, lower) = (TrigramChoice::new(upper), TrigramChoice::new(lower));
        let changing_line = LineChoice::new(line);
        let primary = Hexagram::from_trigrams(upper.trigram, lower.trigram);
        let cast = Cast::from_hexagram(primary, &[changing_line.position]);
        let body_and_use = BodyAndUse::new(primary, changing_line.position);
        Self { cast, source, upper, lower, changing_line, body_and_use }
    }
}

impl From<Branch> for NumberedBranch {
    #[allow(clippy::cast_possible_truncation, reason = "there are twelve branches")]
    fn from(branch: Branch) -> Self {
        Self { branch, number: branch as u8 + 1 }
    }
}

impl TrigramChoice {
    fn new(sum: u64) -> Self {
        let trigram = Trigram::counted(sum);
        Self { sum, remainder: trigram.number(), trigram }
    }
}

impl LineChoice {
    #[allow(clippy::cast_possible_truncation, reason = "the remainder is below six")]
    fn new(sum: u64) -> Self {
        Self { sum, position: (sum % 6 + 5) as u8 % 6 + 1 }
    }
}

impl BodyAndUse {
    /// Returns body and use of a hexagram of which the line at this position (1 to 6) changes.
    pub fn new(primary: Hexagram, changing: u8) -> Self {
        let (changed, nuclear) = (primary.with_lines_changed(&[changing]), primary.nuclear());
        let use_half = if changing <= 3 { Half::Lower } else { Half::Upper };
        let body_half = if changing <= 3 { Half::Upper } else { Half::Lower };
        let trigram = trigram(primary, body_half);
        let body = BodyTrigram { half: body_half, trigram, element: najia::element(trigram) };
        let acting = |hexagram, half| ActingTrigram::new(body.element, hexagram, half);
        Self {
            body,
            use_trigram: acting(primary, use_half),
            nuclear: [acting(nuclear, Half::Lower), acting(nuclear, Half::Upper)],
            changed: acting(changed, use_half),
        }
    }
}

impl ActingTrigram {
    fn new(body: Element, hexagram: Hexagram, half: Half) -> Self {
        let trigram = trigram(hexagram, half);
        let element = najia::element(trigram);
        Self { half, trigram, element, relation: BodyRelation::of(element, body) }
    }
}

impl BodyRelation {
    pub fn of(other: Element, body: Element) -> Self {
        match other.relation_to(body) {
            ElementRelation::Feeds => Self::FeedsBody,
            ElementRelation::FedBy => Self::FedByBody,
            ElementRelation::Controls => Self::ControlsBody,
            ElementRelation::ControlledBy => Self::ControlledByBody,
            ElementRelation::Same => Self::Same,
        }
    }
}

fn trigram(hexagram: Hexagram, half: Half) -> Trigram {
    match half {
        Half::Lower => hexagram.lower(),
        Half::Upper => hexagram.upper(),
    }
}

#[cfg(test)]
mod tests;
