//! The kinds of value that parameters have: how each is read, and its JSON Schema.

use std::{fmt::Display, ops::RangeInclusive, str::FromStr, time::Duration};

use serde_json::{Value, json};

use super::{Parameter, Rules, is_literal, is_same, text, text_of};
use crate::{
    config::Limits,
    error::{Fault, FieldCode, Result},
    http::{body::Given, call::Call},
    ops::{
        audit::LONGEST_REASON,
        codes::Purpose,
        moderation::engine::ContentType,
        users::{self, Gender},
    },
    types::{
        EmailAddress, JsonText, Page, PhoneNumber, Secret, Timestamp, UserId, clean, clean_as_sent, clean_line,
        clean_lines,
    },
};

impl Parameter for UserId {
    fn read(given: &Given<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        let id = text(given)?.trim().parse().ok().filter(|id| *id > 0);
        id.map(UserId).ok_or_else(|| Fault::new(FieldCode::InvalidFormat, "must be a user id"))
    }

    fn schema(_: &Limits) -> Value {
        json!({ "type": ["string", "integer"], "pattern": "^[0-9]{1,18}$", "minimum": 1, "example": "10001" })
    }
}

/// The number by which a thing is called that is one of many: a notification, a refused text.
pub struct RowNumber(pub i64);

impl Parameter for RowNumber {
    fn read(given: &Given<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        let id = text(given)?.trim().parse().ok().filter(|id| *id > 0);
        id.map(Self).ok_or_else(|| Fault::new(FieldCode::InvalidFormat, "must be a number from 1"))
    }

    fn schema(_: &Limits) -> Value {
        json!({ "type": ["string", "integer"], "pattern": "^[1-9][0-9]{0,17}$", "minimum": 1, "example": "42" })
    }
}

impl Parameter for PhoneNumber {
    fn read(given: &Given<'_>, rules: &Rules<'_>) -> Result<Self, Fault> {
        PhoneNumber::parse(&text(given)?, rules.phone)
    }

    /// Two spellings of one number are one value.
    fn is_same(one: &Given<'_>, other: &Given<'_>, rules: &Rules<'_>) -> bool {
        is_same(one, other)
            || matches!((Self::read(one, rules), Self::read(other, rules)), (Ok(one), Ok(other)) if one == other)
    }

    fn schema(_: &Limits) -> Value {
        json!({ "type": ["string", "integer"], "example": "13800138000" })
    }
}

impl Parameter for EmailAddress {
    fn read(given: &Given<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        EmailAddress::parse(&text(given)?)
    }

    fn schema(_: &Limits) -> Value {
        json!({ "type": "string", "format": "email", "maxLength": 254, "example": "li.ming@example.com" })
    }
}

/// What a code is for.
impl Parameter for Purpose {
    fn read(given: &Given<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        one_of(given, &Purpose::ALL.map(|purpose| (purpose.name(), purpose)))
    }

    fn schema(_: &Limits) -> Value {
        let names = Purpose::ALL.map(Purpose::name);
        json!({ "type": "string", "enum": names, "default": "sign_in", "example": "sign_in" })
    }
}

/// One of a few words.
///
/// # Errors
/// `unknown_value`, with the words.
pub fn one_of<T: Copy>(given: &Given<'_>, words: &[(&str, T)]) -> Result<T, Fault> {
    let text = text(given)?;
    if let Some((_, value)) = words.iter().find(|(word, _)| *word == text.trim()) {
        return Ok(*value);
    }
    let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
    Err(Fault::new(FieldCode::UnknownValue, format!("must be one of: {}", words.join(", "))))
}

/// A whole number within bounds. One that is too long for the machine is told the bounds like any other outside of them.
///
/// # Errors
/// `invalid_type` for what is no whole number, `out_of_range`.
pub fn whole_number<T>(given: &Given<'_>, bounds: RangeInclusive<T>) -> Result<T, Fault>
where
    T: FromStr + PartialOrd + Display,
{
    let text = text(given)?;
    let text = text.trim();
    match text.parse() {
        _ if !is_whole_number(text) => Err(Fault::new(FieldCode::InvalidType, "must be a whole number")),
        Ok(number) if bounds.contains(&number) => Ok(number),
        _ => {
            let message = format!("must be from {} to {}", bounds.start(), bounds.end());
            Err(Fault::new(FieldCode::OutOfRange, message))
        }
    }
}

fn is_whole_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

impl Parameter for u32 {
    fn read(given: &Given<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        whole_number(given, 0..=Self::MAX)
    }

    fn schema(_: &Limits) -> Value {
        json!({ "type": ["integer", "string"], "minimum": 0, "maximum": u32::MAX, "example": 1 })
    }
}

/// The number of a page, from 1.
pub struct PageNumber(pub u32);

impl Parameter for PageNumber {
    fn read(given: &Given<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        whole_number(given, 1..=u32::MAX).map(Self)
    }

    fn schema(_: &Limits) -> Value {
        json!({ "type": ["integer", "string"], "minimum": 1, "maximum": u32::MAX, "default": 1, "example": 1 })
    }
}

/// The number of items on a page.
pub struct PageSize(pub u32);

impl Parameter for PageSize {
    fn read(given: &Given<'_>, rules: &Rules<'_>) -> Result<Self, Fault> {
        whole_number(given, 1..=rules.limits().page_size_max).map(Self)
    }

    fn schema(limits: &Limits) -> Value {
        json!({ "type": ["integer", "string"], "minimum": 1, "maximum": limits.page_size_max, "default": limits.page_size, "example": limits.page_size })
    }
}

/// The page that was asked for, with the defaults for what was not.
pub fn page(call: &Call, number: Option<PageNumber>, size: Option<PageSize>) -> Page {
    Page {
        number: number.map_or(1, |PageNumber(number)| number),
        size: size.map_or(call.app.config.limits.page_size, |PageSize(size)| size),
    }
}

/// Yes or no: JSON's own `true` and `false`, and what a form writes for them.
pub struct Flag(pub bool);

impl Parameter for Flag {
    fn read(given: &Given<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        let written = match given {
            Given::Json(raw) if matches!(raw.get(), "true" | "false") => raw.get().into(),
            given => text(given)?,
        };
        match written.trim().to_ascii_lowercase().as_str() {
            "true" | "1" | "on" | "yes" => Ok(Self(true)),
            "false" | "0" | "off" | "no" => Ok(Self(false)),
            _ => Err(Fault::new(FieldCode::InvalidType, "must be true or false")),
        }
    }

    fn schema(_: &Limits) -> Value {
        json!({ "type": ["boolean", "string", "integer"], "example": true })
    }
}

/// A point in time.
pub struct Moment(pub Timestamp);

impl Parameter for Moment {
    fn read(given: &Given<'_>, rules: &Rules<'_>) -> Result<Self, Fault> {
        Timestamp::parse(&text(given)?, &rules.limits().time_zone).map(Self)
    }

    fn schema(_: &Limits) -> Value {
        json!({ "type": ["string", "integer"], "example": "2026-01-02" })
    }
}

/// The age in days at which rows are deleted: at least one.
pub struct DaysToKeep(pub u32);

impl DaysToKeep {
    pub fn as_duration(&self) -> Duration {
        Duration::from_hours(24 * u64::from(self.0))
    }
}

impl Parameter for DaysToKeep {
    fn read(given: &Given<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        whole_number(given, 1..=36_500).map(Self)
    }

    fn schema(_: &Limits) -> Value {
        json!({ "type": ["integer", "string"], "minimum": 1, "maximum": 36_500, "example": 180 })
    }
}

/// A trace id: 32 hexadecimal digits, as in W3C Trace Context.
pub struct TraceId(pub String);

impl Parameter for TraceId {
    fn read(given: &Given<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        let id = text(given)?.trim().to_ascii_lowercase();
        if id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            Ok(Self(id))
        } else {
            Err(Fault::new(FieldCode::InvalidFormat, "must be 32 hexadecimal digits"))
        }
    }

    fn schema(_: &Limits) -> Value {
        json!({ "type": "string", "pattern": "^[0-9a-fA-F]{32}$", "example": "4bf92f3577b34da6a3ce929d0e0e4736" })
    }
}

/// The id of a device: 16 hexadecimal digits.
pub struct DeviceId(pub String);

impl Parameter for DeviceId {
    fn read(given: &Given<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        let id = text(given)?.trim().to_ascii_lowercase();
        if id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            Ok(Self(id))
        } else {
            Err(Fault::new(FieldCode::InvalidFormat, "must be 16 hexadecimal digits"))
        }
    }

    fn schema(_: &Limits) -> Value {
        json!({ "type": "string", "pattern": "^[0-9a-fA-F]{16}$", "example": "9f2c1b7d03aa41c5" })
    }
}

/// The name of a file.
pub struct FileName(pub String);

impl Parameter for FileName {
    fn read(given: &Given<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        match clean(&text(given)?, 100)? {
            name if name.is_empty() => Err(Fault::new(FieldCode::InvalidFormat, "must be the name of a file")),
            name => Ok(Self(name)),
        }
    }

    fn schema(_: &Limits) -> Value {
        json!({ "type": "string", "maxLength": 100, "example": "swagger-ui.css" })
    }
}

/// Texts that are trimmed, cleaned in their way, and no longer than their setting says.
macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident($limit:expr), $clean:ident, $empty:literal, $example:literal;)*) => {$(
        $(#[$doc])*
        pub struct $name(pub String);

        impl Parameter for $name {
            const EMPTY_IS_A_VALUE: bool = $empty;

            fn read(given: &Given<'_>, rules: &Rules<'_>) -> Result<Self, Fault> {
                let limit: fn(&Limits) -> usize = $limit;
                $clean(&text(given)?, limit(rules.limits())).map(Self)
            }

            fn schema(limits: &Limits) -> Value {
                let limit: fn(&Limits) -> usize = $limit;
                json!({ "type": "string", "maxLength": limit(limits), "example": $example })
            }
        }
    )*};
}

texts! {
    Nickname(|limits| limits.nickname as usize), clean_line, true, "青山";
    Signature(|limits| limits.signature as usize), clean_lines, true, "心静则明";
    Question(|limits| limits.question as usize), clean, false, "今年换工作合适吗？";
    /// A word of the local list of content moderation.
    ListedWord(|limits| limits.word as usize), clean, false, "赌博";
    /// A text that is judged for its own sake.
    Content(|_| 2_000), clean, false, "今年换工作合适吗？";
    /// A short name of the client's own choice, such as a question type.
    Label(|limits| limits.label as usize), clean_line, false, "career";
    /// The client's own id of a record, which it must be able to name again whatever is in it.
    LocalRecordId(|limits| limits.label as usize), clean_as_sent, false, "1746612345678";
    /// What a device calls itself.
    DeviceName(|_| 64), clean_line, false, "Ming's phone";
    /// Why an administrator does something.
    Reason(|_| LONGEST_REASON), clean, false, "compensation for a failed cast";
    FeedbackText(|limits| limits.feedback as usize), clean, false, "请加上小六壬。";
    NotificationTitle(|limits| limits.notification_title as usize), clean, false, "六十四卦全新解读";
    NotificationText(|limits| limits.notification_text as usize), clean, false, "更新后即可使用。";
    /// A name or a password, as it is compared and never kept.
    Credential(|_| 256), clean_as_sent, false, "correct horse battery staple";
}

/// A model's answer that the client stores. Its limit is one of bytes.
pub struct AiResult(pub String);

impl Parameter for AiResult {
    const EMPTY_IS_A_VALUE: bool = true;

    fn read(given: &Given<'_>, rules: &Rules<'_>) -> Result<Self, Fault> {
        let limit = rules.limits().ai_result.as_usize();
        let text = clean_as_sent(&text(given)?, limit)?;
        if text.len() > limit {
            return Err(Fault::new(FieldCode::TooLong, format!("must be at most {limit} bytes long")));
        }
        Ok(Self(text))
    }

    fn schema(limits: &Limits) -> Value {
        json!({ "type": "string", "maxLength": limits.ai_result.as_usize(), "example": "水雷屯：万事起头难……" })
    }
}

impl Parameter for ContentType {
    fn read(given: &Given<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        one_of(given, &Self::ALL.map(|content| (content.as_str(), content)))
    }

    fn schema(_: &Limits) -> Value {
        json!({ "type": "string", "enum": ContentType::ALL.map(ContentType::as_str), "example": "question" })
    }
}

/// Characters in a code, blanks among them.
const CODE: usize = 32;

/// A verification code. Wrong ones are for the operation to refuse; here only what no code can look like. Digits are
/// read in whatever width an input method writes them, and what people put between them is passed over.
pub struct VerificationCode {
    text: String,
    is_number: bool,
}

impl VerificationCode {
    /// The code, of so many digits: one that came as a number has lost the zeros that it began with.
    pub fn of_digits(self, digits: usize) -> String {
        let Self { text, is_number } = self;
        if is_number { format!("{text:0>digits$}") } else { text }
    }
}

impl Parameter for VerificationCode {
    fn read(given: &Given<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        let written = clean(&text(given)?, CODE)?;
        let no_code = || Fault::new(FieldCode::InvalidFormat, "must be digits");
        let is_between = |character: char| character.is_whitespace() || "-‐‑–－".contains(character);
        // A sign is nothing that stands between digits.
        if written.starts_with(is_between) || written.ends_with(is_between) {
            return Err(no_code());
        }
        let digits = written.chars().filter(|character| !is_between(*character)).map(ascii_digit);
        let text: String = digits.collect::<Option<_>>().ok_or_else(no_code)?;
        if text.len() > 16 {
            return Err(Fault::new(FieldCode::TooLong, "must be at most 16 digits long"));
        }
        Ok(Self { text, is_number: matches!(given, Given::Json(raw) if !raw.get().starts_with('"')) })
    }

    fn schema(_: &Limits) -> Value {
        json!({ "type": ["string", "integer"], "pattern": "^[0-9]{1,16}$", "example": "246810" })
    }
}

/// The digit that a character is, be it a full-width one.
fn ascii_digit(character: char) -> Option<char> {
    match character {
        '0'..='9' => Some(character),
        '０'..='９' => char::from_digit(character as u32 - '０' as u32, 10),
        _ => None,
    }
}

impl Parameter for Gender {
    fn read(given: &Given<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        match text(given)?.trim().to_lowercase().as_str() {
            "unknown" | "0" | "未知" => Ok(Self::Unknown),
            "male" | "1" | "男" | "m" => Ok(Self::Male),
            "female" | "2" | "女" | "f" => Ok(Self::Female),
            "other" | "9" | "其他" => Ok(Self::Other),
            _ => Err(Fault::new(FieldCode::UnknownValue, "must be unknown, male, female or other")),
        }
    }

    fn schema(_: &Limits) -> Value {
        json!({ "type": ["string", "integer"], "example": "female" })
    }
}

/// A day of birth, or none to take it away.
pub struct Birthday(pub Option<String>);

impl Parameter for Birthday {
    const EMPTY_IS_A_VALUE: bool = true;

    fn read(given: &Given<'_>, rules: &Rules<'_>) -> Result<Self, Fault> {
        let text = text(given)?;
        match text.trim() {
            "" => Ok(Self(None)),
            day => users::birthday(day, rules.today()).map(|day| Self(Some(day))),
        }
    }

    fn schema(_: &Limits) -> Value {
        json!({ "type": "string", "pattern": "^$|^[0-9]{4}-[0-9]{2}-[0-9]{2}$", "example": "1990-05-17" })
    }
}

/// A token that came as a parameter.
impl Parameter for Secret {
    fn read(given: &Given<'_>, _: &Rules<'_>) -> Result<Self, Fault> {
        // Of any length: that it is too long to be a token is for the operation to say.
        clean_as_sent(&text(given)?, usize::MAX).map(Self::from_text)
    }

    fn schema(_: &Limits) -> Value {
        json!({ "type": "string", "example": "kX8c0Qy3m1dJ7w5uV2sZ9pT4rB6nL0aHfGeYiOjKqWs" })
    }
}

/// JSON values that are kept to the byte; from a query or a form, a text.
macro_rules! json_values {
    ($($(#[$doc:meta])* $name:ident($limit:expr), $empty:literal, $single:literal, $schema:tt;)*) => {$(
        $(#[$doc])*
        pub struct $name(pub JsonText<'static>);

        impl Parameter for $name {
            const EMPTY_IS_A_VALUE: bool = $empty;

            fn read(given: &Given<'_>, rules: &Rules<'_>) -> Result<Self, Fault> {
                let limit: fn(&Limits) -> usize = $limit;
                kept_json(given, limit(rules.limits()), $single).map(Self)
            }

            fn schema(_: &Limits) -> Value {
                json!($schema)
            }
        }
    )*};
}

json_values! {
    /// jsonData of a casting.
    JsonData(|limits| limits.json_data.as_usize()), true, false,
        { "description": "Any JSON value or text; it comes back byte for byte.", "example": { "lines": [7, 8, 8, 8, 7, 6] } };
    /// divinationData of an interpretation.
    DivinationData(|limits| limits.interpretation_body.as_usize()), false, false,
        { "description": "Any JSON value or text that describes the casting.", "example": { "lines": [7, 8, 8, 8, 7, 6] } };
    /// A client's own timestamp, number or text.
    ClientTimestamp(|limits| limits.label as usize), false, true,
        { "type": ["integer", "string"], "example": 1_767_225_600_000_i64 };
}

fn kept_json(given: &Given<'_>, limit: usize, must_be_single: bool) -> Result<JsonText<'static>, Fault> {
    let json = match given {
        Given::Text(text) => JsonText::from_text(text),
        Given::Json(raw) => JsonText::from_raw(raw),
    };
    // A text is as long as what it says, however it is escaped.
    if json.as_str().len() > limit && text_of(given).is_none_or(|text| text.len() > limit) {
        return Err(Fault::new(FieldCode::TooLong, format!("must be at most {limit} bytes long")));
    }
    if must_be_single && (json.as_str().starts_with(['[', '{']) || is_literal(given)) {
        return Err(Fault::new(FieldCode::InvalidType, "must be a single value"));
    }
    check_escapes(json.as_str())?;
    Ok(json)
}

/// Checks the texts inside a valid JSON value: no NUL, no half of a surrogate pair. Both can only be written as escapes,
/// so nothing else is looked at, and most values have none.
fn check_escapes(json: &str) -> Result<(), Fault> {
    let mut rest = json;
    while let Some((_, escaped)) = rest.split_once('\\') {
        let Some(unit) = utf16_unit(escaped) else {
            rest = escaped.get(1..).unwrap_or_default();
            continue;
        };
        rest = escaped.get(UNIT_LENGTH..).unwrap_or_default();
        if unit == 0 {
            return Err(Fault::new(FieldCode::InvalidCharacter, "must not contain NUL"));
        }
        if (0xd800..0xe000).contains(&unit) {
            let partner = rest.strip_prefix('\\').and_then(utf16_unit);
            if unit >= 0xdc00 || !partner.is_some_and(|partner| (0xdc00..0xe000).contains(&partner)) {
                return Err(Fault::new(FieldCode::InvalidCharacter, "has half of a surrogate pair"));
            }
            rest = rest.get(1 + UNIT_LENGTH..).unwrap_or_default();
        }
    }
    Ok(())
}

/// Bytes of `u4e7e`.
const UNIT_LENGTH: usize = 5;

/// The code unit of an escape such as `u4e7e`, which stands behind a backslash.
fn utf16_unit(escaped: &str) -> Option<u16> {
    u16::from_str_radix(escaped.strip_prefix('u')?.get(..UNIT_LENGTH - 1)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;

    #[test]
    fn kept_json_has_no_nul_and_no_half_pair() {
        let check = |json: &str| {
            let raw: &RawValue = serde_json::from_str(json).unwrap();
            check_escapes(JsonText::from_raw(raw).as_str()).map_err(|fault| fault.code)
        };
        let bad = [
            r#""a\u0000b""#,
            r#"{"\u0000":1}"#,
            r#"["\ud83d"]"#,
            r#""\ud83d\\ude00""#,
            r#""\ude00\ud83d""#,
            r#""\ud83d\ud83d\ude00""#,
            r#""\\\u0000""#,
        ];
        for json in bad {
            assert_eq!(check(json), Err(FieldCode::InvalidCharacter), "{json}");
        }
        let good = [
            r#""\u4e7e \ud83d\ude00""#,
            r#"{"a":[1,-2.5,true,null,"\n\"3e9"]}"#,
            r#""\\u0000 \\ud83d""#,
            "1e999",
            "\"乾\"",
        ];
        for json in good {
            assert_eq!(check(json), Ok(()), "{json}");
        }
    }
}
