//! Payments from order to coins and refund, with the real binary and the sandbox.

use serde_json::{Value, json};

use crate::support::{Caller, Server, Setup, eventually, eventually_ok, send_concurrently};

const OWN: &str = "13800138000";

fn order(server: &Server, user: &Caller) -> String {
    let package = [("amount", "6.00"), ("coinCount", "60")];
    let order = server.get("/payment/gateway/order").by(user).query(&package).send().expect(200).json();
    order["orderNo"].as_str().unwrap().to_owned()
}

fn paid_order(server: &Server, user: &Caller) -> String {
    let order_no = order(server, user);
    let paid = server.command(&["payments", "sandbox-pay", &order_no]).expect(0).json();
    assert_eq!((&paid["answer"], &paid["order"]["state"]), (&json!("success"), &json!("credited")));
    order_no
}

fn wait_for_state(server: &Server, order_no: &str, state: &str) {
    eventually_ok(state, || {
        let found = server.order_state(order_no);
        if found.0 == state { Ok(()) } else { Err(found) }
    });
}

fn report(server: &Server, exit_code: i32) -> Value {
    let arguments = ["payments", "report", "--from", "2020-01-01", "--to", "2100-01-01"];
    server.command(&arguments).expect(exit_code).json()
}

#[test]
fn credits_a_payment_by_callback_over_http() {
    let server = Setup::default().start();
    let user = server.sign_in(OWN);
    let order_no = order(&server, &user);
    let notify = format!("http://{}/payment/notify", server.address());
    let paid = server.command(&["payments", "sandbox-pay", &order_no, "--deliver-to", &notify]).expect(0).json();
    assert_eq!((&paid["answer"], &paid["order"]["state"]), (&json!("success"), &json!("credited")));
    assert_eq!(server.coins(&user), 60);
    let again = server.command(&["payments", "sandbox-pay", &order_no, "--deliver-to", &notify]).expect(0).json();
    assert_eq!(again["answer"], "success");
    assert_eq!(server.coins(&user), 60);
    server.command(&["ledger", "verify"]).expect(0);
}

#[test]
fn commands_find_the_records_of_a_deleted_account_by_id() {
    let server = Setup::default().start();
    let user = server.sign_in(OWN);
    let order_no = paid_order(&server, &user);
    server.command(&["users", "erase", OWN, "--yes"]).expect(0);
    let listed = server.command(&["payments", "list", "--user", &user.user_id]).expect(0).json();
    assert_eq!((&listed["total"], &listed["items"][0]["orderNo"]), (&json!(1), &json!(order_no)));
    for command in ["payments", "violations", "feedback"] {
        server.command(&[command, "list", "--user", &user.user_id]).expect(0);
        // The phone number is no longer known.
        server.command(&[command, "list", "--user", OWN]).expect(4);
    }
}

#[test]
fn queries_and_closes_silent_orders() {
    const MINUTE: i64 = 60_000;
    const HOUR: i64 = 60 * MINUTE;
    let server = Setup::default().start();
    let user = server.sign_in(OWN);
    let lost = order(&server, &user);
    server.command(&["payments", "sandbox-pay", &lost, "--lost"]).expect(0);
    let age_sends = |order_no: &str, time: i64| {
        server.edit(&format!(
            "update payment_orders set created_at = created_at - {time}, expires_at = expires_at - {time}, \
             next_check_at = next_check_at - {time} where order_no = '{order_no}'"
        ));
    };
    age_sends(&lost, MINUTE);
    wait_for_state(&server, &lost, "credited");
    assert_eq!(server.coins(&user), 60);
    let abandoned = order(&server, &user);
    let mut passed = 0;
    for (checks, age) in [MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR, 6 * HOUR, 25 * HOUR].into_iter().enumerate() {
        let scheduled = || -> (i64, i64) {
            let sql = "select checks, next_check_at - created_at from payment_orders where order_no = ?1";
            server.database().query_row(sql, [&abandoned], |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
        };
        let expected = (i64::try_from(checks).unwrap(), age);
        eventually_ok("the next question has its time", || {
            let found = scheduled();
            if found == expected { Ok(()) } else { Err((found, expected)) }
        });
        age_sends(&abandoned, age - passed);
        passed = age;
    }
    wait_for_state(&server, &abandoned, "closed");
    // Money that arrives later is not lost either.
    let late = server.command(&["payments", "sandbox-pay", &abandoned, "--late"]).expect(0).json();
    assert_eq!((&late["answer"], &late["order"]["state"]), (&json!("success"), &json!("credited")));
    assert_eq!(server.coins(&user), 120);
}

#[test]
fn a_refund_claws_back_coins_once_per_refund_number() {
    let server = Setup::default().start();
    let (user, key) = (server.sign_in(OWN), server.api_key("shop"));
    let order_no = paid_order(&server, &user);
    let path = format!("/admin/payments/{order_no}/refund");
    let refund = |amount: &str, number: &str| {
        let body = json!({ "amount": amount, "refundNo": number, "reason": "test" });
        server.post(&path).token(&key).json(&body).send()
    };
    let refunded = || report(&server, 0)["total"]["refunded"].clone();
    assert_eq!(refunded(), 0);
    for _ in 0..2 {
        let done = refund("1.50", "R1").expect(200).json();
        assert_eq!((&done["refund"]["state"], &done["order"]["refunded"]), (&json!("succeeded"), &json!("1.50")));
        assert_eq!(server.coins(&user), 45);
    }
    assert_eq!(refunded(), 1);
    refund("2.00", "R1").expect_problem(422, "idempotency_key_reused");
    refund("4.51", "R2").expect_problem(409, "order_state");
    // The provider reports the payment again, with the refund.
    assert_eq!(server.command(&["payments", "sandbox-pay", &order_no]).expect(0).json()["answer"], "success");
    assert_eq!(server.coins(&user), 45);
    refund("4.50", "R3").expect(200);
    assert_eq!((server.order_state(&order_no), server.coins(&user)), (("refunded".to_owned(), 600), 0));
    server.post(&path).by(&user).json(&json!({ "reason": "mine" })).send().expect_problem(403, "forbidden");
    let total = &report(&server, 0)["total"];
    assert_eq!((&total["coinsCredited"], &total["coinsReturned"]), (&json!(60), &json!(60)));
    assert_eq!((&total["amountPaid"], &total["amountRefunded"]), (&json!("6.00"), &json!("6.00")));
}

#[test]
fn a_repeated_refund_request_returns_the_first_response() {
    let server = Setup::default().start();
    let (user, token) = (server.sign_in(OWN), server.api_key("shop"));
    let path = format!("/admin/payments/{}/refund", paid_order(&server, &user));
    let refund = |amount: &str, key: &str| {
        let body = json!({ "amount": amount, "reason": "test" });
        server.post(&path).token(&token).header("idempotency-key", key).json(&body)
    };
    let first = refund("1.00", "a").send().expect(200);
    assert_eq!(first.header("idempotency-replayed"), None);
    let copies = send_concurrently((0..8).map(|_| refund("2.00", "b")).collect());
    assert!(copies.iter().all(|response| response.status == 200 && response.json() == copies[0].json()));
    assert_eq!(copies.iter().filter(|response| response.header("idempotency-replayed").is_none()).count(), 1);
    let again = refund("1.00", "a").send().expect(200);
    assert_eq!((again.json(), again.header("idempotency-replayed")), (first.json(), Some("true")));
    refund("3.00", "a").send().expect_problem(422, "idempotency_key_reused");
    assert_eq!(server.coins(&user), 30);
    assert_eq!(server.value::<i64>("select count(*) from payment_refunds"), 2);
}

#[test]
fn spent_coins_go_to_review_and_never_become_a_debt() {
    let server = Setup::default().start();
    let (user, key) = (server.sign_in(OWN), server.api_key("shop"));
    let order_no = paid_order(&server, &user);
    server.post("/coin/consume").by(&user).send().expect(200);
    server.command(&["payments", "refund", &order_no, "--reason", "test", "--yes"]).expect(0);
    assert_eq!((server.order_state(&order_no), server.coins(&user)), (("review".to_owned(), 600), 0));
    let found = report(&server, 5);
    assert_eq!(found["differences"][0]["code"], "coins_owed");
    let path = format!("/admin/payments/{order_no}/settle");
    let settle = |decision: &str| {
        let body = json!({ "decision": decision, "reason": "one coin is not worth it" });
        server.post(&path).token(&key).json(&body).send()
    };
    settle("credit").expect_problem(409, "order_state");
    assert_eq!(settle("write-off").expect(200).json()["state"], "refunded");
    settle("write-off").expect_problem(409, "order_state");
    assert_eq!(report(&server, 0)["total"]["coinsWrittenOff"], 1);
}

#[test]
fn an_order_of_a_deleted_user_goes_to_review_and_is_refundable() {
    let server = Setup::default().start();
    let user = server.sign_in(OWN);
    let order_no = order(&server, &user);
    server.database().execute("update payment_orders set user_id = 999", ()).unwrap();
    let paid = server.command(&["payments", "sandbox-pay", &order_no]).expect(0).json();
    assert_eq!(
        (&paid["answer"], &paid["order"]["state"], &paid["order"]["reason"]),
        (&json!("success"), &json!("review"), &json!("user_gone"))
    );
    server.command(&["payments", "settle", &order_no, "write-off", "--reason", "gone", "--yes"]).expect(1);
    server.command(&["payments", "refund", &order_no, "--reason", "gone", "--yes"]).expect(0);
    assert_eq!(server.order_state(&order_no), ("refunded".to_owned(), 600));
    report(&server, 0);
}

#[test]
fn an_administrator_credits_an_order_under_review() {
    let server = Setup::default().start();
    let (user, key) = (server.sign_in(OWN), server.api_key("shop"));
    let order_no = order(&server, &user);
    let database = server.database();
    let belongs_to = |owner: &str| database.execute("update payment_orders set user_id = ?1", [owner]).unwrap();
    let settle = |pairs: &[(&str, &str)]| {
        server.post("/payment/update-balance").token(&key).query(&[("orderNo", &order_no)]).form(pairs).send()
    };
    settle(&[("reason", "not under review")]).expect_problem(409, "order_state");
    belongs_to("999");
    server.command(&["payments", "sandbox-pay", &order_no]).expect(0);
    belongs_to(&user.user_id);
    settle(&[]).expect_fields(&[("reason", "required")]);
    settle(&[("reason", "mistaken"), ("amount", "1.00")]).expect_fields(&[("amount", "unknown_value")]);
    settle(&[("reason", "mistaken"), ("userId", "998")]).expect_fields(&[("userId", "unknown_value")]);
    let settled = settle(&[("reason", "the user is back")]).expect(200).json();
    assert_eq!(
        (&settled["orderNo"], &settled["status"], &settled["balance"]),
        (&json!(order_no), &json!("credited"), &json!(60))
    );
    settle(&[("reason", "once more")]).expect_problem(409, "order_state");
    assert_eq!(server.coins(&user), 60);
    let by_hand = server.command(&["audit", "--json"]).expect(0).text();
    assert!(by_hand.contains("the user is back"), "{by_hand}");
}

#[test]
fn replays_a_stored_callback() {
    let server = Setup::default().start();
    let (user, key) = (server.sign_in(OWN), server.api_key("shop"));
    let order_no = paid_order(&server, &user);
    let database = server.database();
    database.execute("update payment_orders set order_no = 'hidden'", ()).unwrap();
    let replayed = server.post("/admin/payments/callbacks/1/replay").token(&key).send().expect(200).json();
    assert_eq!((&replayed["verdict"], &replayed["reason"]), (&json!("rejected"), &json!("unknown_order")));
    database.execute("update payment_orders set order_no = ?1", [&order_no]).unwrap();
    let replayed = server.command(&["payments", "replay", "1"]).expect(0).json();
    assert_eq!((&replayed["verdict"], &replayed["acknowledged"]), (&json!("unchanged"), &json!(true)));
    assert_eq!(server.coins(&user), 60);
    let callbacks = server.get("/admin/payments/callbacks").token(&key).query(&[("orderNo", &order_no)]);
    assert_eq!(callbacks.send().expect(200).json()["total"], 3);
    server.post("/admin/payments/callbacks/99/replay").token(&key).send().expect_problem(404, "not_found");
}

#[test]
fn limits_the_number_of_stored_unsigned_callbacks() {
    let server = Setup::default().with("PAYMENT_REFUSED_CALLBACKS", 5).start();
    for number in 0..20 {
        assert_eq!(server.notify(&format!("out_trade_no={number}")), "fail");
    }
    let stored: i64 =
        server.database().query_row("select count(*) from payment_callbacks", (), |row| row.get(0)).unwrap();
    assert_eq!(stored, 5);
}

#[test]
fn operators_list_orders_and_query_the_provider() {
    let server = Setup::default().start();
    let (user, key) = (server.sign_in(OWN), server.api_key("shop"));
    let order_no = order(&server, &user);
    let get = |path: &str| server.get(path).token(&key).send();
    let path = format!("/admin/payments/{order_no}");
    assert_eq!(get("/admin/payments?state=created").expect(200).json()["items"][0]["orderNo"], order_no);
    assert_eq!(get("/admin/payments?state=review").expect(200).json()["total"], 0);
    // The interface calls it `status`.
    let found = get("/admin/payments?status=created").expect(200).json();
    assert_eq!((&found["total"], &found["items"][0]["status"]), (&json!(1), &json!("created")));
    assert_eq!(get("/admin/payments?status=credited").expect(200).json()["total"], 0);
    assert_eq!(get("/admin/payments?status=created&state=created").expect(200).json()["total"], 1);
    get("/admin/payments?status=created&state=review").expect_problem(400, "conflicting_parameter");
    get("/admin/payments?status=paying").expect_fields(&[("status", "unknown_value")]);
    assert_eq!(server.command(&["payments", "list"]).expect(0).json()["items"][0]["status"], "created");
    let requested = server.post(&format!("{path}/query")).token(&key).send().expect(200).json();
    assert_eq!((&requested["trade"], &requested["verdict"]), (&Value::Null, &json!("unchanged")));
    server.post(&format!("{path}/sandbox-pay")).token(&key).form(&[("lost", "true")]).send().expect(200);
    let requested = server.post(&format!("{path}/query")).token(&key).send().expect(200).json();
    assert_eq!((&requested["trade"]["status"], &requested["verdict"]), (&json!("TRADE_SUCCESS"), &json!("credited")));
    let file = get(&path).expect(200).json();
    assert_eq!((&file["balance"], &file["entries"][0]["kind"]), (&json!(60), &json!("topup")));
    let report = get("/admin/payments/report?startTime=2020-01-01&endTime=2100-01-01").expect(200).json();
    assert_eq!((&report["total"]["credited"], &report["differences"]), (&json!(1), &json!([])));
    get("/admin/payments/report").expect_fields(&[("startTime", "required"), ("endTime", "required")]);
    get("/admin/payments/report?startTime=2026-02-01&endTime=2026-01-01").expect_fields(&[("endTime", "out_of_range")]);
    server.get(&path).by(&user).send().expect_problem(403, "forbidden");
}

#[test]
fn purged_orders_are_not_reported_missing() {
    let server = Setup::default().with("RETENTION_PAYMENT_RECORDS", "2 s").start();
    let user = server.sign_in(OWN);
    let (settled, unknown) = (paid_order(&server, &user), paid_order(&server, &user));
    server.edit(&format!(
        "insert into payment_refunds (refund_no, order_no, amount_fen, state, reason, actor, asked_at, created_at) \
         values ('R1', '{unknown}', 100, 'requested', 'test', 'cli', unixepoch() * 1000, 1)"
    ));
    let clear = ["cleanup", "payment-records", "--yes"];
    let retention = [("YARROW_RETENTION_PAYMENT_RECORDS", "2 s")];
    eventually("an order is old enough", || {
        server.command_with(&retention, &clear).expect(0).json()["deleted"]["payment_orders"] == 1
    });
    assert_ne!(settled, unknown);
    assert_eq!(server.value::<String>("select group_concat(order_no) from payment_orders"), unknown);
    report(&server, 0);
}

#[test]
fn only_owners_see_the_reason_of_a_decision_about_an_order() {
    let server = Setup::default().start();
    let (user, owner) = (server.sign_in(OWN), server.api_key("owner"));
    let created = server.command(&["admin", "key", "create", "help", "--role", "support"]).expect(0).json();
    let support = created["key"].as_str().unwrap();
    let order_no = paid_order(&server, &user);
    let seen_by = |key: &str| {
        let get = |path: &str| server.get(path).token(key).send().expect(200).json();
        let listed = get("/admin/payments")["items"][0]["reason"].clone();
        assert_eq!(get(&format!("/admin/payments/{order_no}"))["order"]["reason"], listed);
        listed
    };
    server.edit("update payment_orders set state = 'review', reason = 'second_trade'");
    assert_eq!([seen_by(support), seen_by(&owner)], ["second_trade", "second_trade"]);
    let reason = "settled by a lawyer";
    server.command(&["payments", "settle", &order_no, "write-off", "--reason", reason, "--yes"]).expect(0);
    assert_eq!((seen_by(support), seen_by(&owner)), (Value::Null, json!(reason)));
    let asked = server.post(&format!("/admin/payments/{order_no}/query")).token(support).send();
    assert!(!asked.text().contains(reason), "{}", asked.text());
}

#[test]
fn does_not_purge_an_order_with_recent_activity() {
    let server = Setup::default().start();
    let user = server.sign_in(OWN);
    let [credited, heard, refunded, settled] = [(); 4].map(|()| paid_order(&server, &user));
    server.command(&["payments", "refund", &refunded, "--amount", "1.00", "--reason", "test", "--yes"]).expect(0);
    server.edit(&format!("update payment_orders set state = 'review', reason = 'test' where order_no = '{settled}'"));
    server.command(&["payments", "settle", &settled, "write-off", "--reason", "test", "--yes"]).expect(0);
    server.edit(&format!(
        "update payment_orders set created_at = 1; \
         update payment_orders set credited_at = 1 where order_no <> '{credited}'; \
         update payment_orders set refunded_at = 1 where order_no = '{refunded}'; \
         update payment_callbacks set received_at = 1 where order_no <> '{heard}'"
    ));
    server.command(&["cleanup", "payment-records", "--yes"]).expect(0);
    assert_eq!(server.value::<i64>("select count(*) from payment_orders"), 4);
    let later = "select count(*) from settings where name = 'payments.purged_until'";
    assert_eq!(server.value::<i64>(later), 0);
    // Old ones are purged too.
    server.edit(
        "update payment_orders set credited_at = 1, settled_at = 1; update payment_callbacks set received_at = 1; \
         update payment_refunds set created_at = 1, finished_at = 1",
    );
    server.command(&["cleanup", "payment-records", "--yes"]).expect(0);
    assert_eq!(server.value::<i64>("select count(*) from payment_orders"), 0);
    assert_eq!(server.value::<String>("select value from settings where name = 'payments.purged_until'"), "1");
}

#[test]
fn reports_coins_without_an_order() {
    let server = Setup::default().start();
    let user = server.sign_in(OWN);
    let order_no = paid_order(&server, &user);
    assert_eq!(report(&server, 0)["differences"], json!([]));
    // An attacker with write access who invents an order, uses another's or names none.
    let forge = |user_id: &str, reference: Option<&str>| {
        let database = server.database();
        let sql = "insert into ledger_entries (user_id, asset, sequence, delta, balance_after, kind, ref, created_at) \
                   select ?1, 'coin', coalesce(max(sequence), 0) + 1, 7, coalesce(sum(delta), 0) + 7, 'topup', ?2, \
                   unixepoch() * 1000 from ledger_entries where user_id = ?1 and asset = 'coin'";
        database.execute(sql, (user_id, reference)).unwrap();
    };
    forge(&user.user_id, Some("order:invented"));
    forge(&user.user_id, None);
    let other = server.sign_in("13900139000");
    server.database().execute("update payment_orders set order_no = order_no || 'x'", ()).unwrap();
    forge(&other.user_id, Some(&format!("order:{order_no}x")));
    let found = report(&server, 5);
    let mut orphans: Vec<_> = found["differences"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|difference| difference["code"] == "order_missing")
        .map(|difference| {
            assert!(difference["state"].is_null() && difference["coinsExpected"] == 0, "{difference}");
            (difference["orderNo"].as_str().unwrap().to_owned(), difference["coinsFound"].as_i64().unwrap())
        })
        .collect();
    orphans.sort();
    let mut expected =
        vec![(String::new(), 7), ("invented".into(), 7), (order_no.clone(), 60), (format!("{order_no}x"), 7)];
    expected.sort();
    assert_eq!(orphans, expected);
    // Entries of another period belong to another report.
    let arguments = ["payments", "report", "--from", "2020-01-01", "--to", "2020-02-01"];
    assert_eq!(server.command(&arguments).expect(0).json()["differences"], json!([]));
}

#[test]
fn audits_a_refund_command_before_its_outcome() {
    let server = Setup::default().start();
    let user = server.sign_in(OWN);
    let order_no = paid_order(&server, &user);
    server.command(&["payments", "refund", &order_no, "--amount", "7.00", "--reason", "too much", "--yes"]).expect(1);
    let started_at = "select actor || ' ' || action || ' ' || reason || ' ' || outcome || ' ' || user_id from audit \
                 where action = 'yarrow payments refund'";
    assert_eq!(server.value::<String>(started_at), format!("cli yarrow payments refund too much 202 {}", user.user_id));
}
