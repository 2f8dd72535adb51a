//! Commands on a data directory, and administrator credentials.

use std::{
    ffi::OsString,
    io::Write,
    panic::resume_unwind,
    path::Path,
    process::{Output, Stdio},
    sync::{Arc, Mutex},
};

use argon2::{Algorithm, Argon2, Params, PasswordHasher as _, Version};
use serde_json::{Value, json};

use yarrow::{
    cli::{self, GivenStreams, Streams},
    domain::operations::admins::{keys, roles::Role},
};

use super::client::wait_for_words;
use super::server::{Binary, Server, Setup, postgresql};

/// The output and exit code of a command.
pub struct CommandOutput {
    exit_code: Option<i32>,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl CommandOutput {
    /// Runs a command with `--json` and this input on a data directory.
    pub fn run(directory: &Path, arguments: &[&str], input: &str) -> Self {
        Self::run_with(directory, &[], arguments, input)
    }

    /// Runs a command with settings given as environment variables. On files it runs in this process, without a log: to
    /// start the program takes a third of the time of a command.
    pub fn run_with(directory: &Path, settings: &[(&str, &str)], arguments: &[&str], input: &str) -> Self {
        // These need the lock of the directory. A process that another test is starting may still have that of a command
        // before, since it has all files of this process until it runs its program.
        let needs_lock = ["restore", "database"].iter().any(|command| arguments.contains(command));
        if needs_lock || postgresql().is_some() {
            return Self::run_in_own_process(directory, settings, arguments, input);
        }
        let variables = settings.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let input = Mutex::new(input.as_bytes().to_vec());
        let streams = Arc::new(GivenStreams { variables, input, ..GivenStreams::default() });
        let options = ["yarrow", "--json", "--data-dir"].map(OsString::from).into_iter().chain([directory.into()]);
        let arguments: Vec<_> = options.chain(arguments.iter().map(OsString::from)).collect();
        // In a thread of its own, whose priority it may lower.
        let exit_code = std::thread::scope(|scope| {
            let command = scope.spawn(|| cli::run(&arguments, &Streams::Given(Arc::clone(&streams))));
            command.join().unwrap_or_else(|panic| resume_unwind(panic))
        });
        let taken = |text: &Mutex<Vec<u8>>| std::mem::take(&mut *text.lock().unwrap());
        Self { exit_code: Some(exit_code.into()), stdout: taken(&streams.output), stderr: taken(&streams.errors) }
    }

    /// Runs a command in a process of its own, for tests of its log or its end.
    pub fn run_in_own_process(directory: &Path, settings: &[(&str, &str)], arguments: &[&str], input: &str) -> Self {
        let mut command = Binary::command();
        command.envs(settings.iter().copied());
        command.arg("--json").arg("--data-dir").arg(directory).args(arguments);
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = pipes.spawn().unwrap();
        // A command that does not read its input may have ended already.
        let _ = process.stdin.take().unwrap().write_all(input.as_bytes());
        let Output { status, stdout, stderr } = process.wait_with_output().unwrap();
        if arguments.contains(&"words") {
            wait_for_words();
        }
        Self { exit_code: status.code(), stdout, stderr }
    }

    /// Panics unless the exit code matches.
    #[track_caller]
    pub fn expect(self, exit_code: i32) -> Self {
        assert_eq!(self.exit_code, Some(exit_code), "{}{}", self.text(), self.stderr());
        self
    }

    /// Panics unless all checks of `doctor --json` pass, but for `fsync`: PostgreSQL serves the tests without it.
    #[track_caller]
    pub fn expect_sound(self) -> Self {
        if postgresql().is_none() {
            return self.expect(0);
        }
        let found = self.json();
        let checks = found["checks"].as_array().unwrap();
        let failed: Vec<_> = checks.iter().filter(|check| check["verdict"] == "fail").collect();
        assert!(failed.iter().all(|check| check["name"] == "fsync"), "{failed:?}");
        self
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// Parses the last line of standard error as JSON.
    #[track_caller]
    pub fn problem(&self) -> Value {
        let complaint = self.stderr();
        serde_json::from_str(complaint.lines().last().unwrap()).unwrap_or_else(|error| panic!("{error}: {complaint}"))
    }
}

/// Initializes a data directory as a first start does.
pub fn install(directory: &Path) {
    let mut server = Setup::default().on(directory).with("BACKUP_EVERY", "0 s").in_own_process().start();
    assert_eq!(server.terminate(), Some(0));
}

impl Server {
    /// Runs a command beside this server.
    pub fn command(&self, arguments: &[&str]) -> CommandOutput {
        CommandOutput::run(self.directory(), arguments, "")
    }

    /// Runs a command beside this server with settings given as environment variables.
    pub fn command_with(&self, settings: &[(&str, &str)], arguments: &[&str]) -> CommandOutput {
        CommandOutput::run_with(self.directory(), settings, arguments, "")
    }

    /// Creates an API key.
    pub fn api_key(&self, label: &str) -> String {
        if let Some(app) = self.app() {
            let key = keys::create(&app.core, label, Role::Owner, None).unwrap().wait().unwrap();
            return key.reveal().to_owned();
        }
        let created = self.command(&["admin", "key", "create", label]).expect(0).json();
        created["key"].as_str().unwrap().to_owned()
    }

    /// Creates an administrator, whose password has a hash that takes no time to check.
    pub fn create_admin(&self, name: &str, password: &str, role: &str) {
        let Some(app) = self.app() else {
            let arguments = ["admin", "create", name, "--role", role, "--password-stdin"];
            CommandOutput::run(self.directory(), &arguments, &format!("{password}\n")).expect(0);
            return;
        };
        let cheap = Params::new(Params::MIN_M_COST, Params::MIN_T_COST, Params::MIN_P_COST, None).unwrap();
        let hasher = Argon2::new(Algorithm::Argon2id, Version::V0x13, cheap);
        let hash = hasher.hash_password(password.as_bytes()).unwrap().to_string();
        let (name, role) = (name.to_owned(), role.to_owned());
        let insert = "insert into admins (name, password_hash, role, created_at) values (?1, ?2, ?3, ?4)";
        app.core.store.write(move |tx| tx.insert(insert, (&name, &hash, &role, tx.now.0))).wait().unwrap();
    }

    /// Creates an administrator and signs in.
    pub fn admin(&self, name: &str, password: &str) -> String {
        self.create_admin(name, password, Role::Owner.name());
        let login = json!({ "name": name, "password": password });
        let session = self.post("/admin/login").json(&login).send().expect(200).json();
        session["token"].as_str().unwrap().to_owned()
    }

    /// Creates an administrator, signs in to the console and returns the cookie of the session.
    pub fn console_cookie(&self, name: &str, role: &str) -> String {
        const PASSWORD: &str = "correct horse battery";
        self.create_admin(name, PASSWORD, role);
        let form = [("name", name), ("password", PASSWORD)];
        let answered = self.post("/admin/console/sign-in").form(&form).send().expect(303);
        answered.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
    }

    /// Grants coins to the user with this phone number.
    pub fn grant(&self, key: &str, phone_number: &str, coins: u32) {
        let body = json!({ "phoneNumber": phone_number, "coinCount": coins });
        self.post("/coin/increase/phone").token(key).json(&body).send().expect(200);
    }
}
