//! `Idempotency-Key`: one effect and one response for repeated requests.

use std::{collections::BTreeSet, io::Write, net::TcpStream, time::Duration};

use serde_json::{Value, json};

use crate::support::{Caller, Request, Response, Server, Setup, eventually};

const OWN: &str = "13800138000";
const OTHER: &str = "13900139000";

fn consume(server: &Server, user: &Caller, key: &str) -> Request {
    server.post("/coin/consume").by(user).header("idempotency-key", key)
}

fn balance(server: &Server, user: &Caller) -> i64 {
    server.get("/coin/balance").by(user).send().expect(200).json()["balance"].as_i64().unwrap()
}

fn is_replayed(response: &Response) -> bool {
    response.header("idempotency-replayed") == Some("true")
}

#[test]
fn a_repeated_request_gets_the_first_response() {
    let server = Setup::default().start();
    let user = server.sign_in(OWN);
    let operator = server.api_key("shop");
    server.grant(&operator, OWN, 5);
    let first = consume(&server, &user, "a").send().expect(200);
    server.grant(&operator, OWN, 100);
    let second = consume(&server, &user, "a").send().expect(200);
    assert_eq!(first.bytes, second.bytes);
    assert!(!is_replayed(&first) && is_replayed(&second));
    assert_eq!(second.header("content-type"), Some("application/json"));
    assert_eq!(balance(&server, &user), 104);
    consume(&server, &user, "b").send().expect(200);
    server.post("/coin/consume").by(&user).send().expect(200);
    assert_eq!(balance(&server, &user), 102);
    consume(&server, &user, "c").header("idempotency-key", "c").send().expect(200);
    let two = consume(&server, &user, "d").header("idempotency-key", "e");
    two.send().expect_problem(400, "conflicting_parameter");
    assert_eq!(balance(&server, &user), 101);
}

#[test]
fn every_moving_endpoint_replays_repeated_requests() {
    let server = Setup::default().with("COINS_INITIAL", 10).with("POINTS_PER_COIN", 10).start();
    let (user, host, operator) = (server.sign_in(OWN), server.sign_in(OTHER), server.api_key("shop"));
    server.command(&["points", "adjust", OWN, "1000", "--reason", "test"]).expect(0);
    let invite = server.get("/api/v1/invite").by(&host).send().expect(200).json()["code"].clone();
    let paid_order = || {
        let package = json!({ "amount": "6.00", "coinCount": 60 });
        let order = server.post("/payment/gateway/order").by(&user).json(&package).send().expect(200).json();
        let order_no = order["orderNo"].as_str().unwrap().to_owned();
        server.command(&["payments", "sandbox-pay", &order_no]).expect(0);
        order_no
    };
    let (reviewed, refunded) = (paid_order(), paid_order());
    server.edit(&format!("update payment_orders set state = 'review', reason = 'test' where order_no = '{reviewed}'"));
    let moved = || -> (i64, i64, i64, i64) {
        let sql = "select (select count(*) from ledger_entries), (select count(*) from sessions), \
                   (select count(*) from payment_refunds), (select count(*) from interpretations)";
        let row = |row: &crate::support::Row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
        server.database().query_row(sql, (), row).unwrap()
    };
    let grant = |coins: u32| json!({ "phoneNumber": OWN, "coinCount": coins });
    let cast = |question: &str| json!({ "question": question, "method": "three_coins" });
    let session = server.post("/api/v1/sessions").by(&user).json(&cast("何时启程？")).send().expect(201).json();
    let session = session["id"].as_str().unwrap();
    let (again, stored) = (json!({ "again": true }), json!({ "again": false }));
    let settle = |reason: &str| json!({ "decision": "write-off", "reason": reason });
    let refund = |amount: &str| json!({ "amount": amount, "reason": "test" });
    let (by_id, by_phone) = (json!({ "userId": user.user_id }), json!({ "phoneNumber": OWN }));
    let modules = [
        ("/coin/consume", "", &user.token, json!({}), by_id.clone()),
        ("/coin/consume/phone", "", &user.token, json!({}), by_phone.clone()),
        ("/coin/increase/phone", "", &operator, grant(5), grant(6)),
        ("/api/v1/sessions", "", &user.token, cast("何时启程？"), cast("何时归来？")),
        ("/api/v1/sessions/{id}/interpretation", session, &user.token, again, stored),
        ("/api/v1/invite/redeem", "", &user.token, json!({ "code": invite }), json!({ "code": "22222222" })),
        ("/api/v1/points/exchange", "", &user.token, json!({ "coins": 1 }), json!({ "coins": 2 })),
        ("/admin/payments/{orderNo}/settle", &*reviewed, &operator, settle("test"), settle("other")),
        ("/admin/payments/{orderNo}/refund", &*refunded, &operator, refund("1.00"), refund("2.00")),
        ("/coin/reset", "", &user.token, json!({}), by_id),
        ("/coin/reset/phone", "", &user.token, json!({}), by_phone),
    ];
    for (path, id, token, body, other) in &modules {
        let path_of_one = path.replace("{orderNo}", id).replace("{id}", id);
        let request = server.post(&path_of_one).token(token).header("idempotency-key", "k");
        let before = moved();
        let first = request.clone().json(body).send();
        assert!([200, 201].contains(&first.status), "{path}: {}", first.text());
        let after = moved();
        assert!(after != before || path.contains("settle") || path.ends_with("reset/phone"), "{path} changed nothing");
        let second = request.clone().json(body).send();
        assert_eq!((second.status, &second.bytes), (first.status, &first.bytes), "{path}");
        assert!(!is_replayed(&first) && is_replayed(&second), "{path}");
        request.json(other).send().expect_problem(422, "idempotency_key_reused");
        assert_eq!(moved(), after, "{path}");
    }
    // The document declares the key for the same endpoints.
    let document = server.get("/openapi.json").send().expect(200).json();
    let takes_key = |operation: &Value| {
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        parameters.into_iter().any(|parameter| parameter["name"] == "Idempotency-Key")
    };
    let paths = document["paths"].as_object().unwrap().iter();
    let documented = paths.filter(|(_, methods)| methods.as_object().unwrap().values().any(takes_key));
    let documented: BTreeSet<_> = documented.map(|(path, _)| path.as_str()).collect();
    // They move no balance; the tests of users and feedback repeat them.
    let others = [
        "/admin/feedback/{id}/reply",
        "/admin/users/{userId}/notes",
        "/admin/users/{userId}/phone-number",
        "/admin/users/{userId}/suspension",
    ];
    assert_eq!(documented, modules.iter().map(|endpoint| endpoint.0).chain(others).collect());
}

#[test]
fn a_key_is_scoped_to_request_caller_and_endpoint() {
    let server = Setup::default().with("COINS_INITIAL", 10).start();
    let user = server.sign_in(OWN);
    let other = server.sign_in(OTHER);
    consume(&server, &user, "a").json(&json!({ "userId": user.user_id })).send().expect(200);
    consume(&server, &user, "a").send().expect_problem(422, "idempotency_key_reused");
    consume(&server, &user, "a").query(&[("x", "1")]).send().expect_problem(422, "idempotency_key_reused");
    assert_eq!(balance(&server, &user), 9);
    assert!(!is_replayed(&consume(&server, &other, "a").send().expect(200)));
    let by_phone = server.post("/coin/consume/phone").by(&user).header("idempotency-key", "a").send().expect(200);
    assert!(!is_replayed(&by_phone));
    assert_eq!((balance(&server, &user), balance(&server, &other)), (8, 9));
}

#[test]
fn a_key_covers_path_and_query() {
    let server = Setup::default().with("COINS_INITIAL", 10).start();
    let (user, operator) = (server.sign_in(OWN), server.api_key("shop"));
    let body = json!({ "userId": user.user_id });
    consume(&server, &user, "a").query(&[("x", "1")]).json(&body).send().expect(200);
    for other in [&[("x", "2")][..], &[], &[("x", "1"), ("y", "1")]] {
        let reused = consume(&server, &user, "a").query(other).json(&body).send();
        reused.expect_problem(422, "idempotency_key_reused");
    }
    assert_eq!(balance(&server, &user), 9);
    let order = || {
        let package = json!({ "amount": "6.00", "coinCount": 60 });
        let order = server.post("/payment/gateway/order").by(&user).json(&package).send().expect(200).json();
        let order_no = order["orderNo"].as_str().unwrap().to_owned();
        server.command(&["payments", "sandbox-pay", &order_no]).expect(0);
        order_no
    };
    let (first, second) = (order(), order());
    let refund = |order_no: &str| {
        let request = server.post(&format!("/admin/payments/{order_no}/refund")).token(&operator);
        request.header("idempotency-key", "b").json(&json!({ "amount": "1.00", "reason": "test" })).send()
    };
    refund(&first).expect(200);
    refund(&second).expect_problem(422, "idempotency_key_reused");
    let refunded = "select group_concat(order_no) from payment_refunds";
    assert_eq!(server.value::<String>(refunded), first);
}

#[test]
fn keeps_final_failures_and_no_transient_ones() {
    let server = Setup::default().start();
    let user = server.sign_in(OWN);
    let operator = server.api_key("shop");
    let first = consume(&server, &user, "a").send().expect_problem(402, "insufficient_coins");
    server.grant(&operator, OWN, 5);
    let second = consume(&server, &user, "a").send().expect(402);
    assert_eq!(first.bytes, second.bytes);
    assert_eq!(second.header("content-type"), Some("application/problem+json"));
    assert!(is_replayed(&second));
    assert_eq!(balance(&server, &user), 5);

    let suspend = |value: &str| {
        server.database().execute(&format!("update balances set suspended_at = {value}"), ()).unwrap();
    };
    suspend("1");
    consume(&server, &user, "b").send().expect_problem(503, "account_inconsistent");
    suspend("null");
    consume(&server, &user, "b").send().expect(200);
    assert_eq!(balance(&server, &user), 4);
}

#[test]
fn keeps_only_the_newest_responses_that_cost_nothing() {
    let server = Setup::default().with("LIMITS_FREE_RESPONSES", 3).start();
    let (user, other) = (server.sign_in(OWN), server.sign_in(OTHER));
    let stored = || -> Vec<String> {
        let database = server.database();
        let sql = "select caller || ' ' || key from idempotency_keys order by id";
        let mut statement = database.prepare(sql).unwrap();
        let rows = statement.query_map((), |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    };
    server.grant(&server.api_key("shop"), OWN, 1);
    consume(&server, &user, "paid").send().expect(200);
    consume(&server, &other, "other").send().expect(402);
    for number in 1..=9 {
        consume(&server, &user, &format!("{number:0>255}")).send().expect_problem(402, "insufficient_coins");
    }
    let reset = |key: &str| server.post("/coin/reset").by(&user).header("idempotency-key", key).send().expect(200);
    reset("a reset of nothing");
    let (user_id, other_id) = (&user.user_id, &other.user_id);
    let expected = [
        format!("user:{user_id} paid"),
        format!("user:{other_id} other"),
        format!("user:{user_id} {:0>255}", 8),
        format!("user:{user_id} {:0>255}", 9),
        format!("user:{user_id} a reset of nothing"),
    ];
    assert_eq!(stored(), expected);
    // What is kept is replayed, and what cost something always is. A forgotten refusal is decided anew.
    assert!(is_replayed(&reset("a reset of nothing")));
    assert!(is_replayed(&consume(&server, &user, "paid").send().expect(200)));
    assert!(is_replayed(&consume(&server, &user, &format!("{:0>255}", 9)).send().expect(402)));
    assert!(!is_replayed(&consume(&server, &user, &format!("{:0>255}", 1)).send().expect(402)));
}

#[test]
fn keys_expire() {
    let server = Setup::default().with("COINS_INITIAL", 10).start();
    let user = server.sign_in(OWN);
    let age = |hours: i64| {
        let sql = "update idempotency_keys set created_at = created_at - ?1 * 3600000";
        server.database().execute(sql, [hours]).unwrap();
    };
    consume(&server, &user, "a").send().expect(200);
    age(71);
    assert!(is_replayed(&consume(&server, &user, "a").send().expect(200)));
    age(2);
    assert!(!is_replayed(&consume(&server, &user, "a").send().expect(200)));
    assert!(is_replayed(&consume(&server, &user, "a").send().expect(200)));
    assert_eq!(balance(&server, &user), 8);
}

#[test]
fn an_expired_key_can_store_a_failure() {
    let server = Setup::default().with("COINS_INITIAL", 1).start();
    let user = server.sign_in(OWN);
    consume(&server, &user, "a").send().expect(200);
    server.database().execute("update idempotency_keys set created_at = created_at - 73 * 3600000", ()).unwrap();
    let first = consume(&server, &user, "a").send().expect_problem(402, "insufficient_coins");
    let second = consume(&server, &user, "a").send().expect(402);
    assert_eq!(first.bytes, second.bytes);
    assert!(!is_replayed(&first) && is_replayed(&second));
}

#[test]
fn rejects_invalid_keys() {
    let server = Setup::default().with("COINS_INITIAL", 10).start();
    let user = server.sign_in(OWN);
    for key in ["", " ", &"k".repeat(256)] {
        consume(&server, &user, key).send().expect_fields(&[("Idempotency-Key", "invalid_format")]);
    }
    consume(&server, &user, &"k".repeat(255)).send().expect(200);
    assert_eq!(balance(&server, &user), 9);
}

#[test]
fn racing_copies_have_one_effect_and_one_response() {
    let server = Setup::default().with("COINS_INITIAL", 10).start();
    let user = server.sign_in(OWN);
    let responses: Vec<_> = std::thread::scope(|scope| {
        let calls: Vec<_> = (0..20).map(|_| scope.spawn(|| consume(&server, &user, "a").send().expect(200))).collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    assert_eq!(responses.iter().filter(|response| !is_replayed(response)).count(), 1);
    assert_eq!(responses.iter().map(|response| &response.bytes).collect::<BTreeSet<_>>().len(), 1);
    assert_eq!(balance(&server, &user), 9);
}

#[test]
fn a_kill_between_commit_and_response_leaves_one_effect() {
    let setup = Setup::default().with("COINS_INITIAL", 10);
    let server = setup.clone().in_own_process().start();
    let user = server.sign_in(OWN);
    let database = server.database();
    let mut stream = TcpStream::connect(server.address()).unwrap();
    let request = format!(
        "POST /coin/consume HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\nidempotency-key: a\r\n\
         content-length: 0\r\n\r\n",
        user.token
    );
    stream.write_all(request.as_bytes()).unwrap();
    let stored = "select count(*) > 0 from idempotency_keys";
    eventually("the request had an effect", || database.query_row(stored, (), |row| row.get(0)).unwrap());
    drop(database);
    // The response was not read, whether it was sent or not.
    let directory = server.kill();
    let server = setup.on(&directory).in_own_process().start();
    let response = consume(&server, &user, "a").send().expect(200);
    assert!(is_replayed(&response));
    assert_eq!(response.json()["balance"], 9);
    assert_eq!(balance(&server, &user), 9);
    drop(server);
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn kills_lose_and_duplicate_nothing() {
    let setup = Setup::default().with("COINS_INITIAL", 1_000);
    let mut server = setup.clone().in_own_process().start();
    let user = server.sign_in(OWN);
    let mut keys = 0_i64;
    for round in 0..5_u64 {
        let first = keys;
        let address = server.address();
        let sender = {
            let user = user.clone();
            std::thread::spawn(move || {
                let mut sent = 0;
                let url = format!("http://{address}/coin/consume");
                loop {
                    let key = (first + sent).to_string();
                    let request = Request::new("POST", &url).by(&user).header("idempotency-key", &key);
                    sent += 1;
                    if request.try_send().is_err() {
                        return sent;
                    }
                }
            })
        };
        std::thread::sleep(Duration::from_millis(20 + 17 * round));
        let directory = server.kill();
        keys += sender.join().unwrap();
        server = setup.clone().on(&directory).in_own_process().start();
        for key in first..keys {
            consume(&server, &user, &key.to_string()).send().expect(200);
        }
        assert_eq!(balance(&server, &user), 1_000 - keys);
    }
    server.command(&["ledger", "verify"]).expect(0);
    let directory = server.kill();
    std::fs::remove_dir_all(directory).unwrap();
}
