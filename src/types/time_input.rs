//! Dates and times as clients write them.

use jiff::civil;

use super::{TimeZone, Timestamp, time::Date};
use crate::error::{Fault, FieldCode};

/// A time as it was written: a point in time, or a time or day whose zone is not stated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeInput {
    At(Timestamp),
    Local(civil::DateTime),
    Day(Date),
}

impl TimeInput {
    /// Reads RFC 3339 and its usual variants: a blank in place of `T` or of `+`, no seconds, no colon in the offset,
    /// slashes, no offset. Digits alone are read by their number: 8 are a day, 14 a time, 10 seconds and 12 or 13
    /// milliseconds since 1970.
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
    /// `invalid_format` at the ends of time.
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

    /// Returns the end of a half-open range: this time, or the end of the day if the range starts on the same whole day.
    pub fn as_end_of(self, start: Option<Self>) -> Self {
        match (start, self) {
            (Some(Self::Day(first)), Self::Day(last)) if first == last => Self::Day(last.tomorrow().unwrap_or(last)),
            _ => self,
        }
    }
}

/// Reads digits, with or without a sign, by their number.
fn of_number(text: &str, digits: usize) -> Option<TimeInput> {
    let at = |time: jiff::Timestamp| TimeInput::At(Timestamp(time.as_millisecond()));
    let is_signed = text.len() > digits;
    match digits {
        8 if !is_signed => text.parse().ok().map(TimeInput::Day),
        14 if !is_signed => format!("{}T{}", &text[..8], &text[8..]).parse().ok().map(TimeInput::Local),
        10 => jiff::Timestamp::from_second(text.parse().ok()?).ok().map(at),
        12 | 13 => jiff::Timestamp::from_millisecond(text.parse().ok()?).ok().map(at),
        // Some clients begin a range with 0.
        1 if text == "0" => Some(TimeInput::At(Timestamp(0))),
        // Any other number could be several things.
        _ => None,
    }
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
                   the seconds (10 digits) or milliseconds (13 digits) since 1970";
    Fault::new(FieldCode::InvalidFormat, message)
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
            (" 2026-01-02 ", "2026-01-01T16:00:00.000Z"),
            ("2026/01/02", "2026-01-01T16:00:00.000Z"),
            ("2026-1-2", "2026-01-01T16:00:00.000Z"),
            ("20260102", "2026-01-01T16:00:00.000Z"),
            ("1767295045", "2026-01-01T19:17:25.000Z"),
            ("1767295045678", "2026-01-01T19:17:25.678Z"),
            ("642960000000", "1990-05-17T16:00:00.000Z"),
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
            "176729504",
            "17672950456",
            "176729504567890",
            "99999999999999999999",
        ];
        for text in texts {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_range_from_a_day_to_the_same_day_is_that_day() {
        let input = |text| TimeInput::parse(text).unwrap();
        let end = |start, end| input(end).as_end_of(Some(input(start)));
        assert_eq!(end("2026-01-02", "20260102"), input("2026-01-03"));
        assert_eq!(end("2026-01-02", "2026-01-03"), input("2026-01-03"));
        assert_eq!(end("2026-01-02 00:00", "2026-01-02 00:00"), input("2026-01-02 00:00"));
        assert_eq!(input("2026-01-02").as_end_of(None), input("2026-01-02"));
    }

    #[test]
    fn a_time_is_on_the_day_of_its_zone() {
        let day = |text| TimeInput::parse(text).unwrap().date_in(&"Asia/Shanghai".parse().unwrap()).to_string();
        for text in ["1990-05-17", "1990/5/17", "19900517", "1990-05-17T00:00:00", "1990-05-16T16:00:00.000Z"] {
            assert_eq!(day(text), "1990-05-17", "{text}");
        }
    }
}
