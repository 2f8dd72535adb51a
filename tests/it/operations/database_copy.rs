//! `yarrow database copy`: a demonstration's data on its way to PostgreSQL and back.
//!
//! The tests start the program themselves: the one of the other tests gives each data directory a database of its own.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        LazyLock,
        atomic::{AtomicU32, Ordering},
    },
    thread::sleep,
    time::Duration,
};

use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Request, copy_directory};

const PHONE_NUMBER: &str = "13800138000";

/// Returns the program without inherited settings.
fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_yarrow"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("YARROW_")) {
        command.env_remove(name);
    }
    command.stdin(Stdio::null());
    command
}

/// Runs a command and returns its exit code, its output and its last line on standard error.
fn run(arguments: &[&str]) -> (Option<i32>, Value, String) {
    let output = program().arg("--json").args(arguments).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    let printed = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (output.status.code(), printed, errors.lines().last().unwrap_or_default().to_owned())
}

#[track_caller]
fn expect(code: i32, arguments: &[&str]) -> Value {
    let (found, printed, error) = run(arguments);
    assert_eq!(found, Some(code), "{arguments:?}: {printed} {error}");
    if code == 0 { printed } else { serde_json::from_str(&error).unwrap_or_else(|_| panic!("{error}")) }
}

/// A data directory with the sample data of `yarrow demo`.
struct Source {
    _temp_dir: TempDir,
    directory: PathBuf,
}

impl Source {
    /// Returns a copy of the sample data, which is made once.
    fn new() -> Self {
        static DEMONSTRATION: LazyLock<TempDir> = LazyLock::new(demonstration);
        let made = std::fs::read_dir(DEMONSTRATION.path()).unwrap().next().unwrap().unwrap().path();
        let temp_dir = tempfile::tempdir().unwrap();
        let directory = temp_dir.path().join("data");
        copy_directory(&made, &directory);
        let source = Self { _temp_dir: temp_dir, directory };
        // Rows that were deleted have used these ids. PostgreSQL numbers the changes of words without gaps.
        let used = "update sqlite_sequence set seq = seq + 1000 where name <> 'word_changes'";
        source.database().execute(used, []).unwrap();
        source
    }

    fn path(&self) -> &str {
        self.directory.to_str().unwrap()
    }

    fn database(&self) -> Connection {
        Connection::open(self.directory.join("yarrow.db")).unwrap()
    }

    /// Returns true if the database is marked as moved.
    fn is_marked(&self) -> bool {
        let marks = "select count(*) from settings where name = 'database.moved_to'";
        self.database().query_row(marks, [], |row| row.get::<_, i64>(0)).unwrap() == 1
    }
}

/// Returns the parent of a demonstration's data directory.
fn demonstration() -> TempDir {
    let temp_dir = tempfile::tempdir().unwrap();
    let mut command = program();
    command.args(["demo", "--listen", "127.0.0.1:0"]).env("TMPDIR", temp_dir.path()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains(" castings of the last four months, in ")));
    // It would delete its data otherwise.
    process.kill().unwrap();
    process.wait().unwrap();
    temp_dir
}

/// A new PostgreSQL database, which is dropped in the end.
struct Target {
    name: String,
    url: String,
}

impl Target {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("copy_{}_{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        client("postgres").batch_execute(&format!("create database {name} template template0")).unwrap();
        let server = server();
        let part = |name: &str| server.split(' ').find_map(|part| part.strip_prefix(name)).unwrap();
        let url = format!("postgres:///{name}?host={}&user={}", part("host="), part("user="));
        Self { name, url }
    }

    /// Returns the number that a statement selects.
    fn number(&self, sql: &str) -> i64 {
        client(&self.name).query_one(sql, &[]).unwrap().get(0)
    }

    /// Returns true if there are no rows, or no tables.
    fn is_empty(&self) -> bool {
        let tables = "select count(to_regclass('users')) + count(to_regclass('settings'))";
        self.number(tables) == 0
            || self.number("select (select count(*) from users) + (select count(*) from settings)") == 0
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = client("postgres").batch_execute(&format!("drop database {} with (force)", self.name));
    }
}

fn server() -> String {
    std::env::var("YARROW_TEST_DATABASE").expect("YARROW_TEST_DATABASE names a server")
}

fn client(database: &str) -> postgres::Client {
    postgres::Client::connect(&format!("{} dbname={database}", server()), postgres::NoTls).unwrap()
}

/// A server on a PostgreSQL database.
struct Service {
    process: Child,
    address: String,
}

impl Service {
    fn start(directory: &str, url: &str) -> Self {
        let mut command = program();
        command.args(["serve", "--lazy-words", "--listen", "127.0.0.1:0", "--data-dir", directory, "--database", url]);
        command.env("YARROW_AUTH_REVIEW_ACCOUNTS", format!("{PHONE_NUMBER}=246810"));
        let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let ready = lines.by_ref().map(Result::unwrap).find(|line| line.contains("yarrow is listening on http"));
        let address = ready.unwrap().rsplit(' ').next().unwrap().trim().to_owned();
        std::thread::spawn(move || lines.for_each(drop));
        Self { process, address }
    }

    /// Signs the sample user in and returns the balance of coins.
    fn coins(&self) -> i64 {
        let post = |path: &str, body: Value| Request::new("POST", &format!("{}{path}", self.address)).json(&body);
        post("/auth/send-code", json!({ "phoneNumber": PHONE_NUMBER })).send().expect(200);
        let signed_in =
            post("/auth/login", json!({ "phoneNumber": PHONE_NUMBER, "code": "246810" })).send().expect(200);
        let token = signed_in.json()["token"].as_str().unwrap().to_owned();
        let balance = Request::new("GET", &format!("{}/coin/balance", self.address)).token(&token).send().expect(200);
        let balance = balance.json();
        balance["balance"].as_i64().unwrap_or_else(|| panic!("{balance}"))
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // Asked to stop, it leaves the list of running copies.
        let _ = Command::new("kill").arg(self.process.id().to_string()).status();
        let _ = self.process.wait();
    }
}

/// Returns the digest of each table in a report.
fn digests(report: &Value) -> BTreeMap<String, (i64, String)> {
    let tables = report["tables"].as_array().unwrap().iter();
    let digest = |table: &Value| {
        let name = table["name"].as_str().unwrap().to_owned();
        (name, (table["rows"].as_i64().unwrap(), table["sha256"].as_str().unwrap().to_owned()))
    };
    tables.map(digest).collect()
}

/// Returns the names of tables with different rows in two database files.
fn different_tables(one: &Connection, other: &Path) -> Vec<String> {
    one.execute("attach ?1 as other", [other.to_str().unwrap()]).unwrap();
    let tables = "select name from sqlite_schema where type = 'table' order by name";
    let mut statement = one.prepare(tables).unwrap();
    let names: Vec<String> = statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert!(names.len() > 50 && names.contains(&"sqlite_sequence".to_owned()), "{names:?}");
    let is_different = |name: &String| {
        let rest = |one: &str, other: &str| format!("select * from {one}.{name} except select * from {other}.{name}");
        let (left, right) = (rest("main", "other"), rest("other", "main"));
        let count = format!("select (select count(*) from ({left})) + (select count(*) from ({right}))");
        one.query_row(&count, [], |row| row.get::<_, i64>(0)).unwrap() > 0
    };
    names.into_iter().filter(is_different).collect()
}

#[test]
#[ignore = "needs PostgreSQL; tests/postgresql/run starts it"]
fn copies_there_and_back_without_a_difference() {
    let (source, target) = (Source::new(), Target::new());
    let back = source.directory.with_file_name("back");
    let there = expect(0, &["database", "copy", "--from", source.path(), "--to", &target.url]);
    assert!(there["rows"].as_i64() > Some(1000) && there["ledgerEntries"].as_i64() > Some(0), "{there}");
    assert!(source.is_marked());
    let from_keys = ["--data-dir", source.path(), "database", "copy", "--from", &target.url];
    let returned = expect(0, &[&from_keys[..], &["--to", back.to_str().unwrap()]].concat());
    assert_eq!(returned["keys"], json!(["secret.key", "sandbox.key"]));
    let (mut there, mut returned) = (digests(&there), digests(&returned));
    // The copy back is an event of its own.
    for changed in ["audit", "settings"] {
        assert!(there.remove(changed).is_some() && returned.remove(changed).is_some());
    }
    assert_eq!(there, returned);
    let database = source.database();
    assert_eq!(different_tables(&database, &back.join("yarrow.db")), ["audit", "settings"]);
    let verified = expect(0, &["--data-dir", back.to_str().unwrap(), "ledger", "verify"]);
    assert_eq!(verified["consistent"], true, "{verified}");
    let doctor = run(&["--data-dir", back.to_str().unwrap(), "doctor"]).1;
    let failed = |check: &Value| check["result"] == "fail" || check["verdict"] == "fail";
    let failed: Vec<_> = doctor["checks"].as_array().unwrap().iter().filter(|check| failed(check)).collect();
    assert!(failed.iter().all(|check| check["group"] != "database" && check["group"] != "ledger"), "{failed:?}");
}

#[test]
#[ignore = "needs PostgreSQL; tests/postgresql/run starts it"]
fn new_rows_get_ids_that_were_never_used() {
    let (source, target) = (Source::new(), Target::new());
    let used = "select seq from sqlite_sequence where name = 'users'";
    let used: i64 = source.database().query_row(used, [], |row| row.get(0)).unwrap();
    expect(0, &["database", "copy", "--from", source.path(), "--to", &target.url]);
    assert_eq!(target.number("insert into users (created_at) values (1) returning id"), used + 1);
    // A table whose ids SQLite may use again.
    let largest = target.number("select coalesce(max(id), 0) from feedback");
    let insert = "insert into feedback (is_verified, content, created_at) values (0, 'hello', 1) returning id";
    assert_eq!(target.number(insert), largest + 1);
    let changes = "select number from token_changes";
    let expected: i64 = source.database().query_row(changes, [], |row| row.get(0)).unwrap();
    assert_eq!(target.number(changes), expected);
}

#[test]
#[ignore = "needs PostgreSQL; tests/postgresql/run starts it"]
fn servers_use_the_copy_and_refuse_the_source() {
    let (source, target) = (Source::new(), Target::new());
    let balance = "select balance from balances join users on users.id = user_id where asset = 'coin' \
                   and phone_number = ?1";
    let balance: i64 = source.database().query_row(balance, [PHONE_NUMBER], |row| row.get(0)).unwrap();
    expect(0, &["database", "copy", "--from", source.path(), "--to", &target.url]);
    let service = Service::start(source.path(), &target.url);
    assert_eq!(service.coins(), balance);
    let back = source.directory.with_file_name("back");
    let copy_back =
        ["--data-dir", source.path(), "database", "copy", "--from", &target.url, "--to", back.to_str().unwrap()];
    let refused = expect(6, &copy_back);
    assert!(refused["detail"].as_str().unwrap().contains("A server is running on"), "{refused}");
    drop(service);
    for arguments in [["serve", "--listen", "127.0.0.1:0"], ["users", "show", PHONE_NUMBER]] {
        let refused = expect(6, &[&["--data-dir", source.path()][..], &arguments].concat());
        assert_eq!(refused["code"], "data_directory_unusable");
        assert!(refused["detail"].as_str().unwrap().contains(&target.name), "{refused}");
    }
    let refused = expect(6, &["database", "copy", "--from", source.path(), "--to", &Target::new().url]);
    assert!(refused["detail"].as_str().unwrap().contains("was moved to"), "{refused}");
    expect(0, &["database", "unmark", "--from", source.path()]);
    expect(0, &["--data-dir", source.path(), "users", "show", PHONE_NUMBER]);
    expect(4, &["database", "unmark", "--from", source.path()]);
    expect(0, &copy_back);
    expect(6, &copy_back);
}

#[test]
#[ignore = "needs PostgreSQL; tests/postgresql/run starts it"]
fn refuses_targets_with_rows() {
    let (source, target) = (Source::new(), Target::new());
    drop(Service::start(Source::new().path(), &target.url));
    let copy = ["database", "copy", "--from", source.path(), "--to", &target.url];
    let refused = expect(6, &copy);
    assert!(refused["detail"].as_str().unwrap().contains("is not empty"), "{refused}");
    assert!(!source.is_marked());
    let twice = ["database", "copy", "--from", &target.url, "--to", &target.url];
    assert_eq!(expect(2, &twice)["code"], "invalid_request");
}

#[test]
#[ignore = "needs PostgreSQL; tests/postgresql/run starts it"]
fn an_inconsistent_ledger_is_not_copied() {
    let (source, target) = (Source::new(), Target::new());
    source.database().execute("update balances set balance = balance + 1 where asset = 'coin'", []).unwrap();
    let refused = expect(5, &["database", "copy", "--from", source.path(), "--to", &target.url]);
    assert!(refused["detail"].as_str().unwrap().contains("ledger"), "{refused}");
    assert!(target.is_empty() && !source.is_marked());
}

#[test]
#[ignore = "needs PostgreSQL; tests/postgresql/run starts it"]
fn a_killed_copy_changes_neither_side() {
    let (source, target) = (Source::new(), Target::new());
    let back = source.directory.with_file_name("back");
    let there = ["database", "copy", "--from", source.path(), "--to", &target.url];
    assert!(kill_until_done(&there, || target.is_empty() && !source.is_marked()) > 2);
    let here = ["--data-dir", source.path(), "database", "copy", "--from", &target.url, "--to", back.to_str().unwrap()];
    let marks = "select count(*) from settings where name = 'database.moved_to'";
    let unchanged = || !back.join("yarrow.db").exists() && target.number(marks) == 0;
    assert!(kill_until_done(&here, unchanged) > 2);
    assert!(back.join("yarrow.db").exists() && !back.join("yarrow.db.copied").exists());
}

#[test]
#[ignore = "needs PostgreSQL; tests/postgresql/run starts it"]
fn a_backup_of_a_server_is_restored_on_either_engine() {
    let (source, target) = (Source::new(), Target::new());
    expect(0, &["database", "copy", "--from", source.path(), "--to", &target.url]);
    let service = Service::start(source.path(), &target.url);
    let coins = service.coins();
    let on_server = |arguments: &[&str]| {
        expect(0, &[&["--data-dir", source.path(), "--database", &target.url][..], arguments].concat())
    };
    let made = on_server(&["backup", "create"]);
    assert_eq!(made["sound"], true, "{made}");
    let (name, path) = (made["name"].as_str().unwrap(), made["path"].as_str().unwrap());
    assert_eq!(on_server(&["backup", "verify", name])["sound"], true);
    // A purge makes a backup first.
    on_server(&["cleanup", "verification-codes", "--yes"]);
    assert_eq!(on_server(&["backup", "list"])["total"], 2);
    drop(service);

    let restored = source.directory.with_file_name("restored");
    let on_file = |arguments: &[&str]| expect(0, &[&["--data-dir", restored.to_str().unwrap()], arguments].concat());
    on_file(&["restore", path, "--yes", "--unproven"]);
    assert_eq!(on_file(&["coins", "balance", PHONE_NUMBER])["balance"], coins);
    on_file(&["ledger", "verify"]);

    let (other, keys) = (Target::new(), source.directory.with_file_name("keys"));
    let keys = keys.to_str().unwrap();
    let restore = ["--data-dir", keys, "--database", &other.url, "restore", path, "--unproven"];
    expect(0, &restore);
    let balance = ["--data-dir", keys, "--database", &other.url, "coins", "balance", PHONE_NUMBER];
    assert_eq!(expect(0, &balance)["balance"], coins);
    drop(Service::start(keys, &other.url));
    let refused = expect(6, &restore);
    assert!(refused["detail"].as_str().unwrap().contains("is not empty"), "{refused}");
}

/// Kills a command later and later, until it was faster or had already committed. Returns the number of kills before.
fn kill_until_done(arguments: &[&str], is_unchanged: impl Fn() -> bool) -> u32 {
    for kills in 0.. {
        let mut process = program().args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        sleep(Duration::from_millis(20) * kills);
        if let Some(status) = process.try_wait().unwrap() {
            assert!(status.success());
            return kills;
        }
        process.kill().unwrap();
        process.wait().unwrap();
        if !is_unchanged() {
            return kills;
        }
    }
    0
}

#[test]
fn refuses_two_directories_and_missing_ones() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    let directory = directory.to_str().unwrap();
    assert_eq!(expect(2, &["database", "copy", "--from", directory, "--to", directory])["code"], "invalid_request");
    let url = "postgres:///nowhere";
    assert_eq!(expect(4, &["database", "copy", "--from", directory, "--to", url])["code"], "not_found");
    assert_eq!(expect(4, &["database", "unmark", "--from", directory])["code"], "not_found");
}
