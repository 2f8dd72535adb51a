//! Measures what many streams cost the service and its other clients: `cargo bench --bench streams`.
//!
//! A stub model sends a token every 20 ms to each of 200 conversations and writes the send time into each token;
//! listeners compute the delay. The same is measured without the service, so that the lateness of stub and listeners
//! can be subtracted; on a small machine that is most of it. Meanwhile a few clients read balances and sign in, as they
//! did before the streams began. Stub, listeners and clients are one process: quote differences and ratios.
//!
//! `cargo bench --bench streams -- inbox` opens ten thousand notification streams instead, and measures their memory and
//! processor time while nothing happens, and the time until a broadcast has reached all of them.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints its table")]

mod support;

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    process::{Command, ExitCode, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::{
    io::Interest,
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::MissedTickBehavior,
};
use yarrow::{
    app::{App, OpenMode},
    config::{Sources, load},
    domain::identity::{
        codes::{self, AddressHmac, ClientNetworks, NewCode, Purpose},
        tokens,
        users::{self, Address},
    },
    types::PhoneNumber,
};

use crate::support::{
    Failure,
    process::{Server, Usage, yarrow, yarrow_program},
};

const STREAMS: usize = 200;
const TOKEN_EVERY: Duration = Duration::from_millis(20);
const TOKENS: u32 = 400;
/// Tokens at the start that are not measured, because the streams do not begin together.
const WARM_UP: u32 = 100;
/// Clients that read balances and sign in, one request after the other.
const READERS: usize = 4;
const NEWCOMERS: usize = 4_000;
const CODE: &str = "246810";

/// Open notification streams.
const INBOX_STREAMS: usize = 10_000;
/// The time for which idle streams are watched.
const INBOX_IDLE: Duration = Duration::from_secs(20);

fn main() -> ExitCode {
    let outcome = if std::env::args().any(|argument| argument == "inbox") { measure_inbox() } else { measure() };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            println!("streams: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn measure() -> Result<(), Failure> {
    let directory = tempfile::tempdir()?;
    let data = directory.path().join("data");
    let tokens = seed(&data, STREAMS)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let stub = runtime.block_on(start_stub())?;
    let server = start_service(&data, stub)?;
    runtime.block_on(async {
        let direct = streams(stub, &std::iter::repeat_n(String::new(), STREAMS).collect::<Vec<_>>()).await?;
        let quiet = others(server.address(), &tokens, 0, Duration::from_secs(6)).await?;
        let idle = server.memory()?;
        let (through, busy, during) = tokio::join!(
            streams(server.address(), &tokens),
            async {
                tokio::time::sleep(Duration::from_secs(2)).await;
                others(server.address(), &tokens, NEWCOMERS / 2, Duration::from_secs(5)).await
            },
            async {
                tokio::time::sleep(Duration::from_secs(6)).await;
                server.memory()
            }
        );
        let (through, busy, during) = (through?, busy?, during?);
        println!("{STREAMS} streams, a token every {} ms, {} tokens measured", TOKEN_EVERY.as_millis(), through.len());
        let shown = |micros: u64| format!("{}.{:03} ms", micros / 1_000, micros % 1_000);
        for (name, part) in [("p50", 500), ("p90", 900), ("p99", 990), ("p99.9", 999)] {
            let (with, without) = (quantile(&through, part), quantile(&direct, part));
            let added = with.saturating_sub(without);
            println!(
                "delay of a token, {name}: {} through the service, {} without it, {} added",
                shown(with),
                shown(without),
                shown(added)
            );
        }
        let memory = during.saturating_sub(idle) / STREAMS as u64;
        println!(
            "anonymous memory: {} KiB idle, {} KiB during, {} KiB a stream",
            idle / 1024,
            during / 1024,
            memory / 1024
        );
        for (name, quiet, busy) in
            [("balance", &quiet.reads, &busy.reads), ("sign-in", &quiet.sign_ins, &busy.sign_ins)]
        {
            for (part_name, part) in [("p50", 500), ("p99", 990)] {
                let (before, after) = (quantile(quiet, part), quantile(busy, part));
                let ratio = after * 100 / before.max(1);
                println!(
                    "{name} {part_name}: {} quiet, {} beside the streams, {}.{:02} times",
                    shown(before),
                    shown(after),
                    ratio / 100,
                    ratio % 100
                );
            }
        }
        Ok(())
    })
}

fn measure_inbox() -> Result<(), Failure> {
    let needed = u64::try_from(INBOX_STREAMS)? + 256;
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })?;
    if limit.maximum.is_some_and(|maximum| maximum < needed) {
        return Err(format!("the system allows fewer than {needed} open files").into());
    }
    let directory = tempfile::tempdir()?;
    let data = directory.path().join("data");
    let tokens = seed(&data, INBOX_STREAMS)?;
    let mut command = yarrow(Command::new(yarrow_program()), &data);
    let connections = (INBOX_STREAMS + 256).to_string();
    command.env("YARROW_LIMITS_CONNECTIONS", &connections).env("YARROW_LIMITS_CONNECTIONS_PER_CLIENT", &connections);
    command.env("YARROW_BACKUP_EVERY", "0 s").env("YARROW_DATABASE_CHECK_EVERY", "0 s");
    let server = Server::spawn(command)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let before = server.memory()?;
        let begun = Instant::now();
        let mut open = Vec::with_capacity(INBOX_STREAMS);
        for token in &tokens {
            open.push(open_inbox(server.address(), token).await?);
        }
        let opened = begun.elapsed();
        let usage = Usage::now(&server)?;
        tokio::time::sleep(INBOX_IDLE).await;
        let used = usage.until(&Usage::now(&server)?);
        let memory = server.memory()?.saturating_sub(before);
        println!("{INBOX_STREAMS} notification streams, opened in {:.1} s", opened.as_secs_f64());
        println!("anonymous memory: {} MiB, {} bytes a stream", memory >> 20, memory / INBOX_STREAMS as u64);
        println!("processor time of the service while idle: {:.1} % of a core", 100.0 * used.server / used.seconds);
        let mut notify = Command::new(yarrow_program());
        notify.args(["notify", "send", "to all", "…", "--all", "--data-dir"]).arg(&data).stdout(Stdio::null());
        let sent = Instant::now();
        if !notify.status()?.success() {
            return Err("the notification could not be sent".into());
        }
        let mut waiting = JoinSet::new();
        for stream in open {
            waiting.spawn(async move {
                let mut received = Vec::new();
                while !received.windows(19).any(|window| window == b"event: notification") {
                    if receive(&stream, &mut received).await? == 0 {
                        return Err("a stream ended".into());
                    }
                }
                Ok::<_, Failure>(stream)
            });
        }
        for reached in waiting.join_all().await {
            drop(reached?);
        }
        println!("a broadcast reached all of them within {:.0} ms", sent.elapsed().as_secs_f64() * 1000.0);
        Ok(())
    })
}

/// Opens a notification stream and reads its first event.
async fn open_inbox(address: SocketAddr, token: &str) -> Result<TcpStream, Failure> {
    let stream = TcpStream::connect(address).await?;
    let head = format!(
        "GET /api/v1/notifications/stream HTTP/1.1\r\nhost: x\r\naccept: text/event-stream\r\n\
         authorization: Bearer {token}\r\n\r\n"
    );
    send(&stream, head.as_bytes()).await?;
    let mut received = Vec::new();
    while !received.windows(11).any(|window| window == b"event: open") {
        if receive(&stream, &mut received).await? == 0 {
            return Err(format!("a stream was refused: {}", String::from_utf8_lossy(&received)).into());
        }
    }
    Ok(stream)
}

fn quantile(sorted: &[u64], thousandth: usize) -> u64 {
    sorted.get((sorted.len() * thousandth / 1_000).min(sorted.len().saturating_sub(1))).copied().unwrap_or(0)
}

/// Creates signed-in users, and users with a live code.
fn seed(directory: &Path, users: usize) -> Result<Vec<String>, Failure> {
    let flags = [("data_dir".to_owned(), directory.to_string_lossy().into_owned())].into();
    let config = load(Sources { flags, ..Sources::default() })?.config;
    let app = App::open(config, OpenMode::Server, &(Arc::new(|_: &str| {}) as _))?;
    let (limits, keys) = (app.core.config.auth.clone(), app.core.keys.clone());
    let made = app.core.store.write(move |tx| {
        for address in newcomers() {
            let hmac = codes::compute_hmac(&keys, &address, Purpose::SignIn, CODE);
            let (recipient, lifetime) = (AddressHmac::new(&keys, &address), Duration::from_hours(1));
            let client = ClientNetworks::of(Ipv4Addr::LOCALHOST.into());
            codes::store_in(tx, &limits, &NewCode { recipient, client, purpose: Purpose::SignIn, hmac, lifetime })?;
        }
        (0..users)
            .map(|number| {
                let phone_number = PhoneNumber::from_canonical(&format!("138{number:08}"));
                let (user, _) = users::find_or_create_in(tx, &Address::Phone(phone_number))?;
                Ok(tokens::issue_in(tx, &limits, &user, "")?.token.reveal().to_owned())
            })
            .collect()
    });
    let tokens = made.wait()?;
    app.core.store.close();
    Ok(tokens)
}

fn newcomers() -> impl Iterator<Item = String> {
    (0..NEWCOMERS).map(|number| format!("139{number:08}"))
}

// The stub model.

async fn start_stub() -> Result<SocketAddr, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(tell(stream));
        }
    });
    Ok(address)
}

/// Returns microseconds since the first call in this process.
fn now() -> u64 {
    static ORIGIN: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    u64::try_from(ORIGIN.get_or_init(Instant::now).elapsed().as_micros()).unwrap_or(u64::MAX)
}

async fn tell(stream: TcpStream) -> Result<(), Failure> {
    stream.set_nodelay(true)?;
    let mut request = Vec::new();
    while !ends_request(&request) {
        if receive(&stream, &mut request).await? == 0 {
            return Ok(());
        }
    }
    send(&stream, b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n").await?;
    let mut ticks = tokio::time::interval(TOKEN_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for number in 0..TOKENS {
        ticks.tick().await;
        let event = format!(
            "data: {{\"id\":\"c\",\"model\":\"m\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"@{number}:{}@\"}}}}]}}\n\n",
            now()
        );
        send(&stream, event.as_bytes()).await?;
    }
    let end = "data: {\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    send(&stream, end.as_bytes()).await
}

fn ends_request(bytes: &[u8]) -> bool {
    let Some(head) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { return false };
    let text = String::from_utf8_lossy(&bytes[..head]).to_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse::<usize>().ok());
    bytes.len() >= head + 4 + length.unwrap_or(0)
}

// The listeners.

/// Opens a stream per token and returns the sorted delays of all tokens.
async fn streams(address: SocketAddr, tokens: &[String]) -> Result<Vec<u64>, Failure> {
    let mut listeners = JoinSet::new();
    for (number, token) in tokens.iter().enumerate() {
        let token = token.clone();
        listeners.spawn(async move {
            // Spread over one interval, so that the streams' tokens do not arrive at the same moment.
            tokio::time::sleep(TOKEN_EVERY * u32::try_from(number % 100).unwrap_or(0) / 10).await;
            listen(address, &token).await
        });
    }
    let mut delays = Vec::new();
    for listened in listeners.join_all().await {
        delays.extend(listened?);
    }
    delays.sort_unstable();
    Ok(delays)
}

async fn listen(address: SocketAddr, token: &str) -> Result<Vec<u64>, Failure> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let body = r#"{"messages":[{"role":"user","content":"x"}],"stream":true}"#;
    let request = format!(
        "POST /llm/chat HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    send(&stream, request.as_bytes()).await?;
    let (mut delays, mut seen, mut received) = (Vec::with_capacity(TOKENS as usize), 0, Vec::new());
    while seen < TOKENS {
        if receive(&stream, &mut received).await? == 0 {
            return Err(format!("a stream ended early: {}", String::from_utf8_lossy(&received)).into());
        }
        let at = now();
        while let Some(begin) = received.iter().position(|byte| *byte == b'@') {
            let Some(length) = received[begin + 1..].iter().position(|byte| *byte == b'@') else { break };
            let mark = String::from_utf8_lossy(&received[begin + 1..begin + 1 + length]).into_owned();
            let (number, sent) = mark.split_once(':').ok_or("an unreadable token")?;
            let (number, sent): (u32, u64) = (number.parse()?, sent.parse()?);
            if number >= WARM_UP {
                delays.push(at.saturating_sub(sent));
            }
            seen += 1;
            received.drain(..begin + length + 2);
        }
    }
    Ok(delays)
}

// The other clients.

struct Others {
    reads: Vec<u64>,
    sign_ins: Vec<u64>,
}

/// Reads balances and signs in for `time`, with a pause after each request.
async fn others(address: SocketAddr, tokens: &[String], first: usize, time: Duration) -> Result<Others, Failure> {
    let end = Instant::now() + time;
    let mut readers = JoinSet::new();
    for token in tokens.iter().take(READERS) {
        let head = format!("GET /coin/balance HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n");
        readers.spawn(talk(address, std::iter::repeat(head), end));
    }
    let mut arriving = JoinSet::new();
    for lane in 0..2 {
        let requests = newcomers().skip(first + lane).step_by(2).take(NEWCOMERS / 4).map(|phone_number| {
            let body = format!("phoneNumber={phone_number}&code={CODE}");
            format!(
                "POST /auth/login HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-www-form-urlencoded\r\n\
                 content-length: {}\r\n\r\n{body}",
                body.len()
            )
        });
        let requests: Vec<_> = requests.collect();
        arriving.spawn(talk(address, requests.into_iter(), end));
    }
    Ok(Others { reads: sorted(readers).await?, sign_ins: sorted(arriving).await? })
}

async fn sorted(mut talks: JoinSet<Result<Vec<u64>, Failure>>) -> Result<Vec<u64>, Failure> {
    let mut all = Vec::new();
    while let Some(talk) = talks.join_next().await {
        all.extend(talk??);
    }
    all.sort_unstable();
    Ok(all)
}

async fn talk(
    address: SocketAddr,
    requests: impl Iterator<Item = String> + Send,
    end: Instant,
) -> Result<Vec<u64>, Failure> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let mut latencies = Vec::new();
    for request in requests {
        if Instant::now() >= end {
            break;
        }
        let (sent, mut answer) = (now(), Vec::new());
        send(&stream, request.as_bytes()).await?;
        while !ends_request(&answer) {
            if receive(&stream, &mut answer).await? == 0 {
                return Err("a connection was closed".into());
            }
        }
        if !answer.starts_with(b"HTTP/1.1 200") {
            return Err(String::from_utf8_lossy(&answer).into_owned().into());
        }
        latencies.push(now() - sent);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(latencies)
}

async fn send(stream: &TcpStream, mut bytes: &[u8]) -> Result<(), Failure> {
    while !bytes.is_empty() {
        stream.ready(Interest::WRITABLE).await?;
        match stream.try_write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

async fn receive(stream: &TcpStream, received: &mut Vec<u8>) -> Result<usize, Failure> {
    let mut buffer = [0; 4096];
    loop {
        stream.ready(Interest::READABLE).await?;
        match stream.try_read(&mut buffer) {
            Ok(count) => {
                received.extend_from_slice(&buffer[..count]);
                return Ok(count);
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn start_service(data: &Path, stub: SocketAddr) -> Result<Server, Failure> {
    let mut command = yarrow(Command::new(yarrow_program()), data);
    command.env("YARROW_LLM_PROVIDER", "openai").env("YARROW_LLM_MODEL", "m");
    command.env("YARROW_LLM_BASE_URL", format!("http://{stub}/v1")).env("YARROW_LLM_CALLS", STREAMS.to_string());
    command.env("YARROW_LIMITS_CONNECTIONS_PER_CLIENT", "1000");
    Server::spawn(command)
}
