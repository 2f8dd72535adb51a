//! Scalars of responses. They stand in the fields that have them, not among the document's components: generated clients
//! then use their language's own types.

use std::{borrow::Cow, collections::BTreeMap, sync::LazyLock};

use serde_json::{Value, json};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{KnownFormat, ObjectBuilder, RefOr, Schema, SchemaFormat, schema::Type},
};

use crate::types::{Timestamp, UserId};

macro_rules! scalars {
    ($($scalar:ident, $example:literal, $format:expr;)*) => {$(
        impl ToSchema for $scalar {
            fn name() -> Cow<'static, str> {
                stringify!($scalar).into()
            }
        }

        impl PartialSchema for $scalar {
            fn schema() -> RefOr<Schema> {
                Schema::from(ObjectBuilder::new().schema_type(Type::String).format($format).build()).into()
            }
        }
    )*

        /// The schemas of all scalars, by name.
        static SCALARS: LazyLock<BTreeMap<&str, Value>> = LazyLock::new(|| {
            BTreeMap::from([$((stringify!($scalar), {
                let mut schema = json!(<$scalar as PartialSchema>::schema());
                schema["example"] = $example.into();
                schema
            })),*])
        });
    };
}

scalars! {
    Timestamp, "2026-01-02T03:04:05.678Z", Some(SchemaFormat::KnownFormat(KnownFormat::DateTime));
    UserId, "10001", None::<SchemaFormat>;
}

/// Returns true for the component of a scalar.
pub fn is_scalar(component: &str) -> bool {
    SCALARS.contains_key(component)
}

/// Puts the schemas of scalars in the place of references to them.
pub fn write_out(schema: &mut Value) {
    let of = |schema: &Value| SCALARS.get(schema["$ref"].as_str()?.rsplit('/').next()?);
    // A field that may be null names a scalar or null.
    let nullable = schema["oneOf"].as_array().and_then(|kinds| kinds.iter().find(|kind| of(kind).is_some())).cloned();
    let is_nullable = nullable.is_some();
    if let Some(one) = nullable {
        *schema = one;
    }
    let scalar = of(schema).cloned();
    match (schema, scalar) {
        (Value::Object(members), Some(Value::Object(mut scalar))) => {
            members.remove("$ref");
            if is_nullable {
                scalar["type"] = json!([scalar["type"], "null"]);
            }
            members.extend(scalar);
        }
        (Value::Object(members), _) => members.values_mut().for_each(write_out),
        (Value::Array(members), _) => members.iter_mut().for_each(write_out),
        _ => {}
    }
}
