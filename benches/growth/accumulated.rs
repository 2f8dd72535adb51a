//! Counts instructions of requests by what one user, one address and one day have accumulated.
//!
//! Two directories differ in these alone. Both are served under callgrind, so the counts do not depend on the machine or
//! its load. The writer works for jobs, too, so the least of several counts is used.

use std::{
    net::Ipv4Addr,
    path::Path,
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
        callgrind::Counter,
        process::{processor_seconds, yarrow_program},
        requests::{NUMBER, request},
    },
};

/// The growth that every request is allowed.
const ALLOWED: f64 = 1.15;
/// Requests of one count, and counts. Few requests, so that some counts contain no job.
const COUNTED: u16 = 10;
const COUNTS: usize = 12;
/// The time of the first verification of the ledger and of the first sweep.
const FIRST_JOBS: Duration = Duration::from_secs(32);
/// Processor time in a second without requests.
const QUIET: f64 = 0.5;
const QUIET_SECONDS: u32 = 5;

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
    let limits =
        ["AUTH_SENDS_PER_DAY", "AUTH_SENDS_PER_CLIENT_HOUR", "AUTH_SENDS_PER_CLIENT_DAY", "LIMITS_HISTORY_RECORDS"];
    let names = limits.map(|limit| format!("YARROW_{limit}"));
    let mut settings: Vec<_> = names.iter().map(|name| (name.as_str(), "1000000")).collect();
    settings.push(("YARROW_LIMITS_HISTORY_SIZE", "4 GiB"));
    let mut server = Counter::start(&yarrow_program(), directory, &directory.join("counts"), &settings)?;
    wait_until_quiet(server.server.id())?;
    let mut counted = Vec::new();
    for case in cases() {
        let least = least(&mut server, |server, number| server.send(&(case.request)(number)).map(drop))?;
        counted.push((case.name, case.holds_more, least));
    }
    let sign_in = |server: &mut Counter, number| server.sign_in(&format!("137{number:08}"), "");
    counted.push(("code and sign-in", false, least(&mut server, sign_in)?));
    Ok(counted)
}

/// Returns the instructions that each of [`COUNTED`] requests took, in the least of several counts.
fn least(server: &mut Counter, mut send: impl FnMut(&mut Counter, u32) -> Result<(), Failure>) -> Result<f64, Failure> {
    let mut numbers = 1..;
    let mut send_some =
        |server: &mut Counter| numbers.by_ref().take(COUNTED.into()).try_for_each(|number| send(server, number));
    send_some(server)?;
    (0..COUNTS).try_fold(f64::INFINITY, |least, _| {
        server.begin()?;
        send_some(server)?;
        let instructions = u32::try_from(server.end()?.instructions())?;
        Ok(least.min(f64::from(instructions) / f64::from(COUNTED)))
    })
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
