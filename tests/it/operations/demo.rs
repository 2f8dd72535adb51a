//! The demonstration, as somebody meets it who has just got the program.

use std::{
    io::{BufRead, BufReader, Lines},
    net::SocketAddr,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, ChildStderr, Command, Stdio},
};

use crate::support::{
    Answer, Binary, Ended, eventually, raw,
    vendors::{Reply, Vendor},
};

/// A demonstration that runs. Its lines are kept, because it prints to whoever holds them.
struct Demonstration {
    process: Child,
    address: SocketAddr,
    directory: PathBuf,
    _lines: Lines<BufReader<ChildStderr>>,
}

impl Demonstration {
    fn start(temporary: &Path, settings: &[(&str, &str)]) -> Self {
        let mut command = Binary::command();
        command.args(["demo", "--listen", "127.0.0.1:0"]).env("TMPDIR", temporary);
        command.envs(settings.iter().copied()).stdin(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let mut line_with = |text: &str| lines.by_ref().map(Result::unwrap).find(|line| line.contains(text)).unwrap();
        let address = line_with("yarrow is listening on http://").rsplit("http://").next().unwrap().parse().unwrap();
        let told = line_with(" castings of the last four weeks, in ");
        let directory = PathBuf::from(told.rsplit(" in ").next().unwrap().trim_end_matches('.'));
        assert!(directory.starts_with(temporary), "{told}");
        Self { process, address, directory, _lines: lines }
    }

    fn call(&self, path: &str, form: &str, token: &str) -> Answer {
        let length = form.len();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: yarrow\r\nConnection: close\r\n{token}\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {length}\r\n\r\n{form}"
        );
        raw::exchange(self.address, request.as_bytes())
    }

    /// Walks along what the introduction prints, up to what an interpretation says.
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
fn a_demonstration_serves_what_it_says_and_leaves_nothing() {
    let temporary = tempfile::tempdir().unwrap();
    let own = temporary.path().join("own");
    let demonstration = Demonstration::start(temporary.path(), &[("YARROW_DATA_DIR", own.to_str().unwrap())]);
    let mode = demonstration.directory.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "the keys in it are for nobody else");
    assert!(!own.exists(), "a demonstration must not write into somebody's data");
    let interpreted = demonstration.interpret();
    assert_eq!(interpreted["provider"], "builtin", "{interpreted}");
    // Nobody in it is as nobody could be.
    let validated = Ended::run(&demonstration.directory, &["users", "validate", "13800138000"], "").expect(0).json();
    assert_eq!(validated["consistent"], true, "{validated}");
    demonstration.terminate();
}

#[test]
fn a_demonstration_reaches_nothing_that_is_configured() {
    let (temporary, outside) = (tempfile::tempdir().unwrap(), Vendor::answering(|_| Reply::status(500)));
    let (backups, url) = (temporary.path().join("backups"), outside.url());
    let demonstration = Demonstration::start(
        temporary.path(),
        &[
            ("YARROW_BACKUP_DIRECTORY", backups.to_str().unwrap()),
            ("YARROW_BACKUP_EVERY", "1 s"),
            ("YARROW_BACKUP_S3_ENDPOINT", &url),
            ("YARROW_BACKUP_S3_BUCKET", "backups"),
            ("YARROW_BACKUP_S3_ACCESS_KEY_ID", "id"),
            ("YARROW_BACKUP_S3_SECRET_ACCESS_KEY", "secret"),
            ("YARROW_ALERTS_WEBHOOK_URL", &url),
            // Something to tell.
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
            ("YARROW_MODERATION_SHADOW_SHARE", "1"),
            ("YARROW_LLM_PROVIDER", "openai"),
            ("YARROW_LLM_BASE_URL", &url),
            ("YARROW_LLM_MODEL", "model"),
        ],
    );
    demonstration.call("/auth/send-code", "phoneNumber=13900139000", "").expect(200);
    assert_eq!(demonstration.interpret()["provider"], "builtin");
    let is_backup = |name: &std::ffi::OsStr| Path::new(name).extension().is_some_and(|extension| extension == "db");
    let made = |directory: &Path| {
        let entries = std::fs::read_dir(directory).into_iter().flatten();
        entries.filter(|entry| is_backup(&entry.as_ref().unwrap().file_name())).count()
    };
    // The second comes after the first was to be uploaded.
    eventually("two backups", || made(&demonstration.directory.join("backups")) + made(&backups) > 1);
    assert!(!backups.exists(), "a demonstration must not write into somebody's backups");
    let reached: Vec<_> = outside.requests().into_iter().map(|request| request.target).collect();
    assert!(reached.is_empty(), "{reached:?}");
    demonstration.terminate();
}
