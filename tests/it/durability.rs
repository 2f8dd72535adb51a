//! What was acknowledged is kept, whenever the process is killed; and it is on the disk before it is acknowledged.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread::{scope, sleep},
    time::{Duration, Instant},
};

use rusqlite::Connection;
use serde_json::json;

use crate::kit::{Binary, Caller, Server, Setup};

const ROUNDS: u64 = 20;
const CLIENTS: usize = 6;
/// Saves whose answers are traced.
const SAVES: usize = 20;

/// What the clients know, outside of the process that is killed.
#[derive(Default)]
struct Ledger {
    /// Record ids and the question last acknowledged for each.
    acknowledged: Mutex<BTreeMap<String, String>>,
    /// Questions that were sent and not answered: each may have been stored or not.
    unanswered: Mutex<BTreeMap<String, String>>,
    /// Interpretations that were answered, by trace id.
    interpreted: Mutex<Vec<String>>,
    numbers: AtomicU64,
}

impl Ledger {
    fn next(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Saves a new record, replaces it, or has something interpreted, until the server is gone.
    fn keep_writing(&self, server: &Server, user: &Caller) {
        loop {
            let number = self.next();
            let id = format!("record-{number}");
            let has_gone = match number % 8 {
                0 => self.interpret(server, user),
                1 => self.save(server, user, &id) || self.save(server, user, &id),
                _ => self.save(server, user, &id),
            };
            if has_gone {
                return;
            }
        }
    }

    fn save(&self, server: &Server, user: &Caller, id: &str) -> bool {
        let question = format!("question {}", self.next());
        self.unanswered.lock().unwrap().insert(id.into(), question.clone());
        let record = json!({ "localRecordId": id, "question": question, "jsonData": { "lines": [7, 8, 8, 8, 7, 6] } });
        match server.post("/divination-history/save").by(user).json(&record).try_send() {
            Ok(answer) => {
                assert!([200, 201].contains(&answer.status), "{}", answer.text());
                self.unanswered.lock().unwrap().remove(id);
                self.acknowledged.lock().unwrap().insert(id.into(), question);
                false
            }
            Err(_) => true,
        }
    }

    fn interpret(&self, server: &Server, user: &Caller) -> bool {
        let ask = json!({ "question": "何时启程？", "divinationData": { "lines": [7, 8, 8, 8, 7, 6] } });
        match server.post("/divination/enhanced").by(user).json(&ask).try_send() {
            Ok(answer) if answer.status == 200 => {
                let trace_id = answer.json()["traceId"].as_str().unwrap().to_owned();
                self.interpreted.lock().unwrap().push(trace_id);
                false
            }
            // Two calls of one user may run at once; the others are told so.
            Ok(answer) => {
                assert_eq!(answer.status, 429, "{}", answer.text());
                false
            }
            Err(_) => true,
        }
    }

    /// Compares what is in the file with what was acknowledged.
    fn check(&self, database: &Connection) {
        let mut stored: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut statement = database.prepare("select local_record_id, question from history").unwrap();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            stored.entry(row.get(0).unwrap()).or_default().push(row.get(1).unwrap());
        }
        let mut acknowledged = self.acknowledged.lock().unwrap();
        let mut unanswered = self.unanswered.lock().unwrap();
        for (id, question) in acknowledged.iter_mut() {
            let found = stored.remove(id).unwrap_or_default();
            assert_eq!(found.len(), 1, "{id} was acknowledged and is there {} times", found.len());
            if unanswered.get(id) == Some(&found[0]) {
                question.clone_from(&found[0]);
            }
            assert_eq!(&found[0], question, "{id} does not hold what was acknowledged last");
        }
        for (id, found) in stored {
            assert_eq!(found.len(), 1, "{id}");
            assert_eq!(unanswered.get(&id), Some(&found[0]), "{id} was never sent like that");
            acknowledged.insert(id, found[0].clone());
        }
        unanswered.clear();
        let succeeded = "select count(*) from interpretations where trace_id = ?1 and status = 'succeeded'";
        for trace_id in self.interpreted.lock().unwrap().iter() {
            assert_eq!(database.query_row(succeeded, [trace_id], |row| row.get::<_, i64>(0)), Ok(1), "{trace_id}");
        }
    }
}

fn assert_sound(database: &Connection) {
    let integrity: String = database.query_row("pragma integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(integrity, "ok");
    let mut dangling = database.prepare("pragma foreign_key_check").unwrap();
    assert!(dangling.query([]).unwrap().next().unwrap().is_none(), "a foreign key dangles");
}

#[test]
fn what_was_acknowledged_survives_twenty_kills_under_load() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("data");
    let setup = || Setup::default().on(&directory).with("LIMITS_HISTORY_RECORDS", 1_000_000);
    let server = setup().start();
    let users: Vec<_> = (0..CLIENTS).map(|index| server.sign_in(&format!("1380013{index:04}"))).collect();
    drop(server);
    let ledger = Ledger::default();
    for round in 0..ROUNDS {
        let server = setup().start();
        // Some rounds are so short that the first commits are hit, some long enough for a checkpoint.
        let lifetime = Duration::from_millis(80 + 90 * (round % 6));
        scope(|scope| {
            for user in &users {
                scope.spawn(|| ledger.keep_writing(&server, user));
            }
            scope.spawn(|| {
                sleep(lifetime);
                kill(server.process_id());
            });
        });
        drop(server);
        let database = Connection::open(directory.join("yarrow.db")).unwrap();
        assert_sound(&database);
        ledger.check(&database);
    }
    let count = ledger.acknowledged.lock().unwrap().len();
    assert!(count > 500, "only {count} records were written: the load was too small to prove anything");
    let server = setup().start();
    let running = "select count(*) from interpretations where status = 'running'";
    assert_eq!(server.database().query_row(running, [], |row| row.get::<_, i64>(0)), Ok(0));
}

fn kill(process: u32) {
    let killed = Command::new("kill").arg("-KILL").arg(process.to_string()).status().unwrap();
    assert!(killed.success());
}

/// The server under `strace`, and where the trace is written.
struct Traced {
    strace: std::process::Child,
    server: u32,
    address: String,
    trace: PathBuf,
}

impl Traced {
    fn start(directory: &Path) -> Self {
        let trace = directory.join("trace");
        let mut command = Command::new("strace");
        command.args([
            "-f",
            "-tt",
            "-y",
            "-s",
            "48",
            "-e",
            "trace=pwrite64,pwritev,fdatasync,fsync,write,writev,sendto",
            "-o",
        ]);
        command.arg(&trace).arg(Binary::command().get_program());
        command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(directory.join("data"));
        let log = std::fs::File::create(directory.join("log")).unwrap();
        let strace = command.stdin(Stdio::null()).stderr(log).spawn().expect("this test needs `strace`");
        let log = wait_for(&directory.join("log"), "listening on http://");
        let address = log.split("listening on http://").nth(1).unwrap().lines().next().unwrap().trim().to_owned();
        let children = format!("/proc/{0}/task/{0}/children", strace.id());
        let server = std::fs::read_to_string(children).unwrap().split_whitespace().next().unwrap().parse().unwrap();
        Self { strace, server, address, trace }
    }

    /// Ends the server and gives the trace, one system call a line.
    fn finish(mut self) -> String {
        kill(self.server);
        self.strace.wait().unwrap();
        std::fs::read_to_string(&self.trace).unwrap()
    }
}

fn wait_for(file: &Path, text: &str) -> String {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let content = std::fs::read_to_string(file).unwrap_or_default();
        if content.contains(text) {
            return content;
        }
        assert!(Instant::now() < deadline, "{text:?} is not in {content}");
        sleep(Duration::from_millis(10));
    }
}

/// Part of the long group, which needs tools that are not everywhere: `cargo test -- --ignored`.
#[test]
#[ignore = "needs strace; run with `cargo test -- --ignored`"]
fn an_answer_leaves_only_after_the_log_is_synced() {
    let temporary = tempfile::tempdir().unwrap();
    let traced = Traced::start(temporary.path());
    let post = |path: &str| crate::kit::Request::new("POST", &format!("http://{}{path}", traced.address));
    post("/auth/send-code").form(&[("phoneNumber", "13800138000")]).send().expect(200);
    let log = wait_for(&temporary.path().join("log"), "code is ");
    let code: String = log.split("code is ").nth(1).unwrap().chars().take_while(char::is_ascii_digit).collect();
    let login = post("/auth/login").form(&[("phoneNumber", "13800138000"), ("code", &code)]).send().expect(200).json();
    let token = login["token"].as_str().unwrap().to_owned();
    for number in 0..SAVES {
        let record = json!({ "localRecordId": format!("r-{number}") });
        post("/divination-history/save").token(&token).json(&record).send().expect(201);
    }
    // One request follows the answer of the one before, so what it wrote stands between the two answers. The network
    // log writes too, but only four times a second, and 20 answers take far less than that each.
    let (mut is_written, mut is_synced, mut answers) = (false, false, 0);
    for call in traced.finish().lines() {
        let is_of_log = call.contains("-wal>");
        if is_of_log && call.contains("pwrite64(") {
            (is_written, is_synced) = (true, false);
        } else if call.contains("fdatasync resumed")
            || is_of_log && call.contains("fdatasync(") && call.contains(" = 0")
        {
            is_synced = is_written;
        } else if call.contains("HTTP/1.1 201") {
            assert!(is_synced, "an answer left before what it acknowledges was written and synced: {call}");
            (is_written, is_synced) = (false, false);
            answers += 1;
        }
    }
    assert_eq!(answers, SAVES);
}
