//! Compact JSON web signatures with the two algorithms that providers use.
//!
//! The caller demands an algorithm; a message never chooses it. Splitting a message proves nothing about it.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, RSA_PKCS1_2048_8192_SHA256,
        RsaPublicKeyComponents, UnparsedPublicKey,
    },
};
use serde::{Deserialize, Serialize, de::IgnoredAny};

use super::rsa::{PrivateKey, SigningFailed};
use crate::types::{PemFault, parse_pem};

/// Larger messages are not parsed.
const MAX_LENGTH: usize = 64 * 1024;

/// A message in its parts, not verified.
pub(super) struct CompactJws<'a> {
    pub(super) header: Vec<u8>,
    pub(super) payload: Vec<u8>,
    signature: Vec<u8>,
    /// The signed text.
    signed: &'a str,
}

/// The member of a header that names extensions which the reader must understand.
#[derive(Deserialize)]
struct Extensions {
    crit: Option<IgnoredAny>,
}

/// An ECDSA key on the curve P-256 for ES256. Its `Debug` form shows nothing of it.
pub struct Es256Key(EcdsaKeyPair);

/// The reason why a configured key is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Es256KeyFault {
    #[error(transparent)]
    Text(#[from] PemFault),
    #[error("this is not a P-256 private key in PKCS#8 form")]
    NotKey,
}

impl<'a> CompactJws<'a> {
    /// Splits a message of three parts.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let (signed, signature) = text.rsplit_once('.').filter(|_| text.len() <= MAX_LENGTH)?;
        let (header, payload) = signed.split_once('.')?;
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).ok();
        let header = decode(header)?;
        // No extension is understood, so none that the header calls critical.
        serde_json::from_slice::<Extensions>(&header).ok().filter(|extensions| extensions.crit.is_none())?;
        Some(Self { header, payload: decode(payload)?, signature: decode(signature)?, signed })
    }

    /// Returns true if the message is signed with this P-256 key, which is an uncompressed point.
    pub(super) fn is_signed_es256(&self, key: &[u8]) -> bool {
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key).verify(self.signed.as_bytes(), &self.signature).is_ok()
    }

    /// Returns true if the message is signed with the RSA key of this modulus and exponent.
    pub(super) fn is_signed_rs256(&self, modulus: &[u8], exponent: &[u8]) -> bool {
        let key = RsaPublicKeyComponents { n: modulus, e: exponent };
        key.verify(&RSA_PKCS1_2048_8192_SHA256, self.signed.as_bytes(), &self.signature).is_ok()
    }
}

impl Es256Key {
    pub(super) fn parse(text: &str) -> Result<Self, Es256KeyFault> {
        let blocks = parse_pem(text.as_bytes())?;
        let block = blocks.first().ok_or(PemFault::Empty)?;
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &block.der, &SystemRandom::new());
        key.map(Self).map_err(|_| Es256KeyFault::NotKey)
    }

    /// Returns a signed message with this header and these claims.
    pub(super) fn sign(&self, header: &impl Serialize, claims: &impl Serialize) -> Result<String, SigningFailed> {
        let text = unsigned(header, claims)?;
        let signature = self.0.sign(&SystemRandom::new(), text.as_bytes()).map_err(|_| SigningFailed)?;
        Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

impl fmt::Debug for Es256Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Es256Key(hidden)")
    }
}

/// Returns a message signed with RS256.
pub(super) fn sign_rs256(
    key: &PrivateKey,
    header: &impl Serialize,
    claims: &impl Serialize,
) -> Result<String, SigningFailed> {
    let text = unsigned(header, claims)?;
    let signature = key.sign(text.as_bytes())?;
    Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

fn unsigned(header: &impl Serialize, claims: &impl Serialize) -> Result<String, SigningFailed> {
    let header = serde_json::to_vec(header).map_err(|_| SigningFailed)?;
    let claims = serde_json::to_vec(claims).map_err(|_| SigningFailed)?;
    Ok(format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_three_parts_are_a_message() {
        assert!(CompactJws::parse("e30.e30.AA").is_some());
        let critical = format!("{}.e30.AA", URL_SAFE_NO_PAD.encode(r#"{"alg":"RS256","crit":["exp"]}"#));
        for text in ["", "e30", "e30.e30", "e30.e30.AA.AA", "e30.e30.A?", "e30=.e30.AA", &critical] {
            assert!(CompactJws::parse(text).is_none(), "{text}");
        }
        assert!(CompactJws::parse(&format!("e30.e30.{}", "A".repeat(MAX_LENGTH))).is_none());
    }
}
