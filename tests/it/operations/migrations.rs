//! An older database: who migrates it, who does not, and what a kill in the middle leaves.

use std::{path::Path, time::Instant};

use rusqlite::Connection;

use crate::support::{Ended, Setup, assert_sound, copy_of, count, cut_off, killed_after};

/// Moments, spread over the whole duration, at which the process is killed.
const KILLS: u32 = 8;

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
    let newest = i64::try_from(steps().len()).unwrap();
    // A kill after the end is one more, and the moment comes again sooner.
    cut_off(KILLS, whole, |wait| {
        let directory = temporary.path().join("killed");
        copy_of(&pristine, &directory);
        let serve = ["serve", "--listen", "127.0.0.1:0"];
        killed_after(&directory, &serve, wait);
        let database = Connection::open(directory.join("yarrow.db")).unwrap();
        assert_sound(&database);
        let version: i64 = database.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
        // A migration is one transaction: all of it, or nothing.
        assert!([1, newest].contains(&version), "version {version}");
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
        version == 1
    });
}

/// The group that needs `strace`.
#[test]
#[ignore = "needs strace; run with `cargo test --test it -- --ignored traced_`"]
fn traced_a_migration_needs_no_temporary_directory() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("data");
    of_the_first_version(&directory, 1);
    let database = Connection::open(directory.join("yarrow.db")).unwrap();
    for step in &steps()[1..28] {
        database.execute_batch(step).unwrap();
    }
    database.pragma_update(None, "user_version", 28).unwrap();
    // Changing so many orders takes more room than SQLite has in memory.
    let fill = "insert into payment_orders (order_no, user_id, channel, amount_fen, coin_count, state, created_at, \
                expires_at, paid_at) with recursive counter (n) as (select 1 union all select n + 1 from counter \
                where n < 3000) select n, 1, 'sandbox', 600, 60, 'credited', 1, 1, 1 from counter";
    database.execute_batch(fill).unwrap();
    drop(database);
    // As in a container whose root may only be read: SQLite asks by this call which directories may be written to.
    let inject = "-e trace=access -e inject=access:error=EROFS";
    let prelude = format!("exec strace -f -qq -o /dev/null {inject} \"$0\" \"$@\"; true");
    let mut server = Setup::default().on(&directory).after(&prelude).start();
    server.wait_for_line("migrating in memory");
    assert_eq!(server.value::<i64>("select count(*) from payment_orders where paid_fen = 600"), 3000);
    server.kill_traced();
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
fn a_copy_that_cannot_be_finished_leaves_nothing_behind() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("data");
    of_the_first_version(&directory, 1);
    std::fs::write(directory.join("secret.key"), [7; 32]).unwrap();
    // What stands where the copy is to be cannot be replaced by it.
    let newest = steps().len();
    std::fs::create_dir_all(directory.join(format!("yarrow.db.before-version-{newest}")).join("in the way")).unwrap();
    Ended::run(&directory, &["serve", "--listen", "127.0.0.1:0"], "").expect(1);
    let names = std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let left: Vec<_> = names.filter(|name| name.contains("unfinished")).collect();
    assert!(left.is_empty(), "{left:?}");
}
