//! A certificate renewed by another program: two PEM files, reloaded when they change and on SIGHUP.
//!
//! An unreadable pair is logged, and the previous one stays: a renewal that writes the files one after the other passes
//! through such a state. An expired certificate does not replace a valid one; a start uses whatever there is.

use std::{sync::Arc, time::Duration};

use tokio::signal::unix::{SignalKind, signal};

use super::certificates::Certificates;
use crate::{certificate::PemFiles, clock::Clock, types::Timestamp};

const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Loads the pair, activates it, and returns its expiry.
///
/// # Errors
/// The fault, in words.
pub fn show(files: &PemFiles, certificates: &Certificates, now: Timestamp) -> Result<Timestamp, String> {
    show_unless(files, certificates, now, |_| false)
}

fn show_unless(
    files: &PemFiles,
    certificates: &Certificates,
    now: Timestamp,
    is_refused: impl FnOnce(Timestamp) -> bool,
) -> Result<Timestamp, String> {
    let certificate = files.read().map_err(|faults| faults.join("\n"))?;
    let until = certificate.validity.until;
    if is_refused(until) {
        return Err(format!("it has expired at {until}, and the one before is good still"));
    }
    if until < now {
        tracing::warn!(%until, "showing the certificate of the file, which is not good any more");
    } else {
        tracing::info!(%until, "showing the certificate of the file");
    }
    certificates.show(certificate);
    Ok(until)
}

pub async fn run(files: PemFiles, certificates: Arc<Certificates>, clock: Clock, mut shown_until: Timestamp) {
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
            let now = clock.now();
            match show_unless(&files, &certificates, now, |until| until < now && now <= shown_until) {
                Ok(until) => shown_until = until,
                Err(fault) => tracing::error!(fault, "a certificate cannot be taken; the one before stays"),
            }
        }
    }
}
