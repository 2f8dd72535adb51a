//! Sign-in with identities of Apple, Google and WeChat and with the number of the SIM card; links and removals.

use serde_json::{Value, json};

use crate::support::{
    Caller, Response, Server, Setup,
    identity_services::{IdentityServices, apple_token, google_token, moved_to_now, now, recorded},
    raw::flood_while_keys_hang,
    send_concurrently,
};

const EMAIL: &str = "li.ming@example.com";

fn start() -> (IdentityServices, Server) {
    let services = IdentityServices::start();
    let server = services.configure(Setup::default()).with("AUTH_CODE_TRIES", 100).start();
    (services, server)
}

fn sign_in(server: &Server, proof: &Value) -> Response {
    server.post("/api/v1/auth/identity").json(proof).send()
}

fn apple(subject: &str, changes: Value) -> Value {
    json!({ "provider": "apple", "idToken": apple_token(subject, changes) })
}

fn google(subject: &str, changes: Value) -> Value {
    json!({ "provider": "google", "idToken": google_token(subject, changes) })
}

fn wechat(code: &str) -> Value {
    json!({ "provider": "wechat", "code": code })
}

fn caller(signed_in: &Value) -> Caller {
    Caller {
        user_id: signed_in["user"]["id"].as_str().unwrap().to_owned(),
        phone_number: String::new(),
        token: signed_in["token"].as_str().unwrap().to_owned(),
    }
}

fn providers(server: &Server, user: &Caller) -> Vec<String> {
    let account = server.get("/api/v1/account").by(user).send().expect(200).json();
    let listed = account["identities"].as_array().unwrap().iter();
    listed.map(|identity| identity["provider"].as_str().unwrap().to_owned()).collect()
}

fn link(server: &Server, user: &Caller, proof: &Value) -> Response {
    server.post("/api/v1/account/identities").by(user).json(proof).send()
}

/// Moves the user's sign-ins into the past, beyond `auth.step_up`.
fn age_sign_ins(server: &Server, user: &Caller) {
    server.edit(&format!("update tokens set signed_in_at = signed_in_at - 3600000 where user_id = {}", user.user_id));
}

#[test]
fn every_recorded_token_gets_its_verdict_over_http() {
    let recorded = recorded();
    let mut seen = 0;
    for (section, provider, signer, nonce) in [
        ("google_sign_in", "google", "google_signer", "nonce"),
        ("apple_sign_in", "apple", "apple_id_signer", "raw_nonce"),
    ] {
        for (name, case) in recorded[section]["tokens"].as_object().unwrap() {
            let (_services, server) = start();
            let signer = if name == "other_key" { "google_other" } else { signer };
            let mut token = moved_to_now(case["id_token"].as_str().unwrap(), recorded["now"].as_i64().unwrap(), signer);
            if name == "expired" {
                // As recorded: it expired long ago.
                token = case["id_token"].as_str().unwrap().to_owned();
            }
            let proof = json!({ "provider": provider, "idToken": token, "nonce": recorded[section][nonce] });
            let response = sign_in(&server, &proof);
            let is_accepted = case["result"] == "OK" && case["must_refuse"] != "nonce";
            if is_accepted {
                let signed_in = response.expect(200).json();
                // The recorded addresses are of domains over which Google has no authority.
                let has_email = !signed_in["user"]["email"].is_null();
                let is_proved = provider == "apple" && case["must_refuse"] != "no_joining_by_email";
                assert_eq!(has_email, is_proved, "{provider} {name}");
                // Each token is good for one sign-in.
                sign_in(&server, &proof).expect_problem(401, "invalid_identity");
            } else {
                response.expect_problem(401, "invalid_identity");
                assert_eq!(server.value::<i64>("select count(*) from users"), 0, "{name}");
            }
            seen += 1;
        }
    }
    assert_eq!(seen, 11);
}

#[test]
fn an_identity_signs_in_to_the_same_account_in_both_generations() {
    let (services, server) = start();
    let first = sign_in(&server, &apple("person-1", json!({}))).expect(200).json();
    assert_eq!((&first["isNewUser"], &first["pointsGranted"]), (&json!(true), &json!(0)));
    assert_eq!((&first["user"]["email"], &first["user"]["phoneNumber"]), (&Value::Null, &Value::Null));
    let user = caller(&first);
    assert_eq!(providers(&server, &user), ["apple"]);
    let again = server.post("/auth/identity").json(&apple("person-1", json!({}))).send().expect(200).json();
    assert_eq!((&again["userId"], &again["isNewUser"]), (&json!(user.user_id), &json!(false)));
    assert_eq!(again["phoneNumber"], Value::Null);
    // The keys were fetched once.
    assert_eq!(services.key_fetches(), 1);
    let other = sign_in(&server, &google("person-1", json!({}))).expect(200).json();
    assert_ne!(other["user"]["id"], first["user"]["id"]);
    assert_eq!(server.value::<i64>("select count(*) from users"), 2);
}

#[test]
fn fifty_concurrent_first_sign_ins_make_one_account() {
    let (_services, server) = start();
    let request = |proof: &Value| server.post("/api/v1/auth/identity").json(proof);
    let proofs: Vec<Value> = (0..50)
        .map(|_| google("person-1", json!({ "email": EMAIL, "email_verified": true, "hd": "example.com" })))
        .collect();
    let mut users = std::collections::HashSet::new();
    let mut created = 0;
    for response in send_concurrently(proofs.iter().map(request).collect()) {
        let signed_in = response.expect(200).json();
        created += i32::from(signed_in["isNewUser"] == true);
        users.insert(signed_in["user"]["id"].as_str().unwrap().to_owned());
    }
    assert_eq!((created, users.len()), (1, 1));
    assert_eq!(server.value::<i64>("select count(*) from users"), 1);
    assert_eq!(server.value::<i64>("select count(*) from identities"), 1);
    assert_eq!(server.value::<i64>("select sum(delta) from ledger_entries where asset = 'point'"), 100);
    // One token, sent many times, is accepted once.
    let token = apple("person-2", json!({}));
    let responses = send_concurrently((0..12).map(|_| request(&token)).collect());
    assert_eq!(responses.iter().filter(|response| response.status == 200).count(), 1);
}

#[test]
fn a_verified_address_joins_its_account_and_an_unverified_one_does_not() {
    let (_services, server) = start();
    let user = server.sign_in_by_email(EMAIL);
    for unverified in [json!({ "email": EMAIL }), json!({ "email": EMAIL, "email_verified": "false" })] {
        let signed_in = sign_in(&server, &apple("stranger", unverified)).expect(200).json();
        assert_ne!(signed_in["user"]["id"], json!(user.user_id));
        assert_eq!(signed_in["user"]["email"], Value::Null);
    }
    let verified = json!({ "email": "Li.Ming@Example.com", "email_verified": "true" });
    let joined = sign_in(&server, &apple("person-1", verified.clone())).expect(200).json();
    assert_eq!((&joined["user"]["id"], &joined["isNewUser"]), (&json!(user.user_id), &json!(false)));
    assert_eq!(joined["pointsGranted"], 0);
    // The account has an identity of Apple now, so another person's does not join.
    sign_in(&server, &apple("person-2", verified)).expect_problem(409, "identity_taken");
    assert_eq!(providers(&server, &user), ["apple"]);
}

/// Returns the bodies of the user's notifications, newest first.
fn notices(server: &Server, user: &Caller) -> Vec<String> {
    let listed = server.get("/api/v1/notifications").by(user).send().expect(200).json();
    listed["items"].as_array().unwrap().iter().map(|item| item["body"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn an_address_that_google_has_no_authority_over_needs_a_code() {
    let (_services, server) = start();
    let user = server.sign_in_by_email(EMAIL);
    let foreign = json!({ "email": EMAIL, "email_verified": true });
    for changes in [foreign.clone(), json!({ "email": EMAIL, "email_verified": true, "hd": "" })] {
        sign_in(&server, &google("stranger", changes)).expect_problem(409, "email_code_required");
    }
    assert_eq!(providers(&server, &user), Vec::<String>::new());
    // After the sign-in by a code, the owner links the identity, and is told.
    link(&server, &user, &google("person-1", foreign.clone())).expect(200);
    let signed_in = sign_in(&server, &google("person-1", foreign)).expect(200).json();
    assert_eq!(signed_in["user"]["id"], json!(user.user_id));
    assert_eq!(notices(&server, &user).len(), 1);
    assert!(notices(&server, &user)[0].contains("Google"));

    // Without an account the address is not taken: its owner may come later.
    let claimed = json!({ "email": "later@example.net", "email_verified": true });
    let stranger = sign_in(&server, &google("person-2", claimed)).expect(200).json();
    assert_eq!((&stranger["isNewUser"], &stranger["user"]["email"]), (&json!(true), &Value::Null));
    assert_ne!(server.sign_in_by_email("later@example.net").user_id, stranger["user"]["id"].as_str().unwrap());
}

#[test]
fn addresses_of_google_and_of_its_organisations_join_and_the_owner_is_told() {
    let (_services, server) = start();
    for (number, (email, hd)) in
        [("ming@gmail.com", Value::Null), ("ming@example.org", json!("example.org"))].into_iter().enumerate()
    {
        let user = server.sign_in_by_email(email);
        let claims = json!({ "email": email, "email_verified": true, "hd": hd });
        let joined = sign_in(&server, &google(&format!("person-{number}"), claims)).expect(200).json();
        assert_eq!(joined["user"]["id"], json!(user.user_id), "{email}");
        assert_eq!(notices(&server, &user).len(), 1, "{email}");
    }
}

#[test]
fn linking_needs_a_recent_sign_in_and_a_proof() {
    let (_services, server) = start();
    let user = server.sign_in_by_email(EMAIL);
    let other = server.sign_in_by_email("other@example.com");
    link(&server, &user, &json!({ "provider": "apple", "idToken": "a.b.c" })).expect_problem(401, "invalid_identity");
    link(&server, &user, &json!({ "provider": "phone", "accessToken": "x" }))
        .expect_fields(&[("provider", "unknown_value")]);
    link(&server, &user, &json!({ "provider": "google" })).expect_fields(&[("idToken", "required")]);
    link(&server, &user, &google("person-1", json!({}))).expect(200);
    link(&server, &user, &google("person-1", json!({}))).expect(200);
    link(&server, &user, &google("person-2", json!({}))).expect_problem(409, "identity_taken");
    link(&server, &other, &google("person-1", json!({}))).expect_problem(409, "identity_taken");
    link(&server, &user, &wechat("code-of-ming-1")).expect(200);
    assert_eq!(providers(&server, &user), ["google", "wechat"]);
    let signed_in = sign_in(&server, &wechat("code-of-ming-2")).expect(200).json();
    assert_eq!(signed_in["user"]["id"], json!(user.user_id));
    age_sign_ins(&server, &user);
    link(&server, &user, &apple("person-1", json!({}))).expect_problem(403, "step_up_required");
    let remove = |provider: &str| server.delete(&format!("/api/v1/account/identities/{provider}")).by(&user).send();
    remove("google").expect_problem(403, "step_up_required");
}

#[test]
fn an_identity_is_removed_while_another_way_in_remains() {
    let (_services, server) = start();
    let user = caller(&sign_in(&server, &apple("person-1", json!({}))).expect(200).json());
    let device = caller(&sign_in(&server, &apple("person-1", json!({}))).expect(200).json());
    let remove = |provider: &str| server.delete(&format!("/api/v1/account/identities/{provider}")).by(&user).send();
    remove("apple").expect_problem(409, "last_identity");
    remove("google").expect_problem(404, "not_found");
    remove("twitter").expect_fields(&[("provider", "unknown_value")]);
    link(&server, &user, &google("person-1", json!({}))).expect(200);
    remove("apple").expect(204);
    assert_eq!(providers(&server, &user), ["google"]);
    // Who holds the removed identity may have the other device.
    server.get("/api/v1/account").by(&device).send().expect_problem(401, "unauthenticated");
    remove("google").expect_problem(409, "last_identity");
    let new = sign_in(&server, &apple("person-1", json!({}))).expect(200).json();
    assert_eq!(new["isNewUser"], true);
}

#[test]
fn wechat_codes_count_once_and_later_ids_name_the_same_person() {
    let (services, server) = start();
    let first = sign_in(&server, &wechat("code-of-ming-1")).expect(200).json();
    sign_in(&server, &wechat("code-of-ming-1")).expect_problem(401, "invalid_identity");
    sign_in(&server, &wechat("nonsense")).expect_problem(401, "invalid_identity");
    services.add_union_ids();
    for number in 2..4 {
        let again = sign_in(&server, &wechat(&format!("code-of-ming-{number}"))).expect(200).json();
        assert_eq!(again["user"]["id"], first["user"]["id"]);
    }
    assert_eq!(server.value::<String>("select subject from identities"), "union-ming");
    let log = server.lines().join("\n");
    assert!(!log.contains("TESTWeChatSecret") && !log.contains("code-of-ming"), "{log}");
}

#[test]
fn the_number_of_the_sim_card_signs_in_like_a_code() {
    let (_services, server) = start();
    let user = server.sign_in("13800138000");
    let proof = json!({ "provider": "phone", "accessToken": "eyJvIjoiTCIsImEiOiJ0b2tlbiJ9+/=" });
    let signed_in = server.post("/auth/identity").json(&proof).send().expect(200).json();
    assert_eq!((&signed_in["userId"], &signed_in["phoneNumber"]), (&json!(user.user_id), &json!("13800138000")));
    assert_eq!(signed_in["isNewUser"], false);
    let bad = json!({ "provider": "phone", "accessToken": "expired" });
    server.post("/auth/identity").json(&bad).send().expect_problem(401, "invalid_identity");
}

#[test]
fn providers_that_are_down_or_not_configured_are_no_invalid_proofs() {
    let (services, server) = start();
    services.set_down(true);
    for proof in [apple("person-1", json!({})), wechat("code-of-ming-1")] {
        let response = sign_in(&server, &proof);
        assert!(response.status >= 502, "{} {}", response.status, response.text());
    }
    let bare = Setup::default().start();
    for proof in
        [apple("a", json!({})), google("a", json!({})), wechat("c"), json!({ "provider": "phone", "accessToken": "x" })]
    {
        sign_in(&bare, &proof).expect_problem(409, "not_configured");
    }
}

#[test]
fn many_invalid_proofs_of_a_client_are_limited() {
    let services = IdentityServices::start();
    let setup = services.configure(Setup::default()).with("AUTH_SENDS_PER_CLIENT_HOUR", 1).with("AUTH_CODE_TRIES", 3);
    let server = setup.start();
    for number in 0..3 {
        sign_in(&server, &wechat(&format!("wrong{number}"))).expect_problem(401, "invalid_identity");
    }
    sign_in(&server, &wechat("code-of-ming-1")).expect_problem(429, "too_many_requests");
}

#[test]
fn suspended_users_do_not_sign_in_with_an_identity() {
    let (_services, server) = start();
    let user = caller(&sign_in(&server, &apple("person-1", json!({}))).expect(200).json());
    server.edit(&format!(
        "insert into suspensions (user_id, scope, source, reason, actor, created_at) \
         values ({}, 'account', 'staff', 'spam', 'cli', 1)",
        user.user_id
    ));
    sign_in(&server, &apple("person-1", json!({}))).expect_problem(403, "user_suspended");
}

/// Returns an event of Apple as a token.
fn event(kind: &str, subject: &str, at: i64) -> String {
    let event = json!({ "type": kind, "sub": subject, "event_time": at }).to_string();
    // Such tokens have no `exp` and no `sub` of their own.
    apple_token(subject, json!({ "events": event, "exp": null, "sub": null }))
}

#[test]
fn few_threads_wait_while_apples_keys_hang() {
    let services = IdentityServices::start();
    let keys = services.hang();
    let setup = services.configure(Setup::default()).with("AUTH_IDENTITY_TIMEOUT", "60 s");
    let server = setup.with("LIMITS_CONNECTIONS_PER_CLIENT", 1000).in_own_process().start();
    let body = json!({ "payload": event("consent-revoked", "nobody", now() * 1000) }).to_string();
    let request = format!(
        "POST /auth/identity/apple/events HTTP/1.1\r\nhost: yarrow\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    flood_while_keys_hang(&server, &keys, &request);
    assert_eq!(services.key_fetches(), 1);
}

#[test]
fn apples_events_sign_out_and_remove_the_identity() {
    let (_services, server) = start();
    let notify = |payload: &str| server.post("/auth/identity/apple/events").json(&json!({ "payload": payload })).send();
    let with_email = json!({ "email": EMAIL, "email_verified": true });
    let user = caller(&sign_in(&server, &apple("person-1", with_email)).expect(200).json());
    let only = caller(&sign_in(&server, &apple("person-2", json!({}))).expect(200).json());
    let later = (now() + 600) * 1000;
    // Another kind, an old event, an unknown person and a forgery change nothing.
    notify(&event("email-disabled", "person-1", later)).expect(200);
    notify(&event("consent-revoked", "person-1", 1_700_000_000)).expect(200);
    notify(&event("consent-revoked", "nobody", later)).expect(200);
    notify("a.b.c").expect_problem(401, "invalid_identity");
    notify(&google_token("person-1", json!({ "events": "{}" }))).expect_problem(401, "invalid_identity");
    assert_eq!(providers(&server, &user), ["apple"]);
    // An event is no sign-in.
    let proof = json!({ "provider": "apple", "idToken": event("consent-revoked", "person-1", later) });
    sign_in(&server, &proof).expect_problem(401, "invalid_identity");

    let form = format!("payload={}", event("consent-revoked", "person-1", later));
    let body = form.into_bytes();
    let content_type = Some("application/x-www-form-urlencoded");
    server.post("/auth/identity/apple/events").bytes(content_type, body).send().expect(200);
    server.get("/api/v1/account").by(&user).send().expect_problem(401, "unauthenticated");
    let user = server.sign_in_by_email(EMAIL);
    assert_eq!(providers(&server, &user), Vec::<String>::new());

    // Its only way in stays with a revoked consent, and goes with the identity.
    notify(&event("consent-revoked", "person-2", later)).expect(200);
    server.get("/api/v1/account").by(&only).send().expect_problem(401, "unauthenticated");
    let again = sign_in(&server, &apple("person-2", json!({}))).expect(200).json();
    assert_eq!(again["user"]["id"], json!(only.user_id));
    notify(&event("account-deleted", "person-2", later)).expect(200);
    assert_eq!(server.value::<i64>("select count(*) from identities"), 0);
    assert_eq!(server.value::<i64>("select count(*) from users"), 2);
}

#[test]
fn erasure_removes_identities() {
    let (_services, server) = start();
    let user = caller(&sign_in(&server, &apple("the-person-at-apple", json!({}))).expect(200).json());
    let export = server.get("/api/v1/account/export").by(&user).send().expect(200).json();
    assert_eq!(export["identities"][0]["subject"], "the-person-at-apple");
    assert_eq!(export["identities"][0]["provider"], "apple");
    server.delete("/api/v1/account").by(&user).send().expect(204);
    assert_eq!(server.value::<i64>("select count(*) from identities"), 0);
    let again = sign_in(&server, &apple("the-person-at-apple", json!({}))).expect(200).json();
    assert_eq!(again["isNewUser"], true);
    assert_ne!(again["user"]["id"], json!(user.user_id));
}

#[test]
fn the_staff_see_with_which_services_a_user_signs_in() {
    let (_services, server) = start();
    let user = caller(&sign_in(&server, &apple("the-person-at-apple", json!({}))).expect(200).json());
    link(&server, &user, &google("the-person-at-google", json!({}))).expect(200);
    let page = server.command(&["users", "show", &user.user_id]).expect(0).json();
    let shown: Vec<_> = page["identities"].as_array().unwrap().iter().map(|identity| &identity["provider"]).collect();
    assert_eq!(shown, ["apple", "google"]);
    assert!(page["identities"][0]["lastUsedAt"].is_string());
    // The providers' ids of people help nobody there.
    assert!(!page.to_string().contains("the-person-at"));
}
