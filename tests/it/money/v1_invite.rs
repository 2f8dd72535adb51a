//! `/api/v1/invite`: codes, rewards and their limits.

use serde_json::{Value, json};

use crate::support::{Caller, Response, Server, Setup, send_concurrently};

fn phone(number: usize) -> String {
    format!("1380013{number:04}")
}

fn invite(server: &Server, user: &Caller) -> Value {
    server.get("/api/v1/invite").by(user).send().expect(200).json()
}

fn code(server: &Server, user: &Caller) -> String {
    invite(server, user)["code"].as_str().unwrap().to_owned()
}

fn redeem(server: &Server, user: &Caller, code: &str) -> Response {
    server.post("/api/v1/invite/redeem").by(user).json(&json!({ "code": code })).send()
}

fn points(server: &Server, user: &Caller) -> i64 {
    server.get("/api/v1/points").by(user).send().expect(200).json()["balance"].as_i64().unwrap()
}

/// Deletes the account with everything, as its deletion does.
fn remove(server: &Server, user: &Caller) {
    server.edit(&format!("pragma foreign_keys = on; delete from users where id = {}", user.user_id));
}

#[test]
fn a_code_rewards_both_users() {
    let server = Setup::default().start();
    let (host, invitee) = (server.sign_in(&phone(0)), server.sign_in(&phone(1)));
    let before = invite(&server, &host);
    let code = before["code"].as_str().unwrap();
    assert_eq!(code.len(), 8);
    assert!(!code.contains(['0', '1', 'I', 'L', 'O', 'U']), "{code}");
    assert_eq!((&before["invited"], &before["rewarded"], &before["rewardedLimit"]), (&json!(0), &json!(0), &json!(50)));
    assert_eq!((&before["inviteBonus"], &before["inviteeBonus"]), (&json!(20), &json!(20)));
    assert!(before["redeemedAt"].is_null() && before["redeemableUntil"].is_string());
    // As people type it.
    let written = format!(" {}-{} ", code[..4].to_lowercase(), &code[4..]);
    let redeemed = redeem(&server, &invitee, &written).expect(200).json();
    assert_eq!(redeemed, json!({ "pointsGranted": 20, "balance": 20 }));
    assert_eq!((points(&server, &host), points(&server, &invitee)), (20, 20));
    let after = invite(&server, &host);
    assert_eq!((&after["code"], &after["invited"], &after["rewarded"]), (&json!(code), &json!(1), &json!(1)));
    assert!(invite(&server, &invitee)["redeemedAt"].is_string());
    let kind = |user: &Caller| {
        let entry = server.get("/api/v1/points/ledger").by(user).send().expect(200).json()["items"][0].clone();
        // The reference is a with_key hash of the invited user's address.
        assert!(entry["ref"].is_null(), "{entry}");
        entry["kind"].clone()
    };
    assert_eq!((kind(&host), kind(&invitee)), (json!("invite_bonus"), json!("invitee_bonus")));
    server.command(&["ledger", "verify"]).expect(0);
}

#[test]
fn each_user_redeems_once_and_never_their_own_code() {
    let server = Setup::default().start();
    let users: Vec<_> = (0..3).map(|number| server.sign_in(&phone(number))).collect();
    let codes: Vec<_> = users.iter().map(|user| code(&server, user)).collect();
    redeem(&server, &users[0], &codes[0]).expect_problem(409, "own_invite");
    redeem(&server, &users[0], "22222222").expect_problem(404, "unknown_invite");
    for bad in ["2222222", "2222222O", "222222222"] {
        redeem(&server, &users[0], bad).expect_fields(&[("code", "invalid_format")]);
    }
    redeem(&server, &users[0], "").expect_fields(&[("code", "required")]);
    redeem(&server, &users[0], &codes[1]).expect(200);
    for code in [&codes[1], &codes[2]] {
        redeem(&server, &users[0], code).expect_problem(409, "already_invited");
    }
    // Two who invite each other bring nobody new.
    let mutual = redeem(&server, &users[1], &codes[0]).expect(200).json();
    assert_eq!(mutual, json!({ "pointsGranted": 0, "balance": 20 }));
    redeem(&server, &users[1], &codes[2]).expect_problem(409, "already_invited");
    assert_eq!(users.iter().map(|user| points(&server, user)).collect::<Vec<_>>(), [20, 20, 0]);
    assert_eq!(invite(&server, &users[0])["rewarded"], 0);
    server.command(&["ledger", "verify"]).expect(0);
}

#[test]
fn aliases_of_a_mailbox_share_bonus_and_invites() {
    let server = Setup::default().start();
    let first = server.sign_in_by_email("reed@example.com");
    let own = code(&server, &first);
    for alias in ["reed+1@example.com", "reed+two@example.com"] {
        let welcomed = server.log_in_by_email(alias);
        assert_eq!((&welcomed["isNewUser"], &welcomed["pointsGranted"]), (&json!(true), &json!(0)), "{alias}");
        let user = Caller {
            user_id: welcomed["user"]["id"].as_str().unwrap().into(),
            phone_number: String::new(),
            token: welcomed["token"].as_str().unwrap().into(),
        };
        redeem(&server, &user, &own).expect_problem(409, "own_invite");
    }
    let granted = |email: &str| server.log_in_by_email(email)["pointsGranted"].clone();
    // An alias that comes first has the bonus of the mailbox.
    assert_eq!((granted("h.e.ron+x@gmail.com"), granted("heron@googlemail.com")), (json!(100), json!(0)));
    assert_eq!(granted("heron@example.com"), 100);
    let other = server.sign_in_by_email("egret@example.com");
    redeem(&server, &other, &own).expect(200);
    redeem(&server, &server.sign_in_by_email("egret+2@example.com"), &own).expect_problem(409, "already_invited");
    server.command(&["ledger", "verify"]).expect(0);
}

#[test]
fn bonuses_of_several_addresses_do_not_pile_up() {
    let server = Setup::default().start();
    let change_to = |user: &Caller, email: &str| {
        server.edit("delete from code_sends");
        let proof = server.request_email_code(email, "address");
        let change = json!({ "email": email, "code": proof });
        server.post("/api/v1/account/address").by(user).json(&change).send().expect(200);
    };
    let invitee = server.sign_in_by_email("farm-0@example.com");
    redeem(&server, &invitee, &code(&server, &server.sign_in(&phone(0)))).expect(200);
    server.delete("/api/v1/account").by(&invitee).send().expect(204);
    for round in 1..4 {
        let user = server.sign_in_by_email(&format!("farm-{round}@example.com"));
        // The address of the account before, with the points that it parked.
        let earlier = if round == 1 { "farm-0@example.com".to_owned() } else { "farm-park@example.com".to_owned() };
        change_to(&user, &earlier);
        // Points that were earned come along, the second bonus does not.
        assert_eq!(points(&server, &user), 120, "{round}");
        change_to(&user, "farm-park@example.com");
        server.delete("/api/v1/account").by(&user).send().expect(204);
    }
    // The next account with the address has them all again.
    let back = server.log_in_by_email("farm-park@example.com");
    assert_eq!((&back["pointsRestored"], &back["user"]["points"]), (&json!(120), &json!(120)));
    server.command(&["ledger", "verify"]).expect(0);
}

#[test]
fn only_new_users_redeem() {
    let server = Setup::default().start();
    let (host, invitee) = (server.sign_in(&phone(0)), server.sign_in(&phone(1)));
    let code = code(&server, &host);
    let age = |days: i64, seconds: i64| {
        let registered =
            format!("update users set created_at = unixepoch() * 1000 - ({days} * 86400 + {seconds}) * 1000");
        server.edit(&registered);
    };
    age(7, 1);
    redeem(&server, &invitee, &code).expect_problem(409, "invite_expired");
    age(7, -60);
    redeem(&server, &invitee, &code).expect(200);
}

#[test]
fn limits_rewarded_invites() {
    let server = Setup::default().with("POINTS_REWARDED_INVITES", 2).start();
    let host = server.sign_in(&phone(0));
    let own = code(&server, &host);
    for number in 1..=3 {
        let invitee = server.sign_in(&phone(number));
        assert_eq!(redeem(&server, &invitee, &own).expect(200).json()["pointsGranted"], 20);
    }
    let after = invite(&server, &host);
    assert_eq!((&after["invited"], &after["rewarded"]), (&json!(3), &json!(2)));
    assert_eq!(points(&server, &host), 40);
    // A new account with the same number continues the count.
    remove(&server, &host);
    let again = server.sign_in_again(&phone(0));
    assert_ne!(again.user_id, host.user_id);
    let started_at = invite(&server, &again);
    assert_eq!((&started_at["invited"], &started_at["rewarded"]), (&json!(0), &json!(2)));
    let new_code = code(&server, &again);
    redeem(&server, &server.sign_in(&phone(4)), &new_code).expect(200);
    redeem(&server, &server.sign_in(&phone(5)), &own).expect_problem(404, "unknown_invite");
    assert_eq!(points(&server, &again), 0);
}

#[test]
fn another_address_earns_no_more_rewards() {
    let server = Setup::default().with("POINTS_REWARDED_INVITES", 1).start();
    let host = server.sign_in_by_email("first@example.com");
    let own = code(&server, &host);
    redeem(&server, &server.sign_in(&phone(1)), &own).expect(200);
    assert_eq!(points(&server, &host), 120);
    let proof = server.request_email_code("second@example.com", "address");
    let change = json!({ "email": "second@example.com", "code": proof });
    server.post("/api/v1/account/address").by(&host).json(&change).send().expect(200);
    redeem(&server, &server.sign_in(&phone(2)), &own).expect(200);
    let after = invite(&server, &host);
    assert_eq!((&after["invited"], &after["rewarded"]), (&json!(2), &json!(1)));
    assert_eq!(points(&server, &host), 120);
}

#[test]
fn changing_addresses_earns_nothing() {
    let server = Setup::default().start();
    let own = code(&server, &server.sign_in(&phone(0)));
    let mut user = server.sign_in_by_email("farm-0@example.com");
    redeem(&server, &user, &own).expect(200);
    for round in 1..4 {
        let next = format!("farm-{round}@example.com");
        let proof = server.request_email_code(&next, "address");
        let change = json!({ "email": next, "code": proof });
        server.post("/api/v1/account/address").by(&user).json(&change).send().expect(200);
        assert_eq!(points(&server, &user), 120);
        redeem(&server, &user, &own).expect_problem(409, "already_invited");
        server.delete("/api/v1/account").by(&user).send().expect(204);
        server.edit("delete from code_sends");
        user = server.sign_in_by_email(&next);
        assert_eq!(points(&server, &user), 120);
    }
}

#[test]
fn deleting_and_registering_again_earns_nothing() {
    let server = Setup::default().start();
    let (host, invitee) = (server.sign_in(&phone(0)), server.sign_in(&phone(1)));
    let own = code(&server, &host);
    redeem(&server, &invitee, &own).expect(200);
    remove(&server, &invitee);
    let again = server.sign_in_again(&phone(1));
    assert_ne!(again.user_id, invitee.user_id);
    redeem(&server, &again, &own).expect_problem(409, "already_invited");
    assert_eq!((points(&server, &host), points(&server, &again)), (20, 0));
    let number = phone(1);
    let stored: i64 = server
        .value(&format!("select count(*) from invite_addresses where cast(address_hmac as text) like '%{number}%'"));
    assert_eq!(stored, 0);
}

#[test]
fn parallel_redemptions_count_once() {
    let server = Setup::default().start();
    let (host, invitee) = (server.sign_in(&phone(0)), server.sign_in(&phone(1)));
    // Concurrent first requests create one code.
    let codes: Vec<_> = send_concurrently((0..20).map(|_| server.get("/api/v1/invite").by(&host)).collect())
        .into_iter()
        .map(|response| response.expect(200).json()["code"].clone())
        .collect();
    assert!(codes.iter().all(|code| *code == codes[0]));
    let body = json!({ "code": codes[0] });
    let request = || server.post("/api/v1/invite/redeem").by(&invitee).json(&body);
    let responses = send_concurrently((0..30).map(|_| request()).collect());
    assert_eq!(responses.iter().filter(|response| response.status == 200).count(), 1);
    assert_eq!(responses.iter().filter(|response| response.status == 409).count(), 29);
    assert_eq!((points(&server, &host), points(&server, &invitee)), (20, 20));

    let another = server.sign_in(&phone(2));
    let with_key = || server.post("/api/v1/invite/redeem").by(&another).json(&body).header("idempotency-key", "a");
    let responses = send_concurrently((0..10).map(|_| with_key()).collect());
    assert!(responses.iter().all(|response| response.status == 200 && response.bytes == responses[0].bytes));
    assert_eq!(points(&server, &host), 40);
}

#[test]
fn rewards_nobody_while_the_inviters_account_is_locked() {
    let server = Setup::default().start();
    let (host, invitee) = (server.sign_in(&phone(0)), server.sign_in(&phone(1)));
    let own = code(&server, &host);
    server.command(&["points", "adjust", &phone(0), "5", "--reason", "test"]).expect(0);
    server.edit("update balances set suspended_at = 1 where asset = 'point'");
    redeem(&server, &invitee, &own).expect_problem(503, "account_inconsistent");
    assert_eq!(points(&server, &invitee), 0);
    assert!(invite(&server, &invitee)["redeemedAt"].is_null());
    server.edit("update balances set suspended_at = null");
    redeem(&server, &invitee, &own).expect(200);
    assert_eq!((points(&server, &host), points(&server, &invitee)), (25, 20));
}

#[test]
fn every_lookup_has_an_index() {
    let server = Setup::default().start();
    let database = server.database_file();
    for sql in [
        "select code from invite_codes where user_id = ?1",
        "select user_id from invite_codes where code = ?1",
        "select created_at from invites where invitee_id = ?1",
        "update invites set inviter_id = null where inviter_id = ?1",
        "select rewarded from invite_addresses where address_hmac = ?1",
    ] {
        let mut statement = database.prepare(&format!("explain query plan {sql}")).unwrap();
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next().unwrap() {
            let step: String = row.get(3).unwrap();
            assert!(!step.starts_with("SCAN"), "{sql}: {step}");
        }
    }
}

fn log_in(server: &Server, email: &str, invite_code: &str) -> Response {
    server.database().execute("delete from code_sends", ()).unwrap();
    let code = server.request_email_code(email, "sign_in");
    let body = json!({ "email": email, "code": code, "inviteCode": invite_code });
    server.post("/api/v1/auth/login").json(&body).send()
}

#[test]
fn redeems_a_code_at_the_first_sign_in() {
    let server = Setup::default().start();
    let host = server.sign_in_by_email("host@example.com");
    let own = code(&server, &host);
    let came = log_in(&server, "guest@example.com", &own.to_lowercase()).expect(200).json();
    assert_eq!(came["invite"], json!({ "redeemed": true, "pointsGranted": 20, "refusal": null }));
    // The response separates bonus and invite reward, and the account has both.
    assert_eq!(
        (&came["isNewUser"], &came["pointsGranted"], &came["user"]["points"]),
        (&json!(true), &json!(100), &json!(120))
    );
    assert_eq!(points(&server, &host), 120);
    let after = invite(&server, &host);
    assert_eq!((&after["invited"], &after["rewarded"]), (&json!(1), &json!(1)));
    // Without a code the response has no invite.
    assert!(server.log_in_by_email("another@example.com").get("invite").is_none());
    server.command(&["ledger", "verify"]).expect(0);
}

#[test]
fn an_invalid_invite_does_not_prevent_sign_in() {
    let server = Setup::default().start();
    let host = server.sign_in_by_email("host@example.com");
    let own = code(&server, &host);
    let refusal = |email: &str, code: &str| {
        let came = log_in(&server, email, code).expect(200).json();
        assert!(came["token"].is_string(), "{came}");
        assert_eq!((&came["invite"]["redeemed"], &came["invite"]["pointsGranted"]), (&json!(false), &json!(0)));
        came["invite"]["refusal"].as_str().unwrap().to_owned()
    };
    assert_eq!(refusal("guest@example.com", "22222222"), "unknown_invite");
    assert_eq!(refusal("host@example.com", &own), "own_invite");
    // The user may still redeem once.
    assert_eq!(log_in(&server, "guest@example.com", &own).expect(200).json()["invite"]["redeemed"], true);
    assert_eq!(refusal("guest@example.com", &own), "already_invited");
    server.edit("update balances set suspended_at = 1 where asset = 'point'");
    assert_eq!(refusal("third@example.com", &own), "account_inconsistent");
    server.edit("update balances set suspended_at = null");
    server.edit("update users set created_at = created_at - 8 * 86400000 where email = 'third@example.com'");
    assert_eq!(refusal("third@example.com", &own), "invite_expired");
    assert_eq!(points(&server, &host), 120);
    // A malformed code is rejected before the verification code is used.
    server.database().execute("delete from code_sends", ()).unwrap();
    let sign_in = server.request_email_code("fourth@example.com", "sign_in");
    let mut body = json!({ "email": "fourth@example.com", "code": sign_in, "inviteCode": "0000" });
    server.post("/api/v1/auth/login").json(&body).send().expect_fields(&[("inviteCode", "invalid_format")]);
    body["inviteCode"] = json!(own);
    assert_eq!(server.post("/api/v1/auth/login").json(&body).send().expect(200).json()["invite"]["redeemed"], true);
    server.command(&["ledger", "verify"]).expect(0);
}

#[test]
fn a_locked_invitee_account_costs_the_inviter_nothing() {
    let server = Setup::default().start();
    let host = server.sign_in_by_email("host@example.com");
    let own = code(&server, &host);
    let invitee = server.sign_in_by_email("guest@example.com");
    server
        .edit(&format!("update balances set suspended_at = 1 where asset = 'point' and user_id = {}", invitee.user_id));
    let came = log_in(&server, "guest@example.com", &own).expect(200).json();
    assert_eq!(came["invite"]["refusal"], "account_inconsistent");
    // The inviter's reward, posted first, is rolled back too.
    assert_eq!((points(&server, &host), &invite(&server, &host)["invited"]), (100, &json!(0)));
    server.edit("update balances set suspended_at = null");
    server.command(&["ledger", "verify"]).expect(0);
}

#[test]
fn parallel_first_sign_ins_with_one_invite_count_once_each() {
    let server = Setup::default().with("POINTS_REWARDED_INVITES", 3).start();
    let host = server.sign_in_by_email("host@example.com");
    let own = code(&server, &host);
    let mut requests = Vec::new();
    for number in 0..8 {
        let email = format!("guest-{number}@example.com");
        let body = json!({ "email": email, "code": server.request_email_code(&email, "sign_in"), "inviteCode": own });
        // Each twice: one of the two uses the verification code first.
        requests.extend((0..2).map(|_| server.post("/api/v1/auth/login").json(&body)));
    }
    let responses = send_concurrently(requests);
    assert_eq!(responses.iter().filter(|response| response.status == 401).count(), 8);
    let came: Vec<_> = responses.iter().filter(|response| response.status == 200).map(Response::json).collect();
    assert_eq!(came.len(), 8);
    assert!(came.iter().all(|came| came["invite"]["redeemed"] == true && came["user"]["points"] == 120), "{came:?}");
    let after = invite(&server, &host);
    assert_eq!((&after["invited"], &after["rewarded"]), (&json!(8), &json!(3)));
    assert_eq!(points(&server, &host), 160);
    server.command(&["ledger", "verify"]).expect(0);
}
