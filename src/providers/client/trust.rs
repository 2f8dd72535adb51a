//! The certificate authorities that a client trusts.

use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

/// The certificate authorities that a client trusts.
#[derive(Clone, Debug)]
pub enum Trust {
    /// The public authorities that browsers trust.
    Web,
    /// These roots alone, for a private authority.
    Only(Vec<Certificate<'static>>),
    /// Any: for asking this machine whether a service answers, and for nothing else.
    Anybody,
}

impl Trust {
    /// The certificates of a PEM text.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn only(pem: &[u8]) -> Result<Self, String> {
        let certificate = |item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(Ok(certificate)),
            Ok(_) => None,
            Err(error) => Some(Err(format!("is no PEM: {error}"))),
        };
        let roots: Vec<_> = parse_pem(pem).filter_map(certificate).collect::<Result<_, String>>()?;
        if roots.is_empty() { Err("holds no certificate".into()) } else { Ok(Self::Only(roots)) }
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
