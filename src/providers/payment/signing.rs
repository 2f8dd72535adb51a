//! The two signature schemes of payment messages. The sandbox and the real provider share all other code.
//!
//! Alipay uses `RSA2`. Only the sandbox uses `ECDSA256`: its key is generated at the first start, and ring cannot
//! generate RSA keys. A verifier accepts one scheme and never takes the scheme from a message.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1, EcdsaKeyPair, UnparsedPublicKey};

use crate::providers::rsa::{PrivateKey, PublicKey, SigningFailed};

/// Signs messages.
#[derive(Debug)]
pub(super) enum Signer {
    Rsa2(PrivateKey),
    Ecdsa256(EcdsaKeyPair),
}

/// Verifies signatures of one scheme with one key.
#[derive(Debug)]
pub(super) enum Verifier {
    Rsa2(PublicKey),
    Ecdsa256(Vec<u8>),
}

impl Signer {
    /// Returns the `sign_type` of the scheme.
    pub(super) fn sign_type(&self) -> &'static str {
        match self {
            Self::Rsa2(_) => "RSA2",
            Self::Ecdsa256(_) => "ECDSA256",
        }
    }

    /// Signs the text's UTF-8 bytes; the signature is base64.
    pub(super) fn sign(&self, text: &str) -> Result<String, SigningFailed> {
        self.sign_bytes(text.as_bytes())
    }

    /// Signs these bytes; the signature is base64.
    pub(super) fn sign_bytes(&self, bytes: &[u8]) -> Result<String, SigningFailed> {
        let signature = match self {
            Self::Rsa2(key) => key.sign(bytes)?,
            Self::Ecdsa256(key) => {
                let signature = key.sign(&SystemRandom::new(), bytes).map_err(|_| SigningFailed)?;
                signature.as_ref().to_vec()
            }
        };
        Ok(STANDARD.encode(signature))
    }
}

impl Verifier {
    /// Returns the only `sign_type` that this verifier accepts.
    pub(super) fn sign_type(&self) -> &'static str {
        match self {
            Self::Rsa2(_) => "RSA2",
            Self::Ecdsa256(_) => "ECDSA256",
        }
    }

    /// Returns true if `signature` (padded standard base64) is valid for exactly these bytes.
    pub(super) fn verifies(&self, text: &[u8], signature: &str) -> bool {
        let Ok(signature) = STANDARD.decode(signature) else {
            return false;
        };
        match self {
            Self::Rsa2(key) => key.verifies(text, &signature),
            Self::Ecdsa256(key) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, key).verify(text, &signature).is_ok()
            }
        }
    }
}
