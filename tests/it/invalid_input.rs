//! Every parameter of every endpoint with every kind of invalid value, in every parameter location.
//!
//! The endpoints come from the running server's document, so new ones are covered.

use serde_json::{Map, Value, json};

use crate::support::{
    Caller, Document, Operation, Parameter, ParameterLocation, Request, Response, Server, Setup, plain_text,
};

/// The location of a client's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    Query,
    Form,
    Json,
}

pub const WAYS: [Location; 3] = [Location::Query, Location::Form, Location::Json];

/// The name of a parameter with a token.
const TOKEN: &str = "token";

struct Fixture {
    server: Server,
    user: Caller,
    document: Document,
}

impl Fixture {
    fn new() -> Self {
        // Raise the limits of sign-in calls, and use a cheap model response.
        let server = Setup::default().with("AUTH_SENDS_PER_ADDRESS_HOUR", 100_000).start();
        let user = server.sign_in("13800138000");
        let mut document = Document::of(&server);
        // It responds to every request with one word, and those of the stores read signed bytes: no parameter is rejected.
        document.operations.retain(|operation| !operation.path.starts_with("/payment/notify"));
        Self { server, user, document }
    }

    /// Returns the token of an authorized caller.
    fn token<'world>(&'world self, operation: &'world Operation) -> &'world str {
        operation.key.as_deref().unwrap_or(&self.user.token)
    }

    /// Returns every operation with each parameter outside the path.
    fn parameters(&self) -> impl Iterator<Item = (&Operation, &Parameter)> {
        let operations = self.document.operations.iter();
        operations
            .flat_map(|operation| operation.parameters.iter().map(move |parameter| (operation, parameter)))
            .filter(|(_, parameter)| parameter.location != ParameterLocation::Path)
    }

    /// Returns a request that is valid except for this value. Queries and forms contain the JSON as text.
    fn with(&self, operation: &Operation, name: &str, value: &str, way: Location) -> Request {
        let mut values = operation.right_values(&self.user);
        values.remove(name);
        let request = operation.bare(&self.server, &self.user);
        match way {
            Location::Json => request.raw_json(&json_with(&values, name, value)),
            Location::Query | Location::Form => {
                let mut pairs = texts(&values);
                pairs.push((name.to_owned(), text_of(value)));
                let pairs: Vec<_> = pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
                if way == Location::Query { request.query(&pairs) } else { request.form(&pairs) }
            }
        }
    }
}

/// Returns the locations that an operation accepts. The current generation reads no token from the query string.
pub fn locations(operation: &Operation) -> impl Iterator<Item = Location> {
    let takes_body = operation.takes_body();
    let is_token = |parameter: &Parameter| parameter.name == TOKEN && !is_presented_token(operation, parameter);
    let takes_query = !operation.parameters.iter().any(is_token);
    WAYS.into_iter().filter(move |way| if *way == Location::Query { takes_query } else { takes_body })
}

/// Returns true if every value of the parameter is valid or an invalid token.
fn is_presented_token(operation: &Operation, parameter: &Parameter) -> bool {
    parameter.name == TOKEN && !operation.path.starts_with("/api/v1/")
}

/// Returns a JSON object of these values and one raw member.
fn json_with(values: &Map<String, Value>, name: &str, value: &str) -> String {
    let mut members: Vec<_> = values.iter().map(|(name, value)| format!("{}:{value}", json!(name))).collect();
    members.push(format!("{}:{value}", json!(name)));
    format!("{{{}}}", members.join(","))
}

pub fn texts(values: &Map<String, Value>) -> Vec<(String, String)> {
    values.iter().map(|(name, value)| (name.clone(), text_of(&value.to_string()))).collect()
}

/// Returns the form representation of a JSON value.
fn text_of(json: &str) -> String {
    match serde_json::from_str(json) {
        Ok(Value::String(text)) => text,
        Ok(Value::Array(items)) => items.iter().map(|item| text_of(&item.to_string())).collect::<Vec<_>>().join(","),
        _ => json.to_owned(),
    }
}

/// Returns true if the parameter accepts any JSON.
fn takes_anything(parameter: &Parameter) -> bool {
    parameter.schema.get("type").is_none()
}

/// Panics unless the response is a field error.
#[track_caller]
fn expect_bad(response: &Response, parameter: &Parameter, codes: &[&str], what: &str) {
    assert_eq!(response.status, 422, "{what}: {}", response.text());
    let problem = response.json();
    assert_eq!(problem["code"], "invalid_parameters", "{what}: {problem}");
    let errors = problem["errors"].as_array().unwrap();
    // Errors inside a list of objects name the member.
    let (name, item) = (parameter.name.as_str(), format!("{}[0]", parameter.name));
    let is_its = |field: &str| field == name || field.split('.').next() == Some(&item);
    let found = errors.iter().find(|error| error["field"].as_str().is_some_and(is_its));
    let code = found.unwrap_or_else(|| panic!("{what}: {problem}"))["code"].as_str().unwrap();
    assert!(codes.contains(&code), "{what}: {problem}");
    assert_eq!(errors.len(), 1, "{what}: {problem}");
}

#[test]
fn reports_missing_required_parameters() {
    let fixture = Fixture::new();
    let mut missed = 0;
    for (operation, parameter) in fixture.parameters().filter(|(_, parameter)| parameter.is_required) {
        let mut values = operation.right_values(&fixture.user);
        values.remove(&parameter.name);
        let request = operation.bare(&fixture.server, &fixture.user);
        let texts: Vec<_> = values.iter().map(|(name, value)| (name.as_str(), plain_text(value))).collect();
        let texts: Vec<_> = texts.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let request =
            if operation.takes_body() { request.json(&Value::Object(values.clone())) } else { request.query(&texts) };
        let response = request.send();
        expect_bad(&response, parameter, &["required"], &format!("{} without {}", operation.name(), parameter.name));
        missed += 1;
    }
    assert!(missed >= 6, "only {missed}");
}

#[test]
fn an_empty_parameter_is_missing_or_an_empty_text() {
    let fixture = Fixture::new();
    for (operation, parameter) in fixture.parameters() {
        for way in locations(operation) {
            for value in [r#""""#, r#"" ""#, r#"" \t\n ""#, "null"] {
                if value == "null" && way != Location::Json {
                    continue;
                }
                let what = format!("{} {} {value} as {way:?}", operation.name(), parameter.name);
                let response = fixture.with(operation, &parameter.name, value, way).send();
                assert!(response.status < 500, "{what}: {}", response.text());
                let empty_is_a_value = ["nickname", "signature"].contains(&parameter.name.as_str());
                if parameter.is_required && (value == "null" || !empty_is_a_value) {
                    expect_bad(&response, parameter, &["required"], &what);
                } else if response.status == 422 {
                    // Only this parameter was sent, so other errors are about missing ones.
                    let required = response.json()["errors"][0]["code"] == "required";
                    let is_choice = operation.right_values(&fixture.user).is_empty() || operation.choice().is_some();
                    assert!(required && is_choice, "{what}: {}", response.text());
                }
            }
        }
    }
}

#[test]
fn rejects_values_of_another_type() {
    let fixture = Fixture::new();
    let in_bodies = fixture.parameters().filter(|(operation, _)| operation.takes_body());
    let in_bodies = in_bodies.filter(|(operation, parameter)| !is_presented_token(operation, parameter));
    for (operation, parameter) in in_bodies.filter(|(_, parameter)| !takes_anything(parameter)) {
        let is_list = parameter.schema["type"] == "array";
        let wrong = if is_list {
            vec!["{}", r#"{"a":1}"#, "true", "[[]]", r#"[["a"]]"#, "[{}]", "[null]", "[true]"]
        } else {
            vec!["[]", r#"["a"]"#, "[1]", "{}", r#"{"a":1}"#, r#"{"$gt":""}"#, "true", "false"]
        };
        let takes_truth = parameter.schema["type"] == "boolean";
        for value in wrong.into_iter().filter(|value| !(takes_truth && ["true", "false"].contains(value))) {
            let response = fixture.with(operation, &parameter.name, value, Location::Json).send();
            let what = format!("{} {} {value}", operation.name(), parameter.name);
            let is_object = value.contains('{') && parameter.schema["items"]["type"] == "object";
            expect_bad(
                &response,
                parameter,
                if is_object { &["invalid_type", "required"] } else { &["invalid_type"] },
                &what,
            );
        }
    }
}

#[test]
fn rejects_values_that_are_too_long() {
    let fixture = Fixture::new();
    let mut refused = 0;
    for (operation, parameter) in fixture.parameters() {
        let Some(limit) = parameter.schema["maxLength"].as_u64() else { continue };
        let too_long = Value::from("x".repeat(usize::try_from(limit).unwrap() + 1)).to_string();
        // Values too long for a request line are not sent in one.
        for way in locations(operation).filter(|way| *way != Location::Query || limit < 1_000) {
            let what = format!("{} {} as {way:?}", operation.name(), parameter.name);
            let response = fixture.with(operation, &parameter.name, &too_long, way).send();
            expect_bad(&response, parameter, &["too_long"], &what);
            refused += 1;
        }
    }
    assert!(refused > 20, "only {refused}");
}

fn expect_no_fault(way: Location) {
    let fixture = Fixture::new();
    let absurd = [
        "-1",
        "0",
        "99999999999999999999999999",
        "1e999",
        "-1e-999",
        "0.1",
        "1e3",
        r#""NaN""#,
        r#""Infinity""#,
        r#""' or 1=1 --""#,
        r#""%00%s%n""#,
        r#""../../etc/passwd""#,
        r#""\u202e\u200b""#,
        r#""${jndi:ldap://x}""#,
        r#""\ud83d\ude00""#,
        r#""9223372036854775808""#,
        r#""-9223372036854775808""#,
        r#""0x10""#,
        r#""１２""#,
    ];
    for (operation, parameter) in fixture.parameters() {
        if !locations(operation).any(|possible| possible == way) {
            continue;
        }
        for value in absurd {
            let response = fixture.with(operation, &parameter.name, value, way).send();
            let what = format!("{} {} {value} as {way:?}", operation.name(), parameter.name);
            assert!(response.status < 500, "{what}: {}", response.text());
        }
    }
}

#[test]
fn absurd_query_values_cause_no_internal_error() {
    expect_no_fault(Location::Query);
}

#[test]
fn absurd_form_values_cause_no_internal_error() {
    expect_no_fault(Location::Form);
}

#[test]
fn absurd_json_values_cause_no_internal_error() {
    expect_no_fault(Location::Json);
}

#[test]
fn limits_the_bytes_of_a_model_response() {
    let server = Setup::default().start();
    let user = server.sign_in("13800138000");
    let save = |text: &str| {
        let record = json!({ "localRecordId": "1", "jsonData": {}, "aiResult": text });
        server.post("/divination-history/save").by(&user).json(&record).send()
    };
    assert!(save(&"字".repeat((32 << 10) / 3)).status < 300);
    save(&"字".repeat((32 << 10) / 3 + 1)).expect_fields(&[("aiResult", "too_long")]);
}

#[test]
fn requires_exactly_one_host_header() {
    let server = Setup::default().start();
    for head in ["GET /healthz HTTP/1.1\r\n", "GET /healthz HTTP/1.1\r\nhost: a\r\nhost: b\r\n"] {
        let response = server.send_raw(format!("{head}connection: close\r\n\r\n").as_bytes());
        response.expect_problem(400, "invalid_request");
    }
    server.send_raw(b"GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").expect(200);
    server.send_raw(b"GET /healthz HTTP/1.0\r\n\r\n").expect(200);
}

#[test]
fn model_endpoints_reject_other_users() {
    let server = Setup::default().start();
    let (user, other) = (server.sign_in("13800138000"), server.sign_in("13800138001"));
    let ask = |path: &str, mut body: Value, name: &str, value: &str| {
        body[name] = json!(value);
        server.post(path).by(&user).json(&body).send()
    };
    for (path, body) in [
        ("/llm/chat", json!({ "messages": [{ "role": "user", "content": "今年换工作合适吗？" }] })),
        (
            "/divination/enhanced",
            json!({ "question": "今年换工作合适吗？", "divinationData": { "lines": [7, 8, 9, 7, 8, 6] } }),
        ),
    ] {
        ask(path, body.clone(), "userId", &other.user_id).expect_problem(403, "not_yours");
        ask(path, body.clone(), "phoneNumber", "13800138001").expect_problem(403, "not_yours");
        ask(path, body, "phoneNumber", "+86 138 0013 8000").expect(200);
    }
}

#[test]
fn an_invisible_text_is_empty() {
    let server = Setup::default().start();
    let user = server.sign_in("13800138000");
    for (method, path, field) in [
        ("PUT", "/user/nickname", "nickname"),
        ("PUT", "/user/signature", "signature"),
        ("POST", "/divination-history/save", "question"),
        ("POST", "/feedback", "content"),
        ("POST", "/divination/enhanced", "question"),
        ("POST", "/content-moderation/check-question", "question"),
    ] {
        let send = |text: &str| {
            let body = json!({ "localRecordId": "1", "jsonData": {}, "divinationData": [7], field: text });
            server.request(method, path).by(&user).json(&body).send()
        };
        for invisible in [
            "\u{200b}\u{feff} \u{2060}",
            "\u{e0061}\u{e0062}",
            "\u{34f}",
            "\u{17b4}\u{17b5}",
            "\u{e0001} \u{e0100}\u{e01ef}",
            "\u{e0fff}",
        ] {
            send(invisible).expect_fields(&[(field, "invalid_character")]);
        }
        assert!(send("\u{200b}☯\u{fe0f}").status < 300, "{method} {path}");
    }
    assert_eq!(server.get("/user/profile").by(&user).send().expect(200).json()["nickname"], "\u{200b}☯\u{fe0f}");
}

#[test]
fn rejects_nul_and_lone_surrogates_everywhere() {
    let fixture = Fixture::new();
    let characters = ["invalid_character", "invalid_format", "unknown_value", "invalid_type"];
    let checked = fixture.parameters().filter(|(operation, parameter)| !is_presented_token(operation, parameter));
    for (operation, parameter) in checked {
        let is_list = parameter.schema["type"] == "array";
        for way in locations(operation) {
            for text in [r#""a\u0000b""#, r#""\u0000""#] {
                let response = fixture.with(operation, &parameter.name, text, way).send();
                let what = format!("{} {} {text} as {way:?}", operation.name(), parameter.name);
                expect_bad(&response, parameter, &characters, &what);
            }
        }
        if !operation.takes_body() {
            continue;
        }
        for half in [r#""\ud800""#, r#""a\udc00b""#, r#""\ude00\ud83d""#] {
            let value = if is_list { format!("[{half}]") } else { half.to_owned() };
            let response = fixture.with(operation, &parameter.name, &value, Location::Json).send();
            let what = format!("{} {} {value}", operation.name(), parameter.name);
            expect_bad(&response, parameter, &["invalid_character"], &what);
        }
        if takes_anything(parameter) {
            for inside in [r#"{"a":["\u0000"]}"#, r#"{"\u0000":1}"#, r#"[["\ud800"]]"#, r#"{"\udc00":1}"#] {
                let response = fixture.with(operation, &parameter.name, inside, Location::Json).send();
                let what = format!("{} {} {inside}", operation.name(), parameter.name);
                expect_bad(&response, parameter, &["invalid_character"], &what);
            }
        }
    }
}

#[test]
fn reads_the_same_request_alike_in_every_location() {
    let fixture = Fixture::new();
    for operation in fixture.document.operations.iter().filter(|operation| operation.takes_body()) {
        // Writing twice has different effects, so writes are made invalid in the same way.
        for parameter in operation.parameters.iter().filter(|parameter| !takes_anything(parameter)) {
            let problems: Vec<_> = locations(operation)
                .map(|way| {
                    let mut problem = fixture.with(operation, &parameter.name, r#""a\u0000""#, way).send().json();
                    problem["requestId"].take();
                    problem
                })
                .collect();
            assert!(problems.iter().all(|problem| *problem == problems[0]), "{}: {problems:#?}", operation.name());
        }
    }
}

/// Returns two different values of a kind that the parameter accepts.
fn two_values(parameter: &Parameter, user: &Caller) -> (Value, Value) {
    let right = parameter.value_of(user);
    let other = match &right {
        Value::Array(_) => json!(["another"]),
        Value::Object(_) => json!({ "another": 1 }),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => json!(whole + 1),
            None => json!(number.as_f64().unwrap() + 1.0),
        },
        _ => json!("another"),
    };
    (right, other)
}

#[test]
fn rejects_two_values_for_one_name() {
    let fixture = Fixture::new();
    for (operation, parameter) in fixture.parameters() {
        let name = parameter.name.as_str();
        let is_list = parameter.schema["type"] == "array";
        let (one, other) = two_values(parameter, &fixture.user);
        let (one_text, other_text) = (text_of(&one.to_string()), text_of(&other.to_string()));
        let pair = [(name, one_text.as_str()), (name, other_text.as_str())];
        let bare = || operation.bare(&fixture.server, &fixture.user);
        let mut requests = Vec::new();
        if name != TOKEN {
            requests.push(("twice in the query", bare().query(&pair)));
        }
        if operation.takes_body() {
            let twice = format!("{{{0}:{one},{0}:{other}}}", json!(name));
            requests.extend([("twice in a form", bare().form(&pair)), ("twice in JSON", bare().raw_json(&twice))]);
        }
        if operation.takes_body() && name != TOKEN {
            requests.extend([
                ("in query and form", bare().query(&pair[..1]).form(&pair[1..])),
                ("in query and JSON", bare().query(&pair[..1]).json(&json!({ name: other }))),
            ]);
        }
        for (place, request) in requests {
            // A list may be sent item by item.
            if is_list && place.starts_with("twice") {
                continue;
            }
            let response = request.send();
            let what = format!("{} {name} {place}", operation.name());
            assert_eq!(response.status, 400, "{what}: {}", response.text());
            assert_eq!(response.json()["code"], "conflicting_parameter", "{what}");
            assert!(response.json()["detail"].as_str().unwrap().contains(name), "{what}");
        }
    }
}

#[test]
fn two_spellings_of_one_number_do_not_conflict() {
    let fixture = Fixture::new();
    let balance = |one, other| {
        fixture
            .server
            .get("/coin/balance/phone")
            .by(&fixture.user)
            .query(&[("phoneNumber", one), ("phoneNumber", other)])
    };
    balance("13800138000", "+86 138-0013-8000").send().expect(200);
    balance("13800138000", "13900139000").send().expect_problem(400, "conflicting_parameter");
    balance("13800138000", "x").send().expect_problem(400, "conflicting_parameter");
    let consume =
        fixture.server.post("/coin/consume/phone").by(&fixture.user).query(&[("phoneNumber", "0086 13800138000")]);
    consume.form(&[("phoneNumber", "13800138000")]).send().expect_problem(402, "insufficient_coins");
}

#[test]
fn a_missing_value_does_not_conflict() {
    let server = Setup::default().start();
    let user = server.sign_in("13800138000");
    for nothing in [json!(null), json!(""), json!(" ")] {
        let check = server.post("/version/check").query(&[("clientVersionCode", "1")]);
        check.json(&json!({ "clientVersionCode": nothing })).send().expect(200);
        let page = server.post("/divination-history/get").by(&user).query(&[("page", "1"), ("page", "")]);
        page.json(&json!({ "page": nothing })).send().expect(200);
    }
}

#[test]
fn every_name_for_a_user_is_compared_with_the_caller() {
    let server = Setup::default().start();
    let (user, other) = (server.sign_in("13800138000"), server.sign_in("13800138001"));
    server.command(&["coins", "grant", "13800138000", "7"]).expect(0);
    let calls = [
        ("POST", "/coin/reset"),
        ("POST", "/coin/reset/phone"),
        ("POST", "/coin/consume"),
        ("POST", "/divination-history/deactivate-all"),
        ("POST", "/divination-history/delete"),
        ("PUT", "/user/nickname"),
        ("GET", "/user/profile"),
        ("GET", "/coin/balance"),
        ("GET", "/notifications/all"),
        ("POST", "/payment/gateway/order"),
        ("POST", "/llm/chat"),
        ("GET", "/divination-history/count/13800138000"),
    ];
    let send = |method: &str, path: &str, name: &str, value: &str| {
        let messages = r#"[{"role":"user","content":"x"}]"#;
        let needed = [("nickname", "x"), ("amount", "6.00"), ("coinCount", "60"), ("messages", messages)];
        server.request(method, path).by(&user).query(&needed).query(&[(name, value)]).send()
    };
    for (method, path) in calls {
        let number = [("phoneNumber", &other.phone_number), ("phone_number", &other.phone_number)];
        let ids = ["userId", "user_id", "id"].map(|name| (name, &other.user_id));
        for (name, value) in ids.into_iter().chain(number) {
            let refused = send(method, path, name, value);
            assert_eq!((refused.status, refused.json()["code"].as_str()), (403, Some("not_yours")), "{path} {name}");
        }
    }
    assert_eq!(server.coins(&user), 7);
    for (name, value) in [("user_id", &user.user_id), ("id", &user.user_id), ("phone_number", &user.phone_number)] {
        send("GET", "/coin/balance", name, value).expect(200);
    }
    // Administrators use the endpoint's names for the user.
    let key = server.api_key("desk");
    let named = [("userId", user.user_id.as_str()), ("user_id", other.user_id.as_str())];
    let balance = server.get("/coin/balance").token(&key).query(&named).send().expect(200).json();
    assert_eq!(balance["balance"], 7);
}

#[test]
fn path_values_are_compared_with_other_locations() {
    let fixture = Fixture::new();
    let mut compared = 0;
    for (operation, parameter) in fixture.document.operations.iter().flat_map(|operation| {
        let of_path = operation.parameters.iter().filter(|parameter| parameter.location == ParameterLocation::Path);
        of_path.map(move |parameter| (operation, parameter))
    }) {
        let name = parameter.name.as_str();
        // Parameters that identify a user must match the caller, which other tests check.
        let another = if parameter.is_phone_number() { "13800138099" } else { "99999" };
        let is_own = operation.key.is_none() && operation.names_user(parameter);
        let (status, code) = if is_own { (403, "not_yours") } else { (400, "conflicting_parameter") };
        for way in locations(operation) {
            let same = text_of(&parameter.value_of(&fixture.user).to_string());
            let send = |value: &str| {
                let request = operation.bare(&fixture.server, &fixture.user);
                match way {
                    Location::Json => request.json(&json!({ name: value })),
                    Location::Form => request.form(&[(name, value)]),
                    Location::Query => request.query(&[(name, value)]),
                }
                .send()
            };
            let what = format!("{} {name} as {way:?}", operation.name());
            let refused = send(another);
            assert_eq!((refused.status, refused.json()["code"].as_str()), (status, Some(code)), "{what}");
            assert_ne!(send(&same).status, 400, "{what}");
            compared += 1;
        }
    }
    assert!(compared > 20, "only {compared}");
}

#[test]
fn accepts_one_name_with_the_same_value_twice() {
    let fixture = Fixture::new();
    let user = &fixture.user;
    let twice = [("userId", user.user_id.as_str()), ("userId", user.user_id.as_str())];
    let request = fixture.server.get("/user/profile").by(user).query(&twice);
    request.send().expect(200);
    let number: u64 = user.user_id.parse().unwrap();
    let request = fixture.server.put("/user/nickname").by(user).query(&[("userId", &user.user_id), ("nickname", "1")]);
    request.json(&json!({ "userId": number, "nickname": "1" })).send().expect(200);
    let body = r#"{"localRecordId":"a","jsonData":{"a":1},"jsonData":{"a":1}}"#;
    fixture.server.post("/divination-history/save").by(user).raw_json(body).send().expect(200);
}

#[test]
fn rejects_bodies_that_are_not_json_objects() {
    let fixture = Fixture::new();
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(10_000 / 8), "]".repeat(10_000 / 8));
    let bodies: [&[u8]; 13] = [
        b"{",
        b"}",
        b"{\"a\":}",
        b"{\"a\":1,}",
        b"{'a':1}",
        b"{a:1}",
        b"[]",
        b"\"text\"",
        b"1",
        b"null",
        b"{} {}",
        b"{\"a\":\"\xff\"}",
        deep.as_bytes(),
    ];
    for operation in fixture.document.operations.iter().filter(|operation| operation.takes_body()) {
        // Where a bare list is accepted, an empty one is valid.
        let takes_list =
            ["/batch-compare", "/validate/batch", "/save-batch"].iter().any(|end| operation.path.ends_with(end));
        for body in bodies.into_iter().filter(|body| !(takes_list && *body == b"[]")) {
            let request = operation.bare(&fixture.server, &fixture.user).bytes(Some("application/json"), body.to_vec());
            let response = request.send();
            let what = format!("{} {}", operation.name(), String::from_utf8_lossy(&body[..body.len().min(40)]));
            assert_eq!(response.status, 400, "{what}: {}", response.text());
            assert_eq!(response.json()["code"], "invalid_json", "{what}");
        }
    }
}

#[test]
fn rejects_ten_thousand_nested_levels_everywhere() {
    let fixture = Fixture::new();
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let objects = format!("{}1{}", "{\"a\":".repeat(10_000), "}".repeat(10_000));
    for name in ["jsonData", "localRecordId", "unknown"] {
        for value in [&deep, &objects] {
            let body = format!(r#"{{"localRecordId":"a","{name}":{value}}}"#);
            let request = fixture.server.post("/divination-history/save").by(&fixture.user).raw_json(&body);
            request.send().expect_problem(400, "invalid_json");
        }
    }
    // Inside a text they are only brackets.
    let body = json!({ "localRecordId": "a", "jsonData": deep });
    fixture.server.post("/divination-history/save").by(&fixture.user).json(&body).send().expect(200);
}

#[test]
fn rejects_invalid_utf_8() {
    let fixture = Fixture::new();
    for operation in fixture.document.operations.iter().filter(|operation| !operation.parameters.is_empty()) {
        let path = operation.path_of(&fixture.user);
        let request = fixture.server.request(&operation.method, &format!("{path}?x=%ff%fe"));
        let response = operation.with_token(request, &fixture.user).send();
        assert_eq!(response.status, 400, "{}: {}", operation.name(), response.text());
        assert_eq!(response.json()["code"], "invalid_request");
        if operation.takes_body() {
            for form in [&b"x=%ff"[..], b"x=\xff", b"%c3%28=1"] {
                let request = operation.bare(&fixture.server, &fixture.user);
                let response = request.bytes(Some("application/x-www-form-urlencoded"), form.to_vec()).send();
                assert_eq!(response.status, 400, "{}: {}", operation.name(), response.text());
            }
        }
    }
}

#[test]
fn other_content_types_are_415() {
    let fixture = Fixture::new();
    let foreign = [Some("application/jsonp"), Some("application/xml"), Some("text/html"), Some("*/*"), Some("json")];
    // These types do not say what the body is, but it does not begin like JSON.
    let vague = [None, Some(""), Some("text/plain"), Some("application/octet-stream"), Some(";application/json")];
    let sent = foreign.map(|content_type| (content_type, "{}")).into_iter().chain(vague.map(|vague| (vague, "a=1")));
    let sent: Vec<_> = sent.collect();
    for operation in fixture.document.operations.iter().filter(|operation| operation.takes_body()) {
        for (content_type, body) in &sent {
            let request = operation.bare(&fixture.server, &fixture.user).bytes(*content_type, (*body).into());
            let response = request.send();
            let what = format!("{} {content_type:?}", operation.name());
            assert_eq!(response.status, 415, "{what}: {}", response.text());
            assert_eq!(response.json()["code"], "unsupported_media_type", "{what}");
        }
    }
    // Content codings other than gzip are rejected with a reason.
    let body = json!({ "nickname": "青山" }).to_string();
    let packed = fixture.server.put("/user/nickname").by(&fixture.user).bytes(Some("application/json"), body.into());
    let refused = packed.header("content-encoding", "br").send().expect_problem(415, "unsupported_media_type");
    assert!(refused.json()["detail"].as_str().unwrap().contains("gzip"), "{}", refused.text());
    // Parameters, capitals and an empty body are accepted.
    let put = || fixture.server.put("/user/nickname").by(&fixture.user);
    let json = br#"{"nickname":"x"}"#.to_vec();
    put().bytes(Some("application/json; charset=utf-8"), json.clone()).send().expect(200);
    put().bytes(Some("Application/JSON"), json).send().expect(200);
    put().query(&[("nickname", "x")]).bytes(Some("text/plain"), Vec::new()).send().expect(200);
}

/// Returns a request with a body of this size, with a length or chunked.
fn with_body(fixture: &Fixture, operation: &Operation, token: &str, bytes: usize, chunked: bool) -> Response {
    let path = operation.path_of(&fixture.user);
    let first = format!("{} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n", operation.method);
    let who = if operation.needs_token { format!("authorization: Bearer {token}\r\n") } else { String::new() };
    let what = "content-type: application/x-www-form-urlencoded\r\n";
    let body = if chunked { in_chunks(bytes) } else { format!("content-length: {bytes}\r\n\r\n{}", "x".repeat(bytes)) };
    fixture.server.send_raw(format!("{first}{who}{what}{body}").as_bytes())
}

fn in_chunks(bytes: usize) -> String {
    let mut text = "transfer-encoding: chunked\r\n\r\n".to_owned();
    let mut left = bytes;
    while left > 0 {
        let size = left.min(4_096);
        text += &[&format!("{size:x}\r\n"), "x".repeat(size).as_str(), "\r\n"].concat();
        left -= size;
    }
    text + "0\r\n\r\n"
}

/// Returns the body limit of an endpoint in KiB.
fn limit_of(operation: &Operation) -> usize {
    match operation.path.as_str() {
        path if path.starts_with("/auth/") || path.starts_with("/api/v1/auth/") => 4,
        path if path.starts_with("/api/v1/account/identities") || path.starts_with("/api/v1/devices") => 4,
        "/admin/login" | "/api/v1/account/address" => 4,
        "/api/v1/account" if operation.method == "DELETE" => 4,
        "/divination-history/save" => 256,
        "/divination-history/save-batch" => 2048,
        "/admin/sensitive-word-migration/batch-compare" | "/admin/sensitive-words/import" => 512,
        "/llm/chat" | "/feedback" => 32,
        _ => 64,
    }
}

#[test]
fn limits_body_sizes() {
    let fixture = Fixture::new();
    for operation in fixture.document.operations.iter().filter(|operation| operation.takes_body()) {
        let limit = limit_of(operation) * 1024;
        for chunked in [false, true] {
            let what = format!("{} with {limit} bytes, chunked: {chunked}", operation.name());
            // A caller that deletes the account needs a new one.
            let deleted_caller = (operation.name() == "DELETE /api/v1/account")
                .then(|| fixture.server.sign_in(if chunked { "13800138001" } else { "13800138002" }).token);
            let token = deleted_caller.as_deref().unwrap_or(fixture.token(operation));
            let larger = with_body(&fixture, operation, token, limit + 1, chunked);
            assert_eq!(larger.status, 413, "{what} and one more: {}", larger.text());
            assert_eq!(larger.json()["code"], "body_too_large", "{what}");
            let fits = with_body(&fixture, operation, token, limit, chunked);
            assert!(fits.status < 500 && fits.status != 413, "{what}: {}", fits.text());
        }
    }
}

#[test]
fn a_client_that_is_still_sending_gets_the_rejection() {
    let fixture = Fixture::new();
    for operation in fixture.document.operations.iter().filter(|operation| operation.takes_body()) {
        let length = 900_000.max(limit_of(operation) * 1024 + 1);
        for chunked in [false, true] {
            let what = format!("{}, chunked: {chunked}", operation.name());
            let larger = with_body(&fixture, operation, fixture.token(operation), length, chunked);
            assert_eq!(larger.status, 413, "{what}: {}", larger.text());
            if operation.needs_token {
                let stranger = with_body(&fixture, operation, "nobody", length, chunked);
                assert_eq!(stranger.status, 401, "{what}: {}", stranger.text());
            }
        }
    }
}

#[test]
fn a_wrong_content_length_causes_no_internal_error() {
    let fixture = Fixture::new();
    for length in ["-1", "x", "99999999999999999999", "1, 2", ""] {
        let head =
            format!("POST /auth/login HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
        let response = fixture.server.send_raw(head.as_bytes());
        assert!((400..500).contains(&response.status), "{length}: {}", response.status);
    }
    let both = "POST /auth/login HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 5\r\n\
                transfer-encoding: chunked\r\n\r\n0\r\n\r\n";
    assert!((400..500).contains(&fixture.server.send_raw(both.as_bytes()).status));
}

#[test]
fn validates_path_parameters() {
    let fixture = Fixture::new();
    for (operation, parameter) in fixture.document.operations.iter().flat_map(|operation| {
        let of_path = operation.parameters.iter().filter(|parameter| parameter.location == ParameterLocation::Path);
        of_path.map(move |parameter| (operation, parameter))
    }) {
        for value in ["%00", "%20", "%ff", "a%00b", "%e4%b9%be", "null", "-1", "0", "1e3", "..%2f", &"9".repeat(400)] {
            let path = operation.path.replace(&format!("{{{}}}", parameter.name), value);
            let request = operation.with_token(fixture.server.request(&operation.method, &path), &fixture.user);
            let response = request.send();
            let what = format!("{} {path}", operation.method);
            assert!(matches!(response.status, 400 | 404 | 422), "{what}: {} {}", response.status, response.text());
            assert_eq!(response.header("content-type"), Some("application/problem+json"), "{what}");
            if value == "%ff" {
                assert_eq!((response.status, &response.json()["code"]), (400, &json!("invalid_request")), "{what}");
            }
        }
    }
}

#[test]
fn reports_all_bad_fields_at_once() {
    let fixture = Fixture::new();
    let operations = fixture.document.operations.iter().filter(|operation| operation.takes_body());
    for operation in operations.filter(|operation| operation.parameters.len() > 1) {
        let bad: Map<String, Value> = operation
            .parameters
            .iter()
            .filter(|parameter| parameter.location != ParameterLocation::Path)
            .map(|parameter| {
                let value = if takes_anything(parameter) { json!("\0") } else { json!({ "a": 1 }) };
                (parameter.name.clone(), value)
            })
            .collect();
        let response = operation.bare(&fixture.server, &fixture.user).json(&Value::Object(bad.clone())).send();
        assert_eq!(response.status, 422, "{}: {}", operation.name(), response.text());
        let problem = response.json();
        let errors = problem["errors"].as_array().unwrap();
        // An invalid item of a list has its index.
        let mut fields: Vec<_> =
            errors.iter().map(|error| error["field"].as_str().unwrap().trim_end_matches("[0]")).collect();
        fields.sort_unstable();
        let mut expected: Vec<_> = bad.keys().map(String::as_str).collect();
        expected.sort_unstable();
        assert_eq!(fields, expected, "{}", operation.name());
    }
}

#[test]
fn no_bad_input_causes_an_internal_error_in_the_log() {
    let fixture = Fixture::new();
    for (operation, parameter) in fixture.parameters() {
        for value in ["{}", "[]", "1e999", r#""\u0000""#, r#""\ud800""#] {
            fixture.with(operation, &parameter.name, value, Location::Json).send();
        }
    }
    let faults: Vec<_> = fixture.server.lines().into_iter().filter(|line| line.contains("ERROR")).collect();
    assert!(faults.is_empty(), "{faults:#?}");
}
