//! Backups: creation under load, pruning, rehearsal, restore and kills.

use std::{
    io::Read,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread::{scope, sleep},
    time::{Duration, Instant},
};

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::{
    Caller, CommandOutput, Response, Server, Setup, copy_directory, eventually, filler_statement, kill_after,
    kill_at_intervals, open_app, raw::RawConnection,
};

const PHONE: &str = "13800138000";
/// The number of moments at which a backup and a restore are killed.
const KILLS: u32 = 10;

fn run(directory: &Path, arguments: &[&str]) -> CommandOutput {
    CommandOutput::run(directory, arguments, "")
}

fn listed(directory: &Path) -> Vec<Value> {
    run(directory, &["backup", "list"]).expect(0).json()["items"].as_array().unwrap().clone()
}

fn save(server: &Server, token: &str, id: &str) {
    let record = json!({ "localRecordId": id, "question": format!("question of {id}") });
    server.post("/divination-history/save").token(token).json(&record).send().expect(200);
}

fn records(database: &Path) -> i64 {
    let connection = Connection::open(database).unwrap();
    let integrity: String = connection.query_row("pragma integrity_check", (), |row| row.get(0)).unwrap();
    assert_eq!(integrity, "ok", "{}", database.display());
    connection.query_row("select count(*) from history", (), |row| row.get(0)).unwrap()
}

fn files(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Creates a data directory with one user, records and bulk data, and stops the server.
fn at_rest(directory: &Path, records: u32, filler: u32) {
    let mut server = Setup::default().on(directory).with("BACKUP_EVERY", "0 s").start();
    let user = server.sign_in(PHONE);
    for number in 0..records {
        save(&server, &user.token, &format!("r-{number}"));
    }
    if filler > 0 {
        server.edit(&filler_statement(filler));
    }
    assert_eq!(server.terminate(), Some(0));
}

/// Measures a command on its second run, because the first one reads from disk.
fn duration_of(directory: &Path, arguments: &[&str]) -> Duration {
    let timed = (0..3).map(|_| {
        let started_at = Instant::now();
        run(directory, arguments).expect(0);
        started_at.elapsed()
    });
    timed.min().unwrap()
}

#[test]
fn a_backup_under_load_contains_everything_acknowledged_before() {
    let server = Setup::default().with("BACKUP_EVERY", "0 s").start();
    let user = server.sign_in(PHONE);
    server.edit(&filler_statement(20_000));
    let (stop, saved) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut before = 0;
    let created = scope(|scope| {
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
        let created = server.command(&["backup", "create"]);
        stop.store(true, Ordering::Relaxed);
        created
    });
    let created = created.expect(0).json();
    let during = saved.load(Ordering::SeqCst) - before;
    assert!(during > 20, "only {during} records were saved while the backup was made");
    let path = PathBuf::from(created["path"].as_str().unwrap());
    let found = records(&path);
    assert!(found >= i64::try_from(before).unwrap(), "{before} were acknowledged before, {found} are in it");
    assert_eq!(created["sound"], true, "{created}");
    assert_eq!(created["occasion"], "manual");
    assert_eq!(created["bytes"], std::fs::metadata(&path).unwrap().len());
    let names = files(path.parent().unwrap());
    let name = created["name"].as_str().unwrap();
    assert_eq!(names, ["backup.lock", name, &format!("{name}.json")], "the backup, its checksum, and nothing else");
    let verified = server.command(&["backup", "verify"]).expect(0).json();
    assert_eq!(verified["sound"], true, "{verified}");
    assert_eq!(verified["checksum"], "right", "{verified}");
    assert_eq!(files(path.parent().unwrap()).len(), 3, "the rehearsal left a file");
    let audit = server.command(&["audit", "--actor", "cli"]).expect(0).json();
    assert_eq!(audit["items"][0]["action"], "yarrow backup create", "{audit}");
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_a_backup() {
    use std::os::unix::fs::PermissionsExt;
    let temp_dir = tempfile::tempdir().unwrap();
    at_rest(temp_dir.path(), 0, 0);
    let created = run(temp_dir.path(), &["backup", "create"]).expect(0).json();
    let permissions = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(permissions(Path::new(created["path"].as_str().unwrap())), 0o600);
    assert_eq!(permissions(&temp_dir.path().join("backups")), 0o700);
}

#[test]
fn makes_and_prunes_scheduled_backups() {
    let server = Setup::default()
        .with_fast_jobs()
        .with("BACKUP_EVERY", "1 s")
        .with("BACKUP_KEEP_HOURLY", 1)
        .with("BACKUP_KEEP_DAILY", 0)
        .start();
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
fn restores_everything_and_keeps_the_previous_database() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    let setup = || Setup::default().on(&directory).with("BACKUP_EVERY", "0 s");
    let server = setup().in_own_process().start();
    let user = server.sign_in(PHONE);
    save(&server, &user.token, "before");
    let code = server.sign_in_again(PHONE);
    server.database().execute("delete from code_sends", ()).unwrap();
    let live_code = server.request_code(PHONE);
    let created = server.command(&["backup", "create"]).expect(0).json();
    let name = created["name"].as_str().unwrap().to_owned();
    save(&server, &user.token, "after");

    let refused = server.command(&["restore", &name, "--yes"]).expect(6);
    assert!(refused.stderr().contains("another server is running"), "{}", refused.stderr());
    // Killed, so that the WAL contains "after". It must not be replayed into the restored database.
    server.kill();
    assert!(std::fs::metadata(directory.join("yarrow.db-wal")).unwrap().len() > 0);
    std::fs::write(directory.join("secret.key"), [7; 32]).unwrap();
    run(&directory, &["restore", &name]).expect(2);
    let refused = run(&directory, &["restore", &name, "--yes"]).expect(1).stderr();
    assert!(refused.contains("nothing proves that it comes from this installation"), "{refused}");
    let restored = run(&directory, &["restore", &name, "--yes", "--unproven"]).expect(0).json();
    let aside = PathBuf::from(restored["aside"].as_str().unwrap());
    assert_eq!(records(&aside.join("yarrow.db")), 2, "the old database is complete, with its log");
    assert_eq!(std::fs::read(aside.join("secret.key")).unwrap(), [7; 32]);
    assert_eq!(records(&directory.join("yarrow.db")), 1);

    let server = setup().in_own_process().start();
    let listed = server.post("/divination-history/get").token(&user.token).send().expect(200).json();
    assert_eq!(listed["items"][0]["localRecordId"], "before", "{listed}");
    assert_eq!(listed["total"], 1);
    // Codes are stored as HMAC, so only the restored key verifies them.
    server.post("/auth/login").form(&[("phoneNumber", PHONE), ("code", &live_code)]).send().expect(200);
    server.get("/user/profile").by(&code).send().expect(200);
    let tables: i64 = server.value("select count(*) from sqlite_schema where name = 'backup_contents'");
    assert_eq!(tables, 0, "the keys do not stay in the database");
    let audit = server.command(&["audit", "--actor", "cli"]).expect(0).json();
    assert_eq!(audit["items"][0]["action"], "yarrow restore", "{audit}");
}

/// Opens the stream of news and returns the id of its first event, with the text up to `end`.
fn news(server: &Server, user: &Caller, last: Option<&str>, end: &str) -> (String, String) {
    let mut wire = RawConnection::to(server);
    let last = last.map(|id| format!("last-event-id: {id}\r\n")).unwrap_or_default();
    wire.send(&format!(
        "GET /api/v1/notifications/stream HTTP/1.1\r\nhost: x\r\naccept: text/event-stream\r\n{last}authorization: Bearer {}\r\n\r\n",
        user.token
    ));
    let mut received = String::new();
    while !received.contains(end) {
        let mut buffer = [0; 4096];
        let count = wire.0.read(&mut buffer).unwrap();
        assert!(count > 0, "{received}");
        received.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    let id = received.lines().find_map(|line| line.strip_prefix("id: ")).unwrap_or_default().to_owned();
    (id, received)
}

#[test]
fn positions_that_a_restore_lost_are_refused() {
    let temp_dir = tempfile::tempdir().unwrap();
    let setup = || Setup::default().on(temp_dir.path()).with("BACKUP_EVERY", "0 s");
    let mut server = setup().start();
    let user = server.sign_in(PHONE);
    let send = |server: &Server, title: &str| server.command(&["notify", "send", title, "…", "--all"]).expect(0);
    let changes =
        |server: &Server, cursor: &str| server.get("/api/v1/changes").by(&user).query(&[("since", cursor)]).send();
    let cursor_of = |response: &Response| response.json()["cursor"].as_str().unwrap().to_owned();
    send(&server, "kept");
    let (kept, _) = news(&server, &user, None, "event: open");
    let kept_cursor = cursor_of(&changes(&server, "").expect(200));
    let created = server.command(&["backup", "create"]).expect(0).json();
    for number in 0..5 {
        send(&server, &format!("lost {number}"));
    }
    let (lost, _) = news(&server, &user, None, "event: open");
    let lost_cursor = cursor_of(&changes(&server, &kept_cursor).expect(200));
    assert_eq!(server.terminate(), Some(0));
    run(temp_dir.path(), &["restore", created["name"].as_str().unwrap(), "--yes"]).expect(0);
    let server = setup().start();
    // Before, while and after the ids are given again.
    for number in 0..7 {
        let continued = server.get("/api/v1/notifications/stream").by(&user).header("last-event-id", &lost);
        continued.header("accept", "text/event-stream").send().expect_problem(410, "cursor_expired");
        changes(&server, &lost_cursor).expect_problem(410, "cursor_expired");
        changes(&server, &kept_cursor).expect(200);
        send(&server, &format!("new {number}"));
    }
    let (_, since) = news(&server, &user, Some(&kept), "new 6");
    assert!((0..7).all(|number| since.contains(&format!("new {number}"))), "{since}");
    // The deletion of the newest notification loses nothing.
    let (last, _) = news(&server, &user, None, "event: open");
    let newest = server.get("/api/v1/notifications").by(&user).send().expect(200).json()["items"][0]["id"].clone();
    server.command(&["notify", "delete", newest.as_str().unwrap(), "--yes"]).expect(0);
    news(&server, &user, Some(&last), "event: open");
    for id in [
        "999999999.999999999.999999999",
        "999999999.0.0.1767225600000",
        "1.999999999.0.1767225600000",
        "1.0.999999999.1767225600000",
        // Of a version that did not know the time.
        "1.0.0",
    ] {
        let continued = server.get("/api/v1/notifications/stream").by(&user).header("last-event-id", id);
        continued.header("accept", "text/event-stream").send().expect_problem(410, "cursor_expired");
    }
}

#[test]
fn restores_into_an_empty_directory() {
    let temp_dir = tempfile::tempdir().unwrap();
    let (old, new) = (temp_dir.path().join("old"), temp_dir.path().join("new"));
    at_rest(&old, 3, 0);
    let created = run(&old, &["backup", "create"]).expect(0).json();
    let restored = run(&new, &["restore", created["path"].as_str().unwrap(), "--yes", "--unproven"]).expect(0).json();
    assert_eq!(restored["aside"], Value::Null);
    assert_eq!(records(&new.join("yarrow.db")), 3);
    assert_eq!(std::fs::read(old.join("secret.key")).unwrap(), std::fs::read(new.join("secret.key")).unwrap());
    run(&new, &["ledger", "verify"]).expect(0);
}

#[test]
fn killed_backups_keep_the_existing_ones() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    at_rest(&directory, 2, 6_000);
    let whole = duration_of(&directory, &["backup", "create"]);
    kill_at_intervals(KILLS, whole, |wait| kill_after(&directory, &["backup", "create"], wait));
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
fn killed_restores_leave_a_sound_database() {
    let temp_dir = tempfile::tempdir().unwrap();
    let pristine = temp_dir.path().join("pristine");
    at_rest(&pristine, 1, 6_000);
    let created = run(&pristine, &["backup", "create"]).expect(0).json();
    let backup = created["path"].as_str().unwrap().to_owned();
    let mut server = Setup::default().on(&pristine).with("BACKUP_EVERY", "0 s").start();
    let user = server.sign_in_again(PHONE);
    save(&server, &user.token, "later");
    server.terminate();
    let timed = temp_dir.path().join("timed");
    copy_directory(&pristine, &timed);
    let whole = duration_of(&timed, &["restore", &backup, "--yes"]);
    let directory = temp_dir.path().join("killed");
    kill_at_intervals(KILLS, whole, |wait| {
        copy_directory(&pristine, &directory);
        let is_cut_off = kill_after(&directory, &["restore", &backup, "--yes"], wait);
        // The next open finishes or discards the restore.
        CommandOutput::run_in_own_process(&directory, &[], &["ledger", "verify"], "").expect(0);
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
fn rejects_a_damaged_backup_and_restores_nothing() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    at_rest(&directory, 5, 500);
    let created = run(&directory, &["backup", "create"]).expect(0).json();
    let path = created["path"].as_str().unwrap();
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
    assert!(refused.stderr().contains("is damaged"), "{}", refused.stderr());
    assert_eq!(std::fs::read(directory.join("yarrow.db")).unwrap(), before);
    bytes.truncate(middle);
    for (content, why) in [(&bytes[..], "is damaged"), (b"no database", "is not a backup"), (b"", "is not a backup")] {
        std::fs::write(path, content).unwrap();
        let refused = run(&directory, &["restore", path, "--yes"]).expect(1);
        assert!(refused.stderr().contains(why), "{}", refused.stderr());
        let refused = run(&directory, &["backup", "verify", path]).expect(5);
        assert_eq!((&refused.json()["sound"], &refused.json()["path"]), (&json!(false), &json!(path)));
        for message in [refused.stderr(), run(&directory, &["restore", path, "--yes"]).expect(1).stderr()] {
            assert!(!message.contains("disk failed"), "{message}");
        }
    }
    run(&directory, &["restore", "nothing.db", "--yes"]).expect(4);
    assert_eq!(std::fs::read(directory.join("yarrow.db")).unwrap(), before);
}

#[test]
fn the_checksum_detects_damage_inside_rows() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    at_rest(&directory, 5, 0);
    let created = run(&directory, &["backup", "create"]).expect(0).json();
    let path = created["path"].as_str().unwrap();
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
    // Neither pruning nor the start treats it as sound.
    let good = path.replace("yarrow-2", "yarrow-1");
    std::fs::write(&good, &sound).unwrap();
    let database = directory.join("yarrow.db");
    std::fs::rename(&database, directory.join("aside.db")).unwrap();
    let lost = run(&directory, &["users", "show", PHONE]).expect(1);
    assert!(lost.stderr().contains("restore yarrow-1"), "{}", lost.stderr());
    std::fs::rename(directory.join("aside.db"), &database).unwrap();
    std::fs::remove_file(&good).unwrap();
    // The database engine finds nothing wrong.
    assert_eq!((&found["structure"], &found["checksum"]), (&json!([]), &json!("wrong")), "{found}");
    let refused = run(&directory, &["restore", path, "--yes"]).expect(1);
    assert!(refused.stderr().contains("is damaged") && refused.stderr().contains(".json"));
    // An unreadable checksum is invalid.
    let manifest = format!("{path}.json");
    let written = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(path, &sound).unwrap();
    run(&directory, &["backup", "verify"]).expect(0);
    std::fs::write(&manifest, "{").unwrap();
    assert_eq!(run(&directory, &["backup", "verify"]).expect(5).json()["checksum"], "wrong");
    std::fs::write(&manifest, written.replacen(|digit: char| digit.is_ascii_digit(), "x", 1)).unwrap();
    run(&directory, &["backup", "verify"]).expect(5);
    // It can still be restored with a flag.
    std::fs::write(path, &bytes).unwrap();
    std::fs::remove_file(&manifest).unwrap();
    assert_eq!(run(&directory, &["backup", "verify"]).expect(0).json()["checksum"], "unknown");
    run(&directory, &["restore", path, "--yes"]).expect(1);
    run(&directory, &["restore", path, "--yes", "--unproven"]).expect(0);
    assert_eq!(records(&directory.join("yarrow.db")), 5);
}

#[test]
fn the_manifest_is_deleted_with_its_backup() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    at_rest(&directory, 1, 0);
    for _ in 0..4 {
        run(&directory, &["backup", "create"]).expect(0);
    }
    let backups = directory.join("backups");
    // A killed process leaves a manifest without a backup. Foreign files are kept.
    std::fs::write(backups.join("yarrow-20200101T000000.000Z-manual.db.json"), "{}").unwrap();
    std::fs::write(backups.join("notes.json"), "{}").unwrap();
    let configuration = temp_dir.path().join("yarrow.toml");
    std::fs::write(&configuration, "[backup]\nkeep_hourly = 1\nkeep_daily = 0\n").unwrap();
    run(&directory, &["backup", "prune", "--config", configuration.to_str().unwrap()]).expect(0);
    let left = files(&backups);
    assert_eq!(left.len(), 2 + 2 * 2, "{left:?}");
    let stored = listed(&directory);
    assert!(
        stored.iter().all(|backup| left.contains(&format!("{}.json", backup["name"].as_str().unwrap()))),
        "{left:?}"
    );
}

#[test]
fn rejects_newer_backups_and_migrates_older_ones() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    at_rest(&directory, 1, 0);
    let created = run(&directory, &["backup", "create"]).expect(0).json();
    let path = created["path"].as_str().unwrap();
    Connection::open(path).unwrap().pragma_update(None, "user_version", 10_000).unwrap();
    let refused = run(&directory, &["restore", path, "--yes"]).expect(6);
    assert!(refused.stderr().contains("schema version 10000"), "{}", refused.stderr());
    run(&directory, &["backup", "verify", path]).expect(6);
}

#[test]
fn backup_names_cannot_leave_the_directory() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    at_rest(&directory, 1, 0);
    run(&directory, &["backup", "create"]).expect(0);
    for name in ["../yarrow.db", "./../yarrow.db", "..", ""] {
        run(&directory, &["backup", "verify", name]).expect(4);
    }
}

#[test]
fn backs_up_an_inconsistent_database_and_keeps_the_last_sound_backup() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    at_rest(&directory, 1, 0);
    run(&directory, &["coins", "grant", PHONE, "5"]).expect(0);
    let sound = run(&directory, &["backup", "create"]).expect(0).json();
    Connection::open(directory.join("yarrow.db")).unwrap().execute("update balances set balance = 6", ()).unwrap();
    for _ in 0..3 {
        let created = run(&directory, &["backup", "create"]).expect(5).json();
        assert_eq!(created["sound"], false, "{created}");
        assert_eq!(created["findings"]["ledgerDiscrepancies"], 1, "{created}");
    }
    run(&directory, &["backup", "verify"]).expect(5);
    let configuration = temp_dir.path().join("yarrow.toml");
    std::fs::write(&configuration, "[backup]\nkeep_hourly = 1\nkeep_daily = 0\n").unwrap();
    let pruned = run(&directory, &["backup", "prune", "--config", configuration.to_str().unwrap()]).expect(0).json();
    assert_eq!(pruned["deleted"].as_array().unwrap().len(), 1, "{pruned}");
    let names: Vec<_> = listed(&directory).iter().map(|backup| backup["name"].clone()).collect();
    assert_eq!(names.len(), 3);
    assert!(names.contains(&sound["name"]), "{names:?}");
}

#[test]
fn makes_no_backup_that_would_fill_the_disk() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    at_rest(&directory, 1, 0);
    let configuration = temp_dir.path().join("yarrow.toml");
    std::fs::write(&configuration, "[backup]\nfree_space = \"900000 GiB\"\n").unwrap();
    let arguments = ["backup", "create", "--config", configuration.to_str().unwrap()];
    let refused = run(&directory, &arguments).expect(1);
    assert!(refused.stderr().contains("MiB free"), "{}", refused.stderr());
    assert!(listed(&directory).is_empty());
}

#[test]
fn skips_a_rehearsal_that_would_fill_the_disk() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    at_rest(&directory, 1, 0);
    run(&directory, &["backup", "create"]).expect(0);
    let much = [("YARROW_BACKUP_FREE_SPACE", "900000 GiB")];
    let refused = CommandOutput::run_with(&directory, &much, &["backup", "verify"], "").expect(1);
    assert!(refused.stderr().contains("MiB free"), "{}", refused.stderr());
    run(&directory, &["backup", "verify"]).expect(0);
}

#[test]
fn backups_dated_in_the_future_displace_no_others() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
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
    CommandOutput::run_with(&directory, &few, &["backup", "prune"], "").expect(0);
    let left = files(&backups);
    let is_left: Vec<_> = real.iter().map(|name| left.contains(name)).collect();
    assert_eq!(is_left, [true, true, true, false], "{left:?}");
    // Neither is one of them the newest.
    assert_eq!(listed(&directory)[0]["name"], real[0].as_str());
    let verified = run(&directory, &["backup", "verify"]).expect(0).json();
    assert!(verified["path"].as_str().unwrap().contains(&real[0]), "{verified}");
}

#[test]
fn does_not_restore_foreign_triggers_and_views() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    at_rest(&directory, 1, 0);
    let created = run(&directory, &["backup", "create"]).expect(0).json();
    let sound = std::fs::read(created["path"].as_str().unwrap()).unwrap();
    for (number, foreign) in [
        "create trigger gift after insert on history begin update balances set amount = 1000000; end",
        "create view secrets as select * from tokens",
        "create table ours (id integer)",
        "drop trigger ledger_entries_forbids_update",
        "create index slow on history (id)",
    ]
    .into_iter()
    .enumerate()
    {
        // Elsewhere, so that there is no checksum.
        let path = temp_dir.path().join(format!("edited-{number}.db"));
        std::fs::write(&path, &sound).unwrap();
        Connection::open(&path).unwrap().execute_batch(foreign).unwrap();
        let path = path.to_str().unwrap();
        let refused = run(&directory, &["restore", path, "--yes"]).expect(1);
        assert!(refused.stderr().contains("schema version"), "{foreign}: {}", refused.stderr());
        assert_eq!(refused.problem()["code"], "backup_unusable");
        run(&directory, &["backup", "verify", path]).expect(5);
    }
    run(&directory, &["restore", created["path"].as_str().unwrap(), "--yes"]).expect(0);
}

#[test]
fn reports_missing_backups() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
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
fn an_unreadable_backup_directory_is_a_failure() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("backups");
    let server = Setup::default()
        .with_fast_jobs()
        .with("BACKUP_EVERY", "1 s")
        .with("BACKUP_DIRECTORY", directory.display())
        .start();
    let state = || server.get("/readyz").send().expect(200).json()["backups"].clone();
    eventually("a backup", || state() == "current");
    // The server may write a backup meanwhile, so a deletion could find the directory not empty.
    std::fs::rename(&directory, temp_dir.path().join("aside")).unwrap();
    std::fs::write(&directory, "in the way").unwrap();
    eventually("the failure", || state() == "failed");
    std::fs::remove_file(&directory).unwrap();
    eventually("another backup", || state() == "current");
}

/// The job cannot be triggered from outside, so the test calls it directly.
#[test]
fn retries_an_unreadable_backup_directory_after_a_pause() {
    let temp_dir = tempfile::tempdir().unwrap();
    let place = temp_dir.path().join("no-directory");
    std::fs::write(&place, "").unwrap();
    let (_directory, app) = open_app(&[("BACKUP_DIRECTORY", &place.to_string_lossy())]);
    assert!(yarrow::domain::operations::backups::run_if_due(&app.backups, &mut |_, _, _| ()).is_err());
    assert!(!yarrow::domain::operations::backups::run_if_due(&app.backups, &mut |_, _, _| ()).unwrap());
    std::fs::remove_file(&place).unwrap();
    assert!(
        !yarrow::domain::operations::backups::run_if_due(&app.backups, &mut |_, _, _| ()).unwrap(),
        "as after any other failure"
    );
}

#[test]
fn a_backup_succeeds_even_if_it_cannot_be_recorded() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    at_rest(&directory, 1, 0);
    let refuse = "create trigger takes_no_note before insert on settings when new.name = 'backup.last' \
                  begin select raise(abort, 'no'); end";
    Connection::open(directory.join("yarrow.db")).unwrap().execute_batch(refuse).unwrap();
    let created = CommandOutput::run_in_own_process(&directory, &[], &["backup", "create"], "").expect(0);
    assert!(created.stderr().contains("could not be stored"), "{}", created.stderr());
    assert_eq!(listed(&directory)[0]["name"], created.json()["name"]);
}
