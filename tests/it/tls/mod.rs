//! TLS: certificate files, the HTTPS redirect, and connection limits.

mod acme;
mod held_memory;
mod http2;
mod key_files;
mod pebble;

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use crate::support::{
    Binary, Request, Server, Setup, eventually,
    tls::{self, PemPair, TlsStream},
};

const NAME: &str = "yarrow.test";

fn with(pair: &PemPair) -> Setup {
    Setup::default().with("SERVER_TLS_CERTIFICATE", pair.certificate()).with("SERVER_TLS_KEY", pair.key())
}

fn pair_of<'a>(certificate: &'a str, key: &'a str) -> [(&'static str, &'a str); 2] {
    [("SERVER_TLS_CERTIFICATE", certificate), ("SERVER_TLS_KEY", key)]
}

fn connect(server: &Server, pair: &PemPair) -> TlsStream {
    tls::connect(server.address(), NAME, &pair.root()).unwrap()
}

/// Checks health on a connection that stays open.
#[track_caller]
fn expect_health(stream: &mut TlsStream) {
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: yarrow\r\n\r\n").unwrap();
    let mut received = Vec::new();
    let mut piece = [0; 4096];
    while !received.ends_with(b"}") {
        let count = stream.read(&mut piece).unwrap();
        assert!(count > 0, "{}", String::from_utf8_lossy(&received));
        received.extend_from_slice(&piece[..count]);
    }
    assert!(received.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&received));
}

/// Reads until the peer closes in any way.
fn until_closed(stream: &mut impl Read) {
    let mut piece = [0; 4096];
    while matches!(stream.read(&mut piece), Ok(count) if count > 0) {}
}

fn duration_of(done: impl FnOnce()) -> Duration {
    let started_at = Instant::now();
    done();
    started_at.elapsed()
}

#[track_caller]
fn assert_between(took: Duration, least: u64, most: u64) {
    assert!((Duration::from_millis(least)..Duration::from_millis(most)).contains(&took), "it took {took:?}");
}

#[test]
fn serves_a_certificate_file() {
    let pair = PemPair::new(NAME);
    let mut server = with(&pair).start();
    assert!(server.wait_for_line("yarrow is listening on").contains("https://"));
    let response = tls::get(server.address(), NAME, &pair.root(), "/readyz").unwrap().expect(200);
    assert_eq!(response.json()["status"], "ready");
    // Other roots and names are rejected.
    assert!(tls::get(server.address(), NAME, &PemPair::new(NAME).root(), "/readyz").is_err());
    assert!(tls::get(server.address(), "other.test", &pair.root(), "/readyz").is_err());
    // Plain HTTP gets no response.
    let mut plain = TcpStream::connect(server.address()).unwrap();
    plain.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    let mut received = Vec::new();
    let _ = plain.read_to_end(&mut received);
    assert!(!received.starts_with(b"HTTP"), "{}", String::from_utf8_lossy(&received));
    expect_health(&mut connect(&server, &pair));

    let mut check = Binary::command();
    check.args(["healthcheck", "--listen", &server.address().to_string()]);
    check.env("YARROW_SERVER_TLS_CERTIFICATE", pair.certificate()).env("YARROW_SERVER_TLS_KEY", pair.key());
    assert!(check.status().unwrap().success());
}

#[test]
fn browsers_are_told_to_use_https_alone() {
    let pair = PemPair::new(NAME);
    let strict = |setup: Setup| {
        let server = setup.start();
        let response = tls::get(server.address(), NAME, &pair.root(), "/healthz").unwrap().expect(200);
        response.header("strict-transport-security").map(ToOwned::to_owned)
    };
    assert_eq!(strict(with(&pair)).as_deref(), Some("max-age=15552000"));
    assert_eq!(strict(with(&pair).with("SERVER_HSTS", "0 s")), None);
    assert_eq!(Setup::default().start().get("/healthz").send().header("strict-transport-security"), None);
}

#[test]
fn connection_limits_apply_under_tls() {
    let pair = PemPair::new(NAME);
    let setup = with(&pair).with("LIMITS_HEADER_TIMEOUT", "1 s").with("LIMITS_BODY_TIMEOUT", "1 s");
    let server = setup.clone().start();

    // No data, and half a handshake.
    let closed_after = |message: &[u8]| {
        duration_of(|| {
            let mut stream = TcpStream::connect(server.address()).unwrap();
            stream.write_all(message).unwrap();
            until_closed(&mut stream);
        })
    };
    assert_between(closed_after(b""), 800, 8_000);
    assert_between(closed_after(&[22, 3, 1, 2, 0, 1, 0, 1, 0xfc]), 800, 8_000);
    // A handshake, then silence.
    assert_between(duration_of(|| until_closed(&mut connect(&server, &pair))), 800, 8_000);

    // A head byte by byte.
    let started_at = Instant::now();
    let mut slow = connect(&server, &pair);
    let head = b"GET /healthz HTTP/1.1\r\nhost: yarrow\r\naccept: something quite long\r\n\r\n";
    for byte in head {
        if slow.write_all(&[*byte]).and_then(|()| slow.flush()).is_err() {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    until_closed(&mut slow);
    assert_between(started_at.elapsed(), 800, 8_000);

    // An incomplete body gets a response.
    let mut unfinished = connect(&server, &pair);
    let head = "POST /auth/login HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{";
    unfinished.write_all(head.as_bytes()).unwrap();
    let mut response = [0; 12];
    unfinished.read_exact(&mut response).unwrap();
    assert_eq!(&response, b"HTTP/1.1 408");

    // An idle client is not slow, and is closed after the idle timeout.
    let server = setup.with("LIMITS_IDLE_TIMEOUT", "10 s").start();
    let mut idle = connect(&server, &pair);
    expect_health(&mut idle);
    std::thread::sleep(Duration::from_millis(2_500));
    expect_health(&mut idle);
    assert_between(duration_of(|| until_closed(&mut idle)), 5_000, 19_000);
}

#[test]
fn an_idle_connection_does_not_delay_shutdown() {
    let pair = PemPair::new(NAME);
    let mut server = with(&pair).start();
    let mut idle = connect(&server, &pair);
    expect_health(&mut idle);
    let started_at = Instant::now();
    assert_eq!(server.terminate(), Some(0));
    assert_between(started_at.elapsed(), 0, 20_000);
    until_closed(&mut idle);
}

#[test]
fn serves_a_renewed_certificate_and_ignores_a_broken_one() {
    let pair = PemPair::new(NAME);
    let mut server = with(&pair).in_own_process().start();
    let healthy = |root: &str| tls::get(server.address(), NAME, root, "/healthz").is_ok();
    let first = pair.root();
    let hang_up = || {
        let reported = std::process::Command::new("kill").arg("-HUP").arg(server.process_id().to_string()).status();
        assert!(reported.unwrap().success());
    };
    let mut open = connect(&server, &pair);
    expect_health(&mut open);

    pair.renew(NAME);
    let second = pair.root();
    hang_up();
    eventually("the second pair is served", || healthy(&second));
    assert!(!healthy(&first));
    // Open connections continue.
    expect_health(&mut open);

    std::fs::write(pair.certificate(), "no certificate").unwrap();
    hang_up();
    std::thread::sleep(Duration::from_millis(300));
    assert!(healthy(&second));

    // Noticed within some seconds, without a signal.
    pair.renew(NAME);
    let third = pair.root();
    eventually("the third pair is served", || healthy(&third));
    server.wait_for_line("could not reload the certificate; the previous one stays");
}

#[test]
fn an_expired_certificate_does_not_replace_a_valid_one() {
    let (pair, expired) = (PemPair::new(NAME), PemPair::ending_in(NAME, -1));
    let mut server = with(&pair).in_own_process().start();
    let root = pair.root();
    std::fs::copy(expired.key(), pair.key()).unwrap();
    std::fs::copy(expired.certificate(), pair.certificate()).unwrap();
    let reported = std::process::Command::new("kill").arg("-HUP").arg(server.process_id().to_string()).status();
    assert!(reported.unwrap().success());
    server.wait_for_line("the previous one is still valid");
    assert!(tls::get(server.address(), NAME, &root, "/healthz").is_ok());
}

#[test]
fn a_hangup_without_certificates_is_ignored() {
    let server = Setup::default().in_own_process().start();
    let reported = std::process::Command::new("kill").arg("-HUP").arg(server.process_id().to_string()).status();
    assert!(reported.unwrap().success());
    std::thread::sleep(Duration::from_millis(200));
    server.get("/healthz").send().expect(200);
}

#[test]
fn the_plain_listener_redirects_to_https() {
    let pair = PemPair::new(NAME);
    let mut server = with(&pair).with("SERVER_REDIRECT_LISTEN", "127.0.0.1:0").start();
    let line = server.wait_for_line("yarrow redirects to HTTPS on http://");
    let address: SocketAddr = line.rsplit("http://").next().unwrap().trim().parse().unwrap();
    let plain = |method: &str, path: &str| Request::new(method, &format!("http://{address}{path}"));
    let port = server.address().port();
    for (method, path) in
        [("GET", "/docs/?a=b"), ("POST", "/auth/login"), ("GET", "/healthz"), ("PUT", "/user/profile")]
    {
        let response = plain(method, path).send().expect(308);
        assert_eq!(response.header("location").unwrap(), format!("https://127.0.0.1:{port}{path}"));
        assert!(response.bytes.is_empty());
    }
    plain("GET", "/.well-known/acme-challenge/anything").send().expect(404);
    plain("GET", "/.well-known/acme-challenge/").send().expect(404);
}

#[test]
fn an_unusable_certificate_prevents_the_start_with_a_reason() {
    let (pair, other) = (PemPair::new(NAME), PemPair::new(NAME));
    let directory = tempfile::tempdir().unwrap();
    let empty = directory.path().join("empty.pem");
    std::fs::write(&empty, "").unwrap();
    let refused = |settings: &[(&str, &str)], why: &str| {
        let mut command = Binary::command();
        command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(directory.path().join("data"));
        command.envs(settings.iter().map(|(name, value)| (format!("YARROW_{name}"), value)));
        let ended = command.output().unwrap();
        let message = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(3), "{message}");
        assert!(message.contains(why), "{why} is not in: {message}");
    };
    let (certificate, key) = (pair.certificate(), pair.key());
    refused(&pair_of(&certificate, &key)[..1], "needs server.tls_key");
    refused(&pair_of("/nonexistent.pem", &key), "/nonexistent.pem");
    refused(&pair_of(&certificate, &other.key()), "does not match the certificate");
    refused(&pair_of(empty.to_str().unwrap(), &key), "no certificate");
    refused(&pair_of(&certificate, empty.to_str().unwrap()), "no private key");
    refused(&[("SERVER_REDIRECT_LISTEN", "127.0.0.1:0")], "server.redirect_listen");
    refused(&[("SERVER_DOMAIN", "localhost")], "is not a domain name");
    refused(&[("SERVER_DOMAIN", "10.0.0.1")], "is not a domain name");
    let both = [pair_of(&certificate, &key).to_vec(), vec![("SERVER_DOMAIN", NAME)]].concat();
    refused(&both, "cannot be combined with server.tls_certificate");
    let root = [("SERVER_DOMAIN", NAME), ("ACME_ROOT_CERTIFICATE", empty.to_str().unwrap())];
    refused(&root, "holds no certificate");
}
