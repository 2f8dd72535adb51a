//! Keys stored in the data directory, above all the server key, without which stored HMACs cannot be verified.

use std::{fs::File, io::Write as _, path::Path};

use ring::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    hmac,
};
use secrecy::{ExposeSecret, SecretString};
use subtle::ConstantTimeEq;

use crate::{
    error::{Code, Error, Result},
    types::{Cursor, UserId, hex, random_bytes},
};

/// The file of the server key. Without it, HMACs and encrypted values in the database are useless.
pub const SERVER_KEY: &str = "secret.key";
/// The file of the key of the sandbox payment gateway.
pub const SANDBOX_KEY: &str = "sandbox.key";
/// The key files of a data directory. Backups contain them.
pub const KEYS: [&str; 2] = [SERVER_KEY, SANDBOX_KEY];

/// Bytes in which most messages find room.
const USUAL_MESSAGE: usize = 256;

/// The key for HMACs of codes and addresses. A stolen database alone does not reveal them.
#[derive(Clone)]
pub struct ServerKey(hmac::Key);

impl ServerKey {
    /// Returns the configured key or else the stored one, which is created if it is missing. The caller has checked
    /// that none was lost.
    ///
    /// # Errors
    /// `data_directory_unusable` if the stored key cannot be created or read.
    pub fn load(configured: Option<&SecretString>, directory: &Path) -> Result<Self> {
        let bytes = match configured {
            Some(key) => key.expose_secret().as_bytes().to_vec(),
            None => load_or_create_key(&directory.join(SERVER_KEY), random_key)?,
        };
        Ok(Self::from_bytes(&bytes))
    }

    /// Creates the key from its bytes.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, bytes))
    }

    /// Returns a short identifier of this key that reveals nothing about it.
    pub fn fingerprint(&self) -> String {
        hex(&self.authenticate(&["fingerprint"])[..8])
    }

    /// Returns the HMAC-SHA-256 of the parts. Each is preceded by its length, so that different lists of parts have
    /// different HMACs.
    pub fn authenticate(&self, parts: &[&str]) -> [u8; 32] {
        self.authenticate_all(parts.iter().copied())
    }

    fn authenticate_all<'part>(&self, parts: impl Iterator<Item = &'part str>) -> [u8; 32] {
        let mut message = Vec::with_capacity(USUAL_MESSAGE);
        for part in parts {
            message.extend_from_slice(&(part.len() as u64).to_be_bytes());
            message.extend_from_slice(part.as_bytes());
        }
        let mut bytes = [0; 32];
        bytes.copy_from_slice(hmac::sign(&self.0, &message).as_ref());
        bytes
    }

    /// Returns a short HMAC over a row, by which a later change of the row is found: the name of its table, and its columns.
    pub fn seal_row(&self, row: &[&str]) -> [u8; 16] {
        let mut seal = [0; 16];
        let authentic = self.authenticate_all(["row"].into_iter().chain(row.iter().copied()));
        // Half of the tag is enough against guessing.
        seal.copy_from_slice(&authentic[..16]);
        seal
    }

    /// Returns this user's cursor for the rows of this list after a position.
    pub fn cursor(&self, list: &str, user: UserId, position: i64) -> Cursor {
        let authentic = self.authenticate(&["cursor", list, &user.to_string(), &position.to_string()]);
        let mut cursor = Cursor { position, seal: Default::default() };
        // Half of the tag is enough against guessing.
        cursor.seal.iter_mut().zip(authentic).for_each(|(byte, authentic)| *byte = authentic);
        cursor
    }

    /// Returns the position of a cursor; `None` if this key did not create it for this user and list.
    pub fn position(&self, list: &str, user: UserId, cursor: &Cursor) -> Option<i64> {
        let genuine = self.cursor(list, user, cursor.position);
        bool::from(genuine.seal.ct_eq(&cursor.seal)).then_some(cursor.position)
    }

    /// Encrypts a value by AES-256-GCM under a key of the purpose: a random nonce, then the ciphertext. It can be
    /// decrypted for the same purpose and owner only.
    ///
    /// # Errors
    /// `internal` if the system has no random source.
    pub fn seal(&self, purpose: &str, owner: &[u8], plain: &[u8]) -> Result<Vec<u8>> {
        let nonce = random_bytes::<NONCE_LEN>()?;
        let mut bytes = plain.to_vec();
        let key = self.sealing_key(purpose).ok_or_else(|| Error::internal("the encryption key is invalid"))?;
        key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(owner), &mut bytes)
            .map_err(Error::internal)?;
        Ok([&nonce[..], &bytes].concat())
    }

    /// Returns the plaintext given to [`Self::seal`]. `None` if the key, purpose or owner differs.
    pub fn unseal(&self, purpose: &str, owner: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, bytes) = sealed.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut bytes = bytes.to_vec();
        let plain = self.sealing_key(purpose)?.open_in_place(nonce, Aad::from(owner), &mut bytes).ok()?;
        Some(plain.to_vec())
    }

    fn sealing_key(&self, purpose: &str) -> Option<LessSafeKey> {
        let bytes = self.authenticate(&["sealing", purpose]);
        UnboundKey::new(&AES_256_GCM, &bytes).ok().map(LessSafeKey::new)
    }
}

impl std::fmt::Debug for ServerKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("ServerKey")
    }
}

/// Returns a key of this data directory, created at its first start. Every backup must include the server key: without
/// it, stored HMACs cannot be verified.
///
/// # Errors
/// `data_directory_unusable` if the key cannot be created or read.
pub fn load_or_create_key(path: &Path, new_key: impl FnOnce() -> Result<Vec<u8>>) -> Result<Vec<u8>> {
    let failed = |error: std::io::Error| {
        let detail = format!("The key {}: {error}", path.display());
        Error::new(Code::DataDirectoryUnusable).english_detail(detail).caused_by(error)
    };
    if !path.exists() {
        make_key(path, &new_key()?, failed)?;
    }
    let bytes = std::fs::read(path).map_err(failed)?;
    if bytes.len() < 32 {
        let detail = format!(
            "The key {} is damaged: it has {} bytes. Move it away; `yarrow restore BACKUP --keys` puts back the one \
             that a backup has.",
            path.display(),
            bytes.len()
        );
        return Err(Error::new(Code::DataDirectoryUnusable).english_detail(detail));
    }
    Ok(bytes)
}

fn random_key() -> Result<Vec<u8>> {
    random_bytes::<32>().map(Vec::from)
}

/// Writes a new key to a temporary file and moves it into place. Of two programs starting at once one wins, and neither
/// reads a partial key.
fn make_key(path: &Path, key: &[u8], failed: impl Fn(std::io::Error) -> Error) -> Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // A new file with a random name and access for its owner only: it follows no planted link.
    let mut file = tempfile::Builder::new().prefix(".key-").tempfile_in(directory).map_err(&failed)?;
    file.write_all(key).and_then(|()| file.as_file().sync_all()).map_err(&failed)?;
    match file.persist_noclobber(path) {
        Err(error) if error.error.kind() != std::io::ErrorKind::AlreadyExists => return Err(failed(error.error)),
        _ => {}
    }
    // A synced file can still lose its name in a power failure, and the next start would create another key.
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(&failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> ServerKey {
        ServerKey::from_bytes(&[byte; 32])
    }

    #[test]
    fn cursors_are_valid_for_their_user_list_and_key_only() {
        let cursor = key(1).cursor("notifications", UserId(7), 42);
        assert_eq!(key(1).position("notifications", UserId(7), &cursor), Some(42));
        assert_eq!(key(1).position("notifications", UserId(8), &cursor), None);
        assert_eq!(key(1).position("points", UserId(7), &cursor), None);
        assert_eq!(key(2).position("notifications", UserId(7), &cursor), None);
        let moved = Cursor { position: 41, ..cursor };
        assert_eq!(key(1).position("notifications", UserId(7), &moved), None);
    }

    #[test]
    fn sealed_values_decrypt_for_their_key_purpose_and_owner_only() {
        let ours = key(1);
        let sealed = ours.seal("a", b"1", b"plain").unwrap();
        assert_ne!(sealed, ours.seal("a", b"1", b"plain").unwrap());
        assert_eq!(ours.unseal("a", b"1", &sealed).as_deref(), Some(&b"plain"[..]));
        let theirs = key(2);
        for opened in
            [ours.unseal("b", b"1", &sealed), ours.unseal("a", b"2", &sealed), theirs.unseal("a", b"1", &sealed)]
        {
            assert_eq!(opened, None);
        }
        let mut broken = sealed.clone();
        broken[NONCE_LEN] ^= 1;
        assert_eq!(ours.unseal("a", b"1", &broken), None);
        assert_eq!(ours.unseal("a", b"1", &sealed[..NONCE_LEN - 1]), None);
    }
}
