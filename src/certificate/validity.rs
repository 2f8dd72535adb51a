//! Reads a certificate's validity from its DER. Clients validate the certificate, so nothing else is parsed and no
//! library is needed.

use jiff::{civil::DateTime, tz::TimeZone};

use crate::types::Timestamp;

/// With less time left, the renewal seems to have stopped.
const LEFT: i64 = 14 * 24 * 60 * 60 * 1000;

const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CertificateValidity {
    pub from: Timestamp,
    pub until: Timestamp,
}

impl CertificateValidity {
    /// Parses a certificate. RFC 5280, section 4.1: its first part holds version, serial number, algorithm, issuer and
    /// validity.
    pub fn of(certificate: &[u8]) -> Option<Self> {
        let (_, certificate, _) = element(certificate)?;
        let (_, mut fields, _) = element(certificate)?;
        if fields.first() == Some(&VERSION) {
            fields = element(fields)?.2;
        }
        for _ in ["serial number", "algorithm", "issuer"] {
            fields = element(fields)?.2;
        }
        let (_, validity, _) = element(fields)?;
        let (kind, from, rest) = element(validity)?;
        let from = time(kind, from)?;
        let (kind, until, _) = element(rest)?;
        Some(Self { from, until: time(kind, until)? })
    }

    /// Returns the time for renewal: when a third of the lifetime is left, as certificate authorities advise.
    pub fn renewal(self) -> Timestamp {
        Timestamp(self.until.0 - (self.until.0 - self.from.0) / 3)
    }

    /// Returns true if less than 14 days are left; for short-lived certificates, half of the time left at renewal.
    pub fn ends_soon(self, now: Timestamp) -> bool {
        now.0 >= self.until.0 - LEFT.min((self.until.0 - self.from.0) / 6)
    }
}

/// Splits the first element off: its tag, its content, and the bytes after it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = bytes.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = if *first < 0x80 {
        (usize::from(*first), rest)
    } else {
        let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
        let fits = digits.len() <= size_of::<u32>();
        (fits.then(|| digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)))?, rest)
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((*tag, content, rest))
}

fn time(kind: u8, text: &[u8]) -> Option<Timestamp> {
    let text = std::str::from_utf8(text).ok()?;
    let text = match kind {
        // Two-digit years mean 1950 to 2049.
        UTC_TIME if text < "50" => format!("20{text}"),
        UTC_TIME => format!("19{text}"),
        GENERALIZED_TIME => text.to_owned(),
        _ => return None,
    };
    let time = DateTime::strptime("%Y%m%d%H%M%SZ", text).ok()?.to_zoned(TimeZone::UTC).ok()?;
    Some(Timestamp(time.timestamp().as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A certificate reduced to the parts that are read.
    fn certificate(times: &[u8], version: &[u8]) -> Vec<u8> {
        let wrap = |tag: u8, content: &[u8]| [&[tag, 0x82, 0, u8::try_from(content.len()).unwrap()], content].concat();
        let fields = [version, &[2, 1, 7], &[0x30, 0], &[0x30, 0], &wrap(0x30, times)].concat();
        wrap(0x30, &wrap(0x30, &fields))
    }

    #[test]
    fn parses_both_time_formats() {
        let times = b"\x17\x0d260101000000Z\x18\x0f20500401000000Z";
        for version in [&b""[..], b"\xa0\x03\x02\x01\x02"] {
            let validity = CertificateValidity::of(&certificate(times, version)).unwrap();
            assert_eq!(validity.from.to_string(), "2026-01-01T00:00:00.000Z");
            assert_eq!(validity.until.to_string(), "2050-04-01T00:00:00.000Z");
        }
        let old = CertificateValidity::of(&certificate(b"\x17\x0d990101000000Z\x17\x0d000101000000Z", b"")).unwrap();
        assert_eq!(old.from.to_string(), "1999-01-01T00:00:00.000Z");
    }

    #[test]
    fn renewal_starts_with_a_third_of_the_lifetime_left() {
        let validity = CertificateValidity { from: Timestamp(0), until: Timestamp(90) };
        assert_eq!(validity.renewal(), Timestamp(60));
    }

    #[test]
    fn ends_soon_if_the_renewal_is_late() {
        const DAY: i64 = 24 * 60 * 60 * 1000;
        for (lifetime, day) in [(90, 76), (365, 351), (6, 5)] {
            let validity = CertificateValidity { from: Timestamp(0), until: Timestamp(lifetime * DAY) };
            assert!(!validity.ends_soon(Timestamp(day * DAY - 1)), "{lifetime}");
            assert!(validity.ends_soon(Timestamp(day * DAY)), "{lifetime}");
        }
    }

    #[test]
    fn rejects_truncated_certificates() {
        let whole = certificate(b"\x17\x0d260101000000Z\x17\x0d260401000000Z", b"");
        for length in 0..whole.len() {
            assert_eq!(CertificateValidity::of(&whole[..length]), None, "{length}");
        }
        assert_eq!(CertificateValidity::of(&[0x30, 0x89, 1, 1, 1, 1, 1, 1, 1, 1, 1]), None);
        assert_eq!(CertificateValidity::of(&certificate(b"\x17\x0d269901000000Z\x17\x0d260401000000Z", b"")), None);
    }
}
