//! JSON of providers: a member whose value is `null` is a missing one, and no member stands twice.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error as _, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number, Value};

/// Reads a value.
///
/// # Errors
/// The text is no JSON, or not of this shape.
pub(super) fn from_slice<T: DeserializeOwned>(text: &[u8]) -> serde_json::Result<T> {
    let Present(value) = serde_json::from_slice(text)?;
    serde_json::from_value(value)
}

/// A value without members that are `null`.
struct Present(Value);

impl<'de> Deserialize<'de> for Present {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PresentVisitor).map(Self)
    }
}

struct PresentVisitor;

impl<'de> Visitor<'de> for PresentVisitor {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(Present(item)) = items.next_element()? {
            all.push(item);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some((name, Present(value))) = members.next_entry::<String, Present>()? {
            if all.insert(name, value).is_some() {
                return Err(A::Error::custom("a member stands twice"));
            }
        }
        all.retain(|_, value| !value.is_null());
        Ok(Value::Object(all))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn null_is_missing_and_no_member_stands_twice() {
        let read = |text: &str| from_slice::<Value>(text.as_bytes()).ok();
        let text = r#"{"a":null,"b":{"c":null,"d":[1,-2,0.5,null,{"e":null}]},"f":"","g":true}"#;
        assert_eq!(read(text), Some(json!({ "b": { "d": [1, -2, 0.5, null, {}] }, "f": "", "g": true })));
        assert_eq!(read(r#"{"a":1,"a":null}"#), None);
        assert_eq!(read("null"), Some(Value::Null));
        assert_eq!(read("{"), None);
    }
}
