//! The certificate that is shown now. It is exchanged while the service runs; running connections keep theirs.

use std::sync::{Arc, PoisonError, RwLock};

use rustls::{
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};

use crate::certificate::Certificate;

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
