//! `/admin/login`: sign-in, failures and session lifetime.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use crate::support::{CommandOutput, Response, Server, Setup, eventually, raw::RawConnection};

const PASSWORD: &str = "correct horse battery staple";

fn login(server: &Server, name: &str, password: &str) -> Response {
    server.post("/admin/login").json(&json!({ "name": name, "password": password })).send()
}

fn sync(server: &Server, token: &str) -> Response {
    server.post("/coin/sync").token(token).send()
}

#[test]
fn an_administrator_signs_in_and_operates() {
    let server = Setup::default().start();
    let token = server.admin("root", PASSWORD);
    assert!(token.starts_with("ys_"));
    sync(&server, &token).expect(200);
    server.put("/user/profile").token(&token).send().expect_problem(403, "forbidden");
    let database = server.database();
    let stored: String = database.query_row("select password_hash from admins", (), |row| row.get(0)).unwrap();
    assert!(stored.starts_with("$argon2id$"), "{stored}");
    let hash: Vec<u8> = database.query_row("select token_sha256 from admin_tokens", (), |row| row.get(0)).unwrap();
    assert_eq!(hash.len(), 32);
}

#[test]
fn three_failures_lock_sign_in_for_a_while() {
    let server = Setup::default().start();
    server.admin("root", PASSWORD);
    for name in ["root", "root", "nobody"] {
        login(&server, name, "wrong password").expect_problem(401, "invalid_credentials");
    }
    // Only time unlocks it, not another name or the right password.
    for (name, password) in [("root", PASSWORD), ("other", PASSWORD)] {
        let refused = login(&server, name, password).expect_problem(429, "too_many_requests");
        let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
        assert!((200..=301).contains(&wait), "{wait}");
    }
    server.database().execute("update admin_attempts set tried_at = tried_at - 300000", ()).unwrap();
    login(&server, "root", PASSWORD).expect(200);
}

#[test]
fn counts_failures_by_name_and_by_network() {
    let server = Setup::default().start();
    server.admin("root", PASSWORD);
    server.admin("other", PASSWORD);
    let login = |name: &str, password: &str, from: &str| {
        let body = json!({ "name": name, "password": password });
        server.post("/admin/login").header("x-forwarded-for", from).json(&body).send()
    };
    for from in ["203.0.113.1", "203.0.113.2", "2001:db8:1::1"] {
        login("root", "wrong password", from).expect_problem(401, "invalid_credentials");
    }
    login("root", PASSWORD, "203.0.113.3").expect_problem(429, "too_many_requests");
    login("other", PASSWORD, "203.0.113.3").expect(200);
    // All addresses of a /64 count as one.
    for (name, from) in [("anna", "2001:db8:2::1"), ("berta", "2001:db8:2::2"), ("carla", "2001:db8:2:0:9::3")] {
        login(name, "wrong password", from).expect_problem(401, "invalid_credentials");
    }
    login("other", PASSWORD, "2001:db8:2:0:ffff::4").expect_problem(429, "too_many_requests");
    login("other", PASSWORD, "2001:db8:2:1::1").expect(200);
}

#[test]
fn counts_concurrent_guesses_individually() {
    let server = Setup::default().start();
    server.admin("root", PASSWORD);
    let statuses: Vec<_> = std::thread::scope(|scope| {
        let calls: Vec<_> = (0..12).map(|_| scope.spawn(|| login(&server, "root", "wrong password").status)).collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    assert!(statuses.iter().filter(|status| **status == 401).count() <= 3, "{statuses:?}");
    assert!(statuses.iter().all(|status| [401, 429, 503].contains(status)), "{statuses:?}");
}

#[test]
fn parallel_sign_ins_use_little_memory() {
    const MIB: u64 = 1 << 20;
    let server = Setup::default().in_own_process().start();
    let before = server.memory();
    let attempt = |number: usize| {
        let body = json!({ "name": format!("nobody-{number}"), "password": "wrong password" }).to_string();
        let mut wire = RawConnection::to(&server);
        // Three from each /64 of a /56.
        let from = format!("2001:db8:0:{:x}::1", number / 3);
        assert!(wire.send(&format!(
            "POST /admin/login HTTP/1.1\r\nhost: yarrow\r\nx-forwarded-for: {from}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )));
        wire
    };
    let taken = server.memory_taken(|_| {
        let mut wires: Vec<_> = (0..768).map(attempt).collect();
        for wire in &mut wires {
            let (head, _) = wire.receive().expect("no response");
            assert!(["401", "429", "503"].contains(&&head[9..12]), "{head}");
        }
    });
    assert!(before + taken < 100 * MIB, "{before} bytes and {taken} more");
    eventually("the memory is given back", || server.memory() < 40 * MIB);
}

fn login_from(server: &Server, from: &str, name: &str, password: &str) -> Response {
    let body = json!({ "name": name, "password": password });
    server.post("/admin/login").header("x-forwarded-for", from).json(&body).send()
}

#[test]
fn a_network_that_floods_the_sign_in_keeps_no_other_one_waiting() {
    // Without the limit on failures, so that the flood goes on.
    let server = Setup::default().with("ADMIN_ATTEMPTS", 1_000_000).start();
    let session = server.admin("root", PASSWORD);
    let cookie = format!("__Host-yarrow-console={session}");
    let is_done = AtomicBool::new(false);
    let flood = |connection: usize| {
        let mut rejected = 0;
        for number in 0.. {
            if is_done.load(Ordering::Relaxed) {
                break;
            }
            let from = format!("2001:db8:7:{connection:x}{number:02x}::1");
            rejected += usize::from(
                login_from(&server, &from, &format!("x{connection}.{number}"), "wrong password").status == 503,
            );
        }
        rejected
    };
    std::thread::scope(|scope| {
        let flood = &flood;
        let floods: Vec<_> = (0..12).map(|connection| scope.spawn(move || flood(connection))).collect();
        for _ in 0..20 {
            login_from(&server, "203.0.113.9", "root", PASSWORD).expect(200);
        }
        server.edit("update admin_tokens set proved_at = proved_at - 600001");
        let page = server.get("/admin/console/releases").header("cookie", &cookie).send().expect(200).text();
        let form = [("csrf", super::console::hidden(&page, "csrf")), ("password", PASSWORD.to_owned())];
        let form: Vec<_> = form.iter().map(|(name, value)| (*name, value.as_str())).collect();
        server.post("/admin/console/releases").header("cookie", &cookie).form(&form).send().expect(422);
        is_done.store(true, Ordering::Relaxed);
        let rejected: usize = floods.into_iter().map(|flood| flood.join().unwrap()).sum();
        assert!(rejected > 0, "the flood never filled its part of the queue");
    });
}

#[test]
fn limits_the_networks_around_an_administrator() {
    let server = Setup::default().start();
    server.admin("root", PASSWORD);
    let first_refusal = |address: &dyn Fn(u32) -> String| {
        (0..60).find(|number| {
            login_from(&server, &address(*number), &format!("x{number}"), "wrong password").status == 429
        })
    };
    assert_eq!(first_refusal(&|number| format!("198.51.100.{number}")), Some(12));
    assert_eq!(first_refusal(&|number| format!("2001:db8:1:{:x}::1", 0x100 + number)), Some(12));
    assert_eq!(first_refusal(&|number| format!("2001:db8:2:{:x}::1", number << 8)), Some(24));
    login_from(&server, "198.51.101.1", "root", PASSWORD).expect(200);
}

#[test]
fn strangers_cannot_use_up_the_proofs_of_a_session() {
    let server = Setup::default().start();
    let session = server.admin("root", PASSWORD);
    let cookie = format!("__Host-yarrow-console={session}");
    for _ in 0..3 {
        login_from(&server, "198.51.100.1", "root", "wrong password").expect(401);
    }
    server.edit("update admin_tokens set proved_at = proved_at - 600001");
    let page = server.get("/admin/console/releases").header("cookie", &cookie).send().expect(200).text();
    let csrf = super::console::hidden(&page, "csrf");
    let prove = |password: &str| {
        let form = [("csrf", csrf.as_str()), ("password", password)];
        server.post("/admin/console/releases").header("cookie", &cookie).form(&form).send().status
    };
    assert_eq!(prove(PASSWORD), 422);
    server.edit("update admin_tokens set proved_at = proved_at - 600001");
    let tried = [(); 3].map(|()| prove("a wrong password"));
    assert_eq!((tried, prove(PASSWORD)), ([401; 3], 429));
}

#[test]
fn successful_sign_ins_use_no_attempts() {
    let server = Setup::default().start();
    server.admin("root", PASSWORD);
    for _ in 0..4 {
        login(&server, "root", PASSWORD).expect(200);
    }
}

#[test]
fn sessions_expire_by_age_and_idle_time() {
    let server = Setup::default().start();
    let (idle, old) = (server.admin("idle", PASSWORD), server.admin("old", PASSWORD));
    let age = |column: &str, name: &str, minutes: i64| {
        let sql = format!(
            "update admin_tokens set {column} = {column} - ?1 * 60000 \
             where admin_id = (select id from admins where name = ?2)"
        );
        server.database().execute(&sql, (minutes, name)).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(100));
    };
    age("last_used_at", "idle", 29);
    sync(&server, &idle).expect(200);
    age("last_used_at", "idle", 29);
    sync(&server, &idle).expect(200);
    age("last_used_at", "idle", 31);
    sync(&server, &idle).expect_problem(401, "unauthenticated");
    sync(&server, &old).expect(200);
    age("expires_at", "old", 8 * 60);
    sync(&server, &old).expect_problem(401, "unauthenticated");
}

#[test]
fn rejects_invalid_names_and_passwords() {
    let directory = tempfile::tempdir().unwrap();
    let create = |name: &str, password: &str| {
        CommandOutput::run(directory.path(), &["admin", "create", name, "--password-stdin"], &format!("{password}\n"))
    };
    create("root", "too short").expect(2);
    create("ro ot", PASSWORD).expect(2);
    create("", PASSWORD).expect(2);
    create("root", PASSWORD).expect(0);
    assert_eq!(create("root", PASSWORD).expect(1).problem()["code"], "already_exists");
    CommandOutput::run(directory.path(), &["admin", "create", "other"], "").expect(2);
    let listed = CommandOutput::run(directory.path(), &["admin", "list"], "").expect(0).json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
    assert_eq!(listed["items"][0]["name"], "root");
}

#[test]
fn no_administrator_exists_by_default() {
    let server = Setup::default().start();
    for (name, password) in [("admin", "admin"), ("root", "root")] {
        login(&server, name, password).expect_problem(401, "invalid_credentials");
    }
    let rows: i64 = server.database().query_row("select count(*) from admins", (), |row| row.get(0)).unwrap();
    assert_eq!(rows, 0);
}

#[test]
fn a_session_ends_at_sign_out_and_with_its_administrator() {
    let server = Setup::default().start();
    let (leaving, removed) = (server.admin("leaving", PASSWORD), server.admin("removed", PASSWORD));
    server.post("/admin/logout").token(&leaving).send().expect(200);
    sync(&server, &leaving).expect_problem(401, "unauthenticated");
    sync(&server, &removed).expect(200);
    server.command(&["admin", "remove", "removed"]).expect(2);
    server.command(&["admin", "remove", "removed", "--yes"]).expect(0);
    std::thread::sleep(std::time::Duration::from_millis(100));
    sync(&server, &removed).expect_problem(401, "unauthenticated");
    login(&server, "removed", PASSWORD).expect_problem(401, "invalid_credentials");
    server.command(&["admin", "remove", "removed", "--yes"]).expect(4);
    // Only its own command revokes a key.
    let key = server.api_key("shop");
    server.post("/admin/logout").token(&key).send().expect_problem(403, "forbidden");
    sync(&server, &key).expect(200);
}

#[test]
fn trims_spaces_around_a_password() {
    let server = Setup::default().start();
    let arguments = ["admin", "create", "root", "--password-stdin"];
    CommandOutput::run(server.directory(), &arguments, &format!("  {PASSWORD} \r\n")).expect(0);
    login(&server, "root", PASSWORD).expect(200);
    login(&server, "root", &format!(" {PASSWORD}  ")).expect(200);
}

#[test]
fn sensitive_acts_extend_the_proof_up_to_eight_hours() {
    let server = Setup::default().start();
    let session = server.admin("root", PASSWORD);
    let act = || server.delete("/admin/api-keys/nothing").token(&session).json(&json!({ "reason": "r" })).send();
    let age = |column: &str, milliseconds: i64| {
        server.edit(&format!("update admin_tokens set {column} = {column} - {milliseconds}"));
    };
    // Each act is nine minutes after the last one.
    for _ in 0..3 {
        age("proved_at", 540_000);
        act().expect(404);
    }
    server.get("/admin/administrators").token(&session).send().expect(200);
    age("proved_at", 600_001);
    act().expect_problem(403, "step_up_required");
    age("proved_at", -600_001);
    age("proof_began_at", 8 * 3_600_000);
    act().expect_problem(403, "step_up_required");
}

#[test]
fn sensitive_acts_of_sessions_need_a_recent_sign_in() {
    let server = Setup::default().start();
    let session = server.admin("root", PASSWORD);
    let key = server.api_key("shop");
    let user = server.sign_in("13800138000");
    let phone = format!("/admin/users/{}/phone-number", user.user_id);
    let acts: [(&str, &str, serde_json::Value); 9] = [
        ("PUT", &phone, json!({ "phoneNumber": "13800138001", "reason": "lost phone" })),
        ("POST", "/admin/payments/nothing/settle", json!({ "decision": "credit", "reason": "r" })),
        ("POST", "/admin/payments/nothing/refund", json!({ "amount": "1.00", "reason": "r" })),
        ("POST", "/admin/administrators", json!({ "name": "bob", "password": "another long password" })),
        ("PATCH", "/admin/administrators/bob", json!({ "role": "support", "reason": "r" })),
        ("DELETE", "/admin/administrators/bob", json!({ "reason": "r" })),
        ("POST", "/admin/api-keys", json!({ "label": "new", "role": "support", "reason": "r" })),
        ("PATCH", "/admin/api-keys/new", json!({ "isSuspended": true, "reason": "r" })),
        ("DELETE", "/admin/api-keys/new", json!({ "reason": "r" })),
    ];
    let send = |token: &str, (method, path, body): &(&str, &str, serde_json::Value)| {
        server.request(method, path).token(token).json(body).send()
    };
    server.edit("update admin_tokens set proved_at = proved_at - 600001");
    for act in &acts {
        send(&session, act).expect_problem(403, "step_up_required");
    }
    assert_eq!(server.value::<String>("select phone_number from users"), "13800138000");
    // Other acts need none, and neither do programs.
    server.get("/admin/administrators").token(&session).send().expect(200);
    assert_ne!(send(&key, &acts[0]).status, 403);
    // A new sign-in is a proof.
    let body = json!({ "name": "root", "password": PASSWORD });
    let signed_in = server.post("/admin/login").json(&body).send().expect(200).json();
    for act in &acts {
        assert_ne!(send(signed_in["token"].as_str().unwrap(), act).status, 403, "{act:?}");
    }
}
