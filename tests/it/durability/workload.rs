//! Clients that use every writing operation until they are stopped or the server is gone.

use serde_json::{Value, json};

use super::oracle::{Effect, Oracle};
use crate::support::{Caller, Request, Response, Server, Setup};

const FIXED_CODE: &str = "246810";
const LINES: [u8; 6] = [7, 8, 8, 8, 7, 6];

/// The server is gone.
pub struct ServerGone;

/// Users with a fixed code, an API key, and balances to spend.
pub struct Fixture {
    pub users: Vec<Caller>,
    pub key: String,
}

impl Fixture {
    /// Returns the setup for this many clients.
    pub fn setup(clients: usize) -> Setup {
        let accounts: Vec<_> = (0..clients).map(|client| format!("{}={FIXED_CODE}", phone(client))).collect();
        Setup::default()
            .with("AUTH_REVIEW_ACCOUNTS", accounts.join(","))
            .with("AUTH_TOKENS_PER_USER", 1_000_000)
            .with("AUTH_RESEND_AFTER", "0 s")
            .with("AUTH_SENDS_PER_ADDRESS_HOUR", 1_000_000)
            .with("AUTH_SENDS_PER_ADDRESS_DAY", 1_000_000)
            .with("AUTH_SENDS_PER_CLIENT_HOUR", 1_000_000)
            .with("AUTH_SENDS_PER_CLIENT_DAY", 1_000_000)
            .with("AUTH_SENDS_PER_DAY", 1_000_000)
            .with("LIMITS_HISTORY_RECORDS", 1_000_000)
            .with("NOTIFICATIONS_PER_USER", 1_000_000)
    }

    /// Signs the users in and grants them balances by commands.
    pub fn of(server: &Server, clients: usize) -> Self {
        let key = server.api_key("workload");
        let users = Self::sign_in(server, clients);
        for user in &users {
            server.grant(&key, &user.phone_number, 1_000_000);
            server.command(&["points", "adjust", &user.phone_number, "1000000", "--reason", "tests"]).expect(0);
        }
        Self { users, key }
    }

    /// Signs the users in without balances.
    pub fn without_balances(server: &Server, clients: usize) -> Self {
        Self { users: Self::sign_in(server, clients), key: String::new() }
    }

    fn sign_in(server: &Server, clients: usize) -> Vec<Caller> {
        let users = (0..clients).map(|client| {
            let phone_number = phone(client);
            server.post("/auth/send-code").form(&[("phoneNumber", &phone_number)]).send().expect(200);
            let code = [("phoneNumber", phone_number.as_str()), ("code", FIXED_CODE)];
            let signed_in = server.post("/auth/login").form(&code).send().expect(200).json();
            let text = |name: &str| signed_in[name].as_str().unwrap().to_owned();
            Caller { user_id: text("userId"), token: text("token"), phone_number }
        });
        users.collect()
    }
}

fn phone(client: usize) -> String {
    format!("1380013{client:04}")
}

/// A request without a response, to be repeated with the same key.
type Unanswered = (&'static str, String);

/// A client of a server.
pub struct Client<'a> {
    pub server: &'a Server,
    pub oracle: &'a Oracle,
    pub user: &'a Caller,
    pub key: &'a str,
    /// Kept across restarts of the server.
    pub unanswered: &'a mut Option<Unanswered>,
}

impl Client<'_> {
    /// Runs until the server is gone.
    pub fn work_until_gone(&mut self) {
        while self.step().is_ok() {}
    }

    /// Repeats the unanswered request, then sends the next one.
    pub fn step(&mut self) -> Result<(), ServerGone> {
        self.repeat()?;
        match self.oracle.next() % 9 {
            2..=6 if self.key.is_empty() => self.save(),
            0 => self.interpret(),
            1 => self.sign_in(),
            2 => self.send_and_read(),
            3 => self.pay(),
            4 | 5 => self.once("/coin/consume"),
            6 => self.once("/api/v1/sessions"),
            _ => self.save(),
        }
    }

    /// Repeats the unanswered request with the same key.
    pub fn repeat(&mut self) -> Result<(), ServerGone> {
        match self.unanswered.clone() {
            Some((path, key)) => self.with_key(path, key),
            None => Ok(()),
        }
    }

    fn once(&mut self, path: &'static str) -> Result<(), ServerGone> {
        let key = format!("key-{}", self.oracle.next());
        self.with_key(path, key)
    }

    fn with_key(&mut self, path: &'static str, key: String) -> Result<(), ServerGone> {
        *self.unanswered = Some((path, key.clone()));
        let cast = json!({ "question": "何时启程？", "method": "manual", "lines": LINES });
        let body = if path == "/coin/consume" { json!({}) } else { cast };
        let (request_id, response) = self.send(self.post(path).header("idempotency-key", &key).json(&body))?;
        *self.unanswered = None;
        assert!([200, 201].contains(&response.status), "{}", response.text());
        self.oracle.acknowledge(
            &request_id,
            match path {
                "/coin/consume" => Effect::Used { key },
                _ => Effect::Cast { id: text(&response.json()["id"]) },
            },
        );
        Ok(())
    }

    fn post(&self, path: &str) -> Request {
        self.server.post(path).by(self.user)
    }

    /// Sends a request with its own id, which identifies the response in a trace.
    fn send(&self, request: Request) -> Result<(String, Response), ServerGone> {
        let request_id = format!("work-{}-", self.oracle.next());
        let response = request.header("x-request-id", &request_id).try_send().map_err(|_| ServerGone)?;
        assert!(response.status < 500, "{}", response.text());
        Ok((request_id, response))
    }

    /// Saves a record. Some are large, and every third is saved again.
    fn save(&self) -> Result<(), ServerGone> {
        let number = self.oracle.next();
        let id = format!("record-{number}");
        for version in 1..=(if number.is_multiple_of(3) { 2 } else { 1 }) {
            self.oracle.will_save(&id, version);
            let padding = "x".repeat(if number.is_multiple_of(5) { 20_000 } else { 200 });
            let record = json!({ "localRecordId": id, "question": format!("version {version}"), "aiResult": padding });
            let (request_id, response) = self.send(self.post("/divination-history/save").json(&record))?;
            assert!(response.status == 200, "{}", response.text());
            self.oracle.acknowledge(&request_id, Effect::Saved { id: id.clone(), version });
        }
        Ok(())
    }

    /// Saves a record of many pages.
    pub fn save_large(&self) -> Result<(), ServerGone> {
        let id = format!("large-{}", self.oracle.next());
        self.oracle.will_save(&id, 1);
        let text = "x".repeat(60_000);
        let record =
            json!({ "localRecordId": id, "question": "version 1", "jsonData": text, "aiResult": &text[..30_000] });
        let (request_id, response) = self.send(self.post("/divination-history/save").json(&record))?;
        assert_eq!(response.status, 200, "{}", response.text());
        self.oracle.acknowledge(&request_id, Effect::Saved { id, version: 1 });
        Ok(())
    }

    fn interpret(&self) -> Result<(), ServerGone> {
        let ask = json!({ "question": "何时启程？", "divinationData": { "lines": LINES } });
        let (request_id, response) = self.send(self.post("/divination/enhanced").json(&ask))?;
        // A user may have two running calls, and an interrupted one may still run.
        if response.status == 200 {
            self.oracle.acknowledge(&request_id, Effect::Interpreted { trace_id: text(&response.json()["traceId"]) });
        }
        Ok(())
    }

    fn sign_in(&self) -> Result<(), ServerGone> {
        let phone_number = self.user.phone_number.as_str();
        self.send(self.server.post("/auth/send-code").form(&[("phoneNumber", phone_number)]))?;
        let login = self.server.post("/auth/login").form(&[("phoneNumber", phone_number), ("code", FIXED_CODE)]);
        let (request_id, response) = self.send(login)?;
        self.oracle.acknowledge(&request_id, Effect::SignedIn { token: text(&response.expect(200).json()["token"]) });
        Ok(())
    }

    fn send_and_read(&self) -> Result<(), ServerGone> {
        let body = json!({ "audience": "users", "userIds": [self.user.user_id], "title": "…", "body": "…" });
        let (request_id, response) = self.send(self.server.post("/admin/notifications").token(self.key).json(&body))?;
        let id = text(&response.expect(201).json()["id"]);
        self.oracle.acknowledge(&request_id, Effect::Sent { id: id.clone() });
        let mark = || self.server.patch(&format!("/api/v1/notifications/{id}/read")).by(self.user);
        let (request_id, response) = self.send(mark())?;
        let read_at: jiff::Timestamp = response.expect(200).json()["readAt"].as_str().unwrap().parse().unwrap();
        self.oracle.acknowledge(&request_id, Effect::Read { id: id.clone(), read_at: read_at.as_millisecond() });
        Ok(())
    }

    fn pay(&self) -> Result<(), ServerGone> {
        let package = [("amount", "6.00"), ("coinCount", "60")];
        let order = self.server.get("/payment/gateway/order").by(self.user).query(&package);
        let (_, response) = self.send(order)?;
        let order_no = text(&response.expect(200).json()["orderNo"]);
        let pay = self.server.post(&format!("/admin/payments/{order_no}/sandbox-pay")).token(self.key);
        let (request_id, response) = self.send(pay.json(&json!({ "reason": "tests" })))?;
        assert_eq!(response.expect(200).json()["answer"], "success");
        self.oracle.acknowledge(&request_id, Effect::Credited { order_no });
        Ok(())
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is not a text")).to_owned()
}
