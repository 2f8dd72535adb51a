//! The operator: commands on the data directory of a running server, and credentials of administrators.

use std::{
    io::Write,
    path::Path,
    process::{Output, Stdio},
};

use serde_json::{Value, json};

use super::server::{Binary, Server, Setup};

/// A command that has ended.
pub struct Ended(Output);

impl Ended {
    /// Runs a command on this data directory, with this on its standard input, answering in JSON.
    pub fn run(directory: &Path, arguments: &[&str], input: &str) -> Self {
        Self::run_with(directory, &[], arguments, input)
    }

    /// The same, with these settings by their environment variables.
    pub fn run_with(directory: &Path, settings: &[(&str, &str)], arguments: &[&str], input: &str) -> Self {
        let mut command = Binary::command();
        command.envs(settings.iter().copied());
        command.arg("--json").arg("--data-dir").arg(directory).args(arguments);
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = pipes.spawn().unwrap();
        // A command that does not read its input may have ended before it was written.
        let _ = process.stdin.take().unwrap().write_all(input.as_bytes());
        Self(process.wait_with_output().unwrap())
    }

    /// Fails the test unless the command ended with this exit code.
    #[track_caller]
    pub fn expect(self, exit_code: i32) -> Self {
        assert_eq!(self.0.status.code(), Some(exit_code), "{}{}", self.text(), self.complaint());
        self
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.0.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.stdout).into_owned()
    }

    pub fn complaint(&self) -> String {
        String::from_utf8_lossy(&self.0.stderr).into_owned()
    }

    /// The complaint as programs read it: the last line of all that was said.
    #[track_caller]
    pub fn problem(&self) -> Value {
        let complaint = self.complaint();
        serde_json::from_str(complaint.lines().last().unwrap()).unwrap_or_else(|error| panic!("{error}: {complaint}"))
    }
}

/// Makes an installation at rest, as a first start does.
pub fn install(directory: &Path) {
    let mut server = Setup::default().on(directory).with("BACKUP_EVERY", "0 s").start();
    assert_eq!(server.terminate(), Some(0));
}

impl Server {
    /// Runs a command beside this server.
    pub fn command(&self, arguments: &[&str]) -> Ended {
        Ended::run(self.directory(), arguments, "")
    }

    /// Runs a command beside this server, with these settings by their environment variables.
    pub fn command_with(&self, settings: &[(&str, &str)], arguments: &[&str]) -> Ended {
        Ended::run_with(self.directory(), settings, arguments, "")
    }

    /// Makes an API key.
    pub fn api_key(&self, label: &str) -> String {
        let made = self.command(&["admin", "key", "create", label]).expect(0).json();
        made["key"].as_str().unwrap().to_owned()
    }

    /// Makes an administrator, who signs in.
    pub fn admin(&self, name: &str, password: &str) -> String {
        let arguments = ["admin", "create", name, "--password-stdin"];
        Ended::run(self.directory(), &arguments, &format!("{password}\n")).expect(0);
        let login = json!({ "name": name, "password": password });
        let session = self.post("/admin/login").json(&login).send().expect(200).json();
        session["token"].as_str().unwrap().to_owned()
    }

    /// Gives coins to whoever has this phone number.
    pub fn grant(&self, key: &str, phone_number: &str, coins: u32) {
        let body = json!({ "phoneNumber": phone_number, "coinCount": coins });
        self.post("/coin/increase/phone").token(key).json(&body).send().expect(200);
    }
}
