//! `/api/v1/account`: reading, changing and adding addresses.

use serde_json::{Value, json};

use crate::support::{Caller, Request, Server, Setup};

const EMAIL: &str = "li.ming@example.com";
const PHONE: &str = "13800138000";

fn account(server: &Server, user: &Caller) -> Value {
    server.get("/api/v1/account").by(user).send().expect(200).json()
}

fn change_address(server: &Server, user: &Caller, body: Value) -> Request {
    server.post("/api/v1/account/address").by(user).json(&body)
}

/// Verifies an email address and adds it to the user.
fn add_email(server: &Server, user: &Caller, email: &str) -> Request {
    let code = server.request_email_code(email, "address");
    change_address(server, user, json!({ "email": email, "code": code }))
}

fn add_phone(server: &Server, user: &Caller, phone_number: &str) -> Request {
    let before = server.sent_codes(phone_number).len();
    let body = json!({ "phoneNumber": phone_number, "purpose": "address" });
    server.post("/auth/send-code").json(&body).send().expect(200);
    let code = server.printed_code(phone_number, before);
    change_address(server, user, json!({ "phoneNumber": phone_number, "code": code }))
}

#[test]
fn reads_an_account_and_changes_its_profile() {
    let server = Setup::default().start();
    let user = server.sign_in_by_email(EMAIL);
    let before = account(&server, &user);
    assert_eq!((&before["id"], &before["email"]), (&json!(user.user_id), &json!(EMAIL)));
    assert_eq!((&before["points"], &before["coins"]), (&json!(100), &json!(0)));
    assert!(before["createdAt"].as_str().unwrap().ends_with('Z'));
    let change =
        json!({ "nickname": "青山", "gender": "female", "birthday": "1990-05-17", "points": 9, "email": "x@y.zz" });
    let after = server.patch("/api/v1/account").by(&user).json(&change).send().expect(200).json();
    assert_eq!(
        (&after["nickname"], &after["gender"], &after["birthday"]),
        (&json!("青山"), &json!("female"), &json!("1990-05-17"))
    );
    // Undeclared parameters are ignored.
    assert_eq!((&after["email"], &after["points"]), (&json!(EMAIL), &json!(100)));
    let bad = json!({ "nickname": "x".repeat(21), "gender": "both", "birthday": "2990-01-01" });
    server.patch("/api/v1/account").by(&user).json(&bad).send().expect_fields(&[
        ("nickname", "too_long"),
        ("gender", "unknown_value"),
        ("birthday", "out_of_range"),
    ]);
    let refused = server.patch("/api/v1/account").by(&user).json(&json!({ "signature": "加微信 赌博" })).send();
    refused.expect_problem(422, "content_rejected");
    assert_eq!(account(&server, &user), after);
}

#[test]
fn a_user_with_two_addresses_signs_in_with_either() {
    let server = Setup::default().start();
    let user = server.sign_in_by_email(EMAIL);
    let other_device = server.sign_in_by_email(EMAIL);
    let both = add_phone(&server, &user, PHONE).send().expect(200).json();
    assert_eq!((&both["email"], &both["phoneNumber"]), (&json!(EMAIL), &json!(PHONE)));
    let by_phone = server.sign_in_again(PHONE);
    assert_eq!(by_phone.user_id, user.user_id);
    // Existing tokens return it too.
    for device in [&user, &other_device, &by_phone] {
        assert_eq!(server.get("/coin/balance").by(device).send().expect(200).json()["phoneNumber"], PHONE);
        server.get("/coin/balance/phone").query(&[("phoneNumber", PHONE)]).by(device).send().expect(200);
    }
    assert_eq!(server.value::<i64>("select count(*) from users"), 1);
}

#[test]
fn adding_an_email_to_a_phone_account_grants_the_bonus_once() {
    let server = Setup::default().start();
    let user = server.sign_in(PHONE);
    assert_eq!(account(&server, &user)["points"], 0);
    let with_email = add_email(&server, &user, EMAIL).send().expect(200).json();
    assert_eq!((&with_email["email"], &with_email["points"]), (&json!(EMAIL), &json!(100)));
    // Another address grants nothing: the user had the bonus.
    let changed = add_email(&server, &user, "second@example.com").send().expect(200).json();
    assert_eq!((&changed["email"], &changed["points"]), (&json!("second@example.com"), &json!(100)));
    // The first address had it too, for any later account.
    let newcomer = server.log_in_by_email(EMAIL);
    assert_eq!((&newcomer["isNewUser"], &newcomer["pointsGranted"]), (&json!(true), &json!(0)));
}

#[test]
fn only_the_owner_of_an_address_learns_that_it_is_taken() {
    let server = Setup::default().start();
    let owner = server.sign_in_by_email(EMAIL);
    let stranger = server.sign_in_by_email("stranger@example.com");
    server.edit("delete from code_sends");
    // Without the code, a taken address looks like a free one.
    for email in [EMAIL, "free@example.com"] {
        let body = json!({ "email": email, "code": "00000000" });
        change_address(&server, &stranger, body).send().expect_problem(401, "invalid_code");
    }
    let code = server.request_email_code(EMAIL, "address");
    let body = json!({ "email": EMAIL, "code": code });
    change_address(&server, &stranger, body.clone()).send().expect_problem(409, "address_taken");
    change_address(&server, &stranger, body).send().expect_problem(401, "invalid_code");
    assert_eq!(account(&server, &owner)["email"], EMAIL);
    assert_eq!(account(&server, &stranger)["email"], "stranger@example.com");
}

#[test]
fn changing_an_address_needs_a_recent_sign_in_and_signs_out_other_devices() {
    let server = Setup::default().start();
    let other_device = server.sign_in_by_email(EMAIL);
    let user = server.sign_in_by_email(EMAIL);
    // Adding an address keeps the other devices.
    add_phone(&server, &user, PHONE).send().expect(200);
    account(&server, &other_device);
    server.edit("update tokens set signed_in_at = signed_in_at - 600001");
    server.edit("delete from code_sends");
    add_email(&server, &user, "new@example.com").send().expect_problem(403, "step_up_required");
    server.edit("update tokens set signed_in_at = signed_in_at + 600001");
    server.edit("delete from code_sends");
    // The rejection did not consume the code.
    let changed = add_email(&server, &user, "new@example.com").send().expect(200).json();
    assert_eq!(changed["email"], "new@example.com");
    server.get("/api/v1/account").by(&other_device).send().expect_problem(401, "unauthenticated");
    account(&server, &user);
    assert_eq!(server.log_in_by_email(EMAIL)["isNewUser"], true);
}

#[test]
fn the_code_of_a_replaced_address_is_invalid() {
    let server = Setup::default().start();
    let user = server.sign_in_by_email(EMAIL);
    add_phone(&server, &user, PHONE).send().expect(200);
    server.edit("delete from code_sends");
    let by_email = json!({ "email": EMAIL, "code": server.request_email_code(EMAIL, "sign_in") });
    let by_phone = json!({ "phoneNumber": PHONE, "code": server.request_code(PHONE) });
    add_email(&server, &user, "new@example.com").send().expect(200);
    add_phone(&server, &user, "13912345679").send().expect(200);
    server.post("/api/v1/auth/login").json(&by_email).send().expect_problem(401, "invalid_code");
    server.post("/auth/login").json(&by_phone).send().expect_problem(401, "invalid_code");
    assert_eq!(server.value::<i64>("select count(*) from users"), 1);
}

#[test]
fn changing_an_address_requires_one_address_and_a_code() {
    let server = Setup::default().start();
    let user = server.sign_in_by_email(EMAIL);
    let change = |body: Value| change_address(&server, &user, body).send();
    change(json!({})).expect_fields(&[("code", "required"), ("email", "required")]);
    change(json!({ "code": "12345678" })).expect_fields(&[("email", "required")]);
    change(json!({ "code": "12345678", "email": "a@example.com", "phoneNumber": PHONE }))
        .expect_fields(&[("phoneNumber", "unknown_value")]);
    change(json!({ "code": "x", "email": "nobody", "phoneNumber": "12" })).expect_fields(&[
        ("code", "invalid_format"),
        ("email", "invalid_format"),
        ("phoneNumber", "invalid_format"),
    ]);
    // A sign-in code is not valid here.
    server.edit("delete from code_sends");
    let code = server.request_email_code("new@example.com", "sign_in");
    change(json!({ "email": "new@example.com", "code": code })).expect_problem(401, "invalid_code");
}
