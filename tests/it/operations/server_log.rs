//! The server's own log over HTTP, as a command and in the console.

use serde_json::Value;

use super::console::Browser;
use crate::support::{Server, Setup, eventually_ok};

fn found(server: &Server, key: &str, query: &[(&str, &str)]) -> Vec<Value> {
    let listed = server.get("/admin/logs").query(query).token(key).send().expect(200).json();
    listed["items"].as_array().unwrap().clone()
}

/// Waits for the events of a request.
fn wait_for(server: &Server, key: &str, request_id: &str) -> Vec<Value> {
    eventually_ok("the request is in the log", || {
        let events = found(server, key, &[("requestId", request_id)]);
        if events.is_empty() { Err(found(server, key, &[])) } else { Ok(events) }
    })
}

#[test]
fn events_are_found_by_level_module_text_and_request() {
    let server = Setup::default().with("LOG_LEVEL", "yarrow=debug").start();
    let key = server.api_key("ops");
    let refused = server.post("/admin/login").form(&[("name", "nobody"), ("password", "wrong password")]).send();
    let request_id = refused.expect(401).header("x-request-id").unwrap().to_owned();
    let events = wait_for(&server, &key, &request_id);
    let failure = events.iter().find(|event| event["level"] == "warn").unwrap_or_else(|| panic!("{events:?}"));
    assert_eq!(failure["message"], "auth_failed");
    let route = failure["fields"]["route"].as_str().unwrap();
    assert!(route.contains("/admin/login"), "{failure}");
    let has = |query: &[(&str, &str)]| {
        let query: Vec<_> = query.iter().copied().chain([("requestId", request_id.as_str())]).collect();
        found(&server, &key, &query).iter().any(|event| event == failure)
    };
    assert!(has(&[("level", "warn"), ("target", "http"), ("search", "AUTH_FAILED")]));
    assert!(!has(&[("level", "error")]) && !has(&[("target", "jobs")]) && !has(&[("search", "something else")]));
    server.get("/admin/logs").query(&[("level", "loud")]).token(&key).send().expect_problem(422, "invalid_parameters");

    // Pages follow each other.
    let first = server.get("/admin/logs").query(&[("size", "1")]).token(&key).send().expect(200).json();
    let next = first["next"].as_str().unwrap();
    let older = found(&server, &key, &[("size", "1"), ("before", next)]);
    let id = |event: &Value| event["id"].as_str().unwrap().parse::<u64>().unwrap();
    assert!(id(&older[0]) < id(&first["items"][0]));

    let listed = server.command(&["logs", "server", "--request", &request_id, "--level", "warn"]).expect(0).json();
    assert_eq!(listed["items"][0], *failure);

    let browser = Browser::new(&server, "alice", "owner");
    let filter = [("request", request_id.as_str()), ("level", "warn")];
    let page = browser.get("logs").query(&filter).send().expect(200).text();
    assert!(page.contains("auth_failed") && page.contains("hx-get=\"/admin/console/fragments/logs?"), "{page}");
    assert!(browser.get("fragments/logs").query(&filter).send().expect(200).text().contains("auth_failed"));
    assert_eq!(server.value::<i64>("select count(*) from audit where action like '%fragments%'"), 0);
    Browser::new(&server, "sue", "support").get("logs").send().expect(403);
}

#[test]
fn events_survive_a_restart_and_a_purge_deletes_them() {
    let server = Setup::default().in_own_process().start();
    let key = server.api_key("ops");
    let refused = server.post("/admin/login").form(&[("name", "nobody"), ("password", "wrong password")]).send();
    let request_id = refused.expect(401).header("x-request-id").unwrap().to_owned();
    wait_for(&server, &key, &request_id);
    let server = server.crash_and_restart(Setup::default());
    assert!(!found(&server, &key, &[("requestId", &request_id)]).is_empty());
    server.command(&["cleanup", "all", "--yes"]).expect(0);
    assert!(found(&server, &key, &[("requestId", &request_id)]).is_empty());
}
