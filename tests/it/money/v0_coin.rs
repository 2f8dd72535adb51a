//! `/coin`: balances, prices and access rights.

use serde_json::json;

use crate::support::{Caller, Server, Setup, send_concurrently};

const OWN: &str = "13800138000";
const OTHER: &str = "13900139000";

fn balance(server: &Server, user: &Caller) -> i64 {
    server.get("/coin/balance").by(user).send().expect(200).json()["balance"].as_i64().unwrap()
}

#[test]
fn finds_a_balance_by_id_and_by_phone() {
    let server = Setup::default().start();
    let user = server.sign_in(OWN);
    let key = server.api_key("shop");
    let expected = json!({ "userId": user.user_id, "phoneNumber": OWN, "balance": 0 });
    assert_eq!(server.get("/coin/balance").by(&user).send().expect(200).json(), expected);
    server.grant(&key, OWN, 60);
    let expected = json!({ "userId": user.user_id, "phoneNumber": OWN, "balance": 60 });
    let by_id = server.get("/coin/balance").query(&[("userId", &user.user_id)]);
    let by_phone = server.get("/coin/balance/phone").query(&[("phoneNumber", "+86 138 0013 8000")]);
    for request in [by_id, by_phone] {
        assert_eq!(request.clone().by(&user).send().expect(200).json(), expected);
        assert_eq!(request.token(&key).send().expect(200).json(), expected);
    }
}

#[test]
fn everyone_has_exactly_the_documented_access() {
    let server = Setup::default().start();
    let own = server.sign_in(OWN);
    let other = server.sign_in(OTHER);
    let admin = server.admin("root", "correct horse battery staple");
    let key = server.api_key("shop");
    server.grant(&key, OWN, 1_000);
    // Anonymous, owner, another user, administrator, API key.
    let rows = [
        ("GET", "/coin/balance", [401, 200, 403, 200, 200]),
        ("GET", "/coin/balance/phone", [401, 200, 403, 200, 200]),
        ("POST", "/coin/consume", [401, 200, 403, 403, 403]),
        ("POST", "/coin/consume/phone", [401, 200, 403, 403, 403]),
        ("POST", "/coin/increase/phone", [401, 403, 403, 200, 200]),
        ("POST", "/coin/sync", [401, 403, 403, 200, 200]),
        ("POST", "/coin/reset", [401, 200, 403, 428, 428]),
        ("POST", "/coin/reset/phone", [401, 200, 403, 428, 428]),
    ];
    for (method, path, expected) in rows {
        let who = if path.ends_with("/phone") { ("phoneNumber", OWN) } else { ("userId", own.user_id.as_str()) };
        let request = server.request(method, path).query(&[who, ("coinCount", "1"), ("reason", "test")]);
        let calls = [
            request.clone(),
            request.clone().by(&own),
            request.clone().by(&other),
            request.clone().token(&admin),
            request.clone().token(&key),
        ];
        let statuses = calls.map(|call| call.send().status);
        assert_eq!(statuses, expected, "{method} {path}");
        request.token("nonsense").send().expect_problem(401, "unauthenticated");
    }
    let foreign = server.get("/coin/balance").query(&[("userId", "999999")]);
    foreign.clone().by(&own).send().expect_problem(403, "not_yours");
    foreign.token(&key).send().expect_problem(404, "not_found");
    let unknown = server.post("/coin/increase/phone").json(&json!({ "phoneNumber": "13700137000", "coinCount": 1 }));
    unknown.clone().token(&key).send().expect_problem(404, "not_found");
    unknown.by(&own).send().expect_problem(403, "forbidden");
}

#[test]
fn an_administrator_must_identify_one_user() {
    let server = Setup::default().start();
    let own = server.sign_in(OWN);
    let other = server.sign_in(OTHER);
    let key = server.api_key("shop");
    server.get("/coin/balance").token(&key).send().expect_fields(&[("userId", "required")]);
    let both = [("userId", other.user_id.as_str()), ("phoneNumber", OWN)];
    server.get("/coin/balance").query(&both).token(&key).send().expect_fields(&[("phoneNumber", "unknown_value")]);
    let both = [("userId", own.user_id.as_str()), ("phoneNumber", OWN)];
    server.get("/coin/balance").query(&both).token(&key).send().expect(200);
}

#[test]
fn the_server_sets_the_price() {
    let server = Setup::default().with("COINS_CONSUME", 3).with("COINS_INITIAL", 7).start();
    let user = server.sign_in(OWN);
    assert_eq!(balance(&server, &user), 7);
    let named = json!({ "coinCount": 0, "price": 0, "amount": -5, "consumed": 1, "balance": 1000 });
    let consumed = server.post("/coin/consume").by(&user).json(&named).send().expect(200).json();
    let expected = json!({ "userId": user.user_id, "phoneNumber": OWN, "consumed": 3, "balance": 4 });
    assert_eq!(consumed, expected);
    server.post("/coin/consume/phone").by(&user).form(&[("phoneNumber", OWN)]).send().expect(200);
    server.post("/coin/consume").by(&user).send().expect_problem(402, "insufficient_coins");
    assert_eq!(balance(&server, &user), 1);
}

#[test]
fn parallel_uses_spend_no_more_than_the_balance() {
    let server = Setup::default().start();
    let user = server.sign_in(OWN);
    server.grant(&server.api_key("shop"), OWN, 10);
    let statuses: Vec<_> = std::thread::scope(|scope| {
        let calls: Vec<_> = (0..8)
            .map(|_| {
                let consume = || server.post("/coin/consume").by(&user).send().status;
                scope.spawn(move || (0..25).map(|_| consume()).collect::<Vec<_>>())
            })
            .collect();
        calls.into_iter().flat_map(|call| call.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 10);
    assert_eq!(statuses.iter().filter(|status| **status == 402).count(), 190);
    assert_eq!(balance(&server, &user), 0);
    server.command(&["ledger", "verify"]).expect(0);
}

#[test]
fn adds_only_integers_in_range() {
    let server = Setup::default().start();
    let user = server.sign_in(OWN);
    let key = server.api_key("shop");
    let increase = |count: &str| {
        let body = format!(r#"{{"phoneNumber":"{OWN}","coinCount":{count}}}"#);
        server.post("/coin/increase/phone").token(&key).raw_json(&body).send()
    };
    for count in ["0", "-5", "-0", "1000001", "\"-1\"", "99999999999999999999", "9e18", "1e999"] {
        increase(count).expect_fields(&[("coinCount", "out_of_range")]);
    }
    for count in ["1.5", "1.5e0", "1e-3", "\"NaN\"", "true", "[1]", "\"0x10\""] {
        increase(count).expect_fields(&[("coinCount", "invalid_type")]);
    }
    increase("null").expect_fields(&[("coinCount", "required")]);
    increase("NaN").expect_problem(400, "invalid_json");
    assert_eq!(balance(&server, &user), 0);
    assert_eq!(increase("\"10\"").expect(200).json()["balance"], 10);
    assert_eq!(increase("1000000").expect(200).json()["balance"], 1_000_010);
    // Some libraries write all numbers as floats.
    for (count, balance) in [("10.0", 1_000_020), ("\"10.00\"", 1_000_030), ("1.0E1", 1_000_040)] {
        assert_eq!(increase(count).expect(200).json()["balance"], balance, "{count}");
    }
}

#[test]
fn a_reset_needs_a_recent_sign_in() {
    let server = Setup::default().start();
    let user = server.sign_in(OWN);
    let key = server.api_key("shop");
    server.grant(&key, OWN, 5);
    let age = |minutes: i64| {
        let sql = "update tokens set signed_in_at = signed_in_at - ?1 * 60000";
        server.database().execute(sql, [minutes]).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(100));
    };
    age(11);
    server.post("/coin/reset").by(&user).send().expect_problem(403, "step_up_required");
    let renewed = server.post("/auth/refresh-token").by(&user).send().expect(200).json();
    let renewed = renewed["token"].as_str().unwrap();
    server.post("/coin/reset").token(renewed).send().expect_problem(403, "step_up_required");
    assert_eq!(balance(&server, &Caller { token: renewed.into(), ..user.clone() }), 5);

    server.database().execute("delete from code_sends", ()).unwrap();
    let fresh = server.sign_in(OWN);
    age(9);
    let expected = json!({ "userId": user.user_id, "phoneNumber": OWN, "balance": 0 });
    assert_eq!(server.post("/coin/reset").by(&fresh).send().expect(200).json(), expected);
    // Resetting an empty balance again creates no entry.
    assert_eq!(server.post("/coin/reset/phone").by(&fresh).send().expect(200).json(), expected);
    let shown = server.command(&["ledger", "show", OWN]).expect(0).json();
    assert_eq!(shown["total"], 2);
    assert_eq!(shown["items"][0]["kind"], "reset");
}

#[test]
fn an_administrator_resets_with_a_reason() {
    let server = Setup::default().start();
    let user = server.sign_in(OWN);
    let key = server.api_key("shop");
    server.grant(&key, OWN, 5);
    let who = [("userId", user.user_id.as_str())];
    server.post("/coin/reset").token(&key).form(&who).send().expect_fields(&[("reason", "required")]);
    let with_reason = [who[0], ("reason", "chargeback")];
    let requested = server.post("/coin/reset").token(&key).form(&with_reason).send();
    let requested = requested.expect_problem(428, "confirmation_required").json();
    assert_eq!((&requested["wouldDelete"], server.coins(&user)), (&json!({ "coins": 5 }), 5));
    let token = requested["confirm"].as_str().unwrap();
    // The confirmation covers only this user's balance.
    let other = server.sign_in(OTHER);
    let of_other = [("userId", other.user_id.as_str()), with_reason[1], ("confirm", token)];
    server.post("/coin/reset").token(&key).form(&of_other).send().expect_problem(428, "confirmation_required");
    // A different loss needs a new confirmation.
    server.command(&["coins", "grant", who[0].1, "1"]).expect(0);
    let reported = server.post("/coin/reset").token(&key).form(&[who[0], with_reason[1], ("confirm", token)]).send();
    let reported = reported.expect_problem(428, "confirmation_required").json();
    let token = reported["confirm"].as_str().unwrap();
    let confirmed = [who[0], with_reason[1], ("confirm", token)];
    let reset = || server.post("/coin/reset").token(&key).form(&confirmed).header("idempotency-key", "reset-1").send();
    assert_eq!(reset().expect(200).json()["balance"], 0);
    assert_eq!(reset().expect(200).header("idempotency-replayed"), Some("true"));
    let database = server.database();
    let row: (String, String, i64, i64) = database
        .query_row(
            "select actor, reason, balance_before, balance_after from ledger_audit where action = 'reset'",
            (),
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)),
        )
        .unwrap();
    assert_eq!(row, ("key:shop".into(), "chargeback".into(), 6, 0));
}

#[test]
fn an_administrator_reset_keeps_coins_received_after_the_preview() {
    let server = Setup::default().start();
    let user = server.sign_in(OWN);
    let key = server.api_key("shop");
    for round in 1..=20 {
        server.grant(&key, OWN, round);
        let reset = server.post("/coin/reset/phone").token(&key);
        let pairs = [("phoneNumber", OWN), ("reason", "chargeback")];
        let requested = reset.clone().form(&pairs).send().expect_problem(428, "confirmation_required").json();
        let reported = requested["wouldDelete"]["coins"].as_i64().unwrap();
        let confirmed = [pairs[0], pairs[1], ("confirm", requested["confirm"].as_str().unwrap())];
        let increase = json!({ "phoneNumber": OWN, "coinCount": 1000 });
        let increase = server.post("/coin/increase/phone").token(&key).json(&increase);
        let responses = send_concurrently(vec![increase, reset.form(&confirmed)]);
        if responses[1].status == 200 {
            let newest = "select balance_before from ledger_audit where action = 'reset' order by id desc limit 1";
            assert_eq!(server.value::<i64>(newest), reported);
        } else {
            let anew = responses[1].json();
            assert_eq!((responses[1].status, &anew["wouldDelete"]["coins"]), (428, &json!(reported + 1000)));
        }
        server.command(&["coins", "reset", &user.user_id, "--reason", "the next round", "--yes"]).expect(0);
    }
}

#[test]
fn sync_creates_and_repairs_accounts() {
    let server = Setup::default().start();
    let user = server.sign_in(OWN);
    let other = server.sign_in(OTHER);
    let key = server.api_key("shop");
    server.grant(&key, OWN, 5);
    let database = server.database();
    database.execute("delete from balances where user_id = ?1", [&other.user_id]).unwrap();
    database.execute("update balances set balance = 500 where user_id = ?1", [&user.user_id]).unwrap();
    let done = server.post("/coin/sync").token(&key).send().expect(200).json();
    assert_eq!(done, json!({ "checked": 2, "created": 1, "repaired": 1, "issues": [] }));
    assert_eq!(balance(&server, &user), 5);
    let done = server.post("/coin/sync").token(&key).send().expect(200).json();
    assert_eq!(done, json!({ "checked": 2, "created": 0, "repaired": 0, "issues": [] }));
    let audited: (String, i64, i64) = database
        .query_row("select action, balance_before, balance_after from ledger_audit order by id desc", (), |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .unwrap();
    assert_eq!(audited, ("repair".into(), 500, 5));
}

#[test]
fn runs_one_sync_at_a_time() {
    let server = Setup::default().start();
    server.sign_in(OWN);
    let key = server.api_key("shop");
    let mark = |ago_ms: i64| {
        let sql = "insert into settings (name, value, updated_at) values ('coins.sync', ?1, 0) \
                   on conflict (name) do update set value = excluded.value";
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
        let at = i64::try_from(now).unwrap() - ago_ms;
        server.database().execute(sql, [format!("{at} somebody")]).unwrap();
    };
    mark(1_000);
    server.post("/coin/sync").token(&key).send().expect_problem(409, "already_running");
    server.command(&["coins", "repair"]).expect(1);
    // A killed run releases its lease after a while.
    mark(61_000);
    server.post("/coin/sync").token(&key).send().expect(200);
    server.post("/coin/sync").token(&key).send().expect(200);
}
