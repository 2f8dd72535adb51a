//! The certificate in files that somebody else renews. One that is got by ACME is renewed by the service itself.

use std::time::Duration;

use super::{Check, Installation, Verdict};
use crate::certificate::{Certificate, PemFiles};

const GROUP: &str = "tls";
/// So much time must be left, or whoever renews the certificate seems to have stopped.
const LEFT: Duration = Duration::from_hours(14 * 24);

pub(super) fn certificate(installation: &Installation<'_>) -> Vec<Check> {
    let Some(files) = PemFiles::of(installation.config) else { return Vec::new() };
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

fn validity(installation: &Installation<'_>, certificate: &Certificate) -> Check {
    let (now, validity) = (installation.clock.now(), certificate.validity);
    let check = |verdict, detail: String| Check::new(GROUP, "validity", verdict, detail);
    match () {
        () if validity.until <= now => check(Verdict::Fail, format!("expired at {}: renew it", validity.until)),
        () if validity.from > now => check(Verdict::Fail, format!("not valid before {}", validity.from)),
        () if validity.until <= now.plus(LEFT) => {
            check(Verdict::Warn, format!("expires at {}, in less than 14 days: renew it", validity.until))
        }
        () => check(Verdict::Pass, format!("until {}", validity.until)),
    }
}
