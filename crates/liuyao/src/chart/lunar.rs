//! Dates of the Chinese lunar calendar, for the days from 1899-02-10 to 2101-01-28.
//!
//! `assets/lunar-years.tsv` has, for each lunar year, its first day, its leap month and the months with 30 days. One
//! new moon of the table is so close to midnight that no source is certain of its day: the one of 2057-09-28.

use serde::Serialize;

use crate::hexagram::table;

/// A date of the lunar calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LunarDate {
    /// The Gregorian year in which the lunar year begins.
    pub year: u16,
    /// From 1 to 12. A leap month has the number of the month before it.
    pub month: u8,
    pub is_leap_month: bool,
    /// From 1 to 30.
    pub day: u8,
}

#[derive(Clone, Copy)]
struct LunarYear {
    /// Days since 1970-01-01.
    first_day: i64,
    /// The month that is repeated, or 0.
    leap_month: u8,
    /// Leap years have 13.
    month_count: u8,
    /// Bit 0 is set if the first month has 30 days, and so on.
    long_months: u16,
}

const FIRST_YEAR: u16 = 1899;
const YEARS: usize = 202;

static LUNAR_YEARS: [LunarYear; YEARS] = lunar_years();

impl LunarDate {
    /// Returns the date of a day, counted from 1970-01-01; none outside the table.
    pub(super) fn of_day(day: i64) -> Option<Self> {
        let row = LUNAR_YEARS.partition_point(|year| year.first_day <= day).checked_sub(1)?;
        let mut rest = day - LUNAR_YEARS[row].first_day;
        for (month, is_leap_month, days) in LUNAR_YEARS[row].months() {
            if rest < days {
                let year = FIRST_YEAR + u16::try_from(row).ok()?;
                return Some(Self { year, month, is_leap_month, day: u8::try_from(rest + 1).ok()? });
            }
            rest -= days;
        }
        None
    }
}

impl LunarYear {
    /// Returns each month's number, whether it is a leap month, and its days.
    fn months(self) -> impl Iterator<Item = (u8, bool, i64)> {
        (0..self.month_count).map(move |place| {
            let is_after_leap = self.leap_month > 0 && place >= self.leap_month;
            let days = 29 + i64::from(self.long_months >> place & 1);
            (place + 1 - u8::from(is_after_leap), is_after_leap && place == self.leap_month, days)
        })
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "constants have no try_from")]
const fn lunar_years() -> [LunarYear; YEARS] {
    let cells: [[&str; 4]; YEARS] = table::cells(include_str!("../../../../assets/lunar-years.tsv"));
    let mut years = [LunarYear { first_day: 0, leap_month: 0, month_count: 0, long_months: 0 }; YEARS];
    let mut row = 0;
    while row < YEARS {
        let [year, first_day, leap_month, months] = cells[row];
        table::assert_number(year, FIRST_YEAR as usize + row);
        let leap_month = table::integer(leap_month) as u8;
        let month_count = months.len() as u8;
        assert!(leap_month <= 12 && month_count == 12 + (leap_month > 0) as u8, "a lunar year has 12 or 13 months");
        years[row] = LunarYear { first_day: table::day(first_day), leap_month, month_count, long_months: bits(months) };
        row += 1;
    }
    years
}

/// Reads `0` and `1` into bits, the first character into bit 0.
const fn bits(cell: &str) -> u16 {
    let bytes = cell.as_bytes();
    let mut bits = 0;
    let mut place = 0;
    while place < bytes.len() {
        assert!(matches!(bytes[place], b'0' | b'1'), "a month is neither 0 (29 days) nor 1 (30 days)");
        bits |= ((bytes[place] - b'0') as u16) << place;
        place += 1;
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(text: &str) -> Option<(u16, u8, bool, u8)> {
        let lunar = LunarDate::of_day(table::day(text))?;
        Some((lunar.year, lunar.month, lunar.is_leap_month, lunar.day))
    }

    #[test]
    fn the_table_equals_an_independent_library_but_for_one_uncertain_new_moon() {
        let own = include_str!("../../../../assets/lunar-years.tsv").lines();
        let other = include_str!("../../../../tests/vectors/chart/lunar-years.tsv").lines();
        assert_eq!(own.clone().count(), other.clone().count());
        let differing: Vec<_> = own.zip(other).filter(|(own, other)| own != other).map(|(own, _)| &own[..4]).collect();
        assert_eq!(differing, ["2057"]);
    }

    #[test]
    fn every_lunar_year_ends_where_the_next_begins() {
        for pair in LUNAR_YEARS.windows(2) {
            let days: i64 = pair[0].months().map(|(_, _, days)| days).sum();
            assert_eq!(pair[0].first_day + days, pair[1].first_day);
        }
    }

    #[test]
    fn dates_have_their_leap_months() {
        assert_eq!(date("2026-11-25"), Some((2026, 10, false, 17)));
        assert_eq!(date("2025-07-24"), Some((2025, 6, false, 30)));
        assert_eq!(date("2025-07-25"), Some((2025, 6, true, 1)));
        assert_eq!(date("2025-08-23"), Some((2025, 7, false, 1)));
        // 2033 is the year in which many programs place the leap month wrongly.
        assert_eq!(date("2033-12-22"), Some((2033, 11, true, 1)));
    }

    #[test]
    fn days_outside_the_table_have_no_date() {
        assert_eq!(date("1899-02-09"), None);
        assert_eq!(date("1899-02-10"), Some((1899, 1, false, 1)));
        assert_eq!(date("2101-01-28"), Some((2100, 12, false, 29)));
        assert_eq!(date("2101-01-29"), None);
        assert_eq!((LunarDate::of_day(i64::MIN), LunarDate::of_day(i64::MAX)), (None, None));
    }
}
