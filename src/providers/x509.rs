//! Certificates of providers: serial number, public key and validity.
//!
//! The parsed form is owned, because the parser's borrows from the DER form.

use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::rsa::{KeyError, PublicKey};
use crate::types::{PemFault, parse_pem};

/// A certificate with an RSA key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RsaCertificate {
    /// Upper-case hexadecimal digits without leading zeros.
    pub(super) serial: String,
    pub(super) public_key: PublicKey,
    /// Epoch milliseconds.
    pub(super) expires_at: i64,
}

/// The reason why a configured certificate is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum CertificateFault {
    #[error(transparent)]
    Text(#[from] PemFault),
    #[error("this is no X.509 certificate")]
    NotCertificate,
    #[error("the certificate's key cannot be used: {0}")]
    Key(#[from] KeyError),
}

impl RsaCertificate {
    /// Parses all certificates of a PEM text.
    pub(super) fn parse_all(text: &str) -> Result<Vec<Self>, CertificateFault> {
        let blocks = parse_pem(text.as_bytes())?;
        blocks.iter().filter(|block| block.is_certificate()).map(|block| Self::from_der(&block.der)).collect()
    }

    /// Parses the only certificate of a PEM text.
    pub(super) fn parse(text: &str) -> Result<Self, CertificateFault> {
        let mut all = Self::parse_all(text)?;
        match all.pop() {
            Some(only) if all.is_empty() => Ok(only),
            _ => Err(CertificateFault::NotCertificate),
        }
    }

    pub(super) fn from_der(der: &[u8]) -> Result<Self, CertificateFault> {
        let certificate = parse_certificate(der).ok_or(CertificateFault::NotCertificate)?;
        Ok(Self {
            serial: normalized_serial(&certificate.raw_serial_as_string().replace(':', "")),
            public_key: PublicKey::from_der(certificate.public_key().raw)?,
            expires_at: certificate.validity().not_after.timestamp().saturating_mul(1000),
        })
    }
}

/// Parses one certificate without trailing bytes.
pub(super) fn parse_certificate(der: &[u8]) -> Option<X509Certificate<'_>> {
    let (rest, certificate) = X509Certificate::from_der(der).ok()?;
    rest.is_empty().then_some(certificate)
}

/// Returns a hexadecimal serial number in upper case without leading zeros, so that spellings compare equal.
pub(super) fn normalized_serial(text: &str) -> String {
    text.trim().trim_start_matches('0').to_ascii_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_serial_key_and_expiry() {
        let vectors = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/wechat.json"));
        let vectors: serde_json::Value = serde_json::from_str(vectors).unwrap();
        let certificate = RsaCertificate::parse(vectors["platform_certificate_pem"].as_str().unwrap()).unwrap();
        assert_eq!(certificate.serial, vectors["platform_certificate_serial"].as_str().unwrap());
        let key = vectors["keys"]["wechat_platform_cert"]["public_spki_pem"].as_str().unwrap();
        assert_eq!(certificate.public_key, PublicKey::parse(key).unwrap());
        assert_eq!(certificate.expires_at, 1_861_920_000_000);
    }

    #[test]
    fn rejects_other_texts() {
        assert_eq!(RsaCertificate::parse("MAA="), Err(CertificateFault::NotCertificate));
        assert_eq!(RsaCertificate::parse(""), Err(CertificateFault::Text(PemFault::Empty)));
    }

    #[test]
    fn spellings_of_a_serial_are_equal() {
        assert_eq!(normalized_serial(" 004f0a "), normalized_serial("4F0A"));
    }
}
