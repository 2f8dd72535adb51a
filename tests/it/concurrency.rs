//! A hundred concurrent callers: effects happen once, and counts are exact.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Value, json};

use crate::support::{
    Caller, Request, Response, Server, Setup, alipay, eventually, fake_apns::FakeApns, send_concurrently,
};

const CALLERS: usize = 100;
const PHONE: &str = "13800138000";

/// Sends the request from all callers and counts the statuses.
fn statuses(request: impl Fn(usize) -> Request) -> (BTreeMap<u16, usize>, Vec<Response>) {
    let responses = send_concurrently((0..CALLERS).map(request).collect());
    let mut counted = BTreeMap::new();
    for response in &responses {
        *counted.entry(response.status).or_default() += 1;
    }
    (counted, responses)
}

fn log_in(server: &Server, code: &str) -> Request {
    server.post("/auth/login").form(&[("phoneNumber", PHONE), ("code", code)])
}

fn assert_ledger_is_sound(server: &Server) {
    server.command(&["ledger", "verify"]).expect(0);
}

#[test]
fn concurrent_code_requests_send_one_code() {
    let server = Setup::default().start();
    let (counted, _) = statuses(|_| server.post("/auth/send-code").form(&[("phoneNumber", PHONE)]));
    // Requests without a free send permit are rejected before limits are checked.
    let refused = counted.get(&429).unwrap_or(&0) + counted.get(&503).unwrap_or(&0);
    assert_eq!((counted.get(&200), refused), (Some(&1), CALLERS - 1), "{counted:?}");
    server.expect_sent_codes(PHONE, 1);
    assert_eq!(server.value::<i64>("select count(*) from code_sends"), 1);
}

#[test]
fn concurrent_requests_respect_the_network_limit() {
    let setup = Setup::default().with("AUTH_SENDS_PER_CLIENT_HOUR", 7);
    let server = setup.start();
    let ask = |number: usize| server.post("/auth/send-code").form(&[("phoneNumber", &format!("138001380{number:02}"))]);
    let (counted, _) = statuses(ask);
    let refused = counted.get(&429).unwrap_or(&0) + counted.get(&503).unwrap_or(&0);
    assert_eq!((counted.get(&200), refused), (Some(&7), CALLERS - 7), "{counted:?}");
    // Requests over the limit are rejected without a permit.
    let (counted, _) = statuses(ask);
    assert_eq!(counted, BTreeMap::from([(429, CALLERS)]));
}

#[test]
fn a_code_signs_in_once() {
    let server = Setup::default().start();
    let code = server.request_code(PHONE);
    let (counted, _) = statuses(|_| log_in(&server, &code));
    assert_eq!(counted, BTreeMap::from([(200, 1), (401, CALLERS - 1)]));
    assert_eq!(server.value::<i64>("select count(*) from users"), 1);
    assert_eq!(server.value::<i64>("select count(*) from tokens"), 1);
    assert_ledger_is_sound(&server);
}

#[test]
fn concurrent_guesses_and_the_right_code_use_five_attempts() {
    let server = Setup::default().start();
    let code = server.request_code(PHONE);
    let wrong = if code.starts_with('1') { "200000" } else { "100000" };
    let (counted, _) = statuses(|number| log_in(&server, if number == CALLERS / 2 { &code } else { wrong }));
    let signed_in = counted.get(&200).copied().unwrap_or(0);
    assert!(signed_in <= 1, "{counted:?}");
    assert_eq!(counted.get(&401).copied().unwrap_or(0), CALLERS - signed_in);
    log_in(&server, &code).send().expect_problem(401, "invalid_code");
}

#[test]
fn concurrent_first_sign_ins_create_each_account_once() {
    let server = Setup::default().with("COINS_INITIAL", 3).start();
    let number = |caller: usize| format!("1380013{:04}", caller / 2);
    let codes: Vec<_> = (0..CALLERS / 2).map(|caller| server.request_code(&number(2 * caller))).collect();
    let (counted, _) = statuses(|caller| {
        server.post("/auth/login").form(&[("phoneNumber", &number(caller)), ("code", &codes[caller / 2])])
    });
    assert_eq!(counted, BTreeMap::from([(200, CALLERS / 2), (401, CALLERS / 2)]));
    assert_eq!(server.value::<i64>("select count(*) from users"), 50);
    assert_eq!(server.value::<i64>("select sum(balance) from balances where asset = 'coin'"), 150);
    assert_ledger_is_sound(&server);
}

#[test]
fn concurrent_refreshes_and_validations_issue_one_successor() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    server.edit("update tokens set expires_at = created_at + 86400000");
    let (counted, responses) = statuses(|number| {
        let path = if number % 2 == 0 { "/auth/refresh-token" } else { "/auth/validate-token" };
        server.post(path).form(&[("token", &user.token)])
    });
    assert_eq!(counted, BTreeMap::from([(200, CALLERS)]));
    let tokens: HashSet<_> = responses.iter().map(|response| response.json()["token"].to_string()).collect();
    assert!(tokens.len() <= 2, "{}", tokens.len());
    assert_eq!(server.value::<i64>("select count(*) from tokens where replaced_at is null"), 1);
    let successor = responses[0].json()["token"].as_str().unwrap().to_owned();
    server.get("/coin/balance").token(&successor).send().expect(200);
}

#[test]
fn sign_out_ends_a_token_in_use() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let (counted, _) = statuses(|number| match number {
        50 => server.post("/auth/logout").by(&user),
        _ => server.get("/coin/balance").by(&user),
    });
    assert!(counted.keys().all(|status| [200, 401].contains(status)), "{counted:?}");
    server.get("/coin/balance").by(&user).send().expect_problem(401, "unauthenticated");
}

#[test]
fn concurrent_reuse_of_an_old_token_revokes_all_tokens_of_the_device() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let refresh = |token: &str| server.post("/auth/refresh-token").form(&[("token", token)]);
    let successor = refresh(&user.token).send().expect(200).json()["token"].as_str().unwrap().to_owned();
    // The grace period is over.
    server.edit("update tokens set replaced_at = replaced_at - 3600000 where replaced_at is not null");
    let (counted, responses) = statuses(|number| match number % 4 {
        0 => refresh(&user.token),
        1 => server.get("/coin/balance").token(&user.token),
        2 => refresh(&successor),
        _ => server.get("/coin/balance").token(&successor),
    });
    assert!(counted.keys().all(|status| [200, 401].contains(status)), "{counted:?}");
    assert!(
        responses.iter().enumerate().all(|(number, response)| number % 4 > 1 || response.status == 401),
        "{counted:?}"
    );
    // Tokens issued meanwhile are revoked too.
    assert_eq!(server.value::<i64>("select count(*) from tokens"), 0);
    let renewed = responses.iter().filter(|response| response.status == 200).map(Response::json);
    let renewed = renewed.filter_map(|response| response["token"].as_str().map(ToOwned::to_owned));
    for token in renewed.chain([user.token.clone(), successor.clone()]) {
        server.get("/coin/balance").token(&token).send().expect_problem(401, "unauthenticated");
    }
}

#[test]
fn a_revoked_key_is_rejected_during_use() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let key = server.api_key("tests");
    let grant = || {
        let form = [("phoneNumber", PHONE), ("coinCount", "1")];
        server.post("/coin/increase/phone").token(&key).form(&form)
    };
    let granted = std::thread::scope(|scope| {
        let revoke = scope.spawn(|| server.command(&["admin", "key", "revoke", "tests", "--yes"]));
        let (counted, _) = statuses(|_| grant());
        assert!(counted.keys().all(|status| [200, 401].contains(status)), "{counted:?}");
        revoke.join().unwrap().expect(0);
        counted.get(&200).copied().unwrap_or(0)
    });
    let (counted, _) = statuses(|_| grant());
    assert_eq!(counted, BTreeMap::from([(401, CALLERS)]));
    assert_eq!(server.coins(&user), i64::try_from(granted).unwrap());
    assert_ledger_is_sound(&server);
}

#[test]
fn concurrent_uses_spend_no_more_than_the_balance() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    server.grant(&server.api_key("tests"), PHONE, 37);
    let (counted, responses) =
        statuses(|number| server.post(if number % 2 == 0 { "/coin/consume" } else { "/coin/consume/phone" }).by(&user));
    assert_eq!(counted, BTreeMap::from([(200, 37), (402, CALLERS - 37)]));
    let mut left: Vec<_> = responses
        .iter()
        .filter(|response| response.status == 200)
        .map(|response| response.json()["balance"].as_i64().unwrap())
        .collect();
    left.sort_unstable();
    assert_eq!(left, (0..37).collect::<Vec<_>>(), "a balance was returned twice");
    assert_ledger_is_sound(&server);
}

#[test]
fn one_idempotency_key_spends_once() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    server.grant(&server.api_key("tests"), PHONE, 5);
    let (counted, responses) = statuses(|_| server.post("/coin/consume").by(&user).header("idempotency-key", "once"));
    assert_eq!(counted, BTreeMap::from([(200, CALLERS)]));
    let bodies: HashSet<_> = responses.iter().map(Response::text).collect();
    assert_eq!(bodies.len(), 1);
    let first = responses.iter().filter(|response| response.header("idempotency-replayed").is_none()).count();
    assert_eq!((first, server.coins(&user)), (1, 4));
    assert_ledger_is_sound(&server);
}

#[test]
fn the_first_request_defines_its_idempotency_key() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let key = server.api_key("tests");
    let increase = |number: usize| {
        let coins = (1 + number % 4).to_string();
        let form = [("phoneNumber", PHONE), ("coinCount", coins.as_str())];
        server.post("/coin/increase/phone").token(&key).form(&form).header("idempotency-key", "once")
    };
    let (counted, responses) = statuses(increase);
    assert_eq!(counted, BTreeMap::from([(200, CALLERS / 4), (422, CALLERS - CALLERS / 4)]));
    let refused = responses.iter().filter(|response| response.status == 422);
    assert!(refused.clone().all(|response| response.json()["code"] == "idempotency_key_reused"));
    let winner = responses.iter().position(|response| response.status == 200).unwrap();
    assert_eq!(server.coins(&user), i64::try_from(1 + winner % 4).unwrap());
    assert_eq!(server.value::<i64>("select count(*) from ledger_entries where kind = 'adjust'"), 1);
    assert_ledger_is_sound(&server);
}

#[test]
fn concurrent_uses_increases_and_resets_keep_the_ledger_sound() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let key = server.api_key("tests");
    server.grant(&key, PHONE, 20);
    let (counted, _) = statuses(|number| match number % 4 {
        0 => server.post("/coin/increase/phone").token(&key).form(&[("phoneNumber", PHONE), ("coinCount", "3")]),
        1 => server.post("/coin/reset").by(&user),
        _ => server.post("/coin/consume").by(&user),
    });
    assert_eq!(counted.keys().filter(|status| ![200, 402].contains(*status)).count(), 0, "{counted:?}");
    assert_eq!(server.value::<i64>("select count(*) from ledger_entries where delta = 3"), 25);
    assert_ledger_is_sound(&server);
}

#[test]
fn concurrent_saves_of_one_id_create_one_record() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let save = |number: usize| {
        let record = json!({ "localRecordId": "r-1", "question": format!("question {number}") });
        server.post("/divination-history/save").by(&user).json(&record)
    };
    let (counted, _) = statuses(save);
    assert_eq!(counted, BTreeMap::from([(200, CALLERS)]));
    assert_eq!(server.value::<i64>("select count(*) from history"), 1);
}

#[test]
fn concurrent_saves_respect_the_record_limit() {
    let server = Setup::default().with("LIMITS_HISTORY_RECORDS", 30).start();
    let user = server.sign_in(PHONE);
    let save = |number: usize| {
        server.post("/divination-history/save").by(&user).json(&json!({ "localRecordId": format!("r-{number}") }))
    };
    let (counted, _) = statuses(save);
    assert_eq!(counted, BTreeMap::from([(200, 30), (409, CALLERS - 30)]));
}

#[test]
fn concurrent_saves_and_deletions_keep_the_list_consistent() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let (counted, _) = statuses(|number| match number % 5 {
        0 => server.post("/divination-history/deactivate-all").by(&user),
        1 => {
            server.post("/divination-history/delete").by(&user).form(&[("localRecordId", &format!("r-{}", number % 7))])
        }
        _ => server
            .post("/divination-history/save")
            .by(&user)
            .json(&json!({ "localRecordId": format!("r-{}", number % 7) })),
    });
    // The repetition of `deactivate-all` is limited.
    assert_eq!(counted.keys().filter(|status| ![200, 429].contains(*status)).count(), 0, "{counted:?}");
    let listed = server.post("/divination-history/get").by(&user).send().expect(200).json();
    let live = "select count(*) from history where sequence > (select coalesce(max(through), 0) from history_hidings)";
    assert_eq!(listed["total"], server.value::<i64>(live));
}

#[test]
fn concurrent_requests_create_one_order() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let order = |_| server.get("/payment/gateway/order").by(&user).query(&[("amount", "6.00"), ("coinCount", "60")]);
    let (counted, responses) = statuses(order);
    assert_eq!(counted, BTreeMap::from([(200, CALLERS)]));
    let orders: HashSet<_> = responses.iter().map(|response| response.json()["orderNo"].to_string()).collect();
    assert_eq!(orders.len(), 1);
}

#[test]
fn a_notification_sent_a_hundred_times_credits_once() {
    let server = Setup::default().with_published_keys().start();
    let user = server.sign_in(PHONE);
    server.insert_published_order(&user);
    let form = alipay::callback_form("valid_trade_success");
    let content_type = Some("application/x-www-form-urlencoded; charset=utf-8");
    let notify = |_| server.post("/payment/notify").bytes(content_type, form.clone().into_bytes());
    let (counted, responses) = statuses(notify);
    assert_eq!(counted, BTreeMap::from([(200, CALLERS)]));
    assert!(responses.iter().all(|response| response.text() == "success"));
    assert_eq!(server.coins(&user), 60);
    assert_eq!(server.value::<i64>("select count(*) from ledger_entries where kind = 'topup'"), 1);
    assert_ledger_is_sound(&server);
}

#[test]
fn concurrent_settlement_and_refund_move_money_once() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let key = server.api_key("tests");
    let order = server.get("/payment/gateway/order").by(&user).query(&[("amount", "6.00"), ("coinCount", "60")]);
    let order_no = order.send().expect(200).json()["orderNo"].as_str().unwrap().to_owned();
    server.command(&["payments", "sandbox-pay", &order_no]).expect(0);
    let refund = |_| {
        let wish = json!({ "reason": "tests", "refundNo": "R1", "amount": "6.00" });
        server.post(&format!("/admin/payments/{order_no}/refund")).token(&key).json(&wish)
    };
    let (counted, _) = statuses(refund);
    assert!(counted.contains_key(&200), "{counted:?}");
    assert!(counted.keys().all(|status| [200, 409, 503].contains(status)), "{counted:?}");
    assert_eq!((server.coins(&user), server.order_state(&order_no)), (0, ("refunded".into(), 600)));
    assert_eq!(server.value::<i64>("select count(*) from ledger_entries where kind = 'refund'"), 1);
    assert_ledger_is_sound(&server);
}

#[test]
fn concurrent_profile_changes_do_not_mix() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    let change = |number: usize| {
        let name = json!({ "nickname": format!("name-{number}"), "signature": format!("sign-{number}") });
        server.put("/user/profile").by(&user).json(&name)
    };
    let (counted, _) = statuses(change);
    assert_eq!(counted, BTreeMap::from([(200, CALLERS)]));
    let profile: Value = server.get("/user/profile").by(&user).send().expect(200).json();
    let number = profile["nickname"].as_str().unwrap().strip_prefix("name-").unwrap().to_owned();
    assert_eq!(profile["signature"], format!("sign-{number}"), "two changes were mixed");
}

#[test]
fn limits_concurrent_administrator_guesses() {
    let server = Setup::default().start();
    server.admin("root", "correct horse battery staple");
    let guess = |_| server.post("/admin/login").json(&json!({ "name": "root", "password": "wrong password" }));
    let (counted, _) = statuses(guess);
    assert!(counted.get(&401).is_none_or(|refused| *refused <= 3), "{counted:?}");
    assert!(counted.keys().all(|status| [401, 429, 503].contains(status)), "{counted:?}");
}

#[test]
fn concurrent_castings_respect_the_balance() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    server.command(&["points", "adjust", PHONE, "305", "--reason", "tests"]).expect(0);
    let cast = json!({ "question": "何时启程？", "method": "yarrow_stalks" });
    let (counted, _) = statuses(|_| server.post("/api/v1/sessions").by(&user).json(&cast));
    assert_eq!(counted, BTreeMap::from([(201, 30), (402, CALLERS - 30)]));
    assert_eq!(server.value::<i64>("select count(*) from sessions"), 30);
    assert_eq!(server.value::<i64>("select count(*) from ledger_entries where kind = 'cast'"), 30);
    assert_ledger_is_sound(&server);
}

#[test]
fn an_invite_redeemed_by_a_hundred_respects_its_limit() {
    let server = Setup::default().start();
    let host = server.sign_in(PHONE);
    let code = server.get("/api/v1/invite").by(&host).send().expect(200).json()["code"].clone();
    let invitees: Vec<_> = (0..CALLERS).map(|invitee| server.sign_in(&format!("1390013{invitee:04}"))).collect();
    let redeem =
        |invitee: usize| server.post("/api/v1/invite/redeem").by(&invitees[invitee]).json(&json!({ "code": code }));
    let (counted, _) = statuses(redeem);
    assert_eq!(counted, BTreeMap::from([(200, CALLERS)]));
    // A second round rewards nobody again.
    let (counted, _) = statuses(redeem);
    assert_eq!(counted, BTreeMap::from([(409, CALLERS)]));
    assert_eq!(server.value::<i64>("select count(*) from ledger_entries where kind = 'invite_bonus'"), 50);
    assert_eq!(server.value::<i64>("select count(*) from ledger_entries where kind = 'invitee_bonus'"), 100);
    assert_ledger_is_sound(&server);
}

#[test]
fn a_hundred_concurrent_returns_restore_points_once() {
    const EMAIL: &str = "li.ming@example.com";
    let server = Setup::default().start();
    let user = server.sign_in_by_email(EMAIL);
    server.delete("/api/v1/account").by(&user).send().expect(204);
    server.edit("delete from code_sends");
    let code = server.request_email_code(EMAIL, "sign_in");
    let back = json!({ "email": EMAIL, "code": code });
    let (counted, responses) = statuses(|_| server.post("/api/v1/auth/login").json(&back));
    assert_eq!(counted, BTreeMap::from([(200, 1), (401, CALLERS - 1)]));
    let welcomed = responses.iter().find(|response| response.status == 200).unwrap().json();
    assert_eq!((&welcomed["pointsRestored"], &welcomed["pointsGranted"]), (&json!(100), &json!(0)));
    assert_eq!(server.value::<i64>("select count(*) from ledger_entries where kind = 'restored'"), 1);
    assert_eq!(server.value::<i64>("select count(*) from ledger_entries where kind = 'signup_bonus'"), 1);
    assert_ledger_is_sound(&server);
}

#[test]
fn concurrent_deletions_of_an_account_succeed_once() {
    const EMAIL: &str = "li.ming@example.com";
    let server = Setup::default().start();
    let user = server.sign_in_by_email(EMAIL);
    let (counted, _) = statuses(|_| server.delete("/api/v1/account").by(&user));
    assert_eq!(counted.get(&204), Some(&1), "{counted:?}");
    assert!(counted.keys().all(|status| [204, 401, 404].contains(status)), "{counted:?}");
    assert_eq!(server.value::<i64>("select count(*) from ledger_entries where kind = 'parked'"), 1);
    assert_eq!(server.value::<i64>("select sum(parked_points) from email_rewards"), 100);
    assert_ledger_is_sound(&server);
}

#[test]
fn an_account_deleted_during_use_leaves_nothing() {
    let server = Setup::default().start();
    for round in 0..3 {
        let phone_number = format!("1380013900{round}");
        let user = server.sign_in(&phone_number);
        server.grant(&server.api_key(&format!("tests-{round}")), &phone_number, 1_000);
        server.command(&["points", "adjust", &phone_number, "1000", "--reason", "tests"]).expect(0);
        let cast = json!({ "question": "何时启程？", "method": "three_coins" });
        let (counted, _) = statuses(|number| match number % 10 {
            0 if number == 50 => server.delete("/api/v1/account").by(&user),
            1 | 2 => server.post("/coin/consume").by(&user).header("idempotency-key", &format!("key-{number}")),
            3 | 4 => server.post("/api/v1/sessions").by(&user).json(&cast),
            5 => server.put("/user/nickname").by(&user).json(&json!({ "nickname": "青山" })),
            6 => server.patch("/api/v1/preferences").by(&user).json(&json!({ "promotion": number % 20 == 6 })),
            7 => server.post("/auth/refresh-token").json(&json!({ "token": user.token })),
            _ => {
                let record = json!({ "localRecordId": number.to_string(), "question": "何时启程？" });
                server.post("/divination-history/save").by(&user).json(&record)
            }
        });
        assert!(counted.keys().all(|status| [200, 201, 204, 401, 404].contains(status)), "{counted:?}");
        assert_eq!(counted.get(&204), Some(&1), "{counted:?}");
        server.get("/user/profile").by(&user).send().expect_problem(401, "unauthenticated");
        for table in [
            "users where id",
            "tokens where user_id",
            "history where user_id",
            "sessions where user_id",
            "preferences where user_id",
            "notification_marks where user_id",
        ] {
            let left: i64 = server.value(&format!("select count(*) from {table} = {}", user.user_id));
            assert_eq!(left, 0, "{table}");
        }
        let owner = format!("select count(*) from idempotency_keys where caller = 'user:{}'", user.user_id);
        assert_eq!(server.value::<i64>(&owner), 0);
    }
    assert_ledger_is_sound(&server);
}

fn register_app(server: &Server, user: &Caller, token: &str) -> Request {
    server.post("/api/v1/devices").by(user).json(&json!({ "service": "apns", "token": token }))
}

fn listed_apps(server: &Server, user: &Caller) -> Vec<Value> {
    let listed = server.get("/api/v1/devices").by(user).send().expect(200).json();
    listed["items"].as_array().unwrap().iter().map(|app| app["id"].clone()).collect()
}

#[test]
fn an_app_registered_by_two_users_at_once_has_one_owner() {
    let apns = FakeApns::start();
    let server = apns.configure(Setup::default()).start();
    let users = [server.sign_in(PHONE), server.sign_in("13800138001")];
    let token = "ab".repeat(32);
    let (counted, responses) = statuses(|caller| register_app(&server, &users[caller % 2], &token));
    assert_eq!(counted, BTreeMap::from([(200, CALLERS)]));
    let ids: HashSet<_> = responses.iter().map(|response| response.json()["id"].to_string()).collect();
    assert_eq!((ids.len(), server.value::<i64>("select count(*) from push_devices")), (1, 1));
    let owner = server.value::<i64>("select user_id from push_devices").to_string();
    let lists = users.each_ref().map(|user| listed_apps(&server, user).len());
    let owns = users.each_ref().map(|user| usize::from(user.user_id == owner));
    assert_eq!((lists, owns.iter().sum::<usize>()), (owns, 1));
    // Only the owner's notifications reach the phone.
    let key = server.api_key("tests");
    for user in &users {
        let id = &user.user_id;
        let body = json!({ "audience": "users", "userIds": [id], "title": id, "body": "x", "kind": "activity" });
        server.post("/admin/notifications").token(&key).json(&body).send().expect(201);
    }
    eventually("all pushes are sent", || server.value::<i64>("select count(*) from push_queue") == 0);
    let titles: Vec<_> = apns.pushes().iter().map(|push| push.body["aps"]["alert"]["title"].clone()).collect();
    assert_eq!(titles, [json!(owner)]);
}

#[test]
fn an_app_registered_during_its_removal_is_removed_once() {
    let apns = FakeApns::start();
    let server = apns.configure(Setup::default()).start();
    let user = server.sign_in(PHONE);
    for round in 0..3 {
        let token = format!("a{round}").repeat(32);
        let first = register_app(&server, &user, &token).send().expect(200).json()["id"].clone();
        let path = format!("/api/v1/devices/{}", first.as_str().unwrap());
        let (counted, responses) = statuses(|caller| match caller % 2 {
            0 => register_app(&server, &user, &token),
            _ => server.delete(&path).by(&user),
        });
        assert_eq!(counted, BTreeMap::from([(200, CALLERS / 2), (204, 1), (404, CALLERS / 2 - 1)]));
        // Registrations after the removal create the app anew, once.
        let registered = responses.iter().filter(|response| response.status == 200);
        let anew: HashSet<_> =
            registered.map(|response| response.json()["id"].clone()).filter(|id| *id != first).collect();
        assert!(anew.len() <= 1, "{anew:?}");
        assert_eq!(listed_apps(&server, &user), Vec::from_iter(anew));
        assert_eq!(
            server.value::<i64>("select count(*) from push_queue where device_id not in (select id from push_devices)"),
            0
        );
    }
}
