//! The memory that strangers make the service hold, by bodies that never end and answers that nobody reads.

use std::{
    io::{Read, Write},
    net::Ipv4Addr,
    time::Duration,
};

use futures_util::future::join_all;
use h2::{
    SendStream,
    client::{Builder, ResponseFuture},
};
use http::StatusCode;
use hyper::body::Bytes;
use tokio::time::{sleep, timeout};

use super::{
    NAME,
    http2::{Connection, request, run},
    with,
};
use crate::support::{
    Server,
    tls::{self, PemPair},
};

const SIGN_IN: &str = "/admin/console/sign-in";
/// Time in which memory is given back, in seconds.
const PAUSE: u64 = 70;
const MIB: u64 = 1 << 20;

/// The part of an attack on each of its streams.
#[derive(Clone, Copy, Debug)]
enum Stream {
    /// A body of so many bytes that never ends.
    Body(&'static str, usize),
    /// A head of so many headers, with a body that never ends.
    Head(&'static str, usize),
    /// A body that never ends, in pieces of one byte.
    Pieces(&'static str, usize),
    /// An answer that is not read, with a window of so many bytes.
    Unread(&'static str, u32),
}

/// Connections of one stranger, with HTTP/2, and the streams on each.
struct Attack {
    name: &'static str,
    connections: usize,
    stream: Stream,
}

const ATTACKS: [Attack; 9] = [
    Attack { name: "bodies of a form", connections: 24, stream: Stream::Body(SIGN_IN, 250 << 10) },
    Attack { name: "short bodies", connections: 24, stream: Stream::Body("/version/check", 16_300) },
    Attack { name: "bodies without an endpoint", connections: 24, stream: Stream::Body("/nowhere", 250 << 10) },
    Attack { name: "many headers", connections: 24, stream: Stream::Head("/version/check", 600) },
    Attack { name: "repeated headers", connections: 256, stream: Stream::Head("/version/check", 90) },
    Attack { name: "pieces of one byte", connections: 24, stream: Stream::Pieces("/version/check", 2_000) },
    Attack { name: "an unread page", connections: 256, stream: Stream::Unread(SIGN_IN, 0) },
    Attack { name: "an unread page, window 1", connections: 256, stream: Stream::Unread(SIGN_IN, 1) },
    Attack { name: "an unread hexagram", connections: 256, stream: Stream::Unread("/api/v1/hexagrams/1", 0) },
];

/// Streams on each connection.
const STREAMS: usize = 100;

/// A stream that is kept open.
type Open = (ResponseFuture, SendStream<Bytes>);

impl Stream {
    async fn open(self, connection: &Connection) -> Option<Open> {
        let mut client = connection.client.clone().ready().await.ok()?;
        let mut open = |request, is_end| client.send_request(request, is_end).ok();
        let form = |path| {
            let mut request = request("POST", path);
            request.headers_mut().insert("content-type", "application/x-www-form-urlencoded".parse().unwrap());
            request
        };
        match self {
            Self::Body(path, length) => {
                let (response, mut body) = open(form(path), false)?;
                body.send_data(vec![b'a'; length].into(), false).ok()?;
                Some((response, body))
            }
            Self::Head(path, headers) => {
                let mut request = form(path);
                for number in 0..headers {
                    let name = http::HeaderName::try_from(format!("x{number}")).unwrap();
                    request.headers_mut().insert(name, "a".parse().unwrap());
                }
                open(request, false)
            }
            Self::Pieces(path, pieces) => {
                let (response, mut body) = open(form(path), false)?;
                for _ in 0..pieces {
                    body.send_data(Bytes::from_static(b"a"), false).ok()?;
                }
                Some((response, body))
            }
            Self::Unread(path, _) => open(request("GET", path), true),
        }
    }

    fn builder(self) -> Builder {
        let mut builder = Builder::new();
        if let Self::Unread(_, window) = self {
            builder.initial_window_size(window);
        }
        builder
    }
}

/// The memory before an attack, and the most during it.
struct Memory {
    before: u64,
    most: u64,
}

/// Runs an attack from these addresses, and meanwhile a client from another one that is always served.
async fn attack(server: &Server, pair: &PemPair, from: &[Ipv4Addr], attack: &Attack, connections: usize) -> Memory {
    let before = server.memory();
    let builder = attack.stream.builder();
    let mut opened = Vec::new();
    for number in 0..connections {
        opened.push(Connection::open_from(from[number % from.len()], server, pair, &builder).await);
    }
    let streams = opened.iter().map(|connection| async move {
        let mut open = Vec::new();
        while open.len() < STREAMS
            && let Ok(stream) = timeout(Duration::from_secs(2), attack.stream.open(connection)).await
        {
            open.push(stream);
        }
        open
    });
    let mut most = before;
    let mut sampled = async || {
        for _ in 0..200 {
            most = most.max(server.memory());
            sleep(Duration::from_millis(20)).await;
        }
        let mut other = Connection::open(server, pair, &Builder::new()).await;
        assert_eq!(other.get("/api/v1/hexagrams/1").await.0, StatusCode::OK, "{}", attack.name);
    };
    let held = tokio::join!(join_all(streams), sampled()).0;
    drop((held, opened));
    Memory { before, most }
}

const STRANGER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

#[test]
fn strangers_make_the_service_hold_little() {
    let pair = PemPair::new(NAME);
    for one in &ATTACKS {
        let server = with(&pair).with("LIMITS_ANONYMOUS_BYTES_PER_CLIENT", "2 MiB").in_own_process().start();
        let memory = run(attack(&server, &pair, &[STRANGER], one, 6));
        let grown = memory.most - memory.before;
        println!("{}: {} KiB", one.name, grown >> 10);
        assert!(grown < 12 * MIB, "{}: {grown}", one.name);
    }
}

#[test]
#[ignore = "long: twelve minutes"]
fn long_strangers_make_the_service_hold_little() {
    let pair = PemPair::new(NAME);
    let mut faults = Vec::new();
    for one in &ATTACKS {
        let server = with(&pair).in_own_process().start();
        let memory = run(attack(&server, &pair, &[STRANGER], one, one.connections));
        std::thread::sleep(Duration::from_secs(PAUSE));
        let (grown, left) = (memory.most - memory.before, server.memory().saturating_sub(memory.before));
        println!("{}: {} KiB, 70 s later {} KiB", one.name, grown >> 10, left >> 10);
        if grown > 70 * MIB || left > 50 * MIB {
            faults.push(one.name);
        }
        let from: Vec<_> = (0..64).map(|number| Ipv4Addr::new(127, 0, 1, number)).collect();
        let server = with(&pair).in_own_process().start();
        let memory = run(attack(&server, &pair, &from, one, 512));
        let grown = memory.most - memory.before;
        println!("{}, from many addresses: {} KiB", one.name, grown >> 10);
        if grown > 64 * MIB + 512 * (160 << 10) {
            faults.push(one.name);
        }
    }
    assert!(faults.is_empty(), "{faults:?}");
}

/// Forms over HTTP/1: one in chunks of one byte that never ends, and one of as many fields as bytes allow.
#[test]
fn forms_of_tiny_parts_take_no_more_than_others() {
    const CONNECTIONS: u64 = 16;
    let pair = PemPair::new(NAME);
    let server = with(&pair).in_own_process().start();
    let before = server.memory();
    let head =
        format!("POST {SIGN_IN} HTTP/1.1\r\nhost: {NAME}\r\ncontent-type: application/x-www-form-urlencoded\r\n");
    let chunks = format!("{head}transfer-encoding: chunked\r\n\r\n{}", "1\r\na\r\n".repeat(200_000));
    let fields = format!("{head}content-length: 260000\r\n\r\n{}", "a&".repeat(130_000));
    let (mut wires, mut most) = (Vec::new(), 0);
    for (text, is_whole) in [(&chunks, false), (&fields, true)] {
        for _ in 0..CONNECTIONS {
            let mut wire = tls::connect(server.address(), NAME, &pair.root()).unwrap();
            wire.write_all(text.as_bytes()).unwrap();
            most = most.max(server.memory());
            if is_whole {
                let mut answer = [0; 12];
                wire.read_exact(&mut answer).unwrap();
                assert_eq!(&answer, b"HTTP/1.1 400");
            }
            wires.push(wire);
        }
    }
    let grown = most.max(server.memory()) - before;
    assert!(grown < CONNECTIONS * (512 << 10) + 4 * MIB, "{grown}");
}
