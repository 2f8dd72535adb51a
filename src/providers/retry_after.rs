//! The delay that a provider asks for in `Retry-After`: seconds or a date.
//!
//! It reads no clock: a date is compared with the `Date` of the same response, so a wrong clock does no harm.

use std::time::Duration;

use jiff::fmt::rfc2822;

/// A longer one is treated as a mistake.
const MAX_RETRY_AFTER: Duration = Duration::from_hours(24);

/// Reads the headers through `header`, which returns the value of a name.
pub(super) fn retry_after<'a>(header: impl Fn(&str) -> Option<&'a str>) -> Option<Duration> {
    let value = header("retry-after")?;
    duration(value, 1.0).or_else(|| until(value, header("date")?))
}

/// Parses a number of `1 / units_per_second` seconds, possibly with a fraction.
pub(super) fn duration(text: &str, units_per_second: f64) -> Option<Duration> {
    let number: f64 = text.trim().parse().ok()?;
    Duration::try_from_secs_f64(number / units_per_second).ok().filter(|wait| *wait <= MAX_RETRY_AFTER)
}

fn until(date: &str, now: &str) -> Option<Duration> {
    let parser = rfc2822::DateTimeParser::new();
    let (date, now) = (parser.parse_timestamp(date).ok()?, parser.parse_timestamp(now).ok()?);
    let wait = u64::try_from(date.as_second() - now.as_second()).ok()?;
    Some(Duration::from_secs(wait)).filter(|wait| *wait <= MAX_RETRY_AFTER)
}
