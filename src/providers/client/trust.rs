//! The certificate authorities that a client trusts.

use ureq::tls::{Certificate, RootCerts, TlsConfig};

use crate::types::{PemFault, parse_pem};

/// The certificate authorities that a client trusts.
#[derive(Clone, Debug)]
pub enum Trust {
    /// The public authorities that browsers trust.
    Web,
    /// Only these roots, for a private authority.
    Only(Vec<Certificate<'static>>),
    /// Any certificate. Only for health checks of this machine.
    Anybody,
}

impl Trust {
    /// Parses the certificates of a PEM text.
    ///
    /// # Errors
    /// The fault, as a sentence.
    pub fn only(pem: &[u8]) -> Result<Self, String> {
        let no_certificate = || "holds no certificate".to_owned();
        let blocks = parse_pem(pem).map_err(|fault| match fault {
            PemFault::Empty => no_certificate(),
            fault => fault.to_string(),
        })?;
        let certificates = blocks.iter().filter(|block| block.is_certificate());
        let roots: Vec<_> = certificates.map(|block| Certificate::from_der(&block.der).to_owned()).collect();
        if roots.is_empty() { Err(no_certificate()) } else { Ok(Self::Only(roots)) }
    }

    pub(super) fn config(self) -> TlsConfig {
        let builder = TlsConfig::builder();
        match self {
            Self::Web => builder.root_certs(RootCerts::WebPki),
            Self::Only(roots) => builder.root_certs(RootCerts::Specific(roots.into())),
            Self::Anybody => builder.disable_verification(true),
        }
        .build()
    }
}
