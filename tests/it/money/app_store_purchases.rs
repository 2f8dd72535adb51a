//! Purchases in the App Store through the real binary, with a fake store whose chain of certificates the server trusts.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::support::{
    Caller, Request, Response, Server, Setup,
    app_store::{
        FakeAppStore, published_app_store, revocation, sign_jws, store_notification, store_transaction, with_app_store,
    },
    eventually, send_concurrently,
};

const OWN: &str = "13800138000";
const OTHER: &str = "13900139000";

fn now() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

struct Fixture {
    store: FakeAppStore,
    server: Server,
    user: Caller,
    key: String,
    token: String,
}

fn setup(url: &str) -> Setup {
    with_app_store(Setup::default(), url).with_fast_jobs()
}

impl Fixture {
    fn new() -> Self {
        Self::with(|setup| setup)
    }

    fn with(change: impl FnOnce(Setup) -> Setup) -> Self {
        let store = FakeAppStore::start_at(|| now() / 1000);
        let server = change(setup(&store.url())).start();
        let (user, key) = (server.sign_in(OWN), server.api_key("shop"));
        define(&server, &key, json!({ "bonus": 6, "firstBonus": 30 }));
        let token = account_token(&server, &user);
        Self { store, server, user, key, token }
    }

    fn transaction(&self, id: &str, changes: &[(&str, Value)]) -> Value {
        store_transaction(id, Some(&self.token), now(), changes)
    }

    fn report(&self, user: &Caller, transaction: &Value) -> Response {
        report(&self.server, user, &sign_jws(transaction))
    }

    fn notify(&self, kind: &str, uuid: &str, transaction: &Value) -> Response {
        notify(&self.server, store_notification(kind, uuid, Some(transaction), now())).send()
    }

    fn coins(&self) -> i64 {
        self.server.coins(&self.user)
    }

    fn shown(&self, number: &str) -> Value {
        self.server.get(&format!("/admin/purchases/{number}")).token(&self.key).send().expect(200).json()
    }
}

/// Defines the product of the fake store, with these changes.
fn define(server: &Server, key: &str, changes: Value) {
    let mut terms = json!({ "asset": "coin", "count": 60, "appleId": "com.example.yarrow.coins60", "reason": "test" });
    for (name, value) in changes.as_object().unwrap() {
        terms[name] = value.clone();
    }
    server.put("/admin/products/gold60").token(key).json(&terms).send().expect(200);
}

fn account_token(server: &Server, user: &Caller) -> String {
    let account = server.get("/api/v1/payment/account-token").by(user).send().expect(200).json();
    account["accountToken"].as_str().unwrap().to_owned()
}

fn report(server: &Server, user: &Caller, jws: &str) -> Response {
    server.post("/api/v1/purchases/apple").by(user).json(&json!({ "signedTransaction": jws })).send()
}

fn notify(server: &Server, body: String) -> Request {
    server.post("/payment/notify/apple").bytes(Some("application/json"), body.into_bytes())
}

fn assert_books_agree(server: &Server) {
    server.command(&["ledger", "verify"]).expect(0);
    server.command(&["payments", "report", "--from", "2020-01-01", "--to", "2100-01-01"]).expect(0);
}

#[test]
fn a_purchase_is_credited_once_and_answered_each_time() {
    let fixture = Fixture::new();
    let paid = fixture.transaction("2000000800000001", &[]);
    let first = fixture.report(&fixture.user, &paid).expect(200).json();
    assert_eq!(
        (&first["balance"], &first["purchase"]["count"], &first["purchase"]["bonus"]),
        (&json!(96), &json!(60), &json!(36))
    );
    // Signed anew, and in the first generation.
    let jws = sign_jws(&fixture.transaction("2000000800000001", &[]));
    let again = fixture.server.post("/payment/purchases/apple").by(&fixture.user).form(&[("signedTransaction", &jws)]);
    assert_eq!(again.send().expect(200).json(), first);
    assert_eq!(fixture.coins(), 96);
    // The first bonus is given once.
    assert_eq!(
        fixture.report(&fixture.user, &fixture.transaction("2", &[("quantity", 2.into())])).json()["balance"],
        228
    );
    let other = fixture.server.sign_in(OTHER);
    fixture.report(&other, &paid).expect_problem(404, "not_found");
    assert_eq!(fixture.server.coins(&other), 0);
    let listed = fixture.server.get("/api/v1/purchases").by(&fixture.user).send().expect(200).json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 2);
    assert_eq!(listed["items"][1], first["purchase"]);
    assert_books_agree(&fixture.server);
}

#[test]
fn terms_are_those_of_the_time_of_purchase() {
    let fixture = Fixture::new();
    let bought_at = now();
    let before = fixture.transaction("1", &[("purchaseDate", bought_at.into())]);
    // The new terms begin in a later millisecond.
    eventually("a millisecond has passed", || now() > bought_at);
    define(&fixture.server, &fixture.key, json!({ "count": 70 }));
    fixture.server.post("/admin/products/gold60/withdraw").token(&fixture.key).json(&json!({})).send().expect(200);
    assert_eq!(fixture.report(&fixture.user, &before).expect(200).json()["purchase"]["count"], 60);
    let after = fixture.transaction("2", &[("purchaseDate", (now() + 1000).into())]);
    assert_eq!(fixture.report(&fixture.user, &after).expect(200).json()["purchase"]["count"], 70);
}

#[test]
fn a_purchase_of_an_undefined_product_is_kept_and_credited_later() {
    let fixture = Fixture::new();
    let strange = fixture.transaction("1", &[("productId", "com.example.yarrow.gold".into())]);
    fixture.report(&fixture.user, &strange).expect_problem(422, "unknown_package");
    assert_eq!((&fixture.shown("1")["purchase"]["state"], fixture.coins()), (&json!("refused"), 0));
    let terms = json!({ "asset": "coin", "count": 7, "appleId": "com.example.yarrow.gold", "reason": "test" });
    fixture.server.put("/admin/products/gold").token(&fixture.key).json(&terms).send().expect(200);
    assert_eq!(fixture.report(&fixture.user, &strange).expect(200).json()["balance"], 7);
    assert_books_agree(&fixture.server);
}

#[test]
fn sandbox_purchases_credit_testers_only_and_are_no_money() {
    let strict = Fixture::new();
    let sandbox = strict.transaction("1", &[("environment", "Sandbox".into())]);
    strict.report(&strict.user, &sandbox).expect_problem(422, "purchase_refused");
    strict.notify("ONE_TIME_CHARGE", "u-1", &sandbox).expect(200);
    assert_eq!(strict.coins(), 0);
    let lenient = Fixture::with(|setup| {
        setup.with("PAYMENT_APPLE_ENVIRONMENTS", "production, sandbox").with("PAYMENT_APPLE_TESTERS", OWN)
    });
    let sandbox =
        |id: &str, token: &str| store_transaction(id, Some(token), now(), &[("environment", "Sandbox".into())]);
    let other = lenient.server.sign_in(OTHER);
    let token = account_token(&lenient.server, &other);
    lenient.report(&other, &sandbox("9", &token)).expect_problem(422, "purchase_refused");
    lenient.report(&lenient.user, &sandbox("1", &lenient.token)).expect(200);
    assert_eq!((lenient.coins(), lenient.server.coins(&other)), (96, 0));
    let kinds: Vec<_> =
        lenient.shown("1")["entries"].as_array().unwrap().iter().map(|entry| entry["kind"].clone()).collect();
    assert_eq!(kinds, ["test_purchase", "test_purchase"]);
    let report = ["payments", "report", "--from", "2020-01-01", "--to", "2100-01-01"];
    assert_eq!(lenient.server.command(&report).expect(0).json()["purchases"], json!([]));
    // A purchase in the sandbox does not use up the first bonus.
    let real = lenient.transaction("2", &[]);
    assert_eq!(lenient.report(&lenient.user, &real).expect(200).json()["purchase"]["bonus"], 36);
    assert_books_agree(&lenient.server);
}

#[test]
fn refunds_in_parts_are_taken_back_and_reversed_once() {
    let fixture = Fixture::new();
    fixture.report(&fixture.user, &fixture.transaction("1", &[])).expect(200);
    let part = fixture.transaction("1", &revocation(67_932, now()));
    fixture.notify("REFUND", "u-1", &part).expect(200);
    // 40 of 60 coins, and 24 of 36 of the bonus.
    assert_eq!(fixture.coins(), 32);
    fixture.notify("REFUND", "u-1", &part).expect(200);
    fixture.notify("REFUND", "u-2", &part).expect(200);
    assert_eq!(fixture.coins(), 32);
    assert_eq!(fixture.shown("1")["purchase"]["state"], "credited");
    fixture.notify("REFUND", "u-3", &fixture.transaction("1", &revocation(100_000, now()))).expect(200);
    assert_eq!((fixture.coins(), &fixture.shown("1")["purchase"]["state"]), (0, &json!("revoked")));
    // The app still reports it, and finishes it.
    assert_eq!(
        fixture.report(&fixture.user, &fixture.transaction("1", &[])).expect(200).json()["purchase"]["status"],
        "revoked"
    );
    for uuid in ["u-4", "u-4", "u-5"] {
        fixture.notify("REFUND_REVERSED", uuid, &fixture.transaction("1", &[])).expect(200);
        assert_eq!(fixture.coins(), 96);
    }
    // The refund that was reversed has no effect when it comes again.
    fixture.notify("REFUND", "u-6", &part).expect(200);
    assert_eq!(fixture.coins(), 96);
    fixture.notify("REFUND_DECLINED", "u-7", &fixture.transaction("1", &[])).expect(200);
    assert_eq!(fixture.shown("1")["messages"].as_array().unwrap().len(), 7);
    assert_books_agree(&fixture.server);
}

#[test]
fn spent_coins_of_a_refund_are_written_off() {
    let fixture = Fixture::new();
    fixture.report(&fixture.user, &fixture.transaction("1", &[])).expect(200);
    for _ in 0..50 {
        fixture.server.post("/coin/consume").by(&fixture.user).send().expect(200);
    }
    fixture.notify("REFUND", "u-1", &fixture.transaction("1", &revocation(100_000, now()))).expect(200);
    let purchase = fixture.shown("1")["purchase"].clone();
    assert_eq!(fixture.coins(), 0);
    assert_eq!((&purchase["coinsReturned"], &purchase["coinsWrittenOff"]), (&json!(46), &json!(14)));
    assert_eq!((&purchase["bonusReturned"], &purchase["bonusWrittenOff"]), (&json!(0), &json!(36)));
    // Only what was taken comes back.
    fixture.notify("REFUND_REVERSED", "u-2", &fixture.transaction("1", &[])).expect(200);
    assert_eq!(fixture.coins(), 46);
    assert_books_agree(&fixture.server);
}

#[test]
fn a_refund_before_the_credit_credits_nothing() {
    let fixture = Fixture::new();
    fixture.notify("REFUND", "u-1", &fixture.transaction("1", &revocation(100_000, now()))).expect(200);
    fixture.report(&fixture.user, &fixture.transaction("1", &[])).expect_problem(409, "purchase_revoked");
    fixture.notify("ONE_TIME_CHARGE", "u-2", &fixture.transaction("1", &[])).expect(200);
    assert_eq!(fixture.coins(), 0);
    // Its reversal credits what was never credited.
    fixture.notify("REFUND_REVERSED", "u-3", &fixture.transaction("1", &[])).expect(200);
    assert_eq!(fixture.coins(), 96);
    assert_books_agree(&fixture.server);
}

#[test]
fn refunds_and_their_reversals_may_come_in_any_order() {
    let fixture = Fixture::new();
    let begun = now() - 100_000;
    // Each refund by its time, and reversals by theirs; the last of them decides.
    let facts = [("REFUND", 1), ("REFUND_REVERSED", 2), ("REFUND", 3), ("REFUND_REVERSED", 4)];
    let orders = [[0, 1, 2, 3], [3, 2, 1, 0], [1, 0, 3, 2], [2, 1, 0, 3], [2, 3, 0, 1], [1, 2, 3, 0]];
    for count in [1, 2, 3, 4] {
        for (number, order) in orders.into_iter().enumerate() {
            for is_reported_first in [true, false] {
                let (id, before) = (format!("{count}{number}{is_reported_first}"), fixture.coins());
                let report = || fixture.report(&fixture.user, &fixture.transaction(&id, &[]));
                if is_reported_first {
                    report().expect(200);
                }
                for fact in order.into_iter().chain([order[0]]).filter(|fact| *fact < count) {
                    let (kind, at) = (facts[fact].0, begun + facts[fact].1 * 1000);
                    let changes = if kind == "REFUND" { revocation(100_000, at).to_vec() } else { Vec::new() };
                    let transaction = fixture.transaction(&id, &changes);
                    let body = store_notification(kind, &format!("{id}-{fact}"), Some(&transaction), at);
                    notify(&fixture.server, body).send().expect(200);
                }
                report();
                let is_credited = count % 2 == 0;
                assert_eq!(fixture.coins() > before, is_credited, "{order:?} of {count}, {is_reported_first}");
                assert_eq!(fixture.shown(&id)["purchase"]["state"] == "credited", is_credited);
            }
        }
    }
    assert_books_agree(&fixture.server);
}

#[test]
fn fifty_copies_of_each_notification_act_once() {
    let fixture = Fixture::new();
    let fifty = |kind: &str, uuid: &str, transaction: &Value| {
        let body = store_notification(kind, uuid, Some(transaction), now());
        let copies = (0..50).map(|_| notify(&fixture.server, body.clone())).collect();
        for response in send_concurrently(copies) {
            response.expect(200);
        }
    };
    fifty("ONE_TIME_CHARGE", "u-1", &fixture.transaction("1", &[]));
    assert_eq!(fixture.coins(), 96);
    fifty("REFUND", "u-2", &fixture.transaction("1", &revocation(50_000, now())));
    assert_eq!(fixture.coins(), 48);
    fifty("REFUND_REVERSED", "u-3", &fixture.transaction("1", &[]));
    assert_eq!(fixture.coins(), 96);
    // Reports of the app, too.
    let jws = sign_jws(&fixture.transaction("2", &[]));
    let body = json!({ "signedTransaction": jws });
    let copies =
        (0..50).map(|_| fixture.server.post("/api/v1/purchases/apple").by(&fixture.user).json(&body)).collect();
    for response in send_concurrently(copies) {
        assert_eq!(response.expect(200).json()["balance"], 162);
    }
    assert_books_agree(&fixture.server);
}

#[test]
fn notifications_that_apple_did_not_sign_are_final_and_own_faults_are_not() {
    let fixture = Fixture::new();
    for body in ["", "{}", "{\"signedPayload\":\"a.b.c\"}"] {
        assert_eq!(notify(&fixture.server, body.to_owned()).send().status, 400, "{body}");
    }
    fixture.report(&fixture.user, &fixture.transaction("1", &[])).expect(200);
    fixture.server.edit("update balances set suspended_at = 1 where asset = 'coin'");
    let refund = fixture.transaction("1", &revocation(100_000, now()));
    assert_eq!(fixture.notify("REFUND", "u-1", &refund).status, 503);
    fixture.server.edit("update balances set suspended_at = null");
    fixture.notify("REFUND", "u-1", &refund).expect(200);
    assert_eq!(fixture.coins(), 0);
    let off = Setup::default().start();
    let body = store_notification("TEST", "u-1", None, now());
    assert_eq!(notify(&off, body).send().status, 503);
    let user = off.sign_in(OWN);
    report(&off, &user, "a.b.c").expect_problem(409, "not_configured");
}

#[test]
fn missed_notifications_are_read_from_the_history() {
    let fixture = Fixture::new();
    fixture.store.add_notification("TEST", "u-1", None, now());
    fixture.store.add_notification("ONE_TIME_CHARGE", "u-2", Some(&fixture.transaction("1", &[])), now());
    fixture.store.add_notification("ONE_TIME_CHARGE", "u-3", Some(&fixture.transaction("2", &[])), now());
    fixture.server.edit("delete from settings where name = 'purchases.apple_history'");
    eventually("the history is read", || fixture.coins() == 96 + 66);
    assert_books_agree(&fixture.server);
}

#[test]
fn operators_query_purchases_and_find_lost_ones_by_order_number() {
    let fixture = Fixture::new();
    fixture.store.add_transaction(fixture.transaction("2000000800000007", &[]));
    let settings = setup(&fixture.store.url());
    fixture.server.command_with(&settings.variables(), &["purchases", "query", "MK5TTTVWJH"]).expect(0);
    assert_eq!(fixture.coins(), 96);
    fixture.store.add_transaction(fixture.transaction("2000000800000007", &revocation(100_000, now())));
    let path = "/admin/purchases/2000000800000007/query";
    let queried = fixture.server.post(path).token(&fixture.key).send().expect(200).json();
    assert_eq!((&queried["state"], fixture.coins()), (&json!("revoked"), 0));
    let listed = fixture.server.get("/admin/purchases").token(&fixture.key).query(&[("state", "revoked")]);
    assert_eq!(listed.send().expect(200).json()["total"], 1);
    let shown = fixture.server.command(&["purchases", "show", "2000000800000007"]).expect(0).json();
    assert_eq!(shown["purchase"]["coinsReturned"], 60);
    fixture.server.get("/admin/purchases/99").token(&fixture.key).send().expect_problem(404, "not_found");
    assert_books_agree(&fixture.server);
}

#[test]
fn the_history_of_a_buyer_finds_what_was_never_reported() {
    let fixture = Fixture::new();
    let revoked = fixture.transaction("2", &revocation(100_000, now()));
    fixture.report(&fixture.user, &fixture.transaction("2", &[])).expect(200);
    let strange = store_transaction("4", None, now(), &[]);
    for transaction in [fixture.transaction("1", &[]), revoked, fixture.transaction("3", &[]), strange] {
        fixture.store.add_transaction(transaction);
    }
    assert_eq!(fixture.coins(), 96);
    let path = "/admin/purchases/2/history";
    let found = fixture.server.post(path).token(&fixture.key).send().expect(200).json();
    let shown = found["items"].as_array().unwrap().iter().map(|item| {
        (
            item["storeNumber"].as_str().unwrap(),
            item["isRefunded"].as_bool().unwrap(),
            item["purchase"]["state"].as_str(),
        )
    });
    assert_eq!(
        shown.collect::<Vec<_>>(),
        [
            ("4", false, None),
            ("3", false, Some("credited")),
            ("2", true, Some("revoked")),
            ("1", false, Some("credited"))
        ]
    );
    // Two purchases of 66 were found, and the one with the first bonus went back.
    assert_eq!(fixture.coins(), 132);
    let settings = setup(&fixture.store.url());
    let printed = fixture.server.command_with(&settings.variables(), &["purchases", "history", "1"]).expect(0).json();
    assert_eq!(printed, found);
    assert_eq!(fixture.coins(), 132);
    assert_books_agree(&fixture.server);
}

#[test]
fn consumption_is_sent_for_users_who_agreed() {
    let fixture = Fixture::new();
    let body = |id: &str, consent: bool| json!({ "signedTransaction": sign_jws(&fixture.transaction(id, &[])), "sharesConsumption": consent });
    let report = |body: Value| fixture.server.post("/api/v1/purchases/apple").by(&fixture.user).json(&body).send();
    report(body("1", false)).expect(200);
    fixture.notify("CONSUMPTION_REQUEST", "u-1", &fixture.transaction("1", &[])).expect(200);
    report(body("2", true)).expect(200);
    // 96 + 66 coins. The oldest are used first.
    for _ in 0..48 {
        fixture.server.post("/coin/consume").by(&fixture.user).send().expect(200);
    }
    fixture.notify("CONSUMPTION_REQUEST", "u-2", &fixture.transaction("1", &[])).expect(200);
    eventually("the answer", || fixture.store.consumption().len() == 1);
    let (id, sent) = fixture.store.consumption().remove(0);
    assert_eq!(
        (id.as_str(), &sent["consumptionPercentage"], &sent["deliveryStatus"]),
        ("1", &json!(50_000), &json!("DELIVERED"))
    );
    fixture.notify("CONSUMPTION_REQUEST", "u-3", &fixture.transaction("2", &[])).expect(200);
    eventually("the second answer", || fixture.store.consumption().len() == 2);
    assert_eq!(fixture.store.consumption()[1].1["consumptionPercentage"], 0);
}

#[test]
fn every_published_transaction_has_its_verdict() {
    let published = published_app_store();
    let root = published["test_root_der_base64"].as_str().unwrap().to_owned();
    let product = |name: &str| name == "unknown_product";
    for (name, row) in published["transactions"].as_object().unwrap() {
        let provider = FakeAppStore::start_at(|| now() / 1000);
        let server = setup(&provider.url())
            .with("PAYMENT_APPLE_ROOT", &root)
            .with("PAYMENT_APPLE_BUNDLE_ID", published["bundle_id"].as_str().unwrap())
            .with("PAYMENT_APPLE_APP_APPLE_ID", published["app_apple_id"].as_i64().unwrap())
            .start();
        let (user, key) = (server.sign_in(OWN), server.api_key("shop"));
        let paid = decoded(&published["transactions"]["paid"]["jws"]);
        let id = paid["productId"].as_str().unwrap();
        define(&server, &key, json!({ "appleId": id }));
        account_token(&server, &user);
        server.edit(&format!(
            "update store_accounts set account_token = '{}'",
            paid["appAccountToken"].as_str().unwrap()
        ));
        let jws = row["jws"].as_str().unwrap();
        let response = report(&server, &user, jws);
        let expected = match name.as_str() {
            "paid" | "paid_signed_anew" | "chain_good_leaf_other_root_certificate" => (200, 60),
            "quantity_2" => (200, 120),
            "foreign_account_token" => (404, 0),
            "revoked" => (409, 0),
            _ => (422, 0),
        };
        assert_eq!((response.status, server.coins(&user)), expected, "{name}: {}", response.text());
        let is_refused = !row["must_refuse"].is_null() || row["result"] != "OK" || name == "no_account_token";
        assert_eq!(response.status != 200, is_refused || product(name), "{name}");
        // A second time changes nothing.
        assert_eq!(report(&server, &user, jws).status, expected.0, "{name}");
        assert_eq!(server.coins(&user), expected.1, "{name}");
        server.command(&["ledger", "verify"]).expect(0);
    }
}

#[test]
fn every_published_notification_has_its_verdict() {
    let published = published_app_store();
    let root = published["test_root_der_base64"].as_str().unwrap().to_owned();
    let paid = decoded(&published["transactions"]["paid"]["jws"]);
    for (name, row) in published["notifications"].as_object().unwrap() {
        let provider = FakeAppStore::start_at(|| now() / 1000);
        let server = setup(&provider.url())
            .with("PAYMENT_APPLE_ROOT", &root)
            .with("PAYMENT_APPLE_BUNDLE_ID", published["bundle_id"].as_str().unwrap())
            .with("PAYMENT_APPLE_APP_APPLE_ID", published["app_apple_id"].as_i64().unwrap())
            .start();
        let (user, key) = (server.sign_in(OWN), server.api_key("shop"));
        define(&server, &key, json!({ "appleId": paid["productId"] }));
        account_token(&server, &user);
        server.edit(&format!(
            "update store_accounts set account_token = '{}'",
            paid["appAccountToken"].as_str().unwrap()
        ));
        // Refunds are about a purchase that was credited.
        let is_credited = name.starts_with("refund_") && name != "refund_before_credit";
        if is_credited {
            report(&server, &user, published["transactions"]["paid"]["jws"].as_str().unwrap()).expect(200);
        }
        let (status, coins) = match name.as_str() {
            "one_time_charge" | "refund_reversed" | "refund_declined" => (200, 60),
            "refund_prorated" => (200, 20),
            "inner_of_other_key" | "outer_other_root" => (400, 0),
            _ => (200, 0),
        };
        for _ in 0..2 {
            let response = notify(&server, row["body"].as_str().unwrap().to_owned()).send();
            assert_eq!((response.status, server.coins(&user)), (status, coins), "{name}: {}", response.text());
        }
        server.command(&["ledger", "verify"]).expect(0);
    }
}

/// Returns the payload of a signed message.
fn decoded(jws: &Value) -> Value {
    use base64::Engine as _;
    let payload = jws.as_str().unwrap().split('.').nth(1).unwrap();
    serde_json::from_slice(&base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(payload).unwrap()).unwrap()
}

#[test]
fn erasure_and_export_cover_purchases() {
    let fixture = Fixture::new();
    fixture.report(&fixture.user, &fixture.transaction("1", &[])).expect(200);
    let export = fixture.server.get("/api/v1/account/export").by(&fixture.user).send().expect(200).json();
    assert_eq!(export["account"]["storeAccount"]["accountToken"], fixture.token);
    assert_eq!(
        (&export["purchases"][0]["purchaseId"], &export["purchases"][0]["coinCount"]),
        (&json!("1"), &json!(60))
    );
    fixture.server.command(&["users", "erase", OWN, "--yes", "--reason", "tests"]).expect(0);
    assert_eq!(fixture.server.value::<i64>("select count(*) from store_accounts"), 0);
    // A refund after the deletion is recorded, and charges nobody.
    fixture.notify("REFUND", "u-1", &fixture.transaction("1", &revocation(100_000, now()))).expect(200);
    assert_eq!(fixture.shown("1")["purchase"]["state"], "revoked");
    assert_books_agree(&fixture.server);
}

#[test]
fn support_finds_purchases_in_the_console() {
    let fixture = Fixture::new();
    let strange = fixture.transaction("2000000800000001", &[("productId", "com.example.yarrow.gold".into())]);
    fixture.report(&fixture.user, &strange).expect_problem(422, "unknown_package");
    let cookie = fixture.server.console_cookie("support", "support");
    let page = |path: &str| {
        let request = fixture.server.get(&format!("/admin/console/{path}")).header("cookie", &cookie);
        request.header("accept-language", "en").send()
    };
    assert_eq!(page("search?q=2000000800000001").header("location"), Some("/admin/console/purchases/1"));
    let user = page(&format!("users/{}", fixture.user.user_id)).expect(200).text();
    assert!(user.contains("A store purchase is not credited") && user.contains("/admin/console/purchases/1"), "{user}");
    let listed = page("purchases?state=refused").expect(200).text();
    assert!(listed.contains("undefined product"), "{listed}");
    let shown = page("purchases/1").expect(200).text();
    assert!(shown.contains("2000000800000001") && shown.contains("/admin/console/purchases/1/query"), "{shown}");
    // The product is defined meanwhile, and the store says what was bought.
    let terms = json!({ "asset": "coin", "count": 7, "appleId": "com.example.yarrow.gold", "reason": "test" });
    fixture.server.put("/admin/products/gold").token(&fixture.key).json(&terms).send().expect(200);
    fixture.store.add_transaction(strange);
    let csrf = shown.split("name=\"csrf\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    let asked = fixture.server.post("/admin/console/purchases/1/query").header("cookie", &cookie);
    asked.form(&[("csrf", csrf)]).send().expect(303);
    assert_eq!(fixture.coins(), 7);
}

#[test]
fn the_doctor_asks_the_store() {
    let fixture = Fixture::new();
    let verdict = || {
        let settings = setup(&fixture.store.url());
        let found = fixture.server.command_with(&settings.variables(), &["doctor", "--listen", "127.0.0.1:0"]).json();
        let checks = found["checks"].as_array().unwrap().clone();
        checks.into_iter().find(|check| check["name"] == "app store").unwrap()["verdict"].clone()
    };
    assert_eq!(verdict(), "pass");
    fixture.store.fail(401, 0);
    assert_eq!(verdict(), "fail");
}

#[test]
fn the_report_sums_purchases_by_currency_and_product_and_finds_lost_ones() {
    let fixture = Fixture::new();
    fixture.report(&fixture.user, &fixture.transaction("1", &[])).expect(200);
    fixture
        .report(&fixture.user, &fixture.transaction("2", &[("quantity", 2.into()), ("price", 12_000.into())]))
        .expect(200);
    let dollars = [("currency", "USD".into()), ("price", 990.into())];
    fixture.report(&fixture.user, &fixture.transaction("3", &dollars)).expect(200);
    fixture.notify("REFUND", "u-1", &fixture.transaction("1", &revocation(50_000, now()))).expect(200);
    let arguments = ["payments", "report", "--from", "2020-01-01", "--to", "2100-01-01"];
    let report = |exit_code: i32| fixture.server.command(&arguments).expect(exit_code).json();
    let group = |currency: &str, numbers: [i64; 6]| {
        let [purchases, refunded, amount, back, credited, returned] = numbers;
        json!({
            "store": "apple", "currency": currency, "productId": "gold60", "purchases": purchases,
            "refunded": refunded, "amountMilli": amount, "amountRefundedMilli": back, "credited": credited,
            "returned": returned, "writtenOff": 0,
        })
    };
    // 96 + 132 coins in yuan, of which 30 and half the bonus of 36 went back.
    let expected = json!([group("CNY", [2, 1, 18_000, 3_000, 228, 48]), group("USD", [1, 0, 990, 0, 66, 0])]);
    assert_eq!(report(0)["purchases"], expected);
    fixture.server.edit("delete from store_purchases where purchase_id = '3'");
    let differences = report(5)["differences"].clone();
    assert_eq!(differences.as_array().unwrap().len(), 2, "{differences}");
    assert_eq!(
        (&differences[0]["code"], &differences[0]["orderNo"]),
        (&json!("purchase_missing"), &json!("apple:production:3"))
    );
    fixture.server.edit("update store_purchases set coin_count = 61 where purchase_id = '2'");
    assert!(report(5)["differences"].to_string().contains("credit_wrong"));
}

#[test]
fn old_purchases_are_purged_and_never_credited_again() {
    let fixture = Fixture::new();
    let paid = fixture.transaction("1", &[]);
    fixture.report(&fixture.user, &paid).expect(200);
    fixture.report(&fixture.user, &fixture.transaction("2", &[])).expect(200);
    let age = "created_at = created_at - 100000000000, credited_at = credited_at - 100000000000";
    fixture.server.edit(&format!("update store_purchases set {age} where purchase_id = '1'"));
    let done = fixture.server.command(&["cleanup", "payment-records", "--yes"]).expect(0).json();
    assert_eq!((&done["deleted"]["store_purchases"], &done["kept"]["store_purchases"]), (&json!(1), &json!(1)));
    fixture.report(&fixture.user, &paid).expect_problem(409, "already_posted");
    assert_eq!(fixture.coins(), 96 + 66);
    fixture.server.command(&["ledger", "verify"]).expect(0);
}
