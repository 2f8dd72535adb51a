//! The OpenAPI document of a running server as a list of operations.

use serde_json::{Map, Value, json};
use yarrow::types::EmailAddress;

use super::{
    client::{Caller, Request, Response},
    server::Server,
};

/// An OpenAPI document.
pub struct Document {
    pub value: Value,
    pub operations: Vec<Operation>,
}

/// A method on a path.
#[derive(Clone, Debug)]
pub struct Operation {
    /// In upper case.
    pub method: String,
    /// A template with `{name}` placeholders.
    pub path: String,
    pub needs_token: bool,
    /// An administrator's API key, set if the operation requires one.
    pub key: Option<String>,
    pub parameters: Vec<Parameter>,
    pub value: Value,
}

#[derive(Clone, Debug)]
pub struct Parameter {
    pub name: String,
    pub location: ParameterLocation,
    pub is_required: bool,
    pub schema: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterLocation {
    Path,
    Query,
    Body,
}

impl Document {
    pub fn of(server: &Server) -> Self {
        let key = server.api_key("tests");
        Self::new(server.get("/openapi.json").send().expect(200).json(), &key)
    }

    fn new(value: Value, key: &str) -> Self {
        let shared = &value["components"]["responses"];
        // Tests see each response and enumeration in place.
        let component = |schema: &mut Value| {
            if let Some(path) = schema["$ref"].as_str().and_then(|path| path.strip_prefix('#')) {
                let mut whole = value.pointer(path).unwrap().as_object().unwrap().clone();
                whole.extend(schema.as_object().unwrap().clone());
                whole.remove("$ref");
                *schema = whole.into();
            }
        };
        let resolved = |mut operation: Value| {
            for response in operation["responses"].as_object_mut().unwrap().values_mut() {
                if let Some(path) = response["$ref"].as_str() {
                    *response = shared[path.strip_prefix("#/components/responses/").unwrap()].clone();
                }
            }
            for parameter in operation["parameters"].as_array_mut().into_iter().flatten() {
                component(&mut parameter["schema"]);
            }
            if let Some(properties) = operation.pointer_mut("/requestBody/content/application~1json/schema/properties")
            {
                properties.as_object_mut().unwrap().values_mut().for_each(component);
            }
            operation
        };
        let paths = value["paths"].as_object().unwrap();
        let of_path = |(path, methods): (&String, &Value)| -> Vec<Operation> {
            let methods = methods.as_object().unwrap().clone();
            methods.into_iter().map(|(method, value)| Operation::new(&method, path, resolved(value), key)).collect()
        };
        let mut operations: Vec<_> = paths.iter().flat_map(of_path).collect();
        // Operations that end the session come last.
        operations.sort_by_key(Operation::ends_session);
        Self { value, operations }
    }

    /// Resolves a `$ref`.
    pub fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        match schema.get("$ref").and_then(Value::as_str) {
            Some(path) => self.value.pointer(path.strip_prefix('#').unwrap()).unwrap_or_else(|| panic!("no {path}")),
            None => schema,
        }
    }

    /// Checks a value against a schema. Undocumented members are errors.
    pub fn fits(&self, schema: &Value, value: &Value) -> Result<(), String> {
        let schema = &self.whole(schema);
        if let Some(choices) = schema.get("oneOf").and_then(Value::as_array) {
            let faults: Vec<_> = choices.iter().filter_map(|choice| self.fits(choice, value).err()).collect();
            return if faults.len() < choices.len() { Ok(()) } else { Err(faults.join(", or ")) };
        }
        let kinds: Vec<&str> = match &schema["type"] {
            Value::String(kind) => vec![kind],
            Value::Array(kinds) => kinds.iter().map(|kind| kind.as_str().unwrap()).collect(),
            _ => Vec::new(),
        };
        let kind = kind_of(value);
        let is_number = kind == "integer" && kinds.contains(&"number");
        if !(kinds.is_empty() || kinds.contains(&kind) || is_number) {
            return Err(format!("{value} is no {kinds:?}"));
        }
        let is_one_of = |names: &Value| names.as_array().is_none_or(|names| names.contains(value));
        if !is_one_of(&schema["enum"]) || schema.get("const").is_some_and(|only| only != value) {
            return Err(format!("{value} is none of {schema}"));
        }
        within_bounds(schema, value)?;
        for name in schema["required"].as_array().into_iter().flatten() {
            if value.get(name.as_str().unwrap()).is_none() {
                return Err(format!("{name} is missing in {value}"));
            }
        }
        let properties = schema["properties"].as_object();
        for (name, member) in value.as_object().into_iter().flatten() {
            match properties.map(|properties| properties.get(name)) {
                Some(Some(of_member)) => self.fits(of_member, member).map_err(|fault| format!("{name}: {fault}"))?,
                // The document has one spelling of each name.
                Some(None) if properties.into_iter().flatten().any(|(known, _)| is_same_name(known, name)) => {}
                Some(None) => return Err(format!("{name} is not documented")),
                // Arbitrary members are allowed, of one kind if it is described.
                None => {
                    let names = schema.get("propertyNames");
                    names.map_or(Ok(()), |names| self.fits(names, &json!(name)))?;
                    let members = schema.get("additionalProperties").filter(|members| members.is_object());
                    members.map_or(Ok(()), |members| self.fits(members, member))?;
                }
            }
        }
        if kinds.contains(&"array") {
            value.as_array().into_iter().flatten().try_for_each(|item| self.fits(&schema["items"], item))?;
        }
        Ok(())
    }

    /// Resolves references and merges `allOf`.
    fn whole(&self, schema: &Value) -> Value {
        let schema = self.resolve(schema);
        let Some(parts) = schema.get("allOf").and_then(Value::as_array) else { return schema.clone() };
        let (mut properties, mut required) = (Map::new(), Vec::new());
        for part in parts.iter().map(|part| self.whole(part)) {
            properties.extend(part["properties"].as_object().cloned().unwrap_or_default());
            required.extend(part["required"].as_array().cloned().unwrap_or_default());
        }
        json!({ "type": "object", "properties": properties, "required": required })
    }

    /// Finds an operation by name.
    #[track_caller]
    pub fn operation(&self, name: &str) -> &Operation {
        self.operations.iter().find(|operation| operation.name() == name).unwrap_or_else(|| panic!("no {name}"))
    }

    /// Panics unless the document describes the response: status, headers, body and problem code.
    #[track_caller]
    pub fn expect_described(&self, operation: &Operation, response: &Response) {
        let what = format!("{}: {} {}", operation.name(), response.status, response.text());
        let documented = &operation.value["responses"][response.status.to_string()];
        assert!(documented.is_object(), "{what}: no such status");
        for name in response.headers.keys().filter(|name| !OF_EVERY_MESSAGE.contains(&name.as_str())) {
            let mut described = documented["headers"].as_object().into_iter().flatten();
            assert!(described.any(|(known, _)| known.eq_ignore_ascii_case(name.as_str())), "{what}: header {name}");
        }
        for (name, header) in documented["headers"].as_object().into_iter().flatten() {
            let is_required = self.resolve(header)["required"] == true;
            assert!(!is_required || response.header(name).is_some(), "{what}: no header {name}");
        }
        let content_type = response.header("content-type").unwrap_or_default().split(';').next().unwrap().to_owned();
        let schema = &documented["content"][&content_type]["schema"];
        assert_eq!(schema.is_object(), !response.bytes.is_empty(), "{what}: {content_type}");
        if !content_type.ends_with("json") {
            return;
        }
        self.fits(schema, &response.json()).unwrap_or_else(|fault| panic!("{what}: {fault}"));
        if content_type == "application/problem+json" {
            let code = response.json()["code"].as_str().unwrap().to_owned();
            assert!(documented["description"].as_str().unwrap().contains(&format!("`{code}`")), "{what}: no such code");
        }
    }
}

/// Returns true if generated clients turn both into the same name.
pub fn is_same_name(one: &str, other: &str) -> bool {
    one.replace('_', "").eq_ignore_ascii_case(&other.replace('_', ""))
}

/// Headers that need no description.
const OF_EVERY_MESSAGE: [&str; 9] = [
    "cache-control",
    "connection",
    "content-encoding",
    "content-language",
    "content-length",
    "content-type",
    "date",
    "transfer-encoding",
    "vary",
];

const RFC3339: &str = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$";

/// Checks length, size, pattern and format. Unknown formats are errors.
fn within_bounds(schema: &Value, value: &Value) -> Result<(), String> {
    let outside = |keyword: &str| Err(format!("{value} violates {keyword} {}", schema[keyword]));
    let counted = |count: usize| u32::try_from(count).ok().map(f64::from);
    let size = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => counted(text.chars().count()),
        Value::Array(items) => counted(items.len()),
        Value::Object(members) => counted(members.len()),
        _ => None,
    };
    let (least, most) = match value {
        Value::Number(_) => ("minimum", "maximum"),
        Value::String(_) => ("minLength", "maxLength"),
        Value::Array(_) => ("minItems", "maxItems"),
        _ => ("minProperties", "maxProperties"),
    };
    if schema[least].as_f64().zip(size).is_some_and(|(least, size)| size < least) {
        return outside(least);
    }
    if schema[most].as_f64().zip(size).is_some_and(|(most, size)| size > most) {
        return outside(most);
    }
    let matches = |(pattern, text): (&str, &str)| regex::Regex::new(pattern).unwrap().is_match(text);
    if !schema["pattern"].as_str().zip(value.as_str()).is_none_or(matches) {
        return outside("pattern");
    }
    let has_format = match (schema["format"].as_str(), value) {
        (None, _) | (_, Value::Null) => true,
        (Some("int32"), _) => value.as_i64().is_some_and(|number| i32::try_from(number).is_ok()),
        (Some("int64"), _) => value.is_i64() || value.is_u64(),
        (Some("double"), _) => value.is_number(),
        (Some("date-time"), Value::String(text)) => matches((RFC3339, text)),
        (Some("email"), Value::String(text)) => EmailAddress::parse(text).is_ok(),
        (Some("uri"), Value::String(text)) => text.starts_with("https://") || text.starts_with("http://"),
        _ => false,
    };
    if has_format { Ok(()) } else { outside("format") }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() || number.is_u64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Returns a text or a number as it is written in an address.
pub fn plain_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

impl Operation {
    fn new(method: &str, path: &str, value: Value, key: &str) -> Self {
        let mut parameters = Vec::new();
        let places = value["parameters"].as_array().into_iter().flatten();
        for parameter in places.filter(|parameter| parameter["in"] != "header") {
            parameters.push(Parameter {
                name: parameter["name"].as_str().unwrap().to_owned(),
                location: if parameter["in"] == "path" { ParameterLocation::Path } else { ParameterLocation::Query },
                is_required: parameter["required"].as_bool().unwrap(),
                schema: parameter["schema"].clone(),
            });
        }
        let body = &value["requestBody"]["content"]["application/json"]["schema"];
        let required = body["required"].as_array().cloned().unwrap_or_default();
        for (name, schema) in body["properties"].as_object().into_iter().flatten() {
            parameters.push(Parameter {
                name: name.clone(),
                location: ParameterLocation::Body,
                is_required: required.contains(&json!(name)),
                schema: schema.clone(),
            });
        }
        let needs_token = !value["security"].as_array().unwrap().contains(&json!({}));
        let is_for_admins = value["description"].as_str().unwrap().starts_with("Requires an administrator's");
        let key = is_for_admins.then(|| key.to_owned());
        Self { method: method.to_uppercase(), path: path.to_owned(), needs_token, key, parameters, value }
    }

    /// Returns the name, such as `POST /auth/login`.
    pub fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    pub fn takes_body(&self) -> bool {
        self.method != "GET"
    }

    /// Returns true if the operation signs the caller out or deletes the account.
    pub fn ends_session(&self) -> bool {
        const ENDING: [&str; 8] = [
            "POST /auth/logout",
            "POST /auth/refresh-token",
            "POST /api/v1/auth/logout",
            "POST /api/v1/auth/refresh",
            "DELETE /api/v1/account",
            "POST /admin/users/{userId}/suspension",
            "DELETE /admin/users/{userId}/devices",
            "PUT /admin/users/{userId}/phone-number",
        ];
        ENDING.contains(&self.name().as_str())
    }

    /// Returns true if the parameter identifies the user that the request is about.
    pub fn names_user(&self, parameter: &Parameter) -> bool {
        const ABOUT_OTHERS: [&str; 4] = [
            // The address to add to the account.
            "/api/v1/account/address",
            // The recipient of the code.
            "/auth/send-code",
            // The address to sign in with.
            "/auth/login",
            // The number to move to.
            "/admin/users/{userId}/phone-number",
        ];
        !ABOUT_OTHERS.contains(&self.path.as_str()) && (parameter.is_user_id() || parameter.is_phone_number())
    }

    /// Returns the path with the caller's own values.
    pub fn path_of(&self, caller: &Caller) -> String {
        let mut path = self.path.clone();
        for parameter in self.parameters.iter().filter(|parameter| parameter.location == ParameterLocation::Path) {
            let value = parameter.value_of(caller);
            path = path.replace(&format!("{{{}}}", parameter.name), &plain_text(&value));
        }
        path
    }

    /// Returns a request with path parameters only.
    pub fn bare(&self, server: &Server, caller: &Caller) -> Request {
        self.with_token(server.request(&self.method, &self.path_of(caller)), caller)
    }

    /// Adds the token if the operation needs one.
    pub fn with_token(&self, request: Request, caller: &Caller) -> Request {
        match &self.key {
            Some(key) => request.token(key),
            None if self.needs_token => request.by(caller),
            None => request,
        }
    }

    /// Returns valid values for required parameters outside the path.
    pub fn required_values(&self, caller: &Caller) -> Map<String, Value> {
        self.values_of(caller, |parameter| parameter.is_required)
    }

    /// Returns `required_values` plus one of several alternative parameters, which makes a valid request.
    pub fn right_values(&self, caller: &Caller) -> Map<String, Value> {
        self.values_of(caller, |parameter| parameter.is_required || self.choice() == Some(&parameter.name))
    }

    fn values_of(&self, caller: &Caller, is_wanted: impl Fn(&Parameter) -> bool) -> Map<String, Value> {
        let elsewhere = self.parameters.iter().filter(|parameter| parameter.location != ParameterLocation::Path);
        let wanted = elsewhere.filter(|parameter| is_wanted(parameter));
        wanted.map(|parameter| (parameter.name.clone(), parameter.value_of(caller))).collect()
    }

    /// Returns one of the alternative parameters of which the operation requires at least one.
    pub fn choice(&self) -> Option<&'static str> {
        match self.path.as_str() {
            "/api/v1/account/address" => Some("email"),
            "/auth/identity" | "/api/v1/auth/identity" | "/api/v1/account/identities" => Some("idToken"),
            "/divination-history/delete" => Some("localRecordId"),
            "/version/check" => Some("clientVersion"),
            "/admin/violations/review/decide" | "/admin/violations/review/undo" => Some("ids"),
            "/admin/products/{id}" => Some("price"),
            "/admin/sensitive-word-migration/batch-compare" => Some("items"),
            "/admin/user-data/validate/batch" => Some("userIds"),
            _ => None,
        }
    }
}

impl Parameter {
    /// Returns a valid value: the caller's own if the parameter identifies a user, else the documented example.
    pub fn value_of(&self, caller: &Caller) -> Value {
        match self.name.as_str() {
            "userId" | "user_id" | "id" if self.is_user_id() => json!(caller.user_id),
            "phoneNumber" | "phone_number" => json!(caller.phone_number),
            _ if self.schema["type"] == "array" => json!([self.schema["items"]["example"]]),
            _ => self.schema["example"].clone(),
        }
    }

    /// Returns true if the parameter is a user id.
    pub fn is_user_id(&self) -> bool {
        self.schema["pattern"] == "^[0-9]{1,18}$"
    }

    pub fn is_phone_number(&self) -> bool {
        matches!(self.name.as_str(), "phoneNumber" | "phone_number")
    }
}
