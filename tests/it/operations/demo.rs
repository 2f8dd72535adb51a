//! `yarrow demo`.

use std::{
    io::{BufRead, BufReader, Lines},
    net::SocketAddr,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, ChildStderr, Command, Stdio},
};

use crate::support::{
    Binary, CommandOutput, Response, directory_in_memory, eventually,
    fake_provider::{FakeProvider, Reply},
    raw,
};

/// A running demonstration. Reading its lines keeps it from blocking.
struct Demonstration {
    process: Child,
    address: SocketAddr,
    directory: PathBuf,
    /// The path of the link to the console.
    console: String,
    _lines: Lines<BufReader<ChildStderr>>,
}

impl Demonstration {
    fn start(temp_dir: &Path, settings: &[(&str, &str)]) -> Self {
        let mut command = Binary::command();
        command.args(["demo", "--fast-jobs", "--listen", "127.0.0.1:0"]).env("TMPDIR", temp_dir);
        command.envs(settings.iter().copied()).stdin(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let mut line_with = |text: &str| lines.by_ref().map(Result::unwrap).find(|line| line.contains(text)).unwrap();
        let address = line_with("yarrow is listening on http://").rsplit("http://").next().unwrap().parse().unwrap();
        let reported = line_with(" castings of the last four months, in ");
        let directory = PathBuf::from(reported.rsplit(" in ").next().unwrap().trim_end_matches('.'));
        assert!(directory.starts_with(temp_dir), "{reported}");
        let link = line_with("/admin/console/demo/");
        let console = link.trim().trim_start_matches(&format!("http://{address}")).to_owned();
        Self { process, address, directory, console, _lines: lines }
    }

    fn call(&self, path: &str, form: &str, token: &str) -> Response {
        let length = form.len();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: yarrow\r\nConnection: close\r\n{token}\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {length}\r\n\r\n{form}"
        );
        raw::exchange(self.address, request.as_bytes())
    }

    /// Follows the printed instructions up to an interpretation.
    fn interpret(&self) -> serde_json::Value {
        assert_eq!(self.call("/auth/send-code", "phoneNumber=13800138000", "").status, 200);
        let signed_in = self.call("/auth/login", "phoneNumber=13800138000&code=246810", "").expect(200).json();
        let token = format!("Authorization: Bearer {}\r\n", signed_in["token"].as_str().unwrap());
        let form = "question=What+should+I+let+go+of&divinationData=878878";
        self.call("/divination/enhanced", form, &token).expect(200).json()
    }

    fn terminate(mut self) {
        assert!(Command::new("kill").arg("-TERM").arg(self.process.id().to_string()).status().unwrap().success());
        assert_eq!(self.process.wait().unwrap().code(), Some(0));
        assert!(!self.directory.exists(), "it is deleted at the end");
    }
}

impl Drop for Demonstration {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn serves_its_instructions_and_leaves_nothing_behind() {
    let temp_dir = directory_in_memory();
    let own = temp_dir.path().join("own");
    // Nothing listens there: a demonstration that used this database would not start.
    let database = ("YARROW_DATABASE_URL", "postgres://nobody@127.0.0.1:1/nothing");
    let demonstration = Demonstration::start(temp_dir.path(), &[("YARROW_DATA_DIR", own.to_str().unwrap()), database]);
    assert!(demonstration.directory.join("yarrow.db").exists());
    let mode = demonstration.directory.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "the keys in it are private");
    assert!(!own.exists(), "a demonstration must not write into an existing data directory");
    let interpreted = demonstration.interpret();
    assert_eq!(interpreted["provider"], "builtin", "{interpreted}");
    // The seeded users are plausible.
    let validated =
        CommandOutput::run(&demonstration.directory, &["users", "validate", "13800138000"], "").expect(0).json();
    assert_eq!(validated["consistent"], true, "{validated}");
    let verified = CommandOutput::run(&demonstration.directory, &["ledger", "verify"], "").expect(0).json();
    assert_eq!(verified["consistent"], true, "{verified}");
    let states = CommandOutput::run(&demonstration.directory, &["payments", "list"], "").expect(0).json().to_string();
    for state in ["created", "credited", "closed", "refunded", "review"] {
        let arguments = ["payments", "list", "--state", state];
        let found = CommandOutput::run(&demonstration.directory, &arguments, "").expect(0).json();
        assert!(found["total"].as_i64() > Some(0), "no order is {state}: {states}");
    }
    expect_link_that_works_once(&demonstration);
    demonstration.terminate();
}

fn expect_link_that_works_once(demonstration: &Demonstration) {
    let get = |path: &str, cookie: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nHost: yarrow\r\nConnection: close\r\n{cookie}\r\n");
        raw::exchange(demonstration.address, request.as_bytes())
    };
    assert_eq!(get("/admin/console/demo/AAAA", "").status, 404);
    let opened = get(&demonstration.console, "").expect(303);
    let cookie = opened.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let overview = get(opened.header("location").unwrap(), &format!("Cookie: {cookie}\r\n")).expect(200);
    assert!(overview.text().contains("demo"), "{}", overview.text());
    assert_eq!(get(&demonstration.console, "").status, 404, "the link works once");
}

#[test]
fn reaches_no_configured_provider() {
    let (temp_dir, outside) = (directory_in_memory(), FakeProvider::with_handler(|_| Reply::status(500)));
    let (backups, url) = (temp_dir.path().join("backups"), outside.url());
    let demonstration = Demonstration::start(
        temp_dir.path(),
        &[
            ("YARROW_BACKUP_DIRECTORY", backups.to_str().unwrap()),
            ("YARROW_BACKUP_EVERY", "1 s"),
            ("YARROW_BACKUP_S3_ENDPOINT", &url),
            ("YARROW_BACKUP_S3_BUCKET", "backups"),
            ("YARROW_BACKUP_S3_ACCESS_KEY_ID", "id"),
            ("YARROW_BACKUP_S3_SECRET_ACCESS_KEY", "secret"),
            ("YARROW_ALERTS_WEBHOOK_URL", &url),
            // Something to alert about.
            ("YARROW_ALERTS_DISK_FREE_PERCENT", "100"),
            ("YARROW_SMS_PROVIDER", "aliyun"),
            ("YARROW_SMS_ENDPOINT", &url),
            ("YARROW_SMS_ACCESS_KEY_ID", "id"),
            ("YARROW_SMS_ACCESS_KEY_SECRET", "secret"),
            ("YARROW_SMS_SIGN_NAME", "名"),
            ("YARROW_SMS_TEMPLATE_CODE", "SMS_1"),
            ("YARROW_MODERATION_PROVIDER", "aliyun"),
            ("YARROW_MODERATION_ENDPOINT", &url),
            ("YARROW_MODERATION_ACCESS_KEY_ID", "id"),
            ("YARROW_MODERATION_ACCESS_KEY_SECRET", "secret"),
            ("YARROW_MODERATION_SHADOW_SAMPLE_RATE", "1"),
            ("YARROW_AUTH_SECRET_KEY", "0123456789abcdef0123456789abcdef"),
            ("YARROW_SMS_FALLBACKS", "http"),
            ("YARROW_SMS_COUNTRIES", "86=http"),
            ("YARROW_SMS_HTTP_URL", &url),
            ("YARROW_WEBHOOKS_URL", &url),
            ("YARROW_WEBHOOKS_SECRETS", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
            ("YARROW_PUSH_HTTP_URL", &url),
            ("YARROW_LLM_PROVIDER", "openai"),
            ("YARROW_LLM_BASE_URL", &url),
            ("YARROW_LLM_MODEL", "model"),
        ],
    );
    demonstration.call("/auth/send-code", "phoneNumber=13900139000", "").expect(200);
    assert_eq!(demonstration.interpret()["provider"], "builtin");
    let is_backup = |name: &std::ffi::OsStr| Path::new(name).extension().is_some_and(|extension| extension == "db");
    let created = |directory: &Path| {
        let entries = std::fs::read_dir(directory).into_iter().flatten();
        entries.filter(|entry| is_backup(&entry.as_ref().unwrap().file_name())).count()
    };
    // The second backup follows the upload of the first.
    eventually("two backups", || created(&demonstration.directory.join("backups")) + created(&backups) > 1);
    assert!(!backups.exists(), "a demonstration must not write into existing backups");
    let reached: Vec<_> = outside.requests().into_iter().map(|request| request.target).collect();
    assert!(reached.is_empty(), "{reached:?}");
    demonstration.terminate();
}
