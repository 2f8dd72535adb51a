//! A fake Stripe: Checkout sessions, refunds and signed webhooks.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use ring::hmac;
use serde_json::{Value, json};

use super::fake_provider::{FakeProvider, ReceivedRequest, Reply};

pub const STRIPE_KEY: &str = "sk_live_0123456789";
pub const STRIPE_SECRET: &str = "whsec_0123456789abcdefghijklmnopqrstuv";

/// A running fake of Stripe.
pub struct FakeStripe {
    provider: FakeProvider,
    book: Arc<Mutex<StripeBook>>,
}

#[derive(Default)]
struct StripeBook {
    sessions: BTreeMap<String, Value>,
    refunds: BTreeMap<String, Value>,
    /// Body and answer by idempotency key.
    replies: BTreeMap<String, (Vec<u8>, Value)>,
    failure: Option<(u16, &'static str)>,
    loses_answers: bool,
    is_test_mode: bool,
}

impl FakeStripe {
    pub fn start() -> Self {
        let book = Arc::new(Mutex::new(StripeBook::default()));
        let keeper = Arc::clone(&book);
        let provider = FakeProvider::with_handler(move |request| keeper.lock().unwrap().response(request));
        Self { provider, book }
    }

    pub fn url(&self) -> String {
        self.provider.url()
    }

    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.provider.requests()
    }

    /// Pays a session.
    pub fn pay(&self, id: &str) {
        let mut book = self.book.lock().unwrap();
        let session = book.sessions.get_mut(id).unwrap();
        session["status"] = "complete".into();
        session["payment_status"] = "paid".into();
        session["payment_intent"] = stripe_payment_of(id).into();
        session["url"] = Value::Null;
    }

    /// Fails all calls with this status and code.
    pub fn fail(&self, status: u16, code: &'static str) {
        self.book.lock().unwrap().failure = Some((status, code));
    }

    /// Executes requests and loses the answers, or no longer.
    pub fn lose_answers(&self, loses: bool) {
        self.book.lock().unwrap().loses_answers = loses;
    }

    /// Reports objects of the test mode.
    pub fn be_in_test_mode(&self) {
        self.book.lock().unwrap().is_test_mode = true;
    }

    /// Refunds a part in the dashboard, not through Yarrow.
    pub fn refund_externally(&self, payment: &str, amount: i64) {
        let mut book = self.book.lock().unwrap();
        let id = format!("re_{}", book.refunds.len() + 1);
        let refund = json!({
            "id": id, "object": "refund", "amount": amount, "currency": "usd", "status": "succeeded",
            "payment_intent": payment, "metadata": {},
        });
        book.refunds.insert(id, refund);
    }

    /// Lets all refunds of a payment fail, as those to a cancelled card do days later. Returns their events.
    pub fn fail_refunds(&self, payment: &str, now: i64) -> Vec<(String, String)> {
        let mut book = self.book.lock().unwrap();
        let of_it = book.refunds.values_mut().filter(|refund| refund["payment_intent"] == payment);
        of_it
            .flat_map(|refund| {
                refund["status"] = "failed".into();
                refund["failure_reason"] = "expired_or_canceled_card".into();
                ["charge.refund.updated", "refund.updated", "refund.failed"].map(|kind| stripe_event(kind, refund, now))
            })
            .collect()
    }

    pub fn refund_count(&self) -> usize {
        self.book.lock().unwrap().refunds.len()
    }

    /// Returns the signature and the body of a webhook about a session.
    pub fn webhook(&self, kind: &str, session_id: &str, now: i64) -> (String, String) {
        stripe_event(kind, &self.book.lock().unwrap().sessions[session_id], now)
    }
}

/// Returns the signature and the body of an event about an object.
pub fn stripe_event(kind: &str, object: &Value, now: i64) -> (String, String) {
    let event = json!({
        "id": format!("evt_{kind}_{}", object["id"]), "object": "event", "api_version": "2025-12-15.clover",
        "created": now, "livemode": true, "type": kind, "data": { "object": object },
    });
    let body = event.to_string();
    (stripe_signature(STRIPE_SECRET, &body, now), body)
}

/// Returns the id of the payment of a session.
pub fn stripe_payment_of(session_id: &str) -> String {
    format!("pi_{}", &session_id[session_id.len() - 24..])
}

/// Returns the header `Stripe-Signature` of a body.
pub fn stripe_signature(secret: &str, body: &str, now: i64) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let digest = hmac::sign(&key, format!("{now}.{body}").as_bytes());
    let digits = digest.as_ref().iter().flat_map(|byte| [byte >> 4, byte & 15]);
    let digest: String = digits.map(|digit| char::from_digit(digit.into(), 16).unwrap()).collect();
    format!("t={now},v1={digest}")
}

impl StripeBook {
    fn response(&mut self, request: &ReceivedRequest) -> Reply {
        if request.header("authorization") != Some(&format!("Bearer {STRIPE_KEY}")) {
            return stripe_error(401, "invalid_api_key");
        }
        if request.header("stripe-version").is_none() {
            return stripe_error(400, "no_version");
        }
        if let Some((status, code)) = self.failure {
            return stripe_error(status, code);
        }
        let key = request.header("idempotency-key").map(str::to_owned);
        if let Some((body, answer)) = key.as_ref().and_then(|key| self.replies.get(key)) {
            let is_repetition = *body == request.body;
            return if is_repetition {
                Reply::json(answer.to_string())
            } else {
                stripe_error(400, "idempotency_error")
            };
        }
        match self.carry_out(request) {
            Ok(answer) => {
                if let Some(key) = key {
                    self.replies.insert(key, (request.body.clone(), answer.clone()));
                }
                if self.loses_answers { Reply::reset() } else { Reply::json(answer.to_string()) }
            }
            Err((status, code)) => stripe_error(status, code),
        }
    }

    /// Returns the answer, or the status and the code of an error.
    fn carry_out(&mut self, request: &ReceivedRequest) -> Result<Value, (u16, &'static str)> {
        let path: Vec<&str> = request.path().trim_start_matches('/').split('/').collect();
        let form = if request.method == "POST" { request.form() } else { Vec::new() };
        let field = |name: &str| form.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        let missing = |id: Option<&Value>| id.cloned().ok_or((404, "resource_missing"));
        match (request.method.as_str(), path.as_slice()) {
            ("POST", ["v1", "checkout", "sessions"]) => {
                let id = format!("cs_live_{:058}", self.sessions.len() + 1);
                let amount: i64 = field("line_items[0][price_data][unit_amount]").unwrap().parse().unwrap();
                let session = json!({
                    "id": id, "object": "checkout.session", "url": format!("https://checkout.stripe.com/c/pay/{id}"),
                    "status": "open", "payment_status": "unpaid", "amount_total": amount, "payment_intent": null,
                    "currency": field("line_items[0][price_data][currency]"), "livemode": !self.is_test_mode,
                    "client_reference_id": field("client_reference_id"), "mode": field("mode"),
                    "metadata": { "order_no": field("metadata[order_no]") },
                });
                self.sessions.insert(id, session.clone());
                Ok(session)
            }
            ("GET", ["v1", "checkout", "sessions", id]) => missing(self.sessions.get(*id)),
            ("POST", ["v1", "checkout", "sessions", id, "expire"]) => match self.sessions.get_mut(*id) {
                Some(session) if session["status"] == "open" => {
                    session["status"] = "expired".into();
                    Ok(session.clone())
                }
                _ => Err((400, "session_not_open")),
            },
            ("POST", ["v1", "refunds"]) => {
                let id = format!("re_{}", self.refunds.len() + 1);
                let refund = json!({
                    "id": id, "object": "refund", "amount": field("amount").unwrap().parse::<i64>().unwrap(),
                    "currency": "usd", "status": "succeeded", "payment_intent": field("payment_intent"),
                    "metadata": { "refund_no": field("metadata[refund_no]") },
                });
                self.refunds.insert(id, refund.clone());
                Ok(refund)
            }
            ("GET", ["v1", "refunds"]) => {
                let payment = request.parameter("payment_intent").map(Value::from);
                let is_of_it = |refund: &&Value| Some(&refund["payment_intent"]) == payment.as_ref();
                let found: Vec<_> = self.refunds.values().filter(is_of_it).cloned().collect();
                Ok(json!({ "object": "list", "data": found }))
            }
            other => panic!("unsupported call {other:?}"),
        }
    }
}

fn stripe_error(status: u16, code: &str) -> Reply {
    let error = json!({ "type": "invalid_request_error", "code": code, "message": "secret words of the provider" });
    Reply::json(json!({ "error": error }).to_string()).with_status(status).header("request-id", "req_1")
}
