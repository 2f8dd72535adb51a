//! Allowed networks, the admin listener, and ending sessions by command.

use serde_json::json;

use crate::support::{Binary, CommandOutput, Request, Response, Server, Setup, raw::RawConnection};

const PASSWORD: &str = "correct horse battery staple";

fn login(server: &Server, from: &str) -> Response {
    let body = json!({ "name": "root", "password": PASSWORD });
    server.post("/admin/login").header("x-forwarded-for", from).json(&body).send()
}

#[test]
fn administrators_use_allowed_networks_only_and_commands_change_them() {
    let server = Setup::default().start();
    let token = server.admin("root", PASSWORD);
    let key = server.api_key("shop");
    let user = server.sign_in("13800138000");
    let sync = |credential: &str, from: &str| {
        server.post("/coin/sync").token(credential).header("x-forwarded-for", from).send()
    };
    assert_eq!(server.command(&["admin", "networks", "list"]).expect(0).json(), json!([]));
    for wrong in ["nowhere", "10.0.0.0/33", ""] {
        server.command(&["admin", "networks", "allow", wrong]).expect(2);
    }
    server.command(&["admin", "networks", "allow", "203.0.113.9/24"]).expect(0);
    let list = server.command(&["admin", "networks", "allow", "2001:db8::1"]).expect(0).json();
    assert_eq!(list, json!(["203.0.113.0/24", "2001:db8::1/128"]));
    std::thread::sleep(std::time::Duration::from_millis(100));

    for credential in [&token, &key] {
        sync(credential, "203.0.113.77").expect(200);
        sync(credential, "2001:db8::1").expect(200);
        sync(credential, "198.51.100.1").expect_problem(403, "address_not_allowed");
        server.get("/notifications/latest").token(credential).send().expect_problem(403, "address_not_allowed");
    }
    login(&server, "203.0.113.77").expect(200);
    // The password is not checked, and no attempt is counted.
    login(&server, "198.51.100.1").expect_problem(403, "address_not_allowed");
    assert_eq!(server.value::<i64>("select count(*) from admin_attempts"), 0);
    // Users may use any network.
    server.get("/coin/balance").by(&user).header("x-forwarded-for", "198.51.100.1").send().expect(200);

    server.command(&["admin", "networks", "disallow", "198.51.100.0/24"]).expect(4);
    server.command(&["admin", "networks", "disallow", "2001:db8::1"]).expect(0);
    std::thread::sleep(std::time::Duration::from_millis(100));
    sync(&token, "2001:db8::1").expect_problem(403, "address_not_allowed");
    server.command(&["admin", "networks", "clear"]).expect(0);
    std::thread::sleep(std::time::Duration::from_millis(100));
    sync(&token, "198.51.100.1").expect(200);
    assert_eq!(server.value::<i64>("select count(*) from audit where action like 'yarrow admin networks %'"), 4);
}

#[test]
fn an_unreadable_network_list_rejects_everybody() {
    let server = Setup::default().start();
    let token = server.admin("root", PASSWORD);
    server.edit("insert into settings (name, value, updated_at) values ('admin.networks', 'everywhere', 0)");
    server.post("/coin/sync").token(&token).send().expect_problem(500, "internal");
    server.command(&["admin", "networks", "clear"]).expect(0);
    std::thread::sleep(std::time::Duration::from_millis(100));
    server.post("/coin/sync").token(&token).send().expect(200);
}

#[test]
fn the_admin_listener_serves_admin_exclusively() {
    let mut server = Setup::default().with("SERVER_ADMIN_LISTEN", "127.0.0.1:0").start();
    let line = server.wait_for_line("yarrow serves /admin on http://");
    let address = line.rsplit("http://").next().unwrap().trim().to_owned();
    let create = ["admin", "create", "root", "--password-stdin"];
    CommandOutput::run(server.directory(), &create, &format!("{PASSWORD}\n")).expect(0);
    let body = json!({ "name": "root", "password": PASSWORD });
    for path in ["/admin/login", "/admin/logout"] {
        server.post(path).json(&body).send().expect_problem(404, "unknown_endpoint");
    }
    server.get("/admin/payments").send().expect_problem(404, "unknown_endpoint");
    let inside = |method: &str, path: &str| Request::new(method, &format!("http://{address}{path}"));
    let session = inside("POST", "/admin/login").json(&body).send().expect(200).json();
    let token = session["token"].as_str().unwrap();
    inside("GET", "/admin/payments").token(token).send().expect(200);
    inside("GET", "/admin/payments").send().expect_problem(401, "unauthenticated");
    // Administrator requests outside `/admin` need no second address.
    inside("POST", "/coin/sync").token(token).send().expect(200);
    inside("GET", "/readyz").send().expect(200);
    server.get("/readyz").send().expect(200);
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn an_address_in_use_prevents_the_start() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let directory = tempfile::tempdir().unwrap();
    let mut command = Binary::command();
    command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(directory.path().join("data"));
    let ended = command.env("YARROW_SERVER_ADMIN_LISTEN", taken.local_addr().unwrap().to_string()).output().unwrap();
    assert_eq!(ended.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&ended.stderr).contains("Cannot listen on"));
}

#[test]
fn commands_list_and_end_sessions() {
    let server = Setup::default().start();
    let (alice, bob) = (server.admin("alice", PASSWORD), server.admin("bob", PASSWORD));
    let list = || server.command(&["admin", "sessions", "list"]).expect(0).json();
    let sync = |token: &str| server.post("/coin/sync").token(token).send();
    let listed = list();
    assert_eq!(listed.as_array().unwrap().len(), 2);
    assert!(!listed.to_string().contains(&alice) && listed[0]["expiresAt"].is_string());
    let of_alice = listed.as_array().unwrap().iter().find(|session| session["name"] == "alice").unwrap();
    let id = of_alice["id"].as_str().unwrap();
    assert_eq!(id.len(), 12);
    server.command(&["admin", "sessions", "end", id]).expect(2);
    server.command(&["admin", "sessions", "end", id, "--yes"]).expect(0);
    server.command(&["admin", "sessions", "end", id, "--yes"]).expect(4);
    std::thread::sleep(std::time::Duration::from_millis(100));
    sync(&alice).expect_problem(401, "unauthenticated");
    sync(&bob).expect(200);
    let ended = server.command(&["admin", "sessions", "end", "bob", "--yes"]).expect(0).json();
    assert_eq!(ended["ended"], 1);
    std::thread::sleep(std::time::Duration::from_millis(100));
    sync(&bob).expect_problem(401, "unauthenticated");
    assert_eq!(list(), json!([]));
}

#[test]
fn a_new_password_ends_existing_sessions() {
    let server = Setup::default().start();
    let token = server.admin("root", PASSWORD);
    let change = |name: &str, password: &str| {
        let arguments = ["admin", "password", name, "--password-stdin"];
        CommandOutput::run(server.directory(), &arguments, &format!("{password}\n"))
    };
    change("root", "short").expect(2);
    change("nobody", "another horse battery").expect(4);
    change("root", "another horse battery").expect(0);
    std::thread::sleep(std::time::Duration::from_millis(100));
    server.post("/coin/sync").token(&token).send().expect_problem(401, "unauthenticated");
    login(&server, "127.0.0.1").expect_problem(401, "invalid_credentials");
    let body = json!({ "name": "root", "password": "another horse battery" });
    server.post("/admin/login").json(&body).send().expect(200);
}

#[test]
fn load_on_the_public_listener_does_not_block_administrators() {
    let setup = Setup::default().with("SERVER_ADMIN_LISTEN", "127.0.0.1:0").with("LIMITS_CONNECTIONS", 20);
    let mut server = setup.start();
    let line = server.wait_for_line("yarrow serves /admin on http://");
    let address = line.rsplit("http://").next().unwrap().trim().to_owned();
    let key = server.api_key("tests");
    let mut run_clients: Vec<_> = (0..20).map(|_| RawConnection::to(&server)).collect();
    run_clients.iter_mut().for_each(RawConnection::expect_health);
    assert_eq!(RawConnection::to(&server).read_to_end().0, "", "there was room for one more");
    Request::new("GET", &format!("http://{address}/admin/payments")).token(&key).send().expect(200);
}
