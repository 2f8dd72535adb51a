//! Backups as an operator meets them: made under load, pruned, rehearsed, restored; and what a kill leaves behind.

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread::{scope, sleep},
    time::{Duration, Instant},
};

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::{Ended, Server, Setup, copy_of, cut_off, eventually, killed_after, log_statement, open_app};

const PHONE: &str = "13800138000";
/// Moments, spread over its whole duration, at which a backup and a restore are killed.
const KILLS: u32 = 10;

fn run(directory: &Path, arguments: &[&str]) -> Ended {
    Ended::run(directory, arguments, "")
}

fn listed(directory: &Path) -> Vec<Value> {
    run(directory, &["backup", "list"]).expect(0).json()["items"].as_array().unwrap().clone()
}

fn save(server: &Server, token: &str, id: &str) {
    let record = json!({ "localRecordId": id, "question": format!("question of {id}") });
    server.post("/divination-history/save").token(token).json(&record).send().expect(201);
}

fn records(database: &Path) -> i64 {
    let connection = Connection::open(database).unwrap();
    let integrity: String = connection.query_row("pragma integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(integrity, "ok", "{}", database.display());
    connection.query_row("select count(*) from history", [], |row| row.get(0)).unwrap()
}

fn files(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A data directory at rest with one user, so many records and so much to copy.
fn at_rest(directory: &Path, records: u32, filler: u32) {
    let mut server = Setup::default().on(directory).with("BACKUP_EVERY", "0 s").start();
    let user = server.sign_in(PHONE);
    for number in 0..records {
        save(&server, &user.token, &format!("r-{number}"));
    }
    if filler > 0 {
        server.edit(&log_statement(&format!(
            "with recursive counter (n) as (select 1 union all select n + 1 from counter where n < {filler}) \
             select 9000000000000, null, hex(randomblob(1500)), 'GET', null, 200, 1, 'filler' from counter"
        )));
    }
    assert_eq!(server.terminate(), Some(0));
}

/// How long a command takes: the first time may be slower, since what it reads is not in memory yet.
fn duration_of(directory: &Path, arguments: &[&str]) -> Duration {
    let timed = (0..3).map(|_| {
        let begun = Instant::now();
        run(directory, arguments).expect(0);
        begun.elapsed()
    });
    timed.min().unwrap()
}

#[test]
fn a_backup_made_under_load_holds_what_was_acknowledged_before() {
    let server = Setup::default().with("BACKUP_EVERY", "0 s").start();
    let user = server.sign_in(PHONE);
    server.edit(&log_statement(
        "with recursive counter (n) as (select 1 union all select n + 1 from counter where n < 20000) \
         select 9000000000000, null, hex(randomblob(1500)), 'GET', null, 200, 1, 'filler' from counter",
    ));
    let (stop, saved) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut before = 0;
    let made = scope(|scope| {
        for thread in 0..4 {
            let (server, token, stop, saved) = (&server, &user.token, &stop, &saved);
            scope.spawn(move || {
                for number in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    save(server, token, &format!("r-{thread}-{number}"));
                    saved.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        while before < 50 {
            before = saved.load(Ordering::SeqCst);
            sleep(Duration::from_millis(5));
        }
        let made = server.command(&["backup", "create"]);
        stop.store(true, Ordering::Relaxed);
        made
    });
    let made = made.expect(0).json();
    let during = saved.load(Ordering::SeqCst) - before;
    assert!(during > 20, "only {during} records were saved while the backup was made");
    let path = PathBuf::from(made["path"].as_str().unwrap());
    let found = records(&path);
    assert!(found >= i64::try_from(before).unwrap(), "{before} were acknowledged before, {found} are in it");
    assert_eq!(made["sound"], true, "{made}");
    assert_eq!(made["occasion"], "manual");
    assert_eq!(made["bytes"], std::fs::metadata(&path).unwrap().len());
    let names = files(path.parent().unwrap());
    let name = made["name"].as_str().unwrap();
    assert_eq!(names, ["backup.lock", name, &format!("{name}.json")], "the backup, its checksum, and nothing else");
    let verified = server.command(&["backup", "verify"]).expect(0).json();
    assert_eq!(verified["sound"], true, "{verified}");
    assert_eq!(verified["checksum"], "right", "{verified}");
    assert_eq!(files(path.parent().unwrap()).len(), 3, "the rehearsal left something");
    let audit = server.command(&["audit", "--actor", "cli"]).expect(0).json();
    assert_eq!(audit["items"][0]["action"], "yarrow backup create", "{audit}");
}

#[cfg(unix)]
#[test]
fn a_backup_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let temporary = tempfile::tempdir().unwrap();
    at_rest(temporary.path(), 0, 0);
    let made = run(temporary.path(), &["backup", "create"]).expect(0).json();
    let permissions = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(permissions(Path::new(made["path"].as_str().unwrap())), 0o600);
    assert_eq!(permissions(&temporary.path().join("backups")), 0o700);
}

#[test]
fn backups_are_made_without_anybody_asking_and_the_rules_keep_them_few() {
    let server =
        Setup::default().with("BACKUP_EVERY", "1 s").with("BACKUP_KEEP_HOURLY", 1).with("BACKUP_KEEP_DAILY", 0).start();
    let mut names = std::collections::BTreeSet::new();
    eventually("a third backup", || {
        let found = listed(server.directory());
        assert!(found.len() <= 3, "{found:#?}");
        names.extend(found.iter().map(|backup| backup["name"].as_str().unwrap().to_owned()));
        names.len() >= 3
    });
    assert!(names.iter().all(|name| name.ends_with("-scheduled.db")), "{names:?}");
}

#[test]
fn a_restore_brings_everything_back_and_keeps_what_was_there() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("data");
    let setup = || Setup::default().on(&directory).with("BACKUP_EVERY", "0 s");
    let server = setup().start();
    let user = server.sign_in(PHONE);
    save(&server, &user.token, "before");
    let code = server.sign_in_again(PHONE);
    server.database().execute("delete from code_sends", []).unwrap();
    let live_code = server.request_code(PHONE);
    let made = server.command(&["backup", "create"]).expect(0).json();
    let name = made["name"].as_str().unwrap().to_owned();
    save(&server, &user.token, "after");

    let refused = server.command(&["restore", &name, "--yes"]).expect(6);
    assert!(refused.complaint().contains("another server is running"), "{}", refused.complaint());
    // Killed, so that its log is left with "after" in it, which must not be replayed into the restored database.
    server.kill();
    assert!(std::fs::metadata(directory.join("yarrow.db-wal")).unwrap().len() > 0);
    std::fs::write(directory.join("secret.key"), [7; 32]).unwrap();
    run(&directory, &["restore", &name]).expect(2);
    let restored = run(&directory, &["restore", &name, "--yes"]).expect(0).json();
    let aside = PathBuf::from(restored["aside"].as_str().unwrap());
    assert_eq!(records(&aside.join("yarrow.db")), 2, "the old database is complete, with its log");
    assert_eq!(std::fs::read(aside.join("secret.key")).unwrap(), [7; 32]);
    assert_eq!(records(&directory.join("yarrow.db")), 1);

    let server = setup().start();
    let listed = server.post("/divination-history/get").token(&user.token).send().expect(200).json();
    assert_eq!(listed["items"][0]["localRecordId"], "before", "{listed}");
    assert_eq!(listed["total"], 1);
    // The code is kept as an HMAC: only the key that came with the backup knows it again.
    server.post("/auth/login").form(&[("phoneNumber", PHONE), ("code", &live_code)]).send().expect(200);
    server.get("/user/profile").by(&code).send().expect(200);
    let tables: i64 = server.value("select count(*) from sqlite_schema where name = 'backup_contents'");
    assert_eq!(tables, 0, "the keys do not stay in the database");
    let audit = server.command(&["audit", "--actor", "cli"]).expect(0).json();
    assert_eq!(audit["items"][0]["action"], "yarrow restore", "{audit}");
}

#[test]
fn a_backup_can_be_restored_into_an_empty_directory() {
    let temporary = tempfile::tempdir().unwrap();
    let (old, new) = (temporary.path().join("old"), temporary.path().join("new"));
    at_rest(&old, 3, 0);
    let made = run(&old, &["backup", "create"]).expect(0).json();
    let restored = run(&new, &["restore", made["path"].as_str().unwrap(), "--yes"]).expect(0).json();
    assert_eq!(restored["aside"], Value::Null);
    assert_eq!(records(&new.join("yarrow.db")), 3);
    assert_eq!(std::fs::read(old.join("secret.key")).unwrap(), std::fs::read(new.join("secret.key")).unwrap());
    run(&new, &["ledger", "verify"]).expect(0);
}

#[test]
fn a_backup_that_is_killed_leaves_the_good_ones() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("data");
    at_rest(&directory, 2, 6_000);
    let whole = duration_of(&directory, &["backup", "create"]);
    cut_off(KILLS, whole, |wait| killed_after(&directory, &["backup", "create"], wait));
    for backup in listed(&directory) {
        assert_eq!(backup["sound"], true, "{backup}");
        assert_eq!(records(Path::new(backup["path"].as_str().unwrap())), 2);
    }
    assert_eq!(records(&directory.join("yarrow.db")), 2);
    run(&directory, &["backup", "create"]).expect(0);
    let left = files(&directory.join("backups"));
    assert!(!left.iter().any(|name| name.contains("unfinished")), "{left:?}");
}

#[test]
fn a_restore_that_is_killed_leaves_a_good_database() {
    let temporary = tempfile::tempdir().unwrap();
    let pristine = temporary.path().join("pristine");
    at_rest(&pristine, 1, 6_000);
    let made = run(&pristine, &["backup", "create"]).expect(0).json();
    let backup = made["path"].as_str().unwrap().to_owned();
    let mut server = Setup::default().on(&pristine).with("BACKUP_EVERY", "0 s").start();
    let user = server.sign_in_again(PHONE);
    save(&server, &user.token, "later");
    server.terminate();
    let timed = temporary.path().join("timed");
    copy_of(&pristine, &timed);
    let whole = duration_of(&timed, &["restore", &backup, "--yes"]);
    let directory = temporary.path().join("killed");
    cut_off(KILLS, whole, |wait| {
        copy_of(&pristine, &directory);
        let is_cut_off = killed_after(&directory, &["restore", &backup, "--yes"], wait);
        // Whoever opens it next finishes what was begun, or finds that nothing was.
        run(&directory, &["ledger", "verify"]).expect(0);
        let found = records(&directory.join("yarrow.db"));
        assert!([1, 2].contains(&found), "{found} records");
        run(&directory, &["restore", &backup, "--yes"]).expect(0);
        assert_eq!(records(&directory.join("yarrow.db")), 1);
        let left = files(&directory);
        assert!(!left.iter().any(|name| name.contains(".restored") || name.contains("pending")), "{left:?}");
        std::fs::remove_dir_all(&directory).unwrap();
        is_cut_off
    });
}

#[test]
fn a_damaged_backup_is_found_out_and_restores_nothing() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("data");
    at_rest(&directory, 5, 500);
    let made = run(&directory, &["backup", "create"]).expect(0).json();
    let path = made["path"].as_str().unwrap();
    let mut bytes = std::fs::read(path).unwrap();
    let middle = bytes.len() / 2 / 4096 * 4096;
    for page in bytes[middle..].chunks_mut(4096).take(40) {
        page[..16].fill(0xff);
    }
    std::fs::write(path, &bytes).unwrap();
    let found = run(&directory, &["backup", "verify"]).expect(5).json();
    assert_eq!(found["sound"], false);
    assert!(!found["structure"].as_array().unwrap().is_empty(), "{found}");
    let before = std::fs::read(directory.join("yarrow.db")).unwrap();
    let refused = run(&directory, &["restore", path, "--yes"]).expect(1);
    assert!(refused.complaint().contains("is damaged"), "{}", refused.complaint());
    assert_eq!(std::fs::read(directory.join("yarrow.db")).unwrap(), before);
    bytes.truncate(middle);
    for (content, why) in [(&bytes[..], "is damaged"), (b"no database", "is not a backup"), (b"", "is not a backup")] {
        std::fs::write(path, content).unwrap();
        let refused = run(&directory, &["restore", path, "--yes"]).expect(1);
        assert!(refused.complaint().contains(why), "{}", refused.complaint());
        let refused = run(&directory, &["backup", "verify", path]).expect(5);
        assert_eq!((&refused.json()["sound"], &refused.json()["path"]), (&json!(false), &json!(path)));
        for said in [refused.complaint(), run(&directory, &["restore", path, "--yes"]).expect(1).complaint()] {
            assert!(!said.contains("disk failed"), "{said}");
        }
    }
    run(&directory, &["restore", "nothing.db", "--yes"]).expect(4);
    assert_eq!(std::fs::read(directory.join("yarrow.db")).unwrap(), before);
}

#[test]
fn damage_inside_of_rows_is_found_out_by_the_checksum() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("data");
    at_rest(&directory, 5, 0);
    let made = run(&directory, &["backup", "create"]).expect(0).json();
    let path = made["path"].as_str().unwrap();
    let sound = std::fs::read(path).unwrap();
    let mut bytes = sound.clone();
    let text = b"question of r-3";
    let places: Vec<_> = (0..bytes.len() - text.len()).filter(|at| bytes[*at..].starts_with(text)).collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at] = b'Q';
    }
    std::fs::write(path, &bytes).unwrap();
    let found = run(&directory, &["backup", "verify"]).expect(5).json();
    // Neither the rules nor the start take it for a sound one.
    let good = path.replace("yarrow-2", "yarrow-1");
    std::fs::write(&good, &sound).unwrap();
    let database = directory.join("yarrow.db");
    std::fs::rename(&database, directory.join("aside.db")).unwrap();
    let lost = run(&directory, &["users", "show", PHONE]).expect(1);
    assert!(lost.complaint().contains("restore yarrow-1"), "{}", lost.complaint());
    std::fs::rename(directory.join("aside.db"), &database).unwrap();
    std::fs::remove_file(&good).unwrap();
    // The database engine sees nothing wrong.
    assert_eq!((&found["structure"], &found["checksum"]), (&json!([]), &json!("wrong")), "{found}");
    let refused = run(&directory, &["restore", path, "--yes"]).expect(1);
    assert!(refused.complaint().contains("is damaged") && refused.complaint().contains(".json"));
    // A checksum that cannot be read is no right one.
    let manifest = format!("{path}.json");
    let written = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(path, &sound).unwrap();
    run(&directory, &["backup", "verify"]).expect(0);
    std::fs::write(&manifest, "{").unwrap();
    assert_eq!(run(&directory, &["backup", "verify"]).expect(5).json()["checksum"], "wrong");
    std::fs::write(&manifest, written.replacen(|digit: char| digit.is_ascii_digit(), "x", 1)).unwrap();
    run(&directory, &["backup", "verify"]).expect(5);
    // Somebody who has nothing better restores it all the same.
    std::fs::write(path, &bytes).unwrap();
    std::fs::remove_file(&manifest).unwrap();
    assert_eq!(run(&directory, &["backup", "verify"]).expect(0).json()["checksum"], "unknown");
    run(&directory, &["restore", path, "--yes"]).expect(0);
    assert_eq!(records(&directory.join("yarrow.db")), 5);
}

#[test]
fn a_manifest_goes_with_its_backup() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("data");
    at_rest(&directory, 1, 0);
    for _ in 0..4 {
        run(&directory, &["backup", "create"]).expect(0);
    }
    let backups = directory.join("backups");
    // A process that was killed in between leaves a manifest without its backup, and somebody else's file is not ours.
    std::fs::write(backups.join("yarrow-20200101T000000.000Z-manual.db.json"), "{}").unwrap();
    std::fs::write(backups.join("notes.json"), "{}").unwrap();
    let configuration = temporary.path().join("yarrow.toml");
    std::fs::write(&configuration, "[backup]\nkeep_hourly = 1\nkeep_daily = 0\n").unwrap();
    run(&directory, &["backup", "prune", "--config", configuration.to_str().unwrap()]).expect(0);
    let left = files(&backups);
    assert_eq!(left.len(), 2 + 2 * 2, "{left:?}");
    let kept = listed(&directory);
    assert!(kept.iter().all(|backup| left.contains(&format!("{}.json", backup["name"].as_str().unwrap()))), "{left:?}");
}

#[test]
fn a_newer_backup_is_refused_and_an_older_one_migrated() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("data");
    at_rest(&directory, 1, 0);
    let made = run(&directory, &["backup", "create"]).expect(0).json();
    let path = made["path"].as_str().unwrap();
    Connection::open(path).unwrap().pragma_update(None, "user_version", 10_000).unwrap();
    let refused = run(&directory, &["restore", path, "--yes"]).expect(6);
    assert!(refused.complaint().contains("schema version 10000"), "{}", refused.complaint());
    run(&directory, &["backup", "verify", path]).expect(6);
}

#[test]
fn a_name_leads_out_of_the_directory_nowhere() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("data");
    at_rest(&directory, 1, 0);
    run(&directory, &["backup", "create"]).expect(0);
    for name in ["../yarrow.db", "./../yarrow.db", "..", ""] {
        run(&directory, &["backup", "verify", name]).expect(4);
    }
}

#[test]
fn an_inconsistent_database_is_backed_up_and_the_last_sound_backup_kept() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("data");
    at_rest(&directory, 1, 0);
    run(&directory, &["coins", "grant", PHONE, "5"]).expect(0);
    let sound = run(&directory, &["backup", "create"]).expect(0).json();
    Connection::open(directory.join("yarrow.db")).unwrap().execute("update balances set balance = 6", []).unwrap();
    for _ in 0..3 {
        let made = run(&directory, &["backup", "create"]).expect(5).json();
        assert_eq!(made["sound"], false, "{made}");
        assert_eq!(made["findings"]["ledgerDiscrepancies"], 1, "{made}");
    }
    run(&directory, &["backup", "verify"]).expect(5);
    let configuration = temporary.path().join("yarrow.toml");
    std::fs::write(&configuration, "[backup]\nkeep_hourly = 1\nkeep_daily = 0\n").unwrap();
    let pruned = run(&directory, &["backup", "prune", "--config", configuration.to_str().unwrap()]).expect(0).json();
    assert_eq!(pruned["deleted"].as_array().unwrap().len(), 1, "{pruned}");
    let names: Vec<_> = listed(&directory).iter().map(|backup| backup["name"].clone()).collect();
    assert_eq!(names.len(), 3);
    assert!(names.contains(&sound["name"]), "{names:?}");
}

#[test]
fn a_backup_that_would_fill_the_disk_is_not_made() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("data");
    at_rest(&directory, 1, 0);
    let configuration = temporary.path().join("yarrow.toml");
    std::fs::write(&configuration, "[backup]\nfree_space = \"900000 GiB\"\n").unwrap();
    let arguments = ["backup", "create", "--config", configuration.to_str().unwrap()];
    let refused = run(&directory, &arguments).expect(1);
    assert!(refused.complaint().contains("MiB free"), "{}", refused.complaint());
    assert!(listed(&directory).is_empty());
}

#[test]
fn a_backup_is_not_rehearsed_where_that_would_fill_the_disk() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("data");
    at_rest(&directory, 1, 0);
    run(&directory, &["backup", "create"]).expect(0);
    let much = [("YARROW_BACKUP_FREE_SPACE", "900000 GiB")];
    let refused = Ended::run_with(&directory, &much, &["backup", "verify"], "").expect(1);
    assert!(refused.complaint().contains("MiB free"), "{}", refused.complaint());
    run(&directory, &["backup", "verify"]).expect(0);
}

#[test]
fn backups_of_a_clock_that_was_ahead_push_out_no_others() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("data");
    at_rest(&directory, 1, 0);
    for _ in 0..4 {
        run(&directory, &["backup", "create"]).expect(0);
    }
    let real: Vec<_> = listed(&directory).iter().map(|backup| backup["name"].as_str().unwrap().to_owned()).collect();
    let backups = directory.join("backups");
    for hour in 0..4 {
        let ahead = format!("yarrow-20990102T0{hour}0405.678Z-scheduled.db");
        std::fs::copy(backups.join(&real[0]), backups.join(ahead)).unwrap();
    }
    let few = [("YARROW_BACKUP_KEEP_HOURLY", "3"), ("YARROW_BACKUP_KEEP_DAILY", "0")];
    Ended::run_with(&directory, &few, &["backup", "prune"], "").expect(0);
    let left = files(&backups);
    let is_left: Vec<_> = real.iter().map(|name| left.contains(name)).collect();
    assert_eq!(is_left, [true, true, true, false], "{left:?}");
}

#[test]
fn backups_that_are_gone_are_missed() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("data");
    at_rest(&directory, 1, 0);
    let newest = |exit_code: i32| {
        let found = run(&directory, &["doctor", "--listen", "127.0.0.1:0"]).expect(exit_code).json();
        let checks = found["checks"].as_array().unwrap().clone();
        checks.into_iter().find(|check| check["group"] == "backups" && check["name"] == "newest")
    };
    run(&directory, &["backup", "verify"]).expect(5);
    run(&directory, &["backup", "create"]).expect(0);
    assert_eq!(newest(0).unwrap()["verdict"], "pass");
    std::fs::remove_dir_all(directory.join("backups")).unwrap();
    assert_eq!(newest(5).unwrap()["verdict"], "fail");
}

#[test]
fn a_backup_directory_that_cannot_be_read_is_told_as_a_failure() {
    let temporary = tempfile::tempdir().unwrap();
    let server =
        Setup::default().with("BACKUP_EVERY", "1 s").with("BACKUP_DIRECTORY", temporary.path().display()).start();
    let state = || server.get("/readyz").send().expect(200).json()["backups"].clone();
    eventually("a backup", || state() == "current");
    std::fs::remove_dir_all(temporary.path()).unwrap();
    std::fs::write(temporary.path(), "in the way").unwrap();
    eventually("the failure", || state() == "failed");
    std::fs::remove_file(temporary.path()).unwrap();
    eventually("another backup", || state() == "current");
}

/// The job cannot be hurried from outside, so it is called as the clock calls it.
#[test]
fn a_directory_that_cannot_be_read_is_tried_again_after_a_pause() {
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path().join("no-directory");
    std::fs::write(&place, "").unwrap();
    let (_directory, app) = open_app(&[("BACKUP_DIRECTORY", &place.to_string_lossy())]);
    assert!(yarrow::domain::operations::backups::run_if_due(&app).is_err());
    assert!(!yarrow::domain::operations::backups::run_if_due(&app).unwrap());
    std::fs::remove_file(&place).unwrap();
    assert!(!yarrow::domain::operations::backups::run_if_due(&app).unwrap(), "as after any other failure");
}

#[test]
fn a_backup_that_cannot_be_noted_is_one_all_the_same() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("data");
    at_rest(&directory, 1, 0);
    let refuse = "create trigger takes_no_note before insert on settings when new.name = 'backup.last' \
                  begin select raise(abort, 'no'); end";
    Connection::open(directory.join("yarrow.db")).unwrap().execute_batch(refuse).unwrap();
    let made = run(&directory, &["backup", "create"]).expect(0);
    assert!(made.complaint().contains("could not be remembered"), "{}", made.complaint());
    assert_eq!(listed(&directory)[0]["name"], made.json()["name"]);
}
