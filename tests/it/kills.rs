//! What a kill leaves behind in the middle of work that takes long: a migration, a clearing.

use std::{
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use rusqlite::Connection;

use crate::kit::{Binary, Ended, Setup};

/// Moments, spread over the whole duration, at which the process is killed.
const KILLS: u32 = 8;

fn start(directory: &Path, arguments: &[&str]) -> std::process::Child {
    let mut command = Binary::command();
    command.args(arguments).arg("--data-dir").arg(directory);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Kills a command after a while; true if it was still running.
fn killed_after(directory: &Path, arguments: &[&str], wait: Duration) -> bool {
    let mut process = start(directory, arguments);
    std::thread::sleep(wait);
    let was_running = process.try_wait().unwrap().is_none();
    process.kill().unwrap();
    process.wait().unwrap();
    was_running
}

fn copy_of(directory: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-a").arg(directory).arg(to).status().unwrap().success());
}

fn assert_sound(database: &Connection) {
    let integrity: String = database.query_row("pragma integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(integrity, "ok");
    let dangling = database.prepare("pragma foreign_key_check").unwrap().exists([]).unwrap();
    assert!(!dangling);
}

fn count(database: &Connection, table: &str) -> i64 {
    database.query_row(&format!("select count(*) from {table}"), [], |row| row.get(0)).unwrap()
}

/// The steps of the schema, oldest first.
fn steps() -> Vec<String> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store/migrations");
    let mut paths: Vec<_> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

/// A database of the first version, with so many users.
fn of_the_first_version(directory: &Path, users: u32) {
    std::fs::create_dir_all(directory).unwrap();
    let database = Connection::open(directory.join("yarrow.db")).unwrap();
    database.execute_batch(&steps()[0]).unwrap();
    database.pragma_update(None, "application_id", 0x5941_5257).unwrap();
    database.pragma_update(None, "user_version", 1).unwrap();
    database.pragma_update(None, "journal_mode", "wal").unwrap();
    let fill = format!(
        "with recursive counter (n) as (select 1 union all select n + 1 from counter where n < {users}) \
         insert into users (phone_number, nickname, created_at) select 13800000000 + n, hex(randomblob(500)), 1 from counter"
    );
    database.execute_batch(&fill).unwrap();
}

#[test]
fn a_migration_that_is_killed_is_made_again_and_loses_nothing() {
    const USERS: u32 = 20_000;
    let temporary = tempfile::tempdir().unwrap();
    let pristine = temporary.path().join("pristine");
    of_the_first_version(&pristine, USERS);
    let timed = temporary.path().join("timed");
    copy_of(&pristine, &timed);
    let begun = Instant::now();
    drop(Setup::default().on(&timed).start());
    let whole = begun.elapsed();
    let (mut cut_off, newest) = (0, i64::try_from(steps().len()).unwrap());
    for kill in 1..=KILLS {
        let directory = temporary.path().join(format!("killed-{kill}"));
        copy_of(&pristine, &directory);
        let serve = ["serve", "--listen", "127.0.0.1:0"];
        killed_after(&directory, &serve, whole * kill / KILLS);
        let database = Connection::open(directory.join("yarrow.db")).unwrap();
        assert_sound(&database);
        let version: i64 = database.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
        // A migration is one transaction: all of it, or nothing.
        assert!([1, newest].contains(&version), "version {version}");
        cut_off += u32::from(version == 1);
        drop(database);
        drop(Setup::default().on(&directory).start());
        let database = Connection::open(directory.join("yarrow.db")).unwrap();
        assert_sound(&database);
        assert_eq!(count(&database, "users"), i64::from(USERS));
        drop(database);
        Ended::run(&directory, &["ledger", "verify"], "").expect(0);
        // The copy that was put beside it is whole whenever it has its name.
        let copy = Connection::open(directory.join(format!("yarrow.db.before-version-{newest}"))).unwrap();
        assert_sound(&copy);
        assert_eq!(count(&copy, "users"), i64::from(USERS));
        std::fs::remove_dir_all(&directory).unwrap();
    }
    assert!(cut_off > 0, "no migration was killed before its end");
}

#[test]
fn a_command_migrates_nothing() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("data");
    of_the_first_version(&directory, 1);
    std::fs::write(directory.join("secret.key"), [7; 32]).unwrap();
    let version = || -> i64 {
        let database = Connection::open(directory.join("yarrow.db")).unwrap();
        database.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
    };
    for arguments in [["ledger", "verify"].as_slice(), &["admin", "create", "alice", "--password-stdin"]] {
        let refused = Ended::run(&directory, arguments, "correct horse battery\n").expect(6).complaint();
        assert!(refused.contains("The server migrates it when it starts"), "{refused}");
    }
    Ended::run(&directory, &["doctor"], "").expect(5);
    Ended::run(&directory, &["config", "show"], "").expect(0);
    assert_eq!(version(), 1);
    drop(Setup::default().on(&directory).start());
    assert_eq!(version(), i64::try_from(steps().len()).unwrap());
    Ended::run(&directory, &["ledger", "verify"], "").expect(0);
}

#[test]
fn a_restore_migrates_what_it_puts_in_place() {
    let temporary = tempfile::tempdir().unwrap();
    let (older, directory) = (temporary.path().join("older"), temporary.path().join("data"));
    of_the_first_version(&older, 3);
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(directory.join("secret.key"), [7; 32]).unwrap();
    let backup = older.join("yarrow.db");
    Ended::run(&directory, &["restore", backup.to_str().unwrap(), "--yes"], "").expect(0);
    let database = Connection::open(directory.join("yarrow.db")).unwrap();
    let version: i64 = database.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!((version, count(&database, "users")), (i64::try_from(steps().len()).unwrap(), 3));
}

#[test]
fn a_clearing_that_is_killed_leaves_a_good_database() {
    const ROWS: u32 = 30_000;
    let temporary = tempfile::tempdir().unwrap();
    let pristine = temporary.path().join("pristine");
    let mut server = Setup::default().on(&pristine).with("BACKUP_EVERY", "0 s").start();
    let user = server.sign_in("13800138000");
    server.command(&["coins", "grant", "13800138000", "5"]).expect(0);
    let fill = format!(
        "with recursive counter (n) as (select 1 union all select n + 1 from counter where n < {ROWS}) \
         insert into history (user_id, sequence, local_record_id, ai_result, created_at, updated_at) \
         select {}, n, n, hex(randomblob(300)), 1, 1 from counter",
        user.user_id
    );
    server.database().execute_batch(&fill).unwrap();
    assert_eq!(server.terminate(), Some(0));
    let arguments = ["cleanup", "all", "--yes"];
    let timed = temporary.path().join("timed");
    copy_of(&pristine, &timed);
    let begun = Instant::now();
    assert!(start(&timed, &arguments).wait().unwrap().success());
    let mut whole = begun.elapsed();
    let mut cut_off = 0;
    for kill in 1..=KILLS {
        let directory = temporary.path().join(format!("killed-{kill}"));
        copy_of(&pristine, &directory);
        let is_cut_off = killed_after(&directory, &arguments, whole * kill / KILLS);
        cut_off += u32::from(is_cut_off);
        if !is_cut_off && kill < KILLS {
            // The machine has become faster since.
            whole = whole * 2 / 3;
        }
        let database = Connection::open(directory.join("yarrow.db")).unwrap();
        assert_sound(&database);
        // Everything is cleared in one transaction.
        let left = (count(&database, "users"), count(&database, "history"), count(&database, "ledger_entries"));
        assert!([(1, i64::from(ROWS), 1), (0, 0, 0)].contains(&left), "{left:?}");
        drop(database);
        Ended::run(&directory, &["ledger", "verify"], "").expect(0);
        if left.0 == 0 {
            // What was cleared can be had back: the backup came first.
            Ended::run(&directory, &["backup", "verify"], "").expect(0);
        }
        Ended::run(&directory, &arguments, "").expect(0);
        assert_eq!(count(&Connection::open(directory.join("yarrow.db")).unwrap(), "users"), 0);
        std::fs::remove_dir_all(&directory).unwrap();
    }
    assert!(cut_off > KILLS / 2, "only {cut_off} of {KILLS} were killed");
}
