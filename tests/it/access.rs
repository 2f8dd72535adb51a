//! Every endpoint with every kind of caller, naming themselves and others in every parameter location.
//!
//! Expected access is in `endpoint_access`. The endpoints come from the running server's document.

use serde_json::{Map, Value, json};

use crate::{
    endpoint_access::{Access, expected_access},
    invalid_input::{Location, WAYS, locations, texts},
    support::{Caller, Document, Operation, Parameter, ParameterLocation, Request, Response, Server, Setup},
};

const PASSWORD: &str = "correct horse battery staple";

/// The caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallerKind {
    Nobody,
    BadToken,
    SignedOut,
    User,
    Admin,
    Key,
}

const EVERYBODY: [CallerKind; 6] = [
    CallerKind::Nobody,
    CallerKind::BadToken,
    CallerKind::SignedOut,
    CallerKind::User,
    CallerKind::Admin,
    CallerKind::Key,
];

/// The expected outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Unauthenticated,
    Forbidden,
    NotYours,
    /// Any outcome except a missing right.
    LetIn,
}

/// Returns the outcome that the contract requires.
fn verdict(operation: &Operation, who: CallerKind, names_other: bool) -> Verdict {
    let access = expected_access(operation);
    // Anyone may send feedback, but administrators are not users.
    if operation.path == "/feedback" && matches!(who, CallerKind::Admin | CallerKind::Key) {
        return Verdict::Forbidden;
    }
    // An API key has no session to end.
    if operation.path == "/admin/logout" && who == CallerKind::Key {
        return Verdict::Forbidden;
    }
    let proved = match who {
        CallerKind::Nobody => None,
        CallerKind::BadToken | CallerKind::SignedOut if access != Access::TokenHolder => None,
        who => Some(who),
    };
    match (access, proved) {
        (Access::TokenHolder, _) | (Access::Anyone, None) => Verdict::LetIn,
        (_, None) => Verdict::Unauthenticated,
        (Access::Admin, Some(CallerKind::User)) | (Access::OwnUser, Some(CallerKind::Admin | CallerKind::Key)) => {
            Verdict::Forbidden
        }
        (Access::OwnUser | Access::OwnUserOrAdmin | Access::Anyone, Some(CallerKind::User)) if names_other => {
            Verdict::NotYours
        }
        _ => Verdict::LetIn,
    }
}

fn found(response: &Response) -> Verdict {
    let problem: Value = serde_json::from_slice(&response.bytes).unwrap_or_default();
    match (response.status, problem["code"].as_str()) {
        (401, Some("unauthenticated")) => Verdict::Unauthenticated,
        (403, Some("forbidden")) => Verdict::Forbidden,
        (403, Some("not_yours")) => Verdict::NotYours,
        _ => Verdict::LetIn,
    }
}

struct Fixture {
    server: Server,
    user: Caller,
    other: Caller,
    signed_out: Caller,
    admin: String,
    document: Document,
}

impl Fixture {
    fn new() -> Self {
        // The test guesses codes and passwords.
        let server = Setup::default().with("AUTH_TOKENS_PER_USER", 100_000).start();
        let [user, other, signed_out] =
            ["13800138000", "13800138001", "13800138002"].map(|phone| server.sign_in(phone));
        server.post("/auth/logout").by(&signed_out).send().expect(200);
        let admin = server.admin("root", PASSWORD);
        let document = Document::of(&server);
        Self { server, user, other, signed_out, admin, document }
    }

    /// Adds the credential. Callers that were signed out or deleted are replaced.
    fn by(&self, who: CallerKind, operation: &Operation, request: Request) -> Request {
        let key = || self.document.operations.iter().find_map(|operation| operation.key.clone()).unwrap();
        match who {
            CallerKind::Nobody => request,
            CallerKind::BadToken => request.token(&format!("{}x", self.user.token)),
            CallerKind::SignedOut => request.by(&self.signed_out),
            CallerKind::User if operation.ends_session() => request.by(&self.server.sign_in_again("13800138009")),
            CallerKind::User => request.by(&self.user),
            CallerKind::Admin if operation.path == "/admin/logout" => {
                // The test has used wrong passwords before.
                self.server.database().execute("delete from admin_attempts", ()).unwrap();
                let login = json!({ "name": "root", "password": PASSWORD });
                let session = self.server.post("/admin/login").json(&login).send().expect(200).json();
                request.token(session["token"].as_str().unwrap())
            }
            CallerKind::Admin => request.token(&self.admin),
            CallerKind::Key => request.token(&key()),
        }
    }

    /// Returns a request with required values and one more parameter with somebody's value, in this location.
    fn request(&self, operation: &Operation, named: Option<&Parameter>, whose: &Caller, way: Location) -> Request {
        let mut values = operation.required_values(&self.user);
        let mut path = operation.path_of(&self.user);
        match named {
            Some(parameter) if parameter.location == ParameterLocation::Path => path = operation.path_of(whose),
            Some(parameter) => drop(values.insert(parameter.name.clone(), parameter.value_of(whose))),
            None => {}
        }
        placed(self.server.request(&operation.method, &path), &values, way)
    }
}

fn placed(request: Request, values: &Map<String, Value>, way: Location) -> Request {
    let pairs = texts(values);
    let pairs: Vec<_> = pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    match way {
        Location::Json => request.json(&Value::Object(values.clone())),
        Location::Form => request.form(&pairs),
        Location::Query => request.query(&pairs),
    }
}

#[test]
fn every_caller_gets_the_contracts_access_in_every_parameter_location() {
    let fixture = Fixture::new();
    let mut calls = 0;
    for operation in &fixture.document.operations {
        let naming = operation.parameters.iter().filter(|parameter| operation.names_user(parameter)).map(Some);
        for named in std::iter::once(None).chain(naming) {
            for (way, who) in locations(operation).flat_map(|way| EVERYBODY.map(|who| (way, who))) {
                for whose in [&fixture.user, &fixture.other] {
                    let names_other = named.is_some() && whose.user_id == fixture.other.user_id;
                    if named.is_none() && whose.user_id == fixture.other.user_id
                        || names_other && operation.ends_session()
                    {
                        continue;
                    }
                    let response = fixture.by(who, operation, fixture.request(operation, named, whose, way)).send();
                    let name = named.map(|parameter| parameter.name.as_str());
                    let what = format!("{} as {who:?}, naming {name:?} in {way:?}", operation.name());
                    assert_fits(&response, operation, verdict(operation, who, names_other), &what);
                    calls += 1;
                }
            }
        }
    }
    println!("{calls} calls");
    assert!(calls > 2_500, "only {calls} calls: the document has shrunk");
    assert_no_fault(&fixture.server);
}

/// In the first API generation, where requests may name users, an own id does not cover another user's number.
#[test]
fn an_own_name_beside_another_users_is_rejected() {
    let fixture = Fixture::new();
    let (user, other) = (&fixture.user, &fixture.other);
    let mixed = [(&user.user_id, &other.phone_number), (&other.user_id, &user.phone_number)];
    let before = view_of(&fixture, other);
    let operations = fixture.document.operations.iter().filter(|operation| {
        let is_of_users = matches!(expected_access(operation), Access::OwnUser | Access::OwnUserOrAdmin);
        is_of_users && !operation.path.starts_with("/api/") && !operation.ends_session()
    });
    let operations: Vec<_> = operations.collect();
    assert!(operations.len() > 20, "only {} operations: the document has shrunk", operations.len());
    for operation in operations {
        for way in locations(operation) {
            for (user_id, phone_number) in mixed {
                let mut values = operation.required_values(user);
                values.insert("userId".into(), json!(user_id));
                values.insert("phoneNumber".into(), json!(phone_number));
                let request = fixture.server.request(&operation.method, &operation.path_of(user));
                let response = placed(request, &values, way).by(user).send();
                let what = format!("{} with {user_id} and {phone_number} in {way:?}", operation.name());
                assert_eq!(found(&response), Verdict::NotYours, "{what}: {} {}", response.status, response.text());
            }
        }
    }
    assert_eq!(view_of(&fixture, other), before);
    assert_no_fault(&fixture.server);
}

/// Returns the account as its owner reads it.
fn view_of(fixture: &Fixture, user: &Caller) -> Vec<String> {
    let paths = ["/user/profile", "/coin/balance", "/api/v1/account", "/api/v1/preferences"];
    paths.map(|path| fixture.server.get(path).by(user).send().expect(200).text()).to_vec()
}

#[track_caller]
fn assert_fits(response: &Response, operation: &Operation, expected: Verdict, what: &str) {
    // No app store is configured.
    let is_off = response.status == 503 && operation.path.starts_with("/payment/notify/");
    assert!(is_off || response.status < 500, "{what}: {}", response.text());
    // The token is a parameter here, and the operation rejects a bad one.
    if operation.path.contains("/refresh") {
        return assert!([200, 401, 422].contains(&response.status), "{what}: {}", response.text());
    }
    assert_eq!(found(response), expected, "{what}: {} {}", response.status, response.text());
    if expected == Verdict::LetIn {
        let is_own_refusal = ["/auth/login", "/api/v1/auth/login", "/admin/login"].contains(&operation.path.as_str());
        assert!(is_own_refusal || ![401, 403].contains(&response.status), "{what}: {}", response.text());
    }
}

fn assert_no_fault(server: &Server) {
    let faults: Vec<_> = server.lines().into_iter().filter(|line| line.contains(" ERROR ")).collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

/// Sessions, notifications, traces, orders and devices of another user are not found.
#[test]
fn resources_of_other_users_are_not_found() {
    let fixture = Fixture::new();
    let (server, user, other) = (&fixture.server, &fixture.user, &fixture.other);
    server.command(&["points", "adjust", &user.phone_number, "100", "--reason", "tests"]).expect(0);
    let cast = json!({ "question": "何时启程？", "method": "three_coins" });
    let session = server.post("/api/v1/sessions").by(user).json(&cast).send().expect(201).json();
    let session = session["id"].as_str().unwrap();
    let notification = json!({ "audience": "users", "userIds": [user.user_id], "title": "…", "body": "…" });
    let sent = server.post("/admin/notifications").token(&fixture.admin).json(&notification).send().expect(201).json();
    let ask = json!({ "question": "何时启程？", "divinationData": { "lines": [7, 8, 8, 8, 7, 6] } });
    let record = server.post("/divination/enhanced").by(user).json(&ask).send().expect(200).json();
    let package = [("amount", "6.00"), ("coinCount", "60")];
    let order = server.get("/payment/gateway/order").by(user).query(&package).send().expect(200).json();
    let devices = server.get("/api/v1/auth/tokens").by(user).send().expect(200).json();
    let device = devices["items"][0]["id"].as_str().unwrap();
    let hint = json!({ "orderNo": order["orderNo"], "status": "success", "amount": "6.00", "coinCount": 60 });
    let requests = [
        server.get(&format!("/api/v1/sessions/{session}")),
        server.post(&format!("/api/v1/sessions/{session}/interpretation")),
        server.delete(&format!("/api/v1/sessions/{session}")),
        server.patch(&format!("/api/v1/notifications/{}/read", sent["id"].as_str().unwrap())),
        server.get(&format!("/divination/records/trace/{}", record["traceId"].as_str().unwrap())),
        server.post("/payment/update-balance").json(&hint),
        server.delete(&format!("/api/v1/auth/tokens/{device}")),
    ];
    for (number, request) in requests.into_iter().enumerate() {
        let foreign = request.clone().by(other).send();
        assert_eq!((number, foreign.status), (number, 404), "{}", foreign.text());
        assert_eq!(foreign.json()["code"], "not_found");
        request.clone().send().expect_problem(401, "unauthenticated");
        // It existed throughout.
        let own = request.by(user).send();
        assert!([200, 202, 204].contains(&own.status), "{number}: {} {}", own.status, own.text());
    }
}

/// The endpoints that the interface asks for, each with its parameters outside the path and the status of a call with all
/// of them: by a user, or by an administrator where users may not call it. In this order.
const ASKED: &[(&str, &str, u16)] = &[
    ("POST /auth/send-code", "phoneNumber", 200),
    ("POST /auth/login", "phoneNumber code", 401),
    ("POST /auth/validate-token", "token", 200),
    ("POST /auth/refresh-token", "token", 200),
    ("POST /auth/logout", "token", 200),
    ("GET /user/profile", "id", 200),
    ("PUT /user/profile", "id nickname gender birthday signature", 200),
    ("PUT /user/nickname", "userId nickname", 200),
    ("PUT /user/signature", "userId signature", 200),
    ("GET /coin/balance", "userId", 200),
    ("GET /coin/balance/phone", "phoneNumber", 200),
    ("POST /coin/increase/phone", "phoneNumber coinCount", 200),
    ("POST /coin/consume", "userId", 200),
    ("POST /coin/consume/phone", "phoneNumber", 200),
    ("POST /coin/sync", "", 200),
    ("GET /payment/gateway/order", "userId amount coinCount", 200),
    ("POST /payment/notify", "", 200),
    ("POST /payment/update-balance", "userId orderNo tradeNo amount coinCount status", 404),
    (
        "POST /divination-history/save",
        "userId phoneNumber localRecordId jsonData aiResult questionType question timestamp",
        200,
    ),
    ("POST /divination-history/get", "phoneNumber questionType", 200),
    ("POST /divination-history/delete", "phoneNumber localRecordId localRecordIds", 200),
    ("GET /divination-history/count/{phoneNumber}", "", 200),
    ("POST /divination-history/deactivate-all", "phoneNumber userId", 200),
    ("POST /divination/enhanced", "userId questionType question divinationData", 200),
    ("GET /divination/records/user/{userId}", "page size", 200),
    ("GET /divination/records/phone/{phoneNumber}", "page size", 200),
    ("GET /divination/records/trace/{traceId}", "", 404),
    ("GET /divination/records/user/{userId}/daterange", "startTime endTime page size", 200),
    ("GET /divination/records/failed", "", 200),
    ("GET /divination/records/slow", "durationMs", 200),
    ("GET /divination/stats/user/{userId}/count", "", 200),
    ("GET /divination/stats/daterange/count", "startTime endTime", 200),
    ("POST /llm/chat", "messages", 200),
    ("POST /content-moderation/check-question", "userId question", 200),
    ("GET /admin/sensitive-words/statistics", "", 200),
    ("DELETE /admin/sensitive-words/remove", "word", 200),
    ("POST /admin/sensitive-words/add", "word type", 201),
    ("POST /admin/sensitive-words/test/nickname", "content", 200),
    ("POST /admin/sensitive-words/test/signature", "content", 200),
    ("POST /admin/sensitive-words/test/question", "content", 200),
    ("GET /admin/violations/list", "page size userId contentType violationType startTime endTime", 200),
    ("GET /admin/violations/user/{userId}/stats", "", 200),
    ("GET /admin/violations/stats/types", "", 200),
    ("GET /admin/violations/frequent-violators", "days threshold", 200),
    ("DELETE /admin/violations/cleanup", "daysToKeep", 200),
    ("GET /admin/violations/{id}", "", 404),
    ("GET /admin/sensitive-word-migration/status", "", 200),
    ("POST /admin/sensitive-word-migration/switch", "useAliyun", 409),
    ("POST /admin/sensitive-word-migration/fallback", "enableFallback", 200),
    ("POST /admin/sensitive-word-migration/compare", "content contentType userId", 200),
    ("POST /admin/sensitive-word-migration/batch-compare", "items", 200),
    ("GET /admin/sensitive-word-migration/health-check", "", 200),
    ("GET /notifications/latest", "", 200),
    ("GET /notifications/all", "", 200),
    ("GET /api/v1/notifications", "", 200),
    ("GET /api/v1/notifications/unread-count", "", 200),
    ("PATCH /api/v1/notifications/{id}/read", "", 404),
    ("PATCH /api/v1/notifications/mark-all-read", "", 200),
    ("POST /feedback", "user_id phone_number content", 200),
    ("POST /version/check", "clientVersion clientVersionCode", 200),
    ("GET /version/latest", "", 404),
    ("GET /admin/network-logs/user/{userId}", "", 200),
    ("GET /admin/network-logs/ip/{clientIp}", "", 200),
    ("GET /admin/network-logs/time-range", "", 200),
    ("GET /admin/network-logs/failed", "", 200),
    ("GET /admin/network-logs/suspicious", "", 200),
    ("GET /admin/network-logs/count/ip", "", 200),
    ("DELETE /admin/network-logs/cleanup", "", 200),
    ("POST /admin/user-data/sync", "", 200),
    ("GET /admin/user-data/validate/user/{userId}", "", 200),
    ("GET /admin/user-data/validate/phone/{phoneNumber}", "", 200),
    ("POST /admin/user-data/fix/{phoneNumber}", "", 200),
    ("POST /admin/user-data/validate/batch", "", 200),
    ("GET /admin/user-data/test/user-info/{userId}", "", 200),
    ("DELETE /admin/data-cleanup/all", "", 428),
    ("DELETE /admin/data-cleanup/verification-codes", "", 428),
    ("DELETE /admin/data-cleanup/payment-records", "", 428),
    ("DELETE /admin/data-cleanup/feedback", "", 428),
    // They take the coins of the calls above.
    ("POST /coin/reset", "userId", 200),
    ("POST /coin/reset/phone", "phoneNumber", 200),
];

#[test]
fn every_asked_endpoint_takes_its_parameters_in_every_encoding() {
    assert_eq!(ASKED.len(), 80);
    let server = Setup::default().with("AUTH_RESEND_AFTER", "0 s");
    let server = server.with("AUTH_SENDS_PER_ADDRESS_HOUR", 100).with("AUTH_TOKENS_PER_USER", 100).start();
    let user = server.sign_in("13800138000");
    let document = Document::of(&server);
    let mut wrong = Vec::new();
    let rows = || ASKED.iter().map(|row| (row, document.operation(row.0)));
    for (way, ((name, parameters, status), operation)) in
        WAYS.into_iter().flat_map(|way| rows().map(move |row| (way, row)))
    {
        let asked: Vec<_> = parameters.split_whitespace().collect();
        let value = |name: &str, caller: &Caller| match operation.parameters.iter().find(|known| known.name == name) {
            Some(_) if name == "token" => json!(caller.token),
            Some(parameter) => parameter.value_of(caller),
            None => panic!("{} has no {name}", operation.name()),
        };
        let call = |change: &dyn Fn(&Caller, &mut Map<String, Value>)| {
            let caller = if operation.ends_session() { server.sign_in_again("13800138000") } else { user.clone() };
            let mut values = operation.right_values(&caller);
            change(&caller, &mut values);
            // In a query or form, a list of objects is JSON.
            for list in values.values_mut().filter(|value| way != Location::Json && value[0].is_object()) {
                *list = json!(list.to_string());
            }
            let request = server.request(&operation.method, &operation.path_of(&caller));
            placed(operation.with_token(request, &caller), &values, way).send()
        };
        let right = call(&|caller, values| {
            values.extend(asked.iter().map(|name| ((*name).to_owned(), value(name, caller))));
        });
        if right.status != *status {
            wrong.push(format!("{name} in {way:?}: {} {}", right.status, right.text()));
        }
        // A value that is read is rejected if it is wrong.
        for name in asked.iter().filter(|name| **name != "token") {
            let rejected = call(&|_, values| drop(values.insert((*name).to_owned(), json!("\u{0}"))));
            let problem: Value = serde_json::from_slice(&rejected.bytes).unwrap_or_default();
            let mut errors = problem["errors"].as_array().into_iter().flatten();
            if !errors.any(|error| error["field"].as_str().is_some_and(|field| field.starts_with(*name))) {
                wrong.push(format!("{} does not read {name} in {way:?}: {}", operation.name(), rejected.text()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
