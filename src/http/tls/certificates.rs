//! The active certificate. It can be replaced at run time; open connections keep theirs.

use std::sync::{Arc, PoisonError, RwLock};

use rustls::{
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};

use crate::certificate::{Certificate, ServedValidity};

/// The certificate for all connections, whatever server name they request.
#[derive(Debug)]
pub struct Certificates {
    current: RwLock<Option<Arc<CertifiedKey>>>,
    shown: Arc<ServedValidity>,
}

impl Certificates {
    /// Creates an empty store. `shown` is updated with each certificate.
    pub fn new(shown: &Arc<ServedValidity>) -> Self {
        Self { current: RwLock::default(), shown: Arc::clone(shown) }
    }

    pub fn show(&self, certificate: Certificate) {
        self.shown.note(certificate.validity);
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        *current = Some(Arc::new(certificate.key));
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
