//! The schemas of responses, as components of the API document.

use serde_json::{Value, json};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        ObjectBuilder, RefOr, Schema,
        extensions::ExtensionsBuilder,
        schema::{Object, Type},
    },
};

use super::scalars;
use crate::types::NamedEnum;

/// Returns a reference to the schema of `T` among the document's components.
pub fn reference<T: ToSchema>() -> Value {
    reference_to(&T::name())
}

/// Returns a reference to the schema of this name.
pub fn reference_to(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// Returns the schema of `T` and the schemas it refers to, by name.
pub fn schemas<T: ToSchema>() -> Vec<(String, Value)> {
    let mut found = vec![(T::name().into_owned(), <T as PartialSchema>::schema())];
    T::schemas(&mut found);
    as_values(found)
}

fn as_values(schemas: Vec<(String, RefOr<Schema>)>) -> Vec<(String, Value)> {
    let as_value = |schema| {
        let mut value = serde_json::to_value(schema).unwrap_or_default();
        scalars::write_out(&mut value);
        require_nullable(&mut value);
        value
    };
    let components = schemas.into_iter().filter(|(name, _)| !scalars::is_scalar(name));
    components.map(|(name, schema)| (name, as_value(schema))).collect()
}

/// Marks nullable members as required, because `Option` members are sent as null. Members that are omitted instead are
/// declared with `nullable = false`. Members that may be both have null as their default.
fn require_nullable(schema: &mut Value) {
    for part in schema.get_mut("allOf").and_then(Value::as_array_mut).into_iter().flatten() {
        require_nullable(part);
    }
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let always_there = properties.filter(|(_, member)| is_nullable(member) && member.get("default").is_none());
    let names: Vec<_> = always_there.map(|(name, _)| Value::from(name.as_str())).collect();
    if names.is_empty() {
        return;
    }
    let mut required = schema["required"].as_array().cloned().unwrap_or_default();
    required.extend(names.into_iter().filter(|name| !required.contains(name)).collect::<Vec<_>>());
    schema["required"] = required.into();
}

fn is_nullable(schema: &Value) -> bool {
    let says_null = |kind: &Value| kind == "null" || kind["type"] == "null";
    let kinds = schema.get("type").or_else(|| schema.get("oneOf"));
    match kinds.and_then(Value::as_array) {
        Some(kinds) => kinds.iter().any(says_null),
        // A schema without a type permits null.
        None => ["type", "$ref", "allOf", "oneOf"].iter().all(|kind| schema.get(kind).is_none()),
    }
}

/// Returns the schema of a parameter that is an enumeration among the document's components.
pub fn enumerated(component: &str, example: &str) -> Value {
    let mut schema = reference_to(component);
    schema["example"] = example.into();
    schema
}

/// Returns the schema of an enumeration. Generated clients name its values by `x-enum-varnames` if the names are no
/// identifiers, because each generator drops or spells out other characters.
pub fn enumeration<T: NamedEnum>(description: &str, example: &'static str) -> Object {
    with_identifiers(one_of_names(description, T::NAMES.to_vec(), example), T::IDENTIFIERS)
}

/// Adds the identifiers of the values to an enumeration whose names are none.
pub fn with_identifiers(mut names: Object, identifiers: &[&str]) -> Object {
    let is_identifier = |name: &Value| {
        let name = name.as_str().unwrap_or_default();
        name.starts_with(|first: char| first.is_ascii_alphabetic())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    if !names.enum_values.iter().flatten().all(is_identifier) {
        names.extensions = Some(ExtensionsBuilder::new().add("x-enum-varnames", identifiers).build());
    }
    names
}

/// Returns the schema of a text with a fixed set of values.
pub fn one_of_names(description: &str, names: Vec<&'static str>, example: &'static str) -> Object {
    let text = ObjectBuilder::new().schema_type(Type::String).description(Some(description));
    text.enum_values(Some(names)).examples([example]).build()
}
