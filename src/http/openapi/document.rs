//! Builds the OpenAPI 3.1 document from the route table.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use serde_json::{Map, Value, json};

use super::{
    enums::enumerations,
    headers::Header,
    schemas::{reference, reference_to, schemas},
};
use crate::http::{
    body::FORM,
    endpoint::{Area, Endpoint},
    guard::Access,
    params::{BodyShape, DocumentAudience, Location, ParameterDescription},
    reply::{Problem, response_codes, status},
};
use crate::{
    config::{Config, LimitsConfig},
    domain::operations::admins::roles::Right,
    error::{Code, FieldCode},
};

/// Returns the document as JSON text, without blanks: it is large, and machines read it.
pub fn document(config: &Config, endpoints: &[Endpoint]) -> String {
    let components = components(endpoints, &config.limits);
    let areas = Area::ALL.into_iter().filter(|area| endpoints.iter().any(|endpoint| endpoint.area == *area));
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    let mut problems = Map::new();
    for endpoint in endpoints {
        let mut operation = operation(endpoint, endpoints, &config.limits, &components);
        share_problems(&mut operation["responses"], &mut problems);
        paths.entry(endpoint.path).or_default().insert(endpoint.method.as_str().to_lowercase(), operation);
    }
    let server = config.server.public_url.as_deref().unwrap_or("/");
    let document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Yarrow",
            "version": env!("CARGO_PKG_VERSION"),
            "description": description(),
            "license": { "name": "MIT", "identifier": "MIT" },
        },
        "servers": [{ "url": server }],
        "tags": areas.map(|area| json!({ "name": area.name(), "description": area.description() })).collect::<Vec<_>>(),
        "paths": paths,
        "components": {
            "schemas": components,
            "responses": problems,
            "examples": object(&mut response_codes().map(|code| (code.name().to_owned(), problem_example(code)))),
            "headers": object(&mut Header::ALL.into_iter().map(|header| (header.name.to_owned(), header.component()))),
            "securitySchemes": { "bearer": { "type": "http", "scheme": "bearer" } },
        },
    });
    document.to_string()
}

/// Returns the endpoints that a reader needs. Authors of apps need none of administrators, other services and browsers.
pub fn select(mut endpoints: Vec<Endpoint>, audience: DocumentAudience) -> Vec<Endpoint> {
    if audience == DocumentAudience::App {
        endpoints.retain(Endpoint::is_for_apps);
    }
    endpoints
}

fn description() -> String {
    let row = |code: Code| format!("| `{}` | {} | {} |\n", code.name(), status(code).as_u16(), code.meaning());
    let fields: Vec<_> = FieldCode::ALL.iter().map(|code| format!("`{}`", code.name())).collect();
    format!(
        "The backend of an I Ching app.\n\n\
         Parameters that are not in the path may come in the query string, in a form (also multipart) or in a JSON body, \
         whatever this document shows. Numbers may come as strings and ids as numbers. Bodies may be compressed with \
         gzip. Every response carries `X-Request-Id`, and `Cache-Control: no-store` where nothing else is described. Problems carry `Content-Language`. Times are RFC 3339, UTC, with \
         milliseconds.\n\n\
         Errors are `application/problem+json` (RFC 9457); branch on `code`:\n\n\
         | code | status | meaning |\n|---|---|---|\n{}\n\
         Codes of single fields: {}.",
        response_codes().map(row).collect::<String>(),
        fields.join(", "),
    )
}

fn components(endpoints: &[Endpoint], limits: &LimitsConfig) -> Map<String, Value> {
    let own = endpoints.iter().flat_map(|endpoint| endpoint.reply().schemas);
    let parameters = endpoints.iter().flat_map(|endpoint| &endpoint.parameters);
    let requested: String = parameters.map(|parameter| (parameter.schema)(limits).to_string()).collect();
    let is_requested = |(name, _): &(String, Value)| requested.contains(&reference_to(name)["$ref"].to_string());
    object(&mut own.chain(schemas::<Problem<'static>>()).chain(enumerations().into_iter().filter(is_requested)))
}

/// Collects members into an object.
pub fn object(members: &mut dyn Iterator<Item = (String, Value)>) -> Map<String, Value> {
    members.collect()
}

fn operation(
    endpoint: &Endpoint,
    endpoints: &[Endpoint],
    limits: &LimitsConfig,
    components: &Map<String, Value>,
) -> Value {
    let successor = endpoints.iter().find(|other| Some(other.operation) == endpoint.successor);
    let mut operation = json!({
        "operationId": endpoint.operation,
        "tags": [endpoint.area.name()],
        "summary": endpoint.summary,
        "description": description_of(endpoint, successor),
        "security": security(endpoint.access),
        "responses": responses(endpoint, components),
    });
    let (in_body, elsewhere): (Vec<_>, Vec<_>) = endpoint
        .parameters
        .iter()
        .partition(|parameter| parameter.location == Location::Anywhere && endpoint.takes_body());
    let mut parameters: Vec<_> = elsewhere.into_iter().map(|parameter| parameter_of(parameter, limits)).collect();
    if endpoint.is_idempotent {
        parameters.push(idempotency_key());
    }
    if let Some((pattern, example)) = endpoint.last_event_id {
        parameters.push(last_event_id(pattern, example));
    }
    if endpoint.successor.is_some() {
        operation["deprecated"] = true.into();
    }
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    if !in_body.is_empty() {
        operation["requestBody"] = request_body(&in_body, endpoint.body_shape, limits);
    }
    operation
}

/// Describes the use of an endpoint, what replaces it, and who may call it.
fn description_of(endpoint: &Endpoint, successor: Option<&Endpoint>) -> String {
    let replaced = successor
        .map(|other| format!("Deprecated: use `{}` (`{} {}`) instead.", other.operation, other.method, other.path));
    let roles = endpoint.access.right().map(Right::roles);
    let notes = Some(endpoint.notes).filter(|notes| !notes.is_empty());
    let access = [Some(endpoint.access.description()), roles].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let parts = [replaced, notes.map(ToOwned::to_owned), Some(access)];
    parts.into_iter().flatten().collect::<Vec<_>>().join("\n\n")
}

fn security(access: Access) -> Value {
    match access {
        Access::Public | Access::Signature => json!([{}]),
        access if access.requires_token() => json!([{ "bearer": [] }]),
        _ => json!([{}, { "bearer": [] }]),
    }
}

fn parameter_of(parameter: &ParameterDescription, limits: &LimitsConfig) -> Value {
    json!({
        "name": parameter.name,
        "in": if parameter.location == Location::Path { "path" } else { "query" },
        "required": parameter.is_required,
        "description": parameter.description,
        "schema": (parameter.schema)(limits),
    })
}

fn idempotency_key() -> Value {
    json!({
        "name": "Idempotency-Key",
        "in": "header",
        "required": false,
        "description": "A text chosen by the client. A repeated request with the same key is executed once; repetitions get the first response with `Idempotency-Replayed: true`.",
        "schema": { "type": "string", "minLength": 1, "maxLength": 255, "example": "5f0c2b1e-consume-1" },
    })
}

fn last_event_id(pattern: &str, example: &str) -> Value {
    json!({
        "name": "Last-Event-ID",
        "in": "header",
        "required": false,
        "description": "The id of the last event that the client has received. The stream continues after it.",
        "schema": { "type": "string", "pattern": pattern, "example": example },
    })
}

fn request_body(parameters: &[&ParameterDescription], shape: BodyShape, limits: &LimitsConfig) -> Value {
    let properties = object(&mut parameters.iter().map(|parameter| {
        let mut schema = (parameter.schema)(limits);
        schema["description"] = parameter.description.into();
        (parameter.name.to_owned(), schema)
    }));
    let required: Vec<_> =
        parameters.iter().filter(|parameter| parameter.is_required).map(|parameter| parameter.name).collect();
    let has_some = parameters.iter().any(|parameter| parameter.is_in_example());
    let is_shown = |name: &str| {
        !has_some || parameters.iter().any(|parameter| parameter.name == name && parameter.is_in_example())
    };
    let shown = properties.iter().filter(|(name, _)| is_shown(name));
    let example = object(&mut shown.filter_map(|(name, schema)| {
        let of_items = || Some(vec![schema.get("items")?.get("example")?.clone(); least_items(schema)].into());
        Some((name.clone(), schema.get("example").cloned().or_else(of_items)?))
    }));
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    let content = json!({ "schema": schema, "example": example });
    // Only one: code that is generated from several types calls with one of them, or does not work at all.
    let content_type = match shape {
        BodyShape::Named | BodyShape::NamedOrItems(_) => "application/json",
        BodyShape::Raw => FORM,
    };
    json!({ "required": !required.is_empty(), "content": { content_type: content } })
}

fn responses(endpoint: &Endpoint, components: &Map<String, Value>) -> Value {
    let mut responses = Map::new();
    let reply = endpoint.reply();
    for (status, meaning) in &reply.statuses {
        let has_content = *status != StatusCode::NOT_MODIFIED && *status != StatusCode::NO_CONTENT;
        let mut contents = reply.contents.iter().filter(|_| has_content).map(|(content_type, schema)| {
            let mut content = json!({ "schema": schema });
            if *content_type == "application/json" {
                content["example"] = example_of(schema, components, Members::All);
            }
            ((*content_type).to_owned(), content)
        });
        let mut response = json!({ "description": meaning, "content": object(&mut contents) });
        response["headers"] = headers(endpoint, *status, reply.headers);
        responses.insert(status.as_str().to_owned(), response);
    }
    let mut by_status: BTreeMap<StatusCode, Vec<Code>> = BTreeMap::new();
    for code in codes(endpoint) {
        by_status.entry(status(code)).or_default().push(code);
    }
    for (status, codes) in by_status {
        let mut response = problem_of(&codes);
        response["headers"] = headers(endpoint, status, &[]);
        responses.insert(status.as_str().to_owned(), response);
    }
    Value::Object(responses)
}

/// Replaces problems by references to shared responses, because most operations have the same: they would be two thirds
/// of the document.
fn share_problems(responses: &mut Value, shared: &mut Map<String, Value>) {
    for (status, response) in responses.as_object_mut().into_iter().flatten() {
        let examples = response.pointer("/content/application~1problem+json/examples").and_then(Value::as_object);
        let (Some(codes), Some(headers)) = (examples, response["headers"].as_object()) else { continue };
        // Responses of one name are equal: the other headers follow from the status.
        let is_distinctive = |name: &&String| {
            ![Header::REQUEST_ID, Header::RETRY_AFTER, Header::WWW_AUTHENTICATE]
                .iter()
                .any(|header| header.name == name.as_str())
        };
        let parts: Vec<&str> = [status]
            .into_iter()
            .chain(codes.keys())
            .chain(headers.keys().filter(is_distinctive))
            .map(String::as_str)
            .collect();
        let name = parts.join("-");
        let reference = json!({ "$ref": format!("#/components/responses/{name}") });
        shared.insert(name, std::mem::replace(response, reference));
    }
}

/// Returns the headers of a response: its own and those that follow from status and endpoint.
fn headers(endpoint: &Endpoint, status: StatusCode, own: &[Header]) -> Value {
    let shows_limits = endpoint.budget.is_some() || status == StatusCode::TOO_MANY_REQUESTS;
    let limits = if shows_limits { &[Header::RATE_LIMIT, Header::RATE_LIMIT_POLICY][..] } else { &[] };
    let sunset = if endpoint.successor.is_some() { &[Header::SUNSET, Header::LINK][..] } else { &[] };
    let of_status = match status {
        StatusCode::UNAUTHORIZED => Some(Header::WWW_AUTHENTICATE),
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => Some(Header::RETRY_AFTER),
        _ => None,
    };
    let replayed = endpoint.is_idempotent.then_some(Header::REPLAYED);
    let all = [Header::REQUEST_ID].into_iter().chain(of_status).chain(replayed);
    let all = all.chain(limits.iter().chain(sunset).chain(own).copied());
    object(&mut all.map(|header| (header.name.to_owned(), header.reference()))).into()
}

/// Returns the error codes of an endpoint: its own and those that follow from access, method and parameters.
fn codes(endpoint: &Endpoint) -> Vec<Code> {
    // Payment providers get a word in place of problems, or only look at the status.
    if endpoint.access == Access::Signature {
        return endpoint.errors.to_vec();
    }
    let mut codes = vec![Code::InvalidRequest, Code::Overloaded, Code::StorageFailed, Code::Internal];
    if endpoint.access.requires_token() {
        codes.push(Code::Unauthenticated);
    }
    if endpoint.access.requires_token() && endpoint.access.admits_users() && !endpoint.admits_suspended {
        codes.push(Code::UserSuspended);
    }
    let identifies_callers = !matches!(endpoint.access, Access::Public | Access::TokenHolder);
    if identifies_callers {
        codes.push(Code::AddressNotAllowed);
    }
    let compares_names = identifies_callers && endpoint.access.admits_users() && !endpoint.is_current_api();
    if compares_names {
        codes.push(Code::NotYours);
    }
    if compares_names || !endpoint.parameters.is_empty() {
        codes.extend([Code::ConflictingParameter, Code::InvalidParameters]);
    }
    codes.extend([Code::InvalidJson, Code::RequestTimeout, Code::BodyTooLarge, Code::UnsupportedMediaType]);
    if endpoint.takes_body() {
        codes.extend([Code::StorageFull, Code::Superseded, Code::OutcomeUnknown]);
    }
    // Changes are also rejected when a page of another site sends them.
    if endpoint.takes_body() || !endpoint.access.admits_users() || !endpoint.access.admits_admins() {
        codes.push(Code::Forbidden);
    }
    if endpoint.needs_recent_sign_in {
        codes.push(Code::StepUpRequired);
    }
    if endpoint.is_idempotent {
        codes.push(Code::IdempotencyKeyReused);
    }
    for code in endpoint.errors {
        if !codes.contains(code) {
            codes.push(*code);
        }
    }
    codes
}

fn problem_example(code: Code) -> Value {
    let status = status(code);
    let value = json!({
        "type": "about:blank",
        "title": status.canonical_reason(),
        "status": status.as_u16(),
        "detail": code.meaning(),
        "message": code.chinese(),
        "code": code.name(),
        "requestId": "9f2c1b7d0000000000000001",
    });
    json!({ "summary": code.meaning(), "value": value })
}

fn problem_of(codes: &[Code]) -> Value {
    let names: Vec<_> = codes.iter().map(|code| format!("`{}`", code.name())).collect();
    let example = |code: &Code| {
        let reference = format!("#/components/examples/{}", code.name());
        (code.name().to_owned(), json!({ "$ref": reference }))
    };
    json!({
        "description": names.join(", "),
        "content": { "application/problem+json": {
            "schema": reference::<Problem<'static>>(),
            "examples": object(&mut codes.iter().map(example)),
        } },
    })
}

/// The members of objects that an example shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Members {
    All,
    /// In lists, which carry less of an item than the endpoint of the item does.
    Required,
}

/// Returns the number of items in the example of an array.
fn least_items(schema: &Value) -> usize {
    let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or_default();
    usize::try_from(least).unwrap_or_default().max(1)
}

/// Builds an example from the examples of a schema's parts.
fn example_of(schema: &Value, components: &Map<String, Value>, shown: Members) -> Value {
    if let Some(example) = schema.get("example").or_else(|| schema.get("examples")?.get(0)) {
        return example.clone();
    }
    if let Some(name) = schema.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next()) {
        return components.get(name).map_or(Value::Null, |schema| example_of(schema, components, shown));
    }
    if let Some(choices) = schema.get("oneOf").and_then(Value::as_array) {
        let first = choices.iter().find(|choice| choice["type"] != "null");
        return first.map_or(Value::Null, |choice| example_of(choice, components, shown));
    }
    if let Some(parts) = schema.get("allOf").and_then(Value::as_array) {
        let parts = parts.iter().map(|part| example_of(part, components, shown));
        return object(&mut parts.filter_map(|part| part.as_object().cloned()).flatten()).into();
    }
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        let required = schema.get("required").and_then(Value::as_array);
        let is_shown = |name: &String| {
            shown == Members::All || required.is_some_and(|required| required.iter().any(|it| it == name))
        };
        let members = properties.iter().filter(|(name, _)| is_shown(name));
        return object(&mut members.map(|(name, schema)| (name.clone(), example_of(schema, components, shown)))).into();
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("array") => {
            let item =
                schema.get("items").map_or(Value::Null, |items| example_of(items, components, Members::Required));
            vec![item; least_items(schema)].into()
        }
        Some("boolean") => json!(true),
        _ => Value::Null,
    }
}
