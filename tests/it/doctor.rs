//! `yarrow doctor`, on installations that are well and on others.

use std::path::Path;

use serde_json::Value;

use crate::kit::{
    Ended, Setup, log_statement,
    vendors::{Reply, Vendor},
};

const PHONE: &str = "13800138000";

fn examined(directory: &Path, arguments: &[&str], exit_code: i32) -> Value {
    Ended::run(directory, &[&["doctor"], arguments].concat(), "").expect(exit_code).json()
}

fn verdict<'found>(found: &'found Value, group: &str, name: &str) -> &'found str {
    let checks = found["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["group"] == group && check["name"] == name);
    check.unwrap_or_else(|| panic!("no check {group}/{name} in {found:#}"))["verdict"].as_str().unwrap()
}

#[test]
fn a_fresh_installation_is_well_but_for_what_is_for_development() {
    let server = Setup::default().with("BACKUP_EVERY", "1 hour").start();
    server.sign_in(PHONE);
    server.command(&["backup", "create"]).expect(0);
    let found = examined(server.directory(), &[], 0);
    assert_eq!(found["failed"], 0, "{found:#}");
    for (group, name) in [
        ("permissions", "data directory"),
        ("permissions", "yarrow.db"),
        ("permissions", "secret.key"),
        ("clock", "direction"),
        ("database", "structure"),
        ("database", "references"),
        ("ledger", "entries"),
        ("providers", "sms"),
        ("providers", "payment"),
        ("providers", "moderation"),
        ("proxy", "trusted proxies"),
        ("backups", "age"),
        ("backups", "newest"),
    ] {
        assert_eq!(verdict(&found, group, name), "pass", "{group}/{name}: {found:#}");
    }
    for driver in ["sms driver", "email driver", "llm driver", "payment driver"] {
        assert_eq!(verdict(&found, "configuration", driver), "warn", "{driver}");
    }
}

#[test]
fn what_is_wrong_fails_and_says_so() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("data");
    let mut server = Setup::default().on(&directory).with("BACKUP_EVERY", "0 s").start();
    server.sign_in(PHONE);
    server.command(&["coins", "grant", PHONE, "5"]).expect(0);
    server.edit(
        "update balances set balance = 6; pragma foreign_keys = off; \
                 insert into tokens (token_sha256, user_id, expires_at, family, family_expires_at, created_at, label, \
                 signed_in_at, last_used_at) values (x'00', 9999, 0, x'00', 0, 0, '', 0, 0)",
    );
    assert_eq!(server.terminate(), Some(0));
    #[cfg(unix)]
    std::fs::set_permissions(directory.join("secret.key"), std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .unwrap();
    let model = Vendor::answering(|_| Reply::status(401));
    let moderator = Vendor::answering(|_| Reply::status(500));
    let file = temporary.path().join("yarrow.toml");
    let settings = format!(
        "[server]\ntrusted_proxies = [\"0.0.0.0/0\"]\n[llm]\nprovider = \"openai\"\nbase_url = \"{}\"\nmodel = \"m\"\n\
         api_key = \"sk-very-secret\"\n[sms]\nprovider = \"aliyun\"\nendpoint = \"{}\"\naccess_key_id = \"id\"\n\
         access_key_secret = \"very-secret\"\nsign_name = \"s\"\ntemplate_code = \"t\"\n\
         [moderation]\nprovider = \"aliyun\"\nendpoint = \"{}\"\naccess_key_id = \"id\"\n\
         access_key_secret = \"very-secret\"\n[auth]\nreview_accounts = {{ \"13900139000\" = \"123456\" }}\n",
        model.url(),
        Vendor::nowhere(),
        moderator.url()
    );
    std::fs::write(&file, settings).unwrap();
    let bundle = temporary.path().join("bundle.json");
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
    Ended::run(&directory, &["doctor", "--bundle", bundle.to_str().unwrap()], "").expect(1);
}

#[test]
fn a_damaged_database_and_a_clock_that_went_back_are_found() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("data");
    let mut server = Setup::default().on(&directory).with("BACKUP_EVERY", "0 s").start();
    server.edit(&log_statement(
        "with recursive counter (n) as (select 1 union all select n + 1 from counter where n < 2000) \
         select 9000000000000, null, hex(randomblob(500)), 'GET', null, 200, 1, 'filler' from counter",
    ));
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
