//! Faults of the environment: data directory, disk space, other processes.

use std::{
    io::{Read, Write},
    net::TcpStream,
    path::Path,
    process::{Command, Output},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread::{ScopedJoinHandle, scope, sleep},
    time::{Duration, Instant},
};

use rusqlite::Connection;
use serde_json::json;

use crate::support::{Binary, Caller, Response, Server, Setup, eventually};

/// Runs a server that must fail to start.
fn failing_start(directory: &Path) -> Output {
    let mut command = Binary::command();
    command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(directory);
    command.output().unwrap()
}

/// Panics unless the server exited with code 6 and one line with these words.
#[track_caller]
fn assert_unusable(output: &Output, words: &str) {
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(6), "{message}");
    assert!(message.starts_with("yarrow: ") && message.contains(words), "{message}");
    assert!(!message.contains("panicked"), "{message}");
    assert_eq!(message.trim_end().lines().count(), 1, "{message}");
}

fn save(server: &Server, user: &Caller, id: &str) -> Response {
    let record = json!({ "localRecordId": id, "question": "何时启程？" });
    server.post("/divination-history/save").by(user).json(&record).send()
}

/// Returns the user's record ids from the server.
fn saved(server: &Server, user: &Caller) -> Vec<String> {
    let response = server.post("/divination-history/get").by(user).send().expect(200).json();
    let items = response["items"].as_array().unwrap();
    items.iter().map(|item| item["localRecordId"].as_str().unwrap().to_owned()).collect()
}

fn assert_reads_go_on(server: &Server, user: &Caller) {
    let started_at = Instant::now();
    server.get("/user/profile").by(user).send().expect(200);
    server.get("/healthz").send().expect(200);
    // A write waits five seconds for another process.
    assert!(started_at.elapsed() < Duration::from_secs(4), "reading took {:?}", started_at.elapsed());
}

#[test]
fn a_second_server_on_a_directory_fails_and_the_first_continues() {
    let server = Setup::default().start();
    let user = server.sign_in("13800138000");
    assert_unusable(&failing_start(server.directory()), "another server is running on it");
    save(&server, &user, "r-1").expect(200);
}

#[test]
fn a_killed_server_releases_its_directory() {
    let directory = Setup::default().in_own_process().start().kill();
    let server = Setup::default().on(&directory).in_own_process().start();
    server.get("/readyz").send().expect(200);
    drop(server);
    std::fs::remove_dir_all(directory.parent().unwrap()).unwrap();
}

#[test]
fn rejects_a_newer_schema_without_changes() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    let mut server = Setup::default().on(&directory).in_own_process().start();
    assert_eq!(server.terminate(), Some(0));
    let database = Connection::open(directory.join("yarrow.db")).unwrap();
    database.pragma_update(None, "user_version", 9_999).unwrap();
    drop(database);
    assert_unusable(&failing_start(&directory), "schema version 9999");
    let database = Connection::open(directory.join("yarrow.db")).unwrap();
    assert_eq!(database.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0)), Ok(9_999));
}

#[test]
fn rejects_the_database_of_another_program_without_changes() {
    let temp_dir = tempfile::tempdir().unwrap();
    let path = temp_dir.path().join("yarrow.db");
    let theirs = Connection::open(&path).unwrap();
    theirs.execute_batch("create table theirs (id integer); insert into theirs values (1);").unwrap();
    drop(theirs);
    let before = std::fs::read(&path).unwrap();
    assert_unusable(&failing_start(temp_dir.path()), "was not made by Yarrow");
    assert!(std::fs::read(&path).unwrap() == before, "the file was changed");
}

#[test]
fn rejects_a_file_that_is_no_database_without_changes() {
    let temp_dir = tempfile::tempdir().unwrap();
    let path = temp_dir.path().join("yarrow.db");
    let text = "This was never a database. ".repeat(400);
    std::fs::write(&path, &text).unwrap();
    assert_unusable(&failing_start(temp_dir.path()), "was not made by Yarrow");
    assert!(std::fs::read_to_string(&path).unwrap() == text, "the file was changed");
}

#[test]
fn rejects_a_data_directory_that_is_a_file() {
    let temp_dir = tempfile::tempdir().unwrap();
    let path = temp_dir.path().join("data");
    std::fs::write(&path, "").unwrap();
    assert_unusable(&failing_start(&path), "data directory");
}

/// Raises the file size limit of a running process, like freeing space.
fn give_space(server: &Server) {
    let process = server.process_id().to_string();
    let status = Command::new("prlimit").args(["--pid", &process, "--fsize=unlimited:"]).status();
    assert!(status.expect("this test needs `prlimit` of util-linux").success());
}

#[test]
fn on_a_full_disk_writes_fail_reads_continue_and_free_space_recovers() {
    // A file size limit simulates a full disk: the WAL cannot grow past it.
    let server = Setup::default().after("trap '' XFSZ && ulimit -S -f 1600").start();
    let user = server.sign_in("13800138000");
    let record = |id: &str| json!({ "localRecordId": id, "aiResult": "x".repeat(30_000) });
    let mut acknowledged = Vec::new();
    let failure = (0..400).find_map(|number| {
        let id = format!("r-{number}");
        let response = server.post("/divination-history/save").by(&user).json(&record(&id)).send();
        if response.status == 200 {
            acknowledged.push(id);
            return None;
        }
        Some(response)
    });
    let failure = failure.expect("the disk never filled up").expect(503);
    assert!(
        ["storage_failed", "storage_full"].contains(&failure.json()["code"].as_str().unwrap()),
        "{}",
        failure.text()
    );
    assert!(failure.header("retry-after").is_some());
    assert!(!acknowledged.is_empty());
    assert_reads_go_on(&server, &user);
    acknowledged.reverse();
    assert_eq!(saved(&server, &user), acknowledged);
    // Reads work, so the service stays ready, also beside writers whose commits fail.
    let is_over = std::sync::atomic::AtomicBool::new(false);
    scope(|scope| {
        for thread in 0..4 {
            let (server, user, record, is_over) = (&server, &user, &record, &is_over);
            scope.spawn(move || {
                for number in 0.. {
                    if is_over.load(std::sync::atomic::Ordering::Relaxed) {
                        break;
                    }
                    let record = record(&format!("beside-{thread}-{number}"));
                    server.post("/divination-history/save").by(user).json(&record).send().expect(503);
                }
            });
        }
        let statuses: Vec<_> = (0..100).map(|_| server.get("/readyz").send().status).collect();
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(statuses.iter().all(|status| *status == 200), "{statuses:?}");
    });

    give_space(&server);
    save(&server, &user, "after").expect(200);
    server.get("/readyz").send().expect(200);
    acknowledged.insert(0, "after".into());
    assert_eq!(saved(&server, &user), acknowledged);
    let integrity = server.database().query_row("pragma integrity_check", (), |row| row.get::<_, String>(0));
    assert_eq!(integrity.as_deref(), Ok("ok"));
}

#[test]
fn a_write_waits_for_another_process_and_reads_do_not() {
    let server = Setup::default().start();
    let user = server.sign_in("13800138000");
    let other = server.database();
    other.execute_batch("begin immediate").unwrap();
    scope(|scope| {
        let write = scope.spawn(|| save(&server, &user, "r-1").expect(200));
        sleep(Duration::from_millis(200));
        for _ in 0..20 {
            assert_reads_go_on(&server, &user);
        }
        assert!(!write.is_finished());
        sleep(Duration::from_millis(800));
        other.execute_batch("rollback").unwrap();
        write.join().unwrap();
    });
    assert_eq!(saved(&server, &user), ["r-1"]);
}

#[test]
fn rejects_a_write_that_waited_too_long_and_keeps_the_network_log() {
    let server = Setup::default().start();
    let user = server.sign_in("13800138000");
    let other = server.database();
    assert_reads_go_on(&server, &user);
    other.execute_batch("begin immediate").unwrap();
    let started_at = Instant::now();
    let refused = save(&server, &user, "r-1").expect_problem(503, "overloaded");
    assert!(refused.header("retry-after").is_some());
    assert!(started_at.elapsed() < Duration::from_secs(30), "{:?}", started_at.elapsed());
    for _ in 0..10 {
        assert_reads_go_on(&server, &user);
    }
    sleep(Duration::from_secs(6));
    other.execute_batch("rollback").unwrap();
    save(&server, &user, "r-2").expect(200);
    assert_eq!(saved(&server, &user), ["r-2"]);
    let logged = "select count(*) from access_log where route = '/user/profile'";
    eventually("the network log has all requests", || server.value::<i64>(logged) == 11);
}

#[test]
fn a_full_queue_rejects_at_once_and_reads_continue() {
    let server = Setup::default().with("DATABASE_WRITE_QUEUE", 4).start();
    let user = server.sign_in("13800138000");
    let other = server.database();
    other.execute_batch("begin immediate").unwrap();
    let statuses: Vec<_> = scope(|scope| {
        let save_one = |number: usize| save(&server, &user, &format!("r-{number}"));
        // The writer takes the first and waits for the lock. The next ones fill the queue.
        let waiting: Vec<_> = (0..24)
            .map(|number| {
                sleep(Duration::from_millis(10));
                scope.spawn(move || save_one(number))
            })
            .collect();
        eventually("a write finds the queue full", || waiting.iter().any(ScopedJoinHandle::is_finished));
        let started_at = Instant::now();
        let refused = save(&server, &user, "late").expect_problem(503, "overloaded");
        // Queued writes time out after five seconds.
        assert!(started_at.elapsed() < Duration::from_secs(4), "{:?}", started_at.elapsed());
        assert_eq!(refused.header("retry-after"), Some("1"));
        assert_reads_go_on(&server, &user);
        other.execute_batch("rollback").unwrap();
        waiting.into_iter().map(|write| write.join().unwrap().status).collect()
    });
    let accepted = statuses.iter().filter(|status| **status == 200).count();
    let refused = statuses.iter().filter(|status| **status == 503).count();
    assert_eq!(accepted + refused, 24, "{statuses:?}");
    assert!((1..=8).contains(&accepted), "{statuses:?}");
    assert_eq!(saved(&server, &user).len(), accepted);
    save(&server, &user, "after").expect(200);
}

#[test]
fn changes_of_another_process_are_visible_within_a_second_under_load() {
    let server = Setup::default().with("SERVER_WORKERS", 2).start();
    let user = server.sign_in("13800138000");
    let other = server.database();
    let (stop, mut late) = (AtomicBool::new(false), Vec::new());
    scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    server.get("/user/profile").by(&user).send().expect(200);
                }
            });
        }
        for number in 0..5 {
            let name = format!("name-{number}");
            let changed =
                other.execute("update users set nickname = ?1 where id = ?2", (&name, &user.user_id)).unwrap();
            assert_eq!(changed, 1);
            let started_at = Instant::now();
            let shown = || server.get("/user/profile").by(&user).send().expect(200).json()["nickname"].clone();
            eventually("the change is visible", || shown() == name.as_str());
            late.extend(Some(started_at.elapsed()).filter(|time| *time > Duration::from_secs(1)));
            sleep(Duration::from_millis(50));
        }
        stop.store(true, Ordering::Relaxed);
    });
    // One of them may be delayed by machine load.
    assert!(late.len() <= 1, "{late:?}");
}

/// A connection under constant use, so that the server's workers never park.
struct BusyConnection {
    stream: TcpStream,
    token: String,
}

impl BusyConnection {
    fn new(server: &Server, user: &Caller) -> Self {
        Self { stream: TcpStream::connect(server.address()).unwrap(), token: user.token.clone() }
    }

    /// Sends pipelined requests and returns how many succeeded or failed for other reasons than overload.
    fn send(&mut self, request_line: &str, body: &str, count: usize) -> usize {
        let (token, length) = (&self.token, body.len());
        let head = format!("{request_line} HTTP/1.1\r\nhost: yarrow\r\nauthorization: Bearer {token}\r\n");
        let request = format!("{head}content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}");
        self.stream.write_all(request.repeat(count).as_bytes()).unwrap();
        let mut received = vec![0; 64 << 10];
        let mut responses = Vec::new();
        while responses.windows(9).filter(|window| window == b"HTTP/1.1 ").count() < count || !responses.ends_with(b"}")
        {
            let length = self.stream.read(&mut received).unwrap();
            assert!(length > 0, "the server closed the connection");
            responses.extend_from_slice(&received[..length]);
        }
        let responses = String::from_utf8_lossy(&responses);
        let done = responses.matches("HTTP/1.1 20").count();
        assert_eq!(done + responses.matches("HTTP/1.1 503").count(), count, "{responses}");
        done
    }
}

/// The upper bound of the WAL: its retained size plus a batch.
const LOG_AT_MOST: u64 = 72 << 20;

#[test]
fn the_wal_stays_small_under_constant_load() {
    // Each record takes more of the WAL than its length.
    let through = |written: &AtomicU64| written.load(Ordering::Relaxed) * 90_000;
    // A backup or a check that reads retains the WAL. Both begin soon after the start.
    let setup = Setup::default().with("LIMITS_HISTORY_RECORDS", 1_000_000);
    let server = setup.with("BACKUP_EVERY", "0 s").with("DATABASE_CHECK_EVERY", "0 s").start();
    let user = server.sign_in("13800138000");
    let (stop, numbers, written) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut connection = BusyConnection::new(&server, &user);
                while !stop.load(Ordering::Relaxed) {
                    connection.send("GET /user/profile", "", 50);
                }
            });
        }
        for _ in 0..6 {
            scope.spawn(|| {
                let mut connection = BusyConnection::new(&server, &user);
                while !stop.load(Ordering::Relaxed) {
                    let number = numbers.fetch_add(1, Ordering::Relaxed);
                    let record = json!({ "localRecordId": number.to_string(), "aiResult": "x".repeat(30_000) });
                    let saved = connection.send("POST /divination-history/save", &record.to_string(), 1);
                    written.fetch_add(saved as u64, Ordering::Relaxed);
                }
            });
        }
        let started_at = Instant::now();
        while through(&written) < 2 * LOG_AT_MOST && started_at.elapsed() < Duration::from_mins(3) {
            sleep(Duration::from_millis(50));
        }
        stop.store(true, Ordering::Relaxed);
    });
    let through = through(&written);
    assert!(through >= 2 * LOG_AT_MOST, "only {through} bytes were written, which proves nothing");
    let size = std::fs::metadata(server.directory().join("yarrow.db-wal")).unwrap().len();
    assert!(size < LOG_AT_MOST, "{through} bytes were written and the WAL has grown to {size}");
}

#[test]
fn a_server_out_of_files_recovers_when_connections_close() {
    let mut server = Setup::default().after("ulimit -n 48").start();
    let user = server.sign_in("13800138000");
    let connections: Vec<_> = (0..80).map(|_| TcpStream::connect(server.address()).unwrap()).collect();
    server.wait_for_line("could not be accepted");
    drop(connections);
    save(&server, &user, "r-1").expect(200);
}
