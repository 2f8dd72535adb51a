//! Prometheus metrics.

use std::collections::BTreeMap;

use crate::support::{Request, Server, Setup};

const PHONE: &str = "13800138000";

/// Starts a server with metrics and returns their URL.
fn with_metrics(setup: Setup) -> (Server, String) {
    let mut server = setup.with_metrics().start();
    let url = server.metrics();
    (server, url)
}

/// Returns the samples by name and labels.
fn samples(url: &str) -> BTreeMap<String, String> {
    let response = Request::new("GET", url).send().expect(200);
    assert_eq!(response.header("content-type"), Some("application/openmetrics-text; version=1.0.0; charset=utf-8"));
    let text = response.text();
    assert!(text.ends_with("# EOF\n"), "{text}");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let sample = |line: &str| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        (name.to_owned(), value.to_owned())
    };
    lines.map(sample).collect()
}

fn number(found: &BTreeMap<String, String>, name: &str) -> f64 {
    found[name].parse().unwrap()
}

#[test]
fn counts_every_request_by_route_and_status() {
    let (server, url) = with_metrics(Setup::default());
    let user = server.sign_in(PHONE);
    for _ in 0..5 {
        server.get("/user/profile").by(&user).send().expect(200);
    }
    server.get("/user/profile").send().expect(401);
    server.get("/no/such/place").send().expect(404);
    server.get("/divination-history/count/13800138000").by(&user).send().expect(200);
    let found = samples(&url);
    let requests = |method: &str, route: &str, status: u16| {
        let name = format!("yarrow_requests_total{{method=\"{method}\",route=\"{route}\",status=\"{status}\"}}");
        found.get(&name).cloned().unwrap_or_default()
    };
    assert_eq!(requests("GET", "/user/profile", 200), "5");
    assert_eq!(requests("GET", "/user/profile", 401), "1");
    assert_eq!(requests("", "none", 404), "1");
    assert_eq!(requests("GET", "/divination-history/count/{phoneNumber}", 200), "1");
    assert_eq!(requests("POST", "/auth/login", 200), "1");
    let labels = "{method=\"GET\",route=\"/user/profile\"}";
    assert_eq!(found[&format!("yarrow_request_duration_seconds_count{labels}")], "6");
    let last = "yarrow_request_duration_seconds_bucket{le=\"+Inf\",method=\"GET\",route=\"/user/profile\"}";
    assert_eq!(found[last], "6");
    assert!(!Request::new("GET", &url).send().text().contains(PHONE), "a user's number is on the page");
}

#[test]
fn exports_writer_providers_codes_ledger_and_backups() {
    let (server, url) = with_metrics(Setup::default().with("BACKUP_EVERY", "0 s"));
    let user = server.sign_in(PHONE);
    server.post("/auth/login").form(&[("phoneNumber", PHONE), ("code", "000000")]).send().expect(401);
    let before = samples(&url);
    assert_eq!(before["yarrow_backup_timestamp_seconds"], "0.0");
    server.command(&["coins", "grant", PHONE, "5"]).expect(0);
    server.command(&["ledger", "verify"]).expect(0);
    server.command(&["backup", "create"]).expect(0);
    server.post("/coin/consume").by(&user).send().expect(200);
    let found = samples(&url);
    assert_eq!(found["yarrow_codes_sent_total"], "1");
    assert_eq!(found["yarrow_codes_verified_total"], "1");
    assert_eq!(found["yarrow_codes_rejected_total"], "1");
    assert_eq!(found["yarrow_codes_budget_spent"], "1");
    assert_eq!(found["yarrow_provider_calls_total{provider=\"sms\",outcome=\"answered\"}"], "1");
    assert_eq!(found["yarrow_provider_calls_total{provider=\"sms\",outcome=\"failed\"}"], "0");
    assert_eq!(found["yarrow_provider_breaker_open{provider=\"sms\"}"], "0");
    assert_eq!(found["yarrow_provider_call_seconds_count{provider=\"sms\"}"], "1");
    assert!(number(&found, "yarrow_writer_batch_operations_count") > 2.0);
    assert!(number(&found, "yarrow_writer_batch_seconds_sum") > 0.0);
    assert_eq!(found["yarrow_writer_queue_capacity"], "4096");
    assert!(number(&found, "yarrow_wal_bytes") > 0.0 && number(&found, "yarrow_database_bytes") > 0.0);
    assert!(number(&found, "yarrow_disk_free_bytes") > 0.0);
    assert!(number(&found, "yarrow_ledger_verified_timestamp_seconds") > 1.7e9);
    assert_eq!(found["yarrow_ledger_discrepancies"], "0");
    assert_eq!(found["yarrow_ledger_accounts{state=\"inconsistent\"}"], "0");
    assert!(number(&found, "yarrow_ledger_accounts{state=\"ok\"}") >= 1.0);
    assert!(number(&found, "yarrow_backup_timestamp_seconds") > 1.7e9);
    assert!(number(&found, "yarrow_backup_bytes") > 0.0);
    assert_eq!(found["yarrow_backup_sound"], "1");
    assert_eq!(found["yarrow_payments_in_review"], "0");
}

#[test]
fn metrics_are_opt_in_and_not_on_the_service_listener() {
    let (server, _) = with_metrics(Setup::default());
    server.get("/metrics").send().expect_problem(404, "unknown_endpoint");
    let plain = Setup::default().start();
    plain.get("/metrics").send().expect_problem(404, "unknown_endpoint");
    assert!(!plain.lines().iter().any(|line| line.contains("metrics are at")));
}
