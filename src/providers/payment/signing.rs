//! The two signature schemes of payment messages, so that the sandbox and the real provider share all code around them.
//!
//! `RSA2` is what Alipay speaks. `ECDSA256` exists for the sandbox alone: its key is made on the spot at the
//! first start, and ring cannot make RSA keys. A verifier knows one scheme and never takes it from a message.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1, EcdsaKeyPair, UnparsedPublicKey};

use crate::providers::rsa::{PrivateKey, PublicKey, SigningFailed};

/// Makes signatures.
#[derive(Debug)]
pub(super) enum Signer {
    Rsa2(PrivateKey),
    Ecdsa256(EcdsaKeyPair),
}

/// Checks signatures of one scheme by one key.
#[derive(Debug)]
pub(super) enum Verifier {
    Rsa2(PublicKey),
    Ecdsa256(Vec<u8>),
}

impl Signer {
    /// The `sign_type` that goes into a message.
    pub(super) fn sign_type(&self) -> &'static str {
        match self {
            Self::Rsa2(_) => "RSA2",
            Self::Ecdsa256(_) => "ECDSA256",
        }
    }

    /// The signature over the text's UTF-8 bytes, as base64.
    pub(super) fn sign(&self, text: &str) -> Result<String, SigningFailed> {
        self.sign_bytes(text.as_bytes())
    }

    /// The signature over these bytes, as base64.
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
    /// The only `sign_type` that this verifier accepts.
    pub(super) fn sign_type(&self) -> &'static str {
        match self {
            Self::Rsa2(_) => "RSA2",
            Self::Ecdsa256(_) => "ECDSA256",
        }
    }

    /// Returns true if `signature` (base64, standard alphabet, padded) is genuine for exactly these bytes.
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
