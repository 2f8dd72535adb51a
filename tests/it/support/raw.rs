//! Requests that no well-behaved client would send, byte by byte.

use std::{
    io::{BufRead, BufReader, ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use ureq::http::{HeaderMap, HeaderName, HeaderValue};

use super::{
    client::{Answer, Request},
    server::Server,
    waiting::eventually,
};

pub const HEALTH: &str = "GET /healthz HTTP/1.1\r\nhost: yarrow\r\n\r\n";

/// A connection on which a test speaks HTTP by hand.
pub struct Wire(pub TcpStream);

impl Wire {
    pub fn to(server: &Server) -> Self {
        let stream = TcpStream::connect(server.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.set_nodelay(true).unwrap();
        Self(stream)
    }

    /// False if the other side has closed.
    pub fn send(&mut self, text: &str) -> bool {
        self.0.write_all(text.as_bytes()).is_ok()
    }

    /// One answer, or one request, with a body of known length: its head and its body.
    pub fn receive(&mut self) -> Option<(String, Vec<u8>)> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            if self.0.read(&mut byte).unwrap_or(0) == 0 {
                return None;
            }
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap().to_lowercase();
        let length = head.split("content-length: ").nth(1)?.lines().next()?.trim().parse().unwrap();
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).ok()?;
        Some((head, body))
    }

    /// Whether health is answered; it is not where the other side has closed.
    pub fn is_healthy(&mut self) -> bool {
        self.send(HEALTH) && self.receive().is_some_and(|(head, _)| head.starts_with("http/1.1 200"))
    }

    #[track_caller]
    pub fn expect_health(&mut self) {
        assert!(self.send(HEALTH));
        let (head, _) = self.receive().expect("no answer");
        assert!(head.starts_with("http/1.1 200"), "{head}");
    }

    /// Everything until the other side closes, and how long that took.
    pub fn read_to_end(&mut self) -> (String, Duration) {
        let begun = Instant::now();
        let mut received = Vec::new();
        match self.0.read_to_end(&mut received) {
            Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("the connection is not closed: {error}"),
            _ => (String::from_utf8_lossy(&received).into_owned(), begun.elapsed()),
        }
    }
}

/// Sends a request and leaves before it is answered: meanwhile nobody can write. The server must have its metrics, by
/// which it is known what it has noticed.
pub fn leave_after(server: &mut Server, request: &str) {
    let metrics = server.metrics();
    let has_left = || {
        let page = Request::new("GET", &metrics).send().expect(200).text();
        page.lines().any(|line| line.starts_with("yarrow_requests_total{") && line.contains("status=\"499\""))
    };
    assert!(!has_left(), "somebody left before");
    let database = server.database();
    database.execute_batch("begin immediate").unwrap();
    let before = Server::waiting_changes(&metrics);
    let mut leaving = Wire::to(server);
    leaving.send(request);
    eventually("its change is queued", || Server::waiting_changes(&metrics) > before);
    drop(leaving);
    eventually("it is noticed", has_left);
    database.execute_batch("rollback").unwrap();
}

/// Sends the bytes and reads one answer. The request should say `connection: close`, unless it is broken anyway.
pub fn exchange(address: SocketAddr, bytes: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // The server may refuse before it has read everything: what it answered is still to be read.
    let _ = stream.write_all(bytes);
    answer(stream)
}

/// Reads one answer.
pub fn answer(stream: impl Read) -> Answer {
    let mut reader = BufReader::new(stream);
    let (status, headers) = head(&mut reader);
    let mut body = Vec::new();
    match headers.get("content-length").map(|length| length.to_str().unwrap().parse::<u64>().unwrap()) {
        Some(length) => reader.take(length).read_to_end(&mut body).unwrap(),
        None => reader.read_to_end(&mut body).unwrap(),
    };
    Answer { status, headers, bytes: body }
}

/// Reads the status line and the headers of an answer.
pub fn head(reader: &mut impl BufRead) -> (u16, HeaderMap) {
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let status = line.split(' ').nth(1).unwrap_or_else(|| panic!("no answer, but {line:?}")).parse().unwrap();
    let mut headers = HeaderMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        match line.trim_end().split_once(": ") {
            Some((name, value)) => {
                headers.append(name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap())
            }
            None => return (status, headers),
        };
    }
}
