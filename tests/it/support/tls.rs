//! Certificates of the tests' own, and a client that speaks TLS to a server on this machine whatever it calls itself.

use std::{
    io::{self, Write},
    net::{SocketAddr, TcpStream},
    sync::Arc,
    time::Duration,
};

use rcgen::{CertificateParams, CertifiedKey, KeyPair, generate_simple_self_signed};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use tempfile::TempDir;

use super::{client::Answer, raw};

/// A certificate and its key as a server is told of them: two files.
pub struct PemPair {
    directory: TempDir,
}

impl PemPair {
    /// A pair for this name, signed by itself.
    pub fn new(name: &str) -> Self {
        let pair = Self { directory: tempfile::tempdir().unwrap() };
        pair.renew(name);
        pair
    }

    /// A pair whose certificate ends in so many days from now, or so many ago.
    pub fn ending_in(name: &str, days: i64) -> Self {
        let pair = Self { directory: tempfile::tempdir().unwrap() };
        let mut parameters = CertificateParams::new([name.to_owned()]).unwrap();
        let until = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        let until = until.checked_add_signed(days * 86_400).unwrap();
        parameters.not_after = (std::time::UNIX_EPOCH + Duration::from_secs(until)).into();
        let signing_key = KeyPair::generate().unwrap();
        std::fs::write(pair.certificate(), parameters.self_signed(&signing_key).unwrap().pem()).unwrap();
        std::fs::write(pair.key(), signing_key.serialize_pem()).unwrap();
        pair
    }

    /// Puts another certificate with another key in the place of the pair.
    pub fn renew(&self, name: &str) {
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed([name.to_owned()]).unwrap();
        std::fs::write(self.certificate(), cert.pem()).unwrap();
        std::fs::write(self.key(), signing_key.serialize_pem()).unwrap();
    }

    pub fn certificate(&self) -> String {
        self.directory.path().join("certificate.pem").to_str().unwrap().to_owned()
    }

    pub fn key(&self) -> String {
        self.directory.path().join("key.pem").to_str().unwrap().to_owned()
    }

    /// The certificate, for whoever is to believe it.
    pub fn root(&self) -> String {
        std::fs::read_to_string(self.certificate()).unwrap()
    }
}

/// A connection over which TLS is spoken.
pub type TlsStream = StreamOwned<ClientConnection, TcpStream>;

/// Connects and shakes hands. An error if the certificate is not of this name, or not signed by this root.
pub fn connect(address: SocketAddr, name: &str, root: &str) -> io::Result<TlsStream> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(root.as_bytes()).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = builder.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots);
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut connection = ClientConnection::new(Arc::new(config.with_no_client_auth()), name).unwrap();
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    connection.complete_io(&mut stream)?;
    Ok(StreamOwned::new(connection, stream))
}

/// One GET over a connection of its own.
pub fn get(address: SocketAddr, name: &str, root: &str, path: &str) -> io::Result<Answer> {
    let mut stream = connect(address, name, root)?;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {name}\r\nconnection: close\r\n\r\n")?;
    Ok(raw::answer(stream))
}
