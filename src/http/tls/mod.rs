//! TLS: the acceptor, and the source of its certificate.
//!
//! The certificate is a pair of PEM files renewed by another program, or ordered and renewed here by ACME. The
//! handshake runs over the same timed stream as plain requests, so that the limits of a connection apply to it too.

mod acme;
mod acme_files;
mod certificates;
mod files;

use std::{pin::Pin, sync::Arc};

use rustls::{ServerConfig, crypto::ring};
use tokio_rustls::TlsAcceptor;

use acme::Acme;
pub use acme::Challenges;
use certificates::Certificates;

use super::http2::ALPN;
use crate::{
    app::App,
    certificate::PemFiles,
    error::{Error, Result},
};

/// The TLS acceptor, and the renewal of its certificate.
pub struct Tls {
    pub acceptor: TlsAcceptor,
    pub challenges: Challenges,
    pub renewal: Renewal,
}

/// Renews the certificate. Never ends by itself.
pub type Renewal = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Tls {
    /// Loads the configured certificate, or returns `None` without one.
    ///
    /// # Errors
    /// `configuration` for invalid PEM files; storage errors of ACME files.
    pub fn open(app: &Arc<App>) -> Result<Option<Self>> {
        let server = &app.core.config.server;
        let certificates = Arc::new(Certificates::new(&app.health.served_certificate));
        let challenges = Challenges::default();
        let renewal: Renewal = match PemFiles::of(&app.core.config) {
            Some(files) => {
                let shown = files::show(&files, &certificates, app.core.clock.now()).map_err(Error::misconfigured)?;
                Box::pin(files::run(files, Arc::clone(&certificates), app.core.clock.clone(), shown))
            }
            _ if !server.domain.is_empty() => {
                let acme = Acme::open(app, Arc::clone(&certificates), challenges.clone())?;
                Box::pin(acme::run(acme))
            }
            _ => return Ok(None),
        };
        Ok(Some(Self { acceptor: acceptor(certificates)?, challenges, renewal }))
    }
}

fn acceptor(certificates: Arc<Certificates>) -> Result<TlsAcceptor> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(Error::internal)?
        .with_no_client_auth()
        .with_cert_resolver(certificates);
    config.alpn_protocols = vec![ALPN.to_vec(), b"http/1.1".to_vec()];
    // Session tickets save returning clients the signature, without server-side state.
    config.ticketer = ring::Ticketer::new().map_err(Error::internal)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
