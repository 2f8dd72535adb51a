//! Dates and times as clients write them.

use std::{ops::RangeInclusive, time::Duration};

use jiff::civil;

use super::{Date, TimeZone, Timestamp, ensure_ordered};
use crate::error::{Error, Fault, FieldCode, Result};

/// A day in milliseconds.
const DAY: i64 = 86_400_000;
/// Ends such as 23:59:59 and 23:59:59.999 mean the end of the day.
const LAST_SECOND: Duration = Duration::from_secs(1);

/// A time as it was written: a point in time, or a time or day whose zone is not stated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeInput {
    At(Timestamp),
    Local(civil::DateTime),
    Day(Date),
}

impl TimeInput {
    /// Reads RFC 3339 and its usual variants: a blank in place of `T` or of `+`, no seconds, no colon in the offset,
    /// slashes, no offset. Digits alone are read by their number: 8 are a day, 12 and 14 a time, 9 or 10 seconds and 13
    /// milliseconds since 1970. 12 digits that are no time of the years 1900 to 2100 are milliseconds too.
    ///
    /// # Errors
    /// `invalid_format`.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let text = text.trim();
        let digits = text.strip_prefix('-').unwrap_or(text);
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let written = if is_number { of_number(text, digits.len()) } else { of_calendar(text) };
        written.ok_or_else(fault)
    }

    /// Returns the point in time in a zone; for a day its start.
    ///
    /// # Errors
    /// `invalid_format` outside the supported years.
    pub fn in_zone(self, zone: &TimeZone) -> Result<Timestamp, Fault> {
        let local = match self {
            Self::At(timestamp) => return Ok(timestamp),
            Self::Local(local) => local,
            Self::Day(day) => day.to_datetime(civil::Time::midnight()),
        };
        zone.at(local).ok_or_else(fault)
    }

    /// Returns the day in a zone.
    pub fn date_in(self, zone: &TimeZone) -> Date {
        match self {
            Self::At(timestamp) => zone.today(timestamp),
            Self::Local(local) => local.date(),
            Self::Day(day) => day,
        }
    }

    /// Reads a birthday: a date, or seconds or milliseconds since 1970, whichever is a plausible day. Numbers that could
    /// also be dates in other spellings count only if they are the start of a day.
    ///
    /// # Errors
    /// `invalid_format`.
    pub fn parse_birthday(text: &str, zone: &TimeZone, plausible: &RangeInclusive<Date>) -> Result<Date, Fault> {
        let text = text.trim();
        let is_calendar = matches!(text.len(), 8 | 14) && Self::parse(text).is_ok();
        let number = text.parse::<i64>().ok().filter(|_| !is_calendar && !text.starts_with('+'));
        let epoch = number.and_then(|number| birthday_of_epoch(number, zone, plausible));
        epoch.map_or_else(|| Self::parse(text).map(|input| input.date_in(zone)), Ok)
    }
}

/// Returns the bounds of a time range from two optional inputs, given with their names. The result is half-open.
///
/// An end that is a whole day, the last second of a day, or the same midnight as the start includes its day: the first
/// two exclude no time that their writer meant to include, and the range would otherwise be empty.
///
/// # Errors
/// `invalid_parameters` for an end before the start, and outside the supported years.
pub fn time_range(
    start: (&str, Option<TimeInput>),
    end: (&str, Option<TimeInput>),
    zone: &TimeZone,
) -> Result<(Option<Timestamp>, Option<Timestamp>)> {
    let in_zone = |(name, input): (&str, Option<TimeInput>)| {
        input.map(|input| input.in_zone(zone)).transpose().map_err(|fault| Error::field(name, fault))
    };
    let (from, to) = (in_zone(start)?, in_zone(end)?);
    let Some((to, input)) = to.zip(end.1) else { return Ok((from, to)) };
    let next_day = zone.tomorrow(to);
    let includes_day = matches!(input, TimeInput::Day(_))
        || next_day.since(to) <= LAST_SECOND
        || (from == Some(to) && zone.is_midnight(to));
    if let Some(from) = from {
        let last = if includes_day { Timestamp(next_day.0 - 1) } else { to };
        ensure_ordered((start.0, from), (end.0, last))?;
    }
    Ok((from, Some(if includes_day { next_day } else { to })))
}

/// Returns the day of a number of seconds or milliseconds since 1970.
fn birthday_of_epoch(number: i64, zone: &TimeZone, plausible: &RangeInclusive<Date>) -> Option<Date> {
    let digits = number.unsigned_abs().to_string().len();
    // Shorter numbers could be `900517` or `17051990`, and 12 digits a local time.
    let is_certain = |is_seconds| if is_seconds { digits > 8 } else { digits == 11 || digits > 12 };
    let is_midnight = |at: Timestamp| zone.is_midnight(at) || at.0.rem_euclid(DAY) == 0;
    let day = |milliseconds: Option<i64>, is_seconds| {
        let at = Timestamp(milliseconds?);
        let day = zone.local_time(at)?.date();
        (plausible.contains(&day) && (is_certain(is_seconds) || is_midnight(at))).then_some(day)
    };
    day(number.checked_mul(1000), true).or_else(|| day(Some(number), false))
}

/// Reads digits, with or without a sign, by their number.
fn of_number(text: &str, digits: usize) -> Option<TimeInput> {
    let at = |time: jiff::Timestamp| TimeInput::At(Timestamp(time.as_millisecond()));
    let is_signed = text.len() > digits;
    match digits {
        8 if !is_signed => text.parse().ok().map(TimeInput::Day),
        14 if !is_signed => local_time(&text[..8], &text[8..]).map(TimeInput::Local),
        12 if !is_signed && let Some(local) = local_time(&text[..8], &format!("{}00", &text[8..])) => {
            Some(TimeInput::Local(local))
        }
        9 | 10 => jiff::Timestamp::from_second(text.parse().ok()?).ok().map(at),
        12 | 13 => jiff::Timestamp::from_millisecond(text.parse().ok()?).ok().map(at),
        // Some clients begin a range with 0.
        1 if text == "0" => Some(TimeInput::At(Timestamp(0))),
        // Any other number could be several things.
        _ => None,
    }
}

/// Returns the time of a day, both in digits, in the years 1900 to 2100.
fn local_time(day: &str, time: &str) -> Option<civil::DateTime> {
    let local: civil::DateTime = format!("{day}T{time}").parse().ok()?;
    (1900..=2100).contains(&local.year()).then_some(local)
}

fn of_calendar(text: &str) -> Option<TimeInput> {
    let words: Vec<_> = text.split_whitespace().collect();
    let (date, clock, offset) = match (words.first()?.split_once(['T', 't']), &words[1..]) {
        (Some((date, clock)), []) => (date, clock, None),
        (Some((date, clock)), [offset]) => (date, clock, Some(*offset)),
        (None, []) => return usual_date(words[0])?.parse().ok().map(TimeInput::Day),
        (None, [clock]) => (words[0], *clock, None),
        (None, [clock, offset]) => (words[0], *clock, Some(*offset)),
        _ => return None,
    };
    let date = usual_date(date)?;
    let padding = if clock.as_bytes().get(1) == Some(&b':') { "0" } else { "" };
    // In a query string a `+` means a blank.
    let sign =
        if offset.is_some_and(|offset| offset.starts_with(|first: char| first.is_ascii_digit())) { "+" } else { "" };
    let written = format!("{date}T{padding}{clock}{sign}{}", offset.unwrap_or_default());
    if clock.bytes().all(|byte| byte.is_ascii_digit() || b":.,".contains(&byte)) && offset.is_none() {
        return written.parse().ok().map(TimeInput::Local);
    }
    let time = written.parse::<jiff::Timestamp>().ok()?;
    Some(TimeInput::At(Timestamp(time.as_millisecond())))
}

/// Returns a date with hyphens and all its digits, or one without any separator as it is.
fn usual_date(date: &str) -> Option<String> {
    let parts: Vec<_> = date.split(['-', '/']).collect();
    match parts[..] {
        [_] => (date.len() == 8).then(|| date.to_owned()),
        [year, month, day] if year.len() == 4 => Some(format!("{year}-{month:0>2}-{day:0>2}")),
        _ => None,
    }
}

fn fault() -> Fault {
    let message = "must be a date or time such as `2026-01-02`, `2026-01-02 03:04:05`, `2026-01-02T03:04:05+08:00`, or \
                   the seconds (9 or 10 digits) or milliseconds (13 digits) since 1970";
    let chinese = "须为日期或时间，例如 `2026-01-02`、`2026-01-02 03:04:05`、`2026-01-02T03:04:05+08:00`，\
                   或 1970 年起的秒数（9 或 10 位）或毫秒数（13 位）";
    Fault::new(FieldCode::InvalidFormat, (message, chinese))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Option<String> {
        Timestamp::parse(text, &"Asia/Shanghai".parse().unwrap()).ok().map(|timestamp| timestamp.to_string())
    }

    #[test]
    fn every_spelling_of_a_time_is_read() {
        let spellings = [
            ("2026-01-02T03:04:05.678Z", "2026-01-02T03:04:05.678Z"),
            ("2026-01-02T03:04:05+08:00", "2026-01-01T19:04:05.000Z"),
            ("2026-01-02T03:04:05+0800", "2026-01-01T19:04:05.000Z"),
            ("2026-01-02T03:04:05+08", "2026-01-01T19:04:05.000Z"),
            ("2026-01-02T03:04:05 08:00", "2026-01-01T19:04:05.000Z"),
            ("2026-01-02T03:04:05.678 0800", "2026-01-01T19:04:05.678Z"),
            ("2026-01-02 03:04:05 08:00", "2026-01-01T19:04:05.000Z"),
            ("2026-01-02 03:04:05 +0800", "2026-01-01T19:04:05.000Z"),
            ("2026-01-02 03:04:05  0800", "2026-01-01T19:04:05.000Z"),
            ("2026-01-02 03:04:05-05:00", "2026-01-02T08:04:05.000Z"),
            ("2026-01-02T03:04:05+08:00[Asia/Shanghai]", "2026-01-01T19:04:05.000Z"),
            ("2026-01-02 03:04:05", "2026-01-01T19:04:05.000Z"),
            ("2026-01-02T03:04:05", "2026-01-01T19:04:05.000Z"),
            ("2026-01-02T03:04:05.678", "2026-01-01T19:04:05.678Z"),
            ("2026-01-02T03:04:05,678901", "2026-01-01T19:04:05.678Z"),
            ("2026-01-02T03:04", "2026-01-01T19:04:00.000Z"),
            ("2026-01-02 3:04", "2026-01-01T19:04:00.000Z"),
            ("2026/01/02 03:04:05", "2026-01-01T19:04:05.000Z"),
            ("2026/1/2 03:04", "2026-01-01T19:04:00.000Z"),
            ("20260102T030405", "2026-01-01T19:04:05.000Z"),
            ("20260102T030405Z", "2026-01-02T03:04:05.000Z"),
            ("20260102030405", "2026-01-01T19:04:05.000Z"),
            ("202611252300", "2026-11-25T15:00:00.000Z"),
            ("190001010000", "1899-12-31T15:54:17.000Z"),
            (" 2026-01-02 ", "2026-01-01T16:00:00.000Z"),
            ("2026/01/02", "2026-01-01T16:00:00.000Z"),
            ("2026-1-2", "2026-01-01T16:00:00.000Z"),
            ("20260102", "2026-01-01T16:00:00.000Z"),
            ("1767295045", "2026-01-01T19:17:25.000Z"),
            ("1767295045678", "2026-01-01T19:17:25.678Z"),
            ("642960000000", "1990-05-17T16:00:00.000Z"),
            ("642960000", "1990-05-17T16:00:00.000Z"),
            ("-642960000", "1949-08-17T08:00:00.000Z"),
            ("-642960000000", "1949-08-17T08:00:00.000Z"),
            ("0", "1970-01-01T00:00:00.000Z"),
        ];
        for (text, time) in spellings {
            assert_eq!(parse(text).as_deref(), Some(time), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        let texts = [
            "",
            "yesterday",
            "2026",
            "202601",
            "2026-01",
            "2026-13-01",
            "2026-02-30",
            "20260230",
            "20261301000000",
            "-20260101",
            "2026-01-02 25:00:00",
            "2026-01-02T03:04:05+99:00",
            "2026-01-02 03:04:05 CST",
            "2026-01-02 03:04:05 +08:00 x",
            "26-01-02",
            "02/01/2026",
            "2026-01-02T",
            "2026年1月2日",
            "Fri Jan 02 03:04:05 CST 2026",
            "17672950",
            "17672950456",
            "176729504567890",
            "99999999999999999999",
        ];
        for text in texts {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_range_includes_the_whole_days_at_its_end() {
        let range = |start: &str, end: &str| {
            let input = |text: &str| (!text.is_empty()).then(|| TimeInput::parse(text).unwrap());
            let zone = "Asia/Shanghai".parse().unwrap();
            let bounds = time_range(("start", input(start)), ("end", input(end)), &zone);
            bounds.map(|(_, end)| end.map(|end| end.to_string())).map_err(|error| error.fields[0].field.clone())
        };
        let next_day = Ok(Some("2026-11-25T16:00:00.000Z".to_owned()));
        let ends = [
            "2026-11-25",
            "20261125",
            "2026-11-25T23:59:59",
            "2026-11-25 23:59:59.999",
            "2026-11-25T23:59:59+08:00",
            "20261125235959",
        ];
        for end in ends {
            for start in ["", "2026-11-24", "2026-11-25", "2026-11-25T10:00:00"] {
                assert_eq!(range(start, end), next_day, "{start} to {end}");
            }
        }
        let midnights = ["2026-11-25", "2026-11-25T00:00:00", "20261125000000", "2026-11-24T16:00:00Z", "1795536000"];
        for (start, end) in midnights.iter().flat_map(|start| midnights.map(|end| (start, end))) {
            assert_eq!(range(start, end), next_day, "{start} to {end}");
        }
        // Any other time is exclusive.
        assert_eq!(range("2026-11-24", "2026-11-25T00:00:00"), Ok(Some("2026-11-24T16:00:00.000Z".into())));
        assert_eq!(range("2026-11-25 10:00", "2026-11-25 10:00"), Ok(Some("2026-11-25T02:00:00.000Z".into())));
        assert_eq!(range("2026-11-25", "2026-11-25 23:59"), Ok(Some("2026-11-25T15:59:00.000Z".into())));
        assert_eq!(range("2026-11-25", ""), Ok(None));
        assert_eq!(range("2026-11-26", "2026-11-25"), Err("end".into()));
        assert_eq!(range("2026-11-26 00:00", "2026-11-25T23:59:59"), Err("end".into()));
    }

    #[test]
    fn a_time_is_on_the_day_of_its_zone() {
        let day = |text| TimeInput::parse(text).unwrap().date_in(&"Asia/Shanghai".parse().unwrap()).to_string();
        for text in ["1990-05-17", "1990/5/17", "19900517", "1990-05-17T00:00:00", "1990-05-16T16:00:00.000Z"] {
            assert_eq!(day(text), "1990-05-17", "{text}");
        }
    }
}
