//! The keys that verify WeChat's messages, by serial, and the key that opens encrypted parts.
//!
//! A merchant has a public key, platform certificates, or both while it changes from one to the other: then the
//! provider signs some messages with either, and only the message's serial tells which. So there is never one key.

use std::{collections::BTreeMap, sync::Mutex};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use serde::Deserialize;

use crate::{
    concurrency::lock::lock_unpoisoned,
    providers::{
        payment::RejectionReason,
        rsa::PublicKey,
        x509::{CertificateFault, RsaCertificate, normalized_serial},
    },
};

/// The verification keys by serial.
#[derive(Debug, Default)]
pub(super) struct WeChatKeys(Mutex<BTreeMap<String, VerificationKey>>);

#[derive(Debug, Clone)]
struct VerificationKey {
    key: PublicKey,
    /// Epoch milliseconds; a public key does not expire.
    expires_at: Option<i64>,
}

/// The `APIv3` key, which opens notifications and certificates.
pub(super) struct ApiV3Key(LessSafeKey);

/// An encrypted part of a message.
#[derive(Debug, Deserialize)]
pub(super) struct EncryptedResource {
    algorithm: String,
    ciphertext: String,
    nonce: String,
    #[serde(default)]
    associated_data: Option<String>,
}

impl WeChatKeys {
    /// Adds the key of public-key mode under its id.
    pub(super) fn add_public_key(&self, id: &str, key: PublicKey) {
        lock_unpoisoned(&self.0).insert(id.to_owned(), VerificationKey { key, expires_at: None });
    }

    pub(super) fn add_certificate(&self, certificate: RsaCertificate) {
        let key = VerificationKey { key: certificate.public_key, expires_at: Some(certificate.expires_at) };
        lock_unpoisoned(&self.0).insert(certificate.serial, key);
    }

    /// Returns the key with this serial, unless it had expired at this time.
    pub(super) fn find(&self, serial: &str, at: i64) -> Option<PublicKey> {
        let keys = lock_unpoisoned(&self.0);
        let found = keys.get(serial).or_else(|| keys.get(&normalized_serial(serial)))?;
        found.expires_at.is_none_or(|expires_at| at < expires_at).then(|| found.key.clone())
    }

    pub(super) fn is_empty(&self) -> bool {
        lock_unpoisoned(&self.0).is_empty()
    }
}

impl ApiV3Key {
    /// The key is the text itself, not an encoding of it.
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        let key = UnboundKey::new(&AES_256_GCM, text.trim().as_bytes());
        key.map(|key| Self(LessSafeKey::new(key))).map_err(|_| "must have exactly 32 bytes")
    }

    /// Decrypts a part of a message.
    pub(super) fn open(&self, resource: &EncryptedResource) -> Result<Vec<u8>, RejectionReason> {
        if resource.algorithm != "AEAD_AES_256_GCM" {
            return Err(RejectionReason::WrongSignType);
        }
        let nonce =
            Nonce::try_assume_unique_for_key(resource.nonce.as_bytes()).map_err(|_| RejectionReason::Malformed)?;
        let mut bytes = STANDARD.decode(&resource.ciphertext).map_err(|_| RejectionReason::Malformed)?;
        let data = Aad::from(resource.associated_data.as_deref().unwrap_or_default());
        let length = self.0.open_in_place(nonce, data, &mut bytes).map_err(|_| RejectionReason::Undecryptable)?.len();
        bytes.truncate(length);
        Ok(bytes)
    }

    /// Decrypts a platform certificate, which is PEM.
    pub(super) fn open_certificate(
        &self,
        resource: &EncryptedResource,
    ) -> Result<(RsaCertificate, String), RejectionReason> {
        let pem = String::from_utf8(self.open(resource)?).map_err(|_| RejectionReason::Malformed)?;
        let certificate = RsaCertificate::parse(&pem).map_err(|_: CertificateFault| RejectionReason::Malformed)?;
        Ok((certificate, pem))
    }
}

impl std::fmt::Debug for ApiV3Key {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("ApiV3Key(hidden)")
    }
}
