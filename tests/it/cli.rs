//! The command line: help, settings, health checks and log privacy.

use std::{
    ffi::OsStr,
    io::Write,
    os::unix::ffi::OsStrExt,
    path::Path,
    process::{Command, Output, Stdio},
};

use serde_json::{Value, json};

use crate::support::{
    Binary, CommandOutput, Server, Setup,
    fake_provider::{FakeProvider, Reply},
    install,
};

fn run(arguments: &[&str]) -> Output {
    Binary::command().args(arguments).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[track_caller]
fn assert_code(output: &Output, code: i32) {
    assert_eq!(output.status.code(), Some(code), "{}{}", stdout(output), stderr(output));
    assert!(!stderr(output).contains("panicked"), "{}", stderr(output));
}

/// A configuration file in its own directory.
struct SettingsFile {
    directory: tempfile::TempDir,
}

impl SettingsFile {
    fn new(content: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("yarrow.toml"), content).unwrap();
        Self { directory }
    }

    fn path(&self) -> String {
        self.directory.path().join("yarrow.toml").to_str().unwrap().to_owned()
    }
}

/// Returns value and source of a setting from `config show --json`.
fn shown(command: &mut Command, name: &str) -> (String, String) {
    let output = command.args(["config", "show", "--json"]).output().unwrap();
    assert_code(&output, 0);
    let settings: Value = serde_json::from_slice(&output.stdout).unwrap();
    let setting = settings.as_array().unwrap().iter().find(|setting| setting["name"] == name).unwrap();
    (setting["value"].to_string(), setting["origin"].as_str().unwrap().to_owned())
}

#[test]
fn prints_help_and_version() {
    let help = run(&["--help"]);
    assert_code(&help, 0);
    for command in ["serve", "demo", "config", "healthcheck", "openapi", "--data-dir", "YARROW_SERVER_LISTEN"] {
        assert!(stdout(&help).contains(command), "{command} is not in:\n{}", stdout(&help));
    }
    for command in ["serve", "config", "healthcheck", "openapi"] {
        assert_code(&run(&[command, "--help"]), 0);
    }
    let version = run(&["--version"]);
    assert_code(&version, 0);
    assert_eq!(stdout(&version).trim(), concat!("yarrow ", env!("CARGO_PKG_VERSION")));
}

#[test]
fn wrong_usage_exits_with_2_and_shows_the_usage() {
    for arguments in [&[][..], &["--no-such-flag"], &["no-such-command"], &["serve", "--listen"], &["config"]] {
        let output = run(arguments);
        assert_code(&output, 2);
        let message = stderr(&output);
        assert!(message.contains("Usage: yarrow") || message.contains("try '--help'"), "{arguments:?}: {message}");
        assert_eq!(stdout(&output), "", "{arguments:?}");
    }
}

#[test]
fn reports_all_configuration_errors_at_once() {
    let file = SettingsFile::new(
        "unknown_key = 1\n[server]\nworkers = \"many\"\n[limits]\nbody = [\"64 KiB\"]\n[nowhere]\nkey = 1\n[auth]\ncode_tries = 0\n",
    );
    let mut command = Binary::command();
    command.args(["config", "show", "--listen", "nowhere", "--config", &file.path()]);
    command
        .env("YARROW_AUTH_CODE_LIFETIME", "soon")
        .env("YARROW_NO_SUCH_SETTING", "1")
        .env("YARROW_SERVER_LISTNE", "1");
    command.env("YARROW_PORT", "tcp://10.96.12.7:8080");
    command.env("YARROW_SMS_ACCESS_KEY_SECRET_FILE", "/nonexistent/secret");
    let output = command.output().unwrap();
    assert_code(&output, 3);
    assert_eq!(stdout(&output), "");
    let message = stderr(&output);
    for fault in [
        "server.listen: `nowhere`",
        "(from --listen)",
        "server.workers: `many`",
        "limits.body: must be a single value",
        &format!("unknown_key: unknown setting (from {}, line 1)", file.path()),
        &format!("nowhere: unknown setting (from {}, line 6)", file.path()),
        "YARROW_SERVER_LISTNE: unknown setting; is `YARROW_SERVER_LISTEN` meant?",
        "auth.code_lifetime: `soon`",
        "YARROW_AUTH_CODE_LIFETIME",
        "YARROW_NO_SUCH_SETTING: unknown setting",
        "sms.access_key_secret: /nonexistent/secret",
    ] {
        assert!(message.contains(fault), "{fault} is not in:\n{message}");
    }
    assert!(!message.contains("YARROW_PORT"), "{message}");
}

#[test]
fn showing_the_settings_finds_what_the_server_would_find() {
    let mut command = Binary::command();
    let output = command
        .args(["config", "show"])
        .env("YARROW_SERVER_TLS_CERTIFICATE", "/nonexistent/a.pem")
        .env("YARROW_SERVER_TLS_KEY", "/nonexistent/b.pem")
        .output()
        .unwrap();
    assert_code(&output, 3);
    assert!(stderr(&output).contains("/nonexistent/a.pem"), "{}", stderr(&output));
}

#[test]
fn reports_unknown_names_conflicts_and_unreadable_values_together() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    let mut command = Binary::command();
    command.args(["serve", "--listen", "127.0.0.1:4711", "--admin-listen", "127.0.0.1:4711"]);
    command.arg("--data-dir").arg(&directory);
    for (name, value) in [
        ("LIMITS_TIME_ZONE", "Mars"),
        ("AUTH_ALLOWED_REGIONS", "nowhere"),
        ("AUTH_DEFAULT_REGION", "GB"),
        ("LIMITS_PAGE_SIZE", "500"),
        ("SUSPICION_FAILURE_SHARE", "500"),
        ("ALERTS_DISK_FREE_PERCENT", "101"),
        ("LIMITS_HEADER_TIMEOUT", "0 s"),
        ("SERVER_TLS_CERTIFICATE", "/nonexistent/chain.pem"),
        ("SERVER_TLS_KEY", "/nonexistent/key.pem"),
        ("EMAIL_PROVIDER", "smtp"),
        ("EMAIL_HOST", "localhost"),
        ("EMAIL_FROM", "nobody"),
        ("PAYMENT_GATEWAY", "alipay"),
        ("PAYMENT_NOTIFY_URL", "https://example.com/payment/notify"),
    ] {
        command.env(format!("YARROW_{name}"), value);
    }
    let output = command.output().unwrap();
    assert_code(&output, 3);
    let message = stderr(&output);
    for fault in [
        "limits.time_zone: ",
        "auth.allowed_regions: ",
        "limits.page_size: ",
        "suspicion.failure_share: ",
        "alerts.disk_free_percent: ",
        "limits.header_timeout: ",
        "server.tls_certificate: /nonexistent/chain.pem: ",
        "server.tls_key: /nonexistent/key.pem: ",
        "email.from: ",
        "payment.private_key: ",
        "payment.alipay_public_key: ",
        "server.admin_listen: ",
    ] {
        assert_eq!(
            message.matches(&format!("\n{fault}")).count(),
            1,
            "{fault} does not occur exactly once in:\n{message}"
        );
    }
    // Checks that depend on an unreadable value are skipped.
    assert!(!message.contains("auth.default_region"), "{message}");
    assert!(!directory.exists());
}

#[test]
fn masks_secrets_in_urls() {
    let address = "https://user:hunter2@example.com/v1?token=hunter2&region=cn";
    for variable in ["LLM_BASE_URL", "SMS_ENDPOINT", "BACKUP_S3_ENDPOINT", "SERVER_PUBLIC_URL"] {
        let mut command = Binary::command();
        command.env(format!("YARROW_{variable}"), address).env("YARROW_BACKUP_S3_BUCKET", "b");
        command.env("YARROW_BACKUP_S3_ACCESS_KEY_ID", "id").env("YARROW_BACKUP_S3_SECRET_ACCESS_KEY", "hunter2");
        let name = variable.to_lowercase().replacen('_', ".", 1);
        let (value, _) = shown(&mut command, &name);
        assert_eq!(value, "\"https://****@example.com/v1?token=****&region=****\"");
    }
}

#[test]
fn contradicting_settings_prevent_the_start_and_create_nothing() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    let mut command = Binary::command();
    command.arg("serve").arg("--data-dir").arg(&directory);
    command
        .env("YARROW_SMS_PROVIDER", "aliyun")
        .env("YARROW_LLM_PROVIDER", "openai")
        .env("YARROW_AUTH_CODE_TRIES", "0");
    let output = command.output().unwrap();
    assert_code(&output, 3);
    for fault in ["sms.access_key_id", "sms.access_key_secret", "sms.sign_name", "llm.model", "auth.code_tries"] {
        assert!(stderr(&output).contains(fault), "{fault} is not in:\n{}", stderr(&output));
    }
    assert!(!directory.exists());
}

#[test]
fn reports_failures_as_json_on_request() {
    let directory = tempfile::tempdir().unwrap();
    install(directory.path());
    let run = |arguments: &[&str]| CommandOutput::run(directory.path(), arguments, "");
    let unknown = run(&["coins", "balance", "13800138000"]).expect(4);
    assert_eq!(unknown.problem(), json!({ "code": "not_found", "detail": "User `13800138000` not found." }));
    assert_eq!((unknown.text().as_str(), unknown.stderr().lines().count()), ("", 1));
    let wrong = run(&["words", "add", "赌"]).expect(2).problem();
    let faults = wrong["errors"].as_array().unwrap();
    assert_eq!((&wrong["code"], faults.len()), (&json!("invalid_parameters"), 1));
    assert_eq!((&faults[0]["field"], &faults[0]["code"]), (&json!("word"), &json!("too_short")));
    assert!(wrong["detail"].as_str().unwrap().contains(faults[0]["message"].as_str().unwrap()), "{wrong}");
    let misconfigured = run(&["config", "show", "--listen", "nowhere"]).expect(3).problem();
    assert_eq!(misconfigured["code"], "configuration");
    assert!(misconfigured["detail"].as_str().unwrap().contains("server.listen"), "{misconfigured}");
    for (misused, message) in [(&["ai", "usage", "--days", "0"][..], "--days"), (&["users", "show"], "<WHO>")] {
        let problem = run(misused).expect(2).problem();
        assert_eq!(problem["code"], "invalid_request");
        assert!(problem["detail"].as_str().unwrap().contains(message), "{problem}");
    }
    let plain =
        Binary::command().arg("--data-dir").arg(directory.path()).args(["users", "show", "1"]).output().unwrap();
    assert_code(&plain, 4);
    assert_eq!(stderr(&plain), "yarrow: User `1` not found.\n");
}

#[test]
fn an_unknown_provider_prevents_the_start() {
    for variable in ["YARROW_SMS_PROVIDER", "YARROW_LLM_PROVIDER", "YARROW_LOG_FORMAT"] {
        let output = Binary::command().args(["config", "show"]).env(variable, "carrier-pigeon").output().unwrap();
        assert_code(&output, 3);
        assert!(stderr(&output).contains("is not one of"), "{}", stderr(&output));
    }
}

#[test]
fn rejects_base_urls_that_no_path_can_follow() {
    let urls = [
        "http://h/v1?api-version=1",
        "http://user:pw@h/v1",
        "http://user@h/v1",
        "http://h/v1#x",
        "http://h/v1?",
        "http://",
    ];
    for url in urls {
        let output = Binary::command()
            .args(["config", "show"])
            .env("YARROW_LLM_PROVIDER", "openai")
            .env("YARROW_LLM_MODEL", "m")
            .env("YARROW_LLM_BASE_URL", url)
            .output()
            .unwrap();
        assert_code(&output, 3);
        assert!(stderr(&output).contains("llm.base_url: must be an"), "{url}: {}", stderr(&output));
        assert!(!stderr(&output).contains("pw@"), "{}", stderr(&output));
    }
}

#[test]
fn reports_every_wrong_entry_of_a_list() {
    let output = Binary::command()
        .args(["config", "show"])
        .env("YARROW_NOTIFICATIONS_URL_HOSTS", "https://example.com, example.org, example.com:443")
        .env("YARROW_SERVER_TRUSTED_PROXIES", "10.0.0.0/8, x, 10.0.0.0/99")
        .env("YARROW_LIMITS_BATCH", "99999999999")
        .output()
        .unwrap();
    assert_code(&output, 3);
    let message = stderr(&output);
    for fault in ["`https://example.com`", "`example.com:443`", "`x`", "`10.0.0.0/99`", "from 0 to 4294967295"] {
        assert!(message.contains(fault), "{fault} is not in: {message}");
    }
    assert!(!message.contains("`example.org`"), "{message}");
}

#[test]
fn rejects_a_variable_that_is_not_utf_8() {
    let no_text = OsStr::from_bytes(b"\xff");
    let mut command = Binary::command();
    command.args(["config", "show"]).env("YARROW_AUTH_SECRET_KEY", no_text).env("YARROW_LLM_API_KEY_FILE", no_text);
    command.env("YARROW_SERVER_TLS_KEY", no_text).env("YARROW_SERVER_TLS_CERTIFICATE", "certificate.pem");
    command.env("YARROW_NO_SETTING", no_text).env(OsStr::from_bytes(b"YARROW_\xff"), "1");
    let output = command.output().unwrap();
    assert_code(&output, 3);
    let message = stderr(&output);
    for fault in [
        "auth.secret_key: is not UTF-8 (from YARROW_AUTH_SECRET_KEY)",
        "llm.api_key: is not UTF-8 (from YARROW_LLM_API_KEY_FILE)",
        "server.tls_key: is not UTF-8 (from YARROW_SERVER_TLS_KEY)",
        "YARROW_NO_SETTING: unknown setting",
        "YARROW_\u{fffd}: unknown setting",
    ] {
        assert!(message.contains(fault), "{fault} is not in: {message}");
    }
    assert_eq!(message.lines().count(), 1 + 5, "{message}");
}

#[test]
fn rejects_an_unreadable_configuration_file() {
    let output = run(&["config", "show", "--config", "/nonexistent/yarrow.toml"]);
    assert_code(&output, 3);
    assert!(stderr(&output).contains("/nonexistent/yarrow.toml"), "{}", stderr(&output));
    let broken = SettingsFile::new("[server\n");
    let output = run(&["config", "show", "--config", &broken.path()]);
    assert_code(&output, 3);
    assert!(stderr(&output).contains("yarrow.toml") && stderr(&output).contains("line 1"), "{}", stderr(&output));
    let twice = SettingsFile::new("[server]\nlisten = \"127.0.0.1:1\"\nworkers = 1\nlisten = \"127.0.0.1:2\"\n");
    let output = run(&["config", "show", "--config", &twice.path()]);
    assert_code(&output, 3);
    assert!(stderr(&output).contains("line 4: duplicate key `listen`"), "{}", stderr(&output));
    let reviewers = SettingsFile::new("[auth.review_accounts]\n13800138000 = \"246810\"\n13800138000 = \"135790\"\n");
    let output = run(&["config", "show", "--config", &reviewers.path()]);
    assert_code(&output, 3);
    assert!(stderr(&output).ends_with("line 3: duplicate key\n"), "{}", stderr(&output));
}

#[test]
fn flag_environment_file_and_default_take_precedence_in_this_order() {
    let file = SettingsFile::new("[server]\nlisten = \"127.0.0.1:1\"\n");
    let name = "server.listen";
    assert_eq!(shown(&mut Binary::command(), name), ("\"127.0.0.1:8080\"".into(), "default".into()));
    let with_file = || {
        let mut command = Binary::command();
        command.env("YARROW_CONFIG", file.path());
        command
    };
    assert_eq!(shown(&mut with_file(), name), ("\"127.0.0.1:1\"".into(), file.path()));
    let with_environment = || {
        let mut command = with_file();
        command.env("YARROW_SERVER_LISTEN", "127.0.0.1:2");
        command
    };
    assert_eq!(shown(&mut with_environment(), name), ("\"127.0.0.1:2\"".into(), "YARROW_SERVER_LISTEN".into()));
    let mut with_flag = with_environment();
    with_flag.args(["--listen", "127.0.0.1:3"]);
    assert_eq!(shown(&mut with_flag, name), ("\"127.0.0.1:3\"".into(), "--listen".into()));
}

#[test]
fn reads_a_value_from_a_file_named_in_the_environment() {
    let temp_dir = tempfile::tempdir().unwrap();
    let path = temp_dir.path().join("model");
    // The second text is as some editors of Windows write it.
    for text in ["oracle\n", "\u{feff}oracle\r\n"] {
        std::fs::write(&path, text).unwrap();
        let mut command = Binary::command();
        command.env("YARROW_LLM_MODEL_FILE", &path);
        assert_eq!(shown(&mut command, "llm.model"), ("\"oracle\"".into(), "YARROW_LLM_MODEL_FILE".into()));
    }
    let both = Binary::command()
        .args(["config", "show"])
        .env("YARROW_LLM_MODEL_FILE", &path)
        .env("YARROW_LLM_MODEL", "sibyl")
        .output()
        .unwrap();
    assert_code(&both, 3);
    assert!(stderr(&both).contains("both YARROW_LLM_MODEL and YARROW_LLM_MODEL_FILE are set"), "{}", stderr(&both));
}

#[test]
fn shows_every_setting_with_its_source_and_masks_secrets() {
    const CANARY: &str = "canary-0123456789-0123456789-0123456789";
    let file = SettingsFile::new(&format!("[sms]\naccess_key_secret = \"{CANARY}\"\n"));
    let command = || {
        let mut command = Binary::command();
        command.args(["--config", &file.path()]);
        command.env("YARROW_AUTH_SECRET_KEY", CANARY).env("YARROW_LLM_API_KEY", CANARY);
        command.env("YARROW_AUTH_REVIEW_ACCOUNTS", "13800138000=471147");
        command
    };
    for arguments in [&["config", "show"][..], &["config", "show", "--json"], &["config", "sample"]] {
        let output = command().args(arguments).output().unwrap();
        assert_code(&output, 0);
        let message = format!("{}{}", stdout(&output), stderr(&output));
        assert!(!message.contains("canary") && !message.contains("471147"), "{message}");
    }
    let masked = "\"****\"".to_owned();
    assert_eq!(shown(&mut command(), "auth.secret_key"), (masked.clone(), "YARROW_AUTH_SECRET_KEY".into()));
    assert_eq!(shown(&mut command(), "sms.access_key_secret"), (masked, file.path()));
    let (accounts, _) = shown(&mut command(), "auth.review_accounts");
    assert_eq!(accounts, "{\"13800138000\":\"****\"}");
    let table = stdout(&command().args(["config", "show"]).output().unwrap());
    for name in ["data_dir", "server.listen", "limits.connections", "log.level", "YARROW_LLM_API_KEY", "default"] {
        assert!(table.contains(name), "{name} is not in:\n{table}");
    }
}

#[test]
fn errors_never_contain_a_secret() {
    const CANARY: &str = "canary0123456789";
    let wrong = [
        // Too short, not of the form name=value, not six digits.
        vec![("YARROW_AUTH_SECRET_KEY", CANARY)],
        vec![("YARROW_AUTH_REVIEW_ACCOUNTS", "13800138000:canary0123456789")],
        vec![("YARROW_AUTH_REVIEW_ACCOUNTS", "13800138000=canary0123456789")],
    ];
    for variables in wrong {
        let output = Binary::command().args(["config", "show"]).envs(variables).output().unwrap();
        assert_code(&output, 3);
        assert!(!stderr(&output).contains("canary"), "{}", stderr(&output));
    }
    // An unreadable line may be the one with the secret.
    for broken in [
        format!("[llm]\napi_key = \"{CANARY}\n"),
        format!("[llm]\napi_key = {CANARY}\n"),
        format!("[llm]\napi_key = [[\"{CANARY}\"]]\n"),
        format!("[auth]\nsecret_key = \"{CANARY}\"\nsecret_key = \"{CANARY}\"\n"),
    ] {
        let file = SettingsFile::new(&broken);
        let output = run(&["config", "show", "--config", &file.path()]);
        assert_code(&output, 3);
        assert!(!stderr(&output).contains("canary"), "{}", stderr(&output));
    }
}

#[test]
fn a_mistyped_log_level_is_an_error() {
    let shown =
        |level: &str| Binary::command().args(["config", "show"]).env("YARROW_LOG_LEVEL", level).output().unwrap();
    for level in ["eror", "info,,", "shout=info,loud", "yarrow::http=loud", "=info", ""] {
        let output = shown(level);
        assert_code(&output, 3);
        assert!(stderr(&output).contains("log.level"), "{level}: {}", stderr(&output));
    }
    for level in ["info", "WARN", "off", "info,yarrow::http=debug", "yarrow=trace"] {
        assert_code(&shown(level), 0);
    }
}

#[test]
fn the_sample_is_a_file_of_defaults_once_uncommented() {
    let sample = stdout(&run(&["config", "sample"]));
    // Unchanged, it has no effect.
    let as_it_is = SettingsFile::new(&sample);
    let unchanged = run(&["config", "show", "--json", "--config", &as_it_is.path()]);
    assert_eq!(stdout(&unchanged), stdout(&run(&["config", "show", "--json"])));
    // Each value is commented out below its explanation.
    let is_setting = |line: &str| {
        let name = line.split(" = ").next().unwrap_or_default();
        let in_names =
            |character: char| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '_';
        line.contains(" = ") && name.chars().all(in_names)
    };
    let uncommented: Vec<_> = sample
        .lines()
        .map(|line| line.strip_prefix("# ").filter(|setting| is_setting(setting)).unwrap_or(line))
        .collect();
    let settings = uncommented.iter().filter(|line| is_setting(line)).count();
    let all = serde_json::from_str::<Value>(&stdout(&unchanged)).unwrap().as_array().unwrap().len();
    assert_eq!(settings, all);
    let file = SettingsFile::new(&uncommented.join("\n"));
    let from_file = run(&["config", "show", "--json", "--config", &file.path()]);
    assert_code(&from_file, 0);
    let values = |output: &Output| {
        let settings: Value = serde_json::from_slice(&output.stdout).unwrap();
        let value = |setting: &Value| (setting["name"].to_string(), setting["value"].to_string());
        settings.as_array().unwrap().iter().map(value).collect::<Vec<_>>()
    };
    assert_eq!(values(&from_file), values(&unchanged));
}

#[test]
fn config_show_prints_typed_json_and_cuts_long_values() {
    let key = "k".repeat(500);
    let arguments = ["config", "show", "--domain", "a.example,b.example"];
    let with_key = |arguments: &[&str]| {
        let mut command = Binary::command();
        command.args(arguments).env("YARROW_PAYMENT_ALIPAY_PUBLIC_KEY", &key).output().unwrap()
    };
    let json = with_key(&[&arguments[..], &["--json"]].concat());
    let settings: Value = serde_json::from_str(&stdout(&json)).unwrap();
    let value = |name: &str| {
        settings.as_array().unwrap().iter().find(|setting| setting["name"] == name).unwrap()["value"].clone()
    };
    assert_eq!(value("server.domain"), json!(["a.example", "b.example"]));
    assert_eq!((value("auth.code_tries"), value("server.tls_key")), (json!(5), Value::Null));
    assert_eq!(value("payment.alipay_public_key"), json!(key));
    let table = stdout(&with_key(&arguments));
    assert!(table.lines().all(|line| line.chars().count() < 140), "{table}");
}

#[test]
fn a_password_is_generated_on_request() {
    let setup = Setup::default().start();
    let directory = setup.directory().to_str().unwrap().to_owned();
    let output = run(&["admin", "create", "alice", "--generate", "--data-dir", &directory]);
    assert_code(&output, 0);
    let printed = stderr(&output);
    let password = printed.lines().find_map(|line| line.strip_prefix("Password: ")).unwrap();
    let login = json!({ "name": "alice", "password": password });
    setup.post("/admin/login").json(&login).send().expect(200);
    let with_json: [&[&str]; 2] = [&["admin", "create", "bob"], &["admin", "password", "bob"]];
    for command in with_json {
        let arguments = [command, &["--generate", "--json", "--data-dir", &directory]].concat();
        let output = run(&arguments);
        assert_code(&output, 0);
        let result: Value = serde_json::from_str(&stdout(&output)).unwrap();
        assert!(!stderr(&output).contains("Password"), "the password is shown once");
        let login = json!({ "name": "bob", "password": result["password"] });
        setup.post("/admin/login").json(&login).send().expect(200);
    }
}

#[test]
fn a_start_warns_of_drivers_for_development() {
    let warned = |server: &Server| -> Vec<String> {
        let lines = server.lines().into_iter().filter(|line| line.contains("this driver is for development"));
        lines.map(|line| line.split("section=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()).collect()
    };
    let server = Setup::default().in_own_process().start();
    assert_eq!(warned(&server), ["sms", "email", "llm", "payment"]);
    let smtp = Setup::default().with("EMAIL_PROVIDER", "smtp").with("EMAIL_HOST", "127.0.0.1");
    let server = smtp.with("EMAIL_FROM", "Yarrow <no-reply@example.com>").in_own_process().start();
    assert_eq!(warned(&server), ["sms", "llm", "payment"]);
}

#[test]
fn healthcheck_returns_an_exit_code() {
    let mut server = Setup::default().start();
    let address = server.address().to_string();
    let healthy = run(&["healthcheck", "--listen", &address]);
    assert_code(&healthy, 0);
    assert_eq!(stdout(&healthy), "ready\n");
    let healthy = run(&["healthcheck", "--json", "--listen", &address]);
    assert_eq!(stdout(&healthy), "{\"ready\":true}\n");
    let everywhere = format!("0.0.0.0:{}", server.address().port());
    assert_code(&run(&["healthcheck", "--listen", &everywhere]), 0);
    let directory = server.directory().to_str().unwrap().to_owned();
    assert_code(&run(&["healthcheck", "--data-dir", &directory]), 0);
    assert_eq!(server.terminate(), Some(0));
    let ill = run(&["healthcheck", "--listen", &address]);
    assert_code(&ill, 1);
    assert!(stderr(&ill).contains(&address) && !stderr(&ill).contains("provider"), "{}", stderr(&ill));
    let ill = run(&["healthcheck", "--json", "--listen", &address]);
    assert_code(&ill, 1);
    let reported: Value = serde_json::from_str(&stdout(&ill)).unwrap();
    assert_eq!((&reported["ready"], &reported["status"]), (&json!(false), &Value::Null));
    assert!(reported["error"].as_str().unwrap().contains(&address), "{reported}");
    let unready = FakeProvider::with_handler(|_| Reply::status(503));
    let address = unready.url().replace("http://", "");
    let ill = run(&["healthcheck", "--json", "--listen", &address]);
    assert_code(&ill, 1);
    let reported: Value = serde_json::from_str(&stdout(&ill)).unwrap();
    assert_eq!((&reported["ready"], &reported["status"]), (&json!(false), &json!(503)));
    assert_code(&run(&["healthcheck", "--listen", "nowhere"]), 3);
    assert_code(&run(&["healthcheck", "--no-such-flag"]), 2);
}

#[test]
fn an_address_in_use_prevents_the_start() {
    let server = Setup::default().start();
    let temp_dir = tempfile::tempdir().unwrap();
    let mut command = Binary::command();
    command.args(["serve", "--listen", &server.address().to_string(), "--data-dir"]).arg(temp_dir.path());
    let output = command.output().unwrap();
    // A service manager retries this exit code, but not a configuration error.
    assert_code(&output, 1);
    assert!(stderr(&output).contains(&format!("Cannot listen on {}", server.address())), "{}", stderr(&output));
}

#[test]
fn an_address_missing_on_this_machine_is_no_configuration_error() {
    let temp_dir = tempfile::tempdir().unwrap();
    let mut command = Binary::command();
    // Reserved for documentation: no machine has it.
    command.args(["serve", "--listen", "192.0.2.1:0", "--data-dir"]).arg(temp_dir.path());
    let output = command.output().unwrap();
    assert_code(&output, 1);
    assert!(stderr(&output).contains("Cannot listen on 192.0.2.1:0"), "{}", stderr(&output));
}

#[test]
fn prints_the_openapi_document_without_a_server() {
    let output = run(&["openapi"]);
    assert_code(&output, 0);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(document["paths"]["/auth/login"]["post"].is_object());
    assert!(!Path::new("data").exists());
}

#[test]
fn a_closed_output_pipe_is_no_failure() {
    let program = Binary::command().get_program().to_str().unwrap().to_owned();
    let piped = format!("{program} config sample | head -n 1; {program} openapi | true");
    let output = Command::new("sh").args(["-c", &piped]).output().unwrap();
    assert_code(&output, 0);
    assert_eq!(stderr(&output), "");
}

#[test]
fn reports_output_that_cannot_be_written() {
    let server = Setup::default().start();
    let directory = server.directory().to_str().unwrap();
    for arguments in [&["config", "sample"][..], &["openapi"], &["--data-dir", directory, "words", "list"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = Binary::command().args(arguments).stdout(full).output().unwrap();
        assert_code(&output, 1);
        let message = stderr(&output);
        assert!(message.contains("Cannot write to standard output") && message.contains("No space left"), "{message}");
    }
}

#[test]
fn logs_json_if_configured() {
    let mut server = Setup::default().with("LOG_FORMAT", "json").with("LOG_LEVEL", "trace").start();
    server.get("/healthz").header("x-request-id", "seen-in-the-log").send().expect(200);
    let line = server.wait_for_line("seen-in-the-log");
    let event: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(
        (&event["route"], &event["status"], &event["level"]),
        (&json!("/healthz"), &json!(200), &json!("DEBUG"))
    );
    assert_eq!(server.terminate(), Some(0));
    let is_announcement =
        |line: &&String| line.starts_with("yarrow is listening") || line.starts_with("no administrator yet");
    for line in server.lines().iter().filter(|line| !is_announcement(line)) {
        let event: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(event["timestamp"].is_string() && event["level"].is_string(), "{line}");
    }
}

#[test]
fn a_provider_error_that_repeats_question_or_key_is_not_logged() {
    const QUESTION: &str = "朱雀何时归巢";
    const KEY: &str = "sk-canary-5b1e";
    let echo = format!("You asked {QUESTION} with the key {KEY}");
    let error =
        json!({ "error": { "message": echo, "type": "invalid_request_error", "code": "bad_request" } }).to_string();
    let responses = [
        Reply::json(error.clone()).with_status(400),
        Reply::json(error.clone()).with_status(401),
        Reply::status(500).body(echo.clone()),
        Reply::json(echo.clone()),
        Reply::event_stream(format!("data: {echo}\n\n")),
        Reply::event_stream(format!("data: {error}\n\n")),
    ];
    for (number, reply) in responses.into_iter().enumerate() {
        let provider = FakeProvider::with_handler(move |_| reply.clone());
        let setup = Setup::default().with("LOG_LEVEL", "trace").with("LLM_PROVIDER", "openai").with("LLM_API_KEY", KEY);
        let server = setup.with("LLM_MODEL", "oracle").with("LLM_BASE_URL", provider.url()).start();
        let user = server.sign_in("13912345678");
        let response = server.post("/divination/enhanced").by(&user).json(&json!({ "question": QUESTION })).send();
        assert!((500..=504).contains(&response.status), "{number}: {}", response.status);
        assert!(!response.text().contains(KEY) && !response.text().contains(QUESTION), "{number}: {}", response.text());
        assert!(!provider.requests().is_empty());
        for line in server.lines() {
            assert!(!line.contains(QUESTION) && !line.contains(KEY), "{number}: {line}");
        }
    }
}

#[test]
fn logs_contain_no_personal_data() {
    const PHONE: &str = "13912345678";
    const QUESTION: &str = "朱雀何时归巢";
    const NICKNAME: &str = "玄武岩";
    let mut server = Setup::default().with("LOG_LEVEL", "trace").with("AUTH_CODE_TRIES", 2).start();
    let user = server.sign_in(PHONE);
    let code = server.sent_codes(PHONE).pop().unwrap();
    let secret = "wrong-token-9d3c71aa";

    let phone = [("phoneNumber", PHONE)];
    let save = json!({ "localRecordId": "r-1", "phoneNumber": PHONE, "question": QUESTION, "aiResult": QUESTION });
    let requested = json!({ "question": QUESTION, "divinationData": { "note": QUESTION } });
    let name = json!({ "nickname": NICKNAME, "signature": QUESTION });
    server.put("/user/profile").by(&user).json(&name).send().expect(200);
    server.post("/divination-history/save").by(&user).json(&save).send().expect(200);
    server.post("/divination/enhanced").by(&user).json(&requested).send().expect(200);
    server.get(&format!("/divination-history/count/{PHONE}")).by(&user).send().expect(200);
    server.post("/divination-history/get").by(&user).form(&phone).send().expect(200);
    server.post("/auth/validate-token").form(&[("token", &user.token)]).send().expect(200);

    // Failing requests too.
    server.post("/auth/send-code").form(&phone).send().expect(429);
    let login = |code: &str| server.post("/auth/login").form(&[("phoneNumber", PHONE), ("code", code)]).send();
    login(&code).expect(401);
    login("not a code").expect(422);
    server.post("/auth/login").query(&[("phoneNumber", PHONE), ("code", &code)]).send().expect(401);
    server.get("/user/profile").token(secret).send().expect(401);
    server.post("/auth/refresh-token").form(&[("token", secret)]).send().expect(401);
    server.get(&format!("/nowhere/{PHONE}?token={secret}&question={NICKNAME}")).send().expect(404);
    server.get(&format!("/divination-history/count/{PHONE}")).send().expect(401);
    server
        .post("/divination-history/save")
        .by(&user)
        .raw_json(&format!("{{\"question\":\"{QUESTION}"))
        .send()
        .expect(400);
    server.put("/user/nickname").by(&user).json(&json!({ "nickname": NICKNAME.repeat(20) })).send().expect(422);
    let too_long = json!({ "question": QUESTION.repeat(60) });
    server.post("/divination/enhanced").by(&user).json(&too_long).send().expect(422);
    let strange = server.request("GREET", "/auth/login").header("x-request-id", PHONE).send();
    strange.expect(405);
    server.post("/auth/logout").by(&user).send().expect(200);

    // With a locked database, requests fail with internal errors.
    let other = server.database();
    let user = { server.sign_in("13712345678") };
    other.execute_batch("begin immediate").unwrap();
    server.put("/user/nickname").by(&user).json(&json!({ "nickname": NICKNAME })).send().expect(503);
    other.execute_batch("rollback").unwrap();

    assert_eq!(server.terminate(), Some(0));
    let lines = server.lines();
    assert!(lines.iter().any(|line| line.contains("could not be served")), "{lines:#?}");
    assert!(lines.iter().all(|line| !line.contains('\u{1b}')), "the log is coloured but not shown in a terminal");
    let of_development = |line: &&String| !line.starts_with("SMS to ");
    let secrets = [PHONE, "GREET", "13712345678", &code, &user.token, secret, QUESTION, NICKNAME];
    for line in lines.iter().filter(of_development) {
        // The client chooses the request id. It is the only value that is logged as received.
        let line = line.replace(&format!("request_id=\"{PHONE}\""), "");
        for secret in secrets {
            assert!(!line.contains(secret), "{secret} is in the log: {line}");
        }
    }
    let database = server.network_log();
    let mut statement = database.prepare("select coalesce(route, '') || method from access_log").unwrap();
    let mut rows = statement.query([]).unwrap();
    while let Some(row) = rows.next().unwrap() {
        let text: String = row.get(0).unwrap();
        assert!(secrets.iter().all(|secret| !text.contains(secret)), "{text}");
    }
}

#[test]
fn prints_build_information() {
    let reported = run(&["version", "--json"]);
    assert_code(&reported, 0);
    let facts: Value = serde_json::from_slice(&reported.stdout).unwrap();
    assert_eq!(facts["version"], env!("CARGO_PKG_VERSION"));
    assert!(facts["compiler"].as_str().unwrap().starts_with("rustc 1."), "{facts}");
    assert!(facts["sqlite"].as_str().unwrap().starts_with("3."), "{facts}");
    assert!(
        facts["target"].as_str().unwrap().contains('-') && !facts["commit"].as_str().unwrap().is_empty(),
        "{facts}"
    );
    let schema: u32 = facts["schema"].as_str().unwrap().parse().unwrap();
    assert!(schema >= 1);
    let text = stdout(&run(&["version"]));
    assert!(facts.as_object().unwrap().values().all(|value| text.contains(value.as_str().unwrap())), "{text}");
}

#[test]
fn prints_valid_completions_for_every_shell() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let printed = run(&["completions", shell]);
        assert_code(&printed, 0);
        let script = stdout(&printed);
        for word in ["serve", "healthcheck", "data-dir"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    assert_code(&run(&["completions", "abacus"]), 2);
    let script = stdout(&run(&["completions", "bash"]));
    let ask = "COMP_WORDS=(yarrow adm); COMP_CWORD=1; _yarrow yarrow adm yarrow; echo \"${COMPREPLY[@]}\"";
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("completions");
    std::fs::write(&file, format!("{script}\n{ask}\n")).unwrap();
    let completed = Command::new("bash").arg(&file).output().unwrap();
    assert_eq!(stdout(&completed).trim(), "admin", "{}", stderr(&completed));
}

#[test]
fn every_command_has_a_manual_page() {
    let page = stdout(&run(&["man"]));
    assert!(page.contains(".TH yarrow 1") && page.contains("SUBCOMMANDS"), "{page}");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    assert_code(&run(&["man", "--out-dir", path]), 0);
    for page in ["yarrow.1", "yarrow-serve.1", "yarrow-admin-totp-enrol.1", "yarrow-ledger-verify.1"] {
        let text = std::fs::read_to_string(directory.path().join(page)).unwrap();
        assert!(text.contains(".SH NAME") && text.contains(".SH SYNOPSIS"), "{page}: {text}");
    }
    assert_code(&run(&["man", "--out-dir", "/nonexistent"]), 1);
}

/// Runs a command in a terminal with this input.
fn typed_to(directory: &Path, arguments: &str, typed: &str) -> Output {
    let program = Binary::command().get_program().to_str().unwrap().to_owned();
    let line = format!("{program} {arguments} --data-dir {}", directory.to_str().unwrap());
    let mut command = Command::new("script");
    let pipes = command.args(["-qec", &line, "/dev/null"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = pipes.spawn().expect("this test needs `script` of util-linux");
    process.stdin.take().unwrap().write_all(typed.as_bytes()).unwrap();
    process.wait_with_output().unwrap()
}

#[test]
fn asks_for_confirmation_in_a_terminal() {
    let server = Setup::default().with("COINS_INITIAL", 10).start();
    let user = server.sign_in("13800138000");
    server.post("/feedback").by(&user).json(&json!({ "content": "很好" })).send().expect(200);
    server.api_key("shop");
    for (arguments, left) in [
        ("cleanup feedback", "select count(*) from feedback"),
        ("coins reset 13800138000 --reason test", "select balance from balances where asset = 'coin'"),
        ("admin key revoke shop", "select count(*) from api_keys where revoked_at is null"),
        ("cleanup all", "select count(*) from users"),
    ] {
        let before: i64 = server.value(left);
        assert!(before > 0, "{arguments}");
        for typed in ["n\n", "\n", "yess\n"] {
            let requested = typed_to(server.directory(), arguments, typed);
            assert_code(&requested, 2);
            assert!(
                stdout(&requested).contains("[y/N]") && stdout(&requested).contains("Nothing was changed."),
                "{arguments}"
            );
            assert_eq!(server.value::<i64>(left), before, "{arguments} after {typed:?}");
        }
        assert_code(&typed_to(server.directory(), arguments, "Yes\n"), 0);
        assert!(server.value::<i64>(left) < before, "{arguments}");
    }
}

#[test]
fn help_groups_commands_by_area() {
    let help = stdout(&run(&["help"]));
    let headings = help.lines().filter(|line| !line.starts_with(' ')).filter_map(|line| line.strip_suffix(':'));
    let expected = ["Identity", "Divination", "Money", "Moderation", "Messaging", "Operations", "Options"];
    assert_eq!(headings.collect::<Vec<_>>(), expected);
}

#[test]
fn accepts_former_spellings_of_commands() {
    for command in [&["users", "fix"][..], &["coins", "sync"]] {
        assert_code(&run(&[command, &["--help"]].concat()), 0);
    }
    let directory = tempfile::tempdir().unwrap();
    install(directory.path());
    for decision in ["dismiss", "collect", "returned-elsewhere"] {
        let settle = ["payments", "settle", "1", decision, "--reason", "test", "--yes"];
        CommandOutput::run(directory.path(), &settle, "").expect(4);
    }
}
