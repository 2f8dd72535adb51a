//! Points in time, as whole milliseconds since 1970 in UTC.

use std::{
    ops::{Range, RangeInclusive},
    time::Duration,
};

use jiff::{civil, tz};
use liuyao::{Date, LocalTime};
use serde::{Deserialize, Serialize, de};

use super::TimeInput;
use crate::error::{Error, Fault, FieldCode, Result};

/// Milliseconds since the start of 1970, UTC. Written as RFC 3339 with milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Timestamp {
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(milliseconds(duration)))
    }

    pub fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(milliseconds(duration)))
    }

    /// Returns true if this was at most `span` before `now`. False for future times: a clock that was briefly ahead
    /// leaves such times behind, and nothing must wait for them.
    pub fn is_within(self, span: Duration, now: Self) -> bool {
        self <= now && now < self.plus(span)
    }

    /// Like [`Self::is_within`], but tolerates a clock that went back: a future time counts if it is at most `span`
    /// ahead.
    pub fn is_near(self, span: Duration, now: Self) -> bool {
        now < self.plus(span) && self < now.plus(span)
    }

    /// Returns the time since `earlier`; zero if that is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// Reads what [`Display`](std::fmt::Display) writes.
    pub fn from_rfc3339(text: &str) -> Option<Self> {
        text.parse::<jiff::Timestamp>().ok().map(|timestamp| Self(timestamp.as_millisecond()))
    }

    /// Returns the time as HTTP headers write it (RFC 9110).
    pub fn http_date(self) -> Option<String> {
        let timestamp = jiff::Timestamp::from_millisecond(self.0).ok()?;
        jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&timestamp).ok()
    }

    /// Reads any spelling of [`TimeInput`]. Times without an offset are read in `zone`.
    ///
    /// # Errors
    /// `invalid_format`.
    pub fn parse(text: &str, zone: &TimeZone) -> Result<Self, Fault> {
        TimeInput::parse(text)?.in_zone(zone)
    }
}

/// Checks that a half-open range does not end before it starts.
///
/// # Errors
/// `invalid_parameters`, for the end.
pub fn ensure_ordered(start: (&str, Timestamp), end: (&str, Timestamp)) -> Result<()> {
    if start.1 <= end.1 {
        return Ok(());
    }
    Err(Error::field(
        end.0,
        Fault::new(
            FieldCode::OutOfRange,
            (format!("must not be before `{}`", start.0), format!("不能早于 `{}`", start.0)),
        ),
    ))
}

/// Returns a duration in milliseconds with three decimals, without rounding noise.
pub fn decimal_milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

/// Returns a duration in whole milliseconds.
pub fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

impl Timestamp {
    /// Returns the text of a time from the year 0 on. Replies contain many, and jiff's printing, which can do more, takes
    /// five times as long.
    fn rfc3339(self) -> Option<[u8; 24]> {
        let time = tz::Offset::UTC.to_datetime(jiff::Timestamp::from_millisecond(self.0).ok()?);
        let mut text = *b"0000-00-00T00:00:00.000Z";
        let mut put = |places: Range<usize>, mut number: u16| {
            for place in text[places].iter_mut().rev() {
                *place += (number % 10) as u8;
                number /= 10;
            }
        };
        put(0..4, time.year().try_into().ok()?);
        let parts = [time.month(), time.day(), time.hour(), time.minute(), time.second()];
        for (start, part) in (5..).step_by(3).zip(parts) {
            put(start..start + 2, part.unsigned_abs().into());
        }
        put(20..23, time.millisecond().unsigned_abs());
        Some(text)
    }
}

impl std::fmt::Display for Timestamp {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.rfc3339(), jiff::Timestamp::from_millisecond(self.0)) {
            (Some(text), _) => formatter.write_str(str::from_utf8(&text).unwrap_or_default()),
            (None, Ok(timestamp)) => write!(formatter, "{timestamp:.3}"),
            (None, Err(_)) => write!(formatter, "{}", self.0),
        }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.rfc3339() {
            Some(text) => serializer.serialize_str(str::from_utf8(&text).unwrap_or_default()),
            None => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::from_rfc3339(&text).ok_or_else(|| de::Error::custom("no time"))
    }
}

/// The time zone for dates without one.
#[derive(Clone, Debug)]
pub struct TimeZone(tz::TimeZone);

impl TimeZone {
    pub fn as_jiff(&self) -> &tz::TimeZone {
        &self.0
    }

    /// Returns the time at which clocks in the zone show `local`, or `None` outside the years -9999 to 9999.
    pub fn at(&self, local: civil::DateTime) -> Option<Timestamp> {
        self.0.to_timestamp(local).ok().map(|timestamp| Timestamp(timestamp.as_millisecond()))
    }

    /// Returns what clocks show at a time; none outside the years -9999 to 9999.
    pub fn local_time(&self, at: Timestamp) -> Option<LocalTime> {
        LocalTime::at(at.0, &self.0)
    }

    /// Returns what clocks show at a time as text; in UTC outside the years that have a local time.
    pub fn local_text(&self, at: Timestamp) -> String {
        self.local_time(at).map_or_else(|| at.to_string(), |local| local.to_string())
    }

    pub fn today(&self, now: Timestamp) -> Date {
        let timestamp = jiff::Timestamp::from_millisecond(now.0).unwrap_or_default();
        self.0.to_datetime(timestamp).date()
    }

    /// Returns true at the start of a day.
    pub fn is_midnight(&self, at: Timestamp) -> bool {
        let start = self.0.to_timestamp(self.today(at).to_datetime(civil::Time::midnight()));
        start.is_ok_and(|start| start.as_millisecond() == at.0)
    }

    /// Returns the start of the next day.
    pub fn tomorrow(&self, now: Timestamp) -> Timestamp {
        let begin = self
            .today(now)
            .tomorrow()
            .ok()
            .and_then(|day| self.0.to_timestamp(day.to_datetime(civil::Time::midnight())).ok());
        begin.map_or(now, |begin| Timestamp(begin.as_millisecond()))
    }
}

impl std::str::FromStr for TimeZone {
    type Err = String;

    /// Reads a name of the IANA database, or a fixed offset such as `+08:00`, `UTC+8` and `GMT-0330`.
    fn from_str(text: &str) -> Result<Self, String> {
        // Other characters are those of rules and paths.
        let is_name = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/_+-".contains(&byte));
        let zone = match fixed_offset(text) {
            Some(offset) => Some(tz::TimeZone::fixed(offset)),
            None => tz::TimeZone::get(text).ok().filter(|_| is_name),
        };
        zone.map(Self).ok_or_else(|| format!("`{text}` is neither a time zone such as Asia/Shanghai nor an offset"))
    }
}

/// Reads an offset ahead of UTC. The signs of names such as `Etc/GMT-8` mean the opposite, and are not read here.
fn fixed_offset(text: &str) -> Option<tz::Offset> {
    let is_utc = |prefix: &&str| ["UTC", "GMT"].iter().any(|name| name.eq_ignore_ascii_case(prefix));
    let offset = text.get(..3).filter(is_utc).map_or(text, |prefix| &text[prefix.len()..]);
    let (sign, digits) = match offset.strip_prefix('+') {
        Some(digits) => (1, digits),
        // Forms decode a plus sign as a space.
        None if offset.len() < text.len() && offset.starts_with(' ') => (1, offset.trim_start_matches([' ', '+'])),
        None => (-1, offset.strip_prefix(['-', '−'])?),
    };
    let (hours, minutes) = match digits.split_once(':') {
        Some(parts) => parts,
        None if digits.len() > 2 => digits.split_at_checked(digits.len() - 2)?,
        None => (digits, "00"),
    };
    let number = |digits: &str, lengths: RangeInclusive<usize>| {
        let is_number = lengths.contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse::<i32>().ok().filter(|_| is_number)
    };
    let (hours, minutes) = (number(hours, 1..=2)?, number(minutes, 2..=2).filter(|minutes| *minutes < 60)?);
    let total = hours * 60 + minutes;
    // Kiribati is furthest from UTC.
    if total > 14 * 60 { None } else { tz::Offset::from_seconds(sign * total * 60).ok() }
}

/// The IANA name, or the offset as `+08:00`.
impl std::fmt::Display for TimeZone {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.0.iana_name(), self.0.to_fixed_offset()) {
            (None, Ok(offset)) => {
                let minutes = offset.seconds() / 60;
                let sign = if minutes < 0 { '-' } else { '+' };
                write!(formatter, "{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60)
            }
            (name, _) => formatter.write_str(name.unwrap_or("UTC")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_dates_of_http() {
        let time = Timestamp::from_rfc3339("2026-01-02T03:04:05.678Z").unwrap();
        assert_eq!(time.http_date().as_deref(), Some("Fri, 02 Jan 2026 03:04:05 GMT"));
    }

    #[test]
    fn formats_milliseconds_with_three_decimals() {
        for (microseconds, written) in [(1_234, "1.234"), (4_100, "4.1"), (18_014, "18.014"), (3, "0.003"), (0, "0")] {
            assert_eq!(decimal_milliseconds(Duration::from_micros(microseconds)).to_string(), written);
        }
        assert_eq!(decimal_milliseconds(Duration::from_nanos(1_234_567)).to_string(), "1.235");
    }

    #[test]
    fn days_follow_the_time_zone_of_the_service() {
        let zone: TimeZone = "Asia/Shanghai".parse().unwrap();
        let now = Timestamp::parse("2026-01-02T15:59:59.999Z", &zone).unwrap();
        assert_eq!(zone.tomorrow(now).to_string(), "2026-01-02T16:00:00.000Z");
        assert_eq!(zone.tomorrow(zone.tomorrow(now)).to_string(), "2026-01-03T16:00:00.000Z");
    }

    #[test]
    fn local_times_have_the_offset_of_their_zone() {
        let local =
            |zone: &str, time| zone.parse::<TimeZone>().unwrap().local_time(Timestamp::from_rfc3339(time).unwrap());
        let summer = local("Asia/Shanghai", "1988-07-10T14:30:00.999Z").unwrap();
        assert_eq!((summer.to_string().as_str(), summer.offset_seconds()), ("1988-07-10T23:30:00+09:00", 32_400));
        let kathmandu = local("Asia/Kathmandu", "2026-02-03T20:02:08Z").unwrap();
        assert_eq!(kathmandu.to_string(), "2026-02-04T01:47:08+05:45");
        assert_eq!(kathmandu.date().to_string(), "2026-02-04");
        assert_eq!(local("UTC", "2026-02-03T20:02:08Z").unwrap().to_string(), "2026-02-03T20:02:08+00:00");
        let zone: TimeZone = "Asia/Shanghai".parse().unwrap();
        assert_eq!([i64::MIN, i64::MAX].map(|at| zone.local_time(Timestamp(at))), [None, None]);
    }

    #[test]
    fn zones_are_names_or_offsets() {
        for (text, name) in [
            ("Asia/Shanghai", "Asia/Shanghai"),
            ("asia/shanghai", "Asia/Shanghai"),
            ("PRC", "PRC"),
            ("Etc/GMT-8", "Etc/GMT-8"),
            ("UTC", "UTC"),
            ("+08:00", "+08:00"),
            ("+0800", "+08:00"),
            ("UTC+8", "+08:00"),
            ("GMT+08:00", "+08:00"),
            ("gmt 08:00", "+08:00"),
            ("GMT-3", "-03:00"),
            ("−03:30", "-03:30"),
            ("UTC+545", "+05:45"),
            ("-00:30", "-00:30"),
            ("+14:00", "+14:00"),
        ] {
            assert_eq!(text.parse::<TimeZone>().map(|zone| zone.to_string()).as_deref(), Ok(name), "{text}");
        }
        for text in
            ["", "+", "UTC+", "08:00", " 08:00", "+8:0", "+08:60", "+15", "+14:01", "+008:00", "++8", "CST-8x", "+１"]
        {
            assert!(text.parse::<TimeZone>().is_err(), "{text}");
        }
        let zone: TimeZone = "GMT+08:00".parse().unwrap();
        let local = zone.local_time(Timestamp::from_rfc3339("2026-02-03T20:02:08Z").unwrap()).unwrap();
        assert_eq!(local.to_string(), "2026-02-04T04:02:08+08:00");
    }

    mod properties {
        use proptest::prelude::*;

        use super::*;

        proptest! {
            #[test]
            fn written_times_parse_to_themselves(milliseconds in 100_000_000_000_i64..10_000_000_000_000) {
                let time = Timestamp(milliseconds);
                prop_assert_eq!(Timestamp::from_rfc3339(&time.to_string()), Some(time));
                let zone = "Asia/Shanghai".parse().unwrap();
                prop_assert_eq!(Timestamp::parse(&time.to_string(), &zone), Ok(time));
                prop_assert_eq!(Timestamp::parse(&milliseconds.to_string(), &zone), Ok(time));
            }

            #[test]
            fn times_are_written_as_jiff_writes_them(milliseconds in -377_705_023_201_000_i64..253_402_207_200_000) {
                let timestamp = jiff::Timestamp::from_millisecond(milliseconds).unwrap();
                prop_assert_eq!(Timestamp(milliseconds).to_string(), format!("{timestamp:.3}"));
                prop_assert_eq!(serde_json::json!(Timestamp(milliseconds)), Timestamp(milliseconds).to_string());
            }

            #[test]
            fn parses_or_rejects_any_text(text in "-?[0-9]{0,20}|[0-9TZ:+./ -]{0,32}|.*") {
                if let Ok(time) = Timestamp::parse(&text, &"Asia/Shanghai".parse().unwrap()) {
                    prop_assert_eq!(Timestamp::from_rfc3339(&time.to_string()), Some(time), "{}", time);
                }
            }
        }
    }
}
