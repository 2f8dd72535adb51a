//! HTTP/2 on our own TLS, with clients that behave and clients that do not.

use std::{
    future::Future,
    io::Write,
    net::Ipv4Addr,
    time::{Duration, Instant},
};

use h2::{
    Reason, SendStream,
    client::{Builder, ResponseFuture, SendRequest},
};
use http::{Request, StatusCode};
use hyper::body::Bytes;
use rustls::pki_types::ServerName;
use tokio::{
    net::{TcpSocket, TcpStream},
    time::timeout,
};
use tokio_rustls::TlsConnector;

use super::{NAME, assert_between, until_closed, with};
use crate::support::{
    Server, Setup,
    tls::{self, PemPair},
};

/// Long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// A connection with HTTP/2. The receiver gets the end of the connection.
pub(super) struct Connection {
    pub client: SendRequest<Bytes>,
    ended: tokio::task::JoinHandle<Result<(), h2::Error>>,
}

impl Connection {
    pub async fn open(server: &Server, pair: &PemPair, builder: &Builder) -> Self {
        Self::open_from(Ipv4Addr::LOCALHOST, server, pair, builder).await
    }

    /// Opens a connection from an address of this machine.
    pub async fn open_from(from: Ipv4Addr, server: &Server, pair: &PemPair, builder: &Builder) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((from, 0).into()).unwrap();
        let stream = socket.connect(server.address()).await.unwrap();
        let connector = TlsConnector::from(tls::client_config(&pair.root(), &["h2", "http/1.1"]));
        let stream = connector.connect(ServerName::try_from(NAME).unwrap(), stream).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let (client, connection) = builder.handshake(stream).await.unwrap();
        Self { client, ended: tokio::spawn(connection) }
    }

    /// Sends the head of a request, which may also be its end.
    pub async fn send(&self, request: Request<()>, is_end: bool) -> (ResponseFuture, SendStream<Bytes>) {
        self.client.clone().ready().await.unwrap().send_request(request, is_end).unwrap()
    }

    /// Sends a request without a body and returns status and body.
    pub async fn get(&mut self, path: &str) -> (StatusCode, Vec<u8>) {
        let response = self.send(request("GET", path), true).await.0;
        read(response).await
    }

    /// Waits until the server has closed the connection.
    async fn expect_end(self, what: &str) {
        let ended = timeout(PATIENCE, self.ended).await;
        assert!(ended.is_ok(), "{what}: the connection is still open");
    }
}

pub(super) fn request(method: &str, path: &str) -> Request<()> {
    let request = Request::builder().method(method).uri(format!("https://{NAME}{path}"));
    request.header("content-type", "application/json").body(()).unwrap()
}

async fn read(response: h2::client::ResponseFuture) -> (StatusCode, Vec<u8>) {
    let (head, mut body) = timeout(PATIENCE, response).await.expect("no response").unwrap().into_parts();
    let mut bytes = Vec::new();
    while let Some(chunk) = timeout(PATIENCE, body.data()).await.expect("the body ends") {
        let chunk = chunk.unwrap();
        body.flow_control().release_capacity(chunk.len()).unwrap();
        bytes.extend_from_slice(&chunk);
    }
    (head.status, bytes)
}

pub(super) fn run<F: Future>(test: F) -> F::Output {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(test)
}

fn server(pair: &PemPair, settings: &[(&str, &str)]) -> Server {
    let setup: Setup = settings.iter().fold(with(pair), |setup, (name, value)| setup.with(name, value));
    setup.start()
}

#[test]
fn many_requests_share_a_connection() {
    let pair = PemPair::new(NAME);
    let server = server(&pair, &[]);
    run(async {
        let mut connection = Connection::open(&server, &pair, &Builder::new()).await;
        assert_eq!(connection.get("/healthz").await.0, StatusCode::OK);
        // The first waits for its body; it does not block the others.
        let (first, mut body) = connection.send(request("POST", "/auth/login"), false).await;
        for path in ["/openapi.json", "/api/v1/hexagrams", "/readyz"] {
            let (status, bytes) = connection.get(path).await;
            assert_eq!(status, StatusCode::OK, "{path}");
            assert!(serde_json::from_slice::<serde_json::Value>(&bytes).is_ok(), "{path}");
        }
        body.send_data(Bytes::from_static(b"{\"phoneNumber\": \"13800138000\"}"), true).unwrap();
        let (status, bytes) = read(first).await;
        let problem: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!((status.as_u16(), &problem["errors"][0]["field"]), (422, &"code".into()), "{problem}");
        assert_eq!(connection.get("/nowhere").await.0, StatusCode::NOT_FOUND);
    });
    // The same server still speaks HTTP/1.1.
    tls::get(server.address(), NAME, &pair.root(), "/healthz").unwrap().expect(200);
}

#[test]
fn a_host_that_is_not_the_authority_is_rejected() {
    let pair = PemPair::new(NAME);
    let server = server(&pair, &[]);
    run(async {
        let connection = Connection::open(&server, &pair, &Builder::new()).await;
        for (host, expected) in [(NAME, 200), ("YARROW.test", 200), ("other.test", 400)] {
            let mut request = request("GET", "/healthz");
            request.headers_mut().insert("host", host.parse().unwrap());
            let response = connection.send(request, true).await.0;
            assert_eq!(read(response).await.0.as_u16(), expected, "{host}");
        }
    });
}

#[test]
fn a_head_that_is_too_large_is_refused() {
    let pair = PemPair::new(NAME);
    let server = server(&pair, &[]);
    run(async {
        let connection = Connection::open(&server, &pair, &Builder::new()).await;
        let mut large = request("GET", "/healthz");
        large.headers_mut().insert("x-filler", "a".repeat(40 << 10).parse().unwrap());
        let response = connection.send(large, true).await.0;
        match timeout(PATIENCE, response).await.unwrap() {
            Ok(response) => assert_eq!(response.status(), StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE),
            Err(error) => assert!(error.is_reset() || error.is_go_away(), "{error}"),
        }
        // Others are served.
        let mut other = Connection::open(&server, &pair, &Builder::new()).await;
        assert_eq!(other.get("/healthz").await.0, StatusCode::OK);
        drop(connection.client.ready().await);
    });
}

#[test]
fn cancelling_again_and_again_ends_the_connection() {
    let pair = PemPair::new(NAME);
    let server = server(&pair, &[]);
    run(async {
        let connection = Connection::open(&server, &pair, &Builder::new()).await;
        let mut cancelled = 0;
        while cancelled < 1000 {
            let Ok(mut client) = connection.client.clone().ready().await else { break };
            // Requests whose body is missing run until they are cancelled.
            let Ok((_, mut body)) = client.send_request(request("POST", "/auth/login"), false) else { break };
            tokio::time::sleep(Duration::from_millis(2)).await;
            body.send_reset(Reason::CANCEL);
            cancelled += 1;
        }
        assert!((50..1000).contains(&cancelled), "{cancelled} cancelled requests");
        connection.expect_end("cancelled requests").await;
        let mut other = Connection::open(&server, &pair, &Builder::new()).await;
        assert_eq!(other.get("/healthz").await.0, StatusCode::OK);
    });
}

#[test]
fn slow_heads_and_pings_keep_no_connection_open() {
    let pair = PemPair::new(NAME);
    let server = server(&pair, &[("LIMITS_HEADER_TIMEOUT", "1 s"), ("LIMITS_IDLE_TIMEOUT", "2 s")]);
    // A head that never ends, after the preface and the settings.
    let begun = Instant::now();
    let config = tls::client_config(&pair.root(), &["h2"]);
    let mut raw = tls::connect_with(server.address(), NAME, config).unwrap();
    raw.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
    raw.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).unwrap();
    raw.write_all(&[0, 0, 1, 1, 0, 0, 0, 0, 1, 0x82]).unwrap();
    until_closed(&mut raw);
    assert_between(begun.elapsed(), 800, 10_000);

    run(async {
        let begun = Instant::now();
        let stream = TcpStream::connect(server.address()).await.unwrap();
        let connector = TlsConnector::from(tls::client_config(&pair.root(), &["h2"]));
        let stream = connector.connect(ServerName::try_from(NAME).unwrap(), stream).await.unwrap();
        let (client, mut connection) = h2::client::handshake(stream).await.unwrap();
        let mut pings = connection.ping_pong().unwrap();
        let ended = tokio::spawn(connection);
        let mut connection = Connection { client, ended };
        assert_eq!(connection.get("/healthz").await.0, StatusCode::OK);
        let pinging = async {
            while pings.ping(h2::Ping::opaque()).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        assert!(timeout(PATIENCE, pinging).await.is_ok(), "pings keep the connection open");
        assert_between(begun.elapsed(), 1_500, 15_000);
    });
}

#[test]
fn a_response_that_is_not_read_ends_the_connection() {
    let pair = PemPair::new(NAME);
    let server = server(&pair, &[("LIMITS_IDLE_TIMEOUT", "2 s")]);
    run(async {
        let connection = Connection::open(&server, &pair, Builder::new().initial_window_size(1000)).await;
        let mut client = connection.client.clone().ready().await.unwrap();
        let unread = client.send_request(request("GET", "/openapi.json"), true).unwrap().0;
        let response = timeout(PATIENCE, unread).await.unwrap().unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        connection.expect_end("an unread response").await;
        drop(response);
    });
}

#[test]
fn running_requests_finish_before_the_server_stops() {
    let pair = PemPair::new(NAME);
    let mut server = server(&pair, &[]);
    run(async {
        let mut connection = Connection::open(&server, &pair, &Builder::new()).await;
        assert_eq!(connection.get("/healthz").await.0, StatusCode::OK);
        let (response, mut body) = connection.send(request("POST", "/auth/login"), false).await;
        body.send_data(Bytes::from_static(b"{"), false).unwrap();
        tokio::time::sleep(Duration::from_millis(300)).await;
        let stopped = tokio::task::spawn_blocking(move || server.terminate());
        tokio::time::sleep(Duration::from_millis(500)).await;
        body.send_data(Bytes::from_static(b"}"), true).unwrap();
        assert_eq!(read(response).await.0.as_u16(), 422);
        assert_eq!(timeout(PATIENCE, stopped).await.unwrap().unwrap(), Some(0));
        connection.expect_end("a stop").await;
    });
}
