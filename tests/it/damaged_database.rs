//! Damaged, truncated, missing or read-only database files, and failing disks.

use std::{
    io::{Seek, SeekFrom, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output},
    thread::sleep,
    time::Duration,
};

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::{Binary, Caller, CommandOutput, Request, Server, Setup, eventually_ok, eventually_some};

const CANARY: &str = "where the heron stands";

/// Creates a stopped data directory with a user and enough records for a deep tree.
fn filled(directory: &Path) -> Caller {
    let mut server = Setup::default().on(directory).start();
    let user = server.sign_in("13800138000");
    for number in 0..60 {
        let record = json!({ "localRecordId": format!("r-{number}"), "aiResult": CANARY.repeat(400) });
        server.post("/divination-history/save").by(&user).json(&record).send().expect(200);
    }
    assert_eq!(server.terminate(), Some(0));
    user
}

/// Returns a request that deletes all records.
fn delete_all(server: &Server, user: &Caller) -> Request {
    let ids: Vec<_> = (0..60).map(|number| format!("r-{number}")).collect();
    server.post("/divination-history/delete").by(user).json(&json!({ "localRecordIds": ids }))
}

/// Panics unless the program exited with this code and a single error message.
#[track_caller]
fn assert_refused(output: &Output, code: i32) -> String {
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{message}");
    assert!(message.contains("yarrow: ") && !message.contains("panicked"), "{message}");
    message
}

fn database(directory: &Path) -> PathBuf {
    directory.join("yarrow.db")
}

/// Overwrites every page with a record, except for its first bytes.
fn damage(directory: &Path) {
    let mut bytes = std::fs::read(database(directory)).unwrap();
    let damaged =
        bytes.chunks_mut(4096).filter(|page| page.windows(CANARY.len()).any(|window| window == CANARY.as_bytes()));
    let count = damaged.map(|page| page.fill(0xa5)).count();
    assert!(count > 30, "only {count} pages were damaged");
    std::fs::write(database(directory), bytes).unwrap();
}

/// Polls `/readyz` until a field has this value, and returns the response.
fn wait_until_ready_says(server: &Server, what: &str, state: &str) -> Value {
    eventually_ok(state, || {
        let ready = server.get("/readyz").send().expect(200).json();
        if ready[what] == state { Ok(ready) } else { Err((ready, server.lines())) }
    })
}

/// Returns the detail of the damage alert if it fires.
fn damage_alert(server: &Server) -> Option<String> {
    let listed = server.command(&["alerts", "list"]).expect(0).json();
    let rule =
        listed["items"].as_array().unwrap().iter().find(|item| item["rule"] == "database_damaged").unwrap().clone();
    rule["detail"].as_str().map(ToOwned::to_owned)
}

#[test]
fn reports_damage_that_a_request_hits() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    let user = filled(&directory);
    damage(&directory);
    let setup = Setup::default().with("DATABASE_CHECK_EVERY", "0 s").with("BACKUP_EVERY", "0 s");
    let mut server = setup.with_metrics().on(&directory).in_own_process().start();
    let metrics = server.metrics();
    assert_eq!(wait_until_ready_says(&server, "database", "unchecked")["databaseCheckedAt"], Value::Null);
    let met = server.post("/divination-history/get").by(&user).send().expect_problem(503, "storage_failed");
    assert!(met.text().contains("is damaged"), "{}", met.text());
    delete_all(&server, &user).send().expect_problem(503, "storage_failed");
    wait_until_ready_says(&server, "database", "damaged");
    let page = Request::new("GET", &metrics).send().expect(200).text();
    assert!(page.contains("\nyarrow_database_sound 0\n"), "{page}");
    assert!(page.contains("\nyarrow_database_damage_met_total 2\n"), "{page}");
    let lines = server.lines();
    let errors = lines.iter().filter(|line| line.contains("ERROR") && line.contains("a request failed"));
    assert_eq!(errors.count(), 2, "{lines:#?}");
    server.wait_for_line("rule=\"database_damaged\"");
}

#[test]
fn does_not_call_pages_sound_that_were_overwritten_while_the_server_was_stopped() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    filled(&directory);
    let setup = || Setup::default().with("BACKUP_EVERY", "0 s").on(&directory);
    let mut server = setup().with_fast_jobs().start();
    wait_until_ready_says(&server, "database", "sound");
    assert_eq!(server.terminate(), Some(0));
    damage(&directory);
    let mut server = setup().start();
    let ready = server.get("/readyz").send().expect(200).json();
    assert_eq!(ready["database"], "unchecked", "{ready}");
    assert_eq!(server.terminate(), Some(0));
    let server = setup().with_fast_jobs().start();
    wait_until_ready_says(&server, "database", "damaged");
}

/// Starts a server on a filled directory. Returns it with its user and metrics URL.
fn watched(directory: &Path) -> (Server, Caller, String) {
    let user = filled(directory);
    // One worker, whose connection is open before the file is touched.
    let setup = Setup::default().with_fast_jobs().with("SERVER_WORKERS", 1).with("BACKUP_EVERY", "0 s");
    let mut server = setup.with_metrics().on(directory).in_own_process().start();
    let metrics = server.metrics();
    (server, user, metrics)
}

#[test]
fn reports_damage_even_if_nothing_can_be_read() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    let (mut server, _, metrics) = watched(&directory);
    let mut file = std::fs::OpenOptions::new().write(true).open(database(&directory)).unwrap();
    let length = usize::try_from(file.metadata().unwrap().len()).unwrap();
    file.seek(SeekFrom::Start(4096)).unwrap();
    file.write_all(&vec![0xa5; length - 4096]).unwrap();
    let line = server.wait_for_line("rule=\"database_damaged\"");
    assert!(line.contains("event=\"firing\""), "{line}");
    let page = Request::new("GET", &metrics).send().expect(200).text();
    assert!(page.contains("\nyarrow_database_sound 0\n") && page.contains("yarrow_writer_queue"), "{page}");
    server.get("/readyz").send().expect(503);
    // Once, not at every evaluation.
    sleep(Duration::from_secs(1));
    assert_eq!(server.lines().iter().filter(|line| line.contains("rule=\"database_damaged\"")).count(), 1);
}

#[test]
fn reports_a_removed_database_file() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    let (mut server, user, metrics) = watched(&directory);
    let save = |id: &str| {
        let record = json!({ "localRecordId": id, "aiResult": "kept" });
        server.post("/divination-history/save").by(&user).json(&record).send()
    };
    save("before").expect(200);
    std::fs::rename(database(&directory), directory.join("elsewhere.db")).unwrap();
    // The write would go to a file without a name.
    let refused = save("after").expect_problem(503, "storage_failed").text();
    assert!(refused.contains("deleted or replaced"), "{refused}");
    server.get("/readyz").send().expect_problem(503, "storage_failed");
    let page = Request::new("GET", &metrics).send().expect(200).text();
    assert!(page.contains("\nyarrow_database_sound 0\n"), "{page}");
    server.wait_for_line("rule=\"database_damaged\"");
}

#[test]
fn a_removed_wal_stops_writes_and_loses_nothing_acknowledged() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    let (mut server, user, _) = watched(&directory);
    let save = |server: &Server, id: &str| {
        let record = json!({ "localRecordId": id, "aiResult": "kept" });
        server.post("/divination-history/save").by(&user).json(&record).send()
    };
    save(&server, "before").expect(200);
    for end in ["-wal", "-shm"] {
        std::fs::remove_file(directory.join(format!("yarrow.db{end}"))).unwrap();
    }
    // Another process would create a separate WAL.
    let refused = save(&server, "after").expect_problem(503, "storage_failed").text();
    assert!(refused.contains("deleted or replaced"), "{refused}");
    server.get("/readyz").send().expect_problem(503, "storage_failed");
    server.wait_for_line("rule=\"database_damaged\"");
    // The last network log entries cannot be written.
    assert_eq!(server.terminate(), Some(1));
    let server = Setup::default().on(&directory).in_own_process().start();
    let stored = server.post("/divination-history/get").by(&user).send().expect(200).json();
    let is_kept = |id: &str| stored["items"].as_array().unwrap().iter().any(|item| item["localRecordId"] == id);
    assert_eq!((is_kept("before"), is_kept("after")), (true, false));
}

#[test]
fn the_integrity_check_reports_damage_with_the_backup_to_restore() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    filled(&directory);
    let created = CommandOutput::run(&directory, &["backup", "create"], "").expect(0).json();
    let name = created["name"].as_str().unwrap();
    damage(&directory);
    let setup = || {
        Setup::default().with_fast_jobs().with("DATABASE_CHECK_EVERY", "1 s").with("BACKUP_EVERY", "0 s").on(&directory)
    };
    let mut server = setup().in_own_process().start();
    assert!(wait_until_ready_says(&server, "database", "damaged")["databaseCheckedAt"].is_string());
    let message = eventually_some("an alert about damage", || damage_alert(&server));
    assert!(message.contains(&format!("`yarrow restore {name}`")) && message.contains("is damaged"), "{message}");
    let found = server.command(&["doctor"]).expect(5).json();
    assert!(found.to_string().contains(&format!("`yarrow restore {name}`")), "{found:#}");
    assert_eq!(server.terminate(), Some(0));
    CommandOutput::run(&directory, &["restore", name, "--yes"], "").expect(0);
    let server = setup().in_own_process().start();
    wait_until_ready_says(&server, "database", "sound");
    assert_eq!(damage_alert(&server), None);
}

#[test]
fn a_backup_reports_damage_and_keeps_the_good_ones() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    filled(&directory);
    let backups = || -> Vec<String> {
        let listed = CommandOutput::run(&directory, &["backup", "list"], "").expect(0).json();
        listed["items"].as_array().unwrap().iter().map(|backup| backup["name"].to_string()).collect()
    };
    for _ in 0..4 {
        CommandOutput::run(&directory, &["backup", "create"], "").expect(0);
    }
    let good = backups();
    damage(&directory);
    // By these settings the two oldest would be pruned.
    let setup = Setup::default().with_fast_jobs().with("BACKUP_KEEP_HOURLY", 1).with("BACKUP_KEEP_DAILY", 0);
    let server =
        setup.with("DATABASE_CHECK_EVERY", "0 s").with("BACKUP_EVERY", "1 s").on(&directory).in_own_process().start();
    assert_eq!(wait_until_ready_says(&server, "backups", "failed")["database"], "damaged");
    assert!(server.lines().iter().any(|line| line.contains("ERROR") && line.contains("the database is damaged")));
    let message = eventually_some("an alert about damage", || damage_alert(&server));
    assert!(message.contains(good[0].trim_matches('"')), "{message}");
    sleep(Duration::from_secs(3));
    assert_eq!(backups(), good);
}

#[test]
fn a_damaged_page_fails_only_its_readers() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    let user = filled(&directory);
    damage(&directory);
    let server = Setup::default().on(&directory).in_own_process().start();
    for _ in 0..3 {
        let failed = server.post("/divination-history/get").by(&user).send().expect_problem(503, "storage_failed");
        assert!(failed.header("retry-after").is_some());
        assert!(!failed.text().contains("malformed"), "{}", failed.text());
        server.get("/coin/balance").by(&user).send().expect(200);
        server.put("/user/nickname").by(&user).json(&json!({ "nickname": "青山" })).send().expect(200);
    }
    server.get("/healthz").send().expect(200);
    assert!(server.lines().iter().any(|line| line.contains("a request failed")), "{:#?}", server.lines());
    assert_eq!(server.get("/user/profile").by(&user).send().expect(200).json()["nickname"], "青山");
}

#[test]
fn a_write_to_a_damaged_page_fails_and_others_in_its_commit_succeed() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    let user = filled(&directory);
    damage(&directory);
    let server = Setup::default().on(&directory).in_own_process().start();
    let requests = (0..100).map(|number| match number % 2 {
        0 => delete_all(&server, &user),
        _ => server.put("/user/nickname").by(&user).json(&json!({ "nickname": format!("n-{number}") })),
    });
    let responses = crate::support::send_concurrently(requests.collect());
    for (number, response) in responses.iter().enumerate() {
        // If damage aborts the transaction, the others get a retryable error.
        let is_fine = if number % 2 == 0 { response.status == 503 } else { [200, 503].contains(&response.status) };
        assert!(is_fine, "{number}: {} {}", response.status, response.text());
    }
    server.put("/user/nickname").by(&user).json(&json!({ "nickname": "last" })).send().expect(200);
    assert_eq!(server.get("/user/profile").by(&user).send().expect(200).json()["nickname"], "last");
}

#[test]
fn a_damaged_wal_loses_only_the_commits_after_the_damage() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    let server = Setup::default().on(&directory).in_own_process().start();
    let user = server.sign_in("13800138000");
    for number in 0..40 {
        let record = json!({ "localRecordId": format!("r-{number}") });
        server.post("/divination-history/save").by(&user).json(&record).send().expect(200);
    }
    let _ = server.kill();
    let log = directory.join("yarrow.db-wal");
    let whole = std::fs::read(&log).unwrap();
    std::fs::write(&log, &whole[..whole.len() * 2 / 3]).unwrap();
    let server = Setup::default().on(&directory).in_own_process().start();
    let integrity: String = server.value("pragma integrity_check");
    assert_eq!(integrity, "ok");
    server.post("/divination-history/save").by(&user).json(&json!({ "localRecordId": "after" })).send().expect(200);
    let stored: Vec<i64> = {
        let database = server.database();
        let mut rows = database.prepare("select sequence from history order by sequence").unwrap();
        rows.query_map((), |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    assert!(stored.len() > 1 && stored.len() <= 41, "{stored:?}");
    assert_eq!(
        stored,
        (1..=i64::try_from(stored.len()).unwrap()).collect::<Vec<_>>(),
        "the stored text is not a beginning"
    );
    server.command(&["ledger", "verify"]).expect(0);
}

/// Runs the program as an unprivileged user, because permissions do not bind root.
fn as_unprivileged(directory: &Path, arguments: &[&str]) -> Output {
    let is_root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    let mut command = if is_root {
        // The program may be in a directory that only root can enter.
        let program = directory.parent().unwrap().join("yarrow");
        // By another process: while this one writes a program, children of other threads keep the file open, and it cannot
        // run.
        let copied = Command::new("cp").arg(Binary::command().get_program()).arg(&program).status().unwrap();
        assert!(copied.success());
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program);
        command
    } else {
        Binary::command()
    };
    command.args(arguments).arg("--data-dir").arg(directory).output().expect("this test needs `setpriv` of util-linux")
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_read_only_directory_is_reported() {
    let temp_dir = tempfile::tempdir().unwrap();
    set_mode(temp_dir.path(), 0o755);
    let directory = temp_dir.path().join("data");
    filled(&directory);
    for entry in std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_file() {
            set_mode(&entry, 0o444);
        }
    }
    set_mode(&directory, 0o555);
    let before = std::fs::read(database(&directory)).unwrap();
    let serve = ["serve", "--listen", "127.0.0.1:0"];
    for arguments in [&serve[..], &["coins", "balance", "13800138000"]] {
        let output = as_unprivileged(&directory, arguments);
        let message = assert_refused(&output, 6);
        assert!(
            message.contains("data directory") && message.to_lowercase().contains("permission"),
            "{arguments:?}: {message}"
        );
    }
    // An empty one too.
    let fresh = temp_dir.path().join("closed");
    std::fs::create_dir(&fresh).unwrap();
    set_mode(&fresh, 0o555);
    assert_refused(&as_unprivileged(&fresh, &serve), 6);
    assert!(std::fs::read_dir(&fresh).unwrap().next().is_none());
    assert!(std::fs::read(database(&directory)).unwrap() == before);
    set_mode(&directory, 0o755);
}

#[test]
fn needs_no_temporary_directory() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    let user = filled(&directory);
    let unreachable_url = |name: &str| format!("export {name}=/nonexistent");
    let prelude = format!("{} && {} && {}", unreachable_url("TMPDIR"), unreachable_url("SQLITE_TMPDIR"), "cd /");
    let server = Setup::default().on(&directory).after(&prelude).start();
    let listed = server.post("/divination-history/get").by(&user).send().expect(200).json();
    assert_eq!(listed["total"], 60);
    let key = server.api_key("tests");
    let suspects = server.get("/admin/network-logs/count/ip").token(&key).send().expect(200).json();
    assert!(suspects["items"].is_array());
    server.post("/coin/sync").token(&key).send().expect(200);
    let mut verify = Binary::command();
    verify.env("TMPDIR", "/nonexistent").env("SQLITE_TMPDIR", "/nonexistent").args(["ledger", "verify", "--data-dir"]);
    assert!(verify.arg(&directory).status().unwrap().success());
}

/// Needs `strace`.
#[test]
#[ignore = "needs strace; run with `cargo test --test it -- --ignored traced_`"]
fn traced_a_failing_sync_ends_the_server_before_it_acknowledges() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    let user = filled(&directory);
    // One of the process's syncs fails. Its position differs between runs.
    for failing in [3, 8, 15] {
        let inject = format!("inject=fdatasync,fsync:error=EIO:when={failing}+");
        let prelude =
            format!("exec strace -f -qq -o /dev/null -e trace=fdatasync,fsync -e '{inject}' \"$0\" \"$@\"; true");
        let mut server = Setup::default().on(&directory).after(&prelude).start();
        let mut acknowledged = Vec::new();
        for number in 0..40 {
            let id = format!("sync-{failing}-{number}");
            let record = json!({ "localRecordId": id });
            match server.post("/divination-history/save").by(&user).json(&record).try_send() {
                Ok(response) if response.status == 200 => acknowledged.push(id),
                _ => break,
            }
        }
        assert!(acknowledged.len() < 40, "no sync failed");
        assert_ne!(server.wait_for_end(), Some(0));
        drop(server);
        let server = Setup::default().on(&directory).in_own_process().start();
        let stored = Connection::open(database(&directory)).unwrap();
        for id in &acknowledged {
            let found = "select count(*) from history where local_record_id = ?1";
            assert_eq!(stored.query_row(found, [id], |row| row.get::<_, i64>(0)), Ok(1), "{id}");
        }
        assert_eq!(server.value::<String>("pragma integrity_check"), "ok");
    }
}

/// Needs `strace`.
#[test]
#[ignore = "needs strace; run with `cargo test --test it -- --ignored traced_`"]
fn traced_a_failing_write_is_rejected_and_later_ones_succeed() {
    // A failing disk, and a used-up quota.
    for error in ["EIO", "EDQUOT"] {
        rejects_failing_writes(error);
    }
}

fn rejects_failing_writes(error: &str) {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    let user = filled(&directory);
    let inject = format!("inject=pwrite64:error={error}:when=40..44");
    let prelude = format!("exec strace -f -qq -o /dev/null -e trace=pwrite64 -e '{inject}' \"$0\" \"$@\"; true");
    let mut server = Setup::default().on(&directory).after(&prelude).in_own_process().start();
    let statuses: Vec<_> = (0..60)
        .map(|number| {
            let record = json!({ "localRecordId": format!("write-{number}") });
            let response = server.post("/divination-history/save").by(&user).json(&record).send();
            if response.status == 503 {
                assert!(response.json()["detail"].as_str().unwrap().contains("quota"), "{}", response.text());
            }
            (number, response.status)
        })
        .collect();
    assert!(statuses.iter().any(|(_, status)| *status == 503), "no write failed: {statuses:?}");
    assert_eq!(statuses.last().unwrap().1, 200);
    for (number, status) in statuses {
        let found = format!("select count(*) from history where local_record_id = 'write-{number}'");
        assert_eq!(server.value::<i64>(&found), i64::from(status == 200), "{number} got status {status}");
    }
    assert_eq!(server.value::<String>("pragma integrity_check"), "ok");
    server.kill_traced();
}

/// Starts a server that must fail, and returns its standard error.
fn refusal(directory: &Path) -> String {
    let mut command = Binary::command();
    command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(directory);
    assert_refused(&command.output().unwrap(), 1)
}

#[test]
fn a_damaged_file_prevents_the_start_and_names_the_remedy() {
    let temp_dir = tempfile::tempdir().unwrap();
    let directory = temp_dir.path().join("data");
    filled(&directory);
    let path = database(&directory);
    let whole = std::fs::read(&path).unwrap();
    let cut = |length: usize| whole[..length].to_vec();
    let filled_with = |from: usize, to: usize| {
        let mut bytes = whole.clone();
        bytes[from..to].fill(0xa5);
        bytes
    };
    let damaged = [
        ("cut off in the middle", cut(whole.len() / 2)),
        ("cut off by a page", cut(whole.len() - 4096)),
        ("cut off within the first page", cut(1000)),
        ("emptied", Vec::new()),
        ("a header of something else", filled_with(0, 100)),
        ("a schema that cannot be read", filled_with(100, 4096)),
        ("a table that the start reads", filled_with(4096, 5 * 4096)),
    ];
    // There is no backup yet.
    std::fs::write(&path, &damaged[0].1).unwrap();
    let message = refusal(&directory);
    assert!(message.contains("There is no backup in") && message.contains("yarrow restore"), "{message}");
    std::fs::write(&path, &whole).unwrap();
    let created = CommandOutput::run(&directory, &["backup", "create"], "").expect(0).json();
    let name = created["name"].as_str().unwrap();
    for (what, bytes) in damaged {
        std::fs::write(&path, &bytes).unwrap();
        let message = refusal(&directory);
        let expected = [path.to_str().unwrap(), "is damaged", name, &format!("`yarrow restore {name}`")];
        assert!(expected.iter().all(|expected| message.contains(expected)), "{what}: {message}");
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "{what}: the file was changed");
        CommandOutput::run(&directory, &["restore", name, "--yes"], "").expect(0);
        let server = Setup::default().on(&directory).in_own_process().start();
        assert_eq!(server.value::<i64>("select count(*) from history"), 60, "{what}");
        drop(server);
    }
    std::fs::remove_file(&path).unwrap();
    let message = refusal(&directory);
    assert!(message.contains("is missing") && message.contains(&format!("`yarrow restore {name}`")), "{message}");
    assert!(!path.exists(), "a new key was created");
    CommandOutput::run(&directory, &["restore", name, "--yes"], "").expect(0);
    Setup::default().on(&directory).start();
}

#[test]
fn a_large_write_is_not_held_in_memory() {
    const RECORDS: usize = 600;
    // Texts of 96 KiB make the rewrite large.
    let fill = format!(
        "with recursive counter (n) as (select 1 union all select n + 1 from counter where n < {RECORDS}) \
         insert into history (user_id, sequence, local_record_id, json_data, ai_result, created_at, updated_at) \
         select (select max(id) from users), n, 'r-' || n, hex(randomblob(32768)), hex(randomblob(16384)), 1, 1 from counter"
    );
    let server = Setup::default().with("BACKUP_EVERY", "0 s").in_own_process().start();
    let (user, key) = (server.sign_in("13800138000"), server.api_key("operator"));
    // The first write of many pages also fills the cache of the writer.
    let little = 32 << 20;
    let taken = |what: &str, done: &dyn Fn(&Server)| {
        let taken = server.memory_taken(done);
        assert!(taken < little, "{what} took {} MiB", taken >> 20);
    };
    server.edit(&fill);
    taken("hiding all records", &|server| {
        let hidden = server.post("/divination-history/deactivate-all").by(&user).send().expect(200).json();
        assert_eq!(hidden, json!({ "deactivated": RECORDS }));
    });
    taken("deleting the account", &|server| {
        server.delete("/api/v1/account").by(&user).send().expect(204);
    });
    assert_eq!(server.value::<i64>("select count(*) from history"), 0);
    server.sign_in("13800138001");
    server.edit(&fill);
    taken("clearing everything", &|server| {
        let clear = || server.delete("/admin/data-cleanup/all").token(&key);
        let requested = clear().send().expect(428).json();
        clear().form(&[("confirm", requested["confirm"].as_str().unwrap())]).send().expect(200);
    });
    assert_eq!(server.value::<i64>("select count(*) from users"), 0);
}
