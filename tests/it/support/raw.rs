//! Raw HTTP over a socket, for malformed or unusual requests.

use std::{
    io::{BufRead, BufReader, ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use ureq::http::{HeaderMap, HeaderName, HeaderValue};

use super::{
    client::{Request, Response},
    fake_provider::Latch,
    polling::eventually,
    server::Server,
};

pub const HEALTH: &str = "GET /healthz HTTP/1.1\r\nhost: yarrow\r\n\r\n";

/// A raw HTTP connection.
pub struct RawConnection(pub TcpStream);

impl RawConnection {
    pub fn to(server: &Server) -> Self {
        let stream = TcpStream::connect(server.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.set_nodelay(true).unwrap();
        Self(stream)
    }

    /// Returns false if the peer has closed the connection.
    pub fn send(&mut self, text: &str) -> bool {
        self.0.write_all(text.as_bytes()).is_ok()
    }

    /// Reads one message with a `content-length`: head and body.
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

    /// Returns true if a response, or a part of it, has arrived.
    pub fn has_response(&self) -> bool {
        self.0.set_nonblocking(true).unwrap();
        let has_bytes = self.0.peek(&mut [0]).is_ok();
        self.0.set_nonblocking(false).unwrap();
        has_bytes
    }

    /// Returns true if a health check succeeds, false if the peer has closed the connection.
    pub fn is_healthy(&mut self) -> bool {
        self.send(HEALTH) && self.receive().is_some_and(|(head, _)| head.starts_with("http/1.1 200"))
    }

    #[track_caller]
    pub fn expect_health(&mut self) {
        assert!(self.send(HEALTH));
        let (head, _) = self.receive().expect("no response");
        assert!(head.starts_with("http/1.1 200"), "{head}");
    }

    /// Reads until the peer closes. Returns the bytes and the duration.
    pub fn read_to_end(&mut self) -> (String, Duration) {
        let started_at = Instant::now();
        let mut received = Vec::new();
        match self.0.read_to_end(&mut received) {
            Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("the connection is not closed: {error}"),
            _ => (String::from_utf8_lossy(&received).into_owned(), started_at.elapsed()),
        }
    }
}

/// Sends 450 equal requests while keys that they need cannot be fetched. All but a few are refused with `overloaded` or
/// an empty 503, few threads are in use, and others are served. Then opens the latch and expects 200 for the rest.
pub fn flood_while_keys_hang(server: &Server, keys: &Latch, request: &str) {
    const MOST_WAITING: usize = 32;
    let before = server.threads();
    let connect = |_| {
        let mut connection = RawConnection::to(server);
        assert!(connection.send(request));
        connection
    };
    let senders: Vec<_> = (0..450).map(connect).collect();
    eventually("all but a few are answered", || {
        senders.iter().filter(|sender| !sender.has_response()).count() <= MOST_WAITING
    });
    let threads = server.threads() - before;
    assert!(threads <= 64, "{threads} more threads");
    server.sign_in("13800138000");
    let (refused, waiting): (Vec<_>, Vec<_>) = senders.into_iter().partition(RawConnection::has_response);
    for mut sender in refused {
        let (head, body) = sender.receive().unwrap();
        assert!(head.starts_with("http/1.1 503") && head.contains("retry-after: "), "{head}");
        let body = String::from_utf8(body).unwrap();
        assert!(body.is_empty() || body.contains("\"overloaded\""), "{body}");
    }
    assert!(!waiting.is_empty());
    keys.open();
    for mut sender in waiting {
        let (head, _) = sender.receive().unwrap();
        assert!(head.starts_with("http/1.1 200"), "{head}");
    }
}

/// Sends a request and disconnects before the response, while another connection blocks writes. Needs the metrics
/// listener.
pub fn disconnect_after(server: &mut Server, request: &str) {
    let metrics = server.metrics();
    let has_left = || {
        let page = Request::new("GET", &metrics).send().expect(200).text();
        page.lines().any(|line| line.starts_with("yarrow_requests_total{") && line.contains("status=\"499\""))
    };
    assert!(!has_left(), "a client disconnected before");
    let has_stored_runs = "select count(*) > 0 from settings where name = 'jobs.last_runs'";
    eventually("the first change of the jobs is stored", || server.value(has_stored_runs));
    let database = server.database();
    database.execute_batch("begin immediate").unwrap();
    let before = Server::waiting_changes(&metrics);
    let mut leaving = RawConnection::to(server);
    leaving.send(request);
    eventually("its change is queued", || Server::waiting_changes(&metrics) > before);
    drop(leaving);
    eventually("it is noticed", has_left);
    database.execute_batch("rollback").unwrap();
}

/// Sends bytes and reads one response. Well-formed requests should set `connection: close`.
pub fn exchange(address: SocketAddr, bytes: &[u8]) -> Response {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // The server may respond before it has read everything.
    let _ = stream.write_all(bytes);
    response(stream)
}

/// Reads one response.
pub fn response(stream: impl Read) -> Response {
    let mut reader = BufReader::new(stream);
    let (status, headers) = head(&mut reader);
    let mut body = Vec::new();
    match headers.get("content-length").map(|length| length.to_str().unwrap().parse::<u64>().unwrap()) {
        Some(length) => reader.take(length).read_to_end(&mut body).unwrap(),
        None => reader.read_to_end(&mut body).unwrap(),
    };
    Response { status, headers, bytes: body }
}

/// Reads the status line and headers of a response.
pub fn head(reader: &mut impl BufRead) -> (u16, HeaderMap) {
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let status = line.split(' ').nth(1).unwrap_or_else(|| panic!("no response, but {line:?}")).parse().unwrap();
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
