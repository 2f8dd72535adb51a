//! What is taken for an installation, by commands and by a start, and what is refused because something is missing.

use std::path::Path;

use serde_json::Value;

use crate::support::{Binary, Ended, Setup, install};

const PHONE: &str = "13800138000";

/// Runs a server that must not start, and returns what it says.
fn refusal(directory: &Path) -> String {
    let mut command = Binary::command();
    command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(directory);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    said
}

#[test]
fn a_command_finds_no_installation_in_a_mistyped_directory_and_makes_none() {
    let temporary = tempfile::tempdir().unwrap();
    let (missing, empty) = (temporary.path().join("no/such/place"), temporary.path().join("empty"));
    std::fs::create_dir(&empty).unwrap();
    let commands: [&[&str]; 12] = [
        &["users", "show", "1"],
        &["words", "add", "刷单", "--type", "fraud"],
        &["ledger", "verify"],
        &["coins", "repair"],
        &["backup", "create"],
        &["backup", "list"],
        &["backup", "prune"],
        &["cleanup", "all", "--yes"],
        &["admin", "list"],
        &["admin", "key", "list"],
        &["alerts", "list"],
        &["audit"],
    ];
    for directory in [&missing, &empty] {
        for arguments in commands {
            let said = Ended::run(directory, arguments, "").expect(4).complaint();
            let expected = format!("There is no installation in {}", directory.display());
            assert!(said.contains(&expected) && said.contains("yarrow serve"), "{arguments:?}: {said}");
        }
    }
    assert!(!temporary.path().join("no").exists(), "a directory was made");
    assert_eq!(std::fs::read_dir(&empty).unwrap().count(), 0, "something was made in the directory");
}

/// Why the database could not be opened, as `doctor` found.
fn opening(found: &Value) -> String {
    let mut checks = found["checks"].as_array().unwrap().iter();
    let check = checks.find(|check| check["group"] == "database" && check["name"] == "opening").unwrap();
    assert_eq!(check["verdict"], "fail", "{check}");
    check["detail"].as_str().unwrap().to_owned()
}

#[test]
fn doctor_fails_an_installation_that_is_not_there() {
    let temporary = tempfile::tempdir().unwrap();
    let missing = temporary.path().join("data");
    let bundle = temporary.path().join("bundle.json");
    let arguments = ["doctor", "--bundle", bundle.to_str().unwrap()];
    let found = Ended::run(&missing, &arguments, "").expect(5).json();
    assert!(opening(&found).contains("There is no installation"), "{found:#}");
    assert!(!missing.exists());
    let bundled: Value = serde_json::from_str(&std::fs::read_to_string(&bundle).unwrap()).unwrap();
    assert_eq!(bundled["checks"], found["checks"]);
}

#[test]
fn administrators_can_be_made_before_the_first_start() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("data");
    Ended::run(&directory, &["admin", "create", "alice", "--password-stdin"], "correct horse battery\n").expect(0);
    let key = Ended::run(&directory, &["admin", "key", "create", "shop"], "").expect(0).json();
    let server = Setup::default().on(&directory).start();
    server.get("/admin/audit").token(key["key"].as_str().unwrap()).send().expect(200);
}

#[test]
fn what_needs_no_installation_works_without_one() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("data");
    let commands: [&[&str]; 4] = [&["config", "sample"], &["config", "show"], &["openapi"], &["version"]];
    for arguments in commands {
        Ended::run(&directory, arguments, "").expect(0);
    }
    assert!(!directory.exists());
}

#[test]
fn a_lost_server_key_is_not_made_anew() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("data");
    let mut server = Setup::default().on(&directory).with("BACKUP_EVERY", "0 s").start();
    server.sign_in(PHONE);
    let made = server.command(&["backup", "create"]).expect(0).json();
    assert_eq!(server.terminate(), Some(0));
    let path = directory.join("secret.key");
    let key = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();

    let said = refusal(&directory);
    let expected = [path.to_str().unwrap(), "is missing", "auth.secret_key", made["name"].as_str().unwrap()];
    assert!(expected.iter().all(|expected| said.contains(expected)), "{said}");
    Ended::run(&directory, &["users", "show", PHONE], "").expect(1);
    let found = Ended::run(&directory, &["doctor"], "").expect(5).json();
    assert!(opening(&found).contains("secret.key is missing"), "{found:#}");
    assert!(!path.exists(), "another key was made");

    // Whoever configures the key keeps none; and the backup has the one that was lost.
    drop(Setup::default().on(&directory).with("AUTH_SECRET_KEY", "k".repeat(32)).start());
    assert!(!path.exists());
    let name = made["name"].as_str().unwrap();
    let restored = Ended::run(&directory, &["restore", name, "--keys"], "").expect(0).json();
    assert_eq!(restored["keys"][0], "secret.key", "{restored}");
    assert_eq!(std::fs::read(&path).unwrap(), key);
    let server = Setup::default().on(&directory).with("BACKUP_EVERY", "0 s").start();
    let audit = server.command(&["audit", "--actor", "cli"]).expect(0).json();
    assert_eq!(audit["items"][0]["action"], "yarrow restore --keys", "{audit}");
    drop(server);
    Ended::run(&directory, &["restore", name, "--keys"], "").expect(4);
}

#[test]
fn keys_are_not_taken_from_a_damaged_backup() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("data");
    install(&directory);
    let made = Ended::run(&directory, &["backup", "create"], "").expect(0).json();
    let backup = made["path"].as_str().unwrap();
    let key = std::fs::read(directory.join("secret.key")).unwrap();
    let mut bytes = std::fs::read(backup).unwrap();
    let place = bytes.windows(key.len()).position(|window| window == key).unwrap();
    bytes[place] ^= 1;
    std::fs::write(backup, bytes).unwrap();
    std::fs::remove_file(directory.join("secret.key")).unwrap();
    let said = Ended::run(&directory, &["restore", backup, "--keys"], "").expect(1).complaint();
    assert!(said.contains("is damaged: its checksum"), "{said}");
    assert!(!directory.join("secret.key").exists());
}

#[test]
fn where_everything_was_lost_the_backups_are_pointed_out() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("data");
    install(&directory);
    let made = Ended::run(&directory, &["backup", "create"], "").expect(0).json();
    let name = made["name"].as_str().unwrap();
    for lost in ["yarrow.db", "secret.key", "sandbox.key"] {
        drop(std::fs::remove_file(directory.join(lost)));
    }
    let way_out = format!("`yarrow restore {name}`");
    assert!(refusal(&directory).contains(&way_out));
    assert!(Ended::run(&directory, &["ledger", "verify"], "").expect(4).complaint().contains(&way_out));
    Ended::run(&directory, &["restore", name, "--yes"], "").expect(0);
    drop(Setup::default().on(&directory).start());
}

#[test]
fn a_restore_that_was_cut_off_early_makes_no_new_installation_and_leaves_nothing() {
    let temporary = tempfile::tempdir().unwrap();
    let (empty, whole) = (temporary.path().join("empty"), temporary.path().join("whole"));
    std::fs::create_dir(&empty).unwrap();
    install(&whole);
    for directory in [&empty, &whole] {
        std::fs::write(directory.join("yarrow.db.restored"), "half of a copy").unwrap();
        std::fs::write(directory.join("secret.key.restored"), "a key").unwrap();
    }
    assert!(refusal(&empty).contains("a restore was cut off"));
    assert!(!empty.join("yarrow.db").exists());
    drop(Setup::default().on(&whole).start());
    assert!(!whole.join("yarrow.db.restored").exists() && !whole.join("secret.key.restored").exists());
}

#[test]
fn a_copy_without_the_key_is_not_restored_where_there_is_none() {
    let temporary = tempfile::tempdir().unwrap();
    let (old, new) = (temporary.path().join("old"), temporary.path().join("new"));
    install(&old);
    let copy = temporary.path().join("copied.db");
    std::fs::copy(old.join("yarrow.db"), &copy).unwrap();
    let restore = ["restore", copy.to_str().unwrap(), "--yes"];
    let said = Ended::run(&new, &restore, "").expect(1).complaint();
    assert!(said.contains("secret.key"), "{said}");
    assert!(!new.join("yarrow.db").exists());
    std::fs::copy(old.join("secret.key"), new.join("secret.key")).unwrap();
    Ended::run(&new, &restore, "").expect(0);
    Ended::run(&new, &["ledger", "verify"], "").expect(0);
}

#[test]
fn a_first_start_that_was_cut_off_before_the_key_goes_on() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("data");
    install(&directory);
    // The file is made first, then the keys, then what comes with the program.
    for key in ["secret.key", "sandbox.key"] {
        drop(std::fs::remove_file(directory.join(key)));
    }
    let database = rusqlite::Connection::open(directory.join("yarrow.db")).unwrap();
    database.execute_batch("delete from settings; delete from words; delete from allowed_phrases").unwrap();
    drop(database);
    drop(Setup::default().on(&directory).start());
    assert!(directory.join("secret.key").exists());
}

#[test]
fn the_key_of_another_installation_is_not_put_back() {
    let temporary = tempfile::tempdir().unwrap();
    let place = |name: &str| temporary.path().join(name);
    let backup_of = |directory: &Path| {
        let mut server = Setup::default().on(directory).with("BACKUP_EVERY", "0 s").start();
        let made = server.command(&["backup", "create"]).expect(0).json();
        assert_eq!(server.terminate(), Some(0));
        made["path"].as_str().unwrap().to_owned()
    };
    let (ours, theirs) = (backup_of(&place("ours")), backup_of(&place("theirs")));
    let key = place("ours").join("secret.key");
    std::fs::remove_file(&key).unwrap();
    let refused = Ended::run(&place("ours"), &["restore", &theirs, "--keys"], "").expect(1).complaint();
    assert!(refused.contains("another installation"), "{refused}");
    assert!(!key.exists());
    Ended::run(&place("ours"), &["restore", &ours, "--keys"], "").expect(0);
    assert!(key.exists());
}

#[test]
fn another_server_key_is_told_until_it_is_accepted() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("data");
    let start = |key: &str| Setup::default().on(&directory).with("AUTH_SECRET_KEY", key.repeat(32)).start();
    let warning = "not the one under which this database was filled";
    let is_told = |server: &crate::support::Server| server.lines().iter().any(|line| line.contains(warning));
    assert!(!is_told(&start("a")));
    assert!(!is_told(&start("a")));
    assert!(is_told(&start("b")), "and the service runs");
    let doctor = |arguments: &[&str], exit_code: i32| {
        let mut command = Binary::command();
        command.args(["doctor", "--json", "--listen", "127.0.0.1:0", "--data-dir"]).arg(&directory).args(arguments);
        let ended = command.env("YARROW_AUTH_SECRET_KEY", "b".repeat(32)).output().unwrap();
        assert_eq!(ended.status.code(), Some(exit_code), "{}", String::from_utf8_lossy(&ended.stdout));
        let found: Value = serde_json::from_slice(&ended.stdout).unwrap();
        let check = found["checks"].as_array().unwrap().iter().find(|check| check["group"] == "keys").unwrap().clone();
        check["verdict"].clone()
    };
    assert_eq!(doctor(&[], 5), "fail");
    assert_eq!(doctor(&["--accept-key"], 0), "pass");
    assert!(!is_told(&start("b")));
    assert!(is_told(&start("a")));
}

#[test]
fn a_password_that_is_no_text_is_wrong_usage() {
    let temporary = tempfile::tempdir().unwrap();
    let file = temporary.path().join("password");
    std::fs::write(&file, b"correct horse \xff battery\n").unwrap();
    let mut command = Binary::command();
    command.args(["admin", "create", "alice", "--password-stdin", "--data-dir"]).arg(temporary.path().join("data"));
    let ended = command.stdin(std::fs::File::open(&file).unwrap()).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(2), "{said}");
    assert!(said.contains("not UTF-8"), "{said}");
}
