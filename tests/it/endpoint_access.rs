//! Access to every served endpoint, and to alternative spellings of paths and methods.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use serde_json::Value;

use crate::operations::roles;
use crate::support::{
    Caller, Document, Operation, ParameterLocation, Response, Server, Setup, eventually_ok, plain_text,
};

/// The callers that an endpoint admits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Everybody. A bad token counts as none.
    Anyone,
    /// The token is the credential and may be a parameter.
    TokenHolder,
    /// Users, on their own data.
    OwnUser,
    /// Users on their own data, and administrators on everybody's.
    OwnUserOrAdmin,
    /// Administrators.
    Admin,
}

use Access::{Admin, Anyone, OwnUser, OwnUserOrAdmin, TokenHolder};

impl Access {
    fn is_for_users(self) -> bool {
        matches!(self, OwnUser | OwnUserOrAdmin)
    }

    fn needs_token(self) -> bool {
        matches!(self, OwnUser | OwnUserOrAdmin | Admin)
    }
}

/// The expected access of all endpoints but those of administrators alone, which stand in the table of roles. Endpoints
/// missing in both and rows without an endpoint fail the test.
const EXPECTED: &[(&str, Access)] = &[
    ("POST /auth/send-code", Anyone),
    ("POST /auth/login", Anyone),
    ("POST /auth/identity", Anyone),
    ("POST /auth/identity/apple/events", Anyone),
    ("POST /auth/validate-token", TokenHolder),
    ("POST /auth/refresh-token", TokenHolder),
    ("POST /auth/logout", TokenHolder),
    ("POST /api/v1/auth/send-code", Anyone),
    ("POST /api/v1/auth/login", Anyone),
    ("POST /api/v1/auth/identity", Anyone),
    ("POST /api/v1/account/identities", OwnUser),
    ("DELETE /api/v1/account/identities/{provider}", OwnUser),
    ("POST /api/v1/devices", OwnUser),
    ("GET /api/v1/devices", OwnUser),
    ("DELETE /api/v1/devices/{id}", OwnUser),
    ("POST /api/v1/auth/refresh", TokenHolder),
    ("POST /api/v1/auth/logout", TokenHolder),
    ("GET /api/v1/auth/tokens", OwnUser),
    ("DELETE /api/v1/auth/tokens/{id}", OwnUser),
    ("GET /api/v1/account", OwnUser),
    ("PATCH /api/v1/account", OwnUser),
    ("DELETE /api/v1/account", OwnUser),
    ("GET /api/v1/account/export", OwnUser),
    ("POST /api/v1/account/address", OwnUser),
    ("GET /user/profile", OwnUserOrAdmin),
    ("PUT /user/profile", OwnUser),
    ("PUT /user/nickname", OwnUser),
    ("PUT /user/signature", OwnUser),
    ("GET /coin/balance", OwnUserOrAdmin),
    ("GET /coin/balance/phone", OwnUserOrAdmin),
    ("POST /coin/consume", OwnUser),
    ("POST /coin/consume/phone", OwnUser),
    ("POST /coin/reset", OwnUserOrAdmin),
    ("POST /coin/reset/phone", OwnUserOrAdmin),
    ("GET /payment/gateway/order", OwnUser),
    ("POST /payment/gateway/order", OwnUser),
    ("POST /payment/notify", TokenHolder),
    ("POST /payment/notify/apple", TokenHolder),
    ("POST /payment/notify/google", TokenHolder),
    ("POST /payment/notify/{channel}", TokenHolder),
    ("POST /payment/update-balance", OwnUserOrAdmin),
    ("POST /content-moderation/check-question", OwnUserOrAdmin),
    ("POST /admin/login", Anyone),
    ("POST /admin/logout", Admin),
    ("POST /divination-history/save", OwnUser),
    ("POST /divination-history/save-batch", OwnUser),
    ("POST /divination-history/get", OwnUser),
    ("POST /divination-history/delete", OwnUser),
    ("GET /divination-history/count/{phoneNumber}", OwnUser),
    ("POST /divination-history/deactivate-all", OwnUser),
    ("POST /divination-history/restore-all", OwnUser),
    ("POST /divination/enhanced", OwnUser),
    ("GET /divination/records/user/{userId}", OwnUserOrAdmin),
    ("GET /divination/records/trace/{traceId}", OwnUserOrAdmin),
    ("GET /divination/records/phone/{phoneNumber}", OwnUserOrAdmin),
    ("GET /divination/records/user/{userId}/daterange", OwnUserOrAdmin),
    ("GET /divination/stats/user/{userId}/count", OwnUserOrAdmin),
    ("POST /llm/chat", OwnUser),
    ("GET /api/v1/points", OwnUser),
    ("GET /api/v1/points/ledger", OwnUser),
    ("POST /api/v1/points/exchange", OwnUser),
    ("GET /coin/history", OwnUser),
    ("GET /payment/products", Anyone),
    ("GET /api/v1/products", Anyone),
    ("GET /payment/account-token", OwnUser),
    ("GET /api/v1/payment/account-token", OwnUser),
    ("POST /payment/purchases/apple", OwnUser),
    ("POST /payment/purchases/google", OwnUser),
    ("POST /api/v1/purchases/apple", OwnUser),
    ("POST /api/v1/purchases/google", OwnUser),
    ("GET /api/v1/purchases", OwnUser),
    ("GET /payment/orders", OwnUser),
    ("POST /api/v1/orders", OwnUser),
    ("GET /api/v1/orders", OwnUser),
    ("GET /api/v1/orders/{orderNo}", OwnUser),
    ("POST /api/v1/orders/{orderNo}/confirm", OwnUser),
    ("POST /api/v1/orders/{orderNo}/sandbox-pay", OwnUser),
    ("GET /api/v1/invite", OwnUser),
    ("POST /api/v1/invite/redeem", OwnUser),
    ("GET /api/v1/hexagrams", Anyone),
    ("GET /api/v1/hexagrams/{number}", Anyone),
    ("POST /api/v1/sessions", OwnUser),
    ("GET /api/v1/sessions", OwnUser),
    ("GET /api/v1/sessions/{id}", OwnUser),
    ("PATCH /api/v1/sessions/{id}", OwnUser),
    ("DELETE /api/v1/sessions/{id}", OwnUser),
    ("GET /api/v1/sessions/{id}/card.svg", OwnUser),
    ("POST /api/v1/sessions/{id}/interpretation", OwnUser),
    ("PUT /api/v1/interpretations/{traceId}/rating", OwnUser),
    ("GET /notifications/latest", Anyone),
    ("GET /notifications/all", Anyone),
    ("GET /api/v1/notifications", OwnUser),
    ("GET /api/v1/notifications/stream", OwnUser),
    ("GET /api/v1/notifications/unread-count", OwnUser),
    ("PATCH /api/v1/notifications/{id}/read", OwnUser),
    ("PATCH /api/v1/notifications/mark-all-read", OwnUser),
    ("GET /api/v1/changes", OwnUser),
    ("GET /api/v1/preferences", OwnUser),
    ("PATCH /api/v1/preferences", OwnUser),
    ("POST /feedback", Anyone),
    ("POST /version/check", Anyone),
    ("GET /version/latest", Anyone),
    ("GET /healthz", Anyone),
    ("GET /readyz", Anyone),
    ("GET /openapi.json", Anyone),
    ("GET /", Anyone),
    ("GET /docs", Anyone),
    ("GET /docs/", Anyone),
    ("GET /docs/{file}", Anyone),
];

pub fn expected_access(operation: &Operation) -> Access {
    let name = operation.name();
    *expected().get(name.as_str()).unwrap_or_else(|| panic!("{name} is served but has no expected access"))
}

fn expected() -> &'static BTreeMap<&'static str, Access> {
    static EXPECTED_OF_ALL: LazyLock<BTreeMap<&'static str, Access>> = LazyLock::new(|| {
        let of_admins = roles::endpoints().map(|name| (name, Admin));
        of_admins.chain(EXPECTED.iter().copied()).collect()
    });
    &EXPECTED_OF_ALL
}

/// Starts a server with two users.
fn fixture() -> (Server, Caller, Caller, Document) {
    let server = Setup::default().start();
    let (user, other) = (server.sign_in("13800138000"), server.sign_in("13800138001"));
    let document = Document::of(&server);
    (server, user, other, document)
}

/// Returns the documented error codes.
fn registry(document: &Document) -> BTreeSet<String> {
    let description = document.value["info"]["description"].as_str().unwrap();
    let rows = description.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    rows.map(|(code, _)| code.to_owned()).collect()
}

/// Panics unless this is a well-formed error.
#[track_caller]
fn expect_well_formed(response: &Response, registry: &BTreeSet<String>, what: &str) {
    assert_eq!(response.header("content-type"), Some("application/problem+json"), "{what}: {}", response.text());
    let problem = response.json();
    assert_eq!(problem["status"], response.status, "{what}");
    assert_eq!(problem["type"], "about:blank", "{what}");
    assert!(problem["title"].is_string() && problem["detail"].is_string(), "{what}: {problem}");
    assert!(registry.contains(problem["code"].as_str().unwrap()), "{what}: {problem}");
    assert_eq!(problem["requestId"].as_str(), response.header("x-request-id"), "{what}");
    assert_eq!(response.status == 401, response.header("www-authenticate").is_some(), "{what}");
    assert_eq!(response.status == 405, response.header("allow").is_some(), "{what}");
}

#[test]
fn every_endpoint_has_its_expected_access() {
    let (_server, _, _, document) = fixture();
    let served: BTreeSet<_> = document.operations.iter().map(Operation::name).collect();
    let expected_access: BTreeSet<_> = expected().keys().map(|name| (*name).to_owned()).collect();
    assert_eq!(served, expected_access);
    for operation in &document.operations {
        assert_eq!(operation.needs_token, self::expected_access(operation).needs_token(), "{}", operation.name());
        assert_eq!(operation.key.is_some(), self::expected_access(operation) == Admin, "{}", operation.name());
    }
}

#[test]
fn only_public_endpoints_work_without_a_token() {
    let (server, user, _, document) = fixture();
    let registry = registry(&document);
    for operation in &document.operations {
        let response = server.request(&operation.method, &operation.path_of(&user)).send();
        match expected_access(operation) {
            OwnUser | OwnUserOrAdmin | Admin => {
                expect_well_formed(&response, &registry, &operation.name());
                assert_eq!((response.status, &response.json()["code"]), (401, &Value::from("unauthenticated")));
            }
            Anyone | TokenHolder => assert_ne!(response.status, 401, "{}", operation.name()),
        }
    }
}

#[test]
fn rejects_a_bad_token_only_where_one_is_needed() {
    let (server, user, other, document) = fixture();
    let expired = server.sign_in("13800138002");
    server.edit(&format!("update tokens set expires_at = 1 where user_id = {}", expired.user_id));
    server.post("/auth/logout").by(&other).send().expect(200);
    let bad = [
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        "Basic dXNlcjpwYXNz".to_owned(),
        format!("Token {}", user.token),
        "Bearer null".to_owned(),
        format!("Bearer {}x", user.token),
        format!("Bearer {}", user.token.to_lowercase()),
        format!("Bearer {0} {0}", user.token),
        format!("Bearer {}", "A".repeat(43)),
        format!("Bearer {}", "A".repeat(8_000)),
        "Bearer ' or 1=1 --".to_owned(),
        format!("Bearer {}", expired.token),
        format!("Bearer {}", other.token),
    ];
    let guarded = document.operations.iter().filter(|operation| expected_access(operation) != TokenHolder);
    for (number, operation) in guarded.enumerate() {
        // All bad tokens on one endpoint, and one of them in turn on each other endpoint.
        let chosen = if number == 0 { &bad[..] } else { &bad[number % bad.len()..][..1] };
        for header in chosen.iter().chain([&bad[12]]) {
            let request = server.request(&operation.method, &operation.path_of(&user));
            let response = request.header("authorization", header).send();
            let what = format!("{} with {header:?}", operation.name());
            if expected_access(operation) == Anyone {
                assert_ne!(response.status, 401, "{what}: {}", response.text());
                continue;
            }
            assert_eq!(response.status, 401, "{what}: {}", response.text());
            let problem = response.json();
            assert_eq!(problem["code"], "unauthenticated", "{what}");
            let challenge = response.header("www-authenticate").unwrap();
            for told in [challenge, problem["detail"].as_str().unwrap()] {
                assert!(told.contains("Authorization: Bearer <token> or token: <token>"), "{what}: {told}");
            }
        }
    }
}

#[test]
fn a_user_may_use_every_user_endpoint() {
    let (server, stays, _, document) = fixture();
    for (number, operation) in document.operations.iter().enumerate() {
        let leaves = operation.ends_session().then(|| server.sign_in(&format!("13900139{number:03}")));
        let user = leaves.as_ref().unwrap_or(&stays);
        let request = server.request(&operation.method, &operation.path_of(user)).by(user);
        let values = operation.required_values(user);
        let response = if operation.takes_body() {
            request.json(&Value::Object(values)).send()
        } else {
            let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
            let texts: Vec<_> = values.iter().map(|(name, value)| (name.as_str(), text(value))).collect();
            let pairs: Vec<_> = texts.iter().map(|(name, text)| (*name, text.as_str())).collect();
            request.query(&pairs).send()
        };
        // The example's code is wrong, and its ids do not exist.
        let fine = match operation.name().as_str() {
            "POST /auth/login" | "POST /api/v1/auth/login" => {
                response.status == 401 && response.json()["code"] == "invalid_code"
            }
            "GET /divination/records/trace/{traceId}"
            | "PUT /api/v1/interpretations/{traceId}/rating"
            | "POST /payment/update-balance"
            | "GET /api/v1/orders/{orderNo}"
            | "POST /api/v1/orders/{orderNo}/confirm"
            | "POST /api/v1/orders/{orderNo}/sandbox-pay"
            | "DELETE /api/v1/auth/tokens/{id}"
            | "DELETE /api/v1/account/identities/{provider}"
            | "DELETE /api/v1/devices/{id}"
            | "PATCH /api/v1/notifications/{id}/read"
            | "GET /version/latest" => response.status == 404,
            name if name.contains("/sessions/{id}") || name.ends_with("/invite/redeem") => response.status == 404,
            // The document cannot express alternatives of required parameters.
            "POST /api/v1/account/address"
            | "POST /auth/identity"
            | "POST /api/v1/auth/identity"
            | "POST /api/v1/account/identities"
            | "POST /divination-history/delete"
            | "POST /divination-history/save-batch"
            | "POST /divination/enhanced"
            | "POST /version/check" => response.status == 422,
            "GET /" | "GET /docs" => response.status == 308,
            "POST /auth/send-code" => response.status == 429,
            // No provider of identities, no push service and no app store is configured.
            "POST /auth/identity/apple/events" | "POST /api/v1/devices" => response.status == 409,
            "POST /payment/notify/apple" | "POST /payment/notify/google" => response.status == 503,
            name if name.contains("/purchases/") => response.status == 409 || expected_access(operation) == Admin,
            "POST /api/v1/points/exchange" => response.status == 409,
            "POST /coin/consume" | "POST /coin/consume/phone" | "POST /api/v1/sessions" => response.status == 402,
            "POST /admin/login" => response.status == 401 && response.json()["code"] == "invalid_credentials",
            _ if expected_access(operation) == Admin => {
                response.status == 403 && response.json()["code"] == "forbidden"
            }
            _ => matches!(response.status, 200 | 201 | 204),
        };
        assert!(fine, "{}: {} {}", operation.name(), response.status, response.text());
    }
}

#[test]
fn rejects_other_users_whether_or_not_they_exist() {
    let (server, user, other, document) = fixture();
    let no_one = Caller { user_id: "999999".into(), phone_number: "13800138099".into(), token: String::new() };
    let registry = registry(&document);
    let mut refused = 0;
    for operation in document.operations.iter().filter(|operation| expected_access(operation).is_for_users()) {
        for parameter in operation.parameters.iter().filter(|parameter| operation.names_user(parameter)) {
            let mut responses = Vec::new();
            for named in [&other, &no_one] {
                let mut values = operation.required_values(&user);
                let path = match parameter.location {
                    ParameterLocation::Path => operation.path_of(named),
                    ParameterLocation::Query | ParameterLocation::Body => {
                        values.insert(parameter.name.clone(), parameter.value_of(named));
                        operation.path_of(&user)
                    }
                };
                let request = server.request(&operation.method, &path).by(&user);
                let response = if operation.takes_body() {
                    request.json(&Value::Object(values)).send()
                } else {
                    let texts: Vec<_> = values.iter().map(|(name, value)| (name.as_str(), plain_text(value))).collect();
                    let texts: Vec<_> = texts.iter().map(|(name, value)| (*name, value.as_str())).collect();
                    request.query(&texts).send()
                };
                let what = format!("{} {}", operation.name(), parameter.name);
                assert_eq!(response.status, 403, "{what}: {}", response.text());
                expect_well_formed(&response, &registry, &what);
                let mut problem = response.json();
                problem["requestId"].take();
                responses.push(problem);
                refused += 1;
            }
            assert_eq!(responses[0], responses[1], "{}", operation.name());
            assert_eq!(responses[0]["code"], "not_yours");
        }
    }
    assert!(refused > 30, "only {refused} rejections: the document has lost its user parameters");
}

#[test]
fn the_token_of_a_deleted_user_is_invalid() {
    let (server, user, _, document) = fixture();
    server.edit(&format!("pragma foreign_keys = on; delete from users where id = {}", user.user_id));
    for operation in document.operations.iter().filter(|operation| expected_access(operation).is_for_users()) {
        operation.bare(&server, &user).send().expect_problem(401, "unauthenticated");
    }
}

/// Returns spellings of a path that some proxies and routers treat as equal.
fn variants(path: &str) -> Vec<String> {
    let last = path.rfind('/').unwrap();
    let (parent, name) = path.split_at(last + 1);
    let first = name.chars().next().map(|first| format!("%{:02x}", u32::from(first))).unwrap_or_default();
    let encoded = format!("{parent}{first}{}", name.get(1..).unwrap_or_default());
    vec![
        path.to_uppercase(),
        encoded,
        path.replacen('/', "%2f", 2).replacen("%2f", "/", 1),
        format!("{path}/."),
        format!("{parent}./{name}"),
        format!("{parent}x/../{name}"),
        format!("/x/..{path}"),
        format!("{path}%00"),
        format!("{path}%20"),
        format!("{path};x=1"),
        format!("{path}.json"),
        format!("{path}\\"),
    ]
}

#[test]
fn other_spellings_of_a_path_bypass_nothing() {
    let (server, user, _, document) = fixture();
    let registry = registry(&document);
    for operation in document.operations.iter().filter(|operation| !operation.path.starts_with("/docs")) {
        let path = operation.path_of(&user);
        // If the last segment is a value, an encoded letter or a space is part of that value.
        let ends_in_value = operation.path.ends_with('}');
        // A list path may be followed by an item: the text after the slash is a value too.
        let below = format!("{}/{{", operation.path);
        // Beside a path that ends in a value, another spelling is such a value.
        let beside = operation.path.rsplit_once('/').map(|(parent, _)| format!("{parent}/{{")).unwrap_or_default();
        let is_below = |other: &Operation| other.path.starts_with(&below) || other.path.starts_with(&beside);
        let may_be_value = ends_in_value || document.operations.iter().any(is_below);
        let is_same = |variant: &String| {
            ends_in_value && (variant.ends_with("%20") || variant.contains("/%3") || variant.contains("/%7"))
        };
        for variant in variants(&path).into_iter().filter(|variant| *variant != path && !is_same(variant)) {
            for token in ["", &format!("authorization: Bearer {}\r\n", user.token)] {
                let head =
                    format!("{} {variant} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{token}", operation.method);
                let response = server.send_raw(format!("{head}content-length: 0\r\n\r\n").as_bytes());
                let what = format!("{} {variant}", operation.method);
                let is_value = may_be_value && response.status == 422;
                // An administrators' path may have a longer one with a value.
                let is_closed = expected_access(operation) == Admin && response.status == 403;
                assert!(
                    is_value || is_closed || matches!(response.status, 400 | 401 | 404 | 405),
                    "{what}: {}",
                    response.status
                );
                // A malformed request line is rejected before routing.
                if !response.bytes.is_empty() {
                    expect_well_formed(&response, &registry, &what);
                }
            }
        }
    }
}

#[test]
fn double_slashes_are_single_ones_except_below_admin() {
    let (server, user, _, document) = fixture();
    for operation in document.operations.iter().filter(|operation| !operation.path.starts_with("/docs")) {
        let path = operation.path_of(&user);
        let (parent, name) = path.split_at(path.rfind('/').unwrap() + 1);
        for variant in [format!("/{path}"), format!("{parent}/{name}"), format!("{path}//"), format!("//{path}?a=//b")]
        {
            // Without a token, so that nothing changes.
            let head = format!("{} {variant} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n", operation.method);
            let response = server.send_raw(format!("{head}content-length: 0\r\n\r\n").as_bytes());
            let what = format!("{} {variant}: {}", operation.method, response.status);
            if path.starts_with("/admin/") {
                assert!(matches!(response.status, 401 | 404 | 405), "{what}");
            } else if expected_access(operation).needs_token() {
                assert_eq!(response.status, 401, "{what}");
            } else {
                assert!(response.status != 404 || response.json()["code"] != "unknown_endpoint", "{what}");
            }
        }
    }
    let doubled = server.send_raw(
        format!(
            "GET //user//profile HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\nconnection: close\r\n\r\n",
            user.token
        )
        .as_bytes(),
    );
    assert_eq!((doubled.status, &doubled.json()["userId"]), (200, &Value::from(user.user_id)));
}

#[test]
fn other_methods_are_405_with_an_allow_header() {
    let (server, user, _, document) = fixture();
    let registry = registry(&document);
    for operation in &document.operations {
        let path = operation.path_of(&user);
        let of_path = document.operations.iter().filter(|other| other.path == operation.path);
        let mut allowed: BTreeSet<_> = of_path.map(|other| other.method.as_str()).collect();
        if allowed.contains("GET") {
            allowed.insert("HEAD");
        }
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"] {
            if allowed.contains(method) {
                continue;
            }
            let response = server.request(method, &path).by(&user).send();
            let what = format!("{method} {path}");
            assert_eq!(response.status, 405, "{what}: {}", response.text());
            expect_well_formed(&response, &registry, &what);
            assert_eq!(response.json()["code"], "method_not_allowed");
            let message: BTreeSet<_> = response.header("allow").unwrap().split(',').map(str::trim).collect();
            assert_eq!(message, allowed, "{what}");
        }
    }
}

#[test]
fn unknown_paths_are_404() {
    let server = Setup::default().start();
    let user = server.sign_in("13800138000");
    for path in ["/nothing", "/user", "/auth/", "/admin", "/admin/", "/.env", "/divination/records/user/", "/yarrow.db"]
    {
        server.get(path).send().expect_problem(404, "unknown_endpoint");
        server.post(path).by(&user).json(&serde_json::json!({})).send().expect_problem(404, "unknown_endpoint");
    }
    for file in ["nothing.js", "..%2fCargo.toml", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "..", "%2e%2e", "index.html%00"] {
        let response = server.get(&format!("/docs/{file}")).send();
        assert!(matches!(response.status, 404 | 422), "{file}: {}", response.text());
    }
}

#[test]
fn head_is_get_without_a_body() {
    let server = Setup::default().start();
    let response = server.request("HEAD", "/healthz").send().expect(200);
    assert!(response.bytes.is_empty());
    assert_eq!(server.request("HEAD", "/user/profile").send().status, 401);
}

#[test]
fn echoes_a_valid_request_id_and_replaces_others() {
    let server = Setup::default().start();
    let ask = |id: &str| {
        let response = server.get("/nothing").header("x-request-id", id).send().expect(404);
        assert_eq!(response.json()["requestId"].as_str(), response.header("x-request-id"));
        response.header("x-request-id").unwrap().to_owned()
    };
    for id in ["a", "7c9e6679-7425-40de-944b-e07fc1f90ae7", "A_b.c:1-2", &"x".repeat(64)] {
        assert_eq!(ask(id), id);
    }
    let mut given = BTreeSet::new();
    for id in ["", " ", "a b", "<script>", "a\"b", "a{b}", "乾", "a\tb", "a,b", &"x".repeat(65), &"x".repeat(4_000)] {
        let new = ask(id);
        assert_ne!(new, id);
        assert!(new.len() >= 16 && new.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{new}");
        given.insert(new);
    }
    given.extend((0..20).map(|_| server.get("/healthz").send().header("x-request-id").unwrap().to_owned()));
    assert_eq!(given.len(), 31, "ids repeat");
}

#[test]
fn every_response_has_a_request_id_and_a_network_log_entry() {
    let (server, user, _, document) = fixture();
    // Deleting the account erases the entries of its user.
    let walk: Vec<_> = document.operations.iter().filter(|it| it.name() != "DELETE /api/v1/account").collect();
    for operation in &walk {
        let response = operation.bare(&server, &user).header("x-request-id", "the-walk").send();
        assert_eq!(response.header("x-request-id"), Some("the-walk"), "{}", operation.name());
    }
    // The test signs its own user out halfway. Later responses have entries all the same.
    let walked = i64::try_from(walk.len()).unwrap();
    let logged = || server.value::<i64>("select count(*) from access_log where request_id = 'the-walk'");
    eventually_ok("all requests are in the network log", || {
        let logged = logged();
        if logged == walked { Ok(()) } else { Err((logged, walked)) }
    });
    let with_values: i64 = server
        .value("select count(*) from access_log where route like '%138001%' or route like '%' || char(63) || '%'");
    assert_eq!(with_values, 0, "the network log contains paths or queries");
}

/// Changes by administrators that need no recent proof of identity: they neither move money at a person's discretion nor
/// delete stored data nor reach every client.
const WITHOUT_RECENT_PROOF: &[&str] = &[
    // Restore what ledger, provider or store say.
    "POST /coin/sync",
    "POST /payment/update-balance",
    "POST /admin/purchases/{id}/history",
    "POST /admin/purchases/{id}/query",
    "POST /admin/payments/bill",
    "POST /admin/payments/callbacks/{id}/replay",
    "POST /admin/payments/{orderNo}/query",
    "POST /admin/user-data/sync",
    "POST /admin/user-data/fix/{phoneNumber}",
    "POST /admin/user-data/restore-history/{userId}",
    // Daily work of moderators and support on one user or text, which can be undone.
    "POST /admin/sensitive-words/add",
    "POST /admin/sensitive-words/import",
    "POST /admin/sensitive-words/allowed-phrases",
    "DELETE /admin/sensitive-words/allowed-phrases",
    "DELETE /admin/sensitive-words/remove",
    "POST /admin/violations/review/decide",
    "POST /admin/violations/review/undo",
    "POST /admin/violations/{id}/acquittal",
    "DELETE /admin/violations/{id}/acquittal",
    "POST /admin/users/{userId}/suspension",
    "DELETE /admin/users/{userId}/suspension",
    "POST /admin/users/{userId}/notes",
    "DELETE /admin/users/{userId}/notes/{id}",
    "DELETE /admin/users/{userId}/nickname",
    "DELETE /admin/users/{userId}/devices",
    "DELETE /admin/users/{userId}/devices/{id}",
    "PATCH /admin/feedback/{id}",
    "POST /admin/feedback/{id}/reply",
    // Checks and tests.
    "POST /content-moderation/check-question",
    "POST /admin/sensitive-words/test/nickname",
    "POST /admin/sensitive-words/test/signature",
    "POST /admin/sensitive-words/test/question",
    "POST /admin/sensitive-words/test/answer",
    "POST /admin/sensitive-word-migration/compare",
    "POST /admin/sensitive-word-migration/batch-compare",
    "POST /admin/user-data/validate/batch",
    "POST /admin/webhooks/replay",
    "POST /admin/webhooks/test",
    "POST /admin/health/alert-test",
    "POST /admin/health/backup",
    "POST /admin/health/ledger-verification",
    "POST /admin/health/doctor",
    "POST /admin/logout",
];

#[test]
fn money_deletions_and_acts_on_all_clients_need_a_recent_proof() {
    let (server, user, _, document) = fixture();
    let key = server.api_key("shop");
    let session = server.admin("root", "correct horse battery");
    server.edit("update admin_tokens set proved_at = proved_at - 600001");
    let mut left = WITHOUT_RECENT_PROOF.iter().copied().collect::<BTreeSet<_>>();
    let changes: Vec<_> = expected().iter().filter(|(_, access)| matches!(access, Admin | OwnUserOrAdmin)).collect();
    let mut refused = 0;
    for (name, _) in changes.into_iter().filter(|(name, _)| !name.starts_with("GET ") && !left.remove(*name)) {
        let operation = document.operations.iter().find(|operation| operation.name() == *name).unwrap();
        let (method, path) = name.split_once(' ').unwrap();
        let path = path.replace("{userId}", &user.user_id).replace(['{', '}'], "");
        let send = |token: &str| server.request(method, &path).token(token).json(&serde_json::json!({})).send();
        send(&session).expect_problem(403, "step_up_required");
        let with_key = send(&key);
        assert!(!with_key.text().contains("step_up_required"), "{name}: {}", with_key.text());
        assert!(operation.value["responses"]["403"].to_string().contains("step_up_required"), "{name}");
        refused += 1;
    }
    assert!(left.is_empty() && refused > 25, "{refused}, {left:?}");
}
