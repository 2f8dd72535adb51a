//! Counts instructions of requests by what one user, one address and one day have accumulated.
//!
//! Two directories differ in these alone. Both are served under callgrind, so the counts do not depend on the machine or
//! its load. They contain what the jobs do meanwhile, so the smaller of two counts is used.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rusqlite::Connection;
use yarrow::{
    app::App,
    domain::{
        money::ledger,
        operations::network_log::{self, Entry},
    },
    store::files::DATABASE,
    types::UserId,
};

use crate::{
    endpoints, fill,
    support::{
        Failure,
        process::{processor_seconds, yarrow, yarrow_program},
        requests::{NUMBER, request},
    },
};

/// The growth that every request is allowed.
const ALLOWED: f64 = 1.15;
/// Requests of one count, and counts. Few requests, so that some counts contain no job.
const COUNTED: u32 = 10;
const COUNTS: usize = 12;
/// The time of the first verification of the ledger and of the first sweep.
const FIRST_JOBS: Duration = Duration::from_secs(32);
/// Processor time in a second without requests.
const QUIET: f64 = 0.5;
const QUIET_SECONDS: u32 = 5;
/// Callgrind takes fifty times as long.
const PATIENCE: Duration = Duration::from_mins(5);

/// The rows of one user, and the codes of a day.
struct Amounts {
    castings: u32,
    ledger_entries: u32,
    sessions: u32,
    /// Up to the number that `notifications.per_user` keeps.
    notifications: u32,
    violations: u32,
    idempotency_keys: u32,
    /// Up to the number that `auth.tokens_per_user` allows.
    devices: u32,
    codes: u32,
    /// Users of the address of all requests.
    neighbours: u32,
}

const LITTLE: Amounts = Amounts {
    castings: 200,
    ledger_entries: 100,
    sessions: 100,
    notifications: 100,
    violations: 20,
    idempotency_keys: 20,
    devices: 1,
    codes: 60,
    neighbours: 10,
};
const MUCH: Amounts = Amounts {
    castings: 100_000,
    ledger_entries: 100_000,
    sessions: 10_000,
    notifications: 500,
    violations: 5_000,
    idempotency_keys: 10_000,
    devices: 9,
    codes: 50_000,
    neighbours: 10_000,
};

/// A request of the user who has accumulated, and whether its page holds more of what there is more of.
struct Case {
    name: &'static str,
    holds_more: bool,
    request: fn(u32) -> Vec<u8>,
}

fn cases() -> Vec<Case> {
    fn case(name: &'static str, request: fn(u32) -> Vec<u8>) -> Case {
        Case { name, holds_more: false, request }
    }
    fn of_user(method: &str, path: &str, body: &str) -> Vec<u8> {
        request(method, path, &format!("authorization: Bearer {}\r\n", fill::token(1)), body)
    }
    vec![
        case("profile", |_| of_user("GET", "/user/profile", "")),
        case("coin balance", |_| of_user("GET", "/coin/balance", "")),
        case("save a casting", |number| {
            let save = String::from_utf8_lossy(&endpoints::save(1)).replace(NUMBER, &format!("{number:012}"));
            save.into_bytes()
        }),
        case("castings, first page", |_| of_user("POST", "/divination-history/get", r#"{"page":1,"size":20}"#)),
        case("count of castings", |_| {
            of_user("GET", &format!("/divination-history/count/{}", fill::phone_number(1)), "")
        }),
        case("consume a coin", |_| of_user("POST", "/coin/consume", "")),
        case("consume a coin, with a key", |number| {
            let headers = format!("authorization: Bearer {}\r\nidempotency-key: k-{number}\r\n", fill::token(1));
            request("POST", "/coin/consume", &headers, "")
        }),
        case("points ledger", |_| of_user("GET", "/api/v1/points/ledger", "")),
        case("sessions", |_| of_user("GET", "/api/v1/sessions", "")),
        case("unread count", |_| of_user("GET", "/api/v1/notifications/unread-count", "")),
        case("inbox", |_| of_user("GET", "/api/v1/notifications", "")),
        Case { name: "devices", holds_more: true, request: |_| of_user("GET", "/api/v1/auth/tokens", "") },
        case("account", |_| of_user("GET", "/api/v1/account", "")),
    ]
}

/// Prints the table.
pub fn measure(directory: &Path) -> Result<(), Failure> {
    let mut counted = Vec::new();
    for (name, amounts) in [("little", LITTLE), ("much", MUCH)] {
        let directory = directory.join(name);
        fill(&directory, &amounts)?;
        counted.push(count_all(&directory)?);
    }
    println!("\nThousands of instructions a request, by what a user, an address and a day have accumulated.\n");
    println!("| request | little | much | ratio |\n|---|---|---|---|");
    let mut missed = Vec::new();
    for ((name, holds_more, little), (.., much)) in counted[0].iter().zip(&counted[1]) {
        let ratio = much / little;
        println!("| {name} | {:.0} | {:.0} | {ratio:.2} |", little / 1000.0, much / 1000.0);
        if ratio > ALLOWED && !holds_more {
            missed.push(*name);
        }
    }
    println!("\nabove {ALLOWED}: {missed:?}");
    Ok(())
}

fn count_all(directory: &Path) -> Result<Vec<(&'static str, bool, f64)>, Failure> {
    let mut server = CountedServer::start(directory)?;
    let mut counted = Vec::new();
    for case in cases() {
        let mut number = 0;
        let mut send = |server: &mut CountedServer, count| {
            (0..count).try_for_each(|_| {
                number += 1;
                server.send(&(case.request)(number)).map(drop)
            })
        };
        send(&mut server, COUNTED)?;
        counted.push((case.name, case.holds_more, server.least(|server| send(server, COUNTED))?));
    }
    let mut number = 0;
    let mut sign_in = |server: &mut CountedServer| {
        number += 1;
        server.sign_in(&format!("137{number:08}"))
    };
    sign_in(&mut server)?;
    let sign_ins = |server: &mut CountedServer| (0..COUNTED).try_for_each(|_| sign_in(server));
    counted.push(("code and sign-in", false, server.least(sign_ins)?));
    Ok(counted)
}

/// The service under callgrind.
struct CountedServer {
    process: Child,
    connection: TcpStream,
    /// Lines of the server's log.
    lines: Receiver<String>,
    counts: PathBuf,
    dumps: u32,
}

impl CountedServer {
    fn start(directory: &Path) -> Result<Self, Failure> {
        let counts = directory.join("counts");
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["--tool=callgrind", "--instr-atstart=no"]);
        valgrind.arg(format!("--callgrind-out-file={}", counts.display())).arg(yarrow_program());
        let mut command = yarrow(valgrind, directory);
        command
            .env("YARROW_SERVER_WORKERS", "1")
            .env("YARROW_BACKUP_EVERY", "0 s")
            .env("YARROW_DATABASE_CHECK_EVERY", "0 s");
        for limit in ["SENDS_PER_DAY", "SENDS_PER_CLIENT_HOUR", "SENDS_PER_CLIENT_DAY"] {
            command.env(format!("YARROW_AUTH_{limit}"), "1000000");
        }
        command.env("YARROW_LIMITS_HISTORY_RECORDS", "1000000").env("YARROW_LIMITS_HISTORY_SIZE", "4 GiB");
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let errors = BufReader::new(process.stderr.take().ok_or("a server without an error stream")?);
        let (sender, lines) = channel();
        std::thread::spawn(move || errors.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let address: SocketAddr = loop {
            let line = lines.recv_timeout(PATIENCE).map_err(|_| "the server did not start under callgrind")?;
            if let Some((_, address)) = line.rsplit_once("listening on http://") {
                break address.parse()?;
            }
        };
        wait_until_quiet(process.id())?;
        let connection = TcpStream::connect(address)?;
        connection.set_read_timeout(Some(PATIENCE))?;
        let server = Self { process, connection, lines, counts, dumps: 0 };
        server.control(&["--instr=on"])?;
        Ok(server)
    }

    fn control(&self, arguments: &[&str]) -> Result<(), Failure> {
        let mut command = Command::new("callgrind_control");
        command.args(arguments).arg(self.process.id().to_string()).stdout(Stdio::null()).stderr(Stdio::null());
        let status = command.status()?;
        if status.success() { Ok(()) } else { Err(format!("callgrind_control {arguments:?} failed").into()) }
    }

    /// Returns the least of several counts.
    fn least(&mut self, mut send: impl FnMut(&mut Self) -> Result<(), Failure>) -> Result<f64, Failure> {
        (0..COUNTS).try_fold(f64::INFINITY, |least, _| Ok(least.min(self.count(&mut send)?)))
    }

    /// Returns the instructions that each of [`COUNTED`] requests took.
    fn count(&mut self, send: impl FnOnce(&mut Self) -> Result<(), Failure>) -> Result<f64, Failure> {
        self.control(&["--zero"])?;
        send(self)?;
        self.control(&["--dump"])?;
        self.dumps += 1;
        let dump = std::fs::read_to_string(format!("{}.{}", self.counts.display(), self.dumps))?;
        let total = dump.lines().find_map(|line| line.strip_prefix("totals: ")).ok_or("a dump without a total")?;
        Ok(total.trim().parse::<f64>()? / f64::from(COUNTED))
    }

    /// Sends a request and returns the response's body.
    fn send(&mut self, request: &[u8]) -> Result<String, Failure> {
        self.connection.write_all(request)?;
        let (mut received, mut piece) = (Vec::new(), [0; 16 << 10]);
        loop {
            let length = self.connection.read(&mut piece)?;
            received.extend_from_slice(&piece[..length]);
            let text = String::from_utf8_lossy(&received);
            if length == 0 {
                return Err(format!("the connection ended: {text}").into());
            }
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            let content = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() < content.unwrap_or("0").trim().parse::<usize>()? {
                continue;
            }
            if !head.starts_with("HTTP/1.1 2") {
                return Err(format!("{}: {text}", String::from_utf8_lossy(request)).into());
            }
            return Ok(body.to_owned());
        }
    }

    fn sign_in(&mut self, phone_number: &str) -> Result<(), Failure> {
        self.send(&request("POST", "/auth/send-code", "", &format!(r#"{{"phoneNumber":"{phone_number}"}}"#)))?;
        let code = loop {
            let line = self.lines.recv_timeout(PATIENCE).map_err(|_| "a code was not sent")?;
            if let Some((to, text)) = line.split_once(": the verification code is ")
                && to.ends_with(phone_number)
            {
                break text.split(',').next().unwrap_or_default().to_owned();
            }
        };
        let body = format!(r#"{{"phoneNumber":"{phone_number}","code":"{code}"}}"#);
        self.send(&request("POST", "/auth/login", "", &body)).map(drop)
    }
}

/// Waits for the end of the jobs that follow a start.
fn wait_until_quiet(process: u32) -> Result<(), Failure> {
    std::thread::sleep(FIRST_JOBS);
    let mut quiet = 0;
    while quiet < QUIET_SECONDS {
        let before = processor_seconds(&process.to_string())?;
        std::thread::sleep(Duration::from_secs(1));
        let is_quiet = processor_seconds(&process.to_string())? - before < QUIET;
        quiet = if is_quiet { quiet + 1 } else { 0 };
    }
    Ok(())
}

impl Drop for CountedServer {
    fn drop(&mut self) {
        // It may have exited already.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

fn fill(directory: &Path, amounts: &Amounts) -> Result<(), Failure> {
    fill::close(fill::open(directory)?);
    let mut connection = Connection::open(directory.join(DATABASE))?;
    connection.execute_batch("pragma synchronous = off; pragma foreign_keys = off")?;
    let now = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?;
    let transaction = connection.transaction()?;
    fill::fill_users(&transaction, i64::from(amounts.neighbours), now)?;
    let add = |count: u32, insert: &str| {
        let numbers =
            format!("with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < {count})");
        transaction.execute_batch(&insert.replace("NUMBERS", &numbers).replace("NOW", &now.to_string()))
    };
    add(
        amounts.castings,
        "NUMBERS insert into history (user_id, sequence, local_record_id, question_type, question, json_data, bytes, \
         created_at, updated_at, change) select 1, n, 'r-' || n, 'career', 'a question', '{\"lines\":[7,8,8,8,7,6]}', 60, \
         NOW - n, NOW - n, n from numbers",
    )?;
    for asset in ["coin", "point"] {
        add(
            amounts.ledger_entries,
            &"NUMBERS insert into ledger_entries (user_id, asset, sequence, delta, balance_after, kind, created_at) \
             select 1, 'ASSET', n, 10, n * 10, 'topup', NOW - 1 from numbers; \
             insert into balances (user_id, asset, balance, last_sequence) select user_id, asset, max(sequence) * 10, \
             max(sequence) from ledger_entries where asset = 'ASSET' group by user_id, asset"
                .replace("ASSET", asset),
        )?;
    }
    add(
        amounts.sessions,
        "NUMBERS insert into sessions (id, user_id, sequence, question, method, lines, cast_at, time_zone, day_start, \
         points_spent, created_at, change) select 's-' || n, 1, n, 'question', 'three_coins', '777777', 1, 'UTC', '23:00', 0, \
         NOW - n, n from numbers",
    )?;
    add(
        amounts.notifications,
        "NUMBERS insert into notifications (id, kind, title, body, payload, created_at) \
         select n, 'activity', 'title', 'body', '{}', NOW - 1 from numbers; \
         insert into notification_recipients (user_id, notification_id, kind, is_read) \
         select 1, id, 'activity', id > 3 from notifications; \
         insert into notification_reads (user_id, notification_id, read_at) select 1, id, 1 from notifications where id > 3",
    )?;
    add(
        amounts.violations,
        "NUMBERS insert into violations (user_id, content_type, violation_type, words, masked_text, provider, created_at) \
         select 1, 'question', 'ads', '[]', 'text', 'local', NOW - 86400000 - n from numbers",
    )?;
    add(
        amounts.idempotency_keys,
        "NUMBERS insert into idempotency_keys (caller, route, key, request_sha256, status, body, created_at) \
         select 'user:1', 'POST /coin/consume', 'old-' || n, zeroblob(32), 200, zeroblob(200), NOW - 1 from numbers",
    )?;
    add(
        amounts.devices,
        "NUMBERS insert into tokens (token_sha256, user_id, expires_at, family, family_expires_at, created_at, label, \
         signed_in_at, last_used_at) select randomblob(32), 1, NOW + 86400000, randomblob(32), NOW + 86400000, NOW, '', NOW, \
         NOW from numbers",
    )?;
    // Codes of the day, of which a client, its network and everybody have a total.
    add(
        amounts.codes,
        "NUMBERS insert into code_sends (address, client_network, sent_at) select 'x' || n, '127.0.0.1', NOW - 20 * n \
         from numbers; \
         insert into code_counts (event, subject, counted_at, total, events) \
         select 'sent', subject, sent_at, row_number() over (partition by subject order by sent_at), 1 from code_sends, \
         (select '' as subject union all select '127.0.0.1' union all select '127.0.0.0/24') as subjects",
    )?;
    transaction.commit()?;
    drop(connection);
    let app = fill::open(directory)?;
    ledger::seals::seal_all(&app.core)?;
    fill_log(&app, amounts.neighbours)?;
    fill::close(app);
    Ok(())
}

/// Logs requests of all users of the address.
fn fill_log(app: &App, neighbours: u32) -> Result<(), Failure> {
    for user in 1..=neighbours {
        app.network_log.record(Entry {
            at: app.core.clock.now(),
            user: Some(UserId(user.into())),
            client: Ipv4Addr::LOCALHOST.into(),
            method: "GET",
            route: Some("/coin/balance"),
            status: 200,
            duration_us: 100,
            request_id: format!("{user:024x}").as_str().into(),
        });
    }
    Ok(network_log::flush(&app.network_log)?)
}
