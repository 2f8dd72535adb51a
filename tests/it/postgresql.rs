//! Several copies of the service on one PostgreSQL database, and connections to it that break. `tests/postgresql/run`
//! starts the server and runs these tests.

mod round_trips;

use std::{
    collections::BTreeSet,
    io::{Read, Write},
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use serde_json::json;
use tempfile::TempDir;

use crate::portable_sql::translated;
use crate::support::{
    FakeModel, ModelBehaviour, Request, Server, Setup, eventually,
    model_requests::{ask, chat},
    postgresql, send_concurrently,
};

const PHONE: &str = "13800138000";
/// The time for which a killed copy stays the leader, and some more for a busy machine.
const TAKE_OVER: std::time::Duration = std::time::Duration::from_secs(40);

/// A new database for several copies.
struct SharedDatabase {
    name: String,
    socket: PathBuf,
    user: String,
}

impl SharedDatabase {
    fn create() -> Self {
        let server = postgresql().expect("this test needs PostgreSQL; tests/postgresql/run starts it");
        let part = |name: &str| {
            let parts = server.split(' ').filter_map(|part| part.split_once('='));
            parts.filter(|(found, _)| *found == name).map(|(_, value)| value.to_owned()).next().unwrap()
        };
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let name = format!("copies_{}_{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let shared = Self { name, socket: part("host").into(), user: part("user") };
        shared
            .client("postgres")
            .batch_execute(&format!("create database {} template template0", shared.name))
            .unwrap();
        shared
    }

    fn client(&self, database: &str) -> postgres::Client {
        let address = format!("host={} user={} dbname={database}", self.socket.display(), self.user);
        postgres::Client::connect(&address, postgres::NoTls).unwrap()
    }

    /// Returns the address of the database through a socket in this directory.
    fn url_at(&self, socket: &Path) -> String {
        format!("postgres:///{}?host={}&user={}", self.name, socket.display(), self.user)
    }

    fn setup(&self) -> Setup {
        self.used_by(Setup::default())
    }

    fn used_by(&self, setup: Setup) -> Setup {
        setup.with("DATABASE_URL", self.url_at(&self.socket)).with("AUTH_SECRET_KEY", "0".repeat(64))
    }

    fn count(&self, sql: &str) -> i64 {
        self.client(&self.name).query_one(sql, &[]).unwrap().get(0)
    }

    /// Panics unless the ledger of the database is sound.
    fn assert_ledger_is_sound(&self, server: &Server) {
        let url = self.url_at(&self.socket);
        let settings = [("YARROW_DATABASE_URL", url.as_str()), ("YARROW_AUTH_SECRET_KEY", &"0".repeat(64))];
        server.command_with(&settings, &["ledger", "verify"]).expect(0);
    }
}

/// Sends a request to the same path on another copy.
fn on(server: &Server, method: &str, path: &str, token: &str) -> Request {
    server.request(method, path).token(token)
}

#[test]
#[ignore = "needs PostgreSQL; tests/postgresql/run starts it"]
fn copies_share_sign_ins_balances_and_revocations() {
    let database = SharedDatabase::create();
    let copies = [database.setup(), database.setup(), database.setup()].map(Setup::start);
    let user = copies[0].sign_in(PHONE);
    let balance = format!("/coin/balance?userId={}", user.user_id);
    for copy in &copies {
        on(copy, "GET", &balance, &user.token).send().expect(200);
    }
    // 100 uses over all copies spend what there is, once.
    let key = copies[0].command_with(
        &[("YARROW_DATABASE_URL", &database.url_at(&database.socket)), ("YARROW_AUTH_SECRET_KEY", &"0".repeat(64))],
        &["admin", "key", "create", "tests"],
    );
    let key = key.expect(0).json()["key"].as_str().unwrap().to_owned();
    let grant = json!({ "phoneNumber": PHONE, "coinCount": 60 });
    copies[1].post("/coin/increase/phone").token(&key).json(&grant).send().expect(200);
    let before = on(&copies[2], "GET", &balance, &user.token).send().expect(200).json();
    let consume = |number: usize| on(&copies[number % 3], "POST", "/coin/consume", &user.token);
    let responses = send_concurrently((0..100).map(consume).collect());
    let used = responses.iter().filter(|response| response.status == 200).count();
    let refused = responses.iter().filter(|response| response.status == 402).count();
    assert_eq!(used + refused, 100, "{:?}", responses.iter().map(|response| response.status).collect::<Vec<_>>());
    let left = on(&copies[0], "GET", &balance, &user.token).send().expect(200).json();
    let coins = |body: &serde_json::Value| body["balance"].as_u64().unwrap();
    assert_eq!(coins(&before) - coins(&left), used as u64);
    database.assert_ledger_is_sound(&copies[1]);
    // A sign-out on one copy holds there at once, and on the others soon.
    copies[0].post("/api/v1/auth/logout").token(&user.token).send().expect(200);
    on(&copies[0], "GET", &balance, &user.token).send().expect(401);
    std::thread::sleep(std::time::Duration::from_millis(50));
    for copy in &copies {
        on(copy, "GET", &balance, &user.token).send().expect(401);
    }
}

#[test]
#[ignore = "needs PostgreSQL; tests/postgresql/run starts it"]
fn a_purge_of_everything_signs_users_out_and_empties_the_logs_of_all_copies() {
    let database = SharedDatabase::create();
    let copies = [database.setup(), database.setup()].map(Setup::start);
    let user = copies[0].sign_in(PHONE);
    for copy in copies.iter().chain(&copies) {
        on(copy, "GET", "/coin/balance", &user.token).send().expect(200);
    }
    let logged = |copy: &Server| {
        let sql = "select count(*) from access_log where user_id is not null";
        copy.network_log().query_row(sql, (), |row| row.get::<_, i64>(0)).unwrap()
    };
    eventually("the requests are in both logs", || copies.iter().all(|copy| logged(copy) >= 2));
    let url = database.url_at(&database.socket);
    let settings = [("YARROW_DATABASE_URL", url.as_str()), ("YARROW_AUTH_SECRET_KEY", &"0".repeat(64))];
    copies[0].command_with(&settings, &["cleanup", "all", "--yes"]).expect(0);
    std::thread::sleep(std::time::Duration::from_millis(50));
    for copy in &copies {
        on(copy, "GET", "/coin/balance", &user.token).send().expect(401);
    }
    eventually("both logs are empty", || copies.iter().all(|copy| logged(copy) == 0));
}

#[test]
#[ignore = "needs PostgreSQL; tests/postgresql/run starts it"]
fn writes_use_indexes_although_the_tables_were_empty_when_they_were_planned() {
    let database = SharedDatabase::create();
    let server = database.setup().with("COINS_INITIAL", 1000).start();
    let user = server.sign_in(PHONE);
    let consume = |number: usize| {
        on(&server, "POST", "/coin/consume", &user.token).header("Idempotency-Key", &format!("use-{number}"))
    };
    // The server knows that a page has all rows, and chooses to read it.
    database.client(&database.name).batch_execute("vacuum analyze").unwrap();
    for number in 0..50 {
        consume(number).send().expect(200);
    }
    // A connection reports its statistics with the first transaction after a second.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    consume(50).send().expect(200);
    for table in ["balances", "idempotency_keys", "users"] {
        let count = |kind: &str| {
            let sql = format!("select {kind}_scan from pg_stat_user_tables where relname = '{table}'");
            database.count(&sql)
        };
        eventually("the statistics arrive", || count("seq") + count("idx") >= 50);
        let (of_table, of_index) = (count("seq"), count("idx"));
        assert!(of_table < of_index, "{table}: {of_table} scans of the table, {of_index} of an index");
    }
}

#[test]
#[ignore = "needs PostgreSQL; tests/postgresql/run starts it"]
fn a_statement_that_fails_late_fails_its_commit_and_nothing_else() {
    let database = SharedDatabase::create();
    let server = database.setup().with("COINS_INITIAL", 1000).start();
    let users: Vec<_> = (0..8).map(|number| server.sign_in(&format!("1380013800{number}"))).collect();
    let mut client = database.client(&database.name);
    let refused =
        format!("alter table balances add constraint tested check (user_id <> {}) not valid", users[0].user_id);
    client.batch_execute(&refused).unwrap();
    let consume = |number: usize| on(&server, "POST", "/coin/consume", &users[number % 8].token);
    let responses = send_concurrently((0..200).map(consume).collect());
    let mut answered = 0;
    for (number, response) in responses.iter().enumerate() {
        match response.status {
            200 if number % 8 != 0 => answered += 1,
            // Others fail with it if they share a commit.
            500 => {}
            other => panic!("{number}: {other}"),
        }
    }
    assert_eq!(database.count("select count(*) from ledger_entries where kind = 'consume'"), answered);
    // The next commits are not affected.
    for number in 1..8 {
        consume(number).send().expect(200);
    }
    consume(0).send().expect(500);
    client.batch_execute("alter table balances drop constraint tested").unwrap();
    consume(0).send().expect(200);
    database.assert_ledger_is_sound(&server);
}

#[test]
#[ignore = "needs PostgreSQL; tests/postgresql/run starts it"]
fn one_copy_leads_and_another_follows_when_it_is_killed() {
    let database = SharedDatabase::create();
    let mut first = database.setup().with_metrics().in_own_process().start();
    let second = database.setup().in_own_process().start();
    let metrics = first.metrics();
    eventually("the first copy has seen the second", || {
        let page = Request::new("GET", &metrics).send().expect(200).text();
        let leads = page.contains("\nyarrow_copies 2\n") && page.contains("\nyarrow_leader 1\n");
        leads && page.contains("\nyarrow_database_connections{state=\"idle\"} ")
    });
    let leaders = "select count(distinct leader) from store_state where leader_until > \
                   extract(epoch from clock_timestamp()) * 1000";
    assert_eq!(database.count(leaders), 1);
    assert_eq!(database.count("select count(*) from store_copies where is_server = 1"), 2);
    let leader = || -> String {
        database.client(&database.name).query_one("select coalesce(leader, '') from store_state", &[]).unwrap().get(0)
    };
    let before = leader();
    drop(first.kill());
    let begun = std::time::Instant::now();
    while leader() == before {
        assert!(begun.elapsed() < TAKE_OVER, "no other copy took over");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    second.sign_in(PHONE);
    // A copy that stops gives up the lead at once.
    let mut second = second;
    assert_eq!(second.terminate(), Some(0));
    assert_eq!(leader(), "");
    assert_eq!(
        database.count(
            "select count(*) from store_copies where is_server = 1 and seen_at > \
        (extract(epoch from clock_timestamp()) - 2) * 1000"
        ),
        0
    );
}

#[test]
#[ignore = "needs PostgreSQL; tests/postgresql/run starts it"]
fn the_model_calls_of_a_killed_copy_are_closed_and_no_others() {
    let database = SharedDatabase::create();
    let model = FakeModel::start(ModelBehaviour::Silent);
    let setup = || {
        let timeouts = ["LLM_FIRST_BYTE_TIMEOUT", "LLM_IDLE_TIMEOUT", "LLM_TOTAL_TIMEOUT"];
        let patient = timeouts.iter().fold(model.setup(), |setup, timeout| setup.with(timeout, "10 min"));
        database.used_by(patient.with("LLM_TOKENS_PER_DAY", 1_000_000))
    };
    let (first, second) = (setup().in_own_process().start(), setup().in_own_process().start());
    let user = first.sign_in(PHONE);
    for request in [ask(&first, &user), chat(&first, &user), chat(&second, &user)] {
        std::thread::spawn(move || request.try_send());
    }
    model.wait_for_calls(3);
    let sums = |column: &str| {
        database.count(&format!("select cast({column} as bigint) from model_spending where user_id = 0"))
    };
    let reserved = sums("reserved_tokens");
    drop(first.kill());
    let interrupted = "select (select count(*) from interpretations where status = 'interrupted') + \
                       (select count(*) from chats where status = 'interrupted')";
    let begun = std::time::Instant::now();
    while database.count(interrupted) < 2 {
        assert!(begun.elapsed() < 2 * TAKE_OVER, "the calls of the killed copy are still open");
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    assert_eq!(sums("tokens + reserved_tokens"), reserved);
    assert!(sums("tokens") > sums("reserved_tokens"), "what two calls reserved is charged, one call still runs");
    assert_eq!(database.count("select count(*) from chats where status = 'running'"), 1);
    assert_eq!(database.count("select count(*) from running_calls"), 1);
    drop(second);
}

#[test]
#[ignore = "needs PostgreSQL; tests/postgresql/run starts it"]
fn each_copy_counts_active_users_and_erases_deleted_ones() {
    let database = SharedDatabase::create();
    let setup = || database.setup().with_fast_jobs();
    let (first, second) = (setup().in_own_process().start(), setup().in_own_process().start());
    let users = [first.sign_in(PHONE), first.sign_in("13800138001"), first.sign_in("13800138002")];
    let logged = |log: &rusqlite::Connection| {
        let sql = format!("select count(*) from access_log where user_id = {}", users[0].user_id);
        log.query_row(&sql, [], |row| row.get::<_, i64>(0)).unwrap()
    };
    // The first user calls both copies, each of the others one.
    for (copy, user) in [(&first, 0), (&second, 0), (&second, 1), (&first, 2)] {
        on(copy, "GET", "/coin/balance", &users[user].token).send().expect(200);
    }
    let active = "select cast(coalesce(sum(value), 0) as bigint) from figures where name = 'active_users' \
                  and key = 'day'";
    eventually("users of both copies are counted once", || database.count(active) == 3);
    let directory = second.kill();
    let log = || rusqlite::Connection::open(directory.join("network-log.db")).unwrap();
    assert!(logged(&log()) > 0);
    // The user is deleted while the second copy does not run, and the first has long finished.
    on(&first, "DELETE", "/api/v1/account", &users[0].token).send().expect(204);
    let age = "with aged as (update access_log_erasures set requested_at = requested_at - 3600000 returning 1) \
               select count(*) from aged";
    assert_eq!(database.count(age), 1);
    eventually("the log of the first copy is erased", || logged(&first.network_log()) == 0);
    std::thread::sleep(std::time::Duration::from_secs(3));
    let _second = setup().on(&directory).in_own_process().start();
    eventually("the log of the second copy is erased", || logged(&log()) == 0);
}

#[test]
#[ignore = "needs PostgreSQL; tests/postgresql/run starts it"]
fn a_copy_with_another_key_refuses_to_start() {
    let database = SharedDatabase::create();
    let _first = database.setup().start();
    let directory = tempfile::tempdir().unwrap();
    let mut other = crate::support::Binary::command();
    other.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(directory.path().join("data"));
    other.env("YARROW_DATABASE_URL", database.url_at(&database.socket)).env("YARROW_AUTH_SECRET_KEY", "1".repeat(64));
    let output = other.output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
#[ignore = "needs PostgreSQL; tests/postgresql/run starts it"]
fn a_server_that_cannot_be_used_says_why() {
    let database = SharedDatabase::create();
    let mut admin = database.client("postgres");
    let name = |suffix: &str| format!("{}_{suffix}", database.name);
    for sql in [
        format!("create database {} template template0 encoding 'LATIN1' locale 'C'", name("latin")),
        format!("create database {} template template0", name("rights")),
        format!("create database {} template template0", name("foreign")),
        format!("create database {} template template0", name("readonly")),
        format!("alter database {} set default_transaction_read_only = on", name("readonly")),
        format!("create role {} login", name("guest")),
    ] {
        admin.batch_execute(&sql).unwrap();
    }
    database.client(&name("foreign")).batch_execute("create table users (id integer)").unwrap();
    let address = |database_name: &str, user: &str| {
        format!("postgres:///{database_name}?host={}&user={user}", database.socket.display())
    };
    let owner = database.user.as_str();
    for (url, exit_code, expected) in [
        (address("absent", owner), 1, ["The database does not exist", "\"absent\" does not exist (SQLSTATE 3D000)"]),
        (address("postgres", "absent"), 1, ["refuses the sign-in", "\"absent\" does not exist (SQLSTATE 28000)"]),
        (
            address(&name("rights"), &name("guest")),
            1,
            ["lacks a right", "permission denied for schema public (SQLSTATE 42501)"],
        ),
        (address(&name("latin"), owner), 3, ["has the encoding LATIN1", "'UTF8'"]),
        (address(&name("readonly"), owner), 1, ["The database is read-only", "transaction_read_only is on"]),
        (address(&name("foreign"), owner), 6, ["a table `users` of another program", "a database of its own"]),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let mut command = crate::support::Binary::command();
        command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(directory.path().join("data"));
        let output = command.env("YARROW_DATABASE_URL", &url).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(exit_code), "{url}: {printed}");
        assert!(expected.iter().all(|part| printed.contains(part)), "{url}: {printed}");
    }
}

#[test]
#[ignore = "needs PostgreSQL; tests/postgresql/run starts it"]
fn commands_that_look_create_no_schema() {
    let database = SharedDatabase::create();
    for arguments in [&["users", "list"][..], &["health"], &["ledger", "verify"], &["words", "list"]] {
        let directory = tempfile::tempdir().unwrap();
        let mut command = crate::support::Binary::command();
        command.args(arguments).arg("--data-dir").arg(directory.path().join("data"));
        let output = command.env("YARROW_DATABASE_URL", database.url_at(&database.socket)).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{arguments:?}: {printed}");
        assert!(printed.contains("There is no installation in the database"), "{printed}");
        assert!(!directory.path().join("data/secret.key").exists());
    }
    assert_eq!(database.count("select count(*) from pg_tables where schemaname = 'public'"), 0);
}

#[test]
#[ignore = "needs PostgreSQL; tests/postgresql/run starts it"]
fn connections_to_a_read_only_server_are_not_kept() {
    let database = SharedDatabase::create();
    let server = database.setup().start();
    let user = server.sign_in(PHONE);
    let mut admin = database.client("postgres");
    let mut cut_after = |value: &str| {
        admin
            .batch_execute(&format!("alter database {} set default_transaction_read_only = {value}", database.name))
            .unwrap();
        let cut = format!("select pg_terminate_backend(pid) from pg_stat_activity where datname = '{}'", database.name);
        admin.batch_execute(&cut).unwrap();
    };
    cut_after("on");
    eventually("reads fail, too", || server.get("/coin/balance").by(&user).send().status == 503);
    server
        .put("/user/nickname")
        .by(&user)
        .json(&json!({ "nickname": "甲" }))
        .send()
        .expect_problem(503, "storage_failed");
    cut_after("off");
    eventually("changes succeed", || {
        server.put("/user/nickname").by(&user).json(&json!({ "nickname": "乙" })).send().status == 200
    });
    for _ in 0..20 {
        let profile = server.get("/user/profile").by(&user).send().expect(200).json();
        assert_eq!(profile["nickname"], "乙");
    }
}

#[test]
#[ignore = "needs PostgreSQL; tests/postgresql/run starts it"]
fn the_name_of_a_copy_survives_a_restart_and_differs_by_machine() {
    let database = SharedDatabase::create();
    let copies = || {
        let rows = database.client(&database.name).query("select copy from store_copies where is_server = 1", &[]);
        rows.unwrap().iter().map(|row| row.get::<_, String>(0)).collect::<Vec<_>>()
    };
    let server = database.setup().start();
    let first = copies();
    let directory = server.kill();
    let server = database.setup().on(&directory).start();
    assert_eq!(copies(), first);
    server.kill();
    // Another machine of the same template, with the same host name and path.
    std::fs::remove_file(directory.join("machine.id")).unwrap();
    let _other = database.setup().on(&directory).start();
    assert_eq!(copies().len(), 2);
}

#[test]
#[ignore = "needs PostgreSQL; tests/postgresql/run starts it"]
fn operations_on_files_are_refused() {
    let database = SharedDatabase::create();
    let server = database.setup().start();
    let url = database.url_at(&database.socket);
    let settings = [("YARROW_DATABASE_URL", url.as_str()), ("YARROW_AUTH_SECRET_KEY", &"0".repeat(64))];
    let refused = server.command_with(&settings, &["restore", "--latest", "--yes"]);
    assert_eq!(refused.expect(1).problem()["code"], "unsupported_by_database");
    server.command_with(&settings, &["ledger", "verify"]).expect(0);
}

/// A proxy in front of the server's socket. Once armed, it cuts the connection of the next commit: it passes the
/// commit on, or drops it, and no answer returns.
struct Proxy {
    directory: TempDir,
    state: Arc<ProxyState>,
}

#[derive(Default)]
struct ProxyState {
    is_armed: AtomicBool,
    /// Commits that pass before the one that is cut.
    passes: AtomicUsize,
    drops_commit: AtomicBool,
    cuts: AtomicUsize,
}

impl Proxy {
    fn before(socket: &Path) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join(".s.PGSQL.5432")).unwrap();
        let (state, to) = (Arc::<ProxyState>::default(), socket.join(".s.PGSQL.5432"));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let (server, state) = (UnixStream::connect(&to).unwrap(), Arc::clone(&shared));
                let (mut answers, mut back) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut answers, &mut back);
                    let _ = back.shutdown(std::net::Shutdown::Both);
                });
                std::thread::spawn(move || pass_requests(client, server, &state));
            }
        });
        Self { directory, state }
    }
}

/// Passes requests of one connection on until it ends or is cut.
fn pass_requests(mut client: UnixStream, mut server: UnixStream, state: &ProxyState) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = client.read(&mut buffer) {
        let request = &buffer[..count];
        let is_commit = request.windows(7).any(|part| part == b"commit\0");
        let has_passed = |left: usize| left.checked_sub(1);
        let is_next = is_commit
            && state.is_armed.load(Ordering::SeqCst)
            && state.passes.fetch_update(Ordering::SeqCst, Ordering::SeqCst, has_passed).is_err();
        if is_next && state.is_armed.swap(false, Ordering::SeqCst) {
            state.cuts.fetch_add(1, Ordering::SeqCst);
            let _ = client.shutdown(std::net::Shutdown::Both);
            if !state.drops_commit.load(Ordering::SeqCst) {
                let _ = server.write_all(request);
            }
            let _ = server.shutdown(std::net::Shutdown::Write);
            return;
        }
        if server.write_all(request).is_err() {
            break;
        }
    }
    let _ = server.shutdown(std::net::Shutdown::Both);
}

#[test]
#[ignore = "needs PostgreSQL; tests/postgresql/run starts it"]
fn a_connection_lost_at_commit_reports_the_outcome_two_hundred_times() {
    const CUTS: usize = 200;
    let database = SharedDatabase::create();
    let proxy = Proxy::before(&database.socket);
    let server = database
        .setup()
        .with("DATABASE_URL", database.url_at(proxy.directory.path()))
        .with("COINS_INITIAL", 100_000)
        .start();
    let user = server.sign_in(PHONE);
    let spent = || database.count("select count(*) from ledger_entries where asset = 'coin' and delta < 0");
    let mut expected = 0;
    for number in 0..CUTS {
        // Half of the commits reach the server, and half are lost on the way.
        let is_dropped = number % 2 == 1;
        proxy.state.drops_commit.store(is_dropped, Ordering::SeqCst);
        let before = proxy.state.cuts.load(Ordering::SeqCst);
        proxy.state.is_armed.store(true, Ordering::SeqCst);
        let key = format!("cut-{number}");
        let consume = || server.post("/coin/consume").by(&user).header("idempotency-key", &key).send();
        let mut response = consume();
        eventually("the connection is cut", || proxy.state.cuts.load(Ordering::SeqCst) > before);
        for _ in 0..20 {
            if response.status == 200 {
                break;
            }
            // Never a claim that nothing happened while it did, or the reverse: the repetition settles it.
            assert_eq!(response.status, 503, "{}", response.text());
            std::thread::sleep(std::time::Duration::from_millis(100));
            response = consume();
        }
        assert_eq!(response.status, 200, "{}", response.text());
        expected += 1;
        assert_eq!(spent(), expected, "after cut {number}");
    }
    assert!(proxy.state.cuts.load(Ordering::SeqCst) >= CUTS);
    database.assert_ledger_is_sound(&server);
}

#[test]
#[ignore = "needs PostgreSQL; tests/postgresql/run starts it"]
fn a_set_whose_commit_is_cut_counts_once() {
    const CUTS: usize = 12;
    const TOGETHER: usize = 32;
    let database = SharedDatabase::create();
    let proxy = Proxy::before(&database.socket);
    let mut server = database
        .setup()
        .with("DATABASE_URL", database.url_at(proxy.directory.path()))
        .with("COINS_INITIAL", 100_000)
        .with_metrics()
        .start();
    let metrics = server.metrics();
    let users: Vec<_> = (0..8).map(|number| server.sign_in(&format!("1380013800{number}"))).collect();
    let mut holder = database.client(&database.name);
    for cut in 0..CUTS {
        let requests = || -> Vec<_> {
            let consume = |number: usize| {
                let key = format!("cut-{cut}-{number}");
                on(&server, "POST", "/coin/consume", &users[number % 8].token).header("idempotency-key", &key)
            };
            (0..TOGETHER).map(consume).collect()
        };
        proxy.state.drops_commit.store(cut % 2 == 1, Ordering::SeqCst);
        let before = proxy.state.cuts.load(Ordering::SeqCst);
        let answers = std::thread::scope(|scope| {
            let mut lock = holder.transaction().unwrap();
            lock.execute("select 1 from store_state for update", &[]).unwrap();
            let waiting = |count| eventually("the writes wait", || Server::waiting_changes(&metrics) >= count);
            // The first commit passes, and those that wait behind it share the next one.
            proxy.state.passes.store(1, Ordering::SeqCst);
            let first = scope.spawn(|| on(&server, "POST", "/coin/consume", &users[0].token).send());
            waiting(1);
            let all = scope.spawn(|| send_concurrently(requests()));
            waiting(1 + TOGETHER as u64);
            proxy.state.is_armed.store(true, Ordering::SeqCst);
            lock.rollback().unwrap();
            first.join().unwrap().expect(200);
            all.join().unwrap()
        });
        assert!(proxy.state.cuts.load(Ordering::SeqCst) > before, "the commit was cut");
        // All of a set have one outcome.
        let status = answers[0].status;
        assert!([200, 503].contains(&status) && answers.iter().all(|answer| answer.status == status));
        for (request, answer) in requests().into_iter().zip(&answers) {
            let repeated = request.send().expect(200);
            if status == 200 {
                assert_eq!((repeated.header("idempotency-replayed"), repeated.text()), (Some("true"), answer.text()));
            }
        }
    }
    let consumed = database.count("select count(*) from ledger_entries where kind = 'consume'");
    assert_eq!(consumed, i64::try_from(CUTS * (TOGETHER + 1)).unwrap());
    database.assert_ledger_is_sound(&server);
}

#[test]
#[ignore = "needs PostgreSQL; tests/postgresql/run starts it"]
fn a_key_sent_to_three_copies_at_once_counts_once() {
    const KEYS: usize = 100;
    let database = SharedDatabase::create();
    let copies = [(); 3].map(|()| database.setup().with("COINS_INITIAL", 100_000).start());
    let users: Vec<_> = (0..5).map(|number| copies[0].sign_in(&format!("1380013800{number}"))).collect();
    for round in 0..KEYS / 20 {
        // Each of 20 keys three times, and saves of the same records beside them.
        let consume = |number: usize| {
            let key = format!("key-{round}-{}", number / 3);
            let token = &users[number / 3 % 5].token;
            on(&copies[number % 3], "POST", "/coin/consume", token).header("idempotency-key", &key)
        };
        let save = |number: usize| {
            let body = json!({ "localRecordId": format!("r-{round}-{}", number / 3), "question": "q" });
            on(&copies[number % 3], "POST", "/divination-history/save", &users[number % 5].token).json(&body)
        };
        let answers = send_concurrently((0..60).map(consume).chain((0..60).map(save)).collect());
        for same in answers[..60].chunks(3) {
            let texts: BTreeSet<_> = same.iter().map(|answer| (answer.status, answer.text())).collect();
            assert_eq!(texts.len(), 1, "{texts:?}");
            assert_eq!(same[0].status, 200);
        }
        assert!(answers[60..].iter().all(|answer| answer.status == 200));
    }
    let consumed = database.count("select count(*) from ledger_entries where kind = 'consume'");
    assert_eq!(consumed, i64::try_from(KEYS).unwrap());
    for sql in [
        "select count(*) from (select 1 from idempotency_keys group by caller, route, key having count(*) > 1) as twice",
        "select count(*) from (select 1 from history group by user_id, sequence having count(*) > 1) as twice",
        "select count(*) from (select 1 from history group by user_id, change having count(*) > 1) as twice",
    ] {
        assert_eq!(database.count(sql), 0, "{sql}");
    }
    database.assert_ledger_is_sound(&copies[0]);
}

#[test]
#[ignore = "needs PostgreSQL; tests/postgresql/run starts it"]
fn killed_copies_lose_no_answered_change() {
    const KILLS: usize = 6;
    const CLIENTS: usize = 8;
    let database = SharedDatabase::create();
    let survivor = database.setup().with("COINS_INITIAL", 100_000).in_own_process().start();
    let user = survivor.sign_in(PHONE);
    let mut answered = 0;
    for round in 0..KILLS {
        let copy = database.setup().in_own_process().start();
        let address = copy.address();
        let token = user.token.clone();
        let stop = Arc::new(AtomicBool::new(false));
        // Several clients, so that sets of uses are cut.
        let consuming = (0..CLIENTS).map(|client| {
            let (stop, token) = (Arc::clone(&stop), token.clone());
            std::thread::spawn(move || {
                let (mut kept, mut number) = (Vec::new(), 0);
                while !stop.load(Ordering::SeqCst) {
                    let key = format!("kill-{round}-{client}-{number}");
                    let request = Request::new("POST", &format!("http://{address}/coin/consume"));
                    let sent = request.token(&token).header("idempotency-key", &key).try_send();
                    let Ok(response) = sent else { return (kept, Some(key)) };
                    if response.status == 200 {
                        kept.push(key);
                    }
                    number += 1;
                }
                (kept, None)
            })
        });
        let consuming: Vec<_> = consuming.collect();
        std::thread::sleep(std::time::Duration::from_millis(300));
        drop(copy.kill());
        stop.store(true, Ordering::SeqCst);
        let ended = consuming.into_iter().map(|client| client.join().unwrap());
        let (kept, unanswered): (Vec<_>, Vec<_>) = ended.unzip();
        let (kept, unanswered) = (kept.concat(), unanswered.into_iter().flatten());
        // Each repetition on the other copy is a replay, and the unanswered one takes effect once.
        for key in kept.iter().cloned().chain(unanswered) {
            let repeated = survivor.post("/coin/consume").by(&user).header("idempotency-key", &key).send().expect(200);
            if kept.contains(&key) {
                assert_eq!(repeated.header("idempotency-replayed"), Some("true"), "{key} was answered and is lost");
            }
            answered += 1;
        }
    }
    assert_eq!(database.count("select count(*) from ledger_entries where asset = 'coin' and delta < 0"), answered);
    database.assert_ledger_is_sound(&survivor);
}

/// Returns the statements that make tables and indexes, without comments and line breaks.
fn tables_and_indexes(schema: &str) -> BTreeSet<String> {
    let code: Vec<_> = schema.lines().map(|line| line.split("--").next().unwrap_or_default()).collect();
    let statements = code.join("\n");
    let statements =
        statements.split(";\n").map(|statement| statement.split_whitespace().collect::<Vec<_>>().join(" "));
    let is_made = |statement: &String| {
        ["create table ", "create index ", "create unique index "].iter().any(|start| statement.starts_with(start))
    };
    statements.filter(is_made).map(|statement| statement.trim_end_matches(';').to_owned()).collect()
}

#[test]
fn both_engines_have_the_same_tables_and_indexes() {
    let read = |name| std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap();
    // These numbers have no gaps, so triggers assign them.
    let identity = "bigint generated by default as identity primary key";
    let numbered = [("seq", "ledger_entries"), ("version", "word_changes")];
    let of_file = tables_and_indexes(&translated(&read("schema.sql"))).into_iter().map(|statement| {
        let found = numbered.iter().find(|(_, table)| statement.starts_with(&format!("create table {table} ")));
        match found {
            Some((column, _)) => {
                statement.replace(&format!("{column} {identity}"), &format!("{column} bigint primary key"))
            }
            None => statement,
        }
    });
    let of_file: BTreeSet<_> = of_file.collect();
    let of_server = tables_and_indexes(&read("schema.postgres.sql"));
    let of_server: BTreeSet<_> = of_server
        .into_iter()
        .filter(|statement| {
            !["store_state", "store_copies"].iter().any(|own| statement.starts_with(&format!("create table {own} ")))
        })
        .collect();
    let missing: Vec<_> = of_file.difference(&of_server).collect();
    let unknown: Vec<_> = of_server.difference(&of_file).collect();
    assert!(missing.is_empty() && unknown.is_empty(), "schema.postgres.sql lacks {missing:#?} and has {unknown:#?}");
    assert!(of_file.len() > 150, "{}", of_file.len());
}

/// The numbers of tests that the suite leaves out with the service on PostgreSQL, and with several copies.
const LEFT_OUT: [(&str, usize); 2] = [("files-only", 200), ("one-copy", 52)];

/// The runs of the suite skip tests by lists. A test that is skipped in passing would be noticed here.
#[test]
fn the_tests_that_are_left_out_are_counted() {
    let listed = |arguments: &[&str]| -> BTreeSet<String> {
        let mut tests = std::process::Command::new(std::env::current_exe().unwrap());
        let output = tests.args(["--list", "--format", "terse"]).args(arguments).output().unwrap();
        let output = String::from_utf8(output.stdout).unwrap();
        output.lines().filter_map(|line| line.strip_suffix(": test")).map(ToOwned::to_owned).collect()
    };
    let ignored = listed(&["--ignored"]);
    let tests: BTreeSet<_> = listed(&[]).difference(&ignored).cloned().collect();
    for (list, expected) in LEFT_OUT {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/postgresql").join(list);
        let text = std::fs::read_to_string(path).unwrap();
        let mut left_out = BTreeSet::new();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (start, reason) = line.split_once("  ").unwrap_or_else(|| panic!("{list}: {line:?} gives no reason"));
            assert!(reason.len() > 10, "{list}: {line}");
            // The test program skips every test whose name contains the text.
            let skipped: Vec<_> = tests.iter().filter(|test| test.contains(start)).collect();
            let other = skipped.iter().find(|test| !test.starts_with(start));
            assert!(!skipped.is_empty() && other.is_none(), "{list}: {start} skips {other:?}");
            left_out.extend(skipped);
        }
        assert_eq!(left_out.len(), expected, "{list}");
    }
}
