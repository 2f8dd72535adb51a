//! Times as the clocks of a place show them.

use jiff::{Timestamp, civil, tz};
use serde::Serialize;

/// A time as the clocks of a zone show it. Written as RFC 3339 with seconds and the zone's offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalTime {
    timestamp: Timestamp,
    offset: tz::Offset,
}

impl LocalTime {
    /// Returns what clocks show so many milliseconds after the start of 1970; none outside the years -9999 to 9999.
    pub fn at(milliseconds: i64, zone: &tz::TimeZone) -> Option<Self> {
        let timestamp = Timestamp::from_millisecond(milliseconds).ok()?;
        Some(Self { timestamp, offset: zone.to_offset(timestamp) })
    }

    pub fn date(self) -> civil::Date {
        self.datetime().date()
    }

    pub fn datetime(self) -> civil::DateTime {
        self.offset.to_datetime(self.timestamp)
    }

    /// Returns the whole seconds since the start of 1970.
    pub fn second(self) -> i64 {
        self.timestamp.as_millisecond().div_euclid(1000)
    }

    /// Returns the seconds that clocks are ahead of UTC.
    pub fn offset_seconds(self) -> i64 {
        i64::from(self.offset.seconds())
    }
}

impl std::fmt::Display for LocalTime {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:.0}", self.timestamp.display_with_offset(self.offset))
    }
}

impl Serialize for LocalTime {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
