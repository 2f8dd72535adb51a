//! Products: the price lists of the settings, changes by operators, bonus, purchases of points and the exchange.

use serde_json::{Value, json};

use crate::support::{Caller, Server, Setup, eventually, send_concurrently};

const OWN: &str = "13800138000";
const OTHER: &str = "13900139000";

fn products(server: &Server) -> Value {
    server.get("/api/v1/products").send().expect(200).json()
}

fn product(server: &Server, id: &str) -> Option<Value> {
    products(server)["items"].as_array().unwrap().iter().find(|product| product["id"] == id).cloned()
}

fn order(server: &Server, user: &Caller, product: &str) -> Value {
    server.post("/api/v1/orders").by(user).json(&json!({ "productId": product })).send().expect(200).json()
}

fn bought(server: &Server, user: &Caller, product: &str) -> String {
    let order_no = order(server, user, product)["orderNo"].as_str().unwrap().to_owned();
    server.command(&["payments", "sandbox-pay", &order_no]).expect(0);
    order_no
}

fn points(server: &Server, user: &Caller) -> i64 {
    server.get("/api/v1/points").by(user).send().expect(200).json()["balance"].as_i64().unwrap()
}

fn refund(server: &Server, order_no: &str, amount: &str) -> Value {
    let arguments = ["payments", "refund", order_no, "--amount", amount, "--reason", "test", "--yes"];
    server.command(&arguments).expect(0).json()
}

fn assert_books_agree(server: &Server) {
    server.command(&["ledger", "verify"]).expect(0);
    server.command(&["payments", "report", "--from", "2020-01-01", "--to", "2100-01-01"]).expect(0);
}

#[test]
fn lists_the_packages_of_the_settings_and_the_prices_of_uses() {
    let server = Setup::default().start();
    let list = products(&server);
    let ids: Vec<_> = list["items"].as_array().unwrap().iter().map(|product| product["id"].clone()).collect();
    let expected = [
        "coins_60",
        "coins_330",
        "coins_780",
        "coins_1500",
        "points_600",
        "points_3300",
        "points_7800",
        "points_15000",
    ];
    assert_eq!(ids, expected);
    assert_eq!(list["prices"]["use"], json!({ "asset": "coin", "count": 1 }));
    assert_eq!(list["prices"]["casting"], json!({ "asset": "point", "count": 10 }));
    let english = product(&server, "points_600").unwrap();
    assert_eq!((&english["price"], &english["currency"]), (&json!("6.00"), &json!("CNY")));
    let of_first = server.get("/payment/products").query(&[("asset", "coin")]).header("accept-language", "zh");
    let of_first = of_first.send().expect(200).json();
    assert_eq!(of_first["items"].as_array().unwrap().len(), 4);
    assert_eq!(of_first["items"][0]["subject"], "60 金币");
    server.get("/api/v1/products").query(&[("asset", "gold")]).send().expect_fields(&[("asset", "unknown_value")]);
}

#[test]
fn sells_points_in_the_current_generation() {
    let server = Setup::default().start();
    let (user, other) = (server.sign_in_by_email("a@example.com"), server.sign_in(OTHER));
    let before = points(&server, &user);
    let first = order(&server, &user, "points_600");
    assert_eq!((&first["asset"], &first["count"], &first["status"]), (&json!("point"), &json!(600), &json!("created")));
    assert!(first["orderString"].as_str().unwrap().contains("out_trade_no"));
    let order_no = first["orderNo"].as_str().unwrap();
    assert_eq!(order(&server, &user, "points_600")["orderNo"], first["orderNo"]);
    let confirm = format!("/api/v1/orders/{order_no}/confirm");
    assert_eq!(server.post(&confirm).by(&user).send().expect(202).json()["status"], "created");
    server.post(&confirm).by(&other).send().expect_problem(404, "not_found");
    server.get(&format!("/api/v1/orders/{order_no}")).by(&other).send().expect_problem(404, "not_found");
    server.command(&["payments", "sandbox-pay", order_no]).expect(0);
    assert_eq!(points(&server, &user), before + 600);
    assert_eq!(server.post(&confirm).by(&user).send().expect(200).json()["status"], "credited");
    let listed = server.get("/api/v1/orders").by(&user).send().expect(200).json();
    assert_eq!((&listed["items"][0]["orderNo"], &listed["nextCursor"]), (&first["orderNo"], &Value::Null));
    let entry = server.get("/api/v1/points/ledger").by(&user).send().expect(200).json()["items"][0].clone();
    assert_eq!((&entry["kind"], &entry["ref"]), (&json!("topup"), &json!(format!("order:{order_no}"))));
    for id in ["points_601", "coins"] {
        let unknown = server.post("/api/v1/orders").by(&user).json(&json!({ "productId": id }));
        unknown.send().expect_problem(422, "unknown_product");
    }
    refund(&server, order_no, "6.00");
    assert_eq!(points(&server, &user), before);
    assert_books_agree(&server);
}

#[test]
fn a_buyer_pays_in_the_sandbox_if_the_operator_allows_it() {
    let closed = Setup::default().start();
    let user = closed.sign_in(OWN);
    let pay = |server: &Server, caller: &Caller, order_no: &str| {
        server.post(&format!("/api/v1/orders/{order_no}/sandbox-pay")).by(caller).send()
    };
    let order_no = order(&closed, &user, "coins_60")["orderNo"].as_str().unwrap().to_owned();
    pay(&closed, &user, &order_no).expect_problem(409, "not_configured");
    let server = Setup::default().with("PAYMENT_SANDBOX_BUYERS", "true").start();
    let (user, other) = (server.sign_in_by_email("a@example.com"), server.sign_in(OTHER));
    let (before, order_no) = (points(&server, &user), order(&server, &user, "points_600")["orderNo"].clone());
    let order_no = order_no.as_str().unwrap();
    pay(&server, &other, order_no).expect_problem(404, "not_found");
    for _ in 0..2 {
        assert_eq!(pay(&server, &user, order_no).expect(200).json()["status"], "credited");
        assert_eq!(points(&server, &user), before + 600);
    }
    server.command(&["payments", "refund", order_no, "--reason", "test", "--yes"]).expect(0);
    pay(&server, &user, order_no).expect_problem(409, "order_state");
    assert_books_agree(&server);
}

#[test]
fn an_order_keeps_its_terms_when_the_product_changes() {
    let server = Setup::default().start();
    let (user, key) = (server.sign_in(OWN), server.api_key("shop"));
    let old = order(&server, &user, "coins_60");
    let terms = json!({ "asset": "coin", "count": 70, "price": "6.00", "subjectZh": "七十金币", "reason": "sale" });
    let changed = server.put("/admin/products/coins_60").token(&key).json(&terms).send().expect(200).json();
    assert_eq!((&changed["version"], &changed["count"]), (&json!(1), &json!(70)));
    let same = server.put("/admin/products/coins_60").token(&key).json(&terms).send().expect(200).json();
    assert_eq!(same["version"], 1);
    let new = order(&server, &user, "coins_60");
    assert_ne!(new["orderNo"], old["orderNo"]);
    assert_eq!((&new["count"], &new["subject"]), (&json!(70), &json!("七十金币")));
    for (order, coins) in [(&old, 60), (&new, 130)] {
        server.command(&["payments", "sandbox-pay", order["orderNo"].as_str().unwrap()]).expect(0);
        assert_eq!(server.coins(&user), coins);
    }
    // The first generation names the price and the coins, which must be for sale.
    let package = |coins: &str| {
        server.get("/payment/gateway/order").by(&user).query(&[("amount", "6.00"), ("coinCount", coins)]).send()
    };
    package("60").expect_problem(422, "unknown_package");
    package("70").expect(200);
    let withdrawn = server.post("/admin/products/coins_60/withdraw").token(&key).json(&json!({ "reason": "over" }));
    assert_eq!(withdrawn.send().expect(200).json()["isForSale"], false);
    assert_eq!(product(&server, "coins_60"), None);
    package("70").expect_problem(422, "unknown_package");
    server.command(&["products", "offer", "coins_60"]).expect(0);
    assert_eq!(product(&server, "coins_60").unwrap()["count"], 70);
    assert_books_agree(&server);
}

#[test]
fn refuses_terms_that_no_provider_could_sell() {
    let server = Setup::default().start();
    let key = server.api_key("shop");
    let put = |id: &str, terms: Value| server.put(&format!("/admin/products/{id}")).token(&key).json(&terms).send();
    let base = json!({ "asset": "coin", "count": 1, "reason": "test" });
    let with = |name: &str, value: Value| {
        let mut terms = base.clone();
        terms[name] = value;
        terms
    };
    put("a", base.clone()).expect_fields(&[("price", "required")]);
    put("a", with("price", json!("0.00"))).expect_fields(&[("price", "out_of_range")]);
    put("A%20b", with("price", json!("1"))).expect_fields(&[("id", "invalid_format")]);
    let mut separators = with("price", json!("1"));
    separators["subjectEn"] = json!("a&b=c");
    put("a", separators).expect_fields(&[("subjectEn", "invalid_character")]);
    put("a", with("appleId", json!("com.example.a"))).expect(200);
    put("b", with("appleId", json!("com.example.a"))).expect_problem(409, "already_exists");
    // App stores sell it, gateways do not.
    let user = server.sign_in(OWN);
    assert_eq!(product(&server, "a").unwrap()["price"], Value::Null);
    let request = server.post("/api/v1/orders").by(&user).json(&json!({ "productId": "a" }));
    request.send().expect_problem(422, "unknown_product");
    server.post("/admin/products/nothing/offer").token(&key).json(&json!({ "reason": "test" })).send().expect(404);
}

#[test]
fn gives_a_bonus_and_takes_it_back_in_the_same_share() {
    let server = Setup::default().start();
    let user = server.sign_in(OWN);
    let set = ["products", "set", "coins_60", "--asset", "coin", "--count", "60", "--price", "6.00", "--bonus", "6"];
    server.command(&[&set[..], &["--first-bonus", "30"]].concat()).expect(0);
    let first = bought(&server, &user, "coins_60");
    assert_eq!(server.coins(&user), 96);
    let second = bought(&server, &user, "coins_60");
    assert_eq!(server.coins(&user), 96 + 66);
    let history = server.get("/coin/history").by(&user).send().expect(200).json();
    let kinds: Vec<_> = history["items"].as_array().unwrap().iter().map(|entry| entry["kind"].clone()).collect();
    assert_eq!(kinds, ["purchase_bonus", "topup", "purchase_bonus", "topup"]);
    // Half of the money: half of the coins and of the bonus.
    refund(&server, &first, "3.00");
    assert_eq!(server.coins(&user), 48 + 66);
    refund(&server, &first, "3.00");
    assert_eq!(server.coins(&user), 66);
    refund(&server, &second, "1.00");
    assert_eq!(server.coins(&user), 55);
    let orders = server.get("/payment/orders").by(&user).send().expect(200).json();
    assert_eq!((&orders["total"], &orders["items"][1]["bonus"]), (&json!(2), &json!(36)));
    // A refunded first purchase was one all the same.
    bought(&server, &user, "coins_60");
    assert_eq!(server.coins(&user), 55 + 66);
    assert_books_agree(&server);
}

#[test]
fn the_command_keeps_terms_that_are_not_given() {
    let server = Setup::default().start();
    let set = |arguments: &[&str]| server.command(&[&["products", "set", "gold"], arguments].concat());
    set(&["--count", "60"]).expect(2);
    set(&["--asset", "coin", "--count", "60", "--price", "6.00", "--bonus", "3", "--apple-id", "gold.apple"]).expect(0);
    set(&["--subject-zh", "金币", "--subject-en", "Gold"]).expect(0);
    server.command(&["products", "withdraw", "gold"]).expect(0);
    let changed = set(&["--price", "7.00", "--apple-id", ""]).expect(0).json();
    let expected = json!({ "count": 60, "bonus": 3, "price": "7.00", "appleId": null, "isForSale": false });
    for (member, value) in expected.as_object().unwrap() {
        assert_eq!(&changed[member], value, "{member}: {changed}");
    }
    assert_eq!(changed["subjectZh"], "金币", "{changed}");
    let listed = server.get("/api/v1/products").send().expect(200).json();
    let sold = &listed["items"][0]["channels"][0];
    assert_eq!((&sold["channel"], &sold["currency"]), (&json!("sandbox"), &json!("CNY")), "{listed}");
}

#[test]
fn a_spent_bonus_is_owed_and_can_be_written_off() {
    let server = Setup::default().start();
    let user = server.sign_in(OWN);
    let set = ["products", "set", "coins_60", "--asset", "coin", "--count", "60", "--price", "6.00", "--bonus", "6"];
    server.command(&set).expect(0);
    let order_no = bought(&server, &user, "coins_60");
    for _ in 0..4 {
        server.post("/coin/consume").by(&user).send().expect(200);
    }
    refund(&server, &order_no, "6.00");
    assert_eq!((server.order_state(&order_no).0.as_str(), server.coins(&user)), ("review", 0));
    let report = server.command(&["payments", "report", "--from", "2020-01-01", "--to", "2100-01-01"]).expect(5).json();
    let owed = &report["differences"][0];
    assert_eq!(
        (&owed["code"], &owed["coinsExpected"], &owed["coinsFound"]),
        (&json!("coins_owed"), &json!(66), &json!(62))
    );
    server.command(&["payments", "settle", &order_no, "write-off", "--reason", "goodwill", "--yes"]).expect(0);
    assert_eq!(server.order_state(&order_no).0, "refunded");
    assert_books_agree(&server);
}

#[test]
fn parallel_purchases_have_one_first_bonus() {
    let server = Setup::default().start();
    let user = server.sign_in(OWN);
    for id in ["coins_60", "coins_330"] {
        let count = id.strip_prefix("coins_").unwrap();
        let price = if count == "60" { "6.00" } else { "30.00" };
        let set =
            ["products", "set", id, "--asset", "coin", "--count", count, "--price", price, "--first-bonus", "1000"];
        server.command(&set).expect(0);
    }
    let orders = ["coins_60", "coins_330"].map(|id| order(&server, &user, id)["orderNo"].as_str().unwrap().to_owned());
    let key = server.api_key("shop");
    let pay = |order_no: &String| {
        let path = format!("/admin/payments/{order_no}/sandbox-pay");
        server.post(&path).token(&key).json(&json!({ "reason": "test" }))
    };
    let copies = orders.iter().flat_map(|order_no| (0..8).map(move |_| order_no)).map(pay).collect();
    for response in send_concurrently(copies) {
        response.expect(200);
    }
    assert_eq!(server.coins(&user), 60 + 330 + 1000);
    assert_books_agree(&server);
}

#[test]
fn exchanges_coins_for_points_at_the_configured_rate() {
    let server = Setup::default().with("POINTS_PER_COIN", "10").start();
    let user = server.sign_in(OWN);
    assert_eq!(products(&server)["pointsPerCoin"], 10);
    bought(&server, &user, "coins_60");
    let exchange = |coins: i64, key: &str| {
        let request = server.post("/api/v1/points/exchange").by(&user).json(&json!({ "coins": coins }));
        request.header("idempotency-key", key)
    };
    exchange(61, "a").send().expect_problem(402, "insufficient_coins");
    for response in send_concurrently((0..8).map(|_| exchange(20, "b")).collect()) {
        let done = response.expect(200).json();
        assert_eq!(done, json!({ "coins": 20, "points": 200, "coinBalance": 40, "pointBalance": 200 }));
    }
    assert_eq!((server.coins(&user), points(&server, &user)), (40, 200));
    exchange(0, "c").send().expect_fields(&[("coins", "out_of_range")]);
    assert_books_agree(&server);
}

#[test]
fn coins_stay_coins_without_a_rate() {
    let server = Setup::default().start();
    let user = server.sign_in(OWN);
    let request = server.post("/api/v1/points/exchange").by(&user).json(&json!({ "coins": 1 }));
    request.send().expect_problem(409, "not_configured");
}

#[test]
fn the_audit_names_the_product_with_its_terms_before_and_after() {
    let server = Setup::default().start();
    let key = server.api_key("shop");
    let terms = json!({ "asset": "coin", "count": 60, "price": "6.00", "reason": "autumn sale" });
    server.put("/admin/products/fresh_60").token(&key).json(&terms).send().expect(200);
    let set = ["products", "set", "fresh_60", "--asset", "coin", "--count", "66", "--bonus", "6", "--price", "6.00"];
    server.command(&set).expect(0);
    server.post("/admin/products/fresh_60/withdraw").token(&key).json(&json!({})).send().expect(200);
    server.command(&["products", "offer", "fresh_60"]).expect(0);
    let reasons = || -> Vec<Value> {
        let found = server.command(&["audit"]).expect(0).json();
        let rows = found["items"].as_array().unwrap();
        let products = rows.iter().filter(|row| row["action"].as_str().unwrap().contains("products"));
        products.map(|row| row["reason"].clone()).rev().collect()
    };
    let expected = [
        "fresh_60: 60 coin, price 6.00; autumn sale",
        "fresh_60: 60 coin, price 6.00 -> 66 coin, bonus 6, price 6.00",
        "fresh_60: 66 coin, bonus 6, price 6.00 -> 66 coin, bonus 6, price 6.00, withdrawn",
        "fresh_60: 66 coin, bonus 6, price 6.00, withdrawn -> 66 coin, bonus 6, price 6.00",
    ];
    eventually("all changes are in the audit", || reasons().len() == expected.len());
    assert_eq!(reasons(), expected);
}
