//! Requests that a browser sends for pages of other web sites.

use serde_json::json;

use crate::support::{Request, Server, Setup, raw};

const PASSWORD: &str = "correct horse battery staple";
const PHONE: &str = "13800138000";

/// The headers of a form that a page of another site posts, with and without fetch metadata.
const FOREIGN: [&[(&str, &str)]; 4] = [
    &[("sec-fetch-site", "cross-site"), ("origin", "https://evil.example")],
    &[("sec-fetch-site", "same-site"), ("origin", "https://other.example.com")],
    &[("origin", "https://evil.example")],
    &[("origin", "null")],
];

fn with(request: Request, headers: &[(&str, &str)]) -> Request {
    headers.iter().fold(request, |request, (name, value)| request.header(name, value))
}

#[test]
fn pages_of_other_sites_send_no_changes() {
    let server = Setup::default().start();
    server.admin("root", PASSWORD);
    for headers in FOREIGN {
        let form = |path: &str, pairs: &[(&str, &str)]| {
            with(server.post(path), headers).form(pairs).send().expect_problem(403, "forbidden");
        };
        form("/auth/send-code", &[("phoneNumber", PHONE)]);
        form("/auth/login", &[("phoneNumber", PHONE), ("code", "123456")]);
        form("/api/v1/auth/send-code", &[("email", "ada@example.com")]);
        form("/admin/login", &[("name", "root"), ("password", "wrong password")]);
        form("/feedback", &[("content", "hello")]);
        with(server.get("/healthz"), headers).send().expect(200);
    }
    // Neither budgets, nor attempts, nor lines that ban an address.
    assert_eq!(server.value::<i64>("select count(*) from code_sends"), 0);
    assert!(!server.lines().iter().any(|line| line.contains("auth_failed")));
    let right = json!({ "name": "root", "password": PASSWORD });
    server.post("/admin/login").json(&right).send().expect(200);
}

#[test]
fn own_pages_allowed_origins_and_apps_send_changes() {
    let setup = Setup::default().with("SERVER_PUBLIC_URL", "https://api.example.com");
    let server = setup.with("SERVER_ALLOWED_ORIGINS", "https://app.example.com, null").start();
    let own = format!("http://{}", server.address());
    for headers in [
        &[][..],
        &[("sec-fetch-site", "none")],
        &[("sec-fetch-site", "same-origin"), ("origin", "https://elsewhere.example.com")],
        &[("origin", &own)],
        &[("origin", "https://api.example.com")],
        &[("sec-fetch-site", "cross-site"), ("origin", "https://app.example.com")],
        &[("sec-fetch-site", "cross-site"), ("origin", "null")],
    ] {
        with(server.post("/auth/login"), headers).json(&json!({})).send().expect(422);
    }
}

/// Returns the status of a request with this `Host`.
fn status(address: &str, path: &str, host: &str) -> u16 {
    let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    raw::exchange(address.parse().unwrap(), request.as_bytes()).status
}

fn address_in(line: &str) -> String {
    line.rsplit("http://").next().unwrap().trim_end_matches("/metrics").to_owned()
}

#[test]
fn private_listeners_reject_foreign_hosts() {
    let setup = Setup::default().with_metrics().with("SERVER_ADMIN_LISTEN", "127.0.0.1:0");
    let setup = setup.with("SERVER_PUBLIC_URL", "https://api.example.com").with("SERVER_HOSTS", "yarrow.lan.example");
    let mut server: Server = setup.start();
    let metrics = address_in(&server.metrics());
    let admin = address_in(&server.wait_for_line("serves /admin on"));
    let main = server.address().to_string();
    for (address, path) in [(main, "/healthz"), (admin, "/healthz"), (metrics, "/metrics")] {
        for host in ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "a@b"] {
            assert_eq!(status(&address, path, host), 400, "{path} {host}");
        }
        for host in
            ["127.0.0.1", &address, "localhost:8080", "[::1]", "yarrow", "API.example.com", "yarrow.lan.example"]
        {
            assert_eq!(status(&address, path, host), 200, "{path} {host}");
        }
    }
    let refused = server.send_raw(b"GET /healthz HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n");
    let refused = refused.expect_problem(400, "invalid_request").json();
    assert!(refused["detail"].as_str().unwrap().contains("server.public_url"), "{refused}");
}
