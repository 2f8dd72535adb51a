//! The calendar of a cast: its four pillars, void branches and lunar date.
//!
//! Everything follows from the time, its zone and the day rule. No function panics or reads a clock. Enums are written by
//! their name, which is Chinese where the term has no settled translation.

mod cycle;
mod solar_terms;
mod lunar;
mod calendar;

pub use calendar::{Clock, DayStart, Moment, Pillar, Pillars};
pub use cycle::{Branch, Element, ElementRelation, Stem, StemBranch};
pub use lunar::LunarDate;

/// Serializes enums as their names.
macro_rules! serialize_by_name {
    ($($enum:ty),*) => {$(
        impl serde::Serialize for $enum {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }
    )*};
}
use serialize_by_name;
