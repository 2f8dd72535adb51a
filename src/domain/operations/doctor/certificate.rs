//! The certificate: in files that somebody else renews, or got and renewed by the service itself.

use super::{Check, Installation, Verdict};
use crate::certificate::{AcmeFiles, Certificate, PemFiles};

const GROUP: &str = "tls";

pub(super) fn certificate(installation: &Installation<'_>) -> Vec<Check> {
    match (PemFiles::of(installation.config), AcmeFiles::of(installation.config)) {
        (Some(files), _) => in_files(installation, &files),
        (None, Some(files)) => vec![got_by_acme(installation, &files)],
        (None, None) => Vec::new(),
    }
}

fn in_files(installation: &Installation<'_>, files: &PemFiles) -> Vec<Check> {
    match files.read() {
        Ok(certificate) => vec![
            Check::new(GROUP, "files", Verdict::Pass, "certificate and key belong together"),
            validity(installation, &certificate),
        ],
        Err(faults) => faults
            .into_iter()
            .map(|fault| {
                let (setting, why) = fault.split_once(": ").unwrap_or(("files", &fault));
                Check::new(GROUP, setting, Verdict::Fail, why)
            })
            .collect(),
    }
}

fn got_by_acme(installation: &Installation<'_>, files: &AcmeFiles) -> Check {
    let failed = |detail: String| Check::new(GROUP, "validity", Verdict::Fail, detail);
    match files.read() {
        Ok(Some(certificate)) => validity(installation, &certificate),
        Ok(None) => failed("none was got by ACME yet: the log of the running server says why".into()),
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
