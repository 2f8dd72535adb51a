//! Values that are parsed once at the boundary and then used everywhere.
//!
//! A function that takes one of these need not validate it again. Nothing here uses the store, the network or the
//! clock.

mod pluralize;
mod credential;
mod currency;
mod cursor;
mod email;
mod fen;
mod host_pattern;
mod json;
mod micro_amount;
mod network;
mod origin_pattern;
mod pem;
mod phone;
mod plain_number;
mod quiet_hours;
mod text;
mod time;
mod time_input;

use std::fmt::Display;

use serde::Serialize;

pub use credential::{
    Secret, fill_random, hex, random_bytes, random_digits, random_hex, random_text, sha256, sha256_hex, sha256_of_parts,
};
pub use currency::{Currency, InvalidCurrency};
pub use cursor::{Cursor, CursorRange, CursorSlice};
pub use email::EmailAddress;
pub use fen::{Fen, InvalidAmount};
pub use host_pattern::HostPattern;
pub use json::JsonText;
pub use liuyao::{ChineseScript, Date, LocalTime, Locale};
pub use micro_amount::{InvalidMicroAmount, MicroAmount};
pub(crate) use named_enum::{NamedEnum, named_enum};
pub use network::{is_internal, parse_network};
pub use origin_pattern::OriginPattern;
pub use pem::{PemBlock, PemFault, looks_like_key, parse_pem, without_byte_order_mark};
pub use phone::{PhoneNumber, PhoneRules, Region};
pub use plain_number::plain_number;
pub use pluralize::pluralize;
pub use quiet_hours::QuietHours;
pub use screening::is_invisible;
pub use text::{FORMULA_STARTS, clean, clean_as_sent, clean_line, clean_lines};
pub use time::{TimeZone, Timestamp, decimal_milliseconds, ensure_ordered, milliseconds};
pub use time_input::{TimeInput, time_range};

/// Serialises a value as text, such as a row's number, because some clients' numbers are floats.
pub fn as_text<S: serde::Serializer>(value: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// A user's id. Serialised as a decimal string, because some clients' numbers are floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UserId(pub i64);

impl Serialize for UserId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(itoa::Buffer::new().format(self.0))
    }
}

impl std::fmt::Display for UserId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(formatter)
    }
}

/// The parts of a client's language tag that [`Locale`] lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LanguageTag {
    /// The ISO 3166 code of the region, in capitals.
    pub region: Option<[u8; 2]>,
    /// True for Chinese in traditional characters.
    pub is_traditional: bool,
}

impl LanguageTag {
    /// Reads a tag such as `zh-Hant-TW`.
    pub fn parse(tag: &str) -> Self {
        let mut parts = tag.trim().split(['-', '_']);
        let is_chinese = parts.next().is_some_and(|language| language.eq_ignore_ascii_case("zh"));
        let (mut region, mut script) = (None, None);
        for part in parts {
            match part.as_bytes() {
                [one, two] if part.bytes().all(|letter| letter.is_ascii_alphabetic()) => {
                    region.get_or_insert([one.to_ascii_uppercase(), two.to_ascii_uppercase()]);
                }
                [_, _, _, _] => script = Some(part.to_ascii_lowercase()),
                _ => {}
            }
        }
        let is_traditional = match script.as_deref() {
            Some(script) => script == "hant",
            None => matches!(region.as_ref(), Some(b"TW" | b"HK" | b"MO")),
        };
        Self { region, is_traditional: is_chinese && is_traditional }
    }

    /// Returns the code of the region.
    pub fn region_code(self) -> Option<String> {
        self.region.map(|code| String::from_utf8_lossy(&code).into_owned())
    }
}

named_enum! {
    /// The part of the service that a suspension concerns.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum SuspensionScope {
        /// Every use of the account.
        Account = "account",
        /// Changes of the nickname.
        Nickname = "nickname",
        /// Nothing is refused, but moderators review every text.
        Review = "review",
    }
}

/// One page of a numbered list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRequest {
    /// The number of the first page: 1, or 0 for clients with zero-based pages.
    pub first: u32,
    pub number: u32,
    pub size: u32,
}

impl PageRequest {
    /// Returns the first page of this size.
    pub fn of_newest(size: u32) -> Self {
        Self { first: 1, number: 1, size }
    }

    pub fn offset(self) -> i64 {
        i64::from(self.number.saturating_sub(self.first)) * i64::from(self.size)
    }

    /// Returns the total of all pages if this one, with this many rows, must be the last.
    pub fn total_if_last(self, rows: u32) -> Option<i64> {
        let is_last = rows < self.size && (rows > 0 || self.number == self.first);
        is_last.then(|| self.offset() + i64::from(rows))
    }
}

/// A page's rows and how many rows there are on all pages.
#[derive(Clone, Debug)]
pub struct Paginated<T> {
    pub items: Vec<T>,
    pub total: i64,
}
