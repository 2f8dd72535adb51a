//! `/payment`: orders, callbacks of the provider and payment reports of users.

use std::sync::Barrier;

use serde_json::{Value, json};

use crate::support::{
    Caller, CommandOutput, Server, Setup,
    alipay::{PUBLISHED_ORDER, callback_form, published},
    eventually,
    fake_provider::{FakeProvider, Reply},
};

const OWN: &str = "13800138000";
const OTHER: &str = "13900139000";

fn order(server: &Server, user: &Caller, amount: &str, coins: u32) -> Value {
    let package = [("userId", user.user_id.as_str()), ("amount", amount), ("coinCount", &coins.to_string())];
    server.get("/payment/gateway/order").by(user).query(&package).send().expect(200).json()
}

#[test]
fn returns_the_same_open_order_and_sells_only_packages() {
    let server = Setup::default().start();
    let (user, other) = (server.sign_in(OWN), server.sign_in(OTHER));
    let first = order(&server, &user, "6.00", 60);
    assert_eq!(
        (&first["status"], &first["amount"], &first["coinCount"]),
        (&json!("created"), &json!("6.00"), &json!(60))
    );
    assert!(first["orderString"].as_str().unwrap().contains(first["orderNo"].as_str().unwrap()));
    let by_post = server.post("/payment/gateway/order").by(&user).json(&json!({ "amount": "6", "coinCount": 60 }));
    let again = by_post.send().expect(200);
    assert_eq!(again.header("cache-control"), Some("no-store"));
    assert_eq!(again.json()["orderNo"], first["orderNo"]);
    assert_ne!(order(&server, &user, "30.00", 330)["orderNo"], first["orderNo"]);
    assert_ne!(order(&server, &other, "6.00", 60)["orderNo"], first["orderNo"]);
    for (amount, coins) in [("6.00", "61"), ("0.01", "60"), ("330", "30")] {
        let request = server.get("/payment/gateway/order").by(&user).query(&[("amount", amount), ("coinCount", coins)]);
        request.send().expect_problem(422, "unknown_package");
    }
    for amount in ["6.000", "6.0000", "6.0", "6"] {
        let request = server.get("/payment/gateway/order").by(&user).query(&[("amount", amount), ("coinCount", "60")]);
        assert_eq!(request.send().expect(200).json()["amount"], "6.00", "{amount}");
    }
    for amount in ["-6", "6.001", "6.00é", "6.é", "6e0", "six"] {
        let request = server.get("/payment/gateway/order").by(&user).query(&[("amount", amount), ("coinCount", "60")]);
        request.send().expect_fields(&[("amount", "invalid_format")]);
    }
    let foreign = server.get("/payment/gateway/order").by(&user).query(&[("amount", "6"), ("coinCount", "60")]);
    foreign.query(&[("userId", &other.user_id)]).send().expect_problem(403, "not_yours");
}

#[test]
fn creating_an_order_and_returning_one_look_alike() {
    let server = Setup::default().start();
    let (user, other) = (server.sign_in(OWN), server.sign_in(OTHER));
    let package = [("amount", "6.00"), ("coinCount", "60")];
    let post = |user: &Caller| server.post("/payment/gateway/order").by(user).form(&package).send();
    let get = |user: &Caller| server.get("/payment/gateway/order").by(user).query(&package).send().expect(200).json();
    let created = post(&user).expect(200);
    assert_eq!(created.header("cache-control"), Some("no-store"));
    let number = created.json()["orderNo"].clone();
    assert_eq!(post(&user).expect(200).json()["orderNo"], number);
    assert_eq!(get(&user)["orderNo"], number);
    let number = get(&other)["orderNo"].clone();
    assert_eq!(post(&other).expect(200).json()["orderNo"], number);
}

#[test]
fn returns_an_open_order_for_a_quarter_of_an_hour() {
    let server = Setup::default().start();
    let user = server.sign_in(OWN);
    let order_no = || order(&server, &user, "6.00", 60)["orderNo"].clone();
    let age_sends = |minutes: u32| {
        let time = minutes * 60_000;
        server.edit(&format!(
            "update payment_orders set created_at = created_at - {time}, expires_at = expires_at - {time}, \
             next_check_at = next_check_at - {time}"
        ));
    };
    let first = order_no();
    age_sends(14);
    assert_eq!(order_no(), first);
    age_sends(1);
    let second = order_no();
    assert_ne!(second, first);
    assert_eq!(order_no(), second);
}

#[test]
fn sells_the_configured_packages() {
    let server = Setup::default().with("PAYMENT_PACKAGES", "0.10=1, 5.5=80").start();
    let user = server.sign_in(OWN);
    assert_eq!(order(&server, &user, "0.1", 1)["amount"], "0.10");
    assert_eq!(order(&server, &user, "5.50", 80)["amount"], "5.50");
    let package = json!({ "amount": "6.00", "coinCount": 60 });
    server.post("/payment/gateway/order").by(&user).json(&package).send().expect_problem(422, "unknown_package");
}

#[test]
fn callbacks_go_to_the_public_url() {
    let server = Setup::default()
        .with_published_keys()
        .with("PAYMENT_NOTIFY_URL", "")
        .with("SERVER_PUBLIC_URL", "https://app.example.com")
        .start();
    let order = order(&server, &server.sign_in(OWN), "6.00", 60);
    let reported = order["orderString"].as_str().unwrap();
    assert!(reported.contains("notify_url=https%3A%2F%2Fapp.example.com%2Fpayment%2Fnotify&"), "{reported}");
}

#[test]
fn the_sandbox_is_off_with_a_real_gateway() {
    let listener = FakeProvider::with_handler(|_| Reply::status(200).body("fail"));
    let server = Setup::default().in_own_process().start();
    let user = server.sign_in(OWN);
    let [of_sandbox, unpaid] = [("6.00", 60), ("30.00", 330)]
        .map(|(amount, coins)| order(&server, &user, amount, coins)["orderNo"].as_str().unwrap().to_owned());
    let pay = ["payments", "sandbox-pay", &of_sandbox, "--deliver-to", &listener.url()];
    assert_eq!(server.command(&pay).expect(0).json()["answer"], "fail");
    let report = String::from_utf8(listener.only_request().body).unwrap();

    let real = Setup::default().with_published_keys();
    let directory = server.directory().to_owned();
    let server = server.crash_and_restart(real.clone());
    assert_eq!(server.notify(&report), "fail");
    let key = server.api_key("shop");
    let rehearse = server.post(&format!("/admin/payments/{unpaid}/sandbox-pay")).token(&key).send();
    rehearse.expect_problem(409, "order_state");
    let rehearsed =
        CommandOutput::run_with(&directory, &real.variables(), &["payments", "sandbox-pay", &unpaid], "").expect(1);
    assert_eq!(rehearsed.problem()["code"], "order_state");
    assert_eq!(server.coins(&user), 0);
    for order_no in [&of_sandbox, &unpaid] {
        assert_eq!(server.order_state(order_no).0, "created");
    }
}

#[test]
fn every_published_callback_has_the_expected_effect() {
    let published = published();
    for (name, message) in published["alipay"]["notify"].as_object().unwrap() {
        let server = Setup::default().with_published_keys().start();
        let user = server.sign_in(OWN);
        server.insert_published_order(&user);
        let form = message["form_body"].as_str().unwrap();
        // The second copy must change nothing and get the same response.
        let responses = [server.notify(form), server.notify(form)];
        let (state, refunded) = server.order_state(PUBLISHED_ORDER);
        let found = (responses[0].as_str(), state.as_str(), refunded > 0, server.coins(&user));
        let expected = match message["expect"].as_str().unwrap() {
            // A different amount arrived: it goes to review and is not acknowledged as success.
            _ if name == "amount_mismatch_signed" => ("fail", "review", false, 0),
            "credit_once_answer_success" => ("success", "credited", false, 60),
            "reject_answer_fail" => ("fail", "created", false, 0),
            "no_credit_answer_success" => ("success", "created", false, 0),
            "close_order_answer_success" => ("success", "closed", false, 0),
            "record_refund_no_credit_answer_success" => ("success", state.as_str(), true, 0),
            other => panic!("{other}"),
        };
        assert_eq!(found, expected, "{name}");
        assert_eq!(responses[0], responses[1], "{name}");
        let stored: i64 = server
            .database()
            .query_row("select count(*) from payment_callbacks where form = ?1", [form.as_bytes()], |row| row.get(0))
            .unwrap();
        assert_eq!(stored, 2, "{name}");
    }
}

#[test]
fn a_callback_with_one_changed_field_never_credits() {
    let server = Setup::default().with_published_keys().start();
    let user = server.sign_in(OWN);
    server.insert_published_order(&user);
    let form = callback_form("valid_trade_success");
    let fields: Vec<_> = form.split('&').collect();
    for (index, field) in fields.iter().enumerate() {
        let mut changed = fields.clone();
        let other = match field.strip_suffix('1') {
            Some(rest) => format!("{rest}2"),
            None => format!("{field}1"),
        };
        changed[index] = &other;
        assert_eq!(server.notify(&changed.join("&")), "fail", "{field}");
        let without = fields.iter().enumerate().filter(|(other, _)| *other != index).map(|(_, field)| *field);
        assert_eq!(server.notify(&without.collect::<Vec<_>>().join("&")), "fail", "{field}");
    }
    assert_eq!((server.order_state(PUBLISHED_ORDER).0.as_str(), server.coins(&user)), ("created", 0));
    assert_eq!(server.notify(&form), "success");
    assert_eq!(server.coins(&user), 60);
}

#[test]
fn fifty_concurrent_copies_credit_once_and_are_all_acknowledged() {
    let server = Setup::default().with_published_keys().start();
    let user = server.sign_in(OWN);
    server.insert_published_order(&user);
    let form = callback_form("valid_trade_success");
    let barrier = Barrier::new(50);
    std::thread::scope(|scope| {
        let copies: Vec<_> = (0..50)
            .map(|_| {
                scope.spawn(|| {
                    barrier.wait();
                    server.notify(&form)
                })
            })
            .collect();
        for copy in copies {
            assert_eq!(copy.join().unwrap(), "success");
        }
    });
    assert_eq!(server.coins(&user), 60);
}

#[test]
fn acknowledges_the_repetition_of_a_callback_interrupted_by_a_crash() {
    let form = callback_form("trade_finished");
    let setup = Setup::default().with_published_keys();
    let server = setup.clone().in_own_process().start();
    let user = server.sign_in(OWN);
    server.insert_published_order(&user);
    let request = server.post("/payment/notify").bytes(Some("application/x-www-form-urlencoded"), form.clone().into());
    let sender = std::thread::spawn(move || drop(request.try_send()));
    eventually("the order is credited", || server.order_state(PUBLISHED_ORDER).0 == "credited");
    let directory = server.kill();
    sender.join().unwrap();
    let server = setup.on(&directory).in_own_process().start();
    assert_eq!(server.notify(&form), "success");
    assert_eq!(server.coins(&user), 60);
    drop(server);
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_callback_not_stored_within_two_seconds_fails_but_is_credited_once() {
    let server = Setup::default().with_published_keys().start();
    let user = server.sign_in(OWN);
    server.insert_published_order(&user);
    let form = callback_form("valid_trade_success");
    let other = server.database();
    other.execute_batch("begin immediate").unwrap();
    assert_eq!(server.notify(&form), "fail");
    other.execute_batch("rollback").unwrap();
    // A write times out after five seconds, so the response came before.
    eventually("the order is credited", || server.order_state(PUBLISHED_ORDER).0 == "credited");
    assert_eq!(server.coins(&user), 60);
    assert_eq!(server.notify(&form), "success");
    assert_eq!(server.coins(&user), 60);
}

#[test]
fn responds_to_every_callback_with_one_word() {
    let server = Setup::default().start();
    let long = "a".repeat(17 * 1024);
    for body in ["", "a=b", "&&&", "%ff=%ff", "{\"a\":1}", long.as_str()] {
        assert_eq!(server.notify(body), "fail");
    }
    let request = server.post("/payment/notify").token("not-a-token").json(&json!({}));
    assert_eq!(request.send().expect(200).text(), "fail");
}

#[test]
fn compares_payment_reports_of_users_and_never_trusts_them() {
    let server = Setup::default().with("PAYMENT_ASK_AGAIN_AFTER", "0 s").start();
    let (user, other) = (server.sign_in(OWN), server.sign_in(OTHER));
    let order = order(&server, &user, "6.00", 60);
    let order_no = order["orderNo"].as_str().unwrap();
    let claim = |caller: &Caller, pairs: &[(&str, &str)]| {
        let request =
            server.post("/payment/update-balance").by(caller).query(&[("orderNo", order_no), ("status", "success")]);
        request.form(pairs).send()
    };
    let told = |trade_no: Value, status: &str, balance: i64| {
        let user_id = &user.user_id;
        json!({ "orderNo": order_no, "tradeNo": trade_no, "userId": user_id, "coinCount": 60, "status": status, "balance": balance })
    };
    let unpaid = told(Value::Null, "pending", 0);
    let claimed = [("tradeNo", "T1"), ("amount", "6.000"), ("coinCount", "60")];
    assert_eq!(claim(&user, &claimed).expect(202).json(), unpaid);
    claim(&user, &[("amount", "30.00"), ("coinCount", "330")])
        .expect_fields(&[("amount", "unknown_value"), ("coinCount", "unknown_value")]);
    claim(&other, &[]).expect_problem(404, "not_found");
    server.command(&["payments", "sandbox-pay", order_no, "--lost"]).expect(0);
    let paid = claim(&user, &[]).expect(200).json();
    assert!(paid["tradeNo"].is_string(), "{paid}");
    assert_eq!(paid, told(paid["tradeNo"].clone(), "credited", 60));
    assert_eq!(claim(&user, &[("tradeNo", "made_up")]).expect(200).json(), paid);
    assert_eq!(server.coins(&other), 0);
}

#[test]
fn a_failing_provider_query_leaves_the_order_open() {
    let server = Setup::default().with_published_keys().start();
    let user = server.sign_in(OWN);
    server.insert_published_order(&user);
    let response = server.post("/payment/update-balance").by(&user).form(&[("orderNo", PUBLISHED_ORDER)]).send();
    let told = response.expect(202).json();
    let pending = (&json!(PUBLISHED_ORDER), &json!("pending"), &json!(0));
    assert_eq!((&told["orderNo"], &told["status"], &told["balance"]), pending);
}

#[test]
fn a_genuine_callback_for_another_channel_credits_nothing() {
    let server = Setup::default().with_published_keys().start();
    let user = server.sign_in(OWN);
    server.insert_published_order(&user);
    server.edit("update payment_orders set channel = 'sandbox'");
    assert_eq!(server.notify(&callback_form("valid_trade_success")), "fail");
    assert_eq!((server.coins(&user), server.order_state(PUBLISHED_ORDER)), (0, ("created".into(), 0)));
    assert_eq!(server.value::<String>("select reason from payment_callbacks"), "wrong_channel");
    server.command(&["ledger", "verify"]).expect(0);
}

#[test]
fn does_not_return_an_order_dated_in_the_future() {
    let server = Setup::default().start();
    let user = server.sign_in(OWN);
    let first = order(&server, &user, "6.00", 60);
    server.edit("update payment_orders set created_at = created_at + 365 * 86400000");
    let second = order(&server, &user, "6.00", 60);
    assert_ne!(second["orderNo"], first["orderNo"]);
    assert_eq!(order(&server, &user, "6.00", 60)["orderNo"], second["orderNo"]);
}
