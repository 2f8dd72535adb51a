//! Requests that a browser sends for pages of other web sites.

use serde_json::json;

use crate::support::{Binary, Request, Server, Setup, eventually, raw};

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
    let server = setup.with("SERVER_ALLOWED_ORIGINS", "https://app.example.com").start();
    let own = format!("http://{}", server.address());
    for headers in [
        &[][..],
        &[("sec-fetch-site", "none")],
        &[("sec-fetch-site", "same-origin"), ("origin", "https://elsewhere.example.com")],
        &[("origin", &own)],
        &[("origin", "https://api.example.com")],
        &[("sec-fetch-site", "cross-site"), ("origin", "https://app.example.com")],
    ] {
        with(server.post("/auth/login"), headers).json(&json!({})).send().expect(422);
    }
    let sandboxed = with(server.post("/auth/login"), &[("sec-fetch-site", "cross-site"), ("origin", "null")]);
    sandboxed.json(&json!({})).send().expect_problem(403, "forbidden");
}

const PAGE: &str = "https://app.example.com";

fn sharing() -> Server {
    Setup::default().with("SERVER_ALLOWED_ORIGINS", "https://app.example.com, https://*.apps.example.com").start()
}

#[test]
fn allowed_pages_read_responses() {
    let server = sharing();
    for origin in [PAGE, "https://eu.apps.example.com"] {
        let asked = server.get("/api/v1/hexagrams").header("origin", origin).send().expect(200);
        assert_eq!(asked.header("access-control-allow-origin"), Some(origin));
        assert_eq!(asked.header("access-control-allow-credentials"), None);
        let refused = server.get("/api/v1/account").header("origin", origin).send().expect(401);
        assert_eq!(refused.header("access-control-allow-origin"), Some(origin), "a page must be able to read errors");
        let readable = refused.header("access-control-expose-headers").unwrap().to_lowercase();
        for name in ["retry-after", "etag", "ratelimit", "ratelimit-policy", "x-request-id", "idempotency-replayed"] {
            assert!(readable.split(", ").any(|one| one == name), "{name} is not in {readable}");
        }
        let nowhere = server.get("/nowhere").header("origin", origin).send().expect(404);
        assert_eq!(nowhere.header("access-control-allow-origin"), Some(origin));
    }
    for origin in ["https://evil.example", "null", "http://app.example.com", "https://app.example.com.evil.example"] {
        let asked = server.get("/api/v1/hexagrams").header("origin", origin).send().expect(200);
        assert_eq!(asked.header("access-control-allow-origin"), None, "{origin}");
    }
    // A cache must not give a response without the header to a page.
    let varies = |response: &crate::support::Response| {
        let values = response.headers.get_all("vary").iter().map(|value| value.to_str().unwrap().to_lowercase());
        values.collect::<Vec<_>>().join(", ").split(", ").any(|name| name == "origin")
    };
    assert!(varies(&server.get("/api/v1/hexagrams").send()));
    assert!(!varies(&Setup::default().start().get("/api/v1/hexagrams").send()));
}

#[test]
fn browsers_may_keep_the_answer_to_a_preflight() {
    let server = sharing();
    let preflight = |path: &str, origin: &str| {
        let request = server.request("OPTIONS", path).header("origin", origin);
        let asked = "authorization,content-type,idempotency-key,token";
        request
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", asked)
            .header("sec-fetch-site", "cross-site")
            .send()
    };
    for path in ["/api/v1/sessions", "/coin/consume", "/api/v1/account"] {
        let answer = preflight(path, PAGE).expect(204);
        assert_eq!(answer.header("access-control-allow-origin"), Some(PAGE));
        assert_eq!(answer.header("access-control-max-age"), Some("7200"));
        assert_eq!(answer.header("access-control-allow-credentials"), None);
        let allowed = |name: &str| answer.header(name).unwrap().to_lowercase();
        assert!(allowed("access-control-allow-methods").contains("patch"));
        for name in
            ["authorization", "content-type", "last-event-id", "satoken", "traceparent", "sentry-trace", "baggage"]
        {
            let names = allowed("access-control-allow-headers");
            assert!(names.split(", ").any(|one| one == name), "{name} is not in {names}");
        }
    }
    for (path, origin, statuses) in [
        ("/api/v1/sessions", "https://evil.example", [403, 403]),
        ("/api/v1/sessions", "null", [403, 403]),
        ("/admin/users", PAGE, [404, 405]),
        ("//admin/users", PAGE, [404, 405]),
        ("/admin/console/", PAGE, [404, 405]),
    ] {
        let answer = preflight(path, origin);
        assert!(statuses.contains(&answer.status), "{path} {origin}: {}", answer.status);
        assert_eq!(answer.header("access-control-allow-origin"), None, "{path} {origin}");
        assert_eq!(answer.header("access-control-allow-methods"), None, "{path} {origin}");
    }
}

#[test]
fn refused_pages_and_headers_name_the_setting() {
    let setup = Setup::default().with("SERVER_ALLOWED_ORIGINS", PAGE).with("SERVER_ALLOWED_HEADERS", "X-B3-TraceId");
    let server = setup.in_own_process().start();
    let preflight = |origin: &str, headers: &str| {
        let request = server.request("OPTIONS", "/api/v1/sessions").header("origin", origin);
        request.header("access-control-request-method", "GET").header("access-control-request-headers", headers).send()
    };
    let own = format!("http://{}", server.address());
    preflight(&own, "authorization").expect(405);
    let refused = preflight("https://new.example", "authorization").expect_problem(403, "forbidden").json();
    let detail = refused["detail"].as_str().unwrap();
    assert!(detail.contains("https://new.example") && detail.contains("server.allowed_origins"), "{detail}");
    let without_origin = preflight("null", "authorization").expect_problem(403, "forbidden").json();
    assert!(!without_origin["detail"].as_str().unwrap().contains("allowed_origins"), "{without_origin}");
    let names = preflight(PAGE, "authorization,traceparent,x-b3-traceid").expect(204);
    let names = names.header("access-control-allow-headers").unwrap();
    assert!(names.ends_with("X-B3-TraceId") && !names.contains("traceparent"), "{names}");
    for _ in 0..2 {
        preflight("https://new.example", "authorization").expect(403);
    }
    for (subject, setting) in
        [("https://new.example", "server.allowed_origins"), ("traceparent", "server.allowed_headers")]
    {
        eventually("the log names the setting", || {
            server.lines().iter().any(|line| line.contains(subject) && line.contains(setting))
        });
    }
}

#[test]
fn no_page_of_another_site_reaches_administrators_endpoints() {
    let server = sharing();
    server.admin("root", PASSWORD);
    let sign_in = json!({ "name": "root", "password": PASSWORD });
    let page = [("sec-fetch-site", "cross-site"), ("origin", PAGE)];
    with(server.post("/admin/login"), &page).json(&sign_in).send().expect_problem(403, "forbidden");
    let token = server.post("/admin/login").json(&sign_in).send().expect(200).json()["token"].clone();
    let token = token.as_str().unwrap();
    for path in ["/admin/users", "/divination/records/failed"] {
        let listed = server.get(path).token(token).header("origin", PAGE).send().expect(200);
        assert_eq!(listed.header("access-control-allow-origin"), None, "{path}");
    }
    let console = server.get("/admin/console/sign-in").header("origin", PAGE).send().expect(200);
    assert_eq!(console.header("access-control-allow-origin"), None);
}

#[test]
fn an_origin_that_every_sandbox_has_prevents_the_start() {
    for origin in ["null", "*", "https://app.example.com/path"] {
        let mut command = Binary::command();
        command.args(["config", "show"]).env("YARROW_SERVER_ALLOWED_ORIGINS", origin);
        let ended = command.output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(!ended.status.success() && said.contains("is not the origin of a page"), "{origin}: {said}");
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
