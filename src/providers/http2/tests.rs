//! The client against a server with TLS on this machine. Requests without TLS are tested through the binary.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer},
};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use ureq::http::Response;

use super::*;

const H2: &[u8] = b"h2";

/// A server that answers with the body it received.
struct EchoServer {
    port: u16,
    certificate: CertificateDer<'static>,
    connections: Arc<AtomicUsize>,
}

impl EchoServer {
    fn start(name: &str, last_year: i32, protocol: &[u8]) -> Self {
        let mut parameters = CertificateParams::new([name.to_owned()]).unwrap();
        parameters.not_after = date_time_ymd(last_year, 12, 31);
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.self_signed(&key).unwrap().der().clone();
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let crypto = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(crypto).with_safe_default_protocol_versions().unwrap();
        let config = config.with_no_client_auth().with_single_cert(vec![certificate.clone()], key);
        let mut config = config.unwrap();
        config.alpn_protocols = vec![protocol.to_vec()];
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(serve(listener, TlsAcceptor::from(Arc::new(config)), counted));
        });
        Self { port, certificate, connections }
    }

    /// Returns a client that trusts this certificate.
    fn client(&self, trusted: &CertificateDer<'static>) -> Http2Client {
        let mut roots = RootCertStore::empty();
        roots.add(trusted.clone()).unwrap();
        Http2Client::trusting(roots, ("tests", "x.url"), self.endpoint(), Duration::from_secs(20)).unwrap()
    }

    fn endpoint(&self) -> BaseUrl {
        BaseUrl::parse("tests", &format!("https://localhost:{}", self.port)).unwrap()
    }
}

async fn serve(listener: std::net::TcpListener, acceptor: TlsAcceptor, connections: Arc<AtomicUsize>) {
    let listener = TcpListener::from_std(listener).unwrap();
    while let Ok((stream, _)) = listener.accept().await {
        if let Ok(stream) = acceptor.accept(stream).await {
            connections.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(echo(stream));
        }
    }
}

async fn echo<T: AsyncRead + AsyncWrite + Unpin>(stream: T) {
    let handshake = h2::server::Builder::new().handshake::<_, Cursor<Vec<u8>>>(stream).await;
    let Ok(mut connection) = handshake else { return };
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        tokio::spawn(async move {
            let (head, mut body) = request.into_parts();
            let body = read_body(&mut body).await.unwrap();
            let name = head.headers["x-name"].clone();
            let response = Response::builder().status(200).header("x-url", head.uri.to_string()).header("x-name", name);
            let mut sent = respond.send_response(response.body(()).unwrap(), false).unwrap();
            sent.send_data(Cursor::new(body), true).unwrap();
        });
    }
}

fn request(number: usize) -> Http2Request {
    let headers = vec![("x-name", format!("name {number}"))];
    Http2Request { path: format!("/{number}"), headers, body: format!("body {number}").into_bytes() }
}

fn fault(client: &Http2Client) -> (FailureKind, String) {
    let failure = client.send_all(&[request(0)]).remove(0).unwrap_err();
    (failure.kind, failure.code)
}

#[test]
fn requests_share_one_encrypted_connection() {
    let server = EchoServer::start("localhost", 2100, H2);
    let client = server.client(&server.certificate);
    for _ in 0..2 {
        let requests: Vec<_> = (0..50).map(request).collect();
        for (number, answer) in client.send_all(&requests).into_iter().enumerate() {
            let answer = answer.unwrap();
            assert_eq!((answer.status, answer.body), (200, format!("body {number}").into_bytes()));
            let url = format!("https://localhost:{}/{number}", server.port);
            let header = |name: &str| answer.headers[name].to_str().unwrap();
            assert_eq!((header("x-url"), header("x-name")), (url.as_str(), format!("name {number}").as_str()));
        }
    }
    assert_eq!(server.connections.load(Ordering::SeqCst), 1);
}

#[test]
fn a_server_that_is_not_trusted_gets_no_request() {
    let refused = (FailureKind::Unreachable, "tls_failed".to_owned());
    let server = EchoServer::start("localhost", 2100, H2);
    let other = EchoServer::start("localhost", 2100, H2);
    // Another authority, and the public ones.
    assert_eq!(fault(&server.client(&other.certificate)), refused);
    let public = Http2Client::new("tests", "x.url", server.endpoint(), Duration::from_secs(20)).unwrap();
    assert_eq!(fault(&public), refused);
    // Another name, a certificate out of date, and a server without HTTP/2.
    for server in [
        EchoServer::start("other.test", 2100, H2),
        EchoServer::start("localhost", 2020, H2),
        EchoServer::start("localhost", 2100, b"http/1.1"),
    ] {
        assert_eq!(fault(&server.client(&server.certificate)), refused);
    }
    // The client recovers once the server is trusted.
    assert!(server.client(&server.certificate).send_all(&[request(0)]).remove(0).is_ok());
}
