//! Checks of the TLS certificate, from files or from ACME.

use super::{CheckFact, Installation};
use crate::certificate::{AcmeFiles, Certificate, FileFault, PemFiles};

pub(super) fn certificate(installation: &Installation<'_>) -> Vec<CheckFact> {
    match (PemFiles::of(installation.config), AcmeFiles::of(installation.config)) {
        (Some(files), _) => from_files(installation, &files),
        (None, Some(files)) => vec![from_acme(installation, &files)],
        (None, None) => Vec::new(),
    }
}

fn from_files(installation: &Installation<'_>, files: &PemFiles) -> Vec<CheckFact> {
    let unusable = |(setting, fault): FileFault| CheckFact::CertificateUnusable { setting: setting.into(), fault };
    match files.read() {
        Ok(certificate) => vec![CheckFact::CertificateUsable {}, validity(installation, &certificate)],
        Err(faults) => faults.into_iter().map(unusable).collect(),
    }
}

fn from_acme(installation: &Installation<'_>, files: &AcmeFiles) -> CheckFact {
    match files.read() {
        Ok(Some(certificate)) => validity(installation, &certificate),
        Ok(None) => CheckFact::NoCertificateYet {},
        Err(fault) => CheckFact::StoredCertificateUnusable { fault },
    }
}

fn validity(installation: &Installation<'_>, certificate: &Certificate) -> CheckFact {
    let (now, validity) = (installation.clock.now(), certificate.validity);
    let (from, until) = (validity.from, validity.until);
    match () {
        () if until <= now => CheckFact::CertificateExpired { until },
        () if from > now => CheckFact::CertificateNotYetValid { from },
        () if validity.ends_soon(now) => CheckFact::CertificateEndsSoon { until },
        () => CheckFact::CertificateValid { until },
    }
}
