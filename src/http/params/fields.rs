//! The fields that an endpoint declares, either read from a request or described for the API document.

use serde_json::{Value, json};

use super::{Location, ObjectParameter, Parameter, ParameterDescription, Reader, Rules};
use crate::{config::LimitsConfig, error::Result, types::Secret};

/// The fields of an endpoint. [`super::Parameters::read`] calls one method for each field, in the order of the API
/// document.
///
/// While the parameters are described, each method records its field and returns `None`. One declaration therefore
/// serves requests and API document.
pub enum Fields<'reader, 'request> {
    Read(&'reader mut Reader<'request>),
    Describe(Vec<ParameterDescription>),
}

impl Fields<'_, '_> {
    pub fn required<T: Parameter>(&mut self, name: &'static str, description: &'static str) -> Option<T> {
        match self {
            Self::Read(reader) => reader.required(name),
            Self::Describe(fields) => describe(fields, ParameterDescription::required::<T>(name, description)),
        }
    }

    /// Reads a field that may be missing. The outer `None` means that its value is invalid.
    #[expect(clippy::option_option, reason = "the outer layer reports a fault, as for every field")]
    pub fn optional<T: Parameter>(&mut self, name: &'static str, description: &'static str) -> Option<Option<T>> {
        match self {
            Self::Read(reader) => reader.optional(name),
            Self::Describe(fields) => describe(fields, ParameterDescription::optional::<T>(name, description)),
        }
    }

    /// Like [`Self::optional`], for a field that the example of the API document has.
    #[expect(clippy::option_option, reason = "the outer layer reports a fault, as for every field")]
    pub fn usual<T: Parameter>(&mut self, name: &'static str, description: &'static str) -> Option<Option<T>> {
        match self {
            Self::Read(reader) => reader.optional(name),
            Self::Describe(fields) => {
                let field = ParameterDescription::optional::<T>(name, description);
                describe(fields, ParameterDescription { is_usual: true, ..field })
            }
        }
    }

    /// Reads another spelling of a field. The API document has one of each, because generated clients turn both into the
    /// same name.
    #[expect(clippy::option_option, reason = "the outer layer reports a fault, as for every field")]
    pub fn alias<T: Parameter>(&mut self, name: &'static str) -> Option<Option<T>> {
        match self {
            Self::Read(reader) => reader.optional(name),
            Self::Describe(_) => None,
        }
    }

    /// Reads a segment of the path.
    pub fn path<T: Parameter>(&mut self, name: &'static str, description: &'static str) -> Option<T> {
        match self {
            Self::Read(reader) => reader.path(name),
            Self::Describe(fields) => {
                let field = ParameterDescription::required::<T>(name, description);
                describe(fields, ParameterDescription { location: Location::Path, ..field })
            }
        }
    }

    /// Reads a list: a JSON array, a repeated name, or values separated by commas. It is empty if the field is missing.
    pub fn list<T: Parameter>(&mut self, name: &'static str, description: &'static str) -> Option<Vec<T>> {
        match self {
            Self::Read(reader) => reader.list(name),
            Self::Describe(fields) => {
                let field = ParameterDescription::optional::<T>(name, description);
                let schema = |limits: &LimitsConfig| {
                    let (least, most) = T::LIST_LENGTH.unwrap_or((0, limits.batch as usize));
                    list_schema(least, most, &T::schema(limits))
                };
                describe(fields, ParameterDescription { schema, ..field })
            }
        }
    }

    /// Reads a list of at least one object. Each invalid member is reported as `name[index].member`.
    pub fn objects<T: ObjectParameter>(&mut self, name: &'static str, description: &'static str) -> Option<Vec<T>> {
        match self {
            Self::Read(reader) => reader.objects(name),
            Self::Describe(fields) => {
                let schema = |limits: &LimitsConfig| list_schema(1, limits.batch as usize, &T::schema(limits));
                let (location, is_required, is_usual) = (Location::Anywhere, false, false);
                describe(fields, ParameterDescription { name, description, location, is_required, is_usual, schema })
            }
        }
    }

    /// Reads a token from the field or a header.
    pub fn token(&mut self, name: &'static str, description: &'static str) -> Option<Secret> {
        match self {
            Self::Read(reader) => reader.token(name),
            Self::Describe(fields) => describe(fields, ParameterDescription::optional::<Secret>(name, description)),
        }
    }

    /// Checks values that depend on each other. Does nothing if one of them is invalid by itself.
    pub fn cross_field<V, T>(
        &mut self,
        values: Option<V>,
        check: impl FnOnce(&Rules<'_>, V) -> Result<T>,
    ) -> Option<T> {
        match self {
            Self::Read(reader) => reader.cross_field(values?, check),
            Self::Describe(_) => None,
        }
    }

    /// Rejects a field that only the server may set.
    pub fn reject(&mut self, name: &'static str) {
        if let Self::Read(reader) = self {
            reader.reject(name);
        }
    }

    /// Rejects every field.
    pub fn reject_all(&mut self) {
        if let Self::Read(reader) = self {
            reader.reject_all();
        }
    }
}

fn describe<T>(fields: &mut Vec<ParameterDescription>, field: ParameterDescription) -> Option<T> {
    fields.push(field);
    None
}

fn list_schema(least: usize, most: usize, items: &Value) -> Value {
    let mut schema = json!({ "type": "array", "items": items, "maxItems": most });
    if least > 0 {
        schema["minItems"] = least.into();
    }
    schema
}
