//! A certificate that somebody else renews: two PEM files, looked at again when they change and on SIGHUP.
//!
//! A pair that cannot be read is logged, and the one before stays: a renewal that writes one file after the other
//! passes through such a state.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::signal::unix::{SignalKind, signal};

use super::certificates::{Certificate, Certificates};

const LOOK_EVERY: Duration = Duration::from_secs(5);

pub struct PemFiles {
    certificate: PathBuf,
    key: PathBuf,
}

/// What tells that a file was written: when, and how long it is.
type Stamp = [Option<(SystemTime, u64)>; 2];

impl PemFiles {
    pub fn new(certificate: &str, key: &str) -> Self {
        Self { certificate: certificate.into(), key: key.into() }
    }

    /// Reads the pair and shows it from now on.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn load_into(&self, certificates: &Certificates) -> Result<(), String> {
        let read = |path: &PathBuf| std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
        let named = |fault| format!("{} and {}: {fault}", self.certificate.display(), self.key.display());
        let certificate = Certificate::parse(&read(&self.certificate)?, &read(&self.key)?).map_err(named)?;
        tracing::info!(until = %certificate.validity.until, "showing the certificate of the file");
        certificates.show(certificate);
        Ok(())
    }

    fn stamp(&self) -> Stamp {
        [&self.certificate, &self.key].map(|path| {
            let metadata = std::fs::metadata(path).ok()?;
            Some((metadata.modified().ok()?, metadata.len()))
        })
    }
}

pub async fn keep_up(files: PemFiles, certificates: Arc<Certificates>) {
    let mut hangup = match signal(SignalKind::hangup()) {
        Ok(hangup) => hangup,
        Err(error) => return tracing::error!(%error, "certificates are not looked at again"),
    };
    let mut seen = files.stamp();
    loop {
        let is_told = tokio::select! {
            told = hangup.recv() => told.is_some(),
            () = tokio::time::sleep(LOOK_EVERY) => false,
        };
        let stamp = files.stamp();
        if is_told || stamp != seen {
            seen = stamp;
            if let Err(fault) = files.load_into(&certificates) {
                tracing::error!(fault, "a certificate cannot be taken; the one before stays");
            }
        }
    }
}
