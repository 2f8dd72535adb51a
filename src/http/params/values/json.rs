//! JSON that is stored and returned byte for byte.

use serde_json::{Value, json, value::RawValue as JsonValue};

use crate::{
    config::LimitsConfig,
    error::{Fault, FieldCode, Result},
    http::{
        body::RawValue,
        params::{
            Parameter, Rules,
            raw_value::{half_pair, text, text_of},
        },
    },
    types::{JsonText, Timestamp, clean_as_sent},
};

/// Declares JSON values that are stored byte for byte; in a query or a form they are text.
macro_rules! json_values {
    ($($(#[$doc:meta])* $name:ident($limit:expr), $empty:literal, $schema:tt;)*) => {$(
        $(#[$doc])*
        pub struct $name(pub JsonText<'static>);

        impl Parameter for $name {
            const EMPTY_IS_A_VALUE: bool = $empty;
            const MAY_BE_NULL_WORD: bool = true;

            fn read(value: &RawValue<'_>, rules: &Rules<'_>) -> Result<Self, Fault> {
                let limit: fn(&LimitsConfig) -> usize = $limit;
                kept_json(value, limit(rules.limits())).map(Self)
            }

            fn schema(_: &LimitsConfig) -> Value {
                json!($schema)
            }
        }
    )*};
}

json_values! {
    /// jsonData of a casting.
    JsonData(|limits| limits.json_data.as_usize()), true,
        { "description": "Any JSON value or text; it comes back byte for byte.", "example": { "lines": [7, 8, 8, 8, 7, 6] } };
    /// divinationData of an interpretation.
    DivinationData(|limits| limits.interpretation_body.as_usize()), false,
        { "description": "Any JSON value or text that describes the casting.", "example": { "lines": [7, 8, 8, 8, 7, 6] } };
}

/// A client's own timestamp. A time in words becomes milliseconds since 1970, so that it is always returned as a number.
pub struct ClientTimestamp(pub JsonText<'static>);

impl Parameter for ClientTimestamp {
    fn read(value: &RawValue<'_>, rules: &Rules<'_>) -> Result<Self, Fault> {
        let text = clean_as_sent(&text(value)?, rules.limits().label as usize)?;
        let is_number = text.trim_start_matches('-').starts_with(|first: char| first.is_ascii_digit());
        if let Some(number) = is_number.then(|| serde_json::from_str::<&JsonValue>(&text).ok()).flatten() {
            // Apps read it into 64 bits, and would fail to read the whole list.
            if !is_in_64_bits(&text) {
                let message = (
                    format!("must be from {} to {}", i64::MIN, i64::MAX),
                    format!("须在 {} 到 {} 之间", i64::MIN, i64::MAX),
                );
                return Err(Fault::new(FieldCode::OutOfRange, message));
            }
            return Ok(Self(JsonText::from_raw(number)));
        }
        let time = Timestamp::parse(&text, &rules.limits().time_zone)?;
        Ok(Self(JsonText::from_number(time.0)))
    }

    fn schema(_: &LimitsConfig) -> Value {
        json!({ "type": "number", "example": 1_767_225_600_000_i64 })
    }
}

/// Returns true if the whole part of a JSON number fits into a signed 64-bit integer.
fn is_in_64_bits(number: &str) -> bool {
    let number = crate::types::plain_number(number);
    if number.contains(['.', 'e', 'E']) {
        return number.parse::<f64>().is_ok_and(|number| (-(2_f64.powi(63))..2_f64.powi(63)).contains(&number));
    }
    number.parse::<i64>().is_ok()
}

fn kept_json(value: &RawValue<'_>, limit: usize) -> Result<JsonText<'static>, Fault> {
    let json = match value {
        RawValue::Text(text) => JsonText::from_text(text),
        RawValue::Json(raw) => JsonText::from_raw(raw),
    };
    // The length of a text does not depend on its escapes.
    if json.as_str().len() > limit && text_of(value).is_none_or(|text| text.len() > limit) {
        return Err(Fault::new(
            FieldCode::TooLong,
            (format!("must be at most {limit} bytes long"), format!("最多 {limit} 字节")),
        ));
    }
    check_escapes(json.as_str())?;
    Ok(json)
}

/// Checks the texts inside a valid JSON value: no NUL, no half of a surrogate pair. Both occur only as escapes, so only
/// escapes are checked.
fn check_escapes(json: &str) -> Result<(), Fault> {
    let mut rest = json;
    while let Some((_, escaped)) = rest.split_once('\\') {
        let Some(unit) = utf16_unit(escaped) else {
            rest = escaped.get(1..).unwrap_or_default();
            continue;
        };
        rest = escaped.get(UNIT_LENGTH..).unwrap_or_default();
        if unit == 0 {
            return Err(Fault::new(FieldCode::InvalidCharacter, ("must not contain NUL", "不能包含 NUL 字符")));
        }
        if (0xd800..0xe000).contains(&unit) {
            let partner = rest.strip_prefix('\\').and_then(utf16_unit);
            if unit >= 0xdc00 || !partner.is_some_and(|partner| (0xdc00..0xe000).contains(&partner)) {
                return Err(half_pair());
            }
            rest = rest.get(1 + UNIT_LENGTH..).unwrap_or_default();
        }
    }
    Ok(())
}

/// Bytes of `u4e7e`.
const UNIT_LENGTH: usize = 5;

/// Parses the code unit of an escape such as `u4e7e` after a backslash.
fn utf16_unit(escaped: &str) -> Option<u16> {
    u16::from_str_radix(escaped.strip_prefix('u')?.get(..UNIT_LENGTH - 1)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_fit_into_64_bits() {
        for number in
            ["0", "-1", "1.5", "1.7672256E12", "9223372036854775807", "-9223372036854775808", "9.2e18", "1e-9"]
        {
            assert!(is_in_64_bits(number), "{number}");
        }
        for number in
            ["9223372036854775808", "-9223372036854775809", "9.3e18", "1e19", "1e400", "12345678901234567890.5"]
        {
            assert!(!is_in_64_bits(number), "{number}");
        }
    }

    #[test]
    fn stored_json_has_no_nul_and_no_unpaired_surrogate() {
        let check = |json: &str| {
            let raw: &JsonValue = serde_json::from_str(json).unwrap();
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
