//! The time of a cast: its four pillars, void branches and lunar date.
//!
//! Years and months begin at instants, the same everywhere on earth. Days and double hours follow the clock of the time
//! zone, including summer time. The stem of the hour from 23:00 is always that of the next day, even if the day itself
//! changes at midnight.

use jiff::{ToSpan, tz::TimeZone};
use serde::Serialize;

use super::{lunar::LunarDate, solar_terms};
use crate::{Branch, Date, LocalTime, StemBranch};
use named_enum::named_enum;

named_enum! {
    /// The time of day at which the next day's pillar begins.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum DayStart {
        /// With the hour of the rat (子), the traditional rule.
        #[default]
        At23 = "23:00",
        AtMidnight = "00:00",
    }
}

named_enum! {
    /// The clock that days and hours follow.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum ClockKind {
        /// The official time of the time zone, with summer time.
        #[default]
        Civil = "civil",
    }
}

named_enum! {
    /// A pillar.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Pillar {
        Year = "year",
        Month = "month",
        Day = "day",
        Hour = "hour",
    }
}

/// The time of a cast as the calendar describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CalendarMoment {
    /// RFC 3339 with the offset of the time zone.
    pub local: LocalTime,
    pub clock: ClockKind,
    pub day_start: DayStart,
    pub pillars: Pillars,
    /// The branches (旬空) that are void on this day.
    pub void: [Branch; 2],
    /// The pillars that would be others with a clock three minutes off. The day also while the two day rules disagree.
    pub near_boundary: Vec<Pillar>,
    /// The date in China's lunar calendar of the day that the day rule gives.
    pub lunar: LunarDate,
}

/// The stems and branches of year, month, day and double hour (四柱).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Pillars {
    pub year: StemBranch,
    pub month: StemBranch,
    pub day: StemBranch,
    pub hour: StemBranch,
}

/// The local years for which the instants of the months are known.
pub const CALENDAR_YEARS: std::ops::RangeInclusive<i16> = 1900..=2100;
/// Seconds by which a clock may be off, and by less than which sources of the instants differ.
const TOLERANCE: i64 = 180;
const DAY: i64 = 86_400;
const HOUR: i64 = 3_600;

impl CalendarMoment {
    /// Returns the description of a time; none unless the local year is from 1900 to 2100.
    pub fn new(local: LocalTime, day_start: DayStart) -> Option<Self> {
        if !CALENDAR_YEARS.contains(&local.date().year()) {
            return None;
        }
        let second = local.second();
        let clock = second + local.offset_seconds();
        let day = day_at(clock, day_start);
        let pillars = Pillars {
            year: year_pillar(solar_terms::month_at(second)),
            month: month_pillar(solar_terms::month_at(second)),
            day: day_pillar(day),
            hour: hour_pillar(double_hour_at(clock)),
        };
        let near_boundary = near_boundary(second, clock);
        let (void, lunar) = (pillars.day.void_branches(), LunarDate::of_day(day)?);
        Some(Self { local, clock: ClockKind::Civil, day_start, pillars, void, near_boundary, lunar })
    }

    /// Returns noon of the last day with this month and this pillar, until a date; none in the years of the calendar.
    pub fn latest_noon(month: Branch, day: StemBranch, until: Date, zone: &TimeZone) -> Option<LocalTime> {
        let until = days_since_1970(until)?;
        let last = (0..60).map(|back| until - back).find(|number| day_pillar(*number) == day)?;
        (0..).map(|cycles| last - 60 * cycles).map_while(|number| noon(number, zone)).find(|noon| {
            CALENDAR_YEARS.contains(&noon.date().year())
                && month_pillar(solar_terms::month_at(noon.second())).branch() == month
        })
    }

    /// Returns the first date of each branch after the day of the cast, in the order of the branches; none if the
    /// calendar ends before.
    pub fn next_days(&self) -> Option<[Date; 12]> {
        let today = self.local.date();
        let is_next_day = self.pillars.day != day_pillar(days_since_1970(today)?);
        let mut date = if is_next_day { today.tomorrow().ok()? } else { today };
        let mut dates = [date; 12];
        for places in 1..=12 {
            date = date.tomorrow().ok()?;
            dates[self.pillars.day.branch().plus(places) as usize] = date;
        }
        Some(dates)
    }

    /// Returns the number of days to the end of the `week`, `next_week`, `month`, `next_month` or `year`.
    pub(crate) fn days_to_end_of(&self, span: &str) -> Option<i32> {
        let today = self.local.date();
        let week = 6 - i32::from(today.weekday().to_monday_zero_offset());
        let to = |date: Date| Some(today.until(date).ok()?.get_days());
        match span {
            "week" => Some(week),
            "next_week" => Some(week + 7),
            "month" => to(today.last_of_month()),
            "next_month" => to(today.last_of_month().tomorrow().ok()?.last_of_month()),
            "year" => to(today.last_of_year()),
            _ => None,
        }
    }
}

/// Returns noon of a day, counted from 1970-01-01; none before the calendar.
fn noon(day: i64, zone: &TimeZone) -> Option<LocalTime> {
    let date = Date::new(1970, 1, 1).ok()?.checked_add(day.days()).ok()?;
    let noon = zone.to_timestamp(date.at(12, 0, 0, 0)).ok()?.as_millisecond();
    LocalTime::at(noon, zone).filter(|noon| *CALENDAR_YEARS.start() <= noon.date().year())
}

fn days_since_1970(date: Date) -> Option<i64> {
    Some(i64::from(Date::new(1970, 1, 1).ok()?.until(date).ok()?.get_days()))
}

/// Returns the day at which a clock is, counted from 1970-01-01.
fn day_at(clock: i64, day_start: DayStart) -> i64 {
    let lead = match day_start {
        DayStart::At23 => HOUR,
        DayStart::AtMidnight => 0,
    };
    (clock + lead).div_euclid(DAY)
}

/// Returns the double hour at which a clock is, counted from 23:00 before 1970-01-01.
fn double_hour_at(clock: i64) -> i64 {
    (clock + HOUR).div_euclid(2 * HOUR)
}

/// Returns the pillar of the year, which begins with the second month of the table's years (立春 1900 began 庚子).
fn year_pillar(month: i64) -> StemBranch {
    StemBranch::from_place(35 + (month + 11).div_euclid(12))
}

/// Returns the pillar of a month (小寒 1900 began 丁丑).
fn month_pillar(month: i64) -> StemBranch {
    StemBranch::from_place(13 + month)
}

/// Returns the pillar of a day (1970-01-01 was 辛巳).
fn day_pillar(day: i64) -> StemBranch {
    StemBranch::from_place(17 + day)
}

/// Returns the pillar of a double hour (1970-01-01 began with 戊子). Five days have sixty of them, so they only count on.
fn hour_pillar(double_hour: i64) -> StemBranch {
    StemBranch::from_place(24 + double_hour)
}

fn near_boundary(second: i64, clock: i64) -> Vec<Pillar> {
    let is_split = |at: i64, pillar: fn(i64) -> StemBranch| pillar(at - TOLERANCE) != pillar(at + TOLERANCE);
    let earliest_day = day_at(clock - TOLERANCE, DayStart::AtMidnight);
    let latest_day = day_at(clock + TOLERANCE, DayStart::At23);
    let found = [
        (Pillar::Year, is_split(second, |second| year_pillar(solar_terms::month_at(second)))),
        (Pillar::Month, is_split(second, |second| month_pillar(solar_terms::month_at(second)))),
        (Pillar::Day, earliest_day != latest_day),
        (Pillar::Hour, is_split(clock, |clock| hour_pillar(double_hour_at(clock)))),
    ];
    found.into_iter().filter(|(_, is_near)| *is_near).map(|(pillar, _)| pillar).collect()
}

#[cfg(test)]
mod tests;
