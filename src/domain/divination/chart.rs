//! The charts of castings whose time and place the service knows.

pub use liuyao::chart::*;

use super::hexagram::Cast;
use crate::types::{TimeZone, Timestamp};

/// The time and place of a cast.
#[derive(Clone, Debug)]
pub struct CastTime {
    pub at: Timestamp,
    pub zone: TimeZone,
    pub day_start: DayStart,
}

impl CastTime {
    /// Returns the description of the time; none outside the years of the calendar.
    pub fn moment(&self) -> Option<CalendarMoment> {
        CalendarMoment::new(self.zone.local_time(self.at)?, self.day_start)
    }
}

/// Returns the chart of a cast, without strength and spirits if the time is unknown or out of range.
pub fn chart_of(cast: &Cast, time: Option<&CastTime>) -> Chart {
    let moment = time.map_or(Err(MissingMoment::Unknown), |time| time.moment().ok_or(MissingMoment::OutOfRange));
    Chart::new(cast, moment)
}
