//! Recognition of data directories: what commands and the start accept, and what they reject as incomplete.

use std::{fs::Permissions, os::unix::fs::PermissionsExt, path::Path, process::Command};

use serde_json::Value;

use crate::support::{Binary, CommandOutput, Setup, install};

const PHONE: &str = "13800138000";

/// Runs a server that must not start, and returns its standard error.
fn refusal(directory: &Path) -> String {
    let mut command = Binary::command();
    command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(directory);
    let output = command.output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{message}");
    message
}

#[test]
fn a_command_rejects_a_mistyped_directory_and_creates_none() {
    let temp_dir = tempfile::tempdir().unwrap();
    let (missing, empty) = (temp_dir.path().join("no/such/place"), temp_dir.path().join("empty"));
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
            let message = CommandOutput::run(directory, arguments, "").expect(4).stderr();
            let expected = format!("There is no installation in {}", directory.display());
            assert!(message.contains(&expected) && message.contains("yarrow serve"), "{arguments:?}: {message}");
        }
    }
    assert!(!temp_dir.path().join("no").exists(), "a directory was created");
    assert_eq!(std::fs::read_dir(&empty).unwrap().count(), 0, "a file was created in the directory");
}

/// Returns the reason why `doctor` could not open the database.
fn opening(found: &Value) -> String {
    let mut checks = found["checks"].as_array().unwrap().iter();
    let check = checks.find(|check| check["group"] == "database" && check["name"] == "opening").unwrap();
    assert_eq!(check["verdict"], "fail", "{check}");
    check["detail"].as_str().unwrap().to_owned()
}

#[test]
fn doctor_fails_without_a_data_directory() {
    let temp_dir = tempfile::tempdir().unwrap();
    let missing = temp_dir.path().join("data");
    let bundle = temp_dir.path().join("bundle.json");
    let arguments = ["doctor", "--bundle", bundle.to_str().unwrap()];
    let found = CommandOutput::run(&missing, &arguments, "").expect(5).json();
    assert!(opening(&found).contains("There is no installation"), "{found:#}");
    assert!(!missing.exists());
    let bundled: Value = serde_json::from_str(&std::fs::read_to_string(&bundle).unwrap()).unwrap();
    assert_eq!(bundled["checks"], found["checks"]);
}

#[test]
fn administrators_can_be_created_before_the_first_start() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    CommandOutput::run(&directory, &["admin", "create", "alice", "--password-stdin"], "correct horse battery\n")
        .expect(0);
    let key = CommandOutput::run(&directory, &["admin", "key", "create", "shop"], "").expect(0).json();
    let server = Setup::default().on(&directory).start();
    server.get("/admin/audit").token(key["key"].as_str().unwrap()).send().expect(200);
}

#[test]
fn some_commands_need_no_data_directory() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    let commands: [&[&str]; 4] = [&["config", "sample"], &["config", "show"], &["openapi"], &["version"]];
    for arguments in commands {
        CommandOutput::run(&directory, arguments, "").expect(0);
    }
    assert!(!directory.exists());
}

#[test]
fn a_lost_server_key_is_not_regenerated() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    let mut server = Setup::default().on(&directory).with("BACKUP_EVERY", "0 s").in_own_process().start();
    server.sign_in(PHONE);
    let created = server.command(&["backup", "create"]).expect(0).json();
    assert_eq!(server.terminate(), Some(0));
    let path = directory.join("secret.key");
    let key = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();

    let message = refusal(&directory);
    let expected = [path.to_str().unwrap(), "is missing", "auth.secret_key", created["name"].as_str().unwrap()];
    assert!(expected.iter().all(|expected| message.contains(expected)), "{message}");
    CommandOutput::run(&directory, &["users", "show", PHONE], "").expect(1);
    let found = CommandOutput::run(&directory, &["doctor"], "").expect(5).json();
    assert!(opening(&found).contains("secret.key is missing"), "{found:#}");
    assert!(!path.exists(), "another key was created");

    // A configured key needs no file, and the backup contains the lost one.
    drop(Setup::default().on(&directory).with("AUTH_SECRET_KEY", "k".repeat(32)).in_own_process().start());
    assert!(!path.exists());
    let name = created["name"].as_str().unwrap();
    let restored = CommandOutput::run(&directory, &["restore", name, "--keys"], "").expect(0).json();
    assert_eq!(restored["keys"][0], "secret.key", "{restored}");
    assert_eq!(std::fs::read(&path).unwrap(), key);
    let server = Setup::default().on(&directory).with("BACKUP_EVERY", "0 s").in_own_process().start();
    let audit = server.command(&["audit", "--actor", "cli"]).expect(0).json();
    assert_eq!(audit["items"][0]["action"], "yarrow restore --keys", "{audit}");
    drop(server);
    CommandOutput::run(&directory, &["restore", name, "--keys"], "").expect(4);
}

#[test]
fn takes_no_keys_from_a_damaged_backup() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    install(&directory);
    let created = CommandOutput::run(&directory, &["backup", "create"], "").expect(0).json();
    let backup = created["path"].as_str().unwrap();
    let key = std::fs::read(directory.join("secret.key")).unwrap();
    let mut bytes = std::fs::read(backup).unwrap();
    let place = bytes.windows(key.len()).position(|window| window == key).unwrap();
    bytes[place] ^= 1;
    std::fs::write(backup, bytes).unwrap();
    std::fs::remove_file(directory.join("secret.key")).unwrap();
    let message = CommandOutput::run(&directory, &["restore", backup, "--keys"], "").expect(1).stderr();
    assert!(message.contains("is damaged: its checksum"), "{message}");
    assert!(!directory.join("secret.key").exists());
}

#[test]
fn points_to_the_backups_if_everything_is_lost() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    install(&directory);
    let created = CommandOutput::run(&directory, &["backup", "create"], "").expect(0).json();
    let name = created["name"].as_str().unwrap();
    for lost in ["yarrow.db", "secret.key", "sandbox.key"] {
        drop(std::fs::remove_file(directory.join(lost)));
    }
    let way_out = format!("`yarrow restore {name}`");
    assert!(refusal(&directory).contains(&way_out));
    assert!(CommandOutput::run(&directory, &["ledger", "verify"], "").expect(4).stderr().contains(&way_out));
    CommandOutput::run(&directory, &["restore", name, "--yes", "--unproven"], "").expect(0);
    drop(Setup::default().on(&directory).start());
}

#[test]
fn an_early_killed_restore_creates_no_data_directory() {
    let temp_dir = tempfile::tempdir().unwrap();
    let (empty, whole) = (temp_dir.path().join("empty"), temp_dir.path().join("whole"));
    std::fs::create_dir(&empty).unwrap();
    install(&whole);
    for directory in [&empty, &whole] {
        std::fs::write(directory.join("yarrow.db.restored"), "half of a copy").unwrap();
        std::fs::write(directory.join("secret.key.restored"), "a key").unwrap();
    }
    assert!(refusal(&empty).contains("a restore was interrupted"));
    assert!(!empty.join("yarrow.db").exists());
    drop(Setup::default().on(&whole).start());
    assert!(!whole.join("yarrow.db.restored").exists() && !whole.join("secret.key.restored").exists());
}

#[test]
fn does_not_restore_a_copy_without_keys_into_an_empty_directory() {
    let temp_dir = tempfile::tempdir().unwrap();
    let (old, new) = (temp_dir.path().join("old"), temp_dir.path().join("new"));
    install(&old);
    let copy = temp_dir.path().join("copied.db");
    std::fs::copy(old.join("yarrow.db"), &copy).unwrap();
    let restore = ["restore", copy.to_str().unwrap(), "--yes", "--unproven"];
    let message = CommandOutput::run(&new, &restore, "").expect(1).stderr();
    assert!(message.contains("secret.key"), "{message}");
    assert!(!new.join("yarrow.db").exists());
    std::fs::copy(old.join("secret.key"), new.join("secret.key")).unwrap();
    CommandOutput::run(&new, &restore, "").expect(0);
    CommandOutput::run(&new, &["ledger", "verify"], "").expect(0);
}

#[test]
fn resumes_a_first_start_killed_before_the_key() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    install(&directory);
    // The database is created first, then the keys, then the default words.
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
fn does_not_restore_the_key_of_another_installation() {
    let temp_dir = tempfile::tempdir().unwrap();
    let place = |name: &str| temp_dir.path().join(name);
    let backup_of = |directory: &Path| {
        let mut server = Setup::default().on(directory).with("BACKUP_EVERY", "0 s").start();
        let created = server.command(&["backup", "create"]).expect(0).json();
        assert_eq!(server.terminate(), Some(0));
        created["path"].as_str().unwrap().to_owned()
    };
    let (ours, theirs) = (backup_of(&place("ours")), backup_of(&place("theirs")));
    let key = place("ours").join("secret.key");
    std::fs::remove_file(&key).unwrap();
    let refused = CommandOutput::run(&place("ours"), &["restore", &theirs, "--keys"], "").expect(1).stderr();
    assert!(refused.contains("another installation"), "{refused}");
    assert!(!key.exists());
    CommandOutput::run(&place("ours"), &["restore", &ours, "--keys"], "").expect(0);
    assert!(key.exists());
}

#[test]
fn reports_a_changed_server_key_until_accepted() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    let start =
        |key: &str| Setup::default().on(&directory).with("AUTH_SECRET_KEY", key.repeat(32)).in_own_process().start();
    let warning = "the server key is not the one of this database";
    let is_reported = |server: &crate::support::Server| server.lines().iter().any(|line| line.contains(warning));
    assert!(!is_reported(&start("a")));
    assert!(!is_reported(&start("a")));
    assert!(is_reported(&start("b")), "and the service runs");
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
    assert!(!is_reported(&start("b")));
    assert!(is_reported(&start("a")));
}

#[test]
fn rejects_a_password_that_is_not_utf_8() {
    let temp_dir = tempfile::tempdir().unwrap();
    let file = temp_dir.path().join("password");
    std::fs::write(&file, b"correct horse \xff battery\n").unwrap();
    let mut command = Binary::command();
    command.args(["admin", "create", "alice", "--password-stdin", "--data-dir"]).arg(temp_dir.path().join("data"));
    let ended = command.stdin(std::fs::File::open(&file).unwrap()).output().unwrap();
    let message = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(2), "{message}");
    assert!(message.contains("not UTF-8"), "{message}");
}

/// Returns the mode of a file, without its kind.
fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn locks_and_keys_are_private_under_any_umask() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    let mut server = Setup::default().on(&directory).after("umask 0").start();
    server.command(&["backup", "create"]).expect(0);
    assert_eq!(server.terminate(), Some(0));
    let files = ["yarrow.lock", "yarrow.db", "secret.key", "sandbox.key", "backups/backup.lock"];
    for file in files {
        assert_eq!(mode(&directory.join(file)), 0o600, "{file}");
    }
    // A lock that an older version left open to everybody is closed.
    std::fs::set_permissions(directory.join("yarrow.lock"), Permissions::from_mode(0o666)).unwrap();
    let found = CommandOutput::run(&directory, &["doctor", "--listen", "127.0.0.1:0"], "").json();
    assert_eq!(mode(&directory.join("yarrow.lock")), 0o600, "{found}");
    std::fs::set_permissions(directory.join("backups/backup.lock"), Permissions::from_mode(0o644)).unwrap();
    let found = CommandOutput::run(&directory, &["doctor", "--listen", "127.0.0.1:0"], "").expect(5).json();
    let checks = found["checks"].as_array().unwrap();
    let lock = checks.iter().find(|check| check["group"] == "permissions" && check["name"] == "backup.lock").unwrap();
    assert_eq!(lock["verdict"], "fail");
}

#[test]
fn planted_links_and_pipes_lead_nowhere() {
    let temp_dir = tempfile::tempdir().unwrap();
    let target = temp_dir.path().join("target");
    let pipes = ["yarrow.lock", "secret.key", "yarrow.db", "restore.pending", "yarrow.db.restored"];
    let planted = pipes.map(|name| (name, false)).into_iter().chain([("yarrow.lock", true)]);
    for (planted, is_link) in planted {
        let directory = temp_dir.path().join(format!("data-{planted}-{is_link}"));
        std::fs::create_dir(&directory).unwrap();
        std::fs::write(&target, "precious").unwrap();
        let path = directory.join(planted);
        if is_link {
            std::os::unix::fs::symlink(&target, &path).unwrap();
        } else {
            assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        }
        let key = CommandOutput::run(&directory, &["admin", "key", "create", "x"], "").expect(6);
        assert!(key.stderr().contains(planted) || key.stderr().contains("data directory"), "{}", key.stderr());
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "precious");
    }
}
