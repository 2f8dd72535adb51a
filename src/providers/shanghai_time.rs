//! The time format of Chinese providers: `yyyy-MM-dd HH:mm:ss`, always in Shanghai time.
//!
//! The zone is the fixed offset +08:00 and not a look-up. Mainland China has had no summer time since 1991, and a fixed
//! offset cannot fail on a machine without zone data.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};

const SHANGHAI: Offset = Offset::constant(8);

/// Formats the day of a time in epoch milliseconds as `yyyyMMdd`; `None` outside the calendar.
pub fn shanghai_day(milliseconds: i64) -> Option<String> {
    Some(shanghai_text(milliseconds)?[..10].replace('-', ""))
}

/// Formats epoch milliseconds as the provider does; `None` outside the calendar.
pub fn shanghai_text(milliseconds: i64) -> Option<String> {
    let moment = Timestamp::from_millisecond(milliseconds).ok()?;
    let local = SHANGHAI.to_datetime(moment);
    (0..=9999).contains(&local.year()).then(|| local.strftime("%Y-%m-%d %H:%M:%S").to_string())
}

/// Parses the provider's text, which may have fractions of a second, into epoch milliseconds.
pub fn shanghai_milliseconds(text: &str) -> Option<i64> {
    let local = DateTime::strptime("%Y-%m-%d %H:%M:%S%.f", text).ok()?;
    let moment = local.to_zoned(TimeZone::fixed(SHANGHAI)).ok()?;
    Some(moment.timestamp().as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-01-15 16:30:00 in Shanghai.
    const AFTERNOON: i64 = 1_768_465_800_000;

    #[test]
    fn formats_and_parses_shanghai_time() {
        assert_eq!(shanghai_text(AFTERNOON).as_deref(), Some("2026-01-15 16:30:00"));
        assert_eq!(shanghai_milliseconds("2026-01-15 16:30:00"), Some(AFTERNOON));
        assert_eq!(shanghai_milliseconds("2026-01-15 16:30:00.123"), Some(AFTERNOON + 123));
        assert_eq!(shanghai_day(AFTERNOON).as_deref(), Some("20260115"));
        assert_eq!(shanghai_text(0).as_deref(), Some("1970-01-01 08:00:00"));
    }

    #[test]
    fn rejects_other_texts_and_impossible_times() {
        for text in ["", "2026-01-15", "2026-13-01 00:00:00", "2026-01-15T16:30:00Z", "yesterday"] {
            assert_eq!(shanghai_milliseconds(text), None, "{text}");
        }
        assert_eq!(shanghai_text(i64::MAX), None);
        assert_eq!(shanghai_text(i64::MIN), None);
    }
}
