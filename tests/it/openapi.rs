//! The OpenAPI document: valid, complete, and the same from server and command.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use serde_json::{Value, json};

use crate::support::{Binary, Document, Parameter, ParameterLocation, Server, Setup, is_same_name};

/// The document of a server with default settings, for tests that only read it.
static DOCUMENT: LazyLock<Document> = LazyLock::new(|| document().1);

fn document() -> (Server, Document) {
    let server = Setup::default().start();
    let document = Document::of(&server);
    (server, document)
}

/// Calls `visit` with every object inside the value.
fn walk<'a>(value: &'a Value, visit: &mut impl FnMut(&'a serde_json::Map<String, Value>)) {
    match value {
        Value::Object(members) => {
            visit(members);
            members.values().for_each(|value| walk(value, visit));
        }
        Value::Array(items) => items.iter().for_each(|value| walk(value, visit)),
        _ => {}
    }
}

#[test]
fn declares_openapi_3_1() {
    let (server, document) = document();
    assert_eq!(document.value["openapi"], "3.1.0");
    for member in ["title", "version", "description"] {
        assert!(document.value["info"][member].is_string(), "{member}");
    }
    let response = server.get("/openapi.json").send();
    assert_eq!(response.header("content-type"), Some("application/json"));
    let schemes = &document.value["components"]["securitySchemes"];
    assert_eq!((&schemes["bearer"]["type"], &schemes["bearer"]["scheme"]), (&"http".into(), &"bearer".into()));
}

#[test]
fn every_reference_resolves_and_every_component_is_used() {
    let document = &*DOCUMENT;
    let mut references = BTreeSet::new();
    walk(&document.value, &mut |members| {
        if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
            references.insert(reference.to_owned());
        }
    });
    assert!(!references.is_empty());
    for reference in &references {
        let found = document.value.pointer(reference.strip_prefix('#').unwrap());
        assert!(found.is_some(), "{reference} does not resolve");
    }
    for name in document.value["components"]["schemas"].as_object().unwrap().keys() {
        assert!(references.contains(&format!("#/components/schemas/{name}")), "{name} is unused");
    }
}

#[test]
fn every_operation_is_described() {
    let document = &*DOCUMENT;
    let mut ids = BTreeSet::new();
    for operation in &document.operations {
        let (name, value) = (operation.name(), &operation.value);
        let id = value["operationId"].as_str().unwrap_or_else(|| panic!("{name} has no operationId"));
        assert!(id.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{id}");
        assert!(ids.insert(id), "{id} occurs twice");
        assert!(!value["summary"].as_str().unwrap().is_empty(), "{name}");
        assert!(!value["tags"].as_array().unwrap().is_empty(), "{name}");
        for scheme in value["security"].as_array().unwrap() {
            let known = scheme.as_object().unwrap().keys().all(|name| name == "bearer");
            assert!(known, "{name}: {scheme}");
        }
    }
}

#[test]
fn path_parameters_match_the_template() {
    let document = &*DOCUMENT;
    for operation in &document.operations {
        let in_template: BTreeSet<_> =
            operation.path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}')).collect();
        let path = operation.parameters.iter().filter(|parameter| parameter.location == ParameterLocation::Path);
        let declared: BTreeSet<_> = path.clone().map(|parameter| parameter.name.as_str()).collect();
        assert_eq!(declared, in_template, "{}", operation.name());
        assert!(path.clone().all(|parameter| parameter.is_required), "{}", operation.name());
        let names: BTreeSet<_> = operation.parameters.iter().map(|parameter| &parameter.name).collect();
        assert_eq!(names.len(), operation.parameters.len(), "{} has a parameter twice", operation.name());
    }
}

#[test]
fn every_parameter_has_a_description_and_a_valid_example() {
    let document = &*DOCUMENT;
    for operation in &document.operations {
        let name = operation.name();
        for parameter in operation.value["parameters"].as_array().into_iter().flatten() {
            assert!(!parameter["description"].as_str().unwrap().is_empty(), "{name}: {parameter}");
        }
        for parameter in &operation.parameters {
            let schema = &parameter.schema;
            let example = schema.get("example").or_else(|| schema["items"].get("example"));
            let example = example.unwrap_or_else(|| panic!("{name}: {} has no example", parameter.name));
            let of = if schema["type"] == "array" { &schema["items"] } else { schema };
            document.fits(of, example).unwrap_or_else(|fault| panic!("{name}: {}: {fault}", parameter.name));
        }
    }
}

#[test]
fn every_response_is_described_with_valid_examples() {
    let document = &*DOCUMENT;
    for operation in &document.operations {
        let responses = operation.value["responses"].as_object().unwrap();
        assert!(responses.keys().any(|status| status.starts_with(['2', '3'])), "{}", operation.name());
        // The payment provider does not read problems.
        let knows_problems = !operation.path.starts_with("/payment/notify");
        if operation.path != "/payment/notify/{channel}" {
            assert_eq!(responses.contains_key("500"), knows_problems, "{}", operation.name());
        }
        assert_eq!(
            responses.contains_key("413") && responses.contains_key("415"),
            knows_problems,
            "{}",
            operation.name()
        );
        for (status, response) in responses {
            let what = format!("{} {status}", operation.name());
            assert!(!response["description"].as_str().unwrap().is_empty(), "{what}");
            for (content_type, content) in response["content"].as_object().into_iter().flatten() {
                expect_examples(document, content_type, content, &what);
            }
            if status.as_str() >= "400" && knows_problems {
                assert!(response["content"]["application/problem+json"].is_object(), "{what}");
            }
        }
        let body = &operation.value["requestBody"]["content"];
        for (content_type, content) in body.as_object().into_iter().flatten() {
            expect_examples(document, content_type, content, &operation.name());
        }
    }
}

#[track_caller]
fn expect_examples(document: &Document, content_type: &str, content: &Value, what: &str) {
    let schema = &content["schema"];
    assert!(schema.is_object(), "{what} {content_type} has no schema");
    let several = content["examples"].as_object().into_iter().flat_map(|examples| examples.values());
    let examples: Vec<_> =
        content.get("example").into_iter().chain(several.map(|example| &document.resolve(example)["value"])).collect();
    assert!(!examples.is_empty() || !content_type.contains("json"), "{what} {content_type} has no example");
    for example in examples {
        document.fits(schema, example).unwrap_or_else(|fault| panic!("{what} {content_type}: {fault}"));
    }
}

#[test]
fn examples_inside_schemas_are_valid() {
    let document = &*DOCUMENT;
    let (mut examples, mut faults) = (0, Vec::new());
    walk(&document.value, &mut |members| {
        let is_schema = ["type", "$ref", "oneOf", "allOf", "enum"].iter().any(|keyword| members.contains_key(*keyword));
        let Some(example) = members.get("example").filter(|_| is_schema) else { return };
        examples += 1;
        let schema = Value::Object(members.clone());
        faults.extend(document.fits(&schema, example).err().map(|fault| format!("{fault}: {schema}")));
    });
    assert!(examples > 700, "only {examples}");
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn examples_outside_their_bounds_are_found() {
    let document = &*DOCUMENT;
    for (schema, value, is_valid) in [
        (json!({ "type": "integer", "format": "int32", "minimum": 6, "maximum": 9 }), json!(6), true),
        (json!({ "type": "integer", "minimum": 6 }), json!(5), false),
        (json!({ "type": "integer", "maximum": 9 }), json!(10), false),
        (json!({ "type": "integer", "format": "int32" }), json!(1_i64 << 40), false),
        (json!({ "type": "string", "maxLength": 2 }), json!("卦卦"), true),
        (json!({ "type": "string", "maxLength": 1 }), json!("卦卦"), false),
        (json!({ "type": "string", "minLength": 3 }), json!("卦卦"), false),
        (json!({ "type": "string", "pattern": "^[0-9]{6}$" }), json!("12345678"), false),
        (json!({ "type": "string", "format": "date-time" }), json!("2026-01-02T03:04:05.678Z"), true),
        (json!({ "type": ["string", "null"], "format": "date-time" }), json!(null), true),
        (json!({ "type": "string", "format": "date-time" }), json!("2026-01-02"), false),
        (json!({ "type": "string", "format": "email" }), json!("a@b"), false),
        (json!({ "type": "string", "format": "uri" }), json!("example.com"), false),
        (json!({ "type": "string", "format": "new" }), json!("x"), false),
        (json!({ "type": "array", "items": { "type": "integer", "maximum": 9 } }), json!([1, 10]), false),
        (json!({ "type": "array", "minItems": 6, "items": {} }), json!([1, 2]), false),
        (json!({ "type": "object", "additionalProperties": { "type": "integer" } }), json!({ "a": "b" }), false),
    ] {
        assert_eq!(document.fits(&schema, &value).is_ok(), is_valid, "{schema} {value}");
    }
}

#[test]
fn response_schemas_have_names_for_generated_clients() {
    let document = &*DOCUMENT;
    // Both are documents with their own format.
    let nameless = ["/openapi.json", "/api/v1/account/export"];
    for operation in document.operations.iter().filter(|operation| !nameless.contains(&operation.path.as_str())) {
        for (status, response) in operation.value["responses"].as_object().unwrap() {
            for (content_type, content) in response["content"].as_object().into_iter().flatten() {
                let is_named = content["schema"]["$ref"].is_string();
                assert!(is_named || !content_type.ends_with("json"), "{} {status}", operation.name());
            }
        }
    }
}

#[test]
fn ids_in_responses_are_strings() {
    let document = &*DOCUMENT;
    let mut ids = 0;
    walk(&document.value["components"]["schemas"], &mut |members| {
        for (name, schema) in members.get("properties").and_then(Value::as_object).into_iter().flatten() {
            if name == "id" || name == "replayOf" || name.ends_with("Id") {
                assert!(schema["type"] == "string" || schema["type"][0] == "string", "{name}: {schema}");
                ids += 1;
            }
        }
    });
    assert!(ids > 30, "only {ids}");
}

#[test]
fn enumerations_list_their_values() {
    let document = &*DOCUMENT;
    let words = |component: &str, member: &str| {
        let schema = &document.value["components"]["schemas"][component]["properties"][member];
        let schema = if schema["oneOf"].is_array() { &schema["oneOf"][0] } else { schema };
        document.resolve(schema)["enum"].as_array().map_or(0, Vec::len)
    };
    for (component, member, count) in [
        ("Profile", "gender", 4),
        ("ModelAttachment", "gender", 4),
        ("Notification", "kind", 4),
        ("PaymentOrder", "status", 6),
        ("PaymentStatus", "status", 7),
        ("AdminRefund", "state", 5),
        ("Session", "method", 5),
        ("InterpretationRecord", "status", 5),
        ("ShownViolation", "contentType", 4),
        ("PointEntry", "kind", 19),
        ("Preferences", "locale", 2),
        ("Preferences", "dayStart", 2),
        ("TextSelection", "rule", 7),
        ("Readiness", "ledger", 3),
    ] {
        assert_eq!(words(component, member), count, "{component} {member}");
    }
}

#[test]
fn every_documented_operation_is_served() {
    let (server, document) = document();
    let user = server.sign_in("13800138000");
    for operation in &document.operations {
        let response = operation.bare(&server, &user).send();
        assert_ne!(response.status, 405, "{}", operation.name());
        // Examples that identify nothing existing are only not found.
        let names_nothing = [
            "{traceId}",
            "{orderNo}",
            "callbacks/{id}",
            "products/{id}",
            "purchases/{id}",
            "releases/{id}",
            "tokens/{id}",
            "identities/{provider}",
            "sessions/{id}",
            "update-balance",
            "notify/{channel}",
            "violations/{id}",
            "administrators/{name}",
            "api-keys/{label}",
            "notifications/{id}",
            "feedback/{id}",
            "{userId}/suspension",
            "notes/{id}",
            "devices/{id}",
            "version/latest",
        ]
        .iter()
        .any(|part| operation.path.contains(part));
        assert!(response.status != 404 || names_nothing, "{}: {}", operation.name(), response.text());
        let described = operation.value["responses"].as_object().unwrap();
        assert!(described.contains_key(&response.status.to_string()), "{} {}", operation.name(), response.status);
    }
}

#[test]
fn every_served_path_is_documented() {
    // The network log contains the router's own templates.
    let (server, document) = document();
    let user = server.sign_in("13800138000");
    // A deleted user's requests are erased from the log.
    for operation in document.operations.iter().filter(|operation| operation.name() != "DELETE /api/v1/account") {
        operation.bare(&server, &user).send();
    }
    let mut server = server;
    server.terminate();
    let database = server.network_log();
    let mut statement = database.prepare("select distinct route from access_log where route is not null").unwrap();
    let routes: BTreeSet<String> = statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let documented: BTreeSet<String> = document.operations.iter().map(|operation| operation.path.clone()).collect();
    assert_eq!(routes, documented);
}

#[test]
fn the_command_prints_the_same_document() {
    let (server, document) = document();
    let output = Binary::command().arg("openapi").output().unwrap();
    assert!(output.status.success());
    assert_eq!(serde_json::from_slice::<Value>(&output.stdout).unwrap(), document.value);
    let text = server.get("/openapi.json").send().text();
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim_end(), text.trim_end());
}

#[test]
fn documented_limits_are_the_active_ones() {
    let server = Setup::default().with("LIMITS_NICKNAME", 7).start();
    let document = Document::of(&server);
    let operation = document.operations.iter().find(|operation| operation.name() == "PUT /user/nickname").unwrap();
    let nickname = operation.parameters.iter().find(|parameter| parameter.name == "nickname").unwrap();
    assert_eq!(nickname.schema["maxLength"], 7);
}

#[test]
fn the_documentation_page_loads_all_its_files() {
    let server = Setup::default().start();
    for path in ["/", "/docs"] {
        assert_eq!(server.get(path).send().expect(308).header("location"), Some("/docs/"), "{path}");
    }
    let page = server.get("/docs/").send().expect(200);
    assert!(page.header("content-type").unwrap().starts_with("text/html"));
    let policy = page.header("content-security-policy").unwrap().to_owned();
    assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"), "{policy}");
    let text = page.text();
    let files: BTreeSet<_> = text
        .split('"')
        .filter_map(|part| Some((part.trim_start_matches("./"), part.rsplit_once('.')?.1)))
        .filter(|(_, extension)| ["css", "js"].contains(extension))
        .collect();
    assert!(files.len() >= 3, "{text}");
    for (file, extension) in files {
        let response = server.get(&format!("/docs/{file}")).send().expect(200);
        assert_eq!(response.header("x-content-type-options"), Some("nosniff"), "{file}");
        assert!(response.bytes.len() > 100, "{file}");
        let kind = if extension == "css" { "text/css" } else { "javascript" };
        assert!(response.header("content-type").unwrap().contains(kind), "{file}");
    }
    let initializer = server.get("/docs/initializer.js").send().expect(200).text();
    assert!(initializer.contains("/openapi.json"), "{initializer}");
}

#[test]
fn endpoints_that_are_alike_for_everyone_ignore_tokens() {
    let (server, document) = document();
    let user = server.sign_in("13800138000");
    for path in ["/", "/healthz", "/readyz", "/openapi.json", "/docs", "/docs/", "/docs/{file}"] {
        let operation = document.operation(&format!("GET {path}"));
        let responses = operation.value["responses"].as_object().unwrap();
        assert!(!responses.contains_key("401") && !responses.contains_key("403"), "{path}");
        let path = path.replace("{file}", "swagger-ui.css");
        for request in [server.get(&path).token("nobody's"), server.get(&path).by(&user).query(&[("userId", "99999")])]
        {
            assert!(matches!(request.send().status, 200 | 308), "{path}");
        }
    }
}

#[test]
fn the_document_is_small_and_shows_one_media_type_a_body() {
    let (server, document) = document();
    let bytes = server.get("/openapi.json").send().bytes.len();
    assert!(bytes < 7 << 17, "{bytes} bytes");
    let for_apps = server.get("/openapi.json?for=app").send().bytes.len();
    assert!(for_apps < bytes * 2 / 3, "{for_apps} of {bytes} bytes");
    for operation in &document.operations {
        let contents = operation.value["requestBody"]["content"].as_object();
        assert!(contents.is_none_or(|contents| contents.len() == 1), "{}", operation.name());
    }
    let lines = document.operation("POST /api/v1/sessions").parameters.iter().find(|it| it.name == "lines").unwrap();
    assert_eq!((&lines.schema["minItems"], &lines.schema["maxItems"]), (&6.into(), &6.into()), "{}", lines.schema);
    assert_eq!(lines.schema["items"]["minimum"], 6, "{}", lines.schema);
    assert_eq!(lines.schema["items"]["maximum"], 9, "{}", lines.schema);
}

#[test]
fn api_docs_list_every_error_code() {
    let server = Setup::default().start();
    let document = Document::of(&server);
    let api_docs = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/api.md")).unwrap();
    let description = document.value["info"]["description"].as_str().unwrap();
    let rows: Vec<_> = description.lines().filter(|line| line.starts_with("| `")).collect();
    assert!(rows.len() > 30, "{rows:?}");
    // As identifiers for generated clients.
    let codes_of =
        |component: &str| document.value["components"]["schemas"][component]["properties"]["code"]["enum"].clone();
    let names = codes_of("Problem");
    assert_eq!(names.as_array().unwrap().len(), rows.len());
    for row in &rows {
        assert!(names.as_array().unwrap().contains(&row.split('`').nth(1).into()), "{row}");
    }
    assert!(codes_of("ProblemField").as_array().unwrap().contains(&"region_not_allowed".into()));
    for row in rows {
        assert!(api_docs.contains(row), "docs/api.md lacks: {row}");
    }
}

#[test]
fn the_document_of_apps_leaves_out_administrators() {
    let (server, document) = document();
    let text = server.get("/openapi.json?for=app").send().expect(200).text();
    let for_apps: Value = serde_json::from_str(&text).unwrap();
    let paths: BTreeSet<_> = for_apps["paths"].as_object().unwrap().keys().collect();
    for path in &paths {
        assert!(!path.starts_with("/admin") && !path.starts_with("/payment/notify"), "{path}");
        assert!(!path.starts_with("/docs") && !path.ends_with("/events"), "{path}");
    }
    for path in ["/auth/login", "/api/v1/sessions", "/coin/balance", "/llm/chat", "/healthz"] {
        assert!(paths.contains(&path.to_owned()), "{path}");
    }
    assert!(!paths.contains(&"/divination/records/failed".to_owned()), "its callers are administrators");
    assert!(!text.contains("Requires an administrator's token"), "an operation of administrators is left");
    // Nothing is lost or changed for apps.
    let all = document.value["paths"].as_object().unwrap();
    for (path, methods) in for_apps["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            assert_eq!(operation, &all[path][method], "{method} {path}");
        }
    }
    for reference in text.split("#/components/schemas/").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        assert!(for_apps["components"]["schemas"][reference].is_object(), "{reference}");
    }
    let printed = Binary::command().args(["openapi", "--app"]).output().unwrap();
    assert_eq!(String::from_utf8(printed.stdout).unwrap().trim_end(), text.trim_end());
    server.get("/openapi.json?for=nobody").send().expect_problem(422, "invalid_parameters");
}

#[test]
fn names_differ_by_more_than_their_spelling() {
    let (server, document) = document();
    let expect_distinct = |names: &[&str]| {
        for (index, name) in names.iter().enumerate() {
            assert!(!names[..index].iter().any(|other| is_same_name(other, name)), "{name} of {names:?}");
        }
    };
    walk(&document.value, &mut |members| {
        let names = |member: &str| members.get(member).and_then(Value::as_object).into_iter().flat_map(|it| it.keys());
        expect_distinct(&names("properties").map(String::as_str).collect::<Vec<_>>());
        expect_distinct(&names("schemas").map(String::as_str).collect::<Vec<_>>());
        let parameters = members.get("parameters").and_then(Value::as_array).into_iter().flatten();
        expect_distinct(&parameters.filter_map(|parameter| parameter["name"].as_str()).collect::<Vec<_>>());
    });
    // The server takes and returns both.
    for name in ["user_id", "userId"] {
        let sent = server.post("/feedback").json(&json!({ name: "10001", "content": "好" })).send().expect(200).json();
        assert_eq!((&sent["user_id"], &sent["userId"]), (&json!("10001"), &json!("10001")));
    }
}

#[test]
fn values_of_enumerations_have_identifiers() {
    let document = &*DOCUMENT;
    let is_identifier = |name: &&str| {
        name.starts_with(|first: char| first.is_ascii_alphabetic())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let mut named = 0;
    walk(&document.value, &mut |members| {
        let texts = |member: &str| -> Vec<&str> {
            members.get(member).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
        };
        let (values, identifiers) = (texts("enum"), texts("x-enum-varnames"));
        let shown = if identifiers.is_empty() { &values } else { &identifiers };
        assert!(shown.iter().all(is_identifier), "{values:?}: {identifiers:?}");
        let distinct: BTreeSet<_> = shown.iter().map(|name| name.to_lowercase()).collect();
        assert_eq!(distinct.len(), values.len(), "{values:?}: {identifiers:?}");
        named += usize::from(!identifiers.is_empty());
    });
    assert!(named > 10, "{named}");
    let day_start = &document.value["components"]["schemas"]["DayStart"];
    assert_eq!(day_start["x-enum-varnames"], json!(["At23", "AtMidnight"]));
}

/// Returns the enumeration of a schema, or of its items, choices or component.
fn enumeration_of<'a>(document: &'a Document, schema: &'a Value) -> Option<&'a Vec<Value>> {
    let schema = document.resolve(schema);
    let choices = schema["oneOf"].as_array().into_iter().flatten();
    let of_parts = || choices.chain(schema.get("items")).find_map(|part| enumeration_of(document, part));
    schema["enum"].as_array().or_else(of_parts)
}

#[test]
fn requests_have_the_enumerations_of_responses() {
    let document = &*DOCUMENT;
    let mut in_responses: BTreeMap<&str, BTreeSet<_>> = BTreeMap::new();
    walk(&document.value["components"]["schemas"], &mut |members| {
        for (name, schema) in members.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let names = enumeration_of(document, schema).map(|names| json!(names).to_string());
            in_responses.entry(name).or_default().insert(names);
        }
    });
    // A name with several meanings in responses tells nothing about requests.
    in_responses.retain(|_, names| names.len() == 1 && !names.contains(&None));
    let mut compared = BTreeSet::new();
    for operation in &document.operations {
        for Parameter { name, schema, .. } in &operation.parameters {
            // A proof of identity may also be of a phone number.
            let known = in_responses.get(name.as_str()).filter(|_| name != "provider");
            let Some(known) = known.and_then(|names| names.first()?.clone()) else { continue };
            let names = enumeration_of(document, schema).map(|names| json!(names).to_string());
            assert_eq!(names, Some(known), "{}: {name}", operation.name());
            compared.insert(name);
        }
    }
    for name in ["gender", "locale", "dayStart"] {
        assert!(compared.contains(&name.to_owned()), "{compared:?}");
    }
}

#[test]
fn deprecated_operations_name_their_successor() {
    let day = Setup::default().with("SERVER_SUNSET", "2027-12-31").start();
    let (server, document) = document();
    let mut deprecated = 0;
    for operation in &document.operations {
        let description = operation.value["description"].as_str().unwrap();
        assert_eq!(
            operation.value["deprecated"] == true,
            description.starts_with("Deprecated: use `"),
            "{description}"
        );
        if operation.value["deprecated"] == true {
            deprecated += 1;
            let name = description.split('`').nth(1).unwrap();
            let successor = document.operations.iter().find(|other| other.value["operationId"] == name).unwrap();
            assert!(successor.value["deprecated"].is_null(), "{} replaces {}", successor.name(), operation.name());
        }
    }
    assert!(deprecated > 10, "only {deprecated}");
    // Only an operator who has set a day announces it.
    let old = day.get("/payment/products").send().expect(200);
    assert_eq!(old.header("sunset"), Some("Fri, 31 Dec 2027 00:00:00 GMT"));
    assert_eq!(old.header("link"), Some("</api/v1/products>; rel=\"successor-version\""));
    assert_eq!(day.get("/api/v1/products").send().header("sunset"), None);
    assert_eq!(server.get("/payment/products").send().header("sunset"), None);
}

#[test]
fn operations_read_well_in_generated_clients() {
    let document = &*DOCUMENT;
    let id = |name: &str| document.operation(name).value["operationId"].as_str().unwrap().to_owned();
    assert_eq!(id("GET /coin/balance"), "coinBalance");
    assert_eq!(id("POST /api/v1/sessions"), "castSession");
    assert_eq!(id("GET /api/v1/sessions/{id}"), "getSession");
    for operation in &document.operations {
        let id = operation.value["operationId"].as_str().unwrap();
        assert!(id.starts_with(|first: char| first.is_ascii_lowercase()) && id.len() <= 32, "{id}");
        let is_for_admins = operation.path.starts_with("/admin");
        assert!(!is_for_admins || id.starts_with("admin"), "{id}");
    }
    let areas = ["identity", "divination", "money", "moderation", "messaging", "operations"];
    let tags = document.value["tags"].as_array().unwrap();
    assert_eq!(tags.iter().map(|tag| tag["name"].as_str().unwrap()).collect::<Vec<_>>(), areas);
    assert!(tags.iter().all(|tag| tag["description"].as_str().unwrap().len() > 20));
}

#[test]
fn request_fields_have_one_type() {
    let document = &*DOCUMENT;
    for operation in &document.operations {
        for parameter in &operation.parameters {
            let mut faults = Vec::new();
            walk(&parameter.schema, &mut |members| {
                let types = members.get("type").and_then(Value::as_array);
                faults.extend(types.filter(|types| types.iter().filter(|kind| *kind != "null").count() > 1).cloned());
            });
            assert!(faults.is_empty(), "{} {}: {faults:?}", operation.name(), parameter.name);
        }
    }
}

#[test]
fn event_streams_name_the_schemas_of_their_events() {
    let document = &*DOCUMENT;
    let mut streams = 0;
    for operation in &document.operations {
        let content = &operation.value["responses"]["200"]["content"]["text/event-stream"];
        if content.is_object() {
            streams += 1;
            let events = content["schema"]["x-events"].as_object().unwrap();
            assert!(!events.is_empty(), "{}", operation.name());
            for (event, schema) in events {
                assert!(
                    document.resolve(schema)["properties"].is_object() || document.resolve(schema)["allOf"].is_array(),
                    "{event}"
                );
            }
        }
    }
    assert!(streams >= 3, "only {streams}");
}
