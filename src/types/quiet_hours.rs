//! Hours of a day in which a user is not disturbed.

use std::{fmt, str::FromStr};

use jiff::civil::Time;

use super::{TimeZone, Timestamp};

/// A daily span between two times of the clock. It may pass midnight. Written as `22:00-08:00`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuietHours {
    start: Time,
    end: Time,
}

impl QuietHours {
    /// Returns the end of the span if the time is in it.
    pub fn end_after(self, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let local = zone.local_time(now)?.datetime();
        let (date, time) = (local.date(), local.time());
        let is_quiet = if self.start < self.end {
            (self.start..self.end).contains(&time)
        } else {
            time >= self.start || time < self.end
        };
        if !is_quiet {
            return None;
        }
        let day = if time < self.end { date } else { date.tomorrow().ok()? };
        // A change to or from summer time can put the end before `now`.
        zone.at(day.to_datetime(self.end)).filter(|end| *end > now)
    }
}

impl FromStr for QuietHours {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (start, end) = text.split_once('-').ok_or(())?;
        let (start, end) = (time(start)?, time(end)?);
        if start == end { Err(()) } else { Ok(Self { start, end }) }
    }
}

impl fmt::Display for QuietHours {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { start, end } = self;
        let parts = (start.hour(), start.minute(), end.hour(), end.minute());
        write!(formatter, "{:02}:{:02}-{:02}:{:02}", parts.0, parts.1, parts.2, parts.3)
    }
}

fn time(text: &str) -> Result<Time, ()> {
    let (hour, minute) = text.trim().split_once(':').ok_or(())?;
    let number = |text: &str| {
        let is_plain = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        if is_plain { text.parse().map_err(drop) } else { Err(()) }
    };
    Time::new(number(hour)?, number(minute)?, 0, 0).map_err(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(hours: &str, now: &str, zone: &str) -> Option<String> {
        let now = Timestamp::from_rfc3339(now).unwrap();
        hours.parse::<QuietHours>().unwrap().end_after(now, &zone.parse().unwrap()).map(|end| end.to_string())
    }

    #[test]
    fn a_span_may_pass_midnight() {
        let shanghai = |now| end("22:00-08:00", now, "Asia/Shanghai");
        assert_eq!(shanghai("2026-01-02T13:59:59Z"), None);
        assert_eq!(shanghai("2026-01-02T14:00:00Z").unwrap(), "2026-01-03T00:00:00.000Z");
        assert_eq!(shanghai("2026-01-02T23:59:59Z").unwrap(), "2026-01-03T00:00:00.000Z");
        assert_eq!(shanghai("2026-01-03T00:00:00Z"), None);
        assert_eq!(end("12:30-14:00", "2026-01-02T12:30:00Z", "UTC").unwrap(), "2026-01-02T14:00:00.000Z");
        assert_eq!(end("12:30-14:00", "2026-01-02T14:00:00Z", "UTC"), None);
    }

    #[test]
    fn clocks_may_skip_the_end() {
        // At 02:00 clocks go to 03:00.
        let skipped = end("22:00-02:30", "2026-03-29T00:59:00Z", "Europe/Berlin").unwrap();
        assert_eq!(skipped, "2026-03-29T01:30:00.000Z");
    }

    #[test]
    fn reads_what_it_writes_and_nothing_else() {
        for (text, written) in [("22:00-08:00", "22:00-08:00"), (" 7:05 - 9:30 ", "07:05-09:30")] {
            assert_eq!(text.parse::<QuietHours>().unwrap().to_string(), written);
        }
        for text in ["", "22:00", "22-08", "24:00-08:00", "22:60-08:00", "22:00-22:00", "+2:00-08:00", "a-b"] {
            assert_eq!(text.parse::<QuietHours>(), Err(()), "{text}");
        }
    }
}
