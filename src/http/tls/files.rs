//! Certificates renewed by another program: two PEM files, reloaded when they change and on SIGHUP.
//!
//! An unreadable pair is logged and the previous one stays, because a renewal may write one file after the other. An
//! expired certificate does not replace a valid one. At the start any readable pair is used.

use std::{sync::Arc, time::Duration};

use tokio::signal::unix::{SignalKind, signal};

use super::certificates::Certificates;
use crate::{
    certificate::{self, FileStamp, PemFiles},
    clock::Clock,
    types::Timestamp,
};

const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// The active pair of files.
pub struct ActivePair {
    /// State of the files before they were read, so that a change during the start is seen.
    stamp: FileStamp,
    until: Timestamp,
}

/// Loads the pair and activates it.
///
/// # Errors
/// The fault, as a message.
pub fn show(files: &PemFiles, certificates: &Certificates, now: Timestamp) -> Result<ActivePair, String> {
    let stamp = files.stamp();
    Ok(ActivePair { stamp, until: show_unless(files, certificates, now, |_| false)? })
}

fn show_unless(
    files: &PemFiles,
    certificates: &Certificates,
    now: Timestamp,
    is_refused: impl FnOnce(Timestamp) -> bool,
) -> Result<Timestamp, String> {
    let certificate = files.read().map_err(|faults| certificate::joined(&faults, "\n"))?;
    let until = certificate.validity.until;
    if is_refused(until) {
        return Err(format!("the new certificate expired at {until}; the previous one is still valid"));
    }
    if until < now {
        tracing::warn!(%until, "loaded a certificate that has expired");
    } else {
        tracing::info!(%until, "loaded the certificate");
    }
    certificates.show(certificate);
    Ok(until)
}

pub async fn run(files: PemFiles, certificates: Arc<Certificates>, clock: Clock, mut shown: ActivePair) {
    let mut hangup = match signal(SignalKind::hangup()) {
        Ok(hangup) => hangup,
        Err(error) => return tracing::error!(%error, "cannot listen for SIGHUP; certificates are not reloaded"),
    };
    loop {
        let has_signal = tokio::select! {
            signal = hangup.recv() => signal.is_some(),
            () = tokio::time::sleep(CHECK_INTERVAL) => false,
        };
        let stamp = files.stamp();
        if has_signal || stamp != shown.stamp {
            shown.stamp = stamp;
            let now = clock.now();
            match show_unless(&files, &certificates, now, |until| until < now && now <= shown.until) {
                Ok(until) => shown.until = until,
                Err(fault) => tracing::error!(fault, "could not reload the certificate; the previous one stays"),
            }
        }
    }
}
