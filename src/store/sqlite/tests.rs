//! Tests of the store's guarantees: atomic operations, replies after the commit, and reads of own writes.

use std::{
    fmt::Display,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        atomic::{AtomicU64, AtomicUsize, Ordering},
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread::{scope, sleep, spawn},
    time::{Duration, Instant},
};

use rusqlite::{Connection, config::DbConfig};
use tempfile::TempDir;

use super::{
    SNAPSHOT_AGE, SchemaPolicy,
    connection::{open_writer, reader_pool},
    end_stale_snapshot, on_thread_park,
};
use crate::{
    clock::Clock,
    error::{Code, Error, Result},
    store::{Pending, Read, Store, Tuning, Write},
};

/// A store in a temporary directory.
struct Opened {
    store: Store,
    _directory: TempDir,
}

impl Opened {
    fn new() -> Self {
        Self::with(4096, 8)
    }

    fn with(queue: usize, readers: u32) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let tuning = Tuning { readers, queue, commit_size: 512, ..Tuning::SMALL };
        let store =
            Store::open(&directory.path().join("yarrow.db"), &tuning, Clock::default(), SchemaPolicy::Migrate).unwrap();
        Self { store, _directory: directory }
    }

    fn put(&self, name: &'static str, value: impl Display + Send + 'static) -> Pending<()> {
        self.store.write(move |tx| put_in(tx, name, &value.to_string()))
    }

    fn find(&self, name: &str) -> Option<String> {
        self.store.read(|tx| tx.first("select value from settings where name = ?1", [name], |row| row.get(0))).unwrap()
    }

    /// A separate connection, as another process would have.
    fn other(&self) -> Connection {
        Connection::open(self.store.file().unwrap().path()).unwrap()
    }

    /// Overwrites a value of a megabyte. Returns the size of the WAL. The content differs by number, because SQLite does
    /// not write unchanged pages.
    fn put_megabyte(&self, number: u32) -> u64 {
        self.put("megabyte", format!("{number:016}").repeat(1 << 16)).wait().unwrap();
        self.store.writer_load().wal_bytes
    }

    /// Blocks the writer until the returned sender is dropped, so that writes queued meanwhile share one commit.
    fn hold_writer(&self) -> Sender<()> {
        let (release, held) = channel();
        let (running, has_begun) = channel();
        let operation = move |_: &Write<'_>| {
            running.send(()).unwrap();
            let _ = held.recv();
            Ok(())
        };
        spawn_wait(self.store.write(operation));
        has_begun.recv().unwrap();
        release
    }
}

fn put_in(tx: &Write<'_>, name: &str, value: &str) -> Result<()> {
    tx.execute(
        "insert into settings (name, value, updated_at) values (?1, ?2, ?3) \
         on conflict (name) do update set value = excluded.value",
        (name, value, tx.now.0),
    )
    .map(drop)
}

/// Waits for a receipt on another thread.
fn spawn_wait<T: Send + 'static>(pending: Pending<T>) -> Receiver<Result<T>> {
    let (sender, receiver) = channel();
    spawn(move || drop(sender.send(pending.wait())));
    receiver
}

#[test]
fn rolls_back_failed_and_panicked_operations_alone() {
    let opened = Opened::new();
    let release = opened.hold_writer();
    let before = opened.put("before", 1);
    let failing = opened.store.write(|tx| {
        put_in(tx, "failing", "1")?;
        Err::<(), _>(Code::NotFound.into())
    });
    let between = opened.put("between", 1);
    let panicking = opened.store.write::<(), _>(|tx| {
        put_in(tx, "panicking", "1")?;
        panic!("an operation panics");
    });
    let refused = opened.store.write(|tx| tx.execute("insert into settings (name) values ('incomplete')", ()));
    let after = opened.put("after", 1);
    drop(release);
    for committed in [before, between, after] {
        committed.wait().unwrap();
    }
    assert_eq!(failing.wait().unwrap_err().code, Code::NotFound);
    assert_eq!(panicking.wait().unwrap_err().code, Code::Internal);
    assert_eq!(refused.wait().unwrap_err().code, Code::Internal);
    let kept =
        ["before", "failing", "between", "panicking", "incomplete", "after"].map(|name| opened.find(name).is_some());
    assert_eq!(kept, [true, false, true, false, false, true]);
}

#[test]
fn replies_after_the_commit() {
    let opened = Opened::new();
    let release_writer = opened.hold_writer();
    let first = spawn_wait(opened.put("first", 1));
    let (release_second, held) = channel::<()>();
    let second = spawn_wait(opened.store.write(move |tx| {
        let _ = held.recv();
        put_in(tx, "second", "1")
    }));
    drop(release_writer);
    // The first has run; it waits for the second, which is in the same commit.
    assert_eq!(first.recv_timeout(Duration::from_millis(200)).unwrap_err(), RecvTimeoutError::Timeout);
    let seen = |name: &str| {
        let count = "select count(*) from settings where name = ?1";
        opened.other().query_row(count, [name], |row| row.get::<_, i64>(0)).unwrap()
    };
    assert_eq!(seen("first"), 0);
    drop(release_second);
    first.recv().unwrap().unwrap();
    second.recv().unwrap().unwrap();
    assert_eq!((seen("first"), seen("second")), (1, 1));
}

#[test]
fn dispatches_replies_and_sends_them_even_without_a_receiver() {
    const CALLERS: usize = 5;
    let opened = Opened::new();
    let (carrier, taken) = channel();
    opened.store.dispatch_replies_with(Box::new(move |answers| drop(carrier.send(answers))));
    let many_at_once = || {
        let release = opened.hold_writer();
        let receipts: Vec<_> = (0..CALLERS).map(|number| opened.put("name", number)).collect();
        drop(release);
        receipts
    };

    let answers: Vec<_> = many_at_once().into_iter().map(spawn_wait).collect();
    let replies = taken.recv().unwrap();
    assert!(answers.iter().all(|answer| answer.try_recv().is_err()), "a reply was sent on the writer thread");
    assert_eq!(opened.find("name").as_deref(), Some("4"), "the commit was not made before the replies");
    drop(replies);
    assert!(answers.iter().all(|answer| answer.recv().unwrap().is_ok()));

    drop(taken);
    assert!(many_at_once().into_iter().all(|receipt| receipt.wait().is_ok()));
}

#[test]
fn keeps_changes_of_an_error_that_requests_it() {
    let opened = Opened::new();
    let failing = opened.store.write(|tx| {
        put_in(tx, "tries", "1")?;
        Err::<(), _>(Error::new(Code::InvalidCode).keeping_changes())
    });
    assert_eq!(failing.wait().unwrap_err().code, Code::InvalidCode);
    assert_eq!(opened.find("tries").as_deref(), Some("1"));
}

#[test]
fn failed_commit_fails_all_its_operations_and_the_writer_continues() {
    let opened = Opened::new();
    opened.put("value", "old").wait().unwrap();
    let release = opened.hold_writer();
    let before = opened.put("value", "new");
    let keeping = opened.store.write(|tx| {
        put_in(tx, "tries", "1")?;
        Err::<(), _>(Error::new(Code::InvalidCode).keeping_changes())
    });
    let failed = opened.store.write(|_| Err::<(), _>(Code::NotFound.into()));
    // The constraint is checked at commit time, so the operation itself succeeds.
    let dangling = opened.store.write(|tx| {
        tx.execute("pragma defer_foreign_keys = true", ())?;
        tx.execute("insert into staff_notes (user_id, author, content, created_at) values (7, 'cli', '', 0)", ())
    });
    let after = opened.put("after", 1);
    drop(release);
    assert!(before.wait().is_err());
    // Its change was lost, so the caller must not get the error that implies it.
    assert_eq!(keeping.wait().unwrap_err().code, Code::Internal);
    assert_eq!(failed.wait().unwrap_err().code, Code::NotFound);
    assert!(dangling.wait().is_err());
    assert!(after.wait().is_err());
    assert_eq!(opened.find("value").as_deref(), Some("old"));
    assert_eq!((opened.find("after"), opened.find("tries")), (None, None));
    opened.put("value", "newest").wait().unwrap();
    assert_eq!(opened.find("value").as_deref(), Some("newest"));
}

#[test]
fn sticky_snapshots_show_acknowledged_writes_on_all_threads() {
    let opened = Opened::new();
    opened.put("number", 0).wait().unwrap();
    let acknowledged = AtomicU64::new(0);
    scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                on_thread_park();
                while acknowledged.load(Ordering::SeqCst) < 300 {
                    let at_least = acknowledged.load(Ordering::SeqCst);
                    let found: u64 = opened.find("number").unwrap().parse().unwrap();
                    assert!(found >= at_least, "{found} was read after {at_least} was acknowledged");
                }
            });
        }
        scope.spawn(|| {
            on_thread_park();
            for number in 1..=300 {
                // Worker threads poll instead of blocking.
                pollster::block_on(opened.put("number", number)).unwrap();
                acknowledged.store(number, Ordering::SeqCst);
                assert_eq!(opened.find("number"), Some(number.to_string()));
            }
        });
    });
}

#[test]
fn sticky_snapshot_is_stable_inside_a_read_and_ends_by_age_or_parking() {
    let opened = Opened::new();
    opened.put("number", 1).wait().unwrap();
    let change = |number: u64| opened.other().execute("update settings set value = ?1", [number.to_string()]).unwrap();
    scope(|scope| {
        scope.spawn(|| {
            on_thread_park();
            let twice = opened.store.read(|tx| {
                let number = || tx.one("select value from settings", (), |row| row.get::<String>(0));
                let first = number()?;
                change(2);
                sleep(2 * SNAPSHOT_AGE);
                Ok((first, number()?))
            });
            assert_eq!(twice.unwrap(), ("1".to_owned(), "1".to_owned()));
            end_stale_snapshot(Instant::now());
            assert_eq!(opened.find("number").as_deref(), Some("2"));
            change(3);
            on_thread_park();
            assert_eq!(opened.find("number").as_deref(), Some("3"));
            on_thread_park();
        });
    });
    assert_eq!(truncate_wal(&opened.other()), 0);
}

/// Truncates the WAL. Returns 1 if a reader prevents it.
fn truncate_wal(connection: &Connection) -> i64 {
    connection.query_row("pragma wal_checkpoint(truncate)", (), |row| row.get(0)).unwrap()
}

#[test]
fn wal_shrinks_after_a_long_read_while_the_writer_is_busy() {
    let opened = Opened::new();
    let other = opened.other();
    other.execute_batch("begin; select count(*) from sqlite_schema").unwrap();
    let grown = (0..80).fold(0, |_, number| opened.put_megabyte(number));
    assert!(grown > 80 << 20, "the log has {grown} bytes despite a reader");
    other.execute_batch("rollback").unwrap();
    // The next attempt follows after another quarter of the WAL.
    let sizes: Vec<_> = (0..40).map(|number| opened.put_megabyte(number)).collect();
    assert!(sizes.last().is_some_and(|size| *size <= 64 << 20), "{sizes:?}");
}

#[test]
fn nested_reads_use_another_transaction() {
    let opened = Opened::new();
    opened.put("number", 1).wait().unwrap();
    scope(|scope| {
        scope.spawn(|| {
            on_thread_park();
            let nested = opened.store.read(|_| Ok(opened.find("number")));
            assert_eq!(nested.unwrap().as_deref(), Some("1"));
        });
    });
}

#[test]
fn panicking_reads_end_their_transaction() {
    let opened = Opened::with(16, 1);
    opened.put("number", 1).wait().unwrap();
    for is_worker in [false, true] {
        scope(|scope| {
            scope.spawn(|| {
                if is_worker {
                    on_thread_park();
                }
                let panicking = || {
                    opened.store.read::<()>(|tx| {
                        tx.one("select value from settings", (), |row| row.get::<String>(0))?;
                        panic!("a read panics");
                    })
                };
                assert!(catch_unwind(AssertUnwindSafe(panicking)).is_err());
                assert_eq!(opened.find("number").as_deref(), Some("1"));
                if is_worker {
                    on_thread_park();
                }
            });
        });
        opened.put("number", 1).wait().unwrap();
        assert_eq!(truncate_wal(&opened.other()), 0, "a reader remains open");
    }
}

#[test]
fn concurrent_decrements_stop_at_zero() {
    let opened = Opened::new();
    opened
        .store
        .write(|tx| {
            let columns = "address, purpose, code_hmac, tries_left, expires_at";
            tx.execute(&format!("insert into codes ({columns}) values ('a', 'sign_in', x'00', 100, 0)"), ())
        })
        .wait()
        .unwrap();
    let given = AtomicUsize::new(0);
    scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| {
                for _ in 0..4 {
                    let take = "update codes set tries_left = tries_left - 1 where tries_left > 0";
                    given.fetch_add(
                        opened.store.write(move |tx| tx.execute(take, ())).wait().unwrap(),
                        Ordering::Relaxed,
                    );
                }
            });
        }
    });
    assert_eq!(given.load(Ordering::Relaxed), 100);
    let left = opened.store.read(|tx| tx.one("select tries_left from codes", (), |row| row.get::<i64>(0)));
    assert_eq!(left.unwrap(), 0);
}

#[test]
fn connections_are_configured_for_durability_privacy_and_stable_plans() {
    const OF_ALL: [(&str, i64); 4] =
        [("trusted_schema", 0), ("cell_size_check", 1), ("busy_timeout", 5_000), ("mmap_size", 0)];
    const OF_WRITER: [(&str, i64); 4] =
        [("synchronous", 2), ("foreign_keys", 1), ("secure_delete", 1), ("query_only", 0)];
    fn assert_pragma(tx: &Read<'_>, name: &str, expected: i64) {
        let found = tx.one(&format!("pragma {name}"), (), |row| row.get::<i64>(0));
        assert_eq!(found.unwrap(), expected, "{name}");
    }
    let opened = Opened::new();
    let check = |tx: &Write<'_>| {
        OF_ALL.into_iter().chain(OF_WRITER).for_each(|(name, expected)| assert_pragma(tx, name, expected));
        tx.one("pragma journal_mode", (), |row| row.get::<String>(0))
    };
    assert_eq!(opened.store.write(check).wait().unwrap(), "wal");
    let check = |tx: &Read<'_>| {
        OF_ALL.into_iter().chain([("query_only", 1)]).for_each(|(name, expected)| assert_pragma(tx, name, expected));
        Ok(())
    };
    opened.store.read(check).unwrap();
    // No pragma reports this option.
    let stability = DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG;
    let writer = open_writer(opened.store.file().unwrap().path(), &Tuning::SMALL, "full", |_| Ok(())).unwrap();
    let reader = reader_pool(opened.store.file().unwrap().path(), &Tuning::SMALL).get().unwrap();
    assert!(writer.db_config(stability).unwrap() && reader.db_config(stability).unwrap());
}

#[test]
fn full_queue_refuses_at_once_and_recovers() {
    let opened = Opened::with(2, 4);
    let release = opened.hold_writer();
    let queued = [opened.put("a", 1), opened.put("b", 1)];
    assert_eq!(opened.store.writer_load().queued, 3);
    let begun = Instant::now();
    let refused = opened.put("c", 1).wait().unwrap_err();
    assert!(begun.elapsed() < Duration::from_millis(100));
    assert_eq!(refused.code, Code::Overloaded);
    assert!(refused.retry_after.is_some());
    drop(release);
    for write in queued {
        write.wait().unwrap();
    }
    opened.put("d", 1).wait().unwrap();
    assert_eq!((opened.find("c"), opened.find("d").as_deref()), (None, Some("1")));
}

#[test]
fn close_commits_queued_writes_and_refuses_later_ones() {
    let opened = Opened::new();
    let release = opened.hold_writer();
    let queued: Vec<_> = (0..600).map(|number| opened.put("number", number)).collect();
    drop(release);
    opened.store.close();
    for write in queued {
        write.wait().unwrap();
    }
    assert_eq!(opened.find("number").as_deref(), Some("599"));
    assert_eq!(opened.put("late", 1).wait().unwrap_err().code, Code::Overloaded);
}

#[test]
fn dropped_receipt_does_not_cancel_its_write() {
    let opened = Opened::new();
    drop(opened.put("abandoned", 1));
    opened.put("next", 1).wait().unwrap();
    assert_eq!(opened.find("abandoned").as_deref(), Some("1"));
}

#[test]
fn failed_operation_without_savepoint_leaves_no_change() {
    let opened = Opened::new();
    let insert = |tx: &Write<'_>, name: &str| {
        tx.execute("insert into settings (name, value, updated_at) values (?1, '1', 0)", [name])
    };
    let broken = opened.store.write_without_savepoint(move |tx| {
        insert(tx, "broken")?;
        Err::<(), _>(Error::from(Code::NotFound))
    });
    assert!(broken.wait().is_err());
    assert_eq!(opened.find("broken"), None);
    let refused = opened.store.write_without_savepoint(|_| Err::<(), _>(Error::from(Code::HistoryFull)));
    assert_eq!(refused.wait().unwrap_err().code, Code::HistoryFull);
    opened.store.write_without_savepoint(move |tx| insert(tx, "good")).wait().unwrap();
    assert_eq!(opened.find("good").as_deref(), Some("1"));

    // Rolled-back parts, also nested ones, do not count as changes.
    let undone = opened.store.write_without_savepoint(move |tx| {
        tx.attempt(|tx| {
            insert(tx, "outer")?;
            let inner = tx.attempt(|tx| {
                insert(tx, "inner")?;
                Err::<(), _>(Error::from(Code::NotFound))
            });
            assert!(inner.is_err());
            Err::<(), _>(Error::from(Code::HistoryFull))
        })
    });
    assert_eq!(undone.wait().unwrap_err().code, Code::HistoryFull);
    assert_eq!((opened.find("outer"), opened.find("inner")), (None, None));
}

#[test]
fn a_failed_commit_fails_only_what_changed_or_saw_a_change() {
    let opened = Opened::new();
    let insert = |tx: &Write<'_>, name: &str| {
        tx.execute("insert into settings (name, value, updated_at) values (?1, '1', 0)", [name])
    };
    let count = |tx: &Write<'_>| tx.count_rows("settings");
    let release = opened.hold_writer();
    let before = opened.store.write(count);
    let good = opened.store.write(move |tx| insert(tx, "good"));
    let after = opened.store.write(count);
    let probe = opened.store.probe_writer();
    let broken = opened.store.write_without_savepoint(move |tx| {
        insert(tx, "broken")?;
        Err::<(), _>(Error::from(Code::NotFound))
    });
    drop(release);
    let rows = before.wait().unwrap();
    assert!(good.wait().is_err() && broken.wait().is_err());
    // It counted a row that was not stored.
    assert!(after.wait().is_err());
    probe.wait().unwrap();
    assert_eq!(opened.store.write(count).wait().unwrap(), rows);
}
