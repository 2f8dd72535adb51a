//! A certificate that somebody else renews: two PEM files, looked at again when they change and on SIGHUP.
//!
//! A pair that cannot be read is logged, and the one before stays: a renewal that writes one file after the other
//! passes through such a state.

use std::{sync::Arc, time::Duration};

use tokio::signal::unix::{SignalKind, signal};

use super::certificates::Certificates;
use crate::{certificate::PemFiles, clock::Clock, types::Timestamp};

const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Reads the pair and shows it from now on.
///
/// # Errors
/// What is wrong, in words.
pub fn show(files: &PemFiles, certificates: &Certificates, now: Timestamp) -> Result<(), String> {
    let certificate = files.read().map_err(|faults| faults.join("\n"))?;
    let until = certificate.validity.until;
    if until < now {
        tracing::warn!(%until, "showing the certificate of the file, which is not good any more");
    } else {
        tracing::info!(%until, "showing the certificate of the file");
    }
    certificates.show(certificate);
    Ok(())
}

pub async fn keep_up(files: PemFiles, certificates: Arc<Certificates>, clock: Clock) {
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
            if let Err(fault) = show(&files, &certificates, clock.now()) {
                tracing::error!(fault, "a certificate cannot be taken; the one before stays");
            }
        }
    }
}
