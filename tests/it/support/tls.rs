//! Test certificates and a TLS client that can use any server name.

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

use super::{client::Response, raw};

/// A certificate file and its key file.
pub struct PemPair {
    directory: TempDir,
}

impl PemPair {
    /// Creates a self-signed pair for this name.
    pub fn new(name: &str) -> Self {
        let pair = Self { directory: tempfile::tempdir().unwrap() };
        pair.renew(name);
        pair
    }

    /// Creates a pair that expires in `days` days. Negative values lie in the past.
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

    /// Replaces certificate and key.
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

    /// Returns the certificate as a root to trust.
    pub fn root(&self) -> String {
        std::fs::read_to_string(self.certificate()).unwrap()
    }
}

/// A TLS connection.
pub type TlsStream = StreamOwned<ClientConnection, TcpStream>;

/// Returns a configuration that trusts this root and offers these protocols.
pub fn client_config(root: &str, protocols: &[&str]) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(root.as_bytes()).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = builder.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots);
    let mut config = config.with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    Arc::new(config)
}

/// Connects. Fails if the certificate has another name or is not signed by this root.
pub fn connect(address: SocketAddr, name: &str, root: &str) -> io::Result<TlsStream> {
    connect_with(address, name, client_config(root, &[]))
}

/// Connects with this configuration.
pub fn connect_with(address: SocketAddr, name: &str, config: Arc<ClientConfig>) -> io::Result<TlsStream> {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut connection = ClientConnection::new(config, name).unwrap();
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    connection.complete_io(&mut stream)?;
    Ok(StreamOwned::new(connection, stream))
}

/// Sends one GET over a new connection.
pub fn get(address: SocketAddr, name: &str, root: &str, path: &str) -> io::Result<Response> {
    let mut stream = connect(address, name, root)?;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {name}\r\nconnection: close\r\n\r\n")?;
    Ok(raw::response(stream))
}
