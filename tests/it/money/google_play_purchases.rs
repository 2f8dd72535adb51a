//! Purchases in Google Play through the real binary, with a fake Google.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::support::{
    Caller, Request, Response, Server, Setup, eventually,
    google_play::{
        AUDIENCE, FakeGoogle, PACKAGE, PUSHER, google_purchase, google_push, published_google, with_google_play,
    },
    raw::flood_while_keys_hang,
    send_concurrently,
};

const OWN: &str = "13800138000";
const OTHER: &str = "13900139000";
const PRODUCT: &str = "coins60";

fn now() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap()
}

fn setup(url: &str) -> Setup {
    with_google_play(Setup::default(), url).with_fast_jobs()
}

struct Fixture {
    google: FakeGoogle,
    server: Server,
    user: Caller,
    key: String,
    token: String,
}

impl Fixture {
    fn new() -> Self {
        Self::with(|setup| setup)
    }

    fn with(change: impl FnOnce(Setup) -> Setup) -> Self {
        let google = FakeGoogle::start_at(now);
        let server = change(setup(&google.url())).start();
        let (user, key) = (server.sign_in(OWN), server.api_key("shop"));
        let terms = json!({ "asset": "coin", "count": 60, "bonus": 6, "googleId": PRODUCT, "reason": "test" });
        server.put("/admin/products/gold60").token(&key).json(&terms).send().expect(200);
        let token = obfuscated_id(&server, &user);
        Self { google, server, user, key, token }
    }

    /// Makes a paid purchase at Google, with these changes.
    fn bought(&self, token: &str, order_id: &str, changes: &[(&str, Value)]) {
        let mut purchase = google_purchase(order_id, Some(&self.token));
        for (name, value) in changes {
            purchase[*name] = value.clone();
        }
        self.google.set_purchase(PRODUCT, token, purchase);
    }

    fn report(&self, user: &Caller, token: &str) -> Response {
        report(&self.server, user, token)
    }

    fn push(&self, message: &Value) -> Request {
        push(&self.server, message, AUDIENCE, PUSHER)
    }

    fn coins(&self) -> i64 {
        self.server.coins(&self.user)
    }

    fn is_consumed(&self, token: &str) -> bool {
        self.google.purchase(PRODUCT, token)["consumptionState"] == 1
    }

    fn shown(&self, number: &str) -> Value {
        self.server.get(&format!("/admin/purchases/{number}")).token(&self.key).send().expect(200).json()
    }
}

fn obfuscated_id(server: &Server, user: &Caller) -> String {
    let account = server.get("/api/v1/payment/account-token").by(user).send().expect(200).json();
    account["obfuscatedAccountId"].as_str().unwrap().to_owned()
}

fn report(server: &Server, user: &Caller, token: &str) -> Response {
    let body = json!({ "productId": PRODUCT, "purchaseToken": token });
    server.post("/api/v1/purchases/google").by(user).json(&body).send()
}

fn push(server: &Server, message: &Value, audience: &str, email: &str) -> Request {
    let (authorization, body) = google_push(message, audience, email, now());
    let request = server.post("/payment/notify/google").header("authorization", &authorization);
    request.bytes(Some("application/json"), body.into_bytes())
}

fn purchased(token: &str, kind: i64) -> Value {
    json!({ "version": "1.0", "packageName": PACKAGE, "eventTimeMillis": "1768465790000",
        "oneTimeProductNotification": { "version": "1.0", "notificationType": kind, "purchaseToken": token, "sku": PRODUCT } })
}

fn voided(token: &str, order_id: &str, refund: i64) -> Value {
    json!({ "version": "1.0", "packageName": PACKAGE, "eventTimeMillis": "1768465790000",
        "voidedPurchaseNotification": { "purchaseToken": token, "orderId": order_id, "productType": 2, "refundType": refund } })
}

fn assert_books_agree(server: &Server) {
    server.command(&["ledger", "verify"]).expect(0);
    server.command(&["payments", "report", "--from", "2020-01-01", "--to", "2100-01-01"]).expect(0);
}

#[test]
fn a_purchase_is_credited_once_and_then_consumed() {
    let fixture = Fixture::new();
    fixture.bought("token-1", "GPA.1", &[]);
    let first = fixture.report(&fixture.user, "token-1").expect(200).json();
    assert_eq!((&first["balance"], &first["purchase"]["storeNumber"]), (&json!(66), &json!("GPA.1")));
    eventually("consumed", || fixture.is_consumed("token-1"));
    assert_eq!(fixture.report(&fixture.user, "token-1").expect(200).json(), first);
    let other = fixture.server.sign_in(OTHER);
    fixture.report(&other, "token-1").expect_problem(404, "not_found");
    fixture.report(&fixture.user, "token-9").expect_problem(422, "purchase_refused");
    // Another token of the same order.
    fixture.bought("token-2", "GPA.1", &[]);
    fixture.report(&fixture.user, "token-2").expect_problem(422, "purchase_refused");
    assert_eq!((fixture.coins(), fixture.server.coins(&other)), (66, 0));
    // Consumed by an old version of the app: credited all the same.
    fixture.bought("token-3", "GPA.3", &[("consumptionState", 1.into())]);
    assert_eq!(fixture.report(&fixture.user, "token-3").expect(200).json()["balance"], 132);
    let shown = fixture.shown("GPA.1");
    assert!(!shown.to_string().contains("token-1"), "{shown}");
    assert_books_agree(&fixture.server);
}

#[test]
fn fifty_reports_at_once_credit_once() {
    let fixture = Fixture::new();
    fixture.bought("token-1", "GPA.1", &[]);
    let body = json!({ "productId": PRODUCT, "purchaseToken": "token-1" });
    let report = || fixture.server.post("/api/v1/purchases/google").by(&fixture.user).json(&body);
    for response in send_concurrently((0..50).map(|_| report()).collect()) {
        // Above the limit of calls to Google the app is asked to report again.
        if response.status != 503 {
            assert_eq!(response.expect(200).json()["balance"], 66);
        }
    }
    assert_eq!(report().send().expect(200).json()["balance"], 66);
    assert_books_agree(&fixture.server);
}

#[test]
fn a_kill_between_credit_and_consumption_loses_nothing() {
    let mut fixture = Fixture::new();
    let setup = setup(&fixture.google.url()).in_own_process();
    fixture.server = fixture.server.restart(setup.clone());
    fixture.bought("token-1", "GPA.1", &[]);
    fixture.google.fail_consumption(true);
    assert_eq!(fixture.report(&fixture.user, "token-1").expect(200).json()["balance"], 66);
    fixture.server = fixture.server.crash_and_restart(setup);
    assert!(!fixture.is_consumed("token-1"));
    fixture.google.fail_consumption(false);
    // The job has postponed the next attempt.
    fixture.server.edit("update store_purchases set due_at = 1 where due_at is not null");
    eventually("consumed", || fixture.is_consumed("token-1"));
    eventually("done", || {
        fixture.server.value::<i64>("select count(*) from store_purchases where due_at is not null") == 0
    });
    assert_eq!(fixture.coins(), 66);
    assert_books_agree(&fixture.server);
}

#[test]
fn a_pending_purchase_is_credited_by_its_notification() {
    let fixture = Fixture::new();
    fixture.bought("token-1", "GPA.1", &[("purchaseState", 2.into())]);
    let reported = fixture.report(&fixture.user, "token-1").expect(202).json();
    assert_eq!((&reported["purchase"]["status"], &reported["balance"]), (&json!("pending"), &json!(null)));
    let other = fixture.server.sign_in(OTHER);
    fixture.report(&other, "token-1").expect_problem(404, "not_found");
    assert!(!fixture.is_consumed("token-1"));
    fixture.bought("token-1", "GPA.1", &[]);
    let copies = (0..50).map(|_| fixture.push(&purchased("token-1", 1))).collect();
    for response in send_concurrently(copies) {
        // Google sends again what is refused because too many wait for its keys.
        let is_refused = response.status == 503;
        if is_refused { fixture.push(&purchased("token-1", 1)).send() } else { response }.expect(200);
    }
    assert_eq!(fixture.coins(), 66);
    eventually("consumed", || fixture.is_consumed("token-1"));
    // An account that accepts no postings for now: the message is sent again, and the purchase is not refused.
    fixture.bought("token-3", "GPA.3", &[]);
    fixture.server.edit("delete from store_messages");
    fixture.server.edit("update balances set suspended_at = 1");
    let refused = fixture.push(&purchased("token-3", 1)).send();
    assert_eq!((refused.status, fixture.coins()), (503, 66), "{}", refused.text());
    fixture.server.edit("update balances set suspended_at = null");
    fixture.push(&purchased("token-3", 1)).send().expect(200);
    assert_eq!(fixture.coins(), 132);
    // One that was not paid.
    fixture.server.edit("delete from store_messages");
    fixture.bought("token-2", "GPA.2", &[("purchaseState", 2.into())]);
    fixture.report(&fixture.user, "token-2").expect(202);
    fixture.bought("token-2", "GPA.2", &[("purchaseState", 1.into())]);
    fixture.push(&purchased("token-2", 2)).send().expect(200);
    assert_eq!(fixture.shown("GPA.2")["purchase"]["reason"], "cancelled");
    fixture.report(&fixture.user, "token-2").expect_problem(409, "purchase_revoked");
    assert_books_agree(&fixture.server);
}

#[test]
fn a_missing_or_foreign_account_token_credits_nothing() {
    let fixture = Fixture::new();
    let other = fixture.server.sign_in(OTHER);
    fixture.google.set_purchase(PRODUCT, "token-1", google_purchase("GPA.1", None));
    fixture.report(&fixture.user, "token-1").expect_problem(422, "purchase_refused");
    let foreign = obfuscated_id(&fixture.server, &other);
    fixture.google.set_purchase(PRODUCT, "token-2", google_purchase("GPA.2", Some(&foreign)));
    fixture.report(&fixture.user, "token-2").expect_problem(404, "not_found");
    let unknown = google_purchase("GPA.3", Some("00000000000040008000000000000001"));
    fixture.google.set_purchase(PRODUCT, "token-3", unknown);
    fixture.push(&purchased("token-3", 1)).send().expect(200);
    assert_eq!(fixture.server.value::<i64>("select count(*) from store_purchases"), 0);
    let lenient = Fixture::with(|setup| setup.with("PAYMENT_GOOGLE_ALLOW_MISSING_TOKEN", "true"));
    lenient.google.set_purchase(PRODUCT, "token-1", google_purchase("GPA.1", None));
    lenient.report(&lenient.user, "token-1").expect(200);
    let other = lenient.server.sign_in(OTHER);
    lenient.report(&other, "token-1").expect_problem(404, "not_found");
}

#[test]
fn test_purchases_credit_testers_only() {
    let strict = Fixture::new();
    strict.bought("token-1", "GPA.1", &[("purchaseType", 0.into())]);
    strict.report(&strict.user, "token-1").expect_problem(422, "purchase_refused");
    let lenient = Fixture::with(|setup| setup.with("PAYMENT_GOOGLE_TESTERS", OWN));
    lenient.bought("token-1", "GPA.1", &[("purchaseType", 0.into())]);
    assert_eq!(lenient.report(&lenient.user, "token-1").expect(200).json()["purchase"]["environment"], "sandbox");
    assert_eq!(lenient.shown("GPA.1")["entries"][0]["kind"], "test_purchase");
    eventually("consumed", || lenient.is_consumed("token-1"));
    lenient.push(&voided("token-1", "GPA.1", 1)).send().expect(200);
    assert_eq!(lenient.coins(), 0);
    assert_books_agree(&lenient.server);
}

#[test]
fn voided_purchases_are_taken_back_in_parts_and_in_full() {
    let fixture = Fixture::new();
    fixture.bought("token-1", "GPA.1", &[("quantity", 3.into())]);
    assert_eq!(fixture.report(&fixture.user, "token-1").expect(200).json()["balance"], 198);
    fixture.bought("token-1", "GPA.1", &[("quantity", 3.into()), ("refundableQuantity", 2.into())]);
    fixture.push(&voided("token-1", "GPA.1", 2)).send().expect(200);
    assert_eq!(fixture.coins(), 132);
    fixture.server.edit("delete from store_messages");
    let copies = (0..50).map(|_| fixture.push(&voided("token-1", "GPA.1", 1))).collect();
    for response in send_concurrently(copies) {
        response.expect(200);
    }
    assert_eq!((fixture.coins(), &fixture.shown("GPA.1")["purchase"]["state"]), (0, &json!("revoked")));
    assert_books_agree(&fixture.server);
}

#[test]
fn a_purchase_of_which_nothing_is_refundable_brings_nothing() {
    let fixture = Fixture::new();
    let left = |token: &str, order: &str, quantity: i64, left: i64| {
        fixture.bought(token, order, &[("quantity", quantity.into()), ("refundableQuantity", left.into())]);
    };
    left("token-1", "GPA.1", 1, 0);
    fixture.report(&fixture.user, "token-1").expect_problem(409, "purchase_revoked");
    assert_eq!(fixture.coins(), 0);
    // After the credit, unit by unit.
    left("token-2", "GPA.2", 3, 3);
    fixture.report(&fixture.user, "token-2").expect(200);
    for (units, coins) in [(2, 132), (1, 66), (0, 0), (0, 0)] {
        left("token-2", "GPA.2", 3, units);
        fixture.server.edit("delete from store_messages");
        fixture.push(&voided("token-2", "GPA.2", 2)).send().expect(200);
        assert_eq!(fixture.coins(), coins);
    }
    left("token-3", "GPA.3", 1, 1);
    fixture.report(&fixture.user, "token-3").expect(200);
    left("token-3", "GPA.3", 1, 0);
    fixture.server.post("/admin/purchases/GPA.3/query").token(&fixture.key).send().expect(200);
    assert_eq!((fixture.coins(), &fixture.shown("GPA.3")["purchase"]["state"]), (0, &json!("revoked")));
    assert_books_agree(&fixture.server);
}

#[test]
fn a_purchase_that_is_cancelled_after_its_credit_is_taken_back() {
    let fixture = Fixture::new();
    for (token, order) in [("token-1", "GPA.1"), ("token-2", "GPA.2"), ("token-3", "GPA.3")] {
        fixture.bought(token, order, &[]);
        fixture.report(&fixture.user, token).expect(200);
        fixture.bought(token, order, &[("purchaseState", 1.into())]);
    }
    // By a query, by a notification, and by the app's own report; each again without effect.
    for coins in [132, 132] {
        fixture.server.post("/admin/purchases/GPA.1/query").token(&fixture.key).send().expect(200);
        assert_eq!(fixture.coins(), coins);
    }
    for coins in [66, 66] {
        fixture.server.edit("delete from store_messages");
        fixture.push(&purchased("token-2", 2)).send().expect(200);
        assert_eq!(fixture.coins(), coins);
    }
    for coins in [0, 0] {
        let reported = fixture.report(&fixture.user, "token-3").expect(200).json();
        assert_eq!((&reported["purchase"]["status"], fixture.coins()), (&json!("revoked"), coins));
    }
    let other = fixture.server.sign_in(OTHER);
    fixture.report(&other, "token-3").expect_problem(404, "not_found");
    assert_books_agree(&fixture.server);
}

#[test]
fn the_price_is_that_of_the_order_and_counts_as_revenue() {
    let fixture = Fixture::new();
    fixture.google.set_total("GPA.1", "1", 990_000_000, "USD");
    for (token, order) in [("token-1", "GPA.1"), ("token-2", "GPA.2")] {
        fixture.bought(token, order, &[]);
        fixture.report(&fixture.user, token).expect(200);
    }
    let shown = fixture.shown("GPA.1")["purchase"].clone();
    assert_eq!((&shown["priceMilli"], &shown["currency"]), (&json!(1990), &json!("USD")));
    assert_eq!(fixture.shown("GPA.2")["purchase"]["priceMilli"], Value::Null);
    let counted = "select coalesce(sum(value), 0) from figures where name = 'revenue' and key = 'google/USD/coin'";
    eventually("the revenue", || fixture.server.value::<i64>(counted) == 199);
    fixture.push(&voided("token-1", "GPA.1", 1)).send().expect(200);
    let refunds = fixture.server.command(&["figures", "show", "--names", "refunds"]).expect(0).json();
    assert_eq!(refunds["items"][0]["value"], 199);
    assert_books_agree(&fixture.server);
}

#[test]
fn voided_purchases_are_polled_page_by_page() {
    let fixture = Fixture::new();
    for number in 1..=3 {
        fixture.bought(&format!("token-{number}"), &format!("GPA.{number}"), &[]);
        fixture.report(&fixture.user, &format!("token-{number}")).expect(200);
        fixture.google.void(&format!("token-{number}"), &format!("GPA.{number}"));
    }
    // One that was never reported, and must never be credited.
    fixture.google.void("token-9", "GPA.9");
    fixture.server.edit("delete from settings where name = 'purchases.google_voided'");
    eventually("taken back", || fixture.coins() == 0);
    eventually("the last", || fixture.server.value::<i64>("select count(*) from store_purchases") == 4);
    fixture.bought("token-9", "GPA.9", &[]);
    fixture.report(&fixture.user, "token-9").expect_problem(409, "purchase_revoked");
    assert_eq!(fixture.coins(), 0);
    assert_books_agree(&fixture.server);
}

#[test]
fn only_the_configured_service_account_may_push() {
    let fixture = Fixture::new();
    fixture.bought("token-1", "GPA.1", &[]);
    let message = purchased("token-1", 1);
    let pushed = |audience: &str, email: &str| push(&fixture.server, &message, audience, email).send().status;
    assert_eq!(pushed("https://elsewhere.example", PUSHER), 400);
    assert_eq!(pushed(AUDIENCE, "push@another.iam.gserviceaccount.com"), 400);
    let (_, body) = google_push(&message, AUDIENCE, PUSHER, now());
    let unsigned =
        fixture.server.post("/payment/notify/google").bytes(Some("application/json"), body.clone().into_bytes());
    assert_eq!(unsigned.send().status, 400);
    // Every published token except the good ones, which have expired by now.
    for (name, token) in published_google()["push"]["tokens"].as_object().unwrap() {
        let authorization = token["authorization"].as_str().unwrap();
        let request = fixture.server.post("/payment/notify/google").header("authorization", authorization);
        let response = request.bytes(Some("application/json"), body.clone().into_bytes()).send();
        assert_eq!(response.status, 400, "{name}");
    }
    assert_eq!(fixture.coins(), 0);
    assert_eq!(pushed(AUDIENCE, PUSHER), 200);
    assert_eq!(fixture.coins(), 66);
}

#[test]
fn every_published_purchase_has_its_verdict() {
    for (name, purchase) in published_google()["purchases"].as_object().unwrap() {
        let fixture = Fixture::new();
        let mut purchase = purchase.clone();
        purchase["obfuscatedExternalAccountId"] = fixture.token.as_str().into();
        fixture.google.set_purchase(PRODUCT, "token-1", purchase);
        let (status, coins) = match name.as_str() {
            "purchased" => (200, 66),
            "quantity_3" => (200, 198),
            "pending" => (202, 0),
            "canceled" => (409, 0),
            _ => (422, 0),
        };
        for _ in 0..2 {
            let response = fixture.report(&fixture.user, "token-1");
            assert_eq!((response.status, fixture.coins()), (status, coins), "{name}: {}", response.text());
        }
        assert_books_agree(&fixture.server);
    }
}

#[test]
fn an_unreachable_store_is_a_failure_of_the_provider() {
    let fixture = Fixture::new();
    fixture.bought("token-1", "GPA.1", &[]);
    fixture.google.fail(503, "backendError");
    fixture.report(&fixture.user, "token-1").expect_problem(504, "provider_timeout");
    let pushed = fixture.push(&purchased("token-1", 1)).send();
    assert!(pushed.status >= 500, "{}", pushed.status);
    assert_eq!(fixture.coins(), 0);
}

#[test]
fn the_doctor_asks_the_store() {
    let fixture = Fixture::new();
    let verdict = || {
        let settings = setup(&fixture.google.url());
        let found = fixture.server.command_with(&settings.variables(), &["doctor", "--listen", "127.0.0.1:0"]).json();
        let checks = found["checks"].as_array().unwrap().clone();
        checks.into_iter().find(|check| check["name"] == "google play").unwrap()["verdict"].clone()
    };
    assert_eq!(verdict(), "pass");
    fixture.google.fail(403, "forbidden");
    assert_eq!(verdict(), "fail");
}

#[test]
fn google_and_not_the_app_decides_about_product_and_quantity() {
    let fixture = Fixture::new();
    let terms = json!({ "asset": "coin", "count": 6000, "bonus": 0, "googleId": "coins6000", "reason": "test" });
    fixture.server.put("/admin/products/gold6000").token(&fixture.key).json(&terms).send().expect(200);
    let claim = |product: &str, token: &str| {
        let body = json!({
            "productId": product, "purchaseToken": token, "quantity": 100, "orderId": "GPA.9", "coinCount": 6000,
        });
        fixture.server.post("/api/v1/purchases/google").by(&fixture.user).json(&body).send()
    };
    let named = |name: &str, value: &str| {
        let mut purchase = google_purchase("GPA.2", Some(&fixture.token));
        purchase[name] = value.into();
        fixture.google.set_purchase("coins6000", "token-2", purchase);
    };
    // Google refuses the token, or answers with another purchase.
    fixture.bought("token-1", "GPA.1", &[]);
    let refused = |token: &str| {
        let problem = claim("coins6000", token).expect_problem(422, "purchase_refused").json();
        assert!(problem["detail"].as_str().unwrap().contains("another_product"), "{problem}");
    };
    refused("token-1");
    for (name, value) in [("productId", PRODUCT), ("purchaseToken", "token-1")] {
        named(name, value);
        refused("token-2");
        let mut pushed = purchased("token-2", 1);
        pushed["oneTimeProductNotification"]["sku"] = "coins6000".into();
        fixture.server.edit("delete from store_messages");
        fixture.push(&pushed).send().expect(200);
    }
    assert_eq!(fixture.server.value::<i64>("select count(*) from store_purchases"), 0);
    fixture.bought("token-3", "GPA.3", &[("quantity", 3.into()), ("productId", PRODUCT.into())]);
    assert_eq!(claim(PRODUCT, "token-3").expect(200).json()["balance"], 198);
    let shown = fixture.shown("GPA.3")["purchase"].clone();
    assert_eq!((&shown["storeProductId"], &shown["quantity"]), (&json!(PRODUCT), &json!(3)), "{shown}");
    assert_books_agree(&fixture.server);
}

#[test]
fn few_threads_wait_while_googles_keys_hang() {
    let google = FakeGoogle::start_at(now);
    let keys = google.hang();
    let setup = setup(&google.url()).with("PAYMENT_CALL_TIMEOUT", "60 s");
    let server = setup.with("LIMITS_CONNECTIONS_PER_CLIENT", 1000).in_own_process().start();
    let test = json!({ "version": "1.0", "packageName": PACKAGE, "testNotification": { "version": "1.0" } });
    let (authorization, body) = google_push(&test, AUDIENCE, PUSHER, now());
    let request = format!(
        "POST /payment/notify/google HTTP/1.1\r\nhost: yarrow\r\nauthorization: {authorization}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    flood_while_keys_hang(&server, &keys, &request);
    assert_eq!(google.counts().1, 1);
}
