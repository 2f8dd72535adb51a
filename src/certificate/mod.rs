//! Certificates in PEM files: the chain, its key, and its validity. Also names the files that ACME writes.
//!
//! `http` serves certificates; they are read here, so that they can be checked without a server.

mod validity;

use std::{
    path::{Path, PathBuf},
    sync::Mutex,
    time::SystemTime,
};

use rustls::{
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer},
    sign::CertifiedKey,
};

pub use validity::CertificateValidity;

use crate::{
    concurrency::lock::lock_unpoisoned,
    config::Config,
    types::{PemBlock, PemFault, hex, parse_pem, sha256_of_parts},
};

/// A certificate chain, the private key of its first certificate, and the validity of that certificate.
pub struct Certificate {
    pub key: CertifiedKey,
    pub validity: CertificateValidity,
}

impl Certificate {
    /// Parses PEM. Both texts may be the same.
    ///
    /// # Errors
    /// The fault, as a sentence.
    pub fn parse(chain: &[u8], key: &[u8]) -> Result<Self, String> {
        Self::of(chain_of(chain)?, key_of(key)?)
    }

    fn of(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Result<Self, String> {
        let validity = chain.first().and_then(|first| CertificateValidity::of(first));
        let validity = validity.ok_or("the certificate has no validity")?;
        let provider = ring::default_provider();
        // Its error does not say that, for example, the curve P-521 is the fault.
        provider
            .key_provider
            .load_private_key(key.clone_key())
            .map_err(|_| "the key must be RSA of 2048 bits or more, ECDSA on P-256 or P-384, or Ed25519")?;
        let key = CertifiedKey::from_der(chain, key, &provider)
            .map_err(|error| format!("the key does not match the certificate: {error}"))?;
        Ok(Self { key, validity })
    }
}

fn chain_of(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let blocks = parse_pem(pem).or_else(empty_as_no_block);
    let blocks = blocks.map_err(|fault| format!("the certificate cannot be read: {fault}"))?;
    let certificates = blocks.into_iter().filter(PemBlock::is_certificate);
    let chain: Vec<_> = certificates.map(|block| CertificateDer::from(block.der)).collect();
    if chain.is_empty() { Err("the file contains no certificate".into()) } else { Ok(chain) }
}

fn key_of(pem: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
    let blocks = parse_pem(pem).or_else(empty_as_no_block);
    let blocks = blocks.map_err(|fault| format!("the key cannot be read: {fault}"))?;
    let key = blocks.into_iter().find_map(|block| match block.label.as_deref() {
        Some("PRIVATE KEY") => Some(PrivateKeyDer::Pkcs8(block.der.into())),
        Some("RSA PRIVATE KEY") => Some(PrivateKeyDer::Pkcs1(block.der.into())),
        Some("EC PRIVATE KEY") => Some(PrivateKeyDer::Sec1(block.der.into())),
        Some(_) => None,
        None => PrivateKeyDer::try_from(block.der).ok(),
    });
    key.ok_or_else(|| "the file contains no private key".into())
}

/// Treats an empty file like one without the expected block.
fn empty_as_no_block(fault: PemFault) -> Result<Vec<PemBlock>, PemFault> {
    if fault == PemFault::Empty { Ok(Vec::new()) } else { Err(fault) }
}

/// The two files of a certificate that another program renews.
pub struct PemFiles {
    certificate: PathBuf,
    key: PathBuf,
}

/// The setting that names a file, and the path with its fault as a sentence.
pub type FileFault = (&'static str, String);

/// Returns all faults in one text.
pub fn joined(faults: &[FileFault], mark: &str) -> String {
    faults.iter().map(|(setting, fault)| format!("{setting}: {fault}")).collect::<Vec<_>>().join(mark)
}

/// Modification time and length of each file, to detect a change.
pub type FileStamp = [Option<(SystemTime, u64)>; 2];

impl PemFiles {
    /// Returns the configured files, if there are any.
    pub fn of(config: &Config) -> Option<Self> {
        let server = &config.server;
        Some(Self { certificate: server.tls_certificate.clone()?.into(), key: server.tls_key.clone()?.into() })
    }

    /// Reads the pair.
    ///
    /// # Errors
    /// All faults of both files.
    pub fn read(&self) -> Result<Certificate, Vec<FileFault>> {
        let chain = named("server.tls_certificate", &self.certificate, chain_of);
        let key = named("server.tls_key", &self.key, key_of);
        match (chain, key) {
            (Ok(chain), Ok(key)) => Certificate::of(chain, key)
                .map_err(|fault| vec![("server.tls_key", format!("{}: {fault}", self.key.display()))]),
            (chain, key) => Err(chain.err().into_iter().chain(key.err()).collect()),
        }
    }

    /// Returns the current stamp, which changes when a file is written.
    pub fn stamp(&self) -> FileStamp {
        [&self.certificate, &self.key].map(|path| {
            let metadata = std::fs::metadata(path).ok()?;
            Some((metadata.modified().ok()?, metadata.len()))
        })
    }
}

/// The paths of ACME's files in the data directory.
pub struct AcmeFiles {
    pub directory: PathBuf,
    /// One account for each certificate authority.
    pub account: PathBuf,
    /// Chain and key in one file, so that they always match. One file for each list of names and authority, because a
    /// trial certificate must not be used for another authority.
    pub certificate: PathBuf,
}

impl AcmeFiles {
    /// Returns the paths of this configuration; `None` unless certificates come from ACME.
    pub fn of(config: &Config) -> Option<Self> {
        let first = config.server.domain.first().filter(|_| config.server.tls_certificate.is_none())?;
        let directory = config.data_dir().join("acme");
        let short = |parts: &[&[u8]]| hex(&sha256_of_parts(parts)[..6]);
        let authority = config.acme.directory.as_bytes();
        let names = config.server.domain.iter().map(String::as_bytes);
        let of_certificate: Vec<_> = names.chain([authority]).collect();
        Some(Self {
            account: directory.join(format!("account-{}.json", short(&[authority]))),
            certificate: directory.join(format!("{first}-{}.pem", short(&of_certificate))),
            directory,
        })
    }

    /// Reads the stored certificate, if there is one.
    ///
    /// # Errors
    /// The fault of the certificate, as a sentence.
    pub fn read(&self) -> Result<Option<Certificate>, String> {
        match std::fs::read(&self.certificate) {
            Ok(pem) => Certificate::parse(&pem, &pem).map(Some),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("{}: {error}", self.certificate.display())),
        }
    }
}

/// Returns the validity of the configured certificate's files; `None` if there is none, or none yet.
///
/// # Errors
/// The fault, in words.
pub fn validity(config: &Config) -> Result<Option<CertificateValidity>, String> {
    let certificate = match (PemFiles::of(config), AcmeFiles::of(config)) {
        (Some(files), _) => files.read().map(Some).map_err(|faults| joined(&faults, "; "))?,
        (None, Some(files)) => files.read()?,
        (None, None) => None,
    };
    Ok(certificate.map(|certificate| certificate.validity))
}

/// The validity of the certificate that this process serves, once it serves one. The files may contain another
/// certificate after a failed or unfinished renewal.
#[derive(Debug, Default)]
pub struct ServedValidity(Mutex<Option<CertificateValidity>>);

impl ServedValidity {
    pub fn note(&self, validity: CertificateValidity) {
        *lock_unpoisoned(&self.0) = Some(validity);
    }

    pub fn validity(&self) -> Option<CertificateValidity> {
        *lock_unpoisoned(&self.0)
    }
}

fn named<T>(setting: &'static str, path: &Path, read: impl FnOnce(&[u8]) -> Result<T, String>) -> Result<T, FileFault> {
    let bytes = std::fs::read(path).map_err(|error| error.to_string());
    bytes.and_then(|bytes| read(&bytes)).map_err(|fault| (setting, format!("{}: {fault}", path.display())))
}
