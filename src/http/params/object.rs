//! JSON objects in a list, and their members.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue as JsonValue;

use super::{Parameter, Rules, is_absent, text};
use crate::{
    error::{Fault, FieldCode, Result},
    http::body::RawValue,
};

/// Reads an item of a list of objects. `shape` is the message for something else.
///
/// # Errors
/// A fault of the whole item.
pub fn object<'json, T: Deserialize<'json>>(
    value: &'json RawValue<'_>,
    shape: (&'static str, &'static str),
) -> Result<T, Vec<(&'static str, Fault)>> {
    let written = match value {
        RawValue::Json(raw) if raw.get().starts_with('{') => serde_json::from_str(raw.get()).ok(),
        _ => None,
    };
    // An item that is neither an object nor a text has its own fault.
    let fault = || text(value).err().unwrap_or_else(|| Fault::new(FieldCode::InvalidType, shape));
    written.ok_or_else(|| vec![("", fault())])
}

/// Reads an optional member of an object.
///
/// # Errors
/// The fault of the value.
pub fn member<T: Parameter>(value: Option<&JsonValue>, rules: &Rules<'_>) -> Result<Option<T>, Fault> {
    match value.map(|value| RawValue::Json(Cow::Borrowed(value))) {
        Some(value) if !is_absent::<T>(&value) => T::read(&value, rules).map(Some),
        _ => Ok(None),
    }
}
