//! Alerts: rules, webhook and mail delivery.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use ring::hmac;
use serde_json::{Value, json};
use yarrow::types::hex;

use crate::support::{
    CommandOutput, Request, Server, Setup, eventually, eventually_ok,
    fake_provider::{FakeProvider, Reply},
    install,
    model_requests::{ask, chunks},
    tls::PemPair,
};

const SECRET: &str = "a secret between the two of us";

/// Returns the messages that the webhook received.
fn reported(webhook: &FakeProvider) -> Vec<Value> {
    webhook.requests().iter().map(|request| serde_json::from_slice(&request.body).unwrap()).collect()
}

/// Waits for a message of this rule and event.
fn wait_for(server: &Server, webhook: &FakeProvider, rule: &str, event: &str) -> Value {
    eventually_ok(&format!("{rule} {event} is told"), || {
        let all = reported(webhook);
        let found = all.iter().rev().find(|message| message["rule"] == rule && message["event"] == event);
        found.cloned().ok_or_else(|| (all.clone(), server.lines()))
    })
}

fn with_webhook(webhook: &FakeProvider) -> Setup {
    Setup::default()
        .with_fast_jobs()
        .with("ALERTS_WEBHOOK_URL", format!("{}/hook?channel=ops", webhook.url()))
        .with("ALERTS_WEBHOOK_SECRET", SECRET)
        .with("BACKUP_EVERY", "0 s")
}

#[test]
fn notifies_when_a_rule_fires_and_resolves() {
    let is_broken = Arc::new(AtomicBool::new(true));
    let broken = Arc::clone(&is_broken);
    let webhook =
        FakeProvider::with_handler(
            move |_| if broken.load(Ordering::SeqCst) { Reply::status(500) } else { Reply::status(204) },
        );
    let server = with_webhook(&webhook).start();
    server.edit(
        "insert into code_counts (event, subject, counted_at, total, events) \
         values ('sent', '', unixepoch() * 1000, 2500, 2500)",
    );
    // Delivery fails at first and is retried until it succeeds.
    wait_for(&server, &webhook, "code_budget", "firing");
    is_broken.store(false, Ordering::SeqCst);
    let before = reported(&webhook).len();
    eventually("it is sent again", || reported(&webhook).len() > before);
    let message = wait_for(&server, &webhook, "code_budget", "firing");
    let of_budget = reported(&webhook).into_iter().filter(|message| message["rule"] == "code_budget");
    let started_at: BTreeSet<_> = of_budget.map(|message| message["since"].to_string()).collect();
    assert_eq!(started_at.len(), 1, "all attempts have the same start: {started_at:?}");
    assert!(message["detail"].as_str().unwrap().starts_with("2500 of at most 5000 verification codes"), "{message}");
    let request = webhook.requests().into_iter().next_back().unwrap();
    assert_eq!(request.target, "/hook?channel=ops");
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    let signature = hmac::sign(&key, &request.body);
    let expected = format!("sha256={}", hex(signature.as_ref()));
    assert_eq!(request.header("x-yarrow-signature"), Some(expected.as_str()));
    let listed = server.command(&["alerts", "list"]).expect(0).json();
    let rule = listed["items"].as_array().unwrap().iter().find(|item| item["rule"] == "code_budget").unwrap().clone();
    assert_eq!(rule["firing"], true, "{rule}");

    server.edit("delete from code_counts");
    wait_for(&server, &webhook, "code_budget", "resolved");
    let fired = reported(&webhook).iter().filter(|message| message["rule"] == "code_budget").count();
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(reported(&webhook).iter().filter(|message| message["rule"] == "code_budget").count(), fired);
}

#[test]
fn alerts_about_a_failing_provider_and_an_inconsistent_ledger() {
    let webhook = FakeProvider::with_handler(|_| Reply::status(200));
    let sms = FakeProvider::with_handler(|_| Reply::status(500));
    let setup = with_webhook(&webhook)
        .with("SMS_PROVIDER", "aliyun")
        .with("SMS_ENDPOINT", sms.url())
        .with("SMS_ACCESS_KEY_ID", "id")
        .with("SMS_ACCESS_KEY_SECRET", "secret")
        .with("SMS_SIGN_NAME", "名")
        .with("SMS_TEMPLATE_CODE", "SMS_1");
    let server = setup.start();
    for number in 0..6 {
        let phone = format!("1380013800{number}");
        let response = server.post("/auth/send-code").form(&[("phoneNumber", phone.as_str())]).send();
        assert!([503, 504].contains(&response.status), "{}", response.text());
    }
    let message = wait_for(&server, &webhook, "provider_down:sms", "firing");
    assert!(message["since"].is_string() && message["at"].is_string(), "{message}");
    server.edit("insert into balances (user_id, asset, balance, last_sequence) values (77, 'coin', 5, 0)");
    server.command(&["ledger", "verify"]).expect(5);
    wait_for(&server, &webhook, "ledger_mismatch", "firing");
}

#[test]
fn one_rejection_of_the_account_is_an_outage() {
    let webhook = FakeProvider::with_handler(|_| Reply::status(200));
    let (has_money, has_key) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (paid, known) = (Arc::clone(&has_money), Arc::clone(&has_key));
    let sms = FakeProvider::with_handler(move |_| {
        let code = if paid.load(Ordering::SeqCst) { "OK" } else { "isv.AMOUNT_NOT_ENOUGH" };
        Reply::json(format!(r#"{{"Code":"{code}","Message":"m","RequestId":"R-1"}}"#))
    });
    let model = FakeProvider::with_handler(move |_| {
        if known.load(Ordering::SeqCst) { Reply::event_stream(chunks(&["吉"])) } else { Reply::status(401) }
    });
    let server = with_webhook(&webhook)
        .with("SMS_PROVIDER", "aliyun")
        .with("SMS_ENDPOINT", sms.url())
        .with("SMS_ACCESS_KEY_ID", "id")
        .with("SMS_ACCESS_KEY_SECRET", "secret")
        .with("SMS_SIGN_NAME", "名")
        .with("SMS_TEMPLATE_CODE", "SMS_1")
        .with("LLM_PROVIDER", "openai")
        .with("LLM_BASE_URL", format!("{}/v1", model.url()))
        .with("LLM_MODEL", "m")
        .start();
    let send = || server.post("/auth/send-code").form(&[("phoneNumber", "13800138000")]).send();
    let refused = send().expect_problem(503, "provider_unavailable");
    assert!(!refused.text().contains("overloaded"), "{}", refused.text());
    let user = server.sign_in_by_email("li.ming@example.com");
    ask(&server, &user).send().expect_problem(502, "provider_failed");
    for (rule, code) in [("provider_down:sms", "isv.AMOUNT_NOT_ENOUGH"), ("provider_down:llm", "http_401")] {
        let message = wait_for(&server, &webhook, rule, "firing");
        assert!(message["detail"].as_str().unwrap().contains(code), "{message}");
    }
    let ready = server.get("/readyz").send().expect(200).json();
    assert_eq!(ready["providersDown"], json!(["sms", "llm"]), "{ready}");
    let checked = server.command(&["doctor"]).expect(5).text();
    for name in ["sms calls", "llm calls"] {
        assert!(checked.contains(name), "{name}: {checked}");
    }
    has_money.store(true, Ordering::SeqCst);
    has_key.store(true, Ordering::SeqCst);
    send().expect(200);
    ask(&server, &user).send().expect(200);
    wait_for(&server, &webhook, "provider_down:sms", "resolved");
    wait_for(&server, &webhook, "provider_down:llm", "resolved");
}

#[test]
fn an_unreadable_condition_is_not_reported_as_damage() {
    let webhook = FakeProvider::with_handler(|_| Reply::status(200));
    let server = with_webhook(&webhook).start();
    server.edit("insert into settings (name, value, updated_at) values ('backup.last', 'no JSON', 1)");
    let message = wait_for(&server, &webhook, "condition_unknown", "firing");
    assert!(!message["detail"].as_str().unwrap().contains("restore"), "{message}");
    server.edit("delete from settings where name = 'backup.last'");
    wait_for(&server, &webhook, "condition_unknown", "resolved");
    assert!(reported(&webhook).iter().all(|message| message["rule"] != "database_damaged"));
}

#[test]
fn resolves_a_rule_that_no_longer_exists() {
    let webhook = FakeProvider::with_handler(|_| Reply::status(200));
    let server = with_webhook(&webhook).in_own_process().start();
    let reported =
        r#"{"backup_upload_failed":{"since":1700000000000,"notified_at":1700000000000,"detail":"No bucket."}}"#;
    server.edit(&format!("insert into settings (name, value, updated_at) values ('alerts.active', '{reported}', 1)"));
    // The server reads the delivered alerts once, at the start.
    let server = server.crash_and_restart(with_webhook(&webhook));
    let message = wait_for(&server, &webhook, "backup_upload_failed", "resolved");
    assert_eq!(message["since"], "2023-11-14T22:13:20.000Z");
}

#[test]
fn a_failed_renewal_keeps_the_alert_of_the_active_certificate() {
    let webhook = FakeProvider::with_handler(|_| Reply::status(200));
    let (pair, other) = (PemPair::ending_in("yarrow.test", 10), PemPair::new("yarrow.test"));
    let setup = with_webhook(&webhook).with_metrics();
    let setup = setup.with("SERVER_TLS_CERTIFICATE", pair.certificate()).with("SERVER_TLS_KEY", pair.key());
    let mut server = setup.in_own_process().start();
    let metrics = server.metrics();
    let expiry = || {
        let page = Request::new("GET", &metrics).send().expect(200).text();
        let line = page.lines().find(|line| line.starts_with("yarrow_certificate_expiry_timestamp_seconds "));
        line.map(ToOwned::to_owned)
    };
    wait_for(&server, &webhook, "certificate_expiring", "firing");
    let shown = expiry();
    assert!(shown.is_some());
    std::fs::copy(other.key(), pair.key()).unwrap();
    server.wait_for_line("could not reload the certificate; the previous one stays");
    // Several evaluations of the rules.
    std::thread::sleep(Duration::from_secs(1));
    std::fs::remove_file(pair.key()).unwrap();
    std::thread::sleep(Duration::from_secs(1));
    let is_resolved = || {
        let mut of_rule = reported(&webhook).into_iter().filter(|message| message["rule"] == "certificate_expiring");
        of_rule.any(|message| message["event"] == "resolved")
    };
    assert!(!is_resolved(), "{:?}", reported(&webhook));
    assert_eq!(expiry(), shown);
    pair.renew("yarrow.test");
    wait_for(&server, &webhook, "certificate_expiring", "resolved");
    eventually("the new expiry is exported", || expiry().is_some_and(|line| Some(line) != shown));
}

#[test]
fn a_test_message_reports_delivery() {
    let webhook = FakeProvider::with_replies([Reply::status(200), Reply::status(403), Reply::status(500)]);
    let temp_dir = tempfile::tempdir().unwrap();
    let configuration = temp_dir.path().join("yarrow.toml");
    std::fs::write(&configuration, format!("[alerts]\nwebhook_url = \"{}\"\n", webhook.url())).unwrap();
    let directory = temp_dir.path().join("data");
    install(&directory);
    let arguments = ["alerts", "test", "--config", configuration.to_str().unwrap()];
    let done = CommandOutput::run(&directory, &arguments, "").expect(0).json();
    assert_eq!(done["items"][0]["delivered"], true, "{done}");
    assert_eq!(reported(&webhook)[0]["event"], "test");
    let refused = CommandOutput::run(&directory, &arguments, "").expect(5).json();
    assert_eq!(refused["items"][0]["delivered"], false, "{refused}");
    assert!(refused["items"][0]["error"].as_str().unwrap().contains("http_403"), "{refused}");
    let failed = CommandOutput::run(&directory, &arguments, "").expect(5).json();
    let said = failed["items"][0]["error"].as_str().unwrap();
    assert!(said.contains("http_500") && !said.contains("in time"), "{said}");
    CommandOutput::run(&directory, &["alerts", "test"], "").expect(1);
}

#[test]
fn sends_alerts_by_mail() {
    let server = Setup::default()
        .with_fast_jobs()
        .with("ALERTS_MAIL_TO", "ops@example.com")
        .with("ALERTS_DISK_FREE_PERCENT", 100)
        .with("BACKUP_EVERY", "0 s");
    let mut server = server.start();
    let line = server.wait_for_line("Email to ops@example.com");
    assert!(line.contains("disk_low"), "{line}");
}

#[test]
fn the_mail_about_a_resolved_alert_says_that_it_is_over() {
    let server =
        Setup::default().with_fast_jobs().with("ALERTS_MAIL_TO", "ops@example.com").with("BACKUP_EVERY", "0 s");
    let mut server = server.start();
    server.edit(
        "insert into code_counts (event, subject, counted_at, total, events) \
         values ('sent', '', unixepoch() * 1000, 2500, 2500)",
    );
    let line = server.wait_for_line("Email to ops@example.com");
    assert!(line.contains("code_budget") && !line.contains("over"), "{line}");
    server.edit("delete from code_counts");
    let line = server.wait_for_line("code_budget is over");
    assert!(line.contains("This alert is over. ") && line.contains("Rule code_budget: resolved, since "), "{line}");
}
