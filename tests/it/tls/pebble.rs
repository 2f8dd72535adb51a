//! A certificate from Pebble, Let's Encrypt's test server, which enforces the protocol and fails some nonces and
//! authorizations. From the Debian package `pebble`.

use std::{
    net::{SocketAddr, TcpListener},
    process::{Child, Command, Stdio},
};

use serde_json::json;

use crate::support::{
    Setup, eventually_some,
    tls::{self, PemPair},
};

const NAME: &str = "yarrow.test";

/// A process that is killed on drop.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> Self {
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(quiet.spawn().expect("this test needs the Debian package `pebble`"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
#[ignore = "needs pebble and pebble-challtestsrv; run with `cargo test --test it pebble -- --ignored`"]
fn pebble_issues_and_reissues_a_certificate() {
    let directory = tempfile::tempdir().unwrap();
    let own = PemPair::new("localhost");
    let (directory_port, management_port, http_port) = (free_port(), free_port(), free_port());
    let (dns_port, names_port) = (free_port(), free_port());
    let settings = json!({ "pebble": {
        "listenAddress": format!("127.0.0.1:{directory_port}"),
        "managementListenAddress": format!("127.0.0.1:{management_port}"),
        "certificate": own.certificate(), "privateKey": own.key(), "httpPort": http_port, "tlsPort": free_port(),
        "ocspResponderURL": "", "externalAccountBindingRequired": false,
    } });
    let file = directory.path().join("pebble.json");
    std::fs::write(&file, settings.to_string()).unwrap();
    let off = ["-http01", "", "-https01", "", "-tlsalpn01", "", "-defaultIPv6", ""];
    let _names = Running::start(
        Command::new("pebble-challtestsrv")
            .args(off)
            .args(["-defaultIPv4", "127.0.0.1", "-dns01", &format!("127.0.0.1:{dns_port}")])
            .args(["-management", &format!("127.0.0.1:{names_port}")]),
    );
    let _pebble = Running::start(
        Command::new("pebble")
            .args(["-strict", "-dnsserver", &format!("127.0.0.1:{dns_port}"), "-config", file.to_str().unwrap()])
            .env("PEBBLE_VA_NOSLEEP", "1")
            .env("PEBBLE_WFE_NONCEREJECT", "30"),
    );
    let management = SocketAddr::from(([127, 0, 0, 1], management_port));
    let issuer = eventually_some("pebble starts", || {
        let response = tls::get(management, "localhost", &own.root(), "/roots/0").ok()?;
        Some(response.text()).filter(|text| text.contains("BEGIN CERTIFICATE"))
    });
    let setup = || {
        Setup::default()
            .on(&directory.path().join("data"))
            .with("SERVER_DOMAIN", NAME)
            .with("SERVER_REDIRECT_LISTEN", format!("127.0.0.1:{http_port}"))
            .with("ACME_DIRECTORY", format!("https://localhost:{directory_port}/dir"))
            .with("ACME_ROOT_CERTIFICATE", own.certificate())
            .with("ACME_CONTACT", "operator@yarrow.test")
            .with("ACME_RETRY_AFTER", "1 s")
    };
    let certificates = || {
        let stored = std::fs::read_dir(directory.path().join("data/acme")).unwrap().flatten();
        let stored = stored.filter(|file| file.file_name().to_string_lossy().starts_with(NAME));
        stored.map(|file| std::fs::read(file.path()).unwrap()).collect::<Vec<_>>()
    };
    let responses = |address| {
        eventually_some("a certificate is issued", || {
            let response = tls::get(address, NAME, &issuer, "/healthz").ok()?;
            Some(response).filter(|response| response.status == 200)
        });
    };
    let mut server = setup().start();
    responses(server.address());
    let first = certificates();
    assert_eq!(server.terminate(), Some(0));
    // It is stored and not requested again.
    let mut server = setup().start();
    responses(server.address());
    assert_eq!(certificates(), first);
    assert_eq!(server.terminate(), Some(0));
    // If it is lost, the same account gets another one.
    for file in std::fs::read_dir(directory.path().join("data/acme")).unwrap().flatten() {
        if file.file_name().to_string_lossy().starts_with(NAME) {
            std::fs::remove_file(file.path()).unwrap();
        }
    }
    let server = setup().start();
    responses(server.address());
    assert_ne!(certificates(), first);
}
