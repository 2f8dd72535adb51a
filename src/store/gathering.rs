//! What `gathering.c` promises, seen through SQLite: a log that is written in few calls says the same as one that is
//! written page by page, to this connection, to others, and after a crash at any commit.

use std::{collections::BTreeMap, fs, path::Path};

use proptest::prelude::*;
use rusqlite::{Connection, OpenFlags};

const DATABASE: &str = "gathered.db";
/// So small that transactions of a few rows do not fit, and write to the log before they commit.
const CACHE_PAGES: u32 = 10;

type Rows = BTreeMap<i64, Vec<u8>>;

/// What happens within a transaction.
#[derive(Clone, Debug)]
enum Step {
    /// Rows from this key on get as many bytes.
    Put {
        key: i64,
        rows: i64,
        bytes: usize,
        fill: u8,
    },
    Delete {
        key: i64,
    },
    /// All rows are read, also those that went to the log and left the cache.
    Read,
    Save,
    /// What came after the last `Save` is undone.
    GoBack,
}

#[derive(Clone, Debug)]
enum Act {
    Transaction {
        steps: Vec<Step>,
        commits: bool,
    },
    /// Somebody else writes meanwhile, as another process does: with the system's VFS alone.
    Another {
        key: i64,
        bytes: usize,
    },
    Checkpoint,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let put = (0..40_i64, 1..12_i64, 1..9_000_usize, any::<u8>());
    let put = put.prop_map(|(key, rows, bytes, fill)| Step::Put { key, rows, bytes, fill });
    let delete = (0..40_i64).prop_map(|key| Step::Delete { key });
    let step =
        prop_oneof![6 => put, 2 => delete, 2 => Just(Step::Read), 2 => Just(Step::Save), 2 => Just(Step::GoBack)];
    prop::collection::vec(step, 1..14)
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let transaction =
        (steps(), prop::bool::weighted(0.7)).prop_map(|(steps, commits)| Act::Transaction { steps, commits });
    let another = (0..40_i64, 1..30_000_usize).prop_map(|(key, bytes)| Act::Another { key, bytes });
    prop::collection::vec(prop_oneof![6 => transaction, 2 => another, 1 => Just(Act::Checkpoint)], 1..12)
}

fn opened(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.pragma_update(None, "journal_mode", "wal").unwrap();
    connection.pragma_update(None, "cache_size", CACHE_PAGES).unwrap();
    connection.pragma_update(None, "wal_autocheckpoint", 0).unwrap();
    connection.execute_batch("create table if not exists rows (key integer primary key, value blob) strict").unwrap();
    connection
}

/// A connection that knows nothing of gathering.
fn of_the_system(path: &Path) -> Connection {
    Connection::open_with_flags_and_vfs(path, OpenFlags::default(), c"unix").unwrap()
}

/// Copies the log into the database, and has it begun anew.
fn checkpoint(connection: &Connection) {
    connection.query_row("pragma wal_checkpoint(restart)", [], |_| Ok(())).unwrap();
}

fn put(connection: &Connection, key: i64, value: &[u8]) {
    let put = "insert into rows (key, value) values (?1, ?2) on conflict (key) do update set value = excluded.value";
    connection.prepare_cached(put).unwrap().execute((key, value)).unwrap();
}

fn rows_of(connection: &Connection) -> Rows {
    let mut statement = connection.prepare_cached("select key, value from rows").unwrap();
    statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
}

/// Runs a transaction, and says what the rows are after it.
fn run(connection: &Connection, before: &Rows, steps: &[Step], commits: bool) -> Rows {
    connection.execute_batch("begin immediate").unwrap();
    let (mut rows, mut saved) = (before.clone(), None);
    for step in steps {
        match *step {
            Step::Put { key, rows: count, bytes, fill } => {
                for key in key..key + count {
                    let value = vec![fill; bytes + usize::try_from(key).unwrap()];
                    put(connection, key, &value);
                    rows.insert(key, value);
                }
            }
            Step::Delete { key } => {
                connection.execute("delete from rows where key = ?1", [key]).unwrap();
                rows.remove(&key);
            }
            Step::Read => assert_eq!(rows_of(connection), rows),
            Step::Save => {
                connection.execute_batch("savepoint here").unwrap();
                saved = Some(rows.clone());
            }
            Step::GoBack => {
                if let Some(saved) = &saved {
                    connection.execute_batch("rollback to here").unwrap();
                    rows.clone_from(saved);
                }
            }
        }
    }
    connection.execute_batch(if commits { "commit" } else { "rollback" }).unwrap();
    if commits { rows } else { before.clone() }
}

/// What is there after a crash of the machine at this moment: of the files as they are, what SQLite makes of the log.
fn after_a_crash(directory: &Path) -> Rows {
    let crashed = tempfile::tempdir().unwrap();
    for suffix in ["", "-wal"] {
        let name = format!("{DATABASE}{suffix}");
        fs::copy(directory.join(&name), crashed.path().join(&name)).unwrap();
    }
    let connection = of_the_system(&crashed.path().join(DATABASE));
    let integrity: String = connection.query_row("pragma integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(integrity, "ok");
    rows_of(&connection)
}

/// System calls of this thread that wrote.
fn calls_that_wrote() -> u64 {
    let counts = fs::read_to_string("/proc/thread-self/io").unwrap();
    counts.lines().find_map(|line| line.strip_prefix("syscw: ")).unwrap().parse().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_gathered_log_says_the_same_as_any(acts in acts(), synchronous in prop_oneof!["off", "normal", "full"]) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(DATABASE);
        let (connection, another) = (opened(&path), of_the_system(&path));
        // What others may see does not depend on what the disk is told to keep.
        connection.pragma_update(None, "synchronous", synchronous).unwrap();
        let mut rows = Rows::new();
        for act in &acts {
            match act {
                Act::Transaction { steps, commits } => rows = run(&connection, &rows, steps, *commits),
                Act::Another { key, bytes } => {
                    let value = vec![0x5a; *bytes];
                    put(&another, *key, &value);
                    rows.insert(*key, value);
                }
                Act::Checkpoint => checkpoint(&connection),
            }
            prop_assert_eq!(&rows_of(&connection), &rows);
            prop_assert_eq!(&rows_of(&another), &rows);
            prop_assert_eq!(&after_a_crash(directory.path()), &rows);
        }
    }
}

#[test]
fn a_commit_of_many_pages_is_written_in_few_calls() {
    let directory = tempfile::tempdir().unwrap();
    let connection = opened(&directory.path().join(DATABASE));
    connection.pragma_update(None, "cache_size", 4_000).unwrap();
    let pages = 500;
    let before = calls_that_wrote();
    put(&connection, 1, &vec![1; pages * 4096]);
    let calls = calls_that_wrote() - before;
    assert!(calls <= 40, "{calls} calls for {pages} pages");
    assert_eq!(after_a_crash(directory.path()), Rows::from([(1, vec![1; pages * 4096])]));
}

/// What a transaction wrote before it was rolled back must not come after what somebody else has committed since.
#[test]
fn what_was_rolled_back_overwrites_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(DATABASE);
    let (connection, another) = (opened(&path), of_the_system(&path));
    // Undoing reads from the log what is there of pages in use, and what is gathered would be written before.
    checkpoint(&connection);
    connection.execute_batch("begin immediate").unwrap();
    (0..8).for_each(|key| put(&connection, key, &vec![1; 6_000]));
    connection.execute_batch("rollback").unwrap();
    let theirs = vec![2; 60 * 4096];
    put(&another, 2, &theirs);
    put(&connection, 3, b"mine");
    let expected = Rows::from([(2, theirs), (3, b"mine".to_vec())]);
    assert_eq!(after_a_crash(directory.path()), expected);
    assert_eq!(rows_of(&another), expected);
}
