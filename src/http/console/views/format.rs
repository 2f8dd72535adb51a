//! Formatting of times, numbers, money, sizes and masked values.

use std::fmt::Write as _;

use maud::{Markup, html};

use super::texts::{self, Language};
pub use crate::types::Timestamp;
use crate::types::{Currency, LocalTime, TimeZone};

/// A time zone with the offset that its label shows.
#[derive(Clone, Debug)]
pub struct Zone {
    /// The IANA name.
    pub name: String,
    times: TimeZone,
    offset_seconds: i64,
}

impl Zone {
    /// The label shows the offset at this time.
    pub fn new(zone: &TimeZone, at: Timestamp) -> Self {
        let offset_seconds = zone.local_time(at).map_or(0, LocalTime::offset_seconds);
        Self { name: zone.to_string(), times: zone.clone(), offset_seconds }
    }

    /// Returns the offset as `UTC+8` or `UTC+5:30`.
    pub fn label(&self) -> String {
        let sign = if self.offset_seconds < 0 { '-' } else { '+' };
        let minutes = self.offset_seconds.abs() / 60;
        let (hours, minutes) = (minutes / 60, minutes % 60);
        if minutes == 0 { format!("UTC{sign}{hours}") } else { format!("UTC{sign}{hours}:{minutes:02}") }
    }
}

/// Formats a time as `2026-01-02 11:04:05` in the zone.
pub fn local(at: Timestamp, zone: &Zone) -> String {
    let Some(local) = zone.times.local_time(at) else { return at.to_string() };
    local.to_string().chars().take(19).collect::<String>().replace('T', " ")
}

/// Formats a day as `2026-01-02` in the zone.
pub fn day(at: Timestamp, zone: &Zone) -> String {
    local(at, zone).chars().take(10).collect()
}

/// Renders a time without its zone.
pub fn time(at: Timestamp, zone: &Zone) -> Markup {
    let local = local(at, zone);
    let (date, clock) = local.split_once(' ').unwrap_or((&local, ""));
    // Narrow columns break the line between date and clock only.
    html! { time datetime=(at) title=(at) { span.date { (date) } " " (clock) } }
}

/// Renders a time with its zone.
pub fn time_with_zone(at: Timestamp, zone: &Zone) -> Markup {
    html! { span.when { (time(at, zone)) " " span.zone { (zone.label()) } } }
}

/// Renders the distance of a time from now, with the exact time and zone as its title.
pub fn ago(at: Timestamp, now: Timestamp, zone: &Zone, language: Language) -> Markup {
    let exact = format!("{} {}", local(at, zone), zone.label());
    html! { time datetime=(at) title=(exact) { (texts::distance(language, at.0 - now.0)) } }
}

/// Formats a number with thin groups of three digits: `12 345`.
pub fn number(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3 + 1);
    if number < 0 {
        grouped.push('−');
    }
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push('\u{202f}');
        }
        grouped.push(digit);
    }
    grouped
}

/// Formats a change with its sign: `+60`, `−60`.
pub fn change(delta: i64) -> String {
    if delta > 0 { format!("+{}", number(delta)) } else { number(delta) }
}

/// Returns the text with a capital at its beginning.
pub fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// A count that stops at a cap.
#[derive(Clone, Copy, Debug, Default)]
pub struct ShownCount {
    pub value: u64,
    pub is_capped: bool,
}

impl ShownCount {
    pub const fn exact(value: u64) -> Self {
        Self { value, is_capped: false }
    }

    /// Returns a count that was taken up to one more than `cap`.
    pub fn up_to(cap: u32, counted: u64) -> Self {
        let cap = u64::from(cap);
        Self { value: counted.min(cap), is_capped: counted > cap }
    }

    /// Formats the count: `10 000+` if it stopped at the cap.
    pub fn text(self) -> String {
        let digits = number(i64::try_from(self.value).unwrap_or(i64::MAX));
        if self.is_capped { format!("{digits}+") } else { digits }
    }
}

/// An amount of money in hundredths of its currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShownMoney(pub i64, pub Currency);

impl ShownMoney {
    /// Returns an amount in fen.
    pub const fn yuan(fen: i64) -> Self {
        Self(fen, Currency::CNY)
    }

    /// Formats the amount as `¥1 234.50`, or `1 234.50 USD` in another currency.
    pub fn text(self) -> String {
        let sign = if self.0 < 0 { "−" } else { "" };
        let whole = number(i64::try_from(self.0.unsigned_abs() / 100).unwrap_or(i64::MAX));
        let part = self.0.unsigned_abs() % 100;
        if self.1 == Currency::CNY {
            format!("{sign}¥{whole}.{part:02}")
        } else {
            format!("{sign}{whole}.{part:02} {}", self.1)
        }
    }

    /// Formats the amount for a spreadsheet: `1234.50`, or `1234.50 USD` in another currency.
    pub fn csv(self) -> String {
        let sign = if self.0 < 0 { "-" } else { "" };
        let amount = format!("{sign}{}.{:02}", self.0.unsigned_abs() / 100, self.0.unsigned_abs() % 100);
        if self.1 == Currency::CNY { amount } else { format!("{amount} {}", self.1) }
    }

    /// Formats the amount as the value of a form field: `1234.50`.
    pub fn plain(self) -> String {
        format!("{}.{:02}", self.0 / 100, self.0.unsigned_abs() % 100)
    }
}

/// Formats a figure: an amount of money if it has a currency.
pub fn figure(value: i64, currency: Option<Currency>) -> String {
    currency.map_or_else(|| number(value), |currency| ShownMoney(value, currency).text())
}

/// Formats a number of bytes: `1.4 GiB`.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut tenths = u128::from(bytes) * 10;
    let mut unit = 0;
    while tenths >= 10_240 && unit + 1 < UNITS.len() {
        tenths /= 1024;
        unit += 1;
    }
    match unit {
        0 => format!("{bytes} B"),
        _ if tenths >= 1000 => format!("{} {}", tenths / 10, UNITS[unit]),
        _ => format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit]),
    }
}

/// Formats a duration in microseconds: `850 µs`, `12.3 ms`, `4.2 s`.
pub fn duration(microseconds: i64) -> String {
    match microseconds {
        ..1000 => format!("{microseconds} µs"),
        1000..1_000_000 => format!("{}.{} ms", microseconds / 1000, microseconds % 1000 / 100),
        _ => format!("{}.{} s", microseconds / 1_000_000, microseconds % 1_000_000 / 100_000),
    }
}

/// Formats a duration that was measured in milliseconds: `< 1 ms`, `850 ms`, `4.2 s`.
pub fn milliseconds(milliseconds: i64) -> String {
    match milliseconds {
        ..=0 => "< 1 ms".to_owned(),
        1..1000 => format!("{milliseconds} ms"),
        _ => duration(milliseconds.saturating_mul(1000)),
    }
}

/// Formats tenths of a percent: `99.7 %`.
pub fn per_mille(share: i64) -> String {
    format!("{}.{} %", share / 10, (share % 10).abs())
}

/// Encodes a value for a path segment or a query.
pub fn encode(value: &str) -> String {
    let mut encoded = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// Returns an address with these query parameters; empty values are left out.
pub fn with_query(path: &str, parameters: &[(&str, &str)]) -> String {
    let mut address = path.to_owned();
    let mut separator = if path.contains('?') { '&' } else { '?' };
    for (name, value) in parameters.iter().filter(|(_, value)| !value.is_empty()) {
        let _ = write!(address, "{separator}{}={}", encode(name), encode(value));
        separator = '&';
    }
    address
}
