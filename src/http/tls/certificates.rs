//! The certificate that is shown now. It is exchanged while the service runs; running connections keep theirs.

use std::sync::{Arc, PoisonError, RwLock};

use rustls::{
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};

use super::validity::Validity;

/// What is shown to whoever connects, whatever name they ask for.
#[derive(Debug, Default)]
pub struct Certificates {
    current: RwLock<Option<Arc<CertifiedKey>>>,
}

impl Certificates {
    pub fn show(&self, certificate: Certificate) {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        *current = Some(Arc::new(certificate.key));
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A chain of certificates, the key that belongs to the first one, and how long that one is good.
pub struct Certificate {
    key: CertifiedKey,
    pub validity: Validity,
}

impl Certificate {
    /// Reads PEM. Both texts may be the same.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn parse(chain: &[u8], key: &[u8]) -> Result<Self, String> {
        let chain = CertificateDer::pem_slice_iter(chain).collect::<Result<Vec<_>, _>>();
        let chain = chain.map_err(|error| format!("the certificate is no PEM: {error}"))?;
        let first = chain.first().ok_or("there is no certificate in it")?;
        let validity = Validity::of(first).ok_or("the certificate says not how long it is good")?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| format!("the key is no PEM: {error}"))?;
        let key = CertifiedKey::from_der(chain, key, &ring::default_provider())
            .map_err(|error| format!("certificate and key do not fit: {error}"))?;
        Ok(Self { key, validity })
    }
}
