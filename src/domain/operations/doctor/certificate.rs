//! Checks of the TLS certificate, from files or from ACME.

use super::{Check, Installation, Verdict};
use crate::certificate::{AcmeFiles, Certificate, PemFiles};

const GROUP: &str = "tls";

pub(super) fn certificate(installation: &Installation<'_>) -> Vec<Check> {
    match (PemFiles::of(installation.config), AcmeFiles::of(installation.config)) {
        (Some(files), _) => from_files(installation, &files),
        (None, Some(files)) => vec![from_acme(installation, &files)],
        (None, None) => Vec::new(),
    }
}

fn from_files(installation: &Installation<'_>, files: &PemFiles) -> Vec<Check> {
    match files.read() {
        Ok(certificate) => vec![
            Check::new(GROUP, "files", Verdict::Pass, "the key matches the certificate"),
            validity(installation, &certificate),
        ],
        Err(faults) => faults
            .into_iter()
            .map(|fault| {
                let (setting, detail) = fault.split_once(": ").unwrap_or(("files", &fault));
                Check::new(GROUP, setting, Verdict::Fail, detail)
            })
            .collect(),
    }
}

fn from_acme(installation: &Installation<'_>, files: &AcmeFiles) -> Check {
    let failed = |detail: String| Check::new(GROUP, "validity", Verdict::Fail, detail);
    match files.read() {
        Ok(Some(certificate)) => validity(installation, &certificate),
        Ok(None) => failed("ACME has issued no certificate yet: see the log of the server".into()),
        Err(fault) => failed(fault),
    }
}

fn validity(installation: &Installation<'_>, certificate: &Certificate) -> Check {
    let (now, validity) = (installation.clock.now(), certificate.validity);
    let check = |verdict, detail: String| Check::new(GROUP, "validity", verdict, detail);
    match () {
        () if validity.until <= now => check(Verdict::Fail, format!("expired at {}: renew it", validity.until)),
        () if validity.from > now => check(Verdict::Fail, format!("not valid before {}", validity.from)),
        () if validity.ends_soon(now) => {
            check(Verdict::Warn, format!("expires soon, at {}: its renewal is late", validity.until))
        }
        () => check(Verdict::Pass, format!("until {}", validity.until)),
    }
}
