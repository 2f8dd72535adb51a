//! `yarrow doctor`, on healthy and broken data directories.

use std::{
    net::TcpListener,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::support::{
    Binary, CommandOutput, Server, Setup, drop_trigger, eventually,
    fake_provider::{FakeProvider, Reply, free_address},
    filler_statement, log_statement, postgresql,
    tls::PemPair,
};

const PHONE: &str = "13800138000";

fn examined(directory: &Path, arguments: &[&str], exit_code: i32) -> Value {
    // Any port, because the default one may be in use.
    let anywhere = ["doctor", "--listen", "127.0.0.1:0"];
    expect_exit(CommandOutput::run(directory, &[&anywhere, arguments].concat(), ""), exit_code)
}

fn expect_exit(found: CommandOutput, exit_code: i32) -> Value {
    if exit_code == 0 { found.expect_sound().json() } else { found.expect(exit_code).json() }
}

fn check<'found>(found: &'found Value, group: &str, name: &str) -> &'found Value {
    let checks = found["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["group"] == group && check["name"] == name);
    check.unwrap_or_else(|| panic!("no check {group}/{name} in {found:#}"))
}

fn verdict<'found>(found: &'found Value, group: &str, name: &str) -> &'found str {
    check(found, group, name)["verdict"].as_str().unwrap()
}

#[test]
fn names_address_setting_and_next_step_of_an_unreachable_provider() {
    let temp_dir = tempfile::tempdir().unwrap();
    let settings = [
        ("YARROW_LLM_PROVIDER", "openai"),
        ("YARROW_LLM_API_KEY", "sk-secret"),
        ("YARROW_LLM_MODEL", "m"),
        ("YARROW_LLM_BASE_URL", "http://127.0.0.1:1/v1"),
        ("https_proxy", "http://127.0.0.1:2"),
    ];
    let arguments = ["doctor", "--listen", "127.0.0.1:0"];
    let found = CommandOutput::run_in_own_process(temp_dir.path(), &settings, &arguments, "").expect(5).json();
    let detail = check(&found, "providers", "llm")["detail"].as_str().unwrap();
    assert!(detail.contains("at http://127.0.0.1:1 (`llm.base_url`); check the address"), "{detail}");
    let proxy = check(&found, "providers", "outgoing proxy");
    assert_eq!(proxy["verdict"], "warn");
    assert!(proxy["detail"].as_str().unwrap().contains("ignore https_proxy"), "{proxy}");
}

#[test]
fn a_fresh_data_directory_passes_except_for_development_settings() {
    let server = Setup::default().with("BACKUP_EVERY", "1 hour").start();
    server.sign_in(PHONE);
    server.command(&["backup", "create"]).expect(0);
    let found = examined(server.directory(), &[], 0);
    assert_eq!(found["failed"], 0, "{found:#}");
    for (group, name) in [
        ("permissions", "data directory"),
        ("permissions", "yarrow.db"),
        ("permissions", "network-log.db"),
        ("permissions", "secret.key"),
        ("clock", "direction"),
        ("database", "structure"),
        ("database", "references"),
        ("ledger", "entries"),
        ("network log", "size"),
        ("providers", "sms"),
        ("providers", "payment"),
        ("providers", "moderation"),
        ("proxy", "trusted proxies"),
        ("backups", "age"),
        ("backups", "newest"),
        ("backups", "size limit"),
    ] {
        assert_eq!(verdict(&found, group, name), "pass", "{group}/{name}: {found:#}");
    }
    for driver in ["sms driver", "email driver", "llm driver", "payment driver"] {
        assert_eq!(verdict(&found, "configuration", driver), "warn", "{driver}");
    }
    let settings = [("YARROW_BACKUP_KEEP_SIZE", "1 MiB")];
    let found = server.command_with(&settings, &["doctor", "--listen", "127.0.0.1:0"]).expect(0).json();
    assert_eq!(verdict(&found, "backups", "size limit"), "warn", "{found:#}");
}

#[test]
fn fails_and_explains_problems() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    let mut server = Setup::default().on(&directory).with("BACKUP_EVERY", "0 s").start();
    server.sign_in(PHONE);
    server.command(&["coins", "grant", PHONE, "5"]).expect(0);
    server.edit(
        "update balances set balance = 6; pragma foreign_keys = off; \
                 insert into tokens (token_sha256, user_id, expires_at, family, family_expires_at, \
                 created_at, label, signed_in_at, last_used_at) values (x'00', 9999, 0, x'00', 0, 0, '', 0, 0)",
    );
    assert_eq!(server.terminate(), Some(0));
    #[cfg(unix)]
    std::fs::set_permissions(directory.join("secret.key"), std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .unwrap();
    let model = FakeProvider::with_handler(|_| Reply::status(401));
    let moderator = FakeProvider::with_handler(|_| Reply::status(500));
    let file = temp_dir.path().join("yarrow.toml");
    let settings = format!(
        "[server]\ntrusted_proxies = [\"0.0.0.0/0\"]\n[llm]\nprovider = \"openai\"\nbase_url = \"{}\"\nmodel = \"m\"\n\
         api_key = \"sk-very-secret\"\n[sms]\nprovider = \"aliyun\"\nendpoint = \"{}\"\naccess_key_id = \"id\"\n\
         access_key_secret = \"very-secret\"\nsign_name = \"s\"\ntemplate_code = \"t\"\n\
         [moderation]\nprovider = \"aliyun\"\nendpoint = \"{}\"\naccess_key_id = \"id\"\n\
         access_key_secret = \"very-secret\"\n[auth]\nreview_accounts = {{ \"13900139000\" = \"123456\" }}\n",
        model.url(),
        FakeProvider::unreachable_url(),
        moderator.url()
    );
    std::fs::write(&file, settings).unwrap();
    let bundle = temp_dir.path().join("bundle.json");
    let arguments = ["--config", file.to_str().unwrap(), "--bundle", bundle.to_str().unwrap()];
    let found = examined(&directory, &arguments, 5);
    for (group, name) in [
        ("permissions", "secret.key"),
        ("database", "references"),
        ("ledger", "entries"),
        ("providers", "llm"),
        ("providers", "sms"),
        ("providers", "moderation"),
        ("proxy", "trusted proxies"),
    ] {
        assert_eq!(verdict(&found, group, name), "fail", "{group}/{name}: {found:#}");
    }
    assert_eq!(model.only_request().header("authorization"), Some("Bearer sk-very-secret"));
    let text = std::fs::read_to_string(&bundle).unwrap();
    for secret in ["very-secret", "123456", "13900139000", PHONE] {
        assert!(!text.contains(secret), "{secret} is in {text}");
    }
    let bundled: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(bundled["checks"], found["checks"]);
    assert!(bundled["settings"].as_array().unwrap().len() > 50);
    CommandOutput::run(&directory, &["doctor", "--bundle", bundle.to_str().unwrap()], "").expect(1);
}

#[test]
fn finds_a_damaged_database_and_a_clock_that_went_back() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    let mut server = Setup::default().on(&directory).with("BACKUP_EVERY", "0 s").start();
    server.edit(&filler_statement(700));
    server.edit(&log_statement("select 9000000000000, null, '192.0.2.1', 'GET', null, 200, 1, 'ahead'"));
    // Later rows with current timestamps do not hide it.
    server.get("/healthz").send().expect(200);
    assert_eq!(server.terminate(), Some(0));
    let found = examined(&directory, &[], 5);
    assert_eq!(verdict(&found, "clock", "direction"), "fail");
    let path = directory.join("yarrow.db");
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2 / 4096 * 4096;
    bytes[middle..middle + 64].fill(0xff);
    std::fs::write(&path, bytes).unwrap();
    let found = examined(&directory, &[], 5);
    assert_eq!(verdict(&found, "database", "structure"), "fail", "{found:#}");
}

/// Runs `doctor` with these settings.
#[test]
fn knows_the_backups_beside_a_restored_database() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    let server = Setup::default().on(&directory).in_own_process().start();
    server.sign_in(PHONE);
    let create = || server.command(&["backup", "create"]).expect(0).json();
    let (first, second) = (create(), create());
    server.kill();
    let path = |backup: &Value| backup["path"].as_str().unwrap().to_owned();
    CommandOutput::run(&directory, &["restore", &path(&first), "--yes"], "").expect(0);
    let found = examined(&directory, &[], 0);
    for name in ["age", "newest"] {
        let check = check(&found, "backups", name);
        assert_eq!(check["verdict"], "pass", "{check}");
        let time = second["at"].as_str().unwrap();
        let known = if name == "age" { time.to_owned() } else { second["name"].as_str().unwrap().to_owned() };
        assert!(check["detail"].as_str().unwrap().contains(&known), "{check} is not about {second}");
    }
    // Elsewhere there is none, and none is missing.
    let elsewhere = temp_dir.path().join("elsewhere");
    CommandOutput::run(&elsewhere, &["restore", &path(&second), "--yes", "--unproven"], "").expect(0);
    let found = examined(&elsewhere, &[], 0);
    assert_eq!(verdict(&found, "backups", "age"), "warn");
    assert!(found["checks"].as_array().unwrap().iter().all(|check| check["name"] != "newest"), "{found:#}");
}

fn examined_with(server: &Server, settings: &[(&str, &str)], exit_code: i32) -> Value {
    let settings: Vec<_> = settings.iter().map(|(name, value)| (format!("YARROW_{name}"), *value)).collect();
    let mut all = vec![("YARROW_SERVER_LISTEN", "127.0.0.1:0")];
    all.extend(settings.iter().map(|(name, value)| (name.as_str(), *value)));
    expect_exit(server.command_with(&all, &["doctor"]), exit_code)
}

#[test]
fn finds_an_unusable_certificate() {
    let server = Setup::default().start();
    let (pair, other) = (PemPair::new("yarrow.test"), PemPair::new("yarrow.test"));
    let (certificate, key, other) = (pair.certificate(), pair.key(), other.key());
    let with = |certificate: &str, key: &str, exit_code| {
        examined_with(&server, &[("SERVER_TLS_CERTIFICATE", certificate), ("SERVER_TLS_KEY", key)], exit_code)
    };
    let sound = with(&certificate, &key, 0);
    assert_eq!((verdict(&sound, "tls", "files"), verdict(&sound, "tls", "validity")), ("pass", "pass"));
    let missing = with("/nonexistent/chain.pem", "/nonexistent/key.pem", 5);
    for setting in ["server.tls_certificate", "server.tls_key"] {
        assert_eq!(verdict(&missing, "tls", setting), "fail", "{missing:#}");
    }
    assert_eq!(verdict(&with(&key, &key, 5), "tls", "server.tls_certificate"), "fail");
    assert_eq!(verdict(&with(&certificate, &certificate, 5), "tls", "server.tls_key"), "fail");
    assert_eq!(verdict(&with(&certificate, &other, 5), "tls", "server.tls_key"), "fail");
}

#[test]
fn warns_about_an_expiring_certificate_and_fails_for_an_expired_one() {
    let server = Setup::default().start();
    for (days, expected, exit_code) in [(-1, "fail", 5), (10, "warn", 0), (20, "pass", 0)] {
        let pair = PemPair::ending_in("yarrow.test", days);
        let (certificate, key) = (pair.certificate(), pair.key());
        let settings = [("SERVER_TLS_CERTIFICATE", certificate.as_str()), ("SERVER_TLS_KEY", key.as_str())];
        assert_eq!(verdict(&examined_with(&server, &settings, exit_code), "tls", "validity"), expected, "{days} days");
    }
}

#[test]
fn finds_an_unusable_listen_address() {
    let server = Setup::default().in_own_process().start();
    let free = free_address().to_string();
    let twice = [("SERVER_LISTEN", free.as_str()), ("SERVER_ADMIN_LISTEN", &free), ("METRICS_LISTEN", &free)];
    let found = examined_with(&server, &twice, 5);
    assert_eq!(verdict(&found, "listeners", "server.listen"), "pass", "{found:#}");
    for setting in ["server.admin_listen", "metrics.listen"] {
        assert_eq!(verdict(&found, "listeners", setting), "fail", "{found:#}");
    }
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = other.local_addr().unwrap().to_string();
    let found = examined_with(&server, &[("SERVER_LISTEN", &taken)], 5);
    assert_eq!(verdict(&found, "listeners", "server.listen"), "fail", "{found:#}");
}

#[test]
fn accepts_addresses_in_use_by_the_running_server_only() {
    let server = Setup::default().in_own_process().start();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let (own, taken) = (server.address().to_string(), other.local_addr().unwrap().to_string());
    let found = server.command(&["doctor", "--listen", &own]).expect_sound().json();
    assert_eq!(verdict(&found, "listeners", "server.listen"), "pass", "{found:#}");
    let found = server.command(&["doctor", "--listen", &own, "--admin-listen", &taken]).expect(5).json();
    assert_eq!(verdict(&found, "listeners", "server.admin_listen"), "fail", "{found:#}");
}

#[test]
fn checks_the_rest_if_the_database_cannot_be_opened() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    let mut server = Setup::default().on(&directory).start();
    server.command(&["backup", "create"]).expect(0);
    assert_eq!(server.terminate(), Some(0));
    let database = directory.join("yarrow.db");
    let sound = std::fs::read(&database).unwrap();
    let newer = || {
        std::fs::write(&database, &sound).unwrap();
        rusqlite::Connection::open(&database).unwrap().pragma_update(None, "user_version", 10_000).unwrap();
    };
    let spoilt: [&dyn Fn(); 4] = [
        &|| std::fs::write(&database, "no database").unwrap(),
        &|| std::fs::write(&database, "").unwrap(),
        &newer,
        &|| {
            std::fs::remove_file(&database).unwrap();
            std::fs::create_dir(&database).unwrap();
        },
    ];
    for (number, spoil) in spoilt.into_iter().enumerate() {
        spoil();
        let bundle: PathBuf = temp_dir.path().join(format!("bundle-{number}.json"));
        let found = examined(&directory, &["--bundle", bundle.to_str().unwrap()], 5);
        assert_eq!(verdict(&found, "database", "opening"), "fail", "{number}: {found:#}");
        for (group, name) in [
            ("configuration", "settings"),
            ("permissions", "secret.key"),
            ("listeners", "server.listen"),
            ("clock", "time"),
            ("providers", "sms"),
            ("proxy", "trusted proxies"),
            ("backups", "newest"),
        ] {
            assert_eq!(verdict(&found, group, name), "pass", "{number}: {group}/{name}: {found:#}");
        }
        let bundled: Value = serde_json::from_slice(&std::fs::read(&bundle).unwrap()).unwrap();
        assert_eq!((&bundled["checks"], &bundled["condition"]), (&found["checks"], &Value::Null));
    }
}

#[test]
fn removes_secrets_in_urls_from_bundles() {
    let server = Setup::default().start();
    let bundle = server.directory().join("bundle.json");
    let mut command = Binary::command();
    command.args(["doctor", "--listen", "127.0.0.1:0", "--bundle"]).arg(&bundle);
    command.arg("--data-dir").arg(server.directory());
    for name in ["SMS_ENDPOINT", "LLM_BASE_URL", "SERVER_PUBLIC_URL", "PAYMENT_NOTIFY_URL", "ACME_DIRECTORY"] {
        command.env(format!("YARROW_{name}"), "https://user:hunter2@example.com/?api_key=hunter2&region=cn");
    }
    let ended = command.output().unwrap();
    // PostgreSQL serves the tests without `fsync`, which fails.
    let expected = if postgresql().is_none() { 0 } else { 5 };
    assert_eq!(ended.status.code(), Some(expected), "{}", String::from_utf8_lossy(&ended.stderr));
    let reported = String::from_utf8(ended.stdout).unwrap() + &std::fs::read_to_string(&bundle).unwrap();
    assert!(!reported.contains("hunter2"), "{reported}");
    assert!(reported.contains("https://****@example.com/?api_key=****&region=****"), "{reported}");
}

#[test]
fn fails_for_an_incomplete_schema() {
    let server = Setup::default().start();
    assert_eq!(verdict(&examined(server.directory(), &[], 0), "database", "schema"), "pass");
    for (broken, fault) in [
        (
            drop_trigger("ledger_entries_forbids_update", "ledger_entries").as_str(),
            "trigger ledger_entries_forbids_update is missing",
        ),
        ("drop index ledger_entries_by_event", "index ledger_entries_by_event is missing"),
        ("drop table feedback_replies", "table feedback_replies is missing"),
        ("create table ours (id integer)", "table ours is unknown"),
    ] {
        // Other tables in a database of PostgreSQL may be the operator's.
        if postgresql().is_some() && fault.ends_with("unknown") {
            continue;
        }
        server.edit(broken);
        let found = examined(server.directory(), &[], 5);
        let checks = found["checks"].as_array().unwrap();
        let check = checks.iter().find(|check| check["group"] == "database" && check["name"] == "schema").unwrap();
        assert_eq!(check["verdict"], "fail");
        assert!(check["detail"].as_str().unwrap().contains(fault), "{check}");
    }
}

/// Runs `doctor` with these trusted proxies and returns the verdict on forwarding.
fn forwarding(server: &Server, trusted: &str) -> String {
    let settings = [("YARROW_SERVER_TRUSTED_PROXIES", trusted)];
    let found = server.command_with(&settings, &["doctor", "--listen", "127.0.0.1:0"]).json();
    verdict(&found, "proxy", "forwarding").to_owned()
}

#[test]
fn fails_for_a_proxy_that_is_not_trusted() {
    let mut server = Setup::default().with("SERVER_TRUSTED_PROXIES", "172.17.0.1").in_own_process().start();
    assert_eq!(forwarding(&server, "172.17.0.1"), "pass");
    for _ in 0..3 {
        server.get("/healthz").header("x-forwarded-for", "198.51.100.7").send().expect(200);
    }
    server.wait_for_line("add it to server.trusted_proxies");
    eventually("the finding is stored", || forwarding(&server, "172.17.0.1") == "fail");
    let warnings = server.lines().iter().filter(|line| line.contains("server.trusted_proxies")).count();
    assert_eq!(warnings, 1);
    // Trusting it mends it, in any spelling.
    assert_eq!(forwarding(&server, "::ffff:127.0.0.0/104"), "pass");
}

#[test]
fn fails_for_a_proxy_that_writes_no_address() {
    let server = Setup::default().start();
    server.get("/healthz").header("x-forwarded-for", "198.51.100.7, unknown").send().expect(200);
    eventually("the finding is stored", || forwarding(&server, "127.0.0.0/8") == "fail");
}
