//! Only verified payments and server-priced bonuses raise a balance, whatever a user sends.

use serde_json::{Map, Value, json};

use crate::support::{Caller, Document, Operation, ParameterLocation, Request, Response, Server, Setup};

const OWN: &str = "13800138000";
const OTHER: &str = "13900139000";

struct Fixture {
    server: Server,
    user: Caller,
    /// A payable order of the user.
    order_no: String,
    /// A session of the user.
    session_id: String,
}

impl Fixture {
    fn new() -> Self {
        let server = Setup::default().start();
        let (user, other) = (server.sign_in(OWN), server.sign_in(OTHER));
        let key = server.api_key("shop");
        for who in [OWN, OTHER] {
            server.grant(&key, who, 1_000);
            server.command(&["points", "adjust", who, "1000", "--reason", "test"]).expect(0);
        }
        let package = json!({ "amount": "6.00", "coinCount": 60 });
        let order = server.post("/payment/gateway/order").by(&user).json(&package).send().expect(200).json();
        let question = json!({ "question": "x", "method": "three_coins" });
        let session = server.post("/api/v1/sessions").by(&user).json(&question).send().expect(201).json();
        server.get("/api/v1/invite").by(&other).send().expect(200);
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        Self { order_no: text(&order["orderNo"]), session_id: text(&session["id"]), server, user }
    }

    /// Returns all credits of all users in order.
    fn credits(&self) -> Vec<(i64, String, String, i64)> {
        let database = self.server.database();
        let all = "select user_id, asset, kind, delta from ledger_entries where delta > 0 order by seq";
        let mut statement = database.prepare(all).unwrap();
        let rows = statement.query_map((), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)));
        rows.unwrap().map(Result::unwrap).collect()
    }

    /// Returns all balances.
    fn balances(&self) -> Vec<(i64, String, i64)> {
        let database = self.server.database();
        let all = "select user_id, asset, balance from balances order by user_id, asset";
        let mut statement = database.prepare(all).unwrap();
        let rows = statement.query_map((), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
        rows.unwrap().map(Result::unwrap).collect()
    }

    /// Returns the path with the user's own values.
    fn path(&self, operation: &Operation) -> String {
        let path = operation.path.replace("{orderNo}", &self.order_no);
        let path = if path.contains("/sessions/") { path.replace("{id}", &self.session_id) } else { path };
        Operation { path, ..operation.clone() }.path_of(&self.user)
    }

    /// Returns fields that a user might try to raise a balance with.
    fn hopeful_fields(&self) -> Map<String, Value> {
        let hopeful_fields = json!({
            "userId": self.user.user_id, "user_id": self.user.user_id, "phoneNumber": OWN, "phone_number": OWN,
            "coinCount": 1_000_000, "amount": "6.00", "orderNo": self.order_no, "order_no": self.order_no,
            "tradeNo": "2026010222001400000000000001", "status": "success", "trade_status": "TRADE_SUCCESS",
            "out_trade_no": self.order_no, "total_amount": "6.00", "sign": "AAAA", "sign_type": "RSA2",
            "balance": 1_000_000, "points": 1_000_000, "pointsGranted": 1_000_000, "delta": 1_000_000, "price": -60,
            "cost": -60, "consume": -60, "consumed": -60, "pointsSpent": -60, "quantity": -1, "count": -1, "asset": "point",
            "kind": "signup_bonus", "ref": "order:1", "role": "admin", "isAdmin": true, "actor": "cli", "reason": "mine",
            "decision": "credit", "refundNo": "R1", "late": true, "lost": true, "confirm": "yes", "bonus": 1_000_000,
            "daysToKeep": 1,
        });
        hopeful_fields.as_object().unwrap().clone()
    }

    /// Returns bodies for an operation: empty, hopeful fields, required fields, both, and each parameter with absurd
    /// values.
    fn bodies(&self, operation: &Operation) -> Vec<Map<String, Value>> {
        let required = operation.required_values(&self.user);
        let mut both = self.hopeful_fields();
        both.extend(required.clone());
        let mut bodies = vec![Map::new(), self.hopeful_fields(), required.clone(), both];
        for parameter in operation.parameters.iter().filter(|parameter| parameter.location != ParameterLocation::Path) {
            for absurd in [json!(-1), json!(1_000_000), json!("9007199254740991")] {
                let mut body = required.clone();
                body.insert(parameter.name.clone(), absurd);
                bodies.push(body);
            }
        }
        bodies
    }

    fn requests(&self, operation: &Operation) -> Vec<Request> {
        let request = || self.server.request(&operation.method, &self.path(operation)).by(&self.user);
        let mut requests = Vec::new();
        for body in self.bodies(operation) {
            let texts: Vec<_> = body.iter().map(|(name, value)| (name.clone(), text(value))).collect();
            let pairs: Vec<_> = texts.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            if operation.takes_body() {
                requests.push(request().json(&Value::Object(body)));
                requests.push(request().form(&pairs).header("idempotency-key", "wish"));
            } else {
                requests.push(request().query(&pairs));
            }
        }
        requests
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

#[track_caller]
fn expect_no_fault(response: &Response, what: &str) {
    assert!(response.status != 500, "{what}: {}", response.text());
}

#[test]
fn no_request_of_a_user_raises_a_balance() {
    let mut fixture = Fixture::new();
    let document = Document::of(&fixture.server);
    let credits = fixture.credits();
    let (mut calls, mut before) = (0, fixture.balances());
    for operation in &document.operations {
        let name = operation.name();
        if operation.ends_session() {
            fixture.user = fixture.server.sign_in_again(OWN);
        }
        for request in fixture.requests(operation) {
            expect_no_fault(&request.send(), &name);
            calls += 1;
        }
        let after = fixture.balances();
        for (user, asset, balance) in &after {
            let had = before.iter().find(|(known, of, _)| (known, of) == (user, asset)).map_or(0, |(_, _, had)| *had);
            assert!(*balance <= had, "{name} raised the {asset}s of {user} from {had} to {balance}");
        }
        // Nothing was granted and taken back either.
        assert_eq!(fixture.credits(), credits, "{name}");
        before = after;
    }
    assert!(calls > 500, "only {calls} calls");
    // Some calls succeeded and cost the user their price.
    let spent = |asset: &str| {
        let entries = format!("select count(*) from ledger_entries where delta < 0 and asset = '{asset}'");
        fixture.server.value::<i64>(&entries)
    };
    assert!(spent("coin") > 0 && spent("point") > 0);
    fixture.server.command(&["ledger", "verify"]).expect(0);
}

#[test]
fn verified_payments_and_priced_bonuses_raise_a_balance() {
    let fixture = Fixture::new();
    let (credits, user_id) = (fixture.credits().len(), fixture.user.user_id.parse::<i64>().unwrap());
    let code: String = fixture.server.value("select code from invite_codes");
    let other: i64 = fixture.server.value("select user_id from invite_codes");
    let notify = format!("http://{}/payment/notify", fixture.server.address());
    // A signed payment callback from the provider.
    let pay = ["payments", "sandbox-pay", &fixture.order_no, "--deliver-to", &notify];
    assert_eq!(fixture.server.command(&pay).expect(0).json()["answer"], "success");
    fixture.server.command(&pay).expect(0);
    let greedy = json!({ "code": code, "points": 1_000_000, "pointsGranted": 1_000_000, "inviteeBonus": 1_000_000 });
    let redeem = || fixture.server.post("/api/v1/invite/redeem").by(&fixture.user).json(&greedy).send();
    assert_eq!(redeem().expect(200).json()["pointsGranted"], 20);
    redeem().expect_problem(409, "already_invited");
    let expected = [
        (user_id, "coin".to_owned(), "topup".to_owned(), 60),
        (other, "point".to_owned(), "invite_bonus".to_owned(), 20),
        (user_id, "point".to_owned(), "invitee_bonus".to_owned(), 20),
    ];
    assert_eq!(fixture.credits()[credits..], expected);
    fixture.server.command(&["ledger", "verify"]).expect(0);
}
