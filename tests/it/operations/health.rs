//! Health: background jobs, alerts and the doctor, over HTTP, as a command and in the console.

use serde_json::Value;

use super::console::Browser;
use crate::support::{
    Server, Setup, eventually, eventually_ok,
    fake_provider::{FakeProvider, Latch, Reply},
};

fn health(server: &Server, key: &str) -> Value {
    server.get("/admin/health").token(key).send().expect(200).json()
}

fn job(health: &Value, name: &str) -> Value {
    let jobs = health["jobs"].as_array().unwrap();
    jobs.iter().find(|job| job["name"] == name).unwrap_or_else(|| panic!("no job {name} in {health}")).clone()
}

#[test]
fn work_on_demand_runs_in_the_background_and_is_remembered() {
    let setup = || Setup::default().with("BACKUP_EVERY", "0 s");
    let server = setup().in_own_process().start();
    let key = server.api_key("ops");
    let before = health(&server, &key);
    assert_eq!((&before["doctor"], &before["backups"]["items"]), (&Value::Null, &serde_json::json!([])));
    assert_eq!(job(&before, "backup")["state"], "off");
    for (path, name) in [("backup", "backup"), ("ledger-verification", "ledger_verification"), ("doctor", "doctor")] {
        let started = server.post(&format!("/admin/health/{path}")).token(&key).send().expect(202).json();
        assert_eq!(started["job"], name);
        let finished = eventually_ok(&format!("{name} has run"), || {
            let job = job(&health(&server, &key), name);
            if job["runningSince"].is_null() && job["lastStartedAt"] == started["startedAt"] {
                Ok(job)
            } else {
                Err(job)
            }
        });
        assert_eq!(finished["failure"], Value::Null, "{finished}");
    }
    let after = health(&server, &key);
    let backup = &after["backups"]["items"][0];
    assert_eq!((backup["contents"].as_str(), backup["offsite"].as_str()), (Some("sound"), Some("off")));
    assert_eq!(after["ledger"]["state"], "consistent");
    let checks = after["doctor"]["checks"].as_array().unwrap();
    assert!(checks.len() > 10 && checks.iter().any(|check| check["group"] == "listeners"), "{checks:?}");
    let entries = checks.iter().find(|check| check["name"] == "entries").unwrap();
    assert_eq!((&entries["rule"], &entries["values"]), (&"entries_agree".into(), &serde_json::json!({ "entries": 0 })));
    assert_eq!(server.value::<i64>("select count(*) from audit where action = 'POST /admin/health/backup'"), 1);

    // Commands and the next start know the last runs.
    eventually("the runs are stored", || {
        server.value::<i64>("select count(*) from settings where name = 'jobs.last_runs' and value like '%doctor%'")
            == 1
    });
    let listed = server.command(&["health", "--json"]).expect(0).json();
    assert_eq!(job(&listed, "doctor")["lastStartedAt"], job(&after, "doctor")["lastStartedAt"]);
    assert_eq!(listed["doctor"], after["doctor"]);
    let text = server.command(&["health"]).expect(0).text();
    assert!(text.contains("ledger_verification") && text.contains("sound"), "{text}");
    let server = server.crash_and_restart(setup());
    let restarted = health(&server, &key);
    assert_eq!(job(&restarted, "backup")["lastStartedAt"], job(&after, "backup")["lastStartedAt"]);
    assert_eq!(job(&restarted, "doctor")["state"], "waiting");
}

#[test]
fn failed_jobs_show_their_error_until_they_succeed() {
    let server = Setup::default().with_fast_jobs().start();
    let key = server.api_key("ops");
    let backups = server.directory().join("backups");
    eventually("a backup is made", || job(&health(&server, &key), "backup")["lastStartedAt"].is_string());
    assert!(job(&health(&server, &key), "backup")["nextAt"].is_string());
    std::fs::remove_dir_all(&backups).unwrap();
    std::fs::write(&backups, "in the way").unwrap();
    let failed = eventually_ok("the job fails", || {
        let job = job(&health(&server, &key), "backup");
        if job["state"] == "failed" { Ok(job) } else { Err(job) }
    });
    assert!(failed["failure"].is_string(), "{failed}");
    std::fs::remove_file(&backups).unwrap();
    server.post("/admin/health/backup").token(&key).send().expect(202);
    eventually("a backup succeeds", || job(&health(&server, &key), "backup")["state"] == "waiting");
}

#[test]
fn jobs_of_what_is_not_configured_are_off() {
    let server = Setup::default().start();
    let key = server.api_key("ops");
    let shown = health(&server, &key);
    for name in ["purchases", "bills", "payment_keys", "shadow_mode", "backup_upload"] {
        let job = job(&shown, name);
        assert_eq!((job["state"].as_str(), &job["nextAt"]), (Some("off"), &Value::Null), "{job}");
    }
    let browser = Browser::new(&server, "alice", "owner");
    let page = browser.get("health").header("accept-language", "en").send().expect(200).text();
    assert!(!page.contains(">0 µs<"), "{page}");
}

#[test]
fn commands_see_the_running_jobs_of_the_server() {
    let latch = Latch::default();
    let waiting = latch.clone();
    let webhook = FakeProvider::with_handler(move |_| {
        waiting.wait();
        Reply::status(204)
    });
    let server =
        Setup::default().with_fast_jobs().with("ALERTS_WEBHOOK_URL", format!("{}/hook", webhook.url())).start();
    server.edit(
        "insert into code_counts (event, subject, counted_at, total, events) \
         values ('sent', '', unixepoch() * 1000, 2500, 2500)",
    );
    let listed = || job(&server.command(&["health", "--json"]).expect(0).json(), "alerts");
    let running = eventually_ok("the command shows the running job", || {
        let job = listed();
        if job["state"] == "running" { Ok(job) } else { Err(job) }
    });
    assert!(running["runningSince"].is_string(), "{running}");
    assert!(server.command(&["health"]).expect(0).text().contains("running"));
    latch.open();
    eventually("the command shows that it has ended", || listed()["state"] == "waiting");
}

#[test]
fn resolved_alerts_stay_visible() {
    let server = Setup::default().with_fast_jobs().with("BACKUP_EVERY", "0 s").start();
    let key = server.api_key("ops");
    server.edit(
        "insert into code_counts (event, subject, counted_at, total, events) \
         values ('sent', '', unixepoch() * 1000, 2500, 2500)",
    );
    eventually("it fires", || {
        let shown = health(&server, &key);
        shown["alerts"].as_array().unwrap().iter().any(|alert| alert["rule"] == "code_budget")
    });
    server.edit("delete from code_counts");
    let resolved = eventually_ok("it is resolved", || {
        let shown = health(&server, &key);
        let is_over = |alert: &&Value| alert["rule"] == "code_budget";
        let found = shown["resolvedAlerts"].as_array().unwrap().iter().find(is_over);
        found.cloned().ok_or_else(|| shown.clone())
    });
    assert_eq!(resolved["rule"], "code_budget");
    assert!(resolved["detail"].as_str().unwrap().starts_with("2500 of"), "{resolved}");
    assert_eq!(resolved["values"], serde_json::json!({ "sent": 2500, "budget": 5000 }));
    let page = Browser::new(&server, "alice", "owner").get("health").header("accept-language", "zh");
    let page = page.send().expect(200).text();
    assert!(page.contains("过去 24 小时已发送 2500 条验证码，上限 5000 条。"), "{page}");
    assert!(resolved["since"].as_str() <= resolved["until"].as_str(), "{resolved}");
}

#[test]
fn a_test_alert_tells_each_channel() {
    let server = Setup::default().start();
    let key = server.api_key("ops");
    server.post("/admin/health/alert-test").token(&key).send().expect_problem(409, "not_configured");
    let webhook = FakeProvider::with_handler(|_| Reply::status(204));
    let server = Setup::default().with("ALERTS_WEBHOOK_URL", format!("{}/hook", webhook.url())).start();
    let key = server.api_key("ops");
    let tested = server.post("/admin/health/alert-test").token(&key).send().expect(200).json();
    assert_eq!(tested["items"], serde_json::json!([{ "channel": "webhook", "delivered": true, "error": null }]));
    assert_eq!(webhook.requests().len(), 1);
    let browser = Browser::new(&server, "alice", "owner");
    let answered = browser.post("health", "health/alert-test", &[]).expect(303);
    assert!(answered.header("set-cookie").unwrap().contains("good"));
    assert_eq!(webhook.requests().len(), 2);
}

#[test]
fn the_page_acts_and_refreshes_without_a_trace() {
    let server = Setup::default().start();
    let browser = Browser::new(&server, "alice", "owner");
    let page = browser.get("health").header("accept-language", "en").send().expect(200).text();
    assert!(
        page.contains("ledger verification") && page.contains("hx-get=\"/admin/console/fragments/health\""),
        "{page}"
    );
    for path in ["health/backup", "health/ledger-verification", "health/doctor"] {
        browser.post("health", path, &[]).expect(303);
    }
    eventually("all of it is shown", || {
        let shown = browser.get("fragments/health").header("accept-language", "en").send().expect(200).text();
        shown.contains(">sound<") && shown.contains("listeners") && shown.contains(">consistent<")
    });
    let audited = "select count(*) from audit where action like '%fragments%'";
    assert_eq!(server.value::<i64>(audited), 0);

    let reader = Browser::new(&server, "rita", "read-only");
    let page = reader.get("health").send().expect(200).text();
    assert!(!page.contains("action=\"/admin/console/health/"), "{page}");
    reader.post("", "health/backup", &[]).expect(403);
}
