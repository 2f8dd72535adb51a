//! Headers of responses for browsers and caches: validity, compression, limits.

use std::collections::BTreeMap;

use serde_json::json;

use crate::support::{Response, Server, Setup};

/// Returns the parameters of the items in a structured header, such as `"a";q=5;w=60`.
fn items(response: &Response, name: &str) -> BTreeMap<String, BTreeMap<String, u64>> {
    let header = response.header(name).unwrap_or_else(|| panic!("no {name}"));
    let item = |text: &str| {
        let mut parts = text.trim().split(';');
        let name = parts.next().unwrap().trim_matches('"').to_owned();
        let parameters = parts.map(|part| part.split_once('=').unwrap());
        (name, parameters.map(|(key, value)| (key.to_owned(), value.parse().unwrap())).collect())
    };
    header.split(',').map(item).collect()
}

#[test]
fn public_content_is_confirmed_by_its_tag() {
    let server = Setup::default().start();
    let key = server.admin("root", "correct horse battery staple");
    let release = json!({ "version": "2.3.1", "versionCode": 231 });
    server.post("/admin/releases").token(&key).json(&release).send().expect(201);
    for (path, expected) in [
        ("/openapi.json", "public, no-cache"),
        ("/docs/", "public, no-cache"),
        ("/docs/swagger-ui.css", "public, no-cache"),
        ("/api/v1/products", "public, max-age=60"),
        ("/payment/products", "public, max-age=60"),
        ("/version/latest", "public, max-age=60"),
        ("/api/v1/hexagrams/3", "public, max-age=86400"),
    ] {
        let first = server.get(path).send().expect(200);
        assert_eq!(first.header("cache-control"), Some(expected), "{path}");
        let tag = first.header("etag").unwrap_or_else(|| panic!("{path} has no tag"));
        let known = server.get(path).header("if-none-match", tag).send().expect(304);
        assert!(known.bytes.is_empty(), "{path}");
        assert_eq!((known.header("etag"), known.header("cache-control")), (Some(tag), Some(expected)), "{path}");
        server.get(path).header("if-none-match", "\"other\"").send().expect(200);
    }
    // A tag belongs to one content.
    let tag = server.get("/version/latest").send().header("etag").unwrap().to_owned();
    let release = json!({ "version": "2.4.0", "versionCode": 240 });
    server.post("/admin/releases").token(&key).json(&release).send().expect(201);
    let changed = server.get("/version/latest").header("if-none-match", &tag).send().expect(200);
    assert_eq!(changed.json()["version"], "2.4.0");
    let products = |language: &str| server.get("/api/v1/products").header("accept-language", language).send();
    assert_ne!(products("en").header("etag"), products("zh").header("etag"), "the names differ");
}

#[test]
fn what_belongs_to_a_user_is_not_stored() {
    let server = Setup::default().start();
    let user = server.sign_in("13800138000");
    for path in ["/user/profile", "/api/v1/account", "/coin/balance", "/api/v1/notifications", "/notifications/all"] {
        let response = server.get(path).by(&user).send().expect(200);
        assert_eq!(response.header("cache-control"), Some("no-store"), "{path}");
        assert_eq!(response.header("etag"), None, "{path}");
    }
    for path in ["/api/v1/account", "/nowhere", "/version/latest"] {
        let response = server.get(path).send();
        assert!(response.status >= 400);
        assert_eq!(response.header("cache-control"), Some("no-store"), "{path}");
    }
}

#[test]
fn brotli_is_sent_to_clients_that_prefer_it() {
    let server = Setup::default().start();
    let unpacked = |response: &Response| {
        let mut plain = Vec::new();
        brotli::BrotliDecompress(&mut response.bytes.as_slice(), &mut plain).unwrap();
        plain
    };
    for path in ["/openapi.json", "/docs/swagger-ui.css", "/api/v1/hexagrams", "/api/v1/products"] {
        // What is compressed on its way is Brotli for clients that accept nothing else.
        let accepted = if path.ends_with("products") { "br" } else { "gzip, deflate, br, zstd" };
        let plain = server.get(path).header("accept-encoding", "identity").send().expect(200);
        let packed = server.get(path).header("accept-encoding", accepted).send().expect(200);
        assert_eq!(packed.header("content-encoding"), Some("br"), "{path}");
        assert_eq!(unpacked(&packed), plain.bytes, "{path}");
        assert!(packed.bytes.len() < plain.bytes.len() / 2, "{path}");
        assert_eq!(packed.header("etag"), plain.header("etag"), "{path}");
        let varies: Vec<_> = packed.headers.get_all("vary").iter().map(|value| value.to_str().unwrap()).collect();
        assert!(varies.join(", ").contains("accept-encoding"), "{path}: {varies:?}");
        let gzip = server.get(path).header("accept-encoding", "br;q=0.1, gzip").send().expect(200);
        assert_ne!(gzip.header("content-encoding"), Some("br"), "{path}");
    }
    // An event must not wait in an encoder.
    let user = server.sign_in_by_email("ada@example.com");
    let cast = json!({ "question": "何时启程？", "method": "manual", "lines": [7, 8, 9, 6, 7, 8] });
    let session = server.post("/api/v1/sessions").by(&user).json(&cast).send().expect(201).json();
    let path = format!("/api/v1/sessions/{}/interpretation", session["id"].as_str().unwrap());
    let stream =
        server.post(&path).by(&user).header("accept", "text/event-stream").header("accept-encoding", "br, gzip");
    let stream = stream.send().expect(200);
    assert_eq!(stream.header("content-encoding"), None);
    assert!(stream.text().contains("event: done"), "{}", stream.text());
}

fn code(server: &Server, number: &str) -> Response {
    server.post("/auth/send-code").json(&json!({ "phoneNumber": number })).send()
}

#[test]
fn responses_show_what_is_left_of_a_limit() {
    let limits = [("AUTH_SENDS_PER_CLIENT_HOUR", "3"), ("AUTH_RESEND_AFTER", "60 s"), ("LLM_CALLS_PER_USER_HOUR", "2")];
    let setup = limits.iter().fold(Setup::default(), |setup, (name, value)| setup.with(name, value));
    let server = setup.with("LIMITS_FEEDBACK_PER_CLIENT", 1).start();
    let first = code(&server, "13800138001").expect(200);
    let policy = items(&first, "ratelimit-policy");
    assert_eq!(policy["codes-client-hour"], BTreeMap::from([("q".into(), 3), ("w".into(), 3600)]));
    assert_eq!(policy["codes-address-interval"], BTreeMap::from([("q".into(), 1), ("w".into(), 60)]));
    let left = |response: &Response, name: &str| items(response, "ratelimit")[name]["r"];
    assert_eq!(left(&first, "codes-client-hour"), 2);
    // The limit of the address comes first.
    let again = code(&server, "13800138001").expect_problem(429, "too_many_requests");
    let interval = &items(&again, "ratelimit")["codes-address-interval"];
    let wait: u64 = again.header("retry-after").unwrap().parse().unwrap();
    assert_eq!((interval["r"], interval["t"]), (0, wait));
    assert_eq!(left(&code(&server, "13800138002").expect(200), "codes-client-hour"), 1);
    assert_eq!(left(&code(&server, "13800138003").expect(200), "codes-client-hour"), 0);
    let spent = code(&server, "13800138004").expect_problem(429, "too_many_requests");
    let hour = &items(&spent, "ratelimit")["codes-client-hour"];
    assert!(hour["r"] == 0 && (3_500..=3_600).contains(&hour["t"]), "{hour:?}");

    let feedback = || server.post("/feedback").json(&json!({ "content": "…" })).send();
    assert_eq!(left(&feedback().expect(200), "feedback-client"), 0);
    assert_eq!(left(&feedback().expect_problem(429, "too_many_requests"), "feedback-client"), 0);

    let user = server.sign_in_by_email("ada@example.com");
    let chat = || {
        let body = json!({ "messages": [{ "role": "user", "content": "屯卦在说什么？" }] });
        server.post("/llm/chat").by(&user).json(&body).send()
    };
    for expected in [1, 0] {
        let answer = chat().expect(200);
        assert_eq!(left(&answer, "chat"), expected);
        assert_eq!(items(&answer, "ratelimit-policy")["chat"]["q"], 2);
    }
    assert_eq!(left(&chat().expect_problem(429, "too_many_requests"), "chat"), 0);
    // Each kind of call has its own limit.
    let ask = json!({ "question": "何时启程？" });
    let interpreted = server.post("/divination/enhanced").by(&user).json(&ask).send().expect(200);
    assert_eq!(left(&interpreted, "interpretations"), 1);
    // A caller who must sign in first has no budget yet.
    let anonymous = server.post("/llm/chat").json(&json!({})).send().expect(401);
    assert_eq!(anonymous.header("ratelimit"), None);
    assert!(anonymous.header("ratelimit-policy").is_some());
}
