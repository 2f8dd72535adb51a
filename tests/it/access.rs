//! Every endpoint, called by everybody there is, naming themselves and others, wherever parameters may stand.
//!
//! The promises are those of `endpoint_access`; the endpoints are those of the running server's own document.

use serde_json::{Map, Value, json};

use crate::{
    endpoint_access::{Access, promised},
    invalid_input::{Way, texts, ways},
    support::{Answer, Caller, Document, Operation, Parameter, Place, Request, Server, Setup},
};

const PASSWORD: &str = "correct horse battery staple";

/// Who calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Nobody,
    BadToken,
    SignedOut,
    User,
    Admin,
    Key,
}

const EVERYBODY: [Who; 6] = [Who::Nobody, Who::BadToken, Who::SignedOut, Who::User, Who::Admin, Who::Key];

/// What is to come of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Unauthenticated,
    Forbidden,
    NotYours,
    /// Whatever comes then, it is not for want of a right.
    LetIn,
}

/// The contract's table.
fn verdict(operation: &Operation, who: Who, names_other: bool) -> Verdict {
    let access = promised(operation);
    // Anybody may say what they think of the app, but administrators are not its users.
    if operation.path == "/feedback" && matches!(who, Who::Admin | Who::Key) {
        return Verdict::Forbidden;
    }
    // A key has no session that could end.
    if operation.path == "/admin/logout" && who == Who::Key {
        return Verdict::Forbidden;
    }
    let proved = match who {
        Who::Nobody => None,
        Who::BadToken | Who::SignedOut if access != Access::TokenHolder => return Verdict::Unauthenticated,
        who => Some(who),
    };
    match (access, proved) {
        (Access::TokenHolder, _) | (Access::Anyone, None) => Verdict::LetIn,
        (_, None) => Verdict::Unauthenticated,
        (Access::Admin, Some(Who::User)) | (Access::OwnUser, Some(Who::Admin | Who::Key)) => Verdict::Forbidden,
        (Access::OwnUser | Access::OwnUserOrAdmin | Access::Anyone, Some(Who::User)) if names_other => {
            Verdict::NotYours
        }
        _ => Verdict::LetIn,
    }
}

fn found(answer: &Answer) -> Verdict {
    let problem: Value = serde_json::from_slice(&answer.bytes).unwrap_or_default();
    match (answer.status, problem["code"].as_str()) {
        (401, Some("unauthenticated")) => Verdict::Unauthenticated,
        (403, Some("forbidden")) => Verdict::Forbidden,
        (403, Some("not_yours")) => Verdict::NotYours,
        _ => Verdict::LetIn,
    }
}

struct World {
    server: Server,
    user: Caller,
    other: Caller,
    signed_out: Caller,
    admin: String,
    document: Document,
}

impl World {
    fn new() -> Self {
        // Guessing codes and passwords is part of the walk.
        let server = Setup::default().with("AUTH_TOKENS_PER_USER", 100_000).start();
        let [user, other, signed_out] =
            ["13800138000", "13800138001", "13800138002"].map(|phone| server.sign_in(phone));
        server.post("/auth/logout").by(&signed_out).send().expect(200);
        let admin = server.admin("root", PASSWORD);
        let document = Document::of(&server);
        Self { server, user, other, signed_out, admin, document }
    }

    /// The request with its credential. Who is signed out or gone afterwards is somebody new each time.
    fn by(&self, who: Who, operation: &Operation, request: Request) -> Request {
        let key = || self.document.operations.iter().find_map(|operation| operation.key.clone()).unwrap();
        match who {
            Who::Nobody => request,
            Who::BadToken => request.token(&format!("{}x", self.user.token)),
            Who::SignedOut => request.by(&self.signed_out),
            Who::User if operation.is_farewell() => request.by(&self.server.sign_in_again("13800138009")),
            Who::User => request.by(&self.user),
            Who::Admin if operation.path == "/admin/logout" => {
                // The walk has tried wrong passwords before.
                self.server.database().execute("delete from admin_attempts", []).unwrap();
                let login = json!({ "name": "root", "password": PASSWORD });
                let session = self.server.post("/admin/login").json(&login).send().expect(200).json();
                request.token(session["token"].as_str().unwrap())
            }
            Who::Admin => request.token(&self.admin),
            Who::Key => request.token(&key()),
        }
    }

    /// The request with what is required, and one more parameter with somebody's own value, in this place.
    fn request(&self, operation: &Operation, named: Option<&Parameter>, whose: &Caller, way: Way) -> Request {
        let mut values = operation.required_values(&self.user);
        let mut path = operation.path_of(&self.user);
        match named {
            Some(parameter) if parameter.place == Place::Path => path = operation.path_of(whose),
            Some(parameter) => drop(values.insert(parameter.name.clone(), parameter.value_of(whose))),
            None => {}
        }
        placed(self.server.request(&operation.method, &path), &values, way)
    }
}

fn placed(request: Request, values: &Map<String, Value>, way: Way) -> Request {
    let pairs = texts(values);
    let pairs: Vec<_> = pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    match way {
        Way::Json => request.json(&Value::Object(values.clone())),
        Way::Form => request.form(&pairs),
        Way::Query => request.query(&pairs),
    }
}

#[test]
fn everybody_gets_what_the_table_says_wherever_parameters_stand_and_whomever_they_name() {
    let world = World::new();
    let mut calls = 0;
    for operation in &world.document.operations {
        let naming = operation.parameters.iter().filter(|parameter| operation.names_user(parameter)).map(Some);
        for named in std::iter::once(None).chain(naming) {
            for (way, who) in ways(operation).flat_map(|way| EVERYBODY.map(|who| (way, who))) {
                for whose in [&world.user, &world.other] {
                    let names_other = named.is_some() && whose.user_id == world.other.user_id;
                    if named.is_none() && whose.user_id == world.other.user_id || names_other && operation.is_farewell()
                    {
                        continue;
                    }
                    let answer = world.by(who, operation, world.request(operation, named, whose, way)).send();
                    let name = named.map(|parameter| parameter.name.as_str());
                    let what = format!("{} as {who:?}, naming {name:?} in {way:?}", operation.name());
                    assert_fits(&answer, operation, verdict(operation, who, names_other), &what);
                    calls += 1;
                }
            }
        }
    }
    println!("{calls} calls");
    assert!(calls > 2_500, "only {calls} calls: the document has become small");
    assert_no_fault(&world.server);
}

#[track_caller]
fn assert_fits(answer: &Answer, operation: &Operation, expected: Verdict, what: &str) {
    assert!(answer.status < 500, "{what}: {}", answer.text());
    // Here the token is the parameter, and a bad one is for the operation to refuse.
    if operation.path.contains("/refresh") {
        return assert!([200, 401, 422].contains(&answer.status), "{what}: {}", answer.text());
    }
    assert_eq!(found(answer), expected, "{what}: {} {}", answer.status, answer.text());
    if expected == Verdict::LetIn {
        let is_own_refusal = ["/auth/login", "/api/v1/auth/login", "/admin/login"].contains(&operation.path.as_str());
        assert!(is_own_refusal || ![401, 403].contains(&answer.status), "{what}: {}", answer.text());
    }
}

fn assert_no_fault(server: &Server) {
    let faults: Vec<_> = server.lines().into_iter().filter(|line| line.contains(" ERROR ")).collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

/// Things named by their own id: a session, a notification, a trace, an order, a device. Another user's is nobody's.
#[test]
fn what_has_an_id_of_its_own_is_not_there_for_others() {
    let world = World::new();
    let (server, user, other) = (&world.server, &world.user, &world.other);
    server.command(&["points", "adjust", &user.phone_number, "100", "--reason", "tests"]).expect(0);
    let cast = json!({ "question": "何时启程？", "method": "three_coins" });
    let session = server.post("/api/v1/sessions").by(user).json(&cast).send().expect(201).json();
    let session = session["id"].as_str().unwrap();
    let tell = json!({ "audience": "users", "userIds": [user.user_id], "title": "…", "body": "…" });
    let told = server.post("/admin/notifications").token(&world.admin).json(&tell).send().expect(201).json();
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
        server.patch(&format!("/api/v1/notifications/{}/read", told["id"].as_str().unwrap())),
        server.get(&format!("/divination/records/trace/{}", record["traceId"].as_str().unwrap())),
        server.post("/payment/update-balance").json(&hint),
        server.delete(&format!("/api/v1/auth/tokens/{device}")),
    ];
    for (number, request) in requests.into_iter().enumerate() {
        let foreign = request.clone().by(other).send();
        assert_eq!((number, foreign.status), (number, 404), "{}", foreign.text());
        assert_eq!(foreign.json()["code"], "not_found");
        request.clone().send().expect_problem(401, "unauthenticated");
        // It was there all the while.
        let own = request.by(user).send();
        assert!([200, 202, 204].contains(&own.status), "{number}: {} {}", own.status, own.text());
    }
}
