//! Overload and abuse: the service keeps its throughput and rejects the rest quickly. These need much time and memory.

use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::channel,
    },
    thread::{Builder, scope, sleep},
    time::{Duration, Instant},
};

use serde_json::json;

use crate::support::{
    Caller, Server, Setup, eventually,
    fake_provider::{FakeProvider, Reply},
};

/// A number of clients that saturates the service, and ten times as many.
const BUSY: usize = 48;
const TOO_MANY: usize = 10 * BUSY;

/// Raises the open file limit of this process.
fn allow_files(count: u32) {
    let own = std::process::id().to_string();
    let limit = format!("--nofile={count}:");
    let raised = std::process::Command::new("prlimit").args(["--pid", &own, &limit]).status();
    assert!(raised.expect("this test needs `prlimit` of util-linux").success());
}

/// Sends a raw request over a reused connection and returns the status.
fn exchange(stream: &mut TcpStream, request: &[u8]) -> Option<u16> {
    stream.write_all(request).ok()?;
    let mut head = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let length = stream.read(&mut buffer).ok().filter(|length| *length > 0)?;
        head.extend_from_slice(&buffer[..length]);
        let Some(end) = head.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let text = String::from_utf8_lossy(&head[..end]).to_lowercase();
        let status = text.split(' ').nth(1)?.parse().ok()?;
        let body: usize =
            text.split("content-length: ").nth(1).map_or(0, |rest| rest.lines().next().unwrap().parse().unwrap());
        while head.len() < end + 4 + body {
            let length = stream.read(&mut buffer).ok().filter(|length| *length > 0)?;
            head.extend_from_slice(&buffer[..length]);
        }
        return Some(status);
    }
}

/// The responses to the clients in a period.
#[derive(Debug, Default)]
struct Outcomes {
    done: AtomicU64,
    refused: AtomicU64,
    /// The total latency of rejections in microseconds.
    waited: AtomicU64,
    other: Mutex<Vec<u16>>,
}

/// Lets this many clients save new records as fast as possible. Returns saved records a second.
fn run_clients(server: &Server, user: &Caller, callers: usize, time: Duration) -> (f64, Outcomes) {
    let reported = run_clients_until(server, user, callers, || sleep(time));
    let rate = f64::from(u32::try_from(reported.done.load(Ordering::Relaxed)).unwrap()) / time.as_secs_f64();
    (rate, reported)
}

/// Runs clients until the end.
fn run_clients_until(server: &Server, user: &Caller, callers: usize, ended: impl FnOnce()) -> Outcomes {
    /// Continues across runs, because saving an existing record is different.
    static NUMBERS: AtomicU64 = AtomicU64::new(0);
    let (stop, reported) = (AtomicBool::new(false), Outcomes::default());
    scope(|scope| {
        for _ in 0..callers {
            let (stop, reported) = (&stop, &reported);
            let work = move || {
                while !stop.load(Ordering::Relaxed) {
                    let Ok(mut stream) = TcpStream::connect(server.address()) else { continue };
                    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
                    while !stop.load(Ordering::Relaxed) {
                        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
                        let body =
                            json!({ "localRecordId": format!("r-{number}"), "question": "何时启程？" }).to_string();
                        let request = format!(
                            "POST /divination-history/save HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
                             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                            user.token,
                            body.len()
                        );
                        let started_at = Instant::now();
                        match exchange(&mut stream, request.as_bytes()) {
                            Some(200) => drop(reported.done.fetch_add(1, Ordering::Relaxed)),
                            Some(503) => {
                                reported.refused.fetch_add(1, Ordering::Relaxed);
                                let waited = u64::try_from(started_at.elapsed().as_micros()).unwrap();
                                reported.waited.fetch_add(waited, Ordering::Relaxed);
                                // At least half of `Retry-After`: an impatient client.
                                sleep(Duration::from_millis(20));
                            }
                            Some(status) => reported.other.lock().unwrap().push(status),
                            None => break,
                        }
                    }
                }
            };
            Builder::new().stack_size(128 << 10).spawn_scoped(scope, work).unwrap();
        }
        ended();
        stop.store(true, Ordering::Relaxed);
    });
    reported
}

#[test]
#[ignore = "takes a minute; run with `cargo test --test it -- --ignored long_`"]
fn long_ten_times_the_load_keeps_the_throughput() {
    allow_files(8192);
    let setup = Setup::default().after("ulimit -n 8192").with("LIMITS_HISTORY_RECORDS", 100_000_000);
    let server = setup.in_own_process().start();
    let (user, key) = (server.sign_in("13800138000"), server.api_key("tests"));
    let slowest = Mutex::new(Duration::ZERO);
    let over = AtomicBool::new(false);
    let (peak, before, throughput, reported) = scope(|scope| {
        scope.spawn(|| {
            // Monitoring, administration and reads are served throughout.
            while !over.load(Ordering::Relaxed) {
                let started_at = Instant::now();
                server.get("/healthz").send().expect(200);
                server.get("/admin/sensitive-word-migration/status").token(&key).send().expect(200);
                server.get("/user/profile").by(&user).send().expect(200);
                let mut slowest = slowest.lock().unwrap();
                *slowest = (*slowest).max(started_at.elapsed());
                drop(slowest);
                sleep(Duration::from_millis(100));
            }
        });
        run_clients(&server, &user, BUSY, Duration::from_secs(3));
        let (peak, _) = run_clients(&server, &user, BUSY, Duration::from_secs(15));
        let before = server.memory();
        let (throughput, reported) = run_clients(&server, &user, TOO_MANY, Duration::from_secs(15));
        over.store(true, Ordering::Relaxed);
        (peak, before, throughput, reported)
    });
    let refused = reported.refused.load(Ordering::Relaxed);
    let grown = server.memory().saturating_sub(before) >> 10;
    println!(
        "{peak:.0} saves a second by {BUSY}, {throughput:.0} by {TOO_MANY}; {refused} refused, after {} µs each; three \
         calls of others took {:?} at most; {grown} KiB more memory",
        reported.waited.load(Ordering::Relaxed) / refused.max(1),
        slowest.lock().unwrap(),
    );
    assert!(throughput >= 0.8 * peak, "{throughput} of {peak}");
    assert!(reported.other.lock().unwrap().is_empty(), "{reported:?}");
    assert!(grown < 64 << 10, "{grown} KiB");
    assert!(*slowest.lock().unwrap() < Duration::from_secs(10));
    server.command(&["ledger", "verify"]).expect(0);
}

#[test]
#[ignore = "needs 10 000 connections; run with `cargo test --test it -- --ignored long_`"]
fn long_ten_thousand_idle_connections_leave_the_server_responsive() {
    allow_files(12_000);
    let setup = Setup::default().after("ulimit -n 12000").with("LIMITS_CONNECTIONS", 11_000);
    let server = setup.with("LIMITS_HEADER_TIMEOUT", "120 s").in_own_process().start();
    let user = server.sign_in("13800138000");
    let before = server.memory();
    let connections: Vec<_> = (0..10_000).map(|_| TcpStream::connect(server.address()).unwrap()).collect();
    let mut slowest = Duration::ZERO;
    for _ in 0..100 {
        let started_at = Instant::now();
        server.get("/user/profile").by(&user).send().expect(200);
        slowest = slowest.max(started_at.elapsed());
    }
    let grown = server.memory().saturating_sub(before) >> 10;
    println!("{} idle connections take {grown} KiB; the slowest of 100 reads took {slowest:?}", connections.len());
    assert!(slowest < Duration::from_secs(1), "{slowest:?}");
    assert!(grown < 200 << 10, "{grown} KiB");
    // The last connection works like any other.
    let mut last = connections.into_iter().last().unwrap();
    let health = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n";
    assert_eq!(exchange(&mut last, health), Some(200));
}

/// Requests codes as a client behind a trusted proxy and returns the status.
fn ask(server: &Server, number: &str, forwarded: &str) -> u16 {
    let request = server.post("/auth/send-code").form(&[("phoneNumber", number)]);
    request.header("x-forwarded-for", forwarded).send().status
}

fn limited() -> Setup {
    Setup::default().with("AUTH_SENDS_PER_CLIENT_HOUR", 20).with("AUTH_SENDS_PER_CLIENT_DAY", 100)
}

#[test]
fn enumerating_numbers_ends_at_the_network_limit() {
    let server = limited().start();
    let sent = |network: &str| (0..60).filter(|n| ask(&server, &format!("1390000{n:04}"), network) == 200).count();
    assert_eq!(sent("203.0.113.7"), 20);
    // Forwarded entries before the proxy's own hop are ignored.
    let spoofed = (0..40).map(|n| ask(&server, &format!("1390001{n:04}"), &format!("198.51.100.{n}, 203.0.113.7")));
    assert!(spoofed.into_iter().all(|status| status == 429));
    // A /64 is one client.
    let of_network = (0..60).map(|n| ask(&server, &format!("1390002{n:04}"), &format!("2001:db8:1:2::{n:x}")));
    assert_eq!(of_network.filter(|status| *status == 200).count(), 20);
    // Other networks are not affected.
    assert_eq!(ask(&server, "13800138000", "192.0.2.1"), 200);
}

#[test]
fn a_distributed_enumeration_ends_at_the_daily_budget_without_affecting_users() {
    let server = limited().with("AUTH_SENDS_PER_DAY", 200).in_own_process().start();
    let user = server.sign_in("13800138000");
    let statuses: Vec<_> =
        (0..260).map(|n| ask(&server, &format!("1390000{n:04}"), &format!("203.0.{}.{}", n / 10, n % 10))).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 199);
    assert!(statuses[199..].iter().all(|status| *status == 429), "{statuses:?}");
    server.get("/user/profile").by(&user).send().expect(200);
    let log = server.lines().join("\n");
    assert!(log.contains("half or all of the daily budget for verification codes is spent"), "{log}");
    // A number has its own limit across all clients.
    server.edit("delete from code_sends; delete from code_counts");
    let one = (0..50).filter(|n| ask(&server, "13700137000", &format!("198.51.100.{n}")) == 200).count();
    assert_eq!(one, 1);
}

/// Codes of the last minutes by this client, and what the limits count of them.
const BUSY_DAY: &str = "delete from code_counts; \
    with recursive n (i) as (select 1 union all select i + 1 from n where i < 50000) \
    insert into code_sends (address, client_network, sent_at) \
    select 'x' || i, '127.0.0.1', unixepoch() * 1000 - 20 * (50000 - i) from n; \
    insert into code_counts (event, subject, counted_at, total, events) \
    select 'sent', subject, sent_at, row_number() over (partition by subject order by sent_at), 1 from code_sends, \
    (select '' as subject union all select '127.0.0.1' union all select '127.0.0.0/24') as subjects \
    where length(address) < 7";

#[test]
fn a_sign_in_costs_the_same_after_many_others() {
    let server = Setup::default().with("AUTH_SENDS_PER_DAY", 1_000_000).in_own_process().start();
    let spent = |prefix: &str| {
        let before = server.processor_time();
        for number in 0..100 {
            server.sign_in(&format!("{prefix}{number:08}"));
        }
        server.processor_time() - before
    };
    spent("137");
    let alone = spent("138");
    server.edit(BUSY_DAY);
    let after_many = spent("139");
    assert!(after_many < 2 * alone, "{after_many:?} for 100 sign-ins, and {alone:?} before");
}

#[test]
fn two_clients_leave_permits_of_a_slow_provider_for_others() {
    let slow = Reply::json(r#"{"Code":"OK","BizId":"1"}"#).after(Duration::from_secs(1));
    let provider = FakeProvider::with_handler(move |_| slow.clone());
    let server = limited()
        .with("SMS_PROVIDER", "aliyun")
        .with("SMS_ENDPOINT", provider.url())
        .with("SMS_ACCESS_KEY_ID", "id")
        .with("SMS_ACCESS_KEY_SECRET", "secret")
        .with("SMS_SIGN_NAME", "Yarrow")
        .with("SMS_TEMPLATE_CODE", "SMS_1")
        .start();
    scope(|scope| {
        for number in 0..40 {
            let (server, client) = (&server, format!("203.0.113.{}", number % 2));
            scope.spawn(move || ask(server, &format!("1390000{number:04}"), &client));
        }
        eventually("the two clients hold their permits", || provider.requests().len() >= 8);
        let others = (0..60).map(|number| {
            let server = &server;
            scope.spawn(move || ask(server, &format!("1380000{number:04}"), &format!("198.51.100.{number}")))
        });
        let others: Vec<_> = others.collect();
        let statuses: Vec<_> = others.into_iter().map(|other| other.join().unwrap()).collect();
        assert!(statuses.iter().all(|status| *status == 200), "{statuses:?}");
    });
}

#[test]
fn a_flood_by_one_user_does_not_affect_others() {
    let server = Setup::default().with("LIMITS_HISTORY_RECORDS", 100_000_000).start();
    let (loud, quiet) = (server.sign_in("13800138000"), server.sign_in("13800138001"));
    let slowest = scope(|scope| {
        let (through, is_through) = channel::<()>();
        // It ends with its sender.
        let flood = scope.spawn(|| {
            run_clients_until(&server, &loud, 100, move || {
                let _ = is_through.recv();
            })
        });
        let mut slowest = Duration::ZERO;
        for _ in 0..20 {
            let started_at = Instant::now();
            server.get("/user/profile").by(&quiet).send().expect(200);
            let record = json!({ "localRecordId": "mine" });
            let saved = server.post("/divination-history/save").by(&quiet).json(&record).send();
            assert!([200, 503].contains(&saved.status), "{}", saved.text());
            slowest = slowest.max(started_at.elapsed());
        }
        drop(through);
        flood.join().unwrap();
        slowest
    });
    assert!(slowest < Duration::from_secs(6), "{slowest:?}");
}

/// Sends a long text with a listed word and returns the status.
fn say(server: &Server, user: &Caller) -> u16 {
    let message = format!("{}赌博{}", "卦".repeat(2_000), "象".repeat(2_000));
    let body = json!({ "messages": [{ "role": "user", "content": message }] });
    server.post("/llm/chat").by(user).json(&body).send().status
}

#[test]
fn rejections_count_towards_the_hourly_limit() {
    let server = Setup::default().with("LLM_CALLS_PER_USER_HOUR", 3).start();
    let (loud, quiet) = (server.sign_in("13800138000"), server.sign_in("13800138001"));
    let statuses: Vec<_> = (0..20).map(|_| say(&server, &loud)).collect();
    assert!(statuses[..3].iter().all(|status| *status == 422), "{statuses:?}");
    assert!(statuses[3..].iter().all(|status| *status == 429), "{statuses:?}");
    let stored: String = server.value("select count(*) || ' ' || max(length(masked_text)) from violations");
    assert_eq!(stored, "3 1002");
    assert_eq!(server.value::<i64>("select count(*) from violations where masked_text like '…卦%卦**象%象…'"), 3);
    // For every screened text.
    let question = json!({ "question": "问", "method": "three_coins" });
    for request in [
        server.post("/divination/enhanced").by(&loud).json(&question),
        server.post("/content-moderation/check-question").by(&loud).json(&question),
        server.post("/api/v1/sessions").by(&loud).json(&question),
        server.put("/user/nickname").by(&loud).form(&[("nickname", "青山")]),
    ] {
        let refused = request.send().expect_problem(429, "too_many_requests");
        let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
        assert!((3_000..=3_600).contains(&wait), "{wait}");
    }
    // Other input errors and other users do not count.
    server.put("/user/profile").by(&loud).form(&[("gender", "1")]).send().expect(200);
    assert_eq!(say(&server, &quiet), 422);
    server.put("/user/nickname").by(&quiet).form(&[("nickname", "青山")]).send().expect(200);
    // An hour later.
    server.edit("update violations set created_at = created_at - 3600000");
    assert_eq!(say(&server, &loud), 422);
}

#[test]
fn keeps_the_newest_violations_of_a_user() {
    let setup = Setup::default().with("LLM_CALLS_PER_USER_HOUR", 3).with("LIMITS_INTERPRETATION_RECORDS", 5);
    let server = setup.start();
    let (loud, quiet) = (server.sign_in("13800138000"), server.sign_in("13800138001"));
    assert_eq!(say(&server, &quiet), 422);
    for hour in 0..4 {
        server.edit("update violations set created_at = created_at - 3600000");
        for _ in 0..3 {
            assert_eq!(say(&server, &loud), 422, "{hour}");
        }
    }
    let stored = format!("select count(*) || ' ' || min(id) from violations where user_id = {}", loud.user_id);
    assert_eq!(server.value::<String>(&stored), "5 9");
    assert_eq!(server.value::<i64>("select count(*) from violations"), 6);
}
