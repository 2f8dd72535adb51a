//! Pushes to phones: registration, decisions of the job, and the three services.

use std::sync::{Arc, Mutex};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use serde_json::{Value, json};

use crate::support::{
    Caller, Request, Server, Setup, eventually,
    fake_apns::{FakeApns, ReceivedPush, TOPIC},
    fake_provider::{FakeProvider, ReceivedRequest, Reply},
    google_play::published_google,
};

fn token(number: u8) -> String {
    format!("{number:02x}").repeat(32)
}

fn register(server: &Server, user: &Caller, service: &str, token: &str) -> Request {
    server.post("/api/v1/devices").by(user).json(&json!({ "service": service, "token": token }))
}

fn notify(server: &Server, key: &str, user: &Caller, title: &str) -> String {
    let body = json!({
        "audience": "users", "userIds": [user.user_id], "title": title, "body": "the body", "kind": "activity",
    });
    let sent = server.post("/admin/notifications").token(key).json(&body).send().expect(201).json();
    sent["id"].as_str().unwrap().to_owned()
}

fn broadcast(server: &Server, key: &str, title: &str, kind: &str) {
    let body = json!({ "audience": "all", "title": title, "body": "…", "kind": kind });
    server.post("/admin/notifications").token(key).json(&body).send().expect(201);
}

fn queued(server: &Server) -> i64 {
    server.value("select (select count(*) from push_queue) + (select count(*) from push_broadcasts)")
}

fn devices(server: &Server) -> i64 {
    server.value("select count(*) from push_devices")
}

fn wait_until_sent(server: &Server) {
    eventually("all pushes are sent", || queued(server) == 0);
}

fn titles(apns: &FakeApns) -> Vec<String> {
    let title = |push: &ReceivedPush| push.body["aps"]["alert"]["title"].as_str().unwrap().to_owned();
    apns.pushes().iter().map(title).collect()
}

#[test]
fn an_app_is_registered_moved_listed_and_removed() {
    let apns = FakeApns::start();
    let server = apns.configure(Setup::default()).start();
    let (one, other) = (server.sign_in("13800138000"), server.sign_in("13800138001"));
    let list = |user: &Caller| server.get("/api/v1/devices").by(user).send().expect(200).json()["items"].clone();
    let first = register(&server, &one, "apns", &token(1)).send().expect(200).json();
    assert_eq!(first["service"], "apns");
    // The same app again is the same device, and no answer repeats the token.
    let again = register(&server, &one, "apns", &token(1)).send().expect(200);
    assert_eq!(again.json()["id"], first["id"]);
    assert!(!again.text().contains(&token(1)));
    assert_eq!(list(&one), json!([again.json()]));
    // Another user on the same phone takes the app over.
    register(&server, &other, "apns", &token(1)).send().expect(200);
    assert_eq!((list(&one), list(&other).as_array().unwrap().len()), (json!([]), 1));
    let path = format!("/api/v1/devices/{}", list(&other)[0]["id"].as_str().unwrap());
    server.delete(&path).by(&one).send().expect_problem(404, "not_found");
    server.delete(&path).by(&other).send().expect(204);
    server.delete(&path).by(&other).send().expect_problem(404, "not_found");
    assert_eq!(devices(&server), 0);
    // A changed token of an app replaces the old one.
    for number in [2, 3] {
        register(&server, &one, "apns", &token(number)).send().expect(200);
    }
    assert_eq!(server.value::<String>("select token from push_devices"), token(3));
    // A service that is not configured, and texts that are no tokens.
    register(&server, &one, "fcm", "abc").send().expect_problem(409, "not_configured");
    for wrong in ["", "zz", "a/../b", &"ab".repeat(2000)] {
        register(&server, &one, "apns", wrong).send().expect_problem(422, "invalid_parameters");
    }
    register(&server, &one, "pager", &token(1)).send().expect_problem(422, "invalid_parameters");
}

#[test]
fn a_notification_reaches_iphones_signed_and_complete() {
    let apns = FakeApns::start();
    let server = apns.configure(Setup::default()).start();
    let (user, key) = (server.sign_in("13800138000"), server.api_key("tests"));
    register(&server, &user, "apns", &token(1)).send().expect(200);
    let id = notify(&server, &key, &user, "the title");
    wait_until_sent(&server);
    let push = apns.pushes().pop().unwrap();
    assert_eq!((push.status, push.token.as_str()), (200, token(1).as_str()));
    let header = |name: &str| push.headers[name].as_str();
    assert_eq!((header("apns-topic"), header("apns-push-type")), (TOPIC, "alert"));
    assert_eq!((header("apns-collapse-id"), header("apns-priority")), ("activity", "5"));
    assert_eq!(header("apns-id").len(), 36);
    assert!(header("apns-expiration").parse::<u64>().unwrap() > 1_760_000_000);
    let expected = json!({
        "aps": {
            "alert": { "title": "the title", "body": "the body" },
            "badge": 1, "sound": "default", "thread-id": "activity",
        },
        "notificationId": id, "kind": "activity",
    });
    assert_eq!(push.body, expected);
    // Many pushes use one connection and one signed token.
    for number in 0..5 {
        notify(&server, &key, &user, &format!("title {number}"));
        wait_until_sent(&server);
    }
    let pushes = apns.pushes();
    assert_eq!((pushes.len(), apns.connections()), (6, 1));
    assert!(pushes.iter().all(|push| push.headers["authorization"] == pushes[0].headers["authorization"]));
    let log = server.lines().join("\n");
    assert!(!log.contains(&token(1)) && !log.contains("bearer") && !log.contains("the title"), "{log}");
}

#[test]
fn a_server_that_closes_connections_loses_no_push() {
    let apns = FakeApns::start();
    apns.close_after(1);
    let server = apns.configure(Setup::default()).start();
    let (user, key) = (server.sign_in("13800138000"), server.api_key("tests"));
    register(&server, &user, "apns", &token(1)).send().expect(200);
    for number in 0..4 {
        notify(&server, &key, &user, &format!("{number}"));
        wait_until_sent(&server);
    }
    assert_eq!(titles(&apns), ["0", "1", "2", "3"]);
    assert_eq!(apns.connections(), 4);
}

#[test]
fn dead_tokens_are_removed() {
    let apns = FakeApns::start();
    let server = apns.configure(Setup::default()).start();
    let key = server.api_key("tests");
    let answers = [
        (1, 410, json!({ "reason": "Unregistered", "timestamp": 9_999_999_999_999_i64 }), 0),
        // It was registered again after Apple saw it dead.
        (2, 410, json!({ "reason": "Unregistered", "timestamp": 1_700_000_000_000_i64 }), 1),
        (3, 400, json!({ "reason": "BadDeviceToken" }), 1),
        (4, 400, json!({ "reason": "PayloadEmpty" }), 1),
    ];
    for (number, status, body, left) in answers {
        let user = server.sign_in(&format!("1380013800{number}"));
        apns.answer(&token(number), status, body);
        register(&server, &user, "apns", &token(number)).send().expect(200);
        notify(&server, &key, &user, "x");
        eventually("the push is tried", || apns.pushes().iter().any(|push| push.token == token(number)));
        if number == 2 {
            // The push stays, and goes again later.
            server.edit("delete from push_queue");
        }
        let found = format!("select count(*) from push_devices where token = '{}'", token(number));
        eventually("the outcome is stored", || queued(&server) == 0 && server.value::<i64>(&found) == left);
    }
}

#[test]
fn a_refused_token_is_removed_after_a_day_if_others_are_accepted() {
    let apns = FakeApns::start();
    let server = apns.configure(Setup::default()).start();
    let key = server.api_key("tests");
    let (refused, good) = (server.sign_in("13800138001"), server.sign_in("13800138002"));
    register(&server, &refused, "apns", &token(1)).send().expect(200);
    register(&server, &good, "apns", &token(2)).send().expect(200);
    apns.answer(&token(1), 400, json!({ "reason": "BadDeviceToken" }));
    let notify = |user: &Caller| {
        notify(&server, &key, user, "x");
        wait_until_sent(&server);
    };
    let is_refused = || server.value::<i64>("select count(refused_at) from push_devices");
    notify(&refused);
    notify(&refused);
    assert_eq!((devices(&server), is_refused()), (2, 1));
    let later = "update push_devices set refused_at = refused_at - 25 * 3600000";
    server.edit(later);
    // Nothing was accepted since the start, so that the settings may be wrong.
    notify(&refused);
    assert_eq!((devices(&server), is_refused()), (2, 1));
    // A token that is accepted again starts anew.
    apns.answer(&token(1), 200, json!({}));
    notify(&refused);
    assert_eq!(is_refused(), 0);
    apns.answer(&token(1), 400, json!({ "reason": "BadDeviceToken" }));
    notify(&refused);
    notify(&good);
    notify(&refused);
    assert_eq!((devices(&server), is_refused()), (2, 1));
    server.edit(later);
    notify(&refused);
    assert_eq!(server.value::<String>("select token from push_devices"), token(2));
}

#[test]
fn a_refusal_of_most_devices_of_a_broadcast_is_a_fault_of_the_settings() {
    let apns = FakeApns::start();
    let alerts = FakeProvider::with_handler(|_| Reply::status(200));
    let setup = Setup::default()
        .with_fast_jobs()
        .with("ALERTS_WEBHOOK_URL", format!("{}/hook", alerts.url()))
        .with("ALERTS_WEBHOOK_SECRET", "the secret of the alerts");
    let server = apns.configure(setup).start();
    let key = server.api_key("tests");
    for number in 1..=5 {
        let user = server.sign_in(&format!("1380013800{number}"));
        register(&server, &user, "apns", &token(number)).send().expect(200);
        apns.answer(&token(number), 400, json!({ "reason": "DeviceTokenNotForTopic" }));
    }
    server.edit("update push_devices set refused_at = 1");
    broadcast(&server, &key, "to all", "promotion");
    eventually("it is tried", || server.value::<i64>("select count(*) from push_queue where attempts = 1") == 5);
    assert_eq!(devices(&server), 5);
    eventually("operators are alerted", || {
        alerts.requests().iter().map(ReceivedRequest::json).any(|alert| {
            alert["rule"] == "provider_down:push apns"
                && alert["detail"].as_str().is_some_and(|detail| detail.contains("DeviceTokenNotForTopic"))
        })
    });
    // The pushes arrive once the settings are corrected.
    for number in 1..=5 {
        apns.answer(&token(number), 200, json!({}));
    }
    server.edit("update push_queue set due_at = 0");
    eventually("all pushes arrive", || {
        server.edit("update push_queue set due_at = 0");
        queued(&server) == 0
    });
    assert_eq!(server.value::<i64>("select count(refused_at) from push_devices"), 0);
}

#[test]
fn an_outage_delays_pushes_and_a_newer_one_replaces_an_older() {
    let apns = FakeApns::start();
    let server = apns.configure(Setup::default()).start();
    let (user, key) = (server.sign_in("13800138000"), server.api_key("tests"));
    register(&server, &user, "apns", &token(1)).send().expect(200);
    apns.fail(Some((503, json!({ "reason": "ServiceUnavailable" }))));
    notify(&server, &key, &user, "old");
    eventually("it is tried", || server.value::<i64>("select coalesce(max(attempts), 0) from push_queue") == 1);
    let wait: i64 = server.value("select due_at - queued_at from push_queue");
    assert!((30_000..60_000).contains(&wait), "{wait}");
    apns.fail(None);
    notify(&server, &key, &user, "new");
    broadcast(&server, &key, "other kind", "promotion");
    wait_until_sent(&server);
    let mut sent = titles(&apns);
    sent.sort_unstable();
    assert_eq!(sent, ["new", "old", "other kind"]);
}

#[test]
fn pushes_follow_preferences_reading_and_the_sign_in() {
    let apns = FakeApns::start();
    let server = apns.configure(Setup::default()).start();
    let (user, key) = (server.sign_in("13800138000"), server.api_key("tests"));
    register(&server, &user, "apns", &token(1)).send().expect(200);
    let prefer = |body: Value| server.patch("/api/v1/preferences").by(&user).json(&body).send().expect(200).json();
    // A kind that is switched off.
    prefer(json!({ "notifications": { "activity": false } }));
    notify(&server, &key, &user, "off");
    wait_until_sent(&server);
    prefer(json!({ "notifications": { "activity": true } }));
    // Quiet hours around now, in the zone of the user.
    let hour: i64 = server.value("select unixepoch() / 3600 % 24");
    let quiet = format!("{:02}:00-{:02}:00", (hour + 23) % 24, (hour + 2) % 24);
    assert_eq!(prefer(json!({ "timeZone": "UTC", "quietHours": quiet }))["quietHours"], json!(quiet));
    notify(&server, &key, &user, "quiet");
    eventually("it waits", || server.value::<i64>("select max(due_at - queued_at) from push_queue") > 0);
    let (attempts, end): (i64, i64) =
        (server.value("select attempts from push_queue"), server.value("select due_at % 3600000 from push_queue"));
    assert_eq!((attempts, end), (0, 0));
    assert!(apns.pushes().is_empty());
    assert_eq!(prefer(json!({ "quietHours": "" }))["quietHours"], Value::Null);
    server.edit("update push_queue set due_at = 0");
    wait_until_sent(&server);
    assert_eq!(titles(&apns), ["quiet"]);
    // One that was read meanwhile.
    apns.fail(Some((503, json!({}))));
    let id = notify(&server, &key, &user, "read");
    eventually("it is tried", || server.value::<i64>("select coalesce(max(attempts), 0) from push_queue") == 1);
    apns.fail(None);
    server.patch(&format!("/api/v1/notifications/{id}/read")).by(&user).send().expect(200);
    server.edit("update push_queue set due_at = 0");
    wait_until_sent(&server);
    assert_eq!(titles(&apns), ["quiet", "read"]);
    // After the sign-out the app gets nothing more, and its token is forgotten.
    server.post("/api/v1/auth/logout").by(&user).send().expect(200);
    notify(&server, &key, &user, "gone");
    eventually("the app is removed", || devices(&server) == 0);
    assert_eq!((titles(&apns).len(), queued(&server)), (2, 0));
}

#[test]
fn a_broadcast_reaches_each_app_once_across_kills() {
    const USERS: u32 = 1_300;
    let apns = FakeApns::start();
    let setup = || apns.configure(Setup::default());
    let mut server = setup().in_own_process().start();
    let (user, key) = (server.sign_in("13800138000"), server.api_key("tests"));
    register(&server, &user, "apns", &token(0)).send().expect(200);
    // The other apps belong to the same sign-in, which is enough to be pushed to.
    server.edit(&format!(
        "insert into push_devices (user_id, family, service, token, created_at, updated_at) \
         with recursive number (n) as (select 1 union all select n + 1 from number where n < {USERS}) \
         select user_id, family, service, printf('%064x', n), 1, 1 from number, (select * from push_devices) as first"
    ));
    broadcast(&server, &key, "to all", "system");
    for _ in 0..6 {
        std::thread::sleep(std::time::Duration::from_millis(150));
        server = server.crash_and_restart(setup());
    }
    wait_until_sent(&server);
    let pushes = apns.pushes();
    let phones: std::collections::HashSet<_> = pushes.iter().map(|push| push.token.clone()).collect();
    assert_eq!(phones.len(), USERS as usize + 1);
    // A kill repeats at most the batch that was under way, with the same ids.
    assert!(pushes.len() <= phones.len() + 6 * 100, "{}", pushes.len());
    let ids: std::collections::HashSet<_> = pushes.iter().map(|push| push.headers["apns-id"].clone()).collect();
    assert_eq!(ids.len(), phones.len());
}

#[test]
fn the_doctor_checks_credentials_and_metrics_count() {
    let apns = FakeApns::start();
    let setup = || apns.configure(Setup::default()).with_metrics();
    let mut server = setup().start();
    let (user, key) = (server.sign_in("13800138000"), server.api_key("tests"));
    register(&server, &user, "apns", &token(1)).send().expect(200);
    notify(&server, &key, &user, "x");
    wait_until_sent(&server);
    let page = Request::new("GET", &server.metrics()).send().expect(200).text();
    for line in ["yarrow_pushes_sent_total 1", "yarrow_push_devices 1", "yarrow_pushes_queued 0"] {
        assert!(page.contains(line), "{line}: {page}");
    }
    let verdict = |settings: &Setup| {
        let found = server.command_with(&settings.variables(), &["doctor", "--listen", "127.0.0.1:0"]).json();
        let checks = found["checks"].as_array().unwrap();
        checks.iter().find(|check| check["group"] == "providers" && check["name"] == "push").unwrap()["verdict"].clone()
    };
    assert_eq!(verdict(&setup()), "pass");
    assert_eq!(verdict(&setup().with("PUSH_APNS_TEAM_ID", "OTHER")), "fail");
}

/// Starts a Firebase that checks assertions and access tokens.
fn firebase() -> (FakeProvider, Arc<Mutex<usize>>) {
    let tokens = Arc::new(Mutex::new(0));
    let issued = Arc::clone(&tokens);
    let provider = FakeProvider::with_handler(move |request| {
        if request.target == "/token" {
            if !is_assertion_valid(request) {
                return Reply::json(r#"{"error":"invalid_grant"}"#).with_status(400);
            }
            *issued.lock().unwrap() += 1;
            let token = format!("access-{}", issued.lock().unwrap());
            return Reply::json(json!({ "access_token": token, "expires_in": 3599 }).to_string());
        }
        let current = format!("Bearer access-{}", issued.lock().unwrap());
        if request.header("authorization") != Some(&current) {
            return Reply::json(r#"{"error":{"code":401,"status":"UNAUTHENTICATED"}}"#).with_status(401);
        }
        if request.json()["message"]["token"] == "dead" {
            let details =
                r#"[{"@type":"type.googleapis.com/google.firebase.fcm.v1.FcmError","errorCode":"UNREGISTERED"}]"#;
            let body = format!(r#"{{"error":{{"code":404,"status":"NOT_FOUND","details":{details}}}}}"#);
            return Reply::json(body).with_status(404);
        }
        Reply::json(r#"{"name":"projects/project-1/messages/0:1"}"#)
    });
    (provider, tokens)
}

fn is_assertion_valid(request: &ReceivedRequest) -> bool {
    let body = String::from_utf8(request.body.clone()).unwrap();
    let assertion = body.split_once("&assertion=").unwrap().1;
    let (signed, signature) = assertion.rsplit_once('.').unwrap();
    let claims = URL_SAFE_NO_PAD.decode(signed.split('.').nth(1).unwrap()).unwrap();
    let claims: Value = serde_json::from_slice(&claims).unwrap();
    let pem = published_google()["keys"]["google_service_account"]["public_spki_pem"].as_str().unwrap().to_owned();
    let der: String = pem.lines().filter(|line| !line.starts_with("---")).collect();
    let der = base64::engine::general_purpose::STANDARD.decode(der).unwrap();
    // The key inside of the outer structure, which has 24 bytes for a key of 2048 bits.
    let key = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, &der[24..]);
    key.verify(signed.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap()).is_ok()
        && claims["scope"] == "https://www.googleapis.com/auth/firebase.messaging"
        && claims["aud"] == "https://oauth2.googleapis.com/token"
}

#[test]
fn firebase_gets_messages_with_an_access_token_that_is_kept() {
    let (firebase, tokens) = firebase();
    let mut account = published_google()["service_account"]["info"].clone();
    account["project_id"] = json!("project-1");
    let server = Setup::default()
        .with("PUSH_FCM_SERVICE_ACCOUNT", account)
        .with("PUSH_FCM_BASE_URL", firebase.url())
        .with("PUSH_FCM_TOKEN_URL", format!("{}/token", firebase.url()))
        .start();
    let (user, key) = (server.sign_in("13800138000"), server.api_key("tests"));
    register(&server, &user, "fcm", "fcm:token-1").send().expect(200);
    for title in ["one", "two"] {
        notify(&server, &key, &user, title);
        wait_until_sent(&server);
    }
    assert_eq!(*tokens.lock().unwrap(), 1);
    let sent = firebase.requests().pop().unwrap();
    assert_eq!(sent.target, "/v1/projects/project-1/messages:send");
    let message = &sent.json()["message"];
    assert_eq!((&message["token"], &message["notification"]["title"]), (&json!("fcm:token-1"), &json!("two")));
    assert_eq!(
        (&message["android"]["collapse_key"], &message["data"]["kind"]),
        (&json!("activity"), &json!("activity"))
    );
    assert!(message["android"]["ttl"].as_str().unwrap().ends_with('s'));
    // Google revokes the token: the push goes with a new one.
    *tokens.lock().unwrap() += 1;
    notify(&server, &key, &user, "three");
    wait_until_sent(&server);
    assert_eq!(*tokens.lock().unwrap(), 3);
    register(&server, &user, "fcm", "dead").send().expect(200);
    notify(&server, &key, &user, "four");
    eventually("the dead token is removed", || devices(&server) == 0);
}

#[test]
fn a_described_endpoint_gets_messages() {
    let gateway = FakeProvider::with_handler(|request| match request.header("x-token") {
        Some("dead") => Reply::status(410),
        _ => Reply::json(r#"{"ok":true}"#),
    });
    let server = Setup::default()
        .with("PUSH_HTTP_URL", format!("{}/push", gateway.url()))
        .with("PUSH_HTTP_HEADERS", "content-type=application/json,x-token={token}")
        .with("PUSH_HTTP_BODY", r#"{"to":"{token}","title":"{title}","body":"{body}","badge":"{unread}","id":"{id}"}"#)
        .with("PUSH_HTTP_ACCEPTED_MEMBER", "/ok")
        .with("PUSH_HTTP_ACCEPTED_VALUES", "true")
        .with("PUSH_SHOWS_BODY", "false")
        .start();
    let (user, key) = (server.sign_in("13800138000"), server.api_key("tests"));
    register(&server, &user, "http", "hms-1").send().expect(200);
    notify(&server, &key, &user, "a \"title\"");
    wait_until_sent(&server);
    let sent = gateway.only_request().json();
    assert_eq!((&sent["to"], &sent["title"], &sent["body"]), (&json!("hms-1"), &json!("a \"title\""), &json!("")));
    assert_eq!(sent["badge"], "1");
    register(&server, &user, "http", "dead").send().expect(200);
    notify(&server, &key, &user, "x");
    eventually("the dead token is removed", || devices(&server) == 0);
}
