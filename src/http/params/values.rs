//! Types of parameters, each with its parser and JSON Schema.

mod code;
mod json;
mod texts;
mod words;

use std::{fmt::Display, ops::RangeInclusive, str::FromStr, time::Duration};

use serde_json::{Value, json};

pub use code::{EmailCode, VerificationCode};
pub use json::{ClientTimestamp, DivinationData, JsonData};
pub use texts::{
    AiResult, Content, Credential, DeviceName, FeedbackText, FileName, Label, ListedWord, LocalRecordId, Nickname,
    NotificationText, NotificationTitle, Question, RatingNote, Reason, SearchText, SessionNote, SessionTitle,
    Signature, StaffNoteText, UserQuery,
};
pub use words::{AudienceName, CallChoice, DocumentAudience, PayerClientKind, ProofKind, WordType};

use super::{
    Parameter, Rules,
    raw_value::{is_absent, is_same, text},
};
use crate::{
    config::LimitsConfig,
    domain::identity::users::{self, Gender},
    error::{Fault, FieldCode, Result},
    http::{body::RawValue, openapi::schemas::enumerated, request_context::RequestContext},
    types::{EmailAddress, PageRequest, PhoneNumber, Secret, Timestamp, UserId, clean_as_sent},
};

impl Parameter for UserId {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        let id = text(value)?.trim().parse().ok().filter(|id| *id > 0);
        id.map(UserId).ok_or_else(|| Fault::new(FieldCode::InvalidFormat, ("must be a user id", "须为用户 ID")))
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "string", "pattern": "^[0-9]{1,18}$", "example": "10001" })
    }
}

/// The number of a row, such as a notification or a rejected text.
pub struct RowNumber(pub i64);

impl Parameter for RowNumber {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        let id = text(value)?.trim().parse().ok().filter(|id| *id > 0);
        id.map(Self)
            .ok_or_else(|| Fault::new(FieldCode::InvalidFormat, ("must be a number from 1", "须为从 1 起的数字")))
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "string", "pattern": "^[1-9][0-9]{0,17}$", "example": "42" })
    }
}

impl Parameter for PhoneNumber {
    fn read(value: &RawValue<'_>, rules: &Rules<'_>) -> Result<Self, Fault> {
        PhoneNumber::parse(&text(value)?, rules.phone)
    }

    /// Compares parsed numbers, because one number has several spellings.
    fn is_same(one: &RawValue<'_>, other: &RawValue<'_>, rules: &Rules<'_>) -> bool {
        is_same(one, other)
            || matches!((Self::read(one, rules), Self::read(other, rules)), (Ok(one), Ok(other)) if one == other)
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "string", "example": "13800138000" })
    }
}

impl Parameter for EmailAddress {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        EmailAddress::parse(&text(value)?)
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "string", "format": "email", "maxLength": 254, "example": "li.ming@example.com" })
    }
}

/// Parses a whole number within bounds. A number too large for the type is reported as out of range.
///
/// # Errors
/// `invalid_type` for anything but a whole number, `out_of_range`.
pub fn whole_number<T>(value: &RawValue<'_>, bounds: RangeInclusive<T>) -> Result<T, Fault>
where
    T: FromStr + PartialOrd + Display,
{
    let text = text(value)?;
    let text = crate::types::plain_number(text.trim());
    match text.parse() {
        _ if !is_whole_number(&text) => Err(Fault::new(FieldCode::InvalidType, ("must be a whole number", "须为整数"))),
        Ok(number) if bounds.contains(&number) => Ok(number),
        _ => {
            let message = (
                format!("must be from {} to {}", bounds.start(), bounds.end()),
                format!("须在 {} 到 {} 之间", bounds.start(), bounds.end()),
            );
            Err(Fault::new(FieldCode::OutOfRange, message))
        }
    }
}

/// Returns true for digits, and for a number with an exponent that is too large to be written out.
fn is_whole_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_huge = |text: &str| text.parse::<f64>().is_ok_and(|number| number > 1e30);
    digits.starts_with(|first: char| first.is_ascii_digit())
        && (digits.bytes().all(|byte| byte.is_ascii_digit()) || is_huge(digits))
}

impl Parameter for u32 {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        whole_number(value, 0..=Self::MAX)
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX, "example": 1 })
    }
}

/// Names of the page, or of the place in a list, in other APIs. Each kind of list has one of them and rejects the others.
pub const FOREIGN_PAGES: &[&str] = &[
    "after",
    "before",
    "curPage",
    "current",
    "currentPage",
    "cursor",
    "lastId",
    "max_id",
    "next",
    "nextCursor",
    "offset",
    "page",
    "pageIndex",
    "pageNo",
    "pageNum",
    "pageNumber",
    "page_index",
    "page_no",
    "page_num",
    "page_number",
    "since",
    "skip",
    "start",
];

/// The number of a page. A setting says if the first one is 1 or 0.
pub struct PageNumber(pub u32);

impl Parameter for PageNumber {
    const FOREIGN_NAMES: &[&str] = FOREIGN_PAGES;

    fn read(value: &RawValue<'_>, rules: &Rules<'_>) -> Result<Self, Fault> {
        whole_number(value, rules.limits().first_page..=u32::MAX).map(Self)
    }

    fn schema(limits: &LimitsConfig) -> Value {
        let first = limits.first_page;
        json!({ "type": "integer", "minimum": first, "maximum": u32::MAX, "default": first, "example": first })
    }
}

/// The number of items on a page.
pub struct PageSize(pub u32);

impl Parameter for PageSize {
    const FOREIGN_NAMES: &[&str] = &["limit", "pageSize", "page_size", "perPage", "per_page", "size"];

    fn read(value: &RawValue<'_>, rules: &Rules<'_>) -> Result<Self, Fault> {
        whole_number(value, 1..=rules.limits().page_size_max).map(Self)
    }

    fn schema(limits: &LimitsConfig) -> Value {
        json!({ "type": "integer", "minimum": 1, "maximum": limits.page_size_max, "default": limits.page_size, "example": limits.page_size })
    }
}

/// Returns the requested page, with defaults for missing values.
pub fn page(context: &RequestContext, number: Option<PageNumber>, size: Option<PageSize>) -> PageRequest {
    let limits = &context.app.core.config.limits;
    PageRequest {
        first: limits.first_page,
        number: number.map_or(limits.first_page, |PageNumber(number)| number),
        size: size.map_or(limits.page_size, |PageSize(size)| size),
    }
}

/// A boolean, from JSON or in the spellings of forms.
pub struct Flag(pub bool);

impl Parameter for Flag {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        let written = match value {
            RawValue::Json(raw) if matches!(raw.get(), "true" | "false") => raw.get().into(),
            value => text(value)?,
        };
        match written.trim().to_ascii_lowercase().as_str() {
            "true" | "1" | "on" | "yes" => Ok(Self(true)),
            "false" | "0" | "off" | "no" => Ok(Self(false)),
            _ => Err(Fault::new(FieldCode::InvalidType, ("must be true or false", "须为 true 或 false"))),
        }
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "boolean", "example": true })
    }
}

/// A point in time.
pub struct Moment(pub Timestamp);

impl Parameter for Moment {
    fn read(value: &RawValue<'_>, rules: &Rules<'_>) -> Result<Self, Fault> {
        Timestamp::parse(&text(value)?, &rules.limits().time_zone).map(Self)
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "string", "example": "2026-01-02" })
    }
}

/// The age in days at which rows are deleted, at least one.
pub struct DaysToKeep(pub u32);

impl DaysToKeep {
    pub fn as_duration(&self) -> Duration {
        Duration::from_hours(24 * u64::from(self.0))
    }
}

impl Parameter for DaysToKeep {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        whole_number(value, 1..=36_500).map(Self)
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "integer", "minimum": 1, "maximum": 36_500, "example": 180 })
    }
}

/// A trace id: 32 hexadecimal digits, as in W3C Trace Context.
pub struct TraceId(pub String);

impl Parameter for TraceId {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        hexadecimal(value, 32).map(Self)
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "string", "pattern": "^[0-9a-fA-F]{32}$", "example": "4bf92f3577b34da6a3ce929d0e0e4736" })
    }
}

/// The id of a device: 16 hexadecimal digits.
pub struct DeviceId(pub String);

impl Parameter for DeviceId {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        hexadecimal(value, 16).map(Self)
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "string", "pattern": "^[0-9a-fA-F]{16}$", "example": "9f2c1b7d03aa41c5" })
    }
}

/// Parses this many hexadecimal digits, in lower case.
fn hexadecimal(value: &RawValue<'_>, digits: usize) -> Result<String, Fault> {
    let id = text(value)?.trim().to_ascii_lowercase();
    if id.len() == digits && id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        Ok(id)
    } else {
        Err(Fault::new(
            FieldCode::InvalidFormat,
            (format!("must be {digits} hexadecimal digits"), format!("须为 {digits} 位十六进制数字")),
        ))
    }
}

impl Parameter for Gender {
    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        match text(value)?.trim().to_lowercase().as_str() {
            "unknown" | "0" | "未知" | "保密" => Ok(Self::Unknown),
            "male" | "1" | "男" | "m" => Ok(Self::Male),
            "female" | "2" | "女" | "f" => Ok(Self::Female),
            "other" | "9" | "其他" => Ok(Self::Other),
            _ => Err(Fault::new(
                FieldCode::UnknownValue,
                ("must be unknown, male, female or other", "须为 unknown、male、female 或 other"),
            )),
        }
    }

    fn schema(_: &LimitsConfig) -> Value {
        enumerated("Gender", "female")
    }
}

/// A date of birth, or `None` to remove it.
pub struct Birthday(pub Option<String>);

impl Parameter for Birthday {
    const EMPTY_IS_A_VALUE: bool = true;

    fn read(value: &RawValue<'_>, rules: &Rules<'_>) -> Result<Self, Fault> {
        let text = text(value)?;
        match text.trim() {
            "" => Ok(Self(None)),
            day => users::parse_birthday(day, &rules.limits().time_zone, rules.today()).map(|day| Self(Some(day))),
        }
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "string", "example": "1990-05-17" })
    }
}

/// A value that a blank text deletes.
pub struct Clearable<T>(pub Option<T>);

impl<T: Parameter> Parameter for Clearable<T> {
    const EMPTY_IS_A_VALUE: bool = true;
    const MAY_BE_NULL_WORD: bool = T::MAY_BE_NULL_WORD;

    fn read(value: &RawValue<'_>, rules: &Rules<'_>) -> Result<Self, Fault> {
        if is_absent::<T>(value) { Ok(Self(None)) } else { T::read(value, rules).map(|value| Self(Some(value))) }
    }

    fn schema(limits: &LimitsConfig) -> Value {
        T::schema(limits)
    }
}

impl Parameter for Secret {
    // A token that the app does not have is an invalid one.
    const MAY_BE_NULL_WORD: bool = true;

    fn read(value: &RawValue<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        // No length limit: the operation treats a too long token like any invalid one.
        clean_as_sent(&text(value)?, usize::MAX).map(Self::from_text)
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "string", "example": "kX8c0Qy3m1dJ7w5uV2sZ9pT4rB6nL0aHfGeYiOjKqWs" })
    }
}
